//! The table of fio's options, `job_options.txt`: what becomes of each in a job, and what to write
//! instead of one that is pasted as a flag.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The treatment of an option of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioHandling {
    /// Carried out with the same meaning, or an equivalent.
    Translated,
    /// Accepted, because it does not change the load.
    Ignored,
    /// Accepted, because it does not change the load. `as fio` uses it for its output.
    Carried,
    /// Refused with the job, because it would change the load, except for these values, and where
    /// the option has no effect.
    Refused {
        /// Values with which it does not change the load.
        except: Vec<&'static str>,
        /// The condition under which it has an effect; `None`: it always has one.
        only: Option<FioCondition>,
    },
    /// This is not an option of jobs. The table only has its hint.
    Hint,
}

/// The jobs in which an option has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioCondition {
    /// The job uses random offsets.
    Random,
    /// The job writes.
    Writes,
    /// The job uses the page cache.
    Buffered,
    /// The job changes blocks, and has several requests in flight.
    QueuedWrites,
    /// The job makes several laps.
    Loops,
    /// The job has this other option.
    Option(&'static str),
}

impl FioCondition {
    fn named(name: &'static str) -> Self {
        match name {
            "random" => Self::Random,
            "writes" => Self::Writes,
            "buffered" => Self::Buffered,
            "queued-writes" => Self::QueuedWrites,
            "loops" => Self::Loops,
            option => Self::Option(option),
        }
    }

    /// The jobs without the effect, as the rest of a sentence that begins with "except".
    pub fn others(self) -> String {
        match self {
            Self::Random => "with sequential offsets".to_owned(),
            Self::Writes => "in jobs that only read".to_owned(),
            Self::Buffered => "with `direct=1`".to_owned(),
            Self::QueuedWrites => {
                "in jobs that only read, or with one request in flight".to_owned()
            }
            Self::Loops => "with one lap".to_owned(),
            Self::Option(name) => format!("without `{name}`"),
        }
    }
}

/// An option of fio's jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioOption {
    /// Names, of which the first stands for all.
    pub names: Vec<&'static str>,
    /// The treatment of a job with it.
    pub handling: FioHandling,
    /// The translation or the reason; for refusals the rest of a sentence that begins with the
    /// option.
    pub text: &'static str,
    /// The words that replace the flag, as the rest of a sentence.
    pub hint: Option<&'static str>,
    /// True of an option that takes a value only behind `=`, under each of its names.
    pub is_switch: bool,
    /// True of an option with the value 0 or 1. A switch has any number; all but 0 are alike.
    pub is_boolean: bool,
}

impl FioOption {
    /// The first of its names.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// The options with their treatment and texts; its first lines describe its columns.
const TABLE: &str = include_str!("job_options.txt");
/// The text of the hint `job` in the table.
const JOB_HINT: &str = "is a job option; write the whole fio command after run: diskproof run fio \
                        --name=t …";

/// The options of fio's jobs, in the order of the table.
pub static FIO_OPTIONS: LazyLock<Vec<FioOption>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(options_of_line).collect()
});

/// The options by each of their names. A map, because a file may have a million settings.
static BY_NAME: LazyLock<HashMap<&'static str, &'static FioOption>> = LazyLock::new(|| {
    let mut by_name = HashMap::new();
    for option in FIO_OPTIONS.iter() {
        if option.handling != FioHandling::Hint {
            for name in &option.names {
                by_name.insert(*name, option);
            }
        }
    }
    by_name
});

/// Reads a line of the table, whose first lines describe it. Its first cell may name several
/// options, each with aliases behind slashes. Panics on another treatment than those of the table's
/// description: the table is a part of the program.
fn options_of_line(line: &'static str) -> impl Iterator<Item = FioOption> {
    let mut cells = line.split('|').map(str::trim);
    let names = cells.next().unwrap_or_default();
    let treatment = cells.next().unwrap_or_default();
    let text = cells.next().unwrap_or_default();
    let hint = cells.next().unwrap_or_default();
    let handling = match treatment.split_once(' ').unwrap_or((treatment, "")) {
        ("translated", _) => FioHandling::Translated,
        ("ignored", "carried") => FioHandling::Carried,
        ("ignored", _) => FioHandling::Ignored,
        ("hint", _) => FioHandling::Hint,
        ("refused", harmless) => {
            let (mut except, mut only) = (Vec::new(), None);
            for word in harmless.split_whitespace() {
                match word.strip_prefix("if=") {
                    Some(condition) => only = Some(FioCondition::named(condition)),
                    None => except.push(word),
                }
            }
            FioHandling::Refused { except, only }
        }
        (other, _) => panic!("job_options.txt: {names} has the treatment '{other}'"),
    };
    let hint = match (&handling, hint) {
        (FioHandling::Refused { .. } | FioHandling::Hint, _) => Some(text),
        (_, "job") => Some(JOB_HINT),
        (_, hint) => Some(hint).filter(|hint| !hint.is_empty()),
    };
    names.split_whitespace().map(move |aliases| FioOption {
        names: aliases
            .split('/')
            .map(|name| name.trim_end_matches(['!', '?']))
            .collect(),
        handling: handling.clone(),
        text,
        hint,
        is_switch: aliases.ends_with('!'),
        is_boolean: aliases.ends_with('?'),
    })
}

