//! Division of numbered things (arrivals, users, requests, feed records) among machines and their threads.
//!
//! The numbers 0, 1, 2 ... are dealt to the parts of a share in rounds. Parts have their turn in the order of their
//! numbers with the bits reversed (J. G. van der Corput, 1935), so that the numbers of a machine lie evenly within a
//! round, whatever its weight: a machine with 500 parts of 900 does not get 500 arrivals in a row and then none.
//! docs/adr/0084 compares other ways.

use std::sync::Arc;

use crate::Share;

/// The numbers of one thread of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Places of the machine in a round, rising.
    places: Arc<[u32]>,
    /// Length of a round.
    of: u64,
    thread: u64,
    threads: u64,
}

impl Part {
    /// All numbers.
    pub fn whole() -> Self {
        Part::new(Share::default(), 0, 1)
    }

    /// The numbers of thread `thread` of `threads` on the machine that has `share`, which is valid.
    ///
    /// Machines may have different numbers of threads.
    pub fn new(share: Share, thread: u32, threads: u32) -> Self {
        let mut parts: Vec<u32> = (0..share.of).collect();
        parts.sort_unstable_by_key(|part| part.reverse_bits());
        let is_here = |(part, _): &(u32, u32)| (share.from..share.to).contains(part);
        let turns = parts.into_iter().zip(0..);
        Part {
            places: turns.filter(is_here).map(|(_, place)| place).collect(),
            of: u64::from(share.of),
            thread: u64::from(thread),
            threads: u64::from(threads),
        }
    }

    /// Its number `index`, counted from 0; numbers rise.
    pub fn number(&self, index: u64) -> u64 {
        let of_machine = self.thread + self.threads * index;
        let here = self.places.len() as u64;
        of_machine / here * self.of + u64::from(self.places[(of_machine % here) as usize])
    }

    /// Its first number: no other part has it.
    pub fn first(&self) -> u64 {
        self.number(0)
    }

    /// Count of its numbers below `total`.
    pub fn count_of(&self, total: u64) -> u64 {
        let in_last_round = (total % self.of) as u32;
        let last = self.places.partition_point(|place| *place < in_last_round);
        let of_machine = total / self.of * self.places.len() as u64 + last as u64;
        of_machine
            .saturating_sub(self.thread)
            .div_ceil(self.threads)
    }

    /// Its numbers from the first on.
    pub fn numbers(&self) -> Numbers {
        let here = self.places.len() as u64;
        Numbers {
            places: self.places.clone(),
            of: self.of,
            round: self.thread / here * self.of,
            at: (self.thread % here) as usize,
            rounds_on: self.threads / here * self.of,
            places_on: (self.threads % here) as usize,
        }
    }
}

/// The numbers of a part, one after the other, without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    places: Arc<[u32]>,
    of: u64,
    /// First number of the round that the next one is in.
    round: u64,
    /// Index of its place.
    at: usize,
    /// From one number to the next: whole rounds, as numbers, and places.
    rounds_on: u64,
    places_on: usize,
}

impl Numbers {
    /// The next number.
    #[inline]
    pub fn advance(&mut self) -> u64 {
        let number = self.round.saturating_add(u64::from(self.places[self.at]));
        self.round = self.round.saturating_add(self.rounds_on);
        self.at += self.places_on;
        if self.at >= self.places.len() {
            self.at -= self.places.len();
            self.round = self.round.saturating_add(self.of);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Machines with these weights and numbers of threads, each as its parts.
    fn fleet(machines: &[(u32, u32)]) -> Vec<Vec<Part>> {
        let of = machines.iter().map(|(weight, _)| weight).sum();
        let mut from = 0;
        let mut of_machine = |&(weight, threads): &(u32, u32)| {
            let share = Share {
                from,
                to: from + weight,
                of,
            };
            from += weight;
            (0..threads)
                .map(|thread| Part::new(share, thread, threads))
                .collect()
        };
        machines.iter().map(&mut of_machine).collect()
    }

    #[test]
    fn weights_of_one_three_and_five_deal_nine_numbers_evenly() {
        // By hand: 0 to 8 as four bits, reversed: 0 8 4 12 2 10 6 14 1; sorted: parts 0 8 4 2 6 1 5 3 7.
        let numbers =
            |part: &Part| -> Vec<u64> { (0..7).map(|index| part.number(index)).collect() };

        let fleet = fleet(&[(1, 1), (3, 1), (5, 2)]);

        assert_eq!(numbers(&fleet[0][0]), [0, 9, 18, 27, 36, 45, 54]);
        assert_eq!(numbers(&fleet[1][0]), [3, 5, 7, 12, 14, 16, 21]);
        assert_eq!(numbers(&fleet[2][0]), [1, 4, 8, 11, 15, 19, 22]);
        assert_eq!(numbers(&fleet[2][1]), [2, 6, 10, 13, 17, 20, 24]);
    }

    #[test]
    fn the_threads_of_a_machine_that_is_alone_take_turns() {
        let mut numbers = Part::new(Share::default(), 1, 3).numbers();

        assert_eq!([1, 4, 7, 10], [(); 4].map(|()| numbers.advance()));
    }

    fn machines() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let weight = prop_oneof![Just(1u32), 1u32..6, 1u32..400];
        let sizes = prop_oneof![Just(1usize), Just(2), Just(3), Just(4), Just(7)];
        sizes.prop_flat_map(move |size| prop::collection::vec((weight.clone(), 1u32..6), size))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_number_belongs_to_exactly_one_part(machines in machines(), total in 0u64..5000) {
            let mut all = Vec::new();
            for part in fleet(&machines).concat() {
                let mut numbers = part.numbers();
                let ours: Vec<u64> = (0..part.count_of(total)).map(|_| numbers.advance()).collect();
                let by_index: Vec<u64> = (0..ours.len() as u64).map(|index| part.number(index)).collect();
                prop_assert_eq!(&ours, &by_index);
                prop_assert!(numbers.advance() >= total);
                all.extend(ours);
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..total).collect::<Vec<_>>());
        }

        /// A machine never does much more, or less, than its weight of any stretch of arrivals.
        #[test]
        fn each_machine_has_its_weight_of_every_stretch(
            machines in machines(), begin in 0u64..3000, length in 1u64..3000,
        ) {
            let of: u32 = machines.iter().map(|(weight, _)| weight).sum();
            for (parts, (weight, _)) in fleet(&machines).iter().zip(&machines) {
                let before = |total: u64| parts.iter().map(|part| part.count_of(total)).sum::<u64>();
                let count = (before(begin + length) - before(begin)) as f64;
                let due = length as f64 * f64::from(*weight) / f64::from(of);
                // Four ends of stretches, each with the discrepancy of the sequence: less than 1 + log2(n) / 3.
                let bound = 4.0 * (1.0 + f64::from(of).log2() / 3.0);
                prop_assert!((count - due).abs() <= bound, "{count} of {due}, weight {weight} of {of}");
            }
        }
    }
}
