//! Finds the parts that both sides measured (a workload, a part of a survey, or a step on files),
//! and takes figures from them. [`super::pending_metric`] makes metrics of these.

use super::earlier::EarlierRuns;
use super::ratio::{RatioEstimate, SideFigure};
use super::reasons::{Compared, reasons_against_comparison};
use super::side_estimate::SideEstimate;
use super::sides::{NamedRun, Run, Sides, sole_holder};
use diskproof_model::comparison::{Holder, Reason};
use diskproof_model::record::Estimate;

/// A figure of both sides.
pub(super) struct PairEstimates {
    pub a: SideEstimate,
    pub b: SideEstimate,
    /// The same figure in groups of earlier runs.
    pub earlier: Vec<SideFigure>,
}

impl PairEstimates {
    /// The ratio of the figure, with the uncertainty that all these runs show; `None` where a side
    /// is zero, or too little was measured.
    pub(super) fn ratio(&self) -> Option<RatioEstimate> {
        RatioEstimate::from_sides(&self.a.figure, &self.b.figure, &self.earlier)
    }
}

/// The sides that have a part.
pub(super) enum PartOnSides<T> {
    /// Both sides have it.
    Both(Pair<T>),
    /// Only this side has it.
    OneSide(Holder),
    /// Neither side has it.
    Neither,
}

/// A part that both sides have, in their runs and in groups of earlier runs.
pub(super) struct Pair<T> {
    pub a: Vec<T>,
    pub b: Vec<T>,
    /// The part in each group of earlier runs that repeat it.
    earlier: Vec<Vec<T>>,
    /// The reasons why its figures are not comparable.
    pub reasons: Vec<Reason>,
}

impl<T: Compared> Pair<T> {
    /// Looks for a part in all runs. `find` takes the name of a run and the run, and returns the
    /// part if that run has it.
    pub(super) fn find<'s>(
        sides: &'s Sides<'s>,
        earlier: &'s EarlierRuns<'s>,
        find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
    ) -> PartOnSides<T> {
        let a = parts_of_side(&sides.a, &find);
        let b = parts_of_side(&sides.b, &find);
        if let Some(holder) = sole_holder(&a, &b) {
            return PartOnSides::OneSide(holder);
        }
        let Some(first) = a.first() else {
            return PartOnSides::Neither;
        };
        PartOnSides::Both(Self {
            earlier: earlier.repeats_of(*first, |run| find("an earlier run", run)),
            reasons: reasons_against_comparison(&[a.as_slice(), &b].concat()),
            a,
            b,
        })
    }

    /// A pair with the same part on both sides, to get the figures of one run.
    pub(super) fn with_itself(part: T) -> Self {
        Self {
            a: vec![part],
            b: vec![part],
            earlier: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// The part in each run of both sides.
    pub(super) fn parts(&self) -> impl Iterator<Item = &T> {
        self.a.iter().chain(&self.b)
    }

    /// A figure on both sides and in the groups of earlier runs; `None` where a side lacks it.
    pub(super) fn side_estimates(
        &self,
        estimate: impl Fn(&[T]) -> Option<SideEstimate>,
    ) -> Option<PairEstimates> {
        let mut earlier = Vec::new();
        for group in &self.earlier {
            if let Some(side_estimate) = estimate(group) {
                earlier.push(side_estimate.figure);
            }
        }
        Some(PairEstimates {
            a: estimate(&self.a)?,
            b: estimate(&self.b)?,
            earlier,
        })
    }

    /// The same for a figure that each run has by itself; `None` where a run lacks it.
    pub(super) fn estimates_of_runs(
        &self,
        figure: impl Fn(&T) -> Option<Estimate>,
    ) -> Option<PairEstimates> {
        self.side_estimates(|runs| {
            let estimates: Option<Vec<Estimate>> = runs.iter().map(&figure).collect();
            SideEstimate::from_estimates(&estimates?)
        })
    }
}

/// The part in each run of a side that has it.
fn parts_of_side<'s, T>(
    side: &'s [NamedRun<'s>],
    find: impl Fn(&'s str, &'s Run<'s>) -> Option<T>,
) -> Vec<T> {
    let mut parts = Vec::new();
    for named in side {
        parts.extend(find(&named.name, named.run));
    }
    parts
}
