//! The language of `{{...}}`: read once when a plan is compiled.

use loadlens_base::units::{MICROSECOND, MILLISECOND, SECOND};

use super::naming::cut;

/// A template in pieces.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    Slot(Slot),
}

/// A value that is made anew for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Made {
    /// A random UUID, version 4.
    Uuid,
    /// A whole number, both bounds included.
    Int { low: i64, high: i64 },
    /// A number from `low` up to but without `high`.
    Float { low: f64, high: f64 },
    /// Lower-case letters.
    Word { letters: u16 },
    /// The time at which the request is made.
    Timestamp(Instant),
    /// Number of the request in its stream, from 0.
    Sequence,
    /// Number of the user in its stream, from 0.
    User,
    /// Hexadecimal digits.
    Hex { digits: u16 },
    /// `true` or `false`.
    Bool,
    /// A header of W3C Trace Context; `key` is of the stream.
    Traceparent { key: u64 },
}

/// Content of a `{{...}}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    Made(Made),
    /// One of these, equally often.
    Choice(Vec<String>),
    /// An environment variable of the engine, read when the plan is compiled.
    Env(String),
    /// Extracted by an earlier step: index of its name.
    Extracted(u16),
    /// A column of the record that the iteration was given.
    Field {
        feed: usize,
        column: String,
    },
    /// One of the two above, not encoded for the path that it stands in.
    Raw(Box<Slot>),
}

/// Format of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instant {
    /// Whole units since 1970, so many nanoseconds each.
    Since1970 { unit_ns: u64 },
    /// RFC 3339 in UTC with milliseconds.
    Iso,
}

/// Names that a template may refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known<'a> {
    /// Values that earlier steps extract.
    pub names: &'a [String],
    /// Feeds.
    pub feeds: &'a [String],
}

/// Everything that may stand between braces, for messages.
const FORMS: &str =
    "uuid, int LOW HIGH, float LOW HIGH, bool, word N, hex N, choice A B ..., timestamp [ms|us|ns|iso], sequence, user, traceparent, env NAME";
const WORDS: [&str; 13] = [
    "bool",
    "hex",
    "raw",
    "user",
    "uuid",
    "int",
    "float",
    "word",
    "choice",
    "timestamp",
    "sequence",
    "traceparent",
    "env",
];
const MAX_LETTERS: u16 = 4096;

/// Finds the fault of one template, if there is one; `names` are the extracted names that it may use, `feeds` the
/// feeds, of which any column will do.
pub fn check_template(text: &str, names: &[String], feeds: &[String]) -> Option<String> {
    parse(text, Known { names, feeds }).err()
}

/// The columns of feeds that a template uses, and whether each stands there raw; a template with a fault uses none.
pub fn columns_of(text: &str, names: &[String], feeds: &[String]) -> Vec<(String, String, bool)> {
    let used = |piece| match piece {
        Piece::Slot(Slot::Field { feed, column }) => Some((feeds[feed].clone(), column, false)),
        Piece::Slot(Slot::Raw(slot)) => match *slot {
            Slot::Field { feed, column } => Some((feeds[feed].clone(), column, true)),
            _ => None,
        },
        _ => None,
    };
    let pieces = parse(text, Known { names, feeds }).unwrap_or_default();
    pieces.into_iter().filter_map(used).collect()
}

/// True if a path begins with a raw value, which then brings the `/`.
pub(super) fn begins_raw(path: &str) -> bool {
    path.strip_prefix("{{")
        .is_some_and(|rest| rest.trim_start().starts_with("raw "))
}

/// Reads a template; `names[i]` becomes `Slot::Extracted(i)`.
pub(super) fn parse(text: &str, known: Known) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        if open > 0 {
            pieces.push(Piece::Literal(rest[..open].to_owned()));
        }
        let inside = &rest[open + 2..];
        let close = inside.find("}}").ok_or_else(|| {
            format!("`{{{{` is not closed in `{}`: end it with `}}}}`; text with `{{{{` in it can be a body file", cut(text))
        })?;
        pieces.push(Piece::Slot(slot(&inside[..close], known)?));
        rest = &inside[close + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Ok(pieces)
}

