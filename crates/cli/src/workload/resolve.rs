//! What was said about a workload, and where it will run, become a workload with everything in it;
//! or a sentence that says what contradicts what, and what to do. Pure.

use super::flags::WorkloadFlags;
use super::words::{BlockSize, Bytes, Count, Direction, Order, Part, Position, Rw};
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Span, Start,
    Stop, SyncCall, SyncPolicy, Verify, Workload, Zone,
};
use diskproof_model::units::format_bytes;

/// PostgreSQL's page.
const BLOCK_BYTES_DEFAULT: u32 = 8192;
/// More requests in flight than any device's queues hold.
const DEPTH_MAX: u64 = 4096;
/// More threads than any machine gains from.
const JOBS_MAX: u64 = 1024;
const READ_PERMILLE_DEFAULT: u16 = 500;
/// Relative half-width at which a rate is known well enough, unless the user says when to end.
const PRECISION_DEFAULT: f64 = 0.02;
const SECOND: u64 = 1_000_000_000;
/// Long enough for 2 % on most disks, short enough to be waited for.
const TIME_NS_DEFAULT: u64 = 30 * SECOND;
/// No device has smaller sectors.
const SECTOR_BYTES: u64 = 512;
/// Spans given in percent begin and end at multiples of this, which every device and filesystem
/// takes for direct I/O.
const PAGE_BYTES: u64 = 4096;
/// A block's checksum, place and generation, and the words they are made of.
const SIGNED_BYTES_MIN: u32 = 64;
const SIGNED_BYTES_UNIT: u32 = 8;
/// Share of the memory that may become buffers: the rest belongs to the machine's own work, which a
/// measurement must not push out.
const MEMORY_SHARE: u64 = 4;
/// Share of what is free of it: others may need some meanwhile.
const FREE_SHARE: u64 = 2;
/// What is noted of each block that a verified workload may write.
const NOTE_BYTES: u64 = 4;

/// Where a workload will run, as far as it depends on that.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Bytes that each target offers.
    pub target_bytes: Vec<u64>,
    /// What there is to take buffers from.
    pub memory: Memory,
    /// What the targets hold when the workload begins.
    pub content: Content,
    /// The kernel interface for the whole run, where there is one.
    pub engine: Option<EngineChoice>,
}

/// Memory in bytes, where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// The machine's.
    pub installed_bytes: Option<u64>,
    /// What is free of it, and what control groups leave of that.
    pub free_bytes: Option<u64>,
}

/// What the targets hold when a workload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing: all of them are new scratch files.
    Nothing,
    /// Data.
    Data,
}

/// How the user said it, so that an answer can use the same words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// `--depth`
    Flags,
    /// `depth`
    Keys,
}

impl Wording {
    /// A key as the user writes it.
    pub fn name(self, key: &str) -> String {
        match self {
            Self::Flags => format!("--{key}"),
            Self::Keys => key.to_owned(),
        }
    }
}

/// Words that do not fit together, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(pub String);

/// Makes the workload.
pub fn resolve(
    flags: &WorkloadFlags,
    ground: &Ground,
    wording: Wording,
) -> Result<Workload, Contradiction> {
    Resolution {
        flags,
        ground,
        wording,
        rw: flags.rw.unwrap_or(Rw::RANDREAD),
    }
    .workload()
}

/// Why direct I/O in units of `unit_bytes` cannot do this workload.
pub fn misfit(workload: &Workload, unit_bytes: u32) -> Option<String> {
    let start_bytes = workload.span.start_bytes;
    if workload.cache == CachePolicy::Direct
        && !start_bytes.is_multiple_of(u64::from(unit_bytes.max(1)))
    {
        return Some(format!(
            "the device's sectors have {unit_bytes} bytes, so direct I/O from {start_bytes} bytes \
             on is impossible"
        ));
    }
    let mix = workload
        .block_mix
        .iter()
        .map(|share| share.block_bytes)
        .chain([workload.block_bytes]);
    let odd = mix
        .filter(|_| workload.cache == CachePolicy::Direct)
        .find(|bytes| bytes % unit_bytes.max(1) != 0)?;
    Some(format!(
        "the device's sectors have {unit_bytes} bytes, so direct I/O in blocks of {odd} is \
         impossible"
    ))
}

