//! Makes the record of a run from its facts and measurements: estimates, commands, findings,
//! advice, verdict, expectations. It puts the parts of this crate together, and holds no threshold
//! of its own.

use crate::advice::advised_settings;
use crate::compare::{run_to_run, widen_to_runs};
use crate::estimate;
use crate::expect::Expected;
use crate::limited_by::limited_by;
use crate::limiter::{FoundCredit, found_credits};
use crate::moved;
use crate::ping::ping_figures;
use crate::promised::judge_promises;
use crate::reproduce::RanWorkload;
use crate::shared_fall::{WorkloadSlices, machine_fell, shared_fall};
use crate::steady::{KnownFall, SteadyPart};
use crate::sustain::drop_limit;
use crate::{reproduce, results, rules, slices, verdict};
use diskproof_model::data::RunData;
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::{Measurement, PerOp};
use diskproof_model::ping::REQUESTS_MAX;
use diskproof_model::plan::Plan;
use diskproof_model::record::{
    ClockFacts, FailedCall, Kept, RECORD_SCHEMA, Record, Stalled, TargetSilence, Tool,
};
use diskproof_model::row::{LatencySummary, OpFigures, Row, RowFigures};
use diskproof_model::target::{HostFacts, TargetIdentity};
use diskproof_model::trend::RunToRun;

/// Version of the rules that derive a record from what was measured.
///
/// 2: caveats, remedies and summaries follow from the plan and the figures instead of the verb, and
/// `random_page_cost` explains its distance from the usual value.
///
/// 3: `disturbed` knows the block bitmaps that ext4 reads, and the evidence of a stall points into
/// the lists of a series.
///
/// 4: a figure in a sentence has at least two digits, however wide its interval is.
///
/// 5: a run that ended before it measured anything does not call its figures reliable.
///
/// 6: every finding says what it means for the figures. Figures that are not the disk's decide no
/// threshold, and trust is about the figures alone, not about how good the disk is.
///
/// 7: a slow end of an accepted disk is told from noise by where its fast parts lie, and a figure
/// of a search is no better than the rows that it follows from.
///
/// 8: thresholds judge the latencies of an open loop from the intended start, and a percentile by
/// the independent latencies behind it. Falls and bent boundaries have the intervals of their few
/// rounds and rays, and a promised read rate is compared with the fastest level of a curve.
///
/// 9: a credit counts what slices moved at the edges of their cells, and less than a cell shows is
/// none. A verification with blocks that stayed cached proves what is left of them.
///
/// 10: a credit says whether it is a lower bound, streams show one in bytes, and reads after a fall
/// of writes tell it from a full cache. A control that is late by three times the promise breaks
/// it. Lumps of a group's limiter are no stall, and what others wrote while a test was stopped does
/// not reject a disk.
///
/// 11: a figure without an interval judges no other host. Advice rests on the method with the
/// highest low end, which a noisier one does not hide. Nine single requests have a mean.
///
/// 12: a limit of a volume says whether it lasts: 3000/s of a small EBS volume may be gp2's burst.
/// An uneven fall of reads on a disk of this machine is no credit, rows that the page cache
/// answered are no burst, and requests without an answer miss the longest latency. Zones of
/// platters, zeros of new rotating disks and arrays of the volume manager accuse nobody.
///
/// 13: a slow first request before one slice limits the depth of no other. A sweep states no knee
/// that may be below its first depth, and advice stays within the depths that were measured. An
/// acceptance test is judged by the health and the reads of all its runs.
///
/// 14: commits through the page cache and pauses over the end of a slice can stall, a fall in the
/// last second needs a limiter's evenness, flushes of O_DSYNC are asked for, and the survey's
/// content counts. Stalls that were met bound the rate of `load`; a grade that is open says so.
///
/// 15: stalls of a load are found by its longest requests, and those of this program are none of
/// the target. Trials on one version of PostgreSQL advise no other. A disk that stops answering
/// leaves a profile undecided, and its phases reach to the end.
///
/// 16: a limiter counts in the unit in which blocks of several sizes agree, and may have one of
/// each. A sustained load is steady only after its last fall. Slices without a row keep their
/// pauses and hangs, a search for a depth that rests on nothing is undecided, and cells whose
/// requests failed get no prediction. INSERTs can be imprecise, holes object by their effect, a hot
/// disk says so of its health, and a disk that is slow beyond a place holds what it claims.
///
/// 17: calls of the run itself, steps on files and servers that their disk fails are errors of the
/// disk; silences of warm-ups, fills, scans and acceptance tests are pauses, a first answer is
/// none; writes that failed are no lost content; limiters show in kinds of requests that share a
/// rate.
///
/// 18: a full link that the system does not report is no volume, and both limits of a volume are
/// stated. Rows with unanswered requests decide nothing. What waits for processors explain is no
/// miss, and a load that is not steady meets nothing. Silences are judged by the disk's own rate, a
/// first answer by whether the disk may sleep. Launches and trends are of one machine. A suspect
/// whose new run decides nothing is still one.
///
/// 19: what may be the rate of a burst meets no threshold that the lasting rate may miss, nor is a
/// cell of a sweep in a burst its best. Waits for processors leave trends and grades open, and
/// explain silences. The late share of a search for a rate may begin at a floor. Small blocks at
/// their own limit are no base of a credit in bytes, a full filesystem is no failing disk, and
/// silences of a server's start and checkpoints are pauses.
pub const JUDGING_VERSION: u32 = 20;

