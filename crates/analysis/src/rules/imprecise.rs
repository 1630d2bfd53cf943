//! `imprecise`: a figure is known less well than it should be, or its rate never settled. The
//! folder examines the workloads, the average of the curve, the INSERTs of a server, the steps on
//! files and single requests.

mod curve;
mod inserts;
mod pings;
mod steps;
mod workloads;

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "imprecise",
    title: "Some rates are only approximate",
    summary: "The rate varied or drifted so much, or was measured so briefly, that the figure is \
              only approximate. A choice between disks or settings may be wrong.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Workloads, curve and INSERTs first: a run of steps on files or of single requests has none.
fn check(record: &Record) -> Option<Diagnosis> {
    let mut found = Vec::new();
    for part in [workloads::check, curve::check, inserts::check] {
        found.extend(part(record));
    }
    found
        .into_iter()
        .reduce(joined)
        .or_else(|| steps::check(record))
        .or_else(|| pings::check(record))
}

fn joined(first: Diagnosis, second: Diagnosis) -> Diagnosis {
    Diagnosis::new(
        first.severity.max(second.severity),
        format!("{} {}", first.claim, second.claim),
        [first.evidence, second.evidence].concat(),
    )
    .with_remedy(format!("{} {}", first.remedy, second.remedy))
}

