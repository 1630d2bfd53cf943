//! The end of a run: the record, its files, the history, the page on stdout, and the exit code.

use super::damaged_blocks::damaged_block_lines;
use super::job::Shown;
use super::sink::EarlyEnd;
use super::watchdog::EndedRun;
use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, UndecidedMeans};
use crate::interrupt;
use crate::output_files::{Output, save_record, temporary_path};
use crate::pieces::write_pieces;
use crate::saved::{self, HistoryOptions, InHistory, RunKey, SaveNote, in_history, is_unsaved};
use crate::stdio::{
    Verbosity, close_stdout, colored_commands_page, colored_record_page, eprint_line, eprint_text,
    ignore_closed_pipe, is_closed_stdout, to_stdout, write_record_page,
};
use crate::tool_lines::{SharedPrinter, ToolEnd};
use anyhow::Result;
use diskproof_analysis::judge::{RunFacts, RunVariation, judge};
use diskproof_analysis::rules::{Check, rule};
use diskproof_compat::ToolText;
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::data::RunData;
use diskproof_model::errno;
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::plan::{METHOD_VERSION, Plan};
use diskproof_model::proof::FigureSource;
use diskproof_model::record::Record;
use diskproof_model::results::ResultAnswer;
use diskproof_model::row::Row;
use diskproof_model::units::format_duration;
use diskproof_report::terminal::Detail;
use diskproof_report::{json, unmet_text};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SAVE_THREAD: &str = "diskproof-save";
/// The interval at which a save is polled.
const SAVE_POLL: Duration = Duration::from_millis(50);
/// After Ctrl-C the program ends within two seconds: saving usually takes milliseconds.
const SAVE_AFTER_INTERRUPT: Duration = Duration::from_millis(1500);

/// The outcome of a verb's job.
pub(crate) enum Measured<'a> {
    /// The plan was only shown.
    PlanShown,
    /// It was carried out.
    Run(Box<MeasuredRun<'a>>),
}

impl Measured<'_> {
    /// The exit of the program.
    pub(crate) fn exit(self) -> Result<Exit> {
        match self {
            Self::PlanShown => Ok(Exit::Done),
            Self::Run(run) => run.exit(),
        }
    }
}

/// A run that is judged, saved and printed.
pub(crate) struct MeasuredRun<'a> {
    /// The record of the run.
    pub record: Arc<Record>,
    /// Whether it was saved and printed.
    pub printed: Result<()>,
    end: EndedRun,
    flags: &'a MeasuringFlags,
    /// Files on filesystems that hang.
    hung_saves: Vec<String>,
    /// The signal in whose time a save was not done.
    unsaved_at: Option<u8>,
}

impl MeasuredRun<'_> {
    /// The exit of the program. A note names targets that may keep the process from ending.
    pub(crate) fn exit(mut self) -> Result<Exit> {
        let hung = [&self.end.results.hung[..], &self.hung_saves].concat();
        if !hung.is_empty() {
            let text = process_may_stay(&hung, &self.record.plan);
            self.flags.verbosity().note(&text);
            close_stdout();
        }
        let not_restored = self.end.results.not_restored.take();
        let is_delivered = self.printed.is_ok() && self.flags.is_for_merge();
        let mut ended = exit_of(&self.record, self.end, self.flags.undecided);
        if let (Ok(Exit::Done), Some(signal)) = (&ended, self.unsaved_at) {
            ended = Ok(Exit::Signal(signal));
        }
        if let Err(error) = self.printed {
            // How the run ended decides, unless it was done: a missed threshold stays one where a
            // file could not be written, too.
            match ended {
                Ok(Exit::Done) if not_restored.is_none() => return Err(error),
                Ok(_) | Err(_) => eprint_line(&format!("error: {error:#}")),
            }
        }
        let exit = match ended {
            Ok(Exit::Signal(signal)) => Exit::Signal(signal),
            // The verdict is that of 'merge'. A launcher may end all ranks at the first one that
            // exits with another code, or start it again.
            Ok(_) if is_delivered => Exit::Done,
            Err(error) if is_delivered => {
                eprint_line(&format!("error: {error:#}"));
                Exit::Done
            }
            Ok(exit) => exit,
            Err(error) => return Err(error),
        };
        // However else the run ended.
        match not_restored {
            Some(error) => Err(Failure::WriteCache(error).into()),
            None => Ok(exit),
        }
    }
}

