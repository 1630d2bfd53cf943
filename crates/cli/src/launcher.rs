//! The place of this process among those that a launcher started, by the variables that it sets.

use diskproof_model::target::Rank;

/// Variables of the rank and of the number of ranks. Those of Open MPI and of the process manager
/// interface come before Slurm's, which also stand in the environment of an mpirun within a job.
const VARIABLES: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    // An indexed Job of Kubernetes; it does not tell how many there are.
    ("JOB_COMPLETION_INDEX", ""),
    ("PMIX_RANK", ""),
];

/// The rank of this process; `None` where no launcher gave it one.
pub(crate) fn rank() -> Option<Rank> {
    rank_from(|name| std::env::var(name).ok())
}

fn rank_from(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
    for (rank, size) in VARIABLES {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_launcher_with_a_rank_counts() {
        let found = |set: &[(&str, &str)]| {
            rank_from(|name| {
                let mut matching = set.iter().filter(|(variable, _)| *variable == name);
                matching.next().map(|(_, value)| (*value).to_owned())
            })
        };
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
}
