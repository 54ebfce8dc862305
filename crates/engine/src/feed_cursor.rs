//! Choice of feed records for an iteration: the cursors of one part of a stream. No file, no clock.
//!
//! Parts take records as they take arrivals: part i of n has records i, i + n, i + 2n ... so all parts together use a
//! feed in order and none twice, on however many threads and machines. An iteration keeps its records to its end.

use loadlens_base::Random;
use loadlens_plan::arrival::{Numbers, Part};
use loadlens_plan::program::{Records, ScenarioProgram, StreamProgram};
use loadlens_plan::{AtEnd, Pick};
use serde::{Deserialize, Serialize};

/// The cursors of one part, and the records that its users have.
#[derive(Debug)]
pub struct FeedCursors {
    cursors: Vec<Cursor>,
    /// User by user, feed by feed.
    records: Vec<u32>,
}

/// Position of a part in one feed.
#[derive(Debug)]
struct Cursor {
    pick: Pick,
    /// Records of the feed, of all parts.
    len: u64,
    /// Records that may still be claimed.
    left: u64,
    /// Numbers of the ones to be taken, counted over all rounds.
    numbers: Numbers,
    random: Random,
    taken: u64,
    is_used_up: bool,
}

/// Use of one feed by one part.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Used {
    /// Iterations that were given a record.
    pub iterations: u64,
    /// True if an iteration wanted a record and there was none left.
    pub is_used_up: bool,
}

impl FeedCursors {
    /// Cursors for a part with this many users; none: the stream uses no feed.
    ///
    /// `random` makes the generator of the feed with this index.
    pub fn new(
        program: &StreamProgram,
        users: usize,
        part: &Part,
        random: impl Fn(u64) -> Random,
    ) -> Option<Box<FeedCursors>> {
        if program.feeds.is_empty() {
            return None;
        }
        let cursor = |(index, feed): (usize, &loadlens_plan::program::FeedProgram)| {
            let len = u64::from(feed.records);
            let left = match feed.end {
                AtEnd::Loop => u64::MAX,
                AtEnd::Stop => part.count_of(len),
            };
            Cursor {
                pick: feed.pick,
                len,
                left,
                numbers: part.numbers(),
                random: random(index as u64),
                taken: 0,
                is_used_up: false,
            }
        };
        Some(Box::new(FeedCursors {
            cursors: program.feeds.iter().enumerate().map(cursor).collect(),
            records: vec![0; users * program.feeds.len()],
        }))
    }

    /// Makes room for one more user.
    pub fn add_user(&mut self) {
        self.records
            .resize(self.records.len() + self.cursors.len(), 0);
    }

    /// Sets a record of each feed of a scenario aside for one iteration; false: one has none left.
    pub fn claim(&mut self, scenario: &ScenarioProgram) -> bool {
        let mut is_there = true;
        for feed in &scenario.feeds {
            let cursor = &mut self.cursors[usize::from(*feed)];
            if cursor.left == 0 {
                cursor.is_used_up = true;
                is_there = false;
            }
        }
        if is_there {
            for feed in &scenario.feeds {
                let cursor = &mut self.cursors[usize::from(*feed)];
                if cursor.left != u64::MAX {
                    cursor.left -= 1;
                }
            }
        }
        is_there
    }

    /// Gives a user the records that were claimed longest ago.
    pub fn take(&mut self, scenario: &ScenarioProgram, user: u32, number: u32) {
        let first = user as usize * self.cursors.len();
        for feed in &scenario.feeds {
            let record = self.cursors[usize::from(*feed)].take(number);
            self.records[first + usize::from(*feed)] = record;
        }
    }

    /// Passes over the records that were claimed longest ago: their iteration was dropped.
    pub fn skip(&mut self, scenario: &ScenarioProgram) {
        for feed in &scenario.feeds {
            self.cursors[usize::from(*feed)].numbers.advance();
        }
    }

    /// The records of a user.
    #[inline]
    pub fn records_of<'a>(&'a self, program: &'a StreamProgram, user: u32) -> Records<'a> {
        let feeds = self.cursors.len();
        let first = user as usize * feeds;
        Records::new(&program.feeds, &self.records[first..first + feeds])
    }

    /// The record that a user has of the first feed.
    #[cfg(test)]
    pub fn record_of(&self, user: u32) -> u32 {
        self.records[user as usize * self.cursors.len()]
    }

    /// Use of each feed.
    pub fn used(&self) -> impl Iterator<Item = Used> + '_ {
        self.cursors.iter().map(|cursor| Used {
            iterations: cursor.taken,
            is_used_up: cursor.is_used_up,
        })
    }
}

