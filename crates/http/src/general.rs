//! The general way through a response head: line by line, every rule in the RFC's order.
//!
//! A fault is reported as soon as the bytes before it are known, so that pieces and the whole give the same answer.

use super::response::{Framing, Head, HeadResult, Violation, MAX_HEADERS, MAX_HEAD_BYTES, TOKEN};
use Violation::{Limit, Malformed};

/// Reads the head at the beginning of `buf`; see [`super::response::parse_head`].
pub(super) fn parse(buf: &[u8], request_was_head: bool) -> HeadResult {
    let window = &buf[..buf.len().min(MAX_HEAD_BYTES)];
    match lines(window, request_was_head) {
        Ok(Some(head)) => HeadResult::Complete(head),
        Ok(None) if window.len() == MAX_HEAD_BYTES => {
            HeadResult::Invalid(Limit("the head of the answer is over 64 KiB"))
        }
        Ok(None) => HeadResult::Partial,
        Err(violation) => HeadResult::Invalid(violation),
    }
}

/// The head, or none when the window ends before it does.
fn lines(window: &[u8], request_was_head: bool) -> Result<Option<Head>, Violation> {
    let Some(status_line) = status_line(window)? else {
        return Ok(None);
    };
    let mut fields = Fields::default();
    let mut at = status_line.len;
    let mut count = 0;
    loop {
        let rest = &window[at..];
        match rest {
            [b'\n', ..] => return finish(at + 1, status_line, &fields, request_was_head).map(Some),
            [b'\r', b'\n', ..] => {
                return finish(at + 2, status_line, &fields, request_was_head).map(Some)
            }
            [b'\r', _, ..] => return Err(Malformed("a CR without LF in the head (RFC 9112 2.2)")),
            [] | [b'\r'] => return Ok(None),
            [b' ' | b'\t', ..] => {
                // A folded line is part of the field before it and was read with it; this is one after the status line.
                return Err(Malformed(
                    "white space before the first header line (RFC 9112 2.2)",
                ));
            }
            _ => {}
        }
        if count == MAX_HEADERS {
            return Err(Limit("the answer has over 256 header lines"));
        }
        let Some(field) = field(rest)? else {
            return Ok(None);
        };
        fields.note(field.name, field.value);
        count += 1;
        at += field.len;
    }
}

#[derive(Clone, Copy)]
struct StatusLine {
    status: u16,
    minor: u8,
    len: usize,
}

/// `HTTP/1.d SP ddd [SP reason] LF`; none when the window ends within a good one.
fn status_line(window: &[u8]) -> Result<Option<StatusLine>, Violation> {
    const NOT_HTTP: Violation =
        Malformed("does not begin with HTTP/1.0 or HTTP/1.1 (RFC 9112 2.3)");
    const NOT_STATUS: Violation = Malformed("the status is not three digits (RFC 9112 4)");
    let length = window.len().min(7);
    if window[..length] != b"HTTP/1."[..length] {
        return Err(NOT_HTTP);
    }
    let minor = match window.get(7) {
        None => return Ok(None),
        Some(digit @ b'0'..=b'9') => digit - b'0',
        Some(_) => return Err(NOT_HTTP),
    };
    if window.get(8).is_some_and(|byte| *byte != b' ') {
        return Err(Malformed(
            "no single space between version and status (RFC 9112 4)",
        ));
    }
    let mut status = 0;
    for at in 9..12 {
        match window.get(at) {
            None => return Ok(None),
            Some(digit @ b'0'..=b'9') => status = status * 10 + u16::from(digit - b'0'),
            Some(_) => return Err(NOT_STATUS),
        }
    }
    if !(100..=599).contains(&status) {
        return Err(Malformed("the status is not from 100 to 599 (RFC 9110 15)"));
    }
    match window.get(12) {
        None => return Ok(None),
        Some(b' ' | b'\r' | b'\n') => {}
        Some(_) => return Err(NOT_STATUS),
    }
    let Some(len) = value_end(&window[12..])? else {
        return Ok(None);
    };
    Ok(Some(StatusLine {
        status,
        minor,
        len: 12 + len,
    }))
}

