//! Finds the limits of control groups that rates reach. Such a limit is known: no rate has to be
//! even to show it.

use super::super::missed_schedule::is_missed;
use super::super::rule::*;
use crate::limiter::Unit;
use diskproof_model::digits::figure_text;
use diskproof_model::target::IoLimit;

/// The share of a group's limit at which a rate has reached it. Kernels count in slices of time, so
/// a rate may be a little higher. Chosen, not measured.
const REACHED_SHARE: std::ops::RangeInclusive<f64> = 0.9..=1.03;

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

/// The finding of a limit of a group; `None` where no rate reaches one.
pub(super) fn group_diagnosis(record: &Record) -> Option<Diagnosis> {
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

/// Every rate at a limit of a group, in the order of the record.
fn group_hits(record: &Record) -> Vec<GroupHit> {
    let mut hits: Vec<GroupHit> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(group_limit_hit(record, measured));
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

/// The rate of the workloads at these places, and the limit that they reached.
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
fn group_limit_hit(record: &Record, measured: Measured<'_>) -> Option<GroupHit> {
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

/// The limits that a group may set on a device.
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
    /// True if a rate is about as high as the limit.
    fn is_reached(self, observed: f64) -> bool {
        REACHED_SHARE.contains(&(observed / self.allowed.max(1.0)))
    }

    /// The limit in the words of other findings.
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

/// Every limit of a group on the devices of a target.
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
pub(crate) struct GroupStatement {
    pub(crate) sentence: String,
    pub(crate) evidence: Evidence,
}

/// The first limit that a control group sets on a target; `None` without one.
pub(crate) fn first_group_limit(record: &Record, target: usize) -> Option<GroupStatement> {
    let first = group_limits(record, target).into_iter().next()?;
    Some(first.statement(record))
}

/// A limit of a control group that a workload reached.
pub(crate) struct ReachedLimit {
    pub(crate) statement: GroupStatement,
    /// The time that the limiter needs for all requests in flight of the workload, in nanoseconds:
    /// for so long it may let none pass.
    pub(crate) queue_ns: f64,
}

/// The first limit of a group that a workload reaches; `None` where it reaches none.
pub(crate) fn limit_of_workload(record: &Record, measured: Measured<'_>) -> Option<ReachedLimit> {
    let limit = group_limit_hit(record, measured)?.limit;
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
