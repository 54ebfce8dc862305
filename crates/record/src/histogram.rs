//! High dynamic range histogram (G. Tene) in pages: 1 ns unit, 3 significant digits, 4 KiB a page.
//!
//! The buckets are those of the `hdrhistogram` crate with the same settings, so the collector passes
//! counts on by index. A page covers one power of two and is taken from a fixed pool at the first
//! value that falls in it: a histogram costs what its spread needs, and recording never allocates.

/// Counts in a page: half of the 2,048 sub-buckets that 3 digits need.
pub const PAGE: usize = 1024;
/// Pages of one histogram; the last one ends at `HIGHEST`.
pub const PAGES: usize = 36;
/// Buckets of one histogram.
pub const BUCKETS: usize = PAGES * PAGE;
/// Values above are counted in the last bucket: 2^45 ns, 9.8 hours.
pub const HIGHEST: u64 = (1 << 45) - 1;

/// Index of the bucket that holds `value`.
#[inline]
pub fn bucket_of(value: u64) -> usize {
    let value = value.min(HIGHEST);
    let shift = 53 - (value | 2047).leading_zeros();
    ((shift as usize) << 10) + (value >> shift) as usize
}

/// Smallest value of a bucket.
pub fn bucket_low(bucket: usize) -> u64 {
    if bucket < 2 * PAGE {
        return bucket as u64;
    }
    let shift = bucket / PAGE - 1;
    ((bucket - shift * PAGE) as u64) << shift
}

/// Largest value of a bucket.
pub fn bucket_high(bucket: usize) -> u64 {
    bucket_low(bucket + 1) - 1
}

/// The pages of all histograms of one interval set. Page 0 is never handed out: it means "none yet".
pub struct PagePool {
    counts: Vec<u32>,
    free: Vec<u32>,
    /// Values that found no page: the pool was too small.
    pub lost: u64,
}

impl PagePool {
    /// Room for `pages` pages. Untouched pages cost address space, not memory.
    pub fn new(pages: usize) -> Self {
        let free = (1..=pages as u32).rev().collect();
        PagePool {
            counts: vec![0; (pages + 1) * PAGE],
            free,
            lost: 0,
        }
    }

    fn page(&self, number: u32) -> &[u32] {
        let from = number as usize * PAGE;
        &self.counts[from..from + PAGE]
    }
}

/// One histogram: which page of the pool holds which power of two.
#[derive(Clone)]
pub struct Histogram {
    pages: [u32; PAGES],
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { pages: [0; PAGES] }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64, pool: &mut PagePool) {
        let bucket = bucket_of(value);
        let place = &mut self.pages[bucket / PAGE];
        if *place == 0 {
            match pool.free.pop() {
                Some(page) => *place = page,
                None => {
                    pool.lost += 1;
                    return;
                }
            }
        }
        pool.counts[*place as usize * PAGE + bucket % PAGE] += 1;
    }

    /// Calls `each(bucket, count)` for every bucket that is not empty, in rising order.
    pub fn for_each(&self, pool: &PagePool, mut each: impl FnMut(usize, u32)) {
        for (index, &number) in self.pages.iter().enumerate() {
            if number == 0 {
                continue;
            }
            for (offset, &count) in pool.page(number).iter().enumerate() {
                if count > 0 {
                    each(index * PAGE + offset, count);
                }
            }
        }
    }

    /// Empties the histogram and gives its pages back.
    pub fn clear(&mut self, pool: &mut PagePool) {
        for place in &mut self.pages {
            if *place != 0 {
                let from = *place as usize * PAGE;
                pool.counts[from..from + PAGE].fill(0);
                pool.free.push(*place);
                *place = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_hdrhistogram_crate() {
        let mut values: Vec<u64> = (0..45)
            .flat_map(|p| [(1u64 << p) - 1, 1 << p, (1 << p) + 1])
            .collect();
        values.extend((1..200u64).map(|i| i * i * i * i * 977 % HIGHEST));
        let hdr = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST, 3).unwrap();

        for value in values {
            let bucket = bucket_of(value);

            assert_eq!(bucket_low(bucket), hdr.lowest_equivalent(value), "{value}");
            assert_eq!(
                bucket_high(bucket),
                hdr.highest_equivalent(value),
                "{value}"
            );
        }
    }

    #[test]
    fn counts_come_back_as_recorded_and_cleared_pages_are_empty() {
        let mut pool = PagePool::new(4);
        let mut histogram = Histogram::default();
        for value in [5, 5, 3_000, 1_000_000, u64::MAX] {
            histogram.record(value, &mut pool);
        }
        let mut seen = Vec::new();
        histogram.for_each(&pool, |bucket, count| {
            seen.push((bucket_low(bucket), count));
        });

        histogram.clear(&mut pool);
        let mut left = 0;
        histogram.for_each(&pool, |_, count| left += count);

        assert_eq!(
            seen,
            [
                (5, 2),
                (3_000, 1),
                (999_936, 1),
                (bucket_low(bucket_of(HIGHEST)), 1)
            ]
        );
        assert_eq!((left, pool.free.len(), pool.lost), (0, 4, 0));
    }

    #[test]
    fn a_value_without_a_page_is_counted_as_lost() {
        let mut pool = PagePool::new(1);
        let mut histogram = Histogram::default();

        histogram.record(1, &mut pool);
        histogram.record(1_000_000, &mut pool);

        assert_eq!(pool.lost, 1);
    }
}
