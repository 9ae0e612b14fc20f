//! Plans as they are told to users who may not know where the server keeps its files, or what is in rows that a view hides.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

/// What stands before the list of a scan's files.
const FILES: &str = "file_groups={";
/// What stands before the name of a file that a figure is about, and behind it.
const FILE: (&str, &str) = ("filename=", "}=");

/// What stands before the place that an INSERT writes to, and behind it.
const SINK: (&str, &str) = ("FolderSink(location=", ", ending=");
/// How the kinds of plans end that tell figures of columns: of all rows, also of those that a view leaves out.
const FIGURES: &str = "_with_stats";

/// The rows of `EXPLAIN` without the names of files, and without figures of columns.
pub(crate) fn discreet(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = rows.map(|batch| batch.and_then(|batch| batch_without(&batch)));
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn batch_without(batch: &RecordBatch) -> Result<RecordBatch> {
    let column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8 => {
            let texts = column.as_string::<i32>().iter().map(|text| text.map(text_without));
            Arc::new(texts.collect::<StringArray>()) as ArrayRef
        }
        _ => Arc::clone(column),
    };
    let told = RecordBatch::try_new(batch.schema(), batch.columns().iter().map(column).collect())?;
    let Some(kinds) = told.columns().first().and_then(|kinds| kinds.as_string_opt::<i32>()) else { return Ok(told) };
    let is_told: BooleanArray =
        kinds.iter().map(|kind| Some(!kind.is_some_and(|kind| kind.ends_with(FIGURES)))).collect();
    Ok(filter_record_batch(&told, &is_told)?)
}

fn text_without(text: &str) -> String {
    sinks_without(&figures_without(&groups_without(text)))
}

fn sinks_without(text: &str) -> String {
    let mut parts = text.split(SINK.0);
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        shown.push_str(SINK.0);
        shown.push_str("..");
        shown.push_str(part.find(SINK.1).map_or("", |end| &part[end..]));
    }
    shown
}

fn figures_without(text: &str) -> String {
    let mut parts = text.split(FILE.0);
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        shown.push_str(FILE.0);
        shown.push_str("..");
        shown.push_str(part.find(FILE.1).map_or("", |end| &part[end..]));
    }
    shown
}

fn groups_without(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(FILES) {
        let (before, files) = rest.split_at(start + FILES.len());
        shown.push_str(before);
        // How many groups there are, but not what is in them. Names of files may hold anything: without an end all is left out.
        let n_groups = files.split_once(':').map(|(n, _)| n).filter(|n| n.len() < 20 && n.ends_with(['p', 's']));
        shown.push_str(n_groups.unwrap_or(".."));
        shown.push('}');
        rest = files.find("]]}").map_or("", |end| &files[end + 3..]);
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_out() {
        let text = "DataSourceExec: file_groups={2 groups: [[srv/a}.csv], [srv/b.csv:0..5]]}, projection=[a]\n\
                    DataSourceExec: file_groups={1 group: [[x]]}, file_type=csv";
        let shown = "DataSourceExec: file_groups={2 groups}, projection=[a]\n\
                     DataSourceExec: file_groups={1 group}, file_type=csv";
        assert_eq!(text_without(text), shown);
        assert_eq!(text_without("file_groups={1 group: [[secret"), "file_groups={1 group}");
        assert_eq!(text_without("Filter: a > 1"), "Filter: a > 1");
        let sink = "DataSinkExec: sink=FolderSink(location=/srv/a, ending=csv)\n  Filter";
        assert_eq!(text_without(sink), "DataSinkExec: sink=FolderSink(location=.., ending=csv)\n  Filter");
        let figures = "metrics=[opened{filename=srv/a}.csv}=1, read{partition=0, filename=srv/b}=2], rows=3";
        assert_eq!(text_without(figures), "metrics=[opened{filename=..}=1, read{partition=0, filename=..}=2], rows=3");
    }
}
