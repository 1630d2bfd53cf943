//! The content that a workload writes, and with which it compares what it reads back.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The content of the blocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockContent {
    /// The content that is written; `None`: new random data each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WriteContent>,
    /// The content that each verified block must have, in place of a checksum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<BlockPattern>,
    /// Times that its verified blocks are read back at the end, where that is more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_times: Option<u32>,
    /// Reads that check its verified blocks at the end, where they are more than one of each block:
    /// each lap is read back that may have written other blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_reads: Option<u64>,
    /// Nothing is read back where time has ended the workload.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_checked_in_time: bool,
    /// Other verified workloads write to its blocks at the same time: any intact block of the place
    /// is right that the run has written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_verified: bool,
    /// The content of the blocks before it, where a scratch file is filled for it; `None`: random
    /// data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laid_out: Option<WriteContent>,
}

impl BlockContent {
    /// The settings in words: conditions of every figure.
    pub(super) fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if self.known.is_some() {
            facts.push("blocks of a known pattern".to_owned());
        }
        if let Some(times) = self.verified_times {
            facts.push(format!("read back {times} times"));
        }
        if let Some(reads) = self.verified_reads {
            facts.push(format!("read back by {reads} reads"));
        }
        if let Some(written) = &self.written {
            facts.push(written.fact());
        }
        facts
    }
}

/// Written data that is compressible, repeated or a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WriteContent {
    /// Share of each chunk that is filler, at its end, in percent; the rest is random.
    pub filler_percent: u8,
    /// The filler, repeatedly; empty for zeros.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filler: Vec<u8>,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Share of the blocks that repeat others, in percent.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub repeat_percent: u8,
    /// Number of different blocks among the repeated ones; 0 repeats the block before.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub repeated_blocks: u64,
    /// True if all workers repeat the same blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_repeated: bool,
    /// True if each buffer is filled once, and written repeatedly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_buffers: bool,
}

impl WriteContent {
    fn fact(&self) -> String {
        let filler = if self.filler.is_empty() {
            "zeros"
        } else {
            "a pattern"
        };
        let mut facts = Vec::new();
        match self.filler_percent {
            0 => {}
            100.. => facts.push(format!("data of {filler}")),
            percent => facts.push(format!("data with {percent} % {filler}")),
        }
        if self.repeat_percent > 0 {
            facts.push(format!("{} % repeated blocks", self.repeat_percent));
        }
        if self.keeps_buffers {
            facts.push("the same data repeatedly".to_owned());
        }
        facts.join(", ")
    }
}

/// Bytes that repeat through a block, from its start on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockPattern {
    /// The bytes, 1 to 512.
    #[serde(deserialize_with = "read_pattern")]
    pub bytes: Vec<u8>,
    /// Places in them of the offset of the block, in eight bytes of which the first is the lowest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offset_places: Vec<usize>,
    /// The files from whose starts the offsets count; `None` where that is the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<PatternFiles>,
}

/// The files of a target of several, which hold equal parts of it one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternFiles {
    /// Bytes of each file in the target.
    pub part_bytes: u64,
    /// The offset in its file of the first of them.
    pub part_start: u64,
}

/// The most bytes of a pattern, as in fio.
pub const PATTERN_BYTES_MAX: usize = 512;

/// Reads a pattern from outside, and refuses one of a length that no block has.
fn read_pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let bytes: Vec<u8> = Vec::deserialize(deserializer)?;
    if bytes.is_empty() || bytes.len() > PATTERN_BYTES_MAX {
        return Err(D::Error::custom(format!(
            "a pattern has 1 to {PATTERN_BYTES_MAX} bytes, not {}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

impl BlockPattern {
    /// The bytes for a block at this offset.
    fn bytes_at(&self, offset: u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let offset = match self.files {
            Some(files) if files.part_bytes > 0 => {
                (offset % files.part_bytes).saturating_add(files.part_start)
            }
            Some(_) | None => offset,
        };
        for place in &self.offset_places {
            if let Some(part) = bytes.get_mut(*place..place.saturating_add(8)) {
                part.copy_from_slice(&offset.to_le_bytes());
            }
        }
        bytes
    }

    /// Fills a block that belongs to this offset.
    pub fn fill(&self, block: &mut [u8], offset: u64) {
        let bytes = self.bytes_at(offset);
        for part in block.chunks_mut(bytes.len().max(1)) {
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }

    /// The first difference of a block that belongs to this offset, in words; `None` where it has
    /// the pattern.
    pub fn difference(&self, block: &[u8], offset: u64) -> Option<String> {
        let wanted = self.bytes_at(offset);
        let pairs = block.iter().zip(wanted.iter().cycle()).enumerate();
        for (place, (found, wanted)) in pairs {
            if found != wanted {
                return Some(format!(
                    "byte {place} is 0x{found:02x} instead of 0x{wanted:02x}"
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_that_is_read_has_bytes_and_no_place_beyond_them() {
        let read = |bytes: usize| {
            let text = format!(
                r#"{{"bytes": {:?}, "offset_places": [{}]}}"#,
                vec![7; bytes],
                usize::MAX
            );
            serde_json::from_str::<BlockPattern>(&text)
        };
        assert!(read(0).is_err() && read(PATTERN_BYTES_MAX + 1).is_err());
        let mut block = [0; 8];
        read(3).unwrap().fill(&mut block, 4096);
        assert_eq!(block, [7; 8]);
    }

    #[test]
    fn offsets_in_a_pattern_are_those_in_the_file() {
        let mut pattern = BlockPattern {
            bytes: vec![0; 8],
            offset_places: vec![0],
            files: None,
        };
        let mut block = [0; 8];
        pattern.fill(&mut block, 0x3000);
        assert_eq!(u64::from_le_bytes(block), 0x3000);
        pattern.files = Some(PatternFiles {
            part_bytes: 0x2000,
            part_start: 0x10_0000,
        });
        pattern.fill(&mut block, 0x3000);
        assert_eq!(u64::from_le_bytes(block), 0x10_1000);
        assert_eq!(pattern.difference(&block, 0x3000), None);
    }
}
