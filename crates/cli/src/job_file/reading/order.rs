//! Reads the order of a job's requests as fio makes them: for `as fio`, and only where the plain
//! patterns of a plan would move other bytes.
//!
//! What the order says is left out of the other keys. A setter of an option in [`OPTIONS_OF_ORDER`]
//! therefore asks [`JobReader::has_fio_order`] first, and sets nothing where it is true.
//! [`set_order`] is the last setter. It clears what the setters before it have set of syncs
//! (`fsync`, `fdatasync`) and of patterns (`random_run`, `in_order`, `zone_stride`).

use super::files::service_named;
use super::operations::{ZONED, ZONED_ABSOLUTE, number_part, numbers_of_list, place_zones};
use super::reader::JobReader;
use super::values::GivenValue;
use crate::job_file::environment::PathKind;
use crate::job_file::jobs::{FioJob, RequestAmount};
use crate::job_file::translation::Translated;
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::rw::{FIO_DIRECTIONS, Order, Rw};
use diskproof_model::shape::{
    FileService, FioDraws, FioFiles, FioGenerator, FioKind, FioLaw, FioOrder, FioPlaceLaw,
    FioPlaces, FioSeed, FioSizes, FioSync, FioSyncCall, FioZones, RandomRun,
};
use std::path::Path;

/// The engines of fio that take several requests before one has ended; `vsync` also where it
/// gathers one only (`fio_vsyncio_queue` of engines/sync.c).
const QUEUES: [&str; 4] = ["libaio", "io_uring", "posixaio", "vsync"];
/// The law of files of `file_service_type` without a number, as in fio (`FIO_DEF_ZIPF` and others).
const ZIPF_DEFAULT: f64 = 1.1;
const PARETO_DEFAULT: f64 = 0.2;
const NORMAL_DEFAULT: f64 = 0.0;
/// Options with which the plain patterns move other bytes than fio, unless they have this value.
const OPTIONS_OF_ORDER: [(&str, &str); 9] = [
    ("bssplit", ""),
    ("bsrange", ""),
    ("bs_unaligned", "0"),
    ("ba", ""),
    ("file_service_type", ""),
    ("percentage_random", "100"),
    ("zonemode", "none"),
    ("zonesize", "0"),
    ("zonerange", "0"),
];

