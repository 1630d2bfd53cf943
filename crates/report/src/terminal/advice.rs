//! Advice for postgresql.conf on the terminal page.

use crate::describe::findings::advised_text;
use crate::page::{Page, TextStyle};
use crate::text::list;
use diskproof_model::record::Advice;
use std::io;

/// Column at which the reason of a setting begins.
const INDENT: usize = 4;

/// Writes the settings under a heading; nothing without any.
pub(super) fn write_advice(page: &mut Page<'_>, advice: &[Advice]) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of("advice for postgresql.conf"))?;
    for item in advice {
        let setting = format!("  {}", item.setting);
        page.entry(
            TextStyle::Bold.of(setting),
            INDENT,
            TextStyle::Bold.of(advised_text(item)),
        )?;
        let from = if item.from.is_empty() {
            String::new()
        } else {
            format!(" (from {})", list(&item.from))
        };
        let why = format!("{}{from}", item.why);
        page.entry(TextStyle::Plain.of(""), INDENT, TextStyle::Plain.of(why))?;
    }
    Ok(())
}
