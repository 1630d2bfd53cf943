//! Sends requests by Linux native AIO, with raw system calls (io_setup(2), io_submit(2),
//! io_getevents(2)). It is asynchronous only with O_DIRECT, and has no trims: run/select.rs takes
//! another engine for them.
#![allow(unsafe_code)]

use super::batching::{BatchSize, SubmitPolicy};
use super::buffers::Buffers;
use super::files::TargetFiles;
use super::sync::{sync, sync_range};
use super::{
    Backend, Extent, Op, Request, RequestSource, WAIT_MAX_NS, WaitMode, advise_dontneed, last_errno,
};
use diskproof_model::plan::SyncCall;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Commands of linux/aio_abi.h.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_FSYNC: u16 = 2;
const IOCB_CMD_FDSYNC: u16 = 3;

/// `struct iocb` of linux/aio_abi.h, little endian.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    reqprio: i16,
    fd: u32,
    buf: u64,
    nbytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    data: u64,
    obj: u64,
    res: i64,
    res2: i64,
}

/// The header of the completion ring. The kernel maps it at the address that is the context id.
/// `struct aio_ring` of fs/aio.c has not changed since Linux 2.5, and libaio and fio read it, too.
/// The events follow it.
#[repr(C)]
struct EventRing {
    id: u32,
    nr: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compat_features: u32,
    incompat_features: u32,
    header_length: u32,
}

/// `AIO_RING_MAGIC` of fs/aio.c.
const RING_MAGIC: u32 = 0xa10a_10a1;

/// Syncs of this backend run in one of two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncMethod {
    /// By the kernel's own threads, in parallel with other requests: since Linux 4.18.
    Queued,
    /// By a blocking call. The other slots wait meanwhile, and no two syncs share a flush. With a
    /// single slot this is faster.
    Blocking,
}

/// Linux AIO. From [`Backend::enqueue`] to [`Backend::reap`] a request is in one of four places:
/// `queued`, then `in_flight`, then `fetched` where `io_getevents` brought its event; or in
/// `completed_early`, which bypasses the kernel's queue. Together they are at most the depth.
#[derive(Debug)]
pub struct AioBackend {
    files: TargetFiles,
    context: u64,
    buffers: Buffers,
    /// One control block per slot; its address must stay while in flight, so the vector never
    /// grows.
    iocbs: Vec<Iocb>,
    /// Requests that no `io_submit` has taken yet.
    queued: Vec<*mut Iocb>,
    /// Requests that the kernel has, those included whose events are in its ring.
    in_flight: usize,
    /// Events in the kernel's ring that the next reap takes: those that were there at the end of
    /// the last wait. Their requests count as in flight until then.
    reapable_in_ring: u32,
    /// Room for the events of `io_getevents`.
    events: Vec<Event>,
    /// The first so many of `events` wait for the next reap.
    fetched: usize,
    /// Slots and results of requests that ended without the kernel's queue: it has no form of
    /// sync_file_range, or it refused them.
    completed_early: Vec<(u32, i32)>,
    sync_method: SyncMethod,
    /// Calls of [`Backend::wait`].
    waits: u64,
    /// Those of them that called `io_getevents`, some with a timeout of 0.
    kernel_waits: u64,
    /// The completion ring, where its layout is known.
    ring: Option<NonNull<EventRing>>,
    batch: BatchSize,
}

