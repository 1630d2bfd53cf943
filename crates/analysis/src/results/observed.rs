//! Writes the clauses of the headline on an observed load, which other programs made.

use crate::words::enumerated;
use diskproof_model::digits::rounded;
use diskproof_model::observed::{ObservedDevice, ObservedRecord};
use diskproof_model::units::format_percent;

/// Devices in the headline: the table of all follows.
const DEVICES_MAX: usize = 3;

/// `observed on sda: 1230 reads/s and 45 writes/s, 83 % of them seeks`, of the busiest devices.
pub(super) fn observed_clauses(observed: &ObservedRecord) -> Vec<String> {
    let mut busy: Vec<&ObservedDevice> = observed
        .devices
        .iter()
        .filter(|device| device.requests() > 0)
        .collect();
    if busy.is_empty() {
        return vec!["no device had a request".to_owned()];
    }
    busy.sort_by(|one, other| other.rate().total_cmp(&one.rate()));
    busy.truncate(DEVICES_MAX);
    busy.into_iter().map(device_clause).collect()
}

/// The load of one device in short.
fn device_clause(device: &ObservedDevice) -> String {
    let mut rates = Vec::new();
    for (kind, op) in &device.ops {
        let rate = rounded(op.iops.value, op.iops.half_width_95);
        rates.push(format!("{rate} {}s/s", kind.as_str()));
    }
    let seeks = format_percent(device.seek_share().unwrap_or(0.0));
    let (name, rates) = (&device.name, enumerated(&rates));
    format!("observed on {name}: {rates}, {seeks} of them seeks")
}
