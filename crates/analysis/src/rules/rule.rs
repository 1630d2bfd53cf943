//! What a rule is: the entry of one finding in the registry. Knows no rule.

use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;

/// A rule and everything that is known about its finding.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable code of its finding.
    pub code: &'static str,
    /// What it finds, in at most eight words.
    pub title: &'static str,
    /// What the finding means, for the reference: one or two sentences.
    pub meaning: &'static str,
    /// Whether `compare` refuses a figure that the finding concerns.
    pub taints: Option<Taint>,
    /// The rule itself, and what it examines.
    pub check: Check,
    /// The cases that its test uses.
    #[cfg(test)]
    pub(crate) examples: Examples,
}

/// What a rule examines.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// The workloads of a run.
    Workloads(fn(&Record) -> Option<Diagnosis>),
    /// The survey of a disk.
    Survey(fn(&Record) -> Option<Diagnosis>),
    /// Workloads and survey.
    Run(fn(&Record) -> Option<Diagnosis>),
    /// What the disks report about themselves, with or without a measurement.
    Health(fn(&[DiskHealth]) -> Option<Diagnosis>),
}

impl Check {
    /// What it examines, for the reference.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Workloads(_) => "workloads",
            Self::Survey(_) => "survey",
            Self::Run(_) => "workloads, survey",
            Self::Health(_) => "disk health",
        }
    }
}

/// Why the figures that a finding concerns are not compared.
#[derive(Debug, Clone, Copy)]
pub struct Taint {
    /// From this severity on.
    pub from: Severity,
    /// The reason, before the name of the run: `operations failed in`.
    pub why: &'static str,
}

/// What a rule found; the registry adds code and title.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Its weight.
    pub severity: Severity,
    /// One sentence with the figures that decide, one with the consequence for a database.
    pub claim: String,
    /// What was observed; never empty.
    pub evidence: Vec<Evidence>,
    /// What to do, in the imperative.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    pub reproduce: Option<String>,
}

impl Diagnosis {
    /// Without a command that shows the same thing.
    pub fn new(
        severity: Severity,
        claim: String,
        evidence: impl IntoIterator<Item = Evidence>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            claim,
            evidence: evidence.into_iter().collect(),
            remedy: remedy.into(),
            reproduce: None,
        }
    }
}

/// A record on which a rule fires, and one on which it must not.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples {
    pub(crate) fires: fn() -> Record,
    pub(crate) silent: fn() -> Record,
}

impl Rule {
    /// The finding on a record.
    pub fn find(&self, record: &Record) -> Option<Finding> {
        match self.check {
            Check::Workloads(check) | Check::Survey(check) | Check::Run(check) => {
                check(record).map(|diagnosis| self.finding(diagnosis))
            }
            Check::Health(_) => self.find_in_health(&record.health),
        }
    }

    /// The finding on the health of disks; `None` from a rule that examines anything else.
    pub fn find_in_health(&self, health: &[DiskHealth]) -> Option<Finding> {
        match self.check {
            Check::Health(check) => check(health).map(|diagnosis| self.finding(diagnosis)),
            Check::Workloads(_) | Check::Survey(_) | Check::Run(_) => None,
        }
    }

    fn finding(&self, diagnosis: Diagnosis) -> Finding {
        Finding {
            code: self.code.to_owned(),
            title: Some(self.title.to_owned()),
            severity: diagnosis.severity,
            claim: diagnosis.claim,
            evidence: diagnosis.evidence,
            remedy: diagnosis.remedy,
            reproduce: diagnosis.reproduce,
        }
    }
}
