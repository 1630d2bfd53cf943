//! The only crate that opens anything under test: probe (read-only), admit (every reason for a
//! refusal at once), open (identity re-checked), the kernel's counters to compare the figures
//! with, and the health that disks report. It knows no workloads, statistics or printing.
//!
//! Two kinds of target are writable: an unlinked scratch file that this crate created, and a device
//! or file that the user released by name and that passed every check. Only the gate makes a
//! writable [`OpenTarget`].

mod admit;
mod aligned;
mod claimed;
mod counters;
mod descriptors;
mod disk;
mod errno;
#[cfg(test)]
mod exchange_tests;
mod exits;
mod extents;
mod external_program;
mod failure;
#[cfg(test)]
mod fake_sysfs;
mod fiemap;
mod file_flags;
mod file_names;
mod file_tree;
mod files_remover;
mod filesystems;
mod health;
mod held;
mod helper_process;
mod host;
mod inspect;
mod io_limits;
mod kept;
mod layers;
mod lease;
mod link;
mod live;
mod loop_file;
mod memory;
mod mounts;
mod naming;
mod open;
mod own_files;
mod own_mark;
mod probe;
mod processes;
mod released;
mod reopen;
mod same_blocks;
mod scratch;
mod signals;
mod signatures;
mod steps;
mod stolen;
mod sysroot;
mod tree;
mod wipe;
mod write_back;
mod write_cache;

pub use admit::{
    Admission, Consent, Intent, Overwriting, READ_BYTES_MIN, UnknownContent, admit, admit_requests,
    scratch_bytes_max,
};
pub use claimed::ClaimedDirectory;
pub use counters::{Pulse, Snapshot};
pub use external_program::{NoAnswer, ProgramGroup, kill_programs, output_of};
pub use failure::OpenError;
pub use file_names::{FileName, NameState};
pub use file_tree::{FileTree, StartedTree};
pub use files_remover::{FILES_REMOVER_VERB, remove_files, start_files_remover};
pub use health::disk_health;
pub use helper_process::{ending_signals, report_line, reported_lines};
pub use host::host_facts;
pub use kept::{KeptDirectory, is_own_file};
pub use live::{
    RequestTrace, TraceBatch, WatchedDevice, read_disks, watched_device, whole_devices,
};
pub use memory::memory_free_bytes;
pub use open::{OpenTarget, TargetAccess, WriteDurability};
pub use probe::{ProbeError, probe};
pub use processes::{ActiveProcesses, ProcessActivity};
pub use same_blocks::same_blocks;
pub use stolen::MachineCpuTime;
pub use tree::{Entry, drop_cached_pages};
pub use write_cache::{
    GuardedWriteCache, WRITE_CACHE_GUARD_VERB, WriteCacheError, WriteCacheSwitch,
    reported_write_caches, write_cache_guard,
};
