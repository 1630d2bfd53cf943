//! The result page: what a database administrator reads, trusts, and pastes into a ticket.

use super::figures::write_figures;
use super::subject::{INDENT, fact, host_text, write_health, write_target};
use super::surface::write_surface;
use crate::page::{Ink, Page};
use crate::style::Style;
use crate::text::{glue, list};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::plan::{EngineKind, Origin, Plan};
use diskproof_model::record::{Advice, Expectation, MeasurementRecord, Record};
use diskproof_model::units::{format_duration, format_latency, format_rate, format_throughput};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Writes the whole result of a run.
pub fn write_record(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    write_title(page, record)?;
    let used = record
        .measurements
        .iter()
        .map(|m| m.target)
        .chain(record.surface.iter().map(|surface| surface.target));
    let last = used
        .map(|target| target + 1)
        .max()
        .unwrap_or(0)
        .max(record.targets.len());
    for index in 0..last {
        write_subject(page, record, index)?;
    }
    write_expectations(page, &record.expectations)?;
    write_meaning(page, record)?;
    write_advice(page, &record.advice)?;
    page.blank()?;
    let run = format!(
        "run {} · method {} · seed {}",
        record.run_id, record.method, record.plan.seed
    );
    page.text(Ink::Faint, &run)?;
    page.text(
        Ink::Faint,
        "every figure's own command: --commands · all data: --json",
    )
}

/// Who measured what, when; loud where the run is not whole.
fn write_title(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let tool = format!("{} {}", record.tool.name, record.tool.version);
    let took = format_duration(record.elapsed_ns());
    let title = [
        glue(&tool),
        asked_text(&record.plan),
        glue(&start_text(&record.started)),
        glue(&took),
    ];
    page.text(Ink::Strong, &title.join(" · "))?;
    if record.partial || record.ended_early.is_some() {
        let why = record
            .ended_early
            .as_deref()
            .unwrap_or("the run ended before its plan did; what was measured until then follows");
        page.entry((Ink::Alarm, "PARTIAL"), INDENT, (Ink::Alarm, why))?;
    }
    page.blank()?;
    fact(page, "host", &host_text(&record.host))?;
    match &record.note {
        Some(note) => fact(page, "note", note),
        None => Ok(()),
    }
}

/// The verb and its targets.
pub(crate) fn asked_text(plan: &Plan) -> String {
    let Origin::Native { verb, .. } = &plan.origin;
    format!("{verb} {}", plan.targets.join(", "))
}

/// `2026-11-20T10:00:00Z` for people; anything else stays as it is.
pub(crate) fn start_text(started: &str) -> String {
    match (
        started.get(..10),
        started.get(10..11),
        started.get(11..16),
        started.ends_with('Z'),
    ) {
        (Some(day), Some("T"), Some(minute), true) => format!("{day} {minute} UTC"),
        _ => started.to_owned(),
    }
}

/// One target: what it is, its figures, and what is missing among them.
fn write_subject(page: &mut Page<'_>, record: &Record, index: usize) -> io::Result<()> {
    let measurements: Vec<&MeasurementRecord> = record
        .measurements
        .iter()
        .filter(|m| m.target == index)
        .collect();
    if record.targets.len() > 1 {
        page.blank()?;
    }
    if let Some(target) = record.targets.get(index) {
        if record.targets.len() > 1 {
            page.text(
                Ink::Strong,
                &format!(
                    "target {} of {}: {}",
                    index + 1,
                    record.targets.len(),
                    target.path
                ),
            )?;
        }
        write_target(page, target, &record.plan)?;
        write_health(page, target, &record.health)?;
    }
    write_engines(page, &measurements)?;
    write_proof(page, record, index, &measurements)?;
    write_gaps(page, &record.plan, &measurements)?;
    if let Some(surface) = record
        .surface
        .as_ref()
        .filter(|surface| surface.target == index)
    {
        write_surface(page, record, surface)?;
    }
    if measurements.is_empty() {
        return Ok(());
    }
    page.blank()?;
    write_figures(page, &measurements)
}

