//! `rate-limited`: a control group, a cloud volume or a hypervisor limits the rate. A group's limit
//! is known. Any other limiter shows itself: it lets reads and writes pass at the same rate, more
//! evenly than a medium answers.

mod alike;
mod even;
mod group;
#[cfg(test)]
mod link_tests;

use super::rule::*;
use crate::estimate::{EVEN_SCATTER_MAX, mean, scatter};
use crate::limiter::{Unit, evenness_counts_in, rate_of};
use crate::mechanics::{full_from, has_platters, is_real_disk};
use crate::unreported_links::unreported_link;
use crate::volume_types::{documented_limit, is_chosen, is_round, names_provider};
use alike::{alike_workloads, are_of_limiter};
use diskproof_model::digits::figure_text;
use even::{DIFFERENCE_SHARE_MAX, EvenWorkload, usual_unit};
use group::group_diagnosis;

pub(super) use even::are_near;
pub(super) use group::{GroupStatement, first_group_limit, limit_of_workload};
pub(crate) use group::{RateOfKind, reached_group_limit};

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

/// A group's limit is certain, so it goes before what the rates suggest.
fn check(record: &Record) -> Option<Diagnosis> {
    group_diagnosis(record).or_else(|| plateau_diagnosis(record))
}

/// The workloads at one rate that a limiter explains.
struct LimitedWorkloads<'a> {
    /// One of the even workloads.
    first: EvenWorkload<'a>,
    /// All even workloads at its rate, in the order of the record.
    even: Vec<EvenWorkload<'a>>,
    /// The others at about this rate.
    alike: Vec<Measured<'a>>,
    /// The link that would have this rate, too, if it were full.
    link: Option<PossibleLink>,
}

/// A link that the system does not report, and that may have the rate of a plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleLink {
    name: &'static str,
    /// True if the rate is also one that people choose for a volume: by chance one rate of a link
    /// in twenty is.
    pub(crate) is_chosen: bool,
}

impl<'a> LimitedWorkloads<'a> {
    /// The workloads at each rate that a limiter explains: the first one in each unit of each
    /// target.
    fn find_all(record: &'a Record) -> Vec<Self> {
        let mut even: Vec<EvenWorkload<'_>> = Vec::new();
        for measured in real_rows(record) {
            even.extend(even_workload(record, measured));
        }
        let mut all: Vec<Self> = Vec::new();
        for one in &even {
            // Blocks of several sizes agree in the unit of their limiter alone.
            let agreeing = even.iter().find(|other| one.agrees_in_unit_of(other));
            let limited = agreeing.unwrap_or(one);
            let is_known = all.iter().any(|plateau| {
                plateau.first.target() == limited.target() && plateau.first.unit == limited.unit
            });
            if !is_known && is_limited(record, one, &even) {
                all.push(Self::at_rate_of(record, limited, &even));
            }
        }
        all
    }

