//! io_uring: requests of a batch go to the kernel in one call; submission entries are made once per slot and only their offset and length change.
#![allow(unsafe_code)]

use super::{Backend, LOOK_UP_NS, Op, Patience, Request, advise_dontneed, group_of};
use crate::buffers::Buffers;
use diskproof_model::plan::{CachePolicy, SyncCall};
use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// user_data of the timer that makes a waiting worker look up.
const LOOK_UP: u64 = u64::MAX;
/// Flags of sync_file_range(2): write the range and wait until the device has it.
const WRITE_BACK: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// An io_uring on one file.
pub struct UringBackend {
    // Order matters: the ring ends (and with it all I/O) before the buffers are unmapped.
    ring: IoUring,
    buffers: Buffers,
    /// Entries ready to be sent: for slot s, 2s reads and 2s + 1 writes.
    prepared: Vec<Entry>,
    fd: OwnedFd,
    registered: Registered,
    look_up: Box<types::Timespec>,
    look_up_armed: bool,
    /// Requests that go to the kernel in one call, and how many wait for it.
    group: u32,
    waiting: u32,
    features: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Registered {
    file: bool,
    buffers: bool,
}

impl std::fmt::Debug for UringBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UringBackend {{ features: {:?} }}", self.features)
    }
}

/// How big the ring is, and what goes through it.
#[derive(Debug, Clone, Copy)]
pub struct RingShape {
    /// Requests in flight.
    pub depth: u32,
    /// Added to a slot's number to get the buffer of its writes; 0 where reads and writes share one.
    pub write_buffer_shift: u32,
    /// Whether the page cache takes part: registered buffers make buffered I/O slower (the kernel copies through a bio_vec iterator).
    pub cache: CachePolicy,
}

/// The ring with the best flags that this kernel takes, and their names. Must be made by the thread that will use it.
fn build_ring(depth: u32) -> io::Result<(IoUring, Vec<String>)> {
    // One entry more for the look-up timer. DEFER_TASKRUN needs 6.1, SINGLE_ISSUER 6.0, COOP_TASKRUN 5.19: older kernels say EINVAL.
    let entries = (depth + 1).next_power_of_two().max(2);
    let mut last = io::Error::from_raw_os_error(libc::ENOSYS);
    for feature in ["defer-taskrun", "coop-taskrun", ""] {
        let mut builder = IoUring::builder();
        builder.dontfork();
        match feature {
            "defer-taskrun" => builder.setup_single_issuer().setup_defer_taskrun(),
            "coop-taskrun" => builder.setup_coop_taskrun(),
            _ => &mut builder,
        };
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, if feature.is_empty() { Vec::new() } else { vec![feature.to_owned()] })),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

impl UringBackend {
    /// For up to `shape.depth` requests in flight on `fd`.
    pub fn new(fd: OwnedFd, buffers: Buffers, shape: RingShape) -> io::Result<Self> {
        let (ring, mut features) = build_ring(shape.depth)?;
        let file = ring.submitter().register_files(&[fd.as_raw_fd()]).is_ok();
        // Registered memory counts against RLIMIT_MEMLOCK on some kernels: without the right, plain buffers do.
        // SAFETY: the buffers live as long as the ring (field order) and are never remapped.
        let fixed = shape.cache == CachePolicy::Direct && unsafe { ring.submitter().register_buffers(&buffers.iovecs()) }.is_ok();
        if file {
            features.push("fixed-files".to_owned());
        }
        if fixed {
            features.push("fixed-buffers".to_owned());
        }
        let look_up = Box::new(types::Timespec::new().nsec(LOOK_UP_NS as u32));
        let registered = Registered { file, buffers: fixed };
        let mut backend = Self {
            ring,
            buffers,
            prepared: Vec::new(),
            fd,
            registered,
            look_up,
            look_up_armed: false,
            group: group_of(shape.depth),
            waiting: 0,
            features,
        };
        backend.prepared = (0..shape.depth)
            .flat_map(|slot| [(Op::Read, slot), (Op::Write, slot + shape.write_buffer_shift)].map(|(op, buffer)| (op, slot, buffer)))
            .map(|(op, slot, buffer)| backend.entry(&Request { slot, buffer, op, offset: 0, len: 0, skip: 0 }))
            .collect();
        Ok(backend)
    }

    /// What is on: names for the record.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    fn entry(&self, request: &Request) -> Entry {
        // A registered file is named by its index, 0, and a flag.
        let fd = types::Fd(if self.registered.file { 0 } else { self.fd.as_raw_fd() });
        let flags = if self.registered.file { Flags::FIXED_FILE } else { Flags::empty() };
        // SAFETY: inside the slot: skip is what an earlier transfer of at most len bytes has done.
        let at = unsafe { self.buffers.slot(request.buffer as usize).add(request.skip as usize) };
        let (len, offset, index) = (request.len, request.offset, request.buffer as u16);
        let entry = match request.op {
            Op::Read if self.registered.buffers => opcode::ReadFixed::new(fd, at, len, index).offset(offset).build(),
            Op::Read => opcode::Read::new(fd, at, len).offset(offset).build(),
            Op::Write if self.registered.buffers => opcode::WriteFixed::new(fd, at, len, index).offset(offset).build(),
            Op::Write => opcode::Write::new(fd, at, len).offset(offset).build(),
            Op::Sync(SyncCall::Fsync) => opcode::Fsync::new(fd).build(),
            Op::Sync(SyncCall::Fdatasync) => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            Op::WriteBack => opcode::SyncFileRange::new(fd, len).offset(offset).flags(WRITE_BACK).build(),
        };
        entry.flags(flags).user_data(u64::from(request.slot))
    }

    fn arm_look_up(&mut self) {
        let entry = opcode::Timeout::new(&raw const *self.look_up).build().user_data(LOOK_UP);
        // SAFETY: the time lies on the heap and lives as long as the ring; the kernel copies it at submission.
        self.look_up_armed = unsafe { self.ring.submission().push(&entry) }.is_ok();
    }
}

