//! Random answers: the cases changed at random, read by four readers.
//!
//! The engine's reader whole and in pieces, the one that knows the last head again, httparse, and the literal reading of the RFC.
//! Where they disagree the RFC decides, and the bytes become a case. `LOADLENS_SEED=n` replays one input.

use std::iter::once;

use loadlens_base::Random;
use loadlens_http::known::KnownHead;
use loadlens_http::response::{parse_head, HeadResult};

use super::mutate::{inputs, mutated};
use super::{agrees, cases, read, Asked, Case, Ending, Then};

const WORDS: [&str; 40] = [
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "\0",
    "\x7f",
    "é",
    "+5",
    "0x1",
    "-1",
    "5, 5",
    "5,",
    "18446744073709551616",
    "ffffffffffffffff",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "0",
    "\r\n ",
    "\r\n\t",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 6\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: chunked, gzip\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive, Close\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "HTTP/1.1 304\r\n",
    "HTTP/1.1 999 X\r\n",
    "chunked",
    ";x=\"a;b\"",
    "A: b\r\n",
];

fn drawn(seed: u64, corpus: &[Vec<u8>]) -> (Case, Random) {
    let mut random = Random::derived(seed, &[9]);
    let bytes = mutated(&mut random, corpus, &WORDS.map(str::as_bytes));
    let asked = if random.below(8) == 0 {
        Asked::Head
    } else {
        Asked::Get
    };
    let then = if random.below(2) == 0 {
        Then::Open
    } else {
        Then::Close
    };
    let ending = read(once(bytes.as_slice()), then, asked);
    let case = Case {
        rfc: "",
        name: "generated",
        asked,
        bytes,
        then,
        ending,
    };
    (case, random)
}

fn corpus() -> Vec<Vec<u8>> {
    let all = cases::all().into_iter();
    all.map(|case| case.bytes)
        .filter(|bytes| bytes.len() < 2_000)
        .collect()
}

/// The case in words, for the message of a failure.
fn told(seed: u64, case: &Case) -> String {
    let bytes = case.bytes.escape_ascii();
    format!(
        "LOADLENS_SEED={seed}: {:?} {:?} b\"{bytes}\" is {:?}",
        case.asked, case.then, case.ending
    )
}

#[test]
fn a_literal_reading_agrees_about_answers_that_nobody_thought_of() {
    let corpus = corpus();
    let (mut answered, mut refused) = (0, 0);
    let seeds = inputs(60_000);
    let is_all = seeds.end - seeds.start > 1;
    for seed in seeds {
        let (case, _) = drawn(seed, &corpus);

        assert!(agrees(&case), "{}", told(seed, &case));

        answered += u64::from(matches!(case.ending, Ending::Answered { .. }));
        refused += u64::from(matches!(case.ending, Ending::Malformed));
    }
    // Worth something only if both happen often.
    assert!(
        !is_all || (answered > 1_000 && refused > 1_000),
        "{answered} {refused}"
    );
}

#[test]
fn pieces_come_to_the_same_as_the_whole() {
    let corpus = corpus();
    for seed in inputs(15_000) {
        let (case, mut random) = drawn(seed, &corpus);
        let bytes = case.bytes.as_slice();

        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let halves = read(
            [&bytes[..cut], &bytes[cut..]].into_iter(),
            case.then,
            case.asked,
        );
        let single = read(bytes.chunks(1), case.then, case.asked);

        assert_eq!(halves, case.ending, "cut at {cut}: {}", told(seed, &case));
        assert_eq!(single, case.ending, "byte by byte: {}", told(seed, &case));
    }
}

#[test]
fn a_remembered_head_reads_the_same_as_a_new_one() {
    let corpus = corpus();
    let mut readers = [KnownHead::new(false), KnownHead::new(true)];
    for seed in inputs(60_000) {
        let (case, _) = drawn(seed, &corpus);
        let was_head = case.asked == Asked::Head;

        let again = readers[usize::from(was_head)].parse(&case.bytes);

        assert_eq!(
            again,
            parse_head(&case.bytes, was_head),
            "{}",
            told(seed, &case)
        );
    }
}

#[test]
fn what_is_read_as_a_head_httparse_reads_the_same() {
    let corpus = corpus();
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    let mut compared = 0;
    for seed in inputs(60_000) {
        let (case, _) = drawn(seed, &corpus);
        let HeadResult::Complete(head) = parse_head(&case.bytes, false) else {
            continue; // httparse knows nothing of lengths, and takes more than the RFC in places
        };
        if !matches!(case.bytes[7], b'0' | b'1') {
            continue; // it knows no other minor version
        }
        let mut fields = [httparse::EMPTY_HEADER; 512];
        let mut response = httparse::Response::new(&mut fields);

        let parsed = config.parse_response(&mut response, &case.bytes);

        compared += 1;
        assert_eq!(
            (parsed, response.code),
            (Ok(httparse::Status::Complete(head.len)), Some(head.status)),
            "{}",
            told(seed, &case)
        );
    }
    assert!(
        compared > 1_000 || std::env::var("LOADLENS_SEED").is_ok(),
        "{compared}"
    );
}
