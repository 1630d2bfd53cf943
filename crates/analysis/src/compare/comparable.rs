//! The reasons why two figures of a workload do not measure the same thing. The requested workload,
//! the way it was carried out and every disturbance must agree. The disk, the machine and the
//! kernel may differ, as people compare those: see `differences`.

use super::reasons::{
    Between, Compared, MeasuredSpan, Reasons, add_findings, cache_text, engine_text, kind_text,
};
use super::sides::{Run, WorkloadKey};
use diskproof_model::comparison::Reason;
use diskproof_model::measurement::StopReason;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, Distribution, SyncPolicy};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::shape::LoadShape;
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_rate};

/// Up to this share of a span may be unwritten. With more, reads say more about the filesystem than
/// about the disk.
const UNWRITTEN_MAX: f64 = 0.01;
/// The content of two spans counts as the same if the shares of their zero blocks, or of their
/// unwritten blocks, differ by at most this: a disk or a thin volume need not move zeros.
const CONTENT_DIFFERENCE_MAX: f64 = 0.1;

/// A workload in one run.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    /// The side, or one of its runs: `A`, `B` or `A2`.
    pub name: &'a str,
    pub run: &'a Run<'a>,
    /// The index of its row in the record.
    pub index: usize,
}

impl<'a> Measured<'a> {
    /// The workload of this name on this target; `None` where the run did not measure it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, key: WorkloadKey<'_>) -> Option<Self> {
        let mut measurements = run.record.measurements.iter();
        let index = measurements.position(|row| WorkloadKey::from_row(row) == key)?;
        Some(Self { name, run, index })
    }

    pub(super) fn measurement(self) -> &'a Row {
        &self.run.record.measurements[self.index]
    }

    fn target(self) -> Option<&'a TargetIdentity> {
        self.run.record.targets.get(self.measurement().data.target)
    }

    /// The workload of this name that ran at the same time on the same target.
    fn companion(self, name: &str) -> Option<Self> {
        let key = WorkloadKey {
            target: self.measurement().data.target,
            name,
        };
        Self::find(self.name, self.run, key)
    }
}

impl Compared for Measured<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn record(&self) -> &Record {
        self.run.record
    }

    fn add_differences(self, other: Self, reasons: &mut Reasons) {
        add_own_differences(reasons, self, other);
        add_company_differences(reasons, self, other);
    }

    fn add_faults(self, harmless: &[&str], reasons: &mut Reasons) {
        let (name, measurement) = (self.name, self.measurement());
        let stopped = match measurement.data.stopped {
            StopReason::Interrupted => Some(("interrupted", "was cut short by an interrupt")),
            StopReason::Errors => Some(("io-errors", "stopped: too many operations failed")),
            StopReason::Hung => Some(("hung", "timed out: the target stopped answering")),
            StopReason::Precision
            | StopReason::Time
            | StopReason::Bytes
            | StopReason::Ops
            | StopReason::Companion
            | StopReason::TooSlow
            | StopReason::BelowFloor
            | StopReason::Overloaded
            | StopReason::Steady
            | StopReason::Unread => None,
        };
        if let Some((code, what)) = stopped {
            reasons.add(code, format!("{name} {what}"));
        }
        if let Some(share) = unwritten_share(measurement)
            && share > UNWRITTEN_MAX
            && measurement.data.workload.streams.makes(OpKind::Read)
        {
            let percent = share * 100.0;
            let why = format!("{percent:.0} % of {name}'s span had never been written");
            reasons.add("unwritten-blocks", why);
        }
        let place = format!("/measurements/{}/", self.index);
        add_findings(reasons, self.name, self.run.record, &[&place], harmless);
    }
}

/// Adds the differences between the workloads themselves, and the way they were carried out.
fn add_own_differences(reasons: &mut Reasons, a: Measured<'_>, b: Measured<'_>) {
    let mut pair = reasons.between(&a, &b);
    if let (Some(x), Some(y)) = (a.target(), b.target()) {
        pair.add_if_different("target-kind-differs", x.kind, y.kind, kind_text);
    }
    let (measurement, other) = (a.measurement(), b.measurement());
    let (x, y) = (&measurement.data.workload, &other.data.workload);
    pair.add_if_different(
        "company-differs",
        &measurement.figures.together_with,
        &other.figures.together_with,
        |names| company_text(names),
    );
    pair.add_if_different("mix-differs", &x.streams, &y.streams, |s| streams_text(s));
    pair.add_if_different("access-differs", &x.access, &y.access, |a| access_text(a));
    pair.add_if_different("block-size-differs", x.block_bytes, y.block_bytes, |n| {
        format_bytes(u64::from(*n))
    });
    if x.block_bytes == y.block_bytes {
        pair.add_if_different("block-size-differs", &x.block_mix, &y.block_mix, |mix| {
            format!("{} block sizes", mix.len().max(1))
        });
    }
    pair.add_if_different("depth-differs", x.depth, y.depth, |n| format!("depth {n}"));
    pair.add_if_different("workers-differ", x.workers, y.workers, |n| {
        counted(u64::from(*n), "worker")
    });
    pair.add_if_different("load-differs", &x.shape, &y.shape, |shape| {
        shape_text(shape)
    });
    pair.add_if_different("load-differs", x.rate, y.rate, |rate| load_text(*rate));
    pair.add_if_different("sync-differs", x.sync, y.sync, |sync| sync_text(*sync));
    pair.add_if_different(
        "cache-differs",
        measurement.data.cache.used,
        other.data.cache.used,
        cache_text,
    );
    pair.add_if_different(
        "engine-differs",
        measurement.data.engine.used,
        other.data.engine.used,
        engine_text,
    );
    if !spans_agree(a, b) {
        pair.add("span-differs", &span_text(measurement), &span_text(other));
    }
    add_content_differences(&mut pair, a.measurement(), b.measurement());
}

