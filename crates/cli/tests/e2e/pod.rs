//! Every command line of a manifest runs as in its pod: another user, no capabilities, a root that
//! cannot be written, no environment, little memory, limited I/O.

use crate::deploy::{deploy, files};
use crate::program::{argv, copy_program, needs, run, with_enough_time};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Disk, TempDir, place};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

/// The limit of every manifest.
const MEMORY_BYTES: u64 = 256 << 20;

/// The words of the lines `args: [a, b]`.
fn command_lines(manifest: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(manifest).unwrap();
    assert!(
        text.contains("limits: {memory: 256Mi}"),
        "{}",
        manifest.display()
    );
    let lists = text.lines().filter_map(|line| {
        let list = line.trim().strip_prefix("args: [")?.strip_suffix(']')?;
        Some(list.split(", ").map(str::to_owned).collect())
    });
    lists.collect()
}

/// A control group of version 1, removed with the value.
struct Group(PathBuf);

impl Group {
    /// `None` if the controller is not there as version 1.
    fn new(controller: &str, file: &str, limit: &str) -> Option<Self> {
        let mount = Path::new("/sys/fs/cgroup").join(controller);
        let place = tempfile::Builder::new()
            .prefix("diskproof-test-")
            .tempdir_in(mount)
            .ok()?;
        // Its files cannot be removed, only the group as a whole.
        let group = Self(place.keep());
        fs::write(group.0.join(file), limit).ok()?;
        Some(group)
    }

    fn number(&self, file: &str) -> u64 {
        let text = fs::read_to_string(self.0.join(file)).unwrap();
        text.trim().parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its last process has ended, but may not have left yet.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        eprintln!("{} could not be removed", self.0.display());
    }
}

/// The program in a pod whose volume is the folder; `words` follow its name.
fn in_pod<S: AsRef<OsStr>>(
    volume: &Path,
    groups: &[&Group],
    words: impl IntoIterator<Item = S>,
) -> Output {
    std::os::unix::fs::chown(volume, Some(10001), Some(10001)).unwrap();
    let place = place();
    let program = place.path().join("diskproof");
    copy_program(&program);
    // The volume stays writable: it is a mount of its own, as in the pod.
    let script = "for group in $GROUPS_OF_POD; do echo $$ >\"$group/cgroup.procs\"; done && \
         mount --make-rprivate / && mount --bind \"$1\" \"$1\" && \
         mount -o remount,bind,ro / && cd / && shift && \
         exec setpriv --reuid 10001 --regid 10001 --clear-groups --bounding-set=-all \
         --inh-caps=-all --no-new-privs env -i \"$@\"";
    let groups: Vec<&str> = groups.iter().map(|one| one.0.to_str().unwrap()).collect();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(volume)
        .arg(program)
        .args(words)
        .env("GROUPS_OF_POD", groups.join(" "));
    command.output().unwrap()
}

fn volume() -> (TempDir, PathBuf) {
    let place = place();
    let volume = place.path().join("volume");
    fs::create_dir(&volume).unwrap();
    (place, volume)
}

/// Whether the test gives something shorter instead of this word.
fn is_replaced(word: &str) -> bool {
    word == "--quick" || word.starts_with("--size=") || word.starts_with("--time=")
}

/// The start of runs that measure together, in so many seconds.
fn start_in(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    format!("--start-at=@{}", now.as_secs() + seconds)
}

