//! Manages the memory that an io_uring shares with the kernel, and makes the calls on it.
//! Submission entries stay where they are: a slot that is used again stores only the changed fields
//! instead of 64 new bytes.
//!
//! The crate `io-uring` stores all 64 each time: a NOP takes 106 ns with it and 97 ns here (32 at
//! once, medians of five interleaved rounds).
#![allow(unsafe_code)]

use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringOp,
    IoringRegisterOp, IoringSetupFlags, io_uring_enter, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_params, io_uring_ptr, io_uring_register, io_uring_setup,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Both queues in one mapping (Linux 5.4), no completion dropped (5.5), waits that end after a time
/// (5.11).
const NEEDED: IoringFeatureFlags = IoringFeatureFlags::SINGLE_MMAP
    .union(IoringFeatureFlags::NODROP)
    .union(IoringFeatureFlags::EXT_ARG);

/// A submission entry (`struct io_uring_sqe` of linux/io_uring.h): 64 bytes, here as the eight
/// words that its fields fall into.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SubmissionEntry {
    /// opcode, flags, ioprio, fd: from the lowest byte on 1, 1, 2 and 4 of them.
    pub head: u64,
    /// Offset in the file, or the number of a command.
    pub off: u64,
    /// Address of the memory.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Flags of the operation: of fsync, of sync_file_range, of the timeout.
    pub op_flags: u32,
    /// Comes back with the completion.
    pub user_data: u64,
    /// Index of the registered buffer, in its lowest 16 bits.
    pub buf_index: u64,
    /// A second address, of commands.
    pub addr3: u64,
    /// Not used by any of our operations.
    pub rest: u64,
}

/// A completion (`struct io_uring_cqe`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct CompletionEntry {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// Memory shared with the kernel.
#[derive(Debug)]
struct RingMemory {
    base: NonNull<u8>,
    length: usize,
}

impl RingMemory {
    fn new(fd: &OwnedFd, length: usize, offset: u64) -> io::Result<Self> {
        let (prot, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
        );
        // SAFETY: a new mapping wherever the kernel likes; no existing memory is affected.
        let base = unsafe { mmap(std::ptr::null_mut(), length, prot, flags, fd, offset)? };
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            length,
        })
    }

    /// The address at `offset`, which the kernel returned for this mapping.
    fn field<T>(&self, offset: u32) -> *mut T {
        debug_assert!(offset as usize + size_of::<T>() <= self.length);
        // SAFETY: within the mapping, see above.
        unsafe { self.base.as_ptr().add(offset as usize).cast() }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; the ring that points into it is gone with it.
        let _ = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.length) };
    }
}

/// The submission side of a ring, for a loop that keeps it in locals: the ring is not involved
/// until [`SubmissionQueue::end`].
#[derive(Debug)]
pub(crate) struct SubmissionQueue<'a> {
    entries: *mut SubmissionEntry,
    entries_len: u32,
    array: *mut u32,
    mask: u32,
    /// Entries that were pushed: [`Ring::queued`] until [`Self::end`] writes it back.
    queued: u32,
    ring_queued: &'a mut u32,
}

impl SubmissionQueue<'_> {
    /// The entry with this number. Do not change it between [`SubmissionQueue::push`] and the
    /// [`Ring::enter`] that submits it; afterwards the kernel has a copy.
    #[inline(always)]
    pub(crate) fn entry(&mut self, index: u32) -> &mut SubmissionEntry {
        assert!(index < self.entries_len, "an entry of the ring");
        // SAFETY: within the mapping, which the ring keeps; the kernel only reads entries, and only
        // inside io_uring_enter, which needs the ring for itself.
        unsafe { &mut *self.entries.add(index as usize) }
    }

    /// Sends the entry with this number at the next [`Ring::enter`].
    #[inline(always)]
    pub(crate) fn push(&mut self, index: u32) {
        // SAFETY: the masked index lies in the array, whose slots up to `queued` the kernel has
        // read already.
        unsafe {
            self.array
                .add((self.queued & self.mask) as usize)
                .write(index)
        };
        self.queued = self.queued.wrapping_add(1);
    }

    /// Tells the ring what was pushed.
    #[inline(always)]
    pub(crate) fn end(self) {
        *self.ring_queued = self.queued;
    }
}

