//! Finds out whether this process is in a container, and of which runtime.

use crate::kernel::sysroot::{SysRoot, read_text};
use std::path::Path;

/// The container runtime: by the files that runtimes leave, by init's environment, by the names of
/// control groups.
pub(crate) fn container(root: &SysRoot, top: &Path) -> Option<String> {
    const MARKS: [(&str, &str); 3] = [
        ("run/.dockerenv", "docker"),
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
    ];
    for (file, name) in MARKS {
        if top.join(file).exists() {
            return Some(name.to_owned());
        }
    }
    let environment = std::fs::read(root.proc.join("1/environ")).unwrap_or_default();
    if let Some(name) = runtime_by_environment(&String::from_utf8_lossy(&environment)) {
        return Some(name);
    }
    for file in ["self/cgroup", "1/cgroup"] {
        if let Some(text) = read_text(&root.proc.join(file))
            && let Some(name) = runtime_by_cgroup(&text)
        {
            return Some(name.to_owned());
        }
    }
    None
}

/// `container=lxc` in the environment of process 1, as the container interface of systemd asks for.
fn runtime_by_environment(text: &str) -> Option<String> {
    let name = text
        .split('\0')
        .find_map(|variable| variable.strip_prefix("container="))?;
    if name.is_empty() {
        return None;
    }
    Some(name.to_owned())
}

fn runtime_by_cgroup(text: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 5] = [
        ("kubepods", "kubernetes"),
        ("libpod", "podman"),
        ("docker", "docker"),
        ("containerd", "containerd"),
        ("lxc", "lxc"),
    ];
    for (mark, name) in NAMES {
        for line in text.lines() {
            let path = line.splitn(3, ':').nth(2).unwrap_or_default();
            // A service on the host lives in /system.slice/docker.service: that is no container.
            if path
                .split('/')
                .any(|part| part.starts_with(mark) && !part.ends_with(".service"))
            {
                return Some(name);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_named() {
        let place = tempfile::tempdir().unwrap();
        let root = SysRoot {
            sys: place.path().join("sys"),
            proc: place.path().join("proc"),
        };
        let named = || container(&root, place.path());
        assert_eq!(named(), None);
        let group = "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n";
        for (file, text, name) in [
            ("proc/self/cgroup", group, "kubernetes"),
            ("proc/1/environ", "HOME=/\0container=lxc\0", "lxc"),
            (".dockerenv", "", "docker"),
        ] {
            let path = place.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            assert_eq!(named().unwrap(), name);
        }
        assert_eq!(runtime_by_cgroup("0::/system.slice/docker.service\n"), None);
        assert_eq!(runtime_by_cgroup("12:pids:/docker/0123\n"), Some("docker"));
    }
}
