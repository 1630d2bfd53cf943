//! Jobs of fio in their places as workloads of a plan, in the same words that its own files have.
//! Pure.

use super::JobFileError;
use super::jobs::{Cache, FioJob, JobBlocks, OffsetLaw, WalkOrder};
use super::numbers::Amount;
use super::places::{FilePart, Placements, UNLIKE};
use super::remarks::{TranslationNote, TranslationNotes};
use crate::flags::EngineName;
use crate::plan_file::{PlanFile, Planned};
use crate::workload::{
    Bytes, Count, Direction, Order, Part, Position, ReadShare, Rw, Time, WorkloadFlags,
};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

/// As in plan files: a day of one minute each.
const WORKLOADS_MAX: usize = 1440;
/// What stays of a name, so that two numbers fit behind it.
const NAME_CHARS_MAX: usize = 30;

/// Makes the plan.
pub fn plan(
    jobs: &[FioJob],
    places: &Placements,
    remarks: &mut TranslationNotes,
) -> Result<PlanFile, JobFileError> {
    let mut names = Names::default();
    let mut workloads: Vec<Planned> = Vec::new();
    let groups: Vec<Vec<usize>> = groups(jobs);
    if let Some(job) = jobs
        .iter()
        .find(|job| job.ends_everything && groups.len() > 1)
    {
        return Err(job.spot.error(format!(
            "[{}]: exit_what=all would leave out what comes later: use group",
            job.section
        )));
    }
    for group in groups {
        let settled = settle_caches(&group, jobs, remarks);
        let mut members = members(&group, jobs, places, &settled, remarks)?;
        remark(&members, remarks);
        for index in group
            .iter()
            .filter(|index| places.seats[**index].is_first_to_write)
        {
            if !(workloads.is_empty() && is_first_pass(&members)) {
                remarks.tell(TranslationNote::Overwrites, &jobs[*index].section);
            }
        }
        for (index, (job, copy, flags)) in members.iter_mut().enumerate() {
            flags.together = (index > 0).then_some(true);
            // With several targets a job stands for others of the same work.
            let label = if places.total_bytes.len() > 1 {
                job.rw.as_str()
            } else {
                &job.name
            };
            let name = names.next(label, job.rw, *copy);
            flags.name = Some(said(job, &name)?);
            workloads.push(Planned {
                line: job.spot.line,
                name,
                flags: flags.clone(),
            });
            if workloads.len() > WORKLOADS_MAX {
                return Err(job.spot.error(format!(
                    "with its copies (numjobs) there are more than {WORKLOADS_MAX} workloads; a \
                     plan has at most so many"
                )));
            }
        }
    }
    let mut notes: Vec<&String> = jobs
        .iter()
        .filter_map(|job| job.description.as_ref())
        .collect();
    notes.dedup();
    let note = match notes.as_slice() {
        [note] => Some((*note).clone()),
        _ => None,
    };
    let size = places.scratch_bytes.map(Bytes);
    Ok(PlanFile {
        note,
        seed: None,
        size,
        targets: places.targets.clone(),
        workloads,
    })
}

