//! The cost of each layer of a stack in words: a table for each workload, and what it means.

use crate::describe::figures::{conditions_text, shown_ops};
use crate::labels;
use crate::text::{distinct, glue, grouped, joined, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::layers::{
    BlockMatch, CostMeaning, LayerCost, LayersPlan, LayersRecord, PlannedLayer,
};
use diskproof_model::plan::Workload;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::format_bytes;

/// Columns of the tables.
const COLUMNS: &str = "layer | rate | p50 | p99 | own time | rate change | share";

/// In place of a difference whose interval includes everything.
const UNCLEAR: &str = "unclear";

/// Explains the columns.
const LEGEND: &str = "own time: median latency of the layer minus that of the layer \
                                 below; for the bottom layer, its whole latency. rate change: rate \
                                 compared with the layer below. share: own time in the latency of \
                                 the top layer. Intervals (95 %) come from pairs of consecutive \
                                 slices. \"none\": no difference larger than that; \"unclear\": \
                                 measure longer (--time).";

/// Describes the layers: a table for each workload, the highest layer first, and below them what
/// the tables mean.
pub(crate) fn blocks(record: &Record, layers: &LayersRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    for workload in record.plan.workloads() {
        blocks.push(Block::Heading(workload_heading(record, workload)));
        let mut rows = Vec::new();
        for cost in &layers.costs {
            if cost.workload == workload.name {
                rows.push(cost_row(record, cost));
            }
        }
        if rows.is_empty() {
            blocks.push(Block::text(Tone::Error, "nothing was measured"));
        } else {
            let caption = format!("Cost of each layer: {}", workload.name);
            blocks.push(Block::table(&caption, COLUMNS.split(" | "), rows));
        }
    }
    if let Some(plan) = record.plan.layers() {
        blocks.extend(Block::facts(layer_facts(record, plan, layers)));
    }
    blocks
}

/// Names a workload, with its conditions on the highest layer.
fn workload_heading(record: &Record, workload: &Workload) -> String {
    match layer_measurement(record, 0, &workload.name) {
        Some(row) => format!("{}: {}", workload.name, conditions_text(row)),
        None => workload.name.clone(),
    }
}

fn layer_measurement<'r>(record: &'r Record, target: usize, workload: &str) -> Option<&'r Row> {
    record
        .measurements
        .iter()
        .find(|row| row.data.target == target && row.data.workload.name == workload)
}

/// The name of the layer that was measured as this target.
fn layer_name(record: &Record, target: usize) -> String {
    for layer in planned_layers(record) {
        if layer.target != Some(target) {
            continue;
        }
        return match layer.one_of {
            1 => layer.name.clone(),
            devices => format!("{} (1 of {devices})", layer.name),
        };
    }
    labels::UNKNOWN.to_owned()
}

fn planned_layers(record: &Record) -> &[PlannedLayer] {
    match record.plan.layers() {
        Some(plan) => &plan.layers,
        None => &[],
    }
}

/// The cells of [`COLUMNS`].
fn cost_row(record: &Record, cost: &LayerCost) -> Vec<String> {
    let mut rate = labels::UNKNOWN.to_owned();
    let (mut p50, mut p99) = (None, None);
    if let Some(row) = layer_measurement(record, cost.target, &cost.workload)
        && let Some((_, op)) = shown_ops(row).into_iter().next()
    {
        rate = op.figures.iops.value_text();
        p50 = op.figures.latency.p50;
        p99 = op.figures.latency.p99;
    }
    vec![
        layer_name(record, cost.target),
        rate,
        labels::latency(p50),
        labels::latency(p99),
        own_time_text(cost),
        rate_change_text(cost),
        share_text(cost),
    ]
}

/// `12.1 µs ±400 ns`, or `none ±500 ns` where the difference is noise: then it is not larger than
/// that.
fn own_time_text(cost: &LayerCost) -> String {
    let own_time = &cost.own_time;
    match (cost.meaning, own_time.bound()) {
        (CostMeaning::Unknown, _) => labels::UNKNOWN.to_owned(),
        // Wider than the whole latency: nothing is known.
        (CostMeaning::Noise, _) if cost.share.bound() >= Some(1.0) => UNCLEAR.to_owned(),
        (CostMeaning::Noise, Some(bound)) => format!("none ±{}", time_text(bound, None)),
        (CostMeaning::Noise, None)
        | (CostMeaning::Lowest | CostMeaning::Real | CostMeaning::OtherBlocks, _) => {
            let text = time_text(own_time.difference, own_time.half_width_95);
            match own_time.half_width_95 {
                Some(half) => format!("{text} ±{}", time_text(half, None)),
                None => text,
            }
        }
    }
}

