//! `diskproof watch`: what the disks of the machine do at this moment, and the real load as a
//! record.

mod conclusion;
mod flags;
mod live_view;
mod screen;
mod server;
mod steps;

use crate::failure::{Exit, Failure};
use crate::flags::files;
use crate::inspection;
use crate::interrupt::Interrupt;
use crate::output_files::{Trial, check_outputs};
use crate::saved::refuse_foreign_history;
use live_view::LiveView;
use steps::{WatchSession, named_devices};

pub use flags::WatchFlags;

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
        conclusion::conclude(watch, session.finish(), &outputs)?;
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
