//! Due times of a schedule whose rate is changed while it runs.
//!
//! A change scales the gaps between the arrivals that follow it, so the due times remain a function of the plan and the
//! changes: every thread computes the same ones, and so does a replay. What was due before a change stays due.

/// The changes of the rate of one schedule so far.
#[derive(Clone, Debug, Default)]
pub struct Tempo {
    /// In order.
    stretches: Vec<Stretch>,
}

/// The time from one change of the rate to the next.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Its start, nanoseconds since the start of the schedule.
    from: u64,
    /// The moment of the plan that the schedule has reached at its start.
    planned: u64,
    /// Rate during it, as a multiple of the planned one.
    factor: f64,
}

impl Tempo {
    /// From `at` on the rate is `factor` times the planned one; later than every change before, `factor` above 0.
    pub fn change(&mut self, at: u64, factor: f64) {
        let planned = match self.stretches.last() {
            None => at,
            Some(last) => {
                let passed = (at - last.from) as f64 * last.factor;
                // Rounded up: what was due before the change belongs to the time before it.
                last.planned.saturating_add(passed.ceil() as u64)
            }
        };
        self.stretches.push(Stretch {
            from: at,
            planned,
            factor,
        });
    }

    /// Due time of an arrival that the plan has due at `planned`; `u64::MAX`: never.
    #[inline]
    pub fn due(&self, planned: u64) -> u64 {
        if self.stretches.is_empty() {
            planned
        } else {
            self.due_after_changes(planned)
        }
    }

    #[cold]
    fn due_after_changes(&self, planned: u64) -> u64 {
        let next = self
            .stretches
            .partition_point(|stretch| stretch.planned < planned);
        if next == 0 || planned == u64::MAX {
            return planned;
        }
        let Stretch {
            from,
            planned: begins,
            factor,
        } = self.stretches[next - 1];
        let after = ((planned - begins) as f64 / factor).round() as u64;
        let ends = self.stretches.get(next).map_or(u64::MAX, |next| next.from);
        from.saturating_add(after).min(ends)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arrival::{Part, Schedule};
    use crate::{Arrivals, Share};

    const S: u64 = 1_000_000_000;

    /// Due times before `end` of a part of a schedule with changes.
    fn due(
        rate_per_s: f64,
        arrivals: Arrivals,
        part: &Part,
        changes: &[(u64, f64)],
        end: u64,
    ) -> Vec<u64> {
        let mut tempo = Tempo::default();
        changes
            .iter()
            .for_each(|&(at, rate)| tempo.change(at, rate / rate_per_s));
        Schedule::new(3, rate_per_s, arrivals, part)
            .map(|planned| tempo.due(planned))
            .take_while(|due| *due < end)
            .collect()
    }

    #[test]
    fn a_constant_rate_that_is_doubled_and_halved_has_the_gaps_of_each_rate() {
        // By hand: 10/s from 0, 20/s after 300 ms, 5/s after 500 ms.
        let changes = [(3 * S / 10, 20.0), (S / 2, 5.0)];

        let all = due(10.0, Arrivals::Constant, &Part::whole(), &changes, S);

        let expected = [0, 100, 200, 300, 350, 400, 450, 500, 700, 900];
        assert_eq!(all, expected.map(|ms| ms * S / 1000));
    }

    #[test]
    fn what_never_comes_never_comes_at_another_rate_either() {
        let mut tempo = Tempo::default();
        tempo.change(S, 1000.0);

        assert_eq!(tempo.due(u64::MAX), u64::MAX);
    }

    #[test]
    fn poisson_counts_at_another_rate_have_that_rate_as_mean_and_variance() {
        // 100/s for 1 s, then 400/s; counts of 1,000 parts of 100 ms: mean and variance 40.
        let all = due(
            100.0,
            Arrivals::Poisson,
            &Part::whole(),
            &[(S, 400.0)],
            101 * S,
        );

        let mut counts = vec![0.0; 1000];
        for due in all.iter().filter(|due| **due >= S) {
            counts[((due - S) / (S / 10)) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 999.0;
        assert!((mean - 40.0).abs() < 0.8, "{mean}"); // four standard errors: 4 sqrt(40 / 1000)
        assert!((variance / 40.0 - 1.0).abs() < 0.18, "{variance}"); // 4 sqrt(2 / 1000)
    }

    /// Up to five changes, 1 ns to 3 s apart, to rates from 1 in 10 s to 100,000/s.
    fn changes() -> impl Strategy<Value = Vec<(u64, f64)>> {
        let step = (1..3 * S, -1.0..5.0f64);
        proptest::collection::vec(step, 0..5).prop_map(|steps| {
            let mut at = 0;
            let change = |(gap, power): (u64, f64)| {
                at += gap;
                (at, 10f64.powf(power))
            };
            steps.into_iter().map(change).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// A change leaves every due time before it as it was, and no later one comes before it.
        #[test]
        fn what_is_due_before_a_change_stays_due(
            changes in changes(),
            rate_per_s in 0.5..2e4f64,
            is_poisson: bool,
        ) {
            let arrivals = if is_poisson { Arrivals::Poisson } else { Arrivals::Constant };
            for count in 0..changes.len() {
                let (at, _) = changes[count];
                let mut before = Tempo::default();
                changes[..count].iter().for_each(|&(at, rate)| before.change(at, rate / rate_per_s));
                let mut after = before.clone();
                after.change(at, changes[count].1 / rate_per_s);
                let planned = Schedule::new(5, rate_per_s, arrivals, &Part::whole());
                for planned in planned.take(3000) {
                    let (was, is) = (before.due(planned), after.due(planned));
                    if was < at {
                        prop_assert_eq!(is, was);
                    } else {
                        prop_assert!(is >= at, "{} of {}, changed at {}", is, was, at);
                    }
                }
            }
        }

        /// The same changes give the same due times in any number of threads, and they rise.
        #[test]
        fn parts_with_the_same_changes_are_the_whole(
            changes in changes(),
            rate_per_s in 0.5..300f64,
            threads in 1u32..5,
        ) {
            let end = 2 * S;
            let all = due(rate_per_s, Arrivals::Poisson, &Part::whole(), &changes, end);
            let mut parts: Vec<u64> = (0..threads)
                .flat_map(|thread| {
                    let part = Part::new(Share::default(), thread, threads);
                    due(rate_per_s, Arrivals::Poisson, &part, &changes, end)
                })
                .collect();
            parts.sort_unstable();
            prop_assert!(all.is_sorted());
            prop_assert_eq!(parts, all);
        }

        /// Between two changes come rate x time arrivals, less or more than one.
        #[test]
        fn each_rate_holds_until_the_next_change(changes in changes(), rate_per_s in 0.5..3e4f64) {
            let end = changes.last().map_or(S, |(at, _)| at + S);
            let all = due(rate_per_s, Arrivals::Constant, &Part::whole(), &changes, end);
            let bounds = [(0, rate_per_s)].into_iter().chain(changes.iter().copied());
            let ends = changes.iter().map(|(at, _)| *at).chain([end]);
            for ((from, rate), until) in bounds.zip(ends) {
                let count = all.iter().filter(|due| (from..until).contains(*due)).count() as f64;
                let expected = rate * (until - from) as f64 / 1e9;
                prop_assert!((count - expected).abs() <= 1.0 + 1e-6 * expected, "{count} of {expected} at {rate}");
            }
        }
    }
}
