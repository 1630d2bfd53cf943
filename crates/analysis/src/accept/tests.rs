//! Acceptance tests in virtual time, on disks of each kind: every fake is found and sized, no
//! honest disk is accused.

use super::*;
use crate::fixture::test_rng::TestRng;
use diskproof_model::accept::{
    AcceptFigures, AcceptMeasurement, AcceptPlan, AcceptVerdict, BadContent, BadRange, Batch,
    Fraud, MovedPiece, Pass, Piece, Procedure, Undecided,
};
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::{ByteCount, Hang};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// A disk that hung answers again: the run that goes on tells of it, and has no hang of its own.
#[test]
fn hang_of_an_earlier_run_is_a_time_without_an_answer() {
    let plan = AcceptPlan {
        procedure: Procedure::Whole,
        size_bytes: 256 * MIB,
        salt: 7,
    };
    let mut measured = AcceptMeasurement::new(plan);
    measured.hang = Some(Hang {
        since_ns: 0,
        lasted_ns: 225_000_000_000,
        requests: 1,
        late: false,
    });
    let continued = measured.continued();
    assert_eq!(continued.hang, None);
    let lasted: Vec<u64> = continued
        .stalls
        .iter()
        .map(|stall| stall.lasted_ns)
        .collect();
    assert_eq!(lasted, [225_000_000_000]);
}

const MIB: u64 = 1 << 20;
/// The simulated disks know blocks of this size; the real size of a fake is a multiple of it.
const BLOCK: u64 = 4096;

/// What a simulated disk does with a block beyond its real size.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Honest,
    Wraps,
    /// Only the last so many bytes before the real size are written again and again.
    WrapsWindow(u64),
    Drops,
    Fails,
    /// Writes fail, and reads return zeros.
    RefusesWrites,
    /// The last so many bytes written beyond the real size are kept.
    Cached(u64),
    Flips,
    /// Slower by this factor.
    Slow(u64),
    /// Any address is stored until so much was written.
    Thin,
}

/// A block as the disk stores it: where and when it was written.
type Stored = (u64, u64);

struct SimulatedDisk {
    kind: Kind,
    real_bytes: u64,
    stored: BTreeMap<u64, Stored>,
    cached: BTreeMap<u64, Stored>,
    cached_order: VecDeque<u64>,
    /// Nanoseconds per MiB by address and by what was written so far.
    pace: fn(share: f64, written: u64, random: f64) -> f64,
    /// Nanoseconds by which the machine delays a piece.
    noise: fn(&mut TestRng) -> f64,
    size_bytes: u64,
    written: u64,
    random: TestRng,
    /// Blocks that cannot be read.
    broken: Vec<u64>,
    /// Places that another program wrote last.
    foreign: BTreeSet<u64>,
    /// Every write fails once so many bytes were accepted.
    accepts_bytes: u64,
}

impl SimulatedDisk {
    fn new(kind: Kind, size_bytes: u64, real_bytes: u64, seed: u64) -> Self {
        Self {
            kind,
            real_bytes,
            stored: BTreeMap::new(),
            cached: BTreeMap::new(),
            cached_order: VecDeque::new(),
            pace: even,
            noise: no_noise,
            size_bytes,
            written: 0,
            random: TestRng(seed),
            broken: Vec::new(),
            foreign: BTreeSet::new(),
            accepts_bytes: u64::MAX,
        }
    }

    fn place(&self, at: u64) -> Option<u64> {
        if at < self.real_bytes {
            return Some(at);
        }
        match self.kind {
            Kind::Wraps => Some(at % self.real_bytes),
            Kind::WrapsWindow(window) => {
                Some(self.real_bytes - window + (at - self.real_bytes) % window)
            }
            Kind::Honest | Kind::Flips | Kind::Slow(_) => Some(at),
            Kind::Drops | Kind::Fails | Kind::RefusesWrites | Kind::Cached(_) | Kind::Thin => None,
        }
    }

    fn write(&mut self, at: u64, order: u64, bytes: u64) -> Option<BadContent> {
        if self.written + bytes > self.accepts_bytes {
            return Some(failed());
        }
        self.written += bytes;
        let content = (at, order);
        if self.kind == Kind::Thin {
            let is_known = self.stored.contains_key(&at);
            if is_known || (self.stored.len() as u64) * BLOCK < self.real_bytes {
                self.stored.insert(at, content);
            }
            return None;
        }
        if let Some(place) = self.place(at) {
            self.foreign.remove(&place);
            self.stored.insert(place, content);
            return None;
        }
        match self.kind {
            Kind::Cached(bytes) => {
                self.cached.insert(at, content);
                self.cached_order.push_back(at);
                while self.cached_order.len() as u64 * BLOCK > bytes {
                    let oldest = self.cached_order.pop_front().unwrap();
                    if !self.cached_order.contains(&oldest) {
                        self.cached.remove(&oldest);
                    }
                }
                None
            }
            Kind::Fails | Kind::RefusesWrites => Some(failed()),
            _ => None,
        }
    }

