//! `rate-limited`: a control group, a cloud volume or a hypervisor limits the rate. A group's limit
//! is known. Any other limiter shows itself: it lets reads and writes pass at the same rate, more
//! evenly than a medium answers.

use super::missed_schedule::is_missed;
use super::rule::*;
use crate::estimate::scatter;
use crate::limiter::{Unit, counts_in};
use crate::mechanics::{has_platters, is_real_disk};
use crate::volume_types::{documented_limit, is_round};
use diskproof_model::digits::figure_text;
use diskproof_model::target::IoLimit;

pub(super) const RULE: Rule = Rule {
    code: "rate-limited",
    title: "A limiter sets the rate",
    summary: "A limiter, not the medium, sets the rate: the limit of a control group, the type of \
              a cloud volume, or a hypervisor's throttling. The medium may be faster.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::Limit {
        limit: RateLimit::Cap,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The largest scatter from one tenth of a second to the next, as a share of the rate, that counts
/// as even. A medium scatters more. Chosen, not measured.
const SCATTER_MAX_EVEN: f64 = 0.004;

/// Reads and writes of one limiter differ by at most this share. Chosen, not measured.
const DIFFERENCE_SHARE_MAX: f64 = 0.005;

/// The share of a group's limit at which a rate has reached it. Kernels count in slices of time, so
/// a rate may be a little higher. Chosen, not measured.
const REACHED_SHARE: std::ops::RangeInclusive<f64> = 0.9..=1.03;

/// From this share of a link's bandwidth on the link is the limit: protocols take the rest, as
/// `flat_top.rs` lists for each kind of link.
const LINK_SHARE: f64 = 0.85;

/// From this block size on, bandwidth is what volumes limit: EBS counts a request of up to 256 KiB
/// on its SSD volumes as one.
pub(super) const LARGE_BLOCK_BYTES: u32 = 1 << 18;

/// A group's limit is certain, so it goes before what the rates suggest.
fn check(record: &Record) -> Option<Diagnosis> {
    by_group(record).or_else(|| by_plateau(record))
}

/// A measured rate at the limit of a group.
struct GroupHit {
    /// The place of the measurement in the record; `None` where the survey reached the limit.
    index: Option<usize>,
    limit: GroupLimit,
    /// The JSON pointer to the rate.
    path: String,
    /// The rate, in the unit of the limit per second.
    observed: f64,
    /// The rate of all workloads that ran at the same time.
    group_rate: f64,
}

impl GroupHit {
    /// True if both reached the same limit of the same group.
    fn has_same_limit(&self, other: &Self) -> bool {
        self.limit.number == other.limit.number && self.limit.key.name == other.limit.key.name
    }

    /// The rate and the limit.
    fn evidence(&self) -> [Evidence; 2] {
        let unit = self.limit.key.unit.per_second();
        [
            evidence_at(&self.path, self.observed, self.limit.allowed, unit),
            self.limit.evidence(self.group_rate),
        ]
    }
}

fn by_group(record: &Record) -> Option<Diagnosis> {
    let hits = group_hits(record);
    let first = hits.first()?;
    let mut observations = Vec::new();
    for hit in &hits {
        observations.extend(hit.evidence());
    }
    let diagnosis = Diagnosis::new(Severity::Warning, group_claim(record, &hits), observations)
        .with_remedy(
            "Raise the limit of the group (io.max, or blkio.throttle in version 1; systemd: \
             IOReadIOPSMax=, IOWriteIOPSMax=, IOReadBandwidthMax=, IOWriteBandwidthMax=), or \
             measure outside the group.",
        );
    match first.index {
        Some(index) => {
            let command = &record.measurements[index].figures.reproduce;
            Some(diagnosis.with_command(command))
        }
        None => Some(diagnosis),
    }
}

fn group_hits(record: &Record) -> Vec<GroupHit> {
    let mut hits: Vec<GroupHit> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(at_group_limit(record, measured));
    }
    hits.extend(survey_at_group_limit(record));
    hits
}

