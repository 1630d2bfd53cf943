//! Resolves the flags of a workload into a complete workload for its targets, or into an error that
//! names the contradiction and the remedy. Pure.

use super::flags::WorkloadFlags;
use super::latency_target::latency_target;
use super::limits::{
    Content, Extent, FlagsError, ResolveContext, Resolved, check_memory, check_room, resolve_span,
};
use super::parsers::{
    BlockSize, BlockSplit, Bytes, Count, OffsetDistribution, SyncedWrites, Zones,
};
use crate::flags::SECOND_NS;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Span, Start,
    Stop, SyncCall, SyncPolicy, Verify, Workload,
};
use diskproof_model::rw::{Order, Rw};
use diskproof_model::shape::LoadShape;
use diskproof_model::signed::can_be_signed;
use diskproof_model::stream::Streams;
use diskproof_model::units::format_bytes;

/// The block without `--bs` is PostgreSQL's page.
const BLOCK_BYTES_DEFAULT: u32 = 8192;
/// The queues of no device hold more requests in flight.
const DEPTH_MAX: u64 = 4096;
/// No machine gains from more threads.
const JOBS_MAX: u64 = 1024;
/// Without `--rwmixread`, half of the operations of a mix are reads, as in fio.
const READ_PERMILLE_DEFAULT: u16 = 500;
/// The relative half-width of the interval that ends a workload without its own limit.
const PRECISION_DEFAULT: f64 = 0.02;
/// Most disks reach 2 % in this time.
const TIME_NS_DEFAULT: u64 = 30 * SECOND_NS;
/// The default warm-up is a twentieth of the time.
const WARMUP_DIVISOR: u64 = 20;
/// The default warm-up is no longer than this.
const WARMUP_NS_MAX: u64 = SECOND_NS;
/// No device has smaller sectors.
const SECTOR_BYTES: u32 = 512;

/// Resolves the flags or keys of one workload.
pub(crate) fn resolve(
    flags: &WorkloadFlags,
    context: &ResolveContext,
) -> Result<Workload, FlagsError> {
    let own_context = context.for_target(flags.target);
    let resolution = Resolution {
        flags,
        context: &own_context,
        rw: flags.rw.unwrap_or(Rw::RANDREAD),
    };
    let Blocks {
        largest_bytes: block_bytes,
        mix: block_mix,
    } = resolution.blocks()?;
    let depth = resolution.count("depth", flags.depth, DEPTH_MAX)?;
    let workers = resolution.count("jobs", flags.jobs, JOBS_MAX)?;
    let engine = context.engine.or(flags.engine);
    let name = match &flags.name {
        Some(name) => &name.0,
        None => resolution.rw.as_str(),
    };
    let mut workload = Workload {
        block_bytes,
        block_mix,
        depth,
        workers,
        engine: engine.unwrap_or(EngineChoice::Auto),
        rate: flags.rate.map(|rate| rate.0),
        ends_alone: is_set(flags.ends_alone),
        target: flags.target,
        ..Workload::named(name)
    };
    if is_set(flags.together) {
        workload.start = Start::WithPrevious;
    }
    workload.cache = resolution.cache(&workload)?;
    let is_cached = workload.cache == CachePolicy::Cached;
    workload.drops_cache_first = is_set(flags.drops_cache_first) && is_cached;
    let extent = resolution.extent(block_bytes)?;
    workload.span = match flags.span {
        Some(_) => Span::new(extent.start_bytes, Some(extent.length_bytes)),
        None => Span::new(extent.start_bytes, None),
    };
    workload.verify = resolution.verify(&workload)?;
    workload.sync = resolution.sync()?;
    let pass_bytes = if resolution.is_single_pass(workload.verify) {
        Some(extent.length_bytes)
    } else {
        None
    };
    workload.stop = resolution.stop(block_bytes, pass_bytes)?;
    workload.streams = resolution.streams()?;
    workload.access = resolution.access(block_bytes)?;
    workload.shape = resolution.shape(workers);
    workload.shape.latency_target = latency_target(flags)?;
    if context.content == Content::Nothing && lays_out(&workload) {
        workload.layout = Layout::Provides;
    }
    workload.warmup_ns = resolution.warmup_ns(&workload);
    check_memory(&workload, &own_context)?;
    check_room(&workload, extent.length_bytes)?;
    Ok(workload)
}

