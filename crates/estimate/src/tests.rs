use proptest::prelude::*;

use super::*;
use crate::survival::Survival;
use loadlens_base::Random;

/// The place of `ns` in an HDR histogram of 3 digits.
fn bucket(ns: u64) -> u32 {
    let octave = ns.max(1).ilog2().saturating_sub(10);
    octave * 1024 + (ns >> octave) as u32
}

/// Record of one interval: times and ages by place.
#[derive(Clone, Debug, Default)]
struct Interval {
    length_s: f64,
    sum_s: f64,
    sumsq_s2: f64,
    values: Vec<(u32, u32)>,
    censored: Vec<(u32, u32)>,
}

fn in_one(intervals: &[Interval]) -> (Recorded, Steps) {
    let lengths: Vec<f64> = intervals.iter().map(|interval| interval.length_s).collect();
    let places = level(&lengths);
    let count = places.last().map_or(0, |last| *last as usize + 1);
    let mut steps = Steps {
        sums_s: vec![0.0; count],
        squares_s2: vec![0.0; count],
        counts: vec![0.0; count],
    };
    let (mut finished, mut late) = (Vec::new(), Vec::new());
    for (interval, &step) in intervals.iter().zip(&places) {
        let cell = |&(place, count): &(u32, u32)| Cell {
            step,
            low: place,
            high: place,
            count,
        };
        steps.sums_s[step as usize] += interval.sum_s;
        steps.squares_s2[step as usize] += interval.sumsq_s2;
        steps.counts[step as usize] += interval
            .values
            .iter()
            .map(|(_, count)| f64::from(*count))
            .sum::<f64>();
        finished.extend(interval.values.iter().map(cell));
        late.extend(interval.censored.iter().map(cell));
    }
    let recorded = Recorded {
        buckets: Buckets::HDR,
        steps: count,
        seconds: lengths.iter().sum(),
        finished,
        late,
        whole: None,
    };
    (recorded, steps)
}

fn distribution(intervals: &[Interval]) -> Distribution {
    let (recorded, steps) = in_one(intervals);
    super::distribution(recorded, &steps)
}

/// Of values, each of which is a bucket of its own: nanoseconds.
fn survival(values: &[(u32, u64)], ages: &[(u32, u64)]) -> Survival {
    Survival::new(&Buckets::HDR, values, ages)
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
        interval.values.push((bucket((taken_s * 1e9) as u64), 1));
    }
    intervals
}

fn throughput(intervals: &[(f64, u64)]) -> Quantity {
    let lengths: Vec<f64> = intervals.iter().map(|(length_s, _)| *length_s).collect();
    let events: Vec<f64> = intervals.iter().map(|(_, count)| *count as f64).collect();
    rate(&events, &lengths, CONFIDENCE).into()
}

fn contains(quantity: &Quantity, truth: f64) -> bool {
    quantity.low.is_none_or(|low| low <= truth) && quantity.high.is_none_or(|high| truth <= high)
}

