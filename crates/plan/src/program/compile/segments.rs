//! Templates in pieces that are written for their place: a target, a header, a JSON string or plain text.
//!
//! What stands in the plan itself is taken as it is, or is a fault; words and variables are escaped where need be.

use loadlens_http::request::{is_target_byte, is_value_byte, percent_is_whole, push_component};

use crate::program::feed::Use;
use crate::program::json::push_escaped;
use crate::program::render::{Given, Place, Segment};
use crate::program::template::{self, Instant, Known, Made, Piece, Slot};

use super::Compiler;

impl Compiler<'_, '_> {
    /// A template in pieces written for their place.
    pub(super) fn template(&mut self, at: &str, text: &str, place: Place) -> Vec<Segment> {
        let names_of_slots = Known {
            names: &self.names,
            feeds: self.feeds.names(),
        };
        let pieces = match template::parse(text, names_of_slots) {
            Ok(pieces) => pieces,
            Err(what) => {
                self.fault(at, what);
                return Vec::new();
            }
        };
        let (place, quoted) = match (place, pieces.as_slice()) {
            (Place::JsonValue, [Piece::Slot(slot)]) if slot.has_json_type() => {
                (Place::JsonValue, false)
            }
            (Place::JsonValue, _) => (Place::JsonString, true),
            _ => (place, false),
        };
        let mut segments = Vec::with_capacity(pieces.len() + 2);
        for (index, piece) in pieces.into_iter().enumerate() {
            let segment = match piece {
                Piece::Slot(Slot::Raw(slot)) => self.raw(at, *slot, place, index == 0),
                piece => self.segment(at, piece, place),
            };
            segments.push(segment);
        }
        if quoted {
            segments.insert(0, Segment::Bytes(b"\"".to_vec()));
            segments.push(Segment::Bytes(b"\"".to_vec()));
        }
        segments
    }

    fn segment(&mut self, at: &str, piece: Piece, place: Place) -> Segment {
        let slot = match piece {
            Piece::Literal(text) => return Segment::Bytes(self.literal(at, &text, place)),
            Piece::Slot(slot) => slot,
        };
        match slot {
            Slot::Made(Made::Traceparent { .. }) => Segment::Made(Made::Traceparent {
                key: self.trace_key,
            }),
            Slot::Made(made) => Segment::Made(made),
            Slot::Raw(slot) => self.raw(at, *slot, place, false),
            slot @ (Slot::Extracted(_) | Slot::Field { .. }) => Segment::Given {
                from: self.given(at, slot, place, false),
                place,
            },
            Slot::Choice(words) => {
                let word = |word: String| self.written(at, &word, place, "a word of choice");
                Segment::Choice(words.into_iter().map(word).collect())
            }
            Slot::Env(name) => {
                let value = self.environment(at, &name).unwrap_or_default();
                let origin = format!("environment variable {name}");
                Segment::Bytes(self.written(at, &value, place, &origin))
            }
        }
    }

    /// An extracted value, or a column of a feed, whose use is noted.
    fn given(&mut self, at: &str, slot: Slot, place: Place, is_raw: bool) -> Given {
        match slot {
            Slot::Field { feed, column } => {
                let wanted = Use {
                    in_header: place == Place::Header,
                    is_raw,
                };
                let at = format!("{}{at}", self.at);
                let (feed, column) = self.feeds.used(feed, column, wanted, at);
                Given::Field { feed, column }
            }
            Slot::Extracted(slot) => Given::Extracted(slot),
            _ => Given::Extracted(0), // the template reader lets nothing else be raw
        }
    }

    fn raw(&mut self, at: &str, slot: Slot, place: Place, is_first: bool) -> Segment {
        if place != Place::Target {
            self.fault(at, "raw is for paths: nothing is encoded here");
        }
        let authority = is_first.then(|| self.stream.target.authority.clone().into());
        Segment::Raw {
            // A whole URL is judged when it is sent.
            from: self.given(at, slot, place, !is_first),
            authority,
        }
    }

    /// A value as it is written in its place. A fault names `origin`, never the value: it may be a secret.
    fn written(&mut self, at: &str, value: &str, place: Place, origin: &str) -> Vec<u8> {
        let mut out = Vec::new();
        match place {
            Place::Target => push_component(&mut out, value.as_bytes()),
            Place::JsonString | Place::JsonValue => push_escaped(&mut out, value.as_bytes()),
            Place::Text => out.extend_from_slice(value.as_bytes()),
            Place::Header if value.bytes().all(is_value_byte) => {
                out.extend_from_slice(value.as_bytes());
            }
            Place::Header => {
                let what = "has a control byte, which no header may have";
                self.fault(at, format_args!("{origin} {what}"));
            }
        }
        out
    }

    /// Text that stands in the plan itself: taken as it is where it may stand, else a fault.
    fn literal(&mut self, at: &str, text: &str, place: Place) -> Vec<u8> {
        let bytes = text.as_bytes();
        match place {
            Place::JsonString | Place::JsonValue => {
                let mut out = Vec::new();
                push_escaped(&mut out, bytes);
                return out;
            }
            Place::Text => {}
            Place::Header => {
                if !bytes.iter().all(|byte| is_value_byte(*byte)) {
                    self.fault(at, "a control byte, which no header value may have");
                }
            }
            Place::Target => {
                if let Some(bad) = text
                    .chars()
                    .find(|c| !c.is_ascii() || !is_target_byte(*c as u8))
                {
                    let mut escaped = Vec::new();
                    push_component(&mut escaped, bad.to_string().as_bytes());
                    let escaped = String::from_utf8_lossy(&escaped).into_owned();
                    let bad = bad.escape_debug();
                    let what =
                        format_args!("`{bad}` may not stand in a path or query: write {escaped}");
                    self.fault(at, what);
                } else if !percent_is_whole(bytes) {
                    let what =
                        "`%` without two hexadecimal digits after it: write %25 for a percent sign";
                    self.fault(at, what);
                }
            }
        }
        bytes.to_vec()
    }
}

impl Slot {
    /// True if it gives a JSON value with a type of its own.
    fn has_json_type(&self) -> bool {
        matches!(
            self,
            Slot::Extracted(_)
                | Slot::Field { .. }
                | Slot::Made(
                    Made::Int { .. }
                        | Made::Float { .. }
                        | Made::Bool
                        | Made::Timestamp(Instant::Since1970 { .. })
                        | Made::Sequence
                        | Made::User
                )
        )
    }
}
