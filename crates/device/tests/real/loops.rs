//! Loop devices over a part of something: the whole of it must be free.

use crate::support::{MIB, admitted, checksum, consent, run};
use diskproof_simdisk::testbed::{Loop, can_run, place};
use std::path::Path;

/// Refused for this reason, and the file stays what it is.
fn assert_refused(device: &Loop, file: &Path, part: &str) {
    let before = checksum(file);
    let reasons = admitted(&device.node, &consent(device.name())).unwrap_err();
    assert!(
        reasons.iter().any(|reason| reason.contains(part)),
        "{part}: {reasons:#?}"
    );
    assert_eq!(checksum(file), before);
}

fn sparse(path: &Path, size_bytes: u64) {
    std::fs::File::create(path)
        .unwrap()
        .set_len(size_bytes)
        .unwrap();
}

#[test]
fn gate_refuses_a_loop_device_inside_a_filesystem_image() {
    let name = "gate_refuses_a_loop_device_inside_a_filesystem_image";
    if !can_run(name, &["losetup", "mkfs.ext4", "sfdisk"]) {
        return;
    }
    let place = place();
    let image = place.path().join("image");
    sparse(&image, 96 * MIB);
    run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
    for flags in [
        &["--offset", "33554432"][..],
        &["--offset", "33554432", "--sizelimit", "8388608"],
        &["--offset", "4096"],
    ] {
        let device = Loop::over(&image, flags);
        assert_refused(
            &device,
            &image,
            "image, which lies behind it, holds a signature: ext2/3/4",
        );
    }
    let divided = place.path().join("divided");
    sparse(&divided, 96 * MIB);
    let table = format!("echo ,32M | sfdisk --quiet {}", divided.display());
    run("sh", &["-c", &table]);
    let device = Loop::over(&divided, &["--offset", "67108864"]);
    assert_refused(&device, &divided, "holds a signature: MBR partition table");
}

#[test]
fn gate_refuses_a_loop_device_over_a_loop_device_inside_an_image() {
    let name = "gate_refuses_a_loop_device_over_a_loop_device_inside_an_image";
    if !can_run(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let place = place();
    let image = place.path().join("image");
    sparse(&image, 96 * MIB);
    run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
    let lower = Loop::over(&image, &["--offset", "33554432"]);
    let upper = Loop::over(&lower.node, &["--offset", "4194304"]);
    assert_refused(&upper, &image, "holds a signature: ext2/3/4");
    // And a mark in the lower loop device only.
    let empty = place.path().join("empty");
    sparse(&empty, 64 * MIB);
    let lower = Loop::over(&empty, &["--offset", "8388608"]);
    run("mkswap", &[lower.node.to_str().unwrap()]);
    let upper = Loop::over(&lower.node, &["--offset", "16777216"]);
    let part = format!(
        "{}, which lies behind it, holds a signature: swap",
        lower.node.display()
    );
    assert_refused(&upper, &empty, &part);
}

/// The disk of a running virtual machine would be destroyed through one of its partitions.
#[test]
fn gate_looks_behind_a_loop_device_over_a_partition_of_a_loop_device() {
    let name = "gate_looks_behind_a_loop_device_over_a_partition_of_a_loop_device";
    if !can_run(name, &["losetup", "sfdisk", "partx"]) {
        return;
    }
    let place = place();
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let image = data.join("image");
    sparse(&image, 64 * MIB);
    let table = format!("echo ,32M | sfdisk --quiet {}", image.display());
    run("sh", &["-c", &table]);
    let lower = Loop::over(&image, &["--partscan"]);
    run("partx", &["--update", lower.node.to_str().unwrap()]);
    let upper = Loop::over(&lower.partition(1), &[]);
    // The partition table around the partition is no reason, as where the partition is named.
    let admission = admitted(&upper.node, &consent(upper.name()));
    assert!(admission.is_ok(), "{admission:?}");
    std::fs::write(data.join("PG_VERSION"), "17\n").unwrap();
    assert_refused(&upper, &image, "is a PostgreSQL data directory");
}

#[test]
fn gate_refuses_a_loop_device_over_a_file_of_a_server_or_with_two_names() {
    let name = "gate_refuses_a_loop_device_over_a_file_of_a_server_or_with_two_names";
    if !can_run(name, &["losetup"]) {
        return;
    }
    let place = place();
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let file = data.join("space");
    sparse(&file, 16 * MIB);
    let device = Loop::over(&file, &["--offset", "4096"]);
    assert!(admitted(&device.node, &consent(device.name())).is_ok());
    std::fs::write(data.join("ibdata1"), "").unwrap();
    assert_refused(&device, &file, "is a data directory of MySQL or MariaDB");
    std::fs::remove_file(data.join("ibdata1")).unwrap();
    std::fs::write(data.join("PG_VERSION"), "17\n").unwrap();
    assert_refused(&device, &file, "is a PostgreSQL data directory");
    std::fs::remove_file(data.join("PG_VERSION")).unwrap();
    std::fs::hard_link(&file, data.join("snapshot")).unwrap();
    assert_refused(&device, &file, "it has 2 names (hard links)");
}

#[test]
fn gate_refuses_a_loop_device_whose_file_another_one_shares() {
    let name = "gate_refuses_a_loop_device_whose_file_another_one_shares";
    if !can_run(name, &["losetup"]) {
        return;
    }
    let place = place();
    let file = place.path().join("image");
    sparse(&file, 32 * MIB);
    let one = Loop::over(&file, &["--sizelimit", "16777216"]);
    let other = Loop::over(&file, &["--offset", "8388608"]);
    let part = format!("losetup --detach {}", other.node.display());
    assert_refused(&one, &file, &part);
}

#[test]
fn gate_admits_a_plain_loop_device_over_an_empty_file() {
    let name = "gate_admits_a_plain_loop_device_over_an_empty_file";
    if !can_run(name, &["losetup"]) {
        return;
    }
    let place = place();
    let file = place.path().join("image");
    sparse(&file, 32 * MIB);
    let lower = Loop::over(&file, &[]);
    assert!(admitted(&lower.node, &consent(lower.name())).is_ok());
    let upper = Loop::over(&lower.node, &["--offset", "4194304"]);
    let reasons = admitted(&upper.node, &consent(upper.name()));
    assert!(reasons.is_ok(), "{reasons:?}");
}
