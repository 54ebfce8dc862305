//! Whole answers and chunked bodies, in any pieces.

use std::iter::once;

use loadlens_engine::worker::reply::{Fed, Place, Reply, Store};
use loadlens_http::known::KnownHead;
use loadlens_http::response::{BodyDecoder, Framing, Violation};
use loadlens_plan::program::Need;

use crate::literal::response as literal;
use crate::{knob, Ending};

/// Result of reading some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    Whole {
        status: u16,
        /// As far as it was asked for.
        body: Vec<u8>,
        kept: bool,
        /// Bytes behind it.
        spare: usize,
        /// Bytes of the answer, and of its decoded body.
        counted: (u64, u64),
    },
    Pending,
    Truncated,
    ClosedInHead,
    Malformed,
    Limit,
}

impl From<Violation> for Came {
    fn from(violation: Violation) -> Came {
        match violation {
            Violation::Malformed(_) => Came::Malformed,
            Violation::Limit(_) => Came::Limit,
        }
    }
}

/// Conditions under which an answer is read.
#[derive(Clone, Copy)]
struct How {
    was_head: bool,
    /// The server closes after its last byte.
    closes: bool,
    need: Need,
}

/// Two bytes say how the answer is read and where it is cut; the reader is the one of the worker.
pub fn whole_answer(bytes: &[u8]) -> Ending {
    let (knobs, bytes) = knob(bytes);
    let (cut, bytes) = knob(bytes);
    let how = How {
        was_head: knobs & 1 == 1,
        closes: knobs & 2 == 2,
        need: [Need::Nothing, Need::Head, Need::Body, Need::Body][usize::from(knobs >> 2 & 3)],
    };

    let whole = read(once(bytes), how);

    let cut = usize::from(cut) * bytes.len() / 255;
    let halves = [&bytes[..cut], &bytes[cut..]];
    check_same(&whole, &read(halves.into_iter(), how), "in halves");
    let length = 1 + usize::from(knobs >> 4);
    check_same(&whole, &read(bytes.chunks(length), how), "in pieces");
    if bytes.len() < 2_000 {
        check_same(&whole, &read(bytes.chunks(1), how), "byte by byte");
    }
    let literal = read_literally(bytes, how);
    let is_early = whole == Came::Malformed
        && matches!(
            literal,
            Came::Pending | Came::ClosedInHead | Came::Truncated
        );
    // Bounds are the engine's own, and a fault may be seen before the answer is whole.
    assert!(
        whole == Came::Limit || is_early || whole == literal,
        "{whole:?}, and by the RFC {literal:?}"
    );
    match whole {
        Came::Whole { .. } => Ending::Read,
        _ => Ending::Refused,
    }
}

/// Pieces come to the same as the whole; only a fault in a line that never ends may not have been looked for.
fn check_same(whole: &Came, pieces: &Came, how: &str) {
    let is_late = matches!(pieces, Came::Pending | Came::ClosedInHead) && *whole == Came::Malformed;
    assert!(
        is_late || pieces == whole,
        "{pieces:?} {how}, {whole:?} whole"
    );
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, how: How) -> Came {
    let mut store = Store::new(1 << 20);
    let mut reply = Reply::default();
    let mut heads = KnownHead::new(how.was_head);
    let mut came = None;
    for piece in pieces {
        if let Some(Came::Whole { spare, .. }) = &mut came {
            *spare += piece.len();
            continue;
        }
        match reply.feed(piece, how.need, &mut heads, &mut store) {
            Fed::More => {}
            Fed::Broken(violation) => return violation.into(),
            Fed::Whole { consumed, place } => {
                let spare = piece.len() - consumed;
                came = Some(whole(&reply, &store, how, piece, place, spare));
            }
        }
    }
    let ended = came.unwrap_or_else(|| match (how.closes, reply.head(), reply.at_end()) {
        (false, ..) => Came::Pending,
        (true, Some(_), Ok(place)) => match whole(&reply, &store, how, &[], place, 0) {
            Came::Whole {
                status,
                body,
                spare,
                counted,
                ..
            } => Came::Whole {
                kept: false,
                status,
                body,
                spare,
                counted,
            },
            other => other,
        },
        (true, None, _) => Came::ClosedInHead,
        (true, Some(_), Err(_)) => Came::Truncated,
    });
    reply.reset(&mut store);
    assert_eq!(store.lent(), 0, "a buffer is lost");
    ended
}

