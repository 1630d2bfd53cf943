//! Resolves workloads of a plan file that run together: their common end and warm-up, and the
//! reasons why they cannot run together. Pure.
//!
//! Also checks the schedule of their rates. Starts that are further apart than the measured time
//! would measure nothing, which is an error; a limit in operations or bytes may need more starts
//! than the time allows, which is a note.

use super::flags::WorkloadFlags;
use super::limits::{Content, ResolveContext, Resolved, Wording, memory_excess, sector_mismatch};
use super::resolve::resolve;
use crate::flags::SECOND_NS;
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

/// Why a workload of a group cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberError {
    /// The place of the workload in its group.
    pub index: usize,
    /// The reason, and the remedy.
    pub why: String,
}

/// Resolves the workloads that run together, or a single one. `unit_bytes` is the device's sector
/// size.
pub(crate) fn resolve_group(
    members: &[&WorkloadFlags],
    context: &ResolveContext,
    unit_bytes: u32,
) -> Result<ResolvedGroup, MemberError> {
    let mut group_context = context.clone();
    // A file that grows under one workload would change under the others.
    if members.len() > 1 {
        group_context.content = Content::Data;
    }
    let mut workloads = Vec::new();
    for (index, flags) in members.iter().enumerate() {
        match resolve(flags, &group_context) {
            Ok(workload) => workloads.push(workload),
            Err(error) => {
                let why = error.text(Wording::Keys);
                return Err(MemberError { index, why });
            }
        }
    }
    for workload in &workloads {
        if let Some(why) = sector_mismatch(workload, unit_bytes) {
            return Ok(skipped_group(&workloads, &workload.name, &why));
        }
    }
    if members.len() > 1 {
        end_together(&mut workloads, members);
        if let Err(why) = check_group(&workloads, &group_context) {
            let index = workloads.len() - 1;
            return Err(MemberError { index, why });
        }
    }
    match find_empty_schedule(&workloads, Wording::Keys) {
        Some(error) => Err(error),
        None => Ok(ResolvedGroup::Runs(workloads)),
    }
}

/// Skips a group, because the device cannot run the workload with the name `excluded`.
fn skipped_group(workloads: &[Workload], excluded: &str, why: &str) -> ResolvedGroup {
    let why_others = format!("it runs together with {excluded}, which is skipped");
    let mut skipped = Vec::new();
    for Workload { name, .. } in workloads {
        let reason = if name == excluded { why } else { &why_others };
        skipped.push(Skipped::new(name.clone(), reason));
    }
    ResolvedGroup::Skipped(skipped)
}

/// Checks whether the workloads can run together, and fit into the memory.
fn check_group(workloads: &[Workload], context: &ResolveContext) -> Resolved<()> {
    if let Some(clash) = Group::new(0, workloads).clash() {
        return Err(clash.to_string());
    }
    match memory_excess(workloads, context) {
        Some(excess) => Err(format!(
            "the group {excess}; reduce jobs, depth or bs of a workload"
        )),
        None => Ok(()),
    }
}

/// Lets workloads without a limit run as long as the others, and gives all the same warm-up that
/// have none of their own.
fn end_together(workloads: &mut [Workload], members: &[&WorkloadFlags]) {
    if members.iter().any(|flags| flags.has_limit()) {
        for (index, flags) in members.iter().enumerate() {
            if !flags.has_limit() {
                workloads[index].stop = Stop::default();
                workloads[index].warmup_ns = 0;
            }
        }
    }
    let warmup_ns = common_warmup_ns(workloads, members);
    for workload in workloads {
        if !workload.shape.starts.own_warmup {
            workload.warmup_ns = warmup_ns;
        }
    }
}

/// The warm-up of a group: the longest that is set, otherwise the longest default. With a limit in
/// bytes or operations there is no default warm-up, because it would use up the limit.
fn common_warmup_ns(workloads: &[Workload], members: &[&WorkloadFlags]) -> u64 {
    let longest_set = members
        .iter()
        .filter_map(|flags| flags.warmup)
        .map(|warmup| warmup.0)
        .max();
    if let Some(warmup_ns) = longest_set {
        return warmup_ns;
    }
    let mut longest_default = 0;
    for workload in workloads {
        if workload.stop.bytes.is_some() || workload.stop.ops.is_some() {
            return 0;
        }
        longest_default = longest_default.max(workload.warmup_ns);
    }
    longest_default
}

/// The first of the workloads that run together whose schedule starts no operation in the measured
/// time.
pub(crate) fn find_empty_schedule(workloads: &[Workload], wording: Wording) -> Option<MemberError> {
    let group = Group::new(0, workloads);
    for (index, workload) in workloads.iter().enumerate() {
        if let Some(why) = no_start_error(workload, group) {
            let why = wording.apply(&why);
            return Some(MemberError { index, why });
        }
    }
    None
}

