use proptest::prelude::*;

use super::*;
use loadlens_base::Random;

/// The upper value of the bucket of `ns` in an HDR histogram of 3 digits.
fn bucket(ns: u64) -> u64 {
    let width = 1u64 << ns.max(1).ilog2().saturating_sub(10);
    (ns / width + 1) * width - 1
}

/// Intervals of `length_s` from (completed at, time taken) in seconds.
fn recorded(requests: &[(f64, f64)], length_s: f64, count: usize) -> Vec<Interval> {
    let mut intervals = vec![
        Interval {
            length_s,
            ..Interval::default()
        };
        count
    ];
    for (done_s, taken_s) in requests {
        let Some(interval) = intervals.get_mut((done_s / length_s) as usize) else {
            continue;
        };
        interval.sum_s += taken_s;
        interval.sumsq_s2 += taken_s * taken_s;
        interval
            .values
            .push((bucket((taken_s * 1e9) as u64), 1).into());
    }
    intervals
}

/// Response times of M/M/1 by Lindley's recursion, from a queue in equilibrium: (completed at, time taken).
fn single_server_queue(
    random: &mut Random,
    arrivals_per_s: f64,
    served_per_s: f64,
    run_s: f64,
) -> Vec<(f64, f64)> {
    let mut requests = Vec::new();
    // In equilibrium the work that an arrival finds is 0, or else exponential like the response time.
    let busy = random.unit() < arrivals_per_s / served_per_s;
    let mut work_s = if busy {
        random.exponential() / (served_per_s - arrivals_per_s)
    } else {
        0.0
    };
    let mut now_s = 0.0;
    while now_s < run_s {
        let taken_s = work_s + random.exponential() / served_per_s;
        requests.push((now_s + taken_s, taken_s));
        let gap_s = random.exponential() / arrivals_per_s;
        work_s = (taken_s - gap_s).max(0.0);
        now_s += gap_s;
    }
    requests
}

fn contains(quantity: &Quantity, truth: f64) -> bool {
    quantity.low.is_none_or(|low| low <= truth) && quantity.high.is_none_or(|high| truth <= high)
}

/// How often the 95 % intervals of mean, p50 and p99 contain the truth in runs of an M/M/1 queue.
fn coverage(
    load: f64,
    intervals: usize,
    as_recorded: fn(Vec<Interval>) -> Vec<Interval>,
) -> [f64; 3] {
    const RUNS: u32 = 100;
    let (served_per_s, length_s) = (200.0, 1.0);
    let rate = served_per_s * (1.0 - load); // the response time is exponential with this rate
    let truths = [1.0 / rate, 2f64.ln() / rate, 100f64.ln() / rate];
    let mut hits = [0u32; 3];
    for run in 0..RUNS {
        let mut random = Random::derived(2024, &[u64::from(run)]);
        let requests = single_server_queue(
            &mut random,
            served_per_s * load,
            served_per_s,
            intervals as f64 * length_s,
        );
        let found = distribution(&as_recorded(recorded(&requests, length_s, intervals)));
        for (hit, (quantity, truth)) in hits.iter_mut().zip(
            [&found.mean, &found.p50, &found.p99]
                .into_iter()
                .zip(truths),
        ) {
            *hit += u32::from(contains(quantity, truth));
        }
    }
    hits.map(|hit| f64::from(hit) / f64::from(RUNS))
}

#[test]
fn intervals_contain_the_truth_of_a_half_loaded_queue() {
    for covered in coverage(0.5, 300, |intervals| intervals) {
        assert!(covered >= 0.9, "{covered}");
    }
}

#[test]
fn intervals_contain_the_truth_of_a_queue_at_80_percent_load() {
    for covered in coverage(0.8, 400, |intervals| intervals) {
        assert!(covered >= 0.9, "{covered}");
    }
}

