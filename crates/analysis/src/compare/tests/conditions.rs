//! What must agree and what may differ; records that no run makes.

use super::*;
use diskproof_model::stream::Streams;

type Change = fn(&mut Measurement);

/// Each change alone makes a measurement incomparable, for the reason with this code.
fn incomparable_changes() -> [(&'static str, Change); 17] {
    [
        ("depth-differs", |m| m.workload.depth *= 2),
        ("workers-differ", |m| m.workload.workers = 3),
        ("block-size-differs", |m| m.workload.block_bytes *= 2),
        ("mix-differs", |m| {
            m.workload.streams = Streams::with_reads(700)
        }),
        ("access-differs", |m| m.workload.access = Access::Backward),
        ("load-differs", |m| m.workload.rate = Some(100.0)),
        ("sync-differs", |m| m.workload.sync = SyncPolicy::AtEnd),
        ("cache-differs", |m| {
            m.cache = CacheUse {
                asked: CachePolicy::Direct,
                used: CachePolicy::Buffered,
                why: None,
            }
        }),
        ("engine-differs", |m| m.engine.used = EngineKind::Aio),
        ("span-differs", |m| m.span_bytes /= 2),
        ("content-differs", |m| {
            m.zero_blocks = ZeroSample {
                sampled: 1000,
                zero: 500,
            }
        }),
        ("interrupted", |m| m.stopped = StopReason::Interrupted),
        ("unwritten-blocks", |m| m.unwritten_bytes = Some(1 << 30)),
        ("served-from-cache", |m| m.device.read_bytes = 0),
        ("io-errors", |m| {
            m.ops.values_mut().for_each(|op| {
                op.errors.insert("EIO".to_owned(), 3);
            })
        }),
        ("disturbed", |m| m.device.read_bytes *= 2),
        ("cpu-limited", |m| m.cpu.user_ns = m.wall_ns),
    ]
}

#[test]
fn different_measurements_are_not_comparable() {
    let healthy = fixture::record();
    for (code, change) in incomparable_changes() {
        let faulty = changed(|run| {
            run.1
                .iter_mut()
                .filter(|m| m.workload.name == "random-read-d32")
                .for_each(change)
        });
        for (a, b) in [(&healthy, &faulty), (&faulty, &healthy)] {
            let candidate = held(&[a], &[b]);
            let (of_it, others): (Vec<_>, Vec<_>) = candidate
                .metrics
                .iter()
                .partition(|m| m.subject == "random-read-d32");
            assert!(!of_it.is_empty(), "{code}");
            for m in of_it {
                assert_eq!(
                    (m.verdict, m.ratio, m.needed),
                    (Verdict::NotComparable, None, None),
                    "{code}: {m:?}"
                );
                assert!(
                    m.reasons.iter().any(|reason| reason.code == code),
                    "{code}: {:?}",
                    m.reasons
                );
            }
            assert!(
                others
                    .iter()
                    .all(|m| m.reasons.is_empty() && m.verdict == Verdict::Same),
                "{code} taints others"
            );
            assert_eq!(candidate.headline.not_comparable, 1);
            let pairs = candidate.percentiles.iter();
            assert!(
                pairs
                    .filter(|pair| pair.subject == "random-read-d32")
                    .all(|pair| !pair.comparable)
            );
        }
    }
}

#[test]
fn nothing_compares_across_methods_or_kinds_of_target() {
    let healthy = fixture::record();
    let mut other_method = changed(|_| {});
    other_method.method += 1;
    let candidate = held(&[&healthy], &[&other_method]);
    assert_eq!(candidate.headline.not_comparable, 8);
    let (ours, theirs) = (healthy.method, other_method.method);
    assert_eq!(
        candidate.summary,
        format!(
            "B cannot be compared with A: A: measuring method {ours}, B: measuring method \
             {theirs}."
        )
    );
    let device =
        changed(|run| run.0.targets[0].kind = diskproof_model::target::TargetKind::BlockDevice);
    assert_eq!(
        held(&[&healthy], &[&device]).all.not_comparable,
        held(&[&healthy], &[&device]).all.total()
    );
}

#[test]
fn who_the_disk_is_differs_and_compares() {
    let mut other = changed(|run| run.0.host.kernel = "6.12.1".to_owned());
    let disk = other.targets[0]
        .layers
        .iter_mut()
        .find(|layer| layer.below.is_empty())
        .unwrap();
    (disk.firmware, disk.serial) = (Some("2.0".to_owned()), Some("S1".to_owned()));
    let candidate = held(&[&fixture::record()], &[&other]);
    assert_eq!(candidate.all.not_comparable, 0);
    let told: Vec<(&str, &str, &str)> = candidate
        .differences
        .iter()
        .map(|d| (d.what.as_str(), d.a.as_str(), d.b.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("serial", "unknown", "S1"),
            ("firmware", "unknown", "2.0"),
            ("kernel", "unknown", "6.12.1")
        ]
    );
}

#[test]
fn disks_of_different_size_compare_as_a_whole() {
    let whole = |size: u64| {
        changed(|run| {
            run.0.run_id = size.to_string();
            (run.0.targets[0].kind, run.0.targets[0].size_bytes) =
                (diskproof_model::target::TargetKind::BlockDevice, size);
            run.1.iter_mut().for_each(|m| m.span_bytes = size);
        })
    };
    assert_eq!(
        held(&[&whole(1 << 40)], &[&whole(1 << 41)])
            .all
            .not_comparable,
        0
    );
}

#[test]
fn metric_of_one_side_only_is_reported() {
    let healthy = fixture::record();
    let fewer = changed(|run| {
        run.1.retain(|m| m.workload.name != "random-read-d1");
        run.0.plan.skipped.push(diskproof_model::plan::Skipped {
            workload: "random-read-d1".to_owned(),
            why: "no time".to_owned(),
        });
    });
    let candidate = held(&[&healthy], &[&fewer]);
    let only = Unmatched {
        subject: "random-read-d1".to_owned(),
        only: Holder::A,
        why: Some("no time".to_owned()),
    };
    assert_eq!(candidate.unmatched, std::slice::from_ref(&only));
    assert_eq!(
        held(&[&fewer], &[&healthy]).unmatched,
        [Unmatched {
            only: Holder::B,
            ..only
        }]
    );
    assert_eq!(candidate.headline.total(), 7);
}

#[test]
fn records_without_figures_compare_to_nothing() {
    let empty = changed(|run| run.1.clear());
    let candidate = held(&[&empty], &[&empty]);
    assert_eq!(
        candidate.summary,
        "A and B measured nothing in common, so there is nothing to compare."
    );
    let mut damaged = fixture::record();
    for op in damaged
        .measurements
        .iter_mut()
        .flat_map(|m| m.ops.values_mut())
    {
        op.latency.hdr = "no histogram".to_owned();
        op.series.cells.clear();
        op.iops.half_width_95 = None;
        op.throughput.value = f64::INFINITY;
    }
    let candidate = held(&[&damaged], &[&fixture::record()]);
    assert!(
        candidate
            .metrics
            .iter()
            .all(|m| m.verdict == Verdict::Undecided && m.ratio.is_none()),
        "{candidate:#?}"
    );
    let mut idle = fixture::record();
    idle.measurements
        .iter_mut()
        .flat_map(|m| m.ops.values_mut())
        .for_each(|op| (op.count, op.iops.value, op.throughput.value) = (0, 0.0, 0.0));
    assert_eq!(held(&[&idle], &[&fixture::record()]).metrics, []);
}

#[test]
fn busy_machine_is_reported() {
    let busy = changed(|run| {
        (run.0.host.load_average, run.0.host.cpus) = (Some("9.31 4.00 1.00".to_owned()), 8)
    });
    let quiet = changed(|run| {
        (run.0.run_id, run.0.host.load_average) = ("quiet".to_owned(), Some("0.31".to_owned()))
    });
    let candidate = held(&[&quiet], &[&busy]);
    assert!(
        candidate.notes[0].starts_with("B began at a load of 9.3 on 8 processors"),
        "{:?}",
        candidate.notes
    );
    assert!(!candidate.notes.iter().any(|note| note.contains("A began")));
    assert_eq!(candidate.all.not_comparable, 0);
    // Far busier: one run a side shows nothing, and several tell how they differ.
    let overloaded = |id: &str| {
        changed(|run| {
            (run.0.run_id, run.0.host.load_average, run.0.host.cpus) =
                (id.to_owned(), Some("17.0".to_owned()), 8)
        })
    };
    let (one, other) = (overloaded("one"), overloaded("other"));
    let candidate = held(&[&quiet], &[&one]);
    assert_eq!(candidate.all.not_comparable, candidate.all.total());
    assert_eq!(candidate.metrics[0].reasons[0].code, "busy-machine");
    assert_eq!(held(&[&quiet], &[&one, &other]).all.not_comparable, 0);
}

#[test]
fn series_that_no_run_makes_are_survived() {
    let mut odd = fixture::record();
    for (i, op) in odd
        .measurements
        .iter_mut()
        .flat_map(|m| m.ops.values_mut())
        .enumerate()
    {
        op.series.interval_ns = if i % 2 == 0 { 0 } else { 7 };
        op.count = u64::MAX;
        op.iops.n = 0;
    }
    assert!(!held(&[&odd], &[&fixture::record()]).metrics.is_empty());
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let record = fixture::record();
    for margin in [0.0, -0.1, 1.0, f64::NAN] {
        let question = Question {
            margin,
            ..ask(&[&record], &[&record], &[])
        };
        assert!(
            matches!(compare(&question), Err(CompareError::Margin(_))),
            "{margin}"
        );
    }
    assert_eq!(
        compare(&ask(&[&record], &[], &[])),
        Err(CompareError::Empty("b".to_owned()))
    );
}

/// Alongside another workload a figure is another figure, and alongside one that goes by the same
/// name and does something else, too.
#[test]
fn what_ran_together_is_compared_with_the_same_company_only() {
    let names = ["sequential-read", "random-read-d1"];
    let reasons = |a: &Record, b: &Record| {
        let metrics = held(&[a], &[b]).metrics;
        let of_it = metrics
            .into_iter()
            .find(|m| m.subject == "random-read-d1")
            .unwrap();
        of_it
            .reasons
            .into_iter()
            .map(|reason| (reason.code, reason.why))
            .collect::<Vec<_>>()
    };
    let (alone, beside) = (fixture::record(), fixture::judge(fixture::together(&names)));
    assert_eq!(reasons(&beside, &beside), []);
    let told = reasons(&alone, &beside);
    assert_eq!(told[0].0, "company-differs");
    assert_eq!(
        told[0].1,
        "A: it ran alone, B: it ran together with sequential-read"
    );
    let mut other = fixture::together(&names);
    other.1[1].workload.rate = Some(100.0);
    let told = reasons(&beside, &fixture::judge(other));
    assert!(
        told[0].1.starts_with(
            "sequential-read, which ran together with it, differs: A: as fast as it goes"
        ),
        "{told:?}"
    );
}
