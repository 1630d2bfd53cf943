//! Chooses the place of the next request in a file, as fio does: behind the last one, at random, in
//! runs or in zones.

use super::draws::{Draws, seed_of_places};
use super::law::PlaceLaw;
use super::shift_register::ShiftRegister;
use crate::load::pattern::unit_map::UnitMap;
use diskproof_model::shape::{
    FioGenerator, FioOrder, FioPlaceZone, FioZoneSize, FioZones, RunFollow,
};
use std::ops::Range;

/// The requests to a file so far, in its lap.
#[derive(Debug, Clone)]
pub(super) struct FilePlaces {
    /// Where the lap, or the zone, begins.
    pub(super) start: u64,
    /// The last request of each kind of operation.
    last: Vec<LastRequest>,
    /// The units that random requests have visited.
    map: Option<UnitMap>,
    /// Draws each unit once in place of a map, where the job has such a generator.
    register: Option<ShiftRegister>,
    /// The law by which places are drawn; `None` where all are alike.
    law: Option<PlaceLaw>,
}

/// The last request of a kind.
#[derive(Debug, Clone, Copy)]
struct LastRequest {
    /// Where it began; `None` before the first one.
    start: Option<u64>,
    /// Where it ended, or where the first one begins.
    end: u64,
}

/// A place, counted from the start of the lap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) offset: u64,
    /// True if the map notes that it is visited.
    pub(super) is_noted: bool,
}

impl Place {
    fn unnoted(offset: u64) -> Self {
        Self {
            offset,
            is_noted: false,
        }
    }
}

impl FilePlaces {
    /// A file before its first lap; `run_seed` is that of a job that no run repeats.
    pub(super) fn new(order: &FioOrder, run_seed: u32) -> Self {
        let places = &order.places;
        let units = order.drawn_bytes() / order.unit_bytes.max(1);
        let has_register = order.draws.generator == FioGenerator::Lfsr;
        let mut map = None;
        let mut register = None;
        if places.is_random && places.law.is_none() && has_register {
            register = ShiftRegister::new(units, seed_of_places(order.draws, run_seed));
        } else if places.is_random && places.is_mapped {
            map = Some(UnitMap::with_open_end(units));
        }
        let start = order.files.first_start;
        let unmoved = LastRequest {
            start: None,
            end: start,
        };
        Self {
            start,
            last: vec![unmoved; order.kinds.len()],
            map,
            register,
            law: order.places.law.map(PlaceLaw::new),
        }
    }

    /// Forgets all requests: the next ones begin at the start.
    pub(super) fn reset(&mut self) {
        self.last.fill(LastRequest {
            start: None,
            end: self.start,
        });
        if let Some(map) = &mut self.map {
            map.clear();
        }
        if let Some(register) = &mut self.register {
            register.reset();
        }
    }

    /// Notes that a request of this kind of operation has started.
    pub(super) fn note(&mut self, kind: usize, offset: u64, len: u32) {
        self.last[kind] = LastRequest {
            start: Some(offset),
            end: offset + u64::from(len),
        };
    }

    /// Notes that units are visited from `offset` on, and returns the bytes up to the first that
    /// was visited before. As in fio, units are those of the smallest size of this kind of
    /// operation.
    pub(super) fn visit(&mut self, offset: u64, len: u32, least_bytes: u32) -> u32 {
        let Some(map) = &mut self.map else {
            return len;
        };
        let first = (offset - self.start) / u64::from(least_bytes);
        let wanted = len.div_ceil(least_bytes);
        let mut taken = 0;
        while taken < wanted && map.take(first + u64::from(taken)) {
            taken += 1;
        }
        len.min(taken.max(1) * least_bytes)
    }

    /// Enters the next zone where that is due. `moved_bytes` have moved since the last one began;
    /// returns how many count from here on.
    pub(super) fn enter_zone(
        &mut self,
        order: &FioOrder,
        zones: FioZones,
        kind: usize,
        moved_bytes: u64,
    ) -> u64 {
        let mut moved_bytes = moved_bytes;
        if moved_bytes >= zones.moved_bytes {
            moved_bytes = 0;
            self.start += zones.range_bytes + zones.skip_bytes;
            if self.start >= order.files.file_bytes {
                self.start = order.files.start;
            }
            self.last[kind].end = self.start;
        }
        if self.last[kind].end >= self.start + zones.range_bytes {
            self.last[kind].end = self.start;
        }
        if moved_bytes.is_multiple_of(zones.range_bytes.max(1)) {
            self.reset();
        }
        moved_bytes
    }

