//! A plan: the workloads of a run, its longest time, the bytes that it may write.

use super::files::{files_text, planned_caches};
use super::inserts::plan_text;
use super::layers::{planned_text, unread};
use super::run::{request_text, skipped_facts};
use super::trials;
use crate::labels;
use crate::text::{clean, glue, list, wrap};
use diskproof_model::block::{Align, Block, Column, Row, Table, Tone};
use diskproof_model::files::{FILES_DIRECTORY, FileStep, FilesPlan};
use diskproof_model::group::Group;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::PingPlan;
use diskproof_model::plan::{CachePolicy, Plan, Start, Workload};
use diskproof_model::surface::{Coverage, CurvePlan, Survey};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent, format_rate};

/// The sign for a limit that is not set.
const NO_LIMIT: &str = "no limit";
/// Prefix of a workload that runs at the same time as the previous one.
const TOGETHER: &str = "+ ";
const UNLIMITED: &str = "unlimited time";

/// The plan: its budget, the skipped workloads, then the workloads in order.
pub(crate) fn blocks(plan: &Plan, identities: &[TargetIdentity]) -> Vec<Block> {
    let title = format!(
        "plan: {} · seed {} · nothing was written",
        request_text(plan),
        plan.seed
    );
    let mut facts: Vec<(&str, String)> = Vec::new();
    facts.extend(identities.iter().map(|of| ("target", target_text(of))));
    facts.push(("budget", budget_text(plan, identities)));
    let spaces = identities.iter().filter_map(|of| space_text(plan, of));
    facts.extend(spaces.map(|text| ("space", text)));
    facts.extend(plan.survey.iter().map(|of| ("survey", survey_text(of))));
    if let Some(postgres) = &plan.postgres {
        facts.push(("server", plan_text(postgres)));
        let trial = postgres.trial.as_ref().map(trials::plan_text);
        facts.extend(trial.map(|text| ("server", text)));
    }
    if let Some(files) = &plan.files {
        let steps: Vec<String> = files.steps().map(FileStep::name).collect();
        facts.push(("files", files_text(files)));
        facts.push(("steps", list(steps)));
        facts.push(("caches", planned_caches(files.caches).to_owned()));
    }
    if let Some(layers) = &plan.layers {
        facts.push(("layers", planned_text(layers)));
        facts.extend(unread(layers));
    }
    let mut blocks = vec![Block::Heading(title)];
    blocks.extend(Block::facts(facts));
    blocks.extend(skipped_facts(plan));
    if !plan.workloads.is_empty() {
        blocks.extend([Block::Table(workloads(plan)), ends(plan)]);
    }
    blocks
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
        Coverage::Full => format!("{}, all of it {operation}", points(plan)),
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
            format!(
                "{}, samples as large as the precision requires",
                points(plan)
            )
        }
    });
    let burst = survey
        .burst
        .map(|plan| format!("burst of {}", format_bytes(plan.bytes)));
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
    let span = survey
        .span
        .length_bytes
        .map(|length| labels::span(survey.span.start_bytes, length));
    span.into_iter()
        .chain(curve)
        .chain(burst)
        .chain(access)
        .chain(scan)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The budget in one line: shown before the first write.
pub fn budget_line(plan: &Plan, identities: &[TargetIdentity]) -> String {
    wrap(
        &clean(&budget_text(plan, identities)),
        usize::MAX,
        usize::MAX,
    )
    .concat()
}

fn budget_text(plan: &Plan, identities: &[TargetIdentity]) -> String {
    // The layers below the first are only read.
    let written = match plan.layers {
        Some(_) => 1,
        None => identities.len(),
    };
    let writes: Vec<String> = identities
        .iter()
        .take(written)
        .map(|identity| writes_text(plan, identity))
        .collect();
    let load = plan
        .workloads
        .first()
        .zip(plan.ping.as_ref())
        .map_or(String::new(), |(workload, ping)| {
            format!("sends {}; ", load_text(workload, ping, identities.len()))
        });
    format!(
        "{load}takes {}; {}",
        time_text(plan, identities),
        writes.join("; ")
    )
}

