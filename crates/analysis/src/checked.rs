//! The workloads of `check` and `commit`, recognised by what they do: `run` lets users give any
//! name to any workload, and no judgement may rest on a name alone.

use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, CachePolicy, Distribution, EngineKind, SyncCall, SyncPolicy};
use diskproof_model::row::Row;

/// Bytes of a page of PostgreSQL (BLCKSZ), unless the server was built otherwise.
pub(crate) const PAGE_BYTES: u32 = 8192;

/// The name that `check` gives to the workload of a row; `None` where it is not one of check's, nor
/// the same one of `commit`.
pub(crate) fn name_in_check(m: &Row) -> Option<&'static str> {
    let w = &m.data.workload;
    let is_plain = w.block_mix.is_empty()
        && !w.is_paced()
        && w.shape.is_plain()
        && w.workers == 1
        && m.figures.together_with.is_empty()
        && m.data.engine.used != EngineKind::Null;
    let is_page = w.block_bytes == PAGE_BYTES;
    let uniform = Access::Random {
        distribution: Distribution::Uniform,
    };
    let each_commits = SyncPolicy::Every {
        writes: 1,
        call: SyncCall::Fdatasync,
    };
    let only_reads = w.streams.is_only(OpKind::Read);
    let reads_pages = only_reads && w.access == uniform && is_page;
    let only_writes = w.streams.is_only(OpKind::Write);
    let is_sequential = w.access == Access::Sequential;
    let commits = only_writes && w.sync == each_commits && is_page && w.depth == 1;
    // The page cache is no disk, unless each write waits for it.
    let is_of_disk = m.data.cache.used != CachePolicy::Cached || w.sync == each_commits;
    let (name, is_as_named) = match w.name.as_str() {
        "sequential-read" => ("sequential-read", only_reads && is_sequential),
        "sequential-write" => ("sequential-write", only_writes && is_sequential),
        "random-read-d1" => ("random-read-d1", reads_pages && w.depth == 1),
        "random-read-d32" => ("random-read-d32", reads_pages && w.depth == 32),
        "commit-fdatasync" | "fdatasync" => ("commit-fdatasync", commits),
        _ => return None,
    };
    if is_plain && is_of_disk && is_as_named {
        Some(name)
    } else {
        None
    }
}
