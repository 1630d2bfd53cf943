//! `virtual-disk`: the disk is one that a hypervisor makes up, so what lies below it is out of
//! sight.

use super::evidence::{evidence_at, layers};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_model::target::Layer;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "virtual-disk",
    title: "The disk is virtual",
    meaning: "The disk is virtual. A cache of the host may answer for it, and the host decides \
              whether a flush reaches a medium.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// How hypervisors and clouds call their disks, in lower case. On real machines some RAID
/// controllers use such words too, so they count only where a hypervisor is known.
const NAMES: [&str; 10] = [
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

fn check(record: &Record) -> Option<Diagnosis> {
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
        "Ask the provider for the disk's cache mode and limits. Do not rely on a commit rate \
         before a power-cut test of the host.",
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
        .filter(|(_, text)| is_named(text.as_deref(), &NAMES));
    named.next().map(|(place, _)| place)
}

fn is_named(text: Option<&str>, names: &[&str]) -> bool {
    text.map(str::to_lowercase)
        .is_some_and(|text| names.iter().any(|name| text.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn record(hypervisor: Option<&str>, model: &str, bus: &str) -> Record {
        let mut run = fixture::run();
        run.0.host.hypervisor = hypervisor.map(str::to_owned);
        for layer in &mut run.0.targets[0].layers {
            layer.model = Some(model.to_owned());
            layer.link.as_mut().unwrap().bus = bus.to_owned();
        }
        fixture::judge(run)
    }

    pub(super) fn fires() -> Record {
        record(Some("kvm"), "", "virtio")
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }

    #[test]
    fn virtual_disks_are_reported_by_bus_or_model() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 1)
        );
        assert!(
            finding
                .claim
                .starts_with("sda is a virtual disk (hypervisor: kvm)"),
            "{}",
            finding.claim
        );
        let cloud = check(&record(
            Some("amazon"),
            "Amazon Elastic Block Store",
            "PCIe",
        ))
        .unwrap();
        assert!(
            cloud.claim.contains("bursts") && cloud.evidence[0].path.ends_with("/model"),
            "{cloud:?}"
        );
    }

    #[test]
    fn real_disks_passed_through_and_controllers_with_such_names_are_not() {
        assert_eq!(
            check(&record(Some("kvm"), "SAMSUNG MZQL2960HCJR", "PCIe")),
            None
        );
        assert_eq!(check(&record(None, "PERC Virtual Disk", "SAS")), None);
    }
}