/// `at most 1 request/s of 4 KiB (4.1 kB/s), reads only`.
fn load_text(workload: &Workload, ping: &PingPlan, targets: usize) -> String {
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
    let requests = match (workload.rate, ping.idle_ns.as_slice()) {
        (_, idle_ns @ [_, ..]) => {
            let longest = idle_ns.iter().max().copied().unwrap_or(0);
            format!(
                "{} of {block}{each} after idle times of up to {}",
                counted(idle_ns.len() as u64, "request"),
                glue(&format_duration(longest))
            )
        }
        (Some(rate), []) => {
            let kilobytes = rate * f64::from(workload.block_bytes) / 1e3;
            format!(
                "at most {} of {block} ({}){each}",
                glue(&format!("{} requests/s", format_rate(rate))),
                glue(&format!("{} kB/s", format_rate(kilobytes))),
            )
        }
        (None, []) => format!("requests of {block}{each} one after the other without a pause"),
    };
    format!("{requests}, {operations}")
}

/// The longest time; targets run at the same time. The first write of a scratch file counts as far
/// as the plan limits it.
fn time_text(plan: &Plan, identities: &[TargetIdentity]) -> String {
    let Some(ns) = plan.expected_ns(identities) else {
        return match plan.survey {
            Some(_) => UNLIMITED.to_owned(),
            None => amount_text(plan),
        };
    };
    let time = format_duration(ns);
    let fill = plan.fill_ns_max().filter(|ns| *ns < u64::MAX);
    let fill = fill.map_or(String::new(), |ns| {
        let is_directory = |one: &&TargetIdentity| one.kind == TargetKind::Directory;
        let files = identities.iter().filter(is_directory).count() as u64;
        let most = format_duration(ns.saturating_mul(files));
        format!(" after at most {most} to fill the scratch file")
    });
    let time = format!("{time}{fill}");
    if plan.files.is_some() {
        return format!("at most {time}, and the removal of files");
    }
    if plan.survey.is_none() || plan.time_limit_ns == Some(ns) {
        return format!("about {time}");
    }
    let kind = match identities.first().and_then(TargetIdentity::rotational) {
        Some(false) => "an SSD",
        _ => "a rotating disk",
    };
    let most = plan.deadline_ns(identities);
    if most.is_none() {
        return format!("as long as the disk needs, {time} at the usual speed of {kind}");
    }
    let most = most.filter(|most_ns| *most_ns > ns);
    let most = most.map_or(String::new(), |ns| {
        format!(", at most {}", format_duration(ns))
    });
    format!("about {time} at the usual speed of {kind}{most}")
}

/// What a plan without a time limit takes: the time that its bytes or operations need, if they
/// limit all of it.
fn amount_text(plan: &Plan) -> String {
    let total = |limit: fn(&Workload) -> Option<u64>| plan.workloads.iter().map(limit).sum();
    let bytes: Option<u64> = total(|workload| workload.stop.bytes);
    let ops: Option<u64> = total(|workload| workload.stop.ops);
    match (bytes, ops) {
        _ if plan.workloads.is_empty() => UNLIMITED.to_owned(),
        (Some(bytes), _) => format!("as long as {} need", glue(&format_bytes(bytes))),
        (None, Some(ops)) => format!("as long as {} need", glue(&counted(ops, "operation"))),
        (None, None) => UNLIMITED.to_owned(),
    }
}

