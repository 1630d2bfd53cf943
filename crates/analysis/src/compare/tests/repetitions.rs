//! Several runs a side, and earlier runs of the history: how figures vary from run to run.

use super::*;
use spread::{Repetitions, of_one, pooled};

/// A short record with nothing but random reads, whose latencies are not kept: they would only
/// cost time.
fn template() -> Record {
    let mut record = run_of(wandering(1.0, 1, 1), 1, "template");
    let op = record.measurements[0].ops.get_mut(&OpKind::Read).unwrap();
    op.latency.hdr.clear();
    record
}

/// The same at another rate, which is known to 0.3 %.
fn at_rate(template: &Record, rate: f64, id: &str) -> Record {
    let mut record = template.clone();
    record.run_id = id.to_owned();
    let op = record.measurements[0].ops.get_mut(&OpKind::Read).unwrap();
    for (estimate, value) in [(&mut op.iops, rate), (&mut op.throughput, rate * 8192.0)] {
        estimate.value = value;
        estimate.half_width_95 = Some(0.003 * value);
    }
    record
}

/// Runs of a disk whose rate varies by 3 % from run to run.
fn runs_of(template: &Record, rng: &mut TestRng, speed: f64, name: &str, n: usize) -> Vec<Record> {
    (0..n)
        .map(|i| {
            let rate = 1000.0 * speed * (0.03 * rng.normal()).exp();
            at_rate(template, rate, &format!("{name}{i}"))
        })
        .collect()
}

/// The rate of B over A, with earlier runs under one label.
fn rate_of(a: &[Record], b: &[Record], earlier: &[Record]) -> MetricComparison {
    let (a, b): (Vec<&Record>, Vec<&Record>) = (a.iter().collect(), b.iter().collect());
    let mut question = ask(&a, &b, &[]);
    question.history = vec![group("", &earlier.iter().collect::<Vec<_>>())];
    let candidate = compare(&question).unwrap().candidates.remove(0);
    metric(&candidate, "random-read-d1.iops").clone()
}

/// How often a side of so many runs is called better, and worse, out of 100.
fn verdicts(speed: f64, runs: usize, earlier: usize) -> (u64, u64) {
    let (template, mut rng) = (template(), TestRng(11));
    let (mut better, mut worse) = (0, 0);
    for _ in 0..100 {
        let a = runs_of(&template, &mut rng, 1.0, "a", runs);
        let b = runs_of(&template, &mut rng, speed, "b", runs);
        let before = runs_of(&template, &mut rng, 1.3, "e", earlier);
        match rate_of(&a, &b, &before).verdict {
            Verdict::Better => better += 1,
            Verdict::Worse => worse += 1,
            _ => {}
        }
    }
    (better, worse)
}

#[test]
fn equal_sides_are_called_different_in_at_most_5_of_100() {
    for (runs, earlier) in [(1, 8), (3, 0), (3, 8)] {
        let (better, worse) = verdicts(1.0, runs, earlier);
        println!("{runs} a side, {earlier} earlier: {better} better, {worse} worse of 100");
        assert!(better + worse <= 5, "{runs}, {earlier}: {better} + {worse}");
    }
}

#[test]
fn ten_percent_is_found_with_three_runs_a_side() {
    for (earlier, least) in [(0, 80), (8, 90)] {
        let (better, worse) = verdicts(1.1, 3, earlier);
        println!("10 %, {earlier} earlier: {better} better, {worse} worse of 100");
        assert!(
            better >= least && worse == 0,
            "{earlier}: {better}, {worse}"
        );
    }
}

#[test]
fn a_pair_is_decided_by_earlier_runs_only() {
    let (template, mut rng) = (template(), TestRng(5));
    let a = [at_rate(&template, 1000.0, "a")];
    let b = [at_rate(&template, 1200.0, "b")];
    let earlier = runs_of(&template, &mut rng, 1.0, "e", 9);
    let alone = rate_of(&a, &b, &[]);
    assert_eq!(
        (alone.verdict, alone.basis, alone.variation),
        (Verdict::FasterOnce, Basis::WithinRuns, None)
    );
    let known = rate_of(&a, &b, &earlier);
    let variation = known.variation.unwrap();
    assert_eq!(
        (known.verdict, known.basis, variation.earlier_runs),
        (Verdict::Better, Basis::BetweenRuns, 9)
    );
    assert_eq!(variation.freedom, 8.0);
    assert!((0.01..0.06).contains(&variation.deviation), "{variation:?}");
    assert!(variation.component < variation.deviation);
    // Two runs have one degree of freedom: too few to tell anything.
    assert_eq!(rate_of(&a, &b, &earlier[..2]).verdict, Verdict::FasterOnce);
    assert!(rate_of(&a, &b, &earlier[..3]).variation.is_some());
}

