//! What `curve` finds on simulated disks whose truth is known: the fault that each has, and no other. How often the rules are right is told by the
//! thousands of computed disks in `analysis`; here the way from a device to the finding is whole.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod program;

use diskproof_model::finding::Finding;
use diskproof_simdisk::testbed::{TempDir, can_run, place};
use diskproof_simdisk::{Direct, LoopDevice, SimDisk, spec};
use program::run;
use std::ffi::OsStr;

const GIB: u64 = 1 << 30;
/// A disk of twelve zones.
const ROTATING: &str = "rpm=7200,seek=1ms/9ms/20ms,rate=90MB/45MB,zones=12,queue=32,buffer=8MiB,overhead=130us";
/// What the rules on the surface may find. Others (who else used the disk, how precise it was) are the machine's business.
const ON_SURFACES: [&str; 9] = [
    "flat-top",
    "ragged",
    "slow-zone",
    "not-zoned",
    "cache-answered",
    "access-time-off",
    "unreadable-blocks",
    "slow-blocks",
    "link-degraded",
];
/// A machine busy with other tests answers late; one undisturbed survey of several is enough, because a rule that is wrong is wrong every time.
const ATTEMPTS: usize = 4;

/// A simulated disk as a block device; fields are dropped in this order.
struct Simulated {
    device: LoopDevice,
    _disk: SimDisk,
    _place: TempDir,
}

fn simulated(model: &str) -> Simulated {
    let place = place();
    let disk = SimDisk::serve(spec::parse(model).unwrap(), 4 * GIB, &place.path().join("disk")).unwrap();
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    Simulated { device, _disk: disk, _place: place }
}

/// Surveys the disk until exactly these findings are made on its surface; the findings.
fn found(test: &str, model: &str, flags: &[&str], expected: &[&str]) -> Option<Vec<Finding>> {
    if !can_run(test, &["fusermount3", "losetup"]) {
        return None;
    }
    let disk = simulated(model);
    let words = ["curve", "--json", "--points", "36", "--reads", "100"].map(OsStr::new);
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let ran = run(words.into_iter().chain(flags.iter().map(OsStr::new)).chain([disk.device.path().as_os_str()]));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let mut findings = ran.record().findings;
        findings.retain(|f| ON_SURFACES.contains(&f.code.as_str()));
        if findings.iter().map(|f| f.code.as_str()).eq(expected.iter().copied()) {
            return Some(findings);
        }
        seen.push(findings.into_iter().map(|f| f.claim).collect::<Vec<_>>());
    }
    panic!("{expected:?} is not what was found: {seen:#?}");
}

#[test]
fn a_healthy_disk_that_keeps_its_promise_has_none() {
    found("a_healthy_disk_that_keeps_its_promise_has_none", ROTATING, &["--spec", "rpm=7200,seek=9ms,rate=90MB/s"], &[]);
}

#[test]
fn a_limit_is_a_flat_top_and_nothing_else() {
    let model = format!("{ROTATING},link=70MB");
    let Some(findings) = found("a_limit_is_a_flat_top", &model, &["--spec", "rpm=7200,seek=9ms,rate=90MB/s"], &["flat-top"]) else {
        return;
    };
    // Five of twelve zones are faster; they hold half of the surface.
    assert!(findings[0].claim.contains("flat at 70.") || findings[0].claim.contains("flat at 69."), "{}", findings[0].claim);
}

#[test]
fn unevenness_is_ragged() {
    found("unevenness_is_ragged", &format!("{ROTATING},ragged=16MiB+6ms"), &[], &["ragged"]);
}

#[test]
fn slow_sectors_are_a_slow_zone() {
    let Some(findings) = found("slow_sectors_are_a_slow_zone", &format!("{ROTATING},slow=2GB-2500MB+10ms"), &[], &["slow-zone"]) else {
        return;
    };
    assert!(findings[0].claim.starts_with("A stretch of the disk is slow: from "), "{}", findings[0].claim);
}

#[test]
fn an_ssd_is_not_zoned() {
    found("an_ssd_is_not_zoned", "read-latency=90us,channels=16,iops=90000,read-bandwidth=300MB", &[], &["not-zoned"]);
}

#[test]
fn a_slower_disk_than_promised_is_told() {
    let flags = ["--spec", "rpm=10000,seek=4ms,rate=140MB/s"];
    let Some(findings) = found("a_slower_disk_than_promised_is_told", ROTATING, &flags, &["access-time-off"]) else { return };
    assert!(findings[0].claim.contains("clearly slower") && findings[0].claim.contains("promises 140 MB/s"), "{}", findings[0].claim);
}
