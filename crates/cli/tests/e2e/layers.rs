//! `diskproof check --layers` from the outside.

use crate::program::{argv, diskproof, names, needs, run, saved_record};
use diskproof_model::layers::{BlockMatch, CostMeaning};
use diskproof_model::plan::Fill;
use diskproof_simdisk::testbed::{Loop, Mount, place};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const SHORT: &str =
    "--layers --only random-read-d1 --time 5s --size 16MiB --no-health --no-history -q";

/// A filesystem on a loop device over a file: the reads of all three reach the same blocks.
#[test]
fn layers_read_the_same_blocks_of_file_loop_device_and_image() {
    needs!("losetup", "mkfs.ext4");
    let (here, out) = (place(), place());
    let image = here.path().join("disk.img");
    let device = Loop::sparse(&image, 3 << 30, &[]);
    let made = Command::new("mkfs.ext4")
        .arg("-qF")
        .arg(&device.node)
        .status();
    assert!(made.unwrap().success());
    let point = here.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    let mount = Mount::new("ext4", device.node.to_str().unwrap(), &point, "rw");
    let saved = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, html) = (saved("a.json"), saved("a.csv"), saved("a.html"));
    let outputs = ["-o", &json, "-o", &csv, "-o", &html];
    let arguments = [OsStr::new("check"), point.as_os_str()].into_iter();
    let flags = argv(SHORT).into_iter().chain(outputs).map(OsStr::new);
    let ran = run(arguments.chain(flags));
    ran.exits(0);
    assert!(names(&point).iter().all(|name| name == "lost+found"));
    drop(mount);
    let record = saved_record(&json);
    assert_eq!(record.plan.scratch_bytes(), Some(16 << 20));
    let fill = record.plan.scratch.as_ref().unwrap().fill;
    assert!(matches!(fill, Fill::Within { bytes_min, .. } if bytes_min == 64 << 20));
    let layers = record.layers().unwrap();
    let matches: Vec<BlockMatch> = layers.places.iter().map(|place| place.blocks).collect();
    assert_eq!(
        matches,
        [BlockMatch::Top, BlockMatch::Same, BlockMatch::Same]
    );
    for (index, place) in layers.places.iter().enumerate() {
        let own = record
            .measurements
            .iter()
            .filter(|m| m.data.target == index);
        let spans = own.map(|m| (m.data.span_start_bytes, m.data.span_bytes));
        let spans: Vec<(u64, u64)> = spans.collect();
        assert_eq!(spans, [(place.start_bytes, place.length_bytes)]);
    }
    let meanings: Vec<CostMeaning> = layers.costs.iter().map(|cost| cost.meaning).collect();
    assert_eq!(meanings.len(), 3);
    assert_eq!(meanings[2], CostMeaning::Lowest);
    for text in [
        "file on ext4",
        device.name(),
        "disk.img on",
        "own time",
        "blocks",
    ] {
        ran.shows(text);
    }
    let table = std::fs::read_to_string(&csv).unwrap();
    assert!(
        table.contains(",random-read-d1,read,layer_own_time,"),
        "{table}"
    );
    assert!(
        std::fs::read_to_string(&html)
            .unwrap()
            .contains("disk.img on")
    );
    let again = run(["show", "-v", &json]);
    again.exits(0).shows("rate change");
}

#[test]
fn layers_are_only_read_and_need_two() {
    let refused = run(["check", ".", "--layers", "--overwrite"]);
    refused.exits(2).tells("only reads");
    let memory = Path::new("/dev/shm");
    let refused = diskproof!("check {} --layers", memory.display());
    refused.exits(2).tells("one layer");
}
