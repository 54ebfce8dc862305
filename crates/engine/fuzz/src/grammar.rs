//! JSON changed by its grammar: what comes out is JSON again, and mostly of the same shape.
//!
//! A place of a document is changed in one of four ways: its value becomes a near one of the same type, or the value that
//! another document has under the same name; a member or element goes; one that stands elsewhere comes in.

use std::collections::BTreeMap;

use loadlens_base::Random;
use serde_json::{Map, Number, Value};

/// Numbers at which something ends.
const EDGES: [f64; 12] = [
    -1.0,
    0.0,
    0.5,
    1.0,
    2.0,
    99.0,
    599.0,
    65_535.0,
    65_536.0,
    4_294_967_295.0,
    9.3e18,
    1e300,
];

/// Values of a corpus by the name of the member that they stand under; elements of a list under the list's.
type Named = BTreeMap<String, Vec<Value>>;

/// A document of the corpus after one or two changes.
///
/// Panics when no document of the corpus is JSON.
pub fn changed(random: &mut Random, corpus: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let documents: Vec<Value> = corpus
        .iter()
        .filter_map(|bytes| serde_json::from_slice(bytes).ok())
        .collect();
    let mut named = Named::new();
    for document in &documents {
        gather("", document, &mut named);
    }
    let mut document = draw(random, &documents).clone();
    for _ in 0..=random.below(2) {
        let place = random.below(places(&document));
        change(random, &mut document, place, "", (&named, words));
    }
    document.to_string().into_bytes()
}

fn draw<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

fn gather(name: &str, value: &Value, named: &mut Named) {
    named
        .entry(name.to_owned())
        .or_default()
        .push(value.clone());
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(name, item, named)),
        Value::Object(members) => members
            .iter()
            .for_each(|(name, member)| gather(name, member, named)),
        _ => {}
    }
}

fn places(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(members) => members.values().map(places).sum(),
        _ => 0,
    }
}

/// Changes the value at a place, counted from 0 in the order of the text.
fn change(
    random: &mut Random,
    value: &mut Value,
    place: u64,
    name: &str,
    from: (&Named, &[&[u8]]),
) {
    if place == 0 {
        return change_here(random, value, name, from);
    }
    let mut left = place - 1;
    let mut enter = |name: &str, member: &mut Value| {
        let there = places(member);
        if left < there {
            change(random, member, left, name, from);
            return true;
        }
        left -= there;
        false
    };
    match value {
        Value::Array(items) => {
            let _ = items.iter_mut().any(|item| enter(name, item));
        }
        Value::Object(members) => {
            let _ = members.iter_mut().any(|(name, member)| enter(name, member));
        }
        _ => {}
    }
}

fn change_here(
    random: &mut Random,
    value: &mut Value,
    name: &str,
    (named, words): (&Named, &[&[u8]]),
) {
    if random.below(4) == 0 {
        if let Some(others) = named.get(name) {
            *value = draw(random, others).clone();
            return;
        }
    }
    match value {
        Value::Null => *value = Value::from(random.below(10)),
        Value::Bool(is) => *is = !*is,
        Value::Number(number) => *number = near(random, number),
        Value::String(text) => edit(random, text, words),
        Value::Array(items) => change_list(random, items, name, named),
        Value::Object(members) => change_members(random, members, name, named),
    }
}

/// Another number, of the same kind where that can be.
fn near(random: &mut Random, number: &Number) -> Number {
    let edge = *draw(random, &EDGES);
    if let Some(whole) = number.as_u64() {
        return match random.below(5) {
            0 => (whole / 2).into(),
            1 => whole.saturating_add(1).into(),
            2 => whole.saturating_sub(1).into(),
            3 => random.bits().into(),
            _ => (edge.max(0.0) as u64).into(),
        };
    }
    let float = number.as_f64().unwrap_or(0.0);
    let other = [edge, -float, float / 3.0, float + 1.0];
    Number::from_f64(*draw(random, &other)).unwrap_or_else(|| 0.into())
}

/// A text with a word put in or some characters taken out.
fn edit(random: &mut Random, text: &mut String, words: &[&[u8]]) {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len() as u64 + 1) as usize;
    match random.below(4) {
        0 => {
            let until = (at + random.below(5) as usize).min(characters.len());
            characters.drain(at..until);
        }
        1 => characters.insert(
            at,
            *draw(
                random,
                &['a', 'Z', '7', ' ', '/', '%', '"', '\r', '\0', 'é'],
            ),
        ),
        _ => {
            let word: &[u8] = words[random.below(words.len() as u64) as usize];
            let word = String::from_utf8_lossy(word).into_owned();
            characters.splice(at..at, word.chars());
        }
    }
    *text = characters.into_iter().collect();
}

fn change_list(random: &mut Random, items: &mut Vec<Value>, name: &str, named: &Named) {
    let at = random.below(items.len() as u64 + 1) as usize;
    match random.below(3) {
        0 if at < items.len() => {
            items.remove(at);
        }
        1 if at < items.len() => items.insert(at, items[at].clone()),
        _ => {
            // Under the name of the list stand whole lists, too.
            let others = named.get(name).map_or(&[][..], Vec::as_slice);
            let single: Vec<&Value> = others.iter().filter(|other| !other.is_array()).collect();
            if !single.is_empty() {
                items.insert(at, (*draw(random, &single)).clone());
            }
        }
    }
}

/// Takes out a member that objects of this kind do without, or brings in one that they have.
fn change_members(
    random: &mut Random,
    members: &mut Map<String, Value>,
    name: &str,
    named: &Named,
) {
    let others = named.get(name).map_or(&[][..], Vec::as_slice);
    let is_relative = |other: &&Map<String, Value>| other.get("kind") == members.get("kind");
    let relatives: Vec<&Map<String, Value>> = others
        .iter()
        .filter_map(Value::as_object)
        .filter(is_relative)
        .collect();
    let is_optional = |name: &&String| relatives.iter().any(|one| !one.contains_key(*name));
    let spare: Vec<String> = members.keys().filter(is_optional).cloned().collect();
    let there = relatives.iter().flat_map(|relative| relative.iter());
    let new: Vec<_> = there
        .filter(|(name, _)| !members.contains_key(*name))
        .collect();
    if !new.is_empty() && (spare.is_empty() || random.below(2) == 0) {
        let (name, value) = *draw(random, &new);
        members.insert(name.clone(), value.clone());
    } else if !spare.is_empty() {
        members.shift_remove(draw(random, &spare));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_json_is_json_after_any_changes_and_mostly_another() {
        let corpus = [
            br#"{"a": [{"kind": "x", "n": 1, "s": "t"}, {"kind": "x", "f": 1.5}], "b": null}"#
                .to_vec(),
            br#"{"a": [], "b": {"kind": "y"}, "c": true}"#.to_vec(),
        ];
        let words: [&[u8]; 2] = [b"{{id}}", b"\""];
        let mut differ = 0;

        for seed in 0..2_000 {
            let bytes = changed(&mut Random::new(seed), &corpus, &words);

            let value: Value = serde_json::from_slice(&bytes).expect("JSON");
            let is_one =
                |seed: &Vec<u8>| serde_json::from_slice::<Value>(seed).ok() == Some(value.clone());
            differ += u32::from(!corpus.iter().any(is_one));
        }

        assert!(differ > 1_000, "{differ} of 2,000 differ");
    }
}
