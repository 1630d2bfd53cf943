//! Finds the reasons why two figures of a workload do not measure the same thing. The requested
//! workload and the way it was carried out must agree, and neither may be disturbed. The disk, the
//! machine and the kernel may differ, as people compare those: see `differences`.

use super::differing::Differing;
use super::reasons::{
    Between, Compared, MeasuredSpan, Reasons, add_findings, cache_text, engine_text, kind_text,
};
use super::sides::{Run, WorkloadKey, is_live_pair};
use super::workload_text::{
    BlockSizes, access_text, block_sizes_text, concurrent_text, offered_rate_text, percent_text,
    shape_text, span_text, streams_text, sync_text, transaction_text,
};
use diskproof_model::comparison::Reason;
use diskproof_model::measurement::{Hang, StopReason};
use diskproof_model::op::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::counted;

/// Up to this share of a span may be unwritten. It changes a rate by half of the default margin.
/// The finding `unwritten-blocks` allows more: a figure by itself need not be told from one that is
/// 2 % away, and holes of one side alone would show as a difference.
const UNWRITTEN_MAX: f64 = 0.01;
/// The content of two spans counts as the same if the shares of their zero blocks, or of their
/// unwritten blocks, differ by at most this: a disk or a thin volume need not move zeros. Chosen:
/// the shares come from samples.
const CONTENT_DIFFERENCE_MAX: f64 = 0.1;

/// A part of a run that requests a workload.
pub(super) trait Requesting<'a>: Compared {
    /// The workload as it was requested.
    fn requested(self) -> &'a Workload;
}

/// A workload as one run measured it.
#[derive(Clone, Copy)]
pub(super) struct MeasuredWorkload<'a> {
    /// The name of the run in sentences: its side, or one of its runs (`A`, `B` or `A2`).
    pub name: &'a str,
    pub run: &'a Run<'a>,
    /// The index of its row in the record.
    pub index: usize,
}

impl<'a> MeasuredWorkload<'a> {
    /// The workload of this name on this target; `None` where the run did not measure it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, key: WorkloadKey<'_>) -> Option<Self> {
        let mut measurements = run.record.measurements.iter();
        let index = measurements.position(|row| WorkloadKey::from_row(row) == key)?;
        Some(Self { name, run, index })
    }

    /// Its row in the record.
    pub(super) fn row(self) -> &'a Row {
        &self.run.record.measurements[self.index]
    }

    /// The number of its slices. A workload that was measured in one go lists none.
    fn slices(self) -> u64 {
        self.row().data.slices.len().max(1) as u64
    }

    fn target(self) -> Option<&'a TargetIdentity> {
        self.run.record.targets.get(self.row().data.target)
    }

    /// The names of the workloads that ran at the same time on the same target.
    fn concurrent_names(self) -> &'a [String] {
        &self.row().figures.together_with
    }

    /// The concurrent workload of this name.
    fn concurrent(self, name: &str) -> Option<Self> {
        let key = WorkloadKey {
            target: self.row().data.target,
            name,
        };
        Self::find(self.name, self.run, key)
    }

    fn span(self) -> MeasuredSpan {
        let data = &self.row().data;
        MeasuredSpan {
            start_bytes: data.span_start_bytes,
            length_bytes: data.span_bytes,
        }
    }

    /// Returns `true` if its span is a whole device, but for a rest that does not fill a block.
    fn covers_device(self) -> bool {
        let Some(target) = self.target() else {
            return false;
        };
        target.kind == TargetKind::BlockDevice
            && self
                .span()
                .covers(target.size_bytes, self.requested().block_bytes)
    }

    /// Returns `true` if both spans are equal, or both cover their whole device: disks of different
    /// sizes are compared as a whole.
    fn has_span_like(self, other: Self) -> bool {
        self.span().is_like(other.span()) || (self.covers_device() && other.covers_device())
    }

    /// The share of the examined blocks that hold only zeros; `None` where no block was examined.
    fn zero_share(self) -> Option<f64> {
        let zeros = self.row().data.zero_blocks;
        if zeros.sampled == 0 {
            return None;
        }
        Some(zeros.zero as f64 / zeros.sampled as f64)
    }

    /// The share of the span that had never been written; `None` where the filesystem cannot say.
    fn unwritten_share(self) -> Option<f64> {
        let data = &self.row().data;
        Some(data.unwritten_bytes? as f64 / data.span_bytes.max(1) as f64)
    }

    /// The share of the span that was written for the first time; `None` unless it only writes.
    fn first_written_share(self) -> Option<f64> {
        if self.requested().streams.is_only(OpKind::Write) {
            self.unwritten_share()
        } else {
            None
        }
    }
}

