//! The pages before a run: what will be done, how long it may take, how much it may write. Knows
//! nothing of how it will be done.

use super::record::{asked_text, write_skipped};
use super::subject::fact;
use super::words;
use crate::page::{Columns, Ink, Lean, Page};
use crate::style::Style;
use crate::text::{clean, glue, list, wrap};
use diskproof_model::group::Group;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, Plan, Start, Workload};
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_duration};
use std::io::{self, Write};

const COLUMNS: usize = 6;
const HEADING: [&str; COLUMNS] = ["workload", "block", "depth", "access", "time", "bytes"];
/// What stands where there is no limit.
const NO_LIMIT: &str = "no limit";
/// What stands before a workload that runs at the same time as the one above.
const TOGETHER: &str = "+ ";
const UNLIMITED: &str = "as long as it needs: a workload has no time limit";

/// Writes the plan: what it costs, then its workloads in order, then what is left out.
pub fn write_plan(
    plan: &Plan,
    identities: &[TargetIdentity],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    page.text(
        Ink::Strong,
        &format!(
            "plan: {} · seed {} · nothing has been written",
            asked_text(plan),
            plan.seed
        ),
    )?;
    page.blank()?;
    for identity in identities {
        fact(page, "target", &target_text(identity))?;
    }
    fact(page, "budget", &budget_text(plan, identities))?;
    for identity in identities {
        if let Some(text) = space_text(plan, identity) {
            fact(page, "space", &text)?;
        }
    }
    if let Some(survey) = &plan.survey {
        fact(page, "survey", &survey_text(survey))?;
    }
    write_skipped(page, plan)?;
    if plan.workloads.is_empty() {
        return Ok(());
    }
    page.blank()?;
    write_workloads(page, plan)
}

/// The steps of a survey.
fn survey_text(survey: &Survey) -> String {
    let operation = if survey.operation == OpKind::Write {
        "written"
    } else {
        "read"
    };
    let points = |plan: CurvePlan| format!("curve of {}", counted(u64::from(plan.points), "point"));
    let curve = survey.curve.map(|plan| match plan.coverage {
        Coverage::Full => format!("{}, everything {operation}", points(plan)),
        Coverage::Sampled {
            sample_bytes: Some(bytes),
        } => {
            format!(
                "{}, {} {operation} at each",
                points(plan),
                format_bytes(bytes)
            )
        }
        Coverage::Sampled { sample_bytes: None } => {
            format!("{}, samples as large as precision needs", points(plan))
        }
    });
    let burst = survey
        .burst
        .map(|plan| format!("burst of {}", format_bytes(plan.bytes)));
    let access = survey.access.map(|plan| {
        format!(
            "{} random accesses of {} B and {} of each other pattern",
            plan.random_reads, plan.block_bytes, plan.pattern_reads
        )
    });
    let scan = survey.scan.map(|plan| match plan.resume_bytes {
        0 => "scan of every block".to_owned(),
        at => format!("scan of every block from byte {at} on"),
    });
    let span = survey
        .span
        .length_bytes
        .map(|length| words::span(survey.span.start_bytes, length));
    span.into_iter()
        .chain(curve)
        .chain(burst)
        .chain(access)
        .chain(scan)
        .collect::<Vec<_>>()
        .join("; ")
}

/// What it will cost, in one line: shown before the first write.
pub fn budget_line(plan: &Plan, identities: &[TargetIdentity]) -> String {
    wrap(
        &clean(&budget_text(plan, identities)),
        usize::MAX,
        usize::MAX,
    )
    .concat()
}

fn budget_text(plan: &Plan, identities: &[TargetIdentity]) -> String {
    let writes: Vec<String> = identities
        .iter()
        .map(|identity| writes_text(plan, identity))
        .collect();
    format!(
        "takes {}; {}",
        time_text(plan, identities),
        writes.join("; ")
    )
}

