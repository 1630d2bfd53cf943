//! Decides the verdict of an acceptance test: accept, reject or undecided, with the reason.

use super::fraud::{FoundFraud, Places};
use super::probe::{random_block_count, sample};
use super::rates::{Direction, cliff, rate_by_position, slow_parts};
use super::slow_end::{SlowEnd, slow_end};
use super::stopped::{fraud_without_changes, is_only_changed_while_stopped};
use diskproof_model::accept::{
    AcceptFigures, AcceptMeasurement, AcceptRecord, AcceptVerdict, HealthChange, HealthCounter,
    Procedure, Undecided, chunks,
};
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::CachePolicy;
use diskproof_model::target::TargetIdentity;

/// The counters confirm the reads if the disk read at least this share of them: the rest may have
/// been in flight when the counters were read. Chosen, not measured.
const READ_SHARE_MIN: f64 = 0.98;
/// If the rate of the filler fell by at least this factor, the flash behind a cache may be full.
/// Chosen, not measured (docs/accept.md, "The probe").
const FILLER_FALL_MIN: f64 = 5.0;
/// The share of bad blocks that a probe states may be exceeded with this probability. With p as the
/// probability, a probe of n good blocks excludes a share of more than 1 - p^(1/n).
const MISS_PROBABILITY: f64 = 0.001;

/// A disk that is silent for so long has not just been busy: Linux gives a request up, resets the
/// disk and sends the request again (SD_TIMEOUT in drivers/scsi/sd.h, io_timeout of nvme_core).
const SILENT_NS: u64 = 30_000_000_000;

/// The record of a test. `health_before` is the disks' health report before this run: that of the
/// first run counts, where the test was stopped and went on.
pub(crate) fn accept_record(
    data: &AcceptMeasurement,
    target: Option<&TargetIdentity>,
    health_before: &[DiskHealth],
) -> AcceptRecord {
    AcceptRecord {
        data: data.clone(),
        figures: accept_figures(data, target, health_before),
    }
}

fn accept_figures(
    data: &AcceptMeasurement,
    target: Option<&TargetIdentity>,
    health_before: &[DiskHealth],
) -> AcceptFigures {
    let before = HealthBefore {
        test: &data.health_before,
        run: health_before,
    };
    let health = HealthOverTest {
        changes: health_changes(&before, &data.health),
        is_lost: is_health_lost(&before, &data.health),
    };
    let fraud = found_fraud(data);
    let decision = decision(data, fraud.is_some(), target, &health);
    let probed = match data.plan.procedure {
        Procedure::Whole => ProbedBlocks {
            count: None,
            bad_share_max: None,
        },
        Procedure::Probe { .. } => probed_blocks(data),
    };
    AcceptFigures {
        verdict: decision.verdict,
        undecided: decision.undecided,
        fraud: fraud.map(|found| found.fraud),
        real_bytes: fraud.map(|found| found.real_bytes),
        real_bytes_max: fraud.and_then(real_bytes_max),
        cache_bytes: fraud.and_then(|found| found.cache_bytes),
        bad_share_max: probed.bad_share_max,
        blocks: probed.count,
        write_rate: rate_by_position(data, Direction::Write),
        read_rate: rate_by_position(data, Direction::Read),
        cliff: cliff(&data.write_course),
        slow_zones: slow_parts(data),
        health_changes: health.changes,
    }
}

/// The size that the disk may have at most; `None` where its size is known.
fn real_bytes_max(found: FoundFraud) -> Option<u64> {
    (found.first_bad_bytes > found.real_bytes).then_some(found.first_bad_bytes)
}

/// The fraud of a test; `None` where there is none, and where others may have written all that came
/// back wrong.
fn found_fraud(data: &AcceptMeasurement) -> Option<FoundFraud> {
    if is_only_changed_while_stopped(data) {
        return None;
    }
    let places = Places {
        measured: data,
        pieces: match data.plan.procedure {
            Procedure::Whole => chunks(data.plan.size_bytes, data.chunk_bytes, data.plan.salt),
            // Before the layout of a probe is chosen, no place of it was read.
            Procedure::Probe { .. } if data.states.0.is_empty() => Vec::new(),
            Procedure::Probe { .. } => sample(data),
        },
    };
    if data.lost_over_stop_bytes > 0 {
        fraud_without_changes(&places)
    } else {
        places.fraud()
    }
}

