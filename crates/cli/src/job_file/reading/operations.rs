//! Reads the operations of a job and their places: direction, order, mix, distribution, gaps,
//! zones.

use super::reader::JobReader;
use super::values::GivenValue;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::{JobFileError, Translated};
use crate::standard_workloads::READS_ONLY_PERMILLE;
use crate::workload::{BlockSize, Bytes, ReadShare, ValueError};
use diskproof_model::op::OpKind;
use diskproof_model::rw::{FIO_DIRECTIONS, Order, Rw};
use diskproof_model::shape::{FioPlaceZone, FioZoneSize, RandomRun, RunFollow, ZoneStride};

/// The word of a distribution in zones, and of one whose zones are in bytes.
pub(super) const ZONED: &str = "zoned";
pub(super) const ZONED_ABSOLUTE: &str = "zoned_abs";

/// The `rwmixread` without the option, as in fio.
const READ_PERCENT_DEFAULT: u64 = 50;
/// The values of `rw_sequencer`.
const RUN_FOLLOWS: [(&str, RunFollow); 2] = [
    ("sequential", RunFollow::Sequential),
    ("identical", RunFollow::Identical),
];
/// The length of a run after which no random offset comes.
const NO_RANDOM_OFFSET: i64 = -1;
/// The values of `zonemode`; true where there are zones.
const ZONE_MODES: [(&str, bool); 2] = [("none", false), ("strided", true)];

/// The setting `rw`, such as `read:8k`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RwSetting {
    /// The order and the direction of requests.
    pub rw: Rw,
    /// The number behind the colon; 0 without one.
    pub step: i64,
}

impl JobReader<'_> {
    /// The setting `rw` as it acts with the other options. A mix without reads or without writes is
    /// none.
    pub(super) fn rw_setting(&self) -> Translated<RwSetting> {
        let RwSetting { mut rw, mut step } = self.written_rw()?;
        if rw.is_mix() {
            match self.read_share(rw)? {
                Some(ReadShare(0)) => rw.chains = Rw::RANDWRITE.chains,
                Some(ReadShare(READS_ONLY_PERMILLE)) => rw.chains = Rw::RANDREAD.chains,
                _ => {}
            }
        }
        let mut has_random = false;
        for kind in rw.kinds() {
            has_random |= self.random_percent(kind)? > 0;
        }
        // Where fio counts down from a negative number, the next random offset never comes.
        if rw.order == Order::Random && (step < 0 || !has_random) {
            rw.order = Order::Sequential;
            step = 0;
        }
        Ok(RwSetting { rw, step })
    }

    /// The setting `rw` as the job writes it; `read` without one.
    pub(super) fn written_rw(&self) -> Translated<RwSetting> {
        let Some(given) = self.value("rw")? else {
            return Ok(RwSetting {
                rw: Rw::READ,
                step: 0,
            });
        };
        let (word, number) = given.text.split_once(':').unwrap_or((given.text, "0"));
        let rw: Rw = word.trim().parse().map_err(|why| given.error(why))?;
        if rw.order == Order::Random {
            let step = run_length(number.trim(), given.text.contains(':'));
            return Ok(RwSetting { rw, step });
        }
        let (bytes, is_back) = match number.trim().strip_prefix('-') {
            Some(back) => (given.size(back)?, true),
            None => (given.size(number.trim())?, false),
        };
        let step = i64::try_from(bytes).map_err(|_| given.error("its step is too large"))?;
        Ok(RwSetting {
            rw,
            step: if is_back { -step } else { step },
        })
    }

    /// The percentage of a kind of operation that has random offsets: 0 or 100.
    fn random_percent(&self, kind: OpKind) -> Translated<u64> {
        let Some(given) = self.value("percentage_random")? else {
            return Ok(100);
        };
        match given.size(number_part(given.text, kind))? {
            percent @ (0 | 100) => Ok(percent),
            percent if percent < 100 && self.has_fio_order()? => Ok(percent),
            _ => Err(given.error(
                "a direction is random or sequential here: write 0 or 100 for each, or two \
                 concurrent sections",
            )),
        }
    }

    /// The place of the requests of a run after the first one.
    pub(super) fn run_follow(&self) -> Translated<RunFollow> {
        let follow = self.choice("rw_sequencer", &RUN_FOLLOWS)?;
        Ok(follow.unwrap_or(RunFollow::Sequential))
    }

    /// The share of reads of a mix; `None` of other jobs.
    pub(super) fn read_share(&self, rw: Rw) -> Translated<Option<ReadShare>> {
        if !rw.is_mix() {
            return Ok(None);
        }
        let reads = self.number("rwmixread", 100)?;
        let writes = self.number("rwmixwrite", 100)?;
        // Of the two, the later one counts.
        let percent = match writes {
            Some(writes) if self.is_later("rwmixwrite", "rwmixread") => 100 - writes,
            _ => reads.unwrap_or(READ_PERCENT_DEFAULT),
        };
        // A share of reads is in thousandths.
        Ok(Some(ReadShare(percent as u16 * 10)))
    }

    /// True if the job has strided zones. As in fio, `openfiles` takes them away, but not the
    /// number of files.
    pub(super) fn has_zones(&self) -> Translated<bool> {
        let mode = self.choice("zonemode", &ZONE_MODES)?;
        let zone_bytes = self.bytes("zonesize", 0)?;
        Ok(mode.unwrap_or(zone_bytes > 0) && zone_bytes > 0 && self.bytes("openfiles", 0)? <= 1)
    }

    /// Zones with gaps between them. Without `as fio`, `zonesize` alone means strided zones.
    fn zones(&self, rw: Rw) -> Translated<Option<ZoneStride>> {
        let zone_bytes = self.bytes("zonesize", 0)?;
        if self.text("zonemode") == Some("zbd") {
            return Err(self.error(
                "zonemode",
                "zoned disks (ZBC, ZNS) are not supported; use strided, or the real fio",
            ));
        }
        let mode = self.choice("zonemode", &ZONE_MODES)?;
        if mode != Some(true) && zone_bytes > 0 && self.translation.is_as_fio() {
            // The words of fio 3.33; others take zonesize alone for strided zones.
            let why = "--zonemode=none and --zonesize are not compatible";
            return Err(self.error("zonesize", why));
        }
        if !mode.unwrap_or(zone_bytes > 0) {
            return Ok(None);
        }
        // As in fio, which looks at the option before it knows the number of files.
        if self.bytes("openfiles", 0)? > 1 {
            self.translation
                .ignore_option("zonemode", "no effect with openfiles");
            return Ok(None);
        }
        let range_bytes = self.bytes("zonerange", zone_bytes)?;
        let name = if mode.is_some() {
            "zonemode"
        } else {
            "zonesize"
        };
        if zone_bytes == 0 {
            return Err(self.error(name, "it needs a zonesize"));
        }
        let only_creates = self.translation.is_as_fio() && self.flag("create_only")?;
        if self.has_fio_order()? || only_creates {
            return Ok(None);
        }
        if range_bytes != zone_bytes && range_bytes != 0 {
            let why = "a zonerange other than zonesize is not supported; remove it";
            return Err(self.error(name, why));
        }
        if rw.order != Order::Sequential || rw.is_mix() {
            return Err(self.error(
                name,
                "strided zones are supported only with read and write; for random requests use \
                 offset and size",
            ));
        }
        Ok(Some(ZoneStride {
            zone_bytes,
            skip_bytes: self.bytes("zoneskip", 0)?,
        }))
    }
}