/// One sentence for each limit, with the rate of the first hit at it.
fn group_claim(record: &Record, hits: &[GroupHit]) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for (place, hit) in hits.iter().enumerate() {
        let is_named = hits[..place]
            .iter()
            .any(|earlier| earlier.has_same_limit(hit));
        if !is_named {
            let at_limit = hits.iter().filter(|other| other.has_same_limit(hit));
            let places = places(record, at_limit.map(|other| other.index));
            sentences.push(group_sentence(record, hit, &places));
        }
    }
    format!(
        "{} The disk may be faster; every process of the group shares this rate.",
        sentences.join(" ")
    )
}

fn group_sentence(record: &Record, hit: &GroupHit, places: &str) -> String {
    let group_limit = &record.host.io_limits[hit.limit.number];
    let unit = hit.limit.key.unit.per_second();
    format!(
        "{places} ran at {}: the control group {} allows {} on device {}.",
        figure_text(hit.group_rate, Some(hit.group_rate * 0.01), unit),
        group_limit.group,
        figure_text(hit.limit.allowed, None, unit),
        group_limit.device
    )
}

/// The first limit of a group that a workload reaches.
fn at_group_limit(record: &Record, measured: Measured<'_>) -> Option<GroupHit> {
    let row = measured.row;
    // A load that the user offers, and that the disk takes, is as fast as the user wants.
    if row.data.workload.rate.is_some() && !is_missed(row) {
        return None;
    }
    for limit in group_limits(record, row.data.target) {
        let kind = limit.key.kind;
        let Some(op) = row.op(kind) else {
            continue;
        };
        let rate = RateFigure::new(op, limit.key.unit);
        let group_rate = combined_rate(record, row, limit.key);
        if limit.is_reached(group_rate) {
            let index = measured.index;
            let kind = kind.as_str();
            return Some(GroupHit {
                index: Some(index),
                limit,
                path: format!(
                    "/measurements/{index}/figures/ops/{kind}/{}/value",
                    rate.name
                ),
                observed: rate.value,
                group_rate,
            });
        }
    }
    None
}

/// The rate that counts against a limit of a group: that of all workloads which ran at the same
/// time.
fn combined_rate(record: &Record, row: &Row, key: &LimitKey) -> f64 {
    concurrent_rows(record, row)
        .into_iter()
        .filter_map(|row| row.op(key.kind))
        .map(|op| RateFigure::new(op, key.unit).value)
        .sum()
}

/// The limit of a group on throughput that the curve of a survey reaches.
fn survey_at_group_limit(record: &Record) -> Option<GroupHit> {
    let surface = record.surface()?;
    let observed = surface.figures.rate.as_ref()?.average.value;
    for limit in group_limits(record, surface.data.target) {
        let is_of_curve =
            limit.key.kind == surface.data.survey.operation && limit.key.unit == Unit::Bytes;
        if is_of_curve && limit.is_reached(observed) {
            return Some(GroupHit {
                index: None,
                limit,
                path: first_result_path("figures/rate/average/value"),
                observed,
                group_rate: observed,
            });
        }
    }
    None
}

/// One of the four limits that a group may set on a device.
struct LimitKey {
    /// The name of the limit in the record.
    name: &'static str,
    kind: OpKind,
    unit: Unit,
    /// Reads the limit; `None` where the group does not set it.
    value: fn(&IoLimit) -> Option<u64>,
}

static LIMIT_KEYS: [LimitKey; 4] = [
    LimitKey {
        name: "read_iops",
        kind: OpKind::Read,
        unit: Unit::Requests,
        value: |limit| limit.read_iops,
    },
    LimitKey {
        name: "write_iops",
        kind: OpKind::Write,
        unit: Unit::Requests,
        value: |limit| limit.write_iops,
    },
    LimitKey {
        name: "read_bytes_per_second",
        kind: OpKind::Read,
        unit: Unit::Bytes,
        value: |limit| limit.read_bytes_per_second,
    },
    LimitKey {
        name: "write_bytes_per_second",
        kind: OpKind::Write,
        unit: Unit::Bytes,
        value: |limit| limit.write_bytes_per_second,
    },
];

/// A limit of a group on a device of a target.
#[derive(Clone, Copy)]
struct GroupLimit {
    /// Place among the limits of the host.
    number: usize,
    key: &'static LimitKey,
    allowed: f64,
}

impl GroupLimit {
    fn is_reached(self, observed: f64) -> bool {
        REACHED_SHARE.contains(&(observed / self.allowed.max(1.0)))
    }

