//! `commit --write-cache` on a disk with a write cache that can be switched: a loop device that a
//! made-up /sys shows as an NVMe disk, in mounts of the program's own, with an `nvme` that keeps
//! the state in a file. However the program ends, the state is the one that was found.

use crate::program::{Ran, argv, eventually, program, saved_record};
use diskproof_model::target::WriteCache;
use diskproof_simdisk::testbed::{Loop, Mount, can_run, place, run};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const PROGRAMS: [&str; 5] = ["unshare", "losetup", "mkfs.ext4", "mknod", "mount"];

/// Shows $1 loop devices, whose nodes follow, as nvme0n1 and so on, members of one btrfs, by files
/// in $0. Then becomes the program.
const AS_NVME: &str = r#"
set -e
place=$0 disks=$1
shift
mkdir -p "$place/dev"
mount -t tmpfs tmpfs "$place/dev"
cp -a /dev/null /dev/zero /dev/random /dev/urandom "$place/dev/"
ln -s /proc/self/fd "$place/dev/fd"
i=0
while [ $i -lt "$disks" ]; do
    node=$1
    shift
    number=$(stat -c %Hr:%Lr "$node")
    disk=devices/pci0000:00/0000:00:0$i.0/nvme/nvme$i/nvme${i}n1
    mkdir -p "$place/sys/dev/block" "$place/sys/class/block" "$place/sys/$disk/queue"
    for file in dev size ro queue/logical_block_size queue/physical_block_size queue/scheduler; do
        cat "/sys/dev/block/$number/$file" > "$place/sys/$disk/$file"
    done
    echo 'write back' > "$place/sys/$disk/queue/write_cache"
    echo 0 > "$place/sys/$disk/queue/rotational"
    ln -s "../../$disk" "$place/sys/dev/block/$number"
    ln -s "../../$disk" "$place/sys/class/block/nvme${i}n1"
    mkdir -p "$place/sys/fs/btrfs/uuid/devices"
    ln -s "../../../../$disk" "$place/sys/fs/btrfs/uuid/devices/nvme${i}n1"
    cp -a "$node" "$place/dev/"
    mknod "$place/dev/nvme${i}n1" b "${number%:*}" "${number#*:}"
    # The controller has the number of /dev/null, since no driver stands behind it.
    mknod "$place/dev/nvme$i" c 1 3
    echo 1:3 > "$place/sys/${disk%/*}/dev"
    i=$((i + 1))
done
mount --move "$place/dev" /dev
mount --bind "$place/sys" /sys
exec "$@"
"#;