/// The longest time, the same for all targets, since they run at once; the filling of a scratch
/// file, whose speed is not known yet, is not in it.
fn time_text(plan: &Plan, identities: &[TargetIdentity]) -> String {
    let Some((survey, target)) = plan.survey.as_ref().zip(identities.first()) else {
        return plan.time_ns_max().map_or(UNLIMITED.to_owned(), |ns| {
            format!("about {}", format_duration(ns))
        });
    };
    let bytes = plan
        .scratch_bytes
        .filter(|_| target.kind == TargetKind::Directory)
        .unwrap_or(target.size_bytes);
    // One rotating disk among several sets the pace; where nobody knows, the slower kind is
    // assumed.
    let kinds: Option<Vec<bool>> = target.disks().map(|disk| disk.rotational).collect();
    let rotational = kinds
        .filter(|kinds| !kinds.is_empty())
        .map(|kinds| kinds.contains(&true));
    let guess = survey.time_ns_guess(bytes, rotational);
    let kind = if rotational == Some(false) {
        "an SSD"
    } else {
        "a rotating disk"
    };
    match plan.time_ns_max() {
        Some(ns) => format!(
            "about {} if it is as fast as {kind} usually is",
            format_duration(guess + ns)
        ),
        None => UNLIMITED.to_owned(),
    }
}

/// What will be written to a target, and what becomes of it.
fn writes_text(plan: &Plan, identity: &TargetIdentity) -> String {
    let path = &identity.path;
    let limit = |bytes: Option<u64>| {
        let unlimited = if plan.time_ns_max().is_some() {
            "writes as much as the disk takes in that time"
        } else {
            "writes without a limit"
        };
        bytes.map_or(unlimited.to_owned(), |bytes| {
            format!("writes at most {}", glue(&format_bytes(bytes)))
        })
    };
    if identity.kind == TargetKind::Directory {
        let scratch = plan.scratch_bytes.map_or(String::new(), |bytes| {
            format!(" of {}", glue(&format_bytes(bytes)))
        });
        let place = place_text(identity).map_or(String::new(), |place| format!(" ({place})"));
        return format!(
            "{} into a scratch file{scratch} in {path}{place} that is gone afterwards",
            limit(plan.scratch_write_bytes_max())
        );
    }
    let writes = plan.writes();
    // How much a survey writes depends on how fast the disk is.
    let surveyed = plan
        .survey
        .as_ref()
        .is_some_and(|survey| survey.operation == OpKind::Write);
    let most = plan.write_bytes_max().filter(|_| !surveyed);
    match (identity.kind, writes) {
        (_, false) => format!("writes nothing to {path}"),
        (TargetKind::BlockDevice, true) => format!(
            "{} to the device {path}, whose content is lost",
            limit(most)
        ),
        (_, true) => format!(
            "{} into the file {path}, whose content is lost",
            limit(most)
        ),
    }
}