/// Whether it is a plain walk of one job through all of a new scratch file, which writes that for
/// the first time here as well.
fn is_first_pass(members: &[GroupMember<'_>]) -> bool {
    match members {
        [(job, _, flags)] => {
            let is_plain = job.rw.order == Order::Sequential
                && job.gait == WalkOrder::Plain
                && flags.fsync.is_none()
                && flags.fdatasync.is_none();
            is_plain
                && flags.span.is_none()
                && flags.jobs == Some(Count(1))
                && flags.engine != Some(EngineName::Mmap)
        }
        _ => false,
    }
}

/// What runs at the same time.
fn groups(jobs: &[FioJob]) -> Vec<Vec<usize>> {
    let indices: Vec<usize> = (0..jobs.len()).collect();
    indices
        .chunk_by(|_, next| !jobs[*next].waits)
        .map(<[usize]>::to_vec)
        .collect()
}

/// What those who run together have in common, and how that differs from fio.
fn remark(members: &[GroupMember<'_>], remarks: &mut TranslationNotes) {
    let Some(((first, ..), _)) = members
        .split_first()
        .filter(|(_, others)| !others.is_empty())
    else {
        return;
    };
    let jobs = || members.iter().map(|(job, ..)| *job);
    if jobs().any(|job| job.ramp_ns != first.ramp_ns) {
        jobs().for_each(|job| remarks.tell(TranslationNote::Warmup, &job.section));
    }
    let end_by_themselves =
        jobs().any(|job| !job.extent.is_time_based || job.time_ns != first.time_ns);
    if end_by_themselves && !jobs().any(|job| job.exits_all) {
        jobs().for_each(|job| remarks.tell(TranslationNote::EndTogether, &job.section));
    }
}

/// How each goes about the page cache. A job that only writes and syncs its writes finds nothing in
/// it and leaves nothing there that the disk has not got, so that it may be left alone, as by fio;
/// beside others it has to go their way, as a target has one page cache.
fn settle_caches(group: &[usize], jobs: &[FioJob], remarks: &mut TranslationNotes) -> Vec<Cache> {
    let commits =
        |job: &FioJob| job.rw.direction == Direction::Write && (job.fsync > 0 || job.fdatasync > 0);
    let emptied = |job: &FioJob| job.cache == Cache::Emptied && !commits(job);
    let is_emptied = group.iter().any(|index| emptied(&jobs[*index]));
    let settled = group.iter().map(|index| match &jobs[*index] {
        job if job.cache == Cache::Emptied && !is_emptied => Cache::Kept,
        job => {
            if job.cache == Cache::Emptied {
                remarks.tell(TranslationNote::Emptied, &job.section);
            }
            job.cache
        }
    });
    settled.collect()
}

/// A workload, the job that it comes from, and which copy it is where they are apart.
type GroupMember<'a> = (&'a FioJob, Option<u64>, WorkloadFlags);

/// The workloads of a group: the same on each target, or there is no plan.
fn members<'a>(
    group: &[usize],
    jobs: &'a [FioJob],
    places: &Placements,
    caches: &[Cache],
    remarks: &mut TranslationNotes,
) -> Result<Vec<GroupMember<'a>>, JobFileError> {
    let targets = places.total_bytes.len();
    let mut by_target: Vec<Vec<GroupMember<'a>>> = vec![Vec::new(); targets];
    for (index, cache) in group.iter().zip(caches) {
        let (job, seat) = (&jobs[*index], &places.seats[*index]);
        let made = workloads(
            job,
            &seat.pieces,
            places.total_bytes[seat.target],
            *cache,
            remarks,
        )?;
        by_target[seat.target].extend(made.into_iter().map(|(copy, flags)| (job, copy, flags)));
    }
    let flags = |members: &[GroupMember<'_>]| {
        members
            .iter()
            .map(|(_, _, flags)| flags.clone())
            .collect::<Vec<_>>()
    };
    let first = flags(&by_target[0]);
    if by_target.iter().any(|members| flags(members) != first) {
        let job = &jobs[group[0]];
        return Err(job.spot.error(format!("[{}]: {UNLIKE}", job.section)));
    }
    Ok(by_target.swap_remove(0))
}

/// The workloads of a job: one for all copies where that is the same load, else one for each.
fn workloads(
    job: &FioJob,
    pieces: &[FilePart],
    total_bytes: u64,
    cache: Cache,
    remarks: &mut TranslationNotes,
) -> Result<Vec<(Option<u64>, WorkloadFlags)>, JobFileError> {
    let copies = pieces.len() as u64;
    if matches!(job.gait, WalkOrder::Stride(_)) {
        remarks.tell(TranslationNote::Stride, &job.section);
    }
    if let Some(piece) = united(job, pieces) {
        return Ok(vec![(
            None,
            flags(job, copies, pieces[0], piece, total_bytes, cache)?,
        )]);
    }
    if pieces.iter().all(|piece| *piece == pieces[0]) {
        remarks.tell(TranslationNote::Copies, &job.section);
    }
    let one = |(copy, piece): (usize, &FilePart)| {
        Ok((
            Some(copy as u64 + 1),
            flags(job, 1, *piece, *piece, total_bytes, cache)?,
        ))
    };
    pieces.iter().enumerate().map(one).collect()
}

