//! `burst-untested`: a limiter sets the figures, and the run was too short to show whether it has a
//! burst credit. If it has one, the figures do not last. Of a volume whose credit in one unit
//! ended, the even rates in the other unit are such figures, too. See the list of findings in the
//! head of `bursts.rs`.

use super::after_fall::{AfterFall, Fall};
use super::burst_exhausted::{ended_credits, is_credit_known};
use super::bursts::{
    SlowedWorkload, have_reads, is_after_pause, may_be_cache, slowed_on_each_target,
};
use super::rate_limited::{
    LimiterPlateau, are_near, is_even, limit_of_workload, plateaus_without_known_credit,
    undocumented_rate,
};
use super::rule::*;
use crate::limiter::words::{CreditTest, limit_text};
use crate::limiter::{Unit, held_by_rows, held_rate_of_rows, rate_of, waits_for_disk};
use crate::volume_types::{base_of_burst, is_hardly_a_burst};

pub(super) const RULE: Rule = Rule {
    code: "burst-untested",
    title: "The rate may be that of a burst",
    summary: "A limiter sets the rate, and no workload ran at it for long enough without a pause \
              to show whether the limiter has a burst credit. Each pause and each slower workload \
              refills such a credit.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// What was not tested on one target.
struct UntestedOnTarget {
    target: usize,
    /// The measurements whose rates may be those of a burst.
    rows: Vec<usize>,
    /// True if no link would have these rates.
    may_be_volume: bool,
    /// The rate of the limiter, where that is known: what ran below it used its credit, too.
    limiter: Option<VolumeRate>,
    /// The rate that the volume has for ever, as it is documented or was seen.
    base: Option<VolumeRate>,
    /// The measured time of a test of the rates, where it is known.
    test_ns: Option<u64>,
    diagnosis: Diagnosis,
}

/// A rate that a volume allows.
struct VolumeRate {
    rate: f64,
    unit: Unit,
}

impl UntestedOnTarget {
    /// The part of the rate of a measurement that lasts for certain; `None` where this says nothing
    /// about it.
    fn lasting_share(&self, record: &Record, index: usize) -> Option<f64> {
        let row = &record.measurements[index];
        if self.rows.contains(&index) {
            return Some(match &self.base {
                Some(base) => (base.rate / rate_of(row, base.unit)).max(LASTING_SHARE_MIN),
                None => LASTING_SHARE_MIN,
            });
        }
        let limiter = self.limiter.as_ref()?;
        if row.data.target != self.target || !waits_for_disk(&row.data) {
            return None;
        }
        let lasting_rate = match &self.base {
            Some(base) => base.rate,
            None => limiter.rate * LASTING_SHARE_MIN,
        };
        Some(lasting_rate / rate_of(row, limiter.unit))
    }
}

/// The least part of a rate that lasts on any volume with burst credit. Documented volumes fall at
/// most to a thirtieth: EBS gp2 from 3000/s to 100/s, Azure's P1 to P3 from 3500/s to 120/s.
const LASTING_SHARE_MIN: f64 = 1.0 / 30.0;

/// The rate of a measurement that may be that of a burst.
pub(crate) struct PerhapsBurst {
    /// The part of the rate that lasts for certain.
    pub(crate) lasting_share: f64,
    /// A run of this measured time shows whether all of it lasts; `None` where it takes as long as
    /// the disk needs.
    pub(crate) test_ns: Option<u64>,
}

/// Says whether the rate of a measurement may be that of a burst, as the finding warns; `None`
/// where nothing suggests it. A full link, which explains the rate as well, keeps it.
pub(crate) fn perhaps_burst(record: &Record, index: usize) -> Option<PerhapsBurst> {
    let mut findings = record.findings.iter();
    findings.find(|finding| finding.code == RULE.code && finding.is_serious())?;
    for one in all_untested(record) {
        if one.may_be_volume
            && let Some(lasting_share) = one.lasting_share(record, index)
        {
            return Some(PerhapsBurst {
                lasting_share,
                test_ns: one.test_ns,
            });
        }
    }
    None
}

/// All that was not tested and weighs most. Where a plateau is one, the cause of a fall of writes
/// is no question.
fn all_untested(record: &Record) -> Vec<UntestedOnTarget> {
    let mut all = untested_plateaus(record);
    all.extend(untested_in_other_unit(record));
    for fallen in falls_of_writes(record) {
        if all.iter().all(|known| known.target != fallen.target) {
            all.push(fallen);
        }
    }
    // What is a note of one target must not become a warning by that of another.
    let worst = all.iter().map(|one| one.diagnosis.severity).max();
    all.retain(|one| Some(one.diagnosis.severity) == worst);
    all
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut parts = all_untested(record).into_iter().map(|one| one.diagnosis);
    let mut joined = parts.next()?;
    for part in parts {
        joined.claim = format!("{} {}", joined.claim, part.claim);
        joined.remedy = format!("{} {}", joined.remedy, part.remedy);
        joined.evidence.extend(part.evidence);
    }
    Some(joined)
}

/// Writes that fell for good on one target, by a full write cache or by a used-up credit: nothing
/// after the fall shows whether reads fall, too.
struct UndecidedFall<'a> {
    fall: Fall,
    slowed: Vec<SlowedWorkload<'a>>,
    /// The workloads that only read, at a higher rate than that after the fall.
    faster_reads: Vec<usize>,
}

