//! Writes the report of a verification as a page of 80 columns. Pure.

use crate::judge::{CutReport, CutVerdict, NotProvenReason, StreamOutcome};
use crate::rehearsal::RehearsedCut;
use crate::run::{RunDescription, StreamKind, short_id};
use diskproof_model::units::counted;
use std::io::{self, Write};

/// Writes the page. `command` is the command with which the user can decide what is not proven. It
/// stands in a line of its own, however long it is. There is none for the run of another host.
pub fn write_report(
    report: &CutReport,
    run: &RunDescription,
    command: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let verdict = verdict_text(report, command);
    writeln!(out, "{}", verdict.headline)?;
    for line in wrapped_lines(verdict.meaning) {
        writeln!(out, "  {line}")?;
    }
    if let Some(command) = command {
        writeln!(out, "    {command}")?;
    }
    writeln!(out)?;
    writeln!(out, "  run      {} of {}", short_id(&run.run), run.host)?;
    writeln!(out, "  target   {}", run.target.path)?;
    let (seconds, method) = (report.reported_seconds, run.method.name());
    writeln!(out, "  written  {seconds:.1} s, pages by {method}")?;
    let restarted = match report.has_restarted {
        Some(true) => "the machine has restarted since",
        Some(false) => "the machine has not restarted since",
        None => "unknown whether the machine restarted",
    };
    writeln!(out, "  restart  {restarted}\n")?;
    if report.reason.is_some_and(NotProvenReason::voids_damage) {
        write_acknowledged(report, out)?;
    } else {
        write_damage(report, out)?;
    }
    let is_lying = report.verdict == CutVerdict::Lying;
    if report.has_trace {
        let (gone, places) = (report.control_vanished, report.control_places);
        writeln!(
            out,
            "\n  {gone} of {places} control pages, written without a sync, vanished."
        )?;
    } else {
        let again = if is_lying {
            " If it was wiped since, test again."
        } else {
            ""
        };
        writeln!(out, "\n  Nothing of the run is left on the target.{again}")?;
    }
    if is_lying {
        let seconds = report.lost_seconds;
        writeln!(out, "  {seconds:.3} s of acknowledged work are unreliable.")?;
    }
    Ok(())
}

/// Writes the table of acknowledged writes where nothing follows from those that are missing.
fn write_acknowledged(report: &CutReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:>34}", "acknowledged")?;
    for row in rows_by_kind(report) {
        writeln!(out, "  {:<18}{:>14}", row.kind.title(), row.acknowledged)?;
    }
    Ok(())
}

/// Writes the table of acknowledged writes and of those that are damaged.
fn write_damage(report: &CutReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>34}{:>11}{:>11}{:>11}",
        "acknowledged", "lost", "stale", "torn"
    )?;
    for row in rows_by_kind(report) {
        let title = row.kind.title();
        let (lost, stale, torn) = (row.lost, row.stale, row.torn);
        writeln!(
            out,
            "  {title:<18}{:>14}{lost:>11}{stale:>11}{torn:>11}",
            row.acknowledged
        )?;
    }
    Ok(())
}

/// Writes the table of a rehearsal.
pub fn write_rehearsal(cuts: &[RehearsedCut], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<26}{:<12}{:>13}{:>10}{:>9}  judged",
        "disk", "verdict", "acknowledged", "damaged", "seconds"
    )?;
    for cut in cuts {
        let acknowledged: u64 = cut.report.streams.iter().map(|s| s.acknowledged).sum();
        let damaged: u64 = cut.report.streams.iter().map(|s| s.damaged()).sum();
        writeln!(
            out,
            "{:<26}{:<12}{:>13}{:>10}{:>9.3}  {}",
            cut.disk,
            verdict_word(cut.report.verdict),
            acknowledged,
            damaged,
            cut.report.lost_seconds,
            if cut.is_right { "rightly" } else { "WRONGLY" }
        )?;
    }
    let right = cuts.iter().filter(|cut| cut.is_right).count();
    writeln!(
        out,
        "\n{right} of {} judged correctly:\nverdict and losses match the disk's own counts.",
        counted(cuts.len() as u64, "simulated power cut")
    )
}

