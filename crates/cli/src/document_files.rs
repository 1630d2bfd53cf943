//! Recognises files that say what to measure, or what was measured, and refuses them as targets:
//! plans, job files, records and pages. A measurement of such a file would be one of a few
//! kilobytes in the page cache, and a released one would be overwritten.

use crate::failure::Failure;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::shell::quoted;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The bytes at the start of a file that are examined: enough of a record for its schema, and of a
/// page for its policy.
const HEAD_BYTES: u64 = 4096;
/// Stands in the head of each record.
const RECORD_SCHEMA: &str = "diskproof.record/";
/// Stands in the head of comparisons, fleets and records.
const ANY_SCHEMA: &str = "\"diskproof.";
/// The first key of fio's JSON.
const FIO_KEY: &str = "\"fio version\"";
/// The policy that stands first in our pages.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'sha256-";

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentFile {
    /// A saved run, as JSON or as a page.
    Record,
    /// A comparison or a fleet.
    OtherDocument,
    /// The JSON of fio.
    FioJson,
    /// JSON, or a page, of something else.
    Foreign,
    /// A plan file of `run`.
    Plan,
    /// A job file of fio.
    Job,
}

impl DocumentFile {
    /// The document that a regular file with such an extension holds; `None` of any other content
    /// and of what cannot be read. Larger files are data.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.is_file() || metadata.len() > DOCUMENT_BYTES_MAX as u64 {
            return None;
        }
        let bytes = read_head(path).ok()?;
        if bytes.is_empty() || bytes.contains(&0) {
            return None;
        }
        let head = String::from_utf8_lossy(&bytes);
        let start = head.trim_start_matches('\u{feff}').trim_start();
        match extension.as_str() {
            "json" if head.contains(RECORD_SCHEMA) => Some(Self::Record),
            "json" if head.contains(ANY_SCHEMA) => Some(Self::OtherDocument),
            "json" if head.contains(FIO_KEY) => Some(Self::FioJson),
            "json" if start.starts_with(['{', '[']) => Some(Self::Foreign),
            "html" if head.contains(PAGE_POLICY) => Some(Self::Record),
            "html" if start.starts_with('<') => Some(Self::Foreign),
            "toml" => Some(Self::Plan),
            "fio" | "job" | "ini" if start.starts_with(['[', ';', '#']) => Some(Self::Job),
            _ => None,
        }
    }

    /// The error for such a file in the place of a target.
    pub(crate) fn refusal(self, path: &Path) -> Failure {
        let word = quoted(&path.to_string_lossy());
        let what = match self {
            Self::Record => format!(
                "a saved run. 'diskproof run {word} [TARGET]' repeats it, and 'diskproof show \
                 {word}' prints it"
            ),
            Self::OtherDocument => {
                format!("a saved document. 'diskproof show {word}' prints it")
            }
            Self::FioJson => "fio's JSON, which does not say enough to repeat its run. Give the \
                              job file to 'diskproof run', or a record that -o FILE.json wrote"
                .to_owned(),
            Self::Foreign => "a document of another program. -o FILE.json and -o FILE.html write \
                              records of diskproof"
                .to_owned(),
            Self::Plan => format!("a plan file. 'diskproof run {word} [TARGET]' carries it out"),
            Self::Job => {
                format!("a job file of fio. 'diskproof run {word} [TARGET]' carries it out")
            }
        };
        Failure::Usage(format!(
            "{} is not a target but {what}. To measure the file itself, name it by a symlink \
             without this extension",
            path.display()
        ))
    }
}

/// Refuses a document in the place of a target.
pub(crate) fn refuse_document(path: &Path) -> Result<(), Failure> {
    match DocumentFile::find(path) {
        Some(document) => Err(document.refusal(path)),
        None => Ok(()),
    }
}

fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn document_is_known_by_extension_and_content() {
        let place = tempfile::tempdir().unwrap();
        for (name, content, expected) in [
            (
                "a.json",
                "{\n \"schema\": \"diskproof.record/3\"",
                Some(DocumentFile::Record),
            ),
            (
                "A.JSON",
                "{\"schema\":\"diskproof.fleet/1\"",
                Some(DocumentFile::OtherDocument),
            ),
            (
                "fio.json",
                "{\n  \"fio version\" : \"fio-3.39\",",
                Some(DocumentFile::FioJson),
            ),
            ("b.json", "\u{feff} [1]", Some(DocumentFile::Foreign)),
            ("b.html", "<!doctype html>", Some(DocumentFile::Foreign)),
            ("p.toml", "[[workload]]", Some(DocumentFile::Plan)),
            ("j.fio", "[global]", Some(DocumentFile::Job)),
            // Data that has such a name.
            ("data.json", "\0{\"schema\"", None),
            ("text.json", "a line of a log", None),
            ("empty.json", "", None),
            ("data.bin", "{\"schema\": \"diskproof.record/3\"", None),
        ] {
            let path = place.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert_eq!(DocumentFile::find(&path), expected, "{name}");
            if expected.is_some() {
                let failure = refuse_document(&path).unwrap_err();
                assert_eq!(failure.exit(), Exit::Usage, "{name}");
                assert!(failure.to_string().contains(name), "{failure}");
            }
        }
        assert_eq!(DocumentFile::find(place.path()), None);
        assert_eq!(DocumentFile::find(&place.path().join("none.json")), None);
    }
}