    fn read(&self, at: u64, order: u64) -> Option<BadContent> {
        if self.broken.contains(&at) {
            return Some(failed());
        }
        if at >= self.real_bytes {
            match self.kind {
                Kind::Fails => return Some(failed()),
                Kind::Flips => return Some(BadContent::Flipped { bits: 1 }),
                Kind::Cached(_) => {
                    let known = self.cached.contains_key(&at);
                    return if known { None } else { Some(BadContent::Blank) };
                }
                _ => {}
            }
        }
        if let Some(place) = self.place(at)
            && self.foreign.contains(&place)
        {
            return Some(BadContent::Foreign);
        }
        let stored = match self.kind {
            Kind::Thin => self.stored.get(&at),
            _ => self.place(at).and_then(|place| self.stored.get(&place)),
        };
        match stored {
            None => Some(BadContent::Blank),
            Some((from, found)) if *from == at && *found == order => None,
            Some((from, found)) if *from == at => Some(BadContent::Stale { order: *found }),
            Some((from, found)) => Some(BadContent::Displaced {
                from_bytes: *from,
                order: *found,
            }),
        }
    }

    /// Another program writes to these bytes.
    fn overwrite(&mut self, bytes: Range<u64>) {
        for at in bytes.step_by(BLOCK as usize) {
            self.foreign.extend(self.place(at));
        }
    }

    fn ns(&mut self, piece: Piece) -> u64 {
        let share = piece.offset_bytes as f64 / self.size_bytes as f64;
        let mut per_mib = (self.pace)(share, self.written, self.random.share());
        if let Kind::Slow(factor) = self.kind
            && piece.offset_bytes >= self.real_bytes
        {
            per_mib *= factor as f64;
        }
        let noise_ns = (self.noise)(&mut self.random);
        (per_mib * piece.length_bytes as f64 / MIB as f64 + noise_ns) as u64 + 5_000
    }

    fn carry_out(&mut self, batch: &Batch) -> Vec<MovedPiece> {
        let mut moved = Vec::new();
        for piece in &batch.pieces {
            let mut bad: Vec<BadRange> = Vec::new();
            let mut at = piece.offset_bytes / BLOCK * BLOCK;
            let end = piece.offset_bytes + piece.length_bytes;
            while at < end {
                let content = match batch.pass {
                    Pass::Write => self.write(at, piece.order, piece.length_bytes.min(BLOCK)),
                    Pass::Read => self.read(at, piece.order),
                };
                let from = at.max(piece.offset_bytes);
                if let Some(content) = content {
                    let range = BadRange {
                        offset_bytes: from,
                        length_bytes: (at + BLOCK).min(end) - from,
                        content,
                    };
                    match bad.last_mut() {
                        Some(last) if last.goes_on_with(&range) => last.append(&range),
                        _ => bad.push(range),
                    }
                }
                at += BLOCK;
            }
            moved.push(MovedPiece::new(self.ns(*piece), bad));
        }
        moved
    }
}

fn failed() -> BadContent {
    BadContent::Failed {
        errno: "EIO".to_owned(),
    }
}

fn even(_: f64, _: u64, random: f64) -> f64 {
    2e6 * (1.0 + 0.2 * random)
}

fn no_noise(_: &mut TestRng) -> f64 {
    0.0
}

/// Other programs take the processor for some time slices during every second piece.
fn busy(random: &mut TestRng) -> f64 {
    if random.share() < 0.5 {
        15e6 * random.exponential()
    } else {
        0.0
    }
}

/// And during nearly all.
fn very_busy(random: &mut TestRng) -> f64 {
    if random.share() < 0.9 {
        30e6 * random.exponential()
    } else {
        0.0
    }
}

/// The server of a simulated disk and this program wait for a processor in each piece, as measured
/// at a load of 10.
fn starved(random: &mut TestRng) -> f64 {
    12e6 + 22e6 * (random.exponential() + random.exponential())
}

/// Every fifth piece stalls.
fn stalling(random: &mut TestRng) -> f64 {
    if random.share() < 0.2 { 300e6 } else { 0.0 }
}

