//! The highest rates by the share of reads, in words: each mix is a ray, and their ends are the
//! boundary.

use super::load::{NOT_MEASURED, promise_title, rate_plan, trials_table};
use crate::labels;
use diskproof_model::block::Block;
use diskproof_model::digits::to_a_percent;
use diskproof_model::rate::LoadOutcome;
use diskproof_model::rays::{RayBoundary, RayFigures, RaysRecord};
use diskproof_model::record::Record;
use diskproof_model::units::format_percent;

/// Describes the boundary, then the answer and the offered rates of each share of reads.
pub(crate) fn blocks(record: &Record, rays: &RaysRecord) -> Vec<Block> {
    let Some(plan) = rate_plan(record) else {
        return Vec::new();
    };
    let mut blocks = vec![Block::Heading(promise_title(plan))];
    if let Some(boundary) = &rays.figures.boundary {
        blocks.extend(Block::facts(boundary_facts(boundary)));
    }
    blocks.push(rays_table(&rays.figures.rays));
    for (number, ray) in rays.figures.rays.iter().enumerate() {
        if let Some(data) = rays.data.rays.get(number) {
            let title = format!("Rates that were offered at {}", mix_text(ray));
            blocks.push(trials_table(title, &data.trials));
        }
    }
    blocks
}

fn boundary_facts(boundary: &RayBoundary) -> Vec<(&'static str, Option<String>)> {
    let bend = match boundary.bend {
        Some(bend) => format!(
            "no straight line: at {} reads, the rate is {} of that of the line",
            format_percent(bend.read_share),
            format_percent(1.0 + bend.deviation)
        ),
        None => "a straight line within the errors of its rays".to_owned(),
    };
    vec![
        ("reads alone", Some(boundary.reads.value_text())),
        ("writes alone", Some(boundary.writes.value_text())),
        ("a write costs", Some(write_cost_text(boundary))),
        ("boundary", Some(bend)),
    ]
}

fn write_cost_text(boundary: &RayBoundary) -> String {
    let cost = &boundary.write_cost;
    let half_width = cost.half_width_95.unwrap_or_default();
    format!(
        "{} reads, from {} to {} with 95 %",
        to_a_percent(cost.value),
        to_a_percent((cost.value - half_width).max(0.0)),
        to_a_percent(cost.value + half_width)
    )
}

fn rays_table(rays: &[RayFigures]) -> Block {
    let columns = [
        "reads",
        "rate",
        "95 %",
        "saturated",
        "control",
        "limited by",
    ];
    let mut rows = Vec::new();
    for ray in rays {
        let load = &ray.load;
        let (rate, interval) = match load.outcome {
            LoadOutcome::Sustained => (
                to_a_percent(load.rate),
                format!("{} to {}", to_a_percent(load.low), to_a_percent(load.high)),
            ),
            LoadOutcome::AtLeast => (
                format!("at least {}", to_a_percent(load.low)),
                "no upper end".to_owned(),
            ),
            other => ("undecided".to_owned(), other.as_str().to_owned()),
        };
        let control = match load.control {
            Some(control) => to_a_percent(control.rate),
            None => labels::UNKNOWN.to_owned(),
        };
        rows.push(vec![
            format_percent(ray.read_share),
            rate,
            interval,
            match load.served_when_saturated() {
                Some(served) => to_a_percent(served),
                None => NOT_MEASURED.to_owned(),
            },
            control,
            load.cause.limit.as_str().to_owned(),
        ]);
    }
    Block::table("Highest rates by the share of reads", columns, rows)
}

fn mix_text(ray: &RayFigures) -> String {
    format!("{} reads", format_percent(ray.read_share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::load::tests::unfinished;

    #[test]
    fn rays_that_were_not_searched_have_no_rates_of_zero() {
        let ray = RayFigures {
            read_share: 0.5,
            load: unfinished(),
        };
        let Block::Table(table) = rays_table(&[ray]) else {
            panic!("no table");
        };
        let texts: Vec<&str> = table.rows[0]
            .cells
            .iter()
            .map(|cell| cell.text.as_str())
            .collect();
        assert!(texts.contains(&NOT_MEASURED), "{texts:?}");
        assert!(!texts.contains(&"0"), "{texts:?}");
    }
}
