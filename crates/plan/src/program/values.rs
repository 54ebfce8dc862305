//! Values that an iteration has extracted so far.

use std::fmt;

use super::json;

/// The longest value that is kept, in bytes.
pub const MAX_VALUE_BYTES: usize = 64 * 1024;
/// The most bytes that one iteration keeps in all.
const MAX_ALL_BYTES: usize = 256 * 1024;
/// A buffer that grew beyond this is given back at the end of the iteration.
const KEPT_BYTES: usize = 4 * 1024;

/// A value and how it is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Text as it is.
    Text(&'a [u8]),
    /// A JSON value as it stood in the body.
    Json(&'a [u8]),
}

/// The extracted values of one iteration of one user. Empty ones own no memory.
#[derive(Clone, Default)]
pub struct Values {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

/// Never the values: they may be tokens and passwords.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Values({} bytes in {} slots)",
            self.bytes.len(),
            self.slots.len()
        )
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    start: u32,
    len: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Default)]
enum Kind {
    #[default]
    Unset,
    Text,
    Json,
}

/// A value was over its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Values {
    /// Forgets everything: a new iteration begins.
    pub fn clear(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.slots.clear();
    }

    /// Bytes of memory that it owns.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    pub(super) fn set(&mut self, slot: u16, value: Value<'_>) -> Result<(), TooLong> {
        let (bytes, kind) = match value {
            Value::Text(bytes) => (bytes, Kind::Text),
            Value::Json(bytes) => (bytes, Kind::Json),
        };
        let slot = usize::from(slot);
        self.forget(slot);
        if bytes.len() > MAX_VALUE_BYTES || self.bytes.len() + bytes.len() > MAX_ALL_BYTES {
            return Err(TooLong);
        }
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Slot::default());
        }
        self.slots[slot] = Slot {
            start: self.bytes.len() as u32,
            len: bytes.len() as u32,
            kind,
        };
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Gives back what an earlier turn of a repeated step has put into a slot.
    fn forget(&mut self, slot: usize) {
        let Some(old) = self.slots.get_mut(slot).map(std::mem::take) else {
            return;
        };
        if old.len == 0 {
            return;
        }
        self.bytes
            .drain(old.start as usize..(old.start + old.len) as usize);
        for other in self.slots.iter_mut().filter(|o| o.start > old.start) {
            other.start -= old.len;
        }
    }

    pub(super) fn get(&self, slot: u16) -> Option<Value<'_>> {
        let slot = self.slots.get(usize::from(slot))?;
        let bytes = &self.bytes[slot.start as usize..(slot.start + slot.len) as usize];
        match slot.kind {
            Kind::Unset => None,
            Kind::Text => Some(Value::Text(bytes)),
            Kind::Json => Some(Value::Json(bytes)),
        }
    }
}

impl Value<'_> {
    /// Hands on the value as text: the content of a JSON string, anything else as it stands.
    pub(super) fn with_text<R>(self, use_text: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Value::Text(bytes) => use_text(bytes),
            Value::Json([b'"', inner @ .., b'"']) if memchr::memchr(b'\\', inner).is_none() => {
                use_text(inner)
            }
            Value::Json(raw @ [b'"', ..]) => use_text(&json::unescaped(raw).unwrap_or_default()),
            Value::Json(raw) => use_text(raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_set_again_takes_the_place_of_the_old_one() {
        let mut values = Values::default();
        let text = |values: &Values, slot| match values.get(slot) {
            Some(Value::Text(bytes)) => bytes.to_vec(),
            other => panic!("{other:?}"),
        };

        for turn in 0..1_000usize {
            // Each turn another length; 1,000 turns of what is kept would be far over the bound.
            let long = vec![b'a'; 600 + turn % 7];
            values.set(0, Value::Text(b"first")).unwrap();
            values.set(2, Value::Text(&long)).unwrap();
            values.set(1, Value::Text(b"")).unwrap();
            values.set(0, Value::Text(b"again")).unwrap();

            assert_eq!(text(&values, 2), long);
            assert_eq!(
                (text(&values, 0), text(&values, 1)),
                (b"again".to_vec(), Vec::new())
            );
        }
        assert!(values.bytes.len() < 700);
    }
}
