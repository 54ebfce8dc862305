//! Times: against formulas, and against what the server itself wrote down.

use loadlens_origin::{Config, Freeze, Origin};
use serde_json::{json, Value};

use crate::harness::{
    open, origin, plan, quiet, run, settled, stream, Lateness, Run, Stream, Witness, LIMIT, MS,
    SECOND,
};

/// Time that loopback and two wake-ups add to a service time on a machine that has nothing else to do.
const PATH_S: f64 = 0.0005;

/// A run, and how late the machine let a thread be meanwhile: every bound below is for a machine at rest and is
/// widened by that, once for the server and once for the generator.
struct Timed {
    run: Run,
    late: Lateness,
}

impl Timed {
    /// Seconds that the way to the server and back may add to a quantile. Where the engine reports that it was late or
    /// starved, its figures are marked, and it may be late twice: when it sends and when it receives. Compared with the
    /// server's times there are two more wake-ups: the server's to read the request, and the engine's to read the answer.
    fn path_s(&self) -> f64 {
        let generator = &self.run.result["generator"];
        let own_s = match generator["verdict"].as_str() {
            Some("kept_up") => 0.0,
            _ => generator["lag_p99_s"].as_f64().unwrap_or(0.0),
        };
        PATH_S + 2.0 * (self.late.p995_s + own_s)
    }

    /// A figure of a stream; none where the machine was away as the run ended: what had no answer then lasted longer than
    /// is known, and may be more than the figure leaves aside.
    fn seconds(&self, stream: Stream<'_>, distribution: &str, name: &str) -> Option<f64> {
        let figure = &stream.0[distribution][name];
        let value = figure["value"].as_f64();
        let is_excused = self.late.max_s > 0.01;
        assert!(
            value.is_some() || is_excused,
            "{name} is {figure}, {:?}",
            self.late
        );
        value
    }
}

fn open_stream(name: &str, origin: &Origin, path: &str, rate_per_s: f64, arrivals: &str) -> Value {
    let mut stream = stream(name, origin.port, path);
    stream["workload"] = open(rate_per_s, arrivals);
    stream["timeout_ns"] = json!(10 * SECOND);
    stream
}

fn run_for(seconds: f64, streams: Vec<Value>) -> Timed {
    let mut plan = plan(streams);
    plan["duration_ns"] = json!((seconds * 1e9) as u64);
    plan["drain_ns"] = json!(2 * SECOND);
    let witness = Witness::begin();
    let done = run(&plan, LIMIT);
    let late = witness.end();
    for stream in done.streams() {
        stream.check_law();
    }
    Timed { run: done, late }
}

