//! Reads the health that disks report. Runs smartctl (smartmontools) for every disk at the bottom
//! of a target's layers and reads its JSON. Starts no self-test, changes no setting, wakes no
//! sleeping disk. Where a disk reports nothing, a clause for the user says why; that is never an
//! error.

pub(crate) mod disk_counters;
mod protocols;
mod report;
pub(crate) mod temperature;
#[cfg(test)]
mod tests;

use crate::kernel::naming::{is_device, node};
use crate::programs::external_program::{NoAnswer, find_program, output_of};
use diskproof_model::health::DiskHealth;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};
use report::{Report, celsius, written};
use rustix::fs::stat;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A healthy disk answers within tens of milliseconds; one that needs seconds is busy with its own
/// recovery, or hangs. Chosen, not measured.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);
/// So many disks are queried at the same time: a machine with a hundred of them must not wait for
/// each in turn, nor start a hundred programs.
const AT_ONCE: usize = 16;

/// The health of every disk below these targets, each disk once, by name. `search_path` lists the
/// directories of programs, as PATH does. Takes at most a little more than ten seconds for up to
/// sixteen disks, whatever they do: a disk of Seagate's is queried twice.
pub fn disk_health(identities: &[TargetIdentity], search_path: Option<&OsStr>) -> Vec<DiskHealth> {
    let mut by_name: BTreeMap<&str, &Layer> = BTreeMap::new();
    for identity in identities {
        for disk in identity.disks() {
            by_name.insert(&disk.name, disk);
        }
    }
    let disks: Vec<&Layer> = by_name.into_values().collect();
    let program = find_program("smartctl", search_path);
    let mut health = Vec::new();
    for group in disks.chunks(AT_ONCE) {
        health.extend(examine_at_once(group, program.as_deref()));
    }
    health
}

/// The health of some disks, each of which has a thread.
fn examine_at_once(disks: &[&Layer], program: Option<&Path>) -> Vec<DiskHealth> {
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for disk in disks {
            let thread = std::thread::Builder::new()
                .name("diskproof-health".to_owned())
                .spawn_scoped(scope, move || examine(disk, program, TIME_LIMIT));
            threads.push((disk, thread));
        }
        let mut answers = Vec::new();
        for (disk, thread) in threads {
            answers.push(match thread {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|_| DiskHealth::unknown(&disk.name, "not asked")),
                // Without a thread (ulimit -u) the disks are examined one after the other.
                Err(_) => examine(disk, program, TIME_LIMIT),
            });
        }
        answers
    })
}

/// The health of one disk.
fn examine(disk: &Layer, program: Option<&Path>, limit: Duration) -> DiskHealth {
    match query_smartctl(disk, program, limit) {
        Ok(health) => DiskHealth {
            disk: disk.name.clone(),
            ..health
        },
        // A device that never has health data needs no remedy, whatever smartctl says.
        Err(why) => match why_without_health(disk) {
            Some(reason) => DiskHealth::unknown(&disk.name, reason),
            None => DiskHealth::unknown(&disk.name, why),
        },
    }
}

/// smartctl's report on a disk; the error says why there is none.
fn query_smartctl(
    disk: &Layer,
    program: Option<&Path>,
    limit: Duration,
) -> Result<DiskHealth, String> {
    let Some(program) = program else {
        return Err("smartctl is not installed; install smartmontools".to_owned());
    };
    let Some(node) = verified_node(disk) else {
        return Err(no_node(disk));
    };
    let text = run_smartctl(program, HEALTH, &node, limit)
        .map_err(|silence| why_silent(&silence, program, &node, limit))?;
    let health = read_answer(&text, &node.display().to_string())
        .map_err(|why| hidden_by_controller(disk, &node).unwrap_or(why))?;
    Ok(DiskHealth {
        farm_power_on_hours: farm_hours(&health, program, &node, limit),
        ..health
    })
}

/// The options that print all legacy SMART data.
const HEALTH: &[&str] = &["-a"];
/// The options that print Seagate's FARM log, which `-a` omits. Before 7.4 smartctl refuses them
/// without opening the disk.
const FARM: &[&str] = &["-l", "farm"];

/// The output of `smartctl --json OPTIONS -n standby NODE`. The exit status says less than the
/// text, which contains it.
fn run_smartctl(
    program: &Path,
    options: &[&str],
    node: &Path,
    limit: Duration,
) -> Result<String, NoAnswer> {
    let mut command = Command::new(program);
    command.arg("--json").args(options);
    // A disk asleep is left asleep: reading its health would start its motor.
    command.args(["-n", "standby"]).arg(node);
    output_of(command, limit)
}

