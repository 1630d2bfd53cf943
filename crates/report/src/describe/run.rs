//! A run in words: what was requested, when, and how its expectations came out; and the list of
//! saved runs.

use crate::labels;
use crate::text::{clean, glue, grouped, list, shortened};
use diskproof_model::block::{Block, Cell, Column, Narrow, Place, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, figure_to_digits, joined_range};
use diskproof_model::figure::unit_of;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::StopReason;
use diskproof_model::plan::Plan;
use diskproof_model::record::{Expectation, ExpectationOutcome, Record};
use diskproof_model::row::Row;
use diskproof_model::saved::{Headline, SavedRun, named};
use diskproof_model::units::format_duration;

/// Digits that tell a figure from its threshold where three do not.
const DIGITS: std::ops::RangeInclusive<i32> = 4..=9;

/// The verb and its targets.
pub(crate) fn request_text(plan: &Plan) -> String {
    let verb = &plan.origin.verb;
    if plan.layers().is_some() {
        let highest = plan.targets.first().map_or("", String::as_str);
        return format!("{verb} --layers {highest}");
    }
    format!("{verb} {}", plan.targets.join(", "))
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

/// Why the run is partial; `None` for a complete one.
pub(crate) fn partial_text(record: &Record) -> Option<String> {
    let is_partial = record.partial || record.ended_early.is_some();
    is_partial.then(|| {
        let why = record.ended_early.as_deref();
        let why = why.unwrap_or("the run ended before its plan was complete");
        format!("{why}{}", progress_text(record).unwrap_or_default())
    })
}

/// How far an interrupted run came: `. After 8.2 s: 3 of 8 workloads finished, 2 cut short, 3 not
/// run.` `None` where decisions during the run would have added workloads.
fn progress_text(record: &Record) -> Option<String> {
    let planned = record.plan.workloads().len() * record.plan.targets.len().max(1);
    let is_planned = record.sweep().is_none() && record.latency_search().is_none();
    let is_cut = |m: &&Row| m.data.stopped == StopReason::Interrupted;
    let measured = record.measurements.len();
    let cut = record.measurements.iter().filter(is_cut).count();
    let finished = measured - cut;
    let mut parts = vec![format!("{finished} of {planned} workloads finished")];
    parts.extend((cut > 0).then(|| format!("{cut} cut short")));
    let missing = planned.checked_sub(measured)?;
    parts.extend((missing > 0).then(|| format!("{missing} not run")));
    let elapsed = format_duration(record.elapsed_ns());
    (is_planned && planned > 1).then(|| format!(". After {elapsed}: {}.", list(parts)))
}

/// Names of planned workloads that did not run on a target.
pub(crate) fn not_run(record: &Record, target: usize) -> Vec<&str> {
    // A search measures as few depths as it needs.
    if record.latency_search().is_some() {
        return Vec::new();
    }
    let is_measured = |name: &str| {
        let mut own = record
            .measurements
            .iter()
            .filter(|m| m.data.target == target);
        own.any(|m| m.data.workload.name == name)
    };
    let planned = record.plan.workloads().iter().map(|w| w.name.as_str());
    planned.filter(|name| !is_measured(name)).collect()
}

/// The workloads that the plan skips, a fact per reason.
pub(crate) fn skipped_facts(plan: &Plan) -> impl Iterator<Item = Block> {
    let skipped = grouped(plan.skipped.iter().map(|one| (&one.why, &one.workload)));
    let skipped = skipped.into_iter();
    skipped.map(|(why, names)| Block::fact("skipped", format!("{}: {why}", list(names))))
}

/// What was promised, and how it came out.
pub(crate) fn expectations(all: &[Expectation]) -> Vec<Block> {
    let row = |one: &Expectation| {
        let outcome = match one.outcome() {
            ExpectationOutcome::Met => Cell::toned(Tone::Good, "met"),
            ExpectationOutcome::Undecided => Cell::toned(Tone::Warning, "UNDECIDED"),
            ExpectationOutcome::Missed => Cell::toned(Tone::Error, "MISSED"),
        };
        let (promise, measured) = (promise_text(one), measured_text(one));
        TableRow::from(vec![outcome, promise.into(), measured.into()])
    };
    let names = ["result", "promised, allowance", "measured (95 % interval)"];
    let rows: Vec<TableRow> = all.iter().map(row).collect();
    let table =
        (!rows.is_empty()).then(|| Block::words("Each promise with its figure", names, rows));
    let open = all.iter().filter_map(|one| {
        let text = format!("{}: {}", promise_text(one), decision_text(one)?);
        Some(Block::toned_fact(Tone::Warning, "undecided", text))
    });
    table.into_iter().chain(open).collect()
}

/// `random-read-d32.iops>=5000`, or a promise with what is allowed: `transfer rate 92 MB/s, −5 %`.
fn promise_text(expectation: &Expectation) -> String {
    let Some(promise) = &expectation.promise else {
        return expectation.expression.clone();
    };
    let allowed = (promise.passes / promise.promised - 1.0) * 100.0;
    let allowed = format!("{allowed:+.0} %").replace('-', "−");
    let promised = unit_text(&promise.unit, promise.promised);
    format!("{} {promised}, {allowed}", promise.name)
}

/// One that was not met, in a line: `missed: random-read-d32.iops>=5000: 4020/s (3900 to 4140/s)`.
pub fn unmet_text(expectation: &Expectation) -> Option<String> {
    let outcome = expectation.outcome();
    (outcome != ExpectationOutcome::Met).then(|| {
        let (promise, measured) = (promise_text(expectation), measured_text(expectation));
        let why = match &expectation.objection {
            Some(objection) => format!(": {objection}"),
            None => String::new(),
        };
        format!("{}: {promise}: {measured}{why}", outcome.as_str())
    })
}

/// The figure with its interval: `5,020/s (4,900 to 5,140/s)`.
fn measured_text(expectation: &Expectation) -> String {
    let promised = expectation.promise.as_ref();
    let unit = promised.map(|promise| promise.unit.as_str());
    let unit = unit.or(unit_of(&expectation.expression));
    let threshold = promised.map(|promise| promise.passes);
    let threshold = threshold.or(expectation.threshold);
    let text = |value: f64| match unit {
        Some(unit) => compared_text(unit, value, threshold),
        None => value.to_string(),
    };
    let Some(value) = expectation.observed else {
        let low = expectation.observed_at_least.map(text);
        return low.map_or("not measured".to_owned(), |low| format!("{low} or more"));
    };
    if expectation.objection.is_some() {
        return format!("{}, not the disk's", text(value));
    }
    match expectation.interval {
        Some([low, high]) => {
            let (low, high) = (text(low.max(0.0)), text(high));
            format!("{} ({})", text(value), joined_range(&low, &high))
        }
        None if expectation.undecided => format!("{}, interval unknown", text(value)),
        None => text(value),
    }
}

/// How to decide an undecided one: `measure it for 42 s to decide`; or what makes its figure
/// useless.
fn decision_text(expectation: &Expectation) -> Option<String> {
    if let Some(objection) = &expectation.objection {
        return Some(objection.clone());
    }
    let time = format_duration(expectation.decided_by_ns?);
    Some(match expectation.observed_at_least {
        Some(_) => format!("too few operations: measure it for {time} or more to decide"),
        None => format!("measure it for {time} to decide"),
    })
}

/// With three digits, or as many as tell it from the threshold: 199.6 is not 200.
fn compared_text(unit: &str, value: f64, threshold: Option<f64>) -> String {
    let usual = unit_text(unit, value);
    let is_alike =
        |other: &f64| *other != value && unit != "rpm" && unit_text(unit, *other) == usual;
    let apart = threshold.filter(is_alike).and_then(|threshold| {
        let mut texts = DIGITS
            .map(|digits| [value, threshold].map(|figure| figure_to_digits(figure, digits, unit)));
        texts.find(|[text, other]| text != other)
    });
    apart.map_or(usual, |[text, _]| text)
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
    vec![Block::Table(Table {
        narrow: Narrow::Titled(NAMING),
        ..Table::new("saved runs", columns, runs.iter().map(saved_row).collect())
    })]
}

fn saved_row(run: &SavedRun) -> TableRow {
    let worst = run.worst.as_ref();
    let partial = run.partial.then(|| "PARTIAL".to_owned());
    let finding = worst.map(|of| glue(&format!("{}: {}", labels::severity(of.severity), of.code)));
    let figures = run.figures.iter().take(FIGURES_MAX).map(headline_text);
    let disks: Vec<&str> = run.disks.iter().map(|disk| disk.best_name()).collect();
    let cell = |text: &str| shortened(&clean(text), CELL_MAX);
    let label = run.label.as_ref().map(|label| cell(&format!("[{label}]")));
    let note = run.note.as_ref().map(|note| cell(&format!("note: {note}")));
    let started = start_text(&run.started);
    let cells = vec![
        run_id(&run.run_id),
        // The heading names the time zone.
        started.trim_end_matches(" UTC").to_owned(),
        cell(&run.verb),
        cell(&run.targets.join(" ")),
        label.unwrap_or_default(),
        cell(&disks.join(" ")),
        list(partial.into_iter().chain(finding).chain(figures)),
        cell(&run.host),
        note.unwrap_or_default(),
    ];
    let is_failure = worst.is_some_and(|of| of.severity == Severity::Failure);
    let is_bad = run.partial || is_failure;
    let tone = if is_bad { Tone::Error } else { Tone::Plain };
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// As much of an id as other commands need.
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
            let of = expectation(expression, Some(value));
            assert_eq!(measured_text(&of), text);
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
