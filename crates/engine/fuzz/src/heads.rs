//! Heads of responses: the fast way, the general way, the head that is known again, httparse, and the RFC.

use loadlens_http::known::KnownHead;
use loadlens_http::response::{
    header, headers, parse_head, parse_head_generally, Framing, Head, HeadResult, Violation,
};

use crate::literal::response as literal;
use crate::{knob, Ending};

/// The first byte says whether the request was HEAD and where the bytes are cut.
pub fn response_head(bytes: &[u8]) -> Ending {
    let (how, bytes) = knob(bytes);
    let was_head = how & 1 == 1;
    let read = parse_head(bytes, was_head);

    assert_eq!(
        read,
        parse_head_generally(bytes, was_head),
        "the general way"
    );
    known_again(bytes, was_head, usize::from(how >> 1));
    agrees_with_the_rfc(bytes, was_head, &read);
    match read {
        HeadResult::Complete(head) => {
            agrees_with_httparse(bytes, &head);
            no_part_says_more(bytes, was_head, &head);
            headers_are_found(&bytes[..head.len]);
            Ending::Read
        }
        _ => Ending::Refused,
    }
}

/// Whatever was known before, here the first part of the bytes, the answer is the same.
fn known_again(bytes: &[u8], was_head: bool, cut: usize) {
    let mut reader = KnownHead::new(was_head);
    for before in [&bytes[cut.min(bytes.len())..], bytes, bytes] {
        reader.parse(before);
        assert_eq!(reader.parse(bytes), parse_head(bytes, was_head));
    }
}

fn agrees_with_the_rfc(bytes: &[u8], was_head: bool, read: &HeadResult) {
    let literal = literal::head(bytes, was_head);
    match (read, literal) {
        (HeadResult::Invalid(Violation::Limit(_)), _) // bounds are the engine's own
        | (HeadResult::Invalid(_), Ok(None)) // a fault may be seen before the head is whole
        | (HeadResult::Invalid(_), Err(_))
        | (HeadResult::Partial, Ok(None)) => {}
        (HeadResult::Complete(head), Ok(Some(said))) => {
            let length = match head.framing {
                Framing::None => literal::Length::None,
                Framing::Length(length) => literal::Length::Bytes(length),
                Framing::Chunked => literal::Length::Chunked,
                Framing::UntilClose => literal::Length::UntilClose,
            };
            let ours = (head.status, length, head.keep_alive, head.len);
            assert_eq!(ours, (said.status, said.length, said.keep_alive, said.len));
        }
        (read, literal) => panic!("{read:?}, and by the RFC {literal:?}"),
    }
}

fn agrees_with_httparse(bytes: &[u8], head: &Head) {
    if !matches!(bytes[7], b'0' | b'1') {
        return; // it knows no other minor version
    }
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    let mut fields = [httparse::EMPTY_HEADER; 512];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = config.parse_response(&mut response, bytes);
    let whole = Ok(httparse::Status::Complete(head.len));
    assert_eq!((parsed, response.code), (whole, Some(head.status)));
}

/// Nothing before the last byte of a good head is a head, or a fault.
fn no_part_says_more(bytes: &[u8], was_head: bool, head: &Head) {
    let step = (head.len / 64).max(1);
    for end in (0..head.len).step_by(step).chain([head.len - 1]) {
        let part = parse_head(&bytes[..end], was_head);
        assert_eq!(part, HeadResult::Partial, "of {end} bytes");
    }
}

/// Every header is found under its name, with its value.
fn headers_are_found(head: &[u8]) {
    let Some(fields) = literal::fields_of(head) else {
        return; // folded lines come as they stand
    };
    for (name, _) in &fields {
        let values: Vec<&[u8]> = fields
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, value)| value.as_slice())
            .collect();
        let read: Vec<&[u8]> = headers(head, name.as_bytes()).collect();
        assert_eq!(read, values, "{name}");
        assert_eq!(header(head, name.as_bytes()), values.first().copied());
    }
}