/// What the run writes to a target, and which data it destroys.
fn writes_text(plan: &Plan, identity: &TargetIdentity) -> String {
    let path = &identity.path;
    let limit = |verb: &str, bytes: Option<u64>| {
        let unlimited = if plan.time_ns_max().is_some() {
            format!("{verb} as much as the disk accepts in that time")
        } else {
            format!("{verb} without a limit")
        };
        bytes.map_or(unlimited, |bytes| {
            format!("{verb} at most {}", glue(&format_bytes(bytes)))
        })
    };
    let drops = plan
        .drops()
        .map(|(kind, bytes)| limit(kind.plural(), bytes));
    let drops: Vec<String> = drops.map(|drops| format!("{drops} of ")).collect();
    if let Some(files) = &plan.files {
        let place = place_text(identity).map_or(String::new(), |place| format!(" ({place})"));
        return format!(
            "writes about {} into {} at a time in {path}/{FILES_DIRECTORY}{place}, removed \
             afterwards",
            glue(&format_bytes(files.write_bytes())),
            glue(&counted(files.count, "file")),
        );
    }
    if identity.kind == TargetKind::Directory {
        let scratch = plan.scratch_bytes.map_or(String::new(), |bytes| {
            format!(" of {}", glue(&format_bytes(bytes)))
        });
        let place = place_text(identity).map_or(String::new(), |place| format!(" ({place})"));
        let drops: String = drops.iter().map(|drops| format!(", {drops}it")).collect();
        return format!(
            "{} into a scratch file{scratch} in {path}{place}{drops}, removed afterwards",
            limit("writes", plan.scratch_write_bytes_max())
        );
    }
    let writes = plan.writes();
    // The speed of the disk decides how much a survey writes.
    let surveyed = plan
        .survey
        .as_ref()
        .is_some_and(|survey| survey.operation == OpKind::Write);
    let most = plan.write_bytes_max().filter(|_| !surveyed);
    if !writes {
        return format!("writes nothing to {path}");
    }
    let (noun, preposition) = match identity.kind {
        TargetKind::BlockDevice => ("device", "to"),
        _ => ("file", "into"),
    };
    let writes_data = surveyed || plan.workloads.iter().any(|w| w.makes(OpKind::Write));
    let written = writes_data.then(|| format!("{} {preposition} ", limit("writes", most)));
    let whole = format!("the {noun} {path}");
    let objects = std::iter::once(whole.as_str()).chain(std::iter::repeat("it"));
    let parts = written.into_iter().chain(drops).zip(objects);
    let parts: Vec<String> = parts.map(|(part, object)| part + object).collect();
    format!("{}; its content is lost", parts.join(" and "))
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

/// The free space that remains during the run.
fn space_text(plan: &Plan, identity: &TargetIdentity) -> Option<String> {
    let files = plan.files.as_ref().map(FilesPlan::set_bytes);
    let (scratch, free) = (plan.scratch_bytes.or(files)?, free_bytes(identity)?);
    let left = glue(&format_bytes(free.saturating_sub(scratch)));
    (identity.kind == TargetKind::Directory).then(|| {
        format!(
            "{left} of {} free space remain during the run",
            glue(&format_bytes(free))
        )
    })
}

fn target_text(identity: &TargetIdentity) -> String {
    format!(
        "{} ({}, {})",
        identity.path,
        labels::target_kind(identity.kind),
        glue(&format_bytes(identity.size_bytes))
    )
}

/// The workloads in order.
fn workloads(plan: &Plan) -> Table {
    let groups = plan.groups();
    let rows = groups.flat_map(|group| {
        let workloads = group.workloads.iter();
        workloads.map(move |workload| Row::from(workload_row(group, workload)))
    });
    let words = |name: &str| Column::new(name, Align::Left);
    let number = |name: &str| Column::new(name, Align::Right);
    Table {
        caption: "Workloads".to_owned(),
        columns: vec![
            words("workload"),
            number("block"),
            number("depth"),
            words("access"),
            number("time"),
            number("bytes"),
        ],
        rows: rows.collect(),
        ..Table::default()
    }
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
        labels::block(workload.block_bytes, &workload.block_mix),
        labels::depth(workload.depth, workload.workers),
        access_text(workload),
        time,
        bytes,
    ]
}

/// The order of offsets and the operations.
fn access_text(workload: &Workload) -> String {
    let operation = labels::operation(&workload.streams, workload.sync);
    let mut facts = vec![format!("{} {operation}", labels::access(&workload.access))];
    facts.extend(
        workload
            .span
            .length_bytes
            .map(|length| labels::span(workload.span.start_bytes, length)),
    );
    facts.extend(labels::offered(workload.rate));
    if workload.cache != CachePolicy::Direct {
        facts.push(labels::cache(workload.cache).to_owned());
    }
    facts.join(", ")
}

/// The meaning of the limits, and the precision that ends a workload earlier.
fn ends(plan: &Plan) -> Block {
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
            format_percent(widest)
        } else {
            format!("{} to {}", format_percent(finest), format_percent(widest))
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
            " + runs at the same time as the one above; the first to reach a limit ends all.",
        );
    }
    Block::text(Tone::Dim, text)
}
