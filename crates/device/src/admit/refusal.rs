//! Collects the reasons of a refusal until all are known. Does not know what they mean.

use diskproof_model::target::Refusal;

/// What stands before the next step behind a reason.
const STEP: &str = " → ";

/// Reasons, and what can be done about each.
#[derive(Debug, Default)]
pub(crate) struct RefusalReasons {
    all: Vec<(String, String)>,
}

impl RefusalReasons {
    /// A reason, a clause with its facts, and what to do about it.
    pub(crate) fn add(&mut self, reason: impl Into<String>, step: impl Into<String>) {
        let reason_and_step = (reason.into(), step.into());
        if !self.all.contains(&reason_and_step) {
            self.all.push(reason_and_step);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Reasons first, then what to do: for a reading or a scratch file.
    pub(crate) fn into_refusal(self, asked: String) -> Refusal {
        let mut remedies: Vec<String> = Vec::new();
        let mut reasons = Vec::new();
        for (reason, step) in self.all {
            reasons.push(reason);
            if !remedies.contains(&step) {
                remedies.push(step);
            }
        }
        Refusal {
            asked,
            reasons,
            remedy: remedies.join(" "),
        }
    }

    /// Each reason with the command or deed that ends it: for what would be destroyed.
    pub(crate) fn into_stepwise_refusal(self, asked: String) -> Refusal {
        let all = self.all.into_iter();
        let reasons = all.map(|(reason, step)| format!("{reason}{STEP}{}", clause(&step)));
        Refusal {
            asked,
            reasons: reasons.collect(),
            remedy: "Nothing was written.".to_owned(),
        }
    }
}

/// A sentence as the end of another one; commands stay as they are.
fn clause(step: &str) -> String {
    match step
        .strip_suffix('.')
        .and_then(|sentence| Some((sentence.chars().next()?, sentence)))
    {
        Some((first, sentence)) if first.is_uppercase() => first
            .to_lowercase()
            .chain(sentence.chars().skip(1))
            .collect(),
        _ => step.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_become_clauses_and_commands_stay() {
        assert_eq!(
            clause("Run as root, or name another."),
            "run as root, or name another"
        );
        for same in ["umount /mnt/x.", "name one", "", "."] {
            assert_eq!(clause(same), same);
        }
    }
}
