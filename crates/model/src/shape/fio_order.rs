//! The requests of a job as fio orders them: file after file, place after place, size after size,
//! with its random numbers. What the options of a job mean for that stands here; how one request
//! follows from those before it, in `engine`.

use super::random_run::RandomRun;
use crate::op::OpKind;
use crate::sync::{RangeSync, SyncCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order of requests, as fio 3.33 makes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioOrder {
    /// The random numbers.
    pub draws: FioDraws,
    /// The kinds of operation: one, or the reads and the writes of a mix.
    pub kinds: Vec<FioKind>,
    /// Of a mix, the percentage of reads.
    pub read_percent: u8,
    /// Smallest size of any kind of operation, also of those that the job does not make.
    pub unit_bytes: u64,
    /// The places inside a file.
    pub places: FioPlaces,
    /// The files.
    pub files: FioFiles,
    /// Syncs between the writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub syncs: Vec<FioSync>,
    /// A lap ends once requests of so many bytes have started; `None` where it ends with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lap_bytes: Option<u64>,
    /// True if only time ends the job: then it starts a file again where another job is through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_time_based: bool,
}

impl FioOrder {
    /// True if no two requests of a lap overlap: a map cuts large ones where they would, and a
    /// shift register does not.
    pub fn visits_no_block_twice(&self) -> bool {
        let has_map = self.places.is_random && self.places.is_mapped;
        has_map && self.draws.generator != FioGenerator::Lfsr
    }

    /// True if all of its syncs only start to write out pages (`sync_file_range`), so that their
    /// time is none of a flush.
    pub fn syncs_ranges_only(&self) -> bool {
        !self.syncs.is_empty()
            && self
                .syncs
                .iter()
                .all(|sync| matches!(sync.call, FioSyncCall::FileRange(_)))
    }
}

/// The seeds of the random numbers. A job that fio repeats makes the same requests again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FioDraws {
    /// The number of the copy among those of all jobs, from 1.
    pub job: u32,
    /// Where the numbers begin.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub seed: FioSeed,
    /// The seeds of all draws are those of `allrandrepeat`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats_all: bool,
    /// Writes draw their sizes as reads do, because reads check them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifies: bool,
    /// The places begin where the other numbers do (`randseed` of the copies behind the first one),
    /// instead of at a seed that the user does not set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seeds_places: bool,
    /// What makes the numbers.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub generator: FioGenerator,
}

/// The generator of the random numbers of a job (`random_generator`). Directions of a mix and all
/// places by a law have the one of 32 bits whatever the job sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FioGenerator {
    /// L'Ecuyer's combined Tausworthe generator of 32 bits, fio's default.
    #[default]
    Tausworthe,
    /// The one of 64 bits.
    Tausworthe64,
    /// A shift register that visits each block of a file once; other numbers are those of the
    /// generator of 32 bits.
    Lfsr,
}

/// Where the random numbers of a job begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FioSeed {
    /// At the same numbers in each run and in each lap (`randrepeat`, fio's default).
    #[default]
    Repeated,
    /// At the user's number (`randseed`). The laps go on with the numbers of the lap before.
    Given(u32),
    /// At the seed of the run (`randrepeat=0`).
    OfRun,
}

/// A kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioKind {
    /// What it does.
    pub does: OpKind,
    /// Its sizes.
    pub sizes: FioSizes,
    /// Its random offsets are multiples of this.
    pub align_bytes: u64,
    /// The percentage of its offsets that are random, in a random job.
    pub random_percent: u8,
    /// The zones among which its random places are drawn (`random_distribution=zoned`), from the
    /// start on; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<FioPlaceZone>,
    /// The bytes of it per second, where each kind of a mix has a rate; else 0. The kind that is
    /// due first is next.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub bytes_per_second: u64,
}

/// A zone of a file that has a share of the random places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FioPlaceZone {
    /// The percentage of the places.
    pub access_percent: u8,
    /// Its part of the file.
    pub size: FioZoneSize,
}

/// The part of a file that a zone is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FioZoneSize {
    /// So many percent (`zoned`).
    Percent(u8),
    /// So many bytes (`zoned_abs`).
    Bytes(u64),
}

/// The sizes of a kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioSizes {
    /// The smallest size.
    pub least_bytes: u32,
    /// The largest size.
    pub most_bytes: u32,
    /// The sizes with their percentages, the rarest first; empty where all between the smallest
    /// and the largest are as likely. The last one has what the sum lacks to 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub split: Vec<FioSizeShare>,
    /// True if sizes need not be multiples of the smallest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unaligned: bool,
}

/// A size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FioSizeShare {
    /// Bytes of the operation.
    pub bytes: u32,
    /// The percentage of the operations.
    pub percent: u32,
}

/// The places of requests inside a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioPlaces {
    /// True of a random job.
    pub is_random: bool,
    /// True if a map keeps random requests from visiting a block twice in a lap, or may stay away
    /// because the generator does.
    pub is_mapped: bool,
    /// The law by which places are drawn; `None` where all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<FioPlaceLaw>,
    /// A place is drawn for every so many requests (`randread:8`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RandomRun>,
    /// Bytes between two sequential requests; negative backward.
    pub gap_bytes: i64,
    /// Parts of the file that are visited one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<FioZones>,
}