/// A workload while it is resolved.
struct Resolution<'a> {
    flags: &'a WorkloadFlags,
    context: &'a ResolveContext,
    rw: Rw,
}

/// The blocks of a workload.
struct Blocks {
    largest_bytes: u32,
    /// The mix of sizes; empty where there is one size.
    mix: Vec<BlockShare>,
}

fn is_set(flag: Option<bool>) -> bool {
    flag == Some(true)
}

impl Resolution<'_> {
    /// True if the workload goes over its span once, unless the user sets another limit. Trims do,
    /// and so does a check of what was written, or of what is written in order.
    fn is_single_pass(&self, verify: Verify) -> bool {
        if self.rw.leaves_no_content() {
            return true;
        }
        let writes_in_order = self.rw.order == Order::Sequential && !self.rw.is_mix();
        verify == Verify::Checksum && (writes_in_order || !self.flags.writes())
    }

    /// A block has content for one trim only, so random trims visit each block once, unless the
    /// user asks for another distribution or the workload has a shape of its own.
    fn shape(&self, workers: u32) -> LoadShape {
        let flags = self.flags;
        let is_uniform = flags.distribution.is_none() && flags.zones.is_none();
        let visits_once = self.rw.order == Order::Random && is_uniform;
        let mut shape = flags.shape.clone();
        if self.rw.drops_blocks() && visits_once && shape.is_plain() {
            shape.order.each_block_once = true;
            // A mix of sizes has a map for each worker.
            shape.order.workers_share_map = workers > 1 && self.flags.bssplit.is_none();
        }
        shape
    }

    fn streams(&self) -> Resolved<Streams> {
        let read_permille = match self.flags.rwmixread {
            None => READ_PERMILLE_DEFAULT,
            Some(share) if self.rw.is_mix() => share.0,
            Some(_) => {
                let why = "<rwmixread> needs reads and writes; use <rw> rw or randrw";
                return Err(why.to_owned());
            }
        };
        Ok(self.rw.streams(read_permille, &self.flags.other_sizes))
    }

    /// The largest block of all operations, and the mix of sizes; that of reads, where writes have
    /// another one.
    fn blocks(&self) -> Resolved<Blocks> {
        let mut blocks = self.read_blocks()?;
        let write_mix = &self.flags.other_sizes;
        if !write_mix.is_empty() && blocks.mix.is_empty() {
            blocks.mix.push(BlockShare::new(blocks.largest_bytes, 1));
        }
        for share in write_mix {
            blocks.largest_bytes = blocks.largest_bytes.max(share.block_bytes);
        }
        Ok(blocks)
    }

    /// The blocks of reads, or of all operations where those have the same.
    fn read_blocks(&self) -> Resolved<Blocks> {
        let size = self.flags.bs;
        let split = &self.flags.bssplit;
        self.only_one(&[("bs", size.is_some()), ("bssplit", split.is_some())])?;
        let Some(BlockSplit(mix)) = split else {
            let largest_bytes = match size {
                Some(BlockSize(bytes)) => bytes,
                None => BLOCK_BYTES_DEFAULT,
            };
            let mix = Vec::new();
            return Ok(Blocks { largest_bytes, mix });
        };
        let largest_bytes = mix
            .iter()
            .map(|share| share.block_bytes)
            .max()
            .unwrap_or(BLOCK_BYTES_DEFAULT);
        let mix = if mix.len() == 1 {
            Vec::new()
        } else {
            mix.clone()
        };
        Ok(Blocks { largest_bytes, mix })
    }

    /// The only one of these keys that is set, if one is. Two are an error, because they exclude
    /// each other.
    fn only_one(&self, keys: &[(&'static str, bool)]) -> Resolved<Option<&'static str>> {
        let mut only = None;
        for (key, is_given) in keys {
            match only {
                _ if !is_given => {}
                None => only = Some(*key),
                Some(other) => {
                    return Err(format!(
                        "<{other}> and <{key}> exclude each other; use one of them"
                    ));
                }
            }
        }
        Ok(only)
    }

    /// Checks that a workload with this key about writes has any.
    fn check_writes(&self, key: &str) -> Resolved<()> {
        if self.flags.writes_data() {
            Ok(())
        } else {
            Err(format!(
                "<{key}> makes writes durable, but this workload writes no data; use <rw> write, \
                 rw, randwrite or randrw"
            ))
        }
    }

    /// The value of a key that counts, from 1 to `max`; 1 where it is not set.
    fn count(&self, key: &str, given: Option<Count>, max: u64) -> Resolved<u32> {
        let wrong = match given {
            None => return Ok(1),
            Some(Count(0)) => "0 starts nothing".to_owned(),
            Some(Count(count)) if count > max => format!("{count} is too large"),
            Some(Count(count)) => return Ok(count as u32),
        };
        Err(format!("<{key}> {wrong}; use 1 to {max}"))
    }

    fn access(&self, block_bytes: u32) -> Resolved<Access> {
        let flags = self.flags;
        let given = [
            ("zones", flags.zones.is_some()),
            ("distribution", flags.distribution.is_some()),
            ("backward", is_set(flags.backward)),
            ("stride", flags.stride.is_some()),
        ];
        match (self.rw.order, self.only_one(&given)?) {
            (Order::Random, Some(key @ ("backward" | "stride"))) => {
                Err(self.wrong_order(key, "sequential", "read, write or rw"))
            }
            (Order::Sequential, Some(key @ ("zones" | "distribution"))) => {
                Err(self.wrong_order(key, "random", "randread, randwrite or randrw"))
            }
            (Order::Sequential, Some(key)) if flags.bssplit.is_some() => Err(format!(
                "<{key}> needs a single block size; use <bs> instead of <bssplit>"
            )),
            (Order::Sequential, Some("backward")) => Ok(Access::Backward),
            (Order::Sequential, _) => match flags.stride {
                Some(Bytes(stride_bytes)) => self.stride(stride_bytes, block_bytes),
                None => Ok(Access::Sequential),
            },
            (Order::Random, _) => Ok(self.random_access()),
        }
    }

    fn random_access(&self) -> Access {
        if let Some(Zones(zones)) = self.flags.zones.clone() {
            return Access::Zoned { zones };
        }
        let distribution = match self.flags.distribution {
            Some(OffsetDistribution(distribution)) => distribution,
            None => Distribution::Uniform,
        };
        Access::Random { distribution }
    }

    /// The error of a key that needs operations in another order than `<rw>` has.
    fn wrong_order(&self, key: &str, needed: &str, rw_values: &str) -> String {
        let rw = self.rw.as_str();
        format!(
            "<{key}> needs {needed} operations, and <rw> is {rw}; use <rw> {rw_values}, or remove \
             <{key}>"
        )
    }

    fn stride(&self, stride_bytes: u64, block_bytes: u32) -> Resolved<Access> {
        if stride_bytes == 0 || !stride_bytes.is_multiple_of(u64::from(block_bytes)) {
            return Err(format!(
                "<stride> {stride_bytes} is not a multiple of the block, {block_bytes} bytes; use \
                 a multiple of it"
            ));
        }
        let Extent { length_bytes, .. } = self.extent(block_bytes)?;
        if stride_bytes > length_bytes {
            return Err(format!(
                "<stride> {} is larger than the span of {}; use a smaller step or a larger span",
                format_bytes(stride_bytes),
                format_bytes(length_bytes)
            ));
        }
        Ok(Access::Stride { stride_bytes })
    }

    fn sync(&self) -> Resolved<SyncPolicy> {
        let flags = self.flags;
        let given = self.only_one(&[
            ("sync", flags.sync.is_some()),
            ("fsync", flags.fsync.is_some()),
            ("fdatasync", flags.fdatasync.is_some()),
            ("end-fsync", is_set(flags.end_fsync)),
        ])?;
        let Some(key) = given else {
            return Ok(SyncPolicy::None);
        };
        let policy = match (flags.sync, flags.fsync, flags.fdatasync) {
            (Some(SyncedWrites(flag)), ..) => SyncPolicy::WithWrite { flag },
            (_, Some(writes), _) => periodic_sync(key, SyncCall::Fsync, writes)?,
            (.., Some(writes)) => periodic_sync(key, SyncCall::Fdatasync, writes)?,
            _ => SyncPolicy::AtEnd,
        };
        self.check_writes(key)?;
        Ok(policy)
    }

    fn cache(&self, workload: &Workload) -> Resolved<CachePolicy> {
        let buffered = is_set(self.flags.buffered);
        let cached = is_set(self.flags.cached);
        self.only_one(&[("buffered", buffered), ("cached", cached)])?;
        // A memory mapping always uses the page cache.
        if buffered || (!cached && workload.engine == EngineChoice::Fixed(EngineKind::Mmap)) {
            return Ok(CachePolicy::Buffered);
        }
        if cached {
            return Ok(CachePolicy::Cached);
        }
        let odd = workload
            .block_mix
            .iter()
            .chain(&self.flags.other_sizes)
            .map(|share| share.block_bytes)
            .chain([workload.block_bytes])
            .find(|bytes| !bytes.is_multiple_of(SECTOR_BYTES));
        match odd {
            Some(odd) => Err(format!(
                "a block of {odd} bytes is not a multiple of {SECTOR_BYTES}, which direct I/O \
                 needs; use a multiple, or <buffered>"
            )),
            None => Ok(CachePolicy::Direct),
        }
    }

    /// When the workload ends. A single pass ends by default after `pass_bytes`.
    fn stop(&self, block_bytes: u32, pass_bytes: Option<u64>) -> Resolved<Stop> {
        let flags = self.flags;
        let block = u64::from(block_bytes);
        let mut stop = Stop {
            precision: flags.precision.map(|precision| precision.0),
            time_ns: flags.time.map(|time| time.0),
            bytes: flags.bytes.map(|bytes| bytes.0),
            ops: flags.ops.map(|ops| ops.0),
        };
        let is_uncounted = stop.bytes.is_none() && stop.ops.is_none();
        if let Some(length) = pass_bytes
            && is_uncounted
            && stop.time_ns.is_none()
        {
            stop.bytes = Some(length / block * block);
        }
        // A search ends when the depth is found. One pass of trims may take hours.
        let ends = stop.bytes.is_some() || stop.ops.is_some() || flags.latency_target.is_some();
        let is_pass_of_trims = self.rw.leaves_no_content() && is_uncounted;
        if stop.time_ns.is_none() && (is_pass_of_trims || !ends) {
            stop.time_ns = Some(TIME_NS_DEFAULT);
            stop.precision.get_or_insert(PRECISION_DEFAULT);
        }
        if stop.time_ns == Some(0) {
            return Err("<time> 0 measures nothing; use a duration such as 10s".to_owned());
        }
        if stop.ops == Some(0) {
            return Err("<ops> 0 measures nothing; use at least 1".to_owned());
        }
        if let Some(bytes) = stop.bytes
            && bytes < block
        {
            let block = format_bytes(block);
            return Err(format!(
                "<bytes> {bytes} is less than one block of {block}; use more bytes or smaller \
                 blocks"
            ));
        }
        Ok(stop)
    }

    /// The first pass over a new file has no warm-up: its figure covers all writes of the file.
    fn warmup_ns(&self, workload: &Workload) -> u64 {
        if let Some(warmup) = self.flags.warmup {
            return warmup.0;
        }
        let stop = &workload.stop;
        if stop.bytes.is_some() || stop.ops.is_some() || workload.layout != Layout::Needed {
            return 0;
        }
        // A search warms up before each window.
        let time_ns = match workload.shape.latency_target {
            Some(target) => target.window_ns,
            None => stop.time_ns.unwrap_or(0),
        };
        (time_ns / WARMUP_DIVISOR).min(WARMUP_NS_MAX)
    }

    fn verify(&self, workload: &Workload) -> Resolved<Verify> {
        let verifies = is_set(self.flags.verify);
        if !verifies && !self.flags.signs_only {
            return Ok(Verify::Off);
        }
        if let Some(why) = self.unverifiable(workload) {
            return Err(why.to_owned());
        }
        if verifies {
            Ok(Verify::Checksum)
        } else {
            Ok(Verify::SignOnly)
        }
    }

    /// Why the blocks of a workload cannot be verified.
    fn unverifiable(&self, workload: &Workload) -> Option<&'static str> {
        let writes = self.flags.writes();
        if self.rw.leaves_no_content() {
            return Some(
                "<verify> checks what was written, and trims leave no content; remove it, or use \
                 <rw> trimwrite or randtrimwrite",
            );
        }
        if !writes && self.context.content == Content::Nothing {
            return Some(
                "<verify> without writes checks the blocks of an earlier run, but a scratch file \
                 is new; name the file or device that was written with <verify>, or use <rw> \
                 write, rw, randwrite or randrw",
            );
        }
        if !writes && workload.engine == EngineChoice::Fixed(EngineKind::Mmap) {
            return Some(
                "<verify> checks the data of reads, but a memory mapping makes no reads; use \
                 another engine",
            );
        }
        if writes && self.flags.shape.order.fio.is_some() {
            // The engine signs what its sizes have in common.
            return None;
        }
        let block_bytes = workload.block_bytes;
        if !workload.block_mix.is_empty() || !can_be_signed(block_bytes) {
            return Some(
                "<verify> signs every block and needs a single block size of at least 64 bytes, a \
                 multiple of 8; use a size such as <bs> 4k",
            );
        }
        None
    }

    /// The part of the target that the workload uses.
    fn extent(&self, block_bytes: u32) -> Resolved<Extent> {
        resolve_span(self.flags.span, block_bytes, self.context)
    }
}

/// A sync after every `count` writes.
fn periodic_sync(key: &str, call: SyncCall, count: Count) -> Resolved<SyncPolicy> {
    match u32::try_from(count.0) {
        Ok(0) | Err(_) => Err(format!(
            "<{key}> counts writes; use 1 to sync after each write"
        )),
        Ok(writes) => Ok(SyncPolicy::Every { writes, call }),
    }
}

/// True if the workload can lay out a new file: it writes the file once from its start, alone, so a
/// growing file is its purpose. One with periodic syncs of whole blocks cannot: it measures
/// commits, and databases commit to existing files; a log of smaller records, such as etcd's, goes
/// on in new blocks. Nor can one with a memory mapping, which does not extend a file. Trims of a
/// file without content would be trims of nothing.
fn lays_out(workload: &Workload) -> bool {
    workload.streams.is_only(OpKind::Write)
        && workload.access == Access::Sequential
        && workload.workers == 1
        && workload.span == Span::default()
        && workload.shape.is_plain()
        && (matches!(workload.sync, SyncPolicy::None | SyncPolicy::AtEnd)
            || workload.writes_partial_blocks(workload.cache))
        && workload.engine != EngineChoice::Fixed(EngineKind::Mmap)
}

#[cfg(test)]
mod tests;
