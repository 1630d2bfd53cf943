//! The list of saved runs: a row for each, with its most important figures.

use super::run::{short_run_id, start_text};
use crate::labels;
use crate::text::{clean, list, shortened};
use diskproof_model::block::{Block, Column, Narrow, Place, Table, TableRow, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::finding::Severity;
use diskproof_model::saved::{Headline, SavedRun, named};

/// A longer path or disk is cut to this many columns, because it would leave no room for figures.
const CELL_COLUMNS_MAX: usize = 28;

/// A row has at most this many figures of its run, the most important ones.
const FIGURES_MAX: usize = 3;

/// Columns of the table. The first ones name the run.
const COLUMNS: &str = "run | started (UTC) | verb | target | label | disk | figures | host | note";
/// The columns from `run` to `label`, which are the title of a run where the page is too narrow for
/// the table.
const NAMING_COLUMNS: usize = 5;

/// Lists the runs in the order given. Narrow pages drop the note first, then the host.
pub(crate) fn saved_run_blocks(runs: &[SavedRun]) -> Vec<Block> {
    let mut columns = Column::words(COLUMNS.split(" | "));
    for (rank, column) in columns.iter_mut().rev().take(2).enumerate() {
        column.place = Place::Roomy(rank as u8);
    }
    let rows = runs.iter().map(saved_row).collect();
    vec![Block::Table(Table {
        narrow: Narrow::Titled(NAMING_COLUMNS),
        ..Table::new("saved runs", columns, rows)
    })]
}

fn saved_row(run: &SavedRun) -> TableRow {
    let label = match &run.label {
        Some(label) => short_cell(&format!("[{label}]")),
        None => String::new(),
    };
    let note = match &run.note {
        Some(note) => short_cell(&format!("note: {note}")),
        None => String::new(),
    };
    let disks: Vec<&str> = run.disks.iter().map(|disk| disk.best_name()).collect();
    let started = start_text(&run.started);
    let cells = vec![
        short_run_id(&run.run_id),
        // The heading names the time zone.
        started.trim_end_matches(" UTC").to_owned(),
        short_cell(&run.verb),
        short_cell(&run.targets.join(" ")),
        label,
        short_cell(&disks.join(" ")),
        saved_result(run),
        short_cell(&run.host),
        note,
    ];
    let is_failure = match &run.worst {
        Some(worst) => worst.severity == Severity::Failure,
        None => false,
    };
    let tone = if run.partial || is_failure {
        Tone::Error
    } else {
        Tone::Plain
    };
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

fn short_cell(text: &str) -> String {
    shortened(&clean(text), CELL_COLUMNS_MAX)
}

/// `warning: throttled, random-read-d32 13.7 k/s`: the worst finding, then the figures.
fn saved_result(run: &SavedRun) -> String {
    let mut parts = Vec::new();
    if run.partial {
        parts.push("PARTIAL".to_owned());
    }
    if run.imported {
        parts.push("imported".to_owned());
    }
    if let Some(worst) = &run.worst {
        let severity = labels::severity(worst.severity);
        parts.push(format!("{severity}: {}", worst.code));
    }
    parts.extend(run.figures.iter().take(FIGURES_MAX).map(headline_text));
    list(parts)
}

fn headline_text(figure: &Headline) -> String {
    let value = figure_text(figure.value, figure.half_width_95, &figure.unit);
    format!("{} {value}", named(&figure.workload, &figure.operation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::saved_run;
    use diskproof_model::saved::SavedFinding;

    #[test]
    fn run_that_failed_or_ended_early_stands_out() {
        for (partial, severity, is_error) in [
            (false, None, false),
            (false, Some(Severity::Warning), false),
            (false, Some(Severity::Failure), true),
            (true, None, true),
        ] {
            let mut run = saved_run();
            run.partial = partial;
            run.worst = severity.map(|severity| SavedFinding {
                severity,
                code: "io-errors".to_owned(),
            });
            let tone = saved_row(&run).tone;
            assert_eq!(
                matches!(tone, Tone::Error),
                is_error,
                "{partial} {severity:?}"
            );
        }
    }

    #[test]
    fn row_has_the_first_figures_of_its_run() {
        let mut run = saved_run();
        let first = run.figures[0].clone();
        let [shown, dropped] = ["shown", "dropped"].map(|workload| Headline {
            workload: workload.to_owned(),
            ..first.clone()
        });
        run.figures = vec![first.clone(), first, shown, dropped];
        let result = saved_result(&run);
        assert!(
            result.contains("shown") && !result.contains("dropped"),
            "{result}"
        );
    }

    /// The title of a run on a narrow page ends with its label.
    #[test]
    fn naming_columns_end_with_the_label() {
        assert_eq!(COLUMNS.split(" | ").nth(NAMING_COLUMNS - 1), Some("label"));
        assert_eq!(
            saved_row(&saved_run()).cells.len(),
            COLUMNS.split(" | ").count()
        );
    }
}
