//! Reads records and comparisons from files, pipes and report pages, in bounded time. What a saved
//! record says of itself is not believed: it is judged again when it is loaded.

use crate::failure::Failure;
use crate::input_files::{InputRole, register, register_stdin};
use crate::stdio::eprint_line;
use diskproof_analysis::again::{self, Rejudged, judged_again};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_history::{History, StoredRun};
use diskproof_model::comparison::Comparison;
use diskproof_model::document::{AnyDocument, DocumentError};
use diskproof_model::fleet::FleetRecord;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Opening takes milliseconds, except for a pipe without a writer and a dead network filesystem.
const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// Reading the largest document, 64 MiB, over a slow network takes less.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// A pipe, as in `show <(diskproof check --json)`, answers when the run before it is over.
const PIPE_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The name of the threads that read documents, as ps(1) shows it.
const THREAD_NAME: &str = "diskproof-saved";

/// A saved document.
#[derive(Debug)]
pub(crate) enum SavedDocument {
    /// A run; from the history, with its printed result.
    Run(Box<StoredRun>),
    /// A comparison; only files hold these.
    Comparison(Box<Comparison>),
    /// A fleet of many hosts; only files hold these.
    Fleet(Box<FleetRecord>),
}

/// True if the reference looks like a file.
pub(super) fn is_file(reference: &str) -> bool {
    reference.contains('/') || reference.ends_with(".json") || reference.ends_with(".html")
}

/// The document in a file or on stdin (`-`); `None` when `reference` does not look like a file.
pub(super) fn from_file(reference: &str) -> Result<Option<SavedDocument>, Failure> {
    let read = if reference == "-" {
        register_stdin();
        // The program before the pipe decides how long this takes.
        read_up_to_max(std::io::stdin().lock())
    } else if is_file(reference) {
        read_document(Path::new(reference))
    } else {
        return Ok(None);
    };
    let text = read.map_err(|error| Failure::Usage(format!("cannot read {reference}: {error}")))?;
    match parse(&text) {
        Ok(AnyDocument::Record(record)) => {
            let stored = StoredRun {
                record: *record,
                page: None,
                label: None,
            };
            let run = judged(stored, reference);
            Ok(Some(SavedDocument::Run(Box::new(run))))
        }
        Ok(AnyDocument::Comparison(comparison)) => Ok(Some(SavedDocument::Comparison(comparison))),
        Ok(AnyDocument::Fleet(fleet)) => Ok(Some(SavedDocument::Fleet(fleet))),
        Err(why) => Err(Failure::Usage(format!("{reference}: {why}"))),
    }
}

/// Reads a file or a named pipe, which no output replaces, in bounded time: a pipe without a writer
/// and a network filesystem without a server never answer.
pub(crate) fn read_document(path: &Path) -> io::Result<String> {
    let opened = open_document(path)?;
    let limit = if opened.metadata()?.is_file() {
        READ_LIMIT
    } else {
        PIPE_LIMIT
    };
    let file = Arc::new(opened);
    within(limit, move || read_up_to_max(&*file))
}

/// Opens a file or a named pipe, which no output replaces, in bounded time.
pub(crate) fn open_document(path: &Path) -> io::Result<File> {
    let name = path.to_owned();
    within(OPEN_LIMIT, move || {
        register(&name, InputRole::Document);
        File::open(name)
    })
}

/// The answer of a filesystem about names, which may never come.
pub(crate) fn find_within_limit<T: Send + 'static>(
    find: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    within(OPEN_LIMIT, find)
}

/// The result of an operation that may never return, within this time.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match Deferred::start_or_run(THREAD_NAME, work).wait(limit) {
        Waited::Done(result) => result,
        Waited::TimedOut(_) | Waited::Lost => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", limit.as_secs()),
        )),
    }
}

