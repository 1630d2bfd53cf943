//! A PostgreSQL server alongside the disks: in a step of `watch`, and below an observed load.

use super::facts::fact;
use super::grid::write_grid;
use crate::describe::server::{COLUMNS, explained_text, facts, rates_text, row, rows};
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use crate::text::{clean, glue, shortened};
use diskproof_model::server_load::{ObservedServer, ServerStep, ServerView};
use diskproof_model::units::format_duration;
use std::io;

/// Columns before the lines of a step.
const INDENT: &str = "      ";
/// Rows in a step: the others have a small part of the load.
const STEP_ROWS_MAX: usize = 4;

type NamedCells = (String, [String; COLUMNS.len()]);

/// Writes the server's lines of a step.
pub(super) fn write_server_step(page: &mut Page<'_>, view: &ServerView) -> io::Result<()> {
    match view {
        ServerView::Waiting => {
            let text = format!("{INDENT}PostgreSQL: connected; rates follow with the next step");
            page.unbroken(TextStyle::Dim.of(text))
        }
        ServerView::Lost { why, is_retried } => {
            let next = match is_retried {
                true => "retrying",
                false => "not retried",
            };
            // The server's own errors begin with its name.
            let why = why.strip_prefix("PostgreSQL: ").unwrap_or(why);
            indented(
                page,
                TextStyle::Warning,
                &format!("PostgreSQL: {next}: {why}"),
            )
        }
        ServerView::Step(step) => write_rates(page, step),
    }
}

/// Wrapped text, because its end names the device or the remedy.
fn indented(page: &mut Page<'_>, style: TextStyle, text: &str) -> io::Result<()> {
    page.entry(style.of(""), INDENT.len(), style.of(clean(text)))
}

fn write_rates(page: &mut Page<'_>, step: &ServerStep) -> io::Result<()> {
    if let Some(load) = &step.explained {
        let over = format_duration(load.wall_ns);
        let text = format!("{} ({})", explained_text(load), glue(&over));
        indented(page, TextStyle::Bold, &text)?;
    }
    let text = format!(
        "{INDENT}server {}",
        rates_text(&step.counters, step.length_ns)
    );
    page.unbroken(TextStyle::Dim.of(shortened(&clean(&text), page.width())))?;
    let busiest = step.counters.io.iter().filter(|io| io.bytes() > 0);
    let rows: Vec<NamedCells> = busiest
        .take(STEP_ROWS_MAX)
        .map(|io| row(io, step.length_ns))
        .collect();
    let width = page.width().saturating_sub(INDENT.len());
    for line in table_lines(&rows, width) {
        page.unbroken(TextStyle::Dim.of(format!("{INDENT}{line}")))?;
    }
    Ok(())
}

/// Heading and rows without the columns that are empty.
fn grid(rows: &[NamedCells]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let is_used = |column: &usize| rows.iter().any(|(_, cells)| !cells[*column].is_empty());
    let used: Vec<usize> = (0..COLUMNS.len()).filter(is_used).collect();
    let heading = used.iter().map(|column| COLUMNS[*column]);
    let line = |(name, cells): &NamedCells| {
        let cells = used.iter().map(|column| cells[*column].clone());
        std::iter::once(name.clone()).chain(cells).collect()
    };
    (
        std::iter::once("server").chain(heading).collect(),
        rows.iter().map(line).collect(),
    )
}

/// The lines of a table; none where it is too wide.
fn table_lines(rows: &[NamedCells], width: usize) -> Vec<String> {
    let (heading, mut lines) = grid(rows);
    lines.insert(0, heading.into_iter().map(str::to_owned).collect());
    let mut aligns = vec![Align::Right; lines[0].len()];
    aligns[0] = Align::Left;
    match Columns::fit(&aligns, &lines, width) {
        Some(table) if !rows.is_empty() => lines.iter().map(|line| table.line(line)).collect(),
        _ => Vec::new(),
    }
}

/// Writes what a server did while its disks were watched.
pub(super) fn write_server(page: &mut Page<'_>, server: &ObservedServer) -> io::Result<()> {
    page.blank()?;
    let rows = rows(server);
    if !rows.is_empty() {
        let (heading, rows) = grid(&rows);
        write_grid(page, &heading, &rows, Align::Right)?;
        page.blank()?;
    }
    for (label, text) in facts(server) {
        fact(page, label, &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Color, Style};
    use diskproof_model::server_load::{ExplainedLoad, ServerCounters, ServerIo};

    const SECOND: u64 = 1_000_000_000;

    fn text(view: &ServerView, width: usize) -> String {
        let style = Style {
            width,
            color: Color::Plain,
        };
        let mut bytes = Vec::new();
        write_server_step(&mut Page::new(&style, &mut bytes), view).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn busy() -> ServerStep {
        let io = |backend: &str, context: &str| ServerIo {
            backend: backend.to_owned(),
            object: "relation".to_owned(),
            context: context.to_owned(),
            read_ops: 12_345,
            read_bytes: 12_345 * 8192,
            read_ns: Some(12_345_000_000),
            write_ops: 6789,
            write_bytes: 6789 * 8192,
            write_ns: Some(6_789_000_000),
            extend_ops: 1234,
            extend_bytes: 1234 * 8192,
            fsyncs: Some(120),
            hits: Some(5_000_000),
            evictions: Some(9999),
        };
        ServerStep {
            length_ns: SECOND,
            counters: ServerCounters {
                io: vec![
                    io("client backend", "bulkread"),
                    io("autovacuum worker", "vacuum"),
                    io("evil\u{1b}[2J", "normal"),
                ],
                ..ServerCounters::default()
            },
            explained: Some(ExplainedLoad {
                devices: vec!["nvme0n1p3".to_owned()],
                wall_ns: 30 * SECOND,
                read_bytes: 30_000_000,
                device_read_bytes: 40_000_000,
                write_bytes: 30_000_000,
                device_write_bytes: 90_000_000,
            }),
        }
    }

    #[test]
    fn lines_of_the_server_fit_eighty_columns_and_hide_escapes() {
        let page = text(&ServerView::Step(busy()), 80);
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(
            page.lines().all(is_narrow) && !page.contains('\u{1b}'),
            "{page}"
        );
        let page = page.replace('\u{a0}', " ");
        let first = page.lines().next().unwrap();
        assert!(
            first.contains("explains up to 75 % of the reads, up to 33 %"),
            "{page}"
        );
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .contains("of the writes of nvme0n1p3 (30 s)"),
            "{page}"
        );
        assert!(text(&ServerView::Step(busy()), 120).contains("client bulkread"));
    }

    #[test]
    fn lost_server_is_named_with_the_reason() {
        let lost = ServerView::Lost {
            why: "the server did not answer in time".to_owned(),
            is_retried: true,
        };
        assert_eq!(
            text(&lost, 80),
            "      PostgreSQL: retrying: the server did not answer in time\n"
        );
        assert!(text(&ServerView::Waiting, 80).contains("connected"));
        let ended = ServerView::Lost {
            why: "PostgreSQL: FATAL: terminating connection due to unexpected postmaster exit"
                .to_owned(),
            is_retried: true,
        };
        assert_eq!(
            text(&ended, 80),
            "      PostgreSQL: retrying: FATAL: terminating connection due to unexpected\n      \
             postmaster exit\n"
        );
    }
}
