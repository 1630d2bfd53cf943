//! What must agree and what may differ; records that no run makes.

use super::*;
use diskproof_model::stream::Streams;
use diskproof_model::target::TargetKind;

type Change = fn(&mut Measurement);

/// Each change alone makes a measurement incomparable, for the reason with this code.
fn incomparable_changes() -> [(&'static str, Change); 17] {
    [
        ("depth-differs", |measurement| {
            measurement.workload.depth *= 2
        }),
        ("workers-differ", |measurement| {
            measurement.workload.workers = 3
        }),
        ("block-size-differs", |measurement| {
            measurement.workload.block_bytes *= 2
        }),
        ("mix-differs", |measurement| {
            measurement.workload.streams = Streams::with_reads(700)
        }),
        ("access-differs", |measurement| {
            measurement.workload.access = Access::Backward
        }),
        ("load-differs", |measurement| {
            measurement.workload.rate = Some(100.0)
        }),
        ("sync-differs", |measurement| {
            measurement.workload.sync = SyncPolicy::AtEnd
        }),
        ("cache-differs", |measurement| {
            measurement.cache = CacheUse {
                asked: CachePolicy::Direct,
                used: CachePolicy::Buffered,
                why: None,
            }
        }),
        ("engine-differs", |measurement| {
            measurement.engine.used = EngineKind::Aio
        }),
        ("span-differs", |measurement| measurement.span_bytes /= 2),
        ("content-differs", |measurement| {
            measurement.zero_blocks = ZeroSample {
                sampled: 1000,
                zero: 500,
            }
        }),
        ("interrupted", |measurement| {
            measurement.stopped = StopReason::Interrupted
        }),
        ("unwritten-blocks", |measurement| {
            measurement.unwritten_bytes = Some(1 << 30)
        }),
        ("served-from-cache", |measurement| {
            measurement.device.read_bytes = 0
        }),
        ("io-errors", |measurement| {
            measurement.ops.values_mut().for_each(|op| {
                op.errors.insert("EIO".to_owned(), 3);
            })
        }),
        ("disturbed", |measurement| {
            measurement.device.read_bytes *= 2
        }),
        ("cpu-limited", |measurement| {
            measurement.cpu.user_ns = measurement.wall_ns
        }),
    ]
}

#[test]
fn different_measurements_are_not_comparable() {
    let healthy = fixture::record();
    for (code, change) in incomparable_changes() {
        let faulty = changed(|run| change(&mut run.measurements[3]));
        for (a, b) in [(&healthy, &faulty), (&faulty, &healthy)] {
            let candidate = held(&[a], &[b]);
            for metric in &candidate.metrics {
                if metric.subject == "random-read-d32" {
                    let refused = (Verdict::NotComparable, None, None);
                    assert_eq!(
                        (metric.verdict, metric.ratio, metric.needed),
                        refused,
                        "{code}: {metric:?}"
                    );
                    assert!(reasons(metric).contains(&code), "{code}: {metric:?}");
                } else {
                    assert_eq!(
                        (metric.verdict, &metric.reasons[..]),
                        (Verdict::Same, &[][..]),
                        "{code}"
                    );
                }
            }
            assert_eq!(candidate.headline.not_comparable, 1);
            let mut pairs = candidate.percentiles.iter();
            assert!(pairs.all(|pair| pair.subject != "random-read-d32" || !pair.comparable));
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
    states(
        &candidate.summary,
        &[&format!(
            "A: measuring method {ours}, B: measuring method {theirs}"
        )],
    );
    let device = changed(|run| run.facts.targets[0].kind = TargetKind::BlockDevice);
    assert_all(&held(&[&healthy], &[&device]), Verdict::NotComparable);
}

#[test]
fn who_the_disk_is_differs_and_compares() {
    let mut other = changed(|run| run.facts.host.kernel = "6.12.1".to_owned());
    let disk = other.targets[0].layers.last_mut().unwrap();
    (disk.firmware, disk.serial) = (Some("2.0".to_owned()), Some("S1".to_owned()));
    let candidate = held(&[&fixture::record()], &[&other]);
    assert_eq!(candidate.all.not_comparable, 0);
    let told = candidate.differences.iter();
    let told: Vec<[&str; 3]> = told
        .map(|d| [&d.what, &d.a, &d.b].map(String::as_str))
        .collect();
    let expected = [("serial", "S1"), ("firmware", "2.0"), ("kernel", "6.12.1")];
    assert_eq!(told, expected.map(|(what, b)| [what, "unknown", b]));
}

#[test]
fn disks_of_different_size_compare_as_a_whole() {
    let whole = |size: u64| {
        changed(|run| {
            run.facts.run_id = size.to_string();
            let target = &mut run.facts.targets[0];
            (target.kind, target.size_bytes) = (TargetKind::BlockDevice, size);
            run.measurements
                .iter_mut()
                .for_each(|measurement| measurement.span_bytes = size);
        })
    };
    let candidate = held(&[&whole(1 << 40)], &[&whole(1 << 41)]);
    assert_eq!(candidate.all.not_comparable, 0);
}

#[test]
fn metric_of_one_side_only_is_reported() {
    let healthy = fixture::record();
    let fewer = changed(|run| {
        run.measurements
            .retain(|measurement| measurement.workload.name != "random-read-d1");
        run.facts
            .plan
            .skipped
            .push(diskproof_model::plan::Skipped::new(
                "random-read-d1",
                "no time",
            ));
    });
    let candidate = held(&[&healthy], &[&fewer]);
    let only = |only| Unmatched {
        subject: "random-read-d1".to_owned(),
        only,
        why: Some("no time".to_owned()),
    };
    assert_eq!(candidate.unmatched, [only(Holder::A)]);
    assert_eq!(held(&[&fewer], &[&healthy]).unmatched, [only(Holder::B)]);
    assert_eq!(candidate.headline.total(), 7);
}

#[test]
fn records_without_figures_compare_to_nothing() {
    let empty = changed(|run| run.measurements.clear());
    assert_eq!(held(&[&empty], &[&empty]).metrics, []);
    let mut damaged = fixture::record();
    for measurement in &mut damaged.measurements {
        for op in measurement.data.ops.values_mut() {
            op.latency = LatencyHistogram::new();
            op.series.cells.clear();
        }
        for op in measurement.figures.ops.values_mut() {
            op.iops.half_width_95 = None;
            op.throughput.value = f64::INFINITY;
        }
    }
    for metric in held(&[&damaged], &[&fixture::record()]).metrics {
        assert_eq!(
            (metric.verdict, metric.ratio),
            (Verdict::Undecided, None),
            "{}",
            metric.metric
        );
    }
    let mut idle = fixture::record();
    for measurement in &mut idle.measurements {
        for op in measurement.data.ops.values_mut() {
            op.count = 0;
        }
        for op in measurement.figures.ops.values_mut() {
            op.iops.value = 0.0;
            op.throughput.value = 0.0;
        }
    }
    assert_eq!(held(&[&idle], &[&fixture::record()]).metrics, []);
}

#[test]
fn busy_machine_is_reported() {
    let loaded = |id: &str, load: &str| {
        changed(|run| {
            (run.facts.run_id, run.facts.host.load_average) =
                (id.to_owned(), Some(load.to_owned()));
        })
    };
    let (quiet, busy) = (loaded("quiet", "0.31"), loaded("busy", "9.31 4.00 1.00"));
    let candidate = held(&[&quiet], &[&busy]);
    let busy_note = |notes: &[String]| {
        let note = notes.iter().find(|note| note.contains("began at a load"));
        note.unwrap().clone()
    };
    states(
        &busy_note(&candidate.notes),
        &["B began", "9.3 on 8 processors"],
    );
    assert!(!candidate.notes.iter().any(|note| note.contains("A began")));
    assert_eq!(candidate.all.not_comparable, 0);
    // What the run itself shows decides, such as waits for a processor, not the load before it.
    let one = loaded("one", "17.0");
    let candidate = held(&[&quiet], &[&one]);
    states(
        &busy_note(&candidate.notes),
        &["B began", "17.0 on 8 processors"],
    );
    assert_eq!(candidate.all.not_comparable, 0);
}

/// Half an hour for each command: one set of them is enough for two directories of one disk.
#[test]
fn test_for_a_burst_is_advised_once_where_both_sides_lie_on_one_disk() {
    let side = |id: &str, path: &str, disk: &str| {
        changed(|run| {
            run.facts.run_id = id.to_owned();
            run.facts.plan.targets = vec![path.to_owned()];
            run.facts.targets[0].path = path.to_owned();
            run.facts.targets[0].layers.last_mut().unwrap().name = disk.to_owned();
        })
    };
    let note_of = |other: &Record| {
        let candidate = held(&[&side("a", "/data", "sda")], &[other]);
        let mut notes = candidate.notes.into_iter();
        notes.find(|note| note.contains("randread")).unwrap()
    };
    let same = note_of(&side("b", "/new", "sda"));
    assert!(same.contains("'diskproof run /data "), "{same}");
    assert!(!same.contains("'diskproof run /new "), "{same}");
    let other = note_of(&side("c", "/new", "sdb"));
    states(&other, &["'diskproof run /data ", "'diskproof run /new "]);
}

#[test]
fn series_that_no_run_makes_are_survived() {
    let mut odd = fixture::record();
    let ops = odd
        .measurements
        .iter_mut()
        .flat_map(|measurement| measurement.data.ops.values_mut());
    for (i, op) in ops.enumerate() {
        op.series.interval_ns = if i % 2 == 0 { 0 } else { 7 };
        op.count = u64::MAX;
    }
    for measurement in &mut odd.measurements {
        for op in measurement.figures.ops.values_mut() {
            op.iops.n = 0;
        }
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
    let empty = compare(&ask(&[&record], &[], &[]));
    assert_eq!(empty, Err(CompareError::Empty("b".to_owned())));
}

#[test]
fn what_ran_together_is_compared_with_the_same_company_only() {
    let names = ["sequential-read", "random-read-d1"];
    let told = |a: &Record, b: &Record| rate(&held(&[a], &[b])).reasons.clone();
    let (alone, beside) = (fixture::record(), fixture::judge(fixture::together(&names)));
    assert_eq!(told(&beside, &beside), []);
    let company = &told(&alone, &beside)[0];
    assert_eq!(company.code, "company-differs");
    states(&company.why, &["A: it ran alone", "sequential-read"]);
    let mut other = fixture::together(&names);
    other.measurements[1].workload.rate = Some(100.0);
    let load = &told(&beside, &fixture::judge(other))[0];
    states(&load.why, &["sequential-read", "A: as fast as it goes"]);
}
