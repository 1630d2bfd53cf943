//! The options of jobs that were read, under any of their names.

use super::job_options::fio_option;
use crate::jobs::{DescribedJob, DescribedJobs};

impl DescribedJobs {
    /// The value of an option of a job under any of its names; empty for an option without a value.
    pub(super) fn value(&self, job: &DescribedJob, key: &str) -> Option<String> {
        let mut all = job.options.iter().rev().chain(self.global.iter().rev());
        let found = all.find(|option| fio_option(&option.key).is_some_and(|o| o.name() == key))?;
        Some(found.value.clone().unwrap_or_default())
    }

    /// Whether a switch of a job is on.
    pub(super) fn is_on(&self, job: &DescribedJob, key: &str, default: bool) -> bool {
        self.value(job, key).map_or(default, |value| value != "0")
    }

    /// The job that a workload carries out.
    pub(super) fn job_of(&self, workload: &str) -> Option<&DescribedJob> {
        let carries_out =
            |job: &&DescribedJob| job.workloads.iter().any(|one| one.name == workload);
        self.jobs.iter().find(carries_out)
    }
}
