//! `imprecise`: a figure is known less well than it should be, or its rate never settled. This file
//! examines the workloads, and its folder the average of the curve, the steps on files and single
//! requests.

mod curve;
mod pings;
mod steps;

use super::cpu_limited::is_cpu_limited;
use super::cpu_stolen::large_share;
use super::rule::*;
use super::starved::is_kept_waiting;
use crate::estimate;
use crate::estimate::{BATCHES_MIN, Settling};
use crate::surface::is_short_stroke;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::measurement::{SERIES_INTERVAL_NS, StopReason};

pub(super) const RULE: Rule = Rule {
    code: "imprecise",
    title: "Some rates are only approximate",
    meaning: "The rate varied or drifted so much, or was measured so briefly, that the figure is \
              only approximate. A choice between disks or settings may be wrong.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Relative half-width up to which a figure needs no comment: half of what tells two disks apart in
/// practice.
const WIDTH_NOTE: f64 = 0.05;

/// Beyond this half-width "faster or slower by so much" is no longer true of both.
const WIDTH_HALF: f64 = 0.5;

/// Shortest measured time that an interval can be computed for.
const WALL_NS_MIN: u64 = BATCHES_MIN as u64 * SERIES_INTERVAL_NS;

/// Longest time that is suggested; what needs more does not get precise by waiting.
const SUGGESTED_NS_MAX: f64 = 3600e9;

/// Share of an interval from which on it is that of the runs, not of this one.
const OF_RUNS: f64 = 0.99;

/// An interval of a few batches is itself known to about this factor.
const SPLIT_FACTOR: f64 = 1.5;

fn check(record: &Record) -> Option<Diagnosis> {
    match (check_workloads(record), curve::check(record)) {
        (Some(workloads), Some(curve)) => Some(joined(workloads, curve)),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => steps::check(record).or_else(|| pings::check(record)),
    }
}

fn joined(first: Diagnosis, second: Diagnosis) -> Diagnosis {
    Diagnosis::new(
        first.severity.max(second.severity),
        format!("{} {}", first.claim, second.claim),
        [first.evidence, second.evidence].concat(),
    )
    .with_remedy(format!("{} {}", first.remedy, second.remedy))
}

struct ImpreciseWorkload<'a> {
    measured: Measured<'a>,
    severity: Severity,
    /// Relative half-width; infinite where there was too little to tell.
    width: f64,
    evidence: Evidence,
}

fn check_workloads(record: &Record) -> Option<Diagnosis> {
    // What counts is the differences between the layers, and each has its own interval.
    if record.plan.layers().is_some() {
        return None;
    }
    let mut hits: Vec<ImpreciseWorkload<'_>> = Vec::new();
    for measured in real(record) {
        // A burst that ends is no noise: burst-figure says what it is.
        if is_result(record, measured.row) && !is_in_burst(record, measured.index) {
            hits.extend(imprecise_workload(measured));
        }
    }
    let worst = largest_by(&hits, |hit| hit.width)?;
    let unsettled = indices_of(&hits, is_unsettled);
    let mut claims = Vec::new();
    claims.extend(unanswered_claim(record, &indices_of(&hits, is_unanswered)));
    let used_up = indices_of(&hits, is_used_up);
    if !used_up.is_empty() {
        let scope = scope(record, used_up);
        claims.push(format!(
            "Nothing was left to measure after the warm-up in {scope}."
        ));
    }
    claims.extend(rough_claim(record, &hits));
    if !unsettled.is_empty() {
        let scope = scope(record, unsettled.iter().copied());
        claims.push(format!(
            "The rate was still changing at the end of {scope}."
        ));
    }
    claims.push(consequence(worst));
    let severity = hits.iter().map(|hit| hit.severity).max()?;
    let observations = hits.iter().map(|hit| hit.evidence.clone());
    let remedy = remedy(record, worst, &unsettled);
    Some(Diagnosis::new(severity, claims.join(" "), observations).with_remedy(remedy))
}

