//! Defines the flags that several verbs share: of measuring, of what the user releases, of the
//! workloads that are selected. Checks their form only: the verbs and the gate decide whether they
//! fit the target.

mod choice;
mod destructive;
mod together;

pub(crate) use choice::{Choice, choices, chosen, one_of};
pub(crate) use destructive::{DestructiveFlags, WriteBan};
pub(crate) use together::{StartAt, TogetherFlags};

use crate::failure::Failure;
use crate::provenance::{command_line, random_seed};
use crate::saved::HistoryOptions;
use crate::stdio::{ColorWhen, Verbosity};
use clap::{ArgAction, ValueEnum};
use diskproof_analysis::expect::Expected;
use diskproof_device::{Intent, admit, scratch_bytes_max};
use diskproof_model::plan::{EngineChoice, EngineKind, Plan};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, parse_size};
use diskproof_report::format::Format;
use diskproof_report::formats::{extensions, format_of};
use std::path::{Path, PathBuf};

/// A second in nanoseconds.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// The least useful scratch file: a smaller one says nothing about the disk. Chosen, not measured.
pub(crate) const SCRATCH_BYTES_USEFUL_MIN: u64 = 64 << 20;
/// The least `--size`, which holds the large requests that are in flight: eight of 1 MiB.
pub(crate) const SCRATCH_BYTES_MIN: u64 = 8 << 20;
/// The gate counts scratch files in whole MiB.
pub(crate) const SCRATCH_BYTES_UNIT: u64 = 1 << 20;

/// The help of `-o`, with the extensions of the formats that `is_listed` selects.
pub(crate) fn output_help(is_listed: fn(&Format) -> bool) -> String {
    format!(
        "Save the result; the format follows the extension: {} (repeatable; see diskproof help \
         formats)",
        extensions(is_listed)
    )
}

/// Flags of every verb that measures.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = None::<&str>)]
pub struct MeasuringFlags {
    /// Ends the run after its announced time also where a target did not answer before: who asks
    /// does not wait until a disk has started its motor.
    #[arg(skip)]
    pub counts_wake_up: bool,
    /// Files to write.
    #[arg(short = 'o', long = "output", value_name = "FILE", help = output_help(|_| true))]
    pub outputs: Vec<PathBuf>,
    /// Save a report page, like -o FILE.html (repeatable)
    #[arg(long, value_name = "FILE.html", value_parser = parse_page_name)]
    pub html: Vec<PathBuf>,
    /// Print only the record, as JSON, on stdout; the same as -o -
    #[arg(long)]
    pub json: bool,
    /// Print only the record, as short lines that any launcher brings back whole, for 'diskproof
    /// merge', which gives the verdict: a run whose record was printed exits with 0
    #[arg(long, conflicts_with = "json")]
    pub pieces: bool,
    /// Print no progress and no notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print all findings, advice, conditions and commands, and each step on a line
    #[arg(short = 'v', long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// After the result, print a command of fio or another tool for each figure
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
    /// I/O engine; auto selects the best one available, and the result names it [default: auto]
    #[arg(long, alias = "ioengine", value_name = "NAME", value_parser = one_of(ENGINES))]
    pub engine: Option<EngineChoice>,
    /// Size of the scratch file
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub size: Option<u64>,
    /// What may be destroyed.
    #[command(flatten)]
    pub destructive: DestructiveFlags,
    /// Exit with 1 unless this holds, such as 'random-read-d32.iops>=5000' (repeatable)
    #[arg(long = "expect", value_name = "CONDITION", action = ArgAction::Append)]
    pub expected: Vec<Expected>,
    /// Exit code if the measurement cannot decide an expectation: 0, 1 or 5
    #[arg(long, value_name = "MEANING", default_value = "report")]
    pub undecided: UndecidedMeans,
    /// Whether and where the run is saved.
    #[command(flatten)]
    pub history: HistoryOptions,
    /// Whether SMART health is read.
    #[command(flatten)]
    pub health: HealthFlags,
    /// Whether other hosts measure at the same instants.
    #[command(flatten)]
    pub together: TogetherFlags,
}

impl MeasuringFlags {
    /// What goes to stderr: what `--quiet` or `--verbose` asks for, else what stderr can show.
    pub(crate) fn verbosity(&self) -> Verbosity {
        if self.quiet {
            Verbosity::Quiet
        } else if self.verbose {
            Verbosity::Lines
        } else {
            Verbosity::of_stderr()
        }
    }

    /// Identifies a target. Fails where it cannot be measured, or where another user's link leads
    /// to one that would be written to.
    pub(crate) fn probe(&self, given: &Path) -> Result<TargetIdentity, Failure> {
        let destructive = &self.destructive;
        if destructive.overwrite || !destructive.destroy.is_empty() {
            crate::targets::refuse_foreign_link(given)?;
        }
        crate::targets::probe_target(given, destructive.keep_free, self.verbosity())
    }

