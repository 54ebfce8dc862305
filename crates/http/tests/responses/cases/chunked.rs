//! Chunks, their extensions and trailers: RFC 9112 7.1.

use super::{closed, kept, last, open, spare};
use crate::Case;
use crate::Ending::{Limit, Malformed, Pending, Truncated};

fn chunks(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").into_bytes()
}

pub(super) fn cases() -> Vec<Case> {
    [sizes(), lines(), extensions(), trailers()]
        .into_iter()
        .flatten()
        .collect()
}

#[rustfmt::skip] // one case a line
fn sizes() -> Vec<Case> {
    vec![
        open("7.1", "one chunk", chunks("5\r\nhello\r\n0\r\n\r\n"), kept(200, "hello")),
        open("7.1", "no chunk but the last", chunks("0\r\n\r\n"), kept(200, "")),
        open("7.1", "five chunks of one byte", chunks("1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n"), kept(200, "hello")),
        open("7.1", "size in small letters", chunks("a\r\n0123456789\r\n0\r\n\r\n"), kept(200, "0123456789")),
        open("7.1", "size in capitals", chunks("A\r\n0123456789\r\n0\r\n\r\n"), kept(200, "0123456789")),
        open("7.1", "size of two digits", chunks("10\r\n0123456789abcdef\r\n0\r\n\r\n"), kept(200, "0123456789abcdef")),
        open("7.1", "size with leading zeros", chunks("0005\r\nhello\r\n0\r\n\r\n"), kept(200, "hello")),
        open("7.1", "size with 30 leading zeros", chunks("0000000000000000000000000000005\r\nhello\r\n0\r\n\r\n"), kept(200, "hello")),
        open("7.1", "last chunk of many zeros", chunks("5\r\nhello\r\n000000\r\n\r\n"), kept(200, "hello")),
        open("7.1", "size of 65 digits", chunks(&format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(64))), Limit),
        open("7.1", "a size without end", chunks(&"0".repeat(100_000)), Limit),
        open("7.1", "size 2^64", chunks("10000000000000000\r\nhello"), Malformed),
        open("7.1", "size 2^64 + 5", chunks("10000000000000005\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "size 2^64 - 1 is waited for", chunks("ffffffffffffffff\r\nhello"), Pending),
        closed("8", "size 2^63 cut short", chunks("8000000000000000\r\nhello"), Truncated),
        open("7.1", "size with 0x", chunks("0x5\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "size with a plus sign", chunks("+5\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "size with a minus sign", chunks("-5\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "size with an underscore", chunks("0_5\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "size with a letter past f", chunks("5g\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "size with a dot", chunks("5.0\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "no size", chunks("\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "no size but an extension", chunks(";a=b\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "space before the size", chunks(" 5\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "text instead of chunks", chunks("hello"), Malformed),
        open("7.1", "a body that happens to begin with hexadecimal digits", chunks("face it"), Malformed),
        open("7.1", "NUL in the size", chunks("5\0\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "a chunk smaller than its size says", chunks("6\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "a chunk larger than its size says", chunks("4\r\nhello\r\n0\r\n\r\n"), Malformed),
    ]
}

#[rustfmt::skip] // one case a line
fn lines() -> Vec<Case> {
    vec![
        open("7.1", "LF alone after the size", chunks("5\nhello\r\n0\r\n\r\n"), Malformed),
        open("7.1", "LF alone after the data", chunks("5\r\nhello\n0\r\n\r\n"), Malformed),
        open("7.1", "LF alone after the last size", chunks("5\r\nhello\r\n0\n\r\n"), Malformed),
        open("7.1", "LF alone at the very end", chunks("5\r\nhello\r\n0\r\n\n"), Malformed),
        open("2.2", "CR and something after the size", chunks("5\rXhello\r\n0\r\n\r\n"), Malformed),
        open("2.2", "two CRs after the size", chunks("5\r\r\nhello\r\n0\r\n\r\n"), Malformed),
        open("2.2", "CR and something after the data", chunks("5\r\nhello\rX0\r\n\r\n"), Malformed),
        open("2.2", "CR and something at the very end", chunks("0\r\n\rX"), Malformed),
        open("7.1", "nothing after the data", chunks("5\r\nhello0\r\n\r\n"), Malformed),
        open("7.1", "data that holds line ends", chunks("7\r\na\r\nb\r\nc\r\n0\r\n\r\n"), kept(200, "a\r\nb\r\nc")),
        open("7.1", "data that looks like the end", chunks("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), kept(200, "0\r\n\r\n")),
        open("7.1", "not at the end yet", chunks("5\r\nhello\r\n"), Pending),
        open("7.1", "no last blank line yet", chunks("5\r\nhello\r\n0\r\n"), Pending),
        open("7.1", "half the last blank line", chunks("5\r\nhello\r\n0\r\n\r"), Pending),
        closed("8", "closed before any chunk", chunks(""), Truncated),
        closed("8", "closed within a size", chunks("5"), Truncated),
        closed("8", "closed within the data", chunks("5\r\nhel"), Truncated),
        closed("8", "closed after a chunk", chunks("5\r\nhello\r\n"), Truncated),
        closed("8", "closed after the last size", chunks("5\r\nhello\r\n0\r\n"), Truncated),
        closed("8", "closed before the last LF", chunks("5\r\nhello\r\n0\r\n\r"), Truncated),
        closed("8", "closed at the end", chunks("5\r\nhello\r\n0\r\n\r\n"), kept(200, "hello")),
        open("9.2", "bytes behind the last chunk", chunks("0\r\n\r\nextra"), spare(200, "", 5)),
        open("9.2", "an answer behind the last chunk", chunks("0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), spare(200, "", 19)),
        open("9.6", "chunked, then closing", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n", last(200, "hi")),
    ]
}

#[rustfmt::skip] // one case a line
fn extensions() -> Vec<Case> {
    let with = |extension: &str| chunks(&format!("5{extension}\r\nhello\r\n0\r\n\r\n"));
    vec![
        open("7.1.1", "extension with a value", with(";a=b"), kept(200, "hello")),
        open("7.1.1", "extension without a value", with(";a"), kept(200, "hello")),
        open("7.1.1", "extension in quotes", with(";a=\"b c;d\""), kept(200, "hello")),
        open("7.1.1", "extension with an escaped quote", with(";a=\"b\\\"c\""), kept(200, "hello")),
        open("7.1.1", "three extensions", with(";a=b;c;d=\"e\""), kept(200, "hello")),
        open("7.1.1", "white space around the semicolon", with(" ; a = b"), kept(200, "hello")),
        open("7.1.1", "tab before the semicolon", with("\t;a"), kept(200, "hello")),
        open("7.1.1", "extension on the last chunk", chunks("5\r\nhello\r\n0;a=b\r\n\r\n"), kept(200, "hello")),
        open("7.1.1", "space after the size without an extension", with(" "), Malformed),
        open("7.1.1", "spaces that pad the size", with("   "), Malformed),
        open("7.1.1", "word after a space", with(" a"), Malformed),
        open("7.1.1", "second size after a space", with(" 5"), Malformed),
        open("7.1.1", "LF in an extension", with(";a\nb"), Malformed),
        open("7.1.1", "CR in an extension", with(";a\rb"), Malformed),
        open("7.1.1", "NUL in an extension", with(";a\0b"), Malformed),
        open("7.1.1", "LF in a quoted extension", with(";a=\"b\r\nc\""), Malformed),
        open("7.1.1", "obs-text in an extension", with(";a=\"\u{e9}\""), kept(200, "hello")),
        open("7.1.1", "extension of 4 KiB", with(&format!(";{}", "a".repeat(4095))), kept(200, "hello")),
        open("7.1.1", "extension over 4 KiB", with(&format!(";{}", "a".repeat(5000))), Limit),
        open("7.1.1", "white space without end", with(&" ".repeat(5000)), Limit),
    ]
}

#[rustfmt::skip] // one case a line
fn trailers() -> Vec<Case> {
    let with = |lines: &str| chunks(&format!("5\r\nhello\r\n0\r\n{lines}\r\n"));
    vec![
        open("7.1.2", "one trailer", with("A: b\r\n"), kept(200, "hello")),
        open("7.1.2", "three trailers", with("A: b\r\nC: d\r\nE:\r\n"), kept(200, "hello")),
        open("7.1.2", "folded trailer", with("A: b\r\n c\r\n"), kept(200, "hello")),
        open("7.1.2", "a trailer that names a length is not heeded", with("Content-Length: 9\r\n"), kept(200, "hello")),
        open("7.1.2", "a trailer that says close is not heeded", with("Connection: close\r\n"), kept(200, "hello")),
        open("5", "trailer without a colon", with("A\r\n"), Malformed),
        open("5.1", "trailer without a name", with(": b\r\n"), Malformed),
        open("5.1", "space before the colon of a trailer", with("A : b\r\n"), Malformed),
        open("2.2", "white space before the first trailer", with(" A: b\r\n"), Malformed),
        open("9110 5.5", "NUL in a trailer", with("A: b\0\r\n"), Malformed),
        open("2.2", "LF alone after a trailer", with("A: b\n"), Malformed),
        open("2.2", "CR in a trailer", with("A: b\rc\r\n"), Malformed),
        open("7.1.2", "256 trailers", with(&"A: b\r\n".repeat(256)), kept(200, "hello")),
        open("7.1.2", "257 trailers", with(&"A: b\r\n".repeat(257)), Limit),
        open("7.1.2", "a trailer without end", with(&format!("A: {}", "b".repeat(70_000))), Limit),
        open("7.1.2", "not at the end of the trailers yet", chunks("0\r\nA: b\r\n"), Pending),
        closed("8", "closed within the trailers", chunks("0\r\nA: b\r\n"), Truncated),
        open("7.1.2", "another answer instead of the blank line", chunks("0\r\nHTTP/1.1 200 OK\r\n\r\n"), Malformed),
    ]
}
