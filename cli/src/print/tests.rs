//! What every format makes of the same awkward rows.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use arrow::record_batch::RecordBatch;

use super::{Expanded, Format, Paper, View, sink};

struct Sheet {
    text: Vec<u8>,
    window: Option<(usize, usize)>,
    announced: Vec<(usize, usize)>,
}

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper for Sheet {
    fn window(&self) -> Option<(usize, usize)> {
        self.window
    }

    fn announce(&mut self, lines: usize, columns: usize) {
        self.announced.push((lines, columns));
    }
}

fn print_in(view: &View, batches: &[RecordBatch], window: Option<(usize, usize)>) -> String {
    let mut sheet = Sheet { text: Vec::new(), window, announced: Vec::new() };
    let mut sink = sink(view, batches[0].schema(), None);
    for batch in batches {
        sink.batch(batch, &mut sheet).unwrap();
    }
    sink.finish(&mut sheet).unwrap();
    String::from_utf8(sheet.text).unwrap()
}

fn print(view: &View, batch: &RecordBatch) -> String {
    print_in(view, std::slice::from_ref(batch), None)
}

fn names() -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(-300)]));
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a,\"b\""), None, Some("日本 | 🙂\nx")]));
    RecordBatch::try_from_iter_with_nullable([("n", n, true), ("name", name, true)]).unwrap()
}

fn values() -> RecordBatch {
    let list: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None]));
    let fields = vec![Arc::new(Field::new("a", DataType::Utf8, true))];
    let object: ArrayRef =
        Arc::new(StructArray::new(fields.into(), vec![Arc::new(StringArray::from(vec!["x\"y", "z"]))], None));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(b"\x00\xff".as_slice()), None]));
    let money: ArrayRef = Arc::new(Decimal128Array::from(vec![12345, -5]).with_precision_and_scale(9, 2).unwrap());
    let at: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_123_000, 0]).with_timezone("+02:00"));
    let float: ArrayRef = Arc::new(Float64Array::from(vec![1.5, f64::NAN]));
    let columns =
        [("list", list), ("object", object), ("bytes", bytes), ("money", money), ("at", at), ("float", float)];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn view(format: Format) -> View {
    View::new(format, true)
}

#[test]
fn tables_align_numbers_wide_characters_and_lines() {
    assert_eq!(
        print(&view(Format::Table), &names()),
        "\
┌──────┬───────────┐
│    n │ name      │
├──────┼───────────┤
│    1 │ a,\"b\"     │
│ NULL │ NULL      │
│ -300 │ 日本 | 🙂↵│
│      │ x         │
└──────┴───────────┘
(3 rows)
"
    );
    let mut plain = View { border: 1, unicode: false, null: Some("-".to_owned()), ..view(Format::Table) };
    plain.footer = false;
    assert_eq!(
        print(&plain, &names()),
        "    n | name\n------+-----------\n    1 | a,\"b\"\n    - | -\n -300 | 日本 | 🙂+\n      | x\n"
    );
    plain.border = 0;
    plain.header = false;
    assert_eq!(print(&plain, &names()), "   1 a,\"b\"\n   - -\n-300 日本 | 🙂+\n     x\n");
}

#[test]
fn records_have_a_line_per_column() {
    let view = View { expanded: Expanded::On, unicode: false, ..view(Format::Table) };
    assert_eq!(
        print(&view, &names()),
        "-[ RECORD 1 ]---\nn    | 1\nname | a,\"b\"\n-[ RECORD 2 ]---\nn    | NULL\nname | NULL\n-[ RECORD 3 ]---\nn    | -300\nname | 日本 | 🙂+\n     | x\n(3 rows)\n"
    );
}

#[test]
fn values_of_all_kinds_are_readable() {
    let shown =
        print(&View { expanded: Expanded::On, unicode: false, footer: false, ..view(Format::Table) }, &values());
    for line in [
        "list   | [1, NULL]",
        "object | {a: x\"y}",
        "bytes  | \\x00ff",
        "money  | 123.45",
        "at     | 2023-11-15 00:13:20.123+02:00",
        "at     | 1970-01-01 02:00:00+02:00",
        "float  | NaN",
        "list   | NULL",
        "money  | -0.05",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} in\n{shown}");
    }
}

