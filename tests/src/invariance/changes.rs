//! How tables change between statements: they grow in slices, lose files, and go from one branch to another.
//!
//! ```text
//!   slices     one to four slices, each for some table: a new file, a longer file, another extent
//!   twins      the same slice for two managed tables: branches of one base that share extents
//!   again      a managed table gets the slice once more that was inserted last: the same extent twice
//!   removed    a file goes: the first one, as retention does it, or one in the middle
//!   restored   one comes back: D + D1 becomes D + D2
//! ```
//!
//! Sometimes derived tables are made anew before, so that they are snapshots of another moment.

use std::path::PathBuf;

use super::{Harness, Random, Tables, damage};

/// Tables that statements over growing tables read.
pub(super) const GROWING: [&str; 6] = ["e", "m", "c", "n", "h", "j"];

impl Tables {
    /// Tables that change in all the ways above.
    pub async fn growing(harness: &mut Harness) -> Self {
        let mut tables = Self::new(harness).await;
        tables.add_external(harness, "j").await;
        tables.slides = true;
        tables
    }

    /// Something changes; says what, for people.
    pub async fn change(&mut self, harness: &mut Harness) -> &'static str {
        self.stock = None;
        if harness.random.chance(12) {
            self.take_snapshots(harness).await;
            self.stock = None;
        }
        match harness.random.below(10) {
            0 | 1 => self.remove(&mut harness.random),
            2 => self.restore(&mut harness.random),
            3 => {
                self.feed(harness, "m").await;
                self.insert_again(harness, "n").await;
                "twins"
            }
            4 => {
                let name = *harness.random.pick(&["m", "n"]);
                self.insert_again(harness, name).await;
                "again"
            }
            _ => {
                for _ in 0..1 + harness.random.below(4) {
                    let name = *harness.random.pick(&GROWING);
                    self.feed(harness, name).await;
                }
                "slices"
            }
        }
    }

    async fn insert_again(&mut self, harness: &Harness, name: &str) {
        if let Some(values) = &self.last_values {
            harness.run(&format!("INSERT INTO {name} VALUES {values}")).await;
        }
    }

    fn remove(&mut self, random: &mut Random) -> &'static str {
        let name = *random.pick(&self.external);
        let files = damage::files(&self.folder.join(name));
        // A table without files is another thing to test.
        if files.len() < 2 {
            return "nothing";
        }
        let at = if random.chance(50) { 0 } else { random.below(files.len()) };
        let aside: PathBuf = self.folder.join("away");
        std::fs::create_dir_all(&aside).expect("a folder can be made");
        let aside = aside.join(format!("{}-{}", self.away.len(), self.n_files));
        self.n_files += 1;
        std::fs::rename(&files[at], &aside).expect("a file can be renamed");
        self.away.push((files[at].clone(), aside));
        "removed"
    }

    fn restore(&mut self, random: &mut Random) -> &'static str {
        if self.away.is_empty() {
            return self.remove(random);
        }
        let (was, aside) = self.away.swap_remove(random.below(self.away.len()));
        std::fs::rename(aside, was).expect("a file can be renamed");
        if random.chance(50) {
            return self.remove(random);
        }
        "restored"
    }
}
