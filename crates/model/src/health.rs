//! The health of a disk as the disk itself reports it, in the words of smartctl. The crate `device`
//! fills it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The health of one disk as it reports it. Every field that the disk does not report is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskHealth {
    /// Kernel name of the disk, such as `sda`.
    pub disk: String,
    /// The program that told, such as `smartctl 7.3`; `None` when nothing could be learnt.
    pub source: Option<String>,
    /// The reason why nothing or not everything could be learnt, a clause with what to do; `None`
    /// when all is well.
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
    /// The disk's own verdict: true if it reports that it is healthy. Heat alone does not count
    /// here: see `temperature_alarm`.
    pub passed: Option<bool>,
    /// Temperature in degrees Celsius.
    pub temperature_celsius: Option<i32>,
    /// The temperature from which on the disk complains or slows down.
    pub temperature_limit_celsius: Option<i32>,
    /// True if the disk itself complains of its temperature now.
    #[serde(default)]
    pub temperature_alarm: Option<bool>,
    /// Temperatures of all sensors of an NVMe disk, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temperature_sensors_celsius: Vec<i32>,
    /// Minutes that an NVMe disk spent above its warning temperature over its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_minutes: Option<u64>,
    /// Minutes that an NVMe disk spent above its critical temperature over its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_minutes: Option<u64>,
    /// Hours that the disk was under power in its life.
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
    /// The result, in smartctl's words.
    pub status: String,
    /// True if it passed; `None` while it runs or when it was aborted.
    pub passed: Option<bool>,
    /// The disk's power-on hours when it ended.
    pub hours: Option<u64>,
    /// While it runs: what is left of it, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_percent: Option<u32>,
}

/// Counters of a disk before and after a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountedDisk {
    /// Kernel name of the disk.
    pub disk: String,
    /// Counters before the run.
    pub before: DiskCounters,
    /// Counters after the run.
    pub after: DiskCounters,
}

/// Counters that a disk keeps of its load. Every field that it does not report is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskCounters {
    /// Temperatures of all its sensors, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temperatures_celsius: Vec<i32>,
    /// Minutes above its warning temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_minutes: Option<u64>,
    /// Minutes above its critical temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_minutes: Option<u64>,
    /// Times that it throttled itself (NVMe host controlled thermal management, both levels).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttles: Option<u64>,
    /// Seconds in which it was throttled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_seconds: Option<u64>,
    /// Bytes written by hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Endurance used, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear_percent: Option<u32>,
    /// The most that its link carries, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_second: Option<u64>,
    /// Times for which an EBS volume was at its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded: Option<ExceededLimits>,
}

/// Microseconds in which more was asked for than a limit of an EBS volume or of its instance
/// allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExceededLimits {
    /// Requests of the volume.
    pub volume_iops_us: u64,
    /// Bytes of the volume.
    pub volume_throughput_us: u64,
    /// Requests of all volumes of the instance.
    pub instance_iops_us: u64,
    /// Bytes of all volumes of the instance.
    pub instance_throughput_us: u64,
}

impl CountedDisk {
    /// True if the disk counted during the run that it was too hot: it throttled itself, or was
    /// above a temperature of its own. A temperature alone proves nothing.
    pub fn was_hot(&self) -> bool {
        let counts = [
            (self.before.throttles, self.after.throttles),
            (self.before.throttled_seconds, self.after.throttled_seconds),
            (self.before.hot_minutes, self.after.hot_minutes),
            (self.before.critical_minutes, self.after.critical_minutes),
        ];
        for (before, after) in counts {
            if let (Some(before), Some(after)) = (before, after)
                && after > before
            {
                return true;
            }
        }
        false
    }

    /// True if its link carries less after the run than before.
    pub fn has_slower_link(&self) -> bool {
        match (
            self.before.link_bytes_per_second,
            self.after.link_bytes_per_second,
        ) {
            (Some(before), Some(after)) => after < before,
            _ => false,
        }
    }

    /// Bytes that it counted as written during the run.
    pub fn written_bytes(&self) -> Option<u64> {
        self.after
            .written_bytes?
            .checked_sub(self.before.written_bytes?)
    }

    /// Times for which a limit of the volume, or of the instance, was exceeded during the run.
    pub fn exceeded(&self) -> Option<ExceededLimits> {
        let (before, after) = (self.before.exceeded?, self.after.exceeded?);
        Some(ExceededLimits {
            volume_iops_us: after.volume_iops_us.checked_sub(before.volume_iops_us)?,
            volume_throughput_us: after
                .volume_throughput_us
                .checked_sub(before.volume_throughput_us)?,
            instance_iops_us: after
                .instance_iops_us
                .checked_sub(before.instance_iops_us)?,
            instance_throughput_us: after
                .instance_throughput_us
                .checked_sub(before.instance_throughput_us)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(before: DiskCounters, after: DiskCounters) -> CountedDisk {
        CountedDisk {
            disk: "nvme0n1".to_owned(),
            before,
            after,
        }
    }

    #[test]
    fn only_counters_that_rise_prove_heat() {
        let at = |throttles, hot_minutes, degrees| DiskCounters {
            throttles,
            hot_minutes,
            temperatures_celsius: vec![degrees],
            ..DiskCounters::default()
        };
        assert!(!counted(at(Some(4), Some(7), 30), at(Some(4), Some(7), 85)).was_hot());
        assert!(!counted(at(None, None, 30), at(Some(4), Some(7), 85)).was_hot());
        assert!(counted(at(Some(4), Some(7), 30), at(Some(5), Some(7), 30)).was_hot());
        assert!(counted(at(None, Some(7), 30), at(None, Some(8), 30)).was_hot());
    }

    #[test]
    fn bytes_that_a_disk_counts_backwards_are_unknown() {
        let at = |bytes| DiskCounters {
            written_bytes: Some(bytes),
            ..DiskCounters::default()
        };
        assert_eq!(counted(at(5), at(7)).written_bytes(), Some(2));
        assert_eq!(counted(at(7), at(5)).written_bytes(), None);
    }
}
