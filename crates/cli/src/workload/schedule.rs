//! Checks the schedule of a rate before a run. Starts that are further apart than the measured time
//! would measure nothing: an error. A limit in operations or bytes may need more starts than the
//! time allows: a note. Pure.

use super::resolve_context::{Contradiction, Wording};
use diskproof_model::group::Group;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::units::{counted, format_bytes, format_duration};

/// The first of the workloads that run together, by index, whose schedule starts no operation in
/// the measured time.
pub(crate) fn empty_schedule(
    workloads: &[Workload],
    wording: Wording,
) -> Option<(usize, Contradiction)> {
    let group = Group {
        first: 0,
        workloads,
    };
    workloads.iter().enumerate().find_map(|(index, workload)| {
        let why = starts_nothing(workload, group, wording)?;
        Some((index, Contradiction(why)))
    })
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
fn starts_nothing(workload: &Workload, group: Group<'_>, wording: Wording) -> Option<String> {
    let (rate, time_ns, warmup_ns) = (workload.rate?, group.time_ns()?, group.warmup_ns());
    if starts_before(warmup_ns.saturating_add(time_ns), rate) > starts_before(warmup_ns, rate) {
        return None;
    }
    let interval = format_duration((1e9 / rate) as u64);
    let (time, warmup) = (format_duration(time_ns), format_duration(warmup_ns));
    let key = wording.name("rate");
    Some(format!(
        "{key} {rate} starts an operation every {interval}, so none starts within the measured \
         time of {time} after {warmup} of warm-up; use a longer {} or a higher {key}",
        wording.name("time")
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
    use diskproof_model::plan::Stop;

    const SECOND: u64 = 1_000_000_000;

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
