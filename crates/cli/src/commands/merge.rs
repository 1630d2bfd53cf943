//! `diskproof merge`: judges the records of many hosts together: which disk is not like the others,
//! and why. Measures nothing.

mod collected;
mod launches;
mod roster;
mod source;

use crate::failure::{Exit, Failure};
use crate::flags::{is_stdout, output_files, output_help, parse_page_name};
use crate::output_files::{Output, note_written, open_documents};
use crate::provenance::tool;
use crate::saved::{HistoryFileFlag, SavedDocument, find};
use crate::stdio::{
    ColorWhen, Presentation, Verbosity, colored_fleet_page, ignore_closed_pipe, to_stdout,
    write_colored_page,
};
use anyhow::Context as _;
use collected::Collected;
use diskproof_analysis::fleet::{Fleet, FleetQuestion, Surplus};
use diskproof_model::fleet::{FleetOutcome, FleetRecord};
use diskproof_model::fleet_sum::SumStorage;
use diskproof_report::formats::format_of;
use diskproof_report::json;
use diskproof_report::terminal::FleetDetail;
use roster::Roster;
use source::Source;
use std::path::{Path, PathBuf};

/// Shown below the flags.
const HELP: &str = concat!(
    "RECORDS are files with one or more records (.json, .html, or what a launcher\n",
    "printed), folders of such files, labels or ids of the history, and - for stdin.\n",
    "Measure with --pieces, which brings records whole through srun, pdsh, clush,\n",
    "Ansible and ssh. Where there is a shared folder, and under Open MPI's mpirun,\n",
    "use -o FOLDER/.\n",
    "\n",
    "Disks of one kind are compared: same model, size and kind of target, measured\n",
    "under the same conditions. Several runs of a disk are averaged. At least three\n",
    "disks are needed.\n",
    "\n",
    "Hosts that measured with --together also have a sum: what they gave at the same\n",
    "instants. A host that is not in it is named with the reason.\n",
    "\n",
    "Records of 'accept' have a table of their own: the verdict, the real size and\n",
    "the rates of each disk, those that are not accepted first.\n",
    "\n",
    "Exit codes: 0 alike, 1 a disk is slower, has errors, is missing, was rejected,\n",
    "or its run measured nothing or missed a threshold (--expect, --for), or a host\n",
    "is not in the sum, 2 usage, 4 a file cannot be written, 5 too few disks to judge\n",
    "and no sum, a run that ended early and lacks figures, hosts that measured\n",
    "together without a common slot or whose figures are not the disk's, a run that\n",
    "died and was perhaps repeated, or a suspect, test or threshold was undecided.\n",
    "\n",
    "'diskproof help cluster.md' has recipes for launchers, and explains the test.\n",
    "\n",
    "Examples:\n",
    "  diskproof merge *.json\n",
    "  diskproof merge results/ -o fleet.json --html fleet.html\n",
    "  srun -N200 diskproof check /data --pieces | diskproof merge - --expect 200\n",
    "  pdsh -w 'db[1-60]' diskproof check /data --pieces | diskproof merge -\n",
    "  diskproof merge --reference fleet.json new.json   # one node against the fleet",
);

/// Judge the records of many hosts together: which disk is slower than the others, and why
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct MergeFlags {
    /// Records of many hosts: files, folders, labels or ids of the history, or - for stdin
    #[arg(value_name = "RECORDS", required = true)]
    pub records: Vec<String>,
    /// Name the ranks or hosts without a record: of N ranks of each launch, or of those in FILE,
    /// one a line
    #[arg(long, value_name = "N|FILE")]
    pub expect: Option<String>,
    /// Judge the records by this saved fleet instead of by each other; its suspects, if they were
    /// measured again together with others
    #[arg(long, value_name = "FLEET.json")]
    pub reference: Option<String>,
    /// Disks that differ by less are alike
    #[arg(long, value_name = "PERCENT", value_parser = super::compare::parse_margin,
          default_value = "10%")]
    pub margin: f64,
    /// Hosts that measured together use one storage: the sum is what it gives [default: as
    /// network filesystems and serial numbers tell]
    #[arg(long, conflicts_with = "separate")]
    pub shared: bool,
    /// Hosts that measured together have disks of their own
    #[arg(long)]
    pub separate: bool,
    /// Print every disk, and the latencies
    #[arg(long)]
    pub all: bool,
    /// Print the result as JSON; the same as -o -
    #[arg(long)]
    pub json: bool,
    /// Files to write.
    #[arg(short = 'o', long = "output", value_name = "FILE",
        help = output_help(|format| format.fleet.is_some()))]
    pub outputs: Vec<PathBuf>,
    /// Save a page, like -o FILE.html (repeatable)
    #[arg(long, value_name = "FILE.html", value_parser = parse_page_name)]
    pub html: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
}

