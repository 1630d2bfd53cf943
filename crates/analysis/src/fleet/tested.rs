//! Lists the disks that many hosts tested for acceptance: the verdict on each, and those that are
//! slower than the others of their model.

use super::groups::are_sizes_alike;
use super::spread::{Sample, judge_group};
use super::verdicts::{RowOutcome, test_groups};
use crate::accept::words::{accept_headline, capacity_text, reason_against};
use diskproof_model::accept::{AcceptVerdict, Procedure};
use diskproof_model::fleet::{FleetOutcome, TestedDisk};
use diskproof_model::record::Record;
use diskproof_model::units::{counted, format_percent};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A sentence names at most this many disks; the table has all.
const NAMED_MAX: usize = 3;

/// The tests of all records.
#[derive(Debug, Default)]
pub(super) struct TestedDisks {
    disks: Vec<TestedDisk>,
    /// By run, what tells its disk and its test from others.
    evidence: BTreeMap<String, TestEvidence>,
}

/// The facts by which the tests of one disk are found.
#[derive(Debug)]
struct TestEvidence {
    /// The salt of the test, which goes on with the salt that it began with.
    salt: u64,
    /// `None` where the record has a time that cannot be read.
    started: Option<Timestamp>,
    is_probe: bool,
    /// True if the serial number is surely that of the disk. A card reader, and the bridge of a USB
    /// case, have one for whatever is in them.
    has_own_serial: bool,
}

impl TestedDisks {
    /// Adds the test of a record. Returns `true` if the record has one.
    pub(super) fn add(&mut self, record: &Record) -> bool {
        let Some(accept) = record.accept() else {
            return false;
        };
        let (mut target, mut model, mut serials) = (String::new(), String::new(), Vec::new());
        if let Some(identity) = record.targets.get(accept.data.target) {
            target.clone_from(&identity.path);
            for disk in identity.disks() {
                if model.is_empty() {
                    model = disk.model.clone().unwrap_or_default();
                }
                serials.extend(disk.serial.clone());
            }
        }
        let figures = &accept.figures;
        let evidence = TestEvidence {
            salt: accept.data.plan.salt,
            started: record.started.parse().ok(),
            is_probe: matches!(accept.data.plan.procedure, Procedure::Probe { .. }),
            has_own_serial: has_own_serials(record, accept.data.target),
        };
        self.evidence.insert(record.run_id.clone(), evidence);
        self.disks.push(TestedDisk {
            name: format!("{} {target}", record.host.name),
            host: record.host.name.clone(),
            rank: record.host.rank.map(|rank| rank.rank),
            target,
            model,
            serials,
            run_id: record.run_id.clone(),
            started: record.started.clone(),
            claimed_bytes: accept.data.plan.size_bytes,
            verdict: figures.verdict,
            answer: accept_headline(accept),
            reason: reason_against(accept),
            real_bytes: figures.real_bytes,
            write_rate: figures.write_rate.map(|rate| rate.average),
            read_rate: figures.read_rate.map(|rate| rate.average),
            slower: None,
            undecided_before: Vec::new(),
        });
        true
    }

    /// The disks with their judgement, in the order of [`urgency`], then by name. Disks that differ
    /// from the others of their model by less than the margin are alike.
    pub(super) fn judge(mut self, margin: f64) -> Vec<TestedDisk> {
        self.drop_interrupted_tests();
        for (index, speed) in self.slower_disks(margin) {
            self.disks[index].slower = Some(speed);
        }
        self.disks.sort_by(|one, other| {
            let order = urgency(one).cmp(&urgency(other));
            order.then_with(|| one.name.cmp(&other.name))
        });
        self.disks
    }

