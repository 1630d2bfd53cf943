//! Makes the trend of a target: the figures of its saved runs in the order of time, each compared
//! with the median of the runs before it. It also judges a trend by a condition of the user.

use crate::compare::{Limit, has_same_conditions};
use crate::estimate::{mean, student, variance};
use crate::expect::{NamedFigure, TargetFigure, named_figures};
use crate::shape::median;
use crate::waiting;
use diskproof_model::figure::{Named, Part, named};
use diskproof_model::postgres::subject_of_load;
use diskproof_model::record::Record;
use diskproof_model::saved::{Headline, SavedDisk, SavedRun};
use diskproof_model::trend::{Trend, TrendChange, TrendPoint};
use jiff::Timestamp;
use std::cmp::Reverse;
use std::rc::Rc;

/// A run is compared with at most this many runs before it, the latest ones. More would hide a
/// change behind runs from long ago. Chosen, not measured.
const EARLIER_RUNS_MAX: usize = 10;
/// Fewer earlier runs do not show by how much runs differ.
const EARLIER_RUNS_MIN: usize = 3;

/// The figures of the newest run that has some, on each target, over all runs of its verb on its
/// targets that measured them under the same conditions. `runs` may have any order. Partial runs do
/// not count, nor do runs of another measuring method, on another host, or on another disk at the
/// same path.
///
/// The short form of a run does not contain how it measured, so `load` returns the record of a run;
/// `None` where it cannot be read. Such a run has no points.
pub fn trends(runs: &[SavedRun], mut load: impl FnMut(&SavedRun) -> Option<Record>) -> Vec<Trend> {
    let runs = complete_runs(runs);
    // An acceptance test has none, nor has a run whose requests all failed.
    let Some(newest) = runs.iter().copied().find(|run| !run.figures.is_empty()) else {
        return Vec::new();
    };
    let newest_record = load(newest);
    let mut trends = Vec::new();
    for figure in &newest.figures {
        trends.push(Trend {
            subject: figure.workload.clone(),
            operation: figure.operation.clone(),
            target: newest.target_of(figure).map(str::to_owned),
            metric: headline_metric(figure).to_owned(),
            unit: figure.unit.clone(),
            points: vec![headline_point(newest, figure, newest_record.as_ref())],
            newest_without_figure: None,
        });
    }
    for run in comparable_runs(&runs, newest) {
        if run.run_id == newest.run_id {
            continue;
        }
        let (Some(newest_record), Some(record)) = (&newest_record, load(run)) else {
            continue;
        };
        for (figure, trend) in newest.figures.iter().zip(&mut trends) {
            let target = trend.target.as_deref();
            let own = run.figures.iter().find(|own| {
                is_same_figure(own, figure) && target.is_some() && run.target_of(own) == target
            });
            if let Some(own) = own
                && is_measured_alike(figure, newest_record, &record)
            {
                trend.points.push(headline_point(run, own, Some(&record)));
            }
        }
    }
    for trend in &mut trends {
        trend.points.reverse();
        add_changes(&mut trend.points);
    }
    trends
}

/// Returns `true` if two runs measured the workload of this figure under the same conditions, or if
/// no condition can name it.
fn is_measured_alike(figure: &Headline, newest: &Record, earlier: &Record) -> bool {
    let metric = match figure.workload.as_str() {
        "curve" => "average",
        _ => headline_metric(figure),
    };
    match named(&format!("{}.{metric}", figure.workload)) {
        Some(named) => has_same_conditions(newest, earlier, &named),
        None => true,
    }
}

/// The figure that a condition names on each target, over the newest run that measured for it and
/// up to ten earlier runs of the same verb on the same targets. They must have measured it under
/// the same conditions: with another block size, depth or span a figure differs on the same disk.
/// Empty if no run has its workload or survey.
///
/// Runs that say nothing of their disks do not count, such as writes into the page cache.
///
/// The newest run decides, also where it has no figure: the slower a disk becomes, the fewer
/// operations a run has for a percentile. One that ended early decides nothing, since a disk that
/// stops answering ends its runs so.
///
/// The short form of a run has no latencies of workloads, so `load` returns the record of a run;
/// `None` where it cannot be read.
pub fn condition_trends(
    named: &Named<'_>,
    runs: &[SavedRun],
    mut load: impl FnMut(&SavedRun) -> Option<Record>,
) -> Vec<Trend> {
    let complete: Vec<&SavedRun> = complete_runs(runs)
        .into_iter()
        .filter(|run| run.has_measured())
        .collect();
    let newest = complete
        .iter()
        .filter(|run| may_have(run, named))
        .take(EARLIER_RUNS_MAX)
        .find(|run| surely_has(run, named) || may_plan(load(run).as_ref(), named));
    let Some(newest) = newest else {
        return Vec::from_iter(trend_without_complete_run(named, runs, load));
    };
    let later_partial = later_partial_runs(runs, newest)
        .into_iter()
        .find(|run| surely_has(run, named) || may_plan(load(run).as_ref(), named))
        .map(|run| run.run_id.clone());
    let mut targets: Vec<TargetTrend> = newest
        .targets
        .iter()
        .map(|path| TargetTrend::new(path, later_partial.clone()))
        .collect();
    for run in comparable_runs(&complete, newest) {
        if targets.iter().all(TargetTrend::is_full) {
            break;
        }
        let is_judged = targets.iter().any(TargetTrend::is_to_be_judged);
        match run_figures(named, run, is_judged, &mut load) {
            RunFigures::Unrelated => {}
            RunFigures::Missing => {
                for target in &mut targets {
                    target.add_missing(run);
                }
            }
            RunFigures::Measured(record, figures) => {
                for (index, target) in targets.iter_mut().enumerate() {
                    match figures.iter().find(|measured| measured.target == index) {
                        Some(measured) => {
                            target.add(named, run, &record, measured.figure.clone());
                        }
                        None => target.is_left_out = true,
                    }
                }
            }
        }
    }
    targets
        .into_iter()
        .filter(TargetTrend::is_of_figure)
        .map(|target| target.finish(named))
        .collect()
}

