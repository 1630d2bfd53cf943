//! What a disk reports about its own health, in the words of smartctl. The crate `device` fills it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The health of one disk as it reports it. Every field that the disk does not report is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskHealth {
    /// Kernel name of the disk, such as `sda`.
    pub disk: String,
    /// Where it comes from, such as `smartctl 7.3`; `None` when nothing could be learnt.
    pub source: Option<String>,
    /// Why nothing or not everything could be learnt, a clause with what to do; `None` when all is
    /// well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// `ATA`, `NVMe` or `SCSI`.
    pub protocol: Option<String>,
    /// Model as the disk reports it itself.
    pub model: Option<String>,
    /// Serial number as the disk reports it itself.
    pub serial: Option<String>,
    /// Firmware revision as the disk reports it itself.
    pub firmware: Option<String>,
    /// Revolutions per minute; 0 for a disk without moving parts.
    pub rotation_rpm: Option<u32>,
    /// Whether the disk reports that it is healthy. Heat alone does not count here: see
    /// `temperature_alarm`.
    pub passed: Option<bool>,
    /// Temperature in degrees Celsius.
    pub temperature_celsius: Option<i32>,
    /// The temperature from which on the disk complains or slows down.
    pub temperature_limit_celsius: Option<i32>,
    /// Whether the disk itself complains of its temperature now.
    #[serde(default)]
    pub temperature_alarm: Option<bool>,
    /// Hours under power.
    pub power_on_hours: Option<u64>,
    /// Hours under power by Seagate's FARM log, which keeps them when the SMART counters are reset;
    /// only smartctl 7.4 and later reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub farm_power_on_hours: Option<u64>,
    /// Endurance used, in percent; may exceed 100.
    pub wear_percent: Option<u32>,
    /// Spare blocks left, in percent.
    pub spare_percent: Option<u32>,
    /// The level of spare blocks at which the disk raises its alarm.
    pub spare_threshold_percent: Option<u32>,
    /// Sectors or blocks that were replaced by spare ones.
    pub reallocated_sectors: Option<u64>,
    /// Sectors that wait for their next write to be replaced, or to prove good.
    pub pending_sectors: Option<u64>,
    /// Sectors that could not be corrected when the disk looked at them on its own.
    pub uncorrectable_sectors: Option<u64>,
    /// Errors that the medium's own correction could not mend.
    pub media_errors: Option<u64>,
    /// Errors on the cable.
    pub link_errors: Option<u64>,
    /// Power losses without warning.
    pub unsafe_shutdowns: Option<u64>,
    /// Bytes written by hosts over the disk's life.
    pub written_bytes: Option<u64>,
    /// The last self-test, or the one that runs. An extended one that failed stands here until
    /// another extended one passes.
    pub self_test: Option<SelfTest>,
    /// Alarms that the disk raises itself and that threaten data, each a clause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
}

impl DiskHealth {
    /// A disk of which nothing could be learnt, and why.
    pub fn unknown(disk: &str, why: impl Into<String>) -> Self {
        Self {
            disk: disk.to_owned(),
            unavailable: Some(why.into()),
            ..Self::default()
        }
    }
}

/// A self-test of the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SelfTest {
    /// What became of it, in smartctl's words.
    pub status: String,
    /// Whether it passed; `None` while it runs or when it was aborted.
    pub passed: Option<bool>,
    /// The disk's power-on hours when it ended.
    pub hours: Option<u64>,
    /// While it runs: what is left of it, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_percent: Option<u32>,
}
