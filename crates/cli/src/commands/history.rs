//! `diskproof history`: lists, labels, imports and deletes saved runs. Measures nothing.

use crate::failure::{Exit, Failure};
use crate::saved::{
    HistoryFileFlag, empty_text, import, load_file, open, open_if_there, parse_label, place,
    print_notes, recover_killed_runs, run_id, saved_record, short,
};
use crate::stdio::{ColorWhen, Verbosity, eprint_line, print_document, style};
use diskproof_analysis::compare::Limit;
use diskproof_analysis::trend::{condition_trend, is_named, outcome, trends};
use diskproof_history::{Filter, History, Listing, SaveOutcome};
use diskproof_model::comparison::ConditionOutcome;
use diskproof_model::figure::{named, threshold_names};
use diskproof_model::saved::SavedRun;
use diskproof_model::trend::Trend;
use diskproof_model::units::counted;
use diskproof_report::{json, terminal};
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use std::collections::BTreeSet;
use std::path::Path;

/// Below the help of `history`.
const HELP: &str = concat!(
    "Without a command, history lists the runs, newest first. Ages: 90d, 12w, 36h, 1y. 'prune' \
     never\n",
    "removes a run with a label.\n",
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
    pub action: Option<Action>,
    /// Which runs to list.
    #[command(flatten)]
    pub list: List,
}

