//! `virtual-disk`: a hypervisor provides the disk, so the record does not show the storage below.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "virtual-disk",
    title: "The disk is virtual",
    summary: "The disk is virtual. A cache of the host may answer for it, and the host decides \
              whether a flush reaches a medium.",
    remedy: Remedy::Always(
        "Ask the provider for the disk's cache mode and limits. Do not rely on a commit rate \
         before a power-cut test of the host.",
    ),
    check: Check::Run(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The names that hypervisors and clouds give to their disks, in lower case. On real machines some
/// RAID controllers use such words too, so they count only where a hypervisor is known.
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

fn check(record: &Record) -> Option<Diagnosis> {
    let hypervisor = record.host.hypervisor.as_ref()?;
    let mut names: Vec<&str> = Vec::new();
    let mut observations = Vec::new();
    let mut has_cloud_volume = false;
    for disk in lowest_layers(record) {
        let Some(field) = telltale_field(disk.layer) else {
            continue;
        };
        names.push(&disk.layer.name);
        let path = format!("{}/{field}", disk.path);
        observations.push(evidence_at(path, 1.0, 0.0, "virtual"));
        has_cloud_volume |= is_named(disk.layer.model.as_deref(), &CLOUD);
    }
    if names.is_empty() {
        return None;
    }
    names.sort_unstable();
    names.dedup();
    let mut claim = claim(&names, hypervisor);
    if has_cloud_volume {
        claim.push_str(CREDIT_SENTENCE);
    }
    Some(Diagnosis::new(Severity::Note, claim, observations))
}

/// Follows the claim where a cloud limits one of the disks.
const CREDIT_SENTENCE: &str = " Cloud volumes also allow bursts above the sustained rate; a short \
                               run cannot distinguish the two.";

/// The layers with nothing below them, which are the disks of this machine.
fn lowest_layers(record: &Record) -> Vec<PlacedLayer<'_>> {
    let mut lowest = layers(record);
    lowest.retain(|placed| placed.layer.below.is_empty());
    lowest
}

fn claim(names: &[&str], hypervisor: &str) -> String {
    let (are_virtual, them) = match names.len() {
        1 => ("is a virtual disk", "it"),
        _ => ("are virtual disks", "them"),
    };
    format!(
        "{} {are_virtual} (hypervisor: {hypervisor}). A cache of the host may answer for {them}, \
         and flushes are honoured only if the host honours them.",
        names.join(", ")
    )
}

/// The field of a layer that shows that its disk is virtual, as a path within the layer.
pub(super) fn telltale_field(layer: &Layer) -> Option<&'static str> {
    if let Some(link) = &layer.link
        && link.bus.eq_ignore_ascii_case("virtio")
    {
        return Some("link/bus");
    }
    if is_named(layer.model.as_deref(), &VIRTUAL_NAMES) {
        return Some("model");
    }
    if is_named(layer.vendor.as_deref(), &VIRTUAL_NAMES) {
        return Some("vendor");
    }
    None
}

/// True if a text contains one of these names, which are in lower case.
fn is_named(text: Option<&str>, names: &[&str]) -> bool {
    let Some(text) = text else {
        return false;
    };
    let lower_case = text.to_lowercase();
    names.iter().any(|name| lower_case.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| named(Some("kvm"), "", "virtio"), fixture::record);

    fn named(hypervisor: Option<&str>, model: &str, bus: &str) -> Record {
        fixture::changed(|run| {
            run.facts.host.hypervisor = hypervisor.map(str::to_owned);
            for layer in &mut run.facts.targets[0].layers {
                layer.model = Some(model.to_owned());
                layer.link.as_mut().unwrap().bus = bus.to_owned();
            }
        })
    }

    #[test]
    fn virtual_disks_are_reported_by_bus_or_model() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 1)
        );
        states(&finding.claim, &["sda", "kvm"]);
        let cloud = named(Some("amazon"), "Amazon Elastic Block Store", "PCIe");
        let evidence = check(&cloud).unwrap().evidence;
        states(&evidence[0].path, &["/model"]);
    }

    #[test]
    fn real_disks_passed_through_and_controllers_with_such_names_are_not() {
        for (hypervisor, model, bus) in [
            (Some("kvm"), "SAMSUNG MZQL2960HCJR", "PCIe"),
            (None, "PERC Virtual Disk", "SAS"),
        ] {
            assert_eq!(check(&named(hypervisor, model, bus)), None, "{model}");
        }
    }
}