/// The trend of a figure that no complete run has, although a run ended early in its workload, or
/// planned it and had no request that succeeded; `None` without such a run.
fn trend_without_complete_run(
    named: &Named<'_>,
    runs: &[SavedRun],
    mut load: impl FnMut(&SavedRun) -> Option<Record>,
) -> Option<Trend> {
    let mut newest_first: Vec<&SavedRun> = runs.iter().collect();
    newest_first.sort_by_key(|run| Reverse(start_time(run)));
    let begun = newest_first.iter().find(|run| surely_has(run, named));
    let run = match begun {
        Some(run) => run,
        // A mistyped name must not open every record of a history.
        None => newest_first
            .iter()
            .take(EARLIER_RUNS_MAX)
            .find(|run| match load(run) {
                Some(record) => plans(&record, named),
                None => false,
            })?,
    };
    Some(condition_trend(
        named,
        None,
        Vec::new(),
        Some(run.run_id.clone()),
    ))
}

/// The trend of the figure that a condition names.
fn condition_trend(
    named: &Named<'_>,
    target: Option<String>,
    points: Vec<TrendPoint>,
    newest_without_figure: Option<String>,
) -> Trend {
    let operation = match named.op {
        Some(op) => op.as_str().to_owned(),
        None => String::new(),
    };
    Trend {
        subject: named.subject.to_owned(),
        operation,
        target,
        metric: named.metric.threshold.to_owned(),
        unit: named.metric.unit.to_owned(),
        points,
        newest_without_figure,
    }
}

/// The figure that a condition names on one target, while its runs are looked through, the newest
/// first.
struct TargetTrend {
    /// The path of the target.
    path: String,
    points: Vec<TrendPoint>,
    newest_without_figure: Option<String>,
    /// A run measured others of its targets for the figure, and not this one. So a run before it
    /// without any figures does not lack that of this target.
    is_left_out: bool,
    /// The record of the first point.
    newest_record: Option<Rc<Record>>,
}

impl TargetTrend {
    /// A target without points; `later_partial` is a later run that ended early.
    fn new(path: &str, later_partial: Option<String>) -> Self {
        Self {
            path: path.to_owned(),
            points: Vec::new(),
            newest_without_figure: later_partial,
            is_left_out: false,
            newest_record: None,
        }
    }

    /// Returns `true` if the target was measured for the figure, or was to be. One that the runs
    /// left out is not missed by a later run that ended early either.
    fn is_of_figure(&self) -> bool {
        !self.points.is_empty() || (self.newest_without_figure.is_some() && !self.is_left_out)
    }

    /// The newest run and those that it is compared with are there.
    fn is_full(&self) -> bool {
        self.points.len() > EARLIER_RUNS_MAX
    }

    /// The newest run that planned the workload is judged, also where it has no figure.
    fn is_to_be_judged(&self) -> bool {
        self.points.is_empty() && self.newest_without_figure.is_none() && !self.is_left_out
    }

    /// Adds a run that has no figure, although it planned one or may have.
    fn add_missing(&mut self, run: &SavedRun) {
        if self.is_to_be_judged() {
            self.newest_without_figure = Some(run.run_id.clone());
        }
    }

    /// Adds what a run measured for the figure.
    fn add(
        &mut self,
        named: &Named<'_>,
        run: &SavedRun,
        record: &Rc<Record>,
        figure: Option<NamedFigure>,
    ) {
        if self.is_full() {
            return;
        }
        let Some(figure) = figure else {
            return self.add_missing(run);
        };
        if let Some(newest_record) = &self.newest_record
            && !has_same_conditions(newest_record, record, named)
        {
            return;
        }
        self.newest_record.get_or_insert_with(|| Rc::clone(record));
        self.points.push(named_point(run, figure));
    }

    /// The trend, the oldest run first.
    fn finish(self, named: &Named<'_>) -> Trend {
        let mut points = self.points;
        points.reverse();
        add_changes(&mut points);
        condition_trend(named, Some(self.path), points, self.newest_without_figure)
    }
}

/// The figure that a condition names, in one complete run.
enum RunFigures {
    /// The run did not measure for the figure, or lacks it and is not the one to judge.
    Unrelated,
    /// The run to judge has no figure, although it planned one or may have.
    Missing,
    /// The record of the run, and what it measured for the figure on each target.
    Measured(Rc<Record>, Vec<TargetFigure>),
}

/// Looks the figure up in the record of a run, which `load` reads only where that may matter.
fn run_figures(
    named: &Named<'_>,
    run: &SavedRun,
    is_judged: bool,
    mut load: impl FnMut(&SavedRun) -> Option<Record>,
) -> RunFigures {
    // A run whose requests all failed has no figures, although it has the workload.
    let has_subject = may_have(run, named);
    if !has_subject && !is_judged {
        return RunFigures::Unrelated;
    }
    let record = load(run);
    let may_be_planned = surely_has(run, named) || may_plan(record.as_ref(), named);
    if !may_be_planned {
        return RunFigures::Unrelated;
    }
    if let Some(record) = record {
        let figures = named_figures(&record, named);
        if !figures.is_empty() {
            return RunFigures::Measured(Rc::new(record), figures);
        }
    }
    if is_judged {
        RunFigures::Missing
    } else {
        RunFigures::Unrelated
    }
}

/// A figure of a run that was named, as a point of its trend.
fn named_point(run: &SavedRun, figure: NamedFigure) -> TrendPoint {
    TrendPoint {
        run_id: run.run_id.clone(),
        started: run.started.clone(),
        value: figure.estimate.value,
        half_width_95: figure.estimate.half_width_95,
        change: None,
        objection: figure.objection,
        without_waits: figure.without_waits,
    }
}

/// The start of a run. A record of another program may have it with an offset, so that the text
/// does not sort. One that is no time counts as long ago.
fn start_time(run: &SavedRun) -> Timestamp {
    run.started.parse().unwrap_or(Timestamp::MIN)
}

/// The complete runs, the newest first.
fn complete_runs(runs: &[SavedRun]) -> Vec<&SavedRun> {
    let mut complete: Vec<&SavedRun> = runs.iter().filter(|run| !run.partial).collect();
    complete.sort_by_key(|run| Reverse(start_time(run)));
    complete
}

/// The runs of the same verb on the same targets that ended early and began after this one, the
/// newest first.
fn later_partial_runs<'a>(runs: &'a [SavedRun], complete: &SavedRun) -> Vec<&'a SavedRun> {
    let mut later: Vec<&SavedRun> = runs
        .iter()
        .filter(|run| {
            run.partial && start_time(run) > start_time(complete) && is_comparable(run, complete)
        })
        .collect();
    later.sort_by_key(|run| Reverse(start_time(run)));
    later
}

