//! A record, a comparison or a fleet as Markdown, for tickets and pull requests: the verdict and
//! tables.

use crate::describe::comparison::{MetricDetail, blocks};
use crate::describe::fleet::{self, FleetDetail};
use crate::describe::run::{request_text, start_text};
use crate::describe::sections;
use crate::describe::verdict::headline_blocks;
use crate::labels;
use crate::text::clean;
use diskproof_model::block::{Block, Group, Place, Shown, Table, Tone};
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::Record;
use std::io::{self, Write};

/// Writes the verdict, the expectations, the figures and the findings.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let request = request_text(&record.plan);
    let started = start_text(&record.started);
    writeln!(out, "# {}\n", escaped(&format!("{request} · {started}")))?;
    write_blocks(&headline_blocks(record), out)?;
    for section in sections(record) {
        let is_kept = ["expectations", "figures", "findings"].contains(&section.id);
        if is_kept && section.shown != Shown::Short {
            write_blocks(&section.blocks, out)?;
        }
    }
    Ok(())
}

/// Writes the summaries and the table of a comparison.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    for candidate in &comparison.candidates {
        writeln!(out, "**{}**\n", escaped(&candidate.summary))?;
    }
    write_blocks(&blocks(comparison, MetricDetail::Independent), out)
}

/// Writes the sentence and the tables of a fleet.
pub(crate) fn write_fleet(fleet: &FleetRecord, out: &mut dyn Write) -> io::Result<()> {
    write_blocks(&fleet::blocks(fleet, FleetDetail::All), out)
}

/// Writes blocks. Drawings have no form in Markdown, and are skipped.
fn write_blocks(blocks: &[Block], out: &mut dyn Write) -> io::Result<()> {
    let mut was_item = false;
    for block in blocks {
        let is_text = matches!(block, Block::Text(..));
        if is_text && was_item {
            // Without an empty line the text would belong to the last item.
            writeln!(out)?;
        }
        was_item = matches!(
            block,
            Block::Fact(_) | Block::Finding(_) | Block::Command { .. }
        );
        match block {
            Block::Heading(text) => writeln!(out, "\n## {}\n", escaped(text))?,
            Block::Text(Tone::Bold, text) => writeln!(out, "**{}**\n", escaped(text))?,
            Block::Text(_, text) => writeln!(out, "{}\n", escaped(text))?,
            Block::Fact(fact) => {
                writeln!(out, "* {}: {}", escaped(&fact.label), escaped(&fact.text))?
            }
            Block::Table(table) => write_table(table, out)?,
            Block::Finding(finding) => writeln!(
                out,
                "* **{}: {}.** {}",
                labels::severity(finding.severity),
                escaped(finding.heading()),
                escaped(&finding.claim)
            )?,
            Block::Command { what, text } => {
                writeln!(out, "* {}: {}", escaped(what), escaped(text))?
            }
            Block::Chart(_) | Block::Ping(_) | Block::Scan => {}
        }
    }
    Ok(())
}

/// Writes a table. Titles and notes of groups become columns.
fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let columns = TextColumns::new(table);
    let names = columns.line("workload", "conditions", |index| &table.columns[index].name);
    writeln!(out, "\n| {} |", names.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(names.len()))?;
    let mut group = &Group::default();
    for row in &table.rows {
        group = row.group.as_ref().unwrap_or(group);
        let texts = columns.line(&group.title, &group.note, |index| &row.cells[index].text);
        let cells: Vec<String> = texts.iter().map(|text| escaped(text.trim())).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)?;
    write_warnings(table, out)
}

/// Writes why rows of a table are in doubt: a list item for each group that is.
fn write_warnings(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut has_warnings = false;
    for group in table.rows.iter().flat_map(|row| &row.group) {
        if !group.warning.is_empty() {
            writeln!(
                out,
                "* {}: {}",
                escaped(&group.title),
                escaped(&group.warning)
            )?;
            has_warnings = true;
        }
    }
    if has_warnings { writeln!(out) } else { Ok(()) }
}

/// The columns of a table in Markdown.
struct TextColumns {
    /// True if the first column has the titles of groups.
    has_titles: bool,
    /// True if the next one has their notes.
    has_notes: bool,
    /// The columns of the table that hold text.
    indices: Vec<usize>,
}

impl TextColumns {
    fn new(table: &Table) -> Self {
        let mut has_titles = false;
        let mut has_notes = false;
        for row in &table.rows {
            if let Some(group) = &row.group {
                has_titles = true;
                has_notes |= !group.note.is_empty();
            }
        }
        let mut indices = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            if matches!(column.place, Place::Always | Place::Roomy(_)) {
                indices.push(index);
            }
        }
        Self {
            has_titles,
            has_notes,
            indices,
        }
    }

    /// The cells of a line, from the title and the note of its group and the text of each column.
    fn line<'a>(
        &self,
        title: &'a str,
        note: &'a str,
        text: impl Fn(usize) -> &'a str,
    ) -> Vec<&'a str> {
        let mut cells = Vec::new();
        if self.has_titles {
            cells.push(title);
        }
        if self.has_notes {
            cells.push(note);
        }
        for index in &self.indices {
            cells.push(text(*index));
        }
        cells
    }
}

/// A text without anything that Markdown or HTML would act on.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut previous = None;
    let cleaned = clean(text);
    let mut letters = cleaned.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' if is_mention(previous, letters.peek().copied()) => escaped.push_str(NO_MENTION),
            _ => escaped.push(letter),
        }
        previous = Some(letter);
    }
    escaped
}

