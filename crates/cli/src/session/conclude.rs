//! Concludes a run: judges it, saves its record to files and to the history, prints the page, and
//! decides the exit code.

mod exit_code;
mod saving;
mod tool_end;

pub(crate) use exit_code::{exit_of_record, has_errors};

use super::ended_run::EndedRun;
use super::job::StdoutForm;
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::interrupt;
use crate::output_files::Output;
use crate::pieces::write_pieces;
use crate::saved::{self, InHistory, is_unsaved};
use crate::stdio::{
    close_stdout, colored_commands_page, colored_style, eprint_line, eprint_text,
    ignore_closed_pipe, is_closed_stdout, to_stdout, write_record_page,
};
use crate::tool_lines::ToolEnd;
use anyhow::Result;
use diskproof_analysis::judge::{RunVariation, judge};
use diskproof_compat::ToolText;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_report::json;
use diskproof_report::terminal::{Detail, record_page};
use exit_code::exit_of_run;
use saving::{SaveWait, runs_before, save};
use std::path::PathBuf;
use std::sync::Arc;
use tool_end::{end_tool, note_unanswered};

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
    /// The first error of saving and printing it.
    pub printed: Result<()>,
    end: EndedRun,
    flags: &'a MeasuringFlags,
    /// Files on filesystems that hang.
    hung_saves: Vec<String>,
    /// The signal that ended the wait for a save, before the save was done.
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
        let cache_error = self.end.results.cache_error.take();
        let is_delivered = self.printed.is_ok() && self.flags.is_for_merge();
        let mut ended = exit_of_run(&self.record, self.end, self.flags.undecided);
        if let (Ok(Exit::Done), Some(signal)) = (&ended, self.unsaved_at) {
            ended = Ok(Exit::Signal(signal));
        }
        if let Err(error) = self.printed {
            // How the run ended decides, unless it was done: a missed threshold stays one where a
            // file could not be written, too.
            match ended {
                Ok(Exit::Done) if cache_error.is_none() => return Err(error),
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
        // A cache that was not restored outweighs however else the run ended.
        match cache_error {
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
    shown: &StdoutForm,
) -> MeasuredRun<'a> {
    let mut facts = end.facts.clone();
    let wait = SaveWait::new(end.stall_timeout);
    if !facts.partial && !flags.history.no_history {
        facts.variation = RunVariation::Earlier(runs_before(&facts, &flags.history, &wait));
    }
    let record = Arc::new(judge(facts, &end.results.data, &flags.expected));
    let mut tool_saved = Ok(());
    let stdout = match shown {
        _ if flags.prints_pieces() => FinalText::Pieces,
        _ if flags.prints_json() => FinalText::Json,
        StdoutForm::Page => FinalText::Page,
        StdoutForm::Nothing => FinalText::Nothing,
        StdoutForm::Tool(tool) => {
            let ToolEnd { text, saved } = end_tool(tool, &record, &end);
            tool_saved = saved;
            note_unanswered(&end.results.data, flags.verbosity());
            FinalText::Tool(text)
        }
    };
    let detail = if flags.verbose {
        Detail::Whole
    } else {
        Detail::Short
    };
    let mut page = record_page(&record, detail, &colored_style());
    if flags.commands || flags.verbose {
        page.push('\n');
        page.push_str(&colored_commands_page(&record));
    }
    let printed = save_and_print(&record, &page, outputs, flags, &stdout, &wait);
    end_journals(&end, &record, &printed);
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

/// Ends the journals of a run whose record is in the history; otherwise the record stays in them.
fn end_journals(end: &EndedRun, record: &Arc<Record>, printed: &PrintedRecord) {
    if let Some(saved) = printed.in_history {
        end.end_test_journal(record, saved);
        end.end_journal();
        return;
    }
    let kept_in = printed.kept_in.as_deref();
    let left_journal = end.leave_in_journal(record, kept_in);
    if printed.is_unsaved
        && let Some(text) = left_journal.text(kept_in)
    {
        eprint_line(&format!("note: {text}"));
    }
}

/// What is written to stdout at the end of a run.
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

/// The note that the run is over, whatever it measured, and that these targets may keep the process
/// from ending.
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
        "{} {have} not answered yet. The run is over. In state D (see ps) the process \
         cannot exit until the kernel finishes the I/O, not even after kill -9.{scratch}",
        hung.join(" and ")
    )
}
