//! Options as getopt(3), getopt_long(3) and getopt_long_only(3) of glibc read them, with the same
//! errors. Options may stand behind operands. Knows no tool.

use crate::drop_in::{DropInOption, PrintedText};

/// Which forms a tool accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionForms {
    /// `-c 5`, `--count 5`.
    Long,
    /// Also `-count 5`.
    LongWithOneDash,
}

/// An option with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenOption {
    /// The short form without its dash, or the long one where there is no short form.
    pub name: &'static str,
    /// Its value.
    pub value: Option<String>,
}

/// A command line, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GivenArguments {
    /// Options in order; an operand among them is an option without a name.
    pub options: Vec<GivenOption>,
    /// What is no option.
    pub operands: Vec<String>,
    /// Sentences about options without effect.
    pub notes: Vec<String>,
    /// What the first option that prints a text prints.
    pub prints: Option<PrintedText>,
}

impl GivenArguments {
    /// The last value of an option.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let given = self.options.iter().rev().find(|given| given.name == name)?;
        given.value.as_deref()
    }

    /// All values of an option, in order.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let given = self.options.iter().filter(move |given| given.name == name);
        given.map(|given| given.value.as_deref().unwrap_or_default())
    }

    /// How often an option was given.
    pub(crate) fn count(&self, name: &str) -> usize {
        let given = self.options.iter().filter(|given| given.name == name);
        given.count()
    }

    /// Whether an option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.count(name) > 0
    }
}

/// What is wrong with a command line: glibc's message without the name of the program.
type OptionError = String;

/// Reads the arguments of a drop-in. A refused option is an error that names the alternative.
pub(crate) fn parse(
    options: &'static [DropInOption],
    arguments: &[String],
    forms: OptionForms,
) -> Result<GivenArguments, OptionError> {
    let mut reader = OptionReader {
        options,
        forms,
        rest: arguments.iter(),
        given: GivenArguments::default(),
    };
    while let Some(argument) = reader.rest.next() {
        if argument == "--" {
            let rest = std::mem::take(&mut reader.rest);
            rest.for_each(|operand| reader.operand(operand));
        } else if let Some(option) = reader.plus(argument) {
            reader.add(option, None)?;
        } else if let Some(long) = argument.strip_prefix("--") {
            reader.long("--", long)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            reader.dash(&argument[1..])?;
        } else {
            reader.operand(argument);
        }
    }
    Ok(reader.given)
}

struct OptionReader<'a> {
    options: &'static [DropInOption],
    forms: OptionForms,
    /// Arguments that were not read yet.
    rest: std::slice::Iter<'a, String>,
    given: GivenArguments,
}

impl OptionReader<'_> {
    fn operand(&mut self, text: &str) {
        self.given.operands.push(text.to_owned());
        self.given.options.push(GivenOption {
            name: "",
            value: Some(text.to_owned()),
        });
    }

    /// An argument with one dash.
    fn dash(&mut self, text: &str) -> Result<(), OptionError> {
        let first = text.chars().next().unwrap_or('-');
        let is_short = self.short(first).is_some();
        let name = text.split('=').next().unwrap_or(text);
        // As _getopt_internal_r of glibc decides: one letter that is an option is that option.
        let is_long = !is_short || text.chars().count() > 1 && self.long_named(name).is_some();
        match self.forms {
            OptionForms::LongWithOneDash if is_long => self.long("-", text),
            _ => self.cluster(text),
        }
    }

    /// Short options in one argument.
    fn cluster(&mut self, text: &str) -> Result<(), OptionError> {
        for (at, letter) in text.char_indices() {
            let Some(option) = self.short(letter) else {
                return Err(format!("invalid option -- '{letter}'"));
            };
            if option.value.is_empty() {
                self.add(option, None)?;
                continue;
            }
            let value = match &text[at + letter.len_utf8()..] {
                "" if is_optional(option) => None,
                "" => {
                    let missing = || format!("option requires an argument -- '{letter}'");
                    Some(self.rest.next().cloned().ok_or_else(missing)?)
                }
                behind => Some(behind.to_owned()),
            };
            return self.add(option, value);
        }
        Ok(())
    }

    /// A long option, perhaps abbreviated.
    fn long(&mut self, dashes: &str, text: &str) -> Result<(), OptionError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let Some(option) = self.long_named(name) else {
            return Err(format!("unrecognized option '{dashes}{text}'"));
        };
        let wrong = |why: &str| format!("option '{dashes}{}' {why}", option.long);
        match (option.value.is_empty(), value) {
            (true, Some(_)) => Err(wrong("doesn't allow an argument")),
            (true, None) => self.add(option, None),
            (false, None) if !is_optional(option) => {
                let next = self.rest.next().cloned();
                let next = next.ok_or_else(|| wrong("requires an argument"))?;
                self.add(option, Some(next))
            }
            (false, value) => self.add(option, value),
        }
    }

    /// An option such as `-+n` of iozone, which takes no value.
    fn plus(&self, argument: &str) -> Option<&'static DropInOption> {
        let mut all = self.options.iter();
        all.find(|option| argument.starts_with("-+") && option.short == argument)
    }

    fn short(&self, letter: char) -> Option<&'static DropInOption> {
        let mut all = self.options.iter();
        all.find(|option| option.short.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])))
    }

    /// The option of this long name, or the only one that begins with it.
    fn long_named(&self, name: &str) -> Option<&'static DropInOption> {
        let exact = self.options.iter().find(|option| option.long == name);
        if name.is_empty() || exact.is_some() {
            return exact.filter(|option| !option.long.is_empty());
        }
        let mut like = self
            .options
            .iter()
            .filter(|option| option.long.starts_with(name));
        match (like.next(), like.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    fn add(
        &mut self,
        option: &'static DropInOption,
        value: Option<String>,
    ) -> Result<(), OptionError> {
        let name = option.short.strip_prefix('-').unwrap_or(option.long);
        option.admit(&mut self.given.notes)?;
        self.given.prints = self.given.prints.or(option.prints);
        self.given.options.push(GivenOption { name, value });
        Ok(())
    }
}

fn is_optional(option: &DropInOption) -> bool {
    option.value.starts_with('[')
}
