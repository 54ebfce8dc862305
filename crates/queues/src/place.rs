//! One station at work: requests served, requests waiting, and the time integrals of both.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::model::Discipline;

/// A time that can be ordered; never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time(pub f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Processors that are shared: each request has got the same amount of work since it came.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// Work that each request present has got since this was last 0.
    given: f64,
    /// By the amount at which they are done, then by order of arrival.
    jobs: BinaryHeap<Reverse<(Time, u64, u32)>>,
    arrivals: u64,
    /// Version of the next completion event; events of older versions are void.
    pub version: u32,
}

/// One station.
#[derive(Debug)]
pub(crate) struct Place {
    pub discipline: Discipline,
    pub capacity: f64,
    per_job: f64,
    /// FIFO and semaphore: servers or units in use.
    used: u32,
    pub queue: VecDeque<(u32, f64)>,
    pub sharing: Sharing,
    last: f64,
    busy_area: f64,
    waiting_area: f64,
}

impl Place {
    pub fn new(discipline: Discipline, capacity: f64, per_job: Option<f64>) -> Self {
        Place {
            discipline,
            capacity,
            per_job: per_job.unwrap_or(1.0),
            used: 0,
            queue: VecDeque::new(),
            sharing: Sharing::default(),
            last: 0.0,
            busy_area: 0.0,
            waiting_area: 0.0,
        }
    }

    /// Work a second that each of those present gets.
    fn speed(&self) -> f64 {
        self.per_job
            .min(self.capacity / self.sharing.jobs.len() as f64)
    }

    /// Brings integrals and shared work up to now; before every change.
    pub fn touch(&mut self, now: f64) {
        let passed = now - self.last;
        self.last = now;
        if passed <= 0.0 {
            return;
        }
        let present = self.sharing.jobs.len();
        if present > 0 {
            let speed = self.speed();
            self.sharing.given += passed * speed;
            self.busy_area += passed * speed * present as f64;
        } else {
            self.busy_area += passed * f64::from(self.used);
        }
        self.waiting_area += passed * self.queue.len() as f64;
    }

    /// Forgets what was integrated so far.
    pub fn forget(&mut self, now: f64) {
        self.touch(now);
        self.busy_area = 0.0;
        self.waiting_area = 0.0;
    }

    /// Mean use and mean number waiting over the last so many seconds.
    pub fn means(&mut self, now: f64, seconds: f64) -> (f64, f64) {
        self.touch(now);
        (self.busy_area / seconds, self.waiting_area / seconds)
    }

    /// Takes a server or unit if one is free.
    pub fn take(&mut self, now: f64) -> bool {
        self.touch(now);
        let is_free = f64::from(self.used) < self.capacity;
        self.used += u32::from(is_free);
        is_free
    }

    /// Lets a request wait, with the work that it brings.
    pub fn wait(&mut self, job: u32, work: f64) {
        self.queue.push_back((job, work));
    }

    /// Gives a server or unit back: to the job that waited longest, which is returned, if there is one.
    pub fn give(&mut self, now: f64) -> Option<(u32, f64)> {
        self.touch(now);
        let next = self.queue.pop_front();
        if next.is_none() {
            self.used -= 1;
        }
        next
    }

    /// Shares processors with one more; returns when the next is done.
    pub fn share(&mut self, now: f64, job: u32, work: f64) -> f64 {
        self.touch(now);
        if self.sharing.jobs.is_empty() {
            self.sharing.given = 0.0;
        }
        self.sharing.arrivals += 1;
        let done = Time(self.sharing.given + work);
        self.sharing
            .jobs
            .push(Reverse((done, self.sharing.arrivals, job)));
        self.next_done(now)
    }

    /// Removes the job that is done, and returns the time at which the next will be; none: no job is left.
    pub fn leave(&mut self, now: f64) -> Option<(u32, Option<f64>)> {
        self.touch(now);
        let Reverse((_, _, job)) = self.sharing.jobs.pop()?;
        let next = (!self.sharing.jobs.is_empty()).then(|| self.next_done(now));
        Some((job, next))
    }

    fn next_done(&mut self, now: f64) -> f64 {
        self.sharing.version = self.sharing.version.wrapping_add(1);
        let first = self
            .sharing
            .jobs
            .peek()
            .map_or(0.0, |Reverse((t, _, _))| t.0);
        now + (first - self.sharing.given).max(0.0) / self.speed()
    }
}
