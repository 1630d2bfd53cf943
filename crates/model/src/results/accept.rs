//! Answers the questions that every result answers for an acceptance test of one device.

use super::{OwnError, OwnRequests, ResultAnswer, ResultOfTask};
use crate::accept::{
    AcceptMeasurement, AcceptRecord, AcceptVerdict, PIECES_MAX, Procedure, chunk_bytes,
};
use crate::data::RunData;
use crate::document::{DocumentError, target_of};
use crate::figure::tables::{ACCEPTED, ACCEPTED_RATE};
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::op::OpKind;
use crate::record::Record;
use std::collections::BTreeMap;

impl ResultOfTask for AcceptRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        Some(OwnRequests {
            target: self.data.target,
            end_ns: self.data.start_ns.saturating_add(self.data.run_ns),
            has_figures: self.data.writes.bytes > 0 || self.data.reads.bytes > 0,
            error: error_before_test(self.figures.verdict, &self.data.errors),
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
        let mut key = Key::new(Part::Other, "accept").target(self.data.target);
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

    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError> {
        target_of(record, format!("{path}/data/target"), self.data.target)?;
        match wrong_pieces(&self.data) {
            None => Ok(()),
            Some(why) => Err(DocumentError::Data {
                path: format!("{path}/data/chunk_bytes"),
                why,
            }),
        }
    }
}

/// The error of the disk on a request before the test, where none recurred in it. `None` of a
/// rejected disk: what failed is the reason for its verdict.
fn error_before_test(
    verdict: AcceptVerdict,
    errors: &BTreeMap<String, u64>,
) -> Option<OwnError<'_>> {
    if verdict == AcceptVerdict::Reject {
        return None;
    }
    let (errno, _) = errors.first_key_value()?;
    Some(OwnError {
        doing: OpKind::Read.doing(),
        errno: Some(errno),
    })
}

/// The reason why the pieces of a device cannot be counted from the sizes in a record, by which
/// every reader divides; `None` where they can.
fn wrong_pieces(data: &AcceptMeasurement) -> Option<&'static str> {
    let size_bytes = data.plan.size_bytes;
    if size_bytes > i64::MAX as u64 {
        return Some("no device is so large");
    }
    if data.chunk_bytes == 0 || data.chunk_bytes > size_bytes.max(chunk_bytes(size_bytes)) {
        return Some("a chunk has at least a byte and at most the size of the device");
    }
    if data.plan.procedure == Procedure::Whole {
        let pieces = size_bytes.div_ceil(data.chunk_bytes);
        if pieces > PIECES_MAX as u64 {
            return Some("no test has so many chunks");
        }
        if data.states.0.len() as u64 > pieces {
            return Some("the device has fewer chunks than states");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::{AcceptPlan, PieceStates};

    const GIB: u64 = 1 << 30;

    fn measured(size_bytes: u64, chunk_bytes: u64) -> AcceptMeasurement {
        let plan = AcceptPlan {
            procedure: Procedure::Whole,
            size_bytes,
            salt: 7,
        };
        AcceptMeasurement {
            chunk_bytes,
            ..AcceptMeasurement::new(plan)
        }
    }

    #[test]
    fn sizes_that_no_test_has_are_refused() {
        for size_bytes in [4096, GIB, 8_000_000_000_000] {
            let own = measured(size_bytes, chunk_bytes(size_bytes));
            assert_eq!(wrong_pieces(&own), None, "{size_bytes}");
        }
        let refused = [(GIB, 0), (1 << 62, 1), (u64::MAX, 4096), (GIB, 1 << 62)];
        for (size_bytes, chunk_bytes) in refused {
            let why = wrong_pieces(&measured(size_bytes, chunk_bytes));
            assert!(why.is_some(), "{size_bytes} {chunk_bytes}");
        }
        let mut many_states = measured(GIB, GIB);
        many_states.states = PieceStates::pending(2);
        assert!(wrong_pieces(&many_states).is_some());
    }

    #[test]
    fn error_that_did_not_recur_fails_the_run_of_an_accepted_disk() {
        let errors = BTreeMap::from([("EIO".to_owned(), 1)]);
        for verdict in [AcceptVerdict::Accept, AcceptVerdict::Undecided] {
            let error = error_before_test(verdict, &errors).unwrap();
            assert_eq!(error.errno, Some("EIO"));
        }
        assert!(error_before_test(AcceptVerdict::Reject, &errors).is_none());
        assert!(error_before_test(AcceptVerdict::Accept, &BTreeMap::new()).is_none());
    }
}
