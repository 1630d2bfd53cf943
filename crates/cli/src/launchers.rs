//! What the launcher of this process tells by its environment.

use diskproof_cluster::launcher;
use diskproof_model::target::Rank;

/// The rank that the launcher gave this process.
pub(crate) fn rank() -> Option<Rank> {
    launcher::rank(variable)
}

/// The job that all ranks belong to.
pub(crate) fn job() -> Option<String> {
    launcher::job(variable)
}

/// The number of the socket for fences.
pub(crate) fn pmi_socket() -> Option<i32> {
    launcher::pmi_socket(variable)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
