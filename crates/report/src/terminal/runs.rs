//! The list of saved runs: two lines for each where the page is narrow, a table where it is wide enough.

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
const HEADING: [&str; 7] = ["run", "started (UTC)", "verb", "target", "disk", "label", "figures"];

/// Writes the runs in the order given.
pub fn write_runs(runs: &[SavedRun], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let heading: Vec<String> = HEADING.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let fitted = Columns::fit(&[Lean::Left; HEADING.len()], rows.iter().chain([&heading]));
    if page.has_room_for(fitted.total()) {
        page.unbroken(Ink::Faint, &fitted.line(&heading))?;
        return rows.iter().zip(runs).try_for_each(|(row, run)| page.unbroken(ink(run), &fitted.line(row)));
    }
    runs.iter().try_for_each(|run| write_entry(page, run, style.width.max(WIDTH_MIN)))
}

/// One line of a table.
fn row(run: &SavedRun) -> Vec<String> {
    let figures = run.figures.iter().take(FIGURES_MAX).map(figure_text);
    let notable = remarks(run).into_iter().chain(figures).collect::<Vec<_>>().join(", ");
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
    let label = run.label.as_ref().map_or(String::new(), |label| format!("  [{}]", clean(label)));
    let asked = format!("{}  {}  {} {}", id(run), started(run), clean(&run.verb), clean(&run.targets.join(" ")));
    page.unbroken(Ink::Strong, &(shortened(&asked, width.saturating_sub(columns(&label))) + &label))?;
    let facts = [disks(run), run.host.clone()].into_iter().filter(|fact| !fact.is_empty());
    let facts = list(facts.map(|fact| shortened(&fact, CELL_MAX)));
    let figures = list(run.figures.iter().take(FIGURES_MAX).map(figure_text));
    let parts = [facts, figures].into_iter().filter(|part| !part.is_empty());
    let indent = ID_DIGITS + 2;
    page.entry((Ink::Plain, ""), indent, (Ink::Plain, &parts.collect::<Vec<_>>().join(" · ")))?;
    let note = run.note.as_ref().map(|note| format!("note: {}", shortened(note, width)));
    let remarks: Vec<String> = remarks(run).into_iter().chain(note).collect();
    if remarks.is_empty() { Ok(()) } else { page.entry((Ink::Plain, ""), indent, (ink(run), &list(remarks))) }
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
    run.disks.iter().map(|disk| disk.best_name()).collect::<Vec<_>>().join(" ")
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
        operation @ (OpKind::Read | OpKind::Write) if !name.contains("read") && !name.contains("write") => {
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
