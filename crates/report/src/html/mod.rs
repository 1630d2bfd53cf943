//! The page for a browser: one file that needs nothing else, for three readers. The administrator
//! finds the verdict, the findings and the settings, the engineer the figures and charts, the
//! vendor the disk, the method and the commands. The record itself stands in the page and can be
//! read back from it. Knows nothing of files or browsers; `script.js` and `style.css` are the
//! page's only moving parts.

mod charts;
mod comparison;
mod document;
mod elements;
mod figures;
mod findings;
mod machine;
mod map;
mod overview;
mod read_back;

pub use comparison::write_comparison;
pub use read_back::{PageError, page_json, read_record};

use crate::chart::{Chart, charts};
use crate::terminal::record::asked_text;
use crate::text::clean;
use crate::verdict::verdict;
use diskproof_model::record::Record;
use document::{Block, Document};
use elements::shown;
use maud::html;
use std::io::{self, Write};

/// Writes the page of a run.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let charts = charts(record);
    let map = map::scan_map(record);
    let (hero, others) = match charts.split_first() {
        Some((first, others)) if is_answer(first) => (Some(first), others),
        _ => (None, charts.as_slice()),
    };
    let has_charts = !others.is_empty() || map.is_some();
    let mut sections = vec![("verdict", "Verdict"), ("findings", "Findings")];
    if !record.advice.is_empty() {
        sections.push(("advice", "PostgreSQL"));
    }
    sections.push(("figures", "Figures"));
    if has_charts {
        sections.push(("charts", "Charts"));
    }
    sections.extend([
        ("disk", "Disk and machine"),
        ("method", "Method"),
        ("data", "Data"),
    ]);
    let verdict = verdict(record);
    let body = html! {
        (overview::overview(record, &verdict, hero))
        (findings::findings(record))
        (findings::advice(&record.advice))
        (figures::figures(record))
        @if has_charts { (charts::section(others, map)) }
        (machine::machine(record))
        (machine::method(record))
        (machine::data(record))
    };
    let title = format!(
        "{} · {}",
        shown(&asked_text(&record.plan)),
        clean(&record.started)
    );
    let record_block = Block {
        id: read_back::RECORD_ID,
        json: serde_json::to_string(record)?,
    };
    let chart_block = Block {
        id: "chart-data",
        json: charts::data(&charts).to_string(),
    };
    let map_block = map::data(record).map(|data| Block {
        id: "map-data",
        json: data.to_string(),
    });
    let blocks: Vec<Block> = [chart_block]
        .into_iter()
        .chain(map_block)
        .chain([record_block])
        .collect();
    let file_name = file_name(record);
    out.write_all(
        Document {
            title: &title,
            sections: &sections,
            file_name: &file_name,
            body,
            blocks: &blocks,
        }
        .render()
        .as_bytes(),
    )
}

/// Whether a chart is what the run was made for, and stands at the top: the rate across the
/// surface, the rate over the depth.
fn is_answer(chart: &Chart) -> bool {
    chart.id == "curve" || chart.id.starts_with("depth")
}

/// What files saved from the page are called: letters, digits and hyphens only.
fn file_name(record: &Record) -> String {
    let disk = record
        .targets
        .iter()
        .flat_map(|target| target.disks())
        .next()
        .map_or("disk", |disk| disk.name.as_str());
    let name = format!(
        "diskproof-{disk}-{}",
        record.started.get(..10).unwrap_or_default()
    );
    name.chars()
        .take(80)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A real record of `check`.
    pub(crate) fn record() -> Record {
        serde_json::from_str(include_str!(
            "../../../../tests/fixtures/check-directory.json"
        ))
        .unwrap()
    }

    fn page(record: &Record) -> String {
        let mut out = Vec::new();
        write_record(record, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Texts that break pages which trust them.
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
            (layer.model, layer.serial, layer.firmware) = (
                Some(text.to_owned()),
                Some(text.to_owned()),
                Some(text.to_owned()),
            );
        }
        for m in &mut record.measurements {
            m.workload.name = text.to_owned();
            m.reproduce = text.to_owned();
        }
        for finding in &mut record.findings {
            (finding.code, finding.claim, finding.remedy) =
                (text.to_owned(), text.to_owned(), text.to_owned());
        }
        for advice in &mut record.advice {
            (advice.setting, advice.why) = (text.to_owned(), text.to_owned());
        }
        record
    }

    #[test]
    fn a_record_comes_back_as_it_was_whatever_it_holds() {
        assert_eq!(read_record(&page(&record())).unwrap(), record());
        for text in HOSTILE.into_iter().chain([&*"x".repeat(10_000)]) {
            let record = hostile(text);
            assert_eq!(read_record(&page(&record)).unwrap(), record, "{text}");
        }
    }

    #[test]
    fn no_text_from_outside_becomes_markup() {
        let scripts = page(&record()).matches("<script").count();
        for text in HOSTILE {
            let page = page(&hostile(text));
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
    fn the_page_asks_for_nothing_and_stays_small() {
        let page = page(&record());
        let (_, policy) = page
            .split_once("Content-Security-Policy\" content=\"")
            .unwrap();
        let (policy, _) = policy.split_once('"').unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-"),
            "{policy}"
        );
        assert!(
            !policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"),
            "{policy}"
        );
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
    fn every_link_inside_the_page_leads_somewhere() {
        let page = page(&record());
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
    fn a_page_without_figures_says_so() {
        let mut record = record();
        (record.measurements, record.findings, record.advice) =
            (Vec::new(), Vec::new(), Vec::new());
        record.partial = true;
        let page = page(&record);
        assert!(page.contains("Nothing was measured.") && page.contains("Partial run: "));
    }

    #[test]
    fn what_is_no_page_of_ours_is_told() {
        assert!(matches!(
            read_record("<!DOCTYPE html><p>hello"),
            Err(PageError::NoRecord)
        ));
        let whole = page(&record());
        let cut = &whole[..whole.find("id=\"record\"").unwrap() + 2000];
        assert!(matches!(read_record(cut), Err(PageError::Unreadable(_))));
    }
}
