//! Values with their counts, and what wrk says of them. Exact: nothing is put into classes and nothing is made up.

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::{MetaMethod, UserData, UserDataFields, UserDataMethods};
use serde::Serialize;

/// Values that rise, each with how often it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    rows: Vec<(u64, u64)>,
    count: u64,
}

/// One line of wrk's table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Number of values.
    pub count: u64,
    /// Mean; 0 without values, as in wrk.
    pub mean: f64,
    /// Standard deviation; 0 for fewer than two values.
    pub stdev: f64,
    /// The largest; 0 of none.
    pub max: u64,
    /// Percent of them within one standard deviation of the mean; none of none.
    pub within_stdev: Option<f64>,
}

impl From<BTreeMap<u64, u64>> for Stats {
    fn from(counts: BTreeMap<u64, u64>) -> Stats {
        let rows: Vec<(u64, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        Stats {
            count: rows.iter().map(|(_, count)| count).sum(),
            rows,
        }
    }
}

impl Stats {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest; 0 of none.
    pub fn min(&self) -> u64 {
        self.rows.first().map_or(0, |(value, _)| *value)
    }

    /// The largest; 0 of none.
    pub fn max(&self) -> u64 {
        self.rows.last().map_or(0, |(value, _)| *value)
    }

    /// 0 of none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let sum: u128 = self
            .rows
            .iter()
            .map(|(value, count)| u128::from(*value) * u128::from(*count))
            .sum();
        sum as f64 / self.count as f64
    }

    /// Standard deviation of a sample; 0 for fewer than two values.
    pub fn stdev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let square = |(value, count): &(u64, u64)| (*value as f64 - mean).powi(2) * *count as f64;
        (self.rows.iter().map(square).sum::<f64>() / (self.count - 1) as f64).sqrt()
    }

    /// The smallest value that at least `percent` of all do not exceed (nearest rank); 0 of none.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent * self.count as f64 / 100.0).ceil().max(1.0) as u64;
        let mut below = 0;
        for (value, count) in &self.rows {
            below += count;
            if below >= rank {
                return *value;
            }
        }
        self.max()
    }

    /// These values as a line of wrk's table.
    pub fn line(&self) -> Line {
        let (mean, stdev) = (self.mean(), self.stdev());
        let is_within = |value: u64| (mean - stdev..=mean + stdev).contains(&(value as f64));
        let within: u64 = self
            .rows
            .iter()
            .filter(|(value, _)| is_within(*value))
            .map(|(_, count)| count)
            .sum();
        Line {
            count: self.count,
            mean,
            stdev,
            max: self.max(),
            within_stdev: (self.count > 0).then(|| 100.0 * within as f64 / self.count as f64),
        }
    }

    /// The values that wrk 4.1 would show: for each value of at least twice `interval` it adds earlier ones, spaced
    /// by one interval, which no request had.
    pub fn as_wrk_adds(&self, interval: u64) -> Stats {
        let mut counts: BTreeMap<u64, u64> = self.rows.iter().copied().collect();
        if interval == 0 {
            return self.clone();
        }
        for (value, count) in &self.rows {
            let mut earlier = value.saturating_sub(interval);
            while *value >= 2 * interval && earlier > interval {
                *counts.entry(earlier).or_default() += count;
                earlier -= interval;
            }
        }
        Stats::from(counts)
    }
}

/// Statistics in the hands of a script.
pub struct Told(pub Arc<Stats>);

impl UserData for Told {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(this.0.min() as f64));
        fields.add_field_method_get("max", |_, this| Ok(this.0.max() as f64));
        fields.add_field_method_get("mean", |_, this| Ok(this.0.mean()));
        fields.add_field_method_get("stdev", |_, this| Ok(this.0.stdev()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percent: f64| {
            Ok(this.0.percentile(percent) as f64)
        });
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.0.rows.len()));
        // The i-th value and its count; nothing has neither.
        methods.add_meta_method(MetaMethod::Call, |_, this, index: usize| {
            let row = this.0.rows.get(index.wrapping_sub(1));
            let (value, count) = row.copied().unwrap_or_default();
            Ok((value as f64, count as f64))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(rows: &[(u64, u64)]) -> Stats {
        Stats::from(rows.iter().copied().collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn figures_are_those_of_the_values_written_out() {
        // 1 1 2 5 5 5 9: sum 28, mean 4, squares 9+9+4+1+1+1+25 = 50, 50/6; within 4 +- 2.887: 2 5 5 5.
        let stats = stats(&[(1, 2), (2, 1), (5, 3), (9, 1)]);
        let line = stats.line();

        assert_eq!((line.count, line.mean, line.max), (7, 4.0, 9));
        assert!((line.stdev - (50.0f64 / 6.0).sqrt()).abs() < 1e-12);
        assert!((line.within_stdev.unwrap() - 400.0 / 7.0).abs() < 1e-12);
        let at = [0.0, 28.0, 29.0, 50.0, 99.0, 100.0].map(|percent| stats.percentile(percent));
        assert_eq!(at, [1, 1, 2, 5, 9, 9]); // ranks 1, 2, 3, 4, 7, 7
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let line = Stats::default().line();

        assert_eq!(
            (line.count, line.mean, line.stdev, line.max),
            (0, 0.0, 0.0, 0)
        );
        assert_eq!(
            (line.within_stdev, Stats::default().percentile(99.0)),
            (None, 0)
        );
    }

    #[test]
    fn what_wrk_adds_is_an_interval_apart_and_above_one() {
        // By src/stats.c of wrk 4.1: 100 at an interval of 30 becomes 70 and 40 too; 59 is below twice the interval.
        let shown = stats(&[(59, 4), (100, 2)]).as_wrk_adds(30);

        assert_eq!(shown, stats(&[(40, 2), (59, 4), (70, 2), (100, 2)]));
        assert_eq!(stats(&[(60, 1)]).as_wrk_adds(30), stats(&[(60, 1)]));
    }
}
