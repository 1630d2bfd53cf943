//! Both settings from the knee of a sweep's random reads.

use super::setting::{
    BITMAP_SCANS, CONCURRENCY_MAX, ConcurrencySetting, EFFECTIVE, GAIN_MIN, MAINTENANCE,
    effective_setting, maintenance_setting,
};
use crate::advice::fitness::{leave_alone, reason_against_rate};
use diskproof_model::advice::Advice;
use diskproof_model::record::Record;
use diskproof_model::sweep::{DepthKnee, SweepOperation};
use diskproof_model::units::format_bytes;

/// maintenance_io_concurrency exists from this version on (documentation of PostgreSQL 13).
const MAINTENANCE_FROM: u32 = 13;
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
        .position(|m| m.data.workload.name == workload);
    let Some(index) = found else {
        return Vec::new();
    };
    let version = record.plan.questions.postgres_version;
    let has_maintenance = match version {
        Some(version) => version >= MAINTENANCE_FROM,
        None => true,
    };
    let half_width = knee.iops.relative_half_width();
    if let Some(reason) = reason_against_rate(record, index, half_width) {
        let mut advice = vec![leave_alone(EFFECTIVE, reason.clone(), &[&workload])];
        if has_maintenance {
            advice.push(leave_alone(MAINTENANCE, reason, &[&workload]));
        }
        return advice;
    }
    let depth = advised_depth(knee);
    let effective = effective_setting(version, depth);
    let mut advice = vec![knee_advice(
        EFFECTIVE,
        &effective,
        knee,
        &workload,
        BITMAP_SCANS,
    )];
    if has_maintenance {
        let maintenance = maintenance_setting(version, depth);
        advice.push(knee_advice(
            MAINTENANCE,
            &maintenance,
            knee,
            &workload,
            MAINTENANCE_USE,
        ));
    }
    advice
}

/// The requests to keep in flight; 1 where more of them do not pay.
fn advised_depth(knee: &DepthKnee) -> u32 {
    if pays(knee) {
        knee.depth.min(CONCURRENCY_MAX)
    } else {
        1
    }
}

/// True if prefetching up to the knee pays. An unknown gain counts as a sufficient one: the sweep
/// found a knee beyond one request.
fn pays(knee: &DepthKnee) -> bool {
    let gains_little = match gain(knee) {
        Some(gain) => gain < GAIN_MIN,
        None => false,
    };
    knee.depth > 1 && !gains_little
}

/// The advice to change one of the settings as the knee suggests. `usage` is the condition under
/// which that pays.
fn knee_advice(
    name: &str,
    setting: &ConcurrencySetting,
    knee: &DepthKnee,
    workload: &str,
    usage: &str,
) -> Advice {
    let why = format!("{}{}", knee_text(knee), setting.default_text);
    if !pays(knee) {
        return setting.advice(name, why, &[workload], None);
    }
    Advice {
        range: knee
            .depth_high
            .map(|high| [f64::from(knee.depth_low), f64::from(high)]),
        ..setting.advice(name, why, &[workload], Some(usage))
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
    let effect = if pays(knee) { "pays" } else { "gains little" };
    format!(
        "The knee of random reads of {} is at {} in flight{range}: {}{gain}. Prefetching {effect}; \
         beyond the knee, requests mostly wait.",
        format_bytes(u64::from(knee.block_bytes)),
        knee.depth,
        knee.iops.value_text(),
    )
}
