//! Every fault of a plan at once.
//!
//! Here is what the shape of a plan demands; templates, headers, bodies and checks are judged by the compiler in
//! `program`, which reads no file and no environment for it.

use std::collections::HashSet;

use crate::error::Fault;
use crate::http1::request::is_value_byte;
use crate::plan::{
    Connection, Cookies, Plan, Profile, Replay, Reuse, Role, Scenario, Stream, Target, Think,
    Workload, SCHEMA_VERSION,
};
use crate::program;

/// The stream of a sample is one byte in the record.
const MAX_STREAMS: usize = 255;
/// The step of a sample is two bytes in the record.
const MAX_STEPS: usize = 65_535;
const MAX_THREADS: u32 = 1024;
/// Slowest and fastest rate: one in eleven days, and one for each 10 ns.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e8;
/// Parts of a profile.
const MAX_SEGMENTS: usize = 10_000;
/// The shortest mean pace: a user who cannot keep to it leaves so many due times behind.
const MIN_PACE_NS: f64 = 1e6;
/// 292 years: due times are kept as signed nanoseconds.
const MAX_NS: u64 = i64::MAX as u64;

impl Plan {
    /// All faults of this plan; none: it can be compiled, given its files and its environment.
    pub fn validate(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        structure(self, &mut faults);
        program::check(self, &mut faults);
        faults
    }
}

/// The faults of everything but templates, headers, bodies and checks.
pub(crate) fn structure(plan: &Plan, faults: &mut Vec<Fault>) {
    let mut fault = |place: &str, what: String| faults.push(Fault::new(place, what));
    if plan.schema_version != SCHEMA_VERSION {
        fault(
            "schema_version",
            format!(
                "{} is not the version of this engine, {SCHEMA_VERSION}",
                plan.schema_version
            ),
        );
    }
    if plan.share.of == 0 {
        fault("share.of", "0 parts: at least 1".to_owned());
    } else if plan.share.index >= plan.share.of {
        fault(
            "share.index",
            format!(
                "{} is not below share.of, {}",
                plan.share.index, plan.share.of
            ),
        );
    }
    if plan
        .threads
        .is_some_and(|threads| !(1..=MAX_THREADS).contains(&threads))
    {
        fault(
            "threads",
            format!(
                "{} is not from 1 to {MAX_THREADS}",
                plan.threads.unwrap_or_default()
            ),
        );
    }
    if plan.cpus.as_ref().is_some_and(Vec::is_empty) {
        fault(
            "cpus",
            "an empty list: leave it out for no pinning".to_owned(),
        );
    }
    let total = plan
        .warmup_ns
        .checked_add(plan.duration_ns.unwrap_or(0))
        .and_then(|ns| ns.checked_add(plan.drain_ns));
    if total.is_none_or(|ns| ns > MAX_NS) {
        fault(
            "duration_ns",
            "warm-up, duration and drain together are over 292 years".to_owned(),
        );
    }
    if plan
        .record
        .as_ref()
        .is_some_and(|record| record.dir.is_empty())
    {
        fault(
            "record.dir",
            "empty: the folder that the live files go to".to_owned(),
        );
    }
    if plan.streams.is_empty() {
        fault("streams", "none: at least one stream".to_owned());
    }
    if plan.streams.len() > MAX_STREAMS {
        fault(
            "streams",
            format!("{} streams, at most {MAX_STREAMS}", plan.streams.len()),
        );
    }
    names_differ(
        plan.streams.iter().map(|stream| stream.name.as_str()),
        "streams",
        faults,
    );
    if !plan.streams.is_empty() && plan.streams.iter().all(|stream| stream.role == Role::Probe) {
        faults.push(Fault::new(
            "streams",
            "only probes: at least one stream of role load",
        ));
    }
    for (index, stream) in plan.streams.iter().enumerate() {
        let at = format!("streams[{index}]");
        check_stream(stream, &at, faults);
        if plan.duration_ns.is_none() && stream.role == Role::Load && !ends_by_itself(stream) {
            faults.push(Fault::new(
                format!("{at}.workload"),
                "has no end: give the plan a duration_ns, or the workload a number of requests or iterations",
            ));
        }
    }
}

