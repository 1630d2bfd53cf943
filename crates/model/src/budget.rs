//! Computes what a plan may do at most: to each target, to anything outside of the targets, and in
//! which time. The gate grants it, the announcement and the page of a plan state it, and the run
//! keeps to it.

use crate::op::OpKind;
use crate::plan::Plan;
use crate::surface::SURVEY_BYTES_MIN;
use crate::target::{TargetIdentity, TargetKind};
use crate::task::{ByteLimit, ContentUse, Decide, Sides};
use crate::workload::{Layout, Workload};

/// The rate by which the time to fill a scratch file is limited: slow memory cards (class 10)
/// promise it. A slower disk needs a smaller scratch file.
const FILL_BYTES_PER_S: f64 = 10e6;
/// The rate by which the time for the log of transactions is limited: without it nothing is
/// measured, so that a slower disk gets more time than for a whole file. Chosen, not measured.
const LOG_BYTES_PER_S: f64 = 2e6;
/// The time that is added to that of any fill, so that one slow second does not end the fill of a
/// small file.
const FILL_START_NS: u64 = 10_000_000_000;
/// The time for each of many small files when they are written back, checked or removed: that of an
/// access on a rotating disk.
const FILE_ACCESS_NS: u64 = 10_000_000;

/// The most that a plan may do on given targets. The user is asked with it before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The use of each target, in the order of the targets.
    pub targets: Vec<TargetUse>,
    /// The largest single request, without which a workload could not begin, in bytes.
    pub request_bytes: u64,
    /// Operations that drop blocks, with a limit each.
    pub drops: Vec<DroppedBlocks>,
    /// Changes besides the targets, which need the user's word.
    pub beyond: Vec<BeyondTargets>,
    /// The expected time of the whole run, in nanoseconds: the time that is announced, shown and
    /// kept. `None` when something has no time limit. The layout of a scratch file counts as far as
    /// the plan limits it.
    pub expected_ns: Option<u64>,
    /// The latest end of the run, whatever the disk does, in nanoseconds. It is later than the
    /// expected time of a survey that has only a usual speed to go by. `None` where the survey
    /// reads a given amount.
    pub deadline_ns: Option<u64>,
    /// The longest that filling the scratch file may take beyond the expected time, in nanoseconds;
    /// `None` where that is part of it, or nothing needs it. Other tools fill theirs however long
    /// it takes. Of a file that is filled for a time, what the log of transactions needs beyond
    /// that. Of many small files the longest that they may be written back, checked or removed
    /// between two steps.
    pub fill_ns: Option<u64>,
}

/// The most that is done to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetUse {
    /// Nothing is written.
    Read,
    /// A scratch file in it is written and read.
    Scratch {
        /// The most that the file may grow to, in bytes.
        size_bytes: u64,
        /// The most that is written to it, first writes among them.
        written: ByteLimit,
    },
    /// Many files are made in it.
    Files {
        /// The most space that they take at a time, in bytes, about.
        size_bytes: u64,
        /// The most files at a time.
        count: u64,
        /// The bytes that are written to them, approximately.
        written_bytes: u64,
    },
    /// The content of the target is lost.
    Overwrite {
        /// The most that is written to it; `None` where its blocks are only dropped.
        written: Option<ByteLimit>,
    },
}

/// Blocks that a kind of operation drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedBlocks {
    /// The kind of operation that drops them.
    pub kind: OpKind,
    /// The most that it may drop on each target.
    pub limit: ByteLimit,
}

/// A change that a plan makes besides its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeyondTargets {
    /// A temporary server runs in the first target.
    Server {
        /// Room that it needs besides the scratch file.
        room_bytes: u64,
    },
    /// The disk's write cache is switched.
    WriteCache,
    /// Commands change a setting.
    Commands,
}

impl Budget {
    /// The room that a temporary server takes in the first target, in bytes; 0 without one.
    pub fn server_room_bytes(&self) -> u64 {
        for beyond in &self.beyond {
            if let BeyondTargets::Server { room_bytes } = beyond {
                return *room_bytes;
            }
        }
        0
    }
}

impl Plan {
    /// The most that the plan may do on these targets, in their order.
    pub fn budget(&self, identities: &[TargetIdentity]) -> Budget {
        let mut targets = Vec::new();
        for (index, identity) in identities.iter().enumerate() {
            targets.push(self.target_use(index, identity));
        }
        let expected_ns = self.expected_ns(identities);
        Budget {
            targets,
            request_bytes: self.request_bytes(),
            drops: self.dropped_blocks(),
            beyond: self.beyond_targets(),
            expected_ns,
            deadline_ns: self.deadline_ns(expected_ns),
            fill_ns: self.fill_ns(),
        }
    }

