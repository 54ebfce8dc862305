//! [`Net`] with TLS over [`Epoll`]: the worker sees plain bytes, and a connection stands when it is secured.
//!
//! Connections of streams without TLS pass through. A run without any such stream uses [`Epoll`] itself.

mod config;
mod handshake;
mod record;
mod session;
mod words;

use std::net::SocketAddr;

use rustls::SupportedCipherSuite;

use super::{Epoll, Handshake, Io, Negotiated, Net, NetError, Ready, Socket};

use config::Secured;
pub use config::{configure, Configs};
use handshake::Handshaking;
use session::Session;

/// A connection: its socket, and its place among the secured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    socket: Socket,
    at: u32,
}

/// "Not secured" in a handle.
const PLAIN: u32 = u32::MAX;

/// State of a secured connection.
enum State {
    Free,
    /// TCP does not stand yet.
    Connecting(u8),
    Shaking(u8, Box<Handshaking>),
    Secure(Box<Session>, Handshake),
}

/// The sockets of one worker, those of some streams with TLS.
pub struct Tls {
    tcp: Epoll,
    /// By stream; none: without TLS.
    configs: Vec<Option<Secured>>,
    states: Vec<State>,
    free: Vec<u32>,
    /// Buffer for sealed records.
    out: Vec<u8>,
    /// Sessions by stream and suite.
    negotiated: Vec<(u8, SupportedCipherSuite, u64)>,
    /// True if the last receive left something that no event will report.
    has_more: bool,
}

impl Tls {
    /// TLS for the streams that have a configuration.
    pub fn new(tcp: Epoll, configs: &Configs, connections: usize) -> Self {
        Tls {
            tcp,
            configs: configs.of_thread(connections),
            states: Vec::new(),
            free: Vec::new(),
            out: Vec::with_capacity(4096),
            negotiated: Vec::new(),
            has_more: false,
        }
    }

    fn place(&mut self, stream: u8) -> u32 {
        if self.configs[stream as usize].is_none() {
            return PLAIN;
        }
        let state = State::Connecting(stream);
        match self.free.pop() {
            Some(at) => {
                self.states[at as usize] = state;
                at
            }
            None => {
                self.states.push(state);
                self.states.len() as u32 - 1
            }
        }
    }

    fn give_back(&mut self, at: u32) {
        if at != PLAIN {
            self.states[at as usize] = State::Free;
            self.free.push(at);
        }
    }

    /// Goes on with a handshake; none: it goes on.
    fn shake(&mut self, handle: Handle, ready: &mut Ready) -> Option<Result<(), NetError>> {
        let State::Shaking(stream, shaking) = &mut self.states[handle.at as usize] else {
            return None;
        };
        let (stream, has_more) = match shaking.go_on(&mut self.tcp, handle.socket) {
            Ok(Some(has_more)) => (*stream, has_more),
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        };
        let state = std::mem::replace(&mut self.states[handle.at as usize], State::Free);
        let State::Shaking(_, shaking) = state else {
            return None;
        };
        let secure = match shaking.finish(has_more) {
            Ok(secure) => secure,
            Err(error) => return Some(Err(error)),
        };
        self.note(stream, secure.suite);
        // The handshake has taken what the event announced; the end of the stream is still to be received.
        ready.readable = ready.ended || secure.has_more;
        let done = Handshake::Done {
            took_ns: secure.took,
            resumed: secure.resumed,
        };
        self.states[handle.at as usize] = State::Secure(Box::new(secure.session), done);
        Some(Ok(()))
    }

    fn note(&mut self, stream: u8, suite: SupportedCipherSuite) {
        let agreed = self
            .negotiated
            .iter_mut()
            .find(|agreed| (agreed.0, agreed.1) == (stream, suite));
        match agreed {
            Some(agreed) => agreed.2 += 1,
            None => self.negotiated.push((stream, suite, 1)),
        }
    }
}

impl Net for Tls {
    type Handle = Handle;

    fn connect(
        &mut self,
        address: &SocketAddr,
        stream: u8,
        token: u64,
    ) -> Result<Handle, NetError> {
        let socket = self.tcp.connect(address, stream, token)?;
        let at = self.place(stream);
        Ok(Handle { socket, at })
    }

    fn connect_quietly(
        &mut self,
        address: &SocketAddr,
        stream: u8,
        token: u64,
    ) -> Result<Handle, NetError> {
        if self.configs[stream as usize].is_some() {
            return self.connect(address, stream, token);
        }
        let socket = self.tcp.connect_quietly(address, stream, token)?;
        Ok(Handle { socket, at: PLAIN })
    }

