//! The names of rows: the host, and what distinguishes rows of one host. Names of different hosts
//! differ because a host's name has no space.

use super::row::{Part, Row};
use diskproof_model::target::TargetKind;
use std::collections::{BTreeMap, BTreeSet};

/// The name of each row; all are different. Where nothing else tells rows of a host apart, they are
/// numbered.
pub(super) fn names(rows: &[Row], kinds: &[TargetKind]) -> Vec<String> {
    let mut hosts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        hosts.entry(&row.host).or_default().push(index);
    }
    let mut names = vec![String::new(); rows.len()];
    for row_indices in hosts.values() {
        for name_of in NAMES {
            let mut distinct = BTreeSet::new();
            for index in row_indices {
                distinct.insert(name_of(&rows[*index], kinds[*index]));
            }
            if distinct.len() == row_indices.len() {
                for index in row_indices {
                    names[*index] = name_of(&rows[*index], kinds[*index]);
                }
                break;
            }
        }
        for (number, index) in row_indices.iter().enumerate() {
            if names[*index].is_empty() {
                names[*index] = format!("{} ({})", rows[*index].host, number + 1);
            }
        }
    }
    names
}

/// Ways to name a row, the shortest first. A host takes the first one by which its rows differ.
const NAMES: [fn(&Row, TargetKind) -> String; 8] = [
    by_host,
    by_disks,
    by_target,
    by_rank,
    by_rank_and_target,
    by_part,
    by_part_and_target,
    by_serials,
];

/// The host alone. A device shows its disk at once, because its path may change at each boot.
fn by_host(row: &Row, kind: TargetKind) -> String {
    match kind {
        TargetKind::BlockDevice => by_disks(row, kind),
        TargetKind::Directory | TargetKind::File => row.host.clone(),
    }
}

fn by_disks(row: &Row, _kind: TargetKind) -> String {
    format!("{}{}", row.host, disks(row))
}

fn by_target(row: &Row, _kind: TargetKind) -> String {
    format!("{} {}", row.host, row.target)
}

/// Ranks of one launcher on one host often measure the same target.
fn by_rank(row: &Row, _kind: TargetKind) -> String {
    format!("{}{}", row.host, rank(row))
}

fn by_rank_and_target(row: &Row, _kind: TargetKind) -> String {
    format!("{}{} {}", row.host, rank(row), row.target)
}

/// Machines of one name are told apart by what parted them.
fn by_part(row: &Row, _kind: TargetKind) -> String {
    format!("{}{}{}", row.host, rank(row), part(row))
}

fn by_part_and_target(row: &Row, kind: TargetKind) -> String {
    format!("{} {}", by_part(row, kind), row.target)
}

fn by_serials(row: &Row, kind: TargetKind) -> String {
    format!(
        "{} {}",
        by_rank_and_target(row, kind),
        row.serials.join(" + ")
    )
}

fn disks(row: &Row) -> String {
    if row.disks.is_empty() {
        String::new()
    } else {
        format!(" {}", row.disks.join("+"))
    }
}

fn rank(row: &Row) -> String {
    match row.rank {
        Some(rank) => format!(" #{rank}"),
        None => String::new(),
    }
}

/// The beginning of an id is enough to tell a few apart.
const ID_DIGITS: usize = 8;

fn part(row: &Row) -> String {
    let (word, id) = match &row.part {
        Part::All => return String::new(),
        Part::Machine(id) => ("machine", id),
        Part::Run(id) => ("run", id),
    };
    let digits: String = id.chars().take(ID_DIGITS).collect();
    format!(" ({word} {digits})")
}