/// Which runs to list, and how.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct List {
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
pub enum Action {
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
    /// Add records from files, such as those of other machines; known runs stay unchanged
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

/// Runs the verb.
pub fn run(history: &HistoryFlags) -> anyhow::Result<Exit> {
    match &history.action {
        None => list(&history.list),
        Some(Action::Prune {
            older_than,
            keep,
            dry_run,
            history_file,
        }) => remove_old(open(history_file.file())?, *older_than, *keep, *dry_run),
        Some(Action::Label {
            run,
            label,
            history_file,
        }) => name(&mut open(history_file.file())?, run, label),
        Some(Action::Delete { runs, history_file }) => {
            let mut history = open(history_file.file())?;
            // All or nothing: a mistyped id must not delete the runs before it.
            let ids = runs.iter().map(|run| run_id(&history, run));
            let ids = ids.collect::<Result<Vec<_>, _>>()?;
            delete(&mut history, &ids)
        }
        Some(Action::Import {
            files,
            label,
            history_file,
        }) => add(files, label.as_deref(), history_file.file()),
    }
}

fn list(list: &List) -> anyhow::Result<Exit> {
    let place = place(list.history_file.file())?;
    for note in recover_killed_runs(&place)? {
        eprint_line(&note);
    }
    let history = open_if_there(&place)?;
    let Listing { runs, unreadable } = match &history {
        Some(history) => history.list(&list.filter()).map_err(Failure::History)?,
        None => Listing::default(),
    };
    if let Some(first) = unreadable.first() {
        let (count, id) = (counted(unreadable.len() as u64, "run"), short(first));
        eprint_line(&format!(
            "warning: skipped {count} that cannot be read, such as {id}: damaged, or saved by \
             another version of diskproof"
        ));
    }
    let is_nothing = runs.is_empty() && !list.json;
    if is_nothing {
        if list.filter() == Filter::default() {
            eprint_line(&empty_text(&place.path))
        } else {
            eprint_line("no saved run matches. 'diskproof history' lists all runs")
        }
    }
    if list.trend {
        return show_trend(&runs, list, history.as_ref());
    }
    if is_nothing {
        return Ok(Exit::Done);
    }
    write(&runs, list.json, list.color)
}

fn show_trend(runs: &[SavedRun], list: &List, history: Option<&History>) -> anyhow::Result<Exit> {
    let mut trends = trends(runs);
    let mut conditions: Vec<(&Limit, Trend)> = Vec::new();
    if !trends.is_empty() {
        for limit in &list.fail_on {
            conditions.push((limit, trend_of(limit, runs, &trends, history)?));
        }
    }
    for (limit, trend) in &conditions {
        if !trend.points.is_empty() && !trends.iter().any(|shown| is_named(shown, limit)) {
            trends.push(trend.clone());
        }
    }
    let style = style(list.color);
    print_document(
        list.json,
        |out| json::write_trends(&trends, out),
        |page| terminal::write_trends(&trends, &style, page),
    )?;
    if trends.is_empty() {
        eprint_line("no complete run has figures for a trend");
        // A timer must not take the absence of figures for a pass.
        return Ok(if list.fail_on.is_empty() {
            Exit::Done
        } else {
            Exit::Undecided
        });
    }
    let mut exit = Exit::Done;
    for (limit, trend) in &conditions {
        let (word, code) = match outcome(limit, trend) {
            ConditionOutcome::DoesNotHold => ("does not hold", Exit::Done),
            ConditionOutcome::Holds => ("holds", Exit::ThresholdMissed),
            ConditionOutcome::Undecided | ConditionOutcome::Unanswered => {
                ("is undecided", Exit::Undecided)
            }
        };
        let expression = &limit.expression;
        let about = judged_run(trend);
        eprint_line(&format!("--fail-on '{expression}' {word}: {about}"));
        if code == Exit::ThresholdMissed || exit == Exit::Done {
            exit = code;
        }
    }
    Ok(exit)
}

/// The run that decides a condition, and why it may be undecided.
fn judged_run(trend: &Trend) -> String {
    if let Some(run_id) = &trend.newest_without_figure {
        return format!(
            "run {} has not measured enough for this figure",
            short(run_id)
        );
    }
    let Some(newest) = trend.points.last() else {
        return "no saved run has measured enough for this figure".to_owned();
    };
    let run = format!("run {}", short(&newest.run_id));
    match &newest.objection {
        Some(code) => format!("{run} has a figure that is not the disk's ({code})"),
        None => run,
    }
}

/// The figure that a condition names, from run to run. What `watch` recorded has a trend, but no
/// figure that other conditions can name.
fn trend_of(
    limit: &Limit,
    runs: &[SavedRun],
    shown: &[Trend],
    history: Option<&History>,
) -> Result<Trend, Failure> {
    let figure = named(&limit.metric);
    let load = |run: &SavedRun| history.and_then(|history| saved_record(history, &run.run_id));
    if let Some(trend) = figure.and_then(|figure| condition_trend(&figure, runs, load)) {
        return Ok(trend);
    }
    if let Some(trend) = shown.iter().find(|trend| is_named(trend, limit)) {
        return Ok(trend.clone());
    }
    let mut subjects: BTreeSet<&str> = BTreeSet::new();
    for run in runs {
        subjects.extend(run.figures.iter().map(|figure| figure.workload.as_str()));
    }
    let subjects: Vec<&str> = subjects.into_iter().collect();
    Err(Failure::Usage(format!(
        "--fail-on '{}': no saved run has this figure. Write WORKLOAD.METRIC with a workload of {} \
         and a metric of {}",
        limit.expression,
        subjects.join(", "),
        threshold_names().join(", ")
    )))
}

fn write(runs: &[SavedRun], as_json: bool, color: ColorWhen) -> anyhow::Result<Exit> {
    let style = style(color);
    print_document(
        as_json,
        |out| json::write_runs(runs, out),
        |page| terminal::write_runs(runs, &style, page),
    )?;
    Ok(Exit::Done)
}

impl List {
    fn filter(&self) -> Filter {
        // Records hold absolute paths with symlinks resolved. A path that does not exist may be a
        // pattern, or a path of another machine.
        let target = |path: &String| match Path::new(path).canonicalize() {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(_) => path.clone(),
        };
        Filter {
            target: self.target.as_ref().map(target),
            serial: self.serial.clone(),
            verb: self.verb.clone(),
            host: self.host.clone(),
            label: self.label.clone(),
            since: self.since.map(Timestamp::as_second),
            limit: self.limit,
        }
    }
}

fn remove_old(
    mut history: History,
    older_than: Option<SignedDuration>,
    keep: Option<u64>,
    dry_run: bool,
) -> anyhow::Result<Exit> {
    let before = |age| Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN);
    let before = older_than.map(|age| before(age).as_second());
    let found = history.prunable(before, keep);
    let runs = found.map_err(Failure::History)?;
    if dry_run {
        let count = counted(runs.len() as u64, "run");
        eprint_line(&format!("would delete {count}; nothing was deleted"));
        return if runs.is_empty() {
            Ok(Exit::Done)
        } else {
            write(&runs, false, ColorWhen::Auto)
        };
    }
    let ids: Vec<String> = runs.into_iter().map(|run| run.run_id).collect();
    delete(&mut history, &ids)
}

