//! The charts of every fixture: which there are, what they say, and that all of it can be drawn.

use crate::{RECORDS, fixture, is_harmless, written};
use diskproof_model::record::{MeasurementRecord, OpRecord, Record};
use diskproof_report::chart::{AxisSide, Chart, Scale, SeriesMark, charts};
use diskproof_report::style::{Color, Style};
use diskproof_report::{gnuplot, html, svg, terminal};
use std::fmt::Write as _;

/// A chart in words, with the ends of every series.
fn outline(chart: &Chart) -> String {
    let mut text = format!("{}: {}\n", chart.id, chart.title);
    let axes = [
        ("x", Some(&chart.x)),
        ("y", Some(&chart.y)),
        ("y right", chart.y_right.as_ref()),
    ];
    for (name, axis) in axes
        .into_iter()
        .filter_map(|(name, axis)| Some((name, axis?)))
    {
        writeln!(
            text,
            "  {name}: {} [{}] {:?} from {:?} ticks {:?}",
            axis.label, axis.unit, axis.scale, axis.min, axis.ticks
        )
        .expect("a String takes everything");
    }
    for series in &chart.series {
        let (first, last) = (series.points[0], series.points[series.points.len() - 1]);
        let bars = if series.half_widths_95.is_empty() {
            ""
        } else {
            ", error bars"
        };
        let points = series.points.len();
        writeln!(
            text,
            "  {:?} {:?} {}: {points} points {first:.3?} to {last:.3?}{bars}",
            series.mark, series.side, series.name
        )
        .expect("a String takes everything");
    }
    for guide in &chart.guides {
        writeln!(
            text,
            "  guide {}: {:?} {:.3}",
            guide.label, guide.axis, guide.at
        )
        .expect("a String takes everything");
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
            assert!(
                chart
                    .id
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{}",
                chart.id
            );
            let texts = [&chart.title, &chart.caption]
                .into_iter()
                .chain(chart.series.iter().map(|s| &s.name))
                .chain(chart.guides.iter().map(|g| &g.label));
            assert!(
                texts
                    .flat_map(|text| text.chars())
                    .all(|c| c != '\n' && is_harmless(c)),
                "{name} {}",
                chart.id
            );
            assert_drawable(chart);
        }
        let mut ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
        ids.sort_unstable();
        assert!(
            ids.windows(2).all(|pair| pair[0] != pair[1]),
            "{name}: {ids:?}"
        );
    }
}

fn assert_drawable(chart: &Chart) {
    assert_eq!(
        chart.y_right.is_some(),
        chart.series.iter().any(|s| s.side == AxisSide::Right),
        "{}",
        chart.id
    );
    assert!(
        chart
            .guides
            .iter()
            .all(|g| g.at.is_finite() && (g.axis != AxisSide::Right || chart.y_right.is_some()))
    );
    for series in &chart.series {
        assert!(!series.points.is_empty(), "{} {}", chart.id, series.name);
        assert!(
            series.half_widths_95.is_empty() || series.half_widths_95.len() == series.points.len()
        );
        assert!(
            series
                .points
                .iter()
                .all(|(x, y)| x.is_finite() && y.is_finite())
        );
        assert!(chart.x.scale != Scale::Log || series.points.iter().all(|(x, _)| *x > 0.0));
        assert!(
            series.mark != SeriesMark::Line
                || series.points.windows(2).all(|pair| pair[0].0 <= pair[1].0),
            "{} {}",
            chart.id,
            series.name
        );
    }
}

/// 39 level lines hid the one with a step.
#[test]
fn of_many_workloads_those_that_change_have_a_picture() {
    let mut record = fixture::depths();
    let is_over_time = |chart: &&Chart| chart.id.starts_with("time-");
    let shown = |record: &Record| charts(record).iter().filter(is_over_time).count();
    let level = MeasurementRecord {
        settled: Some(true),
        settling_ns: 0,
        phases: Vec::new(),
        interruptions: Vec::new(),
        ..record.measurements[0].clone()
    };
    record.findings.clear();
    record.measurements = vec![level; 16];
    assert_eq!(shown(&record), 16);
    record.measurements.push(record.measurements[0].clone());
    assert_eq!(shown(&record), 1);
    record.measurements[4].settled = Some(false);
    assert_eq!(shown(&record), 2);
}

#[test]
fn empty_record_has_no_charts() {
    let mut record = fixture::surveyed();
    (record.curve, record.access, record.surface) = (Vec::new(), Vec::new(), None);
    assert_eq!(charts(&record), []);
}

