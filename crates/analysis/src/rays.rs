//! The boundary of reads and writes at which a promise is kept, from searches at several shares of
//! reads.
//!
//! A *ray* is a search at one share of reads. The simplest disk spends one time on each read and
//! another on each write, whatever the mix is. The cost of a request, which is one over the rate,
//! is then a straight line over the share of reads. The line is fitted to the decided rays by their
//! intervals (weighted least squares). Rays that are farther from it than their intervals allow
//! widen its errors, and the farthest one is named.

use crate::estimate::student::multiple_95;
use crate::load::load_figures;
use diskproof_model::digits::{figure_text, to_a_percent};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, Workloads};
use diskproof_model::rate::{LoadData, LoadFigures, RatePlan, RateTrial};
use diskproof_model::rays::{
    BOUNDARY_RAYS_MIN, RayBend, RayBoundary, RayFigures, RaysData, RaysFigures, RaysRecord,
};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::units::{format_latency, format_percent};

/// Half-width of a 95 % interval in standard errors (normal distribution).
const DEVIATIONS_95: f64 = 1.96;
/// A ray is off the line if its distance is at least this many of its standard errors: of a disk
/// with a straight line, less than one ray in a hundred is.
const BEND_DEVIATIONS: f64 = 3.0;
/// A ray that is off the line by less than this share is not named, however certain that is.
const BEND_SHARE_MIN: f64 = 0.03;

/// The results of a plan with several searches; `None` of another plan. `record` must already have
/// its rows, their limits and the findings.
pub(crate) fn rays_record(record: &Record, trials: &[RateTrial]) -> Option<RaysRecord> {
    let workloads = record.plan.workload_task()?;
    let Decide::Rate(plan) = &workloads.decide else {
        return None;
    };
    if workloads.searched().count() < 2 {
        return None;
    }
    let (mut data, mut rays) = (Vec::new(), Vec::new());
    for (index, workload) in workloads.searched() {
        let own: Vec<RateTrial> = trials
            .iter()
            .filter(|trial| trial.workload == index)
            .cloned()
            .collect();
        rays.push(RayFigures {
            read_share: f64::from(workload.streams.permille(OpKind::Read)) / 1000.0,
            load: load_figures(record, plan, index, &own),
        });
        data.push(LoadData { trials: own });
    }
    let boundary = fit_boundary(&rays);
    Some(RaysRecord {
        data: RaysData { rays: data },
        figures: RaysFigures { rays, boundary },
    })
}

/// The answer of a decided ray as a point of the fit.
#[derive(Debug, Clone, Copy)]
struct RayEnd {
    read_share: f64,
    /// Seconds of the target that a request takes: one over the rate.
    cost: f64,
    /// Standard error of the cost.
    error: f64,
}

impl RayEnd {
    /// The end of a ray; `None` of an undecided one, and of figures that only a damaged record can
    /// have.
    fn from_ray(ray: &RayFigures) -> Option<Self> {
        let LoadFigures {
            low, rate, high, ..
        } = ray.load;
        let is_interval = low > 0.0 && low < high && rate >= low && high.is_finite();
        if !ray.is_decided() || !is_interval {
            return None;
        }
        Some(Self {
            read_share: ray.read_share,
            cost: 1.0 / rate,
            error: (high - low) / 2.0 / DEVIATIONS_95 / (rate * rate),
        })
    }

    /// Its weight in the fit: one over the variance of its cost.
    fn weight(&self) -> f64 {
        1.0 / (self.error * self.error)
    }
}

/// The fitted line: the cost of a read and of a write, in seconds of the target, with their
/// variances.
#[derive(Debug, Clone, Copy)]
struct CostLine {
    /// The cost of a read.
    read: f64,
    /// The cost of a write.
    write: f64,
    read_variance: f64,
    write_variance: f64,
    covariance: f64,
}