/// The runs that can be compared with this one.
fn comparable_runs<'a>(runs: &[&'a SavedRun], newest: &SavedRun) -> Vec<&'a SavedRun> {
    let mut comparable = runs.to_vec();
    comparable.retain(|run| is_comparable(run, newest));
    comparable
}

/// True if both runs measured the same disks of the same machine by the same verb and method.
fn is_comparable(run: &SavedRun, newest: &SavedRun) -> bool {
    (run.method, &run.verb) == (newest.method, &newest.verb)
        && run.is_of_machine_of(newest)
        && run.targets == newest.targets
        && disk_names(run).eq(disk_names(newest))
}

/// The disks of a run by serial number where they have one: a kernel name may change from boot to
/// boot.
fn disk_names(run: &SavedRun) -> impl Iterator<Item = &str> {
    run.disks.iter().map(SavedDisk::best_name)
}

/// Returns `true` if the record of a run may have the named figure, and is worth reading. The short
/// form names each workload and survey, but not the burst of a curve, nor INSERTs, nor the rate of
/// a search that promises none.
fn may_have(run: &SavedRun, named: &Named<'_>) -> bool {
    let subject = match named.part {
        Part::Load => return run.verb == "load",
        Part::Burst => "curve",
        Part::Workload
        | Part::FileStep
        | Part::Curve
        | Part::Access(_)
        | Part::Observed
        | Part::Other => named.subject,
    };
    may_have_inserts(run, named) || run.figures.iter().any(|figure| figure.workload == subject)
}

/// Returns `true` if a condition may name INSERTs of a run: no short form has them, which are no
/// workloads. A workload of the user may have such a name, too.
fn may_have_inserts(run: &SavedRun, named: &Named<'_>) -> bool {
    run.verb == "commit" && names_inserts(named.subject)
}

/// Returns `true` if a run measured for the figure that a condition names, by its short form alone.
fn surely_has(run: &SavedRun, named: &Named<'_>) -> bool {
    may_have(run, named) && !may_have_inserts(run, named)
}

/// Returns `true` if the plan of a run has the workload that a condition names, or may have it: a
/// record that cannot be read may.
fn may_plan(record: Option<&Record>, named: &Named<'_>) -> bool {
    match record {
        Some(record) => plans(record, named),
        None => true,
    }
}

/// Returns `true` if the plan of a run has the workload, or the INSERTs, that a condition names.
fn plans(record: &Record, named: &Named<'_>) -> bool {
    let mut workloads = record.plan.workloads().iter();
    if workloads.any(|workload| workload.name == named.subject) {
        return true;
    }
    match record.plan.inserts() {
        Some(inserts) => {
            let mut loads = inserts.server.loads.iter();
            loads.any(|load| load.subject() == named.subject)
        }
        None => false,
    }
}

/// Returns `true` if a condition names INSERTs of a temporary server.
fn names_inserts(subject: &str) -> bool {
    subject.starts_with(&subject_of_load(""))
}

/// The name of a headline figure in conditions.
fn headline_metric(figure: &Headline) -> &'static str {
    // The answer of a search is of no kind of operation; a workload may have the same name.
    if figure.workload == "load" && figure.operation.is_empty() {
        return "rate";
    }
    match figure.unit.as_str() {
        "B/s" => "throughput",
        "ns" => "mean",
        _ => "iops",
    }
}

/// The best figure that the workload of a headline may have had without its waits for processors;
/// `None` where it did not wait.
fn headline_without_waits(run: &SavedRun, figure: &Headline, record: &Record) -> Option<f64> {
    let name = format!("{}.{}", figure.workload, headline_metric(figure));
    let metric = named(&name)?.metric;
    let target = run.target_of(figure)?;
    let index = record.measurements.iter().position(|row| {
        let is_target = match record.targets.get(row.data.target) {
            Some(measured) => measured.path == target,
            None => false,
        };
        is_target && row.data.workload.name == figure.workload
    })?;
    waiting::figure_without_waits(record, index, metric, [figure.value; 2])
}

/// A headline of a run, as a point of its trend; `record` is that of the run, where it can be read.
fn headline_point(run: &SavedRun, figure: &Headline, record: Option<&Record>) -> TrendPoint {
    let without_waits = match record {
        Some(record) => headline_without_waits(run, figure, record),
        None => None,
    };
    TrendPoint {
        run_id: run.run_id.clone(),
        started: run.started.clone(),
        value: figure.value,
        half_width_95: figure.half_width_95,
        change: None,
        objection: figure.objection.clone(),
        without_waits,
    }
}

fn is_same_figure(one: &Headline, other: &Headline) -> bool {
    one.workload == other.workload && one.operation == other.operation && one.unit == other.unit
}

/// Compares each point with those before it; the oldest comes first. A figure that is not the
/// disk's is shown, but neither compared nor compared with. No figure is compared with one that
/// waits for processors hid: a disk that became slower passed for one that is as fast as in such a
/// night.
fn add_changes(points: &mut [TrendPoint]) {
    for index in 0..points.len() {
        if points[index].objection.is_none() {
            let before = values_to_compare_with(&points[..index]);
            points[index].change = change_from(latest_values(&before), points[index].value);
        }
    }
}

/// The values of points that a later one is compared with, the oldest first.
fn values_to_compare_with(points: &[TrendPoint]) -> Vec<f64> {
    let mut values = Vec::new();
    for point in points {
        if point.is_measure() {
            values.push(point.value);
        }
    }
    values
}

/// The last of these values, at most [`EARLIER_RUNS_MAX`].
fn latest_values(values: &[f64]) -> &[f64] {
    &values[values.len().saturating_sub(EARLIER_RUNS_MAX)..]
}

/// The change of a value from those before it, all above 0; `None` where there are none.
fn change_from(before: &[f64], value: f64) -> Option<TrendChange> {
    if before.is_empty() {
        return None;
    }
    let is_beyond_chance = usual_spread(before).map(|usual| {
        let distance = value.ln() - usual.log_mean;
        distance.abs() > usual.log_half_width
    });
    Some(TrendChange {
        share: value / median(before) - 1.0,
        is_beyond_chance,
    })
}

