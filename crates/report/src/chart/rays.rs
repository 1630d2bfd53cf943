//! The boundary of reads and writes: where the promise is still kept, mix by mix, and the straight
//! line through these places.

use super::types::{Axis, Chart, Series, SeriesMark, SeriesPoint};
use diskproof_model::digits::rounded;
use diskproof_model::rays::{RayFigures, RaysRecord};
use diskproof_model::record::Record;

/// The ends of the decided rays and the line through them; `None` without a decided ray.
pub(super) fn boundary_chart(record: &Record) -> Option<Chart> {
    chart_of_rays(record.rays()?)
}

fn chart_of_rays(rays: &RaysRecord) -> Option<Chart> {
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
    let mut dots = Series::new("highest rate of a mix", SeriesMark::Dots, Vec::new());
    for ray in decided {
        let load = &ray.load;
        let write_share = 1.0 - ray.read_share;
        dots.points.push(SeriesPoint {
            x: ray.read_share * load.rate,
            y: write_share * load.rate,
            half_width_95: Some(write_share * (load.high - load.low) / 2.0),
        });
    }
    let mut series = vec![dots];
    if let Some(boundary) = &rays.figures.boundary {
        let line_ends = vec![(0.0, boundary.writes.value), (boundary.reads.value, 0.0)];
        series.push(Series::new("straight line", SeriesMark::Line, line_ends));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::load::tests::unfinished;
    use diskproof_model::rate::{LoadFigures, LoadOutcome};
    use diskproof_model::rays::{RaysData, RaysFigures};

    fn rays(outcomes: &[LoadOutcome]) -> RaysRecord {
        let mut rays = Vec::new();
        for outcome in outcomes {
            rays.push(RayFigures {
                read_share: 0.75,
                load: LoadFigures {
                    outcome: *outcome,
                    low: 900.0,
                    rate: 1000.0,
                    high: 1100.0,
                    ..unfinished()
                },
            });
        }
        RaysRecord {
            data: RaysData { rays: Vec::new() },
            figures: RaysFigures {
                rays,
                boundary: None,
            },
        }
    }

    #[test]
    fn dot_of_a_ray_is_its_rate_divided_among_reads_and_writes() {
        let chart = chart_of_rays(&rays(&[LoadOutcome::Sustained])).unwrap();
        let [dots] = &chart.series[..] else {
            panic!("no line without a boundary");
        };
        let dot = &dots.points[0];
        assert_eq!((dot.x, dot.y), (750.0, 250.0));
        assert_eq!(dot.half_width_95, Some(25.0));
    }

    #[test]
    fn rays_without_an_end_have_no_dot() {
        let chart = chart_of_rays(&rays(&[LoadOutcome::Unfinished, LoadOutcome::Sustained]));
        assert_eq!(chart.unwrap().series[0].points.len(), 1);
        assert!(chart_of_rays(&rays(&[LoadOutcome::Unfinished])).is_none());
    }
}