fn run(disk: &mut SimulatedDisk, procedure: Procedure, salt: u64) -> AcceptMeasurement {
    let plan = AcceptPlan {
        procedure,
        size_bytes: disk.size_bytes,
        salt,
    };
    let mut test = AcceptTest::new(AcceptMeasurement::new(plan));
    while let Some(batch) = test.next_batch() {
        let moved = disk.carry_out(&batch);
        test.add(&batch, &moved);
    }
    // The counters of the disk confirm all of it.
    let asked = ByteCount {
        read_bytes: test.measured.reads.bytes,
        write_bytes: test.measured.writes.bytes,
        ..ByteCount::default()
    };
    test.measured.asked = asked;
    test.measured.device.read_bytes = asked.read_bytes;
    test.measured
}

fn judged(disk: &mut SimulatedDisk, procedure: Procedure, salt: u64) -> AcceptFigures {
    let measured = run(disk, procedure, salt);
    accept_record(&measured, None, &[]).figures
}

/// A full pass that is stopped once this share of its pieces was moved, 0 to 2, and goes on from
/// what it saved, after others may have written to the disk.
fn judged_after_stop(
    disk: &mut SimulatedDisk,
    salt: u64,
    stop_at: f64,
    meanwhile: impl FnOnce(&mut SimulatedDisk),
) -> AcceptFigures {
    let plan = AcceptPlan {
        procedure: Procedure::Whole,
        size_bytes: disk.size_bytes,
        salt,
    };
    let mut test = AcceptTest::new(AcceptMeasurement::new(plan));
    let count = test.measured.states.0.len() as f64;
    let mut meanwhile = Some(meanwhile);
    while let Some(batch) = test.next_batch() {
        let done = (test.measured.written + test.measured.read) as f64;
        let left = ((stop_at * count - done).max(0.0) as usize).min(batch.pieces.len());
        if meanwhile.is_some() && left < batch.pieces.len() {
            let first = Batch {
                pieces: batch.pieces[..left].to_vec(),
                ..batch
            };
            let moved = disk.carry_out(&first);
            test.add(&first, &moved);
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile(disk);
            }
            test = AcceptTest::new(test.measured.continued());
            continue;
        }
        let moved = disk.carry_out(&batch);
        test.add(&batch, &moved);
    }
    assert_eq!(test.measured.earlier_runs, 1);
    test.measured.device.read_bytes = test.measured.reads.bytes;
    test.measured.asked.read_bytes = test.measured.reads.bytes;
    accept_record(&test.measured, None, &[]).figures
}

/// Where a pass is stopped: early and late in its writes, between them and its reads, and early and
/// late in the reads.
const STOPS: [f64; 5] = [0.3, 0.97, 1.0, 1.1, 1.8];

#[test]
fn honest_disk_that_others_overwrote_while_the_test_was_stopped_is_not_rejected() {
    let size_bytes = 128 * MIB;
    let writes_of_others = [
        0..MIB,
        0..size_bytes,
        0..125 * MIB,
        3 * MIB..size_bytes,
        size_bytes / 2..size_bytes,
        5 * MIB + 8 * BLOCK..5 * MIB + 9 * BLOCK,
    ];
    for bytes in writes_of_others {
        for (seed, stop_at) in (1..).zip(STOPS) {
            let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, seed);
            let found = judged_after_stop(&mut disk, 40 + seed, stop_at, |disk| {
                disk.overwrite(bytes.clone());
            });
            let case = format!("{bytes:?} at {stop_at}: {found:?}");
            // Nothing is wrong where all of it was read before, or written again after it.
            if found.verdict != AcceptVerdict::Accept {
                assert_eq!(found.verdict, AcceptVerdict::Undecided, "{case}");
                assert_eq!(
                    found.undecided,
                    Some(Undecided::ChangedWhileStopped),
                    "{case}"
                );
                assert_eq!((found.fraud, found.real_bytes), (None, None), "{case}");
            } else {
                assert!(bytes.end - bytes.start <= MIB, "{case}");
            }
        }
    }
}

