//! Whether the figures of a target came from its disks, by the disks' own counters; which engines
//! carried the operations.

use crate::text::{glue, grouped, list};
use diskproof_model::measurement::DeviceUse;

use diskproof_model::record::Record;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The evidence of the disks' counters for a target; `None` if nothing was measured on it.
pub(crate) fn proof_text(record: &Record, target: usize) -> Option<String> {
    let measured = record.measurements.iter().filter(|m| m.target == target);
    let surveyed = record.surface.iter().filter(|s| s.target == target);
    let devices = measured
        .map(|m| &m.device)
        .chain(surveyed.map(|s| &s.device));
    let devices: Vec<&DeviceUse> = devices.collect();
    let unknown = devices.iter().filter(|device| device.accounted.is_none());
    let unknown: BTreeSet<&str> = unknown
        .filter_map(|one| one.unresolved.as_deref())
        .collect();
    let why = Vec::from_iter(unknown).join("; ");
    let known = record.accounted_range(target).map(|range| {
        let disks = devices.iter().flat_map(|device| &device.disks);
        let mut disks: BTreeSet<&str> = disks.map(String::as_str).collect();
        disks.extend(trimmed_device(record, target));
        let disks = Vec::from_iter(disks).join(", ");
        let bytes = match range.1 {
            MANY.. => format!("show up to {:.0} times the bytes", range.1),
            _ => format!("confirm {} of the bytes", share_text(range)),
        };
        format!(
            "the kernel's counters of {disks} {bytes}{}",
            why_apart(range)
        )
    });
    match (known, why.as_str()) {
        (known, "") => known,
        (Some(known), why) => Some(format!("{known}; in part unknown: {why}")),
        (None, why) => Some(format!(
            "unknown, the disk's counters are not available: {why}"
        )),
    }
}

/// The device whose counters confirm trims.
fn trimmed_device(record: &Record, target: usize) -> Option<&str> {
    let mut measured = record.measurements.iter().filter(|m| m.target == target);
    let is_counted = measured.any(|m| m.asked.trim_bytes > 0 && m.device.trim_bytes.is_some());
    let layer = record.targets.get(target)?.layers.first()?;
    is_counted.then_some(layer.name.as_str())
}

/// From these shares on the difference deserves a clause.
const LESS: f64 = 0.9;
const MORE: f64 = 1.1;
/// From here on a percentage is no help.
const MANY: f64 = 10.0;

/// Why the counters differ from what was measured, as the end of a sentence.
fn why_apart((low, high): (f64, f64)) -> &'static str {
    match (low < LESS, high > MORE) {
        (false, false) => "",
        (true, false) => "; a cache answered the rest",
        (false, true) => "; the rest comes from the filesystem's journal and other programs",
        (true, true) => {
            "; less if a cache answered, more if the filesystem's journal or other programs also \
             wrote"
        }
    }
}

/// `99.6 % to 100.3 %`
fn share_text((low, high): (f64, f64)) -> String {
    let [low, high] = [low, high].map(|share| glue(&format!("{:.1} %", share * 100.0)));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

/// The engines of a target: the most used one, then each other one with its workloads.
pub(crate) fn engines_text(record: &Record, target: usize) -> Option<String> {
    let own = record.measurements.iter().filter(|m| m.target == target);
    let mut engines = grouped(own.map(|m| (m.workload.engine, &m.workload.name)));
    engines.sort_by_key(|(_, names)| Reverse(names.len()));
    let (first, others) = engines.split_first()?;
    let mut text = first.0.as_str().to_owned();
    for (engine, names) in others {
        text += &format!("; {} for {}", engine.as_str(), list(names));
    }
    Some(text)
}
