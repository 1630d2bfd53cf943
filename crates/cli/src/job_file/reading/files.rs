//! Reads the options that name files: those with data, directories, and fio's logs. The logs have
//! rates and latencies at intervals; no single request is recorded.

use super::reader::JobReader;
use crate::job_file::environment::PathKind;
use crate::job_file::file_names::first_paths;
use crate::job_file::jobs::{FILENAME_FORMAT_DEFAULT, FioJob, GivenNames};
use crate::job_file::sections::{Scope, Setting};
use crate::job_file::translation::{IN_ORDER, JobFileError, Translated};
use diskproof_model::op::OpKind;
use diskproof_model::shape::FileService;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The options that name logs of rates and latencies.
const LOGS: [&str; 4] = [
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
];

/// Sets the names of `filename`. Each setting adds names to those of the settings before it.
pub(super) fn set_filename(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let has_own_directory = match reader.setting("directory") {
        Some(setting) => setting.scope == Scope::Own,
        None => false,
    };
    for setting in &reader.section.settings {
        if setting.option.key != "filename" {
            continue;
        }
        let value = match setting.option.value.as_deref() {
            None | Some("") => return Err(setting.error("the name is missing")),
            Some(value) => value,
        };
        if has_own_directory && setting.scope == Scope::Global {
            return Err(setting.error(format!(
                "[{}] sets a directory, which fio does not apply to a filename from [global]; put \
                 both into one section",
                reader.section.name
            )));
        }
        for name in split_names(value) {
            if name == "-" {
                return Err(setting.error("standard input and output are not a disk"));
            }
            let given = job.file_set.filename.get_or_insert_with(|| GivenNames {
                names: Vec::new(),
                source: setting.source.clone(),
            });
            given.source = setting.source.clone();
            if !given.names.contains(&name) {
                given.names.push(name);
            } else if reader.translation.is_as_fio() {
                return Err(setting.error(format!(
                    "[{}] has this file already, and fio visits it as two; name it once",
                    reader.section.name
                )));
            }
        }
    }
    Ok(())
}

/// The values of `file_service_type`, without the number behind a colon.
const SERVICES: [(&str, FileService); 3] = [
    ("roundrobin", FileService::RoundRobin),
    ("random", FileService::Random),
    ("sequential", FileService::Sequential),
];

/// The choice of files that a word of `file_service_type` stands for; `None` for fio's weighted
/// ones.
pub(super) fn service_named(word: &str) -> Option<FileService> {
    let found = SERVICES.iter().find(|(name, _)| *name == word);
    found.map(|(_, service)| *service)
}

/// The order in which a job visits its files, which are parts of one file here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileOrder {
    /// The offsets are random over all files.
    AllAtOnce,
    /// One file after the other.
    OneAfterAnother,
    /// A request to each file in turn.
    InTurn,
}

/// Sets `nrfiles`, and for sequential requests whether they go to the files in turn. Refuses an
/// order of the files that the parts of one file cannot have.
pub(super) fn set_files(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if job.file_set.filename.is_none() && reader.number("nrfiles", u64::MAX)? == Some(0) {
        return Err(reader.error(
            "nrfiles",
            "without files fio moves nothing; write at least 1",
        ));
    }
    job.file_set.count = reader.file_count()?;
    if reader.has_fio_order()? && reader.is_set("filename") {
        // As in fio, the names are the files.
        job.file_set.count = 1;
    }
    let has_one_file = job.file_set.count <= 1 && job.file_count() <= 1;
    if has_one_file {
        return Ok(());
    }
    if reader.has_fio_order()? {
        return Ok(());
    }
    // Several names in `filename` are chosen by this option too, so it is checked for both.
    let service = reader.file_service()?;
    if job.file_set.count <= 1 {
        return Ok(());
    }
    let Some(order) = file_order(reader, job, service) else {
        return Err(too_many_files(reader));
    };
    if order == FileOrder::InTurn {
        job.file_set.alternate = job.may_alternate();
        if !job.file_set.alternate {
            reader.note(IN_ORDER);
        }
    }
    Ok(())
}

