//! `diskproof powercut`: whether a disk keeps, across a power cut, what it acknowledged as durable.
//! Parses the flags and prints; writer, log and judgement are in the crate `diskproof-powercut`.

mod connection;
mod rehearse;
mod serve;
mod verify;
mod write;

use crate::failure::Exit;

const HELP: &str = "\
A test needs two machines: one with the disk, and one that keeps its power.

  1. second machine   diskproof powercut serve --listen 10.0.0.2 --token-file T
  2. with the disk    diskproof powercut write /data --server 10.0.0.2 --token-file T
  3. cut the power: pull the plug. A reset, reboot or shutdown is not enough
  4. after the boot   diskproof powercut verify /data --server 10.0.0.2 --token-file T

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
    Rehearse(rehearse::RehearseFlags),
}

/// Runs a step.
pub fn run(flags: &PowercutFlags) -> anyhow::Result<Exit> {
    match &flags.step {
        PowercutStep::Serve(flags) => serve::run(flags),
        PowercutStep::Write(flags) => write::run(flags),
        PowercutStep::Verify(flags) => verify::run(flags),
        PowercutStep::Rehearse(flags) => rehearse::run(flags),
    }
}
