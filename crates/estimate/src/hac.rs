//! The standard error of a sum over time intervals that are correlated with each other.
//!
//! Heteroskedasticity and autocorrelation consistent, with Bartlett's weights (Newey and West, Econometrica 55, 1987).

use super::special;

/// With fewer intervals their correlation cannot be seen.
pub(super) const FEWEST_INTERVALS: usize = 10;

/// Deviations of successive intervals from their mean.
pub(super) struct Series {
    deviations: Vec<f64>,
    /// Lags below this count.
    bandwidth: usize,
}

impl Series {
    pub fn new(mut deviations: Vec<f64>) -> Self {
        let mean = deviations.iter().sum::<f64>() / deviations.len().max(1) as f64;
        deviations
            .iter_mut()
            .for_each(|deviation| *deviation -= mean);
        let bandwidth = (1.3 * (deviations.len() as f64).sqrt()).round() as usize;
        Series {
            deviations,
            bandwidth,
        }
    }

    /// Standard error of the sum over all intervals; few intervals count as independent of each other.
    pub fn sum_se(&self) -> f64 {
        if self.deviations.len() < FEWEST_INTERVALS {
            return self.independent_sum_se();
        }
        let at_lag = |lag: usize| -> f64 {
            self.deviations[lag..]
                .iter()
                .zip(&self.deviations)
                .map(|(later, earlier)| later * earlier)
                .sum()
        };
        let weight = |lag: usize| 1.0 - lag as f64 / self.bandwidth as f64;
        let lags = 1..self.bandwidth.min(self.deviations.len());
        let correlated: f64 = lags.map(|lag| weight(lag) * at_lag(lag)).sum();
        (at_lag(0) + 2.0 * correlated).max(0.0).sqrt()
    }

    fn independent_sum_se(&self) -> f64 {
        let k = self.deviations.len() as f64;
        let squares: f64 = self
            .deviations
            .iter()
            .map(|deviation| deviation * deviation)
            .sum();
        (squares * k / (k - 1.0).max(1.0)).sqrt()
    }

    /// Student's factor for 95 % at the degrees of freedom that the bandwidth leaves.
    pub fn t(&self) -> f64 {
        if self.deviations.len() < FEWEST_INTERVALS {
            return special::t_quantile(0.975, (self.deviations.len() as f64 - 1.0).max(1.0));
        }
        let freedom = 1.5 * self.deviations.len() as f64 / self.bandwidth.max(1) as f64;
        special::t_quantile(0.975, freedom.max(2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_count_with_bartletts_weights_up_to_the_bandwidth() {
        // Hand count for five of 1, then five of -1: bandwidth round(1.3 x 3.16) = 4; products 10 at lag 0, 7 at
        // lag 1 (weight 3/4), 4 at lag 2 (1/2), 1 at lag 3 (1/4): 10 + 2 (5.25 + 2 + 0.25) = 25.
        let series = Series::new([[1.0; 5], [-1.0; 5]].concat());

        assert!((series.sum_se() - 5.0).abs() < 1e-12);
        // scipy: t.ppf(0.975, 3.75), 1.5 x 10 / 4 degrees of freedom.
        assert!((series.t() - 2.8509892835917263).abs() < 1e-9);
        assert_eq!(Series::new(vec![0.0; 100]).bandwidth, 13);
    }

    #[test]
    fn few_intervals_count_as_independent_of_each_other() {
        // 1 2 3 4: squares of the deviations sum to 5; 5 x 4 / 3, and Student's factor at 3 degrees of freedom.
        let series = Series::new(vec![1.0, 2.0, 3.0, 4.0]);

        assert!((series.sum_se() - (20.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((series.t() - 3.182_446_305_284_263).abs() < 1e-9); // scipy: t.ppf(0.975, 3)
    }

    #[test]
    fn intervals_that_follow_each_other_widen_and_those_that_alternate_narrow() {
        let ramp: Vec<f64> = (0..60).map(f64::from).collect();
        let zigzag: Vec<f64> = (0..60).map(|i| f64::from(i % 2)).collect();

        for (deviations, widens) in [(ramp, true), (zigzag, false)] {
            let series = Series::new(deviations);
            assert_eq!(series.sum_se() > 2.0 * series.independent_sum_se(), widens);
            assert_eq!(series.sum_se() < 0.5 * series.independent_sum_se(), !widens);
        }
    }
}
