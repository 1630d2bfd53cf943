//! `diskproof powercut rehearse`: the whole test without a cut.

use crate::failure::Exit;
use crate::stdout::{ignore_closed_pipe, to_stdout, write_in_locale};
use anyhow::Context as _;
use diskproof_powercut::{
    DiskBehaviour, LogServer, LogStore, RehearsedCut, Token, rehearse, write_rehearsal,
};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};

/// Flags of `powercut rehearse`.
#[derive(Debug, clap::Args)]
pub struct RehearseFlags {
    /// Number of power cuts of each simulated disk
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    pub cuts: u16,
    /// Seed of every random choice; the same seed gives the same cuts
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Cuts every simulated disk, and fails where one is judged wrongly.
pub(super) fn run(flags: &RehearseFlags) -> anyhow::Result<Exit> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = LogServer::bind(loopback, Token::default(), LogStore::memory())?;
    let address = server.address()?.to_string();
    std::thread::Builder::new()
        .spawn(move || server.serve(|_| ()))
        .context("cannot start the thread of the log server")?;
    let mut cuts: Vec<RehearsedCut> = Vec::new();
    for disk in DiskBehaviour::ALL {
        for cut in 0..u64::from(flags.cuts) {
            cuts.push(rehearse(disk, flags.seed.wrapping_add(cut), &address)?);
        }
    }
    ignore_closed_pipe(to_stdout(|out| {
        if flags.json {
            let document = json!({ "schema": "diskproof.powercut-rehearsal/1", "cuts": cuts });
            writeln!(out, "{document:#}")
        } else {
            write_in_locale(out, |page| write_rehearsal(&cuts, page))
        }
    }))?;
    let all_right = cuts.iter().all(|cut| cut.is_right);
    Ok(if all_right { Exit::Done } else { Exit::Failed })
}
