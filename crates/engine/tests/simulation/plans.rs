//! Choices of a seed: the load, and the world that it meets.

use loadlens_base::Random;
use loadlens_engine::worker::Level;
use loadlens_plan::Workload;
use serde_json::{json, Value};

use crate::world::{Listens, Nature, World};
use crate::{LONGEST_FREEZE, MS};

/// Draws values in a row.
pub struct Draws<'r>(pub &'r mut Random);

impl Draws<'_> {
    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize].clone()
    }

    fn is(&mut self) -> bool {
        self.0.below(2) == 0
    }
}

/// A stream to the port of its number.
fn stream(name: &str, port: u16, steps: &[&Value], workload: &Value, timeout: u64) -> Value {
    json!({
        "name": name, "role": name, "timeout_ns": timeout,
        "target": {"host": "127.0.0.1", "port": port, "authority": "sim"},
        "scenarios": [{"name": "s", "weight": 1, "steps": steps}],
        "workload": workload,
    })
}

/// A plan of one step and one workload.
pub fn simple(workload: Value, duration: u64, timeout: u64) -> Value {
    let step = json!({"name": "get", "method": "GET", "path": "/"});
    json!({
        "schema_version": 1, "seed": 1, "duration_ns": duration,
        "streams": [stream("load", 80, &[&step], &workload, timeout)],
    })
}

fn steps(draws: &mut Draws, think: &Value) -> Vec<Value> {
    let plain = json!({"name": "plain", "method": "GET", "path": "/"});
    let checked = json!({
        "name": "checked", "method": "GET", "path": "/", "think": think,
        "checks": [{"kind": "contains", "text": "id"}],
        "extract": [{"name": "id", "from": {"kind": "json", "path": "id"}}],
    });
    let using = json!({"name": "using", "method": "GET", "path": "/{{id}}"});
    let posting = json!({
        "name": "posting", "method": "POST", "path": "/", "body": {"kind": "text", "text": "{{word 40}}"},
    });
    let matched = json!({
        "name": "matched", "method": "GET", "path": "/",
        "checks": [
            {"kind": "regex", "pattern": "[0-9]"}, {"kind": "size", "is": {"below": 15.0}},
            {"kind": "latency", "below_ns": MS},
        ],
        "extract": [{"name": "digit", "from": {"kind": "regex", "pattern": "id\":([0-9])"}}],
    });
    let sending = json!({
        "name": "sending", "method": "PUT", "path": "/{{digit}}?u={{uuid}}",
        "body": {"kind": "json", "value": {"n": "{{digit}}"}},
    });
    match draws.0.below(5) {
        0 => vec![plain],
        1 => vec![posting],
        2 => vec![checked, using],
        3 => vec![plain, matched, sending],
        _ => vec![plain, posting, checked, using],
    }
}

/// Groups of the steps: none, one, or one in another.
fn groups(draws: &mut Draws, steps: usize) -> Value {
    let rest = steps as u64 - 1;
    if rest == 0 {
        return json!([]);
    }
    let again = json!({"name": "again", "first": 1, "steps": rest, "repeat": 3});
    let all = json!({"name": "all", "first": 0, "steps": steps, "repeat": 1});
    let last = json!({"name": "last", "first": rest, "steps": 1, "repeat": 2});
    // By requests of its first step a group can be counted only if no group within it begins there too.
    let outer = if rest > 1 { again.clone() } else { all.clone() };
    draws.of(&[
        json!([]),
        json!([again]),
        json!([outer, last]),
        json!([all, last]),
    ])
}

/// A shape whose highest level is `peak`: one that ends, or one that begins again.
fn profile(draws: &mut Draws, peak: f64) -> Value {
    draws.of(&[
        json!({"segments": [
            {"ns": 60 * MS, "start": 0.0, "end": peak},
            {"ns": 20 * MS, "start": peak, "end": 0.0},
        ]}),
        json!({"segments": [
            {"ns": 7 * MS, "start": peak, "end": peak},
            {"ns": 9 * MS, "start": 0.0, "end": peak / 5.0},
        ], "repeats": true}),
    ])
}

/// A closed workload: users all the time or along a shape, with pauses or at a pace.
fn closed(draws: &mut Draws, think: &Value, requests: &Value, iterations: &Value) -> Value {
    let mut workload = json!({
        "kind": "closed", "users": draws.of(&[1, 2, 7]), "think": think,
        "ramp_ns": draws.of(&[0, 20 * MS]), "requests": requests, "iterations": iterations,
    });
    if draws.of(&[true, false, false]) {
        workload["users"] = json!(5);
        workload["ramp_ns"] = json!(0);
        workload["profile"] = profile(draws, 5.0);
    }
    if draws.of(&[true, false, false]) {
        workload["think"] = json!({"kind": "none"});
        workload["pace"] = draws.of(&[
            json!({"kind": "fixed", "ns": 3 * MS}),
            json!({"kind": "exponential", "mean_ns": 2 * MS}),
        ]);
    }
    workload
}

/// An open workload: a rate, or a rate along a shape.
fn open(draws: &mut Draws, requests: &Value) -> Value {
    let mut workload = json!({
        "kind": "open", "rate_per_s": draws.of(&[50.0, 1000.0, 5000.0]),
        "arrivals": draws.of(&["constant", "poisson"]), "max_in_flight": draws.of(&[1, 3, 20]),
        "overflow": draws.of(&["queue", "drop"]), "requests": requests,
    });
    if draws.of(&[true, false, false]) {
        workload["rate_per_s"] = json!(null);
        workload["profile"] = profile(draws, 1500.0);
    }
    workload
}

