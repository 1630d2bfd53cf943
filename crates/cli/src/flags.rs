//! Flags that several verbs share. Checks their form only: whether they fit the target is decided
//! by the verbs and the gate.

use crate::consent::DestructiveFlags;
use crate::saved::HistoryOptions;
use crate::stderr::Verbosity;
use clap::{ArgAction, ValueEnum};
use diskproof_analysis::expect::Expected;
use diskproof_model::plan::{EngineChoice, EngineKind};
use diskproof_model::units::parse_size;
use diskproof_report::format::Format;
use diskproof_report::formats::extensions;
use std::path::PathBuf;
use std::str::FromStr;

/// The help of `-o`, with the extensions of the formats that `is_listed` selects.
pub(crate) fn output_help(is_listed: fn(&Format) -> bool) -> String {
    format!(
        "Save the result; the format follows the extension: {} (repeatable; see docs/formats.md)",
        extensions(is_listed)
    )
}

/// Flags of every verb that measures.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = None::<&str>)]
pub struct MeasuringFlags {
    /// Files to write.
    #[arg(short = 'o', long = "output", value_name = "FILE", help = output_help(|_| true))]
    pub outputs: Vec<PathBuf>,
    /// Print only the record, as JSON, on stdout
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no notes on stderr
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
    /// A remark to store in the record
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// I/O engine; auto takes the best one that works here, and the result names it [default:
    /// auto]
    #[arg(long, alias = "ioengine", value_name = "NAME")]
    pub engine: Option<EngineName>,
    /// Size of the scratch file
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,
    /// What may be destroyed.
    #[command(flatten)]
    pub destructive: DestructiveFlags,
    /// Exit with 1 unless this holds, such as 'random-read-d32.iops>=5000' (repeatable)
    #[arg(long = "expect", value_name = "CONDITION", action = ArgAction::Append)]
    pub expected: Vec<Expected>,
    /// Whether and where the run is saved.
    #[command(flatten)]
    pub history: HistoryOptions,
    /// Whether SMART health is read.
    #[command(flatten)]
    pub health: HealthFlags,
}

impl MeasuringFlags {
    /// The I/O engine that `--engine` names.
    pub fn engine_choice(&self) -> Option<EngineChoice> {
        self.engine.map(EngineChoice::from)
    }

    /// How much goes to stderr.
    pub fn verbosity(&self) -> Verbosity {
        if self.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::of_stderr()
        }
    }
}

/// Flags on SMART health.
#[derive(Debug, clap::Args)]
pub struct HealthFlags {
    /// Skip the SMART health check (smartctl)
    #[arg(long)]
    pub no_health: bool,
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

/// Names of the I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The best one that works here, per workload
    Auto,
    /// io_uring
    #[value(alias = "io_uring")]
    Uring,
    /// Linux native AIO
    #[value(alias = "libaio")]
    Aio,
    /// pread/pwrite, one thread per request in flight
    #[value(alias = "psync")]
    Sync,
    /// A shared memory mapping
    Mmap,
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(text, false).map_err(|_| {
            let values = Self::value_variants().iter();
            let names: Vec<String> = values
                .filter_map(|name| Some(name.to_possible_value()?.get_name().to_owned()))
                .collect();
            format!("'{text}' is not an engine; use one of {}", names.join(", "))
        })
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
