//! Turns placed fio jobs into the workloads of a plan file. Pure.

use super::amounts::work_bytes;
use super::groups::job_groups;
use super::jobs::{Cache, FioJob, copy_numbers};
use super::logged_files::logged_files;
use super::placement::{FilePart, JobPlacement, Placements};
use super::request_order::{CopyNumbers, OrderedCopy};
use super::translation::{Closeness, Translated, Translation};
use crate::plan_file::{PlanFile, PlannedWorkload};
use crate::workload::{
    BlockSize, Bytes, Count, Position, SpanBounds, Time, WORKLOADS_MAX, WorkloadFlags,
};
use diskproof_compat::{JobWorkload, WorkloadFile};
use diskproof_engine::pattern::fio::FioAmount;
use diskproof_model::figure::names_part_of_survey;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind};
use diskproof_model::rw::Rw;
use diskproof_model::shape::{BlockPattern, LoadShape, PatternFiles};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

/// Longer names are cut, so that two numbers fit behind them.
const NAME_CHARS_MAX: usize = 30;
/// The most bytes of a request of a pass that reads a file before its job. Chosen, not measured.
const PRE_READ_BYTES_MAX: u64 = 1 << 20;
/// The least bytes of such a request: a page.
const PRE_READ_BYTES_MIN: u64 = 4096;
/// Such a pass leaves out less than this part of the file, where that has no whole blocks.
const PRE_READ_PARTS: u64 = 256;

/// A plan, and the workloads in it that carry out each job.
pub(crate) struct PlannedJobs {
    /// The plan of all jobs.
    pub plan: PlanFile,
    /// The workloads of each job, in the order of the jobs.
    pub workloads: Vec<Vec<JobWorkload>>,
}

/// Makes the plan of placed jobs. Fails where jobs that run together cannot do so here.
pub(crate) fn plan_jobs(
    jobs: &[FioJob],
    placements: &Placements,
    translation: &Translation<'_>,
) -> Translated<PlannedJobs> {
    let mut list = WorkloadList {
        names: BTreeSet::new(),
        planned: Vec::new(),
        by_job: vec![Vec::new(); jobs.len()],
    };
    for group in job_groups(jobs)? {
        let mut members = group_members(&group, jobs, placements, translation)?;
        if translation.is_as_fio() {
            share_verified_blocks(&mut members);
        }
        settle_warmups(&mut members, translation);
        check_steady(&members)?;
        // The first pass over a new file finds its blocks new, as in fio.
        let writes_new_file = list.planned.is_empty() && is_first_pass(&members);
        if !writes_new_file {
            note_overwrites(&group, jobs, placements, translation);
        }
        list.add_group(members)?;
    }
    Ok(PlannedJobs {
        plan: PlanFile {
            note: common_description(jobs),
            seed: translation
                .is_as_fio()
                .then_some(translation.overrides.seed),
            size: placements.scratch_bytes().map(Bytes),
            targets: placements.targets.clone(),
            scratch_files: placements.named_files(),
            workloads: list.planned,
            ..PlanFile::default()
        },
        workloads: list.by_job,
    })
}

/// The workloads of the groups so far.
struct WorkloadList {
    /// The names that are taken.
    names: BTreeSet<String>,
    planned: Vec<PlannedWorkload>,
    /// For each job, the workloads that carry it out.
    by_job: Vec<Vec<JobWorkload>>,
}

