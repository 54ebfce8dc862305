//! State that the threads of a run share: the end of its measured part.
//!
//! A part that ends by itself ends with the last answer of its last load, a moment that has passed when it is known.
//! Threads that carry none of the load any more therefore look here at each reading of their clocks, and no end lies
//! before a cut: what was counted up to a cut is out of the thread's hands.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadlens_base::units::MILLISECOND;

/// A stop lies so far ahead that every thread sees it before it comes: all end at the same moment.
pub const STOP_AHEAD: u64 = 25 * MILLISECOND;

/// The end of a run, as all its threads see it.
#[derive(Debug)]
pub struct Control {
    end: AtomicU64,
    is_stopped: AtomicBool,
    /// Parts of load streams that have not ended.
    load_left: AtomicUsize,
    /// End of the last request of the parts that have ended.
    last: AtomicU64,
    /// The end lies nowhere before this.
    counted: Mutex<u64>,
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

    /// A thread will cut up to `now`: from here on the end lies behind that, unless it was set before.
    pub(super) fn cut(&self, now: u64) {
        let mut counted = self.counted();
        if now < self.end() {
            *counted = (*counted).max(now + 1);
        }
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

        control.cut(250);
        control.end_part(240);
        control.cut(300); // after the end there is nothing to agree on
        control.stop(260);

        assert_eq!(control.end(), 251);
    }
}
