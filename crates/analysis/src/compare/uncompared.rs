//! Names the results that a comparison does not judge, so that nobody takes their silence for
//! "the same".

use super::sides::{NamedRun, Sides};
use diskproof_model::comparison::{Holder, Unmatched};
use diskproof_model::record::TaskResult;

/// The reason in the document.
const WHY: &str = "such results are not compared";

/// An entry for each kind of result that a side has and no metric is about.
pub(super) fn uncompared_results(sides: &Sides<'_>) -> Vec<Unmatched> {
    let (subjects_a, subjects_b) = (subjects(&sides.a), subjects(&sides.b));
    let mut entries: Vec<Unmatched> = Vec::new();
    for subject in subjects_a.iter().chain(&subjects_b) {
        if entries.iter().any(|entry| entry.subject == *subject) {
            continue;
        }
        let only = match (subjects_a.contains(subject), subjects_b.contains(subject)) {
            (true, false) => Holder::A,
            (false, true) => Holder::B,
            _ => Holder::Both,
        };
        let why = match only {
            Holder::Both => Some(WHY.to_owned()),
            Holder::A | Holder::B => None,
        };
        entries.push(Unmatched {
            subject: (*subject).to_owned(),
            only,
            why,
        });
    }
    entries
}

/// The results of a side that no metric is about, in words.
fn subjects(side: &[NamedRun<'_>]) -> Vec<&'static str> {
    side.iter()
        .flat_map(|named| &named.run.record.results)
        .filter_map(uncompared_subject)
        .collect()
}

/// A result in words; `None` where metrics are about it, or about the rows that it follows from.
fn uncompared_subject(result: &TaskResult) -> Option<&'static str> {
    match result {
        TaskResult::Depth(_) => Some("the greatest depth within the latency limit"),
        TaskResult::Sustain(_) => Some("the fall of the sustained rate"),
        TaskResult::Rays(_) => Some("the boundary of reads and writes"),
        TaskResult::Accept(_) => Some("the acceptance test"),
        TaskResult::Inserts(postgres) if !postgres.trials.is_empty() => {
            Some("the settings that PostgreSQL tried")
        }
        TaskResult::Survey(surface) if surface.data.scan.is_some() => {
            Some("the scan for unreadable sectors")
        }
        TaskResult::Survey(_)
        | TaskResult::Sweep(_)
        | TaskResult::Load(_)
        | TaskResult::Layers(_)
        | TaskResult::Compared(_)
        | TaskResult::Files(_)
        | TaskResult::Inserts(_)
        | TaskResult::Together(_)
        | TaskResult::Observed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};
    use crate::fixture::files::{file_step, files_plan, files_record};
    use crate::fixture::inserted::inserted;
    use crate::fixture::searched::answer;
    use crate::fixture::surveyed;
    use diskproof_model::files::FileOperation;
    use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord};
    use diskproof_model::rays::{RaysData, RaysFigures, RaysRecord};
    use diskproof_model::record::Record;

    /// The results of a record that no metric is about.
    fn uncompared(record: &Record) -> Vec<&'static str> {
        record
            .results
            .iter()
            .filter_map(uncompared_subject)
            .collect()
    }

    #[test]
    fn results_without_metrics_are_named() {
        assert_eq!(uncompared(&accepted(Fault::None)), ["the acceptance test"]);
        let scanned = surveyed::faulty(|survey| survey.scan = Some(surveyed::scan()));
        assert_eq!(uncompared(&scanned), ["the scan for unreadable sectors"]);
        let rays = TaskResult::Rays(Box::new(RaysRecord {
            data: RaysData { rays: Vec::new() },
            figures: RaysFigures {
                rays: Vec::new(),
                boundary: None,
            },
        }));
        assert!(uncompared_subject(&rays).is_some());
    }

    /// Their figures have metrics: named as well, they would seem to have none.
    #[test]
    fn results_with_metrics_are_not_named() {
        let curve = surveyed::record();
        let steps = vec![file_step(FileOperation::Create, &[100, 101, 102])];
        let files = files_record("files", files_plan(), steps);
        for record in [curve, files, inserted("inserts", &[400.0, 401.0])] {
            assert!(!record.results.is_empty());
            assert_eq!(uncompared(&record), Vec::<&str>::new());
        }
        let search = TaskResult::Load(Box::new(LoadRecord {
            data: LoadData::default(),
            figures: answer(LoadOutcome::Sustained, 300.0, 0.05),
        }));
        assert_eq!(uncompared_subject(&search), None);
    }
}
