//! Answers `--for`: whether a target is fit for a database. A profile is a plan file with limits;
//! it becomes the plan of the run, and its limits are judged as every threshold is.

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_UNIT, SCRATCH_BYTES_USEFUL_MIN};
use crate::plan_file::{PlanFile, PlannedWorkload, groups, resolve_planned, sector_bytes};
use crate::profiles::{BUILT_IN, built_in_profile, profile_name};
use crate::session::{MeasuringJob, measure};
use crate::workload::{Bytes, Content, Memory, Position, ResolveContext, Time};
use diskproof_model::plan::{Layout, Order, Plan, Questions, Scratch, Task, Workload, Workloads};
use diskproof_model::target::{TargetIdentity, TargetKind};
use std::path::Path;

/// The scratch file of a profile that names no size: larger than the data cache of any drive.
const SCRATCH_BYTES: u64 = 1 << 30;
/// The first write of the scratch file and the warm-ups may take a fifth of the time. Chosen, not
/// measured.
const LAYOUT_DIVISOR: u64 = 5;

/// Runs the workloads of a profile, built in or a file, and judges its limits, alongside those of
/// `--expect`.
pub(crate) fn measure_fitness(
    profile: &str,
    verb: &str,
    order: Order,
    identity: TargetIdentity,
    time_ns: u64,
    flags: &MeasuringFlags,
) -> anyhow::Result<Exit> {
    let name = profile_name(profile);
    let profile = Profile::read(name)?;
    let mut judged_flags = flags.clone();
    let mut note = format!("fitness for {name}");
    if let Some(words) = &profile.file.note {
        note = format!("{words}; {note}");
    }
    let mut fit_limits = Vec::new();
    for limit in &profile.file.limits {
        let line = format!(
            "{}: {} ({})",
            limit.name, limit.expected.expression, limit.source
        );
        // The result states the limits beside the figures.
        if flags.dry_run {
            flags.verbosity().note(&line);
        }
        note = format!("{note}; {line}");
        judged_flags.expected.push(limit.expected.clone());
        fit_limits.push(limit.expected.expression.clone());
    }
    let empty_plan = Plan {
        questions: Questions {
            fit_for: Some(name.to_owned()),
            fit_limits,
            ..Questions::default()
        },
        ..flags.plan(verb, std::slice::from_ref(&identity))
    };
    let plan = fitness_plan(empty_plan, order, profile, &identity, time_ns, flags)?;
    judged_flags.note.get_or_insert(note);
    let job = MeasuringJob::new(plan, vec![identity], &judged_flags);
    measure(job)?.exit()
}

/// The plan of a profile on a target. Workloads without a limit of their own share the time.
fn fitness_plan(
    plan: Plan,
    order: Order,
    profile: Profile,
    identity: &TargetIdentity,
    time_ns: u64,
    flags: &MeasuringFlags,
) -> Result<Plan, Failure> {
    let Profile { file, shown } = profile;
    let scratch_bytes = if flags.needs_scratch(identity, "omit it")? {
        Some(scratch_bytes(&file, identity, flags.size))
    } else {
        None
    };
    let layout_ns = time_ns / LAYOUT_DIVISOR;
    let context = ResolveContext {
        target_bytes: vec![scratch_bytes.unwrap_or(identity.size_bytes)],
        memory: Memory::of_host(),
        content: match identity.kind {
            TargetKind::Directory => Content::Nothing,
            TargetKind::File | TargetKind::BlockDevice => Content::Data,
        },
        engine: flags.engine,
    };
    let unit_bytes = sector_bytes(std::slice::from_ref(identity));
    let after_layout = share_time(&file.workloads, time_ns - layout_ns);
    let with_layout = resolve_planned(&shown, &after_layout, context.clone(), unit_bytes)?;
    let is_filled = with_layout
        .workloads
        .iter()
        .any(|workload| workload.layout == Layout::Needed);
    // Without a layout the workloads share the whole time.
    let resolved = if is_filled {
        with_layout
    } else {
        let without_layout = share_time(&file.workloads, time_ns);
        resolve_planned(&shown, &without_layout, context, unit_bytes)?
    };
    refuse_latency_targets(&shown, &resolved.workloads)?;
    let mut plan = Plan {
        seed: flags
            .seed
            .or(file.seed)
            .unwrap_or_else(crate::provenance::random_seed),
        scratch: scratch_bytes.map(Scratch::of_size),
        tasks: vec![Task::Workloads(Workloads {
            order,
            ..Workloads::as_planned(resolved.workloads)
        })],
        skipped: resolved.skipped,
        ..plan
    };
    let warmup_ns: u64 = plan.groups().map(|group| group.warmup_ns()).sum();
    let first_write_ns = layout_ns.saturating_sub(warmup_ns).max(layout_ns / 2);
    if let Some(bytes) = scratch_bytes
        && is_filled
    {
        let scratch =
            Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_USEFUL_MIN, first_write_ns);
        plan.scratch = Some(scratch);
        // A slow disk still answers what is in flight when the first write ends.
        plan.time_limit_ns = plan.time_ns_max().map(|own_ns| own_ns + first_write_ns);
    }
    Ok(plan)
}

/// The size of the scratch file, in whole MiB: that of `--size`, else that of the profile, if there
/// is room.
fn scratch_bytes(file: &PlanFile, identity: &TargetIdentity, size: Option<u64>) -> u64 {
    let planned_bytes = match file.size {
        Some(Bytes(bytes)) => bytes,
        None => SCRATCH_BYTES,
    };
    // Without room for the least, the gate explains its refusal.
    let wanted_bytes = size.unwrap_or(
        planned_bytes
            .min(diskproof_device::scratch_bytes_max(identity))
            .max(least_bytes(file, planned_bytes)),
    );
    wanted_bytes / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT
}