impl Cursor {
    fn take(&mut self, user: u32) -> u32 {
        let next = self.numbers.advance();
        let record = match self.pick {
            Pick::Shared | Pick::Unique => next % self.len,
            Pick::Random => self.random.below(self.len),
            Pick::User => u64::from(user) % self.len,
        };
        self.taken += 1;
        record as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use loadlens_plan::program::Program;
    use loadlens_plan::{Plan, Share};

    /// One scenario that uses a feed of so many records.
    fn program(records: usize, pick: &str, end: &str) -> Program {
        use std::io::Write;
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("loadlens-feed-{}-{number}.csv", std::process::id()));
        let mut content = b"id\n".to_vec();
        (0..records).for_each(|id| writeln!(content, "{id}").unwrap());
        std::fs::write(&path, &content).unwrap();
        let file = loadlens_plan::program::FeedFile::open(
            path.to_str().unwrap(),
            loadlens_plan::FeedFormat::Csv,
        )
        .unwrap();
        let plan = serde_json::json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1,
            "feeds": [{"name": "ids", "path": path, "digest": file.digest(), "format": "csv", "pick": pick, "end": end}],
            "streams": [{
                "name": "load", "role": "load", "timeout_ns": 1,
                "target": {"host": "h", "port": 1, "authority": "h"},
                "scenarios": [{"name": "s", "weight": 1.0,
                    "steps": [{"name": "a", "method": "GET", "path": "/{{ids.id}}"}]}],
                "workload": {"kind": "closed", "users": 1},
            }],
        });
        let plan: Plan = serde_json::from_value(plan).unwrap();
        let program = Program::compile(&plan).unwrap();
        std::fs::remove_file(path).unwrap();
        program
    }

    fn part(program: &Program, part: &Part) -> Box<FeedCursors> {
        FeedCursors::new(&program.streams[0], 1, part, |_| Random::new(part.first())).unwrap()
    }

    /// The records that a part gives to its next iterations, until it has none or so many were taken.
    fn taken(feed_cursors: &mut FeedCursors, program: &Program, most: usize) -> Vec<u32> {
        let scenario = &program.streams[0].scenarios[0];
        let mut all = Vec::new();
        while all.len() < most && feed_cursors.claim(scenario) {
            feed_cursors.take(scenario, 0, 7);
            all.push(feed_cursors.records[0]);
        }
        all
    }

    #[test]
    fn an_iteration_takes_the_next_record_and_begins_again_after_the_last() {
        let program = program(3, "shared", "loop");

        let all = taken(&mut part(&program, &Part::whole()), &program, 7);
        // Of two parts that go at one pace, together the same.
        let half = |thread| {
            let half = Part::new(Share::default(), thread, 2);
            taken(&mut part(&program, &half), &program, 3)
        };
        let (even, odd) = (half(0), half(1));

        assert_eq!(all, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!((even, odd), (vec![0, 2, 1], vec![1, 0, 2]));
    }

    #[test]
    fn a_user_has_one_record_for_good() {
        let program = program(5, "user", "loop");

        assert_eq!(
            taken(&mut part(&program, &Part::whole()), &program, 3),
            [2, 2, 2]
        ); // user 7 of 5 records
    }

    #[test]
    fn random_records_follow_from_the_seed_and_come_equally_often() {
        let program = program(6, "random", "loop");

        let first = taken(&mut part(&program, &Part::whole()), &program, 60_000);
        let again = taken(&mut part(&program, &Part::whole()), &program, 60_000);

        assert_eq!(first, again);
        // Chi-square with 5 degrees of freedom exceeds 20.5 once in a thousand seeds.
        let count = |id| first.iter().filter(|record| **record == id).count() as f64;
        let chi: f64 = (0..6).map(|id| (count(id) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 20.5, "{chi}");
    }

    #[test]
    fn a_dropped_iteration_leaves_its_record_unused() {
        let program = program(3, "unique", "stop");
        let scenario = &program.streams[0].scenarios[0];
        let mut feed_cursors = part(&program, &Part::whole());

        assert!(feed_cursors.claim(scenario));
        feed_cursors.skip(scenario);
        let rest = taken(&mut feed_cursors, &program, 9);

        assert_eq!(rest, [1, 2]);
        let used = Used {
            iterations: 2,
            is_used_up: true,
        };
        assert_eq!(feed_cursors.used().collect::<Vec<_>>(), [used]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// However many machines and threads: together exactly the file, no record twice.
        #[test]
        fn all_parts_together_use_every_record_once(
            records in 1usize..200,
            machines in proptest::collection::vec((1u32..30, 1u32..5), 1..8),
        ) {
            let program = program(records, "unique", "stop");
            let mut all = Vec::new();
            let of = machines.iter().map(|(weight, _)| weight).sum();
            let mut from = 0;
            for (weight, threads) in machines {
                let share = Share { from, to: from + weight, of };
                from += weight;
                for thread in 0..threads {
                    let mut feed_cursors = part(&program, &Part::new(share, thread, threads));
                    all.extend(taken(&mut feed_cursors, &program, usize::MAX));
                    prop_assert!(feed_cursors.used().all(|used| used.is_used_up));
                }
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..records as u32).collect::<Vec<_>>());
        }
    }
}
