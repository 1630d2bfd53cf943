//! Moves the pieces of a batch on a thread of its own: cuts each into requests, keeps the queue
//! full, fills what it writes, checks what it reads, and narrows what fails down to blocks. A piece
//! begins when the one before it has ended, so that its time is its own.

use super::move_log::{LostDevice, MoveEnd, MoveLog, REQUEST_BYTES};
use crate::io::any_backend::{AnyBackend, QueueConfig};
use crate::io::buffers::Buffers;
use crate::io::clock::{Clock as _, MonotonicClock};
use crate::io::{Backend as _, END_OF_FILE, Op, Request, WaitMode, errno_name};
use diskproof_model::accept::{BadContent, BadRange, Batch, MovedPiece, Pass, SectorContent};
use diskproof_model::plan::{EngineKind, SyncCall};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// A failed request is moved again in parts of this size, and a failed part in blocks: so a lone
/// bad block costs three failed requests.
const NARROW_BYTES: u32 = 64 << 10;
/// The smallest range whose failure is reported.
const BLOCK_BYTES: u32 = 4096;
/// At most this many requests of a batch are narrowed, apart from those that follow a good request
/// in their piece. A device whose end lies far before its claim would otherwise need days. Chosen,
/// not measured: the first failures show where the good blocks end.
const NARROWINGS_MAX: u32 = 8;
/// After so many failed requests in a row, parts of a narrowed one included, the device has to show
/// that it is still there. Chosen, not measured; the check costs one read.
const FAILED_MAX: u32 = 64;
/// Errors that mean that the device is gone: no such device or address, no device, no medium, shut
/// down.
const GONE: [i32; 4] = [libc::ENXIO, libc::ENODEV, libc::ENOMEDIUM, libc::ESHUTDOWN];

/// A request of the piece that is under way.
#[derive(Debug, Clone, Copy)]
struct Part {
    offset: u64,
    len: u32,
    /// Bytes that earlier, short transfers have moved.
    moved: u32,
}

/// A part that a short transfer has moved partly. It keeps its slot until it is whole.
#[derive(Debug, Clone, Copy)]
struct Rest {
    slot: u32,
    part: Part,
}

/// The piece that is under way.
#[derive(Debug, Default)]
struct OpenPiece {
    /// Place in the batch, from 0.
    number: usize,
    /// Bytes that were cut into requests.
    cut_bytes: u64,
    bad: Vec<BadRange>,
    /// Requests that are not done.
    requests_left: usize,
    /// True after a request that succeeded, until the next failed one.
    is_after_success: bool,
}

pub(super) struct Mover<'a> {
    backend: AnyBackend,
    content: SectorContent,
    batch: &'a Batch,
    log: &'a MoveLog,
    /// By slot.
    in_flight: Vec<Option<Part>>,
    free: Vec<u32>,
    /// Rests of short transfers, with the slots whose buffers hold their content.
    rests: VecDeque<Rest>,
    /// Parts of failed requests, which come before the next ones.
    retries: VecDeque<Part>,
    piece: OpenPiece,
    narrowings: u32,
    failed_in_row: u32,
    lost: Option<LostDevice>,
    /// Offset in bytes of a request that succeeded.
    pub(super) answered_offset: u64,
    /// Checks outside of the queue whether the device still answers.
    file: File,
    /// The buffer of that check.
    block: Buffers,
}

impl<'a> Mover<'a> {
    /// Makes the queue. The thread that opens it must be the one that runs it, as a backend belongs
    /// to a thread.
    pub(super) fn open(
        fd: OwnedFd,
        engine: EngineKind,
        config: QueueConfig,
        content: SectorContent,
        batch: &'a Batch,
        log: &'a MoveLog,
    ) -> io::Result<Self> {
        let file = File::from(fd.try_clone()?);
        Ok(Self {
            backend: AnyBackend::new(engine, fd, config)?,
            content,
            batch,
            log,
            in_flight: vec![None; config.depth as usize],
            free: (0..config.depth).rev().collect(),
            rests: VecDeque::new(),
            retries: VecDeque::new(),
            piece: OpenPiece::default(),
            narrowings: 0,
            failed_in_row: 0,
            lost: None,
            answered_offset: 0,
            file,
            block: Buffers::new(1, BLOCK_BYTES as usize)?,
        })
    }