#[cfg(test)]
mod tests {
    use super::workloads::WIDTH_NOTE;
    use super::*;
    use crate::fixture;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, codes, solid};
    use crate::fixture::test_rng::TestRng;
    use crate::surface::short_stroke_name;
    use diskproof_model::files::FileOperation;
    use diskproof_model::latency_search::{DepthTrial, LatencySearch};
    use diskproof_model::layers::LayersPlan;
    use diskproof_model::measurement::{Measurement, OpMeasurement, StopReason};
    use diskproof_model::plan::{Decide, LivePlan, Order, Sides};
    use diskproof_model::record::TaskResult;
    use diskproof_model::series::Cell;
    use diskproof_model::shape::LatencyTarget;
    use diskproof_model::stream::Streams;
    use diskproof_model::trend::RunToRun;

    /// Stalls of a tenth of a second at uneven intervals.
    fn stutter(measurement: &mut Measurement) {
        for op in measurement.ops.values_mut() {
            for (i, cell) in op.series.cells.iter_mut().enumerate() {
                let stalled = (i / 10 * 7919) % 10 < 3;
                cell.ops = if stalled { 0 } else { cell.ops };
            }
        }
    }

    pub(super) const EXAMPLES: Examples = Examples::new(fires, fixture::record);

    fn fires() -> Record {
        fixture::changed(|run| {
            stutter(&mut run.measurements[3]);
            run.measurements[2].wall_ns = 50_000_000;
            for op in run.measurements[0].ops.values_mut() {
                for (i, cell) in op.series.cells.iter_mut().enumerate() {
                    cell.ops = 100 - i as u64 / 10;
                }
            }
        })
    }

    #[test]
    fn the_remedy_is_one_that_the_verb_has() {
        let mut record = fires();
        states(&check(&record).unwrap().remedy, &["(--time)"]);
        for measurement in &mut record.measurements {
            measurement.data.workload.name = short_stroke_name(50.0);
        }
        let remedy = check(&record).unwrap().remedy;
        states(
            &remedy,
            &["(diskproof run --rw randread --span 0-N% --time)"],
        );
    }

    #[test]
    fn remedy_names_a_time_only_where_it_is_that_of_one_workload() {
        let in_turns = Order::InTurns { slices_from_ns: 0 };
        for (time_limit_ns, order, option) in [
            (None, Order::AsGiven, "(--time 10s)"),
            (Some(1), Order::AsGiven, "(--time)"),
            (None, in_turns, "(--time)"),
        ] {
            let mut record = fixture::changed(|run| run.measurements[2].wall_ns = 50_000_000);
            record.plan.time_limit_ns = time_limit_ns;
            record.plan.workload_task_mut().unwrap().order = order;
            states(&check(&record).unwrap().remedy, &[option]);
        }
    }

    #[test]
    fn rough_short_and_drifting_figures_are_reported_together() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.evidence.len(), 3);
        states(
            &finding.claim,
            &["random-read-d1", "1 of 8 workloads (sequential-write)"],
        );
    }

    #[test]
    fn a_rough_figure_says_how_long_it_takes() {
        let finding = check(&fixture::faulty("random-read-d32", stutter)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["1 of 8 workloads (random-read-d32): to ±"],
        );
        states(&finding.remedy, &["±5 % for random-read-d32", "5.0 s"]);
    }

    #[test]
    fn a_busy_machine_is_not_measured_better_by_measuring_longer() {
        let record = fixture::faulty("random-read-d32", |measurement| {
            stutter(measurement);
            (measurement.starved.share, measurement.starved.mean_wait_ns) = (0.3, 60_000.0);
        });
        let remedy = check(&record).unwrap().remedy;
        states(&remedy, &["30 %"]);
        assert!(!remedy.contains("--time"), "{remedy}");
    }

    /// `cpu-limited` says what to do about it.
    #[test]
    fn program_that_used_all_of_its_processors_is_given_no_priority() {
        let record = fixture::faulty("random-read-d32", |measurement| {
            stutter(measurement);
            (measurement.starved.share, measurement.starved.mean_wait_ns) = (0.3, 60_000.0);
            measurement.cpu.system_ns = fixture::WALL_NS;
        });
        let remedy = check(&record).unwrap().remedy;
        assert!(!remedy.contains("chrt"), "{remedy}");
    }

    /// The search for a depth, which found that of this workload.
    fn search_that_found(workload: &str) -> TaskResult {
        TaskResult::Depth(LatencySearch {
            objection: None,
            target: LatencyTarget {
                latency_ns: 5_000_000,
                percent: 99.0,
                window_ns: 1_000_000_000,
            },
            depth: Some(32),
            is_settled: true,
            depth_max: 64,
            trials: vec![DepthTrial {
                workload: workload.to_owned(),
                depth: 32,
                requests: 1000,
                late: 0,
                holds: true,
            }],
        })
    }

    #[test]
    fn search_for_a_depth_is_given_a_longer_window() {
        let mut searched = known_to(0.1);
        searched.results = vec![search_that_found("random-read-d32")];
        let remedy = check(&searched).unwrap().remedy;
        states(&remedy, &["(--latency-window)"]);
    }

    #[test]
    fn rates_of_layers_and_of_depths_that_were_not_found_are_no_results() {
        let mut layers = fires();
        layers.plan.workload_task_mut().unwrap().decide = Decide::Compare(LivePlan {
            sides: Sides::Layers(LayersPlan {
                layers: Vec::new(),
                unresolved: None,
            }),
            margin: 0.02,
            cells_ns: 0,
        });
        assert_eq!(check(&layers), None);

        for (workload, is_reported) in [("random-read-d32", true), ("random-read-d1", false)] {
            let mut searched = fixture::faulty("random-read-d32", stutter);
            searched.results = vec![search_that_found(workload)];
            assert_eq!(check(&searched).is_some(), is_reported, "{workload}");
        }
    }

    fn answer_after_end(measurement: &mut Measurement) {
        for op in measurement.ops.values_mut() {
            (op.count, op.bytes) = (0, 0);
            op.series.cells.clear();
        }
    }

    #[test]
    fn a_disk_that_answered_only_after_the_end_is_reported() {
        let finding = check(&fixture::faulty("random-read-d32", answer_after_end)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(
            &finding.claim,
            &["5.0 s", "1 of 8 workloads (random-read-d32)"],
        );
        assert_eq!(
            finding.evidence[0].path,
            "/measurements/3/data/ops/read/count"
        );
        assert_eq!(finding.evidence[0].observed, 0.0);
    }

    fn use_up(measurement: &mut Measurement) {
        measurement
            .ops
            .values_mut()
            .for_each(|op| *op = OpMeasurement::default());
        (measurement.stopped, measurement.wall_ns) = (StopReason::Ops, 0);
    }

    #[test]
    fn a_warm_up_that_used_everything_up_is_reported() {
        let finding = check(&fixture::faulty("random-read-d32", use_up)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["1 of 8 workloads (random-read-d32)"]);
        states(&finding.remedy, &["--warmup 0s"]);
    }

    #[test]
    fn curve_known_roughly_is_reported_with_its_worst_point() {
        let flat = solid(|disk| (disk.points, disk.noise) = (20, 0.002));
        let slowed = |times: u64| {
            let mut run = flat.run(1);
            let point = &mut run.surface.curve[7];
            point.bytes_per_second /= times as f64;
            point.busy_ns *= times;
            check(&surveyed::judge(run))
        };
        let finding = slowed(16).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["112 GB"]);
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/figures/rate/average/half_width_95"
        );
        // Known to ±10 %, by hand: 2.09 × 0.22 / √20 / 1.05.
        assert!(slowed(2).is_some());
        assert_eq!(slowed(1), None);
        assert_eq!(check(&surveyed::record()), None);
    }

    /// A mix of 1000 operations a second with one write in ten, drawn at random; the whole varies
    /// as `total` says.
    fn mix(total: impl Fn(usize) -> u64) -> Record {
        fixture::faulty("mixed-random", |measurement| {
            measurement.workload.streams = Streams::with_reads(900);
            let mut rng = TestRng(3);
            let cells: Vec<(u64, u64)> = (0..500)
                .map(|i| {
                    let all = total(i);
                    let writes = (0..all).filter(|_| rng.share() < 0.1).count() as u64;
                    (all - writes, writes)
                })
                .collect();
            for (kind, op) in &mut measurement.ops {
                let counts = cells.iter().map(|(reads, writes)| match kind {
                    OpKind::Write => *writes,
                    _ => *reads,
                });
                op.series.cells = counts
                    .map(|ops| Cell {
                        ops,
                        bytes: ops * 8192,
                        ..Cell::default()
                    })
                    .collect();
                op.count = op.series.total().ops;
            }
        })
    }

    #[test]
    fn mix_is_judged_by_its_total_where_only_the_split_is_random() {
        let even = mix(|_| 10);
        let widest = even
            .measurements
            .iter()
            .find(|measurement| measurement.data.workload.name == "mixed-random")
            .and_then(Row::precision);
        assert!(widest.unwrap() > WIDTH_NOTE, "{widest:?}");
        assert_eq!(check(&even), None);
        let uneven = mix(|i| if (i / 10 * 7919) % 10 < 3 { 0 } else { 10 });
        states(&check(&uneven).unwrap().claim, &["mixed-random"]);
    }

    /// Steps whose second one took these rounds.
    fn created_and_deleted(rounds: &[u64]) -> Record {
        let steps = vec![
            file_step(FileOperation::Create, &[1000, 1010, 990]),
            file_step(FileOperation::Delete, rounds),
        ];
        files_record("files", files_plan(), steps)
    }

    #[test]
    fn steps_on_files_whose_rounds_differ_are_reported() {
        assert_eq!(check(&created_and_deleted(&[2000, 2020, 1980])), None);
        let uneven = created_and_deleted(&[1000, 2000, 3000]);
        let finding = check(&uneven).unwrap();
        states(&finding.claim, &["1 of 2 steps (delete-sequential)"]);
        let figures = &uneven.files().unwrap().steps[1].figures;
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/steps/1/figures/iops/half_width_95"
        );
        assert_eq!(
            Some(finding.evidence[0].observed),
            figures.iops.half_width_95
        );
        // The record has the finding, and its verdict names it.
        assert!(codes(&uneven).contains(&"imprecise"));
        assert_eq!(uneven.verdict.unwrap().worst.unwrap().code, "imprecise");
    }

    #[test]
    fn silent_where_nothing_was_measured() {
        let nothing = fixture::faulty("random-read-d32", |measurement| measurement.ops.clear());
        assert_eq!(check(&nothing), None);
    }

    /// A rate of the random reads that is known to this share of it.
    fn known_to(share: f64) -> Record {
        let mut record = fixture::record();
        let row = fixture::measured(&mut record, "random-read-d32");
        for op in row.figures.ops.values_mut() {
            op.iops.half_width_95 = Some(share * op.iops.value);
        }
        record
    }

    #[test]
    fn rate_known_to_a_quarter_is_a_note_and_beyond_it_a_warning() {
        for (share, severity) in [
            (0.05, None),
            (0.1, Some(Severity::Note)),
            (0.25, Some(Severity::Note)),
            (0.3, Some(Severity::Warning)),
        ] {
            let found = check(&known_to(share)).map(|finding| finding.severity);
            assert_eq!(found, severity, "{share}");
        }
    }

    /// ±10 % of five seconds is ±5 % of twenty: the time grows with the square of the precision.
    #[test]
    fn longer_time_is_advised_where_it_helps_within_an_hour() {
        states(&check(&known_to(0.1)).unwrap().remedy, &["20 s"]);
        // 5 s × 400 are 33 minutes, 10 s × 400 more than an hour.
        assert!(check(&known_to(1.0)).unwrap().remedy.contains("--time"));
        let mut longer = known_to(1.0);
        fixture::measured(&mut longer, "random-read-d32")
            .data
            .wall_ns *= 2;
        assert!(!check(&longer).unwrap().remedy.contains("--time"));
    }

    /// Where runs differ as much as the interval is wide, a longer one is no better.
    #[test]
    fn spread_from_run_to_run_is_not_narrowed_by_time() {
        for (share, advises_time) in [(0.098, true), (0.0995, false)] {
            let mut record = known_to(0.1);
            let row = fixture::measured(&mut record, "random-read-d32");
            let rate = row.figures.ops[&OpKind::Read].iops.value;
            row.run_to_run = Some(RunToRun {
                earlier_runs: 4,
                lowest_iops: rate,
                highest_iops: rate,
                next_low_iops: rate * (1.0 - share),
                next_high_iops: rate * (1.0 + share),
                within_iops: None,
            });
            let remedy = check(&record).unwrap().remedy;
            assert_eq!(remedy.contains("--time"), advises_time, "{share}: {remedy}");
        }
    }

    #[test]
    fn processors_that_the_hypervisor_took_come_before_a_longer_time() {
        for (share, advises_time) in [(0.04, true), (0.05, false)] {
            let mut record = known_to(0.1);
            record.host.stolen_share = Some(share);
            let remedy = check(&record).unwrap().remedy;
            assert_eq!(remedy.contains("--time"), advises_time, "{share}: {remedy}");
        }
    }

    #[test]
    fn consequence_says_how_far_disks_may_differ() {
        for (share, part) in [(0.1, "10 %"), (0.49, "49 %"), (0.6, "factor of two")] {
            let claim = check(&known_to(share)).unwrap().claim;
            let consequence = claim.split(". ").last().unwrap();
            states(consequence, &[part]);
        }
    }
}
