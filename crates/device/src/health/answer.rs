//! smartctl's JSON → health, or why there is none. The format is smartctl's own
//! (`json_format_version` 1.0, smartmontools 7.0 to 7.5). Every field may be missing or of another
//! type than expected; then it is unknown. Runs no process.

use super::ata;
use super::document::{Report, celsius, written};
use super::nvme;
use super::scsi;
use diskproof_model::health::DiskHealth;
use serde_json::Value;

/// What came of asking.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The disk's report.
    Health(Box<DiskHealth>),
    /// None: a clause that says why, with what to do.
    Nothing(String),
}

/// Reads what smartctl printed about `node`.
pub(super) fn read_answer(text: &str, node: &str) -> Answer {
    let Ok(document) = serde_json::from_str::<Value>(text) else {
        return Answer::Nothing(
            "smartctl printed no JSON: it needs smartmontools 7.0 or later".to_owned(),
        );
    };
    let report = Report(&document);
    let health = read_health(report);
    if tells_something(&health) {
        Answer::Health(Box::new(health))
    } else {
        Answer::Nothing(why_nothing(report, node))
    }
}

fn read_health(report: Report<'_>) -> DiskHealth {
    let version = report.list("/smartctl/version");
    let version = version.filter_map(|part| Some(part.0.as_u64()?.to_string()));
    let version: Vec<String> = version.collect();
    let text = |pointers: &[&str]| {
        let mut texts = pointers.iter().filter_map(|pointer| report.text(pointer));
        texts.next().map(str::to_owned)
    };
    let health = DiskHealth {
        source: Some(format!("smartctl {}", version.join("."))),
        protocol: text(&["/device/protocol"]),
        model: text(&["/model_name", "/scsi_model_name"]),
        serial: text(&["/serial_number"]),
        firmware: text(&["/firmware_version", "/scsi_revision", "/revision"]),
        rotation_rpm: report.rpm("/rotation_rate"),
        passed: report.flag("/smart_status/passed"),
        temperature_celsius: celsius(report, "/temperature/current"),
        temperature_limit_celsius: celsius(report, "/temperature/op_limit_max"),
        power_on_hours: report.hours("/power_on_time/hours"),
        ..DiskHealth::default()
    };
    let health = match health.protocol.as_deref() {
        Some("NVMe") => nvme::complete(health, report),
        Some("SCSI") => scsi::complete(health, report),
        _ => ata::complete(health, report),
    };
    DiskHealth {
        written_bytes: written(health.written_bytes),
        ..health
    }
}

/// Whether there is anything in it that a name plate would not tell.
fn tells_something(health: &DiskHealth) -> bool {
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

/// smartctl's messages, and the bits of its exit status (smartctl(8), EXIT STATUS): 0 the command
/// line, 1 the opening, 2 a command to the disk failed. The other bits describe the disk, and then
/// there is something to read.
fn why_nothing(report: Report<'_>, node: &str) -> String {
    let messages = report.list("/smartctl/messages");
    let messages: Vec<&str> = messages.filter_map(|one| one.text("/string")).collect();
    let said = |part: &str| messages.iter().any(|message| message.contains(part));
    let hint = messages.iter().find_map(|message| device_option(message));
    match () {
        () if said("Permission denied") => {
            "this user may not query the disk; run as root (sudo)".to_owned()
        }
        () if said("Operation not permitted") => {
            "this process may not query the disk (EPERM); run \
                                                  as root (sudo), outside a container"
                .to_owned()
        }
        () if said(" mode, exit(") => "the disk is in standby, and a query would wake it; read \
                                       from it, then run again"
            .to_owned(),
        () if said("Unknown USB bridge") => {
            format!("smartctl does not know this USB bridge; try smartctl -a -d sat {node}")
        }
        () if hint.is_some() => {
            let option = hint.unwrap_or_default();
            format!(
                "a RAID controller hides its disks; query each by its number: smartctl -a {option} \
                 {node}"
            )
        }
        () if said("Unable to detect device type") => {
            "smartctl does not know this kind of device".to_owned()
        }
        () if report.flag("/smart_support/enabled") == Some(false)
            && report.flag("/smart_support/available") == Some(true) =>
        {
            format!("SMART is disabled in this disk; enable it with smartctl -s on {node}")
        }
        () if report.flag("/smart_support/available") == Some(false) => {
            "the disk reports that it does not support SMART".to_owned()
        }
        () => match messages.last() {
            Some(message) => format!("smartctl says: {message}"),
            None => format!(
                "smartctl returned no health data (exit status {})",
                report.count("/smartctl/exit_status").unwrap_or_default()
            ),
        },
    }
}

/// The option that smartctl asks for: `-d megaraid,N` of `… please try adding '-d megaraid,N'`.
fn device_option(message: &str) -> Option<&str> {
    message
        .split('\'')
        .find(|part| part.starts_with("-d ") && part.contains(','))
}
