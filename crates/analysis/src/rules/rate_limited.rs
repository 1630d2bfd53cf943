//! `rate-limited`: a control group, a cloud volume or a hypervisor limits the rate. A group's limit
//! is known. Any other limiter shows itself: it lets reads and writes pass at the same rate, more
//! evenly than a medium answers.

use super::rule::*;
use crate::estimate::scatter;
use crate::volume_types::{documented, has_credit, is_round};
use diskproof_model::digits::figure_text;

pub(super) const RATE_LIMITED: Rule = Rule {
    code: "rate-limited",
    check: Check::Run(check_rate_limited),
    says: Meaning::Limit {
        limit: RateLimit::Cap,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A medium scatters more from one tenth of a second to the next.
const EVEN: f64 = 0.004;
/// Reads and writes of a limiter differ by less than this share.
const ALIKE: f64 = 0.005;
/// Kernels reach a group's limit to about this.
const GROUP_SHARE: std::ops::RangeInclusive<f64> = 0.9..=1.03;
/// Protocols leave a link about this share of its bandwidth: then the link is the limit.
const LINK_SHARE: f64 = 0.85;
/// From this block size on, bandwidth is what volumes limit.
const LARGE_BYTES: u32 = 1 << 18;

fn check_rate_limited(record: &Record) -> Option<Diagnosis> {
    by_group(record).or_else(|| by_plateau(record))
}

/// A measured rate at the limit of a group.
struct GroupHit {
    /// Of the measurement; `None` of the survey.
    index: Option<usize>,
    limit: GroupLimit,
    path: String,
    observed: f64,
}

fn by_group(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<GroupHit> = real(record)
        .filter_map(|measured| at_group_limit(record, measured))
        .chain(survey_at_group_limit(record))
        .collect();
    let first = hits.first()?;
    let (limit, unit) = (&record.host.io_limits[first.limit.number], first.limit.unit);
    let found = hits.iter().flat_map(|hit| {
        let GroupLimit { allowed, unit, .. } = hit.limit;
        [
            evidence_at(&hit.path, hit.observed, allowed, unit),
            hit.limit.evidence(hit.observed),
        ]
    });
    Some(Diagnosis {
        severity: Severity::Warning,
        claim: format!(
            "{} ran at {}: the control group {} allows {} on device {}. The disk may be faster; \
             every process of the group shares this rate.",
            places(record, hits.iter().map(|hit| hit.index)),
            figure_text(first.observed, Some(first.observed * 0.01), unit),
            limit.group,
            figure_text(first.limit.allowed, None, unit),
            limit.device
        ),
        evidence: found.collect(),
        remedy: "Raise io.max of the group (systemd: IOReadIOPSMax=, IOWriteIOPSMax=, \
                 IOReadBandwidthMax=, IOWriteBandwidthMax=), or measure outside the group."
            .to_owned(),
        reproduce: first
            .index
            .map(|index| record.measurements[index].figures.reproduce.clone()),
    })
}

/// The first limit of a group that a workload reaches.
fn at_group_limit(record: &Record, (index, m): Measured<'_>) -> Option<GroupHit> {
    let reached = |allowed: &GroupLimit| {
        let op = m.op(allowed.kind)?;
        let (figure, rate) = match allowed.unit {
            "B/s" => ("throughput", op.figures.throughput.value),
            _ => ("iops", op.figures.iops.value),
        };
        let kind = allowed.kind.as_str();
        let path = format!("/measurements/{index}/figures/ops/{kind}/{figure}/value");
        allowed.hit(Some(index), path, rate)
    };
    group_limits(record, m.data.target).iter().find_map(reached)
}

/// The same of the curve of a survey.
fn survey_at_group_limit(record: &Record) -> Option<GroupHit> {
    let surface = record.surface()?;
    let rate = surface.figures.rate.as_ref()?.average.value;
    let path = "/results/0/figures/rate/average/value";
    let limits = group_limits(record, surface.data.target).into_iter();
    limits
        .filter(|limit| limit.kind == surface.data.survey.operation && limit.unit == "B/s")
        .find_map(|limit| limit.hit(None, path.to_owned(), rate))
}

/// A limit of a group on a device of a target.
#[derive(Clone, Copy)]
struct GroupLimit {
    /// Place among the limits of the host, and its key there.
    number: usize,
    key: &'static str,
    kind: OpKind,
    allowed: f64,
    unit: &'static str,
}

impl GroupLimit {
    fn hit(self, index: Option<usize>, path: String, observed: f64) -> Option<GroupHit> {
        let is_reached = GROUP_SHARE.contains(&(observed / self.allowed.max(1.0)));
        is_reached.then_some(GroupHit {
            index,
            limit: self,
            path,
            observed,
        })
    }

    fn evidence(self, observed: f64) -> Evidence {
        let path = format!("/host/io_limits/{}/{}", self.number, self.key);
        evidence_at(path, self.allowed, observed, self.unit)
    }
}

fn group_limits(record: &Record, target: usize) -> Vec<GroupLimit> {
    let layers = record.targets.get(target).map(|target| &target.layers);
    let is_below = |device: &str| layers.is_some_and(|all| all.iter().any(|l| l.device == device));
    let mut found = Vec::new();
    for (number, limit) in record.host.io_limits.iter().enumerate() {
        let (reads, writes) = (limit.read_bytes_per_second, limit.write_bytes_per_second);
        let all = [
            (OpKind::Read, "read_iops", limit.read_iops, "1/s"),
            (OpKind::Write, "write_iops", limit.write_iops, "1/s"),
            (OpKind::Read, "read_bytes_per_second", reads, "B/s"),
            (OpKind::Write, "write_bytes_per_second", writes, "B/s"),
        ];
        for (kind, key, allowed, unit) in all {
            if let Some(allowed) = allowed.filter(|_| is_below(&limit.device)) {
                found.push(GroupLimit {
                    number,
                    key,
                    kind,
                    allowed: allowed as f64,
                    unit,
                });
            }
        }
    }
    found
}

/// A sentence on the first limit that a control group sets on a target, for findings that it
/// explains.
pub(super) fn allowed_by_group(record: &Record, target: usize) -> Option<(String, Evidence)> {
    let first = group_limits(record, target).into_iter().next()?;
    let limit = &record.host.io_limits[first.number];
    let allowed = figure_text(first.allowed, None, first.unit);
    let (group, device) = (&limit.group, &limit.device);
    let sentence =
        format!(" The control group {group} allows only {allowed} on {device} (io.max).");
    Some((sentence, first.evidence(0.0)))
}

/// A workload whose rate is more even than a medium's.
struct EvenWorkload<'a> {
    index: usize,
    m: &'a Row,
    /// Per second, of the quantity that volumes limit at its block size.
    rate: f64,
    unit: &'static str,
    scatter: f64,
}

/// A limiter's rate, of which nothing is documented.
pub(super) struct LimiterPlateau {
    pub(super) target: usize,
    pub(super) rate: f64,
    pub(super) unit: &'static str,
    pub(super) rows: Vec<usize>,
    pub(super) evidence: Vec<Evidence>,
}

/// The plateau that a limiter explains, unless the type of the volume says that it lasts.
pub(super) fn plateau_without_known_credit(record: &Record) -> Option<LimiterPlateau> {
    if by_group(record).is_some() {
        return None;
    }
    let alike = limited_plateau(record);
    let first = alike.first()?;
    let target = record.targets.get(first.m.data.target)?;
    if documented(target, first.rate, first.unit).is_some_and(|volume| !has_credit(&volume)) {
        return None;
    }
    Some(LimiterPlateau {
        target: first.m.data.target,
        rate: first.rate,
        unit: first.unit,
        rows: alike.iter().map(|one| one.index).collect(),
        evidence: alike.iter().map(plateau_evidence).collect(),
    })
}

/// The workloads at the first rate that a limiter explains.
fn limited_plateau(record: &Record) -> Vec<EvenWorkload<'_>> {
    let plateaus: Vec<EvenWorkload<'_>> = real(record)
        .filter_map(|measured| plateau(record, measured))
        .collect();
    let first = plateaus
        .iter()
        .position(|one| is_limited(record, one, &plateaus));
    let Some(first) = first else {
        return Vec::new();
    };
    let (rate, target, unit) = (
        plateaus[first].rate,
        plateaus[first].m.data.target,
        plateaus[first].unit,
    );
    plateaus
        .into_iter()
        .filter(|one| one.m.data.target == target && one.unit == unit && is_near(one.rate, rate))
        .collect()
}

