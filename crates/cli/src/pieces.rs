//! Writes a record as short lines, and joins such lines, so that it comes back whole through any
//! launcher. Those cut long lines (srun -l at 1,024 bytes, pdsh at 131,071), mix lines of several
//! processes, and put names before them.
//!
//! Each line is complete in itself: `diskproof1 ID NUMBER/COUNT BASE64 .`, of the deflated JSON. ID
//! is the beginning of the SHA-256 of the deflated data, in hexadecimal digits. The full stop ends
//! the text where something follows without a line break: ansible appends stderr to stdout so.
//! Lines without it are read, too. Other versions of the program read these lines, so another form
//! needs another mark.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use diskproof_model::document::DocumentError;
use diskproof_model::fleet::{HELLO_SCHEMA, Hello};
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::target::{HostFacts, TargetIdentity};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write};

/// The mark at the start of every piece, with the version of its form.
pub(crate) const MARK: &str = "diskproof1 ";
/// Base64 characters of a piece: with its head it stays below 900 bytes, which every launcher but
/// Open MPI's passes whole.
const CHARACTERS: usize = 840;
/// Hexadecimal digits of an ID.
const ID_DIGITS: usize = 16;
/// The most pieces of a record: those of the largest document.
const PIECES_MAX: usize = DOCUMENT_BYTES_MAX / CHARACTERS + 1;

/// Writes a document as pieces, one a line.
pub(crate) fn write_pieces(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut encoder, document)?;
    let data = encoder.finish()?;
    let text = BASE64.encode(&data);
    let id = digest(&data);
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(CHARACTERS).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let number = index + 1;
        write!(out, "{MARK}{id} {number:04}/{:04} ", pieces.len())?;
        out.write_all(piece)?;
        writeln!(out, " .")?;
    }
    Ok(())
}

/// The announcement of a process before its first request: if no record of it comes, it is missing.
pub(crate) fn hello(run_id: &str, host: &HostFacts, targets: &[TargetIdentity]) -> Hello {
    Hello {
        slots: None,
        schema: HELLO_SCHEMA.to_owned(),
        run_id: run_id.to_owned(),
        host: host.name.clone(),
        rank: host.rank.map(|rank| rank.rank),
        size: host.rank.and_then(|rank| rank.size),
        started: None,
        job: host.job.clone(),
        machine: host.machine.clone(),
        targets: targets.iter().map(|target| target.path.clone()).collect(),
    }
}

/// The ID of a document: the beginning of the digest of its deflated data.
fn digest(data: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(data) {
        digits.push_str(&format!("{byte:02x}"));
    }
    digits.truncate(ID_DIGITS);
    digits
}

/// Joins pieces that come in any order, of several documents at once.
#[derive(Debug, Default)]
pub(crate) struct PieceJoiner {
    incomplete: BTreeMap<String, Incomplete>,
    /// IDs of complete documents, whose pieces may come again.
    complete: BTreeSet<String>,
}

/// A document of which pieces are missing.
#[derive(Debug)]
struct Incomplete {
    /// The number of its pieces, as the first one says.
    count: usize,
    /// The texts of the pieces that came, by their number from 1.
    pieces: BTreeMap<usize, String>,
    /// The text before its first piece: the name that a launcher gave the process.
    label: String,
}

impl Incomplete {
    /// The joined texts of all pieces; `None` while some are missing.
    fn whole_text(&self) -> Option<String> {
        if self.pieces.len() < self.count {
            return None;
        }
        Some(self.pieces.values().map(String::as_str).collect())
    }
}

/// The result of joining the pieces of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// The JSON text of a document.
    Document(String),
    /// The pieces do not make a document.
    Damaged {
        /// The name of the document.
        name: String,
        /// A clause that says what is wrong with it.
        why: String,
    },
}

/// The pieces of a line.
#[derive(Debug, Default)]
pub(crate) struct TakenLine {
    /// The documents that the pieces completed.
    pub joined: Vec<Joined>,
    /// True if the line had a piece.
    pub has_piece: bool,
}

impl PieceJoiner {
    /// Takes every piece of a line, wherever it stands.
    pub(crate) fn take(&mut self, line: &str) -> TakenLine {
        let mut taken = TakenLine::default();
        let mut rest = line;
        let mut label = "";
        while let Some((before, behind)) = rest.split_once(MARK) {
            if !taken.has_piece {
                label = before;
            }
            rest = behind;
            if let Some(piece) = Piece::parse(rest) {
                taken.has_piece = true;
                taken.joined.extend(self.add(&piece, label));
                rest = &rest[piece.length..];
            }
        }
        taken
    }

