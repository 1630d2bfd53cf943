//! Machines that share a name, as pods and clones do: which runs of a host's name and target are
//! one row. Two runs that overlap in time are of two machines, and so are runs of two machine ids.
//! Ranks tell rows apart only where this is so: the next launch gives a host another rank.

use super::row::{Part, Row, RunOfRow};
use diskproof_model::comparison::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// The rows of the machines that these rows are of, which differ in rank alone.
pub(super) fn rows_of_machines(rows: Vec<Row>) -> Vec<Row> {
    let mut machines = BTreeSet::new();
    for run in rows.iter().flat_map(|row| &row.runs) {
        machines.extend(run.launch.machine.clone());
    }
    if machines.len() < 2 {
        return rows_of_machine(rows);
    }
    let mut rows_by_machine: BTreeMap<Option<String>, Vec<Row>> = BTreeMap::new();
    for row in rows {
        for (machine, row) in parts_by_machine(row) {
            rows_by_machine.entry(machine).or_default().push(row);
        }
    }
    let mut parted = Vec::new();
    for rows in rows_by_machine.into_values() {
        parted.extend(rows_of_machine(rows));
    }
    parted
}

/// Splits a row by the machines of its runs. Runs of unknown machines stay together.
fn parts_by_machine(mut row: Row) -> BTreeMap<Option<String>, Row> {
    let mut parts: BTreeMap<Option<String>, Row> = BTreeMap::new();
    for run in std::mem::take(&mut row.runs) {
        let machine = run.launch.machine.clone();
        let (part, identity) = match &machine {
            Some(machine) => (Part::Machine(machine.clone()), Some(other_machine())),
            // One row only if something else proves it.
            None => (Part::All, None),
        };
        parts
            .entry(machine)
            .or_insert_with(|| part_of_row(&row, part, identity))
            .runs
            .push(run);
    }
    parts
}

/// The rows of runs that are of one machine as far as their machine ids tell: one row, one for each
/// rank, or one for each run.
fn rows_of_machine(rows: Vec<Row>) -> Vec<Row> {
    let mut parted = Vec::new();
    if !has_pair(&rows, |one, other| one.launch.is_apart(&other.launch)) {
        parted.extend(joined_row(rows));
        return parted;
    }
    for row in rows {
        let is_of_several = has_pair(std::slice::from_ref(&row), |one, other| {
            one.launch.is_at_once(&other.launch)
        });
        if is_of_several {
            parted.extend(row_for_each_run(row));
        } else {
            parted.extend(joined_row(vec![row]));
        }
    }
    parted
}

/// Returns `true` if this holds for two runs of these rows.
fn has_pair(rows: &[Row], holds: impl Fn(&RunOfRow, &RunOfRow) -> bool) -> bool {
    let mut earlier: Vec<&RunOfRow> = Vec::new();
    for run in rows.iter().flat_map(|row| &row.runs) {
        if earlier.iter().any(|other| holds(run, other)) {
            return true;
        }
        earlier.push(run);
    }
    false
}

/// A row for each run of a row.
fn row_for_each_run(mut row: Row) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in std::mem::take(&mut row.runs) {
        let part = Part::Run(run.run.run_id.clone());
        let mut own = part_of_row(&row, part, Some(at_once()));
        own.runs.push(run);
        rows.push(own);
    }
    rows
}

/// A row without runs that is a part of this one.
fn part_of_row(row: &Row, part: Part, identity: Option<Reason>) -> Row {
    Row {
        host: row.host.clone(),
        rank: row.rank,
        target: row.target.clone(),
        disks: row.disks.clone(),
        serials: row.serials.clone(),
        kind: row.kind,
        part,
        identity,
        runs: Vec::new(),
    }
}

/// One row of the runs of all these, without a rank where they differ in it; `None` of no rows.
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
        .all(|run| run.launch.is_of_same_place(&first.launch));
    if !is_proven && joined.identity.is_none() {
        joined.identity = Some(unproven());
    }
    Some(joined)
}

/// Says that machine ids part the row from others.
fn other_machine() -> Reason {
    Reason {
        code: "other-machine".to_owned(),
        why: "several machines have this name; their machine ids differ".to_owned(),
    }
}

/// Says that the time parts the runs of a name.
fn at_once() -> Reason {
    Reason {
        code: "at-once".to_owned(),
        why: "runs of this name overlap in time, so they are of several machines. Each run is a \
              row, because nothing tells which runs are of one machine"
            .to_owned(),
    }
}

/// Says that runs were averaged that may be of several machines.
fn unproven() -> Reason {
    Reason {
        code: "unproven".to_owned(),
        why: "nothing proves that the runs averaged here are of one machine".to_owned(),
    }
}
