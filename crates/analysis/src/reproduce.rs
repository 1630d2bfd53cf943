//! For each figure one command line of another tool that shows it again: of fio 3.33 or later with
//! the same block size, depth, span and cache mode, or of ioping 1.2 or later with the same single
//! requests. This file writes the lines, and nothing runs them. Option names and meanings are those
//! of fio's HOWTO and of ioping(1).

use diskproof_model::group::Group;
use diskproof_model::measurement::{HUGE_PAGES, Measurement, OpKind};
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineKind, Layout, Span, Stop, SyncCall,
    SyncPolicy, Workload, WriteFlag, Zone,
};
use diskproof_model::rw::Rw;
use diskproof_model::shape::{Arrivals, LoadShape, RunFollow, ThinkCount, WriteContent};
use diskproof_model::shell::quoted;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::target::{TargetIdentity, TargetKind};

/// The runtime of a job that others end: a day, which is longer than they take. Without a time fio
/// ends a job after one pass.
const ENDLESS_NS: u64 = 86_400_000_000_000;
/// The name of the file that fio makes in a directory when several of its jobs must share one.
const SHARED_FILE: &str = "diskproof-fio.tmp";
/// The warning at the end of a line that destroys data. A shell takes it for a comment. A shell
/// that does not passes it to fio as job files, and fio stops before it writes.
const OVERWRITE_WARNING: &str = "# overwrites the content of the target";

/// A workload as it ran and as it was requested.
#[derive(Debug, Clone, Copy)]
pub struct RanWorkload<'a> {
    /// As it ran.
    pub ran: &'a Measurement,
    /// As it was requested: it tells when the workload ends and how long it warms up.
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
        let workload = &self.ran.workload;
        let block_bytes = workload
            .block_mix
            .iter()
            .map(|share| share.block_bytes)
            .chain([workload.block_bytes])
            .max()?;
        let bytes = u64::from(block_bytes) * u64::from(workload.depth);
        // fio takes a page more, to align its buffers.
        Some(bytes / HUGE_PAGE_BYTES + 1)
    }
}