    /// Identifies the targets of a run, in their order. Also fails for a device without a medium.
    pub(crate) fn probe_all(&self, given: &[PathBuf]) -> Result<Vec<TargetIdentity>, Failure> {
        let mut identities = Vec::new();
        for target in given {
            identities.push(self.probe(target)?);
        }
        // The gate's reason for an empty device is better than that of a span that does not fit.
        for identity in &identities {
            if identity.kind == TargetKind::BlockDevice && identity.size_bytes == 0 {
                admit(identity.clone(), Intent::Read)?;
            }
        }
        Ok(identities)
    }

    /// A plan of this verb for these targets, without what is measured.
    pub(crate) fn plan(&self, verb: &str, targets: &[TargetIdentity]) -> Plan {
        Plan {
            seed: self.seed.unwrap_or_else(random_seed),
            targets: targets.iter().map(|target| target.path.clone()).collect(),
            ..Plan::new(verb, command_line())
        }
    }

    /// True if the target gets a scratch file. `--size` for another one is an error, which says
    /// what to do instead.
    pub(crate) fn needs_scratch(
        &self,
        identity: &TargetIdentity,
        instead: &str,
    ) -> Result<bool, Failure> {
        let is_directory = identity.kind == TargetKind::Directory;
        match self.size {
            Some(_) if !is_directory => Err(Failure::no_scratch_file(&identity.path, instead)),
            _ => Ok(is_directory),
        }
    }

    /// The size of the scratch file of a directory; other targets have none.
    pub(crate) fn scratch_bytes(
        &self,
        identity: &TargetIdentity,
        wanted: u64,
    ) -> Result<Option<u64>, Failure> {
        if !self.needs_scratch(identity, "omit it")? {
            return Ok(None);
        }
        scratch_file_bytes(self.size, wanted, scratch_bytes_max(identity)).map(Some)
    }

    /// True if the record goes to stdout as JSON.
    pub fn prints_json(&self) -> bool {
        self.json || self.outputs.iter().any(|path| is_stdout(path))
    }

    /// True if the record goes to stdout, in whatever form, instead of the page.
    pub fn prints_record(&self) -> bool {
        self.prints_pieces() || self.prints_json()
    }

    /// True if the record goes to stdout in short lines: also of a run together with others, unless
    /// it goes elsewhere.
    pub fn prints_pieces(&self) -> bool {
        let is_elsewhere = self.json || !self.outputs.is_empty();
        self.pieces || (self.together.together && !is_elsewhere)
    }

    /// True if the record is for `merge`, which gives the verdict.
    pub fn is_for_merge(&self) -> bool {
        self.pieces || self.together.together
    }

    /// The files to write.
    pub fn files(&self) -> Vec<PathBuf> {
        output_files(&[&self.outputs, &self.html])
    }
}

/// The size of a scratch file, in whole MiB: that of `--size`, else as much as is wanted, if there
/// is room. With hardly any room, the gate judges the least useful size; with --size, the user's
/// own.
pub(crate) fn scratch_file_bytes(
    size_flag: Option<u64>,
    wanted: u64,
    room: u64,
) -> Result<u64, Failure> {
    let size = size_flag.unwrap_or(wanted.min(room).max(SCRATCH_BYTES_USEFUL_MIN));
    if size < SCRATCH_BYTES_MIN {
        return Err(Failure::Usage(format!(
            "--size {}: too small to measure anything; use at least {}",
            format_bytes(size),
            format_bytes(SCRATCH_BYTES_MIN)
        )));
    }
    Ok(size / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT)
}

/// True if an output is stdout, as in `-o -`.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The outputs that are files.
pub(crate) fn output_files(outputs: &[&[PathBuf]]) -> Vec<PathBuf> {
    outputs
        .concat()
        .into_iter()
        .filter(|path| !is_stdout(path))
        .collect()
}

/// Reads the name of a report page, which ends with `.html`.
pub(crate) fn parse_page_name(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match format_of(&path) {
        Some(format) if format.extension == ".html" => Ok(path),
        _ => Err(format!("a page ends with .html; use {text}.html")),
    }
}

/// What an undecided expectation means for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum UndecidedMeans {
    /// Exit with 5
    #[default]
    Report,
    /// Exit with 0, as if met
    Pass,
    /// Exit with 1, as if missed
    Fail,
}

/// Flags on SMART health.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct HealthFlags {
    /// Skip the SMART health check (smartctl)
    #[arg(long)]
    pub no_health: bool,
}

/// The I/O engines. The aliases are fio's names.
pub(crate) const ENGINES: &[Choice<EngineChoice>] = choices! {
    "auto" EngineChoice::Auto, "The best one available, per workload";
    "uring/io_uring" EngineChoice::Fixed(EngineKind::Uring), "io_uring";
    "aio/libaio" EngineChoice::Fixed(EngineKind::Aio), "Linux native AIO";
    "sync/psync" EngineChoice::Fixed(EngineKind::Sync),
        "pread/pwrite, one thread per request in flight";
    "mmap" EngineChoice::Fixed(EngineKind::Mmap), "A shared memory mapping";
};

/// Selected workloads.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SelectionFlags {
    /// Measure only these workloads, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(conflicts_with = "skip")]
    pub only: Vec<String>,
    /// Skip these workloads
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub skip: Vec<String>,
}

