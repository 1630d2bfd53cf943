//! What a campaign is: results in, the next measurement out, and at the end its decisions.

use diskproof_model::campaign::CampaignDecision;
use diskproof_model::plan::Workload;
use diskproof_model::slice::TimeSlice;

/// A campaign.
pub trait Campaign: Send {
    /// What comes next after these measurements, which are those of all cells so far in order;
    /// `None` when it is over.
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell>;

    /// What it has decided when it is over, where its record keeps that.
    fn decisions(&self) -> Vec<CampaignDecision> {
        Vec::new()
    }
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