/// An io_uring. Belongs to the thread that made it.
#[derive(Debug)]
pub(crate) struct Ring {
    sq_tail: *const AtomicU32,
    sq_array: *mut u32,
    sq_mask: u32,
    /// Entries that were pushed.
    queued: u32,
    /// Entries that the kernel has taken.
    sent: u32,
    cq_head: *const AtomicU32,
    cq_tail: *const AtomicU32,
    cq_mask: u32,
    completions: *const CompletionEntry,
    /// Completions that were reaped.
    taken: u32,
    /// Completions below this one may be reaped.
    seen: u32,
    entries: *mut SubmissionEntry,
    entries_len: u32,
    // Order matters: the file is closed before the memory goes.
    fd: OwnedFd,
    _rings: RingMemory,
    _entries: RingMemory,
}

impl Ring {
    /// A ring with at least `entries` submission entries. Kernels that lack one of [`NEEDED`] are
    /// refused with ENOSYS.
    pub(crate) fn new(entries: u32, flags: IoringSetupFlags) -> io::Result<Self> {
        let mut params = io_uring_params::default();
        params.flags = flags;
        // SAFETY: the parameters name no file and no memory of ours.
        let fd = unsafe { io_uring_setup(entries, &mut params)? };
        if !params.features.contains(NEEDED) {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let sq_bytes = sq.array as usize + params.sq_entries as usize * size_of::<u32>();
        let cq_bytes = cq.cqes as usize + params.cq_entries as usize * size_of::<CompletionEntry>();
        let rings = RingMemory::new(&fd, sq_bytes.max(cq_bytes), IORING_OFF_SQ_RING)?;
        let memory = RingMemory::new(
            &fd,
            params.sq_entries as usize * size_of::<SubmissionEntry>(),
            IORING_OFF_SQES,
        )?;
        // SAFETY: the kernel wrote both masks before io_uring_setup returned, and never changes
        // them.
        let (sq_mask, cq_mask) = unsafe {
            (
                rings.field::<u32>(sq.ring_mask).read(),
                rings.field::<u32>(cq.ring_mask).read(),
            )
        };
        Ok(Self {
            sq_tail: rings.field::<AtomicU32>(sq.tail),
            sq_array: rings.field::<u32>(sq.array),
            sq_mask,
            queued: 0,
            sent: 0,
            cq_head: rings.field::<AtomicU32>(cq.head),
            cq_tail: rings.field::<AtomicU32>(cq.tail),
            cq_mask,
            completions: rings.field::<CompletionEntry>(cq.cqes),
            taken: 0,
            seen: 0,
            entries: memory.field::<SubmissionEntry>(0),
            entries_len: params.sq_entries,
            fd,
            _rings: rings,
            _entries: memory,
        })
    }

    /// The queue for new requests. At most as many as there are entries may wait for the next
    /// [`Ring::enter`].
    #[inline(always)]
    pub(crate) fn submissions(&mut self) -> SubmissionQueue<'_> {
        let Self {
            entries,
            entries_len,
            sq_array: array,
            sq_mask: mask,
            queued,
            ..
        } = *self;
        SubmissionQueue {
            entries,
            entries_len,
            array,
            mask,
            queued,
            ring_queued: &mut self.queued,
        }
    }

    /// Entries that wait for the next [`Ring::enter`].
    #[inline(always)]
    pub(crate) fn unsent(&self) -> u32 {
        self.queued.wrapping_sub(self.sent)
    }

    /// Entries pushed whose completions were not reaped.
    pub(crate) fn in_flight(&self) -> u32 {
        self.queued.wrapping_sub(self.taken)
    }

    /// Completions that are there.
    #[inline(always)]
    pub(crate) fn ready(&self) -> u32 {
        // SAFETY: the tail lies in the mapping.
        unsafe { (*self.cq_tail).load(Ordering::Acquire) }.wrapping_sub(self.taken)
    }

