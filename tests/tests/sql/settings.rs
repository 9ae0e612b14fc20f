//! Settings: defaults, the home's file, the environment, flags, SET.

use nectarine_tests::db::Db;
use nectarine_tests::program::{Program, finish};

#[tokio::test]
async fn set_and_reset() {
    let db = Db::with(&[("nectarine.user_name", "flagged"), ("datafusion.execution.batch_size", "100")]).await;
    let shown = "SELECT value, source FROM system.settings WHERE name = 'nectarine.user_name'";
    assert_eq!(db.ok(shown).await, "flagged|flag");
    db.script(
        r#"
        SET nectarine.user_name = 'ann';
        -> SET
        SELECT value, source FROM system.settings WHERE name = 'nectarine.user_name';
        -> ann|session
        SHOW nectarine.user_name;
        -> nectarine.user_name|ann
        SELECT user_name FROM system.queries ORDER BY started_at DESC LIMIT 1;
        -> ann
        RESET nectarine.user_name;
        -> RESET
        SELECT value, source FROM system.settings WHERE name = 'nectarine.user_name';
        -> flagged|flag
        SELECT value, source FROM system.settings WHERE name = 'datafusion.execution.batch_size';
        -> 100|flag
        SET datafusion.execution.batch_size = 50;
        SHOW datafusion.execution.batch_size;
        -> datafusion.execution.batch_size|50
        RESET datafusion.execution.batch_size;
        SHOW datafusion.execution.batch_size;
        -> datafusion.execution.batch_size|100
        SELECT value, source FROM system.settings WHERE name = 'datafusion.execution.time_zone';
        -> NULL|default
        SET TIME ZONE = '+08:00';
        SHOW TIME ZONE;
        -> datafusion.execution.time_zone|+08:00
        SELECT count(*) FROM system.settings WHERE description = '';
        -> 0
        "#,
    )
    .await;
    // Another session starts from the flags.
    db.ok("SET nectarine.user_name = 'ann'").await;
    assert_eq!(db.client().ok(shown).await, "flagged|flag");
    let db = db.reopen().await;
    assert_eq!(db.ok(shown).await, "flagged|flag");
}

#[tokio::test]
async fn time_zones_as_postgresql_has_them() {
    let db = Db::with(&[("datafusion.execution.time_zone", "+01:00")]).await;
    let shown = "datafusion.execution.time_zone";
    for (sql, tag, zone) in [
        ("SET TIME ZONE 'Europe/Berlin'", "SET", "Europe/Berlin"),
        ("SET TIME ZONE LOCAL", "RESET", "+01:00"),
        ("SET SESSION TIME ZONE 'America/New_York'", "SET", "America/New_York"),
        ("SET TIME ZONE DEFAULT", "RESET", "+01:00"),
        ("SET TIME ZONE UTC", "SET", "UTC"),
        ("SET timezone TO DEFAULT", "RESET", "+01:00"),
        ("SET TIME ZONE -7", "SET", "-07:00"),
        ("SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", "SET", "+05:30"),
    ] {
        assert_eq!(db.ok(sql).await, tag, "{sql}");
        assert_eq!(db.ok("SHOW TIME ZONE").await, format!("{shown}|{zone}"), "{sql}");
        assert_eq!(db.ok("SHOW timezone").await, format!("{shown}|{zone}"), "{sql}");
    }
    db.ok("SET TIME ZONE 'Europe/Berlin'").await;
    let noon = "SELECT CAST(TIMESTAMPTZ '2024-07-01T12:00:00Z' AS TEXT)";
    assert!(db.ok(noon).await.starts_with("2024-07-01T14:00:00"), "{}", db.ok(noon).await);
    let error = db.err("SET LOCAL TIME ZONE 'UTC'").await;
    assert!(error.contains("not implemented"), "{error}");
}

