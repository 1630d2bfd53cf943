//! `too-hot`: the disk was near or above its temperature limit when the measurement began.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "too-hot",
    title: "The disk is near its temperature limit",
    summary: "The disk was near or above its temperature limit when the measurement began. A disk \
              slows down there to cool.",
    remedy: Remedy::Always("Improve the airflow (fans, dust, a heat sink) and measure again."),
    check: Check::Health {
        examine: check,
        consequence: "A hot disk slows down to cool.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Load adds 5 to 20 °C to the temperature at rest, and the disk reports it before the load.
const MARGIN_CELSIUS: i32 = 5;

/// Where the disk reports no limit. Data sheets of rotating disks end at 60 °C (Seagate Exos, WD
/// Ultrastar, Toshiba MG), those of SATA and SAS flash at 70 °C (Intel D3-S4510, Samsung PM883,
/// Micron 5300).
const ROTATING_LIMIT_CELSIUS: i32 = 60;
/// The same of flash.
const FLASH_LIMIT_CELSIUS: i32 = 70;

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    if disk.temperature_alarm == Some(true) {
        return Some(alarm(disk));
    }
    let degrees = disk.temperature_celsius?;
    let limit = temperature_limit(disk)?;
    let threshold = limit - MARGIN_CELSIUS;
    if degrees < threshold {
        return None;
    }
    let (severity, place) = if degrees >= limit {
        (Severity::Warning, "at or over")
    } else {
        (Severity::Note, "near")
    };
    Some(Diagnosis::new(
        severity,
        format!("has {degrees} °C, {place} its limit of {limit} °C"),
        [seen_at("temperature_celsius", degrees, threshold, "°C")],
    ))
}

fn alarm(disk: &DiskHealth) -> Diagnosis {
    let temperature = match disk.temperature_celsius {
        Some(degrees) => format!(" at {degrees} °C"),
        None => String::new(),
    };
    Diagnosis::new(
        Severity::Warning,
        format!("reports that it is too hot{temperature}"),
        [seen_at("temperature_alarm", 1.0, 0.0, "1")],
    )
}

/// The disk's own, or else the usual one. NVMe has no usual limit (70 to 85 °C) but raises its own
/// alarm.
fn temperature_limit(disk: &DiskHealth) -> Option<i32> {
    let usual = match disk.protocol.as_deref() {
        Some("NVMe") => None,
        _ if is_flash(disk) => Some(FLASH_LIMIT_CELSIUS),
        _ => Some(ROTATING_LIMIT_CELSIUS),
    };
    disk.temperature_limit_celsius.or(usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::disk_report::tests::{faulty, faulty_rotating, observed, one};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || faulty(|disk| disk.temperature_celsius = Some(71)),
        || faulty(|disk| disk.temperature_celsius = Some(64)),
    );

    #[test]
    fn heat_over_the_limit_is_a_warning_and_near_it_a_note() {
        let flash = |celsius| faulty(|disk| disk.temperature_celsius = Some(celsius));
        let rotating = |celsius| faulty_rotating(|disk| disk.temperature_celsius = Some(celsius));
        let hot = observed(&flash(71), "too-hot");
        assert_eq!(hot, (Severity::Warning, 71.0, 65.0));
        assert_eq!(observed(&flash(66), "too-hot").0, Severity::Note);
        one(&rotating(60), "too-hot");
        let alarm = faulty(|disk| disk.temperature_alarm = Some(true));
        states(&one(&alarm, "too-hot").claim, &["34 °C"]);
        assert_eq!(rotating(54).findings, []);
        let no_limit = faulty(|disk| {
            disk.protocol = Some("NVMe".to_owned());
            (disk.temperature_limit_celsius, disk.temperature_celsius) = (None, Some(75));
        });
        assert_eq!(no_limit.findings, [], "no limit of its own, and no alarm");
    }
}
