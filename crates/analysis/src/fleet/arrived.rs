//! Keeps the runs whose records came, and decides whether one of them repeats a run that was
//! announced and did not come. `--expect` counts hosts by them.

use super::launch::RunTime;
use diskproof_model::fleet::Hello;
use diskproof_model::record::Record;
use std::collections::{BTreeMap, BTreeSet};

/// Without ranks, a run that begins within this time after another one may be of the same launch,
/// on a clone with the same machine id: launchers start their runs within seconds. With ranks this
/// is no question, because a launcher gives a rank only once.
const ONE_LAUNCH_NS: i128 = 10_000_000_000;

/// The answer to whether a run repeats another one whose record did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repetition {
    /// It does not.
    None,
    /// Unknown: it may be of another machine of the same name.
    Possible,
    /// It does.
    Certain,
}

/// A run of which a record counts.
#[derive(Debug, Clone)]
pub struct ArrivedRun {
    /// The id of the run.
    pub run_id: String,
    /// Name of the machine.
    pub host: String,
    /// The rank that a launcher gave it.
    pub rank: Option<u32>,
    /// The number of ranks that the launcher started.
    pub size: Option<u32>,
    /// The launcher's job and step.
    pub job: Option<String>,
    /// The start in UTC, RFC 3339.
    pub started: String,
    /// Paths of its targets.
    pub targets: Vec<String>,
    machine: Option<String>,
    /// True if it came to the end of its plan.
    is_complete: bool,
    /// The comparison that it is a side of. Its sides take turns on one machine.
    comparison: Option<String>,
    time: Option<RunTime>,
}

impl ArrivedRun {
    /// The run of a record.
    pub(super) fn of_record(record: &Record) -> Self {
        let mut targets = Vec::new();
        for target in &record.targets {
            targets.push(target.path.clone());
        }
        Self {
            run_id: record.run_id.clone(),
            host: record.host.name.clone(),
            rank: record.host.rank.map(|rank| rank.rank),
            size: record.host.rank.and_then(|rank| rank.size),
            job: record.host.job.clone(),
            started: record.started.clone(),
            machine: record.host.machine.clone(),
            targets,
            is_complete: !record.partial,
            comparison: record.campaign().map(|part| part.id.clone()),
            time: RunTime::of_record(record),
        }
    }

    /// Decides whether this run repeats the one that was announced: it began later on the same
    /// targets of the same host and rank, and came to its end. An announcement without a start is
    /// of an earlier version, and nothing repeats it. Pods share names and have no
    /// machine id, so that without ranks only equal ids prove a repetition.
    pub fn repeats(&self, hello: &Hello) -> Repetition {
        let is_same_work = self.is_complete
            && self.host == hello.host
            && self.rank == hello.rank
            && hello
                .targets
                .iter()
                .all(|target| self.targets.contains(target));
        let Some(after_ns) = self.began_after_ns(hello) else {
            return Repetition::None;
        };
        if !is_same_work || after_ns <= 0 {
            return Repetition::None;
        }
        match (&self.machine, &hello.machine, self.rank) {
            (Some(own), Some(announced), _) if own != announced => Repetition::None,
            (_, _, Some(_)) => Repetition::Certain,
            (Some(_), Some(_), None) if after_ns > ONE_LAUNCH_NS => Repetition::Certain,
            _ => Repetition::Possible,
        }
    }

    /// How long after the announced run this one began, in nanoseconds; `None` where one of the
    /// starts is not known.
    fn began_after_ns(&self, hello: &Hello) -> Option<i128> {
        let announced: jiff::Timestamp = hello.started.as_ref()?.parse().ok()?;
        Some(self.time?.start_ns - announced.as_nanosecond())
    }
}

/// The number of machines that certainly stand behind each name: as many as have different machine
/// ids, or as measured a target of one path at the same time.
pub(super) fn machines_of_hosts(runs: &[ArrivedRun]) -> BTreeMap<&str, usize> {
    let mut machines = BTreeMap::new();
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut times: BTreeMap<(&str, &str), Vec<RunTime>> = BTreeMap::new();
    let mut comparisons = BTreeSet::new();
    for run in runs {
        machines.insert(run.host.as_str(), 1);
        if let Some(machine) = &run.machine {
            ids.entry(&run.host).or_default().insert(machine);
        }
        // The sides of a comparison on one machine count once.
        if let Some(comparison) = &run.comparison
            && !comparisons.insert((&run.host, comparison))
        {
            continue;
        }
        for target in &run.targets {
            if let Some(time) = run.time {
                times.entry((&run.host, target)).or_default().push(time);
            }
        }
    }
    for (host, ids) in ids {
        let count = machines.entry(host).or_default();
        *count = ids.len().max(*count);
    }
    for ((host, _target), times) in times {
        let count = machines.entry(host).or_default();
        *count = most_at_once(&times).max(*count);
    }
    machines
}

