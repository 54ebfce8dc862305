//! The fast and the general way, httparse and the literal reading of the RFC, compared over generated heads.
//! (What each single rule demands is in `tests/responses`.)

use proptest::prelude::*;

use super::*;

#[path = "../../tests/literal/response.rs"]
#[allow(dead_code)] // its reading of chunked bodies serves the other tests
mod literal;

/// Parts of heads, good and bad, so that every rule is met often.
fn any_head() -> impl Strategy<Value = Vec<u8>> {
    let version = prop_oneof![9 => Just("HTTP/1.1".to_owned()), 2 => Just("HTTP/1.0".to_owned()), 1 => "HTTP/[0-2]\\.[0-9]"];
    let status = prop_oneof![6 => Just("200".to_owned()), 3 => "[1-5][0-9][0-9]", 1 => "[0-9]{2,4}", 1 => "20[4-6]|304|10[0-3]"];
    let reason =
        prop_oneof![4 => Just(" OK".to_owned()), 1 => Just(String::new()), 1 => "[ -~\t]{0,12}"];
    let end =
        prop_oneof![30 => Just("\r\n"), 2 => Just("\n"), 1 => Just("\r"), 1 => Just("\r\r\n")];
    let line = (header_line(), end.clone()).prop_map(|(line, end)| format!("{line}{end}"));
    let lines = proptest::collection::vec(line, 0..8).prop_map(|lines| lines.concat());
    (
        version,
        status,
        reason,
        end.clone(),
        lines,
        end,
        "[a-z\r\n]{0,6}",
    )
        .prop_map(|(version, status, reason, end, lines, last, body)| {
            format!("{version} {status}{reason}{end}{lines}{last}{body}").into_bytes()
        })
}

fn header_line() -> impl Strategy<Value = String> {
    let length = prop_oneof![
        6 => "[0-9]{1,4}",
        1 => "[0-9]{17,21}",
        1 => "[+-]?[0-9xe. ,]{0,6}",
        1 => "5(, ?5){1,3}",
    ];
    let coding = "(chunked|Chunked|gzip|identity|xchunked|chunked;a)?(, ?(chunked|gzip|deflate))?";
    let option = "(close|keep-alive|Close|Keep-Alive|X-A|closed)?(, ?(close|keep-alive|a b))?";
    let name_of = |name: &'static str| prop_oneof![8 => Just(name.to_owned()), 2 => Just(name.to_lowercase()), 1 => Just(name.to_uppercase())];
    let space = || prop_oneof![5 => Just(" "), 1 => Just(""), 1 => Just("\t"), 1 => Just("\r\n ")];
    let field = move |name, value: BoxedStrategy<String>| {
        (name_of(name), space(), value, space()).prop_map(|(name, before, value, after)| {
            let after = if after == " " { "" } else { after };
            format!("{name}:{before}{value}{after}")
        })
    };
    prop_oneof![
        4 => field("Content-Length", length.boxed()),
        2 => field("Transfer-Encoding", coding.boxed()),
        3 => field("Connection", option.boxed()),
        4 => "[A-Za-z-]{1,17}: [ -~]{0,20}",
        1 => "[ -~\t]{0,20}",
        1 => "[ \t][a-z]{0,5}",
    ]
}

/// A head with a few bytes changed into ones that matter to a parser.
fn damaged_head() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        Just(b'\r'),
        Just(b'\n'),
        Just(b' '),
        Just(b'\t'),
        Just(b':'),
        Just(b','),
        Just(0u8),
        Just(0x7f),
        any::<u8>(),
    ];
    (
        any_head(),
        proptest::collection::vec((any::<proptest::sample::Index>(), byte), 0..3),
    )
        .prop_map(|(mut head, changes)| {
            for (index, byte) in changes {
                let at = index.index(head.len());
                head[at] = byte;
            }
            head
        })
}

fn as_literal(head: &Head) -> literal::Head {
    let length = match head.framing {
        Framing::None => literal::Length::None,
        Framing::Length(length) => literal::Length::Bytes(length),
        Framing::Chunked => literal::Length::Chunked,
        Framing::UntilClose => literal::Length::UntilClose,
    };
    literal::Head {
        status: head.status,
        length,
        keep_alive: head.keep_alive,
        len: head.len,
    }
}

