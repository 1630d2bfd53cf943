//! Several runs a side, and earlier runs of the history: how figures vary from run to run.

use super::*;

/// A short record with only random reads, whose latencies are not kept: they would only cost time.
fn template() -> Record {
    let mut record = run_of(wandering(1.0, 1, 1), 1, "template");
    let op = record.measurements[0].data.ops.get_mut(&OpKind::Read);
    op.unwrap().latency.clear();
    record
}

/// The same at another rate, which is known to 0.3 %.
fn at_rate(template: &Record, rate: f64, id: &str) -> Record {
    let mut record = template.clone();
    record.run_id = id.to_owned();
    let op = record.measurements[0]
        .figures
        .ops
        .get_mut(&OpKind::Read)
        .unwrap();
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
    rate(&candidate).clone()
}

/// How often a side of this many runs is called better, and worse, out of 100.
fn verdicts(speed: f64, runs: usize, earlier: usize) -> (u64, u64) {
    verdicts_of(speed, runs, earlier, None)
}

/// The same of runs whose printed intervals have this relative half-width, from so many runs.
fn verdicts_of(speed: f64, runs: usize, earlier: usize, printed: Option<(f64, u64)>) -> (u64, u64) {
    let runs_of = |template: &Record, rng: &mut TestRng, speed: f64, name: &str, n: usize| {
        let mut records = runs_of(template, rng, speed, name, n);
        let all = records
            .iter_mut()
            .flat_map(|record| &mut record.measurements);
        for op in all.flat_map(|measurement| measurement.figures.ops.values_mut()) {
            if let Some((share, n)) = printed {
                op.iops.widen(share * op.iops.value, n);
            }
        }
        records
    };
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

/// Runs that vary by 3 %, each with nine runs before it in the history: t(9) √(1 + 1/10) = 2.37
/// times as wide.
#[test]
fn ten_percent_is_found_with_three_runs_whose_intervals_cover_the_next_run() {
    let printed = Some((0.0712, 10));
    let (better, worse) = verdicts_of(1.1, 3, 8, printed);
    println!("10 %, intervals from run to run: {better} better, {worse} worse of 100");
    assert!(better >= 80 && worse == 0, "{better}, {worse}");
    let (better, worse) = verdicts_of(1.0, 3, 8, printed);
    assert!(better + worse <= 5, "{better}, {worse}");
}

#[test]
fn a_pair_is_decided_by_earlier_runs_only() {
    let (template, mut rng) = (template(), TestRng(5));
    let a = [at_rate(&template, 1000.0, "a")];
    let b = [at_rate(&template, 1200.0, "b")];
    let earlier = runs_of(&template, &mut rng, 1.0, "e", 9);
    let alone = rate_of(&a, &b, &[]);
    assert_eq!(
        (alone.verdict, alone.basis),
        (Verdict::FasterOnce, Basis::WithinRuns)
    );
    assert_eq!(alone.variation, None);
    let known = rate_of(&a, &b, &earlier);
    let variation = known.variation.unwrap();
    assert_eq!(
        (known.verdict, known.basis),
        (Verdict::Better, Basis::BetweenRuns)
    );
    assert_eq!(variation.earlier_runs, 9);
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
    assert_eq!(seen(|r| r.plan.workloads_mut()[0].depth += 1), 0);
    assert_eq!(seen(|r| r.started = "2027-01-01T00:00:00Z".to_owned()), 0);
    assert_eq!(seen(|r| r.method += 1), 0);
    assert_eq!(
        seen(|r| r.measurements[0].data.stopped = StopReason::Interrupted),
        0
    );
    assert_eq!(seen(|r| r.run_id = "a".to_owned()), 0);
    // Each state of the machine is a separate group, and one run of each shows nothing.
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
    let variation = rate(&candidate).variation.unwrap();
    assert_eq!((variation.earlier_runs, variation.freedom), (8, 6.0));
    assert!(variation.deviation < 0.06, "{variation:?}");
    states(&candidate.notes.join("\n"), &["8 earlier runs"]);
}
