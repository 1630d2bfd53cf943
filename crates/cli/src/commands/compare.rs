//! `diskproof compare`: compares runs metric by metric: saved ones, or those of a live comparison,
//! which measures two targets or settings in alternation.

mod flags;
mod live;
mod question;

use crate::agreement::Agreement;
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, is_stdout, output_files};
use crate::output_files::{Output, note_written, open_documents};
use crate::saved::{earlier_runs, load_all, named_or_recorded, short_id};
use crate::stdio::{
    ColorWhen, Presentation, Verbosity, eprint_line, ignore_closed_pipe, to_stdout,
    write_comparison_page,
};
use crate::targets::keep_from_outputs;
use anyhow::Context as _;
use diskproof_analysis::compare::RunGroup;
use diskproof_history::StoredRun;
use diskproof_model::comparison::{Comparison, Condition, ConditionOutcome};
use diskproof_model::plan::{Decide, LivePlan, METHOD_VERSION, Origin, Plan, Sides};
use diskproof_model::record::Record;
use diskproof_report::formats::format_of;
use diskproof_report::terminal::MetricDetail;
use live::LiveOutcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use flags::CompareFlags;
pub(crate) use flags::parse_margin;
pub(crate) use question::{compare_groups, run_group};

/// A record under the name that the page shows.
struct NamedRecord {
    /// The reference that found it, or its run id.
    name: String,
    record: Record,
}

/// The runs of one side.
struct SideRuns {
    label: String,
    runs: Vec<NamedRecord>,
}

impl SideRuns {
    fn group(&self) -> RunGroup<'_> {
        let runs = self.runs.iter().map(|run| (run.name.as_str(), &run.record));
        run_group(&self.label, runs)
    }
}

/// Finds all runs that `reference` names. Splits at commas only when the whole reference names
/// nothing: a label or a file name may hold a comma.
fn find_side(reference: String, history: Option<&Path>) -> Result<SideRuns, Failure> {
    let is_file = Path::new(&reference).exists();
    let runs = match load_named(&reference, history) {
        Ok(runs) => runs,
        Err(Failure::Usage(_)) if reference.contains(',') && !is_file => {
            let mut runs = Vec::new();
            for part in reference.split(',') {
                runs.extend(load_named(part, history)?);
            }
            runs
        }
        Err(failure) => return Err(failure),
    };
    Ok(SideRuns {
        label: reference,
        runs,
    })
}

/// Loads the records of a reference. One record has the name of the reference, several have their
/// run ids.
fn load_named(reference: &str, history: Option<&Path>) -> Result<Vec<NamedRecord>, Failure> {
    let records = load_all(reference, history)?;
    let is_only = records.len() == 1;
    let mut named = Vec::new();
    for record in records {
        let name = if is_only {
            reference
        } else {
            short_id(&record.run_id)
        };
        named.push(NamedRecord {
            name: name.to_owned(),
            record,
        });
    }
    Ok(named)
}

/// Earlier runs as groups, one for each label.
fn earlier_groups(earlier: &[StoredRun]) -> Vec<RunGroup<'_>> {
    let mut groups: BTreeMap<&str, Vec<(&str, &Record)>> = BTreeMap::new();
    for run in earlier {
        let label = run.label.as_deref().unwrap_or_default();
        let runs = groups.entry(label).or_default();
        runs.push((short_id(&run.record.run_id), &run.record));
    }
    groups
        .into_iter()
        .map(|(label, runs)| run_group(label, runs))
        .collect()
}

/// Compares: measures where the arguments name targets, else reads saved runs. The exit code says
/// how the `--fail-on` conditions came out.
pub fn run(flags: &CompareFlags) -> anyhow::Result<Exit> {
    if let Some(targets) = live::live_targets(flags)? {
        return run_live(flags, &targets);
    }
    if let Some(flag) = flags.live.first_of_live_only() {
        return Err(Failure::Usage(format!(
            "{flag} applies only to live comparisons, not to saved runs; name directories, files \
             or block devices"
        ))
        .into());
    }
    let history = flags.history_file.file();
    let mut sides = Vec::new();
    for reference in references(flags)? {
        sides.push(find_side(reference, history)?);
    }
    let outputs = open_named_outputs(flags)?;
    let records: Vec<&Record> = sides
        .iter()
        .flat_map(|side| &side.runs)
        .map(|run| &run.record)
        .collect();
    let earlier = earlier_runs(&records, history);
    let Some((baseline, candidates)) = sides.split_first() else {
        return Err(Failure::Usage(TOO_FEW.to_owned()).into());
    };
    let comparison = compare_groups(
        flags.margin,
        baseline.group(),
        candidates.iter().map(SideRuns::group).collect(),
        earlier_groups(&earlier),
        &flags.limits,
    )?;
    present_comparison(flags, &comparison, &outputs)
}

/// The sides of a repeated comparison.
struct RepeatedSides {
    /// The targets to open.
    targets: Vec<PathBuf>,
    /// The names of the sides.
    labels: Vec<String>,
}