fn whole(reply: &Reply, store: &Store, how: How, piece: &[u8], place: Place, spare: usize) -> Came {
    let head = reply.head().expect("a whole answer has a head");
    let body = match place {
        Place::Input { body, end, .. } => &piece[body..end],
        Place::Store { buffer, head_len } => &store.bytes(buffer)[head_len..],
    };
    let is_wanted = how.need == Need::Body;
    if is_wanted {
        assert_eq!(reply.body_bytes, body.len() as u64);
    }
    Came::Whole {
        status: head.status,
        body: if is_wanted { body.to_vec() } else { Vec::new() },
        kept: head.keep_alive,
        spare,
        counted: (reply.wire_bytes, reply.body_bytes),
    }
}

fn read_literally(bytes: &[u8], how: How) -> Came {
    let mut rest = bytes;
    let head = loop {
        match literal::head(rest, how.was_head) {
            Err(_) => return Came::Malformed,
            Ok(None) if how.closes => return Came::ClosedInHead,
            Ok(None) => return Came::Pending,
            Ok(Some(head)) => {
                rest = &rest[head.len..];
                if head.status >= 200 {
                    break head;
                }
            }
        }
    };
    let unfinished = if how.closes {
        Came::Truncated
    } else {
        Came::Pending
    };
    let (body, used) = match head.length {
        literal::Length::None => (Vec::new(), 0),
        literal::Length::Bytes(length) if length <= rest.len() as u64 => {
            (rest[..length as usize].to_vec(), length as usize)
        }
        literal::Length::Bytes(_) => return unfinished,
        literal::Length::UntilClose if !how.closes => return Came::Pending,
        literal::Length::UntilClose => (rest.to_vec(), rest.len()),
        literal::Length::Chunked => match literal::chunked(rest) {
            Err(_) => return Came::Malformed,
            Ok(None) => return unfinished,
            Ok(Some(found)) => found,
        },
    };
    let spare = rest.len() - used;
    Came::Whole {
        status: head.status,
        kept: head.keep_alive,
        spare,
        counted: ((bytes.len() - spare) as u64, body.len() as u64),
        body: if how.need == Need::Body {
            body
        } else {
            Vec::new()
        },
    }
}

/// The first byte says where the body is cut.
pub fn chunked_body(bytes: &[u8]) -> Ending {
    let (cut, bytes) = knob(bytes);
    let whole = decode(once(bytes));

    let cut = usize::from(cut) * bytes.len() / 255;
    assert_eq!(decode([&bytes[..cut], &bytes[cut..]].into_iter()), whole);
    assert_eq!(decode(bytes.chunks(1)), whole, "byte by byte");
    let literal = match literal::chunked(bytes) {
        Ok(Some((body, used))) => Ok(Some((body, used))),
        Ok(None) => Ok(None),
        Err(_) => Err(Came::Malformed),
    };
    let is_early = whole == Err(Came::Malformed) && literal == Ok(None);
    assert!(
        whole == Err(Came::Limit) || is_early || whole == literal,
        "{whole:?}, and by the RFC {literal:?}"
    );
    match whole {
        Ok(Some(_)) => Ending::Read,
        _ => Ending::Refused,
    }
}

/// The content and how many bytes it took; none: it goes on.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Option<(Vec<u8>, usize)>, Came> {
    let mut decoder = BodyDecoder::new(Framing::Chunked);
    let (mut content, mut used, mut told) = (Vec::new(), 0, 0);
    for piece in pieces {
        if decoder.is_done() {
            break;
        }
        let decoded = decoder.decode(piece, &mut |bytes| content.extend_from_slice(bytes))?;
        used += decoded.consumed;
        told += decoded.body_bytes;
        assert_eq!(told, content.len() as u64);
        assert_eq!(decoded.done, decoder.is_done());
        assert_eq!(decoder.at_eof().is_ok(), decoder.is_done());
    }
    Ok(decoder.is_done().then_some((content, used)))
}
