//! An acceptance test while it is carried out: moves its pieces for some seconds a step, keeps what
//! came back in its journal, and shows the progress.
//!
//! A kill or a power cut may come at any time, so the order of these actions decides what survives:
//!
//! 1. `move_batch`: the disk is given pieces, and makes what was written durable.
//! 2. `add`: the results go into the measurement, in memory.
//! 3. `keep`: the journal gets the measurement, in one rename.
//! 4. `publish`: the results of the run get it, from which the record is made.
//! 5. After the last step, `conclude` saves the record in the history.
//! 6. `TestJournal::end` removes the journal. It takes the proof of the save.
//!
//! A kill before 3 costs this step: the journal knows less than the disk holds, never more. A kill
//! between 3 and 5 costs nothing: the next run reads the journal and makes the record from it. One
//! between 5 and 6 leaves a journal of a run that the history has, which the next run ignores. The
//! test `kill_at_each_place_of_the_order_costs_no_result` kills the program at each of them.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, Sink};
use crate::failure::Failure;
use crate::flags::SECOND_NS;
use crate::progress_display::{ProgressDisplay, RecentRates};
use crate::saved::TestJournal;
use crate::stdio::{ProgressLine, Verbosity};
use crate::targets::read_health;
use diskproof_analysis::accept::{AcceptTest, TestProgress};
use diskproof_device::{OpenTarget, Snapshot};
use diskproof_engine::{AcceptDevice, LostDevice, MovedBatch, RunError};
use diskproof_model::accept::{
    AcceptMeasurement, AcceptPlan, Batch, Pass, PlaceContent, PlacesBefore,
};
use diskproof_model::measurement::{ByteCount, Hang, OpKind};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_percent, format_throughput,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time of a step: as much is lost by a kill, and a flush ends each step that writes. Chosen so
/// that both cost little; not measured.
const STEP_NS: u64 = 5 * SECOND_NS;
/// The shown rate is that of the last two seconds: long enough to be readable, and short enough to
/// show a disk that stalls.
const RATE_OVER: Duration = Duration::from_secs(2);

/// An acceptance test on its device.
pub(super) struct AcceptRun {
    test: AcceptTest,
    device: AcceptDevice,
    /// The disks' counters before the test; `None` once they are taken.
    counters: Option<Snapshot>,
    /// The bytes that this run has requested.
    requested: ByteCount,
    journal: Option<TestJournal>,
    journal_state: JournalState,
    /// True if the user knows that the journal cannot be written.
    has_warned: bool,
}

