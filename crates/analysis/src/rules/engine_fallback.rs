//! `engine-fallback`: the interface that would have been chosen was not to be had or slower here,
//! and another carried the I/O.

use super::evidence::{Measured, evidence, real, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::{Fallback, FallbackCause};
use diskproof_model::plan::EngineKind;
use diskproof_model::record::Record;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "engine-fallback",
    title: "A slower I/O engine was used",
    meaning: "The best I/O engine was refused, missing, exhausted or slower on this target, so \
              another one was used.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured> = real(record)
        .filter(|(_, m)| !m.engine.fallbacks.is_empty())
        .collect();
    let used = name(hits.first()?.1.engine.used);
    let scope = scope(record, hits.iter().map(|h| h.0));
    let mut all: Vec<&Fallback> = hits.iter().flat_map(|(_, m)| &m.engine.fallbacks).collect();
    all.sort_by_key(|f| (f.from, f.cause));
    all.dedup_by_key(|f| (f.from, f.cause));
    let (claim, remedy) = match all.as_slice() {
        // Where io_uring works, but hands its requests to worker threads, `auto` tries both and
        // takes the faster one: nothing was refused.
        [f] if f.cause == FallbackCause::Slower => {
            let (from, why) = (name(f.from), &f.why);
            let claim = format!(
                "{from} is slower than {used} on this target, so the latter was used for {scope}: \
                 {why}."
            );
            let remedy = format!(
                "No action is needed, because diskproof used the faster one. Other programs that \
                 use {from} on this target are slower."
            );
            (claim, remedy)
        }
        all => {
            let reasons = all
                .iter()
                .map(|f| format!("{} {} ({})", name(f.from), what_it_did(f.cause), f.why));
            let claim = format!(
                "{}, so {used} was used for {scope}. The figures are valid but take more CPU time \
                 per operation. A very fast disk may show fewer IOPS.",
                reasons.collect::<Vec<_>>().join(" and "),
            );
            // What is merely slower here needs no remedy.
            let remedied = all.iter().find(|f| f.cause != FallbackCause::Slower);
            (claim, remedied.map_or("", |f| remedy(f)).to_owned())
        }
    };
    let evidence = hits.iter().map(|(index, m)| {
        let count = m.engine.fallbacks.len() as f64;
        evidence(*index, "engine/fallbacks", count, 0.0, "1")
    });
    Some(Diagnosis::new(Severity::Note, claim, evidence, remedy))
}

fn what_it_did(cause: FallbackCause) -> &'static str {
    match cause {
        FallbackCause::Refused => "was refused by the kernel",
        FallbackCause::Missing => "is missing in this kernel",
        FallbackCause::Exhausted => "was exhausted",
        FallbackCause::Unusable => "does not work here",
        FallbackCause::Slower => "is slower here",
    }
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

fn remedy(fallback: &Fallback) -> &'static str {
    match (fallback.cause, fallback.from) {
        (FallbackCause::Refused, EngineKind::Uring) => {
            "Allow io_uring: in a container by its seccomp profile (docker run --security-opt \
             seccomp=unconfined), on the host by sysctl kernel.io_uring_disabled=0; or accept the \
             note."
        }
        (FallbackCause::Exhausted, EngineKind::Aio) => {
            "Raise sysctl fs.aio-max-nr, or accept the note."
        }
        (FallbackCause::Exhausted, _) => {
            "Raise the limits of this shell (ulimit -l for locked memory, ulimit -n for \
             descriptors), or accept the note."
        }
        (FallbackCause::Missing, _) => {
            "Use a kernel that has it, io_uring since 5.1, or accept the note."
        }
        _ => "None is needed.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.engine.used = EngineKind::Aio;
            m.engine.fallbacks = vec![Fallback {
                from: EngineKind::Uring,
                cause: FallbackCause::Refused,
                why: "EPERM".to_owned(),
            }];
        })
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| m.engine.used = EngineKind::Aio)
    }

    #[test]
    fn a_refused_interface_is_reported_with_its_reason() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(
            finding.claim.contains(
                "io_uring was refused by the kernel (EPERM), so Linux AIO was used for 1 of 8 \
                 workloads (random-read-d32)"
            ),
            "{}",
            finding.claim
        );
        assert!(finding.remedy.contains("seccomp"), "{}", finding.remedy);
    }

    #[test]
    fn a_slower_interface_is_not_called_refused() {
        let finding = check(&fixture::faulty("random-read-d32", |m| {
            m.engine.used = EngineKind::Aio;
            let cause = FallbackCause::Slower;
            m.engine.fallbacks = vec![Fallback {
                from: EngineKind::Uring,
                cause,
                why: "7 reads/s in a trial, 9 by Linux AIO".to_owned(),
            }];
        }))
        .unwrap();
        assert_eq!(
            finding.claim,
            "io_uring is slower than Linux AIO on this target, so the latter was used for 1 of 8 \
             workloads (random-read-d32): 7 reads/s in a trial, 9 by Linux AIO."
        );
        assert!(!finding.remedy.contains("seccomp"), "{}", finding.remedy);
    }

    #[test]
    fn each_cause_has_its_words_and_its_remedy() {
        let told = |fallbacks: &[(EngineKind, FallbackCause)]| {
            let faulty = fixture::faulty("random-read-d32", |m| {
                m.engine.used = EngineKind::Sync;
                m.engine.fallbacks = fallbacks
                    .iter()
                    .map(|(from, cause)| Fallback {
                        from: *from,
                        cause: *cause,
                        why: "why".to_owned(),
                    })
                    .collect();
            });
            let finding = check(&faulty).unwrap();
            (finding.claim, finding.remedy)
        };
        use FallbackCause::{Exhausted, Missing, Refused, Slower};
        let (claim, remedy) = told(&[(EngineKind::Uring, Missing), (EngineKind::Aio, Exhausted)]);
        assert!(
            claim.starts_with(
                "io_uring is missing in this kernel (why) and Linux AIO was exhausted (why), so \
                 threads of pread"
            ),
            "{claim}"
        );
        assert!(remedy.contains("since 5.1"), "{remedy}");
        assert!(
            told(&[(EngineKind::Aio, Exhausted)])
                .1
                .contains("fs.aio-max-nr")
        );
        let (claim, remedy) = told(&[(EngineKind::Uring, Refused)]);
        assert!(
            claim.starts_with("io_uring was refused by the kernel (why), so ")
                && remedy.contains("seccomp"),
            "{claim} {remedy}"
        );
        let (claim, remedy) = told(&[(EngineKind::Uring, Slower), (EngineKind::Aio, Exhausted)]);
        assert!(
            claim.starts_with("io_uring is slower here (why) and Linux AIO was exhausted"),
            "{claim}"
        );
        assert!(remedy.contains("fs.aio-max-nr"), "{remedy}");
    }

    #[test]
    fn another_interface_by_choice_is_no_finding() {
        assert_eq!(
            check(&fixture::all_faulty(|m| m.engine.used = EngineKind::Aio)),
            None
        );
    }
}
