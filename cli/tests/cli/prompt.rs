//! The prompt on a real terminal.

use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};

use super::Home;

/// Opens a prompt and waits for it.
fn open(home: &Home, environment: &[(&str, &str)]) -> PtySession {
    let mut command = home.command();
    command.env("TERM", "xterm").env("NO_COLOR", "1").env("PAGER", "cat").env("COLUMNS", "100").env("LINES", "30");
    command.envs(environment.iter().copied());
    let options = Options::new().timeout_ms(Some(30_000)).strip_ansi_escape_codes(true);
    let mut terminal = spawn_with_options(command, options).expect("a terminal");
    terminal.exp_string("nectarine=> ").expect("a prompt");
    // The reader takes every byte for a character.
    ask(&mut terminal, "\\pset linestyle ascii");
    terminal
}

/// Types without pressing Enter.
fn type_keys(terminal: &mut PtySession, keys: &str) {
    terminal.send(keys).expect("keys sent");
    terminal.flush().expect("keys sent");
}

/// Sends a line and gives what came before the next prompt.
#[track_caller]
fn ask(terminal: &mut PtySession, line: &str) -> String {
    terminal.send_line(line).expect("a line sent");
    // The editor shows the prompt again with what is typed: the answer follows the echo of the whole line.
    let echo = line.split('\t').next().unwrap_or(line);
    terminal.exp_string(echo).unwrap_or_else(|error| panic!("no echo of {line:?}: {error}"));
    let mut answer = String::new();
    loop {
        let text =
            terminal.exp_string("nectarine=> ").unwrap_or_else(|error| panic!("no prompt after {line:?}: {error}"));
        answer.push_str(&text);
        // Redraws of the same line end at once; a new prompt is followed by nothing until we type.
        if text.contains('\n') {
            return answer;
        }
    }
}

fn quit(mut terminal: PtySession) {
    terminal.send_line("\\q").expect("a line sent");
    terminal.exp_eof().expect("the end");
}

#[test]
fn statements_span_lines_and_answers_tell_rows_and_time() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    terminal.send_line("select 40 +").unwrap();
    terminal.exp_string("nectarine-> ").unwrap();
    terminal.send_line("  2 as answer;").unwrap();
    terminal.exp_string("| answer |").unwrap();
    terminal.exp_string("|     42 |").unwrap();
    terminal.exp_regex("1 row, [0-9.]+ m?s").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    terminal.send_line("select 'a").unwrap();
    terminal.exp_string("nectarine'> ").unwrap();
    terminal.send_control('c').unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    let answer = ask(&mut terminal, "select 'clean' as x;");
    assert!(answer.contains("clean"), "{answer}");
    quit(terminal);
}

#[test]
fn errors_do_not_end_the_prompt() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    let answer = ask(&mut terminal, "select nothing; select 7 as seven;");
    assert!(answer.contains("error: ") && answer.contains("|     7 |"), "{answer}");
    let answer = ask(&mut terminal, "\\nonsense");
    assert!(answer.contains("unknown command"), "{answer}");
    quit(terminal);
}

#[test]
fn ctrl_c_cancels_the_statement_not_the_shell() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    terminal.send_line("select count(*) from generate_series(1, 100000000000);").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    terminal.send_control('c').unwrap();
    let before = terminal.exp_string("statement cancelled").unwrap();
    // The live line was there, and was taken away with what the terminal echoes: the error begins where it began.
    let (line, rest) = before.rsplit_once('\r').expect("a live line");
    assert!(line.contains("running"), "{line:?}");
    assert_eq!(rest, "error: ");
    terminal.exp_string("nectarine=> ").unwrap();
    let answer = ask(&mut terminal, "select 'still' || ' here' as x;");
    assert!(answer.contains("still here"), "{answer}");
    quit(terminal);
}

#[test]
fn ctrl_d_leaves() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    terminal.send_control('d').unwrap();
    terminal.exp_eof().unwrap();
}

