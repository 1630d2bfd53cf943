//! Makes the result of a sustained load: the lasting rate, the fall before it and its cause, the
//! rate after pauses, and whether the load reached the steady state. docs/sustain.md explains how
//! the causes differ. The folder has the steady state, and the figures of a credit.

mod bucket;
mod steady_state;

use bucket::{CREDIT_USED_SHARE, bucket_figures, headline_series};
use steady_state::steady_state;

use crate::estimate::{self, LastingFall, Settling};
use crate::limiter::{Unit, slice_rate};
use crate::rounds::{DropShare, drop_share, fall_of_rounds};
use crate::slices::rate_of_kinds;
use crate::{moved, rules};
use diskproof_model::expectation::Expectation;
use diskproof_model::health::CountedDisk;
use diskproof_model::limiter::BurstCredit;
use diskproof_model::measurement::{MovedTotal, OpKind};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::Row;
use diskproof_model::series::TimeSeries;
use diskproof_model::sustain::{
    BucketFigures, DropCause, Precondition, RateDrop, Recovery, SustainPlan, SustainRecord,
};

/// A limit explains a fall if it was exceeded for at least a tenth of the run. Chosen, not
/// measured.
const EXCEEDED_PARTS: u64 = 10;
/// A pause tests for a credit if it refilled at least this many times the amount that the first
/// second after it needs: then the rate is surely high for that second.
const REFILL_TESTED_TIMES: f64 = 2.0;
/// The requests after a pause confirm a refill if they differ from it by at most this share: they
/// are counted in steps of [`FIRST_NS`]. Chosen, not measured.
const REFILL_ERROR_MAX: f64 = 0.3;
/// The rate after a pause is that of this time.
const FIRST_NS: u64 = 1_000_000_000;
/// The rate after a pause is that of at most half of the load after it.
const FIRST_PARTS: u64 = 2;

/// Reads and writes per second of each round.
fn round_rates(row: &Row) -> Vec<f64> {
    row.data
        .slices
        .iter()
        .map(|slice| rate_of_kinds(slice, &OpKind::TRANSFERS))
        .collect()
}

/// The fall over the rounds of a row, at its measured time.
fn fall_over_rounds(row: &Row) -> Option<LastingFall> {
    let fall = fall_of_rounds(&round_rates(row))?;
    let mut at_ns = 0;
    for slice in &row.data.slices[..fall.first_after] {
        at_ns += slice.wall_ns;
    }
    Some(LastingFall {
        at_ns,
        before: fall.before,
        after: fall.after,
    })
}

/// The result of a sustained load, with what the disks counted meanwhile; `None` of a run without
/// one, or that ended before it.
pub(crate) fn sustain_record(record: &Record, counted: &[CountedDisk]) -> Option<SustainRecord> {
    let sustain = record.plan.sustain()?;
    let list = record.plan.workloads();
    let load = sustain.load(list)?;
    let index = row_index(record, &load.name)?;
    let row = &record.measurements[index];
    let measured = estimate::sum_of(
        row.headline_ops()
            .into_iter()
            .map(|(_, op)| op.figures.iops.clone()),
    )?;
    let rates = round_rates(row);
    let last_bytes = match row.data.slices.last() {
        Some(slice) => slice_rate(slice, Unit::Bytes),
        None => 0.0,
    };
    let FoundDrop {
        drop,
        doubtful,
        bucket,
        recoveries,
    } = FoundDrop::of_load(record, counted, sustain, index);
    let after = match drop.as_ref().or(doubtful.as_ref()) {
        Some(fall) => rate_after_fall(row, fall),
        None => None,
    };
    let lasting = match &bucket {
        Some(bucket) => requests_of_base(row, bucket),
        None => after.unwrap_or(measured),
    };
    Some(SustainRecord {
        workload: load.name.clone(),
        time_ns: row.data.wall_ns,
        moved: moved_total(row),
        moved_in_all: Some(moved_until(record, index, row.data.wall_ns)),
        lasting,
        drop,
        doubtful_drop: doubtful,
        bucket,
        recoveries,
        steady_state: steady_state(sustain.round_ns, &rates, last_bytes),
        precondition: precondition(record, counted, sustain),
        counted: counted.to_vec(),
    })
}

