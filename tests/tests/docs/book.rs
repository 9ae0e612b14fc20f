//! Everything that the book shows as SQL or as a command is run, by the real binary, page by page, in a folder and on a home of the
//! page's own. What is not run says why; `tests/run docs:: -- --nocapture` lists it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nectarine_tests::program::{Ran, binary, clean, finish};
use tempfile::TempDir;

use super::page::{Block, Item, Mark, Typed, items, typed};

/// Pages that are run here, each by a test of its own.
const PAGES: [&str; 13] = [
    "../README.md",
    "README.md",
    "getting-started.md",
    "sql.md",
    "reuse.md",
    "operating.md",
    "clients.md",
    "reports.md",
    "jobs.md",
    "settings.md",
    "soundness.md",
    "testing.md",
    "benchmarks.md",
];

/// Pages about several machines, and services of other systems: the tests of these run what they show.
const ELSEWHERE: [&str; 2] = ["deploy.md", "scaling.md"];

/// What the pages say where a server of the test's has something else.
const ADDRESS: &str = "127.0.0.1:32010";
const MONITOR: &str = "127.0.0.1:9090";
const PASSWORD: &str = "6g0Qk2mB1y9sT4wXc8ZrJ5vN";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").join("docs")
}

/// A page's folder.
struct Reader {
    page: &'static str,
    folder: TempDir,
    server: Option<Child>,
    /// What stands in for what is shown.
    instead: Vec<(&'static str, String)>,
    n_run: usize,
}

impl Reader {
    fn new(page: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { page, folder, server: None, instead: vec![], n_run: 0 }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        clean(&mut command);
        let folder = binary().parent().expect("a folder").to_path_buf();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(folder).chain(std::env::split_paths(&path));
        command
            .current_dir(self.folder.path())
            .env("PATH", std::env::join_paths(paths).expect("a path"))
            .env("NECTARINE_HOME", self.folder.path().join("home"));
        command
    }

    fn bash(&self, script: &str) -> Ran {
        let mut command = self.command(Path::new("bash"));
        command.args(["-euo", "pipefail", "-c", &self.filled(script)]);
        finish(command, b"")
    }

    fn sql(&self, script: &str) -> Ran {
        finish(self.command(&binary()), self.filled(script).as_bytes())
    }

