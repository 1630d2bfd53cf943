//! Recorded answers of real disks (see tests/fixtures/health/README.md), answers as smartctl words
//! them, and programs that misbehave.

use super::*;
use crate::disk::bare_layer;
use crate::external_program::find_program;
use diskproof_model::health::SelfTest;
use diskproof_model::target::Link;
use diskproof_simdisk::testbed::{Loop, can_run};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

fn recorded(name: &str) -> String {
    std::fs::read_to_string(format!(
        "{}/tests/fixtures/health/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

fn health(name: &str) -> DiskHealth {
    match read_answer(&recorded(name), "/dev/sdx") {
        Ok(health) => health,
        Err(why) => panic!("{name}: {why}"),
    }
}

fn nothing(text: &str) -> String {
    match read_answer(text, "/dev/sdx") {
        Err(why) => why,
        Ok(health) => panic!("{health:?}"),
    }
}

/// smartctl's JSON with one message and nothing else.
fn message(text: &str, exit_status: u32) -> String {
    let messages = serde_json::json!([{ "string": text, "severity": "error" }]);
    serde_json::json!({
        "json_format_version": [1, 0],
        "smartctl": { "version": [7, 3], "messages": messages, "exit_status": exit_status },
    })
    .to_string()
}

fn self_test(status: &str, passed: bool, hours: u64) -> Option<SelfTest> {
    Some(SelfTest {
        status: status.to_owned(),
        passed: Some(passed),
        hours: Some(hours),
        remaining_percent: None,
    })
}

#[test]
fn a_failing_rotating_disk() {
    let seen = health("ata-hdd-failing");
    let expected = DiskHealth {
        disk: String::new(),
        source: Some("smartctl 7.1".to_owned()),
        protocol: Some("ATA".to_owned()),
        model: Some("Hitachi HDS721050DLE630".to_owned()),
        serial: Some("SERIAL-0001".to_owned()),
        firmware: Some("MS1OA650".to_owned()),
        rotation_rpm: Some(7200),
        passed: Some(false),
        temperature_celsius: Some(25),
        temperature_alarm: Some(false),
        power_on_hours: Some(65_592),
        reallocated_sectors: Some(1975),
        pending_sectors: Some(8),
        uncorrectable_sectors: Some(0),
        link_errors: Some(0),
        // Logged as 4 hours: sixteen bits ran over at 65536. Two short tests that passed later do
        // not outweigh it.
        self_test: self_test("Extended offline: Completed: read failure", false, 65_540),
        alarms: vec!["Reallocated_Sector_Ct is at 1, its threshold at 5".to_owned()],
        ..DiskHealth::default()
    };
    assert_eq!(seen, expected);
}

#[test]
fn a_healthy_rotating_disk() {
    let seen = health("ata-hdd");
    assert_eq!(
        (seen.passed, seen.temperature_celsius, seen.rotation_rpm),
        (Some(true), Some(32), Some(5400))
    );
    assert_eq!(
        (
            seen.reallocated_sectors,
            seen.pending_sectors,
            seen.wear_percent
        ),
        (Some(0), Some(0), None)
    );
    assert_eq!(
        seen.self_test
            .as_ref()
            .map(|test| (test.passed, test.remaining_percent)),
        Some((None, Some(10))),
        "one runs"
    );
    assert!(seen.alarms.is_empty() && seen.unavailable.is_none());
    assert_eq!(health("ata-hdd-bad-cable").link_errors, Some(3_118_119));
}

#[test]
fn flash_on_sata_tells_wear_under_many_names() {
    let intel = health("ata-ssd-worn");
    assert_eq!(
        (
            intel.wear_percent,
            intel.spare_percent,
            intel.spare_threshold_percent
        ),
        (Some(85), Some(100), Some(10))
    );
    assert_eq!(
        (intel.rotation_rpm, intel.written_bytes),
        (Some(0), Some(62_594_010 << 25))
    );
    assert!(intel.unsafe_shutdowns.is_some() && intel.media_errors == Some(0));
    let kingston = health("ata-ssd-life-left");
    assert_eq!(
        (kingston.wear_percent, kingston.written_bytes),
        (Some(26), Some(391_741 << 30)),
        "74 % are left, in the raw value only"
    );
    assert_eq!(kingston.reallocated_sectors, Some(1));
    let dell = health("ata-ssd-other-units");
    assert_eq!(
        (dell.wear_percent, dell.written_bytes),
        (Some(0), Some(129_493 << 25)),
        "its LBAs are no sectors"
    );
    let text = recorded("ata-ssd-other-units").replace("Host_Writes_32MiB", "Unknown_Attribute");
    let Ok(dell) = read_answer(&text, "/dev/sdx") else {
        panic!()
    };
    assert_eq!(
        dell.written_bytes, None,
        "129,493 sectors in years are not to be believed"
    );
}

#[test]
fn nvme_disks() {
    let micron = health("nvme");
    assert_eq!(
        (micron.passed, micron.wear_percent, micron.rotation_rpm),
        (Some(true), Some(0), Some(0))
    );
    assert_eq!(
        (micron.spare_percent, micron.spare_threshold_percent),
        (Some(100), Some(10))
    );
    assert_eq!(
        (micron.written_bytes, micron.unsafe_shutdowns),
        (Some(27_054_698 * 512_000), Some(0))
    );
    assert_eq!(health("nvme-used").wear_percent, Some(75));
    assert_eq!(health("nvme-media-errors").media_errors, Some(7));
    let samsung = health("nvme-no-power-loss-protection");
    assert_eq!(
        (samsung.passed, samsung.temperature_alarm),
        (Some(false), Some(false))
    );
    assert_eq!(
        samsung.alarms,
        ["the backup of its volatile memory (power-loss protection) has failed"]
    );
}

#[test]
fn heat_alone_is_no_verdict() {
    let mut document: serde_json::Value = serde_json::from_str(&recorded("nvme")).unwrap();
    document["nvme_smart_health_information_log"]["critical_warning"] = 2.into();
    document["smart_status"]["passed"] = false.into();
    document["nvme_composite_temperature_threshold"] =
        serde_json::json!({ "warning": 70, "critical": 85 });
    let Ok(seen) = read_answer(&document.to_string(), "/dev/sdx") else {
        panic!()
    };
    assert_eq!(
        (
            seen.passed,
            seen.temperature_alarm,
            seen.temperature_limit_celsius
        ),
        (Some(true), Some(true), Some(70))
    );
    assert!(seen.alarms.is_empty());
}

#[test]
fn self_tests_of_nvme_and_scsi() {
    // As smartctl 7.4 writes them.
    let mut document: serde_json::Value = serde_json::from_str(&recorded("nvme")).unwrap();
    let entry = |kind: &str, value: u32, text: &str, hours: u32| {
        serde_json::json!({
            "self_test_code": { "value": 1, "string": kind },
            "self_test_result": { "value": value, "string": text },
            "power_on_hours": hours,
        })
    };
    document["nvme_self_test_log"] = serde_json::json!({
        "current_self_test_operation": { "value": 0, "string": "No self-test in progress" },
        "table": [
            entry("Short", 0, "Completed without error", 140),
            entry("Extended", 7, "Completed: failed segments", 100),
        ],
    });
    let Ok(seen) = read_answer(&document.to_string(), "/dev/sdx") else {
        panic!()
    };
    assert_eq!(
        seen.self_test,
        self_test("Extended: Completed: failed segments", false, 100)
    );

    let mut document: serde_json::Value = serde_json::from_str(&recorded("scsi-sas")).unwrap();
    let entry = |value: u32, text: &str, hours: u32| {
        serde_json::json!({
            "code": { "value": 1, "string": "Background short" },
            "result": { "value": value, "string": text },
            "power_on_time": { "hours": hours },
        })
    };
    document["scsi_self_test_0"] = entry(0, "Completed", 22_000);
    document["scsi_self_test_1"] = entry(4, "Completed, segment failed", 21_000);
    let Ok(seen) = read_answer(&document.to_string(), "/dev/sdx") else {
        panic!()
    };
    assert_eq!(
        seen.self_test,
        self_test("Background short: Completed", true, 22_000)
    );
    document["scsi_self_test_0"] = entry(15, "Self test in progress ...", 0);
    let Ok(seen) = read_answer(&document.to_string(), "/dev/sdx") else {
        panic!()
    };
    assert_eq!(seen.self_test.unwrap().remaining_percent, Some(100));
}

#[test]
fn scsi_disks() {
    let sas = health("scsi-sas");
    assert_eq!(
        (sas.protocol.as_deref(), sas.model.as_deref()),
        (Some("SCSI"), Some("HITACHI H109060SESUN600G"))
    );
    assert_eq!(
        (
            sas.temperature_celsius,
            sas.temperature_limit_celsius,
            sas.rotation_rpm
        ),
        (Some(26), Some(85), Some(10_020))
    );
    assert_eq!(
        (sas.reallocated_sectors, sas.media_errors, sas.written_bytes),
        (Some(0), Some(0), Some(127_551_260_000_000))
    );
    let old = health("scsi-defects");
    assert_eq!(
        (
            old.reallocated_sectors,
            old.media_errors,
            old.power_on_hours
        ),
        (Some(260), Some(536), Some(102_880))
    );

    let mut document: serde_json::Value = serde_json::from_str(&recorded("scsi-sas")).unwrap();
    let text = "HARDWARE IMPENDING FAILURE GENERAL HARD DRIVE FAILURE [asc=5d, ascq=10]";
    document["smart_status"] = serde_json::json!({
        "passed": false,
        "scsi": { "asc": 0x5d, "ascq": 0x10, "ie_string": text },
    });
    let Ok(seen) = read_answer(&document.to_string(), "/dev/sdx") else {
        panic!()
    };
    assert_eq!(
        (seen.passed, seen.alarms),
        (Some(false), vec![format!("it says: {text}")])
    );
    document["smart_status"]["scsi"]["asc"] = 0x0b.into();
    document["smart_status"]["scsi"]["ascq"] = 1.into();
    let Ok(seen) = read_answer(&document.to_string(), "/dev/sdx") else {
        panic!()
    };
    assert_eq!(
        (seen.passed, seen.temperature_alarm, seen.alarms.len()),
        (Some(true), Some(true), 0)
    );
}

#[test]
fn what_cannot_be_learnt_is_a_clause_with_what_to_do() {
    let denied = nothing(&message(
        "Smartctl open device: /dev/sda failed: Permission denied",
        2,
    ));
    assert!(denied.contains("run as root (sudo)"), "{denied}");
    let confined = nothing(&message(
        "Smartctl open device: /dev/sda failed: Operation not permitted",
        2,
    ));
    assert!(confined.contains("container"), "{confined}");
    let bridge = nothing(&message(
        "/dev/sdb: Unknown USB bridge [0x0bda:0x9201 (0xf200)]",
        1,
    ));
    assert!(
        bridge.contains("USB bridge") && bridge.contains("-d sat /dev/sdx"),
        "{bridge}"
    );
    let text = "Smartctl open device: /dev/sda failed: DELL or MegaRaid controller, please try \
                adding '-d megaraid,N'";
    assert!(nothing(&message(text, 2)).contains("smartctl -a -d megaraid,N /dev/sdx"));
    assert!(
        nothing(&message("/dev/sda: requires option '-d cciss,N'", 1))
            .contains("smartctl -a -d cciss,N /dev/sdx")
    );
    assert!(nothing(&message("Device is in STANDBY mode, exit(2)", 2)).contains("in standby"));
    assert!(
        nothing(&message("/dev/loop0: Unable to detect device type", 1))
            .contains("does not know this kind")
    );
    assert_eq!(
        nothing(&message("Read Device Identity failed: scsi error", 4)),
        "smartctl says: Read Device Identity failed: scsi error"
    );
    assert!(nothing("UNRECOGNIZED OPTION: json\n").contains("smartmontools 7.0"));
    assert!(nothing("{}").contains("returned no health data"));
    assert!(nothing(r#"{"smart_support": {"available": false}}"#).contains("not support SMART"));
    assert!(
        nothing(r#"{"smart_support": {"available": true, "enabled": false}}"#)
            .contains("smartctl -s on /dev/sdx")
    );
    assert!(
        nothing(&recorded("raid-volume")).contains("exit status 4"),
        "a temperature of 0 is none"
    );
}

#[test]
fn controllers_and_disks_without_health_are_named() {
    let perc = Layer {
        vendor: Some("DELL".to_owned()),
        model: Some("PERC H730 Mini".to_owned()),
        ..bare_layer("sda", "8:0")
    };
    assert!(
        hidden_by(&perc, Path::new("/dev/sda"))
            .unwrap()
            .ends_with("smartctl -a -d megaraid,N /dev/sda")
    );
    let array = Layer {
        vendor: Some("HPE".to_owned()),
        model: Some("LOGICAL VOLUME".to_owned()),
        ..bare_layer("sda", "8:0")
    };
    assert!(
        hidden_by(&array, Path::new("/dev/sda"))
            .unwrap()
            .contains("-d cciss,N")
    );
    let disk = Layer {
        vendor: Some("ATA".to_owned()),
        model: Some("SAMSUNG MZ7LH960".to_owned()),
        ..bare_layer("sda", "8:0")
    };
    assert_eq!(
        (hidden_by(&disk, Path::new("/dev/sda")), nature(&disk)),
        (None, None)
    );
    let virtio = Link {
        bus: "virtio".to_owned(),
        speed: None,
        speed_max: None,
        bytes_per_second_max: None,
        device_bytes_per_second_max: None,
    };
    let virtual_disk = Layer {
        link: Some(virtio),
        ..bare_layer("vda", "254:0")
    };
    // No advice to install anything where that would not help.
    assert!(
        examine(&virtual_disk, None, TIME_LIMIT)
            .unavailable
            .unwrap()
            .contains("ask the provider for its health")
    );
    assert!(
        examine(&disk, None, TIME_LIMIT)
            .unavailable
            .unwrap()
            .contains("install smartmontools")
    );
    assert!(
        examine(&bare_layer("zram0", "252:0"), None, TIME_LIMIT)
            .unavailable
            .unwrap()
            .contains("memory")
    );
}

#[test]
fn only_the_node_of_that_very_disk_is_asked_about() {
    assert_eq!(
        node_of(&bare_layer("null", "1:3")),
        None,
        "a character device"
    );
    assert_eq!(node_of(&bare_layer("../etc/passwd", "8:0")), None);
    assert_eq!(node_of(&bare_layer("no-such-disk", "8:0")), None);
}

/// A program of this name and text.
fn program(place: &Path, text: &str) -> PathBuf {
    let path = place.join("smartctl");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_program_is_found_in_absolute_places_only() {
    let place = tempfile::tempdir().unwrap();
    let made = program(place.path(), "exit 0");
    assert_eq!(
        find_program("smartctl", Some(place.path().as_os_str())),
        Some(made.clone())
    );
    let listed = std::env::join_paths([Path::new("."), Path::new(""), place.path()]).unwrap();
    assert_eq!(find_program("smartctl", Some(&listed)), Some(made.clone()));
    std::fs::set_permissions(&made, PermissionsExt::from_mode(0o644)).unwrap();
    assert_ne!(
        find_program("smartctl", Some(place.path().as_os_str())),
        Some(made),
        "it cannot be run"
    );
}

#[test]
fn a_program_is_asked_once_with_fixed_words() {
    let place = tempfile::tempdir().unwrap();
    let made = program(place.path(), "echo \"$@\"; read nothing || echo end");
    let said = ask(&made, Path::new("/dev/sdx"), Duration::from_secs(60)).unwrap();
    assert_eq!(said, "--json -a -n standby /dev/sdx\nend\n");
}

#[test]
fn a_program_that_hangs_is_left() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    // It holds the pipe open through its own child, and ignores what asks politely.
    let hanging = program(
        place.path(),
        &format!(
            "trap '' TERM; echo $$ >{}; sleep 1000; echo late",
            trace.display()
        ),
    );
    let begun = Instant::now();
    let silence = ask(&hanging, Path::new("/dev/sdx"), Duration::from_millis(300)).unwrap_err();
    assert!(matches!(silence, NoAnswer::Late));
    assert!(
        begun.elapsed() < Duration::from_secs(500),
        "it did not wait for the end"
    );
    // Where it had come so far, nothing of it is left.
    if let Some(id) = std::fs::read_to_string(&trace)
        .ok()
        .filter(|id| !id.trim().is_empty())
    {
        let gone = || {
            !std::fs::read_to_string(format!("/proc/{}/cmdline", id.trim()))
                .is_ok_and(|line| line.contains("smartctl"))
        };
        assert!((0..500).any(|_| gone() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
    }
    let text = why_silent(&silence, &hanging, Path::new("/dev/sdx"), TIME_LIMIT);
    assert!(
        text.contains("within 5 s") && text.contains("dmesg"),
        "{text}"
    );
    let missing = ask(
        Path::new("/nonexistent/smartctl"),
        Path::new("/dev/sdx"),
        TIME_LIMIT,
    )
    .unwrap_err();
    assert!(
        why_silent(
            &missing,
            Path::new("/nonexistent/smartctl"),
            Path::new("/dev/sdx"),
            TIME_LIMIT
        )
        .contains("could not be run")
    );
}

#[test]
fn the_real_smartctl_does_not_know_loop_devices() {
    if !can_run(
        "the_real_smartctl_does_not_know_loop_devices",
        &["losetup", "smartctl"],
    ) {
        return;
    }
    let place = diskproof_simdisk::testbed::place();
    let device = Loop::sparse(&place.path().join("image"), 1 << 20, &[]);
    let program = find_program("smartctl", None).unwrap();
    let text = ask(&program, &device.node, Duration::from_secs(60)).unwrap();
    assert!(
        nothing(&text).contains("does not know this kind of device"),
        "{text}"
    );
    let identity = crate::probe(&device.node).unwrap();
    let seen = disk_health(std::slice::from_ref(&identity), None);
    assert_eq!(seen.len(), identity.disks().count());
    assert!(
        seen.iter()
            .all(|disk| disk.unavailable.is_some() || disk.source.is_some()),
        "{seen:?}"
    );
}

/// Any document in the shapes that smartctl writes, with anything in them.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let names = ["ATA", "NVMe", "SCSI", "", "x"];
    let base = ["ata-hdd-failing", "ata-ssd-worn", "nvme", "scsi-sas"].map(recorded);
    (
        0..base.len(),
        0..names.len(),
        any::<u64>(),
        any::<i64>(),
        "\\PC*",
    )
        .prop_map(move |(which, name, large, number, text)| {
            let mut document: serde_json::Value = serde_json::from_str(&base[which]).unwrap();
            document["device"]["protocol"] = names[name].into();
            for key in [
                "temperature",
                "power_on_time",
                "rotation_rate",
                "smart_status",
                "scsi_grown_defect_list",
            ] {
                document[key] = match large % 4 {
                    0 => large.into(),
                    1 => number.into(),
                    2 => text.clone().into(),
                    _ => serde_json::json!({ "current": number, "hours": large, "passed": text }),
                };
            }
            for key in ["critical_warning", "data_units_written", "percentage_used"] {
                document["nvme_smart_health_information_log"][key] = large.into();
            }
            if let Some(entry) = document.pointer_mut("/ata_smart_attributes/table/4") {
                entry["raw"] = serde_json::json!({ "value": large, "string": text });
                entry["value"] = large.into();
            }
            document
        })
}

#[test]
fn values_that_cannot_be_true_are_unknown() {
    let read = |hours: u64, written: u64, wear: u64| {
        let document = serde_json::json!({
            "device": { "protocol": "NVMe" },
            "smart_status": { "passed": true },
            "power_on_time": { "hours": hours },
            "nvme_smart_health_information_log": {
                "power_on_hours": hours,
                "data_units_written": written,
                "percentage_used": wear,
            },
            "nvme_self_test_log": { "table": [{ "power_on_hours": hours }] },
        });
        let Ok(health) = read_answer(&document.to_string(), "/dev/sdx") else {
            panic!()
        };
        let test = health.self_test.and_then(|test| test.hours);
        (
            health.power_on_hours,
            test,
            health.written_bytes,
            health.wear_percent,
        )
    };
    let units = 2_000_000_000;
    let known = (
        Some(876_600),
        Some(876_600),
        Some(units * 512_000),
        Some(255),
    );
    assert_eq!(read(876_600, units, 255), known);
    assert_eq!(read(876_601, 1000 * units, 256), (None, None, None, None));
    assert_eq!(read(9_000_000, u64::MAX, 65_535), (None, None, None, None));
    let spins = |rpm: u64| {
        let document =
            serde_json::json!({ "rotation_rate": rpm, "smart_status": { "passed": true } });
        match read_answer(&document.to_string(), "/dev/sdx") {
            Ok(health) => health.rotation_rpm,
            Err(_) => None,
        }
    };
    assert_eq!((spins(15_000), spins(65_535)), (Some(15_000), None));
}

proptest! {
    #[test]
    fn no_answer_is_too_strange(document in document(), text in "\\PC*") {
        let _ = read_answer(&document.to_string(), "/dev/sdx");
        let _ = read_answer(&text, "/dev/sdx");
        let _ = read_answer(&message(&text, 2), "/dev/sdx");
    }
}
