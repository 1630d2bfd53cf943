//! Holds the facts that all entries of a run share in every form of output: its time, the rates of
//! its groups, and the counts that the kernel has of the block devices.

use super::stats::{DirectionStats, JobEntry};
use crate::jobs::JobOption;
use diskproof_model::measurement::DiskTotals;

/// The version of fio whose output this is.
pub(super) const EMULATES: &str = "fio-3.33";

/// Facts that all entries of a run share.
pub(super) struct RunFrame<'a> {
    /// The time of the output, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The same time as ctime(3) writes it.
    pub time: String,
    /// The whole seconds of the run.
    pub elapsed_s: u64,
    /// The options of every job.
    pub global: &'a [JobOption],
    pub disks: &'a [DiskTotals],
    pub entries: &'a [JobEntry],
}

impl RunFrame<'_> {
    /// The directions of an entry: reads, writes and trims, each with the rate of its group.
    pub(super) fn directions<'b>(
        &self,
        entry: &'b JobEntry,
    ) -> impl Iterator<Item = GroupDirection<'b>> {
        entry.directions.iter().enumerate().map(|(index, stats)| {
            let members = self
                .entries
                .iter()
                .filter(|member| member.group == entry.group && member.is_blank == entry.is_blank);
            let total = GroupTotal::sum(members.map(|member| &member.directions[index]));
            GroupDirection {
                stats,
                group_rate: total.map_or(0, |total| total.rate()),
            }
        })
    }
}

/// A direction of an entry beside those of its group.
pub(super) struct GroupDirection<'a> {
    pub stats: &'a DirectionStats,
    /// Bytes per second of the whole group.
    pub group_rate: u64,
}

/// The sums of one direction over a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupTotal {
    pub bytes: u64,
    /// The run time of the shortest and of the longest job, in milliseconds.
    pub ms_min: u64,
    pub ms_max: u64,
    /// Bytes per second of the slowest and of the fastest job.
    pub rate_min: u64,
    pub rate_max: u64,
}

impl GroupTotal {
    /// The sums of one direction over all entries of a group; `None` without operations.
    pub(super) fn sum<'a>(all: impl Iterator<Item = &'a DirectionStats>) -> Option<Self> {
        let totals = all.filter(|stats| stats.count > 0).map(|stats| {
            let rates = stats.rates.unwrap_or_default();
            Self {
                bytes: stats.bytes,
                ms_min: stats.runtime_ms,
                ms_max: stats.runtime_ms,
                rate_min: rates.least,
                rate_max: rates.most,
            }
        });
        totals.reduce(|sum, total| Self {
            bytes: sum.bytes + total.bytes,
            ms_min: sum.ms_min.min(total.ms_min),
            ms_max: sum.ms_max.max(total.ms_max),
            rate_min: sum.rate_min.min(total.rate_min),
            rate_max: sum.rate_max.max(total.rate_max),
        })
    }

    /// Bytes per second, rounded down, over the whole milliseconds of the longest job.
    pub(super) fn rate(&self) -> u64 {
        (u128::from(self.bytes) * 1000 / u128::from(self.ms_max.max(1))) as u64
    }
}

/// The counts of a disk, or the means over the members of a volume.
pub(super) struct DiskFigures {
    /// Requests, merges and milliseconds, each of reads and of writes, and the milliseconds of all
    /// requests.
    pub counts: [u64; 7],
    /// The percentage of the time in which it had a request; of members, that of the busiest.
    pub busy_percent: f64,
}

impl DiskFigures {
    /// The figures of a disk itself.
    pub(super) fn of_disk(disk: &DiskTotals) -> Self {
        let times = &disk.times;
        Self {
            counts: [
                disk.read_ops,
                disk.write_ops,
                times.read_merges,
                times.write_merges,
                times.read_ms,
                times.write_ms,
                times.queued_ms,
            ],
            busy_percent: times.busy_percent(),
        }
    }

    /// The figures of its members, `None` where it has none.
    pub(super) fn of_members(disk: &DiskTotals, disks: &[DiskTotals]) -> Option<Self> {
        let mut sum = Self {
            counts: [0; 7],
            busy_percent: 0.0,
        };
        let mut members = 0;
        for other in disks
            .iter()
            .filter(|other| disk.members.contains(&other.name))
        {
            let figures_of_member = Self::of_disk(other);
            for (total, count) in sum.counts.iter_mut().zip(figures_of_member.counts) {
                *total += count;
            }
            sum.busy_percent = sum.busy_percent.max(figures_of_member.busy_percent);
            members += 1;
        }
        if members == 0 {
            return None;
        }
        for total in &mut sum.counts {
            *total /= members;
        }
        Some(sum)
    }
}
