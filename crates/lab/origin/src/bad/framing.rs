//! Transfer-Encoding together with other framing, statuses without a body, and bodies that end with the connection.

use super::{either, finish, fresh, keep, kept, ok, send, spoil, Act, Behaviour, Script, BODY, MS};

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

/// A sound answer after which the connection cannot be used again.
const fn ended(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    fresh(name, "6.3", OK, what, script)
}

/// An answer with a coding other than chunked, whose body ends with the connection.
const fn oddly_coded(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    fresh(name, "6.3", EITHER, what, script)
}

pub(super) const ALL: &[Behaviour] = &[
    either(
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
    either(
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
    kept("te_case", "7", OK, "Transfer-Encoding: CHUNKED", |_| {
        keep(coded("CHUNKED"))
    }),
    kept("te_spaces", "7", OK, "spaces around chunked", |_| {
        keep(coded("  chunked\t "))
    }),
    either(
        "te_list_last_chunked",
        "6.1",
        EITHER,
        "gzip, chunked: framed by chunks",
        |_| keep(coded("gzip, chunked")),
    ),
    either(
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
    either(
        "te_chunked_twice",
        "6.1",
        &["malformed", "ok"],
        "chunked, chunked",
        |_| keep(coded("chunked, chunked")),
    ),
    oddly_coded(
        "te_unknown",
        "Transfer-Encoding: gzip: the body ends with the connection",
        |_| until_end("gzip"),
    ),
    oddly_coded(
        "te_chunked_not_last",
        "chunked, gzip: the body ends with the connection",
        |_| until_end("chunked, gzip"),
    ),
    oddly_coded("te_identity", "the obsolete identity", |_| {
        until_end("identity")
    }),
    oddly_coded("te_xchunked", "Transfer-Encoding: xchunked", |_| {
        until_end("xchunked")
    }),
    oddly_coded("te_chunked_x", "Transfer-Encoding: chunkedx", |_| {
        until_end("chunkedx")
    }),
    oddly_coded("te_empty", "Transfer-Encoding without a value", |_| {
        until_end("")
    }),
    oddly_coded(
        "te_unknown_with_length",
        "an unknown coding and a Content-Length",
        |_| {
            finish(ok(
                "Transfer-Encoding: gzip\r\nContent-Length: 26\r\n",
                BODY,
            ))
        },
    ),
    fresh(
        "te_in_http10",
        "6.1",
        EITHER,
        "chunked in HTTP/1.0: faulty framing, the connection ends",
        |_| {
            let head =
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n";
            vec![send(format!("{head}{CHUNKS}")), Act::Answered, Act::Linger]
        },
    ),
    ended(
        "no_length",
        "no length at all: the body ends with the connection",
        |_| finish(ok("", BODY)),
    ),
    ended("no_length_empty", "no length, no body, the end", |_| {
        finish(ok("", ""))
    }),
    ended(
        "no_length_late_end",
        "no length; the end comes 20 ms after the body",
        |_| {
            vec![
                send(ok("", BODY)),
                Act::Wait(20 * MS),
                Act::Answered,
                Act::Finish,
            ]
        },
    ),
    ended("no_length_1m", "no length and 1 MiB", |_| {
        finish(ok("", &"x".repeat(1 << 20)))
    }),
    fresh(
        "no_length_reset",
        "6.3",
        &["reset", "truncated"],
        "no length, and a reset instead of the end",
        |_| super::reset(ok("", BODY)),
    ),
    fresh(
        "http10",
        "9.3",
        OK,
        "HTTP/1.0 with a length, then the end",
        |_| {
            finish(format!(
                "HTTP/1.0 200 OK\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    ),
    fresh(
        "http10_no_length",
        "9.3",
        OK,
        "HTTP/1.0, the body ends with the connection",
        |_| finish(format!("HTTP/1.0 200 OK\r\n\r\n{BODY}")),
    ),
    either(
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
    fresh(
        "http10_open",
        "9.3",
        OK,
        "HTTP/1.0 without keep-alive that stays open: not to be reused",
        |_| {
            let text = format!("HTTP/1.0 200 OK\r\nContent-Length: 26\r\n\r\n{BODY}");
            vec![send(text), Act::Answered, Act::Linger]
        },
    ),
    kept("status_204", "6.3", OK, "204 without a body", |_| {
        keep("HTTP/1.1 204 No Content\r\n\r\n")
    }),
    either(
        "status_204_length",
        "6.3",
        OK,
        "204 with Content-Length: 26 and no body",
        |_| keep("HTTP/1.1 204 No Content\r\nContent-Length: 26\r\n\r\n"),
    ),
    either(
        "status_204_chunked",
        "6.3",
        OK,
        "204 that says chunked and has no body",
        |_| keep("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ),
    ended(
        "status_204_body",
        "204 with a body all the same: poison",
        |_| {
            spoil(format!(
                "HTTP/1.1 204 No Content\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    ),
    ended(
        "status_204_answer",
        "204 with a whole answer as its body: poison",
        |_| spoil(format!("HTTP/1.1 204 No Content\r\n\r\n{}", super::good())),
    ),
    kept(
        "status_304",
        "6.3",
        OK,
        "304 with the length of the body it stands for",
        |_| keep("HTTP/1.1 304 Not Modified\r\nContent-Length: 26\r\n\r\n"),
    ),
    ended(
        "status_304_body",
        "304 with a body all the same: poison",
        |_| {
            spoil(format!(
                "HTTP/1.1 304 Not Modified\r\nContent-Length: 26\r\n\r\n{BODY}"
            ))
        },
    ),
    kept(
        "status_205",
        "RFC 9110 15.3.6",
        OK,
        "205 with a length of 0",
        |_| keep("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    ),
    kept(
        "head_length",
        "6.3",
        OK,
        "HEAD: the length of the body that GET would give",
        |_| keep(ok("Content-Length: 26\r\n", "")),
    )
    .method("HEAD"),
    either(
        "head_chunked",
        "6.3",
        OK,
        "HEAD: chunked and no body",
        |_| keep(ok("Transfer-Encoding: chunked\r\n", "")),
    )
    .method("HEAD"),
    either(
        "head_no_length",
        "6.3",
        OK,
        "HEAD: no length and no body, and the connection stays",
        |_| keep(ok("", "")),
    )
    .method("HEAD"),
    ended("head_body", "HEAD: a body all the same: poison", |_| {
        spoil(super::good())
    })
    .method("HEAD"),
];
