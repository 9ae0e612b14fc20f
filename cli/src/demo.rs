//! `nectarine demo`: a tour over a click log that it makes itself.
//!
//! Everything lives in the home's `demo` folder and in the schema `demo`, so a second run finds what the first left and
//! nothing of the user's is touched. Files of days that exist are left alone: an unchanged extent stays known.

mod click_log;

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use arrow::util::display::array_value_to_string;
use nectarine_engine::{Receipt, Reused};

use crate::args::DemoArgs;
use crate::exec::{Flow, Shell, reused};
use crate::failure::{Failure, Result};
use crate::lexer::State;
use crate::output::Paging;
use crate::print::{Format, View};
use crate::prompt::highlight;
use crate::terminal::Paint;
use crate::units;
use crate::variables::quoted;
use click_log::ClickLog;

/// Days before the one that arrives during the tour.
const DAYS: u32 = 14;

/// Queries and what they answer.
const QUERIES: &[(&str, &str)] = &[
    (
        "How much is there?",
        "\
SELECT count(*) AS clicks, count(DISTINCT user_id) AS users, min(ts) AS first, max(ts) AS last
FROM demo.clicks",
    ),
    (
        "How did traffic develop, and how fast was the site?",
        "\
SELECT CAST(ts AS DATE) AS day, count(*) AS clicks, count(DISTINCT session_id) AS visits,
       round(approx_percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms)) AS p95_ms
FROM demo.clicks GROUP BY 1 ORDER BY 1",
    ),
    (
        "Which visits end in an order?",
        "\
WITH visits AS (
  SELECT session_id, min(referrer) AS referrer, bool_or(page = '/thanks') AS ordered
  FROM demo.clicks GROUP BY session_id
)
SELECT referrer, count(*) AS visits, count(*) FILTER (WHERE ordered) AS orders,
       round(100.0 * count(*) FILTER (WHERE ordered) / count(*), 1) AS percent
FROM visits GROUP BY referrer ORDER BY percent DESC",
    ),
    (
        "Where do those who click most live, and do they pay?",
        "\
SELECT u.country, count(*) AS clicks,
       count(*) FILTER (WHERE u.plan = 'free') AS free,
       count(*) FILTER (WHERE u.plan <> 'free') AS paying
FROM demo.clicks c JOIN demo.users u ON u.user_id = c.user_id
GROUP BY u.country ORDER BY clicks DESC LIMIT 5",
    ),
];

/// The one that is asked again.
const AGAIN: usize = 3;

/// Runs the tour.
pub(crate) fn run(shell: &mut Shell, args: &DemoArgs) -> anyhow::Result<Flow> {
    Ok(match tour(shell, args) {
        Ok(()) => Flow::Done,
        Err(failure) => shell.fail(&failure, None),
    })
}

fn tour(shell: &mut Shell, args: &DemoArgs) -> Result<()> {
    // A tour goes on by itself.
    shell.output.paging = Paging::Off;
    let home = shell.client.local()?.1.to_owned();
    let folder = home.join("demo");
    let log = ClickLog::new(folder.clone(), args.clicks_per_day);

    heading(shell, "A click log")?;
    let started = Instant::now();
    let made = log
        .write(DAYS)
        .map_err(|error| Failure::io(format!("cannot write the click log below '{}'", folder.display()), &error))?;
    let elapsed = units::duration(started.elapsed());
    let what = format!("{DAYS} days of clicks, {} in {}", units::bytes(made.bytes), folder.display());
    say(
        shell,
        &if made.files_new == 0 {
            format!("{what} (from an earlier run)")
        } else {
            format!("{what}, written in {elapsed}")
        },
    )?;
    for name in ["clicks", "users"] {
        check_ours(shell, &folder, name)?;
    }
    for statement in setup(&folder) {
        sql(shell, &statement)?;
        run_quietly(shell, &statement)?;
    }

    for (title, query) in QUERIES {
        heading(shell, title)?;
        sql(shell, query)?;
        answer(shell, query)?;
    }

    let (title, query) = QUERIES[AGAIN];
    heading(shell, "The same again")?;
    say(shell, &format!("\"{title}\" Nothing has changed, so nothing is computed."))?;
    answer(shell, query)?;

    heading(shell, "A day arrives")?;
    let path = log.write_day(DAYS).map_err(|error| Failure::io("cannot write another day", &error))?;
    say(shell, &format!("{} is new. Nothing is loaded or refreshed; the next statement sees it.", path.display()))?;
    let count = "SELECT count(*) AS clicks, count(DISTINCT user_id) AS users, max(ts) AS last FROM demo.clicks";
    sql(shell, count)?;
    answer(shell, count)?;
    say(shell, &format!("\"{title}\" once more."))?;
    let receipt = answer(shell, query)?;
    say(
        shell,
        match receipt.reused {
            // The file of the new day is the same in each run, and so are its results.
            Reused::Exact => "An earlier run has seen the same days: nothing was read.",
            Reused::Partial => "The old days are known; only the new one was read.",
            Reused::None => "Nothing was reused.",
        },
    )?;

    heading(shell, "Try next")?;
    next_steps(shell, &home)
}

