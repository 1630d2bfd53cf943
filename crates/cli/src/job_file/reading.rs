//! Reads a section of a job file as a job: checks every option, and applies fio's defaults and
//! syntax.

mod files;
mod operations;
mod shape;
mod values;

use super::jobs::{Cache, FioJob, JobExtent};
use super::sections::{Scope, Section, Setting, last_by_name};
use super::translation::{Translated, Translation};
use crate::workload::{Count, SyncedWrites, Time, WorkloadFlags};
use diskproof_compat::fio_values::{Amount, Base};
use diskproof_compat::{FioCondition, FioHandling, fio_option, fio_similar};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind, WriteFlag};
use diskproof_model::rw::{Order, Rw};
use std::collections::BTreeMap;

pub(crate) const FILENAME_FORMAT_DEFAULT: &str = "$jobname.$jobnum.$filenum";
/// More copies than any machine gains from.
const NUMJOBS_MAX: u64 = 1024;

/// The engines of fio that are supported. With `posixaio` the C library handles requests to one
/// file one at a time, whatever iodepth is.
const ENGINES: [(&str, EngineKind); 9] = [
    ("libaio", EngineKind::Aio),
    ("io_uring", EngineKind::Uring),
    ("psync", EngineKind::Sync),
    ("sync", EngineKind::Sync),
    ("vsync", EngineKind::Sync),
    ("pvsync", EngineKind::Sync),
    ("pvsync2", EngineKind::Sync),
    ("posixaio", EngineKind::Sync),
    ("mmap", EngineKind::Mmap),
];

/// The engines of fio that read and write no file, and what to use instead.
const OTHER_ENGINES: [(&str, &str); 3] = [
    (
        "filecreate fileoperations filestat filedelete dircreate dirstat dirdelete",
        "diskproof files DIR, which creates, stats, reads, renames and deletes files: --count for \
         nrfiles, --file-size for filesize and --threads for numjobs",
    ),
    (
        "falloc ftruncate e4defrag",
        "the real fio: it changes the layout of files, which diskproof does not measure",
    ),
    (
        "null cpuio exec net netsplice rdma http rados rbd gfapi gfapi_async libhdfs nfs \
         libiscsi nbd",
        "the real fio: it reads and writes no file or disk of this machine",
    ),
];

/// The values of `kb_base`.
const BASES: [(&str, Base); 2] = [("1024", Base::Binary), ("1000", Base::Decimal)];

/// Reads a section.
pub(crate) fn read_job(section: &Section, translation: &Translation<'_>) -> Translated<FioJob> {
    let reader = JobReader::new(section, translation);
    if translation.is_as_fio() {
        reader.check_logs()?;
    }
    // An unsupported engine has its own options, and explains them; so its error comes first.
    reader.check_engine()?;
    reader.choice("kb_base", &BASES)?;
    for setting in &section.settings {
        reader.check(setting)?;
    }
    reader.job()
}

/// Refuses an engine that is not supported.
pub(crate) fn check_engine(section: &Section, translation: &Translation<'_>) -> Translated<()> {
    JobReader::new(section, translation).check_engine()
}

/// Reads the settings of one section.
struct JobReader<'a> {
    section: &'a Section,
    given: BTreeMap<&'static str, &'a Setting>,
    translation: &'a Translation<'a>,
}

impl<'a> JobReader<'a> {
    fn new(section: &'a Section, translation: &'a Translation<'_>) -> Self {
        Self {
            section,
            given: last_by_name(&section.settings),
            translation,
        }
    }

    fn note(&self, note: &'static str) {
        self.translation.note(note, &self.section.name);
    }

    fn check_engine(&self) -> Translated<()> {
        self.parsed("ioengine", |engine| {
            let mut others = OTHER_ENGINES.iter();
            let other = others.find(|(all, _)| all.split(' ').any(|one| one == engine));
            other.map_or(Ok(()), |(_, instead)| Err(format!("use {instead}")))
        })?;
        self.choice("ioengine", &ENGINES).map(|_| ())
    }

