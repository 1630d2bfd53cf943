//! Charts of an acceptance test: the rate by position, and the course of the writes.

use super::types::{Axis, AxisSide, Chart, Guide, Series, SeriesMark};
use super::units::position_unit;
use diskproof_model::accept::{AcceptFigures, AcceptMeasurement, WriteCliff};
use diskproof_model::record::Record;
use diskproof_model::units::{format_bytes, format_throughput};

/// The charts of an acceptance test. A probe has only the course of its
/// writes: it moves too little for a rate by position.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    match record.accept() {
        Some(accept) => vec![
            position_chart(&accept.data, &accept.figures),
            course_chart(&accept.data, &accept.figures),
        ],
        None => Vec::new(),
    }
}

/// The rates of both directions as lines, and the places that came back wrong as dots.
fn position_chart(data: &AcceptMeasurement, figures: &AcceptFigures) -> Chart {
    let size_bytes = data.plan.size_bytes as f64;
    let (position, unit_bytes) = position_unit(size_bytes);
    let mut written = Vec::new();
    let mut read = Vec::new();
    for (index, cell) in data.cells.iter().enumerate() {
        let x = middle_bytes(data, index) / unit_bytes;
        if let Some(rate) = cell.write.bytes_per_second() {
            written.push((x, rate / 1e6));
        }
        if let Some(rate) = cell.read.bytes_per_second() {
            read.push((x, rate / 1e6));
        }
    }
    let mut wrong = Vec::new();
    for range in &data.bad {
        wrong.push((range.offset_bytes as f64 / unit_bytes, 0.0));
    }
    Chart {
        id: "rate-by-position".to_owned(),
        title: position_title(figures),
        caption: "The lines are the rates at which the parts of the device were written and read, \
                  in random order. They fall from the outer to the inner tracks of a rotating \
                  disk, and are level on an SSD. A notch is a slow zone; a dot at the bottom is a \
                  place that came back wrong."
            .to_owned(),
        x: Axis::new("position", position).between(Some(0.0), Some(size_bytes / unit_bytes)),
        y: Axis::new("transfer rate", "MB/s").starting_at_zero(),
        series: vec![
            Series::new("write", SeriesMark::Line, written),
            Series::new("read", SeriesMark::Line, read),
            Series::new("came back wrong", SeriesMark::Dots, wrong),
        ],
        ..Chart::default()
    }
}

/// The middle of a cell, in bytes from the start of the device.
fn middle_bytes(data: &AcceptMeasurement, cell: usize) -> f64 {
    (data.cell_offset(cell) + data.cell_offset(cell + 1)) as f64 / 2.0
}

fn position_title(figures: &AcceptFigures) -> String {
    let mut title = "Transfer rate by position".to_owned();
    let rates = [("write", figures.write_rate), ("read", figures.read_rate)];
    let mut separator = ": ";
    for (direction, rate) in rates {
        if let Some(rate) = rate {
            let average = format_throughput(rate.average);
            title += &format!("{separator}{direction} average {average}");
            separator = ", ";
        }
    }
    title
}

/// The rate of the writes over the bytes written so far: where a cache is full, it falls.
fn course_chart(data: &AcceptMeasurement, figures: &AcceptFigures) -> Chart {
    let (amount, unit_bytes) = position_unit(data.writes.bytes as f64);
    let mut course = Vec::new();
    let mut bytes_before = 0;
    for part in &data.write_course {
        let middle = bytes_before as f64 + part.bytes as f64 / 2.0;
        if let Some(rate) = part.bytes_per_second() {
            course.push((middle / unit_bytes, rate / 1e6));
        }
        bytes_before += part.bytes;
    }
    Chart {
        id: "course-of-writes".to_owned(),
        title: course_title(figures.cliff.as_ref()),
        caption: "The line is the rate of the writes over what was written before. A step down \
                  is a write cache that is full; a level line has none, or one that is larger \
                  than what was written."
            .to_owned(),
        x: Axis::new("written", amount).starting_at_zero(),
        y: Axis::new("transfer rate", "MB/s").starting_at_zero(),
        series: vec![Series::new("write", SeriesMark::Line, course)],
        guides: cliff_guides(figures.cliff.as_ref(), unit_bytes),
        ..Chart::default()
    }
}