#[test]
fn fake_is_found_and_sized_whenever_its_test_is_stopped() {
    let fakes = FAKES.iter().filter(|(_, fraud)| *fraud != Fraud::Slow);
    for (kind, fraud) in fakes.chain(&[(Kind::Thin, Fraud::Thin)]) {
        for (seed, stop_at) in (1..).zip(STOPS) {
            for is_overwritten in [false, true] {
                let (size_bytes, real_bytes) = (128 * MIB, 47 * MIB + 5 * BLOCK);
                let mut disk = SimulatedDisk::new(*kind, size_bytes, real_bytes, seed);
                let found = judged_after_stop(&mut disk, 70 + seed, stop_at, |disk| {
                    if is_overwritten {
                        disk.overwrite(0..12 * MIB);
                    }
                });
                let case = format!("{kind:?} at {stop_at}, {is_overwritten}: {found:?}");
                // Nothing was written or read before the stop that shows what is lost.
                let is_hidden =
                    stop_at == 1.0 && matches!(kind, Kind::Drops | Kind::Cached(_) | Kind::Thin);
                if is_hidden {
                    assert_eq!(
                        found.undecided,
                        Some(Undecided::ChangedWhileStopped),
                        "{case}"
                    );
                    continue;
                }
                assert_eq!(found.verdict, AcceptVerdict::Reject, "{case}");
                // The few places that are written after a late stop may not show which fraud it is.
                let is_named = found.fraud.is_some() || stop_at != 0.97;
                if is_overwritten || !is_named {
                    continue;
                }
                assert_eq!(found.fraud, Some(*fraud), "{case}");
                let error = found.real_bytes.unwrap().abs_diff(real_bytes);
                assert!(error <= MIB, "{error} {case}");
            }
        }
    }
}

const PROBE: Procedure = Procedure::Probe { filler_bytes: None };

/// A fake with its name, and the fraud that it commits.
const FAKES: [(Kind, Fraud); 7] = [
    (Kind::Wraps, Fraud::Wraps),
    (Kind::Drops, Fraud::Drops),
    (Kind::Fails, Fraud::Fails),
    (Kind::RefusesWrites, Fraud::Fails),
    (Kind::Cached(2 * MIB), Fraud::Cached),
    (Kind::Flips, Fraud::Flips),
    (Kind::Slow(20), Fraud::Slow),
];

/// Direct I/O refuses what is no multiple of a sector, and the disk would get the blame.
#[test]
fn pieces_are_whole_blocks_within_a_disk_of_any_size() {
    let sizes = (0..40).map(|odd: u64| 8 * MIB + odd * 37 * BLOCK).chain([
        24_415 * BLOCK,
        100 * MIB + BLOCK,
        300 * MIB + 3 * BLOCK,
    ]);
    for size_bytes in sizes {
        for procedure in [PROBE, Procedure::Whole] {
            let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, 7);
            let plan = AcceptPlan {
                procedure,
                size_bytes,
                salt: 1,
            };
            let mut test = AcceptTest::new(AcceptMeasurement::new(plan));
            while let Some(batch) = test.next_batch() {
                for piece in &batch.pieces {
                    let is_whole = piece.offset_bytes.is_multiple_of(BLOCK)
                        && piece.length_bytes.is_multiple_of(BLOCK);
                    let is_within = piece.offset_bytes + piece.length_bytes <= size_bytes;
                    assert!(
                        is_whole && is_within,
                        "{size_bytes} {procedure:?} {piece:?}"
                    );
                }
                let moved = disk.carry_out(&batch);
                test.add(&batch, &moved);
            }
        }
    }
}

/// Worn flash takes no writes from some time on, and what it took comes back: it is rejected, and
/// holds no false capacity. A disk that takes none at all has no capacity to state.
#[test]
fn honest_disk_that_stops_accepting_writes_is_no_fake() {
    for (accepted_mib, seed) in [(0, 1), (1, 2), (3, 3), (60, 4), (120, 5), (127, 6)] {
        let size_bytes = 128 * MIB;
        let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, seed);
        disk.accepts_bytes = accepted_mib * MIB;
        let measured = run(&mut disk, Procedure::Whole, 4000 + seed);
        let found = accept_record(&measured, None, &[]).figures;
        let case = format!("{accepted_mib} MiB: {found:?}");
        assert_eq!(found.verdict, AcceptVerdict::Reject, "{case}");
        assert_eq!((found.fraud, found.real_bytes), (None, None), "{case}");
        assert_eq!(measured.bad_bytes.wrong(), 0, "{case}");
        let failed = size_bytes - accepted_mib * MIB;
        assert_eq!(measured.bad_bytes.unwritten, failed, "{case}");
        assert_eq!(measured.writes.bytes, accepted_mib * MIB, "{case}");
        let text = words::unwritable_text(&measured).unwrap();
        let stop = if accepted_mib == 0 {
            "accepted no write"
        } else {
            "stopped accepting writes"
        };
        // One piece that failed may be a weak place.
        assert!(accepted_mib == 127 || text.contains(stop), "{case} {text}");
    }
    for (accepted_mib, seed) in [(0, 1), (10, 2), (20, 3)] {
        let mut disk = SimulatedDisk::new(Kind::Honest, 256 * MIB, 256 * MIB, seed);
        disk.accepts_bytes = accepted_mib * MIB;
        let found = judged(&mut disk, PROBE, 5000 + seed);
        assert_eq!(found.verdict, AcceptVerdict::Reject, "{found:?}");
        assert_eq!(found.fraud, None, "{accepted_mib} MiB: {found:?}");
    }
}

