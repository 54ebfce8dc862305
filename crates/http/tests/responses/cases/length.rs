//! End of the body: the rules of RFC 9112 6.3.

use super::{closed, kept, last, open, spare, to_head};
use crate::Case;
use crate::Ending::{Malformed, Pending, Truncated};

/// A 200 with these header lines, then `body`.
fn answer(lines: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}").into_bytes()
}

pub(super) fn cases() -> Vec<Case> {
    [
        without_body(),
        content_length(),
        transfer_encoding(),
        until_close(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[rustfmt::skip] // one case a line
fn without_body() -> Vec<Case> {
    let line = |status: &str, lines: &str| format!("HTTP/1.1 {status}\r\n{lines}\r\n").into_bytes();
    vec![
        open("6.3 rule 1", "204", line("204 No Content", ""), kept(204, "")),
        open("6.3 rule 1", "304", line("304 Not Modified", ""), kept(304, "")),
        open("6.3 rule 1", "204 with a length", line("204 No Content", "Content-Length: 5\r\n"), kept(204, "")),
        open("6.3 rule 1", "304 with the length of what is cached", line("304 Not Modified", "Content-Length: 1234\r\n"), kept(304, "")),
        open("6.3 rule 1", "304 with chunked", line("304 Not Modified", "Transfer-Encoding: chunked\r\n"), kept(304, "")),
        open("6.3 rule 1", "204 with a length of letters", line("204 No Content", "Content-Length: five\r\n"), kept(204, "")),
        open("6.3 rule 1", "304 with two lengths", line("304 Not Modified", "Content-Length: 1\r\nContent-Length: 2\r\n"), kept(304, "")),
        open("6.3 rule 1", "204 that closes", line("204 No Content", "Connection: close\r\n"), last(204, "")),
        open("6.3 rule 1", "204 with a body all the same", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", spare(204, "", 5)),
        open("6.3 rule 1", "304 with a body all the same", "HTTP/1.1 304 Not Modified\r\n\r\nhello", spare(304, "", 5)),
        open("6.3 rule 1", "204 with a body that looks like an answer", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", spare(204, "", 19)),
        open("6.3", "205 has a length like others", line("205 Reset Content", "Content-Length: 0\r\n"), kept(205, "")),
        open("6.3 rule 8", "205 without a length runs until close", line("205 Reset Content", ""), Pending),
        to_head("6.3 rule 1", "answer to HEAD with a length", answer("Content-Length: 1234\r\n", ""), kept(200, "")),
        to_head("6.3 rule 1", "answer to HEAD with chunked", answer("Transfer-Encoding: chunked\r\n", ""), kept(200, "")),
        to_head("6.3 rule 1", "answer to HEAD without a length", answer("", ""), kept(200, "")),
        to_head("6.3 rule 1", "answer to HEAD with a wrong length", answer("Content-Length: -1\r\n", ""), kept(200, "")),
        to_head("6.3 rule 1", "answer to HEAD with a body all the same", answer("Content-Length: 5\r\n", "hello"), spare(200, "", 5)),
        to_head("6.3 rule 1", "404 to HEAD", "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n", kept(404, "")),
        to_head("6.3 rule 3", "both lengths to HEAD", answer("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""), last(200, "")),
        to_head("9.3", "HTTP/1.0 to HEAD", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", last(200, "")),
    ]
}

#[rustfmt::skip] // one case a line
fn content_length() -> Vec<Case> {
    let length = |value: &str| answer(&format!("Content-Length: {value}\r\n"), "hello");
    vec![
        open("6.3 rule 6", "exactly its length", length("5"), kept(200, "hello")),
        open("6.3 rule 6", "length 0", answer("Content-Length: 0\r\n", ""), kept(200, "")),
        open("6.3 rule 6", "length 0 and bytes", length("0"), spare(200, "", 5)),
        open("6.3 rule 6", "shorter than what comes", length("3"), spare(200, "hel", 2)),
        open("6.3 rule 6", "longer than what came", length("6"), Pending),
        closed("6.3 rule 6", "closed before its length", length("26"), Truncated),
        closed("6.3 rule 6", "closed before any of it", answer("Content-Length: 1\r\n", ""), Truncated),
        closed("6.3 rule 6", "closed at its length", length("5"), kept(200, "hello")),
        open("6.2", "leading zeros", length("0005"), kept(200, "hello")),
        open("6.2", "thirty leading zeros", length("000000000000000000000000000005"), kept(200, "hello")),
        open("6.3 rule 5", "plus sign", length("+5"), Malformed),
        open("6.3 rule 5", "minus sign", length("-5"), Malformed),
        open("6.3 rule 5", "minus zero", length("-0"), Malformed),
        open("6.3 rule 5", "hexadecimal", length("0x5"), Malformed),
        open("6.3 rule 5", "0x1a", length("0x1a"), Malformed),
        open("6.3 rule 5", "a fraction", length("5.0"), Malformed),
        open("6.3 rule 5", "26.0", length("26.0"), Malformed),
        open("6.3 rule 5", "an exponent", length("5e0"), Malformed),
        open("6.3 rule 5", "thousands separator", length("1_000"), Malformed),
        open("6.3 rule 5", "letters", length("five"), Malformed),
        open("6.3 rule 5", "letters after digits", length("5b"), Malformed),
        open("6.3 rule 5", "a unit", length("5 bytes"), Malformed),
        open("6.3 rule 5", "a space within", length("5 5"), Malformed),
        open("6.3 rule 5", "quotes", length("\"5\""), Malformed),
        open("6.3 rule 5", "a semicolon", length("5;"), Malformed),
        open("6.3 rule 5", "full-width digits", length("\u{ff15}"), Malformed),
        open("6.3 rule 5", "empty", length(""), Malformed),
        open("6.3 rule 5", "white space", length("  "), Malformed),
        open("6.3 rule 5", "only a comma", length(","), Malformed),
        open("6.3 rule 5", "2^64", length("18446744073709551616"), Malformed),
        open("6.3 rule 5", "2^64 + 26", length("18446744073709551642"), Malformed),
        open("6.3 rule 5", "forty digits", length("9999999999999999999999999999999999999999"), Malformed),
        open("6.3 rule 6", "2^64 - 1 is waited for", length("18446744073709551615"), Pending),
        closed("6.3 rule 6", "2^63 - 1 is cut short", length("9223372036854775807"), Truncated),
        open("6.3 rule 5", "the same twice in a list", length("5, 5"), kept(200, "hello")),
        open("6.3 rule 5", "the same four times without spaces", length("5,5,5,5"), kept(200, "hello")),
        open("6.3 rule 5", "the same in two headers", answer("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), kept(200, "hello")),
        open("6.3 rule 5", "the same with headers between", answer("Content-Length: 5\r\nA: b\r\nContent-Length: 5\r\n", "hello"), kept(200, "hello")),
        open("9110 5.6.1.2", "empty list elements", length(", 5 ,, 5,"), kept(200, "hello")),
        open("6.3 rule 5", "differing in a list", length("5, 6"), Malformed),
        open("6.3 rule 5", "differing at the end of a list", length("5, 5, 6"), Malformed),
        open("6.3 rule 5", "differing in two headers", answer("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), Malformed),
        open("6.3 rule 5", "differing headers, the shorter last", answer("Content-Length: 100\r\nContent-Length: 5\r\n", "hello"), Malformed),
        open("6.3 rule 5", "a good one and an empty one", answer("Content-Length: 5\r\nContent-Length:\r\n", "hello"), Malformed),
        open("6.3 rule 5", "a good one and letters in a list", length("5, x"), Malformed),
        open("5.1", "hyphen missing", answer("ContentLength: 5\r\n", "hello"), Pending),
        open("5.1", "underscore for the hyphen", answer("Content_Length: 5\r\n", "hello"), Pending),
        open("5", "tabs around the value", length("\t5\t"), kept(200, "hello")),
    ]
}

#[rustfmt::skip] // one case a line
fn transfer_encoding() -> Vec<Case> {
    const CHUNKS: &str = "5\r\nhello\r\n0\r\n\r\n";
    let coded = |value: &str| answer(&format!("Transfer-Encoding: {value}\r\n"), CHUNKS);
    let both = |lines: &str| answer(lines, CHUNKS);
    vec![
        open("6.3 rule 4", "chunked", coded("chunked"), kept(200, "hello")),
        open("7", "chunked in capitals", coded("CHUNKED"), kept(200, "hello")),
        open("7", "chunked in mixed case", coded("ChUnKeD"), kept(200, "hello")),
        open("6.1", "gzip, chunked", coded("gzip, chunked"), kept(200, "hello")),
        open("6.1", "gzip and chunked in two headers", both("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), kept(200, "hello")),
        open("9110 5.6.1.2", "chunked among empty elements", coded(",, chunked ,"), kept(200, "hello")),
        closed("6.3 rule 4", "chunked, gzip runs until close", coded("chunked, gzip"), last(200, CHUNKS)),
        closed("6.3 rule 4", "gzip alone runs until close", coded("gzip"), last(200, CHUNKS)),
        closed("6.3 rule 4", "identity runs until close", coded("identity"), last(200, CHUNKS)),
        closed("6.3 rule 4", "xchunked is not chunked", coded("xchunked"), last(200, CHUNKS)),
        closed("6.3 rule 4", "an empty list of codings", coded(""), last(200, CHUNKS)),
        closed("6.3 rule 4", "a coding with a parameter", coded("foo;bar=1"), last(200, CHUNKS)),
        open("6.3 rule 4", "gzip alone, not closed", coded("gzip"), Pending),
        closed("6.3 rule 4", "gzip and a length: the length is void", both("Transfer-Encoding: gzip\r\nContent-Length: 3\r\n"), last(200, CHUNKS)),
        open("6.1", "chunked twice", coded("chunked, chunked"), Malformed),
        open("6.1", "chunked in two headers", both("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), Malformed),
        open("6.1", "chunked, gzip, chunked", coded("chunked, gzip, chunked"), Malformed),
        open("7.1", "chunked with a parameter", coded("chunked;a=b"), Malformed),
        open("7.1", "chunked with an empty parameter", coded("chunked;"), Malformed),
        open("7", "chunked in quotes", coded("\"chunked\""), Malformed),
        open("7", "two words", coded("chunked gzip"), Malformed),
        open("9110 5.5", "chunked after a vertical tab", coded("\x0bchunked"), Malformed),
        open("5.2", "chunked in a fold", answer("Transfer-Encoding:\r\n chunked\r\n", CHUNKS), kept(200, "hello")),
        open("6.3 rule 3", "length then chunked", both("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), last(200, "hello")),
        open("6.3 rule 3", "chunked then length", both("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), last(200, "hello")),
        open("6.3 rule 3", "chunked and a length of letters", both("Transfer-Encoding: chunked\r\nContent-Length: x\r\n"), last(200, "hello")),
        open("6.3 rule 3", "chunked and two lengths", both("Content-Length: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n"), last(200, "hello")),
        open("6.1", "chunked in HTTP/1.0", format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNKS}"), Malformed),
        closed("6.1", "chunked and a length in HTTP/1.0", format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n{CHUNKS}"), Malformed),
        closed("6.1", "gzip in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", Malformed),
    ]
}

#[rustfmt::skip] // one case a line
fn until_close() -> Vec<Case> {
    vec![
        closed("6.3 rule 8", "no length, closed", answer("", "hello"), last(200, "hello")),
        closed("6.3 rule 8", "no length, closed at once", answer("", ""), last(200, "")),
        open("6.3 rule 8", "no length, not closed", answer("", "hello"), Pending),
        closed("6.3 rule 8", "no length although keep-alive is said", answer("Connection: keep-alive\r\n", "hello"), last(200, "hello")),
        closed("6.3 rule 8", "what looks like another answer is body", answer("", "HTTP/1.1 200 OK\r\n\r\n"), last(200, "HTTP/1.1 200 OK\r\n\r\n")),
        closed("6.3 rule 8", "HTTP/1.0 without a length", "HTTP/1.0 200 OK\r\n\r\nhello", last(200, "hello")),
        closed("6.3 rule 8", "500 without a length", "HTTP/1.1 500 Oops\r\n\r\noops", last(500, "oops")),
        closed("6.3 rule 8", "redirect without a length", "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", last(302, "")),
    ]
}
