//! Waiting until a descriptor is ready: epoll, poll, and a bell that wakes a waiting thread.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::{io, ptr};

use crate::clock::timespec;
use crate::{check, owned};

/// An epoll instance. A watched event is reported again as long as it lasts, unless EPOLLET or EPOLLONESHOT is set.
pub struct Epoll {
    epoll: OwnedFd,
    /// The kernel has epoll_pwait2, which counts in nanoseconds (Linux 5.11).
    has_pwait2: bool,
}

impl Epoll {
    /// A new, empty one.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the descriptor returned is ours alone.
        let epoll = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }?;
        let mut epoll = Epoll {
            epoll,
            has_pwait2: true,
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }];
        epoll.has_pwait2 = epoll.pwait2(&mut events, Some(0)) >= 0
            || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS);
        Ok(epoll)
    }

    /// Watches `fd` for `events`, which come back with `token`.
    pub fn add(&self, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, token)
    }

    /// Changes what is watched.
    pub fn modify(&self, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, token)
    }

    /// Watches it no longer; that it is not watched already is as good.
    pub fn forget(&self, fd: RawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn control(&self, verb: libc::c_int, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` outlives the call.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), verb, fd, &mut event) }).map(|_| ())
    }

    /// Waits until something happens or `timeout_ns` has passed (none: for ever); a signal ends it with 0.
    #[inline]
    pub fn wait(&self, events: &mut [libc::epoll_event], timeout_ns: Option<u64>) -> usize {
        let count = if self.has_pwait2 {
            self.pwait2(events, timeout_ns)
        } else {
            self.poll_and_take(events, timeout_ns)
        };
        usize::try_from(count).unwrap_or(0)
    }

    #[inline]
    fn pwait2(&self, events: &mut [libc::epoll_event], timeout_ns: Option<u64>) -> libc::c_int {
        let timeout = timeout_ns.map(timespec);
        // SAFETY: `events` has room for `len` entries; the timeout outlives the call; a null mask keeps the signal mask.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as libc::c_int,
                timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
                ptr::null::<libc::sigset_t>(),
                0usize,
            ) as libc::c_int
        }
    }

    /// As `pwait2`, by two calls that every kernel has: ppoll counts in nanoseconds, epoll_wait in milliseconds.
    fn poll_and_take(
        &self,
        events: &mut [libc::epoll_event],
        timeout_ns: Option<u64>,
    ) -> libc::c_int {
        if timeout_ns != Some(0) {
            let _ = poll(
                &mut [asked(self.epoll.as_raw_fd(), libc::POLLIN)],
                timeout_ns,
            );
        }
        let room = events.len() as libc::c_int;
        // SAFETY: `events` has room for `room` entries.
        unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), room, 0) }
    }
}

/// Waits until one of `fds` is readable or `timeout_ns` has passed; returns which are readable (or ended).
pub fn wait_readable(fds: &[RawFd], timeout_ns: Option<u64>) -> Vec<bool> {
    let mut polled: Vec<_> = fds.iter().map(|&fd| asked(fd, libc::POLLIN)).collect();
    let is_any = poll(&mut polled, timeout_ns).is_ok_and(|count| count > 0);
    polled
        .iter()
        .map(|one| is_any && one.revents != 0)
        .collect()
}

/// Waits until there is room to send; `TimedOut` when `timeout_ns` has passed before.
pub fn wait_writable(fd: RawFd, timeout_ns: u64) -> io::Result<()> {
    match poll(&mut [asked(fd, libc::POLLOUT)], Some(timeout_ns))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

fn asked(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Waits up to `timeout_ns` (none: for ever); returns the number of ready ones.
fn poll(polled: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<libc::c_int> {
    let limit = timeout_ns.map(timespec);
    let limit_at = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = polled.len() as libc::nfds_t;
    // SAFETY: `polled` and `limit` outlive the call; a null mask keeps the signal mask.
    check(unsafe { libc::ppoll(polled.as_mut_ptr(), count, limit_at, ptr::null()) })
}

/// A counter that wakes the thread that waits for it.
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent one.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: no pointers; the descriptor returned is ours alone.
        unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }.map(Bell)
    }

    /// Wakes the waiter.
    pub fn ring(&self) {
        let increment = 1u64.to_ne_bytes();
        // SAFETY: eight bytes are read from `increment`. It can fail only when it rings already.
        unsafe { libc::write(self.0.as_raw_fd(), increment.as_ptr().cast(), 8) };
    }

    /// Makes it silent again.
    pub fn quiet(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight bytes are written to `count`. It can fail only when it is silent already.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monotonic_ns;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const READ: u32 = libc::EPOLLIN as u32;

    /// The tokens of what is ready now.
    fn ready(epoll: &Epoll) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let count = epoll.wait(&mut events, Some(0));
        events[..count].iter().map(|event| event.u64).collect()
    }

    #[test]
    fn what_is_so_is_told_again_until_it_is_over_or_forgotten() {
        let (epoll, bell) = (Epoll::new().unwrap(), Bell::new().unwrap());
        epoll.add(bell.as_raw_fd(), READ, 7).unwrap();

        let silent = ready(&epoll);
        bell.ring();
        bell.ring();
        let while_ringing = [ready(&epoll), ready(&epoll)];
        bell.quiet();
        let over = ready(&epoll);
        bell.ring();
        epoll.forget(bell.as_raw_fd());
        epoll.forget(bell.as_raw_fd());
        let forgotten = ready(&epoll);

        assert_eq!(while_ringing, [[7], [7]]);
        assert_eq!([silent, over, forgotten], [[0; 0]; 3]);
    }

    #[test]
    fn a_change_counts_for_what_is_watched_and_for_the_token() {
        let (epoll, bell) = (Epoll::new().unwrap(), Bell::new().unwrap());
        bell.ring();

        epoll.add(bell.as_raw_fd(), 0, 1).unwrap();
        let unwatched = ready(&epoll);
        epoll.modify(bell.as_raw_fd(), READ, 2).unwrap();

        assert_eq!((unwatched, ready(&epoll)), (vec![], vec![2]));
    }

    #[test]
    fn what_cannot_be_watched_is_an_error() {
        let epoll = Epoll::new().unwrap();
        let bell = Bell::new().unwrap();

        let unknown = epoll.modify(bell.as_raw_fd(), READ, 1).unwrap_err();

        assert_eq!(unknown.raw_os_error(), Some(libc::ENOENT));
    }

    /// One as this kernel offers it, and one as before Linux 5.11.
    fn new_and_old() -> [Epoll; 2] {
        let mut old = Epoll::new().unwrap();
        old.has_pwait2 = false;
        [Epoll::new().unwrap(), old]
    }

    #[test]
    fn a_wait_never_ends_before_its_time() {
        let limit_ns = 3_700_000; // three whole milliseconds are too short
        for epoll in new_and_old() {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }];

            let began = monotonic_ns();
            let count = epoll.wait(&mut events, Some(limit_ns));

            assert!(monotonic_ns() - began >= limit_ns);
            assert_eq!(count, 0);
        }
    }

    #[test]
    fn a_ring_ends_every_wait() {
        for epoll in new_and_old() {
            let bell = Bell::new().unwrap();
            epoll.add(bell.as_raw_fd(), READ, 3).unwrap();
            let mut events = [libc::epoll_event { events: 0, u64: 0 }];

            let began = monotonic_ns();
            bell.ring();
            let counts = [None, Some(60_000_000_000), Some(0)]
                .map(|timeout_ns| epoll.wait(&mut events, timeout_ns));

            assert_eq!(counts, [1; 3]);
            assert!(monotonic_ns() - began < 30_000_000_000);
        }
    }

    #[test]
    fn of_several_the_readable_and_the_ended_are_told() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (gone, ended) = UnixStream::pair().unwrap();
        let bell = Bell::new().unwrap();
        let fds = [bell.as_raw_fd(), far.as_raw_fd(), ended.as_raw_fd()];

        let before = wait_readable(&fds, Some(1_000));
        near.write_all(b"x").unwrap();
        drop(gone);
        let after = wait_readable(&fds, None);

        assert_eq!(before, [false; 3]);
        assert_eq!(after, [false, true, true]);
    }

    #[test]
    fn room_to_send_is_waited_for_so_long_and_no_longer() {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();

        let at_first = wait_writable(near.as_raw_fd(), 0);
        while (&near).write(&[0; 4096]).is_ok() {}
        let full = wait_writable(near.as_raw_fd(), 1_000_000);
        while io::Read::read(&mut &far, &mut [0; 4096]).is_ok() {}
        let emptied = wait_writable(near.as_raw_fd(), 0);

        assert!(at_first.is_ok() && emptied.is_ok());
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
