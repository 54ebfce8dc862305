//! Calibration of a machine: a server that does nothing, and a measure of how punctually a sleep ends.
//!
//! The server runs in a process of its own, on other cores than the load. It answers every request with the same 40
//! bytes, looks only for the end of a head, and so costs hardly more than the two system calls that any server makes.
//! The rate that a generator reaches against it is the most that the generator, or the machine, can do.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use memchr::memmem::Finder;

use loadlens_sys as sys;
use loadlens_sys::slab::{Slab, RESERVED};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HEAD_END: &[u8] = b"\r\n\r\n";
const EVENTS: usize = 256;
/// Token of a thread's bell.
const BELL: u64 = RESERVED;
const WATCHED: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

/// A port of loopback; nothing is served there until [`Nothing::serve`].
pub struct Nothing {
    listener: TcpListener,
    port: u16,
}

impl Nothing {
    /// Takes a free port.
    pub fn bind() -> io::Result<Nothing> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Nothing { listener, port })
    }

    /// Port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves until `ends` can be read or is closed, with one thread on each of `cores`; the threads end with the
    /// process.
    pub fn serve(self, ends: RawFd, cores: &[u32]) -> io::Result<()> {
        let threads = cores
            .iter()
            .map(|core| ServingThread::begin(*core))
            .collect::<io::Result<Vec<_>>>()?;
        let watched = [self.listener.as_raw_fd(), ends];
        for thread in threads.iter().cycle() {
            let peer = loop {
                match sys::accept(watched[0]) {
                    Ok(Some(peer)) => break peer,
                    Ok(None) => {}
                    Err(_) => thread::sleep(Duration::from_millis(1)), // out of descriptors
                }
                if sys::wait_readable(&watched, None)[1] {
                    return Ok(());
                }
            };
            thread.give(peer)?;
        }
        Ok(())
    }
}

/// The way to a serving thread.
struct ServingThread {
    peers: Sender<OwnedFd>,
    bell: Arc<sys::Bell>,
}

impl ServingThread {
    fn begin(core: u32) -> io::Result<ServingThread> {
        let (peers, inbox) = channel();
        let bell = Arc::new(sys::Bell::new()?);
        let epoll = sys::Epoll::new()?;
        epoll.add(bell.as_raw_fd(), libc::EPOLLIN as u32, BELL)?;
        let rings = bell.clone();
        thread::Builder::new()
            .name(format!("nothing-{core}"))
            .spawn(move || {
                let _ = sys::confine(&[core as usize]); // a thread elsewhere serves too
                answer_all(&epoll, &inbox, &rings);
            })?;
        Ok(ServingThread { peers, bell })
    }

    fn give(&self, peer: OwnedFd) -> io::Result<()> {
        self.peers
            .send(peer)
            .map_err(|_| io::Error::other("a serving thread has ended"))?;
        self.bell.ring();
        Ok(())
    }
}

fn answer_all(epoll: &sys::Epoll, inbox: &Receiver<OwnedFd>, bell: &sys::Bell) {
    let mut peers: Slab<Peer> = Slab::new(0);
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    let mut buffer = vec![0; 64 << 10];
    let finder = Finder::new(HEAD_END);
    loop {
        let count = epoll.wait(&mut events, None);
        for token in events[..count].iter().map(|event| event.u64) {
            if token == BELL {
                bell.quiet();
                for socket in inbox.try_iter() {
                    let fd = socket.as_raw_fd();
                    let token = peers.insert(|_| Peer { socket, matched: 0 });
                    if epoll.add(fd, WATCHED, token).is_err() {
                        peers.remove(token);
                    }
                }
            } else if let Some(peer) = peers.get(token) {
                if !peer.answer(&mut buffer, &finder) {
                    peers.remove(token);
                }
            }
        }
    }
}

/// One connection.
struct Peer {
    socket: OwnedFd,
    /// Number of bytes of a head's end that the last bytes matched.
    matched: usize,
}

