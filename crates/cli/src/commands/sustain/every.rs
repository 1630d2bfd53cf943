//! `sustain --every`: a short measurement again and again for days, each saved in the history
//! under one label. The history is all that it remembers, so it continues after a restart.

use crate::failure::{Exit, Failure, exit_of};
use crate::flags::{MeasuringFlags, SECOND_NS, UndecidedMeans};
use crate::interrupt::{self, is_end_text};
use crate::provenance::machine_of;
use crate::saved::{KILLED, history_place, make_history, open_recovered, saved_record, short_id};
use crate::session::{Measured, MeasuringJob, StdoutForm, exit_of_record, measure};
use crate::stdio::{Presentation, eprint_line, print_document, print_text};
use diskproof_analysis::drift::drift;
use diskproof_device::host_facts;
use diskproof_history::Filter;
use diskproof_model::budget::TargetUse;
use diskproof_model::plan::{METHOD_VERSION, Plan};
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_model::trend::{Drift, DriftAnswer, LatencyPoint};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent, format_rate,
};
use diskproof_report::terminal::message;
use jiff::Timestamp;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The help promises 30 s.
pub(super) const TIME_NS: u64 = 30 * SECOND_NS;
/// The time of a series without `--for`, as the help promises: 7 days.
const FOR_NS: u64 = 7 * 24 * 3600 * SECOND_NS;
/// The interval at which the wait for the next measurement looks for Ctrl-C, too short for a user
/// to notice a delay.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The width of the plan of a run, which follows below.
const PLAN_COLUMNS: usize = 80;
/// The label of a series without `--label` begins with this, and ends with the pause.
const LABEL_PREFIX: &str = "sustain-every";

/// A series as the flags describe it.
pub(super) struct SeriesRequest<'a> {
    pub(super) target: &'a Path,
    pub(super) measuring: &'a MeasuringFlags,
    /// The offered load, where one is set.
    pub(super) rate: Option<f64>,
    /// From the start of one measurement to that of the next.
    pub(super) every_ns: u64,
    /// From the first measurement to the last; `None` without `--for`.
    pub(super) for_ns: Option<u64>,
    /// The time of one measurement.
    pub(super) each_ns: u64,
    /// The plan of one measurement.
    pub(super) plan_for: &'a dyn Fn(&TargetIdentity) -> Result<Plan, Failure>,
}

/// A series of measurements under one label.
struct Series<'a> {
    request: &'a SeriesRequest<'a>,
    every_s: i64,
    for_s: i64,
    label: String,
    /// The flags of each measurement, with the label.
    flags: MeasuringFlags,
}

/// The result of a series, as JSON.
#[derive(Serialize)]
struct SeriesAnswer<'a> {
    label: &'a str,
    points: &'a [LatencyPoint],
    /// The number of measurements that failed, which are no points.
    failed: usize,
    /// The number of those that were due and neither gave a point nor failed: the machine was off,
    /// or somebody ended them.
    missing: usize,
    drift: Option<Drift>,
}

/// Measures until the series is over, and prints whether the disk gets worse.
pub(super) fn run(request: &SeriesRequest<'_>) -> anyhow::Result<Exit> {
    let series = Series::new(request)?;
    if request.measuring.dry_run {
        return series.show_plan();
    }
    interrupt::listen()?;
    interrupt::end_cleanly();
    let target = request.measuring.probe(request.target)?;
    let plan = (request.plan_for)(&target)?;
    series.refuse_another_series(&target, &plan)?;
    // Days of measurements that cannot be saved are not begun.
    make_history(request.measuring.history.file())?;
    series.announce(&target, &plan)?;
    let mut attempts_s: Vec<i64> = Vec::new();
    let mut own = OwnMeasurements::default();
    let mut worst_exit = series.saved(&target, &plan)?.worst_exit;
    loop {
        let known = series.known(&target, &plan, &own);
        let Some(due_s) = series.due_s(&known.begun_s, &attempts_s) else {
            series.print_answer(&known)?;
            return Ok(if known.unsaved == 0 {
                worst_exit
            } else {
                worse_exit(worst_exit, Exit::Failed)
            });
        };
        if let Some(signal) = wait_until(due_s) {
            series.print_answer(&known)?;
            return Ok(Exit::Signal(signal));
        }
        attempts_s.push(now_s());
        // An error of one measurement does not end the series.
        let exit = match series.measure_once(&target, &plan, &mut own.points) {
            Ok(MeasuredOnce::Ended(exit)) => exit,
            Ok(MeasuredOnce::OtherTarget) => {
                eprint_line(&format!(
                    "{}: this is another file or device than at the start; the series ends, and \
                     nothing was written to it",
                    target.path
                ));
                series.print_answer(&known)?;
                return Ok(worse_exit(worst_exit, Exit::Refused));
            }
            Err(error) => {
                own.without_record += 1;
                eprint_line(&format!("warning: {error:#}"));
                exit_of(&error)
            }
        };
        worst_exit = worse_exit(worst_exit, exit);
        // The end of a measurement lets Ctrl-C end the program, which would cost the answer.
        interrupt::end_cleanly();
        if let Some(signal) = interrupt::signal() {
            series.print_answer(&series.known(&target, &plan, &own))?;
            return Ok(Exit::Signal(signal));
        }
    }
}

