//! A bounded queue of boxes between one producer and one consumer, without locks or allocation.
//!
//! The worker hands full buffers to the collector and takes empty ones back through a pair of these.
//! Neither side ever waits: a full ring refuses, an empty one gives nothing.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

struct Slots<T> {
    slots: Box<[AtomicPtr<T>]>,
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        for slot in &self.slots {
            let pointer = slot.swap(ptr::null_mut(), Ordering::Acquire);
            if !pointer.is_null() {
                // SAFETY: every pointer in a slot came from `Box::into_raw` and is taken only once.
                drop(unsafe { Box::from_raw(pointer) });
            }
        }
    }
}

/// The side that puts.
pub struct Giver<T> {
    slots: Arc<Slots<T>>,
    at: usize,
}

/// The side that takes.
pub struct Taker<T> {
    slots: Arc<Slots<T>>,
    at: usize,
}

/// A ring with room for `capacity` boxes.
pub fn ring<T: Send>(capacity: usize) -> (Giver<T>, Taker<T>) {
    let slots = (0..capacity.max(1))
        .map(|_| AtomicPtr::new(ptr::null_mut()))
        .collect();
    let slots = Arc::new(Slots { slots });
    (
        Giver {
            slots: slots.clone(),
            at: 0,
        },
        Taker { slots, at: 0 },
    )
}

impl<T: Send> Giver<T> {
    /// Puts one box; gives it back when the ring is full.
    pub fn give(&mut self, item: Box<T>) -> Result<(), Box<T>> {
        let slot = &self.slots.slots[self.at];
        if !slot.load(Ordering::Acquire).is_null() {
            return Err(item);
        }
        slot.store(Box::into_raw(item), Ordering::Release);
        self.at = (self.at + 1) % self.slots.slots.len();
        Ok(())
    }
}

impl<T: Send> Taker<T> {
    /// Takes the oldest box, if there is one.
    pub fn take(&mut self) -> Option<Box<T>> {
        let pointer = self.slots.slots[self.at].swap(ptr::null_mut(), Ordering::AcqRel);
        if pointer.is_null() {
            return None;
        }
        self.at = (self.at + 1) % self.slots.slots.len();
        // SAFETY: the pointer came from `Box::into_raw` in `give`; the swap took it out for good.
        Some(unsafe { Box::from_raw(pointer) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_come_out_in_the_order_they_went_in_across_threads() {
        let (mut giver, mut taker) = ring::<u64>(4);
        let producer = std::thread::spawn(move || {
            for number in 0..10_000u64 {
                let mut item = Box::new(number);
                while let Err(back) = giver.give(item) {
                    item = back;
                    std::thread::yield_now();
                }
            }
        });

        let mut seen = Vec::new();
        while seen.len() < 10_000 {
            match taker.take() {
                Some(item) => seen.push(*item),
                None => std::thread::yield_now(),
            }
        }
        producer.join().unwrap();

        assert!(seen.iter().copied().eq(0..10_000));
    }

    #[test]
    fn a_full_ring_gives_the_box_back_and_a_dropped_one_frees_it() {
        let (mut giver, taker) = ring::<Vec<u8>>(1);
        giver.give(Box::new(vec![1])).unwrap();

        assert_eq!(*giver.give(Box::new(vec![2])).unwrap_err(), vec![2]);
        drop((giver, taker)); // Miri and the leak checker see the first one freed
    }
}