/// The kernel interfaces that carried the operations; the most used one without a list of its
/// workloads.
fn write_engines(page: &mut Page<'_>, measurements: &[&MeasurementRecord]) -> io::Result<()> {
    let mut engines: Vec<(EngineKind, Vec<&str>)> = Vec::new();
    for workload in measurements.iter().map(|m| &m.workload) {
        match engines
            .iter_mut()
            .find(|(engine, _)| *engine == workload.engine)
        {
            Some((_, names)) => names.push(&workload.name),
            None => engines.push((workload.engine, vec![&workload.name])),
        }
    }
    engines.sort_by_key(|(_, names)| Reverse(names.len()));
    let texts = engines
        .iter()
        .enumerate()
        .map(|(index, (engine, names))| match index {
            0 => engine.as_str().to_owned(),
            _ => format!("{} for {}", engine.as_str(), list(names)),
        });
    let text = texts.collect::<Vec<_>>().join("; ");
    if text.is_empty() {
        Ok(())
    } else {
        fact(page, "engine", &text)
    }
}

/// Whether the figures came from the disk, by the disk's own counters.
fn write_proof(
    page: &mut Page<'_>,
    record: &Record,
    index: usize,
    measurements: &[&MeasurementRecord],
) -> io::Result<()> {
    let surveyed = record
        .surface
        .iter()
        .filter(|surface| surface.target == index)
        .map(|surface| &surface.device);
    let devices = || {
        measurements
            .iter()
            .map(|m| &m.device)
            .chain(surveyed.clone())
    };
    let why: BTreeSet<&str> = devices()
        .filter(|d| d.accounted.is_none())
        .filter_map(|d| d.unresolved.as_deref())
        .collect();
    let unknown = (!why.is_empty()).then(|| {
        format!(
            "unknown what the disk did: {}",
            Vec::from_iter(why).join("; ")
        )
    });
    let known = record.accounted_range(index).map(|(low, high)| {
        let disks: BTreeSet<&str> = devices()
            .flat_map(|device| &device.disks)
            .map(String::as_str)
            .collect();
        let (low, high) = (
            glue(&format!("{:.1} %", low * 100.0)),
            glue(&format!("{:.1} %", high * 100.0)),
        );
        let share = if low == high {
            low
        } else {
            format!("{low} to {high}")
        };
        format!(
            "the kernel's counters of {} saw {share} of the bytes asked",
            Vec::from_iter(disks).join(", ")
        )
    });
    match (known, unknown) {
        (None, None) => Ok(()),
        (Some(known), Some(unknown)) => fact(page, "proof", &format!("{known}; in part {unknown}")),
        (Some(text), None) | (None, Some(text)) => fact(page, "proof", &text),
    }
}

/// What the plan left out or did not come to, a line per reason.
fn write_gaps(
    page: &mut Page<'_>,
    plan: &Plan,
    measurements: &[&MeasurementRecord],
) -> io::Result<()> {
    write_skipped(page, plan)?;
    let is_measured = |name: &str| measurements.iter().any(|m| m.workload.name == name);
    let missing: Vec<&str> = plan
        .workloads
        .iter()
        .map(|w| w.name.as_str())
        .filter(|name| !is_measured(name))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        page.entry(
            (Ink::Alarm, "not run"),
            INDENT,
            (Ink::Plain, &list(missing)),
        )
    }
}

/// The workloads that were left out, a line per reason.
pub(super) fn write_skipped(page: &mut Page<'_>, plan: &Plan) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for skipped in &plan.skipped {
        match reasons.iter_mut().find(|(why, _)| *why == skipped.why) {
            Some((_, names)) => names.push(&skipped.workload),
            None => reasons.push((&skipped.why, vec![&skipped.workload])),
        }
    }
    reasons
        .into_iter()
        .try_for_each(|(why, names)| fact(page, "skipped", &format!("{}: {why}", list(names))))
}

/// What the user demanded.
fn write_expectations(page: &mut Page<'_>, expectations: &[Expectation]) -> io::Result<()> {
    if expectations.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(Ink::Strong, "expectations")?;
    for expectation in expectations {
        let (label, ink) = if expectation.met {
            ("  met", Ink::Plain)
        } else {
            ("  MISSED", Ink::Alarm)
        };
        let observed = match expectation.observed {
            Some(value) => format!("measured {}", observed_text(&expectation.expression, value)),
            None => "not measured".to_owned(),
        };
        page.entry(
            (ink, label),
            10,
            (
                Ink::Plain,
                &format!("{} ({})", expectation.expression, glue(&observed)),
            ),
        )?;
    }
    Ok(())
}