/// Checks a name to extract into: letters, digits and underscores, and none of the words that fill a slot.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let mut letters = name.chars();
    let starts_well = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!(
            "`{name}` is not a name: letters, digits and underscores, not beginning with a digit"
        ));
    }
    if WORDS.contains(&name) {
        return Err(format!(
            "`{name}` already means something in templates: choose another name"
        ));
    }
    Ok(())
}

fn slot(inside: &str, known: Known) -> Result<Slot, String> {
    let inside = inside.trim();
    let fault = |what: &str| Err(format!("`{{{{{inside}}}}}`: {what}"));
    if let Some((name, column)) = inside.split_once('.') {
        if let Some(feed) = known.feeds.iter().position(|feed| feed == name) {
            return match column {
                "" => fault("name a column after the dot"),
                column => Ok(Slot::Field {
                    feed,
                    column: column.to_owned(),
                }),
            };
        }
    }
    if let Some(rest) = inside.strip_prefix("raw ") {
        return match slot(rest, known)? {
            slot @ (Slot::Extracted(_) | Slot::Field { .. }) => Ok(Slot::Raw(Box::new(slot))),
            _ => fault(
                "raw is for an extracted value or a column of a feed: all others need no encoding",
            ),
        };
    }
    let words = match words_of(inside) {
        Ok(words) => words,
        Err(what) => return fault(what),
    };
    if let Some(made) = made(&words) {
        return made.map(Slot::Made).or_else(|what| fault(&what));
    }
    match words[..] {
        [] => fault(&format!("empty; there is {FORMS}")),
        ["choice", ref words @ ..] if !words.is_empty() => Ok(Slot::Choice(
            words.iter().map(|word| (*word).to_owned()).collect(),
        )),
        ["env", name] => Ok(Slot::Env(name.to_owned())),
        ["raw"] => fault("needs the name of an extracted value or a column of a feed"),
        ["choice"] => fault("needs at least one word, as in {{choice red green}}"),
        ["env", ..] => fault("needs one NAME, as in {{env TOKEN}}"),
        [name] => match known.names.iter().position(|known| known == name) {
            Some(index) => Ok(Slot::Extracted(index as u16)),
            None if known.feeds.iter().any(|feed| feed == name) => fault(&format!(
                "is a feed: name a column of it, as in {{{{{name}.id}}}}"
            )),
            None => fault(&unknown(name, known)),
        },
        [word, ..] => fault(&unknown(word, known)),
    }
}

/// Reads a value that is made for each request; none: the words mean something else.
fn made(words: &[&str]) -> Option<Result<Made, String>> {
    let fault = |what: &str| Err(what.to_owned());
    Some(match *words {
        ["uuid"] => Ok(Made::Uuid),
        ["timestamp", ref form @ ..] => match form {
            [] | ["s"] => Ok(since_1970(SECOND)),
            ["ms"] => Ok(since_1970(MILLISECOND)),
            ["us"] => Ok(since_1970(MICROSECOND)),
            ["ns"] => Ok(since_1970(1)),
            ["iso"] => Ok(Made::Timestamp(Instant::Iso)),
            _ => fault("is written as s, ms, us, ns or iso, as in {{timestamp ms}}"),
        },
        ["sequence"] => Ok(Made::Sequence),
        ["user"] => Ok(Made::User),
        ["bool"] => Ok(Made::Bool),
        ["traceparent"] => Ok(Made::Traceparent { key: 0 }), // the compiler knows the stream
        ["hex", digits] => length(digits, "digits", "hex 16").map(|digits| Made::Hex { digits }),
        ["word", letters] => {
            length(letters, "letters", "word 12").map(|letters| Made::Word { letters })
        }
        ["int", low, high] => match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) if low <= high => Ok(Made::Int { low, high }),
            (Ok(_), Ok(_)) => fault("LOW is above HIGH"),
            _ => fault("LOW and HIGH are whole numbers of 64 bits, as in {{int 1 100}}"),
        },
        ["float", low, high] => match (low.parse::<f64>(), high.parse::<f64>()) {
            (Ok(low), Ok(high)) if (high - low).is_finite() && low <= high => {
                Ok(Made::Float { low, high })
            }
            (Ok(low), Ok(high)) if low > high => fault("LOW is above HIGH"),
            _ => fault("LOW and HIGH are numbers, as in {{float 0 1.5}}"),
        },
        ["uuid" | "sequence" | "user" | "bool" | "traceparent", ..] => {
            fault("takes nothing after its name")
        }
        ["int" | "float", ..] => fault("needs LOW and HIGH, as in {{int 1 100}}"),
        ["word", ..] => fault("needs a number of letters, as in {{word 12}}"),
        ["hex", ..] => fault("needs a number of digits, as in {{hex 16}}"),
        _ => return None,
    })
}

