//! `diskproof history`: lists, labels, imports and deletes saved runs. Measures nothing.

use crate::failure::{Exit, Failure};
use crate::provenance::machine_of;
use crate::saved::{
    HistoryFileFlag, RecoveredHistory, UnsavedRun, empty_text, history_place, import, is_after,
    load_file, open, open_recovered, parse_label, print_notes, run_id, saved_record, short_id,
};
use crate::stdio::{ColorWhen, Presentation, Verbosity, eprint_line, print_document, style};
use diskproof_analysis::compare::Limit;
use diskproof_analysis::trend::{
    TrendOutcome, condition_trends, is_named, outcome_of_trend, trends,
};
use diskproof_device::host_facts;
use diskproof_history::{Filter, History, Listing, SaveOutcome, TargetFilter, UnreadableRun};
use diskproof_model::figure::{named, threshold_names};
use diskproof_model::saved::SavedRun;
use diskproof_model::trend::Trend;
use diskproof_model::units::counted;
use diskproof_report::{json, terminal};
use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use std::collections::BTreeSet;
use std::path::Path;

/// Ages end at a hundred thousand years, so that no later arithmetic overflows.
const AGE_HOURS_MAX: i64 = 876_000_000;

/// Below the help of `history`.
const HELP: &str = concat!(
    "Without a command, history lists the runs, newest first. Ages: 90d, 12w, 36h,\n",
    "1y. 'prune' never removes a run with a label.\n",
    "\n",
    "Examples:\n",
    "  diskproof history --since 7d\n",
    "  diskproof history --serial S64FNE0R --json\n",
    "  diskproof history --trend --fail-on 'commit-fdatasync.iops<-10%'\n",
    "  diskproof history label latest before-upgrade\n",
    "  diskproof history import /mnt/usb/db2/*.json\n",
    "  diskproof history prune --older-than 90d --dry-run",
);

/// List the saved runs; label, import, delete or prune them
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, visible_alias = "list")]
#[command(args_conflicts_with_subcommands = true)]
pub struct HistoryFlags {
    /// A change to the history.
    #[command(subcommand)]
    pub action: Option<HistoryChange>,
    /// Which runs to list.
    #[command(flatten)]
    pub list: ListFlags,
}

/// Which runs to list, and how.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ListFlags {
    /// Only runs on this path; *, ? and [] as in a shell
    #[arg(long, value_name = "PATH")]
    pub target: Option<String>,
    /// Only runs on the disk with this serial number, on any path and machine
    #[arg(long, value_name = "SERIAL")]
    pub serial: Option<String>,
    /// Only runs of this verb
    #[arg(long, value_name = "VERB")]
    pub verb: Option<String>,
    /// Only runs on this machine
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Only runs with this label
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Only runs since an age (7d), a day (2026-11-20) or a time (2026-11-20T10:00:00Z)
    #[arg(long, value_name = "WHEN", value_parser = parse_since)]
    pub since: Option<Timestamp>,
    /// At most N runs, the newest
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// The figures of the newest run's verb and target from run to run, each against the median of
    /// the ten runs before
    #[arg(long)]
    pub trend: bool,
    /// With --trend: exit with 1 if this holds, beyond the usual spread, for the newest run that
    /// has the figure, such as 'commit-fdatasync.iops<-10%' or 'random-read-d1.p99>20%', and with
    /// 5 if chance or too few runs leave it undecided (repeatable)
    #[arg(long, value_name = "CONDITION", requires = "trend")]
    pub fail_on: Vec<Limit>,
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
    /// Colour the list
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
}

/// A change to the history.
#[derive(Debug, clap::Subcommand)]
pub enum HistoryChange {
    /// Delete old runs without a label
    #[command(group(clap::ArgGroup::new("which").required(true).args(["older_than", "keep"])))]
    Prune {
        /// Delete runs older than this, such as 90d
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        older_than: Option<SignedDuration>,
        /// Delete all but the newest N runs without a label
        #[arg(long, value_name = "N")]
        keep: Option<u64>,
        /// Only list what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// The history.
        #[command(flatten)]
        history_file: HistoryFileFlag,
    },
    /// Set the label of a run; an empty label ('') removes it
    Label {
        /// An id or the beginning of one, latest, latest~1 or a label
        run: String,
        /// The label; '' removes it
        #[arg(value_parser = parse_new_label)]
        label: String,
        /// The history.
        #[command(flatten)]
        history_file: HistoryFileFlag,
    },
    /// Delete runs
    Delete {
        /// Ids or their beginnings, latest, latest~1, or labels (the newest run of each)
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
        /// The history.
        #[command(flatten)]
        history_file: HistoryFileFlag,
    },
    /// Add records from files, such as those of other machines; known runs stay
    Import {
        /// Records (.json) or report pages (.html)
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,
        /// Label of all imported runs
        #[arg(long, value_name = "LABEL", value_parser = parse_label)]
        label: Option<String>,
        /// The history.
        #[command(flatten)]
        history_file: HistoryFileFlag,
    },
}

