//! The search for the highest rate that keeps a promise, in words: the answer with its evidence,
//! and every rate that was offered.

use crate::labels;
use diskproof_model::block::Block;
use diskproof_model::digits::{figure_text, rounded, to_a_percent};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Decide;
use diskproof_model::rate::{
    BreakLimit, LoadControl, LoadFigures, LoadRecord, RateCellKind, RatePlan, RateTrial,
};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent,
};

/// Stands for a figure that an unfinished search does not have.
pub(super) const NOT_MEASURED: &str = "not measured";
/// The name of transactions that follow an observed load or numbers of the user.
const OBSERVED_MIX: &str = "transactions";

/// Describes the answer, the latencies at that rate, and every rate that was offered.
pub(crate) fn blocks(record: &Record, load: &LoadRecord) -> Vec<Block> {
    let Some(plan) = rate_plan(record) else {
        return Vec::new();
    };
    let mut blocks = vec![Block::Heading(promise_title(plan))];
    let mut facts = answer_facts(load, plan);
    facts.push(("transaction", observed_transaction_text(record)));
    blocks.extend(Block::facts(facts));
    blocks.extend(latencies_table(record));
    let title = "Rates that were offered".to_owned();
    blocks.push(trials_table(title, &load.data.trials));
    blocks
}

pub(super) fn promise_title(plan: &RatePlan) -> String {
    format!(
        "promise: {} % within {}",
        plan.percent,
        format_latency(plan.limit_ns)
    )
}

pub(super) fn rate_plan(record: &Record) -> Option<&RatePlan> {
    match &record.plan.workload_task()?.decide {
        Decide::Rate(plan) => Some(plan),
        _ => None,
    }
}

fn answer_facts(load: &LoadRecord, plan: &RatePlan) -> Vec<(&'static str, Option<String>)> {
    let figures = &load.figures;
    let held = figures.held.and_then(|held| load.data.trials.get(held));
    vec![
        ("rate", Some(rate_text(load))),
        ("held", held.map(held_text)),
        ("control", figures.control.map(control_text)),
        ("cause", Some(cause_text(figures))),
        ("saturated", saturated_text(figures)),
        ("generator", generator_text(figures)),
        ("drift", figures.drift.map(drift_text)),
        ("fell", fell_text(figures)),
        ("stalls", stalls_text(figures)),
        ("credit", credit_text(figures, plan)),
    ]
}

