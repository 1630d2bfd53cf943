//! The volatile write cache of disks, by their own report, and its switch: hdparm for ATA disks,
//! nvme for NVMe, sdparm for SCSI. A guard process restores the state that was found, however this
//! program ends. Judges nothing.

mod guard;
mod switch;
#[cfg(test)]
mod tests;
mod tool;

pub use guard::{GuardedWriteCache, WRITE_CACHE_GUARD_VERB, write_cache_guard};
pub use switch::{WriteCacheError, WriteCacheSwitch, reported_write_caches};