    /// The place of the next request of this kind of operation; `None` where the file has none.
    /// `is_run_over` says whether a run of requests is over.
    pub(super) fn next(
        &mut self,
        order: &FioOrder,
        kind: usize,
        is_run_over: bool,
        draws: &mut Draws,
    ) -> Option<Place> {
        let places = &order.places;
        if !is_run_over
            && let Some(run) = places.run
            && run.follow == RunFollow::Identical
        {
            return Some(Place::unnoted(self.last_place(kind)));
        }
        if !places.is_random {
            return self.place_in_order(order, kind).map(Place::unnoted);
        }
        let percent = order.kinds[kind].random_percent;
        if is_run_over && (percent == 100 || draws.randomness[kind].percent() <= percent) {
            return Some(Place {
                offset: self.random(order, kind, draws)?,
                is_noted: true,
            });
        }
        let offset = match self.place_in_order(order, kind) {
            Some(offset) => offset,
            None => self.random(order, kind, draws)?,
        };
        Some(Place::unnoted(offset))
    }

    /// The place of the last request.
    fn last_place(&self, kind: usize) -> u64 {
        match self.last[kind].start {
            Some(start) => start - self.start,
            None => 0,
        }
    }

    /// A random place. Where only time ends the job, or no file is ever done, the file begins again
    /// once all are visited.
    fn random(&mut self, order: &FioOrder, kind: usize, draws: &mut Draws) -> Option<u64> {
        let mut block = self.random_block(order, kind, draws);
        if block.is_none() && (order.is_time_based || order.files.service.is_weighted()) {
            self.reset();
            block = self.random_block(order, kind, draws);
        }
        Some(block? * order.kinds[kind].align_bytes)
    }

    /// The number of a random block; `None` where all are visited, or none has room.
    fn random_block(&mut self, order: &FioOrder, kind: usize, draws: &mut Draws) -> Option<u64> {
        if let Some(law) = &mut self.law {
            return Some(law.place());
        }
        let align_bytes = order.kinds[kind].align_bytes;
        let least_bytes = u64::from(order.kinds[kind].sizes.least_bytes);
        let room = order
            .drawn_bytes()
            .checked_sub(least_bytes.saturating_sub(align_bytes))?;
        let blocks = room / align_bytes;
        if blocks == 0 {
            return None;
        }
        if let Some(register) = &mut self.register {
            return register.next();
        }
        let zones = &order.kinds[kind].zones;
        if !zones.is_empty() {
            let zone = drawn_zone(zones, draws.zones.percent(), blocks, align_bytes)?;
            return Some(zone.start + draws.places.below(zone.end - zone.start));
        }
        let block = draws.places.below(blocks);
        match &self.map {
            Some(map) if map.is_taken(block) => map.next_free(block),
            _ => Some(block),
        }
    }

    /// The place behind the last request, or behind the gap.
    fn place_in_order(&mut self, order: &FioOrder, kind: usize) -> Option<u64> {
        let files = order.files;
        let gap = order.places.gap_bytes;
        let last_end = &mut self.last[kind].end;
        if order.is_time_based && files.count == 1 && *last_end >= files.lap_bytes + files.start {
            *last_end = self.start;
        }
        if *last_end >= files.file_bytes {
            return None;
        }
        let top = files.lap_bytes.min(files.file_bytes);
        if gap < 0 && self.start > 0 && *last_end == self.start {
            *last_end = top;
        }
        // As in fio, a place before the start wraps to one that is too large.
        let place = last_end.wrapping_sub(self.start);
        if place == 0 || gap == 0 {
            return Some(place);
        }
        let behind_gap = place.wrapping_add_signed(gap);
        if behind_gap < files.file_bytes {
            Some(behind_gap)
        } else if gap > 0 {
            Some(self.start)
        } else {
            Some(top.wrapping_add_signed(gap))
        }
    }
}

/// The blocks of the zone that a drawn percentage falls into. As in fio, a file has no place where
/// the zone in bytes ends behind it.
fn drawn_zone(
    zones: &[FioPlaceZone],
    drawn_percent: u8,
    blocks: u64,
    align_bytes: u64,
) -> Option<Range<u64>> {
    let mut percent_end = 0;
    let mut before = 0;
    for zone in zones {
        percent_end += zone.access_percent;
        if drawn_percent > percent_end {
            before += match zone.size {
                FioZoneSize::Percent(percent) => u64::from(percent),
                FioZoneSize::Bytes(bytes) => bytes,
            };
            continue;
        }
        return match zone.size {
            FioZoneSize::Percent(percent) => {
                let start = blocks * before / 100;
                Some(start..start + blocks * u64::from(percent) / 100)
            }
            FioZoneSize::Bytes(bytes) => {
                let end = (before + bytes) / align_bytes;
                (end <= blocks).then_some(before / align_bytes..end)
            }
        };
    }
    None
}
