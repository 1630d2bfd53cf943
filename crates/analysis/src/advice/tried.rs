//! What a server says of settings that it tried: their gain becomes part of the advice, and decides
//! it where it is known.

use super::fitness::leave_alone;
use diskproof_model::digits::{figure_to_digits, rounded};
use diskproof_model::postgres::{TrialOutcome, TrialRow};
use diskproof_model::record::{Advice, Record};

/// Settings that make a server faster at the price of its data.
const UNSAFE: (&str, &str) = (
    "fsync, synchronous_commit",
    "Not tried: off is faster only because a crash then loses data.",
);

/// Tried settings are inserted before this one, so that it stays last.
const LAST: &str = "full_page_writes";

/// Adds what was tried to the advice that the figures gave.
pub(super) fn add_tried(record: &Record, advice: &mut Vec<Advice>) {
    let trials = record
        .postgres()
        .into_iter()
        .flat_map(|postgres| &postgres.trials);
    for (number, trial) in trials.enumerate() {
        if number == 0 {
            advice.push(leave_alone(UNSAFE.0, UNSAFE.1.to_owned(), &[]));
        }
        add(trial, advice);
    }
}

fn add(tried: &TrialRow, advice: &mut Vec<Advice>) {
    let setting = tried.data.trial.setting.as_str();
    let candidate = tried.data.trial.candidate.as_deref().unwrap_or_default();
    let value = match tried.figures.outcome {
        TrialOutcome::Faster => Some(candidate),
        TrialOutcome::Same | TrialOutcome::Slower => Some(tried.data.trial.default.as_str()),
        TrialOutcome::Undecided | TrialOutcome::Unproven | TrialOutcome::Untested => None,
    };
    let index = match advice.iter().position(|other| other.setting == setting) {
        Some(index) => index,
        None => {
            let kept = advice.iter().position(|other| other.setting == LAST);
            let index = kept.unwrap_or(advice.len());
            advice.insert(index, leave_alone(setting, String::new(), &[]));
            index
        }
    };
    let Some(entry) = advice.get_mut(index) else {
        return;
    };
    let outcome = outcome_text(tried);
    let has_no_gain = is_without_gain(tried);
    // What the server decided ends the advice that the figures alone would give, and so does a
    // trial of that very value without a gain.
    let is_alone = entry.why.is_empty() || value.is_some() || has_no_gain;
    entry.why = if is_alone {
        outcome
    } else {
        format!("{outcome} {}", entry.why)
    };
    if let Some(value) = value {
        entry.value = Some(value.to_owned());
        entry.default = Some(tried.data.trial.default.clone());
        entry.range = None;
        entry.condition = match tried.figures.outcome {
            TrialOutcome::Faster => condition(setting).map(str::to_owned),
            _ => None,
        };
    }
    if has_no_gain && value.is_none() {
        entry.range = None;
        if entry.value.as_deref() == Some(candidate) {
            entry.value = None;
        }
    }
    // The server silently keeps io_combine_limit below this.
    if setting == "io_combine_limit" && tried.figures.outcome == TrialOutcome::Faster {
        let why = "Since PostgreSQL 18 it must be at least io_combine_limit.".to_owned();
        let limit = Advice {
            value: Some(candidate.to_owned()),
            default: Some(tried.data.trial.default.clone()),
            ..leave_alone("io_max_combine_limit", why, &[])
        };
        advice.insert(index, limit);
    }
}

/// Whether the trial measured rates and the tried value was no faster, as far as it can be told.
fn is_without_gain(tried: &TrialRow) -> bool {
    match &tried.figures.gain {
        Some(gain) => tried.figures.outcome == TrialOutcome::Undecided && gain.value <= 1.0,
        None => false,
    }
}

/// When the tried value is the right one.
fn condition(setting: &str) -> Option<&'static str> {
    match setting {
        "effective_io_concurrency" => Some("for bitmap scans of tables larger than the cache"),
        "maintenance_io_concurrency" => Some("for vacuum, analyze and recovery"),
        "random_page_cost" => Some("for uncached tables"),
        "commit_delay" => Some("if 16 sessions commit continuously"),
        _ => None,
    }
}

/// What came of it: `Measured gain here: 1.8× ± 0.1 …`.
fn outcome_text(tried: &TrialRow) -> String {
    let trial = &tried.data.trial;
    let candidate = trial.candidate.as_deref().unwrap_or("another value");
    let load = trial.load.text();
    let default = &trial.default;
    let what = match trial.clients {
        1 => format!("{candidate} compared with {default}, {load}"),
        clients => format!("{candidate} compared with {default}, {load} of {clients} sessions"),
    };
    let plans = match &tried.data.plans {
        None => String::new(),
        Some([a, b]) if a == b => format!(" The plan is a {a} in both cases."),
        Some([a, b]) => format!(" {default} makes it a {a}, {candidate} a {b}."),
    };
    let (mut ratio, mut range) = (String::new(), String::new());
    if let Some(gain) = &tried.figures.gain {
        let half = (gain.high_95 - gain.low_95) / 2.0;
        let value = rounded(gain.value, Some(half));
        let width = figure_to_digits(half, 1, "1");
        ratio = format!("{value}× ± {width}");
        range = format!("{:.2}–{:.2}", gain.low_95, gain.high_95);
    }
    match tried.figures.outcome {
        TrialOutcome::Faster => format!("Measured gain here: {ratio} ({what}).{plans}"),
        TrialOutcome::Same => format!("No effect here: {range} times as fast ({what}).{plans}"),
        TrialOutcome::Slower => format!("Measured loss here: {ratio} ({what}).{plans}"),
        TrialOutcome::Undecided if tried.figures.gain.is_none() => format!(
            "Not decided: fewer than 3 pairs were measured ({what}). Measure longer (--time)."
        ),
        TrialOutcome::Undecided => format!(
            "Not decided: {range} times as fast ({what}). Measure longer (--time), or when the \
             machine is quieter."
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::postgres::{
        PlannedTrial, PostgresRecord, TrialFigures, TrialGain, TrialLoad, TrialMeasurement,
    };
    use diskproof_model::record::TaskResult;

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

    fn advice_of(trials: Vec<TrialRow>) -> Vec<Advice> {
        let mut record = fixture::record();
        record.results.push(TaskResult::Inserts(PostgresRecord {
            version: "15.8".to_owned(),
            loads: Vec::new(),
            trials,
            end_ns: None,
        }));
        super::super::postgres::advice(&record)
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
        assert_eq!(find(&advice, UNSAFE.0).value, None);
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
    fn larger_reads_need_both_limits() {
        let gain = (1.3, 1.2, 1.4);
        let advice = advice_of(vec![tried("io_combine_limit", TrialOutcome::Faster, gain)]);
        for setting in ["io_max_combine_limit", "io_combine_limit"] {
            assert!(find(&advice, setting).changes(), "{setting}");
        }
    }
}
