//! Writes the notes that a reader needs with the verdicts of a comparison: what the intervals
//! include, and what was unequal about the runs. All printers show them.

use super::reasons::is_shared_disturbance;
use super::sides::{NamedRun, RunGroup, Sides, WorkloadKey};
use crate::estimate::largest_by;
use crate::limiter::Unit;
use crate::limiter::words::credit_text;
use crate::rules::is_credit_of_disk;
use crate::untested::untested;
use diskproof_model::comparison::{Basis, MetricComparison, Verdict};
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use std::collections::BTreeSet;

/// A note names up to this many runs; more are only counted.
const NAMED_MAX: usize = 3;
/// If one run measured a workload this many times as long as another, they may have seen different
/// disks: a cache that was still filling, credits that were not yet spent. Chosen, not measured.
const WALL_RATIO_MAX: f64 = 4.0;

/// The notes of one candidate, the weightiest first: a short page has only the first ones. What
/// changes the promise of a figure comes before what was unequal about the runs, and this before
/// what the intervals include. `letter` names the candidate in sentences; `sides` are those of the
/// two groups.
pub(super) fn notes(
    baseline: &RunGroup<'_>,
    group: &RunGroup<'_>,
    sides: &Sides<'_>,
    letter: &str,
    metrics: &[MetricComparison],
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(burst_note(sides));
    notes.extend(partial_note(sides));
    notes.extend(named_twice_note("A", baseline.runs.len() - sides.a.len()));
    notes.extend(named_twice_note(letter, group.runs.len() - sides.b.len()));
    notes.extend(same_run_note(sides, letter));
    notes.extend(unsettled_note(sides));
    notes.extend(lengths_note(sides));
    notes.extend(busy_note(sides));
    notes.extend(variation_note(sides, metrics));
    notes
}

/// The note on runs of a side that count once; `None` where the user named each once.
fn named_twice_note(side: &str, repeated: usize) -> Option<String> {
    if repeated == 0 {
        return None;
    }
    Some(format!(
        "A run that is named twice in {side} counts once, because it is not a repetition."
    ))
}

/// The note on a run that is on both sides.
fn same_run_note(sides: &Sides<'_>, letter: &str) -> Option<String> {
    if run_ids(&sides.a).is_disjoint(&run_ids(&sides.b)) {
        return None;
    }
    Some(format!(
        "A and {letter} contain the same run, which cannot differ from itself."
    ))
}

/// The note on runs that ended before their plans did.
fn partial_note(sides: &Sides<'_>) -> Option<String> {
    let partial: Vec<&str> = sides
        .runs()
        .filter(|named| named.run.record.partial)
        .map(|named| named.name.as_str())
        .collect();
    if partial.is_empty() {
        return None;
    }
    Some(format!(
        "{} ended early; only complete measurements are compared.",
        partial.join(" and ")
    ))
}

fn run_ids<'a>(side: &[NamedRun<'a>]) -> BTreeSet<&'a str> {
    side.iter()
        .map(|named| named.run.record.run_id.as_str())
        .collect()
}

/// The note on what the disks of both sides allow for longer than they were measured: the credits
/// that ended, and the rates that no run kept for long enough to exclude one. It is one note, so
/// that no short page has it for one side only.
fn burst_note(sides: &Sides<'_>) -> Option<String> {
    let mut sentences = Vec::new();
    let mut kept = Vec::new();
    let mut tests: Vec<NeededTest> = Vec::new();
    for side in [&sides.a, &sides.b] {
        let Some(first) = side.first() else {
            continue;
        };
        sentences.extend(credit_sentences(first));
        if first.run.record.plan.layers().is_some() {
            continue;
        }
        for untested in untested(first.run.record) {
            kept.push(format!("{} kept {}", first.name, untested.kept));
            let test = NeededTest {
                disks: disks_of(first.run.record),
                units: untested.units,
                sentence: untested.tests,
            };
            if !tests.iter().any(|known| known.covers(&test)) {
                tests.push(test);
            }
        }
    }
    if !kept.is_empty() {
        sentences.push(format!(
            "Without a pause {}; a burst that lasts longer would not have shown.",
            kept.join(", and ")
        ));
        sentences.extend(tests.into_iter().map(|test| test.sentence));
    }
    if sentences.is_empty() {
        None
    } else {
        Some(sentences.join(" "))
    }
}