/// The most of these times that one instant belongs to, which is the start of one of them.
fn most_at_once(times: &[RunTime]) -> usize {
    let mut highest_count = 0;
    for time in times {
        let instant = RunTime {
            end_ns: time.start_ns,
            ..*time
        };
        let count = times
            .iter()
            .filter(|other| instant.overlaps(**other))
            .count();
        highest_count = highest_count.max(count);
    }
    highest_count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(start_ns: i128, end_ns: i128) -> RunTime {
        RunTime { start_ns, end_ns }
    }

    const SECOND_NS: i128 = 1_000_000_000;
    const STARTED: &str = "2026-11-20T10:00:00Z";

    fn announced(machine: Option<&str>, rank: Option<u32>) -> Hello {
        Hello {
            schema: "diskproof.hello/1".to_owned(),
            run_id: "first".to_owned(),
            host: "db1".to_owned(),
            rank,
            size: None,
            started: Some(STARTED.to_owned()),
            job: None,
            machine: machine.map(str::to_owned),
            targets: vec!["/a".to_owned()],
            slots: None,
        }
    }

    /// A whole run of the same host, rank and target that began so much later.
    fn later(machine: Option<&str>, rank: Option<u32>, after_ns: i128) -> ArrivedRun {
        let started: jiff::Timestamp = STARTED.parse().unwrap();
        let start_ns = started.as_nanosecond() + after_ns;
        ArrivedRun {
            run_id: "second".to_owned(),
            host: "db1".to_owned(),
            rank,
            size: None,
            job: None,
            started: String::new(),
            targets: vec!["/a".to_owned(), "/b".to_owned()],
            machine: machine.map(str::to_owned),
            is_complete: true,
            comparison: None,
            time: Some(time(start_ns, start_ns + SECOND_NS)),
        }
    }

    #[test]
    fn ranks_and_machine_ids_prove_a_repetition() {
        let (one, other) = (Some("m1"), Some("m2"));
        for (own, announced_machine, rank, after_ns, expected) in [
            (None, None, None, 20 * SECOND_NS, Repetition::Possible),
            (None, None, Some(3), 1, Repetition::Certain),
            (one, one, None, 10 * SECOND_NS, Repetition::Possible),
            (one, one, None, 10 * SECOND_NS + 1, Repetition::Certain),
            (one, None, None, 20 * SECOND_NS, Repetition::Possible),
            (one, other, None, 20 * SECOND_NS, Repetition::None),
            (one, other, Some(3), 20 * SECOND_NS, Repetition::None),
            (one, one, Some(3), 0, Repetition::None),
        ] {
            let run = later(own, rank, after_ns);
            let found = run.repeats(&announced(announced_machine, rank));
            assert_eq!(
                found, expected,
                "{own:?} {announced_machine:?} {rank:?} {after_ns}"
            );
        }
    }

    #[test]
    fn other_work_repeats_nothing() {
        let run = later(None, Some(3), SECOND_NS);
        let mut announcements = vec![announced(None, Some(3)); 4];
        announcements[0].host = "db2".to_owned();
        announcements[1].rank = Some(4);
        announcements[2].targets = vec!["/c".to_owned()];
        announcements[3].started = None;
        for other in announcements {
            assert_eq!(run.repeats(&other), Repetition::None, "{other:?}");
        }
        let partial = ArrivedRun {
            is_complete: false,
            ..run
        };
        let same = announced(None, Some(3));
        assert_eq!(partial.repeats(&same), Repetition::None);
    }

    #[test]
    fn times_that_touch_are_at_once() {
        assert_eq!(most_at_once(&[]), 0);
        assert_eq!(most_at_once(&[time(0, 10), time(11, 20)]), 1);
        assert_eq!(most_at_once(&[time(0, 10), time(10, 20)]), 2);
        // The first and the third never overlap.
        assert_eq!(most_at_once(&[time(0, 10), time(5, 15), time(12, 20)]), 2);
        assert_eq!(most_at_once(&[time(0, 30), time(5, 15), time(12, 20)]), 3);
    }
}
