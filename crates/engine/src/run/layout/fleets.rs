//! Machines of any weights and numbers of threads carry together exactly the load of one engine with one thread.
//!
//! Draws that belong to a thread (thinking times, the choice of a scenario, random records) are no part of this: they
//! differ between one thread and two as well.

use std::sync::atomic::{AtomicU32, Ordering};

use loadlens_plan::arrival::replay::DueTimes;
use loadlens_plan::program::FeedFile;
use loadlens_plan::{FeedFormat, Share};
use proptest::prelude::*;
use serde_json::{json, Value};

use super::*;

/// Due times are compared up to here.
const HORIZON: u64 = 3_000_000_000;

/// Due time of a request, its number or that of its user, and the record of the feed that it gets.
type Due = (u64, u64, u32);

/// A file in the temporary folder, which goes at the end.
struct Kept(String);

impl Kept {
    fn new(content: &str) -> Kept {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("loadlens-fleets-{}-{number}.csv", std::process::id());
        let path = std::env::temp_dir().join(name).display().to_string();
        std::fs::write(&path, content).unwrap();
        Kept(path)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn plan_of(workload: &Value, pick: &str, end: &str, feed: &Kept) -> Plan {
    let digest = FeedFile::open(&feed.0, FeedFormat::Csv)
        .unwrap()
        .digest()
        .to_owned();
    serde_json::from_value(json!({
        "schema_version": 1, "seed": 11, "duration_ns": HORIZON,
        "feeds": [{"name": "ids", "path": feed.0, "digest": digest, "format": "csv", "pick": pick, "end": end}],
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 1,
            "target": {"host": "h", "port": 1, "authority": "h"},
            "scenarios": [{"name": "s", "weight": 1.0,
                "steps": [{"name": "a", "method": "GET", "path": "/{{ids.id}}"}]}],
            "workload": workload,
        }],
    }))
    .unwrap()
}

/// The load of one machine: all arrivals of an open load, the first iterations of closed users.
fn due_on(plan: &Plan, program: &Program, share: Share, threads: u32) -> Vec<Due> {
    let mut plan = plan.clone();
    (plan.share, plan.threads) = (share, Some(threads));
    let threads = thread_count(&plan);
    let mut due = Vec::new();
    for thread in 0..threads {
        for mut shard in shards(&plan, program, &[Vec::new()], thread, threads) {
            if shard.open.is_some() {
                add_arrivals(&mut shard, &mut due);
            } else {
                add_users(&mut shard, &mut due);
            }
        }
    }
    due
}

fn add_arrivals(shard: &mut StreamShard<'_>, due: &mut Vec<Due>) {
    let place = shard.take_place().unwrap();
    while let Some(arrival) = shard.arrive(HORIZON) {
        let feeds = shard.feed_cursors.as_mut().unwrap();
        feeds.take(&shard.program.scenarios[0], place, 0);
        let record = feeds.record_of(place);
        due.push((arrival.due, shard.quota.number(), record));
    }
}

fn add_users(shard: &mut StreamShard<'_>, due: &mut Vec<Due>) {
    for place in 0..shard.users.len() as u32 {
        let scenario = &shard.program.scenarios[0];
        let user = &shard.users[place as usize];
        let feeds = shard.feed_cursors.as_mut().unwrap();
        if !feeds.claim(scenario) || !shard.quota.claim() {
            break;
        }
        feeds.take(scenario, place, user.number);
        due.push((user.due, u64::from(user.number), feeds.record_of(place)));
        let Some(timetable) = &mut shard.timetable else {
            continue;
        };
        for _ in 0..5 {
            let mut timing = timetable.of(place);
            let Some(next) = timing.next(user.number, HORIZON, &mut shard.random) else {
                break;
            };
            due.push((next, u64::from(user.number), 0));
        }
    }
}

/// Machines by weight and number of threads.
fn machines() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let weight = prop_oneof![Just(1u32), 1u32..6, 1u32..400];
    let sizes = prop_oneof![Just(2usize), Just(3), Just(4), Just(7)];
    sizes.prop_flat_map(move |size| prop::collection::vec((weight.clone(), 1u32..5), size))
}

