//! One connection whose handshake is done: bytes in, bytes out, and the control records of the other side.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;

use crate::{Epoll, Io, Net, NetError, Socket};

use super::record::{kind, Keys, Unopened, HEAD, PLAIN_BYTES, SEALED_BYTES};
use super::words;

/// Receives in one call that give nothing but whole records of TLS itself: a server that goes on so keeps us from the
/// others. Parts of a record do not count: a server may send byte by byte.
const CONTROL_AT_ONCE: u32 = 64;
/// Records that are sealed before they are sent.
const RECORDS_AT_ONCE: usize = 4;
/// AES-GCM keys are changed after so many records (RFC 8446 5.5 and RFC 9001 B.1 ask for at most 2^24.5 and 2^23).
const RECORDS_OF_A_KEY: u64 = 1 << 23;
/// The longest handshake message that is put together after the handshake: a session ticket.
const MESSAGE_BYTES: usize = 1 << 16 | 0xff;
/// Unsent bytes beyond which key updates are not answered: who asks for more does not read.
const UNSENT_BYTES: usize = 1 << 15;

const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
const CLOSE_NOTIFY: [u8; 2] = [1, 0];
/// Alerts after which a connection goes on: `user_canceled`, which says nothing, and `no_renegotiation`.
const GOES_ON: [u8; 2] = [90, 100];

/// The end of what the other side sends.
#[derive(Clone, Copy)]
enum End {
    /// It said so.
    Notified,
    /// TLS is broken.
    Fault(NetError),
}

/// One secured connection.
pub struct Session {
    opening: Keys,
    sealing: Keys,
    /// Makes the next keys and keeps tickets; TLS 1.2 has neither after its handshake.
    kernel: Option<KernelConnection<ClientConnectionData>>,
    keeps_tickets: bool,
    has_more: bool,
    end: Option<End>,
    /// Received, and not a whole record yet.
    partial: Vec<u8>,
    /// The beginning of a handshake message.
    message: Vec<u8>,
    /// Sealed and not sent yet.
    unsent: Vec<u8>,
    /// Bytes of the request that `unsent` holds and that were not reported as sent.
    covered: usize,
}

impl Session {
    /// A session with these keys; `partial` is what came behind the handshake.
    pub fn new(
        opening: Keys,
        sealing: Keys,
        kernel: Option<KernelConnection<ClientConnectionData>>,
        keeps_tickets: bool,
        partial: Vec<u8>,
    ) -> Session {
        Session {
            opening,
            sealing,
            kernel,
            keeps_tickets,
            has_more: false,
            end: None,
            partial,
            message: Vec::new(),
            unsent: Vec::new(),
            covered: 0,
        }
    }

    /// True if the last receive left something that no event will report.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Receives into `buffer` and opens there.
    #[inline]
    pub fn receive(
        &mut self,
        tcp: &mut Epoll,
        socket: Socket,
        out: &mut Vec<u8>,
        buffer: &mut [u8],
    ) -> Io {
        // Records of TLS itself hand out no bytes, and no further event may report what lies behind them, above all
        // an end: the socket is read until it has no more.
        let mut controls = 0;
        while controls < CONTROL_AT_ONCE {
            match self.end {
                None => {}
                Some(End::Notified) => return Io::End,
                Some(End::Fault(error)) => return Io::Broken(error),
            }
            let kept = self.partial.len();
            buffer[..kept].copy_from_slice(&self.partial);
            let filled = match tcp.receive(socket, &mut buffer[kept..]) {
                Io::Bytes(received) => kept + received,
                Io::End => return Io::Cut,
                other => return other,
            };
            let plain = self.open_records(tcp, socket, out, &mut buffer[..filled]);
            self.has_more = filled == buffer.len() || self.end.is_some();
            if plain > 0 {
                return Io::Bytes(plain);
            }
            controls += u32::from(self.partial.len() < filled);
        }
        Io::Broken(NetError::tls(words::WRONG_RECORD))
    }