fn ends_by_itself(stream: &Stream) -> bool {
    match &stream.workload {
        Workload::Closed {
            iterations,
            requests,
            profile,
            ..
        } => {
            let leave = profile.as_ref().is_some_and(Profile::ends);
            iterations.is_some() || requests.is_some() || leave
        }
        Workload::Open {
            requests,
            profile,
            replay,
            ..
        } => {
            let ends = profile.as_ref().is_some_and(Profile::ends);
            requests.is_some() || replay.is_some() || ends
        }
    }
}

fn check_stream(stream: &Stream, at: &str, faults: &mut Vec<Fault>) {
    check_target(&stream.target, at, faults);
    check_workload(&stream.workload, at, faults);
    check_connection(&stream.connection, at, faults);
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.{place}"), what));
    if stream.timeout_ns == 0 || stream.timeout_ns > MAX_NS {
        fault(
            "timeout_ns",
            format!("{} is not from 1 ns to 292 years", stream.timeout_ns),
        );
    }
    if stream.cookies == Cookies::Keep && matches!(stream.workload, Workload::Open { .. }) {
        let what = "keep: each arrival of an open stream is somebody new; iteration keeps them as long as it can";
        fault("cookies", what.to_owned());
    }
    if stream.scenarios.is_empty() {
        fault("scenarios", "none: at least one scenario".to_owned());
    }
    let steps: usize = stream
        .scenarios
        .iter()
        .map(|scenario| scenario.steps.len())
        .sum();
    if steps > MAX_STEPS {
        fault(
            "scenarios",
            format!("{steps} steps in all, at most {MAX_STEPS}"),
        );
    }
    let scenarios = format!("{at}.scenarios");
    names_differ(
        stream
            .scenarios
            .iter()
            .map(|scenario| scenario.name.as_str()),
        &scenarios,
        faults,
    );
    let step_names = stream
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.steps.iter().map(|step| step.name.as_str()));
    names_differ(step_names, &format!("{scenarios}[].steps"), faults);
    for (index, scenario) in stream.scenarios.iter().enumerate() {
        check_scenario(scenario, &format!("{scenarios}[{index}]"), faults);
    }
}

fn check_target(target: &Target, at: &str, faults: &mut Vec<Fault>) {
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.target.{place}"), what));
    let host = target.host.escape_debug();
    if target.host.is_empty() {
        fault("host", "empty: a host name or an address".to_owned());
    } else if target.host.starts_with('[') {
        fault(
            "host",
            format!("`{host}` has brackets: write the address without them"),
        );
    } else if target
        .host
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || b"/@?#".contains(&byte))
    {
        fault("host", format!("`{host}` is no host name or address"));
    }
    if target.port == 0 {
        fault("port", "0 is no port: 1 to 65535".to_owned());
    }
    let is_authority = |byte: u8| {
        is_value_byte(byte) && byte.is_ascii() && byte > b' ' && !b"/?#@".contains(&byte)
    };
    if target.authority.is_empty() || !target.authority.bytes().all(is_authority) {
        let authority = target.authority.escape_debug();
        fault(
            "authority",
            format!("`{authority}` is no value of a Host header: host or host:port"),
        );
    }
}

fn check_workload(workload: &Workload, at: &str, faults: &mut Vec<Fault>) {
    let at = format!("{at}.workload");
    let requests = match workload {
        Workload::Closed { requests, .. } => {
            check_closed(workload, &at, faults);
            requests
        }
        Workload::Open { requests, .. } => {
            check_open(workload, &at, faults);
            requests
        }
    };
    if *requests == Some(0) {
        faults.push(Fault::new(
            format!("{at}.requests"),
            "0: at least 1, or leave it out",
        ));
    }
}

