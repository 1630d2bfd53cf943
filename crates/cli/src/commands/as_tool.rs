//! `diskproof as`: the command lines of well-known tools. Parsing and output are in the crate
//! `diskproof-compat`; the run is that of every verb.

use crate::failure::{Exit, Failure, is_refused, open_error, report};
use crate::flags::{DestructiveFlags, MeasuringFlags};
use crate::input_files::{InputRole, register, register_stdin};
use crate::job_file::{CliOverrides, Closeness, JobFile, JobText, System, read_text};
use crate::output_files::Trial;
use crate::plan_file::{KeptFile, PLAN_FILE_BYTES_MAX};
use crate::provenance::{command_line, random_seed};
use crate::saved::register_history;
use crate::session::{Measured, MeasuringJob, Shown, admit_all, measure};
use crate::stdio::{Verbosity, eprint_line, eprint_text, is_reader_gone, print_text};
use crate::targets::{identify, refuse_duplicates, refuse_foreign_link};
use crate::tool_lines::{SharedPrinter, ToolEnd};
use anyhow::{Context as _, Result};
use diskproof_compat::{
    DropIn, DropInError, DropInLoad, JobAction, JobRequest, JobSource, LoadTarget, NextPrinter,
    PlanContext, PrimeRequest, Started, ToolText, drop_in_named, drop_ins,
};
use diskproof_device::{OpenTarget, TrustedDirectory};
use diskproof_model::plan::Plan;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use rustix::fs::symlinkat;
use signal_hook::consts::SIGPIPE;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// With 1 in it, a tool that was started through a link prints no notes.
const QUIET: &str = "DISKPROOF_QUIET";
/// The code by which a shell reports a tool that SIGPIPE has killed: its output lost its reader.
const UNREAD: u8 = 128 + SIGPIPE as u8;
/// The announced time has this much for the first write of a scratch file, which is completed even
/// if it takes longer.
const FILLING_NS: u64 = 10_000_000_000;

/// Run the command line of another tool on diskproof's engine, with that tool's output
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct AsFlags {
    /// The tool and its arguments; diskproof's flags go before it
    #[arg(value_name = "TOOL", trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true, required_unless_present = "link")]
    pub command: Vec<OsString>,
    /// Create a link for each tool in this directory; diskproof behaves like the tool whose link
    /// starts it
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub link: Option<PathBuf>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

fn after_help() -> String {
    let mut text = "Tools:\n".to_owned();
    for tool in drop_ins() {
        let _ = writeln!(text, "  {:<15}{}", tool.name, tool.summary);
    }
    text.push_str(
        "\nOptions and output are those of the tool; 'diskproof as TOOL --help' lists the \
         options.\nA line on stderr reports figures with a different meaning. Runs are saved in \
         the\nhistory. diskproof's flags go before the tool. A file is overwritten only \
         with\n--overwrite, a device only with --destroy NAME. 'diskproof help drop-in' lists \
         every\noption and every difference.\n\nExit codes are those of the tool.\n\nExamples:\n",
    );
    for tool in drop_ins() {
        let example = format!("  diskproof as {} {}", tool.name, tool.example);
        let _ = writeln!(text, "{}", continued(&example));
    }
    text.push_str("  diskproof as --link ~/bin");
    text
}

/// A line of help that is longer would be broken by clap, also within quotes.
const HELP_COLUMNS: usize = 80;
/// Ends a line that the shell joins with the next one.
const CONTINUATION: &str = " \\";

/// A command that is too long for a line of help, in two lines that a shell joins.
fn continued(command: &str) -> String {
    if command.len() <= HELP_COLUMNS {
        return command.to_owned();
    }
    let Some(first_line) = command.get(..HELP_COLUMNS - CONTINUATION.len()) else {
        return command.to_owned();
    };
    let Some((start, _)) = first_line.rsplit_once(' ') else {
        return command.to_owned();
    };
    let second_line = &command[start.len() + 1..];
    format!("{start}{CONTINUATION}\n    {second_line}")
}

/// Runs the tool, or creates the links.
pub fn run(flags: &AsFlags) -> Result<Exit> {
    if let Some(directory) = &flags.link {
        return link(directory);
    }
    let Some((name, arguments)) = flags.command.split_first() else {
        return Err(Failure::Usage("name a tool".to_owned()).into());
    };
    if let Some(name) = name.to_str()
        && let Some(tool) = drop_in_named(name)
    {
        return Ok(run_tool(tool, arguments, &flags.measuring));
    }
    let text = format!(
        "{}: unknown tool; available tools are {}",
        name.display(),
        tool_names()
    );
    Err(Failure::Usage(text).into())
}

/// Runs the tool whose link started the program; `None` where it was started under its own name.
pub(crate) fn run_as_link() -> Option<Exit> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    let name = Path::new(&program).file_name()?.to_str()?;
    let tool = drop_in_named(name)?;
    let arguments: Vec<OsString> = words.collect();
    Some(run_tool(tool, &arguments, &MeasuringFlags::default()))
}

