//! Histograms lose nothing in a merge, and are off by a thousandth at most.

use loadlens_base::Random;
use loadlens_record::histogram::{
    bucket_high, bucket_low, bucket_of, Histogram, PagePool, HIGHEST, PAGES,
};
use loadlens_record::merge::{add_counts, quantile, Counts};

/// Times from nanoseconds to hours: each power of two is as likely as the others.
fn times(random: &mut Random, count: u64) -> Vec<u64> {
    let time = |random: &mut Random| {
        let highest = 1 << (1 + random.below(45));
        random.below(highest).min(HIGHEST)
    };
    (0..count).map(|_| time(random)).collect()
}

fn counts_of(values: &[u64]) -> Counts {
    let mut pool = PagePool::new(PAGES);
    let mut histogram = Histogram::default();
    for value in values {
        histogram.record(*value, &mut pool);
    }
    let mut counts = Counts::new();
    histogram.for_each(&pool, |bucket, count| {
        counts.push((bucket as u32, u64::from(count)));
    });
    assert_eq!(pool.lost, 0);
    counts
}

fn sum(parts: &[&Counts]) -> Counts {
    let mut all = Counts::new();
    parts.iter().for_each(|part| add_counts(&mut all, part));
    all
}

#[test]
fn a_merge_is_exact_whatever_its_order() {
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let lengths: Vec<u64> = (0..3).map(|_| random.below(400)).collect();
        let parts: Vec<Vec<u64>> = lengths
            .into_iter()
            .map(|count| times(random, count))
            .collect();
        let [a, b, c] = [&parts[0], &parts[1], &parts[2]].map(|part| counts_of(part));

        let at_once = counts_of(&parts.concat());

        assert_eq!(sum(&[&a, &b, &c]), at_once, "seed {seed}");
        assert_eq!(sum(&[&c, &a, &b]), at_once, "seed {seed}");
        assert_eq!(sum(&[&a, &sum(&[&b, &c])]), at_once, "seed {seed}");
        let counted: u64 = at_once.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, parts.concat().len() as u64, "seed {seed}");
    }
}

#[test]
fn a_bucket_holds_its_values_and_is_a_thousandth_wide_at_most() {
    for value in times(&mut Random::new(1), 200_000) {
        let (low, high) = (bucket_low(bucket_of(value)), bucket_high(bucket_of(value)));

        assert!((low..=high).contains(&value), "{value}: {low} to {high}");
        assert!((high - low) * 1000 <= low, "{value}: {low} to {high}");
    }
}

#[test]
fn quantiles_are_those_of_the_sorted_list_within_a_thousandth() {
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let length = 1 + random.below(2_000);
        let mut values = times(random, length);
        let counts = counts_of(&values);
        values.sort_unstable();

        for p in [0.001, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let rank = (p * values.len() as f64).ceil() as usize; // the inverse of the empirical distribution
            let truth = values[rank.max(1) - 1];
            let seen = quantile(&counts, p).expect("there are values");

            assert!(
                seen >= truth && (seen - truth) * 1000 <= truth,
                "seed {seed}, {p}: {seen}, not {truth}"
            );
        }
    }
}
