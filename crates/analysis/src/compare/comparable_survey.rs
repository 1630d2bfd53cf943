//! Whether two surveys measure the same thing, part by part: curve, burst, access times.

use super::reasons::{Between, Compared, Reasons, alike, cache_text, covers, kind_text, tainted};
use super::sides::Run;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::record::Record;
use diskproof_model::surface::{Coverage, SurfaceRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_bytes;

/// A part of a survey in one run.
#[derive(Clone, Copy)]
pub(super) struct Surveyed<'a> {
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub surface: &'a SurfaceRecord,
    pub part: Part,
}

impl<'a> Surveyed<'a> {
    /// `None` where the run does not have this part.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, part: Part) -> Option<Self> {
        let surface = run.record.surface.as_ref()?;
        let is_there = match part {
            Part::Curve => surface.rate.is_some(),
            Part::Burst => surface.burst.is_some(),
            Part::Access => !surface.seeks.is_empty(),
        };
        is_there.then_some(Self {
            name,
            run,
            surface,
            part,
        })
    }

    fn target(self) -> Option<&'a TargetIdentity> {
        self.run.record.targets.get(self.surface.target)
    }

    fn is_whole(self) -> bool {
        let (start, length) = (self.surface.span_start_bytes, self.surface.span_bytes);
        let target = self.target();
        target.is_some_and(|target| covers(start, length, target.size_bytes, 1 << 20))
    }
}

/// A part of a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Curve,
    Burst,
    Access,
}

impl Compared for Surveyed<'_> {
    fn run(&self) -> (&str, &Record) {
        (self.name, self.run.record)
    }

    fn conditions(self, other: Self, reasons: &mut Reasons) {
        let mut pair = reasons.between(&self, &other);
        if let (Some(x), Some(y)) = (self.target(), other.target()) {
            pair.differ("target-kind-differs", x.kind, y.kind, kind_text);
        }
        let (x, y) = (self.surface, other.surface);
        let operation = |op: &OpKind| format!("{}s", op.as_str());
        pair.differ("operation-differs", x.operation, y.operation, operation);
        pair.differ("cache-differs", x.cache, y.cache, cache_text);
        let engine = |engine: &EngineKind| format!("engine {}", engine.as_str());
        pair.differ("engine-differs", x.engine, y.engine, engine);
        let span = |s: &SurfaceRecord| (s.span_start_bytes, s.span_bytes);
        let are_whole = self.is_whole() && other.is_whole();
        if self.part != Part::Burst && !alike(span(x), span(y)) && !are_whole {
            let text = |s: &SurfaceRecord| {
                let (start, length) = (s.span_start_bytes, s.span_bytes);
                format!("{} from {}", format_bytes(length), format_bytes(start))
            };
            pair.add("span-differs", &text(x), &text(y));
        }
        part_conditions(&mut pair, self, other);
    }

    fn faults(self, _harmless: &[&str], reasons: &mut Reasons) {
        let (name, record) = self.run();
        let (places, failed): (&[&str], u64) = match self.part {
            Part::Curve => (
                &["/surface/rate", "/surface/curve", "/curve/"],
                record.curve.iter().map(|point| point.errors).sum(),
            ),
            Part::Burst => (&["/surface/burst"], 0),
            Part::Access => (
                &["/surface/seeks", "/surface/access", "/access/"],
                self.surface.access_errors.values().sum(),
            ),
        };
        let places = [&["/surface/device"], places].concat();
        tainted(reasons, (name, record), &places, &[]);
        if record.partial && record.plan.workloads.is_empty() {
            reasons.add("interrupted", format!("{name} was cut short"));
        }
        if failed > 0 {
            reasons.add("io-errors", format!("operations failed in {name}"));
        }
    }
}

/// What only one part of a survey has.
fn part_conditions(pair: &mut Between<'_>, a: Surveyed<'_>, b: Surveyed<'_>) {
    let plan = |s: Surveyed<'_>| s.run.record.plan.survey.clone();
    match a.part {
        Part::Curve => {
            let is_full = |s| Some(plan(s)?.curve?.coverage == Coverage::Full);
            if let (Some(p), Some(q)) = (is_full(a), is_full(b)) {
                let text = |is_full: &bool| match is_full {
                    true => "all of the span was read".to_owned(),
                    false => "samples were read".to_owned(),
                };
                pair.differ("coverage-differs", p, q, text);
            }
        }
        Part::Burst => {
            let bytes = |s: Surveyed<'_>| s.surface.burst.as_ref().map_or(0, |burst| burst.bytes);
            let text = |n: &u64| format!("the same {} repeatedly", format_bytes(*n));
            pair.differ("block-size-differs", bytes(a), bytes(b), text);
        }
        Part::Access => {
            let block_bytes = |s| Some(plan(s)?.access?.block_bytes);
            if let (Some(p), Some(q)) = (block_bytes(a), block_bytes(b)) {
                let text = |n: &u32| format_bytes(u64::from(*n));
                pair.differ("block-size-differs", p, q, text);
            }
        }
    }
}
