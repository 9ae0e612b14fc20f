//! Text files as they come: marks, other encodings, columns without values, arrays, packed files one after another.

use nectarine_tests::files::{append, gz, zst};

use super::{db, goes_on};

/// Whatever comes later into a column that had no values is a value, not NULL.
#[tokio::test]
async fn columns_without_a_value_so_far() {
    let db = db().await;
    let csv = db.file("n.csv", "a,b\n1,\n2,\n");
    let json = db.file("n.json", "{\"a\":1,\"b\":null}\n");
    let header = db.file("h.csv", "a,b\n");
    for (name, format) in [("n.csv", "CSV"), ("n.json", "JSON"), ("h.csv", "CSV")] {
        db.ok(&format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS {format} LOCATION '{{dir}}/{name}'")).await;
        assert_eq!(db.ok(&format!("SELECT count(b) FROM \"{name}\"")).await, "0");
    }
    append(&csv, "3,later\n");
    append(&header, "3,later\n");
    append(&json, "{\"a\":3,\"b\":\"later\"}\n");
    for name in ["n.csv", "n.json", "h.csv"] {
        assert_eq!(db.ok(&format!("SELECT b FROM \"{name}\" WHERE b IS NOT NULL")).await, "later", "{name}");
    }
    goes_on(&db).await;
}

/// A header is the first record, not the first line.
#[tokio::test]
async fn lines_before_the_header() {
    let db = db().await;
    db.file("lead.csv", "\n\r\n\na,b\n1,2\n");
    assert_eq!(db.ok("SELECT a, b FROM '{dir}/lead.csv'").await, "1|2");
    db.file("comment.csv", "# first, second\n#\n\na,b\n1,2\n");
    db.ok("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{dir}/comment.csv' OPTIONS ('format.comment' '#')").await;
    assert_eq!(db.ok("SELECT a, b FROM c").await, "1|2");
}

#[tokio::test]
async fn marks_and_other_encodings() {
    let db = db().await;
    db.file("bom.json", "\u{feff}{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(db.ok("SELECT sum(a) FROM '{dir}/bom.json'").await, "3");
    db.file("bom.csv.gz", gz("\u{feff}a,b\n1,2\n".as_bytes()));
    assert_eq!(db.ok("SELECT a, b FROM '{dir}/bom.csv.gz'").await, "1|2");
    let utf16: Vec<u8> = "\u{feff}a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    db.file("utf16.csv", &utf16);
    db.file("utf16.json", &utf16);
    for sql in ["SELECT * FROM '{dir}/utf16.csv'", "SELECT * FROM '{dir}/utf16.json'"] {
        let error = db.err(sql).await;
        assert!(error.contains("{dir}/utf16.") && error.contains("UTF-16"), "{sql}: {error}");
    }
    db.ok("CREATE EXTERNAL TABLE u (a TEXT, b TEXT) STORED AS CSV LOCATION '{dir}/utf16.csv'").await;
    let error = db.err("SELECT * FROM u").await;
    assert!(error.contains("{dir}/utf16.csv") && error.contains("UTF-16"), "{error}");
    goes_on(&db).await;
}

/// JSON as other programs write it: one array, records over several lines, types that change, numbers beyond a sign.
#[tokio::test]
async fn json_as_it_comes() {
    let db = db().await;
    db.file("array.json", "[\n  {\"a\": 1, \"b\": \"x\"},\n  {\"a\": 2, \"b\": null}\n]\n");
    assert_eq!(db.ok("SELECT a, b FROM '{dir}/array.json' ORDER BY a").await, "1|x\n2|NULL");
    db.file("array.json.gz", gz(b"[{\"a\":1},{\"a\":2}]"));
    assert_eq!(db.ok("SELECT sum(a) FROM '{dir}/array.json.gz'").await, "3");
    db.file("pretty.json", "{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n{\n  \"a\": 2\n}\n");
    assert_eq!(db.ok("SELECT a, b FROM '{dir}/pretty.json' ORDER BY a").await, "1|x\n2|NULL");
    db.file("mixed.json", "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":true}\n{\"a\":2.50}\n");
    assert_eq!(db.ok("SELECT a FROM '{dir}/mixed.json' ORDER BY a").await, "1\n2.50\ntrue\nx");
    db.file("large.json", "{\"a\":18446744073709551615}\n{\"a\":1}\n");
    assert_eq!(db.ok("SELECT max(a) FROM '{dir}/large.json'").await, "18446744073709551615");
    for (name, text) in
        [("cut.json", "[{\"a\":1},{\"a\":2}"), ("scalar.json", "1\n2\n"), ("two.json", "[{\"a\":1}]\n[{\"a\":2}]\n")]
    {
        db.file(name, text);
        let error = db.err(&format!("SELECT * FROM '{{dir}}/{name}'")).await;
        assert!(error.contains(&format!("{{dir}}/{name}")), "{error}");
    }
    goes_on(&db).await;
}

/// `cat a.gz b.gz` is one file with the rows of both.
#[tokio::test]
async fn packed_files_one_after_another() {
    let db = db().await;
    for (name, pack) in [("both.csv.gz", gz as fn(&[u8]) -> Vec<u8>), ("both.csv.zst", zst)] {
        db.file(name, [pack(b"a,b\n1,x\n"), pack(b"2,y\n")].concat());
        assert_eq!(db.ok(&format!("SELECT sum(a), count(*) FROM '{{dir}}/{name}'")).await, "3|2", "{name}");
    }
}
