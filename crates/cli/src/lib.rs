//! The program as a library: reads the command line, runs one verb, turns errors into sentences and
//! exit codes. It is one so that tests reach what a verb plans; other programs should use the
//! crates below instead.
#![forbid(unsafe_code)]

pub mod args;
pub mod commands;
pub mod consent;
mod data_sheet;
mod elsewhere;
mod execute;
pub mod failure;
mod formats;
pub mod health;
mod interrupt;
mod job_file;
mod live;
mod measure;
mod output;
mod patience;
mod plan_file;
mod resume;
pub mod saved;
mod supervise;
mod work;
pub mod workload;

use args::{Args, Verb};
use clap::Parser as _;
use failure::{Exit, Failure};
use std::process::ExitCode;

/// Everything that the program does.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let words: Vec<String> = std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            return usage(elsewhere::told(error, &words));
        }
    };
    let done = match &args.verb {
        Verb::Check(check) => commands::check::check(check),
        Verb::Run(run) => commands::run::run(run),
        Verb::Curve(curve) => commands::curve::curve(curve),
        Verb::Info(info) => commands::info::info(info),
        Verb::Show(show) => commands::show::show(show),
        Verb::Compare(compare) => commands::compare::compare(compare),
        Verb::History(history) => commands::history::history(history),
        Verb::Export(export) => commands::export::export(export),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => report(&error),
    }
}

/// clap's own help and usage errors: help goes to stdout and is no error.
fn usage(error: clap::Error) -> ExitCode {
    // A closed stdout or stderr leaves nobody to tell.
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage.into()
    } else {
        Exit::Done.into()
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    if output::is_broken_pipe(error) {
        // `| head` has seen enough.
        return Exit::Done.into();
    }
    let failure = error.downcast_ref::<Failure>();
    let exit = failure.map_or(Exit::Failed, Failure::exit);
    let text = format!("error: {}", with_causes(error));
    // One sentence, whatever stands in the path that it names.
    let is_sentence =
        matches!(failure, Some(Failure::Probe(_) | Failure::Open(_))) && exit != Exit::Refused;
    output::complain(&if is_sentence {
        text.replace('\n', "\\n")
    } else {
        text
    });
    exit.into()
}

/// An error and what caused it; most of ours name the cause themselves, with what to do about it.
fn with_causes(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .reduce(|told, cause| {
            if told.contains(&cause) {
                told
            } else {
                format!("{told}: {cause}")
            }
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;
    use diskproof_engine::RunError;

    #[test]
    fn a_cause_is_told_once() {
        let source = std::io::Error::from_raw_os_error(12);
        let worker = RunError::Worker {
            path: "disk".to_owned(),
            workload: "load".to_owned(),
            source,
        };
        let text = with_causes(&Failure::Run(worker).into());
        assert_eq!(text.matches("os error 12").count(), 1, "{text}");
        let deep: anyhow::Error = Err::<(), _>(std::io::Error::other("no handler"))
            .context("signals cannot be caught")
            .unwrap_err();
        assert_eq!(with_causes(&deep), "signals cannot be caught: no handler");
    }
}