/// A verdict with its reason.
struct Decision {
    verdict: AcceptVerdict,
    /// The reason of [`AcceptVerdict::Undecided`]; `None` of any other verdict.
    undecided: Option<Undecided>,
}

/// The verdict on a test. A fault of the disk decides; only a faultless test can be undecided, or
/// one whose faults others may have written.
fn decision(
    data: &AcceptMeasurement,
    has_fraud: bool,
    target: Option<&TargetIdentity>,
    health: &HealthOverTest,
) -> Decision {
    let is_bad = has_fraud || data.bad_bytes.sum() > 0 || data.failed_writes_bytes > 0;
    let undecided = if is_only_changed_while_stopped(data) {
        Some(Undecided::ChangedWhileStopped)
    } else if is_bad {
        None
    } else {
        reason_undecided(data, target, health)
    };
    let verdict = match (undecided, data.plan.procedure) {
        (Some(_), _) => AcceptVerdict::Undecided,
        (None, _) if is_bad => AcceptVerdict::Reject,
        (None, Procedure::Whole) => AcceptVerdict::Accept,
        (None, Procedure::Probe { .. }) => AcceptVerdict::NoFraudFound,
    };
    Decision { verdict, undecided }
}

/// The blocks of a probe, and the share of bad ones that it may have missed.
struct ProbedBlocks {
    /// `None` of an unfinished probe.
    count: Option<u64>,
    /// `None` of an unfinished probe, and where a block was bad.
    bad_share_max: Option<f64>,
}

fn probed_blocks(data: &AcceptMeasurement) -> ProbedBlocks {
    if !data.finished {
        return ProbedBlocks {
            count: None,
            bad_share_max: None,
        };
    }
    // Only blocks at random places bound the share of bad ones: the others lie at a regular step.
    let random_count = random_block_count(data);
    let mut bad_share_max = None;
    if data.bad_bytes.sum() == 0 && random_count > 0 {
        bad_share_max = Some(1.0 - MISS_PROBABILITY.powf(1.0 / random_count as f64));
    }
    ProbedBlocks {
        count: Some(data.states.0.len() as u64),
        bad_share_max,
    }
}

/// The first reason why a test without a bad block is undecided; `None` where it is decided. The
/// order is that of the doubt: no later reason matters while an earlier one holds.
fn reason_undecided(
    data: &AcceptMeasurement,
    target: Option<&TargetIdentity>,
    health: &HealthOverTest,
) -> Option<Undecided> {
    if !data.finished {
        return Some(Undecided::Unfinished);
    }
    let is_in_memory = match target {
        Some(target) => target.has_buffered_loop(),
        None => false,
    };
    if data.cache.used != CachePolicy::Direct || is_in_memory {
        return Some(Undecided::NotDirect);
    }
    let is_confirmed = match data.counted_reads() {
        Some(reads) => {
            let needed = reads.asked_bytes as f64 * READ_SHARE_MIN;
            reads.asked_bytes > 0 && reads.counted_bytes as f64 >= needed
        }
        None => false,
    };
    if !is_confirmed {
        return Some(Undecided::Unproven);
    }
    let is_probe = matches!(data.plan.procedure, Procedure::Probe { .. });
    if is_probe
        && let Some(fall) = cliff(&data.write_course)
        && fall.before >= FILLER_FALL_MIN * fall.behind
    {
        return Some(Undecided::RateFell);
    }
    let has_lost_sectors = health
        .changes
        .iter()
        .any(|change| counts_sectors(change.counter));
    if has_lost_sectors {
        Some(Undecided::Remapped)
    } else if health.is_lost {
        Some(Undecided::HealthLost)
    } else if is_silent(data) {
        Some(Undecided::Silent)
    } else if !is_probe && slow_end(data) == SlowEnd::Hidden {
        Some(Undecided::Uneven)
    } else {
        None
    }
}

/// Returns `true` if the disk answered nothing for so long that the kernel gives a request up.
fn is_silent(data: &AcceptMeasurement) -> bool {
    match data.stalls.first() {
        Some(longest) => longest.lasted_ns >= SILENT_NS,
        None => false,
    }
}

