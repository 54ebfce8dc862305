//! Plans, runs, and the places in a result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadlens_origin::{Config, Counts, Origin};
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// More time than any run of these tests needs.
pub const LIMIT: Duration = Duration::from_secs(30);

static MACHINE: RwLock<()> = RwLock::new(());

/// Threads that sleep and wake while a test judges times, one on each core: a host may take a single core away. How late
/// they wake is the lateness that this machine imposes on every program, and the error to expect of a figure.
pub struct Witness {
    threads: Vec<JoinHandle<Vec<f64>>>,
    ends: Arc<AtomicBool>,
}

/// Lateness of the witnesses, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// One waking in 200 is later, so of two in a row together one pair in a hundred is later than twice this.
    pub p995_s: f64,
    pub max_s: f64,
    /// Wakings that were later than twice `p995_s` and a millisecond: more than what a way there and back may add.
    pub pauses: usize,
    /// All lateness of more than a millisecond, of all cores.
    pub away_s: f64,
    /// Its squares, in square seconds: of a pause of L, arrivals at rate r wait r L² / 2 together.
    pub away_s2: f64,
}

impl Witness {
    pub fn begin() -> Witness {
        let ends = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let watch = |core: usize| {
            let ends = ends.clone();
            std::thread::spawn(move || {
                // If the core cannot be set, this thread watches the core that it sleeps on.
                let _ = loadlens_sys::confine(&[core]);
                let mut late = Vec::new();
                while !ends.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    std::thread::sleep(Duration::from_millis(1));
                    late.push(began.elapsed().as_secs_f64() - 0.001);
                }
                late
            })
        };
        let threads = (0..cores).map(watch).collect();
        Witness { threads, ends }
    }

    pub fn end(self) -> Lateness {
        self.ends.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        let mut late: Vec<f64> = threads
            .flat_map(|thread| thread.join().expect("the witness lives"))
            .collect();
        late.sort_by(f64::total_cmp);
        let at = |share: f64| {
            late.get((late.len() as f64 * share) as usize)
                .or(late.last())
                .copied()
                .unwrap_or(0.0)
        };
        let p995_s = at(0.995);
        let away = || late.iter().filter(|late| **late > 0.001);
        Lateness {
            p995_s,
            max_s: at(1.0),
            pauses: away().filter(|late| **late > 0.001 + 2.0 * p995_s).count(),
            away_s: away().sum(),
            away_s2: away().map(|late| late * late).sum(),
        }
    }
}

/// The machine for a test that judges times: nothing else runs.
pub fn quiet() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine for a test that only counts.
pub fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

pub fn origin(config: Config) -> Origin {
    Origin::start(config).expect("the origin starts")
}

/// A stream of GETs for `path`: two users, ten requests, more patience than any machine needs.
pub fn stream(name: &str, port: u16, path: &str) -> Value {
    json!({
        "name": name,
        "role": "load",
        "target": {"host": "127.0.0.1", "port": port, "authority": format!("127.0.0.1:{port}")},
        "scenarios": [{"name": "scenario", "weight": 1.0, "steps": [{"name": "step", "method": "GET", "path": path}]}],
        "workload": closed(2, 10),
        "timeout_ns": 10 * SECOND,
    })
}

pub fn closed(users: u32, requests: u64) -> Value {
    json!({"kind": "closed", "users": users, "requests": requests})
}

/// An open workload with room for everything.
pub fn open(rate_per_s: f64, arrivals: &str) -> Value {
    json!({
        "kind": "open", "rate_per_s": rate_per_s, "arrivals": arrivals,
        "max_in_flight": 2000, "overflow": "queue",
    })
}

/// SHA-256 of a file's content as a plan names it.
pub fn digest(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn plan(streams: Vec<Value>) -> Value {
    json!({"schema_version": 1, "seed": 1, "threads": 1, "streams": streams})
}

/// A finished run.
pub struct Run {
    pub result: Value,
}

/// Runs a plan to its end. A run that has not ended `limit` after its start fails the test.
pub fn run(plan: &Value, limit: Duration) -> Run {
    run_and(plan, limit, |_| {})
}

/// Runs a plan, does something while it runs, and waits for its end.
pub fn run_and(
    plan: &Value,
    limit: Duration,
    meanwhile: impl FnOnce(&loadlens_engine::run::Run),
) -> Run {
    let mut run = loadlens_engine::run::Run::new(&plan.to_string()).expect("the plan is good");
    let began = Instant::now();
    run.start().expect("the run starts");
    meanwhile(&run);
    let ended = run.wait(limit.saturating_sub(began.elapsed()));
    let elapsed = began.elapsed();
    assert!(ended, "still running after {elapsed:?}: {}", run.progress());
    let result =
        serde_json::from_str(&run.result().expect("it has ended")).expect("the result is JSON");
    Run { result }
}

impl Run {
    pub fn stream(&self, name: &str) -> Stream<'_> {
        let all = self.result["streams"].as_array().expect("streams");
        Stream(
            all.iter()
                .find(|stream| stream["name"] == name)
                .expect("the stream"),
        )
    }

    /// The one stream of the run.
    pub fn only(&self) -> Stream<'_> {
        Stream(&self.result["streams"][0])
    }

    pub fn streams(&self) -> impl Iterator<Item = Stream<'_>> {
        self.result["streams"]
            .as_array()
            .expect("streams")
            .iter()
            .map(Stream)
    }
}

