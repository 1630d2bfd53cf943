//! Advises on PostgreSQL's commit_delay: to leave it at 0, with the value to try where many
//! sessions commit at the same time.

use super::reasons_against::{
    find_row, half_width_or_max, leave_alone, mean_latency_text, reason_against_workloads,
};
use crate::trials::{COMMIT_DELAY_MAX_US, COMMIT_DELAY_USEFUL_US};
use diskproof_model::advice::Advice;
use diskproof_model::digits::{rounded_number, rounded_ungrouped};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;

const SETTING: &str = "commit_delay";
/// The workload of `check` whose time of a commit is that of the server.
const COMMITS: &str = "commit-fdatasync";

/// The advice; `None` where commits were not measured. The value to try is half the time of a flush
/// after one 8 kB write (documentation of commit_delay). It helps only sessions that commit at the
/// same time.
pub(super) fn advise_commit_delay(record: &Record) -> Option<Advice> {
    let row = find_row(record, COMMITS)?;
    let commits = row.op(OpKind::Commit)?;
    if commits.data.count == 0 {
        return None;
    }
    // `commit` calls the workload otherwise than `check`.
    let workload = row.data.workload.name.as_str();
    if let Some(reason) = reason_against_workloads(record, &[COMMITS]) {
        return Some(leave_alone(SETTING, reason, &[workload]));
    }
    let mean = mean_latency_text(commits, 1.0);
    let mean_us = commits.figures.latency.mean / 1000.0;
    let half_us = mean_us / 2.0;
    let delay_us = half_us.min(COMMIT_DELAY_MAX_US);
    let tried = if half_us > COMMIT_DELAY_MAX_US {
        "the largest delay"
    } else {
        "half of that time"
    };
    if delay_us < COMMIT_DELAY_USEFUL_US {
        let why = format!("A durable 8 kB write takes {mean}, too short for a delay to help.");
        return Some(keep_at_zero(why, workload));
    }
    let half_width_us = Some(delay_us * half_width_or_max(&commits.figures.iops));
    let why = format!(
        "A durable 8 kB write takes {mean}. Leave the delay at 0. If many sessions commit at once \
         and wait for the disk, try {tried}, {} (microseconds), and keep it if \
         throughput rises.",
        rounded_ungrouped(delay_us, half_width_us)
    );
    Some(Advice {
        range: Some([0.0, rounded_number(delay_us, half_width_us)]),
        ..keep_at_zero(why, workload)
    })
}

/// The advice to keep the default of 0.
fn keep_at_zero(why: String, workload: &str) -> Advice {
    Advice {
        value: Some("0".to_owned()),
        default: Some("0".to_owned()),
        ..leave_alone(SETTING, why, &[workload])
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{self, find_advice, states};

    #[test]
    fn commit_delay_stays_zero_and_names_the_experiment() {
        let advice = find_advice(&fixture::record(), "commit_delay");
        assert_eq!(
            (advice.value.as_deref(), advice.range),
            (Some("0"), Some([0.0, 1000.0]))
        );
        states(&advice.why, &["2.00 ms", "1000 (microseconds)"]);
    }
}
