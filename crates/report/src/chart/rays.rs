//! The boundary of reads and writes: where the promise is still kept, mix by mix, and the straight
//! line through these places.

use super::types::{Axis, Chart, Series, SeriesMark, SeriesPoint};
use diskproof_model::digits::rounded;
use diskproof_model::rays::{RayFigures, RaysRecord};
use diskproof_model::record::Record;

/// The ends of the rays and the line through them; `None` where no ray has an answer.
pub(super) fn boundary_chart(record: &Record) -> Option<Chart> {
    let rays = record.rays()?;
    let decided: Vec<&RayFigures> = rays
        .figures
        .rays
        .iter()
        .filter(|ray| ray.is_decided())
        .collect();
    if decided.is_empty() {
        return None;
    }
    Some(Chart {
        id: "boundary".to_owned(),
        title: boundary_title(rays),
        caption: "Below the dots the promise is kept, above them it breaks. The bars are the 95 % \
                  intervals of the writes; those of the reads have the same share."
            .to_owned(),
        x: Axis::new("reads", "1/s").starting_at_zero(),
        y: Axis::new("writes", "1/s").starting_at_zero(),
        y_right: None,
        series: boundary_series(rays, &decided),
        guides: Vec::new(),
    })
}

fn boundary_title(rays: &RaysRecord) -> String {
    match &rays.figures.boundary {
        Some(boundary) => format!(
            "Boundary of reads and writes: a write costs {} reads",
            rounded(boundary.write_cost.value, boundary.write_cost.half_width_95)
        ),
        None => "Boundary of reads and writes: undecided".to_owned(),
    }
}

fn boundary_series(rays: &RaysRecord, decided: &[&RayFigures]) -> Vec<Series> {
    let mut ends = Series::new("highest rate of a mix", SeriesMark::Dots, Vec::new());
    for ray in decided {
        let load = &ray.load;
        let write_share = 1.0 - ray.read_share;
        ends.points.push(SeriesPoint {
            x: ray.read_share * load.rate,
            y: write_share * load.rate,
            half_width_95: Some(write_share * (load.high - load.low) / 2.0),
        });
    }
    let mut series = vec![ends];
    if let Some(boundary) = &rays.figures.boundary {
        let ends = vec![(0.0, boundary.writes.value), (boundary.reads.value, 0.0)];
        series.push(Series::new("straight line", SeriesMark::Line, ends));
    }
    series
}
