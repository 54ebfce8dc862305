//! Scripts that do not load, that fail, and that do not come back.

use std::time::{Duration, Instant};

use loadlens_lua::Session;

use crate::harness::*;

#[test]
fn a_script_that_does_not_load_is_refused_with_its_line() {
    let origin = origin();
    let cases = [
        ("x = = 1", "SCRIPT:1: unexpected symbol near '='"),
        (
            "\n\nlocal a = nil\na.b = 1",
            "SCRIPT:4: attempt to index local 'a' (a nil value)",
        ),
        (
            "function init() error('no token') end",
            "SCRIPT:1: no token",
        ),
        (
            "\nfunction setup(t) t:set('f', print) end",
            "SCRIPT:2: cannot transfer 'function' to thread",
        ),
        (
            "function setup(t) t.addr = 7 end",
            "SCRIPT:1: not an address: ",
        ),
        (
            "function setup(t) t.addr = nil end",
            "thread 1 has no address: thread.addr is nil after setup and init",
        ),
    ];
    for (script, what) in cases {
        let message = refused(&origin, script);
        assert!(message.starts_with(what), "{script}: {message}");
        assert!(
            !message.contains("traceback") && !message.contains('\n'),
            "{message}"
        );
    }
    assert!(refused(&origin, "require 'nowhere.at.all'")
        .starts_with("SCRIPT:1: module 'nowhere.at.all' not found"));
    assert_eq!(settled(&origin).received, 0);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let origin = origin();
    let mut asked = asked(origin.port, None);
    asked.script = Some("/nowhere/a.lua".to_owned());

    let message = Session::prepare(&asked)
        .map(|_| ())
        .unwrap_err()
        .to_string();

    assert!(message.contains("cannot open /nowhere/a.lua"), "{message}");
}

#[test]
fn what_is_no_request_is_refused_before_the_run_with_its_place() {
    let origin = origin();
    let cases = [
        ("function request() end", "SCRIPT:1: request() has returned nil, not a request"),
        ("\nfunction request() return {} end", "SCRIPT:2: request() has returned table, not a request"),
        (
            "function request() return 'GET / HTTP/1.1\\r\\nHost: a\\r\\nnonsense\\r\\n\\r\\n' end",
            "SCRIPT:1: request(): a line of the head that is no `Name: value` at 3:1 of it",
        ),
        (
            "function request() return wrk.format() .. wrk.format() end",
            "SCRIPT:1: request(): more than one request (pipelining): loadlens sends one at a time over a connection",
        ),
        ("wrk.method = 'GET /'", "the request: the first line does not end with HTTP/1.1 or HTTP/1.0 at 1:1 of it"),
    ];
    for (script, what) in cases {
        let message = refused(&origin, script);
        assert!(message.starts_with(what), "{script}: {message}");
    }
}

#[test]
fn a_fault_while_running_ends_the_run_with_its_line_and_every_request_accounted_for() {
    let origin = origin();
    for (script, what) in [
        ("n = 0\nfunction request()\n  n = n + 1\n  return n < 50 and wrk.format() or n.x.y\nend", ":4: attempt to index"),
        ("n = 0\nfunction request()\n  n = n + 1\n  return n < 50 and wrk.format() or nil\nend", ":2: request() has returned nil"),
        ("n = 0\nfunction response()\n  n = n + 1\n  if n == 50 then error('enough') end\nend", ":4: enough"),
        ("n = 0\nfunction delay()\n  n = n + 1\n  return n == 50 and -1 or 0\nend", ":2: delay() has returned -1"),
    ] {
        let mut done = drive(&origin, script, 1_000_000);

        assert!((48..=52).contains(&done.requests("answered")), "{script}");
        let message = done.fault().expect(script);
        assert!(message.contains(what) && !message.contains('\n'), "{message}");
    }
}

#[test]
fn a_script_that_loops_for_ever_cannot_hold_up_the_end() {
    let origin = origin();
    let file = File::new(
        "n = 0\nfunction request()\n  n = n + 1\n  while n > 20 do end\n  return wrk.format()\nend",
    );
    let mut asked = asked(origin.port, Some(&file));
    asked.timeout_ns = SECOND / 5;
    let mut plan = plan(&asked, 1, 1_000_000);
    plan["duration_ns"] = (SECOND / 2).into();
    plan["streams"][0]["workload"] = serde_json::json!({"kind": "closed", "users": 1});
    let session = Session::prepare(&asked).unwrap();

    let began = Instant::now();
    let mut done = run(session, &plan);

    let message = done.result.as_ref().unwrap_err();
    assert!(
        message.contains(":2: request() has not come back for"),
        "{message}"
    );
    let fault = done.fault().unwrap();
    assert!(fault.contains(":2: request() did not come back"), "{fault}");
    assert!(began.elapsed() < Duration::from_secs(20)); // 0.5 s, a time-out and half a second are planned
}