#[test]
fn intervals_as_if_requests_were_independent_would_not_contain_it() {
    // One interval leaves only the independent method: this is what the test above guards against.
    let as_one = |intervals: Vec<Interval>| {
        vec![intervals
            .iter()
            .fold(Interval::default(), |all, interval| all.joined(interval))]
    };

    for covered in coverage(0.8, 400, as_one) {
        assert!(covered < 0.7, "{covered}");
    }
}

#[test]
fn independent_exponential_times_give_the_textbook_quantiles() {
    let mut random = Random::new(5);
    let requests: Vec<(f64, f64)> = (0..60_000)
        .map(|i| (f64::from(i) / 1000.0, random.exponential() * 0.01))
        .collect();

    let found = distribution(&recorded(&requests, 1.0, 60));

    // q_p = -ln(1 - p) / rate; mean and standard deviation 1 / rate.
    let quantities = [
        &found.p50,
        &found.p75,
        &found.p90,
        &found.p95,
        &found.p99,
        &found.p999,
    ];
    for (quantity, p) in quantities
        .into_iter()
        .zip([0.5f64, 0.75, 0.9, 0.95, 0.99, 0.999])
    {
        let truth = -0.01 * (1.0 - p).ln();
        assert!(contains(quantity, truth), "{p}: {quantity:?}");
        let value = quantity.value.unwrap();
        assert!((value / truth - 1.0).abs() < 0.1, "{p}: {value}");
        assert!(quantity.low.unwrap() <= value && value <= quantity.high.unwrap());
    }
    assert!(contains(&found.mean, 0.01) && (found.stdev.unwrap() / 0.01 - 1.0).abs() < 0.02);
    assert!(found.independent > 30_000.0, "{}", found.independent);
    assert_eq!(
        found.histogram.iter().map(|(_, count)| count).sum::<u64>(),
        60_000
    );
    assert_eq!(found.method, Method::Hac);
}

/// `count` requests of 1, 2, 3 ... ms, spread evenly over the intervals.
fn rising(count: u32, intervals: usize) -> Vec<Interval> {
    let requests: Vec<(f64, f64)> = (0..count)
        .map(|i| (f64::from(i % intervals as u32), f64::from(i + 1) / 1000.0))
        .collect();
    recorded(&requests, 1.0, intervals)
}

#[test]
fn a_quantile_is_the_smallest_measured_value_that_its_share_of_requests_does_not_exceed() {
    // 100 values of 1 to 100 ms: by the inverse distribution function p50 is the 50th, p90 the 90th.
    let found = distribution(&rising(100, 20));

    let in_ms = |quantity: &Quantity| (quantity.value.unwrap() * 1e3).floor();
    assert_eq!(
        [in_ms(&found.p50), in_ms(&found.p75), in_ms(&found.p90)],
        [50.0, 75.0, 90.0]
    );
    assert!((found.mean.value.unwrap() - 0.0505).abs() < 1e-9);
    assert!((found.stdev.unwrap() - 0.029_011_491_975_882_016).abs() < 1e-9); // sqrt(100 x 101 / 12) ms
}

#[test]
fn two_intervals_give_the_exact_binomial_ranks() {
    // scipy: binom.ppf(0.025, 100, 0.5) = 40 and binom.ppf(0.975, 100, 0.5) + 1 = 61.
    let found = distribution(&rising(100, 2));

    assert_eq!(found.method, Method::Iid);
    assert_eq!((found.p50.low.unwrap() * 1e3).round(), 40.0);
    assert_eq!((found.p50.high.unwrap() * 1e3).round(), 61.0);
    assert_eq!((found.p95.high.unwrap() * 1e3).round(), 100.0); // binom.ppf(0.975, 100, 0.95) + 1 = 100
}

