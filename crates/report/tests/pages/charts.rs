//! The charts of every fixture: which there are, what they say, and that all of it can be drawn.

use crate::{RECORDS, fixture, is_harmless, plain, record_page, written};
use diskproof_model::record::Record;
use diskproof_model::row::OpFigures;
use diskproof_report::chart::{AxisSide, Chart, Scale, SeriesMark, charts};
use diskproof_report::{gnuplot, html, svg};
use std::collections::BTreeSet;

/// A chart in words, with the ends of every series.
fn outline(chart: &Chart) -> String {
    let mut text = format!("{}: {}\n", chart.id, chart.title);
    let right = chart.y_right.iter().map(|axis| ("y right", axis));
    for (name, axis) in [("x", &chart.x), ("y", &chart.y)].into_iter().chain(right) {
        text += &format!(
            "  {name}: {} [{}] {:?} from {:?} ticks {:?}\n",
            axis.label, axis.unit, axis.scale, axis.min, axis.ticks
        );
    }
    for series in &chart.series {
        let (first, last) = (series.points[0], series.points[series.points.len() - 1]);
        let has_bars = series
            .points
            .iter()
            .any(|point| point.half_width_95.is_some());
        let bars = if has_bars { ", error bars" } else { "" };
        let first = (first.x, first.y);
        let last = (last.x, last.y);
        let points = series.points.len();
        text += &format!(
            "  {:?} {:?} {}: {points} points {first:.3?} to {last:.3?}{bars}\n",
            series.mark, series.side, series.name
        );
    }
    for guide in &chart.guides {
        text += &format!(
            "  guide {}: {:?} {:.3}\n",
            guide.label, guide.axis, guide.value
        );
    }
    text
}

#[test]
fn chart_lists_snapshot() {
    let outlines = |record: &Record| charts(record).iter().map(outline).collect::<String>();
    insta::assert_snapshot!("charts_surveyed", outlines(&fixture::surveyed()));
    insta::assert_snapshot!("charts_depths", outlines(&fixture::depths()));
    insta::assert_snapshot!("charts_two_targets", outlines(&fixture::two_targets()));
}

#[test]
fn chart_data_are_drawable() {
    for (name, record) in &*RECORDS {
        let charts = charts(record);
        assert!(!charts.is_empty(), "{name}");
        for chart in &charts {
            let id = &chart.id;
            assert!(
                id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{id}"
            );
            let names = chart.series.iter().map(|s| &s.name);
            let labels = chart.guides.iter().map(|g| &g.label);
            let texts = [&chart.title, &chart.caption]
                .into_iter()
                .chain(names)
                .chain(labels);
            let mut chars = texts.flat_map(|text| text.chars());
            assert!(chars.all(|c| c != '\n' && is_harmless(c)), "{name} {id}");
            assert_drawable(chart);
        }
        let ids: BTreeSet<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids.len(), charts.len(), "{name}: {ids:?}");
    }
}

fn assert_drawable(chart: &Chart) {
    let is_right = |side: &AxisSide| *side == AxisSide::Right;
    let has_right = chart.series.iter().any(|s| is_right(&s.side));
    assert_eq!(chart.y_right.is_some(), has_right, "{}", chart.id);
    for guide in &chart.guides {
        assert!(
            guide.value.is_finite() && (has_right || !is_right(&guide.axis)),
            "{}",
            chart.id
        );
    }
    for series in &chart.series {
        let (place, points) = (format!("{} {}", chart.id, series.name), &series.points);
        assert!(!points.is_empty(), "{place}");
        assert!(
            points
                .iter()
                .all(|point| point.x.is_finite() && point.y.is_finite()),
            "{place}"
        );
        let is_log = chart.x.scale == Scale::Log;
        assert!(
            !is_log || points.iter().all(|point| point.x > 0.0),
            "{place}"
        );
        let is_line = series.mark == SeriesMark::Line;
        assert!(
            !is_line || points.is_sorted_by_key(|point| point.x),
            "{place}"
        );
    }
}

/// 39 level lines hid the one with a step.
#[test]
fn of_many_workloads_those_that_change_have_a_picture() {
    let mut record = fixture::depths();
    let is_over_time = |chart: &&Chart| chart.id.starts_with("time-");
    let shown = |record: &Record| charts(record).iter().filter(is_over_time).count();
    let mut level = record.measurements[0].clone();
    level.figures.settled = Some(true);
    level.figures.settling_ns = 0;
    level.figures.phases = Vec::new();
    level.data.interruptions = Vec::new();
    record.findings.clear();
    record.measurements = vec![level; 16];
    assert_eq!(shown(&record), 16);
    record.measurements.push(record.measurements[0].clone());
    assert_eq!(shown(&record), 1);
    record.measurements[4].figures.settled = Some(false);
    assert_eq!(shown(&record), 2);
}

