//! Reads what a launcher (mpirun, srun, …) puts into the environment of this process.

use diskproof_cluster::launcher;
use diskproof_model::target::Rank;

/// The rank that the launcher gave this process; `None` without a launcher that has ranks.
pub(crate) fn rank() -> Option<Rank> {
    launcher::rank(variable)
}

/// The launcher's id of the job that all ranks belong to; `None` where it has none.
pub(crate) fn job() -> Option<String> {
    launcher::job(variable)
}

/// The file descriptor of the launcher's PMI socket, by which ranks wait for each other; `None`
/// without one.
pub(crate) fn pmi_socket() -> Option<i32> {
    launcher::pmi_socket(variable)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
