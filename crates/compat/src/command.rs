//! How a tool reads its command line: help, version, errors, the values of options.

use crate::drop_in::{DropIn, DropInOption, PrintedText, Started, Treatment};
use crate::getopt::{GivenArguments, OptionForms, parse};
use crate::load::{DropInLoad, PlanContext};
use crate::printer::DropInError;
use diskproof_model::target::TargetKind;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// What differs from tool to tool in what its command line prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandLine<'a> {
    pub forms: OptionForms,
    pub help: &'a str,
    /// What follows an error in the options.
    pub after_option_error: &'a str,
    /// What follows an error in their values.
    pub after_value_error: &'a str,
}

impl<'a> CommandLine<'a> {
    /// The help follows no error.
    pub(crate) fn new(help: &'a str) -> Self {
        Self {
            forms: OptionForms::Long,
            help,
            after_option_error: "",
            after_value_error: "",
        }
    }

    /// The help follows every error.
    pub(crate) fn with_help_after_errors(help: &'a str) -> Self {
        Self {
            after_option_error: help,
            after_value_error: help,
            ..Self::new(help)
        }
    }
}

impl DropIn {
    /// The load that `read` makes of the options, or the text that they ask for.
    pub(crate) fn start_load<L: DropInLoad + 'static>(
        &self,
        arguments: &[String],
        command: CommandLine<'_>,
        read: impl FnOnce(&GivenArguments) -> Result<L, String>,
    ) -> Result<Started, DropInError> {
        if arguments.first().is_some_and(|word| word == "--version") {
            return Ok(Started::version(self.emulates));
        }
        let given = parse(self.options, arguments, command.forms)
            .map_err(|why| self.usage_error(&why, command.after_option_error))?;
        match given.prints {
            Some(PrintedText::Help) => Ok(Started::text(command.help.to_owned())),
            Some(PrintedText::Version) => Ok(Started::version(self.emulates)),
            None => match read(&given) {
                Ok(load) => Ok(Started::Load(Box::new(load))),
                Err(why) => Err(self.usage_error(&why, command.after_value_error)),
            },
        }
    }

    /// An error in the command line, and what follows it.
    pub(crate) fn usage_error(&self, text: &str, end: &str) -> DropInError {
        DropInError::Usage(format!("{}: {text}\n{end}", self.name))
    }

    /// An error in the target.
    pub(crate) fn target_error(&self, text: &str) -> DropInError {
        DropInError::Target(format!("{}: {text}\n", self.name))
    }

    /// Refuses a directory as the target.
    pub(crate) fn refuse_directory(
        &self,
        path: &str,
        context: &PlanContext<'_>,
    ) -> Result<(), DropInError> {
        match context.target.kind {
            TargetKind::Directory => {
                Err(self.target_error(&format!("{path}: is a directory; name a device or a file")))
            }
            _ => Ok(()),
        }
    }

    /// The usage, and a line for each option that has a help, in columns of this width.
    pub(crate) fn help(&self, width: usize, form: fn(&DropInOption) -> String) -> String {
        let mut text = self.usage.to_owned();
        for option in self.options.iter().filter(|option| !option.help.is_empty()) {
            let limit = match option.treatment {
                Treatment::Carried => "",
                Treatment::Ignored(_) => " (no effect)",
                Treatment::Refused(_) => " (refused)",
            };
            let _ = writeln!(text, "{:<width$}{}{limit}", form(option), option.help);
        }
        text
    }
}

/// Units of numbers: a suffix, in either case, and its factor.
pub(crate) type Units = [(&'static str, u64)];

/// A number, perhaps with a unit.
pub(crate) fn scaled(text: &str, units: &Units) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let mut units = units.iter();
    let (_, factor) = units.find(|(unit, _)| unit.eq_ignore_ascii_case(suffix))?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The values of options.
impl GivenArguments {
    /// The value that `read` makes of the text of an option.
    pub(crate) fn read<T, E>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.value(name).map(read).transpose()
    }

    /// A number in this range.
    pub(crate) fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, String> {
        self.scaled(name, &[("", 1)], range)
    }

    /// A number in this range, perhaps with a unit.
    pub(crate) fn scaled(
        &self,
        name: &str,
        units: &Units,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, String> {
        self.read(name, |text| {
            in_range(name, text, scaled(text, units), &range)
        })
    }

    /// What one of these words means; the first is the default. Any other word is the error.
    pub(crate) fn choice<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<T, &str> {
        let Some(text) = self.value(name) else {
            return Ok(known[0].1);
        };
        let found = known.iter().find(|(word, _)| *word == text);
        found.map(|(_, meaning)| *meaning).ok_or(text)
    }
}

/// A number that an option has, if it is in this range.
pub(crate) fn in_range(
    name: &str,
    text: &str,
    number: Option<u64>,
    range: &RangeInclusive<u64>,
) -> Result<u64, String> {
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let option = match name.chars().count() {
            1 => format!("-{name} "),
            _ => format!("--{name}="),
        };
        let (least, most) = (range.start(), range.end());
        format!("{option}{text}: use a number from {least} to {most}")
    })
}
