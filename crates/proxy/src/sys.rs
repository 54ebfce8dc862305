//! The system calls that the proxy needs, each wrapped once, so that `unsafe` lives here alone.
//!
//! Descriptors are owned (`OwnedFd`): a connection that goes out of scope is closed.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    loadlens_engine::clock::monotonic_ns()
}

fn check(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(code)
    }
}

/// An epoll instance; what it watches is told again as long as it is so (level-triggered).
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
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
        let fd = self.0.as_raw_fd();
        let room = events.len() as libc::c_int;
        let timeout_ms = match timeout_ns {
            None => -1,
            // epoll_wait counts in milliseconds: what is far is waited for roughly and short of its time,
            // what is near by ppoll on the epoll descriptor, in nanoseconds.
            Some(ns) if ns >= 3_000_000 => (ns / 1_000_000 - 1).min(60_000) as libc::c_int,
            Some(0) => 0,
            Some(ns) => {
                wait_readable(fd, ns);
                0
            }
        };
        // SAFETY: `events` has room for `room` entries.
        let count = unsafe { libc::epoll_wait(fd, events.as_mut_ptr(), room, timeout_ms) };
        count.max(0) as usize
    }
}

fn wait_readable(fd: RawFd, timeout_ns: u64) {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let limit = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `polled` and `limit` outlive the call; a null mask keeps the signal mask.
    unsafe { libc::ppoll(&mut polled, 1, &limit, std::ptr::null()) };
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

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the descriptor returned is ours alone.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn raw_address(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// A socket that listens, and the port it has.
pub(crate) fn listen(address: SocketAddrV4, backlog: i32) -> io::Result<(OwnedFd, u16)> {
    let socket = socket()?;
    let fd = socket.as_raw_fd();
    set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    let mut raw = raw_address(address);
    let mut size = std::mem::size_of_val(&raw) as libc::socklen_t;
    // SAFETY: `raw` is a whole sockaddr_in and `size` is its size, in both calls.
    check(unsafe { libc::bind(fd, (&raw const raw).cast(), size) })?;
    check(unsafe { libc::getsockname(fd, (&raw mut raw).cast(), &mut size) })?;
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd, backlog) })?;
    Ok((socket, u16::from_be(raw.sin_port)))
}

/// Takes one connection off the queue of a listening socket; none when the queue is empty.
pub(crate) fn accept(listener: RawFd) -> io::Result<Option<OwnedFd>> {
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

/// Begins to connect; the socket becomes writable when that is decided.
pub(crate) fn connect(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = socket()?;
    let fd = socket.as_raw_fd();
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    let raw = raw_address(address);
    let size = std::mem::size_of_val(&raw) as libc::socklen_t;
    // SAFETY: `raw` is a whole sockaddr_in and `size` is its size.
    let code = unsafe { libc::connect(fd, (&raw const raw).cast(), size) };
    if code < 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(error);
        }
    }
    Ok(socket)
}

/// How connecting ended.
pub(crate) fn connected(fd: RawFd) -> io::Result<()> {
    let mut code: libc::c_int = 0;
    let mut size = std::mem::size_of_val(&code) as libc::socklen_t;
    // SAFETY: `code` is as large as `size` says.
    check(unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut code).cast(),
            &mut size,
        )
    })?;
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(code))
    }
}

/// Receives what is there; `WouldBlock` when nothing is, 0 when the peer has ended its side.
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` has room for `len` bytes.
    let count = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    if count < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(count as usize)
    }
}

/// Sends what fits; `WouldBlock` when nothing does.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is read only.
    let count = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if count < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(count as usize)
    }
}

/// Bytes that were sent and that the peer has not acknowledged yet.
pub(crate) fn unacknowledged(fd: RawFd) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the request writes one int.
    let code = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut count) };
    if code < 0 {
        0
    } else {
        count.max(0) as usize
    }
}

/// Ends our side (FIN); the peer may still send.
pub(crate) fn end_sending(fd: RawFd) {
    // SAFETY: no pointers. It can fail only when the peer is gone, which is as good.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// Makes the next close of `fd` a reset (RST) instead of an orderly end.
pub(crate) fn reset_on_close(fd: RawFd) {
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
pub(crate) fn precise_timers() {
    // SAFETY: no pointers; a failure leaves the default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Raises the limit of open descriptors as far as this process may.
pub(crate) fn raise_descriptor_limit() {
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
