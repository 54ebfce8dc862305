//! Status lines and header lines: odd, wrong, too many, too long.

use super::{broken, either, finish, fresh, keep, kept, ok, send, Act, Behaviour, Script, BODY};

const OK: &[&str] = &["ok"];
const REFUSED: &[&str] = &["malformed"];
/// The RFC lets a client repair or refuse it.
const REFUSED_OR_OK: &[&str] = &["malformed", "ok"];
const OK_OR_REFUSED: &[&str] = &["ok", "malformed"];
const BOUND: &[&str] = &["limit", "timeout"];

/// An answer that begins with this line.
fn begins(status_line: &str) -> String {
    format!("{status_line}\r\nContent-Length: 26\r\n\r\n{BODY}")
}

/// An answer with this header line and a Content-Length.
fn with(line: &str) -> String {
    ok(&format!("{line}\r\nContent-Length: 26\r\n"), BODY)
}

fn bytes(head: &[u8]) -> Vec<Act> {
    let mut all = b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n".to_vec();
    all.extend_from_slice(head);
    all.extend_from_slice(b"\r\n\r\n");
    all.extend_from_slice(BODY.as_bytes());
    vec![Act::Send(all.into()), Act::Answered, Act::Next]
}

const fn wrong(
    name: &'static str,
    rfc: &'static str,
    what: &'static str,
    script: Script,
) -> Behaviour {
    fresh(name, rfc, REFUSED, what, script)
}

const fn odd(
    name: &'static str,
    rfc: &'static str,
    what: &'static str,
    script: Script,
) -> Behaviour {
    either(name, rfc, OK_OR_REFUSED, what, script)
}

/// Answered whole, so both readings leave the connection in order; refusing is the better one.
const fn refusable(
    name: &'static str,
    rfc: &'static str,
    what: &'static str,
    script: Script,
) -> Behaviour {
    either(name, rfc, REFUSED_OR_OK, what, script)
}