/// Times of one path by the server's own log, in seconds, sorted: of what was answered before the measured part
/// ended, as the engine counts.
fn server_times(origin: &Origin, path: &str, done: &Run) -> Vec<f64> {
    let log = origin.log();
    let index = log
        .paths
        .iter()
        .position(|name| name == path)
        .expect("the path was asked for");
    let begin = done.result["t0_monotonic_ns"].as_u64().expect("t0");
    let end = begin + (done.result["measured_s"].as_f64().expect("measured_s") * 1e9) as u64;
    let of_path = log
        .rows
        .iter()
        .filter(|row| row.path as usize == index && row.answered_ns < end);
    let mut times: Vec<f64> = of_path
        .map(|row| (row.answered_ns - row.received_ns) as f64 / 1e9)
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The inverse of the empirical distribution.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    sorted[((p * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

#[test]
fn a_freeze_is_charged_to_everyone_who_was_due_in_it() {
    let _machine = quiet();
    let freeze = Freeze {
        first_ns: SECOND,
        len_ns: 200 * MS,
        every_ns: 2 * SECOND,
    };
    let origin = origin(Config {
        freeze: Some(freeze),
        ..Config::default()
    });

    let done = run_for(
        6.0,
        vec![open_stream("load", &origin, "/", 1000.0, "constant")],
    );

    // A tenth of the requests wait between 0 and 200 ms, evenly: p95 is half of it, p99 nine tenths. Waking up late is
    // the server's doing, so each request is held to the freeze as it was.
    let freezes = origin.counts().freezes;
    assert!(freezes.len() >= 3, "{freezes:?}");
    let begin = done.run.result["t0_monotonic_ns"].as_u64().expect("t0");
    let waits = |due: u64| {
        let met = freezes.iter().find(|met| (met.0..met.1).contains(&due));
        met.map_or(0.0, |met| (met.1 - due) as f64 / 1e9)
    };
    let mut truth: Vec<f64> = (0..6000).map(|k| waits(begin + k * MS)).collect();
    truth.sort_by(f64::total_cmp);
    // M1 of a freeze of 1 s every 10 s is p95 0.50 +- 0.02 and p99 0.90 +- 0.02: here all is a fifth of that.
    let load = done.run.only();
    let room = 0.004 + 2.0 * done.late.max_s + done.path_s();
    for (name, p) in [("p95", 0.95), ("p99", 0.99)] {
        let Some(seen) = done.seconds(load, "response_time_s", name) else {
            continue;
        };
        let waited = quantile(&truth, p);
        assert!(
            (seen - waited).abs() < room,
            "{name} {seen}, not {waited}, room {room}"
        );
    }
    let max = load.0["response_time_s"]["max"]
        .as_f64()
        .expect("a maximum");
    let longest = quantile(&truth, 1.0);
    assert!(
        (max - longest).abs() < room,
        "max {max}, not {longest}, room {room}"
    );
    // Sent when they were due: it was the server that was late, not the generator.
    let lag = load.seconds("lag_s", "p99").value;
    assert!(
        lag < 0.002 + 2.0 * done.late.max_s,
        "lag {lag}, {:?}",
        done.late
    );
}

#[test]
fn a_closed_loop_sees_a_freeze_once_for_each_user() {
    let _machine = quiet();
    let freeze = Freeze {
        first_ns: 500 * MS,
        len_ns: 200 * MS,
        every_ns: 0,
    };
    let origin = origin(Config {
        freeze: Some(freeze),
        ..Config::default()
    });
    let mut load = stream("load", origin.port, "/delay/2");
    load["workload"] = json!({"kind": "closed", "users": 10});

    let done = run_for(1.5, vec![load]);

    let load = done.run.only();
    let room = 0.004 + 2.0 * done.late.max_s;
    assert!(load.seconds("response_time_s", "p95").value < 0.010 + room);
    let max = load.0["response_time_s"]["max"]
        .as_f64()
        .expect("a maximum");
    let (from, until) = origin.counts().freezes[0];
    let frozen = (until - from) as f64 / 1e9; // 0.2, and what it woke late
    assert!(
        (max - frozen).abs() < room,
        "max {max}, not {frozen}, room {room}"
    );
}

#[test]
fn quantiles_agree_with_the_servers_own_records() {
    let _machine = quiet();
    let origin = origin(Config {
        log_rows: 100_000,
        ..Config::default()
    });
    let paths = [
        "/mix?ms=10:49,100:1",
        "/delay?law=exponential&mean_ms=10",
        "/delay?law=lognormal&median_ms=10&sigma=0.7",
        "/delay?law=pareto&scale_ms=5&shape=2.5",
    ];

    let streams = paths
        .iter()
        .map(|path| open_stream(path, &origin, path, 400.0, "poisson"));
    let done = run_for(4.0, streams.collect());
    settled(&origin);

    for path in paths {
        let load = done.run.stream(path);
        let truth = server_times(&origin, path, &done.run);
        let counted = load.0["service_time_s"]["count"].as_u64().expect("a count");
        // What was on its way when the measured part ended is on one side only; a generator that is kept from its
        // core has more of it.
        let astray = 3.0 + 400.0 * done.late.max_s;
        assert!(
            counted.abs_diff(truth.len() as u64) as f64 <= astray,
            "{path}: {counted} and {}",
            truth.len()
        );
        for (name, p) in [
            ("p50", 0.5),
            ("p75", 0.75),
            ("p90", 0.9),
            ("p95", 0.95),
            ("p99", 0.99),
        ] {
            let Some(seen) = done.seconds(load, "service_time_s", name) else {
                continue;
            };
            let server = quantile(&truth, p);
            // Histograms have three digits.
            let shift = astray / truth.len() as f64;
            let below = quantile(&truth, p - shift) * 0.999;
            let above = quantile(&truth, p + shift) * 1.001 + done.path_s();
            assert!(
                seen >= below,
                "{path} {name}: {seen} is below the server's {server}"
            );
            assert!(
                seen <= above,
                "{path} {name}: {seen} is above the server's {server}, {:?} {}",
                done.late,
                done.run.result["generator"]
            );
        }
    }
}

#[test]
fn a_mixture_has_the_quantiles_of_its_parts() {
    let _machine = quiet();
    let origin = origin(Config::default());

    // 2 % take 100 ms: p50 lies in the first part, p99 in the second.
    let mut load = stream("load", origin.port, "/mix?ms=20:49,100:1");
    load["workload"] = json!({"kind": "closed", "users": 20});
    let done = run_for(2.0, vec![load]);

    // A pause of the machine hits each user's request once, in the worst case those above the quantile.
    let load = done.run.only();
    let hit = 20.0 * done.late.pauses as f64 / load.requests("ok") as f64;
    let mixture = |p: f64| if p < 0.98 { 0.020 } else { 0.100 };
    for (name, p) in [("p50", 0.5), ("p99", 0.99)] {
        let Some(seen) = done.seconds(load, "response_time_s", name) else {
            continue;
        };
        assert!(seen >= mixture(p), "{name} {seen}");
        let most = mixture(p + hit) * 1.01 + done.path_s();
        let is_hit = p + hit >= 1.0;
        assert!(seen <= most || is_hit, "{name} {seen}, {:?}", done.late);
    }
}

#[test]
fn intervals_contain_the_formulas_of_m_m_1_and_m_d_1() {
    let _machine = quiet();
    let origin = origin(Config::default());
    let (service_s, rate, seconds) = (0.004, 125.0, 9.0); // half busy
    let markov = "/mm1?mean_ms=4&seed=5";
    let constant = "/md1?ms=4";

    let done = run_for(
        seconds,
        vec![
            open_stream("mm1", &origin, markov, rate, "poisson"),
            open_stream("md1", &origin, constant, rate, "poisson"),
        ],
    );

    // M/M/1: the response time is exponential with mean 1 / (mu - lambda).
    let mean = 1.0 / (1.0 / service_s - rate);
    let quantile = |p: f64| -mean * (1.0 - p).ln();
    // A pause of L makes a queue that takes as long to go at half load: L² rate more waiting for all together, and all
    // who come in 2 L are late, in the worst case those above the quantile.
    let more = done.late.away_s2 / seconds;
    let late = |p: f64| quantile((p / (1.0 - 2.0 * done.late.away_s / seconds).max(p)).min(0.999));
    check_interval(&done, done.run.stream("mm1"), "mean", mean, mean + more);
    check_interval(
        &done,
        done.run.stream("mm1"),
        "p50",
        quantile(0.5),
        late(0.5),
    );
    check_interval(
        &done,
        done.run.stream("mm1"),
        "p90",
        quantile(0.9),
        late(0.9),
    );
    // M/D/1: Pollaczek and Khinchine, rho / (2 (1 - rho)) service times of waiting.
    let mean = service_s * 1.5;
    check_interval(&done, done.run.stream("md1"), "mean", mean, mean + more);
}

/// The interval, widened by what the way to the server and back adds, contains the truth: without pauses of the machine
/// `truth`, with them at most `most`.
fn check_interval(done: &Timed, load: Stream<'_>, name: &str, truth: f64, most: f64) {
    if done.seconds(load, "response_time_s", name).is_none() {
        return;
    }
    let seen = load.seconds("response_time_s", name);
    let overlaps = seen.low <= most + done.path_s() && truth <= seen.high;
    assert!(
        overlaps,
        "{} {name}: {seen:?} does not contain {truth} to {most}, {:?}",
        load.0["name"], done.late
    );
    // How wide it is depends on who else is at work: a stalled server meets its arrivals in bunches.
    if done.late.max_s < 0.005 {
        assert!(
            seen.high < 3.0 * truth,
            "{} {name}: {seen:?} says nothing",
            load.0["name"]
        );
    }
}

#[test]
fn requests_of_an_open_load_leave_when_they_are_due() {
    let _machine = quiet();
    let origin = origin(Config {
        log_rows: 100_000,
        ..Config::default()
    });

    let done = run_for(
        2.0,
        vec![open_stream("load", &origin, "/", 2000.0, "constant")],
    );

    let log = origin.log();
    let times: Vec<u64> = log.rows.iter().map(|row| row.received_ns).collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    let rate = (times.len() - 1) as f64 / ((last - first) as f64 / 1e9);
    // M3: a tenth of a percent over 10 s, so half of one over 2 s; the ends may be as late as the machine is.
    let room = 0.005 + done.late.max_s;
    assert!(
        (rate / 2000.0 - 1.0).abs() < room,
        "the server saw {rate} a second, room {room}"
    );
    // After a pause all that was due in it is sent at once, which takes its time too.
    let lag = done.run.only().seconds("lag_s", "p99").value;
    assert!(
        lag < 0.001 + 2.0 * done.late.max_s,
        "lag {lag}, {:?}",
        done.late
    );
}

#[test]
fn a_stream_of_probes_sees_what_the_load_does_to_others() {
    let _machine = quiet();
    let origin = origin(Config::default());
    let mut load = open_stream("load", &origin, "/md1?ms=4", 200.0, "poisson"); // busy 0.8
    load["connection"] = json!({"reuse": {"kind": "keep"}});
    let mut probe = open_stream("probe", &origin, "/md1?ms=4", 20.0, "poisson");
    probe["role"] = json!("probe");
    probe["connection"] = json!({"reuse": {"kind": "new"}});

    let done = run_for(3.0, vec![load, probe]);

    let seen = done
        .run
        .stream("probe")
        .seconds("response_time_s", "mean")
        .value;
    assert!(seen > 0.006, "{seen}: the probe waits in the same queue");
    assert_eq!(done.run.stream("probe").0["role"], "probe");
}
