//! The data of an acceptance test: its plan, what came back from the disk, and the figures that
//! follow.

use super::layout::{Pass, Piece, chunk_bytes};
use super::states::{PieceState, PieceStates};
use crate::divisor::greatest_common_divisor;
use crate::health::DiskHealth;
use crate::measurement::{ByteCount, CacheUse, DeviceUse, Hang};
use crate::workload::{CachePolicy, EngineKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A smaller device has too few chunks for a verdict.
pub const ACCEPT_BYTES_MIN: u64 = 8 << 20;

/// The task of an acceptance test. Everything random in it follows from the salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptPlan {
    /// The share of the device that is written and read.
    pub procedure: Procedure,
    /// Bytes that the device claims to have, as far as whole blocks of 4096 bytes reach.
    pub size_bytes: u64,
    /// Key of everything that is random: contents, places and orders.
    pub salt: u64,
}

/// The share of a device that an acceptance test writes and reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Procedure {
    /// Every block is written, then every block is read.
    Whole,
    /// A sample that finds every wrap and every end, and takes minutes.
    Probe {
        /// Bytes of filler that push the sample out of caches; absent: as many as fit into some
        /// minutes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filler_bytes: Option<u64>,
    },
}

/// Bytes per second assumed of a rotating disk, or one of unknown kind, that was not measured yet.
const GUESS_ROTATING: u64 = 120_000_000;
/// Bytes per second assumed of a disk without moving parts that was not measured yet.
const GUESS_FLASH: u64 = 400_000_000;
/// The usual time of a probe, in nanoseconds.
const PROBE_NS: u64 = 420_000_000_000;

impl AcceptPlan {
    /// Estimates the time that it takes on a device that was not measured yet, in nanoseconds. A
    /// disk of unknown kind counts as a rotating one.
    pub fn time_ns_guess(&self, rotational: Option<bool>) -> u64 {
        let rate = match rotational {
            Some(false) => GUESS_FLASH,
            Some(true) | None => GUESS_ROTATING,
        };
        let time_ns = |bytes: f64| (bytes / rate as f64 * 1e9) as u64;
        // Every block is written and read.
        let whole_ns = time_ns(2.0 * self.size_bytes as f64);
        match self.procedure {
            Procedure::Whole => whole_ns,
            Procedure::Probe { filler_bytes: None } => whole_ns.min(PROBE_NS),
            // The filler takes at most half of the device.
            Procedure::Probe {
                filler_bytes: Some(bytes),
            } => {
                let filler_ns = time_ns(bytes.min(self.size_bytes / 2) as f64);
                whole_ns.min(filler_ns.saturating_add(PROBE_NS))
            }
        }
    }
}

/// A piece that was written, or read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedPiece {
    /// Nanoseconds from its first request to its last answer.
    pub ns: u64,
    /// Bytes that were wrong with it.
    pub bad_bytes: BadBytes,
    /// The bad ranges of the piece, by position. Neighbouring sectors with one fault are one range,
    /// and a write that failed is one, too. At most 500.
    pub bad: Vec<BadRange>,
}

impl MovedPiece {
    /// A piece with these faults, by position.
    pub fn new(ns: u64, mut bad: Vec<BadRange>) -> Self {
        let mut bad_bytes = BadBytes::default();
        for range in &bad {
            bad_bytes.add(range);
        }
        bad.truncate(BAD_RANGES_MAX);
        Self { ns, bad_bytes, bad }
    }
}

/// Neighbouring sectors that did not come back as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadRange {
    /// First byte of the range on the device.
    pub offset_bytes: u64,
    /// Length in bytes, a multiple of a sector.
    pub length_bytes: u64,
    /// The content of these sectors, as far as it could be recognised.
    pub content: BadContent,
}