    /// The use of the target with this number in the plan.
    fn target_use(&self, index: usize, identity: &TargetIdentity) -> TargetUse {
        if let Some(files) = self.files() {
            return TargetUse::Files {
                size_bytes: files.set_bytes(),
                count: files.count,
                written_bytes: files.write_bytes(),
            };
        }
        let is_directory = identity.kind == TargetKind::Directory;
        match self.scratch_bytes_on(index) {
            Some(size_bytes) if is_directory => TargetUse::Scratch {
                size_bytes,
                written: self.written_to_scratch(),
            },
            _ => match self.content_use(index) {
                ContentUse::Writes => TargetUse::Overwrite {
                    written: Some(self.write_limit()),
                },
                ContentUse::Drops => TargetUse::Overwrite { written: None },
                ContentUse::Keeps => TargetUse::Read,
            },
        }
    }

    /// True if a task may change the content of the target with this number.
    pub fn writes_to(&self, index: usize) -> bool {
        self.content_use(index) != ContentUse::Keeps
    }

    /// The most that a task does to the content of the target with this number.
    fn content_use(&self, index: usize) -> ContentUse {
        self.tasks
            .iter()
            .map(|task| task.inner().content_use(Some(index)))
            .max()
            .unwrap_or(ContentUse::Keeps)
    }

    /// The most that the plan may write to each target, apart from filling scratch files.
    pub fn write_limit(&self) -> ByteLimit {
        let mut sum: u64 = 0;
        for task in &self.tasks {
            match task.inner().write_limit() {
                ByteLimit::AtMost(bytes) => sum = sum.saturating_add(bytes),
                ByteLimit::Unlimited => return ByteLimit::Unlimited,
            }
        }
        ByteLimit::AtMost(sum)
    }

    /// The most that the plan writes to a scratch file. That is what its workloads may write, and
    /// what fills the file: the part that no workload fills is filled before the first read, again
    /// after a workload has trimmed it, and once more for a workload that is to find its blocks in
    /// the page cache.
    fn written_to_scratch(&self) -> ByteLimit {
        let ByteLimit::AtMost(workload_bytes) = self.write_limit() else {
            return ByteLimit::Unlimited;
        };
        let workloads = self.workloads();
        let scratch_bytes = self.scratch_bytes().unwrap_or(0);
        let provided_bytes: u64 = workloads
            .iter()
            .filter(|one| one.layout == Layout::Provides)
            .filter_map(Workload::write_bytes_max)
            .fold(0, u64::saturating_add);
        let last = workloads.len().saturating_sub(1);
        let emptying_workloads = workloads[..last]
            .iter()
            .filter(|one| one.leaves_no_content())
            .count() as u64;
        let first_fill_bytes = scratch_bytes.saturating_sub(provided_bytes);
        let refill_bytes = scratch_bytes.saturating_mul(emptying_workloads);
        // The first workload that needs content finds the first fill in the page cache.
        let cache_fill_bytes: u64 = workloads
            .iter()
            .filter(|one| one.layout == Layout::Needed)
            .skip(1)
            .map(|one| one.held_bytes(one.span.length_bytes.unwrap_or(scratch_bytes)))
            .fold(0, u64::saturating_add);
        let fill_bytes = first_fill_bytes
            .saturating_add(refill_bytes)
            .saturating_add(cache_fill_bytes);
        ByteLimit::AtMost(workload_bytes.saturating_add(fill_bytes))
    }

    /// The kinds of operations of workloads that drop blocks, with their limits.
    fn dropped_blocks(&self) -> Vec<DroppedBlocks> {
        let mut drops = Vec::new();
        for kind in OpKind::ALL {
            if !kind.drops_blocks() || !self.workloads().iter().any(|one| one.makes(kind)) {
                continue;
            }
            let limit = self.limit_of_drops(kind);
            drops.push(DroppedBlocks { kind, limit });
        }
        drops
    }

    /// The most that the workloads with operations of this kind may write or drop.
    fn limit_of_drops(&self, kind: OpKind) -> ByteLimit {
        let mut sum: u64 = 0;
        for workload in self.workloads() {
            if !workload.makes(kind) {
                continue;
            }
            match workload.write_bytes_max() {
                Some(bytes) => sum = sum.saturating_add(bytes),
                None => return ByteLimit::Unlimited,
            }
        }
        ByteLimit::AtMost(sum)
    }

