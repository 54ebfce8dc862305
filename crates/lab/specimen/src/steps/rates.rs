//! Limits of a rate: tokens that are refilled, and slots at equal distances.

/// A token bucket, full at the start.
pub struct Bucket {
    per_ns: f64,
    size: f64,
    tokens: f64,
    at_ns: u64,
}

impl Bucket {
    /// A full bucket of this rate and size.
    pub fn new(rate_per_s: f64, size: f64) -> Bucket {
        Bucket {
            per_ns: rate_per_s / 1e9,
            size,
            tokens: size,
            at_ns: 0,
        }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let gained = now_ns.saturating_sub(self.at_ns) as f64 * self.per_ns;
        self.tokens = (self.tokens + gained).min(self.size);
        self.at_ns = now_ns;
        let has = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(has));
        has
    }
}

/// Moments at equal distances, each for one request.
pub struct Slots {
    every_ns: u64,
    next_ns: u64,
    early_ns: u64,
    window_ns: u64,
}

impl Slots {
    /// Slots at this rate; `burst` more pass at once after a pause, or all of a window at its begin.
    pub fn new(rate_per_s: f64, burst: f64, window_ns: u64) -> Slots {
        let every = 1e9 / rate_per_s;
        Slots {
            every_ns: every.ceil() as u64,
            next_ns: 0,
            early_ns: (burst * every) as u64,
            window_ns: window_ns.max(1),
        }
    }

    /// Takes the next one; how long it is until then.
    pub fn take(&mut self, now_ns: u64) -> u64 {
        let begin = |at: u64| at / self.window_ns * self.window_ns;
        let at = self
            .next_ns
            .max(begin(now_ns.saturating_sub(self.early_ns)));
        self.next_ns = at + self.every_ns;
        begin(at).saturating_sub(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_passes_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(100.0, 20.0);

        let passed = (0..2_000u64)
            .filter(|ms| bucket.take(ms * 1_000_000))
            .count();

        // 2 s at 1000/s: the burst, and 100 for each of the 1.999 s since the start.
        assert!((218..=220).contains(&passed), "{passed}");
    }

    #[test]
    fn slots_are_equally_far_apart() {
        let mut slots = Slots::new(200.0, 0.0, 0);

        let waits: Vec<u64> = (0..3).map(|_| slots.take(1_000)).collect();

        assert_eq!(waits, [0, 5_000_000, 10_000_000]);
        assert_eq!(slots.take(99_000_000), 0);
    }

    #[test]
    fn slots_with_a_burst_pass_it_at_once_after_a_pause() {
        let mut slots = Slots::new(100.0, 20.0, 0);

        let waits: Vec<u64> = (0..30).map(|_| slots.take(5_000_000_000)).collect();

        // The one that is due and 20 more, then one each 10 ms.
        assert_eq!(waits.iter().filter(|wait| **wait == 0).count(), 21);
        assert_eq!(waits[29], 90_000_000);
    }

    #[test]
    fn slots_of_a_window_pass_at_its_begin() {
        let mut slots = Slots::new(10.0, 0.0, 500_000_000);

        let waits: Vec<u64> = (0..12).map(|_| slots.take(7_000_000_000)).collect();

        assert_eq!(waits[..5], [0; 5]);
        assert_eq!(waits[5..10], [500_000_000; 5]);
        assert_eq!(waits[10], 1_000_000_000);
    }
}
