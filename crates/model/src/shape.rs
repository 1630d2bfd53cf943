//! What shapes the load of a few workloads: alignment, pauses, spacing of starts, a latency that
//! most requests must meet, limits that end it. Everything here is absent from a plain workload.

use crate::op::OpKind;
use crate::units::{format_bytes, format_duration, format_latency};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// One block size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockShare {
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Weight among the mix.
    pub weight: u32,
}

impl BlockShare {
    /// This size with this weight.
    pub const fn new(block_bytes: u32, weight: u32) -> Self {
        Self {
            block_bytes,
            weight,
        }
    }
}

/// The rarely used part of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadShape {
    /// Random offsets are multiples of this; without it of the smallest block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u32>,
    /// How many operations share a random offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_run: Option<RandomRun>,
    /// Each worker visits every block once before it visits one again, where offsets are uniformly
    /// random. With several block sizes it shortens those that reach a visited block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_block_once: bool,
    /// How the starts of an open loop are spaced.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub arrivals: Arrivals,
    /// Pauses between operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkTime>,
    /// How long after the others of its group it starts, in nanoseconds.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub start_delay_ns: u64,
    /// A longer latency ends the workload as failed, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_limit_ns: Option<u64>,
    /// The workload ends when a start of its open loop has been due for so long, in nanoseconds:
    /// more is offered than the target serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload_ns: Option<u64>,
    /// A lower rate ends the workload as failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_floors: Vec<RateFloor>,
    /// What is written; `None`: new random data each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<WriteContent>,
    /// It ends once its rate is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyEnd>,
    /// Its share of the operations of the workloads that run together with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowShare>,
    /// How its threads are scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<ThreadScheduling>,
    /// Sequential operations go through parts of the span, and skip what is between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_stride: Option<ZoneStride>,
    /// Its depth is one of those at which a latency may be kept to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
    /// Kinds of operation that go upwards, block after block, where the others of the mix are
    /// random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_order: Vec<OpKind>,
    /// Operations of a mix alternate in proportion to their shares, instead of at random.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_mix: bool,
    /// A limit of operations counts those after the warm-up only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ops_after_warmup: bool,
    /// How the target is opened, where syncs follow writes that are durable already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_with: Option<WriteFlag>,
    /// What each verified block holds in place of a checksum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_content: Option<BlockPattern>,
    /// How often its verified blocks are read back at the end, where that is more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_times: Option<u32>,
    /// Its buffers lie in ordinary pages, as those of the tool that it stands for; otherwise in
    /// huge pages where the kernel has them, which large requests gain by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordinary_pages: bool,
}

/// Bytes that repeat through a block, from its start on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BlockPattern {
    /// The bytes, 1 to 512.
    #[serde(deserialize_with = "read_pattern")]
    pub bytes: Vec<u8>,
    /// Where in them the offset of the block stands, in eight bytes of which the first is the
    /// lowest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offset_places: Vec<usize>,
}

/// The most bytes of a pattern, as in fio.
pub const PATTERN_BYTES_MAX: usize = 512;

fn read_pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let bytes: Vec<u8> = Vec::deserialize(deserializer)?;
    if bytes.is_empty() || bytes.len() > PATTERN_BYTES_MAX {
        return Err(D::Error::custom(format!(
            "a pattern has 1 to {PATTERN_BYTES_MAX} bytes, not {}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

impl BlockPattern {
    /// The bytes for a block at this offset.
    fn bytes_at(&self, offset: u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for place in &self.offset_places {
            if let Some(part) = bytes.get_mut(*place..place.saturating_add(8)) {
                part.copy_from_slice(&offset.to_le_bytes());
            }
        }
        bytes
    }

    /// Fills a block that belongs to this offset.
    pub fn fill(&self, block: &mut [u8], offset: u64) {
        let bytes = self.bytes_at(offset);
        for part in block.chunks_mut(bytes.len().max(1)) {
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }

    /// The first difference of a block that belongs to this offset, in words; `None` where it has
    /// the pattern.
    pub fn difference(&self, block: &[u8], offset: u64) -> Option<String> {
        let wanted = self.bytes_at(offset);
        let pairs = block.iter().zip(wanted.iter().cycle()).enumerate();
        for (place, (found, wanted)) in pairs {
            if found != wanted {
                return Some(format!(
                    "byte {place} is 0x{found:02x} instead of 0x{wanted:02x}"
                ));
            }
        }
        None
    }
}

/// A share of the operations that several workloads start together: each starts no more than its
/// share of those so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowShare {
    /// Number of the flow: workloads with the same number have shares of one another.
    pub number: u32,
    /// The weight of each worker.
    pub weight: u32,
    /// How long a worker that is ahead pauses once nothing is in flight, in nanoseconds; with 0 it
    /// goes on as soon as it is not ahead any more.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub pause_ns: u64,
}

/// When a rate or the mean latency counts as steady, which ends each worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyEnd {
    /// The rate, or the latency.
    pub figure: SteadyFigure,
    /// What is compared with the limit.
    pub test: SteadyTest,
    /// The limit: of the rate per second, of the latency in nanoseconds, or in percent of the mean.
    pub limit: f64,
    /// Whether the limit is in percent.
    pub is_percent: bool,
    /// The newest rates over so many nanoseconds count.
    pub over_ns: u64,
    /// Rates before this time do not count, in nanoseconds after the start.
    pub settle_ns: u64,
    /// A rate is taken each time after so many nanoseconds.
    pub every_ns: u64,
}

impl SteadyEnd {
    /// Number of rates that count.
    pub fn samples(&self) -> usize {
        (self.over_ns / self.every_ns.max(1)) as usize
    }
}

/// What becomes steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyFigure {
    /// Operations per second.
    Ops,
    /// Bytes per second.
    Bytes,
    /// The mean latency.
    Latency,
}

/// What tells that a rate is steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyTest {
    /// The largest deviation from the mean.
    Deviation,
    /// The slope of the regression line, for each interval.
    Slope,
}

/// How threads are scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadScheduling {
    /// The processors that they may use; all without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u16>,
    /// The priority of their requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_priority: Option<IoPriority>,
    /// Added to their nice value.
    pub nice: i8,
}

