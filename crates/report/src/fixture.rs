//! What the tests of this crate share: records that runs made, and pages as text.

use crate::style::{Color, Style};
use diskproof_model::comparison::Comparison;
use diskproof_model::record::Record;
use std::io::{self, Write};

/// A real record of `check`.
pub(crate) fn record() -> Record {
    let text = include_str!("../../../tests/fixtures/check-directory.json");
    Record::from_json(text).unwrap()
}

/// A real comparison.
pub(crate) fn comparison() -> Comparison {
    serde_json::from_str(include_str!("../../../tests/fixtures/comparison.json")).unwrap()
}

/// What a writer writes.
pub(crate) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A page of this width without colours.
pub(crate) const fn plain(width: usize) -> Style {
    Style {
        width,
        color: Color::Plain,
    }
}

/// Fails unless the text shows all of these, whose spaces may be hard ones or line ends.
#[track_caller]
pub(crate) fn assert_shows(text: &str, parts: &[&str]) {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words.contains(part), "{part:?} is missing:\n{text}");
    }
}
