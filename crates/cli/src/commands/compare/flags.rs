//! Defines the flags of `compare`, and makes them of a record whose comparison is repeated, after
//! the user agreed to its commands.

use crate::agreement::{Agreement, agree};
use crate::failure::Failure;
use crate::flags::{
    DestructiveFlags, ENGINES, HealthFlags, MeasuringFlags, SelectionFlags, TogetherFlags,
    UndecidedMeans, one_of, output_help, parse_page_name,
};
use crate::saved::{HistoryFileFlag, HistoryOptions};
use crate::stdio::ColorWhen;
use crate::workload::parse_time;
use clap::ArgAction;
use diskproof_analysis::compare::{Limit, MARGIN};
use diskproof_model::plan::{EngineChoice, LivePlan, Sides};
use diskproof_model::secrets::hides_secret;
use diskproof_model::units::parse_size;
use std::path::PathBuf;

/// Shown below the flags.
const HELP: &str = concat!(
    "Two or more directories, files or block devices are measured live, in random\n",
    "alternation. For settings of one target, name a --prepare command for each side;\n",
    "it runs before the slices of that side. A workload ends when its ratio is\n",
    "decided, or known to a tenth of --margin.\n",
    "\n",
    "A RUN is an id or its beginning, latest, latest~1, a label (all its runs), or a\n",
    "file (.json, or the .html page of a report). Runs that repeat one experiment\n",
    "form one side: join them with commas, A1,A2,A3, or give them one label. Each\n",
    "side is compared with the first.\n",
    "\n",
    "--fail-on takes a metric from the table and a change in percent of the first\n",
    "side: 'random-read-d32.iops<-5%' fails if the rate fell by more than 5 %, and\n",
    "'commit-fdatasync.p99>10%' if the latency rose by more than 10 %. A threshold\n",
    "within the 95 % interval of the change is undecided. So is a change between\n",
    "single runs, unless the history contains earlier runs of the same target and\n",
    "plan, which show how much runs vary.\n",
    "\n",
    "Exit codes: 0 done, 1 a --fail-on condition holds, 2 usage, 3 refused for\n",
    "safety, 4 the measurement or a --cleanup command failed, or a --fail-on\n",
    "condition has no answer (not comparable, not measured on one side, or a disk\n",
    "that failed), 5 a condition is undecided, with --fail-on-undecided, 130 Ctrl-C.\n",
    "\n",
    "'diskproof help compare.md' explains the verdicts.\n",
    "\n",
    "Examples:\n",
    "  diskproof compare before.json after.json\n",
    "  diskproof compare latest~1 latest\n",
    "  diskproof compare old-firmware new-firmware       # two labels, all their runs\n",
    "  diskproof compare a1.json,a2.json b1.json,b2.json\n",
    "  diskproof compare --baseline main latest --fail-on 'random-read-d32.iops<-5%'\n",
    "  diskproof compare /mnt/old /mnt/new               # live, about a minute\n",
    "  sudo diskproof compare /dev/sdb /dev/sdc --quick  # live, reads only\n",
    "  sudo diskproof compare /data \\\n",
    "    --cleanup 'echo none > /sys/block/sda/queue/scheduler' \\\n",
    "    --prepare 'echo none > /sys/block/sda/queue/scheduler' \\\n",
    "    --prepare 'echo mq-deadline > /sys/block/sda/queue/scheduler'",
);

/// Compare targets, settings or saved runs: better, worse, the same, or undecided
#[derive(Debug, Default, clap::Args)]
#[command(after_help = HELP)]
pub struct CompareFlags {
    /// Saved runs, or targets to measure; the first one is the baseline unless --baseline names one
    /// [default with --baseline: latest; with --prepare: .]
    #[arg(value_name = "RUN|TARGET")]
    pub runs: Vec<String>,
    /// Compare with the runs of this label
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    /// Differences up to this size count as the same
    #[arg(long, value_name = "PERCENT", value_parser = parse_margin, default_value = "2%")]
    pub margin: f64,
    /// Exit with 1 if this holds, such as 'random-read-d32.iops<-5%' (repeatable)
    #[arg(long = "fail-on", value_name = "CONDITION", action = ArgAction::Append)]
    pub limits: Vec<Limit>,
    /// Exit with 5 if a --fail-on condition is undecided
    #[arg(long, requires = "limits")]
    pub fail_on_undecided: bool,
    /// Show every metric, including derived ones
    #[arg(long)]
    pub all: bool,
    /// Print the comparison as JSON; the same as -o -
    #[arg(long)]
    pub json: bool,
    /// Files to write.
    #[arg(short = 'o', long = "output", value_name = "FILE",
        help = output_help(|format| format.comparison.is_some()))]
    pub outputs: Vec<PathBuf>,
    /// Save a page, like -o FILE.html (repeatable)
    #[arg(long, value_name = "FILE.html", value_parser = parse_page_name)]
    pub html: Vec<PathBuf>,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
    /// The live comparison.
    #[command(flatten)]
    pub live: LiveFlags,
}

