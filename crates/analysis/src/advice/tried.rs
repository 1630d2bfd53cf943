//! Changes the advice on PostgreSQL settings to what a run tried on a server. A measured gain or
//! loss decides a setting, and so does a trial that showed no effect. The outcome of any other
//! trial is added to the advice that the figures gave.
//!
//! The advice is in this order: settings with a basis in figures or trials, then
//! [`BEFORE_SETTING`], then [`UNSAFE_SETTINGS`]. The settings that nobody should change come last.

use super::reasons_against::leave_alone;
use super::wal_sync_method::SETTING as WAL_SYNC_METHOD;
use diskproof_model::advice::{Advice, may_have_setting};
use diskproof_model::digits::{figure_to_digits, rounded};
use diskproof_model::finding::Cause;
use diskproof_model::postgres::{TrialOutcome, TrialRow, major_version};
use diskproof_model::record::Record;

/// Settings that make a server faster at the price of its data. No trial changes them, so that they
/// have one entry for both.
const UNSAFE_SETTINGS: &str = "fsync, synchronous_commit";
/// The reason why they were not tried.
const UNSAFE_WHY: &str = "Not tried: off is faster only because a crash then loses data.";

/// A tried setting on which the figures gave no advice is inserted before this one.
const BEFORE_SETTING: &str = "full_page_writes";

/// The largest value that io_combine_limit may have.
const COMBINE_LIMIT: &str = "io_max_combine_limit";

/// Changes the advice that the figures gave to what the trials of a record showed, and adds the
/// settings that were only tried. `advice` must already have its entry on [`BEFORE_SETTING`].
pub(super) fn apply_trials(record: &Record, advice: &mut Vec<Advice>) {
    let Some(postgres) = record.postgres() else {
        return;
    };
    if postgres.trials.is_empty() {
        return;
    }
    // An unknown version may have it: its line for the server's file is a comment then.
    let version = record.plan.questions.postgres_version;
    let has_combine_limit = may_have_setting(version, COMBINE_LIMIT);
    let is_of_other_version = match (version, major_version(&postgres.version)) {
        (Some(asked), Some(tried)) => asked != tried,
        _ => false,
    };
    advice.push(leave_alone(UNSAFE_SETTINGS, UNSAFE_WHY.to_owned(), &[]));
    for tried in &postgres.trials {
        let index = find_or_insert(tried.data.trial.setting.as_str(), advice);
        if is_of_other_version {
            // Other versions have other defaults, and a value may mean something else there.
            add_outcome(tried, &postgres.version, &mut advice[index]);
            continue;
        }
        apply_trial(tried, record, &mut advice[index]);
        if has_combine_limit && let Some(limit) = combine_limit_advice(tried) {
            advice.insert(index, limit);
        }
    }
}

/// The index of the advice on a setting. If there is none, an empty one is inserted.
fn find_or_insert(setting: &str, advice: &mut Vec<Advice>) -> usize {
    if let Some(index) = advice.iter().position(|entry| entry.setting == setting) {
        return index;
    }
    let index = advice
        .iter()
        .position(|entry| entry.setting == BEFORE_SETTING)
        .unwrap_or(advice.len());
    advice.insert(index, leave_alone(setting, String::new(), &[]));
    index
}

/// Says what a trial on another version showed, which decides nothing.
fn add_outcome(tried: &TrialRow, version: &str, entry: &mut Advice) {
    let outcome = outcome_text(tried);
    let text = format!("Tried on PostgreSQL {version} only: {outcome}");
    put_before_reason(text, entry);
}

/// Puts an outcome before the reason that the figures gave, if they gave one.
fn put_before_reason(outcome: String, entry: &mut Advice) {
    entry.why = if entry.why.is_empty() {
        outcome
    } else {
        format!("{outcome} {}", entry.why)
    };
}

/// Changes the advice on a setting to what its trial showed. A decision of the server replaces the
/// reason that the figures gave, and so does a trial without a gain. Otherwise both reasons stand.
fn apply_trial(tried: &TrialRow, record: &Record, entry: &mut Advice) {
    let trial = &tried.data.trial;
    let outcome = outcome_text(tried);
    if trial.setting == WAL_SYNC_METHOD
        && tried.figures.outcome == TrialOutcome::Faster
        && let Some(code) = doubt_about_flushes(record)
    {
        let why = format!(
            "{outcome} Leave it unchanged, because commits may not be durable here ({code}): a \
             method that skips the flush is faster, too."
        );
        *entry = leave_alone(&trial.setting, why, &[]);
        return;
    }
    match conclusion(tried) {
        Conclusion::Use(value) => {
            entry.why = outcome;
            entry.value = Some(value.to_owned());
            entry.default = Some(trial.default.clone());
            entry.range = None;
            entry.condition = match tried.figures.outcome {
                TrialOutcome::Faster => gain_condition(&trial.setting).map(str::to_owned),
                _ => None,
            };
        }
        Conclusion::NoGain => {
            entry.why = outcome;
            entry.range = None;
            if entry.value == trial.candidate {
                entry.value = None;
            }
        }
        Conclusion::Open => put_before_reason(outcome, entry),
    }
}

