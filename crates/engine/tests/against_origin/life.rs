//! The life of a run: refused or begun, watched, stopped, dropped, ended by its load.

use std::time::{Duration, Instant};

use loadlens_engine::run::{Refusal, Run};
use loadlens_origin::{Admission, Config};
use serde_json::{json, Value};

use crate::harness::{
    closed, meet, open, origin, plan, run_and, settled, settled_after, shared, stream, LIMIT, MS,
    SECOND,
};

fn progress(run: &Run) -> Value {
    serde_json::from_str(&run.progress()).expect("progress is JSON")
}

#[test]
fn a_plan_that_cannot_be_carried_is_refused_before_anything_starts() {
    let mut crowd = stream("load", 1, "/");
    crowd["workload"] = json!({"kind": "closed", "users": 4_000_000});
    let mut crowd = plan(vec![crowd]);
    crowd["duration_ns"] = json!(MS);

    let refused = Run::new(&crowd.to_string());
    let faulty = Run::new(&plan(vec![]).to_string());

    assert!(matches!(refused, Err(Refusal::Machine(_))));
    assert!(matches!(faulty, Err(Refusal::Plan(_))));
}

#[test]
fn progress_tells_where_the_run_stands_from_before_the_start_to_after_the_end() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/1");
    stream["workload"] = json!({"kind": "closed", "users": 4});
    let mut plan = plan(vec![stream]);
    plan["warmup_ns"] = json!(1_500 * MS);
    plan["duration_ns"] = json!(2_500 * MS);
    plan["drain_ns"] = json!(5 * SECOND); // it ends with the last answer
    let mut run = Run::new(&plan.to_string()).expect("the plan is good");

    let before = progress(&run);
    run.start().expect("the run starts");
    let mut phases = Vec::new();
    let mut lasts = Vec::new();
    while !run.wait(Duration::from_millis(50)) {
        let now = progress(&run);
        if now["phase"] == "measure" {
            lasts.push(now["streams"][0]["last"].clone());
        }
        phases.push(now["phase"].as_str().expect("a phase").to_owned());
    }
    let after = progress(&run);

    phases.dedup();
    phases.retain(|phase| phase != "starting"); // it may last a while on a busy machine
    let stream = &after["streams"][0];
    assert_eq!(
        (&before["phase"], &before["total_s"]),
        (&json!("starting"), &json!(4.0))
    );
    assert!(
        phases.starts_with(&["warmup".to_owned(), "measure".to_owned()]),
        "{phases:?}"
    );
    assert_eq!(
        (&after["phase"], &stream["in_flight"]),
        (&json!("done"), &json!(0))
    );
    // A user whose pause of no length ended with the measured part is due and sends no more.
    let count = |key: &str| stream[key].as_u64().expect("a count");
    assert_eq!(count("due"), count("ok") + count("waiting"));
    assert!(count("waiting") <= 4);
    let so_far = |key: &str| stream["so_far"][key].as_f64().expect("a number");
    assert!(so_far("rps") > 100.0 && so_far("p50_s") > 0.001);
    // The histogram of the last second holds all its successes, and the last second a second, where no interval is
    // longer because the thread was away.
    let seconds = |last: &Value| last["seconds"].as_f64().expect("seconds");
    for last in &lasts {
        let bins = last["histogram"].as_array().expect("a histogram");
        let drawn: u64 = bins.iter().filter_map(|bin| bin[1].as_u64()).sum();
        let rate = last["rps"].as_f64().expect("a rate");
        assert_eq!(drawn, (rate * seconds(last)).round() as u64, "{last}");
    }
    assert!(
        lasts.iter().any(|last| (0.9..1.3).contains(&seconds(last))),
        "{lasts:?}"
    );
}

