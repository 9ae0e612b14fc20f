//! Places where COPY .. TO cannot write, or that are no files.

use std::time::{Duration, Instant};

use super::{db, goes_on};

/// Long enough for a busy machine, far too short for a loop without end.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_told_soon() {
    let db = db().await;
    db.file("file", "not a folder");
    db.file("folder.csv/inside.csv", "a\n1\n");
    std::os::unix::net::UnixListener::bind(db.path("socket.csv")).expect("a socket");
    let long = format!("{{dir}}/{}.csv", "x".repeat(300));
    for (place, expected) in [
        ("/proc/x.csv", "cannot create files in \"/proc\""),
        ("/proc/no/such/x.csv", "cannot create files in \"/proc/no/such\""),
        ("/sys/x.csv", "cannot create files in \"/sys\""),
        ("{dir}/file/x.csv", "cannot"),
        ("{dir}/file/y/x.csv", "cannot"),
        ("{dir}/folder.csv", "\"{dir}/folder.csv\" is a folder"),
        (long.as_str(), "ile name too long"),
        ("/dev/full", "No space left on device"),
        ("{dir}/socket.csv", "is a socket"),
        ("{dir}/x.csv/", "cannot tell the format"),
        ("", "cannot tell the format"),
    ] {
        for rows in ["kept", "(SELECT value AS a FROM generate_series(1, 2000000))"] {
            let started = Instant::now();
            let error = db.err(&format!("COPY {rows} TO '{place}'")).await;
            assert!(error.contains(expected), "{place}: {error}");
            assert!(started.elapsed() < SOON, "{place} took {:?}", started.elapsed());
        }
    }
    assert_eq!(db.ok("COPY kept TO '{dir}/folder.csv/' STORED AS CSV").await, "COPY 3");
    assert_eq!(db.ok("SELECT sum(a) FROM '{dir}/folder.csv/'").await, "43");
    assert_eq!(db.ok("COPY kept TO '/dev/null'").await, "COPY 3");
    goes_on(&db).await;
}

/// A pipe is written to as its reader reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_takes_what_it_is_given() {
    let db = db().await;
    let pipe = db.path("pipe.csv");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).expect("readable")
    });
    let sql = "COPY (SELECT value AS a FROM generate_series(1, 300000)) TO '{dir}/pipe.csv' (FORMAT csv, HEADER)";
    assert_eq!(db.ok(sql).await, "COPY 300000");
    let text = reader.join().expect("it ends");
    assert_eq!(text.lines().count(), 300_001);
    assert!(text.starts_with("a\n1\n2\n") && text.ends_with("\n300000\n"));
    assert!(pipe.exists(), "a pipe stays one");
    // A reader that goes is told as such.
    let reader = std::thread::spawn(move || drop(std::fs::File::open(pipe)));
    let error = db.err("COPY (SELECT value AS a FROM generate_series(1, 3000000)) TO '{dir}/pipe.csv'").await;
    assert!(error.contains("pipe.csv") && error.to_lowercase().contains("broken pipe"), "{error}");
    reader.join().expect("it ends");
    goes_on(&db).await;
}
