//! Some two hundred and fifty ways to answer, each with the outcome that RFC 9112 asks for.
//!
//! Every case is read whole and cut at every byte, and where it is a whole message also by a literal reading of the RFC.

mod cases;
mod generated;
#[path = "../literal/response.rs"]
mod literal;
mod mutate;

use loadlens_http::response::{
    parse_head, BodyDecoder, Framing, Head, HeadResult, Violation, MAX_HEAD_BYTES,
};

/// The request that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Get,
    Head,
}

/// Event after the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The connection stays open and silent.
    Open,
    /// The server closes it.
    Close,
}

/// End of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    /// A whole answer. `kept`: the connection may carry the next request. `spare`: bytes behind the answer, which
    /// were not requested.
    Answered {
        status: u16,
        body: Vec<u8>,
        kept: bool,
        spare: usize,
    },
    /// Still waiting for the rest.
    Pending,
    /// Closed within the body.
    Truncated,
    /// Closed before the head was whole.
    ClosedInHead,
    Malformed,
    Limit,
}

/// One way to answer.
#[derive(Debug)]
struct Case {
    /// The section of RFC 9112, or 9110 where it says so, that decides.
    rfc: &'static str,
    name: &'static str,
    asked: Asked,
    bytes: Vec<u8>,
    then: Then,
    ending: Ending,
}

/// Reads as the worker does, the bytes arriving in `pieces`.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, then: Then, asked: Asked) -> Ending {
    let mut arrived = Vec::new();
    let mut head: Option<(Head, BodyDecoder)> = None;
    let mut body = Vec::new();
    for piece in pieces {
        arrived.extend_from_slice(piece);
        while head.is_none() {
            match parse_head(&arrived, asked == Asked::Head) {
                HeadResult::Partial => break,
                HeadResult::Invalid(violation) => return broken(violation),
                HeadResult::Complete(found) => {
                    arrived.drain(..found.len);
                    if !found.is_interim() {
                        head = Some((found, BodyDecoder::new(found.framing)));
                    }
                }
            }
        }
        let Some((found, decoder)) = &mut head else {
            continue;
        };
        match decoder.decode(&arrived, &mut |content| body.extend_from_slice(content)) {
            Err(violation) => return broken(violation),
            Ok(decoded) => {
                arrived.drain(..decoded.consumed);
                if decoded.done {
                    continue; // what still comes is spare
                }
                let (status, kept) = (found.status, found.keep_alive);
                assert!(!(kept && found.framing == Framing::UntilClose), "{status}");
            }
        }
    }
    match (head, then) {
        (Some((found, decoder)), _) if decoder.is_done() => Ending::Answered {
            status: found.status,
            body,
            kept: found.keep_alive,
            spare: arrived.len(),
        },
        (_, Then::Open) => Ending::Pending,
        (None, Then::Close) => Ending::ClosedInHead,
        (Some((found, decoder)), Then::Close) => match decoder.at_eof() {
            Ok(()) => Ending::Answered {
                status: found.status,
                body,
                kept: false,
                spare: 0,
            },
            Err(_) => Ending::Truncated,
        },
    }
}

fn broken(violation: Violation) -> Ending {
    match violation {
        Violation::Malformed(_) => Ending::Malformed,
        Violation::Limit(_) => Ending::Limit,
    }
}

#[test]
fn there_are_over_two_hundred_cases_with_names_of_their_own() {
    let mut names: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();

    assert_eq!(names.len(), count);
    assert!(count >= 200, "{count}");
}

