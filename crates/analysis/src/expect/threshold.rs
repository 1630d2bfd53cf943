//! Defines a threshold: the figure that it names, and how that must relate to a value.

use diskproof_model::figure::{Metric, Part};
use diskproof_model::measurement::OpKind;

/// What a threshold limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A figure of the catalogue. CPU time is in percent of one CPU.
    Figure(&'static Metric),
    /// Warnings and failures among the findings.
    Findings,
    /// The rate of the fastest level of the curve; of a curve without levels, this figure of it.
    FastestLevel {
        /// The figure of the catalogue.
        otherwise: &'static Metric,
    },
    /// Revolutions per minute, as the disk reports them.
    Rpm,
    /// Bytes that the disk reports to hold.
    DiskSize,
}

impl Quantity {
    /// Returns `true` where only a measurement gives the figure, so that a plan must contain it.
    /// The others do not depend on what a run measures.
    pub fn is_measured(self) -> bool {
        match self {
            Self::Figure(_) | Self::FastestLevel { .. } => true,
            Self::Findings | Self::Rpm | Self::DiskSize => false,
        }
    }
}

/// How a figure must relate to its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Relation {
    /// Returns `true` if a value meets the threshold.
    pub(crate) fn holds(self, observed: f64, threshold: f64) -> bool {
        match self {
            Self::AtLeast => observed >= threshold,
            Self::AtMost => observed <= threshold,
            Self::Above => observed > threshold,
            Self::Below => observed < threshold,
        }
    }

    /// Decides whether a figure with these ends of its interval meets a threshold; `None` where one
    /// end meets it and the other does not. Every condition of the user is decided by this.
    pub(crate) fn decides(self, ends: [f64; 2], threshold: f64) -> Option<bool> {
        let [low_holds, high_holds] = ends.map(|end| self.holds(end, threshold));
        if low_holds == high_holds {
            Some(low_holds)
        } else {
            None
        }
    }

    /// Returns `true` if the first of two figures is less likely to meet the threshold.
    pub(super) fn is_worse(self, one: f64, other: f64) -> bool {
        match self {
            Self::AtLeast | Self::Above => one < other,
            Self::AtMost | Self::Below => one > other,
        }
    }
}

/// A threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// As given.
    pub expression: String,
    /// A workload (or a step on files), a part of a survey, or neither.
    pub part: Part,
    /// Name of the workload, or the word for the part.
    pub workload: String,
    /// The kind of operation; `None` where the expression names none.
    pub op: Option<OpKind>,
    /// The figure.
    pub quantity: Quantity,
    /// How it must relate to the threshold.
    pub relation: Relation,
    /// The threshold, in the unit of the metric.
    pub threshold: f64,
}
