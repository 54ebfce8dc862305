//! Fuzz targets: each a plain function over bytes that panics where the engine is wrong.
//!
//! The same functions run under libFuzzer (`fuzz_targets/`, `cargo fuzz`) and, with a mutator of our own, as tests on the
//! stable toolchain (`tests/short.rs`). An oracle of a target is a literal reading of an RFC, another library, or the same
//! bytes in other pieces; none of it is the code that is looked at.

mod answers;
mod cookies;
mod files;
mod grammar;
mod heads;
mod literal;
mod plans;
mod values;

pub use answers::{chunked_body, whole_answer};
pub use cookies::cookies;
pub use files::{due_times, feed, interval_log};
pub use grammar::changed;
pub use heads::response_head;
pub use plans::{plan, template};
pub use values::json_path;

/// Outcome of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was read as something.
    Read,
    /// It was refused, or goes on after its last byte.
    Refused,
}

/// One target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its function, its seeds and its words.
    pub name: &'static str,
    /// Looks at one input.
    pub run: fn(&[u8]) -> Ending,
    /// Inputs of the short run: a few seconds' worth.
    pub inputs: u64,
    /// True if inputs are JSON. Members are then changed rather than bytes, because changed bytes are seldom still JSON.
    pub is_json: bool,
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    target("response_head", response_head, 40_000),
    target("chunked_body", chunked_body, 50_000),
    target("whole_answer", whole_answer, 40_000),
    Target {
        is_json: true,
        ..target("plan", plan, 8_000)
    },
    target("template", template, 30_000),
    target("feed", feed, 50_000),
    target("due_times", due_times, 50_000),
    target("cookies", cookies, 50_000),
    target("json_path", json_path, 40_000),
    target("interval_log", interval_log, 20_000),
];

const fn target(name: &'static str, run: fn(&[u8]) -> Ending, inputs: u64) -> Target {
    Target {
        name,
        run,
        inputs,
        is_json: false,
    }
}

/// Splits off the first byte, which decides how the others are to be taken.
fn knob(bytes: &[u8]) -> (u8, &[u8]) {
    bytes
        .split_first()
        .map_or((0, bytes), |(first, rest)| (*first, rest))
}
