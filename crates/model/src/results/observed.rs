//! Answers the questions that every result answers for an observed load, which other programs made.

use super::{OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::document::{DocumentError, target_of};
use crate::figure::tables::{OBSERVED, OBSERVED_OPERATION};
use crate::figure::{FigureList, Key, Part};
use crate::observed::ObservedRecord;
use crate::record::Record;

impl ResultOfTask for ObservedRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        let mut end_ns = 0;
        for device in &self.devices {
            end_ns = device.wall_ns.max(end_ns);
        }
        Some(OwnRequests {
            target: 0,
            end_ns,
            // They are those of other programs.
            has_figures: false,
            error: None,
        })
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.observed = Some(self.clone());
    }

    fn add_figures<'r>(&'r self, _: &'r Record, list: &mut FigureList<'r>) {
        for device in &self.devices {
            let name = format!("observed-{}", device.name);
            let key = Key::new(Part::Observed, name).target(device.target);
            list.table(&key, OBSERVED, device);
            for (kind, op) in &device.ops {
                list.table(&key.clone().op(kind.as_str()), OBSERVED_OPERATION, op);
            }
        }
    }

    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError> {
        if self.interval_ns == 0 {
            let path = format!("{path}/interval_ns");
            return Err(DocumentError::NoLength { path });
        }
        for (place, device) in self.devices.iter().enumerate() {
            let path = format!("{path}/devices/{place}/target");
            target_of(record, path, device.target)?;
        }
        Ok(())
    }
}