/// Refuses names that several files or copies of a job would have, where fio gives a file to the
/// first copy only.
pub(super) fn check_own_names(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if !reader.translation.is_as_fio() || job.file_set.filename.is_some() {
        return Ok(());
    }
    let sets_size = reader.is_set("size") || reader.is_set("filesize");
    if sets_size && job.file_set.count < reader.bytes("nrfiles", 1)? {
        return Err(reader.error(
            "filename_format",
            "the files of a copy have one name, so each is the first of them; add $filenum",
        ));
    }
    let paths = first_paths(job, reader.translation);
    let is_device = matches!(reader.translation.path_kind(&paths[0]), PathKind::Device(_));
    let names: BTreeSet<&PathBuf> = paths.iter().collect();
    if names.len() < paths.len() && !is_device {
        return Err(reader.error(
            "filename_format",
            "the copies have one file name, so only the first of them moves anything in fio; add \
             $jobnum, or use filename",
        ));
    }
    Ok(())
}

/// The order of the several files of a job; `None` if the parts of one file cannot have it.
fn file_order(reader: &JobReader<'_>, job: &FioJob, service: FileService) -> Option<FileOrder> {
    if reader.is_set("filename") {
        return None;
    }
    if job.is_random() {
        return if job.is_uniform() {
            Some(FileOrder::AllAtOnce)
        } else {
            None
        };
    }
    match service {
        FileService::Sequential => Some(FileOrder::OneAfterAnother),
        FileService::RoundRobin if job.goes_onward() => Some(FileOrder::InTurn),
        // A job without a limit reads every block, so that the order of the files does not matter.
        FileService::Random if job.goes_onward() && !reader.has_limit() => Some(FileOrder::InTurn),
        FileService::RoundRobin
        | FileService::Random
        | FileService::Zipf { .. }
        | FileService::Pareto { .. }
        | FileService::Normal { .. } => None,
    }
}

fn too_many_files(reader: &JobReader<'_>) -> JobFileError {
    reader.error(
        "nrfiles",
        "several files for one job are supported with uniformly random requests, with sequential \
         requests without gaps, or with file_service_type=sequential, if filename is not set; \
         otherwise use nrfiles=1 and their total size. For many small files \
         use diskproof files DIR --count N --file-size BYTES",
    )
}

pub(super) fn set_filename_format(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.file_set.filename_format = reader.filename_format().to_owned();
    Ok(())
}

/// Sets `directory`: several of them separated by colons. Fio adds files when it reads their names,
/// so that a directory which it reads later is not theirs: they keep the one before it.
pub(super) fn set_directories(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let mut given = reader.value("directory")?.map(|value| value.text);
    let settings = &reader.section.settings;
    let mut names = settings
        .iter()
        .filter(|setting| setting.option.key == "filename");
    if let Some(first) = names.next() {
        given = directory_of_names(settings, first);
        if let Some(other) = names.find(|other| directory_of_names(settings, other) != given) {
            return Err(
                other.error("the names before it are of another directory; name one job each")
            );
        }
    }
    if let Some(text) = given {
        job.file_set.directories = split_names(text);
    }
    Ok(())
}

/// The last directory that fio reads before these names, or together with them.
fn directory_of_names<'a>(settings: &'a [Rc<Setting>], names: &Setting) -> Option<&'a str> {
    let mut last = None;
    for setting in settings {
        if setting.option.key == "directory" && setting.pass <= names.pass {
            last = setting.option.value.as_deref();
        }
    }
    last
}

pub(super) fn set_overwrite(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.file_set.overwrites = reader.flag("overwrite")?;
    job.file_set.keeps_length = reader.text("fallocate") == Some("none")
        && !job.file_set.overwrites
        && !reader.written_rw()?.rw.makes(OpKind::Read);
    Ok(())
}

pub(super) fn set_unlink(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.file_set.unlinks = reader.flag("unlink")?;
    Ok(())
}

pub(super) fn set_create_only(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.file_set.only_creates = reader.flag("create_only")?;
    Ok(())
}

/// `allow_file_create` and `create_on_open`.
pub(super) fn set_creation(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.file_set.makes_none = reader.optional_flag("allow_file_create")? == Some(false);
    job.file_set.start_empty = reader.flag("create_on_open")?;
    Ok(())
}

/// `write_bw_log`, `write_iops_log`, `write_lat_log` and `write_hist_log`, which only `as fio`
/// writes.
pub(super) fn set_rate_logs(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.shown.logs_rates = reader.translation.is_as_fio();
    Ok(())
}

