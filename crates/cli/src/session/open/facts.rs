//! Gathers the facts of a run when it begins: its tool, host, clock and seed.

use crate::flags::MeasuringFlags;
use crate::launchers;
use crate::provenance::{machine_of, random_seed, run_id, timestamp, tool};
use crate::session::fences::wall_clock;
use diskproof_analysis::judge::{RunFacts, RunVariation};
use diskproof_device::host_facts;
use diskproof_engine::{Session, measure_clock};
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::scatter::mixed;
use diskproof_model::target::{HostFacts, TargetIdentity};
use std::time::SystemTime;

/// The facts of a run that begins with this session.
pub(super) fn session_facts(
    session: &Session,
    plan: Plan,
    identities: Vec<TargetIdentity>,
    note: Option<String>,
    health: Vec<DiskHealth>,
    flags: &MeasuringFlags,
) -> RunFacts {
    let mut facts = RunFacts {
        note,
        health,
        ..run_facts(session.started(), plan, identities)
    };
    if flags.together.together {
        facts.clock.wall = Some(wall_clock(&flags.together, session));
    }
    if let Some(rank) = flags.together.rank {
        facts.host.rank = Some(rank);
    }
    facts
}

/// The seed of offsets and data. Of hosts that measure together the plan is the same, and what they
/// read and write is not.
pub(super) fn seed_of_host(plan: &Plan, flags: &MeasuringFlags) -> u64 {
    if !flags.together.together {
        return plan.seed;
    }
    match flags.together.rank.or_else(launchers::rank) {
        Some(rank) => mixed(plan.seed, u64::from(rank.rank)),
        None => mixed(plan.seed, random_seed()),
    }
}

/// The facts of a run that began at this instant.
pub(crate) fn run_facts(started: SystemTime, plan: Plan, targets: Vec<TargetIdentity>) -> RunFacts {
    RunFacts {
        tool: tool(),
        run_id: run_id(),
        started: timestamp(started),
        partial: false,
        ended_early: None,
        stalled: None,
        failed: None,
        note: None,
        host: host_of_run(),
        silences: Vec::new(),
        first_answers: Vec::new(),
        clock: measure_clock(),
        plan,
        targets,
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    }
}

/// The host, with what its launcher says of this process.
fn host_of_run() -> HostFacts {
    let host = host_facts();
    HostFacts {
        rank: launchers::rank(),
        job: launchers::job(),
        machine: machine_of(&host),
        ..host
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::target::Rank;

    /// Hosts that measure one file system together must not send the same requests.
    #[test]
    fn hosts_that_measure_together_have_seeds_of_their_own() {
        let mut plan = Plan::new("run", Vec::new());
        plan.seed = 7;
        let seed_of = |together: bool, rank: u32| {
            let mut flags = MeasuringFlags::default();
            flags.together.together = together;
            flags.together.rank = Some(Rank {
                rank,
                size: Some(2),
            });
            seed_of_host(&plan, &flags)
        };
        assert_eq!(seed_of(false, 1), 7);
        assert_eq!(seed_of(true, 1), seed_of(true, 1));
        assert_ne!(seed_of(true, 0), seed_of(true, 1));
        assert_ne!(seed_of(true, 1), 7);
    }
}
