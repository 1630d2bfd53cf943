//! Options of fio that change nothing here, so that a pasted command of fio runs: accepted, hidden
//! from help, and named in one note. Other options of fio are hints.

use std::path::PathBuf;

/// The options. A value of 0 asks for what is not the default, and is an error.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FioFlags {
    /// Workloads run until their time is over.
    #[arg(long = "time_based", hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_switch)]
    pub time_based: Option<bool>,
    /// Figures cover all jobs.
    #[arg(long = "group_reporting", hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_switch)]
    pub group_reporting: Option<bool>,
    /// Workers are threads.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse_switch)]
    pub thread: Option<bool>,
    /// Requests bypass the page cache.
    #[arg(long, hide = true, value_name = "0|1", value_parser = parse_switch)]
    pub direct: Option<bool>,
    /// The target.
    #[arg(long, hide = true, alias = "directory", value_name = "TARGET")]
    pub filename: Option<PathBuf>,
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("write 1 or 0".to_owned()),
    }
}

impl FioFlags {
    /// The note that names what changes nothing; `None` without such an option.
    pub(crate) fn note(&self) -> Result<Option<String>, String> {
        let amount = "use --bytes or --ops to limit the amount";
        let figures = "figures always cover all jobs; use a plan file for separate figures";
        let cache = "use --buffered, which empties the page cache, or --cached";
        let switches = [
            ("--time_based", self.time_based, amount),
            ("--group_reporting", self.group_reporting, figures),
            ("--thread", self.thread, "workers are always threads"),
            ("--direct", self.direct, cache),
        ];
        let mut ignored = Vec::new();
        for (flag, value, instead) in switches {
            match value {
                None => {}
                Some(true) => ignored.push(flag),
                Some(false) => return Err(format!("{flag}=0: {instead}")),
            }
        }
        Ok(match ignored.as_slice() {
            [] => None,
            [one] => Some(format!("{one} is the default and changes nothing")),
            several => Some(format!(
                "{} are the default and change nothing",
                several.join(", ")
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MeasuringFlags;
    use crate::workload::{WorkloadAxes, WorkloadFlags};
    use clap::{Args as _, Parser as _};
    use diskproof_compat::{FIO_OPTIONS, fio_hint};
    use std::collections::BTreeSet;

    #[test]
    fn fio_hints_cover_no_own_flag() {
        let run = WorkloadFlags::augment_args(clap::Command::new("run"));
        let run = MeasuringFlags::augment_args(WorkloadAxes::augment_args(run));
        let ours: BTreeSet<&str> = run
            .get_arguments()
            .flat_map(|arg| arg.get_long_and_visible_aliases().unwrap_or_default())
            .collect();
        let hinted = FIO_OPTIONS.iter().filter(|option| option.hint.is_some());
        for name in hinted.flat_map(|option| &option.names) {
            assert!(!ours.contains(name), "{name} is a flag");
        }
        assert_eq!(
            (fio_hint("ba").is_some(), fio_hint("nonsense")),
            (true, None)
        );
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        fio: FioFlags,
        operands: Vec<String>,
    }

    fn line(words: &[&str]) -> Line {
        Line::try_parse_from(["run"].iter().chain(words)).unwrap()
    }

    #[test]
    fn options_without_effect_are_named_in_one_note() {
        let words = [
            "--time_based",
            "--group_reporting=1",
            "--direct=1",
            "--filename=/dev/sdb",
        ];
        let fio = line(&words).fio;
        let note = fio.note().unwrap().unwrap();
        assert_eq!(
            note,
            "--time_based, --group_reporting, --direct are the default and change nothing"
        );
        assert_eq!(fio.filename, Some(PathBuf::from("/dev/sdb")));
        assert_eq!(FioFlags::default().note(), Ok(None));
    }

    #[test]
    fn switches_leave_the_next_word_alone() {
        let line = line(&["--time_based", "disk", "--direct", "1"]);
        assert_eq!(line.operands, ["disk"]);
        assert_eq!(line.fio.direct, Some(true));
    }

    #[test]
    fn value_0_is_an_error_with_the_flag_to_use() {
        let error = line(&["--direct=0"]).fio.note().unwrap_err();
        assert!(error.starts_with("--direct=0: use --buffered"), "{error}");
    }
}
