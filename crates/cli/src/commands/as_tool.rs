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
use crate::tool_lines::SharedPrinter;
use anyhow::{Context as _, Result};
use diskproof_compat::{
    DropIn, DropInError, DropInLoad, JobAction, JobRequest, JobSource, LoadTarget, NextPrinter,
    PlanContext, PrimeRequest, Started, ToolPrinter, ToolText, drop_in_named, drop_ins,
};
use diskproof_device::{OpenTarget, TrustedDirectory};
use diskproof_model::plan::Plan;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::symlinkat;
use signal_hook::consts::SIGPIPE;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// With 1 in it, a tool that was started through a link prints no notes.
const QUIET: &str = "DISKPROOF_QUIET";
/// As a shell reports a tool that SIGPIPE has killed: its output had no reader any more.
const UNREAD: u8 = 128 + SIGPIPE as u8;
/// A scratch file is written completely, unless that takes longer.
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

/// A command of more than 80 columns in two lines that a shell joins.
fn continued(command: &str) -> String {
    if command.len() <= 80 {
        return command.to_owned();
    }
    match command.get(..78).and_then(|start| start.rsplit_once(' ')) {
        Some((start, _)) => format!("{start} \\\n    {}", &command[start.len() + 1..]),
        None => command.to_owned(),
    }
}

/// Runs the tool, or creates the links.
pub fn run(flags: &AsFlags) -> Result<Exit> {
    if let Some(directory) = &flags.link {
        return link(directory);
    }
    let Some((name, arguments)) = flags.command.split_first() else {
        return Err(Failure::Usage("name a tool".to_owned()).into());
    };
    let Some(tool) = name.to_str().and_then(drop_in_named) else {
        let (name, known) = (name.display(), names());
        let text = format!("{name}: unknown tool; available tools are {known}");
        return Err(Failure::Usage(text).into());
    };
    Ok(carry_out(tool, arguments, &flags.measuring))
}

/// The tool as whose link the program was started, carried out; `None` under its own name.
pub(crate) fn run_as_link() -> Option<Exit> {
    let mut all = std::env::args_os();
    let first = all.next()?;
    let tool = drop_in_named(Path::new(&first).file_name()?.to_str()?)?;
    let arguments: Vec<OsString> = all.collect();
    Some(carry_out(tool, &arguments, &MeasuringFlags::default()))
}

fn names() -> String {
    let names: Vec<&str> = drop_ins().iter().map(|tool| tool.name).collect();
    names.join(", ")
}

/// Makes a directory and those above it, where they are missing. The one that is there must not be
/// reached through somebody else's link.
fn make_missing(directory: &Path) -> Result<()> {
    if directory.exists() {
        return Ok(());
    }
    let mut above = directory.ancestors();
    let there = above.find(|path| path.as_os_str().is_empty() || path.exists());
    let there = there.filter(|path| !path.as_os_str().is_empty());
    TrustedDirectory::open(there.unwrap_or(Path::new("."))).map_err(Failure::Path)?;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))
}

/// One link per tool, in a directory that is made if it is missing; a name that exists stays as it
/// is.
fn link(directory: &Path) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    make_missing(directory)?;
    let opened = TrustedDirectory::open(directory).map_err(Failure::Path)?;
    for tool in drop_ins() {
        symlinkat(&program, &opened.folder, tool.name).with_context(|| {
            let path = directory.join(tool.name);
            let link = path.display();
            if std::fs::symlink_metadata(&path).is_ok() {
                format!("cannot create the link {link}; remove the existing file")
            } else {
                format!("cannot create the link {link}")
            }
        })?;
    }
    let directory = directory.display();
    eprint_line(&format!("created links in {directory}: {}", names()));
    Ok(Exit::Done)
}

/// Everything ends with an exit code of the tool, which has none of its own for thresholds.
fn carry_out(tool: &'static DropIn, arguments: &[OsString], flags: &MeasuringFlags) -> Exit {
    let mut flags = flags.clone();
    flags.quiet |= std::env::var_os(QUIET).is_some_and(|value| value == "1");
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
            let code = match error.downcast_ref::<Failure>() {
                Some(Failure::Usage(_)) => exits.usage,
                Some(Failure::Probe(_) | Failure::Path(_)) => exits.target,
                _ if is_refused(&error) || open_error(&error).is_some() => exits.target,
                _ => exits.run,
            };
            report(&error);
            code
        }
    };
    if is_reader_gone() {
        return Exit::Tool(UNREAD);
    }
    Exit::Tool(code)
}

