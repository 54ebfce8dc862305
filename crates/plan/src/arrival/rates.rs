//! A rate that changes over time, and when its integral reaches a value.
//!
//! Rates are fixed-point numbers of one common scale and areas are whole numbers of 128 bits, so that the integral over
//! any number of segments and cycles is exact and nothing drifts; only the square root inside a ramp is of floats.

use std::sync::Arc;

use loadlens_base::units::SECOND;

use crate::Profile;

/// The largest rate of a profile becomes a number of so many bits.
const BITS: i32 = 60;

/// A part of a cycle in which the rate is linear.
#[derive(Clone, Debug)]
struct Piece {
    /// Since the cycle began.
    starts: u64,
    ns: u64,
    /// Rate at its start and at its end.
    from: u64,
    to: u64,
    /// Twice the area of the pieces before it.
    before: u128,
}

impl Piece {
    /// Twice its area.
    fn area(&self) -> u128 {
        (u128::from(self.from) + u128::from(self.to)) * u128::from(self.ns)
    }

    /// Nanoseconds from the start until twice the area reaches `area`, which is less than all of it; rounded.
    ///
    /// A falling ramp is solved from its end: there no term cancels another.
    fn reaches(&self, area: u128) -> u64 {
        if self.from == self.to {
            let rate = u128::from(self.from);
            return ((area + rate) / (2 * rate)) as u64;
        }
        if self.from < self.to {
            return climb(self.from, self.to, self.ns, area);
        }
        self.ns - climb(self.to, self.from, self.ns, self.area() - area)
    }
}

/// Nanoseconds that a rate rising from `from` to `to` within `ns` takes for half of `area`: the positive root of
/// (to - from) / ns t^2 + 2 from t = area.
fn climb(from: u64, to: u64, ns: u64, area: u128) -> u64 {
    if area == 0 {
        return 0;
    }
    let (linear, slope) = (2.0 * from as f64, (to - from) as f64 / ns as f64);
    let area = area as f64;
    let root = 2.0 * area / (linear + (linear * linear + 4.0 * slope * area).sqrt());
    (root.round() as u64).min(ns)
}

/// A rate over time, as the engine follows it. After its last piece it begins again or stays as it is.
#[derive(Clone, Debug)]
pub struct Rates {
    pieces: Arc<[Piece]>,
    /// Sum over all pieces.
    ns: u64,
    /// Twice the area of all pieces.
    area: u128,
    repeats: bool,
    /// Twice the area of one arrival.
    unit: u128,
}

/// Position of a search for rising values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// Start of the present cycle.
    starts: u64,
    /// Twice the area of all cycles before it.
    before: u128,
    piece: usize,
}

impl Rates {
    /// The rates of a profile, which is valid and has a rate above 0 somewhere.
    pub fn new(profile: &Profile) -> Rates {
        let peak = profile.peak();
        // 2^59 <= peak x 2^shift < 2^60; scaling by a power of two changes no digit of a rate.
        let shift = BITS - 1 - peak.log2().floor() as i32;
        let scale = 2f64.powi(shift);
        let fixed = |rate: f64| (rate * scale).round() as u64;
        let (mut ns, mut area) = (0, 0);
        let mut pieces = Vec::with_capacity(profile.segments.len());
        for segment in &profile.segments {
            let piece = Piece {
                starts: ns,
                ns: segment.ns,
                from: fixed(segment.start),
                to: fixed(segment.end),
                before: area,
            };
            ns += piece.ns;
            area += piece.area();
            pieces.push(piece);
        }
        Rates {
            pieces: pieces.into(),
            ns,
            area,
            repeats: profile.repeats && area > 0,
            unit: (2 * u128::from(SECOND)) << shift,
        }
    }

    /// Area that [`Rates::reaches`] counts as one arrival.
    pub fn unit(&self) -> u128 {
        self.unit
    }

