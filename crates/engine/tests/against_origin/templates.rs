//! Requests from steps, templates and extracted values are valid HTTP, and carry the values that they should.

use loadlens_origin::{Config, Counts};
use serde_json::{json, Value};

use crate::harness::{closed, meet, origin, plan, shared, stream, Run, SECOND};

/// A load of steps against a fresh origin: the run, and the server's counts.
fn of_steps(steps: Value, workload: Value) -> (Run, Counts) {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["scenarios"][0]["steps"] = steps;
    stream["workload"] = workload;
    stream["timeout_ns"] = json!(20 * SECOND);
    meet(&origin, &plan(vec![stream]))
}

#[test]
fn an_id_that_was_extracted_is_asked_for() {
    let steps = json!([
        {"name": "create", "method": "POST", "path": "/items", "expect": [201],
         "headers": [["Content-Type", "application/json"]],
         "body": {"kind": "json", "value": {"name": "{{word 8}}", "count": "{{int 1 9}}"}},
         "extract": [{"name": "id", "from": {"kind": "json", "path": "data.id"}},
                     {"name": "place", "from": {"kind": "header", "name": "Location"}}]},
        {"name": "read", "method": "GET", "path": "/items/{{id}}", "expect": [200],
         "checks": [{"kind": "contains", "text": "\"id\":"}]},
    ]);

    let (done, counts) = of_steps(
        steps,
        json!({"kind": "closed", "users": 4, "iterations": 25}),
    );

    assert_eq!(
        done.only().requests("ok"),
        200,
        "{}",
        done.only().0["errors"]
    );
    assert_eq!(
        (
            counts.path("/items").received,
            counts.path("/items/{id}").received
        ),
        (100, 100)
    );
}

#[test]
fn an_extraction_that_fails_skips_the_rest_of_the_iteration() {
    let steps = json!([
        {"name": "first", "method": "GET", "path": "/json",
         "extract": [{"name": "id", "from": {"kind": "json", "path": "data.id"}}]},
        {"name": "second", "method": "GET", "path": "/items/{{id}}"},
        {"name": "third", "method": "GET", "path": "/json"},
    ]);

    let (done, counts) = of_steps(
        steps,
        json!({"kind": "closed", "users": 2, "iterations": 5}),
    );

    let load = done.only();
    assert_eq!(
        (load.requests("check_failed"), load.requests("skipped")),
        (10, 20),
        "{}",
        load.0["requests"]
    );
    assert_eq!(counts.received, 10);
}

#[test]
fn odd_values_in_every_place_stay_within_the_grammar() {
    let odd = "{{choice a/b?c#d%e é\u{1f600} \"quoted\" <angle> back\\slash pipe|caret^ {brace} 100% ; &=+}}";
    let steps = json!([
        {"name": "odd", "method": "POST", "path": format!("/echo?q={odd}&u={{{{uuid}}}}"),
         "headers": [["X-Number", "{{float 0 1}}"], ["X-Word", "{{word 12}}"]],
         "body": {"kind": "json", "value": {"text": format!("x {odd}"), "n": "{{int -5 5}}"}}},
    ]);

    let (done, counts) = of_steps(steps, closed(4, 400));

    assert_eq!(
        done.only().requests("ok"),
        400,
        "{}",
        done.only().0["errors"]
    );
    assert_eq!(counts.received, 400);
}

#[test]
fn steps_come_in_order_and_iterations_end_a_user() {
    let steps = json!([
        {"name": "a", "method": "GET", "path": "/json"},
        {"name": "b", "method": "POST", "path": "/echo", "body": {"kind": "text", "text": "hello"}},
    ]);

    let (done, counts) = of_steps(
        steps,
        json!({"kind": "closed", "users": 3, "iterations": 5}),
    );

    assert_eq!(
        (counts.path("/json").received, counts.path("/echo").received),
        (15, 15)
    );
    assert_eq!(counts.path("/echo").body_bytes_in, 15 * 5);
    let ok = |step: usize| &done.only().0["steps"][step]["requests"]["ok"];
    assert_eq!((ok(0), ok(1)), (&json!(15), &json!(15)));
}

#[test]
fn bodies_arrive_as_long_as_they_were_rendered_and_larger_than_a_socket_takes() {
    for (text, length) in [
        ("{{word 100}}".to_owned(), 100),
        ("y".repeat(6_000_000), 6_000_000),
        (format!("{}{{{{uuid}}}}", "y".repeat(6_000_000)), 6_000_036),
    ] {
        let body = json!({"kind": "text", "text": text});
        let post = json!({"name": "post", "method": "POST", "path": "/echo", "body": body});

        let (done, counts) = of_steps(json!([post]), closed(2, 6));

        let tally = counts.path("/echo");
        assert_eq!(
            (
                done.only().requests("ok"),
                tally.received,
                tally.body_bytes_in
            ),
            (6, 6, 6 * length)
        );
        // An echo gives each body back.
        assert_eq!(done.only().0["bytes"]["in_body"], 6 * length);
        assert!(done.only().0["bytes"]["out"].as_u64() > Some(6 * length));
    }
}