/// One stream of a result.
#[derive(Clone, Copy)]
pub struct Stream<'a>(pub &'a Value);

impl<'a> Stream<'a> {
    pub fn requests(&self, name: &str) -> u64 {
        self.0["requests"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name} in {}", self.0["requests"]))
    }

    pub fn connections(&self, name: &str) -> u64 {
        self.0["connections"][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name} in {}", self.0["connections"]))
    }

    /// Connections whose TCP handshake we saw the end of.
    pub fn stood(&self) -> u64 {
        self.0["phases_s"]["connect"]["count"]
            .as_u64()
            .expect("a count")
    }

    /// All that was issued came to the server, but for what waited for a handshake when the run ended.
    pub fn check_received(&self, received: u64) {
        let issued = self.requests("issued");
        let cut = self.connections("opened") - self.stood();
        assert!(
            received <= issued && issued <= received + cut,
            "{issued} issued, {received} received, {cut} connections cut in their handshake"
        );
    }

    /// Failures of one class.
    pub fn errors(&self, class: &str) -> u64 {
        self.0["errors"][class]["count"].as_u64().unwrap_or(0)
    }

    /// Every outcome that occurred, with its count.
    pub fn outcomes(&self) -> Vec<(String, u64)> {
        let judged = ["ok", "unexpected_status", "check_failed"]
            .map(|name| (name.to_owned(), self.requests(name)));
        let failed = self.0["errors"].as_object().expect("errors").iter();
        let failed =
            failed.map(|(class, error)| (class.clone(), error["count"].as_u64().expect("count")));
        judged
            .into_iter()
            .chain(failed)
            .filter(|outcome| outcome.1 > 0)
            .collect()
    }

    /// A number of seconds, such as `("response_time_s", "p99")`, with its interval.
    pub fn seconds(&self, distribution: &str, quantile: &str) -> Estimate {
        let at = &self.0[distribution][quantile];
        Estimate {
            value: at["value"]
                .as_f64()
                .unwrap_or_else(|| panic!("{distribution} {quantile} is {at}")),
            low: at["low"].as_f64().unwrap_or(0.0),
            high: at["high"].as_f64().unwrap_or(f64::INFINITY),
        }
    }

    /// The law of counting, recomputed from the counts.
    pub fn check_law(&self) {
        let count = |name| self.requests(name);
        let text = &self.0["law"];
        assert_eq!(
            count("due"),
            count("issued") + count("dropped") + count("waiting"),
            "{text}"
        );
        assert_eq!(
            count("issued"),
            count("answered") + count("failed") + count("in_flight"),
            "{text}"
        );
        let judged = count("ok") + count("unexpected_status") + count("check_failed");
        assert_eq!(count("answered"), judged, "{text}");
        for step in self.0["steps"].as_array().expect("steps") {
            let answered = &step["requests"]["answered"];
            for check in step["checks"].as_array().expect("checks") {
                let of = |key: &str| check[key].as_u64().expect("count");
                let verdicts = of("passed") + of("failed") + of("not_judged");
                assert_eq!(answered, verdicts, "{check}");
            }
        }
        let failed: u64 = self.0["errors"]
            .as_object()
            .expect("errors")
            .values()
            .map(|error| error["count"].as_u64().expect("count"))
            .sum();
        assert_eq!(count("failed"), failed, "{}", self.0["errors"]);
        assert_eq!(self.0["law_holds"], true, "{text}");
    }
}

/// A figure with its interval, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// The counts once the origin has read all that the engine sent.
pub fn settled(origin: &Origin) -> Counts {
    origin
        .counts_when_idle(20 * SECOND)
        .unwrap_or_else(|| panic!("connections stay open: {:?}", origin.counts()))
}

/// The same on all connections that stood in a run, the first one of this origin: the kernel may take its time to hand
/// over the last ones.
pub fn settled_after(origin: &Origin, done: &Run) -> Counts {
    let stood: u64 = done.streams().map(|stream| stream.stood()).sum();
    let until = Instant::now() + LIMIT;
    loop {
        let counts = settled(origin);
        if counts.connections.accepted >= stood || Instant::now() > until {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a plan to its end: the law of counting holds for every stream, and no rule of HTTP was broken.
pub fn meet(origin: &Origin, plan: &Value) -> (Run, Counts) {
    let done = run(plan, LIMIT);
    let counts = settled_after(origin, &done);
    check_manners(&counts);
    done.streams().for_each(|stream| stream.check_law());
    (done, counts)
}

/// No rule of HTTP was broken by what the engine sent.
pub fn check_manners(counts: &Counts) {
    assert_eq!(counts.violations, 0, "{:#?}", counts.violation_samples);
    assert_eq!(counts.pipelined, 0);
}
