//! Turns placed fio jobs into the workloads of a plan file. Pure.

use super::jobs::{Cache, FioJob, GivenName};
use super::placement::{FilePart, Placements};
use super::translation::{Closeness, Translated, Translation};
use crate::plan_file::{PlanFile, PlannedWorkload};
use crate::workload::{Bytes, Count, Position, SpanBounds, WORKLOADS_MAX, WorkloadFlags};
use diskproof_compat::JobWorkload;
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{BlockShare, EngineChoice, EngineKind};
use diskproof_model::shape::{LoadShape, ZoneStride};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

/// A sequential mix of so few whole blocks has them all in one direction, with fio's seed.
const MIXED_BLOCKS_MIN: u64 = 3;
/// Longer names are cut, so that two numbers fit behind them.
const NAME_CHARS_MAX: usize = 30;

/// Makes the plan.
pub(crate) fn plan(
    jobs: &[FioJob],
    placements: &Placements,
    translation: &Translation<'_>,
) -> Translated<(PlanFile, Vec<Vec<JobWorkload>>)> {
    let mut names = BTreeSet::new();
    let mut of_jobs: Vec<Vec<JobWorkload>> = vec![Vec::new(); jobs.len()];
    let mut workloads: Vec<PlannedWorkload> = Vec::new();
    let groups = groups(jobs)?;
    let earlier = groups.iter().rev().skip(1).rev().flatten();
    let mut earlier = earlier.map(|index| &jobs[*index]);
    if let Some(job) = earlier.find(|job| job.ends_everything) {
        return Err(job.error("exit_what=all would skip the later jobs; use group"));
    }
    for group in groups {
        let mut members = members(&group, jobs, placements, translation)?;
        add_group_notes(&members, translation);
        check_steady(&members)?;
        // Each by itself, as in fio.
        let ends_alone = members.len() > 1 && !members.iter().any(|member| member.job.exits_all);
        let is_new = workloads.is_empty() && is_first_pass(&members);
        for index in &group {
            if placements.by_job[*index].is_first_to_write && !is_new {
                translation.note(
                    "the job overwrites blocks, as with overwrite=1; without it fio writes to a \
                     new file, so a sync also has to record new blocks",
                    &jobs[*index].section,
                );
            }
        }
        for (index, member) in members.iter_mut().enumerate() {
            let GroupMember {
                job,
                copy,
                flags,
                carried,
            } = member;
            flags.together = (index > 0).then_some(true);
            flags.ends_alone = ends_alone.then_some(true);
            // With several targets, one workload stands for several jobs.
            let label = if carried.len() > 1 {
                job.word()
            } else {
                &job.name
            };
            let name = unique_name(&mut names, label, job.word(), *copy);
            flags.name = Some(parsed(job, &name)?);
            for Carried { target, job } in carried {
                of_jobs[*job].push(JobWorkload {
                    name: name.clone(),
                    target: *target,
                });
            }
            workloads.push(PlannedWorkload {
                line: job.source.line,
                name,
                flags: flags.clone(),
            });
            if workloads.len() > WORKLOADS_MAX {
                return Err(job.source.error(format!(
                    "the copies (numjobs) make more than {WORKLOADS_MAX} workloads, the limit of a \
                     plan"
                )));
            }
        }
    }
    let plan = PlanFile {
        note: note(jobs),
        size: placements.scratch_bytes().map(Bytes),
        targets: placements.targets.clone(),
        scratch_files: placements.named_files(),
        workloads,
        ..PlanFile::default()
    };
    Ok((plan, of_jobs))
}

/// The description, where all jobs have the same.
fn note(jobs: &[FioJob]) -> Option<String> {
    let mut descriptions = jobs.iter().filter_map(|job| job.description.as_ref());
    let first = descriptions.next()?;
    descriptions
        .all(|other| other == first)
        .then(|| first.clone())
}

/// Refuses jobs whose sum would have to be steady.
fn check_steady(members: &[GroupMember<'_>]) -> Translated<()> {
    let is_summed = |member: &&GroupMember<'_>| {
        member.job.flags.shape.steady.is_some() && member.job.reports_together
    };
    match members.iter().find(is_summed).filter(|_| members.len() > 1) {
        Some(member) => Err(member.job.error(
            "steadystate with group_reporting applies to the sum of several jobs, which is not \
             supported; remove one of the two",
        )),
        None => Ok(()),
    }
}