    /// The workloads at the rate of a limited one, of all even ones.
    fn at_rate_of(record: &'a Record, one: &EvenWorkload<'a>, all: &[EvenWorkload<'a>]) -> Self {
        let mut even = Vec::new();
        for other in all {
            if other.has_same_rate(one) || other.agrees_in_unit_of(one) {
                even.push(other.clone());
            }
        }
        Self {
            first: one.clone(),
            alike: alike_workloads(record, one, &even),
            link: possible_link(record, one, all),
            even,
        }
    }

    /// All its workloads, ascending.
    fn rows(&self) -> Vec<usize> {
        let mut rows = indices(&self.alike);
        rows.extend(self.even.iter().map(|row| row.measured.index));
        rows.sort_unstable();
        rows
    }

    fn evidence(&self) -> Vec<Evidence> {
        let mut observations = Vec::new();
        for row in &self.even {
            observations.push(self.first.evidence_of(row.measured));
        }
        for measured in &self.alike {
            observations.push(self.first.evidence_of(*measured));
        }
        observations
    }
}

/// A rate that a limiter sets, and that no document says to last.
pub(super) struct LimiterPlateau {
    /// The place of the target in the record.
    pub(super) target: usize,
    /// In `unit` per second.
    pub(super) rate: f64,
    pub(super) unit: Unit,
    /// The link that would have this rate, too, if it were full.
    pub(super) link: Option<PossibleLink>,
    /// The measurements that ran at the rate, ascending.
    pub(super) rows: Vec<usize>,
    pub(super) evidence: Vec<Evidence>,
}

/// The plateaus that a limiter explains, without those that last by the type of their volume: at
/// most one in each unit of each target.
pub(super) fn plateaus_without_known_credit(record: &Record) -> Vec<LimiterPlateau> {
    let mut plateaus = Vec::new();
    if group_diagnosis(record).is_some() {
        return plateaus;
    }
    for plateau in LimitedWorkloads::find_all(record) {
        let first = &plateau.first;
        let Some(target) = record.targets.get(first.target()) else {
            continue;
        };
        if let Some(limit) = documented_limit(target, first.rate, first.unit.per_second())
            && limit.lasts
        {
            continue;
        }
        plateaus.push(LimiterPlateau {
            target: first.target(),
            rate: first.rate,
            unit: first.unit,
            link: plateau.link,
            rows: plateau.rows(),
            evidence: plateau.evidence(),
        });
    }
    plateaus
}

/// The finding of the plateaus that a limiter explains; `None` where there is none.
fn plateau_diagnosis(record: &Record) -> Option<Diagnosis> {
    let plateaus = LimitedWorkloads::find_all(record);
    let first = plateaus.first()?;
    let mut claims = Vec::new();
    let mut observations = Vec::new();
    for plateau in &plateaus {
        claims.push(plateau_claim(record, plateau)?);
        observations.extend(plateau.evidence());
    }
    claims.push("More requests in flight would only wait longer.".to_owned());
    let remedy = if plateaus.iter().all(|plateau| is_rather_link(plateau.link)) {
        "Plan with this rate. A faster link raises it, or, of a volume with a limit, a larger or \
         faster one; database settings do not."
    } else {
        "Plan with this rate. A larger volume, a faster type or provisioned IOPS raise it; \
         database settings do not."
    };
    Some(
        Diagnosis::new(Severity::Note, claims.join(" "), observations)
            .with_remedy(remedy)
            .with_command(&first.first.measured.row.figures.reproduce),
    )
}

/// True if nobody rather chose the rate of a possible link.
pub(super) fn is_rather_link(link: Option<PossibleLink>) -> bool {
    link.is_some_and(|link| !link.is_chosen)
}

/// The link that a measurement may have filled, where the rate does not tell it from a limiter.
pub(crate) fn possible_link_of(record: &Record, index: usize) -> Option<PossibleLink> {
    LimitedWorkloads::find_all(record)
        .into_iter()
        .find(|plateau| plateau.rows().contains(&index))?
        .link
}

/// The claim of a plateau; `None` where the record lacks the target.
fn plateau_claim(record: &Record, plateau: &LimitedWorkloads<'_>) -> Option<String> {
    let LimitedWorkloads {
        first,
        even,
        alike,
        link,
    } = plateau;
    let unit = first.unit.per_second();
    let scatter = largest_by(even, |row| row.scatter)?.scatter;
    let target = record.targets.get(first.target())?;
    let limiter = match (documented_limit(target, first.rate, unit), link) {
        (Some(limit), _) => format!(
            "so a limiter sets the rate, not the medium. This is the documented limit of {}.",
            limit.volume
        ),
        (None, Some(link)) if link.is_chosen => format!(
            "so a limiter, or a link of exactly that rate ({}), sets the rate, not the medium. \
             Cloud volumes and QEMU's throttling have such limits.",
            link.name
        ),
        (None, Some(link)) => format!(
            "so a link or a limiter sets the rate, not the medium. A full link carries as much: \
             {}.",
            link.name
        ),
        (None, None) => "so a limiter sets the rate, not the medium. Cloud volumes and QEMU's \
                         throttling have such limits."
            .to_owned(),
    };
    let others = if alike.is_empty() {
        String::new()
    } else {
        let names = workload_names(record, indices(alike));
        format!(", and {names} within 1 % of it")
    };
    Some(format!(
        "{} ran at {}, constant to {}{others}, {limiter}",
        workload_names(record, even.iter().map(|row| row.measured.index)),
        figure_text(first.rate, Some(first.rate * DIFFERENCE_SHARE_MAX), unit),
        format_percent(scatter.max(0.001))
    ))
}

/// The rate of a workload that a limiter may set, for all that the run shows.
pub(super) struct PossibleLimit {
    /// In the unit of the question, per second.
    pub(super) rate: f64,
    /// True if it is as even as that of a limiter; false if there were too few requests to tell.
    pub(super) is_even: bool,
}

/// The rate of a workload in a unit that volumes usually limit for it, where it is as even as that
/// of a limiter, or where too few requests show whether it is, and no document says that it lasts;
/// else `None`.
pub(super) fn undocumented_rate(
    record: &Record,
    index: usize,
    unit: Unit,
) -> Option<PossibleLimit> {
    let measured = measured_at(record, index);
    let possible = match even_workload(record, measured) {
        Some(even) if even.unit == unit => PossibleLimit {
            rate: even.rate,
            is_even: true,
        },
        Some(_) => return None,
        None => PossibleLimit {
            rate: rate_of_few(record, measured, unit)?,
            is_even: false,
        },
    };
    let target = record.targets.get(measured.row.data.target)?;
    match documented_limit(target, possible.rate, unit.per_second()) {
        Some(limit) if limit.lasts => None,
        Some(_) | None => Some(possible),
    }
}

/// The rate of a workload whose requests are too few to tell whether it is even; `None` where they
/// are not, or where another cause sets it.
fn rate_of_few(record: &Record, measured: Measured<'_>, unit: Unit) -> Option<f64> {
    let row = measured.row;
    if !may_show_limiter(row) || usual_unit(row) != unit {
        return None;
    }
    let cells = steady_cells(row)?;
    let counts = evenness_counts_in(unit, &cells.ops, &cells.bytes);
    let rate = cells.rate(unit);
    if scatter(&counts).is_some() || rate <= 0.0 || is_of_hardware(record, row, unit, rate) {
        return None;
    }
    Some(rate)
}

/// True if the rate of a workload is as even as that of a limiter.
pub(super) fn is_even(record: &Record, index: usize) -> bool {
    even_workload(record, measured_at(record, index)).is_some()
}

/// A workload that keeps several requests in flight at an even rate.
fn even_workload<'a>(record: &Record, measured: Measured<'a>) -> Option<EvenWorkload<'a>> {
    let row = measured.row;
    if !may_show_limiter(row) {
        return None;
    }
    let cells = steady_cells(row)?;
    let EvenCells { scatter, unit } = cells.evenness(row)?;
    let rate = cells.rate(unit);
    if is_of_hardware(record, row, unit, rate) {
        return None;
    }
    Some(EvenWorkload {
        measured,
        rate,
        unit,
        scatter,
    })
}

