//! The cost of each layer in words, for every page.

use crate::describe::figures::{conditions, shown_ops};
use crate::labels;
use crate::text::{distinct, glue, grouped, joined, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::layers::{BlockMatch, CostMeaning, LayerCost, LayersPlan, LayersRecord};
use diskproof_model::plan::Workload;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::format_bytes;

/// Columns of the tables.
const COLUMNS: &str = "layer | rate | p50 | p99 | own time | rate change | share";

/// A difference that the run cannot tell at all.
const UNCLEAR: &str = "unclear";

/// What the columns mean.
const LEGEND: &str = "own time: median latency of the layer minus that of the layer \
                                 below; for the bottom layer, its whole latency. rate change: rate \
                                 compared with the layer below. share: own time in the latency of \
                                 the top layer. Intervals (95 %) come from pairs of consecutive \
                                 slices. \"none\": no difference larger than that; \"unclear\": \
                                 measure longer (--time).";

/// A table per workload, the highest layer first, and what it means.
pub(crate) fn blocks(record: &Record, layers: &LayersRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    for workload in record.plan.workloads() {
        blocks.push(Block::Heading(heading(record, workload)));
        let own = layers.costs.iter();
        let own = own.filter(|cost| cost.workload == workload.name);
        let rows: Vec<Vec<String>> = own.map(|cost| row(record, cost)).collect();
        blocks.push(if rows.is_empty() {
            Block::text(Tone::Error, "nothing was measured")
        } else {
            let caption = format!("Cost of each layer: {}", workload.name);
            Block::table(&caption, COLUMNS.split(" | "), rows)
        });
    }
    blocks.extend(Block::facts(facts(record)));
    blocks
}

/// The workload as it ran on the highest layer.
fn heading(record: &Record, workload: &Workload) -> String {
    let is_top = |m: &&Row| m.data.target == 0 && m.data.workload.name == workload.name;
    let ran = record.measurements.iter().find(is_top);
    let ran = ran.map(|m| format!(": {}", conditions(m)));
    format!("{}{}", workload.name, ran.unwrap_or_default())
}

/// What a layer is called.
fn name(record: &Record, target: usize) -> String {
    let planned = record
        .plan
        .layers()
        .into_iter()
        .flat_map(|plan| &plan.layers);
    let layer = { planned }.find(|layer| layer.target == Some(target));
    labels::or_unknown(layer.map(|layer| match layer.one_of {
        1 => layer.name.clone(),
        of => format!("{} (1 of {of})", layer.name),
    }))
}

fn row(record: &Record, cost: &LayerCost) -> Vec<String> {
    let is_own = |m: &&Row| m.data.target == cost.target && m.data.workload.name == cost.workload;
    let measurement = record.measurements.iter().find(is_own);
    let op = measurement.and_then(|m| Some(shown_ops(m).into_iter().next()?.1));
    vec![
        name(record, cost.target),
        labels::or_unknown(op.map(|op| op.figures.iops.value_text())),
        labels::latency(op.and_then(|op| op.figures.latency.p50)),
        labels::latency(op.and_then(|op| op.figures.latency.p99)),
        own_time(cost),
        rate_change(cost),
        share(cost),
    ]
}

fn own_time(cost: &LayerCost) -> String {
    let half = cost.own_time.half_width_95;
    match (cost.meaning, cost.own_time.bound()) {
        (CostMeaning::Unknown, _) => labels::UNKNOWN.to_owned(),
        // Wider than the whole latency: nothing is known.
        (CostMeaning::Noise, _) if cost.share.bound() >= Some(1.0) => UNCLEAR.to_owned(),
        (CostMeaning::Noise, Some(bound)) => format!("none ±{}", time(bound, None)),
        _ => {
            let half_text = half.map(|half| format!(" ±{}", time(half, None)));
            time(cost.own_time.difference, half) + &half_text.unwrap_or_default()
        }
    }
}

fn time(ns: f64, half_width: Option<f64>) -> String {
    figure_text(ns, half_width, "ns").replace('-', "−")
}

fn rate_change(cost: &LayerCost) -> String {
    let Some(change) = &cost.rate_change else {
        return labels::UNKNOWN.to_owned();
    };
    match change.half_width_95 {
        Some(half) if change.difference.abs() <= half && half >= 1.0 => UNCLEAR.to_owned(),
        Some(half) if change.difference.abs() <= half => {
            format!("none ±{} %", percent(change.difference.abs() + half, None))
        }
        Some(half) => {
            let sign = if change.difference > 0.0 { "+" } else { "" };
            let value = percent(change.difference, Some(half));
            format!("{sign}{value} % ±{}", percent(half, None))
        }
        None => format!("{} %", percent(change.difference, None)),
    }
}

fn percent(share: f64, half_width: Option<f64>) -> String {
    rounded(share * 100.0, half_width.map(|half| half * 100.0)).replace('-', "−")
}

fn share(cost: &LayerCost) -> String {
    match cost.meaning {
        CostMeaning::Noise | CostMeaning::Unknown | CostMeaning::OtherBlocks => {
            labels::UNKNOWN.to_owned()
        }
        CostMeaning::Real | CostMeaning::Lowest => {
            let half = cost.share.half_width_95;
            let slack = half.unwrap_or(0.0);
            let share = cost.share.difference;
            // A layer that answers from a cache is faster than the one below it: the layers are no
            // parts of a whole then.
            if share + slack < 0.0 || share - slack > 1.0 {
                return labels::UNKNOWN.to_owned();
            }
            format!("{} %", percent(share.clamp(0.0, 1.0), half))
        }
    }
}

/// Label and text of each fact below the tables.
fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let (Some(plan), Some(layers)) = (record.plan.layers(), record.layers()) else {
        return Vec::new();
    };
    let mut all = vec![("columns", LEGEND.to_owned())];
    all.extend(blocks_text(record, layers).map(|text| ("blocks", text)));
    all.extend(unlike(record, layers).map(|text| ("caution", text)));
    all.extend(cached(record, layers).map(|text| ("faster", text)));
    all.extend(unread(plan));
    all
}

