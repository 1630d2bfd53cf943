//! Kinds of filesystems that have no disk below them. Does not know mounts.

/// Filesystems in memory.
pub(crate) const MEMORY_FILESYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Filesystems that are windows into the kernel, with nothing stored behind them.
#[rustfmt::skip]
pub(crate) const KERNEL_FILESYSTEMS: [&str; 20] = [
    "proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "devpts", "mqueue",
    "bpf", "pstore", "configfs", "fusectl", "binfmt_misc", "selinuxfs", "efivarfs", "autofs",
    "nsfs", "rpc_pipefs", "resctrl",
];

/// Whether files on a filesystem of this kind are only memory.
pub(crate) fn is_in_memory(kind: &str) -> bool {
    MEMORY_FILESYSTEMS.contains(&kind)
}
