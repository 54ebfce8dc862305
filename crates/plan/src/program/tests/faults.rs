//! Plans that are refused, and files that are read when a plan is compiled.

use serde_json::json;

use super::*;

#[test]
fn the_environment_is_read_once_and_never_told() {
    // SAFETY: no other test reads or writes these names.
    unsafe {
        std::env::set_var("LOADLENS_TEST_TOKEN", "s3cr3t/\"x");
        std::env::set_var("LOADLENS_TEST_BROKEN", "s3cr3t\r\nA: b");
    }
    let step = |header: &str| {
        json!([{"name": "a", "method": "POST", "path": "/{{env LOADLENS_TEST_TOKEN}}",
            "headers": [["Authorization", header]],
            "body": {"kind": "json", "value": {"t": "{{env LOADLENS_TEST_TOKEN}}"}}}])
    };

    let stream = compiled(step("Bearer {{env LOADLENS_TEST_TOKEN}}"));
    let request = String::from_utf8(stream.steps[0].static_bytes().unwrap().to_vec()).unwrap();
    assert!(
        request.starts_with("POST /s3cr3t%2F%22x HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nAuthorization: Bearer s3cr3t/\"x\r\n"),
        "{request}"
    );
    assert_eq!(body_of(&request), r#"{"t":"s3cr3t/\"x"}"#);

    assert!(!format!("{stream:?}").contains("s3cr3t"), "{stream:?}");

    let broken = fault(step("{{env LOADLENS_TEST_BROKEN}}"));
    assert_eq!(
        broken,
        "streams[0].scenarios[0].steps[0].headers[0]: environment variable LOADLENS_TEST_BROKEN has a control byte, \
         which no header may have"
    );
    let unset = fault(step("{{env LOADLENS_TEST_UNSET}}"));
    assert!(
        unset.contains("environment variable LOADLENS_TEST_UNSET is not set"),
        "{unset}"
    );
    assert!(plan(step("{{env LOADLENS_TEST_UNSET}}"))
        .validate()
        .is_empty()); // reads no environment
}

#[test]
fn a_body_file_is_sent_only_as_it_was_planned() {
    let path = std::env::temp_dir().join(format!("loadlens-body-{}", std::process::id()));
    std::fs::write(&path, "abc").unwrap();
    // FIPS 180-2, appendix B.1: SHA-256 of "abc".
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let step = |path: &str, digest: &str| json!([{"name": "a", "method": "PUT", "path": "/", "body": {"kind": "file", "path": path, "digest": digest}}]);
    let path = path.to_str().unwrap();

    let stream = compiled(step(path, digest));
    assert!(stream.steps[0]
        .static_bytes()
        .unwrap()
        .ends_with(b"Content-Length: 3\r\n\r\nabc"));
    assert!(fault(step(path, &"0".repeat(64))).contains("has changed since the plan was made"));
    std::fs::remove_file(path).unwrap();
    assert!(fault(step(path, digest)).contains("cannot be read"));
    assert!(plan(step(path, digest)).validate().is_empty()); // reads no file
}

#[test]
fn what_cannot_be_sent_is_refused_where_it_stands() {
    let at = "streams[0].scenarios[0].steps[0]";
    let get = |path: &str| json!([{"name": "a", "method": "GET", "path": path}]);
    let with_header = |name: &str, value: &str| json!([{"name": "a", "method": "GET", "path": "/", "headers": [[name, value]]}]);
    for (steps, place, part) in [
        (get("items"), ".path", "does not begin with `/`"),
        (
            get("/a b"),
            ".path",
            "` ` may not stand in a path or query: write %20",
        ),
        (get("/a#b"), ".path", "write %23"),
        (get("/\u{e9}"), ".path", "write %C3%A9"),
        (get("/a\r\nb"), ".path", "write %0D"),
        (get("/100%"), ".path", "write %25"),
        (get("/{{uuidd}}"), ".path", "did you mean `uuid`?"),
        (
            json!([{"name": "a", "method": "GE T", "path": "/"}]),
            ".method",
            "is not a method",
        ),
        (
            json!([{"name": "a", "method": "CONNECT", "path": "/"}]),
            ".method",
            "tunnel",
        ),
        (
            with_header("Host", "a"),
            ".headers[0]",
            "set target.authority",
        ),
        (
            with_header("connection", "close"),
            ".headers[0]",
            "set connection.reuse",
        ),
        (
            with_header("Content-Length", "1"),
            ".headers[0]",
            "engine's own",
        ),
        (
            with_header("Transfer-Encoding", "chunked"),
            ".headers[0]",
            "engine's own",
        ),
        (
            with_header("Expect", "100-continue"),
            ".headers[0]",
            "engine's own",
        ),
        (
            with_header("A B", "c"),
            ".headers[0]",
            "is not a header name",
        ),
        (
            with_header("A", "b\r\nC: d"),
            ".headers[0]",
            "a control byte",
        ),
        (
            json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "json", "value": {"{{uuid}}": 1}}}]),
            ".body.value",
            "a key of a JSON body cannot be a template",
        ),
        (
            json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "json", "value": {"a": ["{{x}}"]}}}]),
            ".body.value.a[0]",
            "`x` is unknown",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "checks": [{"kind": "json", "path": "a..b", "equals": 1}]}]),
            ".checks[0]",
            "empty name",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "checks": [{"kind": "contains", "text": "{{uuid}}"}]}]),
            ".checks[0]",
            "templates are not filled here",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "headers": [["Accept-Encoding", "gzip"]],
                "checks": [{"kind": "contains", "text": "x"}]}]),
            ".headers[0]",
            "do not unpack",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "extract": [
                {"name": "uuid", "from": {"kind": "header", "name": "A"}}]}]),
            ".extract[0]",
            "already means something",
        ),
    ] {
        let message = fault(steps);
        assert!(message.starts_with(&format!("{at}{place}: ")), "{message}");
        assert!(message.contains(part), "{message} lacks {part}");
    }
}