#[test]
fn command_lines_of_manifests_run_as_in_a_pod() {
    needs!("unshare", "setpriv");
    for manifest in files("kubernetes", "yaml") {
        let lines = command_lines(&manifest);
        assert!(!lines.is_empty(), "{}", manifest.display());
        for line in lines {
            let (_place, volume) = volume();
            let limit = MEMORY_BYTES.to_string();
            let memory = Group::new("memory", "memory.limit_in_bytes", &limit);
            if memory.is_none() {
                println!(
                    "SKIPPED: command_lines_of_manifests_run_as_in_a_pod: no memory controller of \
                     version 1"
                );
            }
            // What decides nothing but runs everything, in the shortest time.
            let start = start_in(8);
            let words = line.iter().filter(|word| !is_replaced(word));
            let words: Vec<OsString> = words
                .map(|word| match word.as_str() {
                    "--start-at=@SECONDS" => OsString::from(&start),
                    word => in_volume(word, &volume),
                })
                .collect();
            let short = ["--size", "64M", "--time", "3s"].map(OsString::from);
            let groups: Vec<&Group> = memory.iter().collect();
            let output = in_pod(&volume, &groups, words.iter().chain(&short));
            let stderr = String::from_utf8_lossy(&output.stderr);
            // Fit, not fit or undecided; never refused, never failed.
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 1 | 5)),
                "{line:?}: {code:?} {stderr}"
            );
            assert!(!output.stdout.is_empty(), "{line:?}");
            if line.iter().any(|word| word == "--json") {
                // As `kubectl logs` returns it.
                let place = place();
                let log = place.path().join("log.json");
                fs::write(&log, [&output.stderr[..], &output.stdout].concat()).unwrap();
                run(["show".as_ref(), log.as_os_str()]).exits(0);
            }
            assert!(line.iter().any(|word| word == "--quiet"), "{line:?}");
            if line.iter().any(|word| word == "-o") {
                fs::remove_file(volume.join("record.json")).unwrap();
            }
            let left: Vec<_> = fs::read_dir(&volume).unwrap().collect();
            assert!(left.is_empty(), "{line:?}: {left:?}");
            if let Some(memory) = &memory {
                assert!(memory.number("memory.max_usage_in_bytes") > 0, "{line:?}");
                assert_eq!(memory.number("memory.failcnt"), 0, "{line:?}");
            }
        }
    }
}

/// A word of a manifest, whose paths lie in the volume of the test instead.
fn in_volume(word: &str, volume: &Path) -> OsString {
    for mount in ["/var/lib/postgresql/data", "/scratch", "/volume"] {
        if let Some(rest) = word.strip_prefix(mount) {
            let mut path = volume.as_os_str().to_owned();
            path.push(rest);
            return path;
        }
    }
    OsString::from(word)
}

/// A volume that a database has filled, or a disk that failed, is not measured again when the pod
/// starts again.
#[test]
fn manifests_with_a_gate_measure_a_volume_once() {
    needs!("unshare", "setpriv");
    for (manifest, made) in [
        ("init-container.yaml", "pgdata/PG_VERSION"),
        ("daemonset.yaml", "record.json"),
    ] {
        let lines = command_lines(&deploy().join("kubernetes").join(manifest));
        let (_place, volume) = volume();
        let path = volume.join(made);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "made before").unwrap();
        let words = lines[0].iter().map(|word| in_volume(word, &volume));
        // No room for any measurement.
        let keep_free = ["--keep-free", "900T"].map(OsString::from);
        let output = in_pod(&volume, &[], words.chain(keep_free));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{manifest}: {stderr}");
        assert!(output.stdout.is_empty(), "{manifest}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "made before");
    }
}

