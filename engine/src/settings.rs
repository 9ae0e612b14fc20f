//! Settings: typed, documented where declared, layered.
//!
//! ```text
//!   defaults  <  nectarine.toml in the home  <  environment (NECTARINE_MEMORY_LIMIT)  <  flags  <  SET nectarine.x = ..
//! ```
//!
//! DataFusion's own settings (`datafusion.*`) take the same way, but for those of its runtime (`datafusion.runtime.*`), which are
//! refused: sessions share memory, disk and caches, and what bounds them is the engine's. An unknown name is refused, with the
//! nearest known one.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::timezone::Tz;
use datafusion::common::extensions_options;
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;

use nectarine_executor::parquet_compression;
use nectarine_planner::reuse::ReuseMode;
use sqlparser::ast::Ident;

use crate::eviction::parse_share;
use crate::{EngineError, ErrorKind, Notice, Result, home, machine, trace};

extensions_options! {
    /// Nectarine's own settings. Doc comments are the user's manual.
    pub struct NectarineOptions {
        /// Memory that all statements of this process may use together: a size such as `8GB`, or a share of the machine's
        /// memory such as `70%`. More lets larger sorts, joins and aggregations run without spilling; too much lets the
        /// machine swap. Read when the home is opened.
        pub memory_limit: String, default = "70%".to_string()

        /// Memory that one statement may use: a size, or a share of `nectarine.memory_limit`. One that needs more spills where it
        /// can, and else fails alone. Users who are no administrators can only lower it.
        pub query_memory: String, default = "100%".to_string()

        /// Disk space below the home that spills of this process may use: a size, or a share of what is free; with 0 nothing
        /// is spilled. A statement that needs more fails alone. Read when the home is opened.
        pub spill_limit: String, default = "50%".to_string()

        /// How large an extent of a managed table grows before the next one is begun, as a size. Larger extents mean fewer
        /// files; smaller ones can be read by more threads and pruned more finely.
        pub extent_bytes_max: String, default = "256MB".to_string()

        /// How many statements `system.queries` remembers. Each takes about 500 bytes of the home. Read when the home is
        /// opened.
        pub query_log_keep: usize, default = 10_000

        /// Whether extents of external tables are looked at once more after they were read, so that a file that was changed
        /// meanwhile gives an error and not a mixture. Costs one look at each file's attributes.
        pub verify_extents: bool, default = true

        /// What statements ask of the cache. `on`: read what was computed before, keep what may be needed again. `off`:
        /// neither. `read_only`: read, keep nothing. `refresh`: compute anew and replace what was kept. `check`: compute
        /// anew and fail if what was kept differs.
        pub reuse: String, default = "on".to_string()

        /// How `sum` and `avg` add floats. `fast`: as they come, rounding each time; the last digits may differ from run to
        /// run. `exact`: without rounding on the way, so that the same rows have the same sum on any number of threads, in any
        /// order, and whatever of it was computed before.
        pub float_sums: String, default = "fast".to_string()

        /// Memory for small cached results, as a size or a share of the machine's memory; 0 for none. Read when the home is
        /// opened.
        pub cache_memory: String, default = "2%".to_string()

        /// Where new cached results are kept: a folder (`derived` is the one in the home, others begin at the home unless they
        /// begin with `/`), or a URL such as `s3://bucket/results`, which is opened with the same environment variables as
        /// tables there. Older results stay where they are and are found there. A store that is slow or away never keeps a
        /// statement from its answer: what can not be written is not kept, what can not be read is computed. Read when the
        /// home is opened.
        pub cache_location: String, default = "derived".to_string()

        /// The largest cached result that is kept, as a size; with 0 none that has rows. Never more than what lies between
        /// `nectarine.cache.low_water` and the budget.
        pub cache_entry_limit: String, default = "256MB".to_string()

        /// What all cached results may take together: a size, or a share of the disk that they are on (an object store counts
        /// as a disk of 1 TB), 0 for nothing. Never more than what is there and half of what is free. All processes on a home
        /// share it, and what is being written counts. When it is nearly used up, the results that are worth least go: large,
        /// long unused, seldom used, cheap to compute again. Read when the home is opened.
        pub cache_budget: String, default = "10%".to_string()

        /// How far results are evicted once the budget is nearly used up, as a share of the budget. Above it, only what
        /// somebody asked for before is kept, besides whole results. Less means fewer, larger evictions. Read when the home is
        /// opened.
        pub cache_low_water: String, default = "80%".to_string()

        /// Seconds for which a new result is not evicted, so that it can show what it is worth. Read when the home is opened.
        pub cache_fresh_seconds: usize, default = 60

        /// How often a part of a query must be asked for, by different queries, before it is kept. Groups are kept at
        /// first sight while space is free and keeping them is cheap beside computing them (with 1: whatever it costs),
        /// whole results always.
        pub cache_threshold: usize, default = 2

        /// Whether the commands that reports name (`HOOK '..'`) are run after their runs, on the machine and with the rights of
        /// the server. Read when the home is opened.
        pub report_hooks: bool, default = false

        /// How many jobs (`SUBMIT JOB`) a server runs at a time; others wait. Each is a statement that uses all processors if it can.
        /// Read when the home is opened.
        pub jobs_max: usize, default = 2

        /// What the rows that a job leaves may take on disk, as a size or a share of what is free. A job with more fails. Read when the
        /// home is opened.
        pub job_result_limit: String, default = "1GB".to_string()

        /// Days after which a job that has ended is forgotten, with the rows that it left. Read when the home is opened.
        pub job_keep_days: usize, default = 30

        /// Where queries run. `auto`: on the executors that came to this server, if a query reads enough and may run there (see
        /// `nectarine.cluster_bytes_min` and docs/deploy.md); else in this process. `local`: in this process. `cluster`: on the
        /// executors whatever it reads; a query that may not run there, or when there is none, runs in this process and says why.
        /// Answers are the same, and what is kept of them serves both.
        pub execution: String, default = "auto".to_string()

        /// How much a query must read before `nectarine.execution = 'auto'` sends it to the cluster, as a size, 0 for whatever it
        /// reads: sending it costs about a tenth of a second.
        pub cluster_bytes_min: String, default = "256MB".to_string()

        /// Whether executors find the same files under the same local paths: they are on this machine, without disks of their own, or
        /// there is a shared disk. Executors compare what they find with what this process saw, and another file that has the same
        /// name, size and time is not noticed. So without it queries over local files run in this process.
        pub cluster_shared_files: bool, default = false

        /// Seconds after which a statement is ended with an error, whether it computes or its client does not read; 0 for never.
        pub statement_timeout: usize, default = 0

        /// Where to send how long statements and their parts took: the address of a collector of OpenTelemetry that takes OTLP over
        /// HTTP, such as `http://127.0.0.1:4318`; nothing for nowhere. Read when the home is opened.
        pub trace_endpoint: String, default = String::new()

        /// Name under which statements of this session appear in `system.queries`.
        pub user_name: String, default = std::env::var("USER").unwrap_or_else(|_| "nectarine".to_string())
    }
}