/// The health reports of the disks after a test, compared with those before it.
struct HealthOverTest {
    changes: Vec<HealthChange>,
    /// A disk reported a count of its sectors before the test, and does not report it after it.
    is_lost: bool,
}

/// The reports of the disks before the test was begun, and before this run of it.
struct HealthBefore<'a> {
    test: &'a [DiskHealth],
    run: &'a [DiskHealth],
}

impl HealthBefore<'_> {
    /// The first value of a counter that a disk reported.
    fn count(&self, disk: &DiskHealth, field: &HealthField) -> Option<u64> {
        for reports in [self.test, self.run] {
            let earlier = report_of(reports, disk);
            if let Some(count) = earlier.and_then(|earlier| (field.read)(earlier)) {
                return Some(count);
            }
        }
        None
    }
}

/// The report of a disk among others; `None` where there is none, or where it is not clear which
/// one it is. A disk that was plugged in again has another name, and cheap bridges share a serial.
fn report_of<'a>(reports: &'a [DiskHealth], disk: &DiskHealth) -> Option<&'a DiskHealth> {
    let candidates: Vec<&DiskHealth> = reports
        .iter()
        .filter(|report| may_be_same_disk(report, disk))
        .collect();
    if let Some(same_name) = candidates.iter().find(|report| report.disk == disk.disk) {
        return Some(same_name);
    }
    match candidates.as_slice() {
        [only] => Some(only),
        [] | [_, _, ..] => None,
    }
}

/// Returns `true` if two reports have one serial number, or one name where a serial is unknown.
fn may_be_same_disk(one: &DiskHealth, other: &DiskHealth) -> bool {
    match (&one.serial, &other.serial) {
        (Some(one), Some(other)) => one == other,
        _ => one.disk == other.disk,
    }
}

/// Returns `true` if a disk reported a count of its sectors before the test and does not report it
/// after it. Without a report after the test (`--no-health`) nothing is missed.
fn is_health_lost(before: &HealthBefore<'_>, after: &[DiskHealth]) -> bool {
    if after.is_empty() {
        return false;
    }
    for earlier in before.test.iter().chain(before.run) {
        let later = report_of(after, earlier);
        for field in &HEALTH_FIELDS {
            let was_reported = (field.read)(earlier).is_some();
            let is_reported = later.is_some_and(|disk| (field.read)(disk).is_some());
            if counts_sectors(field.counter) && was_reported && !is_reported {
                return true;
            }
        }
    }
    false
}

/// Returns `true` if a counter is of the disk's sectors, not of its cable.
fn counts_sectors(counter: HealthCounter) -> bool {
    match counter {
        HealthCounter::Reallocated
        | HealthCounter::Pending
        | HealthCounter::Uncorrectable
        | HealthCounter::MediaErrors => true,
        HealthCounter::LinkErrors => false,
    }
}

/// The counters that rose during the test.
fn health_changes(before: &HealthBefore<'_>, after: &[DiskHealth]) -> Vec<HealthChange> {
    let mut changes = Vec::new();
    for disk in after {
        for field in &HEALTH_FIELDS {
            if let (Some(before), Some(after)) = (before.count(disk, field), (field.read)(disk))
                && after > before
            {
                changes.push(HealthChange {
                    disk: disk.disk.clone(),
                    counter: field.counter,
                    before,
                    after,
                });
            }
        }
    }
    changes
}

/// A counter, and where the health report has it.
struct HealthField {
    counter: HealthCounter,
    /// Reads it from a report; `None` where the disk does not report it.
    read: fn(&DiskHealth) -> Option<u64>,
}

/// The counters that a test compares.
const HEALTH_FIELDS: [HealthField; 5] = [
    HealthField {
        counter: HealthCounter::Reallocated,
        read: |health| health.reallocated_sectors,
    },
    HealthField {
        counter: HealthCounter::Pending,
        read: |health| health.pending_sectors,
    },
    HealthField {
        counter: HealthCounter::Uncorrectable,
        read: |health| health.uncorrectable_sectors,
    },
    HealthField {
        counter: HealthCounter::MediaErrors,
        read: |health| health.media_errors,
    },
    HealthField {
        counter: HealthCounter::LinkErrors,
        read: |health| health.link_errors,
    },
];
