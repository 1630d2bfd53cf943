//! Opens what the gate admitted, and says what may be done with it: which bytes are readable and
//! writable. The identity is checked again on the descriptor, and everything after that uses the
//! descriptor. The engine does its own I/O on [`OpenTarget::fd`]. How the page cache is treated and
//! what direct I/O needs is in [`cache`], the lengths and marks of our own files are in
//! [`lengths`].

mod cache;
mod lengths;

use crate::admit::{Admission, Grant, Permit, UnknownContent, judge_open_directory};
use crate::failure::{OpenError, open_failed};
use crate::file::direct_io::clear_flags;
use crate::file::extents;
use crate::file::held::Held;
use crate::open::direct_trial::FailedRequest;
use crate::open::released;
use crate::open::reopen::reopen;
use crate::open::scratch;
use crate::open::wipe;
use crate::open::write_hints::EarlierWriteHints;
use cache::{DirectNeeds, direct_needs};
use diskproof_model::measurement::{PAUSE_LATENCIES_MIN, WAKE_UP_NS};
use diskproof_model::shape::WriteLife;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{
    Advice, OFlags, SeekFrom, fadvise, fcntl_getfl, fcntl_setfl, fdatasync, fstat, seek,
};
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A file of our own consists of whole pages while it is used: direct I/O takes a page on every
/// filesystem.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Not `OFlags::DSYNC`: that is O_SYNC in rustix 1.1 on Linux (its linux_raw/fs/types.rs).
const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

/// When writes through a description are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteDurability {
    /// After a sync.
    BySync,
    /// When they return: the data, and what is needed to read it (`O_DSYNC`).
    Data,
    /// When they return: the data and all that describes the file (`O_SYNC`).
    File,
}

/// The kind of file or device that is open. The permit to write stays with it: without one there is
/// no writing. Every description of the same target shares it.
#[derive(Debug, Clone)]
enum TargetContent {
    /// A file or device that is only read.
    Existing,
    /// A file or device that the user has released for writing.
    Released {
        _permit: Arc<Permit>,
        /// The lock against udev on the whole disk.
        _lock: Option<Arc<OwnedFd>>,
        unknown: UnknownContent,
    },
    /// Our own file.
    Scratch {
        _permit: Arc<Permit>,
        /// Everything below has content.
        written_bytes: u64,
        /// The size that was admitted, or what was written in the time for that.
        capacity_bytes: u64,
    },
}

impl TargetContent {
    /// A file of ours without content.
    fn scratch(permit: Arc<Permit>) -> Self {
        Self::Scratch {
            capacity_bytes: permit.size_bytes(),
            written_bytes: 0,
            _permit: permit,
        }
    }
}

/// The kept files of a target: those behind the first one, and the sizes of all of them. Each of
/// several holds an equal part of the target, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptFiles {
    /// The files behind the first one.
    pub(crate) others: Vec<Arc<OwnedFd>>,
    /// The bytes of each file, also of the first one, that belong to the target.
    pub(crate) part: PartOfFile,
    /// The size that each file gets at the end of the run. Of several files, that of the part and
    /// of what is never used before and behind it. Of a single one, a size that is inside of its
    /// last page; 0 where it ends with a page.
    pub(crate) file_bytes: u64,
    /// The size of the largest one: one of our own that existed keeps its length.
    pub(crate) largest_bytes: u64,
}

/// The part of each of several files that belongs to a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartOfFile {
    /// The offset in the file at which the part begins.
    pub start: u64,
    /// Length of the part in bytes.
    pub bytes: u64,
}

/// An open target: one descriptor, checked to be of the target that was admitted. Dropping a
/// scratch file's target gives its space back.
#[derive(Debug)]
pub struct OpenTarget {
    fd: Arc<OwnedFd>,
    /// Its kept files; the default where the target has none.
    kept_files: KeptFiles,
    identity: TargetIdentity,
    content: TargetContent,
    direct: DirectNeeds,
    /// The advice that the kernel was given about the order of accesses.
    advice: Advice,
    /// The description that was opened first and has the claim on a device; `None` where that is
    /// `fd`.
    claiming: Option<Arc<OwnedFd>>,
    /// Requests before any workload that the disk failed, until a workload counts them.
    uncounted_failures: Vec<FailedRequest>,
    /// Whether it takes RWF_NOWAIT; `None` before a trial.
    takes_nowait: Option<bool>,
    /// The longest time in which it answered nothing, before any workload, in nanoseconds.
    silence_ns: AtomicU64,
    /// The time of its very first answer. All descriptions of a target share it.
    first_answer: Arc<FirstAnswer>,
    /// True once [`Self::leave_open`] was called.
    is_left_open: AtomicBool,
    /// The bytes that the page cache was given, since it was last emptied. All descriptions of a
    /// target share its pages.
    in_memory: Arc<Mutex<Range<u64>>>,
    /// The hints that its files had before; the last description restores them.
    earlier_hints: Arc<EarlierWriteHints>,
}