#[test]
fn knee_is_the_depth_with_the_best_iops_over_latency() {
    let charts = charts(&fixture::depths());
    let chart = charts
        .iter()
        .find(|chart| chart.id.starts_with("depth-"))
        .unwrap();
    assert_eq!(
        chart
            .guides
            .iter()
            .map(|guide| guide.label.as_str())
            .collect::<Vec<_>>(),
        ["knee at 16"]
    );
    let Scale::Log = chart.x.scale else {
        panic!("depths are powers of two")
    };
}

#[test]
fn knee_is_absent_where_intervals_overlap_or_at_an_end() {
    let guides = |change: &dyn Fn(u32, &mut OpRecord)| {
        let mut record = fixture::depths();
        for m in &mut record.measurements {
            let depth = m.workload.depth;
            m.ops.values_mut().for_each(|op| change(depth, op));
        }
        let charts = charts(&record);
        let mut of_depth = charts.iter().filter(|one| one.id.starts_with("depth-"));
        of_depth.next().unwrap().guides.len()
    };
    assert_eq!(guides(&|_, _| {}), 1);
    let wide = |_: u32, op: &mut OpRecord| op.iops.half_width_95 = Some(0.1 * op.iops.value);
    assert_eq!(guides(&wide), 0);
    let unknown = |_: u32, op: &mut OpRecord| op.iops.half_width_95 = None;
    assert_eq!(guides(&unknown), 0);
    // A disk that never saturates is at its best at the largest depth measured.
    let linear = |depth: u32, op: &mut OpRecord| {
        (op.iops.value, op.iops.half_width_95) = (9000.0 * f64::from(depth), Some(9.0));
    };
    assert_eq!(guides(&linear), 0);
}

#[test]
fn unreadable_positions_are_shown_without_a_rate() {
    let mut record = fixture::surveyed();
    let point = &mut record.curve[100];
    (point.bytes, point.bytes_per_second, point.errors) = (0, 0.0, 8);
    let charts = charts(&record);
    let named = |name: &str| {
        charts[0]
            .series
            .iter()
            .find(|series| series.name == name)
            .expect("the chart has it")
    };
    assert_eq!(named("transfer rate").points.len(), 199);
    assert_eq!(named("unreadable").points.len(), 1);
}

#[test]
fn slow_access_switches_the_axis_to_log() {
    let mut record = fixture::surveyed();
    let scale = |record: &Record| charts(record)[0].y_right.as_ref().map(|axis| axis.scale);
    assert_eq!(scale(&record), Some(Scale::Linear));
    record.access[7].latency_ns = 3_000_000_000;
    assert_eq!(scale(&record), Some(Scale::Log));
}

/// Records come from anywhere: a curve point 2^50 bytes beyond its span kept `show` in a loop.
#[test]
fn page_size_is_bounded_for_extreme_numbers() {
    let mut record = fixture::surveyed();
    record.note = Some("x".repeat(1 << 20));
    for (index, point) in record.curve.iter_mut().enumerate() {
        point.offset_bytes = u64::MAX - index as u64;
        point.bytes_per_second = f64::MAX / (index + 1) as f64;
        point.readings = vec![0.0, f64::MAX];
    }
    for point in &mut record.access {
        (point.latency_ns, point.distance_bytes) = (u64::MAX, u64::MAX);
    }
    let surface = record.surface.as_mut().unwrap();
    (surface.span_start_bytes, surface.span_bytes) = (u64::MAX, u64::MAX);
    let rate = surface.rate.as_mut().unwrap();
    (rate.min, rate.max, rate.average.value) = (f64::MIN, f64::MAX, f64::MIN_POSITIVE);
    rate.average.half_width_95 = Some(f64::MAX);
    for stroke in &mut surface.short_strokes {
        (stroke.percent, stroke.iops.value) = (f64::MAX, f64::MAX);
        (stroke.iops.half_width_95, stroke.latency_max_ns) = (Some(f64::MAX), u64::MAX);
    }
    let scan = surface.scan.as_mut().unwrap();
    scan.latency_p50_ns = u64::MAX;
    for cell in &mut scan.map {
        (cell.offset_bytes, cell.latency_max_ns) = (u64::MAX, u64::MAX);
    }
    for width in [60, 200] {
        let style = Style {
            width,
            color: Color::Plain,
        };
        let page =
            written(|out| terminal::write_record(&record, terminal::Detail::Whole, &style, out));
        assert!(page.len() < 3 << 20, "{} bytes", page.len());
    }
    assert!(written(|out| html::write_record(&record, out)).len() < 4 << 20);
    let charts = charts(&record);
    assert!(written(|out| svg::write_sheet(&charts, "origin", out)).len() < 1 << 20);
    assert!(written(|out| gnuplot::write_record(&record, "x", out)).len() < 1 << 20);
}
