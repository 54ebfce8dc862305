//! State that the threads of a run share: the end of its measured part, and changes of its load.
//!
//! A part that ends by itself ends with the last answer of its last load, a moment that has passed when it is known.
//! Threads that carry none of the load any more therefore say and look here at each reading of their clocks how far
//! they have counted, as all do at a cut, and no end lies before that: what was counted is out of the thread's hands.
//!
//! A change of the load lies ahead like a stop, so that every thread applies it at the same moment.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadlens_base::units::MILLISECOND;
use serde::{Deserialize, Serialize};

/// A stop and a change of the load lie so far ahead that every thread sees them before they come, and all keep to the
/// same moment: a thread that has not looked for so long has noticed that it stood still.
pub const AHEAD: u64 = 50 * MILLISECOND;

/// A new level of a load.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum Level {
    /// Of an open stream: iterations per second, total.
    RatePerS(f64),
    /// Of a closed stream: users at once, total.
    Users(u32),
}

/// A change of the load of one stream.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Change {
    /// Time at which it takes effect, nanoseconds since `t0`.
    pub at: u64,
    /// Index of the stream in the plan.
    pub stream: u8,
    /// The level before.
    pub old: Level,
    /// The level from then on.
    pub new: Level,
}

/// The end of a run and the changes of its load, as all its threads see them.
#[derive(Debug)]
pub struct Control {
    end: AtomicU64,
    is_stopped: AtomicBool,
    /// Parts of load streams that have not ended.
    load_left: AtomicUsize,
    /// End of the last request of the parts that have ended.
    last: AtomicU64,
    /// No end that is still to be set lies before this.
    counted: Mutex<u64>,
    /// In order of time.
    changes: Mutex<Vec<Change>>,
    /// Their number.
    changed: AtomicUsize,
}

impl Control {
    /// A run whose measured part ends at `end` or when `load_parts` parts have ended.
    pub fn new(end: u64, load_parts: usize) -> Self {
        // A share of the load so small that none of it falls to this machine has ended before it begins.
        let has_no_end = load_parts == 0 && end == u64::MAX;
        Control {
            end: AtomicU64::new(if has_no_end { 0 } else { end }),
            is_stopped: AtomicBool::new(false),
            load_left: AtomicUsize::new(load_parts),
            last: AtomicU64::new(0),
            counted: Mutex::new(0),
            changes: Mutex::default(),
            changed: AtomicUsize::new(0),
        }
    }

    /// End of the measured part, in nanoseconds since `t0`; only falls.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// True if a caller requested an early end.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Asks for an early end at `at`.
    pub fn stop(&self, at: u64) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.end_at(at);
    }

    /// A thread counts up to `now`: from here on no end lies before that, or before the end if that has come.
    pub(super) fn count_until(&self, now: u64) {
        let mut counted = self.counted();
        *counted = (*counted).max(self.end().min(now + 1));
    }

    /// A part of the load has ended, its last request at `at`: what ended at that moment is still measured.
    pub(super) fn end_part(&self, at: u64) {
        self.last.fetch_max(at, Ordering::AcqRel);
        if self.load_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end_at(self.last.load(Ordering::Acquire) + 1);
        }
    }

    fn end_at(&self, at: u64) {
        let counted = self.counted();
        self.end.fetch_min(at.max(*counted), Ordering::AcqRel);
    }

    fn counted(&self) -> MutexGuard<'_, u64> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change that `judge` makes from those before; it lies later than they do.
    pub fn change<E>(
        &self,
        judge: impl FnOnce(&[Change]) -> Result<Change, E>,
    ) -> Result<Change, E> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut change = judge(&changes)?;
        change.at = change.at.max(changes.last().map_or(0, |last| last.at + 1));
        changes.push(change);
        self.changed.store(changes.len(), Ordering::Release);
        Ok(change)
    }

    /// Number of changes so far.
    #[inline]
    pub fn changed(&self) -> usize {
        self.changed.load(Ordering::Acquire)
    }

    /// The changes from this one on.
    pub fn changes_from(&self, first: usize) -> Vec<Change> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes[first..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_ends_the_run_at_the_last_answer_of_all_parts() {
        let control = Control::new(u64::MAX, 2);

        control.end_part(100);
        let after_one = control.end();
        control.end_part(90); // called later, ended earlier

        assert_eq!((after_one, control.end()), (u64::MAX, 101));
    }

    #[test]
    fn no_end_lies_before_a_cut() {
        let control = Control::new(u64::MAX, 1);

        control.count_until(250);
        control.end_part(240);
        control.count_until(300); // after the end there is nothing to agree on
        control.stop(260);

        assert_eq!(control.end(), 251);
    }

    #[test]
    fn the_planned_end_stays_once_a_thread_has_come_to_it() {
        let control = Control::new(100, 1);

        control.count_until(130); // it woke late
        control.end_part(95); // another thread was kept from its core between its last answer and this call

        assert_eq!(control.end(), 100);
    }
}
