//! What a campaign is: results in, the next measurement or the answer out.

use diskproof_model::plan::Workload;
use diskproof_model::slice::TimeSlice;

/// A campaign.
pub trait Campaign {
    /// What it finds out.
    type Answer;

    /// What comes next after these measurements, which are those of all cells so far in order.
    fn next(&mut self, done: &[MeasuredCell]) -> Next<Self::Answer>;
}

/// What a campaign wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<Answer> {
    /// A measurement.
    Run(Box<CampaignCell>),
    /// Nothing: it is over.
    Done(Answer),
}

/// The smallest measurement of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignCell {
    /// On which side, from 0: a target, or a setting of one.
    pub side: usize,
    /// What to run, with its time.
    pub workload: Workload,
}

/// A cell and what it gave.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCell {
    /// What was asked.
    pub cell: CampaignCell,
    /// What was measured.
    pub slice: TimeSlice,
}
