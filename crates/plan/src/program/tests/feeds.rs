//! Values of feeds in requests, and the faults of feeds in a plan.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A file that is gone when the test is over.
struct Written(PathBuf);

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn written(name: &str, content: &[u8]) -> Written {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("loadlens-fed-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(name), content).unwrap();
    Written(dir.join(name))
}

/// A plan whose feed `feed` is a file of this name and content; `also` are keys of the feed.
fn plan_fed(steps: Json, file: &Written, content: &[u8], also: Json) -> Plan {
    let mut whole = serde_json::to_value(plan(steps)).unwrap();
    let mut feed = json!({
        "name": "feed", "path": file.0, "digest": digest::sha256_hex(content),
        "format": file.0.extension().unwrap().to_str().unwrap(),
    });
    let keys = also.as_object().unwrap().clone();
    feed.as_object_mut().unwrap().extend(keys);
    whole["feeds"] = json!([feed]);
    serde_json::from_value(whole).unwrap()
}

/// The stream of a plan that has a feed `feed`.
pub(super) fn fed(
    steps: Json,
    name: &str,
    content: &[u8],
    also: Json,
) -> Result<StreamProgram, Vec<Fault>> {
    let file = written(name, content);
    Program::compile(&plan_fed(steps, &file, content, also))
        .map(|mut program| program.streams.remove(0))
}

fn faults(steps: Json, name: &str, content: &[u8], also: Json) -> String {
    let faults = fed(steps, name, content, also).unwrap_err();
    faults
        .iter()
        .map(Fault::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn request(stream: &StreamProgram, values: &Values, record: u32) -> Result<String, RenderFault> {
    let at = vec![record; stream.feeds.len()];
    let mut context = RenderContext {
        random: &mut Random::new(1),
        seq: 0,
        user: 0,
        unix_ns: 0,
        t0_unix_ns: 0,
        records: Records::new(&stream.feeds, &at),
    };
    let mut out = Vec::new();
    let last = stream.steps.last().unwrap();
    last.render(values, &mut context, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

const CSV: &[u8] = b"id,full name\n7,\"Ann \"\"A\"\" / Doe\"\n8,Bo\n";

#[test]
fn a_column_is_written_for_the_place_that_it_stands_in() {
    let steps = json!([{"name": "a", "method": "POST", "path": "/u/{{feed.full name}}?id={{feed.id}}",
        "headers": [["X-Name", "{{feed.full name}}"]],
        "body": {"kind": "json", "value": {"id": "{{feed.id}}", "text": "is {{feed.full name}}"}}}]);
    let stream = fed(steps, "users.csv", CSV, json!({})).unwrap();

    let first = request(&stream, &Values::default(), 0).unwrap();
    let second = request(&stream, &Values::default(), 1).unwrap();

    assert!(
        first.starts_with("POST /u/Ann%20%22A%22%20%2F%20Doe?id=7 HTTP/1.1\r\n"),
        "{first}"
    );
    assert!(first.contains("\r\nX-Name: Ann \"A\" / Doe\r\n"), "{first}");
    // A CSV file has no types: an id is a text.
    assert_eq!(body_of(&first), r#"{"id":"7","text":"is Ann \"A\" / Doe"}"#);
    assert_eq!(body_of(&second), r#"{"id":"8","text":"is Bo"}"#);
    assert_eq!(
        (stream.feeds[0].records, &stream.scenarios[0].feeds[..]),
        (2, &[0][..])
    );
}

#[test]
fn a_value_of_jsonl_keeps_its_type_in_a_json_body() {
    let content = b"{\"n\": 7, \"deep\": {\"list\": [true, \"a\\\"b\"]}}\n";
    let steps = json!([{"name": "a", "method": "POST", "path": "/{{feed.deep.list[1]}}",
        "body": {"kind": "json", "value": {"n": "{{feed.n}}", "deep": "{{feed.deep}}", "s": "{{feed.deep.list[1]}}", "t": "n {{feed.n}}"}}}]);
    let stream = fed(steps, "items.jsonl", content, json!({})).unwrap();

    let sent = request(&stream, &Values::default(), 0).unwrap();

    assert!(sent.starts_with("POST /a%22b HTTP/1.1"), "{sent}");
    assert_eq!(
        body_of(&sent),
        r#"{"n":7,"deep":{"list": [true, "a\"b"]},"s":"a\"b","t":"n 7"}"#
    );
}

#[test]
fn faults_of_feeds_are_told_before_the_start() {
    let step = |path: &str| json!([{"name": "a", "method": "GET", "path": path}]);
    let header =
        json!([{"name": "a", "method": "GET", "path": "/", "headers": [["X-A", "{{feed.id}}"]]}]);
    for (found, part) in [
        (
            faults(step("/{{feed.name}}"), "u.csv", CSV, json!({})),
            "streams[0].scenarios[0].steps[0].path: u.csv has no column `name`; there is id, full name",
        ),
        (
            faults(step("/{{feed.id}}"), "u.csv", b"id,n\n1,2\n3\n", json!({})),
            "feeds[0].path: u.csv:3: 1 field where the header has 2",
        ),
        (
            faults(header, "u.csv", b"id\n\"a\nb\"\n", json!({})),
            "steps[0].headers[0]: u.csv:2: `id` has a control byte",
        ),
        (
            faults(step("/{{raw feed.id}}"), "u.csv", b"id\na b\n", json!({})),
            "steps[0].path: u.csv:2: `id` may not stand unescaped",
        ),
        (
            faults(step("/{{feed.id}}"), "u.csv", CSV, json!({"digest": "00"})),
            "has changed since the plan was made: its SHA-256 is ",
        ),
        (
            faults(step("/{{feed.id}}"), "u.csv", CSV, json!({"path": "/nowhere/u.csv"})),
            "feeds[0].path: feed /nowhere/u.csv cannot be read",
        ),
        (
            faults(step("/{{feed.id}}"), "u.csv", CSV, json!({"pick": "random", "end": "stop"})),
            "feeds[0].end: stop: random records",
        ),
        (
            faults(step("/"), "u.csv", CSV, json!({"name": "uuid"})),
            "feeds[0].name: `uuid` already means something",
        ),
    ] {
        assert!(found.contains(part), "{found}");
    }
}

#[test]
fn a_unique_feed_belongs_to_one_stream_and_one_for_each_user_to_users() {
    let file = written("u.csv", CSV);
    let steps = json!([{"name": "a", "method": "GET", "path": "/{{feed.id}}"}]);
    let two_streams = |pick: &str| {
        let mut plan = plan_fed(steps.clone(), &file, CSV, json!({"pick": pick}));
        let mut second = plan.streams[0].clone();
        second.name = "second".to_owned();
        second.workload = serde_json::from_value(json!({
            "kind": "open", "rate_per_s": 1.0, "arrivals": "constant", "max_in_flight": 1, "overflow": "queue"}))
        .unwrap();
        plan.streams.push(second);
        match Program::compile(&plan) {
            Ok(_) => String::new(),
            Err(faults) => faults[0].to_string(),
        }
    };

    assert_eq!(two_streams("shared"), "");
    assert!(two_streams("unique")
        .contains("streams[1].scenarios[0].steps[0].path: feed feed is unique and another stream"));
    assert!(two_streams("user").contains("this load has no users that stay"));
}

#[test]
fn a_location_is_followed_as_it_is_and_never_leaves_the_target() {
    let stream = compiled(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [{"name": "v", "from": {"kind": "json", "path": "v"}}]},
        {"name": "b", "method": "GET", "path": "{{raw v}}"}]));
    for (location, expected) in [
        ("/items/7?a=b%20c", Ok("/items/7?a=b%20c")),
        ("/items/7#part", Ok("/items/7")),
        ("http://shop.test:8080/items/7", Ok("/items/7")),
        ("HTTP://SHOP.test:8080", Ok("/")),
        ("http://shop.test:8080?page=2", Ok("/?page=2")),
        ("//shop.test:8080/x", Ok("/x")),
        ("http://evil.test/items/7", Err(RenderFault::OtherHost)),
        ("//evil.test/", Err(RenderFault::OtherHost)),
        (
            "http://shop.test:8080@evil.test/",
            Err(RenderFault::OtherHost),
        ),
        ("items/7", Err(RenderFault::NoPath)),
        ("", Err(RenderFault::NoPath)),
        ("/a b", Err(RenderFault::RawValue)),
        ("/a%2", Err(RenderFault::RawValue)),
        ("/\u{e9}", Err(RenderFault::RawValue)),
        (
            "/ HTTP/1.1\r\nX: y\r\n\r\nGET /",
            Err(RenderFault::RawValue),
        ),
    ] {
        let values = extracted(&stream, &json!({"v": location}).to_string());

        let rendered = request(&stream, &values, 0);

        let target = rendered
            .as_deref()
            .map(|sent| sent.split(' ').nth(1).unwrap_or_default());
        assert_eq!(target, expected.as_ref().map(|path| *path), "{location}");
    }
}

#[test]
fn raw_stands_in_paths_only() {
    let extract = json!([{"name": "v", "from": {"kind": "json", "path": "v"}}]);
    let message = fault(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": extract},
        {"name": "b", "method": "POST", "path": "/", "body": {"kind": "text", "text": "{{raw v}}"}}]));

    assert!(
        message.contains("steps[1].body.text: raw is for paths"),
        "{message}"
    );
}