/// The end of one measurement.
enum MeasuredOnce {
    Ended(Exit),
    /// The path names something else than at the start, which nobody released.
    OtherTarget,
}

/// The measurements of a series that count: those that the user or a kill has not ended.
#[derive(Debug, Clone)]
struct KnownMeasurements {
    /// The oldest first.
    points: Vec<LatencyPoint>,
    /// The starts, in seconds since 1970, also of those that are no points.
    begun_s: Vec<i64>,
    /// The number of those that failed.
    failed: usize,
    worst_exit: Exit,
    /// The number of points of this process that the history does not have.
    unsaved: usize,
}

impl KnownMeasurements {
    /// No measurement.
    fn none() -> Self {
        Self {
            points: Vec::new(),
            begun_s: Vec::new(),
            failed: 0,
            worst_exit: Exit::Done,
            unsaved: 0,
        }
    }

    /// The measurements in these saved records.
    fn of_records(records: &[Record], undecided: UndecidedMeans) -> Self {
        let mut known = Self::none();
        for record in records.iter().filter(|record| counts(record)) {
            let exit = exit_of_record(record, undecided);
            known.worst_exit = worse_exit(known.worst_exit, exit);
            known.failed += usize::from(exit == Exit::Failed);
            known.begun_s.extend(begun_s(record));
            if !record.partial {
                known.points.extend(latency_point(record));
            }
        }
        known.points.sort_by_key(|point| point.at_s);
        known
    }

    /// Adds those of this process that the history does not have.
    fn add_unsaved(&mut self, own: &OwnMeasurements) {
        for point in &own.points {
            if !self.points.iter().any(|other| other.at_s == point.at_s) {
                self.unsaved += 1;
                self.points.push(*point);
                self.begun_s.push(point.at_s);
            }
        }
        self.failed += own.without_record;
        self.points.sort_by_key(|point| point.at_s);
    }
}

/// The measurements of this process.
#[derive(Debug, Default)]
struct OwnMeasurements {
    points: Vec<LatencyPoint>,
    /// The number of those that failed before they had a record.
    without_record: usize,
}

/// True if a saved measurement says something about its disk: the plan, the disk or the announced
/// time ended it, or its disk failed before something else did.
fn counts(record: &Record) -> bool {
    let is_ended_from_outside = match &record.ended_early {
        Some(why) => is_end_text(why) || why == KILLED,
        // Older versions kept no reason.
        None => record.partial,
    };
    let has_failed = record
        .findings
        .iter()
        .any(|finding| finding.is_failure_of_disk());
    !is_ended_from_outside || has_failed
}