impl CostLine {
    /// Fits the line by weighted least squares; `None` where the rays do not separate reads from
    /// writes, or a cost would not be positive.
    fn through(ends: &[RayEnd]) -> Option<Self> {
        // The normal equations of cost = share * read + (1 - share) * write.
        let (mut reads, mut writes, mut both) = (0.0, 0.0, 0.0);
        let (mut read_cost, mut write_cost) = (0.0, 0.0);
        for end in ends {
            let (weight, share) = (end.weight(), end.read_share);
            let rest = 1.0 - share;
            reads += weight * share * share;
            writes += weight * rest * rest;
            both += weight * share * rest;
            read_cost += weight * share * end.cost;
            write_cost += weight * rest * end.cost;
        }
        let determinant = reads * writes - both * both;
        let line = Self {
            read: (writes * read_cost - both * write_cost) / determinant,
            write: (reads * write_cost - both * read_cost) / determinant,
            read_variance: writes / determinant,
            write_variance: reads / determinant,
            covariance: -both / determinant,
        };
        let is_possible = line.read > 0.0 && line.write > 0.0;
        if is_possible && line.read_variance.is_finite() && line.write_variance.is_finite() {
            Some(line)
        } else {
            None
        }
    }

    /// The cost of a request at this share of reads, in seconds.
    fn cost_at(&self, read_share: f64) -> f64 {
        read_share * self.read + (1.0 - read_share) * self.write
    }

    /// The variance about the line over that which the errors of the ends explain; at least 1.
    fn misfit(&self, ends: &[RayEnd]) -> f64 {
        let mut squares = 0.0;
        for end in ends {
            squares += ((end.cost - self.cost_at(end.read_share)) / end.error).powi(2);
        }
        (squares / line_freedom(ends)).max(1.0)
    }

    /// The end that lies farthest from the line; `None` where every distance may be chance.
    fn farthest_end(&self, ends: &[RayEnd]) -> Option<RayBend> {
        let mut farthest: Option<RayBend> = None;
        for end in ends {
            let on_line = self.cost_at(end.read_share);
            let deviation = on_line / end.cost - 1.0;
            let is_chance = (end.cost - on_line).abs() < BEND_DEVIATIONS * end.error;
            if is_chance || deviation.abs() < BEND_SHARE_MIN {
                continue;
            }
            if farthest.is_none_or(|bend| deviation.abs() > bend.deviation.abs()) {
                farthest = Some(RayBend {
                    read_share: end.read_share,
                    deviation,
                });
            }
        }
        farthest
    }
}

/// The degrees of freedom about a line through these ends; at least 1.
fn line_freedom(ends: &[RayEnd]) -> f64 {
    ends.len().saturating_sub(2).max(1) as f64
}

/// Fits the boundary; `None` where too few rays are decided.
fn fit_boundary(rays: &[RayFigures]) -> Option<RayBoundary> {
    let mut ends = Vec::new();
    for ray in rays {
        ends.extend(RayEnd::from_ray(ray));
    }
    if ends.len() < BOUNDARY_RAYS_MIN || 2 * ends.len() <= rays.len() {
        return None;
    }
    let line = CostLine::through(&ends)?;
    let n = ends.len() as u64;
    let bend = line.farthest_end(&ends);
    // The errors of the rays are known, until they lie off the line: then the few distances from
    // the line show the error, and not well.
    let multiple = if bend.is_some() {
        multiple_95(line_freedom(&ends))
    } else {
        DEVIATIONS_95
    };
    let widened = multiple * line.misfit(&ends).sqrt();
    let read_error = widened * line.read_variance.sqrt() / line.read;
    let write_error = widened * line.write_variance.sqrt() / line.write;
    let common = widened * widened * line.covariance / (line.read * line.write);
    let ratio_error = (read_error.powi(2) + write_error.powi(2) - 2.0 * common)
        .max(0.0)
        .sqrt();
    let (reads, writes) = (1.0 / line.read, 1.0 / line.write);
    let write_cost = line.write / line.read;
    Some(RayBoundary {
        rays: ends.len(),
        reads: Estimate::new(n, reads, Some(read_error * reads), "1/s"),
        writes: Estimate::new(n, writes, Some(write_error * writes), "1/s"),
        write_cost: Estimate::new(n, write_cost, Some(ratio_error * write_cost), "1"),
        bend,
    })
}

