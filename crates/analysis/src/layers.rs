//! Computes the cost of each layer between a file and its disk: the difference of the median
//! latencies that the page shows of two layers. Slice n of one layer was measured right after slice
//! n of another, so that slow changes cancel in their differences, which say how well a cost is
//! known.

use crate::estimate::{PairedDifference, mean};
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
    /// Returns `true` if the blocks of the layer that hold the file are known.
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

/// The layers of the plan that were measured, from the file down to the disk.
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
    let top_ns = top.median_ns.map(|ns| ns.max(1.0));
    let mut costs = Vec::new();
    let workload = &measured[0].data.workload.name;
    for (index, own) in by_layer.iter().enumerate() {
        costs.push(layer_cost(workload, own, by_layer.get(index + 1), top_ns));
    }
    costs
}

/// The cost of a layer on top of the one below it, in nanoseconds a read and as a share of
/// `top_ns`, the median read of the file, where that is known. The lowest layer costs all of its
/// time.
fn layer_cost(
    workload: &str,
    own: &LayerSlices<'_>,
    below: Option<&LayerSlices<'_>>,
    top_ns: Option<f64>,
) -> LayerCost {
    let own_time = match below {
        Some(below) => own_time(&own.slices, &below.slices),
        None => own_time(&own.slices, &own.slices.without_latency()),
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

/// The reads of a layer, and of each of its slices.
struct SliceFigures {
    /// The median of all reads, as the page shows it. It is no mean of the medians of the slices: a
    /// slice of 8 ms in which the machine was busy outweighs six of 0.1 ms there, with few reads.
    median_ns: Option<f64>,
    /// Reads per second of each slice; not a number of a slice without a read.
    rates: Vec<f64>,
    /// Medians of each slice: one request that waits for a second because of another program
    /// changes the mean of its slice a hundredfold. Not a number where a slice has too few reads.
    latencies_ns: Vec<f64>,
}

impl SliceFigures {
    /// Those of a row.
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
        let median_ns = match row.op(OpKind::Read) {
            Some(read) => read.figures.latency.p50.map(|ns| ns as f64),
            None => None,
        };
        Self {
            median_ns,
            rates,
            latencies_ns,
        }
    }

    /// A layer below the lowest one: its reads take no time.
    fn without_latency(&self) -> Self {
        Self {
            median_ns: Some(0.0),
            rates: Vec::new(),
            latencies_ns: vec![0.0; self.latencies_ns.len()],
        }
    }

    /// The logarithms of the rates, not a number of a slice without a read.
    fn log_rates(&self) -> Vec<f64> {
        self.rates.iter().map(|rate| rate.ln()).collect()
    }
}

/// The difference of the medians of all reads. Its interval holds that of the mean difference of
/// the slices' medians: where single slices are far off, it is wide. Without both medians the
/// difference is 0, of no pairs.
fn own_time(own: &SliceFigures, below: &SliceFigures) -> LayerDifference {
    let (Some(own_ns), Some(below_ns)) = (own.median_ns, below.median_ns) else {
        return LayerDifference {
            n: 0,
            difference: 0.0,
            half_width_95: None,
        };
    };
    let by_slice = paired_difference(&own.latencies_ns, &below.latencies_ns);
    let difference = own_ns - below_ns;
    let distance = (by_slice.difference - difference).abs();
    LayerDifference {
        n: by_slice.n,
        difference,
        half_width_95: by_slice.half_width_95.map(|half| half + distance),
    }
}

/// The mean of the slice-by-slice differences, over the slices that have both figures; 0 without
/// one.
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
        difference: if each.is_empty() { 0.0 } else { mean(&each) },
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

/// The meaning of a cost: a real difference, noise, or perhaps other blocks of the disk.
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
        let mut m = crate::fixture::measured(&mut record, "random-read-d32").clone();
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
        set_median(
            &mut m,
            medians_us.iter().sum::<f64>() / medians_us.len() as f64,
        );
        m
    }

    /// Sets the median of all reads of a row, in microseconds.
    fn set_median(row: &mut Row, median_us: f64) {
        let read = row.figures.ops.get_mut(&OpKind::Read).unwrap();
        read.latency.p50 = Some((median_us * 1000.0) as u64);
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
        costs_of_rows([&file, &disk], layers, places)
    }

    fn costs_of_rows(
        rows: [&Row; 2],
        layers: &[PlannedLayer; 2],
        places: &[LayerPlace; 2],
    ) -> Vec<LayerCost> {
        let layers = [0, 1].map(|target| MeasuredLayer {
            planned: &layers[target],
            target,
            place: Some(&places[target]),
        });
        workload_costs(&rows, &layers)
    }

    /// By hand: 10, 11, 9 and 10 µs have the mean 10 and the squares 2, so the standard error is
    /// √(2/3/4) = 0.408; times 3.182446 (Student's t with 3 degrees of freedom) 1.299.
    #[test]
    fn cost_is_the_difference_of_medians_as_sure_as_paired_slices() {
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

    /// Other programs had the processor in some slices, which have few reads: all reads together
    /// have the median that the page shows, and the cost is unclear.
    #[test]
    fn slices_far_off_do_not_move_a_cost() {
        let mut file = measured(0, &[116.0, 3000.0, 117.0, 8000.0, 5000.0, 116.0, 115.0]);
        let mut disk = measured(1, &[55.0, 56.0, 54.0, 56.0, 900.0, 56.0, 55.0]);
        set_median(&mut file, 116.0);
        set_median(&mut disk, 56.0);
        let planned = [planned(0, 1), planned(1, 1)];
        let places = [place(0, BlockMatch::Top), place(1, BlockMatch::Same)];
        let costs = costs_of_rows([&file, &disk], &planned, &places);
        let difference = |cost: &LayerCost| cost.own_time.difference;
        assert_eq!((difference(&costs[0]), difference(&costs[1])), (60e3, 56e3));
        assert_eq!(costs[0].share.difference, 60.0 / 116.0);
        assert_eq!(costs[0].meaning, CostMeaning::Noise);
        // The mean of the differences, 2176 µs, lies in the interval.
        assert!(costs[0].own_time.bound().unwrap() > 2.1e6, "{costs:?}");
    }

    /// The second slice of the file had no read; the others still stand against their own.
    #[test]
    fn slice_without_a_read_shifts_no_other() {
        let mut file = measured(0, &[110.0, 121.0, 129.0, 140.0]);
        file.data.slices[1].ops.clear();
        let disk = measured(1, &[100.0, 110.0, 120.0, 130.0]);
        let (own, below) = (SliceFigures::from_row(&file), SliceFigures::from_row(&disk));
        let by_slice = paired_difference(&own.latencies_ns, &below.latencies_ns);
        assert_eq!(by_slice.n, 3);
        let mean_ns = 29_000.0 / 3.0;
        assert!((by_slice.difference - mean_ns).abs() < 1e-6, "{by_slice:?}");
        assert_eq!(own_time(&own, &below).n, 3);
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
        for cost in costs_of_rows([&rows[0], &rows[1]], &planned, &places) {
            assert_eq!(cost.meaning, CostMeaning::Unknown, "{cost:?}");
        }
        // Nor has the whole row of one layer.
        let mut file = measured(0, &[110.0, 121.0, 129.0, 140.0]);
        let disk = measured(1, &[100.0, 110.0, 120.0, 130.0]);
        let read = file.figures.ops.get_mut(&OpKind::Read).unwrap();
        read.latency.p50 = None;
        for cost in costs_of_rows([&file, &disk], &planned, &places) {
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