/// Whether the group is one job that fills a new scratch file from its start. Then the blocks are
/// new here, too.
fn is_first_pass(members: &[GroupMember<'_>]) -> bool {
    let [GroupMember { job, flags, .. }] = members else {
        return false;
    };
    let is_plain = !job.is_random()
        && !job.rw().drops_blocks()
        && flags.stride.is_none()
        && flags.backward.is_none()
        && flags.fsync.is_none()
        && flags.fdatasync.is_none();
    is_plain
        && flags.shape.is_plain()
        && flags.span.is_none()
        && flags.jobs == Some(Count(1))
        && flags.engine != Some(EngineChoice::Fixed(EngineKind::Mmap))
}

/// The jobs that run together, as indexes.
fn groups(jobs: &[FioJob]) -> Translated<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The job whose end starts the last group.
    let mut starter: Option<&str> = None;
    for (index, job) in jobs.iter().enumerate() {
        let awaited = job.waits_for.as_ref();
        if let Some(wait) = awaited
            && jobs[..index].iter().all(|one| one.section != wait.name)
        {
            return Err(wait.source.error(format!(
                "[{}]: wait_for={}: no job above has this name",
                job.section, wait.name
            )));
        }
        let is_beside = match (awaited, groups.last()) {
            (_, None) => false,
            _ if job.waits => false,
            // All jobs that run are the one it waits for.
            (Some(wait), Some(group))
                if group.iter().all(|one| jobs[*one].section == wait.name) =>
            {
                false
            }
            (Some(wait), Some(_)) if starter == Some(wait.name.as_str()) => true,
            (Some(GivenName { name, source }), Some(_)) => {
                return Err(source.error(format!(
                    "[{}]: wait_for={name}: other jobs would still run at that time, but a \
                     workload waits for all earlier ones; use stonewall",
                    job.section
                )));
            }
            (None, Some(_)) if starter.is_some() => {
                return Err(job.error(
                    "the job would start before the jobs with wait_for above it; move it up",
                ));
            }
            (None, Some(_)) => true,
        };
        match groups.last_mut() {
            Some(group) if is_beside => group.push(index),
            _ => {
                groups.push(vec![index]);
                let starts = awaited.filter(|_| !job.waits);
                starter = starts.map(|wait| wait.name.as_str());
            }
        }
    }
    Ok(groups)
}

/// Adds notes on what jobs that run together share here, but not in fio.
fn add_group_notes(members: &[GroupMember<'_>], translation: &Translation<'_>) {
    let [GroupMember { job: first, .. }, _, ..] = members else {
        return;
    };
    let jobs = || members.iter().map(|member| member.job);
    let add = |note| jobs().for_each(|job| translation.note(note, &job.section));
    if jobs().any(|job| job.flags.warmup != first.flags.warmup) {
        add("concurrent jobs share the longest of their warm-ups");
    }
    let end_by_themselves = jobs().any(|job| job.flags.time != first.flags.time);
    if end_by_themselves && !jobs().any(|job| job.exits_all) {
        add("concurrent jobs share the shortest of their runtimes; in fio each has its own");
    }
}

/// Decides how each job of a group uses the page cache, where it does not run as in fio. A job that
/// only writes and syncs its writes does not read the cache and leaves nothing unwritten in it. So
/// the cache is not emptied for it, as in fio, unless another job of the group needs that: a target
/// has one page cache.
fn settle_caches(group: &[usize], jobs: &[FioJob], translation: &Translation<'_>) -> Vec<Cache> {
    if translation.is_as_fio() {
        return group.iter().map(|index| jobs[*index].cache).collect();
    }
    let commits = |job: &FioJob| {
        let syncs = job.flags.fsync.is_some() || job.flags.fdatasync.is_some();
        // A trim drops the pages of its block itself.
        job.rw().leaves_no_content() || (job.rw().is_only(OpKind::Write) && syncs)
    };
    let emptied = |job: &FioJob| job.cache == Cache::Emptied && !commits(job);
    let is_emptied = group.iter().any(|index| emptied(&jobs[*index]));
    let settled = group.iter().map(|index| match &jobs[*index] {
        job if job.cache == Cache::Emptied && !is_emptied => Cache::Kept,
        job => {
            if job.cache == Cache::Emptied {
                translation.note(
                    "direct=0 (fio's default): the job empties and writes back the page cache \
                     while it runs, so the disk answers instead of memory; invalidate=0 does not \
                     empty it",
                    &job.section,
                );
            }
            job.cache
        }
    });
    settled.collect()
}

/// A workload of a group.
struct GroupMember<'a> {
    job: &'a FioJob,
    /// The number of the copy, where each copy is a workload.
    copy: Option<u64>,
    flags: WorkloadFlags,
    /// The jobs that it carries out.
    carried: Vec<Carried>,
}

