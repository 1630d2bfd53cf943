//! A plan in words: the targets, the longest time, the bytes that the run may write, then its
//! workloads. `--plan` prints it whole; a run prints its budget before the first write.

use super::files::{files_text, planned_caches};
use super::run::{request_text, skipped_facts};
use super::{accept, inserts, layers, load, sustain};
use crate::labels;
use crate::text::{clean, glue, joined, list, wrap};
use diskproof_model::block::{Align, Block, Column, Place, Table, TableRow, Tone};
use diskproof_model::budget::{Budget, TargetUse};
use diskproof_model::files::{FILES_DIRECTORY, FileStep};
use diskproof_model::group::Group;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{
    ByteLimit, CachePolicy, Decide, Ping, Plan, Span, Start, Task, Workload,
};
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::timetable::Slot;
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent, format_rate};

/// In place of a limit that is not set.
const NO_LIMIT: &str = "no limit";
/// Stands before a workload that runs at the same time as the previous one.
const TOGETHER_PREFIX: &str = "+ ";
/// Stands between workloads of one slot.
const SLOT_SEPARATOR: &str = " + ";
/// In place of the time of a plan that nothing limits.
const UNLIMITED: &str = "unlimited time";

/// Describes a plan: its targets and budget, the skipped workloads, then the workloads in order.
/// For a plan that is measured together with other hosts, also the times of its slots.
pub(crate) fn blocks(plan: &Plan, identities: &[TargetIdentity]) -> Vec<Block> {
    let budget = plan.budget(identities);
    let title = format!(
        "plan: {} · seed {} · nothing was written",
        request_text(plan),
        plan.seed
    );
    let mut facts = Vec::new();
    for identity in identities {
        facts.push(("target", target_text(identity)));
    }
    facts.push(("budget", budget_text(plan, &budget, identities)));
    for text in space_texts(&budget, identities) {
        facts.push(("space", text));
    }
    for task in &plan.tasks {
        facts.extend(task_facts(task));
    }
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend(Block::facts(facts));
    blocks.extend(skipped_facts(plan));
    if !plan.workloads().is_empty() {
        blocks.push(Block::Table(workloads_table(plan)));
        blocks.push(limits_legend(plan));
    }
    if let Some(slots) = plan.timetable() {
        blocks.push(Block::Table(slots_table(plan, &slots)));
        blocks.push(slots_legend(&slots));
    }
    blocks
}

/// A table with a line for each slot: when it begins after the first one, what it measures, and how
/// long.
fn slots_table(plan: &Plan, slots: &[Slot]) -> Table {
    let columns = vec![
        Column::number("slot", Place::Always),
        Column::number("after the first", Place::Always),
        Column::new("workload", Align::Left),
        Column::number("warm-up", Place::Always),
        Column::number("measured", Place::Always),
    ];
    let mut rows = Vec::new();
    for slot in slots {
        rows.push(TableRow::from(vec![
            slot.number.to_string(),
            format_duration(slot.start_ns),
            plan.workloads_in(slot).join(SLOT_SEPARATOR),
            format_duration(slot.warmup_ns),
            format_duration(slot.time_ns),
        ]));
    }
    Table::new("Timetable", columns, rows)
}

fn slots_legend(slots: &[Slot]) -> Block {
    let end_ns = slots.last().map_or(0, Slot::end_ns);
    let text = format!(
        "timetable: {} in {}, the same on all hosts; a host that is not ready for a slot skips it",
        counted(slots.len() as u64, "slot"),
        format_duration(end_ns)
    );
    Block::text(Tone::Dim, text)
}

/// Facts on what a task does, without its workloads, which have a table.
fn task_facts(task: &Task) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match task {
        Task::Survey(survey) => facts.push(("survey", survey_text(survey))),
        Task::Accept(plan) => facts.push(("test", accept::plan_text(plan))),
        Task::Ping(_) => {}
        Task::Workloads(workloads) => {
            if let Decide::Rate(search) = &workloads.decide {
                facts.push((
                    "search",
                    load::planned_text(search, workloads.searched().count()),
                ));
            }
            if let Some(plan) = workloads.layers() {
                facts.push(("layers", layers::planned_text(plan)));
                facts.extend(layers::unread_facts(plan));
            }
            if let Decide::Until(plan) = &workloads.decide {
                facts.push(("sustain", sustain::planned_text(plan)));
            }
        }
        Task::Inserts(task) => {
            facts.push(("server", inserts::plan_text(&task.server)));
            if let Some(trial) = &task.server.trial {
                facts.push(("server", inserts::trial_plan_text(trial)));
            }
        }
        Task::Files(files) => {
            let steps: Vec<String> = files.steps().map(FileStep::name).collect();
            facts.push(("files", files_text(files)));
            facts.push(("steps", list(steps)));
            facts.push(("caches", planned_caches(files.caches).to_owned()));
        }
    }
    facts
}