#[test]
fn whole_pass_finds_each_fake_and_its_size() {
    for (kind, fraud) in FAKES {
        for seed in 1..=12 {
            let mut random = TestRng(seed);
            let size_bytes = 128 * MIB + (random.share() * 64.0) as u64 * BLOCK;
            let real_bytes =
                (size_bytes as f64 * (0.06 + 0.88 * random.share())) as u64 / BLOCK * BLOCK;
            let mut disk = SimulatedDisk::new(kind, size_bytes, real_bytes, seed);
            let found = judged(&mut disk, Procedure::Whole, 1000 + seed);
            let case = format!("{kind:?}, seed {seed}, {real_bytes} of {size_bytes}: {found:?}");
            assert_eq!(found.verdict, AcceptVerdict::Reject, "{case}");
            assert_eq!(found.fraud, Some(fraud), "{case}");
            let error = found.real_bytes.unwrap().abs_diff(real_bytes);
            assert!(error <= MIB, "{error} {case}");
        }
    }
}

/// The filler lies in the last part of the disk, of which these really have the first half.
#[test]
fn end_within_the_filler_of_a_probe_is_no_cache() {
    for (kind, fraud) in [
        (Kind::Drops, Fraud::Drops),
        (Kind::Cached(2 * MIB), Fraud::Cached),
    ] {
        for seed in 1..=6 {
            let real_bytes = 400 * MIB + seed * BLOCK;
            let mut disk = SimulatedDisk::new(kind, 416 * MIB, real_bytes, seed);
            let found = judged(&mut disk, PROBE, 3000 + seed);
            assert_eq!(found.fraud, Some(fraud), "{found:?}");
            let error = found.real_bytes.unwrap().abs_diff(real_bytes);
            assert!(error <= MIB, "{error}");
        }
    }
}

#[test]
fn probe_finds_each_fake_and_its_size() {
    for (kind, fraud) in FAKES {
        if fraud == Fraud::Slow {
            continue;
        }
        for seed in 1..=12 {
            let mut random = TestRng(seed + 50);
            let size_bytes = 256 * MIB + (random.share() * 64.0) as u64 * BLOCK;
            let real_bytes =
                (size_bytes as f64 * (0.02 + 0.965 * random.share())) as u64 / BLOCK * BLOCK;
            let mut disk = SimulatedDisk::new(kind, size_bytes, real_bytes, seed);
            let found = judged(&mut disk, PROBE, 2000 + seed);
            let case = format!("{kind:?}, seed {seed}, {real_bytes} of {size_bytes}: {found:?}");
            assert_eq!(found.verdict, AcceptVerdict::Reject, "{case}");
            let error = found.real_bytes.map(|bytes| bytes.abs_diff(real_bytes));
            assert!(error.is_some_and(|error| error <= MIB), "{error:?} {case}");
            // All of the size is kept, and a flip may spare blocks beyond it.
            if fraud != Fraud::Flips {
                let most_bytes = found.real_bytes_max.or(found.real_bytes).unwrap();
                assert!(found.real_bytes.unwrap() <= real_bytes, "{case}");
                assert!(real_bytes <= most_bytes, "{case}");
            }
        }
    }
}

#[test]
fn wrap_of_a_small_window_is_sized_by_its_end() {
    for seed in 1..=8 {
        let (size_bytes, real_bytes) = (256 * MIB, (50 + 7 * seed) * MIB);
        let window = Kind::WrapsWindow(8 * MIB);
        for procedure in [Procedure::Whole, PROBE] {
            let mut disk = SimulatedDisk::new(window, size_bytes, real_bytes, seed);
            let found = judged(&mut disk, procedure, seed);
            assert_eq!(found.verdict, AcceptVerdict::Reject, "{found:?}");
            let error = found.real_bytes.unwrap().abs_diff(real_bytes);
            // The window itself is lost, too, and a probe knows its begin to a MiB.
            assert!(
                error <= 9 * MIB,
                "{procedure:?} {seed} {real_bytes} {found:?}"
            );
        }
    }
}