/// The falls of all targets that have one.
fn falls_of_writes(record: &Record) -> Vec<UntestedOnTarget> {
    let mut fallen = Vec::new();
    for slowed in slowed_on_each_target(record) {
        if let Some(undecided) = undecided_fall(record, slowed) {
            fallen.push(UntestedOnTarget {
                target: undecided.fall.target,
                rows: undecided.faster_reads.clone(),
                may_be_volume: true,
                limiter: None,
                base: Some(VolumeRate {
                    rate: undecided.fall.base,
                    unit: undecided.fall.unit,
                }),
                test_ns: None,
                diagnosis: diagnosis_of_fall(record, &undecided),
            });
        }
    }
    fallen
}

fn diagnosis_of_fall(record: &Record, undecided: &UndecidedFall<'_>) -> Diagnosis {
    let fall = undecided.fall;
    let claim = format!(
        "The writes of {} fell for good, to {}, and nothing was read after that: a full write \
         cache explains it, and so does a burst credit, which reads use, too. {} ran at a \
         higher rate before.",
        workload_name(record, undecided.slowed[0].measured.row),
        limit_text(fall.base, fall.unit.per_second()),
        workload_names(record, undecided.faster_reads.iter().copied()),
    );
    let path = target_argument(record, fall.target);
    let remedy =
        format!("Measure whether reads keep their rate: 'diskproof sustain {path} --rw randread'.");
    let evidence = undecided.slowed.iter().map(SlowedWorkload::evidence);
    Diagnosis::new(Severity::Warning, claim, evidence).with_remedy(remedy)
}

/// The undecided fall of the workloads of one target that became slower.
fn undecided_fall<'a>(
    record: &'a Record,
    slowed: Vec<SlowedWorkload<'a>>,
) -> Option<UndecidedFall<'a>> {
    let first = slowed.first()?;
    // A full write cache does not slow reads, so reads among them decide the question.
    if have_reads(&slowed) {
        return None;
    }
    // Only a limiter's rate is even, so another one is that of a full cache.
    if !is_even(record, first.measured.index) {
        return None;
    }
    let fall = first.fall_in(record, first.usual_unit());
    if fall.reads_after(record) != AfterFall::Unknown {
        return None;
    }
    let mut faster_reads = fall.rows_above(record);
    faster_reads.retain(|index| {
        let streams = &record.measurements[*index].data.workload.streams;
        streams.is_only(OpKind::Read)
    });
    if faster_reads.is_empty() {
        return None;
    }
    Some(UndecidedFall {
        fall,
        slowed,
        faster_reads,
    })
}

/// A workload that reaches this share of a known limit waits for that one. Chosen, not measured.
const KNOWN_LIMIT_SHARE: f64 = 0.9;

/// The rates of a volume whose burst credit in one unit ended, in the other unit: volumes that
/// limit requests often limit bytes as well.
struct OtherUnit {
    target: usize,
    /// The unit of the credit that ended.
    known: Unit,
    /// The highest of the rates in the other unit.
    rate: f64,
    /// The measurements that ran at them.
    rows: Vec<usize>,
    /// True if they are as even as those of a limiter; false if some had too few requests to tell.
    are_even: bool,
}

/// The targets with a credit in one unit only, and a rate in the other that a limiter may set and
/// that was not kept for long enough.
fn untested_in_other_unit(record: &Record) -> Vec<UntestedOnTarget> {
    let mut untested = Vec::new();
    for target in 0..record.targets.len() {
        untested.extend(untested_other_unit(record, target));
    }
    untested
}

