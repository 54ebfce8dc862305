//! What templates and extracted values put on the wire is valid HTTP, and carries what it should.

use std::time::Duration;

use loadlens_origin::Config;
use serde_json::json;

use crate::harness::{check_manners, closed, origin, plan, run, settled, shared, stream};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn an_id_that_was_extracted_is_asked_for() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["scenarios"][0]["steps"] = json!([
        {"name": "create", "method": "POST", "path": "/items", "expect": [201],
         "headers": [["Content-Type", "application/json"]],
         "body": {"kind": "json", "value": {"name": "{{word 8}}", "count": "{{int 1 9}}"}},
         "extract": [{"name": "id", "from": {"kind": "json", "path": "data.id"}},
                     {"name": "place", "from": {"kind": "header", "name": "Location"}}]},
        {"name": "read", "method": "GET", "path": "/items/{{id}}", "expect": [200],
         "checks": [{"kind": "contains", "text": "\"id\":"}]},
    ]);
    stream["workload"] = json!({"kind": "closed", "users": 4, "iterations": 25});

    let done = run(&plan(vec![stream]), LIMIT);
    let books = settled(&origin);

    done.only().check_law();
    check_manners(&books);
    assert_eq!(
        done.only().requests("ok"),
        200,
        "{}",
        done.only().0["errors"]
    );
    assert_eq!(
        (
            books.path("/items").received,
            books.path("/items/{id}").received
        ),
        (100, 100)
    );
}

#[test]
fn an_extraction_that_fails_skips_the_rest_of_the_iteration() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["scenarios"][0]["steps"] = json!([
        {"name": "first", "method": "GET", "path": "/json",
         "extract": [{"name": "id", "from": {"kind": "json", "path": "data.id"}}]},
        {"name": "second", "method": "GET", "path": "/items/{{id}}"},
        {"name": "third", "method": "GET", "path": "/json"},
    ]);
    stream["workload"] = json!({"kind": "closed", "users": 2, "iterations": 5});

    let done = run(&plan(vec![stream]), LIMIT);
    let books = settled(&origin);

    let load = done.only();
    load.check_law();
    assert_eq!(
        (load.requests("check_failed"), load.requests("skipped")),
        (10, 20),
        "{}",
        load.0["requests"]
    );
    assert_eq!(books.received, 10);
}

#[test]
fn odd_values_in_every_place_stay_within_the_grammar() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    let odd = "{{choice a/b?c#d%e é\u{1f600} \"quoted\" <angle> back\\slash pipe|caret^ {brace} 100% ; &=+}}";
    stream["scenarios"][0]["steps"] = json!([
        {"name": "odd", "method": "POST", "path": format!("/echo?q={odd}&u={{{{uuid}}}}"),
         "headers": [["X-Number", "{{float 0 1}}"], ["X-Word", "{{word 12}}"]],
         "body": {"kind": "json", "value": {"text": format!("x {odd}"), "n": "{{int -5 5}}"}}},
    ]);
    stream["workload"] = closed(4, 400);

    let done = run(&plan(vec![stream]), LIMIT);
    let books = settled(&origin);

    done.only().check_law();
    check_manners(&books);
    assert_eq!(
        done.only().requests("ok"),
        400,
        "{}",
        done.only().0["errors"]
    );
    assert_eq!(books.received, 400);
}

#[test]
fn bodies_arrive_as_long_as_they_were_rendered() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut fixed = stream("fixed", origin.port, "/echo?fixed");
    fixed["scenarios"][0]["steps"][0]["path"] = json!("/echo?fixed=1");
    fixed["scenarios"][0]["steps"][0]["method"] = json!("POST");
    fixed["scenarios"][0]["steps"][0]["body"] = json!({"kind": "text", "text": "{{word 100}}"});
    fixed["workload"] = closed(3, 30);
    let mut large = stream("large", origin.port, "/echo?large=1");
    large["scenarios"][0]["steps"][0]["method"] = json!("PUT");
    large["scenarios"][0]["steps"][0]["body"] =
        json!({"kind": "text", "text": "y".repeat(300_000)});
    large["workload"] = closed(2, 6);
    large["timeout_ns"] = json!(5_000_000_000u64);

    let done = run(&plan(vec![fixed, large]), LIMIT);
    let books = settled(&origin);

    check_manners(&books);
    assert_eq!(books.path("/echo?fixed=1").body_bytes_in, 3_000);
    assert_eq!(books.path("/echo?large=1").body_bytes_in, 1_800_000);
    // An echo gives each body back.
    assert_eq!(done.stream("large").0["bytes"]["in_body"], 1_800_000);
    assert_eq!(done.stream("fixed").0["bytes"]["in_body"], 3_000);
}
