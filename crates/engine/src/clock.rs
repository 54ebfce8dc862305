//! Time as the engine sees it: nanoseconds since `t0`, the moment that the warm-up begins.
//!
//! Every worker reads time through [`Clock`], so a simulated run replays to the nanosecond. The real
//! clock is CLOCK_MONOTONIC; one reading costs about 24 ns and is taken for each response.

use loadlens_sys as sys;

pub use sys::ThreadTimes;

/// A source of time for one worker.
pub trait Clock {
    /// Nanoseconds since `t0`; never falls.
    fn now(&self) -> u64;
    /// CPU use of the calling thread; zeros where unknown.
    fn thread_times(&mut self) -> ThreadTimes;
}

/// CLOCK_MONOTONIC relative to `t0`.
pub struct MonotonicClock {
    t0: u64,
    schedstat: Option<sys::Schedstat>,
}

impl MonotonicClock {
    /// A clock for the calling thread; `t0` is a reading of [`monotonic_ns`].
    pub fn new(t0: u64) -> Self {
        MonotonicClock {
            t0,
            schedstat: sys::Schedstat::of_this_thread(),
        }
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> u64 {
        sys::monotonic_ns().saturating_sub(self.t0)
    }

    fn thread_times(&mut self) -> ThreadTimes {
        self.schedstat
            .as_mut()
            .and_then(sys::Schedstat::read)
            .unwrap_or_default()
    }
}

/// CLOCK_MONOTONIC as it is, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    sys::monotonic_ns()
}
