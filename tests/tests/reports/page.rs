//! The page that people look at: whole by itself, opened in a browser without a word of complaint.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use nectarine_tests::db::Db;

use super::{home, read, run_due};

const NAMES: [&str; 5] = ["kpis", "visits", "shops", "overview", "empty"];

/// Reports with results of several shapes.
async fn pages() -> Db {
    let (db, clock) = home().await;
    db.ok("CREATE TABLE traffic AS SELECT arrow_cast(arrow_cast(20684 + value, 'Int32'), 'Date32') AS day, \
           1200 + value * 9 + (value * 37) % 240 AS visits, 40 + (value * 13) % 31 AS orders FROM generate_series(0, 89)")
        .await;
    for (name, rest) in [
        (
            "kpis",
            "TITLE 'Shop at a glance' AS SELECT sum(visits) AS visits, sum(orders) AS orders, round(100.0 * sum(orders) / sum(visits), 2) AS conversion_percent FROM traffic WHERE day < :run_date",
        ),
        (
            "visits",
            "TITLE 'Visits per day' AS SELECT day, visits, orders FROM traffic WHERE day < :run_date ORDER BY day",
        ),
        (
            "shops",
            "AS SELECT * FROM (VALUES ('Hamburg & Altona', 182340.5), ('Berlin <Mitte>', 240112.25), ('Köln', 99120.0), ('München \"Süd\"', 301877.75), ('Leipzig', -12000.0)) AS t (shop, revenue) ORDER BY revenue DESC",
        ),
        (
            "overview",
            "TITLE 'Daily overview' AS $$ SELECT sum(visits) AS visits, sum(orders) AS orders FROM traffic; SELECT day, visits FROM traffic WHERE day < :run_date ORDER BY day; SELECT date_part('month', day) AS month, sum(orders) AS orders FROM traffic GROUP BY 1 ORDER BY 1 $$",
        ),
        ("empty", "AS SELECT day, visits FROM traffic WHERE visits < 0"),
    ] {
        db.ok(&format!("CREATE REPORT {name} SCHEDULE '0 6 * * *' TIME ZONE 'Europe/Berlin' OUTPUT '{{dir}}/pages/{{report}}.html' {rest}")).await;
    }
    clock.set("2026-11-17T05:00:00Z");
    assert_eq!(run_due(&db).await, 5);
    assert_eq!(db.ok("SELECT DISTINCT state FROM system.report_runs").await, "finished");
    db
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_whole_by_themselves() {
    let db = pages().await;
    for name in NAMES {
        let html = read(&db, &format!("pages/{name}.html"));
        for outside in ["http://", "https://", "src=", "@import", "url(", "<script"] {
            let found = html.replace("http-equiv", "").contains(outside);
            assert!(!found, "{name} asks for something outside: {outside}");
        }
        assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"), "{name}");
        assert!(html.contains("Tuesday, 17 November 2026, 06:00 CET"), "{name}: its time");
        assert!(html.contains("Receipt") && html.contains("@media print"), "{name}");
        assert_eq!(html.matches('<').count(), html.matches('>').count(), "{name}");
    }
    let visits = read(&db, "pages/visits.html");
    assert!(
        visits.contains("<path class=\"line s0\"") && visits.contains("<path class=\"line s1\""),
        "a line for each column"
    );
    assert!(visits.contains("<dt>run_date</dt><dd>2026-11-17</dd>") && visits.contains("Data up to"));
    assert!(visits.contains("<td class=\"n\">1,200</td>"), "numbers are grouped");
    let shops = read(&db, "pages/shops.html");
    assert_eq!(shops.matches("<rect class=\"bar").count(), 5);
    assert!(shops.contains("Berlin &lt;Mitte&gt;") && !shops.contains("<Mitte>"), "what is data stays data");
    assert!(shops.contains("<td class=\"n\">−12,000.00</td>"), "digits are aligned");
    assert!(read(&db, "pages/kpis.html").contains("<div class=\"figure\">"));
    assert!(read(&db, "pages/empty.html").contains("No rows."));
    assert_eq!(read(&db, "pages/overview.html").matches("<section>").count(), 3);
}

/// Python with a driver of browsers, and a headless Chromium; without them, the test is left out and says so.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
fn browser() -> Option<(OsString, OsString)> {
    let found = std::env::var_os("NECTARINE_TEST_PYTHON").zip(std::env::var_os("NECTARINE_TEST_BROWSER"));
    if found.is_none() {
        eprintln!("left out: NECTARINE_TEST_BROWSER names no Chromium; tests/run installs one where it can be had");
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_shows_them() {
    let Some((python, browser)) = browser() else { return };
    let db = pages().await;
    let artefacts =
        std::env::var_os("NECTARINE_TEST_ARTEFACTS").map_or_else(|| db.folder().join("shots"), PathBuf::from);
    std::fs::create_dir_all(&artefacts).expect("a folder");
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/page.py")).arg(browser).arg(&artefacts);
    command.args(NAMES.map(|name| db.folder().join(format!("pages/{name}.html"))));
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let told = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}");
    for name in NAMES {
        let shot = artefacts.join(format!("report-{name}.png"));
        let bytes = std::fs::metadata(&shot).unwrap_or_else(|error| panic!("{name}: {error}: {told}")).len();
        assert!(bytes > 5_000, "{name}: {bytes} bytes");
    }
}
