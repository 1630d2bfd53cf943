//! Writes the outcome of a fleet in a sentence: the number of rows that are alike, and those that
//! differ, each with its metric and the likeliest reason.

use super::not_judged::is_incomplete;
use super::tested;
use diskproof_model::fleet::{FleetBasis, FleetDistance, FleetRecord, FleetRow, RowState};
use diskproof_model::units::counted;
use std::collections::BTreeSet;

/// The sentence names at most this many rows; the table has all that differ.
const NAMED_MAX: usize = 3;
/// A speed of at most this is shown as a factor (`2.1 times slower`), a smaller change in percent.
const FACTOR_SPEED_MAX: f64 = 0.5;

/// The sentence, such as `197 of 200 disks alike (± 4 %); 3 differ: db17 fsync-commit 9.1 times
/// slower …`.
pub(super) fn fleet_sentence(fleet: &FleetRecord) -> String {
    let mut clauses = Vec::new();
    clauses.extend(tested::tests_clause(&fleet.tested));
    if !fleet.rows.is_empty() || clauses.is_empty() {
        let alike = fleet.rows.iter().filter(|row| is_alike(row)).count();
        clauses.push(rows_clause(fleet, alike));
    }
    clauses.extend(differing_clause(fleet));
    let incomplete: Vec<&str> = fleet
        .rows
        .iter()
        .filter(|row| is_incomplete(row))
        .map(|row| row.name.as_str())
        .collect();
    clauses.extend(incomplete_clause(&incomplete));
    clauses.extend(count_clauses(fleet));
    crate::words::sentence(&clauses.join("; "))
}

/// The rows that differ, such as `3 differ: db17 fsync-commit 9.1 times slower …`; `None` without
/// such rows.
fn differing_clause(fleet: &FleetRecord) -> Option<String> {
    let differing: Vec<&FleetRow> = fleet
        .rows
        .iter()
        .filter(|row| {
            matches!(
                row.state,
                RowState::Slower | RowState::Faster | RowState::Errors
            )
        })
        .collect();
    let verb = match differing.len() {
        0 => return None,
        1 => "differs",
        _ => "differ",
    };
    let mut texts: Vec<String> = differing
        .iter()
        .take(NAMED_MAX)
        .map(|row| row_text(fleet, row))
        .collect();
    if differing.len() > NAMED_MAX {
        texts.push(format!("{} more", differing.len() - NAMED_MAX));
    }
    Some(format!("{} {verb}: {}", differing.len(), texts.join("; ")))
}

/// The numbers of rows and hosts that are neither alike nor named, such as `2 suspect`.
fn count_clauses(fleet: &FleetRecord) -> Vec<String> {
    let not_judged = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::NotJudged && !is_incomplete(row))
        .count();
    let mut clauses = Vec::new();
    for (count, participle) in [
        (rows_in_state(fleet, RowState::Suspect), "suspect"),
        (not_judged, "not judged"),
        (fleet.missing_count() as usize, "missing"),
        (fleet.maybe_missing_count() as usize, "perhaps missing"),
        (fleet.surplus as usize, "not expected"),
        (
            hosts_with_unmet(fleet, UnmetKind::Missed),
            "missed a threshold",
        ),
        (
            hosts_with_unmet(fleet, UnmetKind::Undecided),
            "left a threshold undecided",
        ),
        (fleet.refused.len(), "refused"),
    ] {
        if count > 0 {
            clauses.push(format!("{count} {participle}"));
        }
    }
    clauses
}

/// Returns `true` if a row does not differ for certain, and lacks nothing.
fn is_alike(row: &FleetRow) -> bool {
    matches!(row.state, RowState::Alike | RowState::Suspect) && !is_incomplete(row)
}

/// The reason why a threshold is unmet.
#[derive(PartialEq, Eq)]
enum UnmetKind {
    Missed,
    Undecided,
}

/// The number of hosts with a threshold that is unmet for this reason.
fn hosts_with_unmet(fleet: &FleetRecord, kind: UnmetKind) -> usize {
    let mut names = BTreeSet::new();
    for threshold in &fleet.unmet {
        if threshold.undecided == (kind == UnmetKind::Undecided) {
            names.insert(&threshold.name);
        }
    }
    names.len()
}

/// `1 measured only in part: db5`; `None` without such rows.
fn incomplete_clause(names: &[&str]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let mut named = names[..names.len().min(NAMED_MAX)].join(", ");
    if names.len() > NAMED_MAX {
        named.push_str(&format!(" and {} more", names.len() - NAMED_MAX));
    }
    Some(format!("{} measured only in part: {named}", names.len()))
}

