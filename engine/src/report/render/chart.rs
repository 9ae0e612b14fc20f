//! A [`Drawing`] as SVG, to stand in a page: no scripts, no fonts of its own; colours are the page's (`s0` to `s5`).

use std::fmt::Write;
use std::ops::Range;

use super::axis;
use super::cells::grouped;
use super::html::escaped;
use super::shape::{Drawing, Places, Series, time_name};

/// Size in units of the drawing; the page scales it.
const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 330.0;
/// Room for what is written around.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 36.0;
/// Points that are shown as such.
const DOTS_MAX: usize = 62;
/// Width of a letter, about: no font is asked.
const LETTER: f64 = 7.0;

/// The drawing, with its legend where it needs one.
pub(super) fn chart(drawing: &Drawing) -> String {
    match drawing {
        Drawing::Figures(figures) => tiles(figures),
        // Side by side, the small ones would be flat.
        Drawing::Lines { places, series } if are_uneven(series) => {
            let one = |at: usize| format!("{}{}", legend(series, at..at + 1), lines(places, series, at..at + 1));
            (0..series.len()).map(one).collect()
        }
        Drawing::Lines { places, series } => {
            format!("{}{}", legend(series, 0..series.len()), lines(places, series, 0..series.len()))
        }
        Drawing::Bars { names, series, n_left_out } => {
            let rest = match n_left_out {
                0 => String::new(),
                n => format!("<p class=\"note\">{n} more are in the table.</p>"),
            };
            let drawn = match series.as_slice() {
                [only] => rows(names, only),
                several => columns(names, several),
            };
            format!("{}{drawn}{rest}", legend(series, 0..series.len()))
        }
    }
}

fn tiles(figures: &[(String, String)]) -> String {
    let tile = |(name, value): &(String, String)| {
        format!(
            "<div class=\"tile\"><div class=\"figure\">{}</div><div class=\"what\">{}</div></div>",
            escaped(value),
            escaped(name)
        )
    };
    format!("<div class=\"tiles\">{}</div>", figures.iter().map(tile).collect::<String>())
}

/// Whether some series are so much larger than others that these would not be seen beside them.
fn are_uneven(series: &[Series]) -> bool {
    let most = |series: &Series| series.values.iter().flatten().fold(0.0_f64, |most, value| most.max(value.abs()));
    let tops: Vec<f64> = series.iter().map(most).filter(|top| *top > 0.0).collect();
    let (least, most) = (tops.iter().copied().fold(f64::INFINITY, f64::min), tops.iter().copied().fold(0.0, f64::max));
    tops.len() > 1 && most > 12.0 * least
}

fn legend(series: &[Series], shown: Range<usize>) -> String {
    let one = |at: usize| format!("<span><i class=\"s{}\"></i>{}</span>", at % 6, escaped(&series[at].name));
    format!("<div class=\"legend\">{}</div>", shown.map(one).collect::<String>())
}

