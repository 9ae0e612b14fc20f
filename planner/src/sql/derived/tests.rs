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
fn pins() {
    let entry = PinTarget::Entry("8d2f".to_owned());
    assert_eq!(read("PIN ENTRY '8d2f';"), Statement::Pin(entry.clone()));
    assert_eq!(read("unpin entry '8d2f'"), Statement::Unpin(entry));
    for (sql, query_text) in [
        ("PIN SELECT 1;", "SELECT 1"),
        (" -- why\n pin  with x as (select 1)\n select * from x ; ", "with x as (select 1)\n select * from x"),
        ("PIN (SELECT 'ü;') -- that's it", "(SELECT 'ü;')"),
        ("PIN SELECT entry FROM pin", "SELECT entry FROM pin"),
    ] {
        let Statement::Pin(PinTarget::Query { statement, text }) = read(sql) else { panic!("{sql}") };
        assert!(text.starts_with(query_text), "{sql}: {text}");
        assert_eq!(query(query_text), Subject::Statement(statement), "{sql}");
    }
    let Statement::Unpin(PinTarget::View(name)) = read("UNPIN MATERIALIZED VIEW s.\"V\";") else { panic!("a view") };
    assert_eq!(name.to_string(), "s.\"V\"");
    // Their words are names like any other everywhere else.
    assert!(matches!(read("SELECT pin, unpin FROM pins AS pin"), Statement::DataFusion(_)));
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
        ("PIN", "expected a query, ENTRY 'fingerprint' or MATERIALIZED VIEW"),
        ("PIN v", "expected a query, ENTRY 'fingerprint' or MATERIALIZED VIEW, found \"v\""),
        ("UNPIN ALL;", "expected a query"),
        ("PIN MATERIALIZED VIEW", "expected"),
        ("PIN ENTRY 'a' 'b'", "expected the end of the statement"),
    ] {
        let error = parse(sql, &ParseOptions::default()).expect_err(sql).to_string();
        assert!(error.contains(words), "{sql}: {error}");
    }
}
