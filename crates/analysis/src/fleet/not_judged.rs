//! Explains why a row of a fleet, or one of its figures, was not judged. The codes of the reasons
//! stand in saved fleets: a changed one breaks their readers.

use super::groups::{Groups, Metric};
use super::row::{Row, RunOfRow};
use super::spread::ROWS_MIN;
use crate::compare::WITHOUT_UPPER_END;
use diskproof_model::comparison::Reason;
use diskproof_model::fleet::{FleetBasis, FleetRow};
use std::collections::BTreeSet;

/// The code of a figure that fewer than three rows measured under the same conditions.
const FEW_ALIKE: &str = "few-alike";
/// The code of a row that lacks what others measured.
const INCOMPLETE: &str = "incomplete";
/// The code of a suspect that was measured again with too few others.
const FEW_CONTROLS: &str = "few-controls";
/// The code of a suspect whose new runs have no figure that decides.
const STILL_SUSPECT: &str = "still-suspect";

/// The reason against a figure whose own run did not measure it well enough.
pub(super) fn imprecise_reason() -> Reason {
    Reason {
        code: "imprecise".to_owned(),
        why: "its own interval is too wide to tell even half the rate; measure it for longer"
            .to_owned(),
    }
}

/// The reason why a metric of a faultless row is not judged: few rows measured it under the same
/// conditions.
pub(super) fn few_alike_reason(groups: &Groups, kind: usize, metric: usize) -> Reason {
    let metrics = &groups.kinds[kind].metrics;
    let not_judged = &metrics[metric];
    let other = metrics
        .iter()
        .find(|other| other.metric == not_judged.metric && other.example != not_judged.example);
    if let Some(other) = other
        && let Some(reason) = first_difference(groups, not_judged, other)
    {
        return reason;
    }
    Reason {
        code: FEW_ALIKE.to_owned(),
        why: "fewer than three disks of this kind measured it under the same conditions".to_owned(),
    }
}

/// The first difference between the conditions of two metrics; `None` where an example is missing.
fn first_difference(groups: &Groups, metric: &Metric, other: &Metric) -> Option<Reason> {
    let record = groups.examples.get(metric.example?)?;
    let other_record = groups.examples.get(other.example?)?;
    let differences = metric
        .part
        .differences(record, metric.target, other_record, other.target);
    differences.into_iter().next()
}

/// The reason against a row whose runs ended early and that lacks a figure of its kind; `None`
/// where it has all of them, or ran to its end.
pub(super) fn incomplete_reason(groups: &Groups, row: &Row) -> Option<Reason> {
    if !row.is_partial() {
        return None;
    }
    let metrics = &groups.kinds[row.kind].metrics;
    let mut subjects = BTreeSet::new();
    let mut measured = BTreeSet::new();
    for (index, metric) in metrics.iter().enumerate() {
        subjects.insert(&metric.subject);
        if row.faultless_values(index).next().is_some() {
            measured.insert(&metric.subject);
        }
    }
    let lacking = subjects.len() - measured.len();
    if lacking == 0 {
        return None;
    }
    Some(Reason {
        code: INCOMPLETE.to_owned(),
        why: format!(
            "its run ended early, without {lacking} of the {} figures of its kind",
            subjects.len()
        ),
    })
}

/// The reason why a row of runs without a figure is not judged: they scanned their disk, and it
/// did not fail.
pub(super) fn only_scanned_reason(row: &Row) -> Reason {
    let scans: Vec<&RunOfRow> = row.runs.iter().filter(|run| run.has_scanned).collect();
    if scans.iter().all(|scan| scan.run.partial) {
        return Reason {
            code: INCOMPLETE.to_owned(),
            why: "its scan ended early, without an unreadable sector so far".to_owned(),
        };
    }
    Reason {
        code: "only-scanned".to_owned(),
        why: "its scan found no unreadable sector; no rate was measured that could be compared"
            .to_owned(),
    }
}

/// The reason against a row with so many figures that are too imprecise to be judged, while those
/// of most like rows are not: a disk that stalls now and then has such figures.
pub(super) fn partly_imprecise_reason(figures: usize) -> Reason {
    Reason {
        code: INCOMPLETE.to_owned(),
        why: format!(
            "{} too imprecise to be judged, on most others of its kind not; measure it for longer",
            match figures {
                1 => "one figure is".to_owned(),
                _ => format!("{figures} figures are"),
            }
        ),
    }
}

/// Returns `true` if a row lacks what others measured, or has it without an upper end.
pub(super) fn is_incomplete(row: &FleetRow) -> bool {
    match &row.not_judged {
        Some(reason) => [INCOMPLETE, WITHOUT_UPPER_END].contains(&reason.code.as_str()),
        None => false,
    }
}

/// The reason why a suspect of a saved fleet still is one. `metrics` are those that made it one.
pub(super) fn still_suspect_reason(row: &FleetRow, metrics: &BTreeSet<usize>) -> Reason {
    let mut was_measured = false;
    for value in &row.values {
        if !metrics.contains(&value.metric) {
            continue;
        }
        was_measured = true;
        if let Some(fault) = &value.not_judged
            && fault.code != FEW_ALIKE
        {
            return Reason {
                code: STILL_SUSPECT.to_owned(),
                why: format!("still a suspect: {}", fault.why),
            };
        }
    }
    let (code, why) = if was_measured {
        (
            FEW_CONTROLS,
            "neither the saved fleet nor three like disks of its kind that were measured with it \
             judge what made it one",
        )
    } else {
        (STILL_SUSPECT, "what made it one was not measured again")
    };
    Reason {
        code: code.to_owned(),
        why: format!("still a suspect: {why}"),
    }
}

/// The reason why nothing of a row was judged.
pub(super) fn reason_not_judged(row: &FleetRow, rows_of_kind: usize, basis: FleetBasis) -> Reason {
    let first = row.values.iter().find_map(|value| value.not_judged.clone());
    if let Some(fault) = first.filter(|reason| reason.code != FEW_ALIKE) {
        return fault;
    }
    let (code, why) = match basis {
        FleetBasis::Reference | FleetBasis::SecondLook => (
            "not-in-reference",
            "the saved fleet has no disk of this kind that measured the same".to_owned(),
        ),
        FleetBasis::EachOther if rows_of_kind == 1 => ("alone", "alone of its kind".to_owned()),
        FleetBasis::EachOther if rows_of_kind < ROWS_MIN => {
            ("alone", format!("only {rows_of_kind} of its kind"))
        }
        FleetBasis::EachOther => (
            FEW_ALIKE,
            "fewer than three disks of its kind measured the same".to_owned(),
        ),
    };
    Reason {
        code: code.to_owned(),
        why,
    }
}

/// Returns `true` if a row is a suspect of a saved fleet that its new runs do not decide.
pub(super) fn is_still_suspect(row: &FleetRow) -> bool {
    match &row.not_judged {
        Some(reason) => [FEW_CONTROLS, STILL_SUSPECT].contains(&reason.code.as_str()),
        None => false,
    }
}
