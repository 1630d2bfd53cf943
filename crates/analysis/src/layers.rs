//! The cost of each layer between a file and its disk. Slice n of one layer was measured right
//! after slice n of another, so that slow changes cancel in their difference.

use crate::estimate::PairedDifference;
use diskproof_model::layers::{
    BlockMatch, CostMeaning, LayerCost, LayerDifference, LayerPlace, LayersPlan, LayersRecord,
    PlannedLayer,
};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::window::SliceLatency;

/// A layer that was measured, with its index among the targets of the run.
struct MeasuredLayer<'a> {
    planned: &'a PlannedLayer,
    target: usize,
    /// Where its blocks lie; `None` where that was not found out.
    place: Option<&'a LayerPlace>,
}

impl MeasuredLayer<'_> {
    /// True if the blocks of the layer that hold the file are known.
    fn has_known_blocks(&self) -> bool {
        match self.place {
            Some(place) => place.blocks != BlockMatch::Unknown,
            None => false,
        }
    }
}

/// The costs of the layers of a run; `None` of a run that measured no layers.
pub(crate) fn layers_record(record: &Record, places: &[LayerPlace]) -> Option<LayersRecord> {
    let plan = record.plan.layers()?;
    let layers = measured_layers(plan, places);
    let mut layer_costs = Vec::new();
    for workload in record.plan.workloads() {
        let measured: Vec<&Row> = record
            .measurements
            .iter()
            .filter(|row| row.data.workload.name == workload.name)
            .collect();
        layer_costs.extend(workload_costs(&measured, &layers));
    }
    Some(LayersRecord {
        places: places.to_vec(),
        costs: layer_costs,
    })
}

fn measured_layers<'a>(plan: &'a LayersPlan, places: &'a [LayerPlace]) -> Vec<MeasuredLayer<'a>> {
    let mut measured = Vec::new();
    for planned in &plan.layers {
        if let Some(target) = planned.target {
            measured.push(MeasuredLayer {
                planned,
                target,
                place: places.iter().find(|place| place.target == target),
            });
        }
    }
    measured
}

/// The slices of one workload on a layer.
struct LayerSlices<'a> {
    layer: &'a MeasuredLayer<'a>,
    slices: SliceFigures,
}

