//! Reads the command line of a tool. Options are those of getopt(3), getopt_long(3) and
//! getopt_long_only(3) of glibc, with the same errors; they may stand behind operands.

use crate::drop_in::{DropIn, DropInOption, PrintedText, Started, Treatment};
use crate::load::{DropInLoad, LoadHead, PlanContext};
use crate::printer::DropInError;
use diskproof_model::target::TargetKind;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Differences between tools in what their command lines print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandLine<'a> {
    pub long_dashes: LongDashes,
    /// The text of the option that asks for help.
    pub help: &'a str,
    /// The text after an error in the options.
    pub after_option_error: &'a str,
    /// The text after an error in their values.
    pub after_value_error: &'a str,
}

/// The dashes before a long option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongDashes {
    /// Two, as getopt_long(3) has them.
    Two,
    /// Two or one, as getopt_long_only(3) has them: `-count 5`.
    OneOrTwo,
}

impl<'a> CommandLine<'a> {
    /// A command line whose errors stand alone.
    pub(crate) fn new(help: &'a str) -> Self {
        Self {
            long_dashes: LongDashes::Two,
            help,
            after_option_error: "",
            after_value_error: "",
        }
    }

    /// A command line whose errors are followed by the help.
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
        if let Some(first) = arguments.first()
            && first == "--version"
        {
            return Ok(Started::version(self.emulates));
        }
        let given = parse(self.options, arguments, command.long_dashes)
            .map_err(|why| self.usage_error(&why, command.after_option_error))?;
        match given.prints {
            Some(PrintedText::Help) => Ok(Started::help(command.help)),
            Some(PrintedText::Version) => Ok(Started::version(self.emulates)),
            None => match read(&given) {
                Ok(load) => Ok(Started::Load(Box::new(load))),
                Err(why) => Err(self.usage_error(&why, command.after_value_error)),
            },
        }
    }

    /// An error in the command line, with the text that follows it.
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
        head: &LoadHead,
        context: &PlanContext<'_>,
    ) -> Result<(), DropInError> {
        match context.target.kind {
            TargetKind::Directory => {
                let path = head.path();
                Err(self.target_error(&format!("{path}: is a directory; name a device or a file")))
            }
            _ => Ok(()),
        }
    }

    /// The usage, and a line for each option that has a help, in columns of this width.
    pub(crate) fn help(&self, width: usize, form: fn(&DropInOption) -> String) -> String {
        let mut text = self.usage.to_owned();
        for option in self.options {
            if option.help.is_empty() {
                continue;
            }
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

/// Reads a number, perhaps with a unit; `None` for any other text, and for a number that is too
/// large.
pub(crate) fn scaled(text: &str, units: &Units) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let number: u64 = digits.parse().ok()?;
    for (unit, factor) in units {
        if unit.eq_ignore_ascii_case(suffix) {
            return number.checked_mul(*factor);
        }
    }
    None
}

/// Returns the number of an option if it is one and in this range, else the error for the user.
pub(crate) fn in_range(
    name: &str,
    text: &str,
    number: Option<u64>,
    range: &RangeInclusive<u64>,
) -> Result<u64, String> {
    if let Some(number) = number
        && range.contains(&number)
    {
        return Ok(number);
    }
    let option = match name.chars().count() {
        1 => format!("-{name} "),
        _ => format!("--{name}="),
    };
    let (least, most) = (range.start(), range.end());
    Err(format!(
        "{option}{text}: use a number from {least} to {most}"
    ))
}

/// An option with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenOption {
    /// The key of the option ([`DropInOption::key`]); empty for an operand.
    pub name: &'static str,
    /// The value; `None` of a flag.
    pub value: Option<String>,
}

