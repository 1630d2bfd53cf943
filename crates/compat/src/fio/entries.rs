//! Sorts the measurements of a run into the entries of fio's output: one for each copy of a job, or
//! one for all jobs of a group that report together.

use super::stats::{DirectionStats, JobEntry, JobError, with_figures};
use super::values::short_time_ns;
use crate::jobs::{DescribedJob, DescribedJobs, JobWorkload, StartFailure};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::measurement::Measurement;
use diskproof_model::shape::LatencyTarget;
use std::collections::{BTreeMap, BTreeSet};

/// An entry whose measurements are still being collected.
struct OpenEntry<'a> {
    entry: JobEntry,
    members: Vec<&'a Measurement>,
}

/// The entries, in the order of the jobs.
///
/// As in fio, a job with `stats=0` is in none of them, and a blank entry at the end stands for it.
pub(super) fn entries(described: &DescribedJobs, measurements: &[Measurement]) -> Vec<JobEntry> {
    let mut open = Vec::new();
    let mut all = Vec::new();
    for job in &described.jobs {
        add_job(&mut all, described, job, measurements);
        if described.is_not_switched_off(job, "stats") {
            add_job(&mut open, described, job, measurements);
        }
    }
    let mut entries = Vec::new();
    for OpenEntry { entry, members } in open {
        entries.push(with_figures(entry, &members));
    }
    entries.resize_with(all.len(), JobEntry::blank);
    entries
}

/// The number of jobs that failed, in which each copy counts. All copies of a workload count, and a
/// copy that visits several files counts once.
pub(super) fn failed_jobs(described: &DescribedJobs, measurements: &[Measurement]) -> u64 {
    let mut failed = 0;
    for job in &described.jobs {
        if job.start_failure.is_some() {
            failed += job.copies;
        }
        let mut failed_parts = BTreeSet::new();
        for workload in &job.workloads {
            let copies = failed_copies(&own_measurements(workload, measurements));
            if copies == 0 || (job.files > 1 && !failed_parts.insert(&workload.name)) {
                continue;
            }
            failed += copies;
        }
    }
    failed
}

/// The copies of a workload whose requests, limits or verification failed; 0 where none did.
fn failed_copies(members: &[&Measurement]) -> u64 {
    for measurement in members {
        let mut entry = JobEntry::default();
        entry.take_error(measurement);
        if entry.error.is_some() {
            return u64::from(measurement.workload.workers);
        }
    }
    0
}

/// Adds the measurements of a job to the entries. Each of its workloads has an entry of its own,
/// with two exceptions: the same part of the job on another of its files, and a job that is
/// reported with its group.
fn add_job<'a>(
    open: &mut Vec<OpenEntry<'a>>,
    described: &DescribedJobs,
    job: &DescribedJob,
    measurements: &'a [Measurement],
) {
    let is_grouped = described.is_switched_on(job, "group_reporting");
    if job.workloads.is_empty() {
        add_creating_job(open, described, job, is_grouped);
    }
    // The index of the entry of each part of the job, by the name of its workload.
    let mut entry_of_part: BTreeMap<&str, usize> = BTreeMap::new();
    for workload in &job.workloads {
        let measured = own_measurements(workload, measurements);
        if job.files > 1
            && let Some(index) = entry_of_part.get(workload.name.as_str())
        {
            open[*index].entry.files += 1;
            open[*index].members.extend(measured);
            continue;
        }
        let copies = job.copies_of_workload();
        match open.last_mut() {
            Some(last) if is_grouped && last.entry.group == job.group => {
                last.entry.take_options(described, job);
                last.entry.jobs += copies;
                last.members.extend(measured);
            }
            _ => open.push(OpenEntry {
                entry: entry_without_figures(described, job, copies),
                members: measured,
            }),
        }
        // The first entry of a part stays its entry.
        entry_of_part
            .entry(&workload.name)
            .or_insert(open.len() - 1);
    }
}

/// Adds a job that only made its files, or whose `opendir` found none: an entry for each copy, or
/// one for its group.
fn add_creating_job(
    open: &mut Vec<OpenEntry<'_>>,
    described: &DescribedJobs,
    job: &DescribedJob,
    is_grouped: bool,
) {
    if is_grouped
        && let Some(last) = open.last_mut()
        && last.entry.group == job.group
    {
        last.entry.take_options(described, job);
        last.entry.jobs += job.copies;
        if last.entry.error.is_none() {
            last.entry.error = start_error(job);
        }
        return;
    }
    let (entries, copies) = if is_grouped {
        (1, job.copies)
    } else {
        (job.copies, 1)
    };
    for _ in 0..entries {
        let mut entry = entry_without_figures(described, job, copies);
        entry.error = start_error(job);
        entry.finds_no_file = described.value(job, "opendir").is_some();
        open.push(OpenEntry {
            entry,
            members: Vec::new(),
        });
    }
}

/// The error of a job that fails before it begins. As in fio, one that may not make its file has
/// none.
fn start_error(job: &DescribedJob) -> Option<JobError> {
    match job.start_failure {
        Some(StartFailure::NoSize) => Some(JobError::named("EINVAL")),
        Some(StartFailure::NoFileAllowed) | None => None,
    }
}

/// The measurements of a workload; of a search for a depth, those at the depth that it found, or at
/// the smallest one. A job that searches is the only one of its run, since the reader of jobs
/// refuses others beside it, so all measurements are of the search.
fn own_measurements<'a>(
    workload: &JobWorkload,
    measurements: &'a [Measurement],
) -> Vec<&'a Measurement> {
    let first = measurements.first();
    let Some(target) = first.and_then(|first| first.workload.shape.latency_target) else {
        return measurements
            .iter()
            .filter(|measurement| workload.is_measured_by(measurement))
            .collect();
    };
    let depths = measurements.iter();
    let smallest_depth = depths.map(|measurement| measurement.workload.depth).min();
    let found_depth = LatencySearch::judge(target, &[], measurements).depth;
    let depth = found_depth.or(smallest_depth);
    measurements
        .iter()
        .filter(|measurement| Some(measurement.workload.depth) == depth)
        .collect()
}

/// An entry for so many copies of a job, before the figures of its members are added.
fn entry_without_figures(described: &DescribedJobs, job: &DescribedJob, jobs: u64) -> JobEntry {
    let unified = described
        .value(job, "unified_rw_reporting")
        .unwrap_or_default();
    let mut entry = JobEntry {
        name: job.name.clone(),
        group: job.group,
        description: described.value(job, "description"),
        form: described.number_form(job),
        jobs,
        files: 1,
        is_mixed: matches!(unified.as_str(), "1" | "mixed"),
        both: matches!(unified.as_str(), "2" | "both").then(DirectionStats::default),
        latency_target: given_latency_target(described, job),
        ..JobEntry::default()
    };
    entry.take_options(described, job);
    entry
}

/// The latency that a job sets as its target; `None` without one.
fn given_latency_target(described: &DescribedJobs, job: &DescribedJob) -> Option<LatencyTarget> {
    let latency_ns = short_time_ns(&described.value(job, "latency_target")?).ok()?;
    let window = described.value(job, "latency_window").unwrap_or_default();
    let percent = described.value(job, "latency_percentile");
    Some(LatencyTarget {
        latency_ns,
        percent: percent.and_then(|text| text.parse().ok()).unwrap_or(100.0),
        window_ns: short_time_ns(&window).unwrap_or(0),
    })
}
