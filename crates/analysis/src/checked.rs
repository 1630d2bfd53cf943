//! Recognises the workloads of `check` and `commit` by what they do: `run` lets users give any name
//! to any workload, and no judgement may rest on a name alone.

use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, CachePolicy, Distribution, EngineKind, SyncCall, SyncPolicy};
use diskproof_model::row::Row;

/// Bytes of a page of PostgreSQL (BLCKSZ), unless the server was built otherwise.
pub(crate) const PAGE_BYTES: u32 = 8192;

/// The name that `check` gives to the workload of a row; `None` where it is not one of check's, nor
/// the same one of `commit`.
pub(crate) fn name_in_check(row: &Row) -> Option<&'static str> {
    let workload = &row.data.workload;
    let is_plain = workload.block_mix.is_empty()
        && !workload.is_paced()
        && workload.shape.is_plain()
        && workload.workers == 1
        && row.figures.together_with.is_empty()
        && row.data.engine.used != EngineKind::Null;
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
