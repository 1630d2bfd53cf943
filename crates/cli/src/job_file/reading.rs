//! Reads a section of a job file as a job: checks every option, and applies fio's defaults and
//! syntax.

mod content;
mod latency_target;
mod operations;
mod shape;
mod steady;
mod thread;
mod zones;

use super::error::JobFileError;
use super::jobs::{Cache, Filename, FioJob, JobExtent, WaitsFor};
use super::notes::{TranslationNote, TranslationNotes};
use super::numbers::{self, Amount, Base};
use super::options::{self, Handling};
use super::sections::{Scope, Section, Setting, last_by_name};
use crate::flags::EngineName;
use crate::workload::{Order, Rw, RwDirection};
use diskproof_model::plan::Verify;
use diskproof_model::shape::LoadShape;
use std::collections::BTreeMap;

pub(crate) const FILENAME_FORMAT_DEFAULT: &str = "$jobname.$jobnum.$filenum";
/// More copies than any machine gains from.
const NUMJOBS_MAX: u64 = 1024;

/// Reads a section.
pub(crate) fn read_job(
    section: &Section,
    notes: &mut TranslationNotes,
) -> Result<FioJob, JobFileError> {
    // An unsupported engine has its own options, and explains them; so its error comes first.
    let named = |key: &str| options::canonical(key).unwrap_or("");
    let engine = check_engine(section)?;
    for setting in &section.settings {
        check(setting, section, notes)?;
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
    JobReader {
        section,
        given,
        base,
        notes,
    }
    .job(engine)
}

/// The engine of a section.
pub(crate) fn check_engine(section: &Section) -> Result<EngineName, JobFileError> {
    last_by_name(&section.settings, |key| {
        options::canonical(key).unwrap_or("")
    })
    .get("ioengine")
    .map_or(Ok(EngineName::Sync), |setting| engine(setting))
}

/// Refuses unknown options and those that would change the load; notes those that are ignored.
fn check(
    setting: &Setting,
    section: &Section,
    notes: &mut TranslationNotes,
) -> Result<(), JobFileError> {
    let Some(row) = options::row(&setting.key) else {
        return Err(setting.error(
            "fio 3.42 has no such option for the supported engines; check the spelling, or remove \
             it",
        ));
    };
    let name = options::canonical(&setting.key).unwrap_or_default();
    match row.handling {
        Handling::Translated => Ok(()),
        Handling::Ignored => {
            notes.ignore_option(name, row.text);
            Ok(())
        }
        Handling::Refused(harmless)
            if setting
                .value
                .as_deref()
                .is_some_and(|value| harmless.contains(&value)) =>
        {
            Ok(())
        }
        Handling::Refused(_) => Err(setting.error(format!(
            "[{}]: fio's '{name}' {}",
            section.name,
            options::refusal(name)
        ))),
    }
}

fn engine(setting: &Setting) -> Result<EngineName, JobFileError> {
    Ok(match setting.value.as_deref().unwrap_or_default() {
        "libaio" => EngineName::Aio,
        "io_uring" => EngineName::Uring,
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => EngineName::Sync,
        "mmap" => EngineName::Mmap,
        // The C library handles requests to one file one at a time, whatever iodepth is.
        "posixaio" => EngineName::Sync,
        _ => {
            return Err(setting.error(
                "this engine is not supported; use libaio, io_uring, psync (or sync, vsync, \
                 pvsync, pvsync2, posixaio) or mmap",
            ));
        }
    })
}

/// A setting, and its value or a part of it.
type OptionValue<'a> = (&'a Setting, &'a str);

/// Reads the settings of one section.
struct JobReader<'a, 'b> {
    section: &'a Section,
    given: BTreeMap<&'static str, &'a Setting>,
    base: Base,
    notes: &'b mut TranslationNotes,
}

impl<'a> JobReader<'a, '_> {
    fn job(&mut self, engine: EngineName) -> Result<FioJob, JobFileError> {
        let (mut rw, postfix) = self.rw()?;
        let engine = self.trimming_engine(rw, engine);
        let (verify, only_verifies) = self.verify(rw.direction)?;
        if only_verifies {
            rw.direction = RwDirection::Read;
        }
        let (blocks, write_mix) = self.blocks(rw)?;
        let walk_order = self.walk_order(rw, postfix, &blocks)?;
        let writes = rw.writes_data();
        let every = |count: u64| if writes { count } else { 0 };
        let (fsync, fdatasync) = (
            every(self.count("fsync", 0)?),
            every(self.count("fdatasync", 0)?),
        );
        let at_end = writes && (self.flag("end_fsync")? || self.flag("fsync_on_close")?);
        let exits_all = self.flag("exitall")?;
        self.check_files(rw)?;
        Ok(FioJob {
            source: self.section.source.clone(),
            section: self.section.name.clone(),
            name: self.name(),
            description: self.text("description"),
            rw,
            walk_order,
            depth: self.depth(engine)?,
            engine,
            numjobs: self.numjobs()?,
            cache: self.cache(engine)?,
            extent: self.extent()?,
            distribution: self.distribution(rw)?,
            is_mapped: self.is_mapped(rw)?,
            read_share: self.read_share(rw)?,
            rate: self.rate(rw, &blocks, &write_mix)?,
            shape: LoadShape {
                content: match writes && verify == Verify::Off {
                    true => self.content(&blocks, &write_mix)?,
                    false => None,
                },
                steady: self.steady()?,
                flow: self.flow()?,
                scheduling: self.scheduling()?,
                zone_stride: self.zone_stride(rw)?,
                ordinary_pages: self.text("mem").is_none_or(|kind| !kind.contains("huge")),
                ..self.shape(rw, postfix, &blocks, write_mix)?
            },
            latency_target: self.latency_target()?,
            blocks,
            fsync,
            fdatasync,
            // With 1, a sync follows the last write anyway.
            syncs_at_end: at_end && fsync != 1 && fdatasync != 1,
            verify,
            time_ns: self.time("runtime")?,
            ramp_ns: self.time("ramp_time")?,
            overwrites: self.flag("overwrite")?,
            waits: self.flag("stonewall")?,
            waits_for: self.waits_for()?,
            exits_all,
            reports_together: self.flag("group_reporting")?,
            begins_group: self.flag("new_group")?,
            sync: self.sync(writes)?,
            ends_everything: self.ends_everything()?,
            filename: self.filename()?,
            directories: self.directories()?,
            filename_format: self
                .text("filename_format")
                .unwrap_or_else(|| FILENAME_FORMAT_DEFAULT.to_owned()),
        })
    }

    fn waits_for(&self) -> Result<Option<WaitsFor>, JobFileError> {
        let found = self.value("wait_for")?;
        Ok(found
            .filter(|(_, name)| *name != "none")
            .map(|(setting, name)| WaitsFor {
                section: name.to_owned(),
                source: setting.source.clone(),
            }))
    }

    fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.given.get(name).copied()
    }

    /// Index of the setting among those of the section.
    fn position(&self, name: &str) -> Option<usize> {
        let setting = self.setting(name)?;
        let mut settings = self.section.settings.iter();
        settings.rposition(|other| other.as_ref() == setting)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.setting(name).and_then(|setting| setting.value.clone())
    }

    /// The setting and its value, which must not be empty.
    fn value(&self, name: &str) -> Result<Option<OptionValue<'a>>, JobFileError> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        match setting.value.as_deref() {
            Some(value) if !value.is_empty() => Ok(Some((setting, value))),
            _ => Err(setting.error("the value is missing")),
        }
    }

    fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, JobFileError> {
        let Some((setting, value)) = self.value(name)? else {
            return Ok(None);
        };
        parse(value).map(Some).map_err(|why| setting.error(why))
    }

    fn count(&self, name: &str, default: u64) -> Result<u64, JobFileError> {
        Ok(self
            .parsed(name, |text| numbers::bytes(text, self.base))?
            .unwrap_or(default))
    }

    fn amount(&self, name: &str) -> Result<Option<Amount>, JobFileError> {
        self.parsed(name, |text| numbers::amount(text, self.base))
    }

    fn time(&self, name: &str) -> Result<u64, JobFileError> {
        Ok(self.parsed(name, numbers::time_ns)?.unwrap_or(0))
    }

    /// Reads a switch: without a value, or with 0 or 1.
    fn flag(&self, name: &str) -> Result<bool, JobFileError> {
        Ok(self.switch(name)?.unwrap_or(false))
    }

    fn switch(&self, name: &str) -> Result<Option<bool>, JobFileError> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        match setting.value.as_deref() {
            None | Some("1") => Ok(Some(true)),
            Some("0") => Ok(Some(false)),
            Some(_) => Err(setting.error("write 0 or 1")),
        }
    }

    fn name(&self) -> String {
        // A name in [global] does not apply to jobs, as in fio.
        let own = self
            .setting("name")
            .filter(|setting| setting.scope == Scope::Own)
            .and_then(|setting| setting.value.clone());
        own.unwrap_or_else(|| self.section.name.clone())
    }

    fn depth(&mut self, engine: EngineName) -> Result<u64, JobFileError> {
        let is_offloaded = match self.value("io_submit_mode")? {
            None | Some((_, "inline")) => false,
            Some((_, "offload")) => true,
            Some((setting, _)) => return Err(setting.error("use inline or offload")),
        };
        match self.count("iodepth", 1)? {
            depth
                if depth > 1
                    && !is_offloaded
                    && matches!(engine, EngineName::Sync | EngineName::Mmap) =>
            {
                self.notes.add(TranslationNote::Depth, &self.section.name);
                Ok(1)
            }
            depth => Ok(depth),
        }
    }

    /// Neither Linux AIO nor a memory mapping has trims. fio makes a blocking call of each.
    fn trimming_engine(&mut self, rw: Rw, engine: EngineName) -> EngineName {
        match (rw.trims(), engine) {
            (Some(_), EngineName::Aio | EngineName::Mmap) => {
                self.notes
                    .add(TranslationNote::BlockingTrims, &self.section.name);
                EngineName::Sync
            }
            _ => engine,
        }
    }

    fn numjobs(&self) -> Result<u64, JobFileError> {
        match self.count("numjobs", 1)? {
            0 => Ok(1),
            jobs if jobs > NUMJOBS_MAX => {
                let setting = self
                    .setting("numjobs")
                    .map_or(&self.section.source, |setting| &setting.source);
                Err(setting.error(format!(
                    "numjobs={jobs} is too large; use at most {NUMJOBS_MAX}"
                )))
            }
            jobs => Ok(jobs),
        }
    }

    fn cache(&self, engine: EngineName) -> Result<Cache, JobFileError> {
        // Of the two, the later one counts.

        let is_direct = match (self.switch("direct")?, self.switch("buffered")?) {
            (Some(_), Some(is_buffered)) if self.position("buffered") > self.position("direct") => {
                !is_buffered
            }
            (Some(is_direct), _) => is_direct,
            (None, is_buffered) => is_buffered == Some(false),
        };
        Ok(match self.switch("invalidate")?.unwrap_or(true) {
            _ if is_direct && engine != EngineName::Mmap => Cache::Direct,
            true => Cache::Emptied,
            false => Cache::Kept,
        })
    }

    fn extent(&self) -> Result<JobExtent, JobFileError> {
        let (size, filesize) = (
            self.amount("size")?,
            self.parsed("filesize", |text| numbers::bytes(text, self.base))?
                .map(Amount::Bytes),
        );
        if let (Some(size), Some(file), Some(setting)) = (size, filesize, self.setting("filesize"))
            && size != file
        {
            return Err(setting.error(
                "size differs, but in diskproof a file is as large as its used part; write that as \
                 size, and the bytes to transfer as io_size",
            ));
        }
        let increment = self.count("offset_increment", 0)?;
        let fills = self.flag("fill_device")?;
        let is_time_based = self.flag("time_based")? && self.time("runtime")? > 0;
        let loops = self.count("loops", 1)?.max(1);
        let ops = Some(self.count("number_ios", 0)?.saturating_mul(loops)).filter(|ops| *ops > 0);
        let io_size = self
            .amount("io_size")?
            .filter(|size| *size != Amount::Bytes(0));
        Ok(JobExtent {
            offset: self.amount("offset")?.unwrap_or(Amount::Bytes(0)),
            increment,
            file_bytes: match filesize {
                Some(Amount::Bytes(bytes)) if bytes > 0 => Some(bytes),
                _ => None,
            },
            size: size
                .or(filesize)
                .filter(|size| !fills && !matches!(size, Amount::Bytes(0) | Amount::Percent(100))),
            fills,
            io_size,
            loops,
            ops,
            is_time_based,
        })
    }

    /// How the blocks of a job of this direction are verified, and whether it only does that.
    fn verify(&mut self, direction: RwDirection) -> Result<(Verify, bool), JobFileError> {
        let only = self
            .setting("verify_only")
            .filter(|_| self.flag("verify_only").unwrap_or(true));
        // fio writes null, but does not check it.
        let given = self.value("verify")?;
        let Some((setting, value)) =
            given.filter(|(_, value)| !matches!(*value, "0" | "none" | "null"))
        else {
            return match only {
                Some(setting) => Err(setting.error("verify_only needs verify, such as crc32c")),
                None => Ok((Verify::Off, false)),
            };
        };
        let sums = ["md5", "crc", "sha", "xxhash"];
        let is_pattern = matches!(value, "meta" | "pattern" | "pattern_hdr");
        if !is_pattern && !sums.iter().any(|sum| value.starts_with(sum)) {
            return Err(setting.error(
                "diskproof verifies with checksums; use one, such as crc32c, or remove the option",
            ));
        }
        if direction == RwDirection::Trim {
            return Err(setting.error("trims leave nothing to verify; remove the option"));
        }
        if let Some(setting) = only.filter(|_| direction == RwDirection::Mixed) {
            return Err(setting.error(
                "the blocks that a mix wrote are unknown; use rw=read over the written \
                        blocks",
            ));
        }
        let (is_checked, writes) = (
            self.switch("do_verify")?.unwrap_or(true),
            direction != RwDirection::Read && only.is_none(),
        );
        let verify = match (writes, is_checked || only.is_some()) {
            (_, true) => Verify::Checksum,
            (true, false) => Verify::SignOnly,
            (false, false) => Verify::Off,
        };
        if verify == Verify::Checksum && writes {
            let note = match is_pattern || self.setting("verify_pattern").is_some() {
                true => TranslationNote::VerifyPattern,
                false => TranslationNote::Verify,
            };
            self.notes.add(note, &self.section.name);
            if self.count("verify_backlog", 0)? > 0 {
                self.notes
                    .add(TranslationNote::VerifyBacklog, &self.section.name);
            }
        }
        Ok((verify, only.is_some()))
    }

    /// `sync`, for a job that writes.
    fn sync(&self, writes: bool) -> Result<Option<&'static str>, JobFileError> {
        let flag = match self.value("sync")? {
            None | Some((_, "0" | "none")) => None,
            Some((_, "1" | "sync")) => Some("sync"),
            Some((_, "dsync")) => Some("dsync"),
            Some((setting, _)) => return Err(setting.error("use none, sync or dsync")),
        };
        Ok(flag.filter(|_| writes))
    }

    fn ends_everything(&self) -> Result<bool, JobFileError> {
        match self.value("exit_what")? {
            // Jobs that run together are those between two stonewalls.
            None | Some((_, "group" | "stonewall")) => Ok(false),
            Some((_, "all")) => Ok(self.flag("exitall")?),
            Some((setting, _)) => Err(setting.error("use group, stonewall or all")),
        }
    }

    /// Several files of one job are one here, where no order of requests among them is lost: random
    /// requests go to any of them, or one file follows another.
    fn check_files(&mut self, rw: Rw) -> Result<(), JobFileError> {
        let files = self.count("nrfiles", 1)?;
        let Some(setting) = self.setting("nrfiles").filter(|_| files > 1) else {
            return Ok(());
        };
        let service = self.value("file_service_type")?.map(|(_, value)| value);
        let is_uniform = self
            .value("random_distribution")?
            .is_none_or(|(_, value)| value == "random");
        let is_alike = match (rw.order, service) {
            (Order::Random, None | Some("roundrobin" | "random" | "sequential")) => is_uniform,
            (Order::Sequential, Some("sequential")) => true,
            _ => false,
        };
        let is_sized = self.setting("size").is_some() && self.setting("filesize").is_none();
        if !is_alike || !is_sized || self.setting("filename").is_some() {
            return Err(setting.error(
                "several files for one job are supported with uniformly random requests, or with \
                 file_service_type=sequential, if size is set, and neither filesize nor filename; \
                 otherwise use nrfiles=1 and their total size",
            ));
        }
        self.notes.add(TranslationNote::Files, &self.section.name);
        Ok(())
    }

    fn filename(&self) -> Result<Option<Filename>, JobFileError> {
        // Each one adds to those before it.
        let given = self
            .section
            .settings
            .iter()
            .filter(|setting| setting.key == "filename");
        let mut found: Option<Filename> = None;
        let is_own_directory = self
            .setting("directory")
            .is_some_and(|setting| setting.scope == Scope::Own);
        for setting in given {
            let value = setting
                .value
                .as_deref()
                .filter(|value| !value.is_empty())
                .ok_or_else(|| setting.error("the name is missing"))?;
            if is_own_directory && setting.scope == Scope::Global {
                return Err(setting.error(format!(
                    "[{}] sets a directory, which fio does not apply to a filename from [global]; \
                     put both into one section",
                    self.section.name
                )));
            }
            for name in split_names(value) {
                let source = setting.source.clone();
                let names = found.take().map_or_else(Vec::new, |file| file.names);
                let is_known = names.contains(&name);
                let new = Some(name).filter(|_| !is_known);
                found = Some(Filename {
                    names: names.into_iter().chain(new).collect(),
                    source,
                });
            }
        }
        let is_stream = |file: &&Filename| file.names.iter().any(|name| name == "-");
        if let Some(Filename { source, .. }) = found.as_ref().filter(is_stream) {
            return Err(source.error("filename=-: standard input and output are not a disk"));
        }
        Ok(found)
    }

    fn directories(&self) -> Result<Vec<String>, JobFileError> {
        let given = self.value("directory")?;
        Ok(given.map_or_else(Vec::new, |(_, value)| split_names(value)))
    }
}

/// Splits names at colons; `\:` is a colon inside a name.
fn split_names(value: &str) -> Vec<String> {
    let hidden = value.replace("\\:", "\0");
    hidden
        .split(':')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('\0', ":"))
        .collect()
}
