//! [`ClickLog`]: a made-up shop's click log, the same on every machine.
//!
//! ```text
//!   demo/clicks/2026-03-01.csv ..   one file per day: visits of users, page by page, busier in the evening
//!   demo/users.json                 who they are
//!   demo/made-by                    version and size; other numbers here mean that the files are made anew
//! ```
//!
//! Files appear under their final name only when they are whole.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{Days, NaiveDate, NaiveDateTime, TimeDelta};

/// Raised when the files would look different.
const VERSION: u32 = 2;

const USERS: u64 = 5_000;

const COUNTRIES: &[(&str, u64)] = &[
    ("DE", 22),
    ("US", 20),
    ("FR", 12),
    ("GB", 11),
    ("PL", 8),
    ("IN", 8),
    ("BR", 6),
    ("JP", 5),
    ("NL", 4),
    ("SE", 3),
    ("KE", 1),
];
const PLANS: &[(&str, u64)] = &[("free", 70), ("plus", 22), ("pro", 8)];
const REFERRERS: &[(&str, u64)] = &[("search", 40), ("direct", 28), ("newsletter", 14), ("social", 12), ("partner", 6)];
const DEVICES: &[(&str, u64)] = &[("phone", 55), ("desktop", 36), ("tablet", 9)];
/// Percent of an ordinary day, from Sunday on.
const WEEK: [u64; 7] = [124, 96, 92, 95, 101, 88, 104];
/// Visitors per hour of the day.
const HOURS: [u64; 24] = [9, 6, 4, 3, 3, 4, 8, 15, 22, 26, 28, 30, 33, 31, 29, 28, 30, 34, 41, 48, 50, 44, 30, 17];
const SHELVES: &[&str] = &["/apples", "/pears", "/plums", "/peaches", "/cherries", "/nectarines"];

/// Where the log lives and how large it is.
pub(super) struct ClickLog {
    folder: PathBuf,
    clicks_per_day: u32,
}

/// What is there now.
pub(super) struct Made {
    pub(super) files_new: usize,
    pub(super) bytes: u64,
}

impl ClickLog {
    pub(super) fn new(folder: PathBuf, clicks_per_day: u32) -> Self {
        Self { folder, clicks_per_day }
    }

    /// Makes sure that exactly the first days are there.
    pub(super) fn write(&self, days: u32) -> io::Result<Made> {
        let clicks = self.folder.join("clicks");
        let made_by = self.folder.join("made-by");
        let version = format!("{VERSION} {}\n", self.clicks_per_day);
        if fs::read_to_string(&made_by).ok().as_deref() != Some(&version) && clicks.exists() {
            fs::remove_dir_all(&clicks)?;
        }
        fs::create_dir_all(&clicks)?;
        let wanted: Vec<PathBuf> = (0..days).map(|day| self.path(day)).collect();
        for entry in fs::read_dir(&clicks)? {
            let path = entry?.path();
            if !wanted.contains(&path) {
                fs::remove_file(path)?;
            }
        }
        let mut made = Made { files_new: 0, bytes: 0 };
        for (day, path) in (0..days).zip(&wanted) {
            if !path.exists() {
                self.write_day(day)?;
                made.files_new += 1;
            }
            made.bytes += fs::metadata(path)?.len();
        }
        let users = self.folder.join("users.json");
        if !users.exists() {
            write_whole(&users, write_users)?;
        }
        write_whole(&made_by, |file| file.write_all(version.as_bytes()))?;
        Ok(made)
    }

    /// Makes the file of one day, counted from 0.
    pub(super) fn write_day(&self, day: u32) -> io::Result<PathBuf> {
        let path = self.path(day);
        write_whole(&path, |file| write_clicks(file, day, clicks_on(day, self.clicks_per_day)))?;
        Ok(path)
    }

    fn path(&self, day: u32) -> PathBuf {
        self.folder.join("clicks").join(format!("{}.csv", date(day)))
    }
}

fn clicks_on(day: u32, ordinary: u32) -> u64 {
    // The log begins on a Sunday.
    u64::from(ordinary) * WEEK[day as usize % WEEK.len()] / 100
}

fn date(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, 1)
        .and_then(|first| first.checked_add_days(Days::new(u64::from(day))))
        .unwrap_or_default()
}

/// Writes beside the file's name first.
fn write_whole(path: &Path, write: impl FnOnce(&mut BufWriter<fs::File>) -> io::Result<()>) -> io::Result<()> {
    // Beside the folder that tables look at, so that a half-written file is nobody's extent.
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder =
        path.ancestors().find(|folder| folder.ends_with("demo")).unwrap_or_else(|| path.parent().unwrap_or(path));
    let unfinished = folder.join(format!(".{name}.unfinished"));
    let mut file = BufWriter::new(fs::File::create(&unfinished)?);
    write(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&unfinished, path)
}

