//! When things are due: arrival schedules and think times. Seed in, nanoseconds out; no clock.
//!
//! Every engine thread of every machine generates the whole schedule and keeps its own arrivals, so the
//! parts of a schedule together are exactly the whole, however it is split.

use crate::plan::{Arrivals, Share, Think};
use crate::random::Random;
use crate::units::NS_PER_S;

/// Arrivals `index`, `index + of`, `index + 2 of` ... of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first arrival that is ours, from 0.
    pub index: u64,
    /// The distance to the next; at least 1.
    pub of: u64,
}

impl Part {
    /// The whole schedule.
    pub const WHOLE: Part = Part { index: 0, of: 1 };

    /// What thread `thread` of `threads` takes on the machine that has `share`.
    ///
    /// Machines may have different numbers of threads.
    pub fn new(share: Share, thread: u32, threads: u32) -> Self {
        let machines = u64::from(share.of);
        Part {
            index: u64::from(share.index) + machines * u64::from(thread),
            of: machines * u64::from(threads),
        }
    }
}

/// The due times of one part of an arrival process, nanoseconds since its start, rising, without end.
#[derive(Clone, Debug)]
pub struct Schedule {
    law: Law,
    /// Number of the next arrival of ours in the whole schedule.
    next: u64,
    of: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Constant(Grid),
    Poisson {
        random: Random,
        /// Mean gap in nanoseconds.
        mean_ns: f64,
        /// Time of arrival `passed - 1`, in 2^-32 nanoseconds: a sum of floats would lose nanoseconds in a long run.
        now: u128,
        passed: u64,
    },
}

impl Schedule {
    /// The part `part` of the schedule that `seed` determines; `rate_per_s` is of the whole, above 0.
    ///
    /// Constant: arrival k is due at k / rate, rounded to the nanosecond, the first at 0; so [0, T) holds exactly
    /// rate x T arrivals where that is whole. Poisson: the first arrival comes after one gap.
    pub fn new(seed: u64, rate_per_s: f64, arrivals: Arrivals, part: Part) -> Self {
        let law = match arrivals {
            Arrivals::Constant => Law::Constant(Grid::new(rate_per_s)),
            Arrivals::Poisson => Law::Poisson {
                random: Random::new(seed),
                mean_ns: NS_PER_S as f64 / rate_per_s,
                now: 0,
                passed: 0,
            },
        };
        Schedule {
            law,
            next: part.index,
            of: part.of,
        }
    }

    /// Number of the arrival that comes next, in the whole schedule, from 0.
    pub fn next_number(&self) -> u64 {
        self.next
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let number = self.next;
        self.next += self.of;
        Some(match &mut self.law {
            Law::Constant(grid) => grid.due_ns(number),
            Law::Poisson {
                random,
                mean_ns,
                now,
                passed,
            } => {
                while *passed <= number {
                    *now += (random.exponential() * *mean_ns * (1u64 << 32) as f64) as u128;
                    *passed += 1;
                }
                u64::try_from(*now >> 32).unwrap_or(u64::MAX)
            }
        })
    }
}

/// A fixed grid with the rate as an exact fraction, so that the k-th point has no error of its own.
#[derive(Clone, Copy, Debug)]
struct Grid {
    /// rate = mantissa x 2^-shift
    mantissa: u64,
    shift: i32,
}

impl Grid {
    fn new(rate_per_s: f64) -> Self {
        let bits = rate_per_s.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        // Rates are normal numbers: the plan refuses all others.
        let mantissa = fraction | 1 << 52;
        let zeros = mantissa.trailing_zeros();
        Grid {
            mantissa: mantissa >> zeros,
            shift: 1075 - exponent - zeros as i32,
        }
    }

    /// round(k / rate), half up.
    fn due_ns(self, k: u64) -> u64 {
        let (mut above, mut below) = (
            u128::from(k) * u128::from(NS_PER_S),
            u128::from(self.mantissa),
        );
        if self.shift >= 0 {
            match above
                .checked_shl(self.shift as u32)
                .filter(|shifted| shifted >> self.shift == above)
            {
                Some(shifted) => above = shifted,
                None => return u64::MAX, // later than the clock reaches
            }
        } else {
            below <<= (-self.shift).min(74) as u32; // 2^74 a second and more: all at once
        }
        u64::try_from((2 * above.min(u128::MAX / 4) + below) / (2 * below)).unwrap_or(u64::MAX)
    }
}

impl Think {
    /// The length of one pause, in nanoseconds.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> u64 {
        match *self {
            Think::None => 0,
            Think::Fixed { ns } => ns,
            Think::Uniform { low_ns, high_ns } => match (high_ns - low_ns).checked_add(1) {
                Some(width) => low_ns + random.below(width),
                None => random.bits(),
            },
            Think::Exponential { mean_ns } => (random.exponential() * mean_ns as f64) as u64,
        }
    }
}