impl JobReader<'_> {
    /// True if the job makes its requests in the order of fio.
    pub(super) fn has_fio_order(&self) -> Translated<bool> {
        Ok(self.can_have_fio_order()? && self.needs_fio_order()?)
    }

    /// True if fio's order of the job is one that can be made here: from one queue, at its own
    /// pace.
    fn can_have_fio_order(&self) -> Translated<bool> {
        let rw = self.written_rw()?.rw;
        let engine = self.engine(rw)?;
        let has_threads =
            matches!(engine, EngineKind::Sync | EngineKind::Mmap) && self.depth(engine)? > 1;
        let is_paced_mix = rw.is_mix() && (self.is_set("rate") || self.is_set("rate_iops"));
        let has_order_of_paces = !is_paced_mix || self.has_even_rates_of_all_kinds(rw)?;
        let has_known_places = rw.order == Order::Sequential
            || self.has_uniform_places()
            || self.has_zoned_places()
            || self.has_order_of_law()?;
        let moves_once = rw
            .chains
            .iter()
            .all(|chain| matches!(chain, [OpKind::Read] | [OpKind::Write] | [OpKind::Trim]));
        Ok(self.translation.is_as_fio()
            && self.translation.overrides.targets.is_empty()
            && moves_once
            && !has_threads
            && has_order_of_paces
            && has_known_places
            && !self.searches_depth()?
            && !self.flag("fill_device")?
            && !self.flag("create_only")?
            && self.text("zonemode") != Some("zbd"))
    }

    /// True if all random places are equally likely.
    fn has_uniform_places(&self) -> bool {
        matches!(self.text("random_distribution"), None | Some("random"))
    }

    /// True if random places are drawn in zones.
    pub(super) fn has_zoned_places(&self) -> bool {
        self.text("random_distribution")
            .is_some_and(|law| law.starts_with(ZONED))
    }

    /// True if places that are not drawn alike can be those of fio. Their seed is known of one
    /// file.
    fn has_order_of_law(&self) -> Translated<bool> {
        let is_one_file = self.bytes("nrfiles", 1)? == 1 && !self.has_several_names();
        Ok(is_one_file && self.place_law()?.is_some())
    }

    /// True if places that are not drawn alike are to be those of fio, because the blocks that
    /// verify reads back follow from them, or the end of the job: with `ba` fio draws places behind
    /// the end of the file, and with zones in bytes, too. Zones in bytes and a centre of a law are
    /// known to fio's order only.
    fn needs_places_of_fio(&self) -> Translated<bool> {
        let text = self.text("random_distribution").unwrap_or_default();
        let reads_back = self.has_verify() && self.written_rw()?.rw.changes_blocks();
        let has_centre = text.matches(':').count() > 1;
        if self.has_zoned_places() {
            return Ok(reads_back || text.starts_with(ZONED_ABSOLUTE));
        }
        let needs_law = reads_back || self.is_set("ba") || has_centre;
        Ok(self.has_order_of_law()? && needs_law)
    }

    fn has_verify(&self) -> bool {
        self.is_set("verify") || self.is_set("verify_pattern")
    }

    /// The law by which random places are drawn; `None` where all are alike, and of zones.
    fn place_law(&self) -> Translated<Option<FioLaw>> {
        match self.value("random_distribution")? {
            Some(given) if !self.has_uniform_places() && !self.has_zoned_places() => {
                Ok(parsed_service(given)?.law())
            }
            _ => Ok(None),
        }
    }

    /// True if a plain pattern would move other bytes.
    fn needs_fio_order(&self) -> Translated<bool> {
        let setting = self.written_rw()?;
        let is_percent_of_new = self.begins_at_percent_of_new();
        let has_several_files =
            self.bytes("nrfiles", 1)? > 1 || (self.has_several_names() && !self.names_device());
        let syncs = [self.count("fsync")?, self.count("fdatasync")?];
        let sync_options = syncs.iter().flatten().count();
        // fio syncs between two laps, too.
        let has_laps = self.bytes("loops", 1)? > 1 || self.is_set("io_size");
        let has_syncs_of_its_own = sync_options > 1 || (sync_options > 0 && has_laps);
        let has_sizes = self.has_list_of_sizes();
        let is_overwritten = setting.rw.order == Order::Random
            && setting.rw.changes_blocks()
            && self.has_verify()
            && self.flag("norandommap")?;
        let has_law = setting.rw.order == Order::Random && self.needs_places_of_fio()?;
        Ok(setting.rw.is_mix()
            || setting.step != 0
            || has_sizes
            || is_percent_of_new
            || has_several_files
            || has_syncs_of_its_own
            || (setting.rw.makes(OpKind::Write) && self.range_sync()?.is_some())
            || is_overwritten
            || has_law
            || OPTIONS_OF_ORDER
                .iter()
                .any(|(name, plain)| self.is_set(name) && self.text(name) != Some(plain)))
    }

    /// True if the job begins at a percentage of a file that may be new.
    fn begins_at_percent_of_new(&self) -> bool {
        ["offset", "offset_increment"]
            .iter()
            .any(|name| self.text(name).is_some_and(|text| text.ends_with('%')))
            && !self.names_device()
    }

    /// True if reads and writes have different sizes.
    fn has_list_of_sizes(&self) -> bool {
        self.text("bs")
            .is_some_and(|sizes| numbers_of_list(sizes).count() > 1)
    }

    /// Refuses sizes and places that fio draws beyond the end of a file, where its order is
    /// unknown. It ends the job with the first of them.
    fn check_draws_behind_end(&self) -> Translated<()> {
        let is_random = self.written_rw()?.rw.order == Order::Random;
        if !self.translation.is_as_fio() || !is_random {
            return Ok(());
        }
        if let Some(given) = self.value("ba")?
            && self.place_law()?.is_some()
            && !self.has_order_of_law()?
        {
            return Err(given.error(
                "with random_distribution fio draws places behind the end of the file, and ends \
                 anywhere; remove one of the two",
            ));
        }
        Ok(())
    }

    /// True if `filename` names a device, which has its size before the first lap, and a queue of
    /// its own beside others.
    fn names_device(&self) -> bool {
        let names = self
            .section
            .settings
            .iter()
            .filter(|setting| setting.option.key == "filename");
        names
            .filter_map(|setting| setting.option.value.as_deref())
            .flat_map(|value| value.split(':'))
            .any(|name| {
                let kind = self.translation.path_kind(Path::new(name));
                matches!(kind, PathKind::Device(_))
            })
    }

    /// True if `filename` names several files.
    fn has_several_names(&self) -> bool {
        let settings = self
            .section
            .settings
            .iter()
            .filter(|setting| setting.option.key == "filename")
            .count();
        settings > 1
            || self
                .text("filename")
                .is_some_and(|names| names.contains(':'))
    }

    /// The order of the job's requests, but for its files; `None` where plain patterns do.
    fn fio_order(&self, job: &FioJob) -> Translated<Option<FioOrder>> {
        if !self.has_fio_order()? {
            return Ok(None);
        }
        let setting = self.written_rw()?;
        let rw = setting.rw;
        let is_random = rw.order == Order::Random;
        let mut all_kinds = Vec::new();
        for kind in FIO_DIRECTIONS {
            all_kinds.push(self.fio_kind(kind, is_random)?);
        }
        let unit_bytes = all_kinds.iter().map(|kind| kind.sizes.least_bytes).min();
        let is_aligned = all_kinds
            .iter()
            .all(|kind| kind.align_bytes == u64::from(kind.sizes.least_bytes));
        let law = if is_random { self.place_law()? } else { None };
        let has_zones = is_random && self.has_zoned_places();
        let is_mapped =
            is_random && is_aligned && law.is_none() && !has_zones && !self.flag("norandommap")?;
        let mut kinds = made_kinds(all_kinds, rw, job.rw());
        if let [kind] = &mut kinds[..] {
            // Nothing else may be due before it.
            kind.bytes_per_second = 0;
        }
        let mut run = None;
        if is_random && setting.step > 0 {
            run = Some(RandomRun {
                run_ops: u32::try_from(setting.step).unwrap_or(u32::MAX),
                follow: self.run_follow()?,
            });
        }
        Ok(Some(FioOrder {
            draws: self.fio_draws(job)?,
            read_percent: self.read_percent(rw)?,
            unit_bytes: u64::from(unit_bytes.unwrap_or(1)),
            places: FioPlaces {
                is_random,
                is_mapped,
                law: law.map(|law| FioPlaceLaw {
                    law,
                    places: 1,
                    seed: 0,
                }),
                run,
                gap_bytes: if is_random { 0 } else { setting.step },
                zones: self.fio_zones()?,
            },
            files: self.fio_files()?,
            syncs: self.fio_syncs(rw)?,
            lap_bytes: None,
            is_time_based: job.extent.is_time_based,
            kinds,
        }))
    }

    /// The smallest size of any kind of operation, also of those that the job does not make.
    pub(super) fn smallest_size(&self) -> Translated<u64> {
        let mut smallest = u32::MAX;
        for kind in FIO_DIRECTIONS {
            smallest = smallest.min(self.fio_sizes(kind)?.least_bytes);
        }
        Ok(u64::from(smallest))
    }

    /// A kind of operation, whether the job makes it or not.
    fn fio_kind(&self, kind: OpKind, is_random: bool) -> Translated<FioKind> {
        let sizes = self.fio_sizes(self.kind_of_sizes(kind)?)?;
        let mut align_bytes = u64::from(sizes.least_bytes);
        if is_random && let Some(given) = self.value("ba")? {
            match given.size(number_part(given.text, kind))? {
                0 => {}
                bytes => align_bytes = bytes,
            }
        }
        let never_random = self.written_rw()?.step < 0;
        let random_percent = match self.value("percentage_random")? {
            _ if is_random && never_random => 0,
            Some(given) => given.size(number_part(given.text, kind))?.min(100) as u8,
            None => 100,
        };
        let bytes_per_second = self.paced_bytes_of(kind, sizes.least_bytes)?;
        let mut zones = Vec::new();
        if is_random && let Some(given) = self.value("random_distribution")? {
            zones = place_zones(given, kind)?;
        }
        Ok(FioKind {
            does: kind,
            sizes,
            align_bytes,
            random_percent,
            zones,
            bytes_per_second,
        })
    }

    /// The sizes of a kind of operation.
    fn fio_sizes(&self, kind: OpKind) -> Translated<FioSizes> {
        let is_unaligned = self.flag("bs_unaligned")?;
        if let Some(part) = self.sizes_part("bssplit", kind)? {
            let split = super::blocks::split_shares(part.given, part.text)?;
            let least = split.iter().map(|share| share.bytes).min();
            let most = split.iter().map(|share| share.bytes).max();
            return Ok(FioSizes {
                least_bytes: least.unwrap_or(1),
                most_bytes: most.unwrap_or(1),
                split: if split.len() > 1 { split } else { Vec::new() },
                is_unaligned,
            });
        }
        let (least, most) = match self.sizes_part("bsrange", kind)? {
            Some(range) => range_ends(range.given, range.text)?,
            None => {
                let bytes = self.only_size(kind)?;
                (bytes, bytes)
            }
        };
        Ok(FioSizes {
            least_bytes: least,
            most_bytes: most,
            split: Vec::new(),
            is_unaligned,
        })
    }

    /// The random numbers of the job, whose number is not known yet.
    pub(super) fn fio_draws(&self, job: &FioJob) -> Translated<FioDraws> {
        let seed = match self.value("randseed")? {
            Some(given) => FioSeed::Given(given.size(given.text)? as u32),
            None if self.optional_flag("randrepeat")? == Some(false) => FioSeed::OfRun,
            None => FioSeed::Repeated,
        };
        let repeats_all = self.flag("allrandrepeat")?;
        Ok(FioDraws {
            job: 1,
            seed,
            repeats_all,
            verifies: job.flags.verify == Some(true) || job.flags.signs_only,
            generator: match self.text("random_generator") {
                Some("tausworthe64") => FioGenerator::Tausworthe64,
                Some("lfsr") => FioGenerator::Lfsr,
                _ => FioGenerator::Tausworthe,
            },
            seeds_places: self.optional_flag("randrepeat")? == Some(false)
                && (matches!(seed, FioSeed::Given(_)) || repeats_all),
        })
    }

    /// The percentage of reads in a mix.
    fn read_percent(&self, rw: Rw) -> Translated<u8> {
        Ok(match self.read_share(rw)? {
            Some(share) => (share.0 / 10) as u8,
            None => 0,
        })
    }

    fn fio_zones(&self) -> Translated<Option<FioZones>> {
        let zone_bytes = self.bytes("zonesize", 0)?;
        if !self.has_zones()? {
            return Ok(None);
        }
        let range_bytes = match self.bytes("zonerange", zone_bytes)? {
            0 => zone_bytes,
            bytes => bytes,
        };
        Ok(Some(FioZones {
            moved_bytes: zone_bytes,
            range_bytes,
            skip_bytes: self.bytes("zoneskip", 0)?,
        }))
    }

    /// The files, whose places and sizes are not known yet.
    fn fio_files(&self) -> Translated<FioFiles> {
        let mut service = FileService::RoundRobin;
        let mut turn_ops = 1;
        if let Some(given) = self.value("file_service_type")? {
            service = parsed_service(given)?;
            if let Some((_, number)) = given.text.split_once(':')
                && !service.is_weighted()
            {
                turn_ops = given.size(number)?.clamp(1, u64::from(u32::MAX)) as u32;
            }
            if service.is_weighted() && self.is_set("verify") {
                return Err(given.error(
                    "no file is ever done then, and verify reads the blocks of files that are; \
                     use roundrobin, random or sequential",
                ));
            }
        }
        let open_max = match self.bytes("openfiles", 0)? {
            0 => u32::MAX,
            count => u32::try_from(count).unwrap_or(u32::MAX),
        };
        Ok(FioFiles {
            count: 1,
            part_start: 0,
            part_bytes: 0,
            first_start: 0,
            start: 0,
            lap_bytes: 0,
            file_bytes: 0,
            service,
            turn_ops,
            open_max,
        })
    }

    fn fio_syncs(&self, rw: Rw) -> Translated<Vec<FioSync>> {
        let mut syncs = Vec::new();
        if !rw.makes(OpKind::Write) {
            return Ok(syncs);
        }
        for (name, call) in [
            ("fsync", FioSyncCall::Fsync),
            ("fdatasync", FioSyncCall::Fdatasync),
        ] {
            if let Some(writes) = self.count(name)? {
                let writes = u32::try_from(writes.0).unwrap_or(u32::MAX);
                syncs.push(FioSync { call, writes });
            }
        }
        syncs.extend(self.range_sync()?);
        Ok(syncs)
    }
}