/// Flags of a live comparison.
#[derive(Debug, Default, clap::Args)]
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
    #[arg(long, value_name = "DURATION", value_parser = parse_time, conflicts_with = "quick")]
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

impl CompareFlags {
    /// The flags that repeat the comparison of a record, whose plan has the time, size, workloads
    /// and seed. Fails for flags that a comparison cannot follow, where the record hides a password
    /// in one of its commands, and where the user does not agree to these.
    pub(super) fn repeated_from(
        recorded: &LivePlan,
        flags: &MeasuringFlags,
        agreement: Agreement,
    ) -> Result<Self, Failure> {
        if let Some(flag) = first_flag_of_single_runs(flags) {
            return Err(Failure::Usage(format!(
                "{flag} is for a single run, but the record is of a comparison; compare its saved \
                 runs with 'diskproof compare', which has --fail-on"
            )));
        }
        let mut live = LiveFlags {
            destructive: flags.destructive.clone(),
            dry_run: flags.dry_run,
            no_history: flags.history.no_history,
            health: flags.health.clone(),
            quiet: flags.quiet,
            ..LiveFlags::default()
        };
        if let Sides::Settings {
            prepare,
            cleanup,
            reopen,
        } = &recorded.sides
        {
            agree_to_commands(prepare, cleanup.as_deref(), flags, agreement)?;
            live.prepare.clone_from(prepare);
            live.cleanup.clone_from(cleanup);
            live.reopen = *reopen;
        }
        Ok(Self {
            margin: recorded.margin,
            all: flags.verbose,
            json: flags.json,
            outputs: flags.outputs.clone(),
            html: flags.html.clone(),
            color: flags.color,
            history_file: HistoryFileFlag {
                history: flags.history.history.clone(),
            },
            live,
            ..Self::default()
        })
    }

    /// The flags that `compare` shares with the verbs that measure.
    pub(super) fn measuring_flags(&self) -> MeasuringFlags {
        let live = &self.live;
        MeasuringFlags {
            outputs: self.outputs.clone(),
            html: self.html.clone(),
            json: self.json,
            quiet: live.quiet,
            color: self.color,
            dry_run: live.dry_run,
            seed: live.seed,
            note: live.note.clone(),
            engine: live.engine,
            size: live.size,
            destructive: live.destructive.clone(),
            history: HistoryOptions {
                label: None,
                history: self.history_file.history.clone(),
                no_history: live.no_history,
                command: None,
            },
            health: live.health.clone(),
            // No flags of `compare`. Without `..`, so that a new flag must be judged here.
            pieces: false,
            verbose: false,
            commands: false,
            expected: Vec::new(),
            undecided: UndecidedMeans::default(),
            together: TogetherFlags::default(),
            counts_wake_up: false,
        }
    }
}

/// The first flag that is given and that only a single run can follow.
fn first_flag_of_single_runs(flags: &MeasuringFlags) -> Option<&'static str> {
    // Without `..`, so that a new flag must be judged here.
    let MeasuringFlags {
        counts_wake_up: _,
        outputs: _,
        html: _,
        json: _,
        pieces,
        quiet: _,
        verbose: _,
        commands,
        color: _,
        dry_run: _,
        seed: _,
        note: _,
        engine,
        size,
        destructive: _,
        expected,
        undecided,
        history,
        health: _,
        together,
    } = flags;
    first_given(&[
        ("--pieces", *pieces),
        ("--commands", *commands),
        ("--engine", engine.is_some()),
        ("--size", size.is_some()),
        ("--expect", !expected.is_empty()),
        ("--undecided", *undecided != UndecidedMeans::default()),
        ("--label", history.label.is_some()),
        ("--together", together.together),
    ])
}

/// The name of the first flag that is given.
fn first_given(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    for (flag, is_given) in flags {
        if *is_given {
            return Some(flag);
        }
    }
    None
}

/// Shows the commands of a record, and has the user agree to them. A record hides passwords, so
/// such a command cannot be repeated.
fn agree_to_commands(
    prepare: &[String],
    cleanup: Option<&str>,
    flags: &MeasuringFlags,
    agreement: Agreement,
) -> Result<(), Failure> {
    let mut notice = "This run has a shell run the commands of the record:".to_owned();
    for command in prepare.iter().map(String::as_str).chain(cleanup) {
        if hides_secret(command) {
            return Err(Failure::Usage(format!(
                "the record hides a password in '{command}'; use the command that made the record"
            )));
        }
        notice.push_str(&format!("\n  {command}"));
    }
    if flags.dry_run {
        flags.verbosity().note(&notice);
        return Ok(());
    }
    agree(&notice, "Run them?", agreement, flags.verbosity())
}

