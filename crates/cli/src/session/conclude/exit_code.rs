//! Decides the exit code of a run from how it ended, what it measured, and its thresholds.

use crate::failure::{Exit, Failure};
use crate::flags::UndecidedMeans;
use crate::interrupt;
use crate::session::ended_run::EndedRun;
use crate::session::sink::EarlyEnd;
use crate::stdio::eprint_line;
use anyhow::Result;
use diskproof_engine::RunError;
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::results::ResultAnswer;
use diskproof_model::row::Row;
use diskproof_report::unmet_text;

/// The exit code of a run that has been printed.
pub(super) fn exit_of_run(
    record: &Record,
    end: EndedRun,
    undecided: UndecidedMeans,
) -> Result<Exit> {
    let signal = interrupt::signal();
    match (end.ended, signal) {
        (Ok(()) | Err(EarlyEnd::Reason(_) | EarlyEnd::Unanswered { .. }), _) => {}
        // The user ended the wait.
        (Err(EarlyEnd::Error(error @ RunError::Stalled { .. })), Some(signal)) => {
            eprint_line(&format!("error: {error}"));
            return Ok(Exit::Signal(signal));
        }
        (Err(EarlyEnd::Error(error)), _) => return Err(Failure::Run(error).into()),
        (Err(EarlyEnd::NotStarted(failure)), _) => return Err(failure.into()),
    }
    if let Some(signal) = signal
        && record.partial
    {
        return Ok(Exit::Signal(signal));
    }
    // Also for those who see no page: --json, --quiet, stdout into a file.
    for line in record.expectations.iter().filter_map(unmet_text) {
        eprint_line(&line);
    }
    if !end.results.hung.is_empty() {
        return Ok(Exit::Failed);
    }
    Ok(exit_of_record(record, undecided))
}

/// The exit code that follows from a record alone.
pub(crate) fn exit_of_record(record: &Record, undecided: UndecidedMeans) -> Exit {
    let by_thresholds = exit_of_expectations(record, undecided);
    if has_errors(record) {
        Exit::Failed
    } else if record.has_answer(ResultAnswer::Rejected) || by_thresholds == Exit::ThresholdMissed {
        Exit::ThresholdMissed
    } else if record.is_undecided() {
        Exit::Undecided
    } else {
        by_thresholds
    }
}

fn exit_of_expectations(record: &Record, undecided: UndecidedMeans) -> Exit {
    let outcomes: Vec<ExpectationOutcome> = record
        .expectations
        .iter()
        .map(Expectation::outcome)
        .collect();
    exit_of_outcomes(&outcomes, undecided)
}

/// The exit code of thresholds with these outcomes. A missed one outweighs undecided ones.
fn exit_of_outcomes(outcomes: &[ExpectationOutcome], undecided: UndecidedMeans) -> Exit {
    if outcomes.contains(&ExpectationOutcome::Missed) {
        return Exit::ThresholdMissed;
    }
    if !outcomes.contains(&ExpectationOutcome::Undecided) {
        return Exit::Done;
    }
    match undecided {
        UndecidedMeans::Report => Exit::Undecided,
        UndecidedMeans::Pass => Exit::Done,
        UndecidedMeans::Fail => Exit::ThresholdMissed,
    }
}

/// True if the run ended early, or its target returned errors. A ping whose reader had enough has
/// not failed, unless its disk did not answer.
pub(crate) fn has_errors(record: &Record) -> bool {
    let is_unread = record.measurements.iter().any(|row| row.data.is_unread());
    let has_hung = record
        .measurements
        .iter()
        .any(|row| row.data.hang.is_some());
    if record.failed.is_some() || (record.partial && (has_hung || !is_unread)) {
        return true;
    }
    for row in &record.measurements {
        if row.errors_total() > 0 || has_damaged_blocks(row, &record.plan) {
            return true;
        }
    }
    record
        .results
        .iter()
        .filter_map(|result| result.inner().own_requests())
        .any(|own| own.error.is_some())
}

/// To other tools a block that cannot be checked is a damaged one.
fn has_damaged_blocks(row: &Row, plan: &Plan) -> bool {
    let Some(verify) = &row.data.verify else {
        return false;
    };
    if plan.is_of_other_tool() {
        verify.bad_blocks > 0
    } else {
        verify.wrong_blocks() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ExpectationOutcome::{Met, Missed, Undecided};
    use diskproof_model::measurement::StopReason;

    #[test]
    fn missed_threshold_outweighs_undecided_ones() {
        for (outcomes, exit) in [
            (vec![], Exit::Done),
            (vec![Met], Exit::Done),
            (vec![Met, Undecided], Exit::Undecided),
            (vec![Undecided, Missed], Exit::ThresholdMissed),
        ] {
            assert_eq!(exit_of_outcomes(&outcomes, UndecidedMeans::Report), exit);
        }
    }

    /// A ping that ends before its announced end is partial. Its reader had enough, which is no
    /// error.
    #[test]
    fn reader_that_goes_away_is_no_error() {
        let mut record = diskproof_analysis::fixture::record();
        record.partial = true;
        assert!(has_errors(&record));
        record.measurements[0].data.stopped = StopReason::Unread;
        assert!(!has_errors(&record));
    }

    #[test]
    fn user_decides_what_an_undecided_threshold_means() {
        let outcomes = [Undecided];
        let exit_where = |means| exit_of_outcomes(&outcomes, means);
        assert_eq!(exit_where(UndecidedMeans::Pass), Exit::Done);
        assert_eq!(exit_where(UndecidedMeans::Fail), Exit::ThresholdMissed);
    }
}
