//! `wrong-content`: an acceptance test read other content than it had written, and no smaller
//! capacity explains it.

use super::rule::*;
use crate::accept::words::wrong_text;
use diskproof_model::accept::AcceptVerdict;

pub(super) const RULE: Rule = Rule {
    code: "wrong-content",
    title: "Blocks came back with other content",
    summary: "An acceptance test read blocks without an error whose content is not what was \
              written to them, and no smaller capacity explains it.",
    remedy: Remedy::Always(
        "Do not use this disk before the cause is known. Test it again on another cable, port and \
         machine, and the memory with memtest; return the disk if blocks are wrong there, too.",
    ),
    check: Check::Acceptance(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    let accept = record.accept()?;
    // Without a rejection, others may have written what came back.
    if accept.figures.fraud.is_some() || accept.figures.verdict != AcceptVerdict::Reject {
        return None;
    }
    let text = wrong_text(&accept.data)?;
    let bad = accept.data.bad_bytes;
    let mut observations = Vec::new();
    for (place, bytes) in [
        ("lost", bad.lost),
        ("displaced", bad.displaced),
        ("flipped", bad.flipped),
    ] {
        if bytes > 0 {
            let path = first_result_path(&format!("data/bad_bytes/{place}"));
            observations.push(evidence_at(path, bytes as f64, 0.0, "B"));
        }
    }
    Some(Diagnosis::new(
        Severity::Failure,
        format!("{text}, without an error. A database reads damaged pages from it."),
        observations,
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| accepted(Fault::WrongBits), || accepted(Fault::Drops));
}
