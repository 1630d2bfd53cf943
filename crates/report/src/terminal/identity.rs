//! The page of `info`: machine, target, filesystem and the devices below, one fact per line.

use super::findings::write_findings;
use crate::describe::health::health_facts;
use crate::describe::identity::{filesystem_facts, host_facts, layer_facts, target_facts};
use crate::describe::target::LabeledValue;
use crate::examined::Examined;
use crate::labels;
use crate::page::{Page, TextStyle};
use crate::style::Style;
use std::io::{self, Write};

/// Column at which values begin.
const INDENT: usize = 22;

/// Writes all facts, layer by layer from the target down to the disks, then their health and the
/// findings. Unknown values have no line, unless their absence matters.
pub fn write_identity(
    examined: &Examined<'_>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Examined {
        host,
        identity,
        health,
        findings,
    } = examined;
    let page = &mut Page::new(style, out);
    write_section(page, "host", &host_facts(host))?;
    page.blank()?;
    write_section(
        page,
        &format!("target {}", identity.path),
        &target_facts(identity),
    )?;
    if let Some(filesystem) = &identity.filesystem {
        page.blank()?;
        write_section(
            page,
            &format!("filesystem {}", filesystem.mount_point),
            &filesystem_facts(filesystem),
        )?;
    }
    for layer in &identity.layers {
        page.blank()?;
        write_section(
            page,
            &format!("{} {}", labels::layer_kind(layer.kind), layer.name),
            &layer_facts(layer),
        )?;
    }
    for disk in *health {
        page.blank()?;
        write_section(
            page,
            &format!("health of {}", disk.disk),
            &health_facts(disk),
        )?;
    }
    write_findings(page, findings)
}

fn write_section(page: &mut Page<'_>, title: &str, facts: &[LabeledValue]) -> io::Result<()> {
    page.text(TextStyle::Bold.of(title))?;
    for (label, value) in facts
        .iter()
        .filter_map(|(label, value)| value.as_ref().map(|value| (label, value)))
    {
        page.entry(
            TextStyle::Dim.of(format!("  {label}")),
            INDENT,
            TextStyle::Plain.of(value),
        )?;
    }
    Ok(())
}
