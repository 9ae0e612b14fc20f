//! `system.reports`: queries that run by the clock. Of a user who is no administrator: his own.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::Report;

use super::{flag, number, table_of, text, time};
use crate::access::Rights;
use crate::redact::redact;
use crate::report::{definition, may_see, next_run, output_text};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("name"),
        text("owner"),
        flag("paused"),
        text("schedule"),
        text("time_zone"),
        text("output"),
        time("next_run"),
        text("depends_on"),
        text("expect"),
        number("retries"),
        text("definition"),
        time("created_at"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog, rights: &Rights) -> Result<RecordBatch> {
    let mut reports = catalog.shared.store.reports().await.map_err(wrap)?;
    reports.retain(|report| may_see(rights, report));
    let now = catalog.shared.reuse.clock.now_ns().div_euclid(1000);
    let texts = |of: &dyn Fn(&Report) -> Option<String>| -> ArrayRef {
        Arc::new(reports.iter().map(of).collect::<StringArray>())
    };
    let times = |of: &dyn Fn(&Report) -> Option<i64>| -> ArrayRef {
        Arc::new(reports.iter().map(of).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    };
    let listed = |list: &[String]| (!list.is_empty()).then(|| list.join(", "));
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            texts(&|report| Some(report.name.clone())),
            texts(&|report| report.owner.clone()),
            Arc::new(reports.iter().map(|report| Some(report.paused)).collect::<BooleanArray>()),
            texts(&|report| Some(report.spec.schedule.clone())),
            texts(&|report| Some(report.spec.time_zone.clone())),
            texts(&|report| Some(output_text(report))),
            times(&|report| next_run(report, now)),
            texts(&|report| listed(&report.spec.depends_on)),
            texts(&|report| listed(&report.spec.expect)),
            Arc::new(reports.iter().map(|report| Some(i64::from(report.spec.retries))).collect::<Int64Array>()),
            texts(&|report| Some(redact(&definition(report)))),
            times(&|report| Some(report.created_at)),
        ],
    )?)
}
