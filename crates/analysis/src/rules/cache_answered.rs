//! `cache-answered`: the survey measured what no disk can do, so a cache answered: more than its
//! link carries, or random accesses in less time than a platter takes to turn. Where the disks' own
//! counters show the cache, `served-from-cache` reports it.

use super::rule::*;
use super::served_from_cache::is_served_from_cache;
use crate::mechanics::{link_bytes_per_second, links, reported_rpm};

pub(super) const RULE: Rule = Rule {
    code: "cache-answered",
    title: "The survey measured a cache",
    summary: "The survey measured rates above the bandwidth of the link, or random accesses faster \
              than the rotation. A cache answered.",
    remedy: Remedy::Always(
        "Find the cache: the host's page cache behind a virtual disk, the memory of a RAID \
         controller or enclosure, or a cache device. Measure below it, switch it off for the \
         measurement, or survey a span several times as large.",
    ),
    check: Check::Survey(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Cache,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A rate counts as above the link from this share on: the link's rate is exact, a sample's time is
/// not quite. Chosen, not measured.
const LINK_SHARE_MAX: f64 = 1.05;

/// An access counts as one without a platter when it takes less than this share of a turn; of
/// honest ones as few in a hundred do, before any seek.
const TURN_SHARE_MAX: f64 = 0.05;

/// Smallest share of random accesses that must be that fast: honest ones and a read-ahead that
/// happened to fit are fewer. Chosen, three times the twentieth of [`TURN_SHARE_MAX`].
const FAST_SHARE_MIN: f64 = 0.15;

/// A speed that no disk behind this link, or with this platter, reaches.
struct ImpossibleSpeed {
    claim: String,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    if is_served_from_cache(record) {
        return None;
    }
    let mut speeds = rates_above_link(record, surface);
    speeds.extend(faster_than_the_platter(record, surface));
    if speeds.is_empty() {
        return None;
    }
    let claims: Vec<&str> = speeds.iter().map(|speed| speed.claim.as_str()).collect();
    Some(Diagnosis::new(
        Severity::Warning,
        format!("A cache answered, not the disk: {}.", claims.join("; ")),
        speeds.iter().map(|speed| speed.evidence.clone()),
    ))
}

/// A rate of the survey, its name, and its path in the record.
struct SurveyRate {
    name: &'static str,
    path: String,
    bytes_per_second: f64,
}

fn rates_above_link(record: &Record, surface: &SurfaceRecord) -> Vec<ImpossibleSpeed> {
    let Some(link_rate) = link_bytes_per_second(record, surface.data.target) else {
        return Vec::new();
    };
    let mut rates = Vec::new();
    if let Some(rate) = &surface.figures.rate {
        rates.push(SurveyRate {
            name: "the highest rate of the curve",
            path: first_result_path("figures/rate/max"),
            bytes_per_second: rate.max,
        });
    }
    if let Some(burst) = &surface.data.burst {
        rates.push(SurveyRate {
            name: "reading the same bytes again",
            path: first_result_path("data/burst/throughput/value"),
            bytes_per_second: burst.throughput.value,
        });
    }
    let rate_max = LINK_SHARE_MAX * link_rate;
    rates.retain(|rate| rate.bytes_per_second > rate_max);
    let names = link_names(record, surface.data.target);
    let mut speeds = Vec::new();
    for rate in rates {
        speeds.push(ImpossibleSpeed {
            claim: format!(
                "{} ran at {}, but the link ({names}) carries only {}",
                rate.name,
                format_throughput(rate.bytes_per_second),
                format_throughput(link_rate)
            ),
            evidence: evidence_at(rate.path, rate.bytes_per_second, rate_max, "B/s"),
        });
    }
    speeds
}

/// `SATA 1.5 Gbps`, of every link on the way.
fn link_names(record: &Record, target: usize) -> String {
    let mut names = Vec::new();
    for placed in links(record, target) {
        let bus = &placed.link.bus;
        names.push(match &placed.link.speed {
            Some(speed) => format!("{bus} {speed}"),
            None => bus.clone(),
        });
    }
    names.join(", ")
}

/// Random accesses that are faster than the revolutions which the system reports. Where the user
/// states them, `access-time-off` compares the accesses with those.
fn faster_than_the_platter(record: &Record, surface: &SurfaceRecord) -> Option<ImpossibleSpeed> {
    if let Some(sheet) = record.plan.questions.data_sheet
        && sheet.rpm.is_some()
    {
        return None;
    }
    let rpm = reported_rpm(record)?;
    let turn_ns = 60e9 / f64::from(rpm);
    let fast_ns = TURN_SHARE_MAX * turn_ns;
    let random = surface.figures.seeks.get(&SeekPattern::Random)?;
    let mut accesses = 0_u32;
    let mut fast = 0_u32;
    for access in record.access() {
        if access.seek == SeekPattern::Random {
            accesses += 1;
            fast += u32::from((access.latency_ns as f64) < fast_ns);
        }
    }
    let share = f64::from(fast) / f64::from(accesses.max(1));
    if share < FAST_SHARE_MIN {
        return None;
    }
    let path = first_result_path("figures/seeks/random/min_ns");
    Some(ImpossibleSpeed {
        claim: format!(
            "{} of {accesses} random accesses took less than {}, but at {rpm} rpm half a turn \
             alone takes {}",
            format_percent(share),
            format_latency(fast_ns as u64),
            format_latency((turn_ns / 2.0) as u64)
        ),
        evidence: evidence_at(path, random.min_ns as f64, fast_ns, "ns"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};
    use diskproof_model::health::DiskHealth;
    use diskproof_model::surface::DataSheet;

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| on_link(92e6, 700e6), || on_link(140e6, 149e6));

    /// A disk on SATA 1.5 Gbps, which carries 150 MB/s.
    fn on_link(rate: f64, burst: f64) -> Record {
        let mut run = rotating(|disk| (disk.outer, disk.inner) = (rate, rate / 2.0)).run(1);
        let link = run.facts.targets[0].layers[0].link.as_mut().unwrap();
        (link.speed, link.bytes_per_second_max) = (Some("1.5 Gbps".to_owned()), Some(150_000_000));
        run.surface.burst = Some(surveyed::burst(burst));
        surveyed::judge(run)
    }

    /// A disk that says that it turns, of whose random accesses a cache answers these percent.
    fn cached(rpm: Option<u32>, percent: usize) -> surveyed::SurveyRun {
        let mut run = SurveyedDisk::rotating().run(1);
        run.facts.health = vec![DiskHealth {
            disk: "sda".to_owned(),
            rotation_rpm: rpm,
            ..DiskHealth::default()
        }];
        for (_, access) in run
            .surface
            .access
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| i % 100 < percent)
        {
            access.latency_ns = 40_000;
        }
        run
    }

    #[test]
    fn more_than_the_link_carries_is_a_cache() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        states(&finding.claim, &["700 MB/s", "SATA 1.5 Gbps", "150 MB/s"]);
        let both = check(&on_link(400e6, 700e6)).unwrap();
        assert_eq!(both.evidence.len(), 2);
    }

    #[test]
    fn faster_than_the_platter_is_a_cache() {
        let finding = check(&surveyed::judge(cached(Some(7200), 50))).unwrap();
        states(&finding.claim, &["50 % of 400", "417 µs", "7200 rpm"]);
    }

    #[test]
    fn what_a_disk_and_its_link_can_do_is_no_finding() {
        assert_eq!(check(&surveyed::record()), None);
        for (rpm, percent) in [(Some(7200), 5), (Some(0), 100), (None, 100)] {
            let record = surveyed::judge(cached(rpm, percent));
            assert_eq!(check(&record), None, "{rpm:?} {percent}");
        }
        let mut told = cached(Some(7200), 100);
        told.facts.plan.questions.data_sheet = Some(DataSheet {
            rpm: Some(7200),
            ..DataSheet::default()
        });
        let mut counted = cached(Some(7200), 100);
        counted.surface.device.read_bytes = 0;
        for (run, by) in [(told, "access-time-off"), (counted, "served-from-cache")] {
            assert_eq!(check(&surveyed::judge(run)), None, "{by} tells it");
        }
    }
}
