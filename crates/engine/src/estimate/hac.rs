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
