//! `diskproof compare`: compares runs metric by metric: saved ones, or those of a live comparison,
//! which measures two targets or settings in alternation.

mod flags;
mod live;
mod question;

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, files, is_stdout};
use crate::output_files::{Output, note_written, open_documents};
use crate::saved::{HistoryFileFlag, earlier_runs, load_all, named_or_recorded, short};
use crate::stdio::{
    ColorWhen, Verbosity, comparison_page, ignore_closed_pipe, to_stdout, write_page,
};
use crate::targets::keep_from_outputs;
use anyhow::Context as _;
use diskproof_analysis::compare::RunGroup;
use diskproof_history::StoredRun;
use diskproof_model::comparison::{Comparison, ConditionOutcome};
use diskproof_model::plan::{Decide, LivePlan, METHOD_VERSION, Origin, Plan, Sides};
use diskproof_model::record::Record;
use diskproof_report::format::Format;
use diskproof_report::formats::format_of;
use diskproof_report::terminal::MetricDetail;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use flags::CompareFlags;
pub(crate) use question::{compared, group};

/// All runs that `reference` names, each with its name. Splits at commas only when the whole
/// reference names nothing: a label or a file name may hold a comma.
fn find_runs(
    reference: &str,
    history_file: &HistoryFileFlag,
) -> Result<Vec<(String, Record)>, Failure> {
    let named = |reference: &str| -> Result<Vec<(String, Record)>, Failure> {
        let records = load_all(reference, history_file.file())?;
        let several = records.len() > 1;
        let named = |record: Record| {
            if several {
                (short(&record.run_id).to_owned(), record)
            } else {
                (reference.to_owned(), record)
            }
        };
        Ok(records.into_iter().map(named).collect())
    };
    match named(reference) {
        Err(_) if reference.contains(',') => {
            let each = reference.split(',').map(named);
            Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
        }
        found => found,
    }
}

/// Earlier runs as groups, one for each label.
fn earlier_groups(earlier: &[StoredRun]) -> Vec<RunGroup<'_>> {
    let mut groups: BTreeMap<&str, Vec<(&str, &Record)>> = BTreeMap::new();
    for StoredRun { label, record, .. } in earlier {
        let runs = groups
            .entry(label.as_deref().unwrap_or_default())
            .or_default();
        runs.push((short(&record.run_id), record));
    }
    let groups = groups.into_iter();
    groups.map(|(label, runs)| group(label, runs)).collect()
}

/// Runs the verb.
pub fn run(compare: &CompareFlags) -> anyhow::Result<Exit> {
    if let Some(exit) = run_live(compare)? {
        return Ok(exit);
    }
    if let Some(flag) = compare.live.given() {
        return Err(Failure::Usage(format!(
            "{flag} applies only to live comparisons, not to saved runs; name directories, files \
             or block devices"
        ))
        .into());
    }
    let references = references(compare)?;
    let sides = references
        .iter()
        .map(|reference| find_runs(reference, &compare.history_file))
        .collect::<Result<Vec<_>, _>>()?;
    let outputs = outputs_of(compare)?;
    let records: Vec<&Record> = sides.iter().flatten().map(|(_, record)| record).collect();
    let earlier = earlier_runs(&records, compare.history_file.file());
    let mut groups = references.iter().zip(&sides).map(|(label, runs)| {
        let runs = runs.iter();
        group(label, runs.map(|(name, record)| (name.as_str(), record)))
    });
    let Some(baseline) = groups.next() else {
        return Err(Failure::Usage(TOO_FEW.to_owned()).into());
    };
    let (candidates, history) = (groups.collect(), earlier_groups(&earlier));
    let comparison = compared(
        compare.margin,
        baseline,
        candidates,
        history,
        &compare.limits,
    )?;
    present(compare, &comparison, &outputs)
}

/// Repeats the comparison that a record is one side of, on these targets or on those that were
/// compared. The user has to agree to its commands, since the record may be another one's.
pub(crate) fn repeat(
    record: &Record,
    live: &LivePlan,
    targets: &[PathBuf],
    flags: &MeasuringFlags,
    has_agreed: bool,
) -> anyhow::Result<Exit> {
    let compare = &CompareFlags::repeating(live, flags, has_agreed)?;
    let (named, labels) = match &live.sides {
        Sides::Targets { paths } if targets.is_empty() => {
            let named = paths.iter().map(PathBuf::from).collect();
            (named, paths.clone())
        }
        Sides::Targets { paths } if targets.len() != paths.len() => {
            let count = paths.len();
            let why = format!("the record compares {count} targets; name as many, or none");
            return Err(Failure::Usage(why).into());
        }
        Sides::Targets { .. } => {
            let labels = targets.iter().map(|path| path.display().to_string());
            (targets.to_vec(), labels.collect())
        }
        Sides::Settings { prepare, .. } => (named_or_recorded(targets, record), prepare.clone()),
        Sides::Layers(_) => (Vec::new(), Vec::new()),
    };
    if labels.len() < 2 {
        let why = "the record compares fewer than two sides, so there is nothing to repeat";
        return Err(Failure::Usage(why.to_owned()).into());
    }
    for target in &named {
        keep_from_outputs(target);
    }
    let identities = flags.probe_all(&named)?;
    live::check_kinds(&identities, &compare.live)?;
    let kind = record.targets.first().map(|target| target.kind);
    if identities
        .iter()
        .any(|identity| Some(identity.kind) != kind)
    {
        let why = "name targets of the kind that the record compares (directory, file, device)";
        return Err(Failure::Usage(why.to_owned()).into());
    }
    let mut of_side = Plan {
        seed: flags.seed.unwrap_or(record.plan.seed),
        origin: Origin::new("compare", crate::provenance::command_line()),
        method: METHOD_VERSION,
        ..record.plan.clone()
    };
    if let Some(workloads) = of_side.workload_task_mut()
        && let Decide::Compare(live) = &mut workloads.decide
        && let Sides::Targets { paths } = &mut live.sides
    {
        paths.clone_from(&labels);
    }
    let outputs = outputs_of(compare)?;
    let (comparison, exit) = live::measure_sides(compare, flags, &labels, identities, &of_side)?;
    let compared = match comparison {
        Some(comparison) => present(compare, &comparison, &outputs)?,
        None => Exit::Done,
    };
    Ok(exit.unwrap_or(compared))
}

