//! The page of `info`: machine, target, filesystem and the devices below, one fact per line.

use super::blocks::write_first_blocks;
use crate::describe::findings::findings;
use crate::describe::identity::{host, sections};
use crate::examined::Examined;
use crate::page::Page;
use crate::style::Style;
use std::io::{self, Write};

/// Writes all facts, layer by layer from the target down to the disks, then their health and the
/// findings. Unknown values have no line, unless their absence matters.
pub fn write_identity(
    examined: &Examined<'_>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let health: Vec<_> = examined.health.iter().collect();
    let mut blocks = host(examined.host);
    blocks.extend(sections(examined.identity, &health).concat());
    blocks.extend(findings(examined.findings));
    write_first_blocks(page, None, &blocks)
}
