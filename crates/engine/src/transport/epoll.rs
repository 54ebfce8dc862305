//! [`Net`] over edge-triggered epoll.
//!
//! A socket is registered once, for both directions, before it connects. Being registered for writing
//! costs nothing: the kernel reports it after a short write only, so no call toggles it.

use std::io;
use std::net::SocketAddr;

use crate::error::Outcome;

use super::sys::{self, OpenSockets, Poller, Socket};
use super::{Io, Net, NetError, Ready};

/// The sockets of one worker. Those still open when it is dropped, by a panic say, are closed then.
pub struct Epoll {
    poller: Poller,
    open: OpenSockets,
}

impl Epoll {
    /// A poller that takes up to `batch` events at once.
    pub fn new(batch: usize) -> io::Result<Self> {
        Ok(Epoll {
            poller: Poller::new(batch)?,
            open: OpenSockets::default(),
        })
    }
}

/// The class of an error of connect or of a socket that failed while connecting.
fn connect_error(os_error: i32) -> NetError {
    let outcome = match os_error {
        libc::ECONNREFUSED => Outcome::Refused,
        libc::ETIMEDOUT => Outcome::ConnectTimeout,
        libc::ECONNRESET => Outcome::Reset,
        _ => own_limit(os_error).unwrap_or(Outcome::ConnectFailed),
    };
    NetError { outcome, os_error }
}

fn own_limit(os_error: i32) -> Option<Outcome> {
    match os_error {
        libc::EMFILE | libc::ENFILE => Some(Outcome::OwnDescriptors),
        libc::EADDRNOTAVAIL | libc::EADDRINUSE | libc::EAGAIN => Some(Outcome::OwnPorts),
        libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC => Some(Outcome::OwnMemory),
        _ => None,
    }
}

/// The class of an error on a connection that stood.
fn broken(os_error: i32) -> Io {
    let outcome = match os_error {
        libc::ENOBUFS | libc::ENOMEM => Outcome::OwnMemory,
        _ => Outcome::Reset,
    };
    Io::Broken(NetError { outcome, os_error })
}

impl Net for Epoll {
    type Handle = Socket;

    fn connect(&mut self, address: &SocketAddr, token: u64) -> Result<Socket, NetError> {
        let socket = Socket::open(address).map_err(connect_error)?;
        let begun = socket
            .connect(address)
            .and_then(|()| self.poller.add(socket, token));
        match begun {
            Ok(()) => {
                self.open.insert(socket);
                Ok(socket)
            }
            Err(os_error) => {
                socket.close();
                Err(connect_error(os_error))
            }
        }
    }

    fn connected(&mut self, socket: Socket) -> Result<(), NetError> {
        match socket.take_error() {
            0 => Ok(()),
            os_error => Err(connect_error(os_error)),
        }
    }

    #[inline]
    fn send(&mut self, socket: Socket, bytes: &[u8]) -> Io {
        match socket.send(bytes) {
            Ok(sent) => Io::Bytes(sent),
            Err(error) if sys::would_block(error) => Io::Later,
            Err(error) => broken(error),
        }
    }

    #[inline]
    fn receive(&mut self, socket: Socket, buffer: &mut [u8]) -> Io {
        match socket.receive(buffer) {
            Ok(0) => Io::End,
            Ok(received) => Io::Bytes(received),
            Err(error) if sys::would_block(error) => Io::Later,
            Err(error) => broken(error),
        }
    }

    fn close(&mut self, socket: Socket) {
        self.open.remove(socket);
        socket.close();
    }

    #[inline]
    fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64) {
        self.poller.wait(ready, timeout_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_become_the_classes_of_the_record() {
        let classes = [
            (libc::ECONNREFUSED, Outcome::Refused),
            (libc::EHOSTUNREACH, Outcome::ConnectFailed),
            (libc::ENETUNREACH, Outcome::ConnectFailed),
            (libc::ETIMEDOUT, Outcome::ConnectTimeout),
            (libc::EMFILE, Outcome::OwnDescriptors),
            (libc::ENFILE, Outcome::OwnDescriptors),
            (libc::EADDRNOTAVAIL, Outcome::OwnPorts),
            (libc::ENOBUFS, Outcome::OwnMemory),
        ];

        for (os_error, outcome) in classes {
            assert_eq!(connect_error(os_error), NetError { outcome, os_error });
        }
    }

    #[test]
    fn bytes_and_the_end_of_the_stream_are_told_once_each() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut net = Epoll::new(16).unwrap();
        let mut ready = Vec::with_capacity(16);
        let handle = net.connect(&listener.local_addr().unwrap(), 7).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        net.wait(&mut ready, 1_000_000_000);
        assert!(ready[0].writable && ready[0].token == 7);
        assert_eq!(net.connected(handle), Ok(()));

        io::Write::write_all(&mut peer, b"hello").unwrap();
        drop(peer);
        let mut got = Vec::new();
        let mut buffer = [0; 64];
        for _ in 0..100 {
            net.wait(&mut ready, 100_000_000);
            match net.receive(handle, &mut buffer) {
                Io::Bytes(n) => got.extend_from_slice(&buffer[..n]),
                Io::End => break,
                Io::Later => {}
                Io::Broken(error) => panic!("{error:?}"),
            }
        }
        net.close(handle);

        assert_eq!(got, b"hello");
    }

    #[test]
    fn sockets_left_open_are_closed_with_the_network() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut net = Epoll::new(16).unwrap();
        net.connect(&listener.local_addr().unwrap(), 1).unwrap();
        let (mut peer, _) = listener.accept().unwrap();

        drop(net);

        assert_eq!(io::Read::read(&mut peer, &mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn a_refused_connection_is_told_at_connect_or_by_an_event() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut net = Epoll::new(16).unwrap();
        let mut ready = Vec::with_capacity(16);

        let refused = match net.connect(&address, 1) {
            Err(error) => error,
            Ok(handle) => {
                net.wait(&mut ready, 1_000_000_000);
                let error = net.connected(handle).unwrap_err();
                net.close(handle);
                error
            }
        };

        assert_eq!(refused.outcome, Outcome::Refused);
    }
}