#[test]
fn a_name_is_known_only_to_later_steps_of_its_scenario() {
    let mut two = plan(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [{"name": "id", "from": {"kind": "json", "path": "id"}}]},
        {"name": "b", "method": "GET", "path": "/{{id}}"}]));
    assert!(Program::compile(&two).is_ok());

    two.streams[0].scenarios[0].steps.reverse();
    let faults = two.validate();
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].what.contains("no earlier step extracts anything"),
        "{}",
        faults[0]
    );
}

#[test]
fn every_fault_comes_at_once_and_from_both_ways_of_asking() {
    let plan = plan(json!([
        {"name": "a", "method": "G T", "path": "x", "expect": [99], "headers": [["Host", "a"]]},
        {"name": "a", "method": "GET", "path": "/{{y}}", "think": {"kind": "uniform", "low_ns": 2, "high_ns": 1}}]));

    let faults = plan.validate();

    let places: Vec<&str> = faults.iter().map(|fault| fault.where_.as_str()).collect();
    for place in [
        "streams[0].scenarios[].steps",
        "streams[0].scenarios[0].steps[0].expect[0]",
        "streams[0].scenarios[0].steps[1].think",
        "streams[0].scenarios[0].steps[0].method",
        "streams[0].scenarios[0].steps[0].path",
        "streams[0].scenarios[0].steps[0].headers[0]",
        "streams[0].scenarios[0].steps[1].path",
    ] {
        assert!(places.contains(&place), "{place} not in {places:?}");
    }
    assert_eq!(faults.len(), 7);
    assert_eq!(Program::compile(&plan).unwrap_err(), faults);
}

#[test]
fn checks_that_cannot_be_are_refused_where_they_stand() {
    let step = |checks: serde_json::Value| json!([{"name": "a", "method": "GET", "path": "/", "checks": [checks]}]);
    for (check, part) in [
        (
            json!({"kind": "regex", "pattern": "(a"}),
            "`(a` is not a regular expression: unclosed group",
        ),
        (
            json!({"kind": "regex", "pattern": "{{uuid}}"}),
            "templates are not filled here",
        ),
        (json!({"kind": "exists", "path": "a["}), "not closed"),
        (json!({"kind": "absent", "path": ""}), "is not a JSON path"),
        (json!({"kind": "number", "path": "a", "is": {}}), "no bound"),
        (
            json!({"kind": "count", "path": "a", "is": {"above": 2, "below": 2}}),
            "nothing is above 2 and below 2",
        ),
        (json!({"kind": "size", "is": {}}), "no bound"),
        (json!({"kind": "latency", "below_ns": 0}), "a time above it"),
    ] {
        let fault = fault(step(check));
        assert!(
            fault.starts_with("streams[0].scenarios[0].steps[0].checks[0]: ")
                && fault.contains(part),
            "{fault}"
        );
    }
    let extract = |from: serde_json::Value| json!([{"name": "a", "method": "GET", "path": "/", "extract": [{"name": "x", "from": from}]}]);
    for (from, part) in [
        (json!({"kind": "regex", "pattern": "a("}), "unclosed group"),
        (
            json!({"kind": "regex", "pattern": "a", "group": 1}),
            "has 0 groups, no group 1",
        ),
        (
            json!({"kind": "regex", "pattern": "a", "header": "a b"}),
            "is not a header name",
        ),
    ] {
        let fault = fault(extract(from));
        assert!(
            fault.starts_with("streams[0].scenarios[0].steps[0].extract[0]: ")
                && fault.contains(part),
            "{fault}"
        );
    }
}

