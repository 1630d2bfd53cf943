//! Checks whether requests can be made in an order of fio that somebody else may have written.

use super::fio_order::{FioKind, FioOrder, FioSyncCall, FioZoneSize};

/// The most files: each takes memory.
pub const FIO_FILES_MAX: u32 = 1 << 20;
/// More blocks in a file than random numbers of 32 bits can say; a map of them takes 512 MiB.
pub const FIO_UNITS_MAX: u64 = 1 << 32;
/// No file is larger, and no sum of a few such numbers overflows.
const BYTES_MAX: u64 = 1 << 60;

impl FioOrder {
    /// Why no requests can be made in this order; `None` where they can.
    pub fn fault(&self) -> Option<&'static str> {
        if self.kinds.is_empty() || self.kinds.len() > 2 || self.read_percent > 100 {
            return Some("kinds of operation without a mix");
        }
        if self.unit_bytes == 0 || !self.kinds.iter().all(|kind| self.has_sizes(kind)) {
            return Some("sizes of operations that cannot be drawn");
        }
        if !self.kinds.iter().all(has_zones_that_can_be_drawn) {
            return Some("zones that cannot be drawn");
        }
        let places = &self.places;
        if places.run.is_some_and(|run| run.run_ops == 0) {
            return Some("runs of no operation");
        }
        let files = &self.files;
        if let Some(law) = places.law
            && (!law.law.can_be_drawn()
                || law.places == 0
                || law.places >= FIO_UNITS_MAX
                || places.is_mapped
                || files.count != 1)
        {
            return Some("places that cannot be drawn");
        }
        if files.count == 0 || files.count > FIO_FILES_MAX {
            return Some("no files, or too many");
        }
        if !files.service.can_be_drawn() {
            return Some("files that cannot be drawn");
        }
        if self.syncs.iter().any(|sync| sync.writes == 0) {
            return Some("a sync after no write");
        }
        let has_range = self
            .syncs
            .iter()
            .any(|sync| matches!(sync.call, FioSyncCall::FileRange(_)));
        if has_range && files.count > 1 {
            return Some("syncs of a range in several files");
        }
        let mut sizes = vec![
            files.part_start,
            files.part_bytes.saturating_mul(u64::from(files.count)),
            files.first_start,
            files.start,
            files.lap_bytes,
            files.file_bytes,
            places.gap_bytes.unsigned_abs(),
        ];
        if let Some(zones) = places.zones {
            if zones.range_bytes == 0 {
                return Some("zones of no byte");
            }
            sizes.extend([zones.moved_bytes, zones.range_bytes, zones.skip_bytes]);
        }
        if sizes.iter().any(|bytes| *bytes > BYTES_MAX) {
            return Some("places that no target has");
        }
        let drawn_units = files.file_bytes / self.unit_bytes;
        if places.is_random && drawn_units >= FIO_UNITS_MAX || self.mapped_units() >= FIO_UNITS_MAX
        {
            return Some("more blocks than can be drawn");
        }
        None
    }

    /// The blocks of which a map notes whether they are visited, in all files.
    fn mapped_units(&self) -> u64 {
        if !(self.places.is_random && self.places.is_mapped) {
            return 0;
        }
        let units = self.drawn_bytes() / self.unit_bytes.max(1);
        units.saturating_mul(u64::from(self.files.count))
    }

    /// The bytes in which random places are drawn: of a file, or of a zone.
    pub fn drawn_bytes(&self) -> u64 {
        match self.places.zones {
            Some(zones) => zones.range_bytes,
            None => self.files.lap_bytes.min(self.files.file_bytes),
        }
    }

    /// True if every size of this kind can be drawn and put at a place.
    fn has_sizes(&self, kind: &FioKind) -> bool {
        let sizes = &kind.sizes;
        let fits_map = !self.places.is_mapped
            || (kind.align_bytes == u64::from(sizes.least_bytes)
                && kind.align_bytes >= self.unit_bytes);
        sizes.least_bytes > 0
            && sizes.least_bytes <= sizes.most_bytes
            && kind.align_bytes > 0
            && kind.align_bytes <= BYTES_MAX
            && kind.random_percent <= 100
            && fits_map
            && sizes.split.iter().all(|share| {
                share.bytes >= sizes.least_bytes
                    && share.bytes <= sizes.most_bytes
                    && share.percent <= 100
            })
    }
}

