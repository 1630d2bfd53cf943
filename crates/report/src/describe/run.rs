//! A run in words: what was requested, when, and how its expectations came out; and the list of
//! saved runs.

use crate::labels;
use crate::text::{clean, grouped, list, shortened};
use diskproof_model::block::{Block, Cell, Column, Narrow, Place, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, figure_to_digits, joined_range};
use diskproof_model::figure::unit_of;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::StopReason;
use diskproof_model::plan::Plan;
use diskproof_model::record::{Expectation, ExpectationOutcome, Record};
use diskproof_model::saved::{Headline, SavedRun, named};
use diskproof_model::units::format_duration;

/// Digits that tell a figure from its threshold where three do not.
const DIGITS: std::ops::RangeInclusive<i32> = 4..=9;

/// The verb and its targets.
pub(crate) fn request_text(plan: &Plan) -> String {
    let verb = &plan.origin.verb;
    if plan.layers().is_none() {
        return format!("{verb} {}", plan.targets.join(", "));
    }
    match plan.targets.first() {
        Some(highest) => format!("{verb} --layers {highest}"),
        None => format!("{verb} --layers "),
    }
}

/// `2026-11-20T10:00:00Z` as `2026-11-20 10:00 UTC`; other texts stay as they are.
pub(crate) fn start_text(started: &str) -> String {
    let parts = (started.get(..10), started.get(10..11), started.get(11..16));
    match parts {
        (Some(day), Some("T"), Some(minute)) if started.ends_with('Z') => {
            format!("{day} {minute} UTC")
        }
        _ => started.to_owned(),
    }
}

/// Says why the run is partial; `None` for a complete one.
pub(crate) fn partial_text(record: &Record) -> Option<String> {
    let why = match &record.ended_early {
        Some(why) => why.as_str(),
        None if record.partial => "the run ended before its plan was complete",
        None => return None,
    };
    let progress = progress_text(record).unwrap_or_default();
    Some(format!("{why}{progress}"))
}

/// Says how far an interrupted run came: `. After 8.2 s: 3 of 8 workloads finished, 2 cut short, 3
/// not run.` `None` where decisions during the run would have added workloads.
fn progress_text(record: &Record) -> Option<String> {
    let is_decided_meanwhile = record.sweep().is_some()
        || record.latency_search().is_some()
        || record.load().is_some()
        || record.rays().is_some()
        || record.sustain().is_some();
    if is_decided_meanwhile {
        return None;
    }
    let planned = record.plan.workloads().len() * record.plan.targets.len().max(1);
    if planned <= 1 {
        return None;
    }
    let measured = record.measurements.len();
    let missing = planned.checked_sub(measured)?;
    let cut_short = record
        .measurements
        .iter()
        .filter(|row| row.data.stopped == StopReason::Interrupted)
        .count();
    let finished = measured - cut_short;
    let mut parts = vec![format!("{finished} of {planned} workloads finished")];
    if cut_short > 0 {
        parts.push(format!("{cut_short} cut short"));
    }
    if missing > 0 {
        parts.push(format!("{missing} not run"));
    }
    let elapsed = format_duration(record.elapsed_ns());
    Some(format!(". After {elapsed}: {}.", list(parts)))
}

/// Names of planned workloads that did not run on a target.
pub(crate) fn not_run(record: &Record, target: usize) -> Vec<&str> {
    // A search measures as few depths as it needs, and rates of its own; a load that does not fall
    // needs no pauses.
    if record.latency_search().is_some() || record.load().is_some() || record.sustain().is_some() {
        return Vec::new();
    }
    let is_search = record.rays().is_some();
    let mut names = Vec::new();
    for workload in record.plan.workloads() {
        // The rows of a search have names of their own.
        if is_search && workload.stop.time_ns.is_none() {
            continue;
        }
        if !is_measured(record, target, &workload.name) {
            names.push(workload.name.as_str());
        }
    }
    names
}

fn is_measured(record: &Record, target: usize, workload: &str) -> bool {
    record
        .measurements
        .iter()
        .any(|row| row.data.target == target && row.data.workload.name == workload)
}

/// The workloads that the plan skips, a fact per reason.
pub(crate) fn skipped_facts(plan: &Plan) -> impl Iterator<Item = Block> {
    let skipped = plan.skipped.iter();
    grouped(skipped.map(|skipped| (&skipped.why, &skipped.workload)))
        .into_iter()
        .map(|(why, names)| Block::fact("skipped", format!("{}: {why}", list(names))))
}

/// Lists what was promised, and how it came out.
pub(crate) fn expectations(all: &[Expectation]) -> Vec<Block> {
    if all.is_empty() {
        return Vec::new();
    }
    let names = ["result", "promised, allowance", "measured (95 % interval)"];
    let rows = all.iter().map(expectation_row).collect();
    let mut blocks = vec![Block::words("Each promise with its figure", names, rows)];
    for expectation in all {
        if let Some(decision) = decision_text(expectation) {
            let text = format!("{}: {decision}", promise_text(expectation));
            blocks.push(Block::toned_fact(Tone::Warning, "undecided", text));
        }
    }
    blocks
}

