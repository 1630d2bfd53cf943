//! Whether two figures of a workload measure the same thing. What was asked, how it was carried out
//! and what disturbed it must agree. The disk, the machine and the kernel may differ, as people
//! compare those: see `differences`.

use super::reasons::{
    Reasons, alike, busy, cache_text, covers, harmless, kind_text, method, tainted,
};
use super::sides::Run;
use diskproof_model::comparison::Reason;
use diskproof_model::measurement::StopReason;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, Distribution, SyncPolicy};
use diskproof_model::record::{MeasurementRecord, Record, WorkloadRecord};
use diskproof_model::shape::LoadShape;
use diskproof_model::stream::Streams;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_rate};

/// Share of a span that may be unwritten before reads of it say more about the filesystem than
/// about the disk.
const UNWRITTEN_MAX: f64 = 0.01;
/// Difference in the share of blocks that hold only zeros, from which on the content is not the
/// same: a disk or a thin volume need not move zeros.
const ZERO_SHARE_MAX: f64 = 0.1;

/// A workload in one run.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    /// `A`, `B`, or which of its runs: `A2`.
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub index: usize,
}

impl<'a> Measured<'a> {
    pub(super) fn measurement(self) -> &'a MeasurementRecord {
        &self.run.record.measurements[self.index]
    }

    fn target(self) -> Option<&'a TargetIdentity> {
        self.run.record.targets.get(self.measurement().target)
    }

    /// The workload of this name that ran at the same time on the same target.
    fn companion(self, name: &str) -> Option<Self> {
        let measurements = &self.run.record.measurements;
        let index = measurements
            .iter()
            .position(|m| m.target == self.measurement().target && m.workload.name == name)?;
        Some(Self { index, ..self })
    }
}