/// The place of an answer among those of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOrder {
    /// It is the very first one.
    First,
    /// The target has answered before.
    Later,
}

/// The very first answer of a target.
#[derive(Debug, Default)]
struct FirstAnswer {
    has_come: AtomicBool,
    /// The time that it took, until it is handed out.
    ns: AtomicU64,
    usual: UsualAnswer,
}

/// The answers of a target outside of measured times.
#[derive(Debug, Default)]
struct UsualAnswer(Mutex<AnswerTimes>);

/// The answers that are compared with a silence. The longest one of each call is no measure of the
/// others: two pauses would make each other usual. Calls with a single answer have no others, so
/// that they are compared with each other.
#[derive(Debug, Default)]
struct AnswerTimes {
    /// Of calls with several answers, without the longest one of each.
    others: u64,
    others_ns: u64,
    /// Of calls with a single answer.
    single: u64,
    single_ns: u64,
    longest_single_ns: u64,
}

impl UsualAnswer {
    fn add(&self, call: AnsweredCall) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if call.answers > 1 {
            times.others += call.answers - 1;
            times.others_ns += call.lasted_ns.saturating_sub(call.longest_silence_ns);
        } else {
            times.single += call.answers;
            times.single_ns += call.lasted_ns;
            times.longest_single_ns = times.longest_single_ns.max(call.lasted_ns);
        }
    }

    /// The longest time without an answer that is no exception among the other ones; 0 where there
    /// are no others.
    fn longest_ns(&self) -> u64 {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = times.others + times.single.saturating_sub(1);
        if others == 0 {
            return 0;
        }
        let single_ns = times.single_ns.saturating_sub(times.longest_single_ns);
        let others_ns = times.others_ns.saturating_add(single_ns);
        (others_ns as f64 / others as f64 * PAUSE_LATENCIES_MIN) as u64
    }
}

/// The answers of a target to the requests of one call, which follow each other.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredCall {
    /// How many there were.
    pub answers: u64,
    /// The time of the call.
    pub lasted_ns: u64,
    /// The longest time without an answer in it.
    pub longest_silence_ns: u64,
}

/// A file's share of the first bytes of a target.
struct FileShare<'a> {
    file: BorrowedFd<'a>,
    /// The offset in the file at which the share ends.
    end: u64,
}

impl OpenTarget {
    /// Opens what was admitted: an existing file or device for reading, a released one for writing
    /// too, or a new nameless scratch file in the directory. A released device is opened
    /// exclusively, its disk is locked against udev, and every check of the gate runs again.
    pub fn open(admission: Admission) -> Result<Self, OpenError> {
        let (identity, grant) = admission.into_parts();
        let (fd, content) = match grant {
            Grant::Read => (Arc::new(open_existing(&identity)?), TargetContent::Existing),
            Grant::Overwrite(permit, consent) => {
                let released = released::open(&identity, &consent, &permit)?;
                let content = TargetContent::Released {
                    _permit: Arc::new(permit),
                    _lock: released.disk_lock,
                    unknown: consent.unknown,
                };
                (released.fd, content)
            }
            Grant::Scratch(permit) => {
                let directory = open_directory(&identity, permit.size_bytes())?;
                let fd = scratch::create(directory.as_fd(), &identity.path, &permit)?;
                (Arc::new(fd), TargetContent::scratch(Arc::new(permit)))
            }
        };
        let direct = direct_needs(fd.as_fd(), &identity);
        Ok(Self::new(fd, identity, content, direct))
    }

