//! Prints, for a tool whose target has several files, which blocks of which file were read back
//! wrong. The record knows their places among all files together; a user looks for them in one
//! file.

use crate::plan_file::KeptFile;
use crate::tool_lines::SharedPrinter;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use std::fmt::Write as _;
use std::path::Path;

/// The number of blocks of a workload that are named. Chosen to keep the output of a tool short;
/// the record names up to a hundred.
const NAMED_MAX: usize = 3;

/// A line for each of the first damaged blocks, and one with their number. Empty where no target
/// with several files has any.
pub(super) fn damaged_block_lines(tool: &SharedPrinter, record: &Record) -> String {
    let mut text = String::new();
    for row in &record.measurements {
        if let Some(Some(kept)) = tool.kept_files.get(row.data.target)
            && kept.names.len() > 1
        {
            text.push_str(&lines_of_row(tool.name, row, kept, &record.plan));
        }
    }
    text
}

fn lines_of_row(tool: &str, row: &Row, kept: &KeptFile, plan: &Plan) -> String {
    let mut text = String::new();
    let index = row.data.target;
    let (Some(verify), Some(target), Some(target_bytes)) = (
        &row.data.verify,
        plan.targets.get(index),
        plan.scratch_bytes_on(index),
    ) else {
        return text;
    };
    for block in verify.bad.iter().take(NAMED_MAX) {
        let place = kept.place(block.offset_bytes, target_bytes);
        let file = KeptFile::path_of(place.name, Path::new(target));
        let _ = writeln!(
            text,
            "{tool}: verify failed at file {} offset {}: {}",
            file.display(),
            place.offset,
            block.why
        );
    }
    if !text.is_empty() {
        let _ = writeln!(
            text,
            "{tool}: {} of {} blocks were read back wrong",
            verify.wrong_blocks(),
            verify.blocks
        );
    }
    text
}