fn check_closed(workload: &Workload, at: &str, faults: &mut Vec<Fault>) {
    let Workload::Closed {
        users,
        think,
        pace,
        ramp_ns,
        profile,
        iterations,
        ..
    } = workload
    else {
        return;
    };
    if let Some(profile) = profile {
        check_profile(profile, f64::from(*users), &format!("{at}.profile"), faults);
    }
    check_think(think, &format!("{at}.think"), faults);
    if let Some(pace) = pace {
        check_pace(pace, &format!("{at}.pace"), faults);
    }
    let mut fault =
        |place: &str, what: &str| faults.push(Fault::new(format!("{at}.{place}"), what));
    if *users == 0 {
        fault("users", "0: at least 1");
    }
    if *iterations == Some(0) {
        fault("iterations", "0: at least 1, or leave it out");
    }
    if *ramp_ns > MAX_NS {
        fault("ramp_ns", "over 292 years");
    }
    if profile.is_some() && *ramp_ns > 0 {
        fault(
            "ramp_ns",
            "a ramp and a profile: the profile says when users come",
        );
    }
    if pace.is_some() && *think != Think::None {
        fault(
            "pace",
            "a pace and a think time: one of them says when the next iteration is due",
        );
    }
}

fn check_open(workload: &Workload, at: &str, faults: &mut Vec<Fault>) {
    let Workload::Open {
        rate_per_s,
        profile,
        replay,
        max_in_flight,
        arrivals,
        ..
    } = workload
    else {
        return;
    };
    if let Some(profile) = profile {
        let at = format!("{at}.profile");
        check_profile(profile, *RATES.end(), &at, faults);
        if (f64::MIN_POSITIVE..*RATES.start()).contains(&profile.peak()) {
            let what = format!("never above {:e} per second", RATES.start());
            faults.push(Fault::new(at, what));
        }
    }
    if let Some(replay) = replay {
        check_replay(replay, &format!("{at}.replay"), faults);
    }
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.{place}"), what));
    let given = [rate_per_s.is_some(), profile.is_some(), replay.is_some()];
    if given.iter().filter(|is_given| **is_given).count() != 1 {
        fault(
            "rate_per_s",
            "an open workload has one of rate_per_s, profile and replay".to_owned(),
        );
    }
    if let Some(rate) = rate_per_s.filter(|rate| !RATES.contains(rate)) {
        let (slowest, fastest) = (RATES.start(), RATES.end());
        fault(
            "rate_per_s",
            format!("{rate} is not from {slowest:e} to {fastest:e} per second"),
        );
    }
    if replay.is_some() && *arrivals != Default::default() {
        fault(
            "arrivals",
            "a replay has no law: its due times are in the file".to_owned(),
        );
    }
    if *max_in_flight == 0 {
        fault("max_in_flight", "0: at least 1".to_owned());
    }
}

fn check_profile(profile: &Profile, highest: f64, at: &str, faults: &mut Vec<Fault>) {
    let mut fault = |place: String, what: String| faults.push(Fault::new(place, what));
    if profile.segments.is_empty() || profile.segments.len() > MAX_SEGMENTS {
        let count = profile.segments.len();
        fault(
            format!("{at}.segments"),
            format!("{count} segments: from 1 to {MAX_SEGMENTS}"),
        );
    }
    for (index, segment) in profile.segments.iter().enumerate() {
        if segment.ns == 0 {
            fault(
                format!("{at}.segments[{index}].ns"),
                "0: above 0".to_owned(),
            );
        }
        for (end, level) in [("start", segment.start), ("end", segment.end)] {
            if !(0.0..=highest).contains(&level) {
                fault(
                    format!("{at}.segments[{index}].{end}"),
                    format!("{level} is not from 0 to {highest}"),
                );
            }
        }
    }
    let total = profile
        .segments
        .iter()
        .try_fold(0u64, |total, segment| total.checked_add(segment.ns));
    if total.is_none_or(|ns| ns > MAX_NS) {
        fault(format!("{at}.segments"), "over 292 years".to_owned());
    }
    if !profile.segments.is_empty() && profile.peak() <= 0.0 {
        fault(format!("{at}.segments"), "nothing is ever asked".to_owned());
    }
}