impl<'a> Series<'a> {
    fn new(request: &'a SeriesRequest<'a>) -> Result<Self, Failure> {
        let measuring = request.measuring;
        let for_ns = request.for_ns.unwrap_or(FOR_NS);
        let every_ns = request.every_ns;
        let each_ns = request.each_ns;
        if every_ns < 2 * each_ns || for_ns < every_ns {
            return Err(Failure::Usage(format!(
                "--every {}: each measurement takes {}; use at least twice that, and not more \
                 than --for",
                format_duration(every_ns),
                format_duration(each_ns)
            )));
        }
        if request.rate.is_none() {
            return Err(Failure::Usage(
                "--every compares one load with itself; set it with --rate, such as --rate 200"
                    .to_owned(),
            ));
        }
        if measuring.history.no_history || !measuring.files().is_empty() {
            return Err(Failure::Usage(
                "--every keeps its measurements in the history; omit --no-history, -o and --html"
                    .to_owned(),
            ));
        }
        let mut flags = measuring.clone();
        flags.json = false;
        flags.outputs.clear();
        let label = match &flags.history.label {
            Some(label) => label.clone(),
            None => format!("{LABEL_PREFIX}-{}", whole_text(every_ns).replace(' ', "")),
        };
        flags.history.label = Some(label.clone());
        Ok(Self {
            request,
            label,
            every_s: (every_ns / SECOND_NS) as i64,
            for_s: (for_ns / SECOND_NS) as i64,
            flags,
        })
    }

    /// Shows the plan of one measurement, and before it what the whole series takes.
    fn show_plan(&self) -> anyhow::Result<Exit> {
        // The answer of a series is a document of its own, but this is the plan of a run.
        let mut flags = self.flags.clone();
        flags.json = self.request.measuring.json;
        let identity = flags.probe(self.request.target)?;
        let plan = (self.request.plan_for)(&identity)?;
        self.refuse_another_series(&identity, &plan)?;
        if !flags.json {
            let text = message(&self.plan_text(&plan, &identity), Some(PLAN_COLUMNS));
            print_text(&format!("{text}\n\n"))?;
        }
        measure(MeasuringJob::new(plan, vec![identity], &flags))?.exit()
    }

    /// Says on stderr what is measured, and how much of it is done.
    fn announce(&self, target: &TargetIdentity, plan: &Plan) -> anyhow::Result<()> {
        let mut text = self.plan_text(plan, target);
        let known = self.saved(target, plan)?;
        let count = known.begun_s.len() as u64;
        if count > 0 {
            let next = match self.due_s(&known.begun_s, &[]) {
                Some(_) => "the series continues",
                None => "the series is over. Another --label begins a new one",
            };
            text.push_str(&format!(
                ". The history has {} of it under '{}'; {next}",
                counted(count, "measurement"),
                self.label
            ));
        }
        self.flags.verbosity().note(&text);
        Ok(())
    }

    /// What the whole series takes: `series: 169 measurements of 30 s, one every 1 h for 7 d, which
    /// measure for 1 h 24 min in all. …`
    fn plan_text(&self, plan: &Plan, identity: &TargetIdentity) -> String {
        let count = (self.for_s / self.every_s + 1) as u64;
        let mut text = format!(
            "series: {} of {}, one every {} for {}, which measure for {} in all",
            counted(count, "measurement"),
            format_duration(self.request.each_ns),
            whole_text(self.every_s as u64 * SECOND_NS),
            whole_text(self.for_s as u64 * SECOND_NS),
            format_duration(self.request.each_ns.saturating_mul(count))
        );
        let budget_bytes = plan.sustain().and_then(|sustain| sustain.budget_bytes);
        if let (Some(bytes), Some(rate)) = (budget_bytes, self.request.rate) {
            text.push_str(&format!(
                ". Each moves at most {} at {} operations/s, all together {}",
                format_bytes(bytes),
                format_rate(rate),
                format_bytes(bytes.saturating_mul(count))
            ));
        }
        if let Some(TargetUse::Scratch { size_bytes, .. }) =
            plan.budget(std::slice::from_ref(identity)).targets.first()
        {
            text.push_str(&format!(
                ". Before each, a scratch file of at most {} is filled, all together {}; a smaller \
                 --size needs less",
                format_bytes(*size_bytes),
                format_bytes(size_bytes.saturating_mul(count))
            ));
        }
        text
    }