impl<'a> Requesting<'a> for MeasuredWorkload<'a> {
    fn requested(self) -> &'a Workload {
        &self.row().data.workload
    }
}

impl Compared for MeasuredWorkload<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn record(&self) -> &Record {
        self.run.record
    }

    fn add_differences(self, other: Self, reasons: &mut Reasons) {
        if let Some(blocks) = few_blocks(self, other) {
            let blocks = counted(blocks, "block");
            let why = format!(
                "only {blocks} of it, and fewer than three do not show how it varies: measure \
                 longer (--time)"
            );
            reasons.add("few-blocks", why);
        }
        add_own_differences(reasons, self, other);
        add_concurrent_differences(reasons, self, other);
    }

    fn add_faults(self, harmless: &[&str], reasons: &mut Reasons) {
        let name = self.name;
        let data = &self.row().data;
        if let Some(fault) = fault_of_stop(data.stopped).or_else(|| fault_of_hang(data.hang)) {
            reasons.add(fault.code, format!("{name} {}", fault.predicate));
        }
        if let Some(share) = self.unwritten_share()
            && share > UNWRITTEN_MAX
            && self.requested().streams.makes(OpKind::Read)
        {
            let percent = percent_text(share);
            let why = format!("{percent} of {name}'s span had never been written");
            reasons.add("unwritten-blocks", why);
        }
        let path = format!("/measurements/{}/", self.index);
        add_findings(reasons, name, self.run.record, &[&path], harmless);
    }
}

/// With fewer blocks, a live comparison does not know how much its slices vary from one to the
/// next: the intervals within slices know nothing of the seconds between them.
const BLOCKS_MIN: u64 = 3;

/// The number of blocks of a live comparison that ended too early to decide; `None` of enough, and
/// of other runs.
fn few_blocks(a: MeasuredWorkload<'_>, b: MeasuredWorkload<'_>) -> Option<u64> {
    if !is_live_pair(a.run.record, b.run.record) {
        return None;
    }
    let blocks = a.slices().min(b.slices());
    if blocks < BLOCKS_MIN {
        Some(blocks)
    } else {
        None
    }
}

/// A fault of one measurement.
pub(super) struct StopFault {
    pub(super) code: &'static str,
    /// What happened: the rest of a sentence whose subject is the run.
    pub(super) predicate: &'static str,
}

/// The fault that a stop shows; `None` where the measurement ended as it should.
pub(super) fn fault_of_stop(stopped: StopReason) -> Option<StopFault> {
    let (code, predicate) = match stopped {
        StopReason::Interrupted => ("interrupted", "ended before its time was over"),
        StopReason::Errors => ("io-errors", "stopped: too many operations failed"),
        StopReason::Hung => ("hung", "timed out: the target stopped answering"),
        StopReason::Precision
        | StopReason::Time
        | StopReason::Bytes
        | StopReason::Ops
        | StopReason::Companion
        | StopReason::TooSlow
        | StopReason::BelowFloor
        | StopReason::Overloaded
        | StopReason::Steady
        | StopReason::Unread => return None,
    };
    Some(StopFault { code, predicate })
}

/// The fault of requests that had no answer when a measurement ended, for whatever reason it did:
/// neither its rate nor its latencies contain them. `None` where all were answered.
pub(super) fn fault_of_hang(hang: Option<Hang>) -> Option<StopFault> {
    let (code, predicate) = if hang?.late {
        ("late", "ended with requests that had no answer")
    } else {
        ("hung", "timed out: the target stopped answering")
    };
    Some(StopFault { code, predicate })
}

/// Adds the differences between the workloads themselves, and the way they were carried out.
fn add_own_differences(reasons: &mut Reasons, a: MeasuredWorkload<'_>, b: MeasuredWorkload<'_>) {
    let mut pair = reasons.between(a, b);
    pair.add_if_both_differ(
        Differing::TargetKind,
        |one| Some(one.target()?.kind),
        kind_text,
    );
    pair.add_if_different(
        Differing::Company,
        MeasuredWorkload::concurrent_names,
        concurrent_text,
    );
    add_request_differences(&mut pair);
    add_course_differences(reasons, a, b);
}

/// Adds the differences in the way two workloads were carried out: cache, engine, span, content.
pub(super) fn add_course_differences(
    reasons: &mut Reasons,
    a: MeasuredWorkload<'_>,
    b: MeasuredWorkload<'_>,
) {
    let mut pair = reasons.between(a, b);
    pair.add_if_different(
        Differing::Cache,
        |one| one.row().data.cache.used,
        cache_text,
    );
    pair.add_if_different(
        Differing::Engine,
        |one| one.row().data.engine.used,
        engine_text,
    );
    if !a.has_span_like(b) {
        pair.add(Differing::Span, &span_text(a.span()), &span_text(b.span()));
    }
    add_content_differences(&mut pair, a, b);
}

