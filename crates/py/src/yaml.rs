//! The events of a YAML 1.2 text; what they mean is decided in Python.

use pyo3::prelude::*;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

/// Kind, text, style, anchor (0: none), tag, first character, character after the last, line.
type Row = (
    &'static str,
    String,
    &'static str,
    usize,
    Option<String>,
    usize,
    usize,
    usize,
);

fn named(tag: Option<impl std::ops::Deref<Target = Tag>>) -> Option<String> {
    tag.map(|tag| format!("{}{}", tag.handle, tag.suffix))
}

/// YAML 1.2.2, 5.1; and no byte order mark within the text.
fn is_allowed(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// The events up to the end or to the first fault, and the fault as (what, line).
#[pyfunction]
pub fn yaml_events(py: Python<'_>, text: &str) -> (Vec<Row>, Option<(String, usize)>) {
    py.detach(|| {
        let mut rows = Vec::new();
        if let Some((at, bad)) = text.char_indices().find(|&(_, char)| !is_allowed(char)) {
            let line = 1 + text[..at].matches('\n').count();
            let what = format!("character U+{:04X} may not stand in a file", u32::from(bad));
            return (rows, Some((what, line)));
        }
        for event in Parser::new_from_str(text) {
            let (event, span) = match event {
                Ok(both) => both,
                Err(fault) => {
                    return (rows, Some((fault.info().to_owned(), fault.marker().line())))
                }
            };
            let none = String::new;
            let (kind, text, style, anchor, tag) = match event {
                Event::DocumentStart(_) => ("document", none(), "", 0, None),
                Event::Alias(anchor) => ("alias", none(), "", anchor, None),
                Event::Scalar(text, style, anchor, tag) => {
                    let style = match style {
                        ScalarStyle::Plain => "plain",
                        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => "quoted",
                        ScalarStyle::Literal | ScalarStyle::Folded => "block",
                    };
                    ("scalar", text.into_owned(), style, anchor, named(tag))
                }
                Event::SequenceStart(anchor, tag) => ("list", none(), "", anchor, named(tag)),
                Event::MappingStart(anchor, tag) => ("map", none(), "", anchor, named(tag)),
                Event::SequenceEnd | Event::MappingEnd => ("end", none(), "", 0, None),
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {
                    continue
                }
            };
            let (start, end) = (span.start, span.end);
            rows.push((
                kind,
                text,
                style,
                anchor,
                tag,
                start.index(),
                end.index(),
                start.line(),
            ));
        }
        (rows, None)
    })
}