fn open(height: f64, what: &str) -> String {
    format!("<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">", escaped(what))
}

/// The least and the most of all values; bars and areas stand on zero.
fn bounds(series: &[Series], from_zero: bool) -> (f64, f64) {
    let values = || series.iter().flat_map(|series| series.values.iter().flatten().copied());
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    match least.is_finite() {
        false => (0.0, 1.0),
        // A line far above zero is not pressed against its edge.
        true if from_zero || (least >= 0.0 && least < most * 0.6) => (least.min(0.0), most.max(0.0)),
        true => (least, most),
    }
}

/// Marks of the numbers along the left, with lines across; and what makes a number a height.
fn across(svg: &mut String, least: f64, most: f64) -> impl Fn(f64) -> f64 + use<> {
    let marks = axis::numbers(least, most);
    let low = marks.first().map_or(least, |mark| mark.0);
    let high = marks.last().map_or(most, |mark| mark.0).max(low + f64::EPSILON);
    let bottom = HEIGHT - BOTTOM;
    let y = move |value: f64| bottom - (value - low) / (high - low) * (bottom - TOP);
    for (mark, text) in &marks {
        let at = y(*mark);
        let class = if *mark == 0.0 { "zero" } else { "grid" };
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    y
}

fn lines(places: &Places, series: &[Series], shown: Range<usize>) -> String {
    let drawn = &series[shown.clone()];
    let mut svg = open(HEIGHT, &format!("lines of {}", names_of(drawn)));
    let (least, most) = bounds(drawn, false);
    let y = across(&mut svg, least, most);
    let (xs, marks) = positions(places);
    let bottom = HEIGHT - BOTTOM;
    for (x, text) in marks {
        let anchor = if x > WIDTH - RIGHT - 30.0 { "end" } else { "middle" };
        let _ = write!(
            svg,
            "<text class=\"mark\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            bottom + 22.0,
            escaped(&text)
        );
    }
    for (at, one) in shown.zip(drawn) {
        let points: Vec<Option<(f64, f64)>> =
            xs.iter().zip(&one.values).map(|(x, value)| value.map(|value| (*x, y(value)))).collect();
        // A gap stays one.
        let mut path = String::new();
        let mut is_down = false;
        for point in &points {
            match point {
                Some((x, y)) => {
                    let _ = write!(path, "{}{x:.1} {y:.1}", if is_down { "L" } else { "M" });
                    is_down = true;
                }
                None => is_down = false,
            }
        }
        let known: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
        if let (1, Some(first), Some(last), true) =
            (drawn.len(), known.first(), known.last(), known.len() == points.len())
        {
            let floor = y(least.max(0.0).min(most)).clamp(TOP, bottom);
            let floor = if least < 0.0 { floor } else { bottom };
            let area = format!("{path}L{:.1} {floor:.1}L{:.1} {floor:.1}Z", last.0, first.0);
            let _ = write!(svg, "<path class=\"area s{}\" d=\"{area}\"/>", at % 6);
        }
        let _ = write!(svg, "<path class=\"line s{}\" d=\"{path}\"/>", at % 6);
        if points.len() <= DOTS_MAX {
            for (row, point) in points.iter().enumerate() {
                if let (Some((x, y)), Some(value)) = (point, one.values[row]) {
                    let told = format!("{} {}: {}", place_name(places, row), one.name, grouped(&value.to_string()));
                    let _ = write!(
                        svg,
                        "<circle class=\"dot s{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{}</title></circle>",
                        at % 6,
                        escaped(&told)
                    );
                }
            }
        }
    }
    svg.push_str("</svg>");
    svg
}

/// Where the values of a line stand, and what is written below.
fn positions(places: &Places) -> (Vec<f64>, Vec<(f64, String)>) {
    let right = WIDTH - RIGHT - 8.0;
    let scale = |value: f64, first: f64, last: f64| match last > first {
        true => LEFT + 8.0 + (value - first) / (last - first) * (right - LEFT - 8.0),
        false => f64::midpoint(LEFT, right),
    };
    match places {
        Places::Times(times) => {
            let (first, last) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
            let x = |time: i64| scale((time - first) as f64, 0.0, (last - first) as f64);
            let marks = axis::times(first, last).into_iter().map(|(time, text)| (x(time), text)).collect();
            (times.iter().map(|time| x(*time)).collect(), marks)
        }
        Places::Numbers(numbers) => {
            let (first, last) = (numbers.first().copied().unwrap_or(0.0), numbers.last().copied().unwrap_or(1.0));
            let marks = axis::numbers(first, last).into_iter().filter(|(mark, _)| *mark >= first && *mark <= last);
            let marks = marks.map(|(mark, text)| (scale(mark, first, last), text)).collect();
            (numbers.iter().map(|number| scale(*number, first, last)).collect(), marks)
        }
        Places::Names(names) => {
            let last = names.len().saturating_sub(1) as f64;
            let xs: Vec<f64> = (0..names.len()).map(|at| scale(at as f64, 0.0, last)).collect();
            let every = names.len().div_ceil(10).max(1);
            let marks = names.iter().enumerate().step_by(every).map(|(at, name)| (xs[at], cut(name, 12))).collect();
            (xs, marks)
        }
    }
}

fn place_name(places: &Places, at: usize) -> String {
    match places {
        Places::Times(times) => times.get(at).map(|time| time_name(*time)).unwrap_or_default(),
        Places::Numbers(numbers) => numbers.get(at).map(ToString::to_string).unwrap_or_default(),
        Places::Names(names) => names.get(at).cloned().unwrap_or_default(),
    }
}

/// Bars from left to right, one below the other: names have room.
fn rows(names: &[String], series: &Series) -> String {
    const ROW: f64 = 27.0;
    let longest = names.iter().map(|name| name.chars().count().min(28)).max().unwrap_or(0) as f64;
    let left = (longest * LETTER + 16.0).max(LEFT);
    let (least, most) = bounds(std::slice::from_ref(series), true);
    let right = WIDTH - 90.0;
    let span = (most - least).max(f64::EPSILON);
    let x = |value: f64| left + (value - least) / span * (right - left);
    let height = TOP + ROW * names.len() as f64 + 8.0;
    let mut svg = open(height, &format!("bars of {}", series.name));
    for (at, name) in names.iter().enumerate() {
        let top = TOP + ROW * at as f64;
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 10.0,
            top + 17.0,
            escaped(&cut(name, 28))
        );
        let Some(value) = series.values.get(at).copied().flatten() else { continue };
        let (from, to) = (x(value.min(0.0)), x(value.max(0.0)));
        let shown = grouped(&rounded(value));
        let _ = write!(
            svg,
            "<rect class=\"bar s0\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"><title>{}: {}</title></rect><text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{shown}</text>",
            top + 4.0,
            (to - from).max(1.0),
            ROW - 8.0,
            escaped(name),
            grouped(&value.to_string()),
            to + 7.0,
            top + 17.0
        );
    }
    let zero = x(0.0);
    let _ = write!(
        svg,
        "<line class=\"zero\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/></svg>",
        height - 8.0
    );
    svg
}

/// Groups of bars beside each other.
fn columns(names: &[String], series: &[Series]) -> String {
    let mut svg = open(HEIGHT, &format!("bars of {}", names_of(series)));
    let (least, most) = bounds(series, true);
    let y = across(&mut svg, least, most);
    let group = (WIDTH - LEFT - RIGHT) / names.len().max(1) as f64;
    let width = (group * 0.76 / series.len().max(1) as f64).min(46.0);
    let letters = ((group / LETTER) as usize).max(3);
    for (at, name) in names.iter().enumerate() {
        let middle = LEFT + group * (at as f64 + 0.5);
        let first = middle - width * series.len() as f64 / 2.0;
        for (nth, one) in series.iter().enumerate() {
            let Some(value) = one.values.get(at).copied().flatten() else { continue };
            let (top, bottom) = (y(value.max(0.0)), y(value.min(0.0)));
            let told = format!("{name}, {}: {}", one.name, grouped(&value.to_string()));
            let _ = write!(
                svg,
                "<rect class=\"bar s{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{}</title></rect>",
                nth % 6,
                first + width * nth as f64,
                (width - 2.0).max(1.0),
                (bottom - top).max(1.0),
                escaped(&told)
            );
        }
        let every = names.len().div_ceil(15).max(1);
        if at % every == 0 {
            let _ = write!(
                svg,
                "<text class=\"mark\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - BOTTOM + 22.0,
                escaped(&cut(name, letters * every))
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

fn names_of(series: &[Series]) -> String {
    series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn rounded(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

fn cut(name: &str, n_letters: usize) -> String {
    match name.char_indices().nth(n_letters) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}
