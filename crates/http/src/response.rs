//! The head of a response: status, length rule, whether the connection may be used again.
//!
//! [`parse_head`] has two ways through: a fast one for the heads that nearly every server sends, and the
//! `general` one, which decides everything the fast one does not recognise. Both give the same answer wherever the
//! fast one gives any (tests compare them with each other, with httparse and with a literal reading of the RFC).
//!
//! Where RFC 9112 leaves a choice:
//! - a lone LF ends a line of the head (2.2 MAY); a lone CR never does, and is malformed (2.2 MUST);
//! - the space after the status code may be missing (4 MAY), as some servers leave it out;
//! - a folded header line is read as if it were one (5.2 MUST for a user agent);
//! - white space before the colon, a line without a colon, NUL and other control bytes are malformed
//!   (5.1; RFC 9110 5.5 allows rejecting), and so is a blank or an indented line before the first header (2.2);
//! - a status outside 100 to 599 is malformed (RFC 9110 15 calls it invalid; it lets a browser show it as 5xx);
//! - HTTP/1.2 and above is read as 1.1 (RFC 9110 2.5); HTTP/0.9, 2 and 3 are malformed.

use loadlens_base::Outcome;

pub use super::body::{BodyDecoder, Decoded, Truncated};
use super::general;
pub use super::general::{content_length, elements, header, headers};

/// The longest head that is read, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The most header lines that are read.
pub const MAX_HEADERS: usize = 256;

/// Rule that ends the body (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// It has so many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// It ends with the connection.
    UntilClose,
}

/// Content of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// 100 to 599.
    pub status: u16,
    /// Rule that ends the body.
    pub framing: Framing,
    /// True if the server keeps the connection after this response.
    pub keep_alive: bool,
    /// Bytes of the head, the blank line included.
    pub len: usize,
}

impl Head {
    /// True if this is an interim response (RFC 9110 15.2): the final one follows on the same connection.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// Reason why an answer cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// It breaks RFC 9112; the text says how.
    Malformed(&'static str),
    /// It is over one of our bounds; the text says which.
    Limit(&'static str),
}

impl Violation {
    /// The outcome of the request that was answered so.
    pub fn outcome(self) -> Outcome {
        match self {
            Violation::Malformed(_) => Outcome::Malformed,
            Violation::Limit(_) => Outcome::Limit,
        }
    }

    /// Fault in words.
    pub fn what(self) -> &'static str {
        match self {
            Violation::Malformed(what) | Violation::Limit(what) => what,
        }
    }
}

/// Result of [`parse_head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadResult {
    /// The head goes on after these bytes.
    Partial,
    /// The whole head.
    Complete(Head),
    /// The connection cannot be used any more.
    Invalid(Violation),
}

/// Reads the head at the beginning of `buf`.
///
/// `buf` begins with the first byte of the response and may hold more than the head. Feeding a response in
/// pieces (always from its first byte) ends in the same answer as feeding it whole. An interim response
/// comes back as complete, with a status below 200 and no body: skip `len` bytes and call again. 101 is
/// malformed, because no request asks for it.
///
/// While a head is partial, it is enough to call again when a line feed has come or `buf` has reached
/// [`MAX_HEAD_BYTES`]: so a head that comes byte by byte is not read anew for each of them.
#[inline]
pub fn parse_head(buf: &[u8], request_was_head: bool) -> HeadResult {
    match fast(buf, request_was_head) {
        Some(head) => HeadResult::Complete(head),
        None => general::parse(buf, request_was_head),
    }
}

/// [`parse_head`] without its fast way: the same, only slower; for tests that compare the two.
pub fn parse_head_generally(buf: &[u8], request_was_head: bool) -> HeadResult {
    general::parse(buf, request_was_head)
}