impl LiveFlags {
    /// The first flag that is given and has no meaning for saved runs. `--prepare` and its
    /// companions make a live comparison. `--no-history`, the flags of health and `--quiet` only
    /// ask for less, and saved runs need no more.
    pub(crate) fn first_of_live_only(&self) -> Option<&'static str> {
        // Without `..`, so that a new flag must be judged here.
        let Self {
            prepare: _,
            cleanup: _,
            reopen: _,
            time,
            quick,
            read_only,
            selection,
            size,
            engine,
            seed,
            note,
            destructive,
            dry_run,
            no_history: _,
            health: _,
            quiet: _,
        } = self;
        first_given(&[
            ("--time", time.is_some()),
            ("--quick", *quick),
            ("--read-only", *read_only),
            ("--only", !selection.only.is_empty()),
            ("--skip", !selection.skip.is_empty()),
            ("--size", size.is_some()),
            ("--engine", engine.is_some()),
            ("--seed", seed.is_some()),
            ("--note", note.is_some()),
            ("--destroy", !destructive.destroy.is_empty()),
            ("--overwrite", destructive.overwrite),
            ("--dry-run", *dry_run),
        ])
    }
}

/// Reads a margin in percent, with or without `%`, as a share: 0.02 for `2%`.
pub(crate) fn parse_margin(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err(format!(
            "'{text}' is not a margin; write more than 0 and less than 100 percent, such as {}%",
            MARGIN * 100.0
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Compare {
        #[command(flatten)]
        flags: CompareFlags,
    }

    #[derive(Parser)]
    struct Measuring {
        #[command(flatten)]
        flags: MeasuringFlags,
    }

    fn recorded(sides: Sides) -> LivePlan {
        LivePlan {
            sides,
            margin: 0.03,
            cells_ns: 0,
        }
    }

    fn repeated(recorded: &LivePlan, line: &[&str]) -> Result<CompareFlags, Failure> {
        let argv = [&["run"], line].concat();
        let flags = Measuring::try_parse_from(argv).unwrap().flags;
        CompareFlags::repeated_from(recorded, &flags, Agreement::Given)
    }

    #[test]
    fn margin_is_a_percentage_between_none_and_all() {
        for (text, share) in [("2", 0.02), ("2%", 0.02), ("0.5 %", 0.005)] {
            assert_eq!(parse_margin(text), Ok(share));
        }
        for wrong in ["0", "100", "nan", "-1", "", "%"] {
            assert!(parse_margin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_of_a_live_comparison_are_none_of_saved_runs() {
        for flag in [
            "--time=4s",
            "--quick",
            "--read-only",
            "--only=random-read-d1",
            "--skip=random-read-d1",
            "--size=16M",
            "--engine=sync",
            "--seed=1",
            "--note=x",
            "--destroy=/dev/null",
            "--overwrite",
            "--dry-run",
        ] {
            let argv = ["compare", "latest", "latest~1", flag];
            let live = Compare::try_parse_from(argv).unwrap().flags.live;
            assert_eq!(live.first_of_live_only(), flag.split('=').next());
        }
        for flag in ["--no-history", "--no-health", "--quiet", "--all"] {
            let argv = ["compare", "latest", "latest~1", flag];
            let live = Compare::try_parse_from(argv).unwrap().flags.live;
            assert_eq!(live.first_of_live_only(), None);
        }
    }

    #[test]
    fn repeated_comparison_refuses_flags_of_single_runs() {
        let targets = recorded(Sides::Targets { paths: Vec::new() });
        for flag in [
            "--pieces",
            "--commands",
            "--engine=sync",
            "--size=16M",
            "--expect=a.iops>=1",
            "--undecided=fail",
            "--label=x",
            "--together",
        ] {
            assert!(repeated(&targets, &[flag]).is_err(), "{flag}");
        }
        let flags = repeated(&targets, &["--dry-run", "-q"]).unwrap();
        assert_eq!(flags.margin, 0.03);
        assert!(flags.live.dry_run && flags.live.quiet);
    }

    #[test]
    fn command_with_a_hidden_password_is_not_repeated() {
        for (prepare, cleanup, is_refused) in [
            (["true", "echo 1"], "true", false),
            (["true", "login --password (hidden)"], "true", true),
            (["true", "echo 1"], "login --password (hidden)", true),
        ] {
            let settings = recorded(Sides::Settings {
                prepare: prepare.map(str::to_owned).to_vec(),
                cleanup: Some(cleanup.to_owned()),
                reopen: true,
            });
            match repeated(&settings, &["-q"]) {
                Ok(flags) => {
                    assert!(!is_refused);
                    assert_eq!(flags.live.prepare, prepare);
                    assert_eq!(flags.live.cleanup.as_deref(), Some(cleanup));
                    assert!(flags.live.reopen);
                }
                Err(error) => {
                    assert!(is_refused, "{error}");
                    assert!(matches!(error, Failure::Usage(_)));
                }
            }
        }
    }
}
