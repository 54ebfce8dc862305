//! Sockets by number, and the set of those that are open.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use loadlens_sys as sys;

/// A non-blocking socket. Copied freely; the owner of the connection closes it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket(RawFd);

impl Socket {
    /// Begins to connect a new socket.
    pub fn connect(address: &SocketAddr) -> io::Result<Socket> {
        sys::connect(address).map(|socket| Socket(socket.into_raw_fd()))
    }

    /// Result of connecting.
    pub fn connected(self) -> io::Result<()> {
        sys::connected(self)
    }

    /// Sends what fits into the socket's buffer.
    #[inline]
    pub fn send(self, bytes: &[u8]) -> io::Result<usize> {
        sys::send(self.0, bytes)
    }

    /// Receives what is there; 0: the end of the stream.
    #[inline]
    pub fn receive(self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::receive(self.0, buffer)
    }

    /// Its number.
    #[inline]
    pub fn descriptor(self) -> RawFd {
        self.0
    }

    /// Closes the socket; every copy of it is void from here on.
    pub fn close(self) {
        // SAFETY: the descriptor is open, and its owner closes it once.
        drop(unsafe { OwnedFd::from_raw_fd(self.0) });
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the owner of the connection closes the descriptor after its last use.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// Sockets that are open; those that still are when it is dropped are closed.
#[derive(Debug, Default)]
pub struct OpenSockets {
    /// One bit for each descriptor.
    bits: Vec<u64>,
}

impl OpenSockets {
    /// Notes an open socket.
    pub fn insert(&mut self, socket: Socket) {
        let (word, bit) = (socket.0 as usize / 64, socket.0 % 64);
        if self.bits.len() <= word {
            self.bits.resize((word + 1).next_multiple_of(16), 0); // 1,024 descriptors
        }
        self.bits[word] |= 1 << bit;
    }

    /// Forgets a socket that its owner is about to close.
    pub fn remove(&mut self, socket: Socket) {
        self.bits[socket.0 as usize / 64] &= !(1 << (socket.0 % 64));
    }
}

impl Drop for OpenSockets {
    fn drop(&mut self) {
        for (word, bits) in self.bits.iter().enumerate() {
            let is_open = |bit: &usize| bits >> bit & 1 == 1;
            (0..64)
                .filter(is_open)
                .for_each(|bit| Socket((word * 64 + bit) as RawFd).close());
        }
    }
}