fn expectation_row(expectation: &Expectation) -> TableRow {
    let outcome = match expectation.outcome() {
        ExpectationOutcome::Met => Cell::toned(Tone::Good, "met"),
        ExpectationOutcome::Undecided => Cell::toned(Tone::Warning, "UNDECIDED"),
        ExpectationOutcome::Missed => Cell::toned(Tone::Error, "MISSED"),
    };
    TableRow::from(vec![
        outcome,
        promise_text(expectation).into(),
        measured_text(expectation).into(),
    ])
}

/// `random-read-d32.iops>=5000`, or a promise with what is allowed: `transfer rate 92 MB/s, −5 %`.
fn promise_text(expectation: &Expectation) -> String {
    let Some(promise) = &expectation.promise else {
        return expectation.expression.clone();
    };
    let percent = (promise.passes / promise.promised - 1.0) * 100.0;
    let allowed = format!("{percent:+.0} %").replace('-', "−");
    let promised = unit_text(&promise.unit, promise.promised);
    format!("{} {promised}, {allowed}", promise.name)
}

/// One that was not met, in a line: `missed: random-read-d32.iops>=5000: 4020/s (3900 to 4140/s)`.
pub fn unmet_text(expectation: &Expectation) -> Option<String> {
    let outcome = expectation.outcome();
    if outcome == ExpectationOutcome::Met {
        return None;
    }
    let mut text = format!(
        "{}: {}: {}",
        outcome.as_str(),
        promise_text(expectation),
        measured_text(expectation)
    );
    if let Some(objection) = &expectation.objection {
        text.push_str(&format!(": {objection}"));
    }
    Some(text)
}

/// The threshold of an expectation, and the unit of both its figures.
struct Scale<'e> {
    unit: Option<&'e str>,
    threshold: Option<f64>,
}

impl<'e> Scale<'e> {
    fn from_expectation(expectation: &'e Expectation) -> Self {
        match &expectation.promise {
            Some(promise) => Self {
                unit: Some(&promise.unit),
                threshold: Some(promise.passes),
            },
            None => Self {
                unit: unit_of(&expectation.expression),
                threshold: expectation.threshold,
            },
        }
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            Some(unit) => compared_text(unit, value, self.threshold),
            None => value.to_string(),
        }
    }
}

/// The figure with its interval: `5,020/s (4,900 to 5,140/s)`.
fn measured_text(expectation: &Expectation) -> String {
    let scale = Scale::from_expectation(expectation);
    let Some(value) = expectation.observed else {
        return match expectation.observed_at_least {
            Some(low) => format!("{} or more", scale.text(low)),
            None => "not measured".to_owned(),
        };
    };
    let text = scale.text(value);
    if expectation.objection.is_some() {
        return format!("{text}, not the disk's");
    }
    match expectation.interval {
        Some([low, high]) => {
            let range = joined_range(&scale.text(low.max(0.0)), &scale.text(high));
            format!("{text} ({range})")
        }
        None if expectation.undecided => format!("{text}, interval unknown"),
        None => text,
    }
}

/// Says how to decide an undecided one: `measure it for 42 s to decide`; or what makes its figure
/// useless.
fn decision_text(expectation: &Expectation) -> Option<String> {
    if let Some(objection) = &expectation.objection {
        return Some(objection.clone());
    }
    let time = format_duration(expectation.decided_by_ns?);
    match expectation.observed_at_least {
        Some(_) => Some(format!(
            "too few operations: measure it for {time} or more to decide"
        )),
        None => Some(format!("measure it for {time} to decide")),
    }
}

/// With three digits, or as many as tell it from the threshold: 199.6 is not 200.
fn compared_text(unit: &str, value: f64, threshold: Option<f64>) -> String {
    let usual = unit_text(unit, value);
    let Some(threshold) = threshold else {
        return usual;
    };
    if threshold == value || unit == "rpm" || unit_text(unit, threshold) != usual {
        return usual;
    }
    for digits in DIGITS {
        let text = figure_to_digits(value, digits, unit);
        if text != figure_to_digits(threshold, digits, unit) {
            return text;
        }
    }
    usual
}

/// With three digits.
fn unit_text(unit: &str, value: f64) -> String {
    match unit {
        "rpm" => format!("{value:.0} rpm"),
        unit => figure_text(value, Some(third_digit(value)), unit),
    }
}

/// One unit of the third digit of a value: as its half-width it makes three digits print.
pub(crate) fn third_digit(value: f64) -> f64 {
    match value {
        0.0 => 0.0,
        _ => 10.0_f64.powf(value.abs().log10().floor() - 2.0),
    }
}

/// Digits of an id that identify a run; `show` accepts them.
const ID_DIGITS: usize = 8;
/// Columns of a path or a disk; more would leave no room for figures.
const CELL_MAX: usize = 28;
/// Figures of a run; the most important come first.
const FIGURES_MAX: usize = 3;
/// The cells that name a run come first.
const HEADING: &str = "run | started (UTC) | verb | target | label | disk | figures | host | note";
const NAMING: usize = 5;

