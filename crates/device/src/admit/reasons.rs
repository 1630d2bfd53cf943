//! Collects the reasons of a refusal until all are known, each with the step that ends it.

use diskproof_model::target::{Refusal, TargetIdentity};

/// The step where this process has no descriptors left (EMFILE, ENFILE).
pub(super) const RAISE_DESCRIPTOR_LIMIT: &str = "raise the limit on open files (ulimit -n)";

/// Separates a reason from its step.
const STEP_ARROW: &str = " → ";

/// The action that ends a reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A sentence with its capital and its full stop, such as `Name a larger device.`
    Sentence(String),
    /// A command, or a clause that stands without capital and full stop: `umount /mnt/x`,
    /// `name one`.
    Clause(String),
}

impl Step {
    pub(crate) fn sentence(text: impl Into<String>) -> Self {
        Self::Sentence(text.into())
    }

    pub(crate) fn clause(text: impl Into<String>) -> Self {
        Self::Clause(text.into())
    }

    /// The step as a remedy of its own.
    fn text(self) -> String {
        match self {
            Self::Sentence(text) | Self::Clause(text) => text,
        }
    }

    /// The step as the end of another sentence.
    fn into_clause(self) -> String {
        let sentence = match self {
            Self::Sentence(sentence) => sentence,
            Self::Clause(clause) => return clause,
        };
        let mut characters = sentence.strip_suffix('.').unwrap_or(&sentence).chars();
        match characters.next() {
            Some(first) => first.to_lowercase().chain(characters).collect(),
            None => String::new(),
        }
    }
}

/// A reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusalReason {
    /// A clause with its facts.
    pub(super) text: String,
    pub(super) step: Step,
}

/// The reasons of a refusal so far, each once.
#[derive(Debug, Default)]
pub(crate) struct RefusalReasons {
    reasons: Vec<RefusalReason>,
}

impl RefusalReasons {
    /// Adds a reason, a clause with its facts, and the step that ends it.
    pub(crate) fn add(&mut self, reason: impl Into<String>, step: Step) {
        let reason = RefusalReason {
            text: reason.into(),
            step,
        };
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Adds that a target, or a part of it, cannot be inspected: then it is not written to.
    pub(super) fn add_uninspected(&mut self, reason: String) {
        let step = "Solve this first; diskproof writes only to targets that it can inspect.";
        self.add(reason, Step::sentence(step));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.reasons.len()
    }

    /// Reasons first, then what to do: for a reading or a scratch file.
    pub(crate) fn into_refusal(self, asked: String) -> Refusal {
        let mut remedies: Vec<String> = Vec::new();
        let mut reasons = Vec::new();
        for RefusalReason { text, step } in self.reasons {
            reasons.push(text);
            let remedy = step.text();
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        Refusal {
            asked,
            reasons,
            remedy: remedies.join(" "),
        }
    }

    /// Each reason with the command or action that ends it: for what would be destroyed.
    pub(crate) fn into_stepwise_refusal(self, asked: String) -> Refusal {
        let mut reasons = Vec::new();
        for RefusalReason { text, step } in self.reasons {
            reasons.push(format!("{text}{STEP_ARROW}{}", step.into_clause()));
        }
        Refusal {
            asked,
            reasons,
            remedy: "Nothing was written.".to_owned(),
        }
    }
}

/// The request that a refusal names.
pub(crate) fn overwriting_asked(identity: &TargetIdentity) -> String {
    format!("overwrite {}", identity.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_become_clauses_and_commands_stay() {
        let sentence = Step::sentence("Run as root, or name another.");
        assert_eq!(sentence.into_clause(), "run as root, or name another");
        for command in ["umount /mnt/x.", "Mount /mnt/x.", ""] {
            assert_eq!(Step::clause(command).into_clause(), command);
        }
    }

    #[test]
    fn reason_and_remedy_of_a_refusal_stand_once() {
        let mut reasons = RefusalReasons::default();
        reasons.add("it is a directory", Step::sentence("Name a file."));
        reasons.add("it is a directory", Step::sentence("Name a file."));
        reasons.add("it is full", Step::sentence("Name a file."));
        reasons.add_uninspected("it cannot be read".to_owned());
        assert_eq!(reasons.count(), 3);
        let refusal = reasons.into_refusal("write it".to_owned());
        assert_eq!(
            refusal.remedy,
            "Name a file. Solve this first; diskproof writes only to targets that it can inspect."
        );
    }
}
