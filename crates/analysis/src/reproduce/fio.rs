//! The line of fio that makes the same load again.

use super::fio_job::{
    depth, is_blocking, job_count, largest_block_bytes, sync_value, whole_percents,
};
use super::fio_offsets::{end_options, offset_options};
use super::fio_shape::shape_options;
use super::words::{OVERWRITE_WARNING, words_if};
use diskproof_model::group::Group;
use diskproof_model::measurement::{HUGE_PAGES, Measurement, OpKind};
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, EngineKind, Layout, SyncPolicy, Workload,
};
use diskproof_model::rw::Rw;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};

/// The name of the file that fio makes in a directory when several of its jobs must share one.
const SHARED_FILE: &str = "diskproof-fio.tmp";
/// A huge page of x86-64, and of arm64 with 4 KiB pages.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// A workload as it ran and as it was requested.
#[derive(Debug, Clone, Copy)]
pub struct RanWorkload<'a> {
    /// As it ran.
    pub ran: &'a Measurement,
    /// As it was requested, with its end and its warm-up.
    pub asked: &'a Workload,
}

impl RanWorkload<'_> {
    /// The number of huge pages that each of fio's jobs takes for its buffers; `None` where this
    /// program used none.
    fn huge_pages(&self) -> Option<u64> {
        let engine = &self.ran.engine;
        let is_huge = engine.features.iter().any(|feature| feature == HUGE_PAGES);
        if !is_huge || is_blocking(engine.used) {
            return None;
        }
        let block_bytes = largest_block_bytes(&self.ran.workload);
        let bytes = block_bytes * u64::from(depth(self.ran));
        // fio takes a page more, to align its buffers.
        Some(bytes / HUGE_PAGE_BYTES + 1)
    }
}