/// Everything about a run that is not a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// The program.
    pub tool: Tool,
    /// Unique among all runs on all machines.
    pub run_id: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// True if the run ended before its plan did.
    pub partial: bool,
    /// Why it ended early, in a sentence with what to do.
    pub ended_early: Option<String>,
    /// Targets that did not answer between the measured requests.
    pub stalled: Option<Stalled>,
    /// What a target failed outside of the measured requests.
    pub failed: Option<FailedCall>,
    /// The note that the user gave to the run.
    pub note: Option<String>,
    /// The machine.
    pub host: HostFacts,
    /// Times in which targets answered nothing before workloads that never began.
    pub silences: Vec<TargetSilence>,
    /// The very first answers of targets that no workload has.
    pub first_answers: Vec<TargetSilence>,
    /// The clock that timed it.
    pub clock: ClockFacts,
    /// The plan that it carried out.
    pub plan: Plan,
    /// The targets of the plan.
    pub targets: Vec<TargetIdentity>,
    /// The health reports of their disks.
    pub health: Vec<DiskHealth>,
    /// The variation from run to run.
    pub variation: RunVariation,
}

/// What is known of the variation from run to run of one plan.
#[derive(Debug, Clone, PartialEq)]
pub enum RunVariation {
    /// Earlier runs of the same plan on the same targets, which show it.
    Earlier(Vec<Record>),
    /// What such runs showed, by measurement.
    Known(Vec<Option<RunToRun>>),
}

