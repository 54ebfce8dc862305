//! Speed of a link: so many bytes per second, which arrive when the link is through with
//! them. Pure: time comes in as numbers.

/// A link. A message of L bytes takes L / rate, whatever pieces it goes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    rate: u64,
    /// Time at which it is through with everything given to it.
    free_at_ns: u64,
}

/// The longest that one connection has the link to itself.
const TURN_NS: u64 = 5_000_000;
/// Ethernet's payload: as small as pieces get.
const LEAST_PIECE: u64 = 1460;

impl Link {
    pub fn new(rate: u64) -> Link {
        Link {
            rate,
            free_at_ns: 0,
        }
    }

    /// Takes the link for the next piece of `pending` bytes: its size, and when it is through.
    ///
    /// `follows`: more bytes of the same message, which come after the last ones without a pause, however
    /// late we woke.
    pub fn take(&mut self, pending: usize, now_ns: u64, follows: bool) -> (usize, u64) {
        let turn = (u128::from(self.rate) * u128::from(TURN_NS) / 1_000_000_000) as u64;
        let piece = (pending as u64).min(turn.max(LEAST_PIECE));
        let from = if follows && now_ns.saturating_sub(self.free_at_ns) < 20 * TURN_NS {
            self.free_at_ns
        } else {
            self.free_at_ns.max(now_ns)
        };
        let takes = u128::from(piece) * 1_000_000_000 / u128::from(self.rate);
        self.free_at_ns = from + takes as u64;
        (piece as usize, self.free_at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_its_length_by_the_rate_however_late_we_wake() {
        let mut link = Link::new(100_000);
        let mut left = 250_000;
        let mut now = 7;
        let mut follows = false;

        while left > 0 {
            let (piece, through_ns) = link.take(left, now, follows);
            left -= piece;
            now = through_ns + 300_000; // we wake 0.3 ms late each time
            follows = true;
        }

        // 250,000 bytes at 100,000 a second; each piece rounds down by less than a nanosecond.
        let wanted = 7 + 2_500_000_000;
        assert!(wanted - link.free_at_ns < 1000, "{}", link.free_at_ns);
    }

    #[test]
    fn an_idle_link_saves_nothing_up() {
        let mut link = Link::new(1_000_000);

        link.take(1000, 0, false);
        let (_, through_ns) = link.take(1000, 5_000_000_000, false);

        assert_eq!(through_ns, 5_001_000_000);
    }

    #[test]
    fn two_who_share_a_link_take_turns() {
        let mut link = Link::new(1_000_000);

        let (first, first_ns) = link.take(1 << 20, 0, false);
        let (second, second_ns) = link.take(1 << 20, 0, false);

        assert_eq!((first, second), (5000, 5000)); // 5 ms each
        assert_eq!((first_ns, second_ns), (5_000_000, 10_000_000));
    }
}