fn row_index(record: &Record, workload: &str) -> Option<usize> {
    record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == workload)
}

/// Reads and writes of a row over the whole time.
fn moved_total(row: &Row) -> MovedTotal {
    let mut moved = MovedTotal::default();
    for kind in OpKind::TRANSFERS {
        if let Some(op) = row.data.ops.get(&kind) {
            let total = op.series.total();
            moved.requests += total.ops;
            moved.bytes += total.bytes;
        }
    }
    moved
}

/// The fall of the load, the rate after pauses, and the limiter that explains both.
#[derive(Default)]
struct FoundDrop {
    drop: Option<RateDrop>,
    /// A fall that may not be due to the disk.
    doubtful: Option<RateDrop>,
    bucket: Option<BucketFigures>,
    recoveries: Vec<Recovery>,
}

impl FoundDrop {
    /// Finds the fall of the load, which is the row with this index. A credit that ended explains a
    /// fall before anything else does. Only then are other causes examined, for a fall that the
    /// disk alone can have caused.
    fn of_load(
        record: &Record,
        counted: &[CountedDisk],
        sustain: &SustainPlan,
        index: usize,
    ) -> Self {
        let row = &record.measurements[index];
        let credit = record.burst_credits.iter().find(|credit| {
            credit.at_base.contains(&index) && rules::is_credit_of_disk(record, credit)
        });
        let fall_of_limiter = match credit {
            Some(credit) => fall_of_credit(row, credit),
            None => None,
        };
        let fall_of_disk = fall_of_disk(record, index, fall_of_limiter);
        let Some(fall) = fall_of_limiter.or(fall_of_disk) else {
            return Self::without_cause(record, index);
        };
        let drop = rate_drop(record, index, &fall, DropCause::BurstCredit);
        let recoveries = recoveries(record, sustain, &drop);
        if let Some(credit) = credit
            && fall_of_limiter.is_some()
            && is_limiter(row, credit, &drop, &recoveries)
        {
            return Self {
                bucket: Some(bucket_figures(row, credit, &drop)),
                drop: Some(drop),
                doubtful: None,
                recoveries,
            };
        }
        let Some(fall_of_disk) = fall_of_disk else {
            return Self::without_cause(record, index);
        };
        let mut cause = cause_outside_of_cache(record, counted, index);
        if cause == DropCause::Unknown && is_cache(&drop, row, &recoveries) {
            cause = DropCause::WriteCache;
        }
        Self {
            drop: Some(rate_drop(record, index, &fall_of_disk, cause)),
            doubtful: None,
            bucket: None,
            recoveries,
        }
    }

    /// A load whose fall, if it had one, may not be due to the disk.
    fn without_cause(record: &Record, index: usize) -> Self {
        Self {
            doubtful: doubtful_fall(record, index),
            ..Self::default()
        }
    }
}

/// The fall that the disk can have caused, as the rules on bursts see it, or else over the rounds,
/// or else by the limiter. `None` where there was none.
fn fall_of_disk(
    record: &Record,
    index: usize,
    fall_of_limiter: Option<LastingFall>,
) -> Option<LastingFall> {
    let lasting = rules::lasting_fall_of(record, index);
    if lasting.is_some() || !rules::may_accuse_disk(record, index) {
        return lasting;
    }
    fall_over_rounds(&record.measurements[index])
        .filter(|fall| !rules::is_fall_of_zones(record, index, fall))
        .or(fall_of_limiter)
}

/// The rates after all pauses that were measured.
fn recoveries(record: &Record, sustain: &SustainPlan, drop: &RateDrop) -> Vec<Recovery> {
    let mut recoveries = Vec::new();
    for after in sustain.after_pauses(record.plan.workloads()) {
        recoveries.extend(recovery(record, &after.workload.name, after.pause_ns, drop));
    }
    recoveries
}