#[test]
fn a_quantile_without_enough_requests_has_no_value_and_says_how_long_to_run() {
    let found = distribution(&rising(200, 5));

    assert!(found.p95.value.is_some()); // 72 are needed
    assert_eq!(found.p99.value, None); // 368 are needed
                                       // 200 independent requests have 2 above p99; 20 need ten times the 5 s.
    assert_eq!(
        found.p99.undecided.as_deref(),
        Some("2.0 independent requests above it, needs 20: run 50 s")
    );
    assert_eq!(
        [0.5, 0.9, 0.99, 0.999].map(fewest_requests),
        [6.0, 36.0, 368.0, 3688.0]
    );
}

#[test]
fn the_last_request_that_is_needed_decides() {
    // 36 is the fewest for p90: 0.9^36 = 0.0225 <= 0.025 < 0.9^35.
    assert!(distribution(&rising(35, 5)).p90.value.is_none());
    assert!(distribution(&rising(36, 5)).p90.value.is_some());
}

#[test]
fn a_request_cut_off_at_the_age_at_which_another_finished_lasted_longer_than_it() {
    let survival = Survival::new([(5, 1)].into_iter(), [(5, 1)].into_iter());

    assert_eq!(survival.above(5), 0.5);
    assert_eq!((survival.reach(0.5), survival.reach(0.6)), (Some(5), None));
}

#[test]
fn nothing_recorded_decides_nothing() {
    for intervals in [
        vec![],
        vec![
            Interval {
                length_s: 1.0,
                ..Interval::default()
            };
            30
        ],
    ] {
        let found = distribution(&intervals);

        assert_eq!((found.count, found.min, found.stdev), (0, None, None));
        assert!(found.mean.value.is_none() && found.mean.undecided.is_some());
        assert!(found.p50.value.is_none() && found.p50.undecided.is_some());
    }
}

#[test]
fn timed_out_requests_move_the_quantiles_up() {
    // 92 answers within 92 ms and 8 requests that had no answer after 1 s.
    let mut intervals = rising(92, 20);
    intervals[19].censored = vec![(bucket(1_000_000_000), 8).into()];

    let found = distribution(&intervals);

    assert_eq!((found.count, found.censored), (92, 8));
    assert_eq!((found.p90.value.unwrap() * 1e3).floor(), 90.0); // the 90th of 100, not of 92
    assert_eq!(
        (found.p95.value, found.p95.undecided.as_deref()),
        (None, Some("more than 1.00 s"))
    );
    assert_eq!(found.mean.value, None);
    // (1 + ... + 92 ms + 8 x 1 s) / 100
    assert!((found.mean.low.unwrap() - (4.278 + 8.0) / 100.0).abs() < 1e-4);
}

#[test]
fn requests_in_flight_at_the_end_count_only_as_far_as_they_are_known_to_have_lasted() {
    let finished = rising(100, 20);
    let mut with_young = finished.clone();
    with_young[19].censored = vec![(bucket(500_000), 10).into()]; // sent half a millisecond before the end

    let (before, after) = (distribution(&finished), distribution(&with_young));

    assert_eq!(before.p50.value, after.p50.value);
    assert_eq!(before.p90.value, after.p90.value);
    assert!((before.mean.value.unwrap() / after.mean.value.unwrap() - 1.0).abs() < 1e-3);
    assert_eq!(after.censored, 10);
}

#[test]
fn a_cell_of_several_buckets_is_spread_as_the_whole_is_between_its_ends() {
    // In all: 1 of 10 ns, 2 of 20, 6 of 30, 9 of 40. Above 25 are 6 of the 8 from 20 to 30.
    let survival = Survival::new(
        [(10, 1), (20, 2), (30, 6), (40, 9)].into_iter(),
        [].into_iter(),
    );
    let above = Spread::new(&survival.values, |at| f64::from(u8::from(at > 25)));
    let cell = |low, high, count| Cell { low, high, count };

    assert_eq!(above.sum(&[cell(20, 30, 4)]), 3.0);
    assert_eq!(above.sum(&[cell(10, 20, 5), cell(30, 40, 7)]), 7.0);
    assert_eq!(above.sum(&[cell(30, 30, 2), cell(20, 20, 9)]), 2.0);
}

