//! Checks a workload against the targets and the machine that it depends on: sectors, span, room
//! for blocks, memory. Pure, apart from the memory of this machine.

use super::parsers::{Position, SpanBounds};
use diskproof_device::{host_facts, memory_free_bytes};
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineChoice, Span, Verify, Workload,
};
use diskproof_model::units::format_bytes;

/// Spans in percent begin and end at multiples of this, which every device and filesystem accepts
/// for direct I/O.
const PAGE_BYTES: u64 = 4096;
/// Buffers may take a quarter of the memory: a measurement must not push out the machine's other
/// work.
const MEMORY_DIVISOR: u64 = 4;
/// Buffers may take half of the free memory: other processes may need some meanwhile.
const FREE_MEMORY_DIVISOR: u64 = 2;
/// The journal of a verified workload takes this much per block, as the engine's journal of written
/// blocks does.
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

impl ResolveContext {
    /// The context of a workload that runs on the target with this index only; on all without one.
    pub(super) fn for_target(&self, target: Option<usize>) -> Self {
        let mut own = self.clone();
        if let Some(target) = target
            && let Some(bytes) = self.target_bytes.get(target)
        {
            own.target_bytes = vec![*bytes];
        }
        own
    }
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
    /// The memory of this machine.
    pub(crate) fn of_host() -> Self {
        Self {
            installed_bytes: Some(host_facts().memory_bytes).filter(|bytes| *bytes > 0),
            free_bytes: memory_free_bytes(),
        }
    }

    /// The most that buffers may take; `None` where the memory is unknown.
    fn buffer_limit(&self) -> Option<BufferLimit> {
        let quarter = self.installed_bytes.map(|bytes| BufferLimit {
            bytes: bytes / MEMORY_DIVISOR,
            name: "a quarter of the memory",
        });
        let half = self.free_bytes.map(|bytes| BufferLimit {
            bytes: bytes / FREE_MEMORY_DIVISOR,
            name: "half of the free memory",
        });
        match (quarter, half) {
            (Some(quarter), Some(half)) if half.bytes < quarter.bytes => Some(half),
            (None, half) => half,
            (quarter, _) => quarter,
        }
    }
}

/// The most memory that buffers may take.
struct BufferLimit {
    bytes: u64,
    /// The limit in words.
    name: &'static str,
}

/// Content of the targets when a workload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is none: all targets are new scratch files.
    Nothing,
    /// Data of an earlier workload, or of the user.
    Data,
}

/// The form in which the user wrote options. Errors have their names in angle brackets, until
/// [`Wording::apply`] replaces them by the form that the user wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// `--depth`
    Flags,
    /// `depth`
    Keys,
}

impl Wording {
    /// A text with the names of flags or keys as the user writes them.
    pub(super) fn apply(self, text: &str) -> String {
        let dashes = match self {
            Self::Flags => "--",
            Self::Keys => "",
        };
        text.replace('<', dashes).replace('>', "")
    }
}

/// Why flags or keys contradict each other or the target, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlagsError(String);

impl FlagsError {
    /// The text with the names of flags or keys as the user wrote them.
    pub(crate) fn text(&self, wording: Wording) -> String {
        wording.apply(&self.0)
    }
}

impl From<String> for FlagsError {
    fn from(with_brackets: String) -> Self {
        Self(with_brackets)
    }
}

/// A resolved value, or why flags or keys contradict each other or the target, and the remedy.
pub(super) type Resolved<T> = Result<T, String>;

/// Why direct I/O with sectors of `unit_bytes` cannot run this workload.
pub(crate) fn sector_mismatch(workload: &Workload, unit_bytes: u32) -> Option<String> {
    if workload.cache != CachePolicy::Direct {
        return None;
    }
    let start_bytes = workload.span.start_bytes;
    let unit = unit_bytes.max(1);
    let why = if start_bytes.is_multiple_of(u64::from(unit)) {
        let odd = workload
            .block_sizes()
            .find(|bytes| !bytes.is_multiple_of(unit))?;
        format!("in blocks of {odd} bytes is impossible")
    } else {
        format!("cannot start at byte {start_bytes}")
    };
    Some(format!(
        "the device has sectors of {unit_bytes} bytes, so direct I/O {why}"
    ))
}

/// As [`sector_mismatch`], with the flags that help.
pub(crate) fn sector_error(workload: &Workload, unit_bytes: u32) -> Option<String> {
    let why = sector_mismatch(workload, unit_bytes)?;
    Some(format!(
        "{why}; use a multiple of {unit_bytes} for --bs and --span, or --buffered"
    ))
}

/// A part of a target, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub start_bytes: u64,
    pub length_bytes: u64,
}

/// The part that a span is of all targets; all of the smallest target without a span.
pub(super) fn resolve_span(
    span: Option<SpanBounds>,
    block_bytes: u32,
    context: &ResolveContext,
) -> Resolved<Extent> {
    let sizes = &context.target_bytes;
    let smallest = sizes.iter().copied().min().unwrap_or(0);
    let Some(span) = span else {
        return Ok(Extent {
            start_bytes: 0,
            length_bytes: smallest,
        });
    };
    if span.has_percent() && sizes.iter().any(|size| *size != smallest) {
        let why = "<span> in percent differs between the targets, because their sizes differ; use \
                   bytes";
        return Err(why.to_owned());
    }
    let start = position_bytes(span.start, smallest, block_bytes);
    let end = position_bytes(span.end, smallest, block_bytes);
    if end > smallest {
        return Err(format!(
            "<span> ends at {}, but the target has only {}; use a smaller span, or a larger \
             --size in a directory",
            format_bytes(end),
            format_bytes(smallest)
        ));
    }
    if end <= start {
        return Err("<span> is smaller than one block; use a larger part".to_owned());
    }
    Ok(Extent {
        start_bytes: start,
        length_bytes: end - start,
    })
}

