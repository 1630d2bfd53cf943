//! `depth-not-held`: fewer requests were in flight than asked for.

use super::cpu_limited::is_cpu_limited;
use super::{Measured, Rule, evidence, real, scope, wanted_depth};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::record::{MeasurementRecord, Record};

pub(super) const RULE: Rule = Rule {
    code: "depth-not-held",
    meaning: "Fewer requests were in flight than the queue depth asked for, so the figure belongs to a smaller depth.",
    check,
};

/// Least share of the depth asked for: starting, ending and reaping in batches cost a little of it.
const HELD_MIN: f64 = 0.8;
/// Operations per slot below which filling and draining the queue are most of the run.
const ROUNDS_MIN: f64 = 20.0;

fn check(record: &Record) -> Option<Finding> {
    let hits: Vec<Measured> = real(record).filter(|(_, m)| is_shallow(m) && !is_cpu_limited(record, m)).collect();
    let (_, worst) = hits.iter().min_by(|a, b| held(a.1).total_cmp(&held(b.1)))?;
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Note,
        claim: format!(
            "Fewer requests were in flight than asked for in {}: {:.1} instead of {:.0} in {}. Its figures belong to the smaller depth.",
            scope(record, hits.iter().map(|h| h.0)),
            worst.achieved_depth,
            wanted_depth(worst),
            worst.workload.name,
        ),
        evidence: hits.iter().map(|(i, m)| evidence(*i, "achieved_depth", m.achieved_depth, HELD_MIN * wanted_depth(m), "1")).collect(),
        remedy:
            "Try another interface (--engine aio or --engine sync): some filesystems finish or queue requests while they are submitted."
                .to_owned(),
        reproduce: None,
    })
}

fn held(m: &MeasurementRecord) -> f64 {
    m.achieved_depth / wanted_depth(m)
}

/// Only closed loops without syncs mean to keep every slot busy all the time.
fn is_shallow(m: &MeasurementRecord) -> bool {
    let done = m.headline_ops().iter().map(|(_, op)| op.count).sum::<u64>() as f64;
    let meant = m.workload.depth > 1 && m.workload.rate.is_none() && m.workload.sync == SyncPolicy::None;
    meant && done >= ROUNDS_MIN * wanted_depth(m) && held(m) < HELD_MIN
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;
    use diskproof_model::measurement::Measurement;

    pub(in crate::rules) fn spoilt() -> Record {
        healthy::spoilt("random-read-d32", |m| m.achieved_depth = 11.0)
    }

    #[test]
    fn a_shallow_queue_is_told() {
        let finding = check(&spoilt()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(finding.claim.contains("11.0 instead of 32 in random-read-d32"), "{}", finding.claim);
    }

    #[test]
    fn silent_where_the_depth_is_not_meant_or_explained() {
        let spared: [fn(&mut Measurement); 4] = [
            |m| m.workload.rate = Some(100.0),
            |m| m.workload.sync = SyncPolicy::AtEnd,
            |m| m.cpu.user_ns = m.wall_ns,
            |m| m.ops.values_mut().for_each(|op| op.count = 100),
        ];
        for spare in spared {
            let record = healthy::spoilt("random-read-d32", |m| {
                m.achieved_depth = 11.0;
                spare(m);
            });
            assert_eq!(check(&record), None);
        }
    }
}
