//! The system calls that the proxy makes: towards the service the engine's, which is a client too, all others those of
//! our servers.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

pub(crate) use loadlens_sys::{
    accept, bind, end_sending, listen, now_ns, precise_timers, raise_descriptor_limit,
    reset_on_close, unacknowledged, Epoll,
};
use loadlens_transport::sys::Socket;

/// Begins to connect; the socket becomes writable when that is decided.
pub(crate) fn connect(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let address = SocketAddr::V4(address);
    let socket = Socket::open(&address).map_err(io::Error::from_raw_os_error)?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let owned = unsafe { OwnedFd::from_raw_fd(socket.descriptor()) };
    socket
        .connect(&address)
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