/// The settings as DataFusion carries them: `SET nectarine.x` and `SHOW nectarine.x` find them under their full names.
#[derive(Debug, Clone, Default)]
pub(crate) struct NectarineExtension(pub(crate) NectarineOptions);

impl ConfigExtension for NectarineExtension {
    const PREFIX: &'static str = "nectarine";
}

impl ExtensionOptions for NectarineExtension {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> datafusion::common::Result<()> {
        self.0.set(&key.replacen("cache.", "cache_", 1), value)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let mut entries = self.0.entries();
        for entry in &mut entries {
            entry.key = format!("{}.{}", Self::PREFIX, entry.key.replacen("cache_", "cache.", 1));
        }
        entries
    }
}

/// Settings that are read once, when the home is opened.
const AT_OPEN: [&str; 13] = [
    "nectarine.query_log_keep",
    "nectarine.jobs_max",
    "nectarine.job_result_limit",
    "nectarine.job_keep_days",
    "nectarine.report_hooks",
    "nectarine.trace_endpoint",
    "nectarine.memory_limit",
    "nectarine.spill_limit",
    "nectarine.cache.memory",
    "nectarine.cache.location",
    "nectarine.cache.budget",
    "nectarine.cache.low_water",
    "nectarine.cache.fresh_seconds",
];

/// How names of DataFusion's settings begin that change what all sessions share.
const RUNTIME: &str = "datafusion.runtime.";