impl WorkloadList {
    /// Adds jobs that run together.
    fn add_group(&mut self, members: Vec<GroupMember<'_>>) -> Translated<()> {
        let exits_all = members.iter().any(|member| member.job.turn.exits_all);
        let ends_alone = members.len() > 1 && !exits_all;
        let ends_group = exits_all && have_several_targets(&members);
        for member in &members {
            if let Some(pass) = member.pre_read() {
                self.add_pre_read(member.job, pass)?;
            }
        }
        for (index, member) in members.into_iter().enumerate() {
            let mut flags = member.flags;
            if index > 0 {
                flags.together = Some(true);
            }
            // As in fio, each ends by itself.
            if ends_alone {
                flags.ends_alone = Some(true);
            }
            flags.shape.ends.ends_group = ends_group;
            // With several targets, one workload stands for several jobs.
            let label = if member.carried.len() > 1 {
                member.job.word()
            } else {
                &member.job.name
            };
            let name = self.unused_name(label, member.job.word(), member.copy);
            flags.name = Some(parsed(member.job, &name)?);
            for carried in member.carried {
                self.by_job[carried.job].push(JobWorkload {
                    name: name.clone(),
                    target: carried.target,
                    files: carried.files,
                });
            }
            self.planned.push(PlannedWorkload {
                line: member.job.source.line,
                name,
                flags,
            });
            if self.planned.len() > WORKLOADS_MAX {
                return Err(member.job.source.error(format!(
                    "the copies (numjobs) make more than {WORKLOADS_MAX} workloads, the limit of a \
                     plan"
                )));
            }
        }
        Ok(())
    }

    /// Adds the pass that reads a job's part of the file into the page cache. Its figures are not
    /// those of the job.
    fn add_pre_read(&mut self, job: &FioJob, mut flags: WorkloadFlags) -> Translated<()> {
        let name = self.unused_name("pre-read", "pre-read", None);
        flags.name = Some(parsed(job, &name)?);
        self.planned.push(PlannedWorkload {
            line: job.source.line,
            name,
            flags,
        });
        Ok(())
    }

    /// A name that no workload has yet: the label with the number of the copy, or the word where
    /// the label has no letter. A label that thresholds take for a part of a survey gets one word
    /// more.
    fn unused_name(&mut self, label: &str, word: &str, copy: Option<u64>) -> String {
        let mut base = plain_label(label);
        if base.is_empty() {
            base = word.to_owned();
        }
        if names_part_of_survey(&base) {
            base.push_str("-job");
        }
        let wanted = match copy {
            Some(copy) => format!("{base}-{copy}"),
            None => base,
        };
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}-{number}");
            number += 1;
        }
        name
    }
}