    fn statement(self, record: &Record) -> GroupStatement {
        let limit = &record.host.io_limits[self.number];
        GroupStatement {
            sentence: format!(
                "The control group {} allows only {} on {}.",
                limit.group,
                figure_text(self.allowed, None, self.key.unit.per_second()),
                limit.device
            ),
            evidence: self.evidence(0.0),
        }
    }

    /// The limit as the observation, with the rate that reached it as its threshold; 0 where no
    /// rate has to reach it.
    fn evidence(self, rate: f64) -> Evidence {
        let path = format!("/host/io_limits/{}/{}", self.number, self.key.name);
        evidence_at(path, self.allowed, rate, self.key.unit.per_second())
    }
}

fn group_limits(record: &Record, target: usize) -> Vec<GroupLimit> {
    let Some(target) = record.targets.get(target) else {
        return Vec::new();
    };
    let mut limits = Vec::new();
    for (number, limit) in record.host.io_limits.iter().enumerate() {
        if !target
            .layers
            .iter()
            .any(|layer| layer.device == limit.device)
        {
            continue;
        }
        for key in &LIMIT_KEYS {
            if let Some(allowed) = (key.value)(limit) {
                limits.push(GroupLimit {
                    number,
                    key,
                    allowed: allowed as f64,
                });
            }
        }
    }
    limits
}

/// A limit of a control group, in the words of the findings that it explains.
pub(super) struct GroupStatement {
    pub(super) sentence: String,
    pub(super) evidence: Evidence,
}

/// The first limit that a control group sets on a target; `None` without one.
pub(super) fn first_group_limit(record: &Record, target: usize) -> Option<GroupStatement> {
    let first = group_limits(record, target).into_iter().next()?;
    Some(first.statement(record))
}

/// A limit of a control group that a workload reached.
pub(super) struct ReachedLimit {
    pub(super) statement: GroupStatement,
    /// The time that the limiter needs for all requests in flight of the workload, in nanoseconds:
    /// for so long it may let none pass.
    pub(super) queue_ns: f64,
}

/// The first limit of a group that a workload reaches; `None` where it reaches none.
pub(super) fn limit_of_workload(record: &Record, measured: Measured<'_>) -> Option<ReachedLimit> {
    let limit = at_group_limit(record, measured)?.limit;
    let workload = &measured.row.data.workload;
    let each = match limit.key.unit {
        Unit::Requests => 1.0,
        Unit::Bytes => f64::from(workload.block_bytes),
    };
    Some(ReachedLimit {
        statement: limit.statement(record),
        queue_ns: wanted_depth(measured.row) * each / limit.allowed.max(1.0) * 1e9,
    })
}

/// A rate of reads or writes on a target.
pub(crate) struct RateOfKind {
    pub(crate) kind: OpKind,
    /// Requests per second.
    pub(crate) iops: f64,
    /// Bytes per second.
    pub(crate) throughput: f64,
}

/// `the control group /db allows 300/s of reads on 8:0`: the first limit of a group that one of
/// these rates on a target reaches; `None` where none does.
pub(crate) fn reached_group_limit(
    record: &Record,
    target: usize,
    rates: &[RateOfKind],
) -> Option<String> {
    for limit in group_limits(record, target) {
        for rate in rates {
            let observed = match limit.key.unit {
                Unit::Requests => rate.iops,
                Unit::Bytes => rate.throughput,
            };
            if rate.kind == limit.key.kind && limit.is_reached(observed) {
                let group_limit = &record.host.io_limits[limit.number];
                return Some(format!(
                    "the control group {} allows {} of {}s on {}",
                    group_limit.group,
                    figure_text(limit.allowed, None, limit.key.unit.per_second()),
                    rate.kind.as_str(),
                    group_limit.device
                ));
            }
        }
    }
    None
}

/// A workload whose rate is more even than a medium's.
struct EvenWorkload<'a> {
    measured: Measured<'a>,
    /// Per second, of the quantity that volumes limit at its block size.
    rate: f64,
    unit: Unit,
    scatter: f64,
}

