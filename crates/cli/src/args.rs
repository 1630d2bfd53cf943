//! The command line: what may be written, and what each word means. Checks form only; whether it
//! makes sense for a target is the commands' business.

use crate::commands::compare::{self, Compare};
use crate::commands::curve::Curve;
use crate::commands::export::Export;
use crate::commands::history::{self, History};
use crate::commands::show::Show;
use crate::consent::GivingUp;
use crate::health::HealthFlags;
use crate::job_file::JobFileFlags;
use crate::saved::Keeping;
use crate::workload::WorkloadFlags;
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use diskproof_analysis::expect::Expected;
use diskproof_model::plan::{EngineChoice, EngineKind};
use diskproof_model::units::{parse_duration, parse_size};
use std::path::PathBuf;
use std::str::FromStr;

/// Measures what a disk really does for a database, proves the figure, says what it means and what
/// to do about it.
#[derive(Debug, Parser)]
#[command(
    name = "diskproof",
    version,
    max_term_width = 80,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Measure everything that matters about a disk in about a minute
    #[command(after_help = CHECK_HELP)]
    Check(Box<Check>),
    /// Run any workload, from flags in fio's words, from a plan file or from a job file of fio
    #[command(after_help = RUN_HELP)]
    Run(Box<Run>),
    /// Show transfer rate and access time across the surface of a disk; find slow and unreadable
    /// blocks
    #[command(after_help = CURVE_HELP)]
    Curve(Box<Curve>),
    /// Show what a disk is: identity, layers, queue settings, link, write cache, health; measures
    /// nothing
    Info(Info),
    /// Print a saved run again, exactly as it was printed then, or a record from a file
    Show(Show),
    /// Hold runs against each other: better, worse, the same, undecided, or not comparable, metric
    /// by metric
    #[command(after_help = compare::HELP)]
    Compare(Box<Compare>),
    /// List the saved runs; label, import, delete or prune them
    #[command(after_help = history::HELP)]
    History(Box<History>),
    /// Write a saved run to files
    Export(Export),
}

const CHECK_HELP: &str = "\
A directory is measured through a scratch file without a name inside it, which vanishes even on \
                          kill -9. A regular file or a block device is only read, unless it is \
                          given up: a file with --overwrite, a device with --destroy and its \
                          serial, model or kernel name; then its content is lost. Whatever is in \
                          use or says that it holds something is refused all the same. Sizes: 8k \
                          = 8 KiB, 8kB = 8000 bytes, 4GiB. Durations: 500ms, 30s, 2m.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety, 4 the run failed or \
                          the disk gave errors, 130 Ctrl-C.

Examples:
  diskproof check                                   the disk under the current directory
  diskproof check /var/lib/postgresql --quick       the same in 20 s
  sudo diskproof check /dev/sdb                     reads only
  sudo diskproof check /dev/sdb --destroy S3Z9NB0K  writes too: all on it is lost
  diskproof check . --expect 'commit-fdatasync.p99<=5ms' --json -o today.json";

const RUN_HELP: &str = "\
A directory is measured through a scratch file without a name inside it (--size, default 1GiB), \
     filled before the first workload that needs content. A regular file or a block device is \
     only read, unless it is given up with --overwrite or --destroy NAME. Several targets are \
     measured at the same time. Without --precision, --time, --bytes and --ops a workload ends \
     once its rate is known to 2 %, or after 30 s; with --precision alone also after 30 s. A rate \
     counts as known after 7.5 s at the earliest (with less than 30 s of --time after a quarter \
     of it), since what disturbs a disk now and then takes that long to show.

A plan file holds workloads that run in order, or at the same time (together = true), with the \
     flags' names as keys: see docs/plans. Flags beside it replace what stands at its top \
     (targets, --seed, --size, --note) and the engine. A job file of fio (*.fio, *.job) is \
     translated into a plan: what differs is told, what cannot be carried over is refused with \
     its line, see docs/job-files.md. Sizes: 8k = 8 KiB, 8kB = 8000 bytes, 4GiB. Durations: \
     500ms, 30s, 2m.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety, 4 the run failed or \
     the disk gave errors, 130 Ctrl-C.

Examples:
  diskproof run                                     random 8 KiB reads
  diskproof run /data --rw randrw --depth 32        half reads, half writes
  diskproof run /data --rw write --bs 1M --depth 8  sequential writes
  diskproof run /data --rw write --fdatasync 1      commits
  diskproof run /data --depth 64 --rate 2000        latency at a load
  sudo diskproof run /dev/sdb --span 0-10%          short stroke
  sudo diskproof run /dev/sdb /dev/sdc --rw read --bs 1M --depth 8
  diskproof run docs/plans/postgresql-cookbook.toml /data
  diskproof run job.fio --dry-run                   what it becomes here";

