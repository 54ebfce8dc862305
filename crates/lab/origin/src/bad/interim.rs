//! Interim answers (1xx), which come before the answer and never instead of it.

use super::{cut, either, fresh, good, keep, kept, send, Act, Behaviour, Script, MS};

const OK: &[&str] = &["ok"];
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

const fn good_after(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    kept(name, "RFC 9110 15.2", OK, what, script)
}

pub(super) const ALL: &[Behaviour] = &[
    good_after(
        "interim_100",
        "100 Continue that was not requested, then the answer",
        |_| keep(format!("{CONTINUE}{}", good())),
    ),
    good_after("interim_102", "102 Processing, 10 ms, the answer", |_| {
        vec![
            send("HTTP/1.1 102 Processing\r\n\r\n"),
            Act::Wait(10 * MS),
            send(good()),
            Act::Answered,
            Act::Next,
        ]
    }),
    good_after(
        "interim_103",
        "103 Early Hints with header lines, then the answer",
        |_| {
            keep(format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n{}",
                good()
            ))
        },
    ),
    good_after(
        "interim_199",
        "an unknown interim status, then the answer",
        |_| keep(format!("HTTP/1.1 199 Surprise\r\n\r\n{}", good())),
    ),
    good_after(
        "interim_length",
        "100 with a Content-Length, which has no body all the same",
        |_| {
            keep(format!(
                "HTTP/1.1 100 Continue\r\nContent-Length: 26\r\n\r\n{}",
                good()
            ))
        },
    ),
    good_after(
        "interim_three",
        "three interim answers, then the answer",
        |_| keep(format!("{}{}", CONTINUE.repeat(3), good())),
    ),
    either(
        "interim_close",
        "RFC 9110 15.2",
        &["ok", "malformed"],
        "100 with Connection: close, then the answer",
        |_| {
            keep(format!(
                "HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n{}",
                good()
            ))
        },
    ),
    either(
        "interim_100_times",
        "RFC 9110 15.2",
        &["ok", "limit"],
        "100 interim answers, then the answer",
        |_| keep(format!("{}{}", CONTINUE.repeat(100), good())),
    ),
    kept("interim_204", "6.3", OK, "100, then 204", |_| {
        keep(format!("{CONTINUE}HTTP/1.1 204 No Content\r\n\r\n"))
    }),
    fresh(
        "interim_endless",
        "RFC 9110 15.2",
        &["limit", "timeout", "malformed"],
        "interim answers without end",
        |_| vec![Act::Endless(CONTINUE.repeat(160).into_bytes().into())],
    ),
    fresh(
        "interim_101",
        "RFC 9110 15.2.2",
        &["malformed", "unexpected_status"],
        "101 to a client that asked for no other protocol",
        |_| {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
            vec![send(format!("{head}raw bytes")), Act::Answered, Act::Stall]
        },
    ),
    fresh(
        "interim_then_close",
        "8",
        &["closed_before_response", "truncated"],
        "100, then the end",
        |_| cut(CONTINUE),
    ),
    fresh(
        "interim_then_reset",
        "9.5",
        &["reset"],
        "100, then a reset",
        |_| super::reset(CONTINUE),
    ),
    fresh(
        "interim_then_stall",
        "RFC 9110 15.2",
        &["timeout"],
        "100, then silence",
        |_| vec![send(CONTINUE), Act::Stall],
    ),
];