/// The option of a job with this name.
pub fn fio_option(name: &str) -> Option<&'static FioOption> {
    BY_NAME.get(name).copied()
}

/// The options of jobs that fio takes an unambiguous beginning for.
pub(super) fn fio_options_beginning(start: &str) -> Vec<&'static str> {
    BY_NAME
        .keys()
        .copied()
        .filter(|name| name.starts_with(start))
        .collect()
}

/// The known name that a misspelt one is most like: one letter differs, or a dash stands for `_`.
pub fn fio_similar(name: &str) -> Option<&'static str> {
    let plain = name.replace('-', "_");
    let options = FIO_OPTIONS
        .iter()
        .filter(|option| option.handling != FioHandling::Hint);
    // In the order of the table, so that each run suggests the same.
    options
        .flat_map(|option| &option.names)
        .find(|known| differ_by_one(known, &plain))
        .copied()
}

/// True of two words that are the same but for a letter that was added, left out, changed, or
/// exchanged with the next one.
fn differ_by_one(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (short, long) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    // From the first letter that differs.
    match (&short[same..], &long[same..]) {
        ([], []) => true,
        // Two letters are exchanged.
        ([a, b, short_rest @ ..], [c, d, long_rest @ ..])
            if (a, b) == (d, c) && short_rest == long_rest =>
        {
            true
        }
        // The long word has a letter more.
        (short_rest, [_, long_rest @ ..]) if short_rest == long_rest => true,
        // A letter is changed.
        ([_, short_rest @ ..], [_, long_rest @ ..]) => short_rest == long_rest,
        _ => false,
    }
}

/// The hint for a flag, as the rest of a sentence that begins with it. That of the flag itself
/// comes before that of the option whose alias it is.
pub fn fio_hint(name: &str) -> Option<&'static str> {
    let mut options = FIO_OPTIONS
        .iter()
        .filter(|option| option.names.contains(&name));
    options.find_map(|option| option.hint)
}

/// True of an option of a job that takes a value only behind `=`.
pub(super) fn is_switch(name: &str) -> bool {
    fio_option(name).is_some_and(|option| option.is_switch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_options_are_found() {
        for (word, meant) in [
            ("io-size", Some("io_size")),
            ("iodetph", Some("iodepth")),
            ("nmjobs", Some("numjobs")),
            ("rutnime", Some("runtime")),
            ("directt", Some("direct")),
            ("rbdname", None),
            ("nonsense", None),
        ] {
            assert_eq!(fio_similar(word), meant, "{word}");
        }
    }

    #[test]
    fn conditions_of_refusals_are_words_or_options_of_the_table() {
        for option in FIO_OPTIONS.iter() {
            if let FioHandling::Refused {
                only: Some(FioCondition::Option(name)),
                ..
            } = &option.handling
            {
                assert!(fio_option(name).is_some(), "{}: if={name}", option.name());
            }
        }
    }

    #[test]
    fn switches_are_those_of_fio() {
        let switches = FIO_OPTIONS.iter().filter(|option| option.is_switch);
        let names: Vec<&str> = switches.map(FioOption::name).collect();
        let wanted = "time_based stonewall exitall norandommap verify_only zero_buffers \
                      refill_buffers thread group_reporting new_group fixedbufs registerfiles \
                      sqthread_poll userspace_reap libaio_vectored hipri exitall_on_error \
                      bs_unaligned";
        assert_eq!(names.join(" "), wanted);
        assert!(is_switch("wait_for_previous") && !is_switch("rw") && !is_switch("nonsense"));
    }
}
