//! Reads a section of a job file as a job: checks every option, and applies fio's defaults and
//! syntax.

mod blocks;
mod content;
mod copies;
mod durability;
mod engine;
mod files;
mod limits;
mod operations;
mod options;
mod order;
mod pacing;
mod reader;
mod values;
mod verify;

use super::jobs::{Cache, FioJob};
use super::sections::{Scope, Section, Setting};
use super::translation::{JobFileError, Translated, Translation};
use diskproof_compat::{
    FioCondition, FioHandling, FioOption, fio_engine_has, fio_option, fio_similar, fio_value_error,
};
use diskproof_model::op::OpKind;
use diskproof_model::rw::Order;
use options::PHASES;
use reader::{BASES, JobReader};

/// Engines of fio that read and write no file.
struct OtherEngines {
    /// Their names, separated by spaces.
    names: &'static str,
    /// What to use instead.
    instead: &'static str,
}

const OTHER_ENGINES: [OtherEngines; 3] = [
    OtherEngines {
        names: "filecreate fileoperations filestat filedelete dircreate dirstat dirdelete",
        instead: "diskproof files DIR, which creates, stats, reads, renames and deletes files: \
                  --count for nrfiles, --file-size for filesize and --threads for numjobs",
    },
    OtherEngines {
        names: "falloc ftruncate e4defrag",
        instead: "the real fio: it changes the layout of files, which diskproof does not measure",
    },
    OtherEngines {
        names: "null cpuio exec net netsplice rdma http rados rbd gfapi gfapi_async libhdfs nfs \
                libiscsi nbd",
        instead: "the real fio: it reads and writes no file or disk of this machine",
    },
];

/// Engines that fio has, and that no other program replaces.
const FURTHER_ENGINES: &str = "splice sg mtd pmemblk dev-dax libpmem io_uring_cmd";

/// Reads a section as a job, whose number follows from the copies of the jobs before it. Fails at
/// the first option that is unknown or would change the load.
pub(crate) fn read_job(
    section: &Section,
    copies_before: u64,
    translation: &Translation<'_>,
) -> Translated<FioJob> {
    let reader = JobReader::new(section, copies_before, translation);
    if translation.is_as_fio() {
        reader.check_logs()?;
    }
    // An unsupported engine has its own options, and explains them; so its error comes first.
    reader.check_engine()?;
    reader.choice("kb_base", &BASES)?;
    for setting in &section.settings {
        reader.check(setting)?;
    }
    reader.check_zone_mode()?;
    let mut job = FioJob::from_section(section);
    for phase in PHASES {
        for setter in phase {
            setter.apply(&reader, &mut job)?;
        }
    }
    // The setters say more about a wrong value, but not all of them read theirs.
    for setting in &section.settings {
        check_value(setting)?;
    }
    Ok(job)
}

/// Refuses a value that fio would not take, also where another setting or another option makes it
/// void.
fn check_value(setting: &Setting) -> Translated<()> {
    let option = fio_option(&setting.option.key);
    let (Some(option), Some(value)) = (option, setting.option.value.as_deref()) else {
        return Ok(());
    };
    match fio_value_error(option.name(), value) {
        Some(why) => Err(setting.error(why)),
        None => Ok(()),
    }
}

/// The section without the options and engines that fio has and diskproof refuses. Test suites ask
/// with `--showcmd` whether fio reads a job file; a run of it is refused all the same.
pub(crate) fn without_refused(section: &Section) -> Section {
    let mut kept = section.clone();
    kept.settings.retain(|setting| {
        let Some(option) = fio_option(&setting.option.key) else {
            return true;
        };
        let value = setting.option.value.as_deref();
        if option.name() == "ioengine" {
            return !value.is_some_and(is_refused_engine);
        }
        let is_readable = !option.is_boolean || matches!(value, None | Some("0" | "1"));
        !(is_readable && matches!(option.handling, FioHandling::Refused { .. }))
    });
    kept
}

/// True if fio has this engine, and diskproof refuses it.
fn is_refused_engine(name: &str) -> bool {
    let others = OTHER_ENGINES.iter().map(|engines| engines.names);
    others
        .chain([FURTHER_ENGINES])
        .any(|names| names.split_whitespace().any(|other| other == name))
}

/// Refuses an engine that is not supported.
pub(crate) fn check_engine(section: &Section, translation: &Translation<'_>) -> Translated<()> {
    JobReader::new(section, 0, translation).check_engine()
}

