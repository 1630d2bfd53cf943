//! Pages that consist of blocks only: the result of a run, a comparison, the identity of a target,
//! a plan, the list of saved runs, the commands of a record.

use super::blocks::write_blocks;
use crate::Examined;
use crate::describe::changes::{fleet_sides_blocks, short_blocks};
use crate::describe::comparison::{self, MetricDetail};
use crate::describe::findings::finding_blocks;
use crate::describe::fleet::{self, FleetDetail};
use crate::describe::method::command_blocks;
use crate::describe::saved_runs::saved_run_blocks;
use crate::describe::target::{host_section, identity_sections};
use crate::describe::{self, answer_blocks, plan};
use crate::page::Page;
use crate::style::Style;
use diskproof_model::block::{Block, Shown, Tone};
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// How much of a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The answer, the headline figures and what needs attention.
    Short,
    /// Everything.
    Whole,
}

/// Writes blocks without drawings, which need no record.
fn write_only(blocks: &[Block], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    write_blocks(page, None, blocks);
    page.finish()
}

/// The page of a run: text, because it may be saved as well as printed.
pub fn record_page(record: &Record, detail: Detail, style: &Style) -> String {
    let mut bytes = Vec::new();
    let page = &mut Page::new(style, &mut bytes);
    let wanted = match detail {
        Detail::Short => Shown::Short,
        Detail::Whole => Shown::Whole,
    };
    let is_brief = detail == Detail::Short && describe::is_brief(record);
    for section in describe::sections(record) {
        if section.shown != Shown::Always && section.shown != wanted {
            continue;
        }
        // A brief page has to fit one screen, which has no line between the title and the answer.
        let is_close = is_brief && section.id == "verdict";
        if !is_close && !matches!(section.id, "title" | "notes") {
            page.blank();
        }
        write_blocks(page, Some(record), &section.blocks);
    }
    page.finish().expect("a Vec takes everything");
    String::from_utf8(bytes).expect("pages are made of text")
}

/// Writes the headline and the trust once more, for the end of a page that is longer than the
/// screen. Writes nothing for a run without a verdict.
pub fn write_verdict_again(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let answer = answer_blocks(record);
    if !answer.is_empty() {
        page.blank();
    }
    write_blocks(page, Some(record), &answer);
    page.finish()
}

/// Writes the comparison.
pub fn write_comparison(
    comparison: &Comparison,
    detail: MetricDetail,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if detail == MetricDetail::Independent {
        return write_only(&short_blocks(comparison), style, out);
    }
    let page = &mut Page::new(style, out);
    if let Some(fleet) = &comparison.fleet {
        write_blocks(page, None, &fleet_sides_blocks(fleet, FleetDetail::All));
        page.blank();
    }
    for candidate in &comparison.candidates {
        page.text(Tone::Bold.span(&candidate.summary));
    }
    page.blank();
    write_blocks(page, None, &comparison::blocks(comparison, detail));
    page.finish()
}

/// Writes the answers of a comparison once more, for the end of a page that is longer than the
/// screen.
pub fn write_answers_again(
    comparison: &Comparison,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    page.blank();
    for candidate in &comparison.candidates {
        page.text(Tone::Bold.span(&candidate.summary));
    }
    page.finish()
}

/// Writes the answer about a fleet, and the rows that differ or all of them.
pub fn write_fleet(
    fleet: &FleetRecord,
    detail: FleetDetail,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_only(&fleet::blocks(fleet, detail), style, out)
}

/// Writes the facts layer by layer from the target down to the disks, then their health and the
/// findings. Unknown values have no line, unless their absence matters.
pub fn write_identity(
    examined: &Examined<'_>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let health: Vec<&DiskHealth> = examined.health.iter().collect();
    let mut blocks = host_section(examined.host);
    blocks.extend(identity_sections(examined.identity, &health).concat());
    blocks.extend(finding_blocks(examined.findings));
    write_only(&blocks, style, out)
}

/// Writes the plan: its budget, the skipped workloads, then the workloads in order.
pub fn write_plan(
    plan: &Plan,
    identities: &[TargetIdentity],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_only(&plan::blocks(plan, identities), style, out)
}

/// Writes the saved runs in the given order.
pub fn write_runs(runs: &[SavedRun], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    write_only(&saved_run_blocks(runs), style, out)
}

