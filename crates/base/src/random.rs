//! The one source of random numbers: xoshiro256++ (Blackman and Vigna 2021), seeded by SplitMix64.
//!
//! Both come from `rand_xoshiro`, which promises these two algorithms by name. How a number is made of the bits is written
//! out here: every draw of a run must follow from the plan's seed in every version, and the distributions of `rand` may change.

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// A stream of random numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

/// One draw of SplitMix64 (Steele, Lea and Flood 2014): scatters the bits of a number, and is one-to-one.
#[inline]
pub fn split_mix(seed: u64) -> u64 {
    SplitMix64::seed_from_u64(seed).next_u64()
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A stream of its own for a part of the run: the same seed and path give the same stream.
    ///
    /// `path` names the part, for example `[STREAM, USER]`; other paths give unrelated streams.
    pub fn derived(seed: u64, path: &[u64]) -> Self {
        Random::new(path.iter().fold(split_mix(seed), |key, part| {
            split_mix(key ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93))
        }))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
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

    /// Normal with mean 0 and variance 1 (Box and Muller 1958), of two draws.
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // The first numbers of the authors' C program from the state 1, 2, 3, 4, as the rand_xoshiro
        // crate also tests them.
        let mut seed = [0; 32];
        for (word, bytes) in (1u64..).zip(seed.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let mut random = Random(Xoshiro256PlusPlus::from_seed(seed));

        let first: Vec<u64> = (0..4).map(|_| random.bits()).collect();

        assert_eq!(
            first,
            [41943041, 58720359, 3588806011781223, 3591011842654386]
        );
    }

    #[test]
    fn seeding_is_split_mix() {
        // The first numbers of SplitMix64 from the seed 1234567 (Vigna's test values).
        assert_eq!(split_mix(1_234_567), 6_457_827_717_110_365_317);
        assert_eq!(
            split_mix(1_234_567 + 0x9e37_79b9_7f4a_7c15),
            3_203_168_211_198_807_973
        );
    }

    #[test]
    fn a_seed_draws_what_it_drew_in_the_first_version() {
        // Drawn by the generator that was written out here before it came from rand_xoshiro: records of old runs
        // can be repeated only while these numbers stay.
        let mut plain = Random::new(7);
        let mut derived = Random::derived(7, &[1, 2]);

        assert_eq!(plain.bits(), 1_021_219_803_524_665_661);
        assert_eq!(plain.bits(), 3_174_977_118_032_272_916);
        assert_eq!(derived.bits(), 10_277_401_594_181_481_490);
        assert_eq!(derived.below(1000), 122);
        assert_eq!(derived.unit(), 0.724_339_052_578_727_5);
        assert_eq!(derived.exponential(), 1.193_858_703_597_932_7);
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
