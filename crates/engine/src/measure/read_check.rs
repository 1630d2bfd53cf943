//! Checks the blocks that a workload reads: each must carry the signature of an earlier write to
//! its place, or hold a given pattern. The journal of that write is gone, so any generation of any
//! run is right.

use crate::load::write_journal::{BlockSignature, SignatureFault, misdirected};
use diskproof_model::measurement::{BadBlock, CheckedPlaces, VerifyResult};
use diskproof_model::shape::{BlockPattern, EarlyEnds};
use std::collections::{BTreeMap, BTreeSet};

/// At most this many bad blocks are named; all are counted. Chosen: a longer list helps no reader.
const NAMED_MAX: usize = 100;
/// Up to so many bad blocks are recognised when they are read again; beyond, each read counts.
/// Chosen, to bound the memory of a worker on a broken disk.
const DISTINCT_MAX: usize = 4096;
/// More runs than these are counted as so many. Chosen, for the same reason.
const RUNS_MAX: usize = 100;

/// A fault of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mismatch {
    /// It carries no signature of ours.
    Unsigned,
    /// It was written in blocks of this size.
    OtherSize(u32),
    /// It is damaged.
    Wrong(BadBlock),
}

/// Blocks beyond [`DISTINCT_MAX`], counted at each read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FurtherBlocks {
    /// Bad blocks of every kind.
    bad: u64,
    /// Bad blocks without a signature.
    unsigned: u64,
    /// Bad blocks of another size.
    of_other_size: u64,
}

/// The result of checking what a workload read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadVerdict {
    /// Blocks checked.
    blocks: u64,
    /// Blocks that are not right, by offset.
    bad: BTreeMap<u64, Mismatch>,
    /// Bad blocks beyond those.
    further: FurtherBlocks,
    /// Seeds of the runs that wrote the good ones; `None` where a pattern is compared, which says
    /// nothing of who wrote it.
    seeds: Option<BTreeSet<u64>>,
    /// Places of intact and damaged blocks.
    places: CheckedPlaces,
}

impl ReadVerdict {
    /// Compares a block that was read from `offset` with a pattern.
    fn compare(&mut self, block: &[u8], offset: u64, pattern: &BlockPattern) {
        self.blocks += 1;
        let Some(why) = pattern.difference(block, offset) else {
            self.places.add_intact(offset, block.len() as u64);
            return;
        };
        let bad = BadBlock {
            offset_bytes: offset,
            why,
            written_to_bytes: None,
        };
        self.places.add_damaged(&bad, block.len() as u64);
        self.add(offset, Mismatch::Wrong(bad));
    }

    /// Checks a block that was read from `offset`.
    pub(crate) fn check(&mut self, block: &[u8], offset: u64) {
        self.blocks += 1;
        self.seeds.get_or_insert_default();
        let mismatch = match BlockSignature::read(block) {
            Ok(found) if found.offset == offset => {
                let seeds = self.seeds.get_or_insert_default();
                if seeds.len() < RUNS_MAX {
                    seeds.insert(found.seed);
                }
                self.places.add_intact(offset, block.len() as u64);
                return;
            }
            Ok(found) => Mismatch::Wrong(BadBlock {
                offset_bytes: offset,
                why: misdirected(found.offset),
                written_to_bytes: Some(found.offset),
            }),
            Err(SignatureFault::Zero | SignatureFault::Foreign) => Mismatch::Unsigned,
            Err(SignatureFault::OtherSize(bytes)) => Mismatch::OtherSize(bytes),
            Err(SignatureFault::Checksum) => Mismatch::Wrong(BadBlock {
                offset_bytes: offset,
                why: "wrong checksum: torn or corrupted".to_owned(),
                written_to_bytes: None,
            }),
        };
        if let Mismatch::Wrong(bad) = &mismatch {
            self.places.add_damaged(bad, block.len() as u64);
        }
        self.add(offset, mismatch);
    }

