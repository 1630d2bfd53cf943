//! How long a run takes, in words: exactly, at most, at the usual speed of such a disk, or as long
//! as its bytes need.

use crate::text::{glue, list};
use diskproof_model::budget::Budget;
use diskproof_model::group::Group;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes, format_duration};

/// In place of the time of a plan that nothing limits.
const UNLIMITED: &str = "unlimited time";

/// Says how long the run takes: exactly, at most, or at the usual speed of such a disk. The first
/// write of scratch files comes on top.
pub(super) fn longest_time_text(
    plan: &Plan,
    budget: &Budget,
    identities: &[TargetIdentity],
) -> String {
    let Some(ns) = budget.expected_ns else {
        return match plan.survey() {
            Some(_) => UNLIMITED.to_owned(),
            None => unlimited_time_text(plan),
        };
    };
    if let (Some(files), Some(each_ns)) = (plan.files(), budget.fill_ns) {
        let (time, each) = (format_duration(ns), format_duration(each_ns));
        let sets = u64::from(files.rounds) * files.orders.len() as u64;
        return format!(
            "at most {time}, and at most {each} each time that a set of files is written back, \
             checked or removed ({})",
            counted(sets, "set")
        );
    }
    let time = format!("{}{}", format_duration(ns), fill_text(budget, identities));
    let depends_on_speed = plan.survey().is_some() || plan.accept().is_some();
    if !depends_on_speed || plan.time_limit_ns == Some(ns) {
        return format!("about {time}");
    }
    let kind = match identities.first() {
        Some(identity) if identity.rotational() == Some(false) => "an SSD",
        Some(_) | None => "a rotating disk",
    };
    match budget.deadline_ns {
        None => format!("as long as the disk needs, {time} at the usual speed of {kind}"),
        Some(most_ns) if most_ns > ns => {
            let most_text = format_duration(most_ns);
            format!("about {time} at the usual speed of {kind}, at most {most_text}")
        }
        Some(_) => format!("about {time} at the usual speed of {kind}"),
    }
}

/// ` after at most 20 s to fill the scratch file`: of all directories together. Empty where nothing
/// is filled, and where the plan does not limit that (`u64::MAX`).
fn fill_text(budget: &Budget, identities: &[TargetIdentity]) -> String {
    let Some(fill_ns) = budget.fill_ns else {
        return String::new();
    };
    if fill_ns == u64::MAX {
        return String::new();
    }
    let directories = identities
        .iter()
        .filter(|identity| identity.kind == TargetKind::Directory)
        .count();
    let fill_time = format_duration(fill_ns.saturating_mul(directories as u64));
    format!(" after at most {fill_time} to fill the scratch file")
}

/// Says how long a plan without a time limit takes: as long as its bytes or operations need, if
/// they limit all of it.
fn unlimited_time_text(plan: &Plan) -> String {
    let workloads = plan.workloads();
    if workloads.is_empty() {
        return UNLIMITED.to_owned();
    }
    if let Some(sustain) = plan.sustain()
        && let Some(bytes) = sustain.precondition_bytes
        && let Some(load) = sustain.load(workloads)
    {
        let load_ns = load.stop.time_ns.unwrap_or(0);
        let written = glue(&format_bytes(bytes));
        return format!(
            "as long as {written} need, then {}",
            format_duration(load_ns)
        );
    }
    let Some(need) = UntimedNeed::find(plan) else {
        return UNLIMITED.to_owned();
    };
    need.text()
}

/// What the workloads of a plan move that end without a time of their own, and the time of the
/// others.
#[derive(Default)]
struct UntimedNeed {
    bytes: u64,
    operations: u64,
    timed_ns: u64,
}

impl UntimedNeed {
    /// `None` where a workload has no end at all.
    fn find(plan: &Plan) -> Option<Self> {
        let mut need = Self::default();
        for group in plan.groups() {
            let mut longest_ns = 0;
            for workload in group.workloads {
                let stop = &workload.stop;
                if let Some(end_ns) = end_ns(group, workload) {
                    longest_ns = longest_ns.max(end_ns);
                } else if let Some(bytes) = stop.bytes {
                    need.bytes = need.bytes.saturating_add(bytes);
                } else {
                    need.operations = need.operations.saturating_add(stop.ops?);
                }
            }
            need.timed_ns = need.timed_ns.saturating_add(longest_ns);
        }
        Some(need)
    }

    /// `as long as 1 GiB need, at least 30 s`
    fn text(&self) -> String {
        let mut things = Vec::new();
        if self.bytes > 0 {
            things.push(glue(&format_bytes(self.bytes)));
        }
        if self.operations > 0 {
            things.push(glue(&counted(self.operations, "operation")));
        }
        let least = match self.timed_ns {
            0 => String::new(),
            ns => format!(", at least {}", format_duration(ns)),
        };
        let need = if self.bytes == 0 && self.operations == 1 {
            "needs"
        } else {
            "need"
        };
        format!("as long as {} {need}{least}", list(things))
    }
}

/// The time after which a workload of a group ends, in nanoseconds, with the warm-up and the delay
/// of its start; `None` without a limit.
pub(super) fn end_ns(group: Group<'_>, workload: &Workload) -> Option<u64> {
    let measured_ns = group.time_of(workload)?;
    let starts_after_ns = group
        .warmup_ns()
        .saturating_add(workload.shape.starts.delay_ns);
    Some(measured_ns.saturating_add(starts_after_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::{Start, Stop, Task, Workloads};

    /// A plan of two concurrent workloads that end alone: after ten seconds, and at `other`.
    fn text_of_end(other: Stop) -> String {
        let mut timed = Workload::named("w");
        timed.ends_alone = true;
        timed.stop.time_ns = Some(10_000_000_000);
        let mut untimed = timed.clone();
        untimed.start = Start::WithPrevious;
        untimed.stop = other;
        let mut plan = Plan::new("run", Vec::new());
        plan.tasks = vec![Task::Workloads(Workloads::as_planned(vec![timed, untimed]))];
        unlimited_time_text(&plan)
    }

    #[test]
    fn end_of_a_workload_counts_its_warm_up_and_its_delay() {
        let mut timed = Workload::named("w");
        timed.stop.time_ns = Some(10_000_000_000);
        timed.warmup_ns = 2_000_000_000;
        timed.shape.starts.delay_ns = 3_000_000_000;
        let mut endless = timed.clone();
        endless.stop.time_ns = None;
        let mut plan = Plan::new("run", Vec::new());
        plan.tasks = vec![Task::Workloads(Workloads::as_planned(vec![timed, endless]))];
        let mut ends = Vec::new();
        for group in plan.groups() {
            ends.extend(
                group
                    .workloads
                    .iter()
                    .map(|workload| end_ns(group, workload)),
            );
        }
        assert_eq!(ends, [Some(15_000_000_000), None]);
    }

    #[test]
    fn plan_without_a_time_names_what_it_waits_for() {
        let bytes = Stop {
            bytes: Some(1 << 30),
            ..Stop::default()
        };
        let operations = Stop {
            ops: Some(500),
            ..Stop::default()
        };
        for (other, parts) in [(bytes, "1 GiB"), (operations, "500 operations")] {
            let text = text_of_end(other).replace('\u{a0}', " ");
            assert!(
                text.contains(parts) && text.ends_with("at least 10 s"),
                "{text}"
            );
        }
    }
}