    /// Opens every whole record and moves their content together; returns its length.
    #[inline]
    fn open_records(
        &mut self,
        tcp: &mut Epoll,
        socket: Socket,
        out: &mut Vec<u8>,
        buffer: &mut [u8],
    ) -> usize {
        let (mut at, mut to) = (0, 0);
        while buffer.len() - at >= HEAD && self.end.is_none() {
            let length = usize::from(u16::from_be_bytes([buffer[at + 3], buffer[at + 4]]));
            let is_record = (kind::CHANGE_CIPHER_SPEC..=kind::DATA).contains(&buffer[at]);
            if !is_record || length > SEALED_BYTES {
                self.break_off(words::NOT_A_RECORD);
                break;
            }
            let end = at + HEAD + length;
            if end > buffer.len() {
                break;
            }
            match self.opening.open(buffer, to, at, end) {
                Ok((kind::DATA, length)) => to += length,
                Ok((kind, length)) => {
                    self.take_control(tcp, socket, out, kind, &buffer[to..to + length]);
                }
                Err(Unopened::Bad) => self.break_off(words::BAD_RECORD),
                Err(Unopened::Kind) => self.break_off(words::WRONG_RECORD),
            }
            at = end;
        }
        let rest = &buffer[at..];
        if rest.is_empty() {
            if self.partial.capacity() > 0 {
                self.partial = Vec::new();
            }
        } else {
            self.partial.clear();
            self.partial.extend_from_slice(rest);
        }
        to
    }

    #[cold]
    fn break_off(&mut self, why: &'static str) {
        self.end = Some(End::Fault(NetError::tls(why)));
    }

    /// An alert or a handshake message.
    #[cold]
    fn take_control(
        &mut self,
        tcp: &mut Epoll,
        socket: Socket,
        out: &mut Vec<u8>,
        kind: u8,
        content: &[u8],
    ) {
        match (kind, content) {
            (kind::ALERT, &[_, 0]) => self.end = Some(End::Notified),
            (kind::ALERT, &[_, alert]) if GOES_ON.contains(&alert) => {}
            (kind::ALERT, &[_, alert]) => self.break_off(words::alert(alert.into())),
            (kind::HANDSHAKE, _) => self.take_messages(tcp, socket, out, content),
            _ => self.break_off(words::WRONG_RECORD),
        }
    }

    fn take_messages(
        &mut self,
        tcp: &mut Epoll,
        socket: Socket,
        out: &mut Vec<u8>,
        content: &[u8],
    ) {
        let mut messages = std::mem::take(&mut self.message);
        messages.extend_from_slice(content);
        let mut rest = &messages[..];
        while let &[kind, a, b, c, ref more @ ..] = rest {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MESSAGE_BYTES {
                return self.break_off(words::WRONG_MESSAGE);
            }
            let Some((message, behind)) = more.split_at_checked(length) else {
                break;
            };
            self.take_message(tcp, socket, out, kind, message, behind.is_empty());
            rest = behind;
        }
        if !rest.is_empty() {
            self.message = rest.to_vec();
        }
    }

    fn take_message(
        &mut self,
        tcp: &mut Epoll,
        socket: Socket,
        out: &mut Vec<u8>,
        kind: u8,
        message: &[u8],
        is_last: bool,
    ) {
        match (kind, message, self.kernel.as_mut()) {
            // A server may ask for a renegotiation and must accept that none takes place (RFC 5246 7.4.1.1).
            (HELLO_REQUEST, [], None) => {}
            (NEW_SESSION_TICKET, ticket, Some(kernel)) => {
                if self.keeps_tickets && kernel.handle_new_session_ticket(ticket).is_err() {
                    self.break_off(words::WRONG_MESSAGE);
                }
            }
            // The record that follows has other keys, so nothing may follow in this one.
            (KEY_UPDATE, &[asked @ (0 | 1)], Some(kernel)) if is_last => {
                match kernel
                    .update_rx_secret()
                    .ok()
                    .and_then(|secrets| Keys::new(true, secrets))
                {
                    Some(keys) => self.opening = keys,
                    None => return self.break_off(words::WRONG_MESSAGE),
                }
                if asked == 1 && self.unsent.len() < UNSENT_BYTES {
                    out.clear();
                    self.change_sealing(out);
                    self.put(tcp, socket, out);
                }
            }
            _ => self.break_off(words::WRONG_MESSAGE),
        }
    }