fn course_title(cliff: Option<&WriteCliff>) -> String {
    match cliff {
        Some(cliff) => format!(
            "Writes in their order: fell from {} to {} after {}",
            format_throughput(cliff.before),
            format_throughput(cliff.behind),
            format_bytes(cliff.after_bytes)
        ),
        None => "Writes in their order".to_owned(),
    }
}

/// A vertical line where the rate of the writes fell.
fn cliff_guides(cliff: Option<&WriteCliff>, unit_bytes: f64) -> Vec<Guide> {
    let mut guides = Vec::new();
    if let Some(cliff) = cliff {
        let label = format!("fell after {}", format_bytes(cliff.after_bytes));
        let place = cliff.after_bytes as f64 / unit_bytes;
        guides.push(Guide::new(AxisSide::X, label, place));
    }
    guides
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::accept::{
        AcceptPlan, AcceptVerdict, MovedBytes, PieceStates, PositionCell, Procedure, RateByPosition,
    };

    const CHUNK_BYTES: u64 = 1 << 20;

    /// Four chunks in two cells: written at 100 and 50 MB/s, the first one read at 200 MB/s.
    fn measured() -> AcceptMeasurement {
        let mut data = AcceptMeasurement::new(AcceptPlan {
            procedure: Procedure::Whole,
            size_bytes: 4 * CHUNK_BYTES,
            salt: 1,
        });
        data.chunk_bytes = CHUNK_BYTES;
        data.states = PieceStates::pending(4);
        data.cells = vec![PositionCell::default(); 2];
        data.cells[0].write.add(2_000_000, 20_000_000);
        data.cells[1].write.add(2_000_000, 40_000_000);
        data.cells[0].read.add(2_000_000, 10_000_000);
        data.writes.add(4_000_000, 60_000_000);
        for (bytes, ns) in [(3_000_000, 30_000_000), (1_000_000, 40_000_000)] {
            data.write_course.push(MovedBytes { bytes, ns });
        }
        data
    }

    fn figures() -> AcceptFigures {
        AcceptFigures {
            verdict: AcceptVerdict::Accept,
            undecided: None,
            fraud: None,
            real_bytes: None,
            real_bytes_max: None,
            cache_bytes: None,
            bad_share_max: None,
            blocks: None,
            write_rate: Some(RateByPosition {
                min: None,
                average: 66e6,
                max: None,
            }),
            read_rate: None,
            cliff: Some(WriteCliff {
                after_bytes: 3_000_000,
                before: 100e6,
                behind: 33e6,
            }),
            slow_zones: Vec::new(),
            health_changes: Vec::new(),
        }
    }

    fn points(series: &Series) -> Vec<(f64, f64)> {
        let pairs = series.points.iter().map(|point| (point.x, point.y));
        pairs.collect()
    }

    #[test]
    fn cells_stand_at_their_middle_in_megabytes_a_second() {
        let chart = position_chart(&measured(), &figures());
        let first = CHUNK_BYTES as f64 / 1e6;
        assert_eq!(
            points(&chart.series[0]),
            [(first, 100.0), (3.0 * first, 50.0)]
        );
        // What was not read has no rate.
        assert_eq!(points(&chart.series[1]), [(first, 200.0)]);
        assert!(chart.series[2].points.is_empty());
        assert_eq!(chart.x.max, Some(4.0 * first));
    }

    #[test]
    fn course_stands_over_what_was_written_and_names_its_fall() {
        let chart = course_chart(&measured(), &figures());
        assert_eq!(points(&chart.series[0]), [(1.5, 100.0), (3.5, 25.0)]);
        assert_eq!(chart.guides[0].value, 3.0);
        assert!(chart.guides[0].is_vertical());
    }
}
