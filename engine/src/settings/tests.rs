//! Layers, refused names and values, and that each setting is read by somebody.

use super::*;

#[test]
fn sizes_and_shares() {
    let size = |text| parse_size("x", text, 1000).map_err(|error| error.to_string());
    assert_eq!(size("70%"), Ok(700));
    assert_eq!(size("8GB"), Ok(8 << 30));
    assert_eq!(size("1.5 kb"), Ok(1536));
    assert_eq!(size("12"), Ok(12));
    assert!(size("-1").is_err() && size("0%").is_err() && size("many").is_err() && size("").is_err());
}

#[test]
fn layers_and_unknown_names() {
    let known = defaults();
    let mut settings = Settings::default();
    settings
        .add_file(
            Path::new("nectarine.toml"),
            "memory_limit = \"1GB\"\n[datafusion.execution]\nbatch_size = 7\n",
            &known,
        )
        .expect("valid");
    assert_eq!(settings.source("nectarine.memory_limit"), "nectarine.toml");
    let variables = [
        ("NECTARINE_MEMORY_LIMIT".to_string(), "2GB".to_string()),
        ("NECTARINE_HOME".to_string(), "/x".to_string()),
        ("NECTARINE_MEMORY_LIMT".to_string(), "2GB".to_string()),
        ("NECTARINE_TEST_MINUTES".to_string(), "2".to_string()),
        ("NECTARINE_SERVICE_HOST".to_string(), "10.0.0.1".to_string()),
        ("DATAFUSION_EXECUTION_BATCH_SIZ".to_string(), "2".to_string()),
    ];
    settings.add_environment(variables.into_iter(), &known).expect("valid");
    assert_eq!(settings.source("nectarine.memory_limit"), "environment");
    let told: Vec<_> =
        settings.notices().iter().map(|notice| (notice.message.as_str(), notice.hint.as_deref())).collect();
    assert_eq!(
        told,
        [
            (
                "environment variable NECTARINE_MEMORY_LIMT is not a setting and has no effect",
                Some("did you mean NECTARINE_MEMORY_LIMIT?")
            ),
            (
                "environment variable DATAFUSION_EXECUTION_BATCH_SIZ is not a setting and has no effect",
                Some("did you mean DATAFUSION_EXECUTION_BATCH_SIZE?")
            ),
        ]
    );
    settings.set("memory_limit", "3GB", "flag", &known).expect("valid");
    let mut options = defaults();
    settings.apply(&mut options).expect("valid");
    assert_eq!(options.extensions.get::<NectarineExtension>().expect("present").0.memory_limit, "3GB");
    assert_eq!(options.execution.batch_size.to_string(), "7");

    let error = settings.set("memory_limt", "3GB", "flag", &known).expect_err("unknown");
    assert_eq!(error.hint(), Some("did you mean \"nectarine.memory_limit\"?"));
    assert!(settings.set("nectarine.query_log_keep", "many", "flag", &known).is_err());
}

/// In all layers, with what there is in its place; in the environment it may be meant for another program.
#[test]
fn the_runtime_is_the_engines() {
    let known = defaults();
    let all = names(&known);
    let runtime: Vec<&String> = all.iter().filter(|name| name.starts_with(RUNTIME)).collect();
    assert!(runtime.len() >= 8, "{runtime:?}");
    for name in runtime {
        let error = Settings::default().set(name, "1", "flag", &known).expect_err(name);
        assert!(error.message().contains(name.as_str()) && error.hint().is_some(), "{error:?}");
    }
    let file = "[datafusion.runtime]\nmemory_limit = \"4G\"\n";
    let error = Settings::default().add_file(Path::new("nectarine.toml"), file, &known).expect_err("refused");
    assert!(error.message().contains("nectarine.toml"), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("nectarine.memory_limit")), "{error:?}");
    for (variable, words) in [
        ("DATAFUSION_RUNTIME_MAX_TEMP_DIRECTORY_SIZE", "nectarine.spill_limit"),
        ("DATAFUSION_RUNTIME_TEMP_DIRECTORY", "the home's tmp folder"),
    ] {
        let variables = [(variable.to_string(), "1".to_string())];
        let mut settings = Settings::default();
        settings.add_environment(variables.into_iter(), &known).expect("other programs may want it");
        let [notice] = settings.notices() else { panic!("{:?}", settings.notices()) };
        assert!(notice.message.contains(variable), "{notice:?}");
        assert!(notice.hint.as_ref().is_some_and(|hint| hint.contains(words)), "{notice:?}");
    }
}