    /// Drops the records of tests that were stopped and went on, and of those that decided nothing
    /// and were repeated. Every decision stays.
    fn drop_interrupted_tests(&mut self) {
        self.disks.sort_by_key(|disk| {
            let has_decided = disk.verdict != AcceptVerdict::Undecided;
            std::cmp::Reverse((has_decided, disk.started.clone()))
        });
        let mut kept: Vec<TestedDisk> = Vec::new();
        for disk in std::mem::take(&mut self.disks) {
            if disk.verdict != AcceptVerdict::Undecided {
                kept.push(disk);
                continue;
            }
            if kept.iter().any(|other| self.are_of_one_test(other, &disk)) {
                continue;
            }
            match self.repetition_of(&disk, &kept) {
                Some(index) => kept[index].undecided_before.push(disk.run_id),
                None => kept.push(disk),
            }
        }
        self.disks = kept;
    }

    /// The index of the later test that decided what this one left undecided; `None` without one. A
    /// probe decides nothing for a test of the whole disk.
    fn repetition_of(&self, undecided: &TestedDisk, decided: &[TestedDisk]) -> Option<usize> {
        let evidence = self.evidence.get(&undecided.run_id)?;
        decided.iter().position(|later| {
            let Some(later_evidence) = self.evidence.get(&later.run_id) else {
                return false;
            };
            let is_enough = match later.verdict {
                AcceptVerdict::Accept | AcceptVerdict::Reject => true,
                AcceptVerdict::NoFraudFound => evidence.is_probe,
                AcceptVerdict::Undecided => false,
            };
            is_enough
                && is_later(later_evidence.started, evidence.started)
                && later_evidence.has_own_serial
                && evidence.has_own_serial
                && is_same_disk(later, undecided)
        })
    }

    /// Returns `true` if both are records of one test, which goes on with the salt that it began
    /// with. Serial numbers prove nothing: a card reader has one for all of its cards.
    fn are_of_one_test(&self, one: &TestedDisk, other: &TestedDisk) -> bool {
        one.host == other.host && self.salt(one) == self.salt(other)
    }

    /// The salt of a disk's test.
    fn salt(&self, disk: &TestedDisk) -> Option<u64> {
        Some(self.evidence.get(&disk.run_id)?.salt)
    }

    /// The disks that are slower than the others of their model by the test of all fleets, each
    /// with the share of the usual rate that it reaches in its slower direction.
    fn slower_disks(&self, margin: f64) -> BTreeMap<usize, f64> {
        let mut judged = Vec::new();
        for model in self.disks_by_model() {
            let columns = [write_rate, read_rate].map(|rate_of| self.samples(&model, rate_of));
            judged.push(judge_group(&columns, None));
        }
        let mut slower = BTreeMap::new();
        for test in test_groups(&judged, margin) {
            let speed = test.distance.log_ratio.exp();
            if test.outcome == RowOutcome::Differs && speed < 1.0 {
                let slowest = slower.entry(test.distance.row).or_insert(speed);
                *slowest = speed.min(*slowest);
            }
        }
        slower
    }

    /// The disks of each model, by index. A disk that holds less than it claims is of another model
    /// than it says, and a test that decided nothing has rates that may not be the disk's: they are
    /// not judged, and nothing is judged by them. A disk without a model has no others.
    fn disks_by_model(&self) -> Vec<Vec<usize>> {
        let mut models: Vec<Vec<usize>> = Vec::new();
        for (index, disk) in self.disks.iter().enumerate() {
            match disk.verdict {
                AcceptVerdict::Accept | AcceptVerdict::NoFraudFound => {}
                AcceptVerdict::Reject | AcceptVerdict::Undecided => continue,
            }
            if disk.model.is_empty() {
                continue;
            }
            let disks_of_model = models
                .iter_mut()
                .find(|model| is_same_model(&self.disks[model[0]], disk));
            match disks_of_model {
                Some(model) => model.push(index),
                None => models.push(vec![index]),
            }
        }
        models
    }

    /// The samples of the disks of a model, of which each is a row. A disk without a rate has none.
    fn samples(&self, model: &[usize], rate_of: fn(&TestedDisk) -> Option<f64>) -> Vec<Sample> {
        let mut samples = Vec::new();
        for index in model {
            if let Some(rate) = rate_of(&self.disks[*index])
                && rate > 0.0
            {
                samples.push(Sample {
                    row: *index,
                    log_speed: rate.ln(),
                    error: 0.0,
                });
            }
        }
        samples
    }
}

