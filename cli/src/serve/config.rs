//! `serve --config FILE`: what can be said on the command line, in a file of TOML. The command line wins.
//!
//! ```text
//!   home = "/srv/nectarine"
//!   flight = "0.0.0.0:32010"
//!   tls_cert = "server.pem"           # beside the file, unless it begins with /
//!   tls_key = "server.key"
//!   statements_max = 16
//!
//!   [settings]
//!   memory_limit = "60%"
//!   cache.budget = "200GB"
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use crate::args::{Args, ServeArgs, Task};

/// The file.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Config {
    home: Option<PathBuf>,
    flight: Option<SocketAddr>,
    monitor: Option<SocketAddr>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_client_ca: Option<PathBuf>,
    plain_text: Option<bool>,
    no_auth: Option<bool>,
    no_reports: Option<bool>,
    no_jobs: Option<bool>,
    cluster: Option<SocketAddr>,
    secret_file: Option<PathBuf>,
    log_json: Option<bool>,
    statements_max: Option<u32>,
    user_statements_max: Option<u32>,
    waiting_max: Option<u32>,
    login_hours: Option<u32>,
    settings: toml::Table,
}

/// Puts what the file says where the command line says nothing.
pub(crate) fn merge(args: &mut Args) -> anyhow::Result<()> {
    let Some(Task::Serve(serve)) = &mut args.subcommand else { return Ok(()) };
    let Some(path) = serve.config.clone() else { return Ok(()) };
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read \"{}\"", path.display()))?;
    let config: Config = toml::from_str(&text).with_context(|| format!("cannot read \"{}\"", path.display()))?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let beside = |name: PathBuf| folder.join(name);
    serve.take(&config, beside);
    args.home = args.home.take().or_else(|| config.home.clone().map(beside));
    // Before those of the command line: the last one counts.
    let mut settings = vec![];
    flatten("", &config.settings, &mut settings);
    settings.append(&mut args.set);
    args.set = settings;
    check(serve)
}

impl ServeArgs {
    fn take(&mut self, config: &Config, beside: impl Fn(PathBuf) -> PathBuf) {
        let file = |given: &mut Option<PathBuf>, said: &Option<PathBuf>| {
            *given = given.take().or_else(|| said.clone().map(&beside));
        };
        self.flight = self.flight.or(config.flight);
        self.monitor = self.monitor.or(config.monitor);
        // A certificate and a key of two places would not belong together.
        if self.tls_cert.is_none() && self.tls_key.is_none() {
            file(&mut self.tls_cert, &config.tls_cert);
            file(&mut self.tls_key, &config.tls_key);
        }
        file(&mut self.tls_client_ca, &config.tls_client_ca);
        self.plain_text |= config.plain_text.unwrap_or(false);
        self.no_auth |= config.no_auth.unwrap_or(false);
        self.no_reports |= config.no_reports.unwrap_or(false);
        self.no_jobs |= config.no_jobs.unwrap_or(false);
        self.cluster = self.cluster.or(config.cluster);
        file(&mut self.secret_file, &config.secret_file);
        self.log_json |= config.log_json.unwrap_or(false);
        self.statements_max = self.statements_max.or(config.statements_max);
        self.user_statements_max = self.user_statements_max.or(config.user_statements_max);
        self.waiting_max = self.waiting_max.or(config.waiting_max);
        self.login_hours = self.login_hours.or(config.login_hours);
    }
}

/// What the command line makes sure of.
fn check(serve: &ServeArgs) -> anyhow::Result<()> {
    if serve.tls_cert.is_some() != serve.tls_key.is_some() {
        anyhow::bail!("tls_cert and tls_key go together");
    }
    if serve.tls_client_ca.is_some() && serve.tls_cert.is_none() {
        anyhow::bail!("tls_client_ca needs tls_cert and tls_key");
    }
    if serve.plain_text && serve.tls_cert.is_some() {
        anyhow::bail!("plain_text and tls_cert exclude each other");
    }
    for (name, number) in [
        ("statements_max", serve.statements_max),
        ("user_statements_max", serve.user_statements_max),
        ("login_hours", serve.login_hours),
    ] {
        if number == Some(0) {
            anyhow::bail!("{name} must be at least 1");
        }
    }
    Ok(())
}

/// `cache.budget` may be written with a dot or as a table.
fn flatten(before: &str, table: &toml::Table, settings: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if before.is_empty() { key.clone() } else { format!("{before}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, settings),
            toml::Value::String(text) => settings.push((name, text.clone())),
            other => settings.push((name, other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn merged(text: &str, flags: &[&str]) -> anyhow::Result<Args> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, text).unwrap();
        let words = ["nectarine", "serve", "--config", path.to_str().unwrap()];
        let mut args = Args::parse_from(words.iter().chain(flags));
        merge(&mut args).map(|()| args)
    }

    fn serve(args: &Args) -> &ServeArgs {
        match &args.subcommand {
            Some(Task::Serve(serve)) => serve,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_wins() {
        let text = "home = \"h\"\nflight = \"127.0.0.1:1\"\nstatements_max = 3\nlog_json = true\ntls_cert = \"c.pem\"\n\
                    tls_key = \"/k.pem\"\n[settings]\nmemory_limit = \"1GB\"\ncache.threshold = 3\n";
        let args = merged(text, &["--statements-max", "5", "--set", "memory_limit=2GB"]).unwrap();
        let found = serve(&args);
        assert_eq!(found.flight.unwrap().port(), 1);
        assert_eq!((found.statements_max, found.log_json), (Some(5), true));
        assert!(found.tls_cert.as_ref().unwrap().is_absolute() && found.tls_key == Some(PathBuf::from("/k.pem")));
        assert!(args.home.unwrap().ends_with("h"));
        let last = args.set.iter().rfind(|(name, _)| name == "memory_limit").unwrap();
        assert_eq!(last.1, "2GB");
        assert!(args.set.contains(&("cache.threshold".to_owned(), "3".to_owned())));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, word) in [
            ("flihgt = \"127.0.0.1:1\"", "flihgt"),
            ("flight = 5", "flight"),
            ("tls_cert = \"c.pem\"", "go together"),
            ("statements_max = 0", "at least 1"),
            ("= 5", "line 1"),
        ] {
            let error = format!("{:#}", merged(text, &[]).unwrap_err());
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
