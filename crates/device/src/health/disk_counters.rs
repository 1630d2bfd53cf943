//! Reads the counters that disks keep of their load: times of throttling and of heat, bytes
//! written, and the time for which a cloud volume was at its limits. They are read before and after
//! a run, and never in between, because a query may disturb it.
//!
//! smartctl's report on the health of a disk comes first. Where nvme-cli is installed, its
//! temperatures and minutes of heat replace those; the bytes written stay smartctl's. It alone
//! reports NVMe's thermal management and the statistics of EBS volumes (log page 0xD0).

use crate::health::{TIME_LIMIT, verified_node};
use crate::programs::external_program::{find_program, output_of};
use diskproof_model::health::{DiskCounters, DiskHealth, ExceededLimits};
use diskproof_model::target::{Layer, TargetIdentity};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Zero degrees Celsius in Kelvin: nvme-cli prints the register, which is in Kelvin.
const ZERO_CELSIUS: u64 = 273;
/// The hottest reading of a sensor that is believed, in Kelvin: 150 °C. 0 stands for no sensor.
const KELVIN_MAX: u64 = 423;
/// Sensors of the log page (NVM Express base specification 1.4, 5.14.1.2).
const SENSORS: usize = 8;
/// Bytes of a data unit: 1000 units of 512 bytes (the same section).
const DATA_UNIT_BYTES: u64 = 512_000;
/// A volume of EBS reports this model.
const EBS_MODEL: &str = "Amazon Elastic Block Store";

/// A disk with its counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct CountersOfDisk {
    /// Kernel name of the disk.
    pub disk: String,
    /// Counters of the disk at one moment.
    pub counters: DiskCounters,
}

/// The counters of the disks below these targets, each disk once. `health` is what smartctl has
/// just reported of them, and `search_path` lists the directories of programs, as PATH does.
pub fn disk_counters(
    identities: &[TargetIdentity],
    health: &[DiskHealth],
    search_path: Option<&OsStr>,
) -> Vec<CountersOfDisk> {
    let nvme = find_program("nvme", search_path);
    let mut disks: Vec<CountersOfDisk> = Vec::new();
    for identity in identities {
        for disk in identity.disks() {
            if disks.iter().any(|known| known.disk == disk.name) {
                continue;
            }
            let mut counters = match health.iter().find(|known| known.disk == disk.name) {
                Some(known) => counters_of_health(known),
                None => DiskCounters::default(),
            };
            counters.link_bytes_per_second = match &disk.link {
                Some(link) => link.bytes_per_second_max,
                None => None,
            };
            if let Some(program) = &nvme
                && disk.name.starts_with("nvme")
                && let Some(node) = verified_node(disk)
            {
                query_nvme(program, &node, is_ebs_volume(disk), &mut counters);
            }
            disks.push(CountersOfDisk {
                disk: disk.name.clone(),
                counters,
            });
        }
    }
    disks
}

/// The counters in smartctl's report.
fn counters_of_health(health: &DiskHealth) -> DiskCounters {
    let mut temperatures = health.temperature_sensors_celsius.clone();
    if temperatures.is_empty() {
        temperatures.extend(health.temperature_celsius);
    }
    DiskCounters {
        temperatures_celsius: temperatures,
        hot_minutes: health.hot_minutes,
        critical_minutes: health.critical_minutes,
        written_bytes: health.written_bytes,
        wear_percent: health.wear_percent,
        ..DiskCounters::default()
    }
}

fn is_ebs_volume(disk: &Layer) -> bool {
    match &disk.model {
        Some(model) => model.starts_with(EBS_MODEL),
        None => false,
    }
}

/// Adds the counters that nvme-cli reads from the disk at `node`. Those that it does not print stay
/// as they are. The caller must have verified that the node is that of the disk.
fn query_nvme(program: &Path, node: &Path, is_ebs: bool, counters: &mut DiskCounters) {
    if let Some(text) = output_of_nvme(program, &["smart-log"], node) {
        add_smart_log(&text, counters);
    }
    if is_ebs && let Some(text) = output_of_nvme(program, &["amzn", "stats"], node) {
        counters.exceeded = read_amzn_stats(&text);
    }
}

/// The output of `nvme SUBCOMMAND NODE -o json`; `None` where it could not be run, or did not end
/// in time.
fn output_of_nvme(program: &Path, subcommand: &[&str], node: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(subcommand).arg(node).args(["-o", "json"]);
    output_of(command, TIME_LIMIT).ok()
}

