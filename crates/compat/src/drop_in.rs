//! What a drop-in is: names, options with their treatment, exit codes, and how it starts.

use crate::error::DropInError;
use crate::jobs::JobRequest;
use crate::load::DropInLoad;
use crate::primes::PrimeRequest;
use crate::printer::ToolText;

/// A tool whose command line is understood.
#[derive(Debug)]
pub struct DropIn {
    /// Its command, such as `ioping`.
    pub name: &'static str,
    /// The tool and the version that is emulated, such as `ioping 1.3`.
    pub emulates: &'static str,
    /// What it measures, as a noun phrase.
    pub summary: &'static str,
    /// Our own verb for the same question, such as `ping`.
    pub native: &'static str,
    /// A command line that works on every machine, without the name.
    pub example: &'static str,
    /// Every option of the tool.
    pub options: &'static [DropInOption],
    /// What differs from the tool, a sentence each.
    pub differences: &'static [&'static str],
    /// Its help, or the start of it.
    pub usage: &'static str,
    /// What its exit codes mean.
    pub exits: ExitCodes,
    /// Reads the arguments after the name.
    pub start: Start,
}

/// Reads the arguments after the name.
pub(crate) type Start = fn(&[String]) -> Result<Started, DropInError>;

/// An option of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropInOption {
    /// As it is written, such as `-c`; empty where there is only the long form.
    pub short: &'static str,
    /// The long form without dashes; empty where there is none.
    pub long: &'static str,
    /// Name of the value, such as `count`; empty where it takes none, in brackets where it is
    /// optional.
    pub value: &'static str,
    /// What it does, as an imperative.
    pub help: &'static str,
    /// What becomes of it.
    pub treatment: Treatment,
    /// What is printed instead of a run.
    pub prints: Option<PrintedText>,
}

impl DropInOption {
    /// As a user writes it.
    pub(crate) fn written(&self) -> String {
        match self.short {
            "" => format!("--{}", self.long),
            short => short.to_owned(),
        }
    }

    /// Refuses it, or adds a note where it has no effect.
    pub(crate) fn admit(&self, notes: &mut Vec<String>) -> Result<(), String> {
        let name = self.written();
        match self.treatment {
            Treatment::Carried => {}
            Treatment::Ignored(why) => notes.push(format!("{name} has no effect: {why}")),
            Treatment::Refused(instead) => {
                return Err(format!("{name} is not supported; {instead}"));
            }
        }
        Ok(())
    }
}

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It has the effect that it has in the tool.
    Carried,
    /// It is accepted without effect; the reason, as a clause.
    Ignored(&'static str),
    /// It is an error; what to do instead, as an imperative.
    Refused(&'static str),
}

/// What an option prints instead of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintedText {
    /// The help.
    Help,
    /// The version.
    Version,
}

/// What a command line asks for.
pub enum Started {
    /// Text only: help or version.
    Text(ToolText),
    /// A load.
    Load(Box<dyn DropInLoad>),
    /// Jobs, from files or from the command line.
    Jobs(Box<JobRequest>),
    /// A load of processors.
    Primes(Box<PrimeRequest>),
}

impl Started {
    /// What `--version` prints.
    pub(crate) fn version(emulates: &str) -> Self {
        let program = concat!("diskproof ", env!("CARGO_PKG_VERSION"));
        Self::text(format!("{emulates} (emulated by {program})\n"))
    }

    /// Text on stdout.
    pub(crate) fn text(stdout: String) -> Self {
        Self::Text(ToolText::out(stdout))
    }
}

/// The exit codes of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitCodes {
    /// The command line makes no sense.
    pub usage: u8,
    /// The target cannot be used: it is missing, refused or too small.
    pub target: u8,
    /// The run failed.
    pub run: u8,
    /// A signal ended the run; `None`: as a shell reports a process that died of it.
    pub signal: Option<u8>,
}
