//! Makes the random numbers of a job of fio: a generator for each use, with the seed that fio gives
//! it.

use super::law::FileLaw;
use super::tausworthe::Tausworthe;
use diskproof_model::op::OpKind;
use diskproof_model::shape::{FileService, FioDraws, FioGenerator, FioOrder, FioSeed};
use std::ops::Range;

/// The seed of offsets, as in fio (`FIO_RANDSEED`).
const PLACES_SEED: u64 = 0xb189_9bed;
/// The seed of the other uses without `randseed`, as in fio.
const SEED_DEFAULT: u64 = 0x89;
/// The multiplier that makes the seed of a use from that of the use before, as in fio
/// (`setup_random_seeds` of its init.c).
const SPREAD: u64 = 0x9e37_0001;
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
    /// The zone of a place (`random_distribution=zoned`).
    Zones = 16,
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
    /// The zone of the next random place.
    pub(super) zones: Tausworthe,
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
        let mut files = if order.files.service == FileService::Random {
            seeds.generator(DrawUse::Files)
        } else {
            seeds.narrow_generator(DrawUse::Files)
        };
        let first_number = match law {
            Some(law) => law.first_number(&mut files),
            None => 0,
        };
        Self {
            sizes,
            mix: seeds.narrow_generator(DrawUse::Mix),
            files,
            first_number,
            places: seeds.wanted_generator(seeds.of_places()),
            zones: seeds.narrow_generator(DrawUse::Zones),
            randomness: vec![seeds.narrow_generator(DrawUse::Randomness); order.kinds.len()],
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

/// The seed of the places of a job, from which a shift register begins, and a law of places in a
/// job that no run repeats.
pub fn seed_of_places(draws: FioDraws, run_seed: u32) -> u64 {
    Seeds { draws, run_seed }.of_places()
}

/// The seeds of a job, of 64 bits as in fio. The generator of 32 bits takes the low ones.
struct Seeds {
    draws: FioDraws,
    run_seed: u32,
}

impl Seeds {
    /// The generator of a use that the job sets.
    fn generator(&self, draw_use: DrawUse) -> Tausworthe {
        self.wanted_generator(self.of_use(draw_use))
    }

    /// The generator of a use that has 32 bits whatever the job sets (`td_fill_rand_seeds_internal`
    /// of init.c).
    fn narrow_generator(&self, draw_use: DrawUse) -> Tausworthe {
        Tausworthe::new(self.of_use(draw_use) as u32)
    }

    /// The generator that the job sets, with this seed.
    fn wanted_generator(&self, seed: u64) -> Tausworthe {
        match self.draws.generator {
            FioGenerator::Tausworthe64 => Tausworthe::wide(seed),
            FioGenerator::Tausworthe | FioGenerator::Lfsr => Tausworthe::new(seed as u32),
        }
    }

    /// The seed of a use.
    fn of_use(&self, draw_use: DrawUse) -> u64 {
        let number = draw_use as u32;
        let mut seed = match self.draws.seed {
            _ if self.draws.repeats_all => return self.numbered(PLACES_SEED, number),
            FioSeed::Repeated => SEED_DEFAULT,
            FioSeed::Given(seed) => u64::from(seed),
            FioSeed::OfRun => u64::from(self.run_seed),
        };
        for _ in 0..SEEDS_BEFORE + number {
            seed = seed.wrapping_mul(SPREAD);
        }
        self.numbered(seed, number)
    }

    /// The seed of places, for which fio has one of its own that the user does not set. The copies
    /// of a job with `randseed` have it only in the first one (`fixup_options` of init.c).
    fn of_places(&self) -> u64 {
        match self.draws.seed {
            _ if self.draws.seeds_places => self.of_use(DrawUse::Places),
            FioSeed::Repeated | FioSeed::Given(_) => self.numbered(PLACES_SEED, 0),
            FioSeed::OfRun => self.numbered(u64::from(self.run_seed), 0),
        }
    }

    /// The seed of the use with this number, in the job with its own number.
    fn numbered(&self, seed: u64, number: u32) -> u64 {
        let of_job = seed.wrapping_mul(u64::from(self.draws.job));
        of_job.wrapping_add(u64::from(number))
    }
}
