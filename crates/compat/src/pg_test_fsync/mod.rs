//! pg_test_fsync of PostgreSQL.
//!
//! Arguments of pg_test_fsync to a plan.

mod print;
mod rows;
#[cfg(test)]
mod tests;

use crate::command::CommandLine;
use crate::drop_in::{DropIn, Started};
use crate::error::DropInError;
use crate::getopt::GivenArguments;
use crate::load::{DropInLoad, LoadTarget, PlanContext};
use crate::printer::ToolPrinter;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use print::FsyncPrinter;
use rows::{SEGMENT_BYTES, TestRow, rows};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The registry's line.
pub(crate) static DROP_IN: LazyLock<DropIn> =
    LazyLock::new(|| DropIn::read(include_str!("pg_test_fsync.txt"), start));

const DEFAULT_FILE: &str = "./pg_test_fsync.out";
const DEFAULT_SECONDS: u32 = 5;
const HINT: &str = "pg_test_fsync: hint: Try \"pg_test_fsync --help\" for more information.\n";
const OPEN_FILE: &str =
    "'write, fsync, close' and 'write, close, fsync' keep the file open, without open and close";

/// What the arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FsyncLoad {
    file: PathBuf,
    seconds: u32,
}

/// Reads the arguments.
fn start(arguments: &[String]) -> Result<Started, DropInError> {
    let command = CommandLine {
        after_option_error: HINT,
        ..CommandLine::new(DROP_IN.usage)
    };
    DROP_IN.start_load(arguments, command, read)
}

fn read(given: &GivenArguments) -> Result<FsyncLoad, String> {
    let with_hint = |text: &str| format!("error: {text}\n{}", HINT.trim_end());
    if let Some(first) = given.operands.first() {
        let text = format!("too many command-line arguments (first is \"{first}\")");
        return Err(with_hint(&text));
    }
    let seconds = given.read("s", |text| match text.trim_start().parse::<u32>() {
        Ok(0) => Err("error: --secs-per-test must be in range 1..4294967295".to_owned()),
        Ok(seconds) => Ok(seconds),
        Err(_) => Err(with_hint("invalid argument for option --secs-per-test")),
    })?;
    Ok(FsyncLoad {
        file: PathBuf::from(given.value("f").unwrap_or(DEFAULT_FILE)),
        seconds: seconds.unwrap_or(DEFAULT_SECONDS),
    })
}

impl FsyncLoad {
    fn rows(&self, target: &TargetIdentity) -> Vec<TestRow> {
        let sectors = target.layers.iter().map(|layer| layer.logical_block_bytes);
        rows(sectors.flatten().max().unwrap_or(0))
    }
}

impl DropInLoad for FsyncLoad {
    fn target(&self) -> LoadTarget {
        LoadTarget::directory_of(&self.file)
    }

    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError> {
        let rows = self.rows(context.target);
        let workloads = rows.iter().filter_map(|row| row.workload(self.seconds));
        let scratch_bytes = Some(SEGMENT_BYTES);
        Ok(DROP_IN.plan(context, scratch_bytes, workloads.collect()))
    }

    fn fills_scratch_file(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![OPEN_FILE.to_owned()];
        if self.file != Path::new(DEFAULT_FILE) {
            let file = self.file.display();
            let text = format!("the test file has no name; {file} is neither written nor removed");
            notes.insert(0, text);
        }
        notes
    }

    fn printer(&self, _plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter> {
        Box::new(FsyncPrinter {
            rows: self.rows(target),
            seconds: self.seconds,
            current: 0,
            has_gap: false,
        })
    }
}