/// Bytes that may stand in a field name (RFC 9110 5.6.2).
pub(super) const TOKEN: [bool; 256] = {
    const MARKS: &[u8] = b"!#$%&'*+-.^_`|~";
    let mut table = [false; 256];
    let mut at = 0;
    while at < MARKS.len() {
        table[MARKS[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0u8;
    while byte < 0x80 {
        table[byte as usize] |= byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// The common head, or none: HTTP/1.1, CR LF throughout, plain values where they matter.
///
/// Every byte is still looked at: names are tokens, and the only control bytes are the line ends and tabs.
#[inline]
fn fast(buf: &[u8], request_was_head: bool) -> Option<Head> {
    if buf.len() < 19 || buf[..9] != *b"HTTP/1.1 " || buf[12] != b' ' {
        return None;
    }
    let digit = |at: usize| u16::from(buf[at].wrapping_sub(b'0'));
    let (hundreds, tens, ones) = (digit(9), digit(10), digit(11));
    if !(2..=5).contains(&hundreds) || tens > 9 || ones > 9 {
        return None;
    }
    let window = &buf[..buf.len().min(MAX_HEAD_BYTES)];
    let mut at = 13 + memchr::memchr(b'\n', &window[13..])? + 1;
    if window[at - 2] != b'\r' {
        return None;
    }
    let mut lines = 1;
    let mut fields = Said::default();
    loop {
        let rest = &window[at..];
        if *rest.first()? == b'\r' {
            break;
        }
        let colon = rest.iter().position(|byte| !TOKEN[*byte as usize])?;
        let end = colon + memchr::memchr(b'\n', &rest[colon..])?;
        if rest[colon] != b':' || colon == 0 || rest[end - 1] != b'\r' || lines > MAX_HEADERS {
            return None;
        }
        // Length decides first: nearly every header is passed over by one comparison.
        if matches!(colon, 10 | 14 | 17) && !fields.note(&rest[..colon], &rest[colon + 1..end]) {
            return None;
        }
        at += end + 1;
        lines += 1;
    }
    let len = at + 2;
    if window.len() < len
        || window[len - 1] != b'\n'
        || has_stray_control(&window[..len], lines + 1)
    {
        return None;
    }
    let status = hundreds * 100 + tens * 10 + ones;
    let framing = if request_was_head || status == 204 || status == 304 {
        Framing::None
    } else {
        fields.framing()
    };
    Some(Head {
        status,
        framing,
        keep_alive: !fields.close && framing != Framing::UntilClose,
        len,
    })
}

/// True if `head` has control bytes other than tabs and `lines` line ends.
///
/// The caller has found every LF, with a CR before it, so two a line leave none over.
#[inline]
fn has_stray_control(head: &[u8], lines: usize) -> bool {
    let mut controls = 0usize;
    for block in head.chunks(255) {
        // Summed in a byte, so that the loop becomes vector code.
        let mut sum = 0u8;
        for byte in block {
            sum += u8::from((*byte < 0x20 && *byte != b'\t') || *byte == 0x7f);
        }
        controls += usize::from(sum);
    }
    controls != 2 * lines
}

/// Values of the headers that matter, as far as the fast way understands them.
#[derive(Default)]
struct Said {
    length: Option<u64>,
    chunked: bool,
    close: bool,
}

impl Said {
    /// Notes one header; false: leave this head to the general way.
    fn note(&mut self, name: &[u8], value: &[u8]) -> bool {
        let value = value.trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() || self.chunked || value.is_empty() || value.len() > 18 {
                return false;
            }
            let mut length = 0;
            for byte in value {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return false;
                }
                length = length * 10 + u64::from(digit);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"connection") {
            if value.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if !value.eq_ignore_ascii_case(b"keep-alive") {
                return false;
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || self.length.is_some() || !value.eq_ignore_ascii_case(b"chunked") {
                return false;
            }
            self.chunked = true;
        }
        true
    }

    fn framing(&self) -> Framing {
        match (self.chunked, self.length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::UntilClose,
        }
    }
}

#[cfg(test)]
mod tests;