#[test]
fn history_survives_the_session() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    terminal.send_line("select 'remember'").unwrap();
    terminal.exp_string("nectarine-> ").unwrap();
    ask(&mut terminal, "|| ' me' as x;");
    quit(terminal);
    let history = std::fs::read_to_string(home.path().join("home/history")).unwrap();
    assert!(history.contains("select 'remember'\\n|| ' me' as x;"), "{history}");

    let mut terminal = open(&home, &[]);
    // Up: what was just typed, \q, and the statement with both of its lines.
    type_keys(&mut terminal, "\x1b[A\x1b[A\x1b[A");
    terminal.exp_string("select 'remember'").unwrap();
    terminal.send_line("").unwrap();
    terminal.exp_string("| remember me |").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn tab_completes_keywords_tables_columns_and_files() {
    let home = Home::new();
    home.file("numbers.csv", "n\n11\n22\n");
    let mut terminal = open(&home, &[]);
    ask(&mut terminal, "create table visitors (full_name text, age int);");
    ask(&mut terminal, "insert into visitors values ('Ada Lovelace', 36);");
    type_keys(&mut terminal, "select * from visi\t v where v.a\t = 36;");
    terminal.send_line("").unwrap();
    terminal.exp_string("Ada Lovelace").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    // The quote of the only file is closed.
    type_keys(&mut terminal, "sele\t sum(n) as total from 'numb\t;");
    terminal.send_line("").unwrap();
    terminal.exp_string("|    33 |").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn a_long_answer_goes_through_the_pager() {
    let home = Home::new();
    let mut terminal = open(&home, &[("PAGER", "sed 's/^/paged: /'")]);
    let answer = ask(&mut terminal, "select * from generate_series(1, 500);");
    assert!(answer.contains("paged: | "), "{answer}");
    let answer = ask(&mut terminal, "select 1 as one;");
    assert!(!answer.contains("paged:"), "{answer}");
    quit(terminal);
}

#[test]
fn the_editor_gets_the_statement_and_gives_it_back() {
    let home = Home::new();
    let mut terminal = open(&home, &[("EDITOR", "sed -i 's/1/2/'")]);
    ask(&mut terminal, "select 1 as edited;");
    let answer = ask(&mut terminal, "\\e");
    assert!(answer.contains("|      2 |"), "{answer}");
    quit(terminal);
}

#[test]
fn settings_of_the_shell_are_told() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    for (line, expected) in [
        ("\\timing", "timing is off"),
        ("\\x", "expanded is on"),
        ("select 5 as five;", "RECORD 1"),
        ("\\pset null -", "null is '-'"),
        ("\\conninfo", "home: "),
        ("\\! echo from the shell", "from the shell"),
        ("\\dt", "there are no tables"),
    ] {
        let answer = ask(&mut terminal, line);
        assert!(answer.contains(expected), "{line}: {answer}");
    }
    quit(terminal);
}

#[test]
fn watching_repeats_until_ctrl_c() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    terminal.send_line("select 'tick' as t \\watch 0.2").unwrap();
    for _ in 0..3 {
        terminal.exp_string("| tick |").unwrap();
    }
    terminal.send_control('c').unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn colours_appear_on_a_terminal_only_when_wanted() {
    let home = Home::new();
    let run = |environment: &[(&str, &str)]| {
        let mut command = home.command();
        command.args(["-c", "select nothing"]).env("TERM", "xterm");
        command.envs(environment.iter().copied());
        let mut terminal = spawn_with_options(command, Options::new().timeout_ms(Some(30_000))).unwrap();
        terminal.exp_eof().unwrap()
    };
    assert!(run(&[]).contains("\x1b[1;31merror:"));
    assert!(!run(&[("NO_COLOR", "1")]).contains('\x1b'));
}

