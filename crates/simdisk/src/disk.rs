//! `SimDisk`: a model served as one regular file over FUSE, by threads of this process.

use crate::backing::{Backing, Medium};
use crate::fuse::connection::{Channel, Connection, Root, ServeError};
use crate::fuse::wire::{
    self, Attributes, Body, IN_HEADER_BYTES, InHeader, TRANSFER_BYTES, Transfer, init_flag, opcode,
    open_flag,
};
use crate::models::counterfeit::{Beyond, Counterfeit, FakeDisk, Store};
use crate::models::direct::DirectAccess;
use crate::models::faults::Faults;
use crate::models::{DiskMachine, DiskRequest, Model, Operation};
use crate::schedule::ReplySchedule;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The number of threads that read requests. They only copy, so that more would not be faster.
const READERS: usize = 3;
/// The most buffers that are kept for the next reads. With fewer, a deep queue of reads would make
/// new ones; more would only take memory.
const SPARE_BUFFERS: usize = 64;

/// Counts since the start. The kernel splits larger transfers into requests of at most 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Flushes that may skip what describes the file: fdatasync and O_DSYNC.
    pub data_flushes: u64,
    /// Holes that were punched.
    pub trims: u64,
    /// Bytes of these trims.
    pub trimmed_bytes: u64,
    /// Bytes delivered.
    pub read_bytes: u64,
    /// Bytes taken.
    pub written_bytes: u64,
    /// Requests that failed by the model. They count as reads or writes too.
    pub errors: u64,
    /// The most requests in flight at once.
    pub depth_max: u64,
}

impl Display for Stats {
    /// A line of `name=count` pairs.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reads={} writes={} flushes={} data_flushes={} trims={} trimmed_bytes={} read_bytes={} \
             written_bytes={} errors={} depth_max={}",
            self.reads,
            self.writes,
            self.flushes,
            self.data_flushes,
            self.trims,
            self.trimmed_bytes,
            self.read_bytes,
            self.written_bytes,
            self.errors,
            self.depth_max
        )
    }
}

/// A simulated disk that is served. Dropping it unmounts lazily, ends the threads, fails the
/// requests in flight, and empties an honest write cache.
#[derive(Debug)]
pub struct SimDisk {
    connection: Connection,
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that the threads of a served disk share.
struct Server {
    backing: Backing,
    direct: DirectAccess,
    counterfeit: FakeDisk,
    faults: Mutex<Faults>,
    schedule: ReplySchedule<PendingReply>,
    counters: RequestCounts,
    /// Buffers for the next reads.
    spare: Mutex<Vec<Vec<u8>>>,
    /// Replies held back while the disk hangs; `None` where it answers.
    held: Mutex<Option<HeldReplies>>,
}

/// Replies that a hanging disk holds back.
struct HeldReplies {
    which: Hanging,
    answers: Vec<PendingReply>,
}

/// The requests that a hanging disk does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hanging {
    /// Every request hangs.
    Everything,
    /// Only flushes: the disk cannot empty its write cache.
    Flushes,
}

/// The counters behind [`Stats`].
#[derive(Default)]
struct RequestCounts {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    data_flushes: AtomicU64,
    trims: AtomicU64,
    trimmed_bytes: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    errors: AtomicU64,
}

/// A reply that waits for the time of its request.
struct PendingReply {
    channel: Arc<Channel>,
    /// The kernel's number of the request.
    unique: u64,
    answer: Reply,
}

/// The answer to a request.
enum Reply {
    /// The first `length` bytes of a buffer.
    Data {
        buffer: Vec<u8>,
        length: usize,
    },
    /// So many bytes were written.
    Written(u32),
    Trimmed,
    Flushed,
    /// An errno.
    Error(i32),
}

impl SimDisk {
    /// Serves `model` as the regular file `mount_point` of `size_bytes`, created if missing.
    /// The content is kept in memory.
    pub fn serve(model: Model, size_bytes: u64, mount_point: &Path) -> Result<Self, ServeError> {
        Self::serve_on(model, size_bytes, mount_point, &Medium::Memory)
    }

