//! Recognises the workloads of `check` and `commit` by what they do: `run` lets users give any name
//! to any workload, and no judgement may rest on a name alone.

use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, CachePolicy, Distribution, EngineKind, SyncCall, SyncPolicy};
use diskproof_model::record::Record;
use diskproof_model::row::Row;

/// Bytes of a page of PostgreSQL (BLCKSZ), unless the server was built otherwise.
pub(crate) const PAGE_BYTES: u32 = 8192;

/// The name that `check` gives to the workload of a row; `None` where it is not one of check's, nor
/// the same one of `commit`, and where it ran with the write cache switched for the test: that says
/// nothing of the disk as it is used.
pub(crate) fn name_in_check(record: &Record, row: &Row) -> Option<&'static str> {
    let workload = &row.data.workload;
    let is_plain = workload.block_mix.is_empty()
        && !workload.is_paced()
        && workload.shape.is_plain()
        && workload.workers == 1
        && row.figures.together_with.is_empty()
        && row.data.engine.used != EngineKind::Null
        && has_usual_write_cache(record, row);
    let is_page = workload.block_bytes == PAGE_BYTES;
    let uniform = Access::Random {
        distribution: Distribution::Uniform,
    };
    let each_commits = SyncPolicy::Every {
        writes: 1,
        call: SyncCall::Fdatasync,
    };
    let only_reads = workload.streams.is_only(OpKind::Read);
    let reads_pages = only_reads && workload.access == uniform && is_page;
    let only_writes = workload.streams.is_only(OpKind::Write);
    let is_sequential = workload.access == Access::Sequential;
    let commits = only_writes && workload.sync == each_commits && is_page && workload.depth == 1;
    // The page cache is no disk, unless each write waits for it.
    let is_of_disk = row.data.cache.used != CachePolicy::Cached || workload.sync == each_commits;
    let (name, is_as_named) = match workload.name.as_str() {
        "sequential-read" => ("sequential-read", only_reads && is_sequential),
        "sequential-write" => ("sequential-write", only_writes && is_sequential),
        "random-read-d1" => ("random-read-d1", reads_pages && workload.depth == 1),
        "random-read-d32" => ("random-read-d32", reads_pages && workload.depth == 32),
        "commit-fdatasync" | "fdatasync" => ("commit-fdatasync", commits),
        _ => return None,
    };
    if is_plain && is_of_disk && is_as_named {
        Some(name)
    } else {
        None
    }
}

/// Returns `true` if the write cache of the row's disks was in the state that the run found. In
/// another state, the figure says nothing about the disk as it is used.
pub(crate) fn has_usual_write_cache(record: &Record, row: &Row) -> bool {
    let Some(state) = row.data.workload.write_cache else {
        return true;
    };
    let Some(target) = record.targets.get(row.data.target) else {
        return true;
    };
    target
        .disks()
        .flat_map(|disk| disk.reported_write_cache)
        .all(|found| found == state)
}

#[cfg(test)]
mod tests {
    use crate::fixture;
    use diskproof_model::target::WriteCache;

    /// Commits with a write cache that was switched off for the test have no grade and advise on no
    /// setting; with the cache as the run found it, they do.
    #[test]
    fn switched_write_cache_is_not_the_disk_as_it_is_used() {
        for (found, is_used) in [
            (Some(WriteCache::WriteBack), false),
            (Some(WriteCache::WriteThrough), true),
            (None, true),
        ] {
            let record = fixture::changed(|run| {
                for layer in &mut run.facts.targets[0].layers {
                    layer.reported_write_cache = found;
                }
                for measurement in &mut run.measurements {
                    measurement.workload.write_cache = Some(WriteCache::WriteThrough);
                }
            });
            let grades = &record.verdict.as_ref().unwrap().grades;
            let has_commits = grades.iter().any(|grade| grade.name == "commits");
            assert_eq!(has_commits, is_used, "{found:?}");
            let has_delay = record
                .advice
                .iter()
                .any(|one| one.setting == "commit_delay");
            assert_eq!(has_delay, is_used, "{found:?}");
        }
    }
}