    /// Refuses unknown options and those that would change the load; notes those that are ignored.
    fn check(&self, setting: &Setting) -> Translated<()> {
        let Some(option) = fio_option(&setting.option.key) else {
            let meant = fio_similar(&setting.option.key);
            let meant = meant.map_or(String::new(), |name| format!(". Did you mean {name}?"));
            return Err(setting.error(format!(
                "fio 3.42 has no such option for the supported engines; check the spelling, or \
                 remove it{meant}"
            )));
        };
        let value = setting.option.value.as_deref();
        if option.is_boolean && !matches!(value, None | Some("0" | "1")) {
            return Err(setting.error("write 0 or 1"));
        }
        match &option.handling {
            FioHandling::Refused { except, .. }
                if value.is_some_and(|value| except.contains(&value)) => {}
            FioHandling::Refused { only, .. } => {
                if only.map_or(Ok(true), |only| self.has_effect(only))? {
                    let (name, text) = (option.name(), option.text);
                    let section = &self.section.name;
                    return Err(setting.error(format!("[{section}]: fio's '{name}' {text}")));
                }
                let why = "no effect in this job";
                self.translation.ignore_option(option.name(), why);
            }
            FioHandling::Carried if self.translation.is_as_fio() => {}
            FioHandling::Ignored | FioHandling::Carried => {
                self.translation.ignore_option(option.name(), option.text);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the job is one in which an option has an effect.
    fn has_effect(&self, condition: FioCondition) -> Translated<bool> {
        let rw = self.rw()?.0;
        Ok(match condition {
            FioCondition::Random => rw.order == Order::Random,
            FioCondition::Writes => rw.makes(OpKind::Write),
            FioCondition::Buffered => {
                let engine = self.choice("ioengine", &ENGINES)?;
                self.cache(engine == Some(EngineKind::Mmap))? != Cache::Direct
            }
            FioCondition::Queue => self.depth(self.engine(rw)?)? > 1,
            FioCondition::Loops => self.bytes("loops", 1)? > 1 || self.flag("time_based")?,
            FioCondition::Option(name) => self.setting(name).is_some(),
        })
    }

    fn job(&self) -> Translated<FioJob> {
        let flags = self.flags()?;
        let is_mmap = flags.engine == Some(EngineChoice::Fixed(EngineKind::Mmap));
        let ends_all = &[("group", false), ("stonewall", false), ("all", true)];
        // Jobs that run together are those between two stonewalls.
        let ends_all = self.choice("exit_what", ends_all)?.unwrap_or(false);
        let exits_all = self.flag("exitall")?;
        let rw = flags.rw.unwrap_or(Rw::RANDREAD);
        let filename = self.filename()?;
        // As in fio, each name is a file of the size that filesize sets.
        let names = filename.as_ref().map_or(1, |(names, _)| names.len() as u64);
        let files = self.files()?;
        let alternates = self.alternates(rw, &flags)?;
        let named = |(setting, name): (&Setting, &str)| (name.to_owned(), setting.source.clone());
        let waits_for = self.value("wait_for")?.filter(|(_, name)| *name != "none");
        let format = self.text("filename_format");
        // A name in [global] does not apply to jobs, as in fio.
        let own_name = self.setting("name").filter(|one| one.scope == Scope::Own);
        let name = own_name.and_then(|setting| setting.option.value.as_ref());
        Ok(FioJob {
            source: self.section.source.clone(),
            section: self.section.name.clone(),
            name: name.unwrap_or(&self.section.name).clone(),
            description: self.text("description").map(str::to_owned),
            numjobs: self.number("numjobs", NUMJOBS_MAX)?.unwrap_or(1).max(1),
            cache: self.cache(is_mmap)?,
            extent: self.extent(files.max(names))?,
            files,
            alternates,
            keeps_files: false,
            is_mapped: self.is_mapped(rw)?,
            splits_cpus: self.text("cpus_allowed_policy") == Some("split"),
            first_copy: 0,
            first_in_section: 0,
            gap_step_bytes: self.gap_step(&flags)?,
            flags,
            overwrites: self.flag("overwrite")?,
            waits: self.flag("stonewall")?,
            waits_for: waits_for.map(named),
            exits_all,
            reports_together: self.flag("group_reporting")?,
            begins_group: self.flag("new_group")?,
            ends_everything: ends_all && exits_all,
            filename,
            directories: self.directories()?,
            unlinks: self.flag("unlink")?,
            only_creates: self.flag("create_only")?,
            scheduler: self.value("ioscheduler")?.map(named),
            filename_format: format.unwrap_or(FILENAME_FORMAT_DEFAULT).to_owned(),
        })
    }

    /// The keys of a workload that do not depend on its target.
    fn flags(&self) -> Translated<WorkloadFlags> {
        let (mut rw, step) = self.rw()?;
        let engine = self.engine(rw)?;
        if self
            .choice("ioengine", &ENGINES)?
            .is_some_and(|asked| asked != engine)
        {
            self.note(
                "the engine has no trims: each is a blocking call, as in fio, and so are the \
                 writes of a trimwrite job",
            );
        }
        let mut flags = WorkloadFlags {
            engine: Some(EngineChoice::Fixed(engine)),
            ..WorkloadFlags::default()
        };
        if self.verify(rw, &mut flags)? {
            rw.chains = Rw::READ.chains;
        }
        flags.rw = Some(rw);
        if rw.order == Order::Random {
            for kind in rw.kinds() {
                if self.random_percent(kind)? == 0 {
                    flags.shape.in_order.push(kind);
                }
            }
        }
        let depth = self.depth(engine)?;
        if depth < self.bytes("iodepth", 1)? {
            self.note(
                "iodepth has no effect with an engine that takes one request at a time, as in fio",
            );
        }
        flags.depth = Some(Count(depth));
        self.blocks(rw, &mut flags)?;
        self.walk(rw, step, &mut flags)?;
        self.distribution(rw, &mut flags)?;
        flags.rwmixread = self.read_share(rw)?;
        self.rate(rw, &mut flags)?;
        if flags.rate.is_some() {
            self.note(
                "a rate starts requests on schedule, even while earlier ones are in flight; \
                 latency counts from the intended start",
            );
        }
        flags.time = Some(Time(self.time("runtime")?)).filter(|time| time.0 > 0);
        flags.warmup = Some(Time(self.time("ramp_time")?));
        self.sync(rw, &mut flags)?;
        self.latency_target(&mut flags)?;
        self.shape(rw, &mut flags)?;
        if rw.makes(OpKind::Write) && flags.verify.is_none() && !flags.signs_only {
            flags.shape.content = self.content(&flags)?;
        }
        Ok(flags)
    }

    /// Neither Linux AIO nor a memory mapping has trims. fio makes a blocking call of each.
    fn engine(&self, rw: Rw) -> Translated<EngineKind> {
        let engine = self.choice("ioengine", &ENGINES)?;
        let lacks_trims = matches!(engine, Some(EngineKind::Aio | EngineKind::Mmap));
        let engine = engine.filter(|_| !(rw.drops_blocks() && lacks_trims));
        Ok(engine.unwrap_or(EngineKind::Sync))
    }

    /// 1 with an engine that takes one request at a time.
    fn depth(&self, engine: EngineKind) -> Translated<u64> {
        let modes = &[("inline", false), ("offload", true)];
        let is_offloaded = self.choice("io_submit_mode", modes)?.unwrap_or(false);
        let is_single = matches!(engine, EngineKind::Sync | EngineKind::Mmap);
        let depth = self.bytes("iodepth", 1)?;
        let most = if is_single && !is_offloaded { 1 } else { depth };
        Ok(depth.min(most))
    }

    fn cache(&self, is_mmap: bool) -> Translated<Cache> {
        let (direct, buffered) = (self.switch("direct")?, self.switch("buffered")?);
        let is_direct = if self.is_later("buffered", "direct") {
            buffered == Some(false)
        } else {
            direct == Some(true)
        };
        Ok(match self.switch("invalidate")?.unwrap_or(true) {
            _ if is_direct && !is_mmap => Cache::Direct,
            true => Cache::Emptied,
            false => Cache::Kept,
        })
    }

    fn extent(&self, files: u64) -> Translated<JobExtent> {
        if let Some((setting, value)) = self.value("filesize")?
            && value.contains(['-', ':'])
        {
            return Err(setting.error(
                "files of random sizes are not supported; for many small files use diskproof \
                 files DIR --count N --file-size BYTES, for large ones a single filesize",
            ));
        }
        let size = self.amount("size")?;
        let each = self.number("filesize", u64::MAX)?;
        // The files of a job are one here.
        let file_bytes = each.map(|bytes| bytes.saturating_mul(files));
        let filesize = file_bytes.map(Amount::Bytes);
        let fills = self.flag("fill_device")?;
        let loops = self.bytes("loops", 1)?.max(1);
        let is_time_based = self.flag("time_based")? && self.time("runtime")? > 0;
        let mut ops = self.bytes("number_ios", 0)?.saturating_mul(loops);
        // As in fio, which starts to count anew in each of its laps.
        if is_time_based {
            ops = 0;
        }
        let is_whole = |size: &Amount| matches!(size, Amount::Bytes(0) | Amount::Percent(100));
        Ok(JobExtent {
            offset: self.amount("offset")?.unwrap_or(Amount::ZERO),
            increment: self.amount("offset_increment")?.unwrap_or(Amount::ZERO),
            file_bytes: file_bytes.filter(|bytes| *bytes > 0),
            size: match size.filter(|size| !is_whole(size)).or(filesize) {
                Some(size) if !fills && !is_whole(&size) => Some(size),
                _ => None,
            },
            fills,
            io_size: self.amount("io_size")?.filter(|size| *size != Amount::ZERO),
            loops,
            ops: Some(ops).filter(|ops| *ops > 0),
            is_time_based,
        })
    }

    /// How the blocks of a job that does this are verified. Returns whether it only does that.
    fn verify(&self, rw: Rw, flags: &mut WorkloadFlags) -> Translated<bool> {
        let only = self.flag("verify_only")?;
        // fio writes null, but does not check it.
        let given = self.value("verify")?;
        let given = given.filter(|(_, kind)| !["0", "none", "null"].contains(kind));
        let Some((setting, kind)) = given else {
            return if only {
                Err(self.error("verify_only", "it needs verify, such as crc32c"))
            } else {
                Ok(false)
            };
        };
        if kind == "pattern" {
            flags.shape.known_content = Some(self.verify_pattern()?.ok_or_else(|| {
                setting.error("it needs the pattern; add one such as verify_pattern=0x55")
            })?);
        }
        let is_pattern = matches!(kind, "meta" | "pattern" | "pattern_hdr");
        let mut sums = ["md5", "crc", "sha", "xxhash"].iter();
        if !is_pattern && !sums.any(|sum| kind.starts_with(sum)) {
            return Err(setting.error(
                "diskproof verifies with checksums; use one, such as crc32c, or remove the option",
            ));
        }
        if rw.leaves_no_content() {
            return Err(setting.error("trims leave nothing to verify; remove the option"));
        }
        if only && rw.is_mix() {
            return Err(self.error(
                "verify_only",
                "the blocks that a mix wrote are unknown; use rw=read over the written blocks",
            ));
        }
        let is_checked = self.switch("do_verify")?.unwrap_or(true) || only;
        let writes = rw.changes_blocks() && !only;
        flags.verify = is_checked.then_some(true);
        flags.signs_only = writes && !is_checked;
        if is_checked && writes && flags.shape.known_content.is_none() {
            let (has_pattern, no_pattern) = (
                "verify uses diskproof's own checksums, checked after all writes; the blocks \
                 contain random data instead of the pattern",
                "verify uses diskproof's own checksums, checked after all writes; fio cannot read \
                 them",
            );
            let is_pattern = is_pattern || self.setting("verify_pattern").is_some();
            self.note(if is_pattern { has_pattern } else { no_pattern });
            if self.bytes("verify_backlog", 0)? > 0 {
                self.note(
                    "verify_backlog: everything is read back after all writes; fio reads back \
                     while it writes",
                );
            }
        }
        Ok(only)
    }

    /// How writes become durable, where there are any. With other syncs, one at the end would add
    /// at most one, which a plan cannot express.
    fn sync(&self, rw: Rw, flags: &mut WorkloadFlags) -> Translated<()> {
        let (sync, dsync) = (WriteFlag::OpenSync, WriteFlag::OpenDsync);
        let kinds = [("none", None), ("sync", Some(sync)), ("dsync", Some(dsync))];
        let kinds = [&kinds[..], &[("0", None), ("1", Some(sync))]].concat();
        let sync = self.choice("sync", &kinds)?.flatten();
        let every = |name| Ok(Some(self.bytes(name, 0)?).filter(|n| *n > 0).map(Count));
        let (fsync, fdatasync) = (every("fsync")?, every("fdatasync")?);
        let at_end = self.flag("end_fsync")? || self.flag("fsync_on_close")?;
        if rw.makes(OpKind::Write) {
            (flags.fsync, flags.fdatasync) = (fsync, fdatasync);
            if fsync.is_some() || fdatasync.is_some() {
                flags.shape.opened_with = sync;
            } else {
                flags.sync = sync.map(SyncedWrites);
            }
            let is_only = fsync.is_none() && fdatasync.is_none() && sync.is_none();
            flags.end_fsync = (at_end && is_only).then_some(true);
        }
        Ok(())
    }
}
