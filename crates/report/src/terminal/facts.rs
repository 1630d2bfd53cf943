//! Lines of a label and a text, as all pages have them.

use crate::page::{Page, TextStyle};
use std::io;

/// Column at which the text begins, if the label is short.
pub(super) const INDENT: usize = 11;

/// Writes a label and its text.
pub(super) fn fact(page: &mut Page<'_>, label: &str, text: &str) -> io::Result<()> {
    page.entry(TextStyle::Dim.of(label), INDENT, TextStyle::Plain.of(text))
}
