//! A page of the book, taken apart: what is shown as code, in order, and the marks that say what to do with it.
//!
//! ```text
//!   ```sql                          run by the shell, as a script on the page's home; everything must succeed
//!   ```sh                           run by bash, with `nectarine` on the path
//!   ```console                      lines with `$ ` are for bash, lines with `> ` for the prompt; the others are what was answered,
//!                                   and looked at where they begin with `error: `
//!   ```python                       run where `tests/run` has made a Python with clients
//!   ```text, toml                   shown
//!   <!-- not run: why -->           the block that follows is not run
//!   <!-- file: name -->             the block that follows is what is in that file, for those behind it
//!   <!-- setup .. -->               lines for bash that readers need not see
//!   <!-- server -->                 `nectarine serve` runs on the page's home from here on
//! ```

/// What comes next on a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Setup { line: usize, script: String },
    Server,
    Block(Block),
}

/// What is shown as code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Where it begins, counted from 1.
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: String,
    pub(super) mark: Mark,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Mark {
    #[default]
    None,
    NotRun(String),
    File(String),
}

/// All items of a page; an error says what is not as above, and where.
pub(super) fn items(text: &str) -> Result<Vec<Item>, String> {
    let mut items = vec![];
    let mut mark = Mark::None;
    let mut is_after_blank = true;
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            let mut block = String::new();
            loop {
                match lines.next() {
                    Some((_, line)) if line.trim() == "```" => break,
                    Some((_, line)) => block.push_str(&format!("{line}\n")),
                    None => return Err(format!("line {number}: the block has no end")),
                }
            }
            if language.is_empty() {
                return Err(format!("line {number}: say which language it is, or text"));
            }
            let mark = std::mem::take(&mut mark);
            items.push(Item::Block(Block { line: number, language: language.to_owned(), text: block, mark }));
        } else if trimmed == "<!-- setup" {
            let mut script = String::new();
            loop {
                match lines.next() {
                    Some((_, line)) if line.trim() == "-->" => break,
                    Some((_, line)) => script.push_str(&format!("{line}\n")),
                    None => return Err(format!("line {number}: the setup has no end")),
                }
            }
            items.push(Item::Setup { line: number, script });
        } else if let Some(comment) = trimmed.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            match comment.split_once(": ") {
                _ if comment == "server" => items.push(Item::Server),
                Some(("not run", why)) if why.len() > 10 => mark = Mark::NotRun(why.to_owned()),
                Some(("file", name)) => mark = Mark::File(name.to_owned()),
                Some(("part", _)) => {}
                _ if comment.starts_with("end of ") => {}
                _ => return Err(format!("line {number}: no mark is called \"{comment}\"")),
            }
        } else if is_after_blank && line.starts_with("    ") {
            return Err(format!("line {number}: an indented block; write it between fences, with its language"));
        } else if !trimmed.is_empty() && mark != Mark::None {
            return Err(format!("line {number}: a mark without its block"));
        }
        is_after_blank = trimmed.is_empty();
    }
    match mark {
        Mark::None => Ok(items),
        _ => Err("a mark without its block at the end".to_owned()),
    }
}

/// A step of a console: what is typed, and what is shown behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// By bash, or at the prompt.
    pub(super) by_bash: bool,
    pub(super) text: String,
    pub(super) shown: Vec<String>,
}

/// What is typed in a console. Statements go on until their semicolon; a command whose line ends in a backslash goes on.
pub(super) fn typed(console: &str) -> Vec<Typed> {
    let mut steps: Vec<Typed> = vec![];
    let mut is_open = false;
    for line in console.lines() {
        let (prompt, rest) = match (line.strip_prefix("$ "), line.strip_prefix("> ")) {
            (Some(rest), _) => (Some(true), rest),
            (None, Some(rest)) => (Some(false), rest),
            (None, None) => (None, line),
        };
        match (prompt, steps.last_mut()) {
            (_, Some(last)) if is_open => last.text.push_str(&format!("\n{rest}")),
            (Some(by_bash), _) => steps.push(Typed { by_bash, text: rest.to_owned(), shown: vec![] }),
            (None, Some(last)) => {
                last.shown.push(line.to_owned());
                continue;
            }
            (None, None) => continue,
        }
        is_open = match steps.last() {
            Some(Typed { by_bash: true, text, .. }) => text.ends_with('\\'),
            // What follows the semicolon is a comment.
            Some(Typed { by_bash: false, text, .. }) => !text.contains(';') && !text.trim_start().starts_with("--"),
            None => false,
        };
    }
    steps
}

#[test]
fn pages_are_taken_apart() {
    let page = "# x\n\n<!-- setup\nmkdir a\n-->\n```sql\nSELECT 1;\n```\n\n<!-- not run: it takes for ever -->\n```sh\nyes\n```\n";
    let block = |line, language: &str, text: &str, mark| {
        Item::Block(Block { line, language: language.to_owned(), text: text.to_owned(), mark })
    };
    let expected = vec![
        Item::Setup { line: 3, script: "mkdir a\n".to_owned() },
        block(6, "sql", "SELECT 1;\n", Mark::None),
        block(11, "sh", "yes\n", Mark::NotRun("it takes for ever".to_owned())),
    ];
    assert_eq!(items(page), Ok(expected));
    for wrong in [
        "x\n\n    indented\n",
        "```\nx\n```\n",
        "```sql\nx\n",
        "<!-- what: x -->\n",
        "<!-- file: a -->\ntext\n",
        "<!-- not run: x -->\n",
    ] {
        assert!(items(wrong).is_err(), "{wrong}");
    }
    let steps = typed("$ a \\\n  b\nout\n> SELECT\n> 1;\nerror: x\n> -- a file arrives\n> SELECT 2; -- y\n");
    let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(texts, ["a \\\n  b", "SELECT\n1;", "-- a file arrives", "SELECT 2; -- y"]);
    assert_eq!(steps[1].shown, ["error: x"]);
}
