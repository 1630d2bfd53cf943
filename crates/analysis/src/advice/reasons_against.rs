//! Gives the reasons why the rate of a workload must not become a setting, and the advice to leave
//! a setting alone. Finds the workloads that advice rests on.

use crate::checked::name_in_check;
use crate::estimate::HALF_WIDTH_MAX;
use diskproof_model::advice::Advice;
use diskproof_model::digits::figure_text;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::{OpRow, Row};

/// The relative half-width of a rate. An unknown one counts as the widest that may become a
/// setting.
pub(super) fn half_width_or_max(rate: &Estimate) -> f64 {
    rate.relative_half_width().unwrap_or(HALF_WIDTH_MAX)
}

/// The mean latency of one request at a time, which is known as well as its rate; times `slowdown`,
/// as it is across the whole disk.
pub(super) fn mean_latency_text(op: OpRow<'_>, slowdown: f64) -> String {
    let mean_ns = op.figures.latency.mean * slowdown;
    let half_width_ns = mean_ns * half_width_or_max(&op.figures.iops);
    figure_text(mean_ns, Some(half_width_ns), "ns")
}

/// Advice not to change a setting. `from` names the workloads on which it rests. Other advice fills
/// in the fields that this leaves empty.
pub(super) fn leave_alone(setting: &str, why: String, from: &[&str]) -> Advice {
    Advice {
        setting: setting.to_owned(),
        value: None,
        range: None,
        why,
        from: from.iter().map(|workload| (*workload).to_owned()).collect(),
        default: None,
        condition: None,
    }
}

/// The row of a workload that `check` or `commit` knows by this name.
pub(super) fn find_row<'a>(record: &'a Record, workload: &str) -> Option<&'a Row> {
    let index = find_index(record, workload)?;
    Some(&record.measurements[index])
}

fn find_index(record: &Record, workload: &str) -> Option<usize> {
    record
        .measurements
        .iter()
        .position(|row| name_in_check(record, row) == Some(workload))
}

/// The operations of one kind of such a workload.
pub(super) fn find_operations<'a>(
    record: &'a Record,
    workload: &str,
    kind: OpKind,
) -> Option<OpRow<'a>> {
    find_row(record, workload)?.op(kind)
}

/// The reason why the rates of these workloads, as `check` or `commit` names them, must not become
/// a setting: that of the first one which has any. A workload that was not measured has none.
pub(super) fn reason_against_workloads(record: &Record, workloads: &[&str]) -> Option<String> {
    for workload in workloads {
        if let Some(index) = find_index(record, workload)
            && let Some(reason) = reason_against_row(record, index)
        {
            return Some(reason);
        }
    }
    None
}

/// The reason why the rate of the row with this index must not become a setting.
pub(super) fn reason_against_row(record: &Record, index: usize) -> Option<String> {
    reason_against_rate(record, index, record.measurements[index].precision())
}

