//! When, under which kernel and with which rank a run was launched: what tells machines of one name
//! apart.

use diskproof_model::record::Record;

/// The launch of a run.
#[derive(Debug)]
pub(super) struct Launch {
    rank: Option<u32>,
    /// `None` where the record does not tell its start.
    time: Option<RunTime>,
    /// The start of the kernel under it, which machines that share a name do not share; `None`
    /// where the record does not tell it.
    boot_id: Option<String>,
}

impl Launch {
    pub(super) fn of_record(record: &Record) -> Self {
        let wall = record.clock.wall.as_ref();
        Self {
            rank: record.host.rank.map(|rank| rank.rank),
            time: RunTime::of_record(record),
            boot_id: wall.and_then(|wall| wall.boot_id.clone()),
        }
    }

    /// Returns `true` if runs of one host name may be of different machines: another rank measured
    /// at the same time, or on a machine that was started at another time.
    pub(super) fn is_apart(&self, other: &Self) -> bool {
        if self.rank == other.rank {
            return false;
        }
        let is_of_another_kernel = match (&self.boot_id, &other.boot_id) {
            (Some(own), Some(others)) => own != others,
            _ => false,
        };
        let is_at_once = match (self.time, other.time) {
            (Some(own), Some(others)) => own.overlaps(others),
            _ => true,
        };
        is_of_another_kernel || is_at_once
    }
}

/// The time from the start of a run to the end of its last request, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct RunTime {
    start_ns: i128,
    end_ns: i128,
}

impl RunTime {
    fn of_record(record: &Record) -> Option<Self> {
        let started: jiff::Timestamp = record.started.parse().ok()?;
        let start_ns = started.as_nanosecond();
        Some(Self {
            start_ns,
            end_ns: start_ns + i128::from(record.elapsed_ns()),
        })
    }

    fn overlaps(self, other: Self) -> bool {
        self.start_ns <= other.end_ns && other.start_ns <= self.end_ns
    }
}