/// The notes about workloads whose time ends before their limit in operations or bytes is reached.
pub(crate) fn limits_cut_by_time(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for group in plan.groups() {
        for workload in group.workloads {
            notes.extend(cut_short_note(workload, group));
        }
    }
    notes
}

/// The number of starts before `until_ns` at `rate` per second; the first is at time zero.
fn starts_before(until_ns: u64, rate: f64) -> u64 {
    (until_ns as f64 * rate / SECOND_NS as f64).ceil() as u64
}

/// The error for a workload without a start in the measured time.
fn no_start_error(workload: &Workload, group: Group<'_>) -> Option<String> {
    let rate = workload.rate?;
    let time_ns = group.time_of(workload)?;
    let warmup_ns = group.warmup_of(workload);
    if starts_before(warmup_ns.saturating_add(time_ns), rate) > starts_before(warmup_ns, rate) {
        return None;
    }
    let interval = format_duration((SECOND_NS as f64 / rate) as u64);
    let time = format_duration(time_ns);
    let warmup = format_duration(warmup_ns);
    Some(format!(
        "<rate> {rate} starts an operation every {interval}, so none starts within the measured \
         time of {time} after {warmup} of warm-up; use a longer <time> or a higher <rate>"
    ))
}

/// The note for a limit that needs more starts than its own time allows. Other workloads of the
/// group may end it even sooner.
fn cut_short_note(workload: &Workload, group: Group<'_>) -> Option<String> {
    let rate = workload.rate?;
    let time_ns = workload.stop.time_ns?;
    let starts = starts_before(group.warmup_of(workload).saturating_add(time_ns), rate);
    let limit = limit_beyond(workload, starts)?;
    let name = &workload.name;
    let time = format_duration(time_ns);
    Some(format!(
        "{name} will end after its time of {time}, before its limit: {limit} need more than the \
         {starts} operations that a rate of {rate} starts in that time"
    ))
}