/// Judges, saves and prints what was measured.
pub(super) fn conclude<'a>(
    end: EndedRun,
    outputs: &[Arc<Output>],
    flags: &'a MeasuringFlags,
    shown: &Shown,
) -> MeasuredRun<'a> {
    let mut facts = end.facts.clone();
    let wait = SaveWait {
        limit: end.stall_timeout,
        interrupted: Cell::new(None),
    };
    if !facts.partial && !flags.history.no_history {
        facts.variation = RunVariation::Earlier(runs_before(&facts, &flags.history, &wait));
    }
    let record = Arc::new(judge(facts, &end.results.data, &flags.expected));
    let mut tool_saved = Ok(());
    let stdout = match shown {
        _ if flags.prints_pieces() => FinalText::Pieces,
        _ if flags.prints_json() => FinalText::Json,
        Shown::Page => FinalText::Page,
        Shown::Nothing => FinalText::Nothing,
        Shown::Tool(tool) => {
            let ToolEnd { text, saved } = end_tool(tool, &record, &end);
            tool_saved = saved;
            note_unanswered(&end.results.data, flags.verbosity());
            FinalText::Tool(text)
        }
    };
    let page = page_for_flags(&record, flags);
    let printed = save_and_print(&record, &page, outputs, flags, &stdout, &wait);
    match printed.in_history {
        Some(saved) => {
            end.end_test_journal(&record, saved);
            end.end_journal();
        }
        None => {
            let left_journal = end.leave_in_journal(&record);
            if printed.is_unsaved
                && let Some(text) = left_journal.text(printed.kept_in.as_deref())
            {
                eprint_line(&format!("note: {text}"));
            }
        }
    }
    MeasuredRun {
        record,
        printed: tool_saved.and(printed.outcome),
        end,
        flags,
        hung_saves: printed.hung,
        unsaved_at: if printed.is_incomplete {
            wait.interrupted_by()
        } else {
            None
        },
    }
}

fn page_for_flags(record: &Record, flags: &MeasuringFlags) -> String {
    let detail = if flags.verbose {
        Detail::Whole
    } else {
        Detail::Short
    };
    let mut page = colored_record_page(record, detail);
    if flags.commands || flags.verbose {
        page.push('\n');
        page.push_str(&colored_commands_page(record));
    }
    page
}

/// The text for stdout at the end of a run.
enum FinalText {
    /// The record.
    Json,
    /// The record in short lines.
    Pieces,
    /// Our page.
    Page,
    /// The text of a tool.
    Tool(ToolText),
    /// Nothing.
    Nothing,
}

/// The outcome of saving and printing a record.
struct PrintedRecord {
    outcome: Result<()>,
    /// Files on filesystems that hang.
    hung: Vec<String>,
    /// A save was not done in time.
    is_incomplete: bool,
    /// `None` where the record is not in the history.
    in_history: Option<InHistory>,
    /// The history could not take the record.
    is_unsaved: bool,
    /// A file that has the whole record.
    kept_in: Option<PathBuf>,
}

/// The text that a tool prints at the end of its run.
fn end_tool(tool: &SharedPrinter, record: &Record, end: &EndedRun) -> ToolEnd {
    let data = &end.results.data;
    let failed = failed_request(record);
    let errno = match (&end.ended, &failed) {
        (Err(EarlyEnd::Error(error)), _) => error.errno(),
        (_, Some(failed)) => Some(failed.errno.to_owned()),
        (_, None) => None,
    };
    if let Some(files) = &data.files {
        tool.files_measured(files);
    }
    let mut tool_end = tool.end(
        &data.measurements,
        data.surface.as_ref(),
        interrupt::signal().is_some(),
        errno.as_deref(),
    );
    let stderr = &mut tool_end.text.stderr;
    stderr.insert_str(0, &error_line(tool, failed, end));
    for row in &record.measurements {
        if let Some(line) = unverifiable_line(tool.name, row, &record.plan) {
            stderr.push_str(&line);
        }
    }
    let damaged = damaged_block_lines(tool, record);
    stderr.push_str(&damaged);
    for finding in &record.findings {
        let is_shown = finding.code == "bad-blocks" && !damaged.is_empty();
        if spoils_figures(finding) && !is_shown {
            let line = format!("{}: {}: {}\n", tool.name, finding.code, finding.claim);
            stderr.push_str(&line);
        }
    }
    tool_end
}