#[test]
fn the_share_above_a_censoring_age_is_that_of_kaplan_and_meier() {
    // Hand count: 1 2+ 3 4+ 5 (plus: unfinished). S(1) = 4/5, S(3) = 4/5 x 2/3 = 8/15, S(5) = 0.
    let survival = Survival::new(
        [(1, 1), (3, 1), (5, 1)].into_iter(),
        [(2, 1), (4, 1)].into_iter(),
    );

    let above: Vec<f64> = survival.values.iter().map(|value| value.above).collect();
    for (found, expected) in above.iter().zip([4.0 / 5.0, 8.0 / 15.0, 0.0]) {
        assert!((found - expected).abs() < 1e-15);
    }
    // Mean: 1 x 1/5 + 3 x 4/15 + 5 x 8/15 = 55/15; beyond 2: (3 x 4/15 + 5 x 8/15) / (4/5) = 13/3.
    assert!((survival.mean_beyond(0) - 55.0 / 15.0).abs() < 1e-12);
    assert!((survival.mean_beyond(2) - 13.0 / 3.0).abs() < 1e-12);
}

#[test]
fn intervals_of_unequal_length_are_joined_to_equal_steps() {
    let piece = |length_s: f64, count| Interval {
        length_s,
        values: vec![(1, count).into()],
        ..Interval::default()
    };
    let mut intervals = vec![piece(0.25, 1); 8];
    intervals.extend([piece(1.0, 4), piece(1.0, 4), piece(0.3, 1)]);

    let joined = levelled(&intervals);

    assert_eq!(
        joined.iter().map(|i| i.length_s).collect::<Vec<_>>(),
        [1.0, 1.0, 1.0, 1.3]
    );
    assert_eq!(
        joined.iter().map(|i| i.values.len()).collect::<Vec<_>>(),
        [4, 4, 1, 2]
    );
}

#[test]
fn splitting_the_record_into_more_pieces_does_not_change_what_was_counted() {
    let whole = rising(5_000, 40);
    let mut pieces = Vec::new();
    for interval in &whole {
        let half = interval.values.len() / 2;
        for values in [&interval.values[..half], &interval.values[half..]] {
            let values = values.to_vec();
            let share = values.len() as f64 / interval.values.len() as f64;
            let (sum_s, sumsq_s2) = (interval.sum_s * share, interval.sumsq_s2 * share);
            pieces.push(Interval {
                length_s: 0.5,
                values,
                sum_s,
                sumsq_s2,
                ..Interval::default()
            });
        }
    }

    let (a, b) = (distribution(&whole), distribution(&pieces));

    assert_eq!(
        (a.count, a.p50.value, a.p999.value),
        (b.count, b.p50.value, b.p999.value)
    );
    assert!((a.mean.value.unwrap() - b.mean.value.unwrap()).abs() < 1e-12);
    assert_eq!(a.histogram, b.histogram);
}

#[test]
fn throughput_is_completions_over_time_with_the_interval_of_a_poisson_process() {
    // 40 intervals of a Poisson process at 500/s: the interval contains the rate in about 95 of 100 runs.
    let mut covered = 0;
    for run in 0..100 {
        let mut random = Random::derived(9, &[run]);
        let mut counts = vec![(1.0, 0u64); 40];
        let mut at = 0.0;
        while at < 40.0 {
            counts[at as usize].1 += 1;
            at += random.exponential() / 500.0;
        }

        let found = throughput(&counts);

        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(found.value, Some(total as f64 / 40.0));
        covered += u32::from(contains(&found, 500.0));
    }
    assert!(covered >= 88, "{covered}");
}