/// How large a file of rows on their way between threads may get before the next one is begun. Always the least: when two
/// threads spill to one reader at the same time they begin two files, and DataFusion's reader waits for more in the first
/// while what it was promised is in the second. If every reader comes to wait like that the statement never ends; a file that
/// is whole after one batch is not waited for.
pub(crate) const SPILL_FILE_BYTES: &str = "datafusion.execution.max_spill_file_size_bytes";

/// How Parquet files are compressed that `COPY` and `INSERT` write for others.
const PARQUET_COMPRESSION: &str = "datafusion.execution.parquet.compression";

/// Beginnings of environment variables that start like a setting and are none: where the home is, passwords, what tests and
/// benchmarks take, and what a cluster manager tells every program of a service that is called nectarine.
const NOT_SETTINGS: [&str; 23] = [
    "NECTARINE_HOME",
    "NECTARINE_PASSWORD",
    "NECTARINE_TOKEN",
    "NECTARINE_FAIL_POINT",
    "NECTARINE_SERVICE_",
    "NECTARINE_PORT",
    "NECTARINE_TEST_",
    "NECTARINE_APPROVE",
    "NECTARINE_CACHE_ENTRIES",
    "NECTARINE_CLUSTER_KILLS",
    "NECTARINE_CLUSTER_SECRET",
    "NECTARINE_COLLECT_FILES",
    "NECTARINE_CONFORMANCE",
    "NECTARINE_FAULT_ROUNDS",
    "NECTARINE_FLIGHT_CLIENTS",
    "NECTARINE_FLIGHT_FUZZ",
    "NECTARINE_FLIGHT_SECONDS",
    "NECTARINE_INVARIANCE",
    "NECTARINE_LOAD_",
    "NECTARINE_ROUNDS",
    "NECTARINE_SEED",
    "NECTARINE_SOAK_",
    "NECTARINE_TARGET",
];

/// What one setting is about, for the reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingDoc {
    /// `nectarine.memory_limit`.
    pub name: String,
    /// As text.
    pub default: String,
    /// For people.
    pub doc: String,
    /// `text`, `number` or `boolean`.
    pub kind: String,
}

/// Values given outside of SQL, each with where it came from.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    values: BTreeMap<String, (String, &'static str)>,
    /// What was found and not understood.
    notices: Vec<Notice>,
}

