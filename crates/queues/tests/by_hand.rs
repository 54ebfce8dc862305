//! Short simulations that were counted by hand, and what must hold of every one: same seed, same outcome; bounds.

use loadlens_queues::{simulate, simulate_json, Model, Outcome};
use serde_json::{json, Value};

fn run(model: &Value) -> Outcome {
    let model: Model = serde_json::from_value(model.clone()).expect("a model");
    simulate(&model).expect("no faults")
}

fn closed(users: u32, seconds: f64, stations: Value, route: Value) -> Value {
    json!({"schema_version": 1, "seed": 1, "warmup_s": 0, "duration_s": seconds, "stations": stations,
        "classes": [{"name": "a", "route": route}],
        "streams": [{"name": "load", "load": {"kind": "closed", "users": users},
            "scenarios": [{"weight": 1, "steps": [{"class": "a"}]}]}]})
}

fn loaded(work: Value) -> Value {
    json!({"schema_version": 1, "seed": 7, "warmup_s": 1, "duration_s": 50,
        "stations": [{"name": "s", "discipline": "ps", "capacity": 1.5}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": work}]}],
        "streams": [{"name": "load", "load": {"kind": "open", "rate_per_s": 10, "arrivals": "poisson"},
            "scenarios": [{"weight": 1, "steps": [{"class": "a"}]}]}]})
}

#[test]
fn three_users_at_one_server() {
    // Done at 1, 2, 3, ... 10; the first three wait 1, 2 and 3, and from then on everyone waits for two others.
    let model = closed(
        3,
        10.5,
        json!([{"name": "s", "discipline": "fifo", "capacity": 1}]),
        json!([{"do": "serve", "station": "s", "work": {"kind": "fixed", "s": 1}}]),
    );

    let outcome = run(&model);

    let all = &outcome.streams[0].all;
    assert_eq!(
        (all.count, all.max_s, all.p50_s),
        (10, Some(3.0), Some(3.0))
    );
    assert!((all.mean_s.unwrap() - 2.7).abs() < 1e-9);
    assert!((outcome.stations[0].used - 1.0).abs() < 1e-9);
    assert!((outcome.stations[0].waiting - 2.0).abs() < 1e-9);
    assert_eq!(outcome.events, 3 + 1 + 10 + 10); // first issues, the count's beginning, services, issues again
}

#[test]
fn three_users_at_two_servers() {
    // Services end at 1, 1, 2, 2, ...: two a second; who comes third waits one second, then it goes round.
    let model = closed(
        3,
        10.5,
        json!([{"name": "s", "discipline": "fifo", "capacity": 2}]),
        json!([{"do": "serve", "station": "s", "work": {"kind": "fixed", "s": 1}}]),
    );

    let all = run(&model).streams.remove(0).all;

    assert_eq!((all.count, all.max_s), (20, Some(2.0)));
    // In every second two are served: one who was waiting (2 s) and one who came back (1 s), but for the first two.
    assert!((all.mean_s.unwrap() - (1.0 + 1.0 + 9.0 * 3.0) / 20.0).abs() < 1e-9);
}

#[test]
fn two_users_share_a_core() {
    // Each gets half of it: both are done at 2, 4, 6, 8, 10.
    let model = closed(
        2,
        10.5,
        json!([{"name": "s", "discipline": "ps", "capacity": 1}]),
        json!([{"do": "serve", "station": "s", "work": {"kind": "fixed", "s": 1}}]),
    );

    let all = run(&model).streams.remove(0).all;

    assert_eq!(all.count, 10);
    assert!((all.mean_s.unwrap() - 2.0).abs() < 1e-9 && (all.max_s.unwrap() - 2.0).abs() < 1e-9);
}

#[test]
fn a_share_of_a_core_takes_so_much_longer() {
    // 0.07 s of work with 0.3 of a core: 0.2333 s.
    let model = closed(
        1,
        10.0,
        json!([{"name": "s", "discipline": "ps", "capacity": 0.3}]),
        json!([{"do": "serve", "station": "s", "work": {"kind": "fixed", "s": 0.07}}]),
    );

    let all = run(&model).streams.remove(0).all;

    assert!((all.mean_s.unwrap() - 0.07 / 0.3).abs() < 1e-9);
    assert_eq!(all.count, 42);
}

#[test]
fn a_handler_that_crosses_the_loop_twice_waits_twice() {
    // One loop, two passes of 1 s, two users. The loop goes to them in turn: the first is done at 3 (due 0), the
    // second at 4, and then each 4 s after it was due: 7, 8, 11, 12.
    let pass = [
        json!({"do": "acquire", "station": "loop"}),
        json!({"do": "serve", "station": "cpu", "work": {"kind": "fixed", "s": 1}}),
        json!({"do": "release", "station": "loop"}),
    ];
    let model = closed(
        2,
        12.5,
        json!([{"name": "loop", "discipline": "semaphore", "capacity": 1},
            {"name": "cpu", "discipline": "ps", "capacity": 4}]),
        Value::from([pass.clone(), pass].concat()),
    );

    let all = run(&model).streams.remove(0).all;

    assert_eq!((all.count, all.max_s), (6, Some(4.0)));
    assert!((all.mean_s.unwrap() - 23.0 / 6.0).abs() < 1e-9);
}

#[test]
fn workers_in_turn_have_a_loop_each() {
    // Two workers, three users, round robin, 1 s of work: the third user waits for the first.
    let mut model = closed(
        3,
        1.5,
        json!([{"name": "s", "discipline": "fifo", "capacity": 1, "each": "w"}]),
        json!([{"do": "choose", "group": "w"},
            {"do": "serve", "station": "s", "work": {"kind": "fixed", "s": 1}}]),
    );
    model["groups"] = json!([{"name": "w", "size": 2, "policy": "round_robin"}]);

    let outcome = run(&model);

    assert_eq!(outcome.streams[0].all.count, 2);
    assert_eq!(outcome.stations.len(), 2);
    assert!(outcome.stations.iter().all(|s| (s.used - 1.0).abs() < 1e-9));
}

#[test]
fn the_same_seed_gives_the_same_outcome_and_another_another() {
    let model = loaded(json!({"kind": "lognormal", "mean_s": 0.1, "cv": 2}));
    let mut other = model.clone();
    other["seed"] = json!(8);

    assert_eq!(run(&model), run(&model));
    assert_ne!(run(&model), run(&other));
}

#[test]
fn a_simulation_ends_at_its_bound_of_events_and_says_so() {
    let mut model = loaded(json!({"kind": "fixed", "s": 0.05}));
    model["most_events"] = json!(300);

    let outcome = run(&model);

    assert_eq!((outcome.status.as_str(), outcome.events), ("cut", 300));
    assert!(outcome.reason.contains("bound of events"));
    assert!(outcome.counted_s < 50.0);
}

#[test]
fn requests_without_any_time_do_not_go_on_for_ever() {
    let mut model = closed(2, 1.0, json!([]), json!([]));
    model["most_events"] = json!(10_000);

    assert_eq!(run(&model).status, "cut");
}

#[test]
fn an_overload_is_simulated_and_not_hidden() {
    // 10/s of 1 s of work on one core: one a second is answered.
    let mut model = loaded(json!({"kind": "fixed", "s": 1}));
    model["stations"] = json!([{"name": "s", "discipline": "fifo", "capacity": 1}]);

    let outcome = run(&model);

    assert_eq!(outcome.status, "complete");
    assert!((outcome.streams[0].all.rate_per_s - 1.0).abs() < 0.05);
    assert!(outcome.stations[0].waiting > 100.0);
}

#[test]
fn every_fault_of_a_model_is_named_at_once() {
    let model = json!({"schema_version": 1, "seed": 1, "warmup_s": -1, "duration_s": 0,
        "groups": [{"name": "w", "size": 0, "policy": "random"}],
        "stations": [{"name": "s", "discipline": "fifo", "capacity": 0.5, "each": "w"},
            {"name": "m", "discipline": "semaphore", "capacity": 1}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": {"kind": "fixed", "s": -1}},
            {"do": "acquire", "station": "m"}, {"do": "release", "station": "x"}, {"do": "serve", "station": "m", "work": {"kind": "fixed", "s": 1}}]}],
        "streams": [{"name": "load", "load": {"kind": "open", "rate_per_s": 0, "arrivals": "poisson"},
            "scenarios": [{"weight": 1, "steps": [{"class": "b"}]}]}]});

    let faults = simulate_json(&model.to_string()).expect_err("faults");

    let places: Vec<&str> = faults.iter().map(|fault| fault.where_.as_str()).collect();
    for place in [
        "warmup_s",
        "duration_s",
        "groups[0].size",
        "stations[0].capacity",
        "classes[0].route[0].work.s",
        "classes[0].route[0].station",
        "classes[0].route[2].station",
        "classes[0].route[3].station",
        "classes[0].route",
        "streams[0].load.rate_per_s",
        "streams[0].scenarios[0].steps[0].class",
    ] {
        assert!(places.contains(&place), "{place} not in {places:?}");
    }
}

#[test]
fn what_is_no_model_is_refused_with_its_place() {
    let faults = simulate_json(r#"{"schema_version": 1, "seeds": 1}"#).expect_err("a fault");

    assert_eq!(faults[0].where_, "model");
    assert!(faults[0].what.contains("seeds"));
}