    /// Like `serve`, with the content on `medium`.
    pub fn serve_on(
        model: Model,
        size_bytes: u64,
        mount_point: &Path,
        medium: &Medium,
    ) -> Result<Self, ServeError> {
        let path = match medium {
            Medium::Memory => PathBuf::from("memory"),
            Medium::File(path) => path.clone(),
        };
        let backing = Backing::open(medium, size_bytes, model.write_cache)
            .map_err(|source| ServeError::Backing { path, source })?;
        let server = Arc::new(Server {
            backing,
            direct: model.direct,
            counterfeit: FakeDisk::new(model.counterfeit.unwrap_or(Counterfeit {
                real_bytes: size_bytes.max(1),
                beyond: Beyond::Drops,
            })),
            faults: Mutex::new(Faults::new(model.faults.clone())),
            schedule: ReplySchedule::new(Box::new(DiskMachine::start(&model, size_bytes))),
            counters: RequestCounts::default(),
            spare: Mutex::default(),
            held: Mutex::default(),
        });
        let connection = Connection::mount(mount_point, Root::RegularFile)?;
        let channels = connection.channels(READERS)?;
        // Built before the threads: a failure in between unmounts and ends those already started.
        let mut disk = Self {
            connection,
            server,
            threads: Vec::new(),
        };
        for channel in channels {
            let server = disk.server.clone();
            disk.start("simdisk-read", move || server.serve(&channel))?;
        }
        let server = disk.server.clone();
        disk.start("simdisk-timer", move || {
            server.schedule.run_timer(|pending| server.send(pending))
        })?;
        Ok(disk)
    }

    /// The file that is the disk.
    pub fn path(&self) -> &Path {
        self.connection.path()
    }

    /// The counts so far.
    pub fn stats(&self) -> Stats {
        let counters = &self.server.counters;
        Stats {
            reads: count(&counters.reads),
            writes: count(&counters.writes),
            flushes: count(&counters.flushes),
            data_flushes: count(&counters.data_flushes),
            trims: count(&counters.trims),
            trimmed_bytes: count(&counters.trimmed_bytes),
            read_bytes: count(&counters.read_bytes),
            written_bytes: count(&counters.written_bytes),
            errors: count(&counters.errors),
            depth_max: self.server.schedule.waiting_max() as u64,
        }
    }

    /// Stops answering all requests until [`SimDisk::answer_again`].
    pub fn hang(&self) {
        self.hang_at(Hanging::Everything);
    }

    /// Stops answering these requests until [`SimDisk::answer_again`].
    pub fn hang_at(&self, which: Hanging) {
        let mut held = self
            .server
            .held
            .lock()
            .expect("no holder of the lock panics");
        match &mut *held {
            Some(replies) => replies.which = which,
            None => {
                *held = Some(HeldReplies {
                    which,
                    answers: Vec::new(),
                });
            }
        }
    }

    /// Answers every request that a hanging disk has held back, and the following ones in time.
    pub fn answer_again(&self) {
        let held = self
            .server
            .held
            .lock()
            .expect("no holder of the lock panics")
            .take();
        if let Some(replies) = held {
            for pending in replies.answers {
                self.server.deliver(pending);
            }
        }
    }

    /// Fails every request with EIO from now on, like a disk that was pulled out, until
    /// [`SimDisk::come_back`].
    pub fn vanish(&self) {
        self.faults().pull_out();
    }

    /// Makes a disk that vanished work again, with its content.
    pub fn come_back(&self) {
        self.faults().put_back();
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.server
            .faults
            .lock()
            .expect("no holder of the lock panics")
    }

    fn start(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), ServeError> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|source| ServeError::Server { source })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for SimDisk {
    fn drop(&mut self) {
        self.connection.stop();
        self.server.schedule.stop();
        for thread in self.threads.drain(..) {
            // A server thread that panicked has printed why; the mount ends all the same.
            let _ = thread.join();
        }
        // An orderly end gives a disk the time to empty its cache; one that lies never does. An
        // error has nobody left to hear of it.
        let _ = self.server.backing.flush();
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("backing", &self.backing)
            .finish_non_exhaustive()
    }
}

/// The present value of a counter.
fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Store for Backing {
    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> Result<(), i32> {
        Self::read_at(self, bytes, offset_bytes).map_err(errno_of)
    }

    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> Result<(), i32> {
        Self::write_at(self, bytes, offset_bytes).map_err(errno_of)
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), i32> {
        Self::trim(self, offset_bytes, length_bytes).map_err(errno_of)
    }
}