    /// The moment after which the integral is above `value`, in [`Rates::unit`]s; none: it never is.
    ///
    /// `value` does not fall from one call with a cursor to the next.
    pub fn reaches(&self, value: u128, cursor: &mut Cursor) -> Option<u64> {
        let mut rest = value - cursor.before;
        if self.repeats && rest >= self.area {
            let cycles = rest / self.area;
            let ns = u64::try_from(cycles).ok()?.checked_mul(self.ns)?;
            cursor.starts = cursor.starts.checked_add(ns)?;
            cursor.before += cycles * self.area;
            cursor.piece = 0;
            rest = value - cursor.before;
        }
        while let Some(piece) = self.pieces.get(cursor.piece) {
            let within = rest - piece.before;
            if within < piece.area() {
                return cursor
                    .starts
                    .checked_add(piece.starts + piece.reaches(within));
            }
            cursor.piece += 1;
        }
        let last = u128::from(self.pieces.last().map_or(0, |piece| piece.to));
        if last == 0 {
            return None;
        }
        let beyond = (rest - self.area).saturating_add(last) / (2 * last);
        u64::try_from(beyond).ok()?.checked_add(self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;

    const S: u64 = SECOND;

    fn rates(segments: &[(u64, f64, f64)], repeats: bool) -> Rates {
        let segments = segments
            .iter()
            .map(|&(ns, start, end)| Segment { ns, start, end })
            .collect();
        Rates::new(&Profile { segments, repeats })
    }

    /// Due times of arrivals 0, 1, 2 ... before `end`.
    fn due(rates: &Rates, end: u64) -> Vec<u64> {
        let mut cursor = Cursor::default();
        (0u128..)
            .map_while(|k| rates.reaches(k * rates.unit(), &mut cursor))
            .take_while(|due| *due < end)
            .collect()
    }

    #[test]
    fn a_ramp_reaches_k_at_the_root_of_its_quadratic() {
        // From 10/s to 30/s in 2 s: 10 t + 5 t^2 = k, so t = sqrt(1 + k / 5) - 1; 40 arrivals in all.
        let up = due(&rates(&[(2 * S, 10.0, 30.0)], false), 2 * S);
        let expected = |k: u64| ((1.0 + k as f64 / 5.0).sqrt() - 1.0) * 1e9;
        assert_eq!(up.len(), 40);
        for (k, due) in up.iter().enumerate() {
            assert!((*due as f64 - expected(k as u64)).abs() < 1.0, "{k}: {due}");
        }

        // The same backwards: 30 t - 5 t^2 = k, t = 3 - sqrt(9 - k / 5).
        let down = due(&rates(&[(2 * S, 30.0, 10.0)], false), 2 * S);
        assert_eq!(down.len(), 40);
        for (k, due) in down.iter().enumerate() {
            let expected = (3.0 - (9.0 - k as f64 / 5.0).sqrt()) * 1e9;
            assert!((*due as f64 - expected).abs() < 1.0, "{k}: {due}");
        }
    }

    #[test]
    fn a_ramp_from_nothing_begins_with_its_first_arrival_and_one_to_nothing_ends() {
        // 100 t^2 / 20 = k: t = sqrt(k / 5), that is 0, 447.2 ms, 632.5 ms, 774.6 ms, 894.4 ms.
        let from = due(&rates(&[(S, 0.0, 10.0)], false), S);
        assert_eq!(
            from,
            [0, 447_213_595, 632_455_532, 774_596_669, 894_427_191]
        );

        // 10 t - 5 t^2 = k: t = 1 - sqrt(1 - k / 5), and then never again.
        let to = due(&rates(&[(S, 10.0, 0.0)], false), u64::MAX);
        assert_eq!(to, [0, 105_572_809, 225_403_331, 367_544_468, 552_786_405]);
    }

    #[test]
    fn after_its_last_segment_a_profile_stays_at_its_last_rate() {
        let held = due(&rates(&[(S, 2.0, 2.0), (S, 2.0, 4.0)], false), 3 * S);

        // 2 in the first second; 2 t + t^2 = k - 2 in the second: sqrt(k - 1) - 1; then every 250 ms.
        let expected = [
            0.0,
            0.5,
            1.0,
            2f64.sqrt(),
            3f64.sqrt(),
            2.0,
            2.25,
            2.5,
            2.75,
        ];
        let expected: Vec<u64> = expected
            .iter()
            .map(|s| (s * 1e9_f64).round() as u64)
            .collect();
        assert_eq!(held, expected);
    }

    #[test]
    fn bursts_begin_with_an_arrival_and_send_nothing_in_between() {
        let bursts = due(
            &rates(&[(S, 3.0, 3.0), (9 * S, 0.0, 0.0)], true),
            u64::MAX >> 20,
        );

        assert_eq!(
            bursts[..7],
            [
                0,
                333_333_333,
                666_666_667,
                10 * S,
                10 * S + 333_333_333,
                10 * S + 666_666_667,
                20 * S
            ]
        );
        // No drift after more than 500 cycles.
        assert!(bursts.len() > 1500);
        assert_eq!(bursts[1500], 5000 * S);
    }

    #[test]
    fn a_pause_at_the_beginning_is_a_pause() {
        let late = due(&rates(&[(5 * S, 0.0, 0.0), (S, 2.0, 2.0)], false), 6 * S);

        assert_eq!(late, [5 * S, 5 * S + S / 2]);
    }

    #[test]
    fn a_year_of_days_and_nights_does_not_drift() {
        // From 0.1/s to 30/s and back within a day: 86,400 x 15.05 = 1,300,320 arrivals a day.
        let day = 86_400 * S;
        let rates = rates(&[(day / 2, 0.1, 30.0), (day / 2, 30.0, 0.1)], true);
        let of_a_day = 1_300_320u128;

        for days in [1u64, 365] {
            let value = u128::from(days) * of_a_day * rates.unit();
            let at = rates.reaches(value, &mut Cursor::default()).unwrap();
            // 0.1 is no binary fraction: 365 days of its error are 1e-10 arrivals, at 0.1/s about 1 ns.
            assert!(at.abs_diff(days * day) <= 20, "{days}: {at}");
        }
    }

    #[test]
    fn what_would_be_due_after_the_clock_ends_is_never_due() {
        // 2^64 ns are 1.84e10 s: at one in 1024 s, which is a binary fraction, 1.8014e7 arrivals.
        let slow = rates(&[(S, 1.0 / 1024.0, 1.0 / 1024.0)], false);
        let after = |arrivals: u128| slow.reaches(arrivals * slow.unit(), &mut Cursor::default());
        assert_eq!(after(18_000_000), Some(18_432_000_000 * S));
        assert_eq!(after(18_100_000), None);

        let rare = rates(&[(1, 1e-6, 1e-6), (S, 0.0, 0.0)], true);
        assert_eq!(rare.reaches(rare.unit(), &mut Cursor::default()), None);
    }
}