    /// Adds a piece; returns the document if it was the last one that was missing.
    fn add(&mut self, piece: &Piece<'_>, label: &str) -> Option<Joined> {
        if self.complete.contains(piece.id) {
            return None;
        }
        let name = piece.id.to_owned();
        let incomplete = self.incomplete.entry(name).or_insert_with(|| Incomplete {
            count: piece.count,
            pieces: BTreeMap::new(),
            label: shown_label(label),
        });
        if piece.number > incomplete.count {
            return None;
        }
        let kept = incomplete.pieces.entry(piece.number).or_default();
        // A copy that was cut must not replace a whole one.
        if kept.len() < piece.text.len() {
            piece.text.clone_into(kept);
        }
        let joined = match document(piece.id, &incomplete.whole_text()?) {
            Ok(json) => Joined::Document(json),
            // A whole copy of a piece that was cut may still come.
            Err(_) => return None,
        };
        self.incomplete.remove(piece.id);
        self.complete.insert(piece.id.to_owned());
        Some(joined)
    }

    /// The damaged documents at the end of the stream: those of which pieces are missing or were
    /// cut.
    pub(crate) fn finish(self) -> Vec<Joined> {
        let mut damaged = Vec::new();
        for (id, incomplete) in self.incomplete {
            let why = match incomplete.whole_text() {
                Some(text) => match document(&id, &text) {
                    Ok(_) => continue,
                    Err(why) => why,
                },
                None => {
                    let missing = incomplete.count - incomplete.pieces.len();
                    format!("{missing} of its {} pieces are missing", incomplete.count)
                }
            };
            let name = match incomplete.label.as_str() {
                "" => format!("record {id}"),
                label => format!("record {id} of {label}"),
            };
            damaged.push(Joined::Damaged { name, why });
        }
        damaged
    }
}

/// Longer labels are cut in errors. Chosen, not measured.
const LABEL_CHARS_MAX: usize = 60;

/// The name that a launcher puts before a line: `db17: `, `3: `, `[1,0]<stdout>:`.
fn shown_label(text: &str) -> String {
    text.trim()
        .trim_end_matches([':', '|', '>'])
        .trim()
        .chars()
        .filter(|letter| !letter.is_control())
        .take(LABEL_CHARS_MAX)
        .collect()
}

/// The JSON text of a document from the base64 of its deflated data. The error is a clause.
fn document(id: &str, text: &str) -> Result<String, String> {
    let data = BASE64
        .decode(text)
        .map_err(|error| format!("one of its pieces is damaged: {error}"))?;
    if digest(&data) != id {
        return Err("its pieces do not match their digest: a line was cut or changed".to_owned());
    }
    let mut json = String::new();
    let bytes_max = DOCUMENT_BYTES_MAX as u64;
    let read = ZlibDecoder::new(data.as_slice())
        .take(bytes_max + 1)
        .read_to_string(&mut json);
    match read {
        Ok(length) if length as u64 <= bytes_max => Ok(json),
        Ok(_) => Err(DocumentError::TooLarge.to_string()),
        Err(error) => Err(format!("its data cannot be inflated: {error}")),
    }
}

/// One piece, without its mark.
struct Piece<'t> {
    id: &'t str,
    number: usize,
    count: usize,
    text: &'t str,
    /// The bytes of the line that it takes.
    length: usize,
}

fn is_base64_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+/=".contains(letter)
}

