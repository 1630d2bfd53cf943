//! Compares surveys: gives the metrics of rates by position, burst rate and access times, or for
//! each part the reasons why two surveys do not measure the same thing.
//!
//! The shape of a curve is not an error. The average has the record's own interval, which takes the
//! shape into account. The slowest and the fastest point have the uncertainty of any point. It
//! follows from the ratio of the two curves at neighbouring positions (von Neumann 1941), in which
//! the shapes cancel.

use super::differing::Differing;
use super::earlier::EarlierRuns;
use super::pair::{Pair, PairEstimates, PartOnSides};
use super::pending_metric::{ComparedFigure, PendingMetric};
use super::ratio::Within;
use super::reasons::{
    Between, Compared, MeasuredSpan, Reasons, add_findings, cache_text, engine_text, kind_text,
};
use super::sides::{Run, Sides, UNNAMED, unmatched_entry};
use super::workload_text::span_text;
use crate::estimate::student::multiple_95;
use crate::estimate::{variance, widening};
use diskproof_model::comparison::{Basis, Figure, Unmatched};
use diskproof_model::figure;
use diskproof_model::figure::part_figure;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::surface::{Coverage, SeekPattern, SurfaceRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_bytes;

/// With fewer positions the variation of a curve is unknown. Chosen, not measured.
const POSITIONS_MIN: usize = 10;
/// A survey that leaves less than this at the end of its target still counts as one of the whole
/// target.
const UNREAD_END_BYTES: u32 = 1 << 20;
/// With fewer accesses the variation of their times is unknown. Chosen, not measured.
const ACCESSES_MIN: usize = 10;

/// The metrics that both sides have. Parts that only one side has are added to `unmatched`.
pub(super) fn survey_metrics(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<PendingMetric> {
    let mut metrics = Vec::new();
    for part in [SurveyPart::Curve, SurveyPart::Burst, SurveyPart::Access] {
        let pair = match Pair::find(sides, earlier, |name, run| {
            SurveyOfRun::find(name, run, part)
        }) {
            PartOnSides::Both(pair) => pair,
            PartOnSides::OneSide(holder) => {
                unmatched.push(unmatched_entry(part.subject(), holder));
                continue;
            }
            PartOnSides::Neither => continue,
        };
        match part {
            SurveyPart::Curve => metrics.extend(curve_metrics(&pair)),
            SurveyPart::Burst => metrics.extend(burst_metric(&pair)),
            SurveyPart::Access => metrics.extend(access_metrics(&pair)),
        }
    }
    metrics
}

/// A part of a survey in the runs of both sides.
type SurveyPair<'a> = Pair<SurveyOfRun<'a>>;

/// The metrics of the curve. Slowest and fastest point take the error of a point from both curves.
fn curve_metrics(pair: &SurveyPair<'_>) -> Vec<PendingMetric> {
    let error_of_point = match (pair.a.as_slice(), pair.b.as_slice()) {
        ([a], [b]) => point_error(a, b),
        _ => None,
    };
    let curve_times = pair.parts().map(|surveyed| surveyed.surface.data.curve_ns);
    let measured_ns = curve_times.max();
    let mut metrics = Vec::new();
    for figure in [Figure::CurveAverage, Figure::CurveMin, Figure::CurveMax] {
        let estimates = pair
            .estimates_of_runs(|surveyed| figure_of_part(surveyed, figure::Part::Curve, figure));
        let Some(mut estimates) = estimates else {
            continue;
        };
        let is_headline = figure == Figure::CurveAverage;
        if let Some(PointError { error, freedom }) = error_of_point
            && !is_headline
        {
            // The error belongs to the pair: each side gets half of its square.
            let side_error = error / std::f64::consts::SQRT_2;
            for side in [&mut estimates.a, &mut estimates.b] {
                side.figure.within = Within::Error {
                    error: side_error,
                    freedom,
                };
            }
        }
        let mut pending = survey_metric(pair, figure.as_str(), figure, estimates, measured_ns);
        pending.metric.headline = is_headline;
        if error_of_point.is_some() && pending.metric.variation.is_none() {
            pending.metric.basis = Basis::Positions;
        }
        metrics.push(pending);
    }
    metrics
}

/// A figure that represents a part of the survey of one run.
pub(super) struct LeadingSurveyFigure {
    pub part: SurveyPart,
    /// The name of its metric.
    pub metric: String,
    pub figure: Figure,
    pub estimate: Estimate,
}

/// The figures that represent the parts of the survey of one run: the average of its curve, and its
/// random access time. Its burst has the rate of a cache.
pub(super) fn leading_survey_figures(run: &Run<'_>) -> Vec<LeadingSurveyFigure> {
    let mut figures = Vec::new();
    if let Some(surveyed) = SurveyOfRun::find(UNNAMED, run, SurveyPart::Curve) {
        let figure = Figure::CurveAverage;
        let estimate = figure_of_part(&surveyed, figure::Part::Curve, figure);
        figures.extend(leading_survey_figure(SurveyPart::Curve, figure, estimate));
    }
    if let Some(surveyed) = SurveyOfRun::find(UNNAMED, run, SurveyPart::Access) {
        let figure = Figure::AccessTime;
        let estimate = access_estimate(&surveyed, SeekPattern::Random);
        figures.extend(leading_survey_figure(SurveyPart::Access, figure, estimate));
    }
    figures
}

fn leading_survey_figure(
    part: SurveyPart,
    figure: Figure,
    estimate: Option<Estimate>,
) -> Option<LeadingSurveyFigure> {
    Some(LeadingSurveyFigure {
        part,
        metric: format!("{}.{}", part.subject(), figure.as_str()),
        figure,
        estimate: estimate?,
    })
}

fn burst_metric(pair: &SurveyPair<'_>) -> Option<PendingMetric> {
    let figure = Figure::Throughput;
    let estimates =
        pair.estimates_of_runs(|surveyed| figure_of_part(surveyed, figure::Part::Burst, figure))?;
    // The burst reads one block again and again, and no flag makes that longer.
    Some(survey_metric(
        pair,
        figure.as_str(),
        figure,
        estimates,
        None,
    ))
}

fn access_metrics(pair: &SurveyPair<'_>) -> Vec<PendingMetric> {
    let Some(first) = pair.a.first() else {
        return Vec::new();
    };
    let mut metrics = Vec::new();
    for seek in first.surface.figures.seeks.keys() {
        let estimates = pair.estimates_of_runs(|surveyed| access_estimate(surveyed, *seek));
        let Some(estimates) = estimates else {
            continue;
        };
        let metric_name = seek.as_str().replace(' ', "-");
        // More accesses are needed for it, whatever they take.
        let mut pending = survey_metric(pair, &metric_name, Figure::AccessTime, estimates, None);
        pending.metric.headline = *seek == SeekPattern::Random;
        metrics.push(pending);
    }
    metrics
}

/// The metric of this name of a part of the survey. `measured_ns` is that of [`ComparedFigure`].
fn survey_metric(
    pair: &SurveyPair<'_>,
    metric_name: &str,
    figure: Figure,
    estimates: PairEstimates,
    measured_ns: Option<u64>,
) -> PendingMetric {
    let ratio = estimates.ratio();
    let subject = pair
        .a
        .first()
        .map_or("", |surveyed| surveyed.part.subject());
    let mut pending = PendingMetric::new(
        format!("{subject}.{metric_name}"),
        ComparedFigure {
            subject,
            figure,
            estimates,
            ratio,
            measured_ns,
            reasons: &pair.reasons,
        },
    );
    pending.metric.target = pair
        .a
        .first()
        .map_or(0, |surveyed| surveyed.surface.data.target);
    pending
}

/// The estimate of a figure of the catalogue; `None` where the run does not have it.
fn figure_of_part(
    surveyed: &SurveyOfRun<'_>,
    part: figure::Part,
    figure: Figure,
) -> Option<Estimate> {
    Some(part_figure(surveyed.run.record, part, figure.as_str())?.estimate())
}

/// The error of the logarithm of the ratio of two curves at one position.
struct PointError {
    error: f64,
    /// Its degrees of freedom.
    freedom: f64,
}

/// The error at one position; `None` where the curves have different numbers of positions, or too
/// few.
fn point_error(a: &SurveyOfRun<'_>, b: &SurveyOfRun<'_>) -> Option<PointError> {
    let (curve_a, curve_b) = (a.run.record.curve(), b.run.record.curve());
    let mut logs = Vec::new();
    for (point_a, point_b) in curve_a.iter().zip(curve_b) {
        let (rate_a, rate_b) = (point_a.bytes_per_second, point_b.bytes_per_second);
        if rate_a > 0.0 && rate_b > 0.0 {
            logs.push((rate_b / rate_a).ln());
        }
    }
    if curve_a.len() != curve_b.len() || logs.len() < POSITIONS_MIN {
        return None;
    }
    Some(PointError::from_neighbours(&logs))
}

impl PointError {
    /// The error of one of these logarithms, which follow each other along the curves, from the
    /// differences of neighbours.
    fn from_neighbours(logs: &[f64]) -> Self {
        assert!(logs.len() > 1, "one position has no neighbour");
        let steps = (logs.len() - 1) as f64;
        let squares: f64 = logs
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).powi(2))
            .sum();
        // A variance from successive differences has two thirds of the usual degrees of freedom.
        Self {
            error: (squares / (2.0 * steps)).sqrt(),
            freedom: steps * 2.0 / 3.0,
        }
    }
}

