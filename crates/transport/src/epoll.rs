//! [`Net`] over edge-triggered epoll.
//!
//! A socket is registered once: for both directions while it connects, for receiving alone when it stood at once.
//! The latter spares an event for each new connection; a short write, which is rare, registers it for both.

use std::io;
use std::net::SocketAddr;

use loadlens_base::Outcome;
use loadlens_sys::{self as sys, would_block};

use super::socket::OpenSockets;
use super::{Io, Net, NetError, Ready, Socket};

/// The sockets of one worker. Those still open when it is dropped, by a panic say, are closed then.
pub struct Epoll {
    epoll: sys::Epoll,
    /// Room for one batch of events.
    events: Vec<libc::epoll_event>,
    open: OpenSockets,
    /// By descriptor: the token of a socket that is registered for receiving alone, or [`BOTH`].
    receives: Vec<u64>,
}

/// Bytes, the end of the stream, errors.
const RECEIVING: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
/// Room to send as well, the end of connecting included.
const BOTH_WAYS: u32 = RECEIVING | libc::EPOLLOUT as u32;
/// No token: a socket is registered for both directions.
const BOTH: u64 = u64::MAX;
/// Room for so many descriptors is made at once: which ones a run gets, and which of them stand at once, is chance; what
/// it allocates should not be.
const AT_ONCE: usize = 1024;

impl Epoll {
    /// A poller that takes up to `batch` events at once.
    pub fn new(batch: usize) -> io::Result<Self> {
        Ok(Epoll {
            epoll: sys::Epoll::new()?,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; batch.max(1)],
            open: OpenSockets::default(),
            receives: vec![BOTH; AT_ONCE],
        })
    }

    /// A socket is full: there must be an event when there is room again.
    #[cold]
    fn expect_room(&mut self, socket: Socket) {
        let at = socket.descriptor() as usize;
        let Some(token) = self.receives.get_mut(at).filter(|token| **token != BOTH) else {
            return;
        };
        // A failure would be one of memory; the request then ends with its deadline.
        let _ = self.epoll.modify(socket.descriptor(), BOTH_WAYS, *token);
        *token = BOTH;
    }
}

