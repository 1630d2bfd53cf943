//! Reads the limits that control groups set for this process. Those on its I/O are `io.max` of its
//! group and of every visible ancestor in cgroup v2, and `blkio.throttle` of its group in v1. Those
//! on memory say how much is left. An unreadable file counts as no limit.

use crate::kernel::sysroot::{SysRoot, read_number, read_text, value_of};
use diskproof_model::target::IoLimit;
use std::path::Path;

/// One kind of limit.
struct LimitKey {
    /// The key in `io.max` of cgroup v2.
    key: &'static str,
    /// The name of the file in cgroup v1.
    file: &'static str,
    field: fn(&mut IoLimit) -> &mut Option<u64>,
}

impl LimitKey {
    const fn new(
        key: &'static str,
        file: &'static str,
        field: fn(&mut IoLimit) -> &mut Option<u64>,
    ) -> Self {
        Self { key, file, field }
    }
}

const LIMITS: [LimitKey; 4] = [
    LimitKey::new("riops", "blkio.throttle.read_iops_device", |l| {
        &mut l.read_iops
    }),
    LimitKey::new("wiops", "blkio.throttle.write_iops_device", |l| {
        &mut l.write_iops
    }),
    LimitKey::new("rbps", "blkio.throttle.read_bps_device", |l| {
        &mut l.read_bytes_per_second
    }),
    LimitKey::new("wbps", "blkio.throttle.write_bps_device", |l| {
        &mut l.write_bytes_per_second
    }),
];

/// The limits on this process, those of its own group first.
pub(crate) fn io_limits(root: &SysRoot) -> Vec<IoLimit> {
    let groups = read_text(&root.proc.join("self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for group in own_groups(&groups) {
        if group.controllers.is_empty() {
            for mount in ["fs/cgroup", "fs/cgroup/unified"] {
                let mount = root.sys.join(mount);
                limits.extend(limits_of_group_and_ancestors(&mount, group.path));
            }
        } else if group.has_controller("blkio") {
            let mount = root.sys.join("fs/cgroup/blkio");
            limits.extend(throttles(&mount, group.path));
        }
    }
    limits
}

/// A control group of this process (cgroups(7)).
struct OwnGroup<'a> {
    /// Separated by commas; empty in cgroup v2.
    controllers: &'a str,
    /// The path below the mount point.
    path: &'a str,
}

impl<'a> OwnGroup<'a> {
    /// A line of /proc/self/cgroup: `4:cpu,cpuacct:/user.slice`.
    fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        Some(Self { controllers, path })
    }

    fn has_controller(&self, name: &str) -> bool {
        self.controllers
            .split(',')
            .any(|controller| controller == name)
    }
}

/// The groups that /proc/self/cgroup names.
fn own_groups(text: &str) -> impl Iterator<Item = OwnGroup<'_>> {
    text.lines().filter_map(OwnGroup::parse)
}

/// The limits of a group and its ancestors.
fn limits_of_group_and_ancestors(mount: &Path, group: &str) -> Vec<IoLimit> {
    let group = Path::new(group.trim_start_matches('/'));
    let is_above = group.components().any(|part| part.as_os_str() == "..");
    if is_above {
        return Vec::new();
    }
    let mut limits = Vec::new();
    for ancestor in group.ancestors() {
        let name = format!("/{}", ancestor.display());
        let text = read_text(&mount.join(ancestor).join("io.max")).unwrap_or_default();
        limits.extend(text.lines().filter_map(|line| io_max(&name, line)));
    }
    limits
}

/// A line of `io.max`: `8:0 rbps=1048576 wbps=max riops=max wiops=120`.
fn io_max(group: &str, line: &str) -> Option<IoLimit> {
    let mut words = line.split_whitespace();
    let mut limit = unlimited(group, words.next()?);
    for word in words {
        let (key, value) = word.split_once('=')?;
        if let Some(known) = LIMITS.iter().find(|known| known.key == key) {
            *(known.field)(&mut limit) = value.parse().ok();
        }
    }
    let is_set = LIMITS
        .iter()
        .any(|known| (known.field)(&mut limit).is_some());
    if is_set { Some(limit) } else { None }
}

