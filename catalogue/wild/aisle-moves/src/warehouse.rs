//! Aisles and their bins.

use std::collections::BTreeMap;

use tokio::sync::{Mutex, MutexGuard};

const PIECES_AT_START: u64 = 50_000_000;

pub struct Bin {
    pub number: usize,
    pub pieces: u64,
}

/// In which order the bins of an aisle are locked.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    AsTheyCome,
    LowerFirst,
}

pub enum Refused {
    NoSuchBin,
    SameBin,
    TooFew,
}

pub struct Aisle {
    bins: Vec<Mutex<Bin>>, // bin 1 at 0
    order: Order,
}

impl Aisle {
    fn new(bins: usize, order: Order) -> Self {
        let bins = (1..=bins).map(|number| Mutex::new(Bin { number, pieces: PIECES_AT_START })).collect();
        Aisle { bins, order }
    }

    /// Carry pieces from one bin to another; return what is in both then.
    pub async fn carry(&self, from: usize, to: usize, pieces: u64) -> Result<(u64, u64), Refused> {
        let last = self.bins.len();
        if from == to {
            return Err(Refused::SameBin);
        }
        if !(1..=last).contains(&from) || !(1..=last).contains(&to) {
            return Err(Refused::NoSuchBin);
        }
        let (mut source, mut target) = self.both(from - 1, to - 1).await;
        source.pieces = source.pieces.checked_sub(pieces).ok_or(Refused::TooFew)?;
        target.pieces += pieces;
        Ok((source.pieces, target.pieces))
    }

    async fn both(&self, from: usize, to: usize) -> (MutexGuard<'_, Bin>, MutexGuard<'_, Bin>) {
        if self.order == Order::LowerFirst && to < from {
            let second = self.bins[to].lock().await;
            return (self.bins[from].lock().await, second);
        }
        let source = self.bins[from].lock().await;
        let target = self.bins[to].lock().await;
        (source, target)
    }

    /// The bins in the order in which the stocktaking walks along them: it begins at the far end, where the lift is.
    pub fn walk(&self) -> Box<dyn Iterator<Item = &Mutex<Bin>> + Send + '_> {
        match self.order {
            Order::AsTheyCome => Box::new(self.bins.iter().rev()),
            Order::LowerFirst => Box::new(self.bins.iter()),
        }
    }
}

pub struct Warehouse {
    aisles: BTreeMap<String, Aisle>,
}

impl Warehouse {
    pub fn new(names: &[&str], bins: usize, order: Order) -> Self {
        let aisles = names.iter().map(|name| (name.to_string(), Aisle::new(bins, order))).collect();
        Warehouse { aisles }
    }

    pub fn aisle(&self, name: &str) -> Option<&Aisle> {
        self.aisles.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.aisles.keys()
    }
}
