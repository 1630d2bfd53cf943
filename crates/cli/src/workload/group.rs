//! Resolves workloads of a plan file that run together: their common end and warm-up, and the
//! reasons why they cannot run together. Checks the schedule of their rates: starts that are
//! further apart than the measured time would measure nothing, which is an error; a limit in
//! operations or bytes may need more starts than the time allows, which is a note. Pure.

use super::flags::WorkloadFlags;
use super::limits::{Content, ResolveContext, Wording, memory_excess, sector_mismatch};
use super::resolve::resolve;
use diskproof_model::group::Group;
use diskproof_model::plan::{Plan, Skipped, Stop, Workload};
use diskproof_model::units::{counted, format_bytes, format_duration};

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
) -> Result<ResolvedGroup, (usize, String)> {
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
        let beside = format!("it runs together with {odd}, which is skipped");
        let names = workloads.into_iter().map(|workload| workload.name);
        let skipped = names.map(|name| {
            let why = if name == odd { &why } else { &beside };
            Skipped::new(name, why)
        });
        return Ok(ResolvedGroup::Skipped(skipped.collect()));
    }
    if members.len() > 1 {
        end_together(&mut workloads, members);
        let last = workloads.len() - 1;
        let group = Group::new(0, &workloads);
        if let Some(clash) = group.clash() {
            return Err((last, clash.to_string()));
        }
        if let Some(excess) = memory_excess(&workloads, &context) {
            let why = format!("the group {excess}; reduce jobs, depth or bs of a workload");
            return Err((last, why));
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

/// The first of the workloads that run together, by index, whose schedule starts no operation in
/// the measured time.
pub(crate) fn empty_schedule(workloads: &[Workload], wording: Wording) -> Option<(usize, String)> {
    let group = Group::new(0, workloads);
    workloads
        .iter()
        .enumerate()
        .find_map(|(index, one)| Some((index, wording.of(&starts_nothing(one, group)?))))
}

/// A note for each workload whose time ends before its limit in operations or bytes is reached.
pub(crate) fn limits_cut_by_time(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for group in plan.groups() {
        let workloads = group.workloads.iter();
        notes.extend(workloads.filter_map(|workload| needs_more_starts(workload, group)));
    }
    notes
}

/// Number of starts before `until_ns` at `rate` per second; the first is at time zero.
fn starts_before(until_ns: u64, rate: f64) -> u64 {
    (until_ns as f64 * rate / 1e9).ceil() as u64
}

/// The error for a workload without a start in the measured time.
fn starts_nothing(workload: &Workload, group: Group<'_>) -> Option<String> {
    let (rate, time_ns, warmup_ns) = (workload.rate?, group.time_ns()?, group.warmup_ns());
    if starts_before(warmup_ns.saturating_add(time_ns), rate) > starts_before(warmup_ns, rate) {
        return None;
    }
    let interval = format_duration((1e9 / rate) as u64);
    let (time, warmup) = (format_duration(time_ns), format_duration(warmup_ns));
    Some(format!(
        "<rate> {rate} starts an operation every {interval}, so none starts within the measured \
         time of {time} after {warmup} of warm-up; use a longer <time> or a higher <rate>"
    ))
}

/// The note for a limit that needs more starts than its own time allows. Other workloads of the
/// group may end it even sooner.
fn needs_more_starts(workload: &Workload, group: Group<'_>) -> Option<String> {
    let (rate, time_ns) = (workload.rate?, workload.stop.time_ns?);
    let starts = starts_before(group.warmup_ns().saturating_add(time_ns), rate);
    let longest = workload.block_sizes().fold(workload.block_bytes, u32::max);
    let (ops, bytes) = (workload.stop.ops, workload.stop.bytes);
    let ops = ops.map(|ops| (ops, counted(ops, "operation")));
    let bytes = bytes.map(|bytes| (bytes / u64::from(longest), format_bytes(bytes)));
    let mut limits = ops.into_iter().chain(bytes);
    let (_, limit) = limits.find(|(needed, _)| *needed > starts)?;
    let (name, time) = (&workload.name, format_duration(time_ns));
    Some(format!(
        "{name} will end after its time of {time}, before its limit: {limit} need more than the \
         {starts} operations that a rate of {rate} starts in that time"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file::PlanFile;
    use crate::workload::limits::Memory;
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

    fn paced(rate: f64, time_ns: u64, warmup_ns: u64) -> Workload {
        Workload {
            rate: Some(rate),
            stop: Stop {
                time_ns: Some(time_ns),
                ..Stop::default()
            },
            warmup_ns,
            ..Workload::named("paced")
        }
    }

    fn refusal(workloads: &[Workload]) -> Option<String> {
        empty_schedule(workloads, Wording::Flags).map(|(index, why)| format!("{index}: {why}"))
    }

    #[test]
    fn schedule_without_a_start_in_the_measured_time_is_refused() {
        let wrong = refusal(&[paced(0.1, SECOND / 2, SECOND / 40)]).unwrap();
        assert!(
            wrong
                .starts_with("0: --rate 0.1 starts an operation every 10 s, so none starts within"),
            "{wrong}"
        );
        assert!(
            wrong.contains(
                "of 500 ms after 25 ms of warm-up; use a longer --time or a higher --rate"
            ),
            "{wrong}"
        );
        // Starts are at 0, 10, 20 … s.
        assert_eq!(refusal(&[paced(0.1, SECOND / 2, 0)]), None);
        assert_eq!(refusal(&[paced(0.1, 10 * SECOND, SECOND / 2)]), None);
        assert_eq!(
            refusal(&[paced(0.1, SECOND, 10 * SECOND)]),
            None,
            "the start at 10 s counts"
        );
        assert!(
            refusal(&[paced(0.1, 9 * SECOND, SECOND)]).is_some(),
            "nothing starts at the end itself"
        );
        assert_eq!(
            refusal(&[Workload {
                rate: None,
                ..paced(1.0, 1, 1)
            }]),
            None
        );
        assert_eq!(
            refusal(&[Workload {
                stop: Stop::default(),
                ..paced(0.001, 1, SECOND)
            }]),
            None,
            "without a limit the start comes"
        );
    }

    #[test]
    fn schedule_of_a_group_is_checked_against_the_time_of_the_group() {
        let slow = paced(0.1, 60 * SECOND, SECOND);
        assert_eq!(refusal(std::slice::from_ref(&slow)), None);
        let other = Workload {
            rate: None,
            ..paced(1.0, 5 * SECOND, SECOND)
        };
        assert!(
            refusal(&[other, slow])
                .unwrap()
                .starts_with("1: --rate 0.1")
        );
    }

    /// What is noted of a workload of 10 starts a second for 10 s with this further limit.
    fn note_of(stop: Stop) -> Option<String> {
        let workload = Workload {
            stop: Stop {
                time_ns: Some(10 * SECOND),
                ..stop
            },
            block_bytes: 4096,
            ..paced(10.0, 1, 0)
        };
        needs_more_starts(&workload, Group::alone(&workload))
    }

    #[test]
    fn limit_beyond_the_schedule_is_noted() {
        let note = note_of(Stop {
            ops: Some(101),
            ..Stop::default()
        })
        .unwrap();
        assert_eq!(
            note,
            "paced will end after its time of 10 s, before its limit: 101 operations need more \
             than the 100 operations that a rate of 10 starts in that time"
        );
        assert_eq!(
            note_of(Stop {
                ops: Some(100),
                ..Stop::default()
            }),
            None
        );
        assert!(
            note_of(Stop {
                bytes: Some(1 << 20),
                ..Stop::default()
            })
            .unwrap()
            .contains(": 1 MiB need more than the 100 operations")
        );
        assert_eq!(
            note_of(Stop {
                bytes: Some(100 * 4096 + 4095),
                ..Stop::default()
            }),
            None,
            "only less than a block is left"
        );
    }

    #[test]
    fn earlier_end_by_another_workload_of_the_group_is_not_noted() {
        let long = Workload {
            stop: Stop {
                ops: Some(300),
                time_ns: Some(30 * SECOND),
                ..Stop::default()
            },
            ..paced(10.0, 1, 0)
        };
        let two = [
            Workload {
                rate: None,
                ..paced(1.0, 5 * SECOND, 0)
            },
            long,
        ];
        assert!(two.iter().all(|workload| {
            needs_more_starts(
                workload,
                Group {
                    first: 0,
                    workloads: &two,
                },
            )
            .is_none()
        }));
    }
}
