//! Answers what the jobs of a fio command line ask for besides their workloads: the value of any
//! option, the commands to run before and after them, and fio's error where the jobs of a group do
//! not fit together.

use super::job_options::fio_option;
use super::values::{DIGITS_DEFAULT, NumberForm};
use crate::job_command::{CommandTime, JobCommand};
use crate::jobs::{DescribedJob, DescribedJobs};
use std::path::PathBuf;

/// fio's error where the jobs of a group end by different steady states.
const STEADY_STATES_DIFFER: &str =
    "job rejected: steadystate options must be consistent within reporting groups";

/// The options with commands, and when these run.
const COMMANDS: [(&str, CommandTime); 2] = [
    ("exec_prerun", CommandTime::BeforeJob),
    ("exec_postrun", CommandTime::AfterJob),
];

/// fio's word for the time of a command, in its output and in the name of the command's own.
pub(super) fn command_word(time: CommandTime) -> &'static str {
    match time {
        CommandTime::BeforeJob => "prerun",
        CommandTime::AfterJob => "postrun",
    }
}

/// True of the name that stands for all names of an option, which [`DescribedJobs::value`] takes.
fn is_first_name(key: &str) -> bool {
    fio_option(key).is_some_and(|option| option.name() == key)
}

impl DescribedJobs {
    /// The commands of the jobs that are measured, in the order of the jobs; an empty command is
    /// none, as in fio.
    pub fn commands(&self) -> Vec<JobCommand> {
        let mut commands = Vec::new();
        for job in self.jobs.iter().filter(|job| !job.workloads.is_empty()) {
            for (option, time) in COMMANDS {
                let command = match self.value(job, option) {
                    Some(command) if !command.is_empty() => command,
                    _ => continue,
                };
                commands.push(JobCommand {
                    job: job.name.clone(),
                    option,
                    time,
                    command,
                    copies: job.copies,
                    workloads: job
                        .workloads
                        .iter()
                        .map(|workload| workload.name.clone())
                        .collect(),
                    output: PathBuf::from(format!("{}.{}.txt", job.name, command_word(time))),
                });
            }
        }
        commands
    }

    /// fio's error where a job ends by another steady state than one before it in its group, or
    /// where one with `group_reporting` shows other latencies; `None` where no job does.
    pub fn group_error(&self) -> Option<String> {
        for (index, job) in self.jobs.iter().enumerate() {
            let before = &self.jobs[..index];
            let steady_state = self.steady_state(job);
            if before
                .iter()
                .any(|other| other.group == job.group && self.steady_state(other) != steady_state)
            {
                return Some(STEADY_STATES_DIFFER.to_owned());
            }
            if !self.is_switched_on(job, "group_reporting") {
                continue;
            }
            let shows_lat = self.shows_lat(job);
            if before
                .iter()
                .any(|other| other.group == job.group && self.shows_lat(other) != shows_lat)
            {
                let name = &job.name;
                return Some(format!("lat_percentiles in job: {name} differs from group"));
            }
        }
        None
    }

    /// The options of the steady state that ends a job; none of them counts without a duration.
    fn steady_state(&self, job: &DescribedJob) -> Option<[Option<String>; 3]> {
        let duration = self.value(job, "steadystate_duration")?;
        let limit = self.value(job, "steadystate");
        Some([
            Some(duration),
            limit,
            self.value(job, "steadystate_ramp_time"),
        ])
    }

    /// True if the percentiles of a job are those of whole latencies.
    fn shows_lat(&self, job: &DescribedJob) -> bool {
        self.is_switched_on(job, "lat_percentiles") && !self.is_switched_on(job, "disable_lat")
    }

    /// The value of an option of a job under any of its names: the last one of the job, else the
    /// last one of all jobs. Empty for an option without a value; `None` where neither has it.
    ///
    /// Here and below, `key` must be the first name of an option of the table: an alias or a
    /// misspelt one would never be found.
    pub(super) fn value(&self, job: &DescribedJob, key: &str) -> Option<String> {
        debug_assert!(is_first_name(key), "{key} is no first name of an option");
        for option in job.options.iter().rev().chain(self.global.iter().rev()) {
            if let Some(known) = fio_option(&option.key)
                && known.name() == key
            {
                return Some(option.value.clone().unwrap_or_default());
            }
        }
        None
    }

    /// True if the job sets an option after another one, or without it.
    pub(super) fn is_set_later(&self, job: &DescribedJob, key: &str, other: &str) -> bool {
        for name in [key, other] {
            debug_assert!(is_first_name(name), "{name} is no first name of an option");
        }
        for option in job.options.iter().rev().chain(self.global.iter().rev()) {
            match fio_option(&option.key) {
                Some(known) if known.name() == key => return true,
                Some(known) if known.name() == other => return false,
                _ => {}
            }
        }
        false
    }

    /// How the sizes and rates of a job are shown.
    pub(super) fn number_form(&self, job: &DescribedJob) -> NumberForm {
        let digits = self.value(job, "significant_figures");
        NumberForm {
            base: job.base,
            digits: digits
                .and_then(|text| text.parse().ok())
                .unwrap_or(DIGITS_DEFAULT),
        }
    }

    /// True if the job sets a switch to anything but 0.
    pub(super) fn is_switched_on(&self, job: &DescribedJob, key: &str) -> bool {
        match self.value(job, key) {
            Some(value) => value != "0",
            None => false,
        }
    }

    /// True if a job turns a time off by this option of its own (`disable_lat` and the like), or by
    /// the one for all times.
    pub(super) fn is_time_disabled(&self, job: &DescribedJob, key: &str) -> bool {
        self.is_switched_on(job, key) || self.is_switched_on(job, "gtod_reduce")
    }

    /// True unless the job sets a switch to 0: for the switches that fio has on by default.
    pub(super) fn is_not_switched_off(&self, job: &DescribedJob, key: &str) -> bool {
        match self.value(job, key) {
            Some(value) => value != "0",
            None => true,
        }
    }

    /// The job that a workload of this name carries out, or whose files it makes; `None` for a name
    /// that no job has.
    pub(super) fn job_of(&self, workload_name: &str) -> Option<&DescribedJob> {
        self.jobs.iter().find(|job| {
            let mut workloads = job.workloads.iter();
            workloads.any(|workload| workload.name == workload_name)
                || job
                    .layout_workloads
                    .iter()
                    .any(|name| name == workload_name)
        })
    }
}