/// An observed value in the unit of its metric: the name after the last dot before the comparison.
pub(crate) fn observed_text(expression: &str, value: f64) -> String {
    let figure = expression
        .split(['<', '>', '='])
        .next()
        .unwrap_or_default()
        .trim();
    // `p99.9` holds a dot of its own.
    let metric = figure.split_once('.').map_or(figure, |(_, metric)| metric);
    if figure.starts_with("curve.") {
        return format_throughput(value);
    }
    let metric = metric
        .trim_start_matches("read.")
        .trim_start_matches("write.")
        .trim_start_matches("commit.");
    match metric {
        "iops" => format!("{}/s", format_rate(value)),
        "throughput" => format_throughput(value),
        m if ["p50", "p90", "p99", "max", "mean", "min"]
            .iter()
            .any(|name| m.starts_with(name)) =>
        {
            format_latency(value.round() as u64)
        }
        _ => value.to_string(),
    }
}

/// What it means, or that nothing was found.
fn write_meaning(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    if record.findings.is_empty() {
        page.blank()?;
        let none = if record.partial {
            "none in what was measured"
        } else {
            "none: nothing was seen that puts these figures in doubt"
        };
        return page.entry((Ink::Strong, "findings"), 10, (Ink::Plain, none));
    }
    write_findings(page, &record.findings)
}

/// Findings, each with what to do.
pub(super) fn write_findings(page: &mut Page<'_>, findings: &[Finding]) -> io::Result<()> {
    page.blank()?;
    page.text(Ink::Strong, "findings")?;
    for finding in findings {
        let (label, ink) = match finding.severity {
            Severity::Failure => ("  failure", Ink::Alarm),
            Severity::Warning => ("  warning", Ink::Caution),
            Severity::Note => ("  note", Ink::Hint),
        };
        page.entry(
            (ink, label),
            11,
            (Ink::Plain, &format!("{}: {}", finding.code, finding.claim)),
        )?;
        page.entry(
            (Ink::Plain, ""),
            11,
            (Ink::Plain, &format!("What to do: {}", finding.remedy)),
        )?;
    }
    Ok(())
}

/// What to set.
fn write_advice(page: &mut Page<'_>, advice: &[Advice]) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(Ink::Strong, "advice for postgresql.conf")?;
    for item in advice {
        let value = match (&item.value, item.range) {
            (Some(value), None) => format!("= {value}"),
            (Some(value), Some([low, high])) => format!("= {value} (from {low} to {high})"),
            (None, Some([low, high])) => format!("from {low} to {high}"),
            (None, None) => "leave it alone".to_owned(),
        };
        page.entry(
            (Ink::Strong, &format!("  {}", item.setting)),
            4,
            (Ink::Strong, &value),
        )?;
        let from = if item.from.is_empty() {
            String::new()
        } else {
            format!(" (from {})", list(&item.from))
        };
        page.entry(
            (Ink::Plain, ""),
            4,
            (Ink::Plain, &format!("{}{from}", item.why)),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observed_value_carries_the_unit_of_its_metric() {
        assert_eq!(
            observed_text("random-read-d32.iops>=5000", 8213.4),
            "8213/s"
        );
        assert_eq!(
            observed_text("commit-fdatasync.p99.9<=5ms", 8_210_000.0),
            "8.21 ms"
        );
        assert_eq!(
            observed_text("mixed-random.read.p99 < 5ms", 8_210_000.0),
            "8.21 ms"
        );
        assert_eq!(
            observed_text("sequential-read.throughput>=1GB", 1.234e9),
            "1234 MB/s"
        );
        assert_eq!(observed_text("curve.min>=80MB/s", 49e6), "49.0 MB/s");
        assert_eq!(observed_text("access.mean<=15ms", 14_900_000.0), "14.9 ms");
        assert_eq!(observed_text("x.other>1", 0.5), "0.5");
    }

    #[test]
    fn the_start_reads_like_a_date() {
        assert_eq!(start_text("2026-11-20T10:00:00Z"), "2026-11-20 10:00 UTC");
        assert_eq!(
            start_text("2026-11-20T10:00:00+02:00"),
            "2026-11-20T10:00:00+02:00"
        );
        assert_eq!(start_text("früher"), "früher");
    }
}
