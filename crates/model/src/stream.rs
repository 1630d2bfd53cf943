//! What a workload does to its blocks: one stream for each kind of step, such as reads, or trims
//! that a write follows.

use crate::op::OpKind;
use crate::units::format_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload has no more streams than this.
pub const STREAMS_MAX: usize = 4;

/// The chains that a step can be. A trim takes the place of the write that follows it in the same
/// slot.
const CHAINS: [&[OpKind]; 4] = [
    &[OpKind::Read],
    &[OpKind::Write],
    &[OpKind::Trim],
    &[OpKind::Trim, OpKind::Write],
];

/// One block size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockShare {
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Weight among the mix.
    pub weight: u32,
}

impl BlockShare {
    /// This size with this weight.
    pub const fn new(block_bytes: u32, weight: u32) -> Self {
        Self {
            block_bytes,
            weight,
        }
    }
}

/// Steps of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// The operations on each block, one after another. Limits of bytes and operations count the
    /// step once.
    pub does: Vec<OpKind>,
    /// Share of the steps, in permille.
    pub permille: u16,
    /// Block sizes by weight, where they differ from those of the first stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<BlockShare>,
}

impl Stream {
    /// True if a block has no content after its step.
    fn leaves_no_content(&self) -> bool {
        match self.does.last() {
            Some(last) => last.drops_blocks(),
            None => false,
        }
    }
}

/// The streams of a workload; their shares add up to 1000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "StreamsForm", into = "StreamsForm")]
pub struct Streams(Vec<Stream>);

/// The form in which streams are saved: readers look for the share of reads.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct StreamsForm {
    /// Share of the steps that are reads, in permille: 1000 reads only, 0 no reads.
    read_permille: u16,
    /// The steps, where they are more than plain reads and writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    streams: Vec<Stream>,
}

/// Streams that no workload has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "streams must be 1 to {STREAMS_MAX}, each of reads, writes, trims, or trims before writes; \
     their shares must add up to 1000"
)]
pub struct StreamsError;

impl TryFrom<StreamsForm> for Streams {
    type Error = StreamsError;

    fn try_from(form: StreamsForm) -> Result<Self, StreamsError> {
        let streams = form.streams;
        if streams.is_empty() {
            return Ok(Self::with_reads(form.read_permille));
        }
        let mut shares = 0;
        for stream in &streams {
            if stream.permille == 0 || !CHAINS.contains(&stream.does.as_slice()) {
                return Err(StreamsError);
            }
            shares += u32::from(stream.permille);
        }
        if streams.len() > STREAMS_MAX || shares != 1000 {
            return Err(StreamsError);
        }
        Ok(Self(streams))
    }
}

impl From<Streams> for StreamsForm {
    fn from(streams: Streams) -> Self {
        let read_permille = streams.permille(OpKind::Read);
        let is_plain = streams == Streams::with_reads(read_permille);
        Self {
            read_permille,
            streams: if is_plain { Vec::new() } else { streams.0 },
        }
    }
}

impl Streams {
    /// One stream, which does this to each block.
    pub fn doing(chain: &[OpKind]) -> Self {
        Self::from_chains(&[chain], 1000, &[])
    }

    /// Reads with this share of the steps in permille; the others write.
    pub fn with_reads(permille: u16) -> Self {
        Self::from_chains(&[&[OpKind::Read], &[OpKind::Write]], permille, &[])
    }

    /// One stream or two of these chains. Where there are two, the first has `permille` of the
    /// steps, and the second `other_sizes`, unless both have the sizes of the workload. A chain
    /// without steps makes no stream.
    pub fn from_chains(chains: &[&[OpKind]], permille: u16, other_sizes: &[BlockShare]) -> Self {
        let first_permille = match chains.len() {
            0 | 1 => 1000,
            _ => permille.min(1000),
        };
        let mut streams = Vec::new();
        if let Some(first) = chains.first()
            && first_permille > 0
        {
            streams.push(Stream {
                does: first.to_vec(),
                permille: first_permille,
                sizes: Vec::new(),
            });
        }
        if let Some(second) = chains.get(1)
            && first_permille < 1000
        {
            streams.push(Stream {
                does: second.to_vec(),
                permille: 1000 - first_permille,
                sizes: other_sizes.to_vec(),
            });
        }
        Self(streams)
    }

