//! Every behaviour of the catalogue: the right outcome, in time, and in agreement with the server's counts.

use std::time::Duration;

use loadlens_origin::bad::{self, Behaviour, Reuse};
use loadlens_origin::tls::TlsConfig;
use loadlens_origin::{Config, Counts};
use serde_json::{json, Value};

use crate::harness::{
    origin, plan, run, settled_after, shared, stream, Lateness, Run, Stream, Witness, LIMIT, MS,
};
use crate::secured;

/// Time-out where one is expected, or may come.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Time-out where none may come, however busy this machine is.
const PATIENCE: Duration = Duration::from_secs(5);
/// Behaviours in one run, each a stream of its own.
const TOGETHER: usize = 60;

/// Failures in which the server may never have read the request: it was gone when the request came.
const PERHAPS_UNREAD: [&str; 3] = ["reset", "closed_on_reuse", "closed_before_response"];

fn path(behaviour: &Behaviour) -> String {
    format!("/bad/{}", behaviour.name)
}

/// Few requests where each of them takes long.
fn requests(behaviour: &Behaviour) -> u64 {
    if behaviour.expected.contains(&"timeout") || behaviour.pause_ms > 0 {
        4
    } else {
        24
    }
}

fn stream_of(behaviour: &Behaviour, port: u16, requests: Option<u64>) -> Value {
    let mut stream = stream(behaviour.name, port, &path(behaviour));
    stream["scenarios"][0]["steps"][0]["method"] = json!(behaviour.method);
    if behaviour.body_bytes > 0 {
        let text = "y".repeat(behaviour.body_bytes);
        stream["scenarios"][0]["steps"][0]["body"] = json!({"kind": "text", "text": text});
    }
    let may_time_out = behaviour.expected.contains(&"timeout");
    let timeout = if may_time_out { TIMEOUT } else { PATIENCE };
    stream["timeout_ns"] = json!(timeout.as_nanos() as u64);
    stream["workload"] = json!({
        "kind": "closed", "users": 2, "requests": requests,
        "think": {"kind": "fixed", "ns": behaviour.pause_ms * MS},
    });
    stream
}