fn tool_names() -> String {
    let names: Vec<&str> = drop_ins().iter().map(|tool| tool.name).collect();
    names.join(", ")
}

/// Makes a directory and those above it, where they are missing. The one that is there must not be
/// reached through somebody else's link.
fn make_missing(directory: &Path) -> Result<()> {
    if directory.exists() {
        return Ok(());
    }
    TrustedDirectory::open(existing_parent(directory)).map_err(Failure::Path)?;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))
}

/// The closest ancestor that exists, or `directory` itself; `.` where only names of it are missing.
fn existing_parent(directory: &Path) -> &Path {
    for path in directory.ancestors() {
        // The path is relative, and its first name does not exist.
        if path.as_os_str().is_empty() {
            break;
        }
        if path.exists() {
            return path;
        }
    }
    Path::new(".")
}

/// Makes one link per tool, in a directory that is made if it is missing. A name that exists stays
/// as it is.
fn link(directory: &Path) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    make_missing(directory)?;
    let opened = TrustedDirectory::open(directory).map_err(Failure::Path)?;
    for tool in drop_ins() {
        symlinkat(&program, &opened.folder, tool.name)
            .with_context(|| link_error(&directory.join(tool.name)))?;
    }
    eprint_line(&format!(
        "created links in {}: {}",
        directory.display(),
        tool_names()
    ));
    Ok(Exit::Done)
}

fn link_error(path: &Path) -> String {
    let link = path.display();
    if std::fs::symlink_metadata(path).is_ok() {
        return format!("cannot create the link {link}; remove the existing file");
    }
    format!("cannot create the link {link}")
}

/// Everything ends with an exit code of the tool, which has none of its own for thresholds.
fn run_tool(tool: &'static DropIn, arguments: &[OsString], given: &MeasuringFlags) -> Exit {
    let mut flags = given.clone();
    if std::env::var_os(QUIET) == Some("1".into()) {
        flags.quiet = true;
    }
    flags.destructive.own_files = true;
    let exits = tool.exits;
    crate::inspection::fails_with(exits.run);
    let code = match start(tool, arguments, &flags) {
        Ok(Exit::Done) => 0,
        Ok(Exit::Tool(code)) => code,
        Ok(Exit::Usage) => exits.usage,
        Ok(Exit::Refused) => exits.target,
        Ok(Exit::Failed | Exit::ThresholdMissed | Exit::Undecided) => exits.run,
        Ok(Exit::Signal(number)) => exits.signal.unwrap_or(128 + number),
        Err(error) => {
            report(&error);
            error_code(tool, &error)
        }
    };
    if is_reader_gone() {
        return Exit::Tool(UNREAD);
    }
    Exit::Tool(code)
}

/// The tool's exit code for an error of ours.
fn error_code(tool: &DropIn, error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(_)) => tool.exits.usage,
        Some(Failure::Probe(_) | Failure::Path(_)) => tool.exits.target,
        _ if is_refused(error) || open_error(error).is_some() => tool.exits.target,
        _ => tool.exits.run,
    }
}

