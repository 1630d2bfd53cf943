//! The table of fio's options, `job_options.txt`: what becomes of each in a job, and what to write
//! instead of one that is pasted as a flag.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How an option of a job is handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioHandling {
    /// It has the same meaning here, or an equivalent.
    Translated,
    /// It does not change the load.
    Ignored,
    /// Nor does this one, but `as fio` uses it for its output.
    Carried,
    /// It would change the load. The job is refused, except for these values.
    Refused(Vec<&'static str>),
    /// It is no option of jobs.
    Hint,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioOption {
    /// Its names; the first one stands for all.
    pub names: Vec<&'static str>,
    /// How a job with it is handled.
    pub handling: FioHandling,
    /// The translation or the reason; for refusals the rest of a sentence that begins with the
    /// option.
    pub text: &'static str,
    /// What to write instead of the flag, as the rest of such a sentence.
    pub hint: Option<&'static str>,
    /// Whether it takes a value only behind `=`, under each of its names.
    pub is_switch: bool,
}

impl FioOption {
    /// The first of its names.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

const TABLE: &str = include_str!("job_options.txt");
/// The hint `job`.
const JOB_HINT: &str = "is a job option; write the whole fio command after run: diskproof run fio \
                        --name=t …";

/// All options, in the order of the table.
pub static FIO_OPTIONS: LazyLock<Vec<FioOption>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(options_of_line).collect()
});

/// A map, because a file may have a million settings.
static BY_NAME: LazyLock<HashMap<&'static str, &'static FioOption>> = LazyLock::new(|| {
    let of_jobs = FIO_OPTIONS
        .iter()
        .filter(|one| one.handling != FioHandling::Hint);
    of_jobs
        .flat_map(|one| one.names.iter().map(move |name| (*name, one)))
        .collect()
});

fn options_of_line(line: &'static str) -> impl Iterator<Item = FioOption> {
    let mut parts = line.split('|').map(str::trim);
    let mut next = || parts.next().unwrap_or_default();
    let (names, handling, text, hint) = (next(), next(), next(), next());
    let handling = match handling.split_once(' ').unwrap_or((handling, "")) {
        ("translated", _) => FioHandling::Translated,
        ("ignored", "carried") => FioHandling::Carried,
        ("ignored", _) => FioHandling::Ignored,
        ("hint", _) => FioHandling::Hint,
        (_, harmless) => FioHandling::Refused(harmless.split_whitespace().collect()),
    };
    let hint = match (&handling, hint) {
        (FioHandling::Refused(_) | FioHandling::Hint, _) => Some(text),
        (_, "job") => Some(JOB_HINT),
        (_, hint) => Some(hint).filter(|hint| !hint.is_empty()),
    };
    names.split_whitespace().map(move |names| FioOption {
        names: names
            .split('/')
            .map(|name| name.trim_end_matches('!'))
            .collect(),
        handling: handling.clone(),
        text,
        hint,
        is_switch: names.ends_with('!'),
    })
}

/// The option of a job with this name.
pub fn fio_option(name: &str) -> Option<&'static FioOption> {
    BY_NAME.get(name).copied()
}

/// The hint for a flag, as the rest of a sentence that begins with it. That of the flag itself
/// comes before that of the option whose alias it is.
pub fn fio_hint(name: &str) -> Option<&'static str> {
    let mut named = FIO_OPTIONS.iter().filter(|one| one.names.contains(&name));
    named.find_map(|one| one.hint)
}

/// Whether a word is an option of a job that takes a value only behind `=`.
pub(super) fn is_switch(name: &str) -> bool {
    fio_option(name).is_some_and(|option| option.is_switch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_those_of_fio() {
        let switches = FIO_OPTIONS.iter().filter(|option| option.is_switch);
        let names: Vec<&str> = switches.map(FioOption::name).collect();
        let wanted = [
            "time_based",
            "stonewall",
            "exitall",
            "norandommap",
            "verify_only",
            "zero_buffers",
            "refill_buffers",
            "thread",
            "group_reporting",
            "new_group",
            "exitall_on_error",
            "bs_unaligned",
        ];
        assert_eq!(names, wanted);
        assert!(is_switch("wait_for_previous") && !is_switch("rw") && !is_switch("nonsense"));
    }
}