impl AioBackend {
    /// Makes a context for up to `depth` requests in flight. Fails with EAGAIN where the system's
    /// limit of AIO requests (fs.aio-max-nr) is reached.
    pub(crate) fn new(
        files: impl Into<TargetFiles>,
        buffers: Buffers,
        depth: u32,
        submission: SubmitPolicy,
    ) -> io::Result<Self> {
        let files = files.into();
        let mut context: u64 = 0;
        // SAFETY: io_setup writes the context id to the address given.
        if unsafe { libc::syscall(libc::SYS_io_setup, depth as libc::c_long, &raw mut context) } < 0
        {
            return Err(io::Error::last_os_error());
        }
        let first_fd = files.first().as_raw_fd() as u32;
        let iocbs = (0..u64::from(depth))
            .map(|slot| Iocb {
                data: slot,
                fd: first_fd,
                ..Iocb::default()
            })
            .collect();
        // A queued request syncs one file only.
        let sync_method = if depth > 1 && !files.are_several() {
            SyncMethod::Queued
        } else {
            SyncMethod::Blocking
        };
        Ok(Self {
            files,
            context,
            buffers,
            iocbs,
            queued: Vec::with_capacity(depth as usize),
            in_flight: 0,
            reapable_in_ring: 0,
            events: vec![Event::default(); depth as usize],
            fetched: 0,
            completed_early: Vec::with_capacity(depth as usize),
            sync_method,
            waits: 0,
            kernel_waits: 0,
            ring: event_ring(context),
            batch: BatchSize::for_depth(depth, submission),
        })
    }

    /// Queues a request, or carries it out at once where AIO cannot.
    #[inline(always)]
    fn prepare(&mut self, request: &Request) {
        let opcode = match request.op {
            Op::Read => IOCB_CMD_PREAD,
            Op::Write => IOCB_CMD_PWRITE,
            Op::Sync(call) => return self.prepare_sync(request.slot, call),
            Op::SyncRange(steps) => {
                let place = self.files.place(request.offset);
                let result = sync_range(place.fd.as_raw_fd(), place.offset, request.len, steps);
                return self.completed_early.push((request.slot, result));
            }
            Op::Call(_) => {
                return self.completed_early.push((request.slot, -libc::EOPNOTSUPP));
            }
        };
        // The rest of the control block is the same for every request of the slot.
        let iocb = &mut self.iocbs[request.slot as usize];
        iocb.opcode = opcode;
        iocb.buf = self.buffers.slot(request.buffer as usize) as u64 + u64::from(request.skip);
        iocb.nbytes = u64::from(request.len);
        iocb.offset = request.offset as i64;
        if self.files.are_several() {
            let place = self.files.place(request.offset);
            let bytes = self
                .files
                .bytes_in_file(request.offset, request.len as usize);
            iocb.fd = place.fd.as_raw_fd() as u32;
            iocb.offset = place.offset as i64;
            iocb.nbytes = bytes as u64;
            if request.op == Op::Write {
                self.files.note_write(request.slot, request.offset);
            }
        }
        self.queued.push(iocb);
    }

    #[inline(never)]
    fn prepare_sync(&mut self, slot: u32, call: SyncCall) {
        if self.sync_method == SyncMethod::Blocking {
            let result = self.files.sync_written(|fd| sync(fd.as_raw_fd(), call));
            self.completed_early.push((slot, result));
            return;
        }
        let iocb = &mut self.iocbs[slot as usize];
        iocb.opcode = match call {
            SyncCall::Fsync => IOCB_CMD_FSYNC,
            SyncCall::Fdatasync => IOCB_CMD_FDSYNC,
        };
        // Anything else here is refused (aio_fsync in Linux's fs/aio.c).
        (iocb.buf, iocb.nbytes, iocb.offset) = (0, 0, 0);
        self.queued.push(iocb);
    }

    /// Ends a request that the kernel refused with `errno`, which is its result. A kernel before
    /// Linux 4.18 refuses queued syncs with EINVAL: this sync and all later ones are then blocking
    /// calls.
    #[cold]
    fn complete_refused(&mut self, slot: u32, errno: i32) {
        let refused_sync = match self.iocbs[slot as usize].opcode {
            IOCB_CMD_FSYNC => Some(SyncCall::Fsync),
            IOCB_CMD_FDSYNC => Some(SyncCall::Fdatasync),
            _ => None,
        };
        let result = match refused_sync {
            Some(call) if errno == libc::EINVAL => {
                self.sync_method = SyncMethod::Blocking;
                sync(self.files.first().as_raw_fd(), call)
            }
            Some(_) | None => -errno,
        };
        self.completed_early.push((slot, result));
    }