/// The state of nvme0 is in `nvme0`; `calls` lists the changes. While `broken` exists, changes
/// fail.
const NVME: &str = r#"#!/bin/sh
cd "$(dirname "$0")/.." || exit 1
for controller; do :; done
controller=${controller##*/}
case $* in
*--value=*)
    [ -e broken ] && { echo 'NVMe status: Internal Error(0x6)' >&2; exit 6; }
    value=${*##*--value=}
    echo "${value%% *}" > "$controller"
    echo "$controller ${value%% *}" >> calls
    ;;
esac
echo "get-feature:0x06 (Volatile Write Cache), Current value:0x0000000$(cat "$controller")"
"#;

struct NvmeDisks {
    mount: Mount,
    devices: Vec<Loop>,
    // Dropped last: the others lie in it.
    place: TempDir,
}

impl NvmeDisks {
    /// A disk whose write cache is in this state.
    fn one(state: &str) -> Self {
        Self::new(&[state], "mkfs.ext4", &["-q"])
    }

    /// Disks with one filesystem, and the states of their write caches.
    fn new(states: &[&str], mkfs: &str, options: &[&str]) -> Self {
        let place = place();
        let devices: Vec<Loop> = (0..states.len())
            .map(|i| Loop::sparse(&place.path().join(format!("image{i}")), 6 << 30, &[]))
            .collect();
        let nodes: Vec<&str> = devices.iter().map(|d| d.node.to_str().unwrap()).collect();
        run(mkfs, &[options, &nodes].concat());
        let point = place.path().join("mounted");
        let kind = mkfs.trim_start_matches("mkfs.");
        let mount = Mount::new(kind, nodes[0], &point, "defaults");
        let folder = place.path().join("bin");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("nvme"), NVME).unwrap();
        std::fs::set_permissions(folder.join("nvme"), PermissionsExt::from_mode(0o755)).unwrap();
        for (i, state) in states.iter().enumerate() {
            std::fs::write(place.path().join(format!("nvme{i}")), state).unwrap();
        }
        Self {
            place,
            mount,
            devices,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn state(&self) -> String {
        self.text("nvme0").trim().to_owned()
    }

    /// `diskproof commit` on it.
    fn command(&self, flags: &[&str]) -> Command {
        let target = self.mount.point.to_str().unwrap();
        let common = ["commit", target, "--size", "64M", "--no-health"];
        self.command_of(program(common.iter().chain(flags)))
    }

    /// The program, where the disk has a write cache.
    fn command_of(&self, inner: Command) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", AS_NVME])
            .arg(self.place.path())
            .arg(self.devices.len().to_string())
            .args(self.devices.iter().map(|device| &device.node))
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
        let long = argv("--write-cache off --yes --time 60s --only fdatasync");
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
    let disk = NvmeDisks::one("1");
    let ran = disk.run(&["--write-cache", "off"]);
    ran.exits(3).tells("add --yes").tells("nvme0n1 (now on)");
    // A state that is unknown could not be restored.
    std::fs::write(disk.file("nvme0"), "x").unwrap();
    let ran = disk.run(&["--write-cache", "off", "--yes"]);
    ran.exits(3).tells("does not report the state");
    assert_eq!(disk.text("calls"), "");
    let target = disk.mount.point.to_str().unwrap();
    let ran = crate::program::run(["commit", target, "--write-cache", "off", "--yes"]);
    ran.exits(3).tells("cannot be switched from here");
    let ran = crate::program::run(["commit", target, "--yes"]);
    ran.exits(2);
}

#[test]
fn both_states_are_measured_in_turns_and_the_first_one_is_restored() {
    let test = "both_states_are_measured_in_turns_and_the_first_one_is_restored";
    if !can_run(test, &PROGRAMS) {
        return;
    }
    for found in ["1", "0"] {
        let disk = NvmeDisks::one(found);
        let flags = argv("--write-cache both --yes --time 6s --only fdatasync");
        let saved = disk.file("saved.json");
        let outputs = ["-o", saved.to_str().unwrap()];
        let ran = disk.run(&[&flags[..], &outputs].concat());
        ran.exits(0);
        assert_eq!(disk.state(), found);
        ran.shows("\ncache off  fdatasync: ");
        let record = saved_record(saved);
        let states: Vec<_> = record
            .measurements
            .iter()
            .map(|m| {
                (
                    m.data.workload.name.as_str(),
                    m.data.workload.write_cache.unwrap(),
                )
            })
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
fn repeated_record_switches_the_cache_after_consent() {
    let test = "repeated_record_switches_the_cache_after_consent";
    if !can_run(test, &PROGRAMS) {
        return;
    }
    let disk = NvmeDisks::one("1");
    let saved = disk.file("saved.json");
    let saved = saved.to_str().unwrap();
    let flags = argv("--write-cache off --yes --time 2s --only fdatasync");
    disk.run(&[&flags[..], &["-o", saved]].concat()).exits(0);
    let calls = || disk.text("calls").lines().count();
    let before = calls();
    let repeat = |flags: &[&str]| {
        let words = ["run", saved, "--no-health", "--no-history"];
        let mut command = disk.command_of(program(words.iter().chain(flags)));
        let ran = Ran::from(command.output().unwrap());
        std::fs::remove_dir_all(disk.file("sys")).unwrap();
        ran
    };
    repeat(&[]).exits(3).tells("add --yes");
    repeat(&["--dry-run"]).exits(0).tells("nvme0n1 (now on)");
    assert_eq!(calls(), before);
    repeat(&["--yes"]).exits(0);
    assert!(calls() > before);
    assert_eq!(disk.state(), "1");
    // Consent without a saved run has no meaning.
    let target = disk.mount.point.to_str().unwrap();
    crate::program::run(["run", target, "--yes"]).exits(2);
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
        let disk = NvmeDisks::one("1");
        let mut child = disk.start_until_off();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        assert!(
            eventually(|| disk.state() == "1"),
            "{signal:?}: not restored"
        );
    }
}

/// Each disk gets back the state that it was found in.
#[test]
fn all_disks_of_a_filesystem_are_switched_and_restored() {
    let test = "all_disks_of_a_filesystem_are_switched_and_restored";
    if !can_run(test, &[&PROGRAMS[..], &["mkfs.btrfs"]].concat()) {
        return;
    }
    let disks = NvmeDisks::new(&["0", "1"], "mkfs.btrfs", &["-q", "-d", "raid0"]);
    let refused = disks.run(&["--write-cache", "off"]);
    let asked = "nvme0n1 (now off), nvme1n1 (now on)";
    refused.tells(asked);
    let flags = ["--yes", "--time", "4s", "--only", "fdatasync"];
    let ran = disks.run(&[&["--write-cache", "both"], &flags[..]].concat());
    ran.exits(0);
    let calls = disks.text("calls");
    for change in ["nvme0 0", "nvme0 1", "nvme1 0", "nvme1 1"] {
        assert!(calls.lines().any(|call| call == change), "{calls}");
    }
    assert_eq!(disks.text("nvme0").trim(), "0", "{calls}");
    assert_eq!(disks.text("nvme1").trim(), "1", "{calls}");
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
    let disk = NvmeDisks::one("1");
    let mut command = disk.command(&argv(
        "--write-cache both --yes --time 60s --only fdatasync",
    ));
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
    ran.exits(4).shows("ended unexpectedly");
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
    let disk = NvmeDisks::one("1");
    let child = disk.start_until_off();
    std::fs::write(disk.file("broken"), "").unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.exits(4).tells("NOT restored");
    let by_hand = "nvme set-feature --feature-id=6 --value=1 /dev/nvme0";
    ran.tells(by_hand);
}
