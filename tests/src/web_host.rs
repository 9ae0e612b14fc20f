//! [`WebHost`]: a small web host on this machine, that serves what it is told, as it is told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::{DateTime, Utc};

/// A file, and what the host says of it.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// All of it.
    pub bytes: Vec<u8>,
    /// As the header has it, with its quotes.
    pub etag: Option<String>,
    /// Told in whole seconds.
    pub modified: Option<DateTime<Utc>>,
}

/// A host that runs as long as this lives.
pub struct WebHost {
    address: SocketAddr,
    site: Arc<Site>,
    serving: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Site {
    pages: Mutex<BTreeMap<String, Page>>,
    /// Whether it knows ranges, as most do; `python -m http.server` does not.
    ranges: bool,
    /// Method and path of each request, and the range that it was for.
    asked: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl WebHost {
    /// One that knows ranges, or not.
    pub fn start(ranges: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let site = Site { pages: Mutex::default(), ranges, asked: Mutex::default(), is_over: AtomicBool::new(false) };
        let site = Arc::new(site);
        let served = Arc::clone(&site);
        let serving = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if served.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let site = Arc::clone(&served);
                // Whoever asks may hang up at any time.
                std::thread::spawn(move || drop(site.answer(stream)));
            }
        });
        Self { address, site, serving: Some(serving) }
    }

    /// The URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves a page from now on.
    pub fn put(&self, path: &str, page: Page) {
        locked(&self.site.pages).insert(path.to_owned(), page);
    }

    /// Serves it no more.
    pub fn remove(&self, path: &str) {
        locked(&self.site.pages).remove(path);
    }

    /// Requests so far that begin with these words: `GET /x.csv whole`, `HEAD /x.csv`, `GET /x.csv bytes=0-7`.
    pub fn n_asked(&self, words: &str) -> usize {
        locked(&self.site.asked).iter().filter(|asked| asked.starts_with(words)).count()
    }
}

impl Drop for WebHost {
    fn drop(&mut self) {
        self.site.is_over.store(true, Ordering::SeqCst);
        // It waits for somebody to come.
        let _ = TcpStream::connect(self.address);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}

impl Site {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = BTreeMap::new();
        while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
            if let Some((name, value)) = line.split_once(':') {
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        let range = headers.get("range").map(String::as_str);
        locked(&self.asked).push(format!("{method} {path} {}", range.unwrap_or("whole")));
        let page = locked(&self.pages).get(path).cloned();
        let Some(Page { bytes, etag, modified }) = page else {
            return respond(&mut stream, method, "404 Not Found", "", b"there is no such page");
        };
        // A weak etag matches none.
        let is_other = |wanted: &String| wanted.starts_with("W/") || Some(wanted) != etag.as_ref();
        if headers.get("if-match").is_some_and(is_other) {
            return respond(&mut stream, method, "412 Precondition Failed", "", b"it is another one");
        }
        let mut told = String::new();
        if let Some(etag) = &etag {
            told.push_str(&format!("ETag: {etag}\r\n"));
        }
        if let Some(modified) = modified {
            told.push_str(&format!("Last-Modified: {}\r\n", modified.format("%a, %d %b %Y %H:%M:%S GMT")));
        }
        match range.filter(|_| self.ranges).and_then(|range| part(range, bytes.len())) {
            Some(part) => {
                told.push_str(&format!("Content-Range: bytes {}-{}/{}\r\n", part.start, part.end - 1, bytes.len()));
                respond(&mut stream, method, "206 Partial Content", &told, &bytes[part])
            }
            None => respond(&mut stream, method, "200 OK", &told, &bytes),
        }
    }
}

fn respond(stream: &mut TcpStream, method: &str, status: &str, told: &str, body: &[u8]) -> std::io::Result<()> {
    let n_bytes = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {n_bytes}\r\nConnection: close\r\n{told}\r\n")?;
    if method != "HEAD" {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// `bytes=0-7`, `bytes=8-`, `bytes=-8`.
fn part(range: &str, n_bytes: usize) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let part = match (first.parse::<usize>().ok(), last.parse::<usize>().ok()) {
        (Some(first), Some(last)) => first..(last + 1).min(n_bytes),
        (Some(first), None) => first..n_bytes,
        (None, Some(last)) => n_bytes.saturating_sub(last)..n_bytes,
        (None, None) => return None,
    };
    (part.start < part.end).then_some(part)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
