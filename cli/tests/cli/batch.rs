//! `-c`, `-f`, standard input, formats, exit codes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::Home;

#[test]
fn several_statements_print_their_rows_on_stdout_and_all_else_on_stderr() {
    let ran = Home::new()
        .run(&["-c", "create table t (a int); insert into t values (1), (2), (3); select sum(a) as s from t"]);
    assert_eq!(ran.stderr, "CREATE TABLE\nINSERT 3\n");
    assert_eq!(ran.rows(), "┌───┐\n│ s │\n├───┤\n│ 6 │\n└───┘\n(1 row)\n");
}

#[test]
fn every_format_prints_the_same_row() {
    let home = Home::new();
    let print = |format: &str| home.run(&["--format", format, "-c", "select 1 as n, 'a|b' as t, null as x"]).rows();
    assert_eq!(print("csv"), "n,t,x\n1,a|b,\n");
    assert_eq!(print("tsv"), "n\tt\tx\n1\ta|b\t\n");
    assert_eq!(print("json"), "[{\"n\":1,\"t\":\"a|b\",\"x\":null}]\n");
    assert_eq!(print("ndjson"), "{\"n\":1,\"t\":\"a|b\",\"x\":null}\n");
    assert_eq!(print("markdown"), "|   n | t    | x    |\n|----:|------|------|\n|   1 | a\\|b | NULL |\n");
    let two = home.run(&["--format", "markdown", "-c", "select 1 as a; select 2 as b"]).rows();
    assert_eq!(two, "|   a |\n|----:|\n|   1 |\n\n|   b |\n|----:|\n|   2 |\n", "tables are apart");
    assert!(print("html").contains("<td align=\"right\">1</td><td>a|b</td><td>NULL</td>"));
    assert!(print("table").contains("│ 1 │ a|b │ NULL │"));
}

#[test]
fn quiet_formats_say_nothing_but_rows() {
    let home = Home::new();
    let ran = home.run(&["--format", "csv", "--no-header", "-c", "create table t as select 1 as a; select a from t"]);
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.rows(), "1\n");
    let ran = home.run(&["--format", "csv", "-v", "-c", "select 1 as a"]);
    assert!(ran.stderr.contains("1 row, "), "{}", ran.stderr);
}

#[test]
fn scripts_and_texts_run_in_the_order_given() {
    let home = Home::new();
    let script = home.file("a.sql", "\u{feff}-- a comment\nselect 'f' as x;\n\\echo from the script\n");
    let ran = home.run(&["--format", "csv", "--no-header", "-c", "select 'c1'", "-f", &script, "-c", "select 'c2'"]);
    assert_eq!(ran.rows(), "c1\nf\nfrom the script\nc2\n");
}

#[test]
fn standard_input_is_a_script() {
    let home = Home::new();
    let ran = home.run_with(&["--format", "csv", "--no-header"], "select 1;\nselect\n  2 -- no semicolon\n");
    assert_eq!(ran.rows(), "1\n2\n");
    assert_eq!(home.run_with(&["--format", "csv", "--no-header", "-f", "-"], "select 3").rows(), "3\n");
    assert_eq!(home.run_with(&[], "").rows(), "");
    assert_eq!(home.run_with(&[], "-- nothing\n;;\n").rows(), "");
}

