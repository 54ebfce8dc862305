//! Counts of a specimen, in memory that its processes share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::line::Line;
use crate::settings::{MOST_RESOURCES, MOST_ROUTES};

/// Statuses with a count of their own; all others are counted with the last.
pub const STATUSES: [u16; 7] = [200, 404, 429, 500, 502, 503, 504];
/// Upper bounds of the handlers' times, in seconds; one more bucket holds what is longer.
pub const BOUNDS_S: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Answers of one status, and how long their handlers took.
#[derive(Default)]
#[repr(C)]
pub struct Times {
    /// Time in the handler, summed.
    pub handler_ns: AtomicU64,
    /// Answers by duration, in buckets of [`BOUNDS_S`].
    pub buckets: [AtomicU64; BOUNDS_S.len() + 1],
}

impl Times {
    /// Answers in all.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|count| count.load(Relaxed)).sum()
    }
}

/// Counts of one path.
#[derive(Default)]
#[repr(C)]
pub struct RouteCounts {
    /// Requests read.
    pub received: AtomicU64,
    /// Answers, by [`STATUSES`].
    pub answered: [Times; STATUSES.len()],
}

/// Number and real duration of sleeps or holds; they last longer than planned, because threads wake up late.
#[derive(Default)]
#[repr(C)]
pub struct Lasted {
    /// Number of times.
    pub times: AtomicU64,
    /// Durations, summed.
    pub ns: AtomicU64,
}

impl Lasted {
    /// Once more.
    pub fn add(&self, ns: u64) {
        self.times.fetch_add(1, Relaxed);
        self.ns.fetch_add(ns, Relaxed);
    }
}

/// Holders and waiters of one resource, as they are now.
#[derive(Default)]
#[repr(C)]
pub struct ResourceCounts {
    /// Places held.
    pub held: AtomicU64,
    /// Requests that wait.
    pub waiting: AtomicU64,
    /// From where a place is someone's, woken or not, until it is given back.
    pub holds: Lasted,
}

/// Everything that is counted. All of it is numbers, for which zero is a value.
#[derive(Default)]
#[repr(C)]
pub struct Counts {
    /// Number of visits; also the number of the next.
    pub visits: AtomicU64,
    /// Time of the first visit, on the monotonic clock of the system.
    pub first_ns: AtomicU64,
    /// Handlers at work.
    pub busy: AtomicU64,
    /// Threads that serve.
    pub threads: AtomicU64,
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Rows of the data.
    pub rows: AtomicU64,
    /// Bytes kept for ever.
    pub leaked: AtomicU64,
    /// Waits that not every request has.
    pub chosen_waits: Lasted,
    /// Pauses, once for each that slept through one, from its beginning on.
    pub pauses: Lasted,
    /// By path.
    pub routes: [RouteCounts; MOST_ROUTES],
    /// By resource.
    pub resources: [ResourceCounts; MOST_RESOURCES],
}

impl Counts {
    /// A visit begins; its number.
    pub fn begin(&self, route: usize, now_ns: u64) -> u64 {
        let _ = self.first_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
        self.routes[route].received.fetch_add(1, Relaxed);
        self.visits.fetch_add(1, Relaxed)
    }

    /// A handler begins.
    pub fn work(&self) {
        self.busy.fetch_add(1, Relaxed);
    }

    /// A handler ends with an answer.
    pub fn end(&self, route: usize, status: u16, took_ns: u64) {
        self.busy.fetch_sub(1, Relaxed);
        let kind = STATUSES.iter().position(|&known| known == status);
        let tally = &self.routes[route].answered[kind.unwrap_or(STATUSES.len() - 1)];
        tally.handler_ns.fetch_add(took_ns, Relaxed);
        let seconds = took_ns as f64 / 1e9;
        let bucket = BOUNDS_S.iter().position(|&bound| seconds <= bound);
        tally.buckets[bucket.unwrap_or(BOUNDS_S.len())].fetch_add(1, Relaxed);
    }

    /// Records the holders and waiters of a resource.
    pub fn stands<T>(&self, resource: usize, line: &Line<T>) {
        let counts = &self.resources[resource];
        counts.held.store(line.held() as u64, Relaxed);
        counts.waiting.store(line.waiting() as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_counted_once_in_each_place() {
        let counts = Counts::default();

        let number = counts.begin(1, 5);
        counts.work();
        counts.end(1, 503, 30_000_000);

        assert_eq!(number, 0);
        assert_eq!(counts.begin(0, 7), 1);
        assert_eq!(counts.first_ns.load(Relaxed), 5);
        assert_eq!(counts.busy.load(Relaxed), 0);
        let of_503 = &counts.routes[1].answered[5];
        assert_eq!(of_503.count(), 1);
        assert_eq!(of_503.buckets[5].load(Relaxed), 1); // 25 to 50 ms
        assert_eq!(of_503.handler_ns.load(Relaxed), 30_000_000);
        assert_eq!(counts.routes[1].answered[0].count(), 0);
    }
}