/// The line of a tool about the error or the reason that ended its run; empty without one.
fn error_line(tool: &SharedPrinter, failed: Option<FailedRequest<'_>>, end: &EndedRun) -> String {
    let tool_name = tool.name;
    match (&end.ended, failed) {
        // An error that ended the run is printed with its remedy.
        (Err(EarlyEnd::Error(_)), _) => String::new(),
        // `dd: error writing 'x': Disk quota exceeded (EDQUOT)`.
        (
            _,
            Some(FailedRequest {
                target,
                verb,
                errno,
            }),
        ) => {
            let path = match &tool.output {
                Some(output) => output.display().to_string(),
                None => target.to_owned(),
            };
            let text = errno::text(errno);
            format!("{tool_name}: error {verb} '{path}': {text} ({errno})\n")
        }
        (Err(EarlyEnd::Reason(why)), None) if interrupt::signal().is_none() => {
            if has_completed(&end.results.data) {
                return format!("{tool_name}: {why}\n");
            }
            // The output of a tool may have nothing but zeros then.
            format!("{tool_name}: no request completed, so every figure is undecided. {why}\n")
        }
        _ => String::new(),
    }
}

/// Whether a request completed.
fn has_completed(data: &RunData) -> bool {
    data.has_more_than_workloads()
        || data
            .measurements
            .iter()
            .flat_map(|measurement| measurement.ops.values())
            .any(|op| op.count > 0)
}

/// True if figures are false, those of a smaller load than was asked for, or those of a cache that
/// the tool would have bypassed or failed. Errors of requests are printed as such.
fn spoils_figures(finding: &Finding) -> bool {
    let Some(rule) = rule(&finding.code) else {
        return false;
    };
    let is_about_health = matches!(rule.check, Check::Health { .. });
    let is_false = finding.severity == Severity::Failure && finding.code != "io-errors";
    let is_of_other_load = ["missed-schedule", "not-direct"].contains(&finding.code.as_str());
    (is_false && !is_about_health) || is_of_other_load
}

/// The output of another tool has no word for a rate that is not known.
fn note_unanswered(data: &RunData, verbosity: Verbosity) {
    for measurement in &data.measurements {
        let is_unanswered = measurement
            .ops
            .values()
            .all(|op| op.count == 0 && op.errors.is_empty());
        if measurement.wall_ns > 0 && is_unanswered {
            verbosity.note(&format!(
                "{}: undecided, no request completed within {}",
                measurement.workload.name,
                format_duration(measurement.wall_ns)
            ));
        }
    }
}

/// Earlier runs of the same plan; none from a history that does not answer, which saving reports.
fn runs_before(facts: &RunFacts, options: &HistoryOptions, wait: &SaveWait) -> Vec<Record> {
    let key = RunKey::new(
        &facts.plan,
        METHOD_VERSION,
        &facts.host.name,
        &facts.targets,
    );
    let history = options.history.clone();
    let search = Deferred::start_or_run(SAVE_THREAD, move || {
        saved::runs_before(&key, history.as_deref())
    });
    wait.wait(&search).unwrap_or_default()
}

/// The wait for a save: up to the limit, and only a moment after Ctrl-C.
struct SaveWait {
    limit: Duration,
    /// The time at which Ctrl-C was noticed.
    interrupted: Cell<Option<Instant>>,
}

impl SaveWait {
    /// The result; `None` where it does not come in time.
    fn wait<T: Send + 'static>(&self, save: &Deferred<T>) -> Option<T> {
        loop {
            let age = match save.poll(SAVE_POLL) {
                Waited::Done(done) => return Some(done),
                Waited::Lost => return None,
                Waited::TimedOut(age) => age,
            };
            if interrupt::signal().is_some() && self.interrupted.get().is_none() {
                self.interrupted.set(Some(Instant::now()));
            }
            if age >= self.limit || self.is_over_after_interrupt() {
                return None;
            }
        }
    }

    fn is_over_after_interrupt(&self) -> bool {
        match self.interrupted.get() {
            Some(since) => since.elapsed() >= SAVE_AFTER_INTERRUPT,
            None => false,
        }
    }

    /// The signal that ended the wait.
    fn interrupted_by(&self) -> Option<u8> {
        self.interrupted.get()?;
        interrupt::signal()
    }

    /// Why a save was not done, as a clause.
    fn reason(&self, who: &str) -> String {
        match self.interrupted.get() {
            Some(_) => format!("{who} did not answer before a signal ended the wait"),
            None => {
                let limit = format_duration(self.limit.as_nanos() as u64);
                format!("{who} did not answer for {limit}")
            }
        }
    }
}

