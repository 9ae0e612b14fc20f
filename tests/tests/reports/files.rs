//! `nectarine report`: the statements as commands, and a folder of files.

use nectarine_tests::program::{Program, Ran, finish};

fn report(program: &Program, arguments: &[&str]) -> Ran {
    let mut command = program.command();
    command.arg("report").args(arguments);
    finish(command, b"")
}

#[test]
fn a_folder_of_files_is_applied() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    program.run("CREATE TABLE t AS SELECT 1 AS a").rows();
    let files = folder.path().join("reports");
    std::fs::create_dir(&files).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(files.join(name), text).expect("a file");
    let out = folder.path().join("out").display().to_string();
    write("b.sql", &format!("-- schedule: 0 6 * * *\n-- output: {out}/b-{{date}}.csv\nSELECT a FROM t\n"));
    // It comes first by its name, and needs the other.
    write(
        "a.sql",
        &format!("-- schedule: @daily\n-- output: {out}/a.md\n-- depends on: b\nSELECT a FROM t;\nSELECT 2 AS c;\n"),
    );
    write("notes.txt", "no report");
    let path = files.display().to_string();

    let told = report(&program, &["apply", "--dry-run", &path]);
    assert!(told.stderr.contains("new: a") && told.stderr.contains("new: b"), "{told:?}");
    assert_eq!(program.run("SELECT count(*) FROM system.reports").rows(), "0");
    let told = report(&program, &["diff", &path]).rows();
    assert!(told.contains("+ SCHEDULE '0 6 * * *' TIME ZONE 'UTC'"), "{told}");

    let told = report(&program, &["apply", &path]);
    assert!(told.status.success() && told.stderr.contains("new: a"), "{told:?}");
    let told = report(&program, &["apply", &path]);
    assert!(told.stderr.contains("2 of 2 are as they should be") && !told.stderr.contains("changed"), "{told:?}");
    assert_eq!(report(&program, &["diff", &path]).rows(), "");

    write("b.sql", &format!("-- schedule: 0 7 * * *\n-- output: {out}/b-{{date}}.csv\nSELECT a FROM t\n"));
    let told = report(&program, &["diff", &path]).rows();
    assert!(told.contains("- SCHEDULE '0 6 * * *' TIME ZONE 'UTC'\n+ SCHEDULE '0 7 * * *' TIME ZONE 'UTC'"), "{told}");
    assert!(report(&program, &["apply", &path]).stderr.contains("changed: b"));

    let ran = report(&program, &["run", "b", "--for", "2026-11-17"]).rows();
    assert!(ran.contains("finished"), "{ran}");
    assert_eq!(std::fs::read_to_string(format!("{out}/b-2026-11-17.csv")).expect("a file"), "a\n1\n");
    assert!(report(&program, &["ls"]).rows().contains("b,0 7 * * *,UTC"));
    assert!(report(&program, &["show", "b"]).rows().contains("finished"));
    assert!(report(&program, &["pause", "b"]).status.success());
    assert!(report(&program, &["resume", "b"]).status.success());
    assert!(report(&program, &["drop", "b"]).error().contains("depends on it"));

    write("c.sql", "-- shedule: x\nSELECT 1");
    let error = report(&program, &["apply", &path]).error();
    assert!(error.contains("c.sql") && error.contains("shedule"), "{error}");
    std::fs::remove_file(files.join("c.sql")).expect("a file");
    std::fs::remove_file(files.join("a.sql")).expect("a file");
    assert!(report(&program, &["apply", "--prune", &path]).stderr.contains("dropped: a"));
    assert_eq!(program.run("SELECT name FROM system.reports").rows(), "b");
}
