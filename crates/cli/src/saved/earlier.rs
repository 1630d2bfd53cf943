//! Earlier runs in the history that show how much figures vary from run to run. Their absence is
//! never an error: a comparison does not need them.

use super::judged::judged_quietly;
use diskproof_history::{Filter, History, HistoryError};
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::TargetIdentity;

/// Most earlier runs of one target and plan that are read: more change Student's t by less than
/// 5 %, and an old disk is another disk.
const EARLIER_RUNS_MAX: usize = 20;
/// Runs of the history that are searched for them, the newest.
const SEARCHED_MAX: u64 = 1000;

/// An earlier run.
pub(crate) struct EarlierRun {
    /// The user's name for it.
    pub(crate) label: Option<String>,
    /// What it recorded.
    pub(crate) record: Record,
}

/// What a run shares with its repetitions, as far as the short form of a saved run tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKey {
    verb: String,
    method: u32,
    host: String,
    paths: Vec<String>,
}

impl RunKey {
    /// Of a run that has ended just now, or is recorded.
    pub(crate) fn new(plan: &Plan, method: u32, host: &str, targets: &[TargetIdentity]) -> Self {
        Self {
            verb: plan.origin.verb.clone(),
            method,
            host: host.to_owned(),
            paths: targets.iter().map(|t| t.path.clone()).collect(),
        }
    }

    fn is_repeated_by(&self, run: &SavedRun) -> bool {
        (&run.verb, run.method, &run.host, &run.targets)
            == (&self.verb, self.method, &self.host, &self.paths)
    }
}

/// Runs of the history that did the same as one of `records` on the same target, newest first.
/// `compare` decides which of them count.
pub(super) fn find_earlier(
    records: &[&Record],
    history: &History,
) -> Result<Vec<EarlierRun>, HistoryError> {
    let mut keys: Vec<RunKey> = Vec::new();
    for one in records {
        let key = RunKey::new(&one.plan, one.method, &one.host.name, &one.targets);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let ids: Vec<&str> = records.iter().map(|r| r.run_id.as_str()).collect();
    repetitions(&keys, &ids, history)
}

/// Runs of the history that did the same, newest first, without those of these ids.
pub(super) fn repetitions(
    keys: &[RunKey],
    without: &[&str],
    history: &History,
) -> Result<Vec<EarlierRun>, HistoryError> {
    let listed = history.list(&Filter {
        limit: Some(SEARCHED_MAX),
        ..Filter::default()
    })?;
    let mut earlier = Vec::new();
    for key in keys {
        let is_meant =
            |run: &&SavedRun| key.is_repeated_by(run) && !without.contains(&run.run_id.as_str());
        let of_key = listed.runs.iter().filter(is_meant);
        for run in of_key.take(EARLIER_RUNS_MAX) {
            // A run that cannot be read, or that another process removed, shows nothing.
            if let Ok(Some(stored)) = history.get(&run.run_id) {
                earlier.push(EarlierRun {
                    label: run.label.clone(),
                    record: judged_quietly(stored).record.without_data(),
                });
            }
        }
    }
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use super::RunKey;
    use crate::saved::{HistoryOptions, earlier_runs, keep, load_all, runs_before};
    use diskproof_analysis::fixture;

    /// Twenty runs of 39 workloads took 750 MB with their data.
    #[test]
    fn runs_beside_the_newest_one_are_read_without_their_data() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("history.db");
        let options = HistoryOptions {
            history: Some(path.clone()),
            ..HistoryOptions::default()
        };
        let record = fixture::checked(fixture::record());
        assert!(record.data.is_some());
        keep(&record, "", &options);
        let mut next = record.clone();
        next.run_id = "another".to_owned();
        let key = RunKey::new(&next.plan, next.method, &next.host.name, &next.targets);
        let before = runs_before(&key, &options);
        let earlier = earlier_runs(&[&next], Some(&path));
        let earlier = earlier.into_iter().map(|run| run.record);
        let named = load_all("latest", Some(&path)).unwrap();
        for found in [before, earlier.collect(), named] {
            let [found] = &found[..] else {
                panic!("{found:?}");
            };
            assert!(found.data.is_none());
            assert_eq!(found.measurements, record.measurements);
        }
    }
}
