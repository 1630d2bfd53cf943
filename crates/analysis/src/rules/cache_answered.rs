//! `cache-answered`: the survey saw what no disk can do, so a cache answered: more than the link
//! below carries, or random accesses in less time than a turning platter takes to come round. What
//! the disks' own counters show is reported by `served-from-cache`, and then not again here.

use super::evidence::evidence_at;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use super::served_from_cache;
use crate::mechanics::{link_bytes_per_second, links, reported_rpm};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::record::Record;
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::units::{format_latency, format_percent, format_throughput};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "cache-answered",
    title: "The survey measured a cache",
    meaning: "The survey measured rates above the bandwidth of the link, or random accesses faster \
              than the rotation. A cache answered.",
    taints: Some(Taint {
        from: Severity::Note,
        why: "a cache answered instead of the disk in",
    }),
    check: Check::Survey(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// A rate counts as above the link from this share on: the link's rate is exact, a sample's time is
/// not quite.
const LINK_SHARE: f64 = 1.05;
/// An access counts as one without a platter when it takes less than this share of a turn; of
/// honest ones as few in a hundred do, before any seek.
const TURN_SHARE: f64 = 0.05;
/// Smallest share of random accesses that must be that fast: honest ones and a read-ahead that
/// happened to fit are fewer.
const FAST_MIN: f64 = 0.15;

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface.as_ref()?;
    if served_from_cache::finds(record) {
        return None;
    }
    let mut seen = above_the_link(record, surface);
    seen.extend(faster_than_the_platter(record, surface));
    seen.first()?;
    let (words, evidence): (Vec<String>, Vec<Evidence>) = seen.into_iter().unzip();
    Some(Diagnosis::new(
        Severity::Warning,
        format!("A cache answered, not the disk: {}.", words.join("; ")),
        evidence,
        "Find the cache: the host's page cache behind a virtual disk, the memory of a RAID \
         controller or enclosure, or a cache device. Measure below it, switch it off for \
         the measurement, or survey a span several times as large.",
    ))
}

fn above_the_link(record: &Record, surface: &SurfaceRecord) -> Vec<(String, Evidence)> {
    let Some(link) = link_bytes_per_second(record, surface.target) else {
        return Vec::new();
    };
    let names = links(record, surface.target).into_iter().map(|at| {
        let speed = at.link.speed.as_ref();
        speed.map_or(at.link.bus.clone(), |speed| {
            format!("{} {speed}", at.link.bus)
        })
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let most = LINK_SHARE * link;
    let rates = [
        (
            "the highest rate of the curve",
            "/surface/rate/max",
            surface.rate.as_ref().map(|r| r.max),
        ),
        (
            "reading the same bytes again",
            "/surface/burst/throughput/value",
            surface.burst.as_ref().map(|b| b.throughput.value),
        ),
    ];
    let above = rates.into_iter().filter_map(|(what, path, rate)| {
        let rate = rate.filter(|rate| *rate > most)?;
        let words = format!(
            "{what} ran at {}, but the link ({names}) carries only {}",
            format_throughput(rate),
            format_throughput(link)
        );
        Some((words, evidence_at(path, rate, most, "B/s")))
    });
    above.collect()
}

/// By what the system says of the disk; what the user says of it is `access-time-off`'s.
fn faster_than_the_platter(record: &Record, surface: &SurfaceRecord) -> Option<(String, Evidence)> {
    let sheet = record.plan.data_sheet;
    if sheet.is_some_and(|sheet| sheet.rpm.is_some()) {
        return None;
    }
    let rpm = reported_rpm(record)?;
    let turn_ns = 60e9 / f64::from(rpm);
    let random = surface.seeks.get(&SeekPattern::Random)?;
    let accesses = record.access.iter();
    let accesses = accesses.filter(|a| a.seek == SeekPattern::Random);
    let accesses: Vec<f64> = accesses.map(|a| a.latency_ns as f64).collect();
    let fast_ns = TURN_SHARE * turn_ns;
    let fast = accesses.iter().filter(|ns| **ns < fast_ns).count();
    let share = fast as f64 / accesses.len().max(1) as f64;
    let words = format!(
        "{} of {} random accesses took less than {}, but at {rpm} rpm half a turn alone takes {}",
        format_percent(share),
        accesses.len(),
        format_latency(fast_ns as u64),
        format_latency((turn_ns / 2.0) as u64)
    );
    let path = "/surface/seeks/random/min_ns";
    let evidence = evidence_at(path, random.min_ns as f64, fast_ns, "ns");
    (share >= FAST_MIN).then_some((words, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::health::DiskHealth;
    use diskproof_model::surface::DataSheet;

    /// A disk on SATA 1.5 Gbps, which carries 150 MB/s.
    fn record(rate: f64, burst: f64) -> Record {
        let mut run = SurveyedDisk {
            outer: rate,
            inner: rate / 2.0,
            ..SurveyedDisk::rotating()
        }
        .run(1);
        let link = run.0.targets[0].layers[0].link.as_mut().unwrap();
        (link.speed, link.bytes_per_second_max) = (Some("1.5 Gbps".to_owned()), Some(150_000_000));
        run.1.burst = Some(surveyed::burst(burst));
        surveyed::judge(run)
    }

    /// A disk that says that it turns, half of whose random accesses a cache answers.
    fn cached(
        rpm: Option<u32>,
        share: usize,
    ) -> (
        crate::judge::RunFacts,
        diskproof_model::surface::SurfaceMeasurement,
    ) {
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.health = vec![DiskHealth {
            disk: "sda".to_owned(),
            rotation_rpm: rpm,
            ..DiskHealth::default()
        }];
        run.1
            .access
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| i % 100 < share)
            .for_each(|(_, a)| a.latency_ns = 40_000);
        run
    }

    pub(super) fn fires() -> Record {
        record(92e6, 700e6)
    }

    pub(super) fn silent() -> Record {
        record(140e6, 149e6)
    }

    #[test]
    fn more_than_the_link_carries_is_a_cache() {
        let finding = check(&fires()).unwrap();
        assert!(
            finding.claim.contains(
                "reading the same bytes again ran at 700 MB/s, but the link (SATA 1.5 Gbps) \
                 carries only 150 MB/s"
            ),
            "{finding:?}"
        );
        assert_eq!(check(&record(400e6, 700e6)).unwrap().evidence.len(), 2);
    }

    #[test]
    fn faster_than_the_platter_is_a_cache() {
        let finding = check(&surveyed::judge(cached(Some(7200), 50))).unwrap();
        assert!(
            finding.claim.contains(
                "50 % of 400 random accesses took less than 417 µs, but at 7200 rpm half a turn"
            ),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn what_a_disk_and_its_link_can_do_is_no_finding() {
        assert_eq!(check(&record(140e6, 149e6)), None);
        assert_eq!(check(&SurveyedDisk::rotating().record(1)), None);
        for (rpm, share) in [(Some(7200), 5), (Some(0), 100), (None, 100)] {
            assert_eq!(
                check(&surveyed::judge(cached(rpm, share))),
                None,
                "{rpm:?} {share}"
            );
        }
        let mut told = cached(Some(7200), 100);
        told.0.plan.data_sheet = Some(DataSheet {
            rpm: Some(7200),
            ..DataSheet::default()
        });
        assert_eq!(
            check(&surveyed::judge(told)),
            None,
            "access-time-off tells it"
        );
        let mut counted = cached(Some(7200), 100);
        counted.1.device.read_bytes = 0;
        assert_eq!(
            check(&surveyed::judge(counted)),
            None,
            "served-from-cache tells it"
        );
    }
}
