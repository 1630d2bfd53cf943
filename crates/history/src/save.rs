//! Saves a run: makes the file if there is none, and replaces a damaged one. When [`save`] returns,
//! the run survives a power cut.

use crate::add::{NewRun, SaveOutcome};
use crate::damage::{MovedHistory, move_damaged};
use crate::error::HistoryError;
use crate::place::HistoryPlace;
use crate::store::History;

/// What saving a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveReport {
    /// Whether the run is new.
    pub outcome: SaveOutcome,
    /// The damaged history that was moved.
    pub moved: Option<MovedHistory>,
}

/// Saves a run.
///
/// The whole file is checked first: SQLite can add a run to a damaged file and then never find it
/// again. The check reads the file once (about 10 ms for a hundred runs).
pub fn save(place: &HistoryPlace, run: &NewRun<'_>) -> Result<SaveReport, HistoryError> {
    let path = place.resolved()?;
    let attempt = || {
        let mut history = History::open_or_make(&path)?;
        history.vet()?;
        history.add(run)
    };
    let (outcome, moved) = match attempt() {
        Err(HistoryError::Damaged { .. }) => {
            let moved = move_damaged(&path)?;
            (attempt()?, moved)
        }
        other => (other?, None),
    };
    Ok(SaveReport { outcome, moved })
}
