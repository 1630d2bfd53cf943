//! The page of a plan that is not run.

use super::blocks::write_first_blocks;
use crate::describe::plan::blocks;
use crate::page::Page;
use crate::style::Style;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// Writes the plan: its budget, the skipped workloads, then the workloads in order.
pub fn write_plan(
    plan: &Plan,
    identities: &[TargetIdentity],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_first_blocks(&mut Page::new(style, out), None, &blocks(plan, identities))
}