struct Resolution<'a> {
    flags: &'a WorkloadFlags,
    ground: &'a Ground,
    wording: Wording,
    rw: Rw,
}

type Resolved<T> = Result<T, Contradiction>;

fn no<T>(text: String) -> Resolved<T> {
    Err(Contradiction(text))
}

fn said(flag: Option<bool>) -> bool {
    flag == Some(true)
}

impl Resolution<'_> {
    fn workload(&self) -> Resolved<Workload> {
        let flags = self.flags;
        let (block_bytes, block_mix) = self.blocks()?;
        let (depth, workers) = (
            self.count("depth", flags.depth, DEPTH_MAX)?,
            self.count("jobs", flags.jobs, JOBS_MAX)?,
        );
        let engine = self
            .ground
            .engine
            .or(flags.engine.map(EngineChoice::from))
            .unwrap_or(EngineChoice::Auto);
        let cache = self.cache(block_bytes, &block_mix, engine)?;
        let (span, sync, stop) = (
            self.span(block_bytes)?,
            self.sync()?,
            self.stop(block_bytes)?,
        );
        let verify = self.verify(block_bytes, &block_mix)?;
        let mut workload = Workload {
            name: flags
                .name
                .as_ref()
                .map_or(self.rw.as_str(), |name| &name.0)
                .to_owned(),
            start: if said(flags.together) {
                Start::WithPrevious
            } else {
                Start::AfterPrevious
            },
            read_permille: self.read_permille()?,
            access: self.access(block_bytes)?,
            block_bytes,
            block_mix,
            depth,
            workers,
            span,
            stop,
            warmup_ns: 0,
            rate: self.flags.rate.map(|rate| rate.0),
            sync,
            cache,
            engine,
            layout: Layout::Needed,
            verify,
        };
        if self.ground.content == Content::Nothing && lays_out(&workload) {
            workload.layout = Layout::Provides;
        }
        workload.warmup_ns = self.warmup_ns(&workload);
        self.check_memory(&workload)?;
        self.check_room(&workload)?;
        Ok(workload)
    }

    fn name(&self, key: &str) -> String {
        self.wording.name(key)
    }

    fn read_permille(&self) -> Resolved<u16> {
        match (self.rw.direction, self.flags.rwmixread) {
            (Direction::Mixed, share) => Ok(share.map_or(READ_PERMILLE_DEFAULT, |share| share.0)),
            (_, Some(_)) => no(format!(
                "{} needs reads and writes: use {} rw or randrw",
                self.name("rwmixread"),
                self.name("rw")
            )),
            (Direction::Read, None) => Ok(1000),
            (Direction::Write, None) => Ok(0),
        }
    }

    /// The largest block, and the mix where there is one.
    fn blocks(&self) -> Resolved<(u32, Vec<BlockShare>)> {
        match (self.flags.bs, &self.flags.bssplit) {
            (Some(_), Some(_)) => no(format!(
                "{} and {}: a block has one size or a mix of sizes; use one of them",
                self.name("bs"),
                self.name("bssplit")
            )),
            (bs, None) => Ok((
                bs.map_or(BLOCK_BYTES_DEFAULT, |BlockSize(bytes)| bytes),
                Vec::new(),
            )),
            (None, Some(split)) => match split.0.as_slice() {
                [only] => Ok((only.block_bytes, Vec::new())),
                mix => Ok((
                    mix.iter()
                        .map(|share| share.block_bytes)
                        .max()
                        .unwrap_or(BLOCK_BYTES_DEFAULT),
                    mix.to_vec(),
                )),
            },
        }
    }

    fn count(&self, key: &str, given: Option<Count>, max: u64) -> Resolved<u32> {
        match given.map_or(1, |count| count.0) {
            0 => no(format!(
                "{} 0 starts nothing; use 1 to {max}",
                self.name(key)
            )),
            count if count > max => no(format!(
                "{} {count} is too much; use 1 to {max}",
                self.name(key)
            )),
            count => Ok(count as u32),
        }
    }

    fn access(&self, block_bytes: u32) -> Resolved<Access> {
        let flags = self.flags;
        let given = [
            ("zones", flags.zones.is_some()),
            ("distribution", flags.distribution.is_some()),
            ("backward", said(flags.backward)),
            ("stride", flags.stride.is_some()),
        ];
        let given: Vec<&str> = given
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(key, _)| key)
            .collect();
        let needs = |key: &str, order: &str, words: &str| {
            let (key, rw) = (self.name(key), self.name("rw"));
            no(format!(
                "{key} needs {order} operations, and {rw} is {}: use {rw} {words}, or leave {key} \
                 out",
                self.rw.as_str()
            ))
        };
        match (self.rw.order, given.as_slice()) {
            (Order::Random, [key @ ("backward" | "stride"), ..]) => {
                needs(key, "sequential", "read, write or rw")
            }
            (Order::Sequential, [key @ ("zones" | "distribution"), ..]) => {
                needs(key, "random", "randread, randwrite or randrw")
            }
            (_, [one, other, ..]) => no(format!(
                "{} and {} exclude each other: use one of them",
                self.name(one),
                self.name(other)
            )),
            (Order::Sequential, ["backward" | "stride"]) if flags.bssplit.is_some() => no(format!(
                "{} goes from block to block of one size: use {} instead of {}",
                self.name(given[0]),
                self.name("bs"),
                self.name("bssplit")
            )),
            (Order::Sequential, ["backward"]) => Ok(Access::Backward),
            (Order::Sequential, _) => match flags.stride {
                Some(Bytes(stride_bytes)) => self.stride(stride_bytes, block_bytes),
                None => Ok(Access::Sequential),
            },
            (Order::Random, _) => Ok(match &flags.zones {
                Some(zones) => Access::Zoned {
                    zones: zones.0.clone(),
                },
                None => Access::Random {
                    distribution: flags
                        .distribution
                        .map_or(Distribution::Uniform, |law| law.0),
                },
            }),
        }
    }

    fn stride(&self, stride_bytes: u64, block_bytes: u32) -> Resolved<Access> {
        let (key, block) = (self.name("stride"), u64::from(block_bytes));
        if stride_bytes == 0 || !stride_bytes.is_multiple_of(block) {
            return no(format!(
                "{key} {stride_bytes} is not a multiple of the block, {block_bytes} bytes: use a \
                 multiple of it"
            ));
        }
        let (_, length) = self.extent(block_bytes)?;
        if stride_bytes > length {
            return no(format!(
                "{key} of {} leaves a span of {}: use a smaller step or a larger span",
                format_bytes(stride_bytes),
                format_bytes(length)
            ));
        }
        Ok(Access::Stride { stride_bytes })
    }

    fn sync(&self) -> Resolved<SyncPolicy> {
        let flags = self.flags;
        let every = |call, count: Count| (call, count.0);
        let syncs = [
            flags.fsync.map(|n| every(SyncCall::Fsync, n)),
            flags.fdatasync.map(|n| every(SyncCall::Fdatasync, n)),
        ];
        let (fsync, fdatasync, end) = (
            self.name("fsync"),
            self.name("fdatasync"),
            self.name("end-fsync"),
        );
        let policy = match (syncs, said(flags.end_fsync)) {
            ([Some(_), Some(_)], _) => {
                return no(format!(
                    "{fsync} and {fdatasync} exclude each other: use one of them, or two runs"
                ));
            }
            ([Some(_), None] | [None, Some(_)], true) => {
                return no(format!(
                    "{end} beside {fsync} or {fdatasync} adds nothing that counts: use one of them"
                ));
            }
            ([None, None], true) => SyncPolicy::AtEnd,
            ([None, None], false) => return Ok(SyncPolicy::None),
            ([Some((call, writes)), None] | [None, Some((call, writes))], false) => {
                match u32::try_from(writes) {
                    Ok(0) | Err(_) => {
                        return no(format!(
                            "{fsync} and {fdatasync} count writes: use 1 to sync after each write"
                        ));
                    }
                    Ok(writes) => SyncPolicy::Every { writes, call },
                }
            }
        };
        if self.flags.writes() {
            return Ok(policy);
        }
        no(format!(
            "{fsync}, {fdatasync} and {end} make writes durable, and this workload only reads: \
             use a writing {}",
            self.name("rw")
        ))
    }

    fn cache(
        &self,
        block_bytes: u32,
        mix: &[BlockShare],
        engine: EngineChoice,
    ) -> Resolved<CachePolicy> {
        let (buffered, cached) = (self.name("buffered"), self.name("cached"));
        match (said(self.flags.buffered), said(self.flags.cached)) {
            (true, true) => {
                return no(format!(
                    "{buffered} and {cached} exclude each other: use one of them"
                ));
            }
            (true, false) => return Ok(CachePolicy::Buffered),
            (false, true) => return Ok(CachePolicy::Cached),
            // A memory mapping is the page cache.
            (false, false) if engine == EngineChoice::Fixed(EngineKind::Mmap) => {
                return Ok(CachePolicy::Buffered);
            }
            (false, false) => {}
        }
        let mut blocks = mix
            .iter()
            .map(|share| share.block_bytes)
            .chain([block_bytes]);
        match blocks.find(|bytes| u64::from(*bytes) % SECTOR_BYTES != 0) {
            Some(odd) => no(format!(
                "a block of {odd} bytes is no multiple of {SECTOR_BYTES}, which direct I/O needs: \
                 use a multiple, or {buffered}"
            )),
            None => Ok(CachePolicy::Direct),
        }
    }

    fn stop(&self, block_bytes: u32) -> Resolved<Stop> {
        let flags = self.flags;
        let counted = flags.bytes.is_some() || flags.ops.is_some();
        let stop = Stop {
            precision: flags
                .precision
                .map(|p| p.0)
                .or((!counted && flags.time.is_none()).then_some(PRECISION_DEFAULT)),
            time_ns: flags
                .time
                .map(|time| time.0)
                .or((!counted).then_some(TIME_NS_DEFAULT)),
            bytes: flags.bytes.map(|bytes| bytes.0),
            ops: flags.ops.map(|ops| ops.0),
        };
        if stop.time_ns == Some(0) {
            return no(format!(
                "{} 0 measures nothing: use such as 10s",
                self.name("time")
            ));
        }
        if stop.ops == Some(0) {
            return no(format!(
                "{} 0 does nothing: use at least 1",
                self.name("ops")
            ));
        }
        match stop.bytes {
            Some(bytes) if bytes < u64::from(block_bytes) => {
                let (key, block) = (self.name("bytes"), format_bytes(u64::from(block_bytes)));
                no(format!(
                    "{key} {bytes} is less than one block of {block}: use more bytes or smaller \
                     blocks"
                ))
            }
            _ => Ok(stop),
        }
    }

    /// The first pass over a new file has no warm-up: what it writes then would be missing in the
    /// figure that it is measured for.
    fn warmup_ns(&self, workload: &Workload) -> u64 {
        let counted = workload.stop.bytes.is_some() || workload.stop.ops.is_some();
        match (self.flags.warmup, workload.stop.time_ns) {
            (Some(given), _) => given.0,
            (None, Some(time_ns)) if !counted && workload.layout == Layout::Needed => {
                (time_ns / 20).min(SECOND)
            }
            _ => 0,
        }
    }

    fn verify(&self, block_bytes: u32, block_mix: &[BlockShare]) -> Resolved<Verify> {
        let (key, rw) = (self.name("verify"), self.name("rw"));
        match said(self.flags.verify) {
            false => Ok(Verify::Off),
            true if !self.flags.writes() => no(format!(
                "{key} reads back what the workload wrote, and this one only reads: use a writing \
                 {rw}"
            )),
            true if !block_mix.is_empty()
                || block_bytes < SIGNED_BYTES_MIN
                || !block_bytes.is_multiple_of(SIGNED_BYTES_UNIT) =>
            {
                no(format!(
                    "{key} signs every block, which needs one size of at least 64 bytes, a \
                     multiple of 8: use such as {} 4k",
                    self.name("bs")
                ))
            }
            true => Ok(Verify::Checksum),
        }
    }

    fn span(&self, block_bytes: u32) -> Resolved<Span> {
        let (start_bytes, length) = self.extent(block_bytes)?;
        Ok(Span {
            start_bytes,
            length_bytes: self.flags.span.is_some().then_some(length),
        })
    }

    /// First byte and length of the part that every target has.
    fn extent(&self, block_bytes: u32) -> Resolved<(u64, u64)> {
        let sizes = &self.ground.target_bytes;
        let smallest = sizes.iter().copied().min().unwrap_or(0);
        let Some(part) = self.flags.span else {
            return Ok((0, smallest));
        };
        let key = self.name("span");
        if matches!(
            part,
            Part {
                start: Position::Percent(_),
                ..
            } | Part {
                end: Position::Percent(_),
                ..
            }
        ) && sizes.iter().any(|size| *size != smallest)
        {
            return no(format!(
                "{key} in percent means another span on each target, because their sizes differ: \
                 use bytes"
            ));
        }
        let (start, end) = (
            place(part.start, smallest, block_bytes),
            place(part.end, smallest, block_bytes),
        );
        if end > smallest {
            let (end, size) = (format_bytes(end), format_bytes(smallest));
            return no(format!(
                "{key} ends at {end}, and the target has only {size}: use a smaller span, or a \
                 larger --size in a directory"
            ));
        }
        if end <= start {
            return no(format!(
                "{key} holds less than one block: use a larger part"
            ));
        }
        Ok((start, end - start))
    }

    fn check_memory(&self, workload: &Workload) -> Resolved<()> {
        let Some(too_much) = too_much_memory([workload], self.ground) else {
            return Ok(());
        };
        let (jobs, depth, bs) = (self.name("jobs"), self.name("depth"), self.name("bs"));
        no(match workload.verify {
            Verify::Off => format!("{jobs} × {depth} × {bs} {too_much}: make one of them smaller"),
            Verify::Checksum => {
                let (verify, span) = (self.name("verify"), self.name("span"));
                format!(
                    "{jobs} × {depth} × {bs} and {verify} {too_much}: make one of them or the \
                     {span} smaller"
                )
            }
        })
    }

    /// Every part of an ordered walk, and every zone, holds a block.
    fn check_room(&self, workload: &Workload) -> Resolved<()> {
        let (_, length) = self.extent(workload.block_bytes)?;
        let block = u64::from(workload.block_bytes);
        let parts = match workload.access {
            Access::Sequential => u64::from(workload.workers),
            // Without a queue each request in flight is a thread with a part of its own.
            Access::Backward | Access::Stride { .. } => {
                u64::from(workload.workers) * u64::from(workload.depth)
            }
            Access::Random { .. } | Access::Zoned { .. } => 1,
        };
        if length / block < parts {
            let (key, length, block) =
                (self.name("span"), format_bytes(length), format_bytes(block));
            return no(match parts {
                1 => format!(
                    "the target or its {key} has {length}, less than one block of {block}: use a \
                     smaller block or a larger span"
                ),
                _ => format!(
                    "the target or its {key} has {length}, less than {parts} parts of one block \
                     of {block}: use a larger span or less of {} and {}",
                    self.name("jobs"),
                    self.name("depth")
                ),
            });
        }
        let hot = |access_percent: f64, size_percent: f64| Zone {
            access_percent,
            size_percent,
        };
        let zones = match &workload.access {
            Access::Zoned { zones } => zones.clone(),
            Access::Random {
                distribution:
                    Distribution::HotCold {
                        access_percent,
                        size_percent,
                    },
            } => {
                vec![
                    hot(*access_percent, *size_percent),
                    hot(100.0 - access_percent, 100.0 - size_percent),
                ]
            }
            _ => Vec::new(),
        };
        match zones
            .iter()
            .find(|zone| (length as f64 * zone.size_percent / 100.0) < block as f64)
        {
            Some(zone) => no(format!(
                "a zone of {} % of {} holds no block of {}: use larger zones or a larger span",
                zone.size_percent,
                format_bytes(length),
                format_bytes(block)
            )),
            None => Ok(()),
        }
    }
}

