//! Compares the answers of searches for the greatest depth within a latency, in a sentence. A depth
//! is one of a few numbers and has no interval, so it is no metric.

use super::sides::{NamedRun, Sides};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::units::format_latency;

/// `The greatest depth that keeps 99 % of the requests within 5.00 ms: 8 in A, 2 in B.` `None`
/// unless every run searched for the same promise.
pub(super) fn depths_sentence(sides: &Sides<'_>) -> Option<String> {
    let target = sides.runs().next()?.run.record.latency_search()?.target;
    for named in sides.runs() {
        let searched = named.run.record.latency_search()?.target;
        // A depth may be measured for longer in one of them.
        if (searched.latency_ns, searched.percent) != (target.latency_ns, target.percent) {
            return None;
        }
    }
    Some(format!(
        "The greatest depth that keeps {} % of the requests within {}: {}, {}.",
        target.percent,
        format_latency(target.latency_ns),
        answers_of_side(&sides.a),
        answers_of_side(&sides.b)
    ))
}

/// `8 in A`; of several runs `8 in A1, 4 in A2`.
fn answers_of_side(side: &[NamedRun<'_>]) -> String {
    let mut answers = Vec::new();
    for named in side {
        if let Some(search) = named.run.record.latency_search() {
            let answer = answer_text(search);
            answers.push(format!("{answer} in {}", named.name));
        }
    }
    answers.join(", ")
}

/// The depth of a search, as its run answers. It is undecided where the figure that it rests on is
/// not the disk's, and where the search ended early.
fn answer_text(search: &LatencySearch) -> String {
    if search.objection.is_some() {
        return "undecided".to_owned();
    }
    match (search.depth, search.is_settled) {
        (Some(depth), true) => depth.to_string(),
        (Some(depth), false) => format!("at least {depth}"),
        (None, true) => "none".to_owned(),
        (None, false) => "undecided".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Run, RunGroup};
    use crate::fixture;
    use diskproof_model::latency_search::DepthTrial;
    use diskproof_model::record::{Record, TaskResult};
    use diskproof_model::shape::LatencyTarget;

    /// A search of this promise that found a depth, or none.
    fn searched(latency_ns: u64, depth: Option<u32>, is_settled: bool) -> Record {
        let mut record = fixture::record();
        let trial = |depth, holds| DepthTrial {
            workload: format!("d{depth}"),
            depth,
            requests: 1000,
            late: 0,
            holds,
        };
        let mut trials = Vec::new();
        trials.extend(depth.map(|depth| trial(depth, true)));
        trials.push(trial(64, false));
        record.results = vec![TaskResult::Depth(LatencySearch {
            objection: None,
            target: LatencyTarget {
                latency_ns,
                percent: 99.0,
                window_ns: 1_000_000_000,
            },
            depth,
            is_settled,
            depth_max: 64,
            trials,
        })];
        record
    }

    fn sentence(a: &Record, b: &Record) -> Option<String> {
        let group = |record| RunGroup {
            label: "side".to_owned(),
            runs: vec![Run::without_name(record)],
        };
        let (a, b) = (group(a), group(b));
        depths_sentence(&Sides::from_groups(&a, &b, "B"))
    }

    #[test]
    fn depths_of_one_promise_are_compared() {
        let a = searched(5_000_000, Some(8), true);
        for (b, answer) in [
            (searched(5_000_000, Some(2), true), "8 in A, 2 in B."),
            (
                searched(5_000_000, Some(2), false),
                "8 in A, at least 2 in B.",
            ),
            (searched(5_000_000, None, true), "8 in A, none in B."),
        ] {
            let sentence = sentence(&a, &b).unwrap();
            assert!(sentence.ends_with(answer), "{sentence}");
        }
        assert_eq!(sentence(&a, &searched(1_000_000, Some(2), true)), None);
        assert_eq!(sentence(&a, &fixture::record()), None);
    }
}
