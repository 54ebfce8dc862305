//! Requests that are given whole, as bytes: where they end, and what follows from them for the connection.
//!
//! They go out as they are. Read is only what decides how the answer is to be read and whether the connection may be
//! used again (RFC 9112); a bare LF ends a line too, as most servers take it (2.2).

use super::general::{content_length, elements};
use super::request::is_token;

/// Effects of a request on its answer and its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing(u8);

impl Framing {
    const HEAD: u8 = 1;
    const CLOSES: u8 = 2;

    /// Effects of a request, by its method and its Connection header.
    pub fn new(is_head: bool, closes: bool) -> Self {
        Framing(u8::from(is_head) * Self::HEAD + u8::from(closes) * Self::CLOSES)
    }

    /// True if the method is HEAD: its answer has no body.
    #[inline]
    pub fn is_head(self) -> bool {
        self.0 & Self::HEAD != 0
    }

    /// True if nothing may follow it on its connection.
    #[inline]
    pub fn closes(self) -> bool {
        self.0 & Self::CLOSES != 0
    }
}

/// Reason why bytes are not one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOne {
    /// In words.
    pub what: &'static str,
    /// The byte at which it shows.
    pub at: usize,
}

impl NotOne {
    fn new<T>(what: &'static str, at: usize) -> Result<T, NotOne> {
        Err(NotOne { what, at })
    }

