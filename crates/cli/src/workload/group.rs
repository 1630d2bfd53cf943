//! Resolves workloads of a plan file that run together: their common end and warm-up, and the
//! reasons why they cannot run together. Pure.

use super::flags::WorkloadFlags;
use super::limits::{memory_excess, sector_mismatch};
use super::resolve::resolve;
use super::resolve_context::{Content, Contradiction, ResolveContext, Wording};
use super::schedule::empty_schedule;
use diskproof_model::group::Group;
use diskproof_model::plan::{Skipped, Stop, Workload};

/// The outcome for workloads that should run together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResolvedGroup {
    /// They run.
    Runs(Vec<Workload>),
    /// All are skipped: the device cannot run one of them, which changes the load of the others.
    Skipped(Vec<Skipped>),
}

/// Resolves the workloads that run together, or a single one. `unit_bytes` is the device's sector
/// size. An error comes with the index of its workload.
pub(crate) fn resolve_group(
    members: &[&WorkloadFlags],
    context: &ResolveContext,
    unit_bytes: u32,
) -> Result<ResolvedGroup, (usize, Contradiction)> {
    let mut context = context.clone();
    // A file that grows under one workload would change under the others.
    if members.len() > 1 {
        context.content = Content::Data;
    }
    let resolved = members.iter().enumerate().map(|(index, flags)| {
        resolve(flags, &context, Wording::Keys).map_err(|error| (index, error))
    });
    let mut workloads = resolved.collect::<Result<Vec<_>, _>>()?;
    let mismatch = |one: &Workload| Some((one.name.clone(), sector_mismatch(one, unit_bytes)?));
    if let Some((odd, why)) = workloads.iter().find_map(mismatch) {
        let skipped = workloads.into_iter().map(|workload| Skipped {
            why: if workload.name == odd {
                why.clone()
            } else {
                format!("it runs together with {odd}, which is skipped")
            },
            workload: workload.name,
        });
        return Ok(ResolvedGroup::Skipped(skipped.collect()));
    }
    if members.len() > 1 {
        end_together(&mut workloads, members);
        let last = workloads.len() - 1;
        let group = Group {
            first: 0,
            workloads: &workloads,
        };
        if let Some(clash) = group.clash() {
            return Err((last, Contradiction(clash.to_string())));
        }
        if let Some(excess) = memory_excess(&workloads, &context) {
            let why = format!("the group {excess}; reduce jobs, depth or bs of a workload");
            return Err((last, Contradiction(why)));
        }
    }
    empty_schedule(&workloads, Wording::Keys).map_or(Ok(ResolvedGroup::Runs(workloads)), Err)
}

