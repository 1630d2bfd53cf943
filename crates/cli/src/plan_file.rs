//! Plan files: several workloads in one TOML file, each with the keys that `run` has as flags.
//! Reads the text only; what it means for a target is judged where workloads are made.

use crate::workload::{Bytes, WorkloadFlags, answer_to_fio, written};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use toml::Spanned;

/// The largest plan file: thousands of workloads with every key. What is larger is no plan, and
/// reading it would take memory and time.
pub const PLAN_FILE_BYTES_MAX: u64 = 1 << 20;
/// A day of one minute each; more would never be read by anybody.
const WORKLOADS_MAX: usize = 1440;
/// What is quoted of a wrong line, so that what is said about it is still seen.
const QUOTED_CHARS_MAX: usize = 60;

/// What stands in a plan file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanFile {
    /// The author's words.
    pub note: Option<String>,
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// Size of the scratch file.
    pub size: Option<Bytes>,
    /// What to measure.
    pub targets: Vec<PathBuf>,
    /// The workloads, the defaults filled in.
    pub workloads: Vec<Planned>,
}

/// A workload and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Line of its `[[workload]]`, from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// What is said about it.
    pub flags: WorkloadFlags,
}

/// Why a plan file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct PlanFileError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, with the key, and what to do.
    pub text: String,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    note: Option<String>,
    seed: Option<u64>,
    #[serde(default, deserialize_with = "written")]
    size: Option<Bytes>,
    #[serde(default)]
    targets: Vec<PathBuf>,
    #[serde(default)]
    defaults: Option<Spanned<WorkloadFlags>>,
    #[serde(default)]
    workload: Vec<Spanned<WorkloadFlags>>,
}

impl PlanFile {
    /// Reads the text of a plan file.
    pub fn parse(text: &str) -> Result<Self, PlanFileError> {
        let document: Document = toml::from_str(text).map_err(|error| refused(text, &error))?;
        if let Some(first_too_many) = document.workload.get(WORKLOADS_MAX) {
            let told = format!(
                "there are {} workloads; a plan has at most {WORKLOADS_MAX}",
                document.workload.len()
            );
            return Err(PlanFileError {
                line: line_of(text, first_too_many.span().start),
                text: told,
            });
        }
        let line = |spanned: &Spanned<WorkloadFlags>| line_of(text, spanned.span().start);
        let defaults = match document.defaults {
            Some(defaults) if defaults.get_ref().name.is_some() => {
                let told = "name under [defaults] would be the name of every workload: give each \
                            [[workload]] its own"
                    .to_owned();
                return Err(PlanFileError {
                    line: line(&defaults),
                    text: told,
                });
            }
            Some(defaults) if defaults.get_ref().together.is_some() => {
                let told = "together under [defaults] would leave nothing that could start: write \
                            it in each [[workload]] that runs at the same time as the one before \
                            it";
                return Err(PlanFileError {
                    line: line(&defaults),
                    text: told.to_owned(),
                });
            }
            Some(defaults) => defaults.into_inner(),
            None => WorkloadFlags::default(),
        };
        let (mut workloads, mut names) = (Vec::new(), BTreeSet::new());
        for workload in document.workload {
            let line = line(&workload);
            let flags = workload.into_inner();
            let Some(name) = flags.name.as_ref().map(|name| name.0.clone()) else {
                return Err(PlanFileError {
                    line,
                    text: "this [[workload]] has no name: add such as name = \"random-reads\""
                        .to_owned(),
                });
            };
            if !names.insert(name.clone()) {
                return Err(PlanFileError {
                    line,
                    text: format!(
                        "there are two workloads named '{name}': give each a name of its own"
                    ),
                });
            }
            if workloads.is_empty() && flags.together == Some(true) {
                let told = format!(
                    "there is no workload before '{name}' to run together with: leave its \
                     together out, or put another one before it"
                );
                return Err(PlanFileError { line, text: told });
            }
            workloads.push(Planned {
                line,
                name,
                flags: flags.or(&defaults),
            });
        }
        if workloads.is_empty() {
            return Err(PlanFileError {
                line: 1,
                text: "there is no workload in it: add [[workload]] with a name and such as rw = \
                       \"randread\""
                    .to_owned(),
            });
        }
        Ok(Self {
            note: document.note,
            seed: document.seed,
            size: document.size,
            targets: document.targets,
            workloads,
        })
    }
}

