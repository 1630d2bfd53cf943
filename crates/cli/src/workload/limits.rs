//! What a workload depends on besides its flags, and the checks against it: sectors, span, room for
//! blocks, memory. Pure, apart from the memory of this machine.

use super::parsers::{Position, SpanBounds};
use diskproof_device::{host_facts, memory_free_bytes};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, Span, Verify, Workload,
};
use diskproof_model::units::format_bytes;

/// Spans in percent begin and end at multiples of this, which every device and filesystem accepts
/// for direct I/O.
const PAGE_BYTES: u64 = 4096;
/// Buffers may take this fraction of the memory: a measurement must not push out the machine's
/// other work.
const MEMORY_SHARE: u64 = 4;
/// Buffers may take this fraction of the free memory: other processes may need some meanwhile.
const FREE_SHARE: u64 = 2;
/// The journal of a verified workload takes this much per block.
const JOURNAL_ENTRY_BYTES: u64 = 4;

/// The targets and the machine of a run.
#[derive(Debug, Clone)]
pub(crate) struct ResolveContext {
    /// Bytes of each target.
    pub target_bytes: Vec<u64>,
    /// Memory for buffers.
    pub memory: Memory,
    /// Content of the targets when the workload begins.
    pub content: Content,
    /// The I/O engine of the whole run, if one is set.
    pub engine: Option<EngineChoice>,
}

/// Memory in bytes; `None` where it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Memory {
    /// The machine's memory.
    pub installed_bytes: Option<u64>,
    /// Free memory, within the limits of control groups.
    pub free_bytes: Option<u64>,
}

impl Memory {
    /// That of this machine.
    pub(crate) fn of_host() -> Self {
        Self {
            installed_bytes: Some(host_facts().memory_bytes).filter(|bytes| *bytes > 0),
            free_bytes: memory_free_bytes(),
        }
    }
}

/// Content of the targets when a workload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// None: all targets are new scratch files.
    Nothing,
    /// Data.
    Data,
}

/// Whether the user wrote flags or keys. Errors have their names in angle brackets, until
/// [`Wording::of`] replaces them by the form that the user wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// `--depth`
    Flags,
    /// `depth`
    Keys,
}

impl Wording {
    /// A text with the names of flags or keys as the user writes them.
    pub(super) fn of(self, text: &str) -> String {
        let dashes = match self {
            Self::Flags => "--",
            Self::Keys => "",
        };
        text.replace('<', dashes).replace('>', "")
    }
}

/// A resolved value, or why flags or keys contradict each other or the target, and the remedy.
pub(super) type Resolved<T> = Result<T, String>;

/// Why direct I/O with sectors of `unit_bytes` cannot run this workload.
pub(crate) fn sector_mismatch(workload: &Workload, unit_bytes: u32) -> Option<String> {
    if workload.cache != CachePolicy::Direct {
        return None;
    }
    let (start_bytes, unit) = (workload.span.start_bytes, unit_bytes.max(1));
    let why = match workload.block_sizes().find(|bytes| bytes % unit != 0) {
        _ if !start_bytes.is_multiple_of(u64::from(unit)) => {
            format!("cannot start at byte {start_bytes}")
        }
        odd => format!("in blocks of {} bytes is impossible", odd?),
    };
    Some(format!(
        "the device has sectors of {unit_bytes} bytes, so direct I/O {why}"
    ))
}

/// The first byte and the length of a span, which all targets share; all of the smallest target
/// without a span.
pub(super) fn resolve_span(
    span: Option<SpanBounds>,
    block_bytes: u32,
    context: &ResolveContext,
) -> Resolved<(u64, u64)> {
    let sizes = &context.target_bytes;
    let smallest = sizes.iter().copied().min().unwrap_or(0);
    let Some(span) = span else {
        return Ok((0, smallest));
    };
    let is_percent = |position| matches!(position, Position::Percent(_));
    if (is_percent(span.start) || is_percent(span.end)) && sizes.iter().any(|&s| s != smallest) {
        let why = "<span> in percent differs between the targets, because their sizes differ; use \
                   bytes";
        return Err(why.to_owned());
    }
    let start = position_bytes(span.start, smallest, block_bytes);
    let end = position_bytes(span.end, smallest, block_bytes);
    if end > smallest {
        let (end, size) = (format_bytes(end), format_bytes(smallest));
        return Err(format!(
            "<span> ends at {end}, but the target has only {size}; use a smaller span, or a larger \
             --size in a directory"
        ));
    }
    if end <= start {
        return Err("<span> is smaller than one block; use a larger part".to_owned());
    }
    Ok((start, end - start))
}

/// The part of a target that lies within these bounds, at multiples of `unit_bytes`, and is not
/// smaller than `least`.
pub(crate) fn part_of(
    target_bytes: u64,
    bounds: SpanBounds,
    unit_bytes: u64,
    (least_bytes, least): (u64, &str),
) -> Result<Span, String> {
    let at = |position| {
        let byte = position_bytes(position, target_bytes, PAGE_BYTES as u32);
        byte / unit_bytes * unit_bytes
    };
    let (start_bytes, end) = (at(bounds.start), at(bounds.end));
    if end > target_bytes {
        let (end, size) = (format_bytes(end), format_bytes(target_bytes));
        return Err(format!(
            "--span ends at {end}, but the target has only {size}; use a smaller span"
        ));
    }
    if end < start_bytes + least_bytes {
        return Err(format!("--span is smaller than {least}; use a larger part"));
    }
    Ok(Span::new(start_bytes, Some(end - start_bytes)))
}