fn untested_other_unit(record: &Record, target: usize) -> Option<UntestedOnTarget> {
    let other = rates_in_other_unit(record, target)?;
    let unit = other.known.other();
    let rows: Vec<&Row> = other
        .rows
        .iter()
        .map(|index| &record.measurements[*index])
        .collect();
    let time_at_rate = held_rate_of_rows(&rows, unit)?;
    let test = CreditTest::new(record, other.target, unit, other.rate);
    let identity = &record.targets[other.target];
    let is_tested = time_at_rate.held_ns >= test.ns as f64;
    if is_tested || is_hardly_a_burst(identity, other.rate, unit.per_second()) {
        return None;
    }
    let rate = limit_text(other.rate, unit.per_second());
    let counted = counted_name(unit);
    let evenness = if other.are_even {
        format!("at {rate}, as evenly as a limiter of {counted} sets it")
    } else {
        format!(
            "at up to {rate}, in too few requests to tell whether a limiter of {counted} set it"
        )
    };
    let claim = format!(
        "The burst credit of the volume in {} ended. {} ran {evenness}, and this run does not show \
         whether that rate lasts: at most {} passed at it without a pause.",
        counted_name(other.known),
        workload_names(record, other.rows.iter().copied()),
        format_duration(time_at_rate.held_ns as u64),
    );
    let mut observations = Vec::new();
    for index in &other.rows {
        let measured = measured_at(record, *index);
        if let Some((kind, op)) = measured.row.headline_ops().first() {
            let rate = RateFigure::new(*op, unit);
            let place = format!("figures/ops/{}/{}/value", kind.as_str(), rate.name);
            observations.push(measured.evidence(&place, rate.value, other.rate, unit.per_second()));
        }
    }
    let diagnosis = Diagnosis::new(Severity::Warning, claim, observations);
    Some(UntestedOnTarget {
        target,
        rows: other.rows,
        may_be_volume: true,
        limiter: None,
        base: None,
        test_ns: Some(test.ns),
        diagnosis: diagnosis.with_remedy(test_remedy(&test)),
    })
}

fn counted_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Requests => "requests",
        Unit::Bytes => "bytes",
    }
}

/// The rates of a target in the unit in which no credit of it ended, as far as a limiter may set
/// them; `None` where none or both did, where a write cache may be what ended, and where even rates
/// differ: one limiter sets one rate, and a medium streams as it can.
fn rates_in_other_unit(record: &Record, target: usize) -> Option<OtherUnit> {
    let credits = ended_credits(record, target);
    let credit = credits.first()?;
    let known = Unit::of_credit(credit);
    if credits.iter().any(|one| Unit::of_credit(one) != known) || may_be_cache(record, credit) {
        return None;
    }
    let mut other = OtherUnit {
        target,
        known,
        rate: 0.0,
        rows: Vec::new(),
        are_even: true,
    };
    let mut even_rate: Option<f64> = None;
    for measured in real_rows(record) {
        let row = measured.row;
        let waits_for_known = rate_of(row, known) >= KNOWN_LIMIT_SHARE * credit.base;
        if row.data.target != target
            || waits_for_known
            || is_after_pause(record, row)
            || limit_of_workload(record, measured).is_some()
        {
            continue;
        }
        let Some(possible) = undocumented_rate(record, measured.index, known.other()) else {
            continue;
        };
        if possible.is_even {
            let first = *even_rate.get_or_insert(possible.rate);
            if !are_near(possible.rate, first) {
                return None;
            }
        }
        other.are_even &= possible.is_even;
        other.rate = other.rate.max(possible.rate);
        other.rows.push(measured.index);
    }
    if other.rows.is_empty() {
        None
    } else {
        Some(other)
    }
}

fn untested_plateaus(record: &Record) -> Vec<UntestedOnTarget> {
    let mut untested = Vec::new();
    for plateau in plateaus_without_known_credit(record) {
        untested.extend(untested_plateau(record, plateau));
    }
    untested
}