/// Lists the runs, or changes the history.
pub fn run(history: &HistoryFlags) -> anyhow::Result<Exit> {
    match &history.action {
        None => list_runs(&history.list),
        Some(HistoryChange::Prune {
            older_than,
            keep,
            dry_run,
            history_file,
        }) => {
            let mut history = open(history_file.file())?;
            let runs = prunable(&history, *older_than, *keep)?;
            if *dry_run {
                return show_prunable(&runs);
            }
            let ids: Vec<String> = runs.into_iter().map(|run| run.run_id).collect();
            delete(&mut history, &ids)
        }
        Some(HistoryChange::Label {
            run,
            label,
            history_file,
        }) => set_label(&mut open(history_file.file())?, run, label),
        Some(HistoryChange::Delete { runs, history_file }) => {
            let mut history = open(history_file.file())?;
            // All or nothing: a mistyped id must not delete the runs before it.
            let mut ids = Vec::new();
            for run in runs {
                ids.push(run_id(&history, run)?);
            }
            delete(&mut history, &ids)
        }
        Some(HistoryChange::Import {
            files,
            label,
            history_file,
        }) => import_files(files, label.as_deref(), history_file.file()),
    }
}

fn list_runs(list: &ListFlags) -> anyhow::Result<Exit> {
    let place = history_place(list.history_file.file())?;
    let RecoveredHistory { history, unsaved } = open_recovered(&place)?;
    let Listing { runs, unreadable } = match &history {
        Some(history) => history.list(&list.filter()).map_err(Failure::History)?,
        None => Listing::default(),
    };
    if let Some(first) = unreadable.first() {
        let count = counted(unreadable.len() as u64, "run");
        let id = short_id(&first.run_id);
        eprint_line(&format!(
            "warning: skipped {count} that cannot be read, such as {id}: damaged, or saved by \
             another version of diskproof"
        ));
    }
    let prints_no_list = runs.is_empty() && !list.json;
    if prints_no_list {
        if list.filter() == Filter::default() {
            eprint_line(&empty_text(&place.path))
        } else {
            eprint_line("no saved run matches. 'diskproof history' lists all runs")
        }
    }
    if list.trend {
        let unseen = unseen_runs(list, &unreadable, unsaved);
        let mut judged = runs_of_trends(runs, list);
        if let Some(limit) = list.limit {
            judged.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        return show_trend(&judged, list, history.as_ref(), &unseen);
    }
    if prints_no_list {
        return Ok(Exit::Done);
    }
    print_runs(&runs, list.presentation(), list.color)
}

/// A run that cannot be judged, although it may be the newest one.
struct UnseenRun {
    /// Names it in a message.
    name: String,
    /// `None` where it is unknown.
    started: Option<Timestamp>,
    /// The paths of its targets; `None` where they are unknown.
    targets: Option<Vec<String>>,
}

/// The runs whose rows cannot be read, and those that are not in the history.
fn unseen_runs(
    list: &ListFlags,
    unreadable: &[UnreadableRun],
    unsaved: Vec<UnsavedRun>,
) -> Vec<UnseenRun> {
    let filter = list.filter();
    let mut unseen = Vec::new();
    for run in unreadable {
        unseen.push(UnseenRun {
            name: format!("run {} cannot be read", short_id(&run.run_id)),
            started: Timestamp::from_second(run.started_s).ok(),
            targets: None,
        });
    }
    for UnsavedRun { name, run } in unsaved {
        // An observation has no figure that a condition is about. The trend asks for the target.
        if let Some(run) = &run
            && !(run.has_measured() && filter.admits(run))
        {
            continue;
        }
        let (started, targets) = match run {
            Some(run) => (run.started.parse().ok(), Some(run.targets)),
            None => (None, None),
        };
        unseen.push(UnseenRun {
            name: format!("{name} is not saved"),
            started,
            targets,
        });
    }
    unseen
}

impl UnseenRun {
    /// Returns `true` if this may be the newest run on the target of a trend.
    fn may_follow(&self, trend: &Trend) -> bool {
        if let (Some(targets), Some(target)) = (&self.targets, &trend.target)
            && !targets.contains(target)
        {
            return false;
        }
        let Some(newest) = trend.points.last() else {
            return true;
        };
        match (self.started, newest.started.parse::<Timestamp>()) {
            // Rows have the start in whole seconds.
            (Some(started), Ok(newest)) => started.as_second() >= newest.as_second(),
            (None, _) | (_, Err(_)) => true,
        }
    }
}

/// A condition of `--fail-on`, and the figure that it names from run to run, on each target.
struct Condition<'a> {
    limit: &'a Limit,
    trends: Vec<Trend>,
}