fn start(tool: &'static DropIn, arguments: &[OsString], flags: &MeasuringFlags) -> Result<Exit> {
    if flags.size.is_some() {
        let text = format!("--size: {} sets the size by its own options", tool.name);
        return Err(Failure::Usage(text).into());
    }
    let word = |argument: &OsString| {
        let wrong = || Failure::Usage(format!("{}: not valid UTF-8", argument.display()));
        argument.to_str().map(str::to_owned).ok_or_else(wrong)
    };
    let words = arguments.iter().map(word).collect::<Result<Vec<_>, _>>()?;
    match (tool.start)(&words) {
        Err(error) => failed(tool, &error),
        Ok(Started::Text(text)) => {
            print(&text)?;
            Ok(Exit::Done)
        }
        Ok(Started::Load(load)) => run_loads(tool, &words, load, flags),
        Ok(Started::Jobs(request)) => run_jobs(tool, &words, &request, flags),
        Ok(Started::Primes(request)) => run_primes(tool, &request, flags),
    }
}

/// Prints the tool's error.
fn failed(tool: &DropIn, error: &DropInError) -> Result<Exit> {
    print(&error.printed())?;
    Ok(Exit::Tool(match error {
        DropInError::Usage(_) | DropInError::Printed(_) => tool.exits.usage,
        DropInError::Target(_) => tool.exits.target,
        DropInError::Code(code, _) => *code,
    }))
}

/// The target of a load, and the name of a file that is to be created in it, a directory.
fn find_target(
    target: &LoadTarget,
    verbosity: Verbosity,
) -> Result<(TargetIdentity, Option<String>), Failure> {
    let identified = |path: &Path| identify(path, verbosity).map_err(Failure::Probe);
    let path = target.path();
    let is_free = std::fs::symlink_metadata(path)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let name = path.file_name().and_then(OsStr::to_str);
    match (target, name) {
        (LoadTarget::Output(_), Some(name)) if is_free => Ok((
            identified(crate::output_sink::directory_of(path))?,
            Some(name.to_owned()),
        )),
        _ => Ok((identified(path)?, None)),
    }
}

/// Runs a load and those that follow it, until one of them fails.
fn run_loads(
    tool: &'static DropIn,
    words: &[String],
    load: Box<dyn DropInLoad>,
    flags: &MeasuringFlags,
) -> Result<Exit> {
    if load.next().is_some() && (flags.prints_json() || !flags.files().is_empty()) {
        let text = format!(
            "{}: this command line makes several records, but --json and -o accept only one. \
             Measure each part with a separate command",
            tool.name
        );
        return Err(Failure::Usage(text).into());
    }
    let mut printer = None;
    let mut load = load;
    loop {
        let is_shared = printer.is_some();
        let ended = run_load(tool, words, load.as_ref(), flags, &mut printer);
        if !matches!(ended, Ok(Exit::Done)) {
            // The printer still holds the figures of the previous load.
            if let Some(printer) = printer.filter(|_| is_shared) {
                let end = printer.end(&[], None, true, None);
                print(&end.text)?;
                end.saved?;
            }
            return ended;
        }
        let Some(next) = load.next() else {
            return ended;
        };
        if next.printer == NextPrinter::OwnPrinter {
            printer = None;
        }
        load = next.load;
    }
}

fn print(text: &ToolText) -> Result<()> {
    crate::stdio::print_text(&text.stdout)?;
    eprint_text(&text.stderr);
    Ok(())
}

