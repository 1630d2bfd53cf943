//! What the layers below the targets say. `link-degraded`: a disk talks more slowly over its link
//! than it could; this concerns the disks below every target, whatever was done with them.
//! `virtual-disk`: the disk is one that a hypervisor makes up, so what lies below it is out of
//! sight. `volatile-write-cache`: what is acknowledged without a flush may be lost when the power
//! fails.

use super::rule::*;
use diskproof_model::target::Link;
use std::collections::BTreeSet;

pub(super) const LINK_DEGRADED: Rule = Rule {
    code: "link-degraded",
    check: Check::Run(check_link_degraded),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::LINK_DEGRADED,
};

/// The same speed in other words (2.5 and 2.500 GT/s) must not count as a loss.
const LINK_SHARE: f64 = 0.95;
/// As long as the fastest figure stays below this share of the link, the link is not what limits
/// it.
const ROOM: f64 = 0.7;

fn check_link_degraded(record: &Record) -> Option<Diagnosis> {
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
        (now < LINK_SHARE * could).then_some(Self { link, now, could })
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
        ops.map(|(_, op)| op.figures.throughput.value).sum::<f64>()
    });
    let curves = record
        .surface()
        .into_iter()
        .filter_map(|s| s.figures.rate.as_ref());
    workloads
        .chain(curves.map(|rate| rate.max))
        .max_by(f64::total_cmp)
}

pub(super) const VIRTUAL_DISK: Rule = Rule {
    code: "virtual-disk",
    check: Check::Run(check_virtual_disk),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::VIRTUAL_DISK,
};

/// How hypervisors and clouds call their disks, in lower case. On real machines some RAID
/// controllers use such words too, so they count only where a hypervisor is known.
const VIRTUAL_NAMES: [&str; 10] = [
    "qemu",
    "vbox",
    "vmware",
    "virtual",
    "msft",
    "virtio",
    "xen",
    "amazon elastic block store",
    "persistentdisk",
    "nvme_card-pd",
];
/// Disks that clouds limit by quotas and credits.
const CLOUD: [&str; 4] = [
    "amazon elastic block store",
    "persistentdisk",
    "nvme_card-pd",
    "msft",
];

fn check_virtual_disk(record: &Record) -> Option<Diagnosis> {
    let hypervisor = record.host.hypervisor.as_ref()?;
    let disks = layers(record).filter(|(_, layer)| layer.below.is_empty());
    let hits: Vec<(String, &Layer)> = disks
        .filter_map(|(path, layer)| Some((format!("{path}/{}", sign(layer)?), layer)))
        .collect();
    hits.first()?;
    let mut names: Vec<&str> = hits.iter().map(|(_, layer)| layer.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let is_cloud = |(_, layer): &(String, &Layer)| is_named(layer.model.as_deref(), &CLOUD);
    let credits = if hits.iter().any(is_cloud) {
        " Cloud volumes also allow bursts above the sustained rate; a short run cannot \
         distinguish the two."
    } else {
        ""
    };
    let (is, it) = match names.len() {
        1 => ("is a virtual disk", "it"),
        _ => ("are virtual disks", "them"),
    };
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "{} {is} (hypervisor: {hypervisor}). A cache of the host may answer for {it}, and \
             flushes are honoured only if the host honours them.{credits}",
            names.join(", ")
        ),
        hits.into_iter()
            .map(|(path, _)| evidence_at(path, 1.0, 0.0, "virtual")),
    ))
}

/// The field of a layer that gives it away.
fn sign(layer: &Layer) -> Option<&'static str> {
    let link = layer.link.as_ref();
    if link.is_some_and(|link| link.bus.eq_ignore_ascii_case("virtio")) {
        return Some("link/bus");
    }
    let texts = [("model", &layer.model), ("vendor", &layer.vendor)];
    let mut named = texts
        .into_iter()
        .filter(|(_, text)| is_named(text.as_deref(), &VIRTUAL_NAMES));
    named.next().map(|(place, _)| place)
}

fn is_named(text: Option<&str>, names: &[&str]) -> bool {
    text.map(str::to_lowercase)
        .is_some_and(|text| names.iter().any(|name| text.contains(name)))
}