const CURVE_HELP: &str = "\
A block device is read raw, without its filesystem; nothing is written to it without --write and \
                          --destroy NAME. A regular file is read; in a directory a scratch file \
                          is made (--size, default 1GiB), and positions are then those in the \
                          file. Each point is a sample of about 0.2 s inside a stream, so that no \
                          seek is in the rate; at most a fiftieth of a large disk is read, and \
                          the result says how much. Sizes: 8k = 8 KiB, 8kB = 8000 bytes, 4GiB.

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety, 4 the run failed or \
                          the disk gave errors, 130 Ctrl-C.

Examples:
  sudo diskproof curve /dev/sdb                     200 points, access times, burst
  sudo diskproof curve /dev/sdb --full -o full.json everything is read
  sudo diskproof curve /dev/sdb --span 0-50% --short-stroke
  sudo diskproof curve /dev/sdb --scan -o scan.json every block; Ctrl-C, then:
  sudo diskproof curve /dev/sdb --scan --resume scan.json
  sudo diskproof curve /dev/sdb --spec rpm=7200,seek=11ms,rate=92MB/s
  sudo diskproof curve /dev/sdb --expect 'curve.min>=80MB/s' --expect 'access.mean<=15ms'";

/// Flags of every verb that measures.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = None::<&str>)]
pub struct Measuring {
    /// Save the result; the format follows the extension: .json, .html, .csv, .svg (x.svg for all
    /// charts on a sheet, x-%.svg for a file each), .gnuplot, .hlog, .prom, .fio.json (repeatable;
    /// see docs/formats.md)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Print the record as JSON on stdout, and nothing else
    #[arg(long)]
    pub json: bool,
    /// No progress and no notes on stderr
    #[arg(long)]
    pub quiet: bool,
    /// Print the well-known tool's command for each figure after the result
    #[arg(long)]
    pub commands: bool,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// Show the plan, its time and the bytes it would write; open nothing for writing
    #[arg(long)]
    pub dry_run: bool,
    /// Seed of every random choice; the same seed gives the same offsets
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Your own words, kept in the record
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Kernel interface; auto takes the best that works here, and the result says which [default:
    /// auto]
    #[arg(long, alias = "ioengine", value_name = "NAME")]
    pub engine: Option<EngineName>,
    /// Size of the scratch file
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,
    /// What may be destroyed.
    #[command(flatten)]
    pub giving_up: GivingUp,
    /// Exit with 1 unless this holds, such as 'random-read-d32.iops>=5000' (repeatable)
    #[arg(long = "expect", value_name = "CONDITION", action = ArgAction::Append)]
    pub expected: Vec<Expected>,
    /// Whether and where the run is saved.
    #[command(flatten)]
    pub keeping: Keeping,
    /// Whether the disks are asked of their health.
    #[command(flatten)]
    pub health: HealthFlags,
}

impl Measuring {
    /// The kernel interface that was asked for.
    pub fn engine_choice(&self) -> Option<EngineChoice> {
        self.engine.map(EngineChoice::from)
    }
}

/// `diskproof check`
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// At most 20 seconds
    #[arg(long, conflicts_with_all = ["thorough", "time"])]
    pub quick: bool,
    /// Up to 5 minutes
    #[arg(long, conflicts_with = "time")]
    pub thorough: bool,
    /// Time for the whole run, at least 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub time: Option<u64>,
    /// Write nothing but the scratch file's content: leave the writing workloads out
    #[arg(long)]
    pub read_only: bool,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: Measuring,
}

/// `diskproof run`
#[derive(Debug, clap::Args)]
pub struct Run {
    /// A plan file (*.toml) or a job file of fio (*.fio, *.job), then directories, regular files
    /// or block devices [default: those of the file, or .]
    #[arg(value_name = "PLAN.toml|JOB.fio|TARGET")]
    pub operands: Vec<PathBuf>,
    /// What to run.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// Which part of a job file.
    #[command(flatten)]
    pub job_file: JobFileFlags,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: Measuring,
}

/// `diskproof info`
#[derive(Debug, clap::Args)]
pub struct Info {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
    /// Write it to a file, too; the format follows the extension: .json (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Whether the disks are asked of their health.
    #[command(flatten)]
    pub health: HealthFlags,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Names of the kernel interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The best that works here, per workload
    Auto,
    /// io_uring
    #[value(alias = "io_uring")]
    Uring,
    /// Linux native AIO
    #[value(alias = "libaio")]
    Aio,
    /// pread/pwrite, a thread per request in flight
    #[value(alias = "psync")]
    Sync,
    /// A shared memory mapping
    Mmap,
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(text, false)
            .map_err(|_| format!("'{text}' is not an engine; use auto, uring, aio, sync or mmap"))
    }
}

impl From<EngineName> for EngineChoice {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Auto => Self::Auto,
            EngineName::Uring => Self::Fixed(EngineKind::Uring),
            EngineName::Aio => Self::Fixed(EngineKind::Aio),
            EngineName::Sync => Self::Fixed(EngineKind::Sync),
            EngineName::Mmap => Self::Fixed(EngineKind::Mmap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