    fn filled(&self, text: &str) -> String {
        self.instead.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    fn succeeded(&mut self, line: usize, text: &str, ran: &Ran) {
        assert!(ran.status.success(), "docs/{}:{line} fails\n{text}\n{}\n{}", self.page, ran.stdout, ran.stderr);
        self.n_run += 1;
    }

    fn serve(&mut self) {
        let mut command = self.command(&binary());
        command.args(["serve", "--flight", "127.0.0.1:0", "--monitor", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        self.server = Some(child);
        loop {
            let line = lines.next().expect("the server says where it is").expect("text");
            if let Some((_, password)) = line.split_once(" with password ") {
                let password = password.split(' ').next().unwrap_or_default();
                self.instead.push((PASSWORD, password.to_owned()));
            } else if let Some(address) = line.strip_prefix("Metrics at http://") {
                self.instead.push((MONITOR, address.trim_end_matches("/metrics").to_owned()));
            } else if let Some(address) = line.strip_prefix("Flight SQL at grpc://") {
                self.instead.push((ADDRESS, address.to_owned()));
                return;
            }
        }
    }

    fn block(&mut self, block: &Block) {
        let Block { line, language, text, mark } = block;
        match (mark, language.as_str()) {
            (Mark::NotRun(_), _) => {}
            (Mark::File(name), _) => {
                let path = self.folder.path().join(name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
                fs::write(path, self.filled(text)).expect("a file can be written");
            }
            (Mark::None, "sql") => {
                let ran = self.sql(text);
                self.succeeded(*line, text, &ran);
            }
            (Mark::None, "sh") => {
                let ran = self.bash(text);
                self.succeeded(*line, text, &ran);
            }
            (Mark::None, "python") => {
                // Without one it says so, and the tests of clients are left out as well.
                let Some(python) = nectarine_tests::flight::python() else { return };
                let mut command = self.command(Path::new(&python));
                command.args(["-W", "ignore", "-c", &self.filled(text)]);
                let ran = finish(command, b"");
                self.succeeded(*line, text, &ran);
            }
            (Mark::None, "console") => typed(text).iter().for_each(|step| self.step(*line, step)),
            (Mark::None, "text" | "toml") => {}
            (Mark::None, other) => {
                panic!("docs/{}:{line}: nobody runs {other}: say why not, or call it text", self.page)
            }
        }
    }

    fn step(&mut self, line: usize, step: &Typed) {
        let ran = if step.by_bash { self.bash(&step.text) } else { self.sql(&step.text) };
        match step.shown.iter().find(|shown| shown.starts_with("error: ")) {
            None => self.succeeded(line, &step.text, &ran),
            Some(error) => {
                assert!(!ran.status.success(), "docs/{}:{line}: it does not fail: {}", self.page, step.text);
                assert!(ran.stderr.contains(error), "docs/{}:{line}: {error}\n{}", self.page, ran.stderr);
                self.n_run += 1;
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Runs a page; at least so many of its snippets must have been run.
fn run(page: &'static str, at_least: usize) {
    let text = fs::read_to_string(docs().join(page)).unwrap_or_else(|error| panic!("docs/{page}: {error}"));
    let found = items(&text).unwrap_or_else(|error| panic!("docs/{page}: {error}"));
    let mut reader = Reader::new(page);
    for item in &found {
        match item {
            Item::Setup { line, script } => {
                let ran = reader.bash(script);
                assert!(ran.status.success(), "docs/{page}:{line}: the setup fails\n{}\n{}", ran.stdout, ran.stderr);
            }
            Item::Server => reader.serve(),
            Item::Block(block) => reader.block(block),
        }
    }
    assert!(reader.n_run >= at_least, "docs/{page}: only {} snippets were run", reader.n_run);
}

macro_rules! pages {
    ($($name:ident: $page:literal, $at_least:literal;)*) => {
        $(#[test]
        fn $name() {
            run($page, $at_least);
        })*

        #[test]
        fn every_page_has_its_test() {
            assert_eq!(PAGES, [$($page),*]);
            let mut found: Vec<String> = fs::read_dir(docs()).expect("docs").flatten()
                .map(|file| file.file_name().to_string_lossy().into_owned())
                .filter(|name| name.ends_with(".md") && !ELSEWHERE.contains(&name.as_str()))
                .collect();
            found.sort();
            let mut known: Vec<&str> = PAGES.into_iter().filter(|page| !page.starts_with("..")).collect();
            known.sort_unstable();
            assert_eq!(found, known);
        }
    };
}

pages! {
    front_page: "../README.md", 2;
    contents: "README.md", 0;
    getting_started: "getting-started.md", 10;
    sql_reference: "sql.md", 8;
    reuse_explained: "reuse.md", 20;
    operating: "operating.md", 10;
    clients: "clients.md", 4;
    reports: "reports.md", 5;
    jobs: "jobs.md", 2;
    settings: "settings.md", 0;
    soundness: "soundness.md", 0;
    testing: "testing.md", 1;
    benchmarks: "benchmarks.md", 0;
}

/// Few snippets are not run, and each says why.
#[test]
fn what_is_not_run() {
    let (mut n_all, mut n_left_out) = (0, 0);
    for page in PAGES {
        let text = fs::read_to_string(docs().join(page)).unwrap_or_else(|error| panic!("docs/{page}: {error}"));
        for item in items(&text).unwrap_or_else(|error| panic!("docs/{page}: {error}")) {
            let Item::Block(block) = item else { continue };
            n_all += usize::from(block.language != "text");
            if let Mark::NotRun(why) = block.mark {
                println!("docs/{page}:{} ({}) {why}", block.line, block.language);
                n_left_out += 1;
            }
        }
    }
    println!("{n_left_out} of {n_all}");
    assert!(n_left_out * 4 < n_all, "{n_left_out} of {n_all} snippets are not run");
}

/// Knobs that are told of are looked at by somebody.
#[test]
fn knobs_exist() {
    fn known(folder: &Path, text: &mut String) {
        for file in fs::read_dir(folder).expect("a folder").flatten() {
            let path = file.path();
            if path.is_dir() && file.file_name() != "target" {
                known(&path, text);
            } else if path.extension().is_some_and(|ending| ending == "rs") || path.ends_with("tests/run") {
                text.push_str(&fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    let mut sources = String::new();
    for folder in ["catalog", "planner", "executor", "engine", "cli", "tests", "benchmarks"] {
        known(&docs().join("..").join(folder), &mut sources);
    }
    let page = fs::read_to_string(docs().join("testing.md")).expect("the page");
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let knobs: Vec<&str> =
        page.split(|letter| !is_part(letter)).filter(|word| word.starts_with("NECTARINE_")).collect();
    assert!(knobs.len() > 20, "{knobs:?}");
    for knob in knobs {
        assert!(
            sources.contains(&format!("\"{knob}\"")) || sources.contains(&format!("{knob}:-")),
            "nobody looks at {knob}"
        );
    }
}

/// What pages point at is there: other pages, their headings, pictures, files.
#[test]
fn links_lead_somewhere() {
    for page in PAGES {
        let path = docs().join(page);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/{page}: {error}"));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            if file.starts_with("http") || ELSEWHERE.iter().any(|elsewhere| file.ends_with(elsewhere)) {
                continue;
            }
            let target_path = if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            assert!(target_path.exists(), "docs/{page} points at {target}");
            if !heading.is_empty() {
                let text = fs::read_to_string(&target_path).expect("a page");
                let known = text.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(known.into_iter().any(|known| known == heading), "docs/{page} points at {target}");
            }
        }
    }
}

/// As pages of Markdown name their headings.
fn anchor(heading: &str) -> String {
    let letters = heading.trim_start_matches('#').trim().chars();
    let letters = letters.filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    letters.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}