/// Result of httparse for a head: status and length, or an error, or none when it is incomplete.
fn by_httparse(head: &[u8]) -> Result<Option<(u16, usize)>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    match config.parse_response(&mut response, head)? {
        httparse::Status::Complete(len) => Ok(Some((response.code.unwrap_or(0), len))),
        httparse::Status::Partial => Ok(None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn the_fast_way_gives_the_answer_of_the_general_one_or_none(head in damaged_head(), to_head: bool) {
        if let Some(found) = fast(&head, to_head) {
            prop_assert_eq!(HeadResult::Complete(found), general::parse(&head, to_head));
        }
    }

    #[test]
    fn a_literal_reading_of_the_rfc_gives_the_same_head(head in damaged_head(), to_head: bool) {
        match (parse_head(&head, to_head), literal::head(&head, to_head)) {
            (HeadResult::Complete(found), expected) => prop_assert_eq!(Ok(Some(as_literal(&found))), expected),
            (HeadResult::Invalid(_), expected) => prop_assert!(!matches!(expected, Ok(Some(_))), "{:?}", expected),
            // Only a missing blank line is waited for.
            (HeadResult::Partial, expected) => prop_assert!(!matches!(expected, Ok(Some(_))), "{:?}", expected),
        }
    }

    #[test]
    fn httparse_finds_the_same_status_and_end(head in damaged_head(), to_head: bool) {
        let minor = head.get(7).copied().unwrap_or(b'1');
        prop_assume!(matches!(minor, b'0' | b'1')); // it knows no HTTP/1.2
        match parse_head(&head, to_head) {
            HeadResult::Complete(found) => {
                prop_assert_eq!(by_httparse(&head), Ok(Some((found.status, found.len))));
            }
            // It waits for a line's end before it says what is wrong.
            HeadResult::Partial => prop_assert_eq!(by_httparse(&head), Ok(None)),
            HeadResult::Invalid(_) => {}
        }
    }

    #[test]
    fn a_head_in_pieces_gives_the_answer_of_the_whole(head in damaged_head(), to_head: bool) {
        let whole = parse_head(&head, to_head);
        for cut in 0..head.len() {
            match parse_head(&head[..cut], to_head) {
                HeadResult::Partial => {}
                early => {
                    prop_assert_eq!(early, whole);
                    break;
                }
            }
        }
    }

    #[test]
    fn no_bytes_at_all_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), to_head: bool) {
        if let HeadResult::Complete(head) = parse_head(&bytes, to_head) {
            prop_assert!(head.len <= bytes.len());
        }
        let mut decoder = BodyDecoder::new(Framing::Chunked);
        if let Ok(decoded) = decoder.decode(&bytes, &mut |_| {}) {
            prop_assert!(decoded.consumed <= bytes.len() && decoded.body_bytes <= decoded.consumed as u64);
        }
    }

    #[test]
    fn chunks_in_pieces_give_the_content_that_went_in(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..60), 0..6),
        extension in "(;[a-z]{1,4}(=[a-z]{1,4})?){0,2}",
        trailer in "([A-Z]{1,3}: [a-z]{0,5}\r\n){0,2}",
        piece in 1usize..40,
    ) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(format!("0{extension}\r\n{trailer}\r\n").as_bytes());

        let mut decoder = BodyDecoder::new(Framing::Chunked);
        let (mut content, mut bytes) = (Vec::new(), 0);
        for part in wire.chunks(piece) {
            prop_assert!(!decoder.is_done());
            let decoded = decoder.decode(part, &mut |content_part| content.extend_from_slice(content_part)).unwrap();
            prop_assert_eq!(decoded.consumed, part.len());
            bytes += decoded.body_bytes;
        }

        prop_assert!(decoder.is_done());
        prop_assert_eq!(bytes as usize, content.len());
        prop_assert_eq!(&content, &chunks.concat());
        prop_assert_eq!(literal::chunked(&wire), Ok(Some((content, wire.len()))));
    }

    #[test]
    fn damaged_chunks_are_read_as_the_literal_reading_does(
        size in "[0-9a-fx +;]{0,4}",
        end in "\r\n|\n|\r|",
        data in "[a-z]{0,8}",
        rest in "(\r\n)?(0(\r\n|\n|\r\r\n| ))?([A-Z: ]{0,4}\r?\n)?(\r\n)?",
    ) {
        let wire = format!("{size}{end}{data}{rest}").into_bytes();
        let mut content = Vec::new();
        let mut decoder = BodyDecoder::new(Framing::Chunked);

        let decoded = decoder.decode(&wire, &mut |part| content.extend_from_slice(part));

        match (decoded, literal::chunked(&wire)) {
            (Ok(decoded), expected) if decoded.done => {
                prop_assert_eq!(expected, Ok(Some((content, decoded.consumed))));
            }
            (_, expected) => prop_assert!(!matches!(expected, Ok(Some(_))), "{:?}", expected),
        }
    }
}

#[test]
fn the_common_heads_take_the_fast_way() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 \r\nServer: nginx\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: text/html\r\nContent-Length: 612\r\nConnection: keep-alive\r\n\r\n",
        "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nA:\tb\r\n\r\n",
    ] {
        assert!(fast(head.as_bytes(), false).is_some(), "{head}");
    }
}

#[test]
fn a_header_is_found_by_its_name_in_any_case() {
    let head = b"HTTP/1.1 200 OK\r\nServer: a\r\nX-Id:  42 \r\nX-Id: 43\r\nFolded: a\r\n  b\r\nEmpty:\r\n\r\n";

    assert_eq!(header(head, b"x-id"), Some(&b"42"[..]));
    assert_eq!(header(head, b"SERVER"), Some(&b"a"[..]));
    assert_eq!(header(head, b"Folded"), Some(&b"a\r\n  b"[..]));
    assert_eq!(header(head, b"Empty"), Some(&b""[..]));
    assert_eq!(header(head, b"X"), None);
    assert_eq!(header(b"", b"X"), None);
}

#[test]
fn a_connection_can_afford_a_decoder() {
    assert!(size_of::<BodyDecoder>() <= 24);
    assert!(size_of::<Head>() <= 40);
}