impl EvenWorkload<'_> {
    fn target(&self) -> usize {
        self.measured.row.data.target
    }

    fn has_same_rate(&self, other: &Self) -> bool {
        self.target() == other.target()
            && self.unit == other.unit
            && are_near(self.rate, other.rate)
    }

    fn evidence(&self) -> Evidence {
        let (kind, op) = self.measured.row.headline_ops()[0];
        let rate = RateFigure::new(op, self.unit);
        let place = format!("figures/ops/{}/{}/value", kind.as_str(), rate.name);
        self.measured
            .evidence(&place, rate.value, self.rate, self.unit.per_second())
    }
}

/// A rate that a limiter sets, and that no document says to last.
pub(super) struct LimiterPlateau {
    /// The place of the target in the record.
    pub(super) target: usize,
    /// In `unit` per second.
    pub(super) rate: f64,
    pub(super) unit: Unit,
    /// The measurements that ran at the rate, ascending.
    pub(super) rows: Vec<usize>,
    pub(super) evidence: Vec<Evidence>,
}

/// The plateau that a limiter explains, unless the type of the volume says that it lasts.
pub(super) fn plateau_without_known_credit(record: &Record) -> Option<LimiterPlateau> {
    if by_group(record).is_some() {
        return None;
    }
    let plateau = limited_plateau(record);
    let first = plateau.first()?;
    let target = record.targets.get(first.target())?;
    if let Some(limit) = documented_limit(target, first.rate, first.unit.per_second())
        && limit.lasts
    {
        return None;
    }
    Some(LimiterPlateau {
        target: first.target(),
        rate: first.rate,
        unit: first.unit,
        rows: plateau.iter().map(|row| row.measured.index).collect(),
        evidence: plateau.iter().map(EvenWorkload::evidence).collect(),
    })
}

/// The workloads at the first rate that a limiter explains.
fn limited_plateau(record: &Record) -> Vec<EvenWorkload<'_>> {
    let mut even: Vec<EvenWorkload<'_>> = Vec::new();
    for measured in real_rows(record) {
        even.extend(even_workload(record, measured));
    }
    let Some(first) = even.iter().position(|row| is_limited(record, row, &even)) else {
        return Vec::new();
    };
    let target = even[first].target();
    let unit = even[first].unit;
    let rate = even[first].rate;
    even.retain(|row| row.target() == target && row.unit == unit && are_near(row.rate, rate));
    even
}

fn are_near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= DIFFERENCE_SHARE_MAX
}

fn by_plateau(record: &Record) -> Option<Diagnosis> {
    let plateau = limited_plateau(record);
    let first = plateau.first()?;
    let observations = plateau.iter().map(EvenWorkload::evidence);
    Some(
        Diagnosis::new(
            Severity::Note,
            plateau_claim(record, &plateau)?,
            observations,
        )
        .with_remedy(
            "Plan with this rate. A larger volume, a faster type or provisioned IOPS raise it; \
             database settings do not.",
        )
        .with_command(&first.measured.row.figures.reproduce),
    )
}

/// `None` where the record lacks the target.
fn plateau_claim(record: &Record, plateau: &[EvenWorkload<'_>]) -> Option<String> {
    let first = plateau.first()?;
    let unit = first.unit.per_second();
    let scatter = largest_by(plateau, |row| row.scatter)?.scatter;
    let target = record.targets.get(first.target())?;
    let limiter = match documented_limit(target, first.rate, unit) {
        Some(limit) => format!("This is the documented limit of {}.", limit.volume),
        None => "Cloud volumes and QEMU's throttling have such limits.".to_owned(),
    };
    Some(format!(
        "{} ran at {}, constant to {}, so a limiter sets the rate, not the medium. {limiter} More \
         requests in flight would only wait longer.",
        workload_names(record, plateau.iter().map(|row| row.measured.index)),
        figure_text(first.rate, Some(first.rate * DIFFERENCE_SHARE_MAX), unit),
        format_percent(scatter.max(0.001))
    ))
}

/// True if the rate of a workload is as even as that of a limiter.
pub(super) fn is_even(record: &Record, index: usize) -> bool {
    even_workload(record, measured_at(record, index)).is_some()
}

/// A workload that keeps several requests in flight at an even rate; syncs have their own pace.
fn even_workload<'a>(record: &Record, measured: Measured<'a>) -> Option<EvenWorkload<'a>> {
    let row = measured.row;
    let is_paced =
        row.data.workload.is_paced() || matches!(row.data.workload.sync, SyncPolicy::Every { .. });
    if is_paced
        || wanted_depth(row) < 2.0
        || row.figures.settled == Some(false)
        || !row.figures.together_with.is_empty()
    {
        return None;
    }
    let cells = steady_cells(row)?;
    let EvenCells { scatter, unit } = cells.evenness(row)?;
    let values = match unit {
        Unit::Bytes => cells.bytes,
        Unit::Requests => cells.ops,
    };
    let per_cell = values.iter().sum::<f64>() / values.len() as f64;
    let rate = per_cell * 1e9 / cells.interval_ns as f64;
    if unit == Unit::Bytes && (fills_link(record, row, rate) || streams_from_platter(record, row)) {
        return None;
    }
    Some(EvenWorkload {
        measured,
        rate,
        unit,
        scatter,
    })
}