    /// Moves the pieces, begins none after this time, and flushes what was written.
    pub(super) fn run(&mut self, time_ns: u64) -> io::Result<MoveEnd> {
        let clock = MonotonicClock;
        let end_ns = clock.now().saturating_add(time_ns);
        for (number, piece) in self.batch.pieces.iter().enumerate() {
            let begin_ns = clock.now();
            if begin_ns >= end_ns || self.has_to_end() {
                break;
            }
            self.piece = OpenPiece {
                number,
                requests_left: piece.length_bytes.div_ceil(u64::from(REQUEST_BYTES)) as usize,
                ..OpenPiece::default()
            };
            self.move_piece()?;
            if self.piece.requests_left > 0 {
                break;
            }
            debug_assert!(self.rests.is_empty() && self.retries.is_empty());
            let bad = join_neighbours(std::mem::take(&mut self.piece.bad));
            let ns = clock.now().saturating_sub(begin_ns);
            self.log.add_piece(MovedPiece::new(ns, bad));
        }
        if self.batch.pass == Pass::Write && !self.has_to_end() {
            self.flush()?;
        }
        Ok(MoveEnd {
            lost: self.lost.clone(),
            answered_offset: self.answered_offset,
        })
    }

    fn has_to_end(&self) -> bool {
        self.log.is_stopped() || self.lost.is_some()
    }

    /// Moves the piece that is under way, to its end or until [`Self::has_to_end`]. Nothing is in
    /// flight afterwards.
    fn move_piece(&mut self) -> io::Result<()> {
        loop {
            self.submit()?;
            if self.free.len() == self.in_flight.len() {
                return Ok(());
            }
            self.backend.wait(WaitMode::Completion)?;
            self.reap();
        }
    }

    /// Fills the queue: with the rests of short transfers, then with further parts.
    fn submit(&mut self) -> io::Result<()> {
        while let Some(Rest { slot, part }) = self.rests.pop_front() {
            if self.has_to_end() {
                self.free.push(slot);
                continue;
            }
            self.in_flight[slot as usize] = Some(part);
            self.send(slot, part)?;
            if self.backend.ends_in_enqueue() {
                return Ok(());
            }
        }
        while !self.free.is_empty() {
            let Some(part) = self.next_part() else {
                break;
            };
            let Some(slot) = self.free.pop() else {
                break;
            };
            self.in_flight[slot as usize] = Some(part);
            self.send(slot, part)?;
            // Such a backend takes one request at a time.
            if self.backend.ends_in_enqueue() {
                break;
            }
        }
        Ok(())
    }

    fn send(&mut self, slot: u32, part: Part) -> io::Result<()> {
        let op = match self.batch.pass {
            Pass::Write => Op::Write,
            Pass::Read => Op::Read,
        };
        let order = self.batch.pieces[self.piece.number].order;
        let mut request = Some(Request {
            slot,
            buffer: slot,
            op,
            offset: part.offset + u64::from(part.moved),
            len: part.len - part.moved,
            skip: part.moved,
        });
        let content = &self.content;
        self.backend.enqueue(&mut |buffers| {
            let next = request.take()?;
            if next.op == Op::Write && next.skip == 0 {
                let buffer = buffers.bytes_mut(slot as usize, part.len as usize);
                content.fill(part.offset, order, buffer);
            }
            Some(next)
        })
    }

    /// The next request; `None` where nothing is left to begin.
    fn next_part(&mut self) -> Option<Part> {
        if self.has_to_end() {
            return None;
        }
        if let Some(part) = self.retries.pop_front() {
            return Some(part);
        }
        let piece = self.batch.pieces[self.piece.number];
        let left = piece.length_bytes - self.piece.cut_bytes;
        if left == 0 {
            return None;
        }
        let len = left.min(u64::from(REQUEST_BYTES)) as u32;
        let offset = piece.offset_bytes + self.piece.cut_bytes;
        self.piece.cut_bytes += u64::from(len);
        Some(Part {
            offset,
            len,
            moved: 0,
        })
    }

    /// Takes what was completed.
    fn reap(&mut self) {
        let mut completed = Vec::new();
        self.backend
            .reap(&mut |slot, result| completed.push((slot, result)));
        for (slot, result) in completed {
            let Some(part) = self.in_flight[slot as usize].take() else {
                continue;
            };
            self.complete(slot, part, result);
        }
    }

