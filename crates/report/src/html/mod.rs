//! The page for a browser: one self-contained file for three readers. The administrator finds the
//! verdict, findings and settings, the engineer the figures and charts, the vendor the disk, method
//! and commands. The page contains the whole record, which can be read back from it.

use crate::chart::{self, Chart};
use crate::describe;
use crate::describe::run::request_text;
use crate::describe::target::{host_section, identity_sections, layers_text, tested_text};
use crate::text::clean;
pub use comparison::write_comparison;
use diskproof_model::block::{Block, Section, Shown};
use diskproof_model::health::DiskHealth;
use diskproof_model::record::{Kept, Record};
use diskproof_model::target::TargetIdentity;
use document::{DataBlock, Document, NavigationEntry};
use elements::{letters_and_digits, section, shown, wide_table};
pub use fleet::write_fleet;
use maud::{Markup, PreEscaped, html};
use saved_page::RECORD_ID;
pub use saved_page::{PageError, page_json, read_record};
use std::io::{self, Write};

mod blocks;
mod charts;
mod comparison;
mod document;
mod elements;
mod fleet;
mod map;
mod overview;
mod saved_page;

/// A larger page drops what was measured and keeps the figures. Pages are sent by mail; a larger
/// value keeps the data of more runs, but their pages are more often too large for that.
const PAGE_BYTES_MAX: usize = 600_000;

/// Writes the page of a run. The page of a large run keeps only its figures.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut text = page_text(record, record.kept)?;
    if text.len() > PAGE_BYTES_MAX && record.kept == Kept::Whole {
        text = page_text(record, Kept::FiguresOnly)?;
    }
    out.write_all(text.as_bytes())
}

/// The page; `kept` is the part of the record that can be read back from it.
fn page_text(record: &Record, kept: Kept) -> io::Result<String> {
    let charts = chart::charts(record);
    let map = map::scan_map(record);
    let (answer_chart, other_charts) = match charts.split_first() {
        Some((first, others)) if is_answer_chart(first) => (Some(first), others),
        _ => (None, charts.as_slice()),
    };
    let has_charts = !other_charts.is_empty() || map.is_some();
    let described = describe::sections(record);
    let body = html! {
        (overview::overview_section(record, answer_chart))
        // On a wide screen the findings stand next to the charts.
        div.evidence.split[has_charts] {
            div.side tabindex="0" role="region" aria-label="Findings and settings" {
                (described_section(record, &described, "findings", "Findings"))
                @if let Some(advice) = record.advice.first() {
                    @let heading = format!("Settings for {}", advice.server());
                    (described_section(record, &described, "advice", &heading))
                }
            }
            (described_section(record, &described, "figures", "Figures"))
            @if has_charts { (charts::section(other_charts, map)) }
        }
        (disk_section(record))
        (described_section(record, &described, "method", "Method"))
        (data_section(record, kept))
    };
    let request = shown(&request_text(&record.plan));
    let document = Document {
        title: &format!("{request} · {}", clean(&record.started)),
        sections: &navigation_sections(record, has_charts),
        file_name: &file_name(record),
        body: &body,
        data: &data_blocks(record, kept, &charts)?,
    };
    Ok(document.html())
}

/// The sections in the navigation.
fn navigation_sections(record: &Record, has_charts: bool) -> Vec<NavigationEntry<'_>> {
    let mut sections = vec![
        NavigationEntry::new("verdict", "Verdict"),
        NavigationEntry::new("findings", "Findings"),
    ];
    if let Some(advice) = record.advice.first() {
        sections.push(NavigationEntry::new("advice", advice.server()));
    }
    sections.push(NavigationEntry::new("figures", "Figures"));
    if has_charts {
        sections.push(NavigationEntry::new("charts", "Charts"));
    }
    sections.push(NavigationEntry::new("disk", "Disk and machine"));
    sections.push(NavigationEntry::new("method", "Method"));
    sections.push(NavigationEntry::new("data", "Data"));
    sections
}

/// The data for the script, and the record to be read back.
fn data_blocks(record: &Record, kept: Kept, charts: &[Chart]) -> io::Result<Vec<DataBlock>> {
    let mut blocks = vec![DataBlock::new(
        "chart-data",
        charts::data(charts).to_string(),
    )];
    if let Some(map) = map::data(record) {
        blocks.push(DataBlock::new("map-data", map.to_string()));
    }
    let json = match kept {
        Kept::Whole => serde_json::to_string(record)?,
        Kept::FiguresOnly => serde_json::to_string(&record.clone().figures_only())?,
    };
    blocks.push(DataBlock::new(RECORD_ID, json));
    Ok(blocks)
}

