//! What `deploy/` holds is read by the tools it is for, and every command line of a manifest runs
//! as in its pod: another user, no capabilities, a root that cannot be written, no environment.

use crate::program::copy_program;
use diskproof_simdisk::testbed::{TempDir, can_run, place};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(deploy().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|is| is == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

fn assert_ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        told[0],
        told[1]
    );
    output
}

/// The words of the lines `args: [a, b]`.
fn command_lines(manifest: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(manifest).unwrap();
    let lists = text.lines().filter_map(|line| {
        let list = line.trim().strip_prefix("args: [")?.strip_suffix(']')?;
        Some(list.split(", ").map(str::to_owned).collect())
    });
    lists.collect()
}

/// A volume that only the pod's user may write, and the program.
fn volume() -> (TempDir, PathBuf) {
    let place = place();
    copy_program(&place.path().join("diskproof"));
    let volume = place.path().join("volume");
    fs::create_dir(&volume).unwrap();
    std::os::unix::fs::chown(&volume, Some(10001), Some(10001)).unwrap();
    (place, volume)
}

#[test]
fn command_lines_of_manifests_run_as_in_a_pod() {
    if !can_run(
        "command_lines_of_manifests_run_as_in_a_pod",
        &["unshare", "setpriv"],
    ) {
        return;
    }
    for manifest in files("kubernetes", "yaml") {
        let lines = command_lines(&manifest);
        assert!(!lines.is_empty(), "{}", manifest.display());
        for line in lines {
            let (place, volume) = volume();
            // The volume stays writable: it is a mount of its own, as in the pod.
            let script = "mount --make-rprivate / && mount --bind \"$1\" \"$1\" && \
                 mount -o remount,bind,ro / && cd / && shift && \
                 exec setpriv --reuid 10001 --regid 10001 --clear-groups --bounding-set=-all \
                 --inh-caps=-all --no-new-privs env -i \"$@\"";
            let mut command = Command::new("unshare");
            command
                .args(["--mount", "sh", "-c", script, "sh"])
                .arg(&volume);
            command.arg(place.path().join("diskproof"));
            // What decides nothing but runs everything, in the shortest time.
            for word in line.iter().filter(|word| *word != "--quick") {
                let is_volume = word.starts_with('/');
                command.arg(if is_volume {
                    volume.as_os_str()
                } else {
                    word.as_ref()
                });
            }
            command.args(["--size", "64M", "--time", "3s"]);
            let output = command.output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            // Fit, not fit or undecided; never refused, never failed.
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1 | 5)), "{line:?}: {code:?} {told}");
            assert!(!output.stdout.is_empty(), "{line:?}");
            let left: Vec<_> = fs::read_dir(&volume).unwrap().collect();
            assert!(left.is_empty(), "{line:?}: {left:?}");
        }
    }
}

#[test]
fn version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = fs::read_to_string(deploy().join("../CHANGELOG.md")).unwrap();
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    assert_eq!(newest, Some(version));
    for manifest in files("kubernetes", "yaml") {
        let text = fs::read_to_string(&manifest).unwrap();
        let tags: Vec<&str> = text
            .split("image: diskproof:")
            .skip(1)
            .filter_map(|rest| rest.lines().next())
            .collect();
        assert_eq!(tags, [version], "{}", manifest.display());
    }
}

#[test]
fn manifests_are_valid() {
    let tools = place();
    let install = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
    ];
    let pip = Command::new("pip3")
        .args(install)
        .arg(tools.path())
        .arg("kubernetes-validate")
        .output();
    if !pip.is_ok_and(|pip| pip.status.success()) {
        println!("SKIPPED: kubernetes-validate of PyPI cannot be installed");
        return;
    }
    for manifest in files("kubernetes", "yaml") {
        let mut command = Command::new(tools.path().join("bin/kubernetes-validate"));
        command
            .arg("--strict")
            .arg(&manifest)
            .env("PYTHONPATH", tools.path());
        assert_ran(&mut command);
    }
}