/// True if several requests of a row waited for nothing but the disk; syncs have their own pace.
fn may_show_limiter(row: &Row) -> bool {
    let is_paced =
        row.data.workload.is_paced() || matches!(row.data.workload.sync, SyncPolicy::Every { .. });
    !is_paced
        && wanted_depth(row) >= 2.0
        && row.figures.settled != Some(false)
        && row.figures.together_with.is_empty()
}

/// True if a known link or the platters set this rate.
fn is_of_hardware(record: &Record, row: &Row, unit: Unit, rate: f64) -> bool {
    unit == Unit::Bytes && (fills_link(record, row, rate) || streams_from_platter(record, row))
}

/// True if it moves along the tracks of a disk that turns: they pass below its head like a clock.
fn streams_from_platter(record: &Record, row: &Row) -> bool {
    let target = &record.targets[row.data.target];
    row.data.workload.access == Access::Sequential && has_platters(record, target)
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
    /// The mean rate per second.
    fn rate(&self, unit: Unit) -> f64 {
        let values = match unit {
            Unit::Bytes => &self.bytes,
            Unit::Requests => &self.ops,
        };
        mean(values) * 1e9 / self.interval_ns as f64
    }

    /// The evenness in the unit that volumes usually limit for the block size of a row. Of mixed
    /// sizes a limiter makes only its own unit even, which then decides. `None` where they are not
    /// even.
    fn evenness(&self, row: &Row) -> Option<EvenCells> {
        let usual = usual_unit(row);
        for unit in [usual, usual.other()] {
            let scatter = scatter(&evenness_counts_in(unit, &self.ops, &self.bytes))?;
            if scatter <= EVEN_SCATTER_MAX {
                return Some(EvenCells { scatter, unit });
            }
        }
        None
    }
}

/// The full cells of the steady part of a row; `None` where it has no series.
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

/// True if a rate in bytes may be that of a full link above the disk.
fn fills_link(record: &Record, row: &Row, rate: f64) -> bool {
    let Some(target) = record.targets.get(row.data.target) else {
        return false;
    };
    for layer in &target.layers {
        if let Some(link) = &layer.link
            && let Some(full_from) = full_from(link)
            && rate >= full_from
        {
            return true;
        }
    }
    false
}

/// True if a limiter explains the plateau: a documented figure of this very volume, or a round
/// rate. At a round rate, reads and writes are alike (the less even ones count, see
/// [`are_of_limiter`]), or the run has nothing to compare with. Any other rate needs pure reads,
/// pure writes and a mix alike, with blocks of another size among them: no medium answers so.
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
    if is_round(one.rate, one.unit.per_second())
        && (has_both || is_alone || are_of_limiter(record, one))
    {
        return true;
    }
    has_both && has_mix && has_other_blocks
}