#[test]
fn progress_counts_each_answer_that_was_not_as_expected_for_what_it_is() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut load = stream("load", origin.port, "/status?codes=200:3,500:1");
    load["workload"] = closed(1, 40);
    load["scenarios"][0]["steps"][0]["checks"] = json!([{"kind": "size", "is": {"above": 1e9}}]);

    let mut run = Run::new(&plan(vec![load]).to_string()).expect("the plan is good");
    run.start().expect("the run starts");
    assert!(run.wait(LIMIT));

    let so_far = &progress(&run)["streams"][0]["so_far"];
    let counts = ["unexpected_status", "check_failed", "failed"].map(|name| &so_far[name]);
    assert_eq!(counts, [&json!(10), &json!(30), &json!(0)], "{so_far}");
    assert_eq!(
        (&so_far["rps"], &so_far["p50_s"]),
        (&json!(0.0), &json!(null))
    );
}

#[test]
fn a_run_that_is_stopped_keeps_its_counts_and_ends_at_once() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/5");
    stream["workload"] = json!({"kind": "closed", "users": 4});
    let mut plan = plan(vec![stream]);
    plan["threads"] = json!(2);
    plan["duration_ns"] = json!(60 * SECOND);
    plan["drain_ns"] = json!(60 * SECOND);
    let mut before = Value::Null;

    let done = run_and(&plan, LIMIT, |run| {
        let until = Instant::now() + LIMIT / 2;
        while before["streams"][0]["ok"].as_u64() < Some(20) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            before = progress(run);
        }
        run.stop();
    });

    let load = done.only();
    load.check_law();
    assert_eq!(done.result["status"], "stopped");
    assert_eq!(before["phase"], "measure");
    let seen = before["streams"][0]["ok"].as_u64().expect("a count");
    assert!(load.requests("ok") >= seen.max(20));
    load.check_received(settled_after(&origin, &done).received);
}

#[test]
fn a_run_that_is_dropped_leaves_no_thread_and_no_connection() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/5");
    stream["workload"] = json!({"kind": "closed", "users": 4});
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(60 * SECOND);
    let mut run = Run::new(&plan.to_string()).expect("the plan is good");
    run.start().expect("the run starts");
    run.wait(Duration::from_millis(100));

    drop(run);

    assert_eq!(settled(&origin).open, 0);
}

#[test]
fn a_probe_ends_with_the_load_and_has_its_own_counts() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut load = stream("load", origin.port, "/delay/5");
    load["workload"] = closed(1, 60);
    let mut probe = stream("probe", origin.port, "/json");
    probe["role"] = json!("probe");
    probe["workload"] = open(200.0, "poisson");
    probe["connection"] = json!({"reuse": {"kind": "new"}});
    let mut plan = plan(vec![load, probe]);
    plan["drain_ns"] = json!(5 * SECOND); // it ends with the last answer

    let (done, counts) = meet(&origin, &plan);

    let probe = done.stream("probe");
    assert_eq!(done.stream("load").requests("ok"), 60);
    assert_eq!(probe.0["role"], "probe");
    assert!(probe.requests("ok") > 10);
    assert_eq!(probe.connections("opened"), probe.requests("issued"));
    probe.check_received(counts.path("/json").received);
}

#[test]
fn a_server_that_goes_away_in_the_middle_leaves_every_request_accounted_for() {
    let _machine = shared();
    let mut served = Some(origin(Config::default()));
    let port = served.as_ref().expect("it runs").port;
    let mut stream = stream("load", port, "/delay/5");
    stream["workload"] =
        json!({"kind": "closed", "users": 10, "think": {"kind": "fixed", "ns": MS}});
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(4 * SECOND);

    let done = run_and(&plan, LIMIT, |run| {
        let until = Instant::now() + Duration::from_secs(2);
        while progress(run)["streams"][0]["ok"].as_u64() < Some(20) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(served.take());
        // The port stays ours: otherwise the users would send to the process that takes it.
        served = Some(origin(Config {
            port,
            admission: Admission::Refuse,
            ..Config::default()
        }));
    });

    let load = done.only();
    load.check_law();
    assert!(load.requests("ok") > 0);
    assert!(load.errors("refused") > 0, "{}", load.0["errors"]);
}
