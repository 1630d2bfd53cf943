//! Reads the way of requests to the disk: engine, depth, page cache, pages of the buffers,
//! scheduler.

use super::order::has_queue;
use super::reader::JobReader;
use crate::job_file::jobs::{Cache, FioJob};
use crate::job_file::translation::Translated;
use crate::workload::Count;
use diskproof_model::plan::{EngineChoice, EngineKind};
use diskproof_model::rw::Rw;
use diskproof_model::shape::AccessAdvice;

/// The engines of fio that are supported. With `posixaio` the C library handles requests to one
/// file one at a time, whatever iodepth is.
const ENGINES: [(&str, EngineKind); 9] = [
    ("libaio", EngineKind::Aio),
    ("io_uring", EngineKind::Uring),
    ("psync", EngineKind::Sync),
    ("sync", EngineKind::Sync),
    ("vsync", EngineKind::Sync),
    ("pvsync", EngineKind::Sync),
    ("pvsync2", EngineKind::Sync),
    ("posixaio", EngineKind::Sync),
    ("mmap", EngineKind::Mmap),
];

/// The values of `fadvise_hint`. 1 is the order of the job.
const ADVICE: [(&str, Option<AccessAdvice>); 4] = [
    ("0", Some(AccessAdvice::Normal)),
    ("1", None),
    ("random", Some(AccessAdvice::Random)),
    ("sequential", Some(AccessAdvice::Sequential)),
];

/// The values of `lockfile`, each with whether requests lock their file.
const LOCKS: [(&str, bool); 3] = [("none", false), ("exclusive", true), ("readwrite", true)];

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// The values of `io_submit_mode`; true where a thread of its own submits each request.
const SUBMIT_MODES: [(&str, bool); 2] = [("inline", false), ("offload", true)];

impl JobReader<'_> {
    /// The engine that the job names; fio's default without one.
    pub(super) fn named_engine(&self) -> Translated<EngineKind> {
        let named = self.choice("ioengine", &ENGINES)?;
        Ok(named.unwrap_or(EngineKind::Sync))
    }

    /// The engine that makes the job's requests. Neither Linux AIO nor a memory mapping has trims;
    /// fio makes a blocking call of each.
    pub(super) fn engine(&self, rw: Rw) -> Translated<EngineKind> {
        let named = self.named_engine()?;
        if rw.drops_blocks() && matches!(named, EngineKind::Aio | EngineKind::Mmap) {
            return Ok(EngineKind::Sync);
        }
        Ok(named)
    }

    /// The requests in flight: 1 with an engine that takes one request at a time.
    pub(super) fn depth(&self, engine: EngineKind) -> Translated<u64> {
        let is_offloaded = self.choice("io_submit_mode", &SUBMIT_MODES)? == Some(true);
        // As in fio, whose message this is.
        if is_offloaded && self.named_engine()? == EngineKind::Uring {
            let why = "io_uring can't be used with offloaded submit. Use a sync engine";
            return Err(self.error("io_submit_mode", why));
        }
        let iodepth = self.bytes("iodepth", 1)?;
        let takes_one = matches!(engine, EngineKind::Sync | EngineKind::Mmap);
        if takes_one && !is_offloaded {
            return Ok(iodepth.min(1));
        }
        Ok(iodepth)
    }

    /// Refuses what fio's mmap refuses: a mapping is synced, and bypasses the cache, in whole
    /// pages.
    fn check_mapped_sizes(&self) -> Translated<()> {
        let is_synced = ["fsync", "fdatasync"]
            .iter()
            .any(|name| self.is_set(name) && self.text(name) != Some("0"));
        let is_direct = self.optional_flag("direct")? == Some(true);
        if !self.translation.is_as_fio()
            || self.named_engine()? != EngineKind::Mmap
            || !(is_synced || is_direct)
            || self.smallest_size()?.is_multiple_of(PAGE_BYTES)
        {
            return Ok(());
        }
        let why = "fio's mmap with fsync, fdatasync or direct=1 needs blocks of whole pages (4k); \
                   use a larger bs";
        Err(self.error("ioengine", why))
    }

    /// The use of the page cache by a job with this engine. A memory mapping always goes through
    /// it.
    pub(super) fn cache(&self, engine: EngineKind) -> Translated<Cache> {
        let direct = self.optional_flag("direct")?;
        let buffered = self.optional_flag("buffered")?;
        let is_direct = if self.is_later("buffered", "direct") {
            buffered == Some(false)
        } else {
            direct == Some(true)
        };
        let is_emptied = self.optional_flag("invalidate")?.unwrap_or(true);
        if is_direct && engine != EngineKind::Mmap {
            Ok(Cache::Direct)
        } else if is_emptied {
            Ok(Cache::Emptied)
        } else {
            Ok(Cache::Kept)
        }
    }
}

pub(super) fn set_engine(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let engine = reader.engine(job.rw())?;
    reader.check_mapped_sizes()?;
    if reader.named_engine()? != engine {
        reader.note(
            "the engine has no trims: each is a blocking call, as in fio, and so are the writes \
             of a trimwrite job",
        );
    }
    job.flags.engine = Some(EngineChoice::Fixed(engine));
    Ok(())
}

pub(super) fn set_depth(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let depth = reader.depth(job.engine())?;
    if depth < reader.bytes("iodepth", 1)? {
        reader.note(
            "iodepth has no effect with an engine that takes one request at a time, as in fio",
        );
    }
    job.flags.depth = Some(Count(depth));
    Ok(())
}

pub(super) fn set_cache(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.cache = reader.cache(job.engine())?;
    Ok(())
}

/// `pre_read`, which leaves the page cache as it is then. With direct I/O it changes nothing.
pub(super) fn set_pre_read(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.pre_reads = reader.flag("pre_read")? && job.cache != Cache::Direct;
    if job.pre_reads {
        job.cache = Cache::Kept;
    }
    Ok(())
}

/// `fadvise_hint`: the advice to the kernel about the order of requests through the page cache.
pub(super) fn set_advice(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let advice = reader.choice("fadvise_hint", &ADVICE)?.flatten();
    if advice.is_some() && job.cache == Cache::Direct {
        let why = "no effect in this job";
        reader.translation.ignore_option("fadvise_hint", why);
        return Ok(());
    }
    job.flags.shape.threads.advice = advice;
    Ok(())
}

/// `mem`: fio's buffers lie in huge pages only where the job says so.
pub(super) fn set_pages(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let has_huge = match reader.text("mem") {
        Some(kind) => kind.contains("huge"),
        None => false,
    };
    job.flags.shape.threads.ordinary_pages = !has_huge;
    Ok(())
}

/// `ioscheduler`: the disk must have it already.
pub(super) fn set_scheduler(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.scheduler = reader.given_name("ioscheduler")?;
    Ok(())
}

/// `lockfile`. As in fio, an engine with a queue holds the lock only while it queues a request.
pub(super) fn set_lock(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let locks = reader.choice("lockfile", &LOCKS)?.unwrap_or(false);
    let has_queue = reader.text("ioengine").is_some_and(has_queue);
    job.file_set.locks = locks && !has_queue;
    Ok(())
}