/// The mean access time of a pattern. Its interval is widened where successive accesses are alike,
/// because such accesses carry less information.
fn access_estimate(surveyed: &SurveyOfRun<'_>, seek: SeekPattern) -> Option<Estimate> {
    let mean = &surveyed.surface.figures.seeks.get(&seek)?.mean;
    let mut latencies = Vec::new();
    for point in surveyed.run.record.access() {
        if point.seek == seek {
            latencies.push(point.latency_ns as f64);
        }
    }
    if latencies.len() < ACCESSES_MIN {
        return Some(mean.clone());
    }
    let n = latencies.len() as f64;
    let half_width_95 =
        Some(multiple_95(n - 1.0) * (variance(&latencies) / n * widening(&latencies)).sqrt());
    Some(Estimate {
        n: latencies.len() as u64,
        half_width_95,
        ..mean.clone()
    })
}

/// A part of a survey in one run.
#[derive(Clone, Copy)]
pub(super) struct SurveyOfRun<'a> {
    pub name: &'a str,
    pub run: &'a Run<'a>,
    pub surface: &'a SurfaceRecord,
    pub part: SurveyPart,
}

impl<'a> SurveyOfRun<'a> {
    /// The part in a run; `None` where the run does not have it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, part: SurveyPart) -> Option<Self> {
        let surface = run.record.surface()?;
        let was_measured = match part {
            SurveyPart::Curve => surface.figures.rate.is_some(),
            SurveyPart::Burst => surface.data.burst.is_some(),
            SurveyPart::Access => !surface.figures.seeks.is_empty(),
        };
        if !was_measured {
            return None;
        }
        Some(Self {
            name,
            run,
            surface,
            part,
        })
    }

    fn target(self) -> Option<&'a TargetIdentity> {
        self.run.record.targets.get(self.surface.data.target)
    }

    /// Returns `true` if the survey covers its whole target.
    fn is_whole(self) -> bool {
        let Some(target) = self.target() else {
            return false;
        };
        surface_span(self.surface).covers(target.size_bytes, UNREAD_END_BYTES)
    }
}

