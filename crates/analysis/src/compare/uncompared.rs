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
