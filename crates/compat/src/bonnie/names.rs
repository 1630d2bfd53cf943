//! The names of bonnie++'s tests, and what a report says of a run.

/// Bytes of a chunk, unless the user sets another size.
pub(super) const CHUNK_BYTES: u32 = 8192;

pub(super) const WRITE: &str = "block-write";
pub(super) const REWRITE: &str = "rewrite";
pub(super) const READ: &str = "block-read";
pub(super) const SEEKS: &str = "seeks";

/// The settings as the report shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunLabels {
    /// The name that the user gave the machine.
    pub(super) machine: Option<String>,
    pub(super) concurrency: u32,
    /// 0: the tests of the large file do not run.
    pub(super) size_mib: u64,
    pub(super) chunk_bytes: u32,
    pub(super) seeks: u64,
    pub(super) seekers: u32,
    /// That of the plan.
    pub(super) seed: u64,
    pub(super) is_quiet: bool,
    pub(super) runs: u32,
    pub(super) csv: CsvFormat,
    /// The tests of many files, where they run.
    pub(super) files: Option<FilesLabels>,
}

/// The tests of many files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilesLabels {
    /// Files in units of 1024.
    pub(super) count: u64,
    pub(super) bytes_max: u64,
    pub(super) bytes_min: u64,
    pub(super) directories: u32,
}

/// The formats of the CSV line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CsvFormat {
    /// 27 fields.
    V103,
    /// 48 fields.
    V196,
    /// 50 fields.
    V198,
}

/// The workload of a test in one of several runs.
pub(super) fn name_in_run(test: &str, run: u32) -> String {
    match run {
        0 => test.to_owned(),
        _ => format!("{test}-{}", run + 1),
    }
}