/// Returns `true` if the first time is surely after the second.
fn is_later(time: Option<Timestamp>, other: Option<Timestamp>) -> bool {
    match (time, other) {
        (Some(time), Some(other)) => time > other,
        (Some(_), None) | (None, Some(_)) | (None, None) => false,
    }
}

/// Returns `true` if both report the same model, size and serial numbers. A disk without a serial
/// number may be any.
fn is_same_disk(one: &TestedDisk, other: &TestedDisk) -> bool {
    one.model == other.model
        && one.claimed_bytes == other.claimed_bytes
        && !one.serials.is_empty()
        && one.serials == other.serials
}

/// Returns `true` if each disk of a target has a serial number of its own: the kernel has it by
/// NVMe or from a memory card itself, or the disk reports the same one by a protocol of disks
/// (SMART). That of SCSI does not tell a disk from a reader of cards.
fn has_own_serials(record: &Record, target: usize) -> bool {
    let Some(identity) = record.targets.get(target) else {
        return false;
    };
    identity.disks().all(|disk| {
        let is_reported = record.health.iter().any(|health| {
            let protocol = health.protocol.as_deref();
            health.disk == disk.name
                && matches!(protocol, Some("ATA" | "NVMe"))
                && health.serial.is_some()
                && health.serial == disk.serial
        });
        is_reported || disk.name.starts_with("nvme") || disk.name.starts_with("mmcblk")
    })
}

fn write_rate(disk: &TestedDisk) -> Option<f64> {
    disk.write_rate
}

fn read_rate(disk: &TestedDisk) -> Option<f64> {
    disk.read_rate
}

/// Returns `true` if both disks claim to be of the same model and size.
fn is_same_model(one: &TestedDisk, other: &TestedDisk) -> bool {
    one.model == other.model && are_sizes_alike(one.claimed_bytes, other.claimed_bytes)
}

/// The place of a disk in the table: a disk that a reader has to act on comes first.
fn urgency(disk: &TestedDisk) -> u8 {
    match disk.verdict {
        AcceptVerdict::Reject => 0,
        AcceptVerdict::Undecided => 1,
        AcceptVerdict::NoFraudFound | AcceptVerdict::Accept if disk.slower.is_some() => 2,
        AcceptVerdict::NoFraudFound => 3,
        AcceptVerdict::Accept => 4,
    }
}

/// The outcome of all tests together; `None` without a test. A bad disk decides, an undecided one
/// comes next.
pub(super) fn outcome_of_tests(disks: &[TestedDisk]) -> Option<FleetOutcome> {
    let mut outcome = None;
    for disk in disks {
        let is_bad = disk.verdict == AcceptVerdict::Reject || disk.slower.is_some();
        outcome = if is_bad {
            return Some(FleetOutcome::Differs);
        } else if disk.verdict == AcceptVerdict::Undecided {
            Some(FleetOutcome::Undecided)
        } else {
            outcome.or(Some(FleetOutcome::Alike))
        };
    }
    outcome
}

/// The clause on the tests, such as `24 disks tested: 22 accepted; 1 rejected: db7 /dev/sdb holds
/// 123 GB of 4 TB; …`; `None` without a test.
pub(super) fn tests_clause(disks: &[TestedDisk]) -> Option<String> {
    if disks.is_empty() {
        return None;
    }
    let mut clauses = Vec::new();
    for (verdict, participle) in [
        (AcceptVerdict::Accept, "accepted"),
        (AcceptVerdict::NoFraudFound, "without a sign of fraud"),
        (AcceptVerdict::Reject, "rejected"),
        (AcceptVerdict::Undecided, "undecided"),
    ] {
        clauses.extend(verdict_clause(disks, verdict, participle));
    }
    clauses.extend(slower_clause(disks));
    let left_out: usize = disks.iter().map(|disk| disk.undecided_before.len()).sum();
    if left_out > 0 {
        let earlier = counted(left_out as u64, "earlier undecided test");
        clauses.push(format!("{earlier} left out"));
    }
    let count = counted(disks.len() as u64, "disk");
    Some(format!("{count} tested: {}", clauses.join("; ")))
}