/// Text is read in the zone of the session, whether it is a constant or a column, and the zone is part of what it means.
#[tokio::test]
async fn times_are_read_from_text_in_the_zone() {
    let given = Db::with(&[("datafusion.execution.time_zone", "Europe/Berlin")]).await;
    let db = Db::new().await;
    for db in [&given, &db] {
        db.ok("CREATE TABLE written (t TEXT)").await;
        db.ok("INSERT INTO written VALUES ('2024-07-01 12:00:00'), (NULL)").await;
    }
    let functions =
        ["to_timestamp", "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos"];
    for function in functions {
        let column = format!("SELECT CAST({function}(t) AS BIGINT) FROM written ORDER BY t NULLS LAST");
        let constant = format!("SELECT CAST({function}('2024-07-01 12:00:00') AS BIGINT)");
        let formatted =
            format!("SELECT CAST({function}(t, '%Y-%m-%d %H:%M:%S') AS BIGINT) FROM written WHERE t IS NOT NULL");
        db.ok("SET TIME ZONE DEFAULT").await;
        let utc = db.ok(&constant).await;
        assert_eq!(db.ok(&column).await, format!("{utc}\nNULL"), "{function}");
        db.ok("SET TIME ZONE 'Europe/Berlin'").await;
        let berlin = db.ok(&constant).await;
        let (a, b): (i64, i64) = (utc.parse().expect("a number"), berlin.parse().expect("a number"));
        // Two hours earlier, in seconds up to nanoseconds.
        assert!([1, 1_000, 1_000_000, 1_000_000_000].contains(&((a - b) / 7_200)), "{function}: {utc} {berlin}");
        for _ in 0..2 {
            assert_eq!(db.ok(&column).await, format!("{berlin}\nNULL"), "{function}");
            assert_eq!(db.ok(&formatted).await, berlin, "{function}");
        }
        assert_eq!(given.ok(&column).await, format!("{berlin}\nNULL"), "{function}");
    }
}

/// Each layer wins over those before it.
#[test]
fn layers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("a folder");
    let sql = "SELECT value, source FROM system.settings WHERE name = 'nectarine.statement_timeout'";
    let plain = Program::on(&home);
    assert_eq!(plain.run(sql).rows(), "0,default");
    std::fs::write(home.join("nectarine.toml"), "statement_timeout = 1000\n[datafusion.execution]\nbatch_size = 77\n")
        .expect("a file");
    assert_eq!(plain.run(sql).rows(), "1000,nectarine.toml");
    assert_eq!(plain.run("SHOW datafusion.execution.batch_size").rows(), "datafusion.execution.batch_size,77");
    let with_environment = |program: &Program| {
        let mut command = program.command();
        command.env("NECTARINE_STATEMENT_TIMEOUT", "2000").args(["-c", sql]);
        finish(command, b"").rows()
    };
    assert_eq!(with_environment(&plain), "2000,environment");
    let flagged = plain.clone().set("statement_timeout", "3000");
    assert_eq!(with_environment(&flagged), "3000,flag");
    assert_eq!(flagged.run(&format!("SET nectarine.statement_timeout = 4000; {sql}")).rows(), "4000,session");
    let error = flagged.run("SET nectarine.query_log_keep = 4000").error();
    assert!(error.contains("nectarine.query_log_keep is read when the home is opened"), "{error}");
    // Mistakes in any layer are told with where they are.
    std::fs::write(home.join("nectarine.toml"), "query_log_kep = 1000\n").expect("a file");
    let error = plain.run("SELECT 1").error();
    assert!(error.contains("query_log_kep") && error.contains("query_log_keep"), "{error}");
    std::fs::write(home.join("nectarine.toml"), "query_log_keep = \n").expect("a file");
    let error = plain.run("SELECT 1").error();
    assert!(error.contains("nectarine.toml"), "{error}");
    std::fs::write(home.join("nectarine.toml"), "query_log_keep = \"many\"\n").expect("a file");
    let error = plain.run("SELECT 1").error();
    assert!(error.contains("query_log_keep") && error.contains("nectarine.toml"), "{error}");
    std::fs::remove_file(home.join("nectarine.toml")).expect("it was there");
    let error = plain.clone().set("memory_limt", "1GB").run("SELECT 1").error();
    assert!(error.contains("memory_limt") && error.contains("nectarine.memory_limit"), "{error}");
}

