//! Computes the value that makes a version of PostgreSQL keep so many requests in flight, and
//! states the version's default.

use crate::advice::reasons_against::leave_alone;
use diskproof_model::advice::Advice;

/// The first version whose default is 16 (release notes of PostgreSQL 18); before, it is 1.
const DEFAULT_OF_16_FROM: u32 = 18;
/// Up to 12 the server computes its requests in flight from the setting: 1 + 1/2 + … + 1/N times N
/// (release notes of PostgreSQL 13).
const PLAIN_COUNT_FROM: u32 = 13;
/// From this gain in rate on, prefetching pays. If it gains less, it costs other sessions more than
/// it brings. Chosen, not measured.
pub(super) const GAIN_MIN: f64 = 2.0;
/// The default of PostgreSQL 18 (its release notes), which suits every disk that gains from it.
const CONCURRENCY_DEFAULT: u32 = 16;

/// The default of maintenance_io_concurrency before version 18 (documentation of PostgreSQL 13).
const MAINTENANCE_DEFAULT: u32 = 10;
/// The largest value of both settings (documentation of PostgreSQL 18).
pub(super) const CONCURRENCY_MAX: u32 = 1000;

pub(super) const EFFECTIVE: &str = "effective_io_concurrency";
pub(super) const MAINTENANCE: &str = "maintenance_io_concurrency";
/// The use of effective_io_concurrency.
pub(super) const BITMAP_SCANS: &str = "for bitmap scans of tables larger than the cache";

/// The value of one of the two settings. Where the version of the server is unknown, it suits every
/// version.
pub(super) struct ConcurrencySetting {
    pub(super) value: u32,
    /// `None` where the version is unknown.
    pub(super) default: Option<u32>,
    /// A sentence on the default, which begins with a space.
    pub(super) default_text: String,
}

impl ConcurrencySetting {
    /// The advice to set `setting` to this value. `condition` is the clause of
    /// [`Advice::condition`]; without one it never pays, and the setting is left alone.
    pub(super) fn advice(
        &self,
        setting: &str,
        why: String,
        from: &[&str],
        condition: Option<&str>,
    ) -> Advice {
        if condition.is_none() {
            return leave_alone(setting, why, from);
        }
        Advice {
            value: Some(self.value.to_string()),
            default: self.default.map(|default| default.to_string()),
            condition: condition.map(str::to_owned),
            ..leave_alone(setting, why, from)
        }
    }
}

/// The value of effective_io_concurrency that keeps at least this many requests in flight.
pub(super) fn effective_setting(version: Option<u32>, depth: u32) -> ConcurrencySetting {
    let default = version.map(|version| match version {
        DEFAULT_OF_16_FROM.. => CONCURRENCY_DEFAULT,
        _ => 1,
    });
    let value = match version {
        Some(version) if version < PLAIN_COUNT_FROM => setting_before_13(depth),
        Some(DEFAULT_OF_16_FROM..) | None if depth <= CONCURRENCY_DEFAULT => CONCURRENCY_DEFAULT,
        _ => depth,
    };
    let text_without_version =
        " The default is 16 from PostgreSQL 18 on and 1 before (--pg-version).";
    with_default_text(version, default, value, text_without_version)
}

/// The value of maintenance_io_concurrency, which counts requests in every version.
pub(super) fn maintenance_setting(version: Option<u32>, depth: u32) -> ConcurrencySetting {
    let default = version.map(|version| match version {
        DEFAULT_OF_16_FROM.. => CONCURRENCY_DEFAULT,
        _ => MAINTENANCE_DEFAULT,
    });
    let value = depth.max(default.unwrap_or(CONCURRENCY_DEFAULT));
    let text_without_version =
        " The default is 16 from PostgreSQL 18 on and 10 before (--pg-version).";
    with_default_text(version, default, value, text_without_version)
}

/// The setting with the sentence on its default. `text_without_version` is the one where the
/// version is unknown.
fn with_default_text(
    version: Option<u32>,
    default: Option<u32>,
    value: u32,
    text_without_version: &str,
) -> ConcurrencySetting {
    let default_text = match (version, default) {
        (Some(version), Some(default)) if default == value => {
            format!(" This is the default of PostgreSQL {version}, so no change is needed.")
        }
        (Some(version), Some(default)) => {
            format!(" The default of PostgreSQL {version} is {default}.")
        }
        _ => text_without_version.to_owned(),
    };
    ConcurrencySetting {
        value,
        default,
        default_text,
    }
}

/// The smallest setting from which versions before 13 compute at least this many requests in
/// flight.
fn setting_before_13(depth: u32) -> u32 {
    let mut setting = 1;
    // 1 + 1/2 + … + 1/setting
    let mut sum = 1.0;
    while f64::from(setting) * sum < f64::from(depth) {
        setting += 1;
        sum += 1.0 / f64::from(setting);
    }
    setting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_the_version() {
        let value = |version, depth| effective_setting(version, depth).value;
        assert_eq!(value(Some(18), 4), 16, "the default suits");
        assert_eq!(value(Some(18), 64), 64);
        assert_eq!(value(Some(14), 4), 4);
        assert_eq!(value(Some(12), 8), setting_before_13(8));
        let maintenance = |version, depth| maintenance_setting(version, depth).value;
        assert_eq!(maintenance(Some(14), 4), 10);
        assert_eq!(maintenance(Some(18), 64), 64);
    }
}
