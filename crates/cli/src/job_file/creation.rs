//! Jobs that only make their files (`create_only`): the scratch file is filled, and one block read,
//! because a plan has at least one workload. Pure.

use super::error::JobFileError;
use super::jobs::FioJob;
use crate::workload::{Count, WorkloadFlags};
use diskproof_model::rw::Rw;

/// Turns jobs that only make their files into reads of one block.
pub(crate) fn make_only(jobs: &mut [FioJob]) -> Result<(), JobFileError> {
    if jobs.iter().all(|job| !job.only_creates) {
        return Ok(());
    }
    if let Some(job) = jobs.iter().find(|job| !job.only_creates) {
        return Err(job.error(
            "other jobs have create_only, which is supported only for all jobs of a run; run them \
             one after the other",
        ));
    }
    for job in jobs {
        job.extent.ops = Some(1);
        job.extent.is_time_based = false;
        job.numjobs = 1;
        job.flags = WorkloadFlags {
            rw: Some(Rw::RANDREAD),
            bs: job.flags.bs,
            engine: job.flags.engine,
            depth: Some(Count(1)),
            ..WorkloadFlags::default()
        };
    }
    Ok(())
}
