//! The share of 95 % intervals of trials of some seconds that hold the truth, on queues whose truth is a formula.
//!
//! M/M/1, first in first out: the response time is exponential with the capacity that is left, and what comes out is a
//! Poisson process (P. J. Burke, Operations Research 4, 1956). A trial is what the recorder would keep of it: counts by
//! bucket in steps of 250 ms, and the ages of the requests that are under way at its end.
//!
//! The table of docs/explain/intervals.md is printed by
//! `cargo test --release -p loadlens-estimate --test coverage -- --ignored --nocapture`.

#![allow(clippy::print_stdout)] // the table is for a page

use loadlens_base::Random;
use loadlens_estimate::{
    distribution, rate, Buckets, Cell, Distribution, Quantity, Recorded, Steps, CONFIDENCE,
};

const STEP_S: f64 = 0.25;
const FIGURES: [&str; 5] = ["p50", "p90", "p99", "mean", "rate"];

struct Queue {
    capacity_per_s: f64,
    utilisation: f64,
    seconds: f64,
}

impl Queue {
    fn arrivals_per_s(&self) -> f64 {
        self.capacity_per_s * self.utilisation
    }

    /// In the order of [`FIGURES`].
    fn truths(&self) -> [f64; 5] {
        let left = self.capacity_per_s - self.arrivals_per_s();
        let quantile = |p: f64| -(1.0 - p).ln() / left;
        [
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            1.0 / left,
            self.arrivals_per_s(),
        ]
    }

    /// (arrived, left) of the requests of one trial by Lindley's recursion, long warmed up; the trial begins at 0.
    fn requests(&self, random: &mut Random) -> Vec<(f64, f64)> {
        let relaxation_s = 1.0 / (self.capacity_per_s * (1.0 - self.utilisation.sqrt()).powi(2));
        let mut now = -20.0 * relaxation_s;
        let mut free = now;
        let mut requests = Vec::new();
        while now < self.seconds {
            free = free.max(now) + random.exponential() / self.capacity_per_s;
            if free >= 0.0 {
                requests.push((now, free));
            }
            now += random.exponential() / self.arrivals_per_s();
        }
        requests
    }

    /// The recorded counts of one trial, and the result.
    fn trial(&self, random: &mut Random) -> (Distribution, Quantity) {
        let count = (self.seconds / STEP_S).round() as usize;
        let mut steps = Steps {
            sums_s: vec![0.0; count],
            squares_s2: vec![0.0; count],
            counts: vec![0.0; count],
        };
        let (mut finished, mut late) = (Vec::new(), Vec::new());
        for (arrived, left) in self.requests(random) {
            if left >= self.seconds {
                late.push(one(count - 1, self.seconds - arrived));
                continue;
            }
            let (step, taken) = ((left / STEP_S) as usize, left - arrived);
            steps.sums_s[step] += taken;
            steps.squares_s2[step] += taken * taken;
            steps.counts[step] += 1.0;
            finished.push(one(step, taken));
        }
        let lengths = vec![STEP_S; count];
        let throughput = rate(&steps.counts, &lengths, CONFIDENCE).into();
        let recorded = Recorded {
            buckets: Buckets::HDR,
            steps: count,
            seconds: self.seconds,
            finished,
            late,
            whole: None,
        };
        (distribution(recorded, &steps), throughput)
    }

    /// In the order of [`FIGURES`].
    fn coverage(&self, trials: u32) -> [Held; 5] {
        let mut held = [Held::default(); 5];
        for trial in 0..trials {
            let seed = [
                self.capacity_per_s as u64,
                (100.0 * self.utilisation) as u64,
            ];
            let key = [seed[0], seed[1], self.seconds as u64, u64::from(trial)];
            let (times, throughput) = self.trial(&mut Random::derived(2026, &key));
            let result = [&times.p50, &times.p90, &times.p99, &times.mean, &throughput];
            for ((held, quantity), truth) in held.iter_mut().zip(result).zip(self.truths()) {
                held.take(quantity, truth);
            }
        }
        held
    }
}

