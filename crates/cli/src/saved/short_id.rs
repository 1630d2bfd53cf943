//! Shortens the id of a run for people.

/// Digits of a shortened run id: unique among millions of runs, and narrow enough for a list.
const SHORT_ID_DIGITS: usize = 8;

/// The first digits of a run's id, as lists show it.
pub(crate) fn short_id(run_id: &str) -> &str {
    run_id.get(..SHORT_ID_DIGITS).unwrap_or(run_id)
}
