//! Results of a simulation: rates, times and use, with the error that its length leaves.

use serde::{Deserialize, Serialize};

/// Equal parts of the counted time; the spread of their means is the error of the whole.
pub const BATCHES: usize = 20;

/// All that came of a simulation.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Outcome {
    /// Version of this layout.
    pub schema_version: u32,
    /// `complete`, or `cut`: a bound was reached, and the figures are of what was simulated until then.
    pub status: String,
    /// Bound that ended the simulation; empty when complete.
    pub reason: String,
    /// Counted time.
    pub counted_s: f64,
    /// Events of the whole simulation.
    pub events: u64,
    /// In the order of the model.
    pub streams: Vec<StreamOutcome>,
    /// In the order of the model, each member of a group.
    pub stations: Vec<StationOutcome>,
}

/// Results of a stream.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct StreamOutcome {
    /// Its name.
    pub name: String,
    /// All its requests.
    pub all: Times,
    /// Results of each class that it sends, in the order of the model.
    pub classes: Vec<ClassOutcome>,
}

/// Results of the requests of one class.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct ClassOutcome {
    /// Its name.
    pub name: String,
    /// Response times.
    pub times: Times,
}

/// Requests that were answered in the counted time; null where there was none.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
pub struct Times {
    /// Number of requests.
    pub count: u64,
    /// A second.
    pub rate_per_s: f64,
    /// Standard error of the rate, from batches; null: too few.
    pub rate_error_per_s: Option<f64>,
    /// From due to done.
    pub mean_s: Option<f64>,
    /// Standard error of the mean, from batches; null: a batch is empty.
    pub mean_error_s: Option<f64>,
    /// Standard deviation of the times.
    pub sd_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// Exceeded by a tenth.
    pub p90_s: Option<f64>,
    /// Exceeded by one in twenty.
    pub p95_s: Option<f64>,
    /// Exceeded by one in a hundred.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// Use of a station.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct StationOutcome {
    /// Its name.
    pub name: String,
    /// Index in its group, from 0.
    pub member: u32,
    /// Mean use: servers or units in use, work given a second.
    pub used: f64,
    /// Mean number that waited.
    pub waiting: f64,
}

/// The times of one class of one stream, while they are gathered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    pub times: Vec<f64>,
    sums: [f64; BATCHES],
    counts: [u64; BATCHES],
}

impl Gathered {
    /// Notes one time; `place` is where in the counted part it ended, 0 to 1.
    pub fn note(&mut self, time: f64, place: f64) {
        let batch = ((place * BATCHES as f64) as usize).min(BATCHES - 1);
        self.times.push(time);
        self.sums[batch] += time;
        self.counts[batch] += 1;
    }

    /// Both together.
    pub fn with(mut self, other: &Gathered) -> Self {
        self.times.extend_from_slice(&other.times);
        for batch in 0..BATCHES {
            self.sums[batch] += other.sums[batch];
            self.counts[batch] += other.counts[batch];
        }
        self
    }

    /// The figures over `seconds` of counted time; `is_whole`: all batches were simulated.
    pub fn figures(mut self, seconds: f64, is_whole: bool) -> Times {
        let n = self.times.len();
        if n == 0 || seconds <= 0.0 {
            return Times::default();
        }
        self.times.sort_unstable_by(f64::total_cmp);
        let mean = self.times.iter().sum::<f64>() / n as f64;
        let squares: f64 = self.times.iter().map(|t| (t - mean).powi(2)).sum();
        let quantile = |p: f64| Some(self.times[((p * n as f64).ceil() as usize).clamp(1, n) - 1]);
        let (mean_error, rate_error) = if is_whole {
            self.errors(seconds)
        } else {
            (None, None)
        };
        Times {
            count: n as u64,
            rate_per_s: n as f64 / seconds,
            rate_error_per_s: rate_error,
            mean_s: Some(mean),
            mean_error_s: mean_error,
            sd_s: Some((squares / (n.max(2) - 1) as f64).sqrt()),
            p50_s: quantile(0.5),
            p90_s: quantile(0.9),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: quantile(1.0),
        }
    }

    /// Batch means (Law and Kelton): standard errors of the mean time and of the rate.
    fn errors(&self, seconds: f64) -> (Option<f64>, Option<f64>) {
        let batches = BATCHES as f64;
        let spread = |values: &[f64; BATCHES]| {
            let mean = values.iter().sum::<f64>() / batches;
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            (squares / (batches - 1.0) / batches).sqrt()
        };
        let rates = self.counts.map(|c| c as f64 * batches / seconds);
        if self.counts.contains(&0) {
            return (None, Some(spread(&rates)));
        }
        let means: [f64; BATCHES] = std::array::from_fn(|i| self.sums[i] / self.counts[i] as f64);
        (Some(spread(&means)), Some(spread(&rates)))
    }
}