/// The part of a target that lies within these bounds, at multiples of `unit_bytes`, and has at
/// least `least_bytes`, which an error names as `least`.
pub(crate) fn part_of(
    target_bytes: u64,
    bounds: SpanBounds,
    unit_bytes: u64,
    least_bytes: u64,
    least: &str,
) -> Result<Span, String> {
    let start = position_bytes(bounds.start, target_bytes, PAGE_BYTES as u32);
    let end = position_bytes(bounds.end, target_bytes, PAGE_BYTES as u32);
    let whole_start = start / unit_bytes * unit_bytes;
    let whole_end = end / unit_bytes * unit_bytes;
    if whole_end > target_bytes {
        return Err(format!(
            "--span ends at {}, but the target has only {}; use a smaller span",
            format_bytes(whole_end),
            format_bytes(target_bytes)
        ));
    }
    if whole_end < whole_start + least_bytes {
        return Err(format!("--span is smaller than {least}; use a larger part"));
    }
    Ok(Span::new(whole_start, Some(whole_end - whole_start)))
}

/// Checks that the buffers of a single workload fit into the memory.
pub(super) fn check_memory(workload: &Workload, context: &ResolveContext) -> Resolved<()> {
    let Some(excess) = memory_excess([workload], context) else {
        return Ok(());
    };
    Err(match workload.verify {
        Verify::Off => format!("<jobs> × <depth> × <bs> {excess}; reduce one of them"),
        Verify::Checksum | Verify::SignOnly => format!(
            "<jobs> × <depth> × <bs> and <verify> {excess}; reduce one of them or the <span>"
        ),
    })
}

/// Checks that a span of `length` bytes has a block for every part of a sequential workload, and
/// for every zone of a random one.
pub(super) fn check_room(workload: &Workload, length: u64) -> Resolved<()> {
    let block_bytes = u64::from(workload.block_bytes);
    let parts = match workload.access {
        Access::Sequential => u64::from(workload.workers),
        // Without a queue, each request in flight is a thread with its own part.
        Access::Backward | Access::Stride { .. } => workload.total_depth(),
        Access::Random { .. } | Access::Zoned { .. } => 1,
    };
    let size = format_bytes(length);
    let block = format_bytes(block_bytes);
    if length == 0 {
        let why = "the target has 0 bytes, so there is nothing to read; name another target";
        return Err(why.to_owned());
    }
    if length / block_bytes < parts {
        return Err(match parts {
            1 => format!(
                "the target or its <span> has {size}, less than one block of {block}; use a \
                 smaller block or a larger span"
            ),
            _ => format!(
                "the target or its <span> has {size}, less than {parts} blocks of {block}; use a \
                 larger span, or reduce <jobs> or <depth>"
            ),
        });
    }
    for percent in zone_sizes_percent(&workload.access) {
        if length as f64 * percent / 100.0 < block_bytes as f64 {
            return Err(format!(
                "a zone of {percent} % of {size} is smaller than a block of {block}; use larger \
                 zones or a larger span"
            ));
        }
    }
    Ok(())
}

fn zone_sizes_percent(access: &Access) -> Vec<f64> {
    match access {
        Access::Zoned { zones } => zones.iter().map(|zone| zone.size_percent).collect(),
        Access::Random {
            distribution: Distribution::HotCold { size_percent, .. },
        } => vec![*size_percent, 100.0 - size_percent],
        _ => Vec::new(),
    }
}

/// The memory that concurrent workloads need, and the limit, as the end of a sentence; `None` if
/// they fit.
pub(super) fn memory_excess<'a>(
    workloads: impl IntoIterator<Item = &'a Workload>,
    context: &ResolveContext,
) -> Option<String> {
    let mut needed_bytes = 0;
    for workload in workloads {
        needed_bytes += buffer_bytes(workload, context) + journal_bytes(workload, context);
    }
    let limit = context.memory.buffer_limit()?;
    if needed_bytes <= u128::from(limit.bytes) {
        return None;
    }
    let needed = format_bytes(u64::try_from(needed_bytes).unwrap_or(u64::MAX));
    let allowed = format_bytes(limit.bytes);
    let name = limit.name;
    Some(format!(
        "needs {needed} of buffers, but {name} is {allowed}"
    ))
}

/// The memory of a workload's requests in flight.
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
    let in_flight = workload.total_depth();
    u128::from(in_flight * u64::from(workload.block_bytes)) * u128::from(directions * targets)
}

/// The memory of the journal in which a verified workload notes its writes.
fn journal_bytes(workload: &Workload, context: &ResolveContext) -> u128 {
    if workload.verify == Verify::Off || workload.checks_reads() {
        return 0;
    }
    let block_bytes = u64::from(workload.block_bytes.max(1));
    let mut journals_bytes = 0;
    for target_bytes in &context.target_bytes {
        let span_bytes = workload.span.length_bytes.unwrap_or(*target_bytes);
        journals_bytes += u128::from(span_bytes / block_bytes * JOURNAL_ENTRY_BYTES);
    }
    journals_bytes
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
