//! What a tool asks for, carried out: jobs of fio, which are read as every job file is, a load of
//! processors, and everything that is measured. Names the command that the gate accepts.

use crate::commands::run::plan_jobs;
use crate::failure::{Exit, Failure, report};
use crate::flags::DestructiveFlags;
use crate::flags::MeasuringFlags;
use crate::inspection;
use crate::job_file::{CliOverrides, Closeness, JobFile, JobText, System, read_text};
use crate::plan_file::PLAN_FILE_BYTES_MAX;
use crate::session::{Filling, MeasuringJob, measure};
use crate::stderr::eprint_line;
use crate::stdout::print_text;
use crate::tool_lines::SharedPrinter;
use anyhow::Context as _;
use diskproof_compat::{DropIn, JobAction, JobRequest, JobSource, PrimeRequest};
use diskproof_device::OpenError;
use diskproof_engine::measure_primes;
use diskproof_model::shell::quoted;
use diskproof_model::target::TargetKind;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Carries out what the command line asks for.
pub(super) fn run_jobs(
    tool: &DropIn,
    words: &[String],
    request: &JobRequest,
    flags: &MeasuringFlags,
) -> anyhow::Result<Exit> {
    // The jobs name files.
    inspection::begin(Path::new(tool.name), flags.verbosity());
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
    let (plan, kept_name) = (translated.plan, translated.kept_name);
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
    let shown = match request.sources.last() {
        Some(JobSource::File(path)) => path.as_path(),
        _ => Path::new(tool.name),
    };
    let (plan, identities) = plan_jobs(plan, shown, tool.name, flags)?;
    if !request.is_for_programs {
        print_notes(tool, flags, request.notes.iter().chain(&translated.notes));
    }
    let mut printer = SharedPrinter::new(tool.name, (request.printer)(translated.jobs));
    printer.saved_to.clone_from(&request.saved_to);
    printer.kept_name = kept_name;
    let mut job = MeasuringJob::new(plan, identities, Filling::Span, flags);
    job.tool = Some(printer);
    measure_work(tool, words, job, writes)
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
                    true => read_all(std::io::stdin().lock()),
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
pub(super) fn run_primes(
    tool: &DropIn,
    request: &PrimeRequest,
    flags: &MeasuringFlags,
) -> anyhow::Result<Exit> {
    if flags.prints_json() || flags.dry_run || !flags.outputs.is_empty() {
        let text = "--json, --dry-run and --output do not apply: this test uses no disk".to_owned();
        return Err(Failure::Usage(text).into());
    }
    print_notes(tool, flags, &request.notes);
    print_text(&request.printer.begin())?;
    let mut printed = Ok(());
    let measured = measure_primes(&request.load, &mut |interval| {
        if printed.is_ok() {
            printed = print_text(&request.printer.interval(interval));
        }
    });
    let result = measured.context("cannot start a thread")?;
    printed?;
    print_text(&request.printer.end(&result))?;
    Ok(Exit::Done)
}

/// Measures, and names the command that releases a target where the gate refuses one.
pub(super) fn measure_work(
    tool: &DropIn,
    words: &[String],
    job: MeasuringJob<'_>,
    writes: bool,
) -> anyhow::Result<Exit> {
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
    let ended = measure(job);
    match (ended, released) {
        (Err(error), Some(kind)) if is_refused(&error) && writes => {
            report(&error);
            name_accepted(tool, words, kind, &flags.destructive);
            Ok(Exit::Refused)
        }
        (ended, _) => ended,
    }
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Failure::Refused(_) | Failure::Open(OpenError::Refused(_)))
    )
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
pub(super) fn print_notes<'a>(
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