fn check_replay(replay: &Replay, at: &str, faults: &mut Vec<Fault>) {
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.{place}"), what));
    if !(replay.speed.is_finite() && replay.speed > 0.0) {
        fault("speed", format!("{} is not above 0", replay.speed));
    }
    if replay.arrivals == 0 {
        fault("arrivals", "0: at least one due time".to_owned());
    }
    if !(replay.peak_per_s >= 0.0 && replay.peak_per_s.is_finite()) {
        let what = format!("{} is no number of arrivals", replay.peak_per_s);
        fault("peak_per_s", what);
    }
}

fn check_pace(pace: &Think, at: &str, faults: &mut Vec<Fault>) {
    check_think(pace, at, faults);
    if pace.mean_ns() < MIN_PACE_NS {
        let what = "the mean pace is below 1 ms: for as fast as possible, no pace";
        faults.push(Fault::new(at, what));
    }
}

fn check_connection(connection: &Connection, at: &str, faults: &mut Vec<Fault>) {
    if connection.reuse == (Reuse::Requests { requests: 0 }) {
        faults.push(Fault::new(
            format!("{at}.connection.reuse.requests"),
            "0: at least 1",
        ));
    }
    if connection.pool == Some(0) {
        faults.push(Fault::new(
            format!("{at}.connection.pool"),
            "0: at least 1, or leave it out",
        ));
    }
}

fn check_scenario(scenario: &Scenario, at: &str, faults: &mut Vec<Fault>) {
    if !(scenario.weight.is_finite() && scenario.weight > 0.0) {
        faults.push(Fault::new(
            format!("{at}.weight"),
            format!("{} is not above 0", scenario.weight),
        ));
    }
    if scenario.steps.is_empty() {
        faults.push(Fault::new(format!("{at}.steps"), "none: at least one step"));
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        for (position, status) in step.expect.iter().enumerate() {
            if !(200..=599).contains(status) {
                let what = format!("{status} is no final status: 200 to 599");
                faults.push(Fault::new(
                    format!("{at}.steps[{index}].expect[{position}]"),
                    what,
                ));
            }
        }
        check_think(&step.think, &format!("{at}.steps[{index}].think"), faults);
    }
}

fn check_think(think: &Think, at: &str, faults: &mut Vec<Fault>) {
    let longest = match *think {
        Think::None => 0,
        Think::Fixed { ns } => ns,
        Think::Exponential { mean_ns } => mean_ns,
        Think::Uniform { low_ns, high_ns } => {
            if low_ns > high_ns {
                faults.push(Fault::new(
                    at,
                    format!("low_ns {low_ns} is above high_ns {high_ns}"),
                ));
            }
            high_ns
        }
    };
    if longest > MAX_NS {
        faults.push(Fault::new(at, "over 292 years"));
    }
}

