//! Reads the options that name files: those with data, directories, and fio's logs. The logs have
//! rates and latencies at intervals; no single request is recorded.

use super::reader::JobReader;
use crate::job_file::jobs::{FILENAME_FORMAT_DEFAULT, FioJob, GivenNames};
use crate::job_file::sections::{Scope, Setting};
use crate::job_file::translation::{IN_ORDER, JobFileError, Translated};
use std::path::{Component, Path};

/// The options that name logs of rates and latencies.
const LOGS: [&str; 4] = [
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
];

/// `filename`. Each one adds to those before it.
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
            let given = job.filename.get_or_insert_with(|| GivenNames {
                names: Vec::new(),
                source: setting.source.clone(),
            });
            given.source = setting.source.clone();
            if !given.names.contains(&name) {
                given.names.push(name);
            }
        }
    }
    Ok(())
}

/// `nrfiles`, and whether sequential requests go to the files in turn. They are one file here, so
/// that must be possible in its parts.
pub(super) fn set_files(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.files = reader.files()?;
    let names = match &job.filename {
        Some(given) => given.names.len() as u64,
        None => 1,
    };
    if job.files.max(names) <= 1 {
        return Ok(());
    }
    let service = match reader.value("file_service_type")? {
        // The number of requests after which the file changes follows a colon.
        Some(given) => match given.text.split_once(':') {
            Some((service, _)) => service,
            None => given.text,
        },
        None => "roundrobin",
    };
    // The weighted choices visit some blocks again, and others never.
    if !matches!(service, "roundrobin" | "random" | "sequential") {
        return Err(reader.error(
            "file_service_type",
            "files are chosen alike here; use roundrobin, random or sequential",
        ));
    }
    if job.files <= 1 {
        return Ok(());
    }
    // A job without a limit reads every block, so that the order of the files does not matter.
    let visits_all = ["runtime", "io_size", "number_ios"]
        .iter()
        .all(|limit| !reader.is_set(limit));
    if reader.is_set("filename") {
        return Err(too_many_files(reader));
    }
    if job.is_random() {
        if job.is_uniform() {
            return Ok(());
        }
        return Err(too_many_files(reader));
    }
    match service {
        "sequential" => Ok(()),
        "roundrobin" | "random" if job.goes_onward() && (service == "roundrobin" || visits_all) => {
            job.alternates = job.may_alternate();
            if !job.alternates {
                reader.note(IN_ORDER);
            }
            Ok(())
        }
        _ => Err(too_many_files(reader)),
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
    job.filename_format = reader.filename_format().to_owned();
    Ok(())
}

/// `directory`: several of them separated by colons.
pub(super) fn set_directories(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if let Some(given) = reader.value("directory")? {
        job.directories = split_names(given.text);
    }
    Ok(())
}

pub(super) fn set_overwrite(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.overwrites = reader.flag("overwrite")?;
    Ok(())
}

pub(super) fn set_unlink(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.unlinks = reader.flag("unlink")?;
    Ok(())
}

pub(super) fn set_create_only(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.only_creates = reader.flag("create_only")?;
    Ok(())
}

impl JobReader<'_> {
    fn filename_format(&self) -> &str {
        self.text("filename_format")
            .unwrap_or(FILENAME_FORMAT_DEFAULT)
    }

    /// The number of files of each copy. Where all would have one name, they are one file.
    fn files(&self) -> Translated<u64> {
        if self.filename_format().contains("$filenum") {
            Ok(self.bytes("nrfiles", 1)?.max(1))
        } else {
            Ok(1)
        }
    }

    /// Refuses logs that would be missing at the end.
    pub(super) fn check_logs(&self) -> Translated<()> {
        if let Some(setting) = self.setting("write_iolog") {
            return Err(setting.error("single requests are not recorded; remove it"));
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

    /// Whether a path lies in the current directory or in that of the output.
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