/// Adds the differences in what was requested: operations, offsets, sizes, and how many at a time.
pub(super) fn add_request_differences<'a, T: Requesting<'a>>(pair: &mut Between<'_, T>) {
    pair.add_if_different(Differing::Mix, |one| &one.requested().streams, streams_text);
    pair.add_if_different(
        Differing::Mix,
        |one| one.requested().transaction.as_ref(),
        transaction_text,
    );
    pair.add_if_different(
        Differing::Access,
        |one| &one.requested().access,
        access_text,
    );
    pair.add_if_different(
        Differing::BlockSize,
        |one| BlockSizes::of_workload(one.requested()),
        block_sizes_text,
    );
    pair.add_if_different(
        Differing::Depth,
        |one| one.requested().depth,
        |depth| format!("depth {depth}"),
    );
    pair.add_if_different(
        Differing::Workers,
        |one| one.requested().workers,
        |workers| counted(u64::from(workers), "worker"),
    );
    pair.add_if_different(Differing::Load, |one| &one.requested().shape, shape_text);
    pair.add_if_different(
        Differing::Load,
        |one| one.requested().rate,
        offered_rate_text,
    );
    pair.add_if_different(Differing::Sync, |one| one.requested().sync, sync_text);
}

/// Adds the differences in the content of the spans: zeros and first writes are cheaper on many
/// disks.
fn add_content_differences(
    pair: &mut Between<'_, MeasuredWorkload<'_>>,
    a: MeasuredWorkload<'_>,
    b: MeasuredWorkload<'_>,
) {
    if let (Some(share_a), Some(share_b)) = (a.zero_share(), b.zero_share())
        && (share_a - share_b).abs() > CONTENT_DIFFERENCE_MAX
    {
        let zeros = format!("{} of the blocks hold only zeros", percent_text(share_a));
        pair.add(Differing::Content, &zeros, &percent_text(share_b));
    }
    if let (Some(share_a), Some(share_b)) = (a.first_written_share(), b.first_written_share())
        && (share_a - share_b).abs() > CONTENT_DIFFERENCE_MAX
    {
        let percent = percent_text(share_a);
        let first_written = format!("{percent} of the span was written for the first time");
        pair.add(Differing::Fill, &first_written, &percent_text(share_b));
    }
}