/// The reason why a rate that comes from the row with this index must not become a setting.
/// `half_width` is the relative half-width of that rate.
pub(super) fn reason_against_rate(
    record: &Record,
    index: usize,
    half_width: Option<f64>,
) -> Option<String> {
    let row = &record.measurements[index];
    let workload = &row.data.workload.name;
    // A commit goes through the page cache, as the server's own do; what is synced has reached the
    // disk all the same.
    let reached_disk = match row.data.cache.used {
        CachePolicy::Direct => true,
        CachePolicy::Cached => row.data.ops.contains_key(&OpKind::Commit),
        CachePolicy::Buffered => false,
    };
    let objection = record.objection(FigureSource::Measurement(index));
    if let Some(objection) = objection
        && objection.is_of_hang()
    {
        let code = &objection.finding.code;
        return Some(format!(
            "Leave it unchanged, because requests of {workload} had no answer ({code})."
        ));
    }
    let source_of_error = match objection {
        Some(objection) => Some(objection.finding.code.as_str()),
        None if reached_disk => None,
        None => Some("page cache"),
    };
    if let Some(source_of_error) = source_of_error {
        return Some(format!(
            "Leave it unchanged, because the figure of {workload} is not the disk's \
             ({source_of_error})."
        ));
    }
    let precision = match half_width {
        Some(half_width) if half_width <= HALF_WIDTH_MAX => return None,
        Some(half_width) => format!("known only to ±{:.0} %", half_width * 100.0),
        None => "unknown".to_owned(),
    };
    Some(format!(
        "Leave it unchanged, because the rate of {workload} is {precision}. Measure longer \
         (--time), or when the machine is quieter."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::finding::Severity;
    use diskproof_model::measurement::Hang;

    const READS: &str = "random-read-d32";

    fn index_of(record: &Record, name: &str) -> usize {
        let mut rows = record.measurements.iter();
        rows.position(|row| row.data.workload.name == name).unwrap()
    }

    /// The reason against the rate of a workload of this name.
    fn reason(record: &Record, name: &str) -> Option<String> {
        reason_against_row(record, index_of(record, name))
    }

    #[test]
    fn only_requests_that_reach_the_disk_become_a_setting() {
        assert_eq!(reason(&fixture::record(), READS), None);
        for (name, used, is_usable) in [
            (READS, CachePolicy::Cached, false),
            (READS, CachePolicy::Buffered, false),
            ("commit-fdatasync", CachePolicy::Cached, true),
            ("commit-fdatasync", CachePolicy::Buffered, false),
        ] {
            let mut record = fixture::record();
            fixture::measured(&mut record, name).data.cache.used = used;
            match reason(&record, name) {
                Some(text) if !is_usable => states(&text, &[name, "page cache"]),
                other => assert_eq!(other.is_none(), is_usable, "{name} {used:?}"),
            }
        }
    }

    #[test]
    fn objection_to_a_figure_is_named_by_its_code() {
        let mut record = fixture::record();
        let place = format!("/measurements/{}/data", index_of(&record, READS));
        let finding = fixture::finding("served-from-cache", Severity::Failure, &place);
        record.findings = vec![finding];
        states(&reason(&record, READS).unwrap(), &["served-from-cache"]);
        assert_eq!(reason(&record, "random-read-d1"), None);
    }

    /// A finding that objects to no figure by itself, on requests without an answer.
    #[test]
    fn hang_is_a_reason_of_its_own() {
        let mut record = fixture::record();
        let place = format!("/measurements/{}/data/hang", index_of(&record, READS));
        record.findings = vec![fixture::finding("hung", Severity::Failure, &place)];
        assert_eq!(reason(&record, READS), None, "it has no hang");
        fixture::measured(&mut record, READS).data.hang = Some(Hang {
            since_ns: 0,
            lasted_ns: 1,
            requests: 1,
            late: false,
        });
        let text = reason(&record, READS).unwrap();
        states(&text, &["had no answer (hung)"]);
    }

    #[test]
    fn rate_becomes_a_setting_if_it_is_known_to_a_quarter() {
        let record = fixture::record();
        let index = index_of(&record, READS);
        for (half_width, part) in [
            (Some(0.25), None),
            (Some(0.26), Some("±26 %")),
            (None, Some("unknown")),
        ] {
            let found = reason_against_rate(&record, index, half_width);
            match part {
                Some(part) => states(&found.unwrap(), &[part]),
                None => assert_eq!(found, None),
            }
        }
        let unknown = Estimate::new(1, 5.0, None, "1/s");
        assert_eq!(half_width_or_max(&unknown), HALF_WIDTH_MAX);
    }

    #[test]
    fn first_workload_with_a_reason_gives_it() {
        let mut record = fixture::record();
        for (code, name) in [
            ("served-from-cache", READS),
            ("sync-method-differs", "random-read-d1"),
        ] {
            let place = format!("/measurements/{}/data", index_of(&record, name));
            let finding = fixture::finding(code, Severity::Failure, &place);
            record.findings.push(finding);
        }
        let names = [READS, "random-read-d1"];
        let text = reason_against_workloads(&record, &names).unwrap();
        states(&text, &["served-from-cache"]);
        let names = ["not-measured", "random-write-d32"];
        assert_eq!(reason_against_workloads(&record, &names), None);
    }
}
