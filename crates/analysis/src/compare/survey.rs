//! The metrics of a survey: rates by position, the burst rate, access times; and whether two
//! surveys measure the same thing, part by part.
//!
//! What a curve looks like is no error of it. The average has the record's own interval, which
//! knows that. The slowest and the fastest point are known as well as any point is: by how much the
//! ratio of the two curves differs between neighbouring positions (von Neumann 1941), in which
//! their shapes cancel.

use super::earlier::EarlierRuns;
use super::figures::of_estimates;
use super::ratio::Within;
use super::reasons::{
    Between, Compared, Reasons, alike, cache_text, covers, kind_text, reasons, tainted,
};
use super::rows::{MetricFigures, Name, Row};
use super::sides::{Run, Sides, only};
use crate::estimate::student::multiple_95;
use crate::estimate::{variance, widening};
use diskproof_model::comparison::{Basis, Figure, Reason, Unmatched};
use diskproof_model::figure;
use diskproof_model::figure::survey_figure;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::surface::{Coverage, SeekPattern, SurfaceRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_bytes;

/// The fewest positions that say how a curve varies.
const POSITIONS_MIN: usize = 10;
/// The fewest accesses that say how long one takes.
const ACCESSES_MIN: usize = 10;

/// Every metric that both sides have; what only one has goes to `unmatched`.
pub(super) fn rows(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for part in [Part::Curve, Part::Burst, Part::Access] {
        // A run without this part says nothing about it.
        let (a, b) = (side_with(&sides.a, part), side_with(&sides.b, part));
        if let Some(only) = only(&a, &b) {
            unmatched.push(Unmatched {
                subject: subject(part).to_owned(),
                only,
                why: None,
            });
        }
        let Some(first) = a.first().filter(|_| !b.is_empty()) else {
            continue;
        };
        let find = |run| Surveyed::find("an earlier run", run, part);
        let told = SurveyRuns {
            earlier: earlier.repeats_of(*first, find),
            reasons: reasons(&[a.as_slice(), &b].concat()),
            a,
            b,
        };
        match part {
            Part::Curve => rows.extend(told.curve()),
            Part::Burst => rows.extend(told.burst()),
            Part::Access => rows.extend(told.access()),
        }
    }
    rows
}

fn side_with<'s>(side: &'s [(String, &'s Run<'s>)], part: Part) -> Vec<Surveyed<'s>> {
    let runs = side.iter();
    runs.filter_map(|(name, run)| Surveyed::find(name, run, part))
        .collect()
}

fn subject(part: Part) -> &'static str {
    match part {
        Part::Curve => "curve",
        Part::Burst => "burst",
        Part::Access => "access",
    }
}

/// The runs of both sides that have a part of a survey, and groups of earlier ones.
struct SurveyRuns<'a> {
    a: Vec<Surveyed<'a>>,
    b: Vec<Surveyed<'a>>,
    earlier: Vec<Vec<Surveyed<'a>>>,
    reasons: Vec<Reason>,
}

