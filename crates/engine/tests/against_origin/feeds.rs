//! Feeds and groups over real sockets: the origin's counts say which value arrived, and how often.

use loadlens_origin::{Config, Origin};
use serde_json::{json, Value};

use crate::harness::{closed, digest, meet, open, origin, plan, shared, stream};

/// A file that is gone when the test is over.
struct Written(std::path::PathBuf);

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A CSV file of the ids 1 to `count`, and the feed of it.
fn ids(test: &str, count: u64, keys: Value) -> (Written, Value) {
    let path = std::env::temp_dir().join(format!("loadlens-{test}-{}.csv", std::process::id()));
    let ids: String = (1..=count).map(|id| format!("{id}\n")).collect();
    let content = format!("id\n{ids}");
    std::fs::write(&path, &content).unwrap();
    let digest = digest(content.as_bytes());
    let mut feed = json!({"name": "ids", "path": path, "digest": digest, "format": "csv"});
    feed.as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    (Written(path), feed)
}

/// Makes the items 1 to `count`.
fn make_items(origin: &Origin, count: u64) {
    let mut stream = stream("make", origin.port, "/items");
    stream["scenarios"][0]["steps"][0]["method"] = json!("POST");
    stream["workload"] = closed(4, count);
    let (done, _) = meet(origin, &plan(vec![stream]));
    assert_eq!(done.only().requests("ok"), count);
}

/// Deletes items by the ids of a feed: the origin says 404 to the second request for the same one.
fn delete(origin: &Origin, workload: Value, feed: Value, threads: u32) -> Value {
    let mut stream = stream("load", origin.port, "/items/{{ids.id}}");
    stream["scenarios"][0]["steps"][0]["method"] = json!("DELETE");
    stream["workload"] = workload;
    let mut plan = plan(vec![stream]);
    plan["threads"] = json!(threads);
    plan["feeds"] = json!([feed]);
    plan["duration_ns"] = json!(20_000_000_000u64);
    meet(origin, &plan).0.result["streams"][0].clone()
}

#[test]
fn each_record_of_a_unique_feed_arrives_once_and_then_the_load_ends() {
    let _machine = shared();
    for (name, workload, threads) in [
        ("closed", json!({"kind": "closed", "users": 5}), 1),
        ("threads", json!({"kind": "closed", "users": 6}), 3),
        ("open", open(2_000.0, "poisson"), 1),
    ] {
        let origin = origin(Config::default());
        make_items(&origin, 300);
        let (_file, feed) = ids(&format!("unique-{name}"), 300, json!({"pick": "unique"}));

        let load = delete(&origin, workload, feed, threads);

        assert_eq!(
            (&load["requests"]["due"], &load["requests"]["ok"]),
            (&json!(300), &json!(300)),
            "{name}: {load}"
        );
        let used = &load["feeds"][0];
        assert_eq!(
            (&used["records"], &used["iterations"]),
            (&json!(300), &json!(300)),
            "{name}"
        );
        assert_eq!(
            (&used["is_used_up"], &used["end"]),
            (&json!(true), &json!("stop")),
            "{name}"
        );
    }
}

#[test]
fn a_feed_with_a_record_for_each_request_is_not_used_up() {
    let _machine = shared();
    let origin = origin(Config::default());
    make_items(&origin, 100);
    let (_file, feed) = ids("enough", 100, json!({"pick": "unique"}));

    let load = delete(&origin, closed(10, 100), feed, 1);

    assert_eq!(load["requests"]["ok"], json!(100), "{load}");
    let used = &load["feeds"][0];
    assert_eq!(
        (&used["iterations"], &used["is_used_up"]),
        (&json!(100), &json!(false))
    );
}

#[test]
fn the_shares_of_several_machines_use_a_unique_feed_up_together() {
    let _machine = shared();
    let origin = origin(Config::default());
    make_items(&origin, 100);
    let (_file, feed) = ids("shares", 100, json!({"pick": "unique"}));
    let mut deleted = 0;

    for (from, to, threads) in [(0, 1, 1), (1, 4, 2), (4, 9, 1)] {
        let mut stream = stream("load", origin.port, "/items/{{ids.id}}");
        stream["scenarios"][0]["steps"][0]["method"] = json!("DELETE");
        stream["workload"] = json!({"kind": "closed", "users": 12});
        let mut plan = plan(vec![stream]);
        plan["threads"] = json!(threads);
        plan["share"] = json!({"from": from, "to": to, "of": 9});
        plan["duration_ns"] = json!(20_000_000_000u64);
        plan["feeds"] = json!([feed]);
        let load = meet(&origin, &plan).0.result["streams"][0].clone();
        assert_eq!(load["requests"]["ok"], load["requests"]["due"], "{load}");
        deleted += load["requests"]["ok"].as_u64().unwrap();
    }

    assert_eq!(deleted, 100);
}

#[test]
fn a_shared_feed_begins_again_and_a_random_one_never_ends() {
    let _machine = shared();
    for (pick, gone) in [("shared", 20), ("random", 20)] {
        let origin = origin(Config::default());
        make_items(&origin, 20);
        let (_file, feed) = ids(&format!("again-{pick}"), 20, json!({"pick": pick}));

        let load = delete(&origin, closed(1, 400), feed, 1);

        // Each of 20 items is deleted once; all others of 400 requests find it gone. A random pick leaves one of 20
        // out with probability 20 x 0.95^400 = 2e-8.
        assert_eq!(
            (&load["requests"]["ok"], &load["requests"]["answered"]),
            (&json!(gone), &json!(400)),
            "{pick}"
        );
        assert_eq!(load["feeds"][0]["is_used_up"], false);
    }
}

#[test]
fn groups_repeat_in_order_and_a_failed_extraction_skips_the_rest_of_all_turns() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["scenarios"][0]["steps"] = json!([
        {"name": "create", "method": "POST", "path": "/items", "expect": [201],
         "extract": [{"name": "place", "from": {"kind": "header", "name": "Location"}}]},
        {"name": "read", "method": "GET", "path": "{{raw place}}", "expect": [200]},
        {"name": "delete", "method": "DELETE", "path": "{{raw place}}"},
        {"name": "fail", "method": "GET", "path": "/json",
         "extract": [{"name": "x", "from": {"kind": "json", "path": "not.there"}}]},
        {"name": "never", "method": "GET", "path": "/json"},
    ]);
    // 2 x (create, 3 x read, delete), 4 x fail, never
    stream["scenarios"][0]["groups"] = json!([
        {"name": "life", "first": 0, "steps": 3, "repeat": 2},
        {"name": "", "first": 1, "steps": 1, "repeat": 3},
        {"name": "end", "first": 3, "steps": 1, "repeat": 4},
    ]);
    stream["workload"] = json!({"kind": "closed", "users": 3, "iterations": 10});

    let (done, counts) = meet(&origin, &plan(vec![stream]));

    let load = done.only();
    let due: Vec<u64> = (0..5)
        .map(|step| load.0["steps"][step]["requests"]["due"].as_u64().unwrap())
        .collect();
    // Of 30 iterations: the first of 4 failing turns ends each, its 3 others and `never` are left out.
    assert_eq!(due, [60, 180, 60, 30, 0]);
    assert_eq!(
        (
            load.requests("ok"),
            load.requests("check_failed"),
            load.requests("skipped")
        ),
        (300, 30, 120)
    );
    assert_eq!(counts.path("/items/{id}").received, 240);
}
