//! `diskproof files`: how fast a filesystem creates, looks up, reads, renames and deletes many
//! small files.

use crate::failure::{Exit, Failure};
use crate::flags::{Choice, MeasuringFlags, choices, one_of};
use crate::session::{MeasuringJob, measure};
use crate::workload::parse_time;
use diskproof_model::files::{
    DIRECTORIES_MAX, FILE_BYTES_MAX, FILE_COUNT_MAX, FILE_ROUNDS_MAX, FILE_THREADS_MAX, FileCaches,
    FileOrder, FileSync, FilesPlan,
};
use diskproof_model::plan::{Plan, Task};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_bytes, parse_size};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// bonnie++'s default, `-n 16`.
const DEFAULT_COUNT: u64 = 16 << 10;
/// A page, which is a block of most filesystems: all files have this size by default.
const DEFAULT_FILE_BYTES: RangeInclusive<u64> = 4096..=4096;
/// Three rounds are the fewest that show how much a rate varies. With five the interval is half as
/// wide: Student's t divided by the root of their number falls from 2.5 to 1.2.
const DEFAULT_ROUNDS: u32 = 5;
/// All steps together take less than a minute, unless `--time` says otherwise.
const DEFAULT_TIME_NS: u64 = 50_000_000_000;

const HELP: &str = "\
Each round creates a set of files, then stats, reads, renames and deletes them:
once in name order, and once with random names in random order. A rate counts
whole operations: create opens, writes and closes a file.

Without --fsync nothing is durable when an operation returns, as with cp or tar:
the rates are those of the kernel's caches and the filesystem's journal.

File content is dropped from the page cache before it is read. Names and inodes
stay cached, so stat and opening a file may be answered from memory.
--drop-caches empties all caches of the machine, which slows other programs for
a while.

files works in the directory .diskproof-files inside DIR and removes it at the
end. After kill -9 it stays, and the next 'diskproof files' removes it.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or operations failed, 5 a threshold is undecided, 130 Ctrl-C.

Examples:
  diskproof files /data                     # 16,384 files of 4 KiB, five rounds
  diskproof files /data --fsync both        # durable files and names
  diskproof files /data -n 100000 --file-size 1k-64k --directories 100
  diskproof files /data --threads 16        # 16 threads share the files
  sudo diskproof files /data --drop-caches  # stat and read from the disk
  diskproof files /data --expect 'create-random.iops>=5000'";

/// Measure how fast many small files are created, looked up, read, renamed and deleted
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct FilesFlags {
    /// Directory in which the files are created
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// Files of each set
    #[arg(short = 'n', long, value_name = "N", default_value_t = DEFAULT_COUNT,
        value_parser = clap::value_parser!(u64).range(1..=FILE_COUNT_MAX))]
    pub count: u64,
    /// Size of each file, or a range such as 1k-64k [default: 4k]
    #[arg(long, value_name = "BYTES", value_parser = parse_file_sizes)]
    pub file_size: Option<RangeInclusive<u64>>,
    /// Directories over which the files are spread
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(DIRECTORIES_MAX)))]
    pub directories: u32,
    /// Threads that share the files, 1 to 64
    #[arg(long, visible_alias = "jobs", value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(FILE_THREADS_MAX)))]
    pub threads: u32,
    /// Order of the files
    #[arg(long, value_name = "ORDER", default_value = "both", value_parser = one_of(ORDERS))]
    pub order: &'static [FileOrder],
    /// What each operation makes durable: the new file, the names in the directory
    #[arg(long, value_name = "WHAT", default_value = "none", value_parser = one_of(SYNCS))]
    pub fsync: FileSync,
    /// Number of rounds; fewer than 3 do not show the variation of the rates
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ROUNDS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(FILE_ROUNDS_MAX)))]
    pub rounds: u32,
    /// Time limit for all steps together, at least 1s [default: 50s]
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub time: Option<u64>,
    /// Empty all caches of the machine before stat and read; needs root and slows other programs
    #[arg(long)]
    pub drop_caches: bool,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Reads the smallest and the largest size of the files, in bytes.
fn parse_file_sizes(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (min, max) = match text.split_once('-') {
        Some((min, max)) => (parse_file_size(min)?, parse_file_size(max)?),
        None => {
            let size = parse_file_size(text)?;
            (size, size)
        }
    };
    if min > max {
        return Err(format!("the range {text} ends before it starts"));
    }
    if max > FILE_BYTES_MAX {
        return Err(format!(
            "a file has at most {}; 'diskproof check' and 'diskproof run' measure larger ones",
            format_bytes(FILE_BYTES_MAX)
        ));
    }
    Ok(min..=max)
}

fn parse_file_size(text: &str) -> Result<u64, String> {
    match text.trim() {
        // A size of zero needs no unit.
        "0" => Ok(0),
        size => parse_size(size).map_err(|error| error.to_string()),
    }
}

