//! Paths in what is kept mean the same from every folder; paths in a statement begin where it is asked from.

use std::path::{Path, PathBuf};

use nectarine_tests::program::{Program, finish};
use tempfile::TempDir;

/// Two folders with files of the same names and other rows.
struct Folders {
    folder: TempDir,
    program: Program,
}

impl Folders {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, number) in [("a", 1), ("b", 100)] {
            let data = folder.path().join(name).join("data");
            std::fs::create_dir_all(&data).expect("a folder");
            std::fs::write(data.join("x.csv"), format!("n\n{number}\n")).expect("a file");
        }
        let program = Program::on(&folder.path().join("home"));
        Self { folder, program }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run_in(&self, folder: &Path, sql: &str) -> String {
        let mut command = self.program.command();
        command.current_dir(folder).args(["-c", sql]);
        finish(command, b"").rows()
    }
}

#[test]
fn what_is_kept_means_the_same_from_every_folder() {
    let folders = Folders::new();
    let (a, b) = (folders.at("a"), folders.at("b"));
    folders.run_in(
        &a,
        "CREATE VIEW v AS SELECT n FROM 'data/*.csv' -- a comment\n;
         CREATE VIEW w (m) AS WITH \"c.csv\" AS (SELECT n FROM './data/x.csv') SELECT c.n FROM \"c.csv\" c JOIN \"data/x.csv\" USING (n);
         CREATE MATERIALIZED VIEW m AS SELECT sum(n) AS n FROM 'data/';
         CREATE DERIVED TABLE d AS SELECT sum(n) AS n FROM 'data/x.csv';
         CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'data/';
         CREATE TABLE \"t.csv\" AS SELECT 7 AS n;
         CREATE VIEW t AS SELECT n FROM \"t.csv\"",
    );
    for (name, column) in [("v", "n"), ("w", "m"), ("m", "n"), ("d", "n"), ("e", "n")] {
        let sql = format!("SELECT sum({column}) FROM {name}");
        for folder in [&a, &b, &folders.at("")] {
            assert_eq!(folders.run_in(folder, &sql), "1", "{name} from {}", folder.display());
        }
    }
    assert_eq!(folders.run_in(&b, "SELECT n FROM t"), "7", "a table's name stays one");
    // What shows them shows where they lead, and works wherever it is run.
    for (kind, name) in
        [("VIEW", "v"), ("VIEW", "w"), ("MATERIALIZED VIEW", "m"), ("DERIVED TABLE", "d"), ("TABLE", "e")]
    {
        let shown = folders.run_in(&b, &format!("SHOW CREATE {kind} {name}"));
        assert!(shown.contains(&a.join("data").display().to_string()), "{shown}");
        assert!(!shown.contains("'data/") && !shown.contains("'./data"), "{shown}");
    }
    let shown = folders.run_in(&b, "SHOW CREATE VIEW v");
    assert!(shown.contains("-- a comment"), "{shown}");
    // What is wrong is told where it was written.
    let mut command = folders.program.command();
    command.current_dir(&a).args(["-c", "CREATE VIEW x AS SELECT n, nope FROM 'data/*.csv'"]);
    let error = finish(command, b"").error();
    assert!(
        error.contains(
            "LINE 1: CREATE VIEW x AS SELECT n, nope FROM 'data/*.csv'\n                                   ^"
        ),
        "{error}"
    );
}

#[test]
fn a_statement_begins_where_it_is_asked_from() {
    let folders = Folders::new();
    let script = format!(
        "\\cd '{}'\nSELECT n FROM 'data/x.csv';\nSELECT n FROM 'data/x.csv';\n\\cd ../b\nSELECT n FROM 'data/x.csv';\n",
        folders.at("a").display()
    );
    let mut command = folders.program.command();
    command.args(["-f", "-"]);
    assert_eq!(finish(command, script.as_bytes()).rows(), "1\n1\n100");
}