impl GivenValue<'_> {
    /// From a list `reads,writes,trims` in this value: the only part, or the one for the direction
    /// of this job. Fails where reads and writes have different ones.
    pub(super) fn only_part<'v>(&self, list: &'v str, rw: Rw) -> Translated<&'v str> {
        let part = list_part(list, rw.first());
        if part.is_empty() || rw.kinds().any(|kind| list_part(list, kind) != part) {
            return Err(self.error(
                "reads and writes of a job share one value; write one value, or two concurrent \
                 sections",
            ));
        }
        Ok(part)
    }
}

/// From a list `reads,writes,trims`, the part of a kind of operation: without one of its own, the
/// last before it.
pub(super) fn list_part(list: &str, kind: OpKind) -> &str {
    part_of_kind(list.split(','), kind)
}

/// As [`list_part`], from a list of numbers.
pub(super) fn number_part(list: &str, kind: OpKind) -> &str {
    part_of_kind(numbers_of_list(list), kind)
}

/// The numbers of a list. Where it has no comma, fio takes colons or dashes between them, as in
/// `bs=4k:8k` (`handle_option` of its parse.c). An expression has signs of its own.
pub(super) fn numbers_of_list(list: &str) -> impl Iterator<Item = &str> {
    let mut separator = ',';
    if !list.starts_with('(') {
        for possible in ['-', ':', ','] {
            if list.contains(possible) {
                separator = possible;
            }
        }
    }
    list.split(separator)
}

fn part_of_kind<'l>(mut parts: impl Iterator<Item = &'l str>, kind: OpKind) -> &'l str {
    let mut part = "";
    for request in FIO_DIRECTIONS {
        if let Some(next) = parts.next() {
            part = next.trim();
        }
        if request == kind {
            break;
        }
    }
    part
}

pub(super) fn set_rw(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.flags.rw = Some(reader.rw_setting()?.rw);
    Ok(())
}