#[test]
fn earlier_runs_count_only_where_they_repeat_the_experiment() {
    let (template, mut rng) = (template(), TestRng(5));
    let a = [at_rate(&template, 1000.0, "a")];
    let b = [at_rate(&template, 1200.0, "b")];
    let earlier = runs_of(&template, &mut rng, 1.0, "e", 4);
    let seen = |change: fn(&mut Record)| {
        let mut changed = earlier.clone();
        changed.iter_mut().for_each(change);
        let variation = rate_of(&a, &b, &changed).variation;
        variation.map_or(0, |variation| variation.earlier_runs)
    };
    assert_eq!(seen(|_| {}), 4);
    assert_eq!(seen(|r| r.host.name = "other".to_owned()), 0);
    assert_eq!(seen(|r| r.plan.targets = vec!["/else".to_owned()]), 0);
    assert_eq!(seen(|r| r.plan.workloads[0].depth += 1), 0);
    assert_eq!(seen(|r| r.started = "2027-01-01T00:00:00Z".to_owned()), 0);
    assert_eq!(seen(|r| r.method += 1), 0);
    assert_eq!(
        seen(|r| r.measurements[0].stopped = StopReason::Interrupted),
        0
    );
    assert_eq!(seen(|r| r.run_id = "a".to_owned()), 0);
    // Each state of the machine is a group of its own, and one run of each shows nothing.
    assert_eq!(seen(|r| r.host.kernel = r.run_id.clone()), 0);
}

#[test]
fn a_shift_between_groups_is_no_variation() {
    let (template, mut rng) = (template(), TestRng(5));
    let a = [at_rate(&template, 1000.0, "a")];
    let b = [at_rate(&template, 1200.0, "b")];
    let (slow, fast) = (
        runs_of(&template, &mut rng, 0.5, "s", 4),
        runs_of(&template, &mut rng, 2.0, "f", 4),
    );
    let mut question = ask(&[&a[0]], &[&b[0]], &[]);
    question.history = [&slow, &fast]
        .map(|runs| group("", &runs.iter().collect::<Vec<_>>()))
        .to_vec();
    let candidate = compare(&question).unwrap().candidates.remove(0);
    let variation = metric(&candidate, "random-read-d1.iops").variation.unwrap();
    assert_eq!((variation.earlier_runs, variation.freedom), (8, 6.0));
    assert!(variation.deviation < 0.06, "{variation:?}");
    assert!(
        candidate
            .notes
            .iter()
            .any(|note| note.contains("8 earlier runs")),
        "{:?}",
        candidate.notes
    );
}

fn runs(logs: &[f64], variance_within: f64) -> Repetitions<'_> {
    Repetitions {
        logs,
        variance_within,
    }
}

/// By hand: squares of 2 about the mean 2 and of 8 about the mean 12; 2 + 2 degrees of freedom;
/// variance (2 + 8)/4 = 2.5. Within: (2 × 0.5 + 2 × 1)/4 = 0.75, which leaves 1.75.
#[test]
fn pooled_variance_is_the_one_computed_by_hand() {
    let (a, b) = ([1.0, 2.0, 3.0], [10.0, 12.0, 14.0]);
    let spread = pooled(runs(&a, 0.5), runs(&b, 1.0), &[]).unwrap();
    assert_eq!(spread.deviation, 2.5_f64.sqrt());
    assert_eq!(spread.component, 1.75_f64.sqrt());
    assert_eq!((spread.freedom, spread.earlier_runs), (4.0, 0));
    // Earlier runs add squares of 0.5 about 0.5 and one degree of freedom; a single one adds none.
    let earlier = [runs(&[0.0, 1.0], 0.0), runs(&[7.0], 9.0)];
    let spread = pooled(runs(&a, 0.5), runs(&b, 1.0), &earlier).unwrap();
    assert_eq!(spread.deviation, (10.5_f64 / 5.0).sqrt());
    assert_eq!(spread.component, (7.5_f64 / 5.0).sqrt());
    assert_eq!((spread.freedom, spread.earlier_runs), (5.0, 2));
    // What varies within the runs may explain all of it.
    let spread = pooled(runs(&a, 4.0), runs(&b, 4.0), &[]).unwrap();
    assert_eq!((spread.component, spread.deviation), (0.0, 2.5_f64.sqrt()));
}

#[test]
fn variation_is_unknown_from_single_runs() {
    let one = runs(&[1.0], 0.0);
    assert_eq!(of_one(one), None);
    assert_eq!(of_one(runs(&[], 0.0)), None);
    assert_eq!(pooled(one, one, &[one, one]), None);
    // One degree of freedom: of a side it counts, of earlier runs alone it does not.
    let two = runs(&[1.0, 2.0], 0.0);
    assert_eq!(pooled(one, one, &[two]), None);
    assert_eq!(pooled(one, two, &[]).unwrap().freedom, 1.0);
    assert_eq!(pooled(one, one, &[two, two]).unwrap().freedom, 2.0);
}

/// scipy.stats.f, `2 * min(cdf, sf)` at the ratio of the variances with 2 and 2 degrees of freedom:
/// p = 0.0163 for 1, 2, 3 against 10, 20, 32, and p = 0.0638 against 10, 15, 21.
#[test]
fn sides_that_vary_differently_are_not_pooled() {
    let a = [1.0, 2.0, 3.0];
    assert_eq!(
        pooled(runs(&a, 0.0), runs(&[10.0, 20.0, 32.0], 0.0), &[]),
        None
    );
    assert_eq!(
        pooled(runs(&[10.0, 20.0, 32.0], 0.0), runs(&a, 0.0), &[]),
        None
    );
    assert!(pooled(runs(&a, 0.0), runs(&[10.0, 15.0, 21.0], 0.0), &[]).is_some());
    assert_eq!(
        pooled(runs(&a, 0.0), runs(&[5.0, 5.0, 5.0], 0.0), &[]),
        None
    );
    assert!(pooled(runs(&[5.0; 3], 0.0), runs(&[6.0; 3], 0.0), &[]).is_some());
}
