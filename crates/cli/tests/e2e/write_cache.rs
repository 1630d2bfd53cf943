//! `commit --write-cache` on a disk with a write cache that can be switched: a loop device that a
//! made-up /sys shows as an NVMe disk, in mounts of the program's own, with an `nvme` that keeps
//! the state in a file. However the program ends, the state is the one that was found.

use crate::program::{Ran, eventually, program};
use diskproof_model::record::Record;
use diskproof_model::target::WriteCache;
use diskproof_simdisk::testbed::{Loop, Mount, can_run, place, run};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const PROGRAMS: [&str; 5] = ["unshare", "losetup", "mkfs.ext4", "mknod", "mount"];

/// Shows device $2 (loop node $1) as nvme0n1, then becomes the program.
const AS_NVME: &str = r#"
set -e
place=$1 node=$2 number=$3
shift 3
disk=devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1
mkdir -p "$place/sys/dev/block" "$place/sys/class/block" "$place/sys/$disk/queue" "$place/dev"
for file in dev size ro queue/logical_block_size queue/physical_block_size queue/scheduler; do
    cat "/sys/dev/block/$number/$file" > "$place/sys/$disk/$file"
done
echo 'write back' > "$place/sys/$disk/queue/write_cache"
echo 0 > "$place/sys/$disk/queue/rotational"
ln -s "../../$disk" "$place/sys/dev/block/$number"
ln -s "../../$disk" "$place/sys/class/block/nvme0n1"
mount -t tmpfs tmpfs "$place/dev"
cp -a /dev/null /dev/zero /dev/random /dev/urandom "$node" "$place/dev/"
ln -s /proc/self/fd "$place/dev/fd"
mknod "$place/dev/nvme0n1" b "${number%:*}" "${number#*:}"
mount --move "$place/dev" /dev
mount --bind "$place/sys" /sys
exec "$@"
"#;

/// The state is in `state`; `calls` lists the changes. While `broken` exists, changes fail.
const NVME: &str = r#"#!/bin/sh
cd "$(dirname "$0")/.." || exit 1
case $* in
*--value=*)
    [ -e broken ] && { echo 'NVMe status: Internal Error(0x6)' >&2; exit 6; }
    value=${*##*--value=}
    echo "${value%% *}" > state
    echo "${value%% *}" >> calls
    ;;
esac
echo "get-feature:0x06 (Volatile Write Cache), Current value:0x0000000$(cat state)"
"#;

struct NvmeDisk {
    mount: Mount,
    device: Loop,
    // Dropped last: the others lie in it.
    place: TempDir,
}

impl NvmeDisk {
    /// A disk whose write cache is in this state.
    fn new(state: &str) -> Self {
        let place = place();
        let device = Loop::sparse(&place.path().join("image"), 6 << 30, &[]);
        run("mkfs.ext4", &["-q", device.node.to_str().unwrap()]);
        let point = place.path().join("mounted");
        let mount = Mount::new("ext4", device.node.to_str().unwrap(), &point, "defaults");
        let folder = place.path().join("bin");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("nvme"), NVME).unwrap();
        std::fs::set_permissions(folder.join("nvme"), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(place.path().join("state"), state).unwrap();
        Self {
            place,
            mount,
            device,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn state(&self) -> String {
        self.text("state").trim().to_owned()
    }

    /// `diskproof commit` on it.
    fn command(&self, flags: &[&str]) -> Command {
        let target = self.mount.point.to_str().unwrap();
        let common = ["commit", target, "--size", "64M", "--no-health"];
        let inner = program(common.iter().chain(flags));
        let number = run(
            "stat",
            &["-c", "%Hr:%Lr", self.device.node.to_str().unwrap()],
        );
        let mut command = Command::new("unshare");
        command
            .args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                AS_NVME,
                "sh",
            ])
            .args([self.place.path(), &self.device.node])
            .arg(number.trim())
            .arg(inner.get_program())
            .args(inner.get_args())
            .stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&inherited);
        let folders = std::iter::once(self.file("bin")).chain(folders);
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command
    }

    fn run(&self, flags: &[&str]) -> Ran {
        let ran = self.command(flags).output().unwrap().into();
        std::fs::remove_dir_all(self.file("sys")).unwrap();
        ran
    }

    /// A run of a minute, in the moment in which the cache has been switched off.
    fn start_until_off(&self) -> Child {
        let long = [
            "--write-cache",
            "off",
            "--yes",
            "--time",
            "60s",
            "--only",
            "fdatasync",
        ];
        let mut command = self.command(&long);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(eventually(|| self.state() == "0"), "never switched");
        child
    }
}

