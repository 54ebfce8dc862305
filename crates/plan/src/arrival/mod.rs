//! Due times: arrival schedules and think times. Seed in, nanoseconds out; no clock.
//!
//! Every engine thread of every machine generates the whole schedule and keeps its own arrivals, so the
//! parts of a schedule together are exactly the whole, however it is split.
//!
//! A rate that changes stands in `rates`, due times from a file in `replay`, users who come and go in `presence`, and what
//! is due for them in `timetable`; a rate that is changed while it runs in `tempo`.

mod part;
pub mod presence;
pub mod rates;
pub mod replay;
pub mod tempo;
pub mod timetable;

use std::sync::Arc;

pub use part::{Numbers, Part};
use rates::{Cursor, Rates};

use loadlens_base::units::SECOND;
use loadlens_base::Random;

use crate::{Arrivals, Think};

/// The due times of one part of an arrival process, nanoseconds since its start, rising, without end.
#[derive(Clone, Debug)]
pub struct Schedule {
    law: Law,
    /// Numbers of this thread's arrivals in the whole schedule.
    numbers: Numbers,
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
    Shaped {
        rates: Rates,
        cursor: Cursor,
        /// Draws of gaps; none: arrivals come where the integral of the rate is a whole number.
        random: Option<Random>,
        /// Area under the rate up to arrival `passed - 1`, in units of the rates.
        area: u128,
        passed: u64,
    },
    Replay(Arc<[u64]>),
}

/// Requested level over time.
#[derive(Clone, Debug)]
pub enum Intensity {
    /// Arrivals per second, above 0.
    Constant(f64),
    /// A rate that changes.
    Shaped(Rates),
    /// Arrivals at these times, nanoseconds since the start, rising.
    Replay(Arc<[u64]>),
}

impl Schedule {
    /// The part `part` of the schedule that `seed` determines.
    ///
    /// Of a rate that changes, arrival k of a constant schedule is due at the moment after which the rate's integral is
    /// above k; Poisson: after which it is above the sum of k + 1 draws of mean 1. A replay has no law of its own.
    pub fn of(seed: u64, intensity: Intensity, arrivals: Arrivals, part: &Part) -> Self {
        let law = match intensity {
            Intensity::Constant(rate) => return Schedule::new(seed, rate, arrivals, part),
            Intensity::Shaped(rates) => Law::Shaped {
                rates,
                cursor: Cursor::default(),
                random: (arrivals == Arrivals::Poisson).then(|| Random::new(seed)),
                area: 0,
                passed: 0,
            },
            Intensity::Replay(times) => Law::Replay(times),
        };
        Schedule {
            law,
            numbers: part.numbers(),
        }
    }

