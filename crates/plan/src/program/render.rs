//! A compiled request and its bytes.

use std::fmt;
use std::io::Write;
use std::time::{Duration, SystemTime};

use loadlens_base::units::SECOND;
use loadlens_base::{split_mix, Random};
use loadlens_http::request::{is_target, is_value_byte, push_component};

use super::json::push_escaped;
use super::template::{Instant, Made};
use super::values::{Value, Values};
use super::Records;

/// Inputs of rendering a request.
#[derive(Debug)]
pub struct RenderContext<'a> {
    /// Source of random values.
    pub random: &'a mut Random,
    /// Number of the request in its stream, from 0.
    pub seq: u64,
    /// Number of the user in its stream.
    pub user: u32,
    /// Wall clock time.
    pub unix_ns: u64,
    /// Wall clock time at which the run began.
    pub t0_unix_ns: u64,
    /// The records of its feeds that the iteration was given.
    pub records: Records<'a>,
}

/// Reason why a request could not be made. It was never issued; the iteration ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderFault {
    /// An extracted value has a byte that no header value may have: sent, it would change the request.
    HeaderValue,
    /// A value that an earlier step extracts is not there: that step was not judged, or its judgement not heeded.
    MissingValue,
    /// A raw value has a byte that no path may have: sent, it would change the request.
    RawValue,
    /// A raw value that a path begins with does not begin with `/`.
    NoPath,
    /// A raw value that a path begins with is a URL of another host.
    OtherHost,
}

impl RenderFault {
    /// In words, for an error sample.
    pub fn what(self) -> &'static str {
        match self {
            RenderFault::HeaderValue => {
                "an extracted value has control bytes that no header may have (RFC 9110 5.5)"
            }
            RenderFault::MissingValue => "an extracted value is not there",
            RenderFault::RawValue => {
                "a raw value has bytes that no path may have as they are (RFC 3986 3.3)"
            }
            RenderFault::NoPath => "a raw value at the start of a path does not begin with `/`",
            RenderFault::OtherHost => {
                "a raw value at the start of a path is a URL of another host than the target"
            }
        }
    }
}

/// Form in which an extracted value is written at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Percent-encoded in path or query.
    Target,
    /// Refused when it would end the header.
    Header,
    /// As it is.
    Text,
    /// Inside the quotes of a JSON string.
    JsonString,
    /// As a JSON value.
    JsonValue,
}

/// A piece of a request. Constants and choices are already written for their place.
#[derive(Clone)]
pub(super) enum Segment {
    Bytes(Vec<u8>),
    Made(Made),
    Choice(Vec<Vec<u8>>),
    Given {
        from: Given,
        place: Place,
    },
    /// Not encoded. At the start of a path, where the authority of the target is given, a whole URL of it will do.
    Raw {
        from: Given,
        authority: Option<Box<str>>,
    },
}

/// A value that is not made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// Extracted by an earlier step.
    Extracted(u16),
    /// A column of a feed, both by their index.
    Field { feed: u16, column: u16 },
}

impl Given {
    #[inline]
    fn value<'a>(self, values: &'a Values, records: Records<'a>) -> Result<Value<'a>, RenderFault> {
        match self {
            Given::Extracted(slot) => values.get(slot).ok_or(RenderFault::MissingValue),
            Given::Field { feed, column } => Ok(records.value(feed, column)),
        }
    }
}

/// A compiled request.
#[derive(Clone)]
pub(super) enum Request {
    /// The same bytes every time.
    Static(Vec<u8>),
    /// The whole in pieces; the length of the body does not vary.
    Pieces(Vec<Segment>),
    /// A head that ends with `Content-Length: `, and a body whose length is known only when it is rendered.
    Measured {
        head: Vec<Segment>,
        body: Vec<Segment>,
        digits: usize,
    },
}

/// Never the bytes: the environment may have put a secret among them.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Static(bytes) => write!(f, "Static({} bytes)", bytes.len()),
            Request::Pieces(pieces) => write!(f, "Pieces({})", pieces.len()),
            Request::Measured { head, body, .. } => {
                write!(f, "Measured({} + {})", head.len(), body.len())
            }
        }
    }
}

impl Request {
    /// Joins head and body. `head` ends after its last header line; `length` says whether Content-Length is to be sent.
    pub fn new(mut head: Vec<Segment>, body: Vec<Segment>, length: bool) -> Self {
        let body = joined(body);
        match body.as_slice() {
            [] | [Segment::Bytes(_)] => {
                let constant = match body.into_iter().next() {
                    Some(Segment::Bytes(bytes)) => bytes,
                    _ => Vec::new(),
                };
                if length {
                    head.push(Segment::Bytes(
                        format!("Content-Length: {}\r\n", constant.len()).into_bytes(),
                    ));
                }
                head.push(Segment::Bytes(b"\r\n".to_vec()));
                head.push(Segment::Bytes(constant));
                let mut all = joined(head);
                match (all.len(), all.pop()) {
                    (1, Some(Segment::Bytes(bytes))) => Request::Static(bytes),
                    (_, last) => Request::Pieces(all.into_iter().chain(last).collect()),
                }
            }
            _ => {
                head.push(Segment::Bytes(b"Content-Length: ".to_vec()));
                let typical: usize = body.iter().map(Segment::typical_len).sum();
                let digits = typical.to_string().len();
                Request::Measured {
                    head: joined(head),
                    body,
                    digits,
                }
            }
        }
    }

