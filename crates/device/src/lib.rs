//! The only crate that opens anything under test: probe (read-only), admit (every reason for a
//! refusal at once), open (identity re-checked), the kernel's counters to compare the figures with,
//! and the health that disks report.
//!
//! Two kinds of target are writable: an unlinked scratch file that this crate created, and a device
//! or file that the user released by name and that passed every check. Only the gate makes a
//! writable [`OpenTarget`]. `unsafe` is in `syscalls.rs` only: system calls that rustix lacks.

mod admit;
mod cgroups;
mod claimed;
mod counters;
mod descriptor_limit;
mod direct_io;
mod direct_trial;
mod disk;
mod disk_counters;
mod disk_tally;
#[cfg(test)]
mod exchange_tests;
mod exits;
mod exports;
mod extents;
mod external_program;
mod failure;
#[cfg(test)]
mod fake_sysfs;
mod file_id;
mod file_tree;
mod files_behind;
mod health;
mod held;
mod host;
mod inspect;
mod kept;
mod layers;
mod link;
mod live;
mod mounts;
mod namespaces;
mod naming;
mod open;
mod own_files;
mod own_mark;
mod probe;
mod processes;
mod released;
mod reopen;
mod request_trace;
mod same_blocks;
mod scratch;
mod signatures;
mod small_file;
mod steps;
mod syscalls;
mod sysroot;
mod temperature;
mod tree;
mod trusted_path;
mod wipe;
mod write_cache;
mod write_cache_guard;

pub use admit::{
    Admission, Consent, Intent, Overwriting, READ_BYTES_MIN, UnknownContent, admit, admit_requests,
    check_space_together, scratch_bytes_max,
};
pub use cgroups::memory_free_bytes;
pub use claimed::ClaimedDirectory;
pub use counters::{Pulse, Snapshot};
pub use descriptor_limit::{
    raise_descriptor_limit, shell_with_limit_of_user, spawn_with_limit_of_user,
};
pub use direct_trial::{DirectTrial, FailedRequest, TriedDirect};
pub use disk_counters::{CountersOfDisk, disk_counters};
pub use disk_tally::DiskTally;
pub use external_program::{
    NoAnswer, ProgramGroup, ending_signals, kill_programs, output_of, report_line, reported_lines,
};
pub use failure::OpenError;
pub use file_id::FileId;
pub use file_tree::{
    FILES_REMOVER_VERB, FileName, FileTree, MachineCaches, NameState, StartedTree, remove_files,
    start_files_remover,
};
pub use files_behind::{FileBehind, files_behind};
pub use health::disk_health;
pub use host::{MachineCpuTime, host_facts};
pub use kept::{KeptDirectory, is_own_file, own_allocated_bytes};
pub use live::{WatchedDevice, read_disks, watched_device, whole_devices};
pub use open::{OpenTarget, PartOfFile, WriteDurability};
pub use probe::{ProbeError, probe};
pub use processes::{ActiveProcesses, ProcessActivity};
pub use request_trace::{RequestTrace, TraceBatch};
pub use same_blocks::same_blocks;
pub use small_file::{SmallFile, SmallFileError, open_regular_file, read_small_file};
pub use syscalls::is_signal_ignored;
pub use temperature::disk_temperature;
pub use tree::{Entry, drop_cached_pages};
pub use trusted_path::{PathError, TrustedDirectory, TrustedPath, TrustedPlace, without_symlinks};
pub use write_cache::{WriteCacheError, WriteCacheSwitch, reported_write_caches};
pub use write_cache_guard::{GuardedWriteCache, WRITE_CACHE_GUARD_VERB, write_cache_guard};
