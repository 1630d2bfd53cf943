//! Tells why fio would not take a value for an option, by the types, ranges and words of the table
//! `option_help.txt`.

use super::option_help::{OptionHelp, ValueKind, help_of};
use super::values::{Base, bytes};
use diskproof_model::errno;

/// Options whose words others check: engines have a table of their own.
const CHECKED_ELSEWHERE: [&str; 1] = ["ioengine"];
/// Words that fio 3.42 takes, and 3.33 does not yet.
const LATER_WORDS: [(&str, &[&str]); 3] = [
    ("fadvise_hint", &["noreuse"]),
    ("steadystate", &["lat", "lat_slope"]),
    ("verify", &["pattern_hdr"]),
];
/// Options that are texts in fio's table, and numbers for its readers.
const NUMERIC_TEXTS: [&str; 4] = ["lockmem", "randseed", "trim_backlog", "zonecapacity"];

/// Why fio would not take a value for the option of this first name; `None` where it takes it, and
/// for options that the table does not have.
pub fn fio_value_error(name: &str, value: &str) -> Option<String> {
    let help = help_of(name)?;
    if value.is_empty() {
        return Some("the value is missing".to_owned());
    }
    if !help.words.is_empty() && !CHECKED_ELSEWHERE.contains(&name) {
        return word_error(name, help, value);
    }
    match help.kind {
        ValueKind::Int => number_error(help, value),
        ValueKind::Floats => float_error(help, value),
        ValueKind::Ranges => range_error(value),
        ValueKind::Switch if !is_number(value) => Some("write 0 or 1".to_owned()),
        ValueKind::Text if name == "ignore_error" => unknown_error_name(value),
        ValueKind::Text if NUMERIC_TEXTS.contains(&name) => {
            if !is_number(value) {
                Some(NO_NUMBER.to_owned())
            } else if is_too_large(value) {
                Some(TOO_LARGE.to_owned())
            } else {
                None
            }
        }
        // The front end reads times, sizes and yes or no, and words it knows itself.
        ValueKind::Text
        | ValueKind::Switch
        | ValueKind::Bool
        | ValueKind::Time
        | ValueKind::Size
        | ValueKind::Scaled => None,
    }
}

const NO_NUMBER: &str = "it is no number; write one such as 64 or 4k";
const TOO_LARGE: &str = "it does not fit into 64 bits";

/// Why the first range of a list is none: it must have two ends. Numbers in it have errors of their
/// own.
fn range_error(value: &str) -> Option<String> {
    let first = value.split(',').next().unwrap_or_default();
    if first.contains(['-', ':']) {
        None
    } else {
        Some("write a range, such as 4k-16k".to_owned())
    }
}

/// Why a list of errors to ignore has an unknown one: those of reads, of writes and of
/// verification, with commas between the three and colons within them, are names or numbers. An
/// empty one ends its part.
fn unknown_error_name(value: &str) -> Option<String> {
    for errors in value.split(',') {
        for error in errors
            .trim()
            .split(':')
            .take_while(|error| !error.is_empty())
        {
            let digits = error.trim_start_matches('-');
            let is_known = if error.starts_with('E') {
                errno::number(error).is_some()
            } else {
                digits.starts_with(|first: char| matches!(first, '1'..='9'))
            };
            if !is_known {
                return Some(format!("{error:?} is no error; write one such as EIO or 5"));
            }
        }
    }
    None
}

/// True of digits beyond the largest number of fio.
fn is_too_large(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|digit: char| !digit.is_ascii_digit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    !digits.is_empty() && digits.parse::<u64>().is_err()
}

/// Why the word before a colon or a comma is none of the option's.
fn word_error(name: &str, help: &OptionHelp, value: &str) -> Option<String> {
    let word = value.split([':', ',']).next().unwrap_or_default().trim();
    let mut known = Vec::new();
    for listed in &help.words {
        known.push(listed.trim_end_matches('!'));
    }
    for (option, words) in LATER_WORDS {
        if option == name {
            known.extend(words);
        }
    }
    if known.contains(&word) {
        None
    } else {
        Some(format!("fio takes one of {}", known.join(", ")))
    }
}

/// Why a number of a list does not lie in the range of the option, or is none.
fn number_error(help: &OptionHelp, value: &str) -> Option<String> {
    let range = Range::parse(help.range);
    for part in value.split(',').map(str::trim) {
        if part.is_empty() {
            continue;
        }
        if !is_number(part) {
            return Some(NO_NUMBER.to_owned());
        }
        if is_too_large(part) {
            return Some(TOO_LARGE.to_owned());
        }
        // What fio reads only in part has an error of its own where it matters.
        if let Some(number) = whole_number(part)
            && let Some(why) = range.error(number)
        {
            return Some(why);
        }
    }
    None
}