fn verdict_word(verdict: CutVerdict) -> &'static str {
    match verdict {
        CutVerdict::Honest => "honest",
        CutVerdict::Lying => "lying",
        CutVerdict::NotProven => "not proven",
    }
}

/// A row of the table: the writes of all streams of one kind.
struct KindRow {
    kind: StreamKind,
    acknowledged: u64,
    lost: u64,
    stale: u64,
    torn: u64,
}

/// Returns one row for each kind of stream, in the order of the report. Each worker has a stream of
/// the same kind, so their counts are added.
fn rows_by_kind(report: &CutReport) -> Vec<KindRow> {
    let mut rows: Vec<KindRow> = Vec::new();
    for stream in &report.streams {
        match rows.iter_mut().find(|row| row.kind == stream.kind) {
            Some(row) => {
                row.acknowledged += stream.acknowledged;
                row.lost += stream.lost;
                row.stale += stream.stale;
                row.torn += stream.torn;
            }
            None => rows.push(KindRow {
                kind: stream.kind,
                acknowledged: stream.acknowledged,
                lost: stream.lost,
                stale: stream.stale,
                torn: stream.torn,
            }),
        }
    }
    rows
}

/// A verdict for the user.
struct VerdictText {
    headline: String,
    /// The meaning, and what to do.
    meaning: &'static str,
}

fn verdict_text(report: &CutReport, command: Option<&str>) -> VerdictText {
    match report.verdict {
        CutVerdict::Lying => {
            let streams = report.streams.iter();
            let damaged: u64 = streams.map(StreamOutcome::damaged).sum();
            let writes = counted(damaged, "acknowledged write");
            VerdictText {
                headline: format!("LYING: {writes} did not survive"),
                meaning: "The disk, or a layer above it, reported these writes as durable. In a \
                          power cut, a database on it loses committed transactions or is \
                          damaged. Switch the write cache off, or use a disk with power-loss \
                          protection.",
            }
        }
        CutVerdict::Honest => VerdictText {
            headline: "HONEST: every acknowledged write survived the cut".to_owned(),
            meaning: "The disk lost writes that it had only accepted, so its power was cut. No \
                      write that it had reported as durable is missing. Repeat the test: three \
                      cuts prove more than one.",
        },
        CutVerdict::NotProven => VerdictText {
            headline: "NOT PROVEN: no conclusion is possible".to_owned(),
            meaning: match (report.reason, command) {
                (Some(NotProvenReason::NoTrace), None) => {
                    "The target has no data of the run, which another host wrote. Verify it on \
                     that host."
                }
                (reason, _) => not_proven_meaning(reason),
            },
        },
    }
}

fn not_proven_meaning(reason: Option<NotProvenReason>) -> &'static str {
    match reason {
        Some(NotProvenReason::Stopped) => {
            "The writer was stopped before the cut. Start it again, and cut the power while it \
             writes."
        }
        Some(NotProvenReason::NothingAcknowledged) => {
            "The log has no acknowledged write of this run. Let the writer run for some seconds \
             before the cut."
        }
        Some(NotProvenReason::NoEvidence) => {
            "Every acknowledged write is there. A power loss cannot be observed on this target: \
             its filesystem has no direct I/O or does not write in place, or a layer below keeps \
             accepted writes in memory, where a reset loses them, too. Test a disk or partition, \
             or a directory on ext4 or xfs on one."
        }
        Some(NotProvenReason::NoTrace) => {
            "The target has no data of the run: it is a different target, was overwritten, the \
             files of the run were removed, or it lost everything. Nothing on it tells these \
             apart. If only the last is possible, decide it:"
        }
        Some(NotProvenReason::LogBehind) => {
            "The target has newer writes than the log. The run is still writing, or the log lost \
             its last reports. Stop the writer, or verify against the complete log."
        }
        Some(NotProvenReason::Overwritten) => {
            "The pages of this run have those of one that started later, by its clock, in their \
             place: it wrote over them, so nothing shows what the disk had kept. Verify that run, \
             or test again."
        }
        Some(NotProvenReason::NothingVanished) | None => {
            "Every acknowledged write is there, and so is every write that the disk had only \
             accepted. The disk kept its power (a reset or reboot does not cut it), has no \
             volatile cache, or has a protected cache."
        }
    }
}

