//! The limits that control groups set on this process's I/O: `io.max` of its group and of every
//! ancestor that is visible (cgroup v2), `blkio.throttle` of its group (v1). An unreadable file
//! counts as no limit. Does not know targets.

use crate::sysroot::{SysRoot, read_text};
use diskproof_model::io_limit::IoLimit;
use std::path::Path;

/// A limit: its key in `io.max`, its file in v1, and its place.
struct LimitKey {
    key: &'static str,
    file: &'static str,
    place: fn(&mut IoLimit) -> &mut Option<u64>,
}

const LIMITS: [LimitKey; 4] = [
    LimitKey {
        key: "riops",
        file: "blkio.throttle.read_iops_device",
        place: |limit| &mut limit.read_iops,
    },
    LimitKey {
        key: "wiops",
        file: "blkio.throttle.write_iops_device",
        place: |limit| &mut limit.write_iops,
    },
    LimitKey {
        key: "rbps",
        file: "blkio.throttle.read_bps_device",
        place: |limit| &mut limit.read_bytes_per_second,
    },
    LimitKey {
        key: "wbps",
        file: "blkio.throttle.write_bps_device",
        place: |limit| &mut limit.write_bytes_per_second,
    },
];

/// The limits on this process, those of its own group first.
pub(crate) fn io_limits(root: &SysRoot) -> Vec<IoLimit> {
    let groups = read_text(&root.proc.join("self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
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
        if let Some(known) = LIMITS.iter().find(|limit| limit.key == key) {
            *(known.place)(&mut limit) = value.parse().ok();
        }
    }
    let is_set = LIMITS
        .iter()
        .any(|known| (known.place)(&mut limit).is_some());
    is_set.then_some(limit)
}

fn throttles(mount: &Path, group: &str) -> Vec<IoLimit> {
    let folder = mount.join(group.trim_start_matches('/'));
    let mut limits: Vec<IoLimit> = Vec::new();
    for LimitKey { file, place, .. } in LIMITS {
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
}