/// Fails if there is a table of that name which is not over the demo's files: it is the user's.
fn check_ours(shell: &mut Shell, folder: &Path, name: &str) -> Result<()> {
    let found = shell.fetch(&format!(
        "SELECT location FROM system.tables WHERE table_schema = 'demo' AND table_name = '{name}' AND location IS NOT NULL \
         UNION ALL SELECT '' FROM system.tables WHERE table_schema = 'demo' AND table_name = '{name}' AND location IS NULL"
    ))?;
    let files = folder.display().to_string();
    for batch in found.iter().filter(|batch| batch.num_rows() > 0) {
        let location = array_value_to_string(batch.column(0), 0).unwrap_or_default();
        if !location.trim_start_matches("file://").starts_with(&files) {
            return Err(Failure::new(format!("\"demo.{name}\" is a table of your own"))
                .with_hint("give it another name, or run the demo on another home: nectarine --home DIR demo"));
        }
    }
    Ok(())
}

/// The tables over the files.
fn setup(folder: &Path) -> Vec<String> {
    let path = |name: &str| quoted(&folder.join(name).display().to_string(), '\'');
    vec![
        "CREATE SCHEMA IF NOT EXISTS demo".to_owned(),
        format!(
            "CREATE EXTERNAL TABLE IF NOT EXISTS demo.clicks STORED AS CSV\nLOCATION {}\nOPTIONS ('format.has_header' 'true')",
            path("clicks/")
        ),
        format!("CREATE EXTERNAL TABLE IF NOT EXISTS demo.users STORED AS JSON\nLOCATION {}", path("users.json")),
    ]
}

fn next_steps(shell: &mut Shell, home: &Path) -> Result<()> {
    let default = home == nectarine_engine::default_home();
    let program = if default { "nectarine".to_owned() } else { format!("nectarine --home {}", home.display()) };
    let steps = [
        (program.as_str(), "a prompt on this home; then \\d demo.clicks"),
        ("SELECT * FROM demo.clicks WHERE page = '/thanks' LIMIT 10;", "look at single rows; \\x prints them upright"),
        (
            "EXPLAIN REUSE SELECT page, count(*) FROM demo.clicks GROUP BY page;",
            "what would be reused, and why not more",
        ),
        ("SELECT * FROM system.extents WHERE table_name = 'clicks';", "the files behind the table"),
        ("SELECT count(*) FROM 'some/folder/*.parquet';", "your own files, without a table"),
        ("CREATE TABLE orders AS SELECT * FROM demo.clicks WHERE page = '/thanks';", "keep a result"),
        ("\\copy (SELECT * FROM demo.users) to 'users.csv'", "take it elsewhere"),
    ];
    for (step, why) in steps {
        let shown = if shell.terminal.colors_rows() && !step.starts_with("nectarine") {
            highlight(step, State::Plain)
        } else {
            step.to_owned()
        };
        writeln!(shell.output, "  {shown}")?;
        writeln!(shell.output, "      {}", painted(shell, Paint::Faint, why))?;
    }
    shell.output.flush()?;
    Ok(())
}

fn heading(shell: &mut Shell, title: &str) -> Result<()> {
    let shown = painted(shell, Paint::Strong, title);
    shell.print_line(&format!("\n{shown}"))
}

fn say(shell: &mut Shell, text: &str) -> Result<()> {
    shell.print_line(text)
}

/// Shows a statement the way it would be typed.
fn sql(shell: &mut Shell, text: &str) -> Result<()> {
    let mut shown = if shell.terminal.colors_rows() { highlight(text, State::Plain) } else { text.to_owned() };
    shown.push(';');
    let indented: Vec<String> = shown.lines().map(|line| format!("  {line}")).collect();
    shell.print_line(&indented.join("\n"))
}

/// Prints the rows, how long they took, and what was reused.
fn answer(shell: &mut Shell, query: &str) -> Result<Receipt> {
    let view = View { footer: false, ..View::new(Format::Table, true) };
    let summary = shell.print_answer(query, &view, None)?;
    let (rows, elapsed) = (units::rows(summary.rows), units::duration(summary.elapsed));
    let line = format!("{rows}, {elapsed}{}", reused(&summary.receipt));
    let shown = painted(shell, Paint::Faint, &line);
    shell.print_line(&shown)?;
    Ok(summary.receipt)
}

fn run_quietly(shell: &mut Shell, statement: &str) -> Result<()> {
    shell.fetch(statement).map(drop)
}

fn painted(shell: &Shell, paint: Paint, text: &str) -> String {
    if shell.terminal.colors_rows() { paint.on(text) } else { text.to_owned() }
}