impl Settings {
    /// Reads `nectarine.toml` of a home and the environment, and puts flags on top.
    pub fn load(home: &Path, flags: &[(String, String)]) -> Result<Self> {
        home::check(home)?;
        let mut settings = Self::default();
        let known = defaults();
        let path = home.join("nectarine.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => settings.add_file(&path, &text, &known)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(EngineError::new(ErrorKind::Configuration, format!("cannot read \"{}\"", path.display()))
                    .with_detail(error.to_string()));
            }
        }
        settings.add_environment(std::env::vars(), &known)?;
        for (name, value) in flags {
            settings.set(name, value, "flag", &known).map_err(|error| error.given_by("from a flag"))?;
        }
        Ok(settings)
    }

    /// Sets one value as a flag would.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self> {
        self.set(name, value, "flag", &defaults())?;
        Ok(self)
    }

    /// What the user should be told: environment variables that look like settings and are none.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// All settings of Nectarine, from the code.
    pub fn docs() -> Vec<SettingDoc> {
        let mut options = ConfigOptions::new();
        options.extensions.insert(NectarineExtension::default());
        let entries = options.entries().into_iter().filter(|entry| entry.key.starts_with("nectarine."));
        entries
            .map(|entry| {
                let default = entry.value.unwrap_or_default();
                let kind = kind_of(&default);
                let doc = entry.description.lines().map(str::trim).collect::<Vec<_>>().join(" ");
                // The default is the name of whoever runs this; the reference must not depend on that.
                let default =
                    if entry.key == "nectarine.user_name" { "the operating system's".to_string() } else { default };
                SettingDoc { name: entry.key, default, doc: doc.trim().to_string(), kind: kind.to_string() }
            })
            .collect()
    }

    /// Puts the values into a configuration.
    pub(crate) fn apply(&self, options: &mut ConfigOptions) -> Result<()> {
        for (name, (value, _)) in &self.values {
            if let Err(error) = options.set(name, value) {
                return Err(bad_value(ErrorKind::Configuration, name, value, &EngineError::from(error), options));
            }
        }
        Ok(())
    }

    /// Where a value came from.
    pub(crate) fn source(&self, name: &str) -> &'static str {
        self.values.get(name).map_or("default", |(_, source)| source)
    }

    fn add_file(&mut self, path: &Path, text: &str, known: &ConfigOptions) -> Result<()> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            EngineError::new(ErrorKind::Configuration, format!("cannot read \"{}\"", path.display()))
                .with_detail(error.to_string().trim().to_string())
        })?;
        let mut values = vec![];
        flatten("", &table, &mut values);
        for (name, value) in values {
            self.set(&name, &value, "nectarine.toml", known).map_err(|error| error.within(path))?;
        }
        Ok(())
    }

    fn add_environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
        known: &ConfigOptions,
    ) -> Result<()> {
        let names: BTreeMap<String, String> =
            names(known).into_iter().map(|name| (name.to_ascii_uppercase().replace('.', "_"), name)).collect();
        for (variable, value) in variables {
            if let Some(Err(refused)) = names.get(&variable).map(|name| check_runtime(name)) {
                // It may be meant for another program, as below.
                let message = format!("environment variable {variable} has no effect: {}", refused.message());
                self.notices.push(Notice { message, hint: refused.hint().map(str::to_string) });
            } else if let Some(name) = names.get(&variable) {
                let set = self.set(name, &value, "environment", known);
                set.map_err(|error| error.given_by(&format!("from the environment variable {variable}")))?;
            } else if ["NECTARINE_", "DATAFUSION_"].iter().any(|prefix| variable.starts_with(prefix))
                && variable != "NECTARINE_CACHE"
                && !NOT_SETTINGS.iter().any(|other| variable.starts_with(other))
            {
                // Not refused, as elsewhere: what is in the environment may be meant for another program.
                let message = format!("environment variable {variable} is not a setting and has no effect");
                let nearest = nearest_name(&variable, names.keys());
                let hint = nearest.map(|nearest| format!("did you mean {nearest}?"));
                self.notices.push(Notice { message, hint });
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str, source: &'static str, known: &ConfigOptions) -> Result<()> {
        let name = qualified(name);
        check_name(&name, known)?;
        check_runtime(&name)?;
        check_value(&name, value)?;
        let value = meant(&name, value.to_string());
        // Tried on a copy, so that a bad value is reported with the layer that it came from.
        let values = BTreeMap::from([(name.clone(), (value.clone(), source))]);
        let layer = Self { values, notices: vec![] };
        layer.apply(&mut known.clone())?;
        self.values.insert(name, (value, source));
        Ok(())
    }
}

/// A name without its first word is Nectarine's.
fn qualified(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    match name.starts_with("nectarine.") || name.starts_with("datafusion.") {
        true => name,
        false => format!("nectarine.{name}"),
    }
}

fn defaults() -> ConfigOptions {
    let mut options = ConfigOptions::new();
    options.extensions.insert(NectarineExtension::default());
    options
}

/// Refuses a name that is no setting, with the nearest one.
pub(crate) fn check_name(name: &str, known: &ConfigOptions) -> Result<()> {
    let names = names(known);
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let error = EngineError::new(ErrorKind::Sql, format!("unknown setting \"{name}\""));
    Err(match nearest_name(name, names.iter()) {
        Some(nearest) => error.with_hint(format!("did you mean \"{nearest}\"?")),
        None => error.with_hint("SELECT name FROM system.settings lists all settings"),
    })
}

/// Refuses to show what is no setting.
pub(crate) fn check_shown(variable: &[Ident], known: &ConfigOptions) -> Result<()> {
    let words: Vec<String> = variable.iter().map(|word| word.value.to_ascii_lowercase()).collect();
    let name = words.join(".");
    match name.strip_suffix(".verbose").unwrap_or(&name) {
        // What DataFusion has besides names.
        "all" | "timezone" | "time.zone" => Ok(()),
        name => check_name(name, known),
    }
}

/// All names that there are. Those of DataFusion's runtime are in no configuration. They come first: of names that are equally near
/// to what was written the last one is told, which should be one of ours.
fn names(known: &ConfigOptions) -> Vec<String> {
    let runtime = RuntimeEnvBuilder::new().entries();
    runtime.into_iter().chain(known.entries()).map(|entry| entry.key).collect()
}

fn nearest_name<'n>(name: &str, names: impl Iterator<Item = &'n String>) -> Option<&'n String> {
    // Its last words alone will do: `memory_limit` is what other engines call it.
    let likeness = |known: &String| {
        let ends = known.match_indices('.').map(|(dot, _)| &known[dot + 1..]);
        ends.chain([known.as_str()]).map(|end| strsim::jaro_winkler(end, name)).fold(0.0, f64::max)
    };
    let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    nearest.filter(|nearest| likeness(nearest) > 0.8)
}