#[test]
fn independent_exponential_times_give_the_textbook_quantiles() {
    let mut random = Random::new(5);
    let requests: Vec<(f64, f64)> = (0..60_000)
        .map(|i| (f64::from(i) / 1000.0, random.exponential() * 0.01))
        .collect();

    let result = distribution(&recorded(&requests, 1.0, 60));

    // q_p = -ln(1 - p) / rate; mean and standard deviation 1 / rate.
    let quantities = [
        &result.p50,
        &result.p75,
        &result.p90,
        &result.p95,
        &result.p99,
        &result.p999,
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
    assert!(contains(&result.mean, 0.01) && (result.stdev.unwrap() / 0.01 - 1.0).abs() < 0.02);
    assert!(result.independent > 30_000.0, "{}", result.independent);
    assert_eq!(
        result.histogram.iter().map(|(_, count)| count).sum::<u64>(),
        60_000
    );
    assert_eq!(result.method, Method::LongRun);
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
    let result = distribution(&rising(100, 20));

    let in_ms = |quantity: &Quantity| (quantity.value.unwrap() * 1e3).floor();
    assert_eq!(
        [in_ms(&result.p50), in_ms(&result.p75), in_ms(&result.p90)],
        [50.0, 75.0, 90.0]
    );
    assert!((result.mean.value.unwrap() - 0.0505).abs() < 1e-9);
    assert!((result.stdev.unwrap() - 0.029_011_491_975_882_016).abs() < 1e-9); // sqrt(100 x 101 / 12) ms
}

#[test]
fn two_intervals_give_the_exact_binomial_ranks() {
    // scipy: binom.ppf(0.025, 100, 0.5) = 40 and binom.ppf(0.975, 100, 0.5) + 1 = 61.
    let result = distribution(&rising(100, 2));

    assert_eq!(result.method, Method::Independent);
    assert_eq!((result.p50.low.unwrap() * 1e3).round(), 40.0);
    assert_eq!((result.p50.high.unwrap() * 1e3).round(), 61.0);
    assert_eq!((result.p95.high.unwrap() * 1e3).round(), 100.0); // binom.ppf(0.975, 100, 0.95) + 1 = 100
}

#[test]
fn a_quantile_without_enough_requests_has_no_value_and_says_how_long_to_run() {
    let (short, long) = (
        distribution(&rising(200, 5)),
        distribution(&rising(200, 10)),
    );

    assert!(short.p95.value.is_some()); // 2 x 72 are needed
    let reason = |result: &Distribution| result.p99.undecided.clone().unwrap();
    assert_eq!(reason(&short), "200 requests, needs 736: run 19 s"); // at 40 requests/s
    assert_eq!(reason(&long), "200 requests, needs 368: run 19 s"); // at 20 requests/s
    assert!(short.p99.value.is_none());
    assert_eq!(
        [0.5, 0.9, 0.99, 0.999].map(|p| population::fewest_requests(p, 0.95)),
        [6.0, 36.0, 368.0, 3688.0]
    );
}

#[test]
fn the_last_request_that_is_needed_decides() {
    // 36 is the fewest for p90: 0.9^36 = 0.0225 <= 0.025 < 0.9^35.
    assert!(distribution(&rising(35, 10)).p90.value.is_none());
    assert!(distribution(&rising(36, 10)).p90.value.is_some());
}

#[test]
fn a_request_cut_off_at_the_age_at_which_another_finished_lasted_longer_than_it() {
    let survival = survival(&[(5, 1)], &[(5, 1)]);

    assert_eq!(survival.above(5e-9), 0.5);
    let reached = |p| survival.reach(p).map(|at| at.place);
    assert_eq!((reached(0.5), reached(0.6)), (Some(5), None));
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
        let result = distribution(&intervals);

        assert_eq!((result.count, result.min, result.stdev), (0, None, None));
        assert!(result.mean.value.is_none() && result.mean.undecided.is_some());
        assert!(result.p50.value.is_none() && result.p50.undecided.is_some());
    }
}

#[test]
fn timed_out_requests_move_the_quantiles_up() {
    // 92 answers within 92 ms and 8 requests that had no answer after 1 s.
    let mut intervals = rising(92, 20);
    intervals[19].censored = vec![(bucket(1_000_000_000), 8)];

    let result = distribution(&intervals);

    assert_eq!((result.count, result.censored), (92, 8));
    assert_eq!((result.p90.value.unwrap() * 1e3).floor(), 90.0); // the 90th of 100, not of 92
    assert_eq!(
        (result.p95.value, result.p95.undecided.as_deref()),
        (
            None,
            Some("more than 1.00 s: it lies among requests that never finished")
        )
    );
    assert_eq!(result.mean.value, None);
    // (1 + ... + 92 ms + 8 x 1 s) / 100
    assert!((result.mean.low.unwrap() - (4.278 + 8.0) / 100.0).abs() < 1e-4);
}

#[test]
fn requests_in_flight_at_the_end_count_only_as_far_as_they_are_known_to_have_lasted() {
    let finished = rising(100, 20);
    let mut with_young = finished.clone();
    with_young[19].censored = vec![(bucket(500_000), 10)]; // sent half a millisecond before the end

    let (before, after) = (distribution(&finished), distribution(&with_young));

    assert_eq!(before.p50.value, after.p50.value);
    assert_eq!(before.p90.value, after.p90.value);
    assert!((before.mean.value.unwrap() / after.mean.value.unwrap() - 1.0).abs() < 1e-3);
    assert_eq!(after.censored, 10);
}

