//! Quantiles of Student's t, the normal and the binomial distribution, by the incomplete beta function.

use statrs::function::gamma::{gamma_lr, ln_gamma};

/// The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x); // where the fraction converges fast
    }
    const TINY: f64 = 1e-300;
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let bounded = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / bounded(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    // About sqrt(max(a, b)) terms are needed; the bound is for 10^9 requests.
    for m in 1..200_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / bounded(1.0 + term * d);
            c = bounded(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (front * fraction).min(1.0)
}

/// P(T <= t) of Student's t with `freedom` degrees of freedom, which need not be whole.
pub fn t_cdf(t: f64, freedom: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t > 0.0 {
        1.0 - tail
    } else {
        tail
    }
}

/// The p-quantile of Student's t, 0 < p < 1; infinite without a degree of freedom.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    if freedom <= 0.0 {
        return if p > 0.5 {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
    }
    if p < 0.5 {
        return -t_quantile(1.0 - p, freedom);
    }
    let mut high = 1.0;
    while t_cdf(high, freedom) < p && high < 1e12 {
        high *= 2.0;
    }
    bisected(0.0, high, |t| t_cdf(t, freedom) < p)
}

/// The p-quantile of the standard normal distribution: t with very many degrees of freedom is closer than 1e-9.
pub fn normal_quantile(p: f64) -> f64 {
    t_quantile(p, 1e10)
}

/// The point at which `is_below` changes from true to false, to the last bit.
fn bisected(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P(X <= k) of the binomial distribution.
fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    incomplete_beta((n - k) as f64, (k + 1) as f64, 1.0 - p)
}

/// The smallest k with P(X <= k) >= share.
fn binomial_quantile(share: f64, n: u64, p: f64) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if binomial_cdf(middle, n, p) >= share {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Ranks, from 1, of the order statistics of n independent values between which the p-quantile lies with at least
/// this confidence, whatever their distribution; none where no rank is low or high enough.
pub fn binomial_ranks(n: u64, p: f64, confidence: f64) -> (Option<u64>, Option<u64>) {
    let tail = (1.0 - confidence) / 2.0;
    let low = binomial_quantile(tail, n, p);
    let high = binomial_quantile(1.0 - tail, n, p) + 1;
    (
        Some(low).filter(|rank| *rank >= 1),
        Some(high).filter(|rank| *rank <= n),
    )
}

/// The p-quantile of the beta distribution.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    bisected(0.0, 1.0, |x| incomplete_beta(a, b, x) < p)
}

/// The mean counts of Poisson processes that would hardly give so few events, or so many (Garwood 1936).
pub fn poisson_bounds(events: f64, confidence: f64) -> (f64, f64) {
    let tail = (1.0 - confidence) / 2.0;
    let reach = 40.0 + events + 12.0 * events.sqrt();
    let low = match events {
        some if some > 0.0 => bisected(0.0, reach, |mean| gamma_lr(some, mean) < tail),
        _ => 0.0,
    };
    let high = bisected(0.0, reach, |mean| gamma_lr(events + 1.0, mean) < 1.0 - tail);
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCIPY_T: [(f64, f64, f64); 9] = [
        (0.975, 2.0, 4.302652729749462),
        (0.975, 3.7, 2.8675207071911895),
        (0.975, 9.5, 2.2441374614922958),
        (0.975, 28.8461538, 2.045703551147937),
        (0.975, 250.0, 1.9694983934211532),
        (0.9, 1.0, 3.0776835371752544),
        (0.995, 5.25, 3.9351085735067803),
        (0.6, 12.0, 0.25903274567688733),
        (0.025, 17.0, -2.109815577833317),
    ];
    const SCIPY_RANKS: [(u64, f64, u64, u64); 15] = [
        (5, 0.5, 0, 6),
        (6, 0.5, 1, 6),
        (35, 0.9, 28, 36),
        (36, 0.9, 29, 36),
        (100, 0.5, 40, 61),
        (367, 0.99, 359, 368),
        (368, 0.99, 360, 368),
        (1000, 0.99, 983, 997),
        (3687, 0.999, 3679, 3688),
        (3688, 0.999, 3680, 3688),
        (12345, 0.999, 12325, 12340),
        (100000, 0.95, 94864, 95136),
        (1000000, 0.999, 998938, 999062),
        (250000, 0.5, 124510, 125491),
        (1, 0.5, 0, 2),
    ];

    #[test]
    fn student_quantiles_are_those_of_the_printed_tables() {
        // Two-sided 95 %, from the usual table of Student's t to three decimals.
        for (freedom, expected) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (4.0, 2.776),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
            (1e9, 1.960),
        ] {
            assert!(
                (t_quantile(0.975, freedom) - expected).abs() < 6e-4,
                "{freedom}"
            );
        }
    }

    #[test]
    fn student_quantiles_agree_with_scipy_to_nine_digits() {
        // scipy.stats.t.ppf, freedoms that are not whole among them.
        for (p, freedom, expected) in SCIPY_T {
            let result = t_quantile(p, freedom);
            assert!(
                (result - expected).abs() < 1e-9 * expected.abs(),
                "{p} {freedom}: {result}"
            );
        }
    }

    #[test]
    fn binomial_ranks_agree_with_scipy() {
        // (binom.ppf(0.025, n, p), binom.ppf(0.975, n, p) + 1).
        for (n, p, low, high) in SCIPY_RANKS {
            let expected = (
                Some(low).filter(|rank| *rank >= 1),
                Some(high).filter(|rank| *rank <= n),
            );
            assert_eq!(binomial_ranks(n, p, 0.95), expected, "{n} {p}");
        }
    }

    #[test]
    fn poisson_bounds_are_those_of_garwood() {
        // scipy: chi2.ppf(0.025, 2 k) / 2 and chi2.ppf(0.975, 2 k + 2) / 2.
        for (events, low, high) in [
            (0.0, 0.0, 3.688_879_454_113_936),
            (1.0, 0.025_317_807_984_29, 5.571_643_390_938_898),
            (10.0, 4.795_388_696_132_4, 18.390_356_046_328),
            (400.0, 361.756_296_631, 441.186_648_097),
        ] {
            let result = poisson_bounds(events, 0.95);
            assert!((result.0 - low).abs() < 1e-6 * high, "{events}: {result:?}");
            assert!(
                (result.1 - high).abs() < 1e-6 * high,
                "{events}: {result:?}"
            );
        }
    }

    #[test]
    fn beta_quantiles_agree_with_scipy() {
        // scipy: beta.ppf(0.025, 3, 98), beta.ppf(0.975, 4, 97): 3 hits of 100 by Clopper and Pearson.
        assert!((beta_quantile(0.025, 3.0, 98.0) - 0.006_229_971_538).abs() < 1e-9);
        assert!((beta_quantile(0.975, 4.0, 97.0) - 0.085_176_053_0).abs() < 1e-9);
    }
}
