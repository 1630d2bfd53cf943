//! The search for the highest rate in words: the answer with its evidence, and every rate that was
//! offered.

use diskproof_model::block::Block;
use diskproof_model::digits::{figure_text, rounded, to_a_percent};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Decide;
use diskproof_model::rate::{
    BreakLimit, LoadControl, LoadFigures, LoadOutcome, LoadRecord, RateCellKind, RatePlan,
    RateTrial,
};
use diskproof_model::rays::{RayBoundary, RayFigures, RaysRecord};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{counted, format_duration, format_latency, format_percent};

/// Stands for a figure that an unfinished search does not have.
const NOT_MEASURED: &str = "not measured";

/// The answer, the latencies of its parts, and the curve.
pub(crate) fn blocks(record: &Record, load: &LoadRecord) -> Vec<Block> {
    let Some(plan) = planned(record) else {
        return Vec::new();
    };
    let mut blocks = vec![Block::Heading(promise_title(plan))];
    blocks.extend(Block::facts(answer_facts(load, plan)));
    blocks.extend(parts_table(record));
    let title = "Rates that were offered".to_owned();
    blocks.push(trials_table(title, &load.data.trials));
    blocks
}

fn promise_title(plan: &RatePlan) -> String {
    format!(
        "promise: {} % within {}",
        plan.percent,
        format_latency(plan.limit_ns)
    )
}

