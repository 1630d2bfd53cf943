//! What is true is found, and how sure the program is of it: series and latencies with known truth.

use super::*;

#[test]
fn what_is_true_is_found_in_38_of_40_pairs_and_the_reverse_never() {
    const PAIRS: u64 = 40;
    const SECONDS: u64 = 20;
    let record = |speed, seed| {
        let op = wandering(speed, SECONDS, seed);
        run_of(op, SECONDS, &format!("{speed} {seed}"))
    };
    let baselines: Vec<Record> = (0..PAIRS).map(|seed| record(1.0, seed)).collect();
    for (speed, truth) in [
        (1.0, Verdict::Same),
        (1.03, Verdict::FasterOnce),
        (1.1, Verdict::FasterOnce),
        (0.97, Verdict::SlowerOnce),
    ] {
        let mut counts: BTreeMap<(String, Verdict), u64> = BTreeMap::new();
        for (a, seed) in baselines.iter().zip(1000..) {
            for metric in held(&[a], &[&record(speed, seed)]).metrics {
                *counts.entry((metric.metric, metric.verdict)).or_default() += 1;
            }
        }
        let found = counts.get(&("random-read-d1.iops".to_owned(), truth));
        let found = found.copied().unwrap_or(0);
        assert!(
            found * 100 >= PAIRS * 95,
            "{speed}: {found} of {PAIRS} {truth:?}: {counts:#?}"
        );
        let of = |verdict: Verdict| -> u64 {
            counts
                .iter()
                .filter(|((_, found), _)| *found == verdict)
                .map(|(_, n)| n)
                .sum()
        };
        match truth {
            // What is the same may be called different in 2 of 40, whatever the metric.
            Verdict::Same => {
                let differ = of(Verdict::FasterOnce) + of(Verdict::SlowerOnce);
                assert!(differ <= 2, "{counts:#?}");
            }
            other => assert_eq!(of(reverse(other)), 0, "{speed}: {counts:#?}"),
        }
    }
}

#[test]
fn intervals_of_ratios_cover_the_truth() {
    const PAIRS: u64 = 60;
    let record = |seed| run_of(wandering(1.0, 10, seed), 10, &seed.to_string());
    // Covering, and all of them.
    let mut covering: BTreeMap<Figure, (u64, u64)> = BTreeMap::new();
    for seed in 0..PAIRS {
        for metric in held(&[&record(seed)], &[&record(seed + 5000)]).metrics {
            let ratio = metric.ratio.unwrap();
            let (seen, all) = covering.entry(metric.figure).or_default();
            *seen += u64::from(ratio.low_95 <= 1.0 && ratio.high_95.is_none_or(|high| high >= 1.0));
            *all += 1;
        }
    }
    for (figure, (n, all)) in &covering {
        assert!(
            n * 100 >= all * 90,
            "{figure:?}: {n} of {all} cover: {covering:?}"
        );
    }
    assert_eq!(covering.len(), 6);
}

#[test]
fn a_run_is_the_same_as_itself() {
    let record = changed(|run| {
        run.measurements[2].ops = BTreeMap::from([(OpKind::Read, wandering(1.0, 5, 1))])
    });
    let candidate = held(&[&record], &[&record]);
    let tail = |metric: &MetricComparison| matches!(metric.figure, Figure::P99 | Figure::P99_9);
    let undecided =
        |metric: &MetricComparison| metric.verdict == Verdict::Undecided && tail(metric);
    for metric in &candidate.metrics {
        assert!(
            metric.verdict == Verdict::Same || undecided(metric),
            "{metric:#?}"
        );
    }
    assert_eq!(
        (candidate.headline.same, candidate.headline.total()),
        (8, 8)
    );
    assert_eq!(candidate.differences, []);
    states(&candidate.notes.concat(), &["the same run"]);
    let mut pairs = candidate.percentiles.iter();
    assert!(pairs.all(|pair| pair.comparable && pair.a == pair.b && !pair.a.is_empty()));
}

#[test]
fn even_disks_that_differ_by_little_are_the_same() {
    let even = |iops: u64| {
        let mut op = OpMeasurement::default();
        for i in 0..2000 {
            let ops = iops * (i + 1) / 100 - iops * i / 100;
            op.series.cells.push(Cell {
                ops,
                bytes: ops * 8192,
                errors: 0,
                latency_max_ns: 1_000_000_000 / iops,
                ..Cell::default()
            });
            (0..ops).for_each(|_| op.latency.record(1_000_000_000 / iops));
        }
        (op.count, op.bytes) = (op.series.total().ops, op.series.total().bytes);
        run_of(op, 20, &iops.to_string())
    };
    let (a, b) = (even(10_000), even(10_005));
    let candidate = held(&[&a], &[&b]);
    // Surely different.
    assert!(
        rate(&candidate).ratio.unwrap().low_95 > 1.0,
        "{candidate:#?}"
    );
    assert_all(&candidate, Verdict::Same);
    states(&candidate.summary, &["2 %", "random-read-d1.iops"]);
    // On the margin itself, and known to a fraction of it: that is no difference beyond the margin,
    // and no reason to measure for ever.
    let verdict = |iops| rate(&held(&[&a], &[&even(iops)])).verdict;
    assert_eq!(verdict(10_199), Verdict::Same);
    assert_eq!(verdict(10_210), Verdict::FasterOnce);
}

