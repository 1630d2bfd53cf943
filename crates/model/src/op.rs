//! The kinds of operation: the only list of them, with what is true of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kinds of operation; every measurement has figures for each.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// Reads its block.
    Read,
    /// Writes its block.
    Write,
    /// A trim: the target may forget the content of a block (discard, hole punch).
    Trim,
    /// An fsync or fdatasync.
    Sync,
    /// A write and the sync that made it durable, from before the write to the return of the sync.
    /// Only where every write is synced.
    Commit,
    /// Reads and the commit after them, from before the first read to the return of the sync. Only
    /// of workloads of transactions.
    Transaction,
}

/// A value for each kind that occurred.
pub type PerOp<T> = BTreeMap<OpKind, T>;

/// The properties of a kind of operation.
struct OpFacts {
    /// The word for it in records and in text.
    name: &'static str,
    plural: &'static str,
    /// A participle for the program: `writing`.
    doing: &'static str,
    /// A participle for the block: `written`.
    done: &'static str,
    role: OpRole,
    blocks: BlockUse,
}

/// The effect of an operation on the content of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockUse {
    /// Takes it from the target.
    Reads,
    /// Gives the target another.
    Writes,
    /// Lets the target forget it; no data moves. Disks count that as discarded, not as written.
    Drops,
    /// No effect by itself.
    Keeps,
}

/// The place of a kind of operation in a result, for its reader.
#[derive(PartialEq, Eq)]
enum OpRole {
    /// A request for blocks. Its figure counts, unless commits contain it.
    Request,
    /// A request for blocks that no commit contains.
    OwnRequest,
    /// A part of a commit, without blocks of its own.
    Part,
    /// A write as an application sees it: durable when it ends.
    Commit,
    /// Reads and commits as an application sees them.
    Transaction,
}

impl OpKind {
    /// Every kind, in the order of its variants.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::Sync,
        Self::Commit,
        Self::Transaction,
    ];
    /// The kinds that are requests for blocks.
    pub const REQUESTS: [Self; 3] = [Self::Read, Self::Write, Self::Trim];
    /// The kinds that move data: what a limiter counts, and what uses up a credit or a cache.
    pub const TRANSFERS: [Self; 2] = [Self::Read, Self::Write];

    const fn facts(self) -> &'static OpFacts {
        match self {
            Self::Read => &OpFacts {
                name: "read",
                plural: "reads",
                doing: "reading",
                done: "read",
                role: OpRole::Request,
                blocks: BlockUse::Reads,
            },
            Self::Write => &OpFacts {
                name: "write",
                plural: "writes",
                doing: "writing",
                done: "written",
                role: OpRole::Request,
                blocks: BlockUse::Writes,
            },
            Self::Trim => &OpFacts {
                name: "trim",
                plural: "trims",
                doing: "trimming",
                done: "trimmed",
                role: OpRole::OwnRequest,
                blocks: BlockUse::Drops,
            },
            Self::Sync => &OpFacts {
                name: "sync",
                plural: "syncs",
                doing: "syncing",
                done: "synced",
                role: OpRole::Part,
                blocks: BlockUse::Keeps,
            },
            Self::Commit => &OpFacts {
                name: "commit",
                plural: "commits",
                doing: "writing",
                done: "written",
                role: OpRole::Commit,
                blocks: BlockUse::Keeps,
            },
            Self::Transaction => &OpFacts {
                name: "transaction",
                plural: "transactions",
                doing: "reading and writing",
                done: "read and written",
                role: OpRole::Transaction,
                blocks: BlockUse::Keeps,
            },
        }
    }

    /// The word used in records.
    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The plural in text.
    pub fn plural(self) -> &'static str {
        self.facts().plural
    }

    /// A participle for the program, such as `writing`.
    pub fn doing(self) -> &'static str {
        self.facts().doing
    }

    /// A participle for the block, such as `written`.
    pub fn done(self) -> &'static str {
        self.facts().done
    }

    /// True if it consists of operations that count by themselves, too: sums over all kinds leave
    /// it out.
    pub fn is_made_of_others(self) -> bool {
        match self.facts().role {
            OpRole::Commit | OpRole::Transaction => true,
            OpRole::Request | OpRole::OwnRequest | OpRole::Part => false,
        }
    }

    /// True if it is a request for blocks; a sync is none.
    pub fn is_request(self) -> bool {
        matches!(self.facts().role, OpRole::Request | OpRole::OwnRequest)
    }

    /// The effect on the content of its block.
    pub const fn blocks(self) -> BlockUse {
        self.facts().blocks
    }

    /// True if data moves between the target and the memory.
    pub const fn moves_data(self) -> bool {
        match self.blocks() {
            BlockUse::Reads | BlockUse::Writes => true,
            BlockUse::Drops | BlockUse::Keeps => false,
        }
    }

    /// True if the block has another content afterwards, or none: it destroys what was there.
    pub const fn changes_blocks(self) -> bool {
        match self.blocks() {
            BlockUse::Writes | BlockUse::Drops => true,
            BlockUse::Reads | BlockUse::Keeps => false,
        }
    }

    /// True if the target must store something afterwards: it takes room and wear.
    pub const fn fills_blocks(self) -> bool {
        match self.blocks() {
            BlockUse::Writes => true,
            BlockUse::Reads | BlockUse::Drops | BlockUse::Keeps => false,
        }
    }

    /// True if the block has no content of ours afterwards: there is nothing to verify in it, a
    /// read of it may not reach the disk, and doing it a second time is another task. A use that
    /// fills blocks with zeros would be one, too.
    pub const fn drops_blocks(self) -> bool {
        match self.blocks() {
            BlockUse::Drops => true,
            BlockUse::Reads | BlockUse::Writes | BlockUse::Keeps => false,
        }
    }

    /// The kinds of a measurement that a reader looks at: transactions where it has some, else
    /// commits where every write is synced, else reads and writes; and trims.
    pub fn headline<T>(ops: &PerOp<T>) -> impl Iterator<Item = (Self, &T)> {
        let has_commits = ops.contains_key(&Self::Commit);
        let has_transactions = ops.contains_key(&Self::Transaction);
        ops.iter()
            .map(|(kind, op)| (*kind, op))
            .filter(move |(kind, _)| match kind.facts().role {
                OpRole::Transaction | OpRole::OwnRequest => true,
                OpRole::Commit => !has_transactions,
                OpRole::Request => !has_commits && !has_transactions,
                OpRole::Part => false,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_follow_the_order_of_the_kinds() {
        for (place, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
        }
        let requests = OpKind::ALL.into_iter().filter(|kind| kind.is_request());
        assert!(requests.eq(OpKind::REQUESTS));
        let transfers = OpKind::ALL.into_iter().filter(|kind| kind.moves_data());
        assert!(transfers.eq(OpKind::TRANSFERS));
    }

    #[test]
    fn commits_stand_for_their_reads_and_writes_but_not_for_trims() {
        let all: PerOp<()> = OpKind::ALL.into_iter().map(|kind| (kind, ())).collect();
        let shown = |ops: &PerOp<()>| -> Vec<OpKind> {
            OpKind::headline(ops).map(|(kind, ())| kind).collect()
        };
        assert_eq!(shown(&all), [OpKind::Trim, OpKind::Transaction]);
        let mut commits = all;
        commits.remove(&OpKind::Transaction);
        assert_eq!(shown(&commits), [OpKind::Trim, OpKind::Commit]);
        let mut plain = commits;
        plain.remove(&OpKind::Commit);
        assert_eq!(shown(&plain), OpKind::REQUESTS);
    }
}
