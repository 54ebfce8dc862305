//! Waiting until a descriptor is ready: epoll, poll, and a bell for whoever waits.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::{io, ptr};

use crate::clock::timespec;
use crate::{check, owned};

/// From where on `wait_coarsely` waits in one call.
const COARSE_NS: u64 = 3_000_000;

/// An epoll instance. What it watches is told again as long as it is so, unless EPOLLET or EPOLLONESHOT is asked for.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// A new, empty one.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the descriptor returned is ours alone.
        unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }.map(Epoll)
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
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), verb, fd, &mut event) }).map(|_| ())
    }

    /// Waits until something happens or `timeout_ns` has passed (none: for ever); a signal ends it with 0.
    pub fn wait(&self, events: &mut [libc::epoll_event], timeout_ns: Option<u64>) -> usize {
        let timeout_ms = match timeout_ns {
            None => -1,
            Some(0) => 0,
            Some(ns) => {
                // epoll_wait counts in milliseconds; ppoll on the epoll descriptor in nanoseconds, on every kernel.
                let _ = poll(&mut [asked(self.0.as_raw_fd(), libc::POLLIN)], Some(ns));
                0
            }
        };
        self.take(events, timeout_ms)
    }

    /// As `wait`, but a far end is waited for in one call instead of two: it then comes up to 2 ms early, and after a
    /// minute at most, so the caller looks at its clock and waits again.
    pub fn wait_coarsely(
        &self,
        events: &mut [libc::epoll_event],
        timeout_ns: Option<u64>,
    ) -> usize {
        match timeout_ns {
            Some(ns) if ns >= COARSE_NS => {
                self.take(events, (ns / 1_000_000 - 1).min(60_000) as libc::c_int)
            }
            near_or_never => self.wait(events, near_or_never),
        }
    }

    fn take(&self, events: &mut [libc::epoll_event], timeout_ms: libc::c_int) -> usize {
        let room = events.len() as libc::c_int;
        // SAFETY: `events` has room for `room` entries.
        let count =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms) };
        count.max(0) as usize
    }
}

/// Waits until one of `fds` is readable or `timeout_ns` has passed; tells which are readable (or ended).
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

/// How many of them are ready within `timeout_ns` (none: for ever).
fn poll(polled: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<libc::c_int> {
    let limit = timeout_ns.map(timespec);
    let limit_at = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let count = polled.len() as libc::nfds_t;
    // SAFETY: `polled` and `limit` outlive the call; a null mask keeps the signal mask.
    check(unsafe { libc::ppoll(polled.as_mut_ptr(), count, limit_at, ptr::null()) })
}

/// A counter that wakes whoever waits for it.
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent one.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: no pointers; the descriptor returned is ours alone.
        unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }.map(Bell)
    }

    /// Wakes the waiter.
    pub fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes are read from `one`. It can fail only when it rings already.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), 8) };
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
    use crate::now_ns;
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
        let told = [ready(&epoll), ready(&epoll)];
        bell.quiet();
        let over = ready(&epoll);
        bell.ring();
        epoll.forget(bell.as_raw_fd());
        epoll.forget(bell.as_raw_fd());
        let forgotten = ready(&epoll);

        assert_eq!(told, [[7], [7]]);
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

    #[test]
    fn a_wait_never_ends_before_its_time() {
        let epoll = Epoll::new().unwrap();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }];
        let limit_ns = 3_700_000; // three whole milliseconds are too short

        let began = now_ns();
        let count = epoll.wait(&mut events, Some(limit_ns));

        assert!(now_ns() - began >= limit_ns);
        assert_eq!(count, 0);
    }

    #[test]
    fn a_coarse_wait_ends_two_milliseconds_early_at_most_and_a_near_one_on_time() {
        let epoll = Epoll::new().unwrap();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }];
        let mut took_ns = |limit_ns| {
            let began = now_ns();
            epoll.wait_coarsely(&mut events, Some(limit_ns));
            now_ns() - began
        };

        assert!(took_ns(9_999_999) >= 8_000_000);
        assert!(took_ns(2_999_999) >= 2_999_999);
    }

    #[test]
    fn a_ring_ends_every_wait() {
        let (epoll, bell) = (Epoll::new().unwrap(), Bell::new().unwrap());
        epoll.add(bell.as_raw_fd(), READ, 3).unwrap();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }];
        let far = Some(60_000_000_000);

        let began = now_ns();
        bell.ring();
        let counts = [
            epoll.wait(&mut events, None),
            epoll.wait(&mut events, far),
            epoll.wait_coarsely(&mut events, far),
        ];

        assert_eq!(counts, [1; 3]);
        assert!(now_ns() - began < 30_000_000_000);
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