/// The least scratch file of a profile, in bytes: the spans of its workloads lie in it.
fn least_bytes(file: &PlanFile, planned_bytes: u64) -> u64 {
    let mut least = SCRATCH_BYTES_USEFUL_MIN;
    for workload in &file.workloads {
        if let Some(span) = workload.flags.span
            && let Position::Bytes(end) = span.end
        {
            least = least.max(end.next_multiple_of(SCRATCH_BYTES_UNIT));
        }
    }
    // A smaller file than the profile's own size is no matter of room.
    least.min(planned_bytes)
}

fn refuse_latency_targets(shown: &str, workloads: &[Workload]) -> Result<(), Failure> {
    for Workload { name, shape, .. } in workloads {
        if shape.latency_target.is_some() {
            return Err(Failure::Usage(format!(
                "{shown}: '{name}' has a latency target, but profiles use a fixed depth. Write a \
                 limit such as '{name}.read.p99<=5ms'"
            )));
        }
    }
    Ok(())
}

/// The workloads, with equal shares of the time for the groups that have no limit of their own.
fn share_time(planned: &[PlannedWorkload], time_ns: u64) -> Vec<PlannedWorkload> {
    let shares = groups(planned).count() as u64;
    let each_ns = time_ns / shares.max(1);
    let mut shared = planned.to_vec();
    for workload in &mut shared {
        if !workload.flags.has_limit() {
            workload.flags.time = Some(Time(each_ns));
        }
    }
    shared
}

/// A profile of the program, or of a file.
struct Profile {
    file: PlanFile,
    /// The name that errors show.
    shown: String,
}

impl Profile {
    /// Reads the profile of this name, or that of the file of this name. Fails for one without
    /// limits.
    fn read(name: &str) -> Result<Self, Failure> {
        let text;
        let shown;
        match built_in_profile(name) {
            Some(profile) => {
                text = profile.text.to_owned();
                shown = format!("profile {}", profile.name);
            }
            None => {
                text = read_profile_file(name)?;
                shown = name.to_owned();
            }
        }
        let file =
            PlanFile::parse(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}")))?;
        if file.limits.is_empty() {
            return Err(Failure::Usage(format!(
                "{shown}: the file has no [[limit]] to check; see 'diskproof help fitness'"
            )));
        }
        if !file.targets.is_empty() {
            return Err(Failure::Usage(format!(
                "{shown}: 'targets': --for measures the target of the command line; remove the key"
            )));
        }
        Ok(Self { file, shown })
    }
}

fn read_profile_file(path: &str) -> Result<String, Failure> {
    crate::job_file::read_text(Path::new(path)).map_err(|why| {
        let names: Vec<&str> = BUILT_IN.iter().map(|profile| profile.name).collect();
        Failure::Usage(format!(
            "--for {path}: {why}{} Name a profile file, or one of {}",
            if why.ends_with('?') { "" } else { "." },
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::BuiltInProfile;

    #[test]
    fn built_in_profiles_have_limits_with_sources_on_their_own_workloads() {
        for BuiltInProfile { name, .. } in &BUILT_IN {
            let file = Profile::read(name).unwrap().file;
            for limit in &file.limits {
                let names: Vec<&str> = file.workloads.iter().map(|w| w.name.as_str()).collect();
                assert!(limit.source.contains(' '), "{name}: {}", limit.name);
                let workload = limit.expected.workload.as_str();
                assert!(names.contains(&workload), "{name}: {workload}");
            }
        }
    }

    /// Without room for the spans of a profile, the gate explains its refusal: a smaller scratch
    /// file would be an error of usage in a profile that the user has not written.
    #[test]
    fn scratch_file_without_room_holds_the_spans_of_its_profile() {
        let mut identity = diskproof_device::probe(Path::new("/")).unwrap();
        let filesystem = identity.filesystem.as_mut().unwrap();
        filesystem.size_bytes = 100 << 30;
        filesystem.free_bytes = 2 << 30;
        for profile in &BUILT_IN {
            let file = Profile::read(profile.name).unwrap().file;
            let bytes = scratch_bytes(&file, &identity, None);
            assert_eq!(bytes, SCRATCH_BYTES_USEFUL_MIN, "{}", profile.name);
            assert_eq!(scratch_bytes(&file, &identity, Some(16 << 20)), 16 << 20);
        }
        let text = |size: &str| {
            format!("size = '{size}'\n[[workload]]\nname = 'w'\nrw = 'write'\nspan = '0-256MiB'")
        };
        for (size, bytes) in [("512MiB", 256 << 20), ("32MiB", 32 << 20)] {
            let file = PlanFile::parse(&text(size)).unwrap();
            assert_eq!(scratch_bytes(&file, &identity, None), bytes, "{size}");
        }
    }

    #[test]
    fn profile_is_known_by_each_of_its_names() {
        for name in ["pg", "PG", "postgres", "PostgreSQL"] {
            assert_eq!(profile_name(name), "postgresql");
        }
        assert_eq!(profile_name("./pg"), "./pg");
    }

    #[test]
    fn unknown_profile_names_the_known_ones() {
        let error = Profile::read("no-such-profile").err().unwrap().to_string();
        assert!(
            error.contains("postgresql, etcd, mysql, mysql-8.0, sqlite"),
            "{error}"
        );
    }
}
