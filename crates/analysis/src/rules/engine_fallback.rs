//! `engine-fallback`: the preferred I/O engine was refused, missing or slower on this target, so
//! another one carried the I/O.

use super::rule::*;
use diskproof_model::measurement::{Fallback, FallbackCause};

pub(super) const RULE: Rule = Rule {
    code: "engine-fallback",
    title: "A slower I/O engine was used",
    summary: "The best I/O engine was refused, missing, exhausted or slower on this target, so \
              another one was used.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured<'_>> = real_rows(record)
        .filter(|measured| !measured.row.data.engine.fallbacks.is_empty())
        .collect();
    let used = engine_name(hits.first()?.row.data.engine.used);
    let scope = workload_names(record, indices(&hits));
    let fallbacks = distinct_fallbacks(&hits);
    let statement = match fallbacks[..] {
        [only] if only.cause == FallbackCause::Slower => slower_engine(only, used, &scope),
        _ => unavailable_engines(&fallbacks, used, &scope),
    };
    let observations = hits.iter().map(|hit| {
        let count = hit.row.data.engine.fallbacks.len() as f64;
        hit.evidence("data/engine/fallbacks", count, 0.0, "1")
    });
    Some(
        Diagnosis::new(Severity::Note, statement.claim, observations).with_remedy(statement.remedy),
    )
}

/// The claim of this rule, and the remedy that belongs to it.
struct Statement {
    claim: String,
    remedy: String,
}

/// Where io_uring works, but hands its requests to worker threads, `auto` tries both and takes the
/// faster one: nothing was refused.
fn slower_engine(fallback: &Fallback, used: &str, scope: &str) -> Statement {
    let slower = engine_name(fallback.from);
    Statement {
        claim: format!(
            "{slower} is slower than {used} on this target, so the latter was used for {scope}: \
             {}.",
            fallback.why
        ),
        remedy: format!(
            "No action is needed, because diskproof used the faster one. Other programs that use \
             {slower} on this target are slower."
        ),
    }
}

/// Engines that the kernel did not provide, with the reason for each.
fn unavailable_engines(fallbacks: &[&Fallback], used: &str, scope: &str) -> Statement {
    let mut reasons: Vec<String> = Vec::new();
    for fallback in fallbacks {
        reasons.push(describe_fallback(fallback));
    }
    Statement {
        claim: format!(
            "{}, so {used} was used for {scope}. The figures are valid but take more CPU time per \
             operation. A very fast disk may show fewer IOPS.",
            reasons.join(" and "),
        ),
        remedy: first_remedy(fallbacks).to_owned(),
    }
}

/// One fallback of each engine and cause.
fn distinct_fallbacks<'a>(hits: &[Measured<'a>]) -> Vec<&'a Fallback> {
    let mut fallbacks: Vec<&Fallback> = hits
        .iter()
        .flat_map(|hit| &hit.row.data.engine.fallbacks)
        .collect();
    fallbacks.sort_by_key(|fallback| (fallback.from, fallback.cause));
    fallbacks.dedup_by_key(|fallback| (fallback.from, fallback.cause));
    fallbacks
}

/// `io_uring was refused by the kernel (EPERM)`
fn describe_fallback(fallback: &Fallback) -> String {
    let event = match fallback.cause {
        FallbackCause::Refused => "was refused by the kernel",
        FallbackCause::Missing => "is missing in this kernel",
        FallbackCause::Exhausted => "was exhausted",
        FallbackCause::Unusable => "does not work here",
        FallbackCause::Slower => "is slower here",
    };
    format!("{} {event} ({})", engine_name(fallback.from), fallback.why)
}

fn engine_name(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Uring => "io_uring",
        EngineKind::Aio => "Linux AIO",
        EngineKind::Sync => "threads of pread and pwrite",
        EngineKind::Mmap => "a memory mapping",
        EngineKind::Null => "the null engine",
    }
}

/// The remedy of the first fallback that has one; empty where all engines are merely slower here.
fn first_remedy(fallbacks: &[&Fallback]) -> &'static str {
    for fallback in fallbacks {
        if fallback.cause != FallbackCause::Slower {
            return remedy(fallback);
        }
    }
    ""
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
        (FallbackCause::Refused | FallbackCause::Unusable | FallbackCause::Slower, _) => {
            "None is needed."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use FallbackCause::{Exhausted, Missing, Refused, Slower};
    use diskproof_model::measurement::Measurement;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || fallen(EngineKind::Aio, &[(EngineKind::Uring, Refused)]),
        || fixture::all_faulty(|measurement| measurement.engine.used = EngineKind::Aio),
    )
    .and_fires_on(&[
        || fallen(EngineKind::Aio, &[(EngineKind::Uring, Slower)]),
        || {
            fallen(
                EngineKind::Sync,
                &[(EngineKind::Uring, Missing), (EngineKind::Aio, Exhausted)],
            )
        },
    ]);

    fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    /// Reads by this engine after others failed.
    fn fallen(used: EngineKind, fallbacks: &[(EngineKind, FallbackCause)]) -> Record {
        reads(|measurement| {
            measurement.engine.used = used;
            for (from, cause) in fallbacks {
                measurement.engine.fallbacks.push(Fallback {
                    from: *from,
                    cause: *cause,
                    why: "EPERM".to_owned(),
                });
            }
        })
    }

    /// Each cause has its words, which the snapshot of all findings holds, and its remedy.
    #[test]
    fn engines_are_named_with_the_reason_and_what_helps() {
        use EngineKind::{Aio, Sync, Uring};
        for (used, fallbacks, claimed, helps) in [
            (
                Aio,
                &[(Uring, Refused)][..],
                "(EPERM), so Linux AIO",
                "seccomp",
            ),
            (Aio, &[(Uring, Slower)], "Linux AIO", ""),
            (
                Sync,
                &[(Uring, Missing), (Aio, Exhausted)],
                "threads of pread",
                "5.1",
            ),
            (Sync, &[(Aio, Exhausted)], "Linux AIO", "fs.aio-max-nr"),
            (Sync, &[(Uring, Refused)], "io_uring", "seccomp"),
            (
                Sync,
                &[(Uring, Slower), (Aio, Exhausted)],
                "Linux AIO",
                "fs.aio-max-nr",
            ),
        ] {
            let finding = check(&fallen(used, fallbacks)).unwrap();
            assert_eq!(finding.severity, Severity::Note);
            states(&finding.claim, &["random-read-d32", "EPERM", claimed]);
            states(&finding.remedy, &[helps]);
            let refused = fallbacks.iter().any(|(_, cause)| *cause == Refused);
            assert_eq!(finding.remedy.contains("seccomp"), refused, "{fallbacks:?}");
        }
    }
}
