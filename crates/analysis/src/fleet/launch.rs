//! When, where and with which rank a run was launched: what tells machines of one name apart.

use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;

/// The launch of a run.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    rank: Option<u32>,
    /// The comparison that it is a side of. Its sides take turns on one machine.
    comparison: Option<String>,
    /// `None` where the record does not tell its start.
    pub time: Option<RunTime>,
    /// The start of the kernel under it; `None` where the record does not tell it.
    boot_id: Option<String>,
    /// The machine; `None` where the record does not tell it, and where its disks have serial
    /// numbers that no other disks have: those are the same in any machine.
    pub machine: Option<String>,
    /// True if its disks have such serial numbers.
    is_on_known_disks: bool,
}

impl Launch {
    /// The launch of the run in a record, on this target of it.
    pub(super) fn of_record(record: &Record, target: &TargetIdentity) -> Self {
        let wall = record.clock.wall.as_ref();
        let is_on_known_disks = has_own_serials(record, target);
        Self {
            rank: record.host.rank.map(|rank| rank.rank),
            comparison: record.campaign().map(|part| part.id.clone()),
            time: RunTime::of_record(record),
            boot_id: wall.and_then(|wall| wall.boot_id.clone()),
            machine: if is_on_known_disks {
                None
            } else {
                record.host.machine.clone()
            },
            is_on_known_disks,
        }
    }

    /// Returns `true` if runs of one host name may be of different machines: of two machine ids,
    /// or at the same time; or under another rank and another kernel.
    pub(super) fn is_apart(&self, other: &Self) -> bool {
        if self.is_of_one_comparison(other) {
            return false;
        }
        if self.is_elsewhere(other) || self.is_at_once(other) {
            return true;
        }
        if self.rank == other.rank {
            return false;
        }
        let is_same_machine = self.machine.is_some() && self.machine == other.machine;
        let is_of_another_kernel = match (&self.boot_id, &other.boot_id) {
            (Some(own), Some(others)) => own != others && !is_same_machine,
            _ => false,
        };
        is_of_another_kernel || self.time.is_none() || other.time.is_none()
    }

    /// Returns `true` if both are of different machines, whatever their names.
    fn is_elsewhere(&self, other: &Self) -> bool {
        match (&self.machine, &other.machine) {
            (Some(own), Some(others)) => own != others,
            _ => false,
        }
    }

    /// Returns `true` if both measured at the same time, as one process after the other does not.
    pub(super) fn is_at_once(&self, other: &Self) -> bool {
        match (self.time, other.time) {
            (Some(own), Some(others)) => own.overlaps(others) && !self.is_of_one_comparison(other),
            _ => false,
        }
    }

    fn is_of_one_comparison(&self, other: &Self) -> bool {
        self.comparison.is_some() && self.comparison == other.comparison
    }

    /// Returns `true` if the records prove that both are of one machine, or on one disk. Clones
    /// that measured one after the other look the same.
    pub(super) fn is_of_same_place(&self, other: &Self) -> bool {
        let is_on_same_disks = self.is_on_known_disks && other.is_on_known_disks;
        let is_same_machine = self.machine.is_some() && self.machine == other.machine;
        let is_same_boot = self.boot_id.is_some() && self.boot_id == other.boot_id;
        is_on_same_disks || is_same_machine || is_same_boot
    }
}

/// Returns `true` if the disks below a target have serial numbers of their own. Clones of a virtual
/// machine share theirs.
fn has_own_serials(record: &Record, target: &TargetIdentity) -> bool {
    let mut disks = target.disks().peekable();
    record.host.hypervisor.is_none()
        && disks.peek().is_some()
        && disks.all(|disk| disk.serial.is_some())
}

/// The time from the start of a run to the end of its last request, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunTime {
    pub start_ns: i128,
    pub end_ns: i128,
}

impl RunTime {
    pub(super) fn of_record(record: &Record) -> Option<Self> {
        let started: jiff::Timestamp = record.started.parse().ok()?;
        let start_ns = started.as_nanosecond();
        Some(Self {
            start_ns,
            end_ns: start_ns + i128::from(record.elapsed_ns()),
        })
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.start_ns <= other.end_ns && other.start_ns <= self.end_ns
    }
}