/// Words of `struct io_uring_sqe` (linux/io_uring.h) that differ between requests of a slot: `off`, and `len` in the lower half of its word.
const SQE_OFF: usize = 1;
const SQE_LEN: usize = 3;

/// A prepared entry, pointed at another place. Made as a new value: changing it where it lies and copying it at once would stall, because the CPU does
/// not forward narrow stores to wide loads (42 % of the samples in the worker's loop).
#[inline(always)]
fn aimed(prepared: &Entry, offset: u64, len: u32) -> Entry {
    // SAFETY: Entry is a repr(C) wrapper of the 64-byte io_uring_sqe, plain numbers without padding. Proven by a test below.
    let mut words: [u64; 8] = unsafe { std::ptr::from_ref(prepared).cast::<[u64; 8]>().read() };
    words[SQE_OFF] = offset;
    words[SQE_LEN] = words[SQE_LEN] >> 32 << 32 | u64::from(len);
    // SAFETY: as above, the other way round.
    unsafe { std::mem::transmute::<[u64; 8], Entry>(words) }
}

/// Interrupted, timed out, or the completion queue must be emptied first: the caller reaps and comes back.
#[inline(always)]
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN)) => Ok(()),
        Err(e) => Err(e),
    }
}

impl Drop for UringBackend {
    fn drop(&mut self) {
        // A closed ring lets go of its files and buffers only in a kernel worker, tens of milliseconds later: until then the filesystem is busy and a
        // scratch file keeps its space.
        let submitter = self.ring.submitter();
        let _ = (submitter.unregister_files(), submitter.unregister_buffers());
    }
}

impl Backend for UringBackend {
    #[inline(always)]
    fn enqueue(&mut self, source: &mut impl FnMut(&mut Buffers) -> Option<Request>) -> io::Result<()> {
        if !self.look_up_armed {
            self.arm_look_up();
        }
        while let Some(request) = source(&mut self.buffers) {
            let prepared = match request.op {
                Op::Read if request.skip == 0 => Some(2 * request.slot as usize),
                Op::Write if request.skip == 0 => Some(2 * request.slot as usize + 1),
                _ => None,
            };
            let pushed = match prepared {
                Some(index) => {
                    let entry = aimed(&self.prepared[index], request.offset, request.len);
                    // SAFETY: the entry points into the buffers, which outlive the ring; the slot is not in flight.
                    unsafe { self.ring.submission_shared().push(&entry) }
                }
                None => {
                    let entry = self.entry(&request);
                    // SAFETY: as above.
                    unsafe { self.ring.submission_shared().push(&entry) }
                }
            };
            // The ring has more entries than there are slots, each of which is in flight at most once.
            pushed.map_err(|_| io::Error::other("the submission queue is full"))?;
            self.waiting += 1;
            if self.waiting >= self.group {
                self.waiting = 0;
                passing(self.ring.submit())?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, patience: Patience) -> io::Result<()> {
        let result = match patience {
            Patience::Completion => self.ring.submit_and_wait(1),
            Patience::Poll => self.ring.submit(),
            Patience::AtMost(ns) => {
                let time = types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time))
            }
        };
        self.waiting = 0;
        passing(result)
    }

    #[inline(always)]
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        for completion in self.ring.completion() {
            if completion.user_data() == LOOK_UP {
                self.look_up_armed = false;
            } else {
                sink(completion.user_data() as u32, completion.result());
            }
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    fn drop_cache(&mut self) {
        advise_dontneed(&self.fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn bytes(entry: &Entry) -> [u8; 64] {
        // SAFETY: Entry is a repr(C) wrapper of 64 plain bytes.
        unsafe { std::ptr::from_ref(entry).cast::<[u8; 64]>().read() }
    }

    #[test]
    fn aiming_a_prepared_entry_equals_building_it_anew() {
        assert_eq!(size_of::<Entry>(), 64);
        let file = tempfile::tempfile().unwrap();
        let buffers = Buffers::new(4, 8192).unwrap();
        let shape = RingShape { depth: 2, write_buffer_shift: 2, cache: CachePolicy::Direct };
        let Ok(backend) = UringBackend::new(file.as_fd().try_clone_to_owned().unwrap(), buffers, shape) else {
            eprintln!("SKIPPED: aiming_a_prepared_entry_equals_building_it_anew: io_uring is blocked");
            return;
        };
        let request = Request { slot: 1, buffer: 3, op: Op::Write, offset: 0x1234_5678_9000, len: 4096, skip: 0 };
        let built = bytes(&backend.entry(&request));
        assert_eq!(bytes(&aimed(&backend.prepared[3], request.offset, request.len)), built);
    }
}
