//! Where the output of a scheduled time goes, and in which form: both are told by the name.
//!
//! ```text
//!   reports/{report}-{date}.html     /srv/reports/kpis-2026-11-17.html
//!   s3://bucket/{year}/{month}/x.parquet
//! ```

use chrono_tz::Tz;
use nectarine_catalog::{Compression, FileFormatKind, FileKind, Location};

use super::schedule::{local, parse_zone};
use crate::{EngineError, ErrorKind, Result};

/// How an output is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// With a byte between fields.
    Csv(u8),
    /// An object a line.
    Json,
    Parquet,
    Markdown,
    Html,
}

impl Form {
    /// The form that a name's ending says.
    pub(super) fn of(name: &str) -> Result<Self> {
        let (stem, compression) = Compression::split(name);
        if compression != Compression::None {
            return Err(EngineError::new(ErrorKind::Unsupported, format!("cannot write \"{name}\""))
                .with_detail("reports are not compressed")
                .with_hint(format!("name it \"{stem}\"")));
        }
        let ending = name.rsplit('/').next().unwrap_or(name).rsplit_once('.').map(|(_, ending)| ending);
        match ending.unwrap_or_default().to_ascii_lowercase().as_str() {
            "html" | "htm" => return Ok(Self::Html),
            "md" | "markdown" => return Ok(Self::Markdown),
            _ => {}
        }
        match FileKind::of(name) {
            Some(kind) if kind.format == FileFormatKind::Csv => Ok(Self::Csv(kind.delimiter.unwrap_or(b','))),
            Some(kind) if kind.format == FileFormatKind::Json => Ok(Self::Json),
            Some(kind) if kind.format == FileFormatKind::Parquet => Ok(Self::Parquet),
            _ => Err(EngineError::new(ErrorKind::Sql, format!("cannot tell the form of \"{name}\" from its name"))
                .with_hint("end it with .html, .md, .csv, .tsv, .json, .ndjson or .parquet")),
        }
    }

    /// Whether several results have room in it.
    pub(super) fn has_sections(self) -> bool {
        matches!(self, Self::Html | Self::Markdown)
    }
}

/// The pattern with paths that begin at the root, so that it means the same from everywhere.
pub(super) fn absolute(pattern: &str) -> Result<String> {
    Form::of(pattern)?;
    // Braces are no letters of URLs; what is between them says nothing of where a name begins.
    let location = Location::parse_name(pattern, &std::env::current_dir()?)?;
    if location.names_folder() {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{pattern}\" is a folder")));
    }
    Ok(match location.is_local() {
        true => location.fixed_prefix(),
        false => pattern.to_string(),
    })
}

/// The name for a scheduled time.
pub(super) fn fill(pattern: &str, report: &str, at: i64, zone: &str) -> Result<String> {
    fill_in(pattern, report, at, parse_zone(zone)?)
}

fn fill_in(pattern: &str, report: &str, at: i64, zone: Tz) -> Result<String> {
    let outside = || EngineError::new(ErrorKind::Sql, "the time is outside of the calendar");
    let (time, utc) = (local(at, zone).ok_or_else(outside)?, local(at, Tz::UTC).ok_or_else(outside)?);
    let mut name = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once('{') {
        name.push_str(before);
        let unknown = |word: &str| {
            EngineError::new(ErrorKind::Sql, format!("\"{{{word}}}\" is no part of a name in \"{pattern}\"")).with_hint(
                "there are {date}, {time}, {year}, {month}, {day}, {hour}, {minute}, {second}, {timestamp} and {report}",
            )
        };
        let (word, after) = behind.split_once('}').ok_or_else(|| unknown(behind))?;
        let part = match word {
            "date" => time.format("%Y-%m-%d").to_string(),
            "time" => time.format("%H%M%S").to_string(),
            "year" => time.format("%Y").to_string(),
            "month" => time.format("%m").to_string(),
            "day" => time.format("%d").to_string(),
            "hour" => time.format("%H").to_string(),
            "minute" => time.format("%M").to_string(),
            "second" => time.format("%S").to_string(),
            // By the clock that never repeats itself.
            "timestamp" => utc.format("%Y%m%dT%H%M%SZ").to_string(),
            // A slash would be a folder.
            "report" => report.replace(['/', '\\'], "_"),
            other => return Err(unknown(other)),
        };
        name.push_str(&part);
        rest = after;
    }
    name.push_str(rest);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_form() {
        for (name, form) in [
            ("a/b-{date}.html", Form::Html),
            ("x.MD", Form::Markdown),
            ("x.csv", Form::Csv(b',')),
            ("x.tsv", Form::Csv(b'\t')),
            ("s3://b/x.ndjson", Form::Json),
            ("x.json", Form::Json),
            ("x.parquet", Form::Parquet),
        ] {
            assert_eq!(Form::of(name).unwrap_or_else(|error| panic!("{name}: {error}")), form, "{name}");
        }
        for name in ["x", "x.csv.gz", "x.avro", "x.exe", "html", "dir.html/x"] {
            assert!(Form::of(name).is_err(), "{name}");
        }
    }

    #[test]
    fn parts_of_names_are_of_the_zone() {
        // 2026-11-17 23:30 in UTC.
        let at = 1_794_958_200_000_000;
        let filled = |pattern: &str, zone: &str| fill(pattern, "a/b", at, zone).expect("a name");
        assert_eq!(filled("{date}", "UTC"), "2026-11-17");
        assert_eq!(filled("{date}_{time}", "Europe/Berlin"), "2026-11-18_003000");
        assert_eq!(filled("{year}/{month}/{day}/{hour}-{minute}-{second}", "UTC"), "2026/11/17/23-30-00");
        assert_eq!(filled("{report}-{timestamp}.md", "Asia/Tokyo"), "a_b-20261117T233000Z.md");
        assert_eq!(filled("plain", "UTC"), "plain");
        for pattern in ["{nothing}", "{date", "{}"] {
            assert!(fill(pattern, "r", at, "UTC").is_err(), "{pattern}");
        }
    }
}
