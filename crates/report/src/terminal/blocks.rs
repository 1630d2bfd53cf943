//! Writes blocks on a terminal page.

use super::graph::write_graph;
use super::grid::write_grid;
use super::ping::write_ping;
use super::scan::write_scan;
use crate::chart::charts;
use crate::labels;
use crate::page::{INDENT, Page};
use crate::text::columns;
use diskproof_model::block::{Block, Fact, Tone};
use diskproof_model::finding::Finding;
use diskproof_model::record::Record;

/// A label that needs a larger indent does not widen that of the other facts; its own text then
/// starts further right.
const INDENT_MAX: usize = 24;

/// Writes blocks. An empty line precedes each group of them. Charts are drawn from the record, and
/// skipped without one.
pub(super) fn write_blocks(page: &mut Page<'_>, record: Option<&Record>, blocks: &[Block]) {
    let mut before = None;
    for (index, block) in blocks.iter().enumerate() {
        if begins_group(before, block) {
            page.blank();
        }
        before = Some(block);
        match block {
            Block::Heading(text) => page.text(Tone::Bold.span(text)),
            Block::Text(tone, text) => page.text(tone.span(text)),
            Block::Fact(fact) => {
                let label = fact.tone.span(&fact.label);
                let text = Tone::Plain.span(&fact.text);
                page.entry(label, fact_indent(blocks, index), text);
            }
            Block::Table(table) => write_grid(page, table),
            Block::Finding(finding) => write_finding(page, finding),
            Block::Command { what, text } => {
                page.unbroken(Tone::Bold.span(format!("# {what}")));
                page.unbroken(Tone::Plain.span(text));
            }
            Block::Chart(id) => write_chart(page, record, id),
            Block::Ping(index) => write_measured_ping(page, record, *index),
            Block::Scan => write_measured_scan(page, record),
        }
    }
}

/// True if an empty line precedes a block. Texts and facts follow what is before them, and a
/// heading is close to its block.
fn begins_group(before: Option<&Block>, block: &Block) -> bool {
    match (before, block) {
        (None, _) | (Some(Block::Heading(_)), _) => false,
        (_, Block::Heading(_)) => true,
        (_, Block::Table(_) | Block::Chart(_) | Block::Ping(_)) => true,
        (Some(Block::Chart(_)), Block::Fact(_)) => true,
        _ => false,
    }
}

/// The indent of a fact's text. Consecutive facts have a common one.
fn fact_indent(blocks: &[Block], index: usize) -> usize {
    let mut indent = INDENT;
    for fact in facts_around(blocks, index) {
        let width = columns(&fact.label) + 2;
        if width <= INDENT_MAX {
            indent = indent.max(width);
        }
    }
    indent
}

/// The facts that directly follow or precede this block, itself among them.
fn facts_around(blocks: &[Block], index: usize) -> Vec<&Fact> {
    let (before, after) = blocks.split_at(index);
    let mut facts = leading_facts(before.iter().rev());
    facts.extend(leading_facts(after.iter()));
    facts
}

fn leading_facts<'b>(blocks: impl Iterator<Item = &'b Block>) -> Vec<&'b Fact> {
    let mut facts = Vec::new();
    for block in blocks {
        let Block::Fact(fact) = block else {
            break;
        };
        facts.push(fact);
    }
    facts
}

fn write_finding(page: &mut Page<'_>, finding: &Finding) {
    let tone = crate::describe::findings::severity_tone(finding.severity);
    let heading = match &finding.title {
        Some(title) => format!("{title} ({})", finding.code),
        None => finding.code.clone(),
    };
    let label = tone.span(labels::severity(finding.severity));
    page.entry(label, INDENT, Tone::Bold.span(heading));
    for text in [&finding.claim, &format!("→ {}", finding.remedy)] {
        page.entry(Tone::Plain.span(""), INDENT, Tone::Plain.span(text));
    }
}

/// Writes the chart of the record with this id, if it has one.
fn write_chart(page: &mut Page<'_>, record: Option<&Record>, id: &str) {
    let Some(record) = record else { return };
    for chart in charts(record) {
        if chart.id == id {
            write_graph(page, &chart);
        }
    }
}

/// Writes the single requests of the measurement with this index, if it has them.
fn write_measured_ping(page: &mut Page<'_>, record: Option<&Record>, index: usize) {
    if let Some(record) = record
        && let Some(row) = record.measurements.get(index)
        && let Some(ping) = &row.figures.ping
    {
        write_ping(page, row, ping);
    }
}

/// Writes the scan of the record, if it has one.
fn write_measured_scan(page: &mut Page<'_>, record: Option<&Record>) {
    if let Some(record) = record
        && let Some(surface) = record.surface()
        && let Some(scan) = &surface.data.scan
    {
        write_scan(page, scan, surface.data.span_start_bytes);
    }
}