/// The limit, in operations or bytes, that takes more than this number of starts.
fn limit_beyond(workload: &Workload, starts: u64) -> Option<String> {
    if let Some(ops) = workload.stop.ops
        && ops > starts
    {
        return Some(counted(ops, "operation"));
    }
    let bytes = workload.stop.bytes?;
    let largest_block = workload.block_sizes().fold(workload.block_bytes, u32::max);
    if bytes / u64::from(largest_block) > starts {
        return Some(format_bytes(bytes));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_file::PlanFile;
    use crate::workload::limits::Memory;
    use diskproof_model::plan::{Layout, Start};

    const SECOND_NS: u64 = 1_000_000_000;

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
            .map_err(|error| format!("{}: {}", error.index, error.why))
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
        assert_eq!(both[0].stop.time_ns, Some(60 * SECOND_NS));
        assert_eq!(both[1].stop, Stop::default());
        assert_eq!(
            (both[0].warmup_ns, both[1].warmup_ns),
            (SECOND_NS, SECOND_NS)
        );
        // The file is laid out before both.
        assert_eq!(both[0].layout, Layout::Needed);
        for unlimited in running(&["", "rate = 500"]) {
            assert_eq!(unlimited.stop.time_ns, Some(30 * SECOND_NS));
            assert!(unlimited.stop.precision.is_some());
        }
    }

    #[test]
    fn group_has_one_warm_up() {
        for (keys, warmup_ns) in [
            // A warm-up would use up the operations.
            (["time = \"10s\"", "ops = 100"], 0),
            (
                [
                    "time = \"10s\"\nwarmup = \"0s\"",
                    "ops = 100\nwarmup = \"2s\"",
                ],
                2 * SECOND_NS,
            ),
            (["time = \"10s\"\nwarmup = \"0s\"", ""], 0),
        ] {
            let workloads = running(&keys);
            assert!(
                workloads.iter().all(|one| one.warmup_ns == warmup_ns),
                "{keys:?}"
            );
        }
    }

    #[test]
    fn group_is_skipped_when_the_device_cannot_run_one_workload() {
        let Ok(ResolvedGroup::Skipped(skipped)) = group(&["bs = \"512\"", "bs = \"8k\""]) else {
            panic!("the group runs")
        };
        assert!(skipped[0].why.contains("4096 bytes"), "{skipped:?}");
        assert!(skipped[1].why.contains("w0"), "{skipped:?}");
    }

    #[test]
    fn group_refuses_contradictions() {
        let large = "bs = \"16M\"\ndepth = 10";
        for (keys, part) in [
            (
                ["rw = \"randwrite\"\nverify = true", "rw = \"randwrite\""],
                "1: 'w0' checks blocks, but 'w1' writes",
            ),
            (
                ["cached = true", "buffered = true"],
                "1: 'w0' keeps the page cache",
            ),
            (
                [large, large],
                "320 MiB of buffers, but a quarter of the memory is 256 MiB",
            ),
            (["time = \"5s\"", "rate = 0.1"], "1: rate 0.1 "),
        ] {
            let error = group(&keys).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let apart = [
            "rw = \"randwrite\"\nverify = true\nspan = \"0-50%\"",
            "rw = \"randwrite\"\nspan = \"50%-100%\"",
        ];
        assert!(group(&apart).is_ok());
    }

    #[test]
    fn together_key_starts_a_workload_with_the_one_before() {
        for (value, start) in [
            ("true", Start::WithPrevious),
            ("false", Start::AfterPrevious),
        ] {
            let head = "[[workload]]\nname = \"a\"\n[[workload]]\nname = \"b\"\ntogether = ";
            let plan = PlanFile::parse(&format!("{head}{value}\n")).unwrap();
            let workload = resolve(&plan.workloads[1].flags, &context());
            assert_eq!(workload.unwrap().start, start);
        }
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
        let error = find_empty_schedule(workloads, Wording::Flags)?;
        Some(format!("{}: {}", error.index, error.why))
    }

    /// Starts are at 0, 10, 20 … s.
    #[test]
    fn schedule_without_a_start_in_the_measured_time_is_refused() {
        let wrong = refusal(&[paced(0.1, SECOND_NS / 2, SECOND_NS / 40)]).unwrap();
        for part in [
            "0: --rate 0.1 ",
            "every 10 s",
            "500 ms after 25 ms",
            "--time",
        ] {
            assert!(wrong.contains(part), "{wrong}");
        }
        for (time_ns, warmup_ns, is_refused) in [
            (SECOND_NS / 2, 0, false),
            (10 * SECOND_NS, SECOND_NS / 2, false),
            // The start at 10 s counts, but nothing starts at the end itself.
            (SECOND_NS, 10 * SECOND_NS, false),
            (9 * SECOND_NS, SECOND_NS, true),
        ] {
            let found = refusal(&[paced(0.1, time_ns, warmup_ns)]);
            assert_eq!(found.is_some(), is_refused, "{time_ns} {warmup_ns}");
        }
        let unpaced = Workload {
            rate: None,
            ..paced(1.0, 1, 1)
        };
        // Without a limit the start comes.
        let unlimited = Workload {
            stop: Stop::default(),
            ..paced(0.001, 1, SECOND_NS)
        };
        assert_eq!([refusal(&[unpaced]), refusal(&[unlimited])], [None, None]);
    }

    #[test]
    fn schedule_of_a_group_is_checked_against_the_time_of_the_group() {
        let slow = paced(0.1, 60 * SECOND_NS, SECOND_NS);
        assert_eq!(refusal(std::slice::from_ref(&slow)), None);
        let other = Workload {
            rate: None,
            ..paced(1.0, 5 * SECOND_NS, SECOND_NS)
        };
        let refused = refusal(&[other, slow]).unwrap();
        assert!(refused.starts_with("1: --rate 0.1"), "{refused}");
    }

    /// The note on a workload of 10 starts a second for 10 s with these further limits.
    fn note_of(ops: Option<u64>, bytes: Option<u64>) -> Option<String> {
        let workload = Workload {
            stop: Stop {
                time_ns: Some(10 * SECOND_NS),
                ops,
                bytes,
                precision: None,
            },
            block_bytes: 4096,
            ..paced(10.0, 1, 0)
        };
        cut_short_note(&workload, Group::alone(&workload))
    }

    #[test]
    fn limit_beyond_the_schedule_is_noted() {
        let note = note_of(Some(101), None).unwrap();
        for part in [
            "paced ",
            " 10 s",
            ": 101 operations ",
            "100 operations",
            "rate of 10 ",
        ] {
            assert!(note.contains(part), "{note}");
        }
        assert_eq!(note_of(Some(100), None), None);
        let note = note_of(None, Some(1 << 20)).unwrap();
        assert!(
            note.contains(": 1 MiB ") && note.contains("100 operations"),
            "{note}"
        );
        // Only less than a block is left.
        assert_eq!(note_of(None, Some(100 * 4096 + 4095)), None);
    }

    #[test]
    fn earlier_end_by_another_workload_of_the_group_is_not_noted() {
        let long = Workload {
            stop: Stop {
                ops: Some(300),
                time_ns: Some(30 * SECOND_NS),
                ..Stop::default()
            },
            ..paced(10.0, 1, 0)
        };
        let short = Workload {
            rate: None,
            ..paced(1.0, 5 * SECOND_NS, 0)
        };
        let workloads = &[short, long];
        for workload in workloads {
            let group = Group {
                first: 0,
                workloads,
            };
            assert_eq!(cut_short_note(workload, group), None);
        }
    }
}
