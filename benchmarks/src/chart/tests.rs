//! Pictures are XML that any reader takes, and can be read on light and on dark paper.

use super::*;

fn chart(scale: Scale) -> Chart {
    Chart {
        title: "a < b & \"c\"".to_string(),
        unit: "ms",
        scale,
        groups: vec![
            "one".to_string(),
            "<two>".to_string(),
            "a name that is longer than its place by far, whatever".repeat(3),
        ],
        series: vec![Series::new("ours & theirs", [1.0, -20.0, f64::NAN]), Series::new("paper", [300.0, 0.0, 0.02])],
    }
}

/// Every tag that is opened is closed, attributes are between quotes, nothing is bare that must be escaped.
pub(crate) fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = vec![];
    let mut rest = svg.trim();
    assert!(rest.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "a file of its own names its language");
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(!text.contains('>'), "a bare >: {text}");
        for behind in text.split('&').skip(1) {
            let is_known = ["amp;", "lt;", "gt;", "quot;"].iter().any(|name| behind.starts_with(name));
            assert!(is_known, "a bare &: {text}");
        }
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes: {tag}");
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "no place: {tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().expect("a name")),
        }
        rest = &rest[end + 1..];
        assert!(!open.is_empty() || rest.is_empty(), "one root");
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn they_are_well_formed() {
    for scale in [Scale::Linear, Scale::Log] {
        let svg = chart(scale).svg();
        assert_well_formed(&svg);
        // The legend has one for each series; groups have one where something is known.
        assert_eq!(svg.matches("<rect class=\"s0\"").count(), 1 + 2, "{svg}");
        assert_eq!(svg.matches("<rect class=\"s1\"").count(), 1 + 3);
        assert!(svg.contains("prefers-color-scheme:dark"));
        assert!(!svg.contains("http://") || svg.matches("http").count() == 1, "nothing is asked for from outside");
    }
    assert_well_formed(&Chart { groups: vec![], series: vec![], ..chart(Scale::Log) }.svg());
}

/// Contrast as the guidelines for web content have it.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |colour: &str| {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn both_papers_can_be_read() {
    for palette in [LIGHT, DARK] {
        assert!(contrast(palette.ink, palette.paper) > 7.0);
        assert!(contrast(palette.soft, palette.paper) > 4.5);
        for colour in palette.series {
            assert!(contrast(colour, palette.paper) > 3.0, "{colour} on {}", palette.paper);
        }
    }
    assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
}
