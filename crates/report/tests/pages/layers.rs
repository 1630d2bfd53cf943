//! Pages of `check --layers`, and of devices that lie on others.

use crate::{PLAIN_80, assert_shows, examined, fixture, record_page, written};
use diskproof_model::layers::{
    BlockMatch, CostMeaning, LayerCost, LayerDifference, LayerPlace, LayersPlan, LayersRecord,
    PlannedLayer,
};
use diskproof_model::plan::{Decide, LivePlan, Sides};
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::target::{Layer, LayerKind, TargetKind};
use diskproof_report::terminal;

/// The disk of the fixture under another name.
fn disk(record: &Record, name: &str) -> Layer {
    let disk = record.targets[0].disks().next().expect("it has a disk");
    Layer {
        name: name.to_owned(),
        below: Vec::new(),
        ..disk.clone()
    }
}

/// A mirror of two virtio disks, which the kernel reports as rotating, like them.
fn mirror() -> Record {
    let mut record = fixture::healthy();
    let array = Layer {
        kind: LayerKind::Md,
        below: vec!["vdb".to_owned(), "vdc".to_owned()],
        link: None,
        ..disk(&record, "md0")
    };
    let members = [disk(&record, "vdb"), disk(&record, "vdc")];
    record.targets[0].layers = std::iter::once(array).chain(members).collect();
    record
}

/// `check --layers` on that mirror: a file, the array, the first of its disks.
fn layered() -> Record {
    let mut record = mirror();
    let mut member = record.targets[0].clone();
    (member.kind, member.path) = (TargetKind::BlockDevice, "/dev/vdb".to_owned());
    member.layers.retain(|layer| layer.name == "vdb");
    record.targets.push(record.targets[0].clone());
    record.targets.push(member);
    let name = record.plan.workloads()[0].name.clone();
    record.plan.workloads_mut().truncate(1);
    let planned = |target: usize, name: &str, one_of: u32| PlannedLayer {
        name: name.to_owned(),
        path: format!("/dev/{name}"),
        device_kind: None,
        target: Some(target),
        skipped: None,
        one_of,
    };
    let layers = vec![
        planned(0, "file on ext4", 1),
        planned(1, "md0", 1),
        planned(2, "vdb", 2),
    ];
    let place = |target: usize| LayerPlace {
        target,
        start_bytes: 0,
        length_bytes: 1 << 30,
        blocks: BlockMatch::Same,
        compared: 8,
        why: None,
    };
    let cost = |target: usize, meaning: CostMeaning, share: f64| {
        let of = |value: f64| LayerDifference {
            n: 8,
            difference: value,
            half_width_95: Some(value / 20.0),
        };
        LayerCost {
            workload: name.clone(),
            target,
            below: None,
            own_time: of(share * 100_000.0),
            share: of(share),
            rate_change: None,
            meaning,
        }
    };
    let workloads = record.plan.workload_task_mut().expect("it has workloads");
    workloads.decide = Decide::Compare(LivePlan {
        sides: Sides::Layers(LayersPlan {
            layers,
            unresolved: None,
        }),
        margin: 0.01,
        cells_ns: 0,
    });
    record.results.push(TaskResult::Layers(LayersRecord {
        places: (0..3).map(place).collect(),
        costs: vec![
            cost(0, CostMeaning::Real, 0.125),
            cost(1, CostMeaning::OtherBlocks, 0.25),
            cost(2, CostMeaning::Lowest, 0.625),
        ],
    }));
    record
}

#[test]
fn only_the_lowest_device_has_a_medium() {
    let record = mirror();
    let target = &record.targets[0];
    let page = written(|out| terminal::write_identity(&examined(&record, target), &PLAIN_80, out));
    assert!(page.contains("on top of"), "{page}");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!words.contains("medium rotating"), "{page}");
    assert_eq!(words.matches("medium unknown: ").count(), 2, "{page}");
}

#[test]
fn disks_of_several_layers_are_named_once() {
    let page = record_page(&layered(), &PLAIN_80);
    let title: Vec<&str> = page.lines().take(3).collect();
    let title = title.join(" ");
    for disk in ["vdb, virtio", "vdc, virtio"] {
        assert_eq!(title.matches(disk).count(), 1, "{title}");
    }
}

#[test]
fn layers_without_a_place_share_their_reason() {
    let mut record = layered();
    let [TaskResult::Layers(layers)] = &mut record.results[..] else {
        panic!("it has layers");
    };
    for place in &mut layers.places[1..] {
        (place.blocks, place.compared) = (BlockMatch::Unknown, 0);
        place.why = Some("the array spreads its blocks".to_owned());
    }
    layers.costs[0].own_time.difference = -12_500.0;
    let page = record_page(&record, &PLAIN_80);
    assert!(page.contains("−12.5 µs"), "{page}");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = [
        "caution md0, vdb (1 of 2) ",
        ": the array spreads its blocks; vdb ",
        "2 devices",
    ];
    assert_shows(&words, &parts);
}

#[test]
fn difference_to_one_of_several_disks_has_no_share() {
    let page = record_page(&layered(), &PLAIN_80);
    let row = |name: &str| {
        let found = page.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {page}")).to_owned()
    };
    assert!(row("file on ext4").ends_with("12.5 %"), "{page}");
    assert!(row("md0").ends_with(" –"), "{page}");
    assert!(row("vdb (1 of 2)").ends_with("%"), "{page}");
}
