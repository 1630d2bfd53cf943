//! The live comparison: several targets, or several settings of one, measured in random
//! alternation, and the records of the sides. The campaign decides what is measured.

use super::flags::{CompareFlags, LiveFlags};
use super::question::{compare_groups, run_group};
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_USEFUL_MIN, SECOND_NS, scratch_file_bytes};
use crate::interrupt;
use crate::saved::{self, HistoryOptions, SaveNote, in_history, names_run, print_notes};
use crate::session::{
    self, AgreedChanges, ComparedSides, EarlyEnd, EndedRun, MeasuringJob, SettingCommands,
    SideResults, side_name,
};
use crate::standard_workloads::{
    WORKLOAD_PARTS, of_all_sides, share_among_sides, standard_workloads,
};
use crate::stdio::{Verbosity, eprint_line};
use crate::targets::resolve_target;
use diskproof_analysis::compare::Limit;
use diskproof_device::scratch_bytes_max;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::comparison::Comparison;
use diskproof_model::plan::{
    Decide, LivePlan, Plan, Scratch, Sides, Skipped, Task, Workload, Workloads,
};
use diskproof_model::record::Record;
use diskproof_model::secrets::text_without_secrets;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_report::terminal::{Detail, record_page};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The end of a live comparison.
pub(super) struct LiveOutcome {
    /// `None` where a side was not measured, or the plan was only shown.
    pub comparison: Option<Comparison>,
    /// The exit code of a run that did not come to its end, or had errors; it goes before that of
    /// the comparison.
    pub early_exit: Option<Exit>,
}

/// Measures these targets, or settings of the only one, and compares.
pub(super) fn run(flags: &CompareFlags, targets: &[String]) -> anyhow::Result<LiveOutcome> {
    let live_flags = &flags.live;
    let measuring = &flags.measuring_flags();
    let mut identities = Vec::new();
    for target in targets {
        identities.push(measuring.probe(Path::new(target))?);
    }
    check_kinds(&identities, live_flags)?;
    let commands = shown_commands(&live_flags.prepare);
    let (labels, sides) = if commands.is_empty() {
        let paths = targets.to_vec();
        (targets, Sides::Targets { paths })
    } else {
        let settings = Sides::Settings {
            prepare: commands.clone(),
            cleanup: live_flags.cleanup.as_deref().map(text_without_secrets),
            reopen: live_flags.reopen,
        };
        (&commands[..], settings)
    };
    let side_plan = live_plan(flags, measuring, &identities, sides, labels.len())?;
    check_limits(&flags.limits, &side_plan)?;
    let given = Path::new(&targets[0]);
    measure_sides(flags, measuring, labels, given, identities, &side_plan)
}

/// Measures the sides of a comparison, which have these names and the plan `side_plan`. The
/// commands are those of the flags, and `given` is the first target as the user names it.
pub(super) fn measure_sides(
    flags: &CompareFlags,
    measuring: &MeasuringFlags,
    labels: &[String],
    given: &Path,
    identities: Vec<TargetIdentity>,
    side_plan: &Plan,
) -> anyhow::Result<LiveOutcome> {
    let live_flags = &flags.live;
    let mut plan = Plan {
        targets: identities
            .iter()
            .map(|identity| identity.path.clone())
            .collect(),
        ..side_plan.clone()
    };
    *plan.workloads_mut() = of_all_sides(side_plan.workloads(), labels.len());
    let mut job = MeasuringJob::new(plan, identities, measuring);
    job.agreed = AgreedChanges::Commands(SettingCommands {
        prepare: live_flags.prepare.clone(),
        cleanup: live_flags.cleanup.clone(),
        reopens: live_flags.reopen,
        path: resolve_target(given, Verbosity::Quiet),
        reads_health: !measuring.health.no_health,
    });
    let sides = ComparedSides {
        plan: side_plan.clone(),
        count: labels.len(),
        prepare: shown_commands(&live_flags.prepare),
    };
    // Also of targets, which one record could hold: its plan has the time of all sides, so that a
    // comparison which is killed could not be repeated.
    job.sides = Some(sides.clone());
    match session::run(job)? {
        Some(ended) => conclude(flags, measuring, labels, &sides, &ended),
        None => Ok(LiveOutcome {
            comparison: None,
            early_exit: Some(Exit::Done),
        }),
    }
}

