//! [`Location`]: what people write to name files, made absolute.
//!
//! ```text
//!   data/x.parquet   /logs/   ~/in/*.csv.gz   d/**/x.{csv,tsv}   file:///a%20b   s3://bucket/year=*/   https://host/x.csv
//! ```
//!
//! Guarantees   parsing what [`Location::as_str`] returns gives the same location again, whatever the working folder.
//!              A path is taken as it stands (`#`, `%`, spaces and all); in a URL `%XX` is decoded, and `#` has no
//!              meaning, because keys of object stores may hold one.
//! Caveats      a local path that exists as written is never a glob, so `x[1].csv` can be read by its name.

mod encoding;
mod file_name;
mod glob;

use std::fmt;
use std::path::{Component, Path, PathBuf};

use object_store::path::Path as ObjectPath;
use url::Url;

pub use self::encoding::object_path;
pub(crate) use self::encoding::{decode_percent, encode_segment, local_path, push_encoded};
pub(crate) use self::file_name::endings;
pub use self::file_name::{Compression, FileKind};
pub(crate) use self::glob::{Glob, Matched, Part, is_hidden};
use crate::object_stores::KNOWN_SCHEMES;
use crate::{CatalogError, Result};

/// A file, a folder or a glob, local or remote.
#[derive(Clone, Debug)]
pub struct Location {
    text: String,
    store: Url,
    place: Place,
    glob: Option<Glob>,
    folder: bool,
}

/// Where the fixed part of a location is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// An absolute path, without the parts that hold wildcards.
    Local(PathBuf),
    /// The fixed part of the keys in the store.
    Remote(ObjectPath),
}

impl Location {
    /// Understands what a user wrote; relative paths start at `base_dir`.
    pub fn parse(text: &str, base_dir: &Path) -> Result<Self> {
        Self::understand(text, base_dir, true)
    }

    /// The same for a place that is about to be written: `*` is a letter like any other.
    pub fn parse_name(text: &str, base_dir: &Path) -> Result<Self> {
        Self::understand(text, base_dir, false)
    }