    fn complete(&mut self, slot: u32, part: Part, result: i32) {
        if result > 0 {
            let moved = part.moved + result as u32;
            if moved < part.len {
                let part = Part { moved, ..part };
                self.rests.push_back(Rest { slot, part });
                return;
            }
            self.succeed(slot, part);
            self.free.push(slot);
            return;
        }
        self.free.push(slot);
        let errno = if result == 0 { END_OF_FILE } else { -result };
        self.fail(part, errno);
    }

    fn succeed(&mut self, slot: u32, part: Part) {
        self.log.count_request(u64::from(part.len));
        self.answered_offset = part.offset;
        self.failed_in_row = 0;
        let mut bad = Vec::new();
        if self.batch.pass == Pass::Read {
            let order = self.batch.pieces[self.piece.number].order;
            let read = self
                .backend
                .buffers()
                .bytes(slot as usize, part.len as usize);
            bad = self.content.check(part.offset, order, read);
        }
        let piece = &mut self.piece;
        piece.is_after_success = true;
        piece.requests_left -= 1;
        piece.bad.extend(bad);
    }

    fn fail(&mut self, part: Part, errno: i32) {
        self.log.count_request(0);
        if GONE.contains(&errno) {
            self.lost = Some(LostDevice::Gone {
                errno: errno_name(errno),
            });
            return;
        }
        if let Some(part_bytes) = self.take_narrower_bytes(part) {
            self.retry_in_parts(part, part_bytes);
        } else {
            self.piece.requests_left -= 1;
            self.piece.bad.push(BadRange {
                offset_bytes: part.offset,
                length_bytes: u64::from(part.len),
                content: BadContent::Failed {
                    errno: errno_name(errno),
                },
            });
        }
        self.failed_in_row += 1;
        if self.failed_in_row >= FAILED_MAX {
            self.failed_in_row = 0;
            self.check_presence(errno);
        }
    }

    /// Queues the parts of a failed request, each to be moved again.
    fn retry_in_parts(&mut self, part: Part, part_bytes: u32) {
        let parts = part.len.div_ceil(part_bytes);
        self.piece.requests_left += parts as usize - 1;
        for number in 0..parts {
            let skipped_bytes = number * part_bytes;
            self.retries.push_back(Part {
                offset: part.offset + u64::from(skipped_bytes),
                len: part_bytes.min(part.len - skipped_bytes),
                moved: 0,
            });
        }
    }

    /// The size of the parts in which a failed request is moved again; `None` where the whole of it
    /// counts as bad. Uses up one of the narrowings of the batch where the size of a part is
    /// [`NARROW_BYTES`].
    fn take_narrower_bytes(&mut self, part: Part) -> Option<u32> {
        if part.len <= BLOCK_BYTES {
            return None;
        }
        if part.len <= NARROW_BYTES {
            return Some(BLOCK_BYTES);
        }
        let is_after_success = std::mem::take(&mut self.piece.is_after_success);
        if !is_after_success && self.narrowings >= NARROWINGS_MAX {
            return None;
        }
        self.narrowings += 1;
        Some(NARROW_BYTES)
    }

    /// After many failures in a row: a device that also fails where it has answered is gone.
    fn check_presence(&mut self, errno: i32) {
        let block = self.block.bytes_mut(0, BLOCK_BYTES as usize);
        if self
            .file
            .read_exact_at(block, self.answered_offset)
            .is_err()
        {
            self.lost = Some(LostDevice::Gone {
                errno: errno_name(errno),
            });
        }
    }

    /// Makes what was written durable.
    fn flush(&mut self) -> io::Result<()> {
        let mut request = Some(Request::new(0, Op::Sync(SyncCall::Fdatasync), 0, 0));
        self.backend.enqueue(&mut |_| request.take())?;
        let mut result = None;
        while result.is_none() {
            self.backend.wait(WaitMode::Completion)?;
            self.backend
                .reap(&mut |_, returned| result = Some(returned));
        }
        if let Some(failed) = result
            && failed < 0
        {
            self.lost = Some(LostDevice::NotDurable {
                errno: errno_name(-failed),
            });
        }
        Ok(())
    }
}

