//! Times of many requests by step, and their quantiles.

use crate::buckets::Buckets;
use crate::long_run::{Spread, FEWEST_STEPS};
use crate::survival::Survival;
use crate::{duration_text, joining, special, Estimate, Method, Undecided};

/// With fewer steps a quantile needs twice the requests.
const FEWEST_TO_TRUST: usize = 10;
/// Rounds in which the lower end of a quantile's interval goes down; each but the last lowers it.
const MOST_ROUNDS: usize = 32;

/// Requests of one step whose times are not distinguished: from the first to the last of some buckets, by place. Mostly
/// one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The number of the step.
    pub step: u32,
    /// The first bucket.
    pub low: u32,
    /// The last bucket.
    pub high: u32,
    /// Number of requests.
    pub count: u32,
}

/// Cells wherever they are kept: those of all trials of a report are not copied to be counted.
pub trait Cells {
    /// Number of there are.
    fn count(&self) -> usize;

    /// Shows every cell.
    fn each(&self, visit: impl FnMut(Cell));
}

impl Cells for Vec<Cell> {
    fn count(&self) -> usize {
        self.len()
    }

    fn each(&self, visit: impl FnMut(Cell)) {
        self.iter().copied().for_each(visit);
    }
}

/// Record of one population.
#[derive(Debug)]
pub struct Recorded<C: Cells = Vec<Cell>> {
    /// The values that places stand for.
    pub buckets: Buckets,
    /// Number of steps there are, empty ones included: silence is variation too.
    pub steps: usize,
    /// Total length of the steps; 0: not known.
    pub seconds: f64,
    /// Finished requests.
    pub finished: C,
    /// Unfinished ones, by the place of their age.
    pub late: Vec<Cell>,
    /// The populations as a whole, (place, how many) rising, where cells are coarser: finished, unfinished.
    pub whole: Option<[Vec<(u32, u64)>; 2]>,
}

/// The requests of one trial with what is needed of them all.
#[derive(Debug)]
pub struct Population<C: Cells = Vec<Cell>> {
    /// Number of steps of the record are one here.
    together: usize,
    buckets: Buckets,
    pub(crate) survival: Survival,
    seconds: f64,
    finished: C,
    late: Vec<Cell>,
    /// Requests of each step, unfinished ones included.
    size: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) censored: u64,
}

impl<C: Cells> Population<C> {
    /// Takes what was recorded; more than [`crate::MOST_STEPS`] steps are joined.
    pub fn new(recorded: Recorded<C>) -> Self {
        let Recorded {
            buckets,
            steps,
            seconds,
            finished,
            mut late,
            whole,
        } = recorded;
        let (together, left) = joining(steps);
        late.sort_unstable(); // sums over them have one order, however they came
        let [values, ages] = whole.unwrap_or_else(|| {
            let ages = late.iter().map(|cell| cell.low + 1).max().unwrap_or(0);
            [by_place(&finished, buckets.places()), by_place(&late, ages)]
        });
        let mut population = Population {
            together,
            count: values.iter().map(|(_, count)| count).sum(),
            censored: ages.iter().map(|(_, count)| count).sum(),
            survival: Survival::new(&buckets, &values, &ages),
            buckets,
            seconds,
            finished,
            late,
            size: Vec::new(),
        };
        let mut size = vec![0; left];
        let mut add = |cell: Cell| {
            size[(cell.step as usize / together).min(left - 1)] += u64::from(cell.count);
        };
        population.finished.each(&mut add);
        population.late.each(&mut add);
        population.size = size;
        population
    }

    /// The step here of a step of the record.
    fn step(&self, cell: &Cell) -> usize {
        (cell.step as usize / self.together).min(self.size.len() - 1)
    }

    /// The lower end of a bucket.
    pub(crate) fn lower(&self, place: u32) -> f64 {
        self.buckets.lower(place)
    }

    /// Finished and unfinished.
    fn all(&self) -> f64 {
        (self.count + self.censored) as f64
    }