    /// The runs of the history with this label on the same target of this machine. Another series
    /// may have the same label, which is only the pause by default.
    fn saved_records(&self, target: &TargetIdentity) -> Result<Vec<Record>, Failure> {
        let place = history_place(self.flags.history.file())?;
        let Some(history) = open_recovered(&place)?.history else {
            return Ok(Vec::new());
        };
        let filter = Filter {
            verb: Some("sustain".to_owned()),
            label: Some(self.label.clone()),
            ..Filter::default()
        };
        let host = host_facts();
        let machine = machine_of(&host);
        let mut records = Vec::new();
        for run in history.list(&filter).map_err(Failure::History)?.runs {
            let is_own = run.is_of_machine(&host.name, machine.as_deref());
            if !is_own || run.targets != [target.path.as_str()] {
                continue;
            }
            records.extend(saved_record(&history, &run.run_id));
        }
        Ok(records)
    }

    /// Refuses a label under which something else than this series is saved: a trend over both
    /// would show the difference between them.
    fn refuse_another_series(&self, target: &TargetIdentity, plan: &Plan) -> Result<(), Failure> {
        for record in self.saved_records(target)? {
            if record.partial && !record.has_stopped_answering() {
                continue;
            }
            if let Some(difference) = self.difference(&record, target, plan) {
                return Err(Failure::Usage(format!(
                    "the label '{}' has a measurement of {} {difference}; 'diskproof show {}' \
                     prints it. Begin a new series with another --label",
                    self.label,
                    target.path,
                    short_id(&record.run_id)
                )));
            }
        }
        Ok(())
    }

    /// What makes a saved run another series than that of this plan; `None` where it is one of its
    /// measurements.
    fn difference(
        &self,
        saved: &Record,
        target: &TargetIdentity,
        plan: &Plan,
    ) -> Option<&'static str> {
        if saved.method != METHOD_VERSION {
            return Some("by a version of diskproof that measures in another way");
        }
        let is_same_storage = saved
            .targets
            .iter()
            .all(|other| other.lies_on_same_storage(target));
        if !is_same_storage {
            return Some("on another disk or volume");
        }
        if !self.has_same_load(&saved.plan, plan) {
            return Some("with another load");
        }
        None
    }

    /// The load decides, and the scratch file where `--size` sets it: without that, the file is
    /// smaller once the filesystem has less room.
    fn has_same_load(&self, saved: &Plan, plan: &Plan) -> bool {
        let is_same_size =
            self.flags.size.is_none() || saved.scratch_bytes() == plan.scratch_bytes();
        saved.workloads() == plan.workloads() && is_same_size
    }

    /// The saved runs of the series.
    fn saved_measurements(
        &self,
        target: &TargetIdentity,
        plan: &Plan,
    ) -> Result<Vec<Record>, Failure> {
        let mut records = self.saved_records(target)?;
        records.retain(|record| self.difference(record, target, plan).is_none());
        Ok(records)
    }

    /// What is known of the saved measurements.
    fn saved(&self, target: &TargetIdentity, plan: &Plan) -> Result<KnownMeasurements, Failure> {
        let records = self.saved_measurements(target, plan)?;
        let undecided = self.flags.undecided;
        Ok(KnownMeasurements::of_records(&records, undecided))
    }

    /// The measurements of the series so far, with those of this process that could not be saved. A
    /// history that cannot be read now ends no series.
    fn known(
        &self,
        target: &TargetIdentity,
        plan: &Plan,
        own: &OwnMeasurements,
    ) -> KnownMeasurements {
        let mut known = match self.saved(target, plan) {
            Ok(saved) => saved,
            Err(error) => {
                eprint_line(&format!("warning: {error}"));
                KnownMeasurements::none()
            }
        };
        known.add_unsaved(own);
        known
    }

    /// When the next measurement is due, in seconds since 1970; `None` where the series is over.
    /// Attempts of this process count where they failed, too. One that was saved is counted twice,
    /// which changes nothing: only the first and the last decide.
    fn due_s(&self, saved_s: &[i64], attempts_s: &[i64]) -> Option<i64> {
        let mut begun_s = [saved_s, attempts_s].concat();
        begun_s.sort_unstable();
        next_due_s(&begun_s, now_s(), self.every_s, self.for_s)
    }

    /// Measures once, and saves the run. The point of a complete run with the load of the series is
    /// one of `own`.
    fn measure_once(
        &self,
        target: &TargetIdentity,
        series_plan: &Plan,
        own: &mut Vec<LatencyPoint>,
    ) -> anyhow::Result<MeasuredOnce> {
        let identity = self.flags.probe(self.request.target)?;
        if !target.has_same_storage(&identity) {
            return Ok(MeasuredOnce::OtherTarget);
        }
        let plan = (self.request.plan_for)(&identity)?;
        let mut job = MeasuringJob::new(plan, vec![identity], &self.flags);
        job.shown = StdoutForm::Nothing;
        let measured = measure(job)?;
        if let Measured::Run(run) = &measured
            && let Some(point) = latency_point(&run.record)
        {
            eprint_line(&format!(
                "{}: {} on average",
                without_fraction(&run.record.started),
                format_latency(point.latency_ns as u64)
            ));
            if !run.record.partial && self.has_same_load(&run.record.plan, series_plan) {
                own.push(point);
            }
        }
        // What failed has a record, which counts it.
        let exit = match measured.exit() {
            Ok(exit) => exit,
            Err(error) => {
                eprint_line(&format!("warning: {error:#}"));
                exit_of(&error)
            }
        };
        Ok(MeasuredOnce::Ended(exit))
    }

    /// Prints the trend of the points.
    fn print_answer(&self, known: &KnownMeasurements) -> anyhow::Result<()> {
        let points = &known.points;
        let found_drift = drift(points);
        let due = due_count(&known.begun_s, now_s(), self.every_s, self.for_s);
        let missing = due.saturating_sub(points.len() + known.failed);
        let answer = SeriesAnswer {
            label: &self.label,
            points,
            failed: known.failed,
            missing,
            drift: found_drift.clone(),
        };
        print_document(
            Presentation::from_json_flag(self.request.measuring.prints_json()),
            |out| {
                serde_json::to_writer_pretty(&mut *out, &answer).map_err(io::Error::other)?;
                writeln!(out)
            },
            |out| {
                let mut text = answer_text(points, found_drift.as_ref());
                if known.failed > 0 {
                    text.push_str(&format!("; {} failed", known.failed));
                }
                if missing > 0 {
                    text.push_str(&format!(
                        "; {missing} of {due} that were due have no figure"
                    ));
                }
                writeln!(out, "{text}")
            },
        )
    }
}

