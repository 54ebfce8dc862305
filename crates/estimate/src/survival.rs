//! The distribution of times some of which are only known to be longer than an age.
//!
//! The product-limit estimate (Kaplan and Meier 1958): a request counts among those at risk of finishing at t as long as it
//! is known to have lasted to t. Without unfinished requests it is the empirical distribution.

use crate::buckets::Buckets;

/// Requests whose time is not distinguished, all in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// The first place of its upper end in the table.
    pub place: u32,
    /// The last one: tables may hold buckets that begin apart and end alike.
    pub last_place: u32,
    /// Upper end, in seconds.
    pub upper: f64,
    pub count: u64,
    /// Share of all requests that take longer than this.
    pub above: f64,
}

/// Unfinished requests of one age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aged {
    /// In the table of ages.
    pub place: u32,
    /// Time that they are known to have lasted, in seconds.
    pub age: f64,
    pub count: u64,
}

/// Shares by time.
#[derive(Debug)]
pub(crate) struct Survival {
    /// Finished requests, rising.
    pub values: Vec<At>,
    /// Unfinished ones, rising.
    pub ages: Vec<Aged>,
    /// For each value, the sum of time x share over it and all later ones, in seconds.
    time_from: Vec<f64>,
}

impl Survival {
    /// `counts` and `late`: (place, how many), rising.
    pub fn new(buckets: &Buckets, counts: &[(u32, u64)], late: &[(u32, u64)]) -> Self {
        let mut values: Vec<At> = Vec::with_capacity(counts.len());
        for &(place, count) in counts {
            let upper = buckets.upper(place);
            match values.last_mut() {
                Some(last) if last.upper == upper => {
                    last.last_place = place;
                    last.count += count;
                }
                _ => values.push(At {
                    place,
                    last_place: place,
                    upper,
                    count,
                    above: 1.0,
                }),
            }
        }
        let aged = |&(place, count): &(u32, u64)| Aged {
            place,
            age: buckets.age(place),
            count,
        };
        let ages: Vec<Aged> = late.iter().map(aged).collect();
        fill_shares(&mut values, &ages);
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
            sum += self.values[index].upper * (before - self.values[index].above);
            time_from[index] = sum;
        }
        self.time_from = time_from;
    }

    /// Share of requests that take longer than `seconds`.
    pub fn above(&self, seconds: f64) -> f64 {
        match self.values.partition_point(|value| value.upper <= seconds) {
            0 => 1.0,
            index => self.values[index - 1].above,
        }
    }

    /// The smallest time that at least a share `p` of the requests take at most; none when unfinished ones hide it.
    pub fn reach(&self, p: f64) -> Option<&At> {
        const ROUNDING: f64 = 1e-12;
        let index = self
            .values
            .partition_point(|value| 1.0 - value.above < p - ROUNDING);
        self.values.get(index)
    }

    /// Seconds that the p-quantile is surely not below: every unfinished request taken as finished at its age.
    pub fn surely_above(&self, p: f64) -> f64 {
        let finished = self.values.iter().map(|value| (value.upper, value.count));
        let unfinished = self.ages.iter().map(|aged| (aged.age, aged.count));
        let mut all: Vec<(f64, u64)> = finished.chain(unfinished).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let n: u64 = all.iter().map(|(_, count)| count).sum();
        let mut below = 0;
        for (seconds, count) in all {
            below += count;
            if below as f64 >= p * n as f64 - 1e-6 {
                return seconds;
            }
        }
        0.0
    }

    /// True if a request finished later than every unfinished request's age.
    pub fn is_complete(&self) -> bool {
        self.values.last().is_some_and(|value| value.above == 0.0)
    }

    /// The mean time, in seconds, of requests that last longer than `age`; those beyond all that finished count at the
    /// highest age.
    pub fn mean_beyond(&self, age: f64) -> f64 {
        let index = self.values.partition_point(|value| value.upper <= age);
        let above = self.above(age);
        let hidden = self.values.last().map_or(1.0, |value| value.above);
        let oldest = self.ages.last().map_or(0.0, |oldest| oldest.age).max(age);
        if above <= 0.0 {
            return oldest;
        }
        (self.time_from.get(index).copied().unwrap_or(0.0) + hidden * oldest) / above
    }
}

fn fill_shares(values: &mut [At], ages: &[Aged]) {
    let finished: u64 = values.iter().map(|value| value.count).sum();
    let mut at_risk = finished + ages.iter().map(|aged| aged.count).sum::<u64>();
    let (mut above, mut gone, mut ended) = (1.0, 0, 0);
    for value in values {
        while gone < ages.len() && ages[gone].age < value.upper {
            at_risk -= ages[gone].count;
            gone += 1;
        }
        ended += value.count;
        above = if at_risk == value.count {
            0.0
        } else if ages.is_empty() {
            (finished - ended) as f64 / finished as f64 // without the rounding of a long product
        } else {
            above * (at_risk - value.count) as f64 / at_risk as f64
        };
        at_risk -= value.count;
        value.above = above;
    }
}
