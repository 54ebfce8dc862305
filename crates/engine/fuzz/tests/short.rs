//! The short run of every target on the stable toolchain: seeds as they are, and changed at random.
//!
//! `LOADLENS_SEED=n` replays one input, `LOADLENS_INPUTS=n` looks at more of them; `cargo fuzz run NAME` looks further.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program prints is its output"
)]

#[path = "../../../http/tests/responses/mutate.rs"]
mod mutate;

use std::panic::catch_unwind;
use std::path::PathBuf;

use loadlens_base::Random;
use loadlens_fuzz::{changed, Ending, Target, TARGETS};
use mutate::{inputs, mutated};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The seeds of a target, by name.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let dir = folder().join("seeds").join(target.name);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .expect("seeds")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("a seed"))
        .collect()
}

/// The words of a target, in libFuzzer's form: one in quotes a line, `\xNN` for a byte.
fn words(target: &Target) -> Vec<Vec<u8>> {
    let path = folder().join("words").join(format!("{}.dict", target.name));
    let text = std::fs::read_to_string(path).expect("words");
    text.lines()
        .filter(|line| line.starts_with('"'))
        .map(word)
        .collect()
}

fn word(line: &str) -> Vec<u8> {
    let inner = line
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_else(|| panic!("not in quotes: {line}"));
    let mut bytes = Vec::new();
    let mut rest = inner.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("ASCII");
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = after;
            }
            (b'\\', [escaped, after @ ..]) => {
                bytes.push(*escaped);
                rest = after;
            }
            _ => bytes.push(*first),
        }
    }
    bytes
}

fn look(target: &Target) {
    let corpus = seeds(target);
    for (number, seed) in corpus.iter().enumerate() {
        assert!(
            catch_unwind(|| (target.run)(seed)).is_ok(),
            "seed {number} of {}: {}",
            target.name,
            seed.escape_ascii()
        );
    }
    let words = words(target);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let (mut read, mut refused) = (0, 0);
    let range = inputs(target.inputs);
    let is_one = range.end - range.start == 1;
    for seed in range {
        let mut random = Random::derived(seed, &[target.name.len() as u64]);
        let bytes = if target.is_json && random.below(8) > 0 {
            changed(&mut random, &corpus, &words)
        } else {
            mutated(&mut random, &corpus, &words)
        };
        match catch_unwind(|| (target.run)(&bytes)) {
            Ok(Ending::Read) => read += 1,
            Ok(Ending::Refused) => refused += 1,
            Err(_) => panic!(
                "LOADLENS_SEED={seed} of {}: {}",
                target.name,
                bytes.escape_ascii()
            ),
        }
    }
    println!(
        "{}: {} executions, {read} read, {refused} refused",
        target.name,
        read + refused
    );
    // Worth something only if both happen often.
    let few = target.inputs / 250;
    let few_read = if target.is_json {
        target.inputs / 8
    } else {
        few
    };
    assert!(
        is_one || (read > few_read && refused > few),
        "{read} read, {refused} refused"
    );
}

macro_rules! short_run {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let target = TARGETS.iter().find(|target| target.name == stringify!($name));
            look(target.expect("a target"));
        })*

        #[test]
        fn every_target_is_run_and_is_a_program_for_the_fuzzer() {
            let run = [$(stringify!($name)),*];
            assert_eq!(TARGETS.map(|target| target.name)[..], run[..]);
            let manifest = std::fs::read_to_string(folder().join("Cargo.toml")).expect("a manifest");
            for name in run {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
                assert!(folder().join(format!("fuzz_targets/{name}.rs")).exists(), "{name}");
            }
        }
    };
}

short_run! {
    response_head chunked_body whole_answer plan template feed due_times cookies json_path interval_log
}
