//! This process, its threads and its copies: where they run, what ends them, what they may open.

use std::os::fd::{OwnedFd, RawFd};
use std::{io, mem, ptr};

use crate::{check, owned, wait_readable};

/// Lets this thread's timers fire on time instead of up to 50 microseconds late.
pub fn precise_timers() {
    // SAFETY: no pointers; a failure leaves the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Asks the scheduler to run this thread in short turns, and therefore soon after it wakes, with the same share of time.
///
/// Kernels before Linux 6.12 know no turn of a thread's own and ignore it.
pub fn short_turns() {
    /// The shortest that there is.
    const TURN_NS: u64 = 100_000;
    // SAFETY: the structure is plain bits that the kernel fills and reads; a failure leaves the default.
    unsafe {
        let mut attributes: libc::sched_attr = mem::zeroed();
        let size = mem::size_of::<libc::sched_attr>();
        if libc::syscall(libc::SYS_sched_getattr, 0, &mut attributes, size, 0) == 0 {
            attributes.sched_runtime = TURN_NS;
            libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0);
        }
    }
}

/// Keeps the calling thread, and whatever it starts from here on, on some processors.
pub fn confine(cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|cpu| *cpu >= libc::CPU_SETSIZE as usize) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: cpu_set_t is plain bits, and every index is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        check(libc::sched_setaffinity(0, mem::size_of_val(&set), &set)).map(|_| ())
    }
}

/// The soft and hard limit of open descriptors.
pub fn descriptor_limits() -> io::Result<(u64, u64)> {
    limits(libc::RLIMIT_NOFILE)
}

/// Sets the soft limit of open descriptors to `soft`, which is at most `hard`.
pub fn set_descriptor_limit(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: `limit` lives through the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).map(|_| ())
}

/// Raises the limit of open descriptors as far as this process may; a failure leaves the old one.
pub fn raise_descriptor_limit() {
    let _ = descriptor_limits().and_then(|(_, hard)| set_descriptor_limit(hard, hard));
}

/// The limit of this process's address space; none: unlimited, or unknown.
pub fn address_space_limit() -> Option<u64> {
    let (soft, _) = limits(libc::RLIMIT_AS).ok()?;
    (soft != libc::RLIM_INFINITY).then_some(soft)
}

fn limits(of: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    check(unsafe { libc::getrlimit(of, &mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// A descriptor that becomes readable on TERM or INT, which no longer end the process by themselves.
/// Call before any thread is started: threads inherit the mask.
pub fn termination_signals() -> io::Result<OwnedFd> {
    // SAFETY: `set` is initialised by sigemptyset before use; the descriptor returned is ours alone.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()))?;
        owned(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))
    }
}

/// Returns on TERM or INT, read from `signals`. With `on_line`, it also reads standard input: it calls `on_line` after each
/// line and returns at the end, so that a server does not outlive its caller.
pub fn wait_for_the_end(signals: RawFd, on_line: Option<&dyn Fn()>) {
    let watched = [signals, libc::STDIN_FILENO];
    let watched = &watched[..if on_line.is_some() { 2 } else { 1 }];
    loop {
        let ready = wait_readable(watched, None);
        if ready[0] {
            return;
        }
        let Some(on_line) = on_line.filter(|_| ready[1]) else {
            continue;
        };
        match io::stdin().lines().next() {
            Some(Ok(_)) => on_line(),
            _ => return,
        }
    }
}

/// Asks the kernel to send TERM when the process that started us ends.
pub fn end_with_parent() {
    ask_for_at_end_of_parent(libc::SIGTERM);
}

fn ask_for_at_end_of_parent(signal: libc::c_int) {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong, 0, 0, 0) };
}

/// A copy of this process, which must have one thread only; none in the copy, which ends with its parent.
pub fn fork() -> io::Result<Option<i32>> {
    // SAFETY: the caller has one thread, so the copy may go on as it likes.
    match check(unsafe { libc::fork() })? {
        0 => {
            ask_for_at_end_of_parent(libc::SIGKILL);
            Ok(None)
        }
        pid => Ok(Some(pid)),
    }
}

/// Ends a child and waits for that.
pub fn end_child(pid: i32) {
    // SAFETY: a null status is allowed; `pid` is a child, waited for here alone.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, ptr::null_mut(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_to_string;
    use std::os::fd::AsRawFd;

    /// A line of the calling thread's status.
    fn status(name: &str) -> String {
        let status = read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().to_owned()
    }

    #[test]
    fn a_confined_thread_runs_where_it_is_told_to() {
        let allowed = status("Cpus_allowed_list:");
        let first = allowed.split(['-', ',']).next().unwrap();

        confine(&[first.parse().unwrap()]).unwrap();

        assert_eq!(status("Cpus_allowed_list:"), first);
    }

    #[test]
    fn no_processor_at_all_and_one_beyond_the_last_are_errors() {
        for cpus in [&[][..], &[1 << 20]] {
            let error = confine(cpus).unwrap_err();

            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        }
    }

    #[test]
    fn a_processor_beyond_the_mask_of_the_kernel_is_an_error() {
        let error = confine(&[1 << 20]).unwrap_err();

        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_thread_asks_for_timers_of_a_nanosecond() {
        precise_timers();

        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }, 1);
    }

    #[test]
    fn as_many_descriptors_as_may_be_are_allowed() {
        let low = |soft| {
            let mut limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: `limit` is a valid rlimit in both calls.
            unsafe {
                libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
                limit.rlim_cur = soft;
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            }
            limit.rlim_max
        };
        let hard = low(256); // other tests need a few

        raise_descriptor_limit();

        let limits = read_to_string("/proc/self/limits").unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"))
            .unwrap();
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        assert_eq!(words[3..5], [hard.to_string(), hard.to_string()]);
    }

    #[test]
    fn a_signal_to_end_is_read_and_ends_nothing() {
        let signals = termination_signals().unwrap();
        let is_readable = || wait_readable(&[signals.as_raw_fd()], Some(0));

        let before = is_readable();
        // SAFETY: no pointers; the signal goes to this thread, which has it blocked.
        unsafe { libc::raise(libc::SIGTERM) };

        assert_eq!((before, is_readable()), (vec![false], vec![true]));
    }

    #[test]
    fn the_end_of_the_parent_is_to_end_us() {
        let mut signal: libc::c_int = 0;

        end_with_parent();

        // SAFETY: the signal is written to a valid place. The second call takes the wish back.
        unsafe {
            libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal);
            libc::prctl(libc::PR_SET_PDEATHSIG, 0 as libc::c_ulong, 0, 0, 0);
        }
        assert_eq!(signal, libc::SIGTERM);
    }
}