pub(super) const VOLATILE_WRITE_CACHE: Rule = Rule {
    code: "volatile-write-cache",
    check: Check::Workloads(check_volatile_write_cache),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::VOLATILE_WRITE_CACHE,
};

/// Mount options that switch flushes off: ext4(5), xfs(5) before Linux 4.19, btrfs(5).
const WITHOUT_FLUSHES: [&str; 2] = ["nobarrier", "barrier=0"];

/// Where a disk with a volatile cache stands in the record, and the mount option that switches
/// flushes off.
type VolatileCache<'a> = (String, &'a Layer, Option<&'a String>);

/// Only records with commits: other loads promise no durability.
fn check_volatile_write_cache(record: &Record) -> Option<Diagnosis> {
    let has_commits = |target: usize| {
        real(record)
            .any(|(_, m)| m.data.target == target && m.data.ops.contains_key(&OpKind::Commit))
    };
    let targets = record.targets.iter().enumerate();
    let hits: Vec<VolatileCache<'_>> = targets
        .filter(|(index, _)| has_commits(*index))
        .flat_map(|(index, target)| volatile_disks(index, target))
        .collect();
    let worst = hits.iter().find(|(.., option)| option.is_some());
    let (_, disk, option) = worst.or(hits.first())?;
    let name = &disk.name;
    let mut disks = hits.iter().map(|(_, disk, _)| disk);
    let unflushed = disks.find(|disk| disk.write_cache == Some(WriteCache::WriteThrough));
    let (severity, claim, remedy) = match (unflushed, option) {
        (Some(unflushed), _) => (
            Severity::Warning,
            format!(
                "{0} reports that its volatile write cache is on, but the kernel treats it as \
                 write-through and sends no flushes. A power cut loses acknowledged commits.",
                unflushed.name
            ),
            format!(
                "Make the kernel send flushes (echo 'write back' > \
                 /sys/block/{}/queue/write_cache), or switch the cache off.",
                unflushed.name
            ),
        ),
        (None, Some(option)) => (
            Severity::Warning,
            format!(
                "{name} has a volatile write cache, but the filesystem is mounted with {option}, \
                 which disables flushes. A power cut loses acknowledged commits and may damage the \
                 filesystem."
            ),
            format!("Mount the filesystem without {option}."),
        ),
        (None, None) => (
            Severity::Note,
            format!(
                "{name} acknowledges writes from a volatile cache. Commits are durable because \
                 each one flushes the cache; a power failure loses writes without a sync."
            ),
            "Leave fsync on in the database. 'diskproof powercut' tests whether the disk keeps \
             flushed data."
                .to_owned(),
        ),
    };
    Some(Diagnosis::with_remedy(
        severity,
        claim,
        hits.into_iter()
            .map(|(path, ..)| evidence_at(path, 1.0, 0.0, "write back")),
        remedy,
    ))
}