pub(super) const ALL: &[Behaviour] = &[
    kept(
        "reason_empty",
        "4",
        OK,
        "200 and a space, no reason",
        |_| keep(begins("HTTP/1.1 200 ")),
    ),
    odd(
        "reason_no_space",
        "4",
        "200 without the space after it",
        |_| keep(begins("HTTP/1.1 200")),
    ),
    kept("reason_other_script", "4", OK, "a reason in UTF-8", |_| {
        keep(begins("HTTP/1.1 200 \u{3b1}\u{3b2}"))
    }),
    either(
        "reason_8k",
        "4",
        &["ok", "limit"],
        "a reason of 8 KiB",
        |_| keep(begins(&format!("HTTP/1.1 200 {}", "x".repeat(8192)))),
    ),
    kept(
        "status_500",
        "RFC 9110 15.6",
        &["unexpected_status"],
        "500 with a body",
        |_| keep(begins("HTTP/1.1 500 Oops")),
    ),
    fresh(
        "status_404_close",
        "RFC 9110 15.5",
        &["unexpected_status"],
        "404 and Connection: close",
        |_| {
            finish(format!(
                "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    ),
    either(
        "status_999",
        "RFC 9110 15",
        &["unexpected_status", "malformed"],
        "a status above 599",
        |_| keep(begins("HTTP/1.1 999 Odd")),
    ),
    either(
        "status_600",
        "RFC 9110 15",
        &["unexpected_status", "malformed"],
        "a status just above 599",
        |_| keep(begins("HTTP/1.1 600 Odd")),
    ),
    wrong("status_000", "RFC 9110 15", "status 000", |_| {
        broken(begins("HTTP/1.1 000 Odd"))
    }),
    wrong("status_020", "RFC 9110 15", "status 020", |_| {
        broken(begins("HTTP/1.1 020 Odd"))
    }),
    wrong("status_20", "4", "a status of two digits", |_| {
        broken(begins("HTTP/1.1 20 OK"))
    }),
    wrong("status_2000", "4", "a status of four digits", |_| {
        broken(begins("HTTP/1.1 2000 OK"))
    }),
    wrong("status_letters", "4", "status OK", |_| {
        broken(begins("HTTP/1.1 OK 200"))
    }),
    wrong("status_minus", "4", "status -20", |_| {
        broken(begins("HTTP/1.1 -20 OK"))
    }),
    wrong("status_missing", "4", "HTTP/1.1 and nothing else", |_| {
        broken(begins("HTTP/1.1"))
    }),
    wrong(
        "status_two_spaces",
        "4",
        "two spaces before the status",
        |_| broken(begins("HTTP/1.1  200 OK")),
    ),
    wrong("status_tab", "4", "a tab before the status", |_| {
        broken(begins("HTTP/1.1\t200 OK"))
    }),
    wrong("version_2", "2.3", "HTTP/2.0", |_| {
        broken(begins("HTTP/2.0 200 OK"))
    }),
    odd("version_12", "2.3", "HTTP/1.2, to be read as 1.1", |_| {
        keep(begins("HTTP/1.2 200 OK"))
    }),
    wrong("version_lower_case", "2.3", "http/1.1", |_| {
        broken(begins("http/1.1 200 OK"))
    }),
    wrong("version_short", "2.3", "HTTP/1", |_| {
        broken(begins("HTTP/1 200 OK"))
    }),
    wrong("version_long", "2.3", "HTTP/1.10", |_| {
        broken(begins("HTTP/1.10 200 OK"))
    }),
    wrong("version_other", "2.3", "ICY 200 OK", |_| {
        broken(begins("ICY 200 OK"))
    }),
    wrong("version_09", "2.3", "a body without any head", |_| {
        broken("<html>no head at all</html>\r\n\r\n")
    }),
    wrong("garbage", "4", "bytes that mean nothing", |_| {
        vec![
            Act::Send(
                vec![
                    0x16, 3, 1, 0, 0xff, 0, b'\r', b'\n', 0, 0, b'\r', b'\n', b'\r', b'\n',
                ]
                .into(),
            ),
            Act::Stall,
        ]
    }),
    fresh(
        "garbage_endless",
        "4",
        &["malformed", "limit"],
        "letters without a line end",
        |_| vec![Act::Endless("x".repeat(4096).into_bytes().into())],
    ),
    refusable(
        "empty_line_first",
        "2.2",
        "an empty line before the status line",
        |_| keep(format!("\r\n{}", super::good())),
    ),
    either(
        "bare_lf",
        "2.2",
        OK_OR_REFUSED,
        "LF alone at the end of every line of the head",
        |_| keep(format!("HTTP/1.1 200 OK\nContent-Length: 26\n\n{BODY}")),
    ),
    odd("bare_lf_last", "2.2", "LF alone as the empty line", |_| {
        keep(format!("HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\n{BODY}"))
    }),
    refusable("bare_cr", "2.2", "CR alone inside a value", |_| {
        keep(with("X-Odd: a\rb"))
    }),
    refusable("header_nul", "RFC 9110 5.5", "a NUL inside a value", |_| {
        bytes(b"X-Odd: a\0b")
    }),
    refusable(
        "header_control",
        "RFC 9110 5.5",
        "a control character inside a value",
        |_| bytes(b"X-Odd: a\x01b"),
    ),
    kept(
        "header_obs_text",
        "RFC 9110 5.5",
        OK,
        "bytes above 127 inside a value",
        |_| bytes(b"X-Odd: \xe9\xff"),
    ),
    kept(
        "header_empty",
        "5.1",
        OK,
        "a header without a value",
        |_| keep(with("X-Empty:")),
    ),
    odd(
        "header_folded",
        "5.2",
        "a folded line: to be read as a space",
        |_| keep(with("X-Odd: a\r\n b")),
    ),
    odd("length_folded", "5.2", "a folded Content-Length", |_| {
        keep(ok("Content-Length:\r\n 26\r\n", BODY))
    }),
    refusable(
        "header_space_first",
        "2.2",
        "a space between the status line and the first header",
        |_| keep(ok(" X-Odd: a\r\nContent-Length: 26\r\n", BODY)),
    ),
    refusable("header_no_colon", "5", "a line without a colon", |_| {
        keep(with("this is no header"))
    }),
    refusable(
        "header_no_name",
        "5.1",
        "a line that begins with a colon",
        |_| keep(with(": value")),
    ),
    refusable(
        "header_space_in_name",
        "5.1",
        "a space inside a name",
        |_| keep(with("X Odd: value")),
    ),
    refusable(
        "header_odd_name",
        "5.1",
        "a name that is not a token",
        |_| keep(with("X-\u{e9}(): value")),
    ),
    kept("headers_50", "5", OK, "50 header lines", |_| many(50)),
    either(
        "headers_300",
        "5",
        &["ok", "limit"],
        "300 header lines",
        |_| many(300),
    ),
    either(
        "headers_3000",
        "5",
        &["limit", "ok"],
        "3000 header lines",
        |_| many(3000),
    ),
    kept("head_8k", "5", OK, "a header of 8 KiB", |_| {
        keep(with(&format!("X-Long: {}", "x".repeat(8192))))
    }),
    either(
        "head_60k",
        "5",
        &["ok", "limit"],
        "a header of 60 KiB",
        |_| keep(with(&format!("X-Long: {}", "x".repeat(60 * 1024)))),
    ),
    either(
        "head_1m",
        "5",
        &["limit", "ok"],
        "a header of 1 MiB",
        |_| keep(with(&format!("X-Long: {}", "x".repeat(1 << 20)))),
    ),
    fresh(
        "headers_endless",
        "5",
        BOUND,
        "header lines without end",
        |_| {
            let lines = "X-More: value\r\n".repeat(256);
            vec![
                send("HTTP/1.1 200 OK\r\n"),
                Act::Endless(lines.into_bytes().into()),
            ]
        },
    ),
    fresh(
        "header_endless",
        "5",
        BOUND,
        "one header without end",
        |_| {
            vec![
                send("HTTP/1.1 200 OK\r\nX-Long: "),
                Act::Endless("x".repeat(4096).into_bytes().into()),
            ]
        },
    ),
    fresh("reason_endless", "4", BOUND, "a reason without end", |_| {
        vec![
            send("HTTP/1.1 200 "),
            Act::Endless("x".repeat(4096).into_bytes().into()),
        ]
    }),
];

fn many(count: usize) -> Vec<Act> {
    let lines: String = (0..count)
        .map(|at| format!("X-Header-{at}: value\r\n"))
        .collect();
    keep(ok(&format!("{lines}Content-Length: 26\r\n"), BODY))
}
