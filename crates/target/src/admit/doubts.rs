//! Reasons for a refusal, collected until all are known. Knows nothing of what they are.

use diskproof_model::target::Refusal;

/// What stands before the next step behind a reason.
const STEP: &str = " → ";

/// Reasons, and what can be done about each.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    all: Vec<(String, String)>,
}

impl Doubts {
    /// A reason, a clause with its facts, and what to do about it.
    pub(crate) fn add(&mut self, reason: impl Into<String>, step: impl Into<String>) {
        let doubt = (reason.into(), step.into());
        if !self.all.contains(&doubt) {
            self.all.push(doubt);
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
        Refusal { asked, reasons, remedy: remedies.join(" ") }
    }

    /// Each reason with the command or deed that ends it: for what would be destroyed.
    pub(crate) fn into_stepwise_refusal(self, asked: String) -> Refusal {
        let reasons = self.all.into_iter().map(|(reason, step)| format!("{reason}{STEP}{step}")).collect();
        Refusal { asked, reasons, remedy: "Nothing was written.".to_owned() }
    }
}
