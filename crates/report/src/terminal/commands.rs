//! The page of commands: for every figure the command of a well-known tool that reproduces it.
//! Meant for a shell, so no line is wrapped.

use crate::page::{Page, TextStyle};
use crate::style::Style;
use crate::text::list;
use diskproof_model::record::{MeasurementRecord, Record};
use std::io::{self, Write};

/// Writes a comment with the name, then the command, for every figure and every finding that has
/// one. Hidden characters are spelled out: a name with a line break cannot become a command.
pub fn write_commands(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::new(style, out);
    // Workloads that ran together have one command, printed with the first of them.
    let is_printed = |index: usize, m: &MeasurementRecord| {
        let before = &record.measurements[..index];
        before.iter().any(|other| {
            other.target == m.target && m.workload.together_with.contains(&other.workload.name)
        })
    };
    for (_, measurement) in record
        .measurements
        .iter()
        .enumerate()
        .filter(|(index, m)| !is_printed(*index, m))
    {
        let others = &measurement.workload.together_with;
        let name = list(
            std::iter::once(&measurement.workload.name)
                .chain(others)
                .cloned(),
        );
        let title = match record.targets.get(measurement.target) {
            Some(target) if record.targets.len() > 1 => format!("# {name} on {}", target.path),
            _ => format!("# {name}"),
        };
        page.unbroken(TextStyle::Bold.of(&title))?;
        page.unbroken(TextStyle::Plain.of(&measurement.reproduce))?;
    }
    if let Some(surface) = record
        .surface
        .as_ref()
        .filter(|surface| !surface.reproduce.is_empty())
    {
        page.unbroken(TextStyle::Bold.of("# curve"))?;
        page.unbroken(TextStyle::Plain.of(&surface.reproduce))?;
    }
    for (finding, command) in record
        .findings
        .iter()
        .filter_map(|f| f.reproduce.as_ref().map(|command| (f, command)))
    {
        page.unbroken(TextStyle::Bold.of(format!("# finding {}", finding.code)))?;
        page.unbroken(TextStyle::Plain.of(command))?;
    }
    Ok(())
}