/// The runs whose trends are shown and judged: those of one machine. Without `--host` that is this
/// one; a history that holds imported runs only has the trend of the machine of the newest one.
fn runs_of_trends(runs: Vec<SavedRun>, list: &ListFlags) -> Vec<SavedRun> {
    let this = host_facts();
    let machine = machine_of(&this);
    let mut own = runs.clone();
    own.retain(|run| run.is_of_machine(&this.name, machine.as_deref()));
    // One without figures, as that of a watch, has no trend.
    if list.host.is_some() || !own.iter().any(SavedRun::has_measured) {
        return runs;
    }
    let others = runs.len() - own.len();
    if others > 0 {
        eprint_line(&format!(
            "note: {} of other machines left out; --host NAME has theirs",
            counted(others as u64, "run")
        ));
    }
    own
}

fn show_trend(
    runs: &[SavedRun],
    list: &ListFlags,
    history: Option<&History>,
    unseen: &[UnseenRun],
) -> anyhow::Result<Exit> {
    let mut shown = trends(runs, |run| saved_record(history?, &run.run_id));
    shown.retain(|trend| list.wants_target(trend));
    let mut conditions = Vec::new();
    // Without any figure no name can be told from a mistyped one.
    if runs
        .iter()
        .any(|run| run.partial || !run.figures.is_empty())
    {
        for limit in &list.fail_on {
            let mut trends = find_trends(limit, runs, &shown, history)?;
            trends.retain(|trend| list.wants_target(trend));
            conditions.push(Condition { limit, trends });
        }
    }
    for trend in conditions.iter().flat_map(|condition| &condition.trends) {
        let is_shown = shown.iter().any(|shown| is_same_trend(shown, trend));
        if !trend.points.is_empty() && !is_shown {
            shown.push(trend.clone());
        }
    }
    print_document(
        list.presentation(),
        |out| json::write_trends(&shown, out),
        |page| terminal::write_trends(&shown, &style(list.color), page),
    )?;
    if shown.is_empty() {
        eprint_line("no complete run has figures for a trend");
    }
    // A timer must not take the absence of figures for a pass.
    if conditions.is_empty() && !list.fail_on.is_empty() {
        return Ok(Exit::Undecided);
    }
    Ok(report_conditions(&conditions, unseen, Timestamp::now()))
}

/// Returns `true` if the trend that is shown has the figure that a condition names.
fn is_same_trend(shown: &Trend, named: &Trend) -> bool {
    shown.target == named.target
        && shown.subject == named.subject
        && shown.metric == named.metric
        && (named.operation.is_empty() || shown.operation == named.operation)
}

