//! The page of commands: for every figure the line of a well-known tool that shows it. Meant for a
//! shell, so nothing is wrapped.

use crate::page::{Ink, Page};
use crate::style::Style;
use crate::text::list;
use diskproof_model::record::{MeasurementRecord, Record};
use std::io::{self, Write};

/// Writes a comment with the name, then the command, for every figure and for every finding that
/// has one. Hidden characters are spelled out, so that a name with a line break in it cannot become
/// a command of its own.
pub fn write_commands(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::new(style, out);
    // What ran together has one command, which stands with the first of them.
    let is_told = |index: usize, m: &MeasurementRecord| {
        let before = &record.measurements[..index];
        before.iter().any(|other| {
            other.target == m.target && m.workload.together_with.contains(&other.workload.name)
        })
    };
    for (_, measurement) in record
        .measurements
        .iter()
        .enumerate()
        .filter(|(index, m)| !is_told(*index, m))
    {
        let beside = &measurement.workload.together_with;
        let name = list(
            std::iter::once(&measurement.workload.name)
                .chain(beside)
                .cloned(),
        );
        let title = match record.targets.get(measurement.target) {
            Some(target) if record.targets.len() > 1 => format!("# {name} on {}", target.path),
            _ => format!("# {name}"),
        };
        page.unbroken(Ink::Strong, &title)?;
        page.unbroken(Ink::Plain, &measurement.reproduce)?;
    }
    if let Some(surface) = record
        .surface
        .as_ref()
        .filter(|surface| !surface.reproduce.is_empty())
    {
        page.unbroken(Ink::Strong, "# curve")?;
        page.unbroken(Ink::Plain, &surface.reproduce)?;
    }
    for (finding, command) in record
        .findings
        .iter()
        .filter_map(|f| f.reproduce.as_ref().map(|command| (f, command)))
    {
        page.unbroken(Ink::Strong, &format!("# finding {}", finding.code))?;
        page.unbroken(Ink::Plain, command)?;
    }
    Ok(())
}
