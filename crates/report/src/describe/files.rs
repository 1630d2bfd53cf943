//! Operations on many small files in words: a table of the steps, and what they mean.

use crate::labels;
use crate::text::{glue, joined};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::files::{CacheState, FileCaches, FileOperation, FileSync, FilesPlan};
use diskproof_model::files_record::{FileStepRow, FilesRecord};
use diskproof_model::record::Record;
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent,
};

/// Columns of the table.
const COLUMNS: [&str; 8] = [
    "step", "files/s", "± 95 %", "mean", "p50", "p99", "max", "CPU",
];

/// From this share of the time on, fsync decides a rate: it then takes more time than all else.
const SYNC_DECIDES: f64 = 0.5;

/// Describes the steps: a table, then facts on what they did and what answered them.
pub(crate) fn blocks(record: &Record, files: &FilesRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    if files.steps.is_empty() {
        blocks.push(Block::text(Tone::Error, "nothing was measured"));
    } else {
        let rows = files.steps.iter().map(step_row).collect();
        let caption = "Operations on many small files";
        blocks.push(Block::table(caption, COLUMNS, rows));
    }
    if let Some(plan) = record.plan.files() {
        blocks.extend(Block::facts([
            ("files", Some(files_text(plan))),
            ("reached", unreached_text(plan, files)),
            ("caches", caches_text(plan, files)),
            ("disk", disk_text(files)),
            ("fsync", sync_text(files)),
            ("leftover", leftover_text(files)),
        ]));
    }
    blocks
}

fn leftover_text(files: &FilesRecord) -> Option<String> {
    let count = counted(files.leftover_files?, "file");
    Some(format!("removed {count} left by a killed run"))
}

fn step_row(row: &FileStepRow) -> Vec<String> {
    let name = row.data.step.name();
    if row.data.op.count == 0 {
        let mut cells = vec![labels::UNKNOWN.to_owned(); COLUMNS.len()];
        cells[0] = name;
        return cells;
    }
    let rate = &row.figures.iops;
    let latency = &row.figures.latency;
    vec![
        name,
        rounded(rate.value, rate.half_width_95),
        labels::interval(rate),
        format_latency(latency.mean.round() as u64),
        labels::latency(latency.p50),
        labels::latency(latency.p99),
        format_latency(latency.max),
        format!("{:.0} %", row.cpu_share() * 100.0),
    ]
}

/// `1000 files of 4 KiB in one directory, 4 threads, 1 round; nothing is synced`.
pub(crate) fn files_text(plan: &FilesPlan) -> String {
    let size = match (plan.file_bytes_min, plan.file_bytes_max) {
        (0, 0) => "empty".to_owned(),
        (min, max) if min == max => format!("of {}", glue(&format_bytes(min))),
        (min, max) => format!(
            "of {} to {}",
            glue(&format_bytes(min)),
            glue(&format_bytes(max))
        ),
    };
    let directories = match plan.directories {
        1 => "one directory".to_owned(),
        n => format!("{n} directories"),
    };
    let sync = match plan.sync {
        FileSync::None => "nothing is synced",
        FileSync::File => "each new file is synced",
        FileSync::Directory => "the directory is synced after each change",
        FileSync::Both => "each new file and each change of the directory are synced",
    };
    format!(
        "{} {size} in {directories}, {}, {}; {sync}",
        glue(&counted(plan.count, "file")),
        glue(&counted(u64::from(plan.threads), "thread")),
        glue(&counted(u64::from(plan.rounds), "round")),
    )
}

/// Says what a plan does to the caches.
pub(crate) fn planned_caches(caches: FileCaches) -> &'static str {
    match caches {
        FileCaches::DropOwnPages => {
            "the content of the files is dropped from the page cache before it is read"
        }
        FileCaches::DropAll => {
            "all caches of the machine are emptied before stat and read; other programs slow down"
        }
    }
}

