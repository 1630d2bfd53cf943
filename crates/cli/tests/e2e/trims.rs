//! Trims as a user meets them: refused until the device is released, then carried out in full and
//! shown by every command.

use crate::program::{Ran, content_hash, counts, diskproof, needs, run};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Layout;
use diskproof_simdisk::testbed::{Loop, place};
use std::io::Write as _;
use std::path::Path;

const MIB: u64 = 1 << 20;

fn words<'a>(node: &'a Path, rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", node.to_str().unwrap()], rest].concat()
}

/// The kernel name of a loop device, which has no serial.
fn name(node: &Path) -> &str {
    node.file_name().unwrap().to_str().unwrap()
}

/// A disk without a signature: data in the middle, zeros at both ends.
fn image(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    file.set_len(16 * MIB).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(2 * MIB)).unwrap();
    file.write_all(&vec![7; 12 * MIB as usize]).unwrap();
}

fn is_empty(path: &Path) -> bool {
    std::fs::read(path).unwrap().iter().all(|byte| *byte == 0)
}

fn assert_done(ran: &Ran) {
    ran.exits(0);
}

#[test]
fn device_is_trimmed_only_where_it_is_released() {
    needs!("losetup");
    let place = place();
    let file = place.path().join("image");
    image(&file);
    let device = Loop::over(&file, &["--direct-io=on"]);
    let node = device.node.as_path();
    let before = content_hash(node);
    for rw in ["trim", "randtrim", "trimwrite", "randtrimwrite"] {
        let ran = run(words(node, &["--rw", rw, "--bs", "64k"]));
        ran.exits(3).tells("--destroy");
        let tool = run([
            "as",
            "fio",
            "--name=t",
            &format!("--rw={rw}"),
            &format!("--filename={}", node.display()),
        ]);
        assert_ne!(tool.code, Some(0), "{}", tool.err);
    }
    let release = ["--rw", "randtrim", "--bs", "64k", "--destroy", name(node)];
    let planned = run(words(node, &[&release[..], &["--dry-run"]].concat()));
    assert_done(&planned);
    let text = planned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("trims at most 16 MiB"), "{text}");
    assert_eq!(content_hash(node), before);

    let expected = ["--expect", "randtrim.trim.iops>=1", "--json"];
    let ran = run(words(node, &[&release[..], &expected].concat()));
    assert_done(&ran);
    let record = ran.record();
    let m = &record.measurements[0];
    let count = 16 * MIB / (64 << 10);
    assert_eq!(counts(m, OpKind::Trim), (count, 16 * MIB));
    // The figures of the device cover the steady part of the measured time.
    let discarded = m.data.device.trim_bytes.unwrap();
    assert!((1..=16 * MIB).contains(&discarded), "{discarded}");
    assert!(!ran.findings().contains(&"ineffective-trims".to_owned()));
    assert_eq!(m.data.ops.len(), 1);
    assert!(
        m.figures.reproduce.contains("--rw=randtrim"),
        "{}",
        m.figures.reproduce
    );
    assert!(is_empty(node));
}

#[test]
fn copies_trim_what_they_wrote_through_the_page_cache() {
    needs!("losetup");
    let place = place();
    let file = place.path().join("image");
    image(&file);
    let device = Loop::over(&file, &[]);
    let node = device.node.as_path();
    for rw in ["trimwrite", "randtrimwrite"] {
        let ran = run([
            "as",
            "--destroy",
            name(node),
            "--wipe-unknown",
            "fio",
            "--name=t",
            "--ioengine=psync",
            "--bs=64k",
            "--size=4m",
            "--numjobs=2",
            &format!("--rw={rw}"),
            &format!("--filename={}", node.display()),
        ]);
        // With a description of its own, the second copy failed (EBUSY).
        ran.exits(0);
        assert_eq!(ran.err.matches("EBUSY").count(), 0, "{}", ran.err);
    }
}

#[test]
fn fio_trims_in_its_own_words() {
    needs!("losetup");
    let place = place();
    let file = place.path().join("image");
    image(&file);
    let device = Loop::over(&file, &["--direct-io=on"]);
    let node = device.node.as_path();
    let fio = |format: &str, rw: &str| {
        let ran = run([
            "as",
            "--destroy",
            name(node),
            "fio",
            "--name=t",
            "--ioengine=libaio",
            "--iodepth=8",
            "--bs=64k",
            &format!("--rw={rw}"),
            &format!("--output-format={format}"),
            &format!("--filename={}", node.display()),
        ]);
        assert_done(&ran);
        ran
    };
    let ran = fio("normal", "trim");
    ran.tells("the engine has no trims");
    for part in ["\n  trim: IOPS=", "total=0,0,256,0", "\n   TRIM: bw="] {
        ran.shows(part);
    }
    let ran = fio("json", "randtrimwrite");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let job = &json["jobs"][0];
    for direction in ["trim", "write"] {
        assert_eq!(job[direction]["io_bytes"], 16 * MIB, "{direction}");
        assert_eq!(job[direction]["total_ios"], 256, "{direction}");
    }
    assert!(!is_empty(node));
}

#[test]
fn trims_of_a_directory_stay_in_the_scratch_file() {
    let place = place();
    let path = place.path().to_str().unwrap();
    let plan = place.path().join("plan.toml");
    let text = "[[workload]]\nname = \"holes\"\nrw = \"trim\"\nbs = \"64k\"\n\n[[workload]]\n\
                name = \"reads\"\nrw = \"read\"\nbs = \"64k\"\nbytes = \"16M\"\n";
    std::fs::write(&plan, text).unwrap();
    let ran = diskproof!("run {} {path} --size 16M --json", plan.display());
    assert_done(&ran);
    let record = ran.record();
    let trims = &record.measurements[0];
    assert_eq!(counts(trims, OpKind::Trim).1, 16 * MIB);
    // The file was filled before it was trimmed.
    assert_eq!(trims.data.workload.layout, Layout::Needed);
    assert_eq!(trims.data.span_bytes, 16 * MIB);
    // The file was filled again before it was read.
    let reads = &record.measurements[1];
    assert_eq!(
        (reads.data.zero_blocks.zero, reads.data.unwritten_bytes),
        (0, Some(0))
    );
    assert!(!ran.findings().contains(&"unwritten-blocks".to_owned()));
}
