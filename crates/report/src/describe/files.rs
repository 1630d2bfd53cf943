//! Operations on many small files in words, for every page.

use crate::labels;
use crate::text::{glue, joined};
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::files::{CacheState, FileCaches, FileOperation, FileSync, FilesPlan};
use diskproof_model::record::{FileStepRow, FilesRecord, Record};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent,
};

/// Columns of the table.
const COLUMNS: [&str; 8] = [
    "step", "files/s", "± 95 %", "mean", "p50", "p99", "max", "CPU",
];

/// From this share of the time on, fsync decides a rate.
const SYNC_DECIDES: f64 = 0.5;

/// The table of the steps, and what they mean.
pub(crate) fn blocks(record: &Record, files: &FilesRecord) -> Vec<Block> {
    let mut blocks = vec![if files.steps.is_empty() {
        Block::text(Tone::Error, "nothing was measured")
    } else {
        let rows = files.steps.iter().map(row).collect();
        Block::table("Operations on many small files", COLUMNS, rows)
    }];
    if let Some(plan) = record.plan.files() {
        let left = files.leftover_files.map(|count| counted(count, "file"));
        let leftover = left.map(|count| format!("removed {count} left by a killed run"));
        blocks.extend(Block::facts([
            ("files", Some(files_text(plan))),
            ("reached", short_text(plan, files)),
            ("caches", caches_text(plan, files)),
            ("disk", disk_text(files)),
            ("fsync", sync_text(files)),
            ("leftover", leftover),
        ]));
    }
    blocks
}

fn row(of: &FileStepRow) -> Vec<String> {
    let figures = &of.figures;
    let name = of.data.step.name();
    if of.data.op.count == 0 {
        let mut cells = vec![labels::UNKNOWN.to_owned(); COLUMNS.len()];
        cells[0] = name;
        return cells;
    }
    let (rate, latency) = (&figures.iops, &figures.latency);
    vec![
        name,
        rounded(rate.value, rate.half_width_95),
        labels::interval(rate),
        format_latency(latency.mean.round() as u64),
        labels::latency(latency.p50),
        labels::latency(latency.p99),
        format_latency(latency.max),
        format!("{:.0} %", of.cpu_share() * 100.0),
    ]
}

/// The files and what was done with them, in one line.
pub(crate) fn files_text(plan: &FilesPlan) -> String {
    let size = match (plan.file_bytes_min, plan.file_bytes_max) {
        (0, 0) => "empty".to_owned(),
        (min, max) if min == max => format!("of {}", glue(&format_bytes(min))),
        (min, max) => {
            let [min, max] = [min, max].map(|bytes| glue(&format_bytes(bytes)));
            format!("of {min} to {max}")
        }
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

/// What a plan does to the caches.
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

/// Whether memory may have answered; `None` where nothing was looked up.
fn caches_text(plan: &FilesPlan, files: &FilesRecord) -> Option<String> {
    let looks_up = |of: &FileStepRow| {
        matches!(
            of.data.step.operation,
            FileOperation::Stat | FileOperation::Read
        )
    };
    if !files.steps.iter().any(looks_up) {
        return None;
    }
    let caches = &files.caches;
    let failed = caches.failed.as_deref();
    let content = match (caches.pages, failed) {
        _ if plan.file_bytes_max == 0 => None,
        (CacheState::Dropped, _) => Some("the content of the files was dropped before each read"),
        (CacheState::Kept, Some(_)) => {
            Some("dropping the content failed, so read may come from memory")
        }
        (CacheState::Kept, None) => {
            Some("the content of the files was not dropped: read may come from memory")
        }
    };
    let names = match (caches.names, plan.caches) {
        (CacheState::Dropped, _) => "all caches of the machine were emptied before stat and read",
        (CacheState::Kept, FileCaches::DropAll) => "the caches of the machine were not emptied",
        (CacheState::Kept, FileCaches::DropOwnPages) => {
            "names and inodes stayed cached, so stat and opening a file may be answered from \
             memory (--drop-caches)"
        }
    };
    let why = failed.map(|why| format!("({why})"));
    let parts = [content.map(str::to_owned), Some(names.to_owned()), why];
    joined(parts.into_iter().flatten(), "; ")
}

/// What the disk read while files were read, against their bytes; `None` where it is not known.
fn disk_text(files: &FilesRecord) -> Option<String> {
    let is_read =
        |of: &&FileStepRow| of.data.step.operation == FileOperation::Read && of.data.op.bytes > 0;
    let parts = files.steps.iter().filter(is_read).filter_map(|of| {
        let read = glue(&format_bytes(of.data.disk?.read_bytes));
        let (name, content) = (of.data.step.name(), glue(&format_bytes(of.data.op.bytes)));
        Some(format!(
            "{name}: the disk read {read} for {content} of content"
        ))
    });
    joined(parts, "; ")
}

/// The operations most of whose time is fsync; `None` where there is none.
fn sync_text(files: &FilesRecord) -> Option<String> {
    let percent = |share: f64| glue(&format_percent(share));
    let parts = FileOperation::ALL.into_iter().filter_map(|operation| {
        let share = files.sync_share(operation)?;
        let whole = share.file + share.directory;
        let of_what = match (share.file > 0.0, share.directory > 0.0) {
            (true, true) => {
                let (file, directory) = (percent(share.file), percent(share.directory));
                format!(" (files {file}, directory {directory})")
            }
            (true, false) => " of the file".to_owned(),
            _ => " of the directory".to_owned(),
        };
        let (percent, name) = (percent(whole), operation.as_str());
        (whole >= SYNC_DECIDES)
            .then(|| format!("{percent} of the time of {name} is fsync{of_what}"))
    });
    Some(format!(
        "{}: the disk's flush decides these rates",
        joined(parts, ", ")?
    ))
}

/// Steps that did not reach all files, with the reason: their time was over, or an error.
fn short_text(plan: &FilesPlan, files: &FilesRecord) -> Option<String> {
    let planned = plan.count.saturating_mul(u64::from(plan.rounds));
    let short = files.steps.iter().filter(|of| of.data.op.count < planned);
    let parts = short.map(|of| {
        let mut text = format!("{} {}", of.data.step.name(), of.data.op.count);
        for (errno, count) in &of.data.op.errors {
            text += &format!(", {count} × {errno}");
        }
        text
    });
    let (parts, time) = (joined(parts, ", ")?, glue(&format_duration(plan.time_ns)));
    Some(format!(
        "of {planned} files in all rounds, within {time}: {parts}"
    ))
}
