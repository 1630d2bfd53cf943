//! A plan: the workloads of a run, its longest time, the bytes that it may write.

use super::files::{files_text, planned_caches};
use super::inserts::{plan_text, trial_plan_text};
use super::layers::{planned_text, unread};
use super::run::{request_text, skipped_facts};
use crate::labels;
use crate::text::{clean, glue, joined, list, wrap};
use diskproof_model::block::{Align, Block, Column, Table, TableRow, Tone};
use diskproof_model::budget::{Budget, TargetUse};
use diskproof_model::files::{FILES_DIRECTORY, FileStep};
use diskproof_model::group::Group;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{ByteLimit, CachePolicy, Ping, Plan, Span, Start, Task, Workload};
use diskproof_model::surface::{Coverage, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent, format_rate};

/// The sign for a limit that is not set.
const NO_LIMIT: &str = "no limit";
/// Prefix of a workload that runs at the same time as the previous one.
const TOGETHER: &str = "+ ";
const UNLIMITED: &str = "unlimited time";

/// The plan: its budget, the skipped workloads, then the workloads in order.
pub(crate) fn blocks(plan: &Plan, identities: &[TargetIdentity]) -> Vec<Block> {
    let (request, seed) = (request_text(plan), plan.seed);
    let budget = plan.budget(identities);
    let title = format!("plan: {request} · seed {seed} · nothing was written");
    let mut facts: Vec<(&str, String)> = Vec::new();
    facts.extend(identities.iter().map(|of| ("target", target_text(of))));
    facts.push(("budget", budget_text(plan, &budget, identities)));
    for (used, identity) in budget.targets.iter().zip(identities) {
        if let Some(text) = space_text(*used, identity) {
            facts.push(("space", text));
        }
    }
    for task in &plan.tasks {
        facts.extend(task_facts(task));
    }
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend(Block::facts(facts));
    blocks.extend(skipped_facts(plan));
    if !plan.workloads().is_empty() {
        blocks.extend([Block::Table(workloads(plan)), ends(plan)]);
    }
    blocks
}

