//! Connections by epoll token. An index that is used again has another generation, so that a late event or timer of the
//! former connection does not reach the new one.

/// Values of one kind, each with a token of 64 bits.
pub struct Slab<T> {
    kind: u64,
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

/// The bit of a token that separates the tokens of two slabs in one epoll instance.
pub const KIND: u64 = 1 << 31;
/// Tokens from here on belong to no slab: for listeners and bells.
pub const RESERVED: u64 = u64::MAX - 7;

impl<T> Slab<T> {
    /// An empty slab; `kind` is 0 or [`KIND`].
    pub fn new(kind: u64) -> Slab<T> {
        Slab {
            kind,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Takes in the value that `make` builds from its token, and returns the token.
    pub fn insert(&mut self, make: impl FnOnce(u64) -> T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        let token = u64::from(slot.0) << 32 | self.kind | u64::from(index);
        slot.1 = Some(make(token));
        token
    }

    /// The value of a token, if it is still there.
    pub fn get(&mut self, token: u64) -> Option<&mut T> {
        if token & KIND != self.kind {
            return None;
        }
        let (generation, value) = self.slots.get_mut((token & (KIND - 1)) as usize)?;
        if u64::from(*generation) == token >> 32 {
            value.as_mut()
        } else {
            None
        }
    }

    /// Takes the value of a token out.
    pub fn remove(&mut self, token: u64) -> Option<T> {
        self.get(token)?;
        let index = (token & (KIND - 1)) as usize;
        let slot = &mut self.slots[index];
        slot.0 = (slot.0 + 1) % (u32::MAX - 1);
        self.free.push(index as u32);
        slot.1.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_token_does_not_reach_what_came_after() {
        let mut slab = Slab::new(KIND);
        let first = slab.insert(|_| 'a');
        slab.remove(first);
        let second = slab.insert(|_| 'b');

        assert_eq!(first as u32, second as u32);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&mut 'b'));
    }
}
