//! What a command line of jobs asks for. The jobs themselves are read by the caller, who knows
//! their options and the files.

use crate::fio_values::Base;
use crate::printer::ToolPrinter;
use diskproof_model::measurement::Measurement;
use std::path::PathBuf;

/// An option of a job, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOption {
    /// The part before `=`.
    pub key: String,
    /// The part after it.
    pub value: Option<String>,
}

/// A job made of options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionsJob {
    /// The name of the section.
    pub name: String,
    /// In the order of the section.
    pub options: Vec<JobOption>,
}

/// The place that jobs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSource {
    /// From options on the command line.
    Options {
        /// Options of every job, also of those in job files that follow.
        global: Vec<JobOption>,
        /// In the order of the command line.
        jobs: Vec<OptionsJob>,
    },
    /// From a job file; `-` is standard input.
    File(PathBuf),
}

/// The purpose of reading the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobAction {
    /// The jobs are measured.
    Run,
    /// The jobs are only checked.
    Check,
    /// They are shown as a command line.
    ShowCommand,
}

/// A workload of the plan on one of its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWorkload {
    /// The name in the plan.
    pub name: String,
    /// The index of the target.
    pub target: usize,
}

impl JobWorkload {
    /// True of a measurement of this workload on this target.
    pub(crate) fn is_measured_by(&self, measurement: &Measurement) -> bool {
        measurement.workload.name == self.name && measurement.target == self.target
    }
}

/// The smallest and the largest size of requests, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest size.
    pub least: u64,
    /// The largest size.
    pub most: u64,
}

impl Default for SizeRange {
    /// The size of fio's requests without any option.
    fn default() -> Self {
        Self {
            least: 4096,
            most: 4096,
        }
    }
}

/// A job that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribedJob {
    /// The name of the job.
    pub name: String,
    /// The number of the jobs that run together with it.
    pub group: usize,
    /// Options of its own section.
    pub options: Vec<JobOption>,
    /// The workloads that carry it out.
    pub workloads: Vec<JobWorkload>,
    /// Number of copies (`numjobs`).
    pub copies: u64,
    /// Existing files or disks that each copy visits in turn; at least 1.
    pub files: usize,
    /// New files of each copy.
    pub new_files: u64,
    /// The sizes of its reads, writes and trims.
    pub block_sizes: [SizeRange; 3],
    /// The unit in which the output shows sizes first (`kb_base`).
    pub base: Base,
}

impl DescribedJob {
    /// The number of copies that each of its workloads stands for.
    pub(crate) fn copies_of_workload(&self) -> u64 {
        let first = self.workloads.first().map(|workload| &workload.name);
        let mut workloads = self.workloads.iter();
        let is_one = workloads.all(|workload| Some(&workload.name) == first);
        let parts = match self.files {
            0 | 1 => self.workloads.len().max(1) as u64,
            _ => 1,
        };
        if is_one { self.copies / parts } else { 1 }
    }
}

/// The jobs that were read, with what they have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribedJobs {
    /// Options of every job.
    pub global: Vec<JobOption>,
    /// In the order of the output.
    pub jobs: Vec<DescribedJob>,
}

/// The printer of jobs that were read.
type MakePrinter = Box<dyn Fn(DescribedJobs) -> Box<dyn ToolPrinter>>;

/// A command line of jobs.
pub struct JobRequest {
    /// The places that the jobs come from, in order.
    pub sources: Vec<JobSource>,
    /// The sections to run; all of them when empty.
    pub sections: Vec<String>,
    /// The purpose of reading them.
    pub action: JobAction,
    /// True if a job that writes is an error.
    pub is_read_only: bool,
    /// The file that the output goes to, in place of stdout.
    pub saved_to: Option<PathBuf>,
    /// True if only programs read the output. Many read stderr with it.
    pub is_for_programs: bool,
    /// Options without effect, a sentence each.
    pub notes: Vec<String>,
    /// Makes the printer once the jobs are known.
    pub printer: MakePrinter,
    /// The jobs as a command line.
    pub command_line: fn(&DescribedJobs) -> String,
}
