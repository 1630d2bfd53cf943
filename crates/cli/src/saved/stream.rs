//! Reads several records one after the other, as launchers, logs and `cat` bring them: JSON
//! documents, pretty or not, and records in pieces anywhere in a line, also within documents of
//! other programs, as container logs are.
//!
//! One document is held at a time, up to the limit of a document. A larger one is read to its end
//! and refused, and what follows is read as if it were not there.

use crate::pieces::{Joined, MARK, PieceJoiner, TakenLine};
use diskproof_model::document::{AnyDocument, DocumentError};
use diskproof_model::fleet::{HELLO_SCHEMA, Hello};
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use std::io::{self, BufRead, Read as _};

/// At most so much of a line is held at once. A letter may be cut at the end of a part, so no
/// document that is small enough to be used is longer.
const LINE_BYTES_MAX: u64 = DOCUMENT_BYTES_MAX as u64 + 1;
/// Stands in every document of ours.
const OWN_SCHEMA: &str = "\"diskproof.";

/// A thing that a stream brings.
#[derive(Debug)]
pub(crate) enum Streamed {
    /// A record, a comparison or a fleet.
    Document(Box<AnyDocument>),
    /// The announcement of a process that has begun.
    Hello(Hello),
    /// Something that is no usable document.
    Refused(RefusedPart),
}

/// A part of a stream that is no usable document.
#[derive(Debug)]
pub(crate) struct RefusedPart {
    /// Its name or line in the stream; empty for the stream itself.
    pub name: String,
    pub why: String,
    /// True if a record was lost with it; false of a document of another kind.
    pub is_lost: bool,
}

/// Reads a stream to its end, and hands what it brings to `take`. Returns the number of documents,
/// damaged ones included.
pub(crate) fn read_stream(
    stream: &mut dyn BufRead,
    take: &mut dyn FnMut(Streamed),
) -> io::Result<usize> {
    let mut reader = Reader {
        joiner: PieceJoiner::default(),
        open: None,
        line_number: 0,
        documents: 0,
        take,
    };
    let mut line = Vec::new();
    let mut is_line_over = true;
    loop {
        line.clear();
        // A longer line comes in several parts.
        let mut limited = (&mut *stream).take(LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if is_line_over {
            reader.line_number += 1;
            reader.take_line(&text);
        } else {
            let has_piece = reader.take_pieces(&text);
            reader.take_documents(&text, has_piece);
        }
        is_line_over = line.ends_with(b"\n");
    }
    reader.finish();
    Ok(reader.documents)
}

/// Reads a stream line by line.
struct Reader<'t> {
    joiner: PieceJoiner,
    /// The document that has begun and not ended.
    open: Option<OpenDocument>,
    /// The number of the current line, from 1.
    line_number: usize,
    /// The documents so far, damaged ones included.
    documents: usize,
    take: &'t mut dyn FnMut(Streamed),
}

/// The beginning of a document that is too large, in which its schema stands.
const HEAD_LETTERS: usize = 4096;

/// A JSON object while it is read.
#[derive(Debug, Default)]
struct OpenDocument {
    text: String,
    /// The line that it begins on.
    line: usize,
    /// Braces and brackets that are open.
    depth: usize,
    is_in_string: bool,
    /// True if a backslash stands before the next letter.
    is_escaped: bool,
    /// True if a piece of a record stands in one of its lines.
    has_piece: bool,
    /// True if it is larger than the limit; its text is not held any more.
    is_too_large: bool,
}

/// The text that an open document has taken.
enum AddedText {
    /// All of it: the document goes on.
    Whole,
    /// This many bytes, with which the document is complete.
    Completed(usize),
}

impl OpenDocument {
    /// Adds text up to the end of the document.
    fn add(&mut self, text: &str) -> AddedText {
        for (index, byte) in text.bytes().enumerate() {
            if self.is_in_string {
                if self.is_escaped {
                    self.is_escaped = false;
                } else if byte == b'\\' {
                    self.is_escaped = true;
                } else if byte == b'"' {
                    self.is_in_string = false;
                }
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth == 0 {
                self.hold(&text[..=index]);
                return AddedText::Completed(index + 1);
            }
        }
        self.hold(text);
        AddedText::Whole
    }

    /// Holds text up to the limit of a document, and the beginning of a larger one.
    fn hold(&mut self, text: &str) {
        if self.is_too_large {
            return;
        }
        if self.text.len() + text.len() <= DOCUMENT_BYTES_MAX {
            self.text.push_str(text);
            return;
        }
        self.is_too_large = true;
        let head = self.text.chars().chain(text.chars()).take(HEAD_LETTERS);
        self.text = head.collect();
    }
}

impl Reader<'_> {
    fn take_line(&mut self, line: &str) {
        let text = line.trim_start_matches('\u{feff}');
        // An open document takes no piece away: a brace in a log may never be closed.
        let has_piece = self.take_pieces(text);
        if let Some(open) = self.open.take() {
            // Within a document of ours no line but the first begins with a brace or a piece.
            let begins_anew = text.starts_with('{') || text.starts_with(MARK);
            if begins_anew {
                self.refuse_open(&open);
            } else {
                self.open = Some(open);
            }
        }
        self.take_documents(text, has_piece);
    }

