//! TCP sockets that do not block.

use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::{io, mem, ptr};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{check, owned};

/// Binds a socket that does not listen yet; returns it with its port (0 asks for a free one).
pub fn bind(address: SocketAddrV4) -> io::Result<(OwnedFd, u16)> {
    bind_with(false, address)
}

/// As `bind`, at an address that others share: connections are divided among all that are bound so and listen.
pub fn bind_shared(address: SocketAddrV4) -> io::Result<(OwnedFd, u16)> {
    bind_with(true, address)
}

fn bind_with(is_shared: bool, address: SocketAddrV4) -> io::Result<(OwnedFd, u16)> {
    let socket = Socket::new_raw(Domain::IPV4, Type::STREAM.nonblocking().cloexec(), None)?;
    socket.set_reuse_address(true)?;
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    let port = socket
        .local_addr()?
        .as_socket_ipv4()
        .map_or(0, |bound| bound.port());
    Ok((socket.into(), port))
}

/// Begins to connect a new socket with TCP_NODELAY; it becomes writable when that is decided.
pub fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    let (domain, kind) = (
        Domain::for_address(*address),
        Type::STREAM.nonblocking().cloexec(),
    );
    let socket = Socket::new_raw(domain, kind, Some(Protocol::TCP))?;
    let _ = socket.set_tcp_nodelay(true); // a failure only costs latency
    match socket.connect(&(*address).into()) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
            Err(error)
        }
        _ => Ok(socket.into()),
    }
}

/// Takes the result of connecting: the pending error of the socket (SO_ERROR), if there is one.
pub fn connected(socket: impl AsFd) -> io::Result<()> {
    match SockRef::from(&socket).take_error()? {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// True if an error only says "not now".
#[inline]
pub fn would_block(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EINTR) // EWOULDBLOCK is EAGAIN on Linux
    )
}

/// Has a bound socket listen, with room for `backlog` connections (65,535 at most) not accepted yet.
pub fn listen(fd: RawFd, backlog: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd, backlog.min(65_535) as libc::c_int) }).map(|_| ())
}

