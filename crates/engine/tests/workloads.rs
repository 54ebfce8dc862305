//! Workloads, connections and the record, driven whole against an origin whose books are the truth.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use common::{count, outcomes, plan, run, run_stream, stream};
use loadlens_engine::record::files::read_intervals;
use loadlens_engine::run::Run;
use loadlens_origin::{Admission, Config, Freeze, Origin};
use serde_json::{json, Value};

const MS: u64 = 1_000_000;

fn origin() -> Origin {
    Origin::start(Config::default()).unwrap()
}

fn closed(users: u32, requests: u64) -> Value {
    json!({"kind": "closed", "users": users, "requests": requests})
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("loadlens-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap();
    dir
}

#[test]
fn requests_in_all_are_exact_over_threads_and_the_server_received_each() {
    let origin = origin();
    let load = stream(origin.port, "/json", json!({"workload": closed(10, 1_001)}));

    let result = run(&plan(vec![load], json!({"threads": 3})));

    let books = origin.books_when_idle(2_000_000_000).unwrap();
    assert_eq!(count(&result["streams"][0], "ok"), 1_001);
    assert_eq!(
        (books.received, books.answered, books.violations),
        (1_001, 1_001, 0)
    );
    assert_eq!(result["generator"]["threads"], 3);
    assert_eq!(result["streams"][0]["connections"]["opened"], 10);
}

#[test]
fn iterations_end_a_user_and_its_steps_come_in_order() {
    let origin = origin();
    let steps = json!([
        {"name": "a", "method": "GET", "path": "/json"},
        {"name": "b", "method": "POST", "path": "/echo", "body": {"kind": "text", "text": "hello"}},
    ]);
    let load = stream(
        origin.port,
        "/",
        json!({
            "scenarios": [{"name": "s", "weight": 1, "steps": steps}],
            "workload": {"kind": "closed", "users": 3, "iterations": 5},
        }),
    );

    let stream = run_stream(load);

    let books = origin.books_when_idle(2_000_000_000).unwrap();
    assert_eq!(
        (books.path("/json").received, books.path("/echo").received),
        (15, 15)
    );
    assert_eq!(books.path("/echo").body_bytes_in, 15 * 5);
    assert_eq!(
        (
            &stream["steps"][0]["requests"]["ok"],
            &stream["steps"][1]["requests"]["ok"]
        ),
        (&json!(15), &json!(15))
    );
}

#[test]
fn a_body_larger_than_the_socket_takes_arrives_whole_and_once() {
    const BYTES: usize = 6_000_000;
    for rendered in ["", "{{uuid}}"] {
        let origin = origin();
        let text = format!("{}{rendered}", "x".repeat(BYTES));
        let step = json!({"name": "post", "method": "POST", "path": "/echo", "body": {"kind": "text", "text": text}});
        let load = stream(
            origin.port,
            "/",
            json!({
                "scenarios": [{"name": "s", "weight": 1, "steps": [step]}],
                "workload": closed(1, 3),
                "timeout_ns": 10_000 * MS,
            }),
        );

        let stream = run_stream(load);

        let length = BYTES as u64 + if rendered.is_empty() { 0 } else { 36 };
        let book = origin.books_when_idle(2_000_000_000).unwrap().path("/echo");
        assert_eq!(
            (count(&stream, "ok"), book.received, book.body_bytes_in),
            (3, 3, 3 * length)
        );
        assert_eq!(stream["bytes"]["in_body"], 3 * length);
        assert!(stream["bytes"]["out"].as_u64().unwrap() > 3 * length);
    }
}

#[test]
fn a_failed_extraction_skips_the_rest_of_the_iteration() {
    let origin = origin();
    let steps = json!([
        {"name": "a", "method": "GET", "path": "/json",
         "extract": [{"name": "id", "from": {"kind": "json", "path": "no.such.key"}}]},
        {"name": "b", "method": "GET", "path": "/items/{{id}}"},
    ]);
    let load = stream(
        origin.port,
        "/",
        json!({
            "scenarios": [{"name": "s", "weight": 1, "steps": steps}],
            "workload": {"kind": "closed", "users": 1, "iterations": 4},
        }),
    );

    let stream = run_stream(load);

    assert_eq!(
        (
            count(&stream, "check_failed"),
            count(&stream, "skipped"),
            count(&stream, "due")
        ),
        (4, 4, 4)
    );
    assert_eq!(origin.books().received, 4);
}

#[test]
fn an_open_stream_is_due_exactly_rate_times_duration() {
    let origin = origin();
    let workload = json!({"kind": "open", "rate_per_s": 500, "arrivals": "constant", "max_in_flight": 100, "overflow": "queue"});
    let load = stream(origin.port, "/json", json!({"workload": workload}));

    let result = run(&plan(
        vec![load],
        json!({"duration_ns": 600 * MS, "drain_ns": 1_000 * MS, "threads": 2}),
    ));

    let stream = &result["streams"][0];
    assert_eq!((count(stream, "due"), count(stream, "ok")), (300, 300));
    assert_eq!(stream["law_holds"], true);
}

#[test]
fn an_overloaded_open_stream_queues_or_drops_and_counts_what_it_did() {
    let workload = |overflow: &str| json!({"kind": "open", "rate_per_s": 200, "arrivals": "constant", "max_in_flight": 2, "overflow": overflow});
    let ask = |overflow: &str| {
        let origin = origin(); // answers after 50 ms: 2 places carry 40 a second
        let load = stream(
            origin.port,
            "/delay/50",
            json!({"workload": workload(overflow)}),
        );
        run(&plan(vec![load], json!({"duration_ns": 500 * MS})))["streams"][0].clone()
    };

    let (queued, dropped) = (ask("queue"), ask("drop"));

    assert_eq!((count(&queued, "due"), count(&dropped, "due")), (100, 100));
    assert_eq!(
        (count(&queued, "dropped"), count(&dropped, "waiting")),
        (0, 0)
    );
    assert!(count(&queued, "waiting") >= 80 && count(&dropped, "dropped") >= 80);
    // Who waits in the queue is in the latency: some had waited nearly from the beginning.
    let waited = queued["response_time_s"]["max"].as_f64().unwrap();
    assert!(waited > 0.3, "{waited}");
    assert_eq!(
        queued["response_time_s"]["censored"].as_u64().unwrap(),
        count(&queued, "waiting") + 2
    );
}

#[test]
fn a_freeze_shows_in_the_response_times_of_an_open_stream_as_it_should() {
    let freeze = Freeze {
        first_ns: 400 * MS,
        len_ns: 300 * MS,
        every_ns: 0,
    };
    let origin = Origin::start(Config {
        freeze: Some(freeze),
        ..Config::default()
    })
    .unwrap();
    let workload = json!({"kind": "open", "rate_per_s": 1000, "arrivals": "constant", "max_in_flight": 2000, "overflow": "queue"});
    let load = stream(origin.port, "/json", json!({"workload": workload}));

    let result = run(&plan(
        vec![load],
        json!({"duration_ns": 1_200 * MS, "drain_ns": 1_000 * MS}),
    ));

    // 300 of 1,200 arrivals come while it is frozen and wait, evenly spread, for up to 300 ms: the share that
    // waits longer than t is (0.3 - t) / 1.2, so p90 is 0.18 and p95 is 0.24.
    let times = &result["streams"][0]["response_time_s"];
    let at = |quantile: &str| times[quantile]["value"].as_f64().unwrap();
    assert!(
        (at("p90") - 0.18).abs() < 0.03 && (at("p95") - 0.24).abs() < 0.03,
        "{} {}",
        at("p90"),
        at("p95")
    );
}

#[test]
fn users_who_share_a_pool_wait_for_a_connection_and_never_open_more() {
    let origin = origin();
    let load = stream(
        origin.port,
        "/delay/10",
        json!({"workload": closed(8, 80), "connection": {"reuse": {"kind": "keep"}, "pool": 2}}),
    );

    let stream = run_stream(load);

    let at = |times: &str| stream[times]["p50"]["value"].as_f64().unwrap();
    assert_eq!(
        (count(&stream, "ok"), origin.books().connections.accepted),
        (80, 2)
    );
    // Eight users on two connections of 10 ms each: a round takes 40 ms, of which 10 are service.
    assert!(
        at("response_time_s") > 2.5 * at("service_time_s"),
        "{} {}",
        at("response_time_s"),
        at("service_time_s")
    );
    // Waiting for a connection is not the generator's doing.
    assert!(stream["lag_s"]["p50"]["value"].as_f64().unwrap() < 0.005);
}

#[test]
fn connections_are_used_as_often_as_the_plan_says() {
    let opened = |reuse: Value| {
        let origin = origin();
        let with = json!({"workload": closed(1, 12), "connection": {"reuse": reuse}});
        let stream = run_stream(stream(origin.port, "/json", with));
        assert_eq!(count(&stream, "ok"), 12);
        (
            stream["connections"]["opened"].clone(),
            origin.books().connections.accepted,
        )
    };

    assert_eq!(opened(json!({"kind": "keep"})), (json!(1), 1));
    assert_eq!(opened(json!({"kind": "new"})), (json!(12), 12));
    assert_eq!(
        opened(json!({"kind": "requests", "requests": 5})),
        (json!(3), 3)
    );
}

#[test]
fn a_probe_ends_with_the_load_and_has_its_own_books() {
    let origin = origin();
    let load = stream(origin.port, "/delay/5", json!({"workload": closed(1, 60)}));
    let probe = stream(
        origin.port,
        "/json",
        json!({
            "name": "probe", "role": "probe", "connection": {"reuse": {"kind": "new"}},
            "workload": {"kind": "open", "rate_per_s": 200, "arrivals": "poisson", "max_in_flight": 10, "overflow": "drop"},
        }),
    );

    let result = run(&plan(vec![load, probe], json!({"drain_ns": 1_000 * MS})));

    let (load, probe) = (&result["streams"][0], &result["streams"][1]);
    assert_eq!((count(load, "ok"), &probe["role"]), (60, &json!("probe")));
    assert!(count(probe, "ok") > 10 && probe["law_holds"] == true);
    assert_eq!(
        probe["connections"]["opened"].as_u64().unwrap(),
        count(probe, "issued")
    );
    assert_eq!(
        origin.books().path("/json").received,
        count(probe, "issued")
    );
}

#[test]
fn a_dead_service_is_asked_less_and_less_often() {
    let origin = Origin::start(Config {
        admission: Admission::Refuse,
        ..Config::default()
    })
    .unwrap();
    let load = stream(
        origin.port,
        "/",
        json!({"workload": {"kind": "closed", "users": 4}}),
    );

    let result = run(&plan(vec![load], json!({"duration_ns": 500 * MS})));

    // 0, 10, 30, 70, 150, 310 ms: six attempts a user at most.
    let stream = &result["streams"][0];
    let refused = stream["errors"]["refused"]["count"].as_u64().unwrap();
    assert!((4..=24).contains(&refused), "{refused}");
    assert_eq!(
        (count(stream, "failed"), stream["law_holds"] == true),
        (refused, true)
    );
    assert!(result["generator"]["cpu_s"].as_f64().unwrap() < 0.2);
}

#[test]
fn failures_to_connect_have_classes_of_their_own() {
    let of = |admission: Admission| {
        let backlog = if admission == Admission::Hold { 0 } else { 128 };
        let origin = Origin::start(Config {
            admission,
            backlog,
            ..Config::default()
        })
        .unwrap();
        let with = json!({"workload": closed(6, 12), "timeout_ns": 150 * MS});
        outcomes(&run_stream(stream(origin.port, "/", with)))
    };
    let only = |outcomes: &[(String, u64)], class: &str| {
        outcomes.iter().all(|(outcome, _)| outcome == class)
    };
    let unresolved = json!({
        "workload": closed(1, 2),
        "target": {"host": "no-such-host.invalid", "port": 1, "authority": "x"},
    });

    let closed_early = of(Admission::Close);
    let held = of(Admission::Hold);

    assert!(only(&of(Admission::Refuse), "refused"));
    // Whether the end or the reset is seen first depends on whether the request had left.
    assert!(
        closed_early
            .iter()
            .all(|(o, _)| ["closed_before_response", "reset"].contains(&o.as_str())),
        "{closed_early:?}"
    );
    assert!(only(&of(Admission::Reset), "reset"));
    assert!(held.iter().any(|(o, _)| o == "connect_timeout"), "{held:?}");
    assert!(
        held.iter()
            .all(|(o, _)| ["connect_timeout", "timeout"].contains(&o.as_str())),
        "{held:?}"
    );
    assert!(only(
        &outcomes(&run_stream(stream(1, "/", unresolved))),
        "resolve"
    ));
}

#[test]
fn a_stop_keeps_what_was_done() {
    let origin = origin();
    let load = stream(
        origin.port,
        "/delay/5",
        json!({"workload": {"kind": "closed", "users": 4}}),
    );
    let plan = plan(
        vec![load],
        json!({"duration_ns": 60_000 * MS, "threads": 2, "drain_ns": 60_000 * MS}),
    );
    let mut run = Run::new(&plan.to_string()).unwrap();
    run.start().unwrap();
    assert!(!run.wait(Duration::from_millis(300)));
    let before: Value = serde_json::from_str(&run.progress()).unwrap();

    run.stop();

    assert!(run.wait(Duration::from_secs(5)));
    let result: Value = serde_json::from_str(&run.result().unwrap()).unwrap();
    let stream = &result["streams"][0];
    assert_eq!(
        (&result["status"], &stream["law_holds"]),
        (&json!("stopped"), &json!(true))
    );
    assert!(
        count(stream, "ok") >= before["streams"][0]["ok"].as_u64().unwrap()
            && count(stream, "ok") > 20
    );
    assert_eq!(before["phase"], "measure");
    assert_eq!(
        origin.books_when_idle(2_000_000_000).unwrap().received,
        count(stream, "issued")
    );
}

#[test]
fn progress_tells_where_the_run_stands_from_before_the_start_to_after_the_end() {
    let origin = origin();
    let load = stream(
        origin.port,
        "/delay/1",
        json!({"workload": {"kind": "closed", "users": 4}}),
    );
    let with = json!({"warmup_ns": 300 * MS, "duration_ns": 1_200 * MS, "drain_ns": 1_000 * MS});
    let mut run = Run::new(&plan(vec![load], with).to_string()).unwrap();
    let look = |run: &Run| -> Value { serde_json::from_str(&run.progress()).unwrap() };

    let before = look(&run);
    run.start().unwrap();
    let mut phases = Vec::new();
    let mut last = Value::Null;
    while !run.wait(Duration::from_millis(50)) {
        let now = look(&run);
        if now["phase"] == "measure" {
            last = now["streams"][0]["last"].clone();
        }
        phases.push(now["phase"].as_str().unwrap().to_owned());
    }
    let after = look(&run);

    phases.dedup();
    let stream = &after["streams"][0];
    assert_eq!(
        (&before["phase"], &before["total_s"]),
        (&json!("starting"), &json!(1.5))
    );
    assert!(
        phases.starts_with(&["warmup".to_owned(), "measure".to_owned()]),
        "{phases:?}"
    );
    assert_eq!(
        (&after["phase"], &stream["in_flight"]),
        (&json!("done"), &json!(0))
    );
    assert_eq!(stream["due"], stream["ok"]);
    assert!(
        stream["so_far"]["rps"].as_f64().unwrap() > 100.0
            && stream["so_far"]["p50_s"].as_f64().unwrap() > 0.001
    );
    // The last second holds a second, and its histogram all its successes.
    let seconds = last["seconds"].as_f64().unwrap();
    let drawn: u64 = last["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin[1].as_u64().unwrap())
        .sum();
    assert!((0.9..1.3).contains(&seconds), "{seconds}");
    assert_eq!(
        drawn,
        (last["rps"].as_f64().unwrap() * seconds).round() as u64
    );
}

#[test]
fn a_run_that_is_dropped_leaves_no_thread_and_no_connection() {
    let origin = origin();
    let load = stream(
        origin.port,
        "/delay/5",
        json!({"workload": {"kind": "closed", "users": 4}}),
    );
    let mut run =
        Run::new(&plan(vec![load], json!({"duration_ns": 60_000 * MS})).to_string()).unwrap();
    run.start().unwrap();
    run.wait(Duration::from_millis(100));

    drop(run);

    assert_eq!(
        origin
            .books_when_idle(2_000_000_000)
            .map(|books| books.open),
        Some(0)
    );
}

/// Sums of the counters of one stream by phase.
fn counted(lines: &[Value], key: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in lines.iter().filter(|line| !line["stream"].is_null()) {
        *sums
            .entry(line["phase"].as_str().unwrap().to_owned())
            .or_default() += line[key].as_u64().unwrap();
    }
    sums
}

#[test]
fn the_live_files_hold_what_the_result_says() {
    let (origin, dir) = (origin(), folder("files"));
    let load = stream(
        origin.port,
        "/delay/2",
        json!({"workload": {"kind": "closed", "users": 6}}),
    );
    let with = json!({
        "warmup_ns": 300 * MS, "duration_ns": 600 * MS, "drain_ns": 500 * MS, "threads": 2,
        "record": {"dir": dir.to_str().unwrap()},
    });

    let result = run(&plan(vec![load], with));

    let stream = &result["streams"][0];
    let text = fs::read_to_string(dir.join("counters.jsonl")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let intervals = read_intervals(&dir.join("intervals.hlog")).unwrap();
    let samples = fs::read(dir.join("samples.bin")).unwrap();
    let connections = fs::read(dir.join("connections.bin")).unwrap();
    fs::remove_dir_all(&dir).unwrap();

    // Intervals follow each other without gaps, and phases end exactly where the plan says.
    let of_stream: Vec<&Value> = lines
        .iter()
        .filter(|line| !line["stream"].is_null())
        .collect();
    let mut at = 0.0;
    for line in &of_stream {
        assert!(
            (line["start_s"].as_f64().unwrap() - at).abs() < 1e-9,
            "{line}"
        );
        at += line["length_s"].as_f64().unwrap();
    }
    let first_of = |phase: &str| {
        of_stream
            .iter()
            .find(|line| line["phase"] == phase)
            .unwrap()["start_s"]
            .as_f64()
    };
    assert_eq!(
        (first_of("measure"), first_of("drain")),
        (Some(0.3), Some(0.9))
    );
    // Counters, histograms and rows add up to the result.
    let answered = counted(&lines, "answered");
    assert_eq!(answered.values().sum::<u64>(), count(stream, "answered"));
    assert_eq!(
        Some(&answered["warmup"]),
        stream["in_warmup"]["answered"].as_u64().as_ref()
    );
    assert_eq!(
        Some(&answered["drain"]),
        stream["after_end"]["answered"].as_u64().as_ref()
    );
    let in_histograms: u64 = intervals
        .iter()
        .filter(|interval| {
            interval.tag == "load.get.ok.response" && (0.3..0.9).contains(&interval.start_s)
        })
        .flat_map(|interval| interval.counts.iter().map(|(_, count)| count))
        .sum();
    assert_eq!(
        Some(in_histograms),
        stream["response_time_s"]["count"].as_u64()
    );
    assert_eq!(rows(&samples, b"LLS1", 64), count(stream, "due"));
    assert_eq!(rows(&connections, b"LLC1", 48), 6);
}

/// Rows of a log whose chunks are whole.
fn rows(mut bytes: &[u8], magic: &[u8; 4], row_bytes: usize) -> u64 {
    let mut rows = 0;
    while !bytes.is_empty() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let payload = &bytes[16..16 + word(4) as usize * row_bytes];
        assert_eq!(
            (&bytes[..4], word(8)),
            (&magic[..], crc32fast::hash(payload))
        );
        rows += u64::from(word(4));
        bytes = &bytes[16 + payload.len()..];
    }
    rows
}

#[test]
fn a_full_disk_stops_the_log_and_not_the_counting() {
    let (origin, dir) = (origin(), folder("full"));
    std::os::unix::fs::symlink("/dev/full", dir.join("samples.bin")).unwrap();
    let load = stream(origin.port, "/json", json!({"workload": closed(2, 500)}));

    let result = run(&plan(
        vec![load],
        json!({"record": {"dir": dir.to_str().unwrap()}}),
    ));

    fs::remove_dir_all(&dir).unwrap();
    let reasons = result["reasons"].to_string();
    assert_eq!(count(&result["streams"][0], "ok"), 500);
    assert!(reasons.contains("samples.bin ends early"), "{reasons}");
}

#[test]
fn the_sample_log_is_thinned_when_it_would_pass_its_bound() {
    let (origin, dir) = (origin(), folder("thin"));
    let load = stream(
        origin.port,
        "/json",
        json!({"workload": closed(20, 30_000)}),
    );

    let result = run(&plan(
        vec![load],
        json!({"threads": 1, "record": {"dir": dir.to_str().unwrap(), "max_sample_rows": 10_000}}),
    ));

    let samples = fs::read(dir.join("samples.bin")).unwrap();
    fs::remove_dir_all(&dir).unwrap();
    let kept = rows(&samples, b"LLS1", 64);
    assert_eq!(count(&result["streams"][0], "ok"), 30_000);
    assert!((2_000..=10_000).contains(&kept), "{kept}");
}

#[test]
fn a_plan_that_cannot_be_carried_is_refused_before_anything_starts() {
    let crowd = stream(
        1,
        "/",
        json!({"workload": {"kind": "closed", "users": 4_000_000}}),
    );
    let broken = json!({"schema_version": 1, "seed": 1, "streams": []});

    let refused = Run::new(&plan(vec![crowd], json!({"duration_ns": MS})).to_string());
    let faulty = Run::new(&broken.to_string());

    assert!(matches!(
        refused,
        Err(loadlens_engine::run::Refusal::Machine(_))
    ));
    assert!(matches!(
        faulty,
        Err(loadlens_engine::run::Refusal::Plan(_))
    ));
}
