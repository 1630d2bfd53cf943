//! The metrics of a survey: rates by position, the burst rate, access times.
//!
//! What a curve looks like is no error of it. The average has the record's own interval, which
//! knows that. The slowest and the fastest point are known as well as any point is: by how much the
//! ratio of the two curves differs between neighbouring positions (von Neumann 1941), in which
//! their shapes cancel.

use super::comparable_survey::{Part, Surveyed, of_survey};
use super::figures::of_estimates;
use super::ratio::Within;
use super::rows::{Name, Row};
use crate::estimate::student::multiple_95;
use crate::estimate::{variance, widening};
use diskproof_model::comparison::{Basis, Figure, Holder, Reason, Unmatched};
use diskproof_model::record::Estimate;
use diskproof_model::surface::{RateSummary, SeekPattern};

/// A figure of a curve and where it stands.
type Extract = (Figure, fn(&RateSummary) -> f64);

/// Fewest positions that say how a curve varies.
const POSITIONS_MIN: usize = 10;
/// Fewest accesses that say how long one takes.
const ACCESSES_MIN: usize = 10;

/// Both sides of a survey.
struct SurveySides<'s, 'a> {
    a: &'s [Surveyed<'a>],
    b: &'s [Surveyed<'a>],
}

/// Every metric that both sides have; what only one has goes to `unmatched`.
pub(super) fn rows(
    a: &[Surveyed<'_>],
    b: &[Surveyed<'_>],
    unmatched: &mut Vec<Unmatched>,
) -> Vec<Row> {
    let sides = SurveySides { a, b };
    let mut rows = sides.part(Part::Curve, unmatched);
    rows.extend(sides.part(Part::Burst, unmatched));
    rows.extend(sides.part(Part::Access, unmatched));
    rows
}

fn side_with<'a>(side: &[Surveyed<'a>], part: Part) -> Vec<Surveyed<'a>> {
    side.iter().filter(|s| has(s, part)).copied().collect()
}

fn has(s: &Surveyed<'_>, part: Part) -> bool {
    match part {
        Part::Curve => s.surface.rate.is_some(),
        Part::Burst => s.surface.burst.is_some(),
        Part::Access => !s.surface.seeks.is_empty(),
    }
}

fn subject(part: Part) -> &'static str {
    match part {
        Part::Curve => "curve",
        Part::Burst => "burst",
        Part::Access => "access",
    }
}