/// A test for a credit that a side needs.
struct NeededTest {
    /// The disks of the side; empty where they are unknown.
    disks: BTreeSet<String>,
    units: Vec<Unit>,
    /// The sentence with its commands.
    sentence: String,
}

impl NeededTest {
    /// True if this test says as much as the other one, which reads the same disks.
    fn covers(&self, other: &Self) -> bool {
        let same_disks = !self.disks.is_empty() && self.disks == other.disks;
        let all_units = other.units.iter().all(|unit| self.units.contains(unit));
        self.sentence == other.sentence || same_disks && all_units
    }
}

/// The disks below the targets of a run, with the machine that has them: their names are its own.
fn disks_of(record: &Record) -> BTreeSet<String> {
    let mut disks = BTreeSet::new();
    for disk in record.targets.iter().flat_map(TargetIdentity::disks) {
        let serial = disk.serial.as_deref().unwrap_or_default();
        let machine = record.host.machine.as_deref().unwrap_or_default();
        let host = &record.host.name;
        disks.insert(format!("{host} {machine} {} {serial}", disk.name));
    }
    disks
}

/// A sentence on each burst credit of a side that ended.
fn credit_sentences(named: &NamedRun<'_>) -> Vec<String> {
    let (name, record) = (&named.name, named.run.record);
    let mut sentences = Vec::new();
    for credit in &record.burst_credits {
        if !is_credit_of_disk(record, credit) {
            continue;
        }
        let text = credit_text(record, credit);
        sentences.push(match record.targets.get(credit.target) {
            Some(target) if record.targets.len() > 1 => {
                format!("The disk of {} in {name} allows {text}.", target.path)
            }
            Some(_) | None => format!("The disk of {name} allows {text}."),
        });
    }
    sentences
}

/// The note on the source of the variation from run to run, or that it is unknown; `None` where the
/// runs of the sides show it.
fn variation_note(sides: &Sides<'_>, metrics: &[MetricComparison]) -> Option<String> {
    if let Some(note) = blocks_note(sides, metrics) {
        return Some(note);
    }
    let earlier_runs = metrics
        .iter()
        .flat_map(|metric| metric.variation)
        .map(|variation| variation.earlier_runs)
        .max();
    match earlier_runs {
        Some(0) => return None,
        Some(count) => {
            return Some(format!(
                "The intervals include the variation of {count} earlier runs of the same target \
                 and plan (history)."
            ));
        }
        // No metric has a known variation.
        None => {}
    }
    let is_pair = sides.a.len() == 1 && sides.b.len() == 1;
    let has_verdict = metrics
        .iter()
        .any(|metric| metric.ratio.is_some() && metric.verdict != Verdict::Observed);
    if !is_pair || !has_verdict {
        return None;
    }
    let text = "There is one run per side and no earlier run of this target and plan, so the \
                intervals omit the variation between runs. faster-once and slower-once apply only \
                to this pair. Compare three runs per side.";
    Some(text.to_owned())
}

/// The number of blocks of a live comparison, and its disturbances; `None` of other comparisons.
fn blocks_note(sides: &Sides<'_>, metrics: &[MetricComparison]) -> Option<String> {
    let counts: Vec<u64> = metrics
        .iter()
        .filter(|metric| metric.headline && metric.basis == Basis::Blocks)
        .map(|metric| metric.a.n)
        .collect();
    let (least, most) = (counts.iter().min()?, counts.iter().max()?);
    let count = if least == most {
        format!("{most} blocks")
    } else {
        format!("{least} to {most} blocks")
    };
    let is_disturbed = sides
        .runs()
        .any(|named| is_shared_disturbance(named.run.record));
    let disturbed = if is_disturbed {
        " Other programs used the disk during the comparison; the random order spreads their \
         effect over both sides."
    } else {
        ""
    };
    Some(format!(
        "Measured in alternation: {count} of each workload, each with one slice of either side in \
         random order. The intervals come from the differences within the blocks.{disturbed}"
    ))
}