/// Reads text up to the limit of a document: a device such as /dev/zero never ends.
fn read_up_to_max(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    let bytes_max = DOCUMENT_BYTES_MAX as u64;
    if from.take(bytes_max + 1).read_to_end(&mut bytes)? as u64 > bytes_max {
        return Err(io::Error::other(DocumentError::TooLarge));
    }
    if let Some(why) = compressed(&bytes) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    String::from_utf8(bytes).map_err(|_| {
        let why = "it is no text (not valid UTF-8), and so no document of diskproof";
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

/// The reason why a file that begins with these bytes cannot be read; `None` where it is not
/// compressed.
pub(crate) fn compressed(start: &[u8]) -> Option<String> {
    for (magic, program) in COMPRESSIONS {
        if start.starts_with(magic) {
            return Some(format!(
                "it is compressed; unpack it first, with {program} -d"
            ));
        }
    }
    None
}

/// The first bytes of compressed files (RFC 1952, RFC 8878, the formats of xz and bzip2), and the
/// program that unpacks each.
const COMPRESSIONS: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
];

/// Reads a record or comparison from JSON or from a report page.
fn parse(text: &str) -> Result<AnyDocument, String> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let document = if start.starts_with('<') {
        let json = diskproof_report::html::page_json(text).map_err(|error| error.to_string())?;
        AnyDocument::from_json(&json)
    } else if is_array(start) {
        return Err(
            "this is a JSON array, and not one diskproof record; save each of its elements \
                    as a file of its own (jq '.[0]', jq '.[1]', …)"
                .to_owned(),
        );
    } else {
        AnyDocument::from_json(json_of_log(start))
    };
    document.map_err(|error| format!("{error}{}", error.remedy()))
}

/// True for a whole JSON array.
fn is_array(text: &str) -> bool {
    text.starts_with('[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The JSON object in a log that holds stdout and stderr, such as that of a container: progress and
/// notes stand on lines before and after it. Other text is returned as it is.
fn json_of_log(text: &str) -> &str {
    if text.starts_with('[') {
        // Cut behind its last object, it would look truncated.
        return text;
    }
    let from_object = match text.find("\n{") {
        Some(line_end) if !text.starts_with('{') => &text[line_end + 1..],
        _ => text,
    };
    match from_object.rfind("\n}") {
        Some(line_end) => &from_object[..line_end + 2],
        None => from_object,
    }
}

/// The run as this program judges it. Notes on stderr where that differs from what is stored;
/// `name` is that of the run in the note.
pub(super) fn judged(stored: StoredRun, name: &str) -> StoredRun {
    let (record, difference) = judged_again(stored.record);
    // The page as it was printed shows what is stored.
    let page = stored.page.filter(|_| difference.is_as_stored());
    match difference {
        Rejudged::Same => {}
        Rejudged::NoData => eprint_line(&format!(
            "note: {name} does not keep what was measured, so it is not judged again"
        )),
        Rejudged::Anew(judging) => eprint_line(&format!(
            "note: {name} was judged by the rules of version {judging}. What follows is judged \
             again"
        )),
        Rejudged::Differs(pointer) => eprint_line(&format!(
            "warning: {name} does not say what follows from its measurements: {pointer} differs. \
             The file was changed or damaged. What follows is judged again"
        )),
    }
    StoredRun {
        record,
        page,
        ..stored
    }
}

/// A record as this program judges it, without a note: it is one of many.
pub(crate) fn judged_record(record: Record) -> Record {
    again::judged_quietly(record)
}

/// The record, comparison or fleet in a report page.
pub(crate) fn read_page(text: &str) -> Result<AnyDocument, String> {
    parse(text)
}

/// The run as this program judges it, without a note: it is one of many.
pub(super) fn judged_quietly(stored: StoredRun) -> StoredRun {
    StoredRun {
        record: again::judged_quietly(stored.record),
        ..stored
    }
}

/// The record of a run as this program judges it; `None` where it cannot be read, or where another
/// process has removed it.
pub(crate) fn saved_record(history: &History, id: &str) -> Option<Record> {
    let stored = history.get(id).ok().flatten()?;
    Some(judged_quietly(stored).record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_found_between_lines_of_a_log() {
        let record = diskproof_analysis::fixture::record();
        let json = serde_json::to_string_pretty(&record).unwrap();
        let compact = serde_json::to_string(&record).unwrap();
        let before = "1/9 read: 12,300/s {so far}\nnote: a { in a note\n";
        for text in [
            format!("{before}{json}\n"),
            format!("{json}\nsaved as 3f2a91c0\n"),
            format!("{before}{json}\nsaved as 3f2a91c0\n"),
            format!("{before}{compact}\n"),
        ] {
            let AnyDocument::Record(found) = parse(&text).unwrap() else {
                panic!("a comparison");
            };
            assert_eq!(found.run_id, record.run_id);
        }
        let cut = &json[..json.len() / 2];
        assert!(parse(&format!("{before}{cut}")).is_err());
    }

    #[test]
    fn document_error_distinguishes_other_files_damage_and_other_versions() {
        for (text, part) in [
            ("<html>", "no record"),
            ("{\"schema\": \"diskproof.record/1\"}", "record/1"),
            ("", "diskproof record"),
            ("[]", "diskproof record"),
            ("{}", "diskproof record"),
            (
                "[{\n\"schema\": \"diskproof.record/3\"\n},\n{\n}]\n",
                "JSON array",
            ),
            ("[{\n}, {\n}", "truncated"),
            ("{\"schema\": 1}", "diskproof record"),
            ("{\"plan\": {}}", "diskproof record"),
            ("{\"schema\": \"diskproof.record/3\"}", "damaged"),
            ("{\"fio version\" : \"diskproof-0.1.0\"}", "fio's JSON"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn compressed_file_is_named_as_such() {
        let error_of = |bytes: &[u8]| read_up_to_max(bytes).unwrap_err().to_string();
        for (bytes, part) in [
            (&b"\x1f\x8b\x08\x00"[..], "gzip -d"),
            (b"\x28\xb5\x2f\xfd\x00", "zstd -d"),
            (b"\xfd7zXZ\x00\x00", "xz -d"),
            (b"BZh91AY", "bzip2 -d"),
            (b"{\xff}", "UTF-8"),
        ] {
            assert!(error_of(bytes).contains(part), "{}", error_of(bytes));
        }
        assert_eq!(read_up_to_max(&b"{}"[..]).unwrap(), "{}");
    }
}