/// A part of a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SurveyPart {
    Curve,
    Burst,
    Access,
}

impl SurveyPart {
    /// Its name in metrics, such as the one before the dot in `curve.average`.
    pub(super) fn subject(self) -> &'static str {
        match self {
            Self::Curve => "curve",
            Self::Burst => "burst",
            Self::Access => "access",
        }
    }
}

impl Compared for SurveyOfRun<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn record(&self) -> &Record {
        self.run.record
    }

    fn add_differences(self, other: Self, reasons: &mut Reasons) {
        let mut pair = reasons.between(self, other);
        pair.add_if_both_differ(
            Differing::TargetKind,
            |part| Some(part.target()?.kind),
            kind_text,
        );
        pair.add_if_different(
            Differing::Operation,
            |part| part.surface.data.survey.operation,
            |op| format!("{}s", op.as_str()),
        );
        pair.add_if_different(
            Differing::Cache,
            |part| part.surface.data.cache.used,
            cache_text,
        );
        pair.add_if_different(
            Differing::Engine,
            |part| part.surface.data.engine,
            engine_text,
        );
        let (span, other_span) = (surface_span(self.surface), surface_span(other.surface));
        let are_whole = self.is_whole() && other.is_whole();
        if self.part != SurveyPart::Burst && !span.is_like(other_span) && !are_whole {
            pair.add(Differing::Span, &span_text(span), &span_text(other_span));
        }
        add_part_differences(&mut pair, self.part);
    }

    /// Only alternation makes findings harmless, and no survey takes turns with another.
    fn add_faults(self, _harmless: &[&str], reasons: &mut Reasons) {
        let (name, record) = (self.name, self.run.record);
        let (part_paths, failed_ops): (&[&str], u64) = match self.part {
            SurveyPart::Curve => (
                &["/results/0/figures/rate", "/results/0/data/curve"],
                record.curve().iter().map(|point| point.errors).sum(),
            ),
            SurveyPart::Burst => (
                &["/results/0/data/burst"],
                // They are those of all that is in no point of the curve, so of the burst, too.
                self.surface.data.access_errors.values().sum(),
            ),
            SurveyPart::Access => (
                &["/results/0/figures/seeks", "/results/0/data/access"],
                self.surface.data.access_errors.values().sum(),
            ),
        };
        let whole: &[&str] = &[
            "/results/0/data/device",
            "/results/0/data/zero_blocks",
            "/results/0/data/unwritten_bytes",
        ];
        let paths = [whole, part_paths].concat();
        add_findings(reasons, name, record, &paths, &[]);
        let data = &self.surface.data;
        let is_cut_short = data.interrupted || data.hang.is_some();
        // A run that ended while its workloads were measured has a whole survey.
        if is_cut_short || (record.partial && record.plan.workloads().is_empty()) {
            reasons.add("interrupted", format!("{name} was cut short"));
        }
        if failed_ops > 0 {
            reasons.add("io-errors", format!("operations failed in {name}"));
        }
    }
}