fn profile() -> impl Strategy<Value = Value> {
    let segment = (1..HORIZON / 2, 0u32..300, 0u32..300);
    let segments = prop::collection::vec(segment, 1..4);
    (segments, any::<bool>()).prop_map(|(segments, repeats)| {
        let mut segments: Vec<Value> = segments
            .into_iter()
            .map(|(ns, start, end)| json!({"ns": ns, "start": start, "end": end}))
            .collect();
        segments.push(json!({"ns": 1_000, "start": 7, "end": 9}));
        json!({"segments": segments, "repeats": repeats})
    })
}

/// Every shape of load; `requests` bounds it. A replay is of `times`.
fn workload(times: &Kept) -> impl Strategy<Value = Value> {
    let due = DueTimes::read(&times.0, None, 1.0, false).unwrap();
    let replay = json!({
        "path": times.0, "digest": due.digest, "arrivals": due.count(), "last_ns": due.last_ns(),
        "peak_per_s": due.peak_per_s(),
    });
    let arrivals = prop_oneof![Just("constant"), Just("poisson")];
    let shape = prop_oneof![
        (1u32..40_000).prop_map(|rate| json!({"rate_per_s": f64::from(rate) / 40.0})),
        profile().prop_map(|profile| json!({"profile": profile})),
    ];
    let shape = (shape, arrivals).prop_map(|(mut shape, arrivals)| {
        shape["arrivals"] = json!(arrivals);
        shape
    });
    let open = (
        prop_oneof![4 => shape, 1 => Just(json!({"replay": replay}))],
        1u32..5_000,
    );
    let open = open.prop_map(|(mut open, places)| {
        (open["kind"], open["overflow"]) = (json!("open"), json!("queue"));
        open["max_in_flight"] = json!(places);
        open
    });
    let pause = (1_000_000..HORIZON).prop_map(|ns| json!({"kind": "fixed", "ns": ns}));
    let start = prop_oneof![
        (1u32..300, 0..HORIZON).prop_map(|(users, ramp)| json!({"users": users, "ramp_ns": ramp})),
        profile().prop_map(|profile| json!({"users": 300, "profile": profile})),
    ];
    let closed = (start, prop_oneof![Just("think"), Just("pace")], pause);
    let closed = closed.prop_map(|(mut closed, key, pause)| {
        (closed["kind"], closed[key]) = (json!("closed"), pause);
        closed
    });
    let requests = prop_oneof![Just(Value::Null), (1u32..2_000).prop_map(Value::from)];
    (prop_oneof![open, closed], requests).prop_map(|(mut workload, requests)| {
        workload["requests"] = requests;
        workload
    })
}

#[test]
fn machines_of_any_weights_carry_together_what_one_does() {
    let feed = Kept::new(&(0..97).fold("id\n".to_owned(), |text, id| format!("{text}{id}\n")));
    let times = Kept::new(&(0..400).fold(String::new(), |text, at| {
        format!("{text}{}\n", at as f64 / 150.0)
    }));
    let feeds = [("shared", "loop"), ("unique", "stop"), ("user", "loop")];
    let strategy = (
        workload(&times),
        prop::sample::select(feeds.to_vec()),
        machines(),
    );
    let mut runner = prop::test_runner::TestRunner::new(ProptestConfig::with_cases(300));

    let outcome = runner.run(&strategy, |(workload, (pick, end), machines)| {
        // The users of an open load do not stay.
        let is_open = workload["kind"] == "open";
        let pick = if is_open && pick == "user" {
            "shared"
        } else {
            pick
        };
        let plan = plan_of(&workload, pick, end, &feed);
        let program = Program::compile(&plan).unwrap();
        let mut whole = due_on(&plan, &program, Share::default(), 1);
        let of = machines.iter().map(|(weight, _)| weight).sum();
        let mut from = 0;
        let mut together = Vec::new();
        for (weight, threads) in machines {
            let to = from + weight;
            together.extend(due_on(&plan, &program, Share { from, to, of }, threads));
            from = to;
        }
        whole.sort_unstable();
        together.sort_unstable();
        prop_assert_eq!(together, whole);
        Ok(())
    });

    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
}