/// Says whether memory may have answered; `None` where no step looked up files or read them.
fn caches_text(plan: &FilesPlan, files: &FilesRecord) -> Option<String> {
    if !files.steps.iter().any(may_be_answered_by_caches) {
        return None;
    }
    let caches = &files.caches;
    let mut parts = Vec::new();
    if plan.file_bytes_max > 0 {
        let content = match (caches.pages, &caches.failed) {
            (CacheState::Dropped, _) => "the content of the files was dropped before each read",
            (CacheState::Kept, Some(_)) => {
                "dropping the content failed, so read may come from memory"
            }
            (CacheState::Kept, None) => {
                "the content of the files was not dropped: read may come from memory"
            }
        };
        parts.push(content.to_owned());
    }
    let names = match (caches.names, plan.caches) {
        (CacheState::Dropped, _) => "all caches of the machine were emptied before stat and read",
        (CacheState::Kept, FileCaches::DropAll) => "the caches of the machine were not emptied",
        (CacheState::Kept, FileCaches::DropOwnPages) => {
            "names and inodes stayed cached, so stat and opening a file may be answered from \
             memory (--drop-caches)"
        }
    };
    parts.push(names.to_owned());
    if let Some(why) = &caches.failed {
        parts.push(format!("({why})"));
    }
    Some(parts.join("; "))
}

fn may_be_answered_by_caches(row: &FileStepRow) -> bool {
    matches!(
        row.data.step.operation,
        FileOperation::Stat | FileOperation::Read
    )
}

/// Compares what the disk read with the bytes of the files; `None` where no step that read files
/// knows it.
fn disk_text(files: &FilesRecord) -> Option<String> {
    let mut parts = Vec::new();
    for row in &files.steps {
        let step = &row.data;
        if step.step.operation != FileOperation::Read || step.op.bytes == 0 {
            continue;
        }
        if let Some(disk) = step.disk {
            let name = step.step.name();
            let read = glue(&format_bytes(disk.read_bytes));
            let content = glue(&format_bytes(step.op.bytes));
            parts.push(format!(
                "{name}: the disk read {read} for {content} of content"
            ));
        }
    }
    joined(parts, "; ")
}

/// Names the operations most of whose time is fsync; `None` without any.
fn sync_text(files: &FilesRecord) -> Option<String> {
    let mut parts = Vec::new();
    for operation in FileOperation::ALL {
        let Some(share) = files.sync_share(operation) else {
            continue;
        };
        let whole = share.file + share.directory;
        if whole < SYNC_DECIDES {
            continue;
        }
        let synced = if share.file > 0.0 && share.directory > 0.0 {
            let file = glue(&format_percent(share.file));
            let directory = glue(&format_percent(share.directory));
            format!(" (files {file}, directory {directory})")
        } else if share.file > 0.0 {
            " of the file".to_owned()
        } else {
            " of the directory".to_owned()
        };
        let percent = glue(&format_percent(whole));
        let name = operation.as_str();
        parts.push(format!("{percent} of the time of {name} is fsync{synced}"));
    }
    let rates = joined(parts, ", ")?;
    Some(format!("{rates}: the disk's flush decides these rates"))
}

/// Names the steps that did not reach all files, with their errors. `None` where all did.
fn unreached_text(plan: &FilesPlan, files: &FilesRecord) -> Option<String> {
    let planned = plan.count.saturating_mul(u64::from(plan.rounds));
    let mut parts = Vec::new();
    for row in &files.steps {
        let op = &row.data.op;
        if op.count >= planned {
            continue;
        }
        let mut text = format!("{} {}", row.data.step.name(), op.count);
        for (errno, count) in &op.errors {
            text.push_str(&format!(", {count} × {errno}"));
        }
        parts.push(text);
    }
    let unreached_steps = joined(parts, ", ")?;
    let time = glue(&format_duration(plan.time_ns));
    Some(format!(
        "of {planned} files in all rounds, within {time}: {unreached_steps}"
    ))
}