/// A request in the bucket of its time.
fn one(step: usize, seconds: f64) -> Cell {
    let ns = (seconds * 1e9) as u64;
    let octave = ns.max(1).ilog2().saturating_sub(10);
    let place = octave * 1024 + (ns >> octave) as u32;
    Cell {
        step: step as u32,
        low: place,
        high: place,
        count: 1,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    decided: u32,
    holding: u32,
    open_above: u32,
}

impl Held {
    fn take(&mut self, quantity: &Quantity, truth: f64) {
        if quantity.value.is_none() {
            return;
        }
        self.decided += 1;
        let reaches = quantity.low.is_none_or(|low| low <= truth);
        let holds = reaches && quantity.high.is_none_or(|high| truth <= high);
        self.holding += u32::from(holds);
        self.open_above += u32::from(quantity.high.is_none());
    }

    fn share(&self) -> f64 {
        f64::from(self.holding) / f64::from(self.decided)
    }
}

fn queues() -> impl Iterator<Item = Queue> {
    let of = |(utilisation, seconds)| Queue {
        capacity_per_s: 1_000.0,
        utilisation,
        seconds,
    };
    [0.5, 0.8]
        .into_iter()
        .flat_map(|load| [1.0, 2.0, 5.0].map(|seconds| (load, seconds)))
        .map(of)
}

/// Checks that figures of `trials` trials are held in 92 to 98 % or, drawn seldom, not clearly outside of that.
fn check(trials: u32) {
    for queue in queues() {
        for (name, held) in FIGURES.into_iter().zip(queue.coverage(trials)) {
            let name = format!("{name} at {} over {} s", queue.utilisation, queue.seconds);
            if held.decided == 0 {
                continue; // undecided, always
            }
            assert!(
                held.decided > trials * 9 / 10,
                "{name}: decided by chance: {held:?}"
            );
            // Three standard errors of a share at the bound; none where the bounds are judged themselves.
            let slack = |bound: f64| match trials {
                1_000.. => 0.0,
                _ => 3.0 * (bound * (1.0 - bound) / f64::from(held.decided)).sqrt(),
            };
            let (low, high) = (0.92 - slack(0.92), 0.98 + slack(0.98));
            assert!((low..=high).contains(&held.share()), "{name}: {held:?}");
        }
    }
}

#[test]
fn intervals_of_a_hundred_trials_of_seconds_hold_the_truth_of_a_queue() {
    check(100);
}

#[test]
#[ignore = "slow tier: a thousand trials of each queue"]
fn intervals_of_a_thousand_trials_of_seconds_hold_the_truth_of_a_queue() {
    check(1_000);
}

#[test]
#[ignore = "prints the table of docs/explain/intervals.md"]
fn table_of_coverage() {
    println!("| capacity, utilisation | trial | median | p90 | p99 | mean | rate |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for capacity_per_s in [1_000.0, 200.0] {
        for utilisation in [0.5, 0.8, 0.9] {
            for seconds in [1.0, 2.0, 5.0, 10.0, 30.0, 120.0] {
                let queue = Queue {
                    capacity_per_s,
                    utilisation,
                    seconds,
                };
                let held = queue.coverage(if seconds > 10.0 { 400 } else { 1_000 });
                let cell = |held: &Held| match held.decided {
                    0 => "undecided".to_owned(),
                    decided if held.open_above > 0 => format!(
                        "{:.3} ({:.0} % open)",
                        held.share(),
                        100.0 * f64::from(held.open_above) / f64::from(decided)
                    ),
                    _ => format!("{:.3}", held.share()),
                };
                println!(
                    "| {capacity_per_s}/s, {:.0} % | {seconds} s | {} |",
                    100.0 * utilisation,
                    held.iter().map(cell).collect::<Vec<_>>().join(" | ")
                );
            }
        }
    }
}