/// A fall while other programs used the disk, the processors were busy or the page cache answered,
/// or along the zones of a rotating disk. It has no proven cause, but the load did not keep its
/// rate either. `None` where there was none.
fn doubtful_fall(record: &Record, index: usize) -> Option<RateDrop> {
    let row = &record.measurements[index];
    let series = headline_series(row)?;
    let fall = match estimate::rate_fall(&series, row.data.wall_ns) {
        Some(fall) => fall,
        None => fall_over_rounds(row)?,
    };
    if rules::may_accuse_disk(record, index) && !rules::is_fall_of_zones(record, index, &fall) {
        return None;
    }
    Some(rate_drop(record, index, &fall, DropCause::Unknown))
}

/// The base rate of a limiter in requests per second. The cells after the fall are no better: of
/// a limiter that counts bytes the first ones still hold the rest of its credit.
fn requests_of_base(row: &Row, bucket: &BucketFigures) -> Estimate {
    let base = &bucket.base;
    let unit = if base.unit == Unit::Bytes.per_second() {
        Unit::Bytes
    } else {
        Unit::Requests
    };
    let units_per_request = units_per_request(row, unit);
    Estimate::new(
        base.n,
        base.value / units_per_request,
        base.half_width_95.map(|width| width / units_per_request),
        "1/s",
    )
}

/// What one request of a row takes of a credit in this unit.
fn units_per_request(row: &Row, unit: Unit) -> f64 {
    match unit {
        Unit::Bytes => rules::mean_request_bytes(row),
        Unit::Requests => 1.0,
    }
}

/// Operations per second after a fall.
fn rate_after_fall(row: &Row, fall: &RateDrop) -> Option<Estimate> {
    let series = headline_series(row)?;
    let settling = Settling::new(fall.at_ns, Some(true));
    Some(estimate::rate_after(&series, row.data.wall_ns, settling).ops)
}

/// Returns `true` if a limiter explains the fall and the rates after pauses: each pause gave as
/// much as it refilled. If only writes used the credit, and as much as the smallest write cache
/// holds, a cache would look the same. Then at least one pause has to confirm the limiter.
fn is_limiter(row: &Row, credit: &BurstCredit, drop: &RateDrop, recoveries: &[Recovery]) -> bool {
    let units_per_request = units_per_request(row, Unit::of_credit(credit));
    let mut is_confirmed = credit.has_refilled;
    for recovery in recoveries {
        let refilled = (credit.base * recovery.pause_ns as f64 / 1e9).min(credit.credit);
        // The credit and what refills meanwhile, in requests.
        let predicted = refilled * credit.burst / (credit.burst - credit.base) / units_per_request;
        if !recovery.is_back
            && predicted >= REFILL_TESTED_TIMES * drop.before * FIRST_NS as f64 / 1e9
        {
            return false;
        }
        if let Some(lasted) = recovery.lasted
            && (lasted.requests as f64 / predicted - 1.0).abs() <= REFILL_ERROR_MAX
        {
            is_confirmed = true;
        }
    }
    let may_be_cache = only_writes(row) && drop.moved.bytes as f64 >= rules::CLIFF_BYTES_MIN;
    is_confirmed || !may_be_cache
}

fn only_writes(row: &Row) -> bool {
    !row.data.workload.reads() && row.data.workload.fills_blocks()
}

/// Everything that was moved on the target of a row before it had measured for `at_ns`.
fn moved_until(record: &Record, index: usize, at_ns: u64) -> MovedTotal {
    let moved = moved::before(record, index, at_ns, moved::CountedKinds::ReadsAndWrites);
    MovedTotal {
        requests: moved.requests as u64,
        bytes: moved.bytes as u64,
    }
}

/// A fall of the rate as the record holds it, with what had been moved before.
fn rate_drop(record: &Record, index: usize, fall: &LastingFall, cause: DropCause) -> RateDrop {
    RateDrop {
        at_ns: fall.at_ns,
        moved: moved_until(record, index, fall.at_ns),
        before: fall.before,
        after: fall.after,
        cause,
    }
}

