//! Time in whole nanoseconds and its ways to and from seconds.
//!
//! The engine counts in `u64` nanoseconds since the trial began; seconds as floats appear only where a
//! number leaves it.

/// Nanoseconds in a microsecond.
pub const MICROSECOND: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

/// Seconds as nanoseconds, rounded; negative and not-a-number give 0, too long gives the largest.
pub fn nanos(seconds: f64) -> u64 {
    (seconds * SECOND as f64).round() as u64 // a float cast saturates and takes NaN to 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_nanoseconds_are_inverse_within_a_nanosecond() {
        for ns in [0, 1, 999, 1_000_000_007, 86_400 * SECOND] {
            assert_eq!(nanos(seconds(ns)), ns);
        }
    }

    #[test]
    fn a_duration_that_is_not_a_length_becomes_zero_or_the_longest() {
        assert_eq!(nanos(-1.0), 0);
        assert_eq!(nanos(f64::NAN), 0);
        assert_eq!(nanos(f64::INFINITY), u64::MAX);
    }
}
