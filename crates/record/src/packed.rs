//! Counts of a file as bytes, until they are added up: a histogram of a node is read once, and as a list it would take
//! eight times the memory.
//!
//! For each place that is not empty, rising: its distance from the one before, and its count, each as a LEB128 varint.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counts that [`Packed::is_sound`] has to accept before they are used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    /// Packs (place, count) of what is not empty, rising.
    pub(crate) fn of(counts: &[(u32, u64)]) -> Self {
        let mut bytes = Vec::with_capacity(2 * counts.len());
        let mut before = 0;
        for (place, count) in counts {
            push(&mut bytes, u64::from(place - before));
            push(&mut bytes, *count);
            before = *place;
        }
        Packed(bytes)
    }

    /// True if nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if it can be read to its end, and all places are below `places`.
    pub(crate) fn is_sound(&self, places: usize) -> bool {
        let (mut rest, mut place) = (self.0.as_slice(), 0_u64);
        while !rest.is_empty() {
            let Some((step, _)) = next(&mut rest).zip(next(&mut rest)) else {
                return false;
            };
            place = place.saturating_add(step);
            if place >= places as u64 {
                return false;
            }
        }
        true
    }

    /// Calls `each(place, count)`, rising.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u32, u64)) {
        let (mut rest, mut place) = (self.0.as_slice(), 0_u64);
        while let Some((step, count)) = next(&mut rest).zip(next(&mut rest)) {
            place += step;
            each(place as u32, count);
        }
    }
}

fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The next number; none: there is no whole one.
#[inline(always)]
fn next(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    long(bytes)
}

#[cold]
fn long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Packed;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("packed counts")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                Ok(Packed(bytes.to_vec()))
            }
        }

        from.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_come_out_as_they_went_in(counts in btree_map(0..1000_u32, 1..u64::MAX, 0..40)) {
            let counts: Vec<_> = counts.into_iter().collect();
            let packed = Packed::of(&counts);

            let mut out = Vec::new();
            packed.for_each(|place, count| out.push((place, count)));

            prop_assert!(packed.is_sound(1000));
            prop_assert_eq!(out, counts);
        }

        #[test]
        fn of_any_bytes_only_places_that_there_are_come_out(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let packed = Packed(bytes);

            if packed.is_sound(1000) {
                packed.for_each(|place, _| assert!(place < 1000));
            }
        }
    }

    #[test]
    fn numbers_are_written_as_leb128() {
        assert_eq!(
            Packed::of(&[(1, 2), (301, 624_485)]).0,
            [1, 2, 0xac, 2, 0xe5, 0x8e, 0x26]
        ); // Wikipedia's example
    }

    #[test]
    fn a_number_without_end_and_a_place_beyond_the_last_are_not_sound() {
        for bytes in [vec![1], vec![1, 0x80], vec![0x80; 12], vec![10, 1]] {
            assert!(!Packed(bytes).is_sound(10));
        }
    }
}
