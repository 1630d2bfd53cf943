//! The result page. An administrator decides from the first screen: verdict, figures, findings,
//! advice. Details of the machine and the method come last.

use super::blocks::write_blocks;
use crate::describe::page::sections;
use crate::describe::verdict::answer;
use crate::page::Page;
use crate::style::Style;
use diskproof_model::block::Shown;
use diskproof_model::record::Record;
use std::io::{self, Write};

/// How much of a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What a reader decides by.
    Short,
    /// Everything.
    Whole,
}

/// Writes the result of a run.
pub fn write_record(
    record: &Record,
    detail: Detail,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let other = match detail {
        Detail::Short => Shown::Short,
        Detail::Whole => Shown::Whole,
    };
    let all = sections(record).into_iter();
    for section in all.filter(|section| [Shown::Always, other].contains(&section.shown)) {
        if !matches!(section.id, "title" | "notes") {
            page.blank()?;
        }
        write_blocks(page, Some(record), &section.blocks)?;
    }
    Ok(())
}

/// Writes the headline and the trust once more, for the end of a page that is longer than the
/// screen. Writes nothing for a run without a verdict.
pub fn write_verdict_again(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let (page, answer) = (&mut Page::new(style, out), answer(record));
    if !answer.is_empty() {
        page.blank()?;
    }
    write_blocks(page, Some(record), &answer)
}
