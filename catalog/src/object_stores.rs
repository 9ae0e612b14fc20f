//! [`ObjectStores`]: one object store per scheme and authority, built when first asked for.
//!
//! Guarantees   the same URL gives the same store for as long as the process lives; building one opens no connection.
//!              Settings come from the usual environment variables (`AWS_*`, `GOOGLE_*`, `AZURE_*`), options of a table
//!              win over them, and two tables with different options never share a store: the second has a URL of its
//!              own, which only differs in its password (`s3://:1f0c..@bucket/`), because DataFusion finds stores by URL.
//! Caveats      the environment is read when a store is built, not later.

mod steady;
mod web;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use parking_lot::RwLock;
use url::{Position, Url};

pub use self::steady::SteadyStore;
use self::web::WebStore;
use crate::{CatalogError, FingerprintBuilder, Result};

/// What people may write before `://`, for error messages.
pub(crate) const KNOWN_SCHEMES: &str = "file, s3, s3a, gs, gcs, az, adl, azure, abfs, abfss, http, https, memory";

/// An option of ours: how often a request is tried again.
const MAX_RETRIES: &str = "max_retries";

/// Object stores by scheme and authority; clones share what was built.
#[derive(Clone, Default)]
pub struct ObjectStores {
    built: Arc<RwLock<BTreeMap<String, Arc<dyn ObjectStore>>>>,
}

impl ObjectStores {
    /// None built yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The store that holds what `url` names; its path is ignored.
    pub fn get(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.get_or_build(url, &[])
    }

    /// The store for a table with options (`aws.region`, `gcp.service_account_key`, `azure.account_name`, ..; others
    /// are ignored), and the URL under which [`get`](Self::get) finds it again.
    pub fn with_options(&self, url: &Url, options: &BTreeMap<String, String>) -> Result<(Url, Arc<dyn ObjectStore>)> {
        let kind = Kind::of(url)?;
        let options: Vec<(&str, &str)> = options
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(kind.option_prefix()?)?, value.as_str())))
            .collect();
        let root = store_url(url)?;
        if options.is_empty() {
            let store = self.get(&root)?;
            return Ok((root, store));
        }
        let name = options
            .iter()
            .fold(FingerprintBuilder::new("store options"), |name, (key, value)| name.field(key, value.as_bytes()))
            .finish()
            .to_string();
        let mut own = root;
        own.set_password(Some(&name[..16])).map_err(|()| invalid(url, "it has no authority".to_owned()))?;
        let store = self.get_or_build(&own, &options)?;
        Ok((own, store))
    }

    /// Takes a store that was made elsewhere; it replaces the one of that scheme and authority.
    pub fn insert(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.built.write().insert(key(url).to_owned(), store)
    }

    /// Forgets the store of that scheme and authority; the next use builds it anew.
    pub fn remove(&self, url: &Url) -> Option<Arc<dyn ObjectStore>> {
        self.built.write().remove(key(url))
    }

    fn get_or_build(&self, url: &Url, options: &[(&str, &str)]) -> Result<Arc<dyn ObjectStore>> {
        if let Some(store) = self.built.read().get(key(url)) {
            return Ok(Arc::clone(store));
        }
        // Building twice at once is harmless; the first to arrive stays, so that all share one connection pool.
        if options.is_empty() && own_name(url).is_some() {
            return Err(invalid(url, "the options of its table are not known in this process".to_owned()));
        }
        let store = build(url, options)?;
        Ok(Arc::clone(self.built.write().entry(key(url).to_owned()).or_insert(store)))
    }
}

impl fmt::Debug for ObjectStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.built.read().keys()).finish()
    }
}

/// Scheme and authority of a URL with an empty path: what names a store.
pub fn store_url(url: &Url) -> Result<Url> {
    Url::parse(key(url))
        .map(|mut root| {
            root.set_path("/");
            root
        })
        .map_err(|error| invalid(url, error.to_string()))
}

/// Whether an option is meant for an object store (`aws.region`, ..) rather than for who reads or writes files.
pub fn is_store_option(key: &str) -> bool {
    let kinds = [Kind::Amazon, Kind::Google, Kind::Azure];
    kinds.iter().filter_map(|kind| kind.option_prefix()).any(|prefix| key.starts_with(prefix))
}

/// A location without the name that [`ObjectStores::with_options`] gave to a table's own store: what the file is,
/// whatever it was read with.
pub fn plain_location(location: &str) -> Cow<'_, str> {
    let own = location.split_once("://").and_then(|(scheme, rest)| {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = authority.rsplit_once('@')?;
        let (user, _) = user.rsplit_once(':').filter(|_| !scheme.starts_with("http"))?;
        let at = if user.is_empty() { "" } else { "@" };
        Some(format!("{scheme}://{user}{at}{host}/{path}"))
    });
    own.map_or(Cow::Borrowed(location), Cow::Owned)
}