    fn understand(text: &str, base_dir: &Path, wild: bool) -> Result<Self> {
        let invalid =
            |detail: &str| CatalogError::InvalidLocation { location: text.to_owned(), detail: detail.to_owned() };
        if text.trim().is_empty() {
            return Err(invalid("it is empty"));
        }
        if text.contains('\0') {
            return Err(invalid("it holds a zero byte"));
        }
        match split_scheme(text) {
            None => Self::parse_path(text, base_dir, wild),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file") => {
                let path = rest.strip_prefix("localhost").unwrap_or(rest);
                if !path.starts_with('/') {
                    return Err(invalid("a file URL has three slashes and an absolute path: file:///path"));
                }
                Self::parse_path(
                    &decode_percent(path).ok_or_else(|| invalid("%XX does not decode to UTF-8"))?,
                    base_dir,
                    wild,
                )
            }
            Some((scheme, rest)) => Self::parse_url(text, scheme, rest, wild),
        }
    }

    fn parse_path(text: &str, base_dir: &Path, wild: bool) -> Result<Self> {
        let expanded = expand_home(text);
        let absolute = normalize(&base_dir.join(&expanded));
        let Some(absolute_text) = absolute.to_str() else {
            return Err(CatalogError::InvalidLocation {
                location: text.to_owned(),
                detail: "it is not UTF-8".to_owned(),
            });
        };
        let folder =
            text.ends_with('/') || text == "." || text == ".." || text.ends_with("/.") || text.ends_with("/..");
        let mut canonical = absolute_text.to_owned();
        if folder && !canonical.ends_with('/') {
            canonical.push('/');
        }
        let store = Url::parse("file:///")
            .map_err(|error| CatalogError::InvalidLocation { location: text.to_owned(), detail: error.to_string() })?;
        let glob = match wild && absolute.symlink_metadata().is_err() {
            true => Glob::parse(&absolute_text[1..], text)?,
            false => None,
        };
        let place = match &glob {
            None => absolute,
            Some(glob) => Path::new("/").join(glob.fixed_prefix().join("/")),
        };
        Ok(Self { text: canonical, store, place: Place::Local(place), glob, folder })
    }

    fn parse_url(text: &str, scheme: &str, rest: &str, wild: bool) -> Result<Self> {
        let invalid = |detail: String| CatalogError::InvalidLocation { location: text.to_owned(), detail };
        let scheme = scheme.to_ascii_lowercase();
        if !KNOWN_SCHEMES.split(", ").any(|known| known == scheme) {
            return Err(invalid(format!("unknown scheme \"{scheme}\", the known ones are {KNOWN_SCHEMES}")));
        }
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() && scheme != "memory" {
            return Err(invalid("the bucket or host is missing".to_owned()));
        }
        let root = Url::parse(&format!("{scheme}://{authority}/")).map_err(|error| invalid(error.to_string()))?;
        let http = scheme.starts_with("http");
        if http && let Some((name, _)) = text.split_once('?') {
            return Err(CatalogError::QueryString { location: format!("{name}?..") });
        }
        let folder = key.is_empty() || key.ends_with('/');
        // No host lists what it has over plain HTTP, so there `*` is a letter like any other.
        let glob = if http || !wild { None } else { Glob::parse_encoded(key, text)? };
        let key = match &glob {
            Some(glob) => glob.fixed_prefix().join("/"),
            None => decode_percent(key).ok_or_else(|| invalid("%XX does not decode to UTF-8".to_owned()))?,
        };
        let key: Vec<&str> = key.split('/').filter(|part| !part.is_empty()).collect();
        let path = ObjectPath::parse(key.join("/")).map_err(|error| invalid(error.to_string()))?;
        let mut canonical = root.to_string();
        match &glob {
            Some(glob) => canonical.push_str(glob.text()),
            None => {
                let parts: Vec<String> = path.parts().map(|part| encode_segment(part.as_ref())).collect();
                canonical.push_str(&parts.join("/"));
            }
        }
        if folder && !canonical.ends_with('/') {
            canonical.push('/');
        }
        Ok(Self { text: canonical, store: root, place: Place::Remote(path), glob, folder })
    }

    /// Absolute path or URL, to be stored and parsed again.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it names files of this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.place, Place::Local(_))
    }

    /// Whether it holds wildcards.
    pub fn is_glob(&self) -> bool {
        self.glob.is_some()
    }

    /// Whether it was written as a folder, with a slash at its end. One without may still turn out to be a folder.
    pub fn names_folder(&self) -> bool {
        self.folder
    }

    /// The part before the first component with a wildcard; everything for a location without.
    pub fn fixed_prefix(&self) -> String {
        match &self.place {
            Place::Local(path) => path.display().to_string(),
            Place::Remote(path) => format!("{}{path}", self.store),
        }
    }

    /// Names the object store: `file:///`, `s3://bucket/`.
    pub fn store_url(&self) -> &Url {
        &self.store
    }

    /// Format and compression that the name's ending tells, if it does.
    pub fn file_kind(&self) -> Option<FileKind> {
        FileKind::of(self.text.rsplit('/').next().unwrap_or(&self.text))
    }

    /// Whether it names this file, given by its full URL: the file itself, or one below the folder, or one that the glob
    /// names. Asks nobody: the file need not be there any more.
    pub fn names_file(&self, url: &str) -> bool {
        let Some(rest) = url.strip_prefix(self.store.as_str()) else { return false };
        let Some(path) = decode_percent(rest) else { return false };
        let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
        if let Some(glob) = &self.glob {
            return glob.matches(&components) != Matched::No;
        }
        let fixed = match &self.place {
            Place::Local(path) => path.display().to_string(),
            Place::Remote(path) => path.to_string(),
        };
        let mut fixed = fixed.split('/').filter(|component| !component.is_empty());
        let mut components = components.into_iter();
        fixed.all(|component| components.next() == Some(component))
    }

    /// What the full URLs of all files begin with that it names.
    pub fn url_beginning(&self) -> String {
        let fixed = match &self.place {
            Place::Local(path) => path.display().to_string(),
            Place::Remote(path) => path.to_string(),
        };
        url_of(self.store.as_str(), &fixed)
    }

    /// The same place by a path without links, if this one has some. Asks the file system; of what is not there, what is above
    /// it counts.
    pub fn without_links(&self) -> Option<Self> {
        let Place::Local(path) = &self.place else { return None };
        let real = real_path(path);
        if real == *path {
            return None;
        }
        let root = Path::new("/");
        if self.glob.is_none() {
            let folder = if self.folder { "/" } else { "" };
            return Self::parse_name(&format!("{}{folder}", real.to_str()?), root).ok();
        }
        let pattern = self.text.strip_prefix(path.to_str()?)?;
        Self::parse(&format!("{}{pattern}", real.to_str()?), root).ok()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn glob(&self) -> Option<&Glob> {
        self.glob.as_ref()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a quoted name in FROM means files rather than a table: `'data/x'`, `'x.csv.gz'`, `'s3://..'`, `'*.parquet'`.
pub fn looks_like_location(name: &str) -> bool {
    split_scheme(name).is_some()
        || name.contains('/')
        || name.starts_with('~')
        || name.contains('*')
        || FileKind::of(name).is_some()
}

/// Where a folder is that is reached through links: full URLs that end in a slash. `None` if there are none in its way. Asks the
/// file system; of what is not there, what is above it counts.
pub fn folder_without_links(url: &str) -> Option<String> {
    let path = local_path(url)?;
    let real = real_path(&path);
    if real == path {
        return None;
    }
    Some(format!("{}/", url_of("file:///", real.to_str()?).trim_end_matches('/')))
}

/// The path that links lead to, as far as it is there.
fn real_path(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            // Not joined if there is nothing: that would put a slash at its end.
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_path_buf()
}

fn url_of(store: &str, path: &str) -> String {
    let mut url = store.to_string();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        if !url.ends_with('/') {
            url.push('/');
        }
        push_encoded(&mut url, component);
    }
    url
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let mut letters = scheme.chars();
    let first_is_letter = letters.next().is_some_and(|first| first.is_ascii_alphabetic());
    (first_is_letter && letters.all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))).then_some((scheme, rest))
}