/// Measures the sides, unless the arguments name saved runs.
fn run_live(compare: &CompareFlags) -> anyhow::Result<Option<Exit>> {
    let Some(targets) = live::live_targets(compare)? else {
        return Ok(None);
    };
    for target in &targets {
        keep_from_outputs(Path::new(target));
    }
    let outputs = outputs_of(compare)?;
    let (comparison, exit) = live::run(compare, &targets)?;
    let by_conditions = comparison.map(|comparison| present(compare, &comparison, &outputs));
    Ok(exit.or(by_conditions.transpose()?))
}

/// Saves and prints a comparison, and returns how the conditions came out.
fn present(
    compare: &CompareFlags,
    comparison: &Comparison,
    outputs: &[Output],
) -> anyhow::Result<Exit> {
    save(comparison, outputs, Verbosity::lines(compare.live.quiet))?;
    let prints_json = compare.json || compare.outputs.iter().any(|path| is_stdout(path));
    let detail = if compare.all {
        MetricDetail::All
    } else {
        MetricDetail::Independent
    };
    print(comparison, prints_json, detail, compare.color)?;
    Ok(conclude(comparison, compare.fail_on_undecided))
}

const TOO_FEW: &str = "name at least two runs, such as 'compare latest~1 latest', or two targets, \
                       such as 'compare /mnt/old /mnt/new'. 'diskproof history' lists the runs";

/// The arguments that name sides, the baseline first.
fn references(compare: &CompareFlags) -> Result<Vec<String>, Failure> {
    let named = compare.baseline.iter().chain(&compare.runs);
    let mut references: Vec<String> = named.cloned().collect();
    if compare.baseline.is_some() && references.len() == 1 {
        references.push("latest".to_owned());
    }
    if references.len() < 2 {
        Err(Failure::Usage(TOO_FEW.to_owned()))
    } else {
        Ok(references)
    }
}

fn outputs_of(compare: &CompareFlags) -> Result<Vec<Output>, Failure> {
    let paths = files(&[&compare.outputs, &compare.html]);
    open_outputs(&paths, compare.history_file.file())
}

/// Opens the files of a comparison.
pub(super) fn open_outputs(
    paths: &[PathBuf],
    history: Option<&Path>,
) -> Result<Vec<Output>, Failure> {
    let can_hold = |format: &Format| format.comparison.is_some();
    open_documents("a comparison", can_hold, paths, history)
}

/// Writes a comparison to all output files.
pub(super) fn save(
    comparison: &Comparison,
    outputs: &[Output],
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    for output in outputs {
        let path = output.path();
        let format = format_of(path);
        let Some(file) = format.and_then(|format| format.comparison_file(comparison, path)) else {
            continue;
        };
        let bytes = output
            .save(&file)
            .with_context(|| format!("-o {}: cannot save the comparison", path.display()))?;
        note_written(path, bytes, verbosity);
    }
    Ok(())
}

/// Prints a comparison on stdout, as JSON, or as a page with these metrics.
pub(crate) fn print(
    comparison: &Comparison,
    as_json: bool,
    detail: MetricDetail,
    color: ColorWhen,
) -> anyhow::Result<()> {
    ignore_closed_pipe(to_stdout(|out| {
        if as_json {
            diskproof_report::json::write_comparison(comparison, out)
        } else {
            write_page(&comparison_page(comparison, detail), color, out)
        }
    }))
}

/// The exit code. A condition that holds fails a build, and one without an answer must not let it
/// pass. An undecided one passes with a warning, unless the user says otherwise.
fn conclude(comparison: &Comparison, fail_on_undecided: bool) -> Exit {
    let is = |outcome| {
        let conditions = comparison.conditions.iter();
        conditions.filter(move |condition| condition.outcome == outcome)
    };
    let any = |outcome| is(outcome).next().is_some();
    for condition in is(ConditionOutcome::Unanswered).chain(is(ConditionOutcome::Undecided)) {
        crate::stdio::eprint_line(&format!(
            "warning: --fail-on '{}': {}",
            condition.expression, condition.why
        ));
    }
    match () {
        () if any(ConditionOutcome::Holds) => Exit::ThresholdMissed,
        () if any(ConditionOutcome::Unanswered) => Exit::Failed,
        () if fail_on_undecided && any(ConditionOutcome::Undecided) => Exit::Undecided,
        () => Exit::Done,
    }
}
