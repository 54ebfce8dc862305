//! The system calls that specimens need beyond those of the origin, each wrapped once.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub use loadlens_origin::sys::{
    accept, now_ns, precise_timers, raise_descriptor_limit, receive, send, termination_signals,
    wait_readable, Epoll,
};

fn check(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(code)
    }
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec to write to; an unknown clock leaves it at 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time of this thread so far.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time of all threads of a process so far; 0 once it is gone.
pub fn process_cpu_ns(pid: i32) -> u64 {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place to write to.
    if unsafe { libc::clock_getcpuclockid(pid, &mut clock) } != 0 {
        return 0;
    }
    clock_ns(clock)
}

/// Keeps this process, and whatever it starts, on some processors.
pub fn confine(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain bits; CPU_SET checks its bounds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        check(libc::sched_setaffinity(
            0,
            std::mem::size_of_val(&set),
            &set,
        ))
        .map(|_| ())
    }
}

fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) {
    let size = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is read during the call only. It fails for no socket of ours.
    unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) };
}

/// Lets small segments of a connection wait for the acknowledgement of those before (Nagle).
pub fn hold_small_segments(fd: RawFd) {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 0);
}

/// A listening socket on 127.0.0.1, and its port.
pub fn listen(port: u16, backlog: u32, is_hashed: bool) -> io::Result<(OwnedFd, u16)> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the descriptor returned is ours alone.
    let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1);
    if is_hashed {
        set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1);
    }
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
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd, backlog.min(65_535) as libc::c_int) })?;
    Ok((socket, u16::from_be(address.sin_port)))
}

/// Sends all of it, waiting for room as long as the peer takes something every 30 s.
pub fn send_all(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_writable(fd)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_writable(fd: RawFd) -> io::Result<()> {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: `polled` outlives the call.
    match unsafe { libc::poll(&mut polled, 1, 30_000) } {
        1.. => Ok(()),
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A copy of this process, which must have one thread only; none in the copy, which ends with its parent.
pub fn fork() -> io::Result<Option<i32>> {
    // SAFETY: the caller has one thread, so the copy may go on as it likes.
    match check(unsafe { libc::fork() })? {
        0 => {
            let signal = libc::SIGKILL as libc::c_ulong;
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) };
            Ok(None)
        }
        pid => Ok(Some(pid)),
    }
}

/// Ends a child and waits for that.
pub fn end_child(pid: i32) {
    // SAFETY: a null status is allowed; `pid` is a child that nobody else waits for.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// Memory of zeros for ever, which processes forked from this one share.
///
/// # Safety
///
/// Zeros must be a value of `T`, and `T` must bear access by several threads.
pub unsafe fn shared_zeros<T: Sync + 'static>() -> io::Result<&'static T> {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    let size = std::mem::size_of::<T>();
    // SAFETY: a new mapping; it is aligned to a page, larger than any `T` asks for.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: by the caller's word; the mapping is never undone.
    Ok(unsafe { &*at.cast::<T>() })
}

/// A file in memory for ever, to be read only; pages come one by one, without their neighbours.
pub fn map(file: &std::fs::File, bytes: usize) -> io::Result<&'static [u8]> {
    let (fd, flags) = (file.as_raw_fd(), libc::MAP_SHARED);
    // SAFETY: a new mapping of a descriptor that is open; it stays valid when that is closed.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, fd, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is ours, has so many bytes and is never undone; nobody changes the file.
    unsafe {
        check(libc::madvise(at, bytes, libc::MADV_RANDOM))?;
        Ok(std::slice::from_raw_parts(at.cast::<u8>(), bytes))
    }
}

/// The descriptor's number, for epoll.
pub fn raw(fd: &OwnedFd) -> RawFd {
    fd.as_raw_fd()
}
