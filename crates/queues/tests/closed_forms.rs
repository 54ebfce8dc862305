//! The simulation against closed forms. Each figure is the mean over seeds, and may be off by four of its standard
//! errors, which the spread over the seeds gives.

use loadlens_queues::{simulate, Model, Outcome};
use serde_json::{json, Value};

const SEEDS: u64 = 16;

fn run(model: &Value, seed: u64) -> Outcome {
    let mut model = model.clone();
    model["schema_version"] = json!(1);
    model["seed"] = json!(seed);
    let model: Model = serde_json::from_value(model).expect("a model");
    let outcome = simulate(&model).expect("no faults");
    assert_eq!(outcome.status, "complete");
    outcome
}

/// Mean and standard error of a figure over seeds.
fn over_seeds(model: &Value, figure: impl Fn(&Outcome) -> f64) -> (f64, f64) {
    let figures: Vec<f64> = (1..=SEEDS).map(|seed| figure(&run(model, seed))).collect();
    let n = SEEDS as f64;
    let mean = figures.iter().sum::<f64>() / n;
    let squares: f64 = figures.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

#[track_caller]
fn assert_near(model: &Value, exact: f64, figure: impl Fn(&Outcome) -> f64) {
    let (mean, error) = over_seeds(model, figure);
    assert!(
        error < 0.02 * exact,
        "too short to judge: {mean} +- {error}"
    );
    assert!(
        (mean - exact).abs() <= 4.0 * error + 1e-9,
        "{mean} +- {error}, exact {exact}"
    );
}

fn mean(outcome: &Outcome) -> f64 {
    outcome.streams[0].all.mean_s.expect("answers")
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.streams[0].all.rate_per_s
}

fn exponential(mean: f64) -> Value {
    json!({"kind": "exponential", "mean_s": mean})
}

fn fixed(s: f64) -> Value {
    json!({"kind": "fixed", "s": s})
}

fn open(name: &str, rate: f64, class: &str) -> Value {
    json!({"name": name, "load": {"kind": "open", "rate_per_s": rate, "arrivals": "poisson"},
        "scenarios": [{"weight": 1, "steps": [{"class": class}]}]})
}

fn closed(name: &str, users: u32, think: Value, class: &str) -> Value {
    json!({"name": name, "load": {"kind": "closed", "users": users, "think": think},
        "scenarios": [{"weight": 1, "steps": [{"class": class}]}]})
}

/// One station with this stream; `work` of class a.
fn one_station(discipline: &str, capacity: f64, work: Value, stream: Value, seconds: f64) -> Value {
    json!({"warmup_s": seconds / 10.0, "duration_s": seconds, "most_events": 100_000_000,
        "stations": [{"name": "s", "discipline": discipline, "capacity": capacity}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": work}]}],
        "streams": [stream]})
}

/// Machine repairman M/M/c//N: throughput and response time from the birth-death chain.
fn repairman(users: u32, think: f64, service: f64, servers: u32) -> (f64, f64) {
    let mut weights = vec![1.0];
    for n in 1..=users {
        let up = f64::from(users - n + 1) / think;
        let down = f64::from(n.min(servers)) / service;
        weights.push(weights[n as usize - 1] * up / down);
    }
    let whole: f64 = weights.iter().sum();
    let busy: f64 = weights
        .iter()
        .enumerate()
        .map(|(n, w)| (n as f64).min(f64::from(servers)) * w / whole)
        .sum();
    let rate = busy / service;
    (rate, f64::from(users) / rate - think)
}

/// Mean value analysis (Reiser and Lavenberg 1980): throughput and response time of a closed network.
fn mva(demands: &[f64], think: f64, users: u32) -> (f64, f64) {
    let mut queues = vec![0.0; demands.len()];
    let mut rate = 0.0;
    for n in 1..=users {
        let times: Vec<f64> = demands
            .iter()
            .zip(&queues)
            .map(|(d, q)| d * (1.0 + q))
            .collect();
        rate = f64::from(n) / (think + times.iter().sum::<f64>());
        queues = times.iter().map(|t| rate * t).collect();
    }
    (rate, f64::from(users) / rate - think)
}

#[test]
fn m_m_1_has_its_mean_and_its_quantiles() {
    // R is exponential with mean 1 / (mu - lambda).
    let model = one_station(
        "fifo",
        1.0,
        exponential(1.0),
        open("load", 0.7, "a"),
        100_000.0,
    );

    assert_near(&model, 1.0 / 0.3, mean);
    assert_near(&model, 0.7, rate);
    assert_near(&model, 2f64.ln() / 0.3, |o| o.streams[0].all.p50_s.unwrap());
    assert_near(&model, 100f64.ln() / 0.3, |o| {
        o.streams[0].all.p99_s.unwrap()
    });
    assert_near(&model, 0.7, |o| o.stations[0].used);
    assert_near(&model, 0.7 * 0.7 / 0.3, |o| o.stations[0].waiting); // Little's law on the queue
}

#[test]
fn m_m_c_waits_as_erlang_says() {
    // Erlang C for 3 servers and 2.4 erlangs: B = (a^3/6)/(1 + a + a^2/2 + a^3/6), C = B / (1 - rho (1 - B)).
    let a: f64 = 2.4;
    let b = (a.powi(3) / 6.0) / (1.0 + a + a * a / 2.0 + a.powi(3) / 6.0);
    let c = b / (1.0 - a / 3.0 * (1.0 - b));
    let model = one_station(
        "fifo",
        3.0,
        exponential(1.0),
        open("load", a, "a"),
        50_000.0,
    );

    assert_near(&model, 1.0 + c / (3.0 - a), mean);
    assert_near(&model, a, |o| o.stations[0].used);
}

#[test]
fn m_d_1_waits_half_as_long_as_m_m_1() {
    // Pollaczek and Khinchine: W = rho D / (2 (1 - rho)); a request does not wait with probability 1 - rho.
    let model = one_station("fifo", 1.0, fixed(1.0), open("load", 0.4, "a"), 50_000.0);

    assert_near(&model, 1.0 + 0.4 / 1.2, mean);
    let (median, spread) = over_seeds(&model, |o| o.streams[0].all.p50_s.unwrap());
    assert!((median - 1.0).abs() < 1e-9 && spread < 1e-9); // 60 % do not wait at all
}

#[test]
fn shared_processors_do_not_mind_how_work_varies() {
    // M/G/1 with processor sharing: S / (1 - rho), whatever the law of S.
    for work in [
        fixed(1.0),
        exponential(1.0),
        json!({"kind": "lognormal", "mean_s": 1.0, "cv": 1.5}),
    ] {
        let model = one_station("ps", 1.0, work, open("load", 0.6, "a"), 60_000.0);

        assert_near(&model, 1.0 / 0.4, mean);
    }
}

#[test]
fn a_request_gets_one_core_at_most() {
    // M/M/2 and two shared cores: the same birth-death chain, so the same mean: B = 0.72/2.92, C = B/(1 - 0.6(1 - B)).
    let a: f64 = 1.2;
    let b = (a * a / 2.0) / (1.0 + a + a * a / 2.0);
    let c = b / (1.0 - a / 2.0 * (1.0 - b));
    let model = one_station("ps", 2.0, exponential(1.0), open("load", a, "a"), 50_000.0);

    assert_near(&model, 1.0 + c / (2.0 - a), mean);
}

#[test]
fn machine_repairman_is_exact() {
    for (users, servers) in [(1, 1), (6, 1), (6, 2), (30, 4)] {
        let stream = closed("load", users, exponential(2.0), "a");
        let model = one_station(
            "fifo",
            f64::from(servers),
            exponential(0.5),
            stream,
            20_000.0,
        );
        let (x, r) = repairman(users, 2.0, 0.5, servers);

        assert_near(&model, x, rate);
        assert_near(&model, r, mean);
    }
}

#[test]
fn a_closed_network_is_as_mean_value_analysis_says() {
    let model = json!({"warmup_s": 500, "duration_s": 10_000,
        "stations": [{"name": "s", "discipline": "fifo", "capacity": 1}, {"name": "p", "discipline": "ps", "capacity": 1}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": exponential(0.2)},
            {"do": "delay", "time": {"kind": "uniform", "low_s": 0.1, "high_s": 0.5}},
            {"do": "serve", "station": "p", "work": {"kind": "erlang", "shape": 3, "mean_s": 0.3}}]}],
        "streams": [closed("load", 8, exponential(1.0), "a")]});
    let (x, r) = mva(&[0.2, 0.3], 1.3, 8);

    assert_near(&model, x, rate);
    assert_near(&model, r + 0.3, mean); // the delay is thinking to the formula
}

