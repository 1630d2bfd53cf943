//! `diskproof merge`: judges the records of many hosts together: which disk is not like the others,
//! and why. Measures nothing.

use crate::failure::{Exit, Failure};
use crate::flags::{files, is_stdout, output_help, parse_page_name};
use crate::input_files::{InputRole, register, register_stdin};
use crate::output_files::{Output, note_written, open_documents};
use crate::provenance::tool;
use crate::saved::{
    HistoryFileFlag, RefusedPart, SavedDocument, Streamed, find, judged_record, load_all_whole,
    read_page, read_stream,
};
use crate::stdio::{
    ColorWhen, Presentation, Verbosity, colored_fleet_page, ignore_closed_pipe, to_stdout,
    write_colored_page,
};
use anyhow::Context as _;
use diskproof_analysis::fleet::{Added, Fleet, FleetQuestion};
use diskproof_model::document::AnyDocument;
use diskproof_model::fleet::{FleetOutcome, FleetRecord, Hello, MissingRow, RefusedInput};
use diskproof_model::fleet_sum::SumStorage;
use diskproof_model::record::Record;
use diskproof_model::units::format_bytes;
use diskproof_report::formats::format_of;
use diskproof_report::json;
use diskproof_report::terminal::FleetDetail;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Shown below the flags.
const HELP: &str = concat!(
    "RECORDS are files with one or more records (.json, .html, or what a launcher printed),\n",
    "folders of such files, labels or ids of the history, and - for stdin. Measure with\n",
    "--pieces, which brings records whole through srun, pdsh, clush, Ansible and ssh. Where\n",
    "there is a shared folder, and under Open MPI's mpirun, use -o FOLDER/.\n",
    "\n",
    "Disks of one kind are compared: same model, size and kind of target, measured under the\n",
    "same conditions. Several runs of a disk are averaged. At least three disks are needed.\n",
    "\n",
    "Hosts that measured with --together also have a sum: what they gave at the same instants.\n",
    "A host that is not in it is named with the reason.\n",
    "\n",
    "Records of 'accept' have a table of their own: the verdict, the real size and the rates of\n",
    "each disk, those that are not accepted first.\n",
    "\n",
    "Exit codes: 0 alike, 1 a disk is slower, has errors, is missing or was rejected, or a host\n",
    "is not in the sum, 2 usage, 4 a file cannot be written, 5 too few disks to judge and no\n",
    "sum, hosts that measured together without a common slot, or a test was undecided.\n",
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
    /// Name the ranks or hosts without a record: of N ranks, or of those in FILE, one a line
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
        verbosity: Verbosity::lines(merge.quiet),
    };
    let expected = match &merge.expect {
        Some(text) => Some(Expected::read(text)?),
        None => None,
    };
    let mut sources = Vec::new();
    for reference in &merge.records {
        sources.extend(Source::find(reference)?);
    }
    // Before a stream is read, which may take as long as the runs of all hosts.
    let outputs = open_outputs(&files(&[&merge.outputs, &merge.html]), history)?;
    for source in &sources {
        collected.read(source, history)?;
    }
    let missing = collected.missing(expected.as_ref());
    if collected.fleet.hosts().is_empty() && missing.is_empty() {
        return Err(Failure::Usage(collected.nothing_text()).into());
    }
    let question = FleetQuestion {
        tool: tool(),
        margin: merge.margin,
        missing,
        refused: collected.refused,
    };
    let judged = collected.fleet.judge(question);
    save(&judged, &outputs, collected.verbosity)?;
    let prints_json = merge.json || merge.outputs.iter().any(|path| is_stdout(path));
    if prints_json || outputs.is_empty() {
        let detail = if merge.all {
            FleetDetail::All
        } else {
            FleetDetail::Differing
        };
        let presentation = Presentation::from_json_flag(prints_json);
        print(&judged, presentation, detail, merge.color)?;
    }
    Ok(exit_of(&judged))
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
/// that is not in it is missing, and a sum without a common slot answers nothing.
fn exit_of(fleet: &FleetRecord) -> Exit {
    let can_sum_decide = match fleet.outcome {
        FleetOutcome::Alike | FleetOutcome::TooFew => true,
        FleetOutcome::Differs | FleetOutcome::Undecided => false,
    };
    if let Some(sum) = &fleet.sum
        && can_sum_decide
    {
        return if !sum.left_out.is_empty() {
            Exit::ThresholdMissed
        } else if sum.workloads.is_empty() {
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

/// A place that has records.
enum Source {
    Stdin,
    File(PathBuf),
    /// A label, or the id of a run.
    History(String),
}

impl Source {
    /// The sources that an argument names. No output replaces one of them from here on.
    fn find(reference: &str) -> Result<Vec<Self>, Failure> {
        let path = Path::new(reference);
        if reference == "-" {
            register_stdin();
            return Ok(vec![Self::Stdin]);
        }
        let paths = if path.is_dir() {
            record_files(path)?
        } else if path.exists() || reference.contains('/') || reference.ends_with(".json") {
            vec![path.to_owned()]
        } else {
            return Ok(vec![Self::History(reference.to_owned())]);
        };
        for file in &paths {
            register(file, InputRole::Document);
        }
        Ok(paths.into_iter().map(Self::File).collect())
    }
}

/// The files of a folder that may hold records, in the order of their names.
fn record_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable_folder(folder, &error))?;
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => return Err(unreadable_folder(folder, &error)),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let has_records = RECORD_FILES.iter().any(|end| name.ends_with(end));
        // A record that is being written has a hidden name.
        if has_records && !name.starts_with('.') && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn unreadable_folder(folder: &Path, error: &io::Error) -> Failure {
    let name = folder.display();
    Failure::Usage(format!("cannot read the folder {name}: {error}"))
}

/// The records that were read so far, and what was refused of the rest.
struct Collected {
    fleet: Fleet,
    hellos: Vec<Hello>,
    refused: Vec<RefusedInput>,
    verbosity: Verbosity,
}

impl Collected {
    /// Reads a source to its end. An unusable part is named, and the rest goes on.
    fn read(&mut self, source: &Source, history: Option<&Path>) -> Result<(), Failure> {
        match source {
            Source::Stdin => self.read_stream("stdin", &mut io::stdin().lock()),
            Source::File(path) => self.read_file(path),
            Source::History(reference) => {
                for record in load_all_whole(reference, history)? {
                    self.add(reference, &record);
                }
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) {
        let name = path.display().to_string();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                self.lose(&name, format!("cannot open the file: {error}"));
                return;
            }
        };
        let mut reader = BufReader::new(file);
        let is_page = match reader.fill_buf() {
            Ok(start) => start.trim_ascii_start().starts_with(b"<"),
            Err(error) => {
                self.lose(&name, format!("cannot read the file: {error}"));
                return;
            }
        };
        if is_page {
            self.read_page(&name, reader);
        } else {
            self.read_stream(&name, &mut reader);
        }
    }

    /// Reads the record in a report page.
    fn read_page(&mut self, name: &str, reader: BufReader<File>) {
        let mut text = String::new();
        let bytes_max = diskproof_model::limits::DOCUMENT_BYTES_MAX as u64;
        if let Err(error) = reader.take(bytes_max + 1).read_to_string(&mut text) {
            self.lose(name, format!("cannot read the page: {error}"));
            return;
        }
        if text.len() as u64 > bytes_max {
            let limit = format_bytes(bytes_max);
            self.lose(name, format!("the page has more than {limit}"));
            return;
        }
        match read_page(&text) {
            Ok(document) => self.take(name, Streamed::Document(Box::new(document))),
            Err(why) => self.lose(name, why),
        }
    }

    fn read_stream(&mut self, name: &str, stream: &mut dyn BufRead) {
        let hellos_before = self.hellos.len();
        match read_stream(stream, &mut |streamed| self.take(name, streamed)) {
            Ok(0) if self.hellos.len() == hellos_before => {
                self.lose(name, "there is no record in it".to_owned());
            }
            Ok(_) => {}
            Err(error) => self.lose(name, format!("cannot read it: {error}")),
        }
    }

    /// Takes what a source of this name streamed.
    fn take(&mut self, name: &str, streamed: Streamed) {
        match streamed {
            Streamed::Hello(hello) => self.hellos.push(hello),
            Streamed::Refused(RefusedPart {
                name: part,
                why,
                is_lost,
            }) => self.refused.push(RefusedInput {
                name: name_of_part(name, &part),
                why,
                is_lost,
            }),
            Streamed::Document(document) => match *document {
                AnyDocument::Record(record) => self.add(name, &judged_record(*record)),
                AnyDocument::Comparison(_) => {
                    self.refuse(name.to_owned(), "this is a comparison; name its runs");
                }
                AnyDocument::Fleet(_) => {
                    self.refuse(name.to_owned(), "this is a fleet; use it with --reference");
                }
            },
        }
    }

    /// Adds a record from an input of this name.
    fn add(&mut self, name: &str, record: &Record) {
        if self.fleet.add(record) == Added::NoFigures {
            let why = "the record has no figure of a workload";
            self.refuse(name_of_part(name, &record.host.name), why);
        }
    }

    /// Notes an input that may have held a record, which is lost.
    fn lose(&mut self, name: &str, why: String) {
        self.refused.push(RefusedInput {
            name: name.to_owned(),
            why,
            is_lost: true,
        });
    }

    /// Notes an input that holds no record for a fleet.
    fn refuse(&mut self, name: String, why: &str) {
        self.refused.push(RefusedInput {
            name,
            why: why.to_owned(),
            is_lost: false,
        });
    }

    /// The error where no record was read: why the first input was refused.
    fn nothing_text(&self) -> String {
        match self.refused.first() {
            Some(refused) => format!("no usable record. {}: {}", refused.name, refused.why),
            None => "no usable record".to_owned(),
        }
    }

    /// The ranks and hosts that began, or were expected, and of which no record came.
    fn missing(&self, expected: Option<&Expected>) -> Vec<MissingRow> {
        let mut missing: BTreeMap<String, String> = BTreeMap::new();
        for hello in &self.hellos {
            if !self.fleet.has_run(&hello.run_id) {
                let name = match hello.rank {
                    Some(rank) => format!("{} #{rank}", hello.host),
                    None => hello.host.clone(),
                };
                let why = "it began, but its record did not come whole";
                missing.insert(name, why.to_owned());
            }
        }
        let mut rows = Vec::new();
        if let Some(expected) = expected {
            for name in expected.absent(&self.fleet.hosts(), &self.hellos) {
                let why = "expected, but nothing came of it".to_owned();
                rows.push(MissingRow { name, why });
            }
        }
        for (name, why) in missing {
            rows.push(MissingRow { name, why });
        }
        rows
    }
}

/// A part of an input, such as a host's lines in a stream; without a part, the input.
fn name_of_part(input: &str, part: &str) -> String {
    if part.is_empty() {
        input.to_owned()
    } else {
        format!("{input}, {part}")
    }
}

/// Files of a folder that may hold records: those that this program writes, and logs of launchers.
const RECORD_FILES: [&str; 5] = [".json", ".html", ".out", ".log", ".txt"];

/// The ranks or hosts of which a record is expected.
enum Expected {
    /// This many ranks; with a launcher that has no ranks, this many hosts.
    Count(u32),
    /// Hosts by name.
    Hosts(Vec<String>),
}

impl Expected {
    /// Reads the value of `--expect`: a number, or a file with a list of hosts.
    fn read(text: &str) -> Result<Self, Failure> {
        if let Ok(count) = text.parse() {
            return Ok(Self::Count(count));
        }
        let path = Path::new(text);
        let content = crate::saved::read_document(path).map_err(|error| {
            Failure::Usage(format!(
                "--expect {text}: neither a number nor a readable list of hosts: {error}"
            ))
        })?;
        let mut hosts = Vec::new();
        for line in content.lines() {
            let host = host_of_line(line);
            if !host.is_empty() && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        if hosts.is_empty() {
            let text = format!("--expect {text}: no host in it; write one name a line");
            return Err(Failure::Usage(text));
        }
        Ok(Self::Hosts(hosts))
    }

    /// The hosts or ranks of which neither a record nor a hello came. `rows` are the hosts of the
    /// records, with their ranks.
    fn absent(&self, rows: &[(&str, Option<u32>)], hellos: &[Hello]) -> Vec<String> {
        let mut seen: Vec<(&str, Option<u32>)> = rows.to_vec();
        seen.extend(hellos.iter().map(|hello| (hello.host.as_str(), hello.rank)));
        match self {
            Self::Hosts(hosts) => hosts
                .iter()
                .filter(|host| !seen.iter().any(|(name, _)| is_same_host(name, host)))
                .cloned()
                .collect(),
            Self::Count(count) => {
                let ranks: Vec<u32> = seen.iter().flat_map(|(_, rank)| *rank).collect();
                if !ranks.is_empty() {
                    return (0..*count)
                        .filter(|rank| !ranks.contains(rank))
                        .map(|rank| format!("rank {rank}"))
                        .collect();
                }
                let hosts: std::collections::BTreeSet<&str> =
                    seen.iter().map(|(name, _)| *name).collect();
                match (*count as usize).saturating_sub(hosts.len()) {
                    0 => Vec::new(),
                    absent => vec![format!("{absent} of {count} hosts")],
                }
            }
        }
    }
}

/// The name in a line of a list of hosts, as MPI and pdsh take them: `db17:4`, `db17 slots=4`.
fn host_of_line(line: &str) -> String {
    let text = line.split('#').next().unwrap_or_default().trim();
    let name = text.split([' ', '\t', ':', ',']).next().unwrap_or_default();
    name.to_owned()
}

/// Whether both are one host: a list may have names with a domain, and a machine its own without.
fn is_same_host(one: &str, other: &str) -> bool {
    fn short(name: &str) -> &str {
        name.split('.').next().unwrap_or(name)
    }
    one == other || ((!one.contains('.') || !other.contains('.')) && short(one) == short(other))
}
