//! One step of a pattern.

use diskproof_model::op::OpKind;

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
