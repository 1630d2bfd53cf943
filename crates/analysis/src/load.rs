//! Judges a search for the highest rate that keeps a promise: gives the answer of its trials, the
//! objection that this program or a cache answered in place of the disk, and the cause for which
//! the promise breaks above it.

use crate::campaign::{RateAnswer, RateControl, answer_of_trials};
use crate::rules::{RateOfKind, own_excess_write_bytes, reached_group_limit};
use crate::words::uncapitalised;
use diskproof_model::digits::to_a_percent;
use diskproof_model::finding::RateLimit;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, METHOD_VERSION};
use diskproof_model::proof::FigureSource;
use diskproof_model::rate::{
    BreakCause, BreakLimit, LoadControl, LoadData, LoadFigures, LoadOutcome, LoadRecord,
    LoadStalls, RateCellKind, RatePlan, RateTrial,
};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::target::TargetKind;
use diskproof_model::units::{counted, format_duration, format_latency, format_percent};

/// Up to this share of the latency limit, this program's own delay does not decide an answer.
const GENERATOR_SHARE_MAX: f64 = 0.01;
/// No timer of the kernel is more exact than this, in nanoseconds: a smaller delay is in every
/// latency that a program sees.
const GENERATOR_NS_MIN: u64 = 100_000;
/// A longer delay counts only where it alone made this share of the late requests late. A virtual
/// machine whose processor is taken away for a millisecond now and then delays one request of a
/// hundred by that, which decides nothing where the limit is far away.
const MADE_LATE_SHARE_MAX: f64 = 0.05;
/// Where this share of the late requests was late in stalls of this program, the answer is its own:
/// it made more of them late than the disk did.
const OWN_STALLS_SHARE: f64 = 0.5;
/// The offered rate may differ from the wanted one by this share before the answer counts as this
/// program's own.
const OFFERED_MISSED_SHARE_MAX: f64 = 0.015;
/// On top of that share, the count of a Poisson process may differ by this many of its standard
/// deviations.
const OFFERED_DEVIATIONS: f64 = 4.0;
/// A disk that wrote more than this share of the requested bytes on top of them wrote a journal.
const JOURNAL_SHARE: f64 = 0.5;

/// The result of the search of a plan; `None` of a plan that has no search, or several. `record`
/// must already have its rows, their limits and the findings.
pub(crate) fn load_record(record: &Record, trials: &[RateTrial]) -> Option<LoadRecord> {
    let workloads = record.plan.workload_task()?;
    let Decide::Rate(plan) = &workloads.decide else {
        return None;
    };
    let mut searched = workloads.searched();
    let (index, _) = searched.next()?;
    if searched.next().is_some() {
        return None;
    }
    Some(LoadRecord {
        figures: load_figures(record, plan, index, trials),
        data: LoadData {
            trials: trials.to_vec(),
        },
    })
}

/// The figures of one search: that of the workload at this index of the plan, from its trials.
pub(crate) fn load_figures(
    record: &Record,
    plan: &RatePlan,
    index: usize,
    trials: &[RateTrial],
) -> LoadFigures {
    let answer = answer_of_trials(plan, record.plan.seed, index, trials);
    let rows = SearchRows::new(record, index);
    let held = trials
        .iter()
        .rposition(|trial| trial.kind == RateCellKind::Hold);
    LoadFigures {
        outcome: load_outcome(&rows, plan, trials, &answer),
        low: answer.low,
        rate: answer.rate,
        high: answer.high,
        saturated: answer.saturated,
        slope: answer.slope,
        episodes: answer.episodes,
        held,
        control: control_of_trials(trials, answer.control),
        drift: answer.drift,
        falls: answer.falls,
        unseen_credit: answer.unseen_credit,
        stalls: stalls_of_answer(&answer),
        generator_share: generator_share(plan, trials),
        generator_late_share: made_late_share(trials),
        cause: match group_cause(record, &rows, trials, answer.saturated) {
            Some(cause) => cause,
            None => break_cause(&rows),
        },
    }
}

fn stalls_of_answer(answer: &RateAnswer) -> LoadStalls {
    let stalls = answer.stalls;
    let mean_s = stalls.length_s / f64::from(stalls.met.max(1));
    LoadStalls {
        met: stalls.met,
        own_trials: stalls.own_cells,
        mean_ns: (mean_s * 1e9) as u64,
        observed_ns: (stalls.observed_s * 1e9) as u64,
        unseen_every_ns: (stalls.unseen_every_s() * 1e9) as u64,
        unseen_ns: answer
            .unseen_stall_s
            .map(|length_s| (length_s * 1e9) as u64),
    }
}

/// The rows of a search that the record keeps: the last hold and the last control.
struct SearchRows<'a> {
    held: Option<&'a Row>,
    control: Option<&'a Row>,
    /// At the control the disk wrote a journal.
    writes_journal: bool,
    /// A finding says that the held rate is not the disk's, such as one that a cache served.
    has_other_source: bool,
}

