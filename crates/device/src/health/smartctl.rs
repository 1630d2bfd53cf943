//! Asks smartctl for the health of a disk. Does not know what the text means.

use crate::external_program::{NoAnswer, output_of};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What `smartctl --json -a -n standby NODE` prints. Its exit status says less than the text, which
/// holds it too.
pub(super) fn ask(program: &Path, node: &Path, retry: Duration) -> Result<String, NoAnswer> {
    let mut command = Command::new(program);
    // A disk asleep is left asleep: reading its health would start its motor.
    command.args(["--json", "-a", "-n", "standby"]).arg(node);
    output_of(command, retry)
}