/// `over 1 TiB; curve of 200 points, at least 1 MiB read at each; 500 random accesses …`: the steps
/// of a survey.
fn survey_text(survey: &Survey) -> String {
    let mut steps = Vec::new();
    steps.extend(span_text(&survey.span));
    if let Some(curve) = &survey.curve {
        steps.push(curve_text(curve, survey.operation));
    }
    if let Some(burst) = &survey.burst {
        steps.push(format!("burst of {}", format_bytes(burst.bytes)));
    }
    if let Some(access) = &survey.access {
        steps.push(format!(
            "{} random accesses of {} B, {} of each other pattern",
            access.random_reads, access.block_bytes, access.pattern_reads
        ));
    }
    if let Some(scan) = &survey.scan {
        steps.push(match scan.resume_bytes {
            0 => "scan of every block".to_owned(),
            offset => format!("scan of every block from byte {offset}"),
        });
    }
    steps.join("; ")
}

fn curve_text(curve: &CurvePlan, operation: OpKind) -> String {
    let done = operation.done();
    let each = match curve.coverage {
        Coverage::Full => format!("all of it {done}"),
        // A sample is larger where the target answers faster than the clock can measure.
        Coverage::Sampled {
            sample_bytes: Some(bytes),
        } => format!("at least {} {done} at each", format_bytes(bytes)),
        Coverage::Blocks { block_bytes: bytes } => {
            format!("{} {done} at each", format_bytes(bytes))
        }
        Coverage::Sampled { sample_bytes: None } => {
            "samples as large as the precision requires".to_owned()
        }
    };
    let points = counted(u64::from(curve.points), "point");
    format!("curve of {points}, {each}")
}

/// Says what a run sends, how long it takes at most and what it writes to each target, in one line
/// without a line break. Printed before the first write.
pub fn budget_line(plan: &Plan, identities: &[TargetIdentity]) -> String {
    let text = clean(&budget_text(plan, &plan.budget(identities), identities));
    wrap(&text, usize::MAX, usize::MAX).concat()
}

fn budget_text(plan: &Plan, budget: &Budget, identities: &[TargetIdentity]) -> String {
    // The layers below the first one are only read.
    let written_targets = match plan.layers() {
        Some(_) => 1,
        None => identities.len(),
    };
    let mut uses = Vec::new();
    for (index, identity) in identities.iter().take(written_targets).enumerate() {
        let Some(used) = budget.targets.get(index) else {
            break;
        };
        let kept_file = plan.kept_file(index, &identity.path);
        uses.push(written_text(*used, budget, identity, kept_file));
    }
    let server_bytes = budget.server_room_bytes();
    if server_bytes > 0 {
        let room = glue(&format_bytes(server_bytes));
        uses.push(format!(
            "a temporary PostgreSQL server takes up to {room} more"
        ));
    }
    let load = match plan.ping() {
        Some(ping) => format!("sends {}; ", requests_text(ping, identities.len())),
        None => String::new(),
    };
    let time = longest_time_text(plan, budget, identities);
    format!("{load}takes {time}; {}", uses.join("; "))
}

/// `at most 1 request/s of 4 KiB (4.1 kB/s), reads only`.
fn requests_text(ping: &Ping, targets: usize) -> String {
    let (workload, ping) = (&ping.workload, &ping.requests);
    let block = glue(&format_bytes(u64::from(workload.block_bytes)));
    let operations = match (workload.reads(), workload.writes()) {
        (true, true) => "alternating reads and writes",
        (false, true) => "writes only",
        (_, false) => "reads only",
    };
    let each = match targets {
        0 | 1 => String::new(),
        n => format!(" to each of {n} targets"),
    };
    let requests = match (ping.idle_ns.iter().max(), workload.rate) {
        (Some(longest), _) => {
            let requests = counted(ping.idle_ns.len() as u64, "request");
            let longest = glue(&format_duration(*longest));
            format!("{requests} of {block}{each} after idle times of up to {longest}")
        }
        (None, Some(rate)) => {
            let kilobytes = format_rate(rate * f64::from(workload.block_bytes) / 1e3);
            let requests = glue(&format!("{} requests/s", format_rate(rate)));
            let kilobytes = glue(&format!("{kilobytes} kB/s"));
            format!("at most {requests} of {block} ({kilobytes}){each}")
        }
        (None, None) => format!("requests of {block}{each} one after the other without a pause"),
    };
    format!("{requests}, {operations}")
}

