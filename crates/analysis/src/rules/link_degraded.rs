//! `link-degraded`: a disk talks more slowly over its link than it could. Concerns the disks below
//! every target, whatever was done with them.

use super::evidence::{evidence_at, layers, warning_if};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::record::Record;
use diskproof_model::target::{Layer, Link};
use diskproof_model::units::format_throughput;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "link-degraded",
    title: "The link runs below its full speed",
    meaning: "A disk's link runs at a lower speed, or with fewer lanes, than the disk supports. \
              The cable, port, slot or controller limits it.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// The same speed in other words (2.5 and 2.500 GT/s) must not count as a loss.
const SHARE: f64 = 0.95;
/// As long as the fastest figure stays below this share of the link, the link is not what limits
/// it.
const ROOM: f64 = 0.7;

fn check(record: &Record) -> Option<Diagnosis> {
    let mut names = BTreeSet::new();
    let degraded = layers(record).filter_map(|(path, layer)| {
        let path = path + "/link/bytes_per_second_max";
        Some((path, layer, Loss::of(layer.link.as_ref()?)?))
    });
    let hits: Vec<(String, &Layer, Loss)> = degraded
        .filter(|(_, layer, _)| names.insert(&layer.name))
        .collect();
    let rates = hits.iter().map(|(_, _, loss)| loss.now);
    let slowest = rates.min_by(f64::total_cmp)?;
    let fastest = fastest(record);
    let matters = fastest.is_none_or(|rate| rate >= ROOM * slowest);
    let claims: Vec<String> = hits
        .iter()
        .map(|(_, layer, loss)| loss.tell(layer))
        .collect();
    let effect = match fastest.map(format_throughput) {
        Some(rate) if matters => {
            format!("The fastest figure, {rate}, is close to the limit of that link.")
        }
        Some(rate) => format!("It did not limit these figures; the fastest is {rate}."),
        None => String::new(),
    };
    let claim = format!("{}. {effect}", claims.join("; "));
    Some(Diagnosis::new(
        warning_if(matters),
        claim.trim_end().to_owned(),
        hits.into_iter()
            .map(|(path, _, loss)| evidence_at(path, loss.now, loss.could, "B/s")),
        "Check what the port or slot supports. If it supports more, replace the cable, \
         clean the contacts, or use another port; dmesg names links that were slowed down \
         after errors.",
    ))
}

/// What a link carries and what the disk could use of a better one, in bytes per second.
struct Loss<'a> {
    link: &'a Link,
    now: f64,
    could: f64,
}

impl<'a> Loss<'a> {
    fn of(link: &'a Link) -> Option<Self> {
        let now = link.bytes_per_second_max? as f64;
        let could = link.device_bytes_per_second_max? as f64;
        (now < SHARE * could).then_some(Self { link, now, could })
    }

    fn tell(&self, layer: &Layer) -> String {
        let link = self.link;
        let claims = |speed: &Option<String>, rate: f64| {
            let speed = speed.as_ref().map_or(String::new(), |s| format!("{s}, "));
            speed + &format_throughput(rate)
        };
        format!(
            "The link of {} ({}) runs at {}; the disk can do {}",
            layer.name,
            link.bus,
            claims(&link.speed, self.now),
            claims(&link.speed_max, self.could)
        )
    }
}

/// The highest throughput in the record; `None` where none was measured.
fn fastest(record: &Record) -> Option<f64> {
    let workloads = record.measurements.iter().map(|m| {
        let ops = m.headline_ops().into_iter();
        ops.map(|(_, op)| op.throughput.value).sum::<f64>()
    });
    let curves = record.surface.iter().filter_map(|s| s.rate.as_ref());
    workloads
        .chain(curves.map(|rate| rate.max))
        .max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::finding::Severity;

    fn link(now: u64, could: Option<u64>) -> Link {
        Link {
            bus: "SATA".to_owned(),
            speed: Some("1.5 Gbps".to_owned()),
            speed_max: Some("6.0 Gbps".to_owned()),
            bytes_per_second_max: Some(now),
            device_bytes_per_second_max: could,
        }
    }

    fn record(link: Link) -> Record {
        let mut run = fixture::run();
        run.0.targets[0].layers[1].link = Some(link);
        fixture::judge(run)
    }

    pub(super) fn fires() -> Record {
        record(link(150_000_000, Some(600_000_000)))
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }

    #[test]
    fn a_slower_link_than_the_disk_can_is_reported_in_every_run() {
        let finding = check(&fires()).unwrap();
        assert!(
            finding.claim.starts_with(
                "The link of sda (SATA) runs at 1.5 Gbps, 150 MB/s; the disk can do 6.0 Gbps, 600 \
                 MB/s."
            ),
            "{}",
            finding.claim
        );
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 1)
        );
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.targets[0].layers[0].link = Some(link(300_000_000, Some(600_000_000)));
        let finding = check(&surveyed::judge(run)).unwrap();
        assert_eq!(finding.severity, Severity::Note, "92 MB/s do not need more");
        assert!(
            finding
                .claim
                .contains("did not limit these figures; the fastest is 9"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn a_full_link_and_an_unknown_one_are_no_finding() {
        for link in [
            link(600_000_000, Some(600_000_000)),
            link(150_000_000, None),
            link(600_000_000, Some(300_000_000)),
        ] {
            assert_eq!(check(&record(link)), None);
        }
        assert_eq!(check(&fixture::record()), None);
    }
}
