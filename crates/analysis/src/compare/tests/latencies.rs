//! Latencies: what a median and a tail are known to, and the names of metrics.

use super::*;

#[test]
fn metrics_have_the_names_of_expectations() {
    let record = fixture::record();
    let candidate = held(&[&record], &[&record]);
    let names = names(&candidate);
    for name in [
        "sequential-write.throughput",
        "random-read-d1.mean",
        "random-read-d32.iops",
        "random-read-d32.p50",
        "mixed-random.iops",
        "mixed-random.read.p99",
        "mixed-random.write.iops",
        "commit-fdatasync.iops",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let leading: Vec<&str> = candidate
        .metrics
        .iter()
        .filter(|metric| metric.headline)
        .map(|metric| metric.metric.as_str())
        .collect();
    assert_eq!(
        leading,
        [
            "sequential-write.throughput",
            "sequential-read.throughput",
            "random-read-d1.iops",
            "random-read-d32.iops",
            "random-write-d32.iops",
            "mixed-sequential.throughput",
            "mixed-random.iops",
            "commit-fdatasync.iops"
        ]
    );
    // 2000 commits have too few beyond 99.9 %.
    assert!(!names.contains(&"commit-fdatasync.p99.9"));
}

#[test]
fn a_median_is_given_little_credit_for_what_stalls_hide() {
    // Typical latencies of 400 µs that wander by 5 % over seconds, and a rate that a few long
    // stalls make vary far more.
    let record = |seed: u64| {
        let mut op = OpMeasurement::default();
        let mut rng = TestRng(seed);
        let mut pace = rng.normal();
        let mut time_ns = 0.0;
        while time_ns < 20e9 {
            let stalls = rng.share() < 0.000_5;
            pace = 0.9995 * pace + (1.0 - 0.9995_f64 * 0.9995).sqrt() * rng.normal();
            let ns = if stalls {
                2e8 * rng.exponential()
            } else {
                4e5 * (0.05 * pace).exp() * (1.0 + 0.01 * rng.normal())
            };
            time_ns += ns;
            op.latency.record(ns as u64);
            op.series.add(
                time_ns as u64,
                &Cell {
                    ops: 1,
                    bytes: 8192,
                    errors: 0,
                    latency_max_ns: ns as u64,
                    ..Cell::default()
                },
                8192,
            );
        }
        (op.count, op.bytes) = (op.series.total().ops, op.series.total().bytes);
        run_of(op, 20, &seed.to_string())
    };
    let covers = |seed: u64| {
        let candidate = held(&[&record(seed)], &[&record(seed + 100)]);
        let ratio = metric(&candidate, "random-read-d1.p50").ratio.unwrap();
        ratio.low_95 <= 1.0 && ratio.high_95.is_none_or(|high| high >= 1.0)
    };
    // The rank alone, among 37,500 latencies, would cover 2 of 30; a pace that stays for nearly a
    // second is beyond what cells of 100 ms show in full.
    let covering = (0..30).filter(|seed| covers(*seed)).count();
    assert!(covering >= 21, "{covering} of 30");
}

#[test]
fn an_offered_load_is_judged_by_its_latency() {
    let loaded = |speed: f64, seed: u64| {
        let mut op = wandering(speed, 20, seed);
        op.latency_intended = Some(op.latency.clone());
        let mut run = fixture::run();
        run.measurements
            .retain(|measurement| measurement.workload.name == "random-read-d1");
        (
            run.facts.run_id,
            run.measurements[0].wall_ns,
            run.measurements[0].workload.rate,
        ) = (format!("{speed} {seed}"), 20_000_000_000, Some(1000.0));
        run.measurements[0].ops = BTreeMap::from([(OpKind::Read, op)]);
        fixture::judge(run)
    };
    let candidate = held(&[&loaded(1.0, 1)], &[&loaded(1.5, 2)]);
    let lead = candidate
        .metrics
        .iter()
        .find(|metric| metric.headline)
        .unwrap();
    assert_eq!(
        (lead.metric.as_str(), lead.verdict),
        ("random-read-d1.p99", Verdict::FasterOnce),
        "{lead:?}"
    );
}

#[test]
fn latencies_in_bursts_tell_less() {
    // One in a hundred is slow: at random, or twenty in a row, of which two on average lie beyond
    // 99.9 %. Theory has 2.9 of them make one.
    let record = |clustered: bool| {
        let mut op = OpMeasurement::default();
        let mut rng = TestRng(3);
        let mut slow_left = 0;
        for _ in 0..2000 {
            let mut cell = Cell::default();
            for _ in 0..20 {
                if slow_left == 0 && rng.share() < if clustered { 0.000_5 } else { 0.01 } {
                    slow_left = if clustered { 20 } else { 1 };
                }
                let ns = if slow_left > 0 {
                    5_000_000 + (rng.share() * 1e6) as u64
                } else {
                    400_000 + (rng.share() * 1e5) as u64
                };
                slow_left -= u64::from(slow_left > 0);
                op.latency.record(ns);
                cell.merge(&Cell {
                    ops: 1,
                    bytes: 8192,
                    errors: 0,
                    latency_max_ns: ns,
                    ..Cell::default()
                });
            }
            op.series.cells.push(cell);
        }
        (op.count, op.bytes) = (op.series.total().ops, op.series.total().bytes);
        run_of(op, 20, &clustered.to_string())
    };
    let effective = |record: &Record| {
        metric(&held(&[record], &[record]), "random-read-d1.p99.9")
            .a
            .n
    };
    let (single, clustered) = (effective(&record(false)), effective(&record(true)));
    let per_one = single as f64 / clustered as f64;
    assert!((2.2..4.5).contains(&per_one), "{clustered} of {single}");
}
