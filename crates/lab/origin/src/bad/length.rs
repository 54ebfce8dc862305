//! Content-Length: every way in which it can be right, odd or wrong.

use super::{broken, cut, either, fresh, keep, kept, ok, reset, Behaviour, Script, BODY};

/// Broken framing that no client may repair, or that it may read in one safe way only.
const REFUSED: &[&str] = &["malformed"];
const TRUNCATED: &[&str] = &["truncated"];

fn with(value: &str) -> String {
    ok(&format!("Content-Length: {value}\r\n"), BODY)
}

const fn wrong(name: &'static str, what: &'static str, script: Script) -> Behaviour {
    fresh(name, "6.3", REFUSED, what, script)
}

pub(super) const ALL: &[Behaviour] = &[
    kept(
        "length",
        "6.2",
        &["ok"],
        "a correct answer: the control",
        |_| keep(super::good()),
    ),
    kept(
        "length_zero",
        "6.2",
        &["ok"],
        "Content-Length: 0 and no body",
        |_| keep(ok("Content-Length: 0\r\n", "")),
    ),
    kept(
        "length_leading_zeros",
        "6.2",
        &["ok"],
        "Content-Length: 00026",
        |_| keep(with("00026")),
    ),
    kept(
        "length_spaces_around",
        "5.1",
        &["ok"],
        "spaces and a tab around the number",
        |_| keep(with(" \t26 \t")),
    ),
    kept(
        "length_no_space",
        "5.1",
        &["ok"],
        "nothing between the colon and the number",
        |_| keep(ok("Content-Length:26\r\n", BODY)),
    ),
    kept("length_name_case", "5.1", &["ok"], "cONTENT-lENGTH", |_| {
        keep(ok("cONTENT-lENGTH: 26\r\n", BODY))
    }),
    either(
        "length_many_zeros",
        "6.2",
        &["ok", "malformed", "limit"],
        "26 after 200 zeros",
        |_| keep(with(&format!("{}26", "0".repeat(200)))),
    ),
    either(
        "length_twice_same",
        "6.3",
        &["ok", "malformed"],
        "two lines with the same number",
        |_| keep(ok("Content-Length: 26\r\nContent-Length: 26\r\n", BODY)),
    ),
    either(
        "length_list_same",
        "6.3",
        &["ok", "malformed"],
        "Content-Length: 26, 26",
        |_| keep(with("26, 26")),
    ),
    wrong(
        "length_twice_other",
        "two lines with different numbers",
        |_| broken(ok("Content-Length: 26\r\nContent-Length: 30\r\n", BODY)),
    ),
    wrong(
        "length_twice_shorter",
        "two lines, the second smaller than the body",
        |_| broken(ok("Content-Length: 26\r\nContent-Length: 5\r\n", BODY)),
    ),
    wrong("length_list_other", "Content-Length: 26, 30", |_| {
        broken(with("26, 30"))
    }),
    wrong("length_plus", "Content-Length: +26", |_| {
        broken(with("+26"))
    }),
    wrong("length_minus", "Content-Length: -26", |_| {
        broken(with("-26"))
    }),
    wrong("length_minus_one", "Content-Length: -1", |_| {
        broken(with("-1"))
    }),
    wrong("length_hex", "Content-Length: 0x1a", |_| {
        broken(with("0x1a"))
    }),
    wrong("length_decimal", "Content-Length: 26.0", |_| {
        broken(with("26.0"))
    }),
    wrong("length_exponent", "Content-Length: 26e0", |_| {
        broken(with("26e0"))
    }),
    wrong("length_empty", "Content-Length without a number", |_| {
        broken(with(""))
    }),
    wrong("length_inner_space", "Content-Length: 2 6", |_| {
        broken(with("2 6"))
    }),
    wrong("length_letters", "Content-Length: many", |_| {
        broken(with("many"))
    }),
    wrong("length_quoted", "the number in quotes", |_| {
        broken(with("\"26\""))
    }),
    wrong("length_semicolon", "Content-Length: 26;", |_| {
        broken(with("26;"))
    }),
    wrong("length_underscore", "Content-Length: 2_6", |_| {
        broken(with("2_6"))
    }),
    wrong("length_other_digits", "digits of another script", |_| {
        broken(with("\u{662}\u{666}"))
    }),
    wrong(
        "length_2_64",
        "2^64 + 26, which is 26 when it overflows",
        |_| broken(with("18446744073709551642")),
    ),
    wrong("length_30_digits", "a number of 30 digits", |_| {
        broken(with("999999999999999999999999999999"))
    }),
    either(
        "length_comma",
        "6.3",
        &["ok", "malformed"],
        "Content-Length: 26, with an empty element, which a list may have",
        |_| keep(with("26,")),
    ),
    fresh(
        "length_2_63",
        "6.3",
        &["truncated", "malformed", "limit"],
        "2^63 - 1, then 26 bytes and the end",
        |_| cut(with("9223372036854775807")),
    ),
    fresh(
        "length_2_64_less_1",
        "6.3",
        &["truncated", "malformed", "limit"],
        "2^64 - 1, then 26 bytes and the end",
        |_| cut(with("18446744073709551615")),
    ),
    fresh(
        "length_too_long",
        "8",
        TRUNCATED,
        "100 announced, 26 sent, then the end",
        |_| cut(with("100")),
    ),
    fresh(
        "length_no_body",
        "8",
        TRUNCATED,
        "26 announced, nothing sent, then the end",
        |_| cut(ok("Content-Length: 26\r\n", "")),
    ),
    fresh(
        "length_too_long_reset",
        "8",
        &["reset", "truncated"],
        "100 announced, 26 sent, then a reset",
        |_| reset(with("100")),
    ),
    either(
        "length_space_before_colon",
        "5.1",
        &["malformed", "ok"],
        "Content-Length : 26",
        |_| keep(ok("Content-Length : 26\r\n", BODY)),
    ),
];
