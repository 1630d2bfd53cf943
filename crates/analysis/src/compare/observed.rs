//! Compares observed loads: gives rate, throughput and mean time of reads and writes for each
//! device that both sides observed.

use super::pair::PairEstimates;
use super::pending_metric::{ComparedFigure, PendingMetric};
use super::side_estimate::SideEstimate;
use super::sides::{NamedRun, Sides, sole_holder, unmatched_entry};
use diskproof_model::comparison::{Figure, Holder, Unmatched};
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::{ObservedDevice, ObservedOps};
use diskproof_model::record::Estimate;

/// A device in all runs of both sides.
struct LoadPair<'a> {
    /// The device names: `vda`, or `vda and sdb`.
    subject: String,
    a: Vec<&'a ObservedDevice>,
    b: Vec<&'a ObservedDevice>,
}

/// The metrics of each device and direction. Loads that only one side observed are added to
/// `unmatched`.
pub(super) fn load_metrics(
    sides: &Sides<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<PendingMetric> {
    let mut metrics = Vec::new();
    for pair in pair_devices(sides, unmatched) {
        for kind in [OpKind::Read, OpKind::Write] {
            let loads_a = loads_of_kind(&pair.a, kind);
            let loads_b = loads_of_kind(&pair.b, kind);
            if let Some(holder) = sole_holder(&loads_a, &loads_b) {
                let subject = format!("{}s of {}", kind.as_str(), pair.subject);
                unmatched.push(unmatched_entry(&subject, holder));
            }
            for figure in [Figure::Iops, Figure::Throughput, Figure::Mean] {
                metrics.extend(load_metric(&pair, kind, figure, &loads_a, &loads_b));
            }
        }
    }
    metrics
}

/// Pairs devices of the same name. The only device of each side is paired whatever its name. Others
/// are added to `unmatched`.
fn pair_devices<'a>(sides: &'a Sides<'a>, unmatched: &mut Vec<Unmatched>) -> Vec<LoadPair<'a>> {
    let names_a = device_names(&sides.a);
    let names_b = device_names(&sides.b);
    if let ([name_a], [name_b]) = (names_a.as_slice(), names_b.as_slice()) {
        let subject = if name_a == name_b {
            (*name_a).to_owned()
        } else {
            format!("{name_a} and {name_b}")
        };
        return vec![LoadPair {
            subject,
            a: devices_named(&sides.a, name_a),
            b: devices_named(&sides.b, name_b),
        }];
    }
    let mut pairs = Vec::new();
    for name in &names_a {
        if names_b.contains(name) {
            pairs.push(LoadPair {
                subject: (*name).to_owned(),
                a: devices_named(&sides.a, name),
                b: devices_named(&sides.b, name),
            });
        } else {
            unmatched.push(unmatched_entry(&format!("load of {name}"), Holder::A));
        }
    }
    for name in &names_b {
        if !names_a.contains(name) {
            unmatched.push(unmatched_entry(&format!("load of {name}"), Holder::B));
        }
    }
    pairs
}

/// The names of the devices of a side, each once.
fn device_names<'a>(side: &'a [NamedRun<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for device in observed_devices(side) {
        if !names.contains(&device.name.as_str()) {
            names.push(device.name.as_str());
        }
    }
    names
}

/// The device of this name in each run of a side.
fn devices_named<'a>(side: &'a [NamedRun<'a>], name: &str) -> Vec<&'a ObservedDevice> {
    observed_devices(side)
        .filter(|device| device.name == name)
        .collect()
}

/// The devices that the runs of a side observed, run by run.
fn observed_devices<'a>(side: &'a [NamedRun<'a>]) -> impl Iterator<Item = &'a ObservedDevice> {
    side.iter()
        .flat_map(|named| named.run.record.observed())
        .flat_map(|observed| &observed.devices)
}

/// The reads or the writes of these devices, without devices that had none.
fn loads_of_kind<'a>(devices: &[&'a ObservedDevice], kind: OpKind) -> Vec<&'a ObservedOps> {
    let mut loads = Vec::new();
    for device in devices {
        match device.ops.get(&kind) {
            Some(ops) if ops.count > 0 => loads.push(ops),
            Some(_) | None => {}
        }
    }
    loads
}

/// The metric of one figure; `None` where a side had no such requests, or the figure is unknown.
fn load_metric(
    pair: &LoadPair<'_>,
    kind: OpKind,
    figure: Figure,
    a: &[&ObservedOps],
    b: &[&ObservedOps],
) -> Option<PendingMetric> {
    let estimates = PairEstimates {
        a: side_estimate(a, figure)?,
        b: side_estimate(b, figure)?,
        earlier: Vec::new(),
    };
    let ratio = estimates.ratio();
    let devices = pair.a.iter().chain(&pair.b);
    let measured_ns = devices.map(|device| device.wall_ns).max();
    let subject = pair.subject.as_str();
    let metric = format!("{subject}.{}.{}", kind.as_str(), figure.as_str());
    let compared = ComparedFigure {
        subject,
        figure,
        estimates,
        ratio,
        measured_ns,
        reasons: &[],
    };
    let mut pending = PendingMetric::new(metric, compared);
    pending.metric.op = Some(kind);
    pending.metric.headline = figure == Figure::Iops;
    pending.is_of_observed_load = true;
    Some(pending)
}

/// A figure of one side; `None` where a run does not have it.
fn side_estimate(loads: &[&ObservedOps], figure: Figure) -> Option<SideEstimate> {
    let mut estimates = Vec::new();
    for ops in loads {
        estimates.push(match figure {
            Figure::Iops => ops.iops.clone(),
            Figure::Throughput => ops.throughput.clone(),
            Figure::Mean => Estimate::new(ops.count, ops.latency_mean_ns?, None, "ns"),
            // An observed load has counters, not the latency of each request.
            Figure::P50
            | Figure::P99
            | Figure::P99_9
            | Figure::CurveAverage
            | Figure::CurveMin
            | Figure::CurveMax
            | Figure::AccessTime
            | Figure::PromisedRate => return None,
        });
    }
    SideEstimate::from_estimates(&estimates)
}
