//! The one source of random numbers: xoshiro256++ (Blackman and Vigna 2021), seeded by SplitMix64.
//!
//! Written out here because every draw of a run must follow from the plan's seed on every machine and in
//! every version; the generators of the rand crate may change with it.

/// A stream of random numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        Random {
            state: std::array::from_fn(|_| split_mix(&mut mix)),
        }
    }

    /// A stream of its own for a part of the run: the same seed and path give the same stream.
    ///
    /// `path` names the part, for example `[STREAM, USER]`; other paths give unrelated streams.
    pub fn derived(seed: u64, path: &[u64]) -> Self {
        let mut mix = seed;
        let mut key = split_mix(&mut mix);
        for part in path {
            mix = key ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93);
            key = split_mix(&mut mix);
        }
        Random::new(key)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in 0..bound without bias (Lemire 2019); `bound` is above 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut wide = u128::from(self.bits()) * u128::from(bound);
        if (wide as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (wide as u64) < threshold {
                wide = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    /// Uniform in [0, 1), on a grid of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1; never 0 and never infinite.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(((self.bits() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first numbers of the authors' C program from the state 1, 2, 3, 4, as the rand_xoshiro
        // crate also tests them.
        let mut random = Random {
            state: [1, 2, 3, 4],
        };

        let first: Vec<u64> = (0..4).map(|_| random.bits()).collect();

        assert_eq!(
            first,
            [41943041, 58720359, 3588806011781223, 3591011842654386]
        );
    }

    #[test]
    fn seeding_is_split_mix() {
        // The first numbers of SplitMix64 from the seed 1234567 (Vigna's test values).
        let mut state = 1_234_567;

        assert_eq!(split_mix(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut state), 3_203_168_211_198_807_973);
    }

    #[test]
    fn parts_of_a_run_draw_different_numbers_and_the_same_ones_again() {
        let first = |path: &[u64]| Random::derived(7, path).bits();

        assert_eq!(first(&[0, 1]), first(&[0, 1]));
        let mut all: Vec<u64> = (0..1000).map(|user| first(&[0, user])).collect();
        all.extend([first(&[1, 0]), first(&[0]), first(&[])]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1003);
    }

    #[test]
    fn a_bounded_draw_takes_every_value_equally_often() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 6];

        for _ in 0..60_000 {
            counts[random.below(6) as usize] += 1;
        }

        // Chi-square with 5 degrees of freedom exceeds 20.5 once in a thousand seeds.
        let chi: f64 = counts
            .iter()
            .map(|c| (f64::from(*c) - 10_000.0).powi(2) / 10_000.0)
            .sum();
        assert!(chi < 20.5, "{counts:?}");
    }

    #[test]
    fn exponential_draws_have_mean_and_variance_one() {
        let mut random = Random::new(3);
        let n = 200_000;

        let draws: Vec<f64> = (0..n).map(|_| random.exponential()).collect();

        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "{mean}"); // standard error 0.0022
        assert!((variance - 1.0).abs() < 0.03, "{variance}"); // standard error 0.0063
    }
}