/// The record of a run: what was measured, and what follows from it. `expected` are the thresholds
/// of the user.
///
/// The order matters, as each part reads the record so far: results need the rows, findings both,
/// limits and answers the findings, advice and verdict all of these. The answer of a sustained load
/// decides between the causes that findings state for its fall.
pub fn judge(facts: RunFacts, data: &RunData, expected: &[Expected]) -> Record {
    let credits = found_credits(data, &facts.plan, &facts.targets);
    let mut measurements = Vec::new();
    for steady in steady_parts(&data.measurements, &credits) {
        measurements.push(steady_row(&steady, &facts.plan));
    }
    add_commands(&mut measurements, &facts);
    let mut record = Record {
        schema: RECORD_SCHEMA.to_owned(),
        results: Vec::new(),
        burst_credits: Vec::new(),
        tool: facts.tool,
        method: facts.plan.method,
        judging: JUDGING_VERSION,
        run_id: facts.run_id,
        started: facts.started,
        partial: facts.partial,
        ended_early: facts.ended_early,
        stalled: facts.stalled,
        failed: facts.failed,
        note: facts.note,
        host: facts.host,
        silences: facts.silences,
        first_answers: facts.first_answers,
        clock: facts.clock,
        moved: moved::total(&data.measurements, &facts.plan),
        plan: facts.plan,
        targets: facts.targets,
        measurements,
        health: facts.health,
        verdict: None,
        findings: Vec::new(),
        advice: Vec::new(),
        expectations: Vec::new(),
        kept: kept(data),
        dropped: data.dropped.clone(),
    };
    results::add_measured(&mut record, data);
    add_run_to_run(&mut record, facts.variation);
    record.burst_credits = credits
        .iter()
        .map(|credit| credit.record(&record.measurements))
        .collect();
    results::add_summaries(&mut record, data);
    record.findings = rules::findings(&record);
    results::add_answers(&mut record, data);
    drop_other_causes(&mut record);
    add_limits(&mut record);
    record.advice = advised_settings(&record);
    record.verdict = Some(verdict::verdict(&record));
    record.expectations = judge_promises(&record);
    record.expectations.extend(drop_limit(&record));
    let mut conditions = Vec::new();
    for threshold in expected {
        conditions.push(threshold.evaluate(&record));
    }
    record.expectations.extend(conditions);
    verdict::answer_fitness(&mut record);
    record
}

/// The part of what was measured that the rows of a record hold: of a long ping only the newest
/// requests.
fn kept(data: &RunData) -> Kept {
    if data
        .measurements
        .iter()
        .any(|measurement| measurement.requests.len() > REQUESTS_MAX)
    {
        Kept::FiguresOnly
    } else {
        Kept::Whole
    }
}

/// Drops the findings that state another cause of the load's fall than the result of a sustained
/// load. Rules examine the load alone, the result also what happened after its pauses and what the
/// disks counted. What another row shows, such as that of a precondition, stays.
fn drop_other_causes(record: &mut Record) {
    let Some(sustain) = record.sustain() else {
        return;
    };
    let cause = sustain.drop.as_ref().map(|drop| drop.cause);
    let load = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == sustain.workload);
    record
        .findings
        .retain(|finding| match rules::cause_stated_by(&finding.code) {
            Some(stated) if cause != Some(stated) => match load {
                Some(index) => !finding.concerns(index),
                None => false,
            },
            Some(_) | None => true,
        });
}

/// Adds what limited each workload. The findings must already be there, and be final.
fn add_limits(record: &mut Record) {
    let indices = 0..record.measurements.len();
    let limits: Vec<_> = indices.map(|index| limited_by(record, index)).collect();
    for (row, limit) in record.measurements.iter_mut().zip(limits) {
        row.figures.limited_by = Some(limit);
    }
}

/// Adds the variation of each workload from run to run, and widens its intervals to that.
fn add_run_to_run(record: &mut Record, variation: RunVariation) {
    let varying = match variation {
        RunVariation::Earlier(earlier) => run_to_run(record, &earlier),
        RunVariation::Known(known) => known,
    };
    for (row, varying) in record.measurements.iter_mut().zip(varying) {
        row.run_to_run = varying;
        widen_to_runs(row);
    }
}

/// Adds the command that measures each row again.
fn add_commands(rows: &mut [Row], facts: &RunFacts) {
    let mut commands = Vec::new();
    for row in &*rows {
        commands.push(reproduce_command(row, rows, facts));
    }
    for (row, command) in rows.iter_mut().zip(commands) {
        row.figures.reproduce = command;
    }
}

