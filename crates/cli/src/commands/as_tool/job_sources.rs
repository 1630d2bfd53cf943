//! Reads the job files of a command line and its options, and translates them into one plan.

use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::input_files::register_stdin;
use crate::job_file::{CliOverrides, Closeness, JobFile, JobText, System, read_text};
use crate::plan_file::PLAN_FILE_BYTES_MAX;
use crate::provenance::random_seed;
use diskproof_compat::{JobRequest, JobSource};
use diskproof_model::units::format_bytes;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// The job files of the request, and its options, as one plan.
pub(super) fn translate(request: &JobRequest, flags: &MeasuringFlags) -> Result<JobFile, Failure> {
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
