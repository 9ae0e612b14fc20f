//! [`Drawing`]: what a result could be drawn as, told by its columns.
//!
//! ```text
//!   a time, numbers                 lines, one for each column of numbers
//!   a time, a text, a number        lines, one for each text
//!   a text, numbers                 bars
//!   a number that only grows, more  lines over it; bars where there are few
//!   one row of numbers              the numbers themselves, large
//! ```

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, SchemaRef, TimeUnit, TimestampMicrosecondType};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::super::compute::Section;
use super::cells::Cells;
use crate::Result;

/// More bars than this are a wall.
const BARS_MAX: usize = 30;
/// More lines than this are a tangle.
const SERIES_MAX: usize = 6;
/// More points than a screen has columns are not seen.
const POINTS_MAX: usize = 20_000;

/// Numbers with a name.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
}

/// Where the values of a series stand.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Places {
    /// Microseconds since 1970.
    Times(Vec<i64>),
    Numbers(Vec<f64>),
    Names(Vec<String>),
}

/// Something to draw.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Drawing {
    Lines {
        places: Places,
        series: Vec<Series>,
    },
    Bars {
        names: Vec<String>,
        series: Vec<Series>,
        n_left_out: usize,
    },
    /// Name and value.
    Figures(Vec<(String, String)>),
}

/// What to draw of a result; `wanted` is `bar`, `line` or `none` if somebody said so.
pub(super) fn drawing(section: &Section, wanted: Option<&str>) -> Result<Option<Drawing>> {
    if wanted == Some("none") || section.n_rows() == 0 || section.n_rows() > POINTS_MAX {
        return Ok(None);
    }
    let rows = concat_batches(&section.schema, &section.batches)?;
    let types: Vec<&DataType> = section.schema.fields().iter().map(|field| field.data_type()).collect();
    let numbers: Vec<usize> = (0..types.len()).filter(|at| types[*at].is_numeric()).collect();
    if numbers.is_empty() {
        return Ok(None);
    }
    if rows.num_rows() == 1 && numbers.len() == types.len() && wanted.is_none() {
        let cells = Cells::new(&section.schema, &section.batches, 1)?;
        let values = cells.rows.first().map(|row| row.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>());
        return Ok(Some(Drawing::Figures(cells.names.into_iter().zip(values.unwrap_or_default()).collect())));
    }
    if rows.num_rows() < 2 {
        return Ok(None);
    }
    let time = (0..types.len()).find(|at| types[*at].is_temporal() && !matches!(types[*at], DataType::Duration(_)));
    let text = (0..types.len()).find(|at| is_text(types[*at]));
    let found = match (time, text) {
        (Some(time), Some(text)) if numbers.len() == 1 => by_text(&rows, time, text, numbers[0])?,
        (Some(time), _) => {
            let series = named(&section.schema, &rows, &numbers)?;
            times(rows.column(time))?.map(|times| over(times, series))
        }
        (None, Some(text)) => {
            let names = texts(rows.column(text))?;
            Some(bars(names, named(&section.schema, &rows, &numbers)?))
        }
        (None, None) if numbers.len() > 1 => {
            let first = floats(rows.column(numbers[0]))?;
            let places: Option<Vec<f64>> = first.iter().copied().collect();
            let grows = places.filter(|places| places.windows(2).all(|pair| pair[0] < pair[1]));
            let series = named(&section.schema, &rows, &numbers[1..])?;
            match grows {
                Some(places) if places.len() > 12 || wanted == Some("line") => {
                    Some(Drawing::Lines { places: Places::Numbers(places), series })
                }
                _ => Some(bars(texts(rows.column(numbers[0]))?, series)),
            }
        }
        (None, None) => None,
    };
    Ok(match (found, wanted) {
        (Some(Drawing::Lines { places, series }), Some("bar")) => Some(bars(place_names(&places), series)),
        (Some(Drawing::Bars { names, series, .. }), Some("line")) => {
            Some(Drawing::Lines { places: Places::Names(names), series })
        }
        (found, _) => found,
    })
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// Lines from left to right, however the rows were sorted.
fn over(times: Vec<i64>, series: Vec<Series>) -> Drawing {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|at| times[*at]);
    let sorted = |series: Series| Series { values: order.iter().map(|at| series.values[*at]).collect(), ..series };
    let series = series.into_iter().map(sorted).collect();
    Drawing::Lines { places: Places::Times(order.iter().map(|at| times[*at]).collect()), series }
}