/// The note on runs that began on a machine with more to do than it has processors: waits for a
/// processor look like a slow disk, and vary from run to run by more than any interval shows.
fn busy_note(sides: &Sides<'_>) -> Option<String> {
    let mut busy_runs = Vec::new();
    for named in sides.runs() {
        let cpus = named.run.record.host.cpus;
        if let Some(load) = named.run.record.host.load_of_minute()
            && load > f64::from(cpus)
        {
            let name = named.name.as_str();
            busy_runs.push(BusyRun { name, load, cpus });
        }
    }
    let busiest = largest_by(&busy_runs, |run| run.load)?;
    let names = if busy_runs.len() <= NAMED_MAX {
        let names: Vec<&str> = busy_runs.iter().map(|run| run.name).collect();
        names.join(", ")
    } else {
        format!("{} of {} runs", busy_runs.len(), sides.runs().count())
    };
    let up_to = if busy_runs.len() > 1 { "up to " } else { "" };
    let (load, cpus) = (busiest.load, busiest.cpus);
    Some(format!(
        "{names} began at a load of {up_to}{load:.1} on {cpus} processors, so waits for a \
         processor count as the disk's time. Compare runs from a quiet machine."
    ))
}

/// A run that began at a higher load than the machine has processors.
struct BusyRun<'a> {
    name: &'a str,
    load: f64,
    cpus: u32,
}

/// The note on workloads whose rate had not settled when their run ended.
fn unsettled_note(sides: &Sides<'_>) -> Option<String> {
    let mut names = Vec::new();
    for named in sides.runs() {
        for measurement in &named.run.record.measurements {
            if measurement.figures.settled == Some(false) {
                names.push(format!(
                    "{} in {}",
                    measurement.data.workload.name, named.name
                ));
            }
        }
    }
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "The rate had not settled at the end: {}. Use longer runs.",
        names.join(", ")
    ))
}

/// The workloads that one side measured much longer than the other.
fn lengths_note(sides: &Sides<'_>) -> Option<String> {
    let mut workloads = Vec::new();
    for key in sides.workloads() {
        let (Some(a), Some(b)) = (longest_ns(&sides.a, key), longest_ns(&sides.b, key)) else {
            continue;
        };
        let ratio = a.max(b) as f64 / a.min(b).max(1) as f64;
        if ratio > WALL_RATIO_MAX {
            let (a, b) = (format_duration(a), format_duration(b));
            workloads.push(format!("{} ({a} and {b})", key.name));
        }
    }
    if workloads.is_empty() {
        return None;
    }
    Some(format!(
        "The measured times differ widely: {}. Caches and burst credits may cause the difference.",
        workloads.join(", ")
    ))
}