/// The power-on hours of the FARM log; `None` where the disk keeps none, or smartctl cannot read
/// it.
fn farm_hours(health: &DiskHealth, program: &Path, node: &Path, limit: Duration) -> Option<u64> {
    if !may_keep_farm_log(health) {
        return None;
    }
    let text = run_smartctl(program, FARM, node, limit).ok()?;
    read_farm_hours(&text)
}

/// True for a disk of Seagate's, as smartctl recognizes them: `ST16000NM001G` on SATA, `SEAGATE
/// ST1200MM0099` on SAS. Only they keep a FARM log.
fn may_keep_farm_log(health: &DiskHealth) -> bool {
    let Some(model) = &health.model else {
        return false;
    };
    let mut words = model.split_whitespace();
    words.any(|word| match word.strip_prefix("ST") {
        Some(number) => number.starts_with(|first: char| first.is_ascii_digit()),
        None => false,
    })
}

/// The hours are named differently on SATA and on SAS (smartmontools, farmprint.cpp). A disk
/// without the log has `"supported": false` instead.
fn read_farm_hours(text: &str) -> Option<u64> {
    let document: Value = serde_json::from_str(text).ok()?;
    let report = Report(&document);
    let sata = report.hours("/seagate_farm_log/page_1_drive_information/poh");
    sata.or_else(|| report.hours("/seagate_farm_log/drive_information/power_on_hour"))
}

/// The node of a disk in /dev, if it is a block device of that very number. In sysfs a `!` stands
/// for a `/` of the name.
pub(crate) fn verified_node(disk: &Layer) -> Option<PathBuf> {
    let node = PathBuf::from(node(&disk.name));
    if is_device(&stat(&node).ok()?, &disk.device) {
        Some(node)
    } else {
        None
    }
}

pub(crate) fn no_node(disk: &Layer) -> String {
    let name = &disk.name;
    format!("/dev has no node of {name} here; run outside the container")
}

fn why_silent(silence: &NoAnswer, program: &Path, node: &Path, limit: Duration) -> String {
    match silence {
        NoAnswer::Late => format!(
            "smartctl did not answer within {} s and was ended; see dmesg, and try smartctl -a {} \
             by hand",
            limit.as_secs_f64(),
            node.display()
        ),
        NoAnswer::Failed(error) => format!("{} could not be run: {error}", program.display()),
    }
}

/// Says why a device of this kind never has health data; `None` of a kind that may have some.
fn why_without_health(disk: &Layer) -> Option<&'static str> {
    let is_virtual =
        disk.name.starts_with("xvd") || matches!(&disk.link, Some(link) if link.bus == "virtio");
    match disk.kind {
        LayerKind::Disk if is_virtual => {
            Some("the hypervisor hides the physical disk; ask the provider for its health")
        }
        LayerKind::Disk if disk.name.starts_with("mmcblk") => {
            Some("smartctl does not support SD cards and eMMC")
        }
        LayerKind::Loop => Some("a loop device has no health data; query the disk below its file"),
        LayerKind::Zram | LayerKind::RamDisk => Some("it is in memory"),
        LayerKind::Network => Some("the disk is on another machine; query it there"),
        _ => None,
    }
}

/// The clause for a volume of a RAID controller, whose disks answer only when they are queried by
/// number; `None` of any other disk. Names as the drivers megaraid_sas, hpsa, smartpqi, aacraid,
/// arcmsr and 3w-sas report them.
fn hidden_by_controller(disk: &Layer, node: &Path) -> Option<String> {
    const CONTROLLERS: [(&str, &str); 10] = [
        ("PERC", "megaraid,N"),
        ("MEGARAID", "megaraid,N"),
        ("SERVERAID", "megaraid,N"),
        ("AVAGO", "megaraid,N"),
        ("BROADCOM", "megaraid,N"),
        ("LSI", "megaraid,N"),
        ("LOGICAL VOLUME", "cciss,N"),
        ("ADAPTEC", "aacraid,H,L,ID"),
        ("ARECA", "areca,N"),
        ("3WARE", "3ware,N"),
    ];
    let vendor = disk.vendor.as_deref().unwrap_or_default();
    let model = disk.model.as_deref().unwrap_or_default();
    let named = format!("{vendor} {model}").to_uppercase();
    let (_, kind) = CONTROLLERS.iter().find(|(name, _)| named.contains(name))?;
    Some(controller_text(
        &format!("-d {kind}"),
        &node.display().to_string(),
    ))
}

/// Reads smartctl's output on `node`: the disk's report, or a clause that says why there is none,
/// with the remedy. The format is smartctl's own (`json_format_version` 1.0, smartmontools 7.0 to
/// 7.5). Every field may be missing or of another type than expected; then it is unknown.
fn read_answer(text: &str, node: &str) -> Result<DiskHealth, String> {
    let Ok(document) = serde_json::from_str::<Value>(text) else {
        return Err("smartctl printed no JSON: it needs smartmontools 7.0 or later".to_owned());
    };
    let report = Report(&document);
    let health = read_health(report);
    if has_figures(&health) {
        Ok(health)
    } else {
        Err(why_nothing(report, node))
    }
}

