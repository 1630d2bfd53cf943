//! What the control groups of this process allow it: its I/O (`io.max` of its group and of every
//! ancestor that is visible in cgroup v2, `blkio.throttle` of its group in v1), and memory before
//! the machine swaps. An unreadable file counts as no limit. Does not know targets.

use crate::sysroot::{SysRoot, read_number, read_text, value_of};
use diskproof_model::target::IoLimit;
use std::path::Path;

/// A limit: its key in `io.max`, its file in v1, and its place.
type LimitKey = (
    &'static str,
    &'static str,
    fn(&mut IoLimit) -> &mut Option<u64>,
);

// rustfmt would give each field of a row a line.
#[rustfmt::skip]
const LIMITS: [LimitKey; 4] = [
    ("riops", "blkio.throttle.read_iops_device", |limit| &mut limit.read_iops),
    ("wiops", "blkio.throttle.write_iops_device", |limit| &mut limit.write_iops),
    ("rbps", "blkio.throttle.read_bps_device", |limit| &mut limit.read_bytes_per_second),
    ("wbps", "blkio.throttle.write_bps_device", |limit| &mut limit.write_bytes_per_second),
];

/// The limits on this process, those of its own group first.
pub(crate) fn io_limits(root: &SysRoot) -> Vec<IoLimit> {
    let groups = read_text(&root.proc.join("self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for (controllers, group) in own_groups(&groups) {
        if controllers.is_empty() {
            for mount in ["fs/cgroup", "fs/cgroup/unified"] {
                limits.extend(with_ancestors(&root.sys.join(mount), group));
            }
        } else if controllers.split(',').any(|one| one == "blkio") {
            let mount = root.sys.join("fs/cgroup/blkio");
            limits.extend(throttles(&mount, group));
        }
    }
    limits
}

/// Controllers and path of each group that /proc/self/cgroup names.
fn own_groups(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

/// The limits of a group and its ancestors.
fn with_ancestors(mount: &Path, group: &str) -> Vec<IoLimit> {
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
    let mut limit = of(group, words.next()?);
    for word in words {
        let (key, value) = word.split_once('=')?;
        if let Some(known) = LIMITS.iter().find(|(known, ..)| *known == key) {
            *(known.2)(&mut limit) = value.parse().ok();
        }
    }
    let is_set = LIMITS.iter().any(|(.., place)| place(&mut limit).is_some());
    is_set.then_some(limit)
}

fn throttles(mount: &Path, group: &str) -> Vec<IoLimit> {
    let folder = mount.join(group.trim_start_matches('/'));
    let mut limits: Vec<IoLimit> = Vec::new();
    for (_, file, place) in LIMITS {
        let text = read_text(&folder.join(file)).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(device), Some(Ok(value))) = (words.next(), words.next().map(str::parse))
            else {
                continue;
            };
            let known = limits.iter().position(|limit| limit.device == device);
            let index = known.unwrap_or_else(|| {
                limits.push(of(group, device));
                limits.len() - 1
            });
            *place(&mut limits[index]) = Some(value);
        }
    }
    limits
}

fn of(group: &str, device: &str) -> IoLimit {
    IoLimit {
        group: group.to_owned(),
        device: device.to_owned(),
        ..IoLimit::default()
    }
}

/// Bytes of memory that are free, or cache that can be dropped: of the machine (`MemAvailable` in
/// proc_meminfo(5)), and of what each control group above this process may take. `None` where
/// nothing tells.
pub fn memory_free_bytes() -> Option<u64> {
    free_in(&SysRoot::default())
}

