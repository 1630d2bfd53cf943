//! Answers the questions that every result answers for those that put workloads together: the
//! matrix of a sweep, the greatest depth within a latency, the cost of each layer, a comparison,
//! and a measurement of several hosts. None makes requests of its own; of them only the search for
//! a depth can stay undecided.

use super::{OwnRequests, ResultAnswer, ResultOfTask};
use crate::campaign::CampaignPart;
use crate::data::RunData;
use crate::document::{DocumentError, target_of};
use crate::figure::tables::{LAYER, MATRIX, PREDICTED_CELL};
use crate::figure::{FigureList, Key, Part};
use crate::latency_search::LatencySearch;
use crate::layers::LayersRecord;
use crate::record::Record;
use crate::sweep::{CellState, SweepRecord};
use crate::together::TogetherRecord;

impl ResultOfTask for SweepRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, _: &mut RunData) {}

    /// Adds what follows from each matrix, and what its cost model predicts. The cells that were
    /// measured are workloads.
    fn add_figures<'r>(&'r self, _: &'r Record, list: &mut FigureList<'r>) {
        for matrix in &self.matrices {
            let name = format!("sweep-{}", matrix.operation.as_str());
            list.table(&Key::new(Part::Other, name), MATRIX, matrix);
            for cell in &matrix.cells {
                if cell.state == CellState::Predicted {
                    let name = matrix.operation.cell_name(cell.block_bytes, cell.depth);
                    list.table(&Key::new(Part::Other, name), PREDICTED_CELL, cell);
                }
            }
        }
    }

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}

impl ResultOfTask for LatencySearch {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::decided(self.is_decided())
    }

    fn restore(&self, _: &mut RunData) {}

    /// Each depth is a workload, whose figures stand with the others.
    fn add_figures<'r>(&'r self, _: &'r Record, _: &mut FigureList<'r>) {}

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}

impl ResultOfTask for LayersRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.layer_places.clone_from(&self.places);
    }

    fn add_figures<'r>(&'r self, _: &'r Record, list: &mut FigureList<'r>) {
        for cost in &self.costs {
            let key = Key::new(Part::Other, cost.workload.as_str()).op("read");
            list.table(&key.target(cost.target), LAYER, cost);
        }
    }

    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError> {
        for (number, place) in self.places.iter().enumerate() {
            target_of(
                record,
                format!("{path}/places/{number}/target"),
                place.target,
            )?;
        }
        for (number, cost) in self.costs.iter().enumerate() {
            let path = format!("{path}/costs/{number}");
            target_of(record, format!("{path}/target"), cost.target)?;
            if let Some(below) = cost.below {
                target_of(record, format!("{path}/below"), below)?;
            }
        }
        Ok(())
    }
}

impl ResultOfTask for CampaignPart {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.beside.clone_from(&self.beside);
    }

    /// The comparison has the figures.
    fn add_figures<'r>(&'r self, _: &'r Record, _: &mut FigureList<'r>) {}

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}

impl ResultOfTask for TogetherRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.together = Some(self.clone());
    }

    /// The sum of all hosts has the figures.
    fn add_figures<'r>(&'r self, _: &'r Record, _: &mut FigureList<'r>) {}

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}
