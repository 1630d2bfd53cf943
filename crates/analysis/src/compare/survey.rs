//! The metrics of a survey: rates by position, the burst rate, access times; and whether two
//! surveys measure the same thing, part by part.
//!
//! What a curve looks like is no error of it. The average has the record's own interval, which
//! knows that. The slowest and the fastest point are known as well as any point is: by how much the
//! ratio of the two curves differs between neighbouring positions (von Neumann 1941), in which
//! their shapes cancel.

use super::earlier::EarlierRuns;
use super::figures::Told;
use super::pair::{ComparedRow, Pair};
use super::ratio::{Joined, SideFigure, Within};
use super::reasons::{Between, Compared, Reasons, alike, cache_text, covers, kind_text, tainted};
use super::sides::{Run, Sides};
use crate::estimate::student::multiple_95;
use crate::estimate::{variance, widening};
use diskproof_model::comparison::{Basis, Figure, Unmatched};
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
) -> Vec<ComparedRow> {
    let mut rows = Vec::new();
    for part in [Part::Curve, Part::Burst, Part::Access] {
        // A run without this part says nothing about it.
        let find = |name, run| Surveyed::find(name, run, part);
        if let Some(pair) = Pair::of(sides, earlier, (part.subject(), unmatched), find) {
            match part {
                Part::Curve => rows.extend(curve(&pair)),
                Part::Burst => rows.extend(burst(&pair)),
                Part::Access => rows.extend(access(&pair)),
            }
        }
    }
    rows
}

/// The runs of both sides that have a part of a survey.
type SurveyPair<'a> = Pair<Surveyed<'a>>;

fn curve(pair: &SurveyPair<'_>) -> Vec<ComparedRow> {
    let of_a_point = match (pair.a.as_slice(), pair.b.as_slice()) {
        ([a], [b]) => point_error(a, b),
        _ => None,
    };
    let wall_ns = pair
        .all()
        .map(|s| s.surface.data.curve_ns)
        .max()
        .unwrap_or(0);
    let of_figure = |figure: Figure| {
        let (mut a, mut b, earlier) =
            pair.figures(|s| of_catalogue(s, figure::Part::Curve, figure))?;
        let headline = figure == Figure::CurveAverage;
        if let Some((error, freedom)) = of_a_point.filter(|_| !headline) {
            // The error belongs to the pair; half of its square to each side.
            let error = error / std::f64::consts::SQRT_2;
            a.sample.within = Within::Error { error, freedom };
            b.sample.within = Within::Error { error, freedom };
        }
        let mut row = row(pair, figure.as_str(), figure, (a, b, earlier), wall_ns);
        row.metric.headline = headline;
        if of_a_point.is_some() && row.metric.variation.is_none() {
            row.metric.basis = Basis::Positions;
        }
        Some(row)
    };
    let figures = [Figure::CurveAverage, Figure::CurveMin, Figure::CurveMax];
    figures.into_iter().filter_map(of_figure).collect()
}

fn burst(pair: &SurveyPair<'_>) -> Option<ComparedRow> {
    let figure = Figure::Throughput;
    let told = pair.figures(|s| of_catalogue(s, figure::Part::Burst, figure))?;
    Some(row(pair, figure.as_str(), figure, told, 0))
}

fn access(pair: &SurveyPair<'_>) -> Vec<ComparedRow> {
    let of_pattern = |seek: &SeekPattern| {
        let told = pair.figures(|s| access_estimate(s, *seek))?;
        let metric = seek.as_str().replace(' ', "-");
        let mut row = row(pair, &metric, Figure::AccessTime, told, 0);
        row.metric.headline = *seek == SeekPattern::Random;
        Some(row)
    };
    let seeks = pair
        .a
        .first()
        .map(|first| first.surface.figures.seeks.keys());
    seeks.into_iter().flatten().filter_map(of_pattern).collect()
}