    fn new(
        fd: Arc<OwnedFd>,
        identity: TargetIdentity,
        content: TargetContent,
        direct: DirectNeeds,
    ) -> Self {
        Self {
            fd,
            kept_files: KeptFiles::default(),
            identity,
            content,
            direct,
            advice: Advice::Normal,
            claiming: None,
            uncounted_failures: Vec::new(),
            takes_nowait: None,
            silence_ns: AtomicU64::new(0),
            first_answer: Arc::default(),
            is_left_open: AtomicBool::new(false),
            in_memory: Arc::default(),
            earlier_hints: Arc::default(),
        }
    }

    /// The target that is our own file with a name that stays. The permit is that of its directory.
    pub(crate) fn from_kept_file(
        file: Arc<OwnedFd>,
        directory: &TargetIdentity,
        permit: &Arc<Permit>,
    ) -> Self {
        let direct = direct_needs(file.as_fd(), directory);
        let content = TargetContent::scratch(Arc::clone(permit));
        Self::new(file, directory.clone(), content, direct)
    }

    /// As [`Self::from_kept_file`], of several files that hold one target in turn.
    pub(crate) fn from_kept_files(
        first: Arc<OwnedFd>,
        kept_files: KeptFiles,
        directory: &TargetIdentity,
        permit: &Arc<Permit>,
    ) -> Self {
        Self {
            kept_files,
            ..Self::from_kept_file(first, directory, permit)
        }
    }