/// The boundary as a clause of the headline; `None` where the plan has no search.
pub(crate) fn rays_clause(record: &Record, rays: &RaysRecord) -> Option<String> {
    let figures = &rays.figures;
    let Workloads {
        decide: Decide::Rate(plan),
        ..
    } = record.plan.workload_task()?
    else {
        return None;
    };
    let decided = figures.rays.iter().filter(|ray| ray.is_decided()).count();
    let Some(boundary) = &figures.boundary else {
        return Some(format!(
            "undecided {}: only {decided} of {} shares of reads have an answer, too few for a \
             boundary",
            promise_text(plan),
            figures.rays.len()
        ));
    };
    let mut clause = format!(
        "sustains {} reads or {} writes, {}; in a mix, a write takes the place of {} reads{}",
        end_text(&boundary.reads),
        end_text(&boundary.writes),
        promise_text(plan),
        cost_text(&boundary.write_cost),
        bend_text(boundary.bend),
    );
    if boundary.rays < figures.rays.len() {
        clause += &format!(
            "; {} of {} shares of reads are undecided",
            figures.rays.len() - boundary.rays,
            figures.rays.len()
        );
    }
    Some(clause)
}

fn promise_text(plan: &RatePlan) -> String {
    format!(
        "with {} % within {}",
        plan.percent,
        format_latency(plan.limit_ns)
    )
}

/// `4310/s (95 %: 4150 to 4460)`.
fn end_text(rate: &Estimate) -> String {
    let half_width = rate.half_width_95.unwrap_or_default();
    format!(
        "{} (95 %: {} to {})",
        figure_text(rate.value, rate.half_width_95, "1/s"),
        to_a_percent((rate.value - half_width).max(0.0)),
        to_a_percent(rate.value + half_width)
    )
}

/// `3.6 (3.4 to 3.8)`.
fn cost_text(cost: &Estimate) -> String {
    let half_width = cost.half_width_95.unwrap_or_default();
    format!(
        "{} ({} to {})",
        to_a_percent(cost.value),
        to_a_percent((cost.value - half_width).max(0.0)),
        to_a_percent(cost.value + half_width)
    )
}

