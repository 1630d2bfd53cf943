//! Resolves the flags of a workload into a complete workload for its targets, or into an error that
//! names the contradiction and the remedy. Pure.

use super::flags::WorkloadFlags;
use super::latency_target::latency_target;
use super::limits::{
    Content, ResolveContext, Resolved, Wording, check_memory, check_room, resolve_span,
};
use super::parsers::{Bytes, Count, SyncedWrites, Zones};
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Span, Start,
    Stop, SyncCall, SyncPolicy, Verify, Workload,
};
use diskproof_model::rw::{Order, Rw};
use diskproof_model::shape::LoadShape;
use diskproof_model::stream::Streams;
use diskproof_model::units::format_bytes;

/// PostgreSQL's page.
const BLOCK_BYTES_DEFAULT: u32 = 8192;
/// More requests in flight than the queues of any device hold.
const DEPTH_MAX: u64 = 4096;
/// More threads than any machine gains from.
const JOBS_MAX: u64 = 1024;
const READ_PERMILLE_DEFAULT: u16 = 500;
/// Relative half-width of the interval that ends a workload without its own limit.
const PRECISION_DEFAULT: f64 = 0.02;
const SECOND: u64 = 1_000_000_000;
/// Most disks reach 2 % in this time.
const TIME_NS_DEFAULT: u64 = 30 * SECOND;
/// No device has smaller sectors.
const SECTOR_BYTES: u64 = 512;
/// A verified block holds its checksum, position and generation, as 64-bit words.
const SIGNED_BYTES_MIN: u32 = 64;
const SIGNED_BYTES_UNIT: u32 = 8;

/// Resolves the flags or keys of one workload.
pub(crate) fn resolve(
    flags: &WorkloadFlags,
    context: &ResolveContext,
    wording: Wording,
) -> Resolved<Workload> {
    let rw = flags.rw.unwrap_or(Rw::RANDREAD);
    let mut context = context.clone();
    if let Some(bytes) = flags.target.and_then(|only| context.target_bytes.get(only)) {
        context.target_bytes = vec![*bytes];
    }
    let context = &context;
    let resolution = Resolution { flags, context, rw };
    resolution.workload().map_err(|why| wording.of(&why))
}

struct Resolution<'a> {
    flags: &'a WorkloadFlags,
    context: &'a ResolveContext,
    rw: Rw,
}

fn is_set(flag: Option<bool>) -> bool {
    flag == Some(true)
}