/// The part of this test that the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalState {
    /// Nothing: a later run begins anew.
    Nothing,
    /// Everything up to the last step.
    Everything,
    /// Everything before a step whose results are not in it.
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
        let journal = sink.journal().test().cloned();
        let (mut measured, journal_state) = match earlier_measurement(journal.as_ref(), plan) {
            Some(earlier) => (earlier, JournalState::Everything),
            None => {
                let mut new = AcceptMeasurement::new(*plan);
                new.health_before.clone_from(&bench.facts.health);
                (new, JournalState::Nothing)
            }
        };
        measured.start_ns = bench.session.elapsed_ns();
        measured.engine = device.engine;
        measured.cache = device.cache.clone();
        let path = &target.identity().path;
        add_early_errors(&device, path, &mut measured, sink.verbosity);
        if let Some(stall) = device.early_stall() {
            measured.add_stall(stall);
        }
        let mut test = AcceptTest::new(measured);
        let places = test.written_places();
        if !places.is_empty() {
            let found = bench.session.contents_of_places(&places, &device, target)?;
            let before = PlacesBefore::new(&places, &found, &test.measured.states);
            if !found.contains(&PlaceContent::OfTest) {
                return Err(EarlyEnd::NotStarted(overwritten(path, before)));
            }
            if before.changed > 0 {
                sink.verbosity.note(&changed_note(path, before));
            }
            test.measured.places_before = Some(before);
        }
        Ok(Self {
            counters: Some(Snapshot::take(target.identity())),
            test,
            device,
            requested: ByteCount::default(),
            journal,
            journal_state,
            has_warned: false,
        })
    }

    /// Moves the pieces of a batch for the time of a step.
    fn move_batch(
        &mut self,
        batch: Batch,
        bench: &Bench,
        target: &OpenTarget,
        sink: &mut Sink,
    ) -> Result<AnsweredBatch, RunError> {
        let mut watch = AcceptProgress {
            progress: self.test.progress(),
            wrong_bytes: self.test.measured.bad_bytes.sum(),
            line: ProgressLine::new(sink.verbosity),
            display: &mut sink.progress,
        };
        let result =
            bench
                .session
                .move_pieces(&batch, &mut self.device, STEP_NS, target, &mut watch);
        watch.line.clear();
        Ok(AnsweredBatch {
            moved: result?,
            batch,
        })
    }

    /// Adds what came back to the measurement, and counts the bytes that were requested.
    fn add(&mut self, answered: &AnsweredBatch) {
        let AnsweredBatch { batch, moved } = answered;
        self.test.add(batch, &moved.moved);
        self.test.measured.hang = moved.hang;
        for stall in &moved.stalls {
            self.test.measured.add_stall(*stall);
        }
        let kind = match batch.pass {
            Pass::Write => OpKind::Write,
            Pass::Read => OpKind::Read,
        };
        for piece in &batch.pieces[..moved.moved.len()] {
            self.requested.add(kind, piece.length_bytes);
        }
    }

    /// Puts the measurement so far into the results of the run.
    fn publish(&self, sink: &Sink) {
        sink.results().data.accept = Some(AcceptMeasurement {
            asked: self.requested,
            ..self.test.measured.clone()
        });
    }

    /// Keeps the measurement in the journal, which knows less than it until that is done. A journal
    /// that cannot be written is tried again after the next step: there may be room then.
    fn keep(&mut self, answered: &AnsweredBatch, sink: &Sink) {
        if self.journal_state == JournalState::Everything {
            self.journal_state = JournalState::Earlier;
        }
        let Some(journal) = &self.journal else {
            return;
        };
        if !answered.may_be_kept() {
            if let Some(hang) = answered.moved.hang
                && self.journal_state == JournalState::Earlier
            {
                keep_hang(journal, hang, sink.run_id());
            }
            return;
        }
        let counts = self.counters.as_ref().and_then(Snapshot::counts);
        // Reads that cannot be counted, as those of a disk that is gone, stay out of both sums.
        if let Some(counts) = counts {
            let measured = &mut self.test.measured;
            measured.asked = self.requested;
            measured.device.read_bytes = counts.read_bytes;
        }
        match journal.keep(&self.test.measured, sink.run_id()) {
            Ok(()) => self.journal_state = JournalState::Everything,
            Err(error) => {
                if !self.has_warned {
                    self.has_warned = true;
                    sink.verbosity.note(&format!(
                        "warning: the test goes on, but if it is stopped, what follows is not \
                         known to the next run: {error}"
                    ));
                }
            }
        }
    }

    /// Takes the disks' counters of this run, also of a test that ended early: without them the
    /// page would say that they read nothing.
    fn read_counters(&mut self) {
        if let Some(counters) = self.counters.take() {
            self.test.measured.device = counters.finish(self.requested);
        }
    }

    /// Ends a test that is complete: takes the health of the disks once more. Its journal stays
    /// until the record is saved.
    fn finish(&mut self, bench: &Bench) {
        if !bench.facts.health.is_empty() {
            self.test.measured.health = read_health(&bench.facts.targets);
        }
        self.read_counters();
    }

    /// The reason why the test ends early; `None` where it goes on.
    fn early_end(&self, moved: &MovedBatch, path: &str) -> Option<EarlyEnd> {
        let remedy = match self.journal_state {
            JournalState::Everything => "; the same command goes on from here",
            JournalState::Earlier => {
                "; the same command goes on from where it was saved last, some seconds before"
            }
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
            Some(LostDevice::Gone { errno }) => Some(EarlyEnd::Error(RunError::TargetFailed {
                path: path.to_owned(),
                doing: "get an answer to any request",
                errno: errno.clone(),
                why: format!(
                    "it was removed, or its link is down. See the kernel log (dmesg){remedy}"
                ),
            })),
            Some(LostDevice::NotDurable { errno }) => {
                Some(EarlyEnd::Error(RunError::TargetFailed {
                    path: path.to_owned(),
                    doing: "make durable what was written",
                    errno: errno.clone(),
                    why: format!("see the kernel log (dmesg){remedy}"),
                }))
            }
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
        let answered = self.move_batch(batch, bench, target, sink)?;
        self.add(&answered);
        self.keep(&answered, sink);
        let early = self.early_end(&answered.moved, &target.identity().path);
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

/// The measurement of an earlier run of the same plan, which this one continues; `None` where there
/// is none.
fn earlier_measurement(
    journal: Option<&TestJournal>,
    plan: &AcceptPlan,
) -> Option<AcceptMeasurement> {
    // A journal that cannot be read was refused before, unless a new test replaces it.
    let saved = journal?.read().ok().flatten()?;
    if saved.plan == *plan {
        Some(saved.continued())
    } else {
        None
    }
}

/// Notes a hang in the journal, so that the run that goes on from it tells of it. What was written
/// since the last flush may be lost, and stays out.
fn keep_hang(journal: &TestJournal, hang: Hang, run_id: &str) {
    // Where that fails, the record of this run alone has the hang.
    if let Ok(Some(saved)) = journal.read() {
        let noted = AcceptMeasurement {
            hang: Some(hang),
            ..saved
        };
        let _ = journal.keep(&noted, run_id);
    }
}

/// Counts the requests that failed while the device was made ready, and names them.
fn add_early_errors(
    device: &AcceptDevice,
    path: &str,
    measured: &mut AcceptMeasurement,
    verbosity: Verbosity,
) {
    let mut early_errors = BTreeMap::new();
    device.count_early_errors(&mut early_errors);
    for (errno, count) in early_errors {
        verbosity.note(&format!(
            "{path}: the disk failed {} before the test ({errno})",
            counted(count, "request")
        ));
        *measured.errors.entry(errno).or_default() += count;
    }
}

/// A batch with the answers of the disk.
struct AnsweredBatch {
    batch: Batch,
    moved: MovedBatch,
}

impl AnsweredBatch {
    /// Returns `true` if the journal may know of it. What was written since the last flush may be
    /// lost: pieces of it would come back wrong, and the disk would be rejected.
    fn may_be_kept(&self) -> bool {
        self.batch.pass == Pass::Read || self.moved.is_durable()
    }
}

/// The refusal to continue a test where the disk no longer holds anything that the test wrote.
fn overwritten(path: &str, before: PlacesBefore) -> Failure {
    Failure::Unconfirmed(format!(
        "{path}: an earlier run wrote a part of this disk, but none of {} places still holds what \
         it wrote: something else has overwritten it. Use --restart to begin a new test",
        before.places
    ))
}

/// The note that others wrote to the disk while the test was stopped, or that it lost data.
fn changed_note(path: &str, before: PlacesBefore) -> String {
    format!(
        "warning: {path}: {} of {} places no longer hold what an earlier run wrote: others wrote \
         to the device meanwhile, or it lost them. If some of that was not read before the stop, \
         this test can reject the disk and not accept it; --restart begins a new one",
        before.changed, before.places
    )
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
    fn share_done_with(&self, left_bytes: u64) -> f64 {
        let share_left = left_bytes as f64 / self.progress.left_bytes.max(1) as f64;
        1.0 - (1.0 - self.progress.share) * share_left
    }

    /// `writing 43 %, 181 MB/s, 6 h left, nothing wrong so far`.
    fn line_text(&self, progress: &Progress<'_>) -> String {
        // What the step has moved so far counts, too: the first one of a small disk is half of it.
        let moved = progress.series.total().bytes;
        let left_bytes = self.progress.left_bytes.saturating_sub(moved);
        let share = format_percent(self.share_done_with(left_bytes));
        let rate = RecentRates::over(progress.series, RATE_OVER).bytes_per_second;
        let mut figures = vec![format!("{} {share}", self.progress.step)];
        if rate > 0.0 {
            figures.push(format_throughput(rate));
            let left_s = (left_bytes as f64 / rate) as u64;
            figures.push(format!("{} left", format_duration(left_s * SECOND_NS)));
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
            let text = self.line_text(progress);
            self.line.show(&text);
        }
        self.display.tick_silently(progress)
    }
}
