//! All calls of the operating system that the engine makes, for Linux: sockets, epoll, clock, threads.
//!
//! Thin and without policy. A port to kqueue is another file with these names. Calls that our servers make too come from
//! `loadlens_sys`.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::{io, ptr};

use loadlens_sys::timespec;
pub use loadlens_sys::{
    confine, file_limits, now_ns as monotonic_ns, precise_timers, set_file_limit,
};
use socket2::{Domain, Protocol, SockRef, Type};

use super::Ready;

fn errno() -> i32 {
    number(&io::Error::last_os_error())
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// Whether an error only says "not now".
#[inline]
pub fn would_block(os_error: i32) -> bool {
    os_error == libc::EAGAIN || os_error == libc::EWOULDBLOCK || os_error == libc::EINTR
}

/// A non-blocking socket. Copied freely; whoever owns the connection closes it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket(RawFd);

impl Socket {
    /// A socket of the address's family with TCP_NODELAY.
    pub fn open(address: &SocketAddr) -> Result<Socket, i32> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let domain = Domain::for_address(*address);
        let socket = socket2::Socket::new_raw(domain, kind, Some(Protocol::TCP));
        let socket = socket.map_err(|error| number(&error))?;
        let _ = socket.set_tcp_nodelay(true); // a failure only costs latency
        Ok(Socket(socket.into_raw_fd()))
    }

    /// A descriptor that is non-blocking and open, and that its owner closes.
    pub fn borrowed(fd: RawFd) -> Socket {
        Socket(fd)
    }

    /// Begins to connect.
    pub fn connect(self, address: &SocketAddr) -> Result<(), i32> {
        match SockRef::from(&self).connect(&(*address).into()) {
            Ok(()) => Ok(()),
            Err(error) => match number(&error) {
                libc::EINPROGRESS | libc::EINTR => Ok(()),
                number => Err(number),
            },
        }
    }

    /// The pending error of the socket (SO_ERROR); 0: none.
    pub fn take_error(self) -> i32 {
        match SockRef::from(&self).take_error() {
            Ok(None) => 0,
            Ok(Some(error)) | Err(error) => number(&error),
        }
    }

    /// Sends what fits into the socket's buffer.
    ///
    /// Sending and receiving go around the C library's functions: those are points of cancellation, and in a
    /// process with threads each call pays for that, some 3 % of a request.
    #[inline]
    pub fn send(self, bytes: &[u8]) -> Result<usize, i32> {
        // SAFETY: the slice is valid for its length; no address is given.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                self.0,
                bytes.as_ptr(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
                ptr::null::<libc::sockaddr>(),
                0usize,
            )
        };
        usize::try_from(sent).map_err(|_| errno())
    }

    /// Receives what is there; 0: the end of the stream.
    #[inline]
    pub fn receive(self, buffer: &mut [u8]) -> Result<usize, i32> {
        // SAFETY: the slice is valid for writing for its length; no address is asked for.
        let received = unsafe {
            libc::syscall(
                libc::SYS_recvfrom,
                self.0,
                buffer.as_mut_ptr(),
                buffer.len(),
                0usize,
                ptr::null_mut::<libc::sockaddr>(),
                ptr::null_mut::<libc::socklen_t>(),
            )
        };
        usize::try_from(received).map_err(|_| errno())
    }

    /// Its number.
    #[inline]
    pub fn descriptor(self) -> RawFd {
        self.0
    }

    /// Closes the socket; every copy of it is void from here on.
    pub fn close(self) {
        // SAFETY: the descriptor was made by `open` and its owner closes it once.
        unsafe { libc::close(self.0) };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the owner of the connection closes the descriptor after its last use.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// Which sockets are open; those that still are when it is dropped are closed.
#[derive(Debug, Default)]
pub struct OpenSockets {
    /// One bit for each descriptor.
    bits: Vec<u64>,
}

impl OpenSockets {
    /// Notes an open socket.
    pub fn insert(&mut self, socket: Socket) {
        let (word, bit) = (socket.0 as usize / 64, socket.0 % 64);
        if self.bits.len() <= word {
            self.bits.resize((word + 1).next_multiple_of(16), 0); // 1,024 descriptors
        }
        self.bits[word] |= 1 << bit;
    }

    /// Forgets a socket that its owner is about to close.
    pub fn remove(&mut self, socket: Socket) {
        self.bits[socket.0 as usize / 64] &= !(1 << (socket.0 % 64));
    }
}

impl Drop for OpenSockets {
    fn drop(&mut self) {
        for (word, bits) in self.bits.iter().enumerate() {
            let is_open = |bit: &usize| bits >> bit & 1 == 1;
            (0..64)
                .filter(is_open)
                .for_each(|bit| Socket((word * 64 + bit) as RawFd).close());
        }
    }
}

/// An epoll instance with room for one batch of events.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    sleep: Sleep,
}

/// What is to be reported of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Bytes, the end of the stream, errors.
    Receiving,
    /// Room to send as well, the end of connecting included.
    Both,
}

impl Directions {
    fn flags(self) -> u32 {
        let receiving = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET;
        let flags = match self {
            Directions::Receiving => receiving,
            Directions::Both => receiving | libc::EPOLLOUT,
        };
        flags as u32
    }
}