#[test]
fn csv_quotes_and_keeps_nested_values_as_json() {
    assert_eq!(print(&view(Format::Csv), &names()), "n,name\n1,\"a,\"\"b\"\"\"\n,\n-300,\"日本 | 🙂\nx\"\n");
    assert_eq!(
        print(&view(Format::Csv), &values()),
        "list,object,bytes,money,at,float\n\
         \"[1,null]\",\"{\"\"a\"\":\"\"x\\\"\"y\"\"}\",00ff,123.45,2023-11-15T00:13:20.123+02:00,1.5\n\
         ,\"{\"\"a\"\":\"\"z\"\"}\",,-0.05,1970-01-01T02:00:00+02:00,NaN\n"
    );
    let bare = View { header: false, null: Some("\\N".to_owned()), ..view(Format::Tsv) };
    assert_eq!(print(&bare, &names().slice(0, 2)), "1\t\"a,\"\"b\"\"\"\n\\N\t\\N\n");
}

#[test]
fn headers_appear_once_and_without_rows() {
    let batch = names().slice(0, 1);
    assert_eq!(
        print_in(&view(Format::Csv), &[batch.clone(), batch.clone()], None),
        "n,name\n1,\"a,\"\"b\"\"\"\n1,\"a,\"\"b\"\"\"\n"
    );
    let empty = batch.slice(0, 0);
    assert_eq!(print(&view(Format::Csv), &empty), "n,name\n");
    assert_eq!(print(&view(Format::Json), &empty), "[]\n");
    assert_eq!(print(&view(Format::Ndjson), &empty), "");
    assert_eq!(
        print(&view(Format::Table), &empty),
        "┌───┬──────┐\n│ n │ name │\n├───┼──────┤\n└───┴──────┘\n(0 rows)\n"
    );
    assert_eq!(
        print(&view(Format::Html), &empty),
        "<table>\n<thead><tr><th>n</th><th>name</th></tr></thead>\n<tbody>\n</tbody>\n</table>\n"
    );
}

#[test]
fn json_is_one_array_or_one_object_per_line() {
    let batch = names();
    let halves = [batch.slice(0, 2), batch.slice(2, 1)];
    assert_eq!(
        print_in(&view(Format::Json), &halves, None),
        "[{\"n\":1,\"name\":\"a,\\\"b\\\"\"},\n{\"n\":null,\"name\":null},\n{\"n\":-300,\"name\":\"日本 | 🙂\\nx\"}]\n"
    );
    assert_eq!(print(&view(Format::Ndjson), &batch).lines().count(), 3);
    for line in print(&view(Format::Ndjson), &values()).lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["object"]["a"].is_string(), "{line}");
    }
}

#[test]
fn markup_escapes_what_would_be_markup() {
    assert_eq!(
        print(&view(Format::Markdown), &names()),
        "\
|    n | name            |
|-----:|-----------------|
|    1 | a,\"b\"           |
| NULL | NULL            |
| -300 | 日本 \\| 🙂<br>x |
"
    );
    let text: ArrayRef = Arc::new(StringArray::from(vec!["<b>&'\"</b>"]));
    let batch = RecordBatch::try_from_iter([("a<b", text)]).unwrap();
    let html = print(&view(Format::Html), &batch);
    assert!(
        html.contains("<th>a&lt;b</th>") && html.contains("<td>&lt;b&gt;&amp;&#39;&quot;&lt;/b&gt;</td>"),
        "{html}"
    );
    let markdown = print(&view(Format::Markdown), &batch);
    assert!(markdown.contains("&lt;b>&'\"&lt;/b>"), "{markdown}");
}

#[test]
fn a_window_makes_text_columns_give_way() {
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["word ".repeat(20)]));
    let batch = RecordBatch::try_from_iter([("n", n), ("text", text)]).unwrap();
    let shown = print_in(&view(Format::Table), std::slice::from_ref(&batch), Some((40, 20)));
    assert!(shown.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 40), "{shown}");
    assert_eq!(shown.matches("word").count(), 20, "{shown}");
    let records = print_in(&View { expanded: Expanded::Auto, ..view(Format::Table) }, &[batch], Some((40, 20)));
    assert!(records.starts_with("─[ RECORD 1 ]"), "{records}");
}

#[test]
fn control_characters_cannot_reach_the_terminal() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a\tb\x1b[31mred\r\u{202e}"]));
    let batch = RecordBatch::try_from_iter([("t", text)]).unwrap();
    let shown = print(&View { border: 0, header: false, footer: false, ..view(Format::Table) }, &batch);
    assert_eq!(shown, "a       b\\x1B[31mred\\r\\u202E\n");
}

#[test]
fn long_answers_keep_the_first_widths() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..25_000));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..25_000).map(|n| if n == 20_000 { "much too wide" } else { "ok" })));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("t", text)]).unwrap();
    let shown = print(&view(Format::Table), &batch);
    let width = shown.lines().next().unwrap().chars().count();
    assert!(shown.lines().filter(|line| line.starts_with('│')).all(|line| line.chars().count() == width));
    assert!(shown.ends_with("(25000 rows)\n"));
}
