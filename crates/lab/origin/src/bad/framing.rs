//! Transfer-Encoding together with other framing, statuses without a body, and bodies that end with the connection.

use super::{finish, keep, ok, send, spoil, Act, Behaviour, BODY, MS};

const OK: &[&str] = &["ok"];
const EITHER: &[&str] = &["ok", "malformed"];
const CHUNKS: &str = "1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n";

/// An answer with this Transfer-Encoding whose body is chunked.
fn coded(value: &str) -> String {
    ok(&format!("Transfer-Encoding: {value}\r\n"), CHUNKS)
}

/// An answer with this Transfer-Encoding whose body ends with the connection.
fn until_end(value: &str) -> Vec<Act> {
    finish(ok(&format!("Transfer-Encoding: {value}\r\n"), BODY))
}

pub(super) const ALL: &[Behaviour] = &[
    Behaviour::new(
        "te_and_length",
        "6.3",
        EITHER,
        "chunked and a Content-Length: chunked counts",
        |_| {
            keep(ok(
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                CHUNKS,
            ))
        },
    ),
    Behaviour::new(
        "length_and_te",
        "6.3",
        EITHER,
        "a Content-Length and then chunked: chunked counts",
        |_| {
            keep(ok(
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                CHUNKS,
            ))
        },
    ),
    Behaviour::new("te_case", "7", OK, "Transfer-Encoding: CHUNKED", |_| {
        keep(coded("CHUNKED"))
    })
    .kept(),
    Behaviour::new("te_spaces", "7", OK, "spaces around chunked", |_| {
        keep(coded("  chunked\t "))
    })
    .kept(),
    Behaviour::new(
        "te_list_last_chunked",
        "6.1",
        EITHER,
        "gzip, chunked: framed by chunks",
        |_| keep(coded("gzip, chunked")),
    ),
    Behaviour::new(
        "te_two_lines",
        "6.1",
        EITHER,
        "gzip and chunked in two lines: framed by chunks",
        |_| {
            keep(ok(
                "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
                CHUNKS,
            ))
        },
    ),
    Behaviour::new(
        "te_chunked_twice",
        "6.1",
        &["malformed", "ok"],
        "chunked, chunked",
        |_| keep(coded("chunked, chunked")),
    ),
    Behaviour::new(
        "te_unknown",
        "6.3",
        EITHER,
        "Transfer-Encoding: gzip: the body ends with the connection",
        |_| until_end("gzip"),
    )
    .fresh(),
    Behaviour::new(
        "te_chunked_not_last",
        "6.3",
        EITHER,
        "chunked, gzip: the body ends with the connection",
        |_| until_end("chunked, gzip"),
    )
    .fresh(),
    Behaviour::new(
        "te_identity",
        "6.3",
        EITHER,
        "the obsolete identity",
        |_| until_end("identity"),
    )
    .fresh(),
    Behaviour::new(
        "te_xchunked",
        "6.3",
        EITHER,
        "Transfer-Encoding: xchunked",
        |_| until_end("xchunked"),
    )
    .fresh(),
    Behaviour::new(
        "te_chunked_x",
        "6.3",
        EITHER,
        "Transfer-Encoding: chunkedx",
        |_| until_end("chunkedx"),
    )
    .fresh(),
    Behaviour::new(
        "te_empty",
        "6.3",
        EITHER,
        "Transfer-Encoding without a value",
        |_| until_end(""),
    )
    .fresh(),
    Behaviour::new(
        "te_unknown_with_length",
        "6.3",
        EITHER,
        "an unknown coding and a Content-Length",
        |_| {
            finish(ok(
                "Transfer-Encoding: gzip\r\nContent-Length: 26\r\n",
                BODY,
            ))
        },
    )
    .fresh(),
    Behaviour::new(
        "te_in_http10",
        "6.1",
        EITHER,
        "chunked in HTTP/1.0: faulty framing, the connection ends",
        |_| {
            let head =
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n";
            vec![send(format!("{head}{CHUNKS}")), Act::Answered, Act::Linger]
        },
    )
    .fresh(),
    Behaviour::new(
        "no_length",
        "6.3",
        OK,
        "no length at all: the body ends with the connection",
        |_| finish(ok("", BODY)),
    )
    .fresh(),
    Behaviour::new(
        "no_length_empty",
        "6.3",
        OK,
        "no length, no body, the end",
        |_| finish(ok("", "")),
    )
    .fresh(),
    Behaviour::new(
        "no_length_late_end",
        "6.3",
        OK,
        "no length; the end comes 20 ms after the body",
        |_| {
            vec![
                send(ok("", BODY)),
                Act::Wait(20 * MS),
                Act::Answered,
                Act::Finish,
            ]
        },
    )
    .fresh(),
    Behaviour::new("no_length_1m", "6.3", OK, "no length and 1 MiB", |_| {
        finish(ok("", &"x".repeat(1 << 20)))
    })
    .fresh(),
    Behaviour::new(
        "no_length_reset",
        "6.3",
        &["reset", "truncated"],
        "no length, and a reset instead of the end",
        |_| super::reset(ok("", BODY)),
    )
    .fresh(),
    Behaviour::new(
        "http10",
        "9.3",
        OK,
        "HTTP/1.0 with a length, then the end",
        |_| {
            finish(format!(
                "HTTP/1.0 200 OK\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    )
    .fresh(),
    Behaviour::new(
        "http10_no_length",
        "9.3",
        OK,
        "HTTP/1.0, the body ends with the connection",
        |_| finish(format!("HTTP/1.0 200 OK\r\n\r\n{BODY}")),
    )
    .fresh(),
    Behaviour::new(
        "http10_kept",
        "9.3",
        OK,
        "HTTP/1.0 with Connection: keep-alive",
        |_| {
            keep(format!(
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    ),
    Behaviour::new(
        "http10_open",
        "9.3",
        OK,
        "HTTP/1.0 without keep-alive that stays open: not to be reused",
        |_| {
            let text = format!("HTTP/1.0 200 OK\r\nContent-Length: 26\r\n\r\n{BODY}");
            vec![send(text), Act::Answered, Act::Linger]
        },
    )
    .fresh(),
    Behaviour::new("status_204", "6.3", OK, "204 without a body", |_| {
        keep("HTTP/1.1 204 No Content\r\n\r\n")
    })
    .kept(),
    Behaviour::new(
        "status_204_length",
        "6.3",
        OK,
        "204 with Content-Length: 26 and no body",
        |_| keep("HTTP/1.1 204 No Content\r\nContent-Length: 26\r\n\r\n"),
    ),
    Behaviour::new(
        "status_204_chunked",
        "6.3",
        OK,
        "204 that says chunked and has no body",
        |_| keep("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ),
    Behaviour::new(
        "status_204_body",
        "6.3",
        OK,
        "204 with a body all the same: poison",
        |_| {
            spoil(format!(
                "HTTP/1.1 204 No Content\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    )
    .fresh(),
    Behaviour::new(
        "status_204_answer",
        "6.3",
        OK,
        "204 with a whole answer as its body: poison",
        |_| spoil(format!("HTTP/1.1 204 No Content\r\n\r\n{}", super::good())),
    )
    .fresh(),
    Behaviour::new(
        "status_304",
        "6.3",
        OK,
        "304 with the length of the body it stands for",
        |_| keep("HTTP/1.1 304 Not Modified\r\nContent-Length: 26\r\n\r\n"),
    )
    .kept(),
    Behaviour::new(
        "status_304_body",
        "6.3",
        OK,
        "304 with a body all the same: poison",
        |_| {
            spoil(format!(
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    )
    .fresh(),
    Behaviour::new(
        "status_205",
        "RFC 9110 15.3.6",
        OK,
        "205 with a length of 0",
        |_| keep("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    )
    .kept(),
    Behaviour::new(
        "head_length",
        "6.3",
        OK,
        "HEAD: the length of the body that GET would give",
        |_| keep(ok("Content-Length: 26\r\n", "")),
    )
    .method("HEAD")
    .kept(),
    Behaviour::new(
        "head_chunked",
        "6.3",
        OK,
        "HEAD: chunked and no body",
        |_| keep(ok("Transfer-Encoding: chunked\r\n", "")),
    )
    .method("HEAD"),
    Behaviour::new(
        "head_no_length",
        "6.3",
        OK,
        "HEAD: no length and no body, and the connection stays",
        |_| keep(ok("", "")),
    )
    .method("HEAD"),
    Behaviour::new(
        "head_body",
        "6.3",
        OK,
        "HEAD: a body all the same: poison",
        |_| spoil(super::good()),
    )
    .method("HEAD")
    .fresh(),
];