impl Peer {
    /// Answers what came; false: the connection has ended.
    fn answer(&mut self, buffer: &mut [u8], finder: &Finder<'_>) -> bool {
        loop {
            let count = match sys::receive(self.socket.as_raw_fd(), buffer) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) => return sys::would_block(&error),
            };
            for _ in 0..heads(&mut self.matched, &buffer[..count], finder) {
                // 40 bytes fit, unless the other side has stopped to read: then it is no client to be measured with.
                let sent = sys::send(self.socket.as_raw_fd(), ANSWER);
                if !sent.is_ok_and(|count| count == ANSWER.len()) {
                    return false;
                }
            }
            if count < buffer.len() {
                return true;
            }
        }
    }
}

/// Number of heads that end in these bytes; `matched` is how much of a head's end the bytes before them matched.
fn heads(matched: &mut usize, bytes: &[u8], finder: &Finder<'_>) -> usize {
    if *matched == 0 && bytes.ends_with(HEAD_END) {
        return finder.find_iter(bytes).count();
    }
    let mut heads = 0;
    for byte in bytes {
        *matched = match (*byte, *matched) {
            (b'\r', 0 | 1) => 1,
            (b'\r', 2) => 3,
            (b'\r', 3) => 1,
            (b'\n', 1) => 2,
            (b'\n', 3) => {
                heads += 1;
                0
            }
            _ => 0,
        };
    }
    heads
}

/// Punctuality of a sleeping thread, and the cost of reading the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Median lateness of the sleeps.
    pub late_p50_ns: u64,
    /// And 99 % of them.
    pub late_p99_ns: u64,
    /// The worst.
    pub late_max_ns: u64,
    /// One reading of the clock.
    pub clock_read_ns: u64,
}

impl Timer {
    /// Sleeps for a millisecond so many times; at least once.
    pub fn measure(sleeps: usize) -> Timer {
        const SLEEP: Duration = Duration::from_millis(1);
        const READINGS: u64 = 10_000;
        sys::precise_timers();
        let mut late: Vec<u64> = (0..sleeps.max(1))
            .map(|_| {
                let began = sys::monotonic_ns();
                thread::sleep(SLEEP);
                (sys::monotonic_ns() - began).saturating_sub(SLEEP.as_nanos() as u64)
            })
            .collect();
        late.sort_unstable();
        let began = sys::monotonic_ns();
        (0..READINGS).for_each(|_| {
            std::hint::black_box(sys::monotonic_ns());
        });
        let at = |share: f64| late[((late.len() - 1) as f64 * share).round() as usize];
        Timer {
            late_p50_ns: at(0.5),
            late_p99_ns: at(0.99),
            late_max_ns: at(1.0),
            clock_read_ns: (sys::monotonic_ns() - began) / READINGS,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn heads_in(pieces: &[&[u8]]) -> usize {
        let finder = Finder::new(HEAD_END);
        let mut matched = 0;
        let pieces = pieces.iter();
        pieces
            .map(|piece| heads(&mut matched, piece, &finder))
            .sum()
    }

    #[test]
    fn heads_are_counted_however_they_are_cut() {
        let two = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";

        assert_eq!(heads_in(&[two]), 2);
        for cut in 0..two.len() {
            assert_eq!(heads_in(&[&two[..cut], &two[cut..]]), 2, "cut at {cut}");
        }
        assert_eq!(heads_in(&[b"a\r\r\n\r\n"]), 1);
        assert_eq!(heads_in(&[b"a\r\n\n", b"\r\n"]), 0);
    }

    #[test]
    fn every_request_is_answered_until_the_end_is_told() {
        let nothing = Nothing::bind().unwrap();
        let port = nothing.port();
        let (end, ends) = UnixStream::pair().unwrap();
        let serving = thread::spawn(move || nothing.serve(ends.as_raw_fd(), &[0, 0]));

        for _ in 0..3 {
            let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let mut answer = vec![0; ANSWER.len()];
            for _ in 0..2 {
                client
                    .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    .unwrap();
                client.read_exact(&mut answer).unwrap();
                assert_eq!(answer, ANSWER);
            }
        }
        drop(end);

        assert!(serving.join().unwrap().is_ok());
    }

    #[test]
    fn a_sleep_is_never_shorter_than_asked_for_and_its_quantiles_rise() {
        let timer = Timer::measure(20);

        assert!(timer.late_p50_ns <= timer.late_p99_ns && timer.late_p99_ns <= timer.late_max_ns);
        assert!(timer.late_max_ns > 0);
    }
}