#[test]
fn io_limit_of_a_pod_is_named() {
    needs!("unshare", "setpriv", "losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 512 << 20, "");
    let number = format!("/sys/class/block/{}/dev", disk.device.name());
    let number = fs::read_to_string(number).unwrap();
    let limit = format!("{} 200", number.trim());
    let Some(group) = Group::new("blkio", "blkio.throttle.read_iops_device", &limit) else {
        println!("SKIPPED: io_limit_of_a_pod_is_named: no blkio controller of version 1");
        return;
    };
    let volume = disk.path().to_owned();
    // A machine that is busy leaves gaps in the stretches at one rate, which are what shows a
    // limit.
    let (record, limited) = with_enough_time(&["5s", "30s"], |time| {
        let line = format!("--rw randread --bs 8k --depth 4 --time {time} --size 32M --json");
        let words = ["run", volume.to_str().unwrap(), "--no-history"].into_iter();
        let output = in_pod(&volume, &[&group], words.chain(argv(&line)));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = record["findings"].as_array().unwrap();
        let limited = findings.iter().find(|one| one["code"] == "rate-limited");
        match limited.cloned() {
            Some(limited) => Ok((record, limited)),
            None => Err(format!("{findings:?}")),
        }
    });
    let claim = limited["claim"].as_str().unwrap();
    assert!(claim.contains("200"), "{claim}");
    // Where the machine gave the program too little processor time, that stands before the limit.
    let by = record["measurements"][0]["figures"]["limited_by"].to_string();
    assert!(by.contains("200") || by.contains("finding starved"), "{by}");
}

/// What breaks a promise beyond the limit of a pod is the limit, unless the machine had no time.
#[test]
fn io_limit_of_a_pod_is_what_breaks_a_promise() {
    needs!("unshare", "setpriv", "losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 512 << 20, "");
    let number = format!("/sys/class/block/{}/dev", disk.device.name());
    let number = fs::read_to_string(number).unwrap();
    let limit = format!("{} 200", number.trim());
    let Some(group) = Group::new("blkio", "blkio.throttle.read_iops_device", &limit) else {
        println!(
            "SKIPPED: io_limit_of_a_pod_is_what_breaks_a_promise: no blkio controller of version 1"
        );
        return;
    };
    let volume = disk.path().to_owned();
    let words = ["load", volume.to_str().unwrap(), "--no-history"].into_iter();
    let line = "--rw randread --slo p90<=100ms --time 40s --size 32M --json";
    let output = in_pod(&volume, &[&group], words.chain(argv(line)));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{stderr}");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = &record["results"][0]["figures"];
    let saturated = figures["saturated"].as_f64().unwrap();
    assert!((saturated / 200.0 - 1.0).abs() < 0.1, "{figures}");
    assert!(figures["low"].as_f64().unwrap() <= 210.0, "{figures}");
    let limit = figures["cause"]["limit"].as_str().unwrap();
    assert!(limit == "cap" || limit == "cpu", "{figures}");
}

/// A limit that holds from the start is no fall, and no burst credit.
#[test]
fn io_limit_of_a_pod_is_the_rate_that_lasts() {
    needs!("unshare", "setpriv", "losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 512 << 20, "");
    let number = format!("/sys/class/block/{}/dev", disk.device.name());
    let number = fs::read_to_string(number).unwrap();
    let limit = format!("{} 200", number.trim());
    let Some(group) = Group::new("blkio", "blkio.throttle.read_iops_device", &limit) else {
        println!("SKIPPED: io_limit_of_a_pod_is_the_rate_that_lasts: no blkio controller v1");
        return;
    };
    let volume = disk.path().to_owned();
    let words = ["sustain", volume.to_str().unwrap(), "--no-history"].into_iter();
    let line = "--rw randread --time 20s --size 32M --json";
    let output = in_pod(&volume, &[&group], words.chain(argv(line)));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    let found = record.sustain().unwrap();
    let lasting = found.lasting.value / 200.0;
    assert!((lasting - 1.0).abs() < 0.1, "{found:?}");
    assert!(found.bucket.is_none() && found.drop.is_none(), "{found:?}");
}

/// The loop of docs/kubernetes.md, with a cluster that answers at the second question.
#[test]
fn loop_of_the_page_ends_with_either_answer() {
    let page = fs::read_to_string(deploy().join("../docs/kubernetes.md")).unwrap();
    let line = page
        .lines()
        .find(|line| line.starts_with("    until kubectl"));
    let line = line.unwrap().replace("sleep 2", "sleep 0.01");
    for conditions in ["SuccessCriteriaMet Complete", "FailureTarget Failed"] {
        let place = place();
        let cluster = format!(
            "#!/bin/sh\n[ \"$1 $2 $3\" = 'get job diskproof' ] || exit 1\n\
             [ -e asked ] && echo '{conditions}'\n: >asked\n"
        );
        let kubectl = place.path().join("kubectl");
        fs::write(&kubectl, cluster).unwrap();
        fs::set_permissions(&kubectl, fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new("timeout")
            .args(["20", "sh", "-c", &line])
            .current_dir(place.path())
            .env("PATH", format!("{}:/usr/bin:/bin", place.path().display()))
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{conditions}: {stderr}");
    }
}