/// Why a number of a list with colons does not lie in the range of the option, or is none.
fn float_error(help: &OptionHelp, value: &str) -> Option<String> {
    let range = Range::parse(help.range);
    for part in value.split(':').map(str::trim) {
        let Ok(number) = part.parse::<f64>() else {
            return Some("write numbers, such as 50:99.9".to_owned());
        };
        if let Some(why) = range.error(number) {
            return Some(why);
        }
    }
    None
}

/// True of a text that begins as numbers and expressions do.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '(')
}

/// A number with an optional unit; `None` where it is none.
fn whole_number(text: &str) -> Option<f64> {
    match text.strip_prefix('-') {
        Some(text) => Some(-(bytes(text, Base::Binary).ok()? as f64)),
        None => Some(bytes(text, Base::Binary).ok()? as f64),
    }
}

/// The least and the greatest value of an option.
#[derive(Clone, Copy)]
struct Range {
    least: Option<f64>,
    most: Option<f64>,
}

impl Range {
    /// Reads a range such as `min=0, max=100`; -1 is no limit.
    fn parse(text: &str) -> Self {
        let mut range = Self {
            least: None,
            most: None,
        };
        for limit in text.split(", ") {
            if let Some(least) = limit.strip_prefix("min=") {
                range.least = least.parse().ok();
            } else if let Some(most) = limit.strip_prefix("max=")
                && most != "-1"
            {
                range.most = most.parse().ok();
            }
        }
        range
    }

    /// Why a number is outside. fio takes negative numbers where the least one is 0 or 1, as none
    /// or as huge ones.
    fn error(self, number: f64) -> Option<String> {
        if let Some(least) = self.least
            && number < least
            && (number >= 0.0 || !(0.0..=1.0).contains(&least))
        {
            return Some(format!("fio takes at least {least}"));
        }
        match self.most {
            Some(most) if number > most => Some(format!("fio takes at most {most}")),
            Some(_) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 with `--parse-only`.
    #[test]
    fn values_are_checked_as_in_fio() {
        for (option, taken, refused) in [
            ("rwmixread", "0 100", "101 200 bogus"),
            ("nice", "-20 19", "-21 20"),
            ("fallocate", "none native 0 1", "2 bogus"),
            (
                "file_service_type",
                "random roundrobin:4 zipf:1.2",
                "bogus 1",
            ),
            ("clocksource", "cpu", "bogus"),
            ("mem", "malloc mmaphuge:/x", "bogus"),
            ("random_generator", "lfsr", "foo"),
            ("continue_on_error", "all 1", "foo 2"),
            ("unified_rw_reporting", "both 0", "foo"),
            ("percentile_list", "50 1:99.9", "abc 101"),
            ("buffer_compress_percentage", "50", "300"),
            ("percentage_random", "100,0 ,50", "100,101"),
            ("verify_offset", "40 1k", "0 8"),
            ("verify", "0 md5 sha3-224 pattern_hdr", "md55 none 1"),
            ("log_entries", "1024 1m", "1023 1048577"),
            ("significant_figures", "4", "0 11"),
            ("unit_base", "0 8 1", "2"),
            ("iodepth_batch", "0 16*1 -1 4k", "bogus"),
            ("steadystate", "iops:2% lat:1ms", "foo:2%"),
            ("thread", "0 1 2", "bogus"),
            ("hipri", "1", "bogus"),
            ("lockmem", "1g", "bogus"),
            ("cmdprio_percentage", "100", "101"),
            ("ioengine", "sync external:/x", ""),
            ("bsrange", "4k-16k 4k:8k 4k-8k,16k", "4k 1,2"),
            ("ignore_error", "EIO 5 EIO:ENOSPC,EIO :EIO -5", "abc 0 EFOO"),
            ("randseed", "1234", "99999999999999999999"),
            ("openfiles", "4", "99999999999999999999"),
            ("description", "x", ""),
        ] {
            for value in taken.split(' ') {
                assert_eq!(fio_value_error(option, value), None, "{option}={value}");
            }
            for value in refused.split(' ').chain([""]) {
                assert!(fio_value_error(option, value).is_some(), "{option}={value}");
            }
        }
        assert_eq!(fio_value_error("plids", "bogus"), None);
    }
}