/// The limits of a group of version 1. Those above it do not limit it (Linux,
/// Documentation/admin-guide/cgroup-v1/blkio-controller.rst). In a container the path may be the
/// host's, and its own group is at the mount point.
fn throttles(mount: &Path, group: &str) -> Vec<IoLimit> {
    let mut folder = mount.join(group.trim_start_matches('/'));
    if !folder.exists() {
        folder = mount.to_owned();
    }
    let mut limits: Vec<IoLimit> = Vec::new();
    for LimitKey { file, field, .. } in LIMITS {
        let text = read_text(&folder.join(file)).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(device), Some(Ok(value))) = (words.next(), words.next().map(str::parse))
            else {
                continue;
            };
            let position_of_device = limits.iter().position(|limit| limit.device == device);
            let index = position_of_device.unwrap_or_else(|| {
                limits.push(unlimited(group, device));
                limits.len() - 1
            });
            *field(&mut limits[index]) = Some(value);
        }
    }
    limits
}

fn unlimited(group: &str, device: &str) -> IoLimit {
    IoLimit {
        group: group.to_owned(),
        device: device.to_owned(),
        ..IoLimit::default()
    }
}

/// Bytes of memory that are free, or cache that can be dropped: of the machine (`MemAvailable` in
/// proc_meminfo(5)), and of what each control group above this process may take. `None` where
/// neither is known.
pub fn memory_free_bytes() -> Option<u64> {
    free_in(&SysRoot::default())
}

/// The places where a version of control groups keeps its figures (Linux,
/// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
#[derive(Clone, Copy)]
struct MemoryFigures {
    /// The mount point, below /sys.
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Prefix of the lines of memory.stat that count the groups below as well.
    prefix: &'static str,
}

/// cgroup v2.
const UNIFIED: MemoryFigures = MemoryFigures {
    mount: "fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    prefix: "",
};
/// cgroup v1.
const LEGACY: MemoryFigures = MemoryFigures {
    mount: "fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    prefix: "total_",
};

fn free_in(root: &SysRoot) -> Option<u64> {
    let meminfo = read_text(&root.proc.join("meminfo")).unwrap_or_default();
    let groups = read_text(&root.proc.join("self/cgroup")).unwrap_or_default();
    // Since Linux 3.14.
    let mut free = meminfo_bytes(&meminfo, "MemAvailable:");
    for group in own_groups(&groups) {
        let figures = if group.controllers.is_empty() {
            UNIFIED
        } else if group.has_controller("memory") {
            LEGACY
        } else {
            continue;
        };
        let mount = root.sys.join(figures.mount);
        if let Some(bytes) = free_in_group(&mount, group.path, figures) {
            free = Some(bytes.min(free.unwrap_or(u64::MAX)));
        }
    }
    free
}

/// A line of /proc/meminfo, in bytes.
pub(crate) fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The least that a group or one above it has left. In a container the path may be the host's, and
/// only the groups from its own root on can be seen.
fn free_in_group(mount: &Path, path: &str, figures: MemoryFigures) -> Option<u64> {
    let group_path = mount.join(path.trim_start_matches('/'));
    group_path
        .ancestors()
        .take_while(|group| group.starts_with(mount))
        .filter_map(|group| left_in(group, figures))
        .min()
}