/// The bytes up to and with the LF that ends a line of text; none when the window ends before.
fn value_end(rest: &[u8]) -> Result<Option<usize>, Violation> {
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'\n' => return Ok(Some(at + 1)),
            b'\r' => match rest.get(at + 1) {
                None => return Ok(None),
                Some(b'\n') => return Ok(Some(at + 2)),
                Some(_) => return Err(Malformed("a CR without LF in the head (RFC 9112 2.2)")),
            },
            b'\t' => {}
            0..=0x1f | 0x7f => return Err(Malformed("a control byte in the head (RFC 9110 5.5)")),
            _ => {}
        }
    }
    Ok(None)
}

struct Field<'a> {
    name: &'a [u8],
    /// As it stands: with white space around it, and line ends where it is folded.
    value: &'a [u8],
    len: usize,
}

/// One header with its folded lines; none when the window ends before the line after it has begun.
fn field(rest: &[u8]) -> Result<Option<Field<'_>>, Violation> {
    let Some(colon) = rest.iter().position(|byte| !TOKEN[*byte as usize]) else {
        return Ok(None);
    };
    match rest[colon] {
        b':' if colon > 0 => {}
        b':' => return Err(Malformed("a header line without a name (RFC 9112 5)")),
        b' ' | b'\t' => {
            return Err(Malformed(
                "white space in or after a header name (RFC 9112 5.1)",
            ))
        }
        b'\r' | b'\n' => return Err(Malformed("a header line without a colon (RFC 9112 5)")),
        _ => {
            return Err(Malformed(
                "a byte that no header name may have (RFC 9110 5.1)",
            ))
        }
    }
    let mut end = colon + 1;
    loop {
        let Some(len) = value_end(&rest[end..])? else {
            return Ok(None);
        };
        end += len;
        match rest.get(end) {
            None => return Ok(None),
            Some(b' ' | b'\t') => {}
            Some(_) => {
                return Ok(Some(Field {
                    name: &rest[..colon],
                    value: &rest[colon + 1..end],
                    len: end,
                }))
            }
        }
    }
}

/// Values of the headers that decide length and reuse.
#[derive(Default)]
struct Fields {
    length: Length,
    /// There is a Transfer-Encoding header.
    coded: bool,
    /// The last coding named so far is chunked.
    chunked_last: bool,
    chunked_count: u32,
    bad_coding: Option<&'static str>,
    close: bool,
    keep_alive: bool,
}

#[derive(Clone, Copy, Default)]
enum Length {
    #[default]
    Unsaid,
    Said(u64),
    Bad(&'static str),
}

impl Fields {
    fn note(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"content-length") {
            self.note_length(value);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.note_coding(value);
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in elements(value) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }

    /// RFC 9112 6.3 rule 5: a list of equal values is one value, everything else that is not digits is invalid.
    fn note_length(&mut self, value: &[u8]) {
        let mut some = false;
        for element in elements(value) {
            some = true;
            self.length = match (self.length, length(element)) {
                (Length::Bad(why), _) | (_, Err(why)) => Length::Bad(why),
                (Length::Unsaid, Ok(length)) => Length::Said(length),
                (Length::Said(before), Ok(length)) if before == length => Length::Said(length),
                (Length::Said(_), Ok(_)) => {
                    Length::Bad("Content-Length values that differ (RFC 9112 6.3)")
                }
            };
        }
        if !some {
            self.length = Length::Bad("Content-Length without a value (RFC 9112 6.3)");
        }
    }