/// What a task does, apart from its workloads, which have a table.
fn task_facts(task: &Task) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match task {
        Task::Survey(survey) => facts.push(("survey", survey_text(survey))),
        Task::Ping(_) => {}
        Task::Workloads(workloads) => {
            if let Some(layers) = workloads.layers() {
                facts.push(("layers", planned_text(layers)));
                facts.extend(unread(layers));
            }
        }
        Task::Inserts(inserts) => {
            facts.push(("server", plan_text(&inserts.server)));
            if let Some(trial) = &inserts.server.trial {
                facts.push(("server", trial_plan_text(trial)));
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

/// The steps of a survey.
fn survey_text(survey: &Survey) -> String {
    let operation = match survey.operation {
        OpKind::Write => "written",
        _ => "read",
    };
    let curve = survey.curve.map(|plan| {
        let each = match plan.coverage {
            Coverage::Full => format!("all of it {operation}"),
            Coverage::Sampled {
                sample_bytes: Some(bytes),
            }
            | Coverage::Blocks { block_bytes: bytes } => {
                format!("{} {operation} at each", format_bytes(bytes))
            }
            Coverage::Sampled { sample_bytes: None } => {
                "samples as large as the precision requires".to_owned()
            }
        };
        let points = counted(u64::from(plan.points), "point");
        format!("curve of {points}, {each}")
    });
    let burst = survey.burst.map(|plan| format_bytes(plan.bytes));
    let burst = burst.map(|bytes| format!("burst of {bytes}"));
    let access = survey.access.map(|plan| {
        format!(
            "{} random accesses of {} B, {} of each other pattern",
            plan.random_reads, plan.block_bytes, plan.pattern_reads
        )
    });
    let scan = survey.scan.map(|plan| match plan.resume_bytes {
        0 => "scan of every block".to_owned(),
        at => format!("scan of every block from byte {at}"),
    });
    let steps = [span_text(&survey.span), curve, burst, access, scan];
    joined(steps.into_iter().flatten(), "; ").unwrap_or_default()
}

/// The budget in one line: shown before the first write.
pub fn budget_line(plan: &Plan, identities: &[TargetIdentity]) -> String {
    let text = clean(&budget_text(plan, &plan.budget(identities), identities));
    wrap(&text, usize::MAX, usize::MAX).concat()
}

fn budget_text(plan: &Plan, budget: &Budget, identities: &[TargetIdentity]) -> String {
    // The layers below the first are only read.
    let written = plan.layers().map_or(identities.len(), |_| 1);
    let mut uses = Vec::new();
    for (used, identity) in budget.targets.iter().zip(identities).take(written) {
        uses.push(use_text(*used, budget, identity));
    }
    let load = match plan.ping() {
        Some(ping) => format!("sends {}; ", load_text(ping, identities.len())),
        None => String::new(),
    };
    let time = time_text(plan, budget, identities);
    format!("{load}takes {time}; {}", uses.join("; "))
}

/// `at most 1 request/s of 4 KiB (4.1 kB/s), reads only`.
fn load_text(ping: &Ping, targets: usize) -> String {
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

/// The longest time; targets run at the same time. The first write of a scratch file counts as far
/// as the plan limits it.
fn time_text(plan: &Plan, budget: &Budget, identities: &[TargetIdentity]) -> String {
    let Some(ns) = budget.expected_ns else {
        return match plan.survey() {
            Some(_) => UNLIMITED.to_owned(),
            None => amount_text(plan),
        };
    };
    let mut time = format_duration(ns);
    if let Some(fill_ns) = budget.fill_ns.filter(|ns| *ns < u64::MAX) {
        let is_directory = |one: &&TargetIdentity| one.kind == TargetKind::Directory;
        let files = identities.iter().filter(is_directory).count() as u64;
        let most = format_duration(fill_ns.saturating_mul(files));
        time += &format!(" after at most {most} to fill the scratch file");
    }
    if plan.files().is_some() {
        return format!("at most {time}, and the removal of files");
    }
    if plan.survey().is_none() || plan.time_limit_ns == Some(ns) {
        return format!("about {time}");
    }
    let kind = match identities.first().and_then(TargetIdentity::rotational) {
        Some(false) => "an SSD",
        _ => "a rotating disk",
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

/// What a plan without a time limit takes: the time that its bytes or operations need, if they
/// limit all of it.
fn amount_text(plan: &Plan) -> String {
    let total = |limit: fn(&Workload) -> Option<u64>| plan.workloads().iter().map(limit).sum();
    let bytes: Option<u64> = total(|workload| workload.stop.bytes);
    let ops: Option<u64> = total(|workload| workload.stop.ops);
    match (bytes, ops) {
        _ if plan.workloads().is_empty() => UNLIMITED.to_owned(),
        (Some(bytes), _) => format!("as long as {} need", glue(&format_bytes(bytes))),
        (None, Some(ops)) => format!("as long as {} need", glue(&counted(ops, "operation"))),
        (None, None) => UNLIMITED.to_owned(),
    }
}

/// What the run writes to a target, and which data it destroys.
fn use_text(used: TargetUse, budget: &Budget, identity: &TargetIdentity) -> String {
    let path = &identity.path;
    let place = place_text(identity).map_or(String::new(), |place| format!(" ({place})"));
    match used {
        TargetUse::Read => format!("writes nothing to {path}"),
        TargetUse::Files {
            count,
            written_bytes,
            ..
        } => {
            let (bytes, count) = (format_bytes(written_bytes), counted(count, "file"));
            format!(
                "writes about {} into {} at a time in {path}/{FILES_DIRECTORY}{place}, removed \
                 afterwards",
                glue(&bytes),
                glue(&count)
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
            format!(
                "{writes} into a scratch file of {size} in {path}{place}{drops}, removed \
                 afterwards"
            )
        }
        TargetUse::Overwrite { written } => overwrite_text(written, budget, identity),
    }
}

/// What the run does to a file or device whose content is lost.
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

/// The filesystem and its free space.
fn place_text(identity: &TargetIdentity) -> Option<String> {
    let kind = identity.filesystem.as_ref().map(|of| of.kind.clone());
    let free = free_bytes(identity).map(|bytes| glue(&format!("{} free", format_bytes(bytes))));
    joined(kind.into_iter().chain(free), ", ")
}

fn free_bytes(identity: &TargetIdentity) -> Option<u64> {
    let filesystem = identity.filesystem.as_ref();
    identity.free_bytes.or(filesystem.map(|of| of.free_bytes))
}

/// The free space that remains during the run.
fn space_text(used: TargetUse, identity: &TargetIdentity) -> Option<String> {
    let size_bytes = match used {
        TargetUse::Scratch { size_bytes, .. } | TargetUse::Files { size_bytes, .. } => size_bytes,
        TargetUse::Read | TargetUse::Overwrite { .. } => return None,
    };
    let free_bytes = free_bytes(identity)?;
    let left = glue(&format_bytes(free_bytes.saturating_sub(size_bytes)));
    let free = glue(&format_bytes(free_bytes));
    Some(format!("{left} of {free} free space remain during the run"))
}

fn target_text(identity: &TargetIdentity) -> String {
    let kind = labels::target_kind(identity.kind);
    let size = glue(&format_bytes(identity.size_bytes));
    format!("{} ({kind}, {size})", identity.path)
}

/// The workloads in order.
fn workloads(plan: &Plan) -> Table {
    let rows = plan.groups().flat_map(|group| {
        let workloads = group.workloads.iter();
        workloads.map(move |workload| TableRow::from(workload_row(group, workload)))
    });
    let names = ["workload", "block", "depth", "access", "time", "bytes"];
    let mut columns = Column::numbers(names);
    columns[3].align = Align::Left;
    Table::new("Workloads", columns, rows.collect())
}

fn workload_row(group: Group<'_>, workload: &Workload) -> Vec<String> {
    let no_limit = || NO_LIMIT.to_owned();
    let time = group.time_ns().map(|ns| ns + group.warmup_ns());
    let bytes = match (workload.stop.bytes, workload.stop.ops) {
        (Some(bytes), _) => format_bytes(bytes),
        (None, Some(ops)) => format!("{ops} ops"),
        (None, None) => no_limit(),
    };
    let name = match workload.start {
        Start::WithPrevious => format!("{TOGETHER}{}", workload.name),
        _ => workload.name.clone(),
    };
    vec![
        name,
        labels::block(workload.block_bytes, &workload.block_mix),
        labels::depth(workload.depth, workload.workers),
        access_text(workload),
        time.map_or_else(no_limit, format_duration),
        bytes,
    ]
}

/// The used part of the target; `None` for all of it.
fn span_text(span: &Span) -> Option<String> {
    Some(labels::span(span.start_bytes, span.length_bytes?))
}

/// The order of offsets and the operations.
fn access_text(workload: &Workload) -> String {
    let operation = labels::operation(&workload.streams, workload.sync);
    let mut facts = vec![format!("{} {operation}", labels::access(&workload.access))];
    facts.extend(span_text(&workload.span));
    facts.extend(labels::offered(workload.rate));
    let is_cached = workload.cache != CachePolicy::Direct;
    facts.extend(is_cached.then(|| labels::cache(workload.cache).to_owned()));
    facts.join(", ")
}

/// The meaning of the limits, and the precision that ends a workload earlier.
fn ends(plan: &Plan) -> Block {
    let workloads = &plan.workloads();
    let mut text = "Times (with warm-up) and bytes are limits.".to_owned();
    let precisions: Vec<f64> = workloads.iter().filter_map(|w| w.stop.precision).collect();
    let end = |of: fn(f64, f64) -> f64| precisions.iter().copied().reduce(of);
    if let (Some(finest), Some(widest)) = (end(f64::min), end(f64::max)) {
        let who = if precisions.len() == workloads.len() {
            "A workload ends"
        } else {
            "Some workloads end"
        };
        let [finest_text, widest_text] = [finest, widest].map(format_percent);
        let range = if finest == widest {
            widest_text
        } else {
            format!("{finest_text} to {widest_text}")
        };
        let range = glue(&format!("± {range}"));
        text += &format!(" {who} earlier once the rate is known to {range}.");
    }
    let mut starts = workloads.iter().map(|workload| &workload.start);
    if starts.any(|start| *start == Start::WithPrevious) {
        text += " + runs at the same time as the one above; the first to reach a limit ends all.";
    }
    Block::text(Tone::Dim, text)
}
