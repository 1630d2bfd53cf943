//! A section of a job file as one job of fio, with fio's defaults: what it asks of the disk, in numbers. Knows no target, and nothing of the other jobs.

use super::JobFileError;
use super::numbers::{self, Amount, Base};
use super::options::{self, Fate};
use super::remarks::{Remark, Remarks};
use super::sections::{Scope, Section, Setting, Spot, last_by_name};
use crate::args::EngineName;
use crate::workload::{Direction, Order, Rw};
use std::collections::BTreeMap;

/// fio's default.
const BLOCK_BYTES_DEFAULT: u64 = 4096;
const FILENAME_FORMAT_DEFAULT: &str = "$jobname.$jobnum.$filenum";
/// fio's default exponent (`FIO_DEF_ZIPF`).
const ZIPF_DEFAULT: &str = "1.1";
/// More than any machine gains from, and few enough to be told apart in results.
const NUMJOBS_MAX: u64 = 1024;

/// One job.
#[derive(Debug, Clone)]
pub struct Job {
    /// Where its section begins.
    pub spot: Spot,
    /// Name of its section.
    pub section: String,
    /// Name in results.
    pub name: String,
    /// What the author says of it.
    pub description: Option<String>,
    /// What it does.
    pub rw: Rw,
    /// How an ordered walk goes on.
    pub gait: Gait,
    /// Bytes per operation.
    pub blocks: Blocks,
    /// Requests in flight.
    pub depth: u64,
    /// Kernel interface.
    pub engine: EngineName,
    /// Copies of it.
    pub numjobs: u64,
    /// What the page cache does.
    pub cache: Cache,
    /// The part of the file, and what is done.
    pub extent: Extent,
    /// How likely each block is.
    pub law: Law,
    /// Share of reads as it is written.
    pub read_share: Option<u64>,
    /// Operations per second of each copy.
    pub rate: Option<f64>,
    /// fsync after so many writes; 0 for never.
    pub fsync: u64,
    /// fdatasync after so many writes; 0 for never.
    pub fdatasync: u64,
    /// Whether it syncs at the end.
    pub syncs_at_end: bool,
    /// Whether it reads back what it wrote.
    pub verifies: bool,
    /// Measured time; 0 for no limit.
    pub time_ns: u64,
    /// Warm-up.
    pub ramp_ns: u64,
    /// Whether it waits for what is before it.
    pub waits: bool,
    /// Whether its end is that of all that run with it, by its own words.
    pub exits_all: bool,
    /// `exit_what=all`.
    pub ends_everything: bool,
    /// Files by name.
    pub filename: Option<Filename>,
    /// Where they lie.
    pub directory: Option<String>,
    /// Names of files that have none.
    pub filename_format: String,
}

/// A file that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filename {
    /// The name.
    pub name: String,
    /// Where it is given.
    pub spot: Spot,
}

/// How an ordered walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gait {
    /// Block after block.
    Plain,
    /// From the end to the start.
    Backward,
    /// In steps of so many bytes.
    Stride(u64),
}

/// Bytes per operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// One size.
    One(u64),
    /// A mix, as `bssplit` has it, with bytes; and the smallest.
    Mix(String, u64),
}

impl Blocks {
    /// The smallest.
    pub fn smallest(&self) -> u64 {
        match self {
            Self::One(bytes) | Self::Mix(_, bytes) => *bytes,
        }
    }
}

/// What the page cache does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Nothing: `direct=1`.
    Past,
    /// It is emptied before: `direct=0` with `invalidate=1`, fio's default.
    Emptied,
    /// It is left alone: `invalidate=0`.
    Kept,
}

/// The part of the file, and how much is done in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub offset: Amount,
    /// How much further each copy begins.
    pub increment: u64,
    /// How long it is.
    pub size: Option<Amount>,
    /// Bytes that each copy does, where that is not all of it.
    pub io_size: Option<Amount>,
    /// How often.
    pub loops: u64,
    /// Operations that each copy does.
    pub ops: Option<u64>,
    /// Whether time alone ends it.
    pub is_time_based: bool,
}

