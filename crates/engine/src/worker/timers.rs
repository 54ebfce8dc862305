//! Moments at which a user is to be looked at: ends of pauses, and deadlines.
//!
//! A user has at most one entry of each kind, and one more for each time that a change of the load lets it go in a
//! pause. A deadline's entry is not moved for each request: when
//! its time comes the worker looks at the user's real deadline and, if that is later, enters it again.
//! So a request that ends in time costs no timer operation, and the heap never outgrows the users.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A user of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserRef {
    /// Index of the shard in the worker.
    pub shard: u8,
    /// Index of the user in the shard.
    pub user: u32,
}

impl UserRef {
    /// User `user` of the shard at `shard`.
    pub fn new(shard: usize, user: u32) -> Self {
        let shard = shard as u8;
        UserRef { shard, user }
    }
}

/// Reason for a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The end of a pause.
    Due,
    /// The deadline of a request.
    Deadline,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// Time at which the timer fires.
    pub at: u64,
    /// User of the timer.
    pub who: UserRef,
    /// Kind of the timer.
    pub kind: Kind,
}

/// All timers of one worker, the earliest first.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
}

impl Timers {
    /// Room for so many users without growing.
    pub fn for_users(users: usize) -> Self {
        Timers {
            heap: BinaryHeap::with_capacity(2 * users),
        }
    }

    /// Enters one.
    pub fn push(&mut self, timer: Timer) {
        self.heap.push(Reverse(timer));
    }

    /// Time at which the first timer fires.
    pub fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(timer)| timer.at)
    }

    /// Takes the first if its time has come.
    pub fn pop(&mut self, now: u64) -> Option<Timer> {
        (self.next()? <= now).then(|| self.heap.pop().map(|Reverse(timer)| timer))?
    }
}
