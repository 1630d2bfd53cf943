//! Reads the options that name files: of data, directories, and of fio's logs, which have rates and
//! latencies at intervals. No single request is recorded.

use super::{FILENAME_FORMAT_DEFAULT, JobReader};
use crate::job_file::sections::{Scope, Setting, SourceLine};
use crate::job_file::translation::{IN_ORDER, Translated};
use crate::workload::WorkloadFlags;
use diskproof_model::rw::{Order, Rw};
use std::path::{Component, Path};

impl JobReader<'_> {
    /// The number of files of each copy. Where all would have one name, they are one file.
    pub(super) fn files(&self) -> Translated<u64> {
        let format = self
            .text("filename_format")
            .unwrap_or(FILENAME_FORMAT_DEFAULT);
        if format.contains("$filenum") {
            Ok(self.bytes("nrfiles", 1)?.max(1))
        } else {
            Ok(1)
        }
    }

    /// Whether sequential requests go to several files in turn. They are one file here, so that
    /// must be possible in its parts.
    pub(super) fn alternates(&self, rw: Rw, flags: &WorkloadFlags) -> Translated<bool> {
        if self.files()? <= 1 {
            return Ok(false);
        }
        let service = self.value("file_service_type")?.map(|(_, value)| value);
        let is_sized = self.setting("size").or(self.setting("filesize")).is_some();
        let is_onward =
            flags.stride.is_none() && flags.backward.is_none() && flags.shape.zone_stride.is_none();
        let is_plain = is_onward && flags.bssplit.is_none() && !rw.is_mix();
        let is_single = self.setting("filename").is_none();
        match (rw.order, service) {
            _ if !is_sized || !is_single => {}
            (Order::Random, None | Some("roundrobin" | "random" | "sequential"))
                if self.is_uniform()? =>
            {
                return Ok(false);
            }
            (Order::Sequential, Some("sequential")) => return Ok(false),
            (Order::Sequential, None | Some("roundrobin")) if is_plain => return Ok(true),
            (Order::Sequential, None | Some("roundrobin")) if is_onward => {
                self.note(IN_ORDER);
                return Ok(false);
            }
            _ => {}
        }
        Err(self.error(
            "nrfiles",
            "several files for one job are supported with uniformly random requests, with \
             sequential requests without gaps, or with file_service_type=sequential, if size or \
             filesize is set and filename is not; otherwise use nrfiles=1 and their total size. \
             For many small files use diskproof files DIR --count N --file-size BYTES",
        ))
    }

    pub(super) fn filename(&self) -> Translated<Option<(Vec<String>, SourceLine)>> {
        let directory = self.setting("directory");
        let is_own_directory = directory.is_some_and(|setting| setting.scope == Scope::Own);
        let mut found: Option<(Vec<String>, SourceLine)> = None;
        // Each one adds to those before it.
        let settings = self.section.settings.iter();
        for setting in settings.filter(|setting| setting.option.key == "filename") {
            let value = setting.option.value.as_deref();
            let value = value.filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| setting.error("the name is missing"))?;
            if is_own_directory && setting.scope == Scope::Global {
                return Err(setting.error(format!(
                    "[{}] sets a directory, which fio does not apply to a filename from [global]; \
                     put both into one section",
                    self.section.name
                )));
            }
            for name in split_names(value) {
                if name == "-" {
                    return Err(setting.error("standard input and output are not a disk"));
                }
                let (names, source) =
                    found.get_or_insert_with(|| (Vec::new(), setting.source.clone()));
                *source = setting.source.clone();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Ok(found)
    }

    pub(super) fn directories(&self) -> Translated<Vec<String>> {
        let given = self.value("directory")?;
        Ok(given.map_or_else(Vec::new, |(_, value)| split_names(value)))
    }

    /// Refuses logs that would be missing at the end.
    pub(super) fn check_logs(&self) -> Translated<()> {
        if let Some(setting) = self.setting("write_iolog") {
            return Err(setting.error("single requests are not recorded; remove it"));
        }
        let has_interval = self.text("log_avg_msec").is_some_and(|value| value != "0");
        for name in [
            "write_bw_log",
            "write_iops_log",
            "write_lat_log",
            "write_hist_log",
        ] {
            if let Some(setting) = self.setting(name) {
                if name != "write_hist_log" && !has_interval {
                    self.note(
                        "without log_avg_msec the logs have a line per 100 ms, not per request",
                    );
                }
                self.check_place(setting)?;
            }
        }
        Ok(())
    }

    /// A job file may name files below the current directory and that of the output, which the
    /// user chose.
    fn check_place(&self, setting: &Setting) -> Translated<()> {
        let Some(given) = setting.option.value.as_deref().map(Path::new) else {
            return Ok(());
        };
        let environment = self.translation.environment;
        let is_below = |directory: &Path| {
            let directory = environment.absolute(directory);
            environment.absolute(given).starts_with(directory)
        };
        let climbs = given.components().any(|part| part == Component::ParentDir);
        let output = self.translation.overrides.output;
        let is_below_any = is_below(Path::new(".")) || output.is_some_and(is_below);
        if (!climbs && is_below_any) || setting.source.is_on_command_line() {
            Ok(())
        } else {
            Err(setting.error(
                "a job file may name logs only below the current directory and that of --output; \
                 start in the directory of the logs, or write the option on the command line, \
                 before the file",
            ))
        }
    }
}

/// Splits names at colons; `\:` is a colon inside a name.
fn split_names(value: &str) -> Vec<String> {
    let hidden = value.replace("\\:", "\0");
    let names = hidden.split(':').filter(|name| !name.is_empty());
    names.map(|name| name.replace('\0', ":")).collect()
}