/// The described sections of this id under one heading, without those of short pages. Says "None."
/// where there are none.
fn described_section(record: &Record, described: &[Section], id: &str, heading: &str) -> Markup {
    let mut content = String::new();
    for section in described {
        if section.id != id || section.shown == Shown::Short {
            continue;
        }
        let blocks = match section.blocks.as_slice() {
            // The heading of the section takes its place; the figures have several.
            [Block::Heading(_), blocks @ ..] if id != "figures" => blocks,
            blocks => blocks,
        };
        content += &blocks::blocks(blocks, Some(record)).into_string();
    }
    if content.is_empty() {
        let none = html! { p.alert.good { span.sign aria-hidden="true" { "✓" } " None." } };
        section(id, heading, &none)
    } else {
        section(id, heading, &PreEscaped(content))
    }
}

/// True if a chart answers the question of a run and so stands at the top: the rate by position and
/// the rate over the depth do.
fn is_answer_chart(chart: &Chart) -> bool {
    chart.id == "curve" || chart.id == "rate-by-position" || chart.id.starts_with("depth")
}

/// `diskproof-sda-2026-11-20`: the name of files saved from the page, without extension; letters,
/// digits and hyphens only.
fn file_name(record: &Record) -> String {
    let first = record
        .targets
        .iter()
        .find_map(|target| target.disks().next());
    let disk = match first {
        Some(disk) => disk.name.as_str(),
        None => "disk",
    };
    let day = record.started.get(..10).unwrap_or_default();
    letters_and_digits(&format!("diskproof-{disk}-{day}"))
}

/// The section `disk`: a card for each target, filesystem, layer and health report, and for the
/// machine.
fn disk_section(record: &Record) -> Markup {
    let content = html! {
        @for (index, target) in record.targets.iter().enumerate() {
            (cards_markup(&target_cards(record, index, target)))
        }
        (cards_markup(&[host_section(&record.host)]))
    };
    section("disk", "Disk and machine", &content)
}

fn cards_markup(sections: &[Vec<Block>]) -> Markup {
    html! {
        div.cards { @for section in sections { div.card { (blocks::blocks(section, None)) } } }
    }
}

/// The facts of the target with this index: a card for each of its parts, the target first.
fn target_cards(record: &Record, index: usize, target: &TargetIdentity) -> Vec<Vec<Block>> {
    let mut health: Vec<&DiskHealth> = Vec::new();
    for report in &record.health {
        if target.disks().any(|disk| disk.name == report.disk) {
            health.push(report);
        }
    }
    let mut cards = identity_sections(target, &health);
    cards[0].push(Block::fact(
        "tested",
        tested_text(index, target, &record.plan),
    ));
    if let Some(layers) = layers_text(target) {
        cards[0].push(Block::fact("layers", layers));
    }
    cards
}

/// The section `data`: what the page contains, and buttons that save it.
fn data_section(record: &Record, kept: Kept) -> Markup {
    let content = html! {
        p {
            (contents_sentence(kept)) " "
            code { "diskproof show THIS-FILE.html" }
            " prints it; other commands accept it as a saved run."
            @if kept == Kept::FiguresOnly {
                " It does not keep what was measured, so it cannot be judged again: for that, save \
                 the run as JSON (" code { "-o FILE.json" } ")."
            }
        }
        p.buttons {
            button #save-record.scripted type="button" { "Save the record as JSON" }
            " " button #save-charts.scripted type="button" { "Save all charts as CSV" }
        }
        noscript {
            p {
                "Scripts are disabled: charts are pictures, and the source of this file contains \
                 the record."
            }
        }
        (wide_table("Contents of the record", &contents_table(record)))
    };
    section("data", "Data", &content)
}

fn contents_sentence(kept: Kept) -> &'static str {
    match kept {
        Kept::FiguresOnly => "This file contains the settings and figures of the record.",
        Kept::Whole => "This file contains the whole record: every setting, series and histogram.",
    }
}

