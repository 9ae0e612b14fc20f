//! A disk that fills: the statement fails alone, the table is as it was, and all works again when there is room.

use std::process::Command;

use nectarine_tests::program::{Program, binary, clean, finish};
#[cfg(target_os = "linux")]
use nectarine_tests::small_disk::on_small_disk;

/// More than the small disks below, however well it is packed.
const LARGE: &str = "INSERT INTO t SELECT value, CAST(uuid() AS TEXT) FROM generate_series(1, 2000000)";

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_during_insert() {
    let script = format!(
        r#"
        run -c "CREATE TABLE t AS SELECT value AS n, 'x' AS s FROM generate_series(1, 1000)"
        run -c "{LARGE}"
        run -c "SELECT count(*), sum(n) FROM t"
        run -c "CREATE TABLE u AS SELECT value, CAST(uuid() AS TEXT) FROM generate_series(1, 2000000)"
        run -c "SELECT * FROM u"
        run -c "CREATE OR REPLACE TABLE t AS SELECT value, CAST(uuid() AS TEXT) FROM generate_series(1, 2000000)"
        run -c "INSERT INTO t VALUES (1001, 'y')"
        run -c "SELECT count(*), sum(n) FROM t"
        find "$DISK/home/tables" "$DISK/home/tmp" -type f | wc -l
        "#
    );
    let Some(output) = on_small_disk(24, &script) else {
        println!("left out: this system has no small disks for tests");
        return;
    };
    let answers: Vec<&str> = output.split_inclusive("exit ").collect();
    let text = answers.concat();
    assert_eq!(text.matches("no space left on device").count(), 3, "{text}");
    assert_eq!(text.matches("cannot write \"").count(), 3, "what was attempted, and where: {text}");
    assert!(text.contains("1000,500500\n") && text.contains("1001,501501\n"), "{text}");
    assert!(text.contains("table \"u\" does not exist"), "{text}");
    assert!(!text.contains("panicked") && !text.contains("internal error"), "{text}");
    // Two extents, and nothing that was left behind.
    assert_eq!(text.trim_end().rsplit('\n').next().map(str::trim), Some("2"), "{text}");
}

/// Not a byte is free: what can be read is read, what cannot be done is said.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full() {
    let script = r#"
        run -c "CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 1000)"
        dd if=/dev/zero of="$DISK/fill" bs=4k 2>/dev/null
        run -c "SELECT count(*) FROM t" --keep-going -c "SELECT sum(n) FROM t" -c "INSERT INTO t VALUES (5)" -c "CREATE VIEW v AS SELECT 1"
        rm "$DISK/fill"
        echo free
        run -c "INSERT INTO t VALUES (1001)"
        run -c "SELECT count(*), sum(n) FROM t"
    "#;
    let Some(output) = on_small_disk(16, script) else {
        println!("left out: this system has no small disks for tests");
        return;
    };
    assert!(!output.contains("panicked") && !output.contains("internal error"), "{output}");
    let (full, free) = output.split_once("free\n").expect("both parts");
    assert!(["full", "no space left", "disk I/O error"].iter().any(|words| full.contains(words)), "{output}");
    assert!(free.contains("1001,501501\nexit 0"), "{output}");
}

/// Spills are bounded by the disk as well.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_with_spills() {
    let script = r#"
        run -c "CREATE TABLE t AS SELECT 1 AS n"
        run --set memory_limit=32MB --set datafusion.execution.target_partitions=1 --keep-going -c "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY u) AS r FROM (SELECT CAST(uuid() AS TEXT) AS u FROM generate_series(1, 2000000)))" -c "SELECT n + 41 FROM t"
        find "$DISK/home/tmp" -type f | wc -l
    "#;
    let Some(output) = on_small_disk(16, script) else {
        println!("left out: this system has no small disks for tests");
        return;
    };
    assert!(!output.contains("panicked") && !output.contains("internal error"), "{output}");
    assert!(output.contains("error: ") && output.contains("42\nexit 1"), "{output}");
    assert_eq!(output.trim_end().rsplit('\n').next().map(str::trim), Some("0"), "{output}");
}

/// The same without any right: files may not grow beyond a few megabytes.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    let program = Program::on(&home);
    program.run("CREATE TABLE t AS SELECT value AS n, 'x' AS s FROM generate_series(1, 1000)").rows();
    // In blocks of 512 bytes. The signal is ignored, so that writing fails instead.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 8000; exec \"$0\" \"$@\""]).arg(binary());
    command.arg("--home").arg(&home).args(["-c", LARGE]);
    clean(&mut command);
    let error = finish(command, b"").error();
    assert!(error.contains("file too large") && error.contains(&home.display().to_string()), "{error}");
    assert_eq!(program.run("SELECT count(*), sum(n) FROM t").rows(), "1000,500500");
    program.run("INSERT INTO t VALUES (1001, 'y')").rows();
    assert_eq!(program.run("SELECT count(*), sum(n) FROM t").rows(), "1001,501501");
}