fn start(tool: &'static DropIn, arguments: &[OsString], flags: &MeasuringFlags) -> Result<Exit> {
    if flags.size.is_some() {
        let text = format!("--size: {} sets the size by its own options", tool.name);
        return Err(Failure::Usage(text).into());
    }
    let mut words = Vec::new();
    for argument in arguments {
        let Some(word) = argument.to_str() else {
            let text = format!("{}: not valid UTF-8", argument.display());
            return Err(Failure::Usage(text).into());
        };
        words.push(word.to_owned());
    }
    match (tool.start)(&words) {
        Err(error) => print_error(tool, &error),
        Ok(Started::Text(text)) => {
            print(&text)?;
            Ok(Exit::Done)
        }
        Ok(Started::Load(load)) => run_loads(tool, &words, load, flags),
        Ok(Started::Jobs(request)) => run_jobs(tool, &words, &request, flags),
        Ok(Started::Primes(request)) => run_primes(tool, &request, flags),
    }
}

/// Prints the error as the tool words it, and returns the exit code that the tool has for it.
fn print_error(tool: &DropIn, error: &DropInError) -> Result<Exit> {
    print(&error.printed())?;
    let code = match error {
        DropInError::Usage(_) | DropInError::Printed(_) => tool.exits.usage,
        DropInError::Target(_) => tool.exits.target,
        DropInError::Code(code, _) => *code,
    };
    Ok(Exit::Tool(code))
}

/// The target of a load, as it was found on this machine.
struct FoundTarget {
    /// The target, or the directory of a file that is to be created.
    identity: TargetIdentity,
    /// The name of a file that is to be created in the target, a directory.
    new_name: Option<String>,
}

fn find_target(target: &LoadTarget, verbosity: Verbosity) -> Result<FoundTarget, Failure> {
    let path = target.path();
    let new_name = match target {
        LoadTarget::Output(_) if is_free(path) => path.file_name().and_then(OsStr::to_str),
        _ => None,
    };
    let existing = match new_name {
        Some(_) => crate::output_sink::directory_of(path),
        None => path,
    };
    Ok(FoundTarget {
        identity: identify(existing, verbosity).map_err(Failure::Probe)?,
        new_name: new_name.map(str::to_owned),
    })
}

