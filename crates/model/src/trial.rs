//! Settings that a temporary PostgreSQL server tries: the default against another value,
//! alternately, with what each pair of slices measured. Knows no server.

use serde::{Deserialize, Serialize};

/// Which settings a server tries, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialPlan {
    /// The settings, in order. Each gets the same share of the time that is left.
    pub trials: Vec<PlannedTrial>,
    /// Longest time of all of them with the making of the table, in nanoseconds.
    pub time_ns: u64,
    /// Most pairs of a setting.
    pub pairs_max: u32,
    /// Size of the table that is scanned.
    pub table_bytes: u64,
}

/// A setting and its two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedTrial {
    /// Its name in postgresql.conf.
    pub setting: String,
    /// The server's default.
    pub default: String,
    /// The other value; absent where the INSERTs of the same run decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// What the server does with either.
    pub load: TrialLoad,
    /// Sessions at the same time.
    pub clients: u32,
}

/// A load that a setting acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialLoad {
    /// Bitmap heap scans of 256 rows on as many pages.
    BitmapScan,
    /// ANALYZE, which samples pages of the whole table.
    Analyze,
    /// A join with half of the table, which the planner makes by index or by a scan.
    Join,
    /// The whole table in order.
    SequentialScan,
    /// INSERTs of single rows, each committed.
    Inserts,
}

impl TrialLoad {
    /// Whether it reads a table that is larger than the server's cache.
    pub fn is_scan(self) -> bool {
        self != Self::Inserts
    }

    /// What its rate counts, for tables.
    pub fn unit(self) -> &'static str {
        match self {
            Self::BitmapScan | Self::Analyze | Self::SequentialScan => "pages/s",
            Self::Join => "joins/s",
            Self::Inserts => "INSERTs/s",
        }
    }

    /// Its name in a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::BitmapScan => "bitmap heap scan",
            Self::Analyze => "ANALYZE",
            Self::Join => "join",
            Self::SequentialScan => "sequential scan",
            Self::Inserts => "INSERTs",
        }
    }
}

/// Rates with the two values, one slice after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialPair {
    /// With the default, per second.
    pub default_rate: f64,
    /// With the other value, per second.
    pub candidate_rate: f64,
}

/// What the pairs of a setting measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialMeasurement {
    /// The setting, with the value that was tried.
    pub trial: PlannedTrial,
    /// Its pairs, in order.
    pub pairs: Vec<TrialPair>,
    /// Why it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
    /// Bytes that the server read from files.
    pub asked_bytes: u64,
    /// Bytes that the disks read meanwhile; `None` where they cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// How the server ran the join, with the default and with the other value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<[String; 2]>,
}

/// What came of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// The other value is faster, by more than the margin.
    Faster,
    /// The two differ by less than the margin.
    Same,
    /// The other value is slower, by more than the margin.
    Slower,
    /// The interval leaves it open.
    Undecided,
    /// The reads did not all come from the disk, or nothing tells.
    Unproven,
    /// It was not tried.
    Untested,
}

/// How many times as fast the other value is as the default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialGain {
    /// The ratio of the rates: the geometric mean over pairs.
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low_95: f64,
    /// Upper end.
    pub high_95: f64,
}

/// A setting and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRecord {
    /// The setting, with the value that was tried.
    pub trial: PlannedTrial,
    /// What came of it.
    pub outcome: TrialOutcome,
    /// How many times as fast the other value is; absent with fewer than three pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<TrialGain>,
    /// Bytes that the disk read for each byte that the server read from files; absent for INSERTs,
    /// and where the disk's reads cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_share: Option<f64>,
    /// How the server ran the join, with the default and with the other value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<[String; 2]>,
    /// Why it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
    /// Its pairs, in order.
    pub pairs: Vec<TrialPair>,
}