/// A command line, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GivenArguments {
    /// The options that the tool has; to ask for any other one is a fault of this program. Empty
    /// where the tool reads its command line by itself, as fio does.
    pub known: &'static [DropInOption],
    /// Options in order; an operand among them is an option without a name.
    pub options: Vec<GivenOption>,
    /// Words that are no options, in order.
    pub operands: Vec<String>,
    /// Sentences about options without effect.
    pub notes: Vec<String>,
    /// The text that the first such option prints in place of a run.
    pub prints: Option<PrintedText>,
}

impl GivenArguments {
    /// The last value of an option, by its name as in [`GivenOption`]; `None` where it was not
    /// given, and for a flag.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.assert_known(name);
        let last = self.options.iter().rfind(|given| given.name == name)?;
        last.value.as_deref()
    }

    /// Every value that was given to an option, in order.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.assert_known(name);
        self.options
            .iter()
            .filter(move |given| given.name == name)
            .map(|given| given.value.as_deref().unwrap_or_default())
    }

    /// Fails a test that asks for a misspelt option, which nobody could have given.
    fn assert_known(&self, name: &str) {
        debug_assert!(
            self.known.is_empty() || self.known.iter().any(|option| option.key() == name),
            "the tool has no option {name}"
        );
    }

    /// The number of times that an option was given.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.values(name).count()
    }

    /// True if an option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.count(name) > 0
    }

    /// The value that `read` makes of the text of an option; `None` where it was not given.
    pub(crate) fn read<T, E>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.value(name).map(read).transpose()
    }

    /// The number of an option, which must be in this range; `None` where it was not given.
    pub(crate) fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, String> {
        self.scaled(name, &[("", 1)], range)
    }

    /// The number of an option, perhaps with a unit, which must be in this range; `None` where it
    /// was not given.
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

    /// The meaning of the word that was given; the first is the default. Any other word is the
    /// error.
    pub(crate) fn choice<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<T, &str> {
        let Some(text) = self.value(name) else {
            return Ok(known[0].1);
        };
        match known.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(*meaning),
            None => Err(text),
        }
    }
}

/// glibc's message about a command line, without the name of the program.
type OptionError = String;

/// Reads the arguments of a drop-in. A refused option is an error that names the alternative.
pub(crate) fn parse(
    options: &'static [DropInOption],
    arguments: &[String],
    long_dashes: LongDashes,
) -> Result<GivenArguments, OptionError> {
    let mut reader = OptionReader {
        options,
        long_dashes,
        rest: arguments.iter(),
        given: GivenArguments {
            known: options,
            ..GivenArguments::default()
        },
    };
    while let Some(argument) = reader.rest.next() {
        if argument == "--" {
            for operand in std::mem::take(&mut reader.rest) {
                reader.add_operand(operand);
            }
        } else if let Some(option) = reader.plus_option(argument) {
            reader.add(option, None)?;
        } else if let Some(long) = argument.strip_prefix("--") {
            reader.read_long_option("--", long)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            reader.read_one_dash(&argument[1..])?;
        } else {
            reader.add_operand(argument);
        }
    }
    Ok(reader.given)
}

/// Reads the arguments of a command line one by one.
struct OptionReader<'a> {
    options: &'static [DropInOption],
    long_dashes: LongDashes,
    /// Arguments that were not read yet.
    rest: std::slice::Iter<'a, String>,
    given: GivenArguments,
}

