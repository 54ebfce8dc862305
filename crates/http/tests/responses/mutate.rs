//! Bytes that are nearly right: a small mutator over a corpus, one seed for each input.

use loadlens_base::Random;

/// The inputs that a test looks at: `LOADLENS_INPUTS` of them or a few seconds' worth, from `LOADLENS_FIRST` on.
pub fn inputs(few: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("LOADLENS_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("LOADLENS_FIRST").unwrap_or(0);
            first..first + number("LOADLENS_INPUTS").unwrap_or(few)
        }
    }
}

/// One input: something of the corpus after one to four changes.
pub fn mutated(random: &mut Random, corpus: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = draw(random, corpus).clone();
    for _ in 0..=random.below(4) {
        change(random, &mut bytes, corpus, words);
    }
    bytes
}

fn draw<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

fn below(random: &mut Random, end: usize) -> usize {
    random.below(end as u64 + 1) as usize
}

/// A piece of at most 16 bytes: where it begins and ends.
fn piece(random: &mut Random, bytes: &[u8]) -> (usize, usize) {
    let from = below(random, bytes.len());
    (from, (from + below(random, 16)).min(bytes.len()))
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&[u8]]) {
    let at = below(random, bytes.len());
    match random.below(7) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        2 => {
            let (from, to) = piece(random, bytes);
            bytes.drain(from..to);
        }
        3 => {
            let (from, to) = piece(random, bytes);
            let copy = bytes[from..to].to_vec();
            bytes.splice(at..at, copy);
        }
        4 => {
            // the end of another one
            let other = draw(random, corpus);
            let from = below(random, other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        5 => bytes.truncate(at),
        _ => {
            let word = draw(random, words).to_vec();
            bytes.splice(at..at, word);
        }
    }
    bytes.truncate(1 << 16);
}