/// Prints which conditions hold. A condition that holds decides the exit code. One whose figure is
/// short of the threshold passes, also where chance may hide a change: a timer would fail on most
/// nights otherwise. A run that begins after `now` decides nothing: it would stay the newest one.
fn report_conditions(conditions: &[Condition<'_>], unseen: &[UnseenRun], now: Timestamp) -> Exit {
    let mut exit = Exit::Done;
    for Condition { limit, trends } in conditions {
        let gravest = gravest_outcome(limit, trends, unseen, now);
        let (answer, code) = match gravest.outcome {
            TrendOutcome::Holds => ("holds", Exit::ThresholdMissed),
            TrendOutcome::Undecided => ("is undecided", Exit::Undecided),
            TrendOutcome::ShortOfThreshold => {
                let answer = "is not reached, but usual differences between runs could hide it";
                (answer, Exit::Done)
            }
            TrendOutcome::DoesNotHold => ("does not hold", Exit::Done),
        };
        let (expression, run) = (&limit.expression, &gravest.run);
        let target = match &gravest.target {
            Some(target) if trends.len() > 1 => format!(" on {target}"),
            Some(_) | None => String::new(),
        };
        eprint_line(&format!("--fail-on '{expression}' {answer}{target}: {run}"));
        if code == Exit::ThresholdMissed || exit == Exit::Done {
            exit = code;
        }
    }
    exit
}

/// A condition on one target, as it was judged.
struct JudgedTarget {
    outcome: TrendOutcome,
    target: Option<String>,
    /// Names the run that decides, and says why it may not decide.
    run: String,
}

/// The outcome on the target where it is the gravest, of several the first.
fn gravest_outcome(
    limit: &Limit,
    trends: &[Trend],
    unseen: &[UnseenRun],
    now: Timestamp,
) -> JudgedTarget {
    let mut gravest: Option<JudgedTarget> = None;
    for trend in trends {
        let judged = judge_target(limit, trend, unseen, now);
        match &gravest {
            Some(earlier) if gravity(earlier.outcome) >= gravity(judged.outcome) => {}
            _ => gravest = Some(judged),
        }
    }
    gravest.unwrap_or_else(|| JudgedTarget {
        outcome: TrendOutcome::Undecided,
        target: None,
        run: "no saved run has measured enough for this figure".to_owned(),
    })
}

/// The order of outcomes: a change that is certain is graver than an unknown one.
fn gravity(outcome: TrendOutcome) -> u8 {
    match outcome {
        TrendOutcome::DoesNotHold => 0,
        TrendOutcome::ShortOfThreshold => 1,
        TrendOutcome::Undecided => 2,
        TrendOutcome::Holds => 3,
    }
}

/// Judges the newest run of a trend, unless another run may be the newest.
fn judge_target(
    limit: &Limit,
    trend: &Trend,
    unseen: &[UnseenRun],
    now: Timestamp,
) -> JudgedTarget {
    if let Some(later) = unseen.iter().find(|unseen| unseen.may_follow(trend)) {
        return JudgedTarget {
            outcome: TrendOutcome::Undecided,
            target: trend.target.clone(),
            run: format!("{}, and may be the newest", later.name),
        };
    }
    let outcome = match trend.points.last() {
        Some(newest) if is_after(&newest.started, now) => TrendOutcome::Undecided,
        Some(_) | None => outcome_of_trend(limit, trend),
    };
    JudgedTarget {
        outcome,
        target: trend.target.clone(),
        run: judged_run(trend, now),
    }
}

/// Names the run that decides a condition, and says why the condition may be undecided.
fn judged_run(trend: &Trend, now: Timestamp) -> String {
    if let Some(run_id) = &trend.newest_without_figure {
        return format!(
            "run {} ended early, or has not measured enough for this figure",
            short_id(run_id)
        );
    }
    let Some(newest) = trend.points.last() else {
        return "no saved run has measured enough for this figure".to_owned();
    };
    let run = format!("run {}", short_id(&newest.run_id));
    if is_after(&newest.started, now) {
        return format!("{run} begins in the future, at {}", newest.started);
    }
    match (&newest.objection, newest.change) {
        (Some(code), _) => format!("{run} has a figure that decides nothing ({code})"),
        (None, None) if trend.points.len() > 1 => format!(
            "no run before {run} has a figure to compare with: they are not the disk's, or waited \
             for processors"
        ),
        (None, Some(_)) if newest.is_hidden_by_waits() => {
            format!("{run}, which waited for processors")
        }
        (None, None) => format!("no run before {run} has measured it under the same conditions"),
        (None, Some(_)) => run,
    }
}

/// Finds the figure that a condition names, from run to run on each target. What `watch` recorded
/// has a trend, but no figure that other conditions can name.
fn find_trends(
    limit: &Limit,
    runs: &[SavedRun],
    shown: &[Trend],
    history: Option<&History>,
) -> Result<Vec<Trend>, Failure> {
    if let Some(figure) = named(&limit.metric) {
        let trends = condition_trends(&figure, runs, |run| saved_record(history?, &run.run_id));
        if !trends.is_empty() {
            return Ok(trends);
        }
    }
    let mut trends = Vec::new();
    for trend in shown {
        if is_named(trend, limit) {
            trends.push(trend.clone());
        }
    }
    if !trends.is_empty() {
        return Ok(trends);
    }
    let mut workloads: BTreeSet<&str> = BTreeSet::new();
    for run in runs {
        for figure in &run.figures {
            workloads.insert(&figure.workload);
        }
    }
    let names: Vec<&str> = workloads.into_iter().collect();
    Err(Failure::Usage(format!(
        "--fail-on '{}': no saved run has this figure. Write WORKLOAD.METRIC with a workload of {} \
         and a metric of {}",
        limit.expression,
        names.join(", "),
        threshold_names().join(", ")
    )))
}

fn print_runs(
    runs: &[SavedRun],
    presentation: Presentation,
    color: ColorWhen,
) -> anyhow::Result<Exit> {
    print_document(
        presentation,
        |out| json::write_runs(runs, out),
        |page| terminal::write_runs(runs, &style(color), page),
    )?;
    Ok(Exit::Done)
}

impl ListFlags {
    /// Returns `true` if a trend is of the target that the user named. A pattern selects runs with
    /// all of their targets.
    fn wants_target(&self, trend: &Trend) -> bool {
        match (self.target.as_deref().map(recorded_targets), &trend.target) {
            (Some(TargetFilter::Path(path)), Some(target)) => path == *target,
            (Some(TargetFilter::Path(_) | TargetFilter::Pattern(_)) | None, _) => true,
        }
    }

    fn presentation(&self) -> Presentation {
        Presentation::from_json_flag(self.json)
    }

    fn filter(&self) -> Filter {
        Filter {
            target: self.target.as_deref().map(recorded_targets),
            serial: self.serial.clone(),
            verb: self.verb.clone(),
            host: self.host.clone(),
            label: self.label.clone(),
            since: self.since.map(Timestamp::as_second),
            // A trend counts the runs of its machine.
            limit: if self.trend { None } else { self.limit },
        }
    }
}

/// The targets of this path as records hold it: absolute, with symlinks resolved. One that does not
/// exist may be a pattern, or a path of another machine.
fn recorded_targets(path: &str) -> TargetFilter {
    match Path::new(path).canonicalize() {
        Ok(resolved) => TargetFilter::Path(resolved.to_string_lossy().into_owned()),
        Err(_) => TargetFilter::Pattern(path.to_owned()),
    }
}

/// The runs that `prune` deletes: the older ones, or all but the newest `keep`.
fn prunable(
    history: &History,
    older_than: Option<SignedDuration>,
    keep: Option<u64>,
) -> Result<Vec<SavedRun>, Failure> {
    history
        .prunable(older_than.map(second_before_now), keep)
        .map_err(Failure::History)
}

fn show_prunable(runs: &[SavedRun]) -> anyhow::Result<Exit> {
    let count = counted(runs.len() as u64, "run");
    eprint_line(&format!("would delete {count}; nothing was deleted"));
    if runs.is_empty() {
        return Ok(Exit::Done);
    }
    print_runs(runs, Presentation::Page, ColorWhen::Auto)
}

/// The second of Unix time that lies this far back.
fn second_before_now(age: SignedDuration) -> i64 {
    Timestamp::now()
        .checked_sub(age)
        .unwrap_or(Timestamp::MIN)
        .as_second()
}

fn delete(history: &mut History, ids: &[String]) -> anyhow::Result<Exit> {
    let removed = history.delete(ids).map_err(Failure::History)?;
    eprint_line(&format!("deleted {}", counted(removed as u64, "run")));
    Ok(Exit::Done)
}

fn set_label(history: &mut History, run: &str, label: &str) -> anyhow::Result<Exit> {
    let id = run_id(history, run)?;
    let new_label = if label.is_empty() { None } else { Some(label) };
    history.label(&id, new_label).map_err(Failure::History)?;
    let run = short_id(&id);
    match new_label {
        Some(label) => eprint_line(&format!("run {run} now has the label {label}")),
        None => eprint_line(&format!("run {run} now has no label")),
    }
    Ok(Exit::Done)
}

fn import_files(
    files: &[String],
    label: Option<&str>,
    history: Option<&Path>,
) -> anyhow::Result<Exit> {
    let mut added = 0;
    let mut replaced = 0;
    let mut already_known = 0;
    let mut exit = Exit::Done;
    for file in files {
        match import_file(file, label, history) {
            Ok(SaveOutcome::Added) => added += 1,
            Ok(SaveOutcome::Replaced) => replaced += 1,
            Ok(SaveOutcome::Known) => already_known += 1,
            // Import the remaining files.
            Err(error) => {
                eprint_line(&format!("error: {error}"));
                exit = error.exit();
            }
        }
    }
    let mut text = format!("added {}", counted(added, "run"));
    if replaced > 0 {
        text.push_str(&format!(", completed {replaced}"));
    }
    if already_known > 0 {
        text.push_str(&format!(", {already_known} already in the history"));
    }
    eprint_line(&text);
    Ok(exit)
}

fn import_file(
    file: &str,
    label: Option<&str>,
    history: Option<&Path>,
) -> Result<SaveOutcome, Failure> {
    let record = load_file(file)?;
    let (outcome, moved) = import(record, label, history)?;
    print_notes("", moved.as_slice(), Verbosity::Lines);
    Ok(outcome)
}

fn parse_new_label(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text => parse_label(text),
    }
}