/// Says how long the run takes: exactly, at most, or at the usual speed of such a disk. The first
/// write of scratch files comes on top, where the plan limits it: `u64::MAX` is no limit.
fn longest_time_text(plan: &Plan, budget: &Budget, identities: &[TargetIdentity]) -> String {
    let Some(ns) = budget.expected_ns else {
        return match plan.survey() {
            Some(_) => UNLIMITED.to_owned(),
            None => unlimited_time_text(plan),
        };
    };
    let mut time = format_duration(ns);
    if let (Some(_), Some(each_ns)) = (plan.files(), budget.fill_ns) {
        let each = format_duration(each_ns);
        return format!(
            "at most {time}, and at most {each} each time files are written back, checked or \
             removed"
        );
    }
    if let Some(fill_ns) = budget.fill_ns
        && fill_ns < u64::MAX
    {
        let files = identities
            .iter()
            .filter(|identity| identity.kind == TargetKind::Directory)
            .count();
        let fill_time = format_duration(fill_ns.saturating_mul(files as u64));
        time += &format!(" after at most {fill_time} to fill the scratch file");
    }
    let depends_on_speed = plan.survey().is_some() || plan.accept().is_some();
    if !depends_on_speed || plan.time_limit_ns == Some(ns) {
        return format!("about {time}");
    }
    let kind = match identities.first() {
        Some(identity) if identity.rotational() == Some(false) => "an SSD",
        Some(_) | None => "a rotating disk",
    };
    match budget.deadline_ns {
        None => format!("as long as the disk needs, {time} at the usual speed of {kind}"),
        Some(most_ns) if most_ns > ns => {
            let most = format_duration(most_ns);
            format!("about {time} at the usual speed of {kind}, at most {most}")
        }
        Some(_) => format!("about {time} at the usual speed of {kind}"),
    }
}

/// Says how long a plan without a time limit takes: as long as its bytes or operations need, if
/// they limit all of it.
fn unlimited_time_text(plan: &Plan) -> String {
    let workloads = plan.workloads();
    if workloads.is_empty() {
        return UNLIMITED.to_owned();
    }
    if let Some(sustain) = plan.sustain()
        && let Some(bytes) = sustain.precondition_bytes
        && let Some(load) = sustain.load(workloads)
    {
        let load_ns = load.stop.time_ns.unwrap_or(0);
        let written = glue(&format_bytes(bytes));
        return format!(
            "as long as {written} need, then {}",
            format_duration(load_ns)
        );
    }
    let Some(need) = UntimedNeed::find(plan) else {
        return UNLIMITED.to_owned();
    };
    need.text()
}

/// What the workloads of a plan move that end without a time of their own, and the time of the
/// others.
#[derive(Default)]
struct UntimedNeed {
    bytes: u64,
    operations: u64,
    timed_ns: u64,
}

impl UntimedNeed {
    /// `None` where a workload has no end at all.
    fn find(plan: &Plan) -> Option<Self> {
        let mut need = Self::default();
        for group in plan.groups() {
            let mut longest_ns = 0;
            for workload in group.workloads {
                let stop = &workload.stop;
                if let Some(end_ns) = end_ns(group, workload) {
                    longest_ns = longest_ns.max(end_ns);
                } else if let Some(bytes) = stop.bytes {
                    need.bytes = need.bytes.saturating_add(bytes);
                } else {
                    need.operations = need.operations.saturating_add(stop.ops?);
                }
            }
            need.timed_ns = need.timed_ns.saturating_add(longest_ns);
        }
        Some(need)
    }

    /// `as long as 1 GiB need, at least 30 s`
    fn text(&self) -> String {
        let mut things = Vec::new();
        if self.bytes > 0 {
            things.push(glue(&format_bytes(self.bytes)));
        }
        if self.operations > 0 {
            things.push(glue(&counted(self.operations, "operation")));
        }
        let least = match self.timed_ns {
            0 => String::new(),
            ns => format!(", at least {}", format_duration(ns)),
        };
        let need = if self.bytes == 0 && self.operations == 1 {
            "needs"
        } else {
            "need"
        };
        format!("as long as {} {need}{least}", list(things))
    }
}

