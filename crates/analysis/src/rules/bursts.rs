//! Shared by the rules on bursts: the workloads that became slower for good, and the burst credits
//! that are the disk's.
//!
//! A rate that a run shows may be that of a limiter, and need not last. Six findings divide the
//! cases between them; `bursts/division_tests.rs` holds which of them speak.
//!
//! * `burst-exhausted`: a fall of reads, or of writes and the reads after them, to an even rate. It
//!   speaks of the workloads at the lower rate.
//! * `burst-figure`: the same, of the workloads above that rate; alone where the rate fell in the
//!   last second of the run, too late to prove a limiter.
//! * `cache-cliff`: a fall of writes alone.
//! * `burst-untested`: a fall of writes to an even rate, and nothing read after it, so that both
//!   causes explain it (beside `cache-cliff`); or an even rate without a fall, unless it was kept
//!   for as long as a credit may last (beside `rate-limited`); or an even rate in bytes where the
//!   credit in requests ended (beside `burst-exhausted`), and the other way round.
//! * `rate-limited`: an even rate, with a fall or without.
//! * `reads-fell`: a fall of reads to an uneven rate.
//!
//! Two ways lead to a credit. `crate::limiter` looks at all that moved on a disk, by the clock of
//! the run (`Record::burst_credits`); a credit that it finds comes first. Where it finds none, the
//! falls of single workloads show one (`slowed_workloads` here, `after_fall` for the others). Each
//! rule asks `known_credit_diagnosis` of `burst_exhausted` before the falls, so that no two of them
//! explain one fall.

use super::after_fall::Fall;
use super::disturbed::is_disturbed;
use super::rule::*;
use super::starved::is_workload_starved;
use crate::estimate::{LastingFall, lasting_fall, rate_fall};
use crate::limiter::words::{amount_text, credit_text, other_unit};
use crate::limiter::{Unit, evenness_counts_in};
use crate::mechanics::has_platters;
use crate::shared_fall::{WorkloadSlices, machine_fell, shared_fall};
use crate::zones::LoadAlongZones;
use crate::{estimate, moved, slices};
use diskproof_model::limiter::BurstCredit;
use diskproof_model::row::{PhaseKind, PhaseRecord};
use diskproof_model::series::TimeSeries;
use std::collections::BTreeMap;

/// No disk or controller has a smaller write cache. Less is the page cache or chance.
pub(crate) const CLIFF_BYTES_MIN: f64 = 32e6;
/// The size that is assumed of requests whose sizes differ: a page of PostgreSQL, the usual request
/// of a database.
const CACHE_REQUEST_BYTES: f64 = 8192.0;

/// The credits that are the disk's: neither the page cache nor other programs explain the fall.
/// That the machine was busy does not either: nothing is as even as a limiter by chance.
pub(super) fn disk_credits(record: &Record) -> Vec<&BurstCredit> {
    let mut credits = Vec::new();
    for credit in &record.burst_credits {
        let unexplained = credit
            .at_base
            .iter()
            .filter(|index| is_disk_at_base(record, **index))
            .count();
        if unexplained >= credit.at_base.len().min(SURE_ROWS_MIN) {
            credits.push(credit);
        }
    }
    credits
}

/// So many rows at one even rate show a limiter, as a bucket needs them. Others at this rate, whose
/// own fall the page cache or another program may explain, do not refute it.
const SURE_ROWS_MIN: usize = 2;

/// True if neither the page cache nor other programs explain that a row ran at the base rate.
fn is_disk_at_base(record: &Record, index: usize) -> bool {
    let measured = measured_at(record, index);
    !may_be_page_cache(record, measured.row) && !is_disturbed(record, measured)
}

/// True if a write cache may be what looks like the credit: it is as large, only writes used it,
/// and it was not seen to refill at its base rate.
pub(super) fn may_be_cache(record: &Record, credit: &BurstCredit) -> bool {
    let bytes = match Unit::of_credit(credit) {
        Unit::Bytes => credit.credit,
        Unit::Requests => credit.credit * request_bytes(record, credit),
    };
    !credit.has_reads && !credit.has_refilled && bytes >= CLIFF_BYTES_MIN
}