impl SurveyRuns<'_> {
    /// A figure on both sides and in the groups of earlier runs; `None` where a side lacks it.
    fn figures(&self, of: impl Fn(&Surveyed<'_>) -> Option<Estimate>) -> Option<MetricFigures> {
        let told = |side: &[Surveyed<'_>]| {
            let estimates: Option<Vec<Estimate>> = side.iter().map(&of).collect();
            of_estimates(&estimates?)
        };
        let earlier = self.earlier.iter().filter_map(|group| told(group));
        Some(MetricFigures {
            a: told(&self.a)?,
            b: told(&self.b)?,
            earlier: earlier.map(|told| told.sample).collect(),
            difference: None,
        })
    }

    fn curve(&self) -> Vec<Row> {
        let of_a_point = match (self.a.as_slice(), self.b.as_slice()) {
            ([a], [b]) => point_error(a, b),
            _ => None,
        };
        let all = self.a.iter().chain(&self.b);
        let wall_ns = all.map(|s| s.surface.curve_ns).max().unwrap_or(0);
        let row = |figure: Figure| {
            let mut told = self.figures(|s| of_catalogue(s, figure::Part::Curve, figure))?;
            let headline = figure == Figure::CurveAverage;
            if let Some((error, freedom)) = of_a_point.filter(|_| !headline) {
                // The error belongs to the pair; half of its square to each side.
                let error = error / std::f64::consts::SQRT_2;
                told.a.sample.within = Within::Error { error, freedom };
                told.b.sample.within = Within::Error { error, freedom };
            }
            let name = self.name(Part::Curve, figure.as_str(), figure, headline);
            let mut row = Row::new(name, told, wall_ns, &self.reasons);
            row.basis = of_a_point.map(|_| Basis::Positions);
            Some(row)
        };
        let figures = [Figure::CurveAverage, Figure::CurveMin, Figure::CurveMax];
        figures.into_iter().filter_map(row).collect()
    }

    fn burst(&self) -> Option<Row> {
        let figure = Figure::Throughput;
        let told = self.figures(|s| of_catalogue(s, figure::Part::Burst, figure))?;
        let name = self.name(Part::Burst, figure.as_str(), figure, false);
        Some(Row::new(name, told, 0, &self.reasons))
    }

    fn access(&self) -> Vec<Row> {
        let row = |seek: &SeekPattern| {
            let told = self.figures(|s| access_estimate(s, *seek))?;
            let headline = *seek == SeekPattern::Random;
            let metric = seek.as_str().replace(' ', "-");
            let name = self.name(Part::Access, &metric, Figure::AccessTime, headline);
            Some(Row::new(name, told, 0, &self.reasons))
        };
        let seeks = self.a.first().map(|first| first.surface.seeks.keys());
        seeks.into_iter().flatten().filter_map(row).collect()
    }

    fn name(&self, part: Part, metric: &str, figure: Figure, headline: bool) -> Name {
        let subject = subject(part).to_owned();
        Name {
            metric: format!("{subject}.{metric}"),
            subject,
            target: self.a.first().map_or(0, |s| s.surface.target),
            op: None,
            figure,
            headline,
        }
    }
}

fn of_catalogue(s: &Surveyed<'_>, part: figure::Part, figure: Figure) -> Option<Estimate> {
    Some(survey_figure(s.run.record, part, figure.as_str())?.estimate())
}

/// Error of the logarithm of the ratio of two curves at one position, and its degrees of freedom;
/// `None` where they do not have the same number of positions, or too few.
fn point_error(a: &Surveyed<'_>, b: &Surveyed<'_>) -> Option<(f64, f64)> {
    let (a, b) = (&a.run.record.curve, &b.run.record.curve);
    let pairs = a.iter().zip(b);
    let pairs = pairs.map(|(a, b)| (a.bytes_per_second, b.bytes_per_second));
    let logs: Vec<f64> = pairs
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(a, b)| (b / a).ln())
        .collect();
    if a.len() != b.len() || logs.len() < POSITIONS_MIN {
        return None;
    }
    let steps = (logs.len() - 1) as f64;
    let squares: f64 = logs.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    // From successive differences it is worth two thirds of the degrees of freedom of the usual
    // one.
    Some(((squares / (2.0 * steps)).sqrt(), steps * 2.0 / 3.0))
}

/// Mean access time of a pattern, from its accesses in their order: where they are alike for a
/// while, they tell less.
fn access_estimate(s: &Surveyed<'_>, seek: SeekPattern) -> Option<Estimate> {
    let told = &s.surface.seeks.get(&seek)?.mean;
    let points = s.run.record.access.iter();
    let points = points.filter(|point| point.seek == seek);
    let latencies: Vec<f64> = points.map(|point| point.latency_ns as f64).collect();
    if latencies.len() < ACCESSES_MIN {
        return Some(told.clone());
    }
    let n = latencies.len() as f64;
    let half_width_95 =
        Some(multiple_95(n - 1.0) * (variance(&latencies) / n * widening(&latencies)).sqrt());
    Some(Estimate {
        n: latencies.len() as u64,
        half_width_95,
        ..told.clone()
    })
}

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