/// The ranges by position, with neighbours of one fault joined.
fn join_neighbours(mut bad: Vec<BadRange>) -> Vec<BadRange> {
    bad.sort_by_key(|range| range.offset_bytes);
    let mut joined: Vec<BadRange> = Vec::new();
    for range in bad {
        match joined.last_mut() {
            Some(last) if last.goes_on_with(&range) => last.append(&range),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::accept::Piece;
    use diskproof_model::plan::CachePolicy;

    /// The first half of a part was written; another part then leaves the slot that is on top.
    #[test]
    fn rest_of_a_short_write_comes_from_the_buffer_of_its_part() {
        let file = tempfile::tempfile().unwrap();
        let length = u64::from(2 * REQUEST_BYTES);
        let content = SectorContent::new(7);
        let batch = Batch {
            pass: Pass::Write,
            pieces: vec![Piece {
                offset_bytes: 0,
                length_bytes: length,
                order: 0,
            }],
        };
        let log = MoveLog::default();
        let config = QueueConfig {
            depth: 2,
            request_bytes: REQUEST_BYTES,
            cache: CachePolicy::Buffered,
            seed: 1,
            write_shift: 0,
        };
        let fd = OwnedFd::from(file.try_clone().unwrap());
        let mut mover =
            Mover::open(fd, EngineKind::Sync, config, content.clone(), &batch, &log).unwrap();
        mover.piece.requests_left = 2;
        mover.submit().unwrap();
        let first = mover.in_flight[0].take().unwrap();
        mover.backend.reap(&mut |_, _| {});
        mover.submit().unwrap();
        mover.reap();
        file.write_all_at(
            &vec![0; REQUEST_BYTES as usize / 2],
            u64::from(REQUEST_BYTES / 2),
        )
        .unwrap();
        mover.complete(0, first, REQUEST_BYTES as i32 / 2);
        mover.submit().unwrap();
        mover.reap();
        assert_eq!((mover.piece.requests_left, mover.free.len()), (0, 2));
        let mut written = vec![0; REQUEST_BYTES as usize];
        file.read_exact_at(&mut written, 0).unwrap();
        assert_eq!(content.check(0, 0, &written), []);
    }

    const CONFIG: QueueConfig = QueueConfig {
        depth: 2,
        request_bytes: REQUEST_BYTES,
        cache: CachePolicy::Buffered,
        seed: 1,
        write_shift: 0,
    };

    /// A batch that reads pieces of a request each, from this offset on.
    fn reads(from_bytes: u64, pieces: u64) -> Batch {
        let mut batch = Batch {
            pass: Pass::Read,
            pieces: Vec::new(),
        };
        for order in 0..pieces {
            batch.pieces.push(Piece {
                offset_bytes: from_bytes + order * u64::from(REQUEST_BYTES),
                length_bytes: u64::from(REQUEST_BYTES),
                order,
            });
        }
        batch
    }

    /// A file with the content of the first piece, which ends long before the batch does.
    fn short_file(content: &SectorContent, length: usize) -> File {
        let file = tempfile::tempfile().unwrap();
        let mut bytes = vec![0; length];
        content.fill(0, 0, &mut bytes);
        file.write_all_at(&bytes, 0).unwrap();
        file
    }

    fn mover<'a>(file: &File, batch: &'a Batch, log: &'a MoveLog) -> Mover<'a> {
        let fd = OwnedFd::from(file.try_clone().unwrap());
        let content = SectorContent::new(7);
        Mover::open(fd, EngineKind::Sync, CONFIG, content, batch, log).unwrap()
    }

    fn failed(offset_bytes: u64, length_bytes: u64) -> BadRange {
        BadRange {
            offset_bytes,
            length_bytes,
            content: BadContent::Failed {
                errno: errno_name(END_OF_FILE),
            },
        }
    }

    /// A request, its 16 parts and their 256 blocks, of which the first one is good.
    #[test]
    fn failed_request_is_narrowed_down_to_its_bad_blocks() {
        let batch = reads(0, 1);
        let log = MoveLog::default();
        let file = short_file(&SectorContent::new(7), BLOCK_BYTES as usize);
        let end = mover(&file, &batch, &log).run(u64::MAX).unwrap();
        assert_eq!(end.lost, None);
        let moved = log.take_moved();
        let length_bytes = u64::from(REQUEST_BYTES - BLOCK_BYTES);
        assert_eq!(moved[0].bad, [failed(u64::from(BLOCK_BYTES), length_bytes)]);
        assert_eq!(log.bytes(), u64::from(BLOCK_BYTES));
    }

    /// The end of a device that claims far more: eight requests are narrowed.
    #[test]
    fn requests_behind_the_end_are_narrowed_a_few_times_only() {
        let batch = reads(1 << 30, 10);
        let log = MoveLog::default();
        let file = short_file(&SectorContent::new(7), BLOCK_BYTES as usize);
        let end = mover(&file, &batch, &log).run(u64::MAX).unwrap();
        assert_eq!(end.lost, None, "it answers at its start");
        assert_eq!(log.requests(), 8 * (1 + 16 + 256) + 2);
        for (piece, moved) in batch.pieces.iter().zip(log.take_moved()) {
            assert_eq!(moved.bad, [failed(piece.offset_bytes, piece.length_bytes)]);
        }
    }

    #[test]
    fn request_after_a_good_one_is_narrowed_however_many_were() {
        let batch = reads(0, 1);
        let log = MoveLog::default();
        let file = tempfile::tempfile().unwrap();
        let mut mover = mover(&file, &batch, &log);
        mover.narrowings = NARROWINGS_MAX;
        let part = |len| Part {
            offset: 0,
            len,
            moved: 0,
        };
        assert_eq!(mover.take_narrower_bytes(part(REQUEST_BYTES)), None);
        mover.piece.is_after_success = true;
        let narrower = mover.take_narrower_bytes(part(REQUEST_BYTES));
        assert_eq!(narrower, Some(NARROW_BYTES));
        assert_eq!(mover.take_narrower_bytes(part(REQUEST_BYTES)), None);
        // Parts and blocks of a narrowed one are no further ones.
        let narrower = mover.take_narrower_bytes(part(NARROW_BYTES));
        assert_eq!(narrower, Some(BLOCK_BYTES));
        assert_eq!(mover.take_narrower_bytes(part(BLOCK_BYTES)), None);
    }

    #[test]
    fn last_part_of_a_narrowed_request_is_shorter() {
        let batch = reads(0, 1);
        let log = MoveLog::default();
        let file = tempfile::tempfile().unwrap();
        let mut mover = mover(&file, &batch, &log);
        mover.piece.requests_left = 1;
        let part = Part {
            offset: 512,
            len: 2 * BLOCK_BYTES + 512,
            moved: 512,
        };
        mover.retry_in_parts(part, BLOCK_BYTES);
        assert_eq!(mover.piece.requests_left, 3);
        let parts: Vec<(u64, u32, u32)> = mover
            .retries
            .iter()
            .map(|part| (part.offset, part.len, part.moved))
            .collect();
        assert_eq!(parts, [(512, 4096, 0), (4608, 4096, 0), (8704, 512, 0)]);
    }

    /// An empty file does not even answer at its start.
    #[test]
    fn device_that_is_gone_ends_the_test() {
        let batch = reads(0, 1);
        let log = MoveLog::default();
        let file = tempfile::tempfile().unwrap();
        let end = mover(&file, &batch, &log).run(u64::MAX).unwrap();
        let errno = errno_name(END_OF_FILE);
        assert_eq!(end.lost, Some(LostDevice::Gone { errno }));
        assert_eq!(log.moved_count(), 0);
        assert_eq!(log.requests(), u64::from(FAILED_MAX));
    }

    #[test]
    fn errno_of_a_vanished_device_ends_the_test_at_once() {
        let batch = reads(0, 1);
        let log = MoveLog::default();
        let file = tempfile::tempfile().unwrap();
        for (errno, is_gone) in [(libc::ENODEV, true), (libc::EIO, false)] {
            let mut mover = mover(&file, &batch, &log);
            mover.piece.requests_left = 1;
            let block = Part {
                offset: 0,
                len: BLOCK_BYTES,
                moved: 0,
            };
            mover.fail(block, errno);
            assert_eq!(mover.lost.is_some(), is_gone);
            assert_eq!(mover.piece.bad.is_empty(), is_gone);
        }
    }

    #[test]
    fn stopped_test_begins_no_piece() {
        let batch = reads(0, 1);
        let log = MoveLog::default();
        log.stop();
        let file = tempfile::tempfile().unwrap();
        mover(&file, &batch, &log).run(u64::MAX).unwrap();
        assert_eq!((log.requests(), log.moved_count()), (0, 0));
    }
}
