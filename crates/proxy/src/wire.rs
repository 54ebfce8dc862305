//! One socket with its buffers: what was received and not yet used, what is to be sent and may go.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use loadlens_sys as sys;

use crate::pace;

/// No more is read while so much waits to be used or sent.
pub(crate) const HIGH: usize = 256 * 1024;
/// It is read on when so little is left.
pub(crate) const LOW: usize = 64 * 1024;
/// Buffers above this are not kept for the next request.
const KEPT: usize = 64 * 1024;

/// State of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    There,
    /// It ended its side.
    Ended,
    /// It reset the connection.
    Reset,
}

/// One socket.
pub(crate) struct Wire {
    pub socket: OwnedFd,
    pub token: u64,
    pub peer: Peer,
    /// Events that epoll watches now.
    pub watched: u32,
    input: Vec<u8>,
    used: usize,
    output: Vec<u8>,
    sent: usize,
    /// The kernel took less than there was.
    is_full: bool,
    /// Sending fails: what is to be sent is thrown away.
    is_deaf: bool,
    /// It fails because the peer reset: the system reports that once only, here instead of when reading.
    was_reset: bool,
    pub pacing: Option<Pacing>,
}

/// State of a wire on its link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacing {
    /// Its own link; none: the one that all share.
    own: Option<pace::Link>,
    /// Bytes that may go now.
    granted: usize,
    /// The piece that the link is busy with, and until when; 0: none.
    piece: usize,
    at_ns: u64,
    /// A timer is set for that time.
    is_timed: bool,
    /// The next piece follows the last one.
    follows: bool,
}

impl Wire {
    pub fn new(socket: OwnedFd, token: u64, pacing: Option<Pacing>) -> Wire {
        Wire {
            socket,
            token,
            peer: Peer::There,
            watched: 0,
            input: Vec::new(),
            used: 0,
            output: Vec::new(),
            sent: 0,
            is_full: false,
            is_deaf: false,
            was_reset: false,
            pacing,
        }
    }

    /// Received and not yet used.
    pub fn unread(&self) -> &[u8] {
        &self.input[self.used..]
    }

    /// Uses the first bytes.
    pub fn take(&mut self, count: usize) {
        self.used += count;
        if self.used == self.input.len() {
            self.used = 0;
            self.input.clear();
            if self.input.capacity() > KEPT {
                self.input.shrink_to(KEPT);
            }
        } else if self.used > KEPT {
            self.input.drain(..self.used);
            self.used = 0;
        }
    }

    pub fn take_all(&mut self) {
        self.take(self.input.len() - self.used);
    }

    /// True if there is room to read on.
    pub fn has_room(&self) -> bool {
        self.input.len() - self.used < HIGH
    }

    /// Reads what is there, as far as there is room; how many bytes.
    pub fn receive(&mut self, buffer: &mut [u8]) -> usize {
        let mut total = 0;
        while self.peer == Peer::There && self.has_room() {
            match sys::receive(self.socket.as_raw_fd(), buffer) {
                Ok(0) if self.was_reset => self.peer = Peer::Reset,
                Ok(0) => self.peer = Peer::Ended,
                Ok(count) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    total += count;
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.peer = Peer::Reset,
            }
        }
        total
    }

    /// Notes an end that epoll reports and reading did not show, because there was no room.
    pub fn note(&mut self, events: u32, received: usize) {
        let ends = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        if events & ends != 0 && received == 0 && self.peer == Peer::There {
            self.peer = Peer::Reset;
        }
    }

    /// Bytes to be sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Keeps only the first bytes of what is to be sent.
    pub fn keep_pending(&mut self, count: usize) {
        self.output.truncate(self.sent + count);
    }

    pub fn put(&mut self, bytes: &[u8]) {
        if !self.is_deaf {
            self.output.extend_from_slice(bytes);
        }
    }

    /// Bytes that are to be sent.
    pub fn pending(&self) -> usize {
        self.output.len() - self.sent
    }

    /// True if sending waits for the kernel.
    pub fn waits_for_room(&self) -> bool {
        self.is_full && self.pending() > 0
    }

    /// Sends what may go; how many bytes. After a failure everything is thrown away.
    ///
    /// `shared` is the link of those who have none of their own. When the link is busy, `time_link` says until
    /// when.
    pub fn flush(&mut self, now_ns: u64, shared: Option<&mut pace::Link>) -> usize {
        if self.is_deaf {
            self.throw_away();
            return 0;
        }
        self.is_full = false;
        let before = self.sent;
        let mut shared = shared;
        while self.pending() > 0 {
            let may = match &mut self.pacing {
                None => self.output.len() - self.sent,
                Some(pacing) => {
                    let pending = self.output.len() - self.sent;
                    if pacing.granted == 0 {
                        pacing.reserve(pending, now_ns, shared.as_deref_mut());
                        break;
                    }
                    pacing.granted.min(pending)
                }
            };
            let bytes = &self.output[self.sent..self.sent + may];
            match sys::send(self.socket.as_raw_fd(), bytes) {
                Ok(count) => {
                    self.sent += count;
                    self.is_full = count < may;
                    if let Some(pacing) = &mut self.pacing {
                        pacing.granted -= count;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
                Err(error) => {
                    self.is_deaf = true;
                    self.was_reset = error.kind() == io::ErrorKind::ConnectionReset;
                    let went = self.sent - before;
                    self.throw_away();
                    return went;
                }
            }
            if self.is_full {
                break;
            }
        }
        let went = self.sent - before;
        self.tidy();
        went
    }

    /// The link is through with the piece it had.
    pub fn grant(&mut self, now_ns: u64) -> bool {
        match &mut self.pacing {
            Some(pacing) if pacing.piece > 0 && pacing.at_ns <= now_ns => {
                pacing.granted += pacing.piece;
                pacing.piece = 0;
                pacing.is_timed = false;
                pacing.follows = true;
                true
            }
            _ => false,
        }
    }

    /// Time at which the link will be through with its piece; returned once per piece.
    pub fn time_link(&mut self) -> Option<u64> {
        let pacing = self.pacing.as_mut()?;
        let is_new = pacing.piece > 0 && !pacing.is_timed;
        pacing.is_timed |= is_new;
        is_new.then_some(pacing.at_ns)
    }

    fn tidy(&mut self) {
        if self.pending() == 0 {
            self.throw_away();
        } else if self.sent > KEPT {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn throw_away(&mut self) {
        self.output.clear();
        self.sent = 0;
        self.is_full = false;
        if self.output.capacity() > KEPT {
            self.output.shrink_to(KEPT);
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.follows = false;
        }
    }
}

impl Pacing {
    /// Pacing on a link of its own, or on the one that all share.
    pub fn on(own: Option<pace::Link>) -> Pacing {
        Pacing {
            own,
            ..Pacing::default()
        }
    }

    /// Takes the link for the next piece, unless it already has one from this wire.
    fn reserve(&mut self, pending: usize, now_ns: u64, shared: Option<&mut pace::Link>) {
        let Some(link) = self.own.as_mut().or(shared) else {
            return;
        };
        if self.piece == 0 {
            (self.piece, self.at_ns) = link.take(pending, now_ns, self.follows);
        }
    }
}