/// The fault of sectors, told by their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum BadContent {
    /// Every byte is zero, or every byte is 0xff.
    Blank,
    /// Something that this run did not write.
    Foreign,
    /// An earlier write to this place.
    Stale {
        /// The number of that write.
        order: u64,
    },
    /// The content of another address.
    Displaced {
        /// That address, of the first sector.
        from_bytes: u64,
        /// The number of that write.
        order: u64,
    },
    /// The right content with wrong bits.
    Flipped {
        /// Wrong bits of all sectors of the range.
        bits: u32,
    },
    /// The write or the read returned an error.
    Failed {
        /// Name of the errno.
        errno: String,
    },
    /// Something else than the write that returned an error, which the disk did not promise to
    /// keep.
    Unwritten,
}

impl BadRange {
    /// The first byte behind it.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }

    /// True if `next` begins where this one ends and has the same fault, so that both are one
    /// range.
    pub fn goes_on_with(&self, next: &Self) -> bool {
        if self.end_bytes() != next.offset_bytes {
            return false;
        }
        match (&self.content, &next.content) {
            (BadContent::Blank, BadContent::Blank) | (BadContent::Foreign, BadContent::Foreign) => {
                true
            }
            (BadContent::Stale { order: one }, BadContent::Stale { order: other }) => one == other,
            (
                BadContent::Displaced { from_bytes, order },
                BadContent::Displaced {
                    from_bytes: next_from,
                    order: next_order,
                },
            ) => from_bytes + self.length_bytes == *next_from && order == next_order,
            (BadContent::Flipped { .. }, BadContent::Flipped { .. }) => true,
            (BadContent::Failed { errno: one }, BadContent::Failed { errno: other }) => {
                one == other
            }
            (BadContent::Unwritten, BadContent::Unwritten) => true,
            _ => false,
        }
    }

    /// Adds the range that goes on where this one ends.
    pub fn append(&mut self, next: &Self) {
        self.length_bytes += next.length_bytes;
        if let (BadContent::Flipped { bits }, BadContent::Flipped { bits: more }) =
            (&mut self.content, &next.content)
        {
            *bits += more;
        }
    }
}

/// Bytes that did not come back as they were written, by fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BadBytes {
    /// Blank, foreign, or of an earlier write.
    pub lost: u64,
    /// Hold what was written to another address.
    pub displaced: u64,
    /// Sectors with wrong bits.
    pub flipped: u64,
    /// Could not be read.
    pub failed: u64,
    /// Hold something else than a write that failed.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub unwritten: u64,
}

impl BadBytes {
    /// Adds the bytes of a range to those of its fault.
    pub fn add(&mut self, range: &BadRange) {
        *self.bytes_of(&range.content) += range.length_bytes;
    }

    /// Bytes with such a content.
    fn bytes_of(&mut self, content: &BadContent) -> &mut u64 {
        match content {
            BadContent::Blank | BadContent::Foreign | BadContent::Stale { .. } => &mut self.lost,
            BadContent::Displaced { .. } => &mut self.displaced,
            BadContent::Flipped { .. } => &mut self.flipped,
            BadContent::Failed { .. } => &mut self.failed,
            BadContent::Unwritten => &mut self.unwritten,
        }
    }

    /// Counts bytes of one content as those of a part of them.
    pub(super) fn change(&mut self, content: &BadContent, part: &BadRange) {
        let bytes = self.bytes_of(content);
        *bytes = bytes.saturating_sub(part.length_bytes);
        self.add(part);
    }

    /// Adds those of another piece.
    pub fn add_all(&mut self, other: Self) {
        self.lost += other.lost;
        self.displaced += other.displaced;
        self.flipped += other.flipped;
        self.failed += other.failed;
        self.unwritten += other.unwritten;
    }

    /// The state of a piece of this length with so many of its bytes bad.
    pub fn state(self, length_bytes: u64) -> PieceState {
        let is_whole = self.sum() >= length_bytes;
        let failed = self.failed + self.unwritten;
        let most = self.lost.max(self.displaced).max(self.flipped).max(failed);
        match most {
            0 => PieceState::Right,
            most if most == failed && is_whole => PieceState::Failed,
            most if most == failed => PieceState::PartlyFailed,
            most if most == self.displaced && is_whole => PieceState::Displaced,
            most if most == self.displaced => PieceState::PartlyDisplaced,
            most if most == self.lost && is_whole => PieceState::Lost,
            most if most == self.lost => PieceState::PartlyLost,
            _ => PieceState::Flipped,
        }
    }