/// Adds what `nvme smart-log -o json` prints. The names are those of nvme-cli 1.x and 2.x.
fn add_smart_log(text: &str, counters: &mut DiskCounters) {
    let Ok(log) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let mut sensors = Vec::new();
    for number in 1..=SENSORS {
        let kelvin = count(&log, &format!("temperature_sensor_{number}"));
        if let Some(kelvin @ 1..=KELVIN_MAX) = kelvin {
            sensors.push(kelvin as i32 - ZERO_CELSIUS as i32);
        }
    }
    if !sensors.is_empty() {
        counters.temperatures_celsius = sensors;
    }
    counters.hot_minutes = count(&log, "warning_temp_time").or(counters.hot_minutes);
    counters.critical_minutes = count(&log, "critical_comp_time").or(counters.critical_minutes);
    counters.throttles = sum(&log, ["thm_temp1_trans_count", "thm_temp2_trans_count"]);
    counters.throttled_seconds = sum(&log, ["thm_temp1_total_time", "thm_temp2_total_time"]);
    if counters.written_bytes.is_none()
        && let Some(units) = count(&log, "data_units_written")
    {
        counters.written_bytes = units.checked_mul(DATA_UNIT_BYTES);
    }
}

/// Reads what `nvme amzn stats -o json` prints: microseconds in which more was requested than the
/// volume or the instance allows. `None` where it lacks one of the four. Versions of nvme-cli name
/// the limits of the instance in two ways.
fn read_amzn_stats(text: &str) -> Option<ExceededLimits> {
    let stats: Value = serde_json::from_str(text).ok()?;
    let instance_iops = count(&stats, "ec2_instance_ebs_performance_exceeded_iops")
        .or(count(&stats, "ec2_instance_performance_exceeded_iops"));
    let instance_throughput = count(&stats, "ec2_instance_ebs_performance_exceeded_tp")
        .or(count(&stats, "ec2_instance_performance_exceeded_tp"));
    Some(ExceededLimits {
        volume_iops_us: count(&stats, "ebs_volume_performance_exceeded_iops")?,
        volume_throughput_us: count(&stats, "ebs_volume_performance_exceeded_tp")?,
        instance_iops_us: instance_iops?,
        instance_throughput_us: instance_throughput?,
    })
}

/// A count under a key. nvme-cli writes numbers of 128 bits as text.
fn count(document: &Value, key: &str) -> Option<u64> {
    let value = document.get(key)?;
    match value.as_u64() {
        Some(count) => Some(count),
        None => value.as_str()?.replace(',', "").parse().ok(),
    }
}

