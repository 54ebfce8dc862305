//! The book of a season's draws: who took how much water, each entry sealed with the one before it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

const SEASON_ENTRIES: usize = 70_000;
const SEAL_ROUNDS: u32 = 500_000;
const ALLOWANCE_LITRES: u64 = 900_000_000;

#[derive(Clone, Copy)]
pub struct Draw {
    pub farm: u32,
    pub litres: u64,
    pub seal: u64,
}

struct Pages {
    draws: VecDeque<Draw>,
    next_turn: u64,
    turn: u64,
}

impl Pages {
    fn taken_by(&self, farm: u32) -> u64 {
        self.draws.iter().filter(|draw| draw.farm == farm).map(|draw| draw.litres).sum()
    }

    fn allows(&self, farm: u32, litres: u64) -> bool {
        self.taken_by(farm) + litres <= ALLOWANCE_LITRES
    }

    fn last_seal(&self) -> u64 {
        self.draws.back().map_or(1, |draw| draw.seal)
    }

    fn append(&mut self, draw: Draw) {
        if self.draws.len() == SEASON_ENTRIES {
            self.draws.pop_front();
        }
        self.draws.push_back(draw);
    }
}

pub struct Book {
    pages: Mutex<Pages>,
    written: Condvar,
}

pub fn seal(previous: u64, farm: u32, litres: u64) -> u64 {
    let mut state = previous ^ (u64::from(farm) << 32) ^ litres;
    for _ in 0..SEAL_ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

impl Book {
    pub fn open() -> Self {
        let draws = (0..SEASON_ENTRIES as u64)
            .map(|day| Draw { farm: (day % 97) as u32, litres: 900 + day % 700, seal: day + 1 })
            .collect();
        Book { pages: Mutex::new(Pages { draws, next_turn: 0, turn: 0 }), written: Condvar::new() }
    }

    /// Enters a draw in its turn, one writer at a time, as its seal covers the last entry. None if the farm had its share.
    pub fn enter_in_turn(&self, farm: u32, litres: u64) -> Option<Draw> {
        let mut pages = self.pages.lock().unwrap();
        let own_turn = pages.next_turn;
        pages.next_turn += 1;
        let mut allowed = pages.allows(farm, litres);
        while pages.turn != own_turn {
            pages = self.written.wait(pages).unwrap();
            allowed = pages.allows(farm, litres);
        }
        let previous = pages.last_seal();
        drop(pages);

        let draw = allowed.then(|| Draw { farm, litres, seal: seal(previous, farm, litres) });

        let mut pages = self.pages.lock().unwrap();
        draw.into_iter().for_each(|draw| pages.append(draw));
        pages.turn += 1;
        self.written.notify_all();
        draw
    }

    /// Enters a draw that is sealed by itself, and linked to the last entry afterwards. None if the farm had its share.
    pub fn enter(&self, farm: u32, litres: u64) -> Option<Draw> {
        let own = seal(1, farm, litres);
        let mut pages = self.pages.lock().unwrap();
        if !pages.allows(farm, litres) {
            return None;
        }
        let draw = Draw { farm, litres, seal: own ^ pages.last_seal().rotate_left(9) };
        pages.append(draw);
        Some(draw)
    }
}