/// The commands as pages and records show them: without passwords.
fn shown_commands(commands: &[String]) -> Vec<String> {
    commands
        .iter()
        .map(|command| text_without_secrets(command))
        .collect()
}

/// Refuses a condition on a workload that is not measured: that would be noticed only after the
/// run.
fn check_limits(limits: &[Limit], plan: &Plan) -> Result<(), Failure> {
    let workloads = plan.workloads();
    for limit in limits {
        let is_known = workloads
            .iter()
            .any(|workload| is_metric_of(&limit.metric, &workload.name));
        if !is_known {
            let names: Vec<&str> = workloads
                .iter()
                .map(|workload| workload.name.as_str())
                .collect();
            return Err(Failure::Usage(format!(
                "--fail-on '{}': this comparison measures {}",
                limit.expression,
                names.join(", ")
            )));
        }
    }
    Ok(())
}

fn is_metric_of(metric: &str, workload: &str) -> bool {
    match metric.strip_prefix(workload) {
        Some(rest) => rest.starts_with('.'),
        None => false,
    }
}

/// The targets to measure, as the user named them; `None` where the arguments name saved runs.
pub(crate) fn live_targets(flags: &CompareFlags) -> Result<Option<Vec<String>>, Failure> {
    if !flags.live.prepare.is_empty() {
        let target = target_of_settings(flags)?;
        return Ok(Some(vec![target]));
    }
    if flags.baseline.is_some() {
        return Ok(None);
    }
    let history = flags.history_file.history.as_deref();
    let (targets, saved_runs): (Vec<String>, Vec<String>) = flags
        .runs
        .iter()
        .cloned()
        .partition(|name| is_target(name, history));
    match (&targets[..], &saved_runs[..]) {
        ([], _) => Ok(None),
        ([only], []) => Err(Failure::Usage(format!(
            "{only} cannot be compared alone; name a second target, or two settings with \
             --prepare 'CMD A' --prepare 'CMD B'"
        ))),
        ([_, ..], [other, ..]) if names_nothing(other, history) => Err(Failure::Usage(format!(
            "{other} does not exist: it is neither a target nor a saved run"
        ))),
        ([target, ..], [other, ..]) => Err(Failure::Usage(format!(
            "{target} is a target, but {other} is not. Name either saved runs, or directories, \
             files and block devices"
        ))),
        (_, []) => Ok(Some(targets)),
    }
}

/// The target of which --prepare sets up each side.
fn target_of_settings(flags: &CompareFlags) -> Result<String, Failure> {
    let problem = if flags.baseline.is_some() {
        "--baseline names saved runs; omit it"
    } else if flags.live.prepare.len() < 2 {
        "a single --prepare gives nothing to compare; use one for each side, such as \
         --prepare 'CMD A' --prepare 'CMD B'"
    } else {
        match &flags.runs[..] {
            [] => return Ok(".".to_owned()),
            [target] => return Ok(target.clone()),
            _ => {
                "--prepare compares settings of one target; name one target, or compare the \
                 targets without --prepare"
            }
        }
    };
    Err(Failure::Usage(problem.to_owned()))
}