/// A job that a workload carries out.
struct Carried {
    target: usize,
    /// Its place among all jobs.
    job: usize,
}

/// The workloads of a group. Where they are the same on each target, each runs on all of them.
fn members<'a>(
    group: &[usize],
    jobs: &'a [FioJob],
    placements: &Placements,
    translation: &Translation<'_>,
) -> Translated<Vec<GroupMember<'a>>> {
    let caches = settle_caches(group, jobs, translation);
    let targets = placements.total_bytes.len();
    let mut by_target: Vec<Vec<GroupMember<'a>>> = Vec::new();
    by_target.resize_with(targets, Vec::new);
    for (index, cache) in group.iter().zip(caches) {
        let (job, placement) = (&jobs[*index], &placements.by_job[*index]);
        let target = placement.target;
        let total_bytes = placements.total_bytes[target];
        for (copy, flags) in workloads(job, &placement.parts, total_bytes, cache, translation)? {
            by_target[target].push(GroupMember {
                job,
                copy,
                flags,
                carried: vec![Carried {
                    target,
                    job: *index,
                }],
            });
        }
    }
    let flags = |target: usize| by_target[target].iter().map(|member| &member.flags);
    let are_alike = (1..targets).all(|target| flags(target).eq(flags(0)));
    let mut by_target = by_target.into_iter().enumerate();
    if !are_alike {
        let mut all = Vec::new();
        for (target, members) in by_target {
            for mut member in members {
                member.flags.target = Some(target);
                all.push(member);
            }
        }
        return Ok(all);
    }
    let (_, mut first) = by_target.next().unwrap_or_default();
    for (_, members) in by_target {
        for (own, other) in first.iter_mut().zip(members) {
            own.carried.extend(other.carried);
        }
    }
    Ok(first)
}

/// The workloads of a job: one for all copies where the load stays the same, else one per copy.
fn workloads(
    job: &FioJob,
    parts: &[FilePart],
    total_bytes: u64,
    cache: Cache,
    translation: &Translation<'_>,
) -> Translated<Vec<(Option<u64>, WorkloadFlags)>> {
    let (copies, closeness) = (parts.len() as u64, translation.overrides.closeness);
    if job.flags.stride.is_some() {
        translation.note(
            "with gaps, each pass starts one block later; fio visits the same blocks again",
            &job.section,
        );
    }
    let is_mapped = job.flags.shape.each_block_once;
    if is_mapped && job.one_block().is_none() && closeness == Closeness::Disk {
        translation.note(
            "with a mix of sizes, random offsets repeat, as with norandommap. No block is \
             shortened, so the mix is exactly that of bssplit",
            &job.section,
        );
    }
    // The printer of fio shows each copy, unless the job wants one figure.
    let is_one = closeness == Closeness::Disk || job.reports_together || copies == 1;
    if let Some(part) = united(job, parts, closeness).filter(|_| is_one) {
        let mut flags = flags(job, copies, parts[0], part, total_bytes, cache, closeness)?;
        pin(job, 0, &mut flags);
        return Ok(vec![(None, flags)]);
    }
    if closeness == Closeness::Disk && parts.iter().all(|part| *part == parts[0]) {
        translation.note(
            "the copies of a job (numjobs) visit the same blocks, as in fio; each copy becomes a \
             workload",
            &job.section,
        );
    }
    let mut all = Vec::new();
    for (copy, part) in parts.iter().enumerate() {
        let mut flags = flags(job, 1, *part, *part, total_bytes, cache, closeness)?;
        pin(job, copy as u64, &mut flags);
        all.push((Some(copy as u64 + 1), flags));
    }
    Ok(all)
}