impl SelectionFlags {
    /// Fails for names that are not `known`: a misspelt one would measure too little, or too much.
    pub(crate) fn check_names(&self, known: &[&str]) -> Result<(), Failure> {
        for (flag, names) in [("--only", &self.only), ("--skip", &self.skip)] {
            for name in names {
                if !known.contains(&name.as_str()) {
                    return Err(Failure::Usage(format!(
                        "{flag} {name}: there is no such workload; use {}",
                        known.join(", ")
                    )));
                }
            }
        }
        Ok(())
    }

    /// The flag that excludes a workload; `None` for a selected one.
    pub(crate) fn excludes(&self, name: &str) -> Option<&'static str> {
        if !self.only.is_empty() && !self.only.iter().any(|only| only == name) {
            Some("--only")
        } else if self.skip.iter().any(|skipped| skipped == name) {
            Some("--skip")
        } else {
            None
        }
    }
}

/// Reads a number of things of which one at least is needed.
pub(crate) fn parse_from_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("0 asks for nothing; use at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!(
            "'{text}' is not a whole number; use one such as 10"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    const MIB: u64 = 1 << 20;

    /// A command line of these flags alone.
    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        measuring: MeasuringFlags,
    }

    #[test]
    fn record_goes_to_stdout_in_one_form_at_most() {
        for (words, prints_json, prints_pieces, is_for_merge) in [
            ("", false, false, false),
            ("--json", true, false, false),
            ("-o -", true, false, false),
            ("-o run.json", false, false, false),
            ("--pieces", false, true, true),
            ("--pieces -o run.json", false, true, true),
            // Together with others it is printed in pieces, unless it goes elsewhere.
            ("--together", false, true, true),
            ("--together --json", true, false, true),
            ("--together -o run.json", false, false, true),
        ] {
            let line = ["diskproof"].into_iter().chain(words.split_whitespace());
            let flags = Line::try_parse_from(line).unwrap().measuring;
            assert_eq!(flags.prints_json(), prints_json, "{words}");
            assert_eq!(flags.prints_pieces(), prints_pieces, "{words}");
            assert_eq!(flags.is_for_merge(), is_for_merge, "{words}");
            assert_eq!(
                flags.prints_record(),
                prints_json || prints_pieces,
                "{words}"
            );
        }
    }

    /// What the user gives is the user's: the gate refuses it where there is no room.
    #[test]
    fn scratch_file_is_of_use_and_of_whole_mebibytes() {
        for (size_flag, wanted, room, expected) in [
            (None, 1000 * MIB, 2000 * MIB, Some(1000 * MIB)),
            (None, 1000 * MIB, 500 * MIB + 7, Some(500 * MIB)),
            (None, 1000 * MIB, 0, Some(64 * MIB)),
            (None, 8 * MIB, 2000 * MIB, Some(64 * MIB)),
            (Some(100 * MIB + 7), 1000 * MIB, 0, Some(100 * MIB)),
            (Some(8 * MIB), 1000 * MIB, 2000 * MIB, Some(8 * MIB)),
            (Some(8 * MIB - 1), 1000 * MIB, 2000 * MIB, None),
        ] {
            let bytes = scratch_file_bytes(size_flag, wanted, room).ok();
            assert_eq!(bytes, expected, "{size_flag:?} {wanted} {room}");
        }
    }

    #[test]
    fn workload_is_excluded_by_the_flag_that_does_not_name_it_or_does() {
        for (only, skip, expected) in [
            ("", "", None),
            ("reads", "", None),
            ("writes", "", Some("--only")),
            ("", "reads", Some("--skip")),
            ("", "writes", None),
        ] {
            let selection = SelectionFlags {
                only: only.split_whitespace().map(str::to_owned).collect(),
                skip: skip.split_whitespace().map(str::to_owned).collect(),
            };
            assert_eq!(selection.excludes("reads"), expected, "{selection:?}");
            assert!(selection.check_names(&["reads", "writes"]).is_ok());
            let is_known = selection.check_names(&["commits"]).is_ok();
            assert_eq!(
                is_known,
                only.is_empty() && skip.is_empty(),
                "{selection:?}"
            );
        }
    }

    #[test]
    fn number_of_things_is_one_at_least() {
        for (text, expected) in [
            ("1", Some(1)),
            ("10", Some(10)),
            ("0", None),
            ("-1", None),
            ("1.5", None),
            ("ten", None),
            ("", None),
        ] {
            assert_eq!(parse_from_one(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn page_has_the_extension_of_a_page() {
        for (text, is_page) in [
            ("run.html", true),
            ("out/run.html", true),
            ("run", false),
            ("run.json", false),
            ("run.html.json", false),
        ] {
            assert_eq!(parse_page_name(text).is_ok(), is_page, "{text}");
        }
    }

    #[test]
    fn outputs_are_files_unless_they_are_stdout() {
        let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        let outputs = paths(&["-", "a.json", "./-"]);
        let pages = paths(&["b.html"]);
        let files = output_files(&[&outputs, &pages]);
        assert_eq!(files, paths(&["a.json", "./-", "b.html"]));
    }
}
