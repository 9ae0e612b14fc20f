//! Fingerprints of a fixed set of statements: a change of the encoding shows as a diff, and must raise `ENCODING`.

use std::fmt::Write;

use nectarine_catalog::Fingerprint;

use crate::canonical::fixture::Fixture;

pub(crate) const QUERIES: &[&str] = &[
    "SELECT a, b FROM t",
    "SELECT a + 1 FROM t WHERE b > 3 AND s = 'x'",
    "SELECT a, sum(b), avg(d), count(*) FROM t WHERE c > 1 GROUP BY a",
    "SELECT a, b, sum(c) FROM t GROUP BY ROLLUP (a, b)",
    "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND t.b < u.b",
    "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.b IS NULL",
    "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)",
    "SELECT a, b FROM t ORDER BY b DESC LIMIT 5 OFFSET 2",
    "SELECT a, rank() OVER (PARTITION BY a ORDER BY b) FROM t",
    "SELECT a, sum(b) OVER (ORDER BY ts ROWS 2 PRECEDING) FROM t",
    "SELECT a FROM t UNION ALL SELECT a FROM u",
    "SELECT a, unnest(items) FROM t",
    "SELECT CASE WHEN flag THEN upper(s) ELSE r END, CAST(f AS INT), ts::date FROM t",
    "SELECT t.a, u.b FROM t CROSS JOIN u",
];

#[tokio::test]
async fn the_encoding_is_frozen() {
    let fixture = Fixture::new();
    let mut golden = String::new();
    for sql in QUERIES {
        let prefix = fixture.root(sql).await.unwrap();
        // Without the salt, which changes with every version.
        let digest = Fingerprint::of_bytes(&prefix.encoding).to_string();
        writeln!(golden, "{}  {sql}", &digest[..16]).unwrap();
    }
    insta::assert_snapshot!(golden);
}
