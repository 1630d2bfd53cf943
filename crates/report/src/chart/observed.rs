//! An observed load over time: requests and bytes per second of each device.

use super::names::slug;
use super::types::{Axis, Chart, Series, SeriesMark};
use diskproof_model::observed::{ObservedDevice, ObservedOps, ObservedRecord};
use diskproof_model::record::Estimate;
use diskproof_model::series::Cell;

/// Fewer steps show no course.
const STEPS_LEAST: usize = 3;

/// What a chart shows of each step.
struct LoadFigure {
    slug: &'static str,
    label: &'static str,
    unit: &'static str,
    /// Of a step, in the unit of the axis times seconds.
    of_step: fn(&Cell) -> f64,
    /// Over the whole time.
    text: fn(&ObservedOps) -> &Estimate,
}

const FIGURES: [LoadFigure; 2] = [
    LoadFigure {
        slug: "requests",
        label: "rate",
        unit: "IOPS",
        of_step: |cell| cell.ops as f64,
        text: |ops| &ops.iops,
    },
    LoadFigure {
        slug: "bytes",
        label: "throughput",
        unit: "MB/s",
        of_step: |cell| cell.bytes as f64 / 1e6,
        text: |ops| &ops.throughput,
    },
];

const CAPTION: &str = "Each point is one step. The load shows what programs request, not what the \
                       disk can do.";

/// The charts of each device.
pub(super) fn charts(observed: &ObservedRecord) -> Vec<Chart> {
    let devices = observed.devices.iter();
    devices
        .flat_map(|device| FIGURES.iter().filter_map(|shown| chart(device, shown)))
        .collect()
}

fn chart(device: &ObservedDevice, shown: &LoadFigure) -> Option<Chart> {
    let ops = || device.ops.iter().filter(|(_, ops)| ops.count > 0);
    let steps = ops().map(|(_, ops)| ops.series.cells.len()).max()?;
    if steps < STEPS_LEAST {
        return None;
    }
    let series = ops().map(|(kind, ops)| {
        Series::new(kind.plural(), SeriesMark::Line, points(ops, shown.of_step))
    });
    let text = |ops: &ObservedOps| {
        let text = (shown.text)(ops).value_text();
        text.replacen("/s", " IOPS", usize::from(shown.unit == "IOPS"))
    };
    let figures: Vec<String> = ops()
        .map(|(kind, ops)| format!("{} {}", kind.plural(), text(ops)))
        .collect();
    Some(Chart {
        id: format!("observed-{}-{}", shown.slug, slug(&device.name)),
        title: format!("Load of {} over time: {}", device.name, figures.join(", ")),
        caption: CAPTION.to_owned(),
        x: Axis {
            max: Some(device.wall_ns as f64 / 1e9),
            ..Axis::new("time", "s").starting_at_zero()
        },
        y: Axis::new(shown.label, shown.unit).starting_at_zero(),
        series: series.collect(),
        ..Chart::default()
    })
}

/// The rate of each step at its middle.
fn points(ops: &ObservedOps, of_step: fn(&Cell) -> f64) -> Vec<(f64, f64)> {
    let (start, step) = (ops.series.start_ns as f64, ops.series.interval_ns as f64);
    let cells = ops.series.cells.iter().enumerate();
    cells
        .map(|(number, cell)| {
            let middle = start + (number as f64 + 0.5) * step;
            (middle / 1e9, of_step(cell) * 1e9 / step.max(1.0))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::series::TimeSeries;
    use std::collections::BTreeMap;

    fn estimate(value: f64, unit: &str) -> Estimate {
        Estimate {
            n: 3,
            value,
            half_width_95: None,
            unit: unit.to_owned(),
        }
    }

    #[test]
    fn each_step_is_a_point_at_its_middle() {
        let mut series = TimeSeries::new(2_000_000_000);
        for (number, count) in [10, 20, 60].into_iter().enumerate() {
            let cell = Cell {
                ops: count,
                bytes: count * 1_000_000,
                ..Cell::default()
            };
            series.add(number as u64 * 2_000_000_000, &cell, 100);
        }
        let reads = ObservedOps {
            count: 90,
            bytes: 90_000_000,
            merges: 0,
            iops: estimate(15.0, "1/s"),
            throughput: estimate(15e6, "B/s"),
            latency_mean_ns: None,
            seek_share: 1.0,
            sizes: Vec::new(),
            series,
        };
        let device = ObservedDevice {
            target: 0,
            name: "sda".to_owned(),
            wall_ns: 6_000_000_000,
            ops: BTreeMap::from([(OpKind::Read, reads)]),
            flush_ops: None,
            queue_depth: 1.0,
            queue_depth_max: 1.0,
            seeks: None,
            processes: Vec::new(),
            capacity: None,
            load_share: None,
        };
        let observed = ObservedRecord {
            interval_ns: 2_000_000_000,
            devices: vec![device],
            hidden: Vec::new(),
            server: None,
        };
        let charts = charts(&observed);
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].id, "observed-requests-sda");
        assert!(
            charts[0].title.ends_with("reads 15 IOPS"),
            "{}",
            charts[0].title
        );
        let points = [(1.0, 5.0), (3.0, 10.0), (5.0, 30.0)];
        assert_eq!(charts[0].series[0].points, points);
        // Of 1 MB each.
        assert_eq!(charts[1].series[0].points, points);
    }
}
