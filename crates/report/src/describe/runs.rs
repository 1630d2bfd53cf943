//! The list of saved runs.

use super::run::start_text;
use crate::labels;
use crate::text::{clean, glue, list, shortened};
use diskproof_model::block::{Block, Column, Narrow, Place, Row, Table, Tone};
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
    let mut columns = Column::words(HEADING);
    for (rank, column) in columns.iter_mut().rev().take(2).enumerate() {
        column.place = Place::Roomy(rank as u8);
    }
    vec![Block::Table(Table {
        narrow: Narrow::Titled(NAMING),
        ..Table::new("saved runs", columns, runs.iter().map(row).collect())
    })]
}

fn row(run: &SavedRun) -> Row {
    let worst = run.worst.as_ref();
    let partial = run.partial.then(|| "PARTIAL".to_owned());
    let finding = worst.map(|of| glue(&format!("{}: {}", labels::severity(of.severity), of.code)));
    let figures = run.figures.iter().take(FIGURES_MAX).map(figure_text);
    let disks: Vec<&str> = run.disks.iter().map(|disk| disk.best_name()).collect();
    let cell = |text: &str| shortened(&clean(text), CELL_MAX);
    let label = run.label.as_ref().map(|label| cell(&format!("[{label}]")));
    let note = run.note.as_ref().map(|note| cell(&format!("note: {note}")));
    let started = start_text(&run.started);
    let cells = vec![
        run_id(&run.run_id),
        // The heading names the time zone.
        started.trim_end_matches(" UTC").to_owned(),
        cell(&run.verb),
        cell(&run.targets.join(" ")),
        label.unwrap_or_default(),
        cell(&disks.join(" ")),
        list(partial.into_iter().chain(finding).chain(figures)),
        cell(&run.host),
        note.unwrap_or_default(),
    ];
    let is_failure = worst.is_some_and(|of| of.severity == Severity::Failure);
    let tone = if run.partial || is_failure {
        Tone::Error
    } else {
        Tone::Plain
    };
    Row {
        tone,
        ..Row::from(cells)
    }
}

/// As much of an id as other commands need.
pub(crate) fn run_id(id: &str) -> String {
    id.chars().take(ID_DIGITS).collect()
}

fn figure_text(figure: &Headline) -> String {
    let value = digits::figure_text(figure.value, figure.half_width_95, &figure.unit);
    format!("{} {value}", named(&figure.workload, &figure.operation))
}
