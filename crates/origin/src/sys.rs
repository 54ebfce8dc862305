//! The system calls that the origin needs, each wrapped once, so that `unsafe` lives here alone.
//!
//! Descriptors are owned (`OwnedFd`): a connection that goes out of scope is closed.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Nanoseconds of CLOCK_MONOTONIC: the clock that a generator on the same machine reads too.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn check(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(code)
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// A new, empty one.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the descriptor returned is ours alone.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches `fd` for `events`, which come back with `token`.
    pub fn add(&self, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, token)
    }

    /// Changes what is watched.
    pub fn modify(&self, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, token)
    }

    fn control(&self, verb: libc::c_int, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` outlives the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), verb, fd, &mut event) }).map(|_| ())
    }

    /// Waits until something happens or `timeout_ns` has passed (none: for ever); a signal ends it with 0.
    pub fn wait(&self, events: &mut [libc::epoll_event], timeout_ns: Option<u64>) -> usize {
        let fd = self.0.as_raw_fd();
        let room = events.len() as libc::c_int;
        let count = match timeout_ns {
            // SAFETY: `events` has room for `room` entries.
            Some(0) => unsafe { libc::epoll_wait(fd, events.as_mut_ptr(), room, 0) },
            None => unsafe { libc::epoll_wait(fd, events.as_mut_ptr(), room, -1) },
            Some(ns) => {
                // epoll_wait counts in milliseconds; ppoll on the epoll descriptor in nanoseconds, on
                // every kernel.
                wait_readable(&[fd], Some(ns));
                unsafe { libc::epoll_wait(fd, events.as_mut_ptr(), room, 0) }
            }
        };
        count.max(0) as usize
    }
}

/// Waits until one of `fds` is readable or `timeout_ns` has passed; tells which are readable (or ended).
pub fn wait_readable(fds: &[RawFd], timeout_ns: Option<u64>) -> Vec<bool> {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let limit = timeout_ns.map(timespec);
    let limit_at = limit
        .as_ref()
        .map_or(std::ptr::null(), |limit| limit as *const _);
    // SAFETY: `polled` and `limit` outlive the call; a null mask keeps the signal mask.
    let count = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            limit_at,
            std::ptr::null(),
        )
    };
    polled
        .iter()
        .map(|one| count > 0 && one.revents != 0)
        .collect()
}

/// A counter that wakes whoever waits for it.
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent one.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: no pointers; the descriptor returned is ours alone.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
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

fn set_option(
    fd: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let size = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is read during the call only.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) }).map(|_| ())
}

/// A socket bound to loopback and the port it has; it listens when a backlog is given.
pub fn bind_loopback(port: u16, backlog: Option<u32>) -> io::Result<(OwnedFd, u16)> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the descriptor returned is ours alone.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    let mut address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be(),
        },
        sin_zero: [0; 8],
    };
    let mut size = std::mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a whole sockaddr_in and `size` is its size, in both calls.
    check(unsafe { libc::bind(fd, (&raw const address).cast(), size) })?;
    check(unsafe { libc::getsockname(fd, (&raw mut address).cast(), &mut size) })?;
    if let Some(backlog) = backlog {
        // SAFETY: no pointers.
        check(unsafe { libc::listen(fd, backlog.min(65_535) as libc::c_int) })?;
    }
    Ok((socket, u16::from_be(address.sin_port)))
}

/// Takes one connection off the queue of a listening socket; none when the queue is empty.
pub fn accept(listener: RawFd) -> io::Result<Option<OwnedFd>> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: null address and size are allowed; the descriptor returned is ours alone.
    let fd = unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ECONNABORTED | libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    Ok(Some(socket))
}

/// How many connections wait in the accept queue of a listening socket.
pub fn accept_queue(listener: RawFd) -> u32 {
    // SAFETY: tcp_info is plain numbers, for which zero is a value.
    let mut state: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut size = std::mem::size_of_val(&state) as libc::socklen_t;
    // SAFETY: `state` is as large as `size` says.
    let code = unsafe {
        libc::getsockopt(
            listener,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &mut size,
        )
    };
    // For a listening socket the kernel reports its queue in the field of unacknowledged segments.
    if code == 0 {
        state.tcpi_unacked
    } else {
        0
    }
}

/// Receives what is there; `WouldBlock` when nothing is, 0 when the peer has ended its side.
pub fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` has room for `len` bytes.
    let count = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    if count < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(count as usize)
    }
}

/// Sends what fits; `WouldBlock` when nothing does.
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is read only.
    let count = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if count < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(count as usize)
    }
}

/// Ends our side (FIN); the peer may still send.
pub fn end_sending(fd: RawFd) {
    // SAFETY: no pointers. It can fail only when the peer is gone, which is as good.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// Makes the next close of `fd` a reset (RST) instead of an orderly end.
pub fn reset_on_close(fd: RawFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = std::mem::size_of_val(&linger) as libc::socklen_t;
    // SAFETY: `linger` is read during the call only.
    unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        )
    };
}

/// Lets this thread's timers fire on time instead of up to 50 microseconds late.
pub fn precise_timers() {
    // SAFETY: no pointers; a failure leaves the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Keeps the calling thread on one processor.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain bits; CPU_SET checks its bounds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        check(libc::sched_setaffinity(
            0,
            std::mem::size_of_val(&set),
            &set,
        ))
        .map(|_| ())
    }
}

/// Raises the limit of open descriptors as far as this process may.
pub fn raise_descriptor_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit in both calls; a failure leaves the old limit.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// A descriptor that becomes readable on TERM or INT, which no longer end the process by themselves.
/// Call before any thread is started: threads inherit the mask.
pub fn termination_signals() -> io::Result<OwnedFd> {
    // SAFETY: `set` is initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        check(libc::sigprocmask(
            libc::SIG_BLOCK,
            &set,
            std::ptr::null_mut(),
        ))?;
        let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Asks the kernel to send TERM when the process that started us ends.
pub fn end_with_parent() {
    // SAFETY: no pointers.
    unsafe {
        libc::prctl(
            libc::PR_SET_PDEATHSIG,
            libc::SIGTERM as libc::c_ulong,
            0,
            0,
            0,
        )
    };
}
