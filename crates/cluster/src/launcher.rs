//! Reads from the environment of a process what its launcher gave it: its rank, the job that it
//! belongs to, and the socket on which its fences are requested.

use diskproof_model::target::Rank;

/// The variables of a launcher for the rank of a process.
struct RankVariables {
    rank: &'static str,
    /// The variable with the number of ranks; `None` where the launcher sets none.
    size: Option<&'static str>,
    /// A variable that only processes with a rank have; `None` where the one with the rank is
    /// enough.
    only_with: Option<&'static str>,
}

/// The variables of each launcher, in the order in which they are looked for. Those of Open MPI and
/// of the process manager interface come before Slurm's, which also stand in the environment of an
/// mpirun within a job.
const RANKS: [RankVariables; 5] = [
    RankVariables {
        rank: "OMPI_COMM_WORLD_RANK",
        size: Some("OMPI_COMM_WORLD_SIZE"),
        only_with: None,
    },
    RankVariables {
        rank: "PMI_RANK",
        size: Some("PMI_SIZE"),
        only_with: None,
    },
    // A batch script has rank 0 of all tasks of its job, too, although it is none of them. Only
    // srun starts a step (srun(1), "OUTPUT ENVIRONMENT VARIABLES").
    RankVariables {
        rank: "SLURM_PROCID",
        size: Some("SLURM_STEP_NUM_TASKS"),
        only_with: Some("SLURM_STEP_ID"),
    },
    // An indexed Job of Kubernetes.
    RankVariables {
        rank: "JOB_COMPLETION_INDEX",
        size: None,
        only_with: None,
    },
    RankVariables {
        rank: "PMIX_RANK",
        size: None,
        only_with: None,
    },
];

/// The variables of a launcher for a job.
struct JobVariables {
    job: &'static str,
    /// The variable with the step of a job that starts several programs; `None` where there is
    /// none.
    step: Option<&'static str>,
}

/// The variables of each launcher, in the order in which they are looked for: an mpirun within a
/// job of Slurm belongs to that job.
const JOBS: [JobVariables; 2] = [
    JobVariables {
        job: "SLURM_JOB_ID",
        step: Some("SLURM_STEP_ID"),
    },
    JobVariables {
        job: "OMPI_MCA_ess_base_jobid",
        step: None,
    },
];
/// The number of the socket on which the process manager interface is spoken.
const PMI_SOCKET: &str = "PMI_FD";

/// The rank of a process whose environment has these variables; `None` where no launcher gave it
/// one.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
    for variables in RANKS {
        if let Some(needed) = variables.only_with
            && variable(needed).is_none()
        {
            continue;
        }
        if let Some(text) = variable(variables.rank)
            && let Ok(rank) = text.parse()
        {
            let size_text = variables.size.and_then(&variable);
            return Some(Rank {
                rank,
                size: size_text.and_then(|text| text.parse().ok()),
            });
        }
    }
    None
}

/// The name of the job as JOB.STEP, which all its ranks share. The step is empty where the launcher
/// gives none; `None` where the launcher gives none.
pub fn job(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    for variables in JOBS {
        if let Some(job) = variable(variables.job) {
            let step = variables.step.and_then(&variable).unwrap_or_default();
            return Some(format!("{job}.{step}"));
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
        let slurm = [
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("SLURM_NTASKS", "4"),
        ];
        assert_eq!(found(&slurm), rank(0, Some(1)));
        let within = [&slurm[..], &[("PMI_RANK", "3"), ("PMI_SIZE", "8")]].concat();
        assert_eq!(found(&within), rank(3, Some(8)));
        assert_eq!(found(&[("JOB_COMPLETION_INDEX", "12")]), rank(12, None));
        assert_eq!(
            found(&[("SLURM_PROCID", "x"), ("PMIX_RANK", "2")]),
            rank(2, None)
        );
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn batch_script_has_no_rank() {
        let script = [
            ("SLURM_JOB_ID", "17"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "4"),
        ];
        assert_eq!(found(&script), None);
        let mpirun = [&script[..], &[("PMIX_RANK", "2")]].concat();
        assert_eq!(
            found(&mpirun),
            Some(Rank {
                rank: 2,
                size: None
            })
        );
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