fn time_text(ns: f64, half_width: Option<f64>) -> String {
    figure_text(ns, half_width, "ns").replace('-', "−")
}

/// `−12 % ±3.0`, or `none ±4.0 %` where the interval includes no change.
fn rate_change_text(cost: &LayerCost) -> String {
    let Some(change) = &cost.rate_change else {
        return labels::UNKNOWN.to_owned();
    };
    match change.half_width_95 {
        Some(half) if change.difference.abs() <= half && half >= 1.0 => UNCLEAR.to_owned(),
        Some(half) if change.difference.abs() <= half => {
            format!(
                "none ±{} %",
                percent_number(change.difference.abs() + half, None)
            )
        }
        Some(half) => {
            let sign = if change.difference > 0.0 { "+" } else { "" };
            let value = percent_number(change.difference, Some(half));
            format!("{sign}{value} % ±{}", percent_number(half, None))
        }
        None => format!("{} %", percent_number(change.difference, None)),
    }
}

/// A share in percent without the sign, with the digits of its half-width.
fn percent_number(share: f64, half_width: Option<f64>) -> String {
    rounded(share * 100.0, half_width.map(|half| half * 100.0)).replace('-', "−")
}

/// The own time as a share of the latency of the top layer; unknown where it is noise, and where
/// the shares are no parts of a whole.
fn share_text(cost: &LayerCost) -> String {
    match cost.meaning {
        CostMeaning::Noise | CostMeaning::Unknown | CostMeaning::OtherBlocks => {
            labels::UNKNOWN.to_owned()
        }
        CostMeaning::Real | CostMeaning::Lowest => {
            let half = cost.share.half_width_95;
            match cost.part_of_whole() {
                Some(part) => format!("{} %", percent_number(part, half)),
                None => labels::UNKNOWN.to_owned(),
            }
        }
    }
}

/// Label and text of each fact below the tables.
fn layer_facts(
    record: &Record,
    plan: &LayersPlan,
    layers: &LayersRecord,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![("columns", LEGEND.to_owned())];
    if let Some(text) = same_blocks_text(record, layers) {
        facts.push(("blocks", text));
    }
    if let Some(text) = caution_text(record, layers) {
        facts.push(("caution", text));
    }
    if let Some(text) = cached_text(record, layers) {
        facts.push(("faster", text));
    }
    facts.extend(unread_facts(plan));
    facts
}

/// Says which layers read the same blocks. `None` where none did.
fn same_blocks_text(record: &Record, layers: &LayersRecord) -> Option<String> {
    let top = layers.places.first()?;
    let mut names = Vec::new();
    let mut compared = 0;
    for place in &layers.places {
        if matches!(place.blocks, BlockMatch::Same | BlockMatch::Mapped) {
            names.push(layer_name(record, place.target));
            compared += place.compared;
        }
    }
    if names.is_empty() {
        return None;
    }
    let proof = match compared {
        0 => String::new(),
        n => format!("; {n} sampled blocks have the same data on both sides"),
    };
    Some(format!(
        "{} read the same {} as {}{proof}",
        list(names),
        glue(&format_bytes(top.length_bytes)),
        layer_name(record, top.target)
    ))
}

/// Names the layers whose difference may not be a cost: those that were read at other blocks, and
/// single devices out of several. `None` without any.
fn caution_text(record: &Record, layers: &LayersRecord) -> Option<String> {
    let mut elsewhere = Vec::new();
    for place in &layers.places {
        if let Some(why) = &place.why {
            elsewhere.push((why, layer_name(record, place.target)));
        }
    }
    let mut texts = Vec::new();
    // The layers below one whose place is unknown have the same reason.
    for (why, names) in grouped(elsewhere) {
        let were = if names.len() == 1 { "was" } else { "were" };
        let names_text = list(names);
        texts.push(format!(
            "{names_text} {were} read at other blocks of the same length: {why}"
        ));
    }
    for layer in planned_layers(record) {
        if layer.one_of > 1 && layer.target.is_some() {
            texts.push(format!(
                "{} is one of {} devices, so its difference to the layer above is not a cost",
                layer.name, layer.one_of
            ));
        }
    }
    joined(texts, "; ")
}

