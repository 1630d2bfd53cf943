//! The names of the sequential workloads that the report of a capacity shows and `load` measures
//! beside its searches.

/// The name of the workload that reads 1 MiB at a time in order.
pub const SEQUENTIAL_READ: &str = "sequential-read";
/// The name of the workload that writes 1 MiB at a time in order.
pub const SEQUENTIAL_WRITE: &str = "sequential-write";
/// The name of the workload that reads and writes 1 MiB at a time in order, half of each.
pub const SEQUENTIAL_MIXED: &str = "sequential-mixed";
/// The name of the workload that reads 4 KiB in order.
pub const SEQUENTIAL_READ_PAGES: &str = "sequential-read-4k";
/// The name of the workload that writes 4 KiB in order.
pub const SEQUENTIAL_WRITE_PAGES: &str = "sequential-write-4k";