/// The parser's own words, with the line that they are about.
fn refused(text: &str, error: &toml::de::Error) -> PlanFileError {
    let start = error.span().map_or(0, |span| span.start);
    let line = line_of(text, start);
    let source = text.lines().nth(line - 1).unwrap_or_default().trim();
    let message = error.message().trim().replace('\n', "; ");
    let unknown = message
        .strip_prefix("unknown field `")
        .and_then(|rest| rest.split('`').next());
    let message = match unknown.and_then(|key| Some((key, answer_to_fio(key)?))) {
        Some((key, answer)) => format!("fio's '{key}' {answer}"),
        None => message,
    };
    let mut quoted: String = source.chars().take(QUOTED_CHARS_MAX).collect();
    if quoted.len() < source.len() {
        quoted.push('…');
    }
    let quoted = if quoted.is_empty() {
        quoted
    } else {
        format!("{quoted}: ")
    };
    PlanFileError {
        line,
        text: format!("{quoted}{message}"),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        PlanFile::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_plan_is_read_with_its_defaults() {
        let plan = PlanFile::parse(
            "note = \"n\"\nseed = 7\nsize = \"2GiB\"\ntargets = [\"/a\", \"/b\"]\n[defaults]\nbs \
             = \"8k\"\niodepth = 32\nzones = \"50/50:50/50\"\n[[workload]]\nname = \
             \"one\"\nbssplit = \"4k/50:8k/50\"\nrwmixread = 33.3\n\n[[workload]]\nname = \
             \"two\"\nrw = \"read\"\nbackward = true\n",
        )
        .unwrap();
        assert_eq!(
            (plan.note.as_deref(), plan.seed, plan.size.map(|s| s.0)),
            (Some("n"), Some(7), Some(2 << 30))
        );
        assert_eq!(plan.targets, [PathBuf::from("/a"), PathBuf::from("/b")]);
        let [one, two] = &plan.workloads[..] else {
            panic!("{plan:?}")
        };
        assert_eq!(
            (one.line, one.name.as_str(), two.line, two.name.as_str()),
            (9, "one", 14, "two")
        );
        // What a workload says sets aside the defaults that exclude it.
        assert!(one.flags.bs.is_none() && one.flags.bssplit.is_some() && one.flags.zones.is_some());
        assert!(
            two.flags.bs.is_some() && two.flags.zones.is_none() && two.flags.backward == Some(true)
        );
        assert_eq!(
            (
                one.flags.depth.map(|c| c.0),
                one.flags.rwmixread.map(|r| r.0)
            ),
            (Some(32), Some(333))
        );
    }

    #[test]
    fn errors_name_the_line_and_the_key() {
        let cases = [
            ("", "line 1: there is no workload"),
            ("note = 1\n", "line 1: note = 1: invalid type"),
            ("seed = -1\n", "line 1: seed = -1: "),
            (
                "[[workload]]\nname = \"a\"\nbs = \"8x\"\n",
                "line 3: bs = \"8x\": '8x' is not a size",
            ),
            (
                "[[workload]]\nname = \"a\"\nbs = true\n",
                "line 3: bs = true: invalid type: boolean `true`, expected text in quotes or a \
                 number",
            ),
            (
                "[[workload]]\nname = \"a\"\nblock = \"8k\"\n",
                "line 3: block = \"8k\": unknown field `block`, expected one of `name`, \
                 `readwrite`, `rw`",
            ),
            (
                "[[workload]]\nname = \"a b\"\n",
                "line 2: name = \"a b\": 'a b' is not a name",
            ),
            (
                "[[workload]]\nname = \"a\"\n[[workload]]\nrw = \"read\"\n",
                "line 3: this [[workload]] has no name",
            ),
            (
                "[[workload]]\nname = \"a\"\n[[workload]]\nname = \"a\"\n",
                "line 3: there are two workloads named 'a'",
            ),
            (
                "[defaults]\nname = \"a\"\n[[workload]]\nname = \"b\"\n",
                "line 1: name under [defaults]",
            ),
            (
                "[workload]\nname = \"a\"\n",
                "line 1: [workload]: invalid type: map, expected a sequence",
            ),
            (
                "[[workload]]\nname = \"a\"\nengine = \"x\"\n",
                "line 3: engine = \"x\": 'x' is not an engine",
            ),
            ("workload = [\n", "line 1: "),
            (
                "note = \"n\"\n[[workload]]\nname = \"a\"\ntogether = true\n",
                "line 2: there is no workload before 'a' to run together with",
            ),
            (
                "[defaults]\ntogether = true\n[[workload]]\nname = \"b\"\n",
                "line 1: together under [defaults]",
            ),
            (
                "[[workload]]\nname = \"a\"\n[[workload]]\nname = \"b\"\ntogether = \"a\"\n",
                "line 5: together = \"a\": invalid type: string \"a\", expected a boolean",
            ),
            (
                "[[workload]]\nname = \"a\"\ndepth = 1979-05-27\n",
                "line 3: depth = 1979-05-27: invalid type",
            ),
            (
                "[[workload]]\nname = \"a\"\ndirect = 1\n",
                "line 3: direct = 1: fio's 'direct' is the default; for direct=0 use buffered",
            ),
        ];
        for (text, part) in cases {
            let error = error(text);
            assert!(error.starts_with(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_what_is_too_much_is_refused() {
        let long = error(&"x".repeat(10_000));
        assert!(
            long.contains(&format!("line 1: {}…: ", "x".repeat(60))) && long.chars().count() < 400,
            "{long}"
        );
        let plan = |count: usize| {
            (0..count)
                .map(|i| format!("[[workload]]\nname = \"w{i}\"\n"))
                .collect::<String>()
        };
        assert_eq!(
            error(&plan(1441)),
            "line 2881: there are 1441 workloads; a plan has at most 1440"
        );
        assert_eq!(PlanFile::parse(&plan(1440)).unwrap().workloads.len(), 1440);
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC*", key in "[a-z-]{1,12}", value in "[ -~]{0,20}") {
            let _ = PlanFile::parse(&text);
            let _ = PlanFile::parse(&format!("{key} = {value}"));
            let _ = PlanFile::parse(&format!("[[workload]]\nname = \"a\"\n{key} = {value}\n"));
            for key in ["bs", "bssplit", "span", "zones", "distribution", "rate", "precision", "depth"] {
                let _ = PlanFile::parse(&format!("[[workload]]\nname = \"a\"\n{key} = {value:?}\n"));
            }
        }
    }
}
