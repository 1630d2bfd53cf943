//! `diskproof compare`: compares runs metric by metric: saved ones, or those of a live comparison,
//! which measures two targets or settings in alternation.

mod flags;
mod live;

use crate::failure::{Exit, Failure};
use crate::flags::{ColorWhen, files, is_stdout};
use crate::output_files::{check_documents, save_file};
use crate::provenance::tool;
use crate::saved::{HistoryFileFlag, earlier_runs, load_all, short};
use crate::stderr::eprint_line;
use crate::stdout::{comparison_page, ignore_closed_pipe, to_stdout, write_page};
use anyhow::Context as _;
use diskproof_analysis::compare::{Question, Run, RunGroup, compare as compare_runs};
use diskproof_history::StoredRun;
use diskproof_model::comparison::{Comparison, ConditionOutcome};
use diskproof_model::record::Record;
use diskproof_report::formats::format_of;
use diskproof_report::json;
use diskproof_report::terminal::MetricDetail;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use flags::CompareFlags;
use live::live_targets;

/// The records of one side, under the name that the user gave.
struct RunSet {
    label: String,
    records: Vec<(String, Record)>,
}

impl RunSet {
    /// All runs that `reference` names. Splits at commas only when the whole reference names
    /// nothing: a label or a file name may hold a comma.
    fn find(reference: &str, history_file: &HistoryFileFlag) -> Result<Self, Failure> {
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
        let records = match named(reference) {
            Err(_) if reference.contains(',') => reference
                .split(',')
                .map(named)
                .collect::<Result<Vec<_>, _>>()?
                .concat(),
            found => found?,
        };
        Ok(Self {
            label: reference.to_owned(),
            records,
        })
    }

    fn group(&self) -> RunGroup<'_> {
        let runs = self.records.iter().map(|(name, record)| Run {
            name: name.clone(),
            record,
        });
        RunGroup {
            label: self.label.clone(),
            runs: runs.collect(),
        }
    }
}

/// Earlier runs as groups, one for each label.
fn earlier_groups(earlier: &[StoredRun]) -> Vec<RunGroup<'_>> {
    let mut groups: BTreeMap<&str, Vec<Run<'_>>> = BTreeMap::new();
    for StoredRun { label, record, .. } in earlier {
        let label = label.as_deref().unwrap_or_default();
        groups.entry(label).or_default().push(Run {
            name: short(&record.run_id).to_owned(),
            record,
        });
    }
    let group = |(label, runs): (&str, _)| RunGroup {
        label: label.to_owned(),
        runs,
    };
    groups.into_iter().map(group).collect()
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
    let outputs = files(&[&compare.outputs, &compare.html]);
    prepare(&outputs)?;
    let sides = references
        .iter()
        .map(|reference| RunSet::find(reference, &compare.history_file))
        .collect::<Result<Vec<_>, _>>()?;
    let records = sides.iter().flat_map(|side| &side.records);
    let records: Vec<&Record> = records.map(|(_, record)| record).collect();
    let earlier = earlier_runs(&records, compare.history_file.file());
    let mut groups = sides.iter().map(RunSet::group);
    let Some(baseline) = groups.next() else {
        return Err(Failure::Usage(TOO_FEW.to_owned()).into());
    };
    let question = Question {
        tool: tool(),
        margin: compare.margin,
        baseline,
        candidates: groups.collect(),
        history: earlier_groups(&earlier),
        limits: compare.limits.clone(),
    };
    let comparison = compare_runs(&question).map_err(|error| Failure::Usage(error.to_string()))?;
    present(compare, &comparison)
}

/// Measures the sides, unless the arguments name saved runs.
fn run_live(compare: &CompareFlags) -> anyhow::Result<Option<Exit>> {
    let Some(targets) = live_targets(compare)? else {
        return Ok(None);
    };
    prepare(&files(&[&compare.outputs, &compare.html]))?;
    let (comparison, exit) = live::run(compare, &targets)?;
    let by_conditions = comparison.map(|comparison| present(compare, &comparison));
    Ok(exit.or(by_conditions.transpose()?))
}

/// Saves and prints a comparison, and returns how the conditions came out.
fn present(compare: &CompareFlags, comparison: &Comparison) -> anyhow::Result<Exit> {
    save(comparison, &files(&[&compare.outputs, &compare.html]))?;
    let prints_json = compare.json || compare.outputs.iter().any(|path| is_stdout(path));
    let form = match (prints_json, compare.all) {
        (true, _) => Form::Json,
        (false, true) => Form::Page(MetricDetail::All),
        (false, false) => Form::Page(MetricDetail::Independent),
    };
    print(comparison, form, compare.color)?;
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

/// Checks that the output files can be written.
pub(super) fn prepare(outputs: &[PathBuf]) -> Result<(), Failure> {
    check_documents(
        "a comparison",
        |format| format.comparison.is_some(),
        outputs,
    )
}

/// Writes a comparison to all output files.
pub(super) fn save(comparison: &Comparison, outputs: &[PathBuf]) -> anyhow::Result<()> {
    for path in outputs {
        let file = format_of(path).and_then(|format| format.comparison_file(comparison, path));
        let saved = file.as_ref().map_or(Ok(()), save_file);
        saved.with_context(|| format!("-o {}: cannot save the comparison", path.display()))?;
    }
    Ok(())
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON.
    Json,
    /// Text.
    Page(MetricDetail),
}

/// Prints a comparison on stdout.
pub(crate) fn print(comparison: &Comparison, form: Form, color: ColorWhen) -> anyhow::Result<()> {
    ignore_closed_pipe(to_stdout(|out| match form {
        Form::Json => json::write_comparison(comparison, out),
        Form::Page(detail) => write_page(&comparison_page(comparison, detail), color, out),
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
        eprint_line(&format!(
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