#[test]
fn alert_rules_fire_as_intended() {
    if can_run("alert_rules_fire_as_intended", &["promtool"]) {
        for (verb, file) in [
            ("check", "diskproof.rules.yml"),
            ("test", "diskproof.rules.test.yml"),
        ] {
            let mut command = Command::new("promtool");
            command
                .args([verb, "rules", file])
                .current_dir(deploy().join("prometheus"));
            assert_ran(&mut command);
        }
    }
}

#[test]
fn metrics_of_rules_and_of_the_dashboard_exist() {
    let docs = fs::read_to_string(deploy().join("../docs/formats.md")).unwrap();
    let rules = fs::read_to_string(deploy().join("prometheus/diskproof.rules.yml")).unwrap();
    let dashboard = fs::read_to_string(deploy().join("grafana/diskproof.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(
        json["panels"]
            .as_array()
            .is_some_and(|panels| panels.len() > 4)
    );
    let mut known = 0;
    for text in [rules, dashboard] {
        for rest in text.split("diskproof_").skip(1) {
            let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
            let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
            let name = format!("`diskproof_{name}`");
            assert!(docs.contains(&name), "docs/formats.md lacks {name}");
            known += 1;
        }
    }
    assert!(known > 10);
}

#[test]
fn units_are_valid_and_confined() {
    if !can_run("units_are_valid_and_confined", &["systemd-analyze"]) {
        return;
    }
    let place = place();
    // `verify` also looks for the program.
    for unit in fs::read_dir(deploy().join("systemd")).unwrap() {
        let unit = unit.unwrap().path();
        let text = fs::read_to_string(&unit).unwrap();
        let text = text.replace("/usr/bin/diskproof", "/bin/true");
        let text = text.replace("Documentation=man:diskproof-check(1)\n", "");
        fs::write(place.path().join(unit.file_name().unwrap()), text).unwrap();
    }
    for unit in ["diskproof-check.service", "diskproof-check.timer"] {
        let mut command = Command::new("systemd-analyze");
        let output = assert_ran(command.args(["verify", unit]).current_dir(place.path()));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!told.contains("diskproof-check"), "{told}");
    }
    // From 0 (confined) to 100 (not at all): fails above the threshold.
    let security = [
        "security",
        "--offline=true",
        "--threshold=20",
        "diskproof-check.service",
    ];
    assert_ran(
        Command::new("systemd-analyze")
            .args(security)
            .current_dir(place.path()),
    );
}

#[test]
fn monitoring_plugin_keeps_the_conventions() {
    let place = place();
    let link = place.path().join("check_diskproof");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_diskproof"), &link).unwrap();
    let told = |words: &[&str]| {
        let mut command = Command::new(&link);
        command
            .args(words)
            .env("DISKPROOF_HISTORY", place.path().join("h.db"));
        let output = command.output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.starts_with("DISKPROOF "), "{line}");
        (output.status.code().unwrap(), line)
    };
    let path = place.path().to_str().unwrap();
    let (code, line) = told(&["-p", path, "-w", "5s", "-c", "9s"]);
    let word = line.split(' ').nth(1).unwrap().to_owned();
    // Another test may disturb the disk.
    assert!(
        [(0, "OK"), (3, "UNKNOWN")].contains(&(code, word.as_str())),
        "{line}"
    );
    let data = line.split_once(" | ").unwrap().1;
    let labels: Vec<&str> = data
        .split_whitespace()
        .map(|one| one.split('=').next().unwrap())
        .collect();
    assert_eq!(labels, ["p90", "median", "max", "errors"], "{line}");
    assert!(data.contains("ms;5000;9000;0;"), "{line}");
    assert_eq!(told(&["-p", "/nonexistent"]).0, 3);
    assert_eq!(told(&["--bogus"]).0, 3);
    assert_eq!(told(&["--newest", "-p", path]).0, 3);
}
