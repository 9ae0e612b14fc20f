//! [`Chart`]: groups of bars as an SVG file that needs nothing else. The look is that of the pages of reports.
//!
//! It has its own paper, so that it can be read on any page, and colours for a light and a dark one.

mod marks;

use std::fmt::Write;

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
/// Room for the title and the legend.
const TOP: f64 = 66.0;
const BOTTOM: f64 = 38.0;
/// Width of a letter, about: no font is asked.
const LETTER: f64 = 6.8;
/// More bars have no room for their numbers.
const NUMBERED_MAX: usize = 18;
/// As many series as there are colours.
const SERIES_MAX: usize = 5;

/// Paper, ink, what is less important, rules, and the series.
const LIGHT: Palette = Palette {
    paper: "#ffffff",
    ink: "#1c2430",
    soft: "#667085",
    rule: "#e4e7ec",
    series: ["#e4572e", "#2e86ab", "#3a9d6e", "#a15c9e", "#5b6b8c"],
};
const DARK: Palette = Palette {
    paper: "#181d25",
    ink: "#e6e9ef",
    soft: "#98a2b3",
    rule: "#303845",
    series: ["#ff7a54", "#5bb3d6", "#5fc593", "#c98bc6", "#93a3c4"],
};

struct Palette {
    paper: &'static str,
    ink: &'static str,
    soft: &'static str,
    rule: &'static str,
    series: [&'static str; SERIES_MAX],
}

/// How far a number is from the ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Each line is ten times the one below; there is no zero.
    Log,
}

/// Bars of several series, group by group.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What the numbers are.
    pub(crate) unit: &'static str,
    pub(crate) scale: Scale,
    pub(crate) groups: Vec<String>,
    pub(crate) series: Vec<Series>,
}

/// One colour.
pub(crate) struct Series {
    pub(crate) name: String,
    /// One for each group; nothing is drawn for what is not known.
    pub(crate) values: Vec<Option<f64>>,
}

impl Series {
    pub(crate) fn new(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let known = |value: f64| value.is_finite().then_some(value);
        Self { name: name.to_string(), values: values.into_iter().map(known).collect() }
    }
}

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escaped(&self.title)
        );
        let _ = write!(
            svg,
            "<style>text{{font:12px system-ui,-apple-system,\"Segoe UI\",Roboto,Arial,sans-serif}}.title{{font-size:15px;font-weight:600}}{}@media(prefers-color-scheme:dark){{{}}}</style>",
            LIGHT.rules(),
            DARK.rules()
        );
        let _ = write!(
            svg,
            "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/><text class=\"title ink\" x=\"20\" y=\"27\">{}</text>",
            escaped(&self.title)
        );
        self.legend(&mut svg);
        self.bars(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn legend(&self, svg: &mut String) {
        let mut x = 20.0;
        for (nth, series) in self.series.iter().take(SERIES_MAX).enumerate() {
            let _ = write!(
                svg,
                "<rect class=\"s{nth}\" x=\"{x:.1}\" y=\"38\" width=\"11\" height=\"11\" rx=\"3\"/><text class=\"soft\" x=\"{:.1}\" y=\"48\">{}</text>",
                x + 16.0,
                escaped(&series.name)
            );
            x += 34.0 + series.name.chars().count() as f64 * LETTER;
        }
        let _ = write!(
            svg,
            "<text class=\"soft\" x=\"{:.1}\" y=\"48\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            escaped(self.unit)
        );
    }

    fn bars(&self, svg: &mut String) {
        let values: Vec<f64> = self.series.iter().flat_map(|series| series.values.iter().flatten().copied()).collect();
        let marks = match self.scale {
            Scale::Linear => marks::linear(&values),
            Scale::Log => marks::log(&values),
        };
        let place = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        };
        let low = marks.first().map_or(0.0, |mark| place(mark.0));
        let high = marks.last().map_or(1.0, |mark| place(mark.0)).max(low + 1e-9);
        let bottom = HEIGHT - BOTTOM;
        let y = |value: f64| bottom - ((place(value) - low) / (high - low)).clamp(0.0, 1.0) * (bottom - TOP);
        for (mark, text) in &marks {
            let at = y(*mark);
            let class = if *mark == 0.0 { "zero" } else { "grid" };
            let _ = write!(
                svg,
                "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0
            );
        }
        let ground = match self.scale {
            Scale::Linear => y(0.0),
            Scale::Log => bottom,
        };
        let n_series = self.series.len().clamp(1, SERIES_MAX);
        let group = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let width = (group * 0.78 / n_series as f64).min(64.0);
        let is_numbered = self.groups.len() * n_series <= NUMBERED_MAX;
        for (at, name) in self.groups.iter().enumerate() {
            let middle = LEFT + group * (at as f64 + 0.5);
            let first = middle - width * n_series as f64 / 2.0;
            for (nth, series) in self.series.iter().take(SERIES_MAX).enumerate() {
                let Some(value) = series.values.get(at).copied().flatten() else { continue };
                // A logarithm of nothing is below all marks.
                let value_y = if self.scale == Scale::Log && value <= 0.0 { bottom } else { y(value) };
                let (top, height) = (value_y.min(ground), (value_y - ground).abs().max(1.0));
                let x = first + width * nth as f64;
                let _ = write!(
                    svg,
                    "<rect class=\"s{nth}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"2\"><title>{}</title></rect>",
                    (width - 2.0).max(1.0),
                    escaped(&format!("{name}, {}: {} {}", series.name, marks::rounded(value), self.unit)),
                );
                if is_numbered {
                    let above = if value < 0.0 { top + height + 13.0 } else { top - 5.0 };
                    let _ = write!(
                        svg,
                        "<text class=\"ink\" x=\"{:.1}\" y=\"{above:.1}\" text-anchor=\"middle\">{}</text>",
                        x + width / 2.0 - 1.0,
                        marks::rounded(value)
                    );
                }
            }
            let letters = ((group / LETTER) as usize).max(3);
            let _ = write!(
                svg,
                "<text class=\"ink\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 22.0,
                escaped(&cut(name, letters))
            );
        }
    }
}

impl Palette {
    fn rules(&self) -> String {
        let Self { paper, ink, soft, rule, series } = self;
        let mut css = format!(
            ".paper{{fill:{paper};stroke:{rule}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}.grid{{stroke:{rule}}}.zero{{stroke:{soft}}}"
        );
        for (nth, colour) in series.iter().enumerate() {
            let _ = write!(css, ".s{nth}{{fill:{colour}}}");
        }
        css
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn cut(name: &str, n_letters: usize) -> String {
    match name.char_indices().nth(n_letters) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