/// The values of `--order`. Each order has sets of files of its own.
const ORDERS: &[Choice<&[FileOrder]>] = choices! {
    "sequential" &[FileOrder::Sequential], "By ascending names";
    "random" &[FileOrder::Random], "Random names in random order";
    "both" &[FileOrder::Sequential, FileOrder::Random], "One after the other";
};

/// The values of `--fsync`.
const SYNCS: &[Choice<FileSync>] = choices! {
    "none" FileSync::None, "Nothing";
    "file" FileSync::File, "Each new file";
    "directory" FileSync::Directory, "The directory after each create, rename and delete";
    "both" FileSync::Both, "Both";
};

/// Measures the operations in rounds, and removes the files.
pub fn run(files: &FilesFlags) -> anyhow::Result<Exit> {
    let identity = files.measuring.probe(&files.directory)?;
    let plan = files_plan(files, &identity)?;
    measure(MeasuringJob::new(plan, vec![identity], &files.measuring))?.exit()
}

/// The plan of `files` for this directory. Fails for flags that this verb cannot follow.
pub fn files_plan(files: &FilesFlags, identity: &TargetIdentity) -> Result<Plan, Failure> {
    let measuring = &files.measuring;
    let time_ns = files.time.unwrap_or(DEFAULT_TIME_NS);
    Failure::check_time(time_ns)?;
    if let Some(problem) = flag_problem(files) {
        return Err(Failure::Usage(problem.to_owned()));
    }
    let sizes = files.file_size.clone().unwrap_or(DEFAULT_FILE_BYTES);
    Ok(Plan {
        tasks: vec![Task::Files(FilesPlan {
            count: files.count,
            file_bytes_min: *sizes.start(),
            file_bytes_max: *sizes.end(),
            directories: files.directories,
            threads: files.threads,
            sync: files.fsync,
            caches: if files.drop_caches {
                FileCaches::DropAll
            } else {
                FileCaches::DropOwnPages
            },
            orders: files.order.to_vec(),
            rounds: files.rounds,
            time_ns,
        })],
        ..measuring.plan("files", std::slice::from_ref(identity))
    })
}

/// The sentence about a flag of all verbs that cannot be followed here, and what to use instead.
fn flag_problem(files: &FilesFlags) -> Option<&'static str> {
    if files.measuring.size.is_some() {
        return Some("--size does not apply; use --file-size and --count");
    }
    if files.measuring.engine.is_some() {
        return Some("--engine does not apply: files always uses plain system calls");
    }
    if files.drop_caches && !rustix::process::geteuid().is_root() {
        return Some(
            "--drop-caches: only root may empty the caches of the machine. Run as root, or omit it",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_files_are_a_size_or_a_range() {
        assert_eq!(parse_file_sizes("0"), Ok(0..=0));
        assert_eq!(parse_file_sizes("4k"), Ok(4096..=4096));
        assert_eq!(parse_file_sizes("0-64k"), Ok(0..=65536));
        assert_eq!(parse_file_sizes("1k - 1M"), Ok(1024..=1 << 20));
        for wrong in ["", "x", "4k-", "8k-4k", "1G", "-4k"] {
            assert!(parse_file_sizes(wrong).is_err(), "{wrong}");
        }
    }

    fn parsed(flags: &[&str]) -> FilesFlags {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            files: FilesFlags,
        }
        let argv = [&["files"], flags].concat();
        <Program as clap::Parser>::try_parse_from(argv)
            .unwrap()
            .files
    }

    #[test]
    fn words_name_what_is_synced_and_in_which_order() {
        for (word, file, directory) in [
            ("none", false, false),
            ("file", true, false),
            ("directory", false, true),
            ("both", true, true),
        ] {
            let sync = parsed(&["--fsync", word]).fsync;
            assert_eq!(
                (sync.syncs_files(), sync.syncs_directories()),
                (file, directory)
            );
        }
        for (word, orders) in [
            ("sequential", &[FileOrder::Sequential][..]),
            ("random", &[FileOrder::Random]),
            ("both", &[FileOrder::Sequential, FileOrder::Random]),
        ] {
            assert_eq!(parsed(&["--order", word]).order, orders);
        }
    }

    #[test]
    fn help_states_the_time_that_applies() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            files: FilesFlags,
        }
        let help = <Program as clap::CommandFactory>::command()
            .render_long_help()
            .to_string();
        let seconds = DEFAULT_TIME_NS / 1_000_000_000;
        assert!(help.contains(&format!("[default: {seconds}s]")), "{help}");
    }

    #[test]
    fn flags_of_a_disk_are_refused_for_files() {
        assert!(flag_problem(&parsed(&[])).is_none());
        assert!(flag_problem(&parsed(&["--engine", "psync"])).is_some());
        assert!(flag_problem(&parsed(&["--size", "1M"])).is_some());
    }
}