/// Runs a load. Prints it with the `kept` printer, or else with the load's own, and keeps that.
fn run_load(
    tool: &'static DropIn,
    words: &[String],
    load: &dyn DropInLoad,
    flags: &MeasuringFlags,
    kept: &mut Option<SharedPrinter>,
) -> Result<Exit> {
    let head = load.head();
    let target = &head.target;
    if head.writes {
        refuse_foreign_link(target.path())?;
    }
    let (identity, new_name) = match find_target(target, flags.verbosity()) {
        Ok(found) => found,
        Err(error) => {
            print_text(load.text_before_opening())?;
            return Err(error.into());
        }
    };
    if matches!(target, LoadTarget::Output(_))
        && identity.kind == TargetKind::Directory
        && new_name.is_none()
    {
        let path = target.path().display();
        return Err(Failure::Usage(format!("{path} is a directory; name a file")).into());
    }
    let context = PlanContext {
        target: &identity,
        seed: flags.seed.unwrap_or_else(random_seed),
        argv: &command_line(),
    };
    let mut plan = match load.plan(&context) {
        Ok(plan) => plan,
        Err(error) => return failed(tool, &error),
    };
    if plan.workloads().is_empty() && plan.files().is_none() && plan.survey().is_none() {
        let printer = load.printer(&plan, &identity);
        let name = new_name.as_deref();
        return finish_without_data(load, &plan, identity, name, flags, printer);
    }
    let others = flags.probe_all(&head.further_targets)?;
    let paths = others.iter().map(|one| one.path.clone());
    plan.targets.extend(paths);
    print_notes(tool, flags, &head.notes);
    let mut printer = match kept {
        Some(printer) => printer.clone(),
        None => SharedPrinter::new(tool.name, load.printer(&plan, &identity)),
    };
    printer.output = new_name.as_ref().map(|_| target.path().clone());
    if new_name.is_some() {
        register(target.path(), InputRole::Target);
    }
    if let Err(text) = open_files(&mut printer, flags) {
        return failed(tool, &DropInError::Usage(text));
    }
    *kept = Some(printer.clone());
    let mut identities = vec![identity];
    identities.extend(others);
    refuse_duplicates(&identities)?;
    if let Some(scratch) = plan.scratch.take() {
        plan.scratch = Some(if head.fills_scratch_file {
            let size_bytes = scratch.size_bytes;
            scratch.filled_within(size_bytes, FILLING_NS)
        } else {
            scratch
        });
    }
    printer.kept_files = vec![new_name.map(KeptFile::named)];
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.shown = Shown::Tool(printer.clone());
    let ended = measure_work(tool, words, job, head.writes);
    if ended.is_err() && !printer.has_begun() {
        print_text(load.text_before_opening())?;
    }
    ended
}

/// Ends a command line that moves no data, such as that of `dd count=0`, whose file is made.
fn finish_without_data(
    load: &dyn DropInLoad,
    plan: &Plan,
    identity: TargetIdentity,
    new_name: Option<&str>,
    flags: &MeasuringFlags,
    printer: Box<dyn ToolPrinter>,
) -> Result<Exit> {
    if let Some(name) = new_name.filter(|_| !flags.dry_run) {
        let identities = [identity];
        let consent = flags.destructive.consent(&identities)?;
        for admission in admit_all(plan, &identities, &consent)? {
            let file = OpenTarget::create_named(admission, name)?;
            file.set_length(load.empty_file_bytes())?;
            file.mark_own();
        }
    }
    let printer = SharedPrinter::new("", printer);
    let end = printer.end(&[], None, false, None);
    print(&end.text)?;
    end.saved?;
    Ok(Exit::Done)
}

/// Carries out what the command line asks for.
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
            let line = (request.command_line)(&translated.jobs);
            print_text(&line)?;
            return Ok(Exit::Done);
        }
        JobAction::Run => {}
    }
    let plan = translated.plan;
    let kept_files: Vec<Option<KeptFile>> = plan
        .scratch_files
        .iter()
        .map(|file| file.kept.clone())
        .collect();
    let writing = plan.workloads.iter().find(|one| one.flags.writes());
    if let (true, Some(workload)) = (request.is_read_only, writing) {
        let text = format!(
            "job '{}' writes, and --readonly forbids that",
            workload.name
        );
        return Err(Failure::Usage(text).into());
    }
    let writes = writing.is_some();
    refuse_chosen_by_file(request, flags, &plan.targets)?;
    for target in plan.targets.iter().filter(|_| writes) {
        refuse_foreign_link(target)?;
    }
    let shown = match request.sources.last() {
        Some(JobSource::File(path)) => path.as_path(),
        _ => Path::new(tool.name),
    };
    let (plan, identities) = crate::commands::run::plan_jobs(plan, shown, tool.name, flags)?;
    if !request.is_for_programs {
        print_notes(tool, flags, request.notes.iter().chain(&translated.notes));
    }
    let mut printer = SharedPrinter::new(tool.name, (request.printer)(translated.jobs));
    printer.saved_to.clone_from(&request.saved_to);
    for (index, kept) in kept_files.iter().enumerate() {
        // A plan shows the new file itself as the target.
        let target = Path::new(&plan.targets[index]);
        for name in kept.iter().flat_map(|kept| &kept.names) {
            let file = if target.is_dir() {
                target.join(name)
            } else {
                target.with_file_name(name)
            };
            register(&file, InputRole::Target);
        }
    }
    printer.kept_files = kept_files;
    printer.count_disks(&identities);
    if let Err(text) = open_files(&mut printer, flags) {
        return failed(tool, &DropInError::Usage(text));
    }
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.shown = Shown::Tool(printer);
    measure_work(tool, words, job, writes)
}

