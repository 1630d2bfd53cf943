//! Reads the command line of fio: job files, and jobs made of options.

use super::job_options::{fio_option, fio_options_beginning, fio_similar, is_switch};
use super::option_help::{engine_has, engine_help, option_help};
use super::print::{FioOutput, FioPrinter};
use super::values::time_ns;
use crate::command::{GivenArguments, GivenOption};
use crate::drop_in::{DropIn, DropInOption, Started, Treatment, emulation};
use crate::jobs::{DescribedJobs, JobAction, JobOption, JobRequest, JobSource, OptionsJob};
use crate::printer::{DropInError, ToolText};
use diskproof_model::shell::quoted;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The entry of fio in [`crate::drop_ins`].
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("fio.txt"), start));

/// The shortest interval of --status-interval, since printing takes processor time from the jobs.
/// Chosen, not measured.
const STATUS_INTERVAL_MIN_NS: u64 = 100_000_000;

/// Turns the arguments into jobs, or into the text or error that fio prints.
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
        reader.option(option, &mut words)?;
    }
    reader.finish()
}

/// The name that this one, or the unambiguous beginning of one, stands for. An unknown one stays as
/// it is: the reader of jobs knows whether it belongs to another engine.
fn full_name(name: &str) -> Result<String, DropInError> {
    if general_option(name).is_some() || fio_option(name).is_some() {
        return Ok(name.to_owned());
    }
    let mut known = fio_options_beginning(name);
    for option in DROP_IN.options {
        if option.long.starts_with(name) {
            known.push(option.long);
        }
    }
    // Several names of one option are one.
    let mut options = BTreeSet::new();
    for known_name in known {
        options.insert(match fio_option(known_name) {
            Some(option) => option.names[0],
            None => known_name,
        });
    }
    let options = Vec::from_iter(options);
    match (options.as_slice(), fio_similar(name)) {
        ([only], _) => Ok((*only).to_owned()),
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

/// The general option of this name.
fn general_option(name: &str) -> Option<&'static DropInOption> {
    let long = match name {
        "o" => "output",
        "h" => "help",
        "v" => "version",
        other => other,
    };
    DROP_IN.options.iter().find(|option| option.long == long)
}

/// The engine of a job that names none.
const DEFAULT_ENGINE: &str = "psync";

/// fio's error about the command line.
fn usage(text: &str) -> DropInError {
    DROP_IN.usage_error(text, "")
}

/// The command line as far as it was read.
#[derive(Debug, Default)]
struct FioArguments {
    /// Options that belong to no job, such as those of the output.
    general: GivenArguments,
    global: Vec<JobOption>,
    jobs: Vec<OptionsJob>,
    /// True once a job has begun, to which the options that follow belong.
    in_job: bool,
    files: Vec<PathBuf>,
    /// The text that is printed in place of a run.
    shown: Option<ToolText>,
}

impl FioArguments {
    /// Takes an option without its dashes. Its value stands behind `=`, or is the next one of the
    /// words that follow.
    fn option<'w>(
        &mut self,
        option: &str,
        words: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), DropInError> {
        let (given_name, given_value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let name = full_name(given_name)?;
        // A script probes for an option so.
        if !engine_has(self.engine(), &name) {
            return Err(usage(&format!("unrecognized option '--{option}'")));
        }
        let general = general_option(&name);
        let takes_value = match general {
            Some(option) => !option.value.is_empty() && !option.value.starts_with('['),
            None => !is_switch(&name),
        };
        let value = match given_value {
            None if general.is_none() && fio_option(&name).is_none() => {
                return Err(usage(&format!("unrecognized option '--{name}'")));
            }
            None if takes_value => match words.next() {
                Some(next) => Some(next.clone()),
                None => return Err(usage(&format!("option '--{name}' requires an argument"))),
            },
            given_value => given_value,
        };
        match general {
            Some(option) => self.general_option(option, value),
            None => {
                self.job_option(&name, value);
                Ok(())
            }
        }
    }

    /// Takes an option that belongs to no job.
    fn general_option(
        &mut self,
        option: &'static DropInOption,
        value: Option<String>,
    ) -> Result<(), DropInError> {
        let name = option.long;
        match (option.treatment, name) {
            (Treatment::Refused(instead), _) => {
                return Err(usage(&format!("--{name} is not supported: {instead}")));
            }
            (Treatment::Ignored(why), _) => {
                let note = format!("--{name} has no effect: {why}");
                self.general.notes.push(note);
            }
            (Treatment::Carried, "version") => self.show(ToolText::out(version())),
            (Treatment::Carried, "help") => self.show(help()),
            (Treatment::Carried, "cmdhelp") => self.show(option_help(value.as_deref())),
            (Treatment::Carried, "enghelp") => self.show(engine_help(value.as_deref())?),
            (Treatment::Carried, _) => self.general.options.push(GivenOption { name, value }),
        }
        Ok(())
    }

    /// Adds a text that is printed in place of a run.
    fn show(&mut self, text: ToolText) {
        let shown = self.shown.get_or_insert_default();
        shown.stdout.push_str(&text.stdout);
        shown.stderr.push_str(&text.stderr);
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

    /// The I/O engine of the job that has begun, as far as its options name it. As in fio, it
    /// decides which options may follow.
    fn engine(&self) -> &str {
        let of_job = self.jobs.last().filter(|_| self.in_job);
        let of_job = of_job.map(|job| job.options.as_slice()).unwrap_or_default();
        for option in of_job.iter().rev().chain(self.global.iter().rev()) {
            if option.key == "ioengine"
                && let Some(engine) = &option.value
            {
                return engine;
            }
        }
        DEFAULT_ENGINE
    }

    /// The jobs of the whole command line, or the text or error that fio prints in their place.
    fn finish(self) -> Result<Started, DropInError> {
        if let Some(text) = self.shown {
            return Ok(Started::Text(text));
        }
        let output = FioOutput::read(&self.general).map_err(|why| usage(&why))?;
        if self.jobs.is_empty() && self.files.is_empty() {
            // Scripts check so whether fio knows an option.
            if self.general.has("parse-only") || self.general.has("showcmd") {
                return Ok(Started::Text(ToolText::default()));
            }
            return Err(DropInError::Printed(ToolText {
                stderr: "No job(s) defined\n\n".to_owned(),
                ..help()
            }));
        }
        let request = self.into_request(output)?;
        Ok(Started::Jobs(Box::new(request)))
    }

    /// The jobs with their printer.
    fn into_request(self, output: FioOutput) -> Result<JobRequest, DropInError> {
        let general = self.general;
        let interval_ns = general.read("status-interval", status_interval_ns);
        let interval_ns = interval_ns.map_err(|why| usage(&why))?;
        let saved_to = general.value("output").map(PathBuf::from);
        let options = JobSource::Options {
            global: self.global,
            jobs: self.jobs,
        };
        let files = self.files.into_iter().map(JobSource::File);
        Ok(JobRequest {
            sources: std::iter::once(options).chain(files).collect(),
            sections: general.values("section").map(str::to_owned).collect(),
            action: if general.has("showcmd") {
                JobAction::ShowCommand
            } else if general.has("parse-only") {
                JobAction::Check
            } else {
                JobAction::Run
            },
            is_read_only: general.has("readonly"),
            saved_to: saved_to.clone(),
            is_for_programs: !output.has_normal,
            notes: general.notes,
            printer: Box::new(move |described| {
                Box::new(FioPrinter {
                    output,
                    described,
                    saved_to: saved_to.clone(),
                    status_interval_ns: interval_ns,
                    finished: Vec::new(),
                    unsaved_text: String::new(),
                    failed_jobs: 0,
                })
            }),
            command_line,
        })
    }
}

/// Reads the value of --status-interval, in nanoseconds.
fn status_interval_ns(text: &str) -> Result<u64, String> {
    let ns = time_ns(text)
        .ok()
        .filter(|ns| *ns >= STATUS_INTERVAL_MIN_NS);
    ns.ok_or_else(|| format!("--status-interval={text}: use a time of at least 100 ms, as in 1s"))
}

/// The jobs as a command line, for `--showcmd`.
fn command_line(described: &DescribedJobs) -> String {
    let mut words = vec![DROP_IN.name.to_owned()];
    words.extend(described.global.iter().map(option_word));
    for job in &described.jobs {
        words.push(format!("--name={}", quoted(&job.name)));
        let others = job.options.iter().filter(|option| option.key != "name");
        words.extend(others.map(option_word));
    }
    words.join(" ") + " \n"
}

/// An option as a word that a shell reads.
fn option_word(option: &JobOption) -> String {
    match &option.value {
        Some(value) => format!("--{}={}", option.key, quoted(value)),
        None => format!("--{}", option.key),
    }
}

/// The line of --version, which scripts compare.
fn version() -> String {
    format!("{}\n", DROP_IN.emulates)
}

/// The version and the general options.
fn help() -> ToolText {
    let mut text = version() + "fio [options] [job options] <job file(s)>\n";
    for option in DROP_IN.options {
        let name = match option.value {
            "" => option.long.to_owned(),
            value => format!("{}={value}", option.long),
        };
        text += &format!("  --{name:<22}{}\n", option.help);
    }
    ToolText::out(text + &emulation())
}
