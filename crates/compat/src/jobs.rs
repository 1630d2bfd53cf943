//! A command line of jobs: where they come from and how they are printed. The caller reads the jobs
//! themselves, since it knows their options and the files.

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
    /// The options in the order of the section.
    pub options: Vec<JobOption>,
}

/// The place that jobs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSource {
    /// Options on the command line.
    Options {
        /// Options of every job, also of those in job files that follow.
        global: Vec<JobOption>,
        /// The jobs in the order of the command line.
        jobs: Vec<OptionsJob>,
    },
    /// A job file; `-` is standard input.
    File(PathBuf),
}

/// The action for which jobs are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobAction {
    /// The jobs are measured.
    #[default]
    Run,
    /// The jobs are only checked.
    Check,
    /// The jobs are shown as a command line.
    ShowCommand,
}

/// A workload of the plan on one of its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWorkload {
    /// The name in the plan.
    pub name: String,
    /// The index of the target.
    pub target: usize,
    /// Its files, in the order of their places in the target.
    pub files: Vec<WorkloadFile>,
}

/// A file of a job inside the target of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadFile {
    /// The name by which fio opens it.
    pub name: String,
    /// Where its part begins in the target.
    pub target_start: u64,
    /// Where that part begins in the file.
    pub file_start: u64,
}

impl JobWorkload {
    /// The file that has this byte of the target.
    pub(crate) fn file_at(&self, offset: u64) -> Option<&WorkloadFile> {
        // They are in the order of their places.
        let behind = self
            .files
            .partition_point(|file| file.target_start <= offset);
        self.files.get(behind.checked_sub(1)?)
    }

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

/// Why a job of fio fails before it begins, while the others run (`setup_files` of its
/// filesetup.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFailure {
    /// It has no size, and its files have none.
    NoSize,
    /// It may not make the file that it needs (`allow_file_create=0`).
    NoFileAllowed,
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
    /// The workloads that carry it out; none of a job that only makes its files.
    pub workloads: Vec<JobWorkload>,
    /// Names of the workloads before which the files of such a job are made.
    pub layout_workloads: Vec<String>,
    /// Number of copies (`numjobs`).
    pub copies: u64,
    /// Why its copies fail before they begin; `None` where they do not.
    pub start_failure: Option<StartFailure>,
    /// The files that `opendir` has added by the end of it; `None` without the option.
    pub opendir_files: Option<u64>,
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
    /// The number of copies that each of its workloads stands for. Workloads of different names are
    /// a copy each. Workloads of one name share the copies, unless they only stand for the files
    /// that each copy visits.
    pub(crate) fn copies_of_workload(&self) -> u64 {
        let Some(first) = self.workloads.first() else {
            return self.copies;
        };
        let have_one_name = self
            .workloads
            .iter()
            .all(|workload| workload.name == first.name);
        if !have_one_name {
            1
        } else if self.files > 1 {
            self.copies
        } else {
            self.copies / self.workloads.len() as u64
        }
    }
}

/// The jobs that were read, with what they have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribedJobs {
    /// Options of every job.
    pub global: Vec<JobOption>,
    /// The jobs in the order of the output.
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
    /// The action for which they are read.
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
