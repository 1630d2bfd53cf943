//! Requests that PostgreSQL keeps in flight: the settings by version, and the ones that follow from
//! the knee of a sweep.

use super::fitness::{leave_alone, unfit_rate};
use diskproof_model::record::{Advice, Record};
use diskproof_model::sweep::{DepthKnee, SweepMatrix, SweepOperation};
use diskproof_model::units::format_bytes;

/// The first version whose default is 16 (release notes of PostgreSQL 18); before, it is 1.
const DEFAULT_OF_16_FROM: u32 = 18;
/// Up to 12 the server computes its requests in flight from the setting: 1 + 1/2 + … + 1/N times N
/// (release notes of PostgreSQL 13).
const PLAIN_COUNT_FROM: u32 = 13;
/// Prefetching that gains less costs other sessions more than it brings.
pub(super) const GAIN_MIN: f64 = 2.0;
/// The default of PostgreSQL 18, which suits every disk that gains from it.
const CONCURRENCY_DEFAULT: u32 = 16;

/// maintenance_io_concurrency exists from this version on, and its default until version 17
/// (documentation of PostgreSQL 13 and 18).
const MAINTENANCE_FROM: u32 = 13;
const MAINTENANCE_DEFAULT: u32 = 10;
/// The largest value of both settings.
const CONCURRENCY_MAX: u32 = 1000;
/// Block sizes whose knee holds for pages of 8 kB.
const NEAR_PAGE: std::ops::RangeInclusive<u32> = 4096..=16_384;

const EFFECTIVE: &str = "effective_io_concurrency";
const MAINTENANCE: &str = "maintenance_io_concurrency";
/// What effective_io_concurrency is for.
pub(super) const BITMAP_SCANS: &str = "for bitmap scans of tables larger than the cache";

/// A setting for a version, or for all where the version is unknown.
pub(super) struct ConcurrencySetting {
    /// The value.
    pub value: u32,
    /// The version's default.
    pub default: Option<u32>,
    /// What is said of the default.
    pub default_text: String,
}

impl ConcurrencySetting {
    /// To set it, for this reason.
    pub(super) fn advice(
        &self,
        setting: &str,
        why: String,
        from: &[&str],
        condition: Option<&str>,
    ) -> Advice {
        Advice {
            value: Some(self.value.to_string()),
            default: self.default.map(|default| default.to_string()),
            condition: condition.map(str::to_owned),
            ..leave_alone(setting, why, from)
        }
    }
}

/// The value of effective_io_concurrency that keeps this many requests in flight.
pub(super) fn effective_setting(version: Option<u32>, wanted: u32) -> ConcurrencySetting {
    let default = version.map(|version| match version {
        DEFAULT_OF_16_FROM.. => CONCURRENCY_DEFAULT,
        _ => 1,
    });
    let value = match version {
        Some(version) if version < PLAIN_COUNT_FROM => setting_before_13(wanted),
        Some(DEFAULT_OF_16_FROM..) | None if wanted <= CONCURRENCY_DEFAULT => CONCURRENCY_DEFAULT,
        _ => wanted,
    };
    let unknown = " The default is 16 from PostgreSQL 18 on and 1 before (--pg-version).";
    setting(version, default, value, unknown)
}

/// The value of maintenance_io_concurrency, which counts requests in every version.
fn maintenance_setting(version: Option<u32>, wanted: u32) -> ConcurrencySetting {
    let default = version.map(|version| match version {
        DEFAULT_OF_16_FROM.. => CONCURRENCY_DEFAULT,
        _ => MAINTENANCE_DEFAULT,
    });
    let value = wanted.max(default.unwrap_or(CONCURRENCY_DEFAULT));
    let unknown = " The default is 16 from PostgreSQL 18 on and 10 before (--pg-version).";
    setting(version, default, value, unknown)
}

fn setting(
    version: Option<u32>,
    default: Option<u32>,
    value: u32,
    unknown: &str,
) -> ConcurrencySetting {
    let default_text = match (version, default) {
        (Some(version), Some(default)) if default == value => {
            format!(" This is the default of PostgreSQL {version}, so no change is needed.")
        }
        (Some(version), Some(default)) => {
            format!(" The default of PostgreSQL {version} is {default}.")
        }
        _ => unknown.to_owned(),
    };
    ConcurrencySetting {
        value,
        default,
        default_text,
    }
}