    /// Submits what was pushed, and waits until `completions` are there. GETEVENTS matters even for
    /// none of them: with DEFER_TASKRUN completions only arrive in such a call.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        completions: u32,
        events: IoringEnterFlags,
    ) -> rustix::io::Result<()> {
        self.publish();
        // SAFETY: the buffers that the entries name outlive the ring (the caller's duty, see
        // `UringBackend`).
        let sent = unsafe { io_uring_enter(&self.fd, self.unsent(), completions, events)? };
        self.sent = self.sent.wrapping_add(sent);
        Ok(())
    }

    /// As [`Ring::enter`], but no longer than this.
    pub(crate) fn enter_within(&mut self, completions: u32, ns: u64) -> rustix::io::Result<()> {
        self.publish();
        let time = rustix::thread::Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        let arg = io_uring_getevents_arg {
            ts: io_uring_ptr::new((&raw const time).cast_mut().cast()),
            ..Default::default()
        };
        let flags = IoringEnterFlags::GETEVENTS | IoringEnterFlags::EXT_ARG;
        // SAFETY: as above; the time lives until the call returns.
        let sent =
            unsafe { io_uring_enter_arg(&self.fd, self.unsent(), completions, flags, Some(&arg))? };
        self.sent = self.sent.wrapping_add(sent);
        Ok(())
    }

    /// Shows the kernel how far the queue goes.
    #[inline(always)]
    fn publish(&mut self) {
        // SAFETY: the tail lies in the mapping, and only this thread writes it.
        unsafe { (*self.sq_tail).store(self.queued, Ordering::Release) };
    }

    /// Notes which completions are there: those that [`Ring::reap`] hands over.
    #[inline(always)]
    pub(crate) fn look(&mut self) {
        // SAFETY: the tail lies in the mapping.
        self.seen = unsafe { (*self.cq_tail).load(Ordering::Acquire) };
    }

    /// Hands over the completions that were seen: user data and result.
    #[inline(always)]
    pub(crate) fn reap(&mut self, mut sink: impl FnMut(u64, i32)) {
        let (completions, mask, taken) = (self.completions, self.cq_mask, self.taken);
        for number in 0..self.seen.wrapping_sub(taken) {
            let index = taken.wrapping_add(number) & mask;
            // SAFETY: between head and tail the kernel has written the completion, and leaves it
            // alone until the head passes it.
            let CompletionEntry {
                user_data, result, ..
            } = unsafe { completions.add(index as usize).read() };
            sink(user_data, result);
        }
        self.taken = self.seen;
        // SAFETY: the head lies in the mapping, and only this thread writes it.
        unsafe { (*self.cq_head).store(self.taken, Ordering::Release) };
    }

    /// Names a file by index 0 from now on.
    pub(crate) fn register_file(&self, file: RawFd) -> rustix::io::Result<()> {
        // SAFETY: the array lives until the call returns; the kernel takes its own reference on the
        // file.
        unsafe {
            io_uring_register(
                &self.fd,
                IoringRegisterOp::RegisterFiles,
                (&raw const file).cast(),
                1,
            )
        }
        .map(drop)
    }

    /// Registers memory, so that the kernel pins it once instead of for each request.
    ///
    /// # Safety
    /// The memory stays mapped where it is as long as the ring lives.
    pub(crate) unsafe fn register_buffers(
        &self,
        buffers: &[libc::iovec],
    ) -> rustix::io::Result<()> {
        // SAFETY: the array lives until the call returns; the memory, see above.
        unsafe {
            io_uring_register(
                &self.fd,
                IoringRegisterOp::RegisterBuffers,
                buffers.as_ptr().cast(),
                buffers.len() as u32,
            )
        }
        .map(drop)
    }

    /// True if the kernel knows an operation.
    pub(crate) fn supports(&self, op: IoringOp) -> bool {
        // `struct io_uring_probe`: 16 bytes, then 8 for each operation, with IO_URING_OP_SUPPORTED
        // in the lowest bit of the third.
        const OPS: u32 = 256;
        let mut probe = [0_u64; 2 + OPS as usize];
        // SAFETY: the kernel fills the array, which has room for so many operations.
        let probed = unsafe {
            io_uring_register(
                &self.fd,
                IoringRegisterOp::RegisterProbe,
                probe.as_mut_ptr().cast(),
                OPS,
            )
        };
        probed.is_ok() && probe[2 + op as usize] >> 16 & 1 == 1
    }

    /// Unregisters file and buffers.
    pub(crate) fn unregister(&self) {
        for operation in [
            IoringRegisterOp::UnregisterFiles,
            IoringRegisterOp::UnregisterBuffers,
        ] {
            // SAFETY: takes nothing. What was not registered cannot be unregistered, which is no
            // harm.
            let _ = unsafe { io_uring_register(&self.fd, operation, std::ptr::null(), 0) };
        }
    }
}
