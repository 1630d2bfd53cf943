//! An acceptance test of one device.

use super::{Outcome, OwnRequests, ResultAnswer};
use crate::accept::{AcceptRecord, AcceptVerdict};
use crate::data::RunData;
use crate::document::DocumentError;
use crate::figure::tables::{ACCEPTED, ACCEPTED_RATE};
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::op::OpKind;
use crate::record::Record;

impl Outcome for AcceptRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        Some(OwnRequests {
            target: self.data.target,
            end_ns: self.data.start_ns.saturating_add(self.data.run_ns),
            has_figures: self.data.writes.bytes > 0,
            // What failed is its verdict.
            error: None,
        })
    }

    fn answer(&self) -> ResultAnswer {
        match self.figures.verdict {
            AcceptVerdict::Reject => ResultAnswer::Rejected,
            verdict => ResultAnswer::decided(verdict != AcceptVerdict::Undecided),
        }
    }

    fn restore(&self, data: &mut RunData) {
        data.accept = Some(self.data.clone());
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        let mut key = Key::of(Part::Other, "accept").target(self.data.target);
        key.labels = target_labels(record, self.data.target);
        list.table(&key, ACCEPTED, self);
        let rates = [
            (OpKind::Write, &self.figures.write_rate),
            (OpKind::Read, &self.figures.read_rate),
        ];
        for (kind, rate) in rates {
            if let Some(rate) = rate {
                list.table(&key.clone().op(kind.as_str()), ACCEPTED_RATE, rate);
            }
        }
    }

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}
