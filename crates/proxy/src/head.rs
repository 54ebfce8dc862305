//! Heads: what the proxy has to know of a request, and heads passed on byte for byte but for the fields that
//! belong to one connection alone (RFC 9110 7.6.1).

use loadlens_http::response::{content_length, elements, Framing, MAX_HEAD_BYTES};

/// The parts of a request that the proxy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Bytes of the head, the blank line included.
    pub len: usize,
    pub is_head: bool,
    pub is_http10: bool,
    pub framing: Framing,
    /// True if the client keeps its connection.
    pub keeps: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects: bool,
}

impl Request {
    /// In place of a request before the first one.
    pub const NONE: Request = Request {
        len: 0,
        is_head: false,
        is_http10: false,
        framing: Framing::None,
        keeps: true,
        expects: false,
    };
}

/// State of the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Partial,
    Whole(Request),
    /// Not a request whose end can be found; the reason.
    Invalid(&'static str),
}

/// The lines of a head with their line ends; stops before the first one that is not whole.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest)? + 1;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(line)
    }
}

fn is_blank(line: &[u8]) -> bool {
    line == b"\r\n" || line == b"\n"
}

fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Reads the head of a request. Only what decides the ends of requests is judged: the service judges the rest.
pub(crate) fn read(bytes: &[u8]) -> Read {
    let mut lines = Lines { rest: bytes };
    let Some(first) = lines.next() else {
        return unfinished(bytes);
    };
    let mut words = first.trim_ascii_end().splitn(3, |&byte| byte == b' ');
    let (Some(method), Some(_), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Read::Invalid("the request line is not three words");
    };
    let is_http10 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Read::Invalid("neither HTTP/1.1 nor HTTP/1.0"),
    };
    let mut fields = Said::default();
    loop {
        let Some(line) = lines.next() else {
            return unfinished(bytes);
        };
        if is_blank(line) {
            break;
        }
        if let Err(why) = fields.note(line) {
            return Read::Invalid(why);
        }
    }
    let framing = match fields.framing(is_http10) {
        Ok(framing) => framing,
        Err(why) => return Read::Invalid(why),
    };
    Read::Whole(Request {
        len: bytes.len() - lines.rest.len(),
        is_head: method == b"HEAD",
        is_http10,
        framing,
        keeps: !fields.close && (!is_http10 || fields.keep_alive),
        expects: fields.expects,
    })
}

fn unfinished(bytes: &[u8]) -> Read {
    if bytes.len() > MAX_HEAD_BYTES {
        Read::Invalid("a head over 64 KiB")
    } else {
        Read::Partial
    }
}

/// Values of the fields for framing and connection.
#[derive(Default)]
struct Said {
    length: Option<u64>,
    is_chunked: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
}

impl Said {
    fn note(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if matches!(line[0], b' ' | b'\t') {
            return Err("a folded header line");
        }
        let Some((name, value)) = name_and_value(line) else {
            return Err("a header line without a colon");
        };
        match name.len() {
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.expects = value.eq_ignore_ascii_case(b"100-continue");
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for word in elements(value) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length =
                    content_length(value).ok_or("a Content-Length that is not a number")?;
                if self.length.is_some_and(|before| before != length) {
                    return Err("two different Content-Lengths");
                }
                self.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("a Transfer-Encoding other than chunked");
                }
                self.is_chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self, is_http10: bool) -> Result<Framing, &'static str> {
        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err("both Transfer-Encoding and Content-Length"),
            (true, None) if is_http10 => Err("Transfer-Encoding in HTTP/1.0"),
            (true, None) => Ok(Framing::Chunked),
            (false, None | Some(0)) => Ok(Framing::None),
            (false, Some(length)) => Ok(Framing::Length(length)),
        }
    }
}

/// Appends a head without the fields that belong to one connection alone, and with the lines of `add`.
pub(crate) fn pass_on(head: &[u8], out: &mut Vec<u8>, add: &[u8]) {
    let named: Vec<&[u8]> = Lines { rest: head }
        .skip(1)
        .filter_map(name_and_value)
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"))
        .flat_map(|(_, value)| elements(value))
        .filter(|word| !decides_framing(word))
        .collect();
    let mut is_left_out = false;
    for (number, line) in (Lines { rest: head }).enumerate() {
        if number > 0 && is_blank(line) {
            out.extend_from_slice(add);
            out.extend_from_slice(line);
            return;
        }
        if number > 0 && !matches!(line[0], b' ' | b'\t') {
            is_left_out = name_and_value(line).is_some_and(|(name, _)| {
                is_of_one_connection(name) || named.iter().any(|one| name.eq_ignore_ascii_case(one))
            });
        }
        if !is_left_out {
            out.extend_from_slice(line);
        }
    }
}

fn is_of_one_connection(name: &[u8]) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"keep-alive"),
        16 => name.eq_ignore_ascii_case(b"proxy-connection"),
        _ => false,
    }
}

