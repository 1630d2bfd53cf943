//! Decides whether the runs of a sum used the same storage.

use super::run_in_slots::Member;
use diskproof_model::fleet_sum::SumStorage;
use diskproof_model::record::Record;
use diskproof_model::target::{TargetIdentity, is_network_filesystem};
use std::collections::BTreeSet;

/// Names of the storages on which the targets of a run lie: the source of a network filesystem, or
/// disks. Clones of a virtual machine share serial numbers, so a virtual disk has a name only among
/// the runs under one kernel.
pub(super) fn storages_of_run(record: &Record) -> BTreeSet<String> {
    let wall = record.clock.wall.as_ref();
    let boot_id = wall.and_then(|wall| wall.boot_id.as_deref()).unwrap_or("");
    let is_virtual = record.host.hypervisor.is_some();
    let mut storages = BTreeSet::new();
    for target in &record.targets {
        if let Some(source) = network_source(target) {
            storages.insert(source);
            continue;
        }
        for disk in target.disks() {
            storages.insert(match (&disk.model, &disk.serial) {
                (Some(model), Some(serial)) if !is_virtual => {
                    let vendor = disk.vendor.as_deref().unwrap_or("");
                    format!("{vendor} {model} {serial}")
                }
                _ => format!("{boot_id} {}", disk.device),
            });
        }
    }
    storages
}

/// The mounted source of a network filesystem, such as `server:/export`; `None` of a local one.
fn network_source(target: &TargetIdentity) -> Option<String> {
    let filesystem = target.filesystem.as_ref()?;
    if is_network_filesystem(&filesystem.kind) {
        Some(filesystem.source.clone())
    } else {
        None
    }
}

/// Takes the storage for shared if all members name the same storages.
pub(super) fn sharing_of_storage(members: &[Member<'_>]) -> SumStorage {
    let Some(first) = members.first() else {
        return SumStorage::Separate;
    };
    let storages = &first.run.storages;
    let is_shared = members.len() > 1
        && !storages.is_empty()
        && members
            .iter()
            .all(|member| member.run.storages == *storages);
    if is_shared {
        SumStorage::Shared
    } else {
        SumStorage::Separate
    }
}