/// `percentage_random`: the kinds of a random mix that are sequential.
pub(super) fn set_kinds_in_order(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if !job.is_random() {
        return Ok(());
    }
    for kind in job.rw().kinds() {
        if reader.random_percent(kind)? == 0 {
            job.flags.shape.order.in_order.push(kind);
        }
    }
    Ok(())
}

/// `read:8k`, `read:-8k`, `randread:8` and `rw_sequencer`.
pub(super) fn set_walk(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let follow = reader.run_follow()?;
    let step = reader.rw_setting()?.step;
    if step == 0 {
        return Ok(());
    }
    if !job.is_random() && reader.has_fio_order()? {
        return Ok(());
    }
    if !job.is_random() {
        return set_gap(reader, job, step);
    }
    let Ok(run_ops) = u32::try_from(step) else {
        let why = format!("write 1 to {} blocks at each offset", u32::MAX);
        return Err(reader.error("rw", why));
    };
    if run_ops > 1 {
        job.flags.shape.order.random_run = Some(RandomRun { run_ops, follow });
    }
    Ok(())
}

/// Leaves `gap` bytes between the blocks of a sequential job, or goes backward for a negative
/// number.
fn set_gap(reader: &JobReader<'_>, job: &mut FioJob, gap: i64) -> Translated<()> {
    let Some(BlockSize(block_bytes)) = job.flags.bs else {
        return Err(reader.error("rw", "gaps need a single block size; use bs instead"));
    };
    let block = i64::from(block_bytes);
    if gap == -2 * block {
        job.flags.backward = Some(true);
    } else if gap < 0 {
        let why = format!(
            "backward jobs visit every block, which needs a step of two blocks; write -{} for \
             this bs, or remove the number",
            2 * block
        );
        return Err(reader.error("rw", why));
    } else if gap % block == 0 || job.rw().is_mix() {
        job.flags.stride = Some(Bytes((block + gap) as u64));
    } else {
        // A stride is a multiple of the block; zones of one block are not.
        let zones = ZoneStride {
            zone_bytes: block as u64,
            skip_bytes: gap as u64,
        };
        job.requests.gap_step_bytes = Some(zones.zone_bytes.saturating_add(zones.skip_bytes));
        job.flags.shape.order.zone_stride = Some(zones);
    }
    Ok(())
}

/// `zonemode=strided`, whose zones replace those of `rw`.
pub(super) fn set_zones(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if let Some(zones) = reader.zones(job.rw())? {
        job.flags.shape.order.zone_stride = Some(zones);
        job.requests.gap_step_bytes = None;
    }
    Ok(())
}

/// The law of random offsets that are not all alike.
pub(super) fn set_distribution(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let Some(given) = reader.value("random_distribution")? else {
        return Ok(());
    };
    if given.text == "random" || !job.is_random() {
        return Ok(());
    }
    let (law, number) = given.text.split_once(':').unwrap_or((given.text, ""));
    let has_zones = law == ZONED || law == ZONED_ABSOLUTE;
    if has_zones
        && reader.translation.is_as_fio()
        && reader.text("random_generator") == Some("lfsr")
    {
        return Err(reader.error(
            "random_generator",
            "fio's lfsr draws from the whole file for each zone, so the job ends in fio where an \
             offset lies behind the file; remove one of the two",
        ));
    }
    if law == ZONED_ABSOLUTE && reader.has_fio_order()? {
        // The zones are in the order.
        return Ok(());
    }
    if law != ZONED {
        let number = match number.split_once(':') {
            // The centre behind the number is in the order.
            Some((number, _)) if reader.has_fio_order()? => number,
            _ => number,
        };
        let distribution = law_with_number(given, law, number)?;
        let parsed = distribution.parse();
        job.flags.distribution = Some(parsed.map_err(|why: ValueError| given.error(why))?);
        return Ok(());
    }
    let text = match given.only_part(number, job.rw()) {
        Ok(text) => text,
        // Reads and writes have zones of their own in the order.
        Err(_) if reader.has_fio_order()? => return Ok(()),
        Err(why) => return Err(why),
    };
    let Some(zones) = filled_zones(text) else {
        return Err(
            given.error("write access/size pairs in percent, such as zoned:60/10:30/20:10/70")
        );
    };
    job.flags.zones = Some(zones.parse().map_err(|why: ValueError| given.error(why))?);
    Ok(())
}

/// A distribution as `--distribution` takes it, with fio's default (`FIO_DEF_ZIPF` and others)
/// where the job gives no number.
fn law_with_number(given: GivenValue<'_>, law: &str, number: &str) -> Translated<String> {
    let default = match law {
        "zipf" => "1.1",
        "pareto" => "0.2",
        "normal" => "0",
        _ => return Err(unknown_distribution(given)),
    };
    match number {
        "" => Ok(format!("{law}:{default}")),
        number if number.contains(':') => Err(unknown_distribution(given)),
        number => Ok(format!("{law}:{number}")),
    }
}

