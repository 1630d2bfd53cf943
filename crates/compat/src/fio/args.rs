//! The command line of fio: job files, and jobs made of options.

use super::job_options::{fio_option, fio_options_beginning, fio_similar, is_switch};
use super::print::{FioOutput, FioPrinter};
use super::values::time_ns;
use crate::drop_in::{DropIn, DropInOption, Started, Treatment};
use crate::jobs::{DescribedJobs, JobAction, JobOption, JobRequest, JobSource, OptionsJob};
use crate::printer::{DropInError, ToolText};
use diskproof_model::shell::quoted;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("fio.txt"), start));

/// Shorter intervals would disturb what is measured.
const STATUS_INTERVAL_MIN_NS: u64 = 100_000_000;

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let mut reader = FioArguments::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            reader.files.push(PathBuf::from(word));
            continue;
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        if option.is_empty() {
            reader.files.extend(words.by_ref().map(PathBuf::from));
            break;
        }
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let name = &*full_name(name)?;
        let general = DROP_IN
            .options
            .iter()
            .find(|option| option.long == long_name(name));
        let takes_value = match general {
            Some(option) => !option.value.is_empty() && !option.value.starts_with('['),
            None => !is_switch(name),
        };
        let value = match value {
            None if takes_value => {
                let missing = || usage(&format!("option '--{name}' requires an argument"));
                Some(words.next().cloned().ok_or_else(missing)?)
            }
            value => value,
        };
        match general.map(|option| reader.general(option, value.as_deref())) {
            Some(Ok(None)) => {}
            Some(Ok(Some(started))) => return Ok(started),
            Some(Err(error)) => return Err(error),
            None => reader.job_option(name, value),
        }
    }
    reader.finish()
}

/// The name that this one, or the unambiguous beginning of one, stands for. An unknown one stays as
/// it is: the reader of jobs knows whether it belongs to another engine.
fn full_name(name: &str) -> Result<String, DropInError> {
    let is_general = DROP_IN
        .options
        .iter()
        .any(|option| option.long == long_name(name));
    if is_general || fio_option(name).is_some() {
        return Ok(name.to_owned());
    }
    let general = DROP_IN.options.iter().map(|option| option.long);
    let mut found: Vec<&'static str> = general.filter(|long| long.starts_with(name)).collect();
    found.extend(fio_options_beginning(name));
    // Several names of one option are one.
    let options = found.into_iter();
    let options = options.map(|name| fio_option(name).map_or(name, |option| option.names[0]));
    let options = Vec::from_iter(options.collect::<BTreeSet<&str>>());
    match (options.as_slice(), fio_similar(name)) {
        ([one], _) => Ok((*one).to_owned()),
        ([], None) => Ok(name.to_owned()),
        ([], Some(similar)) => Err(usage(&format!(
            "unrecognized option '--{name}'\nDid you mean {similar}?"
        ))),
        (several, _) => Err(usage(&format!(
            "option '--{name}' is ambiguous; possibilities: '--{}'",
            several.join("' '--")
        ))),
    }
}

/// The long names of the short options.
fn long_name(name: &str) -> &str {
    match name {
        "o" => "output",
        "h" => "help",
        "v" => "version",
        other => other,
    }
}

fn usage(text: &str) -> DropInError {
    DROP_IN.usage_error(text, "")
}

#[derive(Debug, Default)]
struct FioArguments {
    /// The last values of the general options; empty for those without.
    general: BTreeMap<&'static str, String>,
    sections: Vec<String>,
    notes: Vec<String>,
    global: Vec<JobOption>,
    jobs: Vec<OptionsJob>,
    /// Whether options belong to the last job.
    in_job: bool,
    files: Vec<PathBuf>,
}

impl FioArguments {
    fn general(
        &mut self,
        option: &'static DropInOption,
        value: Option<&str>,
    ) -> Result<Option<Started>, DropInError> {
        let text = value.unwrap_or_default().to_owned();
        match (option.treatment, option.long) {
            (Treatment::Refused(instead), long) => {
                return Err(usage(&format!("--{long} is not supported: {instead}")));
            }
            (Treatment::Ignored(why), long) => {
                self.notes.push(format!("--{long} has no effect: {why}"));
            }
            (Treatment::Carried, "version") => return Ok(Some(Started::version(DROP_IN.emulates))),
            (Treatment::Carried, "help") => return Ok(Some(Started::Text(help()))),
            (Treatment::Carried, "section") => self.sections.push(text),
            (Treatment::Carried, long) => {
                self.general.insert(long, text);
            }
        }
        Ok(None)
    }