#[test]
fn statements_of_a_pipe_run_as_they_come() {
    let home = Home::new();
    let mut child = home
        .command()
        .args(["--format", "csv", "--no-header"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for n in 1..=3 {
        std::io::Write::write_all(&mut stdin, format!("select {n};\n").as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{n}\n"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_first_error_ends_the_run_unless_asked_otherwise() {
    let home = Home::new();
    let ran = home.run(&["--format", "csv", "-c", "select 1 as a; select nothing; select 2 as a"]);
    assert_eq!(ran.stdout, "a\n1\n");
    assert!(ran.error().starts_with("error: "));
    let ran = home.run(&["--format", "csv", "--keep-going", "-c", "select 1 as a; select nothing; select 2 as a"]);
    assert_eq!(ran.stdout, "a\n1\na\n2\n");
    ran.error();
}

#[test]
fn errors_point_at_the_spot_and_name_the_line_of_the_script() {
    let home = Home::new();
    let script = home.file("bad.sql", "select 1 as a;\n\nselect 'é',\n       selec\nfrom (values (1)) as t(b);\n");
    let ran = home.run(&["--format", "csv", "-f", &script]);
    let stderr = ran.error();
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(lines[0].starts_with("error: "), "{stderr}");
    let at = lines.iter().position(|line| *line == "LINE 2:        selec").unwrap_or_else(|| panic!("{stderr}"));
    assert_eq!(lines[at + 1], "               ^", "{stderr}");
    assert!(stderr.contains(&format!("in: {script}, line 3")), "{stderr}");
    assert!(!stderr.contains('\x1b'), "{stderr}");
}

#[test]
fn syntax_errors_point_at_the_spot() {
    let stderr = Home::new().run(&["-c", "select 1 +, 2"]).error();
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert!(stderr.contains("LINE 1: select 1 +, 2\n                  ^"), "{stderr}");
}

#[test]
fn unreadable_input_is_named() {
    let home = Home::new();
    assert!(home.run(&["-f", "missing.sql"]).error().contains("cannot read 'missing.sql': no such file"));
    let binary = home.file("binary.sql", b"select 1;\nselect '\xff';");
    assert!(home.run(&["-f", &binary]).error().contains("line 2 is not UTF-8"));
    let folder = home.path().display().to_string();
    assert!(home.run(&["-f", &folder]).error().contains("cannot read"));
    let looped = home.file("loop.sql", "\\i loop.sql\n");
    assert!(home.run(&["-f", &looped]).error().contains("deep"));
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let home = Home::new();
    let mut child = home
        .command()
        .args(["--format", "csv", "-c", "select * from generate_series(1, 100000000)"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
#[cfg(unix)]
fn ctrl_c_ends_a_script_with_130() {
    let home = Home::new();
    let mut child = home
        .command()
        .args([
            "--format",
            "csv",
            "-c",
            "select 1 as a",
            "-c",
            "select count(*) from generate_series(1, 100000000000) a",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    // The first answer says that it has begun to listen.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    for _ in 0..2 {
        stdout.read_line(&mut first).unwrap();
    }
    assert_eq!(first, "a\n1\n");
    std::thread::sleep(std::time::Duration::from_millis(500));
    // SAFETY: kill only sends a signal, to a process that is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "error: statement cancelled\n");
}

#[test]
fn variables_and_commands_work_in_scripts() {
    let home = Home::new();
    let script = "\\set t 'my table'\n\\set n 2\n\\pset format csv\n\\pset null -\ncreate table :\"t\" (a int, b text);\n\
                  insert into :\"t\" values (:n, :'t'), (:n + 1, null);\nselect * from :\"t\" order by a;\n\\q\nselect 'not reached';\n";
    let ran = home.run_with(&[], script);
    assert_eq!(ran.rows(), "a,b\n2,my table\n3,-\n");
    let stderr = home.run(&["-c", "\\tming"]).error();
    assert!(
        stderr.contains("error: unknown command '\\tming'") && stderr.contains("did you mean '\\timing'"),
        "{stderr}"
    );
}

#[test]
fn tables_are_listed_and_described() {
    let home = Home::new();
    let data = home.file("data.csv", "a,b\n1,x\n2,y\n");
    home.run(&[
        "-c",
        &format!("create external table ext stored as csv location '{data}' options ('format.has_header' 'true'); create table own (n bigint not null); create view v as select a from ext"),
    ])
    .rows();
    let listed = home.run(&["-c", "\\d"]).rows();
    for name in ["│ ext ", "│ own ", "│ v "] {
        assert!(listed.contains(name), "{listed}");
    }
    let tables = home.run(&["-c", "\\dt o*"]).rows();
    assert!(tables.contains("│ own ") && !tables.contains("│ ext "), "{tables}");
    let views = home.run(&["-c", "\\dv"]).rows();
    assert!(views.contains("│ v ") && !views.contains("│ own "), "{views}");
    let described = home.run(&["-c", "\\d ext"]).rows();
    assert!(
        described.contains("│ a ") && described.contains("Location: ") && described.contains("Extents: 1"),
        "{described}"
    );
    let described = home.run(&["-c", "\\d own"]).rows();
    assert!(described.contains("not null"), "{described}");
    let described = home.run(&["-c", "\\d v"]).rows();
    assert!(described.starts_with("View ") && described.to_lowercase().contains("select a from ext"), "{described}");
    for (command, expected) in [
        ("\\dn", "public"),
        ("\\l", "nectarine"),
        ("\\df coun*", "count"),
        ("\\?", "\\watch"),
        ("\\h create ext", "STORED AS"),
    ] {
        let shown = home.run(&["-c", command]).rows();
        assert!(shown.contains(expected), "{command}: {shown}");
    }
    // Only where a column must have a value is there something to say about it.
    assert!(home.run(&["-c", "\\d own"]).rows().contains("nullable"));
    assert!(!home.run(&["-c", "\\d ext"]).rows().contains("nullable"));
    // Sizes are for people.
    assert!(listed.contains("│ size ") && listed.contains("│ 12 B "), "{listed}");
    home.run(&["-c", "create schema lab; create table lab.trials (n int)"]).rows();
    for (name, near) in [("onw", "own"), ("lab.trails", "lab.trials"), ("public.trials", "lab.trials")] {
        let stderr = home.run(&["-c", &format!("\\d {name}")]).error();
        assert!(stderr.contains(&format!("hint: did you mean '{near}'?")), "{stderr}");
    }
    // Who leaves out the quotes means another name.
    home.run(&["-c", "create table \"Caps\" (n int)"]).rows();
    for (name, near) in [("Caps", "\"Caps\""), ("public.caps", "public.\"Caps\"")] {
        let stderr = home.run(&["-c", &format!("\\d {name}")]).error();
        let hint = format!("hint: did you mean '{near}'? names with capital letters need double quotes");
        assert!(stderr.contains(&hint), "{stderr}");
        assert!(home.run(&["-c", &format!("\\d {near}")]).rows().contains("public.Caps"));
    }
    // Nothing behind the dot is all of the schema.
    let of_schema = home.run(&["-c", "\\dt lab."]).rows();
    assert!(of_schema.contains("│ trials ") && !of_schema.contains("│ own "), "{of_schema}");
    let of_schema = home.run(&["-c", "\\d public."]).rows();
    assert!(of_schema.contains("public.own") && !of_schema.contains("lab.trials"), "{of_schema}");
}

#[test]
fn files_go_in_and_out_relative_to_the_working_folder() {
    let home = Home::new();
    home.file("in.csv", "a,b\n1,x\n2,y\n");
    home.run(&[
        "-c",
        "create table t (a bigint, b text)",
        "-c",
        "\\copy t from 'in.csv'",
        "-c",
        "\\copy (select b from t order by a) to out.csv",
    ])
    .rows();
    assert_eq!(std::fs::read_to_string(home.path().join("out.csv")).unwrap(), "b\nx\ny\n");
    home.run(&["--format", "csv", "-c", "\\o rows.csv\nselect 1 as a;\n\\o\nselect 2 as a;"]).rows();
    assert_eq!(std::fs::read_to_string(home.path().join("rows.csv")).unwrap(), "a\n1\n");
    #[cfg(unix)]
    assert_eq!(home.run(&["--format", "csv", "-c", "select 1 as a \\g |tr a-z A-Z"]).rows(), "A\n1\n");
}

#[test]
fn settings_come_from_flags_and_wrong_ones_are_refused() {
    let home = Home::new();
    let stderr = home.run(&["--set", "nectarine.nonsense=1", "-c", "select 1"]).error();
    assert!(stderr.starts_with("error: ") && stderr.contains("nonsense"), "{stderr}");
    assert_eq!(home.run(&["--set", "nonsense"]).code, Some(2));
}

#[test]
fn a_home_that_cannot_be_one_is_refused() {
    let home = Home::new();
    let file = home.file("a-file", "");
    let ran = assert_cmd::Command::from_std(home.command()).args(["--home", &file, "-c", "select 1"]).output().unwrap();
    // The flag appears twice here, which is refused too; either way it is no crash.
    assert!(matches!(ran.status.code(), Some(1 | 2)));
    let ran = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("nectarine"))
        .args(["--home", &file, "-c", "select 1"])
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(stderr.starts_with(&format!("error: \"{file}\" is not a folder\n")), "{stderr}");
}

#[test]
fn a_wrong_name_in_the_settings_file_is_told_with_the_file() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("home")).unwrap();
    let file = home.file("home/nectarine.toml", "memory_limt = \"1GB\"\n");
    let stderr = home.run(&["-c", "select 1"]).error();
    assert!(stderr.contains(&format!("unknown setting \"nectarine.memory_limt\" in \"{file}\"")), "{stderr}");
    assert!(stderr.contains("did you mean \"nectarine.memory_limit\"?"), "{stderr}");
    home.file("home/nectarine.toml", "reuse = \"perhaps\"\n");
    let stderr = home.run(&["-c", "select 1"]).error();
    assert!(stderr.contains(&format!("in \"{file}\"")), "{stderr}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told_once() {
    let home = Home::new();
    let expected = "error: cannot write the result: no space left on device\n";
    for format in ["table", "csv", "json"] {
        let mut command = home.command();
        command.args(["--format", format, "-c", "select 1 as a"]);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let ran = command.output().unwrap();
        assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stderr).as_ref()), (Some(1), expected), "{format}");
    }
    // The same for a file, and what comes later goes where it should.
    let ran =
        home.run_with(&["--format", "csv", "--keep-going"], "\\o /dev/full\nselect 1 as a;\n\\o\nselect 2 as a;\n");
    assert_eq!((ran.stdout.as_str(), ran.stderr.matches("no space left").count()), ("a\n2\n", 1), "{}", ran.stderr);
}

#[test]
#[cfg(unix)]
fn a_program_that_leaves_early_does_not_keep_the_rows() {
    let script = "select * from generate_series(1, 200000) \\g | head -n 1 > /dev/null\nselect 'after' as x;\n";
    let ran = Home::new().run_with(&["--format", "csv", "--no-header"], script);
    assert_eq!(ran.rows(), "after\n");
}

#[test]
fn words_that_are_wrong_are_answered_with_those_that_are_right() {
    let home = Home::new();
    for (text, expected) in [
        ("\\pset pager bogus", "choose one of on, off, always"),
        ("\\x bogus", "choose one of on, off, auto"),
        ("select :nothing", "hint: there is no variable 'nothing': \\set nothing VALUE makes one"),
        ("select 1 where 'a' = :'nothing'", "hint: there is no variable 'nothing'"),
        ("\\h verfy", "did you mean 'VERIFY'?"),
    ] {
        let stderr = home.run(&["-c", text]).error();
        assert!(stderr.contains(expected), "{text}: {stderr}");
    }
    for (text, expected) in [
        ("\\h copy", "STDIN"),
        ("\\h copy", "HEADER [true | false]"),
        ("\\h purge", "PURGE DERIVED FROM"),
        ("\\h explain reuse", "EXPLAIN REUSE query"),
        ("\\h explain", "EXPLAIN PROVENANCE"),
    ] {
        let shown = home.run(&["-c", text]).rows();
        assert!(shown.contains(expected), "{text}: {shown}");
    }
}

#[test]
fn large_and_deep_statements_are_no_trouble() {
    let home = Home::new();
    let wide = format!("select length('{}') as n;", "x".repeat(10 << 20));
    assert_eq!(home.run_with(&["--format", "csv", "--no-header"], &wide).rows(), format!("{}\n", 10 << 20));
    let deep = format!("select {}1{};", "(".repeat(20_000), ")".repeat(20_000));
    let ran = home.run_with(&["--format", "csv", "--no-header"], &deep);
    assert!(matches!(ran.code, Some(0 | 1)), "{:?} {}", ran.code, ran.stderr);
}

#[test]
fn the_demo_runs_again_and_again() {
    let home = Home::new();
    let first = home.run(&["demo", "--clicks-per-day", "300"]).rows();
    assert!(first.contains("4200") && first.contains("4572"), "{first}");
    let second = home.run(&["demo", "--clicks-per-day", "300"]).rows();
    assert!(second.contains("4200") && second.contains("4572") && second.contains("earlier run"), "{second}");
    // What is said of the last query is what happened.
    assert!(first.contains("only the new one was read") && !first.contains("nothing was read"), "{first}");
    assert!(second.contains("nothing was read") && !second.contains("only the new one"), "{second}");
    assert_eq!(
        home.run(&["--format", "csv", "--no-header", "-c", "select count(*) from demo.clicks"]).rows(),
        "4572\n"
    );
}

#[test]
fn the_demo_leaves_tables_of_others_alone() {
    let home = Home::new();
    home.run(&["-c", "create schema demo; create table demo.clicks as select 42 as precious"]).rows();
    let ran = home.run(&["demo", "--clicks-per-day", "300"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("\"demo.clicks\" is a table of your own"), "{}", ran.stderr);
    assert_eq!(home.run(&["--format", "csv", "--no-header", "-c", "select * from demo.clicks"]).rows(), "42\n");
}

/// What stands on the demo's tables does not keep it from running again.
#[test]
fn the_demo_runs_below_views() {
    let home = Home::new();
    home.run(&["demo", "--clicks-per-day", "300"]).rows();
    home.run(&["-c", "create materialized view mv as select page, count(*) as c from demo.clicks group by page"])
        .rows();
    assert!(home.run(&["demo", "--clicks-per-day", "300"]).rows().contains("4572"));
}

#[test]
fn help_and_version_are_there() {
    let home = Home::new();
    let help = home.run(&["--help"]).rows();
    assert!(help.contains("Examples:") && help.contains("--format") && help.contains("demo"), "{help}");
    assert!(home.run(&["--version"]).rows().starts_with("nectarine "));
}

#[test]
fn the_cache_is_warmed_and_says_where_results_come_from() {
    let home = Home::new();
    home.run(&["-c", "create table t as select value as n from generate_series(1, 300000)"]).rows();
    let script = home
        .file("q.sql", "set datafusion.execution.batch_size = 4096;\nselect n % 7 as k, sum(n) from t group by k;\n");
    let warm = ["--format", "csv", "cache", "warm", "-f", &script, "-c", "select count(*) from t where n % 3 = 0"];
    let first = home.run(&warm).rows();
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines[0], "query,there,made,bytes,rows,elapsed_ms");
    assert_eq!(lines.len(), 3, "{first}");
    assert!(lines[1..].iter().all(|line| line.contains(",nothing,")), "{first}");
    let second = home.run(&warm).rows();
    assert!(second.lines().skip(1).all(|line| line.contains(",all,0,0,")), "{second}");
    let refused = home.run(&["cache", "warm", "-c", "create table x as select 1"]).error();
    assert!(refused.contains("only queries fill the cache"), "{refused}");
    assert!(home.run(&["cache", "warm"]).stderr.contains("--command"));

    let tree = home.run(&["--format", "csv", "cache", "provenance"]).rows();
    assert!(tree.contains("table public.t") && tree.contains("extent,scanned"), "{tree}");
    let dot = home.run(&["cache", "provenance", "--dot"]).rows();
    assert!(dot.starts_with("digraph provenance {") && dot.contains("scanned"), "{dot}");
    let error = home.run(&["cache", "provenance", "zz"]).error();
    assert!(error.contains("no cached result starts with"), "{error}");
}

#[test]
fn copy_to_standard_output() {
    let home = Home::new();
    let setup = "create table t as select * from (values (1, 'a,b'), (2, null), (3, '')) as t (n, s)";
    home.run(&["-c", setup]).rows();
    let ran = home.run(&["-c", "copy (select * from t order by n) to stdout"]);
    assert_eq!(ran.stderr, "", "the rows are the answer");
    assert_eq!(ran.rows(), "1,\"a,b\"\n2,\n3,\"\"\n");
    let options = "copy (select * from t order by n) to stdout with (format csv, header, delimiter ';', null '-')";
    assert_eq!(home.run(&["-c", options]).rows(), "n;s\n1;a,b\n2;-\n3;\"\"\n");
    assert_eq!(
        home.run(&["-c", "copy (select n from t order by n) to stdout stored as json"]).rows(),
        "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"
    );
    // Also from a script, between other rows, and where \o says.
    let script = "select 'before' as x;\n\\copy (select n from t order by n) to stdout\nselect 'after' as x;\n\
                  \\o rows.csv\n\\copy t (n) to stdout csv header\n\\o\n\\copy (select 9) to 'file.csv' csv\n";
    let ran = home.run_with(&["--format", "csv", "--no-header"], script);
    assert_eq!(ran.rows(), "before\n1\n2\n3\nafter\n");
    assert_eq!(std::fs::read_to_string(home.path().join("rows.csv")).unwrap(), "n\n1\n2\n3\n");
    assert!(std::fs::read_to_string(home.path().join("file.csv")).unwrap().ends_with("9\n"));
    // Many rows, all of them, in order; a device is as good.
    for place in ["stdout", "'/dev/stdout'"] {
        let sql = format!("copy (select value from generate_series(1, 300000)) to {place} (format csv, header false)");
        let rows = home.run(&["-c", &sql]).rows();
        assert!(rows.lines().enumerate().all(|(at, line)| line == (at + 1).to_string()), "{place}");
        assert_eq!(rows.lines().count(), 300_000, "{place}");
    }
    let error =
        home.run(&["-c", "copy (select 1 / (value - 200000) from generate_series(1, 300000)) to stdout"]).error();
    assert!(error.contains("division by zero"), "{error}");
}

#[test]
fn copy_from_standard_input() {
    let home = Home::new();
    home.run(&["-c", "create table t (n int, s text)"]).rows();
    // The input of the process, for -c.
    let ran = home.run_with(&["-c", "copy t from stdin"], "1,one\n2,\"t,wo\"\n");
    assert_eq!(ran.stderr, "COPY 2\n");
    ran.rows();
    let ran = home.run_with(&["-c", "copy t (s, n) from stdin with (header, delimiter ';')"], "x;y\nthree;3\n\\.\n");
    assert_eq!(ran.stderr, "COPY 1\n");
    // What follows in a script, up to the mark.
    let script = "\\copy t from stdin\n4,four\n\\.\ncopy t from stdin (format csv, null 'none');\n5,none\n6,\n\\.\n\
                  select n, s is null, s from t order by n;\n";
    let ran = home.run_with(&["--format", "csv", "--no-header"], script);
    assert_eq!(ran.rows(), "1,false,one\n2,false,\"t,wo\"\n3,false,three\n4,false,four\n5,true,\n6,false,\"\"\n");
    // From one shell to the other.
    let rows = home.run(&["-c", "copy (select * from t where n < 4) to stdout"]).rows();
    home.run_with(&["-c", "copy t from stdin"], &rows).rows();
    let ran = home.run(&["--format", "csv", "--no-header", "-c", "select count(*) from t"]);
    assert_eq!(ran.rows(), "9\n");
    // What is wrong is told in words of whoever gave the input; nothing is copied.
    let error = home.run_with(&["-c", "copy t from stdin"], "7,seven\nx,y\n").error();
    assert!(error.contains("standard input") && !error.contains("/tmp"), "{error}");
    let error = home.run_with(&["-c", "copy t from stdin"], "7\n").error();
    assert!(
        error.contains("standard input has 1 columns, \"public.t\" takes 2") || error.contains("takes 2"),
        "{error}"
    );
    assert_eq!(home.run(&["--format", "csv", "--no-header", "-c", "select count(*) from t"]).rows(), "9\n");
}

#[test]
fn csv_tells_null_from_an_empty_text() {
    let home = Home::new();
    let sql = "select 1 as n, '' as s, null as x union all select 2, 'NULL', null order by n";
    assert_eq!(home.run(&["--format", "csv", "-c", sql]).rows(), "n,s,x\n1,\"\",\n2,NULL,\n");
    assert_eq!(home.run(&["--format", "tsv", "-c", sql]).rows(), "n\ts\tx\n1\t\"\"\t\n2\tNULL\t\n");
    let set = home.run_with(&["--format", "csv"], &format!("\\pset null NULL\n{sql};\n"));
    assert_eq!(set.rows(), "n,s,x\n1,\"\",NULL\n2,\"NULL\",NULL\n");
}

#[test]
fn a_mistyped_environment_variable_is_told() {
    let home = Home::new();
    let mut command = home.command();
    command
        .env("NECTARINE_MEMORY_LIMT", "1GB")
        .env("NECTARINE_TEST_X", "1")
        .args(["--format", "csv", "-c", "select 1"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(
        stderr,
        "notice: environment variable NECTARINE_MEMORY_LIMT is not a setting and has no effect\n\
         hint: did you mean NECTARINE_MEMORY_LIMIT?\n"
    );
}
