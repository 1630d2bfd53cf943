//! Ends that a schedule cannot reach. Starts that are further apart than the time is long would
//! measure nothing, which is refused. Operations and bytes that need more starts than there are in
//! the time are limits that will not be met, as limits may be; that is only said. Both before
//! anything begins. Pure.

use super::resolve::{Contradiction, Wording};
use diskproof_model::group::Group;
use diskproof_model::plan::{BlockShare, Plan, Workload};
use diskproof_model::units::{counted, format_bytes, format_duration};

/// Why the schedule of one of the workloads that run together starts nothing until they end; the
/// number tells which.
pub fn out_of_reach(workloads: &[Workload], wording: Wording) -> Option<(usize, Contradiction)> {
    let group = Group {
        first: 0,
        workloads,
    };
    let told = |workload: &Workload| starts_nothing(workload, group, wording);
    workloads
        .iter()
        .enumerate()
        .find_map(|(index, workload)| Some((index, Contradiction(told(workload)?))))
}

/// Of each workload whose time will be over before the operations or bytes that it may do: a
/// sentence that says so.
pub fn ended_by_time(plan: &Plan) -> Vec<String> {
    plan.groups()
        .flat_map(|group| {
            group
                .workloads
                .iter()
                .filter_map(move |workload| needs_more_starts(workload, group))
        })
        .collect()
}

/// Starts that a schedule of `rate` per second has from time zero up to, and without, `until_ns`.
fn starts_before(until_ns: u64, rate: f64) -> u64 {
    (until_ns as f64 * rate / 1e9).ceil() as u64
}

/// None of the starts falls into the measured time.
fn starts_nothing(workload: &Workload, group: Group<'_>, wording: Wording) -> Option<String> {
    let (rate, time_ns, warmup_ns) = (workload.rate?, group.time_ns()?, group.warmup_ns());
    if starts_before(warmup_ns.saturating_add(time_ns), rate) > starts_before(warmup_ns, rate) {
        return None;
    }
    let (interval, time, warmup) = (
        format_duration((1e9 / rate) as u64),
        format_duration(time_ns),
        format_duration(warmup_ns),
    );
    let key = wording.name("rate");
    Some(format!(
        "{key} {rate} starts an operation every {interval}, and none of them falls into the \
         measured time of {time} after {warmup} of warm-up: use a longer {} or a higher {key}",
        wording.name("time")
    ))
}

/// That others may end it sooner is in the nature of running together.
fn needs_more_starts(workload: &Workload, group: Group<'_>) -> Option<String> {
    let (rate, time_ns) = (workload.rate?, workload.stop.time_ns?);
    let starts = starts_before(group.warmup_ns().saturating_add(time_ns), rate);
    let longest = workload
        .block_mix
        .iter()
        .map(|BlockShare { block_bytes, .. }| *block_bytes)
        .fold(workload.block_bytes, u32::max);
    let ops = workload
        .stop
        .ops
        .map(|ops| (ops, counted(ops, "operation")));
    let bytes = workload
        .stop
        .bytes
        .map(|bytes| (bytes / u64::from(longest), format_bytes(bytes)));
    let (_, limit) = ops
        .into_iter()
        .chain(bytes)
        .find(|(needed, _)| *needed > starts)?;
    let (name, time) = (&workload.name, format_duration(time_ns));
    Some(format!(
        "{name} will end by its time of {time}: {limit} are more than the {starts} starts that a \
         rate of {rate} has until then"
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

    fn told(workloads: &[Workload]) -> Option<String> {
        out_of_reach(workloads, Wording::Flags).map(|(index, why)| format!("{index}: {why}"))
    }

    #[test]
    fn a_time_between_two_starts_measures_nothing() {
        let wrong = told(&[paced(0.1, SECOND / 2, SECOND / 40)]).unwrap();
        assert!(
            wrong.starts_with(
                "0: --rate 0.1 starts an operation every 10 s, and none of them falls into"
            ),
            "{wrong}"
        );
        assert!(
            wrong.contains(
                "of 500 ms after 25 ms of warm-up: use a longer --time or a higher --rate"
            ),
            "{wrong}"
        );
        // The first start is at the very beginning, the next ones at 10, 20 … s.
        assert_eq!(told(&[paced(0.1, SECOND / 2, 0)]), None);
        assert_eq!(told(&[paced(0.1, 10 * SECOND, SECOND / 2)]), None);
        assert_eq!(
            told(&[paced(0.1, SECOND, 10 * SECOND)]),
            None,
            "the second one is the first that counts"
        );
        assert!(
            told(&[paced(0.1, 9 * SECOND, SECOND)]).is_some(),
            "nothing starts at the end itself"
        );
        assert_eq!(
            told(&[Workload {
                rate: None,
                ..paced(1.0, 1, 1)
            }]),
            None
        );
        assert_eq!(
            told(&[Workload {
                stop: Stop::default(),
                ..paced(0.001, 1, SECOND)
            }]),
            None,
            "without an end it comes"
        );
    }

    #[test]
    fn together_the_time_and_the_warm_up_are_those_of_all() {
        let slow = paced(0.1, 60 * SECOND, SECOND);
        assert_eq!(told(std::slice::from_ref(&slow)), None);
        let beside = Workload {
            rate: None,
            ..paced(1.0, 5 * SECOND, SECOND)
        };
        assert!(told(&[beside, slow]).unwrap().starts_with("1: --rate 0.1"));
    }

    #[test]
    fn what_the_schedule_cannot_do_in_the_time_is_said() {
        let of = |stop: Stop, rate| {
            let workload = Workload {
                stop: Stop {
                    time_ns: Some(10 * SECOND),
                    ..stop
                },
                block_bytes: 4096,
                ..paced(rate, 1, 0)
            };
            needs_more_starts(&workload, Group::alone(&workload))
        };
        let said = of(
            Stop {
                ops: Some(101),
                ..Stop::default()
            },
            10.0,
        )
        .unwrap();
        assert_eq!(
            said,
            "paced will end by its time of 10 s: 101 operations are more than the 100 starts that \
             a rate of 10 has until then"
        );
        assert_eq!(
            of(
                Stop {
                    ops: Some(100),
                    ..Stop::default()
                },
                10.0
            ),
            None
        );
        assert!(
            of(
                Stop {
                    bytes: Some(1 << 20),
                    ..Stop::default()
                },
                10.0
            )
            .unwrap()
            .contains(": 1 MiB are more than the 100 starts")
        );
        assert_eq!(
            of(
                Stop {
                    bytes: Some(100 * 4096 + 4095),
                    ..Stop::default()
                },
                10.0
            ),
            None,
            "less than a block of them stays undone"
        );
        // A companion's end is nothing to be told.
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