impl<'a> SearchRows<'a> {
    /// Finds them by the index of the searched workload in the plan.
    fn new(record: &'a Record, index: usize) -> Self {
        let held = row_index(record, index, RateCellKind::Hold);
        let control = row_index(record, index, RateCellKind::Control);
        Self {
            held: held.map(|row| &record.measurements[row]),
            control: control.map(|row| &record.measurements[row]),
            writes_journal: control.is_some_and(|row| writes_a_journal(record, row)),
            has_other_source: match held {
                Some(row) => has_other_source(record, row),
                None => false,
            },
        }
    }
}

/// True if a finding says that the rate of a row is not the disk's. Requests without an answer are:
/// the search counts them as late.
fn has_other_source(record: &Record, row: usize) -> bool {
    match record.objection(FigureSource::Measurement(row)) {
        Some(objection) => !objection.is_of_hang(),
        None => false,
    }
}

/// The outcome of a search. An unfinished one needs no objection, and a doubt about this program
/// comes before one about the disk.
fn load_outcome(
    rows: &SearchRows<'_>,
    plan: &RatePlan,
    trials: &[RateTrial],
    answer: &RateAnswer,
) -> LoadOutcome {
    if answer.outcome == LoadOutcome::Unfinished {
        LoadOutcome::Unfinished
    } else if is_limited_by_generator(plan, trials) || is_stalled_by_generator(answer) {
        LoadOutcome::Generator
    } else if rows.has_other_source {
        LoadOutcome::NotTheDisk
    } else {
        answer.outcome
    }
}

/// The row of the last hold or control of the workload at this index of the plan.
fn row_index(record: &Record, index: usize, kind: RateCellKind) -> Option<usize> {
    let template = record.plan.workloads().get(index)?;
    let name = kind.row_name(&template.name);
    record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == name)
}

fn control_of_trials(trials: &[RateTrial], answer: Option<RateControl>) -> Option<LoadControl> {
    let control = answer?;
    let trial = trials
        .iter()
        .rposition(|trial| trial.kind == RateCellKind::Control)?;
    Some(LoadControl {
        factor: control.factor,
        rate: trials[trial].rate,
        late_share: control.late_share,
        failed: control.failed,
        trial,
    })
}

/// The trials that the answer rests on: those near the rate, and the hold.
fn deciding_trials(trials: &[RateTrial]) -> impl Iterator<Item = &RateTrial> {
    trials.iter().filter(|trial| match trial.kind {
        RateCellKind::Near | RateCellKind::Repeated | RateCellKind::Hold => !trial.is_over,
        RateCellKind::Doubling
        | RateCellKind::Saturation
        | RateCellKind::Curve
        | RateCellKind::Control => false,
    })
}

/// The median of this program's own delays in the deciding trials, as a share of the latency limit.
fn generator_share(plan: &RatePlan, trials: &[RateTrial]) -> Option<f64> {
    let delay_ns = generator_delay_ns(trials)?;
    Some(delay_ns as f64 / plan.limit_ns as f64)
}

/// The median of the 99th percentiles of this program's own delays in the deciding trials, in
/// nanoseconds; `None` where none was measured.
fn generator_delay_ns(trials: &[RateTrial]) -> Option<u64> {
    let mut delays: Vec<u64> = deciding_trials(trials)
        .filter_map(|trial| trial.dispatch_p99_ns)
        .collect();
    delays.sort_unstable();
    delays.get(delays.len() / 2).copied()
}

/// The share of the late requests of the deciding trials that only this program's own delay made
/// late; 0 without any.
fn made_late_share(trials: &[RateTrial]) -> f64 {
    let (mut late, mut late_by_own_delay) = (0, 0);
    for trial in deciding_trials(trials) {
        late += trial.total().late;
        late_by_own_delay += trial.dispatch_late;
    }
    late_by_own_delay as f64 / late.max(1) as f64
}

/// Returns `true` if this program failed to offer the wanted rates, so that the answer is its own
/// and not the disk's. Poisson arrivals may miss the rate by chance, and requests in flight at the
/// end of a trial are not counted.
fn is_limited_by_generator(plan: &RatePlan, trials: &[RateTrial]) -> bool {
    if let Some(delay_ns) = generator_delay_ns(trials)
        && delay_ns > GENERATOR_NS_MIN
        && delay_ns as f64 > GENERATOR_SHARE_MAX * plan.limit_ns as f64
        && made_late_share(trials) > MADE_LATE_SHARE_MAX
    {
        return true;
    }
    let (mut wanted, mut offered) = (0.0, 0.0);
    // Requests at the end of a trial that are neither answered nor late yet.
    let mut in_flight_at_ends = 0.0;
    for trial in deciding_trials(trials) {
        wanted += trial.rate * trial.wall_ns as f64 / 1e9;
        offered += trial.total().requests as f64;
        in_flight_at_ends += trial.rate * plan.limit_ns as f64 / 1e9;
    }
    let missed = (offered - wanted).abs();
    missed
        > OFFERED_MISSED_SHARE_MAX * wanted + OFFERED_DEVIATIONS * wanted.sqrt() + in_flight_at_ends
}