    /// The p-quantile by the inverse of the distribution function: the upper end of the bucket that holds it, as
    /// HdrHistogram has it, so that a share p of the requests took at most this.
    ///
    /// Its interval: how far the share of requests above a value varies between steps gives the interval of that share;
    /// its ends, read from the distribution function, are those of the quantile (R. S. Woodruff, J. Amer. Stat. Assoc.
    /// 47, 1952). The share is never taken as better known than that of independent requests. The lower end is the first value whose own
    /// share is too large by its own variation: a trial without a queue varies little at its quantile, whatever the truth.
    pub fn quantile(&self, p: f64, confidence: f64) -> Result<Estimate, Undecided> {
        let n = self.all();
        if n == 0.0 {
            return Err(Undecided::because("nothing was sent"));
        }
        let Some(at) = self.survival.reach(p) else {
            let age_s = self.survival.surely_above(p);
            return Err(Undecided {
                reason: format!(
                    "more than {}: it lies among requests that never finished",
                    duration_text(age_s)
                ),
                at_least: Some(age_s),
            });
        };
        let fewest = fewest_requests(p, confidence) * self.scarcity();
        if n < fewest {
            let run = match (self.seconds * fewest / n).ceil() {
                run_s if run_s > 0.0 => format!(": run {run_s:.0} s"),
                _ => String::new(),
            };
            return Err(Undecided::because(format!(
                "{n} requests, needs {fewest}{run}"
            )));
        }
        let binomial_se = (p * (1.0 - p) / n).sqrt();
        let (low, high, se) = if Method::of(self.size.len()) == Method::Independent {
            let (low, high) = special::binomial_ranks(n as u64, p, confidence);
            (
                low.map(|rank| rank as f64 / n),
                high.map(|rank| rank as f64 / n),
                binomial_se,
            )
        } else {
            let normal = special::normal_quantile(0.5 + confidence / 2.0);
            let spread = self.exceedances(at.upper);
            let half = (spread.half(confidence) / n).max(normal * binomial_se);
            let high = Some(p + half).filter(|share| *share < 1.0);
            let se = (spread.sum_se / n).max(binomial_se);
            (self.low_share(p, half, confidence), high, se)
        };
        let place = |share: f64| self.survival.reach(share);
        Ok(Estimate {
            point: at.upper,
            low: low.and_then(place).map(|at| self.buckets.lower(at.place)),
            high: high.and_then(place).map(|at| at.upper),
            independent: p * (1.0 - p) / (se * se),
            method: Method::of(self.size.len()),
        })
    }

    /// Number of times as many requests a quantile needs as independent ones at best: between few steps the spread of a
    /// handful of requests is a matter of chance, and its interval would say next to nothing.
    fn scarcity(&self) -> f64 {
        match self.size.len() {
            FEWEST_STEPS..FEWEST_TO_TRUST => 2.0,
            _ => 1.0,
        }
    }

    /// The share below which the truth surely is; none: as good as nothing.
    ///
    /// Goes down while the share above the end varies by more than the end is away.
    fn low_share(&self, p: f64, mut half: f64, confidence: f64) -> Option<f64> {
        let mut last = f64::INFINITY;
        for _ in 0..MOST_ROUNDS {
            let share = Some(p - half).filter(|share| *share > 0.0)?;
            let end = self.survival.reach(share)?.upper;
            if end >= last {
                return Some(share);
            }
            last = end;
            let there = self.exceedances(end).half(confidence) / self.all();
            if there <= half {
                return Some(share);
            }
            half = there;
        }
        Some(p - half).filter(|share| *share > 0.0)
    }

