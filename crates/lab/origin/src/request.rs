//! A strict reading of requests (RFC 9112, RFC 9110, RFC 3986): the origin is the judge of what a generator
//! sends, so nothing is forgiven that the grammar forbids.

/// Longest request head that is read.
pub const MAX_HEAD: usize = 64 * 1024;

/// Methods that the origin distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD: the answer has no body.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// Any other token.
    Other,
}

/// Use of the connection after the answer, as the client requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// HTTP/1.1 without a word: kept.
    Kept,
    /// HTTP/1.0 that asked for `keep-alive`: kept, and the answer has to say so.
    Asked,
    /// `Connection: close`, or HTTP/1.0 without a word.
    Close,
}

/// Framing of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A number of bytes.
    Length(u64),
    /// Chunked.
    Chunked,
}

/// A whole request head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<T> {
    /// Its method.
    pub method: Method,
    /// Path and query as sent, or what they lead to.
    pub target: T,
    /// Framing of the body.
    pub framing: Framing,
    /// Use of the connection after the answer.
    pub persistence: Persistence,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Bytes up to and with the empty line.
    pub len: usize,
}

/// Broken rule of the grammar.
pub type Fault = &'static str;

/// Result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Not yet a whole head.
    Partial,
    /// A head that keeps every rule.
    Whole(Head<&'a str>),
    /// Not a valid request, whatever follows.
    Invalid(Fault),
}

/// Reads a request head from the start of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed<'_> {
    match read(bytes) {
        Ok(Some(head)) => Parsed::Whole(head),
        Ok(None) => Parsed::Partial,
        Err(fault) => Parsed::Invalid(fault),
    }
}

fn read(bytes: &[u8]) -> Result<Option<Head<&str>>, Fault> {
    let mut rest = bytes;
    let Some(line) = next_line(&mut rest)? else {
        return within_bound(bytes);
    };
    let (method, target, is_http10) = request_line(line)?;
    let mut fields = Fields::default();
    loop {
        let Some(line) = next_line(&mut rest)? else {
            return within_bound(bytes);
        };
        if line.is_empty() {
            break;
        }
        fields.add(line)?;
    }
    let len = bytes.len() - rest.len();
    if len > MAX_HEAD {
        return Err("head longer than 64 KiB");
    }
    fields.finish(method, target, is_http10, len).map(Some)
}

fn within_bound(bytes: &[u8]) -> Result<Option<Head<&str>>, Fault> {
    if bytes.len() > MAX_HEAD {
        Err("head longer than 64 KiB")
    } else {
        Ok(None)
    }
}

/// The next line without its CRLF; none when it is not whole yet.
fn next_line<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Fault> {
    let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
        return Ok(None);
    };
    if end == 0 || rest[end - 1] != b'\r' {
        return Err("line ends without CR");
    }
    let line = &rest[..end - 1];
    *rest = &rest[end + 1..];
    if line.contains(&b'\r') {
        return Err("CR inside a line");
    }
    Ok(Some(line))
}

fn request_line(line: &[u8]) -> Result<(Method, &str, bool), Fault> {
    if line.is_empty() {
        return Err("empty line before the request");
    }
    let mut parts = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("request line is not three words with one space between");
    };
    if !is_token(method) {
        return Err("method is not a token");
    }
    let is_http10 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err("version is neither HTTP/1.1 nor HTTP/1.0"),
    };
    let method = match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"DELETE" => Method::Delete,
        _ => Method::Other,
    };
    Ok((method, origin_form(target)?, is_http10))
}

