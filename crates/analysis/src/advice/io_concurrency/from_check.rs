//! Advises on effective_io_concurrency by the random reads of `check` at depths 1 and 32.

use super::setting::{BITMAP_SCANS, EFFECTIVE, GAIN_MIN, effective_setting};
use crate::advice::reasons_against::{
    find_operations, half_width_or_max, leave_alone, reason_against_workloads,
};
use diskproof_model::advice::Advice;
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;

const ONE_IN_FLIGHT: &str = "random-read-d1";
const MANY_IN_FLIGHT: &str = "random-read-d32";
/// The reads in flight that [`MANY_IN_FLIGHT`] keeps. A single read may take longer than one of
/// many, where the disk sleeps between requests: the gain is then larger than the number of reads
/// at work.
const DEPTH_MEASURED: u32 = 32;

/// Advises as many reads in flight as the disk works on at a time: the rate at depth 32 over that
/// at depth 1. It is a power of two, because the rate is known at two depths only. `None` where one
/// of the workloads was not measured.
pub(crate) fn advise_from_check(record: &Record) -> Option<Advice> {
    let from = [ONE_IN_FLIGHT, MANY_IN_FLIGHT];
    let one = find_operations(record, ONE_IN_FLIGHT, OpKind::Read)?;
    let many = find_operations(record, MANY_IN_FLIGHT, OpKind::Read)?;
    if let Some(reason) = reason_against_workloads(record, &from) {
        return Some(leave_alone(EFFECTIVE, reason, &from));
    }
    if one.figures.iops.value <= 0.0 {
        return None;
    }
    let gain = many.figures.iops.value / one.figures.iops.value;
    let relative_half_width =
        half_width_or_max(&one.figures.iops).hypot(half_width_or_max(&many.figures.iops));
    let is_worth_it = gain >= GAIN_MIN;
    let depth = if is_worth_it {
        (gain.ceil() as u32).next_power_of_two().min(DEPTH_MEASURED)
    } else {
        1
    };
    let setting = effective_setting(record.plan.questions.postgres_version, depth);
    let effect = if is_worth_it { "pays" } else { "gains little" };
    let why = format!(
        "32 reads in flight reach {} times the rate of one ({} and {}), so prefetching {effect}.{}",
        rounded(gain, Some(gain * relative_half_width)),
        many.figures.iops.value_text(),
        one.figures.iops.value_text(),
        setting.default_text,
    );
    let condition = if is_worth_it {
        Some(BITMAP_SCANS)
    } else {
        None
    };
    Some(setting.advice(EFFECTIVE, why, &from, condition))
}

#[cfg(test)]
mod tests {
    use crate::advice::advised_settings;
    use crate::fixture::{self, find_advice, states};
    use diskproof_model::measurement::OpKind;

    #[test]
    fn effective_io_concurrency_is_one_value_for_the_version() {
        // 10,000/s against 2000/s: the disk works on five reads at a time.
        let of = |version: Option<u32>| {
            let mut record = fixture::record();
            record.plan.questions.postgres_version = version;
            record.advice = advised_settings(&record);
            find_advice(&record, "effective_io_concurrency")
        };
        let cases = [
            (Some(18), "16", Some("16"), false),
            (Some(17), "8", Some("1"), true),
            (Some(13), "8", Some("1"), true),
            // 4 × (1 + 1/2 + 1/3 + 1/4) = 8.3
            (Some(12), "4", Some("1"), true),
            (None, "16", None, true),
        ];
        for (version, value, default, changes) in cases {
            let advice = of(version);
            let found = (
                advice.value.as_deref(),
                advice.default.as_deref(),
                advice.changes(),
            );
            assert_eq!(found, (Some(value), default, changes), "{version:?}");
        }
        states(&of(Some(18)).why, &["5.00 times", "(10,000/s and 2000/s)"]);
        states(&of(None).why, &["--pg-version"]);
    }

    /// 10,000/s at depth 32 are 40 times 250/s at depth 1.
    #[test]
    fn no_more_reads_in_flight_are_advised_than_were_measured() {
        let mut record = fixture::record();
        record.plan.questions.postgres_version = Some(18);
        let one = fixture::measured(&mut record, "random-read-d1");
        let read = one.figures.ops.get_mut(&OpKind::Read).unwrap();
        read.iops.value = 250.0;
        record.advice = advised_settings(&record);
        let advice = find_advice(&record, "effective_io_concurrency");
        assert_eq!(advice.value.as_deref(), Some("32"));
    }

    #[test]
    fn a_setting_that_gains_little_is_left_alone() {
        for version in [None, Some(17), Some(18)] {
            let mut record = fixture::record();
            record.plan.questions.postgres_version = version;
            let one = fixture::measured(&mut record, "random-read-d1");
            let read = one.figures.ops.get_mut(&OpKind::Read).unwrap();
            read.iops.value = 8000.0;
            record.advice = advised_settings(&record);
            let advice = find_advice(&record, "effective_io_concurrency");
            assert_eq!(advice.value, None, "{version:?}");
            states(&advice.why, &["gains little"]);
        }
    }
}