/// The code of a finding that acknowledged writes of the run may not be durable. Then the fastest
/// method may be the one that skips the flush, and no trial shows that.
fn doubt_about_flushes(record: &Record) -> Option<&str> {
    record
        .findings
        .iter()
        .find(|finding| finding.is_serious() && finding.says.objection() == Some(Cause::NotDurable))
        .map(|finding| finding.code.as_str())
}

/// The conclusion of a trial on the value of its setting.
enum Conclusion<'a> {
    /// This value is right: the candidate if it was faster, the default if it was not.
    Use(&'a str),
    /// The candidate showed no gain, although its interval still includes one. It is not worth
    /// another try.
    NoGain,
    /// Nothing: the advice from the figures stands.
    Open,
}

/// The conclusion from the outcome of a trial and its gain.
fn conclusion(tried: &TrialRow) -> Conclusion<'_> {
    let trial = &tried.data.trial;
    match (tried.figures.outcome, &tried.figures.gain) {
        (TrialOutcome::Faster, _) => {
            Conclusion::Use(trial.candidate.as_deref().unwrap_or_default())
        }
        (TrialOutcome::Same | TrialOutcome::Slower, _) => Conclusion::Use(&trial.default),
        (TrialOutcome::Undecided, Some(gain)) if gain.value <= 1.0 => Conclusion::NoGain,
        (TrialOutcome::Undecided | TrialOutcome::Unproven | TrialOutcome::Untested, _) => {
            Conclusion::Open
        }
    }
}

/// The advice that a larger `io_combine_limit` needs: a server silently keeps that setting at or
/// below `io_max_combine_limit`. `None` for other settings, and where the trial showed no gain.
fn combine_limit_advice(tried: &TrialRow) -> Option<Advice> {
    let trial = &tried.data.trial;
    if trial.setting != "io_combine_limit" || tried.figures.outcome != TrialOutcome::Faster {
        return None;
    }
    let why = "Since PostgreSQL 18 it must be at least io_combine_limit.".to_owned();
    Some(Advice {
        value: Some(trial.candidate.clone().unwrap_or_default()),
        default: Some(trial.default.clone()),
        ..leave_alone(COMBINE_LIMIT, why, &[])
    })
}

/// The load for which a faster value is right; `None` where it is right for every load.
fn gain_condition(setting: &str) -> Option<&'static str> {
    match setting {
        "effective_io_concurrency" => Some("for bitmap scans of tables larger than the cache"),
        "maintenance_io_concurrency" => Some("for vacuum, analyze and recovery"),
        "random_page_cost" => Some("for uncached tables"),
        "commit_delay" => Some("if 16 sessions commit continuously"),
        _ => None,
    }
}

/// A sentence on the outcome of a trial, such as `Measured gain here: 1.8× ± 0.1 …`.
fn outcome_text(tried: &TrialRow) -> String {
    let comparison = comparison_text(tried);
    let plans = plans_text(tried);
    let Gain { ratio, range } = gain_text(tried);
    match tried.figures.outcome {
        TrialOutcome::Faster => format!("Measured gain here: {ratio} ({comparison}).{plans}"),
        TrialOutcome::Same => {
            format!("No effect here: {range} times as fast ({comparison}).{plans}")
        }
        TrialOutcome::Slower => format!("Measured loss here: {ratio} ({comparison}).{plans}"),
        TrialOutcome::Undecided if tried.figures.gain.is_none() => format!(
            "Not decided: fewer than 3 pairs were measured ({comparison}). Measure longer (--time)."
        ),
        TrialOutcome::Undecided => format!(
            "Not decided: {range} times as fast ({comparison}). Measure longer (--time), or when \
             the machine is quieter."
        ),
        TrialOutcome::Unproven => match tried.figures.read_share {
            Some(share) => format!(
                "Tried, but the disk read only {:.0} % of what the server read: a cache answered.",
                share * 100.0
            ),
            None => "Tried, but it is unknown whether the reads reached the disk.".to_owned(),
        },
        TrialOutcome::Untested => {
            let why = tried
                .data
                .untested
                .as_deref()
                .unwrap_or("it was not reached");
            format!("Not tried: {}.", why.trim_end_matches('.'))
        }
    }
}