/// Refuses a SET of what is only read when the home is opened.
pub(crate) fn check_settable(name: &str) -> Result<()> {
    match AT_OPEN.contains(&name) {
        true => Err(EngineError::new(ErrorKind::Unsupported, format!("{name} is read when the home is opened"))
            .with_hint(format!("start with --set {name}=.. or put it into nectarine.toml"))),
        false => Ok(()),
    }
}

/// Refuses what DataFusion would do to its runtime: a session would get one of its own, with memory and spills beside those that
/// all statements share, and a folder for them anywhere.
pub(crate) fn check_runtime(name: &str) -> Result<()> {
    let Some(part) = name.strip_prefix(RUNTIME) else { return Ok(()) };
    let hint = match part {
        "memory_limit" => {
            "nectarine.memory_limit bounds the memory of all statements (start with --set memory_limit=..), \
             nectarine.query_memory that of one"
        }
        "max_temp_directory_size" => "nectarine.spill_limit bounds what spills (start with --set spill_limit=..)",
        "temp_directory" => "what spills is below the home's tmp folder: choose another home (--home)",
        _ => "SELECT name FROM system.settings lists what can be set",
    };
    Err(EngineError::new(ErrorKind::Unsupported, format!("{name} belongs to the engine and cannot be set"))
        .with_detail("all sessions share the runtime")
        .with_hint(hint))
}

/// Refuses a value that DataFusion would take as any text.
pub(crate) fn check_value(name: &str, value: &str) -> Result<()> {
    match name {
        // What they are shares of is not known yet, and does not matter.
        "nectarine.cache.entry_limit"
        | "nectarine.cluster_bytes_min"
        | "nectarine.spill_limit"
        | "nectarine.cache.memory"
        | "nectarine.cache.budget" => parse_size(name, value, u64::MAX).map(|_| ()),
        "nectarine.memory_limit"
        | "nectarine.query_memory"
        | "nectarine.extent_bytes_max"
        | "nectarine.job_result_limit" => match parse_size(name, value, u64::MAX)? {
            0 => Err(nothing(name, value)),
            _ => Ok(()),
        },
        "nectarine.jobs_max" if value.parse::<u64>().is_ok_and(|n_jobs| n_jobs == 0) => {
            Err(nothing(name, value).with_hint("nectarine serve --no-jobs leaves jobs to other servers"))
        }
        "nectarine.cache.low_water" => parse_share(value).map(|_| ()),
        "nectarine.reuse" => reuse_mode(value).map(|_| ()),
        "datafusion.execution.time_zone" if !value.is_empty() && value.parse::<Tz>().is_err() => {
            Err(EngineError::new(ErrorKind::Configuration, format!("there is no time zone \"{value}\""))
                .with_hint("zones are named like 'Europe/Berlin', 'UTC' and '+02:00'"))
        }
        "nectarine.trace_endpoint" if !value.trim().is_empty() => trace::check(value.trim()).map(drop),
        "nectarine.float_sums" => adds_exactly(value).map(|_| ()),
        PARQUET_COMPRESSION => parquet_compression(value).map(drop).map_err(EngineError::from),
        "nectarine.execution" => execution(value).map(|_| ()),
        SPILL_FILE_BYTES if value.parse::<u64>().is_ok_and(|bytes| bytes > 1) => {
            Err(EngineError::new(ErrorKind::Unsupported, format!("{SPILL_FILE_BYTES} is always 1"))
                .with_detail("rows that wait for another thread and do not fit in memory take a file per batch"))
        }
        _ => Ok(()),
    }
}

/// The value in DataFusion's words, where a setting takes others as well.
pub(crate) fn meant(name: &str, value: String) -> String {
    match name {
        PARQUET_COMPRESSION => parquet_compression(&value).unwrap_or(value),
        _ => value,
    }
}

fn nothing(name: &str, value: &str) -> EngineError {
    EngineError::new(ErrorKind::Configuration, format!("{name} must be more than nothing, and not \"{value}\""))
}

