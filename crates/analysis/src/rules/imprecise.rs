//! `imprecise`: a figure is known less well than it should be, or its rate never settled. Covers
//! the workloads, the average of the curve and the steps on files.

use super::program;
use super::rule::*;
use super::surface;
use crate::estimate;
use crate::estimate::{BATCHES_MIN, Settling};
use crate::surface::is_short_stroke;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::measurement::{SERIES_INTERVAL_NS, StopReason};
use diskproof_model::record::FileStepRow;
use diskproof_model::surface::CurvePoint;

pub(super) const IMPRECISE: Rule = Rule {
    code: "imprecise",
    check: Check::Run(check_imprecise),
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

struct ImpreciseWorkload {
    index: usize,
    severity: Severity,
    /// Relative half-width; infinite where there was too little to tell.
    width: f64,
    evidence: Evidence,
}

fn check_imprecise(record: &Record) -> Option<Diagnosis> {
    let (workloads, curve) = (check_workloads(record), check_curve(record));
    match (workloads, curve) {
        (Some(workloads), Some(curve)) => Some(Diagnosis::with_remedy(
            workloads.severity.max(curve.severity),
            format!("{} {}", workloads.claim, curve.claim),
            [workloads.evidence, curve.evidence].concat(),
            format!("{} {}", workloads.remedy, curve.remedy),
        )),
        (workloads, curve) => workloads
            .or(curve)
            .or_else(|| check_steps(record))
            .or_else(|| check_pings(record)),
    }
}

/// Fewer single requests say nothing of the disk: the first one may wake it up.
const PINGS_MIN: u64 = 10;

/// Single requests whose mean time is known worse than figures are graded by.
fn check_pings(record: &Record) -> Option<Diagnosis> {
    let mut claims = Vec::new();
    let mut seen = Vec::new();
    for (index, m) in real(record) {
        let Some(ping) = &m.figures.ping else {
            continue;
        };
        for (kind, latency) in &ping.latency {
            let mean = &latency.mean;
            let place = format!("figures/ping/latency/{}/mean", kind.as_str());
            let requests = counted(mean.n, kind.as_str());
            let name = workload_name(record, m);
            match mean.relative_half_width() {
                _ if mean.n < PINGS_MIN => {
                    claims.push(format!("of only {requests} in {name}"));
                    let (count, least) = (mean.n as f64, PINGS_MIN as f64);
                    seen.push(evidence(index, &format!("{place}/n"), count, least, "1"));
                }
                Some(width) if width > HALF_WIDTH_MAX => {
                    let percent = format_percent(width);
                    claims.push(format!("of {requests} in {name} to ±{percent}"));
                    let half_width = mean.half_width_95.unwrap_or(0.0);
                    let most = HALF_WIDTH_MAX * mean.value;
                    let place = format!("{place}/half_width_95");
                    seen.push(evidence(index, &place, half_width, most, "ns"));
                }
                _ => {}
            }
        }
    }
    if claims.is_empty() {
        return None;
    }
    Some(Diagnosis::with_remedy(
        Severity::Warning,
        format!(
            "The mean time is only approximate: {}. The next requests may take several times as \
             long.",
            claims.join("; ")
        ),
        seen,
        "Send more requests (--count 100).",
    ))
}

/// The average of the curve. Of an uneven surface `ragged` says that it is.
fn check_curve(record: &Record) -> Option<Diagnosis> {
    let average = &record.surface()?.figures.rate.as_ref()?.average;
    if surface::is_curve_ragged(record) {
        return None;
    }
    let half_width = average.half_width_95?;
    let width = average.relative_half_width();
    let width = width.filter(|width| *width > WIDTH_NOTE)?;
    // A point that is off pulls the interval open more than the average itself.
    // What a thread did not read while it waited for a processor is not the disk's rate.
    let is_starved = record.surface().is_some_and(program::is_starved);
    let worst = match worst_point(record).filter(|_| !is_starved) {
        Some((offset_bytes, expected, rate)) => format!(
            " The point at {} differs most from its neighbours: {} instead of about {}.",
            gigabytes(offset_bytes),
            format_throughput(rate),
            format_throughput(expected)
        ),
        None => String::new(),
    };
    let path = "/results/0/figures/rate/average/half_width_95";
    Some(Diagnosis::with_remedy(
        warning_if(width > HALF_WIDTH_MAX),
        format!(
            "The average of the curve is known only to ±{}.{worst}",
            format_percent(width)
        ),
        [evidence_at(
            path,
            half_width,
            WIDTH_NOTE * average.value,
            "B/s",
        )],
        "Measure the curve again with more points (diskproof curve --points 400) while \
         nothing else uses the disk.",
    ))
}

/// The point that is furthest from what its neighbours suggest: its place, their rate, its own.
fn worst_point(record: &Record) -> Option<(u64, f64, f64)> {
    let points = record.curve().iter();
    let read = points.filter(|p| p.errors == 0 && p.bytes_per_second > 0.0);
    let mut points: Vec<_> = read.collect();
    points.sort_by_key(|p| p.offset_bytes);
    let between = |w: &[&CurvePoint]| {
        let (low, high) = (w[0].bytes_per_second, w[2].bytes_per_second);
        let expected = w[1].bytes_per_second.clamp(low.min(high), low.max(high));
        (w[1].offset_bytes, expected, w[1].bytes_per_second)
    };
    let distance = |p: &(u64, f64, f64)| (p.2 / p.1).ln().abs();
    let off = points.windows(3).map(between);
    largest_by(off.filter(|p| distance(p) > WIDTH_NOTE), distance)
}

/// Steps on many small files that are known worse than figures are graded by. Rounds differ by
/// several percent on a quiet machine already, so that narrower limits would always be passed.
fn check_steps(record: &Record) -> Option<Diagnosis> {
    let steps = &record.files()?.steps;
    let width = |of: &FileStepRow| of.figures.iops.relative_half_width();
    let rough: Vec<(usize, &FileStepRow)> = steps
        .iter()
        .enumerate()
        .filter(|(_, of)| of.data.op.count > 0)
        .filter(|(_, of)| width(of).is_none_or(|width| width > HALF_WIDTH_MAX))
        .collect();
    let (_, worst) = largest_by(&rough, |(_, of)| width(of).unwrap_or(f64::INFINITY))?;
    let names: Vec<String> = rough.iter().map(|(_, of)| of.data.step.name()).collect();
    let scope = format!(
        "{} of {} steps ({})",
        rough.len(),
        steps.len(),
        names.join(", ")
    );
    let name = worst.data.step.name();
    let how_rough = match width(worst) {
        Some(width) => format!("to ±{} in {name}", format_percent(width)),
        None => format!("too short for an interval in {name}"),
    };
    Some(Diagnosis::with_remedy(
        Severity::Warning,
        format!(
            "The rate is only approximate in {scope}: {how_rough}. A choice between filesystems or \
             settings based on it may be wrong."
        ),
        rough.iter().map(|(index, of)| step_evidence(*index, of)),
        "Repeat diskproof files with more rounds (--rounds 10) and more time (--time 2m) \
         while nothing else uses the disk.",
    ))
}

/// The half-width; without one the measured time that gave none.
fn step_evidence(index: usize, of: &FileStepRow) -> Evidence {
    let rate = &of.figures.iops;
    let (place, observed, threshold, unit) = match rate.half_width_95 {
        Some(half_width) => (
            "figures/iops/half_width_95",
            half_width,
            HALF_WIDTH_MAX * rate.value,
            "1/s",
        ),
        None => (
            "data/wall_ns",
            of.data.wall_ns as f64,
            WALL_NS_MIN as f64,
            "ns",
        ),
    };
    evidence_at(
        format!("/results/0/steps/{index}/{place}"),
        observed,
        threshold,
        unit,
    )
}

fn check_workloads(record: &Record) -> Option<Diagnosis> {
    // What counts is the differences between the layers, and each has its own interval.
    if record.plan.layers().is_some() {
        return None;
    }
    let hits: Vec<ImpreciseWorkload> = real(record)
        .filter(|measured| is_result(record, measured.0))
        // A burst that ends is no noise: burst-figure says what it is.
        .filter(|measured| !is_in_burst(record, measured.0))
        .filter_map(hit)
        .collect();
    let worst = largest_by(&hits, |hit| hit.width)?;
    let those = |are: fn(&Row) -> bool| -> Vec<usize> {
        let indices = hits.iter().map(|hit| hit.index);
        indices
            .filter(|index| are(&record.measurements[*index]))
            .collect()
    };
    let sentence = |indices: &[usize], say: &dyn Fn(String) -> String| {
        let scope = || scope(record, indices.iter().copied());
        (!indices.is_empty()).then(|| say(scope()))
    };
    let rough: Vec<&ImpreciseWorkload> = hits
        .iter()
        .filter(|hit| hit.width > WIDTH_NOTE && !is_empty(&record.measurements[hit.index]))
        .collect();
    let (unanswered, unsettled) = (
        those(is_unanswered),
        those(|m| m.figures.settled == Some(false)),
    );
    let claims = [
        sentence(&unanswered, &|scope| {
            let time = format_duration(record.measurements[unanswered[0]].data.wall_ns);
            format!("No operation completed within the measured time of {time} in {scope}.")
        }),
        sentence(&those(is_used_up), &|scope| {
            format!("Nothing was left to measure after the warm-up in {scope}.")
        }),
        rough_claim(record, &rough),
        sentence(&unsettled, &|scope| {
            format!("The rate was still changing at the end of {scope}.")
        }),
        Some(consequence(worst)),
    ];
    let claims: Vec<String> = claims.into_iter().flatten().collect();
    Some(Diagnosis::with_remedy(
        hits.iter().map(|hit| hit.severity).max()?,
        claims.join(" "),
        hits.iter().map(|hit| hit.evidence.clone()),
        remedy(record, worst, &unsettled),
    ))
}

/// Of a search for a depth only the depth that it found is a result.
fn is_result(record: &Record, index: usize) -> bool {
    let search = record.latency_search();
    let found = search.and_then(LatencySearch::found);
    found.is_none_or(|found| found.workload == record.measurements[index].data.workload.name)
}

/// Workloads whose rate is known only roughly, with the least known one.
fn rough_claim(record: &Record, rough: &[&ImpreciseWorkload]) -> Option<String> {
    let roughest = largest_by(rough, |hit| hit.width)?;
    let name = workload_name(record, &record.measurements[roughest.index]);
    let mut width = if roughest.width.is_finite() {
        format!("to ±{}", format_percent(roughest.width))
    } else {
        "too short for an interval".to_owned()
    };
    if rough.len() > 1 {
        width = format!("{width} in {name}");
    }
    let scope = scope(record, rough.iter().map(|hit| hit.index));
    Some(format!("The rate is only approximate in {scope}: {width}."))
}

/// What a reader might decide wrongly.
fn consequence(worst: &ImpreciseWorkload) -> String {
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

fn is_empty(m: &Row) -> bool {
    is_unanswered(m) || is_used_up(m)
}

/// Whether everything that was asked for came only after the measured time.
fn is_unanswered(m: &Row) -> bool {
    has_no_count(m)
        && m.headline_ops()
            .iter()
            .any(|(_, op)| op.figures.latency.max > 0)
}

fn has_no_count(m: &Row) -> bool {
    let mut ops = m.headline_ops().into_iter();
    ops.all(|(_, op)| op.data.count == 0 && op.data.errors.is_empty())
}

/// Whether the warm-up used up all operations or bytes, and left nothing to measure.
fn is_used_up(m: &Row) -> bool {
    let ops = m.headline_ops();
    matches!(m.data.stopped, StopReason::Ops | StopReason::Bytes)
        && !ops.is_empty()
        && has_no_count(m)
        && ops.iter().all(|(_, op)| op.figures.latency.max == 0)
}

fn hit((index, m): Measured) -> Option<ImpreciseWorkload> {
    // The pace of single requests is the user's, not the disk's.
    if m.figures.ping.is_some() {
        return None;
    }
    if let (true, Some((kind, _))) = (is_empty(m), m.headline_ops().first()) {
        let place = format!("data/ops/{}/count", kind.as_str());
        let evidence = evidence(index, &place, 0.0, 1.0, "1");
        return Some(ImpreciseWorkload {
            index,
            severity: Severity::Warning,
            width: f64::INFINITY,
            evidence,
        });
    }
    let ops = m
        .headline_ops()
        .into_iter()
        .filter(|(_, op)| op.data.count > 0);
    let width = |op: OpRow<'_>| judged_width(m, op);
    let (kind, op) = largest_by(ops, |(_, op)| width(*op))?;
    let (severity, evidence) = match (op.figures.iops.half_width_95, width(op)) {
        (Some(half_width), relative) if relative > WIDTH_NOTE => {
            let place = format!("figures/ops/{}/iops/half_width_95", kind.as_str());
            (
                warning_if(relative > HALF_WIDTH_MAX),
                evidence(
                    index,
                    &place,
                    half_width,
                    WIDTH_NOTE * op.figures.iops.value,
                    "1/s",
                ),
            )
        }
        (None, _) => (
            Severity::Warning,
            evidence(
                index,
                "data/wall_ns",
                m.data.wall_ns as f64,
                WALL_NS_MIN as f64,
                "ns",
            ),
        ),
        _ if m.figures.settled == Some(false) => (
            Severity::Note,
            evidence(index, "figures/settled", 0.0, 1.0, "settled"),
        ),
        _ => return None,
    };
    Some(ImpreciseWorkload {
        index,
        severity,
        width: width(op),
        evidence,
    })
}

/// How well the rate of a kind of operation is known, as a share. In a mix each operation draws
/// whether it reads or writes: where that explains the spread of the kind, the rate of the whole
/// mix counts, because the disk is not the cause of the rest.
fn judged_width(m: &Row, op: OpRow<'_>) -> f64 {
    let own = op
        .figures
        .iops
        .relative_half_width()
        .unwrap_or(f64::INFINITY);
    let ops = m.headline_ops();
    let all: u64 = ops.iter().map(|(_, op)| op.data.count).sum();
    let is_mix = ops.len() > 1 && m.data.workload.streams.is_mix();
    if !is_mix || op.data.count == 0 || own.is_infinite() {
        return own;
    }
    let series = headline_series(m);
    let total =
        series.map(|series| estimate::rate_after(&series, m.data.wall_ns, Settling::of(m)).ops);
    let Some(total) = total.and_then(|total| total.relative_half_width()) else {
        return own;
    };
    // Relative half-width of a binomial count.
    let share = op.data.count as f64 / all as f64;
    let split = 1.96 * ((1.0 - share) / op.data.count as f64).sqrt();
    if own <= (total * total + (SPLIT_FACTOR * split).powi(2)).sqrt() {
        total
    } else {
        own
    }
}

/// An interval of a few batches is itself known to about this factor.
const SPLIT_FACTOR: f64 = 1.5;

/// Time needed grows with the square of the precision wanted.
fn remedy(record: &Record, worst: &ImpreciseWorkload, unsettled: &[usize]) -> String {
    let m = &record.measurements[worst.index];
    // The short strokes of a survey have a time that no flag changes.
    let is_short_stroke = is_short_stroke(&m.data.workload.name);
    let how = match record.latency_search() {
        _ if is_short_stroke => "diskproof run --rw randread --span 0-N% --time",
        Some(_) => "--latency-window",
        None => "--time",
    };
    if let Some(share) = program::large_share(record) {
        return format!(
            "Measure when the hypervisor does not take processors away: it gave {} of the CPU time \
             to other machines, which makes any rate uneven.",
            format_percent(share)
        );
    }
    // Where the program itself used all processors, `cpu-limited` reports it.
    if program::is_kept_waiting(m) && !program::is_cpu_limited(record, m) && worst.width.is_finite()
    {
        return format!(
            "Measure when the machine is quieter, or raise the program's priority (chrt -f 10 \
             diskproof … as root): in {} it had no processor for {} of the time, which makes any \
             rate uneven.",
            workload_name(record, m),
            format_percent(m.data.starved.share)
        );
    }
    if !unsettled.is_empty() {
        return format!(
            "Measure longer ({how}) until the rate has settled. A cache or burst credit may have \
             been exhausted, or other programs used the disk."
        );
    }
    if is_used_up(m) {
        return "Use a shorter warm-up (--warmup 0s) or a larger limit (--ops, --bytes), because \
                the operations of the warm-up count."
            .to_owned();
    }
    // In turns, and with a limit, the time is that of all workloads together.
    let has_own_time = record.plan.order().is_as_given() && record.plan.time_limit_ns.is_none();
    let longer = if is_short_stroke || has_own_time {
        format!("{how} 10s")
    } else {
        how.to_owned()
    };
    if is_unanswered(m) {
        return format!(
            "Measure longer ({longer}). If an operation takes that long, read dmesg: the disk may \
             be failing or hung."
        );
    }
    if !worst.width.is_finite() {
        return format!("Measure longer ({longer}).");
    }
    remedy_of_width(record, m, worst.width, how)
}

/// Where the interval is known: what makes it narrower.
fn remedy_of_width(record: &Record, m: &Row, width: f64, how: &str) -> String {
    let of_runs = m.run_to_run.map_or(0.0, |runs| runs.relative_half_width());
    if of_runs > OF_RUNS * width {
        return "Compare several runs per side, because runs of this plan differ that much. A \
                longer measurement hardly helps."
            .to_owned();
    }
    let needed_ns = m.data.wall_ns as f64 * (width / WIDTH_NOTE).powi(2);
    if needed_ns > SUGGESTED_NS_MAX {
        return "Find out why the rate varies (other programs, the disk's own housekeeping). A \
                longer measurement hardly helps."
            .to_owned();
    }
    let needed = format_duration(needed_ns as u64);
    let had = format_duration(m.data.wall_ns);
    format!(
        "Measure longer ({how}): a precision of ±5 % for {} takes about {needed} instead of {had}.",
        workload_name(record, m)
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

    pub(super) const EXAMPLES: Examples = Examples::of(fires, fixture::record);

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
        states(&check_imprecise(&record).unwrap().remedy, &["(--time)"]);
        for measurement in &mut record.measurements {
            measurement.data.workload.name = short_stroke_name(50.0);
        }
        let remedy = check_imprecise(&record).unwrap().remedy;
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
            states(&check_imprecise(&record).unwrap().remedy, &[option]);
        }
    }

    #[test]
    fn rough_short_and_drifting_figures_are_reported_together() {
        let finding = check_imprecise(&fires()).unwrap();
        assert_eq!(finding.evidence.len(), 3);
        states(
            &finding.claim,
            &["random-read-d1", "1 of 8 workloads (sequential-write)"],
        );
    }

    #[test]
    fn a_rough_figure_says_how_long_it_takes() {
        let finding = check_imprecise(&fixture::faulty("random-read-d32", stutter)).unwrap();
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
        let remedy = check_imprecise(&record).unwrap().remedy;
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
        let finding = check_imprecise(&fixture::faulty("random-read-d32", hung)).unwrap();
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
        let finding = check_imprecise(&fixture::faulty("random-read-d32", used_up)).unwrap();
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
            check_imprecise(&surveyed::judge(run))
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
        assert_eq!(check_imprecise(&surveyed::record()), None);
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
        assert_eq!(check_imprecise(&even), None);
        let uneven = mix(|i| if (i / 10 * 7919) % 10 < 3 { 0 } else { 10 });
        states(&check_imprecise(&uneven).unwrap().claim, &["mixed-random"]);
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
        assert_eq!(check_imprecise(&record(&[2000, 2020, 1980])), None);
        let uneven = record(&[1000, 2000, 3000]);
        let finding = check_imprecise(&uneven).unwrap();
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
        assert_eq!(check_imprecise(&nothing), None);
    }
}