/// Parts of a file that are visited one after another (`zonemode=strided`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FioZones {
    /// After so many bytes the next part is due.
    pub moved_bytes: u64,
    /// Bytes of a part.
    pub range_bytes: u64,
    /// Bytes between two parts.
    pub skip_bytes: u64,
}

/// The files of a job. All have the same size, and lie one behind another in the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioFiles {
    /// The number of files.
    pub count: u32,
    /// The first byte of each file that is in the target.
    pub part_start: u64,
    /// Bytes of each file in the target.
    pub part_bytes: u64,
    /// Where the first lap begins in a file.
    pub first_start: u64,
    /// Where later laps begin: another place where that is a percentage of a file that the first
    /// lap finds empty.
    pub start: u64,
    /// The bytes of a lap in a file, from the start on.
    pub lap_bytes: u64,
    /// The bytes of a file.
    pub file_bytes: u64,
    /// The choice of the next file.
    pub service: FileService,
    /// The requests to a file before the next one is chosen.
    pub turn_ops: u32,
    /// The most files that are open at a time.
    pub open_max: u32,
}

/// The choice of the file of the next request (`file_service_type`). Where some files are chosen
/// more often than others, none of them is ever done: it begins again. The centre is the place of
/// the most frequent file among all, from 0 to 1; a random one where the job sets none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileService {
    /// The files in turn, which is fio's default.
    RoundRobin,
    /// Any of the files.
    Random,
    /// Each file up to its end, then the next one.
    Sequential,
    /// A law of Zipf.
    Zipf {
        /// Its exponent, which is not 1.
        theta: f64,
        /// The place of the most frequent file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        centre: Option<f64>,
    },
    /// A law of Pareto.
    Pareto {
        /// Its power, above 0 and below 1.
        power: f64,
        /// The place of the most frequent file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        centre: Option<f64>,
    },
    /// A normal distribution.
    Normal {
        /// Its deviation in percent, below 100.
        deviation: f64,
        /// The place of the most frequent file; the middle where the job sets none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        centre: Option<f64>,
    },
}

impl FileService {
    /// The law by which some files are chosen more often than others; `None` where all are alike.
    pub fn law(self) -> Option<FioLaw> {
        let (kind, centre) = match self {
            Self::RoundRobin | Self::Random | Self::Sequential => return None,
            Self::Zipf { theta, centre } => (FioLawKind::Zipf { theta }, centre),
            Self::Pareto { power, centre } => (FioLawKind::Pareto { power }, centre),
            Self::Normal { deviation, centre } => (FioLawKind::Normal { deviation }, centre),
        };
        Some(FioLaw { kind, centre })
    }

    /// True if some files are chosen more often than others.
    pub fn is_weighted(self) -> bool {
        self.law().is_some()
    }

    /// True if files can be drawn by it.
    pub fn can_be_drawn(self) -> bool {
        match self.law() {
            Some(law) => law.can_be_drawn(),
            None => true,
        }
    }
}

/// A law by which some numbers are drawn more often than others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioLaw {
    /// Its form.
    pub kind: FioLawKind,
    /// The place of the most frequent number among all, from 0 to 1; fio's default where the job
    /// sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre: Option<f64>,
}

/// The form of a law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FioLawKind {
    /// A law of Zipf.
    Zipf {
        /// Its exponent, which is not 1.
        theta: f64,
    },
    /// A law of Pareto.
    Pareto {
        /// Its power, above 0 and below 1.
        power: f64,
    },
    /// A normal distribution.
    Normal {
        /// Its deviation in percent, below 100.
        deviation: f64,
    },
}

impl FioLaw {
    /// True if numbers can be drawn by it.
    pub fn can_be_drawn(self) -> bool {
        let has_law = match self.kind {
            FioLawKind::Zipf { theta } => (0.0..=100.0).contains(&theta) && theta != 1.0,
            FioLawKind::Pareto { power } => power > 0.0 && power < 1.0,
            FioLawKind::Normal { deviation } => (0.0..100.0).contains(&deviation),
        };
        has_law && (0.0..=1.0).contains(&self.centre.unwrap_or(0.0))
    }
}

/// The law of the places in the file of a job, of which some are drawn more often than others
/// (`random_distribution`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FioPlaceLaw {
    /// The law.
    pub law: FioLaw,
    /// The number of places.
    pub places: u64,
    /// The seed of its random numbers, which follows from the name of the file.
    pub seed: u32,
}

/// A sync after every so many writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FioSync {
    /// The system call.
    pub call: FioSyncCall,
    /// It is due where this divides the number of writes.
    pub writes: u32,
}

/// The system call between writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FioSyncCall {
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// sync_file_range(2), from the first byte to the last one that were written since the sync
    /// before.
    FileRange(RangeSync),
}

impl From<SyncCall> for FioSyncCall {
    fn from(call: SyncCall) -> Self {
        match call {
            SyncCall::Fsync => Self::Fsync,
            SyncCall::Fdatasync => Self::Fdatasync,
        }
    }
}