    /// The files, in the order of the parts that they hold: mostly one.
    pub fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let others = self.kept_files.others.iter().map(|file| file.as_fd());
        std::iter::once(self.fd.as_fd()).chain(others)
    }

    /// The part of each of its files that belongs to it; `None` of a single file, which holds all.
    pub fn part_of_file(&self) -> Option<PartOfFile> {
        if self.kept_files.others.is_empty() {
            None
        } else {
            Some(self.kept_files.part)
        }
    }

    /// The files, each with its share of the first `bytes` of the target.
    fn shares(&self, bytes: u64) -> impl Iterator<Item = FileShare<'_>> {
        let whole = PartOfFile {
            start: 0,
            bytes: u64::MAX,
        };
        let part = self.part_of_file().unwrap_or(whole);
        self.files().enumerate().map(move |(index, file)| {
            let before = (index as u64).saturating_mul(part.bytes);
            let share = bytes.saturating_sub(before).min(part.bytes);
            FileShare {
                file,
                end: part.start.saturating_add(share),
            }
        })
    }

    /// Zeroes data of an unknown format at the ends of a device, where the user allowed that by
    /// --wipe-unknown. To be called once all targets of a run are open: until then a refusal of one
    /// leaves all as they are.
    pub fn wipe_unknown(&self) -> Result<(), OpenError> {
        let is_allowed = matches!(
            self.content,
            TargetContent::Released {
                unknown: UnknownContent::Wipe,
                ..
            }
        );
        if is_allowed && self.identity.kind == TargetKind::BlockDevice {
            wipe::wipe_unknown(self.fd(), &self.identity)
        } else {
            Ok(())
        }
    }

    /// The target by another description, for a workload that treats the page cache in its own way
    /// alongside others. It has the same permit, so no more rights, and the gate, which has
    /// admitted this very file or device, is not passed again. What is written through either shows
    /// in both, but each notes by itself how far a scratch file is written, from what is noted now.
    pub fn reopen(&self) -> Result<Self, OpenError> {
        let fd = reopen(self.fd(), OFlags::empty(), &self.identity.path)?;
        let mut kept_files = self.kept_files.clone();
        for file in &mut kept_files.others {
            *file = Arc::new(reopen(file.as_fd(), OFlags::empty(), &self.identity.path)?);
        }
        let (identity, content) = (self.identity.clone(), self.content.clone());
        // It holds the claim on a device (O_EXCL belongs to the description that opened with it)
        // and the lock: both last as long as any other description of ours.
        let claiming = self.claiming.as_ref().unwrap_or(&self.fd);
        Ok(Self {
            kept_files,
            claiming: Some(Arc::clone(claiming)),
            in_memory: Arc::clone(&self.in_memory),
            first_answer: Arc::clone(&self.first_answer),
            earlier_hints: Arc::clone(&self.earlier_hints),
            ..Self::new(Arc::new(fd), identity, content, self.direct)
        })
    }

    /// One more description, with the flags and the advice that this one has now, for a worker
    /// alongside others: the processes of a database have their own, too. In a shared one the
    /// kernel keeps one state of reading ahead for all (`f_ra` of struct file in Linux), so that
    /// the sequential streams of several workers pass for one that jumps about; and each buffered
    /// read writes that state, so that CPUs take it from each other. The claim on a device and the
    /// lock are this one's, which has to stay open.
    pub fn for_worker(&self, durability: WriteDurability) -> Result<OwnedFd, OpenError> {
        self.open_description(self.fd(), durability)
    }

    /// As [`Self::for_worker`], a description of each of its files.
    pub fn files_for_worker(&self, durability: WriteDurability) -> Result<Vec<OwnedFd>, OpenError> {
        self.files()
            .map(|file| self.open_description(file, durability))
            .collect()
    }

    /// Opens another description of a file, with the flags and the advice of this target.
    fn open_description(
        &self,
        file: BorrowedFd<'_>,
        durability: WriteDurability,
    ) -> Result<OwnedFd, OpenError> {
        let failed = self.failed("set the flags of a second description");
        let extra = match durability {
            WriteDurability::BySync => OFlags::empty(),
            WriteDurability::Data => O_DSYNC,
            WriteDurability::File => OFlags::SYNC,
        };
        let fd = reopen(file, extra, &self.identity.path)?;
        let flags = fcntl_getfl(file);
        flags
            .and_then(|flags| fcntl_setfl(&fd, flags))
            .map_err(failed)?;
        let _ = fadvise(&fd, 0, None, self.advice);
        Ok(fd)
    }

    /// Keeps its descriptors open until the process ends: a target that does not answer may block
    /// the thread that closes it, too, for good (a network filesystem writes back on close, a block
    /// device at its last close; filp_close() in Linux's fs/open.c).
    pub fn leave_open(&self) {
        std::mem::forget((
            Arc::clone(&self.fd),
            self.kept_files.clone(),
            self.claiming.clone(),
            self.content.clone(),
            Arc::clone(&self.earlier_hints),
        ));
        self.is_left_open.store(true, Ordering::Relaxed);
    }

    /// True once it was left open because it does not answer. The caller must send it no further
    /// request.
    pub fn is_left_open(&self) -> bool {
        self.is_left_open.load(Ordering::Relaxed)
    }

    /// The descriptor, for the engine's I/O.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The description that came from the gate, which has the claim on a device.
    pub fn claim(&self) -> BorrowedFd<'_> {
        match &self.claiming {
            Some(claiming) => claiming.as_fd(),
            None => self.fd(),
        }
    }

    /// The identity of the target; for a scratch file, that of its directory.
    pub fn identity(&self) -> &TargetIdentity {
        &self.identity
    }

    /// True where writes are possible.
    pub fn is_writable(&self) -> bool {
        !matches!(self.content, TargetContent::Existing)
    }

    /// True for our own scratch file.
    pub fn is_scratch(&self) -> bool {
        matches!(self.content, TargetContent::Scratch { .. })
    }

    /// True for our own scratch file without a name, which nobody can read after the run.
    pub fn is_nameless(&self) -> bool {
        self.is_scratch() && fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Bytes that reads may cover, from offset 0: the size of the file or device; of a scratch
    /// file, what has been written.
    pub fn usable_bytes(&self) -> u64 {
        match self.content {
            TargetContent::Existing | TargetContent::Released { .. } => self.identity.size_bytes,
            TargetContent::Scratch { written_bytes, .. } => written_bytes,
        }
    }

    /// Bytes that writes may cover, from offset 0: the scratch size as admitted, the whole of what
    /// was released; 0 when read-only.
    pub fn capacity_bytes(&self) -> u64 {
        match self.content {
            TargetContent::Existing => 0,
            TargetContent::Released { .. } => self.identity.size_bytes,
            TargetContent::Scratch { capacity_bytes, .. } => capacity_bytes,
        }
    }

    /// Notes that everything below `bytes` has been written. Never lowers the mark, never passes
    /// the capacity; without effect on what existed before.
    pub fn mark_written(&mut self, bytes: u64) {
        if let TargetContent::Scratch {
            written_bytes,
            capacity_bytes,
            ..
        } = &mut self.content
        {
            *written_bytes = (*written_bytes).max(bytes.min(*capacity_bytes));
        }
    }

    /// Notes that what lies from `bytes` on has no content any more; without effect on what existed
    /// before.
    pub fn mark_unwritten(&mut self, bytes: u64) {
        if let TargetContent::Scratch { written_bytes, .. } = &mut self.content {
            *written_bytes = (*written_bytes).min(bytes);
        }
    }

    /// Bytes in the range that were never written (holes, preallocated extents, what lies beyond
    /// the end); `None` for block devices and where the filesystem does not report it. Writes dirty
    /// pages of the range back first, so that delayed allocation cannot hide data.
    pub fn unwritten_bytes(&self, start: u64, length: u64) -> Option<u64> {
        if self.identity.kind == TargetKind::BlockDevice {
            return None;
        }
        if self.is_writable() {
            self.write_back().ok()?;
        }
        if self.part_of_file().is_none() {
            return extents::unwritten_bytes(self.fd(), start, length);
        }
        let before = self.shares(start);
        let within = self.shares(start.saturating_add(length));
        let mut unwritten = 0;
        for (before, within) in before.zip(within) {
            let length = within.end - before.end;
            unwritten += extents::unwritten_bytes(within.file, before.end, length)?;
        }
        Some(unwritten)
    }

    /// Lets the kernel find out the order of accesses by itself. Advice only.
    pub fn advise_normal(&mut self) {
        self.advise(Advice::Normal);
    }

    /// Tells the kernel to expect random access: no read-ahead. Advice only.
    pub fn advise_random(&mut self) {
        self.advise(Advice::Random);
    }

    /// Tells the kernel to expect sequential access: double read-ahead. Advice only.
    pub fn advise_sequential(&mut self) {
        self.advise(Advice::Sequential);
    }

    /// Tells the kernel how long data is expected to stay that is written to the target. The
    /// earlier expectation is restored when the last description of the target is closed.
    pub fn expect_write_life(&self, life: WriteLife) -> Result<(), OpenError> {
        let mut files = vec![Arc::clone(&self.fd)];
        files.extend(self.kept_files.others.iter().cloned());
        self.earlier_hints
            .replace(&files, life)
            .map_err(self.failed("set the expected life of written data"))
    }

    fn advise(&mut self, advice: Advice) {
        self.advice = advice;
        for file in self.files() {
            let _ = fadvise(file, 0, None, advice);
        }
    }

    /// Makes everything written so far durable; nothing to do for what is open for reading.
    pub fn write_back(&self) -> Result<(), OpenError> {
        if !self.is_writable() {
            return Ok(());
        }
        self.files()
            .try_for_each(fdatasync)
            .map_err(|errno| self.write_back_error(errno))
    }

    /// The error of a target that could not be written back.
    pub fn write_back_error(&self, errno: Errno) -> OpenError {
        OpenError::from_errno(&self.identity.path, "write it back (fdatasync)", errno)
    }

    /// Notes a time in which the target answered nothing before a workload, for the next one. A
    /// disk that sleeps is silent before its very first answer, which is noted by itself.
    pub fn note_silence(&self, silence_ns: u64) {
        let order = self.note_answer(silence_ns);
        if order == AnswerOrder::Later || silence_ns >= WAKE_UP_NS {
            self.silence_ns.fetch_max(silence_ns, Ordering::Relaxed);
        }
    }

    /// Notes that the target has answered after so many nanoseconds. Says whether that was its very
    /// first answer, whose time is then handed out by [`Self::take_first_answer_ns`], unless no
    /// disk that wakes up takes so long.
    pub fn note_answer(&self, waited_ns: u64) -> AnswerOrder {
        if self.first_answer.has_come.swap(true, Ordering::Relaxed) {
            return AnswerOrder::Later;
        }
        if waited_ns < WAKE_UP_NS {
            self.first_answer.ns.store(waited_ns, Ordering::Relaxed);
        }
        AnswerOrder::First
    }

    /// Notes the answers of the target in a call, without its very first one.
    pub fn note_answers(&self, call: AnsweredCall) {
        self.first_answer.usual.add(call);
    }

    /// The longest time without an answer that is no exception for this target, in nanoseconds: a
    /// disk may need seconds for each request. 0 where too little is known.
    pub fn usual_silence_ns(&self) -> u64 {
        self.first_answer.usual.longest_ns()
    }

    /// True if the target has answered a request that was noted.
    pub fn has_answered(&self) -> bool {
        self.first_answer.has_come.load(Ordering::Relaxed)
    }

    /// The time of the very first answer, which is handed out once.
    pub fn take_first_answer_ns(&self) -> u64 {
        self.first_answer.ns.swap(0, Ordering::Relaxed)
    }

    /// The longest silence that was noted, which is handed out once; 0 where the target is as slow
    /// as that in all it does.
    pub fn take_silence_ns(&self) -> u64 {
        let silence_ns = self.silence_ns.swap(0, Ordering::Relaxed);
        if silence_ns >= self.usual_silence_ns() {
            silence_ns
        } else {
            0
        }
    }

    /// Takes back silences that were handed out to what is no result.
    pub fn return_silences(&self, silence_ns: u64, first_answer_ns: u64) {
        self.silence_ns.fetch_max(silence_ns, Ordering::Relaxed);
        self.first_answer
            .ns
            .fetch_max(first_answer_ns, Ordering::Relaxed);
    }

    fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> OpenError {
        move |errno| OpenError::from_errno(&self.identity.path, doing, errno)
    }
}

