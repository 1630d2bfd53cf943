//! Divides the jobs of a file into those that run together. Pure.

use super::jobs::{FioJob, GivenName};
use super::translation::Translated;

/// The groups of jobs that run together, as indexes into `jobs`, in the order in which they start.
pub(crate) fn job_groups(jobs: &[FioJob]) -> Translated<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The job whose end starts the last group; `None` where it waits for all or for none.
    let mut awaited_by_group: Option<&str> = None;
    for (index, job) in jobs.iter().enumerate() {
        if let Some(awaited) = &job.turn.waits_for {
            check_awaited(job, awaited, &jobs[..index])?;
        }
        match groups.last_mut() {
            Some(group) if runs_with_group(job, group, jobs, awaited_by_group)? => {
                group.push(index)
            }
            _ => {
                groups.push(vec![index]);
                awaited_by_group = match &job.turn.waits_for {
                    Some(awaited) if !job.turn.waits => Some(&awaited.name),
                    _ => None,
                };
            }
        }
    }
    refuse_skipped_jobs(jobs, &groups)?;
    Ok(groups)
}

/// Refuses a job that waits for one that is not above it.
fn check_awaited(job: &FioJob, awaited: &GivenName, earlier: &[FioJob]) -> Translated<()> {
    if earlier.iter().any(|other| other.section == awaited.name) {
        return Ok(());
    }
    Err(awaited.source.error(format!(
        "[{}]: wait_for={}: no job above has this name",
        job.section, awaited.name
    )))
}

/// True if a job runs together with the last group, which starts when `awaited_by_group` ends.
fn runs_with_group(
    job: &FioJob,
    group: &[usize],
    jobs: &[FioJob],
    awaited_by_group: Option<&str>,
) -> Translated<bool> {
    if job.turn.waits {
        return Ok(false);
    }
    let Some(awaited) = &job.turn.waits_for else {
        if awaited_by_group.is_some() {
            return Err(
                job.error("the job would start before the jobs with wait_for above it; move it up")
            );
        }
        return Ok(true);
    };
    // All jobs that run are the one it waits for.
    if group
        .iter()
        .all(|index| jobs[*index].section == awaited.name)
    {
        return Ok(false);
    }
    if awaited_by_group == Some(awaited.name.as_str()) {
        return Ok(true);
    }
    Err(awaited.source.error(format!(
        "[{}]: wait_for={}: other jobs would still run at that time, but a workload waits for all \
         earlier ones; use stonewall",
        job.section, awaited.name
    )))
}

/// Refuses a job whose end would also end the groups after it.
fn refuse_skipped_jobs(jobs: &[FioJob], groups: &[Vec<usize>]) -> Translated<()> {
    let Some((_, earlier)) = groups.split_last() else {
        return Ok(());
    };
    for index in earlier.iter().flatten() {
        if jobs[*index].turn.ends_everything {
            return Err(jobs[*index].error("exit_what=all would skip the later jobs; use group"));
        }
    }
    Ok(())
}