/// A mebibyte in bytes.
const MIB: u64 = 1 << 20;
/// A huge page of x86-64, and of arm64 with 4 KiB pages.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// The line of fio that repeats the workloads that ran at the same time on `target`, mostly a
/// single one. fio runs the jobs of one line at the same time. Empty where fio cannot do the same.
pub fn fio_command(
    members: &[RanWorkload<'_>],
    target: &TargetIdentity,
    group: Group<'_>,
) -> String {
    let mut directions = Vec::new();
    for member in members {
        match rw_value(&member.ran.workload) {
            Some(direction) => directions.push(direction),
            None => return String::new(),
        }
    }
    let mut words = vec!["fio".to_owned()];
    if members.len() > 1 {
        // The first job to finish ends the others. By default it ends its own reporting group only.
        words.extend(["--exitall".to_owned(), "--exit_what=all".to_owned()]);
    }
    let writing = members.iter().any(|member| writes(&member.ran.workload));
    if !writing && target.kind != TargetKind::Directory {
        words.push("--readonly".to_owned());
    }
    let file = match members {
        [only] if job_count(only.ran) == 1 => ScratchFile::Own,
        _ => ScratchFile::Shared,
    };
    let mut huge_pages = 0;
    for (index, member) in members.iter().enumerate() {
        let (ran, asked) = (member.ran, member.asked);
        let workload = &ran.workload;
        words.push(quoted(&format!("--name={}", workload.name)));
        if index > 0 {
            // Otherwise the figures of all jobs are added up.
            words.push("--new_group".to_owned());
        }
        for word in place_options(workload, target, asked.layout, file) {
            words.push(quoted(&word));
        }
        words.push(format!("--rw={}", directions[index]));
        words.extend(block_options(workload));
        words.extend(queue_options(ran));
        if let Some(pages) = member.huge_pages() {
            huge_pages += pages * u64::from(job_count(ran));
        }
        words.extend(cache_options(ran, asked.drops_cache_first));
        words.extend(offset_options(ran));
        words.extend(sync_options(workload.sync));
        words.extend(rate_options(ran));
        words.extend(shape_options(&workload.shape));
        words.extend(end_options(ran, asked, group));
        words.push("--group_reporting".to_owned());
    }
    if target.kind == TargetKind::Directory && file == ScratchFile::Shared {
        // The first job that ends would take the file away from one that has not begun.
        let path = quoted(&format!("{}/{SHARED_FILE}", target.path));
        words.push(format!("&& rm -f {path}"));
    }
    if writing && target.kind != TargetKind::Directory {
        words.push(OVERWRITE_WARNING.to_owned());
    }
    if huge_pages > 0 {
        // Without the reservation fio stops with ENOMEM, so the line that always runs comes first.
        words.push(format!(
            "# huge pages raise this figure: sysctl vm.nr_hugepages={huge_pages}, then fio \
             --mem=mmaphuge with the rest of this line"
        ));
    }
    words.join(" ")
}

/// The line that shows the same curve: of zcav (bonnie++ 2.00), which reads a device or file in
/// cells of so many MiB that there are as many as points, or for a directory of fio with a log of
/// its rate by offset. Both read everything. Empty without a curve, and for a curve of writes,
/// which would destroy data.
pub fn curve_command(surface: &SurfaceMeasurement, target: &TargetIdentity) -> String {
    if surface.survey.operation == OpKind::Write || surface.curve.is_empty() {
        return String::new();
    }
    if target.kind == TargetKind::Directory {
        let directory = quoted(&format!("--directory={}", target.path));
        let size = surface.span_start_bytes.saturating_add(surface.span_bytes) / MIB;
        return format!(
            "fio --name=curve {directory} --unlink=1 --rw=read --size={size}M --bs=1M \
             --ioengine=libaio --iodepth=8 --direct=1 --write_bw_log=curve --log_avg_msec=200 \
             --log_offset=1"
        );
    }
    let cell = (surface.span_bytes / surface.curve.len() as u64 / MIB).max(1);
    let is_part = surface.survey.span != Span::default();
    let start = surface.span_start_bytes;
    let end = start.saturating_add(surface.span_bytes);
    let part = if is_part {
        format!("-r {}:{} ", start / MIB, end / MIB)
    } else {
        String::new()
    };
    format!("zcav -b {cell} {part}-u root -f {}", quoted(&target.path))
}

/// The words whose conditions are true.
fn words_if<const N: usize>(words: [(bool, &str); N]) -> Vec<String> {
    let mut given = Vec::new();
    for (is_given, word) in words {
        if is_given {
            given.push(word.to_owned());
        }
    }
    given
}

/// Returns `true` if the workload changes blocks of its target, by writes or trims.
fn writes(workload: &Workload) -> bool {
    workload.streams.changes_blocks()
}

/// The number of fio's jobs. An interface that has one request per thread needs as many jobs as
/// requests must be in flight.
fn job_count(ran: &Measurement) -> u32 {
    let workload = &ran.workload;
    if is_blocking(ran.engine.used) {
        workload.workers * workload.depth
    } else {
        workload.workers
    }
}

fn is_blocking(engine: EngineKind) -> bool {
    matches!(engine, EngineKind::Sync | EngineKind::Mmap)
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
    // fio takes a colon for the border between two names.
    let path = target.path.replace('\\', "\\\\").replace(':', "\\:");
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

/// The value of `rw` for a workload; `None` where fio cannot do it. fio adds the modifier after `:`
/// to the end of the last operation, not to its start.
fn rw_value(workload: &Workload) -> Option<String> {
    match workload.sync {
        SyncPolicy::Shared { .. } | SyncPolicy::OtherDescriptor { .. } => return None,
        SyncPolicy::None
        | SyncPolicy::AtEnd
        | SyncPolicy::Every { .. }
        | SyncPolicy::WithWrite { .. } => {}
    }
    let kind = Rw::for_workload(&workload.access, &workload.streams)?.as_str();
    let block = i128::from(workload.block_bytes);
    let modifier = match workload.access {
        Access::Backward => -2 * block,
        Access::Stride { stride_bytes } => i128::from(stride_bytes) - block,
        _ => workload
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

/// The options for block sizes and for the share of reads.
fn block_options(workload: &Workload) -> Vec<String> {
    let mut words = Vec::new();
    if workload.streams.is_mix() {
        let reads = workload.streams.permille(OpKind::Read);
        words.push(format!("--rwmixread={}", (reads + 5) / 10));
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
    words
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

/// The options for the shape of the load. The number of operations at each random offset is part of
/// `--rw`.
fn shape_options(shape: &LoadShape) -> Vec<String> {
    let align = shape.order.align_bytes;
    let mut words = Vec::from_iter(align.map(|bytes| format!("--blockalign={bytes}")));
    let run = shape.order.random_run;
    let is_identical = run.is_some_and(|run| run.follow == RunFollow::Identical);
    let is_poisson = shape.starts.arrivals == Arrivals::Poisson;
    words.extend(words_if([
        (is_identical, "--rw_sequencer=identical"),
        (is_poisson, "--rate_process=poisson"),
    ]));
    if let Some(think) = shape.starts.think {
        words.push(format!("--thinktime={}us", think.pause_ns.div_ceil(1000)));
        if think.pause_ops > 1 {
            words.push(format!("--thinktime_blocks={}", think.pause_ops));
        }
        let is_started = think.counted == ThinkCount::Started;
        words.extend(words_if([(is_started, "--thinktime_blocks_type=issue")]));
        let busy_us = think.busy_ns.map(|ns| ns.div_ceil(1000));
        words.extend(busy_us.map(|us| format!("--thinktime_iotime={us}us")));
    }
    words.extend(shape.content.written.iter().flat_map(content_options));
    if shape.starts.delay_ns > 0 {
        let delay_us = shape.starts.delay_ns.div_ceil(1000);
        words.push(format!("--startdelay={delay_us}us"));
    }
    words
}

/// The options for the content of writes.
fn content_options(content: &WriteContent) -> Vec<String> {
    let mut words = Vec::new();
    match (content.filler_percent, content.filler.is_empty()) {
        (0, _) => {}
        (100.., true) => words.push("--zero_buffers".to_owned()),
        (percent, is_zeros) => {
            if !is_zeros {
                let digits = content.filler.iter().map(|byte| format!("{byte:02x}"));
                words.push(format!("--buffer_pattern=0x{}", digits.collect::<String>()));
            }
            if percent < 100 {
                words.push(format!("--buffer_compress_percentage={percent}"));
                words.push(format!("--buffer_compress_chunk={}", content.chunk_bytes));
            }
        }
    }
    if content.repeat_percent > 0 {
        words.push(format!("--dedupe_percentage={}", content.repeat_percent));
    }
    words.extend(words_if([
        (content.repeated_blocks > 0, "--dedupe_mode=working_set"),
        (content.shares_repeated, "--dedupe_global=1"),
        (content.keeps_buffers, "--scramble_buffers=0"),
    ]));
    words
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
    let depth = if is_blocking(ran.engine.used) {
        1
    } else {
        ran.workload.depth
    };
    let mut words = vec![
        format!("--ioengine={engine}"),
        format!("--iodepth={depth}"),
        format!("--numjobs={}", job_count(ran)),
    ];
    words.extend(words_if([(job_count(ran) > 1, "--thread")]));
    words
}

/// The options for the page cache. `drops_first` tells whether the run emptied it first.
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

/// The options for the span and for the distribution of offsets in it.
fn offset_options(ran: &Measurement) -> Vec<String> {
    let workload = &ran.workload;
    let mut words = Vec::new();
    if ran.span_start_bytes > 0 {
        words.push(format!("--offset={}", ran.span_start_bytes));
    }
    words.push(format!("--size={}", ran.span_bytes));
    let distribution = match &workload.access {
        Access::Sequential | Access::Backward | Access::Stride { .. } => return words,
        Access::Zoned { zones } => zoned_value(zones),
        Access::Random { distribution } => match distribution {
            Distribution::Uniform => String::new(),
            Distribution::Zipf { theta } => format!("zipf:{theta}"),
            Distribution::Pareto { share } => format!("pareto:{share}"),
            Distribution::Normal { spread_percent } => format!("normal:{spread_percent}"),
            Distribution::HotCold {
                access_percent,
                size_percent,
            } => {
                let hot = Zone {
                    access_percent: *access_percent,
                    size_percent: *size_percent,
                };
                let cold = Zone {
                    access_percent: 100.0 - access_percent,
                    size_percent: 100.0 - size_percent,
                };
                zoned_value(&[hot, cold])
            }
        },
    };
    if !distribution.is_empty() {
        words.push(format!("--random_distribution={distribution}"));
    }
    if !workload.shape.order.each_block_once {
        words.push("--norandommap".to_owned());
    }
    words.push("--randrepeat=0".to_owned());
    words
}

fn zoned_value(zones: &[Zone]) -> String {
    let accesses: Vec<f64> = zones.iter().map(|zone| zone.access_percent).collect();
    let sizes: Vec<f64> = zones.iter().map(|zone| zone.size_percent).collect();
    let mut words = Vec::new();
    for (access, size) in std::iter::zip(whole_percents(&accesses), whole_percents(&sizes)) {
        words.push(format!("{access}/{size}"));
    }
    format!("zoned:{}", words.join(":"))
}

/// The weights as whole percents, because fio takes no fractions. They add up to 100: cumulative
/// shares are rounded, so that no error piles up. No percent is zero, which fio would take for no
/// value. The largest one becomes smaller instead.
fn whole_percents(weights: &[f64]) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let (mut sum, mut before) = (0.0, 0);
    let mut percents: Vec<u32> = Vec::new();
    for weight in weights {
        sum += weight;
        let here = (sum / total * 100.0).round() as u32;
        percents.push(here.saturating_sub(before).max(1));
        before = here;
    }
    let excess = percents.iter().sum::<u32>().saturating_sub(100);
    if let Some(largest) = percents.iter_mut().max() {
        *largest = largest.saturating_sub(excess).max(1);
    }
    percents
}

/// The options for syncs.
fn sync_options(sync: SyncPolicy) -> Vec<String> {
    let word = match sync {
        SyncPolicy::None => return Vec::new(),
        SyncPolicy::AtEnd => "--end_fsync=1".to_owned(),
        SyncPolicy::Every { writes, call } => format!("--{}={writes}", call.as_str()),
        SyncPolicy::WithWrite { flag } => match flag {
            // fio has no RWF_DSYNC; the kernel treats a write with it as one with O_DSYNC
            // (iocb_flags() and kiocb_set_rw_flags() in Linux's include/linux/fs.h).
            WriteFlag::OpenDsync | WriteFlag::RwfDsync => "--sync=dsync".to_owned(),
            WriteFlag::OpenSync => "--sync=sync".to_owned(),
        },
        // fio has neither. `rw_value` refuses them, so that no line has them.
        SyncPolicy::Shared { .. } | SyncPolicy::OtherDescriptor { .. } => return Vec::new(),
    };
    vec![word]
}

/// The options for an offered load. fio's rates are per job and per direction.
///
/// Where a schedule leaves time to sleep, fio first waits until nothing of that job is in flight
/// (io_u_quiesce() in rate_ddir() of its io_u.c). Its load is therefore not an open loop, and meets
/// shorter queues than that of this program. `--io_submit_mode=offload` would make it one, but fio
/// 3.42 then prints no latencies, or never finishes.
fn rate_options(ran: &Measurement) -> Vec<String> {
    let workload = &ran.workload;
    let Some(rate) = workload.rate else {
        return Vec::new();
    };
    let rate_per_job = rate / f64::from(job_count(ran));
    let reads = workload.streams.permille(OpKind::Read);
    let rates = match reads {
        0 | 1000 => share_of_rate(rate_per_job, 1000).to_string(),
        _ => {
            let writes = share_of_rate(rate_per_job, 1000 - reads);
            format!("{},{writes}", share_of_rate(rate_per_job, reads))
        }
    };
    vec![
        format!("--rate_iops={rates}"),
        "--rate_process=linear".to_owned(),
    ]
}

fn share_of_rate(rate: f64, permille: u16) -> u64 {
    (rate * f64::from(permille) / 1000.0).round().max(1.0) as u64
}

/// The options for the end and the warm-up. fio's limits are per job. A workload that runs as long
/// as the others has no limit of its own.
fn end_options(ran: &Measurement, asked: &Workload, group: Group<'_>) -> Vec<String> {
    let jobs = u64::from(job_count(ran).max(1));
    let Stop { bytes, ops, .. } = asked.stop;
    let mut words = Vec::new();
    if let Some(bytes) = bytes {
        words.push(format!("--io_size={}", bytes.div_ceil(jobs)));
    }
    if let Some(ops) = ops {
        words.push(format!("--number_ios={}", ops.div_ceil(jobs)));
    }
    let is_timed = bytes.is_none() && ops.is_none();
    let time_ns = match group.time_of(asked) {
        None if !group.is_alone() && is_timed => Some(ENDLESS_NS),
        time_ns => time_ns,
    };
    if let Some(time_ns) = time_ns {
        words.push(format!("--runtime={}", time_value(time_ns)));
        words.extend(words_if([(is_timed, "--time_based")]));
    }
    if group.warmup_ns() > 0 {
        words.push(format!("--ramp_time={}", time_value(group.warmup_ns())));
    }
    words
}

/// A time in the syntax of fio, rounded up to milliseconds.
fn time_value(ns: u64) -> String {
    match ns.div_ceil(1_000_000) {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// The line of ioping that repeats the ping `ran` of `target`; empty where ioping cannot do the
/// same.
pub fn ioping_command(
    ran: &Measurement,
    asked: &Workload,
    plan: &PingPlan,
    target: &TargetIdentity,
) -> String {
    let durability = ioping_durability(&ran.workload);
    if durability == IopingDurability::Impossible || !plan.idle_ns.is_empty() {
        return String::new();
    }
    let mut words = vec!["ioping".to_owned()];
    let Stop { ops, time_ns, .. } = asked.stop;
    if let Some(ops) = ops {
        words.push(format!("-c {ops}"));
    }
    if let Some(time_ns) = time_ns {
        words.push(format!("-w {}ms", time_ns / 1_000_000));
    }
    words.push(format!("-i {}us", plan.interval_ns / 1000));
    words.push(format!("-a {}", plan.warmup_requests));
    words.push(format!("-s {}", ran.workload.block_bytes));
    if target.kind != TargetKind::BlockDevice || asked.span.length_bytes.is_some() {
        words.push(format!("-S {}", ran.span_bytes));
    }
    if ran.span_start_bytes > 0 {
        words.push(format!("-o {}", ran.span_start_bytes));
    }
    words.extend(words_if([
        (ran.cache.used == CachePolicy::Direct, "-D"),
        (ran.cache.used == CachePolicy::Cached, "-C"),
        (ran.workload.access == Access::Sequential, "-L"),
        (ran.engine.used == EngineKind::Aio, "-A"),
    ]));
    if let IopingDurability::Option(option) = durability {
        words.push(option.to_owned());
    }
    let is_writing = !ran.workload.streams.is_only(OpKind::Read);
    let destroys = is_writing && target.kind != TargetKind::Directory;
    words.extend(words_if([
        (is_writing && !ran.workload.streams.is_mix(), "-W"),
        (is_writing && ran.workload.streams.is_mix(), "-G"),
        // ioping writes to an existing file or device only if -W is given three times.
        (destroys, "-WWW"),
    ]));
    words.push(quoted(&target.path));
    words.extend(words_if([(destroys, OVERWRITE_WARNING)]));
    words.join(" ")
}

/// The way to make ioping's writes as durable as those of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IopingDurability {
    /// Without an option: ioping follows each write with fdatasync, unless the page cache may keep
    /// it.
    Default,
    /// With this option.
    Option(&'static str),
    /// ioping cannot do it.
    Impossible,
}

fn ioping_durability(ran: &Workload) -> IopingDurability {
    if ran.streams.is_only(OpKind::Read) {
        return IopingDurability::Default;
    }
    match ran.sync {
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        } => IopingDurability::Option("-y"),
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenSync,
        } => IopingDurability::Option("-Y"),
        SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        } if ran.cache != CachePolicy::Cached => IopingDurability::Default,
        SyncPolicy::None if ran.cache == CachePolicy::Cached => IopingDurability::Default,
        _ => IopingDurability::Impossible,
    }
}

#[cfg(test)]
mod tests;