/// The name of a table's own store, if the URL has one. Web hosts have real passwords instead.
fn own_name(url: &Url) -> Option<&str> {
    url.password().filter(|_| !url.scheme().starts_with("http"))
}

fn key(url: &Url) -> &str {
    &url[..Position::BeforePath]
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Local,
    Memory,
    Amazon,
    Google,
    Azure,
    Http,
}

impl Kind {
    fn of(url: &Url) -> Result<Self> {
        Ok(match url.scheme() {
            "file" => Self::Local,
            "memory" => Self::Memory,
            "s3" | "s3a" => Self::Amazon,
            "gs" | "gcs" => Self::Google,
            "az" | "adl" | "azure" | "abfs" | "abfss" => Self::Azure,
            "http" | "https" => Self::Http,
            other => {
                return Err(invalid(url, format!("unknown scheme \"{other}\", the known ones are {KNOWN_SCHEMES}")));
            }
        })
    }

    fn option_prefix(self) -> Option<&'static str> {
        match self {
            Self::Amazon => Some("aws."),
            Self::Google => Some("gcp."),
            Self::Azure => Some("azure."),
            Self::Local | Self::Memory | Self::Http => None,
        }
    }
}

fn build(url: &Url, options: &[(&str, &str)]) -> Result<Arc<dyn ObjectStore>> {
    let kind = Kind::of(url)?;
    if kind == Kind::Local && url.host_str().is_some_and(|host| !host.is_empty() && host != "localhost") {
        return Err(invalid(url, "files of another host cannot be read; write file:///path".to_owned()));
    }
    if matches!(kind, Kind::Amazon | Kind::Google | Kind::Azure) && url.host_str().is_none_or(str::is_empty) {
        return Err(invalid(url, "the bucket is missing".to_owned()));
    }
    // The builders read the bucket from the URL, but know nothing of our password.
    let mut plain = url.clone();
    let _no_authority = plain.set_password(None);
    let built: Result<Arc<dyn ObjectStore>, object_store::Error> = match kind {
        Kind::Local => Ok(Arc::new(SteadyStore::new(Arc::new(LocalFileSystem::new())))),
        Kind::Memory => Ok(Arc::new(InMemory::new())),
        Kind::Amazon => amazon(&plain, options)?.build().map(|store| Arc::new(store) as _),
        Kind::Google => google(&plain, options)?.build().map(|store| Arc::new(store) as _),
        Kind::Azure => azure(&plain, options)?.build().map(|store| Arc::new(store) as _),
        Kind::Http => HttpBuilder::new()
            .with_url(key(url))
            .with_client_options(
                ClientOptions::new().with_allow_http(url.scheme() == "http").with_timeout(web::ANSWER_MAX),
            )
            .with_retry(retry(url, options)?)
            .build()
            .map(|store| Arc::new(WebStore::new(Arc::new(store))) as _),
    };
    built.map_err(|error| CatalogError::Location {
        attempted: "open the object store of",
        location: key(&plain).to_owned(),
        source: Arc::new(error),
    })
}

/// People wait for the first answer: the library's own three minutes of retries look like a hang.
fn retry(url: &Url, options: &[(&str, &str)]) -> Result<RetryConfig> {
    let mut retry = RetryConfig { max_retries: 6, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() };
    if let Some((_, value)) = options.iter().find(|(name, _)| *name == MAX_RETRIES) {
        let detail = || format!("option \"{MAX_RETRIES}\" is a number, not \"{value}\"");
        retry.max_retries = value.parse().map_err(|_| invalid(url, detail()))?;
    }
    Ok(retry)
}

fn amazon(url: &Url, options: &[(&str, &str)]) -> Result<AmazonS3Builder> {
    let mut builder = AmazonS3Builder::from_env().with_retry(retry(url, options)?);
    for (name, value) in options.iter().filter(|(name, _)| *name != MAX_RETRIES) {
        builder = builder.with_config(option_key::<AmazonS3ConfigKey>(url, "aws", name)?, *value);
    }
    let endpoints = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let allow_http = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
    // An endpoint that says http:// means it, unless `allow_http` was set to something explicitly.
    let explicit =
        std::env::var_os("AWS_ALLOW_HTTP").is_some() || options.iter().any(|(name, _)| *name == "allow_http");
    let endpoint = endpoints.iter().find_map(|key| builder.get_config_value(key));
    if !explicit && endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_config(allow_http, "true");
    }
    Ok(builder.with_url(url.as_str()))
}

fn google(url: &Url, options: &[(&str, &str)]) -> Result<GoogleCloudStorageBuilder> {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_retry(retry(url, options)?);
    for (name, value) in options.iter().filter(|(name, _)| *name != MAX_RETRIES) {
        let name = if *name == "application_credentials_path" { "application_credentials" } else { name };
        builder = builder.with_config(option_key::<GoogleConfigKey>(url, "google", name)?, *value);
    }
    // The builder knows only `gs`.
    Ok(builder.with_url(format!("gs://{}/", url.host_str().unwrap_or_default())))
}