    /// The streams, in the order of the plan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Stream> {
        self.0.iter()
    }

    /// True if steps of several kinds are mixed.
    pub fn is_mix(&self) -> bool {
        self.0.len() > 1
    }

    /// Share of the steps that contain such an operation, in permille.
    pub fn permille(&self, kind: OpKind) -> u16 {
        self.0
            .iter()
            .filter(|stream| stream.does.contains(&kind))
            .map(|stream| stream.permille)
            .sum()
    }

    /// True if any step contains such an operation.
    pub fn makes(&self, kind: OpKind) -> bool {
        self.permille(kind) > 0
    }

    /// True if every step is one such operation.
    pub fn is_only(&self, kind: OpKind) -> bool {
        self.0.iter().all(|stream| stream.does == [kind])
    }

    /// The first operation of each step, and its share in permille.
    pub fn firsts(&self) -> impl Iterator<Item = (OpKind, u16)> {
        self.0
            .iter()
            .filter_map(|stream| Some((*stream.does.first()?, stream.permille)))
    }

    /// True if any operation changes the content of a block.
    pub fn changes_blocks(&self) -> bool {
        let mut kinds = self.0.iter().flat_map(|stream| &stream.does);
        kinds.any(|kind| kind.changes_blocks())
    }

    /// True if any operation gives its block something to store.
    pub fn fills_blocks(&self) -> bool {
        let mut kinds = self.0.iter().flat_map(|stream| &stream.does);
        kinds.any(|kind| kind.fills_blocks())
    }

    /// True if any operation drops its block.
    pub fn drops_blocks(&self) -> bool {
        let mut kinds = self.0.iter().flat_map(|stream| &stream.does);
        kinds.any(|kind| kind.drops_blocks())
    }

    /// True if every block has no content after its step.
    pub fn leaves_no_content(&self) -> bool {
        self.0.iter().all(Stream::leaves_no_content)
    }

    /// The operation that follows one of this kind in the same block; `None` at the end of its
    /// step.
    pub fn following_kind(&self, kind: OpKind) -> Option<OpKind> {
        for stream in &self.0 {
            for pair in stream.does.windows(2) {
                if pair[0] == kind {
                    return Some(pair[1]);
                }
            }
        }
        None
    }

    /// The block sizes of streams that have their own.
    pub fn other_sizes(&self) -> &[BlockShare] {
        match self.0.iter().find(|stream| !stream.sizes.is_empty()) {
            Some(stream) => &stream.sizes,
            None => &[],
        }
    }

    /// Everything beyond plain operations, in words: conditions of every figure.
    pub fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        for stream in &self.0 {
            let sizes: Vec<String> = stream
                .sizes
                .iter()
                .map(|share| format_bytes(share.block_bytes.into()))
                .collect();
            if let Some(kind) = stream.does.first()
                && !sizes.is_empty()
            {
                facts.push(format!("{} of {}", kind.plural(), sizes.join(", ")));
            }
            if let [first, second] = stream.does.as_slice() {
                let (first_done, second_done) = (first.done(), second.done());
                facts.push(format!(
                    "each block {first_done} before it is {second_done}"
                ));
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OpKind::{Read, Sync, Trim, Write};

    #[test]
    fn what_is_saved_says_the_share_of_reads_and_comes_back() {
        let other = [BlockShare {
            block_bytes: 4096,
            weight: 1,
        }];
        let cases = [
            (Streams::with_reads(1000), 1000, false),
            (Streams::with_reads(0), 0, false),
            (Streams::with_reads(700), 700, false),
            (
                Streams::from_chains(&[&[Read], &[Write]], 700, &other),
                700,
                true,
            ),
            (Streams::doing(&[Trim, Write]), 0, true),
            (
                Streams::from_chains(&[&[Read], &[Trim]], 900, &[]),
                900,
                true,
            ),
        ];
        for (streams, reads, is_listed) in cases {
            let saved = serde_json::to_value(&streams).unwrap();
            assert_eq!(saved["read_permille"], reads, "{saved}");
            assert_eq!(saved.get("streams").is_some(), is_listed, "{saved}");
            let read: Streams = serde_json::from_value(saved).unwrap();
            assert_eq!(read, streams);
        }
    }

    #[test]
    fn streams_that_no_workload_has_are_refused() {
        let refused = |does: &[&[OpKind]], permille: &[u16]| {
            let streams = does.iter().zip(permille).map(|(does, permille)| Stream {
                does: does.to_vec(),
                permille: *permille,
                sizes: Vec::new(),
            });
            let form = StreamsForm {
                read_permille: 0,
                streams: streams.collect(),
            };
            Streams::try_from(form).is_err()
        };
        assert!(!refused(&[&[Read], &[Trim, Write]], &[1, 999]));
        for chain in [&[][..], &[Sync], &[Write, Trim], &[Read, Write]] {
            assert!(refused(&[chain], &[1000]), "{chain:?}");
        }
        assert!(refused(&[&[Read]], &[999]));
        assert!(refused(&[&[Read], &[Write]], &[1000, 0]));
        assert!(refused(&[[Read].as_slice(); 5], &[200; 5]));
    }

    #[test]
    fn a_share_of_nothing_is_no_stream() {
        let streams = Streams::from_chains(&[&[Read], &[Write]], 0, &[]);
        assert_eq!(streams, Streams::doing(&[Write]));
        assert!(!streams.is_mix() && streams.changes_blocks() && !streams.makes(Read));
        let pairs = Streams::doing(&[Trim, Write]);
        assert_eq!(
            (pairs.following_kind(Trim), pairs.following_kind(Write)),
            (Some(Write), None)
        );
        assert_eq!((pairs.permille(Write), pairs.is_only(Trim)), (1000, false));
        assert!(pairs.drops_blocks() && !pairs.leaves_no_content());
        assert!(Streams::doing(&[Trim]).leaves_no_content() && !streams.drops_blocks());
    }
}
