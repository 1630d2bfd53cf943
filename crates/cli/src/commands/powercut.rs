//! `diskproof powercut`: whether a disk keeps, across a power cut, what it acknowledged as durable.
//! Parses the flags and prints; writer, log and judgement are in the crate `diskproof-powercut`.

mod connection;
mod serve;
mod verify;
mod write;

use crate::failure::Exit;
use crate::stdio::{Presentation, print_document};
use anyhow::Context as _;
use diskproof_powercut::{
    DiskBehaviour, LogServer, LogStore, RehearsedCut, Token, rehearse, write_rehearsal,
};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};

const HELP: &str = "\
A test needs two machines: one with the disk, and one that keeps its power.

  1. on the second machine:
     diskproof powercut serve --listen 10.0.0.2 --token-file T
  2. on the machine with the disk:
     diskproof powercut write /data --server 10.0.0.2 --token-file T
  3. cut the power: pull the plug. A reset, reboot or shutdown is not enough
  4. after the boot:
     diskproof powercut verify /data --server 10.0.0.2 --token-file T

Try it without a cut: diskproof powercut rehearse

Exit codes of verify: 0 honest, 1 lying, 5 not proven; 2 usage, 3 refused for
safety, 4 the test failed.";

/// Test whether acknowledged writes survive a power cut
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct PowercutFlags {
    /// What to do.
    #[command(subcommand)]
    pub step: PowercutStep,
}

/// The steps of a test.
#[derive(Debug, clap::Subcommand)]
pub enum PowercutStep {
    /// Keep the log of a test, on a machine whose power stays on
    Serve(serve::ServeFlags),
    /// Write and sync until the power is cut, and report each durable write to the log
    Write(Box<write::CutWriteFlags>),
    /// Compare the target with the log after the cut; reads only
    Verify(verify::CutVerifyFlags),
    /// Run the whole test on honest and lying simulated disks
    Rehearse {
        /// Number of power cuts of each simulated disk
        #[arg(long, value_name = "N", default_value_t = 2,
              value_parser = clap::value_parser!(u16).range(1..=100))]
        cuts: u16,
        /// Seed of every random choice; the same seed gives the same cuts
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs a step of the test; each has exit codes of its own.
pub fn run(flags: &PowercutFlags) -> anyhow::Result<Exit> {
    match &flags.step {
        PowercutStep::Serve(flags) => serve::run(flags),
        PowercutStep::Write(flags) => write::run(flags),
        PowercutStep::Verify(flags) => verify::run(flags),
        PowercutStep::Rehearse { cuts, seed, json } => {
            run_rehearsal(*cuts, *seed, Presentation::from_json_flag(*json))
        }
    }
}

/// Cuts the power of every simulated disk, and prints the verdicts. The exit code says whether all
/// are right.
fn run_rehearsal(
    cuts_per_disk: u16,
    seed: u64,
    presentation: Presentation,
) -> anyhow::Result<Exit> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = LogServer::bind(loopback, Token::default(), LogStore::memory())?;
    let address = server.address()?.to_string();
    // The thread ends with the process.
    std::thread::Builder::new()
        .spawn(move || server.serve(|_| ()))
        .context("cannot start the thread of the log server")?;
    let mut cuts: Vec<RehearsedCut> = Vec::new();
    for disk in DiskBehaviour::ALL {
        for cut in 0..u64::from(cuts_per_disk) {
            cuts.push(rehearse(disk, seed.wrapping_add(cut), &address)?);
        }
    }
    let document = json!({ "schema": "diskproof.powercut-rehearsal/1", "cuts": cuts });
    print_document(
        presentation,
        |out| writeln!(out, "{document:#}"),
        |page| write_rehearsal(&cuts, page),
    )?;
    let are_right: Vec<bool> = cuts.iter().map(|cut| cut.is_right).collect();
    Ok(exit_of(&are_right))
}

/// Done if the judgement of every cut is right, and there was one.
fn exit_of(are_right: &[bool]) -> Exit {
    if !are_right.is_empty() && are_right.iter().all(|is_right| *is_right) {
        Exit::Done
    } else {
        Exit::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_judgement_fails_a_rehearsal() {
        assert_eq!(exit_of(&[true, true, true]), Exit::Done);
        assert_eq!(exit_of(&[true, false, true]), Exit::Failed);
        assert_eq!(exit_of(&[]), Exit::Failed);
    }
}