/// The setting from which versions before 13 compute this many requests in flight.
fn setting_before_13(wanted: u32) -> u32 {
    let (mut setting, mut sum) = (1, 1.0);
    while f64::from(setting) * sum < f64::from(wanted) {
        setting += 1;
        sum += 1.0 / f64::from(setting);
    }
    setting
}

/// The settings that follow from the knee of the random reads of a sweep. Without a knee none.
pub(super) fn from_knee(record: &Record) -> Vec<Advice> {
    let Some((matrix, knee)) = knee_of_pages(record) else {
        return Vec::new();
    };
    let name = matrix.operation.cell_name(knee.block_bytes, knee.depth);
    let found = record
        .measurements
        .iter()
        .position(|m| m.data.workload.name == name);
    let Some(index) = found else {
        return Vec::new();
    };
    let version = record.plan.questions.postgres_version;
    let has_maintenance = match version {
        Some(version) => version >= MAINTENANCE_FROM,
        None => true,
    };
    let precision = knee.iops.relative_half_width();
    if let Some(why) = unfit_rate(record, index, precision) {
        let mut advice = vec![leave_alone(EFFECTIVE, why.clone(), &[&name])];
        if has_maintenance {
            advice.push(leave_alone(MAINTENANCE, why, &[&name]));
        }
        return advice;
    }
    let wanted = wanted_depth(knee);
    let effective = effective_setting(version, wanted);
    let mut advice = vec![knee_advice(
        EFFECTIVE,
        &effective,
        knee,
        &name,
        BITMAP_SCANS,
    )];
    if has_maintenance {
        let maintenance = maintenance_setting(version, wanted);
        let what = "for vacuum, analyze and recovery";
        advice.push(knee_advice(MAINTENANCE, &maintenance, knee, &name, what));
    }
    advice
}

/// The requests to keep in flight; 1 where more of them do not pay.
fn wanted_depth(knee: &DepthKnee) -> u32 {
    if pays(knee) {
        knee.depth.min(CONCURRENCY_MAX)
    } else {
        1
    }
}

/// Whether prefetching up to the knee pays.
fn pays(knee: &DepthKnee) -> bool {
    let is_small = match gain(knee) {
        Some(gain) => gain < GAIN_MIN,
        None => false,
    };
    knee.depth > 1 && !is_small
}

/// The advice to set it as the knee suggests, for this use.
fn knee_advice(
    name: &str,
    setting: &ConcurrencySetting,
    knee: &DepthKnee,
    cell: &str,
    what: &str,
) -> Advice {
    let why = format!("{}{}", knee_text(knee), setting.default_text);
    let condition = if pays(knee) { Some(what) } else { None };
    Advice {
        range: knee
            .depth_high
            .map(|high| [f64::from(knee.depth_low), f64::from(high)]),
        ..setting.advice(name, why, &[cell], condition)
    }
}

/// The knee of random reads of about a page.
fn knee_of_pages(record: &Record) -> Option<(&SweepMatrix, &DepthKnee)> {
    let matrix = record
        .sweep()?
        .matrices
        .iter()
        .find(|matrix| matrix.operation == SweepOperation::RandRead)?;
    let knee = matrix.knee.as_ref()?;
    if NEAR_PAGE.contains(&knee.block_bytes) {
        Some((matrix, knee))
    } else {
        None
    }
}

/// The rate at the knee over that of one request.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_the_version() {
        let value = |version, wanted| effective_setting(version, wanted).value;
        assert_eq!(value(Some(18), 4), 16, "the default suits");
        assert_eq!(value(Some(18), 64), 64);
        assert_eq!(value(Some(14), 4), 4);
        assert_eq!(value(Some(12), 8), setting_before_13(8));
        let maintenance = |version, wanted| maintenance_setting(version, wanted).value;
        assert_eq!(maintenance(Some(14), 4), 10);
        assert_eq!(maintenance(Some(18), 64), 64);
    }
}
