//! `starved`: the machine was so busy that the program which surveyed had to wait for a processor when the disk answered. Its own waiting is in the figures then,
//! as slow and, where the disk read ahead meanwhile, as fast places.

use super::{Rule, percent};
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::record::Record;
use diskproof_model::surface::SurfaceRecord;
use diskproof_model::units::counted;

pub(super) const RULE: Rule = Rule {
    code: "starved",
    meaning: "The machine had no processor for this program when the disk answered: what the survey shows is partly the machine's waiting, not the disk's.",
    check,
};

/// Share of the survey's time from which on it shows: the queue of eight requests hides less, single accesses become longer by it.
const SHARE_MIN: f64 = 0.05;
/// Shorter surveys are over within a few turns of the scheduler.
const WALL_NS_MIN: u64 = 1_000_000_000;

/// Whether the survey waited for processors so long that it shows.
pub(super) fn is_starved(surface: &SurfaceRecord) -> bool {
    surface.starved_share >= SHARE_MIN && surface.wall_ns >= WALL_NS_MIN
}

fn check(record: &Record) -> Option<Finding> {
    let surface = record.surface.as_ref().filter(|surface| is_starved(surface))?;
    let load = record
        .host
        .load_average
        .as_ref()
        .map_or(String::new(), |load| format!(" (load {load} on {})", counted(u64::from(record.host.cpus), "CPU")));
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Warning,
        claim: format!(
            "The machine was too busy to time the disk well: for {} of the survey this program was ready to go on and got no processor{load}. Points that this \
             hit are not judged, and access times are longer by it.",
            percent(surface.starved_share)
        ),
        evidence: vec![Evidence {
            path: "/surface/starved_share".to_owned(),
            observed: surface.starved_share,
            threshold: SHARE_MIN,
            unit: "of the time".to_owned(),
        }],
        remedy: "Measure when the machine is quieter, or give this program precedence: chrt -f 10 diskproof curve … (as root).".to_owned(),
        reproduce: None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::surveyed::{self, Disk, codes};

    pub(in crate::rules) fn spoilt() -> Record {
        let mut run = Disk::rotating().run(1);
        run.1.starved_ns = run.1.wall_ns / 8;
        surveyed::judge(run)
    }

    #[test]
    fn waiting_for_a_processor_is_told_with_its_share() {
        let finding = check(&spoilt()).unwrap();
        assert!(finding.claim.contains("for 12 % of the survey") || finding.claim.contains("for 13 % of the survey"), "{}", finding.claim);
        assert_eq!(codes(&spoilt()), ["starved"]);
        assert_eq!(check(&Disk::rotating().record(1)), None);
    }

    #[test]
    fn what_the_waiting_did_to_points_and_accesses_is_not_told_as_the_disks() {
        let mut run = Disk { accesses: 300, ..Disk::rotating() }.run(1);
        run.0.plan.data_sheet =
            Some(diskproof_model::surface::DataSheet { rpm: Some(7200), seek_ns: Some(10_600_000), bytes_per_second: None });
        for point in run.1.curve.iter_mut().step_by(7) {
            let late_ns = point.busy_ns / 2;
            (point.busy_ns, point.late_ns, point.bytes_per_second) = (point.busy_ns + late_ns, late_ns, point.bytes_per_second / 1.5);
        }
        run.1.access.iter_mut().for_each(|access| access.latency_ns += 6_000_000);
        run.1.starved_ns = run.1.wall_ns / 5;
        assert_eq!(codes(&surveyed::judge(run.clone())), ["starved"]);
        run.1.starved_ns = 0;
        run.1.curve.iter_mut().for_each(|point| point.late_ns = 0);
        assert!(codes(&surveyed::judge(run)).contains(&"access-time-off"));
    }
}