/// Writes a comment with the name, then the command, for every figure and every finding that has
/// one. Hidden characters are spelled out: a name with a line break cannot become a command.
pub fn write_commands(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    write_only(&command_blocks(record), style, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{plain, saved_run, written};
    use crate::text::{columns, is_hidden};
    use diskproof_model::saved::SavedDisk;

    fn printed(run: &SavedRun, width: usize) -> String {
        written(|out| write_runs(std::slice::from_ref(run), &plain(width), out))
    }

    #[test]
    fn runs_are_a_table_on_a_wide_page_and_lines_on_a_narrow_one() {
        let wide = printed(&saved_run(), 200).replace('\u{a0}', " ");
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
        assert_eq!(printed(&saved_run(), 80), narrow);
    }

    #[test]
    fn hostile_names_stay_on_one_line_without_escapes() {
        let long = "x\u{1b}[2J\n".repeat(40);
        let disks = vec![SavedDisk {
            name: long.clone(),
            model: None,
            serial: None,
        }];
        let hostile = SavedRun {
            targets: vec![long.clone(), "硬盘".repeat(60)],
            disks,
            label: Some("l\u{202e}".to_owned()),
            note: Some(long.clone()),
            verb: long.clone(),
            host: long.clone(),
            ..saved_run()
        };
        for width in [40, 80, 400] {
            let page = printed(&hostile, width);
            let without_breaks = page.replace('\n', "");
            assert!(!without_breaks.contains(is_hidden), "{page:?}");
            assert!(
                page.lines().all(|line| columns(line) <= width),
                "{width}: {page}"
            );
        }
    }
}

#[cfg(test)]
mod comparison_tests {
    use super::*;
    use crate::fixture::{self, plain, written};
    use diskproof_model::comparison::{Tally, Verdict};

    fn page(comparison: &Comparison) -> String {
        let detail = MetricDetail::Independent;
        written(|out| write_comparison(comparison, detail, &plain(80), out))
    }

    #[test]
    fn answers_are_repeated_as_on_the_page() {
        let comparison = fixture::comparison();
        let again = written(|out| write_answers_again(&comparison, &plain(80), out));
        assert!(!again.trim().is_empty());
        let page = page(&comparison);
        assert!(again.lines().all(|line| page.contains(line)), "{again}");
    }

    #[test]
    fn two_sides_take_a_screen_and_name_both() {
        let mut comparison = fixture::comparison();
        comparison.candidates.truncate(1);
        let sides = [&comparison.baseline, &comparison.candidates[0].side];
        let names = sides.map(|side| side.label.clone());
        for verdict in [None, Some(Verdict::Undecided), Some(Verdict::NotComparable)] {
            let candidate = &mut comparison.candidates[0];
            candidate.notes = vec!["a long note ".repeat(12); 9];
            if let Some(verdict) = verdict {
                candidate.headline = Tally::default();
                for metric in &mut candidate.metrics {
                    metric.verdict = verdict;
                    if metric.headline {
                        candidate.headline.count(verdict);
                    }
                }
            }
            let text = page(&comparison);
            assert!(text.lines().count() <= 24, "{text}");
            assert!(
                text.lines().all(|line| crate::text::columns(line) <= 80),
                "{text}"
            );
            assert!(names.iter().all(|name| text.contains(name)), "{text}");
        }
    }

    #[test]
    fn twelve_sides_are_a_line_each_and_the_odd_one_is_marked() {
        let mut comparison = fixture::comparison();
        comparison.fleet = Some(Box::new(fixture::fleet(12)));
        let text = page(&comparison);
        assert!(text.contains("1 differs: node7"), "{text}");
        let marked = text.lines().filter(|line| line.contains('▼'));
        assert_eq!(marked.count(), 2, "{text}");
        for number in 0..12 {
            let name = format!("node{number} ");
            assert!(text.lines().any(|line| line.starts_with(&name)), "{text}");
        }
    }

    #[test]
    fn fifty_sides_take_a_screen_and_all_lines_with_the_flag() {
        let mut comparison = fixture::comparison();
        comparison.fleet = Some(Box::new(fixture::fleet(50)));
        let short = page(&comparison);
        assert!(short.lines().count() <= 24, "{short}");
        assert!(short.contains("node7 "), "{short}");
        assert!(!short.contains("node8 "), "{short}");
        let all = written(|out| write_comparison(&comparison, MetricDetail::All, &plain(80), out));
        for name in ["node7 ", "node8 ", "node49 "] {
            assert!(all.lines().any(|line| line.starts_with(name)), "{all}");
        }
    }
}