/// Fields that stay whatever a Connection field says: without them the next hop would read another message.
fn decides_framing(name: &[u8]) -> bool {
    [
        &b"content-length"[..],
        b"transfer-encoding",
        b"host",
        b"close",
    ]
    .iter()
    .any(|one| name.eq_ignore_ascii_case(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Request {
        match read(text.as_bytes()) {
            Read::Whole(request) => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    fn passed(head: &str, add: &str) -> String {
        let mut out = Vec::new();
        pass_on(head.as_bytes(), &mut out, add.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_end_of_a_request_is_told_by_its_head() {
        let of = |fields: &str| whole(&format!("POST / HTTP/1.1\r\n{fields}\r\nbody")).framing;

        assert_eq!(of("Host: a\r\n"), Framing::None);
        assert_eq!(of("content-LENGTH:  12 \r\n"), Framing::Length(12));
        assert_eq!(
            of("Content-Length: 5\r\nContent-Length: 5\r\n"),
            Framing::Length(5)
        );
        assert_eq!(of("Transfer-Encoding: Chunked\r\n"), Framing::Chunked);
    }

    #[test]
    fn a_request_whose_end_is_in_doubt_is_refused() {
        for fields in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5, 5\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "X: a\r\n b: c\r\n",
            "no colon\r\n",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{fields}\r\n");
            assert!(
                matches!(read(text.as_bytes()), Read::Invalid(_)),
                "{text:?}"
            );
        }
        assert!(matches!(read(b"GET /\r\n\r\n"), Read::Invalid(_)));
        assert!(matches!(read(b"GET / HTTP/2\r\n\r\n"), Read::Invalid(_)));
    }

    #[test]
    fn a_head_cut_anywhere_is_partial() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

        assert!((0..text.len()).all(|cut| read(&text[..cut]) == Read::Partial));
        assert_eq!(whole(std::str::from_utf8(text).unwrap()).len, text.len());
    }

    #[test]
    fn connections_are_kept_as_the_versions_have_it() {
        let keeps = |version: &str, value: &str| {
            whole(&format!("GET / {version}\r\nConnection: {value}\r\n\r\n")).keeps
        };

        assert!(keeps("HTTP/1.1", "x"));
        assert!(!keeps("HTTP/1.1", "x, Close"));
        assert!(!keeps("HTTP/1.0", "x"));
        assert!(keeps("HTTP/1.0", "Keep-Alive"));
        assert!(!keeps("HTTP/1.0", "keep-alive, close"));
    }

    #[test]
    fn a_head_is_passed_on_byte_for_byte_but_for_the_fields_of_one_connection() {
        let head = "HTTP/1.1  200 OK\r\nserver:odd \r\nConnection: close, X-Hop\r\nKeep-Alive: timeout=5\r\n\
                    x-hop: 1\r\n  folded\r\nContent-Length: 2\r\n\r\n";

        assert_eq!(
            passed(head, "Connection: close\r\n"),
            "HTTP/1.1  200 OK\r\nserver:odd \r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_connection_field_cannot_take_away_what_frames_the_message() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: content-length, host\r\nContent-Length: 2\r\n\r\n";

        assert_eq!(
            passed(head, ""),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
        );
    }

    #[test]
    fn bare_line_feeds_stay_bare() {
        assert_eq!(
            passed("HTTP/1.1 200 OK\nA: b\n\n", ""),
            "HTTP/1.1 200 OK\nA: b\n\n"
        );
    }

    /// Bytes that mean something in a head, and a few that do not.
    const PIECES: [&str; 22] = [
        "GET / HTTP/1.1",
        "POST /a HTTP/1.0",
        "\r\n",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        " ",
        ":",
        ",",
        "Host: a",
        "Content-Length: 5",
        "Content-Length: 7",
        "Transfer-Encoding: chunked",
        "Connection: close",
        "Connection: keep-alive, X",
        "Connection: content-length",
        "X: y",
        "Expect: 100-continue",
        "\0",
        "\u{ff}",
        "5",
    ];

    #[test]
    fn what_is_passed_on_is_read_as_the_same_request() {
        let mut random = loadlens_base::Random::new(11);
        let mut whole = 0;
        for _ in 0..200_000 {
            let count = 3 + random.below(14);
            let mut text = String::from(PIECES[random.below(2) as usize]);
            text.push_str("\r\n");
            for _ in 0..count {
                text.push_str(PIECES[random.below(PIECES.len() as u64) as usize]);
                if random.below(2) == 0 {
                    text.push_str("\r\n");
                }
            }
            text.push_str("\r\n\r\n");

            let Read::Whole(request) = read(text.as_bytes()) else {
                continue;
            };
            let mut out = Vec::new();
            pass_on(&text.as_bytes()[..request.len], &mut out, b"");
            let Read::Whole(again) = read(&out) else {
                panic!("{text:?} became {:?}", String::from_utf8_lossy(&out));
            };

            assert_eq!(again.len, out.len(), "{text:?}");
            assert_eq!(
                (again.framing, again.is_head, again.is_http10, again.expects),
                (
                    request.framing,
                    request.is_head,
                    request.is_http10,
                    request.expects
                ),
                "{text:?}"
            );
            whole += 1;
        }
        assert!(whole > 1000, "{whole} heads were whole");
    }
}
