//! Moves the pieces of an acceptance test: one thread writes them with large direct requests in a
//! queue, or reads and checks them, and the caller's thread waits for it.

mod move_log;
mod mover;

pub use move_log::LostDevice;

use crate::io::any_backend::QueueConfig;
use crate::io::buffers::Buffers;
use crate::run::error::{RunError, worker_error};
use crate::run::first_request::{EarlyErrors, find_slow};
use crate::run::hang::relative_to_origin;
use crate::run::limits::in_flight_max;
use crate::run::prepare::{check_writable, prove_direct, set_cache};
use crate::run::select::{EngineUseCase, select};
use crate::run::session::Session;
use crate::run::supervise::{Event, Inbox as _, Overdue, Supervisor, WaitLimits};
use crate::run::watchdog::{Deferred, Waited};
use crate::run::watched_call::FLUSH_NS;
use diskproof_device::OpenTarget;
use diskproof_model::accept::{
    Batch, MovedPiece, Piece, PlaceContent, SectorContent, StalledPlace, TestStall,
};
use diskproof_model::group::Group;
use diskproof_model::measurement::{CacheUse, Hang};
use diskproof_model::plan::{CachePolicy, EngineKind, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::stream::Streams;
use move_log::{MoveEnd, MoveLog, REQUEST_BYTES};
use mover::Mover;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

/// Errors and the progress display show this name: an acceptance test has no workload of its own.
const ACCEPT: &str = "accept";
/// Requests in flight, as many as the curve of a survey keeps.
const DEPTH: u32 = 8;
/// The first length of a cell of the series that the watcher sees: the display draws four of them a
/// second.
const PROGRESS_CELL_NS: u64 = 250_000_000;
/// A minute of first cells; a longer series merges its cells.
const PROGRESS_CELLS_MAX: usize = 240;
/// Shorter times without an answer are not kept: a disk that is asked to flush its cache after each
/// step needs as long.
const STALL_NS_MIN: u64 = FLUSH_NS;
/// One block of a place shows whether the place holds data of the test: every sector has its mark.
const PLACE_BYTES: usize = 4096;

/// A device made ready for an acceptance test.
#[derive(Debug, Clone)]
pub struct AcceptDevice {
    /// The I/O engine.
    pub engine: EngineKind,
    /// The treatment of the page cache by writes and reads.
    pub cache: CacheUse,
    /// Makes the sectors that are written, and checks those that are read.
    content: SectorContent,
    /// Offset in bytes of a request that succeeded.
    answered_offset: u64,
    early_errors: EarlyErrors,
    /// The longest time without an answer while it was made ready; `None` of a short one.
    early_stall: Option<TestStall>,
}

impl AcceptDevice {
    /// Counts the errors of the disk on the requests that made it ready, by errno name. The test
    /// may not meet them again.
    pub fn count_early_errors(&self, errors: &mut BTreeMap<String, u64>) {
        self.early_errors.count_by_name(errors);
    }

    /// The longest time without an answer while the device was made ready; `None` where each
    /// request was answered soon.
    pub fn early_stall(&self) -> Option<TestStall> {
        self.early_stall
    }
}

/// The outcome of [`Session::move_pieces`].
#[derive(Debug, Clone, PartialEq)]
pub struct MovedBatch {
    /// The first pieces of the batch, as far as they were moved.
    pub moved: Vec<MovedPiece>,
    /// Times of two seconds or longer without an answer, after which the device went on.
    pub stalls: Vec<TestStall>,
    /// The watcher's order; anything but `Continue` ended the batch early.
    pub control: Control,
    /// Set where the test cannot go on with this device.
    pub lost: Option<LostDevice>,
    /// Set where the device stopped answering. Its thread is left behind.
    pub hang: Option<Hang>,
}

impl MovedBatch {
    /// True if the flush that ends what was written was answered: only a batch that came to its end
    /// has one.
    pub fn is_durable(&self) -> bool {
        self.control == Control::Continue && self.lost.is_none() && self.hang.is_none()
    }
}

impl Session {
    /// Makes a device ready: direct I/O where it can be had, and the best I/O engine. `salt` makes
    /// the content of this test differ from that of any other.
    pub fn prepare_accept(
        &self,
        salt: u64,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<AcceptDevice, RunError> {
        let writes = Workload {
            streams: Streams::with_reads(0),
            ..Workload::named(ACCEPT)
        };
        check_writable(&writes, target)?;
        let reads = Workload {
            block_bytes: REQUEST_BYTES,
            depth: DEPTH,
            ..Workload::named(ACCEPT)
        };
        let mut early_errors = EarlyErrors::take_from(target);
        early_errors.append(prove_direct(&reads, target, self.patience(watch))?);
        let cache = set_cache(&reads, target, self.patience(watch))?;
        let first = find_slow(&reads, target, self.patience(watch))?;
        early_errors.append(first.errors);
        let use_case = EngineUseCase {
            workload: &reads,
            target,
            cache: cache.used,
            in_flight_max: in_flight_max(Group::alone(&reads), 1),
            slow: first.slow,
        };
        let selected = select(&use_case, self.patience(watch))?;
        early_errors.append(selected.errors);
        let silence_ns = target.take_silence_ns();
        let early_stall = TestStall {
            lasted_ns: silence_ns,
            place: None,
        };
        Ok(AcceptDevice {
            engine: selected.engine.used,
            cache,
            content: SectorContent::new(salt),
            answered_offset: 0,
            early_errors,
            early_stall: (silence_ns >= STALL_NS_MIN).then_some(early_stall),
        })
    }

    /// Moves the pieces of a batch, one after the other. Each starts within `start_within_ns` of
    /// the first one, and a flush ends what was written. Returns also what was moved before the
    /// watcher interrupted.
    pub fn move_pieces(
        &self,
        batch: &Batch,
        device: &mut AcceptDevice,
        start_within_ns: u64,
        target: &OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<MovedBatch, RunError> {
        let log = Arc::new(MoveLog::default());
        let fd = target
            .fd()
            .try_clone_to_owned()
            .map_err(|source| worker_error(&Workload::named(ACCEPT), target, source))?;
        let is_sync = matches!(device.engine, EngineKind::Sync | EngineKind::Mmap);
        let config = QueueConfig {
            depth: if is_sync { 1 } else { DEPTH },
            request_bytes: REQUEST_BYTES,
            cache: device.cache.used,
            seed: self.seed,
            write_shift: 0,
        };
        // What the thread takes with it.
        let engine = device.engine;
        let content = device.content.clone();
        let thread_batch = batch.clone();
        let thread_log = Arc::clone(&log);
        let answered_offset = device.answered_offset;
        let working = Deferred::start("diskproof-accept", move || {
            let mut mover = Mover::open(fd, engine, config, content, &thread_batch, &thread_log)?;
            mover.answered_offset = answered_offset;
            mover.run(start_within_ns)
        })
        .map_err(RunError::Thread)?;
        let mut progress = MoveProgress::new(working.now(), batch);
        let outcome = self.follow_pieces(&working, &log, &mut progress, target, watch)?;
        if let Some(ended) = &outcome.ended {
            device.answered_offset = ended.answered_offset;
        }
        // Writers to the page cache wait for it, and a flush of it for all that it holds.
        let stalls = if device.cache.used == CachePolicy::Direct {
            progress.stalls
        } else {
            Vec::new()
        };
        let moved = log.take_moved();
        Ok(MovedBatch {
            moved,
            stalls,
            control: outcome.control,
            lost: outcome.ended.and_then(|ended| ended.lost),
            hang: outcome.hang,
        })
    }

    /// Waits until the thread ends, or until the device has not answered for too long.
    fn follow_pieces(
        &self,
        working: &Deferred<io::Result<MoveEnd>>,
        log: &MoveLog,
        progress: &mut MoveProgress<'_>,
        target: &OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<WaitOutcome, RunError> {
        let limits = WaitLimits {
            silence_ns: Some(self.stall_timeout.without_deadline_ns()),
            silence_at_end_ns: Some(self.stall_timeout.without_deadline_ns()),
            end_ns: None,
        };
        let mut supervisor = Supervisor::new(progress.answered_ns, 1, limits);
        let mut control = Control::Continue;
        loop {
            match supervisor.next(working) {
                Event::Report(Ok(ended)) => {
                    progress.end_stall();
                    return Ok(WaitOutcome {
                        control,
                        ended: Some(ended),
                        hang: None,
                    });
                }
                Event::Report(Err(source)) => {
                    return Err(worker_error(&Workload::named(ACCEPT), target, source));
                }
                Event::Lost => return Err(RunError::lost(ACCEPT)),
                Event::Check(now) => {
                    let wanted = progress.tick(now, log, watch);
                    supervisor.heard(0, progress.answered_ns);
                    if control == Control::Continue && wanted != Control::Continue {
                        control = wanted;
                        log.stop();
                        let after_order = WaitLimits {
                            end_ns: Some(self.stall_timeout.ended().ns()),
                            ..limits
                        };
                        supervisor.cut_short(after_order, now);
                    }
                }
                Event::Overdue(Overdue { silence_ns, .. }) => {
                    log.stop();
                    target.leave_open();
                    let hang = self.stall_timeout.hang(progress.answered_ns, silence_ns);
                    return Ok(WaitOutcome {
                        control,
                        ended: None,
                        hang: Some(relative_to_origin(hang, self.origin_ns)),
                    });
                }
            }
        }
    }

    /// Reads the first block of each place, and returns whether it holds data of the test with the
    /// device's salt. A device that does not answer in time is left open, and an error.
    pub fn contents_of_places(
        &self,
        places: &[Piece],
        device: &AcceptDevice,
        target: &OpenTarget,
    ) -> Result<Vec<PlaceContent>, RunError> {
        let fd = target
            .fd()
            .try_clone_to_owned()
            .map_err(|source| worker_error(&Workload::named(ACCEPT), target, source))?;
        let (places, content) = (places.to_vec(), device.content.clone());
        let reading = Deferred::start("diskproof-accept", move || {
            read_places(&File::from(fd), &places, &content)
        })
        .map_err(RunError::Thread)?;
        let stall = Duration::from_nanos(self.stall_timeout.without_deadline_ns());
        match reading.wait(stall) {
            Waited::Done(read) => {
                read.map_err(|source| worker_error(&Workload::named(ACCEPT), target, source))
            }
            Waited::TimedOut(_) => {
                // The reading thread keeps its own descriptor, and may never end.
                target.leave_open();
                Err(RunError::stalled(&target.identity().path, ACCEPT, stall))
            }
            Waited::Lost => Err(RunError::lost(ACCEPT)),
        }
    }
}

/// Reads the first block of each place. Fails without memory for a block.
fn read_places(
    file: &File,
    places: &[Piece],
    content: &SectorContent,
) -> io::Result<Vec<PlaceContent>> {
    let mut found = Vec::new();
    let mut buffers = Buffers::new(1, PLACE_BYTES)?;
    for place in places {
        let block = buffers.bytes_mut(0, PLACE_BYTES);
        found.push(if file.read_exact_at(block, place.offset_bytes).is_err() {
            PlaceContent::Unreadable
        } else if content.is_of_run(block) {
            PlaceContent::OfTest
        } else {
            PlaceContent::Other
        });
    }
    Ok(found)
}

/// The outcome of waiting for the thread that moves pieces.
struct WaitOutcome {
    /// The watcher's order.
    control: Control,
    /// `None` after a hang: the thread is left behind.
    ended: Option<MoveEnd>,
    hang: Option<Hang>,
}

/// Shows the watcher the progress, and keeps the stalls.
struct MoveProgress<'a> {
    batch: &'a Batch,
    /// The time without an answer that lasts now, from [`STALL_NS_MIN`] on.
    stall: Option<TestStall>,
    stalls: Vec<TestStall>,
    start_ns: u64,
    /// The counts of the log at the last tick.
    bytes: u64,
    requests: u64,
    /// When the last request ended, on the clock.
    answered_ns: u64,
    series: TimeSeries,
}

impl<'a> MoveProgress<'a> {
    fn new(now: u64, batch: &'a Batch) -> Self {
        Self {
            batch,
            stall: None,
            stalls: Vec::new(),
            start_ns: now,
            bytes: 0,
            requests: 0,
            answered_ns: now,
            series: TimeSeries::new(PROGRESS_CELL_NS),
        }
    }

    fn tick(&mut self, now: u64, log: &MoveLog, watch: &mut dyn Watch) -> Control {
        let (bytes, requests) = (log.bytes(), log.requests());
        if requests != self.requests {
            self.answered_ns = now;
            self.end_stall();
        } else if now.saturating_sub(self.answered_ns) >= STALL_NS_MIN {
            self.stall = Some(TestStall {
                lasted_ns: now - self.answered_ns,
                place: self.place(log.moved_count()),
            });
        }
        let cell = Cell {
            ops: requests - self.requests,
            bytes: bytes - self.bytes,
            ..Cell::default()
        };
        (self.bytes, self.requests) = (bytes, requests);
        self.series
            .add(now - self.start_ns, &cell, PROGRESS_CELLS_MAX);
        watch.tick(&Progress {
            silence: Some(Silence {
                target: 0,
                length_ns: now.saturating_sub(self.answered_ns),
            }),
            ..Progress::new(ACCEPT, Phase::Survey, now - self.start_ns, &self.series)
        })
    }

    /// The place of the batch behind so many moved pieces; that of the last one where a flush is
    /// under way.
    fn place(&self, moved_count: usize) -> Option<StalledPlace> {
        let piece = self
            .batch
            .pieces
            .get(moved_count)
            .or(self.batch.pieces.last())?;
        Some(StalledPlace {
            pass: self.batch.pass,
            offset_bytes: piece.offset_bytes,
        })
    }

    /// The device goes on.
    fn end_stall(&mut self) {
        self.stalls.extend(self.stall.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::accept::Pass;

    const SECOND_NS: u64 = 1_000_000_000;

    struct Patient;

    impl Watch for Patient {
        fn tick(&mut self, _: &Progress<'_>) -> Control {
            Control::Continue
        }
    }

    fn batch() -> Batch {
        let piece = |offset_bytes, order| Piece {
            offset_bytes,
            length_bytes: 4096,
            order,
        };
        Batch {
            pass: Pass::Write,
            pieces: vec![piece(1 << 20, 0), piece(0, 1)],
        }
    }

    /// The first piece took three seconds, the second one half a second, the flush behind it four.
    #[test]
    fn time_without_an_answer_is_kept_with_its_place() {
        let batch = batch();
        let log = MoveLog::default();
        let mut progress = MoveProgress::new(0, &batch);
        let mut tick = |now| progress.tick(now, &log, &mut Patient);
        tick(SECOND_NS);
        tick(3 * SECOND_NS);
        log.count_request(4096);
        log.add_piece(MovedPiece::new(3 * SECOND_NS, Vec::new()));
        tick(3 * SECOND_NS + 1);
        tick(3 * SECOND_NS + SECOND_NS / 2);
        log.count_request(4096);
        log.add_piece(MovedPiece::new(SECOND_NS / 2, Vec::new()));
        tick(4 * SECOND_NS);
        tick(8 * SECOND_NS);
        progress.end_stall();
        let stall = |seconds, offset_bytes| TestStall {
            lasted_ns: seconds * SECOND_NS,
            place: Some(StalledPlace {
                pass: Pass::Write,
                offset_bytes,
            }),
        };
        assert_eq!(progress.stalls, [stall(3, 1 << 20), stall(4, 0)]);
    }

    /// A thread that waited for a processor sees that the device went on meanwhile.
    #[test]
    fn late_look_at_a_device_that_went_on_is_no_stall() {
        let batch = batch();
        let log = MoveLog::default();
        let mut progress = MoveProgress::new(0, &batch);
        log.count_request(4096);
        progress.tick(70 * SECOND_NS, &log, &mut Patient);
        progress.end_stall();
        assert_eq!(progress.stalls, []);
    }
}
