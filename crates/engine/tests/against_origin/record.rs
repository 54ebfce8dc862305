//! The live files of a record against the result of the same run and the server's books, row by row.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use loadlens_engine::error::Outcome;
use loadlens_origin::{Books, Config};
use serde_json::{json, Value};

use crate::harness::{
    check_manners, closed, origin, plan, run, settled, shared, stream, Run, MS, SECOND,
};

const SAMPLE: usize = 64;
const CONNECTION: usize = 48;

/// The rows of a file of chunks (docs/reference/record.md); every chunk must be whole and its sum right.
fn rows(path: &Path, magic: &[u8; 4], row: usize) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("the file is there");
    let mut rows = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(&rest[..4], magic);
        let (count, sum) = (word(4) as usize, word(8));
        let payload = &rest[16..16 + count * row];
        assert_eq!(crc32fast::hash(payload), sum);
        rows.extend(payload.chunks(row).map(<[u8]>::to_vec));
        rest = &rest[16 + count * row..];
    }
    rows
}

fn u32_at(row: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(row[at..at + 4].try_into().expect("four bytes"))
}

fn i64_at(row: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"))
}

/// A run of one stream with its record: samples, connections, result, books.
struct Recorded {
    samples: Vec<Vec<u8>>,
    connections: Vec<Vec<u8>>,
    done: Run,
    books: Books,
}

fn record(path: &str, change: impl FnOnce(&mut Value)) -> Recorded {
    let _machine = shared();
    let folder = std::env::temp_dir().join(format!(
        "loadlens-record-{}-{}",
        std::process::id(),
        path.replace(['/', '?', '='], "-")
    ));
    std::fs::create_dir_all(&folder).expect("a folder");
    let origin = origin(Config::default());
    let mut plan = plan(vec![stream("load", origin.port, path)]);
    plan["record"] = json!({"dir": folder});
    change(&mut plan);

    let done = run(&plan, Duration::from_secs(30));
    let books = settled(&origin);

    check_manners(&books);
    done.only().check_law();
    let samples = rows(&folder.join("samples.bin"), b"LLS1", SAMPLE);
    let connections = rows(&folder.join("connections.bin"), b"LLC1", CONNECTION);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    Recorded {
        samples,
        connections,
        done,
        books,
    }
}

impl Recorded {
    /// Rows by outcome.
    fn outcomes(&self) -> HashMap<u8, u64> {
        let mut counts = HashMap::new();
        for row in &self.samples {
            *counts.entry(row[60]).or_default() += 1;
        }
        counts
    }

    fn count(&self, outcome: Outcome) -> u64 {
        let counts = self.outcomes();
        counts.get(&outcome.code()).copied().unwrap_or(0)
    }

    /// Every request has a row, and every row stands for one request.
    fn check_rows(&self) {
        let load = self.done.only();
        assert_eq!(self.samples.len() as u64, load.requests("due"));
        assert_eq!(self.count(Outcome::Ok), load.requests("ok"));
        assert_eq!(self.count(Outcome::InFlight), load.requests("in_flight"));
        assert_eq!(self.count(Outcome::Waiting), load.requests("waiting"));
        assert_eq!(self.count(Outcome::Dropped), load.requests("dropped"));
        for row in &self.samples {
            let (due, sent, first, done) = (
                i64_at(row, 8),
                i64_at(row, 16),
                i64_at(row, 24),
                i64_at(row, 32),
            );
            assert!(due >= 0, "due {due}");
            assert!(sent == -1 || sent >= due, "due {due}, sent {sent}");
            assert!(first == -1 || first >= sent, "sent {sent}, first {first}");
            assert!(done == -1 || done >= first, "first {first}, done {done}");
        }
        let mut numbers: Vec<i64> = self.samples.iter().map(|row| i64_at(row, 0)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(
            numbers.len(),
            self.samples.len(),
            "a number stands for two requests"
        );
    }

    /// Every connection has a row, which says how many answers came on it.
    fn check_connections(&self) {
        let load = self.done.only();
        assert_eq!(self.connections.len() as u64, load.connections("opened"));
        let answered: u64 = self
            .connections
            .iter()
            .map(|row| u64::from(u32_at(row, 32)))
            .sum();
        assert_eq!(answered, load.requests("answered"));
    }
}

#[test]
fn each_request_and_each_connection_of_a_counted_run_has_one_row() {
    let recorded = record("/bytes/100", |plan| {
        plan["streams"][0]["workload"] = closed(4, 400);
        plan["streams"][0]["connection"] = json!({"reuse": {"kind": "requests", "requests": 10}});
    });

    recorded.check_rows();
    recorded.check_connections();
    let load = recorded.done.only();
    assert_eq!(recorded.count(Outcome::Ok), 400);
    // What the server handed to the kernel is what the rows say came in.
    let wire: u64 = recorded
        .samples
        .iter()
        .map(|row| u64::from(u32_at(row, 48)))
        .sum();
    let body: u64 = recorded
        .samples
        .iter()
        .map(|row| u64::from(u32_at(row, 52)))
        .sum();
    assert_eq!(
        (wire, body),
        (recorded.books.path("/bytes/100").bytes_out, 40_000)
    );
    assert_eq!(load.0["bytes"]["in_wire"], wire);
    assert_eq!(load.0["bytes"]["out"], recorded.books.bytes_in);
}

#[test]
fn dropped_and_unfinished_requests_have_rows_too() {
    let recorded = record("/delay/150", |plan| {
        plan["streams"][0]["workload"] = json!({
            "kind": "open", "rate_per_s": 100.0, "arrivals": "constant", "max_in_flight": 4,
            "overflow": "drop",
        });
        plan["duration_ns"] = json!(700 * MS);
    });

    recorded.check_rows();
    assert!(
        recorded.count(Outcome::Dropped) > 20,
        "{:?}",
        recorded.outcomes()
    );
    assert!(
        recorded.count(Outcome::InFlight) > 0,
        "{:?}",
        recorded.outcomes()
    );
}

#[test]
fn failures_have_rows_with_their_class() {
    let recorded = record("/bad/reset_in_body", |plan| {
        plan["streams"][0]["workload"] = closed(2, 20);
    });

    recorded.check_rows();
    recorded.check_connections();
    assert_eq!(
        recorded.outcomes(),
        HashMap::from([(Outcome::Reset.code(), 20)])
    );
}

#[test]
fn a_timed_run_with_many_connections_has_a_row_for_every_request() {
    let recorded = record("/", |plan| {
        plan["streams"][0]["workload"] = json!({"kind": "closed", "users": 200});
        plan["threads"] = json!(2);
        plan["duration_ns"] = json!(SECOND / 2);
    });

    recorded.check_rows();
    let received = recorded.books.received;
    let issued = recorded.done.only().requests("issued");
    assert!(
        received <= issued && issued - received <= 200,
        "{issued} issued, {received} received"
    );
}