/// The exit of a series in which measurements ended like this: what was not measured is worse than
/// a threshold that was missed, and that is worse than one that is undecided.
fn worse_exit(one: Exit, other: Exit) -> Exit {
    if severity(other) > severity(one) {
        other
    } else {
        one
    }
}

fn severity(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        Exit::Undecided => 1,
        Exit::ThresholdMissed => 2,
        Exit::Usage => 3,
        Exit::Refused => 4,
        Exit::Failed => 5,
        // These end the series.
        Exit::Signal(_) | Exit::Tool(_) => 6,
    }
}

/// A time in the largest unit of which it is a multiple, as users write it: `7 d`, `1 h`, `90 s`.
fn whole_text(ns: u64) -> String {
    for (unit_s, unit) in [(24 * 3600, "d"), (3600, "h"), (60, "min"), (1, "s")] {
        if ns.is_multiple_of(unit_s * SECOND_NS) {
            return format!("{} {unit}", ns / SECOND_NS / unit_s);
        }
    }
    format_duration(ns)
}

/// The time of a series: in days where it is longer than two.
fn time_between(seconds: u64) -> String {
    const DAY_S: u64 = 24 * 3600;
    if seconds < 2 * DAY_S {
        return format_duration(seconds * SECOND_NS);
    }
    let (days, hours) = (seconds / DAY_S, seconds % DAY_S / 3600);
    match hours {
        0 => format!("{days} d"),
        _ => format!("{days} d {hours} h"),
    }
}

