//! Settings that a PostgreSQL server tried, in words: the cells of the table and what they mean.

use crate::labels;
use diskproof_model::block::{Block, Row, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::trial::{TrialGain, TrialOutcome, TrialPlan, TrialRecord};
use diskproof_model::units::{counted, format_bytes, format_duration};

/// Columns of the table.
const COLUMNS: [&str; 6] = ["setting", "default", "tried", "gain", "95 %", "result"];

/// The title of the table.
const TITLE: &str = "Server settings, each compared with its default";

/// What the columns mean.
const LEGEND: &str = "gain: rate with the tried value over rate with the default, and \
                                 its 95 % interval. Default and tried value alternate in random \
                                 order. Scans read a table larger than the server's cache, without \
                                 the page cache, and the disk's counters confirm their reads.";

/// The table under its title; nothing where nothing was tried.
pub(crate) fn blocks(trials: &[TrialRecord]) -> Vec<Block> {
    if trials.is_empty() {
        return Vec::new();
    }
    vec![
        Block::Heading(TITLE.to_owned()),
        Block::words(
            "Settings that were tried",
            COLUMNS,
            trials.iter().map(row).collect(),
        ),
        Block::text(Tone::Dim, LEGEND),
    ]
}

fn row(tried: &TrialRecord) -> Row {
    let trial = &tried.trial;
    let gain = tried.gain.as_ref();
    let half = |gain: &TrialGain| (gain.high_95 - gain.low_95) / 2.0;
    let ratio = gain.map(|gain| format!("{}×", rounded(gain.value, Some(half(gain)))));
    let interval = gain.map(|gain| format!("{:.2}–{:.2}", gain.low_95, gain.high_95));
    let outcome = match tried.outcome {
        TrialOutcome::Faster => "faster",
        TrialOutcome::Same => "no effect",
        TrialOutcome::Slower => "slower",
        TrialOutcome::Undecided => "not decided",
        TrialOutcome::Unproven => "not proven",
        TrialOutcome::Untested => "not tried",
    };
    Row::from(vec![
        trial.setting.clone(),
        trial.default.clone(),
        labels::or_unknown(trial.candidate.clone()),
        labels::or_unknown(ratio),
        labels::or_unknown(interval),
        outcome.to_owned(),
    ])
}

/// What a plan tries.
pub(crate) fn plan_text(plan: &TrialPlan) -> String {
    let names: Vec<&str> = plan.trials.iter().map(|t| t.setting.as_str()).collect();
    format!(
        "tries {} within {}, up to {} each, with scans of a table of {}",
        names.join(", "),
        format_duration(plan.time_ns),
        counted(u64::from(plan.pairs_max), "pair"),
        format_bytes(plan.table_bytes),
    )
}