/// How likely each block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Law {
    /// All alike.
    Uniform,
    /// With this exponent.
    Zipf(String),
    /// `zones` as they are written here.
    Zones(String),
}

/// Reads a section.
pub fn read_job(section: &Section, remarks: &mut Remarks) -> Result<Job, JobFileError> {
    // An engine that is none here has options of its own, and is what to hear about first.
    let named = |key: &str| options::canonical(key).unwrap_or("");
    let engine = last_by_name(&section.settings, named).get("ioengine").map_or(Ok(EngineName::Sync), |setting| engine(setting))?;
    for setting in &section.settings {
        check(setting, section, remarks)?;
    }
    let mut given = last_by_name(&section.settings, named);
    let base = match given.remove("kb_base") {
        None => Base::Binary,
        Some(setting) => match setting.value.as_deref() {
            Some("1024") => Base::Binary,
            Some("1000") => Base::Decimal,
            _ => return Err(setting.error("use 1024 or 1000")),
        },
    };
    Reading { section, given, base, remarks }.job(engine)
}

/// Says what is no option, refused or left out.
fn check(setting: &Setting, section: &Section, remarks: &mut Remarks) -> Result<(), JobFileError> {
    let Some(row) = options::row(&setting.key) else {
        return Err(
            setting.error("fio 3.42 has no such option, or only for engines that are none here: mind the spelling, or leave it out")
        );
    };
    let name = options::canonical(&setting.key).unwrap_or_default();
    match row.fate {
        Fate::Carried => Ok(()),
        Fate::LeftOut => {
            remarks.leave_out(name, row.text);
            Ok(())
        }
        Fate::Refused(harmless) if setting.value.as_deref().is_some_and(|value| harmless.contains(&value)) => Ok(()),
        Fate::Refused(_) => Err(setting.error(format!("[{}]: fio's '{name}' {}", section.name, options::refusal(name)))),
    }
}

fn engine(setting: &Setting) -> Result<EngineName, JobFileError> {
    Ok(match setting.value.as_deref().unwrap_or_default() {
        "libaio" => EngineName::Aio,
        "io_uring" => EngineName::Uring,
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => EngineName::Sync,
        "mmap" => EngineName::Mmap,
        "posixaio" => {
            return Err(setting.error(
                "the C library takes requests of one file one after the other there, whatever iodepth says: write libaio or io_uring for a queue, psync for none",
            ));
        }
        _ => {
            return Err(setting.error(
                "this engine measures something else than a disk by reads and writes, or goes its own way to it: use libaio, io_uring, psync (also sync, vsync, \
                 pvsync, pvsync2) or mmap",
            ));
        }
    })
}

/// A setting, and its value or a part of it.
type Said<'a> = (&'a Setting, &'a str);

struct Reading<'a, 'b> {
    section: &'a Section,
    given: BTreeMap<&'static str, &'a Setting>,
    base: Base,
    remarks: &'b mut Remarks,
}

