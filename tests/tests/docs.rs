//! docs/settings.md says what the code says: `NECTARINE_APPROVE=1` writes it anew. What docs/reports.md shows works as it is shown. All
//! that the book shows is run (`book`).

mod book;
mod page;

use std::fs;
use std::path::Path;

use nectarine_engine::{Settings, split_statements};
use nectarine_tests::db::Db;

fn reference() -> String {
    let mut text = String::from(
        "# Settings\n\n\
         Made from the code by `NECTARINE_APPROVE=1 tests/run settings_reference`; do not edit.\n\n\
         A later layer wins: defaults, `nectarine.toml` in the home, environment variables (`NECTARINE_MEMORY_LIMIT`), flags \
         (`--set memory_limit=8GB`), `SET nectarine.query_memory = '2GB'`. DataFusion's own settings (`datafusion.execution.batch_size`, ..) \
         take the same way, but for those of its runtime (`datafusion.runtime.memory_limit`, ..), which are refused: what all sessions \
         share is bounded by `nectarine.memory_limit` and `nectarine.spill_limit`. `SELECT * FROM system.settings` lists all settings with \
         their values and where they came from. A name that is no setting is refused, with the nearest one; in the environment, which \
         others use too, it is told as a notice.\n\n\
         <!-- file: home/nectarine.toml -->\n```toml\n# nectarine.toml\nmemory_limit = \"8GB\"\n\n[datafusion.execution]\ntarget_partitions = 8\n```\n\n\
         ```sql\nSHOW nectarine.memory_limit;\nSELECT * FROM system.settings;\n```\n",
    );
    for setting in Settings::docs() {
        text.push_str(&format!("\n## {}\n\n{} Default: `{}`.\n", setting.name, setting.doc, setting.default));
    }
    text
}

#[test]
fn settings_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").join("docs/settings.md");
    let expected = reference();
    if std::env::var_os("NECTARINE_APPROVE").is_some() {
        fs::write(&path, &expected).expect("docs can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/settings.md is not what the code says: NECTARINE_APPROVE=1 tests/run settings_reference"
    );
}

/// Every statement of the page, in order.
#[tokio::test(flavor = "multi_thread")]
async fn reports_as_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").join("docs/reports.md");
    let text = fs::read_to_string(path).expect("the page");
    let db = Db::new().await;
    let mut n_statements = 0;
    for block in text.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        // Paths begin where the process was started: here, beside the home.
        let block = block.replace("'reports/", "'{dir}/reports/");
        for range in split_statements(&block) {
            db.ok(&block[range]).await;
            n_statements += 1;
        }
    }
    assert!(n_statements > 15, "the page has statements");
    assert!(db.folder().join("reports/sales-2026-11-17.html").exists());
    assert_eq!(db.ok("SELECT CAST(at AS TEXT), amount FROM totals").await, "2026-11-17T06:00:00|30");
}
