//! Finds the rows whose commits are worth judging, and the disks that have to make them durable.
//! Every rule on commits begins here.

use super::rule::*;

/// Fewer commits decide nothing: one that waited for something else changes their rate by more than
/// a method does. Chosen, not measured.
const COMMITS_MIN: u64 = 50;

/// The commits of a row; those of several sessions, where the row had several.
#[derive(Clone, Copy)]
pub(super) struct SessionCommits<'a> {
    pub(super) measured: Measured<'a>,
    pub(super) commits: OpRow<'a>,
}

/// The commits of each row that made enough of them.
pub(super) fn all_sessions(record: &Record) -> Vec<SessionCommits<'_>> {
    let mut sessions = Vec::new();
    for measured in real_rows(record) {
        let Some(commits) = measured.row.op(OpKind::Commit) else {
            continue;
        };
        if commits.data.count >= COMMITS_MIN {
            sessions.push(SessionCommits { measured, commits });
        }
    }
    sessions
}

/// The commits of each row that was one session without other load.
pub(super) fn single_sessions(record: &Record) -> Vec<SessionCommits<'_>> {
    let mut sessions = all_sessions(record);
    sessions.retain(|session| is_single_session(session.measured.row));
    sessions
}

/// True of a row of writes by one session, as fast as it can make them, without other load.
fn is_single_session(row: &Row) -> bool {
    let workload = &row.data.workload;
    (workload.depth, workload.workers) == (1, 1)
        && workload.streams.is_only(OpKind::Write)
        && !workload.is_paced()
        && row.figures.together_with.is_empty()
}

/// True if diskproof switched the write cache off for a workload, whatever the kernel assumes.
pub(super) fn has_cache_off(row: &Row) -> bool {
    row.data.workload.write_cache == Some(WriteCache::WriteThrough)
}

/// The disks below a measurement.
pub(super) fn disks_below<'a>(record: &'a Record, row: &Row) -> Vec<&'a Layer> {
    match record.targets.get(row.data.target) {
        Some(target) => target.disks().collect(),
        None => Vec::new(),
    }
}

pub(super) fn disk_names(disks: &[&Layer]) -> String {
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    names.join(", ")
}

/// Records that the tests of several rules use.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::{self, measured};

    /// The record of a run on a disk with a volatile cache, whose commits came with so many
    /// flushes.
    pub(in crate::rules) fn volatile(flushes: u64) -> Record {
        let mut record = fixture::record();
        each_layer(&mut record, |layer| {
            layer.write_cache = Some(WriteCache::WriteBack)
        });
        for row in &mut record.measurements {
            row.data.device.flush_ops = Some(flushes);
        }
        record
    }

    pub(in crate::rules) fn with_flushes() -> Record {
        volatile(2510)
    }

    pub(in crate::rules) fn each_layer(record: &mut Record, change: impl Fn(&mut Layer)) {
        record
            .targets
            .iter_mut()
            .flat_map(|target| &mut target.layers)
            .for_each(change);
    }

    pub(in crate::rules) fn set_rate(record: &mut Record, name: &str, rate: f64) {
        let commits = measured(record, name)
            .figures
            .ops
            .get_mut(&OpKind::Commit)
            .unwrap();
        commits.iops.value = rate;
        commits.iops.half_width_95 = Some(rate / 100.0);
    }
}
