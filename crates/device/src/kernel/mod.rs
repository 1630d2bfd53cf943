//! Asks the kernel, without opening a target: by system calls, /proc and /sys, and by the names
//! that it gives to devices, files and errors. Passes the answers on as they are.

pub(crate) mod container;
#[cfg(test)]
pub(crate) mod fake_sysfs;
pub(crate) mod file_id;
pub(crate) mod mounts;
pub(crate) mod namespaces;
pub(crate) mod naming;
pub(crate) mod steps;
pub(crate) mod stopped_filesystem;
pub(crate) mod syscalls;
pub(crate) mod sysroot;
