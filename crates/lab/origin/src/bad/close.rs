//! Ends and resets at every stage, and limits on how often a connection may be used.

use super::{
    cut, either, finish, fresh, good, hang_up, keep, ok, reset, send, Act, Behaviour, Moment, BODY,
    MS,
};

const OK: &[&str] = &["ok"];
/// The client may have sent on a connection that was ending: it says so, and counts no answer.
const OK_OR_REUSE: &[&str] = &["ok", "closed_on_reuse"];
const CLOSED: &[&str] = &["closed_before_response"];
const RESET: &[&str] = &["reset"];

/// A good answer for the first `uses - 1` requests of a connection, `last` for the one after.
fn until(moment: Moment, uses: u64, last: Vec<Act>) -> Vec<Act> {
    if moment.on_connection + 1 < uses {
        keep(good())
    } else {
        last
    }
}

pub(super) const ALL: &[Behaviour] = &[
    fresh(
        "close_no_answer",
        "9.5",
        CLOSED,
        "the end instead of an answer",
        |_| vec![Act::Finish],
    ),
    fresh(
        "close_no_answer_late",
        "9.5",
        CLOSED,
        "the end after 30 ms instead of an answer",
        |_| vec![Act::Wait(30 * MS), Act::Finish],
    ),
    fresh(
        "close_in_status_line",
        "8",
        &["truncated", "closed_before_response", "malformed"],
        "the end after HTTP/1.1 2",
        |_| cut("HTTP/1.1 2"),
    ),
    fresh(
        "close_in_head",
        "8",
        &["truncated", "closed_before_response", "malformed"],
        "the end inside a header line",
        |_| cut("HTTP/1.1 200 OK\r\nContent-Len"),
    ),
    fresh(
        "close_before_empty_line",
        "8",
        &["truncated", "closed_before_response", "malformed"],
        "the end before the empty line",
        |_| cut("HTTP/1.1 200 OK\r\nContent-Length: 26\r\n"),
    ),
    either(
        "close_first_answers_second",
        "9.5",
        &["ok", "closed_on_reuse"],
        "an answer, then the end instead of the second",
        |moment| until(moment, 2, vec![Act::Finish]),
    ),
    fresh(
        "reset_no_answer",
        "9.5",
        RESET,
        "a reset instead of an answer",
        |_| vec![Act::Reset],
    ),
    fresh(
        "reset_no_answer_late",
        "9.5",
        RESET,
        "a reset after 30 ms instead of an answer",
        |_| vec![Act::Wait(30 * MS), Act::Reset],
    ),
    fresh(
        "reset_in_status_line",
        "9.5",
        RESET,
        "a reset after HTTP/1.1 2",
        |_| reset("HTTP/1.1 2"),
    ),
    fresh(
        "reset_in_head",
        "9.5",
        RESET,
        "a reset inside a header line",
        |_| reset("HTTP/1.1 200 OK\r\nContent-Len"),
    ),
    fresh(
        "reset_in_body",
        "9.5",
        RESET,
        "a reset after half of the body",
        |_| reset(ok("Content-Length: 26\r\n", "abcdefghijklm")),
    ),
    fresh(
        "reset_after_answer",
        "9.5",
        &["ok", "reset", "closed_on_reuse"],
        "a whole answer and at once a reset",
        |_| vec![send(good()), Act::Answered, Act::Reset],
    ),
    fresh(
        "reset_while_idle",
        "9.5",
        OK_OR_REUSE,
        "a whole answer, and a reset 20 ms later",
        |_| vec![send(good()), Act::Answered, Act::Wait(20 * MS), Act::Reset],
    )
    .pause_ms(200),
    fresh(
        "close_said",
        "9.6",
        OK,
        "Connection: close, and the end",
        |_| finish(ok("Content-Length: 26\r\nConnection: close\r\n", BODY)),
    ),
    fresh(
        "close_said_in_list",
        "9.6",
        OK,
        "Connection: x, CLOSE, and the end",
        |_| finish(ok("Content-Length: 26\r\nConnection: x, CLOSE\r\n", BODY)),
    ),
    fresh(
        "close_said_not_done",
        "9.6",
        OK,
        "Connection: close without an end: not to be used again",
        |_| {
            let text = ok("Content-Length: 26\r\nConnection: close\r\n", BODY);
            vec![send(text), Act::Answered, Act::Linger]
        },
    ),
    fresh(
        "close_said_chunked",
        "9.6",
        OK,
        "Connection: close with a chunked body",
        |_| {
            let fields = "Transfer-Encoding: chunked\r\nConnection: close\r\n";
            finish(ok(fields, &format!("1a\r\n{BODY}\r\n0\r\n\r\n")))
        },
    ),
    fresh(
        "close_unsaid",
        "9.5",
        OK_OR_REUSE,
        "the end right after an answer that did not say so",
        |_| hang_up(good()),
    ),
    fresh(
        "close_unsaid_hard",
        "9.5",
        &["ok", "closed_on_reuse", "reset"],
        "both sides closed after an answer that did not say so",
        |_| vec![send(good()), Act::Answered, Act::Close],
    ),
    fresh(
        "close_idle",
        "9.5",
        OK_OR_REUSE,
        "the end after 20 ms without a request",
        |_| vec![send(good()), Act::Answered, Act::Wait(20 * MS), Act::HangUp],
    )
    .pause_ms(200),
    either(
        "limit_3_said",
        "9.6",
        OK,
        "three requests a connection, the last answer says close",
        |moment| {
            let last = ok("Content-Length: 26\r\nConnection: close\r\n", BODY);
            until(moment, 3, finish(last))
        },
    ),
    either(
        "limit_3_unsaid",
        "9.5",
        OK_OR_REUSE,
        "three requests a connection, then the end without a word",
        |moment| until(moment, 3, hang_up(good())),
    ),
    either(
        "limit_3_hinted",
        "RFC 2068 19.7.1",
        OK_OR_REUSE,
        "Keep-Alive: max=3 and the end after the third",
        |moment| {
            let left = 3 - moment.on_connection.min(3);
            let text = ok(
                &format!("Content-Length: 26\r\nKeep-Alive: timeout=5, max={left}\r\n"),
                BODY,
            );
            until(moment, 3, hang_up(text))
        },
    ),
    either(
        "limit_3_reset",
        "9.5",
        &["ok", "closed_on_reuse", "reset"],
        "three requests a connection, then a reset",
        |moment| until(moment, 3, vec![send(good()), Act::Answered, Act::Reset]),
    ),
    fresh(
        "close_after_408",
        "RFC 9110 15.5.9",
        OK_OR_REUSE,
        "an idle connection is sent 408 and ended",
        |_| {
            let text =
                "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            vec![
                send(good()),
                Act::Answered,
                Act::Wait(20 * MS),
                send(text),
                Act::Finish,
            ]
        },
    )
    .pause_ms(200),
];
