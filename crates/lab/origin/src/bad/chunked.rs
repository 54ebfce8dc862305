//! The chunked coding: its freedoms, and every way to break it.

use super::{
    broken, cut, either, fresh, keep, kept, ok, reset, send, Act, Behaviour, Script, BODY, MS,
};

const OK: &[&str] = &["ok"];
const REFUSED: &[&str] = &["malformed"];
const TRUNCATED: &[&str] = &["truncated"];

/// A chunked answer with this body, framing and all.
fn chunked(body: &str) -> String {
    ok("Transfer-Encoding: chunked\r\n", body)
}

/// A body of one chunk whose size line is this.
fn sized(line: &str) -> String {
    chunked(&format!("{line}\r\n{BODY}\r\n0\r\n\r\n"))
}

fn in_single_bytes() -> String {
    let chunks: String = BODY
        .chars()
        .map(|letter| format!("1\r\n{letter}\r\n"))
        .collect();
    chunked(&format!("{chunks}0\r\n\r\n"))
}

const fn wrong(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    fresh(name, "7.1", REFUSED, what, script)
}

const fn good(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    kept(name, "7.1", OK, what, script)
}

const fn cut_off(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    fresh(name, "8", TRUNCATED, what, script)
}

pub(super) const ALL: &[Behaviour] = &[
    good("chunked", "one chunk and the last one", |_| {
        keep(sized("1a"))
    }),
    good("chunked_empty", "the last chunk only", |_| {
        keep(chunked("0\r\n\r\n"))
    }),
    good("chunked_single_bytes", "26 chunks of one byte", |_| {
        keep(in_single_bytes())
    }),
    good("chunked_upper_case", "size 1A", |_| keep(sized("1A"))),
    good("chunked_zeros_before", "size 0000001a", |_| {
        keep(sized("0000001a"))
    }),
    good("chunked_zeros_last", "last chunk 000", |_| {
        keep(chunked(&format!("1a\r\n{BODY}\r\n000\r\n\r\n")))
    }),
    good("chunked_extension", "1a;name=value", |_| {
        keep(sized("1a;name=value"))
    }),
    good("chunked_extension_quoted", "1a;name=\"a;b 0\"", |_| {
        keep(sized("1a;name=\"a;b 0\""))
    }),
    good("chunked_extension_spaces", "1a ; name = value", |_| {
        keep(sized("1a ; name = value"))
    }),
    good(
        "chunked_extension_last",
        "an extension of the last chunk",
        |_| keep(chunked(&format!("1a\r\n{BODY}\r\n0;last\r\n\r\n"))),
    ),
    good("chunked_trailer", "a trailer of one line", |_| {
        keep(chunked(&format!("1a\r\n{BODY}\r\n0\r\nX-Sum: 1\r\n\r\n")))
    }),
    good(
        "chunked_trailer_length",
        "a Content-Length in the trailer, which counts for nothing",
        |_| {
            keep(chunked(&format!(
                "1a\r\n{BODY}\r\n0\r\nContent-Length: 5\r\n\r\n"
            )))
        },
    ),
    either(
        "chunked_trailer_many",
        "7.1.2",
        &["ok", "limit"],
        "a trailer of 200 lines",
        |_| {
            let lines: String = (0..200).map(|at| format!("X-{at}: value\r\n")).collect();
            keep(chunked(&format!("1a\r\n{BODY}\r\n0\r\n{lines}\r\n")))
        },
    ),
    good(
        "chunked_split",
        "the size line in four pieces, 2 ms apart",
        |_| {
            let mut acts = vec![send(chunked(""))];
            for piece in [
                "1",
                "a",
                "\r",
                "\nabcdefghijklmnopqrstuvwxyz\r",
                "\n0\r\n\r",
                "\n",
            ] {
                acts.extend([Act::Wait(2 * MS), send(piece)]);
            }
            acts.extend([Act::Answered, Act::Next]);
            acts
        },
    ),
    good("chunked_1m", "1 MiB in chunks of 8 KiB", |_| {
        let chunk = format!("2000\r\n{}\r\n", "x".repeat(8192));
        keep(chunked(&format!("{}0\r\n\r\n", chunk.repeat(128))))
    }),
    either(
        "chunked_extension_16k",
        "7.1.1",
        &["ok", "limit", "malformed"],
        "an extension of 16 KiB",
        |_| keep(sized(&format!("1a;x={}", "y".repeat(16 * 1024)))),
    ),
    either(
        "chunked_semicolon",
        "7.1.1",
        &["ok", "malformed"],
        "1a; with nothing after it",
        |_| keep(sized("1a;")),
    ),
    either(
        "chunked_space_after",
        "7.1.1",
        &["ok", "malformed"],
        "a space after the size",
        |_| keep(sized("1a ")),
    ),
    fresh(
        "chunked_extension_endless",
        "7.1.1",
        &["limit", "timeout", "malformed"],
        "an extension without end",
        |_| {
            vec![
                send(chunked("1a;x=")),
                Act::Endless("y".repeat(4096).into_bytes().into()),
            ]
        },
    ),
    fresh(
        "chunked_trailer_endless",
        "7.1.2",
        &["limit", "timeout", "malformed"],
        "a trailer without end",
        |_| {
            vec![
                send(chunked(&format!("1a\r\n{BODY}\r\n0\r\n"))),
                Act::Endless("X-More: value\r\n".repeat(256).into_bytes().into()),
            ]
        },
    ),
    fresh(
        "chunked_zeros_endless",
        "7.1",
        &["limit", "timeout", "malformed"],
        "a size of zeros without end",
        |_| {
            vec![
                send(chunked("")),
                Act::Endless("0".repeat(4096).into_bytes().into()),
            ]
        },
    ),
    cut_off(
        "chunked_no_last",
        "the end instead of the last chunk",
        |_| cut(chunked(&format!("1a\r\n{BODY}\r\n"))),
    ),
    cut_off(
        "chunked_no_last_crlf",
        "the last chunk without its empty line, then the end",
        |_| cut(chunked(&format!("1a\r\n{BODY}\r\n0\r\n"))),
    ),
    cut_off("chunked_half_last", "0 and CR, then the end", |_| {
        cut(chunked(&format!("1a\r\n{BODY}\r\n0\r")))
    }),
    cut_off("chunked_nothing", "the end right after the head", |_| {
        cut(chunked(""))
    }),
    cut_off("chunked_short_data", "the end inside a chunk", |_| {
        cut(chunked("1a\r\nabc"))
    }),
    cut_off("chunked_half_size", "the end inside a size line", |_| {
        cut(chunked("1"))
    }),
    fresh(
        "chunked_reset",
        "8",
        &["reset", "truncated"],
        "a reset inside a chunk",
        |_| reset(chunked("1a\r\nabc")),
    ),
    fresh(
        "chunked_huge",
        "7.1",
        &["truncated", "malformed", "limit"],
        "size ffffffffffffffff, then the end",
        |_| cut(sized("ffffffffffffffff")),
    ),
    wrong(
        "chunked_17_digits",
        "size 1000000000000001a, which is 26 when it overflows",
        |_| broken(sized("1000000000000001a")),
    ),
    wrong("chunked_no_size", "an empty size line", |_| {
        broken(sized(""))
    }),
    wrong("chunked_minus", "size -1a", |_| broken(sized("-1a"))),
    wrong("chunked_plus", "size +1a", |_| broken(sized("+1a"))),
    wrong("chunked_0x", "size 0x1a", |_| broken(sized("0x1a"))),
    wrong("chunked_letters", "size xyz", |_| broken(sized("xyz"))),
    wrong("chunked_space_inside", "size 1 a", |_| broken(sized("1 a"))),
    wrong("chunked_comma", "size 1a,0", |_| broken(sized("1a,0"))),
    either(
        "chunked_space_before",
        "7.1",
        &["malformed", "ok"],
        "a space before the size",
        |_| keep(sized(" 1a")),
    ),
    either(
        "chunked_bare_lf",
        "7.1",
        &["malformed", "ok"],
        "LF alone after the size",
        |_| keep(chunked(&format!("1a\n{BODY}\r\n0\r\n\r\n"))),
    ),
    either(
        "chunked_bare_lf_data",
        "7.1",
        &["malformed", "ok"],
        "LF alone after the data",
        |_| keep(chunked(&format!("1a\r\n{BODY}\n0\r\n\r\n"))),
    ),
    wrong("chunked_bare_cr", "CR alone after the size", |_| {
        broken(chunked(&format!("1a\r{BODY}\r\n0\r\n\r\n")))
    }),
    wrong(
        "chunked_no_crlf",
        "nothing between the data and the next size",
        |_| broken(chunked(&format!("1a\r\n{BODY}0\r\n\r\n"))),
    ),
    wrong("chunked_long_data", "more data than the size says", |_| {
        broken(chunked(&format!("5\r\n{BODY}\r\n0\r\n\r\n")))
    }),
    wrong("chunked_not", "chunked is said, the body is plain", |_| {
        broken(chunked("The body is plain text.\r\n"))
    }),
];