/// An @ that names nobody. GitHub and GitLab look for names after they have removed backslashes and
/// entities; an empty comment parts the name from the sign, and is not shown.
const NO_MENTION: &str = "@<!-- -->";

/// True if an @ between these letters would notify a user of this name, as in `@admin`. The address
/// `root@db1` notifies nobody.
fn is_mention(previous: Option<char>, next: Option<char>) -> bool {
    let follows_word = previous.is_some_and(char::is_alphanumeric);
    let has_name = next.is_some_and(char::is_alphanumeric);
    has_name && !follows_word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::figures::shown_ops;
    use crate::fixture::{self, written};
    use crate::formats::format_of;
    use diskproof_model::block::{Align, Cell, Column, Fact, TableRow};
    use std::path::Path;

    #[test]
    fn cells_contain_no_markup() {
        assert_eq!(escaped("a|b"), "a\\|b");
        assert_eq!(
            escaped("<img src=x> & *b*"),
            "&lt;img src=x&gt; &amp; \\*b\\*"
        );
        assert_eq!(
            escaped("[x](y)\n# z"),
            "\\[x\\](y)\\n\\# z".replace("\\n", "\\\\n")
        );
        assert_eq!(escaped("~~gone~~"), "\\~\\~gone\\~\\~");
        assert_eq!(escaped("disk of @admin"), "disk of @<!-- -->admin");
        assert_eq!(escaped("root@db1, 5 @ 3"), "root@db1, 5 @ 3");
    }

    #[test]
    fn reason_for_doubt_stands_below_the_table() {
        let group = Group {
            title: "random-read-d32".to_owned(),
            warning: "other engines: uring | sync".to_owned(),
            ..Group::default()
        };
        let row = TableRow {
            group: Some(group),
            ..TableRow::default()
        };
        let table = Table {
            rows: vec![row],
            ..Table::default()
        };
        let page = written(|out| write_table(&table, out));
        let warning = "\n\n* random-read-d32: other engines: uring \\| sync\n";
        assert!(page.contains(warning), "{page}");
    }

    #[test]
    fn record_has_its_verdict_and_a_row_for_each_operation() {
        let record = fixture::record();
        let page = written(|out| write_record(&record, out));
        let rows: usize = record
            .measurements
            .iter()
            .map(|row| shown_ops(row).len())
            .sum();
        let lines = page.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(lines, rows + 1, "{page}");
    }

    #[test]
    fn comparisons_are_written_as_markdown_csv_and_svg() {
        let comparison = fixture::comparison();
        let metrics: usize = comparison
            .candidates
            .iter()
            .map(|candidate| candidate.metrics.len())
            .sum();
        let csv = written_as("x.csv", &comparison);
        assert_eq!(csv.lines().count(), metrics + 1, "{csv}");
        let heading = csv.lines().next().unwrap();
        assert!(heading.ends_with("change_percent,verdict"), "{heading}");
        let last = csv.lines().last().unwrap();
        assert_eq!(last.matches(',').count(), heading.matches(',').count());
        let markdown = written_as("x.md", &comparison);
        assert!(
            markdown.contains("| workload |  | verdict | A | B | B/A | change |"),
            "{markdown}"
        );
        let svg = written_as("x.svg", &comparison);
        assert!(svg.contains("<svg") && svg.contains("<circle"), "{svg}");
    }

    /// The comparison in the format of a file of this name.
    fn written_as(name: &str, comparison: &Comparison) -> String {
        let format = format_of(Path::new(name)).unwrap();
        let write = format.comparison.expect("comparisons");
        written(|out| write(comparison, out))
    }

    fn fact() -> Block {
        Block::Fact(Fact {
            label: "size".to_owned(),
            tone: Tone::default(),
            text: "1 GiB".to_owned(),
        })
    }

    fn text() -> Block {
        Block::Text(Tone::default(), "why".to_owned())
    }

    /// Else the text would belong to the item.
    #[test]
    fn empty_line_stands_between_an_item_and_a_text() {
        let page = |blocks: &[Block]| written(|out| write_blocks(blocks, out));
        assert_eq!(page(&[fact(), text()]), "* size: 1 GiB\n\nwhy\n\n");
        assert_eq!(page(&[text(), fact()]), "why\n\n* size: 1 GiB\n");
        assert_eq!(page(&[fact(), fact()]).lines().count(), 2);
        assert_eq!(page(&[Block::Scan, text()]), "why\n\n");
    }

    fn column(name: &str, place: Place) -> Column {
        Column {
            name: name.to_owned(),
            align: Align::Left,
            place,
        }
    }

    /// The title and the note of a group stand in each of its rows, and a column of pages that
    /// scroll in none.
    #[test]
    fn rows_repeat_the_title_and_the_note_of_their_group() {
        let row = |group: Option<Group>| TableRow {
            group,
            cells: ["1", "2"]
                .map(|text| Cell {
                    text: text.to_owned(),
                    ..Cell::default()
                })
                .to_vec(),
            ..TableRow::default()
        };
        let group = |title: &str| Group {
            title: title.to_owned(),
            note: "direct".to_owned(),
            ..Group::default()
        };
        let table = Table {
            columns: vec![column("IOPS", Place::Always), column("p99", Place::Page)],
            rows: vec![row(Some(group("a"))), row(None), row(Some(group("b")))],
            ..Table::default()
        };
        let page = written(|out| write_table(&table, out));
        let lines: Vec<&str> = page.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "| workload | conditions | IOPS |",
                "|---|---|---|",
                "| a | direct | 1 |",
                "| a | direct | 1 |",
                "| b | direct | 1 |",
            ]
        );
    }
}
