//! Reads a setting by the kind of its value: text, numbers, times, switches, choices.

use super::reader::{BASES, JobReader};
use crate::job_file::jobs::GivenName;
use crate::job_file::sections::Setting;
use crate::job_file::translation::{JobFileError, Translated};
use crate::workload::Count;
use diskproof_compat::fio_option;
use diskproof_compat::fio_values::{self as numbers, Amount, Base};
use std::fmt::Display;

/// A setting whose value is not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenValue<'a> {
    /// The setting, with its line for errors.
    pub setting: &'a Setting,
    /// The value as the file spells it.
    pub text: &'a str,
    /// The meaning of units in the value, such as `k`.
    pub base: Base,
}

impl GivenValue<'_> {
    /// An error about this setting.
    pub(super) fn error(&self, why: impl Display) -> JobFileError {
        self.setting.error(why)
    }

    /// Reads a size in bytes. `text` is all of the value or a part of it.
    pub(super) fn size(&self, text: &str) -> Translated<u64> {
        numbers::bytes(text, self.base).map_err(|why| self.error(why))
    }

    /// Reads a whole number with an optional unit of sizes. fio reads no fraction, so one of zeros
    /// may follow.
    fn number(&self, number_max: u64) -> Translated<u64> {
        let number = self.size(without_zeros(self.text))?;
        if number > number_max {
            return Err(self.error(format!("{number} is too large; use at most {number_max}")));
        }
        Ok(number)
    }

    fn amount(&self) -> Translated<Amount> {
        numbers::amount(self.text, self.base).map_err(|why| self.error(why))
    }

    /// The meaning of the value, which is one of these words.
    fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Translated<T> {
        for (word, meaning) in choices {
            if *word == self.text {
                return Ok(*meaning);
            }
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        Err(self.error(format!(
            "this value is not supported; use one of {}",
            words.join(", ")
        )))
    }
}