/// Gives a copy its processor, where each has one for itself.
fn pin(job: &FioJob, copy: u64, flags: &mut WorkloadFlags) {
    if let (true, Some(scheduling)) = (job.splits_cpus, &mut flags.shape.scheduling)
        && !scheduling.cpus.is_empty()
    {
        let place = (job.first_copy + copy) as usize % scheduling.cpus.len();
        scheduling.cpus = vec![scheduling.cpus[place]];
    }
}

/// The part that all copies use together, if the workers of one workload use it in the same way:
/// random workers draw from the whole part, sequential workers divide it.
fn united(job: &FioJob, parts: &[FilePart], closeness: Closeness) -> Option<FilePart> {
    let first = parts[0];
    let is_one = parts.iter().all(|part| *part == first);
    let shape = &job.flags.shape;
    let is_for_each = shape.steady.is_some() || shape.zone_stride.is_some() || job.splits_cpus;
    if parts.len() > 1 && is_for_each {
        return None;
    }
    if parts.len() == 1 || (is_one && job.is_random()) {
        return Some(first);
    }
    let follows = |pair: &[FilePart]| {
        pair[1].length == pair[0].length
            && pair[0].start.checked_add(pair[0].length) == Some(pair[1].start)
    };
    // Sequential workers divide a span at multiples of the block size.
    let is_whole = match job.flags.bs {
        Some(block) => first.length.is_multiple_of(u64::from(block.0)),
        None => job.is_random(),
    };
    // Where the page cache is emptied after each lap, a lap of a worker must be that of a copy.
    let laps_count = closeness == Closeness::Fio && job.cache == Cache::Emptied;
    let is_alike = !job.is_random() || (job.is_uniform() && !(laps_count && shape.each_block_once));
    let length = first.length.checked_mul(parts.len() as u64)?;
    (is_alike && is_whole && parts.windows(2).all(follows)).then_some(FilePart { length, ..first })
}

/// The keys of a workload of `copies` copies in `part`. Each copy has the amount of I/O of `own`.
fn flags(
    job: &FioJob,
    copies: u64,
    own: FilePart,
    part: FilePart,
    total_bytes: u64,
    cache: Cache,
    closeness: Closeness,
) -> Translated<WorkloadFlags> {
    let drops_first = closeness == Closeness::Fio && cache == Cache::Emptied;
    let extent = job.extent;
    let bytes = work_bytes(job, own)?.saturating_mul(copies);
    let ops = extent.ops.map(|ops| ops.saturating_mul(copies));
    // Of two limits, the one that is reached first. With a mix of sizes that may be either.
    let (bytes, ops) = match (job.one_block(), ops, extent.is_time_based) {
        _ if job.flags.latency_target.is_some() => (None, None),
        (_, ops, true) => (None, ops),
        (Some(block), Some(ops), false) if ops.saturating_mul(block) <= bytes => (None, Some(ops)),
        (Some(_), _, false) => (Some(bytes), None),
        (None, ops, false) => (Some(bytes_of_mix(job, bytes, closeness)), ops),
    };
    let mut job_flags = job.flags.clone();
    if job.rw().leaves_no_content() {
        fit_trims(&mut job_flags, part.length);
    }
    if job.alternates {
        alternate(&mut job_flags, job, part);
    }
    let is_all = part.start == 0 && part.length == total_bytes;
    let span = SpanBounds {
        start: Position::Bytes(part.start),
        end: Position::Bytes(part.start.saturating_add(part.length)),
    };
    let rate = job.flags.rate.map(|rate| rate.0 * copies as f64);
    let rate = rate.map(|rate| parsed(job, &rate.to_string()));
    Ok(WorkloadFlags {
        jobs: Some(Count(copies)),
        rate: rate.transpose()?,
        bytes: bytes.map(Bytes),
        ops: ops.map(Count),
        span: (!is_all).then_some(span),
        buffered: (cache == Cache::Emptied && !drops_first).then_some(true),
        cached: (cache == Cache::Kept || drops_first).then_some(true),
        drops_cache_first: drops_first.then_some(true),
        shape: LoadShape {
            verified_times: verified_times(job, closeness),
            ..shape(job, closeness)
        },
        ..job_flags
    })
}

