//! What a run does to its targets, in words: what it sends, how long it takes, what it writes and
//! destroys, and the space that it takes meanwhile.

use super::longest_time::longest_time_text;
use crate::text::{clean, glue, joined, wrap};
use diskproof_model::budget::{Budget, TargetUse};
use diskproof_model::files::FILES_DIRECTORY;
use diskproof_model::plan::{ByteLimit, Ping, Plan};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_duration, format_rate};

/// Says what a run sends, how long it takes at most and what it writes to each target, in one line
/// without a line break. Printed before the first write.
pub fn budget_line(plan: &Plan, identities: &[TargetIdentity]) -> String {
    let text = clean(&budget_text(plan, &plan.budget(identities), identities));
    wrap(&text, usize::MAX, usize::MAX).concat()
}

pub(super) fn budget_text(plan: &Plan, budget: &Budget, identities: &[TargetIdentity]) -> String {
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
            for limit in drop_texts(budget) {
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
    for limit in drop_texts(budget) {
        parts.push(format!("{limit} of"));
    }
    let mut object = format!("the {noun} {}", identity.path);
    for part in &mut parts {
        part.push_str(&format!(" {object}"));
        object = "it".to_owned();
    }
    format!("{}; its content is lost", parts.join(" and "))
}

/// `trims at most 1 GiB`, for each operation that drops content without writing any.
fn drop_texts(budget: &Budget) -> Vec<String> {
    let mut texts = Vec::new();
    for dropped in &budget.drops {
        texts.push(limit_text(dropped.kind.plural(), dropped.limit, budget));
    }
    texts
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
pub(super) fn space_texts(budget: &Budget, identities: &[TargetIdentity]) -> Vec<String> {
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
