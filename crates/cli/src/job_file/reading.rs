//! A section of a job file as a job, with fio's defaults: what stands in it is checked, and read in
//! fio's way.

mod operations;

use super::JobFileError;
use super::jobs::{Cache, Filename, FioJob, JobExtent};
use super::numbers::{self, Amount, Base};
use super::options::{self, Handling};
use super::remarks::{TranslationNote, TranslationNotes};
use super::sections::{Scope, Section, Setting, last_by_name};
use crate::flags::EngineName;
use crate::workload::Direction;
use std::collections::BTreeMap;

const FILENAME_FORMAT_DEFAULT: &str = "$jobname.$jobnum.$filenum";
/// More than any machine gains from, and few enough to be told apart in results.
const NUMJOBS_MAX: u64 = 1024;
/// Reads a section.
pub fn read_job(section: &Section, remarks: &mut TranslationNotes) -> Result<FioJob, JobFileError> {
    // An engine that is none here has options of its own, and is what to hear about first.
    let named = |key: &str| options::canonical(key).unwrap_or("");
    let engine = last_by_name(&section.settings, named)
        .get("ioengine")
        .map_or(Ok(EngineName::Sync), |setting| engine(setting))?;
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
    JobReader {
        section,
        given,
        base,
        remarks,
    }
    .job(engine)
}

/// Says what is no option, refused or left out.
fn check(
    setting: &Setting,
    section: &Section,
    remarks: &mut TranslationNotes,
) -> Result<(), JobFileError> {
    let Some(row) = options::row(&setting.key) else {
        return Err(setting.error(
            "fio 3.42 has no such option, or only for engines that are none here: mind the \
             spelling, or leave it out",
        ));
    };
    let name = options::canonical(&setting.key).unwrap_or_default();
    match row.fate {
        Handling::Carried => Ok(()),
        Handling::LeftOut => {
            remarks.leave_out(name, row.text);
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
        "posixaio" => {
            return Err(setting.error(
                "the C library takes requests of one file one after the other there, whatever \
                 iodepth says: write libaio or io_uring for a queue, psync for none",
            ));
        }
        _ => {
            return Err(setting.error(
                "this engine measures something else than a disk by reads and writes, or goes its \
                 own way to it: use libaio, io_uring, psync (also sync, vsync, pvsync, pvsync2) \
                 or mmap",
            ));
        }
    })
}

/// A setting, and its value or a part of it.
type OptionValue<'a> = (&'a Setting, &'a str);

struct JobReader<'a, 'b> {
    section: &'a Section,
    given: BTreeMap<&'static str, &'a Setting>,
    base: Base,
    remarks: &'b mut TranslationNotes,
}