/// The two values and their load: `off compared with on, INSERTs of 16 sessions`.
fn comparison_text(tried: &TrialRow) -> String {
    let trial = &tried.data.trial;
    let candidate = trial.candidate.as_deref().unwrap_or("another value");
    let load = trial.load.text();
    let default = &trial.default;
    match trial.clients {
        1 => format!("{candidate} compared with {default}, {load}"),
        clients => format!("{candidate} compared with {default}, {load} of {clients} sessions"),
    }
}

/// A sentence on the plans of the query, which begins with a space; empty of other loads.
fn plans_text(tried: &TrialRow) -> String {
    let trial = &tried.data.trial;
    let default = &trial.default;
    let candidate = trial.candidate.as_deref().unwrap_or("another value");
    match &tried.data.plans {
        None => String::new(),
        Some([by_default, by_candidate]) if by_default == by_candidate => {
            format!(" The plan is a {by_default} in both cases.")
        }
        Some([by_default, by_candidate]) => {
            format!(" {default} makes it a {by_default}, {candidate} a {by_candidate}.")
        }
    }
}

/// The gain of a trial in its two forms; both are empty without a gain.
#[derive(Default)]
struct Gain {
    /// `1.8× ± 0.1`
    ratio: String,
    /// `0.97–1.03`
    range: String,
}