    /// Submits a batch without waiting for completions. The number of completions after it decides
    /// the size of the next batch.
    fn submit_batch(&mut self) -> io::Result<()> {
        let sent = self.queued.len() as u32;
        self.submit()?;
        self.batch.learn(sent, self.events_in_ring());
        Ok(())
    }

    /// Events that can be read without a system call; 0 where the ring's layout is unknown.
    #[inline(always)]
    fn events_in_ring(&self) -> u32 {
        let Some(ring) = self.ring else { return 0 };
        // SAFETY: the kernel maps the ring as long as the context lives.
        let ring = unsafe { ring.as_ref() };
        let head = ring.head.load(Ordering::Relaxed);
        let tail = ring.tail.load(Ordering::Acquire);
        if tail >= head {
            tail - head
        } else {
            tail + ring.nr - head
        }
    }

    /// Passes on the events that were in the kernel's ring at the end of the last wait. Nothing
    /// else moves the head of the ring but `io_getevents`, which this thread calls too.
    #[inline(always)]
    fn reap_ring(&mut self, sink: &mut impl FnMut(u32, i32)) {
        let Some(ring) = self.ring else { return };
        // SAFETY: as above; the events lie behind the head, `nr` of them.
        let (ring, events) = unsafe { (ring.as_ref(), ring.as_ptr().add(1).cast::<Event>()) };
        let mut head = ring.head.load(Ordering::Relaxed);
        for _ in 0..self.reapable_in_ring {
            // SAFETY: `head` is below `nr`; between head and tail the kernel has written the event,
            // and leaves it alone until the head passes it.
            let event = unsafe { events.add(head as usize).read() };
            head = if head + 1 == ring.nr { 0 } else { head + 1 };
            self.files.note_end(event.data as u32);
            sink(event.data as u32, event.res as i32);
        }
        ring.head.store(head, Ordering::Release);
        self.in_flight -= std::mem::take(&mut self.reapable_in_ring) as usize;
    }

    /// Submits what is queued. What the kernel does not take before other requests end stays
    /// queued.
    fn submit(&mut self) -> io::Result<()> {
        let mut first = 0;
        while first < self.queued.len() {
            let rest = &mut self.queued[first..];
            // SAFETY: the pointers lead to control blocks inside `iocbs`, which neither moves nor
            // changes while they are in flight.
            let taken = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context,
                    rest.len() as libc::c_long,
                    rest.as_mut_ptr(),
                )
            };
            if taken > 0 {
                first += taken as usize;
                self.in_flight += taken as usize;
                continue;
            }
            let errno = last_errno();
            if errno == libc::EAGAIN && self.in_flight > 0 {
                break;
            }
            if errno != libc::EINTR {
                // The kernel refused the first request, whatever ends before it: the refusal is the
                // result of that request. SAFETY: the pointer leads to a live control block, as
                // above.
                let slot = unsafe { (*rest[0]).data } as u32;
                self.complete_refused(slot, errno);
                first += 1;
            }
        }
        self.queued.drain(..first);
        Ok(())
    }
}

/// The completion ring of a context; `None` where its layout is unknown.
fn event_ring(context: u64) -> Option<NonNull<EventRing>> {
    let ring = NonNull::new(context as usize as *mut EventRing)?;
    // SAFETY: io_setup maps the ring at the address that it returns as the id (fs/aio.c:
    // aio_setup_ring).
    let header = unsafe { ring.as_ref() };
    let is_known = header.magic == RING_MAGIC
        && header.incompat_features == 0
        && header.header_length as usize == size_of::<EventRing>();
    if is_known { Some(ring) } else { None }
}