    /// Bytes that came back with another content, and without an error.
    pub fn wrong(self) -> u64 {
        self.lost + self.displaced + self.flipped
    }

    /// Bytes with any fault.
    pub fn sum(self) -> u64 {
        self.wrong() + self.failed + self.unwritten
    }
}

/// The measurement of an acceptance test so far, without judgement. A test that was stopped goes on
/// from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptMeasurement {
    /// Index into the plan's targets.
    pub target: usize,
    /// The task; of a run that went on, that of the first one.
    pub plan: AcceptPlan,
    /// Bytes of a chunk of a whole pass, or of the span that a probe writes whole and of its steps.
    pub chunk_bytes: u64,
    /// Bytes of the filler of a probe.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub filler_bytes: u64,
    /// The first byte of that filler.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub filler_start_bytes: u64,
    /// Start, nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Time of writing and reading, of all runs, in nanoseconds.
    pub wall_ns: u64,
    /// Nanoseconds that this run measured, without those of earlier ones.
    pub run_ns: u64,
    /// Runs before this one, which wrote and read a part of it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub earlier_runs: u32,
    /// Where each of these runs was stopped, the earliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<TestStop>,
    /// What this run found, before it went on, at places that earlier runs had written; absent
    /// where it looked at none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places_before: Option<PlacesBefore>,
    /// The engine that wrote and read.
    pub engine: EngineKind,
    /// The cache policy that was asked for, and the one that was used.
    pub cache: CacheUse,
    /// Pieces that were written, in their order.
    pub written: u64,
    /// Pieces that were read, in theirs.
    pub read: u64,
    /// True if every piece was written and read.
    pub finished: bool,
    /// Bytes that were written and their time, fillers and second writes included; without those
    /// whose write failed.
    pub writes: MovedBytes,
    /// Bytes that were read and checked.
    pub reads: MovedBytes,
    /// The state of each piece after its read, in the order of the writes, as a run-length text of
    /// letters: `R` right, `L` lost, `D` of another address, `E` error, in small letters where only
    /// a part is, `f` wrong bits, `-` not read.
    pub states: PieceStates,
    /// Bytes whose write failed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub failed_writes_bytes: u64,
    /// Where the last write failed, by position, neighbours joined: what comes back there was
    /// never promised. Of more than 20,000 ranges some include what lies between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwritten: Vec<UnwrittenRange>,
    /// Bytes that came back wrong, by fault.
    pub bad_bytes: BadBytes,
    /// The part of the lost bytes that was written before a stop of the test and read after it:
    /// meanwhile other programs could write to the device.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub lost_over_stop_bytes: u64,
    /// The ranges that came back wrong, those with the lowest addresses, by position; at most 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<BadRange>,
    /// Common distances of sectors that hold the content of another address; absent where none
    /// does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displacement: Option<Displacement>,
    /// The two places between which the capacity ends, where a probe looked closer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Edge>,
    /// Places of the filler that a probe read, from the oldest to the newest: whether each was
    /// right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filler: Vec<bool>,
    /// Rates by position, of equal parts of the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<PositionCell>,
    /// Rate of the writes in their order, of equal parts of what is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_course: Vec<MovedBytes>,
    /// The reads of the runs before this one that the disks' counters counted; absent where the
    /// test was not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_reads: Option<CountedReads>,
    /// Bytes that this program requested of the disk in this run.
    pub asked: ByteCount,
    /// Counts of the kernel for the disks in this run, which the figures are checked against.
    pub device: DeviceUse,
    /// The health of the disks before the first run of the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_before: Vec<DiskHealth>,
    /// The health of the disks after the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<DiskHealth>,
    /// A hang that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    /// Times of 2 s or longer without an answer, in all runs of the test; the 100 longest, the
    /// longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<TestStall>,
    /// Errors by errno name, of writes and reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// At most so many stalls of a test are kept. Chosen: a record stays small.
const TEST_STALLS_MAX: usize = 100;