fn contents_table(record: &Record) -> Markup {
    let rows = [
        ("measurements", record.measurements.len()),
        ("points of the transfer curve", record.curve().len()),
        ("accesses", record.access().len()),
        ("findings", record.findings.len()),
        ("settings", record.advice.len()),
        ("expectations", record.expectations.len()),
    ];
    html! {
        table.plain {
            thead {
                tr {
                    th scope="col" { "In the record (" (shown(&record.schema)) ")" }
                    th.number scope="col" { "Number" }
                }
            }
            tbody { @for (name, n) in rows { tr { th scope="row" { (name) } td.number { (n) } } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{assert_shows, record, written};
    use diskproof_model::series::Cell;

    fn page_text(record: &Record) -> String {
        written(|out| write_record(record, out))
    }

    /// Texts that break pages without escaping.
    const HOSTILE: [&str; 5] = [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "<!--<script>",
        "a\u{202e}b\u{2028}c\u{0}d",
        r#"<script type="application/json" id="record">{}</script>"#,
    ];

    fn hostile(text: &str) -> Record {
        let mut record = record();
        record.note = Some(text.to_owned());
        record.host.name = text.to_owned();
        record.ended_early = Some(text.to_owned());
        record.plan.targets = vec![text.to_owned()];
        record.targets[0].path = text.to_owned();
        for layer in &mut record.targets[0].layers {
            for name in [&mut layer.model, &mut layer.serial, &mut layer.firmware] {
                *name = Some(text.to_owned());
            }
        }
        for measurement in &mut record.measurements {
            measurement.data.workload.name = text.to_owned();
            measurement.figures.reproduce = text.to_owned();
        }
        for finding in &mut record.findings {
            for part in [&mut finding.code, &mut finding.claim, &mut finding.remedy] {
                *part = text.to_owned();
            }
        }
        for advice in &mut record.advice {
            (advice.setting, advice.why) = (text.to_owned(), text.to_owned());
        }
        record
    }

    #[test]
    fn record_is_read_back_unchanged() {
        assert_eq!(read_record(&page_text(&record())).unwrap(), record());
        for text in HOSTILE.into_iter().chain([&*"x".repeat(10_000)]) {
            let record = hostile(text);
            assert_eq!(read_record(&page_text(&record)).unwrap(), record, "{text}");
        }
    }

    #[test]
    fn hostile_text_never_becomes_markup() {
        let scripts = page_text(&record()).matches("<script").count();
        for text in HOSTILE {
            let page = page_text(&hostile(text));
            assert_eq!(page.matches("<script").count(), scripts, "{text}");
            assert!(!page.contains("<img"), "{text}");
            let comments = page.matches("<!--").count();
            assert_eq!(comments, 1, "the licence of the charts only: {text}");
            let (markup, _) = page.split_once("<script").unwrap();
            assert!(
                !markup.contains(['\u{202e}', '\u{2028}', '\u{0}']),
                "{text}"
            );
        }
    }

    #[test]
    fn page_requests_nothing_and_stays_small() {
        let page = page_text(&record());
        let name = "Content-Security-Policy\" content=\"";
        let (_, policy) = page.split_once(name).unwrap();
        let (policy, _) = policy.split_once('"').unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-"),
            "{policy}"
        );
        for wrong in ["unsafe", "*", "http"] {
            assert!(!policy.contains(wrong), "{policy}");
        }
        let (markup, _) = page.split_once("<script type=").unwrap();
        for wrong in [
            " src=",
            " style=",
            " onclick=",
            " onload=",
            "@import",
            "url(",
        ] {
            assert!(!markup.contains(wrong), "{wrong}");
        }
        assert!(page.len() < 400_000, "{} bytes", page.len());
    }

    #[test]
    fn page_has_no_dead_links() {
        let page = page_text(&record());
        let targets: Vec<&str> = page
            .split(" href=\"#")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(targets.len() > 10);
        for target in targets {
            assert!(page.contains(&format!(" id=\"{target}\"")), "#{target}");
        }
    }

    #[test]
    fn first_finding_of_a_code_has_its_anchor() {
        let mut record = record();
        let mut other = record.findings[0].clone();
        other.claim.push_str(" Elsewhere, too.");
        let anchor = format!(" id=\"finding-{}\"", other.code);
        record.findings.push(other);
        assert_eq!(page_text(&record).matches(&anchor).count(), 1, "{anchor}");
    }

    #[test]
    fn page_without_figures_reports_it() {
        let mut record = record();
        record.measurements.clear();
        (record.findings, record.advice, record.partial) = (Vec::new(), Vec::new(), true);
        assert_shows(
            &page_text(&record),
            &["Nothing was measured", "Partial run: "],
        );
    }

    #[test]
    fn foreign_and_cut_pages_are_refused() {
        let foreign = read_record("<!DOCTYPE html><p>hello");
        assert!(matches!(foreign, Err(PageError::NoRecord)));
        let whole = page_text(&record());
        let cut = &whole[..whole.find("id=\"record\"").unwrap() + 2000];
        assert!(matches!(read_record(cut), Err(PageError::Unreadable(_))));
    }

    #[test]
    fn a_page_too_large_for_mail_keeps_no_data() {
        let small = page_text(&record_with_cells(9));
        let large = page_text(&record_with_cells(8000));
        assert!(large.len() <= PAGE_BYTES_MAX, "{}", large.len());
        assert!(!page_json(&small).unwrap().contains("figures-only"));
        assert!(page_json(&large).unwrap().contains("figures-only"));
    }

    /// A record whose series have so many cells, of numbers that do not deflate.
    fn record_with_cells(count: u64) -> Record {
        let mut cells = Vec::new();
        for index in 1..=count {
            cells.push(Cell {
                ops: index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 4,
                bytes: index.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 4,
                ..Cell::default()
            });
        }
        let mut record = record();
        record.kept = Kept::Whole;
        for row in &mut record.measurements {
            for op in row.data.ops.values_mut() {
                op.series.cells = cells.clone();
            }
        }
        record
    }
}