#[test]
fn runs_that_differ_among_themselves_decide_less_than_one_of_them() {
    // Each run is known to 0.5 %, but the disk is 4 % faster or slower on another day.
    let days = [1.0, 1.04, 0.96, 0.98, 1.04, 1.03];
    let records: Vec<Record> = days
        .iter()
        .enumerate()
        .map(|(i, speed)| run_of(wandering(*speed, 20, i as u64), 20, &i.to_string()))
        .collect();
    let all: Vec<&Record> = records.iter().collect();
    let one = held(&all[2..3], &all[1..2]);
    let of_one = rate(&one);
    assert_eq!(
        (of_one.verdict, of_one.basis),
        (Verdict::FasterOnce, Basis::WithinRuns)
    );
    assert_eq!(of_one.variation, None);
    assert_eq!(of_one.needed.and_then(|needed| needed.runs), Some(3));
    assert_eq!(one.headline.faster_once, 1);
    states(&one.notes.join("\n"), &["one run per side"]);
    let several = held(&[all[0], all[2], all[4]], &[all[1], all[3], all[5]]);
    let of_several = rate(&several);
    assert_eq!((of_several.basis, of_several.a.n), (Basis::BetweenRuns, 3));
    assert_eq!(of_several.verdict, Verdict::Undecided);
    assert!(of_several.needed.unwrap().runs.unwrap() > 3);
    // A single run alongside several is as uncertain as one of them.
    let beside = held(&[all[0], all[1], all[2], all[3]], &[all[5]]);
    let beside = (rate(&beside).basis, rate(&beside).verdict);
    assert_eq!(beside, (Basis::BetweenRuns, Verdict::Undecided));
}

#[test]
fn repetitions_that_agree_decide_what_one_run_cannot() {
    let record =
        |speed: f64, seed: u64| run_of(wandering(speed, 1, seed), 1, &format!("{speed} {seed}"));
    let (a, b): (Vec<Record>, Vec<Record>) = (0..12)
        .map(|seed| (record(1.0, seed), record(1.03, seed + 100)))
        .unzip();
    let (a, b): (Vec<&Record>, Vec<&Record>) = (a.iter().collect(), b.iter().collect());
    let single = a
        .iter()
        .zip(&b)
        .map(|(a, b)| rate(&held(&[*a], &[*b])).clone());
    let mut undecided: Vec<MetricComparison> = single.collect();
    undecided.retain(|metric| metric.verdict == Verdict::Undecided);
    assert!(!undecided.is_empty());
    for metric in undecided {
        let needed = metric.needed.unwrap();
        assert!(
            needed.times > 1.0 && needed.measure_ns.unwrap() > 1_000_000_000,
            "{metric:?}"
        );
    }
    assert_eq!(rate(&held(&a, &b)).verdict, Verdict::Better);
}

#[test]
fn a_run_that_is_named_twice_is_no_repetition() {
    let record = run_of(wandering(1.0, 5, 1), 5, "one");
    let other = run_of(wandering(1.0, 5, 2), 5, "other");
    let candidate = held(&[&record, &record, &record], &[&other]);
    assert_eq!(rate(&candidate).basis, Basis::WithinRuns);
    states(&candidate.notes.concat(), &["twice in A"]);
}

/// Holds two sides against each other both ways.
fn swap(x: u64, y: u64, speed: f64, several: bool) {
    let records: Vec<Record> = [(1.0, x), (speed, y), (1.01, x + 1), (speed, y + 1)]
        .into_iter()
        .enumerate()
        .map(|(i, (speed, seed))| run_of(wandering(speed, 3, seed), 3, &i.to_string()))
        .collect();
    let runs = if several { 2 } else { 1 };
    let side = |first: usize| Vec::from_iter(records[first..].iter().step_by(2).take(runs));
    let (a, b) = (side(0), side(1));
    let (there, back) = (held(&a, &b), held(&b, &a));
    assert_eq!(names(&there), names(&back));
    for (metric, w) in there.metrics.iter().zip(&back.metrics) {
        assert_eq!(metric.verdict, reverse(w.verdict), "{}", metric.metric);
        let (r, s) = (metric.ratio.unwrap(), w.ratio.unwrap());
        assert!((r.value * s.value - 1.0).abs() < 1e-9);
        assert!(
            s.high_95
                .is_none_or(|high| (r.low_95 * high - 1.0).abs() < 1e-9)
        );
        let (p, q) = (metric.p_value.unwrap(), w.p_value.unwrap());
        assert!((p - q).abs() < 1e-9, "{}", metric.metric);
    }
}

/// Here a step of the histogram lies exactly as far as the other side's figure: the last bit of a
/// logarithm made another p-value.
#[test]
fn swapping_inverts_where_distances_are_equal_to_the_last_bit() {
    swap(18, 201, 1.0547088752862894, false);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn swapping_the_sides_inverts_everything(
        x in 0u64..1000,
        y in 0u64..1000,
        speed in 0.8f64..1.25,
        several in proptest::bool::ANY,
    ) {
        swap(x, y, speed, several);
    }

    #[test]
    fn adjusted_p_values_are_no_smaller_and_keep_their_order(
        p in prop::collection::vec(0.0f64..1.0, 0..20),
    ) {
        let adjusted = adjusted_for_family(&p);
        for i in 0..p.len() {
            prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
            prop_assert!((0..p.len()).all(|j| p[j] < p[i] || adjusted[j] >= adjusted[i]));
        }
    }
}
