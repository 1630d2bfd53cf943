//! Whether two figures measure the same thing. What was asked, how it was carried out and what
//! disturbed it must agree; who the disk, the machine and the kernel are need not, as they are what
//! people compare: see `differences`.

use super::Run;
use diskproof_model::comparison::Reason;
use diskproof_model::finding::Severity;
use diskproof_model::measurement::StopReason;
use diskproof_model::plan::{Access, CachePolicy, Distribution, SyncCall, SyncPolicy};
use diskproof_model::record::{MeasurementRecord, Record, WorkloadRecord};
use diskproof_model::surface::{Coverage, SurfaceRecord};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_rate};

/// Spans that differ by less are taken as equal: a scratch file is cut to what a disk wrote in its
/// time. Seek times grow with the root of the span at the most, so this moves a figure by 1 %, half
/// of the default margin.
const SPAN_TOLERANCE: f64 = 0.02;
/// Share of a span that may be unwritten before reads of it say more about the filesystem than
/// about the disk.
const UNWRITTEN_MAX: f64 = 0.01;
/// Difference in the share of blocks that hold only zeros, from which on the content is not the
/// same: a disk or a thin volume need not move zeros.
const ZERO_SHARE_MAX: f64 = 0.1;
/// Findings that make a figure one of something else than the disk, from which severity on, and
/// what they say.
const SPOILING: [(&str, Severity, &str); 7] = [
    ("io-errors", Severity::Note, "operations failed in"),
    ("bad-blocks", Severity::Note, "blocks read back wrong in"),
    (
        "served-from-cache",
        Severity::Note,
        "a cache answered instead of the disk in",
    ),
    (
        "cache-answered",
        Severity::Note,
        "a cache answered instead of the disk in",
    ),
    // The least that is told, 5 % of the bytes, is more than the margin.
    ("disturbed", Severity::Note, "others used the disk during"),
    (
        "cpu-limited",
        Severity::Warning,
        "the processor and not the disk was the limit in",
    ),
    (
        "engine-limited",
        Severity::Warning,
        "the load generator and not the disk was the limit in",
    ),
];

/// Load for each processor from which on one run a side tells the machine's luck and not the disk:
/// what waits for a processor then counts as the disk's time, and comes and goes for longer than a
/// run lasts. Of 24 pairs of runs at seven for each processor, four gave a wrong verdict (simulated
/// disks, 3 s each); several runs a side see it in how they differ. A benchmark's own waiting
/// threads reach one for each processor easily.
const LOAD_MAX: f64 = 2.0;

/// A workload in one run.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    /// `A`, `B`, or which of its runs: `A2`.
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub index: usize,
}

impl<'a> Measured<'a> {
    pub fn measurement(self) -> &'a MeasurementRecord {
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

/// Collects reasons, each once.
#[derive(Default)]
pub(super) struct Reasons(Vec<Reason>);

impl Reasons {
    pub fn add(&mut self, code: &str, why: String) {
        if !self.0.iter().any(|reason| reason.why == why) {
            self.0.push(Reason {
                code: code.to_owned(),
                why,
            });
        }
    }

    fn differ<T: PartialEq>(
        &mut self,
        code: &str,
        (a, x): (&str, T),
        (b, y): (&str, T),
        say: impl Fn(&T) -> String,
    ) {
        if x != y {
            self.add(code, format!("{a}: {}, {b}: {}", say(&x), say(&y)));
        }
    }

