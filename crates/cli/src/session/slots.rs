//! Turns the plan of a verb into one that is measured in slots together with other hosts, or
//! refuses it: hosts must do the same, however their disks answer.

use super::job::MeasuringJob;
use super::task_words::task_words;
use crate::failure::Failure;
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_UNIT, SECOND_NS, StartAt};
use crate::launchers;
use diskproof_device::scratch_bytes_max;
use diskproof_model::plan::{Decide, Fill, Order, Plan, SkipCause, Task, Workloads};
use diskproof_model::scatter::mixed;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::timetable::SlotPlan;
use diskproof_model::units::format_bytes;
use std::time::{Duration, SystemTime};

/// The time between two slots, in which requests in flight end and the next workload is prepared.
/// Chosen, not measured: a host that needs longer skips a slot, and its record says so.
const GAP_NS: u64 = 300_000_000;
/// A scratch file is expected to be filled at 100 MB/s before the first slot; a slower disk misses
/// slots, or its user names a later start.
const FILL_NS_PER_BYTE: u64 = 10;
/// The time before the first slot, of which the launcher's answers and the first preparation take a
/// part. Chosen, not measured.
const LEAD_NS_DEFAULT: u64 = 2 * SECOND_NS;
/// A start that is further away than this is a slip of the pen, or the clock is wrong.
const START_DISTANCE_MAX: Duration = Duration::from_secs(86_400);
/// The seed of the order of slots where neither a start, nor a job, nor the user gives one. Any
/// value will do that all hosts share.
const SEED: u64 = 1;

/// Begins an error about a plan that `--together` refuses: what a plan in slots needs.
const SLOTS_NEED: &str = "--together measures fixed workloads: those of 'check', 'run' and plan \
                          files";

