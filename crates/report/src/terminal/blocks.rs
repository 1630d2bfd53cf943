//! Blocks on a terminal page.

use super::graph::write_graph;
use super::grid::write_grid;
use super::ping::write_ping;
use super::scan::write_scan;
use crate::chart::charts;
use crate::labels;
use crate::page::{INDENT, Page, TextStyle};
use crate::text::columns;
use diskproof_model::block::Block;
use diskproof_model::finding::Finding;
use diskproof_model::record::Record;

/// A longer label moves the first line of its text.
const INDENT_MAX: usize = 24;

/// Writes the blocks; what begins a group of them follows an empty line. Charts need the record.
pub(super) fn write_blocks(page: &mut Page<'_>, record: Option<&Record>, blocks: &[Block]) {
    let mut before = None;
    for (index, block) in blocks.iter().enumerate() {
        if begins_group(before, block) {
            page.blank();
        }
        before = Some(block);
        match block {
            Block::Heading(text) => page.text(TextStyle::Bold.of(text)),
            Block::Text(tone, text) => page.text(tone.of(text)),
            Block::Fact(fact) => {
                let (label, text) = (fact.tone.of(&fact.label), TextStyle::Plain.of(&fact.text));
                page.entry(label, indent(blocks, index), text);
            }
            Block::Table(table) => write_grid(page, table),
            Block::Finding(finding) => write_finding(page, finding),
            Block::Command { what, text } => {
                page.unbroken(TextStyle::Bold.of(format!("# {what}")));
                page.unbroken(TextStyle::Plain.of(text));
            }
            Block::Chart(_) | Block::Ping(_) | Block::Scan => {
                if let Some(record) = record {
                    write_drawing(page, record, block);
                }
            }
        }
    }
}

/// Texts and facts follow what is before them; a heading stands close to what it names.
fn begins_group(before: Option<&Block>, block: &Block) -> bool {
    match (before, block) {
        (None, _) | (Some(Block::Heading(_)), _) => false,
        (_, Block::Heading(_)) => true,
        (_, Block::Table(_) | Block::Chart(_) | Block::Ping(_)) => true,
        (Some(Block::Chart(_)), Block::Fact(_)) => true,
        _ => false,
    }
}

/// Facts that follow each other have one indent.
fn indent(blocks: &[Block], index: usize) -> usize {
    let is_fact = |block: &&Block| matches!(block, Block::Fact(_));
    let before = blocks[..index].iter().rev().take_while(is_fact);
    let run = blocks[index..].iter().take_while(is_fact).chain(before);
    let widths = run.filter_map(|block| match block {
        Block::Fact(fact) => Some(columns(&fact.label) + 2),
        _ => None,
    });
    let fitting = widths.filter(|width| *width <= INDENT_MAX);
    fitting.max().unwrap_or(INDENT).max(INDENT)
}

fn write_finding(page: &mut Page<'_>, finding: &Finding) {
    let tone = crate::describe::findings::tone(finding.severity);
    let heading = match &finding.title {
        Some(title) => format!("{title} ({})", finding.code),
        None => finding.code.clone(),
    };
    let label = tone.of(labels::severity(finding.severity));
    page.entry(label, INDENT, TextStyle::Bold.of(heading));
    for text in [&finding.claim, &format!("→ {}", finding.remedy)] {
        page.entry(TextStyle::Plain.of(""), INDENT, TextStyle::Plain.of(text));
    }
}

/// What a terminal draws in its own way.
fn write_drawing(page: &mut Page<'_>, record: &Record, block: &Block) {
    match block {
        Block::Chart(id) => {
            let charts = charts(record);
            let own = charts.iter().filter(|chart| chart.id == *id);
            own.for_each(|chart| write_graph(page, chart));
        }
        Block::Ping(index) => {
            if let Some(m) = record.measurements.get(*index) {
                m.figures
                    .ping
                    .iter()
                    .for_each(|ping| write_ping(page, m, ping));
            }
        }
        _ => {
            if let Some(of) = record.surface() {
                let scan = of.data.scan.iter();
                scan.for_each(|scan| write_scan(page, scan, of.data.span_start_bytes));
            }
        }
    }
}
