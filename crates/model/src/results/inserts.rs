//! Answers the questions that every result answers for the INSERTs of a temporary PostgreSQL server
//! on the first target.

use super::{OwnError, OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::document::DocumentError;
use crate::figure::tables::{SERVER_LOAD, TRIAL};
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::op::OpKind;
use crate::postgres::{INSERT, PostgresMeasurement, PostgresRecord};
use crate::record::Record;

impl ResultOfTask for PostgresRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        Some(OwnRequests {
            target: 0,
            end_ns: self.end_ns.unwrap_or(0),
            has_figures: !self.loads.is_empty(),
            error: self.errors.first_key_value().map(|(errno, _)| OwnError {
                doing: OpKind::Write.doing(),
                errno: Some(errno),
            }),
        })
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.postgres = Some(PostgresMeasurement {
            version: self.version.clone(),
            loads: self.loads.iter().map(|load| load.data.clone()).collect(),
            trials: self.trials.iter().map(|trial| trial.data.clone()).collect(),
            end_ns: self.end_ns,
            errors: self.errors.clone(),
            silence_before_ns: self.silence_before_ns,
        });
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        for load in &self.loads {
            let name = load.data.load.subject();
            let mut key = Key::new(Part::Other, name.clone()).op(INSERT);
            // The server lies on the first target. Exports call a load a workload.
            key.labels = target_labels(record, 0);
            key.labels.push(("workload", name));
            list.table(&key, SERVER_LOAD, load);
        }
        for trial in &self.trials {
            let name = format!("postgres-tried-{}", trial.data.trial.setting);
            let key = Key::new(Part::Other, name).sample_count(trial.data.pairs.len() as u64);
            list.table(&key, TRIAL, trial);
        }
    }

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}
