//! The standard error of a sum over time intervals that are correlated with each other.
//!
//! Heteroskedasticity and autocorrelation consistent, with Bartlett's weights (Newey and West, Econometrica 55, 1987).

use super::special;

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

    /// Standard error of the sum over all intervals.
    pub fn sum_se(&self) -> f64 {
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

    /// The same, as if intervals were independent.
    pub fn independent_sum_se(&self) -> f64 {
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
        let freedom = 1.5 * self.deviations.len() as f64 / self.bandwidth.max(1) as f64;
        special::t_quantile(0.975, freedom.max(2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_count_with_bartletts_weights_up_to_the_bandwidth() {
        // Hand count for 1 2 3 4: bandwidth round(1.3 x 2) = 3, deviations -1.5 -0.5 0.5 1.5, products 5 at lag 0,
        // 1.25 at lag 1 (weight 2/3), -1.5 at lag 2 (weight 1/3): 5 + 2 (0.8333 - 0.5) = 17/3.
        let series = Series::new(vec![1.0, 2.0, 3.0, 4.0]);

        assert!((series.sum_se() - (17.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((series.t() - 4.302_652_729_749_462).abs() < 1e-9); // 1.5 x 4 / 3 = 2 degrees of freedom
        assert_eq!(Series::new(vec![0.0; 100]).bandwidth, 13);
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
