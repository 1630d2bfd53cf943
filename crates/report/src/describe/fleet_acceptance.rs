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

/// Says how much slower a disk is than the others of its model, why it is not accepted, and which
/// tests this one replaces. Empty for an accepted disk of usual speed that was tested once.
fn remark_text(disk: &TestedDisk) -> String {
    let mut parts = Vec::new();
    if let Some(speed) = disk.slower {
        let share = format_percent(1.0 - speed);
        parts.push(format!("{share} slower than the others of its model"));
    }
    parts.extend(disk.reason.clone());
    match disk.undecided_before.len() {
        0 => {}
        1 => parts.push("an earlier undecided test of it is left out".to_owned()),
        count => parts.push(format!(
            "{count} earlier undecided tests of it are left out"
        )),
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(verdict: AcceptVerdict) -> TestedDisk {
        TestedDisk {
            name: "db17 /dev/sdc".to_owned(),
            host: "db17".to_owned(),
            rank: None,
            target: "/dev/sdc".to_owned(),
            model: String::new(),
            serials: vec!["S1".to_owned(), "S2".to_owned()],
            run_id: "r".to_owned(),
            started: "2026-11-30T00:00:00Z".to_owned(),
            claimed_bytes: 4_000_000_000_000,
            verdict,
            answer: String::new(),
            reason: None,
            real_bytes: None,
            write_rate: Some(180e6),
            read_rate: None,
            slower: None,
            undecided_before: Vec::new(),
        }
    }

    /// The cells of the only row of a table of this disk.
    fn row_of(disk: TestedDisk) -> Vec<String> {
        let Some(Block::Table(table)) = tested_disks_table(&[disk]) else {
            panic!("no table");
        };
        let row = table.rows.into_iter().next().unwrap();
        row.cells.into_iter().map(|cell| cell.text).collect()
    }

    #[test]
    fn row_has_sizes_rates_and_the_reason_against_the_disk() {
        let rejected = row_of(TestedDisk {
            reason: Some("block 0x1 came back with the content of block 0x2".to_owned()),
            real_bytes: Some(123_000_000_000),
            slower: Some(0.7),
            ..tested(AcceptVerdict::Reject)
        });
        assert_eq!(rejected[1], "S1 + S2");
        assert!(rejected[2].starts_with('✗'));
        let real = glue(&format_bytes(123_000_000_000));
        let claimed = glue(&format_bytes(4_000_000_000_000));
        assert_eq!(rejected[3], format!("{real} of {claimed}"));
        assert!(rejected[4].starts_with("180") && rejected[5] == labels::or_unknown(None));
        assert!(rejected[6].contains("30 % slower") && rejected[6].ends_with("block 0x2"));
    }

    #[test]
    fn accepted_disk_has_no_remark() {
        let accepted = row_of(tested(AcceptVerdict::Accept));
        assert!(accepted[2].starts_with('✓') && accepted[6].is_empty());
        assert!(tested_disks_table(&[]).is_none());
        let repeated = row_of(TestedDisk {
            undecided_before: vec!["first".to_owned()],
            ..tested(AcceptVerdict::Accept)
        });
        assert!(repeated[6].contains("earlier undecided test"));
    }
}
