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
use diskproof_device::OpenTarget;
use diskproof_model::accept::{Batch, MovedPiece, Piece, PlaceContent, SectorContent};
use diskproof_model::group::Group;
use diskproof_model::measurement::{CacheUse, Hang};
use diskproof_model::plan::{EngineKind, Workload};
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
}

impl AcceptDevice {
    /// Counts the errors of the disk on the requests that made it ready, by errno name. The test
    /// may not meet them again.
    pub fn count_early_errors(&self, errors: &mut BTreeMap<String, u64>) {
        self.early_errors.count_by_name(errors);
    }
}

/// The outcome of [`Session::move_pieces`].
#[derive(Debug, Clone, PartialEq)]
pub struct MovedBatch {
    /// The first pieces of the batch, as far as they were moved.
    pub moved: Vec<MovedPiece>,
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
        Ok(AcceptDevice {
            engine: selected.engine.used,
            cache,
            content: SectorContent::new(salt),
            answered_offset: 0,
            early_errors,
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
        let outcome = self.follow_pieces(&working, &log, target, watch)?;
        if let Some(ended) = &outcome.ended {
            device.answered_offset = ended.answered_offset;
        }
        let moved = log.take_moved();
        Ok(MovedBatch {
            moved,
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
        target: &OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<WaitOutcome, RunError> {
        let limits = WaitLimits {
            silence_ns: Some(self.stall_timeout.without_deadline_ns()),
            silence_at_end_ns: Some(self.stall_timeout.without_deadline_ns()),
            end_ns: None,
        };
        let mut progress = MoveProgress::new(working.now());
        let mut supervisor = Supervisor::new(progress.answered_ns, 1, limits);
        let mut control = Control::Continue;
        loop {
            match supervisor.next(working) {
                Event::Report(Ok(ended)) => {
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

/// Shows the watcher the progress.
struct MoveProgress {
    start_ns: u64,
    /// The counts of the log at the last tick.
    bytes: u64,
    requests: u64,
    /// When the last request ended, on the clock.
    answered_ns: u64,
    series: TimeSeries,
}

impl MoveProgress {
    fn new(now: u64) -> Self {
        Self {
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
}