/// Opens the files that the tool writes, none of which may be an input. With --json the tool writes
/// none.
fn open_files(printer: &mut SharedPrinter, flags: &MeasuringFlags) -> Result<(), String> {
    if flags.prints_json() {
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

/// A file that the user did not write must not decide what is overwritten.
fn refuse_chosen_by_file(
    request: &JobRequest,
    flags: &MeasuringFlags,
    targets: &[PathBuf],
) -> Result<(), Failure> {
    let file = request.sources.iter().find_map(|source| match source {
        JobSource::File(path) => Some(path),
        JobSource::Options { .. } => None,
    });
    let target = targets.iter().find(|target| target.is_file());
    match (file, target) {
        (Some(file), Some(target)) if flags.destructive.overwrite => {
            let (file, target) = (file.display(), target.display());
            Err(Failure::Usage(format!(
                "--overwrite releases only files on the command line, but {target} may be named in \
                 {file}. Write the jobs as options; 'diskproof as fio --showcmd {file}' prints them"
            )))
        }
        _ => Ok(()),
    }
}

/// The job files of the request, and its options, as one plan.
fn translate(request: &JobRequest) -> Result<JobFile, Failure> {
    let mut texts = Vec::new();
    for source in &request.sources {
        texts.push(match source {
            JobSource::Options { global, jobs } => JobText::Options { global, jobs },
            JobSource::File(path) => {
                // As in fio, `<(command)` of a shell is a file, too.
                let is_pipe = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo());
                let text = match path == Path::new("-") {
                    true => {
                        register_stdin();
                        read_all(std::io::stdin().lock())
                    }
                    false if is_pipe => File::open(path)
                        .map_err(|error| error.to_string())
                        .and_then(read_all),
                    false => read_text(path),
                };
                let text = text.map_err(|why| {
                    let path = path.display();
                    Failure::Usage(format!("unable to open '{path}' job file: {why}"))
                })?;
                let text = text.into();
                JobText::File { text, path }
            }
        });
    }
    let output = request.saved_to.as_deref().and_then(Path::parent);
    let overrides = CliOverrides {
        output,
        only_options: request.action != JobAction::Run,
        sections: &request.sections,
        closeness: Closeness::Fio,
        ..CliOverrides::default()
    };
    JobFile::translate_all(&texts, overrides, &System)
        .map_err(|error| Failure::Usage(error.to_string()))
}

fn read_all(pipe: impl Read) -> Result<String, String> {
    let mut text = String::new();
    let read = pipe.take(PLAN_FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

/// Runs it, and prints its lines as they come.
fn run_primes(tool: &DropIn, request: &PrimeRequest, flags: &MeasuringFlags) -> Result<Exit> {
    if flags.prints_json() || flags.dry_run || !flags.outputs.is_empty() {
        let text = "--json, --dry-run and --output do not apply: this test uses no disk".to_owned();
        return Err(Failure::Usage(text).into());
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
    // stderr is the tool's.
    let mut own = MeasuringFlags {
        quiet: !flags.verbose,
        ..flags.clone()
    };
    // One command line makes the file the first time, when there is none to release, and overwrites
    // it later.
    let has = |kind: TargetKind| {
        let has_kind = job.identities.iter().any(|one| one.kind == kind);
        has_kind.then_some(kind)
    };
    let released = has(TargetKind::BlockDevice).or(has(TargetKind::File));
    own.destructive.overwrite &= has(TargetKind::File).is_some();
    let job = MeasuringJob { flags: &own, ..job };
    let ended = measure(job).and_then(Measured::exit);
    match (ended, released) {
        (Err(error), Some(kind)) if is_refused(&error) && writes => {
            report(&error);
            name_accepted(tool, words, kind, &flags.destructive);
            Ok(Exit::Refused)
        }
        (ended, _) => ended,
    }
}

/// The command that releases the target, where none of its flags was given.
fn name_accepted(tool: &DropIn, words: &[String], kind: TargetKind, given: &DestructiveFlags) {
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
fn print_notes<'a>(
    tool: &DropIn,
    flags: &MeasuringFlags,
    notes: impl IntoIterator<Item = &'a String>,
) {
    if !flags.quiet {
        for note in notes {
            eprint_line(&format!("{}: {note}", tool.name));
        }
    }
}