/// True if it moves along the tracks of a disk that turns: they pass below its head like a clock.
fn streams_from_platter(record: &Record, row: &Row) -> bool {
    let target = &record.targets[row.data.target];
    row.data.workload.access == Access::Sequential && has_platters(record, target)
}

fn has_large_blocks(row: &Row) -> bool {
    row.data.workload.block_bytes >= LARGE_BLOCK_BYTES
}

/// Operations and bytes in each full cell of the steady part.
struct SteadyCells {
    /// The length of a cell.
    interval_ns: u64,
    ops: Vec<f64>,
    bytes: Vec<f64>,
}

/// How even cells are in the unit of a limiter.
struct EvenCells {
    scatter: f64,
    unit: Unit,
}

impl SteadyCells {
    /// The evenness in the unit that volumes usually limit for the block size of a row. Of mixed
    /// sizes a limiter makes only its own unit even, which then decides. `None` where they are not
    /// even.
    fn evenness(&self, row: &Row) -> Option<EvenCells> {
        let units = if has_large_blocks(row) {
            [Unit::Bytes, Unit::Requests]
        } else {
            [Unit::Requests, Unit::Bytes]
        };
        for unit in units {
            let scatter = scatter(&counts_in(unit, &self.ops, &self.bytes))?;
            if scatter <= SCATTER_MAX_EVEN {
                return Some(EvenCells { scatter, unit });
            }
        }
        None
    }
}

fn steady_cells(row: &Row) -> Option<SteadyCells> {
    let series = headline_series(row)?;
    let interval_ns = series.interval_ns.max(1);
    let skipped_ns = row.figures.settling_ns.saturating_sub(series.start_ns);
    let full = row.data.wall_ns.saturating_sub(series.start_ns) / interval_ns;
    // A final sync leaves the last cells empty.
    let last = series.cells.iter().rposition(|cell| cell.ops > 0)?;
    let first = skipped_ns.div_ceil(interval_ns) as usize;
    let end = (full as usize).min(last);
    let mut steady = SteadyCells {
        interval_ns,
        ops: Vec::new(),
        bytes: Vec::new(),
    };
    for cell in series.cells.get(first..end)? {
        steady.ops.push(cell.ops as f64);
        steady.bytes.push(cell.bytes as f64);
    }
    Some(steady)
}

fn fills_link(record: &Record, row: &Row, rate: f64) -> bool {
    let Some(target) = record.targets.get(row.data.target) else {
        return false;
    };
    for layer in &target.layers {
        if let Some(link) = &layer.link
            && let Some(limit) = link.bytes_per_second_max
            && rate >= LINK_SHARE * limit as f64
        {
            return true;
        }
    }
    false
}

