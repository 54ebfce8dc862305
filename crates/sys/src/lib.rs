//! System calls, each wrapped once, and a slab of connections: the parts that our servers share (the origin, the fault
//! proxy, the specimens).
//!
//! Thin and without policy. Descriptors are owned (`OwnedFd`): a connection that goes out of scope is closed. The
//! `unsafe` of servers is here; besides, the proxy takes over sockets that the engine opens, and the specimens vouch that
//! their books may be zeros. The engine has calls of its own (`transport::sys`), made for what it does per request.

mod clock;
mod epoll;
mod memory;
mod process;
pub mod slab;
mod socket;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use clock::{now_ns, process_cpu_ns, thread_cpu_ns, timespec};
pub use epoll::{wait_readable, wait_writable, Bell, Epoll};
pub use memory::{map, shared_zeros};
pub use process::{
    confine, end_child, end_with_parent, file_limits, fork, precise_timers, raise_descriptor_limit,
    set_file_limit, termination_signals, wait_for_the_end,
};
pub use socket::{
    accept, accept_queue, bind, bind_shared, end_sending, hold_small_segments, listen, receive,
    reset_on_close, send, unacknowledged,
};

/// The result of a call, or the error that errno holds.
fn check(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(code)
    }
}

/// The descriptor that a call returned.
///
/// # Safety
///
/// It must be new: nobody else owns it.
unsafe fn owned(code: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's word.
    check(code).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}
