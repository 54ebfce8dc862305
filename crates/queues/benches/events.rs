//! Cost of an event, in nanoseconds: `cargo bench -p loadlens-queues --bench events`.
//!
//! The median of several simulations of some 200,000 events. Not a gate: the aim is 100,000 events in 0.2 s, 2,000 ns each.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program prints is its output"
)]

use std::time::Instant;

use loadlens_queues::{simulate, Model};

const ROUNDS: usize = 21;

fn measure(name: &str, text: &str) {
    let model: Model = serde_json::from_str(text).expect("a model");
    let mut events = 0;
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            let outcome = simulate(&model).expect("no faults");
            events = outcome.events;
            start.elapsed().as_nanos() as f64 / events as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "{name:32} {events:8} events {:7.1} ns each (best {:.1})",
        rounds[ROUNDS / 2],
        rounds[0]
    );
}

fn main() {
    measure(
        "one FIFO server, 20 users",
        r#"{"schema_version":1,"seed":1,"warmup_s":0,"duration_s":1000,
        "stations":[{"name":"s","discipline":"fifo","capacity":1}],
        "classes":[{"name":"a","route":[{"do":"serve","station":"s","work":{"kind":"exponential","mean_s":0.01}}]}],
        "streams":[{"name":"load","load":{"kind":"closed","users":20,"think":{"kind":"exponential","mean_s":0.1}},
        "scenarios":[{"weight":1,"steps":[{"class":"a"}]}]}]}"#,
    );
    measure(
        "4 event loops on 2 cores, probe",
        r#"{"schema_version":1,"seed":1,"warmup_s":0,"duration_s":500,
        "groups":[{"name":"w","size":4,"policy":"least_connections"}],
        "stations":[{"name":"loop","discipline":"semaphore","capacity":1,"each":"w"},
                    {"name":"cpu","discipline":"ps","capacity":2}],
        "classes":[{"name":"a","route":[{"do":"choose","group":"w"},{"do":"acquire","station":"loop"},
        {"do":"serve","station":"cpu","work":{"kind":"fixed","s":0.02}},{"do":"release","station":"loop"},
        {"do":"delay","time":{"kind":"fixed","s":0.001}}]}],
        "streams":[{"name":"load","load":{"kind":"closed","users":100},"scenarios":[{"weight":1,"steps":[{"class":"a"}]}]},
        {"name":"probe","load":{"kind":"open","rate_per_s":20,"arrivals":"poisson"},
        "scenarios":[{"weight":1,"steps":[{"class":"a"}]}]}]}"#,
    );
}
