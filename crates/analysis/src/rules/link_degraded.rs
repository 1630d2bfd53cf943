//! `link-degraded`: a disk talks more slowly over its link than it could. This concerns the disks
//! below every target, whatever was done with them.

use super::rule::*;
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    code: "link-degraded",
    title: "The link runs below its full speed",
    summary: "A disk's link runs at a lower speed, or with fewer lanes, than the disk supports. \
              The cable, port, slot or controller limits it.",
    remedy: Remedy::Always(
        "Check what the port or slot supports. If it supports more, replace the cable, clean the \
         contacts, or use another port; dmesg names links that were slowed down after errors.",
    ),
    check: Check::Run(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A link runs at its full speed from this share of it on: the same speed in other words (2.5 and
/// 2.500 GT/s) is no loss, and the next lower speed of SATA, SAS and PCIe is about half.
const FULL_SPEED_SHARE: f64 = 0.95;

/// As long as the fastest figure stays below this share of the link, the link does not limit it:
/// frames and answers take at most 30 % of a link's rate, as `flat-top` documents.
const USABLE_SHARE_MIN: f64 = 0.7;

/// A link that carries less than its disk could use of a better one.
struct DegradedLink<'a> {
    path: String,
    layer: &'a Layer,
    /// The rate that it carries, in bytes per second.
    now: f64,
    /// The rate of the fastest link that the disk supports, in bytes per second.
    possible: f64,
    claim: String,
}

/// The effect of the slowest link on the figures. The rates are in bytes per second.
enum LinkEffect {
    /// The fastest figure is close to what the link carries.
    Limits(f64),
    /// The fastest figure is far below.
    Spares(f64),
    /// No throughput was measured, or one that the link cannot carry.
    Unknown,
}

impl LinkEffect {
    /// The effect of a link with this rate on figures of which `fastest` is the highest.
    fn new(fastest: Option<f64>, link_rate: f64) -> Self {
        match fastest {
            Some(rate) if rate >= USABLE_SHARE_MIN * link_rate => Self::Limits(rate),
            Some(rate) => Self::Spares(rate),
            None => Self::Unknown,
        }
    }

    fn is_serious(&self) -> bool {
        !matches!(self, Self::Spares(_))
    }

    /// A sentence with the space before it; empty where the effect is unknown.
    fn sentence(&self) -> String {
        match self {
            Self::Limits(rate) => format!(
                " The fastest figure, {}, is close to the limit of that link.",
                format_throughput(*rate)
            ),
            Self::Spares(rate) => format!(
                " It did not limit these figures; the fastest is {}.",
                format_throughput(*rate)
            ),
            Self::Unknown => String::new(),
        }
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut names = BTreeSet::new();
    let mut hits: Vec<DegradedLink<'_>> = Vec::new();
    for placed in layers(record) {
        if let Some(degraded) = degraded_link(placed)
            && names.insert(&degraded.layer.name)
        {
            hits.push(degraded);
        }
    }
    let slowest = smallest_by(&hits, |hit| hit.now)?;
    let behind = targets_behind(&record.targets, &slowest.layer.name);
    let mut rates = rates_of_data(record, &behind);
    if let Some(surface) = record.surface()
        && let Some(rate) = &surface.figures.rate
    {
        rates.push(rate.max);
    }
    // A cache answered a part of what is faster than the link.
    rates.retain(|rate| *rate > 0.0 && *rate <= slowest.now);
    let effect = LinkEffect::new(largest_by(rates, |rate| *rate), slowest.now);
    let claims: Vec<&str> = hits.iter().map(|hit| hit.claim.as_str()).collect();
    Some(Diagnosis::new(
        warning_if(effect.is_serious()),
        format!("{}.{}", claims.join("; "), effect.sentence()),
        hits.iter()
            .map(|hit| evidence_at(&hit.path, hit.now, hit.possible, "B/s")),
    ))
}

fn degraded_link(placed: PlacedLayer<'_>) -> Option<DegradedLink<'_>> {
    let layer = placed.layer;
    let link = layer.link.as_ref()?;
    let now = link.bytes_per_second_max? as f64;
    let possible = link.device_bytes_per_second_max? as f64;
    if now >= FULL_SPEED_SHARE * possible {
        return None;
    }
    Some(DegradedLink {
        path: placed.path + "/link/bytes_per_second_max",
        layer,
        now,
        possible,
        claim: format!(
            "The link of {} ({}) runs at {}; the disk can do {}",
            layer.name,
            link.bus,
            speed_and_rate(link.speed.as_deref(), now),
            speed_and_rate(link.speed_max.as_deref(), possible)
        ),
    })
}

/// `1.5 Gbps, 150 MB/s`
fn speed_and_rate(speed: Option<&str>, bytes_per_second: f64) -> String {
    let rate = format_throughput(bytes_per_second);
    match speed {
        Some(speed) => format!("{speed}, {rate}"),
        None => rate,
    }
}

/// The indices of the targets with a layer of this name.
fn targets_behind(targets: &[TargetIdentity], layer_name: &str) -> Vec<usize> {
    let mut behind = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        if target.layers.iter().any(|layer| layer.name == layer_name) {
            behind.push(index);
        }
    }
    behind
}

/// Bytes per second that moved between these targets and the memory, past the page cache: of each
/// row with those that ran together with it on any of them.
fn rates_of_data(record: &Record, targets: &[usize]) -> Vec<f64> {
    let behind: Vec<&Row> = real_rows(record)
        .map(|measured| measured.row)
        .filter(|row| targets.contains(&row.data.target))
        .filter(|row| row.data.cache.used != CachePolicy::Cached)
        .collect();
    let mut rates = Vec::new();
    for row in &behind {
        let names = &row.figures.together_with;
        let mut rate = 0.0;
        for other in &behind {
            let name = &other.data.workload.name;
            if name == &row.data.workload.name || names.contains(name) {
                rate += rate_of_data(other);
            }
        }
        rates.push(rate);
    }
    rates
}

fn rate_of_data(row: &Row) -> f64 {
    let mut rate = 0.0;
    for (kind, op) in row.headline_ops() {
        if kind.moves_data() || kind == OpKind::Commit {
            rate += op.figures.throughput.value;
        }
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The claim where the only row moves so many bytes per second by this kind of operation, and
    /// as many again beside it.
    fn claim_of(kind: OpKind, rate: f64, has_companion: bool) -> String {
        let mut record = linked(link(150_000_000, Some(600_000_000)));
        let mut row = record.measurements.swap_remove(0);
        let (data, figures) = (
            row.data.ops.values().next().unwrap().clone(),
            row.figures.ops.values().next().unwrap().clone(),
        );
        row.data.ops = [(kind, data)].into();
        row.figures.ops = [(kind, figures)].into();
        row.figures.ops.get_mut(&kind).unwrap().throughput.value = rate;
        record.measurements = vec![row.clone()];
        if has_companion {
            row.data.workload.name = "other".to_owned();
            record.measurements[0].figures.together_with = vec!["other".to_owned()];
            record.measurements.push(row);
        }
        check(&record).unwrap().claim
    }

    #[test]
    fn the_link_is_judged_by_what_crossed_it() {
        let limits = "close to the limit";
        let spares = "did not limit";
        let (read, trim) = (OpKind::Read, OpKind::Trim);
        states(&claim_of(read, 140e6, false), &[limits]);
        states(&claim_of(read, 70e6, false), &[spares]);
        states(&claim_of(read, 70e6, true), &[limits]);
        for (kind, rate) in [(trim, 140e6), (read, 690e6)] {
            let claim = claim_of(kind, rate, false);
            assert!(
                !claim.contains(limits) && !claim.contains(spares),
                "{claim}"
            );
        }
    }

    #[test]
    fn figures_of_another_disk_say_nothing_of_the_link() {
        let mut record = linked(link(150_000_000, Some(600_000_000)));
        let mut other = record.targets[0].clone();
        for layer in &mut other.layers {
            layer.name.push_str("-other");
            layer.link = None;
        }
        record.targets.push(other);
        for row in &mut record.measurements {
            row.data.target = 1;
        }
        let diagnosis = check(&record).unwrap();
        assert!(
            !diagnosis.claim.contains("close to the limit"),
            "{diagnosis:?}"
        );
    }
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use crate::fixture::{self, states};
    use diskproof_model::target::Link;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || linked(link(150_000_000, Some(600_000_000))),
        fixture::record,
    );

    fn link(now: u64, could: Option<u64>) -> Link {
        Link {
            bus: "SATA".to_owned(),
            speed: Some("1.5 Gbps".to_owned()),
            speed_max: Some("6.0 Gbps".to_owned()),
            bytes_per_second_max: Some(now),
            device_bytes_per_second_max: could,
        }
    }

    /// Rates below 150 MB/s, behind this link.
    fn linked(link: Link) -> Record {
        let mut record = fixture::changed(|run| run.facts.targets[0].layers[1].link = Some(link));
        for row in &mut record.measurements {
            for op in row.figures.ops.values_mut() {
                op.throughput.value *= 0.3;
            }
        }
        record
    }

    #[test]
    fn a_slower_link_than_the_disk_can_is_reported_in_every_run() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        states(
            &finding.claim,
            &["sda (SATA)", "1.5 Gbps, 150 MB/s", "6.0 Gbps, 600 MB/s"],
        );
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 1)
        );
        let mut run = SurveyedDisk::rotating().run(1);
        run.facts.targets[0].layers[0].link = Some(link(300_000_000, Some(600_000_000)));
        let finding = check(&surveyed::judge(run)).unwrap();
        assert_eq!(finding.severity, Severity::Note, "92 MB/s do not need more");
    }

    #[test]
    fn a_full_link_and_an_unknown_one_are_no_finding() {
        for link in [
            link(600_000_000, Some(600_000_000)),
            link(150_000_000, None),
            link(600_000_000, Some(300_000_000)),
        ] {
            assert_eq!(check(&linked(link)), None);
        }
    }
}