/// When the next measurement is due after those that began at `begun_s`: at once without any, and
/// else at a multiple of the pause after the first one. Those that were missed are not made up for.
/// `None` where that is more than `for_s` after the first one. Those that lie in the future began
/// while the clock was wrong, and are not waited for. All times are seconds since 1970.
fn next_due_s(begun_s: &[i64], now_s: i64, every_s: i64, for_s: i64) -> Option<i64> {
    let past = begun_s.partition_point(|begun_s| *begun_s <= now_s + every_s / 2);
    let (Some(first_s), Some(last_s)) = (begun_s[..past].first(), begun_s[..past].last()) else {
        return Some(now_s);
    };
    // One that began late does not make the next one begin at once.
    let earliest_s = now_s.max(last_s + every_s / 2) - first_s;
    let pauses = (earliest_s + every_s - 1).div_euclid(every_s);
    let due_s = first_s + pauses * every_s;
    if due_s - first_s > for_s {
        None
    } else {
        Some(due_s)
    }
}

/// The measurements that were due until `now_s`, of a series whose measurements began at `begun_s`.
/// All times are seconds since 1970.
fn due_count(begun_s: &[i64], now_s: i64, every_s: i64, for_s: i64) -> usize {
    let Some(first_s) = begun_s.iter().min() else {
        return 0;
    };
    let lasted_s = (now_s - first_s).clamp(0, for_s);
    (lasted_s / every_s) as usize + 1
}

fn now_s() -> i64 {
    Timestamp::now().as_second()
}

/// Waits by the clock of the machine, which may be set meanwhile. Returns the signal that ended the
/// wait, if one did.
fn wait_until(due_s: i64) -> Option<u8> {
    while now_s() < due_s && interrupt::signal().is_none() {
        std::thread::sleep(POLL_INTERVAL);
    }
    interrupt::signal()
}

/// The start of a measurement, in seconds since 1970.
fn begun_s(record: &Record) -> Option<i64> {
    let started: Timestamp = record.started.parse().ok()?;
    Some(started.as_second())
}

/// The mean latency of a measurement; `None` where no operation ended, or where it is not that of
/// the disk.
fn latency_point(record: &Record) -> Option<LatencyPoint> {
    let at_s = begun_s(record)?;
    if record.foreign_figures(0).is_some() {
        return None;
    }
    let row = record.measurements.first()?;
    let mut sum_ns = 0.0;
    let mut count = 0;
    for (_, op) in row.headline_ops() {
        sum_ns += op.figures.seen_latency().mean * op.data.count as f64;
        count += op.data.count;
    }
    if count == 0 {
        return None;
    }
    Some(LatencyPoint {
        at_s,
        latency_ns: sum_ns / count as f64,
    })
}

/// `12 measurements over 11 h: no trend (+0.1 % ± 0.4 % a day); slow from 3:00 to 4:00 UTC (+30 %)`
fn answer_text(points: &[LatencyPoint], drift: Option<&Drift>) -> String {
    let count = counted(points.len() as u64, "measurement");
    let (Some(first), Some(last), Some(drift)) = (points.first(), points.last(), drift) else {
        return format!("{count}: too few for a trend");
    };
    let seconds = last.at_s.saturating_sub(first.at_s).max(0) as u64;
    let answer = match drift.answer() {
        DriftAnswer::Worse => "gets worse",
        DriftAnswer::Better => "gets better",
        DriftAnswer::NoTrend => "no trend",
    };
    let mut text = format!(
        "{count} over {}: {answer} ({})",
        time_between(seconds),
        per_day_text(drift)
    );
    if let Some(slow) = drift.slow_hour {
        text.push_str(&format!(
            "; slow from {}:00 to {}:00 UTC (+{})",
            slow.hour,
            (slow.hour + 1) % 24,
            format_percent(slow.change)
        ));
    }
    text
}

/// From this half-width on a change a day is not known at all: latencies may double or vanish.
const PER_DAY_WIDTH_MAX: f64 = 1.0;

/// `latency +0.1 % ± 0.4 % a day`; a series of minutes says nothing about a day.
fn per_day_text(drift: &Drift) -> String {
    if drift.half_width_95 >= PER_DAY_WIDTH_MAX {
        return "the series is too short for a change a day".to_owned();
    }
    let sign = if drift.per_day < 0.0 { "−" } else { "+" };
    format!(
        "latency {sign}{} ± {} a day",
        format_percent(drift.per_day.abs()),
        format_percent(drift.half_width_95)
    )
}