/// Why the figures of a workload do not compare: every run is compared with the first, and examined
/// by itself.
pub(super) fn of_workload(runs: &[Measured<'_>]) -> Vec<Reason> {
    let mut reasons = Reasons::default();
    if let Some(first) = runs.first() {
        runs[1..].iter().for_each(|other| {
            conditions(&mut reasons, *first, *other);
            company(&mut reasons, *first, *other);
        });
    }
    let records: Vec<&Record> = runs.iter().map(|run| run.run.record).collect();
    let harmless = harmless(&records);
    runs.iter()
        .for_each(|run| faults(&mut reasons, *run, harmless));
    busy(
        &mut reasons,
        &runs
            .iter()
            .map(|run| (run.name, run.run.record))
            .collect::<Vec<_>>(),
    );
    reasons.done()
}

/// Whether `other` measured the same as `first`, without a fault.
pub(super) fn repeats(first: Measured<'_>, other: Measured<'_>) -> bool {
    let mut reasons = Reasons::default();
    conditions(&mut reasons, first, other);
    company(&mut reasons, first, other);
    faults(&mut reasons, other, &[]);
    reasons.done().is_empty()
}

/// What was asked and how it ran.
fn conditions(reasons: &mut Reasons, a: Measured<'_>, b: Measured<'_>) {
    method(reasons, (a.name, a.run.record), (b.name, b.run.record));
    if let (Some(x), Some(y)) = (a.target(), b.target()) {
        reasons.differ(
            "target-kind-differs",
            (a.name, x.kind),
            (b.name, y.kind),
            |kind| kind_text(*kind).to_owned(),
        );
    }
    let (x, y) = (&a.measurement().workload, &b.measurement().workload);
    reasons.differ(
        "company-differs",
        (a.name, &x.together_with),
        (b.name, &y.together_with),
        |names| match names.as_slice() {
            [] => "it ran alone".to_owned(),
            names => format!("it ran together with {}", names.join(", ")),
        },
    );
    reasons.differ(
        "mix-differs",
        (a.name, &x.streams),
        (b.name, &y.streams),
        |streams| streams_text(streams),
    );
    reasons.differ(
        "access-differs",
        (a.name, &x.access),
        (b.name, &y.access),
        |access| access_text(access),
    );
    reasons.differ(
        "block-size-differs",
        (a.name, x.block_bytes),
        (b.name, y.block_bytes),
        |n| format_bytes(u64::from(*n)),
    );
    if x.block_bytes == y.block_bytes {
        reasons.differ(
            "block-size-differs",
            (a.name, &x.block_mix),
            (b.name, &y.block_mix),
            |mix| format!("{} block sizes", mix.len().max(1)),
        );
    }
    reasons.differ("depth-differs", (a.name, x.depth), (b.name, y.depth), |n| {
        format!("depth {n}")
    });
    reasons.differ(
        "workers-differ",
        (a.name, x.workers),
        (b.name, y.workers),
        |n| counted(u64::from(*n), "worker"),
    );
    reasons.differ(
        "load-differs",
        (a.name, &x.shape),
        (b.name, &y.shape),
        |shape| shape_text(shape),
    );
    reasons.differ("load-differs", (a.name, x.rate), (b.name, y.rate), |rate| {
        load_text(*rate)
    });
    execution(reasons, a, b);
    content(reasons, a.name, a.measurement(), b.name, b.measurement());
}

/// How the workload was carried out.
fn execution(reasons: &mut Reasons, a: Measured<'_>, b: Measured<'_>) {
    let (x, y) = (&a.measurement().workload, &b.measurement().workload);
    reasons.differ("sync-differs", (a.name, x.sync), (b.name, y.sync), |sync| {
        sync_text(*sync)
    });
    reasons.differ(
        "cache-differs",
        (a.name, x.cache),
        (b.name, y.cache),
        |cache| cache_text(*cache),
    );
    reasons.differ(
        "engine-differs",
        (a.name, x.engine),
        (b.name, y.engine),
        |engine| format!("engine {}", engine.as_str()),
    );
    if !spans_agree(a, b) {
        reasons.add(
            "span-differs",
            format!("{}: {}, {}: {}", a.name, span_text(x), b.name, span_text(y)),
        );
    }
}

/// What the span held: zeros and first writes are cheaper on many disks.
fn content(reasons: &mut Reasons, a: &str, x: &MeasurementRecord, b: &str, y: &MeasurementRecord) {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if let (Some(p), Some(q)) = (zero_share(x), zero_share(y))
        && (p - q).abs() > ZERO_SHARE_MAX
    {
        let (p, q) = (percent(p), percent(q));
        let why = format!("{a}: {p} of the blocks hold only zeros, {b}: {q}");
        reasons.add("content-differs", why);
    }
    let writes_only = [x, y]
        .iter()
        .all(|m| m.workload.streams.is_only(OpKind::Write));
    if let (true, Some(p), Some(q)) = (writes_only, unwritten_share(x), unwritten_share(y))
        && (p - q).abs() > ZERO_SHARE_MAX
    {
        let (p, q) = (percent(p), percent(q));
        let why = format!("{a}: {p} of the span was written for the first time, {b}: {q}");
        reasons.add("fill-differs", why);
    }
}

/// Share of the blocks read that hold only zeros; `None` where none was examined.
fn zero_share(m: &MeasurementRecord) -> Option<f64> {
    let zeros = m.zero_blocks;
    (zeros.sampled > 0).then(|| zeros.zero as f64 / zeros.sampled as f64)
}

/// What ran at the same time must be the same by more than its name.
fn company(reasons: &mut Reasons, a: Measured<'_>, b: Measured<'_>) {
    for name in &a.measurement().workload.together_with {
        if let (Some(x), Some(y)) = (a.companion(name), b.companion(name)) {
            let mut differences = Reasons::default();
            conditions(&mut differences, x, y);
            if let Some(difference) = differences.done().first() {
                reasons.add(
                    "company-differs",
                    format!(
                        "{name}, which ran together with it, differs: {}",
                        difference.why
                    ),
                );
            }
        }
    }
}

fn faults(reasons: &mut Reasons, run: Measured<'_>, harmless: &[&str]) {
    let (name, m) = (run.name, run.measurement());
    match m.stopped {
        StopReason::Interrupted => reasons.add(
            "interrupted",
            format!("{name} was cut short by an interrupt"),
        ),
        StopReason::Errors => reasons.add(
            "io-errors",
            format!("{name} stopped: too many operations failed"),
        ),
        StopReason::Hung => reasons.add(
            "hung",
            format!("{name} timed out: the target stopped answering"),
        ),
        StopReason::Precision
        | StopReason::Time
        | StopReason::Bytes
        | StopReason::Ops
        | StopReason::Companion
        | StopReason::TooSlow
        | StopReason::BelowFloor
        | StopReason::Steady
        | StopReason::Unread => {}
    }
    let reads = m.workload.streams.makes(OpKind::Read);
    if let (true, Some(share)) = (
        reads,
        unwritten_share(m).filter(|share| *share > UNWRITTEN_MAX),
    ) {
        reasons.add(
            "unwritten-blocks",
            format!(
                "{:.0} % of {name}'s span had never been written",
                share * 100.0
            ),
        );
    }
    tainted(
        reasons,
        (name, run.run.record),
        &[&format!("/measurements/{}/", run.index)],
        harmless,
    );
}

fn unwritten_share(m: &MeasurementRecord) -> Option<f64> {
    Some(m.unwritten_bytes? as f64 / m.workload.span_bytes.max(1) as f64)
}

/// Equal, or on both sides all that there is of a device: disks of different sizes are compared as
/// a whole.
fn spans_agree(a: Measured<'_>, b: Measured<'_>) -> bool {
    let (x, y) = (&a.measurement().workload, &b.measurement().workload);
    let is_whole = |m: Measured<'_>, w: &WorkloadRecord| {
        let device = m
            .target()
            .filter(|target| target.kind == TargetKind::BlockDevice);
        device.is_some_and(|device| {
            covers(
                w.span_start_bytes,
                w.span_bytes,
                device.size_bytes,
                w.block_bytes,
            )
        })
    };
    alike(
        (x.span_start_bytes, x.span_bytes),
        (y.span_start_bytes, y.span_bytes),
    ) || (is_whole(a, x) && is_whole(b, y))
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
            } => {
                format!(
                    "random, {access_percent} % of the operations on {size_percent} % of the span"
                )
            }
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
    rate.map_or("as fast as it goes".to_owned(), |rate| {
        format!("{}/s offered", format_rate(rate))
    })
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

fn span_text(w: &WorkloadRecord) -> String {
    match w.span_start_bytes {
        0 => format!("span of {}", format_bytes(w.span_bytes)),
        start => format!(
            "span of {} from {}",
            format_bytes(w.span_bytes),
            format_bytes(start)
        ),
    }
}
