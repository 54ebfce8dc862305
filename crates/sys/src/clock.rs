//! The clocks of the machine, of a thread and of a process.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Time for which the machine was suspended since it booted, to some microseconds: CLOCK_MONOTONIC stands still then.
pub fn suspended_ns() -> u64 {
    let awake = monotonic_ns();
    read(libc::CLOCK_BOOTTIME).saturating_sub(awake)
}

/// Processor time of this thread so far.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time of all threads of a process so far; 0 once it is gone.
pub fn process_cpu_ns(pid: i32) -> u64 {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place to write to.
    if unsafe { libc::clock_getcpuclockid(pid, &mut clock) } != 0 {
        return 0;
    }
    read(clock)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = timespec(0);
    // SAFETY: `time` is a valid timespec to write to; an unknown clock leaves it at 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[inline]
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// Times of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a core, in nanoseconds.
    pub cpu_ns: u64,
    /// Runnable but without a core (second field of schedstat), in nanoseconds.
    pub runq_wait_ns: u64,
}

/// `/proc/thread-self/schedstat`, kept open: time on a core and time waiting for one.
pub struct Schedstat(File);

impl Schedstat {
    /// The times of the calling thread; none where the kernel does not keep them.
    pub fn of_this_thread() -> Option<Schedstat> {
        File::open("/proc/thread-self/schedstat")
            .ok()
            .map(Schedstat)
    }

    /// Reads it without allocating.
    pub fn read(&mut self) -> Option<ThreadTimes> {
        let mut text = [0u8; 96];
        let length = self.0.read_at(&mut text, 0).ok()?;
        let mut fields = std::str::from_utf8(&text[..length])
            .ok()?
            .split_ascii_whitespace();
        let cpu_ns = fields.next()?.parse().ok()?;
        let runq_wait_ns = fields.next()?.parse().ok()?;
        Some(ThreadTimes {
            cpu_ns,
            runq_wait_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_sleep_takes_its_time_and_hardly_any_of_a_processor() {
        let (began, used) = (monotonic_ns(), thread_cpu_ns());

        std::thread::sleep(Duration::from_millis(50));

        assert!(monotonic_ns() - began >= 50_000_000);
        assert!(thread_cpu_ns() - used < 25_000_000);
    }

    #[test]
    fn what_a_thread_uses_its_process_uses_too() {
        // The process is asked first and last, so that it is asked about more.
        let of_process = process_cpu_ns(own_pid());
        let of_thread = thread_cpu_ns();

        let mut state = 1u64;
        while thread_cpu_ns() < of_thread + 5_000_000 {
            state = std::hint::black_box(state.wrapping_mul(3));
        }

        assert!(process_cpu_ns(own_pid()) - of_process >= 5_000_000);
    }

    #[test]
    fn nanoseconds_are_split_at_the_second() {
        let time = timespec(3_000_000_007);

        assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
    }

    #[test]
    fn a_thread_knows_its_time_on_a_core() {
        let Some(mut schedstat) = Schedstat::of_this_thread() else {
            return;
        };
        let before = schedstat.read().unwrap();

        let mut sum = 0u64;
        while schedstat.read().unwrap().cpu_ns == before.cpu_ns {
            sum = std::hint::black_box(sum + 1);
        }

        assert!(schedstat.read().unwrap().cpu_ns > before.cpu_ns);
    }

    fn own_pid() -> i32 {
        std::process::id() as i32
    }
}
