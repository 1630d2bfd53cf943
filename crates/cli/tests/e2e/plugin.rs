//! `check_diskproof`, by itself and started by Icinga.

use crate::deploy::deploy;
use crate::program::hanging_disk::HangingDisk;
use crate::program::{copy_program, eventually, needs, program_path};
use diskproof_simdisk::Hanging;
use diskproof_simdisk::testbed::{self, Mount, Zram, can_run, place};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn monitoring_plugin_keeps_the_conventions() {
    let place = place();
    let link = place.path().join("check_diskproof");
    std::os::unix::fs::symlink(program_path(), &link).unwrap();
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

/// A thread of the process that measures waits in the kernel, and whoever waits for the plugin does
/// not. Whether a file without a disk below it sleeps is unknown, so its silence is not critical.
#[test]
fn odd_plugin_answers_in_time_while_a_disk_holds_its_process() {
    needs!("fusermount3");
    let patient = HangingDisk::file();
    let link = patient.place.path().join("check_diskproof");
    std::os::unix::fs::symlink(program_path(), &link).unwrap();
    let mut plugin = Command::new(&link)
        .arg("-p")
        .arg(patient.path())
        .args(["-t", "6"])
        .env("DISKPROOF_HISTORY", patient.place.path().join("h.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    patient.after(30);
    patient.disk.hang_at(Hanging::Everything);
    assert!(eventually(|| plugin.try_wait().unwrap().is_some()));
    let output = plugin.wait_with_output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{line}");
    assert!(line.contains("no answer within 6 s"), "{line}");
    assert_eq!(line.matches('\n').count(), 1, "{line}");
}

/// One check at a time: each would find that the others use its disk.
const WRITER: &str = r#"
const MaxConcurrentChecks = 1
object PerfdataWriter "results" {
  host_perfdata_path = DataDir + "/host"
  host_temp_path = DataDir + "/host.tmp"
  service_perfdata_path = DataDir + "/service"
  service_temp_path = DataDir + "/service.tmp"
  service_format_template = "$service.name$|$service.state_id$|$service.output$|$service.perfdata$"
  rotation_interval = 1s
}"#;

/// The services that Icinga is to check: name and options.
fn configuration(link: &Path, services: &[(&str, &str, String)]) -> String {
    // The command as docs/monitoring.md has it.
    let docs = fs::read_to_string(deploy().join("../docs/monitoring.md")).unwrap();
    let start = docs.find("    object CheckCommand").unwrap();
    let end = start + docs[start..].find("\n\n").unwrap();
    let command = docs[start..end].replace(
        "PluginDir + \"/check_diskproof\"",
        &format!("\"{}\"", link.display()),
    );
    let mut text = format!(
        "include <itl>\nobject CheckerComponent \"checker\" {{ }}\n{command}\n{WRITER}\n\
         object Host \"db1\" {{ check_command = \"dummy\" }}\n"
    );
    for (name, _, variables) in services {
        writeln!(
            text,
            "object Service \"{name}\" {{\n  host_name = \"db1\"\n  \
             check_command = \"diskproof\"\n  check_interval = 5s\n  \
             max_check_attempts = 1\n  {variables}\n}}"
        )
        .unwrap();
    }
    text
}

/// Icinga's daemon with all of its processes.
struct Icinga(Child);

impl Icinga {
    fn start(configuration: &Path, data: &Path) -> Self {
        // Before other programs, so that the plugin does not wait for a processor.
        let mut command = Command::new("chrt");
        command
            .args(["-f", "1", "icinga2", "daemon", "-c"])
            .arg(configuration);
        for constant in ["DataDir", "InitRunDir", "LogDir", "CacheDir", "SpoolDir"] {
            command
                .arg("-D")
                .arg(format!("{constant}={}", data.display()));
        }
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).spawn().unwrap())
    }
}

impl Drop for Icinga {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// What Icinga's writer of performance data has written: service, state, text and data a line.
fn results(data: &Path) -> Vec<[String; 4]> {
    let mut results = Vec::new();
    for entry in fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // It renames the file every second.
        let text = match name.starts_with("service") {
            true => fs::read_to_string(&path).unwrap_or_default(),
            false => continue,
        };
        for line in text.lines() {
            let parts: Vec<String> = line.split('|').map(str::to_owned).collect();
            results.extend(<[String; 4]>::try_from(parts));
        }
    }
    results
}

#[test]
fn icinga_reads_the_plugin() {
    let needs = ["icinga2", "mkfs.ext4", "chrt"];
    if !can_run("icinga_reads_the_plugin", &needs) {
        return;
    }
    // A disk that no other program uses.
    let Some(zram) = Zram::new(256 << 20) else {
        println!("SKIPPED: icinga_reads_the_plugin: zram");
        return;
    };
    let node = zram.node.to_str().unwrap();
    // zram counts nothing by default, which leaves the figures unproven.
    let counts = format!("/sys/block/{}/queue/iostats", &node["/dev/".len()..]);
    fs::write(counts, "1").unwrap();
    testbed::run("mkfs.ext4", &["-q", node]);
    let place = place();
    let mount = Mount::new("ext4", node, &place.path().join("mnt"), "");
    let program = place.path().join("diskproof");
    copy_program(&program);
    let link = place.path().join("check_diskproof");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    // Debian's icinga2 runs as this user.
    for path in [&mount.point, &data] {
        testbed::run("chown", &["nagios:", path.to_str().unwrap()]);
    }
    let path = mount.point.display();
    let service = |warning: &str, critical: &str| {
        format!(
            "vars.diskproof_path = \"{path}\"\n  vars.diskproof_warning = \"{warning}\"\n  \
             vars.diskproof_critical = \"{critical}\""
        )
    };
    let services = [
        ("good", "0", service("8s", "9s")),
        ("slow", "1", service("1ns", "9s")),
        ("slower", "2", service("1ns", "2ns")),
        (
            "absent",
            "3",
            "vars.diskproof_path = \"/nonexistent\"".to_owned(),
        ),
    ];
    let file = place.path().join("icinga2.conf");
    fs::write(&file, configuration(&link, &services)).unwrap();
    let icinga = Icinga::start(&file, &data);
    // Another program's use of the processors makes a service UNKNOWN until the next check.
    let until = Instant::now() + Duration::from_secs(90);
    let is_seen = |name: &str, state: &str| {
        let mut results = results(&data).into_iter();
        results.any(|[service, is, _, _]| service == name && is == state)
    };
    let all_seen = || services.iter().all(|(name, state, _)| is_seen(name, state));
    while Instant::now() < until && !all_seen() {
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(icinga);
    for (name, state, _) in &services {
        if !is_seen(name, state) {
            assert!(is_seen(name, "3"), "{name}: {:?}", results(&data));
            println!("SKIPPED: icinga_reads_the_plugin: {name}: the machine is busy");
        }
    }
    let results = results(&data);
    let [_, _, text, values] = results.iter().find(|one| one[0] == "good").unwrap();
    assert!(text.starts_with("DISKPROOF "), "{text}");
    // Icinga has parsed them: value, unit and limits.
    assert!(values.contains("ms;8000;9000;0;"), "{values}");
}