#[test]
fn names_that_are_shown() {
    let known = defaults();
    let shown = |words: &[&str]| {
        let words: Vec<Ident> = words.iter().map(|word| Ident::new(*word)).collect();
        check_shown(&words, &known).map_err(|error| error.hint().map(str::to_string))
    };
    for words in [
        &["ALL"][..],
        &["all", "verbose"][..],
        &["TIME", "ZONE"][..],
        &["nectarine", "cache", "budget"][..],
        &["datafusion", "runtime", "memory_limit", "VERBOSE"][..],
    ] {
        assert_eq!(shown(words), Ok(()), "{words:?}");
    }
    for (words, nearest) in [
        (&["memory_limit"][..], "nectarine.memory_limit"),
        (&["batch_size"][..], "datafusion.execution.batch_size"),
        (&["datafusion", "runtime", "memory_limt"][..], "datafusion.runtime.memory_limit"),
    ] {
        assert_eq!(shown(words), Err(Some(format!("did you mean \"{nearest}\"?"))), "{words:?}");
    }
}

#[test]
fn mistakes_say_what_is_wanted_and_where_they_are() {
    let known = defaults();
    let told = |error: EngineError| format!("{error}; {:?}; {:?}", error.detail(), error.hint());
    let variables = [("NECTARINE_QUERY_LOG_KEEP".to_string(), "many".to_string())];
    let error = Settings::default().add_environment(variables.into_iter(), &known).expect_err("no number");
    assert_eq!(
        told(error),
        "cannot set nectarine.query_log_keep to \"many\" (from the environment variable NECTARINE_QUERY_LOG_KEEP); \
         Some(\"invalid digit found in string\"); Some(\"write a whole number such as 10000\")"
    );
    let file = "verify_extents = \"perhaps\"\n";
    let error = Settings::default().add_file(Path::new("/h/nectarine.toml"), file, &known).expect_err("neither");
    assert_eq!(
        told(error),
        "cannot set nectarine.verify_extents to \"perhaps\" in \"/h/nectarine.toml\"; \
         Some(\"provided string was not `true` or `false`\"); Some(\"write true or false\")"
    );
    for (name, value) in [("datafusion.execution.batch_size", "0"), ("datafusion.sql_parser.dialect", "klingon")] {
        let error = Settings::default().with(name, value).expect_err(name);
        let told = told(error);
        assert!(told.starts_with(&format!("cannot set {name} to \"{value}\"")), "{told}");
        assert!(!told.contains("caused by") && !told.contains("rror: "), "{told}");
    }
}

#[test]
fn nothing_is_only_taken_where_it_means_something() {
    for (name, value) in [
        ("memory_limit", "0"),
        ("memory_limit", "0.2"),
        ("query_memory", "0kB"),
        ("extent_bytes_max", "0"),
        ("job_result_limit", "0"),
        ("jobs_max", "0"),
    ] {
        let error = Settings::default().with(name, value).expect_err(name);
        assert!(error.message().contains("must be more than nothing"), "{name} = {value}: {error:?}");
    }
    for name in [
        "spill_limit",
        "cache.memory",
        "cache.budget",
        "cache.entry_limit",
        "cluster_bytes_min",
        "query_log_keep",
        "statement_timeout",
    ] {
        assert!(Settings::default().with(name, "0").is_ok(), "{name}");
    }
}

/// What is not read when the home is opened is read from the configuration of a session; else SET would change nothing.
#[test]
fn every_setting_is_read() {
    let readers = [
        ("nectarine.query_memory", "query_memory.rs", "query_memory(&options("),
        ("nectarine.extent_bytes_max", "managed.rs", "options(config).extent_bytes_max"),
        ("nectarine.verify_extents", "command.rs", "config_options()).verify_extents"),
        ("nectarine.reuse", "reuse/statement.rs", "config_options()).reuse"),
        ("nectarine.float_sums", "session.rs", "config_options()).float_sums"),
        ("nectarine.cache.entry_limit", "reuse/statement.rs", "ours.cache_entry_limit"),
        ("nectarine.cache.threshold", "reuse/statement.rs", "ours.cache_threshold"),
        ("nectarine.execution", "cluster.rs", "ours.execution"),
        ("nectarine.cluster_bytes_min", "cluster.rs", "ours.cluster_bytes_min"),
        ("nectarine.cluster_shared_files", "cluster.rs", "config_options()).cluster_shared_files"),
        ("nectarine.statement_timeout", "session.rs", "config_options()).statement_timeout"),
        ("nectarine.user_name", "session.rs", "config_options()).user_name"),
    ];
    let docs = Settings::docs();
    let mut listed: Vec<&str> = readers.iter().map(|(name, ..)| *name).chain(AT_OPEN).collect();
    let mut all: Vec<&str> = docs.iter().map(|setting| setting.name.as_str()).collect();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all, "a setting is either read at the start, or by somebody who is listed here");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (name, file, reading) in readers {
        let source = std::fs::read_to_string(sources.join(file)).expect(file);
        assert!(source.contains(reading), "{name} is not read in {file} any more");
    }
    for setting in &docs {
        let is_told = setting.doc.contains("Read when the home is opened.");
        assert_eq!(is_told, AT_OPEN.contains(&setting.name.as_str()), "{}", setting.name);
    }
}
