//! Makes the random numbers of a job of fio: a generator for each use, with the seed that fio gives
//! it.

use super::law::FileLaw;
use super::tausworthe::Tausworthe;
use diskproof_model::op::OpKind;
use diskproof_model::shape::{FioDraws, FioOrder, FioSeed};
use std::ops::Range;

/// The seed of offsets, as in fio (`FIO_RANDSEED`).
const PLACES_SEED: u32 = 0xb189_9bed;
/// The seed of the other uses without `randseed`, as in fio.
const SEED_DEFAULT: u32 = 0x89;
/// The multiplier that makes the seed of a use from that of the use before, as in fio
/// (`setup_random_seeds` of its init.c).
const SPREAD: u32 = 0x9e37_0001;
/// The seeds before that of the first use, as in fio.
const SEEDS_BEFORE: u32 = 4;

/// The uses of random numbers, by their number in fio (`FIO_RAND_BS_OFF` and those after it).
#[derive(Debug, Clone, Copy)]
enum DrawUse {
    ReadSizes = 0,
    WriteSizes = 1,
    TrimSizes = 2,
    Mix = 4,
    Files = 5,
    Places = 6,
    FileSizes = 7,
    /// Decides whether a place is random, where only a percentage of them is.
    Randomness = 10,
}

/// The generators of a job.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    /// Sizes, by kind of operation in the order of the job.
    pub(super) sizes: Vec<Tausworthe>,
    /// The kind of the next operation of a mix.
    pub(super) mix: Tausworthe,
    /// The file of the next operation.
    pub(super) files: Tausworthe,
    /// Where the numbers of files begin that are chosen by a law.
    pub(super) first_number: u64,
    /// Places in a file.
    pub(super) places: Tausworthe,
    /// Decides whether a place is random, by kind of operation.
    pub(super) randomness: Vec<Tausworthe>,
}

impl Draws {
    /// The generators of a lap; `run_seed` is that of a job that no run repeats.
    pub(super) fn new(order: &FioOrder, law: Option<&FileLaw>, run_seed: u32) -> Self {
        let draws = order.draws;
        let seeds = Seeds { draws, run_seed };
        let mut sizes = Vec::new();
        for kind in &order.kinds {
            let size_use = match kind.does {
                OpKind::Write if !draws.verifies => DrawUse::WriteSizes,
                OpKind::Trim => DrawUse::TrimSizes,
                _ => DrawUse::ReadSizes,
            };
            sizes.push(seeds.generator(size_use));
        }
        let mut files = seeds.generator(DrawUse::Files);
        let first_number = match law {
            Some(law) => law.first_number(&mut files),
            None => 0,
        };
        Self {
            sizes,
            mix: seeds.generator(DrawUse::Mix),
            files,
            first_number,
            places: seeds.places(),
            randomness: vec![seeds.generator(DrawUse::Randomness); order.kinds.len()],
        }
    }
}

/// The size of the first file of a job whose files have random sizes in this range, in multiples of
/// `unit_bytes`. The job is one that a run repeats.
pub fn drawn_file_bytes(draws: FioDraws, range: Range<u64>, unit_bytes: u64) -> u64 {
    let seeds = Seeds { draws, run_seed: 0 };
    let mut sizes = seeds.generator(DrawUse::FileSizes);
    let bytes = range.start + sizes.below(range.end.saturating_sub(range.start));
    bytes - bytes % unit_bytes.max(1)
}

/// The seeds of a job.
struct Seeds {
    draws: FioDraws,
    run_seed: u32,
}

impl Seeds {
    /// The generator of a use.
    fn generator(&self, draw_use: DrawUse) -> Tausworthe {
        let number = draw_use as u32;
        let mut seed = match self.draws.seed {
            _ if self.draws.repeats_all => return self.numbered(PLACES_SEED, number),
            FioSeed::Repeated => SEED_DEFAULT,
            FioSeed::Given(seed) => seed,
            FioSeed::OfRun => self.run_seed,
        };
        for _ in 0..SEEDS_BEFORE + number {
            seed = seed.wrapping_mul(SPREAD);
        }
        self.numbered(seed, number)
    }

    /// The generator of places, for which fio has a seed of its own that the user does not set. The
    /// copies of a job with `randseed` have it only in the first one (`fixup_options` of init.c).
    fn places(&self) -> Tausworthe {
        match self.draws.seed {
            _ if self.draws.seeds_places => self.generator(DrawUse::Places),
            FioSeed::Repeated | FioSeed::Given(_) => self.numbered(PLACES_SEED, 0),
            FioSeed::OfRun => self.numbered(self.run_seed, 0),
        }
    }

    /// The generator with this seed of the use with this number, in the job with its own number.
    fn numbered(&self, seed: u32, number: u32) -> Tausworthe {
        Tausworthe::new(seed.wrapping_mul(self.draws.job).wrapping_add(number))
    }
}