/// The link that would have the rate of a limited workload, too, if it were full and the system
/// does not report it. `None` of requests, which no link counts, where requests show a limiter as
/// well or a credit ended, where the disk names its provider, and where more passed than the link
/// carries. Reads and writes together may pass twice as much.
fn possible_link(
    record: &Record,
    one: &EvenWorkload<'_>,
    all: &[EvenWorkload<'_>],
) -> Option<PossibleLink> {
    let target = one.target();
    if one.unit == Unit::Requests || names_provider(&record.targets[target]) {
        return None;
    }
    let link = PossibleLink {
        name: unreported_link(one.rate)?,
        is_chosen: is_chosen(one.rate),
    };
    let limits_requests = all.iter().any(|other| {
        other.target() == target && other.unit == Unit::Requests && is_limited(record, other, all)
    });
    let has_ended = record
        .burst_credits
        .iter()
        .any(|credit| credit.target == target);
    let is_exceeded = real_rows(record).into_iter().any(|measured| {
        let row = measured.row;
        row.data.target == target
            && !row.data.workload.streams.is_mix()
            && row.figures.together_with.is_empty()
            && rate_of(row, Unit::Bytes) > EXCEEDED_TIMES * one.rate
    });
    if limits_requests || has_ended || is_exceeded {
        None
    } else {
        Some(link)
    }
}

/// A rate above this multiple of a link's exceeds it: more than its own uncertainty. Chosen, not
/// measured.
const EXCEEDED_TIMES: f64 = 1.05;

/// True if the run has no workload of other streams to compare with.
fn is_only_kind(record: &Record, one: &EvenWorkload<'_>) -> bool {
    let data = &one.measured.row.data;
    for measured in real_rows(record) {
        let row = measured.row;
        let is_comparable = row.data.target == data.target
            && wanted_depth(row) >= 2.0
            && usual_unit(row) == usual_unit(one.measured.row);
        if is_comparable && row.data.workload.streams != data.workload.streams {
            return false;
        }
    }
    true
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::measurement::Measurement;
    use diskproof_model::series::Cell;
    use diskproof_model::target::{IoLimit, Link};

    /// So many operations per second of a workload, all cells alike but for the noise.
    pub(super) fn set(
        measurement: &mut Measurement,
        per_second: u64,
        noise: impl Fn(usize) -> u64,
    ) {
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

    pub(super) fn is_small_and_deep(measurement: &Measurement) -> bool {
        measurement.workload.depth > 1 && measurement.workload.block_bytes < 256 << 10
    }

    /// Reads, writes and mixes at 3000/s, and the fixture: reads at 10,000/s, writes at 8000/s.
    pub(super) const EXAMPLES: Examples = Examples::new(|| capped(|_| 0), fixture::record);

    pub(crate) fn capped(noise: impl Fn(usize) -> u64) -> Record {
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

    pub(super) fn medium_noise(index: usize) -> u64 {
        (index * 7919 % 13) as u64
    }

    /// 600 requests/s of each size: streams of 1 MiB have 600 MiB/s, which is round, too.
    #[test]
    fn limiter_of_requests_is_not_stated_in_bytes() {
        let record = fixture::changed(|run| {
            for measurement in &mut run.measurements {
                if measurement.workload.depth > 1 {
                    set(measurement, 600, |_| 0);
                }
            }
        });
        let claim = check(&record).unwrap().claim;
        states(&claim, &["6 of 8 workloads", "600/s"]);
        assert!(!claim.contains("B/s"), "{claim}");
        let [plateau] = &plateaus_without_known_credit(&record)[..] else {
            panic!("{claim}");
        };
        assert_eq!((plateau.unit, plateau.rows.len()), (Unit::Requests, 6));
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

    /// The wait of each request sets the pace of one at a time, whatever lets them pass.
    #[test]
    fn single_request_in_flight_shows_no_limiter() {
        let record = fixture::changed(|run| {
            for measurement in &mut run.measurements[2..=3] {
                set(measurement, 3000, |_| 0);
            }
        });
        assert_eq!(record.measurements[2].data.workload.name, "random-read-d1");
        assert!(!is_even(&record, 2));
        assert!(is_even(&record, 3));
    }

    #[test]
    fn stream_that_fills_its_link_has_no_limiter() {
        let mut record = fixture::faulty("sequential-read", |measurement| {
            set(measurement, 500, |_| 0);
        });
        let rate = record.measurements[1].figures.ops[&OpKind::Read]
            .throughput
            .value;
        assert!(is_even(&record, 1));
        // Such a link is full from 85 % of its coded rate on.
        for (coded_rate, fills) in [(rate / 0.86, true), (rate / 0.84, false)] {
            for layer in &mut record.targets[0].layers {
                layer.link = Some(Link {
                    bus: "SATA".to_owned(),
                    bytes_per_second_max: Some(coded_rate as u64),
                    ..Link::default()
                });
            }
            assert_eq!(!is_even(&record, 1), fills, "{coded_rate}");
        }
    }
}
