//! Status line, header lines, interim responses.

use super::{closed, kept, last, open, spare, to_head};
use crate::Case;
use crate::Ending::{ClosedInHead, Limit, Malformed, Pending};

/// A 200 with these header lines and an empty body.
fn with(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n").into_bytes()
}

pub(super) fn cases() -> Vec<Case> {
    [status_line(), header_lines(), interim(), bounds()]
        .into_iter()
        .flatten()
        .collect()
}

#[rustfmt::skip] // one case a line
fn status_line() -> Vec<Case> {
    let empty = "Content-Length: 0\r\n\r\n";
    let line = |line: &str| format!("{line}\r\n{empty}").into_bytes();
    vec![
        open("4", "plain status line", line("HTTP/1.1 200 OK"), kept(200, "")),
        open("4", "empty reason after the space", line("HTTP/1.1 200 "), kept(200, "")),
        open("4 MAY", "no space after the status", line("HTTP/1.1 200"), kept(200, "")),
        open("4", "reason of many words", line("HTTP/1.1 404 Not Found Here At All"), kept(404, "")),
        open("4", "reason with tab and obs-text", line("HTTP/1.1 200 a\tb\u{e9}"), kept(200, "")),
        open("4", "two spaces before the reason", line("HTTP/1.1 200  OK"), kept(200, "")),
        open("4", "reason with NUL", line("HTTP/1.1 200 O\0K"), Malformed),
        open("4", "reason with an escape byte", line("HTTP/1.1 200 \x1b[31m"), Malformed),
        open("4", "reason with DEL", line("HTTP/1.1 200 O\x7fK"), Malformed),
        open("2.2", "CR within the reason", line("HTTP/1.1 200 O\rK"), Malformed),
        open("4", "two spaces before the status", line("HTTP/1.1  200 OK"), Malformed),
        open("4", "tab before the status", line("HTTP/1.1\t200 OK"), Malformed),
        open("4", "no space before the status", line("HTTP/1.1200 OK"), Malformed),
        open("4", "status of two digits", line("HTTP/1.1 20 OK"), Malformed),
        open("4", "status of four digits", line("HTTP/1.1 2000 OK"), Malformed),
        open("4", "status with a letter", line("HTTP/1.1 2x0 OK"), Malformed),
        open("4", "status with a sign", line("HTTP/1.1 +20 OK"), Malformed),
        open("4", "status of full-width digits", line("HTTP/1.1 \u{ff12}00 OK"), Malformed),
        open("4", "no status", line("HTTP/1.1 OK"), Malformed),
        open("4", "nothing after the version", line("HTTP/1.1 "), Malformed),
        open("4", "version alone", line("HTTP/1.1"), Malformed),
        open("4", "comma after the status", line("HTTP/1.1 200,OK"), Malformed),
        open("9110 15", "status 000", line("HTTP/1.1 000 Zero"), Malformed),
        open("9110 15", "status 020", line("HTTP/1.1 020 Low"), Malformed),
        open("9110 15", "status 099", line("HTTP/1.1 099 Low"), Malformed),
        open("9110 15", "status 600", line("HTTP/1.1 600 High"), Malformed),
        open("9110 15", "status 999", line("HTTP/1.1 999 High"), Malformed),
        open("9110 15", "status 599", line("HTTP/1.1 599 Edge"), kept(599, "")),
        open("9110 15", "unknown status of a known class", line("HTTP/1.1 299 Odd"), kept(299, "")),
        open("9110 15.5.6", "status 405", line("HTTP/1.1 405 Method Not Allowed"), kept(405, "")),
        open("9110 15.6.4", "status 503", line("HTTP/1.1 503 Service Unavailable"), kept(503, "")),
        open("2.3", "lower-case version", line("http/1.1 200 OK"), Malformed),
        open("2.3", "HTTP/2", line("HTTP/2 200 OK"), Malformed),
        open("2.3", "HTTP/2.0", line("HTTP/2.0 200 OK"), Malformed),
        open("2.3", "HTTP/0.9", line("HTTP/0.9 200 OK"), Malformed),
        open("2.3", "HTTP/1", line("HTTP/1 200 OK"), Malformed),
        open("2.3", "HTTP/1.10", line("HTTP/1.10 200 OK"), Malformed),
        open("2.3", "HTTP/01.1", line("HTTP/01.1 200 OK"), Malformed),
        open("2.3", "HTTP/1.x", line("HTTP/1.x 200 OK"), Malformed),
        open("9110 2.5", "a minor version to come", line("HTTP/1.2 200 OK"), kept(200, "")),
        open("9110 2.5", "HTTP/1.9", line("HTTP/1.9 200 OK"), kept(200, "")),
        open("2.3", "another protocol", "SSH-2.0-OpenSSH_9.2\r\n", Malformed),
        open("2.3", "a TLS alert", b"\x15\x03\x01\x00\x02\x02\x46", Malformed),
        open("2.3", "an HTTP/2 settings frame", b"\0\0\x12\x04\0\0\0\0\0", Malformed),
        open("2.3", "a request instead of a response", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", Malformed),
        open("2.3", "HTML without a head", "<html></html>", Malformed),
        open("2.3", "ICY as old streaming servers say", "ICY 200 OK\r\n\r\n", Malformed),
        open("2.2", "space before the status line", line(" HTTP/1.1 200 OK"), Malformed),
        open("2.2", "empty line before the status line", line("\r\nHTTP/1.1 200 OK"), Malformed),
        open("2.2", "byte order mark", line("\u{feff}HTTP/1.1 200 OK"), Malformed),
        open("2.1", "only the status line so far", "HTTP/1.1 200 OK\r\n", Pending),
        open("2.1", "half a status line", "HTTP/1.1 2", Pending),
        open("2.1", "nothing", "", Pending),
        closed("8", "closed before any byte", "", ClosedInHead),
        closed("8", "closed within the status line", "HTTP/1.1 20", ClosedInHead),
        closed("8", "closed after the status line", "HTTP/1.1 200 OK\r\n", ClosedInHead),
        closed("8", "closed within a header", "HTTP/1.1 200 OK\r\nContent-Le", ClosedInHead),
        closed("8", "closed before the blank line", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", ClosedInHead),
        closed("8", "closed within the blank line", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", ClosedInHead),
    ]
}

#[rustfmt::skip] // one case a line
fn header_lines() -> Vec<Case> {
    vec![
        open("5", "no white space after the colon", with("A:b\r\n"), kept(200, "")),
        open("5", "much white space around a value", with("A: \t  b \t \r\n"), kept(200, "")),
        open("5", "empty value", with("A:\r\n"), kept(200, "")),
        open("5", "value of white space", with("A:   \r\n"), kept(200, "")),
        open("5", "colons in the value", with("A: b:c::d\r\n"), kept(200, "")),
        open("5.1", "every token byte in a name", with("!#$%&'*+-.^_`|~09azAZ: b\r\n"), kept(200, "")),
        open("5.1", "space before the colon", with("A : b\r\n"), Malformed),
        open("5.1", "tab before the colon", with("A\t: b\r\n"), Malformed),
        open("5.1", "space before the colon of Content-Length", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", Malformed),
        open("5.1", "space within a name", with("A B: c\r\n"), Malformed),
        open("5.1", "empty name", with(": b\r\n"), Malformed),
        open("5", "no colon", with("A\r\n"), Malformed),
        open("5", "no colon but text", with("this is no header\r\n"), Malformed),
        open("5.1", "obs-text in a name", with("\u{e9}: b\r\n"), Malformed),
        open("5.1", "parenthesis in a name", with("a(b): c\r\n"), Malformed),
        open("5.1", "slash in a name", with("a/b: c\r\n"), Malformed),
        open("5.1", "at sign in a name", with("a@b: c\r\n"), Malformed),
        open("5.1", "quotes around a name", with("\"a\": b\r\n"), Malformed),
        open("5.1", "NUL in a name", with("a\0b: c\r\n"), Malformed),
        open("9110 5.5", "NUL in a value", with("A: b\0c\r\n"), Malformed),
        open("9110 5.5", "escape byte in a value", with("A: \x1b[0m\r\n"), Malformed),
        open("9110 5.5", "DEL in a value", with("A: b\x7f\r\n"), Malformed),
        open("9110 5.5", "vertical tab in a value", with("A: b\x0bc\r\n"), Malformed),
        open("9110 5.5", "tab in a value", with("A: b\tc\r\n"), kept(200, "")),
        open("9110 5.5", "UTF-8 in a value", with("A: gr\u{fc}n\r\n"), kept(200, "")),
        open("9110 5.5", "Latin-1 in a value", b"HTTP/1.1 200 OK\r\nA: gr\xfcn\r\nContent-Length: 0\r\n\r\n", kept(200, "")),
        open("2.2", "CR in a value", with("A: b\rc\r\n"), Malformed),
        open("2.2", "two CRs at the end of a line", with("A: b\r\r\n"), Malformed),
        open("2.2", "CR alone as the end of a line", "HTTP/1.1 200 OK\rContent-Length: 0\r\r", Malformed),
        open("2.2 MAY", "LF alone ends lines", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", kept(200, "hi")),
        open("2.2 MAY", "LF alone ends one line", "HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\r\nhi", kept(200, "hi")),
        open("2.2 MAY", "LF alone as the blank line", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nhi", kept(200, "hi")),
        open("2.2", "CR and something as the blank line", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\rXhi", Malformed),
        open("2.2", "white space before the first header", with(" A: b\r\n"), Malformed),
        open("2.2", "tab before the first header", with("\tA: b\r\n"), Malformed),
        open("5.2", "folded value", with("A: b\r\n c\r\n"), kept(200, "")),
        open("5.2", "value folded by a tab, twice", with("A: b\r\n\tc\r\n\td\r\n"), kept(200, "")),
        open("5.2", "fold before any value", with("A:\r\n b\r\n"), kept(200, "")),
        open("5.2", "fold with nothing in it", with("A: b\r\n \r\n"), kept(200, "")),
        open("5.2", "folded Content-Length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nhi", kept(200, "hi")),
        open("5.2", "Content-Length folded in two", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n 2\r\n\r\nhi", Malformed),
        open("5.2", "folded Connection", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: a,\r\n close\r\n\r\n", last(200, "")),
        open("5.2", "header hidden in a fold", "HTTP/1.1 200 OK\r\nA: b\r\n Content-Length: 9\r\nContent-Length: 2\r\n\r\nhi", kept(200, "hi")),
        open("5.2", "NUL in a fold", with("A: b\r\n c\0\r\n"), Malformed),
        open("5", "names in capitals", "HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 2\r\n\r\nhi", kept(200, "hi")),
        open("5", "names in small letters", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", kept(200, "hi")),
        open("5", "a name that begins like one that matters", with("Content-Lengthy: 9\r\n"), kept(200, "")),
        open("5", "a name that ends like one that matters", with("X-Content-Length: 9\r\n"), kept(200, "")),
        open("5", "a name as long as Content-Length", with("Xontent-Length: 9\r\n"), kept(200, "")),
        open("5", "the same header many times", with("Set-Cookie: a\r\nSet-Cookie: b\r\n"), kept(200, "")),
        open("2.1", "half a header so far", "HTTP/1.1 200 OK\r\nContent-Le", Pending),
        open("2.1", "no blank line so far", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", Pending),
        open("2.1", "half the blank line so far", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", Pending),
    ]
}

#[rustfmt::skip] // one case a line
fn interim() -> Vec<Case> {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    vec![
        open("9110 15.2", "100 before the answer", format!("HTTP/1.1 100 Continue\r\n\r\n{ok}"), kept(200, "hi")),
        open("9110 15.2", "102 before the answer", format!("HTTP/1.1 102 Processing\r\n\r\n{ok}"), kept(200, "hi")),
        open("9110 15.2", "103 with links before the answer", format!("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n{ok}"), kept(200, "hi")),
        open("9110 15.2", "an unknown interim status", format!("HTTP/1.1 199 Soon\r\n\r\n{ok}"), kept(200, "hi")),
        open("9110 15.2", "three interim responses", format!("{0}{0}{0}{ok}", "HTTP/1.1 100 Continue\r\n\r\n"), kept(200, "hi")),
        open("9112 6.3 rule 1", "interim with a Content-Length", format!("HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n{ok}"), kept(200, "hi")),
        open("9112 6.3 rule 1", "interim with chunked", format!("HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n{ok}"), kept(200, "hi")),
        open("9112 6.3 rule 1", "interim with a Content-Length of letters", format!("HTTP/1.1 100 Continue\r\nContent-Length: x\r\n\r\n{ok}"), kept(200, "hi")),
        open("9.3", "interim with Connection: close", format!("HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n{ok}"), kept(200, "hi")),
        open("9110 15.2.2", "101 without an Upgrade in the request", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", Malformed),
        open("9110 15.2", "only interim responses so far", "HTTP/1.1 100 Continue\r\n\r\n", Pending),
        closed("9110 15.2", "closed after an interim response", "HTTP/1.1 100 Continue\r\n\r\n", ClosedInHead),
        open("9110 15.2", "interim that is malformed", format!("HTTP/1.1 100 Continue\r\n: x\r\n\r\n{ok}"), Malformed),
        open("9110 15.2", "interim, then something else", "HTTP/1.1 100 Continue\r\n\r\nhello", Malformed),
        open("9110 15.2", "a body after an interim response", format!("HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\nhi{ok}"), Malformed),
        to_head("9110 15.2", "interim before the answer to HEAD", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", kept(200, "")),
        open("9110 15.2", "interim after the answer", format!("{ok}HTTP/1.1 100 Continue\r\n\r\n"), spare(200, "hi", 25)),
    ]
}

#[rustfmt::skip] // one case a line
fn bounds() -> Vec<Case> {
    let lines = |count: usize| with(&"A: b\r\n".repeat(count));
    vec![
        open("9110 5.4", "255 headers and the length", lines(255), kept(200, "")),
        open("9110 5.4", "256 headers and the length", lines(256), Limit),
        open("9110 5.4", "a thousand headers", lines(1000), Limit),
        open("9110 5.4", "a name without end", format!("HTTP/1.1 200 OK\r\n{}", "a".repeat(70_000)), Limit),
        open("9110 5.4", "a value without end", format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(70_000)), Limit),
        open("9110 5.4", "a reason without end", format!("HTTP/1.1 200 {}", "a".repeat(70_000)), Limit),
        open("9110 5.4", "a fold without end", format!("HTTP/1.1 200 OK\r\nA: b\r\n{}", " c\r\n".repeat(20_000)), Limit),
        open("9110 5.4", "a large cookie", with(&format!("Set-Cookie: {}\r\n", "a".repeat(60_000))), kept(200, "")),
        open("9110 5.4", "a fault before the bound", format!("HTTP/1.1 200 OK\r\nA\0: {}", "a".repeat(70_000)), Malformed),
    ]
}
