//! Recorded answers of real disks (see tests/fixtures/health/README.md), answers as smartctl words
//! them, and programs that misbehave.

use super::*;
use crate::identity::disk::bare_layer;
use crate::programs::external_program::find_program;
use diskproof_model::health::SelfTest;
use diskproof_model::target::Link;
use diskproof_simdisk::testbed::{Loop, can_run};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

fn recorded(name: &str) -> String {
    let place = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{place}/tests/fixtures/health/{name}.json")).unwrap()
}

/// A recorded answer to be changed.
fn changeable(name: &str) -> Value {
    serde_json::from_str(&recorded(name)).unwrap()
}

fn read(document: &Value) -> DiskHealth {
    read_answer(&document.to_string(), "/dev/sdx").unwrap_or_else(|why| panic!("{why}"))
}

fn health(name: &str) -> DiskHealth {
    read(&changeable(name))
}

fn nothing(text: &str) -> String {
    match read_answer(text, "/dev/sdx") {
        Err(why) => why,
        Ok(health) => panic!("{health:?}"),
    }
}

/// smartctl's JSON with one message and nothing else.
fn message(text: &str, exit_status: u32) -> String {
    let messages = json!([{ "string": text, "severity": "error" }]);
    json!({
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
    assert_eq!(seen.passed, Some(true));
    assert_eq!(seen.temperature_celsius, Some(32));
    assert_eq!(seen.rotation_rpm, Some(5400));
    assert_eq!(seen.reallocated_sectors, Some(0));
    assert_eq!(seen.pending_sectors, Some(0));
    assert_eq!(seen.wear_percent, None);
    // One runs.
    let test = seen.self_test.unwrap();
    assert_eq!((test.passed, test.remaining_percent), (None, Some(10)));
    assert!(seen.alarms.is_empty() && seen.unavailable.is_none());
    assert_eq!(health("ata-hdd-bad-cable").link_errors, Some(3_118_119));
}

#[test]
fn flash_on_sata_tells_wear_under_many_names() {
    let intel = health("ata-ssd-worn");
    assert_eq!(intel.wear_percent, Some(85));
    assert_eq!(intel.spare_percent, Some(100));
    assert_eq!(intel.spare_threshold_percent, Some(10));
    assert_eq!(intel.rotation_rpm, Some(0));
    assert_eq!(intel.written_bytes, Some(62_594_010 << 25));
    assert!(intel.unsafe_shutdowns.is_some() && intel.media_errors == Some(0));
    // 74 % are left, in the raw value only.
    let kingston = health("ata-ssd-life-left");
    assert_eq!(kingston.wear_percent, Some(26));
    assert_eq!(kingston.written_bytes, Some(391_741 << 30));
    assert_eq!(kingston.reallocated_sectors, Some(1));
    // Its LBAs are no sectors, and 129,493 sectors in years are not to be believed.
    let dell = health("ata-ssd-other-units");
    assert_eq!(dell.wear_percent, Some(0));
    assert_eq!(dell.written_bytes, Some(129_493 << 25));
    let text = recorded("ata-ssd-other-units").replace("Host_Writes_32MiB", "Unknown_Attribute");
    assert_eq!(read_answer(&text, "/dev/sdx").unwrap().written_bytes, None);
}

#[test]
fn nvme_disks() {
    let micron = health("nvme");
    assert_eq!(micron.passed, Some(true));
    assert_eq!(micron.wear_percent, Some(0));
    assert_eq!(micron.rotation_rpm, Some(0));
    assert_eq!(micron.spare_percent, Some(100));
    assert_eq!(micron.spare_threshold_percent, Some(10));
    assert_eq!(micron.written_bytes, Some(27_054_698 * 512_000));
    assert_eq!(micron.unsafe_shutdowns, Some(0));
    assert_eq!(health("nvme-used").wear_percent, Some(75));
    assert_eq!(health("nvme-media-errors").media_errors, Some(7));
    let samsung = health("nvme-no-power-loss-protection");
    assert_eq!(samsung.passed, Some(false));
    assert_eq!(samsung.temperature_alarm, Some(false));
    assert!(samsung.alarms.len() == 1 && samsung.alarms[0].contains("power-loss"));
}

#[test]
fn heat_alone_is_no_verdict() {
    let mut document = changeable("nvme");
    document["nvme_smart_health_information_log"]["critical_warning"] = 2.into();
    document["smart_status"]["passed"] = false.into();
    document["nvme_composite_temperature_threshold"] = json!({ "warning": 70, "critical": 85 });
    let seen = read(&document);
    assert_eq!(seen.passed, Some(true));
    assert_eq!(seen.temperature_alarm, Some(true));
    assert_eq!(seen.temperature_limit_celsius, Some(70));
    assert!(seen.alarms.is_empty());
}

#[test]
fn self_tests_of_nvme_and_scsi() {
    // As smartctl 7.4 writes them.
    let mut document = changeable("nvme");
    let entry = |kind: &str, value: u32, text: &str, hours: u32| {
        json!({
            "self_test_code": { "value": 1, "string": kind },
            "self_test_result": { "value": value, "string": text },
            "power_on_hours": hours,
        })
    };
    document["nvme_self_test_log"] = json!({
        "current_self_test_operation": { "value": 0, "string": "No self-test in progress" },
        "table": [
            entry("Short", 0, "Completed without error", 140),
            entry("Extended", 7, "Completed: failed segments", 100),
        ],
    });
    let seen = read(&document);
    let failed = self_test("Extended: Completed: failed segments", false, 100);
    assert_eq!(seen.self_test, failed);

    let mut document = changeable("scsi-sas");
    let entry = |value: u32, text: &str, hours: u32| {
        json!({
            "code": { "value": 1, "string": "Background short" },
            "result": { "value": value, "string": text },
            "power_on_time": { "hours": hours },
        })
    };
    document["scsi_self_test_0"] = entry(0, "Completed", 22_000);
    document["scsi_self_test_1"] = entry(4, "Completed, segment failed", 21_000);
    let seen = read(&document);
    let passed = self_test("Background short: Completed", true, 22_000);
    assert_eq!(seen.self_test, passed);
    document["scsi_self_test_0"] = entry(15, "Self test in progress ...", 0);
    assert_eq!(
        read(&document).self_test.unwrap().remaining_percent,
        Some(100)
    );
}

#[test]
fn scsi_disks() {
    let sas = health("scsi-sas");
    assert_eq!(sas.protocol.as_deref(), Some("SCSI"));
    assert_eq!(sas.model.as_deref(), Some("HITACHI H109060SESUN600G"));
    assert_eq!(sas.temperature_celsius, Some(26));
    assert_eq!(sas.temperature_limit_celsius, Some(85));
    assert_eq!(sas.rotation_rpm, Some(10_020));
    assert_eq!(sas.reallocated_sectors, Some(0));
    assert_eq!(sas.media_errors, Some(0));
    assert_eq!(sas.written_bytes, Some(127_551_260_000_000));
    let old = health("scsi-defects");
    assert_eq!(old.reallocated_sectors, Some(260));
    assert_eq!(old.media_errors, Some(536));
    assert_eq!(old.power_on_hours, Some(102_880));

    let mut document = changeable("scsi-sas");
    let text = "HARDWARE IMPENDING FAILURE GENERAL HARD DRIVE FAILURE [asc=5d, ascq=10]";
    document["smart_status"] = json!({
        "passed": false,
        "scsi": { "asc": 0x5d, "ascq": 0x10, "ie_string": text },
    });
    let seen = read(&document);
    assert_eq!(seen.passed, Some(false));
    assert!(seen.alarms.len() == 1 && seen.alarms[0].contains(text));
    document["smart_status"]["scsi"]["asc"] = 0x0b.into();
    document["smart_status"]["scsi"]["ascq"] = 1.into();
    let seen = read(&document);
    assert_eq!(seen.passed, Some(true));
    assert_eq!(seen.temperature_alarm, Some(true));
    assert_eq!(seen.alarms.len(), 0);
}

#[test]
fn farm_hours_are_read_where_the_disk_keeps_them() {
    let seagate = health("ata-hdd-seagate");
    assert_eq!(seagate.power_on_hours, Some(33_091));
    assert_eq!(seagate.written_bytes, Some(99_073_924_598 * 512));
    assert!(may_keep_farm_log(&seagate));
    let log = recorded("ata-hdd-seagate-farm");
    assert_eq!(read_farm_hours(&log), Some(33_091));
    // As smartctl 7.4 names them on SAS (farmprint.cpp), where a disk keeps no such log, and where
    // the register was never filled.
    for (log, hours) in [
        (
            json!({ "drive_information": { "power_on_hour": 4711 } }),
            Some(4711),
        ),
        (json!({ "supported": false }), None),
        (
            json!({ "page_1_drive_information": { "poh": u64::MAX } }),
            None,
        ),
    ] {
        let document = json!({ "seagate_farm_log": log });
        assert_eq!(read_farm_hours(&document.to_string()), hours, "{log}");
    }
    // smartctl 7.3 does not know the option.
    let refusal = message("-l ARGUMENT farm is invalid", 1);
    assert_eq!(read_farm_hours(&refusal), None);
}

#[test]
fn only_disks_of_seagate_are_queried_for_a_farm_log() {
    for (model, may_keep) in [
        ("ST16000NM001G-2KK103", true),
        ("SEAGATE ST1200MM0099", true),
        ("WDC WD20EFRX-68EUZN0", false),
        ("STEC ZeusRAM", false),
        ("HITACHI H109060SESUN600G", false),
    ] {
        let disk = DiskHealth {
            model: Some(model.to_owned()),
            ..DiskHealth::default()
        };
        assert_eq!(may_keep_farm_log(&disk), may_keep, "{model}");
    }
    assert!(!may_keep_farm_log(&DiskHealth::default()));
}

#[test]
fn what_cannot_be_learnt_is_a_clause_with_what_to_do() {
    let opening = "Smartctl open device: /dev/sda failed:";
    let raid = format!("{opening} DELL or MegaRaid controller, please try adding '-d megaraid,N'");
    for (said, exit_status, part) in [
        (format!("{opening} Permission denied"), 2, "sudo"),
        (format!("{opening} Operation not permitted"), 2, "container"),
        (
            "/dev/sdb: Unknown USB bridge [0x0bda:0x9201 (0xf200)]".into(),
            1,
            "-d sat /dev/sdx",
        ),
        (raid, 2, "smartctl -a -d megaraid,N /dev/sdx"),
        (
            "/dev/sda: requires option '-d cciss,N'".into(),
            1,
            "smartctl -a -d cciss,N /dev/sdx",
        ),
        ("Device is in STANDBY mode, exit(2)".into(), 2, "standby"),
        (
            "Read Device Identity failed: scsi error".into(),
            4,
            "Identity failed: scsi error",
        ),
    ] {
        let why = nothing(&message(&said, exit_status));
        assert!(why.contains(part), "{said}: {why}");
    }
    for (answer, part) in [
        ("UNRECOGNIZED OPTION: json\n", "smartmontools 7.0"),
        ("{}", "smartctl"),
        (r#"{"smart_support": {"available": false}}"#, "SMART"),
        (
            r#"{"smart_support": {"available": true, "enabled": false}}"#,
            "smartctl -s on /dev/sdx",
        ),
        // A temperature of 0 is none.
        (&recorded("raid-volume"), "status 4"),
    ] {
        let why = nothing(answer);
        assert!(why.contains(part), "{answer}: {why}");
    }
    // A device of no known kind is a reason of its own.
    let text = "/dev/loop0: Unable to detect device type";
    assert!(!nothing(&message(text, 1)).contains(text));
}

#[test]
fn controllers_and_disks_without_health_are_named() {
    let layer = |vendor: &str, model: &str| Layer {
        vendor: Some(vendor.to_owned()),
        model: Some(model.to_owned()),
        ..bare_layer("sda", "8:0")
    };
    let node = Path::new("/dev/sda");
    let perc = hidden_by_controller(&layer("DELL", "PERC H730 Mini"), node).unwrap();
    assert!(
        perc.ends_with("smartctl -a -d megaraid,N /dev/sda"),
        "{perc}"
    );
    let array = hidden_by_controller(&layer("HPE", "LOGICAL VOLUME"), node).unwrap();
    assert!(array.contains("-d cciss,N"), "{array}");
    let disk = layer("ATA", "SAMSUNG MZ7LH960");
    assert_eq!(hidden_by_controller(&disk, node), None);
    assert_eq!(why_without_health(&disk), None);
    let virtual_disk = Layer {
        link: Some(Link {
            bus: "virtio".to_owned(),
            speed: None,
            speed_max: None,
            bytes_per_second_max: None,
            device_bytes_per_second_max: None,
        }),
        ..bare_layer("vda", "254:0")
    };
    // No advice to install anything where that would not help.
    for (layer, helps) in [
        (virtual_disk, false),
        (disk, true),
        (bare_layer("zram0", "252:0"), false),
    ] {
        let why = examine(&layer, None, TIME_LIMIT).unavailable.unwrap();
        assert_eq!(why.contains("smartmontools"), helps, "{why}");
    }
}

#[test]
fn only_the_node_of_that_very_disk_is_asked_about() {
    // The first is a character device.
    for (name, device) in [
        ("null", "1:3"),
        ("../etc/passwd", "8:0"),
        ("no-such-disk", "8:0"),
    ] {
        assert_eq!(verified_node(&bare_layer(name, device)), None, "{name}");
    }
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
    let find = |path: &OsStr| find_program("smartctl", Some(path));
    let path = place.path().as_os_str();
    assert_eq!(find(path), Some(made.clone()));
    let listed = std::env::join_paths([Path::new("."), Path::new(""), place.path()]).unwrap();
    assert_eq!(find(&listed), Some(made.clone()));
    std::fs::set_permissions(&made, PermissionsExt::from_mode(0o644)).unwrap();
    // It cannot be run.
    assert_ne!(find(path), Some(made));
}

#[test]
fn a_program_is_asked_once_with_fixed_words() {
    let place = tempfile::tempdir().unwrap();
    let made = program(place.path(), "echo \"$@\"; read nothing || echo end");
    let node = Path::new("/dev/sdx");
    for (options, words) in [(HEALTH, "-a"), (FARM, "-l farm")] {
        let said = run_smartctl(&made, options, node, Duration::from_secs(60)).unwrap();
        assert_eq!(said, format!("--json {words} -n standby /dev/sdx\nend\n"));
    }
}

#[test]
fn a_program_that_hangs_is_left() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    // It holds the pipe open through its own child, and ignores what asks politely.
    let script = format!(
        "trap '' TERM; echo $$ >{}; sleep 1000; echo late",
        trace.display()
    );
    let hanging = program(place.path(), &script);
    let begun = Instant::now();
    let silence = run_smartctl(
        &hanging,
        HEALTH,
        Path::new("/dev/sdx"),
        Duration::from_millis(300),
    )
    .unwrap_err();
    assert!(matches!(silence, NoAnswer::Late));
    // It did not wait for the end.
    assert!(begun.elapsed() < Duration::from_secs(500));
    // Where it had come so far, nothing of it is left.
    let id = std::fs::read_to_string(&trace).unwrap_or_default();
    let command_line = format!("/proc/{}/cmdline", id.trim());
    let runs =
        || std::fs::read_to_string(&command_line).is_ok_and(|line| line.contains("smartctl"));
    assert!((0..500).any(|_| {
        let is_gone = id.trim().is_empty() || !runs();
        if !is_gone {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_gone
    }));
    let device = Path::new("/dev/sdx");
    let text = why_silent(&silence, &hanging, device, TIME_LIMIT);
    assert!(text.contains("5 s") && text.contains("dmesg"), "{text}");
    let missing = Path::new("/nonexistent/smartctl");
    let silence = run_smartctl(missing, HEALTH, device, TIME_LIMIT).unwrap_err();
    assert!(matches!(silence, NoAnswer::Failed(_)), "{silence:?}");
    assert!(why_silent(&silence, missing, device, TIME_LIMIT).contains("/nonexistent/smartctl"));
}

#[test]
fn the_real_smartctl_does_not_know_loop_devices() {
    let name = "the_real_smartctl_does_not_know_loop_devices";
    if !can_run(name, &["losetup", "smartctl"]) {
        return;
    }
    let place = diskproof_simdisk::testbed::place();
    let device = Loop::sparse(&place.path().join("image"), 1 << 20, &[]);
    let program = find_program("smartctl", None).unwrap();
    let text = run_smartctl(&program, HEALTH, &device.node, Duration::from_secs(60)).unwrap();
    nothing(&text);
    let identity = crate::probe(&device.node).unwrap();
    let seen = disk_health(std::slice::from_ref(&identity), None);
    assert_eq!(seen.len(), identity.disks().count());
    let is_known = |disk: &DiskHealth| disk.unavailable.is_some() || disk.source.is_some();
    assert!(seen.iter().all(is_known), "{seen:?}");
}

/// Any document in the shapes that smartctl writes, with anything in them.
fn document() -> impl Strategy<Value = Value> {
    let names = ["ATA", "NVMe", "SCSI", "", "x"];
    let base = ["ata-hdd-failing", "ata-ssd-worn", "nvme", "scsi-sas"].map(changeable);
    let keys = [
        "temperature",
        "power_on_time",
        "rotation_rate",
        "smart_status",
        "scsi_grown_defect_list",
    ];
    let drawn = (
        0..base.len(),
        0..names.len(),
        any::<u64>(),
        any::<i64>(),
        "\\PC*",
    );
    drawn.prop_map(move |(which, name, large, number, text)| {
        let mut document = base[which].clone();
        document["device"]["protocol"] = names[name].into();
        for key in keys {
            document[key] = match large % 4 {
                0 => large.into(),
                1 => number.into(),
                2 => text.clone().into(),
                _ => json!({ "current": number, "hours": large, "passed": text }),
            };
        }
        for key in ["critical_warning", "data_units_written", "percentage_used"] {
            document["nvme_smart_health_information_log"][key] = large.into();
        }
        if let Some(entry) = document.pointer_mut("/ata_smart_attributes/table/4") {
            entry["raw"] = json!({ "value": large, "string": text });
            entry["value"] = large.into();
        }
        document
    })
}

#[test]
fn values_that_cannot_be_true_are_unknown() {
    let read = |hours: u64, written: u64, wear: u64| {
        let document = json!({
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
        let health = read(&document);
        let test = health.self_test.and_then(|test| test.hours);
        (
            health.power_on_hours,
            test,
            health.written_bytes,
            health.wear_percent,
        )
    };
    let units = 2_000_000_000;
    let hours = Some(876_600);
    let known = (hours, hours, Some(units * 512_000), Some(255));
    assert_eq!(read(876_600, units, 255), known);
    assert_eq!(read(876_601, 1000 * units, 256), (None, None, None, None));
    assert_eq!(read(9_000_000, u64::MAX, 65_535), (None, None, None, None));
    let spins = |rpm: u64| {
        let text = json!({ "rotation_rate": rpm, "smart_status": { "passed": true } }).to_string();
        read_answer(&text, "/dev/sdx")
            .ok()
            .and_then(|health| health.rotation_rpm)
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