/// Reads a number of letters or digits.
fn length(text: &str, of: &str, example: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(length @ 1..=MAX_LETTERS) => Ok(length),
        _ => Err(format!(
            "N is a number of {of} from 1 to {MAX_LETTERS}, as in {{{{{example}}}}}"
        )),
    }
}

fn since_1970(unit_ns: u64) -> Made {
    Made::Timestamp(Instant::Since1970 { unit_ns })
}

/// The words of a slot; one in double quotes may hold blanks.
fn words_of(inside: &str) -> Result<Vec<&str>, &'static str> {
    let mut words = Vec::new();
    let mut rest = inside.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (word, after) = quoted.split_once('"').ok_or("a quote is not closed")?;
                if !after.is_empty() && !after.starts_with(char::is_whitespace) {
                    return Err("text follows a closing quote");
                }
                (word, after)
            }
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn unknown(word: &str, known: Known) -> String {
    let names = match known.names {
        [] => "no earlier step extracts anything".to_owned(),
        names => format!("earlier steps extract {}", names.join(", ")),
    };
    let feeds = match known.feeds {
        [] if word.contains('.') => "; there is no feed".to_owned(),
        [] => String::new(),
        feeds => format!("; feeds are {}", feeds.join(", ")),
    };
    // Before a dot only a feed can stand.
    let (meant, words, given) = match word.split_once('.') {
        Some((feed, _)) => (feed, &[][..], &[][..]),
        None => (word, &WORDS[..], known.names),
    };
    let given = given.iter().chain(known.feeds).map(String::as_str);
    let candidates = words.iter().copied().chain(given);
    let nearest = candidates
        .map(|candidate| (strsim::levenshtein(meant, candidate), candidate))
        .min()
        .filter(|(edits, candidate)| *edits <= 2 && *edits < candidate.len());
    let hint = nearest
        .map(|(_, candidate)| format!("did you mean `{candidate}`? "))
        .unwrap_or_default();
    format!("`{word}` is unknown; {hint}there is {FORMS}; {names}{feeds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_slots_alternate() {
        let names = ["id".to_owned(), "token".to_owned()];

        let pieces = parse(
            "/items/{{ token }}-{{int -5 9}}?a={{word 3}}",
            naming(&names),
        )
        .unwrap();

        assert_eq!(
            pieces,
            [
                Piece::Literal("/items/".to_owned()),
                Piece::Slot(Slot::Extracted(1)),
                Piece::Literal("-".to_owned()),
                Piece::Slot(Slot::Made(Made::Int { low: -5, high: 9 })),
                Piece::Literal("?a=".to_owned()),
                Piece::Slot(Slot::Made(Made::Word { letters: 3 })),
            ]
        );
    }

    fn naming(names: &[String]) -> Known<'_> {
        Known { names, feeds: &[] }
    }

    #[test]
    fn slots_of_feeds_raw_values_moments_and_quoted_words_are_read() {
        let (names, feeds) = (["next".to_owned()], ["users".to_owned()]);
        let only = |text| {
            let scope = Known {
                names: &names,
                feeds: &feeds,
            };
            match parse(text, scope).unwrap().pop() {
                Some(Piece::Slot(slot)) => slot,
                other => panic!("{other:?}"),
            }
        };
        let field = |column: &str| Slot::Field {
            feed: 0,
            column: column.to_owned(),
        };

        assert_eq!(only("{{users.id}}"), field("id"));
        assert_eq!(only("{{ users.full name }}"), field("full name"));
        assert_eq!(
            only("{{users.address.lines[0]}}"),
            field("address.lines[0]")
        );
        assert_eq!(
            only("{{raw users.link}}"),
            Slot::Raw(Box::new(field("link")))
        );
        assert_eq!(
            only("{{raw next}}"),
            Slot::Raw(Box::new(Slot::Extracted(0)))
        );
        assert_eq!(only("{{timestamp us}}"), Slot::Made(since_1970(1_000)));
        assert_eq!(only("{{timestamp}}"), only("{{timestamp s}}"));
        assert_eq!(
            only("{{choice \"New York\" Oslo \"\"}}"),
            Slot::Choice(vec![
                "New York".to_owned(),
                "Oslo".to_owned(),
                String::new()
            ])
        );
        let text = "{{users.id}}/{{raw users.a b}}?{{next}}{{uuid}}";
        let used = columns_of(text, &names, &feeds);
        let column = |name: &str, is_raw| ("users".to_owned(), name.to_owned(), is_raw);
        assert_eq!(used, [column("id", false), column("a b", true)]);
    }

    #[test]
    fn single_braces_and_closing_ones_are_text() {
        let text = r#"{"a":{"b":{"c":1}}} }}"#;

        assert_eq!(
            parse(text, naming(&[])).unwrap(),
            [Piece::Literal(text.to_owned())]
        );
        let json = parse(r#"{"a":{"b":{{int 1 2}}}}"#, naming(&[])).unwrap();
        assert_eq!(json[2], Piece::Literal("}}".to_owned()));
    }

    #[test]
    fn faults_name_the_slot_and_what_would_be_right() {
        let names = ["order_id".to_owned()];
        let feeds = ["users".to_owned()];
        for (text, part) in [
            ("{{usres.id}}", "did you mean `users`?"),
            ("{{a.id}}", "feeds are users"),
            ("{{users}}", "is a feed: name a column of it"),
            ("{{users.}}", "name a column"),
            ("{{raw}}", "needs the name"),
            ("{{raw uuid}}", "raw is for an extracted value or a column"),
            ("{{raw nothing}}", "`nothing` is unknown"),
            ("{{timestamp m}}", "s, ms, us, ns or iso"),
            ("{{timestamp ms iso}}", "s, ms, us, ns or iso"),
            ("{{hex}}", "needs a number of digits"),
            ("{{hex 0}}", "from 1 to 4096"),
            ("{{user 1}}", "takes nothing after its name"),
            ("{{bool x}}", "takes nothing after its name"),
            ("{{choice \"a b}}", "a quote is not closed"),
            ("{{choice \"a\"b}}", "text follows a closing quote"),
            ("{{uid}}", "did you mean `uuid`?"),
            ("{{order_idd}}", "did you mean `order_id`?"),
            ("{{nonsense}}", "earlier steps extract order_id"),
            ("{{}}", "empty; there is uuid"),
            ("{{int 1}}", "needs LOW and HIGH"),
            ("{{int 5 1}}", "LOW is above HIGH"),
            ("{{int 1 1e3}}", "whole numbers of 64 bits"),
            ("{{int 0 99999999999999999999}}", "whole numbers of 64 bits"),
            ("{{float 1 nan}}", "are numbers"),
            ("{{float 2 1}}", "LOW is above HIGH"),
            ("{{float -1.7e308 1.7e308}}", "are numbers"),
            ("{{word}}", "needs a number of letters"),
            ("{{word 0}}", "from 1 to 4096"),
            ("{{word 9999}}", "from 1 to 4096"),
            ("{{choice}}", "at least one word"),
            ("{{uuid 4}}", "takes nothing after its name"),
            ("{{env}}", "needs one NAME"),
            ("{{env A B}}", "needs one NAME"),
            ("a {{uuid", "is not closed"),
        ] {
            let fault = check_template(text, &names, &feeds).expect(text);
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }

    #[test]
    fn a_name_that_already_means_something_cannot_be_extracted() {
        assert!(check_name("order_id").is_ok() && check_name("_1").is_ok());
        for name in ["uuid", "env", "", "1a", "a b", "a-b", "\u{e9}"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