/// A value that is refused is told with what is wanted and with who gave it, in words of people.
#[test]
fn values_that_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("a folder");
    let plain = Program::on(&home);
    let flag = |name: &str, value: &str| plain.clone().set(name, value).run("SELECT 1").error();
    let variable = |name: &str, value: &str| {
        let mut command = plain.command();
        command.env(name, value).args(["-c", "SELECT 1"]);
        finish(command, b"").error()
    };
    for (error, all) in [
        (
            flag("query_log_keep", "many"),
            ["cannot set nectarine.query_log_keep to \"many\" (from a flag)", "write a whole number"],
        ),
        (
            variable("NECTARINE_VERIFY_EXTENTS", "perhaps"),
            ["(from the environment variable NECTARINE_VERIFY_EXTENTS)", "write true or false"],
        ),
        (flag("spill_limit", "lots"), ["nectarine.spill_limit = \"lots\" as a size (from a flag)", "512MB"]),
        (flag("memory_limit", "0"), ["nectarine.memory_limit must be more than nothing", "(from a flag)"]),
        (
            variable("NECTARINE_MEMORY_LIMIT", "0"),
            ["nectarine.memory_limit must be more than nothing", "variable NECTARINE_MEMORY_LIMIT)"],
        ),
        (
            flag("datafusion.runtime.memory_limit", "4G"),
            ["datafusion.runtime.memory_limit belongs to the engine", "nectarine.memory_limit"],
        ),
    ] {
        for words in all {
            assert!(error.contains(words), "{words}: {error}");
        }
        assert!(!error.contains("caused by") && !error.contains("External"), "{error}");
    }
    // What is meant for another program has no effect, and says so.
    let mut command = plain.command();
    command.env("DATAFUSION_RUNTIME_TEMP_DIRECTORY", "/x").args(["-c", "SELECT 1"]);
    let ran = finish(command, b"");
    for words in ["DATAFUSION_RUNTIME_TEMP_DIRECTORY has no effect", "belongs to the engine", "tmp folder"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(ran.rows(), "1");
}

/// Memory, spills and their folder are bounded for all sessions together, and no session gets others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runtime_is_not_of_a_session() {
    let db = Db::with(&[("memory_limit", "20MB")]).await;
    db.script(
        r#"
        SET datafusion.runtime.memory_limit = '4G';
        !! datafusion.runtime.memory_limit belongs to the engine
        !! nectarine.memory_limit
        RESET datafusion.runtime.memory_limit;
        !! datafusion.runtime.memory_limit belongs to the engine
        SET datafusion.runtime.max_temp_directory_size = '100G';
        !! nectarine.spill_limit
        RESET datafusion.runtime.max_temp_directory_size;
        !! nectarine.spill_limit
        SET datafusion.runtime.temp_directory = '{dir}/elsewhere';
        !! the home's tmp folder
        RESET datafusion.runtime.temp_directory;
        !! the home's tmp folder
        SET datafusion.runtime.list_files_cache_limit = '1G';
        !! belongs to the engine
        SET datafusion.runtime.memory_limt = '4G';
        !! unknown setting "datafusion.runtime.memory_limt"
        !! did you mean "datafusion.runtime.memory_limit"?
        RESET datafusion.runtime.memory_limt;
        !! did you mean "datafusion.runtime.memory_limit"?
        SHOW datafusion.runtime.memory_limt;
        !! did you mean "datafusion.runtime.memory_limit"?
        SHOW datafusion.runtime.memory_limit;
        -> datafusion.runtime.memory_limit|20M
        "#,
    )
    .await;
    assert!(!db.path("elsewhere").exists());
    let large = "SELECT length(string_agg(md5(CAST(value AS TEXT)), '')) FROM generate_series(1, 1000000)";
    let error = db.err(large).await;
    assert!(error.starts_with("Resources:"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_such_zone() {
    let db = Db::new().await;
    for sql in
        ["SET TIME ZONE 'Nowhere/X'", "SET timezone = '+99:00'", "SET datafusion.execution.time_zone = 'nowhere'"]
    {
        let error = db.err(sql).await;
        assert!(error.contains("there is no time zone"), "{sql}: {error}");
    }
    for sql in ["SET TIME ZONE '+05:30'", "SET TIME ZONE 'Europe/Berlin'", "RESET timezone"] {
        db.ok(sql).await;
    }
}
