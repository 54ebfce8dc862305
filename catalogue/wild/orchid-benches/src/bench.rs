use sha2::{Digest, Sha256};

const TAG_ROUNDS: usize = 1500;

pub struct Bench {
    pots: u32,
    moves: u64,
    seal: [u8; 32],
}

impl Bench {
    pub fn new(pots: u32) -> Self {
        Bench { pots, moves: 0, seal: [0; 32] }
    }

    pub fn pots(&self) -> u32 {
        self.pots
    }

    pub fn moves(&self) -> u64 {
        self.moves
    }

    pub fn check_tags(&self) -> [u8; 32] {
        let mut sum = self.seal;
        for _ in 0..TAG_ROUNDS {
            sum = Sha256::digest(sum).into();
        }
        std::hint::black_box(sum)
    }

    pub fn take(&mut self, wanted: u32) -> u32 {
        let pots = wanted.min(self.pots);
        self.pots -= pots;
        self.moves += 1;
        pots
    }

    pub fn put(&mut self, pots: u32) {
        self.pots += pots;
        self.moves += 1;
        self.seal = Sha256::digest([&self.seal[..], &pots.to_be_bytes()].concat()).into();
    }

    pub fn label(&self) -> String {
        self.seal[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