/// The bytes of a workload of several sizes, so that it moves as much as in fio, where a job ends
/// with the request that reaches them. A workload starts no request that could exceed its bytes.
fn bytes_of_mix(job: &FioJob, bytes: u64, closeness: Closeness) -> u64 {
    match closeness {
        Closeness::Disk => bytes,
        Closeness::Fio => bytes.saturating_add(job.largest_block() - job.smallest_block()),
    }
}

/// How often fio reads back what a job writes: after each of its loops.
fn verified_times(job: &FioJob, closeness: Closeness) -> Option<u32> {
    let is_repeated = closeness == Closeness::Fio && job.reads_back() && job.extent.loops > 1;
    let times = u32::try_from(job.extent.loops).unwrap_or(u32::MAX);
    (is_repeated && !job.extent.is_time_based).then_some(times)
}

/// Lets requests go to the parts of a file in turn that stand for several files.
fn alternate(flags: &mut WorkloadFlags, job: &FioJob, part: FilePart) {
    let block = job.smallest_block();
    let each = part.length / job.files / block * block;
    if each > block {
        flags.stride = Some(Bytes(each));
    }
}

/// Leaves out sizes of trims for which there is no room at random offsets; fio draws another one
/// then.
fn fit_trims(flags: &mut WorkloadFlags, span_bytes: u64) {
    if let Some(split) = &mut flags.bssplit {
        let has_room = |share: &BlockShare| u64::from(share.block_bytes) <= span_bytes / 2;
        if split.0.iter().any(has_room) {
            split.0.retain(has_room);
        }
    }
}

/// With a mix of sizes the map of visited blocks shortens blocks. Only fio's own figures need that,
/// and ordinary pages.
fn shape(job: &FioJob, closeness: Closeness) -> LoadShape {
    let is_fio = closeness == Closeness::Fio;
    LoadShape {
        each_block_once: job.flags.shape.each_block_once && (is_fio || job.one_block().is_some()),
        ordinary_pages: job.flags.shape.ordinary_pages && is_fio,
        ..job.flags.shape.clone()
    }
}

/// The bytes that a copy transfers, as observed with fio 3.42. With gaps, a job ends when a block
/// reaches or crosses the end of its file, and starts another pass when the next block lies behind
/// the end.
fn work_bytes(job: &FioJob, own: FilePart) -> Translated<u64> {
    let (block, loops) = (job.smallest_block(), job.extent.loops);
    let asked = job.extent.io_size.map(|size| size.of(own.job_bytes));
    let io_size = asked.map(|size| job.whole_blocks(size.saturating_mul(loops)));
    let gaps = match job.flags.stride {
        Some(Bytes(step)) => Some(step),
        None => job.gap_step_bytes,
    };
    if let (Some(zones), None) = (job.flags.shape.zone_stride, gaps) {
        return Ok(io_size.unwrap_or(zone_bytes(job, zones, own).saturating_mul(loops)));
    }
    let is_backward = job.flags.backward.is_some();
    let pass = match gaps {
        _ if is_backward && !own.is_whole_file && job.extent.offset != Amount::Bytes(0) => {
            return Err(job.error(
                "fio ends a backward job with an offset after one or two requests; remove the \
                 offset, or write a plan file with backward and span",
            ));
        }
        _ if is_backward => job.whole_blocks(own.job_bytes),
        None => return Ok(bytes_of_laps(job, own, asked)),
        Some(step) => {
            let rest = own.job_bytes % step;
            if !own.is_whole_file || (rest > 0 && rest <= block) {
                (own.job_bytes.saturating_sub(block) / step + 1) * block
            } else {
                job.whole_blocks(own.job_bytes)
            }
        }
    };
    let limit = job.whole_blocks(own.job_bytes.saturating_mul(loops));
    let total = pass.saturating_mul(loops).min(limit);
    match io_size {
        Some(bytes) if bytes > total && is_backward => Err(job.error(
            "a backward job transfers less than io_size in one pass; use loops, or time_based \
             with a runtime",
        )),
        Some(bytes) => Ok(bytes.min(laps_bytes(pass, loops, asked.unwrap_or(0), block))),
        None => Ok(total),
    }
}