/// Adds the differences in the content of the spans: zeros and first writes are cheaper on many
/// disks.
fn add_content_differences(pair: &mut Between<'_>, x: &Row, y: &Row) {
    if let (Some(share_x), Some(share_y)) = (zero_share(x), zero_share(y))
        && (share_x - share_y).abs() > CONTENT_DIFFERENCE_MAX
    {
        let zeros = format!("{} of the blocks hold only zeros", percent_text(share_x));
        pair.add("content-differs", &zeros, &percent_text(share_y));
    }
    if !only_writes(x) || !only_writes(y) {
        return;
    }
    if let (Some(share_x), Some(share_y)) = (unwritten_share(x), unwritten_share(y))
        && (share_x - share_y).abs() > CONTENT_DIFFERENCE_MAX
    {
        let percent = percent_text(share_x);
        let first_written = format!("{percent} of the span was written for the first time");
        pair.add("fill-differs", &first_written, &percent_text(share_y));
    }
}

fn only_writes(measurement: &Row) -> bool {
    measurement.data.workload.streams.is_only(OpKind::Write)
}

fn percent_text(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The share of the blocks read that hold only zeros; `None` where no block was examined.
fn zero_share(measurement: &Row) -> Option<f64> {
    let zeros = measurement.data.zero_blocks;
    if zeros.sampled == 0 {
        return None;
    }
    Some(zeros.zero as f64 / zeros.sampled as f64)
}

/// Adds the differences between the workloads that ran at the same time: equal names are not
/// enough.
fn add_company_differences(reasons: &mut Reasons, a: Measured<'_>, b: Measured<'_>) {
    for name in &a.measurement().figures.together_with {
        if let (Some(x), Some(y)) = (a.companion(name), b.companion(name)) {
            let mut differences = Reasons::default();
            add_own_differences(&mut differences, x, y);
            if let Some(Reason { why, .. }) = differences.0.first() {
                let why = format!("{name}, which ran together with it, differs: {why}");
                reasons.add("company-differs", why);
            }
        }
    }
}

fn unwritten_share(measurement: &Row) -> Option<f64> {
    Some(measurement.data.unwritten_bytes? as f64 / measurement.data.span_bytes.max(1) as f64)
}

/// Returns `true` if both spans are equal, or both cover their whole device: disks of different
/// sizes are compared as a whole.
fn spans_agree(a: Measured<'_>, b: Measured<'_>) -> bool {
    span(a).is_like(span(b)) || (covers_device(a) && covers_device(b))
}

fn span(measured: Measured<'_>) -> MeasuredSpan {
    let data = &measured.measurement().data;
    MeasuredSpan {
        start: data.span_start_bytes,
        length: data.span_bytes,
    }
}

fn covers_device(measured: Measured<'_>) -> bool {
    let Some(target) = measured.target() else {
        return false;
    };
    let block_bytes = measured.measurement().data.workload.block_bytes;
    target.kind == TargetKind::BlockDevice && span(measured).covers(target.size_bytes, block_bytes)
}

fn company_text(names: &[String]) -> String {
    if names.is_empty() {
        return "it ran alone".to_owned();
    }
    format!("it ran together with {}", names.join(", "))
}

fn access_text(access: &Access) -> String {
    match access {
        Access::Sequential => "sequential".to_owned(),
        Access::Backward => "backwards".to_owned(),
        Access::Stride { stride_bytes } => format!("in strides of {}", format_bytes(*stride_bytes)),
        Access::Random { distribution } => match distribution {
            Distribution::Uniform => "random".to_owned(),
            Distribution::Zipf { theta } => format!("random, Zipf {theta}"),
            Distribution::Pareto { share } => format!("random, Pareto {share}"),
            Distribution::Normal { spread_percent } => {
                format!("random, normal {spread_percent} %")
            }
            Distribution::HotCold {
                access_percent,
                size_percent,
            } => format!(
                "random, {access_percent} % of the operations on {size_percent} % of the span"
            ),
        },
        Access::Zoned { zones } => format!("random in {} zones", zones.len()),
    }
}

fn streams_text(streams: &Streams) -> String {
    let reads = f64::from(streams.permille(OpKind::Read)) / 10.0;
    let mut facts = vec![format!("{reads} % reads")];
    facts.extend(streams.facts());
    facts.join(", ")
}

fn shape_text(shape: &LoadShape) -> String {
    match shape.facts() {
        facts if facts.is_empty() => "no other conditions".to_owned(),
        facts => facts.join(", "),
    }
}

fn load_text(rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{}/s offered", format_rate(rate)),
        None => "as fast as it goes".to_owned(),
    }
}

fn sync_text(sync: SyncPolicy) -> String {
    match sync {
        SyncPolicy::None => "no sync".to_owned(),
        SyncPolicy::AtEnd => "a sync at the end".to_owned(),
        SyncPolicy::Every {
            writes: 0 | 1,
            call,
        } => format!("{} after each write", call.as_str()),
        SyncPolicy::Every { writes, call } => format!("{} after {writes} writes", call.as_str()),
        SyncPolicy::WithWrite { flag } => format!("{} writes", flag.as_str()),
        SyncPolicy::Shared { call } => format!("{} shared by all writers", call.as_str()),
        SyncPolicy::OtherDescriptor { call } => {
            format!("{} through another descriptor", call.as_str())
        }
    }
}

fn span_text(measurement: &Row) -> String {
    let length = format_bytes(measurement.data.span_bytes);
    match measurement.data.span_start_bytes {
        0 => format!("span of {length}"),
        start => {
            let start = format_bytes(start);
            format!("span of {length} from {start}")
        }
    }
}
