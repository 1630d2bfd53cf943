//! The figures of a target from run to run: for each run a line with a bar, the oldest first.

use super::blocks::write_blocks;
use super::sparkline::bar;
use crate::describe::run::{short_run_id, start_text};
use crate::labels::third_digit_unit;
use crate::page::Page;
use crate::style::Style;
use diskproof_model::block::{Align, Block, Column, Place, Table, TableRow, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::saved::named;
use diskproof_model::trend::{Trend, TrendChange, TrendPoint};
use std::io::{self, Write};

/// Columns of the longest bar. With more, the remark does not fit a line of 80 columns.
const BAR_COLUMNS: usize = 20;

/// Writes a table for each figure with a line for each run, and a legend. Writes nothing without
/// any.
pub fn write_trends(trends: &[Trend], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let has_several_targets = trends.iter().any(|trend| trend.target != trends[0].target);
    let mut tables = Vec::new();
    for trend in trends {
        let target = match &trend.target {
            Some(target) if has_several_targets => Some(target.as_str()),
            Some(_) | None => None,
        };
        tables.extend(trend_blocks(trend, target));
    }
    write_blocks(page, None, &tables);
    if !trends.is_empty() {
        page.blank();
        page.text(Tone::Dim.span(
            "Each run against the median of the ten before it. usual: runs like those before \
             differ as much by chance.",
        ));
    }
    page.finish()
}

/// The table of a trend. Its title has the target where that is given.
fn trend_blocks(trend: &Trend, target: Option<&str>) -> [Block; 2] {
    // What does not count sets no scale.
    let mut largest = 0.0_f64;
    for point in &trend.points {
        if point.objection.is_none() {
            largest = largest.max(point.value);
        }
    }
    let rows = trend
        .points
        .iter()
        .map(|point| point_row(point, &trend.unit, largest))
        .collect();
    let mut columns = Column::words([""; 5]);
    columns[1].place = Place::Roomy(1);
    columns[2].align = Align::Right;
    columns[3].place = Place::Roomy(2);
    let subject = named(&trend.subject, &trend.operation);
    let mut title = match trend.metric.as_str() {
        // The unit of its figures says which of them it is.
        "iops" | "throughput" | "average" => subject,
        metric => format!("{subject} {metric}"),
    };
    if let Some(target) = target {
        title.push_str(&format!(" on {target}"));
    }
    let table = Table::new("", columns, rows);
    [Block::Heading(title), Block::Table(table)]
}

fn point_row(point: &TrendPoint, unit: &str, largest: f64) -> TableRow {
    let mut tone = Tone::Plain;
    let mut remark = String::new();
    if let Some(change) = &point.change {
        remark = change_text(change);
        if change.is_beyond_chance == Some(true) {
            tone = Tone::Bold;
        }
    }
    if point.is_hidden_by_waits() {
        remark = "waited for processors".to_owned();
        tone = Tone::Plain;
    }
    if let Some(code) = &point.objection {
        remark = format!("does not count: {code}");
    }
    let started = start_text(&point.started);
    let cells = vec![
        started.trim_end_matches(" UTC").to_owned(),
        short_run_id(&point.run_id),
        // Three digits, so that the changes agree with what is printed.
        figure_text(point.value, Some(third_digit_unit(point.value)), unit),
        format!(
            "{:BAR_COLUMNS$}",
            bar((point.value / largest).min(1.0), BAR_COLUMNS)
        ),
        remark,
    ];
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// `−12 %`: the change against the runs before, and whether chance explains it.
fn change_text(change: &TrendChange) -> String {
    let percent = format!("{:+.0} %", change.share * 100.0).replace('-', "−");
    match change.is_beyond_chance {
        Some(true) => percent,
        Some(false) => format!("{percent}  usual"),
        None => format!("{percent}  too few runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{plain, written};

    #[test]
    fn every_run_is_a_line_within_eighty_columns() {
        let point = |day: u32, value: f64, change| TrendPoint {
            run_id: format!("{day:032}"),
            started: format!("2026-11-{day:02}T03:00:00Z"),
            value,
            half_width_95: Some(10.0),
            change,
            objection: None,
            without_waits: None,
        };
        let changed = |share, is_beyond_chance| {
            Some(TrendChange {
                share,
                is_beyond_chance,
            })
        };
        let trend = Trend {
            subject: "commit-fdatasync".to_owned(),
            operation: "commit".to_owned(),
            target: Some("/data".to_owned()),
            metric: "iops".to_owned(),
            unit: "1/s".to_owned(),
            points: vec![
                point(1, 2000.0, None),
                point(2, 2100.0, changed(0.05, None)),
                point(3, 2000.0, changed(-0.02, Some(false))),
                point(4, 1000.0, changed(-0.5, Some(true))),
                TrendPoint {
                    objection: Some("served-from-cache".to_owned()),
                    ..point(5, 90_000.0, None)
                },
                TrendPoint {
                    without_waits: Some(400.0),
                    ..point(6, 300.0, changed(-0.8, Some(true)))
                },
            ],
            newest_without_figure: None,
        };
        let other = Trend {
            target: Some("/other".to_owned()),
            ..trend.clone()
        };
        let both = written(|out| write_trends(&[trend.clone(), other], &plain(80), out));
        for target in ["on /data", "on /other"] {
            assert_eq!(both.matches(target).count(), 1, "{both}");
        }
        let text = written(|out| write_trends(&[trend], &plain(80), out));
        assert!(!text.contains("/data"), "{text}");
        let runs = text.lines().filter(|line| line.contains("2026-11")).count();
        assert_eq!(runs, 6, "{text}");
        assert!(
            text.lines().all(|line| crate::text::columns(line) <= 80),
            "{text}"
        );
        assert!(text.lines().any(|line| line.ends_with("−50 %")), "{text}");
        assert!(text.contains("does not count: served"), "{text}");
        assert!(text.contains("waited for processors"), "{text}");
    }
}
