//! Writes the clause of the headline on the cost of each layer between a file and its disk.

use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::layers::{CostMeaning, LayerCost, LayerDifference, LayersPlan, LayersRecord};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;

/// `the median read of 41.5 µs spends 4 µs (10 %) in loop0 and 39 µs (89 %) in the lowest layer,
/// vda`, of the first workload.
pub(super) fn layers_clause(record: &Record, layers: &LayersRecord) -> Option<String> {
    let all = &layers.costs;
    let workload = &all.first()?.workload;
    let plan = record.plan.layers()?;
    let costs: Vec<&LayerCost> = all
        .iter()
        .filter(|cost| cost.workload == *workload)
        .collect();
    let whole_ns = median_read_ns(record, costs.first()?)?;
    if let Some(lowest) = costs.iter().find(|cost| cost.exceeds_whole()) {
        return Some(cached_clause(plan, whole_ns, lowest));
    }
    let mut parts = Vec::new();
    let mut noise_ns: f64 = 0.0;
    for cost in &costs {
        match cost.meaning {
            CostMeaning::Real | CostMeaning::Lowest => parts.push(cost_text(plan, cost)),
            CostMeaning::Noise => {
                noise_ns = noise_ns.max(cost.own_time.bound().unwrap_or(0.0));
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        return None;
    }
    // With the digits of the table's median.
    let whole = figure_text(whole_ns, Some(whole_ns / 100.0), "ns");
    let rest = if noise_ns == 0.0 {
        String::new()
    } else if noise_ns >= whole_ns {
        // Wider than the whole latency: nothing is known.
        "; the cost of the others is unclear".to_owned()
    } else {
        let bound = figure_text(noise_ns, None, "ns");
        format!("; no other layer costs more than {bound}")
    };
    let parts = parts.join(" and ");
    Some(format!("the median read of {whole} spends {parts}{rest}"))
}

/// `the median read takes 6.37 µs, less than the 150 µs of the bottom layer, lo.img: a layer above
/// it answers from a cache`. No read spends more time in a layer than it takes.
fn cached_clause(plan: &LayersPlan, whole_ns: f64, slower: &LayerCost) -> String {
    let own_ns = slower.own_time;
    format!(
        "the median read takes {}, less than the {} of {}{}: a layer above it answers from a cache",
        figure_text(whole_ns, Some(whole_ns / 100.0), "ns"),
        figure_text(own_ns.difference, own_ns.half_width_95, "ns"),
        if slower.meaning == CostMeaning::Lowest {
            "the bottom layer, "
        } else {
            ""
        },
        layer_name(plan, slower)
    )
}

/// The median read of the layer, as its row shows it.
fn median_read_ns(record: &Record, cost: &LayerCost) -> Option<f64> {
    let row = record
        .measurements
        .iter()
        .find(|row| row.data.target == cost.target && row.data.workload.name == cost.workload)?;
    let median_ns = row.op(OpKind::Read)?.figures.latency.p50?;
    Some(median_ns as f64)
}

/// `4 µs (10 %) in loop0`.
fn cost_text(plan: &LayersPlan, cost: &LayerCost) -> String {
    let name = layer_name(plan, cost);
    let difference = cost.own_time.difference;
    let time = figure_text(difference.abs(), cost.own_time.half_width_95, "ns");
    if cost.meaning == CostMeaning::Lowest {
        format!("{time}{} in the bottom layer, {name}", part_text(cost))
    } else if difference < 0.0 {
        let share = percent_text(cost.share.difference.abs(), &cost.share);
        format!("{time} ({share}) less because of {name}")
    } else {
        format!("{time}{} in {name}", part_text(cost))
    }
}

/// The name of the layer of a cost.
fn layer_name<'a>(plan: &'a LayersPlan, cost: &LayerCost) -> &'a str {
    let layer = plan
        .layers
        .iter()
        .find(|layer| layer.target == Some(cost.target));
    match layer {
        Some(layer) => layer.name.as_str(),
        None => "",
    }
}

/// ` (10 %)`, as in the table; empty where the own time is no part of the whole.
fn part_text(cost: &LayerCost) -> String {
    match cost.part_of_whole() {
        Some(part) => format!(" ({})", percent_text(part, &cost.share)),
        None => String::new(),
    }
}

/// A share with as many digits as the interval of `known` allows.
fn percent_text(share: f64, known: &LayerDifference) -> String {
    let half = known.half_width_95.map(|half| half * 100.0);
    format!("{} %", rounded(share * 100.0, half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::layers::{LayerDifference, PlannedLayer};
    use diskproof_model::plan::{Decide, LivePlan, Sides};

    fn lowest(share: f64, half_width_95: Option<f64>) -> LayerCost {
        let share = LayerDifference {
            n: 7,
            difference: share,
            half_width_95,
        };
        LayerCost {
            workload: "reads".to_owned(),
            target: 0,
            below: None,
            own_time: share,
            share,
            rate_change: None,
            meaning: CostMeaning::Lowest,
        }
    }

    /// A lowest layer that surely takes longer than the highest is no part of it, and one that may
    /// take less is at most all of it.
    #[test]
    fn share_of_the_lowest_layer_is_at_most_the_whole() {
        assert_eq!(part_text(&lowest(1.1, Some(0.2))), " (100 %)");
        assert_eq!(part_text(&lowest(1.1, Some(0.02))), "");
        assert_eq!(part_text(&lowest(0.5, Some(0.02))), " (50 %)");
        // 700 µs ± 2.5 ms of 341 µs.
        assert_eq!(part_text(&lowest(2.05, Some(7.3))), "");
    }

    /// The median of the table, also where the costs do not add up to it.
    #[test]
    fn headline_names_the_median_read_of_the_table() {
        let mut record = fixture::record();
        let workload = "random-read-d32".to_owned();
        let row = fixture::measured(&mut record, &workload);
        let read = row.figures.ops.get_mut(&OpKind::Read).unwrap();
        read.latency.p50 = Some(116_000);
        let workloads = record.plan.workload_task_mut().unwrap();
        workloads.decide = Decide::Compare(LivePlan {
            sides: Sides::Layers(LayersPlan {
                layers: vec![PlannedLayer {
                    name: "vda".to_owned(),
                    path: "/dev/vda".to_owned(),
                    device_kind: None,
                    target: Some(0),
                    skipped: None,
                    one_of: 1,
                }],
                unresolved: None,
            }),
            margin: 0.01,
            cells_ns: 0,
        });
        let difference = LayerDifference {
            n: 7,
            difference: 2.4e6,
            half_width_95: Some(1e3),
        };
        let layers = LayersRecord {
            places: Vec::new(),
            costs: vec![LayerCost {
                workload,
                target: 0,
                below: None,
                own_time: difference,
                share: difference,
                rate_change: None,
                meaning: CostMeaning::Lowest,
            }],
        };
        let clause = layers_clause(&record, &layers).unwrap();
        assert!(clause.contains("116 µs"), "{clause}");
        // The lowest layer takes 20 times the time of a read of the highest.
        assert!(clause.contains("of the bottom layer, vda"), "{clause}");
        let mut within = layers.clone();
        within.costs[0].share.difference = 0.9;
        within.costs[0].share.half_width_95 = Some(0.01);
        let clause = layers_clause(&record, &within).unwrap();
        assert!(clause.contains("read of 116 µs spends"), "{clause}");
    }
}