/// What workloads need of memory at the same time, and how much they may have, as the end of a
/// sentence; where that is less.
pub fn too_much_memory<'a>(
    workloads: impl IntoIterator<Item = &'a Workload>,
    ground: &Ground,
) -> Option<String> {
    let needed: u128 = workloads
        .into_iter()
        .map(|workload| buffer_bytes(workload, ground) + note_bytes(workload, ground))
        .sum();
    let Memory {
        installed_bytes,
        free_bytes,
    } = ground.memory;
    let share = installed_bytes.map(|bytes| (bytes / MEMORY_SHARE, "a quarter of the memory is"));
    let free =
        free_bytes.map(|bytes| (bytes / FREE_SHARE, "half of the memory that is free now is"));
    let (allowed, what) = share.into_iter().chain(free).min()?;
    (needed > u128::from(allowed)).then(|| {
        let (needed, allowed) = (
            format_bytes(u64::try_from(needed).unwrap_or(u64::MAX)),
            format_bytes(allowed),
        );
        format!("needs {needed} of buffers, and {what} {allowed}")
    })
}

fn buffer_bytes(workload: &Workload, ground: &Ground) -> u128 {
    // Reads and writes of a mix have buffers of their own.
    let directions = 1 + u64::from(workload.reads() && workload.writes());
    let in_flight = u64::from(workload.depth) * u64::from(workload.workers);
    u128::from(in_flight * u64::from(workload.block_bytes))
        * u128::from(directions * ground.target_bytes.len() as u64)
}