/// `, but at 50 % reads it sustains 12 % less than that`.
fn bend_text(bend: Option<RayBend>) -> String {
    let Some(bend) = bend else {
        return String::new();
    };
    let direction = if bend.deviation < 0.0 { "less" } else { "more" };
    format!(
        ", but at {} reads it sustains {} {direction} than that",
        format_percent(bend.read_share),
        format_percent(bend.deviation.abs())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::searched::answer;
    use diskproof_model::rate::LoadOutcome;

    /// A ray whose rate is known to this share.
    fn ray(read_share: f64, rate: f64, half: f64, outcome: LoadOutcome) -> RayFigures {
        RayFigures {
            read_share,
            load: answer(outcome, rate, half),
        }
    }

    /// Seven shares of a disk that serves `reads` or `writes` a second.
    fn rays_of(reads: f64, writes: f64) -> Vec<RayFigures> {
        let mut rays = Vec::new();
        for step in 0..7 {
            let share = f64::from(step) / 6.0;
            let rate = 1.0 / (share / reads + (1.0 - share) / writes);
            rays.push(ray(share, rate, 0.03, LoadOutcome::Sustained));
        }
        rays
    }

    fn is_within(estimate: &Estimate, truth: f64) -> bool {
        (estimate.value - truth).abs() <= estimate.half_width_95.unwrap()
    }

    #[test]
    fn boundary_is_what_a_read_and_a_write_cost() {
        let found = fit_boundary(&rays_of(4000.0, 1000.0)).unwrap();
        assert!((found.reads.value - 4000.0).abs() < 1.0, "{found:?}");
        assert!((found.writes.value - 1000.0).abs() < 1.0, "{found:?}");
        assert!((found.write_cost.value - 4.0).abs() < 0.01, "{found:?}");
        assert_eq!((found.rays, found.bend), (7, None));
        // Seven rays know the ends better than one does.
        let width = found.writes.relative_half_width().unwrap();
        assert!((0.01..0.03).contains(&width), "{found:?}");
    }

    /// The rays differ from the line as their intervals allow.
    #[test]
    fn interval_of_the_boundary_holds_the_truth() {
        let mut random = crate::fixture::test_rng::TestRng(3);
        let mut inside = [0, 0, 0];
        for _ in 0..400 {
            let mut rays = rays_of(4000.0, 1000.0);
            for ray in &mut rays {
                // The sum of twelve has the variance of one.
                let mut normal = -6.0;
                for _ in 0..12 {
                    normal += random.whole(0, 1_000_000) as f64 / 1e6;
                }
                let factor = 1.0 + 0.03 / DEVIATIONS_95 * normal;
                ray.load.rate *= factor;
                ray.load.low *= factor;
                ray.load.high *= factor;
            }
            let found = fit_boundary(&rays).unwrap();
            let truths = [
                is_within(&found.reads, 4000.0),
                is_within(&found.writes, 1000.0),
                is_within(&found.write_cost, 4.0),
            ];
            for (count, holds) in inside.iter_mut().zip(truths) {
                *count += u32::from(holds);
            }
        }
        // 95 % and more, as a misfit only widens the interval.
        assert!(inside.iter().all(|count| *count >= 375), "{inside:?}");
    }

    #[test]
    fn undecided_rays_are_not_in_the_boundary() {
        let mut rays = rays_of(4000.0, 1000.0);
        for place in [0, 3, 5] {
            let share = rays[place].read_share;
            rays[place] = ray(share, 9e9, 0.03, LoadOutcome::FewEpisodes);
        }
        let found = fit_boundary(&rays).unwrap();
        assert_eq!(found.rays, 4);
        assert!(is_within(&found.writes, 1000.0), "{found:?}");
        // "At least" has no upper end.
        rays[6] = ray(1.0, 8000.0, 0.03, LoadOutcome::AtLeast);
        assert_eq!(fit_boundary(&rays), None);
    }

    #[test]
    fn boundary_that_no_line_is_names_its_farthest_ray() {
        let mut rays = rays_of(4000.0, 1000.0);
        rays[3] = ray(0.5, 1200.0, 0.03, LoadOutcome::Sustained);
        let straight = fit_boundary(&rays_of(4000.0, 1000.0)).unwrap();
        let found = fit_boundary(&rays).unwrap();
        let bend = found.bend.unwrap();
        assert_eq!(bend.read_share, 0.5);
        assert!((-0.3..-0.1).contains(&bend.deviation), "{bend:?}");
        assert!(found.reads.half_width_95 > straight.reads.half_width_95);
    }

    /// A bend of three rays: the error of the line has one degree of freedom.
    #[test]
    fn bent_line_through_three_rays_is_hardly_known() {
        let rays: Vec<RayFigures> = [(0.0, 1000.0), (0.5, 1200.0), (1.0, 4000.0)]
            .iter()
            .map(|(share, rate)| ray(*share, *rate, 0.03, LoadOutcome::Sustained))
            .collect();
        let found = fit_boundary(&rays).unwrap();
        assert!(found.bend.is_some(), "{found:?}");
        // Student's t of one degree of freedom is 12.7, and the misfit is more than 1.
        let width = found.writes.relative_half_width().unwrap();
        assert!(width > 12.7 * 0.01, "{found:?}");
        assert!(is_within(&found.reads, 3000.0), "{found:?}");
    }

    #[test]
    fn damaged_rays_are_no_boundary() {
        for value in [0.0, f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let mut rays = rays_of(4000.0, 1000.0);
            for ray in &mut rays {
                (ray.load.low, ray.load.rate, ray.load.high) = (value, value, value);
            }
            assert_eq!(fit_boundary(&rays), None, "{value}");
        }
        let mut equal = rays_of(4000.0, 1000.0);
        for ray in &mut equal {
            ray.read_share = 0.5;
        }
        assert_eq!(fit_boundary(&equal), None);
    }
}
