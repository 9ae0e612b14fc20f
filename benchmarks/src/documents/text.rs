//! Documents that look like language: a few words are everywhere, most are rare, sentences begin large and end with a stop.
//!
//! ```text
//!   documents/part-0.parquet ..     document BIGINT, text VARCHAR
//! ```
//!
//! The same size gives the same documents, on every machine and with any number of threads: each document has a sequence of
//! random numbers of its own.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::random::Random;

/// Different words that there are. Few documents hold a rare one.
pub(crate) const N_WORDS: usize = 40_000;

/// Documents in a batch that is written.
const BATCH: u32 = 2_000;

/// What words are made of.
const SYLLABLES: [&str; 40] = [
    "ba", "cor", "den", "fi", "gol", "ha", "jun", "kel", "li", "mar", "ne", "o", "pra", "qui", "ran", "se", "tol", "u",
    "ven", "wi", "ya", "zen", "ab", "bre", "cha", "dro", "el", "fra", "gri", "hol", "in", "ka", "lu", "mo", "nor",
    "per", "ri", "sta", "ter", "vo",
];

/// Writes `n_files` files with `n_documents` documents of about `n_words` words into a new folder; returns the bytes of
/// text.
pub(crate) fn generate(folder: &Path, n_documents: u32, n_words: u32, n_files: u16) -> Result<u64> {
    fs::create_dir(folder)?;
    let language = Language::new();
    let per_file = n_documents.div_ceil(u32::from(n_files));
    let mut text_bytes = 0;
    for file in 0..n_files {
        let path = folder.join(format!("part-{file}.parquet"));
        let first = u32::from(file) * per_file;
        let documents = first.min(n_documents)..(first + per_file).min(n_documents);
        text_bytes += write(&path, &language, documents, n_words)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    Ok(text_bytes)
}

fn write(path: &Path, language: &Language, documents: std::ops::Range<u32>, n_words: u32) -> Result<u64> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer: Option<ArrowWriter<File>> = None;
    let mut text_bytes = 0;
    let mut first = documents.start;
    // A file without documents is a file with a schema.
    loop {
        let last = documents.end.min(first + BATCH);
        let texts: Vec<String> = (first..last).map(|document| language.document(document, n_words)).collect();
        text_bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((first..last).map(i64::from)));
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let batch = RecordBatch::try_from_iter([("document", numbers), ("text", texts)])?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties.clone()))?),
        };
        writer.write(&batch)?;
        first = last;
        if first >= documents.end {
            break;
        }
    }
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(text_bytes)
}

/// Words and how often they are said.
struct Language {
    words: Vec<String>,
    /// For each word the share of it and all more frequent ones.
    shares: Vec<f64>,
}

impl Language {
    /// The word of rank r is said in proportion to 1/r, as Zipf found.
    fn new() -> Self {
        let words = (0..N_WORDS).map(word).collect();
        let mut total = 0.0;
        let sums = (1..=N_WORDS).map(|rank| {
            total += 1.0 / rank as f64;
            total
        });
        let sums: Vec<f64> = sums.collect();
        Self { words, shares: sums.into_iter().map(|sum| sum / total).collect() }
    }

    fn document(&self, document: u32, n_words: u32) -> String {
        let mut random = Random::new(u64::from(document));
        // Between half and one and a half times as long.
        let n_words = n_words / 2 + random.below(u64::from(n_words) + 1) as u32;
        let mut text = String::with_capacity(n_words as usize * 7);
        let mut left_in_sentence = 0;
        for _ in 0..n_words.max(1) {
            let word = self.pick(&mut random);
            if left_in_sentence == 0 {
                left_in_sentence = 4 + random.below(16);
                let (initial, rest) = word.split_at(1);
                text.push_str(&initial.to_uppercase());
                text.push_str(rest);
            } else {
                text.push_str(word);
            }
            left_in_sentence -= 1;
            text.push_str(match (left_in_sentence, random.below(12)) {
                (0, _) => ". ",
                (_, 0) => ", ",
                _ => " ",
            });
        }
        text
    }

    fn pick(&self, random: &mut Random) -> &str {
        let at = random.fraction();
        let rank = self.shares.partition_point(|share| *share <= at);
        &self.words[rank.min(N_WORDS - 1)]
    }
}

/// A number in syllables: frequent words are short.
fn word(mut number: usize) -> String {
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[number % SYLLABLES.len()]);
        number /= SYLLABLES.len();
        if number == 0 {
            return word;
        }
        number -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_documents_each_time_and_few_words_are_most_of_them() {
        let language = Language::new();
        let text = language.document(7, 2_000);
        assert_eq!(text, Language::new().document(7, 2_000));
        assert_ne!(text, language.document(8, 2_000));
        let most_frequent = text.split_whitespace().filter(|word| *word == language.words[0]).count();
        let words = text.split_whitespace().count();
        assert!(words > 1_000 && most_frequent * 30 > words && most_frequent * 5 < words, "{most_frequent} of {words}");
    }
}