/// Path and query of a target in origin form, or in absolute form without its authority.
fn origin_form(target: &[u8]) -> Result<&str, Fault> {
    let text = std::str::from_utf8(target).map_err(|_| "target has bytes outside ASCII")?;
    let path = match text.strip_prefix("http://") {
        Some(rest) => &rest[rest.find('/').ok_or("absolute target without a path")?..],
        None => text,
    };
    if !path.starts_with('/') {
        return Err("target does not begin with /");
    }
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits = bytes.get(at + 1..at + 3).unwrap_or(b"");
                if digits.len() != 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err("target has a % without two hexadecimal digits");
                }
                at += 3;
            }
            byte if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte) => {
                at += 1;
            }
            _ => return Err("target has a character that a URI may not have"),
        }
    }
    Ok(path)
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// The fields that decide framing and persistence, gathered line by line.
#[derive(Default)]
struct Fields {
    hosts: u32,
    length: Option<u64>,
    chunked: Option<bool>,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl Fields {
    fn add(&mut self, line: &[u8]) -> Result<(), Fault> {
        if matches!(line[0], b' ' | b'\t') {
            return Err("header line begins with a space (obsolete folding)");
        }
        let colon = line
            .iter()
            .position(|&byte| byte == b':')
            .ok_or("header line without a colon")?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) {
            return Err("header name is not a token");
        }
        if value
            .iter()
            .any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
        {
            return Err("header value has a control character");
        }
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
            check_host(value)?;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() {
                return Err("more than one Content-Length");
            }
            self.length = Some(digits(value).ok_or("Content-Length is not a number")?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked.is_some() {
                return Err("more than one Transfer-Encoding");
            }
            self.chunked = Some(value.eq_ignore_ascii_case(b"chunked"));
        } else if name.eq_ignore_ascii_case(b"connection") {
            for word in value.split(|&byte| byte == b',') {
                self.close |= word.trim_ascii().eq_ignore_ascii_case(b"close");
                self.keep_alive |= word.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"expect") {
            self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        }
        Ok(())
    }

    fn finish(
        self,
        method: Method,
        target: &str,
        is_http10: bool,
        len: usize,
    ) -> Result<Head<&str>, Fault> {
        if self.hosts > 1 {
            return Err("more than one Host");
        }
        if self.hosts == 0 && !is_http10 {
            return Err("no Host");
        }
        let framing = match (self.chunked, self.length) {
            (Some(_), Some(_)) => return Err("both Transfer-Encoding and Content-Length"),
            (Some(_), None) if is_http10 => return Err("Transfer-Encoding in HTTP/1.0"),
            (Some(false), None) => return Err("Transfer-Encoding other than chunked"),
            (Some(true), None) => Framing::Chunked,
            (None, length) => Framing::Length(length.unwrap_or(0)),
        };
        let persistence = match (self.close, is_http10, self.keep_alive) {
            (true, _, _) | (false, true, false) => Persistence::Close,
            (false, true, true) => Persistence::Asked,
            (false, false, _) => Persistence::Kept,
        };
        Ok(Head {
            method,
            target,
            framing,
            persistence,
            expects_continue: self.expects_continue,
            len,
        })
    }
}

/// `uri-host [":" port]`, not empty.
fn check_host(value: &[u8]) -> Result<(), Fault> {
    let (host, port) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let end = rest
                .iter()
                .position(|&byte| byte == b']')
                .ok_or("Host has an open bracket")?;
            if !rest[..end]
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte))
            {
                return Err("Host is not an address in brackets");
            }
            (&rest[..end], &rest[end + 1..])
        }
        None => value.split_at(
            value
                .iter()
                .position(|&byte| byte == b':')
                .unwrap_or(value.len()),
        ),
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%:".contains(byte);
    if host.is_empty() || !host.iter().all(is_name) {
        return Err("Host is empty or not a host name");
    }
    match port.strip_prefix(b":") {
        None if port.is_empty() => Ok(()),
        Some(number) if number.iter().all(u8::is_ascii_digit) => Ok(()),
        _ => Err("Host has a port that is not a number"),
    }
}

fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    value.iter().try_fold(0u64, |sum, digit| {
        sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Rest of a request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyLeft {
    /// A number of bytes.
    Length(u64),
    /// A chunked body, and the position in it.
    Chunked(ChunkAt),
}

/// Part of a chunked body to which the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkAt {
    /// In a size line or the line end after a chunk; the line is read whole.
    Size,
    /// In data, so many bytes left.
    Bytes(u64),
    /// In the CRLF after data.
    AfterData,
    /// In the trailer.
    Trailer,
}

/// Progress in reading a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRead {
    /// Bytes used.
    pub used: usize,
    /// The body is whole.
    pub done: bool,
}

impl BodyLeft {
    /// Reads as much of the body as `bytes` holds; what it carries is appended to `kept` if that is wanted.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut kept: Option<&mut Vec<u8>>,
    ) -> Result<BodyRead, Fault> {
        let mut keep = |part: &[u8]| {
            if let Some(kept) = kept.as_deref_mut() {
                kept.extend_from_slice(part);
            }
        };
        match self {
            BodyLeft::Length(left) => {
                let used = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                keep(&bytes[..used]);
                *left -= used as u64;
                Ok(BodyRead {
                    used,
                    done: *left == 0,
                })
            }
            BodyLeft::Chunked(at) => read_chunks(at, bytes, &mut keep),
        }
    }
}