/// `write_iolog`, which only `as fio` writes.
pub(super) fn set_request_log(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let is_written = reader
        .text("write_iolog")
        .is_some_and(|path| !path.is_empty());
    if !reader.translation.is_as_fio() {
        let why = "only `diskproof as fio` records single requests";
        reader.translation.ignore_option("write_iolog", why);
        return Ok(());
    }
    if is_written && job.reads_back() {
        return Err(reader.error(
            "write_iolog",
            "the reads of verify are not recorded; set do_verify=0, or remove one of the two",
        ));
    }
    job.flags.shape.logs_requests = is_written;
    Ok(())
}

/// `block_error_percentiles`.
pub(super) fn set_block_errors(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if reader.flag("block_error_percentiles")? {
        let files = match &job.file_set.filename {
            Some(given) => given.names.len() as u64,
            None => reader.bytes("nrfiles", 1)?,
        };
        if reader.translation.is_as_fio() && files > 1 {
            return Err(reader.error(
                "block_error_percentiles",
                "fio counts errors of blocks only in a single file",
            ));
        }
        job.shown.error_block_bytes = Some(u64::from(reader.only_size(OpKind::Trim)?));
    }
    Ok(())
}

impl JobReader<'_> {
    fn filename_format(&self) -> &str {
        self.text("filename_format")
            .unwrap_or(FILENAME_FORMAT_DEFAULT)
    }

    /// The number of files of each copy. Where all would have one name, they are one file.
    fn file_count(&self) -> Translated<u64> {
        if self.filename_format().contains("$filenum") {
            Ok(self.bytes("nrfiles", 1)?.max(1))
        } else {
            Ok(1)
        }
    }

    /// Refuses fio's weighted choices, which visit some blocks again and others never.
    fn file_service(&self) -> Translated<FileService> {
        let Some(given) = self.value("file_service_type")? else {
            return Ok(FileService::RoundRobin);
        };
        // The number of requests after which the file changes follows a colon.
        let (word, _) = given.text.split_once(':').unwrap_or((given.text, ""));
        match service_named(word) {
            Some(service) => Ok(service),
            None => {
                Err(given
                    .error("files are chosen alike here; use roundrobin, random or sequential"))
            }
        }
    }

    /// True if something else than the end of its part ends the job.
    fn has_limit(&self) -> bool {
        ["runtime", "io_size", "number_ios"]
            .iter()
            .any(|limit| self.is_set(limit))
    }

    /// Refuses logs that would be missing at the end.
    pub(super) fn check_logs(&self) -> Translated<()> {
        if let Some(setting) = self.setting("write_iolog") {
            self.check_log_place(setting)?;
        }
        let has_interval = !matches!(self.text("log_avg_msec"), None | Some("0"));
        for name in LOGS {
            let Some(setting) = self.setting(name) else {
                continue;
            };
            if name != "write_hist_log" && !has_interval {
                self.note("without log_avg_msec the logs have a line per 100 ms, not per request");
            }
            self.check_log_place(setting)?;
        }
        Ok(())
    }

    /// Refuses a log elsewhere than below the current directory and that of the output, which the
    /// user chose. Options of the command line may name any place.
    fn check_log_place(&self, setting: &Setting) -> Translated<()> {
        let Some(given) = setting.option.value.as_deref().map(Path::new) else {
            return Ok(());
        };
        if setting.source.is_on_command_line() || self.is_in_chosen_directory(given) {
            return Ok(());
        }
        Err(setting.error(
            "a job file may name logs only below the current directory and that of --output; \
             start in the directory of the logs, or write the option on the command line, before \
             the file",
        ))
    }

    /// True if a path lies in the current directory or in that of the output. The text of the path
    /// decides: symbolic links are not resolved.
    fn is_in_chosen_directory(&self, path: &Path) -> bool {
        if path.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        if self.is_below(path, Path::new(".")) {
            return true;
        }
        match self.translation.overrides.output {
            Some(output) => self.is_below(path, output),
            None => false,
        }
    }

    fn is_below(&self, path: &Path, directory: &Path) -> bool {
        let environment = self.translation.environment;
        environment
            .absolute(path)
            .starts_with(environment.absolute(directory))
    }
}

/// Splits names at colons; `\:` is a colon inside a name.
fn split_names(value: &str) -> Vec<String> {
    value
        .replace("\\:", "\0")
        .split(':')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('\0', ":"))
        .collect()
}