#[test]
fn what_is_typed_ahead_runs_statement_by_statement() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    type_keys(&mut terminal, "select 11 as one;\nselect 22\nas two;\nselect 33 as three;\n");
    for row in ["|  11 |", "|  22 |", "|    33 |"] {
        terminal.exp_string(row).unwrap_or_else(|error| panic!("no {row}: {error}"));
    }
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn what_is_pasted_behind_a_copy_is_its_data() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    ask(&mut terminal, "create table t (n int, s text);");
    let text = "copy t from stdin (delimiter E'\\t');\n1\tone\n2\ttwo\n\\.\nselect 'and ' || count(*) as x from t;";
    // Key by key, and as a terminal tells of a paste.
    type_keys(&mut terminal, &format!("{text}\n"));
    terminal.exp_string("COPY 2").unwrap();
    terminal.exp_string("| and 2 |").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    type_keys(&mut terminal, &format!("\x1b[200~{text}\x1b[201~\n"));
    terminal.exp_string("COPY 2").unwrap();
    terminal.exp_string("| and 4 |").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn ctrl_c_cancels_typed_data() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    ask(&mut terminal, "create table t (n int);");
    terminal.send_line("copy t from stdin;").unwrap();
    terminal.exp_string("Type the rows").unwrap();
    for row in ["1", "2"] {
        terminal.exp_string(">> ").unwrap();
        terminal.send_line(row).unwrap();
    }
    terminal.exp_string(">> ").unwrap();
    terminal.send_control('c').unwrap();
    terminal.exp_string("error: statement cancelled").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    let answer = ask(&mut terminal, "select 'rows: ' || count(*) as x from t;");
    assert!(answer.contains("rows: 0"), "{answer}");
    // Ctrl-D ends it as the mark does.
    terminal.send_line("copy t from stdin;").unwrap();
    terminal.exp_string(">> ").unwrap();
    terminal.send_line("3").unwrap();
    terminal.exp_string(">> ").unwrap();
    terminal.send_control('d').unwrap();
    terminal.exp_string("COPY 1").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn ctrl_c_cancels_data_of_a_command_at_once() {
    let home = Home::new();
    home.run(&["-c", "create table t (n int)"]).rows();
    for arguments in [&["-c", "copy t from stdin"][..], &["-f", "-"]] {
        let mut command = home.command();
        command.args(arguments).env("TERM", "xterm").env("NO_COLOR", "1");
        let options = Options::new().timeout_ms(Some(30_000)).strip_ansi_escape_codes(true);
        let mut terminal = spawn_with_options(command, options).expect("a terminal");
        if arguments[0] == "-c" {
            terminal.exp_string("Type the rows").unwrap();
            terminal.send_line("1").unwrap();
        } else {
            terminal.send_line("select 'it ' || 'reads' as x;").unwrap();
            terminal.exp_string("it reads").unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        terminal.send_control('c').unwrap();
        terminal.exp_eof().unwrap();
        let status = terminal.process.wait().unwrap();
        assert!(format!("{status:?}").contains("130"), "{status:?}");
    }
    assert_eq!(home.run(&["--format", "csv", "--no-header", "-c", "select count(*) from t"]).rows(), "0\n");
}

#[test]
fn ctrl_c_works_whatever_programs_do_to_the_terminal() {
    let home = Home::new();
    let mut terminal = open(&home, &[]);
    // What is left when a pager of \o and the line editor have put back each other's modes.
    ask(&mut terminal, "\\! stty -isig -icanon -echo");
    terminal.send_line("select count(*) from generate_series(1, 100000000000);").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    terminal.send_control('c').unwrap();
    terminal.exp_string("statement cancelled").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}

#[test]
fn rows_are_printed_if_the_pager_cannot_run() {
    let home = Home::new();
    let mut terminal = open(&home, &[("PAGER", "/nonexistent/pager")]);
    let answer = ask(&mut terminal, "select * from generate_series(1, 500);");
    assert!(answer.contains("|   500 |") && answer.contains("500 rows, "), "{answer}");
    assert!(answer.contains("the pager '/nonexistent/pager' cannot be run"), "{answer}");
    let answer = ask(&mut terminal, "select * from generate_series(1, 500);");
    assert!(answer.contains("|   500 |") && !answer.contains("cannot be run"), "told once: {answer}");
    quit(terminal);
    // One that only its shell knows not to be there.
    let mut terminal = open(&home, &[("PAGER", "\"/nonexistent/pager\"")]);
    let answer = ask(&mut terminal, "select * from generate_series(1, 500);");
    assert!(answer.contains("error: ") && answer.contains("cannot be run"), "{answer}");
    quit(terminal);
}

#[test]
fn leaving_the_pager_is_told_with_rows_and_time() {
    let home = Home::new();
    let mut terminal = open(&home, &[("PAGER", "head -n 3 > /dev/null")]);
    terminal.send_line("select * from generate_series(1, 5000000);").unwrap();
    terminal.exp_regex("[0-9]+ rows until the pager was left, [0-9.]+ m?s").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    // Whoever has seen all there was has left nothing.
    let answer = ask(&mut terminal, "select * from generate_series(1, 300);");
    assert!(answer.contains("300 rows, "), "{answer}");
    quit(terminal);
}

#[test]
fn watching_and_the_demo_need_no_pager() {
    let home = Home::new();
    let pager = "sed 's/^/paged: /'";
    let mut terminal = open(&home, &[("PAGER", pager)]);
    terminal.send_line("select * from generate_series(1, 100) \\watch 0.2").unwrap();
    for _ in 0..2 {
        let text = terminal.exp_string("|   100 |").unwrap();
        assert!(!text.contains("paged: "), "{text}");
    }
    terminal.send_control('c').unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    let answer = ask(&mut terminal, "select * from generate_series(1, 100);");
    assert!(answer.contains("paged: "), "only while watching: {answer}");
    quit(terminal);

    let mut command = home.command();
    command.args(["demo", "--clicks-per-day", "300"]).env("TERM", "xterm").env("PAGER", pager);
    command.env("COLUMNS", "80").env("LINES", "6");
    let options = Options::new().timeout_ms(Some(60_000)).strip_ansi_escape_codes(true);
    let mut terminal = spawn_with_options(command, options).expect("a terminal");
    let text = terminal.exp_eof().unwrap();
    assert!(text.contains("Try next") && !text.contains("paged: "), "{text}");
}

#[test]
fn the_excerpt_of_a_long_line_fits_the_window() {
    let home = Home::new();
    let mut command = home.command();
    let sql = format!("select {}, nothing, {}", "1, 2, 3, 4, 5".repeat(5), "6, 7, 8, 9".repeat(9));
    command.args(["-c", &sql]).env("TERM", "xterm").env("NO_COLOR", "1").env("COLUMNS", "40").env("LINES", "20");
    let options = Options::new().timeout_ms(Some(30_000)).strip_ansi_escape_codes(true);
    let mut terminal = spawn_with_options(command, options).expect("a terminal");
    let text = terminal.exp_eof().unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let at = lines.iter().position(|line| line.starts_with("LINE 1: ...")).unwrap_or_else(|| panic!("{text}"));
    assert!(lines[at].len() < 40 && lines[at].ends_with("..."), "{text}");
    assert_eq!(lines[at].find("nothing"), lines[at + 1].find('^'), "{text}");
}

#[test]
fn tab_never_corrupts_the_line() {
    let home = Home::new();
    home.file("my file.sql", "select 'from ' || 'a file' as x;\n");
    let mut terminal = open(&home, &[]);
    ask(&mut terminal, "create schema demo; create table demo.clicks as select 42 as n;");
    for keys in ["select n + 1 as x from cl\t", "select n + 1 as x from \"dem\t\t", "select n + 1 as x from demo.\t\t"]
    {
        type_keys(&mut terminal, keys);
        terminal.send_line(";").unwrap();
        terminal.exp_string("| 43 |").unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        terminal.exp_string("nectarine=> ").unwrap();
    }
    type_keys(&mut terminal, "\\i my\t");
    terminal.send_line("").unwrap();
    terminal.exp_string("| from a file |").unwrap();
    terminal.exp_string("nectarine=> ").unwrap();
    quit(terminal);
}
