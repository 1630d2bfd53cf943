//! Names the rows of a fleet: by their host, and by a property that distinguishes rows of one host.
//! Names of different hosts differ because a host's name has no space.

use super::row::{Row, RowScope};
use diskproof_model::target::TargetKind;
use std::collections::{BTreeMap, BTreeSet};

/// The name of each row; all are different. `kinds` has the kind of each row's target, in the same
/// order. Rows of a host that nothing else distinguishes are numbered.
pub(super) fn row_names(rows: &[Row], kinds: &[TargetKind]) -> Vec<String> {
    assert_eq!(rows.len(), kinds.len());
    let mut hosts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        hosts.entry(&row.host).or_default().push(index);
    }
    let mut names = vec![String::new(); rows.len()];
    for row_indices in hosts.values() {
        for name_row in NAMINGS {
            let mut distinct_names = BTreeSet::new();
            for index in row_indices {
                distinct_names.insert(name_row(&rows[*index], kinds[*index]));
            }
            if distinct_names.len() == row_indices.len() {
                for index in row_indices {
                    names[*index] = name_row(&rows[*index], kinds[*index]);
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
    debug_assert!(
        BTreeSet::from_iter(&names).len() == names.len(),
        "two rows have one name: {names:?}"
    );
    names
}

/// Ways to name a row, the shortest first. A host takes the first one by which its rows differ.
const NAMINGS: [fn(&Row, TargetKind) -> String; 8] = [
    name_with_host,
    name_with_disks,
    name_with_target,
    name_with_rank,
    name_with_rank_and_target,
    name_with_scope,
    name_with_scope_and_target,
    name_with_serials,
];

/// The host alone. A device shows its disk at once, because its path may change at each boot.
fn name_with_host(row: &Row, kind: TargetKind) -> String {
    match kind {
        TargetKind::BlockDevice => name_with_disks(row, kind),
        TargetKind::Directory | TargetKind::File => row.host.clone(),
    }
}

fn name_with_disks(row: &Row, _kind: TargetKind) -> String {
    format!("{}{}", row.host, disks_text(row))
}

fn name_with_target(row: &Row, _kind: TargetKind) -> String {
    format!("{} {}", row.host, row.target)
}

/// Ranks of one launcher on one host often measure the same target.
fn name_with_rank(row: &Row, _kind: TargetKind) -> String {
    format!("{}{}", row.host, rank_text(row))
}

fn name_with_rank_and_target(row: &Row, _kind: TargetKind) -> String {
    format!("{}{} {}", row.host, rank_text(row), row.target)
}

/// Machines of one name are named by what distinguishes them.
fn name_with_scope(row: &Row, _kind: TargetKind) -> String {
    format!("{}{}{}", row.host, rank_text(row), scope_text(row))
}

fn name_with_scope_and_target(row: &Row, kind: TargetKind) -> String {
    format!("{} {}", name_with_scope(row, kind), row.target)
}

fn name_with_serials(row: &Row, kind: TargetKind) -> String {
    format!(
        "{} {}",
        name_with_rank_and_target(row, kind),
        row.serials.join(" + ")
    )
}

fn disks_text(row: &Row) -> String {
    if row.disks.is_empty() {
        String::new()
    } else {
        format!(" {}", row.disks.join("+"))
    }
}

fn rank_text(row: &Row) -> String {
    match row.rank {
        Some(rank) => format!(" #{rank}"),
        None => String::new(),
    }
}

/// The beginning of an id is enough to distinguish a few machines.
const ID_DIGITS: usize = 8;

fn scope_text(row: &Row) -> String {
    let (word, id) = match &row.scope {
        RowScope::AllRuns => return String::new(),
        RowScope::Machine(id) => ("machine", id),
        RowScope::Run(id) => ("run", id),
    };
    let digits: String = id.chars().take(ID_DIGITS).collect();
    format!(" ({word} {digits})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: &str, disk: &str, target: &str) -> Row {
        Row {
            host: host.to_owned(),
            rank: None,
            target: target.to_owned(),
            disks: vec![disk.to_owned()],
            serials: Vec::new(),
            kind: 0,
            scope: RowScope::AllRuns,
            identity: None,
            runs: Vec::new(),
        }
    }

    fn directory_names(rows: &[Row]) -> Vec<String> {
        row_names(rows, &vec![TargetKind::Directory; rows.len()])
    }

    #[test]
    fn host_is_enough_for_its_only_directory() {
        let rows = [row("db1", "sda", "/data"), row("db2", "sda", "/data")];
        assert_eq!(directory_names(&rows), ["db1", "db2"]);
    }

    #[test]
    fn device_shows_its_disk() {
        let rows = [row("db1", "sda", "/dev/sda")];
        assert_eq!(row_names(&rows, &[TargetKind::BlockDevice]), ["db1 sda"]);
    }

    #[test]
    fn directories_of_a_host_are_named_by_the_first_property_that_differs() {
        let by_disk = [row("db1", "sda", "/a"), row("db1", "sdb", "/b")];
        assert_eq!(directory_names(&by_disk), ["db1 sda", "db1 sdb"]);
        let name_with_target = [row("db1", "sda", "/a"), row("db1", "sda", "/b")];
        assert_eq!(directory_names(&name_with_target), ["db1 /a", "db1 /b"]);
        let mut name_with_rank = [row("db1", "sda", "/a"), row("db1", "sda", "/a")];
        (name_with_rank[0].rank, name_with_rank[1].rank) = (Some(0), Some(1));
        assert_eq!(directory_names(&name_with_rank), ["db1 #0", "db1 #1"]);
    }

    #[test]
    fn scope_shows_the_beginning_of_its_id() {
        let mut rows = [row("db1", "sda", "/a"), row("db1", "sda", "/a")];
        rows[0].scope = RowScope::Machine("0123456789abcdef".to_owned());
        rows[1].scope = RowScope::Run("fedcba9876543210".to_owned());
        assert_eq!(
            directory_names(&rows),
            ["db1 (machine 01234567)", "db1 (run fedcba98)"]
        );
    }

    #[test]
    fn rows_without_a_difference_are_numbered() {
        let rows = [row("db1", "sda", "/a"), row("db1", "sda", "/a")];
        assert_eq!(directory_names(&rows), ["db1 (1)", "db1 (2)"]);
    }
}