/// Opens a file or device for reading, and checks that it is the one that was admitted.
fn open_existing(identity: &TargetIdentity) -> Result<OwnedFd, OpenError> {
    let held = Held::identified(identity)?;
    let fd = held
        .reopen(OFlags::RDONLY | OFlags::NONBLOCK)
        .map_err(|errno| open_failed(&identity.path, errno))?;
    let size = read_size(&fd, identity.kind)
        .map_err(|errno| OpenError::from_errno(&identity.path, "read its metadata", errno))?;
    // A file that has grown is a live table or log: the bytes that were there are still there.
    let has_grown = identity.kind == TargetKind::File && size > identity.size_bytes;
    if !has_grown {
        released::check_size(identity, size)?;
    }
    clear_flags(&fd, OFlags::NONBLOCK)
        .map_err(|e| OpenError::from_errno(&identity.path, "set its file flags", e))?;
    Ok(fd)
}

/// The size of an open device or file.
fn read_size(fd: &OwnedFd, kind: TargetKind) -> Result<u64, Errno> {
    match kind {
        TargetKind::BlockDevice => seek(fd, SeekFrom::End(0)),
        TargetKind::File | TargetKind::Directory => Ok(fstat(fd)?.st_size.unsigned_abs()),
    }
}

/// The directory of what is going to be written, checked once more.
pub(crate) fn open_directory(
    identity: &TargetIdentity,
    size_bytes: u64,
) -> Result<OwnedFd, OpenError> {
    let held = Held::identified(identity)?;
    judge_open_directory(identity, held.fd(), size_bytes)?;
    held.check_steady(&identity.path)?;
    judge_open_directory(identity, held.fd(), size_bytes)?;
    Ok(held.into_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest usual time, in seconds, after calls of so many answers and milliseconds, of
    /// which so many were one silence.
    fn usual_s(calls: &[(u64, u64, u64)]) -> f64 {
        let usual = UsualAnswer::default();
        for (answers, lasted_ms, longest_ms) in calls {
            usual.add(AnsweredCall {
                answers: *answers,
                lasted_ns: lasted_ms * 1_000_000,
                longest_silence_ns: longest_ms * 1_000_000,
            });
        }
        usual.longest_ns() as f64 / 1e9
    }

    #[test]
    fn silence_is_an_exception_among_quick_answers_only() {
        // 2.5 s for each request: none is a silence.
        assert!(usual_s(&[(3, 7500, 2500), (2, 5000, 2500)]) > 20.0);
        // One silence of 3 s among answers within 50 ms, in the same call or in others.
        assert!(usual_s(&[(2, 3050, 3000)]) < 3.0);
        assert!(usual_s(&[(1, 3000, 3000), (4, 200, 50)]) < 3.0);
        // Two silences, each in a call with quick answers, do not make each other usual.
        assert!(usual_s(&[(3, 3020, 3000), (4, 3030, 3000)]) < 3.0);
        // Writes that take seconds each, beside quick reads.
        assert!(usual_s(&[(4, 40, 10), (4, 12_000, 3000)]) > 3.0);
        // A single answer proves neither.
        assert_eq!(usual_s(&[(1, 3000, 3000)]), 0.0);
        assert_eq!(usual_s(&[]), 0.0);
    }
}