    pub fn done(self) -> Vec<Reason> {
        self.0
    }
}

/// Why the figures of a workload do not compare: every run is held against the first, and looked at
/// by itself.
pub(super) fn of_workload(runs: &[Measured<'_>]) -> Vec<Reason> {
    let mut reasons = Reasons::default();
    if let Some(first) = runs.first() {
        runs[1..].iter().for_each(|other| {
            conditions(&mut reasons, *first, *other);
            company(&mut reasons, *first, *other);
        });
    }
    runs.iter().for_each(|run| faults(&mut reasons, *run));
    busy(
        &mut reasons,
        &runs
            .iter()
            .map(|run| (run.name, run.run.record))
            .collect::<Vec<_>>(),
    );
    reasons.done()
}

/// One run a side on a machine with far more to do than processors.
fn busy(reasons: &mut Reasons, runs: &[(&str, &Record)]) {
    for (name, record) in runs.iter().filter(|_| runs.len() == 2) {
        let cpus = record.host.cpus;
        if let Some(load) = load(record).filter(|load| *load > LOAD_MAX * f64::from(cpus)) {
            reasons.add(
                "busy-machine",
                format!(
                    "{name} began at a load of {load:.1} on {cpus} processors; several runs a \
                     side would do"
                ),
            );
        }
    }
}

/// Load average of the last minute before a run.
pub(super) fn load(record: &Record) -> Option<f64> {
    record
        .host
        .load_average
        .as_ref()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn method(reasons: &mut Reasons, (a, x): (&str, &Record), (b, y): (&str, &Record)) {
    reasons.differ("method-differs", (a, x.method), (b, y.method), |m| {
        format!("measuring method {m}")
    });
}

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
        (a.name, x.read_permille),
        (b.name, y.read_permille),
        |p| format!("{} % reads", f64::from(*p) / 10.0),
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
    reasons.differ("load-differs", (a.name, x.rate), (b.name, y.rate), |rate| {
        load_text(*rate)
    });
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
    let zeros = |m: &MeasurementRecord| {
        (m.zero_blocks.sampled > 0)
            .then(|| m.zero_blocks.zero as f64 / m.zero_blocks.sampled as f64)
    };
    if let (Some(p), Some(q)) = (zeros(a.measurement()), zeros(b.measurement()))
        && (p - q).abs() > ZERO_SHARE_MAX
    {
        let (p, q) = (p * 100.0, q * 100.0);
        reasons.add(
            "content-differs",
            format!(
                "{}: {p:.0} % of the blocks hold only zeros, {}: {q:.0} %",
                a.name, b.name
            ),
        );
    }
    let writes_only = x.read_permille == 0 && y.read_permille == 0;
    if let (true, Some(p), Some(q)) = (
        writes_only,
        unwritten_share(a.measurement()),
        unwritten_share(b.measurement()),
    ) && (p - q).abs() > ZERO_SHARE_MAX
    {
        let (p, q) = (p * 100.0, q * 100.0);
        reasons.add(
            "fill-differs",
            format!(
                "{}: {p:.0} % of the span was written for the first time, {}: {q:.0} %",
                a.name, b.name
            ),
        );
    }
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

fn faults(reasons: &mut Reasons, run: Measured<'_>) {
    let (name, m) = (run.name, run.measurement());
    match m.stopped {
        StopReason::Interrupted => reasons.add(
            "interrupted",
            format!("{name} was cut short by an interrupt"),
        ),
        StopReason::Errors => reasons.add(
            "io-errors",
            format!("{name} was given up: too many operations failed"),
        ),
        StopReason::Hung => reasons.add(
            "hung",
            format!("{name} was given up: the target did not answer any more"),
        ),
        StopReason::Precision
        | StopReason::Time
        | StopReason::Bytes
        | StopReason::Ops
        | StopReason::Companion => {}
    }
    let reads = m.workload.read_permille > 0;
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
    spoilt(
        reasons,
        name,
        run.run.record,
        &[&format!("/measurements/{}/", run.index)],
    );
}

/// What the findings of a record say against everything below these places.
fn spoilt(reasons: &mut Reasons, name: &str, record: &Record, places: &[&str]) {
    for finding in &record.findings {
        let Some((code, _, says)) = SPOILING
            .iter()
            .find(|(code, from, _)| *code == finding.code && finding.severity >= *from)
        else {
            continue;
        };
        if finding
            .evidence
            .iter()
            .any(|evidence| places.iter().any(|place| evidence.path.starts_with(place)))
        {
            reasons.add(code, format!("{says} {name}"));
        }
    }
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

/// Whether a span leaves out no more than what does not fill a block.
fn covers(start: u64, length: u64, size: u64, block_bytes: u32) -> bool {
    start == 0 && length.saturating_add(u64::from(block_bytes)) > size
}

fn alike((start, length): (u64, u64), (other_start, other_length): (u64, u64)) -> bool {
    let room = SPAN_TOLERANCE * length.max(other_length) as f64;
    length.abs_diff(other_length) as f64 <= room && start.abs_diff(other_start) as f64 <= room
}

/// A survey in one run.
#[derive(Clone, Copy)]
pub(super) struct Surveyed<'a> {
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub surface: &'a SurfaceRecord,
}

impl Surveyed<'_> {
    fn is_whole(self) -> bool {
        let s = self.surface;
        self.run.record.targets.get(s.target).is_some_and(|target| {
            covers(s.span_start_bytes, s.span_bytes, target.size_bytes, 1 << 20)
        })
    }
}

/// A part of a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Curve,
    Burst,
    Access,
}

/// Why a part of a survey does not compare.
pub(super) fn of_survey(runs: &[Surveyed<'_>], part: Part) -> Vec<Reason> {
    let mut reasons = Reasons::default();
    if let Some(first) = runs.first() {
        runs[1..]
            .iter()
            .for_each(|other| survey_conditions(&mut reasons, *first, *other, part));
    }
    for run in runs {
        let places: &[&str] = match part {
            Part::Curve => &[
                "/surface/device",
                "/surface/rate",
                "/surface/curve",
                "/curve/",
            ],
            Part::Burst => &["/surface/device", "/surface/burst"],
            Part::Access => &[
                "/surface/device",
                "/surface/seeks",
                "/surface/access",
                "/access/",
            ],
        };
        spoilt(&mut reasons, run.name, run.run.record, places);
        if run.run.record.partial && run.run.record.plan.workloads.is_empty() {
            reasons.add("interrupted", format!("{} was cut short", run.name));
        }
        let failed = match part {
            Part::Curve => run
                .run
                .record
                .curve
                .iter()
                .map(|point| point.errors)
                .sum::<u64>(),
            Part::Burst => 0,
            Part::Access => run.surface.access_errors.values().sum::<u64>(),
        };
        if failed > 0 {
            reasons.add("io-errors", format!("operations failed in {}", run.name));
        }
    }
    busy(
        &mut reasons,
        &runs
            .iter()
            .map(|run| (run.name, run.run.record))
            .collect::<Vec<_>>(),
    );
    reasons.done()
}

fn survey_conditions(reasons: &mut Reasons, a: Surveyed<'_>, b: Surveyed<'_>, part: Part) {
    method(reasons, (a.name, a.run.record), (b.name, b.run.record));
    let kind = |s: Surveyed<'_>| {
        s.run
            .record
            .targets
            .get(s.surface.target)
            .map(|target| target.kind)
    };
    if let (Some(x), Some(y)) = (kind(a), kind(b)) {
        reasons.differ("target-kind-differs", (a.name, x), (b.name, y), |kind| {
            kind_text(*kind).to_owned()
        });
    }
    let (x, y) = (a.surface, b.surface);
    reasons.differ(
        "operation-differs",
        (a.name, x.operation),
        (b.name, y.operation),
        |op| format!("{}s", op.as_str()),
    );
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
    let spans = (
        (x.span_start_bytes, x.span_bytes),
        (y.span_start_bytes, y.span_bytes),
    );
    if part != Part::Burst && !alike(spans.0, spans.1) && !(a.is_whole() && b.is_whole()) {
        let say = |s: &SurfaceRecord| {
            format!(
                "{} from {}",
                format_bytes(s.span_bytes),
                format_bytes(s.span_start_bytes)
            )
        };
        reasons.add(
            "span-differs",
            format!("{}: {}, {}: {}", a.name, say(x), b.name, say(y)),
        );
    }
    match part {
        Part::Curve => {
            let coverage = |s: Surveyed<'_>| {
                s.run
                    .record
                    .plan
                    .survey
                    .as_ref()
                    .and_then(|survey| survey.curve)
                    .map(|curve| curve.coverage)
            };
            if let (Some(p), Some(q)) = (coverage(a), coverage(b)) {
                let says = |full: &bool| {
                    if *full {
                        "all of the span was read"
                    } else {
                        "samples were read"
                    }
                    .to_owned()
                };
                let is_full = |c| c == Coverage::Full;
                reasons.differ(
                    "coverage-differs",
                    (a.name, is_full(p)),
                    (b.name, is_full(q)),
                    says,
                );
            }
        }
        Part::Burst => {
            let bytes = |s: &SurfaceRecord| s.burst.as_ref().map_or(0, |burst| burst.bytes);
            reasons.differ(
                "block-size-differs",
                (a.name, bytes(x)),
                (b.name, bytes(y)),
                |n| format!("the same {} again and again", format_bytes(*n)),
            );
        }
        Part::Access => {
            let plan = |s: Surveyed<'_>| {
                s.run
                    .record
                    .plan
                    .survey
                    .as_ref()
                    .and_then(|survey| survey.access)
                    .map(|access| access.block_bytes)
            };
            if let (Some(p), Some(q)) = (plan(a), plan(b)) {
                reasons.differ("block-size-differs", (a.name, p), (b.name, q), |n| {
                    format_bytes(u64::from(*n))
                });
            }
        }
    }
}

