//! Whether two surveys measure the same thing, part by part: curve, burst, access times.

use super::reasons::{Reasons, alike, busy, cache_text, covers, kind_text, method, tainted};
use super::sides::Run;
use diskproof_model::comparison::Reason;
use diskproof_model::surface::{Coverage, SurfaceRecord};
use diskproof_model::units::format_bytes;

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
    runs.iter()
        .for_each(|run| survey_faults(&mut reasons, *run, part));
    busy(
        &mut reasons,
        &runs
            .iter()
            .map(|run| (run.name, run.run.record))
            .collect::<Vec<_>>(),
    );
    reasons.done()
}

/// Whether this part of `other` measured the same as that of `first`, without a fault.
pub(super) fn repeats(first: Surveyed<'_>, other: Surveyed<'_>, part: Part) -> bool {
    let mut reasons = Reasons::default();
    survey_conditions(&mut reasons, first, other, part);
    survey_faults(&mut reasons, other, part);
    has(other.surface, part) && reasons.done().is_empty()
}

/// Whether a survey has this part.
pub(super) fn has(surface: &SurfaceRecord, part: Part) -> bool {
    match part {
        Part::Curve => surface.rate.is_some(),
        Part::Burst => surface.burst.is_some(),
        Part::Access => !surface.seeks.is_empty(),
    }
}

fn survey_faults(reasons: &mut Reasons, run: Surveyed<'_>, part: Part) {
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
    tainted(reasons, (run.name, run.run.record), places, &[]);
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
    part_conditions(reasons, a, b, part);
}

/// What only one part of a survey has.
fn part_conditions(reasons: &mut Reasons, a: Surveyed<'_>, b: Surveyed<'_>, part: Part) {
    let (x, y) = (a.surface, b.surface);
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
                |n| format!("the same {} repeatedly", format_bytes(*n)),
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
