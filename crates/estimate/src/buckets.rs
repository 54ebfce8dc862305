//! The values that a quantity may have, by place in a table that rises.

/// Counts in the upper half of each power of two: HdrHistogram with 3 significant digits.
const HALF: u64 = 1024;
/// Places of the HDR table: up to 2^63 ns.
const HDR_PLACES: u32 = 54 * 1024;

/// A table of values, and one of the ages of unfinished requests. Seconds.
#[derive(Clone, Debug)]
pub enum Buckets {
    /// The buckets of an HDR histogram of nanoseconds with 3 digits.
    Hdr {
        /// Ages, rising; none: an age is the lower end of its bucket.
        ages: Option<Vec<f64>>,
    },
    /// Any others.
    Table {
        /// Lower ends.
        lower: Vec<f64>,
        /// Upper ends, rising.
        upper: Vec<f64>,
        /// Ages, rising.
        ages: Vec<f64>,
    },
}

impl Buckets {
    /// The buckets of the recorder.
    pub const HDR: Buckets = Buckets::Hdr { ages: None };

    /// Number of places there are.
    pub fn places(&self) -> u32 {
        match self {
            Buckets::Hdr { .. } => HDR_PLACES,
            Buckets::Table { upper, .. } => upper.len() as u32,
        }
    }

    /// The upper end of a bucket.
    pub fn upper(&self, place: u32) -> f64 {
        match self {
            Buckets::Hdr { .. } => hdr_upper_ns(place) as f64 / 1e9,
            Buckets::Table { upper, .. } => upper[place as usize],
        }
    }

    /// The lower end of a bucket.
    pub fn lower(&self, place: u32) -> f64 {
        match self {
            Buckets::Hdr { .. } => hdr_lower_ns(place) as f64 / 1e9,
            Buckets::Table { lower, .. } => lower[place as usize],
        }
    }

    /// Time that unfinished requests of this place are known to have lasted.
    pub fn age(&self, place: u32) -> f64 {
        match self {
            Buckets::Hdr { ages: None } => hdr_lower_ns(place) as f64 / 1e9,
            Buckets::Hdr { ages: Some(ages) } | Buckets::Table { ages, .. } => ages[place as usize],
        }
    }
}

fn octave(place: u32) -> u64 {
    (u64::from(place) / HALF).saturating_sub(1)
}

fn hdr_lower_ns(place: u32) -> u64 {
    (u64::from(place) - octave(place) * HALF) << octave(place)
}

fn hdr_upper_ns(place: u32) -> u64 {
    hdr_lower_ns(place) + ((1 << octave(place)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_hdr_histogram_that_the_recorder_keeps() {
        let histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 42, 3).unwrap();
        for place in (0..33 * 1024).step_by(7) {
            let value = hdr_lower_ns(place);

            assert_eq!(histogram.lowest_equivalent(value), value, "{place}");
            assert_eq!(
                histogram.highest_equivalent(value),
                hdr_upper_ns(place),
                "{place}"
            );
        }
    }
}