/// The kinds of operation of a job that is written as `written`. With `rwmixread=0` a mix makes no
/// reads; with `verify_only` a job reads the blocks that it would write, in their sizes.
fn made_kinds(all: Vec<FioKind>, written: Rw, made: Rw) -> Vec<FioKind> {
    let mut kinds = all;
    if written.is_mix() {
        kinds.retain(|kind| written.makes(kind.does) && made.makes(kind.does));
        return kinds;
    }
    kinds.retain(|kind| kind.does == written.first());
    for kind in &mut kinds {
        kind.does = made.first();
    }
    kinds
}

/// True if an engine of fio takes several requests before one has ended.
pub(super) fn has_queue(engine: &str) -> bool {
    QUEUES.contains(&engine)
}

/// The choice of files, or of places, which are drawn by the same laws: a word, and for laws a
/// number and a centre behind it. The setter of `random_distribution` has refused unknown words
/// before.
fn parsed_service(given: GivenValue<'_>) -> Translated<FileService> {
    let mut parts = given.text.split(':');
    let word = parts.next().unwrap_or_default();
    let mut numbers = Vec::new();
    for part in parts {
        let Ok(number) = part.parse::<f64>() else {
            return Err(given.error("write numbers behind the colons, such as zipf:1.2:0.5"));
        };
        numbers.push(number);
    }
    let number = numbers.first().copied();
    let centre = numbers.get(1).copied();
    if let Some(service) = service_named(word) {
        return Ok(service);
    }
    let service = match word {
        "zipf" => FileService::Zipf {
            theta: number.unwrap_or(ZIPF_DEFAULT),
            centre,
        },
        "pareto" => FileService::Pareto {
            power: number.unwrap_or(PARETO_DEFAULT),
            centre,
        },
        "normal" | "gauss" => FileService::Normal {
            deviation: number.unwrap_or(NORMAL_DEFAULT),
            centre,
        },
        _ => {
            return Err(given.error(
                "use roundrobin, random, sequential, zipf:THETA, pareto:POWER or normal:PERCENT",
            ));
        }
    };
    if !service.can_be_drawn() {
        return Err(given.error(
            "a theta is not 1, a power lies between 0 and 1, a deviation below 100 percent, and a \
             centre from 0 to 1",
        ));
    }
    Ok(service)
}