/// Breaks a text into lines that fit a page of 80 columns with an indent of two.
fn wrapped_lines(text: &str) -> Vec<String> {
    /// 80 without the indent on both sides.
    const COLUMNS: usize = 76;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.len() + 1 + word.len() > COLUMNS {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;

    #[test]
    fn page_of_a_run_of_another_host_asks_nobody_to_decide() {
        let report = CutReport {
            verdict: CutVerdict::NotProven,
            reason: Some(NotProvenReason::NoTrace),
            run: example().run,
            reported_seconds: 4.0,
            lost_seconds: 0.0,
            streams: Vec::new(),
            has_trace: false,
            control_accepted: 0,
            control_places: 0,
            control_vanished: 0,
            is_control_evidence: true,
            has_restarted: None,
        };
        for (command, shown) in [(Some("it"), "decide it:"), (None, "another host wrote")] {
            let mut out = Vec::new();
            write_report(&report, &example(), command, &mut out).unwrap();
            let page = String::from_utf8(out).unwrap();
            assert!(page.contains(shown), "{page}");
        }
    }

    /// A run that was stopped has removed its files.
    #[test]
    fn page_shows_lost_writes_only_where_they_prove_something() {
        use NotProvenReason::{
            LogBehind, NoEvidence, NoTrace, NothingAcknowledged, NothingVanished, Overwritten,
            Stopped,
        };
        let shows_lost = |reason| {
            let report = CutReport {
                verdict: CutVerdict::NotProven,
                reason: Some(reason),
                run: example().run,
                reported_seconds: 4.0,
                lost_seconds: 4.0,
                streams: vec![StreamOutcome {
                    kind: StreamKind::Pages,
                    acknowledged: 70,
                    lost: 26,
                    stale: 0,
                    torn: 0,
                    first_damaged: Some(45),
                }],
                has_trace: true,
                control_accepted: 0,
                control_places: 0,
                control_vanished: 0,
                is_control_evidence: true,
                has_restarted: None,
            };
            let mut out = Vec::new();
            write_report(&report, &example(), None, &mut out).unwrap();
            let page = String::from_utf8(out).unwrap();
            assert!(page.contains(" 70\n") || page.contains(" 70 "), "{page}");
            page.contains(" 26 ")
        };
        for reason in [
            Stopped,
            NothingAcknowledged,
            NoTrace,
            LogBehind,
            Overwritten,
        ] {
            assert!(!shows_lost(reason), "{reason:?}");
        }
        for reason in [NothingVanished, NoEvidence] {
            assert!(shows_lost(reason), "{reason:?}");
        }
    }

    #[test]
    fn page_counts_control_pages_only_where_something_of_the_run_is_left() {
        let page = |has_trace| {
            let report = CutReport {
                verdict: CutVerdict::Lying,
                reason: None,
                run: example().run,
                reported_seconds: 4.0,
                lost_seconds: 4.0,
                streams: Vec::new(),
                has_trace,
                control_accepted: 65_000,
                control_places: 512,
                control_vanished: 0,
                is_control_evidence: true,
                has_restarted: None,
            };
            let mut out = Vec::new();
            write_report(&report, &example(), None, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(page(true).contains(" 0 of 512 "));
        assert!(!page(false).contains("512"));
    }
}
