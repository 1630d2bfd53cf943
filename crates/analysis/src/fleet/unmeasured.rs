//! Finds the targets that a run was to measure and has no figure of: a disk that answered nothing
//! is reported as missing.

use super::launch::Launch;
use super::row::Row;
use diskproof_model::fleet::MissingRow;
use diskproof_model::plan::Task;
use diskproof_model::record::Record;
use std::collections::BTreeMap;

/// A target without a figure.
#[derive(Debug)]
pub(super) struct UnmeasuredTarget {
    host: String,
    target: String,
    launch: Launch,
    /// The name as a missing row: with the path where the run has several targets.
    name: String,
    /// Why it has no figure, in a clause.
    why: String,
    /// True if its search came to its end and promises no rate.
    is_undecided: bool,
}

/// The targets of a record that its plan was to measure, without those that it did.
pub(super) fn unmeasured_targets(record: &Record, measured: &[usize]) -> Vec<UnmeasuredTarget> {
    let host = &record.host.name;
    let mut unmeasured = Vec::new();
    for (index, target) in record.targets.iter().enumerate() {
        if measured.contains(&index) || !is_to_be_measured(record, index) {
            continue;
        }
        let mut name = host_name(record);
        if record.targets.len() > 1 {
            name.push_str(&format!(" {}", target.path));
        }
        unmeasured.push(UnmeasuredTarget {
            host: host.clone(),
            target: target.path.clone(),
            launch: Launch::of_record(record, target),
            name,
            why: why_unmeasured(record),
            is_undecided: has_search(record) && record.ended_early.is_none(),
        });
    }
    unmeasured
}

/// Returns `true` if a run searched a rate, which its rows say nothing about.
fn has_search(record: &Record) -> bool {
    record.load().is_some() || record.rays().is_some()
}

fn why_unmeasured(record: &Record) -> String {
    match (&record.ended_early, has_search(record)) {
        (Some(why), true) => format!("its search for a rate ended early: {why}"),
        (Some(why), false) => format!("its run measured nothing: {why}"),
        (None, true) => undecided_search_text(record),
        (None, false) => "its run measured nothing".to_owned(),
    }
}

fn undecided_search_text(record: &Record) -> String {
    match record.load() {
        Some(load) => {
            let outcome = load.figures.outcome.as_str();
            format!("its search for a rate is undecided ({outcome})")
        }
        None => "its searches for a rate are undecided".to_owned(),
    }
}

/// The host of a record on pages, with its rank where it has one.
pub(super) fn host_name(record: &Record) -> String {
    match record.host.rank {
        Some(rank) => format!("{} #{}", record.host.name, rank.rank),
        None => record.host.name.clone(),
    }
}

/// Returns `true` if the plan of a record gives figures of this target that a fleet compares.
fn is_to_be_measured(record: &Record, target: usize) -> bool {
    record.plan.tasks.iter().any(|task| match task {
        Task::Workloads(_) | Task::Ping(_) => task
            .inner()
            .workloads()
            .iter()
            .any(|workload| workload.runs_on(target)),
        // The server lies on the first target.
        Task::Files(_) | Task::Inserts(_) => target == 0,
        // A survey that ran to its end may only have looked for unreadable blocks.
        Task::Survey(_) => target == 0 && record.partial,
        // A test with a result is in the table of tests.
        Task::Accept(_) => target == 0 && record.accept().is_none(),
    })
}

/// The targets as missing rows, each once, without those of which another run has figures.
pub(super) fn missing_rows(unmeasured: &[UnmeasuredTarget], rows: &[Row]) -> Vec<MissingRow> {
    let mut missing = BTreeMap::new();
    for target in unmeasured {
        let has_figures = rows.iter().any(|row| {
            row.host == target.host
                && row.target == target.target
                && row.runs.iter().any(|run| {
                    !run.values.is_empty() && !run.launch.may_be_other_machine(&target.launch)
                })
        });
        if !has_figures {
            missing.insert(&target.name, target);
        }
    }
    let mut rows = Vec::new();
    for (name, target) in missing {
        rows.push(MissingRow {
            count: None,
            name: name.clone(),
            why: target.why.clone(),
            undecided: target.is_undecided,
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::files::{files_plan, files_record};
    use crate::fixture::inserted::inserted;
    use crate::fixture::searched::answer;
    use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord};
    use diskproof_model::record::TaskResult;
    use diskproof_model::target::Rank;

    /// The record with a second target.
    fn on_two_targets(mut record: Record) -> Record {
        let mut other = fixture::target();
        other.path = "/other".to_owned();
        record.plan.targets.push(other.path.clone());
        record.targets.push(other);
        record
    }

    fn names(unmeasured: &[UnmeasuredTarget]) -> Vec<&str> {
        let mut names = Vec::new();
        for target in unmeasured {
            names.push(target.name.as_str());
        }
        names
    }

    #[test]
    fn workloads_are_to_measure_each_target() {
        let mut record = on_two_targets(fixture::record());
        assert_eq!(names(&unmeasured_targets(&record, &[0, 1])), [""; 0]);
        assert_eq!(names(&unmeasured_targets(&record, &[0])), ["db1 /other"]);
        record.host.rank = Some(Rank {
            rank: 3,
            size: Some(4),
        });
        let both = unmeasured_targets(&record, &[]);
        assert_eq!(names(&both), ["db1 #3 /data", "db1 #3 /other"]);
        for workload in record.plan.workloads_mut() {
            workload.target = Some(0);
        }
        assert_eq!(names(&unmeasured_targets(&record, &[0])), [""; 0]);
    }

    #[test]
    fn files_and_inserts_are_to_measure_the_first_target() {
        for record in [
            files_record("files", files_plan(), Vec::new()),
            inserted("inserts", &[400.0, 401.0]),
        ] {
            let on_two = on_two_targets(record);
            let unmeasured = unmeasured_targets(&on_two, &[]);
            assert_eq!(names(&unmeasured), ["db1 /data"], "{:?}", on_two.plan.tasks);
        }
    }

    /// A search that came to its end has answered, though not with a rate. One that was stopped
    /// has not.
    #[test]
    fn search_to_its_end_without_a_rate_is_undecided() {
        let searched = vec![TaskResult::Load(Box::new(LoadRecord {
            data: LoadData::default(),
            figures: answer(LoadOutcome::NotHeld, 300.0, 0.05),
        }))];
        for (results, ended_early, is_undecided) in [
            (searched.clone(), None, true),
            (searched, Some("interrupted".to_owned()), false),
            (Vec::new(), None, false),
        ] {
            let mut record = fixture::record();
            record.results = results;
            record.ended_early = ended_early;
            let mut unmeasured = unmeasured_targets(&record, &[]);
            // The next run of the host says the same: it is missing once.
            unmeasured.extend(unmeasured_targets(&record, &[]));
            let missing = missing_rows(&unmeasured, &[]);
            assert_eq!(missing.len(), 1);
            assert_eq!(missing[0].undecided, is_undecided, "{}", missing[0].why);
        }
    }
}
