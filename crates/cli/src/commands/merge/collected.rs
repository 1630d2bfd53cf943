//! The records that `merge` has read, and what it could not use.

use super::roster::Roster;
use super::source::Source;
use crate::failure::Failure;
use crate::saved::{
    RefusedPart, Streamed, judged_record, load_all_whole, open_document, read_page, read_stream,
};
use diskproof_analysis::fleet::{Added, Fleet};
use diskproof_model::document::AnyDocument;
use diskproof_model::fleet::{Hello, MissingRow, RefusedInput};
use diskproof_model::record::Record;
use diskproof_model::units::format_bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// The records that were read so far, and what was refused of the rest.
pub(super) struct Collected {
    pub fleet: Fleet,
    /// The hosts and ranks that announced a record.
    pub hellos: Vec<Hello>,
    pub refused: Vec<RefusedInput>,
}

impl Collected {
    /// Reads a source to its end. An unusable part is named, and the rest goes on.
    pub(super) fn read(&mut self, source: &Source, history: Option<&Path>) -> Result<(), Failure> {
        match source {
            Source::Stdin => {
                self.read_stream("stdin", &mut io::stdin().lock(), WithoutRecord::Lost);
            }
            Source::File(path) => self.read_file(path, WithoutRecord::Lost),
            Source::FileOfFolder(path) => self.read_file(path, WithoutRecord::of_name(path)),
            Source::History(reference) => {
                for record in load_all_whole(reference, history)? {
                    self.add_record(reference, &record);
                }
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, without_record: WithoutRecord) {
        let name = path.display().to_string();
        let file = match open_document(path) {
            Ok(file) => file,
            Err(error) => {
                self.note_lost(&name, format!("cannot open the file: {error}"));
                return;
            }
        };
        let mut reader = BufReader::new(file);
        let start = match reader.fill_buf() {
            Ok(start) => start.trim_ascii_start(),
            Err(error) => {
                self.note_lost(&name, format!("cannot read the file: {error}"));
                return;
            }
        };
        if start.is_empty() {
            self.note_without_record(&name, "it is empty", without_record);
        } else if start.starts_with(b"<") {
            self.read_page(&name, reader);
        } else {
            self.read_stream(&name, &mut reader, without_record);
        }
    }

    /// Reads the record in a report page.
    fn read_page(&mut self, name: &str, reader: BufReader<File>) {
        let mut text = String::new();
        let bytes_max = diskproof_model::limits::DOCUMENT_BYTES_MAX as u64;
        if let Err(error) = reader.take(bytes_max + 1).read_to_string(&mut text) {
            self.note_lost(name, format!("cannot read the page: {error}"));
            return;
        }
        if text.len() as u64 > bytes_max {
            let limit = format_bytes(bytes_max);
            self.note_lost(name, format!("the page has more than {limit}"));
            return;
        }
        match read_page(&text) {
            Ok(document) => self.take_streamed(name, Streamed::Document(Box::new(document))),
            Err(why) => self.note_lost(name, why),
        }
    }

    fn read_stream(&mut self, name: &str, stream: &mut dyn BufRead, without_record: WithoutRecord) {
        let hellos_before = self.hellos.len();
        match read_stream(stream, &mut |streamed| self.take_streamed(name, streamed)) {
            Ok(0) if self.hellos.len() == hellos_before => {
                self.note_without_record(name, "there is no record in it", without_record);
            }
            Ok(_) => {}
            Err(error) => self.note_lost(name, format!("cannot read it: {error}")),
        }
    }

    /// Takes what a source of this name streamed.
    fn take_streamed(&mut self, name: &str, streamed: Streamed) {
        match streamed {
            Streamed::Hello(hello) => self.hellos.push(hello),
            Streamed::Refused(RefusedPart {
                name: part,
                why,
                is_lost,
            }) => self.refused.push(RefusedInput {
                name: name_of_part(name, &part),
                why,
                is_lost,
            }),
            Streamed::Document(document) => match *document {
                AnyDocument::Record(record) => self.add_record(name, &judged_record(*record)),
                AnyDocument::Comparison(_) => {
                    self.note_unusable(name.to_owned(), "this is a comparison; name its runs");
                }
                AnyDocument::Fleet(_) => {
                    self.note_unusable(name.to_owned(), "this is a fleet; use it with --reference");
                }
            },
        }
    }

    /// Adds a record from an input of this name.
    fn add_record(&mut self, name: &str, record: &Record) {
        match self.fleet.add(record) {
            Added::Counted | Added::Again => {}
            Added::SameId => {
                let why = format!("another run than this one has its id {} too", record.run_id);
                self.note_lost(&name_of_part(name, &record.host.name), why);
            }
            Added::NoFigures => {
                let why = "it measured nothing that could be compared";
                self.note_unusable(name_of_part(name, &record.host.name), why);
            }
        }
    }

    fn note_without_record(&mut self, name: &str, why: &str, without_record: WithoutRecord) {
        match without_record {
            WithoutRecord::Lost => self.note_lost(name, why.to_owned()),
            WithoutRecord::Unusable => self.note_unusable(name.to_owned(), why),
        }
    }

    /// Notes an input that may have held a record, which is lost.
    fn note_lost(&mut self, name: &str, why: String) {
        self.refused.push(RefusedInput {
            name: name.to_owned(),
            why,
            is_lost: true,
        });
    }

    /// Notes an input that holds no record for a fleet.
    fn note_unusable(&mut self, name: String, why: &str) {
        self.refused.push(RefusedInput {
            name,
            why: why.to_owned(),
            is_lost: false,
        });
    }

    /// The error where no record was read: why the first input was refused.
    pub(super) fn no_record_text(&self) -> String {
        match self.refused.first() {
            Some(refused) => format!("no usable record. {}: {}", refused.name, refused.why),
            None => "no usable record".to_owned(),
        }
    }

    /// The ranks and hosts that began, or were expected, and of which no record came.
    pub(super) fn missing_rows(&self, roster: Option<&Roster>) -> Vec<MissingRow> {
        // Why no record came, by the name of the host or rank.
        let mut missing: BTreeMap<String, String> = BTreeMap::new();
        for hello in &self.hellos {
            if !self.fleet.has_run(&hello.run_id) {
                let name = match hello.rank {
                    Some(rank) => format!("{} #{rank}", hello.host),
                    None => hello.host.clone(),
                };
                let why = "it began, but its record did not come whole";
                missing.insert(name, why.to_owned());
            }
        }
        let mut rows = Vec::new();
        if let Some(roster) = roster {
            for name in roster.absent(&self.fleet.hosts(), &self.hellos) {
                let why = "expected, but nothing came of it".to_owned();
                rows.push(MissingRow { name, why });
            }
        }
        for (name, why) in missing {
            rows.push(MissingRow { name, why });
        }
        rows
    }
}

/// What an input without a record is.
#[derive(Clone, Copy)]
enum WithoutRecord {
    /// A record is lost.
    Lost,
    /// The input is another file, such as the list of hosts beside the records.
    Unusable,
}

impl WithoutRecord {
    /// That of a file in a folder of records. A text may be a list of hosts; a log of a launcher
    /// had a record of each of them.
    fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("txt") => Self::Unusable,
            _ => Self::Lost,
        }
    }
}

/// A part of an input, such as a host's lines in a stream; without a part, the input.
fn name_of_part(input: &str, part: &str) -> String {
    if part.is_empty() {
        input.to_owned()
    } else {
        format!("{input}, {part}")
    }
}
