//! Says why a comparison cannot be made: errors of the user's question, not of the runs.

/// A comparison that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The margin is outside of 0 % to 100 %.
    #[error("the margin {0} is not between 0 % and 100 %; use for example --margin 2%")]
    Margin(String),
    /// A side has no runs.
    #[error("{0}: no run to compare; name at least one")]
    Empty(String),
    /// A condition is on a metric that no run has.
    #[error("--fail-on '{expression}': no metric is named '{metric}'; use one of {known}")]
    Metric {
        /// The condition as the user wrote it.
        expression: String,
        /// The metric in it.
        metric: String,
        /// The metrics that exist, separated by commas.
        known: String,
    },
    /// A condition is on a metric that several targets have.
    #[error("--fail-on '{expression}': several targets have '{metric}'; write {spelled}")]
    Target {
        /// The condition as the user wrote it.
        expression: String,
        /// The metric in it.
        metric: String,
        /// The metric of each target.
        spelled: String,
    },
}