/// The cost of each layer in one workload, from the file down to the disk. Empty where the file
/// itself was not measured.
fn workload_costs(measured: &[&Row], layers: &[MeasuredLayer<'_>]) -> Vec<LayerCost> {
    let mut by_layer = Vec::new();
    for layer in layers {
        if let Some(row) = measured.iter().find(|row| row.data.target == layer.target) {
            let slices = SliceFigures::from_row(row);
            by_layer.push(LayerSlices { layer, slices });
        }
    }
    let top = match by_layer.first() {
        Some(first) if first.layer.target == layers[0].target => &first.slices,
        _ => return Vec::new(),
    };
    let mut known_ns = top.latencies_ns.clone();
    known_ns.retain(|ns| ns.is_finite());
    let top_ns = if known_ns.is_empty() {
        None
    } else {
        Some(mean(&known_ns).max(1.0))
    };
    let mut costs = Vec::new();
    let workload = &measured[0].data.workload.name;
    for (index, own) in by_layer.iter().enumerate() {
        costs.push(layer_cost(workload, own, by_layer.get(index + 1), top_ns));
    }
    costs
}

/// The cost of a layer on top of the one below it, in nanoseconds a read and as a share of
/// `top_ns`, the time of a read of the file, where that is known. The lowest layer costs all of its
/// time.
fn layer_cost(
    workload: &str,
    own: &LayerSlices<'_>,
    below: Option<&LayerSlices<'_>>,
    top_ns: Option<f64>,
) -> LayerCost {
    let own_time = match below {
        Some(below) => paired_difference(&own.slices.latencies_ns, &below.slices.latencies_ns),
        None => {
            let zeros = vec![0.0; own.slices.latencies_ns.len()];
            paired_difference(&own.slices.latencies_ns, &zeros)
        }
    };
    // A share of an unknown time is 0, and its meaning says that it is unknown.
    let whole_ns = top_ns.unwrap_or(f64::INFINITY);
    let share = LayerDifference {
        difference: own_time.difference / whole_ns,
        half_width_95: own_time.half_width_95.map(|half| half / whole_ns),
        ..own_time
    };
    let meaning = match below {
        // No slice has enough reads for a median.
        _ if own_time.n == 0 || top_ns.is_none() => CostMeaning::Unknown,
        Some(below) => cost_meaning(&own_time, own.layer, below.layer),
        None => CostMeaning::Lowest,
    };
    let rate_change = match below {
        Some(below) => rate_change(&own.slices, &below.slices),
        None => None,
    };
    LayerCost {
        workload: workload.to_owned(),
        target: own.layer.target,
        below: below.map(|below| below.layer.target),
        meaning,
        own_time,
        share,
        rate_change,
    }
}

/// The reads of each slice of a layer.
struct SliceFigures {
    rates: Vec<f64>,
    /// Medians: one request that waits for a second because of another program changes the mean of
    /// its slice a hundredfold. Not a number where a slice has too few reads.
    latencies_ns: Vec<f64>,
}

impl SliceFigures {
    fn from_row(row: &Row) -> Self {
        let mut rates = Vec::new();
        let mut latencies_ns = Vec::new();
        for slice in &row.data.slices {
            // A slice without a read keeps its place: slices of two layers are compared by number.
            let read = slice.ops.get(&OpKind::Read);
            rates.push(match read {
                Some(read) => read.iops,
                None => f64::NAN,
            });
            latencies_ns.push(match read.and_then(|read| read.latency) {
                Some(SliceLatency {
                    p50_ns: Some(ns), ..
                }) => ns as f64,
                _ => f64::NAN,
            });
        }
        Self {
            rates,
            latencies_ns,
        }
    }

    fn log_rates(&self) -> Vec<f64> {
        self.rates.iter().map(|rate| rate.ln()).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The mean of the slice-by-slice differences, over the slices that have both figures.
fn paired_difference(own: &[f64], below: &[f64]) -> LayerDifference {
    let mut each = Vec::new();
    for (own, below) in std::iter::zip(own, below) {
        let difference = own - below;
        if difference.is_finite() {
            each.push(difference);
        }
    }
    let paired = PairedDifference::from_sample(&each);
    LayerDifference {
        n: each.len() as u64,
        difference: mean(&each),
        half_width_95: paired.map(|paired| paired.half_width(0.95)),
    }
}

/// The geometric mean ratio of the rates, minus one: 0.02 is 2 % faster than the layer below.
/// `None` without two slices to compare.
fn rate_change(own: &SliceFigures, below: &SliceFigures) -> Option<LayerDifference> {
    let log = paired_difference(&own.log_rates(), &below.log_rates());
    if log.n == 0 {
        return None;
    }
    let ratio = log.difference.exp();
    Some(LayerDifference {
        difference: ratio - 1.0,
        // The longer arm: the interval of a ratio is not even.
        half_width_95: log.half_width_95.map(|half| ratio * half.exp() - ratio),
        ..log
    })
}

/// What a cost shows: a real difference, noise, or perhaps other blocks of the disk.
fn cost_meaning(
    own_time: &LayerDifference,
    layer: &MeasuredLayer<'_>,
    lower: &MeasuredLayer<'_>,
) -> CostMeaning {
    let Some(half) = own_time.half_width_95 else {
        return CostMeaning::Unknown;
    };
    let has_known_blocks = layer.has_known_blocks() && lower.has_known_blocks();
    if own_time.difference.abs() <= half {
        CostMeaning::Noise
    } else if !has_known_blocks || lower.planned.one_of > 1 {
        CostMeaning::OtherBlocks
    } else {
        CostMeaning::Real
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::window::{SliceLatency, SliceOp, TimeSlice};

    /// Slices with these medians in microseconds, one request at a time.
    fn measured(target: usize, medians_us: &[f64]) -> Row {
        let mut record = crate::fixture::record();
        let mut m = record.measurements.swap_remove(0);
        m.data.target = target;
        let slice = |median_us: &f64| {
            let read = SliceOp {
                latency: Some(SliceLatency {
                    mean_ns: median_us * 2000.0,
                    p50_ns: Some((median_us * 1000.0) as u64),
                    p99_ns: None,
                    p99_9_ns: None,
                }),
                ..SliceOp::from_counts((1e6 / median_us) as u64, 0, 1_000_000_000)
            };
            TimeSlice {
                start_ns: 0,
                wall_ns: 1_000_000_000,
                ops: [(OpKind::Read, read)].into(),
                slot: None,
            }
        };
        m.data.slices = medians_us.iter().map(slice).collect();
        m
    }

    fn planned(target: usize, one_of: u32) -> PlannedLayer {
        PlannedLayer {
            name: format!("layer {target}"),
            path: String::new(),
            device_kind: None,
            target: Some(target),
            skipped: None,
            one_of,
        }
    }

    fn place(target: usize, blocks: BlockMatch) -> LayerPlace {
        LayerPlace {
            target,
            start_bytes: 0,
            length_bytes: 1 << 30,
            blocks,
            compared: 0,
            why: None,
        }
    }

    /// The disk drifts from 100 to 130 µs; the layer above always adds 9 to 11 µs.
    fn costs_of(layers: &[PlannedLayer; 2], places: &[LayerPlace; 2]) -> Vec<LayerCost> {
        let file = measured(0, &[110.0, 121.0, 129.0, 140.0]);
        let disk = measured(1, &[100.0, 110.0, 120.0, 130.0]);
        let layers = [0, 1].map(|target| MeasuredLayer {
            planned: &layers[target],
            target,
            place: Some(&places[target]),
        });
        workload_costs(&[&file, &disk], &layers)
    }

    /// By hand: 10, 11, 9 and 10 µs have the mean 10 and the squares 2, so the standard error is
    /// √(2/3/4) = 0.408; times 3.182446 (Student's t with 3 degrees of freedom) 1.299.
    #[test]
    fn cost_is_the_mean_difference_of_paired_slices() {
        let same = [place(0, BlockMatch::Top), place(1, BlockMatch::Same)];
        let costs = costs_of(&[planned(0, 1), planned(1, 1)], &same);
        let [file, disk] = costs.as_slice() else {
            panic!("{costs:?}");
        };
        assert!((file.own_time.difference - 10_000.0).abs() < 1e-6);
        let half = file.own_time.half_width_95.unwrap();
        assert!((half - 1299.2).abs() < 0.5, "{half}");
        assert_eq!((file.meaning, file.below), (CostMeaning::Real, Some(1)));
        assert!((file.share.difference - 10.0 / 125.0).abs() < 1e-9);
        let change = file.rate_change.unwrap();
        assert!((-0.09..-0.07).contains(&change.difference), "{change:?}");
        // Shares of all layers are the whole.
        assert!((file.share.difference + disk.share.difference - 1.0).abs() < 1e-9);
        assert_eq!((disk.meaning, disk.below), (CostMeaning::Lowest, None));
    }

    /// The second slice of the file had no read; the others still stand against their own.
    #[test]
    fn slice_without_a_read_shifts_no_other() {
        let mut file = measured(0, &[110.0, 121.0, 129.0, 140.0]);
        file.data.slices[1].ops.clear();
        let disk = measured(1, &[100.0, 110.0, 120.0, 130.0]);
        let (own, below) = (SliceFigures::from_row(&file), SliceFigures::from_row(&disk));
        let cost = paired_difference(&own.latencies_ns, &below.latencies_ns);
        assert_eq!(cost.n, 3);
        assert!((cost.difference - 29_000.0 / 3.0).abs() < 1e-6, "{cost:?}");
        assert_eq!(rate_change(&own, &below).unwrap().n, 3);
    }

    /// A disk so slow that no slice has enough reads for a median.
    #[test]
    fn costs_without_a_median_are_unknown() {
        let mut rows = [measured(0, &[60e3, 61e3]), measured(1, &[50e3, 52e3])];
        for row in &mut rows {
            for slice in &mut row.data.slices {
                let read = slice.ops.get_mut(&OpKind::Read).unwrap();
                read.latency.as_mut().unwrap().p50_ns = None;
            }
        }
        let planned = [planned(0, 1), planned(1, 1)];
        let places = [place(0, BlockMatch::Top), place(1, BlockMatch::Same)];
        let layers = [0, 1].map(|target| MeasuredLayer {
            planned: &planned[target],
            target,
            place: Some(&places[target]),
        });
        for cost in workload_costs(&[&rows[0], &rows[1]], &layers) {
            assert_eq!(cost.meaning, CostMeaning::Unknown, "{cost:?}");
        }
    }

    #[test]
    fn cost_of_other_blocks_is_no_property_of_the_layer() {
        let unknown = [place(0, BlockMatch::Top), place(1, BlockMatch::Unknown)];
        let costs = costs_of(&[planned(0, 1), planned(1, 1)], &unknown);
        assert_eq!(costs[0].meaning, CostMeaning::OtherBlocks);
        let same = [place(0, BlockMatch::Top), place(1, BlockMatch::Same)];
        let costs = costs_of(&[planned(0, 1), planned(1, 2)], &same);
        assert_eq!(costs[0].meaning, CostMeaning::OtherBlocks);
    }

    #[test]
    fn difference_within_its_interval_is_noise_with_a_bound() {
        let noise = paired_difference(&[100.0, 101.0, 99.0, 100.0], &[100.0, 99.0, 100.0, 101.0]);
        let (place, planned) = (place(1, BlockMatch::Same), planned(1, 1));
        let layer = MeasuredLayer {
            planned: &planned,
            target: 1,
            place: Some(&place),
        };
        assert_eq!(cost_meaning(&noise, &layer, &layer), CostMeaning::Noise);
        let bound = noise.bound().unwrap();
        assert!(bound > noise.half_width_95.unwrap() - 1e-9 && bound < 10.0);
        let few = paired_difference(&[1.0, 2.0], &[0.0, 0.0]);
        assert_eq!(cost_meaning(&few, &layer, &layer), CostMeaning::Unknown);
    }
}
