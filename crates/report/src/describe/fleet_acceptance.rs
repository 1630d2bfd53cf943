//! The acceptance tests of a fleet's disks: a row for each disk with its verdict.

use crate::labels;
use crate::text::glue;
use diskproof_model::accept::AcceptVerdict;
use diskproof_model::block::{Align, Block, Column, Place, Table, TableRow, Tone};
use diskproof_model::fleet::TestedDisk;
use diskproof_model::units::{format_bytes, format_percent, format_throughput};

/// A table of the disks that were tested, each with its verdict; `None` without any. It has no
/// limit, because its reader looks for one certain disk.
pub(super) fn tested_disks_table(disks: &[TestedDisk]) -> Option<Block> {
    if disks.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for disk in disks {
        let (tone, verdict) = verdict_look(disk.verdict);
        let size = match disk.real_bytes {
            Some(real_bytes) => format!(
                "{} of {}",
                glue(&format_bytes(real_bytes)),
                glue(&format_bytes(disk.claimed_bytes))
            ),
            None => glue(&format_bytes(disk.claimed_bytes)),
        };
        rows.push(TableRow {
            tone,
            ..TableRow::from(vec![
                disk.name.clone(),
                disk.serials.join(" + "),
                glue(verdict),
                size,
                rate_text(disk.write_rate),
                rate_text(disk.read_rate),
                remark_text(disk),
            ])
        });
    }
    let columns = vec![
        Column::new("disk", Align::Left),
        Column {
            place: Place::Roomy(1),
            ..Column::new("serial number", Align::Left)
        },
        Column::new("verdict", Align::Left),
        Column::number("size", Place::Always),
        Column::number("writes", Place::Always),
        Column::number("reads", Place::Always),
        Column::new("remark", Align::Left),
    ];
    Some(Block::Table(Table::new("Acceptance tests", columns, rows)))
}

/// The colour of a verdict, and its words with a sign for readers who do not see the colour.
fn verdict_look(verdict: AcceptVerdict) -> (Tone, &'static str) {
    match verdict {
        AcceptVerdict::Accept => (Tone::Plain, "✓ accepted"),
        AcceptVerdict::NoFraudFound => (Tone::Plain, "= no fraud found"),
        AcceptVerdict::Undecided => (Tone::Warning, "? undecided"),
        AcceptVerdict::Reject => (Tone::Error, "✗ rejected"),
    }
}

fn rate_text(rate: Option<f64>) -> String {
    labels::or_unknown(rate.map(format_throughput))
}

/// Says how much slower a disk is than the others of its model, and why it is not accepted. Empty
/// for an accepted disk of usual speed.
fn remark_text(disk: &TestedDisk) -> String {
    let mut parts = Vec::new();
    if let Some(speed) = disk.slower {
        let share = format_percent(1.0 - speed);
        parts.push(format!("{share} slower than the others of its model"));
    }
    match disk.verdict {
        AcceptVerdict::Accept | AcceptVerdict::NoFraudFound => {}
        AcceptVerdict::Undecided | AcceptVerdict::Reject => {
            let (_, why) = disk.answer.split_once(": ").unwrap_or(("", &disk.answer));
            parts.push(why.trim_end_matches('.').to_owned());
        }
    }
    parts.join("; ")
}
