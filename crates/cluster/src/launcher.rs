//! What launchers tell a process by variables: its rank, the job that it belongs to, and the socket
//! on which their fences are asked for.

use diskproof_model::target::Rank;

/// Variables of the rank and of the number of ranks. Those of Open MPI and of the process manager
/// interface come before Slurm's, which also stand in the environment of an mpirun within a job.
const RANKS: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    // An indexed Job of Kubernetes; it does not tell how many there are.
    ("JOB_COMPLETION_INDEX", ""),
    ("PMIX_RANK", ""),
];
/// Variables that name a job and, where it starts several programs, the step.
const JOBS: [(&str, &str); 2] = [
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("OMPI_MCA_ess_base_jobid", ""),
];
/// The number of the socket on which the process manager interface is spoken.
const PMI_SOCKET: &str = "PMI_FD";

/// The rank of a process whose environment has these variables; `None` where no launcher gave it
/// one.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
    for (rank, size) in RANKS {
        if let Some(text) = variable(rank)
            && let Ok(rank) = text.parse()
        {
            return Some(Rank {
                rank,
                size: variable(size).and_then(|text| text.parse().ok()),
            });
        }
    }
    None
}

/// The name of the job, which all its ranks share; `None` where the launcher gives none.
pub fn job(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    for (job, step) in JOBS {
        if let Some(job) = variable(job) {
            return Some(format!("{job}.{}", variable(step).unwrap_or_default()));
        }
    }
    None
}

/// The number of the socket for fences; `None` where the launcher offers none.
pub fn pmi_socket(variable: impl Fn(&str) -> Option<String>) -> Option<i32> {
    variable(PMI_SOCKET)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable_of<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let mut matching = set.iter().filter(|(variable, _)| *variable == name);
            matching.next().map(|(_, value)| (*value).to_owned())
        }
    }

    fn found(set: &[(&str, &str)]) -> Option<Rank> {
        rank(variable_of(set))
    }

    #[test]
    fn first_launcher_with_a_rank_counts() {
        let rank = |rank, size| Some(Rank { rank, size });
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];
        assert_eq!(found(&slurm), rank(0, Some(1)));
        let within = [slurm[0], slurm[1], ("PMI_RANK", "3"), ("PMI_SIZE", "8")];
        assert_eq!(found(&within), rank(3, Some(8)));
        assert_eq!(found(&[("JOB_COMPLETION_INDEX", "12")]), rank(12, None));
        assert_eq!(
            found(&[("SLURM_PROCID", "x"), ("PMIX_RANK", "2")]),
            rank(2, None)
        );
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn job_has_its_step() {
        let set = [("SLURM_JOB_ID", "17"), ("SLURM_STEP_ID", "2")];
        assert_eq!(job(variable_of(&set)), Some("17.2".to_owned()));
        assert_eq!(job(variable_of(&[])), None);
        assert_eq!(pmi_socket(variable_of(&[("PMI_FD", "9")])), Some(9));
        assert_eq!(pmi_socket(variable_of(&[("PMI_FD", "")])), None);
    }
}