/// The ends of a range of sizes.
fn range_ends(given: GivenValue<'_>, range: &str) -> Translated<(u32, u32)> {
    let (low, high) = range.split_once(['-', ':']).unwrap_or((range, range));
    let low = given.size(low.trim())?;
    let high = given.size(high.trim())?;
    match (u32::try_from(low), u32::try_from(high)) {
        (Ok(low), Ok(high)) if low > 0 && low <= high => Ok((low, high)),
        _ => Err(given.error("write a smaller and a larger size, of less than 4 GiB")),
    }
}

/// Sets the order of the requests, after everything that it depends on.
pub(super) fn set_order(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    reader.check_draws_behind_end()?;
    let Some(order) = reader.fio_order(job)? else {
        return Ok(());
    };
    let mut largest_bytes = 1;
    let mut place_bytes = u64::MAX;
    for kind in FIO_DIRECTIONS {
        let sizes = reader.fio_sizes(kind)?;
        largest_bytes = largest_bytes.max(u64::from(sizes.most_bytes));
        if kind != OpKind::Trim {
            place_bytes = place_bytes.min(u64::from(sizes.least_bytes));
        }
    }
    job.requests.fio_amount = Some(RequestAmount {
        largest_bytes,
        place_bytes,
        has_queue: reader.text("ioengine").is_some_and(has_queue),
        io_percent: match reader.amount("io_size")? {
            Some(Amount::Percent(percent)) => Some(percent),
            _ => None,
        },
    });
    job.flags.fsync = None;
    job.flags.fdatasync = None;
    let pattern_order = &mut job.flags.shape.order;
    pattern_order.random_run = None;
    pattern_order.in_order.clear();
    pattern_order.zone_stride = None;
    pattern_order.fio = Some(Box::new(order));
    Ok(())
}