/// Says what the run writes to a target, and which data it destroys. `kept_file` is the file that
/// it makes in a directory and leaves there.
fn written_text(
    used: TargetUse,
    budget: &Budget,
    identity: &TargetIdentity,
    kept_file: Option<&str>,
) -> String {
    let path = &identity.path;
    let place = match place_text(identity) {
        Some(text) => format!(" ({text})"),
        None => String::new(),
    };
    match used {
        TargetUse::Read => format!("writes nothing to {path}"),
        TargetUse::Files {
            count,
            written_bytes,
            ..
        } => {
            format!(
                "writes about {} into {} at a time in {path}/{FILES_DIRECTORY}{place}, removed \
                 afterwards",
                glue(&format_bytes(written_bytes)),
                glue(&counted(count, "file"))
            )
        }
        TargetUse::Scratch {
            size_bytes,
            written,
            ..
        } => {
            let mut drops = String::new();
            for dropped in &budget.drops {
                let limit = limit_text(dropped.kind.plural(), dropped.limit, budget);
                drops.push_str(&format!(", {limit} of it"));
            }
            let writes = limit_text("writes", written, budget);
            let size = glue(&format_bytes(size_bytes));
            match kept_file {
                Some(file) => {
                    format!("{writes} into the file {file} of {size}{place}{drops}, which stays")
                }
                None => format!(
                    "{writes} into a scratch file of {size} in {path}{place}{drops}, removed \
                     afterwards"
                ),
            }
        }
        TargetUse::Overwrite { written } => overwrite_text(written, budget, identity),
    }
}

/// Says what the run does to a file or device whose content is lost.
fn overwrite_text(
    written: Option<ByteLimit>,
    budget: &Budget,
    identity: &TargetIdentity,
) -> String {
    let (noun, preposition) = match identity.kind {
        TargetKind::BlockDevice => ("device", "to"),
        TargetKind::File | TargetKind::Directory => ("file", "into"),
    };
    let mut parts = Vec::new();
    if let Some(limit) = written {
        parts.push(format!(
            "{} {preposition}",
            limit_text("writes", limit, budget)
        ));
    }
    for dropped in &budget.drops {
        let limit = limit_text(dropped.kind.plural(), dropped.limit, budget);
        parts.push(format!("{limit} of"));
    }
    let mut object = format!("the {noun} {}", identity.path);
    for part in &mut parts {
        part.push_str(&format!(" {object}"));
        object = "it".to_owned();
    }
    format!("{}; its content is lost", parts.join(" and "))
}

/// `writes at most 1 GiB`.
fn limit_text(verb: &str, limit: ByteLimit, budget: &Budget) -> String {
    match limit {
        ByteLimit::AtMost(bytes) => format!("{verb} at most {}", glue(&format_bytes(bytes))),
        ByteLimit::Unlimited if budget.expected_ns.is_some() => {
            format!("{verb} as much as the disk accepts in that time")
        }
        ByteLimit::Unlimited => format!("{verb} without a limit"),
    }
}

/// `ext4, 120 GiB free`: the filesystem and its free space; `None` where neither is known.
fn place_text(identity: &TargetIdentity) -> Option<String> {
    let mut facts = Vec::new();
    if let Some(filesystem) = &identity.filesystem {
        facts.push(filesystem.kind.clone());
    }
    if let Some(bytes) = free_bytes(identity) {
        facts.push(glue(&format!("{} free", format_bytes(bytes))));
    }
    joined(facts, ", ")
}

fn free_bytes(identity: &TargetIdentity) -> Option<u64> {
    match (identity.free_bytes, &identity.filesystem) {
        (Some(bytes), _) => Some(bytes),
        (None, Some(filesystem)) => Some(filesystem.free_bytes),
        (None, None) => None,
    }
}

/// The free space of a filesystem, and what a run takes of it.
struct SpaceTaken<'a> {
    /// The first target on it.
    place: &'a TargetIdentity,
    free_bytes: u64,
    taken_bytes: u64,
}