#[test]
fn a_cell_of_several_buckets_is_spread_as_the_whole_is_between_its_ends() {
    // In all: 1 of 10 ns, 2 of 20, 6 of 30, 9 of 40. Above 25 are 6 of the 8 from 20 to 30: 3 of 4 in the one step, all of
    // 4 in the other, none in the third; of 12 the share 15 / 18 would be 10. So 3, 4 and 0 less 10 / 3 each.
    let whole = vec![(10, 1), (20, 2), (30, 6), (40, 9)];
    let cell = |step, low, high| Cell {
        step,
        low,
        high,
        count: 4,
    };
    let coarse = Population::new(Recorded {
        buckets: Buckets::HDR,
        steps: 3,
        seconds: 3.0,
        finished: vec![cell(0, 20, 30), cell(1, 30, 40), cell(2, 10, 20)],
        late: vec![],
        whole: Some([whole, vec![]]),
    });

    let spread = coarse.exceedances(25e-9);

    // Sample variance of 3, 4 and 0, times three: 13, by hand.
    assert!((spread.sum_se - 13f64.sqrt()).abs() < 1e-9, "{spread:?}");
}

#[test]
fn the_share_above_a_censoring_age_is_that_of_kaplan_and_meier() {
    // Hand count: 1 2+ 3 4+ 5 (plus: unfinished). S(1) = 4/5, S(3) = 4/5 x 2/3 = 8/15, S(5) = 0.
    let survival = survival(&[(1, 1), (3, 1), (5, 1)], &[(2, 1), (4, 1)]);

    let above: Vec<f64> = survival.values.iter().map(|value| value.above).collect();
    for (result, expected) in above.iter().zip([4.0 / 5.0, 8.0 / 15.0, 0.0]) {
        assert!((result - expected).abs() < 1e-15);
    }
    // Mean: 1 x 1/5 + 3 x 4/15 + 5 x 8/15 = 55/15; beyond 2: (3 x 4/15 + 5 x 8/15) / (4/5) = 13/3.
    assert!((survival.mean_beyond(0.0) * 1e9 - 55.0 / 15.0).abs() < 1e-12);
    assert!((survival.mean_beyond(2e-9) * 1e9 - 13.0 / 3.0).abs() < 1e-12);
}

#[test]
fn intervals_of_unequal_length_are_joined_to_equal_steps() {
    let lengths = [[0.25; 8].to_vec(), vec![1.0, 1.0, 0.3]].concat();

    // Four quarters each, two of a second, and a rest too short for a step of its own.
    assert_eq!(level(&lengths), [0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3]);
    assert_eq!(level(&[0.25, 0.25, 0.2]), [0, 1, 2]);
    assert_eq!(level(&[]), [] as [u32; 0]);
}

#[test]
fn more_steps_than_are_needed_are_joined_in_equal_numbers() {
    assert_eq!(joined(&[1.0; 320]), [1.0; 320]);
    // 643 in fours: 160, and a rest of three is a step of its own; of 641 the rest of one is not.
    assert_eq!(
        joined(&[1.0; 643]),
        [[4.0; 160].to_vec(), vec![3.0]].concat()
    );
    assert_eq!(
        joined(&[1.0; 641]),
        [[4.0; 159].to_vec(), vec![5.0]].concat()
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

        let result = throughput(&counts);

        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        assert_eq!(result.value, Some(total as f64 / 40.0));
        covered += u32::from(contains(&result, 500.0));
    }
    assert!(covered >= 88, "{covered}");
}

#[test]
fn a_rate_that_never_varies_is_known_to_one_event_at_the_edge() {
    let result = throughput(&[(0.25, 25); 40]);

    assert_eq!(
        (result.value, result.low, result.high),
        (Some(100.0), Some(99.9), Some(100.1))
    );
    assert!(throughput(&[]).undecided.is_some());
}

#[test]
fn a_rate_of_one_step_is_that_of_a_poisson_process() {
    let result = throughput(&[(2.0, 400)]);

    // Garwood: 361.756 to 441.187 events.
    assert!((result.low.unwrap() - 361.756_296_631 / 2.0).abs() < 1e-6);
    assert!((result.high.unwrap() - 441.186_648_097 / 2.0).abs() < 1e-6);
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
    assert_eq!(text["method"], "long_run");
    assert!(text["histogram"][0][0].is_f64() && text["histogram"][0][1].is_u64());
}