#[test]
fn empty_record_has_no_charts() {
    let mut record = fixture::surveyed();
    record.results.clear();
    assert_eq!(charts(&record), []);
}

#[test]
fn knee_is_the_depth_with_the_best_iops_over_latency() {
    let charts = charts(&fixture::depths());
    let chart = charts
        .iter()
        .find(|chart| chart.id.starts_with("depth-"))
        .unwrap();
    let labels: Vec<&str> = chart
        .guides
        .iter()
        .map(|guide| guide.label.as_str())
        .collect();
    assert_eq!(labels, ["knee at 16"]);
    assert_eq!(chart.x.scale, Scale::Log, "depths are powers of two");
}

#[test]
fn knee_is_absent_where_intervals_overlap_or_at_an_end() {
    let guides = |change: &dyn Fn(u32, &mut OpFigures)| {
        let mut record = fixture::depths();
        for measurement in &mut record.measurements {
            let depth = measurement.data.workload.depth;
            for op in measurement.figures.ops.values_mut() {
                change(depth, op);
            }
        }
        let charts = charts(&record);
        let mut of_depth = charts.iter().filter(|chart| chart.id.starts_with("depth-"));
        of_depth.next().unwrap().guides.len()
    };
    assert_eq!(guides(&|_, _| {}), 1);
    let wide = |_: u32, op: &mut OpFigures| op.iops.half_width_95 = Some(0.1 * op.iops.value);
    assert_eq!(guides(&wide), 0);
    let unknown = |_: u32, op: &mut OpFigures| op.iops.half_width_95 = None;
    assert_eq!(guides(&unknown), 0);
    // A disk that never saturates is at its best at the largest depth measured.
    let linear = |depth: u32, op: &mut OpFigures| {
        (op.iops.value, op.iops.half_width_95) = (9000.0 * f64::from(depth), Some(9.0));
    };
    assert_eq!(guides(&linear), 0);
}

#[test]
fn unreadable_positions_are_shown_without_a_rate() {
    let mut record = fixture::surveyed();
    let point = &mut record.surface_mut().unwrap().data.curve[100];
    (point.bytes, point.bytes_per_second, point.errors) = (0, 0.0, 8);
    let charts = charts(&record);
    let points = |name: &str| {
        let found = charts[0].series.iter().find(|series| series.name == name);
        found.expect("the chart has it").points.len()
    };
    assert_eq!((points("transfer rate"), points("unreadable")), (199, 1));
}

#[test]
fn slow_access_switches_the_axis_to_log() {
    let mut record = fixture::surveyed();
    let scale = |record: &Record| charts(record)[0].y_right.as_ref().map(|axis| axis.scale);
    assert_eq!(scale(&record), Some(Scale::Linear));
    record.surface_mut().unwrap().data.access[7].latency_ns = 3_000_000_000;
    assert_eq!(scale(&record), Some(Scale::Log));
}

/// Records come from anywhere: a curve point 2^50 bytes beyond its span kept `show` in a loop.
#[test]
fn page_size_is_bounded_for_extreme_numbers() {
    let mut record = fixture::surveyed();
    record.note = Some("x".repeat(1 << 20));
    let surface = record.surface_mut().unwrap();
    for (index, point) in surface.data.curve.iter_mut().enumerate() {
        point.offset_bytes = u64::MAX - index as u64;
        point.bytes_per_second = f64::MAX / (index + 1) as f64;
        point.readings = vec![0.0, f64::MAX];
    }
    for point in &mut surface.data.access {
        (point.latency_ns, point.distance_bytes) = (u64::MAX, u64::MAX);
    }
    (surface.data.span_start_bytes, surface.data.span_bytes) = (u64::MAX, u64::MAX);
    let rate = surface.figures.rate.as_mut().unwrap();
    (rate.min, rate.max, rate.average.value) = (f64::MIN, f64::MAX, f64::MIN_POSITIVE);
    rate.average.half_width_95 = Some(f64::MAX);
    for stroke in &mut surface.figures.short_strokes {
        (stroke.percent, stroke.iops.value) = (f64::MAX, f64::MAX);
        (stroke.iops.half_width_95, stroke.latency_max_ns) = (Some(f64::MAX), u64::MAX);
    }
    let scan = surface.data.scan.as_mut().unwrap();
    scan.latency_p50_ns = Some(u64::MAX);
    for cell in &mut scan.map {
        (cell.offset_bytes, cell.latency_max_ns) = (u64::MAX, u64::MAX);
    }
    for width in [60, 200] {
        let page = record_page(&record, &plain(width));
        assert!(page.len() < 3 << 20, "{} bytes", page.len());
    }
    assert!(written(|out| html::write_record(&record, out)).len() < 4 << 20);
    let charts = charts(&record);
    assert!(written(|out| svg::write_sheet(&charts, "origin", out)).len() < 1 << 20);
    assert!(written(|out| gnuplot::write_record(&record, "x", out)).len() < 1 << 20);
}
