//! One connection's state. What happens to it is decided in `exchange.rs`; here is only what is remembered.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use crate::bad::Act;
use crate::heads::Target;
use crate::request::{BodyLeft, Method, Persistence};
use crate::sys;
use crate::tls::{Server, Shaken};

/// Phase of a connection in its exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for a request, or for the rest of its head.
    Idle,
    /// Waits for the rest of a request body.
    Body(BodyLeft),
    /// The answer is not due yet.
    Serving,
    /// Bytes are on their way out.
    Writing,
    /// Says nothing until the client goes away.
    Stalled,
    /// The exchange is over: whatever comes now breaks the rules.
    Over,
}

/// Side that ended a connection, and in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    Client,
    ClientReset,
    Server,
}

/// One connection.
pub(crate) struct Connection {
    pub socket: OwnedFd,
    /// TLS session; none: plain TCP.
    pub tls: Option<Box<Server>>,
    /// Number in the order of acceptance.
    pub id: u64,
    pub phase: Phase,
    /// Rest of the body of a request that was answered early.
    pub early_body: Option<BodyLeft>,
    /// Received and not yet read, because it is part of a head or came early.
    pub input: Vec<u8>,
    /// Bytes to be sent, from `sent` on.
    pub output: Vec<u8>,
    pub sent: usize,
    /// Acts that follow when the output is out; none: the plain course.
    pub script: Option<VecDeque<Act>>,
    /// Time of the next look at it; 0: none.
    pub timer_ns: u64,
    /// Target of the current request, or of the last one.
    pub target: Option<Rc<Target>>,
    /// The path of the request in hand or the last one, in the counts; `u32::MAX` before the first.
    pub path: u32,
    pub method: Method,
    pub persistence: Persistence,
    pub received_ns: u64,
    /// Head or body of the request in hand, when the route wants it.
    pub kept: Vec<u8>,
    /// Requests before the one in hand.
    pub requests: u64,
    pub peer_ended: bool,
    pub we_ended: bool,
    /// Our end came without a word before it.
    pub is_unsaid: bool,
    pub waits_for_room: bool,
    /// True once the bytes after the end are recorded as a violation.
    pub violated: bool,
}

impl Connection {
    pub fn new(socket: OwnedFd, id: u64) -> Connection {
        Connection {
            socket,
            tls: None,
            id,
            phase: Phase::Idle,
            early_body: None,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            script: None,
            timer_ns: 0,
            target: None,
            path: u32::MAX,
            method: Method::Get,
            persistence: Persistence::Kept,
            received_ns: 0,
            kept: Vec::new(),
            requests: 0,
            peer_ended: false,
            we_ended: false,
            is_unsaid: false,
            waits_for_room: false,
            violated: false,
        }
    }

    /// Receives the available bytes; `note` gets the outcome of the TLS handshake, if there was one.
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        note: &mut impl FnMut(Shaken),
    ) -> std::io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        match &mut self.tls {
            None => sys::receive(fd, buffer),
            Some(tls) => tls.receive(fd, buffer, note),
        }
    }

    /// Sends what fits.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        match &mut self.tls {
            None => sys::send(fd, bytes),
            Some(tls) => tls.send(fd, bytes),
        }
    }

    /// Sends what fits of the output.
    pub fn send_output(&mut self) -> std::io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        let bytes = &self.output[self.sent..];
        match &mut self.tls {
            None => sys::send(fd, bytes),
            Some(tls) => tls.send(fd, bytes),
        }
    }

    /// Ends our side.
    pub fn end_sending(&mut self) {
        let fd = self.socket.as_raw_fd();
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye(fd);
        }
        sys::end_sending(fd);
    }
}
