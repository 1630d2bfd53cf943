//! fio jobs: read as every job file is, run and printed as fio does it.

use super::work::{measure_work, print_notes};
use crate::commands::run::plan_jobs;
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::inspection;
use crate::job_file::{CliOverrides, Closeness, JobFile, JobText, System, read_text};
use crate::plan_file::PLAN_FILE_BYTES_MAX;
use crate::session::{Filling, MeasuringJob, ToolRun};
use crate::stdout::print_text;
use crate::tool_lines::SharedPrinter;
use diskproof_compat::{DropIn, JobAction, JobRequest, JobSource};
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
    let job = MeasuringJob::new(plan, identities, Filling::Span, flags);
    measure_work(tool, words, job, writes, ToolRun { printer, kept_name })
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
