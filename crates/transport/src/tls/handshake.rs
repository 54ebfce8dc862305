//! The handshake of one connection, driven by rustls without buffers of its own.

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{Error, HandshakeKind};

use loadlens_sys::monotonic_ns;

use crate::{Epoll, Io, Net, NetError, Socket};

use super::config::Secured;
use super::record::Keys;
use super::session::Session;
use super::words;

/// Room for one receive: the first flight of a server with a chain of three certificates.
const RECEIVE_BYTES: usize = 8 << 10;
/// Bytes that the other side may send before its handshake is complete.
const MOST_BYTES: usize = 1 << 18;

/// A handshake under way.
pub struct Handshaking {
    connection: UnbufferedClientConnection,
    keeps_tickets: bool,
    /// Received and not taken by rustls yet.
    incoming: Vec<u8>,
    /// Made by rustls and not sent yet.
    outgoing: Vec<u8>,
    /// Time at which TCP was established.
    began: u64,
}

/// A handshake that is over.
pub struct Secure {
    /// The connection.
    pub session: Session,
    /// From TCP standing until now, in nanoseconds.
    pub took: u64,
    /// True if an earlier session was resumed.
    pub resumed: bool,
    /// Version and cipher suite.
    pub suite: rustls::SupportedCipherSuite,
    /// True if the socket may hold more than was received.
    pub has_more: bool,
}

/// Next action that rustls wants.
enum Next {
    Again,
    Flush,
    Receive,
    Done,
}

impl Handshaking {
    /// A handshake over a connection that just stood.
    pub fn new(secured: &Secured) -> Result<Handshaking, NetError> {
        let connection =
            UnbufferedClientConnection::new(secured.config.clone(), secured.name.clone())
                .map_err(|error| words::failure(&error))?;
        Ok(Handshaking {
            connection,
            keeps_tickets: secured.resumes,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            began: monotonic_ns(),
        })
    }

    /// Goes on as far as the socket allows; says whether the handshake is whole.
    pub fn go_on(&mut self, tcp: &mut Epoll, socket: Socket) -> Result<Option<bool>, NetError> {
        let mut has_more = false;
        loop {
            match self.next() {
                Ok(Next::Again) => {}
                Ok(Next::Done) => return Ok(Some(has_more)),
                Ok(Next::Flush) => {
                    if !self.flush(tcp, socket)? {
                        return Ok(None);
                    }
                }
                Ok(Next::Receive) => match self.receive(tcp, socket)? {
                    Some(filled) => has_more = filled,
                    None => return Ok(None),
                },
                Err(error) => {
                    self.say_why(tcp, socket);
                    return Err(words::failure(&error));
                }
            }
        }
    }

    fn next(&mut self) -> Result<Next, Error> {
        let UnbufferedStatus { discard, state } =
            self.connection.process_tls_records(&mut self.incoming);
        let state = match state {
            Ok(state) => state,
            Err(error) => {
                self.incoming.drain(..discard);
                return Err(error);
            }
        };
        let next = match state {
            ConnectionState::EncodeTlsData(mut data) => {
                let from = self.outgoing.len();
                if let Err(EncodeError::InsufficientSize(size)) =
                    data.encode(&mut self.outgoing[from..])
                {
                    self.outgoing.resize(from + size.required_size, 0);
                    data.encode(&mut self.outgoing[from..])
                        .map_err(|_| Error::EncryptError)?;
                }
                Next::Again
            }
            ConnectionState::TransmitTlsData(data) => {
                if self.outgoing.is_empty() {
                    data.done();
                    Next::Again
                } else {
                    Next::Flush
                }
            }
            ConnectionState::BlockedHandshake => Next::Receive,
            ConnectionState::WriteTraffic(_) => Next::Done,
            // Bytes of an answer before any request, or the end.
            _ => return Err(Error::HandshakeNotComplete),
        };
        self.incoming.drain(..discard);
        Ok(next)
    }

    /// Sends what there is; says whether all of it went.
    fn flush(&mut self, tcp: &mut Epoll, socket: Socket) -> Result<bool, NetError> {
        match tcp.send(socket, &self.outgoing) {
            Io::Bytes(sent) => {
                self.outgoing.drain(..sent);
                Ok(self.outgoing.is_empty())
            }
            Io::Broken(error) => Err(broken(error)),
            _ => Ok(false),
        }
    }

    /// Receives once; says whether there may be more, or nothing while there is nothing.
    fn receive(&mut self, tcp: &mut Epoll, socket: Socket) -> Result<Option<bool>, NetError> {
        let from = self.incoming.len();
        if from > MOST_BYTES {
            return Err(NetError::tls(words::TOO_LONG));
        }
        self.incoming.resize(from + RECEIVE_BYTES, 0);
        let got = tcp.receive(socket, &mut self.incoming[from..]);
        let count = if let Io::Bytes(count) = got { count } else { 0 };
        self.incoming.truncate(from + count);
        match got {
            Io::Bytes(count) => Ok(Some(count == RECEIVE_BYTES)),
            Io::End | Io::Cut => Err(NetError::tls(words::CLOSED)),
            Io::Broken(error) => Err(broken(error)),
            Io::Later => Ok(None),
        }
    }

    /// Sends the alert with which rustls answers a fault.
    fn say_why(&mut self, tcp: &mut Epoll, socket: Socket) {
        self.outgoing.clear();
        let UnbufferedStatus { state, .. } =
            self.connection.process_tls_records(&mut self.incoming);
        if let Ok(ConnectionState::EncodeTlsData(mut data)) = state {
            let mut alert = [0; 64];
            if let Ok(length) = data.encode(&mut alert) {
                self.outgoing.extend_from_slice(&alert[..length]);
            }
        }
        if !self.outgoing.is_empty() {
            let _ = tcp.send(socket, &self.outgoing); // the connection ends whether or not it went
        }
    }

    /// Takes the keys over.
    pub fn finish(self, has_more: bool) -> Result<Secure, NetError> {
        let resumed = self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let failure = |error: Error| words::failure(&error);
        let (secrets, kernel) = self
            .connection
            .dangerous_into_kernel_connection()
            .map_err(failure)?;
        let suite = kernel.negotiated_cipher_suite();
        let is_tls13 = suite.tls13().is_some();
        let keys = Keys::new(is_tls13, secrets.rx).zip(Keys::new(is_tls13, secrets.tx));
        let (opening, sealing) = keys.ok_or(NetError::tls(words::CIPHER))?;
        // What came behind the handshake is the beginning of a record: whole ones were taken.
        let mut partial = self.incoming;
        partial.shrink_to_fit();
        let session = Session::new(
            opening,
            sealing,
            is_tls13.then_some(kernel),
            self.keeps_tickets,
            partial,
        );
        Ok(Secure {
            session,
            took: monotonic_ns() - self.began,
            resumed,
            suite,
            has_more,
        })
    }
}

/// A connection that broke while it was being secured.
fn broken(error: NetError) -> NetError {
    NetError {
        os_error: error.os_error,
        ..NetError::tls(words::RESET)
    }
}
