//! Names of checks and extractions in results.

use crate::{Bounds, Check, Extract, Source, Step};

/// Characters of a plan's text that results and messages show.
const SHOWN: usize = 48;

/// Names of a step's tallies, in their order; empty when it only has the usual statuses.
pub(super) fn names(step: &Step) -> Vec<String> {
    if step.expect.is_empty() && step.checks.is_empty() && step.extract.is_empty() {
        return Vec::new();
    }
    let mut names = vec![status(&step.expect)];
    names.extend(step.checks.iter().map(of_check));
    names.extend(step.extract.iter().map(of_extract));
    names
}

fn status(expect: &[u16]) -> String {
    if expect.is_empty() {
        return "status 200 to 399".to_owned();
    }
    let runs: Vec<String> = expect
        .chunk_by(|before, code| *code == before + 1)
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{first} to {last}")],
            few => few.iter().map(u16::to_string).collect(),
        })
        .collect();
    format!("status {}", cut(&runs.join(" or ")))
}

fn of_check(check: &Check) -> String {
    match check {
        Check::Json { path, equals } => {
            format!("json {} = {}", cut(path), cut(&equals.to_string()))
        }
        Check::Exists { path } => format!("json {} exists", cut(path)),
        Check::Absent { path } => format!("json {} is absent", cut(path)),
        Check::Number { path, is } => format!("json {} {}", cut(path), bounds(is)),
        Check::Count { path, is } => format!("count of {} {}", cut(path), bounds(is)),
        Check::Header { name, equals } => {
            format!("header {} = {}", cut(name), cut(equals))
        }
        Check::Contains { text } => format!("contains {}", cut(text)),
        Check::Regex { pattern } => format!("regex {}", cut(pattern)),
        Check::Size { is } => format!("size {} bytes", bounds(is)),
        Check::Latency { below_ns } => format!("latency < {}", duration(*below_ns)),
    }
}

fn of_extract(extract: &Extract) -> String {
    let from = match &extract.from {
        Source::Json { path } => format!("json {}", cut(path)),
        Source::Header { name } => format!("header {}", cut(name)),
        Source::Regex {
            pattern,
            header: None,
            ..
        } => format!("regex {}", cut(pattern)),
        Source::Regex {
            pattern,
            header: Some(header),
            ..
        } => format!("regex {} in header {}", cut(pattern), cut(header)),
    };
    format!("extract {} from {from}", extract.name)
}

fn bounds(bounds: &Bounds) -> String {
    let parts = [
        (bounds.equals, "="),
        (bounds.above, ">"),
        (bounds.below, "<"),
    ];
    let parts = parts
        .iter()
        .filter_map(|(bound, sign)| bound.map(|bound| format!("{sign} {bound}")));
    parts.collect::<Vec<_>>().join(" and ")
}

fn duration(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{} ms", ns as f64 / 1e6),
        _ => format!("{} s", ns as f64 / 1e9),
    }
}

/// The beginning of a text of the plan, for results and messages.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
