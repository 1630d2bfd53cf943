//! Runs the jobs of fio, from job files and from options: translates them into one plan, checks it,
//! shows it, or measures it with fio's output.

use super::measuring::measure_as_tool;
use super::output::{open_output_files, print_end, print_error, print_notes};
use crate::commands::run::{PlannedJobs, plan_jobs};
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::input_files::{InputRole, register, register_stdin};
use crate::job_file::{CliOverrides, Closeness, JobFile, JobText, System, read_text};
use crate::plan_file::{KeptFile, PLAN_FILE_BYTES_MAX, PlanFile};
use crate::provenance::random_seed;
use crate::session::{AgreedChanges, MeasuringJob, StdoutForm};
use crate::stdio::print_text;
use crate::targets::refuse_foreign_link;
use crate::tool_lines::SharedPrinter;
use anyhow::Result;
use diskproof_compat::{DescribedJobs, DropIn, DropInError, JobAction, JobRequest, JobSource};
use diskproof_model::units::format_bytes;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

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
    let jobs_plan = translated.plan;
    let kept_files: Vec<Option<KeptFile>> = jobs_plan
        .scratch_files
        .iter()
        .map(|file| file.kept.clone())
        .collect();
    refuse_unreleased_writes(request, &jobs_plan, &translated.found_files, flags)?;
    let writes = jobs_plan.workloads.iter().any(|job| job.flags.writes());
    if jobs_plan.workloads.is_empty() {
        return end_without_data(tool, request, flags, translated.jobs);
    }
    let source = match request.sources.last() {
        Some(JobSource::File(path)) => path.as_path(),
        _ => Path::new(tool.name),
    };
    let PlannedJobs { plan, identities } = plan_jobs(jobs_plan, source, tool.name, flags)?;
    if !request.is_for_programs {
        print_notes(tool, flags, &request.notes);
        print_notes(tool, flags, &translated.notes);
    }
    let commands = translated.jobs.commands();
    let mut printer = SharedPrinter::new(tool.name, (request.printer)(translated.jobs));
    printer.saved_to.clone_from(&request.saved_to);
    register_kept_files(&kept_files, &plan.targets);
    printer.kept_files = kept_files;
    printer.count_disks(&identities);
    if let Err(text) = open_output_files(&mut printer, flags) {
        return print_error(tool, &DropInError::Usage(text));
    }
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

/// Prints the output of jobs that have no file, and so move nothing.
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
    let mut printer = SharedPrinter::new(tool.name, (request.printer)(jobs));
    printer.saved_to.clone_from(&request.saved_to);
    if let Err(text) = open_output_files(&mut printer, flags) {
        return print_error(tool, &DropInError::Usage(text));
    }
    print_text(&printer.begin())?;
    print_end(printer.end_without_data())?;
    Ok(Exit::Done)
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

/// Refuses jobs that would write to what the user has not released knowingly.
fn refuse_unreleased_writes(
    request: &JobRequest,
    jobs_plan: &PlanFile,
    found_files: &[PathBuf],
    flags: &MeasuringFlags,
) -> Result<()> {
    let writer = jobs_plan.workloads.iter().find(|job| job.flags.writes());
    if let Some(job) = writer {
        refuse_writer(request, &job.name, &jobs_plan.targets)?;
    }
    refuse_overwrite_with_job_file(request, flags, &jobs_plan.targets)?;
    refuse_overwrite_of_found_files(flags, found_files)?;
    Ok(())
}

/// Refuses a job that writes where the user forbids that, or to what a link of another user names.
fn refuse_writer(request: &JobRequest, job: &str, targets: &[PathBuf]) -> Result<()> {
    if request.is_read_only {
        let text = format!("job '{job}' writes, and --readonly forbids that");
        return Err(Failure::Usage(text).into());
    }
    for target in targets {
        refuse_foreign_link(target)?;
    }
    Ok(())
}

/// Refuses `--overwrite` together with a job file: a file that the user did not write must not
/// decide what is overwritten.
fn refuse_overwrite_with_job_file(
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

/// Refuses `--overwrite` together with files that no job names: the user has not seen what it would
/// release.
fn refuse_overwrite_of_found_files(
    flags: &MeasuringFlags,
    found_files: &[PathBuf],
) -> Result<(), Failure> {
    match found_files.first() {
        Some(file) if flags.destructive.overwrite => Err(Failure::Usage(format!(
            "--overwrite releases only files that the command line names, and opendir has found \
             {}. Name the files with --filename",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// The job files of the request, and its options, as one plan.
fn translate(request: &JobRequest, flags: &MeasuringFlags) -> Result<JobFile, Failure> {
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
        action: request.action,
        sections: &request.sections,
        closeness: Closeness::Fio,
        is_read_only: request.is_read_only,
        seed: flags.seed.unwrap_or_else(random_seed),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_text_of_a_pipe_is_whole_or_refused() {
        let longest = "#".repeat(PLAN_FILE_BYTES_MAX as usize);
        assert_eq!(
            read_pipe(longest.as_bytes()).as_deref(),
            Ok(longest.as_str())
        );
        let longer = longest + "\n[last]";
        let why = read_pipe(longer.as_bytes()).expect_err("too long");
        assert!(why.contains("at most 1 MiB"), "{why}");
    }
}
