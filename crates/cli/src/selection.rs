//! Flags `--only` and `--skip`: which of a verb's own workloads a run measures. Knows no plan.

use crate::failure::Failure;

/// Selected workloads.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SelectionFlags {
    /// Measure only these workloads, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(conflicts_with = "skip")]
    pub only: Vec<String>,
    /// Skip these workloads
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub skip: Vec<String>,
}

impl SelectionFlags {
    /// Names that this run does not know are errors: a misspelt one would measure too little, or
    /// too much.
    pub(crate) fn check_names(&self, known: &[&str]) -> Result<(), Failure> {
        let unknown = |name: &&String| !known.contains(&name.as_str());
        for (flag, names) in [("--only", &self.only), ("--skip", &self.skip)] {
            if let Some(name) = names.iter().find(unknown) {
                return Err(Failure::Usage(format!(
                    "{flag} {name}: there is no such workload; use {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// The flag that excludes a workload.
    pub(crate) fn excludes(&self, name: &str) -> Option<&'static str> {
        let is_in = |names: &[String]| names.iter().any(|one| one == name);
        if !self.only.is_empty() && !is_in(&self.only) {
            Some("--only")
        } else {
            is_in(&self.skip).then_some("--skip")
        }
    }
}
