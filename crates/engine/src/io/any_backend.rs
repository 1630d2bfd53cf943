//! Puts any of the backends behind one type, which chooses at each call: for the sampler, which
//! sends some hundreds of requests a second. Workers use the backends directly.

use crate::io::aio::AioBackend;
use crate::io::buffers::Buffers;
use crate::io::null::NullBackend;
use crate::io::sync::SyncBackend;
use crate::io::uring::UringBackend;
use crate::io::{Backend, Extent, RequestSource, SubmitPolicy, WaitMode};
use crate::random::Random;
use diskproof_model::plan::{CachePolicy, EngineKind, Workload};
use std::io;
use std::os::fd::OwnedFd;

/// One of the I/O engines.
pub enum AnyBackend {
    /// io_uring.
    Uring(Box<UringBackend>),
    /// Linux AIO.
    Aio(AioBackend),
    /// pread and pwrite.
    Sync(SyncBackend),
    /// No I/O at all.
    Null(NullBackend),
}

/// Size and use of the queue of a backend.
#[derive(Debug, Clone, Copy)]
pub struct QueueConfig {
    /// Requests in flight.
    pub depth: u32,
    /// Bytes of the largest request.
    pub request_bytes: u32,
    /// The treatment of the page cache.
    pub cache: CachePolicy,
    /// Seed of the data that is written.
    pub seed: u64,
    /// Added to the number of a slot, it gives the buffer of the slot's writes: 0 where requests go
    /// one way only, else the depth.
    pub write_shift: u32,
}

/// The [`QueueConfig::write_shift`] of a queue of `depth` slots: where a workload reads, too, its
/// writes have memory of their own, so that data that was read is never written.
pub(crate) fn write_shift(workload: &Workload, depth: u32) -> u32 {
    if workload.reads() && workload.writes() {
        depth
    } else {
        0
    }
}

impl AnyBackend {
    /// A backend on `fd`. The thread that makes it must be the one that uses it.
    pub fn new(kind: EngineKind, fd: OwnedFd, config: QueueConfig) -> io::Result<Self> {
        let slots = config.depth + config.write_shift;
        let mut buffers = Buffers::new(slots as usize, config.request_bytes as usize)?;
        buffers.fill_random(&mut Random::new(config.seed, WRITTEN_STREAM));
        let batched = SubmitPolicy::Batched;
        Ok(match kind {
            EngineKind::Uring => Self::Uring(Box::new(UringBackend::new(
                fd,
                buffers,
                config.depth,
                config.cache,
                batched,
            )?)),
            EngineKind::Aio => Self::Aio(AioBackend::new(fd, buffers, config.depth, batched)?),
            EngineKind::Null => Self::Null(NullBackend::new(buffers, config.depth as usize)),
            EngineKind::Sync => Self::Sync(SyncBackend::new(fd, buffers)),
            // The callers refuse mappings before. Another engine in its place would be recorded as
            // a mapping.
            EngineKind::Mmap => {
                let why = "single requests cannot go through a memory mapping";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        })
    }
}

/// The stream of random numbers for the written content: any number that no other user of the seed
/// takes.
const WRITTEN_STREAM: u64 = 0x0057_8173;

/// Calls a method of whichever backend it is.
macro_rules! dispatch {
    ($any:expr, $backend:ident => $call:expr) => {
        match $any {
            Self::Uring($backend) => $call,
            Self::Aio($backend) => $call,
            Self::Sync($backend) => $call,
            Self::Null($backend) => $call,
        }
    };
}

impl Backend for AnyBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        dispatch!(self, backend => backend.enqueue(source))
    }

    fn wait(&mut self, patience: WaitMode) -> io::Result<()> {
        dispatch!(self, backend => backend.wait(patience))
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        dispatch!(self, backend => backend.reap(sink))
    }

    fn buffers(&self) -> &Buffers {
        dispatch!(self, backend => backend.buffers())
    }

    fn ends_in_enqueue(&self) -> bool {
        dispatch!(self, backend => backend.ends_in_enqueue())
    }

    fn drop_cache(&mut self, extent: Option<Extent>) {
        dispatch!(self, backend => backend.drop_cache(extent))
    }
}
