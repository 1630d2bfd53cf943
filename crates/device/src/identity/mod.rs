//! Identifies the target and the machine, from stat, mountinfo and sysfs: the target itself, the
//! layers below it down to the disks, and their links. Opens no target.

pub(crate) mod cgroups;
pub(crate) mod disk;
pub(crate) mod exports;
pub(crate) mod files_behind;
pub(crate) mod host;
pub(crate) mod layers;
pub(crate) mod link;
pub(crate) mod probe;
pub(crate) mod reset;