/// The bytes of a job without gaps, of `asked` bytes in place of its size. It ends with the block
/// that reaches them, or with its last lap.
fn bytes_of_laps(job: &FioJob, own: FilePart, asked: Option<u64>) -> u64 {
    let (block, loops) = (job.smallest_block(), job.extent.loops);
    let lap = lap_bytes(job, own, asked);
    // If the file has less than the job, the last lap starts again; several files end it.
    let rest = match job.files {
        0 | 1 => own.job_bytes.saturating_sub(lap) / block * block,
        _ => 0,
    };
    let laps = lap.saturating_mul(loops).saturating_add(rest);
    match asked {
        Some(asked) => {
            let limit = job.whole_blocks(asked.saturating_mul(loops));
            // The reads that verify a lap count, too.
            let counted = if job.reads_back() { 2 } else { 1 };
            let more = laps_bytes(lap.saturating_mul(counted), loops, asked, block) / counted;
            limit.min(laps.max(more))
        }
        None => job
            .whole_blocks(own.job_bytes.saturating_mul(loops))
            .min(laps),
    }
}

/// The bytes with which a lap of a job ends, at most.
fn lap_bytes(job: &FioJob, own: FilePart, asked: Option<u64>) -> u64 {
    let block = job.smallest_block();
    let size = job.whole_blocks(own.job_bytes);
    let in_file = own.length / block * block;
    let asked = asked.unwrap_or(0);
    if job.is_mapped || !(job.is_random() || job.rw().is_mix()) {
        // Ends with the last whole block of the file.
        return if job.laps_have_whole_file() {
            in_file
        } else {
            size.min(in_file)
        };
    }
    if job.is_random() {
        return if job.laps_have_whole_file() {
            job.whole_blocks(asked.max(own.job_bytes).saturating_mul(job.extent.loops))
        } else if job.rw().changes_blocks() {
            size.max(job.whole_blocks(asked))
        } else {
            size
        };
    }
    // Each direction has its own place in the file. In a short one, the first to reach the end ends
    // the job; in a longer one, the size does.
    if own.job_bytes / block < MIXED_BLOCKS_MIN {
        size.min(in_file)
    } else if job.laps_have_whole_file() {
        let reads = job.flags.rwmixread.map_or(500, |share| u64::from(share.0));
        // The larger direction reaches the end first.
        let larger = reads.max(1000_u64.saturating_sub(reads)).max(1);
        job.whole_blocks(in_file.saturating_mul(1000) / larger)
    } else {
        size
    }
}

/// The bytes of whole laps with which a job with `io_size` ends: it makes its loops, and then
/// further laps until less than a block is missing.
fn laps_bytes(lap: u64, loops: u64, io_size: u64, block: u64) -> u64 {
    let missing = io_size.saturating_sub(lap.saturating_mul(loops));
    let more = (missing + 1).saturating_sub(block).div_ceil(lap.max(1));
    lap.saturating_mul(loops.saturating_add(more))
}

/// The bytes of a job with zones: those of its size, in several laps where they need them. As in
/// fio, it ends where the end of the file cuts a zone short.
fn zone_bytes(job: &FioJob, zones: ZoneStride, own: FilePart) -> u64 {
    let block = job.smallest_block();
    let size = job.whole_blocks(own.job_bytes);
    let period = zones.zone_bytes.saturating_add(zones.skip_bytes).max(1);
    let (whole, rest) = (own.length / period, own.length % period);
    if rest > 0 && rest < zones.zone_bytes {
        size.min((whole * zones.zone_bytes + rest) / block * block)
    } else {
        size
    }
}

/// Parses a value with the parser of its flag, so that the same limits apply.
fn parsed<T: FromStr<Err: Display>>(job: &FioJob, text: &str) -> Translated<T> {
    text.parse().map_err(|error: T::Err| job.error(error))
}

/// A name of a workload that none before it has.
fn unique_name(taken: &mut BTreeSet<String>, label: &str, word: &str, copy: Option<u64>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    let base = label.replace(|c: char| !is_plain(c), "-");
    let base = base.trim_matches('-').chars().take(NAME_CHARS_MAX);
    let base = Some(base.collect::<String>()).filter(|base| !base.is_empty());
    let base = base.unwrap_or(word.to_owned());
    let wanted = copy.map_or_else(|| base.clone(), |copy| format!("{base}-{copy}"));
    let others = (2..).map(|number| format!("{wanted}-{number}"));
    let mut names = std::iter::once(wanted.clone()).chain(others);
    let free = names.find(|name| !taken.contains(name)).unwrap_or(wanted);
    taken.insert(free.clone());
    free
}
