//! `diskproof watch`: what the disks of the machine do at this moment, and the real load as a
//! record.

mod flags;
mod server;
mod steps;
mod view;

use crate::failure::{Exit, Failure};
use crate::flags::files;
use crate::inspection;
use crate::interrupt::Interrupt;
use crate::output_files::{Trial, check_outputs, save_records};
use crate::provenance::command_line;
use crate::saved::{keep, print_notes, refuse_foreign_history};
use crate::session::facts_now;
use crate::stdout::{ignore_closed_pipe, record_page, to_stdout, write_page};
use diskproof_analysis::judge::judge;
use diskproof_model::data::RunData;
use diskproof_model::observed::ObservedRecord;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use diskproof_report::json;
use diskproof_report::terminal::Detail;
pub use flags::WatchFlags;
use server::without_password;
use std::path::PathBuf;
use steps::{WatchSession, named_devices};
use view::LiveView;

/// Watches until the end, then prints and saves the load where that is wanted.
pub fn run(watch: &WatchFlags) -> anyhow::Result<Exit> {
    if watch.record && watch.history.no_history {
        let text = "--record saves the load to the history, but --no-history prevents that. Use -o \
                    FILE.json";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    if watch.keeps() {
        refuse_foreign_history(&watch.history)?;
    }
    let chosen = named_devices(&watch.devices, watch.verbosity())?;
    let outputs = files(&[&watch.outputs, &watch.html]);
    check_outputs(&outputs, Trial::Create)?;
    let interrupt = Interrupt::listen()?;
    interrupt.end_cleanly();
    inspection::end();
    let mut session = WatchSession::start(watch, chosen)?;
    let exit = follow(watch, &mut session, &interrupt)?;
    interrupt.end_at_once();
    if watch.keeps() || watch.prints_json() || !outputs.is_empty() {
        conclude(watch, session.finish(), &outputs)?;
    }
    Ok(interrupt.signal().map_or(exit, Exit::Signal))
}

/// Shows step after step, until the end or until no device is left.
fn follow(
    watch: &WatchFlags,
    session: &mut WatchSession,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let mut view = LiveView::start(watch)?;
    let mut steps = 0;
    loop {
        let next_end = session.next_end();
        if watch.is_over(steps, next_end) {
            break;
        }
        let due = session.due(next_end);
        if !view.wait_until(due, interrupt, || session.collect()) {
            break;
        }
        steps += 1;
        let step = session.step()?;
        if !view.show(&step, &session.facts, &session.named)? {
            break;
        }
        if session.is_over() {
            drop(view);
            watch.verbosity().note("no watched device is left");
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Done)
}

/// Saves before it prints: a reader that goes away must not cost the record.
fn conclude(
    watch: &WatchFlags,
    (observed, targets): (ObservedRecord, Vec<TargetIdentity>),
    outputs: &[PathBuf],
) -> anyhow::Result<()> {
    let data = RunData {
        observed: Some(observed),
        ..RunData::default()
    };
    // The plan has no work: the load is that of others.
    let plan = Plan {
        targets: targets.iter().map(|one| one.path.clone()).collect(),
        ..Plan::of("watch", without_password(command_line()))
    };
    let mut facts = facts_now(plan, targets);
    facts.note.clone_from(&watch.note);
    let record = judge(facts, &data, &[]);
    let saved = save_records(&record, outputs, watch.verbosity());
    let page = record_page(&record, Detail::Whole);
    let notes = if watch.keeps() {
        keep(&record, &page, &watch.history)
    } else {
        Vec::new()
    };
    let printed = to_stdout(|out| {
        if watch.prints_json() {
            json::write_record(&record, out)
        } else {
            writeln!(out)?;
            write_page(&page, watch.color, out)
        }
    });
    print_notes("", &notes, watch.verbosity());
    saved.and(ignore_closed_pipe(printed))
}
