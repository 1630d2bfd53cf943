//! The options of jobs that were read, under any of their names.

use super::job_options::fio_option;
use crate::jobs::{DescribedJob, DescribedJobs};

impl DescribedJobs {
    /// The error of a job with `group_reporting` that shows other latencies than one before it in
    /// its group.
    pub fn group_error(&self) -> Option<String> {
        for (index, job) in self.jobs.iter().enumerate() {
            if !self.is_on(job, "group_reporting", false) {
                continue;
            }
            let own = self.shows_lat(job);
            let before = &self.jobs[..index];
            if before
                .iter()
                .any(|other| other.group == job.group && self.shows_lat(other) != own)
            {
                let name = &job.name;
                return Some(format!("lat_percentiles in job: {name} differs from group"));
            }
        }
        None
    }

    /// Whether the percentiles of a job are those of whole latencies.
    fn shows_lat(&self, job: &DescribedJob) -> bool {
        let is_hidden = self.is_on(job, "disable_lat", false);
        self.is_on(job, "lat_percentiles", false) && !is_hidden
    }

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