fn note_bytes(workload: &Workload, ground: &Ground) -> u128 {
    if workload.verify == Verify::Off {
        return 0;
    }
    let blocks = |target_bytes: &u64| {
        workload.span.length_bytes.unwrap_or(*target_bytes) / u64::from(workload.block_bytes.max(1))
    };
    ground
        .target_bytes
        .iter()
        .map(|target_bytes| u128::from(blocks(target_bytes) * NOTE_BYTES))
        .sum()
}

/// A workload that fills a new file from its start, once through, by itself: a file that grows
/// under it is what such a workload means. One that syncs its writes is about commits instead, and
/// databases commit to files that exist; a memory mapping cannot make a file grow.
fn lays_out(workload: &Workload) -> bool {
    !workload.reads()
        && workload.access == Access::Sequential
        && workload.workers == 1
        && workload.span == Span::default()
        && matches!(workload.sync, SyncPolicy::None | SyncPolicy::AtEnd)
        && workload.engine != EngineChoice::Fixed(EngineKind::Mmap)
}

/// A position in bytes; percents are rounded down to whole blocks and pages.
pub fn place(position: Position, target_bytes: u64, block_bytes: u32) -> u64 {
    match position {
        Position::Bytes(bytes) => bytes,
        Position::Percent(share) if share >= 100.0 => target_bytes,
        Position::Percent(share) => {
            let block = u64::from(block_bytes);
            let unit = if PAGE_BYTES.is_multiple_of(block) {
                PAGE_BYTES
            } else {
                block
            };
            (target_bytes as f64 * share / 100.0) as u64 / unit * unit
        }
    }
}

#[cfg(test)]
mod tests;
