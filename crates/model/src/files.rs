//! Many small files: what a run plans to do with them, what the engine measured, and the parts that
//! the record shares.

use crate::measurement::{ByteCount, CpuTime, OpMeasurement, StopReason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The known name of the directory that holds the files of a run.
pub const FILES_DIRECTORY: &str = ".diskproof-files";
/// Smallest share of a disk's space that a file takes on common filesystems.
const BLOCK_BYTES: u64 = 4096;
/// An inode with its name, rounded up: ext4 has 256 bytes and xfs 512 for the inode alone.
const INODE_BYTES: u64 = 1024;

/// The most files of a set: states and numbers of more would take hundreds of megabytes of memory.
pub const FILE_COUNT_MAX: u64 = 10_000_000;
/// The largest file that the command line takes: larger ones measure the disk, as `check` and `run`
/// do.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most directories. Each takes a descriptor, of which a process may usually have 1024 or more:
/// a run raises its limit as far as the system lets it.
pub const DIRECTORIES_MAX: u32 = 10_000;
/// The most threads.
pub const FILE_THREADS_MAX: u32 = 64;
/// The most rounds.
pub const FILE_ROUNDS_MAX: u32 = 100;

/// The operations on files that a run measures, and the files that it makes for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesPlan {
    /// Files of each set.
    pub count: u64,
    /// Smallest size of a file.
    pub file_bytes_min: u64,
    /// Largest size of a file; sizes are evenly distributed between both.
    pub file_bytes_max: u64,
    /// Directories over which the files are spread.
    pub directories: u32,
    /// Threads that share the files of a step.
    pub threads: u32,
    /// The part that is made durable before an operation counts.
    pub sync: FileSync,
    /// The state of the kernel's caches before files are looked at and read.
    pub caches: FileCaches,
    /// The orders, each with a set of files of its own.
    pub orders: Vec<FileOrder>,
    /// Repetitions of all steps.
    pub rounds: u32,
    /// The longest that all steps may take together, in nanoseconds. What a step leaves undone when
    /// its share of the time is over is not measured.
    pub time_ns: u64,
}

impl FilesPlan {
    /// The steps of a round, in order.
    pub fn steps(&self) -> impl Iterator<Item = FileStep> + '_ {
        self.orders.iter().flat_map(|order| {
            FileOperation::ALL.map(|operation| FileStep {
                operation,
                order: *order,
            })
        })
    }

    /// The step of this name.
    pub fn step(&self, name: &str) -> Option<FileStep> {
        self.steps().find(|step| step.name() == name)
    }

    /// Bytes that a set of files takes on the disk, about.
    pub fn set_bytes(&self) -> u64 {
        let size = (self.file_bytes_min + self.file_bytes_max).div_ceil(2);
        let on_disk = size.next_multiple_of(BLOCK_BYTES) + INODE_BYTES;
        self.count.saturating_mul(on_disk)
    }

    /// Bytes of content that the whole run writes, about.
    pub fn write_bytes(&self) -> u64 {
        let size = (self.file_bytes_min + self.file_bytes_max).div_ceil(2);
        let sets = u64::from(self.rounds) * self.orders.len() as u64;
        self.count.saturating_mul(size).saturating_mul(sets)
    }
}

/// An operation on one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileOperation {
    /// A new file is opened, written and closed.
    Create,
    /// Looks up size and times by the name.
    Stat,
    /// Opens the file, reads it to its end and closes it.
    Read,
    /// Gives it another name in the same directory.
    Rename,
    /// Removes it.
    Delete,
}

impl FileOperation {
    /// Every operation, in the order in which they are measured.
    pub const ALL: [Self; 5] = [
        Self::Create,
        Self::Stat,
        Self::Read,
        Self::Rename,
        Self::Delete,
    ];

    /// The word of records and the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Read => "read",
            Self::Rename => "rename",
            Self::Delete => "delete",
        }
    }
}

/// The order in which files are created and visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileOrder {
    /// The files by name, in ascending order.
    Sequential,
    /// Random names, visited in another random order for each operation.
    Random,
}

impl FileOrder {
    /// The word of records and the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }
}

/// The part that is made durable before an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileSync {
    /// Nothing is synced.
    None,
    /// The content of a new file, by fsync.
    File,
    /// The names, by an fsync of the directory after each create, rename and delete.
    Directory,
    /// Both the file and its directory are synced.
    Both,
}

