//! Arguments of pg_test_fsync to a plan.

use super::print::FsyncPrinter;
use super::rows::{SEGMENT_BYTES, TestRow, rows};
use crate::drop_in::{DropInOption, Started, Treatment};
use crate::error::DropInError;
use crate::getopt::{OptionForms, parse};
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::plan::plan_of;
use crate::printer::{ToolPrinter, ToolText};
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use std::path::{Path, PathBuf};

pub(super) const NAME: &str = "pg_test_fsync";
pub(super) const EMULATES: &str = "pg_test_fsync (PostgreSQL) 15";
const DEFAULT_FILE: &str = "./pg_test_fsync.out";
const DEFAULT_SECONDS: u32 = 5;
const HINT: &str = "pg_test_fsync: hint: Try \"pg_test_fsync --help\" for more information.\n";

pub(super) const OPTIONS: &[DropInOption] = &[
    DropInOption {
        short: "-f",
        long: "filename",
        value: "FILENAME",
        help: "Write in the directory of this file",
        treatment: Treatment::Carried,
    },
    DropInOption {
        short: "-s",
        long: "secs-per-test",
        value: "SECS-PER-TEST",
        help: "Run each test for this time",
        treatment: Treatment::Carried,
    },
    DropInOption {
        short: "-V",
        long: "version",
        value: "",
        help: "Print the version",
        treatment: Treatment::Carried,
    },
    DropInOption {
        short: "-?",
        long: "help",
        value: "",
        help: "Print the usage",
        treatment: Treatment::Carried,
    },
];

pub(super) const DIFFERENCES: &[&str] = &[
    "The test file has no name and vanishes even after kill -9. The file named by -f is not \
     touched; pg_test_fsync overwrites and removes it.",
    "The tests 'write, fsync, close' and 'write, close, fsync' keep the file open, so their \
     figures exclude open and close.",
    "If the filesystem has no direct I/O, a test that needs it prints n/a* instead of ending the \
     program.",
    "The history has the latency distribution of each test.",
];

const OPEN_FILE: &str =
    "'write, fsync, close' and 'write, close, fsync' keep the file open, without open and close";

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FsyncLoad {
    file: PathBuf,
    seconds: u32,
}

/// Reads the arguments.
pub(super) fn start(arguments: &[String]) -> Result<Started, DropInError> {
    match arguments.first().map(String::as_str) {
        Some("--help" | "-?") => {
            return Ok(Started::Text(ToolText {
                stdout: "Usage: pg_test_fsync [-f FILENAME] [-s SECS-PER-TEST]\n".to_owned(),
                stderr: String::new(),
            }));
        }
        Some("--version" | "-V") => return Ok(Started::version(EMULATES)),
        _ => {}
    }
    let given =
        parse(OPTIONS, arguments, OptionForms::Long).map_err(|error| usage(&error, true))?;
    if let Some(first) = given.operands.first() {
        let text = format!("error: too many command-line arguments (first is \"{first}\")");
        return Err(usage(&text, true));
    }
    let seconds = match given.value("s") {
        None => DEFAULT_SECONDS,
        Some(text) => match text.trim_start().parse::<u32>() {
            Ok(0) => {
                let text = "error: --secs-per-test must be in range 1..4294967295";
                return Err(usage(text, false));
            }
            Ok(seconds) => seconds,
            Err(_) => {
                let text = "error: invalid argument for option --secs-per-test";
                return Err(usage(text, true));
            }
        },
    };
    Ok(Started::Load(Box::new(FsyncLoad {
        file: PathBuf::from(given.value("f").unwrap_or(DEFAULT_FILE)),
        seconds,
    })))
}

fn usage(text: &str, has_hint: bool) -> DropInError {
    let hint = if has_hint { HINT } else { "" };
    DropInError::Usage(format!("pg_test_fsync: {text}\n{hint}"))
}

impl FsyncLoad {
    fn rows(&self, target: &TargetIdentity) -> Vec<TestRow> {
        let sectors = target.layers.iter().map(|layer| layer.logical_block_bytes);
        rows(sectors.flatten().max().unwrap_or(0))
    }
}

impl DropInLoad for FsyncLoad {
    fn target(&self) -> LoadTarget {
        let parent = self
            .file
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        LoadTarget::Existing(parent.unwrap_or(Path::new(".")).to_owned())
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let rows = self.rows(context.target);
        let workloads = rows.iter().filter_map(|row| row.workload(self.seconds));
        let workloads = workloads.collect();
        Ok(plan_of(NAME, context, Some(SEGMENT_BYTES), workloads))
    }

    fn fills_scratch_file(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        let is_named = self.file != Path::new(DEFAULT_FILE);
        let untouched = is_named.then(|| {
            let file = self.file.display();
            format!("the test file has no name; {file} is neither written nor removed")
        });
        untouched
            .into_iter()
            .chain([OPEN_FILE.to_owned()])
            .collect()
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FsyncPrinter::new(self.rows(target), self.seconds))
    }
}