/// A time in which the disk answered no request of an acceptance test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestStall {
    /// Nanoseconds without an answer, to 50 ms.
    pub lasted_ns: u64,
    /// What the test did meanwhile; absent where the device was made ready for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<StalledPlace>,
}

/// What an acceptance test did while the disk answered nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StalledPlace {
    /// Writing, which includes the flush behind the last piece of a step, or reading.
    pub pass: Pass,
    /// The first byte of the piece that was under way, or was the last before the flush.
    pub offset_bytes: u64,
}

/// Where a run of a test was stopped that a later one continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestStop {
    /// Pieces that were written by then, in their order.
    pub written: u64,
    /// Pieces that were read by then, in theirs.
    pub read: u64,
}

/// What places of the device held that earlier runs of a test had written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlacesBefore {
    /// Places that were read.
    pub places: u64,
    /// Those that held no sector of the test any more.
    pub changed: u64,
    /// Byte offset of one of them that an earlier run had read and found right; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_after_right_bytes: Option<u64>,
}

/// What a place holds that an earlier run of a test had written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceContent {
    /// A sector of the test. It may be that of another place, which is the disk's doing.
    OfTest,
    /// Something that the test did not write.
    Other,
    /// The place cannot be read.
    Unreadable,
}

impl PlacesBefore {
    /// Counts what was found at these places. `states` are those of all pieces of the test before
    /// it went on.
    pub fn new(places: &[Piece], found: &[PlaceContent], states: &PieceStates) -> Self {
        let mut before = Self {
            places: places.len() as u64,
            ..Self::default()
        };
        for (place, content) in places.iter().zip(found) {
            if *content != PlaceContent::Other {
                continue;
            }
            before.changed += 1;
            if states.0.get(place.order as usize) == Some(&PieceState::Right) {
                before
                    .changed_after_right_bytes
                    .get_or_insert(place.offset_bytes);
            }
        }
        before
    }
}

/// Bytes that were moved, and the time that they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MovedBytes {
    /// Bytes written or read.
    pub bytes: u64,
    /// Nanoseconds that they took.
    pub ns: u64,
}

impl MovedBytes {
    /// The time that so many bytes take at this rate, in nanoseconds; `None` without a rate.
    fn ns_of(self, bytes: u64) -> Option<u64> {
        if self.bytes == 0 {
            return None;
        }
        Some((self.ns as f64 * bytes as f64 / self.bytes as f64) as u64)
    }

    /// Adds bytes and the nanoseconds that they took.
    pub fn add(&mut self, bytes: u64, ns: u64) {
        self.bytes += bytes;
        self.ns += ns;
    }

    /// Bytes per second; `None` where nothing was moved.
    pub fn bytes_per_second(self) -> Option<f64> {
        if self.bytes == 0 || self.ns == 0 {
            return None;
        }
        Some(self.bytes as f64 * 1e9 / self.ns as f64)
    }
}

/// Contents of other addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Displacement {
    /// The greatest common divisor of all distances between two addresses with one content.
    pub divisor_bytes: u64,
    /// The smallest of these distances.
    pub least_bytes: u64,
    /// Ranges that held such a content.
    pub ranges: u64,
    /// The lowest of these addresses.
    pub at_bytes: u64,
    /// The address whose content it held.
    pub from_bytes: u64,
}

/// The two places between which a capacity ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The byte up to which everything was right.
    pub right_to_bytes: u64,
    /// The byte from which on it was not.
    pub bad_from_bytes: u64,
}

/// Rates of a part of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PositionCell {
    /// Bytes that were written to it, and their time.
    pub write: MovedBytes,
    /// Bytes that were read from it, and their time.
    pub read: MovedBytes,
}

/// The answer of an acceptance test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcceptVerdict {
    /// The disk holds what it claims, and every block came back.
    Accept,
    /// The disk holds less than it claims, or lost data.
    Reject,
    /// A probe found nothing wrong, which does not prove that nothing is.
    NoFraudFound,
    /// The test could not decide.
    Undecided,
}