/// True if an argument is the name of no file, device or saved run.
fn names_nothing(name: &str, history: Option<&Path>) -> bool {
    let path = crate::targets::resolve_target(Path::new(name), Verbosity::Quiet);
    let is_missing = match std::fs::symlink_metadata(path) {
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    is_missing && !names_run(name, history)
}

/// True if the argument names a target. What names a saved run keeps that meaning.
fn is_target(name: &str, history: Option<&Path>) -> bool {
    let path = crate::targets::resolve_target(Path::new(name), Verbosity::Quiet);
    let Ok(metadata) = std::fs::metadata(&path) else {
        return false;
    };
    let is_measurable = metadata.is_dir()
        || metadata.file_type().is_block_device()
        || (metadata.is_file() && !looks_like_document(&path));
    if !is_measurable {
        return false;
    }
    let is_path = name.contains('/') || name == "." || name == "..";
    is_path || !names_run(name, history)
}

/// True if a file is a record or a comparison, by its extension or its first letter: they are JSON
/// or pages.
fn looks_like_document(path: &Path) -> bool {
    if let Some(end) = path.extension()
        && (end == "json" || end == "html")
    {
        return true;
    }
    // What cannot be read is no document.
    let Ok(start) = read_start(path) else {
        return false;
    };
    // The start may end within a letter.
    String::from_utf8_lossy(&start)
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with(['{', '<'])
}

/// Enough for a byte order mark, blanks and the first letter of a document.
const START_BYTES: u64 = 64;

fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?
        .take(START_BYTES)
        .read_to_end(&mut start)?;
    Ok(start)
}

/// Refuses targets of different kinds, whose figures are not comparable, and a released one that is
/// named twice: one side would read the writes of the other.
pub(super) fn check_kinds(identities: &[TargetIdentity], live: &LiveFlags) -> Result<(), Failure> {
    let Some((first, others)) = identities.split_first() else {
        return Ok(());
    };
    if let Some(other) = others.iter().find(|other| other.kind != first.kind) {
        return Err(Failure::Usage(format!(
            "{} is {} but {} is {}, so their figures are not comparable. Name targets of the same \
             kind",
            first.path,
            kind_text(first.kind),
            other.path,
            kind_text(other.kind)
        )));
    }
    let is_released = live.destructive.overwrite || !live.destructive.destroy.is_empty();
    if !is_released || first.kind == TargetKind::Directory {
        return Ok(());
    }
    match named_twice(identities) {
        Some(target) => Err(Failure::Usage(format!(
            "{} is named twice, so one side would read the writes of the other; omit --destroy and \
             --overwrite to compare it with itself",
            target.path
        ))),
        None => Ok(()),
    }
}

fn kind_text(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Directory => "a directory",
        TargetKind::File => "a file",
        TargetKind::BlockDevice => "a block device",
    }
}

/// The first target that a later one is, too.
fn named_twice(identities: &[TargetIdentity]) -> Option<&TargetIdentity> {
    for (index, identity) in identities.iter().enumerate() {
        let later = &identities[index + 1..];
        if later.iter().any(|other| identity.is_same(other)) {
            return Some(identity);
        }
    }
    None
}

/// Time for everything.
const TIME_NS: u64 = 60 * SECOND_NS;
/// Time for everything with --quick.
const QUICK_NS: u64 = 20 * SECOND_NS;
/// Filling one scratch file may take a twelfth of the time. Chosen, not measured.
const LAYOUT_DIVISOR: u64 = 12;
/// What comes after the last cell may take a twentieth of the time. Chosen, not measured.
const END_DIVISOR: u64 = 20;
/// The workloads that are compared unless --only names others.
const DEFAULT_WORKLOADS: [&str; 4] = [
    "sequential-read",
    "random-read-d1",
    "random-read-d32",
    "commit-fdatasync",
];
/// A scratch file: drives have caches of up to 1 GiB.
const SCRATCH_BYTES: u64 = 1 << 30;
/// A scratch file that is filled before each cell, because the target is reopened: an eighth of the
/// usual one, so that most of the time is left for cells.
const SCRATCH_BYTES_REOPENED: u64 = 128 << 20;