/// The command that measures a figure again, with everything that ran at the same time on its
/// target; empty where the plan does not have the workload.
fn reproduce_command(shown: &Row, all: &[Row], facts: &RunFacts) -> String {
    let target = facts.targets.get(shown.data.target);
    let group = facts.plan.group_of(&shown.data.workload.name);
    let (Some(target), Some(group)) = (target, group) else {
        return String::new();
    };
    if let Some(ping) = facts.plan.ping() {
        let asked = &group.workloads[0];
        return reproduce::ioping_command(&shown.data, asked, &ping.requests, target);
    }
    let mut members = Vec::new();
    for asked in group.workloads {
        let ran = all.iter().map(|row| &row.data).find(|measurement| {
            measurement.target == shown.data.target && measurement.workload.name == asked.name
        });
        if let Some(ran) = ran {
            members.push(RanWorkload { ran, asked });
        }
    }
    reproduce::fio_command(&members, target, group)
}

/// The measurements of a run with their steady parts. A fall that the whole run shows decides where
/// those begin.
fn steady_parts<'m>(
    measurements: &'m [Measurement],
    credits: &[FoundCredit],
) -> Vec<SteadyPart<'m>> {
    let all: Vec<WorkloadSlices<'_>> = measurements
        .iter()
        .map(WorkloadSlices::from_measurement)
        .collect();
    let falls = shared_fall(&all);
    let mut parts = Vec::new();
    for (index, measurement) in measurements.iter().enumerate() {
        // Of two credits that a row used it is sustained after the last one.
        let sustained_from_ns = credits
            .iter()
            .filter(|credit| credit.target == measurement.target)
            .filter_map(|credit| credit.sustained_from_ns(index))
            .max();
        // A limiter whose rate is known explains more than a fall that workloads share.
        let known_fall = match (sustained_from_ns, falls[index]) {
            (Some(from_ns), _) => Some(KnownFall::Limiter { from_ns }),
            (None, Some(first_slice)) => Some(KnownFall::Shared { first_slice }),
            (None, None) => None,
        };
        let mut steady = SteadyPart::find(measurement, known_fall);
        if let Some(burst_end_ns) = steady.burst_end_ns()
            && known_fall.is_none()
            && machine_fell(&all, index, burst_end_ns)
        {
            steady = SteadyPart::unsettled(measurement);
        }
        parts.push(steady);
    }
    parts
}

