//! A record or a comparison as Markdown, for tickets and pull requests: the verdict and tables.

use crate::describe::comparison::{
    MetricDetail, change_text, figure_name, interval_text, is_shown, letter, ratio_text, run_text,
    sides_text, subject_text,
};
use crate::describe::figures::{conditions, limited_by_text, shown_latency, shown_ops};
use crate::describe::run::{measured_text, promise_text, request_text, start_text};
use crate::describe::{self, inserts};
use crate::format::{Format, OutputFile, Requires};
use crate::labels;
use crate::text::clean;
use diskproof_model::block::Block;
use diskproof_model::comparison::{Comparison, MetricComparison, Side};
use diskproof_model::record::{Expectation, Record};
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format {
    extension: ".md",
    description: "the verdict and tables, for tickets and pull requests",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: Some(write_comparison),
    identity: None,
};

/// Writes the verdict, the figures, the expectations and the findings.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let title = format!(
        "{} · {}",
        request_text(&record.plan),
        start_text(&record.started)
    );
    writeln!(out, "# {}\n", cell(&title))?;
    if let Some(verdict) = &record.verdict {
        writeln!(
            out,
            "**{}** {}\n",
            cell(&verdict.headline),
            cell(&verdict.trust.why)
        )?;
    }
    if !record.measurements.is_empty() {
        let heading = [
            "workload",
            "conditions",
            "op",
            "per s",
            "± 95 %",
            "throughput",
            "p50",
            "p99",
        ];
        let mut rows = Vec::new();
        for m in &record.measurements {
            for (kind, op) in shown_ops(m) {
                let latency = shown_latency(op);
                rows.push(vec![
                    m.workload.name.clone(),
                    conditions(&m.workload),
                    kind.as_str().to_owned(),
                    op.iops.value_text(),
                    labels::interval(&op.iops),
                    op.throughput.value_text(),
                    labels::latency(latency.p50),
                    labels::latency(latency.p99),
                ]);
            }
        }
        write_table(&heading, &rows, out)?;
        for m in &record.measurements {
            if let Some(limited) = &m.limited_by {
                let text = format!("{}: {}", m.workload.name, limited_by_text(limited));
                writeln!(out, "* {}", cell(&text))?;
            }
        }
    }
    write_blocks(&describe::parts(record), out)?;
    let servers = record.postgres.iter();
    write_blocks(&servers.flat_map(inserts::blocks).collect::<Vec<_>>(), out)?;
    write_expectations(record, out)?;
    for finding in &record.findings {
        let (heading, claim) = (cell(finding.heading()), cell(&finding.claim));
        writeln!(
            out,
            "* **{}: {heading}.** {claim}",
            labels::severity(finding.severity)
        )?;
    }
    Ok(())
}

/// Charts have no form in Markdown.
fn write_blocks(blocks: &[Block], out: &mut dyn Write) -> io::Result<()> {
    for block in blocks {
        match block {
            Block::Heading(text) => writeln!(out, "\n## {}\n", cell(text))?,
            Block::Text(_, text) => writeln!(out, "{}\n", cell(text))?,
            Block::Fact(fact) => writeln!(out, "* {}: {}", cell(&fact.label), cell(&fact.text))?,
            Block::Table(table) => {
                writeln!(out)?;
                let columns: Vec<&str> = table.columns.iter().map(String::as_str).collect();
                write_table(&columns, &table.rows, out)?;
            }
            Block::Chart(_) => {}
        }
    }
    Ok(())
}

fn write_expectations(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    if record.expectations.is_empty() {
        return Ok(());
    }
    let row = |one: &Expectation| {
        let result = one.outcome().as_str().to_owned();
        vec![result, promise_text(one), measured_text(one)]
    };
    let rows: Vec<Vec<String>> = record.expectations.iter().map(row).collect();
    writeln!(out)?;
    write_table(
        &["result", "promised, allowance", "measured (95 %)"],
        &rows,
        out,
    )?;
    writeln!(out)
}

/// Writes the sides and the table of a comparison.
fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    write_side("A", &comparison.baseline, out)?;
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        let letter = letter(index);
        write_side(&letter, &candidate.side, out)?;
        writeln!(out, "\n**{}**\n", cell(&candidate.summary))?;
        let ratio = format!("{letter}/A");
        let heading = ["metric", "A", &letter, &ratio, "change", "95 %", "verdict"];
        let metrics = candidate.metrics.iter();
        let rows: Vec<Vec<String>> = metrics
            .filter(|metric| is_shown(metric, MetricDetail::Independent, candidate))
            .map(row)
            .collect();
        write_table(&heading, &rows, out)?;
        for note in &candidate.notes {
            writeln!(out, "* {}", cell(note))?;
        }
    }
    Ok(())
}

fn write_side(letter: &str, side: &Side, out: &mut dyn Write) -> io::Result<()> {
    for run in &side.runs {
        writeln!(out, "* {letter}: {}", cell(&run_text(run)))?;
    }
    Ok(())
}

fn row(metric: &MetricComparison) -> Vec<String> {
    let text = |text: fn(diskproof_model::comparison::Ratio) -> String| {
        metric.ratio.map_or(labels::UNKNOWN.to_owned(), text)
    };
    let [of_a, of_b] = sides_text(metric);
    vec![
        format!("{} {}", subject_text(metric), figure_name(metric)),
        of_a,
        of_b,
        text(ratio_text),
        text(change_text),
        text(interval_text),
        metric.verdict.as_str().to_owned(),
    ]
}

fn write_table(heading: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| {} |", heading.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(heading.len()))?;
    for row in rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)
}

/// A text without anything that Markdown or HTML would act on.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for letter in clean(text).chars() {
        match letter {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_contain_no_markup() {
        assert_eq!(cell("a|b"), "a\\|b");
        assert_eq!(cell("<img src=x> & *b*"), "&lt;img src=x&gt; &amp; \\*b\\*");
        assert_eq!(
            cell("[x](y)\n# z"),
            "\\[x\\](y)\\n\\# z".replace("\\n", "\\\\n")
        );
    }

    #[test]
    fn record_has_its_verdict_and_a_row_for_each_operation() {
        let record = crate::html::tests::record();
        let mut out = Vec::new();
        write_record(&record, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        let rows: usize = record.measurements.iter().map(|m| shown_ops(m).len()).sum();
        let lines = page.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(lines, rows + 1, "{page}");
    }

    #[test]
    fn comparisons_are_written_as_markdown_csv_and_svg() {
        let text = include_str!("../../../tests/fixtures/comparison.json");
        let comparison: Comparison = serde_json::from_str(text).unwrap();
        let written = |format: &Format| {
            let mut out = Vec::new();
            let write = format.comparison.expect("comparisons");
            write(&comparison, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let metrics: usize = comparison.candidates.iter().map(|c| c.metrics.len()).sum();
        let csv = written(&crate::csv::FORMAT);
        assert_eq!(csv.lines().count(), metrics + 1, "{csv}");
        let columns = |line: &str| line.matches(',').count();
        let heading = csv.lines().next().unwrap();
        assert!(heading.ends_with("change_percent,verdict"), "{heading}");
        assert_eq!(columns(csv.lines().last().unwrap()), columns(heading));
        let markdown = written(&FORMAT);
        assert!(
            markdown.contains("| metric | A | B | B/A | change |"),
            "{markdown}"
        );
        let svg = written(&crate::svg::FORMAT);
        assert!(svg.contains("<svg") && svg.contains("<circle"), "{svg}");
    }
}