/// The sum of two counts; `None` where neither is known.
fn sum(document: &Value, keys: [&str; 2]) -> Option<u64> {
    let counts = keys.map(|key| count(document, key));
    match counts {
        [None, None] => None,
        [one, other] => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::disk::bare_layer;
    use diskproof_model::target::TargetKind;
    use std::os::unix::fs::PermissionsExt;

    /// As nvme-cli 1.16 printed it on a disk in service.
    const SMART_LOG: &str = r#"{
        "critical_warning" : 0, "temperature" : 306, "avail_spare" : 100, "spare_thresh" : 10,
        "percent_used" : 14, "data_units_read" : 571340121, "data_units_written" : 2115024501,
        "host_read_commands" : 9347931143, "host_write_commands" : 51493840602,
        "controller_busy_time" : 1974546, "power_cycles" : 290, "power_on_hours" : 38313,
        "unsafe_shutdowns" : 139, "media_errors" : 0, "num_err_log_entries" : 17,
        "warning_temp_time" : 0, "critical_comp_time" : 0,
        "temperature_sensor_1" : 306, "temperature_sensor_2" : 301,
        "temperature_sensor_3" : 296, "temperature_sensor_4" : 295,
        "thm_temp1_trans_count" : 3, "thm_temp2_trans_count" : 1,
        "thm_temp1_total_time" : 42, "thm_temp2_total_time" : 5 }"#;

    #[test]
    fn smart_log_of_nvme_cli_is_read() {
        let mut counters = DiskCounters::default();
        add_smart_log(SMART_LOG, &mut counters);
        assert_eq!(counters.temperatures_celsius, [33, 28, 23, 22]);
        assert_eq!(counters.throttles, Some(4));
        assert_eq!(counters.throttled_seconds, Some(47));
        assert_eq!(counters.hot_minutes, Some(0));
        assert_eq!(counters.written_bytes, Some(2_115_024_501 * 512_000));
    }

    const AMZN_STATS: &str = r#"{"ebs_volume_performance_exceeded_iops": 7,
        "ebs_volume_performance_exceeded_tp": 0,
        "ec2_instance_ebs_performance_exceeded_iops": 0,
        "ec2_instance_ebs_performance_exceeded_tp": 0}"#;

    /// Makes a program `nvme` that prints these texts, whatever the disk.
    fn fake_nvme(directory: &Path) -> std::path::PathBuf {
        let program = directory.join("nvme");
        let script = format!(
            "#!/bin/sh\ncase $1 in smart-log) echo '{SMART_LOG}';; amzn) echo '{AMZN_STATS}';; esac"
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        program
    }

    /// A disk of which smartctl reports everything that nvme-cli reports too.
    fn reported_by_smartctl(disk: &str) -> DiskHealth {
        DiskHealth {
            disk: disk.to_owned(),
            temperature_sensors_celsius: vec![50, 51],
            hot_minutes: Some(8),
            critical_minutes: Some(9),
            written_bytes: Some(1000),
            wear_percent: Some(14),
            ..DiskHealth::default()
        }
    }

    #[test]
    fn nvme_cli_replaces_temperatures_and_heat_but_not_bytes_written() {
        let directory = tempfile::tempdir().unwrap();
        let program = fake_nvme(directory.path());
        for is_ebs in [false, true] {
            let mut counters = counters_of_health(&reported_by_smartctl("nvme0n1"));
            query_nvme(&program, Path::new("/dev/x"), is_ebs, &mut counters);
            let expected = DiskCounters {
                temperatures_celsius: vec![33, 28, 23, 22],
                hot_minutes: Some(0),
                critical_minutes: Some(0),
                throttles: Some(4),
                throttled_seconds: Some(47),
                written_bytes: Some(1000),
                wear_percent: Some(14),
                link_bytes_per_second: None,
                exceeded: is_ebs.then_some(ExceededLimits {
                    volume_iops_us: 7,
                    ..ExceededLimits::default()
                }),
            };
            assert_eq!(counters, expected);
        }
    }

    /// The name of a disk may belong to another device in /dev, as in a container.
    #[test]
    fn disk_of_two_targets_is_read_once_and_only_through_its_own_node() {
        let directory = tempfile::tempdir().unwrap();
        fake_nvme(directory.path());
        let target = TargetIdentity {
            path: "/data".to_owned(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: "259:0".to_owned(),
            inode: 2,
            filesystem: None,
            layers: vec![bare_layer("nvme-no-such-disk", "259:0")],
            unresolved: None,
        };
        let health = reported_by_smartctl("nvme-no-such-disk");
        let expected = CountersOfDisk {
            disk: "nvme-no-such-disk".to_owned(),
            counters: counters_of_health(&health),
        };
        let search_path = Some(directory.path().as_os_str());
        let read = disk_counters(&[target.clone(), target], &[health], search_path);
        assert_eq!(read, [expected]);
    }

    #[test]
    fn smart_log_that_is_no_json_changes_nothing() {
        for text in [
            "",
            "Permission denied",
            "[]",
            "{\"temperature_sensor_1\": \"hot\"}",
        ] {
            let mut counters = DiskCounters::default();
            add_smart_log(text, &mut counters);
            assert_eq!(counters, DiskCounters::default(), "{text}");
        }
    }

    #[test]
    fn statistics_of_a_volume_are_read_under_both_names() {
        for instance in ["ec2_instance_ebs_performance", "ec2_instance_performance"] {
            let text = format!(
                r#"{{"total_read_ops": 100, "total_write_ops": 200,
                "ebs_volume_performance_exceeded_iops": 31000000,
                "ebs_volume_performance_exceeded_tp": 0,
                "{instance}_exceeded_iops": 42, "{instance}_exceeded_tp": 500000,
                "volume_queue_length": 1}}"#
            );
            let exceeded = read_amzn_stats(&text).unwrap();
            assert_eq!(exceeded.volume_iops_us, 31_000_000);
            assert_eq!(exceeded.instance_iops_us, 42);
            assert_eq!(exceeded.instance_throughput_us, 500_000);
        }
        assert_eq!(read_amzn_stats("{}"), None);
        assert_eq!(read_amzn_stats("Not an EBS device"), None);
    }
}
