//! [`Page`]: docs/benchmarks.md, section by section. A run replaces the sections that it measured and leaves the others alone.
//!
//! ```text
//!   # Benchmarks                    written anew each time, with a table of contents made from the sections
//!   <!-- part: peers -->
//!   ## ..                           what the last run of that part said
//!   <!-- end of peers -->
//!   <!-- part: reuse -->
//!   ..
//! ```
//!
//! Pictures are beside the page, in benchmarks/.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::part::Part;
use crate::report::Section;

/// The folder of the pictures, beside the page.
pub(crate) const PICTURES: &str = "benchmarks";

const INTRODUCTION: &str = "\
# Benchmarks

What `nectarine-benchmarks` measured, part by part. Targets that are missed say FAIL; unfavourable figures stay in. Other people use the
same small machine: compare ratios, not milliseconds. Each section says when, where and by which command it was made.

<!-- not run: it takes from minutes to hours; the unit tests of benchmarks run a tiny size of it -->
```sh
cargo run --release -p nectarine-benchmarks -- all --scale full                       # all parts, more than an hour
cargo run --release -p nectarine-benchmarks -- all --scale small                      # a tenth of the data, about ten minutes
cargo run --release -p nectarine-benchmarks -- all --scale full --only peers,append   # some of them; the rest of the page stays
cargo run --release -p nectarine-benchmarks -- peers --help                           # one part, with its own sizes
```
";

/// The page as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Keys and texts, in the order of the page.
    sections: Vec<(String, String)>,
}

impl Page {
    /// Takes a page apart. What is not between marks is not kept: it is made anew.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut sections = vec![];
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once("<!-- part: ") {
            let Some((key, behind)) = behind.split_once(" -->") else { bail!("a mark of a part has no end") };
            let end = format!("<!-- end of {key} -->");
            let Some((section, behind)) = behind.split_once(&end) else { bail!("part \"{key}\" has no end") };
            if section.contains("<!-- part: ") {
                bail!("part \"{key}\" has no end");
            }
            sections.push((key.to_string(), section.trim().to_string()));
            rest = behind;
        }
        Ok(Self { sections })
    }

    /// Puts a section in the place of the one that the part had.
    pub(crate) fn put(&mut self, part: Part, text: &str) {
        self.sections.retain(|(key, _)| key != part.key());
        self.sections.push((part.key().to_string(), text.trim().to_string()));
        // Sections of parts that this program does not know stay, at the end.
        let place = |key: &str| Part::ALL.iter().position(|part| part.key() == key).unwrap_or(Part::ALL.len());
        self.sections.sort_by_key(|(key, _)| place(key));
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{INTRODUCTION}\n| part | section | targets met | missed |\n|---|---|--:|--:|\n");
        for (key, section) in &self.sections {
            let (met, missed) = (n_words(section, "PASS"), n_words(section, "FAIL"));
            let _ = writeln!(text, "| {key} | {} | {met} | {missed} |", headings(section));
        }
        for (key, section) in &self.sections {
            let _ = write!(text, "\n<!-- part: {key} -->\n{section}\n<!-- end of {key} -->\n");
        }
        text
    }
}

/// Writes a section and its pictures into the page at `path`, which is made if it is not there.
pub(crate) fn update(path: &Path, section: &Section) -> Result<()> {
    let cannot = || format!("cannot write \"{}\"", path.display());
    let known = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read \"{}\"", path.display())),
    };
    let mut page = Page::parse(&known).with_context(|| format!("cannot read \"{}\"", path.display()))?;
    page.put(section.part, &section.text);
    let folder = path.parent().unwrap_or_else(|| Path::new("")).join(PICTURES);
    fs::create_dir_all(&folder).with_context(cannot)?;
    for (name, svg) in &section.pictures {
        fs::write(folder.join(name), svg).with_context(cannot)?;
    }
    fs::write(path, page.text()).with_context(cannot)
}

/// Links to a section's headings, as pages of Markdown name them.
fn headings(section: &str) -> String {
    let titles = section.lines().filter_map(|line| line.strip_prefix("## "));
    let links: Vec<String> = titles.map(|title| format!("[{title}](#{})", anchor(title))).collect();
    links.join(", ")
}

fn anchor(title: &str) -> String {
    let letters = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn n_words(text: &str, word: &str) -> usize {
    text.split(|c: char| !c.is_alphanumeric()).filter(|found| *found == word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(part: Part, text: &str, pictures: &[&str]) -> Section {
        let pictures = pictures.iter().map(|name| ((*name).to_string(), "<svg/>".to_string())).collect();
        Section { part, text: text.to_string(), pictures }
    }

    #[test]
    fn a_run_replaces_its_own_sections_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.md");
        update(&path, &section(Part::Tpch, "## TPC-H: a, b\n\n1.02 PASS, 1.2 FAIL", &[])).unwrap();
        update(&path, &section(Part::Peers, "## Peers\n\nfirst", &["peers.svg"])).unwrap();
        let before = fs::read_to_string(&path).unwrap();
        update(&path, &section(Part::Peers, "## Peers\n\nsecond FAIL", &["peers.svg"])).unwrap();
        let after = fs::read_to_string(&path).unwrap();
        assert!(before.contains("first") && !after.contains("first") && after.contains("second"));
        assert!(after.contains("| tpch | [TPC-H: a, b](#tpc-h-a-b) | 1 | 1 |"), "{after}");
        assert!(after.contains("| peers | [Peers](#peers) | 0 | 1 |"), "{after}");
        // In the order of the parts, not of the runs.
        assert!(after.find("part: peers") < after.find("part: tpch"));
        assert_eq!(fs::read_to_string(folder.path().join("benchmarks/peers.svg")).unwrap(), "<svg/>");
        let page = Page::parse(&after).unwrap();
        assert_eq!(page.text(), after, "what is read is what was written");
        assert_eq!(page.sections.len(), 2);
    }

    #[test]
    fn a_page_that_somebody_broke_is_left_alone() {
        for broken in
            ["<!-- part: tpch -->\ntext", "<!-- part: a -->\n<!-- part: b -->\n<!-- end of b -->", "<!-- part: a"]
        {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("page.md");
            fs::write(&path, broken).unwrap();
            assert!(update(&path, &section(Part::Tpch, "## x", &[])).is_err(), "{broken}");
            assert_eq!(fs::read_to_string(&path).unwrap(), broken);
        }
        let mut page = Page::parse("<!-- part: of-tomorrow -->\nkept\n<!-- end of of-tomorrow -->").unwrap();
        page.put(Part::Tpch, "## x");
        assert!(page.text().contains("kept"));
    }

    /// What is in the repository was written by this program, has every part, and every picture that it shows.
    #[test]
    fn the_page_is_whole() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let text = fs::read_to_string(docs.join("benchmarks.md")).unwrap();
        let page = Page::parse(&text).unwrap();
        assert_eq!(page.text(), text, "docs/benchmarks.md was edited by hand");
        let keys: Vec<&str> = page.sections.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, Part::ALL.map(Part::key));
        for shown in text.split(&format!("]({PICTURES}/")).skip(1).filter_map(|rest| rest.split(')').next()) {
            let svg =
                fs::read_to_string(docs.join(PICTURES).join(shown)).unwrap_or_else(|error| panic!("{shown}: {error}"));
            crate::chart::tests::assert_well_formed(&svg);
        }
    }
}
