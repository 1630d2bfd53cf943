//! How much memory this process may take before the machine swaps, and within the limits of its
//! control groups. Does not know what it is for.

use crate::sysroot::{SysRoot, read_number, read_text};
use std::path::Path;

/// Bytes of memory that are free, or cache that can be dropped: of the machine (`MemAvailable` in
/// proc_meminfo(5)), and of what each control group above this process may take. `None` where
/// nothing tells.
pub fn memory_free_bytes() -> Option<u64> {
    free_in(&SysRoot::default())
}

/// Where a version of control groups keeps its figures.
struct MemoryFigures {
    /// Below the mount points of all.
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Prefix of the lines of memory.stat that count the groups below as well.
    prefix: &'static str,
}

/// Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
const UNIFIED: MemoryFigures = MemoryFigures {
    mount: "fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    prefix: "",
};
const LEGACY: MemoryFigures = MemoryFigures {
    mount: "fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    prefix: "total_",
};

fn free_in(root: &SysRoot) -> Option<u64> {
    let meminfo = read_text(&root.proc.join("meminfo")).unwrap_or_default();
    let groups = read_text(&root.proc.join("self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let figures = match controllers {
            "" => UNIFIED,
            listed if listed.split(',').any(|controller| controller == "memory") => LEGACY,
            _ => return None,
        };
        free_in_group(&root.sys.join(figures.mount), path, &figures)
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
fn free_in_group(mount: &Path, path: &str, figures: &MemoryFigures) -> Option<u64> {
    let own = mount.join(path.trim_start_matches('/'));
    let above = own.ancestors().take_while(|at| at.starts_with(mount));
    above.filter_map(|at| left_in(at, figures)).min()
}

fn left_in(group: &Path, figures: &MemoryFigures) -> Option<u64> {
    // "max" is no limit.
    let (limit, used): (u64, u64) = (
        read_number(&group.join(figures.limit))?,
        read_number(&group.join(figures.used))?,
    );
    let stat = read_text(&group.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| {
        let is_it = |line: &&str| {
            line.strip_prefix(figures.prefix)
                .and_then(|line| line.strip_prefix(name))
                .is_some_and(|l| l.starts_with(' '))
        };
        stat.lines()
            .find(is_it)
            .and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or(0u64)
    };
    let cache = of("inactive_file").saturating_add(of("active_file"));
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