/// Returns `true` if this program, kept off the processors, made most of the late requests late, or
/// those for which the hold broke the promise.
fn is_stalled_by_generator(answer: &RateAnswer) -> bool {
    let stalls = answer.stalls;
    stalls.own_late_share() >= OWN_STALLS_SHARE
        || (answer.outcome == LoadOutcome::NotHeld && stalls.is_own_hold)
}

/// The average time that a request waited in each part, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    reads: f64,
    writes: f64,
    syncs: f64,
}

impl Waits {
    /// The waits of a row. Those of a transaction add up over all its reads. Without transactions a
    /// request is a read or a write, and each kind counts by its share of the requests.
    fn from_row(row: &Row) -> Self {
        if let Some(transaction) = row.data.workload.transaction {
            return Self {
                reads: f64::from(transaction.reads) * mean_ns(row, OpKind::Read).unwrap_or(0.0),
                // They follow its answer, and delay nobody.
                writes: 0.0,
                syncs: mean_ns(row, OpKind::Sync).unwrap_or(0.0),
            };
        }
        let requests = count(row, OpKind::Read) + count(row, OpKind::Write);
        Self {
            reads: wait_of_kind(row, OpKind::Read, requests),
            writes: wait_of_kind(row, OpKind::Write, requests),
            syncs: wait_of_kind(row, OpKind::Sync, requests),
        }
    }
}

/// The time that an average request of so many waited for operations of one kind, in nanoseconds.
fn wait_of_kind(row: &Row, kind: OpKind, requests: u64) -> f64 {
    match mean_ns(row, kind) {
        Some(mean_ns) => mean_ns * count(row, kind) as f64 / requests.max(1) as f64,
        None => 0.0,
    }
}

/// Completed operations of one kind.
fn count(row: &Row, kind: OpKind) -> u64 {
    match row.op(kind) {
        Some(op) => op.data.latency.count(),
        None => 0,
    }
}

fn mean_ns(row: &Row, kind: OpKind) -> Option<f64> {
    let op = row.op(kind)?;
    if op.data.latency.count() == 0 {
        None
    } else {
        Some(op.data.latency.mean_ns())
    }
}

/// The limit that broke the promise: a cap or the processors, which counters show at the control
/// or, where it set in only later, in the hold. Else the part of a request that took longest at the
/// control in comparison with the rate that holds.
fn break_cause(rows: &SearchRows<'_>) -> BreakCause {
    for row in rows.control.iter().chain(&rows.held) {
        if let Some(cause) = counted_cause(row) {
            return cause;
        }
    }
    let Some(control) = rows.control else {
        return BreakCause {
            limit: BreakLimit::Unknown,
            why: "no rate above it was measured".to_owned(),
        };
    };
    let above = Waits::from_row(control);
    let below = match rows.held {
        Some(row) => Waits::from_row(row),
        None => Waits::default(),
    };
    let grown = most_grown(below, above);
    if grown.growth_ns() <= 0.0 {
        return BreakCause {
            limit: BreakLimit::Unknown,
            why: "no part of a request took longer".to_owned(),
        };
    }
    let total_ns = above.reads + above.writes + above.syncs;
    let why = format!(
        "{} of {} spent in them, {} at the rate that holds",
        format_percent(grown.above_ns / total_ns),
        format_latency(total_ns as u64),
        format_latency(grown.below_ns as u64),
    );
    let limit = match grown.limit {
        BreakLimit::Flushes if rows.writes_journal => BreakLimit::Journal,
        limit => limit,
    };
    BreakCause { limit, why }
}

/// The limit of a control group that the target reaches when more is offered than it serves, or at
/// the control. The rates that keep the promise lie below it. In a short search, the requests of a
/// full queue make the served rate too low, and the control shows more.
fn group_cause(
    record: &Record,
    rows: &SearchRows<'_>,
    trials: &[RateTrial],
    saturated: f64,
) -> Option<BreakCause> {
    for (row, kind) in [
        (rows.control, RateCellKind::Control),
        (rows.held, RateCellKind::Hold),
    ] {
        let Some(row) = row else {
            continue;
        };
        let trial = trials.iter().rfind(|trial| trial.kind == kind)?;
        let mut served_rates = vec![saturated];
        if kind == RateCellKind::Control {
            served_rates.push(trial.served);
        }
        for served in served_rates {
            let rates = rates_when_serving(row, trial, served);
            if let Some(why) = reached_group_limit(record, row.data.target, &rates) {
                return Some(BreakCause {
                    limit: BreakLimit::Cap,
                    why,
                });
            }
        }
    }
    None
}