fn read_chunks(
    at: &mut ChunkAt,
    bytes: &[u8],
    keep: &mut dyn FnMut(&[u8]),
) -> Result<BodyRead, Fault> {
    let mut rest = bytes;
    let mut done = false;
    while !done {
        match *at {
            ChunkAt::Bytes(left) => {
                let part = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                keep(&rest[..part]);
                rest = &rest[part..];
                if part as u64 != left {
                    *at = ChunkAt::Bytes(left - part as u64);
                    break;
                }
                *at = ChunkAt::AfterData;
            }
            ChunkAt::AfterData => {
                if rest.len() < 2 {
                    break;
                }
                if !rest.starts_with(b"\r\n") {
                    return Err("no CRLF after a chunk");
                }
                rest = &rest[2..];
                *at = ChunkAt::Size;
            }
            ChunkAt::Size => {
                let Some(line) = next_line(&mut rest)? else {
                    break;
                };
                let size = line.split(|&byte| byte == b';').next().unwrap_or(b"");
                if size.is_empty() || size.len() > 15 || !size.iter().all(u8::is_ascii_hexdigit) {
                    return Err("chunk size is not hexadecimal");
                }
                let text = std::str::from_utf8(size).unwrap_or("");
                let size =
                    u64::from_str_radix(text, 16).map_err(|_| "chunk size is not hexadecimal")?;
                *at = if size == 0 {
                    ChunkAt::Trailer
                } else {
                    ChunkAt::Bytes(size)
                };
            }
            ChunkAt::Trailer => match next_line(&mut rest)? {
                None => break,
                Some(line) => done = line.is_empty(),
            },
        }
    }
    if rest.len() > MAX_HEAD {
        return Err("chunk line longer than 64 KiB");
    }
    Ok(BodyRead {
        used: bytes.len() - rest.len(),
        done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[u8] = b"POST /a?b=%41 HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\r\n";

    #[test]
    fn a_valid_head_is_read_whole_and_only_when_whole() {
        for cut in 0..GOOD.len() {
            assert_eq!(parse(&GOOD[..cut]), Parsed::Partial, "cut at {cut}");
        }

        let Parsed::Whole(head) = parse(GOOD) else {
            panic!("not whole")
        };

        assert_eq!(
            (head.method, head.target, head.len),
            (Method::Post, "/a?b=%41", GOOD.len())
        );
        assert_eq!(head.framing, Framing::Length(2));
        assert_eq!(head.persistence, Persistence::Kept);
    }

    #[test]
    fn each_broken_rule_is_named() {
        let cases: [(&str, Fault); 22] = [
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", "line ends without CR"),
            ("GET / HTTP/1.1\r\n\r\n", "no Host"),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "more than one Host"),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "Host is empty or not a host name"),
            ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "Host has a port that is not a number"),
            ("GET /a b HTTP/1.1\r\n", "request line is not three words with one space between"),
            ("GET a HTTP/1.1\r\n", "target does not begin with /"),
            ("GET /{} HTTP/1.1\r\n", "target has a character that a URI may not have"),
            ("GET /\u{e9} HTTP/1.1\r\n", "target has a character that a URI may not have"),
            ("GET /%4 HTTP/1.1\r\n", "target has a % without two hexadecimal digits"),
            ("GET / HTTP/2.0\r\n", "version is neither HTTP/1.1 nor HTTP/1.0"),
            ("G\u{7f}T / HTTP/1.1\r\n", "method is not a token"),
            ("\r\nGET / HTTP/1.1\r\n", "empty line before the request"),
            ("GET / HTTP/1.1\r\nA b: c\r\n", "header name is not a token"),
            ("GET / HTTP/1.1\r\nA: b\rc\r\n", "CR inside a line"),
            ("GET / HTTP/1.1\r\nA: b\u{1}\r\n", "header value has a control character"),
            ("GET / HTTP/1.1\r\n b\r\n", "header line begins with a space (obsolete folding)"),
            ("GET / HTTP/1.1\r\nab\r\n", "header line without a colon"),
            ("POST / HTTP/1.1\r\nContent-Length: +5\r\n", "Content-Length is not a number"),
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n", "more than one Content-Length"),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                "both Transfer-Encoding and Content-Length",
            ),
            (
                "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
                "Transfer-Encoding in HTTP/1.0",
            ),
        ];

        for (text, fault) in cases {
            assert_eq!(parse(text.as_bytes()), Parsed::Invalid(fault), "{text:?}");
        }
    }

    #[test]
    fn persistence_follows_version_and_connection_header() {
        let cases = [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Persistence::Kept),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
                Persistence::Close,
            ),
            ("GET / HTTP/1.0\r\n\r\n", Persistence::Close),
            (
                "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
                Persistence::Asked,
            ),
        ];

        for (text, expected) in cases {
            let Parsed::Whole(head) = parse(text.as_bytes()) else {
                panic!("{text:?}")
            };
            assert_eq!(head.persistence, expected, "{text:?}");
        }
    }

    #[test]
    fn a_chunked_body_is_read_the_same_however_it_is_split() {
        let body = b"3;a=b\r\nabc\r\n02\r\nde\r\n0\r\nTrailer: x\r\n\r\nNEXT";

        for cut in 0..body.len() {
            let mut left = BodyLeft::Chunked(ChunkAt::Size);
            let mut kept = Vec::new();
            let first = left.read(&body[..cut], Some(&mut kept)).unwrap();
            let used = if first.done {
                first.used
            } else {
                let second = left.read(&body[first.used..], Some(&mut kept)).unwrap();
                assert!(second.done);
                first.used + second.used
            };
            assert_eq!(
                (kept.as_slice(), used),
                (&b"abcde"[..], body.len() - 4),
                "cut at {cut}"
            );
        }
    }
}