impl FileSync {
    /// True if new files are synced.
    pub fn syncs_files(self) -> bool {
        matches!(self, Self::File | Self::Both)
    }

    /// True if directories are synced.
    pub fn syncs_directories(self) -> bool {
        matches!(self, Self::Directory | Self::Both)
    }
}

/// The treatment of the kernel's caches by a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileCaches {
    /// The content of its own files is dropped before they are read. Names and inodes stay.
    DropOwnPages,
    /// The caches of the whole machine are dropped before files are looked at and read.
    DropAll,
}

/// An operation on all files of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileStep {
    /// The operation on every file.
    pub operation: FileOperation,
    /// The order in which the files come.
    pub order: FileOrder,
}

impl FileStep {
    /// The name in records and tables, such as `create-random`.
    pub fn name(self) -> String {
        format!("{}-{}", self.operation.as_str(), self.order.as_str())
    }
}

/// A round of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRound {
    /// Nanoseconds from the start of the run to that of the round.
    pub start_ns: u64,
    /// Nanoseconds from the start of the round to its end.
    pub wall_ns: u64,
    /// Operations that succeeded in it.
    pub count: u64,
}

/// The time that operations spent in fsync, all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FileSyncTime {
    /// Nanoseconds of syncs of files.
    pub file_sync_ns: u64,
    /// Nanoseconds of syncs of directories.
    pub directory_sync_ns: u64,
}

impl FileSyncTime {
    /// Nanoseconds that all syncs took, of files and directories.
    pub fn total_ns(self) -> u64 {
        self.file_sync_ns.saturating_add(self.directory_sync_ns)
    }
}

impl std::ops::AddAssign for FileSyncTime {
    fn add_assign(&mut self, other: Self) {
        self.file_sync_ns += other.file_sync_ns;
        self.directory_sync_ns += other.directory_sync_ns;
    }
}

/// The caches that could have answered what was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CacheDrop {
    /// State of the page cache for the content of the files before each `read`.
    pub pages: CacheState,
    /// State of the caches of names and inodes before each `stat` and `read`.
    pub names: CacheState,
    /// The reason why dropping failed; absent where it was not tried or succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The state of a cache before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The caches were not emptied: memory may have answered.
    #[default]
    Kept,
    /// Emptied: the disk had to answer.
    Dropped,
}

/// The figures of all steps with files, before anything is concluded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FilesMeasurement {
    /// The steps that began, in order.
    pub steps: Vec<FileStepMeasurement>,
    /// The result of dropping caches.
    pub caches: CacheDrop,
    /// Files of an earlier run that were found and removed before the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftover_files: Option<u64>,
    /// Times of 2 s or longer without an answer of the disk; the 100 longest, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<FilesStall>,
}

/// At most so many stalls of a run are kept. Chosen: a record stays small.
const FILES_STALLS_MAX: usize = 100;

impl FilesMeasurement {
    /// Adds a time without an answer, the longest first. The shortest goes where there are too
    /// many.
    pub fn add_stall(&mut self, stall: FilesStall) {
        let index = self
            .stalls
            .partition_point(|other| other.lasted_ns >= stall.lasted_ns);
        self.stalls.insert(index, stall);
        self.stalls.truncate(FILES_STALLS_MAX);
    }
}

/// A time in which the disk answered nothing, and no operation on a file ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesStall {
    /// The step that was under way, such as `create-random`, or what is done between two steps,
    /// such as `write-back`.
    pub around: String,
    /// Nanoseconds from the start of the run to the last answer before it.
    pub since_ns: u64,
    /// Nanoseconds without an answer, to 50 ms.
    pub lasted_ns: u64,
}

/// One step, all rounds together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileStepMeasurement {
    /// The step that these figures belong to.
    pub step: FileStep,
    /// Measured time in nanoseconds.
    pub wall_ns: u64,
    /// CPU time of this program meanwhile.
    pub cpu: CpuTime,
    /// Operations, latencies and errors. The series counts measured time only.
    pub op: OpMeasurement,
    /// The part of the latencies that is fsync.
    pub sync: FileSyncTime,
    /// The rounds in their order; each repeats the step on new files.
    pub rounds: Vec<FileRound>,
    /// Bytes that the disks below moved meanwhile; `None` where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<ByteCount>,
    /// The reason why its last round ended.
    pub stopped: StopReason,
}