/// The size of the requests that ran at the lower rate.
fn request_bytes(record: &Record, credit: &BurstCredit) -> f64 {
    let mut sizes = credit
        .at_base
        .iter()
        .map(|index| mean_request_bytes(&record.measurements[*index]));
    let Some(first) = sizes.next() else {
        return CACHE_REQUEST_BYTES;
    };
    if sizes.all(|size| size == first) {
        first
    } else {
        CACHE_REQUEST_BYTES
    }
}

/// Bytes per request of a row, whose workload may mix sizes; the size of its blocks where nothing
/// was done.
pub(crate) fn mean_request_bytes(row: &Row) -> f64 {
    let (mut bytes, mut count) = (0, 0);
    for (_, op) in row.headline_ops() {
        bytes += op.data.bytes;
        count += op.data.count;
    }
    if count == 0 {
        f64::from(row.data.workload.block_bytes)
    } else {
        bytes as f64 / count as f64
    }
}

/// The diagnosis of a credit, for the workloads that ran at its lower rate.
pub(super) fn credit_diagnosis(record: &Record, credit: &BurstCredit) -> Diagnosis {
    let unit = match other_unit(record, credit) {
        Some(_) => " All requests had one size, so the limiter may count requests or bytes.",
        None => "",
    };
    let claim = format!(
        "A limiter with a burst credit of {} allows {}. {} ran at the lower rate, which is \
         that of sustained load.{unit}",
        amount_text(record, credit),
        credit_text(record, credit),
        workload_names(record, credit.at_base.iter().copied()),
    );
    let mut observations = Vec::new();
    for index in &credit.at_base {
        observations.extend(credit_evidence(record, *index, credit));
    }
    let first = &record.measurements[credit.at_base[0]];
    Diagnosis::new(Severity::Warning, claim, observations).with_command(&first.figures.reproduce)
}

/// The rate of a row beside that of the limiter.
pub(super) fn credit_evidence(
    record: &Record,
    index: usize,
    credit: &BurstCredit,
) -> Option<Evidence> {
    let measured = measured_at(record, index);
    let (kind, op) = measured.row.headline_ops().into_iter().next()?;
    let rate = RateFigure::new(op, Unit::of_credit(credit));
    let place = format!("figures/ops/{}/{}/value", kind.as_str(), rate.name);
    Some(measured.evidence(&place, rate.value, credit.base, &credit.unit))
}

/// A workload that became slower for good.
pub(super) struct SlowedWorkload<'a> {
    pub(super) measured: Measured<'a>,
    pub(super) kind: OpKind,
    pub(super) op: OpRow<'a>,
    pub(super) fall: LastingFall,
    /// The least fall that is no chance.
    fall_min: f64,
}