/// Checks that the buffers of a single workload fit into the memory.
pub(super) fn check_memory(workload: &Workload, context: &ResolveContext) -> Resolved<()> {
    let Some(excess) = memory_excess([workload], context) else {
        return Ok(());
    };
    let (others, span) = match workload.verify {
        Verify::Off => ("", ""),
        Verify::Checksum | Verify::SignOnly => (" and <verify>", " or the <span>"),
    };
    let product = "<jobs> × <depth> × <bs>";
    Err(format!(
        "{product}{others} {excess}; reduce one of them{span}"
    ))
}

/// Checks that a span of `length` bytes has a block for every part of a sequential workload, and
/// for every zone of a random one.
pub(super) fn check_room(workload: &Workload, length: u64) -> Resolved<()> {
    let block = u64::from(workload.block_bytes);
    let parts = match workload.access {
        Access::Sequential => u64::from(workload.workers),
        // Without a queue, each request in flight is a thread with its own part.
        Access::Backward | Access::Stride { .. } => {
            u64::from(workload.workers) * u64::from(workload.depth)
        }
        Access::Random { .. } | Access::Zoned { .. } => 1,
    };
    if length / block < parts {
        let (length, block) = (format_bytes(length), format_bytes(block));
        return Err(match parts {
            1 => format!(
                "the target or its <span> has {length}, less than one block of {block}; use a \
                 smaller block or a larger span"
            ),
            _ => format!(
                "the target or its <span> has {length}, less than {parts} blocks of {block}; use a \
                 larger span, or reduce <jobs> or <depth>"
            ),
        });
    }
    let sizes_percent = match &workload.access {
        Access::Zoned { zones } => zones.iter().map(|zone| zone.size_percent).collect(),
        Access::Random {
            distribution: Distribution::HotCold { size_percent, .. },
        } => vec![*size_percent, 100.0 - size_percent],
        _ => Vec::new(),
    };
    for percent in sizes_percent {
        if length as f64 * percent / 100.0 < block as f64 {
            let (length, block) = (format_bytes(length), format_bytes(block));
            return Err(format!(
                "a zone of {percent} % of {length} is smaller than a block of {block}; use larger \
                 zones or a larger span"
            ));
        }
    }
    Ok(())
}

/// The memory that concurrent workloads need, and the limit, as the end of a sentence; `None` if
/// they fit.
pub(super) fn memory_excess<'a>(
    workloads: impl IntoIterator<Item = &'a Workload>,
    context: &ResolveContext,
) -> Option<String> {
    let bytes = |one| buffer_bytes(one, context) + journal_bytes(one, context);
    let needed: u128 = workloads.into_iter().map(bytes).sum();
    let (all, free) = (context.memory.installed_bytes, context.memory.free_bytes);
    let share = all.map(|bytes| (bytes / MEMORY_SHARE, "a quarter of the memory is"));
    let free = free.map(|bytes| (bytes / FREE_SHARE, "half of the free memory is"));
    let (allowed, what) = share.into_iter().chain(free).min()?;
    (needed > u128::from(allowed)).then(|| {
        let needed = format_bytes(u64::try_from(needed).unwrap_or(u64::MAX));
        let allowed = format_bytes(allowed);
        format!("needs {needed} of buffers, but {what} {allowed}")
    })
}

fn buffer_bytes(workload: &Workload, context: &ResolveContext) -> u128 {
    if workload.leaves_no_content() {
        return 0;
    }
    // In a mix, reads and writes have separate buffers.
    let targets = match workload.target {
        Some(_) => 1,
        None => context.target_bytes.len() as u64,
    };
    let directions = 1 + u64::from(workload.reads() && workload.writes());
    let in_flight = u64::from(workload.depth) * u64::from(workload.workers);
    u128::from(in_flight * u64::from(workload.block_bytes)) * u128::from(directions * targets)
}

fn journal_bytes(workload: &Workload, context: &ResolveContext) -> u128 {
    if workload.verify == Verify::Off || workload.checks_reads() {
        return 0;
    }
    let (length, block) = (
        workload.span.length_bytes,
        u64::from(workload.block_bytes.max(1)),
    );
    let lengths = context
        .target_bytes
        .iter()
        .map(|bytes| length.unwrap_or(*bytes));
    let journals = lengths.map(|length| u128::from(length / block * JOURNAL_ENTRY_BYTES));
    journals.sum()
}

/// A position in bytes; percentages are rounded down to whole blocks and pages.
fn position_bytes(position: Position, target_bytes: u64, block_bytes: u32) -> u64 {
    match position {
        Position::Bytes(bytes) => bytes,
        Position::Percent(share) if share >= 100.0 => target_bytes,
        Position::Percent(share) => {
            let unit = match u64::from(block_bytes) {
                block if PAGE_BYTES.is_multiple_of(block) => PAGE_BYTES,
                block => block,
            };
            (target_bytes as f64 * share / 100.0) as u64 / unit * unit
        }
    }
}