impl AcceptVerdict {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::NoFraudFound => "no fraud found",
            Self::Undecided => "undecided",
        }
    }
}

/// The behaviour of a disk that claims more than its real size, beyond that size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fraud {
    /// Addresses beyond it are those of the beginning, or of a part before it.
    Wraps,
    /// Writes beyond it are lost.
    Drops,
    /// Writes beyond it are lost, except for the last ones, which a small cache holds.
    Cached,
    /// Requests beyond it fail.
    Fails,
    /// Bits beyond it are wrong.
    Flips,
    /// It stores whatever address is written until its flash is full.
    Thin,
    /// Everything is stored, and beyond this size it is many times slower.
    Slow,
}

/// The reason why a test could not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// The test ended before it had read everything.
    Unfinished,
    /// Reads may have come from the memory of this machine.
    NotDirect,
    /// The disk's counters do not confirm the reads.
    Unproven,
    /// The rate of the writes fell steeply while a probe wrote its filler.
    RateFell,
    /// The disk replaced sectors during the test.
    Remapped,
    /// The disk told the counts of its sectors before the test and does not tell them after it.
    HealthLost,
    /// The rates by position vary so much that a slow end could hide among them.
    Uneven,
    /// All that is wrong was written before the test was stopped and read after it: others may
    /// have overwritten it meanwhile.
    ChangedWhileStopped,
    /// The disk answered nothing for so long that the kernel gives a request up, and went on.
    Silent,
}

/// The answer of an acceptance test and its reasons, computed from the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptFigures {
    /// The answer.
    pub verdict: AcceptVerdict,
    /// The reason for the answer `undecided`; absent with every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
    /// The behaviour of a disk beyond its real size; absent where it has the size that it claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraud: Option<Fraud>,
    /// The size that it really has, in bytes, all of which it keeps; absent where the damage has no
    /// border.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_bytes: Option<u64>,
    /// The first address that it does not keep, where a probe read nothing between that and
    /// `real_bytes`: the size may be up to this. Absent where the size is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_bytes_max: Option<u64>,
    /// Bytes of the cache that held the last writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// An upper limit of the bad share of the capacity, with 99.9 %; only of a probe that found
    /// nothing wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_share_max: Option<f64>,
    /// Blocks that a probe wrote and read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Rate of writing by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_rate: Option<RateByPosition>,
    /// Rate of reading by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<RateByPosition>,
    /// The point at which the rate of the writes fell for good; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cliff: Option<WriteCliff>,
    /// Parts that were read or written much more slowly than what lies beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_zones: Vec<SlowPart>,
    /// Counters of the disks that rose during the test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_changes: Vec<HealthChange>,
}

/// Rates in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateByPosition {
    /// Rate of the slowest part; absent where the test was too short for parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Rate of the whole device.
    pub average: f64,
    /// Rate of the fastest part; absent where the test was too short for parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// A fall of the rate of writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteCliff {
    /// Bytes that were written before it.
    pub after_bytes: u64,
    /// Rate before it, in bytes per second.
    pub before: f64,
    /// Rate behind it, in bytes per second.
    pub behind: f64,
}

/// A part of the device that is much slower than its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowPart {
    /// First byte of the part.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Bytes per second of this part.
    pub bytes_per_second: f64,
    /// The usual rate there, in bytes per second.
    pub usual: f64,
}

/// A counter of a disk that rose during the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthChange {
    /// Kernel name of the disk.
    pub disk: String,
    /// The kind of damage that is counted.
    pub counter: HealthCounter,
    /// Count before the test.
    pub before: u64,
    /// Count after the test.
    pub after: u64,
}

/// A counter of damage that a disk keeps itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealthCounter {
    /// Sectors that were replaced.
    Reallocated,
    /// Sectors that wait for it.
    Pending,
    /// Sectors that could not be corrected.
    Uncorrectable,
    /// Errors of the medium.
    MediaErrors,
    /// Errors of the cable.
    LinkErrors,
}

/// An acceptance test: what came back, and what follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptRecord {
    /// The measurement, from which everything else follows.
    pub data: AcceptMeasurement,
    /// The answer and its reasons.
    pub figures: AcceptFigures,
}

