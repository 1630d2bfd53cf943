//! `engine-fallback`: the interface that would have been chosen was refused or slower here, and another carried the I/O.

use super::{Measured, Rule, evidence, real, scope};
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::plan::EngineKind;
use diskproof_model::record::{MeasurementRecord, Record};

pub(super) const RULE: Rule = Rule {
    code: "engine-fallback",
    meaning: "The best kernel interface was refused, so another one carried the I/O, at a higher CPU cost per operation; or it was tried and is slower on this \
              target.",
    check,
};

fn check(record: &Record) -> Option<Finding> {
    let hits: Vec<Measured> = real(record).filter(|(_, m)| !m.engine.fallbacks.is_empty()).collect();
    let (_, first) = hits.first()?;
    let mut refused: Vec<(EngineKind, &str)> =
        hits.iter().flat_map(|(_, m)| &m.engine.fallbacks).map(|f| (f.from, f.why.as_str())).collect();
    refused.sort_unstable();
    refused.dedup_by_key(|f| f.0);
    if let ([(kind, why)], true) = (refused.as_slice(), hits.iter().all(|(_, m)| is_chosen(m))) {
        return Some(chosen(record, &hits, *kind, why));
    }
    let reasons: Vec<String> = refused.iter().map(|(kind, why)| format!("{} ({why})", name(*kind))).collect();
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Note,
        claim: format!(
            "The kernel refused {}, so {} carried {}. The figures stand, at more CPU time per operation; a very fast disk may show fewer IOPS.",
            reasons.join(" and "),
            name(first.engine.used),
            scope(record, hits.iter().map(|h| h.0)),
        ),
        evidence: fallbacks(&hits),
        remedy: refused.first().map_or("", |f| remedy(f.0)).to_owned(),
        reproduce: None,
    })
}

/// Where io_uring works, but hands its requests to worker threads, `auto` tries both and takes the faster one: nothing was refused.
fn is_chosen(m: &MeasurementRecord) -> bool {
    m.punted == Some(true) && m.engine.fallbacks.iter().all(|f| f.from == EngineKind::Uring)
}

fn chosen(record: &Record, hits: &[Measured], from: EngineKind, why: &str) -> Finding {
    Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Note,
        claim: format!(
            "{} is slower than {} on this target, so the latter carried {}: {why}.",
            name(from),
            name(hits[0].1.engine.used),
            scope(record, hits.iter().map(|h| h.0)),
        ),
        evidence: fallbacks(hits),
        remedy: format!("None is needed: the faster one was taken. Programs that use {} on this target pay its price.", name(from)),
        reproduce: None,
    }
}

fn fallbacks(hits: &[Measured]) -> Vec<Evidence> {
    hits.iter().map(|(i, m)| evidence(*i, "engine/fallbacks", m.engine.fallbacks.len() as f64, 0.0, "1")).collect()
}

fn name(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Uring => "io_uring",
        EngineKind::Aio => "Linux AIO",
        EngineKind::Sync => "threads of pread and pwrite",
        EngineKind::Mmap => "a memory mapping",
        EngineKind::Null => "the null engine",
    }
}

fn remedy(refused: EngineKind) -> &'static str {
    match refused {
        EngineKind::Uring => {
            "Allow io_uring: in a container by its seccomp profile (docker run --security-opt seccomp=unconfined), on the host by \
             sysctl kernel.io_uring_disabled=0; or accept the note."
        }
        EngineKind::Aio => "Raise sysctl fs.aio-max-nr, or accept the note.",
        _ => "None is needed.",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;
    use diskproof_model::measurement::Fallback;

    pub(in crate::rules) fn spoilt() -> Record {
        healthy::spoilt("random-read-d32", |m| {
            m.engine.used = EngineKind::Aio;
            m.engine.fallbacks = vec![Fallback { from: EngineKind::Uring, why: "EPERM".to_owned() }];
        })
    }

    #[test]
    fn a_refused_interface_is_told_with_its_reason() {
        let finding = check(&spoilt()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(
            finding.claim.contains("refused io_uring (EPERM), so Linux AIO carried 1 of 8 workloads (random-read-d32)"),
            "{}",
            finding.claim
        );
        assert!(finding.remedy.contains("seccomp"), "{}", finding.remedy);
    }

    #[test]
    fn a_slower_interface_is_not_called_refused() {
        let finding = check(&healthy::spoilt("random-read-d32", |m| {
            (m.engine.used, m.punted) = (EngineKind::Aio, Some(true));
            m.engine.fallbacks = vec![Fallback { from: EngineKind::Uring, why: "7 reads/s in a trial, 9 by Linux AIO".to_owned() }];
        }))
        .unwrap();
        assert_eq!(
            finding.claim,
            "io_uring is slower than Linux AIO on this target, so the latter carried 1 of 8 workloads (random-read-d32): 7 reads/s in a trial, 9 by Linux AIO."
        );
        assert!(!finding.remedy.contains("seccomp"), "{}", finding.remedy);
    }

    #[test]
    fn another_interface_by_choice_is_no_finding() {
        assert_eq!(check(&healthy::all_spoilt(|m| m.engine.used = EngineKind::Aio)), None);
    }
}
