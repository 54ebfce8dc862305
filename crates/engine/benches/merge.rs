//! Time and memory of merging many machines: `cargo bench -p loadlens-engine --bench merge`, with other numbers of
//! machines and of requests per second on each after `--`.
//!
//! Each machine wrote a minute of 250 ms, on one thread, with log-normal times around 2 ms. The merge alone is timed; the
//! most memory is what the kernel saw since the files were written.

#![allow(clippy::print_stdout, reason = "what a program prints is its output")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use loadlens_base::units::{MICROSECOND, MILLISECOND, SECOND};
use loadlens_base::{Class, Random};
use loadlens_engine::run::merge;
use loadlens_engine::run::result::Conclusion;
use loadlens_plan::program::Program;
use loadlens_plan::Plan;
use loadlens_record::files::Files;
use loadlens_record::grid::Phase;
use loadlens_record::interval::{IntervalSet, Shape};
use loadlens_record::merge::IntervalSum;
use loadlens_record::sums::Begin;
use serde_json::{json, Value};

const INTERVAL: u64 = 250 * MILLISECOND;
const LENGTH: u64 = 60 * SECOND;

fn plan() -> Value {
    json!({
        "schema_version": 1, "seed": 1, "duration_ns": LENGTH,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": SECOND,
            "target": {"host": "127.0.0.1", "port": 80, "authority": "localhost"},
            "workload": {"kind": "open", "rate_per_s": 1000.0, "arrivals": "constant", "max_in_flight": 64, "overflow": "queue"},
            "scenarios": [{"name": "visit", "weight": 1, "steps": [{"name": "get", "method": "GET", "path": "/"}]}],
        }],
    })
}

/// Writes the files of one machine.
fn write(folder: &Path, number: u64, shape: Shape, per_s: u64) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut files = Files::create(folder, Some(Begin { shape, threads: 1 }))?;
    let random = &mut Random::new(number);
    let mut set = IntervalSet::of(&shape);
    for start in (0..LENGTH).step_by(INTERVAL as usize) {
        set.clear();
        (set.start, set.end, set.phase) = (start, start + INTERVAL, Phase::Measure);
        for _ in 0..per_s * INTERVAL / SECOND {
            let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            let service = (2e6 * (0.5 * normal).exp()) as u64;
            let lag = random.below(50 * MICROSECOND);
            let ok = &mut set.cells[Class::Ok as usize];
            ok.response.record(service + lag, &mut set.pool);
            ok.service.record(service, &mut set.pool);
            set.phases[0].first_byte.record(service, &mut set.pool);
            set.phases[0].at_once += 1;
            let stream = &mut set.streams[0];
            stream.lag.record(lag, &mut set.pool);
            stream.status[200] += 1;
            stream.flows.in_flight_integral += service;
            stream.flows.ended_service += service;
            set.steps[0].due += 1;
            set.steps[0].issued += 1;
        }
        files.sum(0, &IntervalSum::of(&set));
    }
    files.end(&Conclusion::default());
    Ok(())
}

/// The most memory that this process has had since [`forget_peak`], in MiB.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// Time that this thread has had a processor, in seconds: others may use the machine, too.
fn processor_s() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split_ascii_whitespace().next();
    ns.and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked: Vec<u64> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let (machines, per_s) = match asked[..] {
        [machines, per_s, ..] => (machines, per_s),
        [machines] => (machines, 1_000),
        [] => (1_000, 1_000),
    };
    let plan = plan();
    let shape = Shape::of(
        &Program::unsent(&serde_json::from_value::<Plan>(plan.clone())?)
            .map_err(|faults| format!("{faults:?}"))?,
    );
    let root = std::env::temp_dir().join(format!("loadlens-merge-{}", std::process::id()));
    let folders: Vec<PathBuf> = (0..machines)
        .map(|number| root.join(number.to_string()))
        .collect();
    for (number, folder) in (0..).zip(&folders) {
        write(folder, number, shape, per_s)?;
    }
    let bytes =
        |folder: &PathBuf| fs::metadata(folder.join("sums.bin")).map_or(0, |file| file.len());
    let size: u64 = folders.iter().map(bytes).sum();

    forget_peak();
    let (began, worked, before) = (Instant::now(), processor_s(), peak_mib());
    let result = merge(&plan.to_string(), &folders, &root);
    let (took, worked, peak) = (began.elapsed(), processor_s() - worked, peak_mib());

    fs::remove_dir_all(&root)?;
    let result: Value = serde_json::from_str(&result?)?;
    println!(
        "{machines} machines, {per_s}/s on each, {} MiB of counts: {:.2} s ({worked:.2} s of a core), {peak} MiB at most ({before} before), {} requests",
        size >> 20,
        took.as_secs_f64(),
        result["streams"][0]["requests"]["ok"],
    );
    Ok(())
}