/// The filesystem and its free space.
fn place_text(identity: &TargetIdentity) -> Option<String> {
    let kind = identity
        .filesystem
        .as_ref()
        .map(|filesystem| filesystem.kind.clone());
    let free = free_bytes(identity).map(|bytes| glue(&format!("{} free", format_bytes(bytes))));
    let facts: Vec<String> = kind.into_iter().chain(free).collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

fn free_bytes(identity: &TargetIdentity) -> Option<u64> {
    identity.free_bytes.or_else(|| {
        identity
            .filesystem
            .as_ref()
            .map(|filesystem| filesystem.free_bytes)
    })
}

/// What the scratch file leaves while it is there.
fn space_text(plan: &Plan, identity: &TargetIdentity) -> Option<String> {
    let (scratch, free) = (plan.scratch_bytes?, free_bytes(identity)?);
    let left = glue(&format_bytes(free.saturating_sub(scratch)));
    (identity.kind == TargetKind::Directory).then(|| {
        format!(
            "{left} of the {} free stay free meanwhile",
            glue(&format_bytes(free))
        )
    })
}

fn target_text(identity: &TargetIdentity) -> String {
    format!(
        "{} ({}, {})",
        identity.path,
        words::target_kind(identity.kind),
        glue(&format_bytes(identity.size_bytes))
    )
}

/// The workloads in order, as a table, or as running text where that does not fit.
fn write_workloads(page: &mut Page<'_>, plan: &Plan) -> io::Result<()> {
    let heading: Vec<String> = HEADING.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = plan
        .groups()
        .flat_map(|group| group.workloads.iter().map(move |w| workload_row(group, w)))
        .collect();
    let leans = [
        Lean::Left,
        Lean::Right,
        Lean::Right,
        Lean::Left,
        Lean::Right,
        Lean::Right,
    ];
    let columns = Columns::fit(&leans, rows.iter().chain([&heading]));
    if page.has_room_for(columns.total()) {
        page.unbroken(Ink::Faint, &columns.line(&heading))?;
        rows.iter()
            .try_for_each(|row| page.unbroken(Ink::Plain, &columns.line(row)))?;
    } else {
        for row in &rows {
            let facts = row
                .iter()
                .zip(HEADING)
                .skip(1)
                .map(|(cell, name)| format!("{name} {cell}"));
            page.entry((Ink::Strong, &row[0]), 4, (Ink::Plain, &list(facts)))?;
        }
    }
    write_ends(page, plan)
}

fn workload_row(group: Group<'_>, workload: &Workload) -> Vec<String> {
    let time = group.time_ns().map_or(NO_LIMIT.to_owned(), |ns| {
        format_duration(ns + group.warmup_ns())
    });
    let bytes = match (workload.stop.bytes, workload.stop.ops) {
        (Some(bytes), _) => format_bytes(bytes),
        (None, Some(ops)) => format!("{ops} ops"),
        (None, None) => NO_LIMIT.to_owned(),
    };
    vec![
        if workload.start == Start::WithPrevious {
            format!("{TOGETHER}{}", workload.name)
        } else {
            workload.name.clone()
        },
        words::block(workload.block_bytes, &workload.block_mix),
        words::depth(workload.depth, workload.workers),
        access_text(workload),
        time,
        bytes,
    ]
}

/// Where operations go and which they are.
fn access_text(workload: &Workload) -> String {
    let operation = words::operation(workload.read_permille, workload.sync);
    let mut facts = vec![format!("{} {operation}", words::access(&workload.access))];
    facts.extend(
        workload
            .span
            .length_bytes
            .map(|length| words::span(workload.span.start_bytes, length)),
    );
    facts.extend(words::offered(workload.rate));
    if workload.cache != CachePolicy::Direct {
        facts.push(words::cache(workload.cache).to_owned());
    }
    facts.join(", ")
}

/// What ends a workload before its limits: precision, which most share.
fn write_ends(page: &mut Page<'_>, plan: &Plan) -> io::Result<()> {
    let workloads = &plan.workloads;
    let mut text = "Times (with warm-up) and bytes are limits.".to_owned();
    let precisions: Vec<f64> = workloads.iter().filter_map(|w| w.stop.precision).collect();
    let (finest, widest) = (
        precisions.iter().copied().reduce(f64::min),
        precisions.iter().copied().reduce(f64::max),
    );
    if let (Some(finest), Some(widest)) = (finest, widest) {
        let who = if precisions.len() == workloads.len() {
            "A workload ends"
        } else {
            "Some workloads end"
        };
        let range = if finest == widest {
            words::percent(widest)
        } else {
            format!("{} to {}", words::percent(finest), words::percent(widest))
        };
        text.push_str(&format!(
            " {who} earlier once the rate is known to {}.",
            glue(&format!("± {range}"))
        ));
    }
    if workloads
        .iter()
        .any(|workload| workload.start == Start::WithPrevious)
    {
        text.push_str(
            " + runs together with the one above; whichever reaches a limit first ends them all.",
        );
    }
    page.text(Ink::Faint, &text)
}