/// A time of a record without fractions of a second.
fn without_fraction(started: &str) -> String {
    match started.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => started.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: i64 = 3600;

    fn due_h(hours: &[i64], now_s: i64) -> Option<i64> {
        let begun_s: Vec<i64> = hours.iter().map(|hour| hour * HOUR_S + 5).collect();
        let due_s = next_due_s(&begun_s, now_s, HOUR_S, 24 * HOUR_S)?;
        assert_eq!((due_s - 5) % HOUR_S, 0);
        Some((due_s - 5) / HOUR_S)
    }

    #[test]
    fn next_measurement_is_due_on_the_hour_of_the_first_one() {
        assert_eq!(next_due_s(&[], 77, HOUR_S, 24 * HOUR_S), Some(77));
        assert_eq!(due_h(&[10], 10 * HOUR_S + 40), Some(11));
        // After a restart that lasted for hours, none is made up for.
        assert_eq!(due_h(&[10, 11], 17 * HOUR_S + 40), Some(18));
        assert_eq!(due_h(&[10, 11], 12 * HOUR_S + 5), Some(12));
        // The clock was set back: nothing waits until the old one is reached.
        assert_eq!(due_h(&[10, 500], 10 * HOUR_S + 40), Some(11));
        assert_eq!(
            next_due_s(&[500 * HOUR_S], 77, HOUR_S, 24 * HOUR_S),
            Some(77)
        );
    }

    #[test]
    fn measurements_are_due_until_now_or_the_end_of_the_series() {
        let day_s = 24 * HOUR_S;
        assert_eq!(due_count(&[], 77, HOUR_S, day_s), 0);
        assert_eq!(due_count(&[100], 100, HOUR_S, day_s), 1);
        assert_eq!(due_count(&[100], 99 + HOUR_S, HOUR_S, day_s), 1);
        assert_eq!(due_count(&[100], 100 + HOUR_S, HOUR_S, day_s), 2);
        assert_eq!(
            due_count(&[100 + HOUR_S, 100], 100 + 2 * day_s, HOUR_S, day_s),
            25
        );
        // The clock was set back.
        assert_eq!(due_count(&[500], 100, HOUR_S, day_s), 1);
    }

    #[test]
    fn measurement_that_was_not_saved_stays_a_point() {
        let point = |at_s| LatencyPoint {
            at_s,
            latency_ns: 1e6,
        };
        let mut known = KnownMeasurements {
            points: vec![point(10), point(30)],
            ..KnownMeasurements::none()
        };
        known.add_unsaved(&OwnMeasurements {
            points: vec![point(20), point(30)],
            without_record: 2,
        });
        let times: Vec<i64> = known.points.iter().map(|point| point.at_s).collect();
        assert_eq!(times, [10, 20, 30]);
        assert_eq!((known.unsaved, known.failed), (1, 2));
    }

    #[test]
    fn times_of_a_series_are_written_as_users_do() {
        let texts = [7 * 24 * 3600, 3600, 5400, 90].map(|seconds| whole_text(seconds * SECOND_NS));
        assert_eq!(texts, ["7 d", "1 h", "90 min", "90 s"]);
        assert_eq!(time_between(7 * 24 * 3600 + 20), "7 d");
        assert_eq!(time_between(3 * 24 * 3600 + 7200), "3 d 2 h");
    }

    #[test]
    fn worst_exit_is_that_of_the_series() {
        let mut worst = Exit::Done;
        for (exit, expected) in [
            (Exit::Undecided, Exit::Undecided),
            (Exit::Done, Exit::Undecided),
            (Exit::ThresholdMissed, Exit::ThresholdMissed),
            (Exit::Undecided, Exit::ThresholdMissed),
            (Exit::Failed, Exit::Failed),
            (Exit::Usage, Exit::Failed),
        ] {
            worst = worse_exit(worst, exit);
            assert_eq!(worst, expected);
        }
    }

    #[test]
    fn series_ends_after_its_time() {
        assert_eq!(due_h(&[10], 34 * HOUR_S), Some(34));
        assert_eq!(due_h(&[10, 34], 34 * HOUR_S + 40), None);
        assert_eq!(due_h(&[10], 100 * HOUR_S), None);
    }
}
