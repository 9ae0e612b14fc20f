//! [`Server`]: a real S3 server, moto's, which `NECTARINE_TEST_MOTO` names. Without it tests are left out and say so;
//! `tests/run` installs it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use object_store::ObjectStoreExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as ObjectPath;

use crate::program::{Program, Ran, finish};

/// A server that runs as long as this lives.
pub struct Server {
    child: Child,
    endpoint: String,
}

impl Server {
    /// `None` if there is no moto here.
    pub fn start(environment: &[(&str, &str)]) -> Option<Self> {
        let Some(program) = std::env::var_os("NECTARINE_TEST_MOTO").map(PathBuf::from) else {
            left_out();
            return None;
        };
        // Free a moment ago; whoever takes it in between makes the server fail, and the next port is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")
                .and_then(|listener| listener.local_addr())
                .expect("a free port")
                .port();
            let mut command = Command::new(&program);
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).envs(environment.iter().copied());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("moto_server starts");
            let deadline = Instant::now() + Duration::from_secs(60);
            while child.try_wait().expect("a child can be asked").is_none() && Instant::now() < deadline {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Some(Self { child, endpoint: format!("http://127.0.0.1:{port}") });
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("moto_server does not come up");
    }

    /// Makes a bucket with one plain request: the library only knows objects.
    pub fn bucket(&self, name: &str) -> AmazonS3 {
        let address = self.endpoint.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("the server answers");
        write!(stream, "PUT /{name} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(" 200 "), "{answer}");
        AmazonS3Builder::new()
            .with_bucket_name(name)
            .with_endpoint(&self.endpoint)
            .with_region("us-east-1")
            .with_access_key_id("test")
            .with_secret_access_key("test")
            .with_allow_http(true)
            .build()
            .expect("a bucket")
    }

    /// Where it is.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What a table says to find this server.
    pub fn options(&self) -> String {
        format!(
            "'aws.endpoint' '{}', 'aws.region' 'us-east-1', 'aws.access_key_id' 'test', 'aws.secret_access_key' 'test'",
            self.endpoint
        )
    }

    /// The program on a home with settings and arguments, and this server in its environment.
    pub fn run(&self, home: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Ran {
        run_at(&self.endpoint, home, settings, arguments)
    }
}

/// The same with another server, or what stands in for one.
pub fn run_at(endpoint: &str, home: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let program = settings.iter().fold(Program::on(home), |program, (name, value)| program.set(name, value));
    let mut command = program.command();
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .args(arguments);
    finish(command, b"")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
fn left_out() {
    eprintln!("left out: NECTARINE_TEST_MOTO does not name a moto_server; tests/run installs one");
}

/// Puts an object.
pub async fn put(bucket: &AmazonS3, key: &str, bytes: impl Into<Vec<u8>>) {
    bucket.put(&ObjectPath::parse(key).expect("a key"), bytes.into().into()).await.expect("an object can be put");
}
