//! An acceptance test while it is carried out: moves its pieces for some seconds a step, keeps what
//! came back in its journal, and shows the progress.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, Sink};
use crate::failure::Failure;
use crate::flags::SECOND;
use crate::progress_display::{ProgressDisplay, RecentRates};
use crate::saved::TestJournal;
use crate::stdio::ProgressLine;
use crate::targets::read_health;
use diskproof_analysis::accept::{AcceptTest, TestProgress};
use diskproof_device::Snapshot;
use diskproof_engine::{AcceptDevice, LostDevice, MovedBatch, RunError};
use diskproof_model::accept::{AcceptMeasurement, AcceptPlan, Batch, Pass, Procedure};
use diskproof_model::measurement::{ByteCount, OpKind};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_percent, format_throughput,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time of a step: as much is lost by a kill, and a flush ends each step that writes.
const STEP_NS: u64 = 5 * SECOND;
/// The shown rate is that of the last two seconds.
const RATE_OVER: Duration = Duration::from_secs(2);

/// An acceptance test on its device.
pub(super) struct AcceptRun {
    test: AcceptTest,
    device: AcceptDevice,
    /// The disks' counters before the test; `None` once they are taken.
    counters: Option<Snapshot>,
    /// The bytes that this run has requested.
    asked: ByteCount,
    journal: Option<TestJournal>,
    saved: JournalState,
    /// Whether the user knows that the journal cannot be written.
    has_warned: bool,
}

/// The part of this test that the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalState {
    /// Nothing: a later run begins anew.
    Nothing,
    /// Everything up to the last step.
    Everything,
    /// Everything before a step that could not be saved.
    Earlier,
}

impl AcceptRun {
    /// Makes the device ready, and goes on where an earlier run of the same plan has stopped.
    pub(super) fn start(
        plan: &AcceptPlan,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<Self, EarlyEnd> {
        sink.begin_step("the acceptance test");
        let Some(target) = bench.targets.first_mut() else {
            return Err(EarlyEnd::interrupted());
        };
        let device = bench
            .session
            .prepare_accept(plan.salt, target, &mut sink.progress)?;
        let journal = match plan.procedure {
            Procedure::Whole => sink.journal().test().cloned(),
            Procedure::Probe { .. } => None,
        };
        let mut measured = AcceptMeasurement::new(*plan);
        let mut saved_state = JournalState::Nothing;
        // A journal that cannot be read was refused before, unless a new test replaces it.
        if let Some(journal) = &journal
            && let Ok(Some(saved)) = journal.read()
            && saved.plan == *plan
        {
            measured = AcceptMeasurement {
                earlier_runs: saved.earlier_runs + 1,
                run_ns: 0,
                ..saved
            };
            saved_state = JournalState::Everything;
        }
        measured.start_ns = bench.session.elapsed_ns();
        measured.engine = device.engine;
        measured.cache = device.cache.clone();
        let mut early_errors = BTreeMap::new();
        device.count_early_errors(&mut early_errors);
        for (errno, count) in early_errors {
            sink.verbosity.note(&format!(
                "{}: the disk failed {} before the test ({errno})",
                target.identity().path,
                counted(count, "request")
            ));
            *measured.errors.entry(errno).or_default() += count;
        }
        let test = AcceptTest::new(measured);
        let places = test.written_places();
        if !places.is_empty() {
            let intact_places = bench.session.count_own_places(&places, &device, target)?;
            if intact_places == 0 {
                let path = &target.identity().path;
                return Err(EarlyEnd::NotStarted(Failure::Unconfirmed(format!(
                    "{path}: an earlier run wrote a part of this disk, but none of {} places \
                     still holds what it wrote: something else has overwritten it. Use --restart \
                     to begin a new test",
                    places.len()
                ))));
            }
        }
        Ok(Self {
            counters: Some(Snapshot::take(target.identity())),
            test,
            device,
            asked: ByteCount::default(),
            journal,
            saved: saved_state,
            has_warned: false,
        })
    }

    /// Puts the measurement so far into the results of the run.
    fn publish(&self, sink: &Sink) {
        sink.results().data.accept = Some(AcceptMeasurement {
            asked: self.asked,
            ..self.test.measured.clone()
        });
    }

    /// Counts the bytes that a batch has requested.
    fn count(&mut self, batch: &Batch, moved: &MovedBatch) {
        let kind = match batch.pass {
            Pass::Write => OpKind::Write,
            Pass::Read => OpKind::Read,
        };
        for piece in &batch.pieces[..moved.moved.len()] {
            self.asked.add(kind, piece.length_bytes);
        }
    }

    /// Keeps the measurement in the journal. A journal that cannot be written is tried again after
    /// the next step: there may be room then.
    fn keep(&mut self, sink: &Sink) {
        let Some(journal) = &self.journal else {
            return;
        };
        match journal.keep(&self.test.measured) {
            Ok(()) => self.saved = JournalState::Everything,
            Err(error) => {
                if !self.has_warned {
                    self.has_warned = true;
                    sink.verbosity.note(&format!(
                        "warning: the test goes on, but if it is stopped, what follows is not \
                         known to the next run: {error}"
                    ));
                }
                if self.saved == JournalState::Everything {
                    self.saved = JournalState::Earlier;
                }
            }
        }
    }

    /// Takes the disks' counters of this run, also of a test that ended early: without them the
    /// page would say that they read nothing.
    fn read_counters(&mut self) {
        if let Some(counters) = self.counters.take() {
            self.test.measured.device = counters.finish(self.asked);
        }
    }

    /// Ends a test that is complete: takes the health of the disks once more, and removes the
    /// journal.
    fn finish(&mut self, bench: &Bench) {
        if !bench.facts.health.is_empty() {
            self.test.measured.health = read_health(&bench.facts.targets);
        }
        self.read_counters();
        if let Some(journal) = self.journal.take() {
            // A journal that stays is refused or goes on: nothing depends on its removal.
            let _ = journal.end();
        }
    }

    /// The reason why the test ends early; `None` where it goes on.
    fn early_end(&self, moved: &MovedBatch, path: &str) -> Option<EarlyEnd> {
        let remedy = match self.saved {
            JournalState::Everything => "; the same command goes on from here",
            JournalState::Earlier => "; the same command goes on from where it was saved last",
            JournalState::Nothing => "",
        };
        if let Some(hang) = &moved.hang {
            let lasted = format_duration(hang.lasted_ns);
            return Some(EarlyEnd::Reason(format!(
                "{path} stopped answering; diskproof stopped waiting after {lasted}. See the \
                 kernel log (dmesg){remedy}"
            )));
        }
        match &moved.lost {
            Some(LostDevice::Gone { errno }) => Some(EarlyEnd::Reason(format!(
                "{path} answers no request any more ({errno}): it was removed, or its link is \
                 down. See the kernel log (dmesg){remedy}"
            ))),
            Some(LostDevice::NotDurable { errno }) => Some(EarlyEnd::Reason(format!(
                "{path}: what was written cannot be made durable ({errno}). See the kernel log \
                 (dmesg){remedy}"
            ))),
            None if moved.control != Control::Continue => Some(EarlyEnd::Reason(format!(
                "{}{remedy}",
                super::sink::INTERRUPTED
            ))),
            None => None,
        }
    }
}

impl Running for AcceptRun {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        let Some(batch) = self.test.next_batch() else {
            self.finish(bench);
            self.publish(sink);
            return Ok(Stepped::Over);
        };
        let Some(target) = bench.targets.first() else {
            return Ok(Stepped::Over);
        };
        let mut watch = AcceptProgress {
            progress: self.test.progress(),
            wrong_bytes: self.test.measured.bad_bytes.sum(),
            line: ProgressLine::new(sink.verbosity),
            display: &mut sink.progress,
        };
        let result: Result<MovedBatch, RunError> =
            bench
                .session
                .move_pieces(&batch, &mut self.device, STEP_NS, target, &mut watch);
        watch.line.clear();
        let moved = result?;
        self.test.add(&batch, &moved.moved);
        self.count(&batch, &moved);
        self.test.measured.hang = moved.hang;
        // What was written since the last flush may be lost: pieces of it would come back wrong,
        // and the disk would be rejected.
        if batch.pass == Pass::Read || moved.is_durable() {
            self.keep(sink);
        }
        let early = self.early_end(&moved, &target.identity().path);
        if early.is_some() {
            self.read_counters();
        }
        self.publish(sink);
        match early {
            Some(early) => Err(early),
            None => Ok(Stepped::More),
        }
    }
}