#[test]
fn switch_needs_consent_and_a_disk_that_has_one() {
    if !can_run("switch_needs_consent_and_a_disk_that_has_one", &PROGRAMS) {
        return;
    }
    let disk = NvmeDisk::new("1");
    let ran = disk.run(&["--write-cache", "off"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("add --yes"), "{}", ran.err);
    assert!(ran.err.contains("nvme0n1 (now on)"), "{}", ran.err);
    // A state that is unknown could not be restored.
    std::fs::write(disk.file("state"), "x").unwrap();
    let ran = disk.run(&["--write-cache", "off", "--yes"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("does not tell the state"), "{}", ran.err);
    assert_eq!(disk.text("calls"), "");
    let target = disk.mount.point.to_str().unwrap();
    let ran = crate::program::run(["commit", target, "--write-cache", "off", "--yes"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(
        ran.err.contains("cannot be switched from here"),
        "{}",
        ran.err
    );
    let ran = crate::program::run(["commit", target, "--yes"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

#[test]
fn both_states_are_measured_in_turns_and_the_first_one_is_restored() {
    let test = "both_states_are_measured_in_turns_and_the_first_one_is_restored";
    if !can_run(test, &PROGRAMS) {
        return;
    }
    for found in ["1", "0"] {
        let disk = NvmeDisk::new(found);
        let flags = [
            "--write-cache",
            "both",
            "--yes",
            "--time",
            "6s",
            "--only",
            "fdatasync",
        ];
        let saved = disk.file("saved.json");
        let outputs = ["-o", saved.to_str().unwrap()];
        let ran = disk.run(&[&flags[..], &outputs].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(disk.state(), found);
        assert!(ran.out.contains("\ncache off  fdatasync: "), "{}", ran.out);
        let record: Record = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
        let states: Vec<_> = record
            .measurements
            .iter()
            .map(|m| (m.workload.name.as_str(), m.workload.write_cache.unwrap()))
            .collect();
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        assert_eq!(states, [("fdatasync", on), ("fdatasync-off", off)]);
        let reported = record.targets[0]
            .disks()
            .next()
            .unwrap()
            .reported_write_cache;
        assert_eq!(reported, Some(if found == "1" { on } else { off }));
        // In turns, not one after the other.
        let calls = disk.text("calls").lines().count();
        assert!(calls >= 4, "{}", disk.text("calls"));
    }
}

#[test]
fn state_is_restored_however_the_program_ends() {
    if !can_run("state_is_restored_however_the_program_ends", &PROGRAMS) {
        return;
    }
    for (signal, code) in [
        (Signal::INT, Some(130)),
        (Signal::TERM, Some(143)),
        (Signal::KILL, None),
    ] {
        let disk = NvmeDisk::new("1");
        let mut child = disk.start_until_off();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        assert!(
            eventually(|| disk.state() == "1"),
            "{signal:?}: not restored"
        );
    }
}

/// The process that would restore the state dies: the program ends, and restores it itself.
#[test]
fn state_is_restored_without_the_guard() {
    if !can_run(
        "state_is_restored_without_the_guard",
        &[&PROGRAMS[..], &["pgrep"]].concat(),
    ) {
        return;
    }
    let disk = NvmeDisk::new("1");
    let mut command = disk.command(&[
        "--write-cache",
        "both",
        "--yes",
        "--time",
        "60s",
        "--only",
        "fdatasync",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(eventually(|| disk.state() == "0"), "never switched");
    let guard = run(
        "pgrep",
        &["-P", &child.id().to_string(), "-f", "write-cache-guard"],
    );
    run("kill", &["-9", guard.trim()]);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.out.contains("has ended by itself"), "{}", ran.out);
    assert_eq!(disk.state(), "1");
}

#[test]
fn state_that_is_not_restored_is_an_error_with_the_command() {
    if !can_run(
        "state_that_is_not_restored_is_an_error_with_the_command",
        &PROGRAMS,
    ) {
        return;
    }
    let disk = NvmeDisk::new("1");
    let child = disk.start_until_off();
    std::fs::write(disk.file("broken"), "").unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("NOT restored"), "{}", ran.err);
    let by_hand = "nvme set-feature --feature-id=6 --value=1 /dev/nvme0";
    assert!(ran.err.contains(by_hand), "{}", ran.err);
}