/// The reads and writes of a row, as they would be at another rate of its transactions or requests.
fn rates_when_serving(row: &Row, trial: &RateTrial, served: f64) -> Vec<RateOfKind> {
    let mut rates = Vec::new();
    if trial.served <= 0.0 {
        return rates;
    }
    for kind in OpKind::TRANSFERS {
        if let Some(op) = row.op(kind) {
            rates.push(RateOfKind {
                kind,
                iops: op.figures.iops.value * served / trial.served,
                throughput: op.figures.throughput.value * served / trial.served,
            });
        }
    }
    rates
}

/// The cause that counters of a row show; `None` where they show none.
fn counted_cause(row: &Row) -> Option<BreakCause> {
    let limited = row.figures.limited_by.as_ref()?;
    let limit = match limited.limit {
        RateLimit::Cap => BreakLimit::Cap,
        RateLimit::Cpu => BreakLimit::Cpu,
        _ => return None,
    };
    Some(BreakCause {
        limit,
        why: limited.why.clone(),
    })
}

/// The time that one part of a request took, at the rate that holds and at the control.
#[derive(Debug, Clone, Copy)]
struct GrownWait {
    limit: BreakLimit,
    below_ns: f64,
    above_ns: f64,
}

impl GrownWait {
    fn growth_ns(&self) -> f64 {
        self.above_ns - self.below_ns
    }
}

/// The part of a request whose time grew most from the rate that holds to the control.
fn most_grown(below: Waits, above: Waits) -> GrownWait {
    let mut grown = GrownWait {
        limit: BreakLimit::Reads,
        below_ns: below.reads,
        above_ns: above.reads,
    };
    for other in [
        GrownWait {
            limit: BreakLimit::Writes,
            below_ns: below.writes,
            above_ns: above.writes,
        },
        GrownWait {
            limit: BreakLimit::Flushes,
            below_ns: below.syncs,
            above_ns: above.syncs,
        },
    ] {
        if other.growth_ns() > grown.growth_ns() {
            grown = other;
        }
    }
    grown
}

/// Returns `true` if the disk wrote clearly more than was requested, below a filesystem.
fn writes_a_journal(record: &Record, index: usize) -> bool {
    let row = &record.measurements[index];
    let has_filesystem = match record.targets.get(row.data.target) {
        Some(target) => target.kind != TargetKind::BlockDevice,
        None => false,
    };
    let Some(excess_bytes) = own_excess_write_bytes(record, index) else {
        return false;
    };
    let asked_bytes = row.data.asked.write_bytes;
    has_filesystem && asked_bytes > 0 && excess_bytes as f64 > JOURNAL_SHARE * asked_bytes as f64
}

/// `no disk counter confirms the figures (unproven)`: the objection to the held rate of the
/// workload with this index in the plan.
fn why_not_the_disk(record: &Record, searched: usize) -> String {
    let held = row_index(record, searched, RateCellKind::Hold);
    let objection = held.and_then(|index| record.objection(FigureSource::Measurement(index)));
    match objection {
        Some(objection) => uncapitalised(&objection.text()),
        None => LoadOutcome::NotTheDisk.as_str().to_owned(),
    }
}

/// The answer where perhaps no rate keeps the promise. A control that kept it contradicts the cells
/// below it, so that no rate is named as the highest.
fn perhaps_none_text(figures: &LoadFigures, unit: &str, promise: &str) -> String {
    match figures.control {
        Some(control) if !control.failed => {
            let what_broke = if figures.stalls.met > 0 {
                "stalls broke it"
            } else {
                "it broke"
            };
            format!(
                "undecided {promise}: {what_broke} at low rates, and {} {unit} was not shown to \
                 break it",
                to_a_percent(control.rate)
            )
        }
        _ => format!(
            "undecided: at most {} {unit} {promise}, perhaps none",
            to_a_percent(figures.high)
        ),
    }
}

