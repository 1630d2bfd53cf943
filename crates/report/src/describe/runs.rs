//! The list of saved runs.

use super::run::start_text;
use crate::labels;
use crate::text::{clean, glue, list, shortened};
use diskproof_model::block::{Align, Block, Column, Narrow, Place, Row, Table, Tone};
use diskproof_model::digits;
use diskproof_model::finding::Severity;
use diskproof_model::saved::{Headline, SavedRun, named};

/// Digits of an id that identify a run; `show` accepts them.
const ID_DIGITS: usize = 8;
/// Columns of a path or a disk; more would leave no room for figures.
const CELL_MAX: usize = 28;
/// Figures of a run; the most important come first.
const FIGURES_MAX: usize = 3;
/// The cells that name a run come first.
const HEADING: [&str; 9] = [
    "run",
    "started (UTC)",
    "verb",
    "target",
    "label",
    "disk",
    "figures",
    "host",
    "note",
];
const NAMING: usize = 5;

/// The runs in the order given.
pub(crate) fn blocks(runs: &[SavedRun]) -> Vec<Block> {
    let mut columns: Vec<Column> = HEADING.map(|name| Column::new(name, Align::Left)).into();
    for (rank, column) in columns.iter_mut().rev().take(2).enumerate() {
        column.place = Place::Roomy(rank as u8);
    }
    vec![Block::Table(Table {
        caption: "saved runs".to_owned(),
        columns,
        rows: runs.iter().map(row).collect(),
        narrow: Narrow::Titled(NAMING),
        ..Table::default()
    })]
}

fn row(run: &SavedRun) -> Row {
    let figures = run.figures.iter().take(FIGURES_MAX).map(figure_text);
    let disks: Vec<&str> = run.disks.iter().map(|disk| disk.best_name()).collect();
    let cell = |text: &str| shortened(&clean(text), CELL_MAX);
    let optional = |text: &Option<String>, written: fn(&str) -> String| {
        text.as_deref()
            .map_or(String::new(), |text| shortened(&written(text), CELL_MAX))
    };
    let started = start_text(&run.started);
    let cells = vec![
        run_id(&run.run_id),
        // The heading names the time zone.
        started.trim_end_matches(" UTC").to_owned(),
        cell(&run.verb),
        cell(&run.targets.join(" ")),
        optional(&run.label, |label| format!("[{}]", clean(label))),
        cell(&disks.join(" ")),
        list(remarks(run).into_iter().chain(figures)),
        cell(&run.host),
        optional(&run.note, |note| format!("note: {}", clean(note))),
    ];
    Row {
        tone: tone(run),
        ..Row::from(cells)
    }
}

/// As much of an id as other commands need.
pub(crate) fn run_id(id: &str) -> String {
    id.chars().take(ID_DIGITS).collect()
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

fn tone(run: &SavedRun) -> Tone {
    match run.worst.as_ref().map(|worst| worst.severity) {
        _ if run.partial => Tone::Error,
        Some(Severity::Failure) => Tone::Error,
        Some(Severity::Warning | Severity::Note) | None => Tone::Plain,
    }
}

fn figure_text(figure: &Headline) -> String {
    let value = digits::figure_text(figure.value, figure.half_width_95, &figure.unit);
    format!("{} {value}", named(&figure.workload, &figure.operation))
}
