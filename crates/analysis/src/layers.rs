//! What each layer between a file and its disk costs. Slice number n of one layer and slice number
//! n of another followed each other, so that what changes over time cancels in their difference.

use crate::estimate::PairedDifference;
use diskproof_model::layers::{
    BlockMatch, CostMeaning, LayerCost, LayerDifference, LayerPlace, LayersPlan, LayersRecord,
    PlannedLayer,
};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::row::Row;

/// A layer that was measured.
struct MeasuredLayer<'a> {
    planned: &'a PlannedLayer,
    target: usize,
    place: Option<&'a LayerPlace>,
}

/// What the layers of a run cost; `None` of a run without layers.
pub(crate) fn layers_record(record: &Record, places: &[LayerPlace]) -> Option<LayersRecord> {
    let plan = record.plan.layers()?;
    let layers = measured_layers(plan, places);
    let workloads = record.plan.workloads().iter();
    let costs = workloads.flat_map(|workload| {
        let all = record.measurements.iter();
        let measured: Vec<_> = all
            .filter(|m| m.data.workload.name == workload.name)
            .collect();
        costs(&measured, &layers)
    });
    Some(LayersRecord {
        places: places.to_vec(),
        costs: costs.collect(),
    })
}

fn measured_layers<'a>(plan: &'a LayersPlan, places: &'a [LayerPlace]) -> Vec<MeasuredLayer<'a>> {
    let layers = plan.layers.iter();
    let measured = layers.filter_map(|planned| {
        let target = planned.target?;
        Some(MeasuredLayer {
            planned,
            target,
            place: places.iter().find(|place| place.target == target),
        })
    });
    measured.collect()
}

/// The cost of each layer in one workload, the highest first.
fn costs(measured: &[&Row], layers: &[MeasuredLayer<'_>]) -> Vec<LayerCost> {
    let known = layers.iter().filter_map(|layer| {
        let own = measured.iter().find(|m| m.data.target == layer.target)?;
        Some((layer, SliceFigures::of(own)))
    });
    let all: Vec<(&MeasuredLayer<'_>, SliceFigures)> = known.collect();
    let is_top = |layer: &MeasuredLayer<'_>| layer.target == layers[0].target;
    let Some((_, top)) = all.first().filter(|(first, _)| is_top(first)) else {
        return Vec::new();
    };
    let known = top.latencies_ns.iter().copied().filter(|ns| ns.is_finite());
    let top_ns = mean(&known.collect::<Vec<f64>>()).max(1.0);
    let mut costs = Vec::new();
    for (index, (layer, own)) in all.iter().enumerate() {
        let (lower, below) = all
            .get(index + 1)
            .map(|(lower, below)| (*lower, below))
            .unzip();
        let zeros = vec![0.0; own.latencies_ns.len()];
        let below_ns = below.map_or(&zeros, |below| &below.latencies_ns);
        let own_time = difference(&own.latencies_ns, below_ns);
        let share = LayerDifference {
            difference: own_time.difference / top_ns,
            half_width_95: own_time.half_width_95.map(|half| half / top_ns),
            ..own_time
        };
        let rate_change = below.map(|below| rate_change(own, below));
        costs.push(LayerCost {
            workload: measured[0].data.workload.name.clone(),
            target: layer.target,
            below: lower.map(|lower| lower.target),
            meaning: lower.map_or(CostMeaning::Lowest, |lower| {
                meaning(&own_time, layer, lower)
            }),
            own_time,
            share,
            rate_change,
        });
    }
    costs
}

/// Reads in each slice of a layer.
struct SliceFigures {
    rates: Vec<f64>,
    /// Medians: one request that waits for a second because of another program changes the mean of
    /// its slice a hundredfold. Not a number where a slice has too few reads.
    latencies_ns: Vec<f64>,
}

impl SliceFigures {
    fn of(m: &Row) -> Self {
        let slices = m.data.slices.iter();
        let reads = slices.filter_map(|slice| slice.ops.get(&OpKind::Read));
        let (mut rates, mut latencies_ns) = (Vec::new(), Vec::new());
        for read in reads {
            rates.push(read.iops);
            let median = read.latency.and_then(|latency| latency.p50_ns);
            latencies_ns.push(median.map_or(f64::NAN, |ns| ns as f64));
        }
        Self {
            rates,
            latencies_ns,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The mean of the differences slice by slice, of those slices that have both figures.
fn difference(own: &[f64], below: &[f64]) -> LayerDifference {
    let pairs = own.iter().zip(below).map(|(own, below)| own - below);
    let each: Vec<f64> = pairs.filter(|difference| difference.is_finite()).collect();
    let paired = PairedDifference::of(&each);
    LayerDifference {
        n: each.len() as u64,
        difference: mean(&each),
        half_width_95: paired.map(|paired| paired.half_width(0.95)),
    }
}

/// The geometric mean ratio of the rates, minus one.
fn rate_change(own: &SliceFigures, below: &SliceFigures) -> LayerDifference {
    let logs = |rates: &[f64]| rates.iter().map(|rate| rate.ln()).collect::<Vec<f64>>();
    let log = difference(&logs(&own.rates), &logs(&below.rates));
    let ratio = log.difference.exp();
    LayerDifference {
        difference: ratio - 1.0,
        // The longer arm: the interval of a ratio is not even.
        half_width_95: log.half_width_95.map(|half| ratio * half.exp() - ratio),
        ..log
    }
}

fn meaning(
    own_time: &LayerDifference,
    layer: &MeasuredLayer<'_>,
    lower: &MeasuredLayer<'_>,
) -> CostMeaning {
    let Some(half) = own_time.half_width_95 else {
        return CostMeaning::Unknown;
    };
    let is_known = |one: &MeasuredLayer<'_>| {
        let blocks = one.place.map(|place| place.blocks);
        blocks.is_some_and(|blocks| blocks != BlockMatch::Unknown)
    };
    if own_time.difference.abs() <= half {
        CostMeaning::Noise
    } else if !is_known(layer) || !is_known(lower) || lower.planned.one_of > 1 {
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
                ..SliceOp::of((1e6 / median_us) as u64, 0, 1_000_000_000)
            };
            TimeSlice {
                start_ns: 0,
                wall_ns: 1_000_000_000,
                ops: [(OpKind::Read, read)].into(),
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
        costs(&[&file, &disk], &layers)
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
        let noise = difference(&[100.0, 101.0, 99.0, 100.0], &[100.0, 99.0, 100.0, 101.0]);
        let (place, planned) = (place(1, BlockMatch::Same), planned(1, 1));
        let layer = MeasuredLayer {
            planned: &planned,
            target: 1,
            place: Some(&place),
        };
        assert_eq!(meaning(&noise, &layer, &layer), CostMeaning::Noise);
        let bound = noise.bound().unwrap();
        assert!(bound > noise.half_width_95.unwrap() - 1e-9 && bound < 10.0);
        let few = difference(&[1.0, 2.0], &[0.0, 0.0]);
        assert_eq!(meaning(&few, &layer, &layer), CostMeaning::Unknown);
    }
}