#[test]
fn a_rate_that_never_varies_has_an_interval_of_no_width() {
    let found = throughput(&[(0.25, 25); 40]);

    assert_eq!(
        (found.value, found.low, found.high),
        (Some(100.0), Some(100.0), Some(100.0))
    );
    assert!(throughput(&[]).undecided.is_some());
    let one = throughput(&[(2.0, 100)]);
    assert!((one.low.unwrap() - (50.0 - 9.8)).abs() < 0.01); // 1.96 sqrt(100) / 2 s
}

#[test]
fn the_result_is_written_as_the_record_says() {
    let text = serde_json::to_value(distribution(&rising(100, 20))).unwrap();

    for key in [
        "count", "censored", "mean", "stdev", "min", "max", "p50", "p75", "p90", "p95", "p99",
        "p999",
    ] {
        assert!(!text[key].is_null(), "{key}");
    }
    assert_eq!(text["p99"]["value"], serde_json::Value::Null);
    assert_eq!(text["method"], "hac");
    assert!(text["histogram"][0][0].is_f64() && text["histogram"][0][1].is_u64());
}

#[test]
fn bins_for_drawings_are_twenty_a_decade() {
    let bins = coarse(
        [
            (1_000_000, 1),
            (1_000_001, 2),
            (9_999_999, 3),
            (10_000_000, 4),
        ]
        .into_iter(),
    );

    let edges: Vec<f64> = bins
        .iter()
        .map(|(upper_s, _)| (upper_s.log10() * 20.0).round())
        .collect();
    assert_eq!(edges, [-60.0, -59.0, -40.0]);
    assert_eq!(
        bins.iter().map(|(_, count)| *count).collect::<Vec<_>>(),
        [1, 2, 7]
    );
}

#[test]
fn bucket_bounds_are_those_of_the_hdr_histogram_that_the_recorder_keeps() {
    let histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 42, 3).unwrap();
    let mut random = Random::new(8);
    for _ in 0..20_000 {
        let value = (random.bits() >> (22 + random.below(42))).max(1);

        let upper = histogram.highest_equivalent(value);

        assert_eq!(
            bucket_low(upper),
            histogram.lowest_equivalent(value).max(1),
            "{value}"
        );
        assert_eq!(bucket(value), upper, "{value}");
    }
}

/// Times in ns of a few intervals, of many sizes.
fn any_run() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let times = prop_oneof![
        1u64..3000,
        1_000u64..2_000_000,
        1_000_000u64..60_000_000_000
    ];
    proptest::collection::vec(proptest::collection::vec(times, 0..60), 1..25)
}

fn recorded_times(run: &[Vec<u64>]) -> Vec<Interval> {
    let interval = |times: &Vec<u64>| {
        let in_s = |ns: &u64| *ns as f64 / 1e9;
        let mut buckets: Vec<u64> = times.iter().map(|ns| bucket(*ns)).collect();
        buckets.sort_unstable();
        let values = buckets.into_iter().map(|at| (at, 1).into()).collect();
        Interval {
            length_s: 1.0,
            sum_s: times.iter().map(in_s).sum(),
            sumsq_s2: times.iter().map(|ns| in_s(ns) * in_s(ns)).sum(),
            values,
            censored: Vec::new(),
        }
    };
    run.iter().map(interval).collect()
}