fn row(
    pair: &SurveyPair<'_>,
    metric: &str,
    figure: Figure,
    (a, b, earlier): (Told, Told, Vec<SideFigure>),
    wall_ns: u64,
) -> ComparedRow {
    let joined = Joined::of(&a.sample, &b.sample, &earlier);
    let subject = pair.a.first().map_or("", |s| s.part.subject());
    let name = (format!("{subject}.{metric}"), subject);
    let mut row = ComparedRow::new(name, figure, (a, b), joined, wall_ns, &pair.reasons);
    row.metric.target = pair.a.first().map_or(0, |s| s.surface.data.target);
    row
}

fn of_catalogue(s: &Surveyed<'_>, part: figure::Part, figure: Figure) -> Option<Estimate> {
    Some(survey_figure(s.run.record, part, figure.as_str())?.estimate())
}

/// Error of the logarithm of the ratio of two curves at one position, and its degrees of freedom;
/// `None` where they do not have the same number of positions, or too few.
fn point_error(a: &Surveyed<'_>, b: &Surveyed<'_>) -> Option<(f64, f64)> {
    let (a, b) = (a.run.record.curve(), b.run.record.curve());
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
    let told = &s.surface.figures.seeks.get(&seek)?.mean;
    let points = s.run.record.access().iter();
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
        let surface = run.record.surface()?;
        let is_there = match part {
            Part::Curve => surface.figures.rate.is_some(),
            Part::Burst => surface.data.burst.is_some(),
            Part::Access => !surface.figures.seeks.is_empty(),
        };
        is_there.then_some(Self {
            name,
            run,
            surface,
            part,
        })
    }

    fn target(self) -> Option<&'a TargetIdentity> {
        self.run.record.targets.get(self.surface.data.target)
    }

    fn is_whole(self) -> bool {
        let (start, length) = (
            self.surface.data.span_start_bytes,
            self.surface.data.span_bytes,
        );
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

impl Part {
    fn subject(self) -> &'static str {
        match self {
            Self::Curve => "curve",
            Self::Burst => "burst",
            Self::Access => "access",
        }
    }
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
        pair.differ(
            "operation-differs",
            x.data.survey.operation,
            y.data.survey.operation,
            operation,
        );
        pair.differ(
            "cache-differs",
            x.data.cache.used,
            y.data.cache.used,
            cache_text,
        );
        let engine = |engine: &EngineKind| format!("engine {}", engine.as_str());
        pair.differ("engine-differs", x.data.engine, y.data.engine, engine);
        let span = |s: &SurfaceRecord| (s.data.span_start_bytes, s.data.span_bytes);
        let are_whole = self.is_whole() && other.is_whole();
        if self.part != Part::Burst && !alike(span(x), span(y)) && !are_whole {
            let text = |s: &SurfaceRecord| {
                let (start, length) = (s.data.span_start_bytes, s.data.span_bytes);
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
                &["/results/0/figures/rate", "/results/0/data/curve"],
                record.curve().iter().map(|point| point.errors).sum(),
            ),
            Part::Burst => (&["/results/0/data/burst"], 0),
            Part::Access => (
                &["/results/0/figures/seeks", "/results/0/data/access"],
                self.surface.data.access_errors.values().sum(),
            ),
        };
        let places = [&["/results/0/data/device"], places].concat();
        tainted(reasons, (name, record), &places, &[]);
        if record.partial && record.plan.workloads().is_empty() {
            reasons.add("interrupted", format!("{name} was cut short"));
        }
        if failed > 0 {
            reasons.add("io-errors", format!("operations failed in {name}"));
        }
    }
}

/// What only one part of a survey has.
fn part_conditions(pair: &mut Between<'_>, a: Surveyed<'_>, b: Surveyed<'_>) {
    let plan = |s: Surveyed<'_>| s.run.record.plan.survey().cloned();
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
            let bytes =
                |s: Surveyed<'_>| s.surface.data.burst.as_ref().map_or(0, |burst| burst.bytes);
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