/// Names are neither empty nor used twice.
fn names_differ<'a>(names: impl Iterator<Item = &'a str>, at: &str, faults: &mut Vec<Fault>) {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            faults.push(Fault::new(at, "an empty name"));
        } else if !seen.insert(name) {
            faults.push(Fault::new(
                at,
                format!("two are named `{}`", name.escape_debug()),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    fn good() -> Value {
        json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1_000_000_000,
            "streams": [{
                "name": "load", "role": "load", "timeout_ns": 1_000_000_000,
                "target": {"host": "127.0.0.1", "port": 8080, "authority": "127.0.0.1:8080"},
                "workload": {"kind": "closed", "users": 1},
                "scenarios": [{"name": "s", "weight": 1.0, "steps": [{"name": "a", "method": "GET", "path": "/"}]}],
            }],
        })
    }

    fn faults(plan: Value) -> Vec<Fault> {
        serde_json::from_value::<Plan>(plan).unwrap().validate()
    }

    #[test]
    fn a_good_plan_has_no_fault() {
        assert_eq!(faults(good()), []);
    }

    #[test]
    fn each_bad_value_is_one_fault_at_its_place() {
        let stream = "/streams/0";
        let open = |rate: f64| json!({"kind": "open", "rate_per_s": rate, "arrivals": "poisson", "max_in_flight": 1, "overflow": "queue"});
        let shaped = |segments: Value| json!({"kind": "open", "profile": {"segments": segments}, "max_in_flight": 1, "overflow": "queue"});
        for (pointer, value, place) in [
            ("/schema_version".to_owned(), json!(2), "schema_version"),
            (
                "/share".to_owned(),
                json!({"index": 2, "of": 2}),
                "share.index",
            ),
            (
                "/share".to_owned(),
                json!({"index": 0, "of": 0}),
                "share.of",
            ),
            ("/threads".to_owned(), json!(0), "threads"),
            ("/cpus".to_owned(), json!([]), "cpus"),
            ("/warmup_ns".to_owned(), json!(u64::MAX), "duration_ns"),
            ("/record".to_owned(), json!({"dir": ""}), "record.dir"),
            ("/streams".to_owned(), json!([]), "streams"),
            (
                "/duration_ns".to_owned(),
                json!(null),
                "streams[0].workload",
            ),
            (format!("{stream}/name"), json!(""), "streams"),
            (format!("{stream}/role"), json!("probe"), "streams"),
            (
                format!("{stream}/timeout_ns"),
                json!(0),
                "streams[0].timeout_ns",
            ),
            (
                format!("{stream}/target/host"),
                json!(""),
                "streams[0].target.host",
            ),
            (
                format!("{stream}/target/host"),
                json!("[::1]"),
                "streams[0].target.host",
            ),
            (
                format!("{stream}/target/host"),
                json!("a b"),
                "streams[0].target.host",
            ),
            (
                format!("{stream}/target/port"),
                json!(0),
                "streams[0].target.port",
            ),
            (
                format!("{stream}/target/authority"),
                json!(""),
                "streams[0].target.authority",
            ),
            (
                format!("{stream}/target/authority"),
                json!("a\r\nX: y"),
                "streams[0].target.authority",
            ),
            (
                format!("{stream}/workload/users"),
                json!(0),
                "streams[0].workload.users",
            ),
            (
                format!("{stream}/workload/iterations"),
                json!(0),
                "streams[0].workload.iterations",
            ),
            (
                format!("{stream}/workload/requests"),
                json!(0),
                "streams[0].workload.requests",
            ),
            (
                format!("{stream}/workload/think"),
                json!({"kind": "uniform", "low_ns": 2, "high_ns": 1}),
                "streams[0].workload.think",
            ),
            (
                format!("{stream}/workload"),
                open(0.0),
                "streams[0].workload.rate_per_s",
            ),
            (
                format!("{stream}/workload"),
                open(-1.0),
                "streams[0].workload.rate_per_s",
            ),
            (
                format!("{stream}/workload"),
                open(1e9),
                "streams[0].workload.rate_per_s",
            ),
            (
                format!("{stream}/workload"),
                json!({"kind": "open", "max_in_flight": 1, "overflow": "queue"}),
                "streams[0].workload.rate_per_s",
            ),
            (
                format!("{stream}/workload"),
                shaped(json!([{"ns": 0, "start": 1.0, "end": 1.0}])),
                "streams[0].workload.profile.segments[0].ns",
            ),
            (
                format!("{stream}/workload"),
                shaped(json!([{"ns": 1, "start": 1.0, "end": -1.0}])),
                "streams[0].workload.profile.segments[0].end",
            ),
            (
                format!("{stream}/workload"),
                shaped(json!([{"ns": 1, "start": 0.0, "end": 0.0}])),
                "streams[0].workload.profile.segments",
            ),
            (
                format!("{stream}/workload"),
                shaped(json!([])),
                "streams[0].workload.profile.segments",
            ),
            (
                format!("{stream}/workload/profile"),
                json!({"segments": [{"ns": 1, "start": 1.0, "end": 1.5}]}),
                "streams[0].workload.profile.segments[0].end", // of 1 user
            ),
            (
                format!("{stream}/workload/pace"),
                json!({"kind": "fixed", "ns": 999_999}),
                "streams[0].workload.pace",
            ),
            (
                format!("{stream}/connection"),
                json!({"pool": 0}),
                "streams[0].connection.pool",
            ),
            (
                format!("{stream}/connection"),
                json!({"reuse": {"kind": "requests", "requests": 0}}),
                "streams[0].connection.reuse.requests",
            ),
            (
                format!("{stream}/scenarios"),
                json!([]),
                "streams[0].scenarios",
            ),
            (
                format!("{stream}/scenarios/0/weight"),
                json!(0.0),
                "streams[0].scenarios[0].weight",
            ),
            (
                format!("{stream}/scenarios/0/steps"),
                json!([]),
                "streams[0].scenarios[0].steps",
            ),
            (
                format!("{stream}/scenarios/0/steps/0/expect"),
                json!([200, 100]),
                "streams[0].scenarios[0].steps[0].expect[1]",
            ),
        ] {
            let mut plan = good();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            plan.pointer_mut(parent).unwrap()[key] = value;

            let found = faults(plan);

            assert_eq!(
                found
                    .iter()
                    .map(|fault| fault.where_.as_str())
                    .collect::<Vec<_>>(),
                [place],
                "{pointer}"
            );
        }
    }

    #[test]
    fn a_name_used_twice_is_a_fault() {
        let mut plan = good();
        let stream = plan["streams"][0].clone();
        plan["streams"].as_array_mut().unwrap().push(stream);

        assert_eq!(
            faults(plan),
            [Fault::new("streams", "two are named `load`")]
        );
    }

    #[test]
    fn a_load_that_falls_to_nothing_needs_no_duration() {
        let ending = json!([{"ns": 5, "start": 1.0, "end": 0.0}]);
        let mut plan = good();
        plan["duration_ns"] = Value::Null;

        plan["streams"][0]["workload"]["profile"] = json!({"segments": ending});
        assert_eq!(faults(plan.clone()), []);

        plan["streams"][0]["workload"]["profile"]["repeats"] = json!(true);
        assert_eq!(faults(plan).len(), 1);
    }

    #[test]
    fn two_answers_to_one_question_are_a_fault() {
        let mut plan = good();
        let workload = &mut plan["streams"][0]["workload"];
        workload["pace"] = json!({"kind": "fixed", "ns": 1_000_000});
        workload["think"] = json!({"kind": "fixed", "ns": 1});
        workload["ramp_ns"] = json!(1);
        workload["profile"] = json!({"segments": [{"ns": 5, "start": 1.0, "end": 1.0}]});

        let places: Vec<String> = faults(plan).into_iter().map(|fault| fault.where_).collect();

        assert_eq!(
            places,
            ["streams[0].workload.ramp_ns", "streams[0].workload.pace"]
        );
    }

    #[test]
    fn a_load_that_counts_its_requests_needs_no_duration() {
        let mut plan = good();
        plan["duration_ns"] = Value::Null;
        plan["streams"][0]["workload"]["requests"] = json!(10);

        assert_eq!(faults(plan), []);
    }
}