fn by_plateau(record: &Record) -> Option<Diagnosis> {
    let alike = limited_plateau(record);
    let first = alike.first()?;
    let scatter = alike.iter().map(|one| one.scatter).fold(0.0, f64::max);
    let target = record.targets.get(first.m.data.target)?;
    let which = match documented(target, first.rate, first.unit) {
        Some(volume) => format!("This is the documented limit of {volume}."),
        None => "Cloud volumes and QEMU's throttling have such limits.".to_owned(),
    };
    Some(Diagnosis {
        severity: Severity::Note,
        claim: format!(
            "{} ran at {}, constant to {}, so a limiter sets the rate, not the medium. {which} \
             More requests in flight would only wait longer.",
            scope(record, alike.iter().map(|one| one.index)),
            figure_text(first.rate, Some(first.rate * ALIKE), first.unit),
            format_percent(scatter.max(0.001))
        ),
        evidence: alike.iter().map(plateau_evidence).collect(),
        remedy:
            "Plan with this rate. A larger volume, a faster type or provisioned IOPS raise it; \
             database settings do not."
                .to_owned(),
        reproduce: Some(first.m.figures.reproduce.clone()),
    })
}

/// Whether the rate of a workload is as even as that of a limiter.
pub(super) fn is_even(record: &Record, index: usize) -> bool {
    plateau(record, (index, &record.measurements[index])).is_some()
}