/// The longest time for which a run of the side measured a workload.
fn longest_ns(side: &[NamedRun<'_>], key: WorkloadKey<'_>) -> Option<u64> {
    side.iter()
        .flat_map(|named| &named.run.record.measurements)
        .filter(|row| WorkloadKey::from_row(row) == key)
        .map(|row| row.data.wall_ns)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Run;
    use crate::fixture;
    use diskproof_model::record::Record;

    fn fixture_as(run_id: &str) -> Record {
        let mut record = fixture::record();
        record.run_id = run_id.to_owned();
        record
    }

    fn group<'a>(records: &'a [&'a Record]) -> RunGroup<'a> {
        RunGroup {
            label: "side".to_owned(),
            runs: records
                .iter()
                .map(|record| Run::without_name(record))
                .collect(),
        }
    }

    fn notes_of(a: &[&Record], b: &[&Record]) -> Vec<String> {
        let (group_a, group_b) = (group(a), group(b));
        let sides = Sides::from_groups(&group_a, &group_b, "B");
        notes(&group_a, &group_b, &sides, "B", &[])
    }

    #[track_caller]
    fn assert_note(notes: &[String], beginning: &str) {
        let is_there = notes.iter().any(|note| note.starts_with(beginning));
        assert!(is_there, "{beginning} is not among {notes:#?}");
    }

    #[test]
    fn run_that_is_named_twice_or_on_both_sides_has_a_note() {
        let (a, b) = (fixture_as("a"), fixture_as("b"));
        let twice = notes_of(&[&a, &a], &[&b]);
        assert_note(&twice, "A run that is named twice in A counts once");
        let same = notes_of(&[&a], &[&a]);
        assert_note(&same, "A and B contain the same run");
    }

    /// A promise is changed by what was not tested: no other note is before it, and both sides have
    /// it in one.
    #[test]
    fn note_on_bursts_of_both_sides_is_the_first() {
        let (mut a, b) = (fixture_as("a"), fixture_as("b"));
        a.partial = true;
        a.host.load_average = Some("90.0 1.0 1.0".to_owned());
        let notes = notes_of(&[&a], &[&b]);
        assert!(notes.len() >= 3, "{notes:#?}");
        let mentions = |note: &str| note.matches(" kept 10,000/s").count();
        assert_eq!(mentions(&notes[0]), 2, "{notes:#?}");
        assert!(notes[1..].iter().all(|note| mentions(note) == 0));
    }

    /// The load average is above the number of processors on one side.
    #[test]
    fn busy_machine_has_a_note() {
        let (a, mut b) = (fixture_as("a"), fixture_as("b"));
        b.host.cpus = 4;
        b.host.load_average = Some("4.0 1.0 1.0".to_owned());
        let at_capacity = notes_of(&[&a], &[&b]);
        assert!(!at_capacity.iter().any(|note| note.contains("4 processors")));
        b.host.load_average = Some("4.1 1.0 1.0".to_owned());
        let above_capacity = notes_of(&[&a], &[&b]);
        assert_note(&above_capacity, "B began at a load of 4.1 on 4 processors");
    }

    /// Four times as long is still alike.
    #[test]
    fn measured_times_that_differ_widely_have_a_note() {
        let (a, mut b) = (fixture_as("a"), fixture_as("b"));
        let name = a.measurements[0].data.workload.name.clone();
        b.measurements[0].data.wall_ns = 4 * a.measurements[0].data.wall_ns;
        let four_times = notes_of(&[&a], &[&b]);
        assert!(!four_times.iter().any(|note| note.contains("times differ")));
        b.measurements[0].data.wall_ns += 4_000_000_000;
        let longer = notes_of(&[&a], &[&b]);
        assert_note(
            &longer,
            &format!("The measured times differ widely: {name} ("),
        );
    }

    #[test]
    fn run_that_ended_early_or_did_not_settle_has_a_note() {
        let (mut a, mut b) = (fixture_as("a"), fixture_as("b"));
        for record in [&mut a, &mut b] {
            for row in &mut record.measurements {
                row.figures.settled = Some(true);
            }
        }
        let begins = |notes: &[String], beginning: &str| {
            notes.iter().filter(|note| note.contains(beginning)).count()
        };
        let whole = notes_of(&[&a], &[&b]);
        assert_eq!(begins(&whole, "ended early"), 0);
        assert_eq!(begins(&whole, "had not settled"), 0);
        a.partial = true;
        b.measurements[1].figures.settled = Some(false);
        let notes = notes_of(&[&a], &[&b]);
        assert_eq!(begins(&notes, "ended early"), 1);
        let name = &b.measurements[1].data.workload.name;
        assert_note(
            &notes,
            &format!("The rate had not settled at the end: {name} in"),
        );
    }

    /// Runs are named as long as a line of a terminal holds them.
    #[test]
    fn note_names_three_busy_runs_and_counts_four() {
        let mut records = Vec::new();
        for id in ["a", "b", "c", "d"] {
            let mut record = fixture_as(id);
            record.host.cpus = 4;
            record.host.load_average = Some("5.0 1.0 1.0".to_owned());
            records.push(record);
        }
        let [a, b, c, d] = &records[..] else {
            panic!("four records");
        };
        let counts = |notes: &[String]| notes.iter().any(|note| note.starts_with("4 of 4 runs"));
        assert!(!counts(&notes_of(&[a], &[b, c])));
        assert!(counts(&notes_of(&[a, d], &[b, c])));
    }
}
