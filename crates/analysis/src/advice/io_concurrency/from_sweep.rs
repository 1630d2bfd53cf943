//! Advises on both settings by the knee of a sweep's random reads.

use super::setting::{
    BITMAP_SCANS, CONCURRENCY_MAX, ConcurrencySetting, EFFECTIVE, GAIN_MIN, MAINTENANCE,
    effective_setting, maintenance_setting,
};
use crate::advice::reasons_against::{leave_alone, reason_against_rate};
use diskproof_model::advice::{Advice, may_have_setting};
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::sweep::{DepthKnee, SweepOperation};
use diskproof_model::units::format_bytes;

/// The use of maintenance_io_concurrency.
const MAINTENANCE_USE: &str = "for vacuum, analyze and recovery";
/// Block sizes whose knee holds for pages of 8 kB: half a page to two pages.
const NEAR_PAGE: std::ops::RangeInclusive<u32> = 4096..=16_384;

/// The settings that follow from the knee of random reads of about a page; empty without such a
/// knee.
pub(crate) fn advise_from_sweep(record: &Record) -> Vec<Advice> {
    let Some(knee) = knee_of_pages(record) else {
        return Vec::new();
    };
    let workload = SweepOperation::RandRead.cell_name(knee.block_bytes, knee.depth);
    let found = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == workload);
    let Some(index) = found else {
        return Vec::new();
    };
    let version = record.plan.questions.postgres_version;
    let has_maintenance = may_have_setting(version, MAINTENANCE);
    let half_width = knee.iops.relative_half_width();
    let reason =
        reason_against_sweep(record).or_else(|| reason_against_rate(record, index, half_width));
    if let Some(reason) = reason {
        let mut advice = vec![leave_alone(EFFECTIVE, reason.clone(), &[&workload])];
        if has_maintenance {
            advice.push(leave_alone(MAINTENANCE, reason, &[&workload]));
        }
        return advice;
    }
    let mut advice = vec![SettingOfDepth::effective(version).advice(knee, &workload)];
    if has_maintenance {
        advice.push(SettingOfDepth::maintenance(version).advice(knee, &workload));
    }
    advice
}

/// The reason why no figure of the sweep may become a setting, the one for which exports leave them
/// out, too: the knee follows from the cells around it.
fn reason_against_sweep(record: &Record) -> Option<String> {
    let index = record
        .results
        .iter()
        .position(|result| matches!(result, TaskResult::Sweep(_)))?;
    let objection = record.objection(FigureSource::Result(index))?;
    Some(format!(
        "Leave it unchanged, because the figures of the sweep are not the disk's ({}).",
        objection.finding.code
    ))
}

/// Returns `true` if prefetching up to the knee pays. An unknown gain counts as a sufficient one:
/// the sweep found a knee beyond its first depth.
fn is_worth_it(knee: &DepthKnee) -> bool {
    let gains_little = match gain(knee) {
        Some(gain) => gain < GAIN_MIN,
        None => false,
    };
    knee.depth > 1 && !gains_little
}

/// One of the two settings, whose value follows from the requests to keep in flight.
struct SettingOfDepth {
    name: &'static str,
    /// The major version of the server; `None` where it is unknown.
    version: Option<u32>,
    /// The setting of a server of this version for so many requests.
    setting: fn(Option<u32>, u32) -> ConcurrencySetting,
    /// The condition under which a change pays.
    usage: &'static str,
}

impl SettingOfDepth {
    /// effective_io_concurrency.
    fn effective(version: Option<u32>) -> Self {
        Self {
            name: EFFECTIVE,
            version,
            setting: effective_setting,
            usage: BITMAP_SCANS,
        }
    }

    /// maintenance_io_concurrency.
    fn maintenance(version: Option<u32>) -> Self {
        Self {
            name: MAINTENANCE,
            version,
            setting: maintenance_setting,
            usage: MAINTENANCE_USE,
        }
    }

    /// The advice to change the setting as the knee suggests.
    fn advice(&self, knee: &DepthKnee, workload: &str) -> Advice {
        let depth = if is_worth_it(knee) { knee.depth } else { 1 };
        let setting = self.for_depth(depth);
        let why = format!("{}{}", knee_text(knee), setting.default_text);
        if !is_worth_it(knee) {
            return setting.advice(self.name, why, &[workload], None);
        }
        Advice {
            range: self.range(knee),
            ..setting.advice(self.name, why, &[workload], Some(self.usage))
        }
    }

    /// The setting for so many requests in flight, at most the largest that the server takes.
    fn for_depth(&self, depth: u32) -> ConcurrencySetting {
        (self.setting)(self.version, depth.min(CONCURRENCY_MAX))
    }

    /// The values for the depths that the knee may have; `None` where that is one value, and where
    /// the largest depth is unknown.
    fn range(&self, knee: &DepthKnee) -> Option<[f64; 2]> {
        let low = self.for_depth(knee.depth_low).value;
        let high = self.for_depth(knee.depth_high?).value;
        if low == high {
            return None;
        }
        Some([f64::from(low), f64::from(high)])
    }
}

