//! Plans with one thing wrong, and what is said of it.

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
#[expect(clippy::too_many_lines, reason = "a table of faults")]
fn each_bad_value_is_one_fault_at_its_place() {
    let stream = "/streams/0";
    let open = |rate: f64| json!({"kind": "open", "rate_per_s": rate, "arrivals": "poisson", "max_in_flight": 1, "overflow": "queue"});
    let shaped = |segments: Value| json!({"kind": "open", "profile": {"segments": segments}, "max_in_flight": 1, "overflow": "queue"});
    for (pointer, value, place) in [
        ("/schema_version".to_owned(), json!(2), "schema_version"),
        (
            "/share".to_owned(),
            json!({"from": 2, "to": 2, "of": 2}),
            "share.from",
        ),
        (
            "/share".to_owned(),
            json!({"from": 1, "to": 3, "of": 2}),
            "share.to",
        ),
        (
            "/share".to_owned(),
            json!({"from": 0, "to": 0, "of": 0}),
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

        let faults = faults(plan);

        assert_eq!(
            faults
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

#[test]
fn a_load_that_uses_up_a_feed_needs_no_duration() {
    let with = |feed: Value, path: &str| {
        let mut plan = good();
        plan["duration_ns"] = Value::Null;
        plan["feeds"] = json!([feed]);
        plan["streams"][0]["scenarios"][0]["steps"][0]["path"] = json!(path);
        faults(plan)
    };
    let feed = |pick: &str, end: &str| json!({"name": "ids", "path": "ids.csv", "digest": "", "format": "csv", "pick": pick, "end": end});

    assert_eq!(with(feed("unique", "loop"), "/{{ids.id}}"), []);
    assert_eq!(with(feed("shared", "stop"), "/{{ids.id}}"), []);
    for (feed, path) in [
        (feed("shared", "loop"), "/{{ids.id}}"),
        (feed("unique", "stop"), "/"),
    ] {
        let places: Vec<String> = with(feed, path)
            .into_iter()
            .map(|fault| fault.where_)
            .collect();
        assert_eq!(places, ["streams[0].workload"]);
    }
}
