//! The result page. An administrator decides from the first screen: verdict, figures, findings,
//! advice. Details of the machine and the method come last.

use super::advice::write_advice;
use super::blocks::write_blocks;
use super::details::write_details;
use super::facts::fact;
use super::figures::write_figures;
use super::findings::write_findings;
use super::ping::write_ping;
use super::scan::write_scan;
use super::sweep::write_sweep;
use super::verdict::{write_caveats, write_grades, write_verdict};
use crate::describe::run::{
    decision_text, measured_text, not_run, partial_text, promise_text, request_text, skipped,
    start_text,
};
use crate::describe::target::disk_name;
use crate::describe::{files, inserts, latency_search, layers, observed, surface};
use crate::page::{Page, TextStyle};
use crate::style::Style;
use crate::table::{Align, Columns};
use crate::text::{glue, list};
use diskproof_model::plan::Plan;
use diskproof_model::record::{Expectation, ExpectationOutcome, MeasurementRecord, Record};
use diskproof_model::units::format_duration;
use std::io::{self, Write};

/// Column at which the text of an expectation begins.
const EXPECTATION_INDENT: usize = 13;

/// Writes the whole result of a run.
pub fn write_record(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    write_title(page, record)?;
    write_verdict(page, record)?;
    write_expectations(page, &record.expectations)?;
    if let Some(sweep) = &record.sweep {
        write_sweep(page, record, sweep)?;
    } else if let Some(of) = &record.files {
        write_blocks(page, record, &files::blocks(record, of))?;
    } else if let Some(of) = &record.layers {
        write_blocks(page, record, &layers::blocks(record, of))?;
    } else if let Some(of) = &record.observed {
        write_blocks(page, record, &observed::blocks(of))?;
    } else {
        if let Some(search) = &record.latency_search {
            write_blocks(page, record, &latency_search::blocks(record, search))?;
        }
        for target in 0..targets(record) {
            write_target(page, record, target)?;
        }
        write_skipped(page, &record.plan)?;
    }
    write_caveats(page, record)?;
    write_blocks(page, record, &observed::likeness(record))?;
    if let Some(postgres) = &record.postgres {
        write_blocks(page, record, &inserts::blocks(postgres))?;
    }
    write_findings(page, &record.findings)?;
    write_advice(page, &record.advice)?;
    write_details(page, record)?;
    write_end(page, record)
}

/// The run, and where more is.
fn write_end(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    page.blank()?;
    let run = format!(
        "run {} · method {} · seed {}",
        record.run_id, record.method, record.plan.seed
    );
    page.text(TextStyle::Dim.of(run))?;
    page.text(
        TextStyle::Dim.of("commands that reproduce each figure: --commands · all data: --json"),
    )
}