impl<'a> JobReader<'a> {
    /// The setting of an option, if the job has it. `name` is the option's own name: by an alias,
    /// or a misspelt name, no setting would ever be found.
    pub(super) fn setting(&self, name: &str) -> Option<&'a Setting> {
        debug_assert!(is_own_name(name), "{name} is no name of an option");
        self.given.get(name).copied()
    }

    /// True if the job has an option.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.setting(name).is_some()
    }

    /// An error at a setting, or at the section without it.
    pub(super) fn error(&self, name: &str, why: impl Display) -> JobFileError {
        match self.setting(name) {
            Some(setting) => setting.error(why),
            None => self.section.source.error(format!("{name}: {why}")),
        }
    }

    /// True if the last setting with the first name comes after that with the second one.
    pub(super) fn is_later(&self, name: &str, other: &str) -> bool {
        self.position(name) > self.position(other)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let setting = self.setting(name)?;
        self.section
            .settings
            .iter()
            .position(|other| std::ptr::eq(other.as_ref(), setting))
    }

    /// The text after the equals sign, which may be empty.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.setting(name)?.option.value.as_deref()
    }

    /// The meaning of units in the value of a setting. In a section fio reads `kb_base` first; on
    /// the command line, and for the sections above, it changes nothing that was read before.
    fn base(&self, setting: &Setting) -> Base {
        let mut base = Base::Binary;
        for earlier in &self.section.settings {
            if earlier.pass > setting.pass {
                break;
            }
            if earlier.option.key != "kb_base" {
                continue;
            }
            for (text, named_base) in BASES {
                if earlier.option.value.as_deref() == Some(text) {
                    base = named_base;
                }
            }
        }
        base
    }

    /// The value of an option, which must not be empty.
    pub(super) fn value(&self, name: &str) -> Translated<Option<GivenValue<'a>>> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        match setting.option.value.as_deref() {
            None | Some("") => Err(setting.error("the value is missing")),
            Some(text) => Ok(Some(GivenValue {
                setting,
                text,
                base: self.base(setting),
            })),
        }
    }

    /// The name in the value of an option.
    pub(super) fn given_name(&self, name: &str) -> Translated<Option<GivenName>> {
        match self.value(name)? {
            Some(given) => Ok(Some(GivenName {
                name: given.text.to_owned(),
                source: given.setting.source.clone(),
            })),
            None => Ok(None),
        }
    }

    /// The value of an option, as a parser that knows no unit of sizes reads it.
    pub(super) fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Translated<Option<T>> {
        let Some(given) = self.value(name)? else {
            return Ok(None);
        };
        match parse(given.text) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(why) => Err(given.error(why)),
        }
    }

    /// The meaning of an option's value, which is one of these words.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Translated<Option<T>> {
        match self.value(name)? {
            Some(given) => given.choice(choices).map(Some),
            None => Ok(None),
        }
    }

    /// A whole number with an optional unit of sizes.
    pub(super) fn number(&self, name: &str, number_max: u64) -> Translated<Option<u64>> {
        match self.value(name)? {
            Some(given) => given.number(number_max).map(Some),
            None => Ok(None),
        }
    }

    /// A number of any size.
    pub(super) fn bytes(&self, name: &str, default: u64) -> Translated<u64> {
        Ok(self.number(name, u64::MAX)?.unwrap_or(default))
    }

    /// A number of which 0 is the same as none.
    pub(super) fn count(&self, name: &str) -> Translated<Option<Count>> {
        match self.bytes(name, 0)? {
            0 => Ok(None),
            count => Ok(Some(Count(count))),
        }
    }

    /// A percentage; 0 without the setting.
    pub(super) fn percent(&self, name: &str) -> Translated<u8> {
        Ok(self.number(name, 100)?.unwrap_or(0) as u8)
    }

    /// A number of 32 bits; 0 without the setting.
    pub(super) fn small_number(&self, name: &str) -> Translated<u32> {
        Ok(self.number(name, u64::from(u32::MAX))?.unwrap_or(0) as u32)
    }

    /// A size or a percentage of the file.
    pub(super) fn amount(&self, name: &str) -> Translated<Option<Amount>> {
        match self.value(name)? {
            Some(given) => given.amount().map(Some),
            None => Ok(None),
        }
    }

    /// A time whose bare number is seconds; 0 without the setting.
    pub(super) fn time(&self, name: &str) -> Translated<u64> {
        if let Some(given) = self.value(name)?
            && numbers::first_of_sum(given.text) != given.text
        {
            self.note("a time such as 40+30 is its first number, as fio reads it");
        }
        Ok(self.parsed(name, numbers::time_ns)?.unwrap_or(0))
    }

    /// A time whose bare number is microseconds; 0 without the setting.
    pub(super) fn short_time(&self, name: &str) -> Translated<u64> {
        Ok(self.parsed(name, numbers::short_time_ns)?.unwrap_or(0))
    }

    /// Reads an option that is on or off; `None` without the setting. A setting without a value is
    /// on, and of the numbers only 0 is off. `check` has refused other numbers than 0 and 1 where
    /// fio does.
    pub(super) fn optional_flag(&self, name: &str) -> Translated<Option<bool>> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        let value = setting.option.value.as_deref().unwrap_or("1");
        match numbers::bytes(value, self.base(setting)) {
            Ok(number) => Ok(Some(number != 0)),
            Err(_) => Err(setting.error("write 0 or 1")),
        }
    }

    /// As [`Self::optional_flag`], off without the setting.
    pub(super) fn flag(&self, name: &str) -> Translated<bool> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }
}

/// True if an option of fio has this name, which is not an alias of it.
fn is_own_name(name: &str) -> bool {
    fio_option(name).is_some_and(|option| option.name() == name)
}

/// A number without a fraction of zeros.
fn without_zeros(text: &str) -> &str {
    match text.split_once('.') {
        Some((number, zeros))
            if !number.is_empty()
                && !zeros.is_empty()
                && zeros.bytes().all(|digit| digit == b'0') =>
        {
            number
        }
        _ => text,
    }
}
