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