/// Which blocks were compared.
fn blocks_text(record: &Record, layers: &LayersRecord) -> Option<String> {
    let top = layers.places.first()?;
    let is_same = |blocks| matches!(blocks, BlockMatch::Same | BlockMatch::Mapped);
    let same = || layers.places.iter().filter(|one| is_same(one.blocks));
    let names = list(same().map(|one| name(record, one.target)));
    let proof = match same().map(|one| one.compared).sum::<u32>() {
        0 => String::new(),
        n => format!("; {n} sampled blocks have the same data on both sides"),
    };
    let (bytes, top) = (format_bytes(top.length_bytes), name(record, top.target));
    let bytes = glue(&bytes);
    (!names.is_empty()).then(|| format!("{names} read the same {bytes} as {top}{proof}"))
}

/// Layers that were read elsewhere, or whose difference is that between one device and several.
fn unlike(record: &Record, layers: &LayersRecord) -> Option<String> {
    // The layers below one whose place is unknown have the same reason.
    let places = layers.places.iter();
    let elsewhere = places.filter_map(|one| Some((one.why.as_ref()?, name(record, one.target))));
    let elsewhere = grouped(elsewhere).into_iter().map(|(why, names)| {
        let were = if names.len() == 1 { "was" } else { "were" };
        let names = list(names);
        format!("{names} {were} read at other blocks of the same length: {why}")
    });
    let planned = record
        .plan
        .layers()
        .into_iter()
        .flat_map(|plan| &plan.layers);
    let several = planned.filter(|layer| layer.one_of > 1 && layer.target.is_some());
    let several = several.map(|layer| {
        format!(
            "{} is one of {} devices, so its difference to the layer above is not a cost",
            layer.name, layer.one_of
        )
    });
    joined(elsewhere.chain(several), "; ")
}

/// Layers that are faster than the one below: a cache answers.
fn cached(record: &Record, layers: &LayersRecord) -> Option<String> {
    let is_faster =
        |cost: &&LayerCost| cost.meaning == CostMeaning::Real && cost.own_time.difference < 0.0;
    let faster = layers.costs.iter().filter(is_faster);
    let names = distinct(faster.map(|cost| name(record, cost.target)));
    let mut devices = record.targets.iter().flat_map(|target| &target.layers);
    let why = if devices.any(|layer| layer.backing_direct == Some(false)) {
        "a loop device without direct I/O answers from the page cache (losetup \
             --direct-io=on)"
    } else {
        "a cache in the layer answers, or it merges and spreads requests"
    };
    (!names.is_empty()).then(|| format!("{} faster than the layer below: {why}", list(names)))
}

/// Layers that were not measured, each with the reason and the command.
pub(crate) fn unread(plan: &LayersPlan) -> Vec<(&'static str, String)> {
    let skipped = plan.layers.iter().filter_map(|layer| {
        let skipped = layer.skipped.as_ref()?;
        let mut text = format!("{}: {}", layer.name, skipped.why);
        if let Some(command) = &skipped.command {
            text += &format!(". Run {command}");
        }
        Some(("unread", text))
    });
    let below = plan.unresolved.iter().map(|why| ("below", why.clone()));
    skipped.chain(below).collect()
}

/// The layers that a plan measures.
pub(crate) fn planned_text(plan: &LayersPlan) -> String {
    let measured = plan.measured();
    list(measured.map(|layer| layer.name.clone()))
}
