//! Collects the reasons why two figures are not comparable, by the checks that workloads, surveys
//! and steps on files share: method, spans, findings.

use super::differing::Differing;
use super::sides::is_live_pair;
use crate::words::uncapitalised;
use diskproof_model::comparison::Reason;
use diskproof_model::plan::{CachePolicy, EngineKind};
use diskproof_model::record::Record;
use diskproof_model::target::TargetKind;

/// Spans that differ by at most this share count as equal: a scratch file is cut to what a disk
/// wrote in its time. Seek times grow at most with the root of the span, so this changes a figure
/// by 1 %, half of the default margin.
const SPAN_TOLERANCE: f64 = 0.02;

/// Collects reasons, each once.
#[derive(Default)]
pub(super) struct Reasons(pub Vec<Reason>);

impl Reasons {
    /// Adds a reason, unless it has one with the same words.
    pub(super) fn add(&mut self, code: &str, why: String) {
        if !self.0.iter().any(|reason| reason.why == why) {
            self.0.push(Reason {
                code: code.to_owned(),
                why,
            });
        }
    }

    /// Begins the comparison of two runs. A difference in the measuring method is added at once.
    pub(super) fn between<T: Compared>(&mut self, a: T, b: T) -> Between<'_, T> {
        let mut pair = Between {
            reasons: self,
            a,
            b,
        };
        if a.record().method != b.record().method {
            let method_text = |part: T| format!("measuring method {}", part.record().method);
            pair.add(Differing::Method, &method_text(a), &method_text(b));
        }
        pair
    }
}

/// Adds the differences between the same part of two runs as reasons.
pub(super) struct Between<'r, T> {
    pub reasons: &'r mut Reasons,
    a: T,
    b: T,
}

impl<T: Compared> Between<'_, T> {
    /// Adds a reason where the runs differ in this value. `text` says what a value is.
    pub(super) fn add_if_different<V: PartialEq>(
        &mut self,
        differing: Differing,
        value: impl Fn(T) -> V,
        text: impl Fn(V) -> String,
    ) {
        let (value_a, value_b) = (value(self.a), value(self.b));
        if value_a != value_b {
            self.add(differing, &text(value_a), &text(value_b));
        }
    }

    /// Adds a reason where both runs have this value, and differ in it.
    pub(super) fn add_if_both_differ<V: PartialEq>(
        &mut self,
        differing: Differing,
        value: impl Fn(T) -> Option<V>,
        text: impl Fn(V) -> String,
    ) {
        if let (Some(value_a), Some(value_b)) = (value(self.a), value(self.b))
            && value_a != value_b
        {
            self.add(differing, &text(value_a), &text(value_b));
        }
    }

    /// Adds a reason that states the value of each run. Texts are rounded: where both are equal,
    /// the reason says that the difference is smaller than they show.
    pub(super) fn add(&mut self, differing: Differing, text_a: &str, text_b: &str) {
        let (name_a, name_b) = (self.a.name(), self.b.name());
        let why = if text_a == text_b {
            format!("{name_a} and {name_b} differ, but only in detail: {text_a}")
        } else {
            format!("{name_a}: {text_a}, {name_b}: {text_b}")
        };
        self.reasons.add(differing.code(), why);
    }
}

/// A part of a run that can be compared with the same part of other runs.
pub(super) trait Compared: Copy {
    /// The name of its side or run: `A`, `B` or `A2`.
    fn name(&self) -> &str;

    /// The record that contains it.
    fn record(&self) -> &Record;

    /// Adds the differences between its plan and course and those of another one.
    fn add_differences(self, other: Self, reasons: &mut Reasons);

    /// Adds its disturbances. Findings with a code in `harmless` are ignored.
    fn add_faults(self, harmless: &[&str], reasons: &mut Reasons);
}

/// The reasons why the figures of these runs are not comparable: every run is compared with the
/// first one, and examined by itself.
pub(super) fn reasons_against_comparison(runs: &[impl Compared]) -> Vec<Reason> {
    let mut reasons = Reasons::default();
    if let Some((first, others)) = runs.split_first() {
        for other in others {
            first.add_differences(*other, &mut reasons);
        }
    }
    let records: Vec<&Record> = runs.iter().map(Compared::record).collect();
    let harmless = harmless_codes(&records);
    for run in runs {
        run.add_faults(harmless, &mut reasons);
    }
    reasons.0
}

/// Returns `true` if `other` measured the same as `first`, perhaps with faults.
pub(super) fn is_same_measuring<T: Compared>(first: T, other: T) -> bool {
    let mut reasons = Reasons::default();
    first.add_differences(other, &mut reasons);
    reasons.0.is_empty()
}