#[test]
fn thin_disk_is_sized_by_the_whole_pass_and_never_accepted_by_the_probe() {
    for seed in 1..=12 {
        let mut random = TestRng(seed);
        let size_bytes = 128 * MIB;
        let real_bytes = (size_bytes as f64 * (0.1 + 0.8 * random.share())) as u64 / BLOCK * BLOCK;
        let mut disk = SimulatedDisk::new(Kind::Thin, size_bytes, real_bytes, seed);
        let found = judged(&mut disk, Procedure::Whole, seed);
        assert_eq!(found.fraud, Some(Fraud::Thin), "{seed}: {found:?}");
        assert!(found.real_bytes.unwrap().abs_diff(real_bytes) <= MIB);
        let mut disk = SimulatedDisk::new(Kind::Thin, size_bytes, real_bytes, seed);
        let found = judged(&mut disk, PROBE, seed);
        assert_ne!(found.verdict, AcceptVerdict::Accept, "{found:?}");
    }
}

fn zoned(share: f64, _: u64, random: f64) -> f64 {
    5e6 * (1.0 + share) * (1.0 + 0.3 * random)
}

/// Shingled: writes fall by twenty once the media cache is full.
fn shingled(share: f64, written: u64, random: f64) -> f64 {
    let factor = if written > 30 * MIB { 20.0 } else { 1.0 };
    zoned(share, written, random) * factor
}

/// One request in fifty takes a hundred times longer.
fn pausing(_: f64, _: u64, random: f64) -> f64 {
    if random < 0.02 { 2e8 } else { 2e6 }
}

fn very_uneven(_: f64, _: u64, random: f64) -> f64 {
    1e6 + 2e7 * random * random
}

/// A part in the middle is slow.
fn slow_in_the_middle(share: f64, _: u64, random: f64) -> f64 {
    let factor = if (0.4..0.5).contains(&share) {
        30.0
    } else {
        1.0
    };
    even(share, 0, random) * factor
}

#[test]
fn honest_disks_are_never_accused() {
    let paces = [
        even,
        zoned,
        shingled,
        pausing,
        very_uneven,
        slow_in_the_middle,
    ];
    for seed in 1..=20 {
        let size_bytes = (60 + 7 * seed) * MIB + 4096 * seed;
        for pace in paces {
            let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, seed);
            disk.pace = pace;
            let found = judged(&mut disk, Procedure::Whole, seed);
            assert_eq!(found.verdict, AcceptVerdict::Accept, "{seed}: {found:?}");
            let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, seed);
            disk.pace = pace;
            let found = judged(&mut disk, PROBE, seed);
            let is_known = match found.verdict {
                AcceptVerdict::NoFraudFound => true,
                AcceptVerdict::Undecided => found.undecided == Some(Undecided::RateFell),
                AcceptVerdict::Accept | AcceptVerdict::Reject => false,
            };
            assert!(is_known, "{seed}: {found:?}");
        }
    }
}

/// Every noise that leaves some parts alone.
const NOISES: [fn(&mut TestRng) -> f64; 4] = [no_noise, busy, very_busy, stalling];

#[test]
fn noise_hides_no_slow_end() {
    let size_bytes = 96 * MIB;
    for noise in NOISES {
        let mut sized = 0;
        for seed in 1..=20 {
            let mut random = TestRng(seed);
            let real_bytes = (6 + (random.share() * 84.0) as u64) * MIB;
            // 2 ms a MiB before it, and 40 ms beyond.
            let mut disk = SimulatedDisk::new(Kind::Slow(20), size_bytes, real_bytes, seed);
            disk.noise = noise;
            let found = judged(&mut disk, Procedure::Whole, seed);
            let case = format!("{seed}: {real_bytes} {found:?}");
            assert_ne!(found.verdict, AcceptVerdict::Accept, "{case}");
            if let Some(from_bytes) = found.real_bytes {
                assert_eq!(found.fraud, Some(Fraud::Slow), "{case}");
                sized += u32::from(from_bytes.abs_diff(real_bytes) <= 4 * MIB);
            } else {
                assert_eq!(found.undecided, Some(Undecided::Uneven), "{case}");
            }
        }
        assert!(sized >= 15, "{sized}");
    }
}

