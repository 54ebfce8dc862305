//! The network as a worker sees it: [`Net`], its epoll implementation, and TLS over that.
//!
//! Every call of the operating system is in `loadlens-sys`. What is above [`Net`] knows connections by a handle and
//! readiness by a token.

mod epoll;
mod socket;
pub mod tls;

use std::net::SocketAddr;

use loadlens_base::Outcome;

pub use epoll::Epoll;
pub use socket::Socket;
pub use tls::Tls;

/// Error of the operating system, as the outcome that a request gets from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetError {
    /// The class.
    pub outcome: Outcome,
    /// The system's number for it; 0: none.
    pub os_error: i32,
    /// In words; empty: the class says it all.
    pub why: &'static str,
}

impl NetError {
    /// An error that the operating system reported.
    pub const fn new(outcome: Outcome, os_error: i32) -> Self {
        NetError {
            outcome,
            os_error,
            why: "",
        }
    }

    /// A failure of TLS.
    pub const fn tls(why: &'static str) -> Self {
        NetError {
            outcome: Outcome::Tls,
            os_error: 0,
            why,
        }
    }
}

/// State of a connection's TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// There is none, or TCP does not stand yet.
    None,
    /// TCP stands.
    Underway,
    /// The connection is secured.
    Done {
        /// From when TCP stood.
        took_ns: u64,
        /// True if an earlier session was resumed.
        resumed: bool,
    },
}

/// Sessions of one stream that agreed on the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Index into the plan's streams.
    pub stream: u8,
    /// `TLSv1_3`.
    pub version: &'static str,
    /// `TLS13_AES_256_GCM_SHA384`.
    pub suite: &'static str,
    /// Number of sessions.
    pub sessions: u64,
}

/// Result of a call that may have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// So many bytes went or came.
    Bytes(usize),
    /// Nothing now; an event will follow.
    Later,
    /// The other side has ended its stream (receiving only).
    End,
    /// The other side has ended its stream without ending TLS: it may have been cut short (receiving only).
    Cut,
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
    /// The connection is broken: [`Net::connected`] or the next receive returns the cause.
    pub failed: bool,
}

/// Connections of one worker.
///
/// Readiness is reported once for each change (edge-triggered): a receive after which [`Net::has_more`] says no has
/// taken all there was.
pub trait Net {
    /// A connection.
    type Handle: Copy;

    /// Begins to connect for a stream of the plan; events with `token` report progress.
    fn connect(
        &mut self,
        address: &SocketAddr,
        stream: u8,
        token: u64,
    ) -> Result<Self::Handle, NetError>;

    /// Begins to connect as [`Net::connect`] does; [`Net::send_first`] must follow, and until then no event comes.
    fn connect_quietly(
        &mut self,
        address: &SocketAddr,
        stream: u8,
        token: u64,
    ) -> Result<Self::Handle, NetError> {
        self.connect(address, stream, token)
    }

    /// Sends what fits of `bytes`, which may be empty, if the connection is already established, and returns how much.
    ///
    /// None: nothing was sent, and an event reports when it is established. An error is that of connecting.
    fn send_first(
        &mut self,
        _handle: Self::Handle,
        _token: u64,
        _bytes: &[u8],
    ) -> Result<Option<usize>, NetError> {
        Ok(None)
    }

    /// Result of connecting, once an event reported that it failed.
    fn connected(&mut self, handle: Self::Handle) -> Result<(), NetError>;

    /// Result of an event for a connection not yet established: it is now, it failed, or nothing so far.
    /// `ready` then holds what is left to be done for the event.
    #[inline]
    fn establish(
        &mut self,
        handle: Self::Handle,
        ready: &mut Ready,
    ) -> Option<Result<(), NetError>> {
        // An event without a failure says it all; the system is asked only about failures.
        match (ready.writable, ready.failed) {
            (false, _) => None,
            (true, false) => Some(Ok(())),
            (true, true) => Some(self.connected(handle)),
        }
    }

    /// State of a connection's TLS handshake.
    #[inline]
    fn handshake(&self, _handle: Self::Handle) -> Handshake {
        Handshake::None
    }

    /// Sends what fits. What was not reported as sent must be given again.
    fn send(&mut self, handle: Self::Handle, bytes: &[u8]) -> Io;

    /// Receives what is there.
    fn receive(&mut self, handle: Self::Handle, buffer: &mut [u8]) -> Io;

    /// True if the last receive, of `received` bytes into a buffer of `room`, left bytes that no event will report.
    #[inline]
    fn has_more(&self, received: usize, room: usize) -> bool {
        received == room
    }

    /// Ends a connection; the handle must not be used again.
    fn close(&mut self, handle: Self::Handle);

    /// Waits at most `timeout_ns` for events (0: only looks) and puts them into `ready`, which is cleared.
    fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64);

    /// TLS parameters agreed on, over all connections.
    fn negotiated(&self) -> Vec<Negotiated> {
        Vec::new()
    }
}
