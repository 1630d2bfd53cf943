//! Why a comparison cannot be made.

/// A comparison that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A margin outside of 0 % to 100 %.
    #[error("the margin {0} is not between 0 % and 100 %; use for example --margin 2%")]
    Margin(String),
    /// A side without runs.
    #[error("{0}: no run to compare; name at least one")]
    Empty(String),
    /// A condition on a metric that no run has.
    #[error("--fail-on '{expression}': no metric is named '{metric}'; use one of {known}")]
    Metric {
        /// As given.
        expression: String,
        /// What it names.
        metric: String,
        /// What there is.
        known: String,
    },
}