    /// The changes besides the targets: a server, a write cache, commands of the user.
    fn beyond_targets(&self) -> Vec<BeyondTargets> {
        let mut beyond = Vec::new();
        if let Some(inserts) = self.inserts() {
            beyond.push(BeyondTargets::Server {
                room_bytes: inserts.server.room_bytes(),
            });
        }
        if self.workloads().iter().any(|one| one.write_cache.is_some()) {
            beyond.push(BeyondTargets::WriteCache);
        }
        if let Some(workloads) = self.workload_task()
            && let Decide::Compare(live) = &workloads.decide
            && matches!(live.sides, Sides::Settings { .. })
        {
            beyond.push(BeyondTargets::Commands);
        }
        beyond
    }

    /// The largest single request. That of other tools may end where their file does, so it needs
    /// no room.
    fn request_bytes(&self) -> u64 {
        if self.is_of_other_tool() {
            return 1;
        }
        let mut largest = if self.survey().is_some() {
            SURVEY_BYTES_MIN
        } else {
            1
        };
        for workload in self.workloads() {
            for bytes in workload.block_sizes() {
                largest = largest.max(u64::from(bytes));
            }
        }
        largest
    }

    /// See [`Budget::expected_ns`]. Surveys and acceptance tests run on the first target.
    fn expected_ns(&self, identities: &[TargetIdentity]) -> Option<u64> {
        let first_write_ns = self.first_write_ns().unwrap_or(0);
        let mut sum_ns = self.time_ns_max()?.saturating_add(first_write_ns);
        for task in &self.tasks {
            let guessed_ns = task
                .inner()
                .guessed_ns(identities.first(), self.scratch_bytes());
            sum_ns = sum_ns.saturating_add(guessed_ns);
        }
        Some(sum_ns.min(self.time_limit_ns.unwrap_or(u64::MAX)))
    }

    /// See [`Budget::deadline_ns`].
    fn deadline_ns(&self, expected_ns: Option<u64>) -> Option<u64> {
        let expected_ns = expected_ns?;
        // An acceptance test ends with the last block of the disk, however slow that is.
        if self.accept().is_some() {
            return None;
        }
        let Some(survey) = self.survey() else {
            return Some(expected_ns);
        };
        let own_ns = self.time_ns_max()?;
        match (self.time_limit_ns, survey.time_ns_max()) {
            (Some(limit_ns), None) => Some(limit_ns),
            (None, None) => None,
            (Some(_), Some(_)) => Some(expected_ns),
            (None, Some(survey_ns)) => Some(expected_ns.max(own_ns.saturating_add(survey_ns))),
        }
    }

    /// See [`Budget::fill_ns`].
    fn fill_ns(&self) -> Option<u64> {
        if let Some(files) = self.files() {
            if self.is_of_other_tool() {
                return Some(u64::MAX);
            }
            let accesses_ns = files.count.saturating_mul(FILE_ACCESS_NS);
            return Some(fill_time_ns(files.set_bytes()).saturating_add(accesses_ns));
        }
        let bytes = self.scratch_bytes()?;
        let needs_content = self.tasks.iter().any(|task| task.inner().needs_content());
        if !needs_content {
            return None;
        }
        if let Some(first_write_ns) = self.first_write_ns() {
            return self.log_fill_ns(first_write_ns);
        }
        if self.is_of_other_tool() {
            return Some(u64::MAX);
        }
        Some(fill_time_ns(bytes))
    }

    /// The time that the log of transactions needs beyond this one, in which a scratch file is
    /// filled; `None` where that is enough, or there is no log.
    fn log_fill_ns(&self, within_ns: u64) -> Option<u64> {
        let mut log_bytes = 0;
        for workload in self.workloads() {
            log_bytes = log_bytes.max(workload.log_bytes());
        }
        if log_bytes == 0 {
            return None;
        }
        let written_ns = (log_bytes as f64 / LOG_BYTES_PER_S * 1e9) as u64;
        let needed_ns = written_ns.saturating_add(FILL_START_NS);
        match needed_ns.saturating_sub(within_ns) {
            0 => None,
            beyond_ns => Some(beyond_ns),
        }
    }
}

/// The longest that writing so many bytes may take, in nanoseconds.
fn fill_time_ns(bytes: u64) -> u64 {
    let written_ns = (bytes as f64 / FILL_BYTES_PER_S * 1e9) as u64;
    written_ns.saturating_add(FILL_START_NS)
}

#[cfg(test)]
mod tests;