/// Adds the differences between the concurrent workloads of the same name: equal names are not
/// enough.
fn add_concurrent_differences(
    reasons: &mut Reasons,
    a: MeasuredWorkload<'_>,
    b: MeasuredWorkload<'_>,
) {
    for name in a.concurrent_names() {
        let (Some(concurrent_a), Some(concurrent_b)) = (a.concurrent(name), b.concurrent(name))
        else {
            continue;
        };
        let mut differences = Reasons::default();
        add_own_differences(&mut differences, concurrent_a, concurrent_b);
        // The first one is enough to show the user where to look.
        if let Some(Reason { why, .. }) = differences.0.first() {
            let why = format!("{name}, which ran together with it, differs: {why}");
            reasons.add(Differing::Company.code(), why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::{Measurement, ZeroSample};
    use diskproof_model::plan::{Access, Zone};
    use diskproof_model::stream::{BlockShare, Streams};

    /// The reasons against comparing a workload, changed in one way, with itself, changed in
    /// another way.
    fn reasons_between(
        change_a: impl Fn(&mut Workload),
        change_b: impl Fn(&mut Workload),
    ) -> Vec<String> {
        let mut record_a = fixture::record();
        let mut record_b = record_a.clone();
        change_a(&mut record_a.measurements[0].data.workload);
        change_b(&mut record_b.measurements[0].data.workload);
        let run_a = Run {
            name: String::new(),
            record: &record_a,
        };
        let run_b = Run {
            name: String::new(),
            record: &record_b,
        };
        let a = MeasuredWorkload {
            name: "A",
            run: &run_a,
            index: 0,
        };
        let b = MeasuredWorkload {
            name: "B",
            run: &run_b,
            index: 0,
        };
        let mut reasons = Reasons::default();
        a.add_differences(b, &mut reasons);
        reasons.0.into_iter().map(|reason| reason.why).collect()
    }

    fn mixed(workload: &mut Workload, small: u32, large: u32) {
        let block_bytes = workload.block_bytes;
        workload.block_mix = vec![
            BlockShare::new(4096, small),
            BlockShare::new(block_bytes, large),
        ];
    }

    fn zoned(workload: &mut Workload, access_percent: f64) {
        let hot = Zone {
            access_percent,
            size_percent: 10.0,
        };
        let cold = Zone {
            access_percent: 100.0 - access_percent,
            size_percent: 90.0,
        };
        workload.access = Access::Zoned {
            zones: vec![hot, cold],
        };
    }

    #[test]
    fn mixes_of_as_many_block_sizes_are_told_by_their_shares() {
        let reasons = reasons_between(|one| mixed(one, 3, 1), |one| mixed(one, 1, 1));
        assert_eq!(
            reasons,
            ["A: 75 % 4 KiB, 25 % 1 MiB, B: 50 % 4 KiB, 50 % 1 MiB"]
        );
        // The same shares by other weights.
        assert!(reasons_between(|one| mixed(one, 6, 4), |one| mixed(one, 60, 40)).is_empty());
    }

    #[test]
    fn zones_are_told_by_their_shares() {
        let reasons = reasons_between(|one| zoned(one, 60.0), |one| zoned(one, 90.0));
        assert_eq!(
            reasons,
            [
                "A: random in 2 zones (60 % of the operations on 10 % of the span, 40 % on 90 %), \
              B: random in 2 zones (90 % of the operations on 10 % of the span, 10 % on 90 %)"
            ]
        );
    }

    #[test]
    fn values_that_round_to_the_same_text_are_not_said_to_be_equal() {
        let reasons = reasons_between(
            |one| one.rate = Some(1_230_000.0),
            |one| one.rate = Some(1_230_001.0),
        );
        assert_eq!(
            reasons,
            ["A and B differ, but only in detail: 1.23M/s offered"]
        );
    }

    /// The codes of the differences and faults of the random reads, changed in one way, beside
    /// those that were changed in another way.
    fn codes_between(
        change_a: impl Fn(&mut Measurement),
        change_b: impl Fn(&mut Measurement),
    ) -> Vec<String> {
        let mut records = [fixture::record(), fixture::record()];
        change_a(&mut records[0].measurements[RANDOM_READS].data);
        change_b(&mut records[1].measurements[RANDOM_READS].data);
        let runs = records.each_ref().map(Run::without_name);
        let [a, b] = runs.each_ref().map(|run| MeasuredWorkload {
            name: "",
            run,
            index: RANDOM_READS,
        });
        let mut reasons = Reasons::default();
        a.add_differences(b, &mut reasons);
        a.add_faults(&[], &mut reasons);
        reasons.0.into_iter().map(|reason| reason.code).collect()
    }

    /// The place of `random-read-d32` in the fixture.
    const RANDOM_READS: usize = 3;

    /// One percent of the span is a hole that the metadata of an image leaves.
    #[test]
    fn unwritten_share_matters_above_one_percent_and_to_reads_only() {
        let unwritten = |bytes: u64| {
            move |data: &mut Measurement| {
                data.span_bytes = 100_000;
                data.unwritten_bytes = Some(bytes);
            }
        };
        assert!(codes_between(unwritten(1000), unwritten(1000)).is_empty());
        assert_eq!(
            codes_between(unwritten(1001), unwritten(1001)),
            ["unwritten-blocks"]
        );
        let writes = |data: &mut Measurement| {
            unwritten(50_000)(data);
            data.workload.streams = Streams::with_reads(0);
        };
        assert!(codes_between(writes, writes).is_empty());
    }

    /// A tenth of the blocks, or of the span, is within what samples show by chance.
    #[test]
    fn content_differs_above_a_tenth() {
        let zeros = |zero: u64| {
            move |data: &mut Measurement| data.zero_blocks = ZeroSample { sampled: 100, zero }
        };
        assert!(codes_between(zeros(0), zeros(10)).is_empty());
        assert_eq!(codes_between(zeros(0), zeros(11)), ["content-differs"]);
        let first_writes = |bytes: u64| {
            move |data: &mut Measurement| {
                data.span_bytes = 100_000;
                data.unwritten_bytes = Some(bytes);
                data.workload.streams = Streams::with_reads(0);
            }
        };
        assert!(codes_between(first_writes(0), first_writes(10_000)).is_empty());
        assert_eq!(
            codes_between(first_writes(0), first_writes(10_001)),
            ["fill-differs"]
        );
    }

    #[test]
    fn only_a_stop_against_the_plan_is_a_fault() {
        for (stopped, code) in [
            (StopReason::Interrupted, Some("interrupted")),
            (StopReason::Errors, Some("io-errors")),
            (StopReason::Hung, Some("hung")),
            (StopReason::Time, None),
            (StopReason::Companion, None),
            (StopReason::Overloaded, None),
        ] {
            let fault = fault_of_stop(stopped);
            assert_eq!(fault.map(|fault| fault.code), code, "{stopped:?}");
        }
    }
}