fn read_health(report: Report<'_>) -> DiskHealth {
    let mut version = Vec::new();
    for part in report.list("/smartctl/version") {
        if let Some(number) = part.0.as_u64() {
            version.push(number.to_string());
        }
    }
    let health = DiskHealth {
        source: Some(format!("smartctl {}", version.join("."))),
        protocol: first_text(report, &["/device/protocol"]),
        model: first_text(report, &["/model_name", "/scsi_model_name"]),
        serial: first_text(report, &["/serial_number"]),
        firmware: first_text(
            report,
            &["/firmware_version", "/scsi_revision", "/revision"],
        ),
        rotation_rpm: report.rpm("/rotation_rate"),
        passed: report.flag("/smart_status/passed"),
        temperature_celsius: celsius(report, "/temperature/current"),
        temperature_limit_celsius: celsius(report, "/temperature/op_limit_max"),
        power_on_hours: report.hours("/power_on_time/hours"),
        ..DiskHealth::default()
    };
    let completed = match health.protocol.as_deref() {
        Some("NVMe") => protocols::complete_nvme(health, report),
        Some("SCSI") => protocols::complete_scsi(health, report),
        _ => protocols::complete_ata(health, report),
    };
    DiskHealth {
        written_bytes: written(completed.written_bytes),
        ..completed
    }
}

/// The text at the first of these pointers that has one.
fn first_text(report: Report<'_>, pointers: &[&str]) -> Option<String> {
    let text = pointers.iter().find_map(|pointer| report.text(pointer))?;
    Some(text.to_owned())
}

/// True if the report contains more than a name plate.
fn has_figures(health: &DiskHealth) -> bool {
    let counts = [
        health.power_on_hours,
        health.reallocated_sectors,
        health.media_errors,
        health.written_bytes,
    ];
    health.passed.is_some()
        || health.temperature_celsius.is_some()
        || health.wear_percent.is_some()
        || counts.iter().any(Option::is_some)
}

/// Says why a report has no figures, from smartctl's messages and its exit status (smartctl(8),
/// EXIT STATUS). Bits 0 to 2 mean that the command line, the opening or a command to the disk
/// failed. The other bits describe the disk, and then there are figures.
fn why_nothing(report: Report<'_>, node: &str) -> String {
    const BY_MESSAGE: [(&str, &str); 4] = [
        (
            "Permission denied",
            "this user may not query the disk; run as root (sudo)",
        ),
        (
            "Operation not permitted",
            "this process may not query the disk (EPERM); run as root (sudo), outside a container",
        ),
        (
            " mode, exit(",
            "the disk is in standby, and a query would wake it; read from it, then run again",
        ),
        (
            "Unknown USB bridge",
            "smartctl does not know this USB bridge; try smartctl -a -d sat {node}",
        ),
    ];
    let mut messages = Vec::new();
    for entry in report.list("/smartctl/messages") {
        messages.extend(entry.text("/string"));
    }
    let (enabled, available) = ("/smart_support/enabled", "/smart_support/available");
    for (part, why) in BY_MESSAGE {
        if is_in_one_of(&messages, part) {
            return why.replace("{node}", node);
        }
    }
    if let Some(option) = messages.iter().find_map(|message| device_option(message)) {
        controller_text(option, node)
    } else if is_in_one_of(&messages, "Unable to detect device type") {
        "smartctl does not know this kind of device".to_owned()
    } else if report.flag(enabled) == Some(false) && report.flag(available) == Some(true) {
        format!("SMART is disabled in this disk; enable it with smartctl -s on {node}")
    } else if report.flag(available) == Some(false) {
        "the disk reports that it does not support SMART".to_owned()
    } else if let Some(message) = messages.last() {
        format!("smartctl says: {message}")
    } else {
        let status = report.count("/smartctl/exit_status").unwrap_or_default();
        format!("smartctl returned no health data (exit status {status})")
    }
}

fn is_in_one_of(messages: &[&str], part: &str) -> bool {
    messages.iter().any(|message| message.contains(part))
}

fn controller_text(option: &str, node: &str) -> String {
    format!(
        "a RAID controller hides its disks; query each by its number: smartctl -a {option} {node}"
    )
}

/// The option that smartctl suggests: `-d megaraid,N` of `… please try adding '-d megaraid,N'`.
fn device_option(message: &str) -> Option<&str> {
    message
        .split('\'')
        .find(|part| part.starts_with("-d ") && part.contains(','))
}
