//! `unwritable-blocks`: an acceptance test met sectors that could not be written.

use super::rule::*;
use crate::accept::words::unwritable_text;
use crate::words::sentence;

pub(super) const RULE: Rule = Rule {
    code: "unwritable-blocks",
    title: "Sectors could not be written",
    summary: "An acceptance test found sectors whose writes the disk answered with an error, and \
              no smaller capacity explains it.",
    remedy: Remedy::Always(
        "Return the disk: it has no spare sectors left, or takes no writes any more. If dmesg \
         names the link instead of the medium, check the cable and the controller, and test again.",
    ),
    check: Check::Acceptance(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A counterfeit has a finding of its own.
fn check(record: &Record) -> Option<Diagnosis> {
    let accept = record.accept()?;
    if accept.figures.fraud.is_some() {
        return None;
    }
    let text = unwritable_text(&accept.data)?;
    let bytes = accept.data.failed_writes_bytes as f64;
    let observation = evidence_at(
        first_result_path("data/failed_writes_bytes"),
        bytes,
        0.0,
        "B",
    );
    Some(Diagnosis::new(
        Severity::Failure,
        sentence(&text),
        [observation],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || accepted(Fault::Unwritable),
        || accepted(Fault::Unreadable),
    );
}