/// The diagnosis of a plateau; `None` where the credit of its target is known, or would have ended.
fn untested_plateau(record: &Record, plateau: LimiterPlateau) -> Option<UntestedOnTarget> {
    if is_credit_known(record, plateau.target) {
        return None;
    }
    let time_at_rate = held_by_rows(record, plateau.target, plateau.unit)?;
    let test = CreditTest::new(record, plateau.target, plateau.unit, plateau.rate);
    if time_at_rate.held_ns >= test.ns as f64 {
        return None;
    }
    // The rate of a link lasts, and nothing else suggests a volume: no reason to doubt it.
    let (severity, cause) = match plateau.link {
        Some(link) if link.is_chosen => (
            Severity::Warning,
            "A limiter, or a link of exactly that rate,",
        ),
        Some(_) => (Severity::Note, "A link or a limiter"),
        None => (Severity::Warning, "A limiter"),
    };
    let claim = format!(
        "{cause} sets the rate of {}, {}, and this run does not show whether it is one that lasts: \
         at most {} passed at it without a pause. A volume with burst credit allows less for ever.",
        workload_names(record, plateau.rows.iter().copied()),
        limit_text(plateau.rate, plateau.unit.per_second()),
        format_duration(time_at_rate.held_ns as u64),
    );
    let documented = record
        .targets
        .get(plateau.target)
        .and_then(|target| base_of_burst(target, plateau.rate, plateau.unit.per_second()));
    let diagnosis = Diagnosis::new(severity, claim, plateau.evidence);
    Some(UntestedOnTarget {
        target: plateau.target,
        rows: plateau.rows,
        may_be_volume: plateau.link.is_none(),
        limiter: Some(VolumeRate {
            rate: plateau.rate,
            unit: plateau.unit,
        }),
        base: documented.map(|rate| VolumeRate {
            rate,
            unit: plateau.unit,
        }),
        test_ns: Some(test.ns),
        diagnosis: diagnosis.with_remedy(test_remedy(&test)),
    })
}

fn test_remedy(test: &CreditTest) -> String {
    format!(
        "Look up whether the volume has burst credit, or measure without a pause for {}: '{}'.",
        format_duration(test.ns),
        test.command
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::burst_exhausted::tests::reads_around_fall_of_writes;
    use crate::rules::burst_figure::tests::sustained;
    use crate::rules::bursts::tests::{burst, credit};
    use crate::rules::rate_limited;

    pub(super) const EXAMPLES: Examples = Examples::new(untested, sustained);

    fn untested() -> Record {
        rate_limited::tests::capped(|_| 0)
    }

    #[test]
    fn untested_credit_names_the_command_and_its_time() {
        let diagnosis = check(&untested()).unwrap();
        states(&diagnosis.claim, &["3000/s", "5.0 s"]);
        states(&diagnosis.remedy, &["diskproof run /data", "--time 60m"]);
        let mut known = untested();
        known.burst_credits = vec![credit()];
        assert_eq!(check(&known), None);
    }

    fn row<'a>(record: &'a mut Record, name: &str) -> &'a mut Row {
        crate::fixture::measured(record, name)
    }

    /// As the fixture, with writes that run at their lower rate for three seconds more, so that it
    /// is seen to be even.
    fn even_fall_of_writes(rate_after: Option<f64>) -> Record {
        let mut record = reads_around_fall_of_writes(rate_after);
        let writes = row(&mut record, "sequential-write");
        writes.figures.settled = Some(true);
        writes.data.wall_ns += 3_000_000_000;
        for op in writes.data.ops.values_mut() {
            let slow = op.series.cells[op.series.cells.len() * 3 / 4];
            let cells = 3_000_000_000 / op.series.interval_ns;
            op.series.cells.extend(vec![slow; cells as usize]);
        }
        record
    }

    #[test]
    fn fall_of_writes_without_reads_after_it_is_undecided() {
        let record = even_fall_of_writes(None);
        let [fallen] = &falls_of_writes(&record)[..] else {
            panic!("one target");
        };
        let diagnosis = &fallen.diagnosis;
        states(
            &diagnosis.claim,
            &["sequential-write fell", "210 MB/s", "sequential-read"],
        );
        states(
            &diagnosis.remedy,
            &["diskproof sustain /data --rw randread"],
        );
    }

    #[test]
    fn fall_of_writes_is_decided_by_reads_at_the_same_rate() {
        let record = even_fall_of_writes(Some(210e6));
        assert!(falls_of_writes(&record).is_empty());
    }

    #[test]
    fn fall_of_reads_is_no_fall_of_writes() {
        assert!(falls_of_writes(&burst()).is_empty());
    }

    #[test]
    fn uneven_rate_is_that_of_no_limiter() {
        let mut record = even_fall_of_writes(None);
        row(&mut record, "sequential-write").data.workload.depth = 1;
        assert!(falls_of_writes(&record).is_empty());
    }

    #[test]
    fn fall_of_writes_matters_only_where_reads_were_faster() {
        let mut record = even_fall_of_writes(None);
        for name in ["sequential-read", "random-read-d1", "random-read-d32"] {
            for op in row(&mut record, name).figures.ops.values_mut() {
                op.throughput.value = 1e6;
            }
        }
        assert!(falls_of_writes(&record).is_empty());
    }
}
