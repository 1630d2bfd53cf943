//! The ratio of two figures: its interval, how likely chance alone would make it, and what it comes
//! to. Works on logarithms, so that B over A and A over B are exact inverses in everything. Knows
//! nothing of workloads.
//!
//! Intervals of the two sides are joined by the method of variance estimates recovery (Zou & Donner
//! 2008), which keeps their asymmetry; for symmetric ones this is Welch's t. Degrees of freedom as
//! Satterthwaite has them, p-values made from the same intervals, adjusted as Holm (1979) does.

use super::distribution::LatencyDistribution;
use crate::estimate::student;
use diskproof_model::comparison::{Basis, Direction, Ratio, Verdict};

/// Error that a verdict of better or worse may have by chance, over all metrics that are looked at
/// together.
pub(super) const ALPHA: f64 = 0.05;
/// Intervals narrower than this share of the margin decide by their middle: a ratio that lies just
/// on the margin would else stay undecided however long one measures.
const NARROW: f64 = 0.1;
/// Standard errors that the advice how much longer to measure has in hand, so that a verdict then
/// comes in four of five cases (the 80 % point of the normal distribution): what is aimed at just
/// so is missed every second time.
const SPARE: f64 = 0.84;
/// Multiples of a standard error beyond which a probability is zero for every purpose.
const MULTIPLES_MAX: f64 = 1e6;

/// A figure of one side, and how well it is known. Errors are those of the natural logarithm:
/// relative ones, as long as they are small.
#[derive(Debug, Clone)]
pub(super) struct SideFigure {
    /// The figure; above zero.
    pub value: f64,
    /// Runs behind it.
    pub runs: usize,
    /// Standard deviation from run to run; `None` of one run.
    pub between: Option<f64>,
    /// What the runs themselves tell.
    pub within: Within,
}

/// How well a figure is known from within its runs.
#[derive(Debug, Clone)]
pub(super) enum Within {
    /// By a standard error.
    Error {
        /// Of the logarithm.
        error: f64,
        /// Degrees of freedom.
        freedom: f64,
    },
    /// By the ranks of a distribution.
    Ranks {
        /// The distribution.
        distribution: LatencyDistribution,
        /// Which quantile the figure is.
        quantile: f64,
        /// Independent latencies that it is worth.
        effective: f64,
        /// Degrees of freedom of what told that.
        freedom: f64,
    },
    /// Not at all: too short.
    Unknown,
}

/// One arm of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    /// Downwards.
    Below,
    /// Upwards.
    Above,
}

impl SideFigure {
    /// Length of an arm of the interval at `multiple` standard errors, in logarithms; infinite
    /// where nothing bounds it.
    pub(super) fn arm(&self, arm: Arm, multiple: f64) -> f64 {
        let between = self.between.map_or(0.0, |deviation| {
            multiple * deviation / (self.runs as f64).sqrt()
        });
        let within = match &self.within {
            Within::Error { error, .. } => multiple * error,
            Within::Ranks {
                distribution,
                quantile,
                effective,
                ..
            } => {
                let (low, high) = rank_bounds(*quantile, *effective, multiple);
                let bound = match arm {
                    Arm::Below => distribution.at(low),
                    // The longest latency seen bounds nothing: another run has a longer one.
                    Arm::Above if (1.0 - high) * distribution.count() as f64 >= 1.0 => {
                        distribution.at(high)
                    }
                    Arm::Above => return f64::INFINITY,
                };
                ((bound.max(1) as f64).ln() - self.value.ln()).abs()
            }
            Within::Unknown => return f64::INFINITY,
        };
        // Runs vary at least by what varies within them; few of them may look more alike by chance.
        within.max(between)
    }

    fn freedom(&self) -> f64 {
        match (&self.within, self.between) {
            (_, Some(_)) => (self.runs.max(2) - 1) as f64,
            (Within::Error { freedom, .. } | Within::Ranks { freedom, .. }, None) => *freedom,
            (Within::Unknown, None) => 1.0,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self.within, Within::Unknown)
    }
}