/// Returns `true` if `other` measured the same as `first`, without faults.
pub(super) fn is_sound_repetition<T: Compared>(first: T, other: T) -> bool {
    let mut reasons = Reasons::default();
    first.add_differences(other, &mut reasons);
    other.add_faults(&[], &mut reasons);
    reasons.0.is_empty()
}

/// The code of the finding on other programs, which disturb both sides of a live comparison alike.
const SHARED_DISTURBANCE: &str = "disturbed";

/// Returns `true` if other programs used the disk during a run that is a side of a live comparison.
pub(super) fn is_shared_disturbance(record: &Record) -> bool {
    record.campaign().is_some()
        && record
            .findings
            .iter()
            .any(|finding| finding.code == SHARED_DISTURBANCE)
}

/// The codes of serious findings that do not keep these runs from being compared.
fn harmless_codes(records: &[&Record]) -> &'static [&'static str] {
    match records {
        [a, b] if is_live_pair(a, b) => &[SHARED_DISTURBANCE],
        _ => &[],
    }
}

/// Adds the serious findings whose evidence lies below these paths of the record. Paths are JSON
/// pointers as the rules write them; each ends so that it begins no other name.
pub(super) fn add_findings(
    reasons: &mut Reasons,
    name: &str,
    record: &Record,
    paths: &[&str],
    harmless: &[&str],
) {
    for finding in &record.findings {
        let is_harmless = harmless.contains(&finding.code.as_str());
        if is_harmless || finding.says.allows_comparison() || !finding.is_serious() {
            continue;
        }
        let has_evidence = finding
            .evidence
            .iter()
            .any(|evidence| paths.iter().any(|path| evidence.path.starts_with(path)));
        if has_evidence {
            let title = uncapitalised(finding.heading());
            reasons.add(&finding.code, format!("{title} in {name}"));
        }
    }
}

/// The part of a target that was measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredSpan {
    pub start_bytes: u64,
    pub length_bytes: u64,
}

impl MeasuredSpan {
    /// Returns `true` if it covers a target of this size, but for a rest that does not fill a
    /// block.
    pub(super) fn covers(self, target_bytes: u64, block_bytes: u32) -> bool {
        let next_end_bytes = self.length_bytes.saturating_add(u64::from(block_bytes));
        self.start_bytes == 0 && next_end_bytes > target_bytes
    }

    /// Returns `true` if two spans are so similar that the same figures are expected.
    pub(super) fn is_like(self, other: Self) -> bool {
        let longer_bytes = self.length_bytes.max(other.length_bytes);
        let tolerance_bytes = SPAN_TOLERANCE * longer_bytes as f64;
        self.length_bytes.abs_diff(other.length_bytes) as f64 <= tolerance_bytes
            && self.start_bytes.abs_diff(other.start_bytes) as f64 <= tolerance_bytes
    }
}

pub(super) fn kind_text(kind: TargetKind) -> String {
    match kind {
        TargetKind::Directory => "a scratch file in a directory",
        TargetKind::File => "an existing file",
        TargetKind::BlockDevice => "a block device",
    }
    .to_owned()
}

pub(super) fn engine_text(engine: EngineKind) -> String {
    format!("engine {}", engine.as_str())
}

pub(super) fn cache_text(cache: CachePolicy) -> String {
    match cache {
        CachePolicy::Direct => "past the page cache",
        CachePolicy::Buffered => "through the page cache, emptied during the run",
        CachePolicy::Cached => "through the page cache",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_bytes: u64, length_bytes: u64) -> MeasuredSpan {
        MeasuredSpan {
            start_bytes,
            length_bytes,
        }
    }

    #[test]
    fn span_covers_a_target_but_for_less_than_a_block() {
        assert!(span(0, 8192).covers(8192 + 4095, 4096));
        assert!(!span(0, 8192).covers(8192 + 4096, 4096));
        assert!(!span(4096, 8192).covers(8192, 4096));
    }

    /// Two percent of the longer span, in its length and in its start.
    #[test]
    fn spans_are_alike_within_two_percent() {
        assert!(span(0, 1000).is_like(span(0, 980)));
        assert!(!span(0, 1000).is_like(span(0, 979)));
        assert!(span(100, 1000).is_like(span(120, 1000)));
        assert!(!span(100, 1000).is_like(span(121, 1000)));
    }

    #[test]
    fn reason_is_added_once() {
        let mut reasons = Reasons::default();
        reasons.add("hung", "A hung".to_owned());
        reasons.add("hung", "A hung".to_owned());
        reasons.add("hung", "B hung".to_owned());
        assert_eq!(reasons.0.len(), 2);
    }
}