#[test]
fn users_and_a_stream_share_a_station_as_the_mixed_network_says() {
    // Closed class with D / (1 - rho_o); open class D_o (1 + Q_closed) / (1 - rho_o).
    let (d, rate_o, z) = (0.1, 3.0, 0.5);
    let rho = rate_o * d;
    let model = json!({"warmup_s": 500, "duration_s": 10_000,
        "stations": [{"name": "s", "discipline": "ps", "capacity": 1}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": exponential(d)}]},
            {"name": "b", "route": [{"do": "serve", "station": "s", "work": exponential(d)}]}],
        "streams": [closed("load", 5, exponential(z), "a"), open("probe", rate_o, "b")]});
    let (x, r) = mva(&[d / (1.0 - rho)], z, 5);

    assert_near(&model, x, rate);
    assert_near(&model, d * (1.0 + x * r) / (1.0 - rho), |o| {
        o.streams[1].all.mean_s.unwrap()
    });
}

/// k workers, each a FIFO server, under a policy.
fn workers(k: u32, policy: &str, users: u32) -> Value {
    json!({"warmup_s": 500, "duration_s": 10_000, "groups": [{"name": "w", "size": k, "policy": policy}],
        "stations": [{"name": "s", "discipline": "fifo", "capacity": 1, "each": "w"}],
        "classes": [{"name": "a", "route": [{"do": "choose", "group": "w"},
            {"do": "serve", "station": "s", "work": exponential(0.5)}]}],
        "streams": [closed("load", users, exponential(1.0), "a")]})
}