/// Where a version of control groups keeps its figures: below the mount points of all, the limit,
/// what is used, and the prefix of the lines of memory.stat that count the groups below as well
/// (Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
type MemoryFigures = [&'static str; 4];

const UNIFIED: MemoryFigures = ["fs/cgroup", "memory.max", "memory.current", ""];
const LEGACY: MemoryFigures = [
    "fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_",
];

fn free_in(root: &SysRoot) -> Option<u64> {
    let meminfo = read_text(&root.proc.join("meminfo")).unwrap_or_default();
    let groups = read_text(&root.proc.join("self/cgroup")).unwrap_or_default();
    let of_groups = own_groups(&groups).filter_map(|(controllers, path)| {
        let figures = match controllers {
            "" => UNIFIED,
            listed if listed.split(',').any(|controller| controller == "memory") => LEGACY,
            _ => return None,
        };
        free_in_group(&root.sys.join(figures[0]), path, figures)
    });
    // Since Linux 3.14.
    let available = meminfo_bytes(&meminfo, "MemAvailable:");
    of_groups.chain(available).min()
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
    let own = mount.join(path.trim_start_matches('/'));
    let above = own.ancestors().take_while(|at| at.starts_with(mount));
    above.filter_map(|at| left_in(at, figures)).min()
}

fn left_in(group: &Path, [_, limit, used, prefix]: MemoryFigures) -> Option<u64> {
    // "max" is no limit.
    let limit: u64 = read_number(&group.join(limit))?;
    let used: u64 = read_number(&group.join(used))?;
    let stat = read_text(&group.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| {
        value_of(&stat, &format!("{prefix}{name}"), ' ')?
            .parse()
            .ok()
    };
    let [inactive, active] = ["inactive_file", "active_file"].map(|name| of(name).unwrap_or(0u64));
    let cache = inactive.saturating_add(active);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, SysRoot) {
        let place = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = SysRoot {
            sys: place.path().join("sys"),
            proc: place.path().join("proc"),
        };
        (place, root)
    }

    #[test]
    fn limits_of_the_group_and_of_its_ancestors_are_read() {
        let (_place, root) = tree(&[
            ("proc/self/cgroup", "0::/system.slice/db.service\n"),
            (
                "sys/fs/cgroup/system.slice/db.service/io.max",
                "8:0 rbps=max wbps=max riops=500 wiops=max\n\
                 8:16 rbps=max wbps=max riops=max wiops=max\n",
            ),
            (
                "sys/fs/cgroup/system.slice/io.max",
                "8:0 rbps=1048576 wbps=2097152 riops=max wiops=120\n",
            ),
        ]);
        let limits = io_limits(&root);
        let groups: Vec<&str> = limits.iter().map(|limit| limit.group.as_str()).collect();
        assert_eq!(groups, ["/system.slice/db.service", "/system.slice"]);
        assert_eq!(
            (limits[0].read_iops, limits[0].write_iops),
            (Some(500), None)
        );
        let slice = &limits[1];
        assert_eq!(
            (slice.device.as_str(), slice.write_iops),
            ("8:0", Some(120))
        );
        assert_eq!(slice.read_bytes_per_second, Some(1 << 20));
        assert_eq!(slice.write_bytes_per_second, Some(2 << 20));
    }

    #[test]
    fn limits_of_version_1_are_read_from_its_four_files() {
        let (_place, root) = tree(&[
            ("proc/self/cgroup", "7:blkio:/db\n1:name=systemd:/x\n"),
            (
                "sys/fs/cgroup/blkio/db/blkio.throttle.read_iops_device",
                "8:0 300\n",
            ),
            (
                "sys/fs/cgroup/blkio/db/blkio.throttle.write_bps_device",
                "8:0 5000\n8:16 7\n",
            ),
        ]);
        let limits = io_limits(&root);
        assert_eq!(limits.len(), 2);
        assert_eq!(
            (limits[0].read_iops, limits[0].write_bytes_per_second),
            (Some(300), Some(5000))
        );
        assert_eq!(limits[1].device, "8:16");
    }

    #[test]
    fn a_group_without_limits_has_none() {
        let (_place, root) = tree(&[
            ("proc/self/cgroup", "0::/../..\n"),
            ("sys/fs/cgroup/io.max", ""),
        ]);
        assert_eq!(io_limits(&root), []);
    }

    const MIB: u64 = 1 << 20;

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(groups: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.put(
                "meminfo",
                "MemTotal:       8388608 kB\nMemFree:  1024 kB\nMemAvailable:    4194304 kB\n",
            );
            machine.put("self/cgroup", groups);
            machine
        }

        fn put(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn free_mib(&self) -> Option<u64> {
            free_in(&SysRoot {
                sys: self.0.path().into(),
                proc: self.0.path().into(),
            })
            .map(|bytes| bytes / MIB)
        }
    }

    #[test]
    fn without_limits_it_is_the_machines() {
        assert_eq!(Machine::new("").free_mib(), Some(4096));
        let unlimited = Machine::new("0::/user.slice\n");
        unlimited.put("fs/cgroup/user.slice/memory.max", "max\n");
        unlimited.put("fs/cgroup/user.slice/memory.current", "4096\n");
        assert_eq!(unlimited.free_mib(), Some(4096));
        let unknown = Machine::new("");
        unknown.put("meminfo", "MemTotal: 5 kB\n");
        assert_eq!(unknown.free_mib(), None);
    }

    #[test]
    fn the_narrowest_group_above_counts_and_its_cache_does_not() {
        let machine = Machine::new("0::/pods/one\n");
        machine.put("fs/cgroup/pods/memory.max", &format!("{}\n", 1000 * MIB));
        machine.put("fs/cgroup/pods/memory.current", &format!("{}\n", 900 * MIB));
        machine.put("fs/cgroup/pods/one/memory.max", &format!("{}\n", 600 * MIB));
        machine.put(
            "fs/cgroup/pods/one/memory.current",
            &format!("{}\n", 100 * MIB),
        );
        assert_eq!(machine.free_mib(), Some(100));
        let stat = format!(
            "anon 5\nfile 9\ninactive_file {}\nactive_file {}\n",
            300 * MIB,
            150 * MIB
        );
        machine.put("fs/cgroup/pods/memory.stat", &stat);
        assert_eq!(
            machine.free_mib(),
            Some(500),
            "now the inner one is narrower"
        );
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mount_point() {
        let machine = Machine::new("9:name=systemd:/\n4:cpu,memory:/docker/0123\n0::/\n");
        machine.put(
            "fs/cgroup/memory/memory.limit_in_bytes",
            &format!("{}\n", 512 * MIB),
        );
        machine.put(
            "fs/cgroup/memory/memory.usage_in_bytes",
            &format!("{}\n", 500 * MIB),
        );
        machine.put(
            "fs/cgroup/memory/memory.stat",
            &format!("inactive_file 7\ntotal_inactive_file {}\n", 100 * MIB),
        );
        assert_eq!(machine.free_mib(), Some(112));
        machine.put(
            "fs/cgroup/memory/memory.usage_in_bytes",
            &format!("{}\n", 900 * MIB),
        );
        assert_eq!(machine.free_mib(), Some(0), "over its limit");
    }
}