/// The interval that holds the next of some values with a probability of 95 %. Runs differ by
/// factors, so that it is one of logarithms.
struct UsualSpread {
    log_mean: f64,
    log_half_width: f64,
}

/// The usual spread of these values; `None` of fewer than [`EARLIER_RUNS_MIN`].
fn usual_spread(values: &[f64]) -> Option<UsualSpread> {
    if values.len() < EARLIER_RUNS_MIN {
        return None;
    }
    let count = values.len() as f64;
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let error = (variance(&logs) * (1.0 + 1.0 / count)).sqrt();
    Some(UsualSpread {
        log_mean: mean(&logs),
        log_half_width: student::multiple_95(count - 1.0) * error,
    })
}

/// Returns `true` if a condition names the figure of a trend.
pub fn is_named(trend: &Trend, limit: &Limit) -> bool {
    let (subject, metric) = (&trend.subject, &trend.metric);
    limit.metric == format!("{subject}.{metric}")
        || limit.metric == format!("{subject}.{}.{metric}", trend.operation)
}

/// The answer of a trend to a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrendOutcome {
    /// The change is beyond the threshold, and beyond chance.
    Holds,
    /// The change is beyond the threshold, but chance explains it, or too few runs came before; or
    /// the newest run has no figure.
    Undecided,
    /// The change is short of the threshold by less than runs differ by chance, or by an unknown
    /// distance: too few runs came before.
    ShortOfThreshold,
    /// The change is short of the threshold by more than runs differ by chance.
    DoesNotHold,
}

/// Judges the newest run of a trend by a condition such as `commit-fdatasync.iops<-10%`.
pub fn outcome_of_trend(limit: &Limit, trend: &Trend) -> TrendOutcome {
    if trend.newest_without_figure.is_some() {
        return TrendOutcome::Undecided;
    }
    let Some((newest, earlier)) = trend.points.split_last() else {
        return TrendOutcome::Undecided;
    };
    let Some(change) = newest.change else {
        return TrendOutcome::Undecided;
    };
    if limit.relation.holds(change.share, limit.change) {
        // As a threshold that waits for processors may have missed, it is undecided.
        if let Some(best) = newest.without_waits
            && !limit
                .relation
                .holds(share_from(change, newest.value, best), limit.change)
        {
            return TrendOutcome::Undecided;
        }
        return if change.is_beyond_chance == Some(true) {
            TrendOutcome::Holds
        } else {
            TrendOutcome::Undecided
        };
    }
    let Some(usual) = usual_spread(latest_values(&values_to_compare_with(earlier))) else {
        return TrendOutcome::ShortOfThreshold;
    };
    let factor = usual.log_half_width.exp();
    let lowest = (1.0 + change.share) / factor - 1.0;
    let highest = (1.0 + change.share) * factor - 1.0;
    let could_hold =
        limit.relation.holds(lowest, limit.change) || limit.relation.holds(highest, limit.change);
    if could_hold {
        TrendOutcome::ShortOfThreshold
    } else {
        TrendOutcome::DoesNotHold
    }
}