/// The line of fio that repeats the workloads that ran at the same time on `target`, mostly a
/// single one. fio runs the jobs of one line at the same time. Empty where fio cannot do the same.
pub fn fio_command(
    members: &[RanWorkload<'_>],
    target: &TargetIdentity,
    group: Group<'_>,
) -> String {
    command_words(members, target, group)
        .unwrap_or_default()
        .join(" ")
}

/// The words of the line; `None` where fio cannot do the same.
fn command_words(
    members: &[RanWorkload<'_>],
    target: &TargetIdentity,
    group: Group<'_>,
) -> Option<Vec<String>> {
    let file = match members {
        [only] if job_count(only.ran) == 1 => ScratchFile::Own,
        _ => ScratchFile::Shared,
    };
    let mut words = vec!["fio".to_owned()];
    match group_end(members)? {
        GroupEnd::EachAlone => {}
        // By default the first job to finish ends its own reporting group only.
        GroupEnd::WithFirst => {
            words.extend(["--exitall".to_owned(), "--exit_what=all".to_owned()]);
        }
    }
    let is_writing = members.iter().any(|member| writes(&member.ran.workload));
    if !is_writing && target.kind != TargetKind::Directory {
        words.push("--readonly".to_owned());
    }
    for (index, member) in members.iter().enumerate() {
        words.push(quoted(&format!("--name={}", member.ran.workload.name)));
        if index > 0 {
            // Otherwise the figures of all jobs are added up.
            words.push("--new_group".to_owned());
        }
        words.extend(job_options(*member, target, group, file)?);
    }
    if target.kind == TargetKind::Directory && file == ScratchFile::Shared {
        // The first job that ends would take the file away from one that has not begun.
        let path = quoted(&format!("{}/{SHARED_FILE}", target.path));
        words.push(format!("&& rm -f {path}"));
    }
    if is_writing && target.kind != TargetKind::Directory {
        words.push(OVERWRITE_WARNING.to_owned());
    }
    words.extend(huge_page_hint(members));
    Some(words)
}

/// The way in which the workloads of a group end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupEnd {
    /// The end of one leaves the others alone.
    EachAlone,
    /// All end with the first.
    WithFirst,
}

/// `None` where only some of them end the others: fio has one switch for all jobs.
fn group_end(members: &[RanWorkload<'_>]) -> Option<GroupEnd> {
    let alone = members
        .iter()
        .filter(|member| member.asked.ends_alone)
        .count();
    if members.len() == 1 || alone == members.len() {
        Some(GroupEnd::EachAlone)
    } else if alone == 0 {
        Some(GroupEnd::WithFirst)
    } else {
        None
    }
}

/// The options of one job, behind its name; `None` where fio cannot do the same.
fn job_options(
    member: RanWorkload<'_>,
    target: &TargetIdentity,
    group: Group<'_>,
    file: ScratchFile,
) -> Option<Vec<String>> {
    let RanWorkload { ran, asked } = member;
    let workload = &ran.workload;
    // fio's trims are the ioctl of a device. It punches no holes.
    if workload.streams.makes(OpKind::Trim) && target.kind != TargetKind::BlockDevice {
        return None;
    }
    let mut words: Vec<String> = place_options(workload, target, asked.layout, file)
        .iter()
        .map(|word| quoted(word))
        .collect();
    words.push(format!("--rw={}", rw_value(workload)?));
    words.extend(block_options(workload)?);
    words.extend(queue_options(ran));
    words.extend(cache_options(ran, asked.drops_cache_first));
    words.extend(offset_options(ran)?);
    words.extend(sync_option(workload.sync)?);
    words.extend(rate_options(ran)?);
    words.extend(shape_options(&workload.shape)?);
    words.extend(end_options(ran, asked, group)?);
    words.push("--group_reporting".to_owned());
    Some(words)
}

/// The comment about the huge pages that raised the figures; `None` where none were used.
fn huge_page_hint(members: &[RanWorkload<'_>]) -> Option<String> {
    let mut huge_pages = 0;
    for member in members {
        if let Some(pages) = member.huge_pages() {
            huge_pages += pages * u64::from(job_count(member.ran));
        }
    }
    if huge_pages == 0 {
        return None;
    }
    // Without the reservation fio stops with ENOMEM, so the line that always runs comes first.
    Some(format!(
        "# huge pages raise this figure: sysctl vm.nr_hugepages={huge_pages}, then fio \
         --mem=mmaphuge with the rest of this line"
    ))
}

/// Returns `true` if the workload changes blocks of its target, by writes or trims.
fn writes(workload: &Workload) -> bool {
    workload.streams.changes_blocks()
}

/// The file that fio lays out in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScratchFile {
    /// One job, one file.
    Own,
    /// One for several jobs, each of which would lay out one of the full size otherwise.
    Shared,
}

/// The options for the file or device, or for the directory in which fio lays out a file. fio
/// deletes a file of its own.
fn place_options(
    workload: &Workload,
    target: &TargetIdentity,
    layout: Layout,
    file: ScratchFile,
) -> Vec<String> {
    // fio takes a colon for the border between two names. A backslash only counts before one
    // (get_next_str() in its options.c).
    let path = target.path.replace(':', "\\:");
    if target.kind != TargetKind::Directory {
        return vec![format!("--filename={path}")];
    }
    let mut words = vec![format!("--directory={path}")];
    if file == ScratchFile::Shared {
        words.push(format!("--filename={SHARED_FILE}"));
    }
    words.extend(words_if([
        // fio then lays the file out first, as it does for reads: growing a file is another
        // workload.
        (
            writes(workload) && layout == Layout::Needed,
            "--overwrite=1",
        ),
        (file == ScratchFile::Own, "--unlink=1"),
    ]));
    words
}

/// The value of `rw` for a workload; `None` where fio has no word for it. fio adds the modifier
/// after `:` to the end of the last operation, not to its start.
pub(super) fn rw_value(workload: &Workload) -> Option<String> {
    if workload.transaction.is_some() {
        return None;
    }
    let kind = Rw::for_workload(&workload.access, &workload.streams)?.as_str();
    let block = i128::from(workload.block_bytes);
    let modifier = match workload.access {
        Access::Backward => -2 * block,
        Access::Stride { stride_bytes } => i128::from(stride_bytes) - block,
        Access::Sequential | Access::Random { .. } | Access::Zoned { .. } => workload
            .shape
            .order
            .random_run
            .map_or(0, |run| i128::from(run.run_ops)),
    };
    Some(match modifier {
        0 => kind.to_owned(),
        _ => format!("{kind}:{modifier}"),
    })
}

/// The options for block sizes and for the share of reads; `None` where that share in whole percent
/// leaves nothing of the mix.
fn block_options(workload: &Workload) -> Option<Vec<String>> {
    let mut words = Vec::new();
    if workload.streams.is_mix() {
        let percent = (workload.streams.permille(OpKind::Read) + 5) / 10;
        if percent == 0 || percent == 100 {
            return None;
        }
        words.push(format!("--rwmixread={percent}"));
    }
    let write_mix = workload.streams.other_sizes();
    if workload.block_mix.is_empty() {
        words.push(format!("--bs={}", workload.block_bytes));
    } else if write_mix.is_empty() {
        words.push(format!("--bssplit={}", bssplit_value(&workload.block_mix)));
    } else {
        let reads = bssplit_value(&workload.block_mix);
        let writes = bssplit_value(write_mix);
        words.push(format!("--bssplit={reads},{writes}"));
    }
    Some(words)
}

/// A mix of sizes in the syntax of `bssplit`.
fn bssplit_value(mix: &[BlockShare]) -> String {
    let weights: Vec<f64> = mix.iter().map(|share| f64::from(share.weight)).collect();
    let mut shares = Vec::new();
    for (share, percent) in std::iter::zip(mix, whole_percents(&weights)) {
        shares.push(format!("{}/{percent}", share.block_bytes));
    }
    shares.join(":")
}

/// The options for the engine, the depth and the number of jobs.
fn queue_options(ran: &Measurement) -> Vec<String> {
    let engine = match ran.engine.used {
        EngineKind::Uring => "io_uring",
        EngineKind::Aio => "libaio",
        EngineKind::Sync => "psync",
        EngineKind::Mmap => "mmap",
        EngineKind::Null => "null",
    };
    let job_depth = if is_blocking(ran.engine.used) {
        1
    } else {
        depth(ran)
    };
    let mut words = vec![
        format!("--ioengine={engine}"),
        format!("--iodepth={job_depth}"),
        format!("--numjobs={}", job_count(ran)),
    ];
    words.extend(words_if([(job_count(ran) > 1, "--thread")]));
    words
}

/// The options for the page cache. `drops_first` is true if the run emptied it first.
fn cache_options(ran: &Measurement, drops_first: bool) -> Vec<String> {
    let workload = &ran.workload;
    // A buffered write of this program is complete when the device has it. Without this option fio
    // would measure how fast a small file is overwritten in memory. fio empties its queue before
    // each write-back, so that its figure is that of one request at a time.
    const WRITE_BACK: &str = "--sync_file_range=wait_before,write,wait_after:1";
    let words: &[&str] = match ran.cache.used {
        CachePolicy::Direct => &["--direct=1"],
        CachePolicy::Buffered if writes(workload) && workload.sync == SyncPolicy::None => {
            &["--direct=0", "--invalidate=1", WRITE_BACK, "--end_fsync=1"]
        }
        CachePolicy::Buffered if writes(workload) && workload.sync == SyncPolicy::AtEnd => {
            &["--direct=0", "--invalidate=1", WRITE_BACK]
        }
        CachePolicy::Buffered => &["--direct=0", "--invalidate=1"],
        CachePolicy::Cached if drops_first => &["--direct=0", "--invalidate=1"],
        CachePolicy::Cached => &["--direct=0", "--invalidate=0"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The option for syncs, where there are any; `None` where fio has no such syncs.
fn sync_option(sync: SyncPolicy) -> Option<Option<String>> {
    let word = match sync {
        SyncPolicy::None => return Some(None),
        SyncPolicy::AtEnd => "--end_fsync=1".to_owned(),
        SyncPolicy::Every { writes, call } => format!("--{}={writes}", call.as_str()),
        SyncPolicy::WithWrite { flag } => format!("--sync={}", sync_value(flag)),
        SyncPolicy::Shared { .. } | SyncPolicy::OtherDescriptor { .. } => return None,
    };
    Some(Some(word))
}

/// fio's rates are whole numbers. One that is rounded by more than this share is another load.
/// Chosen, not measured.
const RATE_ERROR_MAX: f64 = 0.01;

/// The options for an offered load; `None` where fio's whole numbers cannot express it. fio's rates
/// are per job and per direction.
///
/// Where a schedule leaves time to sleep, fio first waits until nothing of that job is in flight
/// (io_u_quiesce() in rate_ddir() of its io_u.c). Its load is therefore not an open loop, and meets
/// shorter queues than that of this program. `--io_submit_mode=offload` would make it one, but fio
/// 3.42 then prints no latencies, or never finishes.
fn rate_options(ran: &Measurement) -> Option<Vec<String>> {
    let workload = &ran.workload;
    if let Some(of_kind) = workload.shape.starts.kind_rate {
        let rate = whole_rate(of_kind.per_second / f64::from(job_count(ran)))?;
        return Some(vec![if of_kind.kind == OpKind::Read {
            format!("--rate_iops={rate},")
        } else {
            format!("--rate_iops=,{rate}")
        }]);
    }
    let Some(rate) = workload.rate else {
        return Some(Vec::new());
    };
    let rate_per_job = rate / f64::from(job_count(ran));
    let reads = workload.streams.permille(OpKind::Read);
    let rates = match reads {
        0 | 1000 => whole_rate(rate_per_job)?.to_string(),
        _ => {
            let read_share = f64::from(reads) / 1000.0;
            let read_rate = whole_rate(rate_per_job * read_share)?;
            let write_rate = whole_rate(rate_per_job * (1.0 - read_share))?;
            format!("{read_rate},{write_rate}")
        }
    };
    Some(vec![
        format!("--rate_iops={rates}"),
        "--rate_process=linear".to_owned(),
    ])
}

/// The whole number for a rate; `None` where it would be another rate.
fn whole_rate(rate: f64) -> Option<u64> {
    let whole = rate.round();
    if (whole - rate).abs() <= RATE_ERROR_MAX * rate {
        Some(whole as u64)
    } else {
        None
    }
}
