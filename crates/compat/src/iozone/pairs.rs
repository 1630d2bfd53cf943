//! The sizes of files and records, and the tests on each pair of them.

const KIB: u64 = 1024;
/// Above this size of a file, -a omits records of less than 64 KiB.
const LARGE_FILE_KIB: u64 = 16_384;
const LARGE_RECORD_KIB: u64 = 64;

/// A figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
    Backward,
    Record,
    Stride,
}

impl Column {
    /// In the order of the table.
    pub(super) const ALL: [Self; 9] = [
        Self::Write,
        Self::Rewrite,
        Self::Read,
        Self::Reread,
        Self::RandomRead,
        Self::RandomWrite,
        Self::Backward,
        Self::Record,
        Self::Stride,
    ];

    /// The number of its test, whether it writes, its name and its title.
    fn facts(self) -> (u32, bool, &'static str, &'static str) {
        match self {
            Self::Write => (0, true, "write", "Writer"),
            Self::Rewrite => (0, true, "rewrite", "Re-writer"),
            Self::Read => (1, false, "read", "Reader"),
            Self::Reread => (1, false, "reread", "Re-Reader"),
            Self::RandomRead => (2, false, "random-read", "Random read"),
            Self::RandomWrite => (2, true, "random-write", "Random write"),
            Self::Backward => (3, false, "backward-read", "Backward read"),
            Self::Record => (4, true, "record-rewrite", "Record rewrite"),
            Self::Stride => (5, false, "stride-read", "Stride read"),
        }
    }

    /// The number of the test, as of -i.
    pub(super) fn test(self) -> u32 {
        self.facts().0
    }

    /// Whether it writes.
    pub(super) fn writes(self) -> bool {
        self.facts().1
    }

    /// In the names of workloads.
    pub(super) fn name(self) -> &'static str {
        self.facts().2
    }

    /// The title of its matrix for Excel.
    pub(super) fn title(self) -> &'static str {
        self.facts().3
    }

    /// Whether it repeats the one before it.
    pub(super) fn is_repeat(self) -> bool {
        matches!(self, Self::Rewrite | Self::Reread)
    }

    /// Characters of its field in the table.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Record | Self::Stride => 11,
            _ => 10,
        }
    }
}

/// A file size and a record size, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizePair {
    pub(super) file_kib: u64,
    pub(super) record_kib: u64,
}

impl SizePair {
    /// Bytes of the records that fit into the file.
    pub(super) fn bytes(self) -> u64 {
        self.file_kib / self.record_kib * self.record_kib * KIB
    }
}

/// The sizes of a command line, in KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) files: Vec<u64>,
    pub(super) records: Vec<u64>,
    /// Whether large files skip small records.
    pub(super) skips_small: bool,
}

impl Sizes {
    /// All pairs, by file and record.
    pub(super) fn pairs(&self) -> Vec<SizePair> {
        let mut pairs = Vec::new();
        for &file_kib in &self.files {
            let is_large = self.skips_small && file_kib > LARGE_FILE_KIB;
            let least_kib = if is_large { LARGE_RECORD_KIB } else { 0 };
            let records = self
                .records
                .iter()
                .filter(|kib| (least_kib..=file_kib).contains(kib));
            pairs.extend(records.map(|&record_kib| SizePair {
                file_kib,
                record_kib,
            }));
        }
        pairs
    }
}

/// Doubling sizes from `least` to `most`.
pub(super) fn doubling(least: u64, most: u64) -> Vec<u64> {
    let sizes = std::iter::successors(Some(least), |kib| Some(kib * 2));
    sizes.take_while(|kib| *kib <= most).collect()
}