/// Saves the record, then prints it: a reader that goes away, such as `head`, must not cost the
/// record.
fn save_and_print(
    record: &Arc<Record>,
    page: &str,
    outputs: &[Arc<Output>],
    flags: &MeasuringFlags,
    stdout: &FinalText,
    wait: &SaveWait,
) -> PrintedRecord {
    let saved = save(record, page, outputs, flags, wait);
    // A reader of stdout that stopped reading holds this up, and the record is saved by now.
    interrupt::end_at_once();
    let printed = to_stdout(|out| match stdout {
        FinalText::Json => json::write_record(record, out),
        FinalText::Pieces => write_pieces(&**record, out),
        FinalText::Tool(text) => out.write_all(text.stdout.as_bytes()),
        FinalText::Nothing => Ok(()),
        FinalText::Page => write_record_page(record, page, flags.color, out),
    });
    if let FinalText::Tool(text) = stdout {
        eprint_text(&text.stderr);
    }
    saved::print_notes("", &saved.notes, flags.verbosity());
    let print_outcome = match printed {
        Err(error) if flags.prints_record() && is_closed_stdout(&error) => {
            closed_before_json(saved.can_be_read())
        }
        other => ignore_closed_pipe(other),
    };
    PrintedRecord {
        outcome: saved.outcome.and(print_outcome),
        hung: saved.hung,
        is_incomplete: saved.is_incomplete,
        in_history: saved.in_history,
        is_unsaved: is_unsaved(&saved.notes),
        kept_in: saved.kept_in,
    }
}

/// The outcome of saving a record.
struct SavedRecord {
    /// The first error of its files.
    outcome: Result<()>,
    /// The messages of the history.
    notes: Vec<SaveNote>,
    /// Files on filesystems that hang.
    hung: Vec<String>,
    /// A file that has the whole record.
    kept_in: Option<PathBuf>,
    in_history: Option<InHistory>,
    /// A save was not done in time.
    is_incomplete: bool,
}

/// Saves the record to its files and to the history. Each save has its own thread, so that one that
/// fails or hangs does not keep the others from being done.
fn save(
    record: &Arc<Record>,
    page: &str,
    outputs: &[Arc<Output>],
    flags: &MeasuringFlags,
    wait: &SaveWait,
) -> SavedRecord {
    let mut file_saves = Vec::new();
    for output in outputs {
        file_saves.push((output, start_file_save(record, output, flags.verbosity())));
    }
    let history_save = start_history_save(record, page, &flags.history);
    let mut saved = SavedRecord {
        outcome: Ok(()),
        notes: Vec::new(),
        hung: Vec::new(),
        kept_in: None,
        in_history: None,
        is_incomplete: false,
    };
    for (output, file_save) in file_saves {
        match wait.wait(&file_save) {
            Some(outcome) => saved.add_file(output, outcome),
            None => saved.add_hung_file(output, wait),
        }
    }
    match wait.wait(&history_save) {
        Some(notes) => saved.add_history(notes),
        None => saved.add_hung_history(wait),
    }
    saved
}

fn start_file_save(
    record: &Arc<Record>,
    output: &Arc<Output>,
    verbosity: Verbosity,
) -> Deferred<Result<()>> {
    let record = Arc::clone(record);
    let output = Arc::clone(output);
    Deferred::start_or_run(SAVE_THREAD, move || {
        save_record(&record, &output, verbosity)
    })
}

fn start_history_save(
    record: &Arc<Record>,
    page: &str,
    options: &HistoryOptions,
) -> Deferred<Vec<SaveNote>> {
    let kept_record = Arc::clone(record);
    let kept_page = page.to_owned();
    let own_options = options.clone();
    Deferred::start_or_run(SAVE_THREAD, move || {
        saved::keep(&kept_record, &kept_page, &own_options)
    })
}

impl SavedRecord {
    /// True if the record can be read later, from a file or from the history.
    fn can_be_read(&self) -> bool {
        self.in_history.is_some() || self.kept_in.is_some()
    }

    fn add_file(&mut self, output: &Output, outcome: Result<()>) {
        if let Some(format) = output.format()
            && format.extension == ".json"
            && outcome.is_ok()
        {
            self.kept_in = Some(output.path().to_owned());
        }
        self.keep_first_error(outcome);
    }