fn delete(history: &mut History, ids: &[String]) -> anyhow::Result<Exit> {
    let removed = history.delete(ids).map_err(Failure::History)?;
    eprint_line(&format!("deleted {}", counted(removed as u64, "run")));
    Ok(Exit::Done)
}

fn name(history: &mut History, run: &str, label: &str) -> anyhow::Result<Exit> {
    let id = run_id(history, run)?;
    let name = Some(label).filter(|name| !name.is_empty());
    history.label(&id, name).map_err(Failure::History)?;
    match name {
        Some(name) => eprint_line(&format!("run {} now has the label {name}", short(&id))),
        None => eprint_line(&format!("run {} now has no label", short(&id))),
    }
    Ok(Exit::Done)
}

fn add(files: &[String], label: Option<&str>, history: Option<&Path>) -> anyhow::Result<Exit> {
    let (mut added, mut known, mut failed) = (0, 0, None);
    for file in files {
        let saved = load_file(file).and_then(|record| import(record, label, history));
        match saved {
            Ok((outcome, moved)) => {
                print_notes("", moved.as_slice(), Verbosity::Lines);
                match outcome {
                    SaveOutcome::Added => added += 1,
                    SaveOutcome::Known => known += 1,
                }
            }
            // Import the remaining files.
            Err(error) => {
                eprint_line(&format!("error: {error}"));
                failed = Some(error.exit());
            }
        }
    }
    let there = match known {
        0 => String::new(),
        known => format!(", {known} already in the history"),
    };
    eprint_line(&format!("added {}{there}", counted(added as u64, "run")));
    Ok(failed.unwrap_or(Exit::Done))
}

fn parse_new_label(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text => parse_label(text),
    }
}

/// Reads an age in hours, days, weeks or years.
fn parse_age(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("'{text}' is not an age; write a number with h, d, w or y, such as 90d");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let number = text[..text.len() - unit.len_utf8()].parse::<i64>();
    let number = number.map_err(|_| wrong())?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        'y' => 365 * 24,
        _ => return Err(wrong()),
    };
    // At most a hundred thousand years, so that no later arithmetic overflows.
    let hours = number.checked_mul(hours);
    let hours = hours.filter(|hours| (0..=876_000_000).contains(hours));
    hours.map(SignedDuration::from_hours).ok_or_else(wrong)
}

fn parse_since(text: &str) -> Result<Timestamp, String> {
    let day = || {
        let day: Date = text.parse().ok()?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    let wrong = || {
        format!(
            "'{text}' is not a time; write an age such as 7d, a day such as 2026-11-20, or a time \
             such as 2026-11-20T10:00:00Z"
        )
    };
    if let Ok(age) = parse_age(text) {
        return Timestamp::now().checked_sub(age).map_err(|_| wrong());
    }
    let time = text.parse::<Timestamp>().ok();
    time.or_else(day).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(parse_since("7d").unwrap() < Timestamp::now());
        assert!(parse_since("yesterday").is_err());
    }
}