impl SlowedWorkload<'_> {
    /// When the rate fell, by the clock of the run.
    pub(super) fn moment_ns(&self, record: &Record) -> f64 {
        moved::moment_ns(record, self.measured.index, self.fall.at_ns)
    }

    /// A rate of this workload, which is in operations per second, in a unit.
    pub(super) fn in_unit(&self, rate: f64, unit: Unit) -> f64 {
        match unit {
            Unit::Requests => rate,
            Unit::Bytes => rate * mean_request_bytes(self.measured.row),
        }
    }

    /// The unit in which the rate after the fall is even, where sizes are mixed; else that which
    /// volumes usually limit for the block size of this workload.
    pub(super) fn usual_unit(&self) -> Unit {
        let by_requests = self.is_even_in(Unit::Requests) == Some(true);
        let by_bytes = self.is_even_in(Unit::Bytes) == Some(true);
        match (by_requests, by_bytes) {
            (true, false) => Unit::Requests,
            (false, true) => Unit::Bytes,
            (true, true) | (false, false) => {
                Unit::usual(f64::from(self.measured.row.data.workload.block_bytes))
            }
        }
    }

    /// True if the rate after the fall is as even as that of a limiter, false if it is not; `None`
    /// where too little was measured after it.
    pub(super) fn is_even_after(&self) -> Option<bool> {
        match self.is_even_in(Unit::Requests) {
            Some(false) => self.is_even_in(Unit::Bytes),
            even_or_unknown => even_or_unknown,
        }
    }

    /// Like [`Self::is_even_after`], in one unit.
    fn is_even_in(&self, unit: Unit) -> Option<bool> {
        let series = headline_series(self.measured.row)?;
        let interval_ns = series.interval_ns.max(1);
        let after_ns = self.fall.at_ns.saturating_sub(series.start_ns);
        // The cell of the fall holds both rates, and the last one may not be whole.
        let first = after_ns.div_ceil(interval_ns) as usize + 1;
        let end = series.cells.len().saturating_sub(1);
        let cells = series.cells.get(first..end).unwrap_or_default();
        let requests: Vec<f64> = cells.iter().map(|cell| cell.ops as f64).collect();
        let bytes: Vec<f64> = cells.iter().map(|cell| cell.bytes as f64).collect();
        estimate::evenness(&evenness_counts_in(unit, &requests, &bytes))
    }

    /// The fall as that of a limiter which counts in this unit.
    pub(super) fn fall_in(&self, record: &Record, unit: Unit) -> Fall {
        Fall {
            target: self.measured.row.data.target,
            moment_ns: self.moment_ns(record),
            base: self.in_unit(self.fall.after, unit),
            unit,
        }
    }

    pub(super) fn evidence(&self) -> Evidence {
        let place = format!("figures/ops/{}/iops/value", self.kind.as_str());
        let observed = self.op.figures.iops.value;
        let threshold = self.fall.before / self.fall_min;
        self.measured.evidence(&place, observed, threshold, "1/s")
    }
}

/// The workloads that became slower because of the disk. One that others disturbed, or that
/// waited for a processor, became slower because of the machine.
fn slowed_workloads(record: &Record) -> Vec<SlowedWorkload<'_>> {
    let slices: Vec<WorkloadSlices> = record
        .measurements
        .iter()
        .map(WorkloadSlices::from_row)
        .collect();
    let shared = shared_fall(&slices);
    let mut slowed = Vec::new();
    for measured in real_rows(record) {
        if !may_accuse_disk(record, measured.index) {
            continue;
        }
        let company = match shared[measured.index] {
            Some(_) => Company::Shared,
            None => Company::Alone,
        };
        let Some(hit) = slowed_workload(measured, company) else {
            continue;
        };
        let is_machine =
            company == Company::Alone && machine_fell(&slices, measured.index, hit.fall.at_ns);
        if !is_machine && !is_fall_of_zones(record, measured.index, &hit.fall) {
            slowed.push(hit);
        }
    }
    slowed
}

/// The fall of a workload to a rate that lasts, as the rules on bursts see it, or down a slope;
/// `None` where there was none, or where the disk may not be what fell.
pub(crate) fn lasting_fall_of(record: &Record, index: usize) -> Option<LastingFall> {
    if !may_accuse_disk(record, index) {
        return None;
    }
    let row = &record.measurements[index];
    let slowed = slowed_workloads(record)
        .into_iter()
        .find(|slowed| slowed.measured.index == index);
    let fall = match slowed {
        Some(slowed) => slowed.fall,
        None => rate_fall(&headline_series(row)?, row.data.wall_ns)?,
    };
    if is_fall_of_zones(record, index, &fall) {
        None
    } else {
        Some(fall)
    }
}

/// With a larger share of failed requests than this, a lower rate shows the failures, not a slower
/// disk. Chosen, not measured.
const FAILED_SHARE: f64 = 0.1;

/// True if a fall of a workload may be the disk's: neither the page cache, nor the machine, nor
/// other programs explain it, nor requests that failed.
pub(crate) fn may_accuse_disk(record: &Record, index: usize) -> bool {
    let measured = measured_at(record, index);
    let row = measured.row;
    !(may_be_page_cache(record, row)
        || has_many_failures(row)
        || is_workload_starved(record, row)
        || is_disturbed(record, measured))
}

/// True if so many requests of a row failed that they explain its rate.
pub(crate) fn has_many_failures(row: &Row) -> bool {
    let mut done: u64 = 0;
    for op in row.data.ops.values() {
        done = done.saturating_add(op.count);
    }
    row.errors_total() as f64 > FAILED_SHARE * done as f64
}