/// True if jobs that run together have more than one target. Those of one target end together
/// without a further word.
fn have_several_targets(members: &[GroupMember<'_>]) -> bool {
    let targets: BTreeSet<usize> = members
        .iter()
        .flat_map(|member| &member.carried)
        .map(|carried| carried.target)
        .collect();
    targets.len() > 1
}

/// The beginning of a label, as a name of a workload may have it.
fn plain_label(label: &str) -> String {
    label
        .replace(|c: char| !is_label_char(c), "-")
        .trim_matches('-')
        .chars()
        .take(NAME_CHARS_MAX)
        .collect()
}

fn is_label_char(c: char) -> bool {
    c.is_alphanumeric() || "-_.+".contains(c)
}

/// The description, where all jobs with one have the same.
fn common_description(jobs: &[FioJob]) -> Option<String> {
    let mut common: Option<&String> = None;
    for job in jobs {
        let Some(description) = &job.shown.description else {
            continue;
        };
        if common.is_some_and(|earlier| earlier != description) {
            return None;
        }
        common = Some(description);
    }
    common.cloned()
}

/// Refuses jobs whose sum would have to be steady.
fn check_steady(members: &[GroupMember<'_>]) -> Translated<()> {
    if members.len() < 2 {
        return Ok(());
    }
    for member in members {
        if member.job.flags.shape.ends.steady.is_some() && member.job.shown.reports_together {
            return Err(member.job.error(
                "steadystate with group_reporting applies to the sum of several jobs, which is \
                 not supported; remove one of the two",
            ));
        }
    }
    Ok(())
}

/// Lets jobs and copies that run together verify the same blocks, as in fio: none knows then whose
/// blocks it finds. With writers that sign nothing, the group is refused.
fn share_verified_blocks(members: &mut [GroupMember<'_>]) {
    let verified: Vec<WorkloadFlags> = members
        .iter()
        .map(|member| &member.flags)
        .filter(|flags| flags.verify == Some(true) && flags.writes())
        .cloned()
        .collect();
    for member in members {
        let own = &mut member.flags;
        if own.verify != Some(true) || !own.writes() {
            continue;
        }
        // One of them is itself.
        let users = verified.iter().filter(|other| shares_blocks(own, other));
        own.shape.content.shares_verified = users.count() > 1;
    }
}

/// True if two workloads use some block of one target.
fn shares_blocks(one: &WorkloadFlags, other: &WorkloadFlags) -> bool {
    if one.target.is_some() && other.target.is_some() && one.target != other.target {
        return false;
    }
    let (one, other) = (bytes_of_span(one), bytes_of_span(other));
    one.start < other.end && other.start < one.end
}

/// The bytes of the target that a workload uses.
fn bytes_of_span(flags: &WorkloadFlags) -> Range<u64> {
    match flags.span {
        Some(SpanBounds {
            start: Position::Bytes(start),
            end: Position::Bytes(end),
        }) => start..end,
        _ => 0..u64::MAX,
    }
}

/// True if the group is one job that fills a new scratch file from its start.
fn is_first_pass(members: &[GroupMember<'_>]) -> bool {
    let [member] = members else {
        return false;
    };
    let job = member.job;
    let flags = &member.flags;
    !job.is_random()
        && !job.rw().drops_blocks()
        && job.engine() != EngineKind::Mmap
        && flags.stride.is_none()
        && flags.backward.is_none()
        && flags.fsync.is_none()
        && flags.fdatasync.is_none()
        && flags.shape.is_plain()
        && flags.span.is_none()
        && flags.jobs == Some(Count(1))
}

/// Notes the jobs that overwrite blocks which are new in fio.
fn note_overwrites(
    group: &[usize],
    jobs: &[FioJob],
    placements: &Placements,
    translation: &Translation<'_>,
) {
    for index in group {
        if placements.by_job[*index].is_first_to_write {
            translation.note(
                "the job overwrites blocks, as with overwrite=1; without it fio writes to a new \
                 file, so a sync also has to record new blocks",
                &jobs[*index].section,
            );
        }
    }
}

/// Gives each job of a group its own warm-up, as in fio. In a plan they share the longest one,
/// which is noted.
fn settle_warmups(members: &mut [GroupMember<'_>], translation: &Translation<'_>) {
    let Some(first) = members.first() else {
        return;
    };
    let first_warmup = first.job.flags.warmup;
    if members
        .iter()
        .all(|member| member.job.flags.warmup == first_warmup)
    {
        return;
    }
    for member in members {
        if translation.is_as_fio() {
            member.flags.shape.starts.own_warmup = true;
        } else {
            translation.note(
                "concurrent jobs share the longest of their warm-ups",
                &member.job.section,
            );
        }
    }
}

/// The use of the page cache by each job of a group, where it does not run as in fio. A job that
/// only writes and syncs its writes does not read the cache and leaves nothing unwritten in it. So
/// the cache is not emptied for it, as in fio, unless another job of the group needs that: a target
/// has one page cache.
fn settle_caches(group: &[usize], jobs: &[FioJob], translation: &Translation<'_>) -> Vec<Cache> {
    let is_emptied = group.iter().any(|index| needs_empty_cache(&jobs[*index]));
    let mut caches = Vec::new();
    for index in group {
        let job = &jobs[*index];
        if translation.is_as_fio() || job.cache != Cache::Emptied {
            caches.push(job.cache);
        } else if is_emptied {
            translation.note(
                "direct=0 (fio's default): the job empties and writes back the page cache while \
                 it runs, so the disk answers instead of memory; invalidate=0 does not empty it",
                &job.section,
            );
            caches.push(Cache::Emptied);
        } else {
            caches.push(Cache::Kept);
        }
    }
    caches
}

/// True if a job would find blocks in the page cache, or leave some unwritten in it.
fn needs_empty_cache(job: &FioJob) -> bool {
    let syncs = job.flags.fsync.is_some() || job.flags.fdatasync.is_some();
    let only_commits = job.rw().is_only(OpKind::Write) && syncs;
    // A trim drops the pages of its block itself.
    job.cache == Cache::Emptied && !only_commits && !job.rw().leaves_no_content()
}

/// A workload of a group.
struct GroupMember<'a> {
    job: &'a FioJob,
    /// The number of the copy, where each copy is a workload.
    copy: Option<u64>,
    flags: WorkloadFlags,
    /// The jobs that it carries out: one on each target.
    carried: Vec<Carried>,
    /// The bytes of its span.
    span_bytes: u64,
}

impl GroupMember<'_> {
    /// The pass that reads its span before it; `None` without one.
    fn pre_read(&self) -> Option<WorkloadFlags> {
        if !self.job.pre_reads {
            return None;
        }
        let block_bytes = pre_read_block(self.span_bytes);
        Some(WorkloadFlags {
            rw: Some(Rw::READ),
            bs: Some(BlockSize(block_bytes as u32)),
            depth: Some(Count(1)),
            jobs: Some(Count(1)),
            engine: Some(EngineChoice::Fixed(EngineKind::Sync)),
            bytes: Some(Bytes(self.span_bytes / block_bytes * block_bytes)),
            warmup: Some(Time(0)),
            cached: Some(true),
            span: self.flags.span,
            target: self.flags.target,
            ..WorkloadFlags::default()
        })
    }
}

/// Bytes of the requests that read a span once. A file may have any number of bytes, and nobody
/// waits for reads of a few bytes each.
fn pre_read_block(span_bytes: u64) -> u64 {
    let span_bytes = span_bytes.max(1);
    let divisor: u64 = 1 << span_bytes.trailing_zeros().min(20);
    let part_bytes = span_bytes / PRE_READ_PARTS;
    let wanted = part_bytes.clamp(PRE_READ_BYTES_MIN, PRE_READ_BYTES_MAX);
    // A power of two.
    let rounded: u64 = 1 << wanted.ilog2();
    divisor.max(rounded).min(span_bytes)
}

/// A job that a workload carries out.
struct Carried {
    target: usize,
    /// The index of the job among all.
    job: usize,
    /// Its files in the target, where it logs its requests.
    files: Vec<WorkloadFile>,
}

/// The workloads of a group. Where they are the same on each target, each runs on all of them.
fn group_members<'a>(
    group: &[usize],
    jobs: &'a [FioJob],
    placements: &Placements,
    translation: &Translation<'_>,
) -> Translated<Vec<GroupMember<'a>>> {
    let caches = settle_caches(group, jobs, translation);
    let mut by_target: Vec<Vec<GroupMember<'a>>> = Vec::new();
    by_target.resize_with(placements.total_bytes.len(), Vec::new);
    for (member, index) in group.iter().enumerate() {
        let placement = &placements.by_job[*index];
        let placed = PlacedJob {
            job: &jobs[*index],
            index: *index,
            placement,
            total_bytes: placements.total_bytes[placement.target],
            cache: caches[member],
            closeness: translation.overrides.closeness,
            run_seed: translation.overrides.seed,
            mean_bytes: OnceCell::new(),
        };
        by_target[placement.target].extend(placed.workloads(translation)?);
    }
    let loads: Vec<Vec<&WorkloadFlags>> = by_target
        .iter()
        .map(|members| members.iter().map(|member| &member.flags).collect())
        .collect();
    if loads.iter().all(|load| *load == loads[0]) {
        Ok(on_all_targets(by_target))
    } else {
        Ok(on_one_target_each(by_target))
    }
}

/// The workloads of all targets, each of which runs on its own target only.
fn on_one_target_each(by_target: Vec<Vec<GroupMember<'_>>>) -> Vec<GroupMember<'_>> {
    let mut workloads = Vec::new();
    for (target, members) in by_target.into_iter().enumerate() {
        for mut member in members {
            member.flags.target = Some(target);
            workloads.push(member);
        }
    }
    workloads
}

/// The workloads of the first target, each of which runs on all targets.
fn on_all_targets(by_target: Vec<Vec<GroupMember<'_>>>) -> Vec<GroupMember<'_>> {
    let mut targets = by_target.into_iter();
    let mut workloads = targets.next().unwrap_or_default();
    for members in targets {
        for (index, member) in members.into_iter().enumerate() {
            workloads[index].carried.extend(member.carried);
        }
    }
    workloads
}

/// A copy of a job.
#[derive(Clone, Copy)]
struct JobCopy {
    /// Its place among those that start and are shown, from 0.
    place: u64,
    /// Its number, on which its place in the file and the name of its own file depend, from 0.
    number: u64,
}

impl JobCopy {
    const FIRST: Self = Self {
        place: 0,
        number: 0,
    };
}

/// A job with its place and its use of the page cache, which decide about its workloads.
struct PlacedJob<'a, 'p> {
    job: &'a FioJob,
    /// The index of the job among all.
    index: usize,
    placement: &'p JobPlacement,
    /// The bytes of its target.
    total_bytes: u64,
    cache: Cache,
    closeness: Closeness,
    /// The seed of the run.
    run_seed: u64,
    /// The mean size of the requests of a copy whose time is long; `None` where it has none.
    mean_bytes: OnceCell<Option<f64>>,
}

impl<'a> PlacedJob<'a, '_> {
    /// The workloads of the job: one for all copies where the load stays the same, else one per
    /// copy.
    fn workloads(&self, translation: &Translation<'_>) -> Translated<Vec<GroupMember<'a>>> {
        self.note_passes(translation);
        let parts = &self.placement.parts;
        // The printer of fio shows each copy, unless the job wants one figure. Each has its logs.
        let has_one_figure = self.job.shown.reports_together && !self.job.shown.logs_rates;
        let may_unite = self.closeness == Closeness::Disk || has_one_figure || parts.len() == 1;
        if may_unite && let Some(part) = self.united_part() {
            return Ok(vec![self.united_member(part, translation)?]);
        }
        if self.closeness == Closeness::Disk && parts.iter().all(|part| *part == parts[0]) {
            translation.note(
                "the copies of a job (numjobs) visit the same blocks, as in fio; each copy becomes \
                 a workload",
                &self.job.section,
            );
        }
        let mut members = Vec::new();
        for copy in self.copies() {
            members.push(self.member_of_copy(copy, translation)?);
        }
        Ok(members)
    }

    /// The workload that all copies are together, on the part `united`.
    fn united_member(
        &self,
        united: FilePart,
        translation: &Translation<'_>,
    ) -> Translated<GroupMember<'a>> {
        let parts = &self.placement.parts;
        let mut flags = self.flags(parts.len() as u64, parts[0], united)?;
        self.set_order(&mut flags, JobCopy::FIRST, united)?;
        let copies: Vec<(u64, FilePart)> = (0..).zip(parts.iter().copied()).collect();
        let files = logged_files(self.job, &copies, &flags, translation)?;
        Ok(self.member(None, flags, files))
    }

    /// The workload that is a copy of its own.
    fn member_of_copy(
        &self,
        copy: JobCopy,
        translation: &Translation<'_>,
    ) -> Translated<GroupMember<'a>> {
        let part = self.placement.parts[copy.number as usize];
        let mut flags = self.flags(1, part, part)?;
        self.set_order(&mut flags, copy, part)?;
        let files = logged_files(self.job, &[(copy.number, part)], &flags, translation)?;
        Ok(self.member(Some(copy.place), flags, files))
    }

    /// The copies of the job in the order in which they start and are shown.
    fn copies(&self) -> Vec<JobCopy> {
        let copies = self.job.copies.count;
        let numbers: Vec<u64> = match self.closeness {
            Closeness::Fio => copy_numbers(copies).collect(),
            Closeness::Disk => (0..copies).collect(),
        };
        (0..)
            .zip(numbers)
            .map(|(place, number)| JobCopy { place, number })
            .collect()
    }

    /// Notes differences in the blocks that a pass visits.
    fn note_passes(&self, translation: &Translation<'_>) {
        if self.job.flags.stride.is_some() {
            translation.note(
                "with gaps, each pass starts one block later; fio visits the same blocks again",
                &self.job.section,
            );
        }
        if self.job.flags.shape.order.each_block_once
            && self.job.one_block().is_none()
            && self.closeness == Closeness::Disk
        {
            translation.note(
                "with a mix of sizes, random offsets repeat, as with norandommap. No block is \
                 shortened, so the mix is exactly that of bssplit",
                &self.job.section,
            );
        }
    }

    /// The workload of this copy, from 0, or of all of them.
    fn member(
        &self,
        copy: Option<u64>,
        mut flags: WorkloadFlags,
        files: Vec<WorkloadFile>,
    ) -> GroupMember<'a> {
        if self.job.copies.split_cpus {
            pin_to_own_cpu(&mut flags.shape, self.job.copies.first + copy.unwrap_or(0));
        }
        let span_bytes = match flags.span {
            Some(SpanBounds {
                start: Position::Bytes(start),
                end: Position::Bytes(end),
            }) => end.saturating_sub(start),
            _ => self.total_bytes,
        };
        GroupMember {
            job: self.job,
            copy: copy.map(|copy| copy + 1),
            flags,
            span_bytes,
            carried: vec![Carried {
                target: self.placement.target,
                job: self.index,
                files,
            }],
        }
    }

    /// The part that all copies use together, if the workers of one workload use it in the same
    /// way: random workers draw from the whole part, sequential workers divide it.
    fn united_part(&self) -> Option<FilePart> {
        let job = self.job;
        let parts = &self.placement.parts;
        let first = parts[0];
        if parts.len() == 1 {
            return Some(first);
        }
        let shape = &job.flags.shape;
        // Each copy has the random numbers of its own.
        let has_own_order = shape.order.zone_stride.is_some() || shape.order.fio.is_some();
        if shape.ends.steady.is_some() || has_own_order || job.copies.split_cpus {
            return None;
        }
        if job.is_random() && parts.iter().all(|part| *part == first) {
            return Some(first);
        }
        // Where the page cache is emptied after each lap, a lap of a worker must be that of a copy.
        let laps_count = self.closeness == Closeness::Fio && job.cache == Cache::Emptied;
        if job.is_random() && (!job.is_uniform() || (laps_count && shape.order.each_block_once)) {
            return None;
        }
        // Sequential workers divide a span at multiples of the block size.
        let has_whole_blocks = match job.flags.bs {
            Some(block) => first.length.is_multiple_of(u64::from(block.0)),
            None => job.is_random(),
        };
        if !has_whole_blocks || !parts.windows(2).all(|pair| pair[1].follows(pair[0])) {
            return None;
        }
        Some(FilePart {
            length: first.length.checked_mul(parts.len() as u64)?,
            ..first
        })
    }

    /// The keys of a workload of this many copies in `part`. Each copy has the amount of I/O of
    /// `copy_part`.
    fn flags(&self, copies: u64, copy_part: FilePart, part: FilePart) -> Translated<WorkloadFlags> {
        let job = self.job;
        let limits = self.limits(copies, copy_part)?;
        let mut flags = job.flags.clone();
        if job.rw().leaves_no_content() {
            fit_trims(&mut flags, part.length);
        }
        // The one read of a job that only creates its files goes to any of them.
        if job.file_set.alternate && !job.file_set.only_creates {
            take_parts_in_turn(&mut flags, job, part);
        }
        flags.jobs = Some(Count(copies));
        if let Some(rate) = job.flags.rate {
            flags.rate = Some(parsed(job, &(rate.0 * copies as f64).to_string())?);
        }
        if let Some(rate) = &mut flags.shape.starts.kind_rate {
            rate.per_second *= copies as f64;
        }
        flags.bytes = limits.bytes.map(Bytes);
        flags.ops = limits.ops.map(Count);
        if part.start != 0 || part.length != self.total_bytes {
            flags.span = Some(SpanBounds {
                start: Position::Bytes(part.start),
                end: Position::Bytes(part.start.saturating_add(part.length)),
            });
        }
        self.set_cache(&mut flags);
        self.set_shape(&mut flags.shape, copy_part)?;
        if job.file_set.are_kept
            && let Some(pattern) = &mut flags.shape.content.known
        {
            pattern.files = pattern_files(pattern, job, self.total_bytes);
        }
        Ok(flags)
    }

    /// Sets the order of fio for a copy of the job, and ends it where fio does.
    fn set_order(
        &self,
        flags: &mut WorkloadFlags,
        copy: JobCopy,
        part: FilePart,
    ) -> Translated<()> {
        let job = self.job;
        let numbers = CopyNumbers {
            among_all: job.copies.first + copy.place,
            in_section: job.copies.first_in_section + copy.number,
            run_seed: self.run_seed,
        };
        let is_device = self.placement.is_device;
        let Some(ordered) = OrderedCopy::new(job, numbers, part, is_device) else {
            flags.shape.order.fio = None;
            return Ok(());
        };
        let ordered = ordered.map_err(|fault| {
            job.error(format!(
                "the order of its requests, which is fio's, has {fault}; use a smaller size, \
                 offset or nrfiles, or a larger bs"
            ))
        })?;
        let end = ordered.span_end.min(self.total_bytes);
        flags.span = None;
        if ordered.span_start != 0 || end != self.total_bytes {
            flags.span = Some(SpanBounds {
                start: Position::Bytes(ordered.span_start),
                end: Position::Bytes(end),
            });
        }
        if !ordered.moves_something {
            return Err(job.error_without_options(
                "fio moves nothing in this job: its part of each file has no block; use a larger \
                 size, fewer files, or a smaller bs",
            ));
        }
        if let Some(byte_rate) = job.requests.byte_rate.filter(|rate| *rate > 0.0) {
            let mean_bytes = ordered.mean_bytes(job, byte_rate, self.run_seed, &self.mean_bytes);
            flags.rate = Some(parsed(job, &(byte_rate / mean_bytes).to_string())?);
        }
        if let Some(amount) = ordered.amount {
            set_amount(flags, &amount, job);
        }
        flags.shape.order.fio = Some(Box::new(ordered.order));
        Ok(())
    }

    /// The end of a workload of this many copies: bytes, operations, or neither.
    fn limits(&self, copies: u64, copy_part: FilePart) -> Translated<WorkLimits> {
        let job = self.job;
        let bytes = work_bytes(job, copy_part)?.saturating_mul(copies);
        let ops = job.extent.ops.map(|ops| ops.saturating_mul(copies));
        if job.flags.latency_target.is_some() {
            return Ok(WorkLimits::default());
        }
        if job.extent.is_time_based {
            return Ok(WorkLimits { bytes: None, ops });
        }
        // Of two limits, the one that is reached first. With a mix of sizes that may be either.
        let Some(block) = job.one_block() else {
            let bytes = Some(self.bytes_of_mix(bytes));
            return Ok(WorkLimits { bytes, ops });
        };
        match ops {
            Some(count) if count.saturating_mul(block) <= bytes => {
                Ok(WorkLimits { bytes: None, ops })
            }
            _ => Ok(WorkLimits {
                bytes: Some(bytes),
                ops: None,
            }),
        }
    }

    /// The bytes of a workload of several sizes, so that it moves as much as in fio, where a job
    /// ends with the request that reaches them. A workload starts no request that could exceed its
    /// bytes.
    fn bytes_of_mix(&self, bytes: u64) -> u64 {
        match self.closeness {
            Closeness::Disk => bytes,
            Closeness::Fio => {
                bytes.saturating_add(self.job.largest_block() - self.job.smallest_block())
            }
        }
    }

    /// Sets the use of the page cache.
    fn set_cache(&self, flags: &mut WorkloadFlags) {
        match (self.cache, self.closeness) {
            (Cache::Direct, _) => {}
            (Cache::Kept, _) => flags.cached = Some(true),
            (Cache::Emptied, Closeness::Disk) => flags.buffered = Some(true),
            (Cache::Emptied, Closeness::Fio) => {
                flags.cached = Some(true);
                flags.drops_cache_first = Some(true);
            }
        }
    }

    /// Leaves out what only fio's own figures need: ordinary pages, and the map of visited blocks,
    /// which shortens blocks with a mix of sizes.
    fn set_shape(&self, shape: &mut LoadShape, copy_part: FilePart) -> Translated<()> {
        match self.closeness {
            Closeness::Disk => {
                shape.threads.ordinary_pages = false;
                shape.order.each_block_once &= self.job.one_block().is_some();
            }
            Closeness::Fio => {
                shape.content.verified_times = verified_times(self.job, copy_part)?;
            }
        }
        Ok(())
    }
}

