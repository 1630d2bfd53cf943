//! Pages that are blocks only: what `info` found, a plan that is not run, the list of saved runs,
//! the commands of a record.

use super::blocks::write_first_blocks;
use crate::describe::findings::findings;
use crate::describe::identity::{host, sections};
use crate::describe::{commands, plan, runs};
use crate::examined::Examined;
use crate::page::Page;
use crate::style::Style;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// Writes all facts, layer by layer from the target down to the disks, then their health and the
/// findings. Unknown values have no line, unless their absence matters.
pub fn write_identity(
    examined: &Examined<'_>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let health: Vec<_> = examined.health.iter().collect();
    let mut blocks = host(examined.host);
    blocks.extend(sections(examined.identity, &health).concat());
    blocks.extend(findings(examined.findings));
    write_first_blocks(&mut Page::new(style, out), None, &blocks)
}

/// Writes the plan: its budget, the skipped workloads, then the workloads in order.
pub fn write_plan(
    plan: &Plan,
    identities: &[TargetIdentity],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let blocks = plan::blocks(plan, identities);
    write_first_blocks(&mut Page::new(style, out), None, &blocks)
}

/// Writes the runs in the order given.
pub fn write_runs(all: &[SavedRun], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    write_first_blocks(&mut Page::new(style, out), None, &runs::blocks(all))
}

/// Writes a comment with the name, then the command, for every figure and every finding that has
/// one. Hidden characters are spelled out: a name with a line break cannot become a command.
pub fn write_commands(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    write_first_blocks(&mut Page::new(style, out), None, &commands::blocks(record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;
    use crate::text::columns;
    use diskproof_model::finding::Severity;
    use diskproof_model::saved::Headline;
    use diskproof_model::saved::{SavedDisk, WorstFinding};

    fn run() -> SavedRun {
        let figure = |workload: &str, value, unit: &str| Headline {
            workload: workload.to_owned(),
            operation: "read".to_owned(),
            value,
            half_width_95: Some(value * 1e-3),
            unit: unit.to_owned(),
        };
        SavedRun {
            run_id: "3f2a91c07d6e4b58".to_owned(),
            started: "2026-11-20T10:00:00Z".to_owned(),
            verb: "check".to_owned(),
            targets: vec!["/srv/data".to_owned()],
            disks: vec![SavedDisk {
                name: "sda".to_owned(),
                model: Some("FAKE".to_owned()),
                serial: Some("F00D".to_owned()),
            }],
            host: "db1".to_owned(),
            label: Some("base".to_owned()),
            note: None,
            partial: true,
            method: 1,
            worst: Some(WorstFinding {
                severity: Severity::Failure,
                code: "io-errors".to_owned(),
            }),
            figures: vec![
                figure("random-read-d32", 98100.0, "1/s"),
                figure("curve", 1.5e8, "B/s"),
                figure("access", 12_600_000.0, "ns"),
            ],
        }
    }

    fn printed(run: &SavedRun, width: usize) -> String {
        let mut out = Vec::new();
        write_runs(
            std::slice::from_ref(run),
            &Style {
                width,
                color: Color::Plain,
            },
            &mut out,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn runs_are_a_table_on_a_wide_page_and_lines_on_a_narrow_one() {
        let wide = printed(&run(), 200).replace('\u{a0}', " ");
        let lines: Vec<&str> = wide.lines().collect();
        let wide = [
            "run       started (UTC)     verb   target     label   disk  figures",
            "3f2a91c0  2026-11-20 10:00  check  /srv/data  [base]  F00D  PARTIAL, failure: \
             io-errors, random-read-d32 98,100/s, curve read 150 MB/s, access read 12.6 ms  db1",
        ];
        assert!(lines[0].starts_with(wide[0]) && lines[1] == wide[1]);
        let narrow = "3f2a91c0 2026-11-20 10:00 check /srv/data [base]\n    F00D · PARTIAL, \
                      failure: io-errors, random-read-d32 98,100/s,\n    curve read 150 MB/s, \
                      access read 12.6 ms · db1\n";
        assert_eq!(printed(&run(), 80), narrow);
    }

    #[test]
    fn hostile_names_stay_on_one_line_without_escapes() {
        let long = "x\u{1b}[2J\n".repeat(40);
        let disks = vec![SavedDisk {
            name: long.clone(),
            model: None,
            serial: None,
        }];
        let (label, note, verb, host) = (
            Some("l\u{202e}".to_owned()),
            Some(long.clone()),
            long.clone(),
            long.clone(),
        );
        let hostile = SavedRun {
            targets: vec![long.clone(), "硬盘".repeat(60)],
            disks,
            label,
            note,
            verb,
            host,
            ..run()
        };
        for width in [40, 80, 400] {
            let page = printed(&hostile, width);
            assert!(
                page.chars()
                    .all(|c| c == '\n' || !crate::text::is_hidden(c)),
                "{page:?}"
            );
            assert!(
                page.lines().all(|line| columns(line) <= width),
                "{width}: {page}"
            );
        }
    }
}