/// The sides of a record's comparison on these targets, or on its own where none is named.
fn repeated_sides(
    record: &Record,
    sides: &Sides,
    targets: &[PathBuf],
) -> Result<RepeatedSides, Failure> {
    match sides {
        Sides::Targets { paths } if targets.is_empty() => Ok(RepeatedSides {
            targets: paths.iter().map(PathBuf::from).collect(),
            labels: paths.clone(),
        }),
        Sides::Targets { paths } if targets.len() != paths.len() => {
            let count = paths.len();
            Err(Failure::Usage(format!(
                "the record compares {count} targets; name as many, or none"
            )))
        }
        Sides::Targets { .. } => Ok(RepeatedSides {
            targets: targets.to_vec(),
            labels: targets
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        }),
        Sides::Settings { .. } if targets.len() > 1 => Err(Failure::Usage(
            "the record compares settings of one target; name one target, or none".to_owned(),
        )),
        Sides::Settings { prepare, .. } => Ok(RepeatedSides {
            targets: named_or_recorded(targets, record),
            labels: prepare.clone(),
        }),
        Sides::Layers(_) => Ok(RepeatedSides {
            targets: Vec::new(),
            labels: Vec::new(),
        }),
    }
}

/// Repeats the comparison that a record is one side of, on these targets or on those that were
/// compared. The user has to agree to its commands, since the record may be another one's.
pub(crate) fn repeat(
    record: &Record,
    live: &LivePlan,
    targets: &[PathBuf],
    measuring: &MeasuringFlags,
    agreement: Agreement,
) -> anyhow::Result<Exit> {
    let flags = &CompareFlags::repeated_from(live, measuring, agreement)?;
    let RepeatedSides { targets, labels } = repeated_sides(record, &live.sides, targets)?;
    let too_few = "the record compares fewer than two sides, so there is nothing to repeat";
    if labels.len() < 2 {
        return Err(Failure::Usage(too_few.to_owned()).into());
    }
    let Some(given) = targets.first() else {
        return Err(Failure::Usage(too_few.to_owned()).into());
    };
    for target in &targets {
        keep_from_outputs(target);
    }
    let identities = measuring.probe_all(&targets)?;
    live::check_kinds(&identities, &flags.live)?;
    let recorded_kind = record.targets.first().map(|target| target.kind);
    let has_other_kind = identities
        .iter()
        .any(|identity| recorded_kind != Some(identity.kind));
    if has_other_kind {
        let text = "name targets of the kind that the record compares (directory, file, device)";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let mut side_plan = Plan {
        seed: measuring.seed.unwrap_or(record.plan.seed),
        origin: Origin::new("compare", crate::provenance::command_line()),
        method: METHOD_VERSION,
        ..record.plan.clone()
    };
    if let Some(workloads) = side_plan.workload_task_mut()
        && let Decide::Compare(live) = &mut workloads.decide
        && let Sides::Targets { paths } = &mut live.sides
    {
        paths.clone_from(&labels);
    }
    let outputs = open_named_outputs(flags)?;
    let outcome = live::measure_sides(flags, measuring, &labels, given, identities, &side_plan)?;
    present_live_comparison(flags, outcome, &outputs)
}

/// Measures these targets, or settings of the only one, and compares them.
fn run_live(flags: &CompareFlags, targets: &[String]) -> anyhow::Result<Exit> {
    for target in targets {
        keep_from_outputs(Path::new(target));
    }
    let outputs = open_named_outputs(flags)?;
    present_live_comparison(flags, live::run(flags, targets)?, &outputs)
}

/// Presents the end of a live comparison. How the run ended goes before what the comparison says.
fn present_live_comparison(
    flags: &CompareFlags,
    outcome: LiveOutcome,
    outputs: &[Output],
) -> anyhow::Result<Exit> {
    let exit = match outcome.comparison {
        Some(comparison) => present_comparison(flags, &comparison, outputs)?,
        None => Exit::Done,
    };
    Ok(outcome.early_exit.unwrap_or(exit))
}

/// Saves and prints a comparison, and returns how the conditions came out.
fn present_comparison(
    flags: &CompareFlags,
    comparison: &Comparison,
    outputs: &[Output],
) -> anyhow::Result<Exit> {
    // A full disk must not cost the page and the verdict.
    let saved = save_comparison(comparison, outputs, Verbosity::lines(flags.live.quiet));
    let presentation = if flags.json || flags.outputs.iter().any(|path| is_stdout(path)) {
        Presentation::Json
    } else {
        Presentation::Page
    };
    let detail = if flags.all {
        MetricDetail::All
    } else {
        MetricDetail::Independent
    };
    let printed = print_comparison(comparison, presentation, detail, flags.color);
    let undecided_exit = if flags.fail_on_undecided {
        Exit::Undecided
    } else {
        Exit::Done
    };
    exit_of_presented(
        exit_of_conditions(comparison, undecided_exit),
        saved.and(printed),
    )
}

/// The exit of a comparison with these conditions whose files and page were written, or not. A
/// condition that holds stays one where a file could not be written, too.
fn exit_of_presented(conditions: Exit, presented: anyhow::Result<()>) -> anyhow::Result<Exit> {
    match (conditions, presented) {
        (exit, Ok(())) => Ok(exit),
        (Exit::Done, Err(error)) => Err(error),
        (exit, Err(error)) => {
            eprint_line(&format!("error: {error:#}"));
            Ok(exit)
        }
    }
}

/// The error for a comparison that names less than two sides.
const TOO_FEW: &str = "name at least two runs, such as 'compare latest~1 latest', or two targets, \
                       such as 'compare /mnt/old /mnt/new'. 'diskproof history' lists the runs";

/// The arguments that name sides, the baseline first.
fn references(flags: &CompareFlags) -> Result<Vec<String>, Failure> {
    let mut references = flags.runs.clone();
    if let Some(baseline) = &flags.baseline {
        if references.is_empty() {
            references.push("latest".to_owned());
        }
        references.insert(0, baseline.clone());
    }
    if references.len() < 2 {
        return Err(Failure::Usage(TOO_FEW.to_owned()));
    }
    Ok(references)
}

fn open_named_outputs(flags: &CompareFlags) -> Result<Vec<Output>, Failure> {
    let paths = output_files(&[&flags.outputs, &flags.html]);
    open_outputs(&paths, flags.history_file.file())
}

/// Opens the files of a comparison.
pub(super) fn open_outputs(
    paths: &[PathBuf],
    history: Option<&Path>,
) -> Result<Vec<Output>, Failure> {
    open_documents(
        "a comparison",
        |format| format.comparison.is_some(),
        paths,
        history,
    )
}

/// Writes a comparison to all output files.
pub(super) fn save_comparison(
    comparison: &Comparison,
    outputs: &[Output],
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    for output in outputs {
        let path = output.path();
        let Some(format) = format_of(path) else {
            continue;
        };
        let Some(file) = format.comparison_file(comparison, path) else {
            continue;
        };
        let bytes = output
            .save(&file)
            .with_context(|| format!("-o {}: cannot save the comparison", path.display()))?;
        note_written(path, bytes, verbosity);
    }
    Ok(())
}

/// Prints a comparison on stdout; `detail` and `color` are those of a page.
pub(crate) fn print_comparison(
    comparison: &Comparison,
    presentation: Presentation,
    detail: MetricDetail,
    color: ColorWhen,
) -> anyhow::Result<()> {
    ignore_closed_pipe(to_stdout(|out| match presentation {
        Presentation::Json => diskproof_report::json::write_comparison(comparison, out),
        Presentation::Page => write_comparison_page(comparison, detail, color, out),
    }))
}

/// The exit code. A condition that holds fails a build, and one without an answer must not let it
/// pass. `undecided_exit` is the code where conditions are undecided only, of which the user is
/// warned.
fn exit_of_conditions(comparison: &Comparison, undecided_exit: Exit) -> Exit {
    let unanswered = conditions_with(comparison, ConditionOutcome::Unanswered);
    let undecided = conditions_with(comparison, ConditionOutcome::Undecided);
    for condition in unanswered.iter().chain(&undecided) {
        let side = if comparison.candidates.len() > 1 {
            format!(" ({})", condition.candidate)
        } else {
            String::new()
        };
        eprint_line(&format!(
            "warning: --fail-on '{}'{side}: {}",
            condition.expression, condition.why
        ));
    }
    if !conditions_with(comparison, ConditionOutcome::Holds).is_empty() {
        Exit::ThresholdMissed
    } else if !unanswered.is_empty() {
        Exit::Failed
    } else if !undecided.is_empty() {
        undecided_exit
    } else {
        Exit::Done
    }
}

fn conditions_with(comparison: &Comparison, outcome: ConditionOutcome) -> Vec<&Condition> {
    comparison
        .conditions
        .iter()
        .filter(|condition| condition.outcome == outcome)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_of_settings_is_repeated_on_one_target() {
        let sides = Sides::Settings {
            prepare: vec!["a".to_owned(), "b".to_owned()],
            cleanup: None,
            reopen: false,
        };
        let record = diskproof_analysis::fixture::record();
        let [one, two] = ["/one", "/two"].map(PathBuf::from);
        let repeated = |targets: &[PathBuf]| repeated_sides(&record, &sides, targets);
        assert!(matches!(
            repeated(&[one.clone(), two]),
            Err(Failure::Usage(_))
        ));
        let on_one = repeated(std::slice::from_ref(&one)).ok().unwrap();
        assert_eq!(on_one.targets, [one]);
    }

    #[test]
    fn condition_that_holds_stays_one_where_a_file_cannot_be_written() {
        let full = || Err(anyhow::anyhow!("no space"));
        for exit in [Exit::ThresholdMissed, Exit::Undecided, Exit::Failed] {
            assert_eq!(exit_of_presented(exit, full()).unwrap(), exit);
        }
        assert!(exit_of_presented(Exit::Done, full()).is_err());
        assert_eq!(exit_of_presented(Exit::Done, Ok(())).unwrap(), Exit::Done);
    }
}