    fn add_hung_file(&mut self, output: &Output, wait: &SaveWait) {
        self.is_incomplete = true;
        if !output.is_pipe() {
            self.hung.push(output.path().display().to_string());
        }
        self.keep_first_error(Err(save_timed_out(output, wait)));
    }

    fn add_history(&mut self, notes: Vec<SaveNote>) {
        self.in_history = in_history(&notes);
        self.notes = notes;
    }

    fn add_hung_history(&mut self, wait: &SaveWait) {
        self.is_incomplete = true;
        self.hung.push("the history".to_owned());
        let reason = wait.reason("the history");
        self.notes = vec![SaveNote::Unsaved(reason)];
    }

    fn keep_first_error(&mut self, outcome: Result<()>) {
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
    }
}

/// The reader of `--json` closed the pipe before it had the record.
fn closed_before_json(is_saved: bool) -> Result<()> {
    anyhow::ensure!(
        is_saved,
        "stdout was closed before the record was written, and the record was not saved, so the \
         results are lost. Use a reader that reads to the end, or -o FILE.json"
    );
    eprint_line("warning: stdout was closed before the record was written; the record is saved");
    Ok(())
}

fn save_timed_out(output: &Output, wait: &SaveWait) -> anyhow::Error {
    let name = output.path().display();
    if output.is_pipe() {
        let reason = wait.reason("its reader");
        return anyhow::anyhow!("-o {name}: the record was not written to this pipe: {reason}");
    }
    let reason = wait.reason("its filesystem");
    anyhow::anyhow!(
        "-o {name}: the record was not saved: {reason}; {} may be left behind",
        temporary_path(output.path()).display()
    )
}

/// The work is done, and the process may last all the same.
pub(crate) fn process_may_stay(hung: &[String], plan: &Plan) -> String {
    let scratch = if plan.scratch_bytes().is_some() {
        " Its scratch file has no name and vanishes with the process."
    } else if plan.files().is_some() {
        " Another process removes .diskproof-files after that, which may take as long as the \
         disk needs to write what it was given."
    } else {
        ""
    };
    let have = match hung.len() {
        1 => "has",
        _ => "have",
    };
    format!(
        "{} {have} not answered yet. The results are complete. In state D (see ps) the process \
         cannot exit until the kernel finishes the I/O, not even after kill -9.{scratch}",
        hung.join(" and ")
    )
}

/// The exit code of a run that has been printed.
fn exit_of(record: &Record, end: EndedRun, undecided: UndecidedMeans) -> Result<Exit> {
    let signal = interrupt::signal();
    match (end.ended, signal) {
        (Ok(()) | Err(EarlyEnd::Reason(_)), _) => {}
        // The user ended the wait.
        (Err(EarlyEnd::Error(error @ RunError::Stalled { .. })), Some(signal)) => {
            eprint_line(&format!("error: {error}"));
            return Ok(Exit::Signal(signal));
        }
        (Err(EarlyEnd::Error(error)), _) => return Err(Failure::Run(error).into()),
        (Err(EarlyEnd::NotStarted(failure)), _) => return Err(failure.into()),
    }
    if let Some(signal) = signal
        && record.partial
    {
        return Ok(Exit::Signal(signal));
    }
    // Also for those who see no page: --json, --quiet, stdout into a file.
    for line in record.expectations.iter().filter_map(unmet_text) {
        eprint_line(&line);
    }
    if !end.results.hung.is_empty() {
        return Ok(Exit::Failed);
    }
    Ok(exit_of_record(record, undecided))
}

/// The exit code that follows from a record alone.
pub(crate) fn exit_of_record(record: &Record, undecided: UndecidedMeans) -> Exit {
    let by_thresholds = exit_of_expectations(record, undecided);
    if has_errors(record) {
        Exit::Failed
    } else if has_answer(record, ResultAnswer::Rejected) || by_thresholds == Exit::ThresholdMissed {
        Exit::ThresholdMissed
    } else if verifies_too_little(record) || has_answer(record, ResultAnswer::Undecided) {
        Exit::Undecided
    } else {
        by_thresholds
    }
}

fn has_answer(record: &Record, answer: ResultAnswer) -> bool {
    record
        .results
        .iter()
        .any(|result| result.inner().answer() == answer)
}

