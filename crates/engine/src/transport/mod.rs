//! The network as a worker sees it: [`Net`], and its epoll implementation.
//!
//! Every call of the operating system stands in `sys` (Linux); a port to another system is that one
//! file. What is above it knows connections by a handle and readiness by a token.

mod epoll;
pub mod sys;

use std::net::SocketAddr;

use crate::error::Outcome;

pub use epoll::Epoll;

/// What the operating system said, as the outcome that a request gets from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetError {
    /// The class.
    pub outcome: Outcome,
    /// The system's number for it; 0: none.
    pub os_error: i32,
}

/// Result of a call that may have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// So many bytes went or came.
    Bytes(usize),
    /// Nothing now; an event will tell.
    Later,
    /// The other side has ended its stream (receiving only).
    End,
    /// The connection is broken.
    Broken(NetError),
}

/// Something happened on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// The token given to [`Net::connect`].
    pub token: u64,
    /// Bytes, the end of the stream or an error are there to be received.
    pub readable: bool,
    /// Connected, or room to send.
    pub writable: bool,
    /// The other side has ended its stream: receive until the end before using the connection again.
    pub ended: bool,
    /// The connection is broken: [`Net::connected`] or the next receive tells how.
    pub failed: bool,
}

/// Connections of one worker.
///
/// Readiness is reported once for each change (edge-triggered): a receive that did not fill its buffer
/// has taken all there was.
pub trait Net {
    /// A connection.
    type Handle: Copy;

    /// Begins to connect; a [`Ready`] with `writable` and `token` tells the end of it.
    fn connect(&mut self, address: &SocketAddr, token: u64) -> Result<Self::Handle, NetError>;

    /// Begins to connect as [`Net::connect`] does; [`Net::send_first`] must follow, and until then no event comes.
    fn connect_quietly(
        &mut self,
        address: &SocketAddr,
        token: u64,
    ) -> Result<Self::Handle, NetError> {
        self.connect(address, token)
    }

    /// Sends what fits of `bytes`, which may be empty, if the connection stands already, and returns how much.
    ///
    /// None: nothing was sent, and an event tells when the connection stands. An error is that of connecting.
    fn send_first(
        &mut self,
        _handle: Self::Handle,
        _token: u64,
        _bytes: &[u8],
    ) -> Result<Option<usize>, NetError> {
        Ok(None)
    }

    /// How connecting ended, once an event told that it failed.
    fn connected(&mut self, handle: Self::Handle) -> Result<(), NetError>;

    /// Sends what fits.
    fn send(&mut self, handle: Self::Handle, bytes: &[u8]) -> Io;

    /// Receives what is there.
    fn receive(&mut self, handle: Self::Handle, buffer: &mut [u8]) -> Io;

    /// Ends a connection; the handle must not be used again.
    fn close(&mut self, handle: Self::Handle);

    /// Waits at most `timeout_ns` for events (0: only looks) and puts them into `ready`, which is cleared.
    fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64);
}