impl Backend for AioBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        loop {
            // No call inside the loop, so that its state stays in registers.
            while self.queued.len() < self.batch.size as usize {
                let Some(request) = source(&mut self.buffers) else {
                    return Ok(());
                };
                self.prepare(&request);
            }
            self.submit_batch()?;
            if !self.queued.is_empty() {
                // The kernel takes no more before completions are reaped.
                return Ok(());
            }
        }
    }

    fn wait(&mut self, patience: WaitMode) -> io::Result<()> {
        self.submit()?;
        self.reapable_in_ring = self.events_in_ring();
        self.waits += 1;
        if self.in_flight == 0 || self.reapable_in_ring > 0 {
            return Ok(());
        }
        let wait_ns = match patience {
            _ if !self.completed_early.is_empty() => 0,
            WaitMode::Completion => WAIT_MAX_NS,
            WaitMode::AtMost(ns) => ns.min(WAIT_MAX_NS),
            WaitMode::Poll => 0,
        };
        self.kernel_waits += 1;
        let timeout = libc::timespec {
            tv_sec: 0,
            tv_nsec: wait_ns.min(999_999_999) as i64,
        };
        let events_min = libc::c_long::from(wait_ns > 0);
        let events_max = self.events.len() as libc::c_long;
        // SAFETY: the events array has room for `events_max` entries; the timeout outlives the
        // call.
        let got = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                events_min,
                events_max,
                self.events.as_mut_ptr(),
                &raw const timeout,
            )
        };
        if got < 0 {
            return match last_errno() {
                libc::EINTR => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            };
        }
        self.fetched = got as usize;
        self.in_flight -= self.fetched;
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        if self.reapable_in_ring > 0 {
            self.reap_ring(sink);
        }
        for event in &self.events[..std::mem::take(&mut self.fetched)] {
            self.files.note_end(event.data as u32);
            sink(event.data as u32, event.res as i32);
        }
        if !self.completed_early.is_empty() {
            for (slot, result) in self.completed_early.drain(..) {
                sink(slot, result);
            }
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    fn done_before_wait(&self) -> Option<f64> {
        if self.ring.is_none() || self.waits == 0 {
            return None;
        }
        Some(1.0 - self.kernel_waits as f64 / self.waits as f64)
    }

    fn drop_cache(&mut self, extent: Option<Extent>) {
        for part in self.files.parts(extent) {
            advise_dontneed(part.fd, part.extent);
        }
    }
}

impl Drop for AioBackend {
    fn drop(&mut self) {
        // SAFETY: ends the context made in `new`; the kernel waits for what is in flight, so the
        // buffers are unused afterwards.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{FromRawFd as _, OwnedFd};

    const DEPTH: u32 = 4;

    /// Syncs of both kinds alternately through all slots of `depth`: how many the kernel took, and
    /// their results.
    fn sync_all(fd: OwnedFd, depth: u32) -> (usize, Vec<(u32, i32)>) {
        let buffers = Buffers::new(depth as usize, 4096).unwrap();
        let mut backend = AioBackend::new(fd, buffers, depth, SubmitPolicy::Batched).unwrap();
        let calls = [SyncCall::Fsync, SyncCall::Fdatasync];
        let mut requests = (0..depth).map(|slot| Request {
            slot,
            buffer: slot,
            op: Op::Sync(calls[slot as usize % 2]),
            offset: 8192,
            len: 4096,
            skip: 0,
        });
        backend.enqueue(&mut |_| requests.next()).unwrap();
        // Completions are in flight until they are read.
        let taken = backend.in_flight + backend.queued.len();
        let mut results = Vec::new();
        while results.len() < depth as usize {
            backend.wait(WaitMode::Completion).unwrap();
            backend.reap(&mut |slot, result| results.push((slot, result)));
        }
        results.sort_unstable();
        (taken, results)
    }

    #[test]
    fn aio_queues_several_syncs_and_calls_a_single_one() {
        let file = || OwnedFd::from(tempfile::tempfile().unwrap());
        let done = (0..DEPTH).map(|slot| (slot, 0)).collect();
        assert_eq!(sync_all(file(), DEPTH), (DEPTH as usize, done));
        assert_eq!(sync_all(file(), 1), (0, vec![(0, 0)]));
    }

    #[test]
    fn aio_calls_syncs_that_the_queue_refuses() {
        // An eventfd has nothing to sync, which the kernel says of the queued request and of the
        // call alike. SAFETY: a new descriptor without another owner.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let refused = (0..DEPTH).map(|slot| (slot, -libc::EINVAL)).collect();
        assert_eq!(sync_all(fd, DEPTH), (0, refused));
    }
}