#[test]
fn workers_drawn_at_random_are_a_closed_network() {
    // Each of k stations has the demand D / k.
    let (x, r) = mva(&[0.125; 4], 1.0, 16);
    let model = workers(4, "random", 16);

    assert_near(&model, x, rate);
    assert_near(&model, r, mean);
}

#[test]
fn users_dealt_to_workers_are_as_many_repairmen() {
    let (x, r) = repairman(4, 1.0, 0.5, 1);
    let model = workers(4, "sticky", 16);

    assert_near(&model, 4.0 * x, rate);
    assert_near(&model, r, mean);
}

#[test]
fn only_the_first_worker_is_one_worker() {
    let (x, _) = repairman(6, 1.0, 0.5, 1);

    assert_near(&workers(4, "first", 6), x, rate);
}

#[test]
fn better_policies_stand_between_random_and_one_queue() {
    let random = mva(&[0.125; 4], 1.0, 16).1;
    let one_queue = repairman(16, 1.0, 0.5, 4).1;

    let means = ["least_connections", "random_two", "round_robin"]
        .map(|policy| over_seeds(&workers(4, policy, 16), mean).0);

    assert!(
        one_queue < means[0] && means[0] < means[1] && means[1] < random,
        "{means:?}"
    );
    assert!(means[0] < means[2] && means[2] < random, "{means:?}");
}

#[test]
fn users_drawn_to_workers_fare_worse_than_users_dealt() {
    let dealt = over_seeds(&workers(4, "sticky", 16), mean).0;
    let drawn = over_seeds(&workers(4, "sticky_random", 16), mean).0;

    assert!(drawn > dealt, "{drawn} {dealt}");
}

#[test]
fn a_pool_that_is_held_while_time_passes_is_so_many_servers() {
    let model = json!({"warmup_s": 500, "duration_s": 10_000,
        "stations": [{"name": "pool", "discipline": "semaphore", "capacity": 3}],
        "classes": [{"name": "a", "route": [{"do": "acquire", "station": "pool"},
            {"do": "delay", "time": exponential(0.5)}, {"do": "release", "station": "pool"}]}],
        "streams": [closed("load", 9, exponential(1.0), "a")]});
    let (x, r) = repairman(9, 1.0, 0.5, 3);

    assert_near(&model, x, rate);
    assert_near(&model, r, mean);
    assert_near(&model, x * 0.5, |o| o.stations[0].used);
}

#[test]
fn requests_of_an_iteration_and_their_pauses_add_up() {
    // One user: 2 + 1 thinking, 0.5 and 0.25 served, 0.75 pause: X = 2 / 4.5 requests/s.
    let model = json!({"warmup_s": 0, "duration_s": 9_000,
        "stations": [{"name": "s", "discipline": "fifo", "capacity": 1}],
        "classes": [{"name": "a", "route": [{"do": "serve", "station": "s", "work": fixed(0.5)}]},
            {"name": "b", "route": [{"do": "serve", "station": "s", "work": fixed(0.25)}]}],
        "streams": [{"name": "load", "load": {"kind": "closed", "users": 1, "think": fixed(3.0)},
            "scenarios": [{"weight": 1, "steps": [{"class": "a", "think": fixed(0.75)}, {"class": "b", "think": fixed(99.0)}]}]}]});

    let outcome = run(&model, 1);

    assert!((rate(&outcome) - 2.0 / 4.5).abs() < 2.0 / 9_000.0);
    assert!((outcome.streams[0].classes[0].times.mean_s.unwrap() - 0.5).abs() < 1e-9);
    assert!((outcome.streams[0].classes[1].times.mean_s.unwrap() - 0.25).abs() < 1e-9);
}

#[test]
fn scenarios_are_drawn_by_their_weights() {
    let model = json!({"warmup_s": 0, "duration_s": 10_000, "stations": [],
        "classes": [{"name": "a", "route": [{"do": "delay", "time": fixed(0.5)}]}, {"name": "b", "route": []}],
        "streams": [{"name": "load", "load": {"kind": "closed", "users": 2, "think": fixed(0.5)},
            "scenarios": [{"weight": 5, "steps": [{"class": "a"}]}, {"weight": 1, "steps": [{"class": "b"}]}]}]});

    assert_near(&model, 5.0 / 6.0, |o| {
        o.streams[0].classes[0].times.count as f64 / o.streams[0].all.count as f64
    });
}