/// The plan in slots where the user asks for them; any other plan as it is.
pub(super) fn planned_in_slots(mut job: MeasuringJob<'_>) -> Result<MeasuringJob<'_>, Failure> {
    let together = &job.flags.together;
    if !together.together {
        if matches!(job.plan.order(), Order::InSlots(_)) {
            let why = "the run was measured together with other hosts; repeat it with --together \
                       on each of them";
            return Err(Failure::Usage(why.to_owned()));
        }
        return Ok(job);
    }
    // A plan that no start would help is refused for itself.
    refuse_unequal(&job.plan, &job.identities, job.flags)?;
    refuse_without_start(job.flags)?;
    let scratch_bytes = job.plan.scratch_bytes().unwrap_or(0) * job.identities.len() as u64;
    let slots = SlotPlan {
        lead_ns: match together.start_at {
            Some(StartAt::Time(_)) => 0,
            Some(StartAt::AfterFence(lead_ns)) => lead_ns,
            None => LEAD_NS_DEFAULT + scratch_bytes.saturating_mul(FILL_NS_PER_BYTE),
        },
        gap_ns: GAP_NS,
    };
    let seed = seed(job.flags);
    let plan = &mut job.plan;
    plan.seed = seed;
    plan.time_limit_ns = None;
    if let Some(scratch) = &mut plan.scratch {
        scratch.fill = Fill::Whole;
    }
    if let Some(workloads) = plan.workload_task_mut() {
        workloads.order = Order::InSlots(slots);
        for workload in &mut workloads.list {
            workload.stop.precision = None;
        }
    }
    Ok(job)
}

/// Refuses a run without an instant that all hosts have in common: it has no slots.
fn refuse_without_start(flags: &MeasuringFlags) -> Result<(), Failure> {
    if let Some(StartAt::Time(time)) = flags.together.start_at {
        let start = SystemTime::from(time);
        let now = SystemTime::now();
        let distance = start
            .duration_since(now)
            .or_else(|_| now.duration_since(start));
        return match distance {
            Ok(distance) if distance <= START_DISTANCE_MAX => Ok(()),
            _ => Err(Failure::Usage(format!(
                "--start-at {time}: this is more than a day away from the wall clock of this host"
            ))),
        };
    }
    if launchers::pmi_socket().is_some() {
        return Ok(());
    }
    Err(Failure::Usage(
        "--together needs one instant for all hosts, and this launcher offers no fence (PMI_FD). \
         Give all of them the same time, such as --start-at @$(($(date +%s) + 60)), or start them \
         with mpiexec.hydra or 'srun --mpi=pmi2'"
            .to_owned(),
    ))
}

/// Refuses a plan that would differ from host to host, or whose length depends on its results.
fn refuse_unequal(
    plan: &Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
) -> Result<(), Failure> {
    let workloads = fixed_workloads(plan)?;
    for skipped in &plan.skipped {
        // The user's flags skip the same on all hosts.
        if skipped.cause == SkipCause::Target {
            return Err(Failure::Usage(format!(
                "--together: '{}' would be skipped here ({}), and perhaps not on other hosts. \
                 Select what all of them measure: --read-only, --only or --skip",
                skipped.workload, skipped.why
            )));
        }
    }
    for workload in &workloads.list {
        if workload.write_cache.is_some() {
            return Err(Failure::Usage(format!(
                "{SLOTS_NEED}, and '{}' switches the disk's write cache",
                workload.name
            )));
        }
    }
    let unlimited =
        diskproof_model::group::groups(&workloads.list).find(|group| group.shortest_ns().is_none());
    if let Some(group) = unlimited {
        return Err(Failure::Usage(format!(
            "--together: '{}' has no time limit, and slots have a fixed length. Give it one with \
             --time",
            group.workloads[0].name
        )));
    }
    refuse_cut_scratch(plan, identities, flags)
}

/// The workloads of a plan that has nothing else, and decides nothing by results.
fn fixed_workloads(plan: &Plan) -> Result<&Workloads, Failure> {
    if plan.is_of_other_tool() {
        return Err(Failure::Usage(format!(
            "{SLOTS_NEED}. A command line of another tool runs as that tool would"
        )));
    }
    let mut fixed = None;
    for task in &plan.tasks {
        if let Task::Workloads(workloads) = task
            && workloads.decide == Decide::AsPlanned
        {
            fixed = Some(workloads);
            continue;
        }
        let why = task_words(task).no_slots;
        return Err(Failure::Usage(format!("{SLOTS_NEED}; {why}")));
    }
    fixed.ok_or_else(|| Failure::Usage(SLOTS_NEED.to_owned()))
}

/// Refuses a scratch file that free space cuts: it has another size on each host.
fn refuse_cut_scratch(
    plan: &Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
) -> Result<(), Failure> {
    if flags.size.is_some() {
        return Ok(());
    }
    for (index, identity) in identities.iter().enumerate() {
        let Some(bytes) = plan.scratch_bytes_on(index) else {
            continue;
        };
        let room = scratch_bytes_max(identity) / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT;
        if identity.kind == TargetKind::Directory && bytes >= room {
            return Err(Failure::Usage(format!(
                "--together: free space in {} leaves {} for the scratch file, and other hosts \
                 may have more. Give all of them a size that fits everywhere, such as --size {}",
                identity.path,
                format_bytes(bytes),
                size_that_fits(bytes)
            )));
        }
    }
    Ok(())
}

/// The greatest power of two in MiB that fits, as `--size` takes it.
fn size_that_fits(bytes: u64) -> String {
    let mebibytes = (bytes / SCRATCH_BYTES_UNIT).max(1);
    format!("{}MiB", 1 << mebibytes.ilog2())
}

/// The seed of the order of slots, which is the same on all hosts: the user's, that of the start,
/// or that of the launcher's job. Each host computes it by itself, so a change of the arithmetic
/// lets hosts with different versions measure in different orders.
fn seed(flags: &MeasuringFlags) -> u64 {
    if let Some(seed) = flags.seed {
        return seed;
    }
    if let Some(StartAt::Time(time)) = flags.together.start_at {
        return lowest_53_bits(time.as_second().unsigned_abs());
    }
    let mut seed = SEED;
    for byte in launchers::job().unwrap_or_default().bytes() {
        seed = mixed(seed, u64::from(byte));
    }
    lowest_53_bits(seed)
}

/// The lowest 53 bits of a seed: JSON readers in every language keep such a number exact.
fn lowest_53_bits(seed: u64) -> u64 {
    seed & ((1 << 53) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::{Scratch, Skipped, Workload};
    use diskproof_model::target::WriteCache;

    #[test]
    fn size_that_fits_is_a_power_of_two() {
        assert_eq!(size_that_fits(1000 * SCRATCH_BYTES_UNIT), "512MiB");
        assert_eq!(size_that_fits(1024 * SCRATCH_BYTES_UNIT), "1024MiB");
        assert_eq!(size_that_fits(0), "1MiB");
    }

    #[test]
    fn seed_is_exact_in_json() {
        assert_eq!(lowest_53_bits(u64::MAX), 9_007_199_254_740_991);
        assert_eq!(lowest_53_bits(5), 5);
    }

    /// A workload of one second.
    fn timed(name: &str) -> Workload {
        let mut workload = Workload::named(name);
        workload.stop.time_ns = Some(SECOND_NS);
        workload
    }

    fn plan_of(workloads: Workloads) -> Plan {
        Plan {
            tasks: vec![Task::Workloads(workloads)],
            ..Plan::default()
        }
    }

    fn is_refused(plan: &Plan) -> bool {
        refuse_unequal(plan, &[], &MeasuringFlags::default()).is_err()
    }

    #[test]
    fn plan_that_differs_from_host_to_host_has_no_slots() {
        let plan = plan_of(Workloads::as_planned(vec![timed("a"), timed("b")]));
        assert!(!is_refused(&plan));
        for (skipped, expected) in [
            (Skipped::new("b", "read-only target"), true),
            (Skipped::by_flag("b", "--skip"), false),
        ] {
            let plan = Plan {
                skipped: vec![skipped],
                ..plan.clone()
            };
            assert_eq!(is_refused(&plan), expected);
        }
        let mut cached = timed("a");
        cached.write_cache = Some(WriteCache::WriteThrough);
        assert!(is_refused(&plan_of(Workloads::as_planned(vec![cached]))));
    }

    #[test]
    fn plan_whose_length_depends_on_its_results_has_no_slots() {
        let unlimited = vec![timed("a"), Workload::named("b")];
        assert!(is_refused(&plan_of(Workloads::as_planned(unlimited))));
        let searched = Workloads {
            decide: Decide::Depth,
            ..Workloads::as_planned(vec![timed("a")])
        };
        assert!(is_refused(&plan_of(searched)));
        assert!(is_refused(&Plan::default()), "no workloads");
    }

    #[test]
    fn scratch_file_that_fills_the_free_space_needs_a_size() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let identity = diskproof_device::probe(directory.path()).unwrap();
        let room = scratch_bytes_max(&identity) / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT;
        let plan_with = |size_bytes: u64| Plan {
            scratch: Some(Scratch::of_size(size_bytes)),
            ..plan_of(Workloads::as_planned(vec![timed("a")]))
        };
        let identities = [identity];
        let mut flags = MeasuringFlags::default();
        let is_refused = |size_bytes: u64, flags: &MeasuringFlags| {
            refuse_unequal(&plan_with(size_bytes), &identities, flags).is_err()
        };
        // Other programs change the free space meanwhile.
        assert!(!is_refused(room / 2, &flags));
        assert!(is_refused(room + room / 2, &flags));
        flags.size = Some(room + room / 2);
        assert!(!is_refused(room + room / 2, &flags));
    }

    #[test]
    fn seed_of_the_user_comes_before_that_of_the_start() {
        let mut flags = MeasuringFlags::default();
        let start = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        flags.together.start_at = Some(StartAt::Time(start));
        assert_eq!(seed(&flags), 1_800_000_000);
        flags.seed = Some(7);
        assert_eq!(seed(&flags), 7);
    }

    #[test]
    fn start_is_at_most_a_day_away() {
        let now = jiff::Timestamp::now();
        let mut flags = MeasuringFlags::default();
        for (hours, is_refused) in [(1, false), (-1, false), (25, true), (-25, true)] {
            let start = now + jiff::SignedDuration::from_hours(hours);
            flags.together.start_at = Some(StartAt::Time(start));
            assert_eq!(refuse_without_start(&flags).is_err(), is_refused, "{hours}");
        }
    }
}
