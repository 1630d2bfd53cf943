//! The types of what a pattern makes: a step, or in the order of fio a sync between steps.

use diskproof_model::op::OpKind;
use diskproof_model::shape::FioSyncCall;

/// One operation to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The operation on the block; the first one, where that is a chain.
    pub kind: OpKind,
    /// Offset of the block in the target.
    pub offset: u64,
    /// Length of the block in bytes.
    pub len: u32,
}

/// The next action of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternAction {
    /// An operation on a block.
    Step(Step),
    /// A sync of what was written.
    Sync(FioSyncCall),
    /// Nothing any more: no place is left for a step.
    End,
}