impl OptionReader<'_> {
    fn add_operand(&mut self, text: &str) {
        self.given.operands.push(text.to_owned());
        self.given.options.push(GivenOption {
            name: "",
            value: Some(text.to_owned()),
        });
    }

    /// Reads an argument with one dash, which comes without it.
    fn read_one_dash(&mut self, text: &str) -> Result<(), OptionError> {
        let first = text.chars().next().unwrap_or('-');
        let is_short = self.short_named(first).is_some();
        let name = text.split('=').next().unwrap_or(text);
        // As _getopt_internal_r of glibc decides: one letter that is an option is that option.
        let is_long = !is_short || (text.chars().count() > 1 && !self.named_like(name).is_empty());
        if is_long && self.long_dashes == LongDashes::OneOrTwo {
            self.read_long_option("-", text)
        } else {
            self.read_short_options(text)
        }
    }

    /// Reads the short options in one argument. The first one that takes a value ends it.
    fn read_short_options(&mut self, text: &str) -> Result<(), OptionError> {
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let Some(option) = self.short_named(letter) else {
                return Err(format!("invalid option -- '{letter}'"));
            };
            if option.value.is_empty() {
                self.add(option, None)?;
                continue;
            }
            return match letters.as_str() {
                "" if is_value_optional(option) => self.add(option, None),
                "" => match self.rest.next() {
                    Some(next) => self.add(option, Some(next.clone())),
                    None => Err(format!("option requires an argument -- '{letter}'")),
                },
                behind => self.add(option, Some(behind.to_owned())),
            };
        }
        Ok(())
    }

    /// Reads a long option, perhaps abbreviated. `dashes` are those before it, for errors.
    fn read_long_option(&mut self, dashes: &str, text: &str) -> Result<(), OptionError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let Some(option) = self.long_named(name) else {
            let like = self.named_like(name);
            if like.len() > 1 {
                return Err(ambiguous(dashes, name, &like));
            }
            return Err(format!("unrecognized option '{dashes}{text}'"));
        };
        let long = option.long;
        let takes_value = !option.value.is_empty();
        if !takes_value && value.is_some() {
            return Err(format!("option '{dashes}{long}' doesn't allow an argument"));
        }
        if takes_value && value.is_none() && !is_value_optional(option) {
            return match self.rest.next() {
                Some(next) => self.add(option, Some(next.clone())),
                None => Err(format!("option '{dashes}{long}' requires an argument")),
            };
        }
        self.add(option, value)
    }

    /// The option of an argument such as `-+n` of iozone, which takes no value.
    fn plus_option(&self, argument: &str) -> Option<&'static DropInOption> {
        if !argument.starts_with("-+") {
            return None;
        }
        self.options.iter().find(|option| option.short == argument)
    }

    /// The option of this letter.
    fn short_named(&self, letter: char) -> Option<&'static DropInOption> {
        let short = format!("-{letter}");
        self.options.iter().find(|option| option.short == short)
    }

    /// The option of this long name, or the only one that begins with it.
    fn long_named(&self, name: &str) -> Option<&'static DropInOption> {
        match self.named_like(name).as_slice() {
            [only] => Some(*only),
            like => like.iter().copied().find(|option| option.long == name),
        }
    }

    /// The options whose long names begin with this text.
    fn named_like(&self, name: &str) -> Vec<&'static DropInOption> {
        if name.is_empty() {
            return Vec::new();
        }
        self.options
            .iter()
            .filter(|option| option.long.starts_with(name))
            .collect()
    }

    /// Adds an option, unless it is refused.
    fn add(
        &mut self,
        option: &'static DropInOption,
        value: Option<String>,
    ) -> Result<(), OptionError> {
        let name = option.key();
        // A switch that is off asks for nothing, and is written by those who state the default.
        let is_off = option.value == SWITCH && value.as_deref() == Some("off");
        if !is_off {
            option.admit(&mut self.given.notes)?;
        }
        self.given.prints = self.given.prints.or(option.prints);
        self.given.options.push(GivenOption { name, value });
        Ok(())
    }
}

/// The values of an option that is a switch, as the tables of options have them.
const SWITCH: &str = "[on|off]";

/// True if the value of an option may be omitted.
fn is_value_optional(option: &DropInOption) -> bool {
    option.value.starts_with('[')
}

/// The error of a name that several options begin with, in the words of glibc.
fn ambiguous(dashes: &str, name: &str, options: &[&DropInOption]) -> String {
    let mut text = format!("option '{dashes}{name}' is ambiguous; possibilities:");
    for option in options {
        let _ = write!(text, " '{dashes}{}'", option.long);
    }
    text
}