fn expand_home(text: &str) -> PathBuf {
    let rest = match text.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return PathBuf::from(text),
    };
    std::env::home_dir().map_or_else(|| PathBuf::from(text), |home| home.join(rest))
}

/// Removes `.` and `..`. What `..` means behind a symbolic link only the file system knows, so it is asked where it can
/// answer; a glob or a missing folder is shortened by its letters.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal = normal.canonicalize().unwrap_or(normal);
                normal.pop();
            }
            Component::Normal(name) => normal.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Location {
        Location::parse(text, Path::new("/base")).unwrap()
    }

    #[test]
    fn becomes_absolute_and_stays_the_same() {
        let home = std::env::home_dir().unwrap().join("x.csv").display().to_string();
        let cases = [
            ("x.csv", "/base/x.csv"),
            ("./a//b/../x.csv", "/base/a/x.csv"),
            ("/a/b/", "/a/b/"),
            (".", "/base/"),
            ("~/x.csv", home.as_str()),
            ("~user/x", "/base/~user/x"),
            ("a b#c%20d\u{e9}.csv", "/base/a b#c%20d\u{e9}.csv"),
            ("file:///a%20b%23c.csv", "/a b#c.csv"),
            ("FILE:///a/*.csv", "/a/*.csv"),
            ("s3://bucket", "s3://bucket/"),
            ("S3://bucket/a b/\u{e9}#1.parquet", "s3://bucket/a%20b/%C3%A9%231.parquet"),
            ("s3://bucket/a%20b/", "s3://bucket/a%20b/"),
            ("s3://bucket/100%/x", "s3://bucket/100%25/x"),
            ("s3://bucket/y=*/x?.parquet", "s3://bucket/y=*/x?.parquet"),
            ("s3://bucket/%2A.parquet", "s3://bucket/%2A.parquet"),
            ("https://host:8080/a/x*.csv", "https://host:8080/a/x%2A.csv"),
            ("abfss://fs@acc.dfs.core.windows.net/a", "abfss://fs@acc.dfs.core.windows.net/a"),
        ];
        for (text, expected) in cases {
            let location = parse(text);
            assert_eq!(location.as_str(), expected, "{text}");
            let again = Location::parse(location.as_str(), Path::new("/elsewhere")).unwrap();
            assert_eq!(again.as_str(), expected, "{text} parsed again");
            assert_eq!(again.is_glob(), location.is_glob(), "{text}");
        }
    }

    #[test]
    fn a_glob_has_a_fixed_prefix() {
        let cases = [
            ("data/*.parquet", "/base/data"),
            ("/d/**/x.csv", "/d"),
            ("/d/{a,b}/x.csv", "/d"),
            ("/d/{a/x,a/y}.csv", "/d/a"),
            ("/d/[0-9].csv", "/d"),
            ("s3://bucket/a%20b/c*/d.parquet", "s3://bucket/a b"),
            ("*.csv", "/base"),
        ];
        for (text, expected) in cases {
            let location = parse(text);
            assert!(location.is_glob(), "{text}");
            assert_eq!(location.fixed_prefix(), expected, "{text}");
        }
        for text in ["x.csv", "/d/{a}.csv", "s3://bucket/%2A"] {
            assert!(!parse(text).is_glob(), "{text}");
        }
    }

    #[test]
    fn files_are_named_by_letters_alone() {
        for (text, named, others) in [
            (
                "/d/a b.csv",
                vec!["file:///d/a%20b.csv"],
                vec!["file:///d/a", "file:///d/a%20b.csv2", "s3://d/a%20b.csv"],
            ),
            ("/d/", vec!["file:///d/x", "file:///d/e/y"], vec!["file:///da/x", "file:///"]),
            ("/d/*.csv", vec!["file:///d/x.csv"], vec!["file:///d/x.json", "file:///e/x.csv"]),
            ("s3://b/p/**/x.csv", vec!["s3://b/p/x.csv", "s3://b/p/q/x.csv"], vec!["s3://c/p/x.csv", "s3://b/x.csv"]),
            ("s3://b", vec!["s3://b/x"], vec!["s3://bb/x"]),
        ] {
            let location = parse(text);
            for url in named {
                assert!(location.names_file(url), "{text} {url}");
                assert!(url.starts_with(&location.url_beginning()), "{text} {url} {}", location.url_beginning());
            }
            for url in others {
                assert!(!location.names_file(url), "{text} {url}");
            }
        }
    }

    #[test]
    fn a_path_that_exists_is_never_a_glob() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x[1].csv"), "").unwrap();
        assert!(!Location::parse("x[1].csv", folder.path()).unwrap().is_glob());
        assert!(Location::parse("x[2].csv", folder.path()).unwrap().is_glob());
    }

    #[test]
    fn a_name_is_never_a_glob() {
        for (text, expected) in
            [("a[1]/*.csv", "/base/a[1]/*.csv"), ("s3://bucket/{a,b}?.csv", "s3://bucket/{a,b}?.csv")]
        {
            let location = Location::parse_name(text, Path::new("/base")).unwrap();
            assert!(!location.is_glob(), "{text}");
            assert_eq!(location.fixed_prefix(), expected);
        }
    }

    #[test]
    fn dots_behind_a_link_follow_it() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("a/b")).unwrap();
        std::os::unix::fs::symlink(real.join("a/b"), real.join("link")).unwrap();
        let location = Location::parse("link/../x.csv", &real).unwrap();
        assert_eq!(location.as_str(), real.join("a/x.csv").display().to_string());
    }

    #[test]
    fn what_links_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("a b")).unwrap();
        std::fs::write(real.join("a b/x.csv"), "").unwrap();
        std::os::unix::fs::symlink(real.join("a b"), real.join("link")).unwrap();
        let text = |path: &str| format!("{}/{path}", real.display());
        for (through, without) in [
            ("link", "a b"),
            ("link/", "a b/"),
            ("link/x.csv", "a b/x.csv"),
            ("link/gone/y.csv", "a b/gone/y.csv"),
            ("link/*.csv", "a b/*.csv"),
            ("link/**/{x,y}.csv", "a b/**/{x,y}.csv"),
        ] {
            let location = parse(&text(through));
            let found = location.without_links().unwrap();
            assert_eq!(found.as_str(), text(without), "{through}");
            assert_eq!(found.is_glob(), location.is_glob(), "{through}");
            assert_eq!(found.names_folder(), location.names_folder(), "{through}");
            assert!(found.without_links().is_none(), "{through}");
        }
        assert!(parse("s3://bucket/link").without_links().is_none());
        let url = |name: &str| format!("{}/", parse(&text(name)).url_beginning());
        assert_eq!(folder_without_links(&url("link")), Some(url("a b")));
        assert_eq!(folder_without_links(&url("a b")), None);
        assert_eq!(folder_without_links("s3://bucket/link/"), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, word) in [
            ("", "empty"),
            ("ftp://host/x", "abfss"),
            ("s3:///key", "bucket"),
            ("file://host/x", "three slashes"),
            ("http://host/x.csv?token=1", "query"),
            ("a/[.csv", "wildcard"),
            ("a\0b", "zero byte"),
        ] {
            let error = Location::parse(text, Path::new("/base")).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let signed = "https://bucket.s3.amazonaws.com/x.csv?X-Amz-Signature=5ec7e7&X-Amz-Expires=60";
        let error = Location::parse(signed, Path::new("/base")).unwrap_err().to_string();
        assert!(error.contains("/x.csv?..\"") && !error.contains("5ec7e7"), "{error}");
        let letter = parse("https://host/what%3F.csv");
        assert_eq!(letter.as_str(), "https://host/what%3F.csv");
    }

    #[test]
    fn names_of_tables_and_of_files() {
        for name in ["data/x", "x.parquet", "x.csv.gz", "s3://b/x", "*.csv", "~/x", "/x", "X.NDJSON.ZST", "t.tsv"] {
            assert!(looks_like_location(name), "{name}");
        }
        for name in ["t", "public.t", "a b", "csv", ".csv", "x.gz", "a?"] {
            assert!(!looks_like_location(name), "{name}");
        }
    }
}