/// True if the slower zones of a disk that turns explain a fall of a load which goes along its
/// surface.
pub(crate) fn is_fall_of_zones(record: &Record, index: usize, fall: &LastingFall) -> bool {
    let row = &record.measurements[index];
    let Some(target) = record.targets.get(row.data.target) else {
        return false;
    };
    if !has_platters(record, target) {
        return false;
    }
    let Some(along) = LoadAlongZones::on_platters(&row.data.workload, target) else {
        return false;
    };
    let mut moved_bytes = 0;
    for (_, op) in row.headline_ops() {
        moved_bytes += op.data.series.total_between(0, fall.at_ns).bytes;
    }
    along.explain(fall, moved_bytes, row.data.span_bytes)
}

/// True of a load of `sustain` after a pause: it is there to show a burst, whose end is the answer
/// and no fault of the figures.
pub(super) fn is_after_pause(record: &Record, row: &Row) -> bool {
    let Some(sustain) = record.plan.sustain() else {
        return false;
    };
    sustain
        .after_pauses(record.plan.workloads())
        .iter()
        .any(|after| after.workload.name == row.data.workload.name)
}

/// True if a credit is the disk's; see [`disk_credits`].
pub(crate) fn is_credit_of_disk(record: &Record, credit: &BurstCredit) -> bool {
    disk_credits(record).contains(&credit)
}

/// The workloads that became slower because of the disk, in one list for each target: disks become
/// slower for reasons of their own. No list is empty.
pub(super) fn slowed_on_each_target(record: &Record) -> Vec<Vec<SlowedWorkload<'_>>> {
    let mut by_target: BTreeMap<usize, Vec<SlowedWorkload<'_>>> = BTreeMap::new();
    for slowed in slowed_workloads(record) {
        let target = slowed.measured.row.data.target;
        by_target.entry(target).or_default().push(slowed);
    }
    by_target.into_values().collect()
}