    /// Variation of the number of requests above `seconds` varies, beyond the share that each step would have on average.
    pub(crate) fn exceedances(&self, seconds: f64) -> Spread {
        let survival = &self.survival;
        let share = survival.above(seconds);
        let from = match survival
            .values
            .partition_point(|value| value.upper <= seconds)
        {
            0 => 0,
            index => survival.values[index - 1].last_place + 1,
        };
        let mut surely = vec![0u64; self.size.len()];
        let mut partly = vec![0.0; self.size.len()];
        self.finished.each(|cell| {
            if cell.low >= from {
                surely[self.step(&cell)] += u64::from(cell.count);
            } else if cell.high >= from {
                partly[self.step(&cell)] += f64::from(cell.count) * self.share_from(from, &cell);
            }
        });
        for cell in &self.late {
            // Known to be above, or as likely to come above as those that lasted as long.
            partly[self.step(cell)] += f64::from(cell.count)
                * self.mean_over_ages(cell, |age| {
                    if age >= seconds {
                        1.0
                    } else {
                        share / survival.above(age)
                    }
                });
        }
        let beyond =
            |step: usize| surely[step] as f64 + partly[step] - share * self.size[step] as f64;
        Spread::of(&(0..self.size.len()).map(beyond).collect::<Vec<f64>>())
    }

    /// The share of a cell's requests at `from` or above: they are spread as all requests between its ends are.
    fn share_from(&self, from: u32, cell: &Cell) -> f64 {
        let values = &self.survival.values;
        let below = |place: u32| values.partition_point(|value| value.place < place);
        let (first, split, end) = (below(cell.low), below(from), below(cell.high + 1));
        let requests =
            |values: &[crate::survival::At]| values.iter().map(|value| value.count).sum::<u64>();
        match requests(&values[first..end]) {
            0 => 1.0,
            all => requests(&values[split..end]) as f64 / all as f64,
        }
    }

    /// The mean of something over the ages of a cell's unfinished requests.
    pub(crate) fn mean_over_ages(&self, cell: &Cell, of: impl Fn(f64) -> f64) -> f64 {
        if cell.low == cell.high {
            return of(self.buckets.age(cell.high));
        }
        let ages = &self.survival.ages;
        let below = |place: u32| ages.partition_point(|aged| aged.place < place);
        let inside = &ages[below(cell.low)..below(cell.high + 1)];
        let requests: u64 = inside.iter().map(|aged| aged.count).sum();
        if requests == 0 {
            return of(self.buckets.age(cell.high));
        }
        let sum: f64 = inside
            .iter()
            .map(|aged| aged.count as f64 * of(aged.age))
            .sum();
        sum / requests as f64
    }

    /// The values of `of` at the age of each unfinished request, summed by step, and how many there are.
    pub(crate) fn late_by_step(&self, of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); self.size.len()];
        for cell in &self.late {
            let (sum, count) = &mut sums[self.step(cell)];
            *sum += f64::from(cell.count) * self.mean_over_ages(cell, &of);
            *count += f64::from(cell.count);
        }
        sums
    }
}

/// The fewest requests of which one can be above the p-quantile, and one below, with this confidence.
pub(crate) fn fewest_requests(p: f64, confidence: f64) -> f64 {
    let tail = (1.0 - confidence) / 2.0;
    (tail.ln() / p.max(1.0 - p).ln()).ceil()
}

/// (place, how many) of all cells of one bucket, rising.
fn by_place(cells: &impl Cells, places: u32) -> Vec<(u32, u64)> {
    const FEW: usize = 4_096;
    if cells.count() < FEW {
        let mut sorted = Vec::with_capacity(cells.count());
        cells.each(|cell| sorted.push((cell.low, u64::from(cell.count))));
        sorted.sort_unstable();
        let mut pooled: Vec<(u32, u64)> = Vec::with_capacity(sorted.len());
        for (place, count) in sorted.into_iter().filter(|(_, count)| *count > 0) {
            match pooled.last_mut() {
                Some(last) if last.0 == place => last.1 += count,
                _ => pooled.push((place, count)),
            }
        }
        return pooled;
    }
    let mut counts = vec![0u64; places as usize];
    cells.each(|cell| counts[cell.low as usize] += u64::from(cell.count));
    let held = |(place, count): (usize, u64)| (count > 0).then_some((place as u32, count));
    counts.into_iter().enumerate().filter_map(held).collect()
}