impl<'a> Reading<'a, '_> {
    fn job(&mut self, engine: EngineName) -> Result<Job, JobFileError> {
        let (rw, postfix) = self.rw()?;
        let blocks = self.blocks(rw)?;
        let gait = self.gait(rw, postfix, &blocks)?;
        let writes = rw.direction != Direction::Read;
        let every = |count: u64| if writes { count } else { 0 };
        let (fsync, fdatasync) = (every(self.count("fsync", 0)?), every(self.count("fdatasync", 0)?));
        let at_end = writes && (self.flag("end_fsync")? || self.flag("fsync_on_close")?);
        let exits_all = self.flag("exitall")?;
        self.names_one_file()?;
        Ok(Job {
            spot: self.section.spot.clone(),
            section: self.section.name.clone(),
            name: self.name(),
            description: self.text("description"),
            rw,
            gait,
            depth: self.depth(engine)?,
            engine,
            numjobs: self.numjobs()?,
            cache: self.cache(engine)?,
            extent: self.extent()?,
            law: self.law(rw)?,
            read_share: self.read_share(rw)?,
            rate: self.rate(rw, &blocks)?,
            blocks,
            fsync,
            fdatasync,
            // A sync after the last write follows it anyway.
            syncs_at_end: at_end && fsync != 1 && fdatasync != 1,
            verifies: self.verifies(writes)?,
            time_ns: self.time("runtime")?,
            ramp_ns: self.time("ramp_time")?,
            waits: self.flag("stonewall")?,
            exits_all,
            ends_everything: self.ends_everything()?,
            filename: self.filename()?,
            directory: self.directory()?,
            filename_format: self.text("filename_format").unwrap_or_else(|| FILENAME_FORMAT_DEFAULT.to_owned()),
        })
    }

    fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.given.get(name).copied()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.setting(name).and_then(|setting| setting.value.clone())
    }

    /// The setting and its value, which must be there.
    fn value(&self, name: &str) -> Result<Option<Said<'a>>, JobFileError> {
        let Some(setting) = self.setting(name) else { return Ok(None) };
        match setting.value.as_deref() {
            Some(value) if !value.is_empty() => Ok(Some((setting, value))),
            _ => Err(setting.error("a value is missing behind it")),
        }
    }

    fn parsed<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, JobFileError> {
        let Some((setting, value)) = self.value(name)? else { return Ok(None) };
        parse(value).map(Some).map_err(|why| setting.error(why))
    }

    fn count(&self, name: &str, default: u64) -> Result<u64, JobFileError> {
        Ok(self.parsed(name, |text| numbers::bytes(text, self.base))?.unwrap_or(default))
    }

    fn amount(&self, name: &str) -> Result<Option<Amount>, JobFileError> {
        self.parsed(name, |text| numbers::amount(text, self.base))
    }

    fn time(&self, name: &str) -> Result<u64, JobFileError> {
        Ok(self.parsed(name, numbers::time_ns)?.unwrap_or(0))
    }

    /// A switch: alone, or with 0 or 1.
    fn flag(&self, name: &str) -> Result<bool, JobFileError> {
        Ok(self.switch(name)?.unwrap_or(false))
    }

    fn switch(&self, name: &str) -> Result<Option<bool>, JobFileError> {
        let Some(setting) = self.setting(name) else { return Ok(None) };
        match setting.value.as_deref() {
            None | Some("1") => Ok(Some(true)),
            Some("0") => Ok(Some(false)),
            Some(_) => Err(setting.error("write 0 or 1")),
        }
    }

    fn name(&self) -> String {
        // One of [global] is the name of no job, in fio as well.
        let own = self.setting("name").filter(|setting| setting.scope == Scope::Own).and_then(|setting| setting.value.clone());
        own.unwrap_or_else(|| self.section.name.clone())
    }

    fn rw(&self) -> Result<(Rw, Option<Said<'a>>), JobFileError> {
        let Some((setting, value)) = self.value("rw")? else {
            return Ok((Rw { order: Order::Sequential, direction: Direction::Read }, None));
        };
        let (word, postfix) = value.split_once(':').map_or((value, None), |(word, postfix)| (word.trim(), Some((setting, postfix.trim()))));
        if word.contains("trim") {
            return Err(setting.error("trims have no place here: leave this job out"));
        }
        let word = if word == "randreadwrite" { "randrw" } else { word };
        Ok((word.parse::<Rw>().map_err(|why| setting.error(why.to_string()))?, postfix))
    }

    fn gait(&mut self, rw: Rw, postfix: Option<Said<'_>>, blocks: &Blocks) -> Result<Gait, JobFileError> {
        let Some((setting, postfix)) = postfix else { return Ok(Gait::Plain) };
        let (is_back, size) = postfix.strip_prefix('-').map_or((false, postfix), |size| (true, size));
        let bytes = numbers::bytes(size, self.base).map_err(|why| setting.error(why))?;
        if rw.order == Order::Random {
            return match bytes {
                1 if !is_back => Ok(Gait::Plain),
                _ => Err(setting
                    .error("several blocks in a row from each random place have no place here: use a larger bs, or leave the number out")),
            };
        }
        match (is_back, blocks) {
            (_, _) if bytes == 0 => Ok(Gait::Plain),
            (_, Blocks::Mix(..)) => Err(setting.error("a walk with gaps needs one block size: use bs instead of bssplit")),
            (false, Blocks::One(block)) => {
                self.remarks.tell(Remark::Stride, &self.section.name);
                Ok(Gait::Stride(block + bytes))
            }
            (true, Blocks::One(block)) if bytes == 2 * block => Ok(Gait::Backward),
            (true, Blocks::One(block)) => Err(setting.error(format!(
                "backwards goes block by block here, which is twice the block: write -{} for this bs, or leave the number out",
                2 * block
            ))),
        }
    }

    /// The only value, or the one for what the job does, of `reads,writes,trims`.
    fn of_direction<'v>(&self, setting: &Setting, value: &'v str, rw: Rw) -> Result<&'v str, JobFileError> {
        let mut parts = value.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        // `4k,` leaves writes at the default, which nobody can mean who reads it.
        let second = parts.next().unwrap_or(first);
        match rw.direction {
            Direction::Read if !first.is_empty() => Ok(first),
            Direction::Write if !second.is_empty() => Ok(second),
            Direction::Mixed if first == second => Ok(first),
            _ => {
                Err(setting
                    .error("reads and writes of one job have the same value here: write one, or a section for each that run together"))
            }
        }
    }

    fn blocks(&self, rw: Rw) -> Result<Blocks, JobFileError> {
        let blocks = self.split(rw)?.map_or_else(|| self.one_block(rw).map(Blocks::One), Ok)?;
        if let Some((setting, value)) = self.value("blockalign")? {
            let align = numbers::bytes(self.of_direction(setting, value, rw)?, self.base).map_err(|why| setting.error(why))?;
            // fio looks at it for random operations only.
            if align != blocks.smallest() && align != 0 && rw.order == Order::Random {
                return Err(setting.error(format!(
                    "offsets are multiples of the (smallest) block here, {}: leave it out, or change bs",
                    blocks.smallest()
                )));
            }
        }
        Ok(blocks)
    }

    fn one_block(&self, rw: Rw) -> Result<u64, JobFileError> {
        if let Some((setting, value)) = self.value("bsrange")? {
            let range = self.of_direction(setting, value, rw)?;
            let (low, high) = range.split_once(['-', ':']).unwrap_or((range, range));
            return match (numbers::bytes(low.trim(), self.base), numbers::bytes(high.trim(), self.base)) {
                (Ok(low), Ok(high)) if low == high && low > 0 => Ok(low),
                (Ok(_), Ok(_)) => Err(setting.error("fio's 'bsrange' is a mix of block sizes; use bssplit, such as 4k/50:8k/50")),
                (Err(why), _) | (_, Err(why)) => Err(setting.error(why)),
            };
        }
        let Some((setting, value)) = self.value("bs")? else { return Ok(BLOCK_BYTES_DEFAULT) };
        match numbers::bytes(self.of_direction(setting, value, rw)?, self.base) {
            Ok(0) => Err(setting.error("a block of 0 bytes moves nothing")),
            Ok(bytes) => Ok(bytes),
            Err(why) => Err(setting.error(why)),
        }
    }

    fn split(&self, rw: Rw) -> Result<Option<Blocks>, JobFileError> {
        let Some((setting, value)) = self.value("bssplit")? else { return Ok(None) };
        let (mut entries, mut smallest) = (Vec::new(), u64::MAX);
        for entry in self.of_direction(setting, value, rw)?.split(':').filter(|entry| !entry.is_empty()) {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let bytes = numbers::bytes(size.trim(), self.base).map_err(|why| setting.error(why))?;
            // fio never draws what has no share, but aligns to it.
            if bytes == 0 || share.trim() == "0" {
                return Err(setting.error("a size of 0 bytes, or with a share of 0, is none: leave it out"));
            }
            smallest = smallest.min(bytes);
            entries.push(format!("{bytes}/{}", share.trim()));
        }
        match entries.as_slice() {
            [] => Err(setting.error("write size/percent pairs, such as 4k/60:64k/40")),
            [_] => Ok(Some(Blocks::One(smallest))),
            _ => Ok(Some(Blocks::Mix(entries.join(":"), smallest))),
        }
    }

    fn depth(&mut self, engine: EngineName) -> Result<u64, JobFileError> {
        match self.count("iodepth", 1)? {
            depth if depth > 1 && matches!(engine, EngineName::Sync | EngineName::Mmap) => {
                self.remarks.tell(Remark::Depth, &self.section.name);
                Ok(1)
            }
            depth => Ok(depth),
        }
    }

    fn numjobs(&self) -> Result<u64, JobFileError> {
        match self.count("numjobs", 1)? {
            0 => Ok(1),
            jobs if jobs > NUMJOBS_MAX => {
                let setting = self.setting("numjobs").map_or(&self.section.spot, |setting| &setting.spot);
                Err(setting.error(format!("numjobs={jobs} is too much; use at most {NUMJOBS_MAX}")))
            }
            jobs => Ok(jobs),
        }
    }

    fn cache(&self, engine: EngineName) -> Result<Cache, JobFileError> {
        // The later one counts where both are given.
        let (direct, buffered) = (self.setting("direct"), self.setting("buffered"));
        let place = |setting: Option<&Setting>| self.section.settings.iter().rposition(|other| Some(other.as_ref()) == setting);
        let is_direct = match (self.switch("direct")?, self.switch("buffered")?) {
            (Some(_), Some(is_buffered)) if place(buffered) > place(direct) => !is_buffered,
            (Some(is_direct), _) => is_direct,
            (None, is_buffered) => is_buffered == Some(false),
        };
        Ok(match self.switch("invalidate")?.unwrap_or(true) {
            _ if is_direct && engine != EngineName::Mmap => Cache::Past,
            true => Cache::Emptied,
            false => Cache::Kept,
        })
    }

    fn extent(&self) -> Result<Extent, JobFileError> {
        let (size, filesize) = (self.amount("size")?, self.parsed("filesize", |text| numbers::bytes(text, self.base))?.map(Amount::Bytes));
        if let (Some(size), Some(file), Some(setting)) = (size, filesize, self.setting("filesize"))
            && size != file
        {
            return Err(setting.error(
                "size says something else: a file has the size that is used here, so write it as size, and what is done as io_size",
            ));
        }
        let increment = self.count("offset_increment", 0)?;
        let is_time_based = self.flag("time_based")? && self.time("runtime")? > 0;
        let (loops, ops) = (self.count("loops", 1)?.max(1), Some(self.count("number_ios", 0)?).filter(|ops| *ops > 0));
        if let (Some(setting), Some(_), 2..) = (self.setting("loops"), ops, loops) {
            return Err(setting.error("number_ios ends the job too: use one of them"));
        }
        Ok(Extent {
            offset: self.amount("offset")?.unwrap_or(Amount::Bytes(0)),
            increment,
            size: size.or(filesize).filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(100))),
            io_size: self.amount("io_size")?.filter(|size| *size != Amount::Bytes(0)),
            loops,
            ops,
            is_time_based,
        })
    }

    fn law(&mut self, rw: Rw) -> Result<Law, JobFileError> {
        if rw.order == Order::Sequential {
            return Ok(Law::Uniform);
        }
        let Some((setting, value)) = self.value("random_distribution")?.filter(|(_, value)| *value != "random") else {
            if !self.flag("norandommap")? {
                self.remarks.tell(Remark::NoMap, &self.section.name);
            }
            return Ok(Law::Uniform);
        };
        match value.split_once(':').unwrap_or((value, "")) {
            ("zipf", "") => Ok(Law::Zipf(ZIPF_DEFAULT.to_owned())),
            ("zipf", theta) if !theta.contains(':') => Ok(Law::Zipf(theta.to_owned())),
            ("zoned", zones) => {
                let zones = self.of_direction(setting, zones, rw)?;
                filled_zones(zones)
                    .map(Law::Zones)
                    .ok_or_else(|| setting.error("write access/size pairs in percent, such as zoned:60/10:30/20:10/70"))
            }
            _ => Err(setting.error("this distribution has no place here: use random, zipf:THETA, or zoned:60/10:30/20:10/70")),
        }
    }

    fn read_share(&self, rw: Rw) -> Result<Option<u64>, JobFileError> {
        if rw.direction != Direction::Mixed {
            return Ok(None);
        }
        let place = |name| self.setting(name).and_then(|setting| self.section.settings.iter().rposition(|other| other.as_ref() == setting));
        let (reads, writes) = (self.count("rwmixread", 50)?, self.count("rwmixwrite", 50)?);
        // Where both are given, the later one counts.
        let (share, name) =
            if place("rwmixwrite") > place("rwmixread") { (100_u64.checked_sub(writes), "rwmixwrite") } else { (Some(reads), "rwmixread") };
        match share.filter(|share| *share <= 100) {
            Some(share) => Ok(Some(share)),
            None => Err(self
                .setting(name)
                .map_or(&self.section.spot, |setting| &setting.spot)
                .error(format!("{name} is a share in percent, 0 to 100"))),
        }
    }

    /// Operations per second of one copy.
    fn rate(&mut self, rw: Rw, blocks: &Blocks) -> Result<Option<f64>, JobFileError> {
        let (setting, value, unit) = match (self.value("rate")?, self.value("rate_iops")?) {
            (None, None) => return Ok(None),
            (Some(_), Some((setting, _))) => return Err(setting.error("rate and rate_iops exclude each other: use one of them")),
            (None, Some((setting, value))) => (setting, value, 1),
            (Some((setting, value)), None) => match blocks {
                Blocks::One(block) => (setting, value, *block),
                Blocks::Mix(..) => return Err(setting.error("a rate in bytes needs one block size: use rate_iops")),
            },
        };
        let number = |text: &str| numbers::bytes(text, self.base).map(|rate| rate as f64 / unit as f64).map_err(|why| setting.error(why));
        let mut parts = value.split(',').map(str::trim);
        let reads = parts.next().filter(|text| !text.is_empty()).map(number).transpose()?;
        let writes = parts.next().map_or(Ok(reads), |text| if text.is_empty() { Ok(None) } else { number(text).map(Some) })?;
        let rate = match (rw.direction, reads, writes) {
            (Direction::Read, rate, _) | (Direction::Write, _, rate) => rate.filter(|rate| *rate > 0.0),
            (Direction::Mixed, Some(reads), Some(writes)) => {
                // fio holds each direction to its own rate, whatever the mix says.
                let share = self.read_share(rw)?.unwrap_or(50) as f64 / 100.0;
                if (reads - (reads + writes) * share).abs() > 1e-6 * (reads + writes) {
                    return Err(setting.error(format!(
                        "reads and writes have rates of their own, which are not the mix of {:.0} % reads: make them so, or write a section for each that run together",
                        share * 100.0
                    )));
                }
                Some(reads + writes)
            }
            (Direction::Mixed, ..) => {
                return Err(setting.error("a rate for one direction only has no place here: write a section for each that run together"));
            }
        };
        if rate.is_some() {
            self.remarks.tell(Remark::Rate, &self.section.name);
        }
        Ok(rate)
    }

    fn verifies(&mut self, writes: bool) -> Result<bool, JobFileError> {
        let Some((setting, value)) = self.value("verify")? else { return Ok(false) };
        if matches!(value, "0" | "none") {
            return Ok(false);
        }
        let sums = ["md5", "crc", "sha", "xxhash"];
        if !sums.iter().any(|sum| value.starts_with(sum)) {
            return Err(setting.error("blocks are verified by checksums here: use such as crc32c, or leave it out"));
        }
        if !writes {
            return Err(setting.error("only what the same job wrote is verified here: let it write, or leave verify out"));
        }
        self.remarks.tell(Remark::Verify, &self.section.name);
        Ok(true)
    }

    fn ends_everything(&self) -> Result<bool, JobFileError> {
        match self.value("exit_what")? {
            None | Some((_, "group")) => Ok(false),
            Some((_, "all")) => Ok(self.flag("exitall")?),
            Some((setting, _)) => Err(setting.error("this has no place here: use group")),
        }
    }

    fn names_one_file(&self) -> Result<(), JobFileError> {
        match (self.count("nrfiles", 1)?, self.setting("nrfiles")) {
            (2.., Some(setting)) => {
                Err(setting.error("several files for one job have no place here: use nrfiles=1 and the size of all of them"))
            }
            _ => Ok(()),
        }
    }

    fn filename(&self) -> Result<Option<Filename>, JobFileError> {
        // Each adds to the ones before it.
        let given = self.section.settings.iter().filter(|setting| setting.key == "filename");
        let mut found: Option<Filename> = None;
        let is_own_directory = self.setting("directory").is_some_and(|setting| setting.scope == Scope::Own);
        for setting in given {
            let value =
                setting.value.as_deref().filter(|value| !value.is_empty()).ok_or_else(|| setting.error("a name is missing behind it"))?;
            if is_own_directory && setting.scope == Scope::Global {
                return Err(setting.error(format!(
                    "[{}] has a directory of its own, which in fio does not hold for a filename from [global]: put both into one section",
                    self.section.name
                )));
            }
            for name in split_names(value) {
                match &found {
                    Some(other) if other.name != name => {
                        return Err(setting.error(
                            "this job has several files, which it visits in turn: here each target has a queue of its own; write a section for each, or name \
                             the targets on the command line",
                        ));
                    }
                    _ => found = Some(Filename { name, spot: setting.spot.clone() }),
                }
            }
        }
        if let Some(Filename { name, spot }) = found.as_ref().filter(|file| file.name == "-") {
            return Err(spot.error(format!("filename={name}: standard input and output are no disk")));
        }
        Ok(found)
    }

    fn directory(&self) -> Result<Option<String>, JobFileError> {
        let Some((setting, value)) = self.value("directory")? else { return Ok(None) };
        match split_names(value).as_slice() {
            [directory] => Ok(Some(directory.clone())),
            _ => Err(setting.error("several directories for one job have no place here: write a section for each")),
        }
    }
}

/// Names between colons; `\:` is a colon in a name.
fn split_names(value: &str) -> Vec<String> {
    let hidden = value.replace("\\:", "\0");
    hidden.split(':').filter(|name| !name.is_empty()).map(|name| name.replace('\0', ":")).collect()
}

/// Zones whose missing sizes share what is left, as in fio.
fn filled_zones(text: &str) -> Option<String> {
    let zones: Vec<(f64, Option<f64>)> = text
        .split(':')
        .map(|zone| {
            let (access, size) = zone.split_once('/')?;
            let size = if size.is_empty() { None } else { Some(size.parse().ok()?) };
            Some((access.parse().ok()?, size))
        })
        .collect::<Option<_>>()?;
    let open = zones.iter().filter(|(_, size)| size.is_none()).count();
    let rest = (100.0 - zones.iter().filter_map(|(_, size)| *size).sum::<f64>()) / open.max(1) as f64;
    Some(zones.iter().map(|(access, size)| format!("{access}/{}", size.unwrap_or(rest))).collect::<Vec<_>>().join(":"))
}