/// The knee of random reads of about a page.
fn knee_of_pages(record: &Record) -> Option<&DepthKnee> {
    let random_reads = record
        .sweep()?
        .matrices
        .iter()
        .find(|matrix| matrix.operation == SweepOperation::RandRead)?;
    let knee = random_reads.knee.as_ref()?;
    if NEAR_PAGE.contains(&knee.block_bytes) {
        Some(knee)
    } else {
        None
    }
}

/// The rate at the knee over that of one request; `None` where the latter is unknown or zero.
fn gain(knee: &DepthKnee) -> Option<f64> {
    let single = knee.iops_single.as_ref()?.value;
    if single > 0.0 {
        Some(knee.iops.value / single)
    } else {
        None
    }
}

/// A sentence or two on the knee: where it is, the rate there, and whether prefetching pays.
fn knee_text(knee: &DepthKnee) -> String {
    let range = match knee.depth_high {
        Some(high) if high == knee.depth_low => String::new(),
        Some(high) => format!(" (95 % interval {} to {high})", knee.depth_low),
        None => format!(" ({} or more: sweep larger depths)", knee.depth_low),
    };
    let gain = match gain(knee) {
        Some(gain) => format!(", {gain:.1} times the rate of one"),
        None => String::new(),
    };
    let effect = if is_worth_it(knee) {
        "pays"
    } else {
        "gains little"
    };
    format!(
        "The knee of random reads of {} is at {} in flight{range}: {}{gain}. Prefetching {effect}; \
         beyond the knee, requests mostly wait.",
        format_bytes(u64::from(knee.block_bytes)),
        knee.depth,
        knee.iops.value_text(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::finding::{Cause, Meaning, Severity};
    use diskproof_model::record::Estimate;
    use diskproof_model::sweep::{SweepMatrix, SweepRecord};

    /// A figure that is not the disk's, of a cell beside the knee, takes the setting away, as it
    /// takes away the export.
    #[test]
    fn setting_follows_from_no_sweep_that_an_objection_concerns() {
        let mut record = fixture::record();
        let row = fixture::measured(&mut record, "random-read-d32");
        row.data.workload.name = SweepOperation::RandRead.cell_name(8192, 32);
        let knee = DepthKnee {
            block_bytes: 8192,
            depth: 32,
            depth_low: 32,
            depth_high: Some(32),
            iops: Estimate::new(30, 40_000.0, Some(400.0), "1/s"),
            iops_single: Some(Estimate::new(30, 10_000.0, Some(100.0), "1/s")),
        };
        record.results = vec![TaskResult::Sweep(SweepRecord {
            matrices: vec![SweepMatrix {
                operation: SweepOperation::RandRead,
                cells: Vec::new(),
                knee: Some(knee),
                bandwidth_limit: None,
                cost_model: None,
            }],
            spans: Vec::new(),
        })];
        let has_value = |record: &Record| {
            let advice = advise_from_sweep(record);
            assert!(!advice.is_empty());
            advice.iter().all(|one| one.value.is_some())
        };
        assert!(has_value(&record));
        let mut finding = fixture::finding("io-errors", Severity::Failure, "/measurements/0/data");
        finding.says = Meaning::NotTheDisk {
            cause: Cause::Cache,
        };
        record.findings.push(finding);
        assert!(!has_value(&record));
    }

    fn range(
        version: Option<u32>,
        depth: u32,
        low: u32,
        high: Option<u32>,
    ) -> [Option<[f64; 2]>; 2] {
        let knee = DepthKnee {
            block_bytes: 8192,
            depth,
            depth_low: low,
            depth_high: high,
            iops: Estimate::new(30, 40_000.0, Some(400.0), "1/s"),
            iops_single: Some(Estimate::new(30, 10_000.0, Some(100.0), "1/s")),
        };
        [
            SettingOfDepth::effective(version)
                .advice(&knee, "cell")
                .range,
            SettingOfDepth::maintenance(version)
                .advice(&knee, "cell")
                .range,
        ]
    }

    /// The range is one of values of the setting, not of requests in flight.
    #[test]
    fn range_contains_the_value() {
        assert_eq!(range(Some(18), 4, 2, Some(8)), [None, None]);
        assert_eq!(range(Some(18), 16, 8, Some(64)), [Some([16.0, 64.0]); 2]);
        assert_eq!(range(Some(14), 4, 2, Some(8)), [Some([2.0, 8.0]), None]);
        // 11 × (1 + 1/2 + … + 1/11) = 33.2, 6 × H(6) = 14.7, 7 × H(7) = 18.2, 19 × H(19) = 67.4.
        assert_eq!(range(Some(12), 32, 16, Some(64))[0], Some([7.0, 19.0]));
        assert_eq!(range(None, 32, 16, None), [None, None]);
    }
}
