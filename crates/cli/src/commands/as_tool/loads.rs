//! Runs the loads of another tool's command line one after another: each is planned for the target
//! that was found, measured and printed.

use super::measuring::measure_as_tool;
use super::output::{open_output_files, print_end, print_error, print_notes};
use super::test_files::directory_of_test_file;
use crate::failure::{Exit, Failure, is_refused, report};
use crate::flags::MeasuringFlags;
use crate::input_files::{InputRole, register};
use crate::output_sink::directory_of;
use crate::plan_file::KeptFile;
use crate::provenance::{command_line, random_seed};
use crate::session::{MeasuringJob, StdoutForm, admit_all};
use crate::stdio::print_text;
use crate::targets::{identify_with_reserve, refuse_duplicates, refuse_foreign_link};
use crate::tool_lines::SharedPrinter;
use anyhow::Result;
use diskproof_compat::{DropIn, DropInError, DropInLoad, LoadTarget, NextPrinter, PlanContext};
use diskproof_device::OpenTarget;
use diskproof_model::plan::Plan;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// The announced time has this much for the first write of a scratch file, which is completed even
/// if it takes longer. Chosen, not measured.
const FILLING_NS: u64 = 10_000_000_000;

/// The target of a load, as it was found on this machine.
struct FoundTarget {
    /// The target, or the directory of a file that is to be created.
    identity: TargetIdentity,
    /// The name of a file that is to be created in the target, a directory.
    new_name: Option<String>,
}

fn find_target(target: &LoadTarget, flags: &MeasuringFlags) -> Result<FoundTarget, Failure> {
    let (existing, new_name) = match target {
        LoadTarget::Output(path) if is_free(path) => match path.file_name().and_then(OsStr::to_str)
        {
            Some(name) => (directory_of(path).to_owned(), Some(name.to_owned())),
            None => (path.clone(), None),
        },
        LoadTarget::Output(path) | LoadTarget::Existing(path) => (path.clone(), None),
        LoadTarget::Nameless(path) => {
            let directory = directory_of_test_file(path)
                .map_err(|why| Failure::Usage(format!("{}: {why}", path.display())))?;
            (directory, None)
        }
    };
    Ok(FoundTarget {
        identity: identify_with_reserve(&existing, flags.destructive.keep_free, flags.verbosity())?,
        new_name,
    })
}

/// True if this user may not read it. Some tools have an exit code of its own for that, which is
/// the error number of open(2).
fn is_unreadable(path: &Path) -> bool {
    accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
}

/// True if nothing has the name yet, not even a broken link.
fn is_free(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Runs a load and those that follow it, until one of them fails.
pub(super) fn run(
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
    let mut own_flags = flags.clone();
    if load.next().is_some() {
        // Its runs answer one question: whoever judges the newest one looks at all of them.
        own_flags.history.command = Some(format!("{:x}", random_seed()));
    }
    let mut kept_printer = None;
    loop {
        let is_shared = kept_printer.is_some();
        let ended = run_load(tool, words, load.as_ref(), &own_flags, &mut kept_printer);
        if !matches!(ended, Ok(Exit::Done)) {
            if is_shared && let Some(printer) = kept_printer {
                // It still holds the figures of the previous load, and prints them as the tool does
                // when it is interrupted.
                print_end(printer.end_early())?;
            }
            return match ended {
                Err(error) if is_unreadable(load.head().target.path()) && is_refused(&error) => {
                    report(&error);
                    Ok(Exit::Tool(tool.exits.unreadable))
                }
                ended => ended,
            };
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

/// Runs a load. Prints it with the kept printer, or else with the load's own, and keeps that: one
/// that was opened holds the figures of all loads which share it.
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
    if let Some(name) = &found.new_name {
        add_new_file(name, &head.target, &mut plan, &mut printer);
    }
    if let Err(text) = open_output_files(&mut printer, flags) {
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
    let end_code = load.end_code(&identities[0]);
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.shown = StdoutForm::Tool(printer.clone());
    let ended = measure_as_tool(tool, words, job, head.writes_target);
    if ended.is_err() && !printer.has_begun() {
        print_text(load.text_before_opening())?;
    }
    match ended {
        Ok(Exit::Done) if end_code != 0 && !flags.dry_run => Ok(Exit::Tool(end_code)),
        ended => ended,
    }
}

/// Names the file that the tool creates in the plan and in its output. From here on no output file
/// is the target.
fn add_new_file(name: &str, target: &LoadTarget, plan: &mut Plan, printer: &mut SharedPrinter) {
    // The plan names the file itself, as it does for jobs.
    let directory = plan.targets[0].trim_end_matches('/').to_owned();
    plan.targets[0] = format!("{directory}/{name}");
    let path = target.path();
    printer.output = Some(path.clone());
    register(path, InputRole::Target);
}

/// Finds the target of a load. Fails for a directory where the tool writes a file.
fn target_of_load(load: &dyn DropInLoad, flags: &MeasuringFlags) -> Result<FoundTarget> {
    let head = load.head();
    let path = head.target.path();
    if head.writes_target {
        refuse_foreign_link(path)?;
    }
    let found = match find_target(&head.target, flags) {
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
            let file = OpenTarget::create_named(admission, &name, 0)?;
            file.set_length(load.empty_file_bytes())?;
            file.mark_own();
        }
    }
    let shared_printer = SharedPrinter::new("", printer);
    print_end(shared_printer.end_without_data())?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_free_where_nothing_has_it() {
        let here = tempfile::tempdir().unwrap();
        let (free, taken) = (here.path().join("free"), here.path().join("taken"));
        std::fs::write(&taken, "").unwrap();
        let broken = here.path().join("broken");
        std::os::unix::fs::symlink("nowhere", &broken).unwrap();
        assert!(is_free(&free));
        assert!(!is_free(&taken));
        // What is created under the name would be elsewhere.
        assert!(!is_free(&broken));
        assert!(!is_free(&taken.join("below a file")));
    }
}