    /// Seals a key update and changes to the next keys.
    #[cold]
    fn change_sealing(&mut self, out: &mut Vec<u8>) {
        let Some(kernel) = self.kernel.as_mut() else {
            return;
        };
        let sealed = self
            .sealing
            .seal(kind::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0], out);
        let next = kernel.update_tx_secret().ok();
        match next.and_then(|secrets| Keys::new(true, secrets)) {
            Some(keys) if sealed => self.sealing = keys,
            _ => self.break_off(words::WRONG_MESSAGE),
        }
    }

    /// Sends bytes that are no part of a request, or keeps them for later.
    fn put(&mut self, tcp: &mut Epoll, socket: Socket, bytes: &[u8]) {
        let sent = match self.unsent.is_empty().then(|| tcp.send(socket, bytes)) {
            Some(Io::Bytes(sent)) => sent,
            _ => 0, // a break is seen by the next receive
        };
        self.unsent.extend_from_slice(&bytes[sent..]);
    }

    /// Seals and sends; what is not reported as sent must be given again.
    #[inline]
    pub fn send(&mut self, tcp: &mut Epoll, socket: Socket, bytes: &[u8], out: &mut Vec<u8>) -> Io {
        if !self.unsent.is_empty() {
            match self.flush(tcp, socket) {
                Io::Bytes(_) if self.covered > 0 => {
                    return Io::Bytes(std::mem::take(&mut self.covered));
                }
                Io::Bytes(_) => {}
                other => return other,
            }
        }
        let mut reported = 0;
        for part in bytes.chunks(PLAIN_BYTES * RECORDS_AT_ONCE) {
            out.clear();
            if self.sealing.records() >= RECORDS_OF_A_KEY && self.kernel.is_some() {
                self.change_sealing(out);
            }
            let before = out.len();
            for record in part.chunks(PLAIN_BYTES) {
                if !self.sealing.seal(kind::DATA, record, out) {
                    return Io::Broken(NetError::tls(words::BAD_RECORD));
                }
            }
            let sent = match tcp.send(socket, out) {
                Io::Bytes(sent) if sent == out.len() => {
                    reported += part.len();
                    continue;
                }
                Io::Bytes(sent) => sent,
                Io::Later => 0,
                other => return other,
            };
            return self.keep_unsent(part, &out[..], before, sent, reported);
        }
        Io::Bytes(reported)
    }

    /// Keeps what did not fit into the socket; reports the records that went whole.
    #[cold]
    fn keep_unsent(
        &mut self,
        part: &[u8],
        sealed: &[u8],
        before: usize,
        sent: usize,
        reported: usize,
    ) -> Io {
        let records = part.len().div_ceil(PLAIN_BYTES);
        // Records of one request differ in length in the last one only.
        let last = part.len() - (records - 1) * PLAIN_BYTES;
        let overhead = (sealed.len() - before - part.len()) / records;
        let whole = sent.saturating_sub(before) / (PLAIN_BYTES + overhead);
        let whole = (whole * PLAIN_BYTES).min(part.len() - last);
        self.unsent.extend_from_slice(&sealed[sent..]);
        self.covered = part.len() - whole;
        match reported + whole {
            0 => Io::Later,
            sent => Io::Bytes(sent),
        }
    }

    /// Sends what was kept; `Bytes` when all of it went.
    #[cold]
    fn flush(&mut self, tcp: &mut Epoll, socket: Socket) -> Io {
        match tcp.send(socket, &self.unsent) {
            Io::Bytes(sent) if sent == self.unsent.len() => {
                self.unsent = Vec::new();
                Io::Bytes(sent)
            }
            Io::Bytes(sent) => {
                self.unsent.drain(..sent);
                Io::Later
            }
            other => other,
        }
    }

    /// Sends a close alert, unless part of a record is still unsent.
    pub fn say_goodbye(&mut self, tcp: &mut Epoll, socket: Socket, out: &mut Vec<u8>) {
        if !self.unsent.is_empty() || matches!(self.end, Some(End::Fault(_))) {
            return;
        }
        out.clear();
        if self.sealing.seal(kind::ALERT, &CLOSE_NOTIFY, out) {
            let _ = tcp.send(socket, out); // the socket is closed whether or not it went
        }
    }
}
