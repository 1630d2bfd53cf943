//! Lists the calls that carry out the operations of a workload that change blocks without data,
//! such as trims. Makes none of these calls.

use crate::io::BlockCall;
use diskproof_model::op::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::stream::Streams;

/// The calls for operations without data of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockCalls {
    /// The call of each kind.
    calls: Vec<(OpKind, BlockCall)>,
    /// The operations that follow each of them in its block.
    streams: Streams,
}

impl BlockCalls {
    /// The calls of a workload, as `call_of` has them; `None` where it moves data only.
    pub(crate) fn for_workload(
        workload: &Workload,
        call_of: impl Fn(OpKind) -> Option<BlockCall>,
    ) -> Option<Self> {
        let mut calls = Vec::new();
        for kind in workload.streams.iter().flat_map(|stream| &stream.does) {
            if !kind.moves_data()
                && let Some(call) = call_of(*kind)
            {
                calls.push((*kind, call));
            }
        }
        if calls.is_empty() {
            return None;
        }
        Some(Self {
            calls,
            streams: workload.streams.clone(),
        })
    }

    /// The calls that the workload makes, with the kinds that need them, in the order of its
    /// streams.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (OpKind, BlockCall)> {
        self.calls.iter().copied()
    }

    /// The call that carries out operations of a kind; `None` where it moves data.
    pub(crate) fn call(&self, kind: OpKind) -> Option<BlockCall> {
        for (called_kind, call) in &self.calls {
            if *called_kind == kind {
                return Some(*call);
            }
        }
        None
    }

    /// The operation that follows one of this kind in its block; `None` where none does.
    pub(crate) fn following_kind(&self, kind: OpKind) -> Option<OpKind> {
        self.streams.following_kind(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of a workload that does this to each block, on a target that has every call.
    fn calls_of(kinds: &[OpKind]) -> Option<BlockCalls> {
        let workload = Workload {
            streams: Streams::doing(kinds),
            ..Workload::named("w")
        };
        BlockCalls::for_workload(&workload, |_| Some(BlockCall::Discard))
    }

    #[test]
    fn trim_has_a_call_and_the_write_that_follows_it() {
        let calls = calls_of(&[OpKind::Trim, OpKind::Write]).unwrap();
        assert_eq!(calls.call(OpKind::Trim), Some(BlockCall::Discard));
        assert_eq!(calls.call(OpKind::Write), None);
        assert_eq!(calls.following_kind(OpKind::Trim), Some(OpKind::Write));
        assert_eq!(calls.following_kind(OpKind::Write), None);
        let listed: Vec<(OpKind, BlockCall)> = calls.iter().collect();
        assert_eq!(listed, [(OpKind::Trim, BlockCall::Discard)]);
    }

    #[test]
    fn workload_without_a_call_has_none() {
        assert_eq!(calls_of(&[OpKind::Read]), None);
        let trims = Workload {
            streams: Streams::doing(&[OpKind::Trim]),
            ..Workload::named("w")
        };
        assert_eq!(BlockCalls::for_workload(&trims, |_| None), None);
    }
}
