//! Tools that behave as the real ones do, on a state file, and what they print word for word.

use super::{CacheTool, SwitchedDisk, WriteCacheSwitch, choose_tool, controller_node};
use crate::GuardedWriteCache;
use crate::identity::disk::bare_layer;
use crate::identity::link::NvmeController;
use diskproof_model::target::{LayerKind, Link, WriteCache};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// hdparm 9.65 on an ATA disk, on one without a write cache and on one that is none.
const HDPARM: [&str; 3] = [
    "\n/dev/sda:\n write-caching =  1 (on)\n",
    "\n/dev/sda:\n write-caching = not supported\n",
    "\n/dev/sda:\n HDIO_DRIVE_CMD(identify) failed: Inappropriate ioctl for device\n",
];
/// nvme-cli 2.3, and 1.12.
const NVME: [&str; 2] = [
    "get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n",
    "get-feature:0x6 (Volatile Write Cache), Current value:00000000\n",
];
/// sdparm 1.12.
const SDPARM: [&str; 2] = [
    "    /dev/sdb: SEAGATE   ST4000NM0023      0004\nWCE           1  [cha: y, def:  1, sav:  1]\n",
    "    /dev/sdb: SEAGATE   ST4000NM0023      0004\nWCE           0\n",
];

#[test]
fn state_is_read_from_what_the_tools_print() {
    let (on, off) = (Some(WriteCache::WriteBack), Some(WriteCache::WriteThrough));
    let of_hdparm = HDPARM.map(|text| CacheTool::Hdparm.parse(text));
    assert_eq!(of_hdparm, [on, None, None]);
    assert_eq!(NVME.map(|text| CacheTool::Nvme.parse(text)), [on, off]);
    assert_eq!(SDPARM.map(|text| CacheTool::Sdparm.parse(text)), [on, off]);
    for tool in CacheTool::ALL {
        assert_eq!(tool.parse(""), None);
        assert_eq!(tool.parse("write-caching = WCE current value:"), None);
    }
}

/// A tool as a script.
fn script(place: &TempDir, name: &str, lines: &str) -> PathBuf {
    let path = place.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn switch_is_confirmed_by_the_disk() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    std::fs::write(&state, "1").unwrap();
    let node = Path::new("/dev/it's a disk");
    let lines = format!(
        "state='{}'\ncase $1 in -W0) echo 0 > \"$state\";; -W1) echo 1 > \"$state\";; esac\n\
         echo \" write-caching =  $(cat \"$state\") (x)\"",
        state.display()
    );
    let program = script(&place, "hdparm", &lines);
    let tool = CacheTool::Hdparm;
    assert_eq!(tool.state(&program, node), Ok(WriteCache::WriteBack));
    let off = WriteCache::WriteThrough;
    assert_eq!(tool.switch(&program, node, off, Stdio::null()), Ok(()));
    assert_eq!(tool.state(&program, node), Ok(off));
    // A disk that takes the command and stays as it is.
    let stubborn = script(&place, "stubborn", "echo ' write-caching =  1 (on)'");
    let why = tool
        .switch(&stubborn, node, off, Stdio::null())
        .unwrap_err();
    assert!(why.contains("'hdparm -W0 "), "{why}");
    let broken = script(&place, "broken", "echo no permission >&2; exit 5");
    let said = tool.state(&broken, node).unwrap_err();
    assert!(said.contains("no permission"), "{said}");
}

/// After kill -9 of diskproof a tool may go on, and switch the cache off after the guard has
/// switched it on. So the guard must not see its input end before the tool has ended.
#[test]
fn tool_that_switches_keeps_the_guard_from_restoring() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    std::fs::write(&state, "1").unwrap();
    let lines = format!(
        "state='{}'\nif [ $1 = -W0 ]; then\n  case $(readlink /proc/$$/fd/0) in pipe:*) echo 0 > \
         \"$state\";; esac\nfi\necho \" write-caching =  $(cat \"$state\") (x)\"",
        state.display()
    );
    let disk = SwitchedDisk {
        name: "sdx".to_owned(),
        node: PathBuf::from("/dev/sdx"),
        tool: CacheTool::Hdparm,
        program: script(&place, "hdparm", &lines),
        initial_state: WriteCache::WriteBack,
    };
    let guard = script(&place, "guard", "echo ready\ncat\necho restored");
    let switch = WriteCacheSwitch { disks: vec![disk] };
    let mut guarded = GuardedWriteCache::start_as(switch, Command::new(guard)).unwrap();
    guarded.set(WriteCache::WriteThrough).unwrap();
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "0\n");
    guarded.restore().unwrap();
}

#[test]
fn disks_without_a_switch_say_what_to_do() {
    let of = |name: &str, kind, bus: Option<&str>| {
        let mut layer = bare_layer(name, "8:0");
        layer.kind = kind;
        layer.link = bus.map(|bus| Link {
            bus: bus.to_owned(),
            speed: None,
            speed_max: None,
            bytes_per_second_max: None,
            device_bytes_per_second_max: None,
        });
        choose_tool(&layer)
    };
    let disk = LayerKind::Disk;
    assert_eq!(of("sda", disk, Some("SATA")), Ok(CacheTool::Hdparm));
    assert_eq!(of("sda", disk, None), Ok(CacheTool::Sdparm));
    assert_eq!(of("nvme0n1", disk, Some("PCIe")), Ok(CacheTool::Nvme));
    let why = of("vda", disk, Some("virtio")).unwrap_err();
    assert!(why.contains("cache_type"), "{why}");
    assert!(of("loop0", LayerKind::Loop, None).is_err());
    assert!(of("zram0", LayerKind::Zram, None).is_err());
}

#[test]
fn controller_node_is_used_only_if_it_is_that_controller() {
    let place = tempfile::tempdir().unwrap();
    // A character device that every machine has: 1:3.
    std::os::unix::fs::symlink("/dev/null", place.path().join("nvme0")).unwrap();
    let found = |name: &str, number: &str| {
        let controller = NvmeController {
            name: name.to_owned(),
            number: number.to_owned(),
        };
        controller_node(&controller, place.path())
    };
    assert_eq!(found("nvme0", "1:3"), Some(place.path().join("nvme0")));
    // The node of another controller by this name, and none.
    assert_eq!(found("nvme0", "243:0"), None);
    assert_eq!(found("nvme1", "1:3"), None);
}