#[test]
fn noise_in_every_part_hides_no_slow_end() {
    for seed in 1..=20 {
        let mut random = TestRng(seed);
        let real_bytes = (12 + (random.share() * 72.0) as u64) * MIB;
        let mut disk = SimulatedDisk::new(Kind::Slow(20), 96 * MIB, real_bytes, seed);
        disk.noise = starved;
        let found = judged(&mut disk, Procedure::Whole, seed);
        let case = format!("{seed}: {real_bytes} {found:?}");
        assert_ne!(found.verdict, AcceptVerdict::Accept, "{case}");
    }
    for pace in [even, zoned] {
        for seed in 1..=20 {
            let mut disk = SimulatedDisk::new(Kind::Honest, 96 * MIB, 96 * MIB, seed);
            (disk.pace, disk.noise) = (pace, starved);
            let found = judged(&mut disk, Procedure::Whole, seed);
            assert_ne!(found.verdict, AcceptVerdict::Reject, "{seed}: {found:?}");
        }
    }
}

/// Two disks of a RAID in a row, of which one is three times slower: no fake, and well known.
#[test]
fn step_that_no_noise_hides_is_no_slow_end() {
    fn stepped(share: f64, _: u64, random: f64) -> f64 {
        let factor = if share < 0.5 { 1.0 } else { 3.0 };
        even(share, 0, random) * factor
    }
    for seed in 1..=10 {
        let mut disk = SimulatedDisk::new(Kind::Honest, 96 * MIB, 96 * MIB, seed);
        disk.pace = stepped;
        let found = judged(&mut disk, Procedure::Whole, seed);
        assert_eq!(found.verdict, AcceptVerdict::Accept, "{found:?}");
    }
}

#[test]
fn noise_accuses_no_honest_disk() {
    // Where nine of ten pieces wait, some disks are undecided.
    for (noise, least) in NOISES.into_iter().zip([20, 18, 10, 20]) {
        for pace in [even, zoned] {
            let mut accepted = 0;
            for seed in 1..=20 {
                let size_bytes = (32 + 8 * seed) * MIB;
                let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, seed);
                (disk.pace, disk.noise) = (pace, noise);
                let found = judged(&mut disk, Procedure::Whole, seed);
                assert_ne!(found.verdict, AcceptVerdict::Reject, "{seed}: {found:?}");
                accepted += u32::from(found.verdict == AcceptVerdict::Accept);
            }
            assert!(accepted >= least, "{accepted}");
        }
    }
}

#[test]
fn rates_without_a_usual_one_are_undecided() {
    // One piece of six is as fast as the disk.
    fn overloaded(random: &mut TestRng) -> f64 {
        if random.share() < 0.85 {
            50e6 + 300e6 * random.share()
        } else {
            0.0
        }
    }
    for seed in 1..=10 {
        let mut disk = SimulatedDisk::new(Kind::Honest, 96 * MIB, 96 * MIB, seed);
        disk.noise = overloaded;
        let found = judged(&mut disk, Procedure::Whole, seed);
        assert_eq!(found.undecided, Some(Undecided::Uneven), "{found:?}");
    }
}

#[test]
fn disk_with_unreadable_blocks_is_rejected_and_called_no_fake() {
    for seed in 1..=10 {
        let size_bytes = 256 * MIB;
        let mut disk = SimulatedDisk::new(Kind::Honest, size_bytes, size_bytes, seed);
        disk.broken = vec![seed * 17 * BLOCK, 100 * MIB + seed * BLOCK];
        let found = judged(&mut disk, Procedure::Whole, seed);
        assert_eq!(found.verdict, AcceptVerdict::Reject);
        assert_eq!((found.fraud, found.real_bytes), (None, None), "{found:?}");
    }
}

#[test]
fn cliff_of_the_writes_is_found() {
    let mut disk = SimulatedDisk::new(Kind::Honest, 256 * MIB, 256 * MIB, 3);
    disk.pace = shingled;
    let cliff = judged(&mut disk, Procedure::Whole, 3).cliff.unwrap();
    assert!(cliff.after_bytes.abs_diff(30 * MIB) <= 4 * MIB, "{cliff:?}");
    assert!(cliff.before > 10.0 * cliff.behind);
}

#[test]
fn pass_that_was_stopped_anywhere_goes_on_to_the_same_result() {
    for stop_after in [0, 1, 300, 600] {
        let mut disk = SimulatedDisk::new(Kind::Wraps, 256 * MIB, 90 * MIB, 5);
        let whole = run(&mut disk, Procedure::Whole, 9);
        let mut disk = SimulatedDisk::new(Kind::Wraps, 256 * MIB, 90 * MIB, 5);
        let mut test = AcceptTest::new(AcceptMeasurement::new(whole.plan));
        let mut batches = 0;
        while let Some(mut batch) = test.next_batch() {
            batch.pieces.truncate(1);
            let moved = disk.carry_out(&batch);
            test.add(&batch, &moved);
            batches += 1;
            if batches == stop_after {
                let saved = serde_json::to_string(&test.measured).unwrap();
                test = AcceptTest::new(serde_json::from_str(&saved).unwrap());
            }
        }
        assert_eq!(test.measured.states, whole.states, "{stop_after}");
        assert_eq!(test.measured.displacement, whole.displacement);
        assert_eq!(test.measured.bad, whole.bad);
    }
}