/// The places of the workloads of which this is true.
fn indices_of(hits: &[ImpreciseWorkload<'_>], is_true: fn(&Row) -> bool) -> Vec<usize> {
    let mut found = Vec::new();
    for hit in hits {
        if is_true(hit.measured.row) {
            found.push(hit.measured.index);
        }
    }
    found
}

/// Of a search for a depth only the depth that it found is a result.
fn is_result(record: &Record, row: &Row) -> bool {
    let Some(found) = record.latency_search().and_then(LatencySearch::found) else {
        return true;
    };
    found.workload == row.data.workload.name
}

fn unanswered_claim(record: &Record, unanswered: &[usize]) -> Option<String> {
    let first = unanswered.first()?;
    Some(format!(
        "No operation completed within the measured time of {} in {}.",
        format_duration(record.measurements[*first].data.wall_ns),
        scope(record, unanswered.iter().copied())
    ))
}

/// Workloads whose rate is known only roughly, with the least known one.
fn rough_claim(record: &Record, hits: &[ImpreciseWorkload<'_>]) -> Option<String> {
    let rough: Vec<&ImpreciseWorkload<'_>> = hits
        .iter()
        .filter(|hit| hit.width > WIDTH_NOTE && !is_empty(hit.measured.row))
        .collect();
    let roughest = largest_by(&rough, |hit| hit.width)?;
    let mut precision = if roughest.width.is_finite() {
        format!("to ±{}", format_percent(roughest.width))
    } else {
        "too short for an interval".to_owned()
    };
    if rough.len() > 1 {
        precision.push_str(" in ");
        precision.push_str(&workload_name(record, roughest.measured.row));
    }
    let scope = scope(record, rough.iter().map(|hit| hit.measured.index));
    Some(format!(
        "The rate is only approximate in {scope}: {precision}."
    ))
}

/// What a reader might decide wrongly.
fn consequence(worst: &ImpreciseWorkload<'_>) -> String {
    if worst.width.is_infinite() {
        "A decision based on such a figure may be wrong.".to_owned()
    } else if worst.width > WIDTH_HALF {
        "Disks or settings that differ by a factor of two could show the same figure.".to_owned()
    } else if worst.width > WIDTH_NOTE {
        format!(
            "A disk up to {} faster or slower could show the same figure, so a choice between \
             disks or settings may be wrong.",
            format_percent(worst.width)
        )
    } else {
        "The sustained rate may be lower, so capacity planned with this figure may be too small."
            .to_owned()
    }
}

fn is_unsettled(row: &Row) -> bool {
    row.figures.settled == Some(false)
}

fn is_empty(row: &Row) -> bool {
    is_unanswered(row) || is_used_up(row)
}

/// Whether everything that was asked for came only after the measured time.
fn is_unanswered(row: &Row) -> bool {
    has_no_count(row)
        && row
            .headline_ops()
            .iter()
            .any(|(_, op)| op.figures.latency.max > 0)
}

fn has_no_count(row: &Row) -> bool {
    row.headline_ops()
        .iter()
        .all(|(_, op)| op.data.count == 0 && op.data.errors.is_empty())
}

/// Whether the warm-up used up all operations or bytes, and left nothing to measure.
fn is_used_up(row: &Row) -> bool {
    let ops = row.headline_ops();
    matches!(row.data.stopped, StopReason::Ops | StopReason::Bytes)
        && !ops.is_empty()
        && has_no_count(row)
        && ops.iter().all(|(_, op)| op.figures.latency.max == 0)
}

fn imprecise_workload(measured: Measured<'_>) -> Option<ImpreciseWorkload<'_>> {
    let row = measured.row;
    // The pace of single requests is the user's, not the disk's.
    if row.figures.ping.is_some() {
        return None;
    }
    let mut ops = row.headline_ops();
    if is_empty(row)
        && let Some((kind, _)) = ops.first()
    {
        let place = format!("data/ops/{}/count", kind.as_str());
        return Some(ImpreciseWorkload {
            measured,
            severity: Severity::Warning,
            width: f64::INFINITY,
            evidence: measured.evidence(&place, 0.0, 1.0, "1"),
        });
    }
    ops.retain(|(_, op)| op.data.count > 0);
    let (kind, op) = largest_by(ops, |(_, op)| judged_width(row, *op))?;
    let width = judged_width(row, op);
    let rate = &op.figures.iops;
    let (severity, evidence) = match rate.half_width_95 {
        Some(half_width) if width > WIDTH_NOTE => {
            let place = format!("figures/ops/{}/iops/half_width_95", kind.as_str());
            let threshold = WIDTH_NOTE * rate.value;
            (
                warning_if(width > HALF_WIDTH_MAX),
                measured.evidence(&place, half_width, threshold, "1/s"),
            )
        }
        None => {
            let wall_ns = row.data.wall_ns as f64;
            (
                Severity::Warning,
                measured.evidence("data/wall_ns", wall_ns, WALL_NS_MIN as f64, "ns"),
            )
        }
        Some(_) if is_unsettled(row) => (
            Severity::Note,
            measured.evidence("figures/settled", 0.0, 1.0, "settled"),
        ),
        Some(_) => return None,
    };
    Some(ImpreciseWorkload {
        measured,
        severity,
        width,
        evidence,
    })
}

/// How well the rate of a kind of operation is known, as a share. In a mix each operation draws
/// whether it reads or writes: where that explains the spread of the kind, the rate of the whole
/// mix counts, because the disk is not the cause of the rest.
fn judged_width(row: &Row, op: OpRow<'_>) -> f64 {
    let Some(own) = op.figures.iops.relative_half_width() else {
        return f64::INFINITY;
    };
    let ops = row.headline_ops();
    let is_mix = ops.len() > 1 && row.data.workload.streams.is_mix();
    if !is_mix || op.data.count == 0 || own.is_infinite() {
        return own;
    }
    let Some(total) = width_of_mix(row) else {
        return own;
    };
    let all: u64 = ops.iter().map(|(_, op)| op.data.count).sum();
    let share = op.data.count as f64 / all as f64;
    // Relative half-width of a binomial count.
    let split = 1.96 * ((1.0 - share) / op.data.count as f64).sqrt();
    if own <= (total * total + (SPLIT_FACTOR * split).powi(2)).sqrt() {
        total
    } else {
        own
    }
}

/// How well the rate of all kinds of operation together is known.
fn width_of_mix(row: &Row) -> Option<f64> {
    let series = headline_series(row)?;
    let rate = estimate::rate_after(&series, row.data.wall_ns, Settling::of(row));
    rate.ops.relative_half_width()
}

/// What makes the worst figure more precise.
fn remedy(record: &Record, worst: &ImpreciseWorkload<'_>, unsettled: &[usize]) -> String {
    let row = worst.measured.row;
    if let Some(share) = large_share(record) {
        return format!(
            "Measure when the hypervisor does not take processors away: it gave {} of the CPU time \
             to other machines, which makes any rate uneven.",
            format_percent(share)
        );
    }
    // Where the program itself used all processors, `cpu-limited` reports it.
    if is_kept_waiting(row) && !is_cpu_limited(record, row) && worst.width.is_finite() {
        return format!(
            "Measure when the machine is quieter, or raise the program's priority (chrt -f 10 \
             diskproof … as root): in {} it had no processor for {} of the time, which makes any \
             rate uneven.",
            workload_name(record, row),
            format_percent(row.data.starved.share)
        );
    }
    let option = time_option(record, row);
    if !unsettled.is_empty() {
        return format!(
            "Measure longer ({option}) until the rate has settled. A cache or burst credit may \
             have been exhausted, or other programs used the disk."
        );
    }
    if is_used_up(row) {
        return "Use a shorter warm-up (--warmup 0s) or a larger limit (--ops, --bytes), because \
                the operations of the warm-up count."
            .to_owned();
    }
    if is_unanswered(row) {
        return format!(
            "Measure longer ({}). If an operation takes that long, read dmesg: the disk may be \
             failing or hung.",
            longer_time(record, row)
        );
    }
    if !worst.width.is_finite() {
        return format!("Measure longer ({}).", longer_time(record, row));
    }
    remedy_of_width(record, row, worst.width, option)
}

/// The option that sets the time of a workload. The short strokes of a survey have a time that no
/// flag changes.
fn time_option(record: &Record, row: &Row) -> &'static str {
    if is_short_stroke(&row.data.workload.name) {
        "diskproof run --rw randread --span 0-N% --time"
    } else if record.latency_search().is_some() {
        "--latency-window"
    } else {
        "--time"
    }
}

/// The same with a time, unless that is the time of all workloads together: in turns, and with a
/// limit.
fn longer_time(record: &Record, row: &Row) -> String {
    let option = time_option(record, row);
    let has_own_time = record.plan.order().is_as_given() && record.plan.time_limit_ns.is_none();
    if is_short_stroke(&row.data.workload.name) || has_own_time {
        format!("{option} 10s")
    } else {
        option.to_owned()
    }
}

/// Where the interval is known: what makes it narrower. The time needed grows with the square of
/// the precision wanted.
fn remedy_of_width(record: &Record, row: &Row, width: f64, option: &str) -> String {
    if let Some(runs) = row.run_to_run
        && runs.relative_half_width() > OF_RUNS * width
    {
        return "Compare several runs per side, because runs of this plan differ that much. A \
                longer measurement hardly helps."
            .to_owned();
    }
    let needed_ns = row.data.wall_ns as f64 * (width / WIDTH_NOTE).powi(2);
    if needed_ns > SUGGESTED_NS_MAX {
        return "Find out why the rate varies (other programs, the disk's own housekeeping). A \
                longer measurement hardly helps."
            .to_owned();
    }
    format!(
        "Measure longer ({option}): a precision of ±5 % for {} takes about {} instead of {}.",
        workload_name(record, row),
        format_duration(needed_ns as u64),
        format_duration(row.data.wall_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, codes, solid};
    use crate::fixture::test_rng::TestRng;
    use crate::surface::short_stroke_name;
    use diskproof_model::files::FileOperation;
    use diskproof_model::measurement::{Measurement, OpKind, OpMeasurement};
    use diskproof_model::plan::Order;
    use diskproof_model::series::Cell;
    use diskproof_model::stream::Streams;

    /// Stalls of a tenth of a second at uneven intervals.
    fn stutter(m: &mut Measurement) {
        for op in m.ops.values_mut() {
            for (i, cell) in op.series.cells.iter_mut().enumerate() {
                let stalled = (i / 10 * 7919) % 10 < 3;
                cell.ops = if stalled { 0 } else { cell.ops };
            }
        }
    }

    pub(super) const EXAMPLES: Examples = Examples::new(fires, fixture::record);

    fn fires() -> Record {
        fixture::changed(|run| {
            stutter(&mut run.1[3]);
            run.1[2].wall_ns = 50_000_000;
            for op in run.1[0].ops.values_mut() {
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
            let mut record = fixture::changed(|run| run.1[2].wall_ns = 50_000_000);
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
        let record = fixture::faulty("random-read-d32", |m| {
            stutter(m);
            (m.starved.share, m.starved.mean_wait_ns) = (0.3, 60_000.0);
        });
        let remedy = check(&record).unwrap().remedy;
        states(&remedy, &["30 %"]);
        assert!(!remedy.contains("--time"), "{remedy}");
    }

    #[test]
    fn a_disk_that_answered_only_after_the_end_is_reported() {
        let hung = |m: &mut Measurement| {
            for op in m.ops.values_mut() {
                (op.count, op.bytes) = (0, 0);
                op.series.cells.clear();
            }
        };
        let finding = check(&fixture::faulty("random-read-d32", hung)).unwrap();
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

    #[test]
    fn a_warm_up_that_used_everything_up_is_reported() {
        let used_up = |m: &mut Measurement| {
            m.ops
                .values_mut()
                .for_each(|op| *op = OpMeasurement::default());
            (m.stopped, m.wall_ns) = (StopReason::Ops, 0);
        };
        let finding = check(&fixture::faulty("random-read-d32", used_up)).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        states(&finding.claim, &["1 of 8 workloads (random-read-d32)"]);
        states(&finding.remedy, &["--warmup 0s"]);
    }

    #[test]
    fn curve_known_roughly_is_reported_with_its_worst_point() {
        let flat = solid(|disk| (disk.points, disk.noise) = (20, 0.002));
        let slowed = |times: u64| {
            let mut run = flat.run(1);
            let point = &mut run.1.curve[7];
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
        fixture::faulty("mixed-random", |m| {
            m.workload.streams = Streams::with_reads(900);
            let mut rng = TestRng(3);
            let cells: Vec<(u64, u64)> = (0..500)
                .map(|i| {
                    let all = total(i);
                    let writes = (0..all).filter(|_| rng.share() < 0.1).count() as u64;
                    (all - writes, writes)
                })
                .collect();
            for (kind, op) in &mut m.ops {
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
            .find(|m| m.data.workload.name == "mixed-random")
            .and_then(Row::precision);
        assert!(widest.unwrap() > WIDTH_NOTE, "{widest:?}");
        assert_eq!(check(&even), None);
        let uneven = mix(|i| if (i / 10 * 7919) % 10 < 3 { 0 } else { 10 });
        states(&check(&uneven).unwrap().claim, &["mixed-random"]);
    }

    #[test]
    fn steps_on_files_whose_rounds_differ_are_reported() {
        let record = |rounds: &[u64]| {
            let steps = vec![
                file_step(FileOperation::Create, &[1000, 1010, 990]),
                file_step(FileOperation::Delete, rounds),
            ];
            files_record("files", files_plan(), steps)
        };
        assert_eq!(check(&record(&[2000, 2020, 1980])), None);
        let uneven = record(&[1000, 2000, 3000]);
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
        let nothing = fixture::faulty("random-read-d32", |m| m.ops.clear());
        assert_eq!(check(&nothing), None);
    }
}