/// Draws the load of a seed.
pub fn draw_plan(random: &mut Random) -> Value {
    let draws = &mut Draws(random);
    let think = draws.of(&[
        json!({"kind": "none"}),
        json!({"kind": "fixed", "ns": MS}),
        json!({"kind": "exponential", "mean_ns": 2 * MS}),
    ]);
    let requests = draws.of(&[json!(null), json!(null), json!(1), json!(7), json!(50)]);
    let iterations = draws.of(&[json!(null), json!(null), json!(1), json!(5)]);
    let is_open = draws.is();
    let workload = match is_open {
        false => closed(draws, &think, &requests, &iterations),
        true => open(draws, &requests),
    };
    let timeout = draws.of(&[2 * MS, 8 * MS, 40 * MS]);
    let steps = steps(draws, &think);
    let steps: Vec<&Value> = steps.iter().collect();
    let mut load = stream("load", 80, &steps, &workload, timeout);
    load["scenarios"][0]["groups"] = groups(draws, steps.len());
    load["cookies"] = match is_open {
        false => draws.of(&[json!("off"), json!("iteration"), json!("keep")]),
        true => draws.of(&[json!("off"), json!("iteration")]),
    };
    let reuse = draws.of(&[
        json!({"kind": "keep"}),
        json!({"kind": "keep"}),
        json!({"kind": "new"}),
        json!({"kind": "requests", "requests": 3}),
    ]);
    load["connection"] = json!({"reuse": reuse, "pool": draws.of(&[None, None, Some(1), Some(3)])});
    let has_end = !requests.is_null() || (!is_open && !iterations.is_null());
    let durations = [
        Some(30 * MS),
        Some(120 * MS),
        Some(120 * MS),
        Some(700 * MS),
    ];
    let mut duration = draws.of(&durations);
    if has_end && draws.of(&[true, false, false, false]) {
        duration = None;
    }
    let mut streams = vec![load];
    if draws.is() {
        let step = json!({"name": "probe", "method": "GET", "path": "/"});
        let probe = json!({
            "kind": "open", "rate_per_s": 100.0, "arrivals": "poisson", "max_in_flight": 2, "overflow": "drop",
        });
        streams.push(stream("probe", 81, &[&step], &probe, 5 * MS));
    }
    json!({
        "schema_version": 1, "seed": draws.of(&[1, 2, 3]), "warmup_ns": draws.of(&[0, 13 * MS]),
        "duration_ns": duration, "drain_ns": draws.of(&[0, 1, 15 * MS]), "streams": streams,
    })
}

/// The level of a load that can be changed while it runs.
pub fn level(workload: &Workload) -> Option<Level> {
    match workload {
        Workload::Open { rate_per_s, .. } => rate_per_s.map(Level::RatePerS),
        Workload::Closed {
            users,
            pace: None,
            profile: None,
            iterations: None,
            requests: None,
            ..
        } => Some(Level::Users(*users)),
        Workload::Closed { .. } => None,
    }
}

/// Draws changes of the load: none, or up to four, some of them before others have taken effect.
pub fn draw_changes(random: &mut Random, plan: &Value) -> Vec<(u64, Level)> {
    let workload: Workload =
        serde_json::from_value(plan["streams"][0]["workload"].clone()).unwrap();
    let draws = &mut Draws(random);
    let Some(level) = level(&workload) else {
        return Vec::new();
    };
    let count = draws.of(&[0, 1, 2, 4]);
    let mut at = 0;
    let change = |_| {
        at += draws.of(&[0, 3 * MS, 20 * MS, 100 * MS]);
        let new = match level {
            Level::RatePerS(_) => Level::RatePerS(draws.of(&[20.0, 700.0, 3000.0, 9000.0])),
            Level::Users(_) => Level::Users(draws.of(&[1, 2, 4, 9, 15])),
        };
        (at, new)
    };
    (0..count).map(change).collect()
}

/// Draws the world of a seed.
pub fn draw_nature(random: &mut Random) -> Nature {
    let draws = &mut Draws(random);
    Nature {
        mischief: draws.of(&[0, 100, 500]),
        longest: draws.of(&[300_000, 3 * MS, 3 * MS]),
        short_sends: draws.of(&[0, 30, 300]),
        stands_at_once: draws.of(&[0, 500, 1000]),
        splits: draws.of(&[0, 200, 1000]),
        spurious: draws.of(&[0, 0, 50]),
        freezes: draws.of(&[0, 0, 30, 300]),
        longest_freeze: draws.of(&[MS, 10 * MS, LONGEST_FREEZE]),
        ..Nature::GOOD
    }
}

/// Draws the listeners at the addresses of the load: nearly always only a server.
pub fn draw_addresses(random: &mut Random) -> Vec<Listens> {
    use Listens::{BlackHole, Nobody, Server};
    let all: [&[Listens]; 8] = [
        &[Server],
        &[Server],
        &[Server],
        &[Server],
        &[Nobody, Server],
        &[BlackHole, Server],
        &[Nobody, BlackHole, Nobody, Server],
        &[Server, Nobody],
    ];
    Draws(random).of(&all).to_vec()
}

/// The world of one worker.
pub fn world(seed: u64, worker: u64, nature: Nature, addresses: &[Listens]) -> World {
    let mut world = World::new(Random::derived(seed, &[77, worker]), nature);
    world.listens.insert(80, addresses.to_vec());
    world
}
