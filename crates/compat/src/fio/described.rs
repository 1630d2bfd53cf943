//! The options of jobs that were read, under any of their names.

use super::job_options::fio_option;
use crate::jobs::{DescribedJob, DescribedJobs};

impl DescribedJobs {
    /// The value of an option of a job under any of its names; empty for an option without a value.
    pub(super) fn value(&self, job: &DescribedJob, key: &str) -> Option<String> {
        for option in job.options.iter().rev().chain(self.global.iter().rev()) {
            if let Some(known) = fio_option(&option.key)
                && known.name() == key
            {
                return Some(option.value.clone().unwrap_or_default());
            }
        }
        None
    }

    /// The value of a switch of a job; `default` where the job does not set it.
    pub(super) fn is_on(&self, job: &DescribedJob, key: &str, default: bool) -> bool {
        match self.value(job, key) {
            Some(value) => value != "0",
            None => default,
        }
    }

    /// The job that a workload carries out.
    pub(super) fn job_of(&self, workload_name: &str) -> Option<&DescribedJob> {
        self.jobs.iter().find(|job| {
            let mut workloads = job.workloads.iter();
            workloads.any(|workload| workload.name == workload_name)
        })
    }
}
