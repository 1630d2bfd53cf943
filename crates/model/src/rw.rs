//! Reads and writes fio's words for the operations of a workload and the order of its blocks, such
//! as `randrw`. Flags, files and commands use them.

use crate::op::OpKind;
use crate::plan::{Access, BlockShare};
use crate::stream::Streams;
use std::str::FromStr;

/// fio's directions, in the order of its lists: the sizes of `bs=4k,8k,1M` are those of reads,
/// writes and trims.
pub const FIO_DIRECTIONS: [OpKind; 3] = [OpKind::Read, OpKind::Write, OpKind::Trim];

/// Order and what is done, under fio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rw {
    /// The order of the blocks.
    pub order: Order,
    /// The chain of operations of each stream on its blocks.
    pub chains: &'static [&'static [OpKind]],
}

/// Order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Block after block.
    Sequential,
    /// Random offsets.
    Random,
}

/// The words for what is done, one for each order.
struct Words {
    chains: &'static [&'static [OpKind]],
    sequential: &'static str,
    random: &'static str,
}

/// The words of fio's option `rw`, by what they do.
const WORDS: [Words; 5] = [
    Words {
        chains: &[&[OpKind::Read]],
        sequential: "read",
        random: "randread",
    },
    Words {
        chains: &[&[OpKind::Write]],
        sequential: "write",
        random: "randwrite",
    },
    Words {
        chains: &[&[OpKind::Read], &[OpKind::Write]],
        sequential: "rw",
        random: "randrw",
    },
    Words {
        chains: &[&[OpKind::Trim]],
        sequential: "trim",
        random: "randtrim",
    },
    Words {
        chains: &[&[OpKind::Trim, OpKind::Write]],
        sequential: "trimwrite",
        random: "randtrimwrite",
    },
];

impl Rw {
    /// Random reads.
    pub const RANDREAD: Self = Self {
        order: Order::Random,
        chains: &[&[OpKind::Read]],
    };

    /// Random writes.
    pub const RANDWRITE: Self = Self {
        order: Order::Random,
        chains: &[&[OpKind::Write]],
    };

    /// Sequential reads.
    pub const READ: Self = Self {
        order: Order::Sequential,
        ..Self::RANDREAD
    };

    /// The word for a workload with this access and these streams; `None` where fio has no word for
    /// it.
    pub fn for_workload(access: &Access, streams: &Streams) -> Option<Self> {
        let order = match access {
            Access::Random { .. } | Access::Zoned { .. } => Order::Random,
            Access::Sequential | Access::Backward | Access::Stride { .. } => Order::Sequential,
        };
        for words in &WORDS {
            let chains = streams.iter().map(|stream| stream.does.as_slice());
            if chains.eq(words.chains.iter().copied()) {
                return Some(Self {
                    order,
                    chains: words.chains,
                });
            }
        }
        None
    }

    /// The word of fio's option `rw`.
    pub fn as_str(self) -> &'static str {
        let words = WORDS
            .iter()
            .find(|words| words.chains == self.chains)
            .expect("chains are those of a word");
        match self.order {
            Order::Sequential => words.sequential,
            Order::Random => words.random,
        }
    }

    /// The streams of a workload that does this: see [`Streams::from_chains`].
    pub fn streams(self, permille: u16, other_sizes: &[BlockShare]) -> Streams {
        Streams::from_chains(self.chains, permille, other_sizes)
    }

    /// The first operation of its first stream.
    pub fn first(self) -> OpKind {
        self.kinds().next().unwrap_or(OpKind::Read)
    }

    /// True if it mixes kinds of operations.
    pub fn is_mix(self) -> bool {
        self.chains.len() > 1
    }

    /// True if any operation is of this kind.
    pub fn makes(self, kind: OpKind) -> bool {
        self.kinds().any(|made| made == kind)
    }

    /// True if every operation is of this kind.
    pub fn is_only(self, kind: OpKind) -> bool {
        self.chains == [[kind].as_slice()]
    }

    /// True if any operation changes the content of blocks.
    pub fn changes_blocks(self) -> bool {
        self.kinds().any(OpKind::changes_blocks)
    }

    /// True if any operation drops its block.
    pub fn drops_blocks(self) -> bool {
        self.kinds().any(OpKind::drops_blocks)
    }

    /// True if no block has content after its step.
    pub fn leaves_no_content(self) -> bool {
        self.chains
            .iter()
            .all(|chain| chain.last().is_some_and(|kind| kind.drops_blocks()))
    }

    /// Each kind of operation that it makes, once.
    pub fn kinds(self) -> impl Iterator<Item = OpKind> {
        self.chains.iter().copied().flatten().copied()
    }
}

/// A word that is none of fio's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not one of {words} (readwrite is rw)", words = rw_words().join(", "))]
pub struct RwError(String);

/// Every word, as `--rw` and fio accept it.
pub fn rw_words() -> Vec<&'static str> {
    WORDS
        .iter()
        .flat_map(|words| [words.sequential, words.random])
        .collect()
}

impl FromStr for Rw {
    type Err = RwError;

    fn from_str(text: &str) -> Result<Self, RwError> {
        let word = text.replace("readwrite", "rw");
        for words in &WORDS {
            let order = if word == words.sequential {
                Order::Sequential
            } else if word == words.random {
                Order::Random
            } else {
                continue;
            };
            return Ok(Self {
                order,
                chains: words.chains,
            });
        }
        Err(RwError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rw_takes_the_names_of_fio() {
        for words in &WORDS {
            let chains = words.chains;
            for (order, word) in [
                (Order::Sequential, words.sequential),
                (Order::Random, words.random),
            ] {
                let rw = Rw { order, chains };
                assert_eq!((word.parse(), rw.as_str()), (Ok(rw), word));
                assert_eq!(rw.makes(OpKind::Trim), word.contains("trim"), "{word}");
            }
        }
        for words in &WORDS {
            // A record with it can be read again.
            let streams = Streams::from_chains(words.chains, 500, &[]);
            let saved = serde_json::to_string(&streams).unwrap();
            assert_eq!(serde_json::from_str::<Streams>(&saved).ok(), Some(streams));
        }
        // Reproduction prints the words for fio, and job files may contain them.
        let mut kinds = WORDS
            .iter()
            .flat_map(|words| words.chains)
            .copied()
            .flatten();
        assert!(kinds.all(|kind| FIO_DIRECTIONS.contains(kind)));
        let both = ["readwrite", "randreadwrite"].map(|word| word.parse().map(Rw::as_str));
        assert_eq!(both, [Ok("rw"), Ok("randrw")]);
        for word in ["", "trimread", "rand", "READ"] {
            assert!(word.parse::<Rw>().is_err(), "{word}");
        }
    }
}
