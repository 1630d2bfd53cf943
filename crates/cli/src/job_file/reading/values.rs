//! Reads a setting by the kind of its value: text, numbers, times, switches, choices.

use super::{BASES, JobReader};
use crate::job_file::sections::Setting;
use crate::job_file::translation::{JobFileError, Translated};
use diskproof_compat::fio_values::{self as numbers, Amount, Base};
use std::fmt::Display;

impl<'a> JobReader<'a> {
    pub(super) fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.given.get(name).copied()
    }

    /// An error at a setting, or at the section without it.
    pub(super) fn error(&self, name: &str, why: impl Display) -> JobFileError {
        match self.setting(name) {
            Some(setting) => setting.error(why),
            None => self.section.source.error(format!("{name}: {why}")),
        }
    }

    /// Whether the last setting with the first name comes after that with the second one.
    pub(super) fn is_later(&self, name: &str, other: &str) -> bool {
        let position = |name: &str| {
            let setting = self.setting(name)?;
            let mut settings = self.section.settings.iter();
            settings.position(|one| std::ptr::eq(one.as_ref(), setting))
        };
        position(name) > position(other)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.setting(name)?.option.value.as_deref()
    }

    /// The meaning of units in the value of a setting. In a section fio reads `kb_base` first; on
    /// the command line, and for the sections above, it changes nothing that was read before.
    pub(super) fn base(&self, setting: &Setting) -> Base {
        let mut base = Base::Binary;
        for one in &self.section.settings {
            if one.part > setting.part {
                break;
            }
            if one.option.key != "kb_base" {
                continue;
            }
            let value = one.option.value.as_deref();
            let known = BASES.iter().find(|(text, _)| Some(*text) == value);
            if let Some((_, given)) = known {
                base = *given;
            }
        }
        base
    }

    /// A size in the value of a setting.
    pub(super) fn size(&self, setting: &Setting, text: &str) -> Translated<u64> {
        numbers::bytes(text, self.base(setting)).map_err(|why| setting.error(why))
    }

    /// The setting and its value, which must not be empty.
    pub(super) fn value(&self, name: &str) -> Translated<Option<(&'a Setting, &'a str)>> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        match setting.option.value.as_deref() {
            Some(value) if !value.is_empty() => Ok(Some((setting, value))),
            _ => Err(setting.error("the value is missing")),
        }
    }

    pub(super) fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Translated<Option<T>> {
        let Some((setting, value)) = self.value(name)? else {
            return Ok(None);
        };
        parse(value).map(Some).map_err(|why| setting.error(why))
    }

    /// The same for a value with units of sizes.
    fn parsed_with_base<T, E: Display>(
        &self,
        name: &str,
        parse: impl Fn(&str, Base) -> Result<T, E>,
    ) -> Translated<Option<T>> {
        let Some((setting, value)) = self.value(name)? else {
            return Ok(None);
        };
        let parsed = parse(value, self.base(setting));
        parsed.map(Some).map_err(|why| setting.error(why))
    }

    /// One of these words.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Translated<Option<T>> {
        self.parsed(name, |text| {
            let found = choices.iter().find(|(word, _)| *word == text);
            found.map(|(_, value)| *value).ok_or_else(|| {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                let words = words.join(", ");
                format!("this value is not supported; use one of {words}")
            })
        })
    }

    /// A whole number with an optional unit of sizes. fio reads no fraction, so one of zeros may
    /// follow.
    pub(super) fn number(&self, name: &str, most: u64) -> Translated<Option<u64>> {
        self.parsed_with_base(name, |text, base| {
            match numbers::bytes(whole(text), base)? {
                number if number > most => {
                    Err(format!("{number} is too large; use at most {most}"))
                }
                number => Ok(number),
            }
        })
    }

    pub(super) fn bytes(&self, name: &str, default: u64) -> Translated<u64> {
        Ok(self.number(name, u64::MAX)?.unwrap_or(default))
    }

    /// A percentage; 0 without the setting.
    pub(super) fn percent(&self, name: &str) -> Translated<u8> {
        Ok(self.number(name, 100)?.unwrap_or(0) as u8)
    }

    pub(super) fn amount(&self, name: &str) -> Translated<Option<Amount>> {
        self.parsed_with_base(name, numbers::amount)
    }

    /// A time whose bare number is seconds.
    pub(super) fn time(&self, name: &str) -> Translated<u64> {
        Ok(self.parsed(name, numbers::time_ns)?.unwrap_or(0))
    }

    /// A time whose bare number is microseconds.
    pub(super) fn short_time(&self, name: &str) -> Translated<u64> {
        Ok(self.parsed(name, numbers::short_time_ns)?.unwrap_or(0))
    }

    /// Reads a switch: without a value, or with a number, of which only 0 means no. `check` has
    /// refused other numbers than 0 and 1 where fio does.
    pub(super) fn switch(&self, name: &str) -> Translated<Option<bool>> {
        let Some(setting) = self.setting(name) else {
            return Ok(None);
        };
        let value = setting.option.value.as_deref().unwrap_or("1");
        match numbers::bytes(value, self.base(setting)) {
            Ok(number) => Ok(Some(number != 0)),
            Err(_) => Err(setting.error("write 0 or 1")),
        }
    }

    pub(super) fn flag(&self, name: &str) -> Translated<bool> {
        Ok(self.switch(name)?.unwrap_or(false))
    }
}

/// A number without a fraction of zeros.
fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((number, zeros)) if !number.is_empty() && !zeros.is_empty() => {
            let is_zero = zeros.bytes().all(|digit| digit == b'0');
            if is_zero { number } else { text }
        }
        _ => text,
    }
}
