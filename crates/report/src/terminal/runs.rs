//! The list of saved runs: a table on a wide page, two lines or more a run on a narrow one.

use crate::describe::run::start_text;
use crate::labels;
use crate::page::{Page, TextStyle};
use crate::style::Style;
use crate::table::{Align, Columns};
use crate::text::{clean, columns, glue, list, shortened};
use diskproof_model::digits;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::OpKind;
use diskproof_model::saved::{Headline, SavedRun};
use std::io::{self, Write};

/// Digits of an id that identify a run; `show` accepts them.
pub(super) const ID_DIGITS: usize = 8;
/// Columns of a path or a disk; more would leave no room for figures.
const CELL_MAX: usize = 28;
/// Figures of a run; the most important come first.
const FIGURES_MAX: usize = 3;
const HEADING: [&str; 7] = [
    "run",
    "started (UTC)",
    "verb",
    "target",
    "disk",
    "label",
    "figures",
];

/// Writes the runs in the order given.
pub fn write_runs(runs: &[SavedRun], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let heading: Vec<String> = HEADING.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let aligns = [Align::Left; HEADING.len()];
    let table = Columns::fit(&aligns, rows.iter().chain([&heading]), page.width());
    if let Some(columns) = table {
        page.unbroken(TextStyle::Dim.of(columns.line(&heading)))?;
        for (row, run) in rows.iter().zip(runs) {
            page.unbroken(text_style(run).of(columns.line(row)))?;
        }
        return Ok(());
    }
    for run in runs {
        write_entry(page, run)?;
    }
    Ok(())
}

/// One line of a table.
fn row(run: &SavedRun) -> Vec<String> {
    let figures = run.figures.iter().take(FIGURES_MAX).map(figure_text);
    let notable = remarks(run)
        .into_iter()
        .chain(figures)
        .collect::<Vec<_>>()
        .join(", ");
    vec![
        id(run),
        started(run),
        run.verb.clone(),
        shortened(&clean(&run.targets.join(" ")), CELL_MAX),
        shortened(&clean(&disks(run)), CELL_MAX),
        run.label.clone().unwrap_or_default(),
        notable,
    ]
}

/// A run on two lines or more: its identity, then its figures.
fn write_entry(page: &mut Page<'_>, run: &SavedRun) -> io::Result<()> {
    let width = page.width();
    let label = run
        .label
        .as_ref()
        .map_or(String::new(), |label| format!("  [{}]", clean(label)));
    let asked = format!(
        "{}  {}  {} {}",
        id(run),
        started(run),
        clean(&run.verb),
        clean(&run.targets.join(" "))
    );
    page.unbroken(
        TextStyle::Bold.of(&(shortened(&asked, width.saturating_sub(columns(&label))) + &label)),
    )?;
    let facts = [disks(run), run.host.clone()]
        .into_iter()
        .filter(|fact| !fact.is_empty());
    let facts = list(facts.map(|fact| shortened(&clean(&fact), CELL_MAX)));
    let figures = list(run.figures.iter().take(FIGURES_MAX).map(figure_text));
    let parts = [facts, figures].into_iter().filter(|part| !part.is_empty());
    let indent = ID_DIGITS + 2;
    page.entry(
        TextStyle::Plain.of(""),
        indent,
        TextStyle::Plain.of(parts.collect::<Vec<_>>().join(" · ")),
    )?;
    let note = run
        .note
        .as_ref()
        .map(|note| format!("note: {}", shortened(&clean(note), width)));
    let remarks: Vec<String> = remarks(run).into_iter().chain(note).collect();
    if remarks.is_empty() {
        Ok(())
    } else {
        page.entry(
            TextStyle::Plain.of(""),
            indent,
            text_style(run).of(list(remarks)),
        )
    }
}

fn id(run: &SavedRun) -> String {
    run.run_id.chars().take(ID_DIGITS).collect()
}

/// The heading names the time zone, UTC.
fn started(run: &SavedRun) -> String {
    start_text(&run.started).trim_end_matches(" UTC").to_owned()
}

/// The disks by their serial or model.
fn disks(run: &SavedRun) -> String {
    run.disks
        .iter()
        .map(|disk| disk.best_name())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Partial, and the most severe finding.
fn remarks(run: &SavedRun) -> Vec<String> {
    let partial = run.partial.then(|| "PARTIAL".to_owned());
    let worst = run.worst.as_ref().map(|worst| {
        glue(&format!(
            "{}: {}",
            labels::severity(worst.severity),
            worst.code
        ))
    });
    partial.into_iter().chain(worst).collect()
}

fn text_style(run: &SavedRun) -> TextStyle {
    match run.worst.as_ref().map(|worst| worst.severity) {
        _ if run.partial => TextStyle::Error,
        Some(Severity::Failure) => TextStyle::Error,
        Some(Severity::Warning | Severity::Note) | None => TextStyle::Plain,
    }
}

fn figure_text(figure: &Headline) -> String {
    let value = digits::figure_text(figure.value, figure.half_width_95, &figure.unit);
    let name = &figure.workload;
    // A name that contains the operation does not need it twice.
    match figure.operation {
        operation @ (OpKind::Read | OpKind::Write)
            if !name.contains("read") && !name.contains("write") =>
        {
            format!("{name} {} {value}", operation.as_str())
        }
        _ => format!("{name} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;
    use diskproof_model::saved::{SavedDisk, WorstFinding};

    fn run() -> SavedRun {
        let figure = |workload: &str, value, unit: &str| Headline {
            workload: workload.to_owned(),
            operation: OpKind::Read,
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
        let wide = "run       started (UTC)     verb   target     disk  label  figures\n3f2a91c0  \
                    2026-11-20 10:00  check  /srv/data  F00D  base   PARTIAL, failure: io-errors, \
                    random-read-d32 98,100/s, curve read 150 MB/s, access read 12.6 ms\n";
        assert_eq!(printed(&run(), 200).replace('\u{a0}', " "), wide);
        let narrow = "3f2a91c0  2026-11-20 10:00  check /srv/data  [base]\n          F00D, db1 · \
                      random-read-d32 98,100/s, curve read 150 MB/s,\n          access read 12.6 \
                      ms\n          PARTIAL, failure: io-errors\n";
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
            assert!(
                page.lines().next().unwrap().ends_with("[l\\u{202e}]") || width == 400,
                "{page}"
            );
        }
    }
}