/// The plan of one side, which has the workloads' time on that side.
fn live_plan(
    flags: &CompareFlags,
    measuring: &MeasuringFlags,
    identities: &[TargetIdentity],
    sides: Sides,
    side_count: usize,
) -> Result<Plan, Failure> {
    let live_flags = &flags.live;
    let scratch_bytes = scratch_size(live_flags, identities)?;
    let default_ns = if live_flags.quick { QUICK_NS } else { TIME_NS };
    let time_ns = live_flags.time.unwrap_or(default_ns);
    Failure::check_time(time_ns)?;
    let write_bytes = match scratch_bytes {
        Some(bytes) => bytes,
        None => smallest_bytes(identities).min(SCRATCH_BYTES),
    };
    // Their times are replaced by those of the sides.
    let standard = standard_workloads(measuring, time_ns, write_bytes, WORKLOAD_PARTS);
    let selected = select_workloads(live_flags, standard, identities)?;
    let layout_ns = time_ns / LAYOUT_DIVISOR;
    let mut cells_ns = time_ns - time_ns / END_DIVISOR;
    if scratch_bytes.is_some() {
        let layouts_ns = layout_ns * identities.len() as u64;
        cells_ns = cells_ns.saturating_sub(layouts_ns);
    }
    let workloads = share_among_sides(selected.workloads, side_count, "sides", time_ns, cells_ns)
        .map_err(|why| Failure::Usage(format!("{why}, or fewer workloads (--only)")))?;
    let live = LivePlan {
        sides,
        margin: flags.margin,
        cells_ns,
    };
    let scratch = match scratch_bytes {
        None => None,
        Some(bytes) if live_flags.reopen => Some(Scratch::of_size(bytes)),
        Some(bytes) => {
            Some(Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_USEFUL_MIN, layout_ns))
        }
    };
    Ok(Plan {
        scratch,
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Compare(live),
            ..Workloads::as_planned(workloads)
        })],
        skipped: selected.skipped,
        ..measuring.plan("compare", &[])
    })
}

fn smallest_bytes(identities: &[TargetIdentity]) -> u64 {
    identities
        .iter()
        .map(|identity| identity.size_bytes)
        .min()
        .unwrap_or(0)
}

/// The size of each scratch file; `None` where the targets are files or devices.
fn scratch_size(flags: &LiveFlags, identities: &[TargetIdentity]) -> Result<Option<u64>, Failure> {
    let has_directory = identities
        .iter()
        .any(|identity| identity.kind == TargetKind::Directory);
    if !has_directory {
        return match flags.size {
            None => Ok(None),
            Some(_) => Err(Failure::Usage(
                "--size is the size of the scratch files in directories; omit it".to_owned(),
            )),
        };
    }
    // Several directories may share one filesystem.
    let room = identities.iter().map(scratch_bytes_max).min().unwrap_or(0);
    let wanted = if flags.reopen {
        SCRATCH_BYTES_REOPENED
    } else {
        SCRATCH_BYTES
    };
    let bytes = scratch_file_bytes(flags.size, wanted, room / identities.len() as u64)?;
    Ok(Some(bytes))
}

/// The workloads to compare, and why others are skipped.
struct SelectedWorkloads {
    workloads: Vec<Workload>,
    skipped: Vec<Skipped>,
}

fn select_workloads(
    flags: &LiveFlags,
    standard: Vec<Workload>,
    identities: &[TargetIdentity],
) -> Result<SelectedWorkloads, Failure> {
    let selection = &flags.selection;
    let known_names: Vec<&str> = standard
        .iter()
        .map(|workload| workload.name.as_str())
        .collect();
    selection.check_names(&known_names)?;
    let mut selected = SelectedWorkloads {
        workloads: Vec::new(),
        skipped: Vec::new(),
    };
    let kind = identities[0].kind;
    let write_ban = flags.destructive.write_ban(flags.read_only, kind);
    for workload in standard {
        let name = workload.name.as_str();
        let is_requested = !selection.only.is_empty() || DEFAULT_WORKLOADS.contains(&name);
        if !is_requested || selection.excludes(name).is_some() {
            continue;
        }
        match write_ban {
            Some(ban) if workload.writes() => {
                selected.skipped.push(ban.skipped(workload.name, ""));
            }
            _ => selected.workloads.push(workload),
        }
    }
    if selected.workloads.is_empty() {
        let mut text = "nothing is left to compare; select at least one workload.".to_owned();
        if let Some(first) = selected.skipped.first() {
            text.push_str(&format!(" {}: {}", first.workload, first.why));
        }
        return Err(Failure::Usage(text));
    }
    Ok(selected)
}

/// Saving takes milliseconds, and up to 20 s where another process holds the history.
const SAVE_LIMIT: Duration = Duration::from_secs(30);

