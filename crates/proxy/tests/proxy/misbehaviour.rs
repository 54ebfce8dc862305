//! A service that does wrong: a proxy without faults passes on what it did, and invents no answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use loadlens_engine::run::Run;
use loadlens_origin::bad::{self, Behaviour};
use loadlens_origin::{Admission, Config, Origin};
use serde_json::{json, Value};

use crate::harness::{proxy, Heard};

const MS: u64 = 1_000_000;

/// Outcomes that a client sees: classes as docs/reference/record.md names them.
type Seen = BTreeMap<&'static str, BTreeSet<String>>;

fn stream(behaviour: &Behaviour, port: u16) -> Value {
    let may_time_out = behaviour.expected.contains(&"timeout");
    let mut step = json!({
        "name": "step", "method": behaviour.method, "path": format!("/bad/{}", behaviour.name),
    });
    if behaviour.body_bytes > 0 {
        step["body"] = json!({"kind": "text", "text": "y".repeat(behaviour.body_bytes)});
    }
    json!({
        "name": behaviour.name,
        "role": "load",
        "target": {"host": "127.0.0.1", "port": port, "authority": format!("127.0.0.1:{port}")},
        "scenarios": [{"name": "scenario", "weight": 1.0, "steps": [step]}],
        "workload": {"kind": "closed", "users": 1, "requests": if may_time_out { 2 } else { 6 },
            "think": {"kind": "fixed", "ns": behaviour.pause_ms * MS}},
        "timeout_ns": if may_time_out { 1000 * MS } else { 10_000 * MS },
    })
}

/// Outcomes of each behaviour; one after the other, as on connections that the proxy keeps, where no client
/// must get what was meant for another.
fn seen(behaviours: &[&'static Behaviour], port: u16) -> Seen {
    behaviours
        .iter()
        .map(|behaviour| {
            let streams = [stream(behaviour, port)];
            let plan = json!({"schema_version": 1, "seed": 1, "threads": 1, "streams": streams});
            let mut run = Run::new(&plan.to_string()).expect("the plan is good");
            run.start().expect("the run starts");
            assert!(run.wait(Duration::from_secs(60)), "still running");
            let result: Value =
                serde_json::from_str(&run.result().expect("a result")).expect("JSON");
            let stream = &result["streams"][0];
            let judged = ["ok", "unexpected_status", "check_failed"]
                .into_iter()
                .filter(|name| stream["requests"][*name].as_u64() > Some(0))
                .map(str::to_owned);
            let failed = stream["errors"]
                .as_object()
                .expect("errors")
                .keys()
                .cloned();
            (behaviour.name, judged.chain(failed).collect())
        })
        .collect()
}

/// Differences in what arrives through a proxy.
fn differing(behaviours: &[&'static Behaviour]) -> Vec<String> {
    let origin = Origin::start(Config::default()).expect("the origin starts");
    // Connections to the service are not shared: what one behaviour spoils must not reach another's client.
    let front = proxy(
        origin.port,
        json!({"timeout_ns": 2_500 * MS, "keepalive": 0}),
    );

    let through = seen(behaviours, front.port);

    let counts = front.counts_when(|counts| counts.get("in_flight") == 0);
    counts.assert_balanced();
    behaviours
        .iter()
        .filter_map(|behaviour| {
            let classes = &through[behaviour.name];
            let is_expected = classes
                .iter()
                .all(|class| behaviour.expected.contains(&class.as_str()));
            let (name, expected) = (behaviour.name, behaviour.expected);
            (!is_expected).then(|| format!("{name}: {classes:?}, expected {expected:?}"))
        })
        .collect()
}

#[test]
fn every_misbehaviour_arrives_as_what_it_is() {
    let all: Vec<&'static Behaviour> = bad::all().collect();

    // Most of the time is spent waiting for time-outs, so groups wait side by side.
    let threads: Vec<_> = all
        .chunks(all.len().div_ceil(12))
        .map(|chunk| {
            let chunk = chunk.to_vec();
            std::thread::spawn(move || differing(&chunk))
        })
        .collect();
    let wrong: Vec<String> = threads
        .into_iter()
        .flat_map(|thread| thread.join().expect("a group ends"))
        .collect();

    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_refused_upstream_resets_the_client_or_answers_502() {
    // The port stays taken, so that no other process listens there.
    let deaf = Origin::start(Config {
        admission: Admission::Refuse,
        ..Config::default()
    })
    .expect("a port");
    let passing = proxy(deaf.port, json!({}));
    let telling = proxy(deaf.port, json!({"failures": "answer"}));

    let reset = passing.client().get("/");
    let answer = telling.client().get("/");

    assert_eq!(reset, Heard::Reset(Vec::new()));
    assert_eq!(answer.status(), 502);
    assert!(answer.head().contains("\r\nLoadlens-Proxy: "), "{answer:?}");
    for front in [passing, telling] {
        let counts = front.counts();
        assert_eq!(
            (counts.failures("refused"), counts.outcome("failed")),
            (1, 1)
        );
        counts.assert_balanced();
    }
}

#[test]
fn a_network_that_cannot_be_reached_gives_the_place_back() {
    // TCP to a group of addresses fails at once, before a connection is under way.
    let front = proxy(
        1,
        json!({"upstreams": ["224.0.0.1:80"], "failures": "answer", "faults": {"admit": {"in_flight": 1}}}),
    );

    let answers: Vec<u16> = (0..3).map(|_| front.client().get("/").status()).collect();

    assert_eq!(answers, [502, 502, 502]);
    assert_eq!(front.counts().failures("connect"), 3);
    front.counts().assert_balanced();
}

#[test]
fn a_service_that_says_nothing_for_too_long_is_given_up() {
    let origin = Origin::start(Config::default()).expect("the origin starts");
    let front = proxy(
        origin.port,
        json!({"failures": "answer", "timeout_ns": 2_000 * MS, "faults": {"admit": {"in_flight": 1}}}),
    );

    let late = front.client().get("/delay/10000");
    let after = front.client().get("/bytes/1");

    assert_eq!((late.status(), after.status()), (504, 200));
    let counts = front.counts();
    assert_eq!(counts.failures("timeout"), 1);
    counts.assert_balanced();
}
