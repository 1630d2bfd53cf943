//! A plan in words: the targets, the longest time, the bytes that the run may write, then its
//! workloads. `--dry-run` prints it whole; a run prints its budget before the first write.

mod budget;
mod longest_time;

use super::files::{files_text, planned_caches};
use super::run::{request_text, skipped_facts};
use super::{accept, inserts, layers, load, sustain};
use crate::labels;
use crate::text::{glue, list};
pub use budget::budget_line;
use budget::{budget_text, space_texts};
use diskproof_model::block::{Align, Block, Column, Place, Table, TableRow, Tone};
use diskproof_model::files::FileStep;
use diskproof_model::group::Group;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, Decide, Plan, Span, Start, Task, Workload};
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::TargetIdentity;
use diskproof_model::timetable::Slot;
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent};
use longest_time::end_ns;

/// In place of a limit that is not set.
const NO_LIMIT: &str = "no limit";
/// Stands before a workload that runs at the same time as the previous one.
const TOGETHER_PREFIX: &str = "+ ";
/// Stands between workloads of one slot.
const SLOT_SEPARATOR: &str = " + ";

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
    use diskproof_model::plan::Stop;

    fn workload(start: Start, ends_alone: bool) -> Workload {
        Workload {
            start,
            ends_alone,
            ..Workload::named("w")
        }
    }

    fn of_precision(precision: Option<f64>) -> Workload {
        Workload {
            stop: Stop {
                precision,
                ..Stop::default()
            },
            ..Workload::named("w")
        }
    }

    #[test]
    fn precision_is_that_of_the_workloads_that_have_one() {
        let text = |precisions: &[Option<f64>]| {
            let workloads: Vec<_> = precisions.iter().copied().map(of_precision).collect();
            precision_text(&workloads)
        };
        assert_eq!(text(&[None, None]), None);
        let one = text(&[Some(0.02), None]).unwrap();
        assert!(one.contains("Some workloads") && one.contains("2"), "{one}");
        let equal = text(&[Some(0.02), Some(0.02)]).unwrap();
        assert!(
            !equal.contains("Some") && !equal.contains("to 2"),
            "{equal}"
        );
        let range = text(&[Some(0.05), Some(0.02)]).unwrap();
        assert!(
            range.contains("2\u{a0}%\u{a0}to\u{a0}5\u{a0}%"),
            "{range:?}"
        );
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
