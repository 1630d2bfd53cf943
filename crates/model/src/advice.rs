//! A setting of a database server that follows from what was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The settings that not every version of PostgreSQL has, with the first and the last version that
/// have them. A server that finds a setting in its file that it does not know does not start.
const VERSIONS: [(&str, RangeInclusive<u32>); 6] = [
    ("maintenance_io_concurrency", 13..=u32::MAX),
    ("io_combine_limit", 17..=u32::MAX),
    ("io_max_combine_limit", 18..=u32::MAX),
    ("io_method", 18..=u32::MAX),
    ("io_workers", 18..=18),
    ("io_max_workers", 19..=u32::MAX),
];

/// The versions of PostgreSQL with a setting; `None` where all have it.
pub fn versions_with(setting: &str) -> Option<RangeInclusive<u32>> {
    for (name, versions) in VERSIONS {
        if name == setting {
            return Some(versions);
        }
    }
    None
}

/// True if a server of this version has a setting. One of an unknown version may have each.
pub fn may_have_setting(version: Option<u32>, setting: &str) -> bool {
    match (version, versions_with(setting)) {
        (Some(version), Some(versions)) => versions.contains(&version),
        _ => true,
    }
}

/// A setting that follows from the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// The name in the server's configuration: postgresql.conf, or my.cnf for `innodb_…`.
    pub setting: String,
    /// The value to set; `null` where only a range is honest, or where it should be left alone.
    pub value: Option<String>,
    /// The range that the figures allow.
    pub range: Option<[f64; 2]>,
    /// The reason, with the figures.
    pub why: String,
    /// The workloads that it comes from.
    pub from: Vec<String>,
    /// The server's default; `null` where it depends on an unknown version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The condition under which the value is the right one, as a clause; absent where it always
    /// is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

impl Advice {
    /// The server that has the setting.
    pub fn server(&self) -> &'static str {
        if self.setting.starts_with("innodb_") {
            "MySQL"
        } else {
            "PostgreSQL"
        }
    }

    /// The configuration file of that server.
    pub fn server_file(&self) -> &'static str {
        if self.server() == "MySQL" {
            "my.cnf"
        } else {
            "postgresql.conf"
        }
    }

    /// True if the value differs from the server's default.
    pub fn changes(&self) -> bool {
        self.value.is_some() && self.value != self.default
    }
}