    /// Line and column of the place, both from 1.
    pub fn position(&self, bytes: &[u8]) -> (usize, usize) {
        let before = &bytes[..self.at.min(bytes.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n');
        (line, column.count() + 1)
    }
}

/// Reads bytes that must be exactly one request.
pub fn one(bytes: &[u8]) -> Result<Framing, NotOne> {
    let (framing, end) = first(bytes)?;
    if end < bytes.len() {
        let what =
            "more than one request (pipelining): loadlens sends one at a time over a connection";
        return NotOne::new(what, end);
    }
    Ok(framing)
}

/// Reads the first request and says where it ends.
fn first(bytes: &[u8]) -> Result<(Framing, usize), NotOne> {
    let (line, mut at) = next_line(bytes, 0)?;
    let (is_head, is_old) = request_line(line)?;
    let (mut says_close, mut says_keep) = (false, false);
    let mut length = None;
    let mut is_chunked = false;
    loop {
        let begins = at;
        let (line, after) = next_line(bytes, at)?;
        at = after;
        if line.is_empty() {
            break;
        }
        let (name, value) = header(line, begins)?;
        if name.eq_ignore_ascii_case(b"connection") {
            for option in elements(value) {
                says_close |= option.eq_ignore_ascii_case(b"close");
                says_keep |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let bytes = content_length(value).and_then(|bytes| usize::try_from(bytes).ok());
            let Some(bytes) = bytes else {
                return NotOne::new("a Content-Length that is not a number", begins);
            };
            if length.is_some_and(|other| other != bytes) {
                return NotOne::new("two different Content-Lengths", begins);
            }
            length = Some(bytes);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
        }
    }
    let end = if is_chunked {
        chunks(bytes, at)?
    } else {
        at.saturating_add(length.unwrap_or(0))
    };
    if end > bytes.len() {
        let what = "incomplete request: its body is shorter than its Content-Length";
        return NotOne::new(what, bytes.len());
    }
    let closes = says_close || (is_old && !says_keep);
    Ok((Framing::new(is_head, closes), end))
}

/// Reads the first line; true if the method is HEAD, and true if the version is HTTP/1.0.
fn request_line(line: &[u8]) -> Result<(bool, bool), NotOne> {
    let wrong = |what| NotOne::new(what, 0);
    let mut words = line.split(|byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let version = words.next().unwrap_or_default();
    if !is_token(method) {
        return wrong("no method at the beginning, as in `GET / HTTP/1.1`");
    }
    if method == b"CONNECT" {
        return wrong("CONNECT makes a tunnel, which loadlens does not drive");
    }
    if target.is_empty() || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return wrong("no target after the method, as in `GET / HTTP/1.1`");
    }
    if words.next().is_some() || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
        return wrong("the first line does not end with HTTP/1.1 or HTTP/1.0");
    }
    Ok((method == b"HEAD", version == b"HTTP/1.0"))
}

/// Name and value of a header line.
fn header(line: &[u8], at: usize) -> Result<(&[u8], &[u8]), NotOne> {
    let colon = memchr::memchr(b':', line).unwrap_or_default();
    if !is_token(&line[..colon]) {
        return NotOne::new("a line of the head that is no `Name: value`", at);
    }
    Ok((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// The line that begins at `from`, without its end, and where the next one begins.
fn next_line(bytes: &[u8], from: usize) -> Result<(&[u8], usize), NotOne> {
    let rest = &bytes[from..];
    let Some(length) = memchr::memchr(b'\n', rest) else {
        let what = "incomplete request: its head has no end";
        return NotOne::new(what, bytes.len());
    };
    let line = &rest[..length];
    Ok((line.strip_suffix(b"\r").unwrap_or(line), from + length + 1))
}

/// End of a chunked body that begins at `at`.
fn chunks(bytes: &[u8], mut at: usize) -> Result<usize, NotOne> {
    loop {
        let begins = at;
        let (line, after) = next_line(bytes, at)?;
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(digits.trim_ascii())
            .ok()
            .and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(size) = size else {
            let what = "a chunk of the body without its size";
            return NotOne::new(what, begins);
        };
        at = after;
        if size == 0 {
            break;
        }
        at = at.saturating_add(size);
        if at >= bytes.len() {
            let what = "incomplete request: its last chunk is missing";
            return NotOne::new(what, bytes.len());
        }
        let (line, after) = next_line(bytes, at)?;
        if !line.is_empty() {
            let what = "a chunk of the body is longer than its size";
            return NotOne::new(what, at);
        }
        at = after;
    }
    loop {
        let (line, after) = next_line(bytes, at)?;
        at = after;
        if line.is_empty() {
            return Ok(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_head_has_no_body_and_the_end_of_a_connection_is_heeded() {
        // RFC 9112 9.3: 1.1 keeps unless it says close, 1.0 closes unless it says keep-alive.
        let cases: [(&[u8], bool, bool); 8] = [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, false),
            (b"HEAD /a?b HTTP/1.1\r\nHost: a\r\n\r\n", true, false),
            (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false, true),
            (
                b"GET / HTTP/1.1\r\nconnection: te, Close\r\n\r\n",
                false,
                true,
            ),
            (b"HEAD / HTTP/1.0\r\n\r\n", true, true),
            (
                b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
                false,
                false,
            ),
            (b"GET / HTTP/1.1\n\n", false, false),
            (
                b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\r\n\r",
                false,
                false,
            ),
        ];
        for (bytes, is_head, closes) in cases {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(one(bytes), Ok(Framing::new(is_head, closes)), "{text}");
        }
    }

    #[test]
    fn a_chunked_body_ends_with_its_trailers() {
        let request = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n";

        assert_eq!(one(request), Ok(Framing::default()));
        for cut in 1..request.len() {
            assert!(one(&request[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_is_not_one_request_is_named_with_its_place() {
        let cases: [(&[u8], &str, (usize, usize)); 9] = [
            (b"", "incomplete request: its head has no end", (1, 1)),
            (b"hello", "incomplete request: its head has no end", (1, 6)),
            (b"hello\n\n", "no target after the method, as in `GET / HTTP/1.1`", (1, 1)),
            (b"GET / HTTP/2\r\n\r\n", "the first line does not end with HTTP/1.1 or HTTP/1.0", (1, 1)),
            (b"GET / HTTP/1.1\r\nA: b\r\nno colon\r\n\r\n", "a line of the head that is no `Name: value`", (3, 1)),
            (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", "incomplete request: its body is shorter than its Content-Length", (4, 4)),
            (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "a Content-Length that is not a number", (2, 1)),
            (b"CONNECT a:1 HTTP/1.1\r\n\r\n", "CONNECT makes a tunnel, which loadlens does not drive", (1, 1)),
            (
                b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
                "more than one request (pipelining): loadlens sends one at a time over a connection",
                (3, 1),
            ),
        ];
        for (bytes, what, position) in cases {
            let fault = one(bytes).unwrap_err();
            assert_eq!((fault.what, fault.position(bytes)), (what, position));
        }
    }
}