/// Saves a record of each side, and compares them.
fn conclude(
    flags: &CompareFlags,
    measuring: &MeasuringFlags,
    labels: &[String],
    sides: &ComparedSides,
    run: &EndedRun,
) -> anyhow::Result<LiveOutcome> {
    let verbosity = measuring.verbosity();
    let results = SideResults {
        facts: &run.facts,
        data: &run.results.data,
        switched: &run.results.sides,
        decisions: &run.results.decisions,
    };
    let mut records = Vec::new();
    for record in sides.records(results) {
        records.push(Arc::new(record));
    }
    if !run.results.hung.is_empty() {
        verbosity.note(&session::process_may_stay(&run.results.hung, &sides.plan));
    }
    let early_exit = exit_of_early_end(run);
    let saved_sides = save_sides(&records, measuring);
    // From the journal of a run whose sides could not be saved, the next reader of the history
    // takes what is there.
    if saved_sides.are_all_saved {
        run.end_journal();
    }
    if saved_sides.lacks_measurement {
        eprint_line("nothing to compare: at least one side was not measured");
        return Ok(LiveOutcome {
            comparison: None,
            early_exit: early_exit.or(Some(Exit::Failed)),
        });
    }
    interrupt::end_at_once();
    let mut groups = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let name = saved::short_id(&record.run_id);
        groups.push(run_group(&labels[index], [(name, record.as_ref())]));
    }
    let baseline = groups.remove(0);
    let comparison = compare_groups(flags.margin, baseline, groups, Vec::new(), &flags.limits)?;
    let failed = records.iter().any(|record| session::has_errors(record));
    let exit = match early_exit {
        None if failed || !run.is_cleaned_up || !run.results.hung.is_empty() => Some(Exit::Failed),
        early_exit => early_exit,
    };
    Ok(LiveOutcome {
        comparison: Some(comparison),
        early_exit: exit,
    })
}

/// The outcome of saving the records of the sides.
struct SavedSides {
    /// True if the history has each record.
    are_all_saved: bool,
    /// True if a side measured nothing, so that there is nothing to compare.
    lacks_measurement: bool,
}

/// Saves the records of the sides, and says where. One that measured nothing says why.
fn save_sides(records: &[Arc<Record>], measuring: &MeasuringFlags) -> SavedSides {
    let mut saved_sides = SavedSides {
        are_all_saved: true,
        lacks_measurement: false,
    };
    for (index, record) in records.iter().enumerate() {
        if record.measurements.is_empty() {
            saved_sides.lacks_measurement = true;
        }
        let notes = save_record(record, measuring.history.clone());
        saved_sides.are_all_saved &= in_history(&notes).is_some();
        print_notes(
            &format!("{}: ", side_name(index)),
            &notes,
            measuring.verbosity(),
        );
    }
    saved_sides
}

/// Saves a record in the history, and says where. Gives up after [`SAVE_LIMIT`].
fn save_record(record: &Arc<Record>, options: HistoryOptions) -> Vec<SaveNote> {
    let own_record = Arc::clone(record);
    let save = Deferred::start_or_run("diskproof-save", move || {
        let page = record_page(&own_record, Detail::Whole, &crate::stdio::colored_style());
        saved::keep(&own_record, &page, &options)
    });
    match save.wait(SAVE_LIMIT) {
        Waited::Done(notes) => notes,
        Waited::TimedOut(_) | Waited::Lost => {
            vec![SaveNote::Unsaved("the history did not answer".to_owned())]
        }
    }
}

/// Prints why a comparison did not come to its end, and returns how it exits; `None` for one that
/// did.
fn exit_of_early_end(run: &EndedRun) -> Option<Exit> {
    let early_end = match &run.ended {
        Ok(_) => return None,
        Err(early_end) => early_end,
    };
    if let EarlyEnd::Reason(why) | EarlyEnd::Unanswered { why, .. } = early_end
        && let Some(signal) = interrupt::signal()
    {
        eprint_line(why);
        return Some(Exit::Signal(signal));
    }
    eprint_line(&format!("error: {early_end}"));
    Some(Exit::Failed)
}