    /// As in fio, options before the first name apply to every job, and a name that begins with
    /// "global" names no job.
    fn job_option(&mut self, name: &str, value: Option<String>) {
        if name == "name" {
            let job = value.unwrap_or_default();
            self.in_job = !job.starts_with("global");
            if self.in_job {
                let (name, options) = (job, Vec::new());
                self.jobs.push(OptionsJob { name, options });
            }
            return;
        }
        let key = name.to_owned();
        let option = JobOption { key, value };
        match self.jobs.last_mut().filter(|_| self.in_job) {
            Some(job) => job.options.push(option),
            None => self.global.push(option),
        }
    }

    fn finish(self) -> Result<Started, DropInError> {
        let general = self.general;
        if self.jobs.is_empty() && self.files.is_empty() {
            return Err(DropInError::Printed(ToolText {
                stdout: format!("{}\n{}", DROP_IN.emulates, help().stdout),
                stderr: "No job(s) defined\n\n".to_owned(),
            }));
        }
        let value = |name: &str| general.get(name).map(String::as_str);
        let is_set = |name: &str| general.contains_key(name);
        let output = FioOutput::read(
            value("output-format"),
            is_set("minimal"),
            is_set("append-terse"),
            value("terse-version"),
        )
        .map_err(|why| usage(&why))?;
        let interval_ns = value("status-interval").map(interval_ns).transpose();
        let interval_ns = interval_ns.map_err(|why| usage(&why))?;
        let saved_to = value("output").map(PathBuf::from);
        let is_saved = saved_to.is_some();
        let options = JobSource::Options {
            global: self.global,
            jobs: self.jobs,
        };
        let files = self.files.into_iter().map(JobSource::File);
        Ok(Started::Jobs(Box::new(JobRequest {
            sources: std::iter::once(options).chain(files).collect(),
            sections: self.sections,
            action: match (is_set("showcmd"), is_set("parse-only")) {
                (true, _) => JobAction::ShowCommand,
                (false, true) => JobAction::Check,
                (false, false) => JobAction::Run,
            },
            is_read_only: is_set("readonly"),
            saved_to,
            is_for_programs: !output.is_for_people(),
            notes: self.notes,
            printer: Box::new(move |described| {
                Box::new(FioPrinter {
                    output,
                    described,
                    is_saved,
                    status_interval_ns: interval_ns,
                    finished: Vec::new(),
                    status: String::new(),
                })
            }),
            command_line,
        })))
    }
}

fn interval_ns(text: &str) -> Result<u64, String> {
    let ns = time_ns(text)
        .ok()
        .filter(|ns| *ns >= STATUS_INTERVAL_MIN_NS);
    ns.ok_or_else(|| format!("--status-interval={text}: use a time of at least 100 ms, as in 1s"))
}

/// The jobs as a command line, for `--showcmd`.
fn command_line(described: &DescribedJobs) -> String {
    let mut words = vec![DROP_IN.name.to_owned()];
    let option = |option: &JobOption| match &option.value {
        Some(value) => format!("--{}={}", option.key, quoted(value)),
        None => format!("--{}", option.key),
    };
    words.extend(described.global.iter().map(option));
    for job in &described.jobs {
        words.push(format!("--name={}", quoted(&job.name)));
        words.extend(job.options.iter().map(option));
    }
    words.join(" ") + " \n"
}

/// The general options.
fn help() -> ToolText {
    let mut text = "fio [options] [job options] <job file(s)>\n".to_owned();
    for option in DROP_IN.options {
        let name = match option.value {
            "" => option.long.to_owned(),
            value => format!("{}={value}", option.long),
        };
        text += &format!("  --{name:<22}{}\n", option.help);
    }
    ToolText::out(text)
}