/// Reads the records, judges their disks, and saves and prints the fleet. The exit code says
/// whether all disks are alike.
pub fn run(merge: &MergeFlags) -> anyhow::Result<Exit> {
    let history = merge.history_file.file();
    let fleet = match &merge.reference {
        Some(reference) => {
            Fleet::with_reference(load_reference(reference, history)?, merge.storage())
        }
        None => Fleet::new(merge.storage()),
    };
    let mut collected = Collected {
        fleet,
        hellos: Vec::new(),
        refused: Vec::new(),
    };
    let roster = match &merge.expect {
        Some(text) => Some(Roster::read(text)?),
        None => None,
    };
    let mut sources = Vec::new();
    for reference in &merge.records {
        sources.extend(Source::find(reference)?);
    }
    // Before a stream is read, which may take as long as the runs of all hosts.
    let outputs = open_outputs(&output_files(&[&merge.outputs, &merge.html]), history)?;
    for source in &sources {
        collected.read(source, history)?;
    }
    let missing = collected.missing_rows(roster.as_ref());
    if collected.fleet.is_empty() && missing.is_empty() {
        return Err(Failure::Usage(collected.no_record_text()).into());
    }
    let surplus = match &roster {
        Some(roster) => roster.surplus(&collected.fleet),
        None => Surplus::default(),
    };
    let question = FleetQuestion {
        tool: tool(),
        margin: merge.margin,
        missing,
        surplus,
        refused: collected.refused,
    };
    let judged = collected.fleet.judge(question);
    save(&judged, &outputs, Verbosity::lines(merge.quiet))?;
    print_unless_saved(merge, &judged, outputs.is_empty())?;
    Ok(exit_of_fleet(&judged))
}

/// Prints the fleet, unless it only goes to files.
fn print_unless_saved(
    merge: &MergeFlags,
    judged: &FleetRecord,
    has_no_output: bool,
) -> anyhow::Result<()> {
    let prints_json = merge.json || merge.outputs.iter().any(|path| is_stdout(path));
    if !prints_json && !has_no_output {
        return Ok(());
    }
    let detail = if merge.all {
        FleetDetail::All
    } else {
        FleetDetail::Differing
    };
    let presentation = Presentation::from_json_flag(prints_json);
    print(judged, presentation, detail, merge.color)
}

impl MergeFlags {
    /// The kind of storage of hosts that measured together; `None` where no flag says it.
    fn storage(&self) -> Option<SumStorage> {
        if self.shared {
            Some(SumStorage::Shared)
        } else if self.separate {
            Some(SumStorage::Separate)
        } else {
            None
        }
    }
}

/// The exit code of a fleet. Hosts that measured together are enough where their sum is known, one
/// that is not in it is missing. A sum without a common slot answers nothing, nor does one of
/// figures that are not those of the disks.
fn exit_of_fleet(fleet: &FleetRecord) -> Exit {
    let can_sum_decide = match fleet.outcome {
        FleetOutcome::Alike | FleetOutcome::TooFew => true,
        FleetOutcome::Differs | FleetOutcome::Undecided => false,
    };
    if let Some(sum) = &fleet.sum
        && can_sum_decide
    {
        return if !sum.left_out.is_empty() {
            Exit::ThresholdMissed
        } else if sum.workloads.is_empty() || !sum.undecided.is_empty() {
            Exit::Undecided
        } else {
            Exit::Done
        };
    }
    match fleet.outcome {
        FleetOutcome::Alike => Exit::Done,
        FleetOutcome::Differs => Exit::ThresholdMissed,
        FleetOutcome::TooFew | FleetOutcome::Undecided => Exit::Undecided,
    }
}

/// Prints a fleet on stdout; `detail` and `color` are those of a page.
pub(super) fn print(
    fleet: &FleetRecord,
    presentation: Presentation,
    detail: FleetDetail,
    color: ColorWhen,
) -> anyhow::Result<()> {
    ignore_closed_pipe(to_stdout(|out| match presentation {
        Presentation::Json => json::write_fleet(fleet, out),
        Presentation::Page => write_colored_page(&colored_fleet_page(fleet, detail), color, out),
    }))
}

/// Opens the output files of a fleet. Fails for a format that cannot hold one.
pub(super) fn open_outputs(
    paths: &[PathBuf],
    history: Option<&Path>,
) -> Result<Vec<Output>, Failure> {
    open_documents("a fleet", |format| format.fleet.is_some(), paths, history)
}

/// Writes a fleet to all output files.
pub(super) fn save(
    fleet: &FleetRecord,
    outputs: &[Output],
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    for output in outputs {
        let path = output.path();
        let Some(file) = format_of(path).and_then(|format| format.fleet_file(fleet, path)) else {
            continue;
        };
        let bytes = output
            .save(&file)
            .with_context(|| format!("-o {}: cannot save the fleet", path.display()))?;
        note_written(path, bytes, verbosity);
    }
    Ok(())
}

fn load_reference(reference: &str, history: Option<&Path>) -> Result<FleetRecord, Failure> {
    match find(reference, history)? {
        SavedDocument::Fleet(fleet) => Ok(*fleet),
        SavedDocument::Run(_) | SavedDocument::Comparison(_) => Err(Failure::Usage(format!(
            "--reference {reference}: this is no fleet. Create one with 'diskproof merge RECORDS \
             -o fleet.json'"
        ))),
    }
}
