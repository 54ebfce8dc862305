//! The distribution of times some of which are only known to be longer than an age.
//!
//! The product-limit estimate (Kaplan and Meier 1958): a request counts among those at risk of finishing at t as long as it
//! is known to have lasted to t. Without unfinished requests it is the empirical distribution.

use super::Cell;

/// Requests at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Nanoseconds.
    pub at: u64,
    pub count: u64,
    /// Share of all requests that take longer than this.
    pub above: f64,
}

/// Shares by time.
#[derive(Debug)]
pub(super) struct Survival {
    /// Finished requests, rising.
    pub values: Vec<At>,
    /// Unfinished ones by age, rising; `above` is not used.
    pub ages: Vec<At>,
    /// For each value, the sum of time x share over it and all later ones, in ns.
    time_from: Vec<f64>,
}

impl Survival {
    pub fn new(
        values: impl Iterator<Item = (u64, u64)>,
        ages: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let mut values = pooled(values);
        let ages = pooled(ages);
        let total = |parts: &[At]| parts.iter().map(|part| part.count).sum::<u64>();
        let mut at_risk = total(&values) + total(&ages);
        let mut above = 1.0;
        let mut gone = 0;
        for value in &mut values {
            while gone < ages.len() && ages[gone].at < value.at {
                at_risk -= ages[gone].count;
                gone += 1;
            }
            above = if at_risk == value.count {
                0.0
            } else {
                above * (at_risk - value.count) as f64 / at_risk as f64
            };
            at_risk -= value.count;
            value.above = above;
        }
        let mut survival = Survival {
            values,
            ages,
            time_from: Vec::new(),
        };
        survival.sum_times();
        survival
    }

    fn sum_times(&mut self) {
        let mut sum = 0.0;
        let mut time_from = vec![0.0; self.values.len()];
        for index in (0..self.values.len()).rev() {
            let before = if index == 0 {
                1.0
            } else {
                self.values[index - 1].above
            };
            sum += self.values[index].at as f64 * (before - self.values[index].above);
            time_from[index] = sum;
        }
        self.time_from = time_from;
    }

    /// Share of requests that take longer than `at`.
    pub fn above(&self, at: u64) -> f64 {
        match self.values.partition_point(|value| value.at <= at) {
            0 => 1.0,
            index => self.values[index - 1].above,
        }
    }

    /// The smallest time that at least a share `p` of the requests take at most; none when unfinished ones hide it.
    pub fn reach(&self, p: f64) -> Option<u64> {
        const ROUNDING: f64 = 1e-12;
        let index = self
            .values
            .partition_point(|value| 1.0 - value.above < p - ROUNDING);
        self.values.get(index).map(|value| value.at)
    }

    /// A time that the p-quantile is surely not below: every unfinished request taken as finished at its age.
    pub fn surely_above(&self, p: f64) -> u64 {
        let all = pooled(
            self.values
                .iter()
                .chain(&self.ages)
                .map(|part| (part.at, part.count)),
        );
        let n: u64 = all.iter().map(|part| part.count).sum();
        let mut below = 0;
        for part in &all {
            below += part.count;
            if below as f64 >= p * n as f64 - 1e-6 {
                return part.at;
            }
        }
        0
    }

    /// Whether somebody finished later than every unfinished request's age.
    pub fn is_complete(&self) -> bool {
        self.values.last().is_some_and(|value| value.above == 0.0)
    }

    /// The mean time, in ns, of requests that last longer than `age`; what nobody finished counts at the highest age.
    pub fn mean_beyond(&self, age: u64) -> f64 {
        let index = self.values.partition_point(|value| value.at <= age);
        let above = self.above(age);
        let hidden = self.values.last().map_or(1.0, |value| value.above);
        let oldest = self.ages.last().map_or(0, |oldest| oldest.at).max(age) as f64;
        if above <= 0.0 {
            return oldest;
        }
        (self.time_from.get(index).copied().unwrap_or(0.0) + hidden * oldest) / above
    }
}

/// Sums of something over the requests of cells: those of a cell are spread as all requests between its ends are.
pub(super) struct Spread<'a, F: Fn(u64) -> f64> {
    parts: &'a [At],
    of: F,
    /// Before each part, and after the last: requests, and the sum over them.
    before: Vec<(f64, f64)>,
}

impl<'a, F: Fn(u64) -> f64> Spread<'a, F> {
    pub fn new(parts: &'a [At], of: F) -> Self {
        let mut before = Vec::with_capacity(parts.len() + 1);
        let (mut count, mut sum) = (0.0, 0.0);
        before.push((count, sum));
        for part in parts {
            count += part.count as f64;
            sum += part.count as f64 * of(part.at);
            before.push((count, sum));
        }
        Spread { parts, of, before }
    }

    pub fn sum(&self, cells: &[Cell]) -> f64 {
        cells.iter().map(|cell| self.of_cell(cell)).sum()
    }

    fn of_cell(&self, cell: &Cell) -> f64 {
        let count = cell.count as f64;
        if cell.low == cell.high {
            return count * (self.of)(cell.high);
        }
        let from = self.parts.partition_point(|part| part.at < cell.low);
        let until = self.parts.partition_point(|part| part.at <= cell.high);
        let requests = self.before[until].0 - self.before[from].0;
        if requests <= 0.0 {
            return count * (self.of)(cell.high);
        }
        count * (self.before[until].1 - self.before[from].1) / requests
    }
}

/// Equal times as one, rising.
fn pooled(parts: impl Iterator<Item = (u64, u64)>) -> Vec<At> {
    let mut sorted: Vec<(u64, u64)> = parts.filter(|(_, count)| *count > 0).collect();
    sorted.sort_unstable_by_key(|(at, _)| *at);
    let mut pooled: Vec<At> = Vec::new();
    for (at, count) in sorted {
        match pooled.last_mut() {
            Some(last) if last.at == at => last.count += count,
            _ => pooled.push(At {
                at,
                count,
                above: 1.0,
            }),
        }
    }
    pooled
}
