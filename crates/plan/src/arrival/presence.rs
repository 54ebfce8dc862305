//! Presence of closed users: user i is there while the level of a profile is above i.

use crate::Profile;

/// A number of users over time, as the engine follows it. After its last segment it begins again or stays as it is.
#[derive(Clone, Debug)]
pub struct Presence {
    pieces: Vec<Piece>,
    ns: u64,
    repeats: bool,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    starts: u64,
    ns: u64,
    from: f64,
    to: f64,
}

impl Piece {
    /// Nanoseconds from the start until the level first exceeds `user`, searching from `from_ns` on.
    fn above(&self, user: f64, from_ns: u64) -> Option<u64> {
        let rise = self.to - self.from;
        let level = self.from + rise * (from_ns as f64 / self.ns as f64);
        if level > user || (level == user && rise > 0.0) {
            return Some(from_ns);
        }
        if rise <= 0.0 || self.to <= user {
            return None;
        }
        let at = (user - self.from) / rise * self.ns as f64;
        Some((at.round() as u64).clamp(from_ns, self.ns))
    }
}

impl Presence {
    /// The levels of a profile, which is valid.
    pub fn new(profile: &Profile) -> Presence {
        let mut ns = 0;
        let mut pieces = Vec::with_capacity(profile.segments.len());
        for segment in &profile.segments {
            pieces.push(Piece {
                starts: ns,
                ns: segment.ns,
                from: segment.start,
                to: segment.end,
            });
            ns += segment.ns;
        }
        Presence {
            pieces,
            ns,
            repeats: profile.repeats,
        }
    }

    /// The first moment from `at` on at which user `user` is there; none: it does not come again.
    pub fn from(&self, user: u32, at: u64) -> Option<u64> {
        let user = f64::from(user);
        if !self.repeats {
            return self.within(user, at).or_else(|| {
                let last = self.pieces.last().map_or(0.0, |piece| piece.to);
                (last > user).then(|| at.max(self.ns))
            });
        }
        let cycle = at - at % self.ns;
        let in_cycle = self
            .within(user, at % self.ns)
            .and_then(|at| cycle.checked_add(at));
        in_cycle.or_else(|| {
            cycle
                .checked_add(self.ns)?
                .checked_add(self.within(user, 0)?)
        })
    }

    /// The same within one cycle.
    fn within(&self, user: f64, at: u64) -> Option<u64> {
        let first = self
            .pieces
            .partition_point(|piece| piece.starts + piece.ns <= at);
        self.pieces[first..].iter().find_map(|piece| {
            let above = piece.above(user, at.saturating_sub(piece.starts))?;
            Some(piece.starts + above)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;

    const S: u64 = 1_000_000_000;

    fn presence(segments: &[(u64, f64, f64)], repeats: bool) -> Presence {
        let segments = segments
            .iter()
            .map(|&(ns, start, end)| Segment { ns, start, end })
            .collect();
        Presence::new(&Profile { segments, repeats })
    }

    #[test]
    fn users_of_a_rising_level_come_one_by_one() {
        let up = presence(&[(10 * S, 0.0, 10.0), (10 * S, 10.0, 10.0)], false);

        let come: Vec<_> = (0..12).map(|user| up.from(user, 0)).collect();

        let expected: Vec<_> = (0..12)
            .map(|user| (user < 10).then_some(user * S))
            .collect();
        assert_eq!(come, expected);
    }

    #[test]
    fn a_user_is_there_until_the_level_has_fallen_to_its_number() {
        // From 4 to 0 in 4 s: user 3 leaves after 1 s, user 0 at the end.
        let down = presence(&[(4 * S, 4.0, 0.0)], false);

        assert_eq!(down.from(3, S - 1), Some(S - 1));
        assert_eq!(down.from(3, S), None);
        assert_eq!(down.from(0, 4 * S - 1), Some(4 * S - 1));
        assert_eq!(down.from(0, 4 * S), None);
    }

    #[test]
    fn a_user_who_left_comes_again_with_the_level() {
        // 2 for 1 s, 5 for 1 s, 1 for 1 s, and so on.
        let steps = presence(&[(S, 2.0, 2.0), (S, 5.0, 5.0), (S, 1.0, 1.0)], true);

        assert_eq!(steps.from(0, 7 * S / 2), Some(7 * S / 2)); // always there
        assert_eq!(steps.from(1, 2 * S), Some(3 * S));
        assert_eq!(steps.from(4, 0), Some(S));
        assert_eq!(steps.from(4, 2 * S), Some(4 * S));
        assert_eq!(steps.from(5, 0), None);
    }

    #[test]
    fn after_its_last_segment_a_profile_stays_at_its_last_level() {
        let kept = presence(&[(S, 0.0, 3.0)], false);

        assert_eq!(kept.from(2, 100 * S), Some(100 * S));
        assert_eq!(kept.from(3, 0), None);
    }
}
