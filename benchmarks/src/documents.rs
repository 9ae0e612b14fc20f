//! Nectar's table 4: programs that share a sub-computation. One job analyses the words of all documents; three others, asked
//! for later, start from the same analysis.
//!
//! ```text
//!   documents --> words_of_documents --> word_analysis --+--> TopWord    ten words that are used most
//!     text         document, word, n      word, n, in     +--> MostDoc    ten words that are in most documents
//!                                                         +--> TopRatio   what share of all words the ten are
//! ```
//!
//! Each round has a new home. Off: the three programs without reuse. On: WordAnalysis, then each program for the first time.

mod text;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nectarine_engine::Reused;

use crate::args::DocumentsArgs;
use crate::client::{Client, saved_percent};
use crate::compare::difference;
use crate::{REST, machine};

/// Of each program's processor time, in percent.
pub(crate) const SAVED_PERCENT_MIN: f64 = 99.0;

/// What users define once.
const VIEWS: [&str; 2] = [
    "CREATE VIEW words_of_documents AS
     SELECT document, word, count(*) AS n
     FROM (SELECT document, unnest(string_to_array(regexp_replace(lower(text), '[^a-z]+', ' ', 'g'), ' ')) AS word
           FROM documents)
     WHERE word <> ''
     GROUP BY document, word",
    "CREATE VIEW word_analysis AS
     SELECT word, sum(n) AS occurrences, count(*) AS documents
     FROM words_of_documents
     GROUP BY word",
];

/// The earlier job.
const WORD_ANALYSIS: &str = "SELECT word, occurrences, documents FROM word_analysis";

/// Name, text, and what Nectar saved.
const PROGRAMS: [(&str, &str, f64); 3] = [
    ("TopWord", "SELECT word, occurrences FROM word_analysis ORDER BY occurrences DESC, word LIMIT 10", 98.8),
    ("MostDoc", "SELECT word, documents FROM word_analysis ORDER BY documents DESC, word LIMIT 10", 98.6),
    (
        "TopRatio",
        "SELECT 100.0 * sum(occurrences) / (SELECT sum(occurrences) FROM word_analysis) AS percent
         FROM (SELECT occurrences FROM word_analysis ORDER BY occurrences DESC LIMIT 10)",
        99.2,
    ),
];

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: DocumentsArgs,
    pub(crate) text_bytes: u64,
    pub(crate) n_words: usize,
    /// WordAnalysis with an empty cache.
    pub(crate) analysis: Duration,
    pub(crate) programs: Vec<ProgramFigures>,
}

/// One program, all rounds together.
pub(crate) struct ProgramFigures {
    pub(crate) name: &'static str,
    pub(crate) paper_percent: f64,
    pub(crate) off: Duration,
    pub(crate) on: Duration,
    /// How often it read something from the cache.
    pub(crate) n_hits: u32,
    /// How the rows differ, if they do.
    pub(crate) difference: Option<String>,
}

impl ProgramFigures {
    pub(crate) fn saved_percent(&self) -> f64 {
        saved_percent(self.on, self.off)
    }
}

/// Makes the documents and measures.
pub(crate) async fn measure(args: &DocumentsArgs, folder: &Path) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("documents").tempdir_in(folder)?;
    let documents = folder.path().join("documents");
    let started = Instant::now();
    let text_bytes = tokio::task::block_in_place(|| text::generate(&documents, args.count, args.words, args.files))?;
    eprintln!("{} documents made in {:.1} s", args.count, started.elapsed().as_secs_f64());
    tokio::time::sleep(REST).await;

    let programs = PROGRAMS.iter().map(|(name, _, paper_percent)| ProgramFigures {
        name,
        paper_percent: *paper_percent,
        off: Duration::ZERO,
        on: Duration::ZERO,
        n_hits: 0,
        difference: None,
    });
    let programs = programs.collect();
    let mut figures = Figures { args: args.clone(), text_bytes, n_words: 0, analysis: Duration::ZERO, programs };
    for _ in 0..args.rounds {
        round(&mut figures, &documents).await?;
    }
    for program in &figures.programs {
        eprintln!(
            "{:8}  off {:8.1} ms  on {:7.1} ms  saved {:.2} % of processor time",
            program.name,
            program.off.as_secs_f64() * 1000.0,
            program.on.as_secs_f64() * 1000.0,
            program.saved_percent()
        );
    }
    folder.close().context("cannot remove the documents")?;
    Ok(figures)
}

async fn round(figures: &mut Figures, documents: &Path) -> Result<()> {
    let client = Client::open(machine::n_cores()).await?;
    client.create_table("documents", "", "PARQUET", documents).await?;
    for view in VIEWS {
        client.run(view).await?;
    }
    client.set_reuse(false).await?;
    // What is learnt of files at first sight is nobody's time.
    let fresh = client.run(WORD_ANALYSIS).await?;
    let mut answers = vec![];
    for (program, (_, sql, _)) in figures.programs.iter_mut().zip(PROGRAMS) {
        let asked = client.ask(sql).await?;
        program.off += asked.cpu;
        answers.push(asked.outcome?);
    }

    client.set_reuse(true).await?;
    let analysis = client.ask(WORD_ANALYSIS).await?;
    figures.analysis += analysis.cpu;
    let analysed = analysis.outcome?;
    figures.n_words = analysed.iter().map(|batch| batch.num_rows()).sum();
    if let Some(difference) = difference(&analysed, &fresh)? {
        anyhow::bail!("WordAnalysis gives other rows with an empty cache: {difference}");
    }
    for ((program, (_, sql, _)), fresh) in figures.programs.iter_mut().zip(PROGRAMS).zip(answers) {
        let asked = client.ask(sql).await?;
        program.on += asked.cpu;
        program.n_hits += u32::from(asked.reused != Reused::None);
        let found = difference(&asked.outcome?, &fresh)?;
        program.difference = program.difference.take().or(found);
    }
    client.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_start_from_the_analysis_and_answer_the_same() {
        let measure = async {
            let folder = tempfile::tempdir()?;
            measure(&DocumentsArgs { count: 200, words: 80, files: 3, rounds: 1 }, folder.path()).await
        };
        let runtime = crate::runtime().unwrap();
        let figures = runtime.block_on(async { tokio::spawn(measure).await }).unwrap().unwrap();
        assert!(figures.n_words > 1_000, "{} words", figures.n_words);
        for program in &figures.programs {
            assert_eq!(program.difference, None, "{}", program.name);
            assert_eq!(program.n_hits, 1, "{} reads the analysis", program.name);
        }
    }
}
