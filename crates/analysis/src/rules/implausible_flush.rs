//! `implausible-flush`: commits were faster than a rotating disk can make them durable.

use super::commits::*;
use super::rule::*;
use crate::mechanics::kernel_reports_rotation;

pub(super) const RULE: Rule = Rule {
    code: "implausible-flush",
    title: "Commits are faster than the disk turns",
    summary: "A rotating disk can write the next log page once per revolution. If there are more \
              commits than that, a cache acknowledges them.",
    remedy: Remedy::Always(
        "Find out whether the cache survives a power cut (a controller with a battery). If it does \
         not, switch it off: hdparm -W0.",
    ),
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::NotDurable,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// In a short log the next page sometimes arrives in time for the same revolution, which allows
/// this many times as many commits. Chosen, not measured.
const SHORT_LOG_TIMES: f64 = 1.5;
/// The fastest disks that were built, for one that does not report how fast it turns.
const RPM_MAX: u32 = 15_000;

/// Commits that were faster than the disk turns.
struct FastCommits<'a> {
    session: SessionCommits<'a>,
    /// Commits per second that the revolutions allow.
    commits_max: f64,
    /// Commits per second that also a short log does not explain.
    commits_limit: f64,
    rotation: Rotation,
}

impl FastCommits<'_> {
    /// Revolutions for each commit.
    fn turns_each(&self) -> f64 {
        self.commits_max / self.session.commits.figures.iops.value
    }
}

/// How fast a disk turns at most, and a clause that says so.
struct Rotation {
    rpm: u32,
    clause: String,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<FastCommits<'_>> = Vec::new();
    for session in single_sessions(record) {
        hits.extend(fast_commits(record, session));
    }
    hits.sort_by(|one, other| one.turns_each().total_cmp(&other.turns_each()));
    let worst = hits.first()?;
    let row = worst.session.measured.row;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{}, so it can make at most {:.0} commits per second durable, but {} made {}. A cache \
             acknowledged them; they survive a power cut only if it is protected.",
            worst.rotation.clause,
            worst.commits_max,
            row.data.workload.name,
            row.figures.ops[&OpKind::Commit].iops.value_text(),
        ),
        hits.iter().map(|hit| {
            let rate = hit.session.commits.figures.iops.value;
            hit.session.measured.evidence(
                "figures/ops/commit/iops/value",
                rate,
                hit.commits_limit,
                "1/s",
            )
        }),
    ))
}

fn fast_commits<'a>(record: &Record, session: SessionCommits<'a>) -> Option<FastCommits<'a>> {
    let disks = disks_below(record, session.measured.row);
    let [disk] = disks[..] else {
        return None;
    };
    let rotation = rotation(record, disk)?;
    let commits_max = f64::from(rotation.rpm) / 60.0 * commits_per_turn(session);
    let rate = &session.commits.figures.iops;
    let rate_low = rate.value - rate.half_width_95.unwrap_or(0.0);
    let commits_limit = commits_max * SHORT_LOG_TIMES;
    if rate_low <= commits_limit {
        return None;
    }
    Some(FastCommits {
        session,
        commits_max,
        commits_limit,
        rotation,
    })
}

/// Commits in one revolution: a log that advances needs a whole one for the next page, a page
/// anywhere else in a small span half of one on average.
fn commits_per_turn(session: SessionCommits<'_>) -> f64 {
    match session.measured.row.data.workload.access {
        Access::Sequential => 1.0,
        Access::Backward | Access::Stride { .. } | Access::Random { .. } | Access::Zoned { .. } => {
            2.0
        }
    }
}

/// The rotation of a disk; `None` of flash, and where nothing says whether the disk rotates.
fn rotation(record: &Record, disk: &Layer) -> Option<Rotation> {
    let name = &disk.name;
    for health in &record.health {
        if health.disk != *name {
            continue;
        }
        match health.rotation_rpm {
            Some(0) => return None,
            Some(rpm) => {
                let clause = format!("{name} turns {rpm} times per minute");
                return Some(Rotation { rpm, clause });
            }
            None => break,
        }
    }
    if !kernel_reports_rotation(&record.host, disk) {
        return None;
    }
    Some(Rotation {
        rpm: RPM_MAX,
        clause: format!("{name} rotates, and no disk turns more than {RPM_MAX} times per minute"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use crate::rules::commits::tests::{each_layer, set_rate};
    use diskproof_model::health::DiskHealth;

    pub(super) const EXAMPLES: Examples = Examples::new(|| turning(500.0), || turning(119.0));

    /// A disk that turns 7200 times a minute, with so many commits per second.
    fn turning(rate: f64) -> Record {
        let mut record = fixture::record();
        record.health = vec![DiskHealth {
            disk: "sda".to_owned(),
            rotation_rpm: Some(7200),
            ..DiskHealth::default()
        }];
        set_rate(&mut record, "commit-fdatasync", rate);
        record
    }

    #[test]
    fn no_disk_commits_more_often_than_it_turns() {
        let mut record = turning(500.0);
        states(&check(&record).unwrap().claim, &["7200", "120"]);
        record.health[0].rotation_rpm = Some(0);
        assert_eq!(check(&record), None, "flash");
    }

    fn unknown_speed(
        rotational: Option<bool>,
        hypervisor: Option<&str>,
        rate: f64,
    ) -> Option<Diagnosis> {
        let mut record = fixture::record();
        record.health.clear();
        record.host.hypervisor = hypervisor.map(str::to_owned);
        each_layer(&mut record, |layer| layer.rotational = rotational);
        set_rate(&mut record, "commit-fdatasync", rate);
        check(&record)
    }

    #[test]
    fn no_rotating_disk_of_unknown_speed_commits_more_often_than_the_fastest_turns() {
        let finding = unknown_speed(Some(true), None, 500.0).unwrap();
        states(&finding.claim, &["15000", "250"]);
        // The fastest disk makes as many, flash makes more, and a virtual disk may be anything.
        assert_eq!(unknown_speed(Some(true), None, 300.0), None);
        assert_eq!(unknown_speed(Some(false), None, 500.0), None);
        assert_eq!(unknown_speed(None, None, 500.0), None);
        assert_eq!(unknown_speed(Some(true), Some("kvm"), 500.0), None);
    }

    /// A random page of a small span waits for half a turn: 192 commits a second are honest.
    #[test]
    fn commits_at_random_places_wait_for_half_a_turn() {
        for (rate, expected) in [(192.0, false), (500.0, true)] {
            let mut record = turning(rate);
            for row in &mut record.measurements {
                row.data.workload.access = Access::Backward;
            }
            assert_eq!(check(&record).is_some(), expected, "{rate}");
        }
    }
}