/// The disks with a verdict, such as `1 rejected: db7 /dev/sdb holds 123 GB of 4 TB`; `None`
/// without such disks. Only those that a reader has to act on are named.
fn verdict_clause(
    disks: &[TestedDisk],
    verdict: AcceptVerdict,
    participle: &str,
) -> Option<String> {
    let mut texts = Vec::new();
    for disk in disks {
        if disk.verdict == verdict {
            texts.push(disk_text(disk));
        }
    }
    let count = texts.len();
    if count == 0 {
        return None;
    }
    Some(match verdict {
        AcceptVerdict::Reject | AcceptVerdict::Undecided => {
            format!("{count} {participle}: {}", first_texts(texts))
        }
        AcceptVerdict::Accept | AcceptVerdict::NoFraudFound => format!("{count} {participle}"),
    })
}

/// The disks that are slower than the others of their model, each with its share; `None` without
/// such disks.
fn slower_clause(disks: &[TestedDisk]) -> Option<String> {
    let mut texts = Vec::new();
    for disk in disks {
        if let Some(speed) = disk.slower {
            let share = format_percent(1.0 - speed);
            texts.push(format!("{} by {share}", disk.name));
        }
    }
    if texts.is_empty() {
        return None;
    }
    Some(format!(
        "{} slower than the others of the model: {}",
        texts.len(),
        first_texts(texts)
    ))
}

/// The name of a disk, with its real capacity where that is less than it claims: `db7 /dev/sdb
/// holds 123 GB of 4 TB`.
fn disk_text(disk: &TestedDisk) -> String {
    match disk.real_bytes {
        Some(real_bytes) => format!(
            "{} holds {} of {}",
            disk.name,
            capacity_text(real_bytes),
            capacity_text(disk.claimed_bytes)
        ),
        None => disk.name.clone(),
    }
}