/// The class of an error of connect or of a socket that failed while connecting.
fn connect_error(error: io::Error) -> NetError {
    let os_error = error.raw_os_error().unwrap_or(0);
    let outcome = match os_error {
        libc::ECONNREFUSED => Outcome::Refused,
        libc::ETIMEDOUT => Outcome::ConnectTimeout,
        libc::ECONNRESET => Outcome::Reset,
        _ => own_limit(os_error).unwrap_or(Outcome::ConnectFailed),
    };
    NetError::new(outcome, os_error)
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
fn broken(error: io::Error) -> Io {
    let os_error = error.raw_os_error().unwrap_or(0);
    let outcome = match os_error {
        libc::ENOBUFS | libc::ENOMEM => Outcome::OwnMemory,
        _ => Outcome::Reset,
    };
    Io::Broken(NetError::new(outcome, os_error))
}

impl Net for Epoll {
    type Handle = Socket;

    fn connect(&mut self, address: &SocketAddr, _: u8, token: u64) -> Result<Socket, NetError> {
        let socket = Socket::connect(address).map_err(connect_error)?;
        if let Err(error) = self.epoll.add(socket.descriptor(), BOTH_WAYS, token) {
            socket.close();
            return Err(connect_error(error));
        }
        self.open.insert(socket);
        Ok(socket)
    }

    fn connect_quietly(
        &mut self,
        address: &SocketAddr,
        _: u8,
        _token: u64,
    ) -> Result<Socket, NetError> {
        let socket = Socket::connect(address).map_err(connect_error)?;
        self.open.insert(socket);
        Ok(socket)
    }

    /// Between two sockets of one machine the handshake is over when `connect` returns.
    fn send_first(
        &mut self,
        socket: Socket,
        token: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, NetError> {
        let sent = match socket.send(bytes) {
            Ok(sent) => Some(sent),
            Err(error) if would_block(&error) => None,
            Err(error) => return Err(connect_error(error)),
        };
        let directions = match sent {
            Some(sent) if sent == bytes.len() => RECEIVING,
            _ => BOTH_WAYS,
        };
        let fd = socket.descriptor();
        self.epoll
            .add(fd, directions, token)
            .map_err(connect_error)?;
        if directions == RECEIVING {
            let at = fd as usize;
            if self.receives.len() <= at {
                self.receives
                    .resize((at + 1).next_multiple_of(AT_ONCE), BOTH);
            }
            self.receives[at] = token;
        }
        Ok(sent)
    }

    fn connected(&mut self, socket: Socket) -> Result<(), NetError> {
        socket.connected().map_err(connect_error)
    }

    #[inline]
    fn send(&mut self, socket: Socket, bytes: &[u8]) -> Io {
        match socket.send(bytes) {
            Ok(sent) => {
                if sent < bytes.len() {
                    self.expect_room(socket);
                }
                Io::Bytes(sent)
            }
            Err(error) if would_block(&error) => {
                self.expect_room(socket);
                Io::Later
            }
            Err(error) => broken(error),
        }
    }

    #[inline]
    fn receive(&mut self, socket: Socket, buffer: &mut [u8]) -> Io {
        match socket.receive(buffer) {
            Ok(0) => Io::End,
            Ok(received) => Io::Bytes(received),
            Err(error) if would_block(&error) => Io::Later,
            Err(error) => broken(error),
        }
    }

    fn close(&mut self, socket: Socket) {
        self.open.remove(socket);
        if let Some(token) = self.receives.get_mut(socket.descriptor() as usize) {
            *token = BOTH; // the next socket of this number is another one
        }
        socket.close();
    }

    #[inline]
    fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64) {
        ready.clear();
        let count = self.epoll.wait(&mut self.events, Some(timeout_ns));
        for event in &self.events[..count] {
            let (events, token) = (event.events as libc::c_int, event.u64);
            let failed = events & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
            ready.push(Ready {
                token,
                readable: failed || events & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0,
                writable: failed || events & libc::EPOLLOUT != 0,
                ended: failed || events & libc::EPOLLRDHUP != 0,
                failed,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

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
            let error = connect_error(io::Error::from_raw_os_error(os_error));

            assert_eq!(error, NetError::new(outcome, os_error));
        }
    }

    #[test]
    fn bytes_and_the_end_of_the_stream_are_told_once_each() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut net = Epoll::new(16).unwrap();
        let mut ready = Vec::with_capacity(16);
        let handle = net.connect(&listener.local_addr().unwrap(), 0, 7).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        net.wait(&mut ready, 10_000_000_000);
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
                Io::Cut => panic!("no TLS, nothing to cut"),
                Io::Broken(error) => panic!("{error:?}"),
            }
        }
        net.close(handle);

        assert_eq!(got, b"hello");
    }

    #[test]
    fn a_connection_that_stands_at_once_takes_its_request_and_tells_only_what_comes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut net = Epoll::new(16).unwrap();
        let mut ready = Vec::with_capacity(16);
        let address = listener.local_addr().unwrap();

        let handle = net.connect_quietly(&address, 0, 7).unwrap();
        let (mut peer, _) = listener.accept().unwrap(); // it stands, also where the kernel took its time
        let sent = net.send_first(handle, 7, b"hello").unwrap();
        net.wait(&mut ready, 0);
        let before = ready.clone();
        io::Write::write_all(&mut peer, b"back").unwrap();
        net.wait(&mut ready, 10_000_000_000);

        assert_eq!((sent, before), (Some(5), vec![]));
        assert!(ready[0].token == 7 && ready[0].readable && !ready[0].writable);
    }

    #[test]
    fn room_is_told_after_a_short_write_on_a_connection_that_stood_at_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut net = Epoll::new(16).unwrap();
        let mut ready = Vec::with_capacity(16);
        let address = listener.local_addr().unwrap();
        let handle = net.connect_quietly(&address, 0, 7).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        assert_eq!(net.send_first(handle, 7, b""), Ok(Some(0)));
        let much = vec![0; 64 << 20];

        // It is full for good when the kernel has handed to the peer what that takes; until then there is room again.
        let mut sent = 0;
        loop {
            match net.send(handle, &much[sent..]) {
                Io::Bytes(count) => sent += count,
                Io::Later => {
                    net.wait(&mut ready, 100_000_000);
                    if ready.is_empty() {
                        break;
                    }
                }
                other => panic!("{other:?}"),
            }
            assert!(sent < much.len(), "{sent}");
        }
        let mut rest = vec![0; sent];
        io::Read::read_exact(&mut peer, &mut rest).unwrap();
        net.wait(&mut ready, 10_000_000_000);

        assert!(ready[0].token == 7 && ready[0].writable);
    }

    /// A port that is taken but has no listener, as long as the socket is there.
    fn deaf_port() -> (std::os::fd::OwnedFd, SocketAddr) {
        let (socket, port) = loadlens_sys::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        (socket, ([127, 0, 0, 1], port).into())
    }

    #[test]
    fn a_refusal_is_told_by_the_first_send() {
        let (_port, address) = deaf_port();
        let mut net = Epoll::new(16).unwrap();

        let refused = match net.connect_quietly(&address, 0, 1) {
            Err(error) => error,
            Ok(handle) => {
                let mut hears = libc::pollfd {
                    fd: handle.descriptor(),
                    events: 0,
                    revents: 0,
                };
                // SAFETY: one valid pollfd. The kernel may take its time for the answer.
                assert_eq!(unsafe { libc::poll(&mut hears, 1, 10_000) }, 1);
                let error = net.send_first(handle, 1, b"hello").unwrap_err();
                net.close(handle);
                error
            }
        };

        assert_eq!(refused.outcome, Outcome::Refused);
    }

    #[test]
    fn sockets_left_open_are_closed_with_the_network() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut net = Epoll::new(16).unwrap();
        net.connect(&listener.local_addr().unwrap(), 0, 1).unwrap();
        let (mut peer, _) = listener.accept().unwrap();

        drop(net);

        assert_eq!(io::Read::read(&mut peer, &mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn a_refused_connection_is_told_at_connect_or_by_an_event() {
        let (_port, address) = deaf_port();
        let mut net = Epoll::new(16).unwrap();
        let mut ready = Vec::with_capacity(16);

        let refused = match net.connect(&address, 0, 1) {
            Err(error) => error,
            Ok(handle) => {
                net.wait(&mut ready, 10_000_000_000);
                let error = net.connected(handle).unwrap_err();
                net.close(handle);
                error
            }
        };

        assert_eq!(refused.outcome, Outcome::Refused);
    }
}
