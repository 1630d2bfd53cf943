//! For each figure one line of another tool that shows it again: of fio, 3.33 or later, with the
//! same block size, depth, span and cache mode, or of ioping, 1.2 or later, with the same single
//! requests. Only writes the line; never runs it. Option names and meanings are those of fio's
//! HOWTO and of ioping(1).

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

/// For fio, which ends a job after one pass without a time: longer than what ends the others.
const ENDLESS_NS: u64 = 86_400_000_000_000;
/// Name of the file that fio makes in a directory when several of its jobs must share one.
const SHARED_FILE: &str = "diskproof-fio.tmp";
/// A shell takes this for a comment; one that does not hands fio a job file that is not there, and
/// fio stops before it writes.
const DESTROYS: &str = "# overwrites the content of the target";

/// A workload as it ran and as it was asked for.
#[derive(Debug, Clone, Copy)]
pub struct RanWorkload<'a> {
    /// As it ran.
    pub ran: &'a Measurement,
    /// As it was asked for.
    pub asked: &'a Workload,
}

impl RanWorkload<'_> {
    /// Huge pages that each of fio's jobs takes for its buffers; `None` where ours used none.
    fn huge_pages(&self) -> Option<u64> {
        let engine = &self.ran.engine;
        let is_huge = engine.features.iter().any(|f| f == HUGE_PAGES);
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

const MIB: u64 = 1 << 20;
/// A huge page of x86-64, and of arm64 with 4 KiB pages.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// The line that repeats the workloads that ran at the same time on `target`, mostly a single one:
/// as they ran and as they were asked for, which tells when they end and how long they warm up. fio
/// runs the jobs of one line at the same time. Empty where fio cannot do the same.
pub fn command(members: &[RanWorkload<'_>], target: &TargetIdentity, group: Group<'_>) -> String {
    let mut directions = Vec::new();
    for member in members {
        match direction(&member.ran.workload) {
            Some(direction) => directions.push(direction),
            None => return String::new(),
        }
    }
    let mut words = vec!["fio".to_owned()];
    if members.len() > 1 {
        // What is done first ends the others; by default it ends its own reporting group only.
        words.extend(["--exitall".to_owned(), "--exit_what=all".to_owned()]);
    }
    let writing = members.iter().any(|member| writes(&member.ran.workload));
    if !writing && target.kind != TargetKind::Directory {
        words.push("--readonly".to_owned());
    }
    let file = match members {
        [only] if jobs(only.ran) == 1 => ScratchFile::Own,
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
        for word in place(workload, target, asked.layout, file) {
            words.push(quoted(&word));
        }
        words.push(format!("--rw={}", directions[index]));
        words.extend(blocks(workload));
        words.extend(queue(ran));
        if let Some(pages) = member.huge_pages() {
            huge_pages += pages * u64::from(jobs(ran));
        }
        words.extend(cache(ran, asked.drops_cache_first));
        words.extend(offsets(ran));
        words.extend(durability(workload.sync));
        words.extend(offered(ran));
        words.extend(shaped(&workload.shape));
        words.extend(ending(ran, asked, group));
        words.push("--group_reporting".to_owned());
    }
    if target.kind == TargetKind::Directory && file == ScratchFile::Shared {
        // The first job that ends would take the file away from one that has not begun.
        let path = quoted(&format!("{}/{SHARED_FILE}", target.path));
        words.push(format!("&& rm -f {path}"));
    }
    if writing && target.kind != TargetKind::Directory {
        words.push(DESTROYS.to_owned());
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

/// The line that shows the same curve: zcav of bonnie++ 2.00, which reads a device or file in cells
/// of as many MiB as there are points; for a directory fio with a log of its rate by offset. Both
/// read everything. Empty for a curve of writes, which would destroy what there is, and without a
/// curve.
pub fn curve(surface: &SurfaceMeasurement, target: &TargetIdentity) -> String {
    if surface.survey.operation == OpKind::Write || surface.curve.is_empty() {
        return String::new();
    }
    if target.kind == TargetKind::Directory {
        let directory = quoted(&format!("--directory={}", target.path));
        let size = (surface.span_start_bytes + surface.span_bytes) / MIB;
        return format!(
            "fio --name=curve {directory} --unlink=1 --rw=read --size={size}M --bs=1M \
             --ioengine=libaio --iodepth=8 --direct=1 --write_bw_log=curve --log_avg_msec=200 \
             --log_offset=1"
        );
    }
    let cell = (surface.span_bytes / surface.curve.len() as u64 / MIB).max(1);
    let is_part = surface.survey.span != Span::default();
    let start = surface.span_start_bytes;
    let end = start + surface.span_bytes;
    let part = if is_part {
        format!("-r {}:{} ", start / MIB, end / MIB)
    } else {
        String::new()
    };
    format!("zcav -b {cell} {part}-u root -f {}", quoted(&target.path))
}

/// The words of which the conditions are true.
fn given<const N: usize>(words: [(bool, &str); N]) -> impl Iterator<Item = String> {
    let given = words.into_iter().filter(|(is_given, _)| *is_given);
    given.map(|(_, word)| word.to_owned())
}

fn writes(w: &Workload) -> bool {
    w.streams.changes_blocks()
}

/// Interfaces that hold one request per thread need as many jobs as requests must be in flight.
fn jobs(ran: &Measurement) -> u32 {
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

/// The file or device, or the directory in which fio lays out a file; its own it takes away again.
fn place(w: &Workload, target: &TargetIdentity, layout: Layout, file: ScratchFile) -> Vec<String> {
    // fio takes a colon for the border between two names.
    let path = target.path.replace('\\', "\\\\").replace(':', "\\:");
    if target.kind != TargetKind::Directory {
        return vec![format!("--filename={path}")];
    }
    let mut words = vec![format!("--directory={path}")];
    if file == ScratchFile::Shared {
        words.push(format!("--filename={SHARED_FILE}"));
    }
    words.extend(given([
        // Lays the file out first, as reads do by themselves: growing a file is another workload.
        (writes(w) && layout == Layout::Needed, "--overwrite=1"),
        (file == ScratchFile::Own, "--unlink=1"),
    ]));
    words
}

/// What a workload does, as the value of `rw`; `None` where fio cannot do it. fio adds the modifier
/// after `:` to where the last operation ended, not to where it began.
fn direction(w: &Workload) -> Option<String> {
    match w.sync {
        SyncPolicy::Shared { .. } | SyncPolicy::OtherDescriptor { .. } => return None,
        SyncPolicy::None
        | SyncPolicy::AtEnd
        | SyncPolicy::Every { .. }
        | SyncPolicy::WithWrite { .. } => {}
    }
    let kind = Rw::for_workload(&w.access, &w.streams)?.as_str();
    let block = i128::from(w.block_bytes);
    let modifier = match w.access {
        Access::Backward => -2 * block,
        Access::Stride { stride_bytes } => i128::from(stride_bytes) - block,
        _ => w
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

fn blocks(w: &Workload) -> Vec<String> {
    let mut words = Vec::new();
    if w.streams.is_mix() {
        let reads = w.streams.permille(OpKind::Read);
        words.push(format!("--rwmixread={}", (reads + 5) / 10));
    }
    let writes = w.streams.other_sizes();
    match (w.block_mix.is_empty(), writes.is_empty()) {
        (true, _) => words.push(format!("--bs={}", w.block_bytes)),
        (false, true) => words.push(format!("--bssplit={}", split(&w.block_mix))),
        (false, false) => {
            let (reads, writes) = (split(&w.block_mix), split(writes));
            words.push(format!("--bssplit={reads},{writes}"));
        }
    }
    words
}

/// A mix of sizes in the syntax of `bssplit`.
fn split(mix: &[BlockShare]) -> String {
    let weights: Vec<f64> = mix.iter().map(|share| f64::from(share.weight)).collect();
    let mut shares = Vec::new();
    for (share, percent) in std::iter::zip(mix, percents(&weights)) {
        shares.push(format!("{}/{percent}", share.block_bytes));
    }
    shares.join(":")
}

/// What shapes the load; the number of operations at each random offset is part of `--rw`.
fn shaped(shape: &LoadShape) -> Vec<String> {
    let align = shape.order.align_bytes;
    let mut words = Vec::from_iter(align.map(|bytes| format!("--blockalign={bytes}")));
    let run = shape.order.random_run;
    let is_identical = run.is_some_and(|run| run.follow == RunFollow::Identical);
    let is_poisson = shape.starts.arrivals == Arrivals::Poisson;
    words.extend(given([
        (is_identical, "--rw_sequencer=identical"),
        (is_poisson, "--rate_process=poisson"),
    ]));
    if let Some(think) = shape.starts.think {
        words.push(format!("--thinktime={}us", think.pause_ns.div_ceil(1000)));
        if think.pause_ops > 1 {
            words.push(format!("--thinktime_blocks={}", think.pause_ops));
        }
        let is_started = think.counted == ThinkCount::Started;
        words.extend(given([(is_started, "--thinktime_blocks_type=issue")]));
        let busy_us = think.busy_ns.map(|ns| ns.div_ceil(1000));
        words.extend(busy_us.map(|us| format!("--thinktime_iotime={us}us")));
    }
    words.extend(shape.content.written.iter().flat_map(content));
    if shape.starts.delay_ns > 0 {
        let delay_us = shape.starts.delay_ns.div_ceil(1000);
        words.push(format!("--startdelay={delay_us}us"));
    }
    words
}

/// What is written.
fn content(content: &WriteContent) -> Vec<String> {
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
    words.extend(given([
        (content.repeated_blocks > 0, "--dedupe_mode=working_set"),
        (content.shares_repeated, "--dedupe_global=1"),
        (content.keeps_buffers, "--scramble_buffers=0"),
    ]));
    words
}

fn queue(ran: &Measurement) -> Vec<String> {
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
        format!("--numjobs={}", jobs(ran)),
    ];
    words.extend(given([(jobs(ran) > 1, "--thread")]));
    words
}

fn cache(ran: &Measurement, drops_first: bool) -> Vec<String> {
    let w = &ran.workload;
    // Ours is done when the device has it; fio would measure how fast a small file is written over
    // in memory. With a queue fio empties it for each write-back, so that the figure is that of
    // one at a time.
    const WRITE_BACK: &str = "--sync_file_range=wait_before,write,wait_after:1";
    let words: &[&str] = match ran.cache.used {
        CachePolicy::Direct => &["--direct=1"],
        CachePolicy::Buffered if writes(w) && w.sync == SyncPolicy::None => {
            &["--direct=0", "--invalidate=1", WRITE_BACK, "--end_fsync=1"]
        }
        CachePolicy::Buffered if writes(w) && w.sync == SyncPolicy::AtEnd => {
            &["--direct=0", "--invalidate=1", WRITE_BACK]
        }
        CachePolicy::Buffered => &["--direct=0", "--invalidate=1"],
        CachePolicy::Cached if drops_first => &["--direct=0", "--invalidate=1"],
        CachePolicy::Cached => &["--direct=0", "--invalidate=0"],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn offsets(ran: &Measurement) -> Vec<String> {
    let w = &ran.workload;
    let mut words = Vec::new();
    if ran.span_start_bytes > 0 {
        words.push(format!("--offset={}", ran.span_start_bytes));
    }
    words.push(format!("--size={}", ran.span_bytes));
    let distribution = match &w.access {
        Access::Sequential | Access::Backward | Access::Stride { .. } => return words,
        Access::Zoned { zones } => zoned(zones),
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
                zoned(&[hot, cold])
            }
        },
    };
    if !distribution.is_empty() {
        words.push(format!("--random_distribution={distribution}"));
    }
    if !w.shape.order.each_block_once {
        words.push("--norandommap".to_owned());
    }
    words.push("--randrepeat=0".to_owned());
    words
}

fn zoned(zones: &[Zone]) -> String {
    let accesses: Vec<f64> = zones.iter().map(|zone| zone.access_percent).collect();
    let sizes: Vec<f64> = zones.iter().map(|zone| zone.size_percent).collect();
    let mut words = Vec::new();
    for (access, size) in std::iter::zip(percents(&accesses), percents(&sizes)) {
        words.push(format!("{access}/{size}"));
    }
    format!("zoned:{}", words.join(":"))
}

/// Whole percents, which is all that fio takes, that add up to 100: cumulative shares are rounded,
/// so that no error piles up. None is zero, which fio would take for nothing at all; the largest
/// gives way.
fn percents(weights: &[f64]) -> Vec<u32> {
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

fn durability(sync: SyncPolicy) -> Vec<String> {
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
        // fio has neither; see `command`.
        SyncPolicy::Shared { .. } | SyncPolicy::OtherDescriptor { .. } => return Vec::new(),
    };
    vec![word]
}

/// fio's rates are per job and per direction. Where a schedule leaves time to sleep, fio first
/// waits until nothing of that job is in flight (io_u_quiesce() in rate_ddir() of its io_u.c), so
/// its load is no open loop and meets shorter queues than ours. `--io_submit_mode=offload` would be
/// one, but fio 3.42 then prints no latencies, or never ends.
fn offered(ran: &Measurement) -> Vec<String> {
    let w = &ran.workload;
    let Some(rate) = w.rate else {
        return Vec::new();
    };
    let each = rate / f64::from(jobs(ran));
    let reads = w.streams.permille(OpKind::Read);
    let rates = match reads {
        0 | 1000 => share_of_rate(each, 1000).to_string(),
        _ => {
            let writes = share_of_rate(each, 1000 - reads);
            format!("{},{writes}", share_of_rate(each, reads))
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

/// fio's limits are per job. One who runs as long as the others has none of his own.
fn ending(ran: &Measurement, asked: &Workload, group: Group<'_>) -> Vec<String> {
    let jobs = u64::from(jobs(ran).max(1));
    let (bytes, ops) = (asked.stop.bytes, asked.stop.ops);
    let mut words = Vec::new();
    if let Some(bytes) = bytes {
        words.push(format!("--io_size={}", bytes.div_ceil(jobs)));
    }
    if let Some(ops) = ops {
        words.push(format!("--number_ios={}", ops.div_ceil(jobs)));
    }
    let is_timed = bytes.is_none() && ops.is_none();
    let endless = !group.is_alone() && is_timed;
    if let Some(time_ns) = group.time_ns().or(endless.then_some(ENDLESS_NS)) {
        words.push(format!("--runtime={}", time(time_ns)));
        words.extend(given([(is_timed, "--time_based")]));
    }
    if group.warmup_ns() > 0 {
        words.push(format!("--ramp_time={}", time(group.warmup_ns())));
    }
    words
}

fn time(ns: u64) -> String {
    match ns.div_ceil(1_000_000) {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// The line that repeats the ping `ran` of `target`; empty where ioping cannot do the same.
pub fn ioping(
    ran: &Measurement,
    asked: &Workload,
    plan: &PingPlan,
    target: &TargetIdentity,
) -> String {
    let Some(ioping_durability) =
        ioping_durability(&ran.workload).filter(|_| plan.idle_ns.is_empty())
    else {
        return String::new();
    };
    let mut words = vec!["ioping".to_owned()];
    let Stop { ops, time_ns, .. } = asked.stop;
    words.extend(ops.map(|ops| format!("-c {ops}")));
    words.extend(time_ns.map(|ns| format!("-w {}ms", ns / 1_000_000)));
    words.push(format!("-i {}us", plan.interval_ns / 1000));
    words.push(format!("-a {}", plan.warmup_requests));
    words.push(format!("-s {}", ran.workload.block_bytes));
    if target.kind != TargetKind::BlockDevice || asked.span.length_bytes.is_some() {
        words.push(format!("-S {}", ran.span_bytes));
    }
    if ran.span_start_bytes > 0 {
        words.push(format!("-o {}", ran.span_start_bytes));
    }
    words.extend(given([
        (ran.cache.used == CachePolicy::Direct, "-D"),
        (ran.cache.used == CachePolicy::Cached, "-C"),
        (ran.workload.access == Access::Sequential, "-L"),
        (ran.engine.used == EngineKind::Aio, "-A"),
    ]));
    words.extend(ioping_durability.map(str::to_owned));
    let is_writing = !ran.workload.streams.is_only(OpKind::Read);
    let destroys = is_writing && target.kind != TargetKind::Directory;
    words.extend(given([
        (is_writing && !ran.workload.streams.is_mix(), "-W"),
        (is_writing && ran.workload.streams.is_mix(), "-G"),
        // Without three of them ioping writes to no existing file or device.
        (destroys, "-WWW"),
    ]));
    words.push(quoted(&target.path));
    words.extend(given([(destroys, DESTROYS)]));
    words.join(" ")
}

/// The option for how writes are made durable; `None` where ioping has none for it. It follows each
/// write with fdatasync, unless the page cache may keep it.
fn ioping_durability(ran: &Workload) -> Option<Option<&'static str>> {
    if ran.streams.is_only(OpKind::Read) {
        return Some(None);
    }
    match ran.sync {
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        } => Some(Some("-y")),
        SyncPolicy::WithWrite {
            flag: WriteFlag::OpenSync,
        } => Some(Some("-Y")),
        SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        } if ran.cache != CachePolicy::Cached => Some(None),
        SyncPolicy::None if ran.cache == CachePolicy::Cached => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
