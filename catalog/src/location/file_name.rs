//! [`FileKind`]: format and compression of a file, told by its name.

use crate::FileFormatKind;

/// What a name's ending tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileKind {
    /// How to read it.
    pub format: FileFormatKind,
    /// How to unpack it first.
    pub compression: Compression,
    /// Delimiter of fields where the ending names one: a tab for `.tsv`.
    pub delimiter: Option<u8>,
}

/// Compression of a whole text file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// Plain.
    #[default]
    None,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
    /// `.bz2`
    Bzip2,
    /// `.xz`
    Xz,
}

impl Compression {
    /// Understands an option's value or a name's ending; `None` if it is neither.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "" | "none" | "uncompressed" => Self::None,
            "gz" | "gzip" => Self::Gzip,
            "zst" | "zstd" => Self::Zstd,
            "bz2" | "bzip2" => Self::Bzip2,
            "xz" => Self::Xz,
            _ => return None,
        })
    }

    /// The name that DataFusion's `compression` option takes.
    pub fn option_value(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    /// The compression that a name's last ending tells, and the name without it.
    pub fn split(name: &str) -> (&str, Self) {
        match name.rsplit_once('.') {
            Some((stem, ending))
                if ["gz", "zst", "bz2", "xz"].iter().any(|known| ending.eq_ignore_ascii_case(known)) =>
            {
                (stem, Self::parse(ending).unwrap_or_default())
            }
            _ => (name, Self::None),
        }
    }
}

impl FileKind {
    /// Reads a file's name; `None` if its ending is not one of ours.
    pub fn of(name: &str) -> Option<Self> {
        let (stem, compression) = Compression::split(name);
        let (base, ending) = stem.rsplit_once('.')?;
        let format = match ending.to_ascii_lowercase().as_str() {
            // `FileFormatKind::parse` also takes words that are no endings.
            "parq" | "pq" => FileFormatKind::Parquet,
            other => FileFormatKind::parse(other)?,
        };
        let named = !base.is_empty() && !base.ends_with('/');
        let fits = named && (format.is_text() || compression == Compression::None);
        let delimiter = ending.eq_ignore_ascii_case("tsv").then_some(b'\t');
        fits.then_some(Self { format, compression, delimiter })
    }

    /// Whether a file found in a folder of `format` files is one of them.
    pub(crate) fn fits(name: &str, format: FileFormatKind) -> bool {
        let stem = if format.is_text() { Compression::split(name).0 } else { name };
        let Some((_, ending)) = stem.rsplit_once('.') else { return false };
        endings(format).iter().any(|known| ending.eq_ignore_ascii_case(known))
    }
}

/// Endings of files of a format, the usual one first.
pub(crate) fn endings(format: FileFormatKind) -> &'static [&'static str] {
    match format {
        FileFormatKind::Parquet => &["parquet", "parq", "pq"],
        FileFormatKind::Csv => &["csv", "tsv", "txt", "log"],
        FileFormatKind::Json => &["json", "ndjson", "jsonl"],
        FileFormatKind::Arrow => &["arrow", "ipc", "feather"],
        FileFormatKind::Avro => &["avro"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_format_and_compression() {
        let kind = |name: &str| FileKind::of(name).map(|kind| (kind.format, kind.compression, kind.delimiter));
        assert_eq!(kind("a.parquet"), Some((FileFormatKind::Parquet, Compression::None, None)));
        assert_eq!(kind("a.b.CSV.GZ"), Some((FileFormatKind::Csv, Compression::Gzip, None)));
        assert_eq!(kind("a.ndjson.zst"), Some((FileFormatKind::Json, Compression::Zstd, None)));
        assert_eq!(kind("a.tsv"), Some((FileFormatKind::Csv, Compression::None, Some(b'\t'))));
        assert_eq!(kind("d/a.jsonl.bz2"), Some((FileFormatKind::Json, Compression::Bzip2, None)));
        assert_eq!(kind("a.parquet.gz"), None, "a packed Parquet file cannot be read");
        for name in ["a", "a.gz", ".csv", "d/.csv", "a.exe", ""] {
            assert_eq!(kind(name), None, "{name}");
        }
    }

    #[test]
    fn folders_take_what_fits() {
        assert!(FileKind::fits("x.pq", FileFormatKind::Parquet));
        assert!(FileKind::fits("x.log.gz", FileFormatKind::Csv));
        assert!(FileKind::fits("x.txt", FileFormatKind::Csv));
        assert!(!FileKind::fits("x.parquet.gz", FileFormatKind::Parquet));
        assert!(!FileKind::fits("x.csv", FileFormatKind::Json));
        assert!(!FileKind::fits("parquet", FileFormatKind::Parquet));
    }
}