    /// The part `part` of the schedule that `seed` determines; `rate_per_s` is of the whole, above 0.
    ///
    /// Constant: arrival k is due at k / rate, rounded to the nanosecond, the first at 0; so [0, T) holds exactly
    /// rate x T arrivals where that is whole. Poisson: the first arrival comes after one gap.
    pub fn new(seed: u64, rate_per_s: f64, arrivals: Arrivals, part: &Part) -> Self {
        let law = match arrivals {
            Arrivals::Constant => Law::Constant(Grid::new(rate_per_s)),
            Arrivals::Poisson => Law::Poisson {
                random: Random::new(seed),
                mean_ns: SECOND as f64 / rate_per_s,
                now: 0,
                passed: 0,
            },
        };
        Schedule {
            law,
            numbers: part.numbers(),
        }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    /// None: there is no further arrival.
    fn next(&mut self) -> Option<u64> {
        let number = self.numbers.advance();
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
            Law::Shaped {
                rates,
                cursor,
                random,
                area,
                passed,
            } => {
                let area = match random {
                    None => u128::from(number).checked_mul(rates.unit())?,
                    Some(random) => {
                        while *passed <= number {
                            let gap = random.exponential() * rates.unit() as f64;
                            *area = area.saturating_add(gap as u128);
                            *passed += 1;
                        }
                        *area
                    }
                };
                rates.reaches(area, cursor)?
            }
            Law::Replay(times) => *usize::try_from(number)
                .ok()
                .and_then(|number| times.get(number))?,
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
            u128::from(k) * u128::from(SECOND),
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
    /// The mean length, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Think::None => 0.0,
            Think::Fixed { ns } => ns as f64,
            Think::Uniform { low_ns, high_ns } => (low_ns as f64 + high_ns as f64) / 2.0,
            Think::Exponential { mean_ns } => mean_ns as f64,
        }
    }

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Profile, Segment, Share};

    fn due_before(rate_per_s: f64, arrivals: Arrivals, part: &Part, seconds: u64) -> Vec<u64> {
        Schedule::new(1, rate_per_s, arrivals, part)
            .take_while(|due| *due < seconds * SECOND)
            .collect()
    }

    #[test]
    fn constant_arrivals_come_rate_times_duration_often() {
        for (rate, seconds, expected) in [
            (10.0, 3, 30),
            (1000.0, 10, 10_000),
            (0.5, 10, 5),
            (2.5, 2, 5),
            (1e6, 1, 1_000_000),
            (250.25, 4, 1001),
        ] {
            assert_eq!(
                due_before(rate, Arrivals::Constant, &Part::whole(), seconds).len(),
                expected,
                "{rate}"
            );
        }
    }

    #[test]
    fn a_constant_due_time_is_k_over_rate_rounded_with_no_drift() {
        // Hand count: at 3/s the points are 0, 333333333.3, 666666666.7, 1 s.
        let thirds = due_before(3.0, Arrivals::Constant, &Part::whole(), 2);
        assert_eq!(
            thirds,
            [
                0,
                333_333_333,
                666_666_667,
                1_000_000_000,
                1_333_333_333,
                1_666_666_667
            ]
        );

        // After a year at 3/s, and after a day at 30,000/s, still on the exact point.
        let year = 365 * 86_400;
        assert_eq!(
            Grid::new(3.0).due_ns(3 * year + 1),
            year * SECOND + 333_333_333
        );
        assert_eq!(Grid::new(30_000.0).due_ns(30_000 * 86_400), 86_400 * SECOND);
        // 0.1 as a float is 0.1000000000000000055511151231257827: 10 s less 5.55e-16 s.
        assert_eq!(Grid::new(0.1).due_ns(1), 10 * SECOND);
        assert_eq!(Grid::new(1e8).due_ns(7), 70);
        assert_eq!(Grid::new(1e-6).due_ns(1), 1_000_000 * SECOND);
    }

    #[test]
    fn poisson_gaps_have_mean_and_coefficient_of_variation_of_an_exponential() {
        let n = 100_000;
        let due: Vec<u64> = Schedule::new(7, 5000.0, Arrivals::Poisson, &Part::whole())
            .take(n + 1)
            .collect();

        let gaps: Vec<f64> = due
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / n as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean / 200_000.0 - 1.0).abs() < 0.01, "{mean}"); // standard error 0.32 %
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.02,
            "{}",
            variance.sqrt() / mean
        );
    }

    #[test]
    fn poisson_gaps_do_not_depend_on_each_other() {
        let due: Vec<u64> = Schedule::new(9, 1000.0, Arrivals::Poisson, &Part::whole())
            .take(100_001)
            .collect();
        let gaps: Vec<f64> = due
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 / 1e6 - 1.0)
            .collect();

        let lagged: f64 = gaps.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 1e5;

        assert!(lagged.abs() < 0.013, "{lagged}"); // four standard errors of 1 / sqrt(n)
    }

    #[test]
    fn machines_with_different_numbers_of_threads_share_one_schedule() {
        let share = |from| Share {
            from,
            to: from + 1,
            of: 2,
        };
        let mut parts: Vec<u64> = [
            (share(0), 0, 3),
            (share(0), 1, 3),
            (share(0), 2, 3),
            (share(1), 0, 1),
        ]
        .into_iter()
        .flat_map(|(share, thread, threads)| {
            due_before(
                99.0,
                Arrivals::Poisson,
                &Part::new(share, thread, threads),
                20,
            )
        })
        .collect();
        parts.sort_unstable();

        assert_eq!(
            parts,
            due_before(99.0, Arrivals::Poisson, &Part::whole(), 20)
        );
    }

    #[test]
    fn another_seed_gives_another_poisson_schedule() {
        let first = |seed| Schedule::new(seed, 10.0, Arrivals::Poisson, &Part::whole()).next();

        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn think_times_follow_their_law() {
        let mut random = Random::new(2);
        let mut draw =
            |think: Think| -> Vec<u64> { (0..50_000).map(|_| think.sample(&mut random)).collect() };
        let mean = |draws: &[u64]| draws.iter().sum::<u64>() as f64 / draws.len() as f64;

        assert!(draw(Think::None).iter().all(|ns| *ns == 0));
        assert!(draw(Think::Fixed { ns: 5 }).iter().all(|ns| *ns == 5));
        let uniform = draw(Think::Uniform {
            low_ns: 10,
            high_ns: 13,
        });
        assert_eq!(
            (uniform.iter().min(), uniform.iter().max()),
            (Some(&10), Some(&13))
        );
        assert!((mean(&uniform) - 11.5).abs() < 0.02); // standard error 0.005
        let exponential = draw(Think::Exponential { mean_ns: 1_000_000 });
        assert!((mean(&exponential) / 1e6 - 1.0).abs() < 0.02); // standard error 0.0045
        assert_eq!(
            Think::Uniform {
                low_ns: 4,
                high_ns: 4
            }
            .sample(&mut random),
            4
        );
    }

    fn shaped(segments: &[Segment], repeats: bool) -> Intensity {
        let segments = segments.to_vec();
        Intensity::Shaped(Rates::new(&Profile { segments, repeats }))
    }

    #[test]
    fn a_profile_that_never_changes_is_the_constant_schedule() {
        for rate in [3.0, 250.25, 1e-3, 99_999.0] {
            let level = Segment {
                ns: SECOND,
                start: rate,
                end: rate,
            };
            for repeats in [false, true] {
                let profile = shaped(&[level], repeats);
                let constant = Schedule::new(1, rate, Arrivals::Constant, &Part::whole());
                let of_profile = Schedule::of(1, profile, Arrivals::Constant, &Part::whole());

                let (expected, found): (Vec<u64>, Vec<u64>) =
                    constant.zip(of_profile).take(5000).unzip();

                assert_eq!(found, expected, "{rate} {repeats}");
            }
        }
    }

    #[test]
    fn poisson_counts_of_a_ramp_have_the_integral_as_mean_and_variance() {
        // From 0 to 200/s in 1 s and back to 0 in 1 s: 25 arrivals in the first half second, 75 in the second,
        // 100 in the third and fourth together.
        let up = Segment {
            ns: SECOND,
            start: 0.0,
            end: 200.0,
        };
        let down = Segment {
            ns: SECOND,
            start: 200.0,
            end: 0.0,
        };
        let seeds = 4000;
        let (mut sums, mut squares) = ([0f64; 3], [0f64; 3]);

        for seed in 0..seeds {
            let profile = shaped(&[up, down], false);
            let due: Vec<u64> =
                Schedule::of(seed, profile, Arrivals::Poisson, &Part::whole()).collect();
            let before = |ns: u64| due.partition_point(|due| *due < ns) as f64;
            let marks = [0, SECOND / 2, SECOND, 2 * SECOND].map(before);
            for at in 0..3 {
                let count = marks[at + 1] - marks[at];
                sums[at] += count;
                squares[at] += count * count;
            }
            assert_eq!(marks[3] as usize, due.len()); // it ends
        }

        for (at, integral) in [25.0, 75.0, 100.0f64].into_iter().enumerate() {
            let n = seeds as f64;
            let mean = sums[at] / n;
            let variance = squares[at] / n - mean * mean;
            // Standard errors: sqrt(integral / n) and about integral sqrt(2 / n); five of them.
            assert!(
                (mean - integral).abs() < 5.0 * (integral / n).sqrt(),
                "{at}: {mean}"
            );
            assert!(
                (variance / integral - 1.0).abs() < 5.0 * (2.0 / n).sqrt(),
                "{at}: {variance}"
            );
        }
    }

    #[test]
    fn a_replay_is_the_file_and_ends_with_it() {
        let times: Arc<[u64]> = [0, 5, 5, 9].into();
        let replay = |part: &Part| {
            let intensity = Intensity::Replay(times.clone());
            Schedule::of(1, intensity, Arrivals::Constant, part).collect::<Vec<_>>()
        };

        assert_eq!(replay(&Part::whole()), [0, 5, 5, 9]);
        assert_eq!(replay(&Part::new(Share::default(), 1, 3)), [5]);
    }

    fn segments() -> impl Strategy<Value = Vec<Segment>> {
        let level = || prop_oneof![Just(0.0), 0.0f64..2000.0, (1u32..2000).prop_map(f64::from)];
        let segment = (1u64..3 * SECOND, level(), level(), any::<bool>());
        let segment = segment.prop_map(|(ns, start, end, is_flat)| Segment {
            ns,
            start,
            end: if is_flat { start } else { end },
        });
        prop::collection::vec(segment, 1..6)
            .prop_filter("a rate", |all| all.iter().any(|s| s.start.max(s.end) > 1.0))
    }

    /// The integral of a profile up to `ns`, of floats.
    fn integral(segments: &[Segment], repeats: bool, ns: u64) -> f64 {
        let mut sum = 0.0;
        let mut left = ns;
        let (mut at, mut last) = (0, 0.0);
        while left > 0 {
            if at == segments.len() && !repeats {
                return sum + last * left as f64 / 1e9;
            }
            let segment = segments[at % segments.len()];
            let part = left.min(segment.ns);
            let share = part as f64 / segment.ns as f64;
            let end = segment.start + (segment.end - segment.start) * share;
            sum += (segment.start + end) / 2.0 * part as f64 / 1e9;
            (left, last) = (left - part, segment.end);
            at += 1;
        }
        sum
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_parts_of_a_shaped_schedule_are_the_whole(
            segments in segments(), repeats: bool, is_poisson: bool, of in 1u32..9, seed: u64,
        ) {
            let law = if is_poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let whole: Vec<u64> = Schedule::of(seed, shaped(&segments, repeats), law, &Part::whole()).take(400).collect();

            prop_assert!(whole.windows(2).all(|pair| pair[0] <= pair[1]));
            for index in 0..of {
                let part = Schedule::of(seed, shaped(&segments, repeats), law, &Part::new(Share::default(), index, of));
                let expected: Vec<u64> = whole.iter().copied().skip(index as usize).step_by(of as usize).collect();
                prop_assert_eq!(part.take(expected.len()).collect::<Vec<_>>(), expected);
            }
        }

        #[test]
        fn as_many_arrivals_come_before_a_moment_as_the_integral_says(
            segments in segments(), repeats: bool, at in 1u64..20 * SECOND,
        ) {
            let schedule = Schedule::of(1, shaped(&segments, repeats), Arrivals::Constant, &Part::whole());
            let expected = integral(&segments, repeats, at);

            // Arrival k comes where the integral is k, so [0, T) holds the integral up to T, rounded up.
            let count = schedule.take_while(|due| *due < at).count() as f64;

            prop_assert!(count >= (expected - 1e-5).ceil() && count <= (expected + 1e-5).ceil(), "{} {}", count, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_parts_of_a_schedule_are_the_whole(
            rate in 1.0f64..5000.0,
            of in 1u32..9,
            seed: u64,
            is_poisson: bool,
        ) {
            let law = if is_poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let n = 400usize;
            let whole: Vec<u64> = Schedule::new(seed, rate, law, &Part::whole()).take(n).collect();

            prop_assert!(whole.windows(2).all(|pair| pair[0] <= pair[1]));
            for index in 0..of {
                let part = Schedule::new(seed, rate, law, &Part::new(Share::default(), index, of));
                let expected: Vec<u64> = whole.iter().copied().skip(index as usize).step_by(of as usize).collect();
                prop_assert_eq!(part.take(expected.len()).collect::<Vec<_>>(), expected);
            }
        }

        #[test]
        fn a_constant_schedule_has_rate_times_duration_arrivals(rate in 1u64..20_000, seconds in 1u64..4) {
            let due = due_before(rate as f64, Arrivals::Constant, &Part::whole(), seconds);
            prop_assert_eq!(due.len() as u64, rate * seconds);
        }
    }
}