/// The row of a measurement, with the figures of its steady part.
fn steady_row(steady: &SteadyPart<'_>, plan: &Plan) -> Row {
    let measurement = steady.measurement;
    let mut data = steady.as_recorded();
    let older = data.requests.len().saturating_sub(REQUESTS_MAX);
    data.requests.drain(..older);
    let mut ops = PerOp::new();
    for (kind, op) in &data.ops {
        let rate = estimate::rate_after(&op.series, measurement.wall_ns, steady.settling);
        let intended = op.latency_intended.as_ref();
        let figures = OpFigures {
            iops: rate.ops,
            throughput: rate.bytes,
            latency: LatencySummary::with_unanswered(&op.latency, measurement.hang),
            latency_intended: intended
                .map(|latency| LatencySummary::with_unanswered(latency, measurement.hang)),
        };
        ops.insert(*kind, figures);
    }
    slices::widen(&mut ops, measurement, steady.settling.settling_ns);
    let together_with = match plan.group_of(&measurement.workload.name) {
        None => Vec::new(),
        Some(group) => group
            .names_beside(&measurement.workload.name)
            .map(str::to_owned)
            .collect(),
    };
    let figures = RowFigures {
        settling_ns: steady.settling.settling_ns,
        settled: steady.settling.settled,
        phases: steady.phases(),
        together_with,
        ops,
        ping: plan.ping().map(|_| ping_figures(measurement)),
        limited_by: None,
        reproduce: String::new(),
    };
    Row {
        data,
        run_to_run: None,
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::{RunData, judge};
    use crate::fixture::{self, FixtureRun};
    use diskproof_model::measurement::OpKind;
    use diskproof_model::merge::{MergeError, MergeKind};
    use diskproof_model::plan::Task;
    use diskproof_model::series::Cell;

    #[test]
    fn a_healthy_run_has_figures_and_no_findings() {
        let mut record = fixture::record();
        assert_eq!(record.findings, []);
        let m = fixture::measured(&mut record, "random-read-d32");
        let read = &m.figures.ops[&OpKind::Read];
        assert!(
            (read.iops.value - 10_000.0).abs() < 100.0,
            "{:?}",
            read.iops
        );
        assert_eq!(m.figures.settled, Some(true));
        assert!((read.throughput.value / read.iops.value - 8192.0).abs() < 1.0);
        assert!((3_200_000..3_205_000).contains(&read.latency.p50.unwrap()));
        assert!(m.figures.reproduce.starts_with("fio "));
    }

    #[test]
    fn data_of_two_hosts_is_judged_as_their_sum() {
        let FixtureRun {
            facts,
            measurements,
        } = fixture::filled(fixture::run());
        let one = RunData::from_measurements(measurements);
        let mut both = one.clone();
        both.merge(one.clone(), MergeKind::OtherHost).unwrap();
        let (both, one) = (judge(facts.clone(), &both, &[]), judge(facts, &one, &[]));
        for (sum, part) in both.measurements.iter().zip(&one.measurements) {
            assert_eq!(sum.data.achieved_depth, 2.0 * part.data.achieved_depth);
            for (kind, op) in sum.ops() {
                let part = part.op(kind).unwrap();
                assert_eq!(
                    (op.data.count, op.data.bytes),
                    (2 * part.data.count, 2 * part.data.bytes)
                );
                assert_eq!(op.figures.latency.max, part.figures.latency.max);
                assert!((op.figures.iops.value - 2.0 * part.figures.iops.value).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn data_of_something_else_has_no_sum() {
        let measurements = fixture::run().measurements;
        let surface = Some(fixture::surveyed::SurveyedDisk::rotating().survey(1));
        let mut data = RunData::from_measurements(measurements.clone());
        let surveyed = RunData {
            surface,
            ..data.clone()
        };
        let other = RunData::from_measurements(measurements[1..].to_vec());
        for (other, error) in [
            (surveyed, MergeError::NoWorkload),
            (other, MergeError::OtherWorkloads),
        ] {
            assert_eq!(data.merge(other, MergeKind::SameHost), Err(error));
        }
    }

    #[test]
    fn a_run_on_files_that_ended_before_its_first_step_is_one_on_files() {
        let mut facts = fixture::run().facts;
        facts.plan.tasks = vec![Task::Files(fixture::files::files_plan())];
        let record = judge(facts, &RunData::default(), &[]);
        assert_eq!(record.files().map(|files| files.steps.len()), Some(0));
    }

    #[test]
    fn series_are_thinned_for_the_record() {
        let record = fixture::faulty("sequential-write", |m| {
            let cell = Cell {
                ops: 1,
                ..Cell::default()
            };
            m.ops.values_mut().next().unwrap().series.cells = vec![cell; 8192];
        });
        let op = record.measurements[0].data.ops.values().next();
        let series = op.unwrap().shown_series();
        assert_eq!((series.interval_ns, series.cells.len()), (100_000_000, 820));
        assert_eq!(series.total().ops, 8192);
    }

    #[test]
    fn reads_and_writes_of_a_mix_share_the_settling_time() {
        let mut record = fixture::faulty("mixed-random", |m| {
            for cell in m.ops.values_mut().flat_map(|op| &mut op.series.cells[..40]) {
                cell.ops /= 10;
                cell.bytes /= 10;
            }
        });
        let m = fixture::measured(&mut record, "mixed-random");
        assert!(
            (400_000_000..=700_000_000).contains(&m.figures.settling_ns),
            "{}",
            m.figures.settling_ns
        );
        for op in m.figures.ops.values() {
            assert!((op.iops.value - 5000.0).abs() < 100.0, "{:?}", op.iops);
        }
    }
}