fn rate_text(load: &LoadRecord) -> String {
    let figures = &load.figures;
    if figures.rate <= 0.0 {
        return match load.lowest_overload() {
            Some(rate) => format!(
                "{NOT_MEASURED}: more waited than was served at {}/s, and the search ended early",
                to_a_percent(rate)
            ),
            None => format!("{NOT_MEASURED}: the search ended before it came near the limit"),
        };
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

/// The parts of a transaction that follows an observed load: `665 random reads and 334 random
/// writes of 8 KiB, then 1 MiB appended and flushed`. Those of the named mixes are in the help.
fn observed_transaction_text(record: &Record) -> Option<String> {
    let (_, workload) = record.plan.workload_task()?.searched().next()?;
    let transaction = workload
        .transaction
        .filter(|_| workload.name == OBSERVED_MIX)?;
    Some(format!(
        "{} and {} of {}, then {} appended and flushed",
        counted(u64::from(transaction.reads), "random read"),
        counted(u64::from(transaction.writes), "random write"),
        format_bytes(u64::from(workload.block_bytes)),
        format_bytes(u64::from(transaction.log_bytes))
    ))
}

/// Says how the rate at the lower end of the interval was kept: `4150/s for 1 min: 0.62 % late, in
/// 4 of 38 parts of its time`.
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
        (Some(share), false) => format!("{} late: no break was shown", format_percent(share)),
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

/// Says which stalls were met, or how long and how rare those may be that would not have shown, and
/// which trials show none because this program did not run. `None` of a search that promises
/// nothing and met none.
fn stalls_text(figures: &LoadFigures) -> Option<String> {
    let stalls = &figures.stalls;
    let of_target = stalls_of_target_text(figures);
    if stalls.own_trials == 0 {
        return of_target;
    }
    let verb = if stalls.own_trials == 1 { "does" } else { "do" };
    let own = format!(
        "{} {verb} not count, because this program waited for a processor meanwhile",
        counted(u64::from(stalls.own_trials), "trial")
    );
    Some(match of_target {
        Some(text) => format!("{text}; {own}"),
        None => own,
    })
}

fn stalls_of_target_text(figures: &LoadFigures) -> Option<String> {
    let stalls = &figures.stalls;
    let observed = format_duration(stalls.observed_ns);
    if stalls.met > 0 {
        return Some(format!(
            "{} of {} on average in {observed}; the interval holds how often they may come",
            stalls.met,
            format_duration(stalls.mean_ns)
        ));
    }
    if !figures.outcome.is_promise() {
        return None;
    }
    Some(format!(
        "none in {observed}; one of {} every {} would break the promise by itself, and has a \
         chance of 5 % not to show; a longer --prove sees rarer ones",
        format_duration(stalls.unseen_ns?),
        format_duration(stalls.unseen_every_ns)
    ))
}

/// Says how large a credit of the volume may be that this search could not notice. `None` where the
/// answer is no promise.
fn credit_text(figures: &LoadFigures, plan: &RatePlan) -> Option<String> {
    if !figures.outcome.is_promise() {
        return None;
    }
    // The credit that `analysis` computes is one over a base of half the rate.
    Some(format!(
        "one of more than {} requests over {}/s would not have shown in {}; 'diskproof sustain' or \
         the volume's own counters exclude it",
        to_a_percent(figures.unseen_credit),
        to_a_percent(figures.rate / 2.0),
        format_duration(plan.time_ns)
    ))
}

/// The latencies at the rate that was held and at that of the control, by operation. `None` where
/// neither was measured.
fn latencies_table(record: &Record) -> Option<Block> {
    let template = record.plan.workloads().first()?;
    let mut rows = Vec::new();
    for rate_kind in [RateCellKind::Hold, RateCellKind::Control] {
        let name = rate_kind.row_name(&template.name);
        for row in &record.measurements {
            if row.data.workload.name == name {
                rows.extend(latency_rows(rate_kind, row));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = ["at", "operation", "rate", "p50", "p99", "p99.9", "max"];
    Some(Block::table("Latencies", columns, rows))
}

fn latency_rows(rate_kind: RateCellKind, row: &Row) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for kind in OpKind::ALL {
        let Some(op) = row.op(kind) else {
            continue;
        };
        if op.data.count == 0 {
            continue;
        }
        // The parts of a transaction have no intended start.
        let is_part = row.data.workload.transaction.is_some() && kind != OpKind::Transaction;
        let latency = match &op.figures.latency_intended {
            Some(intended) if !is_part => intended,
            _ => &op.figures.latency,
        };
        rows.push(vec![
            rate_kind.as_str().to_owned(),
            kind.plural().to_owned(),
            op.figures.iops.value_text(),
            labels::latency(latency.p50),
            labels::latency(latency.p99),
            labels::latency(latency.p99_9),
            format_latency(latency.max),
        ]);
    }
    rows
}

pub(super) fn trials_table(title: String, trials: &[RateTrial]) -> Block {
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

/// Describes the search for the page of a plan; `searches` counts the mixes that it searches.
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
pub(crate) mod tests {
    use super::*;
    use diskproof_model::rate::{BreakCause, LoadData, LoadOutcome, LoadStalls};

    /// The figures of a search that ended before it came near the limit.
    pub(crate) fn unfinished() -> LoadFigures {
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
            stalls: LoadStalls::default(),
            generator_share: None,
            generator_late_share: 0.0,
            cause: BreakCause {
                limit: BreakLimit::Unknown,
                why: String::new(),
            },
        }
    }

    #[test]
    fn search_that_ended_early_has_no_rate() {
        let load = LoadRecord {
            data: LoadData::default(),
            figures: unfinished(),
        };
        assert!(rate_text(&load).starts_with(NOT_MEASURED));
    }

    #[test]
    fn saturation_is_stated_only_where_it_was_offered() {
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
