//! The names of rows: the host, and what distinguishes rows of one host.

use super::groups::Row;
use diskproof_model::target::TargetKind;
use std::collections::{BTreeMap, BTreeSet};

/// The name of each row; all are different.
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

/// Ways to name a row, the shortest first.
const NAMES: [fn(&Row, TargetKind) -> String; 6] = [
    |row, kind| match kind {
        TargetKind::BlockDevice => format!("{}{}", row.host, disks(row)),
        TargetKind::Directory | TargetKind::File => row.host.clone(),
    },
    |row, _| format!("{}{}", row.host, disks(row)),
    |row, _| format!("{} {}", row.host, row.target),
    |row, _| format!("{}{}", row.host, rank(row)),
    |row, _| format!("{}{} {}", row.host, rank(row), row.target),
    |row, _| {
        let serials = row.serials.join(" + ");
        format!("{}{} {} {serials}", row.host, rank(row), row.target)
    },
];

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
