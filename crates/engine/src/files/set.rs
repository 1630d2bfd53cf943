//! Knows the files of a set: their names, sizes and which of them exist. Touches no filesystem.

use crate::random::{Random, splitmix64};
use diskproof_device::{FileName, NameState};
use diskproof_model::files::{FileOrder, FilesPlan};
use std::sync::atomic::{AtomicU8, Ordering};

/// The states of a file in [`FileSet::states`].
const ABSENT: u8 = 0;
/// See [`ABSENT`]: it exists under its first name.
const CREATED: u8 = 1;
/// See [`ABSENT`]: it exists under its second name.
const RENAMED: u8 = 2;
/// The distance between the seeds of two names: an odd number, whose multiples are all different.
/// This one is 2⁶⁴ divided by the golden ratio, the step of splitmix64.
const NUMBER_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The files of one order in one round.
pub(crate) struct FileSet {
    order: FileOrder,
    seed: u64,
    folders: u64,
    bytes_min: u64,
    bytes_max: u64,
    /// By the index of the file; workers change them at the same time, each for its own files.
    states: Vec<AtomicU8>,
}

impl FileSet {
    /// Files that do not exist yet.
    pub(crate) fn new(plan: &FilesPlan, order: FileOrder, seed: u64) -> Self {
        Self {
            order,
            seed,
            folders: u64::from(plan.directories.max(1)),
            bytes_min: plan.file_bytes_min,
            bytes_max: plan.file_bytes_max.max(plan.file_bytes_min),
            states: (0..plan.count).map(|_| AtomicU8::new(ABSENT)).collect(),
        }
    }

    /// The number of files, existing or not.
    pub(crate) fn count(&self) -> u64 {
        self.states.len() as u64
    }

    /// The present name of a file; its first one where it does not exist.
    pub(crate) fn name(&self, index: usize) -> FileName {
        let number = match self.order {
            FileOrder::Sequential => index as u64,
            // A bijection: no two files get the same name.
            FileOrder::Random => {
                let step = (index as u64).wrapping_mul(NUMBER_STEP);
                splitmix64(&mut self.seed.wrapping_add(step))
            }
        };
        FileName {
            folder: (index as u64 % self.folders) as usize,
            number,
            state: match self.states[index].load(Ordering::Relaxed) {
                RENAMED => NameState::Renamed,
                _ => NameState::First,
            },
        }
    }

    /// The size of a file in bytes.
    pub(crate) fn size_bytes(&self, index: usize) -> u64 {
        let choices = self.bytes_max - self.bytes_min + 1;
        self.bytes_min + Random::new(self.seed, index as u64).below(choices)
    }

    /// Notes that the file exists, under its first name.
    pub(crate) fn mark_created(&self, index: usize) {
        self.states[index].store(CREATED, Ordering::Relaxed);
    }

    /// Notes that the file has its second name.
    pub(crate) fn mark_renamed(&self, index: usize) {
        self.states[index].store(RENAMED, Ordering::Relaxed);
    }

    /// Notes that the file was deleted, or that another program has replaced it.
    pub(crate) fn mark_absent(&self, index: usize) {
        self.states[index].store(ABSENT, Ordering::Relaxed);
    }

    /// Files that exist, in the order of their creation.
    pub(crate) fn existing(&self) -> Vec<u32> {
        let mut existing = Vec::new();
        for (index, state) in self.states.iter().enumerate() {
            if state.load(Ordering::Relaxed) != ABSENT {
                existing.push(index as u32);
            }
        }
        existing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::files::{FileCaches, FileSync};
    use std::collections::BTreeSet;

    fn plan() -> FilesPlan {
        FilesPlan {
            count: 1000,
            file_bytes_min: 1024,
            file_bytes_max: 4096,
            directories: 3,
            threads: 1,
            sync: FileSync::None,
            caches: FileCaches::DropOwnPages,
            orders: vec![FileOrder::Sequential, FileOrder::Random],
            rounds: 1,
            time_ns: 1_000_000_000,
        }
    }

    #[test]
    fn files_of_a_set_have_names_of_their_own_and_sizes_within_the_range() {
        for order in plan().orders {
            let set = FileSet::new(&plan(), order, 7);
            let names: Vec<_> = (0..1000).map(|index| set.name(index)).collect();
            let numbers: BTreeSet<u64> = names.iter().map(|name| name.number).collect();
            assert_eq!(numbers.len(), 1000);
            let ascends = names.windows(2).all(|pair| pair[0].number < pair[1].number);
            assert_eq!(ascends, order == FileOrder::Sequential);
            let folders: BTreeSet<usize> = names.iter().map(|name| name.folder).collect();
            assert_eq!(folders, BTreeSet::from([0, 1, 2]));
            let sizes: Vec<u64> = (0..1000).map(|index| set.size_bytes(index)).collect();
            assert!(sizes.iter().all(|size| (1024..=4096).contains(size)));
            let mean = sizes.iter().sum::<u64>() / 1000;
            assert!((2400..2720).contains(&mean), "{mean}");
        }
    }

    #[test]
    fn set_knows_which_files_exist_under_which_name() {
        let set = FileSet::new(&plan(), FileOrder::Sequential, 7);
        assert!(set.existing().is_empty());
        for index in [4, 2, 9] {
            set.mark_created(index);
        }
        set.mark_renamed(2);
        set.mark_absent(9);
        assert_eq!(set.existing(), [2, 4]);
        assert_eq!(set.name(2).state, NameState::Renamed);
        assert_eq!(set.name(4).state, NameState::First);
    }
}
