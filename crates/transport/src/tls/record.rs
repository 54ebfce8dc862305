//! Records of a connection whose handshake is done: sealed into a shared buffer, opened where they lie.
//!
//! rustls makes the handshake and hands over the traffic keys, as it does for the kernel's TLS; its own record layer
//! allocates and copies for each record, which is a third of a small request's cost. RFC 8446 5.2 and 5.3, RFC 5288
//! (AES-GCM for TLS 1.2), RFC 7905 (ChaCha20-Poly1305 for TLS 1.2).

use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, AES_128_GCM, AES_256_GCM};
use rustls::ConnectionTrafficSecrets;

/// Bytes of a record's head.
pub const HEAD: usize = 5;
/// Plain bytes of a record at most.
pub const PLAIN_BYTES: usize = 1 << 14;
/// Bytes behind a record's head at most: what TLS 1.2 allows, TLS 1.3 allows fewer.
pub const SEALED_BYTES: usize = PLAIN_BYTES + 2048;
const TAG: usize = 16;
/// Bytes of the nonce that TLS 1.2 writes into each AES-GCM record.
const EXPLICIT: usize = 8;

/// Record types.
pub mod kind {
    /// Change of cipher.
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    /// Alert.
    pub const ALERT: u8 = 21;
    /// Handshake message.
    pub const HANDSHAKE: u8 = 22;
    /// Application data.
    pub const DATA: u8 = 23;
}

/// Reason why a record cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// It is too short, too long, or its tag does not fit.
    Bad,
    /// Its type is not one that stands at this place.
    Kind,
}

/// Layout of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// TLS 1.3: the type is sealed with the content.
    Tls13,
    /// TLS 1.2, AES-GCM: a part of the nonce stands before the content.
    Tls12Explicit,
    /// TLS 1.2, ChaCha20-Poly1305.
    Tls12,
}

/// Key, nonce and number of the next record of one direction.
pub struct Keys {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    seq: u64,
    layout: Layout,
}

impl Keys {
    /// From what rustls hands over; none for a cipher that is not known here.
    pub fn new(is_tls13: bool, (seq, secrets): (u64, ConnectionTrafficSecrets)) -> Option<Keys> {
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&aead::CHACHA20_POLY1305, key, iv)
            }
            _ => return None,
        };
        let layout = match (is_tls13, algorithm == &aead::CHACHA20_POLY1305) {
            (true, _) => Layout::Tls13,
            (false, true) => Layout::Tls12,
            (false, false) => Layout::Tls12Explicit,
        };
        Some(Keys {
            key: LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?),
            iv: iv.as_ref().try_into().ok()?,
            seq,
            layout,
        })
    }

    /// Number of records that these keys have processed.
    pub fn records(&self) -> u64 {
        self.seq
    }

    fn nonce(&self) -> [u8; aead::NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, seq) in nonce[4..].iter_mut().zip(self.seq.to_be_bytes()) {
            *byte ^= seq;
        }
        nonce
    }

    /// Additional data that TLS 1.2 authenticates with the content.
    fn aad12(&self, kind: u8, length: usize) -> [u8; 13] {
        let mut aad = [0; 13];
        aad[..8].copy_from_slice(&self.seq.to_be_bytes());
        aad[8..11].copy_from_slice(&[kind, 3, 3]);
        aad[11..].copy_from_slice(&(length as u16).to_be_bytes());
        aad
    }

    /// Appends one record of `plain`, which is at most [`PLAIN_BYTES`] long; says whether that went well.
    #[inline]
    pub fn seal(&mut self, kind: u8, plain: &[u8], out: &mut Vec<u8>) -> bool {
        let nonce = self.nonce();
        let from = out.len();
        let (shown, before, after) = match self.layout {
            Layout::Tls13 => (kind::DATA, 0, 1),
            Layout::Tls12Explicit => (kind, EXPLICIT, 0),
            Layout::Tls12 => (kind, 0, 0),
        };
        let length = (before + plain.len() + after + TAG) as u16;
        let [high, low] = length.to_be_bytes();
        let head = [shown, 3, 3, high, low];
        out.extend_from_slice(&head);
        out.extend_from_slice(&nonce[aead::NONCE_LEN - before..]);
        out.extend_from_slice(plain);
        let content = from + HEAD + before;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = if self.layout == Layout::Tls13 {
            out.push(kind);
            let content = &mut out[content..];
            self.key
                .seal_in_place_separate_tag(nonce, Aad::from(head), content)
        } else {
            let aad = Aad::from(self.aad12(kind, plain.len()));
            self.key
                .seal_in_place_separate_tag(nonce, aad, &mut out[content..])
        };
        self.seq += 1;
        match sealed {
            Ok(tag) => out.extend_from_slice(tag.as_ref()),
            Err(_) => out.truncate(from),
        }
        out.len() > from
    }

    /// Opens the whole record at `buffer[at..end]` and moves its content to `buffer[to..]`, where `to` is at most `at`;
    /// returns its type and length.
    #[inline]
    pub fn open(
        &mut self,
        buffer: &mut [u8],
        to: usize,
        at: usize,
        end: usize,
    ) -> Result<(u8, usize), Unopened> {
        let mut head = [0; HEAD];
        head.copy_from_slice(&buffer[at..at + HEAD]);
        let is_tls13 = self.layout == Layout::Tls13;
        if is_tls13 && head[0] != kind::DATA {
            return Err(Unopened::Kind);
        }
        let before = if self.layout == Layout::Tls12Explicit {
            EXPLICIT
        } else {
            0
        };
        let content = at + HEAD + before;
        let length = end.checked_sub(content + TAG).ok_or(Unopened::Bad)?;
        let mut nonce = self.nonce();
        nonce[aead::NONCE_LEN - before..].copy_from_slice(&buffer[at + HEAD..content]);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = &mut buffer[to..end];
        let opened = if is_tls13 {
            self.key
                .open_within(nonce, Aad::from(head), sealed, content - to..)
        } else {
            let aad = Aad::from(self.aad12(head[0], length));
            self.key.open_within(nonce, aad, sealed, content - to..)
        };
        let plain = opened.map_err(|_| Unopened::Bad)?;
        self.seq += 1;
        let (kind, length) = if is_tls13 {
            // Zeros may follow the type, to hide the length.
            let last = plain.iter().rposition(|byte| *byte != 0);
            let last = last.ok_or(Unopened::Kind)?;
            (plain[last], last)
        } else {
            (head[0], plain.len())
        };
        if length > PLAIN_BYTES {
            return Err(Unopened::Bad);
        }
        Ok((kind, length))
    }
}