/// True if a workload that reads is among them: where reads fall for a limiter, the writes do, too.
/// The reads of a mix fall with its writes, because the slots are theirs by turns. That counts only
/// where the rate after the fall is even, as no full cache makes it.
pub(super) fn have_reads(slowed: &[SlowedWorkload<'_>]) -> bool {
    slowed.iter().any(|hit| {
        let workload = &hit.measured.row.data.workload;
        workload.streams.is_only(OpKind::Read)
            || (workload.reads() && hit.is_even_after() == Some(true))
    })
}

/// Tells apart falls that other workloads share at the same time.
#[derive(Clone, Copy, PartialEq)]
enum Company {
    Shared,
    Alone,
}

/// True if the page cache can be what was fast at first.
fn may_be_page_cache(record: &Record, row: &Row) -> bool {
    let may_answer = match row.data.cache.used {
        CachePolicy::Direct => false,
        CachePolicy::Buffered => row.data.ops.contains_key(&OpKind::Write),
        CachePolicy::Cached => true,
    };
    let has_buffered_loop = match record.targets.get(row.data.target) {
        Some(target) => target.has_buffered_loop(),
        None => false,
    };
    may_answer || has_buffered_loop
}

/// A workload with a burst among its phases, or one that fell too late to have phases. Only closed
/// loops: an open one offers what it offers. A fall that other workloads share is no chance.
fn slowed_workload(measured: Measured<'_>, company: Company) -> Option<SlowedWorkload<'_>> {
    let row = measured.row;
    let mut phases = row.figures.phases.iter();
    let burst = phases.find(|phase| phase.name == PhaseKind::Burst);
    if row.data.workload.is_paced() || (burst.is_none() && row.figures.settled != Some(false)) {
        return None;
    }
    let (kind, op) = row.headline_ops().first().copied()?;
    let series = headline_series(row)?;
    let fall = match burst {
        Some(burst) => fall_after(row, burst),
        None => lasting_fall(&series, row.data.wall_ns)?,
    };
    if company == Company::Alone
        && (slices::fall_by_chance(&row.data.slices, fall.at_ns)
            || (burst.is_some() && !is_known(op)))
    {
        return None;
    }
    let fall_min = estimate::least_fall_to(
        &series,
        row.figures.settling_ns.max(fall.at_ns),
        row.data.wall_ns,
    );
    if fall.after <= 0.0 || fall.before < fall_min * fall.after {
        return None;
    }
    Some(SlowedWorkload {
        measured,
        kind,
        op,
        fall: refined(fall, &series),
        fall_min,
    })
}

/// True if the rate of a workload with a burst, which is that after it, is known well.
fn is_known(op: OpRow<'_>) -> bool {
    match op.figures.iops.relative_half_width() {
        Some(width) => width <= HALF_WIDTH_MAX,
        None => false,
    }
}

/// The fall from a burst to the steady phase.
fn fall_after(row: &Row, burst: &PhaseRecord) -> LastingFall {
    let mut before = 0.0;
    let mut after = 0.0;
    for (kind, op) in row.headline_ops() {
        if let Some(in_burst) = burst.ops.get(&kind) {
            before += in_burst.rate.value;
        }
        after += op.figures.iops.value;
    }
    LastingFall {
        at_ns: burst.end_ns.saturating_sub(row.data.start_ns),
        before,
        after,
    }
}

/// The same fall at a moment within its cell: the more operations the cell has above the later
/// rate, the later the rate fell.
fn refined(fall: LastingFall, series: &TimeSeries) -> LastingFall {
    let cell_ns = series.interval_ns.max(1);
    let number = fall.at_ns.saturating_sub(series.start_ns) / cell_ns;
    let Some(cell) = series.cells.get(number as usize) else {
        return fall;
    };
    let seconds = cell_ns as f64 / 1e9;
    let excess_ops = cell.ops as f64 - fall.after * seconds;
    let share = (excess_ops / ((fall.before - fall.after) * seconds)).clamp(0.0, 1.0);
    let begin_ns = series.start_ns + number * cell_ns;
    LastingFall {
        at_ns: begin_ns + (share * cell_ns as f64) as u64,
        ..fall
    }
}

#[cfg(test)]
mod division_tests;

/// Records that the tests of several rules use.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::{Measurement, SERIES_INTERVAL_NS};

    /// So many times as fast until the given time.
    pub(in crate::rules) fn fast_until(measurement: &mut Measurement, until_ns: u64, times: u64) {
        for op in measurement.ops.values_mut() {
            let cells = (until_ns / SERIES_INTERVAL_NS) as usize;
            for cell in &mut op.series.cells[..cells] {
                (cell.ops, cell.bytes) = (cell.ops * times, cell.bytes * times);
            }
            let total = op.series.total();
            (op.count, op.bytes) = (total.ops, total.bytes);
        }
    }

    pub(in crate::rules) fn burst() -> Record {
        fixture::faulty("random-read-d32", |measurement| {
            fast_until(measurement, 2_500_000_000, 6)
        })
    }

    /// With the noise of a medium in each cell after two seconds and a half.
    pub(in crate::rules) fn uneven_after(record: Record) -> Record {
        let mut record = record;
        for row in &mut record.measurements {
            for op in row.data.ops.values_mut() {
                let first = 2_500_000_000 / op.series.interval_ns.max(1) as usize;
                for (index, cell) in op.series.cells.iter_mut().enumerate().skip(first) {
                    let block_bytes = cell.bytes / cell.ops.max(1);
                    cell.ops += cell.ops * (index as u64 * 7919 % 13) / 100;
                    cell.bytes = cell.ops * block_bytes;
                }
            }
        }
        record
    }

    pub(in crate::rules) fn cliff() -> Record {
        fixture::faulty("sequential-write", |measurement| {
            fast_until(measurement, 2_500_000_000, 4)
        })
    }

    /// The fixture does not follow from it: rules read what the detector found.
    pub(crate) fn credit() -> BurstCredit {
        BurstCredit {
            target: 0,
            unit: "1/s".to_owned(),
            base: 1500.0,
            burst: 3000.0,
            credit: 20_000.0,
            credit_is_lower_bound: true,
            burst_ns: 13_333_333_333,
            refill_ns: 13_333_333_333,
            at_base: vec![4],
            in_burst: vec![3],
            has_reads: true,
            has_refilled: false,
        }
    }

    /// Writes through the page cache at the same rate, and not them alone, are limited, too.
    #[test]
    fn row_that_the_page_cache_explains_refutes_no_credit() {
        let mut record = fixture::record();
        let buffer = |record: &mut Record, index: usize| {
            let row = &mut record.measurements[index];
            assert!(row.data.ops.contains_key(&OpKind::Write));
            row.data.cache.used = CachePolicy::Buffered;
        };
        record.burst_credits = vec![BurstCredit {
            at_base: vec![2, 3, 4],
            ..credit()
        }];
        buffer(&mut record, 4);
        assert_eq!(disk_credits(&record).len(), 1);
        record.burst_credits[0].at_base = vec![3, 4];
        assert_eq!(
            disk_credits(&record).len(),
            0,
            "one row alone may be chance"
        );
        record.burst_credits[0].at_base = vec![4];
        assert_eq!(disk_credits(&record).len(), 0);
        record.burst_credits[0].at_base = vec![3];
        assert_eq!(disk_credits(&record).len(), 1);
    }

    /// One failed request in ten explains a lower rate; fewer do not.
    #[test]
    fn disk_that_answers_with_errors_did_not_become_slower() {
        let may_accuse = |share: f64| {
            let record = fixture::faulty("random-read-d32", |measurement| {
                for op in measurement.ops.values_mut() {
                    let errors = (op.count as f64 * share) as u64;
                    op.errors.insert("EIO".to_owned(), errors);
                }
            });
            may_accuse_disk(&record, 3)
        };
        assert!(may_accuse(0.0) && may_accuse(0.1));
        assert!(!may_accuse(0.11));
    }

    /// Writes of 8 KiB alone, down to 1500/s.
    fn credit_of_writes() -> BurstCredit {
        BurstCredit {
            // Of 8 KiB: 32.8 MB.
            credit: 4000.0,
            has_reads: false,
            ..credit()
        }
    }

    #[test]
    fn credit_may_be_a_cache_if_writes_alone_used_as_much_and_it_did_not_refill() {
        let record = fixture::record();
        assert_eq!(
            record.measurements[credit().at_base[0]].data.workload.name,
            "random-write-d32"
        );
        let may_be = |credit: BurstCredit| may_be_cache(&record, &credit);
        assert!(may_be(credit_of_writes()));
        assert!(!may_be(BurstCredit {
            has_reads: true,
            ..credit_of_writes()
        }));
        assert!(!may_be(BurstCredit {
            has_refilled: true,
            ..credit_of_writes()
        }));
        // 31.9 MB are less than any cache holds.
        assert!(!may_be(BurstCredit {
            credit: 3900.0,
            ..credit_of_writes()
        }));
        // A credit in bytes needs no size of a request.
        assert!(may_be(BurstCredit {
            unit: "B/s".to_owned(),
            credit: 32e6,
            ..credit_of_writes()
        }));
        // Of workloads with different sizes a page of 8 KiB is assumed, not 1 MiB.
        assert!(!may_be(BurstCredit {
            credit: 3900.0,
            at_base: vec![0, 4],
            ..credit_of_writes()
        }));
    }

    /// A cell of 10 ms in which a rate fell from 3000/s to 1000/s: of 30 requests the fall came at
    /// its end, of 10 at its begin, of 20 in its middle.
    #[test]
    fn moment_of_a_fall_lies_where_the_requests_of_its_cell_put_it() {
        let mut series = TimeSeries::new(10_000_000);
        series.start_ns = 500_000_000;
        let fall = LastingFall {
            at_ns: 503_000_000,
            before: 3000.0,
            after: 1000.0,
        };
        for (ops, at_ns) in [
            (10, 500_000_000),
            (20, 505_000_000),
            (30, 510_000_000),
            (99, 510_000_000),
        ] {
            series.cells = vec![diskproof_model::series::Cell {
                ops,
                ..Default::default()
            }];
            assert_eq!(refined(fall, &series).at_ns, at_ns, "{ops}");
        }
        series.cells.clear();
        assert_eq!(refined(fall, &series).at_ns, fall.at_ns);
    }
}