/// True if a limiter explains the plateau: a documented figure of this very volume, or a round one
/// at which reads and writes are alike, or which the run has nothing to compare with. No medium
/// answers pure reads, pure writes and a mix alike, with blocks of another size among them.
fn is_limited(record: &Record, one: &EvenWorkload<'_>, all: &[EvenWorkload<'_>]) -> bool {
    let target = &record.targets[one.target()];
    if documented_limit(target, one.rate, one.unit.per_second()).is_some() {
        return true;
    }
    let mut has_reads = false;
    let mut has_writes = false;
    let mut has_mix = false;
    let mut has_other_blocks = false;
    for other in all {
        if !other.has_same_rate(one) {
            continue;
        }
        let workload = &other.measured.row.data.workload;
        has_reads |= workload.streams.is_only(OpKind::Read);
        has_writes |= workload.streams.is_only(OpKind::Write);
        has_mix |= workload.streams.is_mix();
        has_other_blocks |= workload.block_bytes != one.measured.row.data.workload.block_bytes;
    }
    let has_both = has_reads && has_writes;
    // One in eleven rates is round: on a disk of this machine that is more likely than a limiter.
    let is_alone = is_only_kind(record, one) && !is_real_disk(record, target);
    if is_round(one.rate, one.unit.per_second()) && (has_both || is_alone) {
        return true;
    }
    has_both && has_mix && has_other_blocks
}

/// True if the run has no workload of other streams to compare with.
fn is_only_kind(record: &Record, one: &EvenWorkload<'_>) -> bool {
    let data = &one.measured.row.data;
    for measured in real_rows(record) {
        let row = measured.row;
        let is_comparable = row.data.target == data.target
            && wanted_depth(row) >= 2.0
            && has_large_blocks(row) == has_large_blocks(one.measured.row);
        if is_comparable && row.data.workload.streams != data.workload.streams {
            return false;
        }
    }
    true
}