impl JobReader<'_> {
    /// Refuses an engine that is not supported, and names a replacement.
    fn check_engine(&self) -> Translated<()> {
        if let Some(given) = self.value("ioengine")? {
            for engines in &OTHER_ENGINES {
                if engines.names.split(' ').any(|name| name == given.text) {
                    return Err(given.error(format!("use {}", engines.instead)));
                }
            }
        }
        self.named_engine()?;
        Ok(())
    }

    /// Refuses sizes of zones in a job that has none, as fio does.
    fn check_zone_mode(&self) -> Translated<()> {
        match self.value("zonemode")? {
            Some(given) if given.text == "none" && self.bytes("zonesize", 0)? > 0 => {
                Err(given.error("fio takes no zonesize with it; remove one of them"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses unknown options and those that would change the load; notes those that are ignored.
    fn check(&self, setting: &Setting) -> Translated<()> {
        let Some(option) = fio_option(&setting.option.key) else {
            return Err(unknown_option(setting));
        };
        let engine = self.engine_before(setting);
        if self.translation.is_as_fio() && !fio_engine_has(engine, &setting.option.key) {
            return Err(setting.error(format!(
                "fio has no such option for the engine {engine}; name its engine in the same \
                 section, or remove it"
            )));
        }
        let value = setting.option.value.as_deref();
        if option.is_boolean && !matches!(value, None | Some("0" | "1")) {
            return Err(setting.error("write 0 or 1"));
        }
        match &option.handling {
            FioHandling::Refused { except, only } => {
                if let Some(value) = value
                    && except.contains(&value)
                {
                    return Ok(());
                }
                self.check_refused(setting, option, *only)
            }
            FioHandling::Carried if self.translation.is_as_fio() => Ok(()),
            FioHandling::Ignored | FioHandling::Carried => {
                self.translation.ignore_option(option.name(), option.text);
                Ok(())
            }
            FioHandling::Translated | FioHandling::Hint => Ok(()),
        }
    }

    /// The I/O engine that decides whether fio knows a setting: that of the setting's own section
    /// or of the global ones before it; fio's default without one.
    fn engine_before(&self, setting: &Setting) -> &str {
        for other in self.section.settings.iter().rev() {
            let is_before = other.pass <= setting.pass
                && (setting.scope == Scope::Own || other.scope == Scope::Global);
            if is_before
                && other.option.key == "ioengine"
                && let Some(engine) = &other.option.value
            {
                return engine;
            }
        }
        "psync"
    }

    /// Refuses an option that changes the load, unless the job is one in which it does not.
    fn check_refused(
        &self,
        setting: &Setting,
        option: &'static FioOption,
        only: Option<FioCondition>,
    ) -> Translated<()> {
        if let Some(condition) = only
            && !self.has_effect(condition)?
        {
            let why = "no effect in this job";
            self.translation.ignore_option(option.name(), why);
            return Ok(());
        }
        Err(setting.error(format!(
            "[{}]: fio's '{}' {}",
            self.section.name,
            option.name(),
            option.text
        )))
    }

    /// True if the job meets the condition under which an option has an effect.
    fn has_effect(&self, condition: FioCondition) -> Translated<bool> {
        let rw = self.rw_setting()?.rw;
        match condition {
            FioCondition::Random => Ok(rw.order == Order::Random),
            FioCondition::Writes => Ok(rw.makes(OpKind::Write)),
            FioCondition::Buffered => Ok(self.cache(self.named_engine()?)? != Cache::Direct),
            FioCondition::QueuedWrites => {
                Ok(rw.changes_blocks() && self.depth(self.engine(rw)?)? > 1)
            }
            FioCondition::Loops => Ok(self.bytes("loops", 1)? > 1 || self.flag("time_based")?),
            FioCondition::Option(name) => Ok(self.is_set(name)),
        }
    }
}

/// The error of an option that fio does not have, with a similar one that may be meant.
fn unknown_option(setting: &Setting) -> JobFileError {
    let meant = match fio_similar(&setting.option.key) {
        Some(name) => format!(". Did you mean {name}?"),
        None => String::new(),
    };
    setting.error(format!(
        "fio 3.42 has no such option for the supported engines; check the spelling, or remove \
         it{meant}"
    ))
}
