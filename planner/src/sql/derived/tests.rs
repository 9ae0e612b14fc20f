//! What statements about derived data are read as.

use super::super::{ParseOptions, parse};
use super::*;

fn read(sql: &str) -> Statement {
    let parsed = parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
    parsed.unwrap_or_else(|| panic!("{sql}: nothing"))
}

fn query(sql: &str) -> Subject {
    match read(sql) {
        Statement::DataFusion(statement) => Subject::Statement(statement),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn subjects() {
    let entry = Subject::Entry("8d2f".to_owned());
    assert_eq!(read("EXPLAIN PROVENANCE ENTRY '8d2f';"), Statement::ExplainProvenance(entry.clone()));
    assert_eq!(read("verify entry '8d2f'"), Statement::Verify(entry));
    assert_eq!(read("VERIFY SELECT 1;"), Statement::Verify(query("SELECT 1")));
    assert_eq!(read("explain provenance with x as (select 1) select * from x"), {
        Statement::ExplainProvenance(query("with x as (select 1) select * from x"))
    });
    assert_eq!(read("VERIFY ALL"), Statement::Verify(Subject::All(Percent(100.0))));
    assert_eq!(read("VERIFY ALL SAMPLE 0.5 PERCENT;"), Statement::Verify(Subject::All(Percent(0.5))));
    for (name, table) in [("t", "t"), ("s.\"T x\"", "s.\"T x\""), ("entry;", "entry"), ("\"all\"", "\"all\"")] {
        let Statement::Verify(Subject::Statement(found)) = read(&format!("VERIFY {name}")) else { panic!("{name}") };
        assert_eq!(found.to_string(), format!("SELECT * FROM {table}"), "{name}");
    }
}

#[test]
fn sources() {
    assert_eq!(
        read("PURGE DERIVED FROM 's3://b/*.csv'"),
        Statement::Purge(PurgeSource::Text("s3://b/*.csv".to_owned()))
    );
    let Statement::Purge(PurgeSource::Table(name)) = read("purge derived from s.t;") else { panic!("a table") };
    assert_eq!(name.to_string(), "s.t");
}

#[test]
fn mistakes_are_told() {
    for (sql, words) in [
        ("PURGE DERIVED 't'", "expected FROM"),
        ("PURGE DERIVED FROM", "expected"),
        ("VERIFY", "expected"),
        ("VERIFY ALL SAMPLE x PERCENT", "expected a number above 0 and up to 100"),
        ("VERIFY ALL SAMPLE 101 PERCENT", "expected a number above 0 and up to 100"),
        ("VERIFY ALL SAMPLE 10", "expected PERCENT"),
        ("VERIFY ENTRY 'a' 'b'", "expected the end of the statement"),
    ] {
        let error = parse(sql, &ParseOptions::default()).expect_err(sql).to_string();
        assert!(error.contains(words), "{sql}: {error}");
    }
}