fn gain_text(tried: &TrialRow) -> Gain {
    let Some(gain) = &tried.figures.gain else {
        return Gain::default();
    };
    let half_width = (gain.high_95 - gain.low_95) / 2.0;
    let value = rounded(gain.value, Some(half_width));
    Gain {
        ratio: format!("{value}× ± {}", figure_to_digits(half_width, 1, "1")),
        range: format!("{:.2}–{:.2}", gain.low_95, gain.high_95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::finding::Severity;
    use diskproof_model::postgres::{
        PlannedTrial, PostgresRecord, TrialFigures, TrialGain, TrialLoad, TrialMeasurement,
    };
    use diskproof_model::record::TaskResult;
    use std::collections::BTreeMap;

    fn tried(setting: &str, outcome: TrialOutcome, gain: (f64, f64, f64)) -> TrialRow {
        let trial = PlannedTrial {
            setting: setting.to_owned(),
            default: "1".to_owned(),
            candidate: Some("16".to_owned()),
            load: TrialLoad::BitmapScan,
            clients: 1,
        };
        TrialRow {
            data: TrialMeasurement {
                trial,
                pairs: Vec::new(),
                untested: None,
                asked_bytes: 0,
                disk_bytes: None,
                plans: None,
            },
            figures: TrialFigures {
                outcome,
                gain: Some(TrialGain {
                    value: gain.0,
                    low_95: gain.1,
                    high_95: gain.2,
                }),
                read_share: Some(1.0),
            },
        }
    }

    fn record_with(trials: Vec<TrialRow>) -> Record {
        let mut record = fixture::record();
        record.results.push(TaskResult::Inserts(PostgresRecord {
            version: "15.8".to_owned(),
            loads: Vec::new(),
            trials,
            end_ns: None,
            errors: BTreeMap::new(),
            silence_before_ns: 0,
        }));
        record
    }

    fn advice_of(trials: Vec<TrialRow>) -> Vec<Advice> {
        crate::advice::advised_settings(&record_with(trials))
    }

    fn find<'a>(advice: &'a [Advice], setting: &str) -> &'a Advice {
        advice.iter().find(|a| a.setting == setting).unwrap()
    }

    #[test]
    fn measured_gain_decides_the_setting() {
        let gain = (1.8, 1.7, 1.9);
        let faster = tried("effective_io_concurrency", TrialOutcome::Faster, gain);
        let advice = advice_of(vec![faster]);
        let entry = find(&advice, "effective_io_concurrency");
        assert_eq!(
            (entry.value.as_deref(), entry.changes()),
            (Some("16"), true)
        );
        states(
            &entry.why,
            &["1.8× ± 0.1 (16 compared with 1, bitmap heap scan)"],
        );
        assert_eq!(find(&advice, UNSAFE_SETTINGS).value, None);
    }

    #[test]
    fn setting_without_effect_keeps_its_default_and_an_unproven_one_is_left_alone() {
        let same = tried(
            "maintenance_io_concurrency",
            TrialOutcome::Same,
            (1.0, 0.98, 1.03),
        );
        let mut unproven = tried("io_workers", TrialOutcome::Unproven, (2.0, 1.9, 2.1));
        unproven.figures.read_share = Some(0.4);
        let advice = advice_of(vec![same, unproven]);
        let same = find(&advice, "maintenance_io_concurrency");
        assert_eq!((same.value.as_deref(), same.changes()), (Some("1"), false));
        states(&same.why, &["0.98–1.03 times"]);
        let unproven = find(&advice, "io_workers");
        assert_eq!(unproven.value, None);
        states(&unproven.why, &["40 %"]);
    }

    #[test]
    fn trial_on_another_version_decides_nothing() {
        let of_version = |version| {
            let gain = (2.6, 2.5, 2.7);
            let trial = tried("effective_io_concurrency", TrialOutcome::Faster, gain);
            let mut record = record_with(vec![trial]);
            record.plan.questions.postgres_version = version;
            let advice = crate::advice::advised_settings(&record);
            find(&advice, "effective_io_concurrency").clone()
        };
        assert_eq!(of_version(Some(15)).value.as_deref(), Some("16"));
        assert_eq!(of_version(None).value.as_deref(), Some("16"));
        let newer = of_version(Some(18));
        assert_ne!(newer.default.as_deref(), Some("1"), "{newer:?}");
        states(&newer.why, &["PostgreSQL 15.8 only", "2.6×"]);
    }

    #[test]
    fn measured_loss_ends_the_advice() {
        let delay = |outcome, gain| {
            let mut trial = tried("commit_delay", outcome, gain);
            (trial.data.trial.default, trial.data.trial.clients) = ("0".to_owned(), 16);
            let advice = advice_of(vec![trial]);
            find(&advice, "commit_delay").clone()
        };
        let loss = delay(TrialOutcome::Slower, (0.8, 0.7, 0.9));
        assert_eq!(
            (loss.value.as_deref(), loss.range, loss.condition),
            (Some("0"), None, None)
        );
        assert!(!loss.why.contains("try"), "{}", loss.why);
        let undecided = |gain| delay(TrialOutcome::Undecided, gain).range.is_some();
        assert!(undecided((1.1, 0.9, 1.3)));
        // What was just tried without a gain is not advised as an experiment.
        assert!(!undecided((0.98, 0.8, 1.2)));
    }

    #[test]
    fn faster_sync_method_is_not_advised_where_commits_may_not_be_durable() {
        let with_findings = |findings| {
            let gain = (8.0, 7.5, 8.5);
            let trial = tried("wal_sync_method", TrialOutcome::Faster, gain);
            let mut record = record_with(vec![trial]);
            record.findings = findings;
            let advice = crate::advice::advised_settings(&record);
            find(&advice, "wal_sync_method").clone()
        };
        assert_eq!(with_findings(Vec::new()).value.as_deref(), Some("16"));
        let path = "/measurements/7/data/wall_ns";
        let doubt = fixture::finding("sync-method-differs", Severity::Warning, path);
        let refused = with_findings(vec![doubt]);
        assert_eq!((refused.value, refused.range), (None, None));
        states(&refused.why, &["8.0×", "(sync-method-differs)"]);
    }

    #[test]
    fn settings_that_nobody_should_change_come_last() {
        let same = tried("io_workers", TrialOutcome::Same, (1.0, 0.98, 1.03));
        let advice = advice_of(vec![same]);
        let settings: Vec<&str> = advice.iter().map(|entry| entry.setting.as_str()).collect();
        let last = &settings[settings.len() - 3..];
        assert_eq!(last, ["io_workers", BEFORE_SETTING, UNSAFE_SETTINGS]);
    }

    #[test]
    fn larger_reads_need_both_limits() {
        let gain = (1.3, 1.2, 1.4);
        let advice = advice_of(vec![tried("io_combine_limit", TrialOutcome::Faster, gain)]);
        for setting in ["io_max_combine_limit", "io_combine_limit"] {
            assert!(find(&advice, setting).changes(), "{setting}");
        }
        let of_version = |version| {
            let trial = tried("io_combine_limit", TrialOutcome::Faster, gain);
            let mut record = record_with(vec![trial]);
            record.plan.questions.postgres_version = Some(version);
            if let Some(TaskResult::Inserts(inserts)) = record.results.last_mut() {
                inserts.version = format!("{version}.1");
            }
            let advice = crate::advice::advised_settings(&record);
            let names = advice.iter().map(|entry| entry.setting.clone());
            names.filter(|name| name.contains("combine_limit")).count()
        };
        assert_eq!((of_version(17), of_version(18)), (1, 2));
    }
}
