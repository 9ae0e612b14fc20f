//! Columns of JSON files: as they come, and with a word about those that cannot be.

use nectarine_tests::db::Db;

#[tokio::test]
async fn columns_come_as_they_are_written() {
    let db = Db::new().await;
    db.file("a.ndjson", "{\"z\":1,\"b\":{\"y\":2,\"x\":3}}\n{\"c\":4,\"z\":5}\n");
    db.ok("CREATE EXTERNAL TABLE a STORED AS JSON LOCATION '{dir}/a.ndjson'").await;
    let columns = "SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_name = ";
    assert_eq!(db.ok(&format!("{columns} 'a'")).await, "z b c");
    assert_eq!(db.ok("SELECT * FROM a").await, "1|{y: 2, x: 3}|NULL\n5|NULL|4");
    assert_eq!(db.ok("SELECT * FROM '{dir}/a.ndjson' WHERE z = 5").await, "5|NULL|4");
    // Those of the first file first.
    db.file("two/1.json", "{\"m\":1,\"k\":2}\n");
    db.file("two/2.json", "{\"a\":3,\"k\":4,\"m\":5}\n");
    db.ok("CREATE EXTERNAL TABLE two STORED AS JSON LOCATION '{dir}/two/'").await;
    assert_eq!(db.ok(&format!("{columns} 'two'")).await, "m k a");
    assert_eq!(db.ok("SELECT * FROM two ORDER BY m").await, "1|2|NULL\n5|4|3");
    // One array.
    db.file("array.json", "[{\"z\":1,\"y\":[{\"d\":1,\"c\":2}]},\n {\"a\":2}]");
    assert_eq!(db.ok("SELECT * FROM '{dir}/array.json'").await, "1|[{d: 1, c: 2}]|NULL\nNULL|NULL|2");
}

#[tokio::test]
async fn what_is_no_column_is_told() {
    let db = Db::new().await;
    db.file("a.json", "{\"n\":0}\n{\"n\":1,\"o\":{\"p\":1}}\n{\"n\":2,\"o\":{\"p\":{}}}\n");
    let error = db.err("SELECT * FROM '{dir}/a.json'").await;
    assert!(
        error.contains("a.json") && error.contains("line 3: \"o.p\" is an object, and was a number before"),
        "{error}"
    );
    // Behind the records that tell the columns.
    let mut later = "{\"o\":{\"p\":1}}\n".repeat(1500);
    later.push_str("{\"o\":5}\n");
    db.file("later.json", later);
    let error = db.err("SELECT sum(o['p']) FROM '{dir}/later.json'").await;
    assert!(error.contains("later.json") && error.contains("column \"o\" is an object, but there is 5"), "{error}");
}

/// As `json.dump(rows, file, indent=2)` writes them: an array whose elements have lines of their own.
#[tokio::test]
async fn arrays_with_lines_in_their_elements() {
    let db = Db::new().await;
    let pretty = r#"[
  {
    "z": 1,
    "a": {
      "b": [
        1,
        2
      ]
    }
  },
  {
    "z": 2.5,
    "t": "], {"
  }
]
"#;
    db.file("pretty.json", pretty);
    db.file("marked.json", format!("\u{feff}{pretty}"));
    db.file("packed.json.gz", nectarine_tests::files::gz(pretty.as_bytes()));
    for name in ["pretty.json", "marked.json", "packed.json.gz"] {
        let rows = "1.0|{b: [1, 2]}|NULL\n2.5|NULL|], {";
        assert_eq!(db.ok(&format!("SELECT * FROM '{{dir}}/{name}'")).await, rows, "{name}");
        db.ok(&format!("CREATE OR REPLACE EXTERNAL TABLE told STORED AS JSON LOCATION '{{dir}}/{name}'")).await;
        assert_eq!(db.ok("SELECT t, z FROM told ORDER BY z").await, "NULL|1.0\n], {|2.5", "{name}");
        // Nobody needs to say that it is an array, even where the columns are given.
        db.ok(&format!(
            "CREATE OR REPLACE EXTERNAL TABLE given (t TEXT, z DOUBLE) STORED AS JSON LOCATION '{{dir}}/{name}'"
        ))
        .await;
        assert_eq!(db.ok("SELECT t, z FROM given ORDER BY z").await, "NULL|1.0\n], {|2.5", "{name}");
        db.ok("CREATE OR REPLACE TABLE copied AS SELECT * FROM '{dir}/pretty.json' WHERE false").await;
        assert_eq!(db.ok(&format!("COPY copied FROM '{{dir}}/{name}'")).await, "COPY 2", "{name}");
    }
    // More elements than are looked at, and more lines than that.
    let many: Vec<String> = (0..3000).map(|n| format!("{{\n\"n\": {n},\n\"s\": \"x\"\n}}")).collect();
    db.file("many.json", format!("[{}]", many.join(", ")));
    assert_eq!(db.ok("SELECT count(*), sum(n), min(s) FROM '{dir}/many.json'").await, "3000|4498500|x");
    for (text, told) in [
        ("[\n{\n\"a\": {}\n},\n{\n\"a\": 5\n}\n]", "element 2: \"a\" is a number, and was an object before"),
        ("[\n{\n\"a\": 1\n},\n{\n\"a\": oops\n}\n]", "in element 2"),
        ("[\n{\n\"a\": 1\n},\n{\n\"a\": 2\n}\n", "closing bracket"),
        ("[\n1,\n2\n]", "a record is not an object"),
    ] {
        db.file("bad.json", text);
        let error = db.err("SELECT * FROM '{dir}/bad.json'").await;
        assert!(error.contains("{dir}/bad.json") && error.contains(told), "{text}: {error}");
        assert!(!error.contains("newline_delimited"), "{text}: {error}");
    }
}