fn errno_of(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Server {
    fn serve(&self, channel: &Arc<Channel>) {
        let mut buffer = Channel::buffer();
        while let Some(length) = channel.receive(&mut buffer) {
            let arrival_ns = self.schedule.now_ns();
            let header = InHeader::read(&buffer[..length]);
            let body = &buffer[IN_HEADER_BYTES.min(length)..length];
            match header.opcode {
                opcode::FALLOCATE if !wire::is_hole(body) => {
                    channel.reply(header.unique, Err(libc::EOPNOTSUPP))
                }
                opcode::READ | opcode::WRITE | opcode::FSYNC | opcode::FALLOCATE => {
                    self.transfer(channel, &header, body, arrival_ns)
                }
                opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => {}
                _ => match self.answer_without_data(&header, body) {
                    Ok(reply) => channel.reply(header.unique, Ok(&reply.0)),
                    Err(errno) => channel.reply(header.unique, Err(errno)),
                },
            }
        }
    }

    /// Answers every request that moves no data.
    fn answer_without_data(&self, header: &InHeader, body: &[u8]) -> Result<Body, i32> {
        let attributes = Attributes {
            node: 1,
            size_bytes: self.backing.size_bytes(),
            mode: Root::RegularFile.mode(),
            links: 1,
        };
        match header.opcode {
            opcode::INIT => {
                // No WRITEBACK_CACHE: with it the kernel trusts only its own idea of a file's size,
                // which is 0 for a root it never made.
                let wanted = init_flag::ASYNC_READ
                    | init_flag::BIG_WRITES
                    | init_flag::ASYNC_DIO
                    | init_flag::MAX_PAGES;
                Ok(Body::default().init(wire::u32_at(body, 12) & wanted))
            }
            opcode::GETATTR => Ok(Body::default().attr_out(&attributes)),
            // A disk has one size.
            opcode::SETATTR
                if wire::u32_at(body, 0) & wire::SETATTR_SIZE != 0
                    && wire::u64_at(body, 16) != attributes.size_bytes =>
            {
                Err(libc::EPERM)
            }
            opcode::SETATTR => Ok(Body::default().attr_out(&attributes)),
            opcode::OPEN => self.open(wire::u32_at(body, 0)),
            opcode::STATFS => Ok(Body::default().statfs_out(attributes.size_bytes / 4096, 0)),
            opcode::RELEASE | opcode::DESTROY => Ok(Body::default()),
            _ => Err(libc::ENOSYS),
        }
    }

    fn open(&self, open_flags: u32) -> Result<Body, i32> {
        let direct = wire::is_direct(open_flags);
        if direct && self.direct.refuses_open() {
            return Err(libc::EINVAL);
        }
        // Without O_DIRECT the kernel's page cache answers reads, as it does for any file, but
        // writes go through it at once.
        let flags = if direct {
            open_flag::DIRECT_IO | open_flag::PARALLEL_DIRECT_WRITES
        } else {
            open_flag::KEEP_CACHE
        };
        Ok(Body::default().open_out(0, flags))
    }

    fn transfer(&self, channel: &Arc<Channel>, header: &InHeader, body: &[u8], arrival_ns: u64) {
        let (operation, transfer) = match header.opcode {
            opcode::READ => (Operation::Read, Transfer::read(body)),
            opcode::WRITE => (Operation::Write, Transfer::read(body)),
            opcode::FALLOCATE => (Operation::Trim, Transfer::hole(body)),
            _ => (
                Operation::Flush,
                Transfer {
                    offset_bytes: 0,
                    length_bytes: 0,
                    open_flags: 0,
                },
            ),
        };
        if transfer.is_direct() && self.direct.refuses_transfer() {
            return channel.reply(header.unique, Err(libc::EINVAL));
        }
        let left_bytes = self
            .backing
            .size_bytes()
            .saturating_sub(transfer.offset_bytes);
        let length_bytes = transfer.length_bytes.min(left_bytes);
        if operation == Operation::Flush && wire::is_data_sync(body) {
            self.counters.data_flushes.fetch_add(1, Ordering::Relaxed);
        }
        let request = DiskRequest {
            ticket: header.unique,
            arrival_ns,
            operation,
            offset_bytes: transfer.offset_bytes,
            length_bytes,
            extra_ns: 0,
        };
        let answer = self
            .perform(&request, body.get(TRANSFER_BYTES..).unwrap_or_default())
            .unwrap_or_else(|errno| {
                self.counters.errors.fetch_add(1, Ordering::Relaxed);
                Reply::Error(errno)
            });
        let pending = PendingReply {
            channel: channel.clone(),
            unique: header.unique,
            answer,
        };
        self.schedule
            .submit(request, pending, |pending| self.send(pending));
    }

    /// Does the work at once; only the reply waits.
    fn perform(&self, request: &DiskRequest, data: &[u8]) -> Result<Reply, i32> {
        let counters = &self.counters;
        let requests = match request.operation {
            Operation::Read => &counters.reads,
            Operation::Write => &counters.writes,
            Operation::Trim => &counters.trims,
            Operation::Flush => &counters.flushes,
        };
        requests.fetch_add(1, Ordering::Relaxed);
        // A write that begins at the end of the disk or behind it, as on a block device.
        if request.operation == Operation::Write && request.length_bytes == 0 {
            return Err(libc::ENOSPC);
        }
        let length = self
            .faults
            .lock()
            .expect("no holder of the lock panics")
            .transfer(request.operation, &request.span())? as usize;
        match request.operation {
            Operation::Read => self.read(request.offset_bytes, length),
            Operation::Write => {
                let data = data.get(..length).ok_or(libc::EIO)?;
                self.write(request.offset_bytes, data)
            }
            Operation::Trim => self.trim(request.offset_bytes, length),
            Operation::Flush => match self.backing.flush() {
                Ok(()) => Ok(Reply::Flushed),
                Err(error) => Err(errno_of(error)),
            },
        }
    }

    fn read(&self, offset_bytes: u64, length: usize) -> Result<Reply, i32> {
        let mut buffer = self.take_buffer(length);
        self.counterfeit
            .read(&self.backing, offset_bytes, &mut buffer[..length])?;
        let bytes = &self.counters.read_bytes;
        bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(Reply::Data { buffer, length })
    }

    fn write(&self, offset_bytes: u64, data: &[u8]) -> Result<Reply, i32> {
        self.counterfeit.write(&self.backing, offset_bytes, data)?;
        let bytes = &self.counters.written_bytes;
        bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(Reply::Written(data.len() as u32))
    }

    fn trim(&self, offset_bytes: u64, length: usize) -> Result<Reply, i32> {
        self.counterfeit.trim(&self.backing, offset_bytes, length)?;
        let bytes = &self.counters.trimmed_bytes;
        bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(Reply::Trimmed)
    }

    /// Answers a request whose time has come, unless the disk hangs.
    fn send(&self, pending: PendingReply) {
        match &mut *self.held.lock().expect("no holder of the lock panics") {
            Some(held)
                if held.which == Hanging::Everything
                    || matches!(pending.answer, Reply::Flushed) =>
            {
                held.answers.push(pending)
            }
            _ => self.deliver(pending),
        }
    }

    /// Answers a request, whether the disk hangs or not.
    fn deliver(&self, pending: PendingReply) {
        let PendingReply {
            channel,
            unique,
            answer,
        } = pending;
        match answer {
            Reply::Data { buffer, length } => {
                channel.reply(unique, Ok(&buffer[..length]));
                self.keep_buffer(buffer);
            }
            Reply::Written(bytes) => {
                channel.reply(unique, Ok(&Body::default().u32(bytes).u32(0).0))
            }
            Reply::Trimmed | Reply::Flushed => channel.reply(unique, Ok(&[])),
            Reply::Error(errno) => channel.reply(unique, Err(errno)),
        }
    }

    /// A buffer of at least `length`. Buffers are reused: 1 MiB of fresh memory costs more than the
    /// copy.
    fn take_buffer(&self, length: usize) -> Vec<u8> {
        let mut buffer = self
            .spare
            .lock()
            .expect("no holder of the lock panics")
            .pop()
            .unwrap_or_default();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        buffer
    }

    fn keep_buffer(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.lock().expect("no holder of the lock panics");
        if spare.len() < SPARE_BUFFERS {
            spare.push(buffer);
        }
    }
}
