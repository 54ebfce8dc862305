//! Unsolicited bytes: after an answer, between requests, instead of the next answer. A client that counts them as an
//! answer invents requests.

use super::{fresh, good, ok, send, spoil, Act, Behaviour, Script, BODY, MS};

const OK: &[&str] = &["ok"];

/// A whole answer with `extra` in the same piece.
fn with_extra(extra: &str) -> Vec<Act> {
    spoil(format!("{}{extra}", good()))
}

/// A whole answer and, while no request is in flight, `extra`.
fn then_extra(gap_ns: u64, extra: String) -> Vec<Act> {
    vec![
        send(good()),
        Act::Answered,
        Act::Wait(gap_ns),
        send(extra),
        Act::Linger,
    ]
}

const fn poison(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    fresh(name, "9.2", OK, what, script)
}

pub(super) const ALL: &[Behaviour] = &[
    poison(
        "extra_bytes",
        "letters after the body, in the same piece",
        |_| with_extra("extra"),
    ),
    poison("extra_byte", "one byte after the body", |_| with_extra("x")),
    poison("extra_crlf", "an empty line after the body", |_| {
        with_extra("\r\n")
    }),
    poison(
        "extra_answer",
        "a second whole answer in the same piece",
        |_| with_extra(&good()),
    ),
    poison("extra_answers", "ten whole answers in one piece", |_| {
        with_extra(&good().repeat(9))
    }),
    poison("extra_error", "a whole 500 after the answer", |_| {
        with_extra("HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n")
    }),
    poison(
        "extra_half_answer",
        "half of a second head after the body",
        |_| with_extra("HTTP/1.1 200 OK\r\nContent-"),
    ),
    poison("extra_after_chunks", "letters after the last chunk", |_| {
        spoil(ok(
            "Transfer-Encoding: chunked\r\n",
            &format!("1a\r\n{BODY}\r\n0\r\n\r\nextra"),
        ))
    }),
    poison(
        "extra_long_body",
        "a body of 52 bytes of which 26 are announced",
        |_| spoil(ok("Content-Length: 26\r\n", &BODY.repeat(2))),
    ),
    poison("extra_64k", "64 KiB after the body", |_| {
        with_extra(&"x".repeat(64 * 1024))
    }),
    poison(
        "late_bytes",
        "letters 20 ms after the answer, with no request in flight",
        |_| then_extra(20 * MS, "extra".to_owned()),
    )
    .pause_ms(200),
    poison(
        "late_answer",
        "a whole answer 20 ms after the answer, with no request in flight",
        |_| then_extra(20 * MS, good()),
    )
    .pause_ms(200),
    poison(
        "late_answer_50",
        "a whole answer 50 ms after the answer, with no request in flight",
        |_| then_extra(50 * MS, good()),
    )
    .pause_ms(200),
];