fn write_users(file: &mut impl Write) -> io::Result<()> {
    let mut dice = Dice(7);
    for user in 1..=USERS {
        let (country, plan) = (dice.pick(COUNTRIES), dice.pick(PLANS));
        let signed_up = date(0) - Days::new(dice.below(900) + 1);
        writeln!(file, r#"{{"user_id":{user},"country":"{country}","plan":"{plan}","signed_up":"{signed_up}"}}"#)?;
    }
    Ok(())
}

fn write_clicks(file: &mut impl Write, day: u32, clicks: u64) -> io::Result<()> {
    let mut dice = Dice(1_000 + u64::from(day));
    let midnight = date(day).and_hms_opt(0, 0, 0).unwrap_or_default();
    let clicks = usize::try_from(clicks).unwrap_or(usize::MAX);
    let mut rows: Vec<(NaiveDateTime, String)> = Vec::new();
    let mut visit = 0_u64;
    while rows.len() < clicks {
        visit += 1;
        let session = u64::from(day) * 10_000_000 + visit;
        // A few users come every day, most seldom: the smaller of two throws.
        let user = dice.below(USERS).min(dice.below(USERS)) + 1;
        let (referrer, device) = (dice.pick(REFERRERS), dice.pick(DEVICES));
        let mut at = midnight + TimeDelta::seconds(dice.second_of_day());
        for page in dice.path(referrer) {
            if rows.len() == clicks || at.date() != date(day) {
                break;
            }
            let latency = dice.latency(page, device);
            let ts = at.format("%Y-%m-%dT%H:%M:%S%.3f");
            rows.push((at, format!("{ts},{user},{session:09},{page},{referrer},{device},{latency}")));
            at += TimeDelta::milliseconds(i64::try_from(1_500 + dice.below(60_000)).unwrap_or(1_500));
        }
    }
    rows.sort();
    writeln!(file, "ts,user_id,session_id,page,referrer,device,latency_ms")?;
    for (_, row) in rows {
        writeln!(file, "{row}")?;
    }
    Ok(())
}

/// Chance that is the same every time (splitmix64).
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.throw() % end.max(1)
    }

    fn pick<'t>(&mut self, choices: &[(&'t str, u64)]) -> &'t str {
        let mut left = self.below(choices.iter().map(|(_, weight)| weight).sum());
        for (choice, weight) in choices {
            if left < *weight {
                return choice;
            }
            left -= weight;
        }
        ""
    }

    fn second_of_day(&mut self) -> i64 {
        let mut left = self.below(HOURS.iter().sum());
        let mut hour = 0;
        while left >= HOURS[hour] {
            left -= HOURS[hour];
            hour += 1;
        }
        i64::try_from(hour as u64 * 3600 + self.below(3600)).unwrap_or(0)
    }

    /// The pages of one visit; those who came for something buy more often.
    fn path(&mut self, referrer: &str) -> Vec<&'static str> {
        let mut pages = vec!["/"];
        while self.below(100) < 72 && pages.len() < 25 {
            pages.push(SHELVES[self.below(SHELVES.len() as u64) as usize]);
        }
        let eagerness = match referrer {
            "newsletter" => 45,
            "partner" => 38,
            "direct" => 30,
            "search" => 24,
            _ => 12,
        };
        for page in ["/basket", "/checkout", "/thanks"] {
            if pages.len() < 2 || self.below(100) >= eagerness + if page == "/basket" { 0 } else { 35 } {
                break;
            }
            pages.push(page);
        }
        pages
    }

    /// Mostly quick, with a tail; checkout talks to a bank.
    fn latency(&mut self, page: &str, device: &str) -> u64 {
        let base = if page == "/checkout" { 180 } else { 35 } + if device == "phone" { 25 } else { 0 };
        let tail = if self.below(100) < 4 { self.below(900) } else { 0 };
        base + self.below(60) + self.below(60) + tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_whole_the_same_every_time_and_stay_in_their_day() {
        let mut first = Vec::new();
        write_clicks(&mut first, 3, 2_000).unwrap();
        let mut second = Vec::new();
        write_clicks(&mut second, 3, 2_000).unwrap();
        assert_eq!(first, second);
        let text = String::from_utf8(first).unwrap();
        assert_eq!(text.lines().count(), 2_001);
        assert!(text.lines().skip(1).all(|line| line.starts_with("2026-03-04T") && line.split(',').count() == 7));
        assert!(text.contains("/thanks"));
    }

    #[test]
    fn a_second_run_keeps_the_files_and_takes_back_the_extra_day() {
        let folder = tempfile::tempdir().unwrap();
        let log = ClickLog::new(folder.path().join("demo"), 100);
        assert_eq!(log.write(3).unwrap().files_new, 3);
        let extra = log.write_day(3).unwrap();
        assert!(extra.exists());
        assert_eq!(log.write(3).unwrap().files_new, 0);
        assert!(!extra.exists());
        assert_eq!(ClickLog::new(folder.path().join("demo"), 200).write(3).unwrap().files_new, 3);
        let names: Vec<_> =
            fs::read_dir(folder.path().join("demo")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| !name.to_string_lossy().ends_with("unfinished")), "{names:?}");
    }
}