/// Names the layers that are faster than the one below, with the likely reason. `None` without any.
fn cached_text(record: &Record, layers: &LayersRecord) -> Option<String> {
    let mut names = Vec::new();
    for cost in &layers.costs {
        if cost.meaning == CostMeaning::Real && cost.own_time.difference < 0.0 {
            names.push(layer_name(record, cost.target));
        }
    }
    if names.is_empty() {
        return None;
    }
    let why = if reads_through_page_cache(record) {
        "a loop device without direct I/O answers from the page cache (losetup \
             --direct-io=on)"
    } else {
        "a cache in the layer answers, or it merges and spreads requests"
    };
    let faster = list(distinct(names));
    Some(format!("{faster} faster than the layer below: {why}"))
}

/// True if one of the layers is a loop device without direct I/O.
fn reads_through_page_cache(record: &Record) -> bool {
    record
        .targets
        .iter()
        .flat_map(|target| &target.layers)
        .any(|layer| layer.backing_direct == Some(false))
}

/// A fact for each layer that was not measured, with the reason and the command that permits it.
pub(crate) fn unread_facts(plan: &LayersPlan) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    for layer in &plan.layers {
        let Some(skipped) = &layer.skipped else {
            continue;
        };
        let mut text = format!("{}: {}", layer.name, skipped.why);
        if let Some(command) = &skipped.command {
            text.push_str(&format!(". Run {command}"));
        }
        facts.push(("unread", text));
    }
    if let Some(why) = &plan.unresolved {
        facts.push(("below", why.clone()));
    }
    facts
}

/// The layers that a plan measures.
pub(crate) fn planned_text(plan: &LayersPlan) -> String {
    list(plan.measured().map(|layer| &layer.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::layers::LayerDifference;

    fn difference(difference: f64, half_width_95: f64) -> LayerDifference {
        LayerDifference {
            n: 20,
            difference,
            half_width_95: Some(half_width_95),
        }
    }

    fn cost(meaning: CostMeaning, own_time: LayerDifference, share: LayerDifference) -> LayerCost {
        LayerCost {
            workload: String::new(),
            target: 0,
            below: Some(1),
            own_time,
            share,
            rate_change: None,
            meaning,
        }
    }

    #[test]
    fn noise_is_none_up_to_its_bound_and_unclear_beyond_the_whole_latency() {
        let own_time = difference(200.0, 300.0);
        let noise = cost(CostMeaning::Noise, own_time, difference(0.02, 0.03));
        assert_eq!(own_time_text(&noise), "none ±500 ns");
        assert_eq!(share_text(&noise), labels::UNKNOWN);
        let wide = cost(CostMeaning::Noise, own_time, difference(0.4, 0.6));
        assert_eq!(own_time_text(&wide), UNCLEAR);
    }

    fn text_of_share(share: f64, half_width: f64) -> String {
        let own_time = difference(1e6, 1e4);
        share_text(&cost(
            CostMeaning::Real,
            own_time,
            difference(share, half_width),
        ))
    }

    #[test]
    fn share_is_unknown_where_it_is_surely_no_part_of_a_whole() {
        assert_eq!(text_of_share(0.25, 0.01), "25 %");
        assert_eq!(text_of_share(-0.01, 0.01), "0 %");
        assert_eq!(text_of_share(-0.02, 0.01), labels::UNKNOWN);
        assert_eq!(text_of_share(1.02, 0.01), labels::UNKNOWN);
    }

    #[test]
    fn change_of_the_rate_is_none_where_its_interval_holds_zero() {
        let mut changed = cost(
            CostMeaning::Real,
            difference(1e6, 1e4),
            difference(0.25, 0.01),
        );
        assert_eq!(rate_change_text(&changed), labels::UNKNOWN);
        changed.rate_change = Some(difference(-0.12, 0.03));
        assert_eq!(rate_change_text(&changed), "−12 % ±3.0");
        changed.rate_change = Some(difference(0.01, 0.03));
        assert_eq!(rate_change_text(&changed), "none ±4.0 %");
        changed.rate_change = Some(difference(0.5, 1.0));
        assert_eq!(rate_change_text(&changed), UNCLEAR);
    }
}