/// Adds the differences in conditions that only this part of a survey has.
fn add_part_differences(pair: &mut Between<'_, SurveyOfRun<'_>>, part: SurveyPart) {
    match part {
        SurveyPart::Curve => {
            pair.add_if_both_differ(Differing::Coverage, curve_coverage, coverage_text);
        }
        SurveyPart::Burst => pair.add_if_different(Differing::BlockSize, burst_bytes, |bytes| {
            format!("the same {} repeatedly", format_bytes(bytes))
        }),
        SurveyPart::Access => {
            pair.add_if_both_differ(Differing::BlockSize, access_block_bytes, |bytes| {
                format_bytes(u64::from(bytes))
            });
        }
    }
}

fn surface_span(surface: &SurfaceRecord) -> MeasuredSpan {
    MeasuredSpan {
        start_bytes: surface.data.span_start_bytes,
        length_bytes: surface.data.span_bytes,
    }
}

/// The part of the span that the curve was planned to read; `None` where the plan has no curve.
fn curve_coverage(surveyed: SurveyOfRun<'_>) -> Option<CurveCoverage> {
    let curve = surveyed.run.record.plan.survey()?.curve.as_ref()?;
    Some(match curve.coverage {
        Coverage::Full => CurveCoverage::WholeSpan,
        Coverage::Sampled { .. } | Coverage::Blocks { .. } => CurveCoverage::Samples,
    })
}

/// The part of the span that a curve reads. The number of samples may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CurveCoverage {
    WholeSpan,
    Samples,
}

fn coverage_text(coverage: CurveCoverage) -> String {
    match coverage {
        CurveCoverage::WholeSpan => "all of the span was read",
        CurveCoverage::Samples => "samples were read",
    }
    .to_owned()
}

fn burst_bytes(surveyed: SurveyOfRun<'_>) -> u64 {
    match &surveyed.surface.data.burst {
        Some(burst) => burst.bytes,
        None => 0,
    }
}

fn access_block_bytes(surveyed: SurveyOfRun<'_>) -> Option<u32> {
    let access = surveyed.run.record.plan.survey()?.access.as_ref()?;
    Some(access.block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: eleven logarithms that alternate between 0 and 0.1 have ten differences of 0.1. The
    /// sum of squares is 0.1, and √(0.1 ÷ 20) = 0.070711; ten steps have 6.667 degrees of freedom.
    #[test]
    fn error_of_a_point_follows_from_its_neighbours() {
        let logs: Vec<f64> = (0..11).map(|index| f64::from(index % 2) * 0.1).collect();
        let point = PointError::from_neighbours(&logs);
        assert!((point.error - 0.070_711).abs() < 1e-6, "{}", point.error);
        assert!((point.freedom - 6.667).abs() < 1e-3, "{}", point.freedom);
    }

    /// Curves of the same slope on both sides differ by a constant: their shape is no error.
    #[test]
    fn shape_that_both_curves_have_is_no_error() {
        let point = PointError::from_neighbours(&[0.3; 20]);
        assert_eq!(point.error, 0.0);
    }
}
