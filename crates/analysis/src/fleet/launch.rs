//! Decides whether two runs of one host name are of different machines, by when, where and with
//! which rank they were launched.

use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;

/// The launch of a run.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    rank: Option<u32>,
    /// The comparison that it is a side of. Its sides take turns on one machine.
    comparison: Option<String>,
    /// `None` where the record does not state its start.
    pub time: Option<RunTime>,
    /// The start of the kernel under it; `None` where the record does not state it.
    boot_id: Option<String>,
    /// The machine; `None` where the record does not state it, and where its disks have serial
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
    pub(super) fn may_be_other_machine(&self, other: &Self) -> bool {
        if self.is_of_one_comparison(other) {
            return false;
        }
        if self.is_surely_other_machine(other) || self.overlaps(other) {
            return true;
        }
        if self.rank == other.rank {
            return false;
        }
        let is_same_machine = self.machine.is_some() && self.machine == other.machine;
        let is_of_another_kernel = match (&self.boot_id, &other.boot_id) {
            (Some(boot), Some(other_boot)) => boot != other_boot && !is_same_machine,
            (None, _) | (_, None) => false,
        };
        is_of_another_kernel || self.time.is_none() || other.time.is_none()
    }

    /// Returns `true` if both are certainly of different machines.
    fn is_surely_other_machine(&self, other: &Self) -> bool {
        match (&self.machine, &other.machine) {
            (Some(machine), Some(other_machine)) => machine != other_machine,
            (None, _) | (_, None) => false,
        }
    }

    /// Returns `true` if both measured at the same time, as one process after the other does not.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self.time, other.time) {
            (Some(time), Some(other_time)) => {
                time.overlaps(other_time) && !self.is_of_one_comparison(other)
            }
            (None, _) | (_, None) => false,
        }
    }

    fn is_of_one_comparison(&self, other: &Self) -> bool {
        self.comparison.is_some() && self.comparison == other.comparison
    }

    /// Returns `true` if the records prove that both are of one machine, or on one disk. Clones
    /// that measured one after the other look the same.
    pub(super) fn is_surely_same_place(&self, other: &Self) -> bool {
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
    /// The time of a record; `None` where its start is no time.
    pub(super) fn of_record(record: &Record) -> Option<Self> {
        let started: jiff::Timestamp = record.started.parse().ok()?;
        let start_ns = started.as_nanosecond();
        Some(Self {
            start_ns,
            end_ns: start_ns + i128::from(record.elapsed_ns()),
        })
    }

    /// Returns `true` if both have an instant in common. Times that touch have.
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.start_ns <= other.end_ns && other.start_ns <= self.end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: RunTime = RunTime {
        start_ns: 0,
        end_ns: 10,
    };
    const LATER: RunTime = RunTime {
        start_ns: 20,
        end_ns: 30,
    };

    fn launch(rank: u32, time: RunTime) -> Launch {
        Launch {
            rank: Some(rank),
            comparison: None,
            time: Some(time),
            boot_id: None,
            machine: None,
            is_on_known_disks: false,
        }
    }

    fn on_machine(name: &str, launch: Launch) -> Launch {
        Launch {
            machine: Some(name.to_owned()),
            ..launch
        }
    }

    fn under_kernel(boot_id: &str, launch: Launch) -> Launch {
        Launch {
            boot_id: Some(boot_id.to_owned()),
            ..launch
        }
    }

    #[test]
    fn runs_that_overlap_are_of_two_machines() {
        let first = launch(0, MEASURED);
        assert!(first.may_be_other_machine(&launch(0, MEASURED)));
        assert!(!first.may_be_other_machine(&launch(0, LATER)));
    }

    #[test]
    fn sides_of_one_comparison_are_of_one_machine() {
        let sides = [0, 1].map(|rank| Launch {
            comparison: Some("c".to_owned()),
            ..launch(rank, MEASURED)
        });
        assert!(!sides[0].may_be_other_machine(&sides[1]));
    }

    #[test]
    fn machine_ids_decide_before_time_and_rank() {
        let first = on_machine("m", launch(0, MEASURED));
        assert!(first.may_be_other_machine(&on_machine("n", launch(0, LATER))));
        assert!(!first.may_be_other_machine(&on_machine("m", launch(1, LATER))));
        assert!(first.is_surely_same_place(&on_machine("m", launch(1, LATER))));
    }

    /// The next launch gives a host another rank, and a machine that was restarted in between has
    /// another kernel. Both together mean another machine, unless the ids are equal.
    #[test]
    fn another_rank_under_another_kernel_is_another_machine() {
        let first = under_kernel("k", launch(0, MEASURED));
        assert!(!first.may_be_other_machine(&under_kernel("k", launch(1, LATER))));
        assert!(!first.may_be_other_machine(&under_kernel("l", launch(0, LATER))));
        let other = under_kernel("l", launch(1, LATER));
        assert!(first.may_be_other_machine(&other));
        assert!(!on_machine("m", first).may_be_other_machine(&on_machine("m", other)));
    }

    #[test]
    fn another_rank_without_a_time_is_another_machine() {
        let without_time = Launch {
            time: None,
            ..launch(1, LATER)
        };
        assert!(launch(0, MEASURED).may_be_other_machine(&without_time));
    }

    /// Nothing proves that clones which measured one after the other are one machine.
    #[test]
    fn place_needs_a_proof() {
        assert!(!launch(0, MEASURED).is_surely_same_place(&launch(0, LATER)));
        let disks = [MEASURED, LATER].map(|time| Launch {
            is_on_known_disks: true,
            ..launch(0, time)
        });
        assert!(disks[0].is_surely_same_place(&disks[1]));
    }
}
