//! `diskproof info`: who the disk is. Opens nothing.

use crate::args::Info;
use crate::failure::{Exit, Failure};
use crate::output::{style, to_stdout};
use diskproof_report::{json, terminal};
use diskproof_target::{host_facts, probe};

/// Shows the identity.
pub fn info(info: &Info) -> anyhow::Result<Exit> {
    let (identity, host) = (probe(&info.target).map_err(Failure::Probe)?, host_facts());
    to_stdout(|out| match info.json {
        true => json::write_identity(&host, &identity, out),
        false => terminal::write_identity(&host, &identity, &style(info.color), out),
    })?;
    Ok(Exit::Done)
}
