//! Runs the jobs of fio, from job files and from options: translates them into one plan
//! (`job_sources`), refuses what the user has not released (`job_refusals`), then shows the plan or
//! measures it with fio's output.

use super::job_refusals::refuse_unreleased_writes;
use super::job_sources::translate;
use super::measuring::measure_as_tool;
use super::output::{open_output_files, print_end, print_error, print_notes};
use crate::commands::run::{PlannedJobs, plan_jobs};
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::input_files::{InputRole, register};
use crate::job_file::JobFile;
use crate::plan_file::KeptFile;
use crate::session::{AgreedChanges, MeasuringJob, StdoutForm};
use crate::stdio::print_text;
use crate::tool_lines::SharedPrinter;
use anyhow::Result;
use diskproof_compat::{DescribedJobs, DropIn, DropInError, JobAction, JobRequest, JobSource};
use std::path::Path;

/// Runs the jobs of a command line, checks them or shows them.
pub(super) fn run(
    tool: &DropIn,
    words: &[String],
    request: &JobRequest,
    flags: &MeasuringFlags,
) -> Result<Exit> {
    // The jobs name files.
    crate::inspection::begin(Path::new(tool.name), flags.verbosity());
    let translated = translate(request, flags)?;
    match request.action {
        JobAction::Check => return Ok(Exit::Done),
        JobAction::ShowCommand => {
            let command = (request.command_line)(&translated.jobs);
            print_text(&command)?;
            return Ok(Exit::Done);
        }
        JobAction::Run => {}
    }
    refuse_unreleased_writes(request, &translated.plan, &translated.found_files, flags)?;
    if translated.plan.workloads.is_empty() {
        return end_without_data(tool, request, flags, translated.jobs);
    }
    measure_jobs(tool, words, request, translated, flags)
}

/// Plans the jobs for what is found on this machine, and measures them.
fn measure_jobs(
    tool: &DropIn,
    words: &[String],
    request: &JobRequest,
    translated: JobFile,
    flags: &MeasuringFlags,
) -> Result<Exit> {
    let jobs_plan = translated.plan;
    let mut kept_files: Vec<Option<KeptFile>> = Vec::new();
    for file in &jobs_plan.scratch_files {
        kept_files.push(file.kept.clone());
    }
    let writes = jobs_plan.workloads.iter().any(|job| job.flags.writes());
    let source = match request.sources.last() {
        Some(JobSource::File(path)) => path.as_path(),
        Some(JobSource::Options { .. }) | None => Path::new(tool.name),
    };
    let PlannedJobs { plan, identities } = plan_jobs(jobs_plan, source, tool.name, flags)?;
    if !request.is_for_programs {
        print_notes(tool, flags, &request.notes);
        print_notes(tool, flags, &translated.notes);
    }
    let commands = translated.jobs.commands();
    // Before an output file is opened.
    register_kept_files(&kept_files, &plan.targets);
    let mut printer = match opened_printer(tool, request, translated.jobs, flags) {
        Ok(printer) => printer,
        Err(text) => return print_error(tool, &DropInError::Usage(text)),
    };
    printer.kept_files = kept_files;
    printer.count_disks(&identities);
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.shown = StdoutForm::Tool(printer.clone());
    if !commands.is_empty() {
        job.agreed = AgreedChanges::JobCommands(commands);
    }
    match measure_as_tool(tool, words, job, writes)? {
        // A job that could not begin fails without any request.
        exit @ (Exit::Failed | Exit::Done) => Ok(match printer.failed_code() {
            Some(code) => Exit::Tool(code),
            None => exit,
        }),
        exit => Ok(exit),
    }
}

/// The printer of the jobs, with its output files open. The error is what the tool prints where one
/// cannot be opened.
fn opened_printer(
    tool: &DropIn,
    request: &JobRequest,
    jobs: DescribedJobs,
    flags: &MeasuringFlags,
) -> std::result::Result<SharedPrinter, String> {
    let mut printer = SharedPrinter::new(tool.name, (request.printer)(jobs));
    printer.saved_to.clone_from(&request.saved_to);
    open_output_files(&mut printer, flags)?;
    Ok(printer)
}

/// Prints the output of jobs that have no file, and so move nothing, or fail before they begin.
fn end_without_data(
    tool: &DropIn,
    request: &JobRequest,
    flags: &MeasuringFlags,
    jobs: DescribedJobs,
) -> Result<Exit> {
    if flags.prints_record() {
        let text = "the jobs have no file and move nothing, so there is no record";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    if flags.dry_run {
        return Ok(Exit::Done);
    }
    let printer = match opened_printer(tool, request, jobs, flags) {
        Ok(printer) => printer,
        Err(text) => return print_error(tool, &DropInError::Usage(text)),
    };
    print_text(&printer.begin())?;
    print_end(printer.end_without_data())?;
    Ok(match printer.failed_code() {
        Some(code) => Exit::Tool(code),
        None => Exit::Done,
    })
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