/// The most bad ranges that a measurement keeps, and that a moved piece has.
pub const BAD_RANGES_MAX: usize = 500;

/// Bytes that were read of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CountedReads {
    /// As this program requested them.
    pub asked_bytes: u64,
    /// As the kernel counted them for the disks.
    pub counted_bytes: u64,
}

/// Neighbouring bytes whose last write failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnwrittenRange {
    /// First byte of the range on the device.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
}

impl UnwrittenRange {
    /// The first byte behind it.
    pub(super) fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }
}

impl AcceptMeasurement {
    /// The offset at which the cell with this index begins, in bytes; that of the end of the device
    /// for the index after the last. Cells begin where chunks do.
    pub fn cell_offset(&self, index: usize) -> u64 {
        let chunk_count = self.states.0.len() as u64;
        let cells = self.cells.len().max(1) as u64;
        let first_chunk = (index as u64 * chunk_count).div_ceil(cells);
        (first_chunk * self.chunk_bytes).min(self.plan.size_bytes)
    }

    /// The measurement of a test that has not begun.
    pub fn new(plan: AcceptPlan) -> Self {
        let chunk_bytes = chunk_bytes(plan.size_bytes);
        Self {
            target: 0,
            plan,
            chunk_bytes,
            filler_bytes: 0,
            filler_start_bytes: 0,
            start_ns: 0,
            wall_ns: 0,
            run_ns: 0,
            earlier_runs: 0,
            stops: Vec::new(),
            places_before: None,
            engine: EngineKind::Sync,
            cache: CacheUse {
                asked: CachePolicy::Direct,
                used: CachePolicy::Direct,
                why: None,
            },
            written: 0,
            read: 0,
            finished: false,
            writes: MovedBytes::default(),
            reads: MovedBytes::default(),
            states: PieceStates::default(),
            failed_writes_bytes: 0,
            unwritten: Vec::new(),
            bad_bytes: BadBytes::default(),
            lost_over_stop_bytes: 0,
            bad: Vec::new(),
            displacement: None,
            edge: None,
            filler: Vec::new(),
            cells: Vec::new(),
            write_course: Vec::new(),
            earlier_reads: None,
            asked: ByteCount::default(),
            device: DeviceUse::default(),
            health_before: Vec::new(),
            health: Vec::new(),
            hang: None,
            stalls: Vec::new(),
            errors: BTreeMap::new(),
        }
    }

    /// Adds a time without an answer, the longest first. The shortest goes where there are too
    /// many.
    pub fn add_stall(&mut self, stall: TestStall) {
        let index = self
            .stalls
            .partition_point(|other| other.lasted_ns >= stall.lasted_ns);
        self.stalls.insert(index, stall);
        self.stalls.truncate(TEST_STALLS_MAX);
    }

    /// Estimates the time that the rest of a whole pass takes at the rates so far, in nanoseconds;
    /// `None` where nothing was written yet. Reads count like writes until some were measured.
    pub fn rest_ns(&self) -> Option<u64> {
        let write_ns = self.writes.ns_of(self.plan.size_bytes)?;
        let read_ns = self.reads.ns_of(self.plan.size_bytes).unwrap_or(write_ns);
        let written = self.writes.ns.min(write_ns);
        let read = self.reads.ns.min(read_ns);
        Some(write_ns - written + read_ns - read)
    }

    /// The measurement of a run that goes on where this one was stopped.
    pub fn continued(mut self) -> Self {
        self.earlier_reads = self.counted_reads();
        self.stops.push(TestStop {
            written: self.written,
            read: self.read,
        });
        // The disk answers again, or this run ends in the same way.
        let hang = self.hang.take();
        // Where the page cache answers, a silence may be that of its write-back.
        if let Some(hang) = hang
            && self.cache.used == CachePolicy::Direct
        {
            self.add_stall(TestStall {
                lasted_ns: hang.lasted_ns,
                place: None,
            });
        }
        self.earlier_runs += 1;
        self.run_ns = 0;
        self.places_before = None;
        self.asked = ByteCount::default();
        self.device = DeviceUse::default();
        self
    }

