//! Counts behind wrk's statistics, on one thread: the latency of each answer to the microsecond, and answers in each
//! tenth of a second.
//!
//! Counts stand in pages of 4,096 microseconds, of which only those are there that were needed: a thread whose answers
//! take some milliseconds needs a few of them, and none more for more answers.

use std::collections::BTreeMap;

use loadlens_base::units::{MICROSECOND, MILLISECOND};
use loadlens_record::recorder::Ended;

const PAGE: usize = 4096;
/// Period at which wrk samples the rate of a thread.
const RATE_EVERY: u64 = 100 * MILLISECOND;
/// Tenths of a second for which room is made at the start, at most: an hour.
const MOST_RESERVED: u64 = 36_000;

/// Counts of one thread.
#[derive(Debug, Default)]
pub struct Tally {
    /// By microseconds / 4,096.
    pages: Vec<Option<Box<[u64; PAGE]>>>,
    /// Answers in each tenth of a second since the start.
    tenths: Vec<u32>,
    bytes: u64,
    above_399: u64,
}

impl Tally {
    /// A tally with room for a load and answers of this length.
    pub fn new(duration_ns: u64, timeout_ns: u64) -> Tally {
        let pages = (timeout_ns / MICROSECOND) as usize / PAGE + 2;
        let tenths = (duration_ns / RATE_EVERY).min(MOST_RESERVED) + 2;
        Tally {
            pages: Vec::with_capacity(pages.min(1 << 16)),
            tenths: Vec::with_capacity(tenths as usize),
            bytes: 0,
            above_399: 0,
        }
    }

    /// Takes notice of the end of a request; only answers count.
    #[inline]
    pub fn ended(&mut self, ended: &Ended) {
        if ended.outcome.is_answered() {
            self.answered(ended.done, ended.done.saturating_sub(ended.due));
            self.bytes += ended.wire_bytes;
            self.above_399 += u64::from(ended.status > 399);
        }
    }

    #[inline]
    fn answered(&mut self, at: u64, took_ns: u64) {
        let micros = (took_ns / MICROSECOND) as usize;
        match self.pages.get_mut(micros / PAGE) {
            Some(Some(page)) => page[micros % PAGE] += 1,
            _ => self.add_page(micros),
        }
        let tenth = (at / RATE_EVERY) as usize;
        match self.tenths.get_mut(tenth) {
            Some(count) => *count += 1,
            None => {
                self.tenths.resize(tenth + 1, 0);
                self.tenths[tenth] = 1;
            }
        }
    }

    #[cold]
    fn add_page(&mut self, micros: usize) {
        let at = micros / PAGE;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        self.pages[at].get_or_insert_with(|| Box::new([0; PAGE]))[micros % PAGE] += 1;
    }

    /// Bytes of all answers.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Answers with a status above 399.
    pub fn above_399(&self) -> u64 {
        self.above_399
    }

    /// Adds its latencies, in microseconds with their counts.
    pub fn add_latencies(&self, to: &mut BTreeMap<u64, u64>) {
        for (number, page) in self.pages.iter().enumerate() {
            for (at, count) in page.iter().flat_map(|page| page.iter().enumerate()) {
                if *count > 0 {
                    *to.entry((number * PAGE + at) as u64).or_default() += count;
                }
            }
        }
    }

    /// Adds its rates, answers per second with how many tenths of a second had them. Only tenths that the load filled
    /// count; one without an answer is a rate of 0.
    pub fn add_rates(&self, measured_ns: u64, to: &mut BTreeMap<u64, u64>) {
        for tenth in 0..(measured_ns / RATE_EVERY) as usize {
            let count = self.tenths.get(tenth).copied().unwrap_or(0);
            *to.entry(u64::from(count) * 10).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_counted_at_its_whole_microsecond() {
        let mut tally = Tally::new(0, 0);
        for took_ns in [0, 999, 1_000, 4_095_999, 4_096_000, 60_000_000_000] {
            tally.answered(0, took_ns);
        }

        let mut latencies = BTreeMap::new();
        tally.add_latencies(&mut latencies);

        let expected = [(0, 2), (1, 1), (4_095, 1), (4_096, 1), (60_000_000, 1)];
        assert_eq!(latencies.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_tenth_of_a_second_without_answers_is_a_rate_of_nought() {
        let mut tally = Tally::new(0, 0);
        // Three in the first tenth, none in the second, one in the third; the fourth was not full.
        for at in [0, 50_000_000, 99_999_999, 250_000_000, 340_000_000] {
            tally.answered(at, 1);
        }

        let mut rates = BTreeMap::new();
        tally.add_rates(345_000_000, &mut rates);

        assert_eq!(
            rates.into_iter().collect::<Vec<_>>(),
            [(0, 1), (10, 1), (30, 1)]
        );
    }
}