/// Whether nothing has the name yet, not even a broken link.
fn is_free(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Runs a load and those that follow it, until one of them fails.
fn run_loads(
    tool: &'static DropIn,
    words: &[String],
    mut load: Box<dyn DropInLoad>,
    flags: &MeasuringFlags,
) -> Result<Exit> {
    if load.next().is_some() && (flags.prints_record() || !flags.files().is_empty()) {
        let text = format!(
            "{}: this command line makes several records, but --json and -o accept only one. \
             Measure each part with a separate command",
            tool.name
        );
        return Err(Failure::Usage(text).into());
    }
    let mut kept_printer = None;
    loop {
        let is_shared = kept_printer.is_some();
        let ended = run_load(tool, words, load.as_ref(), flags, &mut kept_printer);
        if !matches!(ended, Ok(Exit::Done)) {
            if is_shared && let Some(printer) = kept_printer {
                // It still holds the figures of the previous load.
                print_end(printer.end(&[], None, true, None))?;
            }
            return ended;
        }
        let Some(next) = load.next() else {
            return ended;
        };
        if next.printer == NextPrinter::OwnPrinter {
            kept_printer = None;
        }
        load = next.load;
    }
}

fn print_end(end: ToolEnd) -> Result<()> {
    print(&end.text)?;
    end.saved?;
    Ok(())
}

fn print(text: &ToolText) -> Result<()> {
    crate::stdio::print_text(&text.stdout)?;
    eprint_text(&text.stderr);
    Ok(())
}

/// Runs a load. Prints it with the kept printer, or else with the load's own, and keeps that.
fn run_load(
    tool: &'static DropIn,
    words: &[String],
    load: &dyn DropInLoad,
    flags: &MeasuringFlags,
    kept_printer: &mut Option<SharedPrinter>,
) -> Result<Exit> {
    let head = load.head();
    let found = target_of_load(load, flags)?;
    let context = PlanContext {
        target: &found.identity,
        seed: flags.seed.unwrap_or_else(random_seed),
        argv: &command_line(),
    };
    let mut plan = match load.plan(&context) {
        Ok(plan) => plan,
        Err(error) => return print_error(tool, &error),
    };
    if plan.workloads().is_empty() && plan.files().is_none() && plan.survey().is_none() {
        return finish_without_data(load, &plan, found, flags);
    }
    let others = flags.probe_all(&head.further_targets)?;
    for other in &others {
        plan.targets.push(other.path.clone());
    }
    let mut identities = vec![found.identity];
    identities.extend(others);
    // Before any output file is created.
    refuse_duplicates(&identities)?;
    print_notes(tool, flags, &head.notes);
    let mut printer = match kept_printer {
        Some(printer) => printer.clone(),
        None => SharedPrinter::new(tool.name, load.printer(&plan, &identities[0])),
    };
    printer.output = None;
    if found.new_name.is_some() {
        let path = head.target.path();
        printer.output = Some(path.clone());
        register(path, InputRole::Target);
    }
    if let Err(text) = open_files(&mut printer, flags) {
        return print_error(tool, &DropInError::Usage(text));
    }
    *kept_printer = Some(printer.clone());
    if head.fills_scratch_file
        && let Some(scratch) = plan.scratch.take()
    {
        let size_bytes = scratch.size_bytes;
        plan.scratch = Some(scratch.filled_within(size_bytes, FILLING_NS));
    }
    printer.kept_files = vec![found.new_name.map(KeptFile::named)];
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.shown = Shown::Tool(printer.clone());
    let ended = measure_work(tool, words, job, head.writes);
    if ended.is_err() && !printer.has_begun() {
        print_text(load.text_before_opening())?;
    }
    ended
}

/// Finds the target of a load. Fails for a directory where the tool writes a file.
fn target_of_load(load: &dyn DropInLoad, flags: &MeasuringFlags) -> Result<FoundTarget> {
    let head = load.head();
    let path = head.target.path();
    if head.writes {
        refuse_foreign_link(path)?;
    }
    let found = match find_target(&head.target, flags.verbosity()) {
        Ok(found) => found,
        Err(error) => {
            print_text(load.text_before_opening())?;
            return Err(error.into());
        }
    };
    if matches!(head.target, LoadTarget::Output(_))
        && found.identity.kind == TargetKind::Directory
        && found.new_name.is_none()
    {
        let text = format!("{} is a directory; name a file", path.display());
        return Err(Failure::Usage(text).into());
    }
    Ok(found)
}

/// Ends a command line that moves no data, such as that of `dd count=0`, whose file is made.
fn finish_without_data(
    load: &dyn DropInLoad,
    plan: &Plan,
    found: FoundTarget,
    flags: &MeasuringFlags,
) -> Result<Exit> {
    let printer = load.printer(plan, &found.identity);
    if let Some(name) = found.new_name
        && !flags.dry_run
    {
        let identities = [found.identity];
        let consent = flags.destructive.consent(&identities)?;
        for admission in admit_all(plan, &identities, &consent)? {
            let file = OpenTarget::create_named(admission, &name)?;
            file.set_length(load.empty_file_bytes())?;
            file.mark_own();
        }
    }
    let shared_printer = SharedPrinter::new("", printer);
    print_end(shared_printer.end(&[], None, false, None))?;
    Ok(Exit::Done)
}

/// Runs the jobs of a command line, checks them or shows them.
fn run_jobs(
    tool: &DropIn,
    words: &[String],
    request: &JobRequest,
    flags: &MeasuringFlags,
) -> Result<Exit> {
    // The jobs name files.
    crate::inspection::begin(Path::new(tool.name), flags.verbosity());
    let translated = translate(request)?;
    match request.action {
        JobAction::Check => return Ok(Exit::Done),
        JobAction::ShowCommand => {
            let command = (request.command_line)(&translated.jobs);
            print_text(&command)?;
            return Ok(Exit::Done);
        }
        JobAction::Run => {}
    }
    let jobs_plan = translated.plan;
    let kept_files: Vec<Option<KeptFile>> = jobs_plan
        .scratch_files
        .iter()
        .map(|file| file.kept.clone())
        .collect();
    let writer = jobs_plan.workloads.iter().find(|job| job.flags.writes());
    let writes = writer.is_some();
    if let Some(job) = writer
        && request.is_read_only
    {
        let text = format!("job '{}' writes, and --readonly forbids that", job.name);
        return Err(Failure::Usage(text).into());
    }
    refuse_chosen_by_file(request, flags, &jobs_plan.targets)?;
    if writes {
        for target in &jobs_plan.targets {
            refuse_foreign_link(target)?;
        }
    }
    let source = match request.sources.last() {
        Some(JobSource::File(path)) => path.as_path(),
        _ => Path::new(tool.name),
    };
    let (plan, identities) = crate::commands::run::plan_jobs(jobs_plan, source, tool.name, flags)?;
    if !request.is_for_programs {
        print_notes(tool, flags, &request.notes);
        print_notes(tool, flags, &translated.notes);
    }
    let mut printer = SharedPrinter::new(tool.name, (request.printer)(translated.jobs));
    printer.saved_to.clone_from(&request.saved_to);
    register_kept_files(&kept_files, &plan.targets);
    printer.kept_files = kept_files;
    printer.count_disks(&identities);
    if let Err(text) = open_files(&mut printer, flags) {
        return print_error(tool, &DropInError::Usage(text));
    }
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.shown = Shown::Tool(printer);
    measure_work(tool, words, job, writes)
}

/// Registers the files that jobs create and keep, so that none of them becomes an output file.
fn register_kept_files(kept_files: &[Option<KeptFile>], targets: &[String]) {
    for (index, kept) in kept_files.iter().enumerate() {
        let Some(kept) = kept else {
            continue;
        };
        // A plan shows the new file itself as the target.
        let target = Path::new(&targets[index]);
        for name in &kept.names {
            register(&KeptFile::path_of(name, target), InputRole::Target);
        }
    }
}

/// Opens the files that the tool writes, none of which may be an input. With --json the tool writes
/// none.
fn open_files(printer: &mut SharedPrinter, flags: &MeasuringFlags) -> Result<(), String> {
    if flags.prints_record() {
        return Ok(());
    }
    register_history(flags.history.file());
    let trial = if flags.dry_run {
        Trial::Permission
    } else {
        Trial::Create
    };
    printer.open_files(&flags.files(), trial)
}

/// Refuses `--overwrite` together with a job file: a file that the user did not write must not
/// decide what is overwritten.
fn refuse_chosen_by_file(
    request: &JobRequest,
    flags: &MeasuringFlags,
    targets: &[PathBuf],
) -> Result<(), Failure> {
    if !flags.destructive.overwrite {
        return Ok(());
    }
    let Some(target) = targets.iter().find(|target| target.is_file()) else {
        return Ok(());
    };
    for source in &request.sources {
        if let JobSource::File(path) = source {
            let file = path.display();
            return Err(Failure::Usage(format!(
                "--overwrite releases only files on the command line, but {} may be named in \
                 {file}. Write the jobs as options; 'diskproof as fio --showcmd {file}' prints \
                 them",
                target.display()
            )));
        }
    }
    Ok(())
}

/// The job files of the request, and its options, as one plan.
fn translate(request: &JobRequest) -> Result<JobFile, Failure> {
    let mut texts = Vec::new();
    for source in &request.sources {
        texts.push(match source {
            JobSource::Options { global, jobs } => JobText::Options { global, jobs },
            JobSource::File(path) => match read_job_file(path) {
                Ok(text) => JobText::File {
                    text: text.into(),
                    path,
                },
                Err(why) => {
                    return Err(Failure::Usage(format!(
                        "unable to open '{}' job file: {why}",
                        path.display()
                    )));
                }
            },
        });
    }
    let output_folder = match &request.saved_to {
        Some(path) => path.parent(),
        None => None,
    };
    let overrides = CliOverrides {
        output: output_folder,
        only_options: request.action != JobAction::Run,
        sections: &request.sections,
        closeness: Closeness::Fio,
        ..CliOverrides::default()
    };
    let translated = JobFile::translate_all(&texts, overrides, &System)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    match translated.jobs.group_error() {
        Some(why) => Err(Failure::Usage(why)),
        None => Ok(translated),
    }
}

fn read_job_file(path: &Path) -> Result<String, String> {
    if path == Path::new("-") {
        register_stdin();
        return read_pipe(io::stdin().lock());
    }
    // As in fio, `<(command)` of a shell is a file, too.
    if let Ok(metadata) = std::fs::metadata(path)
        && metadata.file_type().is_fifo()
    {
        return match File::open(path) {
            Ok(pipe) => read_pipe(pipe),
            Err(error) => Err(error.to_string()),
        };
    }
    read_text(path)
}

fn read_pipe(pipe: impl Read) -> Result<String, String> {
    let mut text = String::new();
    // A byte more shows that the text goes on.
    match pipe.take(PLAN_FILE_BYTES_MAX + 1).read_to_string(&mut text) {
        Ok(bytes) if bytes as u64 > PLAN_FILE_BYTES_MAX => Err(format!(
            "the text is larger, but a job file has at most {}",
            format_bytes(PLAN_FILE_BYTES_MAX)
        )),
        Ok(_) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the computing load, and prints the tool's lines as they come.
fn run_primes(tool: &DropIn, request: &PrimeRequest, flags: &MeasuringFlags) -> Result<Exit> {
    if flags.prints_record() || flags.dry_run || !flags.files().is_empty() {
        let text = "--json, --dry-run, --output and --html do not apply: this test uses no disk";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    print_notes(tool, flags, &request.notes);
    print_text(&request.printer.begin())?;
    let mut printed = Ok(());
    let measured = diskproof_engine::measure_primes(&request.load, &mut |interval| {
        if printed.is_ok() {
            printed = print_text(&request.printer.interval(interval));
        }
        if is_reader_gone() {
            // The load only computes: nothing is to be undone.
            std::process::exit(UNREAD.into());
        }
    });
    let result = measured.context("cannot start a thread")?;
    printed?;
    print_text(&request.printer.end(&result))?;
    Ok(Exit::Done)
}

/// Measures, and names the command that releases a target where the gate refuses one.
fn measure_work(
    tool: &DropIn,
    words: &[String],
    job: MeasuringJob<'_>,
    writes: bool,
) -> Result<Exit> {
    let flags = job.flags;
    let has_file = has_kind(&job.identities, TargetKind::File);
    let released_kind = if has_kind(&job.identities, TargetKind::BlockDevice) {
        Some(TargetKind::BlockDevice)
    } else if has_file {
        Some(TargetKind::File)
    } else {
        None
    };
    // stderr is the tool's.
    let mut quiet_flags = MeasuringFlags {
        quiet: !flags.verbose,
        ..flags.clone()
    };
    // One command line makes the file the first time, when there is none to release, and overwrites
    // it later.
    quiet_flags.destructive.overwrite &= has_file;
    let quiet_job = MeasuringJob {
        flags: &quiet_flags,
        ..job
    };
    let error = match measure(quiet_job).and_then(Measured::exit) {
        Ok(exit) => return Ok(exit),
        Err(error) => error,
    };
    match released_kind {
        Some(kind) if is_refused(&error) && writes => {
            report(&error);
            print_release_command(tool, words, kind, &flags.destructive);
            Ok(Exit::Refused)
        }
        _ => Err(error),
    }
}

fn has_kind(identities: &[TargetIdentity], kind: TargetKind) -> bool {
    identities.iter().any(|identity| identity.kind == kind)
}

/// Prints the command that releases the target, where none of its flags was given.
fn print_release_command(
    tool: &DropIn,
    words: &[String],
    kind: TargetKind,
    given: &DestructiveFlags,
) {
    if given.why_only_read(kind).is_none() {
        return;
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let flag = match kind {
        TargetKind::BlockDevice => "--destroy NAME",
        _ => "--overwrite",
    };
    eprint_line(&format!(
        "to release it: diskproof as {flag} {} {}",
        tool.name,
        words.join(" ")
    ));
}

/// Prints what the figures mean, in the name of the tool.
fn print_notes(tool: &DropIn, flags: &MeasuringFlags, notes: &[String]) {
    if flags.quiet {
        return;
    }
    for note in notes {
        eprint_line(&format!("{}: {note}", tool.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_text_of_a_pipe_is_whole_or_refused() {
        let longest = "#".repeat(PLAN_FILE_BYTES_MAX as usize);
        assert_eq!(read_pipe(longest.as_bytes()).as_deref(), Ok(longest.as_str()));
        let longer = longest + "\n[last]";
        let why = read_pipe(longer.as_bytes()).expect_err("too long");
        assert!(why.contains("at most 1 MiB"), "{why}");
    }
}