/// Watches a step, and shows its progress.
struct AcceptProgress<'a> {
    progress: TestProgress,
    wrong_bytes: u64,
    line: ProgressLine,
    display: &'a mut ProgressDisplay,
}

impl AcceptProgress<'_> {
    /// The share that is done once no more than this is left.
    fn share_without(&self, left_bytes: u64) -> f64 {
        let left = left_bytes as f64 / self.progress.left_bytes.max(1) as f64;
        1.0 - (1.0 - self.progress.share) * left
    }

    /// `writing 43 %, 181 MB/s, 6 h left, nothing wrong so far`.
    fn reading(&self, progress: &Progress<'_>) -> String {
        // What the step has moved so far counts, too: the first one of a small disk is half of it.
        let moved = progress.series.total().bytes;
        let left_bytes = self.progress.left_bytes.saturating_sub(moved);
        let share = format_percent(self.share_without(left_bytes));
        let rate = RecentRates::over(progress.series, RATE_OVER).bytes_per_second;
        let mut figures = vec![format!("{} {share}", self.progress.step)];
        if rate > 0.0 {
            figures.push(format_throughput(rate));
            let left_s = (left_bytes as f64 / rate) as u64;
            figures.push(format!("{} left", format_duration(left_s * SECOND)));
        }
        figures.push(match self.wrong_bytes {
            0 => "nothing wrong so far".to_owned(),
            bytes => format!("{} came back wrong", format_bytes(bytes)),
        });
        figures.extend(self.display.silence_text(progress));
        figures.join(", ")
    }
}

impl Watch for AcceptProgress<'_> {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        if self.line.is_due() {
            let text = self.reading(progress);
            self.line.show(&text);
        }
        self.display.tick_silently(progress)
    }
}
