//! Prints a command line's output in the name of its tool: texts, errors, notes and files.

use crate::failure::Exit;
use crate::flags::MeasuringFlags;
use crate::output_files::Trial;
use crate::saved::register_history;
use crate::stdio::{eprint_line, eprint_text, print_text};
use crate::tool_lines::{SharedPrinter, ToolEnd};
use anyhow::Result;
use diskproof_compat::{DropIn, DropInError, ToolText, drop_ins};
use signal_hook::consts::SIGPIPE;

/// The code by which a shell reports a tool that SIGPIPE has killed: its output lost its reader.
pub(super) const UNREAD: u8 = 128 + SIGPIPE as u8;

/// The names of all tools, as errors list them.
pub(super) fn tool_names() -> String {
    let names: Vec<&str> = drop_ins().iter().map(|tool| tool.name).collect();
    names.join(", ")
}

/// Prints the error as the tool words it, and returns the exit code that the tool has for it.
pub(super) fn print_error(tool: &DropIn, error: &DropInError) -> Result<Exit> {
    print_tool_text(&error.printed())?;
    let code = match error {
        DropInError::Usage(_) | DropInError::Printed(_) => tool.exits.usage,
        DropInError::Target(_) => tool.exits.target,
        DropInError::Code(code, _) => *code,
    };
    Ok(Exit::Tool(code))
}

pub(super) fn print_tool_text(text: &ToolText) -> Result<()> {
    print_text(&text.stdout)?;
    eprint_text(&text.stderr);
    Ok(())
}

/// Prints the text at the end of a tool's run.
pub(super) fn print_end(end: ToolEnd) -> Result<()> {
    print_tool_text(&end.text)?;
    end.saved?;
    Ok(())
}

/// Opens the files that the tool writes, none of which may be an input. With --json the tool writes
/// none.
pub(super) fn open_output_files(
    printer: &mut SharedPrinter,
    flags: &MeasuringFlags,
) -> Result<(), String> {
    if flags.prints_record() {
        return Ok(());
    }
    register_history(flags.history.file());
    let trial = if flags.dry_run {
        Trial::Permission
    } else {
        Trial::Create
    };
    printer.open_files(&flags.files(), trial)
}

/// Prints what the figures mean, in the name of the tool.
pub(super) fn print_notes(tool: &DropIn, flags: &MeasuringFlags, notes: &[String]) {
    if flags.quiet {
        return;
    }
    for note in notes {
        eprint_line(&format!("{}: {note}", tool.name));
    }
}
