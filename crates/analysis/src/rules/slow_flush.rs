//! `slow-flush`: a flush of this flash disk takes long, because the disk has to write its cache to
//! the medium each time.

use super::commits::*;
use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "slow-flush",
    title: "Flushes of this flash disk are slow",
    summary: "Flash without power-loss protection must write its cache to the medium at each \
              flush. With protection, a flush takes microseconds.",
    remedy: Remedy::Always(
        "Put the WAL on a disk with power-loss protection, let sessions commit together \
         (commit_delay), or use synchronous_commit = off if losing the latest transactions is \
         acceptable.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Flash with protection answers a flush in less than 0.1 ms; consumer flash needs 1 to 4 ms (609
/// commits a second of a Samsung 990 Pro).
const SLOW_FLUSH_NS: f64 = 700_000.0;

/// Commits on flash that waited for slow flushes.
struct SlowFlushes<'a> {
    measured: Measured<'a>,
    mean_ns: f64,
    disks: String,
}

/// Only of physical disks without moving parts: a hypervisor adds its own times.
fn check(record: &Record) -> Option<Diagnosis> {
    if record.host.hypervisor.is_some() {
        return None;
    }
    let mut hits: Vec<SlowFlushes<'_>> = Vec::new();
    for session in single_sessions(record) {
        hits.extend(slow_flushes(record, session));
    }
    hits.sort_by(|one, other| other.mean_ns.total_cmp(&one.mean_ns));
    let slowest = hits.first()?;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "A flush of {} takes {} on average in {}, so one session commits at most {:.0} times \
             per second. Flash with power-loss protection takes less than 0.1 ms.",
            slowest.disks,
            format_latency(slowest.mean_ns as u64),
            slowest.measured.row.data.workload.name,
            1e9 / slowest.mean_ns,
        ),
        hits.iter().map(|hit| {
            let place = "figures/ops/sync/latency/mean";
            hit.measured
                .evidence(place, hit.mean_ns, SLOW_FLUSH_NS, "ns")
        }),
    ))
}

fn slow_flushes<'a>(record: &Record, session: SessionCommits<'a>) -> Option<SlowFlushes<'a>> {
    let row = session.measured.row;
    let mean_ns = row.op(OpKind::Sync)?.figures.latency.mean;
    let width = session.commits.figures.iops.relative_half_width()?;
    if mean_ns < SLOW_FLUSH_NS || width > HALF_WIDTH_MAX || has_cache_off(row) {
        return None;
    }
    let disks = disks_below(record, row);
    let are_volatile_flash = disks.iter().all(|disk| {
        disk.rotational == Some(false) && disk.write_cache == Some(WriteCache::WriteBack)
    });
    if disks.is_empty() || !are_volatile_flash {
        return None;
    }
    Some(SlowFlushes {
        measured: session.measured,
        mean_ns,
        disks: disk_names(&disks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{measured, states};
    use crate::rules::commits::tests::{each_layer, with_flushes};

    pub(super) const EXAMPLES: Examples = Examples::new(|| flash(1_600_000.0), || flash(90_000.0));

    /// Commits on flash whose flushes take so long.
    fn flash(flush_ns: f64) -> Record {
        let mut record = with_flushes();
        record.host.hypervisor = None;
        let commits = measured(&mut record, "commit-fdatasync");
        commits
            .figures
            .ops
            .get_mut(&OpKind::Sync)
            .unwrap()
            .latency
            .mean = flush_ns;
        record
    }

    #[test]
    fn slow_flushes_of_physical_flash_are_a_note() {
        let finding = check(&flash(1_600_000.0)).unwrap();
        states(&finding.claim, &["1.60 ms"]);
        let mut two_targets = flash(1_600_000.0);
        let mut other = two_targets.targets[0].clone();
        for layer in &mut other.layers {
            layer.name.push_str("-other");
        }
        two_targets.targets.push(other);
        let mut commits = measured(&mut two_targets, "commit-fdatasync").clone();
        commits.data.target = 1;
        two_targets.measurements.push(commits);
        let claim = check(&two_targets).unwrap().claim;
        let of_first = check(&flash(1_600_000.0)).unwrap().claim;
        assert_eq!(claim, of_first);
        assert_eq!(finding.severity, Severity::Note);
        let mut others = [flash(1_600_000.0), flash(1_600_000.0)];
        others[0].host.hypervisor = Some("kvm".to_owned());
        each_layer(&mut others[1], |layer| layer.rotational = Some(true));
        assert!(others.iter().all(|record| check(record).is_none()));
    }
}