/// The answer of a search as a clause of the headline; `None` where the plan has no search.
pub(crate) fn load_clause(record: &Record, load: &LoadRecord) -> Option<String> {
    let figures = &load.figures;
    let workloads = record.plan.workload_task()?;
    let Decide::Rate(plan) = &workloads.decide else {
        return None;
    };
    // A workload of a given time may come before the searched one.
    let (searched, workload) = workloads.searched().next()?;
    let unit = match workload.transaction {
        Some(_) => "transactions/s",
        None => "requests/s",
    };
    let between = format!(
        "between {} and {} {unit}",
        to_a_percent(figures.low),
        to_a_percent(figures.high)
    );
    let promise = format!(
        "with {} % within {}",
        plan.percent,
        format_latency(plan.limit_ns)
    );
    Some(match figures.outcome {
        LoadOutcome::Sustained => format!(
            "sustains {} {unit} (95 %: {} to {}) {promise}{}",
            to_a_percent(figures.rate),
            to_a_percent(figures.low),
            to_a_percent(figures.high),
            break_text(figures)
        ),
        LoadOutcome::AtLeast => at_least_text(figures, plan, unit, &promise),
        LoadOutcome::PerhapsNone => perhaps_none_text(figures, unit, &promise),
        LoadOutcome::NotHeld => {
            format!(
                "undecided {promise}, {between}: the lower end did not last{}",
                cap_text(figures)
            )
        }
        LoadOutcome::FewEpisodes => {
            format!(
                "undecided {promise}, {between}: {}{}",
                few_episodes_text(load),
                cap_text(figures)
            )
        }
        LoadOutcome::Generator => {
            format!(
                "undecided {promise}: limited by the generator; this program did not offer the \
                 rates on time"
            )
        }
        LoadOutcome::NotTheDisk => {
            format!(
                "undecided {promise}: {}",
                why_not_the_disk(record, searched)
            )
        }
        LoadOutcome::Unfinished => {
            format!(
                "undecided {promise}{}",
                unfinished_text(record, load, unit, &between)
            )
        }
    })
}

/// The answer that names a rate which was kept, and none that was not.
fn at_least_text(figures: &LoadFigures, plan: &RatePlan, unit: &str, promise: &str) -> String {
    let end = match figures.control {
        Some(control) if control.failed => break_text(figures),
        _ => format!("{}{}", not_broken_text(figures, plan), cap_text(figures)),
    };
    format!(
        "sustains at least {} {unit} {promise}{end}",
        to_a_percent(figures.low)
    )
}

/// How far a search came that has no answer.
fn unfinished_text(record: &Record, load: &LoadRecord, unit: &str, between: &str) -> String {
    // The steps of a search decide it, and they are not those of an older method.
    if record.method != METHOD_VERSION && !record.partial {
        return format!(
            ": method {} searched by other rules; measure again",
            record.method
        );
    }
    if load.figures.rate > 0.0 {
        return format!(", so far {between}: the search ended early");
    }
    match load.lowest_overload() {
        Some(rate) => format!(
            ": at most {} {unit}, perhaps none; the search ended early",
            to_a_percent(rate)
        ),
        None => ": the search ended before it saw the limit".to_owned(),
    }
}

/// Why few late episodes, or a few stalls, decide nothing. Where the promise is kept nearly up to
/// saturation there are none below it, and the rates of the hold and of the control say more than
/// any longer search.
fn few_episodes_text(load: &LoadRecord) -> String {
    let figures = &load.figures;
    let held = figures.held.and_then(|trial| load.data.trials.get(trial));
    if figures.stalls.met > 0 && figures.low <= 0.0 {
        return format!(
            "{} of {} on average in {} may come so often that they alone break it; a longer --time \
             or --prove sees more",
            counted(u64::from(figures.stalls.met), "stall"),
            format_duration(figures.stalls.mean_ns),
            format_duration(figures.stalls.observed_ns)
        );
    }
    match (held, figures.control) {
        (Some(held), Some(control)) if control.failed => format!(
            "{} was held for {} and {} broke it, but between them only {} independent late \
             episodes were seen",
            to_a_percent(held.rate),
            format_duration(held.wall_ns),
            to_a_percent(control.rate),
            figures.episodes.floor()
        ),
        _ => format!(
            "only {} independent late episodes were seen; a longer --time sees more",
            figures.episodes.floor()
        ),
    }
}

/// `: 4310 was not shown to break it`, with its late share where that is more than promised; empty
/// without a control.
fn not_broken_text(figures: &LoadFigures, plan: &RatePlan) -> String {
    let Some(control) = figures.control else {
        return String::new();
    };
    let promised = (100.0 - plan.percent) / 100.0;
    let late = match control.late_share {
        Some(share) if share > promised => {
            format!(", with {} late in clusters", format_percent(share))
        }
        Some(_) | None => String::new(),
    };
    format!(
        ": {} was not shown to break it{late}",
        to_a_percent(control.rate)
    )
}

/// `; the control group /db allows 300/s of reads on 8:0`; empty where counters show no cap. It is
/// known even where the search decides nothing.
fn cap_text(figures: &LoadFigures) -> String {
    match figures.cause.limit {
        BreakLimit::Cap => format!("; {}", uncapitalised(&figures.cause.why)),
        BreakLimit::Reads
        | BreakLimit::Writes
        | BreakLimit::Flushes
        | BreakLimit::Journal
        | BreakLimit::Cpu
        | BreakLimit::Unknown => String::new(),
    }
}