/// Request, time and disk; emphasised if the run is partial.
fn write_title(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let title = [
        glue(&format!("{} {}", record.tool.name, record.tool.version)),
        request_text(&record.plan),
        glue(&start_text(&record.started)),
        glue(&format_duration(record.elapsed_ns())),
    ];
    page.text(TextStyle::Bold.of(title.join(" · ")))?;
    let disks = record.targets.iter().flat_map(|target| target.disks());
    let mut names: Vec<String> = Vec::new();
    for name in disks.map(disk_name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let host = format!("host {}", record.host.name);
    let subject: Vec<String> = names.into_iter().chain([host]).collect();
    page.text(TextStyle::Dim.of(subject.join(" · ")))?;
    if let Some(note) = &record.note {
        page.text(TextStyle::Dim.of(format!("note: {note}")))?;
    }
    if let Some(why) = partial_text(record) {
        page.entry(TextStyle::Error.of("PARTIAL"), 9, TextStyle::Error.of(why))?;
    }
    Ok(())
}

/// Targets with an identity or with figures.
fn targets(record: &Record) -> usize {
    let measured = record.measurements.iter().map(|m| m.target);
    let surveyed = record.surface.iter().map(|surface| surface.target);
    let last = measured.chain(surveyed).max();
    last.map_or(0, |last| last + 1).max(record.targets.len())
}

/// The figures of one target, and its missing workloads.
fn write_target(page: &mut Page<'_>, record: &Record, index: usize) -> io::Result<()> {
    let measurements: Vec<&MeasurementRecord> = record
        .measurements
        .iter()
        .filter(|m| m.target == index)
        .collect();
    if let [_, _, ..] = record.targets.as_slice()
        && let Some(target) = record.targets.get(index)
    {
        page.blank()?;
        let of = record.targets.len();
        let heading = format!("target {} of {of}: {}", index + 1, target.path);
        page.text(TextStyle::Bold.of(heading))?;
        write_grades(page, record, index)?;
    }
    let surveyed = record.surface.as_ref().filter(|s| s.target == index);
    if let Some(of) = surveyed {
        write_blocks(page, record, &surface::blocks(record, of))?;
        if let Some(scan) = &of.scan {
            write_scan(page, scan, of.span_start_bytes)?;
        }
    }
    let (pinged, measured): (Vec<_>, Vec<_>) =
        measurements.into_iter().partition(|m| m.ping.is_some());
    for m in pinged {
        if let Some(ping) = &m.ping {
            page.blank()?;
            write_ping(page, m, ping)?;
        }
    }
    if !measured.is_empty() {
        page.blank()?;
        write_figures(page, &measured)?;
    }
    let missing = not_run(record, index);
    if !missing.is_empty() {
        page.text(TextStyle::Error.of(format!("not run: {}", list(missing))))?;
    }
    Ok(())
}

/// The workloads that the plan skips, a line per reason.
pub(super) fn write_skipped(page: &mut Page<'_>, plan: &Plan) -> io::Result<()> {
    for (why, names) in skipped(plan) {
        fact(page, "skipped", &format!("{}: {why}", list(names)))?;
    }
    Ok(())
}

/// What was promised, in a table; one below the other where that is too wide.
fn write_expectations(page: &mut Page<'_>, expectations: &[Expectation]) -> io::Result<()> {
    if expectations.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of("promised and measured"))?;
    let heading = ["promised, allowance", "measured (95 % interval)"].map(str::to_owned);
    let rows: Vec<Vec<String>> = std::iter::once(heading.to_vec())
        .chain(
            expectations
                .iter()
                .map(|one| vec![promise_text(one), measured_text(one)]),
        )
        .collect();
    let width = page.width().saturating_sub(EXPECTATION_INDENT);
    let table = Columns::fit(&[Align::Left; 2], &rows, width);
    if let Some(table) = &table {
        let result = format!("{:EXPECTATION_INDENT$}", "  result");
        let line = [result, table.line(&rows[0])].concat();
        page.unbroken(TextStyle::Dim.of(line))?;
    }
    for (expectation, row) in expectations.iter().zip(&rows[1..]) {
        let label = match expectation.outcome() {
            ExpectationOutcome::Met => TextStyle::Good.of("  met"),
            ExpectationOutcome::Undecided => TextStyle::Warning.of("  UNDECIDED"),
            ExpectationOutcome::Missed => TextStyle::Error.of("  MISSED"),
        };
        if let Some(table) = &table {
            let gap = " ".repeat(EXPECTATION_INDENT.saturating_sub(label.text.len()));
            let rest = [gap, table.line(row)].concat();
            page.pieces(&[label, TextStyle::Plain.of(rest)])?;
        } else {
            let text = format!("{} ({})", row[0], glue(&row[1]));
            page.entry(label, EXPECTATION_INDENT, TextStyle::Plain.of(text))?;
        }
        if let Some(how) = decision_text(expectation) {
            let none = TextStyle::Dim.of(String::new());
            page.entry(none, EXPECTATION_INDENT, TextStyle::Dim.of(how))?;
        }
    }
    Ok(())
}