#[cfg(test)]
pub(in crate::rules) mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::measurement::Measurement;
    use diskproof_model::series::Cell;
    use diskproof_model::target::Link;

    /// So many operations per second of a workload, all cells alike but for the noise.
    fn set(measurement: &mut Measurement, per_second: u64, noise: impl Fn(usize) -> u64) {
        let kinds = measurement.ops.len() as u64;
        let block = u64::from(measurement.workload.block_bytes);
        for op in measurement.ops.values_mut() {
            for (index, cell) in op.series.cells.iter_mut().enumerate() {
                let ops = per_second / 100 / kinds + noise(index);
                *cell = Cell {
                    ops,
                    bytes: ops * block,
                    ..Cell::default()
                };
            }
            let total = op.series.total();
            (op.count, op.bytes) = (total.ops, total.bytes);
        }
    }

    fn is_small_and_deep(measurement: &Measurement) -> bool {
        measurement.workload.depth > 1 && measurement.workload.block_bytes < LARGE_BLOCK_BYTES
    }

    /// Reads, writes and mixes at 3000/s, and the fixture: reads at 10,000/s, writes at 8000/s.
    pub(super) const EXAMPLES: Examples = Examples::new(|| capped(|_| 0), fixture::record);

    pub(in crate::rules) fn capped(noise: impl Fn(usize) -> u64) -> Record {
        fixture::changed(|run| {
            let random = run
                .measurements
                .iter_mut()
                .filter(|measurement| is_small_and_deep(measurement));
            random.for_each(|measurement| set(measurement, 3000, &noise));
        })
    }

    /// With a limit of the control group of the database.
    fn limited(mut record: Record, limit: IoLimit) -> Option<Diagnosis> {
        let group = "/system.slice/db.service".to_owned();
        record.host.io_limits = vec![IoLimit { group, ..limit }];
        check(&record)
    }

    #[test]
    fn reads_and_writes_at_one_even_rate_are_limited() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 3)
        );
        states(
            &finding.claim,
            &["3 of 8 workloads (random-read-d32", "3000/s"],
        );
    }

    fn medium_noise(index: usize) -> u64 {
        (index * 7919 % 13) as u64
    }

    #[test]
    fn noise_of_a_medium_is_no_limiter() {
        assert_eq!(check(&capped(medium_noise)), None);
    }

    #[test]
    fn a_single_workload_needs_a_round_figure() {
        for (per_second, expected) in [(3000, true), (500, true), (12_300, false)] {
            let mut record = fixture::changed(|run| {
                run.measurements
                    .retain(|measurement| measurement.workload.name == "random-read-d32");
                set(&mut run.measurements[0], per_second, |_| 0);
            });
            assert_eq!(check(&record), None, "nobody limits a disk of this machine");
            record.host.hypervisor = Some("kvm".to_owned());
            assert_eq!(check(&record).is_some(), expected, "{per_second}");
        }
    }

    #[test]
    fn documented_figures_of_the_volume_name_it() {
        let mut record = (EXAMPLES.fires)();
        for layer in &mut record.targets[0].layers {
            layer.model = Some("Amazon Elastic Block Store".to_owned());
        }
        states(&check(&record).unwrap().claim, &["EBS gp3"]);
    }

    #[test]
    fn limit_in_bytes_of_a_group_is_named_with_the_curve() {
        let record = surveyed::record();
        let rate = record.surface().unwrap().figures.rate.as_ref().unwrap();
        let limit = IoLimit {
            device: record.targets[0].layers[0].device.clone(),
            read_bytes_per_second: Some(rate.average.value as u64),
            ..IoLimit::default()
        };
        let finding = limited(record, limit).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/figures/rate/average/value"
        );
        states(&finding.claim, &["the survey"]);
    }

    fn write_limit(device: &str) -> IoLimit {
        IoLimit {
            device: device.to_owned(),
            write_iops: Some(8100),
            ..IoLimit::default()
        }
    }

    #[test]
    fn rates_at_two_limits_of_a_group_are_told_apart() {
        let limit = IoLimit {
            read_iops: Some(10_000),
            ..write_limit("8:0")
        };
        let finding = limited(fixture::record(), limit).unwrap();
        let parts = [
            "(random-read-d32) ran at 10,000/s: the control group",
            "allows 10,000/s on device 8:0. ",
            "(random-write-d32) ran at 8000/s: the control group",
            "allows 8100/s on device 8:0. The disk may",
        ];
        states(&finding.claim, &parts);
    }

    #[test]
    fn the_limit_of_a_group_is_named_however_uneven() {
        let finding = limited(fixture::record(), write_limit("8:0")).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        let parts = [
            "(random-write-d32)",
            "8000/s",
            "/system.slice/db.service",
            "8:0",
        ];
        states(&finding.claim, &parts);
        assert_eq!(finding.evidence[1].path, "/host/io_limits/0/write_iops");
        assert_eq!(
            limited(fixture::record(), write_limit("8:16")),
            None,
            "of another disk"
        );
    }

    /// 950/s that the user asked for are not limited by 1000/s; 500/s of each of two workloads are.
    #[test]
    fn pace_of_the_user_is_no_limit_and_rates_at_one_time_are_summed() {
        let limit = IoLimit {
            device: "8:0".to_owned(),
            read_iops: Some(10_000),
            ..IoLimit::default()
        };
        let mut paced = fixture::record();
        for row in &mut paced.measurements {
            row.data.workload.rate = Some(9500.0);
        }
        assert_eq!(limited(paced, limit.clone()), None);
        let names = ["random-read-d1", "random-read-d32"];
        let together = fixture::judge(fixture::together(&names));
        let rates: Vec<f64> = together
            .measurements
            .iter()
            .filter(|row| names.contains(&row.data.workload.name.as_str()))
            .filter_map(|row| row.op(OpKind::Read))
            .map(|op| op.figures.iops.value)
            .collect();
        let sum: f64 = rates.iter().sum();
        let of_both = IoLimit {
            read_iops: Some(sum as u64),
            ..limit
        };
        assert!(rates.iter().all(|rate| *rate < 0.9 * sum), "{rates:?}");
        let Some(diagnosis) = limited(together, of_both) else {
            panic!("{rates:?}");
        };
        states(&diagnosis.claim, &["2 of 8 workloads", "ran at 12,000/s"]);
    }

    /// The tracks of one zone pass below the head like a clock.
    #[test]
    fn stream_of_a_rotating_disk_has_no_limiter() {
        for (rotational, expected) in [(false, true), (true, false)] {
            let mut record = fixture::changed(|run| {
                run.facts.host.hypervisor = None;
                run.measurements.retain(|measurement| {
                    ["sequential-read", "sequential-write"]
                        .contains(&measurement.workload.name.as_str())
                });
                for measurement in &mut run.measurements {
                    set(measurement, 200, |_| 0);
                }
            });
            for layer in &mut record.targets[0].layers {
                layer.rotational = Some(rotational);
                layer.link = Some(Link {
                    bus: "SATA".to_owned(),
                    ..Link::default()
                });
            }
            assert_eq!(check(&record).is_some(), expected, "{rotational}");
        }
    }
}