fn volatile_disks(index: usize, target: &TargetIdentity) -> Vec<VolatileCache<'_>> {
    let mut options = target.filesystem.iter().flat_map(|f| &f.options);
    let option = options.find(|option| WITHOUT_FLUSHES.contains(&option.as_str()));
    let layers = target.layers.iter().enumerate();
    layers
        .filter(|(_, layer)| {
            let cache = layer.reported_write_cache.or(layer.write_cache);
            layer.kind == LayerKind::Disk && cache == Some(WriteCache::WriteBack)
        })
        .map(|(layer, disk)| {
            let path = format!("/targets/{index}/layers/{layer}/write_cache");
            (path, disk, option)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use crate::fixture::{self, states};

    pub(super) const LINK_DEGRADED: Examples = Examples::of(
        || linked(link(150_000_000, Some(600_000_000))),
        fixture::record,
    );
    pub(super) const VIRTUAL_DISK: Examples =
        Examples::of(|| named(Some("kvm"), "", "virtio"), fixture::record);
    pub(super) const VOLATILE_WRITE_CACHE: Examples = Examples::of(
        || cached(WriteCache::WriteBack, None),
        || cached(WriteCache::WriteThrough, Some("barrier=0")),
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

    fn linked(link: Link) -> Record {
        fixture::changed(|run| run.0.targets[0].layers[1].link = Some(link))
    }

    #[test]
    fn a_slower_link_than_the_disk_can_is_reported_in_every_run() {
        let finding = check_link_degraded(&(LINK_DEGRADED.fires)()).unwrap();
        states(
            &finding.claim,
            &["sda (SATA)", "1.5 Gbps, 150 MB/s", "6.0 Gbps, 600 MB/s"],
        );
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 1)
        );
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.targets[0].layers[0].link = Some(link(300_000_000, Some(600_000_000)));
        let finding = check_link_degraded(&surveyed::judge(run)).unwrap();
        assert_eq!(finding.severity, Severity::Note, "92 MB/s do not need more");
    }

    #[test]
    fn a_full_link_and_an_unknown_one_are_no_finding() {
        for link in [
            link(600_000_000, Some(600_000_000)),
            link(150_000_000, None),
            link(600_000_000, Some(300_000_000)),
        ] {
            assert_eq!(check_link_degraded(&linked(link)), None);
        }
    }

    fn named(hypervisor: Option<&str>, model: &str, bus: &str) -> Record {
        fixture::changed(|run| {
            run.0.host.hypervisor = hypervisor.map(str::to_owned);
            for layer in &mut run.0.targets[0].layers {
                layer.model = Some(model.to_owned());
                layer.link.as_mut().unwrap().bus = bus.to_owned();
            }
        })
    }

    #[test]
    fn virtual_disks_are_reported_by_bus_or_model() {
        let finding = check_virtual_disk(&(VIRTUAL_DISK.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 1)
        );
        states(&finding.claim, &["sda", "kvm"]);
        let cloud = named(Some("amazon"), "Amazon Elastic Block Store", "PCIe");
        let evidence = check_virtual_disk(&cloud).unwrap().evidence;
        states(&evidence[0].path, &["/model"]);
    }

    #[test]
    fn real_disks_passed_through_and_controllers_with_such_names_are_not() {
        for (hypervisor, model, bus) in [
            (Some("kvm"), "SAMSUNG MZQL2960HCJR", "PCIe"),
            (None, "PERC Virtual Disk", "SAS"),
        ] {
            assert_eq!(
                check_virtual_disk(&named(hypervisor, model, bus)),
                None,
                "{model}"
            );
        }
    }

    fn cached(cache: WriteCache, option: Option<&str>) -> Record {
        let mut record = fixture::record();
        for target in &mut record.targets {
            for layer in &mut target.layers {
                layer.write_cache = Some(cache);
            }
            if let Some(filesystem) = &mut target.filesystem {
                filesystem.options.extend(option.map(str::to_owned));
            }
        }
        record
    }

    #[test]
    fn volatile_cache_is_a_note_and_without_flushes_a_warning() {
        let note = check_volatile_write_cache(&(VOLATILE_WRITE_CACHE.fires)()).unwrap();
        assert_eq!(note.severity, Severity::Note);
        let without = cached(WriteCache::WriteBack, Some("barrier=0"));
        let warning = check_volatile_write_cache(&without).unwrap();
        assert_eq!(warning.severity, Severity::Warning);
        states(&warning.claim, &["barrier=0"]);
    }

    #[test]
    fn disk_s_own_report_counts_more_than_the_kernel_s_view() {
        let (on, off) = (WriteCache::WriteBack, WriteCache::WriteThrough);
        for (kernel, disk, severity) in [
            (on, off, None),
            (on, on, Some(Severity::Note)),
            // The kernel sends no flushes.
            (off, on, Some(Severity::Warning)),
        ] {
            let mut record = cached(kernel, None);
            for layer in record
                .targets
                .iter_mut()
                .flat_map(|target| &mut target.layers)
            {
                layer.reported_write_cache = Some(disk);
            }
            let found = check_volatile_write_cache(&record).map(|finding| finding.severity);
            assert_eq!(found, severity, "{kernel:?} {disk:?}");
        }
    }

    #[test]
    fn record_without_commits_is_silent() {
        let mut record = (VOLATILE_WRITE_CACHE.fires)();
        for m in &mut record.measurements {
            m.data.ops.remove(&OpKind::Commit);
        }
        assert_eq!(check_volatile_write_cache(&record), None);
    }
}
