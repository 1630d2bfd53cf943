//! The list of saved runs: two lines for each where the page is narrow, a table where it is wide
//! enough.

use super::record::start_text;
use crate::page::{Columns, Ink, Lean, Page};
use crate::style::{Style, WIDTH_MIN};
use crate::text::{clean, columns, glue, list};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::OpKind;
use diskproof_model::saved::{Headline, SavedRun};
use diskproof_model::units::{format_latency, format_rate, format_throughput};
use std::io::{self, Write};

/// Digits of an id that tell runs apart; `show` takes them.
const ID_DIGITS: usize = 8;
/// Columns of a path or of a disk in a table: more would leave no room for figures.
const CELL_MAX: usize = 28;
/// Figures in a table; they come in the order of their weight.
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
    let fitted = Columns::fit(&[Lean::Left; HEADING.len()], rows.iter().chain([&heading]));
    if page.has_room_for(fitted.total()) {
        page.unbroken(Ink::Faint, &fitted.line(&heading))?;
        return rows
            .iter()
            .zip(runs)
            .try_for_each(|(row, run)| page.unbroken(ink(run), &fitted.line(row)));
    }
    runs.iter()
        .try_for_each(|run| write_entry(page, run, style.width.max(WIDTH_MIN)))
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
        shortened(&run.targets.join(" "), CELL_MAX),
        shortened(&disks(run), CELL_MAX),
        run.label.clone().unwrap_or_default(),
        notable,
    ]
}

/// A run on two lines or more: what it is, and what came of it.
fn write_entry(page: &mut Page<'_>, run: &SavedRun, width: usize) -> io::Result<()> {
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
        Ink::Strong,
        &(shortened(&asked, width.saturating_sub(columns(&label))) + &label),
    )?;
    let facts = [disks(run), run.host.clone()]
        .into_iter()
        .filter(|fact| !fact.is_empty());
    let facts = list(facts.map(|fact| shortened(&fact, CELL_MAX)));
    let figures = list(run.figures.iter().take(FIGURES_MAX).map(figure_text));
    let parts = [facts, figures].into_iter().filter(|part| !part.is_empty());
    let indent = ID_DIGITS + 2;
    page.entry(
        (Ink::Plain, ""),
        indent,
        (Ink::Plain, &parts.collect::<Vec<_>>().join(" · ")),
    )?;
    let note = run
        .note
        .as_ref()
        .map(|note| format!("note: {}", shortened(note, width)));
    let remarks: Vec<String> = remarks(run).into_iter().chain(note).collect();
    if remarks.is_empty() {
        Ok(())
    } else {
        page.entry((Ink::Plain, ""), indent, (ink(run), &list(remarks)))
    }
}

fn id(run: &SavedRun) -> String {
    run.run_id.chars().take(ID_DIGITS).collect()
}

/// The heading says that it is UTC.
fn started(run: &SavedRun) -> String {
    start_text(&run.started).trim_end_matches(" UTC").to_owned()
}

/// The disks by what tells them best.
fn disks(run: &SavedRun) -> String {
    run.disks
        .iter()
        .map(|disk| disk.best_name())
        .collect::<Vec<_>>()
        .join(" ")
}

/// What makes a run less than it should be.
fn remarks(run: &SavedRun) -> Vec<String> {
    let partial = run.partial.then(|| "PARTIAL".to_owned());
    let worst = run.worst.as_ref().map(|worst| {
        let weight = match worst.severity {
            Severity::Failure => "failure",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        glue(&format!("{weight}: {}", worst.code))
    });
    partial.into_iter().chain(worst).collect()
}

fn ink(run: &SavedRun) -> Ink {
    match run.worst.as_ref().map(|worst| worst.severity) {
        _ if run.partial => Ink::Alarm,
        Some(Severity::Failure) => Ink::Alarm,
        Some(Severity::Warning | Severity::Note) | None => Ink::Plain,
    }
}

fn figure_text(figure: &Headline) -> String {
    let value = match figure.unit.as_str() {
        "B/s" => format_throughput(figure.value),
        "ns" => format_latency(figure.value.round() as u64),
        _ => format!("{}/s", format_rate(figure.value)),
    };
    let name = &figure.workload;
    // A name that says what is done need not hear it again.
    match figure.operation {
        operation @ (OpKind::Read | OpKind::Write)
            if !name.contains("read") && !name.contains("write") =>
        {
            format!("{name} {} {value}", operation.as_str())
        }
        _ => format!("{name} {value}"),
    }
}

/// The text, or as much of it as fits with a mark that something is missing.
fn shortened(text: &str, room: usize) -> String {
    let text = clean(text);
    if columns(&text) <= room {
        return text;
    }
    let mut short = String::new();
    for c in text.chars() {
        if columns(&short) + columns(c.encode_utf8(&mut [0; 4])) + 1 > room {
            break;
        }
        short.push(c);
    }
    short + "…"
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
            half_width_95: None,
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
    fn a_wide_page_has_a_table_and_a_narrow_one_a_few_lines_a_run() {
        let wide = "run       started (UTC)     verb   target     disk  label  figures\n3f2a91c0  \
                    2026-11-20 10:00  check  /srv/data  F00D  base   PARTIAL, failure: io-errors, \
                    random-read-d32 98100/s, curve read 150 MB/s, access read 12.6 ms\n";
        assert_eq!(printed(&run(), 200).replace('\u{a0}', " "), wide);
        let narrow = "3f2a91c0  2026-11-20 10:00  check /srv/data  [base]\n          F00D, db1 · \
                      random-read-d32 98100/s, curve read 150 MB/s,\n          access read 12.6 \
                      ms\n          PARTIAL, failure: io-errors\n";
        assert_eq!(printed(&run(), 80), narrow);
    }

    #[test]
    fn nothing_that_a_run_is_called_leaves_its_line_or_acts_on_the_terminal() {
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
        for width in [60, 80, 400] {
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