    /// Adds a bad block, which was read from `offset`.
    fn add(&mut self, offset: u64, mismatch: Mismatch) {
        if self.bad.len() < DISTINCT_MAX || self.bad.contains_key(&offset) {
            self.bad.insert(offset, mismatch);
        } else {
            self.further.bad += 1;
            match mismatch {
                Mismatch::Unsigned => self.further.unsigned += 1,
                Mismatch::OtherSize(_) => self.further.of_other_size += 1,
                Mismatch::Wrong(_) => {}
            }
        }
    }

    /// True if a block was not right.
    fn has_bad(&self) -> bool {
        !self.bad.is_empty()
    }

    /// Adds the verdict of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.places.merge(&other.places);
        self.further.bad += other.further.bad;
        self.further.unsigned += other.further.unsigned;
        self.further.of_other_size += other.further.of_other_size;
        if let Some(seeds) = other.seeds {
            self.seeds.get_or_insert_default().extend(seeds);
        }
        for (offset, mismatch) in other.bad {
            self.add(offset, mismatch);
        }
    }

    /// The outcome as a record keeps it.
    pub(crate) fn result(self) -> VerifyResult {
        let bad_blocks = self.bad.len() as u64 + self.further.bad;
        let mut unsigned = self.further.unsigned;
        let mut of_other_size = self.further.of_other_size;
        let mut other_size_bytes = None;
        let mut named = Vec::new();
        for mismatch in self.bad.into_values() {
            match mismatch {
                Mismatch::Unsigned => unsigned += 1,
                Mismatch::OtherSize(bytes) => {
                    of_other_size += 1;
                    other_size_bytes.get_or_insert(bytes);
                }
                Mismatch::Wrong(bad) if named.len() < NAMED_MAX => named.push(bad),
                Mismatch::Wrong(_) => {}
            }
        }
        let runs = self.seeds.as_ref().map(|seeds| seeds.len() as u64);
        VerifyResult {
            blocks: self.blocks,
            bad_blocks,
            unsigned_blocks: runs.map(|_| unsigned),
            other_size_blocks: runs.map(|_| of_other_size),
            other_size_bytes,
            runs,
            bad: named,
            places: self.places,
            ..VerifyResult::default()
        }
    }
}

/// A read that has completed.
#[derive(Debug)]
struct CompletedRead {
    slot: u32,
    offset: u64,
    len: u32,
}

/// Checks the reads of one worker.
#[derive(Debug, Default)]
pub(crate) struct ReadCheck {
    /// Completed since the last [`ReadCheck::look`].
    read: Vec<CompletedRead>,
    /// The verdict on all reads so far.
    pub verdict: ReadVerdict,
    /// The content of the blocks, where they hold no signatures.
    pattern: Option<BlockPattern>,
    /// True if the first bad block ends the worker.
    ends_at_bad_block: bool,
}

impl ReadCheck {
    /// For blocks that hold this pattern; with signatures without one.
    pub(crate) fn new(pattern: Option<BlockPattern>) -> Self {
        Self {
            pattern,
            ..Self::default()
        }
    }

    /// Lets the first bad block end the worker, where the workload says so.
    pub(crate) fn ending_as(self, ends: &EarlyEnds) -> Self {
        Self {
            ends_at_bad_block: ends.at_bad_block,
            ..self
        }
    }

    /// True if the worker is to start nothing more, because of a bad block.
    pub(crate) fn is_at_end(&self) -> bool {
        self.ends_at_bad_block && self.verdict.has_bad()
    }

    /// Notes that a read is complete. The caller must keep its buffer as it is until
    /// [`ReadCheck::look`].
    pub(crate) fn note(&mut self, slot: u32, offset: u64, len: u32) {
        self.read.push(CompletedRead { slot, offset, len });
    }