/// The priority of requests, as ionice(1) sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoPriority {
    /// 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 to 7; the lowest comes first.
    pub level: u8,
}

/// Parts of a span in turn, with gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneStride {
    /// Bytes of a part.
    pub zone_bytes: u64,
    /// Bytes between two parts.
    pub skip_bytes: u64,
}

/// Written data that is compressible, repeated or a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WriteContent {
    /// Share of each chunk that is filler, at its end, in percent; the rest is random.
    pub filler_percent: u8,
    /// The filler, repeatedly; empty for zeros.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filler: Vec<u8>,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Share of the blocks that repeat others, in percent.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub repeat_percent: u8,
    /// Number of different blocks among the repeated ones; 0 repeats the block before.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub repeated_blocks: u64,
    /// Whether all workers repeat the same blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_repeated: bool,
    /// Whether each buffer is filled once, and written repeatedly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_buffers: bool,
}

impl ThreadScheduling {
    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if !self.cpus.is_empty() {
            let cpus: Vec<String> = self.cpus.iter().map(u16::to_string).collect();
            facts.push(format!("on the processors {}", cpus.join(", ")));
        }
        if let Some(IoPriority { class, level }) = self.io_priority {
            facts.push(format!("I/O priority {level} of class {class}"));
        }
        if self.nice != 0 {
            facts.push(format!("nice {}", self.nice));
        }
        facts
    }
}

impl WriteContent {
    fn fact(&self) -> String {
        let filler = if self.filler.is_empty() {
            "zeros"
        } else {
            "a pattern"
        };
        let mut facts = Vec::new();
        match self.filler_percent {
            0 => {}
            100.. => facts.push(format!("data of {filler}")),
            percent => facts.push(format!("data with {percent} % {filler}")),
        }
        if self.repeat_percent > 0 {
            facts.push(format!("{} % repeated blocks", self.repeat_percent));
        }
        if self.keeps_buffers {
            facts.push("the same data repeatedly".to_owned());
        }
        facts.join(", ")
    }
}

/// Several operations for each random offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RandomRun {
    /// Operations for each offset, above 1.
    pub run_ops: u32,
    /// Where the others go.
    pub follow: RunFollow,
}

/// Where the operations after a random one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunFollow {
    /// Each behind the one before.
    Sequential,
    /// To the same offset.
    Identical,
}

/// How the starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal intervals.
    #[default]
    Even,
    /// Independent of each other: a Poisson process.
    Poisson,
}

/// Pauses of each worker. Before a pause it waits for its requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkTime {
    /// Length of a pause in nanoseconds.
    pub pause_ns: u64,
    /// Operations from pause to pause; 0 where only time decides.
    pub pause_ops: u64,
    /// Which operations count.
    pub counted: ThinkCount,
    /// A pause also follows so many nanoseconds after the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
}

/// The operations that lead to a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkCount {
    /// Those that completed.
    Completed,
    /// Those that started.
    Started,
}

/// The least that each worker must reach in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateFloor {
    /// Whether it concerns writes; otherwise reads.
    pub of_writes: bool,
    /// The least rate.
    pub floor: f64,
    /// What the rate counts.
    pub unit: FloorUnit,
    /// Over how many nanoseconds it is taken.
    pub over_ns: u64,
}

/// What a rate counts per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FloorUnit {
    /// Bytes.
    Bytes,
    /// Operations.
    Ops,
}

impl LoadShape {
    /// Whether nothing is set that changes which operations are done.
    pub fn is_plain(&self) -> bool {
        let plain = Self {
            ordinary_pages: self.ordinary_pages,
            ..Self::default()
        };
        *self == plain
    }

