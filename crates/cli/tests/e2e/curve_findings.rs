//! `curve` reports the fault of a simulated disk, and no other, from the device to the finding. How
//! often the rules are right is measured on thousands of computed disks in `analysis`.

use crate::program::{Ran, sim_disk, undisturbed};
use diskproof_model::finding::Finding;
use diskproof_simdisk::testbed::{TempDir, can_run, place};
use diskproof_simdisk::{Direct, LoopDevice, SimDisk};
use std::ffi::OsStr;

const GIB: u64 = 1 << 30;
/// A disk of twelve zones.
const ROTATING: &str =
    "rpm=7200,seek=1ms/9ms/20ms,rate=90MB/45MB,zones=12,queue=32,buffer=8MiB,overhead=130us";
/// What the rules on the surface may find. Others (who else used the disk, how precise it was) are
/// the machine's business.
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
/// A machine busy with other tests answers late; one undisturbed survey of several is enough,
/// because a rule that is wrong is wrong every time.
const ATTEMPTS: usize = 4;

/// A simulated disk as a block device; fields are dropped in this order.
struct Simulated {
    device: LoopDevice,
    _disk: SimDisk,
    _place: TempDir,
}

fn simulated(model: &str) -> Simulated {
    let place = place();
    let disk = sim_disk(&place, model, 4 * GIB);
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    Simulated {
        device,
        _disk: disk,
        _place: place,
    }
}

/// A finding by its code, and what its claim says.
type Expected = (&'static str, fn(&str) -> bool);

/// Surveys the disk until exactly the expected findings are made on its surface.
fn found(test: &str, model: &str, flags: &[&str], expected: &[Expected]) {
    if !can_run(test, &["fusermount3", "losetup"]) {
        return;
    }
    let disk = simulated(model);
    let words = ["curve", "--json", "--points", "36", "--reads", "100"].map(OsStr::new);
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let words = words
            .into_iter()
            .chain(flags.iter().map(OsStr::new))
            .chain([disk.device.path().as_os_str()]);
        let ran = Ran::of(undisturbed(words));
        // A data sheet's figure may be missed, or undecided.
        assert!(matches!(ran.code, Some(0 | 1 | 5)), "{}", ran.err);
        let mut findings = ran.record().findings;
        findings.retain(|f| ON_SURFACES.contains(&f.code.as_str()));
        let says = |(finding, (code, says)): (&Finding, &Expected)| {
            finding.code == *code && says(&finding.claim)
        };
        if findings.len() == expected.len() && findings.iter().zip(expected).all(says) {
            return;
        }
        seen.push(findings.into_iter().map(|f| f.claim).collect::<Vec<_>>());
    }
    panic!(
        "{:?} is not what was found: {seen:#?}",
        expected.iter().map(|(code, _)| code).collect::<Vec<_>>()
    );
}

#[test]
fn a_healthy_disk_that_keeps_its_promise_has_none() {
    found(
        "a_healthy_disk_that_keeps_its_promise_has_none",
        ROTATING,
        &["--spec", "rpm=7200,seek=9ms,rate=90MB/s"],
        &[],
    );
}

#[test]
fn a_limit_is_a_flat_top_and_nothing_else() {
    let model = format!("{ROTATING},link=70MB");
    // Five of twelve zones are faster; they hold half of the surface.
    let says = |claim: &str| claim.contains("flat at 70.") || claim.contains("flat at 69.");
    found(
        "a_limit_is_a_flat_top_and_nothing_else",
        &model,
        &["--spec", "rpm=7200,seek=9ms,rate=90MB/s"],
        &[("flat-top", says)],
    );
}

#[test]
fn unevenness_is_ragged() {
    found(
        "unevenness_is_ragged",
        &format!("{ROTATING},ragged=16MiB+6ms"),
        &[],
        &[("ragged", |_| true)],
    );
}

#[test]
fn slow_sectors_are_a_slow_zone() {
    let says = |claim: &str| claim.starts_with("A stretch of the disk is slow: from ");
    found(
        "slow_sectors_are_a_slow_zone",
        &format!("{ROTATING},slow=2GB-2500MB+10ms"),
        &[],
        &[("slow-zone", says)],
    );
}

#[test]
fn an_ssd_is_not_zoned() {
    let model = "read-latency=90us,channels=16,iops=90000,read-bandwidth=300MB";
    found(
        "an_ssd_is_not_zoned",
        model,
        &[],
        &[("not-zoned", |_| true)],
    );
}

#[test]
fn disk_slower_than_its_specification_is_reported() {
    let flags = ["--spec", "rpm=10000,seek=4ms,rate=140MB/s"];
    let says =
        |claim: &str| claim.contains("clearly slower") && claim.contains("promises 140 MB/s");
    found(
        "disk_slower_than_its_specification_is_reported",
        ROTATING,
        &flags,
        &[("access-time-off", says)],
    );
}