/// The part that all copies together use, where workers of one workload share it as the copies do:
/// random ones draw from all of it, ordered ones have a part each.
fn united(job: &FioJob, pieces: &[FilePart]) -> Option<FilePart> {
    let first = pieces[0];
    let is_one = pieces.iter().all(|piece| *piece == first);
    if pieces.len() == 1 || (is_one && job.rw.order == Order::Random) {
        return Some(first);
    }
    let follows = |pair: &[FilePart]| {
        pair[1].length == pair[0].length
            && pair[0].start.checked_add(pair[0].length) == Some(pair[1].start)
    };
    // Parts of an ordered walk are cut at blocks of the one size.
    let is_whole = match job.blocks {
        JobBlocks::One(block) => first.length.is_multiple_of(block),
        JobBlocks::Mix(..) => job.rw.order == Order::Random,
    };
    let is_alike = job.rw.order == Order::Sequential || job.law == OffsetLaw::Uniform;
    let length = first.length.checked_mul(pieces.len() as u64)?;
    (is_alike && is_whole && pieces.windows(2).all(follows)).then_some(FilePart { length, ..first })
}

/// What is said of a workload of `copies` copies, each of which has work like that in `own`, all in
/// `piece`.
fn flags(
    job: &FioJob,
    copies: u64,
    own: FilePart,
    piece: FilePart,
    total_bytes: u64,
    cache: Cache,
) -> Result<WorkloadFlags, JobFileError> {
    let (bs, bssplit) = match &job.blocks {
        JobBlocks::One(bytes) => (Some(said(job, &bytes.to_string())?), None),
        JobBlocks::Mix(mix, _) => (None, Some(said(job, mix)?)),
    };
    let extent = job.extent;
    let bytes = work_bytes(job, own)?.saturating_mul(copies);
    let ops = extent.ops.map(|ops| ops.saturating_mul(copies));
    // Of two limits the one that is reached first; with a mix of sizes that may be either.
    let (bytes, ops) = match (&job.blocks, ops, extent.is_time_based) {
        (_, ops, true) => (None, ops),
        (JobBlocks::One(block), Some(ops), false) if ops.saturating_mul(*block) <= bytes => {
            (None, Some(ops))
        }
        (JobBlocks::One(_), _, false) => (Some(bytes), None),
        (JobBlocks::Mix(..), ops, false) => (Some(bytes), ops),
    };
    let is_all = piece.start == 0 && piece.length == total_bytes;
    let span = Part {
        start: Position::Bytes(piece.start),
        end: Position::Bytes(piece.start.saturating_add(piece.length)),
    };
    let is_random = job.rw.order == Order::Random;
    Ok(WorkloadFlags {
        name: None,
        rw: Some(job.rw),
        bs,
        bssplit,
        depth: Some(Count(job.depth)),
        jobs: Some(Count(copies)),
        rwmixread: job
            .read_share
            .map(|share| said::<ReadShare>(job, &share.to_string()))
            .transpose()?,
        rate: job
            .rate
            .map(|rate| said(job, &(rate * copies as f64).to_string()))
            .transpose()?,
        precision: None,
        time: (job.time_ns > 0).then_some(Time(job.time_ns)),
        bytes: bytes.map(Bytes),
        ops: ops.map(Count),
        warmup: Some(Time(job.ramp_ns)),
        span: (!is_all).then_some(span),
        zones: match &job.law {
            OffsetLaw::Zones(zones) if is_random => Some(said(job, zones)?),
            _ => None,
        },
        distribution: match &job.law {
            OffsetLaw::Zipf(theta) if is_random => Some(said(job, &format!("zipf:{theta}"))?),
            _ => None,
        },
        backward: (job.gait == WalkOrder::Backward).then_some(true),
        stride: match job.gait {
            WalkOrder::Stride(bytes) => Some(Bytes(bytes)),
            _ => None,
        },
        fsync: (job.fsync > 0).then_some(Count(job.fsync)),
        fdatasync: (job.fdatasync > 0).then_some(Count(job.fdatasync)),
        // Beside a sync after some writes it adds one at the most, which the plan cannot hold.
        end_fsync: (job.syncs_at_end && job.fsync == 0 && job.fdatasync == 0).then_some(true),
        buffered: (cache == Cache::Emptied).then_some(true),
        cached: (cache == Cache::Kept).then_some(true),
        verify: job.verifies.then_some(true),
        engine: Some(job.engine),
        together: None,
    })
}