/// The boundary, and what each share of reads gave.
pub(crate) fn ray_blocks(record: &Record, rays: &RaysRecord) -> Vec<Block> {
    let Some(plan) = planned(record) else {
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
            None => "–".to_owned(),
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

fn planned(record: &Record) -> Option<&RatePlan> {
    match &record.plan.workload_task()?.decide {
        Decide::Rate(plan) => Some(plan),
        _ => None,
    }
}

fn answer_facts(load: &LoadRecord, plan: &RatePlan) -> Vec<(&'static str, Option<String>)> {
    let figures = &load.figures;
    let held = figures.held.and_then(|held| load.data.trials.get(held));
    vec![
        ("rate", Some(rate_text(figures))),
        ("held", held.map(held_text)),
        ("control", figures.control.map(control_text)),
        ("cause", Some(cause_text(figures))),
        ("saturated", saturated_text(figures)),
        ("generator", generator_text(figures)),
        ("drift", figures.drift.map(drift_text)),
        ("fell", fell_text(figures)),
        ("credit", credit_text(figures, plan)),
    ]
}

fn rate_text(figures: &LoadFigures) -> String {
    if figures.rate <= 0.0 {
        return format!("{NOT_MEASURED}: the search ended before it came near the limit");
    }
    let half_width = (figures.high - figures.low) / 2.0;
    format!(
        "{}, from {} to {} with 95 %; {} independent late episodes",
        figure_text(figures.rate, Some(half_width), "1/s"),
        to_a_percent(figures.low),
        to_a_percent(figures.high),
        figures.episodes.floor()
    )
}

/// What became of the lower end: `4150/s for 1 min: 0.62 % late, in 4 of 38 parts of its time`.
fn held_text(trial: &RateTrial) -> String {
    let late_batches = trial.batches.iter().filter(|batch| batch.late > 0).count();
    let over = if trial.is_over {
        "; ended early: more waited than was served"
    } else {
        ""
    };
    format!(
        "{}/s for {}: {} late, in {late_batches} of {} parts of its time{over}",
        to_a_percent(trial.rate),
        format_duration(trial.wall_ns),
        format_percent(trial.late_share()),
        trial.batches.len(),
    )
}

fn control_text(control: LoadControl) -> String {
    let outcome = match (control.late_share, control.failed) {
        (Some(share), true) => format!("{} late, as it must be", format_percent(share)),
        (Some(share), false) => format!("{} late: nothing broke", format_percent(share)),
        (None, _) => "more waits than is served, as it must be".to_owned(),
    };
    format!(
        "{}/s, {} times the rate: {outcome}",
        to_a_percent(control.rate),
        control.factor
    )
}

fn cause_text(figures: &LoadFigures) -> String {
    let cause = &figures.cause;
    match cause.limit {
        BreakLimit::Unknown => format!("unknown: {}", cause.why),
        limit => format!("{}: {}", limit.as_str(), cause.why),
    }
}

/// `None` where the search ended before it offered more than the disk serves.
fn saturated_text(figures: &LoadFigures) -> Option<String> {
    let served = to_a_percent(figures.served_when_saturated()?);
    let mut text = format!("{served}/s are served when more is offered");
    if figures.rate > 0.0 {
        let slope = rounded(figures.slope, None);
        text.push_str(&format!(
            "; near the rate, 1 % more load is {slope} % more lateness"
        ));
    }
    Some(text)
}

fn generator_text(figures: &LoadFigures) -> Option<String> {
    let share = figures.generator_share?;
    Some(format!(
        "this program's own delay is {} of the limit, and made {} of the late requests late",
        format_percent(share),
        format_percent(figures.generator_late_share)
    ))
}

fn drift_text(share: f64) -> String {
    let direction = if share < 0.0 { "fell" } else { "rose" };
    format!(
        "the rate {direction} by {} while it was measured; the interval holds both",
        format_percent(share.abs())
    )
}

fn fell_text(figures: &LoadFigures) -> Option<String> {
    match figures.falls {
        0 => None,
        falls => Some(format!(
            "{} for good, as when a credit is used up; what was before does not count",
            counted(u64::from(falls), "time")
        )),
    }
}

/// How much of a credit would not have shown.
fn credit_text(figures: &LoadFigures, plan: &RatePlan) -> Option<String> {
    if !figures.outcome.is_promise() {
        return None;
    }
    Some(format!(
        "one of more than {} requests over {}/s would not have shown in {}; 'diskproof sustain' or \
         the volume's own counters exclude it",
        to_a_percent(figures.unseen_credit),
        to_a_percent(figures.rate / 2.0),
        format_duration(plan.time_ns)
    ))
}

/// The latencies of what was held, and of the control: of all and of their parts.
fn parts_table(record: &Record) -> Option<Block> {
    let template = record.plan.workloads().first()?;
    let mut rows = Vec::new();
    for kind in [RateCellKind::Hold, RateCellKind::Control] {
        let name = kind.row_name(&template.name);
        for row in &record.measurements {
            if row.data.workload.name == name {
                rows.extend(part_rows(kind, row));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = ["at", "operation", "rate", "p50", "p99", "p99.9", "max"];
    Some(Block::table("Latencies", columns, rows))
}

fn part_rows(cell: RateCellKind, row: &Row) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for kind in OpKind::ALL {
        let Some(op) = row.op(kind) else {
            continue;
        };
        // The parts of a transaction have no intended start.
        let is_part = row.data.workload.transaction.is_some() && kind != OpKind::Transaction;
        let latency = match &op.figures.latency_intended {
            Some(intended) if !is_part => intended,
            _ => &op.figures.latency,
        };
        rows.push(vec![
            cell.as_str().to_owned(),
            kind.plural().to_owned(),
            op.figures.iops.value_text(),
            known_latency(latency.p50),
            known_latency(latency.p99),
            known_latency(latency.p99_9),
            format_latency(latency.max),
        ]);
    }
    rows
}

fn known_latency(ns: Option<u64>) -> String {
    match ns {
        Some(ns) => format_latency(ns),
        None => "–".to_owned(),
    }
}

fn trials_table(title: String, trials: &[RateTrial]) -> Block {
    let columns = ["offered", "for", "served", "late", "time", "remark"];
    let mut rows = Vec::new();
    for trial in trials {
        let remark = if trial.is_over { "overloaded" } else { "" };
        rows.push(vec![
            to_a_percent(trial.rate),
            trial.kind.as_str().to_owned(),
            to_a_percent(trial.served),
            format_percent(trial.late_share()),
            format_duration(trial.wall_ns),
            remark.to_owned(),
        ]);
    }
    Block::table(&title, columns, rows)
}

/// What the search does, for the plan.
pub(crate) fn planned_text(plan: &RatePlan, searches: usize) -> String {
    let rates = match searches {
        1 => "the highest rate".to_owned(),
        several => format!("the highest rate of each of {several} mixes"),
    };
    let each = if searches == 1 { "" } else { " for each" };
    format!(
        "{rates} with {} % within {}, held for {}, in {} at most{each}",
        plan.percent,
        format_latency(plan.limit_ns),
        format_duration(plan.hold_ns),
        format_duration(plan.time_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::rate::BreakCause;

    fn unfinished() -> LoadFigures {
        LoadFigures {
            outcome: LoadOutcome::Unfinished,
            low: 0.0,
            rate: 0.0,
            high: 66.0,
            saturated: 0.0,
            slope: 10.0,
            episodes: 0.0,
            held: None,
            control: None,
            drift: None,
            falls: 0,
            unseen_credit: 0.0,
            generator_share: None,
            generator_late_share: 0.0,
            cause: BreakCause {
                limit: BreakLimit::Unknown,
                why: String::new(),
            },
        }
    }

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
        assert!(rate_text(&unfinished()).starts_with(NOT_MEASURED));
    }

    #[test]
    fn saturation_is_told_only_where_it_was_offered() {
        let mut figures = unfinished();
        assert!(saturated_text(&figures).is_none());
        figures.saturated = 3200.0;
        let text = saturated_text(&figures).unwrap();
        // Nothing near the rate was offered, either.
        assert!(
            text.contains("3200") && !text.contains("lateness"),
            "{text}"
        );
    }
}
