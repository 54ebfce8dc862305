//! The live files of a record against the result of the same run and the server's counts, row by row.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use loadlens_base::Outcome;
use loadlens_origin::{Config, Counts};
use loadlens_record::files::{read_intervals, HlogInterval};
use loadlens_record::rows::hashed;
use serde_json::{json, Value};

use crate::harness::{closed, meet, origin, plan, shared, stream, Run, MS, SECOND};

const SAMPLE: usize = 64;
const CONNECTION: usize = 64;

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

/// An empty folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let dir = std::env::temp_dir().join(format!("loadlens-{name}-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a folder of this test's own");
        Folder(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run of one stream with its record: folder, samples, connections, result, counts.
struct Recorded {
    folder: Folder,
    samples: Vec<Vec<u8>>,
    connections: Vec<Vec<u8>>,
    done: Run,
    counts: Counts,
}

fn record(name: &str, path: &str, change: impl FnOnce(&mut Value)) -> Recorded {
    let _machine = shared();
    let folder = Folder::new(name);
    let origin = origin(Config::default());
    let mut plan = plan(vec![stream("load", origin.port, path)]);
    plan["record"] = json!({"dir": folder.0});
    change(&mut plan);

    let (done, counts) = meet(&origin, &plan);

    Recorded {
        samples: rows(&folder.0.join("samples.bin"), b"LLS1", SAMPLE),
        connections: rows(&folder.0.join("connections.bin"), b"LLC3", CONNECTION),
        folder,
        done,
        counts,
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

fn intervals_of(recorded: &Recorded) -> Vec<HlogInterval> {
    let log = std::fs::read(recorded.folder.0.join("intervals.hlog")).expect("a log");
    read_intervals("intervals.hlog", &log).expect("intervals")
}

#[test]
fn each_request_and_each_connection_of_a_counted_run_has_one_row() {
    let recorded = record("counted", "/bytes/100", |plan| {
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
        (recorded.counts.path("/bytes/100").bytes_out, 40_000)
    );
    assert_eq!(load.0["bytes"]["in_wire"], wire);
    assert_eq!(load.0["bytes"]["out"], recorded.counts.bytes_in);
}

#[test]
fn dropped_and_unfinished_requests_have_rows_too() {
    // Every fourth answer is not there at the end, and holds one of four places from then on.
    let recorded = record("dropped", "/mix?ms=150:3,60000:1", |plan| {
        plan["streams"][0]["workload"] = json!({
            "kind": "open", "rate_per_s": 100.0, "arrivals": "constant", "max_in_flight": 4,
            "overflow": "drop",
        });
        plan["duration_ns"] = json!(1_500 * MS);
    });

    recorded.check_rows();
    let outcomes = recorded.outcomes();
    assert!(recorded.count(Outcome::Dropped) > 20, "{outcomes:?}");
    assert!(recorded.count(Outcome::InFlight) > 0, "{outcomes:?}");
}

#[test]
fn failures_have_rows_with_their_class() {
    let recorded = record("failed", "/bad/reset_in_body", |plan| {
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
    let recorded = record("timed", "/", |plan| {
        plan["streams"][0]["workload"] = json!({"kind": "closed", "users": 200});
        plan["threads"] = json!(2);
        plan["duration_ns"] = json!(SECOND / 2);
    });

    recorded.check_rows();
    let received = recorded.counts.received;
    let issued = recorded.done.only().requests("issued");
    assert!(
        received <= issued && issued - received <= 200,
        "{issued} issued, {received} received"
    );
}

/// Sums of one counter of the stream by phase.
fn counted(lines: &[Value], key: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in lines {
        let phase = line["phase"].as_str().expect("a phase").to_owned();
        *sums.entry(phase).or_default() += line[key].as_u64().expect("a count");
    }
    sums
}

#[test]
fn intervals_counters_and_rows_add_up_to_the_result_phase_by_phase() {
    let recorded = record("phases", "/delay/2", |plan| {
        plan["streams"][0]["workload"] = json!({"kind": "closed", "users": 6});
        plan["warmup_ns"] = json!(300 * MS);
        plan["duration_ns"] = json!(600 * MS);
        plan["drain_ns"] = json!(500 * MS);
        plan["threads"] = json!(2);
    });

    recorded.check_rows();
    recorded.check_connections();
    let load = recorded.done.only();
    let text = std::fs::read_to_string(recorded.folder.0.join("counters.jsonl")).expect("counters");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let lines: Vec<Value> = lines.filter(|line| !line["stream"].is_null()).collect();
    // Intervals follow each other without gaps, and phases begin exactly where the plan says.
    let mut at = 0.0;
    let mut began = BTreeMap::new();
    for line in &lines {
        let start_s = line["start_s"].as_f64().expect("a start");
        assert!((start_s - at).abs() < 1e-9, "{line}");
        at += line["length_s"].as_f64().expect("a length");
        began.entry(line["phase"].as_str()).or_insert(start_s);
    }
    assert_eq!((began[&Some("measure")], began[&Some("drain")]), (0.3, 0.9));
    let answered = counted(&lines, "answered");
    assert_eq!(answered.values().sum::<u64>(), load.requests("answered"));
    assert_eq!(load.0["in_warmup"]["answered"], answered["warmup"]);
    assert_eq!(load.0["after_end"]["answered"], answered["drain"]);
    let intervals = intervals_of(&recorded);
    let in_histograms: u64 = intervals
        .iter()
        .filter(|interval| {
            interval.tag == "load.step.ok.response" && (0.3..0.9).contains(&interval.start_s)
        })
        .flat_map(|interval| interval.counts.iter().map(|(_, count)| count))
        .sum();
    assert_eq!(load.0["response_time_s"]["count"], in_histograms);
}

#[test]
fn the_sample_log_is_thinned_when_it_would_pass_its_bound() {
    let recorded = record("thinned", "/", |plan| {
        plan["streams"][0]["workload"] = closed(20, 30_000);
        plan["record"]["max_sample_rows"] = json!(10_000);
    });

    let k = recorded.samples.iter().map(|row| row[62]).max();
    let seq = |row: &Vec<u8>| u64::from_le_bytes(row[..8].try_into().expect("eight bytes"));
    let mut kept: Vec<u64> = recorded.samples.iter().map(seq).collect();
    kept.retain(|seq| hashed(*seq) % (1 << k.expect("rows")) == 0);
    kept.sort_unstable();
    assert_eq!(recorded.done.only().requests("ok"), 30_000);
    let whole = 0..recorded.done.only().requests("ok");
    let chosen: Vec<u64> = whole
        .filter(|seq| hashed(*seq) % (1 << k.expect("rows")) == 0)
        .collect();
    assert_eq!(kept, chosen);
    assert!((2_000..=10_000).contains(&kept.len()), "{}", kept.len());
}

#[test]
fn a_full_disk_stops_the_log_and_not_the_counting() {
    let _machine = shared();
    let folder = Folder::new("full");
    std::os::unix::fs::symlink("/dev/full", folder.0.join("samples.bin")).expect("a link");
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/json");
    stream["workload"] = closed(2, 500);
    let mut plan = plan(vec![stream]);
    plan["record"] = json!({"dir": folder.0});

    let (done, _) = meet(&origin, &plan);

    let reasons = done.result["reasons"].to_string();
    assert_eq!(done.only().requests("ok"), 500);
    assert!(reasons.contains("samples.bin ends early"), "{reasons}");
}

/// The numbers under `key` of all lines, added by their names: `{"0.1": {"passed": 3}}`.
fn added(lines: &[Value], key: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut sums: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for line in lines {
        for (name, counts) in line[key].as_object().expect("an object") {
            let of_name = sums.entry(name.clone()).or_default();
            for (count, value) in counts.as_object().expect("counts") {
                *of_name.entry(count.clone()).or_default() += value.as_f64().expect("a number");
            }
        }
    }
    sums
}

#[test]
fn checks_and_groups_of_all_intervals_are_those_of_the_result() {
    let recorded = record("parts", "/json", |plan| {
        plan["duration_ns"] = json!(1_700 * MS); // a second without the machine leaves it several intervals
        plan["warmup_ns"] = json!(300 * MS);
        let step = |name: &str, path: &str, checks: Value| {
            let think = json!({"kind": "fixed", "ns": 5 * MS});
            json!({"name": name, "method": "GET", "path": path, "checks": checks, "think": think})
        };
        let hopeful =
            json!([{"kind": "contains", "text": "{"}, {"kind": "contains", "text": "nowhere"}]);
        let stream = &mut plan["streams"][0];
        stream["workload"] = json!({"kind": "closed", "users": 3});
        stream["scenarios"][0]["steps"] = json!([
            step("a", "/json", json!([])),
            step("b", "/json", json!([{"kind": "contains", "text": "{"}])),
            step("c", "/json", hopeful),
        ]);
        stream["scenarios"][0]["groups"] = json!([
            {"name": "good", "first": 0, "steps": 2, "repeat": 2},
            {"name": "bad", "first": 2, "steps": 1, "repeat": 1},
        ]);
    });

    recorded.check_rows();
    let load = recorded.done.only();
    let text = std::fs::read_to_string(recorded.folder.0.join("counters.jsonl")).expect("counters");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines
        .filter(|line: &Value| !line["stream"].is_null())
        .collect();
    assert!(lines.len() > 3, "a second has four intervals");
    let checks = added(&lines, "checks");
    for (number, step) in load.0["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .enumerate()
    {
        for (at, check) in step["checks"]
            .as_array()
            .expect("checks")
            .iter()
            .enumerate()
        {
            let tally = &checks[&format!("{number}.{at}")];
            for key in ["passed", "failed", "not_judged"] {
                assert_eq!(tally[key], check[key].as_f64().expect("a count"), "{check}");
            }
        }
    }
    assert!(checks["2.2"]["failed"] > 10.0 && !checks.contains_key("0.0"));
    let groups = added(&lines, "groups");
    let (good, bad) = (&groups["0"], &groups["1"]);
    // A run begins with each request of its first step, and fails with each answer that lacks its text.
    let steps = &load.0["steps"];
    let of_step = |step: usize, key: &str| steps[step]["requests"][key].as_f64().expect("a count");
    assert_eq!(
        (good["due"], bad["due"]),
        (of_step(0, "due"), of_step(2, "due"))
    );
    assert_eq!((good["failed"], bad["completed"]), (0.0, 0.0));
    assert!(bad["failed"] <= of_step(2, "check_failed"));
    for (found, group) in [good, bad]
        .iter()
        .zip(load.0["groups"].as_array().expect("groups"))
    {
        for key in ["due", "completed", "failed", "unfinished"] {
            assert_eq!(
                found[key],
                group["runs"][key].as_f64().expect("a count"),
                "{group}"
            );
        }
        let ended = found["completed"] + found["failed"] + found["unfinished"];
        assert_eq!(found["due"], ended, "{group}");
    }
    // Two answers and the pause between them.
    let shortest = load.0["groups"][0]["response_time_s"]["min"]
        .as_f64()
        .expect("a time");
    assert!(shortest > 0.005, "{shortest}");
    let intervals = intervals_of(&recorded);
    let in_histograms = |tag: &str| -> u64 {
        let of_tag = intervals.iter().filter(|interval| interval.tag == tag);
        of_tag
            .flat_map(|interval| interval.counts.iter().map(|(_, count)| count))
            .sum()
    };
    assert_eq!(
        in_histograms("load.good.ok.group_response") as f64,
        good["completed"]
    );
    assert_eq!(
        in_histograms("load.bad.failed.group_service") as f64,
        bad["failed"]
    );
}