    /// Takes the pieces of a line. Returns `true` if it has one.
    fn take_pieces(&mut self, text: &str) -> bool {
        let TakenLine { joined, has_piece } = self.joiner.take(text);
        for one in joined {
            self.take_joined(one);
        }
        has_piece
    }

    /// Takes the documents of a line, or of the part of it behind a byte order mark: the rest of
    /// the open one, then any number of others.
    fn take_documents(&mut self, line: &str, has_piece: bool) {
        let mut unread = line;
        loop {
            if self.open.is_none() {
                unread = unread.trim_start();
                if !unread.starts_with('{') {
                    break;
                }
            }
            let mut open = self.open.take().unwrap_or_else(|| OpenDocument {
                line: self.line_number,
                ..OpenDocument::default()
            });
            open.has_piece |= has_piece;
            match open.add(unread) {
                AddedText::Whole => {
                    self.open = Some(open);
                    return;
                }
                AddedText::Completed(length) => {
                    self.take_closed(&open);
                    unread = &unread[length..];
                }
            }
        }
    }

    /// Takes a document that is complete. One of another program is a log where it has pieces.
    fn take_closed(&mut self, open: &OpenDocument) {
        if open.is_too_large {
            return self.refuse_open(open);
        }
        let is_log = open.has_piece && !open.text.contains(OWN_SCHEMA);
        if !is_log {
            self.take_json(&open.text, format!("line {}", open.line));
        }
    }

    fn take_joined(&mut self, joined: Joined) {
        match joined {
            Joined::Document(json) => {
                #[derive(serde::Deserialize)]
                struct Head {
                    schema: String,
                }
                let schema = serde_json::from_str::<Head>(&json).map(|head| head.schema);
                match schema {
                    Ok(schema) if schema == HELLO_SCHEMA => {
                        if let Ok(hello) = serde_json::from_str(&json) {
                            (self.take)(Streamed::Hello(hello));
                        }
                    }
                    _ => self.take_json(&json, "a record in pieces".to_owned()),
                }
            }
            Joined::Damaged { name, why } => self.refuse(name, why, IsLost::Yes),
        }
    }

    fn take_json(&mut self, json: &str, name: String) {
        match AnyDocument::from_json(json) {
            Ok(document) => {
                self.documents += 1;
                (self.take)(Streamed::Document(Box::new(document)));
            }
            Err(error) => {
                let is_lost = match error {
                    DocumentError::Foreign | DocumentError::Fio => IsLost::No,
                    _ => IsLost::Yes,
                };
                self.refuse(name, format!("{error}{}", error.remedy()), is_lost);
            }
        }
    }

    /// Refuses a document that did not end, or is too large.
    fn refuse_open(&mut self, open: &OpenDocument) {
        let name = format!("line {}", open.line);
        // A brace of a log is no record.
        let is_lost = if open.text.contains(OWN_SCHEMA) {
            IsLost::Yes
        } else {
            IsLost::No
        };
        let why = if open.is_too_large {
            DocumentError::TooLarge.to_string()
        } else {
            "the JSON document is truncated".to_owned()
        };
        self.refuse(name, why, is_lost);
    }

    fn refuse(&mut self, name: String, why: String, is_lost: IsLost) {
        self.documents += 1;
        (self.take)(Streamed::Refused(RefusedPart {
            name,
            why,
            is_lost: is_lost == IsLost::Yes,
        }));
    }

    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            self.refuse_open(&open);
        }
        for joined in std::mem::take(&mut self.joiner).finish() {
            self.take_joined(joined);
        }
    }
}

