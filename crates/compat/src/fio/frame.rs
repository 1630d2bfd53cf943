//! What all entries of a run share: when it was, its disks, the rates of its groups.

use super::disks::UsedDisk;
use super::stats::{DirectionStats, JobEntry};
use crate::jobs::JobOption;

/// The version of fio whose output this is.
pub(super) const EMULATES: &str = "fio-3.33";

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

/// The sums of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupTotal {
    pub bytes: u64,
    pub ms_min: u64,
    pub ms_max: u64,
    pub rate_min: u64,
    pub rate_max: u64,
}

impl GroupTotal {
    /// The sums of one direction over all entries of a group; `None` without operations.
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a DirectionStats>) -> Option<Self> {
        let each = all.filter(|stats| stats.count > 0).map(|stats| {
            let (rate_min, rate_max) = stats.rates.unwrap_or_default();
            Self {
                bytes: stats.bytes,
                ms_min: stats.runtime_ms,
                ms_max: stats.runtime_ms,
                rate_min,
                rate_max,
            }
        });
        each.reduce(|sum, one| Self {
            bytes: sum.bytes + one.bytes,
            ms_min: sum.ms_min.min(one.ms_min),
            ms_max: sum.ms_max.max(one.ms_max),
            rate_min: sum.rate_min.min(one.rate_min),
            rate_max: sum.rate_max.max(one.rate_max),
        })
    }

    /// Bytes per second.
    pub(super) fn rate(&self) -> u64 {
        (u128::from(self.bytes) * 1000 / u128::from(self.ms_max.max(1))) as u64
    }
}