fn plateau_evidence(one: &EvenWorkload<'_>) -> Evidence {
    let (kind, op) = one.m.headline_ops()[0];
    let (figure, observed) = match one.unit {
        "1/s" => ("iops", op.figures.iops.value),
        _ => ("throughput", op.figures.throughput.value),
    };
    let place = format!("figures/ops/{}/{figure}/value", kind.as_str());
    evidence(one.index, &place, observed, one.rate, one.unit)
}

/// The plateau of a workload that keeps several requests in flight; syncs have their own pace.
fn plateau<'a>(record: &Record, (index, m): Measured<'a>) -> Option<EvenWorkload<'a>> {
    let is_paced =
        m.data.workload.rate.is_some() || matches!(m.data.workload.sync, SyncPolicy::Every { .. });
    if is_paced
        || wanted_depth(m) < 2.0
        || m.figures.settled == Some(false)
        || !m.figures.together_with.is_empty()
    {
        return None;
    }
    let (ops, bytes) = cells(m)?;
    let scatter = scatter(&ops).filter(|scatter| *scatter <= EVEN)?;
    let (values, unit) = if m.data.workload.block_bytes >= LARGE_BYTES {
        (bytes, "B/s")
    } else {
        (ops, "1/s")
    };
    let interval_ns = m.headline_ops()[0].1.data.shown_series().interval_ns as f64;
    let rate = values.iter().sum::<f64>() / values.len() as f64 * 1e9 / interval_ns;
    (unit == "1/s" || !fills_link(record, m, rate)).then_some(EvenWorkload {
        index,
        m,
        rate,
        unit,
        scatter,
    })
}

/// Operations and bytes in each full cell of the steady part.
fn cells(m: &Row) -> Option<(Vec<f64>, Vec<f64>)> {
    let series = headline_series(m)?;
    let interval_ns = series.interval_ns.max(1);
    let skipped = m.figures.settling_ns.saturating_sub(series.start_ns);
    let full = m.data.wall_ns.saturating_sub(series.start_ns) / interval_ns;
    // A final sync leaves the last cells empty.
    let last = series.cells.iter().rposition(|cell| cell.ops > 0)?;
    let end = (full as usize).min(last);
    let steady = series
        .cells
        .get(skipped.div_ceil(interval_ns) as usize..end)?
        .iter();
    Some(
        steady
            .map(|cell| (cell.ops as f64, cell.bytes as f64))
            .unzip(),
    )
}

fn fills_link(record: &Record, m: &Row, rate: f64) -> bool {
    let targets = record.targets.get(m.data.target).into_iter();
    let links = targets
        .flat_map(|target| &target.layers)
        .filter_map(|layer| layer.link.as_ref());
    let mut limits = links.filter_map(|link| link.bytes_per_second_max);
    limits.any(|limit| rate >= LINK_SHARE * limit as f64)
}

fn is_alike(one: &EvenWorkload<'_>, other: &EvenWorkload<'_>) -> bool {
    one.m.data.target == other.m.data.target
        && one.unit == other.unit
        && is_near(one.rate, other.rate)
}

fn is_near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= ALIKE
}