/// The bytes that a group may still take; its page cache can be dropped, so it does not count as
/// used. `None` where the group has no limit.
fn left_in(group: &Path, figures: MemoryFigures) -> Option<u64> {
    let MemoryFigures {
        limit,
        used,
        prefix,
        ..
    } = figures;
    // "max" is no limit.
    let limit_bytes: u64 = read_number(&group.join(limit))?;
    let used_bytes: u64 = read_number(&group.join(used))?;
    let stat = read_text(&group.join("memory.stat")).unwrap_or_default();
    let mut cache_bytes: u64 = 0;
    for name in ["inactive_file", "active_file"] {
        let value = value_of(&stat, &format!("{prefix}{name}"), ' ').unwrap_or_default();
        cache_bytes = cache_bytes.saturating_add(value.parse().unwrap_or(0));
    }
    Some(limit_bytes.saturating_sub(used_bytes.saturating_sub(cache_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A /sys and a /proc with what a test puts there.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(groups: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            let memory = "MemTotal: 8388608 kB\nMemFree: 1024 kB\nMemAvailable: 4194304 kB\n";
            machine.put("proc/meminfo", memory);
            machine.put("proc/self/cgroup", groups);
            machine
        }

        fn put(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        /// A file of a group with a size in it.
        fn put_mib(&self, file: &str, mib: u64) {
            self.put(
                &format!("sys/fs/cgroup/{file}"),
                &format!("{}\n", mib * MIB),
            );
        }

        fn root(&self) -> SysRoot {
            SysRoot {
                sys: self.0.path().join("sys"),
                proc: self.0.path().join("proc"),
            }
        }

        fn free_mib(&self) -> Option<u64> {
            free_in(&self.root()).map(|bytes| bytes / MIB)
        }
    }

    #[test]
    fn limits_of_the_group_and_of_its_ancestors_are_read() {
        let machine = Machine::new("0::/system.slice/db.service\n");
        machine.put(
            "sys/fs/cgroup/system.slice/db.service/io.max",
            "8:0 rbps=max wbps=max riops=500 wiops=max\n\
             8:16 rbps=max wbps=max riops=max wiops=max\n",
        );
        let slice = "8:0 rbps=1048576 wbps=2097152 riops=max wiops=120\n";
        machine.put("sys/fs/cgroup/system.slice/io.max", slice);
        let limits = io_limits(&machine.root());
        let groups: Vec<&str> = limits.iter().map(|limit| limit.group.as_str()).collect();
        assert_eq!(groups, ["/system.slice/db.service", "/system.slice"]);
        assert_eq!(limits[0].read_iops, Some(500));
        assert_eq!(limits[0].write_iops, None);
        let slice = &limits[1];
        assert_eq!(slice.device, "8:0");
        assert_eq!(slice.write_iops, Some(120));
        assert_eq!(slice.read_bytes_per_second, Some(1 << 20));
        assert_eq!(slice.write_bytes_per_second, Some(2 << 20));
    }

    #[test]
    fn limits_of_version_1_are_read_from_its_four_files() {
        let machine = Machine::new("7:blkio:/db\n1:name=systemd:/x\n");
        let group = "sys/fs/cgroup/blkio/db/blkio.throttle";
        machine.put(&format!("{group}.read_iops_device"), "8:0 300\n");
        machine.put(&format!("{group}.write_bps_device"), "8:0 5000\n8:16 7\n");
        let limits = io_limits(&machine.root());
        assert_eq!(limits.len(), 2);
        assert_eq!(limits[0].read_iops, Some(300));
        assert_eq!(limits[0].write_bytes_per_second, Some(5000));
        assert_eq!(limits[1].device, "8:16");
    }

    #[test]
    fn container_sees_its_own_throttles_at_the_mount_point() {
        let machine = Machine::new("7:blkio:/docker/0123\n");
        let file = "sys/fs/cgroup/blkio/blkio.throttle.read_bps_device";
        machine.put(file, "8:0 5000\n");
        let limits = io_limits(&machine.root());
        assert_eq!(limits.len(), 1);
        assert_eq!(limits[0].read_bytes_per_second, Some(5000));
        assert_eq!(limits[0].group, "/docker/0123");
    }

    #[test]
    fn a_group_without_limits_has_none() {
        let machine = Machine::new("0::/../..\n");
        machine.put("sys/fs/cgroup/io.max", "");
        assert_eq!(io_limits(&machine.root()), []);
    }

    #[test]
    fn without_limits_it_is_the_machines() {
        assert_eq!(Machine::new("").free_mib(), Some(4096));
        let unlimited = Machine::new("0::/user.slice\n");
        unlimited.put("sys/fs/cgroup/user.slice/memory.max", "max\n");
        unlimited.put("sys/fs/cgroup/user.slice/memory.current", "4096\n");
        assert_eq!(unlimited.free_mib(), Some(4096));
        let unknown = Machine::new("");
        unknown.put("proc/meminfo", "MemTotal: 5 kB\n");
        assert_eq!(unknown.free_mib(), None);
    }

    #[test]
    fn the_narrowest_group_above_counts_and_its_cache_does_not() {
        let machine = Machine::new("0::/pods/one\n");
        machine.put_mib("pods/memory.max", 1000);
        machine.put_mib("pods/memory.current", 900);
        machine.put_mib("pods/one/memory.max", 600);
        machine.put_mib("pods/one/memory.current", 100);
        assert_eq!(machine.free_mib(), Some(100));
        let [inactive, active] = [300 * MIB, 150 * MIB];
        let stat = format!("anon 5\nfile 9\ninactive_file {inactive}\nactive_file {active}\n");
        machine.put("sys/fs/cgroup/pods/memory.stat", &stat);
        // Now the inner one is narrower.
        assert_eq!(machine.free_mib(), Some(500));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mount_point() {
        let machine = Machine::new("9:name=systemd:/\n4:cpu,memory:/docker/0123\n0::/\n");
        machine.put_mib("memory/memory.limit_in_bytes", 512);
        machine.put_mib("memory/memory.usage_in_bytes", 500);
        let stat = format!("inactive_file 7\ntotal_inactive_file {}\n", 100 * MIB);
        machine.put("sys/fs/cgroup/memory/memory.stat", &stat);
        assert_eq!(machine.free_mib(), Some(112));
        // Over its limit.
        machine.put_mib("memory/memory.usage_in_bytes", 900);
        assert_eq!(machine.free_mib(), Some(0));
    }
}
