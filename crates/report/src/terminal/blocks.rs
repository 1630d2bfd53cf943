//! Blocks on a terminal page.

use super::facts::INDENT;
use super::graph::write_graph;
use super::grid::write_grid;
use crate::chart::charts;
use crate::page::{Page, TextStyle};
use diskproof_model::block::Block;
use diskproof_model::record::Record;
use std::io;

/// Writes the blocks, each group of them after an empty line.
pub(super) fn write_blocks(
    page: &mut Page<'_>,
    record: &Record,
    blocks: &[Block],
) -> io::Result<()> {
    let mut before = None;
    for block in blocks {
        if begins_group(before, block) {
            page.blank()?;
        }
        before = Some(block);
        match block {
            Block::Heading(text) => page.text(TextStyle::Bold.of(text))?,
            Block::Text(tone, text) => page.text(tone.of(text))?,
            Block::Fact(fact) => page.entry(
                fact.tone.of(&fact.label),
                INDENT,
                TextStyle::Plain.of(&fact.text),
            )?,
            Block::Table(table) => write_grid(page, table)?,
            Block::Chart(id) => {
                if let Some(chart) = charts(record).iter().find(|chart| chart.id == *id) {
                    write_graph(page, chart)?;
                }
            }
        }
    }
    Ok(())
}

/// Texts and facts follow what is before them; a heading stands close to what it names.
fn begins_group(before: Option<&Block>, block: &Block) -> bool {
    match (before, block) {
        (None, _) | (_, Block::Heading(_)) => true,
        (Some(Block::Heading(_)), _) => false,
        (_, Block::Table(_) | Block::Chart(_)) => true,
        (Some(before), Block::Fact(_)) => matches!(before, Block::Table(_) | Block::Chart(_)),
        (_, Block::Text(..)) => false,
    }
}