/// What a copy does in all, as fio does it (3.42, found by running it): ordered walks and mapped
/// random places end with the last whole block of the file, others go on until it is enough. A walk
/// with gaps that comes to lie across the end of its file, or has met it, ends there; one that
/// comes to lie behind it begins again.
fn work_bytes(job: &FioJob, own: FilePart) -> Result<u64, JobFileError> {
    let (block, loops) = (job.blocks.smallest(), job.extent.loops);
    let enough = |bytes: u64| bytes.div_ceil(block).saturating_mul(block);
    let laps = |lap: u64| lap / block * block.saturating_mul(loops);
    let wrong = |why: &str| Err(job.spot.error(format!("[{}]: {why}", job.section)));
    let io_size = job
        .extent
        .io_size
        .map(|size| enough(size.of(own.asked_bytes)));
    let is_ordered = job.rw.order == Order::Sequential && job.rw.direction != Direction::Mixed;
    let lap = match job.gait {
        WalkOrder::Plain if is_ordered || job.is_mapped => laps(own.asked_bytes),
        WalkOrder::Plain => enough(own.asked_bytes.saturating_mul(loops)),
        WalkOrder::Backward if !own.is_whole_file && job.extent.offset != Amount::Bytes(0) => {
            return wrong(
                "fio ends a walk backwards that has an offset after a request or two: leave the \
                 offset out, or write a plan file with backward and span",
            );
        }
        WalkOrder::Backward => enough(own.asked_bytes).saturating_mul(loops),
        WalkOrder::Stride(step) => {
            let rest = own.asked_bytes % step;
            let is_over = !own.is_whole_file || (rest > 0 && rest <= block);
            if is_over {
                laps((own.asked_bytes.saturating_sub(block) / step + 1) * block)
            } else {
                laps(own.asked_bytes)
            }
        }
    };
    match io_size {
        Some(bytes) if bytes > lap && job.gait != WalkOrder::Plain => wrong(
            "io_size is more than a walk backwards or with gaps does in its file: use loops, or \
             time_based with a runtime",
        ),
        Some(bytes) => Ok(bytes),
        None => Ok(lap),
    }
}

/// Reads a word by the parser of its flag, so that the same bounds hold.
fn said<T: FromStr<Err: Display>>(job: &FioJob, text: &str) -> Result<T, JobFileError> {
    text.parse()
        .map_err(|error: T::Err| job.spot.error(format!("[{}]: {error}", job.section)))
}

/// Names, each given once.
#[derive(Debug, Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn next(&mut self, label: &str, rw: Rw, copy: Option<u64>) -> String {
        let plain = |c: char| {
            if c.is_alphanumeric() || "-_.+".contains(c) {
                c
            } else {
                '-'
            }
        };
        let base: String = label.chars().map(plain).collect();
        let base: String = base
            .trim_matches('-')
            .chars()
            .take(NAME_CHARS_MAX)
            .collect();
        let base = if base.is_empty() {
            rw.as_str().to_owned()
        } else {
            base
        };
        let wanted = copy.map_or_else(|| base.clone(), |copy| format!("{base}-{copy}"));
        let others = (2..).map(|number| format!("{wanted}-{number}"));
        let free = std::iter::once(wanted.clone())
            .chain(others)
            .find(|name| !self.0.contains(name))
            .unwrap_or(wanted);
        self.0.insert(free.clone());
        free
    }
}
