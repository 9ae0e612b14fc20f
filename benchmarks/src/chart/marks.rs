//! Round numbers along an edge, and numbers as people read them.

/// Round numbers that enclose all values and zero.
pub(super) fn linear(values: &[f64]) -> Vec<(f64, String)> {
    let least = values.iter().copied().fold(0.0, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let span = if most > least { most - least } else { 1.0 };
    let power = 10_f64.powf((span / 5.0).log10().floor());
    let step = power * [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power * 5.0 >= span).unwrap_or(10.0);
    let (first, last) = ((least / step).floor() as i32, ((least + span) / step).ceil() as i32);
    (first..=last).map(|at| f64::from(at) * step).map(|mark| (mark, rounded(mark))).collect()
}

/// Powers of ten that enclose all values above zero.
pub(super) fn log(values: &[f64]) -> Vec<(f64, String)> {
    let known = || values.iter().copied().filter(|value| *value > 0.0);
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    if !least.is_finite() {
        return vec![(1.0, rounded(1.0)), (10.0, rounded(10.0))];
    }
    // The least has a bar as well, also if it is a mark itself.
    let first = (least * 0.8).log10().floor() as i32;
    let last = (most.log10().ceil() as i32).max(first + 1);
    (first..=last).map(|power| 10_f64.powi(power)).map(|mark| (mark, rounded(mark))).collect()
}

/// Three digits that matter: `0.463`, `12.4`, `1840`.
pub(super) fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        large if large >= 100.0 => 0,
        large if large >= 10.0 => 1,
        large if large >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(marks: &[(f64, String)]) -> Vec<&str> {
        marks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn round_numbers() {
        assert_eq!(texts(&linear(&[3.0, 97.0])), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(texts(&linear(&[-122.0, 46.0])), ["-150", "-100", "-50", "0", "50"]);
        assert_eq!(texts(&linear(&[])), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(texts(&log(&[0.4, 310.0])), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(texts(&log(&[0.0])), ["1", "10"]);
        assert_eq!([0.4631, 12.44, 1840.2, -0.05].map(rounded), ["0.463", "12.4", "1840", "-0.05"]);
    }
}
