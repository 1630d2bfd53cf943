//! Carries out the plan of every verb that measures: the gate lets it pass, its targets are opened,
//! the driver measures on a thread that another one watches, and the results are judged, saved and
//! printed. With `--dry-run` the plan is only shown.

mod accept;
mod answerable;
mod bench;
mod campaign;
mod cell_errors;
mod conclude;
mod damaged_blocks;
mod drive;
mod ended_run;
mod fences;
mod files;
mod gate;
mod inserts;
mod job;
mod job_commands;
mod journal;
mod on_target;
mod open;
mod ping;
mod prepare_command;
mod running;
mod sides;
mod sink;
mod slices;
mod slots;
mod survey;
mod task_words;
mod together;
mod trials;
mod watchdog;
mod workloads;

pub(crate) use conclude::{Measured, exit_of_record, has_errors, process_may_stay};
pub(crate) use ended_run::EndedRun;
pub(crate) use gate::admit_all;
pub(crate) use job::{AgreedChanges, MeasuringJob, ProgressView, SettingCommands, StdoutForm};
pub(crate) use open::run_facts;
pub(crate) use sides::{ComparedSides, SideResults, side_name};
pub(crate) use sink::EarlyEnd;

use crate::failure::Failure;
use crate::interrupt;
use crate::output_files::{Output, Trial, open_outputs};
use crate::stdio::{Presentation, eprint_line, print_document, style};
use conclude::conclude;
use diskproof_model::plan::Plan;
use diskproof_report::formats::format_of;
use diskproof_report::{json, terminal};
use gate::{Granted, pass_gate, rehearse};
use open::{Opened, open};
use slots::planned_in_slots;
use std::path::PathBuf;
use std::sync::Arc;
use watchdog::supervise;

/// Measures, judges, saves and prints; with `--dry-run`, only shows the plan.
pub(crate) fn measure(job: MeasuringJob<'_>) -> anyhow::Result<Measured<'_>> {
    let flags = job.flags;
    let shown = job.shown.clone();
    let paths = flags.files();
    refuse_unplanned_format(&job.plan, &paths)?;
    let trial = if flags.dry_run {
        Trial::Permission
    } else {
        Trial::Create
    };
    let opened = open_outputs(&paths, flags.history.file(), trial)?;
    let outputs: Vec<Arc<Output>> = opened.into_iter().map(Arc::new).collect();
    Ok(match run(job)? {
        Some(ended) => Measured::Run(Box::new(conclude(ended, &outputs, flags, &shown))),
        None => Measured::PlanShown,
    })
}

/// Measures; `None` where the plan was only shown.
pub(crate) fn run(requested: MeasuringJob<'_>) -> anyhow::Result<Option<EndedRun>> {
    let job = planned_in_slots(requested)?;
    if job.flags.dry_run {
        let granted = pass_gate(&job)?;
        show_plan(&job, granted)?;
        return Ok(None);
    }
    interrupt::listen()?;
    let granted = pass_gate(&job)?;
    let cleanup = job.agreed.cleanup();
    let verbosity = job.flags.verbosity();
    let opened = match open(job, granted)? {
        Opened::Run(opened) => opened,
        Opened::Failed(ended) => return Ok(Some(*ended)),
    };
    let supervised = supervise(*opened);
    let cleaned_up = match cleanup {
        Some(command) => prepare_command::clean_up(&command, verbosity),
        None => Ok(()),
    };
    if let Err(why) = &cleaned_up {
        eprint_line(&format!("error: {why}"));
    }
    let mut ended = supervised?;
    ended.is_cleaned_up = cleaned_up.is_ok();
    Ok(Some(ended))
}

/// Checks what a run would refuse, and shows the plan.
fn show_plan(job: &MeasuringJob<'_>, granted: Granted) -> anyhow::Result<()> {
    rehearse(job, granted)?;
    let MeasuringJob {
        plan,
        identities,
        flags,
        ..
    } = job;
    print_document(
        Presentation::from_json_flag(flags.prints_json()),
        |out| json::write_plan(plan, identities, out),
        |page| terminal::write_plan(plan, identities, &style(flags.color), page),
    )
}

/// Refuses an output that would stay empty, because the run measures nothing for it.
fn refuse_unplanned_format(plan: &Plan, outputs: &[PathBuf]) -> Result<(), Failure> {
    for path in outputs {
        if let Some(format) = format_of(path)
            && !format.requires.is_planned_by(plan)
        {
            let why = format.requires.unplanned_text();
            return Err(Failure::Usage(format!("-o {}: {why}", path.display())));
        }
    }
    Ok(())
}