/// Behaviours that run together, and their server.
type Group = (Vec<&'static Behaviour>, Config);

/// All behaviours in groups.
fn groups() -> Vec<Group> {
    groups_of(TOGETHER, &Config::default())
}

fn groups_of(together: usize, config: &Config) -> Vec<Group> {
    // Bytes sent between requests must not be late, so these behaviours run apart from those that keep the server busy.
    let (paused, busy): (Vec<&Behaviour>, Vec<&Behaviour>) =
        bad::all().partition(|one| one.pause_ms > 0);
    let groups = busy.chunks(together).map(<[_]>::to_vec).chain([paused]);
    groups.map(|group| (group, config.clone())).collect()
}

/// Groups without behaviours that send bytes in a pause. If other users share a connection while its user pauses, such
/// bytes look like an answer to them, and no client can distinguish the two.
fn groups_without_pauses() -> Vec<Group> {
    let mut groups = groups();
    groups.pop();
    groups
}

/// Faults of one run. `was_away` is true if the machine stalled for so long that bytes due in a pause of the users may
/// have come after the pause, in the place of an answer.
struct Judged {
    faults: Vec<String>,
    was_away: bool,
}

/// True if the server, the engine or the witness was later than half the time between such an act and the next request.
fn was_away(done: &Run, counts: &Counts, late: Lateness) -> bool {
    const HALF: Duration = Duration::from_millis(75);
    let is_starved = done.result["generator"]["verdict"] == "starved";
    is_starved || Duration::from_nanos(counts.late_ns) > HALF || late.max_s > HALF.as_secs_f64()
}

/// Runs a group, once more where it has pauses and the machine was away: faults then say nothing.
fn judge(group: &[&Behaviour], mut run_once: impl FnMut() -> Judged) -> Vec<String> {
    let has_pauses = group.iter().any(|one| one.pause_ms > 0);
    for _ in 0..5 {
        let judged = run_once();
        if judged.faults.is_empty() || !(has_pauses && judged.was_away) {
            return judged.faults;
        }
    }
    run_once().faults
}

/// Errors in the engine's account of one behaviour.
///
/// `at_once`: connections that the stream may have open at once.
fn faults_of(
    behaviour: &Behaviour,
    stream: Stream<'_>,
    counts: &Counts,
    at_once: u64,
) -> Vec<String> {
    let tally = counts.path(&path(behaviour));
    let outcomes = stream.outcomes();
    let mut faults = Vec::new();
    let mut demand = |holds: bool, what: String| {
        if !holds {
            faults.push(format!(
                "{}: {what}; outcomes {outcomes:?}; counts {tally:?}",
                behaviour.name
            ));
        }
    };
    for (outcome, _) in &outcomes {
        demand(
            behaviour.expected.contains(&outcome.as_str()),
            format!("{outcome} is not {:?}", behaviour.expected),
        );
    }
    let issued = stream.requests("issued");
    let unread: u64 = PERHAPS_UNREAD
        .iter()
        .map(|class| stream.errors(class))
        .sum();
    demand(
        tally.received <= issued
            && issued <= tally.received + unread + stream.requests("in_flight"),
        format!("{issued} were issued"),
    );
    if behaviour.expected == ["ok"] || behaviour.expected == ["unexpected_status"] {
        let in_flight = stream.requests("in_flight");
        let answered = stream.requests("answered");
        demand(
            answered <= tally.answered && tally.answered <= answered + in_flight,
            format!("{answered} were counted as answered"),
        );
    }
    demand(
        tally.violations == 0,
        format!("broke a rule of HTTP: {:?}", counts.violation_samples),
    );
    match behaviour.reuse {
        Reuse::Kept => demand(
            tally.connections <= at_once,
            "connections were not kept".to_owned(),
        ),
        Reuse::Fresh => demand(
            tally.connections == tally.received,
            "a connection was used again".to_owned(),
        ),
        Reuse::Either => {}
    }
    faults
}

fn check(group: &[&Behaviour], done: &Run, counts: &Counts, at_once: u64) -> Vec<String> {
    let sum = |count: fn(Stream<'_>) -> u64| done.streams().map(count).sum::<u64>();
    let opened = sum(|stream| stream.connections("opened"));
    let stood = sum(|stream| stream.stood());
    let is_cut = sum(|stream| stream.requests("in_flight")) > 0;
    let mut faults = Vec::new();
    if counts.pipelined > 0 {
        faults.push(format!(
            "{} requests came before the answer to the one before",
            counts.pipelined
        ));
    }
    // One that the end of the run met before its handshake was over came to the server or did not.
    let certain = if is_cut { stood } else { opened };
    if !(certain..=opened).contains(&counts.connections.accepted) {
        faults.push(format!(
            "{opened} connections opened, {stood} stood, {} accepted",
            counts.connections.accepted
        ));
    }
    for behaviour in group {
        let stream = done.stream(behaviour.name);
        stream.check_law();
        faults.extend(faults_of(behaviour, stream, counts, at_once));
    }
    faults
}

fn check_none(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn every_misbehaviour_is_recorded_as_what_it_is() {
    let _machine = shared();

    check_none(&recorded(groups(), |_| {}));
}

#[test]
fn every_misbehaviour_over_tls_is_recorded_as_what_it_is() {
    let _machine = shared();
    // Fewer at once, and more time: each stream of two users makes two handshakes.
    let groups = groups_of(15, &secured::with(TlsConfig::default()));

    check_none(&recorded(groups, secure));
}

#[test]
fn an_answer_counts_while_the_bytes_behind_it_are_still_on_their_way() {
    let _machine = shared();
    // Byte by byte, the client goes away after the first of several records.
    let dribbling = secured::with(TlsConfig {
        dribbles: true,
        ..TlsConfig::default()
    });
    let group = vec![bad::find("extra_64k").expect("in the catalogue")];

    check_none(&recorded(vec![(group, dribbling)], secure));
}

fn secure(stream: &mut Value) {
    stream["target"]["tls"] = json!({"insecure": true});
    let timeout_ns = stream["timeout_ns"].as_u64().expect("a time");
    stream["timeout_ns"] = json!(timeout_ns * 2);
}

/// A plan of a group of behaviours, each a changed stream; without `requests` they go on for a time.
fn plan_of(
    group: &[&Behaviour],
    port: u16,
    requests: impl Fn(&Behaviour) -> Option<u64>,
    change: impl Fn(&mut Value),
) -> Value {
    let streams = group.iter().copied().map(|one| {
        let mut stream = stream_of(one, port, requests(one));
        change(&mut stream);
        stream
    });
    plan(streams.collect())
}

/// Runs groups of behaviours to their end under a changed plan, and gives what is wrong.
fn recorded(groups: Vec<Group>, change: impl Fn(&mut Value)) -> Vec<String> {
    let mut faults = Vec::new();
    for (group, config) in groups {
        faults.extend(judge(&group, || {
            let origin = origin(config.clone());
            let plan = plan_of(&group, origin.port, |one| Some(requests(one)), &change);
            let witness = Witness::begin();
            let done = run(&plan, LIMIT);
            let late = witness.end();
            let counts = settled_after(&origin, &done);

            let mut faults = check(&group, &done, &counts, 2);
            for behaviour in &group {
                let of_it = done.stream(behaviour.name);
                let is_done = of_it.requests("in_flight") == 0;
                if of_it.requests("due") != requests(behaviour) || !is_done {
                    faults.push(format!(
                        "{}: not all requests were done: {}",
                        behaviour.name, of_it.0["requests"]
                    ));
                }
            }
            let was_away = was_away(&done, &counts, late);
            Judged { faults, was_away }
        }));
    }
    faults
}

/// Runs groups of behaviours for a time under a changed plan, and gives what is wrong.
fn timed(
    groups: Vec<Group>,
    threads: u32,
    at_once: u64,
    change: impl Fn(&mut Value),
) -> Vec<String> {
    let duration = Duration::from_millis(700);
    let mut faults = Vec::new();
    for (group, config) in groups {
        faults.extend(judge(&group, || {
            let origin = origin(config.clone());
            let mut plan = plan_of(&group, origin.port, |_| None, &change);
            plan["threads"] = json!(threads);
            plan["duration_ns"] = json!(duration.as_nanos() as u64);
            let witness = Witness::begin();
            let done = run(&plan, LIMIT);
            let late = witness.end();
            let counts = settled_after(&origin, &done);

            let mut faults = check(&group, &done, &counts, at_once);
            // B3: duration, time-out and a second, on a machine that lets us run.
            let elapsed_s = done.result["elapsed_s"].as_f64().expect("elapsed_s");
            let limit_s = (duration + TIMEOUT).as_secs_f64() + 1.0 + 2.0 * late.max_s;
            if elapsed_s > limit_s {
                faults.push(format!("ended after {elapsed_s} s, not {limit_s}"));
            }
            let was_away = was_away(&done, &counts, late);
            Judged { faults, was_away }
        }));
    }
    faults
}

#[test]
fn a_run_ends_on_time_whatever_the_server_does() {
    let _machine = shared();

    check_none(&timed(groups(), 1, 2, |_| {}));
}

#[test]
fn users_who_wait_for_a_pooled_connection_are_not_lost_when_it_misbehaves() {
    let _machine = shared();

    let faults = timed(groups_without_pauses(), 2, 2, |stream| {
        stream["workload"]["users"] = json!(6);
        stream["connection"] = json!({"reuse": {"kind": "keep"}, "pool": 2});
    });

    check_none(&faults);
}

#[test]
fn arrivals_go_on_and_are_accounted_for_whatever_the_server_does() {
    let _machine = shared();

    let faults = timed(groups_without_pauses(), 1, 6, |stream| {
        stream["workload"] = json!({
            "kind": "open", "rate_per_s": 30.0, "arrivals": "poisson", "max_in_flight": 6, "overflow": "drop",
        });
    });

    check_none(&faults);
}

#[test]
fn each_request_of_a_single_user_has_the_outcome_that_its_position_demands() {
    let _machine = shared();
    let origin = origin(Config::default());
    let two = |name: &str, patience: Duration| {
        let mut stream = stream(name, origin.port, &format!("/bad/{name}"));
        stream["workload"] = json!({"kind": "closed", "users": 1, "requests": 4});
        stream["timeout_ns"] = json!(patience.as_nanos() as u64);
        stream
    };

    // An answer, then none: four requests are two pairs. A server that is away for a second is no silent one.
    let done = run(
        &plan(vec![
            two("stall_second", 2 * TIMEOUT),
            two("close_first_answers_second", PATIENCE),
        ]),
        LIMIT,
    );

    let expected = |class: &str| vec![("ok".to_owned(), 2), (class.to_owned(), 2)];
    assert_eq!(done.stream("stall_second").outcomes(), expected("timeout"));
    assert_eq!(
        done.stream("close_first_answers_second").outcomes(),
        expected("closed_on_reuse")
    );
}