impl<'a> JobReader<'a, '_> {
    fn job(&mut self, engine: EngineName) -> Result<FioJob, JobFileError> {
        let (rw, postfix) = self.rw()?;
        let blocks = self.blocks(rw)?;
        let gait = self.gait(rw, postfix, &blocks)?;
        let writes = rw.direction != Direction::Read;
        let every = |count: u64| if writes { count } else { 0 };
        let (fsync, fdatasync) = (
            every(self.count("fsync", 0)?),
            every(self.count("fdatasync", 0)?),
        );
        let at_end = writes && (self.flag("end_fsync")? || self.flag("fsync_on_close")?);
        let exits_all = self.flag("exitall")?;
        self.names_one_file()?;
        Ok(FioJob {
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
            law: self.law(rw, &blocks)?,
            is_mapped: self.is_mapped(rw)?,
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
            overwrites: self.flag("overwrite")?,
            waits: self.flag("stonewall")?,
            exits_all,
            ends_everything: self.ends_everything()?,
            filename: self.filename()?,
            directory: self.directory()?,
            filename_format: self
                .text("filename_format")
                .unwrap_or_else(|| FILENAME_FORMAT_DEFAULT.to_owned()),
        })
    }

    fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.given.get(name).copied()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.setting(name).and_then(|setting| setting.value.clone())
    }

    /// The setting and its value, which must be there.
    fn value(&self, name: &str) -> Result<Option<OptionValue<'a>>, JobFileError> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        match setting.value.as_deref() {
            Some(value) if !value.is_empty() => Ok(Some((setting, value))),
            _ => Err(setting.error("a value is missing behind it")),
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

    /// A switch: alone, or with 0 or 1.
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
        // One of [global] is the name of no job, in fio as well.
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
                self.remarks
                    .tell(TranslationNote::Depth, &self.section.name);
                Ok(1)
            }
            depth => Ok(depth),
        }
    }

    fn numjobs(&self) -> Result<u64, JobFileError> {
        match self.count("numjobs", 1)? {
            0 => Ok(1),
            jobs if jobs > NUMJOBS_MAX => {
                let setting = self
                    .setting("numjobs")
                    .map_or(&self.section.spot, |setting| &setting.spot);
                Err(setting.error(format!(
                    "numjobs={jobs} is too much; use at most {NUMJOBS_MAX}"
                )))
            }
            jobs => Ok(jobs),
        }
    }

    fn cache(&self, engine: EngineName) -> Result<Cache, JobFileError> {
        // The later one counts where both are given.
        let (direct, buffered) = (self.setting("direct"), self.setting("buffered"));
        let place = |setting: Option<&Setting>| {
            self.section
                .settings
                .iter()
                .rposition(|other| Some(other.as_ref()) == setting)
        };
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
                "size says something else: a file has the size that is used here, so write it as \
                 size, and what is done as io_size",
            ));
        }
        let increment = self.count("offset_increment", 0)?;
        let is_time_based = self.flag("time_based")? && self.time("runtime")? > 0;
        let (loops, ops) = (
            self.count("loops", 1)?.max(1),
            Some(self.count("number_ios", 0)?).filter(|ops| *ops > 0),
        );
        if let (Some(setting), Some(_), 2..) = (self.setting("loops"), ops, loops) {
            return Err(setting.error("number_ios ends the job too: use one of them"));
        }
        let io_size = self
            .amount("io_size")?
            .filter(|size| *size != Amount::Bytes(0));
        if let (Some(setting), Some(_), 2..) = (self.setting("loops"), io_size, loops) {
            return Err(setting.error("io_size ends the job too: use one of them"));
        }
        Ok(JobExtent {
            offset: self.amount("offset")?.unwrap_or(Amount::Bytes(0)),
            increment,
            size: size
                .or(filesize)
                .filter(|size| !matches!(size, Amount::Bytes(0) | Amount::Percent(100))),
            io_size,
            loops,
            ops,
            is_time_based,
        })
    }

    fn verifies(&mut self, writes: bool) -> Result<bool, JobFileError> {
        let Some((setting, value)) = self.value("verify")? else {
            return Ok(false);
        };
        if matches!(value, "0" | "none") {
            return Ok(false);
        }
        let sums = ["md5", "crc", "sha", "xxhash"];
        if !sums.iter().any(|sum| value.starts_with(sum)) {
            return Err(setting.error(
                "blocks are verified by checksums here: use such as crc32c, or leave it out",
            ));
        }
        if !writes {
            return Err(setting.error(
                "only what the same job wrote is verified here: let it write, or leave verify out",
            ));
        }
        self.remarks
            .tell(TranslationNote::Verify, &self.section.name);
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
            (2.., Some(setting)) => Err(setting.error(
                "several files for one job have no place here: use nrfiles=1 and the size of all \
                 of them",
            )),
            _ => Ok(()),
        }
    }

    fn filename(&self) -> Result<Option<Filename>, JobFileError> {
        // Each adds to the ones before it.
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
                .ok_or_else(|| setting.error("a name is missing behind it"))?;
            if is_own_directory && setting.scope == Scope::Global {
                return Err(setting.error(format!(
                    "[{}] has a directory of its own, which in fio does not hold for a filename \
                     from [global]: put both into one section",
                    self.section.name
                )));
            }
            for name in split_names(value) {
                match &found {
                    Some(other) if other.name != name => {
                        return Err(setting.error(
                            "this job has several files, which it visits in turn: here each \
                             target has a queue of its own; write a section for each, or name the \
                             targets on the command line",
                        ));
                    }
                    _ => {
                        found = Some(Filename {
                            name,
                            spot: setting.spot.clone(),
                        })
                    }
                }
            }
        }
        if let Some(Filename { name, spot }) = found.as_ref().filter(|file| file.name == "-") {
            return Err(spot.error(format!(
                "filename={name}: standard input and output are no disk"
            )));
        }
        Ok(found)
    }

    fn directory(&self) -> Result<Option<String>, JobFileError> {
        let Some((setting, value)) = self.value("directory")? else {
            return Ok(None);
        };
        match split_names(value).as_slice() {
            [directory] => Ok(Some(directory.clone())),
            _ => Err(setting.error(
                "several directories for one job have no place here: write a section for each",
            )),
        }
    }
}

/// Names between colons; `\:` is a colon in a name.
fn split_names(value: &str) -> Vec<String> {
    let hidden = value.replace("\\:", "\0");
    hidden
        .split(':')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('\0', ":"))
        .collect()
}