    /// What is set, in words: conditions of every figure.
    pub fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(bytes) = self.align_bytes {
            let bytes = format_bytes(u64::from(bytes));
            facts.push(format!("offsets at multiples of {bytes}"));
        }
        if let Some(RandomRun { run_ops, follow }) = self.random_run {
            facts.push(match follow {
                RunFollow::Sequential => format!("runs of {run_ops} sequential operations"),
                RunFollow::Identical => format!("{run_ops} operations at each offset"),
            });
        }
        if self.each_block_once {
            facts.push("each block once per pass".to_owned());
        }
        for kind in &self.in_order {
            facts.push(format!("{} in the order of the blocks", kind.plural()));
        }
        if let Some(flag) = self.opened_with {
            facts.push(format!("opened with {}", flag.as_str()));
        }
        if self.known_content.is_some() {
            facts.push("blocks of a known pattern".to_owned());
        }
        if let Some(times) = self.verified_times {
            facts.push(format!("read back {times} times"));
        }
        if self.arrivals == Arrivals::Poisson {
            facts.push("Poisson arrivals".to_owned());
        }
        if let Some(think) = self.think {
            let pause = format_duration(think.pause_ns);
            facts.push(match (think.pause_ops, think.busy_ns) {
                (0, Some(ns)) => format!("pauses of {pause} every {}", format_duration(ns)),
                (1, _) => format!("pauses of {pause} after each operation"),
                (ops, _) => format!("pauses of {pause} after every {ops} operations"),
            });
        }
        if let Some(zones) = self.zone_stride {
            let [zone, skip] = [zones.zone_bytes, zones.skip_bytes].map(format_bytes);
            facts.push(format!("zones of {zone}, {skip} between them"));
        }
        if let Some(scheduling) = &self.scheduling {
            facts.extend(scheduling.facts());
        }
        if let Some(flow) = self.flow {
            facts.push(format!("weight {} in flow {}", flow.weight, flow.number));
        }
        if self.steady.is_some() {
            facts.push("until the rate or the latency is steady".to_owned());
        }
        if let Some(content) = &self.content {
            facts.push(content.fact());
        }
        if let Some(target) = self.latency_target {
            let latency = format_latency(target.latency_ns);
            facts.push(format!("target: {} % within {latency}", target.percent));
        }
        if self.ordinary_pages {
            facts.push("buffers in ordinary pages".to_owned());
        }
        if self.start_delay_ns > 0 {
            let delay = format_duration(self.start_delay_ns);
            facts.push(format!("started {delay} after the others"));
        }
        facts
    }
}

/// A latency that a share of the requests must meet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyTarget {
    /// The latency in nanoseconds.
    pub latency_ns: u64,
    /// The share, in percent of the requests.
    pub percent: f64,
    /// How long a depth is measured at a time, in nanoseconds.
    pub window_ns: u64,
}

impl LatencyTarget {
    /// Whether so many late ones of these requests are allowed. None is kept to without requests.
    pub fn holds(&self, requests: u64, late: u64) -> bool {
        // 100 - 99.9 is not exactly 0.1.
        const ROUNDING: f64 = 1e-9;
        let allowed = requests as f64 * (100.0 - self.percent) / 100.0;
        requests > 0 && late as f64 <= allowed * (1.0 + ROUNDING)
    }
}

/// What makes a write return only when its data is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteFlag {
    /// O_DSYNC of open(2): the data, and what is needed to read it. PostgreSQL's open_datasync.
    OpenDsync,
    /// O_SYNC of open(2): the data and all that describes the file. PostgreSQL's open_sync.
    OpenSync,
    /// RWF_DSYNC of pwritev2(2): as O_DSYNC, for one write.
    RwfDsync,
}

impl WriteFlag {
    /// The name under which the field knows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenDsync => "O_DSYNC",
            Self::OpenSync => "O_SYNC",
            Self::RwfDsync => "RWF_DSYNC",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_that_is_read_has_bytes_and_no_place_beyond_them() {
        let read = |bytes: usize| {
            let text = format!(
                r#"{{"bytes": {:?}, "offset_places": [{}]}}"#,
                vec![7; bytes],
                usize::MAX
            );
            serde_json::from_str::<BlockPattern>(&text)
        };
        assert!(read(0).is_err() && read(PATTERN_BYTES_MAX + 1).is_err());
        let mut block = [0; 8];
        read(3).unwrap().fill(&mut block, 4096);
        assert_eq!(block, [7; 8]);
    }

    #[test]
    fn the_share_is_that_of_all_requests() {
        let target = |percent| LatencyTarget {
            latency_ns: 1,
            percent,
            window_ns: 1,
        };
        assert!(target(99.9).holds(1000, 1) && !target(99.9).holds(1000, 2));
        assert!(target(99.9).holds(7_000_000, 7000) && !target(99.9).holds(7_000_000, 7001));
        assert!(target(100.0).holds(5, 0) && !target(100.0).holds(5_000_000, 1));
        assert!(!target(50.0).holds(0, 0), "nothing was seen");
    }
}
