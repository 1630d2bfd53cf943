//! Counts the requests of a whole job before it runs, as fio would make them: laps until its bytes,
//! operations or loops are used up.

use super::walk::{ANYWHERE, FioAction, FioWalk};
use crate::load::pattern::step::Step;
use diskproof_model::op::OpKind;
use diskproof_model::shape::FioOrder;
use std::collections::BTreeMap;

/// The amount of work of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FioLimits {
    /// The bytes of a lap (`size`).
    pub size_bytes: u64,
    /// The bytes of a lap where they are not the size (`io_size`).
    pub io_bytes: Option<u64>,
    /// The least number of laps.
    pub loops: u64,
    /// The operations of a lap.
    pub ops: Option<u64>,
    /// True if each lap reads back what it wrote.
    pub reads_back: bool,
    /// The largest size of any kind of operation, also of those that the job does not make.
    pub largest_bytes: u64,
}

impl FioLimits {
    /// The bytes after which the job makes no further lap.
    fn wanted_bytes(&self) -> u64 {
        self.io_bytes.unwrap_or(self.size_bytes)
    }
}

/// The requests of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FioAmount {
    /// Operations and bytes by kind.
    pub by_kind: BTreeMap<OpKind, OpAmount>,
    /// The blocks that are read back, over all laps.
    pub read_back: OpAmount,
    /// Laps that move anything.
    pub laps: u64,
}

/// A number of operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpAmount {
    /// Operations.
    pub ops: u64,
    /// Bytes that they move.
    pub bytes: u64,
}

impl OpAmount {
    fn add(&mut self, bytes: u64) {
        self.ops += 1;
        self.bytes += bytes;
    }
}

impl FioAmount {
    /// The requests of a job that fio would end by itself, in a run with this seed; `None` where
    /// they are more than `ops_max`.
    pub fn count(order: &FioOrder, limits: FioLimits, ops_max: u64, seed: u64) -> Option<Self> {
        let mut counted = Self::default();
        let mut walk = FioWalk::new(order.clone(), ANYWHERE, seed as u32);
        while counted.has_next_lap(&limits, &walk) {
            if counted.laps > 0 {
                walk.begin_next_lap();
            }
            let before = counted.moved().bytes;
            let mut written = WrittenBlocks::new(order, &limits);
            while !counted.is_used_up(&limits) {
                if counted.steps() >= ops_max {
                    return None;
                }
                match walk.next() {
                    FioAction::EndLap => break,
                    FioAction::Sync(_) => counted.add(OpKind::Sync, 0),
                    FioAction::Request(step) => {
                        counted.add(step.kind, u64::from(step.len));
                        written.note(step);
                    }
                }
            }
            if counted.moved().bytes == before {
                break;
            }
            counted.laps += 1;
            let read_back = written.total();
            counted.read_back.ops += read_back.ops;
            counted.read_back.bytes += read_back.bytes;
        }
        Some(counted)
    }

    /// The steps of a workload that makes these requests: operations and syncs.
    pub fn steps(&self) -> u64 {
        self.by_kind.values().map(|kind| kind.ops).sum()
    }

    /// The requests that move data or drop blocks.
    pub fn moved(&self) -> OpAmount {
        let mut moved = OpAmount::default();
        for (kind, amount) in &self.by_kind {
            if *kind != OpKind::Sync {
                moved.ops += amount.ops;
                moved.bytes += amount.bytes;
            }
        }
        moved
    }

    fn add(&mut self, kind: OpKind, bytes: u64) {
        self.by_kind.entry(kind).or_default().add(bytes);
    }

    /// True if the job makes another lap (`keep_running` of fio's backend.c).
    fn has_next_lap(&self, limits: &FioLimits, walk: &FioWalk) -> bool {
        if self.laps < limits.loops {
            return true;
        }
        if self.has_all_ops(limits) {
            return false;
        }
        let done = self.moved().bytes + self.read_back.bytes;
        let left = limits.wanted_bytes().saturating_sub(done);
        // A job that reads back has opened its files anew for that.
        let may_go_on = limits.io_bytes.is_some() || limits.reads_back || !walk.are_files_done();
        // As in fio, a rest that may be too small for a request is not moved.
        left > 0 && left >= limits.largest_bytes && may_go_on
    }

    /// True if the job may start nothing more, also inside of a lap.
    fn is_used_up(&self, limits: &FioLimits) -> bool {
        let bytes_max = limits.wanted_bytes().saturating_mul(limits.loops);
        self.moved().bytes >= bytes_max || self.has_all_ops(limits)
    }

    fn has_all_ops(&self, limits: &FioLimits) -> bool {
        let Some(ops) = limits.ops else {
            return false;
        };
        self.moved().ops + self.read_back.ops >= ops.saturating_mul(limits.loops)
    }
}

/// The blocks that a lap has written, to be read back after it.
enum WrittenBlocks {
    /// They are not read back.
    Ignored,
    /// No two can overlap.
    Listed(OpAmount),
    /// By their start, with their length. As in fio, a block replaces those that it overlaps.
    ByPlace(BTreeMap<u64, u64>),
}

impl WrittenBlocks {
    fn new(order: &FioOrder, limits: &FioLimits) -> Self {
        if !limits.reads_back {
            Self::Ignored
        } else if order.visits_no_block_twice() {
            Self::Listed(OpAmount::default())
        } else {
            Self::ByPlace(BTreeMap::new())
        }
    }

    fn note(&mut self, step: Step) {
        if step.kind != OpKind::Write {
            return;
        }
        let len = u64::from(step.len);
        match self {
            Self::Ignored => {}
            Self::Listed(blocks) => blocks.add(len),
            Self::ByPlace(blocks) => {
                let overlapped: Vec<u64> = blocks
                    .range(..step.offset + len)
                    .rev()
                    .take_while(|(start, other)| *start + *other > step.offset)
                    .map(|(start, _)| *start)
                    .collect();
                for start in overlapped {
                    blocks.remove(&start);
                }
                blocks.insert(step.offset, len);
            }
        }
    }

    fn total(&self) -> OpAmount {
        match self {
            Self::Ignored => OpAmount::default(),
            Self::Listed(blocks) => *blocks,
            Self::ByPlace(blocks) => OpAmount {
                ops: blocks.len() as u64,
                bytes: blocks.values().sum(),
            },
        }
    }
}