fn unknown_distribution(given: GivenValue<'_>) -> JobFileError {
    given.error(
        "this distribution is not supported; use random, zipf:THETA, pareto:POWER, \
         normal:DEVIATION, or zoned:60/10:30/20:10/70",
    )
}

/// A zone as fio writes it: a percentage of the accesses, and perhaps one of the file.
struct WrittenZone {
    access: f64,
    size: Option<f64>,
}

impl WrittenZone {
    fn parse(text: &str) -> Option<Self> {
        let (access, size) = text.split_once('/')?;
        Some(Self {
            access: access.parse().ok()?,
            size: match size {
                "" => None,
                size => Some(size.parse().ok()?),
            },
        })
    }
}

/// Fills in missing sizes of zones with equal shares of the rest, as fio does.
fn filled_zones(text: &str) -> Option<String> {
    let mut zones = Vec::new();
    let mut named_percent = 0.0;
    let mut unnamed = 0;
    for zone_text in text.split(':') {
        let zone = WrittenZone::parse(zone_text)?;
        match zone.size {
            Some(size) => named_percent += size,
            None => unnamed += 1,
        }
        zones.push(zone);
    }
    let share = (100.0 - named_percent) / f64::from(unnamed.max(1));
    let filled: Vec<String> = zones
        .iter()
        .map(|zone| format!("{}/{}", zone.access, zone.size.unwrap_or(share)))
        .collect();
    Some(filled.join(":"))
}

/// The zones of the random places of a kind of operation, as fio reads them; none where the
/// distribution has no zones. All have a share of the accesses, and a part of the file without a
/// percentage is an equal part of the rest.
pub(super) fn place_zones(given: GivenValue<'_>, kind: OpKind) -> Translated<Vec<FioPlaceZone>> {
    let (law, list) = given.text.split_once(':').unwrap_or((given.text, ""));
    if law != ZONED && law != ZONED_ABSOLUTE {
        return Ok(Vec::new());
    }
    let mut zones = Vec::new();
    let mut access_percent: u32 = 0;
    let mut named_percent: u32 = 0;
    let mut unnamed = Vec::new();
    for entry in list_part(list, kind).split(':') {
        let (access, size) = entry.split_once('/').unwrap_or((entry, ""));
        let access = given.size(access.trim())?.min(u64::from(u8::MAX)) as u8;
        access_percent += u32::from(access);
        let size = size.trim();
        let size = if law == ZONED_ABSOLUTE {
            FioZoneSize::Bytes(if size.is_empty() {
                0
            } else {
                given.size(size)?
            })
        } else {
            let percent = if size.is_empty() {
                0
            } else {
                given.size(size)?
            };
            if percent == 0 {
                unnamed.push(zones.len());
            }
            named_percent += percent.min(100) as u32;
            FioZoneSize::Percent(percent.min(100) as u8)
        };
        zones.push(FioPlaceZone {
            access_percent: access,
            size,
        });
    }
    if access_percent != 100 || named_percent > 100 {
        return Err(given.error(
            "the accesses of the zones are 100 percent, and their sizes at most 100 percent",
        ));
    }
    let equal = (100 - named_percent) / unnamed.len().max(1) as u32;
    for index in unnamed {
        zones[index].size = FioZoneSize::Percent(equal as u8);
    }
    Ok(zones)
}

/// The requests of a run with `rw=randread:8`. As in fio, which takes the digits in front
/// (`str_rw_cb` of its options.c), `8k` is 8, and nothing there means that no offset is random.
fn run_length(number: &str, is_given: bool) -> i64 {
    let is_back = number.starts_with('-');
    let digits = number.trim_start_matches(['-', '+']);
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    match digits[..end].parse::<i64>() {
        Ok(length) if is_back && length > 0 => -length,
        Ok(length) if length > 0 => length,
        _ if is_given => NO_RANDOM_OFFSET,
        _ => 0,
    }
}

/// `norandommap`: fio keeps a map of visited blocks only with uniform random offsets. The map
/// never fills where offsets have another alignment.
pub(super) fn set_map(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.requests.is_mapped =
        job.is_uniform() && !reader.has_zoned_places() && !reader.flag("norandommap")?;
    let shape = &mut job.flags.shape;
    shape.order.each_block_once = job.requests.is_mapped
        && shape.order.align_bytes.is_none()
        && shape.order.in_order.is_empty();
    Ok(())
}

/// `rwmixread` and `rwmixwrite`.
pub(super) fn set_read_share(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.flags.rwmixread = reader.read_share(job.rw())?;
    Ok(())
}
