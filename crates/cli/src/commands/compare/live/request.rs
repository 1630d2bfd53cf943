//! The flags of a live comparison, and how it ends.

use crate::consent::DestructiveFlags;
use crate::failure::Exit;
use crate::flags::{ColorWhen, ENGINES, HealthFlags, MeasuringFlags, UndecidedMeans, one_of};
use crate::saved::HistoryOptions;
use crate::selection::SelectionFlags;
use diskproof_analysis::compare::Limit;
use diskproof_model::comparison::Comparison;
use diskproof_model::plan::EngineChoice;
use diskproof_model::units::{parse_duration, parse_size};
use std::path::PathBuf;

/// Flags of a live comparison.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Live comparison of targets or settings")]
pub struct LiveFlags {
    /// Compare settings of one target: run CMD in a shell before each slice of a side (once per
    /// side)
    #[arg(long, value_name = "CMD")]
    pub prepare: Vec<String>,
    /// Run CMD in a shell after the last slice
    #[arg(long, value_name = "CMD", requires = "prepare")]
    pub cleanup: Option<String>,
    /// Close the target before each --prepare command and reopen it afterwards, as umount requires
    #[arg(long, requires = "prepare")]
    pub reopen: bool,
    /// Time for everything [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "quick")]
    pub time: Option<u64>,
    /// Take at most 20 seconds
    #[arg(long)]
    pub quick: bool,
    /// Skip the writing workloads; a scratch file is still filled
    #[arg(long)]
    pub read_only: bool,
    /// What is compared.
    #[command(flatten)]
    pub selection: SelectionFlags,
    /// Size of each scratch file
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,
    /// I/O engine [default: auto]
    #[arg(long, value_name = "NAME", value_parser = one_of(ENGINES))]
    pub engine: Option<EngineChoice>,
    /// Seed of every random choice
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A remark to store in the records
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// What may be destroyed.
    #[command(flatten)]
    pub destructive: DestructiveFlags,
    /// Show the plan, its time and the bytes it would write; open nothing for writing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not save the runs; DISKPROOF_NO_HISTORY=1 does the same
    #[arg(long, conflicts_with = "history")]
    pub no_history: bool,
    /// Whether SMART health is read.
    #[command(flatten)]
    pub health: HealthFlags,
    /// Print no progress and no notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// A live comparison as the user requested it.
pub(crate) struct LiveRequest<'a> {
    /// The arguments that name saved runs or targets.
    pub names: &'a [String],
    /// The value of --baseline.
    pub baseline: Option<&'a str>,
    /// Its own flags.
    pub flags: &'a LiveFlags,
    /// Differences up to this share count as the same.
    pub margin: f64,
    /// Conditions on the outcome.
    pub limits: &'a [Limit],
    /// The flags of every verb that measures.
    pub measuring: MeasuringFlags,
}

/// How a live comparison ended.
pub(crate) enum LiveEnd {
    /// With a comparison; the exit code where its conditions do not decide it.
    Compared(Box<Comparison>, Option<Exit>),
    /// Without one.
    Ended(Exit),
}

impl LiveFlags {
    /// The shared flags of verbs that measure, without those of the result.
    pub(crate) fn measuring(&self, history: Option<PathBuf>) -> MeasuringFlags {
        MeasuringFlags {
            outputs: Vec::new(),
            html: Vec::new(),
            json: false,
            quiet: self.quiet,
            verbose: false,
            commands: false,
            color: ColorWhen::Auto,
            dry_run: self.dry_run,
            seed: self.seed,
            note: self.note.clone(),
            engine: self.engine,
            size: self.size,
            destructive: self.destructive.clone(),
            expected: Vec::new(),
            undecided: UndecidedMeans::Report,
            history: HistoryOptions {
                label: None,
                history,
                no_history: self.no_history,
            },
            health: HealthFlags {
                no_health: self.health.no_health,
            },
        }
    }

    /// The first flag that is given and has no meaning for saved runs.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--time", self.time.is_some()),
            ("--quick", self.quick),
            ("--read-only", self.read_only),
            ("--only", !self.selection.only.is_empty()),
            ("--skip", !self.selection.skip.is_empty()),
            ("--size", self.size.is_some()),
            ("--engine", self.engine.is_some()),
            ("--seed", self.seed.is_some()),
            ("--note", self.note.is_some()),
            ("--destroy", !self.destructive.destroy.is_empty()),
            ("--overwrite", self.destructive.overwrite),
            ("--dry-run", self.dry_run),
        ];
        given
            .iter()
            .find(|(_, is_given)| *is_given)
            .map(|one| one.0)
    }
}