/// The first of these texts, and the number of the others: `db7 /dev/sdb, db8 /dev/sdb, 4 more`.
fn first_texts(mut texts: Vec<String>) -> String {
    let not_named = texts.len().saturating_sub(NAMED_MAX);
    if not_named > 0 {
        texts.truncate(NAMED_MAX);
        texts.push(format!("{not_named} more"));
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};
    use diskproof_model::accept::AcceptRecord;
    use diskproof_model::health::DiskHealth;
    use diskproof_model::record::TaskResult;

    fn record(number: usize, fault: Fault) -> Record {
        let mut record = accepted(fault);
        record.run_id = format!("{number:032x}");
        record.host.name = format!("db{number:02}");
        record
    }

    fn accept_of(record: &mut Record) -> &mut AcceptRecord {
        let found = record.results.iter_mut().find_map(|result| match result {
            TaskResult::Accept(accept) => Some(&mut **accept),
            _ => None,
        });
        found.expect("the record has a test")
    }

    fn judged(records: &[Record]) -> Vec<TestedDisk> {
        let mut tested = TestedDisks::default();
        for record in records {
            assert!(tested.add(record));
        }
        tested.judge(0.1)
    }

    #[test]
    fn rejected_disk_is_named_first_with_its_real_size() {
        let records = [
            record(1, Fault::None),
            record(2, Fault::Wraps),
            record(3, Fault::None),
        ];
        let disks = judged(&records);
        assert_eq!(disks[0].host, "db02");
        assert_eq!(disks[0].real_bytes, Some(100 << 20));
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Differs));
        let text = tests_clause(&disks).unwrap();
        assert!(text.starts_with("3 disks tested: 2 accepted; 1 rejected: db02 "));
        assert!(text.contains("104.86 MB of 268.44 MB"), "{text}");
    }

    #[test]
    fn disk_that_is_slower_than_its_model_differs() {
        let mut records: Vec<Record> = (1..=6).map(|one| record(one, Fault::None)).collect();
        assert_eq!(
            outcome_of_tests(&judged(&records)),
            Some(FleetOutcome::Alike)
        );
        accept_of(&mut records[3])
            .figures
            .read_rate
            .as_mut()
            .unwrap()
            .average *= 0.7;
        let disks = judged(&records);
        assert_eq!(disks[0].host, "db04");
        assert!((disks[0].slower.unwrap() - 0.7).abs() < 0.01);
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Differs));
        // Two do not tell which one is odd.
        assert_eq!(
            outcome_of_tests(&judged(&records[2..4])),
            Some(FleetOutcome::Alike)
        );
    }

    #[test]
    fn three_disks_that_vary_as_disks_do_are_alike() {
        let mut records: Vec<Record> = (1..=3).map(|one| record(one, Fault::None)).collect();
        for (record, speed) in records.iter_mut().zip([1.0, 1.005, 0.88]) {
            accept_of(record)
                .figures
                .read_rate
                .as_mut()
                .unwrap()
                .average *= speed;
        }
        assert_eq!(
            outcome_of_tests(&judged(&records)),
            Some(FleetOutcome::Alike)
        );
    }

    #[test]
    fn rates_of_a_test_that_decided_nothing_accuse_no_disk() {
        let mut records: Vec<Record> = (1..=6).map(|one| record(one, Fault::None)).collect();
        accept_of(&mut records[3])
            .figures
            .read_rate
            .as_mut()
            .unwrap()
            .average *= 0.7;
        accept_of(&mut records[3]).figures.verdict = AcceptVerdict::Undecided;
        let disks = judged(&records);
        assert!(disks.iter().all(|disk| disk.slower.is_none()));
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Undecided));
    }

    #[test]
    fn rates_of_counterfeits_judge_no_genuine_disk() {
        let mut records = vec![
            record(1, Fault::Wraps),
            record(2, Fault::Wraps),
            record(3, Fault::Wraps),
            record(4, Fault::None),
        ];
        accept_of(&mut records[3])
            .figures
            .read_rate
            .as_mut()
            .unwrap()
            .average *= 0.5;
        let disks = judged(&records);
        assert!(disks.iter().all(|disk| disk.slower.is_none()));
    }

    #[test]
    fn disk_without_a_model_has_no_others() {
        let mut records: Vec<Record> = (1..=6).map(|one| record(one, Fault::None)).collect();
        for record in &mut records {
            for layer in &mut record.targets[0].layers {
                layer.model = None;
            }
        }
        accept_of(&mut records[3])
            .figures
            .read_rate
            .as_mut()
            .unwrap()
            .average *= 0.5;
        let disks = judged(&records);
        assert!(disks.iter().all(|disk| disk.slower.is_none()));
    }

    #[test]
    fn test_that_was_stopped_and_went_on_is_one_disk() {
        let mut stopped = record(1, Fault::None);
        accept_of(&mut stopped).figures.verdict = AcceptVerdict::Undecided;
        let mut done = record(1, Fault::None);
        done.run_id = "done".to_owned();
        done.started = "2099-01-01T00:00:00.000000000Z".to_owned();
        for records in [[stopped.clone(), done.clone()], [done, stopped]] {
            let disks = judged(&records);
            assert_eq!(disks.len(), 1);
            assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Alike));
        }
        // A counterfeit with the serial number of a genuine disk.
        let mut genuine = record(1, Fault::None);
        genuine.run_id = "genuine".to_owned();
        let disks = judged(&[record(1, Fault::Wraps), genuine]);
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Differs));
    }

    /// A test of the disk S1, whose serial number SMART has, too.
    fn test_of_one_disk(run_id: &str, started: &str, verdict: AcceptVerdict) -> Record {
        let mut record = record(1, Fault::None);
        record.run_id = run_id.to_owned();
        record.started = started.to_owned();
        for layer in &mut record.targets[0].layers {
            layer.serial = Some("S1".to_owned());
            record.health.push(DiskHealth {
                disk: layer.name.clone(),
                protocol: Some("ATA".to_owned()),
                serial: Some("S1".to_owned()),
                ..DiskHealth::default()
            });
        }
        let test = accept_of(&mut record);
        test.figures.verdict = verdict;
        // Each test has a salt of its own.
        test.data.plan.salt = run_id.bytes().map(u64::from).sum();
        record
    }

    #[test]
    fn undecided_test_that_was_repeated_is_left_out() {
        let first = test_of_one_disk("first", "2026-11-30T01:00:00Z", AcceptVerdict::Undecided);
        // Before it as a text, an hour after it as a time.
        let later = test_of_one_disk("later", "2026-11-30T00:00:00-02:00", AcceptVerdict::Accept);
        for records in [[first.clone(), later.clone()], [later, first.clone()]] {
            let disks = judged(&records);
            assert_eq!(disks.len(), 1);
            assert_eq!(disks[0].undecided_before, ["first"]);
            assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Alike));
        }
        let rejected = test_of_one_disk("later", "2026-11-30T02:00:00Z", AcceptVerdict::Reject);
        let disks = judged(&[first, rejected]);
        assert_eq!(disks.len(), 1);
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Differs));
    }

    /// Each of these leaves the disk of the first test undecided.
    #[test]
    fn undecided_test_stays_unless_a_later_one_of_its_disk_decided() {
        let first = test_of_one_disk("first", "2026-11-30T01:00:00Z", AcceptVerdict::Undecided);
        let later = test_of_one_disk("later", "2026-11-30T02:00:00Z", AcceptVerdict::Accept);
        let before = test_of_one_disk("before", "2026-11-30T00:00:00Z", AcceptVerdict::Accept);
        let mut probe = later.clone();
        accept_of(&mut probe).figures.verdict = AcceptVerdict::NoFraudFound;
        accept_of(&mut probe).data.plan.procedure = Procedure::Probe { filler_bytes: None };
        let mut other = later.clone();
        let mut larger = later.clone();
        accept_of(&mut larger).data.plan.size_bytes += 4096;
        for layer in &mut other.targets[0].layers {
            layer.serial = Some("S2".to_owned());
        }
        // A reader of cards reports its own number for each of them, by the protocol of SCSI.
        let mut reader = later.clone();
        for health in &mut reader.health {
            health.protocol = Some("SCSI".to_owned());
        }
        let mut silent = later.clone();
        silent.health.clear();
        for decided in [before, probe, other, larger, reader, silent] {
            let disks = judged(&[first.clone(), decided]);
            assert_eq!(disks.len(), 2);
            assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Undecided));
        }
        let mut nvme = [first, later];
        for record in &mut nvme {
            record.health.clear();
            let layers = &mut record.targets[0].layers;
            let disk = layers.iter_mut().find(|layer| layer.below.is_empty());
            disk.unwrap().name = "nvme0n1".to_owned();
        }
        assert_eq!(judged(&nvme).len(), 1);
    }

    /// A rejected test of a disk stays beside an accepted one.
    #[test]
    fn rejected_test_is_never_left_out() {
        let rejected = test_of_one_disk("first", "2026-11-30T01:00:00Z", AcceptVerdict::Reject);
        let later = test_of_one_disk("later", "2026-11-30T02:00:00Z", AcceptVerdict::Accept);
        let disks = judged(&[rejected, later]);
        assert_eq!(disks.len(), 2);
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Differs));
    }

    #[test]
    fn test_that_decided_nothing_leaves_the_site_undecided() {
        let mut records = [record(1, Fault::None), record(2, Fault::None)];
        accept_of(&mut records[1]).figures.verdict = AcceptVerdict::Undecided;
        let disks = judged(&records);
        assert_eq!(outcome_of_tests(&disks), Some(FleetOutcome::Undecided));
        assert_eq!(outcome_of_tests(&[]), None);
        assert!(tests_clause(&disks).unwrap().contains("1 undecided: db02 "));
    }
}