/// How to sleep for less than a millisecond.
enum Sleep {
    /// epoll_pwait2 (Linux 5.11).
    Pwait2,
    /// A timer among the events, for older kernels.
    Timer(OwnedFd),
}

const TIMER: u64 = u64::MAX;

impl Poller {
    /// Takes up to `batch` events at once.
    pub fn new(batch: usize) -> io::Result<Poller> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let empty = libc::epoll_event { events: 0, u64: 0 };
        let mut poller = Poller {
            epoll,
            events: vec![empty; batch.max(1)],
            sleep: Sleep::Pwait2,
        };
        if poller.pwait2(0) < 0 && errno() == libc::ENOSYS {
            poller.sleep = Sleep::Timer(poller.timer()?);
        }
        Ok(poller)
    }

    fn timer(&self) -> io::Result<OwnedFd> {
        // SAFETY: no pointers.
        let fd = unsafe {
            libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_NONBLOCK | libc::TFD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made and belongs to nobody else.
        let timer = unsafe { OwnedFd::from_raw_fd(fd) };
        self.control(
            libc::EPOLL_CTL_ADD,
            timer.as_raw_fd(),
            (libc::EPOLLIN | libc::EPOLLET) as u32,
            TIMER,
        )
        .map_err(io::Error::from_raw_os_error)?;
        Ok(timer)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: RawFd,
        events: u32,
        token: u64,
    ) -> Result<(), i32> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` is valid through the call.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) };
        if result == 0 {
            Ok(())
        } else {
            Err(errno())
        }
    }

    /// Reports changes of `socket` as `token`, which is not `u64::MAX`. Closing the socket ends it.
    pub fn add(&self, socket: Socket, token: u64, directions: Directions) -> Result<(), i32> {
        self.control(libc::EPOLL_CTL_ADD, socket.0, directions.flags(), token)
    }

    /// Changes what is reported of `socket`; what is there already is reported again.
    pub fn change(&self, socket: Socket, token: u64, directions: Directions) -> Result<(), i32> {
        self.control(libc::EPOLL_CTL_MOD, socket.0, directions.flags(), token)
    }

    fn pwait2(&mut self, timeout_ns: u64) -> i32 {
        let timeout = timespec(timeout_ns);
        // SAFETY: `events` is valid for writing `len` events; timeout lives through the call; no mask.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0usize,
            ) as i32
        }
    }

    fn wait_with_timer(&mut self, timer: RawFd, timeout_ns: u64) -> i32 {
        let whole = if timeout_ns == 0 { 0 } else { -1 };
        if timeout_ns > 0 {
            let value = libc::itimerspec {
                it_interval: timespec(0),
                it_value: timespec(timeout_ns),
            };
            // SAFETY: `value` lives through the call; the old value is not asked for.
            unsafe { libc::timerfd_settime(timer, 0, &value, ptr::null_mut()) };
        }
        // SAFETY: `events` is valid for writing `len` events.
        unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                whole,
            )
        }
    }

    /// Waits at most `timeout_ns` and puts what happened into `ready`.
    #[inline]
    pub fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64) {
        ready.clear();
        let count = match &self.sleep {
            Sleep::Pwait2 => self.pwait2(timeout_ns),
            Sleep::Timer(timer) => {
                let timer = timer.as_raw_fd();
                self.wait_with_timer(timer, timeout_ns)
            }
        };
        // Negative: a signal came in between; the caller looks at its clock and waits again.
        for event in &self.events[..usize::try_from(count).unwrap_or(0)] {
            let (events, token) = (event.events as libc::c_int, event.u64);
            if token == TIMER {
                continue;
            }
            let failed = events & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
            ready.push(Ready {
                token,
                readable: failed || events & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0,
                writable: failed || events & libc::EPOLLOUT != 0,
                ended: failed || events & libc::EPOLLRDHUP != 0,
                failed,
            });
        }
    }
}

/// What a thread has consumed since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// On a core, in nanoseconds.
    pub cpu_ns: u64,
    /// Runnable but without a core (second field of schedstat), in nanoseconds.
    pub runq_wait_ns: u64,
}

/// `/proc/thread-self/schedstat`, kept open: time on a core and time waiting for one.
pub struct Schedstat(File);

impl Schedstat {
    /// Of the calling thread; none where the kernel does not keep it.
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

/// Cores that the process may use.
pub fn usable_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// The limit of this process's address space; none: unlimited, or not told.
pub fn address_space_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Descriptors that the process has open now.
pub fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_pwait2_sleeps_by_a_timer_and_is_woken_by_events() {
        let mut poller = Poller::new(8).unwrap();
        poller.sleep = Sleep::Timer(poller.timer().unwrap());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut ready = Vec::new();

        let before = monotonic_ns();
        poller.wait(&mut ready, 3_000_000);
        let slept = monotonic_ns() - before;
        let slept_for_nothing = ready.len();
        let socket = Socket::open(&address).unwrap();
        socket.connect(&address).unwrap();
        poller.add(socket, 9, Directions::Both).unwrap();
        poller.wait(&mut ready, 10_000_000_000);
        let woken = ready.iter().map(|ready| ready.token).collect::<Vec<_>>();
        poller.wait(&mut ready, 0);
        socket.close();

        assert!(slept >= 3_000_000, "{slept}");
        assert_eq!((slept_for_nothing, woken), (0, vec![9]));
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
}