#[test]
fn credentials_come_from_the_environment_and_are_never_told() {
    // SAFETY: no other test reads or writes these names.
    unsafe {
        std::env::set_var("LOADLENS_TEST_PASSWORD", "open sesame");
        std::env::set_var("LOADLENS_TEST_BEARER", "mF_9.B5f-4.1JqM");
        std::env::set_var("LOADLENS_TEST_NO_BEARER", "a s3cr3t b");
    }
    let step = |auth: serde_json::Value| json!([{"name": "a", "method": "GET", "path": "/", "auth": auth}]);
    let basic =
        |user: &str, name: &str| step(json!({"kind": "basic", "user": user, "password_env": name}));
    let bearer = |name: &str| step(json!({"kind": "bearer", "token_env": name}));
    let sent = |steps| {
        let stream = compiled(steps);
        assert!(!format!("{stream:?}").contains("sesame"), "{stream:?}");
        String::from_utf8(stream.steps[0].static_bytes().unwrap().to_vec()).unwrap()
    };

    // RFC 7617 2 with its example, RFC 6750 2.1 with its example.
    let request = sent(basic("Aladdin", "LOADLENS_TEST_PASSWORD"));
    assert!(
        request.contains("\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"),
        "{request}"
    );
    let request = sent(bearer("LOADLENS_TEST_BEARER"));
    assert!(
        request.contains("\r\nAuthorization: Bearer mF_9.B5f-4.1JqM\r\n"),
        "{request}"
    );

    for (steps, part) in [
        (
            basic("a:b", "LOADLENS_TEST_PASSWORD"),
            ".auth.user: user `a:b`",
        ),
        (
            basic("a", "LOADLENS_TEST_UNSET"),
            "variable LOADLENS_TEST_UNSET is not set",
        ),
        (
            bearer("LOADLENS_TEST_UNSET"),
            "variable LOADLENS_TEST_UNSET is not set",
        ),
        (
            bearer("LOADLENS_TEST_NO_BEARER"),
            "LOADLENS_TEST_NO_BEARER is not a token",
        ),
    ] {
        let fault = fault(steps);
        assert!(fault.contains(part) && !fault.contains("s3cr3t"), "{fault}");
    }
    let mut twice = bearer("LOADLENS_TEST_BEARER");
    twice[0]["headers"] = json!([["authorization", "x"]]);
    assert!(fault(twice).contains("keep one of them"));
    assert!(plan(bearer("LOADLENS_TEST_UNSET")).validate().is_empty()); // reads no environment
}

#[test]
fn cookies_are_kept_only_where_they_can_be_sent() {
    let of = |cookies: &str, steps: serde_json::Value, groups: serde_json::Value| {
        let mut plan = plan(steps);
        plan.streams[0].cookies = serde_json::from_value(json!(cookies)).unwrap();
        plan.streams[0].scenarios[0].groups = serde_json::from_value(groups).unwrap();
        let stream = Program::compile(&plan).unwrap().streams.remove(0);
        (
            stream.cookies,
            stream.steps[0].need,
            stream.steps[0].static_bytes().is_some(),
        )
    };
    let single = || json!([{"name": "a", "method": "GET", "path": "/"}]);
    let two = || json!([{"name": "a", "method": "GET", "path": "/"}, {"name": "b", "method": "GET", "path": "/"}]);
    let twice = json!([{"first": 0, "steps": 1, "repeat": 2}]);
    let off = (Cookies::Off, Need::Nothing, true);

    assert_eq!(of("iteration", single(), json!([])), off); // no later step could send a cookie
    assert_eq!(of("off", two(), json!([])), off);
    for (cookies, steps, groups) in [
        ("iteration", two(), json!([])),
        ("iteration", single(), twice),
        ("keep", single(), json!([])),
    ] {
        let (_, need, is_static) = of(cookies, steps, groups);
        assert_eq!((need, is_static), (Need::Head, false), "{cookies}");
    }

    let mut open = plan(single());
    open.streams[0].cookies = Cookies::Keep;
    open.streams[0].workload = serde_json::from_value(
        json!({"kind": "open", "rate_per_s": 1.0, "arrivals": "constant",
        "max_in_flight": 1, "overflow": "queue"}),
    )
    .unwrap();
    let faults = open.validate();
    assert_eq!(faults[0].where_, "streams[0].cookies");
}