    /// The reads of all runs of the test so far, as far as they were counted; `None` where the
    /// disks' counters cannot be read.
    pub fn counted_reads(&self) -> Option<CountedReads> {
        if self.device.unresolved.is_some() {
            return None;
        }
        let earlier = self.earlier_reads.unwrap_or_default();
        Some(CountedReads {
            asked_bytes: earlier.asked_bytes.saturating_add(self.asked.read_bytes),
            counted_bytes: earlier.counted_bytes.saturating_add(self.device.read_bytes),
        })
    }

    /// True of a piece that was written before a stop of the test and is, or was, read after it.
    /// `order` is its number in the order of the writes, `read_order` that in the order of the
    /// reads.
    pub fn has_stop_between(&self, order: u64, read_order: u64) -> bool {
        // Later stops have more pieces written, so the last one before the read decides.
        let before_read = self.stops.partition_point(|stop| stop.read <= read_order);
        match self.stops[..before_read].last() {
            Some(stop) => order < stop.written,
            None => false,
        }
    }

    /// Adds the part of a write that failed.
    pub fn add_failed_write(&mut self, range: &BadRange) {
        self.failed_writes_bytes += range.length_bytes;
        if let BadContent::Failed { errno } = &range.content {
            *self.errors.entry(errno.clone()).or_default() += 1;
        }
    }

    /// Adds what was wrong with a piece that was read.
    pub fn add_bad(&mut self, moved: &MovedPiece) {
        self.bad_bytes.add_all(moved.bad_bytes);
        for range in &moved.bad {
            if let BadContent::Displaced { from_bytes, .. } = range.content {
                self.add_displacement(range.offset_bytes, from_bytes);
            }
            if let BadContent::Failed { errno } = &range.content {
                *self.errors.entry(errno.clone()).or_default() += 1;
            }
            let place = self
                .bad
                .partition_point(|known| known.offset_bytes < range.offset_bytes);
            if place < BAD_RANGES_MAX {
                self.bad.insert(place, range.clone());
                self.bad.truncate(BAD_RANGES_MAX);
            }
        }
    }

    /// Counts a range at one address that holds what was written to another one.
    fn add_displacement(&mut self, at_bytes: u64, from_bytes: u64) {
        let distance = at_bytes.abs_diff(from_bytes);
        let Some(known) = &mut self.displacement else {
            self.displacement = Some(Displacement {
                divisor_bytes: distance,
                least_bytes: distance,
                ranges: 1,
                at_bytes,
                from_bytes,
            });
            return;
        };
        known.divisor_bytes = greatest_common_divisor(known.divisor_bytes, distance);
        known.least_bytes = known.least_bytes.min(distance);
        known.ranges += 1;
        if at_bytes < known.at_bytes {
            known.at_bytes = at_bytes;
            known.from_bytes = from_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_filler_takes_its_time() {
        let guess = |filler_bytes: Option<u64>| {
            let plan = AcceptPlan {
                procedure: Procedure::Probe { filler_bytes },
                size_bytes: 4_000_000_000_000,
                salt: 7,
            };
            plan.time_ns_guess(Some(true)) / 1_000_000_000
        };
        assert_eq!(guess(None), 420);
        // 1.2 TB at 120 MB/s.
        assert_eq!(guess(Some(1_200_000_000_000)), 10_420);
        assert_eq!(guess(Some(u64::MAX)), 16_666 + 420);
    }

    #[test]
    fn rest_of_a_test_follows_from_its_own_rates() {
        let mut measured = AcceptMeasurement::new(AcceptPlan {
            procedure: Procedure::Whole,
            size_bytes: 1000,
            salt: 1,
        });
        assert_eq!(measured.rest_ns(), None);
        measured.writes.add(250, 500);
        // Reads count like writes until some were measured.
        assert_eq!(measured.rest_ns(), Some(1500 + 2000));
        measured.writes.add(750, 1500);
        measured.reads.add(500, 100);
        assert_eq!(measured.rest_ns(), Some(100));
    }
}