fn kind_text(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Directory => "a scratch file in a directory",
        TargetKind::File => "an existing file",
        TargetKind::BlockDevice => "a block device",
    }
}

fn access_text(access: &Access) -> String {
    match access {
        Access::Sequential => "sequential".to_owned(),
        Access::Backward => "backwards".to_owned(),
        Access::Stride { stride_bytes } => format!("in strides of {}", format_bytes(*stride_bytes)),
        Access::Random { distribution } => match distribution {
            Distribution::Uniform => "random".to_owned(),
            Distribution::Zipf { theta } => format!("random, Zipf {theta}"),
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

fn load_text(rate: Option<f64>) -> String {
    rate.map_or("as fast as it goes".to_owned(), |rate| {
        format!("{}/s offered", format_rate(rate))
    })
}

fn sync_text(sync: SyncPolicy) -> String {
    let call = |call| match call {
        SyncCall::Fsync => "fsync",
        SyncCall::Fdatasync => "fdatasync",
    };
    match sync {
        SyncPolicy::None => "no sync".to_owned(),
        SyncPolicy::AtEnd => "a sync at the end".to_owned(),
        SyncPolicy::Every {
            writes: 0 | 1,
            call: c,
        } => format!("{} after each write", call(c)),
        SyncPolicy::Every { writes, call: c } => format!("{} after {writes} writes", call(c)),
    }
}

fn cache_text(cache: CachePolicy) -> String {
    match cache {
        CachePolicy::Direct => "past the page cache",
        CachePolicy::Buffered => "through the page cache, emptied as it went",
        CachePolicy::Cached => "through the page cache",
    }
    .to_owned()
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