/// Says how much free space remains on each filesystem during the run, with all that the run takes
/// there. Empty where the run writes no new files, and where the free space is unknown.
fn space_texts(budget: &Budget, identities: &[TargetIdentity]) -> Vec<String> {
    let mut spaces: Vec<SpaceTaken<'_>> = Vec::new();
    for (index, identity) in identities.iter().enumerate() {
        let taken = taken_bytes(budget, index);
        let Some(free) = free_bytes(identity) else {
            continue;
        };
        if taken == 0 {
            continue;
        }
        match spaces
            .iter_mut()
            .find(|space| space.place.shares_space(identity))
        {
            Some(space) => {
                space.taken_bytes = space.taken_bytes.saturating_add(taken);
                space.free_bytes = space.free_bytes.min(free);
            }
            None => spaces.push(SpaceTaken {
                place: identity,
                free_bytes: free,
                taken_bytes: taken,
            }),
        }
    }
    let mut texts = Vec::new();
    for space in &spaces {
        let left = glue(&format_bytes(
            space.free_bytes.saturating_sub(space.taken_bytes),
        ));
        let free = glue(&format_bytes(space.free_bytes));
        texts.push(format!("{left} of {free} free space remain during the run"));
    }
    texts
}

/// The most space that a run takes in the target with this number; the temporary server is in the
/// first one.
fn taken_bytes(budget: &Budget, index: usize) -> u64 {
    let mut bytes = match budget.targets.get(index) {
        Some(TargetUse::Scratch { size_bytes, .. } | TargetUse::Files { size_bytes, .. }) => {
            *size_bytes
        }
        Some(TargetUse::Read | TargetUse::Overwrite { .. }) | None => 0,
    };
    if index == 0 {
        bytes = bytes.saturating_add(budget.server_room_bytes());
    }
    bytes
}

fn target_text(identity: &TargetIdentity) -> String {
    let kind = labels::target_kind(identity.kind);
    let size = glue(&format_bytes(identity.size_bytes));
    format!("{} ({kind}, {size})", identity.path)
}

/// A table of the workloads in order.
fn workloads_table(plan: &Plan) -> Table {
    let mut rows = Vec::new();
    for group in plan.groups() {
        for workload in group.workloads {
            let shared_bytes = plan.sustain().and_then(|sustain| sustain.budget_bytes);
            rows.push(TableRow::from(workload_row(group, workload, shared_bytes)));
        }
    }
    let names = ["workload", "block", "depth", "access", "time", "bytes"];
    let mut columns = Column::numbers(names);
    // The column of access holds words.
    columns[3].align = Align::Left;
    Table::new("Workloads", columns, rows)
}

/// The time after which a workload of a group ends, in nanoseconds, with the warm-up and the delay
/// of its start; `None` without a limit.
fn end_ns(group: Group<'_>, workload: &Workload) -> Option<u64> {
    let measured_ns = group.time_of(workload)?;
    let starts_ns = group.warmup_ns() + workload.shape.starts.delay_ns;
    Some(measured_ns.saturating_add(starts_ns))
}

/// The cells of a workload; `shared_bytes` limits all workloads together.
fn workload_row(group: Group<'_>, workload: &Workload, shared_bytes: Option<u64>) -> Vec<String> {
    let time = match end_ns(group, workload) {
        Some(ns) => format_duration(ns),
        None => NO_LIMIT.to_owned(),
    };
    let bytes = match (workload.stop.bytes, workload.stop.ops) {
        (Some(bytes), _) => format_bytes(bytes),
        (None, Some(ops)) => format!("{ops} ops"),
        (None, None) => match shared_bytes {
            Some(bytes) => format_bytes(bytes),
            None => NO_LIMIT.to_owned(),
        },
    };
    let name = match workload.start {
        Start::WithPrevious => format!("{TOGETHER_PREFIX}{}", workload.name),
        Start::AfterPrevious => workload.name.clone(),
    };
    vec![
        name,
        labels::block(workload.block_bytes, &workload.block_mix),
        labels::depth(workload.depth, workload.workers),
        access_text(workload),
        time,
        bytes,
    ]
}

/// Names the used part of the target; `None` for all of it.
fn span_text(span: &Span) -> Option<String> {
    Some(labels::span(span.start_bytes, span.length_bytes?))
}

/// `random read, over 8 GiB, offered 500/s`: the order of offsets, the operations, and what is
/// unusual.
fn access_text(workload: &Workload) -> String {
    let operation = labels::operation(&workload.streams, workload.sync);
    let mut facts = vec![format!("{} {operation}", labels::access(&workload.access))];
    facts.extend(span_text(&workload.span));
    facts.extend(labels::offered(workload.rate));
    if workload.cache != CachePolicy::Direct {
        facts.push(labels::cache(workload.cache).to_owned());
    }
    facts.join(", ")
}