/// What a refused value is told as: why, and what is wanted in its place.
pub(crate) fn bad_value(
    kind: ErrorKind,
    name: &str,
    value: &str,
    error: &EngineError,
    known: &ConfigOptions,
) -> EngineError {
    let why = error.detail().map_or_else(|| error.to_string(), |detail| format!("{error}; {detail}"));
    let told = EngineError::new(kind, format!("cannot set {name} to \"{value}\"")).with_detail(why);
    match wanted(name, known).or_else(|| error.hint().map(str::to_string)) {
        Some(wanted) => told.with_hint(wanted),
        None => told,
    }
}

/// What values of a setting look like, by the one that it has.
fn wanted(name: &str, known: &ConfigOptions) -> Option<String> {
    let value = known.entries().into_iter().find(|entry| entry.key == name)?.value?;
    match kind_of(&value) {
        "boolean" => Some("write true or false".to_string()),
        "number" => Some(format!("write a whole number such as {value}")),
        _ => None,
    }
}

/// `text`, `number` or `boolean`.
fn kind_of(value: &str) -> &'static str {
    match value {
        "true" | "false" => "boolean",
        number if number.parse::<u64>().is_ok() => "number",
        _ => "text",
    }
}

fn flatten(prefix: &str, table: &toml::Table, values: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(table) => flatten(&name, table, values),
            toml::Value::String(text) => values.push((name, text.clone())),
            other => values.push((name, other.to_string())),
        }
    }
}

/// Reads the value of `nectarine.reuse`.
pub(crate) fn reuse_mode(text: &str) -> Result<ReuseMode> {
    Ok(match text.trim().to_ascii_lowercase().as_str() {
        "on" | "true" => ReuseMode::On,
        "off" | "false" => ReuseMode::Off,
        "read_only" => ReuseMode::ReadOnly,
        "refresh" => ReuseMode::Refresh,
        "check" => ReuseMode::Check,
        _ => {
            return Err(EngineError::new(
                ErrorKind::Configuration,
                format!("cannot set nectarine.reuse to \"{text}\""),
            )
            .with_hint("one of on, off, read_only, refresh, check"));
        }
    })
}

/// Reads the value of `nectarine.float_sums`.
pub(crate) fn adds_exactly(text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "exact" => Ok(true),
        "fast" => Ok(false),
        _ => {
            let message = format!("cannot set nectarine.float_sums to \"{text}\"");
            Err(EngineError::new(ErrorKind::Configuration, message).with_hint("one of exact, fast"))
        }
    }
}

/// Where queries run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Execution {
    Auto,
    Local,
    Cluster,
}

/// Reads the value of `nectarine.execution`.
pub(crate) fn execution(text: &str) -> Result<Execution> {
    match text.trim().to_ascii_lowercase().as_str() {
        "auto" => Ok(Execution::Auto),
        "local" => Ok(Execution::Local),
        "cluster" => Ok(Execution::Cluster),
        _ => {
            let message = format!("cannot set nectarine.execution to \"{text}\"");
            Err(EngineError::new(ErrorKind::Configuration, message).with_hint("one of auto, local, cluster"))
        }
    }
}

/// Bytes that one statement may use; `None` if that is all that there are.
pub(crate) fn query_memory(options: &NectarineOptions) -> Result<Option<usize>> {
    if options.query_memory == "100%" {
        return Ok(None);
    }
    let all = parse_size("nectarine.memory_limit", &options.memory_limit, machine::memory_bytes())?;
    let own = parse_size("nectarine.query_memory", &options.query_memory, all)?;
    Ok((own < all).then_some(own as usize))
}

/// Reads `512MB`, `8GB`, `1GiB`, `70%` (of `whole`) or plain bytes.
pub(crate) fn parse_size(name: &str, text: &str, whole: u64) -> Result<u64> {
    let invalid = || {
        EngineError::new(ErrorKind::Configuration, format!("cannot read {name} = \"{text}\" as a size"))
            .with_hint("write a size such as 512MB or 8GB, or a share such as 70%")
    };
    let text = text.trim();
    if let Some(share) = text.strip_suffix('%') {
        let share: f64 = share.trim().parse().map_err(|_| invalid())?;
        if !(share > 0.0 && share <= 100.0) {
            return Err(invalid());
        }
        return Ok((whole as f64 * share / 100.0) as u64);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| invalid())?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tb" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(invalid()),
    };
    Ok((number * unit) as u64)
}