fn exit_of_expectations(record: &Record, undecided: UndecidedMeans) -> Exit {
    let outcomes: Vec<ExpectationOutcome> = record
        .expectations
        .iter()
        .map(Expectation::outcome)
        .collect();
    if outcomes.contains(&ExpectationOutcome::Missed) {
        return Exit::ThresholdMissed;
    }
    if !outcomes.contains(&ExpectationOutcome::Undecided) {
        return Exit::Done;
    }
    match undecided {
        UndecidedMeans::Report => Exit::Undecided,
        UndecidedMeans::Pass => Exit::Done,
        UndecidedMeans::Fail => Exit::ThresholdMissed,
    }
}

/// Says that blocks cannot be verified. Damaged ones are a finding.
fn unverifiable_line(tool: &str, measured: &Row, plan: &Plan) -> Option<String> {
    let verify = measured.data.verify.as_ref()?;
    let target = plan.targets.get(measured.data.target)?;
    let unknown = verify.bad_blocks - verify.wrong_blocks();
    if unknown == 0 {
        return None;
    }
    Some(format!(
        "{tool}: verify failed at file {target}: {unknown} of {} blocks have no checksum of \
         diskproof, and those of other programs cannot be verified\n",
        verify.blocks
    ))
}

/// A request that the target answered with an error.
struct FailedRequest<'a> {
    target: &'a str,
    /// Its activity, such as `writing`.
    verb: &'static str,
    errno: &'a str,
}

/// The first request that a target answered with an error.
fn failed_request(record: &Record) -> Option<FailedRequest<'_>> {
    let targets = &record.plan.targets;
    for row in &record.measurements {
        for (kind, op) in &row.data.ops {
            if let Some(errno) = op.errors.keys().next() {
                return Some(FailedRequest {
                    target: targets.get(row.data.target)?,
                    verb: kind.doing(),
                    errno,
                });
            }
        }
    }
    for result in &record.results {
        if let Some(own) = result.inner().own_requests()
            && let Some(error) = own.error
            && let Some(errno) = error.errno
        {
            return Some(FailedRequest {
                target: targets.get(own.target)?,
                verb: error.doing,
                errno,
            });
        }
    }
    None
}

/// Whether the run ended early, or its target returned errors.
pub(crate) fn has_errors(record: &Record) -> bool {
    if record.partial {
        return true;
    }
    for row in &record.measurements {
        if row.errors_total() > 0 || has_damaged_blocks(row, &record.plan) {
            return true;
        }
    }
    record
        .results
        .iter()
        .filter_map(|result| result.inner().own_requests())
        .any(|own| own.error.is_some())
}

/// To other tools a block that cannot be checked is a damaged one.
fn has_damaged_blocks(row: &Row, plan: &Plan) -> bool {
    let Some(verify) = &row.data.verify else {
        return false;
    };
    if plan.is_of_other_tool() {
        verify.bad_blocks > 0
    } else {
        verify.wrong_blocks() > 0
    }
}

/// True where a check of blocks says nothing about the disk: it found no block that it could judge,
/// the page cache may have held more than a few of them, or something else than the disk answered.
/// The exit code of another tool is about the blocks alone.
fn verifies_too_little(record: &Record) -> bool {
    if record.plan.is_of_other_tool() {
        return false;
    }
    for (index, row) in record.measurements.iter().enumerate() {
        let Some(verify) = &row.data.verify else {
            continue;
        };
        let is_foreign = verify.runs == Some(0) && verify.blocks > 0;
        let source = FigureSource::Measurement(index);
        if is_foreign || !verify.proves_disk() || record.objection(source).is_some() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::finding::Meaning;

    fn finding(code: &str, severity: Severity) -> Finding {
        Finding {
            code: code.to_owned(),
            title: None,
            severity,
            says: Meaning::default(),
            claim: String::new(),
            evidence: Vec::new(),
            remedy: String::new(),
            reproduce: None,
        }
    }

    /// The real tools fail where direct I/O is refused.
    #[test]
    fn tools_report_figures_of_a_cache_that_they_would_have_bypassed() {
        assert!(spoils_figures(&finding("not-direct", Severity::Warning)));
        assert!(!spoils_figures(&finding("disturbed", Severity::Warning)));
        assert!(spoils_figures(&finding("hung", Severity::Failure)));
        assert!(!spoils_figures(&finding("io-errors", Severity::Failure)));
    }
}