/// Explains the limits of the table, and the precision that ends a workload earlier.
fn limits_legend(plan: &Plan) -> Block {
    let mut text = "Times (with warm-up) and bytes are limits.".to_owned();
    if let Some(sentence) = precision_text(plan.workloads()) {
        text.push_str(&sentence);
    }
    if let Some(ends) = concurrent_ends(plan.workloads()) {
        text.push_str(" + runs at the same time as the one above; ");
        text.push_str(ends);
    }
    Block::text(Tone::Dim, text)
}

/// Says how workloads end that run at the same time; `None` where none do.
fn concurrent_ends(workloads: &[Workload]) -> Option<&'static str> {
    let mut concurrent = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        let next = workloads.get(index + 1);
        let is_joined = next.is_some_and(|next| next.start == Start::WithPrevious);
        if is_joined || workload.start == Start::WithPrevious {
            concurrent.push(workload);
        }
    }
    if concurrent.is_empty() {
        return None;
    }
    let ending_alone = concurrent
        .iter()
        .filter(|workload| workload.ends_alone)
        .count();
    Some(if ending_alone == 0 {
        "the first to reach a limit ends all."
    } else if ending_alone == concurrent.len() {
        "each ends at its own limit."
    } else {
        "some end all at their limit, and the others end alone."
    })
}

/// States the precision that ends workloads earlier, as a further sentence; `None` where no
/// workload has one.
fn precision_text(workloads: &[Workload]) -> Option<String> {
    let precisions: Vec<f64> = workloads
        .iter()
        .flat_map(|workload| workload.stop.precision)
        .collect();
    let finest = precisions.iter().copied().reduce(f64::min)?;
    let widest = precisions.iter().copied().reduce(f64::max)?;
    let subject = if precisions.len() == workloads.len() {
        "A workload ends"
    } else {
        "Some workloads end"
    };
    let range = if finest == widest {
        format!("± {}", format_percent(widest))
    } else {
        let [low, high] = [finest, widest].map(format_percent);
        format!("± {low} to {high}")
    };
    let known = glue(&range);
    Some(format!(
        " {subject} earlier once the rate is known to {known}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::{Stop, Workloads};

    fn workload(start: Start, ends_alone: bool) -> Workload {
        Workload {
            start,
            ends_alone,
            ..Workload::named("w")
        }
    }

    /// A plan of two concurrent workloads that end alone: after ten seconds, and at `other`.
    fn text_of_end(other: Stop) -> String {
        let timed = Workload {
            stop: Stop {
                time_ns: Some(10_000_000_000),
                ..Stop::default()
            },
            ..workload(Start::AfterPrevious, true)
        };
        let untimed = Workload {
            stop: other,
            ..workload(Start::WithPrevious, true)
        };
        let mut plan = Plan::new("run", Vec::new());
        plan.tasks = vec![Task::Workloads(Workloads::as_planned(vec![timed, untimed]))];
        unlimited_time_text(&plan)
    }

    #[test]
    fn plan_without_a_time_names_what_it_waits_for() {
        let bytes = Stop {
            bytes: Some(1 << 30),
            ..Stop::default()
        };
        let operations = Stop {
            ops: Some(500),
            ..Stop::default()
        };
        for (other, parts) in [(bytes, "1 GiB"), (operations, "500 operations")] {
            let text = text_of_end(other).replace('\u{a0}', " ");
            assert!(
                text.contains(parts) && text.ends_with("at least 10 s"),
                "{text}"
            );
        }
    }

    #[test]
    fn ends_of_concurrent_workloads_are_named_as_they_are() {
        use Start::{AfterPrevious, WithPrevious};
        let ends = |alone: [bool; 3]| {
            concurrent_ends(&[
                workload(AfterPrevious, false),
                workload(AfterPrevious, alone[0]),
                workload(WithPrevious, alone[1]),
                workload(WithPrevious, alone[2]),
            ])
        };
        assert_eq!(concurrent_ends(&[workload(AfterPrevious, false)]), None);
        let all = Some("the first to reach a limit ends all.");
        assert_eq!(ends([false; 3]), all);
        assert_eq!(ends([true; 3]), Some("each ends at its own limit."));
        assert!(ends([true, false, true]).is_some_and(|text| text.starts_with("some end all")));
    }
}