/// True if the zones have all places of a kind, and are parts of a file.
fn has_zones_that_can_be_drawn(kind: &FioKind) -> bool {
    let mut access_percent: u32 = 0;
    let mut size_percent: u64 = 0;
    let mut bytes: u64 = 0;
    for zone in &kind.zones {
        access_percent += u32::from(zone.access_percent);
        match zone.size {
            FioZoneSize::Percent(percent) => size_percent += u64::from(percent),
            FioZoneSize::Bytes(size) => bytes = bytes.saturating_add(size),
        }
    }
    let are_of_one_unit = size_percent == 0 || bytes == 0;
    (kind.zones.is_empty() || access_percent == 100)
        && size_percent <= 100
        && bytes <= BYTES_MAX
        && are_of_one_unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::OpKind;
    use crate::plan::Workload;
    use crate::shape::{
        FileService, FioDraws, FioFiles, FioGenerator, FioLaw, FioLawKind, FioPlaceLaw,
        FioPlaceZone, FioPlaces, FioSeed, FioSizeShare, FioSizes, FioZones, RandomRun, RunFollow,
    };

    fn good() -> FioOrder {
        FioOrder {
            draws: FioDraws {
                job: 1,
                seed: FioSeed::Repeated,
                repeats_all: false,
                verifies: false,
                seeds_places: false,
                generator: FioGenerator::Tausworthe,
            },
            kinds: vec![FioKind {
                does: OpKind::Read,
                sizes: FioSizes {
                    least_bytes: 4096,
                    most_bytes: 8192,
                    split: Vec::new(),
                    is_unaligned: false,
                },
                align_bytes: 4096,
                random_percent: 100,
                zones: Vec::new(),
                bytes_per_second: 0,
            }],
            read_percent: 0,
            unit_bytes: 4096,
            places: FioPlaces {
                is_random: true,
                is_mapped: true,
                law: None,
                run: None,
                gap_bytes: 0,
                zones: None,
            },
            files: FioFiles {
                count: 2,
                part_start: 0,
                part_bytes: 65_536,
                first_start: 0,
                start: 0,
                lap_bytes: 65_536,
                file_bytes: 65_536,
                service: FileService::RoundRobin,
                turn_ops: 1,
                open_max: 2,
            },
            syncs: Vec::new(),
            lap_bytes: None,
            is_time_based: false,
        }
    }

    #[test]
    fn orders_that_no_job_has_are_refused() {
        assert_eq!(good().fault(), None);
        let changes: [fn(&mut FioOrder); 21] = [
            |order| {
                order.files.count = 1;
                order.places.is_mapped = false;
                let kind = FioLawKind::Zipf { theta: 1.0 };
                let law = FioLaw { kind, centre: None };
                let (places, seed) = (16, 1);
                order.places.law = Some(FioPlaceLaw { law, places, seed });
            },
            |order| order.kinds.clear(),
            |order| order.read_percent = 101,
            |order| order.unit_bytes = 0,
            |order| order.kinds[0].sizes.least_bytes = 0,
            |order| order.kinds[0].sizes.most_bytes = 4095,
            |order| order.kinds[0].align_bytes = 0,
            |order| order.kinds[0].align_bytes = 512,
            |order| order.kinds[0].random_percent = 101,
            |order| {
                let share = |bytes, percent| FioSizeShare { bytes, percent };
                order.kinds[0].sizes.split = vec![share(512, 50), share(8192, 50)];
            },
            |order| {
                order.places.run = Some(RandomRun {
                    run_ops: 0,
                    follow: RunFollow::Identical,
                });
            },
            |order| {
                order.places.zones = Some(FioZones {
                    moved_bytes: 4096,
                    range_bytes: 0,
                    skip_bytes: 4096,
                });
            },
            |order| {
                let share = |bytes, percent| FioSizeShare { bytes, percent };
                order.kinds[0].sizes.split = vec![share(4096, 1), share(8192, 101)];
            },
            |order| {
                let (access_percent, size) = (99, FioZoneSize::Percent(100));
                order.kinds[0].zones = vec![FioPlaceZone {
                    access_percent,
                    size,
                }];
            },
            |order| order.files.count = 0,
            |order| order.files.count = 4_000_000_000,
            |order| {
                let centre = None;
                order.files.service = FileService::Zipf { theta: 1.0, centre };
            },
            |order| {
                let centre = Some(1.5);
                let power = 0.2;
                order.files.service = FileService::Pareto { power, centre };
            },
            |order| order.files.part_bytes = u64::MAX,
            |order| order.places.gap_bytes = i64::MIN,
            |order| (order.files.lap_bytes, order.files.file_bytes) = (1 << 43, 1 << 43),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut order = good();
            change(&mut order);
            assert!(order.fault().is_some(), "{number}");
        }
    }

    #[test]
    fn order_makes_what_its_workload_makes() {
        let mut reads = Workload {
            block_bytes: 8192,
            ..Workload::named("reads")
        };
        reads.shape.order.fio = Some(Box::new(good()));
        assert_eq!(reads.order_fault(), None);
        let too_small = Workload {
            block_bytes: 4096,
            ..reads.clone()
        };
        assert!(too_small.order_fault().is_some());
        let mut writes = good();
        writes.kinds[0].does = OpKind::Write;
        reads.shape.order.fio = Some(Box::new(writes));
        assert!(reads.order_fault().is_some());
    }
}