    /// Gives up sending the same bytes as they are: something is added to each request.
    pub fn render_always(&mut self) {
        if let Request::Static(bytes) = self {
            *self = Request::Pieces(vec![Segment::Bytes(std::mem::take(bytes))]);
        }
    }

    #[inline]
    pub fn static_bytes(&self) -> Option<&[u8]> {
        match self {
            Request::Static(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub fn render(
        &self,
        values: &Values,
        context: &mut RenderContext,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderFault> {
        let start = out.len();
        let rendered = match self {
            Request::Static(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Request::Pieces(pieces) => push_all(pieces, values, context, out),
            Request::Measured { head, body, digits } => {
                measured(head, body, *digits, values, context, out)
            }
        };
        rendered.inspect_err(|_| out.truncate(start))
    }
}

/// Head, length, blank line, body. The length is written when the body stands: a gap is left for its digits, and only
/// when they are more or fewer than is typical does the body move.
fn measured(
    head: &[Segment],
    body: &[Segment],
    digits: usize,
    values: &Values,
    context: &mut RenderContext,
    out: &mut Vec<u8>,
) -> Result<(), RenderFault> {
    push_all(head, values, context, out)?;
    let length_at = out.len();
    out.resize(length_at + digits + 4, b'0');
    let body_at = out.len();
    push_all(body, values, context, out)?;
    let mut buffer = itoa::Buffer::new();
    let length = buffer.format(out.len() - body_at).as_bytes();
    if length.len() != digits {
        let gap = std::iter::repeat_n(b'0', length.len());
        out.splice(length_at..length_at + digits, gap);
    }
    out[length_at..length_at + length.len()].copy_from_slice(length);
    out[length_at + length.len()..length_at + length.len() + 4].copy_from_slice(b"\r\n\r\n");
    Ok(())
}

#[inline]
fn push_all(
    segments: &[Segment],
    values: &Values,
    context: &mut RenderContext,
    out: &mut Vec<u8>,
) -> Result<(), RenderFault> {
    segments
        .iter()
        .try_for_each(|segment| segment.push(values, context, out))
}

/// Neighbouring constants as one; empty ones left out.
fn joined(segments: Vec<Segment>) -> Vec<Segment> {
    let mut all: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match (all.last_mut(), segment) {
            (_, Segment::Bytes(bytes)) if bytes.is_empty() => {}
            (Some(Segment::Bytes(before)), Segment::Bytes(bytes)) => before.extend(bytes),
            (_, segment) => all.push(segment),
        }
    }
    all
}

impl Segment {
    #[inline]
    fn push(
        &self,
        values: &Values,
        context: &mut RenderContext,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderFault> {
        match self {
            Segment::Bytes(bytes) => out.extend_from_slice(bytes),
            Segment::Made(made) => made.push(context, out),
            Segment::Choice(words) => {
                out.extend_from_slice(&words[context.random.below(words.len() as u64) as usize]);
            }
            Segment::Given { from, place } => {
                push_value(out, from.value(values, context.records)?, *place)?;
            }
            Segment::Raw { from, authority } => {
                let value = from.value(values, context.records)?;
                value.with_text(|text| push_raw(out, text, authority.as_deref()))?;
            }
        }
        Ok(())
    }

    /// About how many bytes it gives: decides only how many digits a length is given at first.
    fn typical_len(&self) -> usize {
        match self {
            Segment::Bytes(bytes) => bytes.len(),
            Segment::Made(made) => made.typical_len(),
            Segment::Choice(words) => words.iter().map(Vec::len).sum::<usize>() / words.len(),
            Segment::Given { .. } | Segment::Raw { .. } => 16,
        }
    }
}

impl Made {
    #[inline]
    fn push(self, context: &mut RenderContext, out: &mut Vec<u8>) {
        match self {
            Made::Uuid => push_uuid(out, context.random),
            Made::Int { low, high } => push_int(out, low, high, context.random),
            Made::Float { low, high } => {
                let value = low + context.random.unit() * (high - low);
                out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
            }
            Made::Word { letters } => push_word(out, letters, context.random),
            Made::Timestamp(Instant::Since1970 { unit_ns }) => {
                push_number(out, context.unix_ns / unit_ns);
            }
            Made::Timestamp(Instant::Iso) => push_iso(out, context.unix_ns),
            Made::Sequence => push_number(out, context.seq),
            Made::User => push_number(out, context.user.into()),
            Made::Hex { digits } => push_hex(out, digits, context.random),
            Made::Bool => {
                let is_true = context.random.below(2) == 1;
                out.extend_from_slice(if is_true { b"true" } else { b"false" });
            }
            Made::Traceparent { key } => push_traceparent(out, key, context),
        }
    }

    fn typical_len(self) -> usize {
        let number = |n: i64| n.to_string().len();
        match self {
            Made::Uuid => 36,
            Made::Int { low, high } => number(low).max(number(high)),
            Made::Float { .. } => 18,
            Made::Word { letters: count } | Made::Hex { digits: count } => usize::from(count),
            Made::Timestamp(Instant::Since1970 { unit_ns }) => {
                10 + (SECOND / unit_ns).ilog10() as usize
            }
            Made::Timestamp(Instant::Iso) => 24,
            Made::Sequence | Made::Bool => 5,
            Made::User => 3,
            Made::Traceparent { .. } => 55,
        }
    }
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn push_int(out: &mut Vec<u8>, low: i64, high: i64, random: &mut Random) {
    let number = match (high.wrapping_sub(low) as u64).checked_add(1) {
        Some(width) => low.wrapping_add(random.below(width) as i64),
        None => random.bits() as i64,
    };
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// RFC 9562 5.4: 122 random bits, version 4, variant 10.
fn push_uuid(out: &mut Vec<u8>, random: &mut Random) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&random.bits().to_be_bytes());
    bytes[8..].copy_from_slice(&random.bits().to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            at += 1;
        }
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    out.extend_from_slice(&text);
}

/// Twelve letters from each draw: 26^12 is below 2^64, and the excess of its first letters below 2^-7.
fn push_word(out: &mut Vec<u8>, letters: u16, random: &mut Random) {
    let mut left = letters;
    while left > 0 {
        let mut draw = random.below(26u64.pow(12));
        for _ in 0..left.min(12) {
            out.push(b'a' + (draw % 26) as u8);
            draw /= 26;
        }
        left -= left.min(12);
    }
}

/// Sixteen digits from each draw.
fn push_hex(out: &mut Vec<u8>, digits: u16, random: &mut Random) {
    let mut left = digits;
    while left > 0 {
        let mut draw = random.bits();
        for _ in 0..left.min(16) {
            out.push(b"0123456789abcdef"[(draw & 15) as usize]);
            draw >>= 4;
        }
        left -= left.min(16);
    }
}

/// W3C Trace Context, level 1, sampled. The ids follow from the plan's seed (in `key`), the start of the run, and the
/// number of the request, so that its row in the record leads to its trace (docs/reference/record.md).
fn push_traceparent(out: &mut Vec<u8>, key: u64, context: &RenderContext) {
    let of_run = split_mix(key ^ context.t0_unix_ns);
    let high = split_mix(of_run ^ context.seq);
    let low = split_mix(of_run ^ !context.seq);
    // Writing into a vector cannot fail.
    let _ = write!(out, "00-{high:016x}{low:016x}-{:016x}-01", split_mix(high));
}

/// RFC 3339 in UTC with milliseconds.
fn push_iso(out: &mut Vec<u8>, unix_ns: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns);
    // Writing into a vector cannot fail, and nanoseconds in 64 bits end in 2554, before the last year of RFC 3339.
    let _ = write!(out, "{}", humantime::format_rfc3339_millis(time));
}

/// A value that is to be the path, or a part of it, as it is. With `authority` it begins the path: of a whole URL the
/// host must be the target's, and a fragment is not sent (RFC 9110 7.1).
fn push_raw(out: &mut Vec<u8>, text: &[u8], authority: Option<&str>) -> Result<(), RenderFault> {
    let mut text = text;
    if let Some(authority) = authority {
        if let Some(rest) = after_scheme(text) {
            let end = rest.iter().position(|byte| b"/?#".contains(byte));
            let (host, path) = rest.split_at(end.unwrap_or(rest.len()));
            if !host.eq_ignore_ascii_case(authority.as_bytes()) {
                return Err(RenderFault::OtherHost);
            }
            text = path;
            if !text.starts_with(b"/") {
                out.push(b'/');
            }
        } else if !text.starts_with(b"/") {
            return Err(RenderFault::NoPath);
        }
        text = text.split(|byte| *byte == b'#').next().unwrap_or_default();
    }
    if !is_target(text) {
        return Err(RenderFault::RawValue);
    }
    out.extend_from_slice(text);
    Ok(())
}

/// The text after `http://`, `https://` or the bare `//` of a reference without a scheme.
fn after_scheme(text: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://", b"//"]
        .iter()
        .find(|scheme| {
            text.get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
        .map(|scheme| &text[scheme.len()..])
}

fn push_value(out: &mut Vec<u8>, value: Value<'_>, place: Place) -> Result<(), RenderFault> {
    match place {
        Place::Text => value.with_text(|text| out.extend_from_slice(text)),
        Place::Target => value.with_text(|text| push_component(out, text)),
        Place::JsonString => value.with_text(|text| push_escaped(out, text)),
        Place::Header => value.with_text(|text| {
            if !text.iter().all(|byte| is_value_byte(*byte)) {
                return Err(RenderFault::HeaderValue);
            }
            out.extend_from_slice(text);
            Ok(())
        })?,
        Place::JsonValue => match value {
            Value::Json(raw) => out.extend_from_slice(raw),
            Value::Text(text) => {
                out.push(b'"');
                push_escaped(out, text);
                out.push(b'"');
            }
        },
    }
    Ok(())
}