/// The runs in the order given.
pub(crate) fn saved_runs(runs: &[SavedRun]) -> Vec<Block> {
    let mut columns = Column::words(HEADING.split(" | "));
    for (rank, column) in columns.iter_mut().rev().take(2).enumerate() {
        column.place = Place::Roomy(rank as u8);
    }
    let rows = runs.iter().map(saved_row).collect();
    vec![Block::Table(Table {
        narrow: Narrow::Titled(NAMING),
        ..Table::new("saved runs", columns, rows)
    })]
}

fn saved_row(run: &SavedRun) -> TableRow {
    let label = match &run.label {
        Some(label) => short_cell(&format!("[{label}]")),
        None => String::new(),
    };
    let note = match &run.note {
        Some(note) => short_cell(&format!("note: {note}")),
        None => String::new(),
    };
    let disks: Vec<&str> = run.disks.iter().map(|disk| disk.best_name()).collect();
    let started = start_text(&run.started);
    let cells = vec![
        run_id(&run.run_id),
        // The heading names the time zone.
        started.trim_end_matches(" UTC").to_owned(),
        short_cell(&run.verb),
        short_cell(&run.targets.join(" ")),
        label,
        short_cell(&disks.join(" ")),
        saved_result(run),
        short_cell(&run.host),
        note,
    ];
    let is_failure = match &run.worst {
        Some(worst) => worst.severity == Severity::Failure,
        None => false,
    };
    let tone = if run.partial || is_failure {
        Tone::Error
    } else {
        Tone::Plain
    };
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

fn short_cell(text: &str) -> String {
    shortened(&clean(text), CELL_MAX)
}

/// The worst of a run, then its figures.
fn saved_result(run: &SavedRun) -> String {
    let mut parts = Vec::new();
    if run.partial {
        parts.push("PARTIAL".to_owned());
    }
    if let Some(worst) = &run.worst {
        let severity = labels::severity(worst.severity);
        parts.push(format!("{severity}: {}", worst.code));
    }
    parts.extend(run.figures.iter().take(FIGURES_MAX).map(headline_text));
    list(parts)
}

/// Returns as much of an id as other commands need.
pub(crate) fn run_id(id: &str) -> String {
    id.chars().take(ID_DIGITS).collect()
}

fn headline_text(figure: &Headline) -> String {
    let value = figure_text(figure.value, figure.half_width_95, &figure.unit);
    format!("{} {value}", named(&figure.workload, &figure.operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(expression: &str, observed: Option<f64>) -> Expectation {
        Expectation {
            expression: expression.to_owned(),
            threshold: None,
            observed,
            interval: None,
            observed_at_least: None,
            met: false,
            undecided: false,
            decided_by_ns: None,
            objection: None,
            promise: None,
        }
    }

    #[test]
    fn percentile_of_few_operations_has_a_lower_end_and_a_time_that_decides() {
        let few = Expectation {
            observed_at_least: Some(4_300_000.0),
            undecided: true,
            decided_by_ns: Some(6_000_000_000),
            ..expectation("etcd-wal.sync.p99<=10ms", None)
        };
        assert_eq!(measured_text(&few), "4.30 ms or more");
        assert!(decision_text(&few).unwrap().contains("6.0 s or more"));
    }

    #[test]
    fn a_missed_threshold_is_outside_the_printed_interval() {
        let near = Expectation {
            threshold: Some(200.0),
            interval: Some([190.4, 199.7]),
            ..expectation("a.iops>=200", Some(195.0))
        };
        assert_eq!(measured_text(&near), "195/s (190 to 199.7/s)");
        let latency = Expectation {
            threshold: Some(5e6),
            interval: Some([5_000_400.0, 5_200_000.0]),
            ..expectation("a.p99<=5ms", Some(5_100_000.0))
        };
        assert_eq!(measured_text(&latency), "5.10 ms (5.0004 to 5.20 ms)");
    }

    #[test]
    fn observed_value_has_the_unit_of_its_metric() {
        let cases = [
            ("random-read-d32.iops>=5000", 8213.4, "8210/s"),
            ("commit-fdatasync.p99.9<=5ms", 8_210_000.0, "8.21 ms"),
            ("mixed-random.read.p99 < 5ms", 8_210_000.0, "8.21 ms"),
            ("sequential-read.throughput>=1GB", 1.234e9, "1230 MB/s"),
            ("curve.min>=80MB/s", 49e6, "49.0 MB/s"),
            ("access.mean<=15ms", 14_900_000.0, "14.9 ms"),
            ("etcd-wal.sync.p99<=10ms", 185_471.0, "185 µs"),
            ("x.other>1", 0.5, "0.5"),
        ];
        for (expression, value, text) in cases {
            let observed = expectation(expression, Some(value));
            assert_eq!(measured_text(&observed), text);
        }
    }

    #[test]
    fn start_of_a_run_is_printed_as_a_date() {
        assert_eq!(start_text("2026-11-20T10:00:00Z"), "2026-11-20 10:00 UTC");
        let other = "2026-11-20T10:00:00+02:00";
        assert_eq!(start_text(other), other);
        assert_eq!(start_text("früher"), "früher");
    }
}