/// The end of a credit within the measured time of the load: the use beyond the refill has reached
/// it, apart from what the gaps between rounds refill. Rates are in requests.
fn fall_of_credit(row: &Row, credit: &BurstCredit) -> Option<LastingFall> {
    let series = headline_series(row)?;
    let unit = Unit::of_credit(credit);
    let cell_s = series.interval_ns as f64 / 1e9;
    let mut used = 0.0;
    let mut end = None;
    for (index, cell) in series.cells.iter().enumerate() {
        let moved = match unit {
            Unit::Bytes => cell.bytes,
            Unit::Requests => cell.ops,
        };
        used += moved as f64 - credit.base * cell_s;
        if used >= CREDIT_USED_SHARE * credit.credit {
            end = Some(index as u64 + 1);
            break;
        }
    }
    let units_per_request = units_per_request(row, unit);
    Some(LastingFall {
        at_ns: series.start_ns + end? * series.interval_ns,
        before: credit.burst / units_per_request,
        after: credit.base / units_per_request,
    })
}

/// The cause of a fall without a credit: a control group whose limit is the rate after it, as a
/// finding says, or what the disks counted.
fn cause_outside_of_cache(record: &Record, counted: &[CountedDisk], index: usize) -> DropCause {
    for finding in &record.findings {
        let is_of_group = finding.code == "rate-limited"
            && finding
                .evidence
                .iter()
                .any(|evidence| evidence.path.starts_with("/host/io_limits/"));
        if is_of_group && finding.concerns(index) {
            return DropCause::ControlGroup;
        }
    }
    if counted.iter().any(CountedDisk::has_slower_link) {
        return DropCause::Link;
    }
    if counted.iter().any(CountedDisk::was_hot) {
        return DropCause::Heat;
    }
    exceeded_limit(record, counted)
}

/// The limit that an EBS volume or its instance reports as exceeded for a good part of the run.
fn exceeded_limit(record: &Record, counted: &[CountedDisk]) -> DropCause {
    for disk in counted {
        let Some(exceeded) = disk.exceeded() else {
            continue;
        };
        let least_us = record.elapsed_ns() / 1000 / EXCEEDED_PARTS;
        if exceeded
            .instance_iops_us
            .max(exceeded.instance_throughput_us)
            >= least_us
        {
            return DropCause::InstanceLimit;
        }
        if exceeded.volume_iops_us.max(exceeded.volume_throughput_us) >= least_us {
            return DropCause::VolumeLimit;
        }
    }
    DropCause::Unknown
}

/// Returns `true` if a write cache explains a fall: the load only writes, enough to fill the
/// smallest cache, and was fast again after a pause.
fn is_cache(drop: &RateDrop, row: &Row, recoveries: &[Recovery]) -> bool {
    only_writes(row)
        && drop.moved.bytes as f64 >= rules::CLIFF_BYTES_MIN
        && recoveries.iter().any(|recovery| recovery.is_back)
}

/// The rate after a pause; `None` where it was not measured.
fn recovery(record: &Record, workload: &str, pause_ns: u64, drop: &RateDrop) -> Option<Recovery> {
    let index = row_index(record, workload)?;
    let row = &record.measurements[index];
    let series = headline_series(row)?;
    let first_ns = FIRST_NS
        .min(row.data.wall_ns / FIRST_PARTS)
        .max(series.interval_ns);
    let iops = estimate::per_second(&series, 0, first_ns);
    let middle = (drop.before * drop.after).sqrt();
    let is_back = iops >= middle;
    let lasted = if is_back {
        moved_until_next_fall(&series, row.data.wall_ns, first_ns, middle)
    } else {
        None
    };
    Some(Recovery {
        workload: workload.to_owned(),
        pause_ns,
        iops,
        is_back,
        lasted,
    })
}