/// Wilson's interval (1927) of a share that was `quantile` among `n`.
fn rank_bounds(quantile: f64, n: f64, multiple: f64) -> (f64, f64) {
    let square = multiple * multiple;
    let scale = 1.0 + square / n;
    let centre = (quantile + square / (2.0 * n)) / scale;
    let half = multiple / scale * (quantile * (1.0 - quantile) / n + square / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// Two figures joined.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    a: SideFigure,
    b: SideFigure,
    /// Logarithm of B over A.
    log: f64,
    freedom: f64,
}

impl Joined {
    /// `None` where one of them is not known or zero.
    pub(super) fn of(a: &SideFigure, b: &SideFigure) -> Option<Self> {
        if !(a.is_known() && b.is_known() && a.value > 0.0 && b.value > 0.0) {
            return None;
        }
        let (mut a, mut b) = (a.clone(), b.clone());
        // A single run beside several varies from run to run as they do.
        let lent = match (a.between, b.between) {
            (Some(deviation), None) => {
                b.between = Some(deviation);
                Some(a.freedom())
            }
            (None, Some(deviation)) => {
                a.between = Some(deviation);
                Some(b.freedom())
            }
            _ => None,
        };
        let freedom = lent.unwrap_or_else(|| satterthwaite(&a, &b));
        // A difference, not the logarithm of a ratio: exactly the opposite when the sides are
        // swapped. Histograms make distances that are equal to the last bit, and a bit of
        // rounding would then decide on the p-value.
        let log = b.value.ln() - a.value.ln();
        Some(Self { a, b, log, freedom })
    }

    /// Logarithm of B over A.
    pub(super) fn log(&self) -> f64 {
        self.log
    }

    /// Distance of an end of the interval at `multiple` standard errors from the ratio.
    fn reach(&self, arm: Arm, multiple: f64) -> f64 {
        let (of_a, of_b) = match arm {
            Arm::Below => (Arm::Above, Arm::Below),
            Arm::Above => (Arm::Below, Arm::Above),
        };
        self.a.arm(of_a, multiple).hypot(self.b.arm(of_b, multiple))
    }

    /// Both arms of the 95 % interval.
    pub(super) fn arms_95(&self) -> (f64, f64) {
        let multiple = student::quantile(1.0 - ALPHA / 2.0, self.freedom);
        (
            self.reach(Arm::Below, multiple),
            self.reach(Arm::Above, multiple),
        )
    }

    /// Standard errors between the ratio and 1: at which multiple the interval begins to hold 1.
    pub(super) fn statistic(&self) -> f64 {
        let arm = if self.log > 0.0 {
            Arm::Below
        } else {
            Arm::Above
        };
        let (mut low, mut high) = (0.0, MULTIPLES_MAX);
        if self.log == 0.0 || self.reach(arm, high) < self.log.abs() {
            return if self.log == 0.0 { 0.0 } else { high };
        }
        // Sixty halvings of a million leave less than any double tells apart.
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.reach(arm, middle) < self.log.abs() {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }

    /// Probability of a ratio this far from 1, either way, where the truth is 1.
    pub(super) fn p_value(&self) -> f64 {
        student::two_sided(self.statistic(), self.freedom)
    }

    /// For the record.
    pub(super) fn ratio(&self) -> Ratio {
        let (below, above) = self.arms_95();
        Ratio {
            value: self.log.exp(),
            low_95: (self.log - below).exp(),
            high_95: Some((self.log + above).exp()).filter(|r| r.is_finite()),
        }
    }

    /// Where the interval comes from.
    pub(super) fn basis(&self) -> Basis {
        if self.a.between.is_some() {
            Basis::BetweenRuns
        } else {
            Basis::WithinRuns
        }
    }
}

fn satterthwaite(a: &SideFigure, b: &SideFigure) -> f64 {
    let (fa, fb) = (a.freedom(), b.freedom());
    let variance = |s: &SideFigure| s.arm(Arm::Below, 1.0).powi(2);
    let (va, vb) = (variance(a), variance(b));
    let least = fa.min(fb);
    if va + vb > 0.0 {
        ((va + vb).powi(2) / (va * va / fa + vb * vb / fb)).max(least)
    } else {
        least
    }
}

/// Holm's adjusted p-values: the error over all of them stays below [`ALPHA`] however they depend
/// on each other (rates and latencies do).
pub(super) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|i, j| p_values[*i].total_cmp(&p_values[*j]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        most = most
            .max(p_values[index] * (p_values.len() - rank) as f64)
            .min(1.0);
        adjusted[index] = most;
    }
    adjusted
}

/// A ratio compared with the margin.
pub(super) struct Judged {
    pub verdict: Verdict,
    /// Times as much as there is that would decide, if it is undecided and that can be told.
    pub times: Option<f64>,
}

/// What a ratio comes to. Better or worse: beyond the margin, and surely not 1. Same: all of the
/// interval within the margin.
pub(super) fn judge(
    joined: &Joined,
    p_adjusted: f64,
    margin: f64,
    better: Direction,
    family: usize,
) -> Judged {
    let (margin, distance) = ((1.0 + margin).ln(), joined.log().abs());
    let (below, above) = joined.arms_95();
    let longer = below.max(above);
    if distance <= margin {
        let farthest = (joined.log() - below)
            .abs()
            .max((joined.log() + above).abs());
        if farthest <= margin || longer <= NARROW * margin {
            return Judged {
                verdict: Verdict::Same,
                times: None,
            };
        }
        let room = (margin - distance).max(NARROW * margin);
        let multiple = student::quantile(1.0 - ALPHA / 2.0, joined.freedom);
        let times = (longer / room * (1.0 + SPARE / multiple)).powi(2);
        return Judged {
            verdict: Verdict::Undecided,
            times: Some(times).filter(|t| t.is_finite()),
        };
    }
    if p_adjusted < ALPHA {
        let is_better = (joined.log() > 0.0) == (better == Direction::Higher);
        return Judged {
            verdict: if is_better {
                Verdict::Better
            } else {
                Verdict::Worse
            },
            times: None,
        };
    }
    let wanted = student::quantile(
        1.0 - ALPHA / (2.0 * family.max(1) as f64),
        joined.freedom.max(3.0),
    );
    let times = ((wanted + SPARE) / joined.statistic()).powi(2);
    Judged {
        verdict: Verdict::Undecided,
        times: Some(times).filter(|t| t.is_finite()),
    }
}
