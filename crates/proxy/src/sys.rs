//! The system calls that the proxy needs: the engine's where it has them, the others wrapped once, so that `unsafe`
//! lives here alone.
//!
//! Descriptors are owned (`OwnedFd`): a connection that goes out of scope is closed. epoll is one of its own: the engine
//! wants changes of a state told (edge-triggered), the proxy the state, since it stops reading when it has no room.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use loadlens_engine::transport::sys::{self, Socket};

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    sys::monotonic_ns()
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

/// A socket that does not block, with TCP_NODELAY.
fn socket(address: SocketAddrV4) -> io::Result<(OwnedFd, Socket)> {
    let socket = Socket::open(&SocketAddr::V4(address)).map_err(io::Error::from_raw_os_error)?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let owned = unsafe { OwnedFd::from_raw_fd(socket.descriptor()) };
    Ok((owned, socket))
}

/// A socket that listens, and the port it has.
pub(crate) fn listen(address: SocketAddrV4, backlog: i32) -> io::Result<(OwnedFd, u16)> {
    let (socket, _) = socket(address)?;
    let fd = socket.as_raw_fd();
    set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    let mut raw = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    };
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
    let (owned, socket) = socket(address)?;
    socket
        .connect(&SocketAddr::V4(address))
        .map_err(io::Error::from_raw_os_error)?;
    Ok(owned)
}

/// How connecting ended.
pub(crate) fn connected(fd: RawFd) -> io::Result<()> {
    match Socket::borrowed(fd).take_error() {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Receives what is there; `WouldBlock` when nothing is, 0 when the peer has ended its side.
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    Socket::borrowed(fd)
        .receive(buffer)
        .map_err(io::Error::from_raw_os_error)
}

/// Sends what fits; `WouldBlock` when nothing does.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    Socket::borrowed(fd)
        .send(bytes)
        .map_err(io::Error::from_raw_os_error)
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
    sys::sharpen_sleeps();
}

/// Raises the limit of open descriptors as far as this process may; a failure leaves the old limit.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((_, hard)) = sys::file_limits() {
        let _ = sys::set_file_limit(hard, hard);
    }
}