/// The answer to whether a record was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsLost {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::write_pieces;
    use diskproof_model::record::Record;

    fn record(id: usize) -> Record {
        Record {
            run_id: format!("{id:032x}"),
            ..diskproof_analysis::fixture::record()
        }
    }

    /// Ids of the records, hosts of the hellos, and whether each refused part was a record.
    fn read(text: &str) -> (Vec<String>, Vec<String>, Vec<bool>) {
        let (mut ids, mut hosts, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        read_stream(&mut text.as_bytes(), &mut |streamed| match streamed {
            Streamed::Document(document) => match *document {
                AnyDocument::Record(record) => ids.push(record.run_id),
                other => panic!("{other:?}"),
            },
            Streamed::Hello(hello) => hosts.push(hello.host),
            Streamed::Refused(part) => refused.push(part.is_lost),
        })
        .unwrap();
        (ids, hosts, refused)
    }

    fn pieces(document: &impl serde::Serialize) -> String {
        let mut text = Vec::new();
        write_pieces(document, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn documents_follow_each_other_pretty_or_not() {
        let (a, b, c) = (record(1), record(2), record(3));
        let pretty = serde_json::to_string_pretty(&a).unwrap();
        let compact = serde_json::to_string(&b).unwrap();
        let text = format!(
            "note: a {{ in a note\n{pretty}\n{compact}{compact}\nx\n{}",
            pieces(&c)
        );
        let (ids, _, refused) = read(&text);
        assert_eq!(ids, [a.run_id, b.run_id.clone(), b.run_id, c.run_id]);
        assert!(refused.is_empty());
    }

    #[test]
    fn truncated_document_is_named_and_the_rest_goes_on() {
        let (a, b) = (record(1), record(2));
        for whole in [
            serde_json::to_string_pretty(&a).unwrap(),
            serde_json::to_string(&a).unwrap(),
        ] {
            let cut = &whole[..whole.len() / 2];
            let cut_line = cut.rfind('\n').map_or(cut, |end| &cut[..end]);
            let next = serde_json::to_string_pretty(&b).unwrap();
            for after in [next, pieces(&b)] {
                let (ids, _, refused) = read(&format!("{cut_line}\n{after}"));
                assert_eq!(ids, [b.run_id.as_str()]);
                assert_eq!(refused, [true]);
            }
        }
    }

    #[test]
    fn document_beyond_the_limit_is_named_and_the_rest_goes_on() {
        let (a, b) = (record(1), record(2));
        let after = serde_json::to_string(&b).unwrap();
        // On one line, and over many. Its note has letters of several bytes.
        let note = "\u{e9} { \\\" ".repeat(DOCUMENT_BYTES_MAX / 8);
        let large = format!("{{\"schema\": \"diskproof.record/3\", \"note\": \"{note}\"}}");
        let mut over_lines = serde_json::to_string_pretty(&a).unwrap();
        over_lines.truncate(over_lines.rfind('}').unwrap());
        over_lines += &",\n  \"more\": [\n    {}\n  ]".repeat(DOCUMENT_BYTES_MAX / 20);
        over_lines += "\n}";
        for large in [large, over_lines] {
            let mut reasons = Vec::new();
            let mut ids = Vec::new();
            let text = format!("{large}{after}\n{after}\n");
            read_stream(&mut text.as_bytes(), &mut |streamed| match streamed {
                Streamed::Document(document) => match *document {
                    AnyDocument::Record(record) => ids.push(record.run_id),
                    other => panic!("{other:?}"),
                },
                Streamed::Hello(hello) => panic!("{hello:?}"),
                Streamed::Refused(part) => reasons.push((part.is_lost, part.why)),
            })
            .unwrap();
            assert_eq!(reasons, [(true, DocumentError::TooLarge.to_string())]);
            assert_eq!(ids, [b.run_id.clone(), b.run_id.clone()]);
        }
    }

    #[test]
    fn any_number_of_documents_stand_on_a_line() {
        let (ids, _, refused) = read(&"{}".repeat(200_000));
        assert_eq!((ids.len(), refused.len()), (0, 200_000));
    }

    #[test]
    fn foreign_documents_are_refused_without_a_loss() {
        let (ids, _, refused) = read("{\"name\": \"package\"}\n{}\n\n");
        assert_eq!((ids.len(), refused), (0, vec![false, false]));
        assert_eq!(read("").2, Vec::<bool>::new());
    }

    #[test]
    fn pieces_are_found_behind_an_open_brace_and_in_logs_of_json() {
        let (a, b) = (record(1), record(2));
        let labelled = pieces(&a).replace(MARK, &format!("db7: {MARK}"));
        let behind = format!("{{ \"level\": \"info\", \"msg\": \"cut off\n{labelled}");
        let mut of_docker = String::new();
        for line in pieces(&b).lines() {
            of_docker += &format!("{{\"log\":\"{line}\\n\",\"stream\":\"stdout\"}}\n");
        }
        let stdout = pieces(&b).replace('\n', "\\n");
        let of_ansible = format!("{{\n  \"stdout\": \"{stdout}\",\n  \"rc\": 0\n}}\n");
        for (log, id) in [(behind, &a), (of_docker, &b), (of_ansible, &b)] {
            let (ids, _, refused) = read(&log);
            assert_eq!(ids, [id.run_id.as_str()], "{log}");
            assert!(!refused.contains(&true), "{log}");
        }
    }

    #[test]
    fn hello_of_a_process_that_died_is_read() {
        let record = record(1);
        let hello = crate::pieces::hello(&record.run_id, &record.host, &record.targets);
        let (ids, hosts, _) = read(&format!("db1: {}", pieces(&hello)));
        assert_eq!((ids.len(), hosts), (0, vec![record.host.name]));
    }
}