/// Whether a limiter explains the plateau: a documented figure of this very volume, or a round one
/// at which reads and writes are alike, or which the run has nothing to compare with.
fn is_limited(record: &Record, one: &EvenWorkload<'_>, all: &[EvenWorkload<'_>]) -> bool {
    let target = &record.targets[one.m.data.target];
    if documented(target, one.rate, one.unit).is_some() {
        return true;
    }
    let has_alike = |kind: OpKind| {
        let mut alike = all.iter().filter(|other| is_alike(other, one));
        alike.any(|other| other.m.data.workload.streams.is_only(kind))
    };
    let is_both = has_alike(OpKind::Read) && has_alike(OpKind::Write);
    let round = is_round(one.rate, one.unit);
    let is_small = |m: &Row| m.data.workload.block_bytes < LARGE_BYTES;
    let others = || {
        let own = real(record)
            .map(|(_, m)| m)
            .filter(|m| m.data.target == one.m.data.target);
        own.filter(|m| wanted_depth(m) >= 2.0 && is_small(m) == is_small(one.m))
    };
    let is_only = others().all(|m| m.data.workload.streams == one.m.data.workload.streams);
    round && (is_both || is_only) || is_both && is_mixed_alike(one, all)
}

/// Whether a mix runs at the rate of pure reads and of pure writes, with blocks of another size
/// among them: no medium answers all of these alike.
fn is_mixed_alike(one: &EvenWorkload<'_>, all: &[EvenWorkload<'_>]) -> bool {
    let alike = || all.iter().filter(|other| is_alike(other, one));
    let is_mix = |other: &EvenWorkload<'_>| other.m.data.workload.streams.is_mix();
    let block_bytes = one.m.data.workload.block_bytes;
    alike().any(is_mix) && alike().any(|other| other.m.data.workload.block_bytes != block_bytes)
}

#[cfg(test)]
pub(in crate::rules) mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::measurement::Measurement;
    use diskproof_model::series::Cell;
    use diskproof_model::target::IoLimit;

    /// So many operations per second of a workload, all cells alike but for the noise.
    fn set(m: &mut Measurement, per_second: u64, noise: impl Fn(usize) -> u64) {
        let kinds = m.ops.len() as u64;
        let block = u64::from(m.workload.block_bytes);
        for op in m.ops.values_mut() {
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

    fn is_random(m: &Measurement) -> bool {
        m.workload.depth > 1 && m.workload.block_bytes < LARGE_BYTES
    }

    /// Reads, writes and mixes at 3000/s, and the fixture: reads at 10,000/s, writes at 8000/s.
    pub(super) const EXAMPLES: Examples = Examples::of(|| capped(|_| 0), fixture::record);

    pub(in crate::rules) fn capped(noise: impl Fn(usize) -> u64) -> Record {
        fixture::changed(|run| {
            let random = run.1.iter_mut().filter(|m| is_random(m));
            random.for_each(|m| set(m, 3000, &noise));
        })
    }

    /// With a limit of the control group of the database.
    fn limited(mut record: Record, limit: IoLimit) -> Option<Diagnosis> {
        let group = "/system.slice/db.service".to_owned();
        record.host.io_limits = vec![IoLimit { group, ..limit }];
        check_rate_limited(&record)
    }

    #[test]
    fn reads_and_writes_at_one_even_rate_are_limited() {
        let finding = check_rate_limited(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 3)
        );
        states(
            &finding.claim,
            &["3 of 8 workloads (random-read-d32", "3000/s"],
        );
    }

    #[test]
    fn noise_of_a_medium_is_no_limiter() {
        let noise = |index: usize| (index * 7919 % 13) as u64;
        assert_eq!(check_rate_limited(&capped(noise)), None);
    }

    #[test]
    fn a_single_workload_needs_a_round_figure() {
        for (per_second, expected) in [(3000, true), (500, true), (12_300, false)] {
            let record = fixture::changed(|run| {
                run.1.retain(|m| m.workload.name == "random-read-d32");
                set(&mut run.1[0], per_second, |_| 0);
            });
            assert_eq!(
                check_rate_limited(&record).is_some(),
                expected,
                "{per_second}"
            );
        }
    }

    #[test]
    fn documented_figures_of_the_volume_name_it() {
        let mut record = (EXAMPLES.fires)();
        for layer in &mut record.targets[0].layers {
            layer.model = Some("Amazon Elastic Block Store".to_owned());
        }
        states(&check_rate_limited(&record).unwrap().claim, &["EBS gp3"]);
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

    #[test]
    fn the_limit_of_a_group_is_named_however_uneven() {
        let limit = |device: &str| IoLimit {
            device: device.to_owned(),
            write_iops: Some(8100),
            ..IoLimit::default()
        };
        let finding = limited(fixture::record(), limit("8:0")).unwrap();
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
            limited(fixture::record(), limit("8:16")),
            None,
            "of another disk"
        );
    }
}