    /// A secured connection has its handshake before any request, and events drive that.
    fn send_first(
        &mut self,
        handle: Handle,
        token: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, NetError> {
        if handle.at != PLAIN {
            return Ok(None);
        }
        self.tcp.send_first(handle.socket, token, bytes)
    }

    fn connected(&mut self, handle: Handle) -> Result<(), NetError> {
        self.tcp.connected(handle.socket)
    }

    fn establish(&mut self, handle: Handle, ready: &mut Ready) -> Option<Result<(), NetError>> {
        if handle.at == PLAIN {
            return self.tcp.establish(handle.socket, ready);
        }
        if let State::Connecting(stream) = self.states[handle.at as usize] {
            if let Err(error) = self.tcp.establish(handle.socket, ready)? {
                return Some(Err(error));
            }
            let secured = self.configs[stream as usize].as_ref()?;
            match Handshaking::new(secured) {
                Ok(shaking) => {
                    self.states[handle.at as usize] = State::Shaking(stream, Box::new(shaking));
                }
                Err(error) => return Some(Err(error)),
            }
        }
        self.shake(handle, ready)
    }

    fn handshake(&self, handle: Handle) -> Handshake {
        if handle.at == PLAIN {
            return Handshake::None;
        }
        match &self.states[handle.at as usize] {
            State::Free | State::Connecting(_) => Handshake::None,
            State::Shaking(..) => Handshake::Underway,
            State::Secure(_, done) => *done,
        }
    }

    #[inline]
    fn send(&mut self, handle: Handle, bytes: &[u8]) -> Io {
        if handle.at == PLAIN {
            return self.tcp.send(handle.socket, bytes);
        }
        match &mut self.states[handle.at as usize] {
            State::Secure(session, _) => {
                session.send(&mut self.tcp, handle.socket, bytes, &mut self.out)
            }
            _ => Io::Later,
        }
    }

    #[inline]
    fn receive(&mut self, handle: Handle, buffer: &mut [u8]) -> Io {
        if handle.at == PLAIN {
            let got = self.tcp.receive(handle.socket, buffer);
            self.has_more = got == Io::Bytes(buffer.len());
            return got;
        }
        match &mut self.states[handle.at as usize] {
            State::Secure(session, _) => {
                let got = session.receive(&mut self.tcp, handle.socket, &mut self.out, buffer);
                self.has_more = session.has_more();
                got
            }
            _ => Io::Later,
        }
    }

    #[inline]
    fn has_more(&self, _received: usize, _room: usize) -> bool {
        self.has_more
    }

    fn close(&mut self, handle: Handle) {
        if handle.at != PLAIN {
            if let State::Secure(session, _) = &mut self.states[handle.at as usize] {
                session.say_goodbye(&mut self.tcp, handle.socket, &mut self.out);
            }
        }
        self.give_back(handle.at);
        self.tcp.close(handle.socket);
    }

    #[inline]
    fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64) {
        self.tcp.wait(ready, timeout_ns);
    }

    fn negotiated(&self) -> Vec<Negotiated> {
        let of = |&(stream, suite, sessions): &(u8, SupportedCipherSuite, u64)| Negotiated {
            stream,
            version: suite.version().version.as_str().unwrap_or("TLS"),
            suite: suite.suite().as_str().unwrap_or("unknown"),
            sessions,
        };
        self.negotiated.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;
    use loadlens_plan::Plan;

    /// A network for stream 0 without TLS and stream 1 with it.
    fn half_secured() -> Tls {
        let stream = |name: &str| {
            json!({
                "name": name, "role": "load", "timeout_ns": 1_000_000_000u64,
                "target": {"host": "127.0.0.1", "port": 1, "authority": "127.0.0.1:1"},
                "scenarios": [{"name": name, "weight": 1,
                               "steps": [{"name": name, "method": "GET", "path": "/"}]}],
                "workload": {"kind": "closed", "users": 1, "requests": 1},
            })
        };
        let (plain, mut secured) = (stream("plain"), stream("secured"));
        secured["target"]["tls"] = json!({"insecure": true});
        let plan = json!({"schema_version": 1, "seed": 1, "streams": [plain, secured]});
        let plan: Plan = serde_json::from_value(plan).unwrap();
        let configs = configure(&plan).unwrap();
        assert!(!configs.is_plain());
        Tls::new(Epoll::new(16).unwrap(), &configs, 2)
    }

    #[test]
    fn a_plain_connection_beside_secured_ones_takes_its_request_as_it_is_begun() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut net = half_secured();
        let mut ready = Vec::with_capacity(16);

        let handle = net.connect_quietly(&address, 0, 7).unwrap();
        let (mut peer, _) = listener.accept().unwrap(); // it stands, also where the kernel took its time
        let sent = net.send_first(handle, 7, b"hello");
        net.wait(&mut ready, 0);
        let before = ready.clone();
        peer.write_all(b"back").unwrap();
        net.wait(&mut ready, 10_000_000_000);
        net.close(handle);

        assert_eq!((sent, before), (Ok(Some(5)), vec![]));
        assert!(ready[0].token == 7 && ready[0].readable && !ready[0].writable);
    }

    #[test]
    fn a_secured_connection_beside_plain_ones_sends_nothing_before_its_handshake() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut net = half_secured();
        let mut ready = Vec::with_capacity(16);

        let handle = net.connect_quietly(&address, 1, 9).unwrap();
        let sent = net.send_first(handle, 9, b"hello");
        net.wait(&mut ready, 10_000_000_000);
        let establishing = net.establish(handle, &mut ready[0]);
        let underway = net.handshake(handle);
        net.close(handle);

        assert_eq!(sent, Ok(None));
        assert!(ready[0].token == 9 && ready[0].writable);
        assert_eq!((establishing, underway), (None, Handshake::Underway));
    }
}