/// Reads an age in hours, days, weeks or years.
fn parse_age(text: &str) -> Result<SignedDuration, String> {
    match age_hours(text) {
        Some(hours @ 0..=AGE_HOURS_MAX) => Ok(SignedDuration::from_hours(hours)),
        _ => Err(format!(
            "'{text}' is not an age; write a number with h, d, w or y, such as 90d"
        )),
    }
}

/// The hours of an age such as `90d`; `None` for other text, and where they overflow.
fn age_hours(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let hours_per_unit = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        'y' => 365 * 24,
        _ => return None,
    };
    let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
    number.checked_mul(hours_per_unit)
}

fn parse_since(text: &str) -> Result<Timestamp, String> {
    match point_in_time(text) {
        Some(time) => Ok(time),
        None => Err(format!(
            "'{text}' is not a time; write an age such as 7d, a day such as 2026-11-20, or a time \
             such as 2026-11-20T10:00:00Z"
        )),
    }
}

/// Reads an age before now, a time, or a day. Without an offset both are in UTC.
fn point_in_time(text: &str) -> Option<Timestamp> {
    if let Ok(age) = parse_age(text) {
        return Timestamp::now().checked_sub(age).ok();
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    // A day begins at midnight.
    let time: DateTime = text.parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::trend::{TrendChange, TrendPoint};

    #[test]
    fn ages_and_times_parse() {
        assert_eq!(
            parse_age("90d").unwrap(),
            SignedDuration::from_hours(90 * 24)
        );
        assert_eq!(
            parse_age("1y").unwrap(),
            SignedDuration::from_hours(365 * 24)
        );
        for text in ["", "d", "90", "-1d", "90m", "1.5d", "99999999999999d", "5µ"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_since("2026-11-20").unwrap().to_string(),
            "2026-11-20T00:00:00Z"
        );
        assert_eq!(
            parse_since("2026-11-20T10:00:00+02:00")
                .unwrap()
                .to_string(),
            "2026-11-20T08:00:00Z"
        );
        for text in ["2026-11-20T23:00:00", "2026-11-20 23:00"] {
            assert_eq!(
                parse_since(text).unwrap().to_string(),
                "2026-11-20T23:00:00Z"
            );
        }
        assert!(parse_since("7d").unwrap() < Timestamp::now());
        assert!(parse_since("yesterday").is_err());
    }

    /// A trend of four points before this one on a target.
    fn trend(target: &str, newest: f64) -> Trend {
        let mut points = Vec::new();
        for (day, value) in (1..).zip([100.0, 101.0, 99.0, 100.5, newest]) {
            points.push(TrendPoint {
                run_id: format!("{day:032}"),
                started: format!("2026-11-{day:02}T03:00:00.5Z"),
                value,
                half_width_95: None,
                change: None,
                objection: None,
                without_waits: None,
            });
        }
        points[4].change = Some(TrendChange {
            share: newest / 100.0 - 1.0,
            is_beyond_chance: Some(true),
        });
        Trend {
            subject: "c".to_owned(),
            operation: String::new(),
            target: Some(target.to_owned()),
            metric: "iops".to_owned(),
            unit: "1/s".to_owned(),
            points,
            newest_without_figure: None,
        }
    }

    fn exit_of(trends: Vec<Trend>, unseen: &[UnseenRun]) -> Exit {
        let limit: Limit = "c.iops<-10%".parse().unwrap();
        let conditions = [Condition {
            limit: &limit,
            trends,
        }];
        let now = "2026-12-01T00:00:00Z".parse().unwrap();
        report_conditions(&conditions, unseen, now)
    }

    #[test]
    fn gravest_target_decides_a_condition() {
        let (fast, slow) = (trend("/fast", 100.0), trend("/slow", 50.0));
        let mut unknown = trend("/unknown", 100.0);
        unknown.newest_without_figure = Some("partial".to_owned());
        for (trends, exit) in [
            (vec![fast.clone()], Exit::Done),
            (vec![fast.clone(), slow.clone()], Exit::ThresholdMissed),
            (vec![slow.clone(), unknown.clone()], Exit::ThresholdMissed),
            (vec![fast, unknown], Exit::Undecided),
            (vec![], Exit::Undecided),
        ] {
            assert_eq!(exit_of(trends, &[]), exit);
        }
    }

    #[test]
    fn run_that_cannot_be_judged_may_be_the_newest() {
        let unreadable = |started: &str| UnreadableRun {
            run_id: "damaged".to_owned(),
            started_s: started.parse::<Timestamp>().unwrap().as_second(),
        };
        let damaged =
            |started: &str| unseen_runs(&ListFlags::default(), &[unreadable(started)], Vec::new());
        for newest in [100.0, 50.0] {
            let unseen = damaged("2026-11-05T03:00:00Z");
            assert_eq!(
                exit_of(vec![trend("/data", newest)], &unseen),
                Exit::Undecided
            );
        }
        let earlier = damaged("2026-11-05T02:59:59Z");
        assert_eq!(exit_of(vec![trend("/data", 100.0)], &earlier), Exit::Done);
        let unsaved = |run| {
            let name = "run 1".to_owned();
            unseen_runs(&ListFlags::default(), &[], vec![UnsavedRun { name, run }])
        };
        let unknown = unsaved(None);
        assert_eq!(
            exit_of(vec![trend("/data", 100.0)], &unknown),
            Exit::Undecided
        );
        let mut record = diskproof_analysis::fixture::record();
        record.started = "2026-11-06T03:00:00Z".to_owned();
        let run = SavedRun::from_record(&record, None);
        let target = run.targets[0].clone();
        let later = unsaved(Some(Box::new(run)));
        assert_eq!(
            exit_of(vec![trend(&target, 100.0)], &later),
            Exit::Undecided
        );
        assert_eq!(exit_of(vec![trend("/else", 100.0)], &later), Exit::Done);
    }

    fn with_label(label: Option<String>) -> ListFlags {
        ListFlags {
            label,
            ..ListFlags::default()
        }
    }

    fn with_verb(verb: Option<String>) -> ListFlags {
        ListFlags {
            verb,
            ..ListFlags::default()
        }
    }

    fn with_host(host: Option<String>) -> ListFlags {
        ListFlags {
            host,
            ..ListFlags::default()
        }
    }

    /// How many unsaved runs such a list would have, where this is the only one.
    fn unseen_count(list: &ListFlags, run: &SavedRun) -> usize {
        let unsaved = vec![UnsavedRun {
            name: "run 1".to_owned(),
            run: Some(Box::new(run.clone())),
        }];
        unseen_runs(list, &[], unsaved).len()
    }

    #[test]
    fn unsaved_run_that_the_list_leaves_out_does_not_matter() {
        let record = diskproof_analysis::fixture::record();
        let run = SavedRun::from_record(&record, Some("nightly"));
        let other = Some("other".to_owned());
        let wanted = [
            ListFlags::default(),
            with_label(run.label.clone()),
            with_verb(Some(run.verb.clone())),
            with_host(Some(run.host.clone())),
        ];
        for list in &wanted {
            assert_eq!(unseen_count(list, &run), 1, "{list:?}");
        }
        let since = |text: &str| ListFlags {
            since: Some(text.parse().unwrap()),
            ..ListFlags::default()
        };
        assert_eq!(unseen_count(&since(&run.started), &run), 1);
        assert_eq!(unseen_count(&since("2999-01-01T00:00:00Z"), &run), 0);
        let unwanted = [
            with_label(other.clone()),
            with_verb(other.clone()),
            with_host(other.clone()),
            ListFlags {
                serial: other,
                ..ListFlags::default()
            },
        ];
        for list in &unwanted {
            assert_eq!(unseen_count(list, &run), 0, "{list:?}");
        }
    }
}
