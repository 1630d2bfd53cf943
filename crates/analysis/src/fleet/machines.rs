//! Separates machines that share a name, as pods and clones do: decides which runs of one name and
//! target make one row. Two runs that overlap in time are of two machines, and so are runs of
//! two machine ids. Ranks separate rows only where this is so: the next launch gives a host another
//! rank.

use super::row::{Row, RowScope, RunOfRow};
use diskproof_model::comparison::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// Returns one row or more for each machine that these rows are of. The rows have one host name and
/// one target, and differ in rank alone.
pub(super) fn separate_machines(rows: Vec<Row>) -> Vec<Row> {
    let names: BTreeSet<(&str, &str)> = rows
        .iter()
        .map(|row| (row.host.as_str(), row.target.as_str()))
        .collect();
    debug_assert!(names.len() <= 1, "rows of several names: {names:?}");
    let mut machine_ids = BTreeSet::new();
    for run in rows.iter().flat_map(|row| &row.runs) {
        machine_ids.extend(run.launch.machine.clone());
    }
    if machine_ids.len() < 2 {
        return separate_overlapping_runs(rows);
    }
    let mut rows_by_machine: BTreeMap<Option<String>, Vec<Row>> = BTreeMap::new();
    for row in rows {
        for (machine, row) in split_by_machine(row) {
            rows_by_machine.entry(machine).or_default().push(row);
        }
    }
    let mut separated = Vec::new();
    for rows in rows_by_machine.into_values() {
        separated.extend(separate_overlapping_runs(rows));
    }
    separated
}

/// Splits a row by the machine ids of its runs. Runs without a machine id stay together.
fn split_by_machine(mut row: Row) -> BTreeMap<Option<String>, Row> {
    let mut rows: BTreeMap<Option<String>, Row> = BTreeMap::new();
    for run in std::mem::take(&mut row.runs) {
        let machine = run.launch.machine.clone();
        let (scope, identity) = match &machine {
            Some(machine) => (
                RowScope::Machine(machine.clone()),
                Some(other_machine_reason()),
            ),
            // One row only if something else proves it.
            None => (RowScope::AllRuns, None),
        };
        rows.entry(machine)
            .or_insert_with(|| row_without_runs(&row, scope, identity))
            .runs
            .push(run);
    }
    rows
}

/// Separates rows whose runs do not differ in machine id: into one row, one for each rank, or one
/// for each run. They stay one row unless two of their runs may be of different machines.
fn separate_overlapping_runs(rows: Vec<Row>) -> Vec<Row> {
    let mut separated = Vec::new();
    let is_of_one_machine = !has_pair(&rows, |one, other| {
        one.launch.may_be_other_machine(&other.launch)
    });
    if is_of_one_machine {
        separated.extend(joined_row(rows));
        return separated;
    }
    for row in rows {
        let has_overlap = has_pair(std::slice::from_ref(&row), |one, other| {
            one.launch.overlaps(&other.launch)
        });
        if has_overlap {
            separated.extend(row_for_each_run(row));
        } else {
            separated.extend(joined_row(vec![row]));
        }
    }
    separated
}

/// Returns `true` if any two runs of these rows match.
fn has_pair(rows: &[Row], is_match: impl Fn(&RunOfRow, &RunOfRow) -> bool) -> bool {
    let mut earlier_runs: Vec<&RunOfRow> = Vec::new();
    for run in rows.iter().flat_map(|row| &row.runs) {
        if earlier_runs.iter().any(|other| is_match(run, other)) {
            return true;
        }
        earlier_runs.push(run);
    }
    false
}

/// A row for each run of a row.
fn row_for_each_run(mut row: Row) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in std::mem::take(&mut row.runs) {
        let scope = RowScope::Run(run.run.run_id.clone());
        let mut row_of_run = row_without_runs(&row, scope, Some(overlap_reason()));
        row_of_run.runs.push(run);
        rows.push(row_of_run);
    }
    rows
}

/// A row for some of the runs of this one, still without them.
fn row_without_runs(row: &Row, scope: RowScope, identity: Option<Reason>) -> Row {
    Row {
        host: row.host.clone(),
        rank: row.rank,
        target: row.target.clone(),
        disks: row.disks.clone(),
        serials: row.serials.clone(),
        kind: row.kind,
        scope,
        identity,
        runs: Vec::new(),
    }
}

/// Joins the runs of all rows in one, which has no rank if the rows differ in it; `None` without
/// rows.
fn joined_row(rows: Vec<Row>) -> Option<Row> {
    let mut rows = rows.into_iter();
    let mut joined = rows.next()?;
    for row in rows {
        if row.rank != joined.rank {
            joined.rank = None;
        }
        joined.runs.extend(row.runs);
    }
    let first = joined.runs.first()?;
    let is_proven = joined
        .runs
        .iter()
        .skip(1)
        .all(|run| run.launch.is_surely_same_place(&first.launch));
    if !is_proven && joined.identity.is_none() {
        joined.identity = Some(unproven_reason());
    }
    Some(joined)
}

// The codes of these reasons stand in saved fleets: a changed one breaks their readers.

/// The reason of a row that machine ids separate from others.
fn other_machine_reason() -> Reason {
    Reason {
        code: "other-machine".to_owned(),
        why: "several machines have this name; their machine ids differ".to_owned(),
    }
}

/// The reason of a row that the time separates from others.
fn overlap_reason() -> Reason {
    Reason {
        code: "at-once".to_owned(),
        why: "runs of this name overlap in time, so they are of several machines. Each run is a \
              row, because nothing tells which runs are of one machine"
            .to_owned(),
    }
}

/// The reason of a row whose runs may be of several machines.
fn unproven_reason() -> Reason {
    Reason {
        code: "unproven".to_owned(),
        why: "nothing proves that the runs averaged here are of one machine".to_owned(),
    }
}