/// The clause on the rows that are alike, such as `197 of 200 disks alike (± 4 %)`.
fn rows_clause(fleet: &FleetRecord, alike: usize) -> String {
    let noun = fleet.rows_are.noun();
    let total = fleet.rows.len();
    if total == 0 {
        return format!("no {noun} was measured");
    }
    let rows = counted(total as u64, noun);
    if alike == 0 && total == 1 {
        return format!("the only {noun} could not be judged alike");
    }
    if alike == 0 {
        return format!("none of {rows} could be judged alike");
    }
    format!(
        "{alike} of {rows} {}{}",
        alike_word(fleet.basis),
        spread_text(fleet)
    )
}

fn rows_in_state(fleet: &FleetRecord, state: RowState) -> usize {
    fleet.rows.iter().filter(|row| row.state == state).count()
}

fn alike_word(basis: FleetBasis) -> &'static str {
    match basis {
        FleetBasis::EachOther | FleetBasis::SecondLook => "alike",
        FleetBasis::Reference => "like the saved fleet",
    }
}

/// ` (± 4.0 %)`: the spread of the largest group; empty where none is known.
fn spread_text(fleet: &FleetRecord) -> String {
    let largest = fleet
        .groups
        .iter()
        .filter(|group| group.spread.is_some())
        .max_by_key(|group| group.rows);
    match largest.and_then(|group| group.spread) {
        Some(spread) => format!(" (± {:.1} %)", spread * 100.0),
        None => String::new(),
    }
}

/// A row that differs, such as `db17 fsync-commit 9.1 times slower than the median (link 3.0 Gbps,
/// 6.0 Gbps on 197)`.
fn row_text(fleet: &FleetRecord, row: &FleetRow) -> String {
    let mut text = format!("{} {}", row.name, difference_text(fleet, row));
    if row.state != RowState::Errors
        && let Some(reason) = row.reasons.first()
    {
        text.push_str(&format!(" ({})", reason.text));
    }
    text
}

/// The difference of a row: the metric in which it differs most, with its speed.
pub(super) fn difference_text(fleet: &FleetRecord, row: &FleetRow) -> String {
    if let (RowState::Errors, Some(reason)) = (row.state, &row.not_judged) {
        return reason.why.clone();
    }
    let metrics = match row.group {
        Some(group) => fleet.groups[group].metrics.as_slice(),
        None => &[],
    };
    let mut differing = Vec::new();
    for value in &row.values {
        if let Some(distance) = &value.distance
            && value.state == row.state
        {
            differing.push((metrics[value.metric].subject.as_str(), distance));
        }
    }
    differing.sort_by(|one, other| abs_log(other.1).total_cmp(&abs_log(one.1)));
    match (differing.as_slice(), &row.overall) {
        ([], Some(overall)) => format!("{} over all workloads", speed_text(overall.speed)),
        ([], None) => row.state.as_str().to_owned(),
        ([(subject, distance)], _) => {
            format!("{subject} {} than the median", speed_text(distance.speed))
        }
        ([(subject, distance), others @ ..], _) => format!(
            "{subject} {} than the median, and {} too",
            speed_text(distance.speed),
            counted(others.len() as u64, "other")
        ),
    }
}

fn abs_log(distance: &FleetDistance) -> f64 {
    distance.speed.ln().abs()
}

/// `9.1 times slower`, `20 % slower`, `2.3 times faster`.
fn speed_text(speed: f64) -> String {
    if speed <= FACTOR_SPEED_MAX {
        format!("{:.1} times slower", 1.0 / speed)
    } else if speed < 1.0 {
        format!("{:.0} % slower", (1.0 - speed) * 100.0)
    } else if speed * FACTOR_SPEED_MAX >= 1.0 {
        format!("{speed:.1} times as fast")
    } else {
        format!("{:.0} % faster", (speed - 1.0) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_differences_are_factors_and_small_ones_are_percent() {
        for (speed, text) in [
            (0.11, "9.1 times slower"),
            (0.5, "2.0 times slower"),
            (0.8, "20 % slower"),
            (1.25, "25 % faster"),
            (2.0, "2.0 times as fast"),
        ] {
            assert_eq!(speed_text(speed), text);
        }
    }

    #[test]
    fn incomplete_rows_are_named_up_to_three() {
        assert_eq!(incomplete_clause(&[]), None);
        let one = incomplete_clause(&["db5"]).unwrap();
        assert_eq!(one, "1 measured only in part: db5");
        let four = incomplete_clause(&["a", "b", "c", "d"]).unwrap();
        assert_eq!(four, "4 measured only in part: a, b, c and 1 more");
    }
}