/// A line for each text; those with the most in them, if there are too many.
fn by_text(rows: &RecordBatch, time: usize, text: usize, number: usize) -> Result<Option<Drawing>> {
    let Some(all_times) = times(rows.column(time))? else { return Ok(None) };
    let (names, values) = (texts(rows.column(text))?, floats(rows.column(number))?);
    let mut times = all_times.clone();
    times.sort_unstable();
    times.dedup();
    let mut series: Vec<Series> = vec![];
    for ((at, name), value) in all_times.iter().zip(&names).zip(values) {
        let found = match series.iter().position(|series| series.name == *name) {
            Some(found) => found,
            None => {
                series.push(Series { name: name.clone(), values: vec![None; times.len()] });
                series.len() - 1
            }
        };
        if let Ok(place) = times.binary_search(at) {
            series[found].values[place] = value;
        }
    }
    let total = |series: &Series| series.values.iter().flatten().map(|value| value.abs()).sum::<f64>();
    series.sort_by(|one, other| total(other).total_cmp(&total(one)));
    series.truncate(SERIES_MAX);
    Ok(Some(Drawing::Lines { places: Places::Times(times), series }))
}

fn bars(mut names: Vec<String>, mut series: Vec<Series>) -> Drawing {
    let n_left_out = names.len().saturating_sub(BARS_MAX);
    names.truncate(BARS_MAX);
    series.iter_mut().for_each(|series| series.values.truncate(BARS_MAX));
    Drawing::Bars { names, series, n_left_out }
}

fn named(schema: &SchemaRef, rows: &RecordBatch, columns: &[usize]) -> Result<Vec<Series>> {
    let one = |at: &usize| Ok(Series { name: schema.field(*at).name().clone(), values: floats(rows.column(*at))? });
    columns.iter().take(SERIES_MAX).map(one).collect()
}

fn floats(column: &ArrayRef) -> Result<Vec<Option<f64>>> {
    let column = cast(column, &DataType::Float64)?;
    let values = column.as_primitive::<Float64Type>().iter();
    Ok(values.map(|value| value.filter(|value| value.is_finite())).collect())
}

/// `None` if one of them is not known, or is a time of day.
fn times(column: &ArrayRef) -> Result<Option<Vec<i64>>> {
    if matches!(column.data_type(), DataType::Time32(_) | DataType::Time64(_) | DataType::Interval(_)) {
        return Ok(None);
    }
    let column = cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    Ok(column.as_primitive::<TimestampMicrosecondType>().iter().collect())
}

fn texts(column: &ArrayRef) -> Result<Vec<String>> {
    let options = FormatOptions::default().with_null("–");
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    (0..column.len()).map(|row| Ok(formatter.value(row).try_to_string()?)).collect()
}

fn place_names(places: &Places) -> Vec<String> {
    match places {
        Places::Times(times) => times.iter().map(|time| time_name(*time)).collect(),
        Places::Numbers(numbers) => numbers.iter().map(ToString::to_string).collect(),
        Places::Names(names) => names.clone(),
    }
}

/// A time, without what is midnight.
pub(super) fn time_name(micros: i64) -> String {
    let time = chrono::DateTime::<chrono::Utc>::from_timestamp_micros(micros).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M:%S").to_string().replace(" 00:00:00", "")
}
