//! Facts of the run that are no figures: its identity, its findings, its verdict in words.

use super::family::{Labels, Samples};
use diskproof_model::finding::Severity;
use diskproof_model::record::{ExpectationOutcome, Record};
use diskproof_model::verdict::{RunVerdict, TrustLevel};

/// Adds the samples of the run.
pub(super) fn add_run(record: &Record, samples: &mut Samples) {
    let start = record.started.parse::<jiff::Timestamp>();
    let start = start.map_or(f64::NAN, |time| time.as_second() as f64);
    let outcomes = record.expectations.iter().map(|one| one.outcome());
    let count = |of: ExpectationOutcome| outcomes.clone().filter(|one| *one == of).count() as f64;
    let of_run = [
        ("run_timestamp_seconds", start),
        ("run_partial", f64::from(u8::from(record.partial))),
        ("expectations_missed", count(ExpectationOutcome::Missed)),
        (
            "expectations_undecided",
            count(ExpectationOutcome::Undecided),
        ),
    ];
    for (family, value) in of_run {
        samples.add(family, Vec::new(), value);
    }
    let identity = vec![
        ("run_id", record.run_id.clone()),
        ("version", record.tool.version.clone()),
        ("verb", record.plan.origin.verb.clone()),
        ("host", record.host.name.clone()),
    ];
    samples.add("run_info", identity, 1.0);
    for (severity, name) in [
        (Severity::Failure, "failure"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ] {
        let findings = record.findings.iter();
        let own = findings.filter(|finding| finding.severity == severity);
        let labels = vec![("severity", name.to_owned())];
        samples.add("findings", labels, own.count() as f64);
    }
    for finding in &record.findings {
        samples.add("finding", vec![("code", finding.code.clone())], 1.0);
    }
    if let Some(verdict) = &record.verdict {
        samples.add("verdict_info", verdict_info(verdict), 1.0);
        let reliable = match verdict.trust.level {
            TrustLevel::Reliable => 1.0,
            TrustLevel::Doubtful => 0.5,
            TrustLevel::Unreliable => 0.0,
        };
        samples.add("reliable", Vec::new(), reliable);
    }
}

fn verdict_info(verdict: &RunVerdict) -> Labels {
    let mut labels = vec![("headline", verdict.headline.clone())];
    if let Some(worst) = &verdict.worst {
        labels.push(("worst", worst.code.clone()));
        labels.push(("title", worst.title.clone()));
    }
    labels
}
