//! A setting of a database server that follows from what was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
