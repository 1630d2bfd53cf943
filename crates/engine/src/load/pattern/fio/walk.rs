//! Walks through the files of a job as fio does, and makes the requests of a lap one after another.

use super::draws::Draws;
use super::file_choice::FileChoice;
use super::places::FilePlaces;
use super::sizes::draw_size;
use crate::io::Extent;
use crate::load::pattern::step::Step;
use diskproof_model::op::OpKind;
use diskproof_model::shape::{FioFiles, FioOrder, FioSeed, FioSync, FioSyncCall};

/// An extent that no walk leaves.
pub(super) const ANYWHERE: Extent = Extent {
    start: 0,
    length: u64::MAX,
};

/// After so many files that begin again and have no request, a lap is over. One may have none by
/// chance, where the size that is drawn first does not fit.
const EMPTY_FILES_MAX: u32 = 64;

/// The next action of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FioAction {
    /// A request, at an offset in the target.
    Request(Step),
    /// A sync of what was written.
    Sync(FioSyncCall),
    /// The lap is over.
    EndLap,
}

/// The walk of a job through its files.
#[derive(Debug, Clone)]
pub(super) struct FioWalk {
    order: FioOrder,
    /// The part of the target for the files. The first one begins where it does.
    extent: Extent,
    /// The seed of a job that no run repeats.
    run_seed: u32,
    draws: Draws,
    choice: FileChoice,
    places: Vec<FilePlaces>,
    /// Requests that have started, by kind of operation.
    started: Vec<u64>,
    /// The bytes of those, in all laps.
    started_bytes: Vec<u64>,
    /// The kind of operation of a mix, and up to how many requests it stays that.
    mix_kind: usize,
    mix_until: u64,
    /// True if the last action was a sync.
    has_synced: bool,
    /// Requests to the next drawn place, in a run.
    run_left: u32,
    /// Bytes that have moved in the zone.
    zone_bytes: u64,
    /// Bytes of the requests of this lap.
    lap_bytes: u64,
    /// Laps that are over.
    laps: u64,
}

impl FioWalk {
    /// The walk in this part of a target, which it does not leave.
    pub(super) fn new(order: FioOrder, extent: Extent, run_seed: u32) -> Self {
        let choice = FileChoice::new(order.files);
        Self {
            extent,
            run_seed,
            draws: Draws::new(&order, choice.law(), run_seed),
            choice,
            places: vec![FilePlaces::new(&order, run_seed); order.files.count as usize],
            started: vec![0; order.kinds.len()],
            started_bytes: vec![0; order.kinds.len()],
            mix_kind: 0,
            mix_until: 0,
            has_synced: false,
            // The first place is drawn.
            run_left: 1,
            zone_bytes: 0,
            lap_bytes: 0,
            laps: 0,
            order,
        }
    }

    /// Laps that are over.
    pub(super) fn laps(&self) -> u64 {
        self.laps
    }

    /// Begins another lap.
    pub(super) fn begin_next_lap(&mut self) {
        self.laps += 1;
        self.lap_bytes = 0;
        self.zone_bytes = 0;
        self.mix_until = 0;
        self.has_synced = false;
        self.choice.begin_lap();
        for places in &mut self.places {
            places.start = self.order.files.start;
        }
        if self.order.draws.seed == FioSeed::Repeated {
            self.draws = Draws::new(&self.order, self.choice.law(), self.run_seed);
        }
    }

    /// The next action. Behind the end of a lap it is that end again.
    pub(super) fn next(&mut self) -> FioAction {
        if let Some(lap_bytes) = self.order.lap_bytes
            && self.lap_bytes >= lap_bytes
            && !self.order.is_time_based
        {
            return FioAction::EndLap;
        }
        let mut empty_files = 0;
        while let Some(file) = self.choice.choose(&mut self.draws) {
            if file.is_new {
                self.places[file.index].reset();
            }
            if let Some(call) = self.due_sync() {
                self.has_synced = true;
                return FioAction::Sync(call);
            }
            if let Some(step) = self.request_in(file.index) {
                return FioAction::Request(step);
            }
            if !self.order.files.service.is_weighted() {
                self.choice.end_file(file.index);
                continue;
            }
            // No file is done then: it begins again, unless it has no request at all.
            self.choice.close_file(file.index);
            empty_files += u32::from(file.is_new);
            if empty_files > EMPTY_FILES_MAX {
                break;
            }
        }
        FioAction::EndLap
    }

    /// The sync that is due, if one is. As in fio it is due until the next write.
    fn due_sync(&self) -> Option<FioSyncCall> {
        if self.has_synced {
            return None;
        }
        let written = self.written();
        if written == 0 {
            return None;
        }
        for FioSync { call, writes } in &self.order.syncs {
            if written.is_multiple_of(u64::from(*writes)) {
                return Some(*call);
            }
        }
        None
    }

    /// Writes that have started.
    fn written(&self) -> u64 {
        let mut written = 0;
        for (index, kind) in self.order.kinds.iter().enumerate() {
            if kind.does == OpKind::Write {
                written += self.started[index];
            }
        }
        written
    }