/// The requests until a rate that was back fell below the middle again, found in steps of
/// `step_ns`.
fn moved_until_next_fall(
    series: &TimeSeries,
    wall_ns: u64,
    step_ns: u64,
    middle: f64,
) -> Option<MovedTotal> {
    let mut at_ns = step_ns;
    while at_ns + step_ns <= wall_ns {
        if estimate::per_second(series, at_ns, at_ns + step_ns) < middle {
            let total = series.total_between(0, at_ns);
            return Some(MovedTotal {
                requests: total.ops,
                bytes: total.bytes,
            });
        }
        at_ns += step_ns;
    }
    None
}

/// The bytes that were written before the load.
fn precondition(
    record: &Record,
    counted: &[CountedDisk],
    sustain: &SustainPlan,
) -> Option<Precondition> {
    let needed_bytes = sustain.precondition_bytes?;
    let workload = sustain.precondition(record.plan.workloads())?;
    let written_bytes = match row_index(record, &workload.name) {
        Some(index) => moved_total(&record.measurements[index]).bytes,
        None => 0,
    };
    Some(Precondition {
        needed_bytes,
        written_bytes,
        counted_bytes: counted_bytes(counted),
    })
}

/// The bytes that the disks counted as written during the run; `None` where one does not count
/// them.
fn counted_bytes(counted: &[CountedDisk]) -> Option<u64> {
    let mut sum = 0;
    for disk in counted {
        sum += disk.written_bytes()?;
    }
    if counted.is_empty() { None } else { Some(sum) }
}

/// The fall that the user allows, judged as a threshold; `None` where the user allows any.
pub(crate) fn drop_limit(record: &Record) -> Option<Expectation> {
    let allowed = record.plan.sustain()?.stop_at_drop?;
    let mut expectation = Expectation {
        expression: format!("sustain.drop<={}%", percent(allowed)),
        threshold: Some(percent(allowed)),
        observed: None,
        interval: None,
        observed_at_least: None,
        met: false,
        undecided: true,
        decided_by_ns: None,
        objection: None,
        promise: None,
    };
    let Some(sustained) = record.sustain() else {
        return Some(expectation);
    };
    let index = row_index(record, &sustained.workload)?;
    if let Some(drop) = fallen_share(&record.measurements[index], sustained) {
        expectation.observed = Some(percent(drop.share.max(0.0)));
        expectation.interval = Some([percent(drop.low()), percent(drop.high())]);
        expectation.met = drop.high() <= allowed;
        expectation.undecided = drop.low() <= allowed && drop.high() > allowed;
    }
    let is_of_zones = match expectation.observed {
        Some(percent) => declines_along_zones(record, index, percent / 100.0),
        None => false,
    };
    let is_decline = sustained.drop.is_none() && !expectation.met && is_of_zones;
    // A drop in the record is already known to be the disk's.
    let is_foreign =
        sustained.drop.is_none() && !expectation.met && !rules::may_accuse_disk(record, index);
    if sustained.doubtful_drop.is_some() || is_decline || is_foreign {
        expectation.objection = Some("The fall may not be the disk's".to_owned());
        expectation.met = false;
        expectation.undecided = true;
    }
    Some(expectation)
}

/// True if the slower zones of a rotating disk explain a decline by this share over the whole load.
fn declines_along_zones(record: &Record, index: usize, share: f64) -> bool {
    let decline = LastingFall {
        at_ns: record.measurements[index].data.wall_ns,
        before: 1.0,
        after: 1.0 - share,
    };
    rules::is_fall_of_zones(record, index, &decline)
}

/// The share by which the rate of the load fell, whatever the cause.
fn fallen_share(row: &Row, sustained: &SustainRecord) -> Option<DropShare> {
    let fall = sustained
        .drop
        .as_ref()
        .or(sustained.doubtful_drop.as_ref())
        .map(|drop| LastingFall {
            at_ns: drop.at_ns,
            before: drop.before,
            after: drop.after,
        });
    drop_share(&round_rates(row), fall.as_ref())
}

/// A share in percent, to a tenth.
fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

#[cfg(test)]
mod tests;