#[test]
fn bins_for_drawings_are_twenty_a_decade() {
    let bins = coarse([(1e-3, 1), (1.000_001e-3, 2), (9.999_999e-3, 3), (1e-2, 4)].into_iter());

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
        let mut buckets: Vec<u32> = times.iter().map(|ns| bucket(*ns)).collect();
        buckets.sort_unstable();
        let values = buckets.into_iter().map(|at| (at, 1)).collect();
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
        let result = distribution(&recorded_times(&run));
        let mut all: Vec<u64> = run.concat();
        all.sort_unstable();

        prop_assert_eq!(result.count as usize, all.len());
        let quantities = [&result.p50, &result.p75, &result.p90, &result.p95, &result.p99];
        for (quantity, percent) in quantities.into_iter().zip([50, 75, 90, 95, 99]) {
            let Some(value) = quantity.value else { continue };
            let rank = (all.len() * percent).div_ceil(100);
            let exact = all[rank - 1] as f64 / 1e9;
            prop_assert!(exact <= value + 1e-15 && value <= exact * (1.0 + 1.0 / 1024.0) + 1e-9, "p{}", percent);
            prop_assert!(quantity.low.is_none_or(|low| low <= value));
            prop_assert!(quantity.high.is_none_or(|high| value <= high));
        }
        if let (Some(min), Some(max)) = (result.min, result.max) {
            prop_assert!(min <= all[0] as f64 / 1e9 + 1e-15 && max >= all[all.len() - 1] as f64 / 1e9 - 1e-15);
            let mean = all.iter().map(|ns| *ns as f64 / 1e9).sum::<f64>() / all.len() as f64;
            match result.mean.value {
                Some(value) => prop_assert!((value / mean - 1.0).abs() < 1e-9),
                None => prop_assert_eq!(all.len(), 1, "a mean needs two requests, and no more"),
            }
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
            for (one, other) in [(&whole.p50, &other.p50), (&whole.p90, &other.p90)] {
                // Fewer intervals need more requests.
                let both = one.value.zip(other.value);
                prop_assert!(both.is_none_or(|(one, other)| one == other));
            }
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
        let mut buckets: Vec<u32> = ages.iter().map(|age| bucket(*age)).collect();
        buckets.sort_unstable();
        let censored = buckets.into_iter().map(|at| (at, 1)).collect();
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
    // 8 x 250 requests of 1 ms, but half of one interval takes 500 ms: 6.25 % of all.
    let (quick, slow) = (bucket(1_000_000), bucket(500_000_000));
    let intervals: Vec<Interval> = (0..8)
        .map(|k| Interval {
            length_s: 0.5,
            values: if k == 3 {
                vec![(quick, 125), (slow, 125)]
            } else {
                vec![(quick, 250)]
            },
            sum_s: if k == 3 { 62.625 } else { 0.25 },
            sumsq_s2: if k == 3 { 31.25 } else { 0.00025 },
            ..Interval::default()
        })
        .collect();

    let times = distribution(&intervals);

    assert_eq!(times.method, Method::LongRun);
    assert!(times.p90.value.unwrap() < 0.0011);
    assert_eq!(times.p90.high, None);
}

#[test]
fn requests_that_all_end_in_one_of_several_steps_have_no_interval() {
    let (mut sums, mut counts) = ([0.0; 32], [0.0; 32]);
    (sums[20], counts[20]) = (17.0 * 7.2, 17.0);
    let sums = Sums {
        sums: &sums,
        counts: &counts,
        squares: Some(&[17.0 * 7.2 * 7.2]),
    };

    let result = mean(sums, 0.95).unwrap();

    assert!((result.point - 7.2).abs() < 1e-12);
    assert_eq!((result.low, result.high), (None, None));
}

#[test]
fn times_in_words_have_three_digits_and_the_units_of_every_report() {
    let words = [0.00025, 0.0125, 1.5, 0.99996].map(duration_text);

    assert_eq!(words, ["250 µs", "12.5 ms", "1.50 s", "1.00 s"]);
}
