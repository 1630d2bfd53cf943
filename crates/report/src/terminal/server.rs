//! A PostgreSQL server alongside the disks, in a step of `watch`.

use crate::describe::server::{explained_text, rates_text, table};
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use crate::text::{clean, glue};
use diskproof_model::block::{Row, Table};
use diskproof_model::server_load::{ServerStep, ServerView};
use diskproof_model::units::format_duration;
use std::io;

/// Columns before the lines of a step.
const INDENT: &str = "      ";
/// Rows in a step: the others have a small part of the load.
const STEP_ROWS_MAX: usize = 4;

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
            let text = format!("PostgreSQL: {next}: {why}");
            indented(page, TextStyle::Warning, &text)
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
    let rates = rates_text(&step.counters, step.length_ns);
    page.unbroken(TextStyle::Dim.of(format!("{INDENT}server {rates}")))?;
    let busiest = step.counters.io.iter().filter(|io| io.bytes() > 0);
    let table = table(busiest.take(STEP_ROWS_MAX), step.length_ns);
    let width = page.width().saturating_sub(INDENT.len());
    for line in table_lines(&table, width) {
        page.unbroken(TextStyle::Dim.of(format!("{INDENT}{line}")))?;
    }
    Ok(())
}

/// The lines of a table; none where it is too wide.
fn table_lines(table: &Table, width: usize) -> Vec<String> {
    let aligns: Vec<Align> = table.columns.iter().map(|column| column.align).collect();
    let names = table.columns.iter().map(|column| column.name.clone());
    let texts = |row: &Row| row.cells.iter().map(|cell| cell.text.clone()).collect();
    let rows = std::iter::once(names.collect()).chain(table.rows.iter().map(texts));
    let rows: Vec<Vec<String>> = rows.collect();
    match Columns::fit(&aligns, &rows, width) {
        Some(fitted) if rows.len() > 1 => rows.iter().map(|row| fitted.line(row)).collect(),
        _ => Vec::new(),
    }
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