    /// The next request in a file; `None` where it is done.
    fn request_in(&mut self, file: usize) -> Option<Step> {
        let kind = self.choose_kind();
        let files = self.order.files;
        if let Some(zones) = self.order.places.zones {
            let places = &mut self.places[file];
            self.zone_bytes = places.enter_zone(&self.order, zones, kind, self.zone_bytes);
        }
        let is_run_over = self.take_turn_of_run();
        let places = &mut self.places[file];
        let place = places.next(&self.order, kind, is_run_over, &mut self.draws)?;
        if place.offset >= files.lap_bytes {
            return None;
        }
        let offset = place.offset + places.start;
        let left = files
            .file_bytes
            .checked_sub(offset)
            .filter(|left| *left > 0)?;
        let sizes = &self.order.kinds[kind].sizes;
        let room = (files.lap_bytes + files.start).saturating_sub(offset);
        let mut len = draw_size(sizes, room, &mut self.draws.sizes[kind])?;
        if u64::from(len) > left {
            return None;
        }
        let target_offset = offset_in(self.extent, files, file, offset, len)?;
        if place.is_noted {
            len = places.visit(offset, len, sizes.least_bytes);
        }
        places.note(kind, offset, len);
        self.started[kind] += 1;
        self.started_bytes[kind] += u64::from(len);
        self.has_synced = false;
        self.zone_bytes += u64::from(len);
        self.lap_bytes += u64::from(len);
        Some(Step {
            kind: self.order.kinds[kind].does,
            offset: target_offset,
            len,
        })
    }

    /// The kind of operation of the next request: the one that is drawn, unless the other one has a
    /// rate by which it is due before.
    fn choose_kind(&mut self) -> usize {
        let drawn = self.draw_kind();
        let [first, second] = &self.order.kinds[..] else {
            return drawn;
        };
        if first.bytes_per_second == 0 || second.bytes_per_second == 0 {
            return drawn;
        }
        let other = 1 - drawn;
        if self.due_seconds(other) < self.due_seconds(drawn) {
            self.mix_kind = other;
        }
        self.mix_kind
    }

    /// When the next request of a kind with a rate is due: as in fio, after the time that the bytes
    /// of the earlier ones take.
    fn due_seconds(&self, kind: usize) -> f64 {
        self.started_bytes[kind] as f64 / self.order.kinds[kind].bytes_per_second as f64
    }

    /// Draws the kind of operation of the next request. As in fio, a mix that changes its kind
    /// makes as many requests of it as its share of the others so far.
    fn draw_kind(&mut self) -> usize {
        if self.order.kinds.len() < 2 || self.started[self.mix_kind] < self.mix_until {
            return self.mix_kind;
        }
        let read_percent = self.order.read_percent;
        let drawn = usize::from(self.draws.mix.percent() > read_percent);
        if drawn != self.mix_kind {
            let percent = if drawn == 0 {
                read_percent
            } else {
                100 - read_percent
            };
            self.mix_until = self.started[self.mix_kind] * u64::from(percent) / 100;
        }
        self.mix_kind = drawn;
        drawn
    }

    /// Counts a request of the run. Returns true if the run is over, so that the next place is
    /// drawn.
    fn take_turn_of_run(&mut self) -> bool {
        let Some(run) = self.order.places.run else {
            return true;
        };
        self.run_left -= 1;
        if self.run_left > 0 {
            return false;
        }
        self.run_left = run.run_ops;
        true
    }

    /// True if no file has anything left to do in this lap.
    pub(super) fn are_files_done(&self) -> bool {
        self.choice.are_all_done()
    }
}

/// The offset in the target of a request in a file; `None` where it would leave the extent.
fn offset_in(extent: Extent, files: FioFiles, file: usize, offset: u64, len: u32) -> Option<u64> {
    let part = files.part_bytes.checked_mul(file as u64)?;
    let in_part = offset.checked_sub(files.part_start)?;
    let from_start = part.checked_add(in_part)?;
    let end = from_start.checked_add(u64::from(len))?;
    if end > extent.length {
        return None;
    }
    extent.start.checked_add(from_start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::loads::order_of_two_files;

    /// The kinds of the first requests of a mix whose reads and writes have these rates.
    fn kinds_of(reads_per_second: u64, writes_per_second: u64) -> Vec<OpKind> {
        let mut order = order_of_two_files();
        order.syncs.clear();
        order.kinds[0].bytes_per_second = reads_per_second * 4096;
        order.kinds[1].bytes_per_second = writes_per_second * 4096;
        let mut walk = FioWalk::new(order, ANYWHERE, 1);
        let mut kinds = Vec::new();
        while kinds.len() < 400 {
            match walk.next() {
                FioAction::Request(step) => kinds.push(step.kind),
                FioAction::Sync(_) => {}
                FioAction::EndLap => walk.begin_next_lap(),
            }
        }
        kinds
    }

    #[test]
    fn kinds_of_a_mix_with_rates_are_due_in_turn() {
        for (reads, writes) in [(100, 100), (300, 100), (100, 700)] {
            let kinds = kinds_of(reads, writes);
            for (index, _) in kinds.iter().enumerate() {
                let made = kinds[..=index]
                    .iter()
                    .filter(|kind| **kind == OpKind::Read)
                    .count() as f64;
                let due = (index + 1) as f64 * reads as f64 / (reads + writes) as f64;
                assert!(
                    (made - due).abs() <= 1.0,
                    "{reads}:{writes}, request {index}"
                );
            }
        }
    }

    #[test]
    fn kinds_of_a_mix_without_rates_are_drawn() {
        for (reads, writes) in [(0, 0), (100, 0)] {
            let drawn = kinds_of(reads, writes);
            let reads = drawn.iter().filter(|kind| **kind == OpKind::Read).count();
            assert!((100..300).contains(&reads), "{reads}");
            assert_eq!(drawn, kinds_of(0, 0));
        }
    }
}
