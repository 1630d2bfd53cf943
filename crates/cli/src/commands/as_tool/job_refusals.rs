//! Refuses jobs that would write to what the user has not released knowingly: a job file is often
//! the work of somebody else.

use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::plan_file::PlanFile;
use crate::targets::refuse_foreign_link;
use anyhow::Result;
use diskproof_compat::{JobRequest, JobSource};
use std::path::PathBuf;

/// Refuses jobs that would write to what the user has not released knowingly.
pub(super) fn refuse_unreleased_writes(
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

#[cfg(test)]
mod tests {
    use super::super::job_sources::translate;
    use super::*;
    use diskproof_compat::{Started, drop_in_named};

    /// True if these words of fio are refused with `--overwrite`.
    fn is_refused(words: &[String]) -> bool {
        let fio = drop_in_named("fio").unwrap();
        let Ok(Started::Jobs(request)) = (fio.start)(words) else {
            panic!("no jobs: {words:?}");
        };
        let mut flags = MeasuringFlags::default();
        flags.destructive.overwrite = true;
        let jobs = translate(&request, &flags).unwrap();
        refuse_unreleased_writes(&request, &jobs.plan, &jobs.found_files, &flags).is_err()
    }

    #[test]
    fn overwrite_releases_only_files_that_the_command_line_names() {
        let here = tempfile::tempdir_in("/var/tmp").unwrap();
        let (data, jobs) = (here.path().join("data"), here.path().join("jobs.fio"));
        std::fs::write(&data, [1; 65536]).unwrap();
        let data = data.to_str().unwrap();
        let named = format!("--filename={data}");
        let writes = ["--name=a", "--rw=write", "--bs=4k", "--size=64k", &named];
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(!is_refused(&words(&writes)));
        assert!(is_refused(&words(&[
            "--readonly",
            writes[0],
            writes[1],
            &named
        ])));
        let text = format!("[a]\nrw=write\nbs=4k\nsize=64k\nfilename={data}\n");
        std::fs::write(&jobs, text).unwrap();
        assert!(is_refused(&words(&[jobs.to_str().unwrap()])));
        std::fs::remove_file(&jobs).unwrap();
        let found = format!("--opendir={}", here.path().display());
        assert!(is_refused(&words(&[
            "--name=a",
            "--rw=read",
            "--bs=4k",
            &found
        ])));
    }
}