/// A workload without a limit runs as long as the others. The warm-up is the same for all: the
/// longest that is set, otherwise the longest default. With a limit in bytes or operations there
/// is no default warm-up, because it would use up the limit.
fn end_together(workloads: &mut [Workload], members: &[&WorkloadFlags]) {
    if members.iter().any(|flags| flags.has_limit()) {
        for (workload, flags) in workloads.iter_mut().zip(members) {
            if !flags.has_limit() {
                (workload.stop, workload.warmup_ns) = (Stop::default(), 0);
            }
        }
    }
    let given = members.iter().filter_map(|flags| flags.warmup);
    let given = given.map(|warmup| warmup.0).max();
    let is_counted = |one: &Workload| one.stop.bytes.is_some() || one.stop.ops.is_some();
    let default = if workloads.iter().any(is_counted) {
        None
    } else {
        workloads.iter().map(|workload| workload.warmup_ns).max()
    };
    let warmup_ns = given.or(default).unwrap_or(0);
    workloads
        .iter_mut()
        .for_each(|one| one.warmup_ns = warmup_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file::PlanFile;
    use crate::workload::resolve_context::Memory;
    use diskproof_model::plan::{Layout, Start};

    const SECOND: u64 = 1_000_000_000;

    fn context() -> ResolveContext {
        ResolveContext {
            target_bytes: vec![1 << 30],
            memory: Memory {
                installed_bytes: Some(1 << 30),
                free_bytes: None,
            },
            content: Content::Nothing,
            engine: None,
        }
    }

    fn group(keys: &[&str]) -> Result<ResolvedGroup, String> {
        let text: String = keys
            .iter()
            .enumerate()
            .map(|(i, keys)| format!("[[workload]]\nname = \"w{i}\"\n{keys}\n"))
            .collect();
        let plan = PlanFile::parse(&text.replacen("together = true", "", 1)).unwrap();
        let members: Vec<&WorkloadFlags> = plan
            .workloads
            .iter()
            .map(|planned| &planned.flags)
            .collect();
        resolve_group(&members, &context(), 4096)
            .map_err(|(index, error)| format!("{index}: {error}"))
    }

    fn running(keys: &[&str]) -> Vec<Workload> {
        match group(keys) {
            Ok(ResolvedGroup::Runs(workloads)) => workloads,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn workload_without_a_limit_runs_as_long_as_its_group() {
        let both = running(&[
            "rw = \"write\"\nbs = \"4k\"\ntime = \"60s\"",
            "together = false",
        ]);
        assert_eq!(
            (both[0].stop.time_ns, &both[1].stop),
            (Some(60 * SECOND), &Stop::default())
        );
        assert_eq!((both[0].warmup_ns, both[1].warmup_ns), (SECOND, SECOND));
        assert_eq!(
            both[0].layout,
            Layout::Needed,
            "the file is laid out before both"
        );
        let unlimited = running(&["", "rate = 500"]);
        assert!(
            unlimited
                .iter()
                .all(|w| w.stop.time_ns == Some(30 * SECOND) && w.stop.precision.is_some()),
            "{unlimited:?}"
        );
    }

    #[test]
    fn group_has_one_warm_up() {
        let warmups = |keys: &[&str]| {
            running(keys)
                .iter()
                .map(|w| w.warmup_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            warmups(&["time = \"10s\"", "ops = 100"]),
            [0, 0],
            "a warm-up would use up the operations"
        );
        assert_eq!(
            warmups(&[
                "time = \"10s\"\nwarmup = \"0s\"",
                "ops = 100\nwarmup = \"2s\""
            ]),
            [2 * SECOND; 2]
        );
        assert_eq!(warmups(&["time = \"10s\"\nwarmup = \"0s\"", ""]), [0, 0]);
    }

    #[test]
    fn group_is_skipped_when_the_device_cannot_run_one_workload() {
        let Ok(ResolvedGroup::Skipped(skipped)) = group(&["bs = \"512\"", "bs = \"8k\""]) else {
            panic!("the group runs")
        };
        assert!(
            skipped[0].why.contains("sectors of 4096 bytes"),
            "{skipped:?}"
        );
        assert_eq!(skipped[1].why, "it runs together with w0, which is skipped");
    }

    #[test]
    fn group_refuses_contradictions() {
        let error =
            group(&["rw = \"randwrite\"\nverify = true", "rw = \"randwrite\""]).unwrap_err();
        assert!(
            error.starts_with("1: 'w0' checks blocks, but 'w1' writes"),
            "{error}"
        );
        assert!(
            group(&[
                "rw = \"randwrite\"\nverify = true\nspan = \"0-50%\"",
                "rw = \"randwrite\"\nspan = \"50%-100%\""
            ])
            .is_ok()
        );
        let error = group(&["cached = true", "buffered = true"]).unwrap_err();
        assert!(
            error.contains("'w0' keeps the page cache, but 'w1' empties it"),
            "{error}"
        );
        let error = group(&["bs = \"16M\"\ndepth = 10", "bs = \"16M\"\ndepth = 10"]).unwrap_err();
        assert!(
            error.contains("needs 320 MiB of buffers, but a quarter of the memory is 256 MiB"),
            "{error}"
        );
        let error = group(&["time = \"5s\"", "rate = 0.1"]).unwrap_err();
        assert!(
            error.starts_with("1: rate 0.1 starts an operation every 10 s"),
            "{error}"
        );
    }

    #[test]
    fn together_key_starts_a_workload_with_the_one_before() {
        let flags = |text: &str| PlanFile::parse(text).unwrap().workloads[1].flags.clone();
        let text = "[[workload]]\nname = \"a\"\n[[workload]]\nname = \"b\"\ntogether = true\n";
        let workload = resolve(&flags(text), &context(), Wording::Keys).unwrap();
        assert_eq!(workload.start, Start::WithPrevious);
        assert_eq!(
            resolve(
                &flags(&text.replace("true", "false")),
                &context(),
                Wording::Keys
            )
            .unwrap()
            .start,
            Start::AfterPrevious
        );
    }
}