/// `; at 4310 it breaks: 1.4 % late, limited by flushes`; empty without a control.
fn break_text(figures: &LoadFigures) -> String {
    let Some(control) = figures.control else {
        return String::new();
    };
    let late = match control.late_share {
        Some(share) => format!("{} late", format_percent(share)),
        None => "more waits than is served".to_owned(),
    };
    let cause = match figures.cause.limit {
        BreakLimit::Unknown => String::new(),
        limit => format!(", limited by {}", limit.as_str()),
    };
    format!(
        "; at {} it breaks: {late}{cause}",
        to_a_percent(control.rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, searched::answer};
    use diskproof_model::finding::LimitedBy;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::plan::{Task, Workload, Workloads};
    use diskproof_model::rate::RateBatch;
    use diskproof_model::target::{IoLimit, LayerKind};

    const PLAN: RatePlan = RatePlan {
        percent: 99.0,
        limit_ns: 5_000_000,
        time_ns: 420_000_000_000,
        hold_ns: 60_000_000_000,
    };

    /// Ten seconds at 1000 requests a second, of which so many were seen.
    fn trial(kind: RateCellKind, requests: u64, dispatch_p99_ns: Option<u64>) -> RateTrial {
        RateTrial {
            workload: 0,
            kind,
            rate: 1000.0,
            start_ns: 0,
            warmup_ns: 0,
            wall_ns: 10_000_000_000,
            served: 1000.0,
            is_over: false,
            batches: vec![RateBatch {
                requests,
                late: 100,
                ..RateBatch::default()
            }],
            dispatch_p99_ns,
            dispatch_late: 10,
        }
    }

    fn is_void(plan: &RatePlan, kind: RateCellKind, requests: u64, delay_ns: u64) -> bool {
        is_limited_by_generator(plan, &[trial(kind, requests, Some(delay_ns))])
    }

    fn searched_record() -> Record {
        let mut record = fixture::record();
        record.plan.tasks = vec![Task::Workloads(Workloads {
            list: vec![Workload::named("random-read")],
            decide: Decide::Rate(PLAN),
            ..Workloads::default()
        })];
        record
    }

    #[test]
    fn undecided_search_names_the_cap_that_counters_show() {
        let record = searched_record();
        let why = "the control group /db allows 300/s of reads on 8:0";
        for outcome in [
            LoadOutcome::FewEpisodes,
            LoadOutcome::NotHeld,
            LoadOutcome::AtLeast,
        ] {
            for (limit, is_named) in [(BreakLimit::Cap, true), (BreakLimit::Reads, false)] {
                let mut figures = answer(outcome, 70.0, 0.1);
                figures.cause = BreakCause {
                    limit,
                    why: why.to_owned(),
                };
                let load = LoadRecord {
                    figures,
                    data: LoadData { trials: Vec::new() },
                };
                let clause = load_clause(&record, &load).unwrap();
                assert_eq!(clause.contains(why), is_named, "{clause}");
            }
        }
    }

    #[test]
    fn search_of_another_method_is_not_said_to_have_ended_early() {
        let mut record = searched_record();
        let load = LoadRecord {
            figures: answer(LoadOutcome::Unfinished, 0.0, 0.0),
            data: LoadData { trials: Vec::new() },
        };
        let ended_early = load_clause(&record, &load).unwrap();
        record.method = METHOD_VERSION - 1;
        let other = load_clause(&record, &load).unwrap();
        assert!(other.contains(&record.method.to_string()) && other != ended_early);
        record.partial = true;
        assert_eq!(load_clause(&record, &load), Some(ended_early));
    }

    /// The very first rates were too much.
    #[test]
    fn search_that_saw_overload_alone_states_the_most_that_may_be_kept() {
        let record = searched_record();
        let over = |rate| RateTrial {
            rate,
            is_over: true,
            dispatch_late: 5,
            ..trial(RateCellKind::Doubling, 10, None)
        };
        let mut load = LoadRecord {
            figures: answer(LoadOutcome::Unfinished, 0.0, 0.0),
            data: LoadData {
                trials: vec![over(40.0), over(20.0)],
            },
        };
        assert_eq!(load.lowest_overload(), Some(20.0));
        let clause = load_clause(&record, &load).unwrap();
        assert!(clause.contains("at most 20.0 "), "{clause}");
        // This program sent some of them too late, or its threads had no processor.
        for (dispatch_late, waited_ns) in [(6, 0), (0, 2_000_000_000)] {
            let mut delayed = load.clone();
            let trial = &mut delayed.data.trials[1];
            trial.dispatch_late = dispatch_late;
            trial.batches[0].waited_ns = waited_ns;
            assert_eq!(delayed.lowest_overload(), Some(40.0));
        }
        // A cell of the curve is too short.
        load.data.trials[1].kind = RateCellKind::Curve;
        assert_eq!(load.lowest_overload(), Some(40.0));
        // A stall, and not the rate, may have been too much.
        load.figures.stalls.met = 1;
        assert_eq!(load.lowest_overload(), None);
    }

    #[test]
    fn delay_that_makes_no_request_late_decides_nothing() {
        let delayed = trial(RateCellKind::Near, 10_000, Some(2_000_000));
        for (dispatch_late, void) in [(0, false), (5, false), (6, true)] {
            let trials = [RateTrial {
                dispatch_late,
                ..delayed.clone()
            }];
            assert_eq!(is_limited_by_generator(&PLAN, &trials), void);
        }
    }

    #[test]
    fn delay_of_the_program_makes_an_answer_void() {
        let near = RateCellKind::Near;
        // A hundredth of the limit is less than a timer takes.
        assert!(!is_void(&PLAN, near, 10_000, 100_000));
        assert!(is_void(&PLAN, near, 10_000, 100_001));
        let slow = RatePlan {
            limit_ns: 50_000_000,
            ..PLAN
        };
        assert!(!is_void(&slow, near, 10_000, 500_000));
        assert!(is_void(&slow, near, 10_000, 500_001));
        // Above what is served, this program may wait for itself.
        assert!(!is_void(&PLAN, RateCellKind::Saturation, 10_000, 9_000_000));
    }

    /// A disk that keeps the hold is not accused of what this program did in it.
    #[test]
    fn hold_that_this_program_broke_is_no_fault_of_the_disk() {
        let mut answer = answer_of_trials(&PLAN, 1, 0, &[]);
        answer.stalls.is_own_hold = true;
        for (outcome, is_own) in [
            (LoadOutcome::NotHeld, true),
            (LoadOutcome::FewEpisodes, false),
        ] {
            answer.outcome = outcome;
            assert_eq!(is_stalled_by_generator(&answer), is_own, "{outcome:?}");
        }
        answer.outcome = LoadOutcome::NotHeld;
        answer.stalls.is_own_hold = false;
        assert!(!is_stalled_by_generator(&answer));
    }

    #[test]
    fn rate_that_was_not_offered_makes_an_answer_void() {
        let hold = RateCellKind::Hold;
        // 1.5 %, four standard deviations of what chance does, and the last five milliseconds.
        for (requests, void) in [
            (10_000, false),
            (9_446, false),
            (9_444, true),
            (10_556, true),
        ] {
            assert_eq!(is_void(&PLAN, hold, requests, 0), void, "{requests}");
        }
    }

    #[test]
    fn limit_that_only_the_hold_shows_is_the_cause() {
        let mut control = crate::fixture::record().measurements.remove(0);
        control.figures.limited_by = None;
        let mut held = control.clone();
        held.figures.limited_by = Some(LimitedBy {
            limit: RateLimit::Cap,
            why: "the volume allows no more".to_owned(),
            evidence: Vec::new(),
        });
        for control in [Some(&control), None] {
            let cause = break_cause(&SearchRows {
                held: Some(&held),
                control,
                writes_journal: false,
                has_other_source: false,
            });
            assert_eq!(cause.limit, BreakLimit::Cap);
            assert_eq!(cause.why, "the volume allows no more");
        }
    }

    #[test]
    fn limit_of_a_group_that_saturation_reaches_is_the_cause() {
        let mut record = crate::fixture::record();
        let device = record.targets[0].layers[0].device.clone();
        record.host.io_limits = vec![IoLimit {
            group: "/db".to_owned(),
            device,
            read_iops: Some(3000),
            ..IoLimit::default()
        }];
        let reads = record
            .measurements
            .iter()
            .find(|row| row.data.workload.name == "random-read-d1")
            .unwrap();
        let rate = reads.op(OpKind::Read).unwrap().figures.iops.value;
        let rows = SearchRows {
            held: Some(reads),
            control: None,
            writes_journal: false,
            has_other_source: false,
        };
        let mut held = trial(RateCellKind::Hold, 10_000, None);
        held.served = rate;
        let control = SearchRows {
            held: None,
            control: Some(reads),
            writes_journal: false,
            has_other_source: false,
        };
        // Two thirds of the limit are held, and a little less than all of it is served.
        for (saturated, is_cap) in [(2950.0, true), (2000.0, false)] {
            let cause = group_cause(&record, &rows, std::slice::from_ref(&held), saturated);
            assert_eq!(cause.is_some(), is_cap, "{rate} {saturated}: {cause:?}");
            if let Some(cause) = cause {
                assert_eq!(cause.limit, BreakLimit::Cap);
                assert!(cause.why.contains("3000/s of reads"), "{}", cause.why);
            }
        }
        // The control alone reaches the limit of another group.
        record.host.io_limits[0].read_iops = Some(rate as u64);
        let mut over = trial(RateCellKind::Control, 10_000, None);
        over.served = rate;
        let cause = group_cause(&record, &control, &[over], 0.8 * rate);
        assert_eq!(cause.map(|cause| cause.limit), Some(BreakLimit::Cap));
    }

    #[test]
    fn control_is_that_of_the_last_trial_above_the_rate() {
        let trials = [
            trial(RateCellKind::Hold, 10_000, None),
            trial(RateCellKind::Control, 11_500, None),
            trial(RateCellKind::Control, 11_500, None),
        ];
        let found = RateControl {
            factor: 1.15,
            late_share: Some(0.03),
            failed: true,
        };
        let control = control_of_trials(&trials, Some(found)).unwrap();
        assert_eq!((control.trial, control.rate), (2, 1000.0));
        assert_eq!(super::control_of_trials(&trials[..1], Some(found)), None);
    }

    /// The journal of a filesystem writes beyond the request; mirrors and devices without one write
    /// for another reason, and so do other programs.
    #[test]
    fn journal_is_what_the_disk_writes_itself_below_a_filesystem() {
        let commits = |change: fn(&mut Record)| {
            let mut record = crate::fixture::changed(|run| {
                let row = run
                    .measurements
                    .iter_mut()
                    .find(|row| row.workload.name == "commit-fdatasync")
                    .unwrap();
                row.device.write_bytes = 4 * row.asked.write_bytes;
            });
            change(&mut record);
            let index = record
                .measurements
                .iter()
                .position(|row| row.data.workload.name == "commit-fdatasync");
            writes_a_journal(&record, index.unwrap())
        };
        assert!(commits(|_| {}));
        assert!(!commits(
            |record| record.targets[0].kind = TargetKind::BlockDevice
        ));
        assert!(!commits(|record| {
            let mirror = crate::fixture::layer("md0", LayerKind::Md, &["sda1"]);
            record.targets[0].layers.push(mirror);
        }));
        assert!(!commits(|record| {
            for row in &mut record.measurements {
                let bytes = 1000 * row.data.asked.write_bytes;
                row.data.device.write_bytes = row.data.asked.write_bytes + bytes;
                row.data.device.others = vec![crate::fixture::process("pg_dump", 0, bytes)];
            }
        }));
    }

    /// One write in a hundred requests grows by 20 ms, each read by 3 ms: the reads are the limit.
    #[test]
    fn kinds_of_a_mix_count_by_their_share() {
        let mixed = |reads_ns: u64, writes_ns: u64| {
            let mut row = crate::fixture::record()
                .measurements
                .into_iter()
                .find(|row| row.data.workload.name == "mixed-random")
                .unwrap();
            for (kind, op) in &mut row.data.ops {
                let (count, ns) = match kind {
                    OpKind::Read => (99, reads_ns),
                    _ => (1, writes_ns),
                };
                op.latency = LatencyHistogram::new();
                for _ in 0..count {
                    op.latency.record(ns);
                }
            }
            row.figures.limited_by = None;
            row
        };
        let (held, control) = (mixed(1_000_000, 10_000_000), mixed(4_000_000, 30_000_000));
        let cause = break_cause(&SearchRows {
            held: Some(&held),
            control: Some(&control),
            writes_journal: false,
            has_other_source: false,
        });
        assert_eq!(cause.limit, BreakLimit::Reads);
    }

    #[test]
    fn trial_that_served_nothing_scales_no_rate() {
        let mut record = fixture::record();
        let row = fixture::measured(&mut record, "mixed-random").clone();
        let served = trial(RateCellKind::Saturation, 10_000, None);
        let rates = rates_when_serving(&row, &served, 2000.0);
        assert_eq!(rates.len(), 2);
        let reads = row.figures.ops[&OpKind::Read].iops.value;
        assert_eq!(rates[0].iops, 2.0 * reads);
        let nothing = RateTrial {
            served: 0.0,
            ..served
        };
        assert!(rates_when_serving(&row, &nothing, 2000.0).is_empty());
    }

    /// Reads write no journal: what the disk writes beside them is metadata of earlier writes.
    #[test]
    fn journal_is_one_of_writes_below_a_filesystem() {
        let mut record = fixture::record();
        let reads = fixture::measured(&mut record, "random-read-d1");
        assert_eq!(reads.data.asked.write_bytes, 0);
        reads.data.device.write_bytes += 3 << 20;
        assert!(!writes_a_journal(&record, 2));
        let commits = fixture::measured(&mut record, "commit-fdatasync");
        commits.data.device.write_bytes = commits.data.asked.write_bytes * 8;
        assert!(writes_a_journal(&record, 7));
        record.targets[0].kind = TargetKind::BlockDevice;
        assert!(!writes_a_journal(&record, 7));
    }
}
