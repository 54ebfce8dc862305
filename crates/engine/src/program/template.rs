//! The language of `{{...}}`: read once when a plan is compiled.

/// A template in pieces.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    Slot(Slot),
}

/// What fills a `{{...}}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    /// A random UUID, version 4.
    Uuid,
    /// A whole number, both bounds included.
    Int { low: i64, high: i64 },
    /// A number from `low` up to but without `high`.
    Float { low: f64, high: f64 },
    /// So many lower-case letters.
    Word { letters: u16 },
    /// One of these, equally often.
    Choice(Vec<String>),
    /// Whole seconds since 1970.
    Timestamp,
    /// Number of the request in its stream, from 0.
    Sequence,
    /// An environment variable of the engine, read when the plan is compiled.
    Env(String),
    /// Extracted by an earlier step: index of its name.
    Extracted(u16),
}

/// Everything that may stand between braces, for messages.
const FORMS: &str =
    "uuid, int LOW HIGH, float LOW HIGH, word N, choice A B ..., timestamp, sequence, env NAME";
const WORDS: [&str; 8] = [
    "uuid",
    "int",
    "float",
    "word",
    "choice",
    "timestamp",
    "sequence",
    "env",
];
const MAX_LETTERS: u16 = 4096;

/// Finds the fault of one template, if there is one; `names` are the extracted names that it may use.
pub fn check_template(text: &str, names: &[String]) -> Option<String> {
    parse(text, names).err()
}

/// Reads a template; `names[i]` becomes `Slot::Extracted(i)`.
pub(super) fn parse(text: &str, names: &[String]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        if open > 0 {
            pieces.push(Piece::Literal(rest[..open].to_owned()));
        }
        let inside = &rest[open + 2..];
        let close = inside.find("}}").ok_or_else(|| {
            format!("`{{{{` is not closed in `{}`: end it with `}}}}`; text with `{{{{` in it can be a body file", excerpt(text))
        })?;
        pieces.push(Piece::Slot(slot(&inside[..close], names)?));
        rest = &inside[close + 2..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Ok(pieces)
}

/// Whether a name may be extracted: letters, digits and underscores, and none of the words that fill a slot.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let mut letters = name.chars();
    let starts_well = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!(
            "`{name}` is no name: letters, digits and underscores, not beginning with a digit"
        ));
    }
    if WORDS.contains(&name) {
        return Err(format!(
            "`{name}` already means something in templates: choose another name"
        ));
    }
    Ok(())
}

fn slot(inside: &str, names: &[String]) -> Result<Slot, String> {
    let words: Vec<&str> = inside.split_whitespace().collect();
    let fault = |what: &str| Err(format!("`{{{{{}}}}}`: {what}", inside.trim()));
    match words[..] {
        [] => fault(&format!("empty; there is {FORMS}")),
        ["uuid"] => Ok(Slot::Uuid),
        ["timestamp"] => Ok(Slot::Timestamp),
        ["sequence"] => Ok(Slot::Sequence),
        ["int", low, high] => match (low.parse(), high.parse()) {
            (Ok(low), Ok(high)) if low <= high => Ok(Slot::Int { low, high }),
            (Ok(_), Ok(_)) => fault("LOW is above HIGH"),
            _ => fault("LOW and HIGH are whole numbers of 64 bits, as in {{int 1 100}}"),
        },
        ["float", low, high] => match (low.parse::<f64>(), high.parse::<f64>()) {
            (Ok(low), Ok(high)) if (high - low).is_finite() && low <= high => {
                Ok(Slot::Float { low, high })
            }
            (Ok(low), Ok(high)) if low > high => fault("LOW is above HIGH"),
            _ => fault("LOW and HIGH are numbers, as in {{float 0 1.5}}"),
        },
        ["word", letters] => match letters.parse() {
            Ok(letters @ 1..=MAX_LETTERS) => Ok(Slot::Word { letters }),
            _ => fault(&format!(
                "N is a number of letters from 1 to {MAX_LETTERS}, as in {{{{word 12}}}}"
            )),
        },
        ["choice", ref words @ ..] if !words.is_empty() => Ok(Slot::Choice(
            words.iter().map(|word| (*word).to_owned()).collect(),
        )),
        ["env", name] => Ok(Slot::Env(name.to_owned())),
        ["uuid" | "timestamp" | "sequence", ..] => fault("takes nothing after its name"),
        ["int" | "float", ..] => fault("needs LOW and HIGH, as in {{int 1 100}}"),
        ["word", ..] => fault("needs a number of letters, as in {{word 12}}"),
        ["choice"] => fault("needs at least one word, as in {{choice red green}}"),
        ["env", ..] => fault("needs one NAME, as in {{env TOKEN}}"),
        [name] => match names.iter().position(|known| known == name) {
            Some(index) => Ok(Slot::Extracted(index as u16)),
            None => fault(&unknown(name, names)),
        },
        [word, ..] => fault(&unknown(word, names)),
    }
}

fn unknown(word: &str, names: &[String]) -> String {
    let known = if names.is_empty() {
        "no earlier step extracts anything".to_owned()
    } else {
        format!("earlier steps extract {}", names.join(", "))
    };
    let nearest = WORDS
        .iter()
        .copied()
        .chain(names.iter().map(String::as_str))
        .map(|candidate| (distance(word, candidate), candidate))
        .min()
        .filter(|(edits, candidate)| *edits <= 2 && *edits < candidate.len());
    let hint = nearest
        .map(|(_, candidate)| format!("did you mean `{candidate}`? "))
        .unwrap_or_default();
    format!("`{word}` is unknown; {hint}there is {FORMS}; {known}")
}

/// Edits between two words: letters put in, left out or changed (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_slots_alternate() {
        let names = ["id".to_owned(), "token".to_owned()];

        let pieces = parse("/items/{{ token }}-{{int -5 9}}?a={{word 3}}", &names).unwrap();

        assert_eq!(
            pieces,
            [
                Piece::Literal("/items/".to_owned()),
                Piece::Slot(Slot::Extracted(1)),
                Piece::Literal("-".to_owned()),
                Piece::Slot(Slot::Int { low: -5, high: 9 }),
                Piece::Literal("?a=".to_owned()),
                Piece::Slot(Slot::Word { letters: 3 }),
            ]
        );
    }

    #[test]
    fn single_braces_and_closing_ones_are_text() {
        let text = r#"{"a":{"b":{"c":1}}} }}"#;

        assert_eq!(parse(text, &[]).unwrap(), [Piece::Literal(text.to_owned())]);
        let json = parse(r#"{"a":{"b":{{int 1 2}}}}"#, &[]).unwrap();
        assert_eq!(json[2], Piece::Literal("}}".to_owned()));
    }

    #[test]
    fn faults_name_the_slot_and_what_would_be_right() {
        let names = ["order_id".to_owned()];
        for (text, part) in [
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
            let fault = check_template(text, &names).expect(text);
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
