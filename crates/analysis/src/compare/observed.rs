//! The metrics of observed loads: rate, throughput and mean time of reads and writes, for each
//! device that both sides observed.

use super::figures::{SideEstimate, from_estimates};
use super::pair::{ComparedRow, PairEstimates};
use super::sides::{NamedRun, Sides, only, unmatched};
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

/// Rows for each device and direction. What only one side observed is added to `alone`.
pub(super) fn rows(sides: &Sides<'_>, alone: &mut Vec<Unmatched>) -> Vec<ComparedRow> {
    let mut rows = Vec::new();
    for pair in pairs(sides, alone) {
        for kind in [OpKind::Read, OpKind::Write] {
            let (a, b) = (
                direction_loads(&pair.a, kind),
                direction_loads(&pair.b, kind),
            );
            let subject = format!("{}s of {}", kind.as_str(), pair.subject);
            alone.extend(only(&subject, &a, &b));
            for figure in [Figure::Iops, Figure::Throughput, Figure::Mean] {
                rows.extend(row(&pair, kind, figure, &a, &b));
            }
        }
    }
    rows
}

/// Pairs devices of the same name. The only device of each side is paired whatever its name.
fn pairs<'a>(sides: &'a Sides<'a>, only: &mut Vec<Unmatched>) -> Vec<LoadPair<'a>> {
    let (a, b) = (names(&sides.a), names(&sides.b));
    if let ([one], [other]) = (a.as_slice(), b.as_slice()) {
        let subject = if one == other {
            (*one).to_owned()
        } else {
            format!("{one} and {other}")
        };
        return vec![LoadPair {
            subject,
            a: devices(&sides.a, one),
            b: devices(&sides.b, other),
        }];
    }
    let mut pairs = Vec::new();
    for name in &a {
        if b.contains(name) {
            pairs.push(LoadPair {
                subject: (*name).to_owned(),
                a: devices(&sides.a, name),
                b: devices(&sides.b, name),
            });
        } else {
            only.push(unmatched(&format!("load of {name}"), Holder::A));
        }
    }
    for name in &b {
        if !a.contains(name) {
            only.push(unmatched(&format!("load of {name}"), Holder::B));
        }
    }
    pairs
}

/// The devices of a side by name, each once.
fn names<'a>(side: &'a [NamedRun<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for device in observed(side) {
        if !names.contains(&device.name.as_str()) {
            names.push(device.name.as_str());
        }
    }
    names
}

fn devices<'a>(side: &'a [NamedRun<'a>], name: &str) -> Vec<&'a ObservedDevice> {
    observed(side)
        .filter(|device| device.name == name)
        .collect()
}

fn observed<'a>(side: &'a [NamedRun<'a>]) -> impl Iterator<Item = &'a ObservedDevice> {
    side.iter()
        .flat_map(|named| named.run.record.observed())
        .flat_map(|observed| &observed.devices)
}

/// The loads of one direction, without devices that had none.
fn direction_loads<'a>(devices: &[&'a ObservedDevice], kind: OpKind) -> Vec<&'a ObservedOps> {
    let mut loads = Vec::new();
    for device in devices {
        match device.ops.get(&kind) {
            Some(ops) if ops.count > 0 => loads.push(ops),
            _ => {}
        }
    }
    loads
}

fn row(
    pair: &LoadPair<'_>,
    kind: OpKind,
    figure: Figure,
    a: &[&ObservedOps],
    b: &[&ObservedOps],
) -> Option<ComparedRow> {
    let estimates = PairEstimates {
        a: side_estimate(a, figure)?,
        b: side_estimate(b, figure)?,
        earlier: Vec::new(),
    };
    let joined = estimates.joined();
    let devices = pair.a.iter().chain(&pair.b);
    let wall_ns = devices.map(|device| device.wall_ns).max().unwrap_or(0);
    let subject = pair.subject.as_str();
    let metric = format!("{subject}.{}.{}", kind.as_str(), figure.as_str());
    let mut row = ComparedRow::new(metric, subject, figure, estimates, joined, wall_ns, &[]);
    row.metric.op = Some(kind);
    row.metric.headline = figure == Figure::Iops;
    row.is_load = true;
    Some(row)
}

fn side_estimate(loads: &[&ObservedOps], figure: Figure) -> Option<SideEstimate> {
    let mut estimates = Vec::new();
    for ops in loads {
        estimates.push(match figure {
            Figure::Iops => ops.iops.clone(),
            Figure::Throughput => ops.throughput.clone(),
            _ => Estimate::new(ops.count, ops.latency_mean_ns?, None, "ns"),
        });
    }
    from_estimates(&estimates)
}