#[test]
fn unfinished_pass_is_undecided_and_reads_that_may_be_cached_are_too() {
    let mut disk = SimulatedDisk::new(Kind::Honest, 64 * MIB, 64 * MIB, 5);
    let measured = run(&mut disk, Procedure::Whole, 9);
    let unfinished = AcceptMeasurement {
        finished: false,
        ..measured.clone()
    };
    let mut buffered = measured.clone();
    buffered.cache.used = diskproof_model::plan::CachePolicy::Buffered;
    let mut unproven = measured.clone();
    unproven.device.read_bytes /= 2;
    // The run that went on after the last read has read nothing itself.
    let mut unread = measured;
    unread.asked.read_bytes = 0;
    unread.device.read_bytes = 0;
    for (measured, why) in [
        (unfinished, Undecided::Unfinished),
        (buffered, Undecided::NotDirect),
        (unproven, Undecided::Unproven),
        (unread, Undecided::Unproven),
    ] {
        let found = accept_record(&measured, None, &[]).figures;
        assert_eq!(found.verdict, AcceptVerdict::Undecided);
        assert_eq!(found.undecided, Some(why));
    }
}

/// Sectors that a disk replaces in the first run of a test count in the last one, and a disk that
/// falls silent about them is not accepted.
#[test]
fn health_is_judged_over_all_runs_of_a_test() {
    let report_of = |disk: &str, reallocated_sectors| DiskHealth {
        disk: disk.to_owned(),
        serial: Some("S1".to_owned()),
        reallocated_sectors,
        ..DiskHealth::default()
    };
    let report = |reallocated_sectors| report_of("sda", reallocated_sectors);
    let mut disk = SimulatedDisk::new(Kind::Honest, 64 * MIB, 64 * MIB, 5);
    let measured = run(&mut disk, Procedure::Whole, 9);
    let (zero, many) = (Some(0), Some(400));
    for (first, this_run, last, undecided) in [
        (
            vec![report(zero)],
            many,
            vec![report(many)],
            Some(Undecided::Remapped),
        ),
        (
            vec![report(zero)],
            many,
            vec![report(None)],
            Some(Undecided::HealthLost),
        ),
        (vec![report(many)], many, vec![report(many)], None),
        // Nothing was known before the first run, but before this one.
        (
            vec![report(None)],
            zero,
            vec![report(many)],
            Some(Undecided::Remapped),
        ),
        (vec![report(None)], None, vec![report(many)], None),
        // Plugged in again, it has another name.
        (vec![report(zero)], zero, vec![report_of("sdb", zero)], None),
        (
            vec![report(zero)],
            zero,
            vec![report_of("sdb", many)],
            Some(Undecided::Remapped),
        ),
        // Not asked.
        (vec![report(zero)], zero, Vec::new(), None),
    ] {
        // Stopped after the last read, and ended by a run that read nothing.
        let measured = AcceptMeasurement {
            health_before: first,
            health: last,
            ..measured.clone()
        }
        .continued();
        let found = accept_record(&measured, None, &[report(this_run)]).figures;
        assert_eq!(found.undecided, undecided, "{:?}", measured.health);
    }
}

/// Cheap bridges share a serial.
#[test]
fn disks_of_one_serial_are_told_apart_by_their_names() {
    let report = |disk: &str, sectors: u64| DiskHealth {
        disk: disk.to_owned(),
        serial: Some("0123456789ABCDEF".to_owned()),
        reallocated_sectors: Some(sectors),
        ..DiskHealth::default()
    };
    let mut disk = SimulatedDisk::new(Kind::Honest, 64 * MIB, 64 * MIB, 5);
    let measured = run(&mut disk, Procedure::Whole, 9);
    for (second_after, undecided) in [(400, None), (401, Some(Undecided::Remapped))] {
        let measured = AcceptMeasurement {
            health: vec![report("sda", 0), report("sdb", second_after)],
            ..measured.clone()
        };
        let before = [report("sda", 0), report("sdb", 400)];
        let found = accept_record(&measured, None, &before).figures;
        assert_eq!(found.undecided, undecided, "{second_after}");
    }
}
