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
    /// Bytes per second of a group in one direction.
    pub(super) fn group_rate(&self, group: usize, pick: fn(&JobEntry) -> &DirectionStats) -> u64 {
        let members = self.entries.iter().filter(|entry| entry.group == group);
        GroupTotal::of(members.map(pick)).map_or(0, |total| total.rate())
    }
}