    /// Checks what was read since the last look, with `bytes` giving the content of a slot. Returns
    /// false where there was nothing to check.
    pub(crate) fn look<'a>(&mut self, bytes: impl Fn(usize, usize) -> &'a [u8]) -> bool {
        let has_reads = !self.read.is_empty();
        for read in self.read.drain(..) {
            let block = bytes(read.slot as usize, read.len as usize);
            match &self.pattern {
                Some(pattern) => self.verdict.compare(block, read.offset, pattern),
                None => self.verdict.check(block, read.offset),
            }
        }
        has_reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(seed: u64, offset: u64) -> Vec<u8> {
        let mut block: Vec<u8> = (0..4096u32).map(|at| (at * 7) as u8).collect();
        let signature = BlockSignature {
            seed,
            offset,
            generation: 3,
        };
        signature.sign(&mut block);
        block
    }

    #[test]
    fn every_kind_of_damage_is_named_once() {
        let mut verdict = ReadVerdict::default();
        verdict.check(&signed(1, 0), 0);
        verdict.check(&signed(2, 4096), 4096);
        for _ in 0..2 {
            verdict.check(&vec![0; 4096], 8192);
            verdict.check(&vec![9; 4096], 12288);
            let mut torn = signed(1, 16384);
            torn[4000] ^= 1;
            verdict.check(&torn, 16384);
            verdict.check(&signed(1, 0), 20480);
        }
        let found = verdict.result();
        assert_eq!(found.blocks, 10);
        assert_eq!(found.bad_blocks, 4);
        assert_eq!(found.unsigned_blocks, Some(2));
        assert_eq!(found.runs, Some(2));
        assert_eq!((found.wrong_blocks(), found.good_blocks()), (2, 6));
        assert_eq!(found.bad.len(), 2);
        for (bad, part) in found.bad.iter().zip(["checksum", "misdirected"]) {
            assert!(bad.why.contains(part), "{bad:?}");
        }
        assert_eq!(found.unchecked(), 0);
    }

    #[test]
    fn first_bad_block_ends_a_worker_that_is_to_end_there() {
        let (good, bad) = (signed(1, 0), vec![0; 4096]);
        for ends_there in [false, true] {
            let ends = EarlyEnds {
                at_bad_block: ends_there,
                ..EarlyEnds::default()
            };
            let mut check = ReadCheck::new(None).ending_as(&ends);
            check.note(0, 0, 4096);
            check.look(|_, _| &good);
            assert!(!check.is_at_end());
            check.note(0, 4096, 4096);
            check.look(|_, _| &bad);
            assert_eq!(check.is_at_end(), ends_there);
        }
    }

    #[test]
    fn blocks_of_another_size_are_no_damage() {
        let (mut larger, mut smaller) = (ReadVerdict::default(), ReadVerdict::default());
        // Written in blocks of 4 KiB, read in blocks of 8 and of 1.
        let written = [signed(1, 0), signed(1, 4096)].concat();
        larger.check(&written, 0);
        for (index, part) in written.chunks_exact(1024).enumerate() {
            smaller.check(part, index as u64 * 1024);
        }
        let [larger, smaller] = [larger, smaller].map(ReadVerdict::result);
        for (found, unsigned, other) in [(&larger, 0, 1), (&smaller, 6, 2)] {
            let classes = (found.unsigned_blocks, found.other_size_blocks);
            assert_eq!(classes, (Some(unsigned), Some(other)));
            assert_eq!(found.wrong_blocks(), 0);
            assert_eq!(found.other_size_bytes, Some(4096));
        }
        // A damaged block of another size is damaged.
        let mut torn = written;
        torn[4000] ^= 1;
        let mut verdict = ReadVerdict::default();
        verdict.check(&torn, 0);
        assert_eq!(verdict.result().wrong_blocks(), 1);
    }

    #[test]
    fn verdicts_of_workers_add_up() {
        let mut all = ReadVerdict::default();
        for worker in 0..3u64 {
            let mut verdict = ReadVerdict::default();
            for block in 0..2000 {
                verdict.check(&[0; 64], (worker * 2000 + block) * 64);
            }
            all.merge(verdict);
        }
        let found = all.result();
        assert_eq!((found.blocks, found.bad_blocks), (6000, 6000));
        assert_eq!(found.unsigned_blocks, Some(6000));
        assert_eq!(found.bad.len(), 0);
        assert_eq!(found.runs, Some(0));
    }
}