/// The files from whose starts the offsets in a pattern count; `None` of one without offsets.
fn pattern_files(pattern: &BlockPattern, job: &FioJob, target_bytes: u64) -> Option<PatternFiles> {
    if pattern.offset_places.is_empty() {
        return None;
    }
    Some(PatternFiles {
        part_bytes: target_bytes / job.file_set.count.max(1),
        part_start: job.start_in_each_file(),
    })
}

/// The amount of work that ends a workload; time may end it earlier.
#[derive(Default)]
struct WorkLimits {
    bytes: Option<u64>,
    ops: Option<u64>,
}

/// Ends a copy of the job after what fio's order has counted for it.
fn set_amount(flags: &mut WorkloadFlags, amount: &FioAmount, job: &FioJob) {
    // The operations end it; the bytes say how much that is, where they are a block at least.
    let moved_bytes = amount.moved().bytes;
    flags.bytes = if moved_bytes >= job.largest_block() {
        Some(Bytes(moved_bytes))
    } else {
        None
    };
    flags.ops = Some(Count(amount.steps()));
    let content = &mut flags.shape.content;
    content.verified_times = None;
    if job.reads_back() && amount.laps > 1 {
        content.verified_reads = Some(amount.read_back.ops);
    }
}

/// Gives a copy the processor that is its own, by its number among all copies.
fn pin_to_own_cpu(shape: &mut LoadShape, copy: u64) {
    if let Some(scheduling) = &mut shape.threads.scheduling
        && !scheduling.cpus.is_empty()
    {
        let turn = copy as usize % scheduling.cpus.len();
        scheduling.cpus = vec![scheduling.cpus[turn]];
    }
}

