//! As much of HTTP/1.1 as a specimen speaks: requests with a Content-Length or none, answers with one.

use std::fmt::Write as _;

/// A request that has come whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'bytes> {
    /// Without its query.
    pub path: &'bytes str,
    /// Bytes of head and body.
    pub length: usize,
    /// True if the client keeps the connection.
    pub keeps: bool,
}

/// Beginning of the bytes that a client sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<'bytes> {
    /// A request.
    Whole(Request<'bytes>),
    /// The beginning of one.
    Part,
    /// Nothing that we understand.
    Bad,
}

const LONGEST_HEAD: usize = 64 * 1024;

/// Reads one request.
pub fn read(bytes: &[u8]) -> Read<'_> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() > LONGEST_HEAD {
            Read::Bad
        } else {
            Read::Part
        };
    };
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else {
        return Read::Bad;
    };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or("").split(' ');
    let (Some(_), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Read::Bad;
    };
    if !target.starts_with('/') || !version.starts_with("HTTP/1.") {
        return Read::Bad;
    }
    let (mut body, mut keeps) = (0usize, version == "HTTP/1.1");
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Read::Bad;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let Ok(length) = value.parse() else {
                return Read::Bad;
            };
            body = length;
        } else if name.eq_ignore_ascii_case("connection") {
            keeps = value.eq_ignore_ascii_case("keep-alive")
                || keeps && !value.eq_ignore_ascii_case("close");
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Read::Bad;
        }
    }
    let length = (end + 4).saturating_add(body);
    if length > bytes.len() {
        return Read::Part;
    }
    Read::Whole(Request {
        path: target.split('?').next().unwrap_or(target),
        length,
        keeps,
    })
}

/// Answer to a request.
pub struct Answer<'a> {
    /// Status in the head.
    pub status: u16,
    /// Text of the body; none: filler of the size below.
    pub words: Option<&'a str>,
    /// Bytes of filler.
    pub bytes: usize,
    /// True if the connection ends with it.
    pub closes: bool,
    /// Name of the backend that answers.
    pub backend: Option<&'a str>,
}

/// Writes an answer; returns how much of it is head.
pub fn write(answer: &Answer<'_>, out: &mut Vec<u8>) -> usize {
    let length = answer.words.map_or(answer.bytes, str::len);
    let mut head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n",
        answer.status,
        reason(answer.status)
    );
    if answer.status == 429 {
        head.push_str("Retry-After: 1\r\n");
    }
    if let Some(name) = answer.backend {
        let _ = write!(head, "X-Backend: {name}\r\n");
    }
    if answer.closes {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    out.extend_from_slice(head.as_bytes());
    match answer.words {
        Some(words) => out.extend_from_slice(words.as_bytes()),
        None => out.resize(out.len() + length, b'x'),
    }
    head.len()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_last_byte() {
        let bytes = b"POST /work?a=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";

        assert_eq!(read(&bytes[..bytes.len() - 1]), Read::Part);
        assert_eq!(read(&bytes[..30]), Read::Part);
        let Read::Whole(request) = read(bytes) else {
            panic!("it is whole");
        };
        assert_eq!(
            (request.path, request.length, request.keeps),
            ("/work", bytes.len(), true)
        );
    }

    #[test]
    fn connections_end_as_the_version_and_the_client_say() {
        let keeps = |text: &str| match read(text.as_bytes()) {
            Read::Whole(request) => request.keeps,
            other => panic!("{other:?}"),
        };

        assert!(keeps("GET / HTTP/1.1\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.0\r\n\r\n"));
        assert!(keeps("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in [
            "GET /\r\n\r\n",
            "GET a HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(read(text.as_bytes()), Read::Bad, "{text:?}");
        }
    }

    #[test]
    fn an_answer_says_its_length_and_its_end() {
        let mut out = Vec::new();

        let head = write(
            &Answer {
                status: 429,
                words: Some("later"),
                bytes: 9,
                closes: true,
                backend: Some("b"),
            },
            &mut out,
        );

        let text = String::from_utf8(out).unwrap();
        assert_eq!(&text[head..], "later");
        for line in [
            "429 Too",
            "Content-Length: 5",
            "Retry-After: 1",
            "X-Backend: b",
            "Connection: close",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
