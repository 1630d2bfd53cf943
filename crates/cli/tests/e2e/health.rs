//! What the disks say of their own health, from a smartctl of our own making in PATH to the page,
//! the record and the warning before the load. Wherever these tests run, the disk below the
//! directory is asked for, and the answer is that of another, recorded one.

use crate::program::{Ran, SHORT, argv, program};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory on a disk with a node in /dev, for smartctl to be asked about.
fn place(test: &str) -> Option<tempfile::TempDir> {
    let place = diskproof_simdisk::testbed::place();
    let identity = diskproof_device::probe(place.path()).unwrap();
    let has_node = |name: &str| Path::new("/dev").join(name).exists();
    let known = identity.disks().count() == 1 && identity.disks().all(|disk| has_node(&disk.name));
    if !known {
        eprintln!("SKIPPED: {test}: a directory on one disk with a node in /dev");
    }
    known.then_some(place)
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../device/tests/fixtures/health/{name}.json"))
}

/// Runs the program with a `smartctl` of these shell commands before all others.
fn with_smartctl(place: &Path, commands: &str, arguments: &[&str]) -> Ran {
    let path = place.join("smartctl");
    std::fs::write(
        &path,
        format!(
            "#!/bin/sh\necho \"$@\" >>{}\n{commands}\n",
            place.join("asked").display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::join_paths(
        std::iter::once(place.to_owned()).chain(std::env::split_paths(&inherited)),
    )
    .unwrap();
    program(
        arguments
            .iter()
            .map(std::ffi::OsStr::new)
            .chain([place.as_os_str()]),
    )
    .env("PATH", all)
    .output()
    .unwrap()
    .into()
}

fn tells(name: &str) -> String {
    format!("cat {}", recorded(name).display())
}

/// The one disk's health, of what `info --json` printed.
fn health_of(ran: &Ran) -> (DiskHealth, Vec<String>) {
    ran.exits(0);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let mut health: Vec<DiskHealth> = serde_json::from_value(document["health"].clone()).unwrap();
    let codes = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned());
    (health.remove(0), codes.collect())
}

#[test]
fn info_shows_a_failing_disk_and_what_to_do() {
    let Some(place) = place("info_shows_a_failing_disk_and_what_to_do") else {
        return;
    };
    let (health, codes) = health_of(&with_smartctl(
        place.path(),
        &tells("ata-hdd-failing"),
        &["info", "--json"],
    ));
    assert_eq!(
        (
            health.passed,
            health.pending_sectors,
            health.reallocated_sectors
        ),
        (Some(false), Some(8), Some(1975))
    );
    assert_eq!(
        codes,
        argv("health-failing self-test-failed sectors-pending sectors-reallocated")
    );
    let asked = std::fs::read_to_string(place.path().join("asked")).unwrap();
    assert_eq!(
        asked,
        format!("--json -a -n standby /dev/{}\n", health.disk)
    );

    let page = with_smartctl(place.path(), &tells("ata-hdd-failing"), &["info"]).out;
    assert!(
        page.contains(&format!("health of {}\n", health.disk))
            && page
                .lines()
                .any(|line| line.starts_with("verdict  ") && line.ends_with("FAILING")),
        "{page}"
    );
    assert!(
        page.contains("(health-failing)") && page.contains("→ Save the data now"),
        "{page}"
    );
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
}

/// A disk of Seagate's whose SMART counters were reset, as resold ones are; its FARM log was not.
#[test]
fn info_finds_a_used_disk_by_its_farm_log() {
    let Some(place) = place("info_finds_a_used_disk_by_its_farm_log") else {
        return;
    };
    let reset = format!(
        "sed 's/\"hours\": 33091/\"hours\": 38/' {}",
        recorded("ata-hdd-seagate").display()
    );
    for (smart, expected) in [
        (reset, &["used-as-new"][..]),
        (tells("ata-hdd-seagate"), &[]),
    ] {
        let farm = tells("ata-hdd-seagate-farm");
        let commands = format!("case \"$*\" in *farm*) {farm};; *) {smart};; esac");
        let ran = with_smartctl(place.path(), &commands, &["info", "--json"]);
        let (health, codes) = health_of(&ran);
        assert_eq!(health.farm_power_on_hours, Some(33_091));
        assert_eq!(codes, expected);
    }
}

#[test]
fn check_asks_once_before_the_load_and_warns() {
    let Some(place) = place("check_asks_once_before_the_load_and_warns") else {
        return;
    };
    let ran = with_smartctl(
        place.path(),
        &tells("ata-hdd-failing"),
        &[&["check", "--json", "--read-only"], &SHORT[..]].concat(),
    );
    ran.exits(0);
    let record = ran.record();
    assert_eq!(
        (record.health.len(), record.health[0].passed),
        (1, Some(false))
    );
    let found = record
        .findings
        .iter()
        .find(|finding| finding.code == "health-failing")
        .unwrap();
    assert_eq!(
        (found.severity, found.evidence[0].path.as_str()),
        (Severity::Failure, "/health/0/passed")
    );
    let warned = ran
        .err
        .find("warning: health-failing: ")
        .unwrap_or_else(|| panic!("{}", ran.err));
    assert!(
        warned < ran.err.find("about 1 s").unwrap_or(usize::MAX),
        "before anything is promised: {}",
        ran.err
    );
    assert_eq!(
        std::fs::read_to_string(place.path().join("asked"))
            .unwrap()
            .lines()
            .count(),
        1
    );

    let page = with_smartctl(
        place.path(),
        &tells("nvme-used"),
        &[&["check", "--read-only", "-v"], &SHORT[..]].concat(),
    );
    page.shows("health   ").shows("75 % of endurance used");
    page.tells_not("warning");
}

#[test]
fn worn_flash_and_a_bad_cable_are_found_and_a_sound_disk_is_left_in_peace() {
    let Some(place) =
        place("worn_flash_and_a_bad_cable_are_found_and_a_sound_disk_is_left_in_peace")
    else {
        return;
    };
    let cases: [(&str, &[&str]); 8] = [
        ("ata-ssd-worn", &["worn-out"]),
        ("ata-ssd-life-left", &[]),
        ("ata-hdd", &["self-test-running"]),
        ("ata-hdd-bad-cable", &["link-errors"]),
        ("nvme", &[]),
        ("nvme-media-errors", &["media-errors"]),
        ("nvme-no-power-loss-protection", &["health-failing"]),
        ("scsi-sas", &[]),
    ];
    for (name, expected) in cases {
        let (health, codes) = health_of(&with_smartctl(
            place.path(),
            &tells(name),
            &["info", "--json"],
        ));
        assert_eq!(
            (codes, health.unavailable),
            (
                expected.iter().map(|code| (*code).to_owned()).collect(),
                None
            ),
            "{name}"
        );
    }
}

#[test]
fn smartctl_that_hangs_is_abandoned() {
    let Some(place) = place("smartctl_that_hangs_is_abandoned") else {
        return;
    };
    let (health, codes) = health_of(&with_smartctl(
        place.path(),
        "sleep 3600",
        &["info", "--json"],
    ));
    assert!(
        health.unavailable.is_some() && health.source.is_none() && codes.is_empty(),
        "{health:?}"
    );
}

#[test]
fn what_cannot_be_learnt_is_a_line_and_no_error() {
    let Some(place) = place("what_cannot_be_learnt_is_a_line_and_no_error") else {
        return;
    };
    for commands in [
        "exit 127",
        "echo nonsense",
        "kill -9 $$",
        "printf '{\"smartctl\": 3}'",
        "echo '{}'; exit 4",
    ] {
        let (health, codes) =
            health_of(&with_smartctl(place.path(), commands, &["info", "--json"]));
        assert!(
            health.unavailable.is_some() && codes.is_empty(),
            "{commands}: {health:?}"
        );
        let ran = with_smartctl(place.path(), commands, &["info"]);
        ran.exits(0).tells_nothing().shows("\nnot available  ");
    }
}

#[test]
fn no_health_skips_smartctl() {
    let Some(place) = place("no_health_skips_smartctl") else {
        return;
    };
    let ran = with_smartctl(
        place.path(),
        &tells("ata-hdd-failing"),
        &["info", "--json", "--no-health"],
    );
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (
            document["health"].as_array().map(Vec::len),
            document["findings"].as_array().map(Vec::len)
        ),
        (Some(0), Some(0))
    );
    assert!(!place.path().join("asked").exists());
    let ran = with_smartctl(
        place.path(),
        &tells("ata-hdd-failing"),
        &[
            &["check", "--json", "--read-only", "--no-health"],
            &SHORT[..],
        ]
        .concat(),
    );
    assert_eq!(
        (ran.code, ran.record().health),
        (Some(0), vec![]),
        "{}",
        ran.err
    );
    assert!(!place.path().join("asked").exists());
}