fn azure(url: &Url, options: &[(&str, &str)]) -> Result<MicrosoftAzureBuilder> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_retry(retry(url, options)?);
    for (name, value) in options.iter().filter(|(name, _)| *name != MAX_RETRIES) {
        builder = builder.with_config(option_key::<AzureConfigKey>(url, "azure", name)?, *value);
    }
    Ok(builder.with_url(url.as_str()))
}

/// The library's names come bare, or with the vendor in front.
fn option_key<K: FromStr>(url: &Url, vendor: &str, name: &str) -> Result<K> {
    let name = name.replace('.', "_");
    name.parse()
        .or_else(|_| format!("{vendor}_{name}").parse())
        .or_else(|_| format!("{vendor}_storage_{name}").parse())
        .map_err(|_| invalid(url, format!("unknown option \"{vendor}.{name}\"")))
}

fn invalid(url: &Url, detail: String) -> CatalogError {
    CatalogError::InvalidLocation { location: url.to_string(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_known_scheme_builds_and_is_shared() {
        let stores = ObjectStores::new();
        let account = options(&[("azure.account_name", "acc"), ("azure.access_key", "a2V5")]);
        for text in ["file:///a", "memory:///a", "s3://bucket/a", "s3a://bucket/a", "http://host:1/a", "https://host/a"]
        {
            let one = stores.get(&url(text)).unwrap();
            let two = stores.clone().get(&url(text)).unwrap();
            assert!(Arc::ptr_eq(&one, &two), "{text}");
        }
        let key = (
            "gcp.service_account_key",
            r#"{"private_key":"x","private_key_id":"x","client_email":"x","disable_oauth":true}"#,
        );
        for scheme in ["gs", "gcs"] {
            stores.with_options(&url(&format!("{scheme}://bucket/a")), &options(&[key])).unwrap();
        }
        for text in
            ["az://container/a", "azure://container/a", "abfs://container/a", "abfss://fs@acc.dfs.core.windows.net/a"]
        {
            stores.with_options(&url(text), &account).unwrap();
        }
    }

    #[test]
    fn an_unknown_scheme_lists_the_known_ones() {
        let error = ObjectStores::new().get(&url("ftp://host/a")).unwrap_err().to_string();
        assert!(error.contains("\"ftp\"") && error.contains("s3a") && error.contains("abfss"), "{error}");
    }

    #[test]
    fn tables_with_options_have_stores_of_their_own() {
        let stores = ObjectStores::new();
        let bucket = url("s3://bucket/path/x.parquet");
        let plain = stores.get(&bucket).unwrap();
        let (same, without) = stores.with_options(&bucket, &options(&[("format.has_header", "true")])).unwrap();
        assert!(Arc::ptr_eq(&plain, &without));
        assert_eq!(same.as_str(), "s3://bucket/");

        let here = options(&[("aws.region", "eu-west-1"), ("aws.endpoint", "http://127.0.0.1:1")]);
        let (own, with) = stores.with_options(&bucket, &here).unwrap();
        assert!(!Arc::ptr_eq(&plain, &with));
        assert!(Arc::ptr_eq(&with, &stores.get(&own).unwrap()));
        assert_eq!((own.scheme(), own.host_str()), ("s3", Some("bucket")));
        let (again, _) = stores.with_options(&bucket, &here).unwrap();
        assert_eq!(own, again);
        let (other, _) = stores.with_options(&bucket, &options(&[("aws.region", "eu-west-2")])).unwrap();
        assert_ne!(own, other);
        assert!(ObjectStores::new().get(&own).is_err(), "never silently with other options");
        assert_eq!(plain_location(own.join("a/b%20c").unwrap().as_str()), "s3://bucket/a/b%20c");
        let azure = "abfss://fs@acc.dfs.core.windows.net/a";
        assert_eq!(plain_location(azure), azure);
        assert_eq!(plain_location("abfss://fs:123@acc.dfs.core.windows.net/a"), azure);
        for other in ["file:///a:b@c/d", "http://u:p@host/x", "s3://bucket/a:b@c"] {
            assert_eq!(plain_location(other), other);
        }
    }

    #[test]
    fn a_misspelt_option_is_refused() {
        let error = ObjectStores::new().with_options(&url("s3://b/a"), &options(&[("aws.reigon", "x")])).unwrap_err();
        assert!(error.to_string().contains("reigon"), "{error}");
    }

    #[test]
    fn a_custom_store_wins() {
        let stores = ObjectStores::new();
        let custom: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        stores.insert(&url("s3://bucket"), Arc::clone(&custom));
        assert!(Arc::ptr_eq(&custom, &stores.get(&url("s3://bucket/x/y")).unwrap()));
    }
}
