//! What all entries of a run share: when it was, its disks, the rates of its groups.

use super::disks::UsedDisk;
use super::normal::GroupTotal;
use super::stats::{DirectionStats, JobEntry};
use crate::jobs::JobOption;

/// What all entries of a run share.
pub(super) struct RunFrame<'a> {
    pub unix_ns: u64,
    pub time: String,
    pub elapsed_s: u64,
    pub global: &'a [JobOption],
    pub disks: Vec<UsedDisk>,
    pub entries: &'a [JobEntry],
}

impl RunFrame<'_> {
    /// The directions of an entry, each with the bytes per second of its group.
    pub(super) fn directions<'b>(
        &self,
        entry: &'b JobEntry,
    ) -> impl Iterator<Item = (&'b DirectionStats, u64)> {
        entry.directions.iter().enumerate().map(|(index, stats)| {
            let members = self.entries.iter().filter(|one| one.group == entry.group);
            let total = GroupTotal::of(members.map(|one| &one.directions[index]));
            (stats, total.map_or(0, |total| total.rate()))
        })
    }
}