    fn note_coding(&mut self, value: &[u8]) {
        self.coded = true;
        for element in elements(value) {
            let name = element
                .split(|byte| *byte == b';')
                .next()
                .unwrap_or(element)
                .trim_ascii_end();
            let is_chunked = name.eq_ignore_ascii_case(b"chunked");
            self.chunked_last = is_chunked;
            if name.is_empty() || !name.iter().all(|byte| TOKEN[*byte as usize]) {
                self.bad_coding = Some("a Transfer-Encoding that is not a token (RFC 9112 7)");
            } else if is_chunked && name.len() != element.len() {
                self.bad_coding = Some("chunked with parameters (RFC 9112 7.1)");
            } else if is_chunked {
                self.chunked_count += 1;
                if self.chunked_count > 1 {
                    self.bad_coding = Some("chunked applied twice (RFC 9112 6.1)");
                }
            }
        }
    }
}

/// The elements of a comma-separated list; empty ones are left out (RFC 9110 5.6.1.2), a fold is white space.
pub fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

/// Reads the value of a Content-Length that stands alone; none: it is not digits, or 2^64 or more.
pub fn content_length(value: &[u8]) -> Option<u64> {
    (!value.is_empty()).then(|| length(value).ok()).flatten()
}

fn length(element: &[u8]) -> Result<u64, &'static str> {
    element.iter().try_fold(0u64, |length, byte| {
        if !byte.is_ascii_digit() {
            return Err("a Content-Length that is not digits (RFC 9112 6.3)");
        }
        length
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(byte - b'0')))
            .ok_or("a Content-Length of 2^64 or more (RFC 9112 6.3)")
    })
}

/// The rules of RFC 9112 6.3, in their order, and of 9.3 for reuse.
fn finish(
    len: usize,
    line: StatusLine,
    fields: &Fields,
    request_was_head: bool,
) -> Result<Head, Violation> {
    let StatusLine { status, minor, .. } = line;
    if status == 101 {
        return Err(Malformed(
            "101 Switching Protocols, which no request asked for (RFC 9110 15.2.2)",
        ));
    }
    // Rule 1: these end with the blank line whatever their headers say.
    let bodiless = request_was_head || status < 200 || status == 204 || status == 304;
    let framing = if bodiless {
        Framing::None
    } else {
        framing(minor, fields)?
    };
    let persistent = !fields.close && (minor >= 1 || fields.keep_alive);
    // 6.3 rule 3: a message with both might be an attempt at response splitting.
    let suspicious = fields.coded && !matches!(fields.length, Length::Unsaid);
    let keep_alive = status < 200 || persistent && !suspicious && framing != Framing::UntilClose;
    Ok(Head {
        status,
        framing,
        keep_alive,
        len,
    })
}

fn framing(minor: u8, fields: &Fields) -> Result<Framing, Violation> {
    if fields.coded {
        if let Some(why) = fields.bad_coding {
            return Err(Malformed(why));
        }
        if minor == 0 {
            return Err(Malformed(
                "Transfer-Encoding in an HTTP/1.0 response (RFC 9112 6.1)",
            ));
        }
        // Rule 4, and rule 3: Transfer-Encoding overrides Content-Length.
        return Ok(if fields.chunked_last {
            Framing::Chunked
        } else {
            Framing::UntilClose
        });
    }
    match fields.length {
        Length::Bad(why) => Err(Malformed(why)), // rule 5
        Length::Said(length) => Ok(Framing::Length(length)), // rule 6
        Length::Unsaid => Ok(Framing::UntilClose), // rule 8
    }
}

/// The value of the first header of this name in a whole head, without white space around it.
///
/// `head` is what [`super::response::parse_head`] found complete; `name` is compared without case. A folded value comes as
/// it stands, line ends included.
pub fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    headers(head, name).next()
}

/// The values of all headers of this name in a whole head, as [`header`] finds the first.
pub fn headers<'a: 'n, 'n>(head: &'a [u8], name: &'n [u8]) -> impl Iterator<Item = &'a [u8]> + 'n {
    let mut rest = memchr::memchr(b'\n', head).map_or(&[][..], |end| &head[end + 1..]);
    let fields = std::iter::from_fn(move || {
        let field = field(rest).ok()??;
        rest = &rest[field.len..];
        Some(field)
    });
    let of_name = fields.filter(|field| field.name.eq_ignore_ascii_case(name));
    of_name.map(|field| field.value.trim_ascii())
}