/// The change of another value from the median that `change` is from.
fn share_from(change: TrendChange, value: f64, other: f64) -> f64 {
    (1.0 + change.share) * other / value - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::inserted::inserted;
    use crate::fixture::searched::answer;
    use diskproof_model::measurement::{DeviceUse, Hang, OpKind, OpMeasurement, Starvation};
    use diskproof_model::plan::{CachePolicy, Workload};
    use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord, RatePlan};
    use diskproof_model::record::TaskResult;
    use diskproof_model::task::{Decide, Task, Workloads};

    fn run(day: u32, values: &[(&str, f64)]) -> SavedRun {
        let headline = |(name, value): &(&str, f64)| Headline {
            workload: (*name).to_owned(),
            operation: "commit".to_owned(),
            target: None,
            value: *value,
            half_width_95: None,
            unit: "1/s".to_owned(),
            objection: None,
        };
        SavedRun {
            run_id: format!("{day:032}"),
            started: format!("2026-11-{day:02}T03:00:00Z"),
            verb: "check".to_owned(),
            targets: vec!["/data".to_owned()],
            disks: vec![SavedDisk {
                name: format!("sd{day}"),
                model: None,
                serial: Some("S1".to_owned()),
            }],
            host: "db1".to_owned(),
            label: None,
            note: None,
            partial: false,
            undecided: false,
            only_observed: false,
            machine: None,
            imported: false,
            command: None,
            method: 9,
            worst: None,
            findings: Vec::new(),
            figures: values.iter().map(headline).collect(),
        }
    }

    fn of(values: &[f64]) -> Vec<Trend> {
        let days = values.iter().zip(1..);
        let mut runs: Vec<SavedRun> = days.map(|(v, day)| run(day, &[("c", *v)])).collect();
        // Newest first, as a history lists them.
        runs.reverse();
        trends(&runs, any_record)
    }

    /// A record that says nothing of the figures of its run.
    fn any_record(_run: &SavedRun) -> Option<Record> {
        Some(fixture::record())
    }

    fn outcome_of(condition: &str, values: &[f64]) -> TrendOutcome {
        let trends = of(values);
        let limit: Limit = condition.parse().unwrap();
        assert!(is_named(&trends[0], &limit), "{condition}");
        outcome_of_trend(&limit, &trends[0])
    }

    #[test]
    fn change_is_that_from_the_median_of_ten_runs_before() {
        let mut values = vec![1.0; 5];
        values.extend([100.0; 10]);
        values.push(80.0);
        let trend = &of(&values)[0];
        assert_eq!(trend.points.len(), 16);
        assert_eq!(trend.points[0].change, None);
        let share = trend.points[15].change.unwrap().share;
        assert!((share + 0.2).abs() < 1e-12);
        let even = of(&[10.0, 20.0, 30.0])[0].points[2].change.unwrap().share;
        assert!((even - 1.0).abs() < 1e-12);
    }

    #[test]
    fn condition_fails_only_beyond_chance() {
        use TrendOutcome::{DoesNotHold, Holds, ShortOfThreshold, Undecided};
        let steady = [100.0, 101.0, 99.0, 100.5, 80.0];
        let noisy = [100.0, 140.0, 70.0, 110.0, 80.0];
        assert_eq!(outcome_of("c.iops<-10%", &steady), Holds);
        assert_eq!(outcome_of("c.commit.iops<-10%", &steady), Holds);
        assert_eq!(outcome_of("c.iops<-30%", &steady), DoesNotHold);
        assert_eq!(outcome_of("c.iops<-10%", &noisy), Undecided);
        assert_eq!(outcome_of("c.iops<-10%", &steady[3..]), Undecided);
        assert_eq!(outcome_of("c.iops<-10%", &[100.0]), Undecided);
        // Short of the threshold by less than runs differ, or too few runs show how they differ.
        assert_eq!(outcome_of("c.iops<-30%", &noisy), ShortOfThreshold);
        assert_eq!(outcome_of("c.iops<-30%", &steady[3..]), ShortOfThreshold);
        assert_eq!(outcome_of("c.iops>5%", &noisy), ShortOfThreshold);
        assert_eq!(outcome_of("c.iops>5%", &steady), DoesNotHold);
        assert!(!is_named(
            &of(&steady)[0],
            &"c.throughput<-10%".parse().unwrap()
        ));
    }

    /// A record of a run, with the rate of its commits.
    fn record(rate: f64) -> Record {
        let mut record = fixture::record();
        let commit = fixture::measured(&mut record, "commit-fdatasync");
        let op = commit.figures.ops.get_mut(&OpKind::Commit).unwrap();
        op.iops.value = rate;
        record
    }

    /// The trend of a run with one target.
    fn only(trends: Vec<Trend>) -> Trend {
        let [trend]: [Trend; 1] = trends.try_into().unwrap();
        trend
    }

    /// The trend of the only target.
    fn trend_of(condition: &str, runs: &[SavedRun]) -> Option<Trend> {
        let limit: Limit = condition.parse().unwrap();
        let named = named(&limit.metric).unwrap();
        let trends = condition_trends(&named, runs, |run| {
            let figure = run.figures.iter().find(|f| f.workload == named.subject)?;
            Some(record(figure.value))
        });
        if trends.is_empty() {
            None
        } else {
            Some(only(trends))
        }
    }

    #[test]
    fn condition_is_about_the_newest_run_that_has_its_figure() {
        let name = "commit-fdatasync";
        let rates = [100.0, 101.0, 99.0, 100.5, 80.0];
        let mut runs: Vec<SavedRun> = rates
            .iter()
            .zip(1..)
            .map(|(rate, day)| run(day, &[(name, *rate)]))
            .collect();
        let mut ping = run(6, &[("ping", 5.0)]);
        ping.verb = "ping".to_owned();
        runs.push(ping);
        let trend = trend_of("commit-fdatasync.iops<-10%", &runs).unwrap();
        assert_eq!(trend.points.len(), 5);
        assert_eq!(trend.points[4].run_id, runs[4].run_id);
        let limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::Holds);
        // A ping has no such figure, and nothing has this one.
        assert_eq!(trend_of("random.iops<-10%", &runs), None);
        // A later run that ended early decides nothing; that of another verb does not matter.
        for (verb, outcome) in [
            ("check", TrendOutcome::Undecided),
            ("commit", TrendOutcome::Holds),
        ] {
            let mut partial = run(7, &[(name, 50.0)]);
            partial.partial = true;
            partial.verb = verb.to_owned();
            let with_partial = [runs.clone(), vec![partial]].concat();
            let trend = trend_of("commit-fdatasync.iops<-10%", &with_partial).unwrap();
            assert_eq!(trend.points.len(), 5);
            assert_eq!(outcome_of_trend(&limit, &trend), outcome, "{verb}");
        }
    }

    /// The trend of nights with these rates of commits, in which the program waited for processors
    /// for these shares of the time.
    fn trend_of_nights(nights: &[(f64, f64)]) -> Trend {
        let name = "commit-fdatasync";
        let runs: Vec<SavedRun> = (1..)
            .zip(nights)
            .map(|(day, (rate, _))| run(day, &[(name, *rate)]))
            .collect();
        let named = named("commit-fdatasync.iops").unwrap();
        only(condition_trends(&named, &runs, |run| {
            let night = runs.iter().position(|one| one.run_id == run.run_id)?;
            let (rate, share) = nights[night];
            let mut record = fixture::faulty(name, |measurement| {
                measurement.starved = Starvation {
                    share,
                    mean_wait_ns: 50_000.0,
                };
            });
            let commit = fixture::measured(&mut record, name);
            let op = commit.figures.ops.get_mut(&OpKind::Commit).unwrap();
            op.iops.value = rate;
            Some(record)
        }))
    }

    #[test]
    fn night_without_processors_neither_decides_nor_hides_a_drop() {
        use TrendOutcome::{DoesNotHold, Holds, Undecided};
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let quiet = [(100.0, 0.0), (101.0, 0.0), (99.0, 0.0), (100.5, 0.0)];
        for (newest, outcome) in [
            ((50.0, 0.0), Holds),
            ((50.0, 0.6), Undecided),
            // A little waiting does not halve a rate.
            ((50.0, 0.1), Holds),
            ((85.0, 0.1), Undecided),
            // What is fast enough with waits is so without them.
            ((100.0, 0.6), DoesNotHold),
        ] {
            let trend = trend_of_nights(&[&quiet[..], &[newest]].concat());
            assert_eq!(outcome_of_trend(&limit, &trend), outcome, "{newest:?}");
        }
        // Most nights before had no processors; the disk is slower than in the others.
        let starved = [
            (30.0, 0.6),
            (45.0, 0.7),
            (25.0, 0.8),
            (60.0, 0.5),
            (20.0, 0.7),
        ];
        let trend = trend_of_nights(&[&quiet[..], &starved, &[(60.0, 0.0)]].concat());
        assert_eq!(outcome_of_trend(&limit, &trend), Holds);
        let hidden = trend.points.iter().filter(|point| !point.is_measure());
        assert_eq!(hidden.count(), starved.len());
        // A machine that never has a free processor has no trend.
        let trend = trend_of_nights(&[&starved[..], &[(10.0, 0.6)]].concat());
        assert_eq!(outcome_of_trend(&limit, &trend), Undecided);
    }

    /// The newest run has commits of another size, as one earlier run; the others do not count.
    #[test]
    fn condition_compares_runs_with_the_same_conditions() {
        let name = "commit-fdatasync";
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let named = named(&limit.metric).unwrap();
        let runs: Vec<SavedRun> = (1..=6).map(|day| run(day, &[(name, 100.0)])).collect();
        let trend = only(condition_trends(&named, &runs, |run| {
            let mut record = record(100.0);
            if [&runs[1].run_id, &runs[5].run_id].contains(&&run.run_id) {
                let commit = fixture::measured(&mut record, name);
                commit.data.workload.block_bytes *= 8;
                let op = commit.figures.ops.get_mut(&OpKind::Commit).unwrap();
                op.iops.value = 50.0;
            }
            Some(record)
        }));
        let values: Vec<f64> = trend.points.iter().map(|point| point.value).collect();
        assert_eq!(values, [50.0, 50.0]);
        assert_eq!(
            outcome_of_trend(&limit, &trend),
            TrendOutcome::ShortOfThreshold
        );
    }

    /// The runs in the list of six, of which the third and the newest had larger blocks, and of
    /// which the record of one cannot be read.
    fn listed_runs(runs: &[SavedRun], unreadable: usize) -> Vec<String> {
        let trends = trends(runs, |run| {
            if run.run_id == runs[unreadable].run_id {
                return None;
            }
            let mut record = record(100.0);
            if [&runs[2].run_id, &runs[5].run_id].contains(&&run.run_id) {
                let commit = fixture::measured(&mut record, "commit-fdatasync");
                commit.data.workload.block_bytes *= 8;
            }
            Some(record)
        });
        let mut ids = Vec::new();
        for point in &trends[0].points {
            ids.push(point.run_id.clone());
        }
        ids
    }

    #[test]
    fn list_compares_runs_with_the_same_conditions() {
        let figures = [("commit-fdatasync", 100.0)];
        let runs: Vec<SavedRun> = (1..=6).map(|day| run(day, &figures)).collect();
        assert_eq!(
            listed_runs(&runs, 0),
            [runs[2].run_id.as_str(), &runs[5].run_id]
        );
        // Nobody knows how a run measured whose record cannot be read.
        assert_eq!(listed_runs(&runs, 5), [runs[5].run_id.as_str()]);
    }

    #[test]
    fn newest_run_without_the_figure_is_undecided() {
        let name = "commit-fdatasync";
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let named = named(&limit.metric).unwrap();
        let measured: Vec<SavedRun> = (1..=6).map(|day| run(day, &[(name, 100.0)])).collect();
        let mut failed = measured.clone();
        failed[5].figures.clear();
        let newest = measured[5].run_id.clone();
        let mut empty = record(100.0);
        for m in &mut empty.measurements {
            m.data.ops.clear();
        }
        let unreadable: Option<Record> = None;
        for runs in [&measured, &failed] {
            for of_newest in [&unreadable, &Some(empty.clone())] {
                let trend = only(condition_trends(&named, runs, |run| {
                    if run.run_id == newest {
                        of_newest.clone()
                    } else {
                        Some(record(100.0))
                    }
                }));
                assert_eq!(trend.newest_without_figure.as_ref(), Some(&newest));
                assert_eq!(trend.points.len(), 5);
                assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::Undecided);
            }
        }
        // A run of other workloads of the same verb says nothing.
        let trend = only(condition_trends(&named, &failed, |run| {
            let mut record = record(100.0);
            if run.run_id == newest {
                record.plan.workloads_mut().clear();
                record.measurements.clear();
            }
            Some(record)
        }));
        assert_eq!(trend.newest_without_figure, None);
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::DoesNotHold);
    }

    /// The newest run measured only one of its targets for the figure, and nobody can read the run
    /// before it.
    #[test]
    fn target_that_was_not_measured_for_a_figure_lacks_none() {
        let name = "commit-fdatasync";
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let named = named(&limit.metric).unwrap();
        let mut runs: Vec<SavedRun> = (1..=2).map(|day| run(day, &[(name, 100.0)])).collect();
        for run in &mut runs {
            run.targets.push("/wal".to_owned());
        }
        let newest = runs[1].run_id.clone();
        let trend = only(condition_trends(&named, &runs, |run| {
            if run.run_id == newest {
                Some(record(100.0))
            } else {
                None
            }
        }));
        assert_eq!(trend.target.as_deref(), Some("/data"));
        assert_eq!(trend.newest_without_figure, None);
    }

    /// A search with this answer.
    fn searched(outcome: LoadOutcome) -> Record {
        let mut record = fixture::record();
        record.plan.origin.verb = "load".to_owned();
        record.results = vec![TaskResult::Load(Box::new(LoadRecord {
            data: LoadData::default(),
            figures: answer(outcome, 1000.0, 0.01),
        }))];
        record
    }

    #[test]
    fn promised_rate_leads_its_run_and_a_search_without_one_is_undecided() {
        let promise = SavedRun::from_record(&searched(LoadOutcome::Sustained), None);
        assert_eq!(promise.figures[0].workload, "load");
        assert_eq!(promise.figures[0].value, 1000.0);
        let mut runs = vec![promise; 6];
        assert_eq!(trends(&runs, any_record)[0].metric, "rate");

        runs[5] = SavedRun::from_record(&searched(LoadOutcome::PerhapsNone), None);
        assert!(runs[5].undecided && !runs[0].undecided);
        runs[5].run_id = "newest".to_owned();
        runs[5].started = "2100-01-01T00:00:00Z".to_owned();
        let limit: Limit = "load.rate<-10%".parse().unwrap();
        let rate = named(&limit.metric).unwrap();
        let trend = only(condition_trends(&rate, &runs, |run| {
            Some(match run.run_id.as_str() {
                "newest" => searched(LoadOutcome::PerhapsNone),
                _ => searched(LoadOutcome::Sustained),
            })
        }));
        assert_eq!(trend.newest_without_figure.as_deref(), Some("newest"));
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::Undecided);
    }

    /// The newest search promises less, so that its lower rate is no loss.
    #[test]
    fn searches_of_other_promises_have_no_trend() {
        let limit: Limit = "load.rate<-10%".parse().unwrap();
        let rate = named(&limit.metric).unwrap();
        let change: [fn(&mut RatePlan, &mut Workload); 3] = [
            |plan, _| plan.time_ns *= 2,
            |plan, _| plan.limit_ns /= 10,
            |_, load| load.block_bytes *= 8,
        ];
        let points = change.map(|change| {
            let mut runs = Vec::new();
            let mut records = Vec::new();
            for day in 1..=6 {
                let mut record = searched(LoadOutcome::Sustained);
                let mut plan = RatePlan {
                    percent: 99.0,
                    limit_ns: 10_000_000,
                    time_ns: 60_000_000_000,
                    hold_ns: 10_000_000_000,
                };
                let mut load = Workload::named("reads");
                load.stop.time_ns = None;
                if day == 6 {
                    change(&mut plan, &mut load);
                }
                let mut workloads = Workloads::as_planned(vec![load]);
                workloads.decide = Decide::Rate(plan);
                record.plan.tasks = vec![Task::Workloads(workloads)];
                record.run_id = format!("run{day}");
                record.started = format!("2026-01-0{day}T00:00:00Z");
                runs.push(SavedRun::from_record(&record, None));
                records.push(record);
            }
            let trend = only(condition_trends(&rate, &runs, |run| {
                records
                    .iter()
                    .find(|record| record.run_id == run.run_id)
                    .cloned()
            }));
            trend.points.len()
        });
        assert_eq!(points, [6, 1, 1]);
    }

    /// A commit without a server measured no INSERTs, and is none of their points.
    #[test]
    fn inserts_have_a_trend() {
        let mut runs = Vec::new();
        let mut records = Vec::new();
        for (day, rate) in [(1, 400.0), (2, 402.0), (3, 398.0), (4, 401.0), (5, 100.0)] {
            let mut record = inserted(&format!("run{day}"), &[rate, rate * 1.01, rate * 0.99]);
            record.started = format!("2026-01-0{day}T00:00:00Z");
            record.plan.origin.verb = "commit".to_owned();
            record.partial = false;
            if day == 4 {
                record.plan.tasks.clear();
                record.results.clear();
            }
            runs.push(SavedRun::from_record(&record, None));
            records.push(record);
        }
        let limit: Limit = "postgres-fdatasync-c1.iops<-50%".parse().unwrap();
        let named = named("postgres-fdatasync-c1.iops").unwrap();
        let trend = only(condition_trends(&named, &runs, |run| {
            let mut found = records.iter();
            found.find(|record| record.run_id == run.run_id).cloned()
        }));
        let ids: Vec<&str> = trend
            .points
            .iter()
            .map(|point| point.run_id.as_str())
            .collect();
        assert_eq!(ids, ["run1", "run2", "run3", "run5"]);
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::Holds);
    }

    #[test]
    fn rates_that_a_search_offered_have_no_trend() {
        let mut record = searched(LoadOutcome::PerhapsNone);
        let mut workloads = Workloads::as_planned(vec![Workload::named("reads")]);
        workloads.decide = Decide::Rate(RatePlan {
            percent: 99.0,
            limit_ns: 1_000_000,
            time_ns: 60_000_000_000,
            hold_ns: 10_000_000_000,
        });
        record.plan.tasks = vec![Task::Workloads(workloads)];
        for (row, name) in ["reads-held", "reads-control", "fixed"].iter().enumerate() {
            record.measurements[row].data.workload.name = (*name).to_owned();
        }
        let run = SavedRun::from_record(&record, None);
        let names: Vec<&str> = run
            .figures
            .iter()
            .map(|one| one.workload.as_str())
            .collect();
        assert!(names.contains(&"fixed"), "{names:?}");
        assert!(
            !names.iter().any(|name| name.starts_with("reads")),
            "{names:?}"
        );
    }

    /// Writes into the page cache outdid the failed run before them.
    #[test]
    fn run_that_reached_no_disk_says_nothing_of_it() {
        let run = |change: &dyn Fn(&mut Record)| {
            let mut record = fixture::record();
            record
                .measurements
                .retain(|row| !row.data.workload.commits());
            record.results.clear();
            for row in &mut record.measurements {
                row.data.cache.used = CachePolicy::Cached;
                row.data.ops.retain(|kind, _| *kind != OpKind::Sync);
                row.data.device = DeviceUse::default();
            }
            change(&mut record);
            SavedRun::from_record(&record, None).has_measured()
        };
        assert!(!run(&|_| {}));
        // One of several rows, a sync, an error, a hang, and reads that the disk answered.
        assert!(run(
            &|record| record.measurements[0].data.cache.used = CachePolicy::Buffered
        ));
        assert!(run(&|record| {
            let ops = &mut record.measurements[0].data.ops;
            ops.insert(OpKind::Sync, OpMeasurement::default());
        }));
        assert!(run(&|record| {
            let ops = &mut record.measurements[0].data.ops;
            for op in ops.values_mut() {
                op.errors.insert("EIO".to_owned(), 1);
            }
        }));
        assert!(run(&|record| {
            record.measurements[0].data.hang = Some(Hang {
                since_ns: 1,
                lasted_ns: 1,
                requests: 1,
                late: true,
            });
        }));
        assert!(run(&|record| {
            for row in &mut record.measurements {
                row.data.device.read_bytes = row.data.asked.read_bytes;
            }
        }));
        let name = "commit-fdatasync";
        let mut runs: Vec<SavedRun> = (1..=6)
            .map(|day| self::run(day, &[(name, 100.0)]))
            .collect();
        runs[5].only_observed = true;
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let trends = condition_trends(&named(&limit.metric).unwrap(), &runs, |_| {
            Some(record(100.0))
        });
        assert_eq!(only(trends).points.len(), 5);
    }

    #[test]
    fn condition_may_be_about_a_latency() {
        let runs: Vec<SavedRun> = (1..=15)
            .map(|day| run(day, &[("commit-fdatasync", 1000.0)]))
            .collect();
        let trend = trend_of("commit-fdatasync.p99>20%", &runs).unwrap();
        assert_eq!((trend.metric.as_str(), trend.unit.as_str()), ("p99", "ns"));
        // The newest run and ten before it.
        assert_eq!(trend.points.len(), 11);
        assert_eq!(trend.points[10].run_id, runs[14].run_id);
        let limit = "commit-fdatasync.p99>20%".parse().unwrap();
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::DoesNotHold);
    }

    /// A run of the workload on two disks at these rates.
    fn run_of_two(day: u32, rates: [f64; 2]) -> (SavedRun, Record) {
        let mut record = record(rates[0]);
        record.run_id = format!("{day:032}");
        record.started = format!("2026-11-{day:02}T03:00:00Z");
        record.partial = false;
        record.plan.origin.verb = "check".to_owned();
        record
            .measurements
            .retain(|row| row.data.workload.name == "commit-fdatasync");
        record.results.clear();
        record.findings.clear();
        let mut other = record.measurements[0].clone();
        other.data.target = 1;
        let op = other.figures.ops.get_mut(&OpKind::Commit).unwrap();
        op.iops.value = rates[1];
        record.measurements.push(other);
        let mut target = record.targets[0].clone();
        target.path = "/second".to_owned();
        record.targets.truncate(1);
        record.targets.push(target);
        (SavedRun::from_record(&record, None), record)
    }

    /// Six runs on two disks, of which the second is slow in the newest run. Older versions saved
    /// no targets of figures.
    #[test]
    fn each_target_of_a_run_has_its_own_trend() {
        let mut runs = Vec::new();
        let mut records = Vec::new();
        for day in 1..=6 {
            let second = if day == 6 {
                100.0
            } else {
                800.0 + f64::from(day)
            };
            let (run, record) = run_of_two(day, [400.0 + f64::from(day), second]);
            runs.push(run);
            records.push(record);
        }
        let load = |run: &SavedRun| {
            let mut saved = records.iter();
            saved.find(|record| record.run_id == run.run_id).cloned()
        };
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let named = named(&limit.metric).unwrap();
        let last_values = |trends: &[Trend]| -> Vec<(usize, f64)> {
            let mut values = Vec::new();
            for trend in trends {
                values.push((trend.points.len(), trend.points.last().unwrap().value));
            }
            values
        };
        let judged = condition_trends(&named, &runs, load);
        assert_eq!(last_values(&judged), [(6, 406.0), (6, 100.0)]);
        assert_eq!(judged[1].target.as_deref(), Some("/second"));
        assert_eq!(
            outcome_of_trend(&limit, &judged[0]),
            TrendOutcome::DoesNotHold
        );
        assert_eq!(outcome_of_trend(&limit, &judged[1]), TrendOutcome::Holds);
        assert_eq!(last_values(&trends(&runs, load)), [(6, 406.0), (6, 100.0)]);
        for figure in &mut runs[0].figures {
            figure.target = None;
        }
        assert_eq!(last_values(&trends(&runs, load)), [(5, 406.0), (5, 100.0)]);
        assert_eq!(judged, condition_trends(&named, &runs, load));
    }

    /// The runs have two targets, and the workload ran on the first one.
    #[test]
    fn later_run_that_ended_early_misses_no_target_that_was_left_out() {
        let mut runs = Vec::new();
        let mut records = Vec::new();
        for day in 1..=6 {
            let (_, mut record) = run_of_two(day, [400.0 + f64::from(day), 800.0]);
            record.measurements.truncate(1);
            record.partial = day == 6;
            runs.push(SavedRun::from_record(&record, None));
            records.push(record);
        }
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let trend = only(condition_trends(
            &named(&limit.metric).unwrap(),
            &runs,
            |run| {
                let mut saved = records.iter();
                saved.find(|record| record.run_id == run.run_id).cloned()
            },
        ));
        assert_ne!(trend.target.as_deref(), Some("/second"));
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::Undecided);
    }

    /// Of a run that ended early, or whose requests all failed, nothing is known.
    #[test]
    fn condition_on_a_run_without_figures_is_undecided() {
        let limit: Limit = "commit-fdatasync.iops<-10%".parse().unwrap();
        let mut partial = run(1, &[("commit-fdatasync", 100.0)]);
        partial.partial = true;
        let trend = trend_of("commit-fdatasync.iops<-10%", &[partial]).unwrap();
        assert_eq!(outcome_of_trend(&limit, &trend), TrendOutcome::Undecided);
        let named = named(&limit.metric).unwrap();
        let trends = condition_trends(&named, &[run(1, &[])], |_| Some(record(1.0)));
        assert_eq!(
            outcome_of_trend(&limit, &only(trends)),
            TrendOutcome::Undecided
        );
    }

    /// A record of another program may have its start with an offset.
    #[test]
    fn newest_run_is_that_of_the_latest_time() {
        let mut runs = vec![run(2, &[("c", 2.0)]), run(1, &[("c", 1.0)])];
        runs[1].started = "2026-11-02T04:00:00+02:00".to_owned();
        let trends = trends(&runs, any_record);
        assert_eq!(trends[0].points.last().unwrap().value, 2.0);
    }

    #[test]
    fn run_without_figures_hides_no_trend() {
        let runs = vec![run(2, &[]), run(1, &[("c", 1.0)])];
        assert_eq!(trends(&runs, any_record)[0].points.len(), 1);
    }

    /// A clone has the name, the path and the disk without a serial number of its original.
    #[test]
    fn machines_of_one_name_have_no_trend_in_common() {
        let mut runs = vec![
            run(3, &[("c", 100.0)]),
            run(2, &[("c", 398.0)]),
            run(1, &[("c", 400.0)]),
        ];
        for run in &mut runs {
            run.machine = Some("a".to_owned());
        }
        runs[1].machine = Some("f".to_owned());
        let trends = trends(&runs, any_record);
        let values: Vec<f64> = trends[0].points.iter().map(|point| point.value).collect();
        assert_eq!(values, [400.0, 100.0]);
    }

    #[test]
    fn other_targets_verbs_and_partial_runs_are_left_out() {
        let mut runs = vec![
            run(4, &[("c", 1.0)]),
            run(3, &[("c", 2.0)]),
            run(2, &[("c", 3.0)]),
        ];
        runs[1].targets = vec!["/other".to_owned()];
        runs[2].partial = true;
        let others: [fn(&mut SavedRun); 5] = [
            |run| run.method = 8,
            // A clone of the machine.
            |run| run.imported = true,
            |run| run.host = "db2".to_owned(),
            |run| run.verb = "commit".to_owned(),
            |run| run.disks[0].serial = Some("S2".to_owned()),
        ];
        for change in others {
            let mut other = run(1, &[("c", 5.0)]);
            change(&mut other);
            runs.push(other);
        }
        runs.push(run(1, &[("c", 4.0)]));
        let trends = trends(&runs, any_record);
        let values: Vec<f64> = trends[0].points.iter().map(|point| point.value).collect();
        assert_eq!(values, [4.0, 1.0]);
    }
}
