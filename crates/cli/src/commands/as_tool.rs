//! `diskproof as`: runs the command lines of well-known tools. Parsing and output are in the crate
//! `diskproof-compat`; the run is that of every verb. One of the modules below runs what a command
//! line asks for.

mod job_refusals;
mod job_sources;
mod jobs;
mod links;
mod loads;
mod measuring;
mod output;
mod primes;
mod test_files;

use crate::failure::{Exit, Failure, is_refused, open_error, report};
use crate::flags::MeasuringFlags;
use crate::stdio::is_reader_gone;
use anyhow::Result;
use diskproof_compat::{DropIn, Started, drop_in_named, drop_ins};
use diskproof_engine::RunError;
use output::{UNREAD, print_error, print_tool_text, tool_names};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// With 1 in it, a tool that was started through a link prints no notes.
const QUIET: &str = "DISKPROOF_QUIET";

/// Run the command line of another tool on diskproof's engine, with that tool's output
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct AsFlags {
    /// The tool and its arguments; diskproof's flags go before it
    #[arg(value_name = "TOOL", trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true, required_unless_present = "link")]
    pub command: Vec<OsString>,
    /// Create a link for each tool in this directory; diskproof behaves like the tool whose link
    /// starts it
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub link: Option<PathBuf>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

fn after_help() -> String {
    let mut text = "Tools:\n".to_owned();
    for tool in drop_ins() {
        let _ = writeln!(text, "  {:<15}{}", tool.name, tool.summary);
    }
    text.push_str(concat!(
        "\nOptions and output are those of the tool. A line on stderr reports figures with\n",
        "a different meaning. Runs are saved in the history. diskproof's flags go before\n",
        "the tool. A file is overwritten only with --overwrite, a device only with\n",
        "--destroy NAME.\n",
        "'diskproof help drop-in' lists every option and every difference.\n",
        "\nExit codes are those of the tool.\n",
        "\nExamples:\n",
    ));
    for tool in drop_ins() {
        let example = format!("  diskproof as {} {}", tool.name, tool.example);
        let _ = writeln!(text, "{}", continued(&example));
    }
    text.push_str("  diskproof as --link ~/bin");
    text
}

/// A line of help that is longer would be broken by clap, also within quotes.
const HELP_COLUMNS: usize = 80;
/// Ends a line that the shell joins with the next one.
const CONTINUATION: &str = " \\";

/// A command that is too long for a line of help, in two lines that a shell joins.
fn continued(command: &str) -> String {
    if command.len() <= HELP_COLUMNS {
        return command.to_owned();
    }
    let Some(first_line) = command.get(..HELP_COLUMNS - CONTINUATION.len()) else {
        return command.to_owned();
    };
    let Some((start, _)) = first_line.rsplit_once(' ') else {
        return command.to_owned();
    };
    let second_line = &command[start.len() + 1..];
    format!("{start}{CONTINUATION}\n    {second_line}")
}

/// Runs the tool, or creates the links.
pub fn run(flags: &AsFlags) -> Result<Exit> {
    if let Some(directory) = &flags.link {
        return links::create(directory);
    }
    let Some((name, arguments)) = flags.command.split_first() else {
        return Err(Failure::Usage("name a tool".to_owned()).into());
    };
    if let Some(name) = name.to_str()
        && let Some(tool) = drop_in_named(name)
    {
        return Ok(run_tool(tool, arguments, &flags.measuring));
    }
    let text = format!(
        "{}: unknown tool; available tools are {}",
        name.display(),
        tool_names()
    );
    Err(Failure::Usage(text).into())
}

/// Runs the tool whose link started the program; `None` where it was started under its own name.
pub(crate) fn run_as_link() -> Option<Exit> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    let name = Path::new(&program).file_name()?.to_str()?;
    let tool = drop_in_named(name)?;
    let arguments: Vec<OsString> = words.collect();
    Some(run_tool(tool, &arguments, &MeasuringFlags::default()))
}

/// Runs the tool's command line. Every end becomes an exit code of the tool. Tools have no code for
/// thresholds: a missed one is a failed run.
fn run_tool(tool: &'static DropIn, arguments: &[OsString], given: &MeasuringFlags) -> Exit {
    let mut flags = given.clone();
    if std::env::var_os(QUIET) == Some("1".into()) {
        flags.quiet = true;
    }
    flags.destructive.own_files = true;
    let exits = tool.exits;
    crate::inspection::set_exit_code(exits.run);
    let code = match run_command_line(tool, arguments, &flags) {
        Ok(Exit::Done) => 0,
        Ok(Exit::Tool(code)) => code,
        Ok(Exit::Usage) => exits.usage,
        Ok(Exit::Refused) => exits.target,
        Ok(Exit::Failed | Exit::ThresholdMissed | Exit::Undecided) => exits.run,
        Ok(Exit::Signal(number)) => exits.signal.unwrap_or(128 + number),
        Err(error) => {
            report(&error);
            error_code(tool, &error)
        }
    };
    if is_reader_gone() {
        return Exit::Tool(UNREAD);
    }
    Exit::Tool(code)
}

/// The tool's exit code for an error of ours.
fn error_code(tool: &DropIn, error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(_)) => tool.exits.usage,
        Some(Failure::Probe(_) | Failure::Path(_)) => tool.exits.target,
        Some(Failure::Run(RunError::DirectRefused {
            is_request: false, ..
        })) => tool.exits.direct,
        _ if is_refused(error) || open_error(error).is_some() => tool.exits.target,
        _ => tool.exits.run,
    }
}

/// Starts what the arguments ask for, in the tool's own words.
fn run_command_line(
    tool: &'static DropIn,
    arguments: &[OsString],
    flags: &MeasuringFlags,
) -> Result<Exit> {
    if flags.size.is_some() {
        let text = format!("--size: {} sets the size by its own options", tool.name);
        return Err(Failure::Usage(text).into());
    }
    let mut words = Vec::new();
    for argument in arguments {
        let Some(word) = argument.to_str() else {
            let text = format!("{}: not valid UTF-8", argument.display());
            return Err(Failure::Usage(text).into());
        };
        words.push(word.to_owned());
    }
    match (tool.start)(&words) {
        Err(error) => print_error(tool, &error),
        Ok(Started::Text(text)) => {
            print_tool_text(&text)?;
            Ok(Exit::Done)
        }
        Ok(Started::Load(load)) => loads::run(tool, &words, load, flags),
        Ok(Started::Jobs(request)) => jobs::run(tool, &words, &request, flags),
        Ok(Started::Primes(request)) => primes::run(tool, &request, flags),
    }
}
