//! Disks that are silent for a while: what stood still is reported, and what only slept is not.

use crate::program::hanging_disk::{HangingDisk, Running};
use crate::program::{argv, needs, sim_disk, undisturbed};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::place;
use diskproof_simdisk::{Direct, LoopDevice};
use std::path::Path;
use std::time::Duration;

const GIB: u64 = 1 << 30;

fn severity(record: &Record, code: &str) -> Option<Severity> {
    let found = record.findings.iter().find(|finding| finding.code == code);
    found.map(|finding| finding.severity)
}

/// The disk sleeps after a second, and needs longer to wake up than the run is to take.
#[test]
fn quiet_disk_that_wakes_up_for_the_first_request_is_measured_whole() {
    needs!("fusermount3", "losetup");
    for verb in [
        "run DEVICE --rw randread --depth 4 --time 2s",
        "ping DEVICE -c 8 -i 100ms",
        "curve DEVICE --points 2 --no-access",
    ] {
        let place = place();
        let disk = sim_disk(&place, "read-latency=200us,sleep=1s+8s", GIB);
        let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let saved = place.path().join("saved.json");
        let path = device.path().to_str().unwrap();
        let words: Vec<String> = argv(verb)
            .iter()
            .map(|word| word.replace("DEVICE", path))
            .collect();
        let words = words.iter().map(Path::new).chain([Path::new("-o"), &saved]);
        let output = undisturbed(words).output().unwrap();
        let record = std::fs::read(&saved).unwrap();
        let record: Record = serde_json::from_slice(&record).unwrap();
        assert_eq!(output.status.code(), Some(0), "{verb}: {output:?}");
        assert!(!record.partial, "{verb}: {:?}", record.ended_early);
        // A survey has no workload that could have it.
        let first_ns = match record.measurements.first() {
            Some(row) => row.data.first_answer_ns,
            None => record.first_answers[0].length_ns,
        };
        assert!(first_ns >= 5_000_000_000, "{verb}: {first_ns}");
        assert_eq!(
            severity(&record, "slow-after-idle"),
            Some(Severity::Note),
            "{verb}"
        );
        assert_eq!(severity(&record, "stalled"), None, "{verb}");
    }
}

#[test]
fn quiet_disk_in_the_warm_up_is_stalled() {
    needs!("fusermount3");
    let patient = HangingDisk::file();
    let path = patient.path().display();
    let words = format!("run {path} --rw randread --depth 4 --warmup 8s --time 2s");
    let mut running = Running::start(patient.place.path(), &argv(&words), "10m");
    patient.hang_amid();
    std::thread::sleep(Duration::from_secs(3));
    patient.disk.answer_again();
    let (_, record) = running.results();
    let silence_ns = record.measurements[0].data.silence_around_ns;
    assert!(silence_ns >= 2_500_000_000, "{silence_ns}");
    assert_eq!(severity(&record, "stalled"), Some(Severity::Warning));
    assert_eq!(
        running.child.wait().unwrap().code(),
        Some(0),
        "{}",
        running.stderr()
    );
}