proptest! {
    #[test]
    fn quantiles_are_within_a_thousandth_above_those_of_the_sorted_list(run in any_run()) {
        let found = distribution(&recorded_times(&run));
        let mut all: Vec<u64> = run.concat();
        all.sort_unstable();

        prop_assert_eq!(found.count as usize, all.len());
        let quantities = [&found.p50, &found.p75, &found.p90, &found.p95, &found.p99];
        for (quantity, percent) in quantities.into_iter().zip([50, 75, 90, 95, 99]) {
            let Some(value) = quantity.value else { continue };
            let rank = (all.len() * percent).div_ceil(100);
            let exact = all[rank - 1] as f64 / 1e9;
            prop_assert!(exact <= value + 1e-15 && value <= exact * (1.0 + 1.0 / 1024.0) + 1e-9, "p{}", percent);
            prop_assert!(quantity.low.is_none_or(|low| low <= value));
            prop_assert!(quantity.high.is_none_or(|high| value <= high));
        }
        if let (Some(min), Some(max)) = (found.min, found.max) {
            prop_assert!(min <= all[0] as f64 / 1e9 + 1e-15 && max >= all[all.len() - 1] as f64 / 1e9 - 1e-15);
            let mean = all.iter().map(|ns| *ns as f64 / 1e9).sum::<f64>() / all.len() as f64;
            prop_assert!((found.mean.value.unwrap() / mean - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn merging_is_adding_in_any_order(run in any_run(), turn in 0usize..25) {
        // The same requests in other intervals: counts, quantiles and mean are of the whole and stay.
        let mut turned = run.clone();
        turned.rotate_left(turn % run.len());
        let merged = vec![run.concat()];

        let whole = distribution(&recorded_times(&run));

        for other in [distribution(&recorded_times(&turned)), distribution(&recorded_times(&merged))] {
            prop_assert_eq!((other.count, other.min, other.max), (whole.count, whole.min, whole.max));
            prop_assert_eq!([other.p50.value, other.p90.value], [whole.p50.value, whole.p90.value]);
            prop_assert_eq!(&other.histogram, &whole.histogram);
        }
    }

    #[test]
    fn unfinished_requests_never_make_a_service_look_faster(
        run in any_run(),
        ages in proptest::collection::vec(1u64..60_000_000_000, 1..20),
    ) {
        let before = distribution(&recorded_times(&run));
        let mut with_unfinished = recorded_times(&run);
        let mut buckets: Vec<u64> = ages.iter().map(|age| bucket(*age)).collect();
        buckets.sort_unstable();
        let censored = buckets.into_iter().map(|at| (at, 1).into()).collect();
        with_unfinished.last_mut().unwrap().censored = censored;

        let after = distribution(&with_unfinished);

        prop_assert_eq!((after.count, after.censored), (before.count, ages.len() as u64));
        for (fast, slow) in [(&before.p50, &after.p50), (&before.p90, &after.p90), (&before.mean, &after.mean)] {
            if let (Some(fast), Some(slow)) = (fast.value, slow.value) {
                prop_assert!(slow >= fast * (1.0 - 1e-3), "{} after {}", slow, fast); // buckets are as wide as that
            }
        }
    }
}

#[test]
fn a_stall_in_one_of_eight_intervals_leaves_p90_open_above() {
    // 8 x 250 requests of 1 ms, but half of one interval takes 500 ms: 6.25 % of all. Between intervals the share above
    // 1 ms has a standard error of 0.0625 by hand, and 0.9 + 2.36 x 0.0625 is more than all.
    let quick = Cell::from((bucket(1_000_000), 250));
    let stalled = [(bucket(1_000_000), 125), (bucket(500_000_000), 125)].map(Cell::from);
    let intervals: Vec<Interval> = (0..8)
        .map(|k| Interval {
            length_s: 0.5,
            values: if k == 3 {
                stalled.to_vec()
            } else {
                vec![quick]
            },
            sum_s: if k == 3 { 62.625 } else { 0.25 },
            sumsq_s2: if k == 3 { 31.25 } else { 0.00025 },
            ..Interval::default()
        })
        .collect();

    let times = distribution(&intervals);

    assert_eq!(times.method, Method::Intervals);
    assert!(times.p90.value.unwrap() < 0.0011);
    assert_eq!(times.p90.high, None);
    // Variance of a request 0.0146 s2 over that of the mean, (62.4 s / 2000)2.
    assert_eq!(times.independent.round(), 15.0);
}

#[test]
fn times_in_words_have_three_digits_and_the_units_of_every_report() {
    let words = [0.00025, 0.0125, 1.5].map(duration_text);

    assert_eq!(words, ["250 µs", "12.5 ms", "1.50 s"]);
}