impl<'t> Piece<'t> {
    /// Reads the piece behind a mark; `None` for other text.
    fn parse(text: &'t str) -> Option<Self> {
        let id = text.get(..ID_DIGITS)?;
        let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let rest = text.get(ID_DIGITS..)?.strip_prefix(' ')?;
        let (numbers, after) = rest.split_once(' ')?;
        let (number_text, count_text) = numbers.split_once('/')?;
        let number = number_text.parse().ok()?;
        let count = count_text.parse().ok()?;
        if !is_id || number == 0 || number > count || count > PIECES_MAX {
            return None;
        }
        let end = after
            .find(|letter| !is_base64_letter(letter))
            .unwrap_or(after.len());
        Some(Self {
            id,
            number,
            count,
            text: &after[..end],
            length: text.len() - after.len() + end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A document of many pieces.
    fn large() -> Value {
        let mut numbers = Vec::new();
        let mut number = 1_u64;
        for _ in 0..4000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            numbers.push(number >> 33);
        }
        json!({ "numbers": numbers })
    }

    fn lines(document: &Value) -> Vec<String> {
        let mut text = Vec::new();
        write_pieces(document, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn joined(lines: impl IntoIterator<Item = String>) -> (Vec<Joined>, Vec<Joined>) {
        let mut joiner = PieceJoiner::default();
        let mut complete = Vec::new();
        for line in lines {
            complete.extend(joiner.take(&line).joined);
        }
        (complete, joiner.finish())
    }

    fn is(document: &Value, joined: &Joined) -> bool {
        let Joined::Document(text) = joined else {
            return false;
        };
        serde_json::from_str::<Value>(text).unwrap() == *document
    }

    #[test]
    fn lines_are_short_and_join_to_the_document() {
        let document = large();
        let lines = lines(&document);
        assert!(lines.len() > 20 && lines.iter().all(|line| line.len() < 900));
        let (complete, left) = joined(lines);
        assert!(is(&document, &complete[0]) && complete.len() == 1 && left.is_empty());
    }

    #[test]
    fn order_labels_repetitions_and_escaped_line_ends_do_not_matter() {
        let (one, other) = (large(), json!({"small": true}));
        let mut mixed: Vec<String> = Vec::new();
        for line in lines(&one).iter().rev() {
            mixed.push(format!("db17: {line}"));
            mixed.push(format!("db17: {line}"));
        }
        mixed.insert(3, format!("  3: {}", lines(&other)[0]));
        let (complete, left) = joined(mixed);
        assert_eq!((complete.len(), left.len()), (2, 0));
        assert!(is(&other, &complete[0]) && is(&one, &complete[1]));
        let line = format!(
            "host | CHANGED | rc=0 | (stdout) {}",
            lines(&one).join("\\n")
        );
        let (complete, _) = joined([line]);
        assert!(is(&one, &complete[0]));
    }

    /// ansible appends stderr to stdout without a line break.
    #[test]
    fn text_right_behind_a_piece_does_not_change_it() {
        let document = large();
        let text = format!(
            "h1 | CHANGED | rc=0 >>\n{}Done",
            lines(&document).join("\n")
        );
        let (complete, left) = joined(text.lines().map(str::to_owned));
        assert!(is(&document, &complete[0]) && left.is_empty());
        // Lines of earlier versions end with their text.
        let older = lines(&document).into_iter();
        let (complete, _) = joined(older.map(|line| line.trim_end_matches(" .").to_owned()));
        assert!(is(&document, &complete[0]));
    }

    #[test]
    fn missing_and_cut_pieces_are_named_with_their_label() {
        let document = large();
        let whole = lines(&document);
        let without = whole.iter().skip(1).map(|line| format!("db17: {line}"));
        let (complete, left) = joined(without);
        let [Joined::Damaged { name, why }] = left.as_slice() else {
            panic!("{left:?}")
        };
        assert!(complete.is_empty() && name.contains("db17"), "{name}");
        assert!(why.starts_with("1 of its "), "{why}");
        let mut cut = whole.clone();
        cut[2].truncate(500);
        let (complete, left) = joined(cut.clone());
        assert!(complete.is_empty() && left.len() == 1);
        // The whole piece follows.
        cut.push(whole[2].clone());
        let (complete, left) = joined(cut);
        assert!(is(&document, &complete[0]) && left.is_empty());
    }

    #[test]
    fn lines_that_only_look_like_pieces_are_ignored() {
        for text in [
            "diskproof1 ",
            "diskproof1 0123456789abcdef",
            "diskproof1 0123456789abcdef 0/0 AAAA",
            "diskproof1 0123456789abcdef 5/4 AAAA",
            "diskproof1 0123456789abcdef 1/99999999999 AAAA",
            "diskproof1 zzzz456789abcdef 1/1 AAAA",
            "diskproof1 0123456789abcd\u{fc}f 1/1 AAAA",
        ] {
            let TakenLine { joined, has_piece } = PieceJoiner::default().take(text);
            assert!(joined.is_empty() && !has_piece, "{text}");
        }
    }
}
