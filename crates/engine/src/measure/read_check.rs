//! Checks the blocks that a workload reads: each must carry the signature of an earlier write to
//! its place. The journal of that write is gone, so any generation of any run is right. Knows
//! neither the backend nor the pattern.

use crate::load::signed_block::{BlockSignature, SignatureFault};
use crate::load::write_journal::misdirected;
use diskproof_model::measurement::{BadBlock, VerifyResult};
use std::collections::{BTreeMap, BTreeSet};

/// At most this many bad blocks are named; all are counted.
const NAMED_MAX: usize = 100;
/// Up to so many bad blocks are recognised when they are read again; beyond, each read counts.
const DISTINCT_MAX: usize = 4096;
/// More runs than these are counted as so many.
const RUNS_MAX: usize = 100;

/// What a workload's reads found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadVerdict {
    /// Blocks checked.
    blocks: u64,
    /// Bad blocks by offset: what is wrong, and whether they carry no signature of ours.
    bad: BTreeMap<u64, (String, bool)>,
    /// Bad blocks beyond those, and how many of them carry no signature.
    more: (u64, u64),
    /// Seeds of the runs that wrote the good ones.
    seeds: BTreeSet<u64>,
}

impl ReadVerdict {
    /// Checks a block that was read from `offset`.
    pub(crate) fn check(&mut self, block: &[u8], offset: u64) {
        self.blocks += 1;
        let (why, is_unsigned) = match BlockSignature::of(block) {
            Ok(found) if found.offset == offset => {
                if self.seeds.len() < RUNS_MAX {
                    self.seeds.insert(found.seed);
                }
                return;
            }
            Ok(found) => (misdirected(found.offset), false),
            Err(SignatureFault::Zero) => (
                "only zeros: never written, or the write is lost".to_owned(),
                true,
            ),
            Err(SignatureFault::Foreign) => (
                "no signature: not written with --verify, overwritten or corrupted".to_owned(),
                true,
            ),
            Err(SignatureFault::Checksum) => (
                "wrong checksum: torn, corrupted, or written in blocks of another size".to_owned(),
                false,
            ),
        };
        self.add(offset, why, is_unsigned);
    }

    fn add(&mut self, offset: u64, why: String, is_unsigned: bool) {
        if self.bad.len() < DISTINCT_MAX || self.bad.contains_key(&offset) {
            self.bad.insert(offset, (why, is_unsigned));
        } else {
            self.more.0 += 1;
            self.more.1 += u64::from(is_unsigned);
        }
    }

    /// Adds what another worker found.
    pub(crate) fn merge(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.more.0 += other.more.0;
        self.more.1 += other.more.1;
        self.seeds.extend(other.seeds);
        for (offset, (why, is_unsigned)) in other.bad {
            self.add(offset, why, is_unsigned);
        }
    }

    /// The outcome as a record keeps it.
    pub(crate) fn result(self) -> VerifyResult {
        let unsigned = self.bad.values().filter(|(_, is_unsigned)| *is_unsigned);
        VerifyResult {
            blocks: self.blocks,
            blocks_written: None,
            bad_blocks: self.bad.len() as u64 + self.more.0,
            unsigned_blocks: Some(unsigned.count() as u64 + self.more.1),
            runs: Some(self.seeds.len() as u64),
            bad: self
                .bad
                .into_iter()
                .take(NAMED_MAX)
                .map(|(offset_bytes, (why, _))| BadBlock { offset_bytes, why })
                .collect(),
        }
    }
}

/// Checks the reads of one worker.
#[derive(Debug, Default)]
pub(crate) struct ReadCheck {
    /// Completed since the last look: the slot, the offset and the bytes.
    read: Vec<(u32, u64, u32)>,
    /// What was found so far.
    pub verdict: ReadVerdict,
}

impl ReadCheck {
    /// A read is complete; its buffer stays as it is until [`ReadCheck::look`].
    pub(crate) fn note(&mut self, slot: u32, offset: u64, len: u32) {
        self.read.push((slot, offset, len));
    }

    /// Checks what was read since the last look; whether there was anything.
    pub(crate) fn look<'a>(&mut self, bytes: impl Fn(usize, usize) -> &'a [u8]) -> bool {
        let any = !self.read.is_empty();
        for (slot, offset, len) in self.read.drain(..) {
            self.verdict
                .check(bytes(slot as usize, len as usize), offset);
        }
        any
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
        assert_eq!(
            (
                found.blocks,
                found.bad_blocks,
                found.unsigned_blocks,
                found.runs
            ),
            (10, 4, Some(2), Some(2))
        );
        let parts = ["zeros", "no signature", "checksum", "misdirected"];
        for (bad, part) in found.bad.iter().zip(parts) {
            assert!(bad.why.contains(part), "{bad:?}");
        }
        assert_eq!(found.unchecked(), 0);
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
        assert_eq!(
            (found.unsigned_blocks, found.bad.len(), found.runs),
            (Some(6000), NAMED_MAX, Some(0))
        );
    }
}