#[test]
fn each_answer_ends_as_the_rfc_asks() {
    let wrong: Vec<String> = cases::all()
        .iter()
        .filter_map(|case| {
            let ending = read(
                std::iter::once(case.bytes.as_slice()),
                case.then,
                case.asked,
            );
            (ending != case.ending).then(|| {
                format!(
                    "{} ({}): {ending:?}, not {:?}",
                    case.name, case.rfc, case.ending
                )
            })
        })
        .collect();

    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn an_answer_cut_at_any_byte_ends_the_same() {
    for case in cases::all() {
        let step = (case.bytes.len() / 250).max(1); // the long ones are cut at 250 places
        for cut in (0..case.bytes.len()).step_by(step) {
            let pieces = [&case.bytes[..cut], &case.bytes[cut..]];
            let ending = read(pieces.into_iter(), case.then, case.asked);
            assert_eq!(ending, case.ending, "{} cut at {cut}", case.name);
        }
    }
}

#[test]
fn an_answer_that_comes_byte_by_byte_ends_the_same() {
    for case in cases::all()
        .into_iter()
        .filter(|case| case.bytes.len() < 4000)
    {
        let ending = read(case.bytes.chunks(1), case.then, case.asked);
        assert_eq!(ending, case.ending, "{}", case.name);
    }
}

#[test]
fn a_literal_reading_of_the_rfc_agrees() {
    for case in cases::all()
        .into_iter()
        .filter(|case| case.ending != Ending::Limit)
    {
        assert!(
            agrees(&case),
            "{} ({}): {:?}",
            case.name,
            case.rfc,
            read_literally(&case)
        );
    }
}

/// True if the literal reading comes to the same end.
fn agrees(case: &Case) -> bool {
    if case.ending == Ending::Limit {
        return true; // bounds are the engine's own
    }
    let literal = read_literally(case);
    // The engine may find a fault before the end that the literal reading waits for.
    let early = matches!(case.ending, Ending::Malformed)
        && matches!(
            literal,
            Ending::Pending | Ending::ClosedInHead | Ending::Truncated
        );
    early || literal == case.ending
}

fn read_literally(case: &Case) -> Ending {
    let mut rest = case.bytes.as_slice();
    let head = loop {
        match literal::head(rest, case.asked == Asked::Head) {
            Err(_) => return Ending::Malformed,
            Ok(None) if case.then == Then::Open => return Ending::Pending,
            Ok(None) => return Ending::ClosedInHead,
            Ok(Some(head)) => {
                rest = &rest[head.len..];
                if head.status >= 200 {
                    break head;
                }
            }
        }
    };
    let unfinished = if case.then == Then::Open {
        Ending::Pending
    } else {
        Ending::Truncated
    };
    let (body, used) = match head.length {
        literal::Length::None => (Vec::new(), 0),
        literal::Length::Bytes(length) if length <= rest.len() as u64 => {
            (rest[..length as usize].to_vec(), length as usize)
        }
        literal::Length::Bytes(_) => return unfinished,
        literal::Length::UntilClose if case.then == Then::Open => return Ending::Pending,
        literal::Length::UntilClose => (rest.to_vec(), rest.len()),
        literal::Length::Chunked => match literal::chunked(rest) {
            Err(_) => return Ending::Malformed,
            Ok(None) => return unfinished,
            Ok(Some(found)) => found,
        },
    };
    Ending::Answered {
        status: head.status,
        body,
        kept: head.keep_alive,
        spare: rest.len() - used,
    }
}

#[test]
fn a_head_of_exactly_64_kib_is_read_and_one_byte_more_is_not() {
    let head = |len: usize| {
        let frame = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \r\n\r\n".len();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {}\r\n\r\n",
            "a".repeat(len - frame)
        )
    };

    assert!(matches!(
        parse_head(head(MAX_HEAD_BYTES).as_bytes(), false),
        HeadResult::Complete(_)
    ));
    assert!(matches!(
        parse_head(head(MAX_HEAD_BYTES + 1).as_bytes(), false),
        HeadResult::Invalid(Violation::Limit(_))
    ));
}

#[test]
fn no_control_byte_but_tab_stands_in_a_value() {
    for byte in (0..=0xffu8).filter(|byte| *byte != b'\n') {
        let head = [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: b"[..],
            &[byte],
            &b"c\r\n\r\n"[..],
        ]
        .concat();

        let is_read = matches!(parse_head(&head, false), HeadResult::Complete(_));

        assert_eq!(
            is_read,
            byte == b'\t' || (byte >= b' ' && byte != 0x7f),
            "{byte}"
        );
    }
}

#[test]
fn an_extension_of_exactly_4_kib_is_passed_over_and_one_byte_more_is_not() {
    for (length, is_read) in [(4096, true), (4097, false)] {
        let wire = format!("0;{}\r\n\r\n", "a".repeat(length));

        let decoded = BodyDecoder::new(Framing::Chunked).decode(wire.as_bytes(), &mut |_| {});

        assert_eq!(
            decoded.is_ok_and(|decoded| decoded.done),
            is_read,
            "{length}"
        );
    }
}