/// Takes one connection off the queue of a listening socket; none when the queue is empty.
pub fn accept(listener: RawFd) -> io::Result<Option<OwnedFd>> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: null address and size are allowed; the descriptor returned is ours alone.
    let accepted = unsafe {
        owned(libc::accept4(
            listener,
            ptr::null_mut(),
            ptr::null_mut(),
            flags,
        ))
    };
    match accepted {
        Ok(socket) => {
            let fd = socket.as_raw_fd();
            set_option::<libc::c_int>(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
            Ok(Some(socket))
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ECONNABORTED | libc::EINTR) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Number of connections in the accept queue of a listening socket.
pub fn accept_queue(listener: RawFd) -> u32 {
    // SAFETY: tcp_info is plain numbers, for which zero is a value.
    let mut state: libc::tcp_info = unsafe { mem::zeroed() };
    let mut size = mem::size_of_val(&state) as libc::socklen_t;
    // SAFETY: `state` is as large as `size` says.
    let code = unsafe {
        libc::getsockopt(
            listener,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &mut size,
        )
    };
    // For a listening socket the kernel reports its queue in the field of unacknowledged segments.
    if code == 0 {
        state.tcpi_unacked
    } else {
        0
    }
}

/// Lets small segments of a connection wait for the acknowledgement of those before (Nagle).
pub fn hold_small_segments(fd: RawFd) {
    // It cannot fail for our sockets.
    let _ = set_option::<libc::c_int>(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 0);
}

/// Receives what is there; `WouldBlock` when nothing is, 0 when the peer has ended its side.
///
/// Sending and receiving go around the C library's functions: those are points of cancellation, and in a
/// process with threads each call pays for that, some 3 % of a request.
#[inline]
pub fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` has room for `len` bytes; no address is asked for.
    let count = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd,
            buffer.as_mut_ptr(),
            buffer.len(),
            0usize,
            ptr::null_mut::<libc::sockaddr>(),
            ptr::null_mut::<libc::socklen_t>(),
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends what fits; `WouldBlock` when nothing does.
#[inline]
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is read only; no address is given.
    let count = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd,
            bytes.as_ptr(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            ptr::null::<libc::sockaddr>(),
            0usize,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Bytes that were sent and that the peer has not acknowledged yet.
pub fn unacknowledged(fd: RawFd) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the request writes one int.
    let code = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut count) };
    if code < 0 {
        0
    } else {
        count.max(0) as usize
    }
}

/// Ends our side (FIN); the peer may still send.
pub fn end_sending(fd: RawFd) {
    // SAFETY: no pointers. It can fail only when the peer is gone, which is as good.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// Makes the next close of `fd` a reset (RST) instead of an orderly end.
pub fn reset_on_close(fd: RawFd) {
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // It cannot fail for our sockets.
    let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, at_once);
}

fn set_option<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    let size = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is read during the call only, and `size` is its size.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{monotonic_ns, wait_readable, wait_writable};
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    const SECOND: Option<u64> = Some(1_000_000_000);
    const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

    fn listening() -> (OwnedFd, SocketAddrV4) {
        let (listener, port) = bind(ANY_PORT).unwrap();
        listen(listener.as_raw_fd(), 16).unwrap();
        (listener, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
    }

    /// A client and our end of its connection.
    fn pair() -> (TcpStream, OwnedFd) {
        let (listener, address) = listening();
        let client = TcpStream::connect(address).unwrap();
        let ours = accept(listener.as_raw_fd()).unwrap().unwrap();
        (client, ours)
    }

    #[test]
    fn a_port_that_somebody_listens_at_is_refused_unless_all_share_it() {
        let (_listener, address) = listening();
        let (one, port) = bind_shared(ANY_PORT).unwrap();
        listen(one.as_raw_fd(), 16).unwrap();
        let shared = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);

        let refused = bind(address).unwrap_err();
        let late = bind(shared).unwrap_err();
        let (_other, other_port) = bind_shared(shared).unwrap();

        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        assert_eq!(late.kind(), ErrorKind::AddrInUse);
        assert_eq!(other_port, port);
    }

    #[test]
    fn a_port_can_be_had_again_while_old_connections_linger() {
        let (listener, address) = listening();
        let client = TcpStream::connect(address).unwrap();
        drop(accept(listener.as_raw_fd()).unwrap()); // we close first: TIME_WAIT is on our side
        drop(client);
        drop(listener);

        let (again, port) = bind(address).unwrap();

        assert_eq!(port, address.port());
        listen(again.as_raw_fd(), 16).unwrap();
    }

    #[test]
    fn nobody_is_reached_at_a_bound_socket_before_it_listens() {
        let (socket, port) = bind(ANY_PORT).unwrap();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);

        let before = TcpStream::connect(address).unwrap_err();
        listen(socket.as_raw_fd(), u32::MAX).unwrap();

        assert_eq!(before.kind(), ErrorKind::ConnectionRefused);
        TcpStream::connect(address).unwrap();
    }

    #[test]
    fn connections_wait_to_be_accepted_and_are_counted() {
        let (listener, address) = listening();
        let fd = listener.as_raw_fd();

        let empty = accept(fd).unwrap();
        let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address)).collect();
        wait_readable(&[fd], SECOND);
        let waiting = accept_queue(fd);
        let first = accept(fd).unwrap();

        assert!(empty.is_none() && first.is_some());
        assert!(clients.iter().all(Result::is_ok));
        assert_eq!((waiting, accept_queue(fd)), (3, 2));
    }

    #[test]
    fn a_connection_is_made_or_refused_over_both_families() {
        for host in ["127.0.0.1", "[::1]"] {
            let Ok(listener) = std::net::TcpListener::bind(format!("{host}:0")) else {
                continue; // no IPv6 here
            };
            let address = listener.local_addr().unwrap();
            let attempt = || {
                let socket = connect(&address)?;
                wait_writable(socket.as_raw_fd(), 10_000_000_000)?;
                connected(&socket)
            };

            let made = attempt();
            drop(listener);
            let refused = attempt().unwrap_err();

            assert!(made.is_ok(), "{host}: {made:?}");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{host}");
        }
    }

    #[test]
    fn a_socket_that_does_not_listen_accepts_with_an_error() {
        let (socket, _) = bind(ANY_PORT).unwrap();

        let error = accept(socket.as_raw_fd()).unwrap_err();

        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert_eq!(accept_queue(socket.as_raw_fd()), 0);
    }

    #[test]
    fn an_accepted_connection_sends_small_segments_at_once_unless_told_to_hold_them() {
        let (_client, ours) = pair();
        let ours = TcpStream::from(ours);

        let at_first = ours.nodelay().unwrap();
        hold_small_segments(ours.as_raw_fd());

        assert_eq!((at_first, ours.nodelay().unwrap()), (true, false));
    }

    #[test]
    fn bytes_go_both_ways_and_nothing_blocks() {
        let (mut client, ours) = pair();
        let fd = ours.as_raw_fd();
        let mut buffer = [0; 8];

        let nothing_yet = receive(fd, &mut buffer).unwrap_err();
        client.write_all(b"ask").unwrap();
        wait_readable(&[fd], SECOND);
        let asked = receive(fd, &mut buffer).unwrap();
        let sent = send(fd, b"said").unwrap();
        let mut heard = [0; 4];
        client.read_exact(&mut heard).unwrap();

        assert_eq!(nothing_yet.kind(), ErrorKind::WouldBlock);
        assert_eq!((&buffer[..asked], sent, &heard), (&b"ask"[..], 4, b"said"));
    }

    #[test]
    fn who_has_ended_sending_still_receives() {
        let (mut client, ours) = pair();
        let fd = ours.as_raw_fd();
        let mut buffer = [0; 8];

        end_sending(fd);
        let end = client.read(&mut buffer).unwrap();
        client.write_all(b"ok").unwrap();
        wait_readable(&[fd], SECOND);
        let heard = receive(fd, &mut buffer).unwrap();
        drop(client);
        wait_readable(&[fd], SECOND);

        assert_eq!((end, heard), (0, 2));
        assert_eq!(receive(fd, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_peer_that_has_gone_is_an_error_in_both_directions() {
        let (client, ours) = pair();
        let fd = ours.as_raw_fd();
        reset_on_close(client.as_raw_fd());
        drop(client);
        wait_readable(&[fd], SECOND);

        let reset = receive(fd, &mut [0; 8]).unwrap_err();
        let broken = send(fd, b"x").unwrap_err();

        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        assert_eq!(broken.kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn what_the_peer_has_no_room_for_stays_unacknowledged_until_it_reads() {
        let (mut client, ours) = pair();
        let fd = ours.as_raw_fd();
        let at_first = unacknowledged(fd);
        let mut sent = 0;
        while let Ok(count) = send(fd, &[0; 65_536]) {
            sent += count;
        }

        let full = unacknowledged(fd);
        let mut read = 0;
        while read < sent {
            read += client.read(&mut vec![0; 65_536]).unwrap();
        }
        let until = monotonic_ns() + 5_000_000_000; // the last acknowledgement may be held back for 40 ms
        while unacknowledged(fd) > 0 && monotonic_ns() < until {
            std::thread::yield_now();
        }

        assert!(0 < full && full < sent, "{full} of {sent}");
        assert_eq!((at_first, unacknowledged(fd)), (0, 0));
    }
}
