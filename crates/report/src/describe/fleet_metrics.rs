//! Finds what a figure of a row in a fleet is a figure of. A fleet may come from anybody, so that
//! an index may lead nowhere.

use diskproof_model::fleet::{FleetMetric, FleetRecord, FleetRow, FleetValue};

/// The metric of a figure; `None` where the row belongs to no group.
pub(super) fn metric_of_value<'f>(
    fleet: &'f FleetRecord,
    row: &FleetRow,
    value: &FleetValue,
) -> Option<&'f FleetMetric> {
    fleet.groups.get(row.group?)?.metrics.get(value.metric)
}
