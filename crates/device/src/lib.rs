//! The only crate that opens anything under test.
//!
//! | module | job |
//! |---|---|
//! | `kernel/` | asks the kernel: system calls, /proc and /sys, names of devices and errors |
//! | `failure` | why a target could not be opened or prepared, with the remedy |
//! | `programs/` | runs other programs, each with a deadline |
//! | `file/` | one file or device: its path, the descriptor that holds it, the mark of ours |
//! | `identity/` | who the target and the machine are; opens no target |
//! | `signatures/` | which formats lie in the bytes at a target's ends |
//! | `admit/` | the gate: yes, or no with every reason at once; opens for reading only |
//! | `open/` | an admission becomes an open target, its identity checked again |
//! | `own_files/` | files with names in directories of our own, and their removal |
//! | `same_blocks/` | where the blocks of a target lie on the layers below it |
//! | `counters/` | the kernel's counters to compare the figures with |
//! | `health/` | the health, counters and temperature that disks report |
//! | `write_cache/` | the volatile cache of disks, its switch, and the guard that restores it |
//! | `watch/` | the load that other programs put on the machine's disks |
//!
//! Imports point upwards in this table only.
//!
//! Two kinds of target are writable: an unlinked scratch file that this crate created, and a device
//! or file that the user released by name and that passed every check. Only the gate makes a
//! writable [`OpenTarget`]. `unsafe` is in `kernel/syscalls.rs`, for system calls that rustix does
//! not offer, and in one test of `admit/openers.rs`.

mod admit;
mod counters;
mod failure;
mod file;
mod health;
mod identity;
mod kernel;
mod open;
mod own_files;
mod programs;
mod same_blocks;
mod signatures;
mod watch;
mod write_cache;

pub use admit::{
    Admission, Consent, DatabaseContent, DatabaseDirectory, ForeignData, Intent, Overwriting,
    UnknownContent, Writer, admit, admit_requests, check_space_together, judge_output_directory,
    judge_replaced_file, scratch_bytes_free, scratch_bytes_max,
};
pub use counters::disk_tally::DiskTally;
pub use counters::processes::{ActiveProcesses, ProcessActivity};
pub use counters::pulse::Pulse;
pub use counters::snapshot::Snapshot;
pub use failure::{OpenError, TargetFailure};
pub use file::small_file::{SmallFile, SmallFileError, open_regular_file, read_small_file};
pub use file::trusted_path::{
    PathError, TrustedDirectory, TrustedPath, TrustedPlace, without_symlinks,
};
pub use health::disk_counters::{CountersOfDisk, disk_counters};
pub use health::disk_health;
pub use health::temperature::disk_temperature;
pub use identity::cgroups::memory_free_bytes;
pub use identity::files_behind::{FileBehind, files_behind};
pub use identity::host::{MachineCpuTime, host_facts};
pub use identity::probe::{ProbeError, probe};
pub use identity::reset::keeps_writes_across_reset;
pub use kernel::file_id::FileId;
pub use kernel::syscalls::is_signal_ignored;
pub use open::direct_trial::{DirectTrial, FailedRequest, TriedDirect};
pub use open::target::{AnswerOrder, AnsweredCall, OpenTarget, PartOfFile, WriteDurability};
pub use own_files::claimed_directory::ClaimedDirectory;
pub use own_files::file_tree::{
    FILES_REMOVER_VERB, FileName, FileTree, MachineCaches, NameState, StartedTree, remove_files,
    start_files_remover,
};
pub use own_files::kept_directory::{KeptDirectory, is_own_file, own_allocated_bytes};
pub use own_files::removal::{Entry, drop_cached_pages};
pub use programs::descriptor_limit::{
    raise_descriptor_limit, shell_with_limit_of_user, spawn_with_limit_of_user,
};
pub use programs::external_program::{NoAnswer, ProgramGroup, kill_programs, output_of};
pub use programs::guard_lines::{ending_signals, report_line, reported_lines};
pub use same_blocks::same_blocks;
pub use watch::disks::{
    WatchedDevice, disk_sequence, lists_block_devices, read_disks, watched_device, whole_devices,
};
pub use watch::request_trace::{RequestTrace, TraceBatch};
pub use write_cache::guard::{GuardedWriteCache, WRITE_CACHE_GUARD_VERB, write_cache_guard};
pub use write_cache::{WriteCacheError, WriteCacheSwitch, reported_write_caches};