impl SurveySides<'_, '_> {
    fn part(&self, part: Part, unmatched: &mut Vec<Unmatched>) -> Vec<Row> {
        let of = |side: &[Surveyed<'_>]| side.iter().any(|s| has(s, part));
        match (of(self.a), of(self.b)) {
            (false, false) => Vec::new(),
            (true, true) => self.with(part),
            (in_a, _) => {
                let only = if in_a { Holder::A } else { Holder::B };
                unmatched.push(Unmatched {
                    subject: subject(part).to_owned(),
                    only,
                    why: None,
                });
                Vec::new()
            }
        }
    }

    fn with(&self, part: Part) -> Vec<Row> {
        // A run without this part says nothing about it.
        let (a, b) = (side_with(self.a, part), side_with(self.b, part));
        let reasons = of_survey(&[a.as_slice(), &b].concat(), part);
        match part {
            Part::Curve => curve(&a, &b, &reasons),
            Part::Burst => burst(&a, &b, &reasons).into_iter().collect(),
            Part::Access => access(&a, &b, &reasons),
        }
    }
}

fn name(part: Part, target: usize, metric: &str, figure: Figure, headline: bool) -> Name {
    let subject = subject(part).to_owned();
    Name {
        metric: format!("{subject}.{metric}"),
        subject,
        target,
        op: None,
        figure,
        headline,
    }
}

fn curve(a: &[Surveyed<'_>], b: &[Surveyed<'_>], reasons: &[Reason]) -> Vec<Row> {
    let Some(target) = a.first().map(|s| s.surface.target) else {
        return Vec::new();
    };
    let of_a_point = if a.len() == 1 && b.len() == 1 {
        point_error(&a[0], &b[0])
    } else {
        None
    };
    let wall_ns = a
        .iter()
        .chain(b)
        .map(|s| s.surface.curve_ns)
        .max()
        .unwrap_or(0);
    let figures: [Extract; 3] = [
        (Figure::CurveAverage, |rate| rate.average.value),
        (Figure::CurveMin, |rate| rate.min),
        (Figure::CurveMax, |rate| rate.max),
    ];
    let row = |(figure, value): Extract| {
        let estimates = |side: &[Surveyed<'_>]| -> Vec<Estimate> {
            side.iter()
                .filter_map(|s| s.surface.rate.as_ref())
                .map(|rate| estimate(rate, figure, value(rate)))
                .collect()
        };
        let (mut a, mut b) = (of_estimates(&estimates(a))?, of_estimates(&estimates(b))?);
        let headline = figure == Figure::CurveAverage;
        if let Some((error, freedom)) = of_a_point.filter(|_| !headline) {
            // The error belongs to the pair; half of its square to each side.
            let half = error / std::f64::consts::SQRT_2;
            (a.sample.within, b.sample.within) = (
                Within::Error {
                    error: half,
                    freedom,
                },
                Within::Error {
                    error: half,
                    freedom,
                },
            );
        }
        let mut row = Row::new(
            name(Part::Curve, target, figure.as_str(), figure, headline),
            (a, b),
            wall_ns,
            reasons,
        );
        row.basis = of_a_point.map(|_| Basis::Positions);
        Some(row)
    };
    figures.into_iter().filter_map(row).collect()
}

/// The average has the record's interval; an extreme has none from one curve alone.
fn estimate(rate: &RateSummary, figure: Figure, value: f64) -> Estimate {
    match figure {
        Figure::CurveAverage => rate.average.clone(),
        _ => Estimate {
            n: 1,
            value,
            half_width_95: None,
            unit: rate.average.unit.clone(),
        },
    }
}

/// Error of the logarithm of the ratio of two curves at one position, and its degrees of freedom;
/// `None` where they do not have the same number of positions, or too few.
fn point_error(a: &Surveyed<'_>, b: &Surveyed<'_>) -> Option<(f64, f64)> {
    let (a, b) = (&a.run.record.curve, &b.run.record.curve);
    let pairs = a
        .iter()
        .zip(b)
        .map(|(a, b)| (a.bytes_per_second, b.bytes_per_second));
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

fn burst(a: &[Surveyed<'_>], b: &[Surveyed<'_>], reasons: &[Reason]) -> Option<Row> {
    let estimates = |side: &[Surveyed<'_>]| -> Vec<Estimate> {
        side.iter()
            .filter_map(|s| s.surface.burst.as_ref())
            .map(|burst| burst.throughput.clone())
            .collect()
    };
    let both = (of_estimates(&estimates(a))?, of_estimates(&estimates(b))?);
    let name = name(
        Part::Burst,
        a.first()?.surface.target,
        Figure::Throughput.as_str(),
        Figure::Throughput,
        false,
    );
    Some(Row::new(name, both, 0, reasons))
}

fn access(a: &[Surveyed<'_>], b: &[Surveyed<'_>], reasons: &[Reason]) -> Vec<Row> {
    let Some(first) = a.first() else {
        return Vec::new();
    };
    let row = |seek: &SeekPattern| {
        let told = |side: &[Surveyed<'_>]| {
            let estimates: Option<Vec<Estimate>> =
                side.iter().map(|s| access_estimate(s, *seek)).collect();
            of_estimates(&estimates?)
        };
        let name = name(
            Part::Access,
            first.surface.target,
            &seek.as_str().replace(' ', "-"),
            Figure::AccessTime,
            *seek == SeekPattern::Random,
        );
        Some(Row::new(name, (told(a)?, told(b)?), 0, reasons))
    };
    first.surface.seeks.keys().filter_map(row).collect()
}

/// Mean access time of a pattern, from its accesses in their order: where they are alike for a
/// while, they tell less.
fn access_estimate(s: &Surveyed<'_>, seek: SeekPattern) -> Option<Estimate> {
    let told = &s.surface.seeks.get(&seek)?.mean;
    let points = s
        .run
        .record
        .access
        .iter()
        .filter(|point| point.seek == seek);
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
