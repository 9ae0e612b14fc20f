//! Where new results go: what `nectarine.cache.location` means.
//!
//! ```text
//!   derived                 the home's own folder
//!   /mnt/results            another folder; one that does not begin at the root begins at the home
//!   s3://bucket/results     an object store, with the same environment variables as tables in it
//! ```
//!
//! Elsewhere each home has a folder of its own, so that two homes with one setting never take each other's results for
//! garbage.

use std::path::Path;

use url::Url;

use crate::home::Home;
use crate::{EngineError, ErrorKind, Result};

/// Schemes of stores that can be written, and whose content outlives the process.
const SCHEMES: [&str; 10] = ["file", "s3", "s3a", "gs", "gcs", "az", "adl", "azure", "abfs", "abfss"];

/// The URL that new results go to; `None` for the home's own folder.
pub(super) fn place(home: &Home, location: &str) -> Result<Option<Url>> {
    let location = location.trim();
    let invalid = |detail: &str| {
        EngineError::new(ErrorKind::Configuration, format!("cannot keep results at \"{}\"", without_secrets(location)))
            .with_detail(detail.to_string())
            .with_hint("nectarine.cache.location is a folder, or a URL such as s3://bucket/results")
    };
    if location.is_empty() {
        return Err(invalid("it is empty"));
    }
    let mut url = match location.contains("://") {
        true => Url::parse(location).map_err(|error| invalid(&error.to_string()))?,
        false => {
            let folder = home.root().join(Path::new(location));
            if folder == home.derived() {
                return Ok(None);
            }
            Url::from_directory_path(&folder).map_err(|()| invalid("it is no folder"))?
        }
    };
    if !SCHEMES.contains(&url.scheme()) {
        return Err(invalid(&format!("scheme \"{}\" is not one of {}", url.scheme(), SCHEMES.join(", "))));
    }
    if url.password().is_some() {
        return Err(invalid("it has a password, which everybody who may see settings would see"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("it has more than a path"));
    }
    url.path_segments_mut().map_err(|()| invalid("it has no path"))?.pop_if_empty().push(&home.id()?);
    Ok(Some(url))
}

fn without_secrets(location: &str) -> String {
    match Url::parse(location) {
        Ok(mut url) if url.password().is_some() => {
            let _ = url.set_password(Some("..."));
            url.to_string()
        }
        _ => location.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_urls() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = Home::open(&folder.path().join("home")).expect("it opens");
        let id = home.id().expect("it has one");
        assert_eq!(home.id().expect("it has one"), id, "it stays");
        let at = |location: &str| place(&home, location).map(|url| url.map(|url| url.to_string()));
        assert_eq!(at("derived").expect("valid"), None);
        assert_eq!(at(&home.derived().display().to_string()).expect("valid"), None);
        assert_eq!(at("s3://b/r").expect("valid"), Some(format!("s3://b/r/{id}")));
        assert_eq!(at("s3://b/r/").expect("valid"), Some(format!("s3://b/r/{id}")));
        assert_eq!(at("s3://b").expect("valid"), Some(format!("s3://b/{id}")));
        assert_eq!(at("/mnt/x").expect("valid"), Some(format!("file:///mnt/x/{id}")));
        let other = at("other").expect("valid").expect("elsewhere");
        assert!(other.starts_with("file:///") && other.ends_with(&format!("/home/other/{id}")), "{other}");
        for bad in ["", "http://host/x", "memory:///x", "ftp://x", "s3://u:secret@b/x", "s3://b/x?y"] {
            let error = at(bad).expect_err(bad);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
