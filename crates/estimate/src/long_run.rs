//! The standard error of a sum over steps of time that are correlated with each other.
//!
//! The long-run variance is the mean of the lowest frequencies of the series (equal-weighted cosines), and Student's t
//! has as many degrees of freedom as there are frequencies: with few steps the interval is wide instead of wrong.
//! Sources: U. K. Müller, Journal of Econometrics 141, 2007; E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson,
//! Journal of Business and Economic Statistics 36 (4), 2018, whose rule for the number of frequencies is used.

use crate::special;

/// With fewer steps their variation says nothing.
pub(crate) const FEWEST_STEPS: usize = 3;
/// One degree of freedom would give a factor of 12.7; with two, neighbours of a queue at 80 % still show.
const FEWEST_FREQUENCIES: usize = 2;

/// Variation of a sum over steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// Standard error of the sum.
    pub sum_se: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Spread {
    /// The spread of the sum of what each step has beyond its expectation; at least [`FEWEST_STEPS`] of them.
    pub fn of(deviations: &[f64]) -> Spread {
        let steps = deviations.len();
        let mean = deviations.iter().sum::<f64>() / steps as f64;
        let frequencies = frequencies(steps);
        let power = |frequency: usize| {
            let angle = std::f64::consts::PI * frequency as f64 / steps as f64;
            // cos((k + 1/2) angle) for k = 0, 1, ..., each from the two before it.
            let (mut before, mut now) = ((0.5 * angle).cos(), (0.5 * angle).cos());
            let turn = 2.0 * angle.cos();
            let mut sum = 0.0;
            for deviation in deviations {
                sum += (deviation - mean) * now;
                (before, now) = (now, turn * now - before);
            }
            sum * sum
        };
        let power: f64 = (1..=frequencies).map(power).sum();
        Spread {
            sum_se: (2.0 * power / frequencies as f64).sqrt(),
            freedom: frequencies as f64,
        }
    }

    /// The spread of clusters that are independent of each other: what each has beyond its expectation.
    pub fn of_clusters(deviations: &[f64]) -> Spread {
        let clusters = deviations.len() as f64;
        let squares: f64 = deviations
            .iter()
            .map(|deviation| deviation * deviation)
            .sum();
        Spread {
            sum_se: (squares * clusters / (clusters - 1.0)).sqrt(),
            freedom: clusters - 1.0,
        }
    }

    /// Half the width of the interval of the sum.
    pub fn half(&self, confidence: f64) -> f64 {
        special::t_quantile(0.5 + confidence / 2.0, self.freedom) * self.sum_se
    }
}

/// Number of of the lowest frequencies count: 0.4 K^(2/3).
fn frequencies(steps: usize) -> usize {
    let rule = (0.4 * (steps as f64).powf(2.0 / 3.0)).round() as usize;
    rule.max(FEWEST_FREQUENCIES).min(steps - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_steps_give_their_sample_variance() {
        // Two cosines and the mean are all that three values hold: 3 x variance of 1, 2, 6 (7 by hand) is 21.
        let spread = Spread::of(&[1.0, 2.0, 6.0]);

        assert!((spread.sum_se - 21f64.sqrt()).abs() < 1e-12);
        // scipy: t.ppf(0.975, 2)
        assert!((spread.half(0.95) - 4.302_652_729_749_464 * 21f64.sqrt()).abs() < 1e-8);
    }

    #[test]
    fn the_lowest_frequencies_count_alone() {
        // numpy: K = 8 steps, 2 frequencies; sqrt(2 mean(L^2)), L_j = sum d_k cos(pi j (k + 1/2) / 8).
        let steps = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let direct = |j: f64| -> f64 {
            let cosine = |(k, d): (usize, &f64)| {
                (d - 3.875) * (std::f64::consts::PI * j * (k as f64 + 0.5) / 8.0).cos()
            };
            steps.iter().enumerate().map(cosine).sum()
        };

        let spread = Spread::of(&steps);

        let expected = (direct(1.0).powi(2) + direct(2.0).powi(2)).sqrt();
        assert!((spread.sum_se - expected).abs() < 1e-12);
        assert_eq!(spread.freedom, 2.0);
    }

    #[test]
    fn the_number_of_frequencies_is_that_of_lazarus_and_others() {
        // 0.4 K^(2/3): 1.0, 1.6, 2.9, 4.7, 15.4, 28.5; never below 2, never all that there are.
        let result = [3, 4, 8, 20, 40, 240, 600].map(frequencies);

        assert_eq!(result, [2, 2, 2, 3, 5, 15, 28]);
    }

    #[test]
    fn steps_that_follow_each_other_widen_and_those_that_alternate_narrow() {
        let independent = |steps: &[f64]| Spread::of_clusters(steps).sum_se;
        let ramp: Vec<f64> = (0..60).map(|k| f64::from(k) - 29.5).collect();
        let zigzag: Vec<f64> = (0..60).map(|k| f64::from(k % 2) - 0.5).collect();

        assert!(Spread::of(&ramp).sum_se > 2.0 * independent(&ramp));
        assert!(Spread::of(&zigzag).sum_se < 0.5 * independent(&zigzag));
    }
}
