//! System calls of the engine and of our servers (the origin, the fault proxy, the specimens), each wrapped once, for Linux;
//! and a slab of connections that the servers share.
//!
//! Thin and without policy. Descriptors are owned (`OwnedFd`): a connection that goes out of scope is closed. Two things
//! stay outside: the transport closes the sockets that it keeps by number, and the specimens promise that their counters
//! may be zeros. A port to kqueue is another crate with these names.

mod clock;
mod epoll;
mod memory;
mod process;
pub mod slab;
mod socket;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use clock::{
    monotonic_ns, process_cpu_ns, suspended_ns, thread_cpu_ns, Schedstat, ThreadTimes,
};
pub use epoll::{wait_readable, wait_writable, Bell, Epoll};
pub use memory::{map, shared_zeros};
pub use process::{
    address_space_limit, confine, descriptor_limits, end_child, end_with_parent, fork,
    precise_timers, raise_descriptor_limit, set_descriptor_limit, short_turns, termination_signals,
    wait_for_the_end,
};
pub use socket::{
    accept, accept_queue, bind, bind_shared, connect, connected, end_sending, hold_small_segments,
    listen, receive, reset_on_close, send, unacknowledged, would_block,
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
/// It must be new and have no other owner.
unsafe fn owned(code: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's word.
    check(code).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}