impl Resolution<'_> {
    fn workload(&self) -> Resolved<Workload> {
        let flags = self.flags;
        let (block_bytes, block_mix) = self.blocks()?;
        let depth = self.count("depth", flags.depth, DEPTH_MAX)?;
        let workers = self.count("jobs", flags.jobs, JOBS_MAX)?;
        let engine = self.context.engine.or(flags.engine);
        let name = flags.name.as_ref();
        let mut workload = Workload {
            block_bytes,
            block_mix,
            depth,
            workers,
            engine: engine.unwrap_or(EngineChoice::Auto),
            rate: flags.rate.map(|rate| rate.0),
            ends_alone: is_set(flags.ends_alone),
            target: flags.target,
            ..Workload::named(name.map_or(self.rw.as_str(), |name| &name.0))
        };
        if is_set(flags.together) {
            workload.start = Start::WithPrevious;
        }
        workload.cache = self.cache(&workload)?;
        let is_cached = workload.cache == CachePolicy::Cached;
        workload.drops_cache_first = is_set(flags.drops_cache_first) && is_cached;
        let (start_bytes, length) = self.extent(block_bytes)?;
        workload.span = Span::new(start_bytes, flags.span.is_some().then_some(length));
        workload.verify = self.verify(&workload)?;
        let only_drops = self.rw.leaves_no_content();
        let verifies = workload.verify == Verify::Checksum;
        // A check of what was written is a pass over the span, and so is writing in order.
        let writes_in_order = self.rw.order == Order::Sequential && !self.rw.is_mix();
        let is_pass = !flags.writes() || writes_in_order;
        let once = (only_drops || (verifies && is_pass)).then_some(length);
        workload.sync = self.sync()?;
        workload.stop = self.stop(block_bytes, once)?;
        workload.streams = self.streams()?;
        workload.access = self.access(block_bytes)?;
        workload.shape = self.shape();
        workload.shape.latency_target = latency_target(flags)?;
        if self.context.content == Content::Nothing && lays_out(&workload) {
            workload.layout = Layout::Provides;
        }
        workload.warmup_ns = self.warmup_ns(&workload);
        check_memory(&workload, self.context)?;
        check_room(&workload, length)?;
        Ok(workload)
    }

    /// A block has content for one trim only, so random trims visit each block once, unless the
    /// user asks for another distribution or the workload has a shape of its own.
    fn shape(&self) -> LoadShape {
        let flags = self.flags;
        let is_uniform = flags.distribution.is_none() && flags.zones.is_none();
        let visits_once = self.rw.order == Order::Random && is_uniform;
        LoadShape {
            each_block_once: flags.shape.each_block_once
                || (self.rw.drops_blocks() && visits_once && flags.shape.is_plain()),
            ..flags.shape.clone()
        }
    }

    fn streams(&self) -> Resolved<Streams> {
        let share = self.flags.rwmixread.map(|share| share.0);
        if share.is_some() && !self.rw.is_mix() {
            return Err("<rwmixread> needs reads and writes; use <rw> rw or randrw".to_owned());
        }
        let share = share.unwrap_or(READ_PERMILLE_DEFAULT);
        Ok(self.rw.streams(share, &self.flags.other_sizes))
    }

    /// The largest block, and the mix of sizes if there is one; of reads, where writes have others.
    fn blocks(&self) -> Resolved<(u32, Vec<BlockShare>)> {
        let (block_bytes, mut mix) = self.read_blocks()?;
        let write_mix = &self.flags.other_sizes;
        if !write_mix.is_empty() && mix.is_empty() {
            mix.push(BlockShare::new(block_bytes, 1));
        }
        let writes = write_mix.iter().map(|share| share.block_bytes);
        Ok((writes.fold(block_bytes, u32::max), mix))
    }

    fn read_blocks(&self) -> Resolved<(u32, Vec<BlockShare>)> {
        let (bs, split) = (self.flags.bs, &self.flags.bssplit);
        self.only_one(&[("bs", bs.is_some()), ("bssplit", split.is_some())])?;
        Ok(match split.as_ref().map(|split| split.0.as_slice()) {
            None => (bs.map_or(BLOCK_BYTES_DEFAULT, |bs| bs.0), Vec::new()),
            Some([only]) => (only.block_bytes, Vec::new()),
            Some(mix) => {
                let largest = mix.iter().map(|share| share.block_bytes).max();
                (largest.unwrap_or(BLOCK_BYTES_DEFAULT), mix.to_vec())
            }
        })
    }

    /// Of keys that exclude each other, the one that is set.
    fn only_one(&self, keys: &[(&'static str, bool)]) -> Resolved<Option<&'static str>> {
        let mut given = keys.iter().filter(|(_, is_given)| *is_given);
        match (given.next(), given.next()) {
            (Some((one, _)), Some((other, _))) => Err(format!(
                "<{one}> and <{other}> exclude each other; use one of them"
            )),
            (given, _) => Ok(given.map(|(key, _)| *key)),
        }
    }

    /// The error of a key about writes in a workload that has none.
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

    fn count(&self, key: &str, given: Option<Count>, max: u64) -> Resolved<u32> {
        let wrong = match given.map_or(1, |count| count.0) {
            0 => "0 starts nothing".to_owned(),
            count if count > max => format!("{count} is too large"),
            count => return Ok(count as u32),
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
        let needs = |key: &str, order: &str, values: &str| {
            let rw = self.rw.as_str();
            Err(format!(
                "<{key}> needs {order} operations, and <rw> is {rw}; use <rw> {values}, or remove \
                 <{key}>"
            ))
        };
        match (self.rw.order, self.only_one(&given)?) {
            (Order::Random, Some(key @ ("backward" | "stride"))) => {
                needs(key, "sequential", "read, write or rw")
            }
            (Order::Sequential, Some(key @ ("zones" | "distribution"))) => {
                needs(key, "random", "randread, randwrite or randrw")
            }
            (Order::Sequential, Some(key)) if flags.bssplit.is_some() => Err(format!(
                "<{key}> needs a single block size; use <bs> instead of <bssplit>"
            )),
            (Order::Sequential, Some("backward")) => Ok(Access::Backward),
            (Order::Sequential, _) => match flags.stride {
                Some(Bytes(stride_bytes)) => self.stride(stride_bytes, block_bytes),
                None => Ok(Access::Sequential),
            },
            (Order::Random, _) => {
                let law = flags.distribution.map(|law| law.0);
                let distribution = law.unwrap_or(Distribution::Uniform);
                Ok(match flags.zones.clone() {
                    Some(Zones(zones)) => Access::Zoned { zones },
                    None => Access::Random { distribution },
                })
            }
        }
    }

    fn stride(&self, stride_bytes: u64, block_bytes: u32) -> Resolved<Access> {
        if stride_bytes == 0 || !stride_bytes.is_multiple_of(u64::from(block_bytes)) {
            return Err(format!(
                "<stride> {stride_bytes} is not a multiple of the block, {block_bytes} bytes; use \
                 a multiple of it"
            ));
        }
        let (_, length) = self.extent(block_bytes)?;
        if stride_bytes > length {
            return Err(format!(
                "<stride> {} is larger than the span of {}; use a smaller step or a larger span",
                format_bytes(stride_bytes),
                format_bytes(length)
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
        let every = |call, count: Count| match u32::try_from(count.0) {
            Ok(0) | Err(_) => Err(format!(
                "<{key}> counts writes; use 1 to sync after each write"
            )),
            Ok(writes) => Ok(SyncPolicy::Every { writes, call }),
        };
        let policy = match (flags.sync, flags.fsync, flags.fdatasync) {
            (Some(SyncedWrites(flag)), ..) => SyncPolicy::WithWrite { flag },
            (_, Some(count), _) => every(SyncCall::Fsync, count)?,
            (.., Some(count)) => every(SyncCall::Fdatasync, count)?,
            _ => SyncPolicy::AtEnd,
        };
        self.check_writes(key)?;
        Ok(policy)
    }

    fn cache(&self, workload: &Workload) -> Resolved<CachePolicy> {
        let (buffered, cached) = (is_set(self.flags.buffered), is_set(self.flags.cached));
        self.only_one(&[("buffered", buffered), ("cached", cached)])?;
        // A memory mapping always uses the page cache.
        if buffered || (!cached && workload.engine == EngineChoice::Fixed(EngineKind::Mmap)) {
            return Ok(CachePolicy::Buffered);
        }
        if cached {
            return Ok(CachePolicy::Cached);
        }
        let shares = workload.block_mix.iter().chain(&self.flags.other_sizes);
        let sizes = shares.map(|share| share.block_bytes);
        let mut blocks = sizes.chain([workload.block_bytes]);
        match blocks.find(|bytes| u64::from(*bytes) % SECTOR_BYTES != 0) {
            Some(odd) => Err(format!(
                "a block of {odd} bytes is not a multiple of {SECTOR_BYTES}, which direct I/O \
                 needs; use a multiple, or <buffered>"
            )),
            None => Ok(CachePolicy::Direct),
        }
    }

    /// When it ends; by default after `once` bytes, where that is given.
    fn stop(&self, block_bytes: u32, once: Option<u64>) -> Resolved<Stop> {
        let flags = self.flags;
        let block = u64::from(block_bytes);
        let once = once.filter(|_| flags.ops.is_none() && flags.time.is_none());
        let once = once.map(|length| length / block * block);
        let bytes = flags.bytes.map(|bytes| bytes.0).or(once);
        // A search ends when the depth is found. One pass of trims may take hours.
        let searches = flags.latency_target.is_some();
        let is_pass_of_trims =
            self.rw.leaves_no_content() && flags.bytes.is_none() && flags.ops.is_none();
        let counted = (bytes.is_some() || flags.ops.is_some() || searches) && !is_pass_of_trims;
        let (precision, time) = (flags.precision.map(|p| p.0), flags.time.map(|time| time.0));
        let is_open = !counted && time.is_none();
        let stop = Stop {
            precision: precision.or(is_open.then_some(PRECISION_DEFAULT)),
            time_ns: time.or(is_open.then_some(TIME_NS_DEFAULT)),
            bytes,
            ops: flags.ops.map(|ops| ops.0),
        };
        let (key, wrong) = match stop.bytes {
            _ if time == Some(0) => (
                "time",
                "0 measures nothing; use a duration such as 10s".to_owned(),
            ),
            _ if stop.ops == Some(0) => ("ops", "0 measures nothing; use at least 1".to_owned()),
            Some(bytes) if bytes < block => {
                let block = format_bytes(block);
                let wrong = format!(
                    "{bytes} is less than one block of {block}; use more bytes or smaller blocks"
                );
                ("bytes", wrong)
            }
            _ => return Ok(stop),
        };
        Err(format!("<{key}> {wrong}"))
    }

    /// The first pass over a new file has no warm-up: its figure covers all writes of the file.
    fn warmup_ns(&self, workload: &Workload) -> u64 {
        let counted = workload.stop.bytes.is_some() || workload.stop.ops.is_some();
        // A search warms up before each window.
        let target = workload.shape.latency_target;
        let time_ns = target.map_or(workload.stop.time_ns, |target| Some(target.window_ns));
        match (self.flags.warmup, time_ns) {
            (Some(given), _) => given.0,
            (None, Some(time_ns)) if !counted && workload.layout == Layout::Needed => {
                (time_ns / 20).min(SECOND)
            }
            _ => 0,
        }
    }

    fn verify(&self, workload: &Workload) -> Resolved<Verify> {
        let block_bytes = workload.block_bytes;
        let (verifies, writes) = (is_set(self.flags.verify), self.flags.writes());
        match verifies || self.flags.signs_only {
            false => Ok(Verify::Off),
            true if self.rw.leaves_no_content() => Err(
                "<verify> checks what was written, and trims leave no content; remove it, or \
                     use <rw> trimwrite or randtrimwrite",
            ),
            true if !writes && self.context.content == Content::Nothing => Err(
                "<verify> without writes checks the blocks of an earlier run, but a scratch \
                     file is new; name the file or device that was written with <verify>, or use \
                     <rw> write, rw, randwrite or randrw",
            ),
            true if !writes && workload.engine == EngineChoice::Fixed(EngineKind::Mmap) => Err(
                "<verify> checks the data of reads, but a memory mapping makes no reads; use \
                     another engine",
            ),
            true if !workload.block_mix.is_empty()
                || block_bytes < SIGNED_BYTES_MIN
                || !block_bytes.is_multiple_of(SIGNED_BYTES_UNIT) =>
            {
                Err(
                    "<verify> signs every block and needs a single block size of at least 64 \
                     bytes, a multiple of 8; use a size such as <bs> 4k",
                )
            }
            true if verifies => Ok(Verify::Checksum),
            true => Ok(Verify::SignOnly),
        }
        .map_err(str::to_owned)
    }

    /// First byte and length of the span.
    fn extent(&self, block_bytes: u32) -> Resolved<(u64, u64)> {
        resolve_span(self.flags.span, block_bytes, self.context)
    }
}

/// Whether the workload can lay out a new file: it writes the file once from its start, alone, so a
/// growing file is its purpose. Not with periodic syncs of whole blocks, which measure commits, and
/// databases commit to existing files; a log of smaller records, such as etcd's, goes on in new
/// blocks. Not with a memory mapping, which cannot extend a file.
fn lays_out(workload: &Workload) -> bool {
    !workload.reads()
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