/// The number of times that fio reads back what a job writes: after each of its laps. `None` where
/// that is once or never.
fn verified_times(job: &FioJob, copy_part: FilePart) -> Translated<Option<u32>> {
    if !job.reads_back() || job.extent.is_time_based {
        return Ok(None);
    }
    let laps = match job.extent.io_size {
        None => job.extent.loops,
        Some(_) => {
            let lap = job.whole_blocks(copy_part.job_bytes).min(copy_part.length);
            work_bytes(job, copy_part)? / lap.max(1)
        }
    };
    if laps > 1 {
        Ok(Some(u32::try_from(laps).unwrap_or(u32::MAX)))
    } else {
        Ok(None)
    }
}

/// Lets requests go to the parts of a file in turn that stand for several files.
fn take_parts_in_turn(flags: &mut WorkloadFlags, job: &FioJob, part: FilePart) {
    let block = job.smallest_block();
    let each = part.length / job.file_set.count / block * block;
    if each > block {
        flags.stride = Some(Bytes(each));
    }
}

/// Leaves out sizes of trims for which there is no room at random offsets; fio draws another one
/// then.
fn fit_trims(flags: &mut WorkloadFlags, span_bytes: u64) {
    if let Some(split) = &mut flags.bssplit {
        let mut fitting = split.0.clone();
        fitting.retain(|share| u64::from(share.block_bytes) <= span_bytes / 2);
        if !fitting.is_empty() {
            split.0 = fitting;
        }
    }
}

/// Parses a value with the parser of its flag, so that the same limits apply.
fn parsed<T: FromStr<Err: Display>>(job: &FioJob, text: &str) -> Translated<T> {
    text.parse().map_err(|error: T::Err| job.error(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_any_size_is_read_before_in_large_blocks() {
        let gib = 1 << 30;
        for (span_bytes, block_bytes) in [
            (10 * gib + 1, 1 << 20),
            (gib, 1 << 20),
            (1 << 20, 1 << 20),
            ((2 << 20) + 512, 8192),
            (65_537, 4096),
            (100, 100),
        ] {
            assert_eq!(pre_read_block(span_bytes), block_bytes, "{span_bytes}");
        }
    }
}
