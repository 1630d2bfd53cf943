//! `diskproof powercut serve`: keeps the log of a test, on the machine that keeps its power.

use super::connection::read_token;
use crate::failure::{Exit, Failure};
use crate::stdio::eprint_line;
use anyhow::Context as _;
use diskproof_device::without_symlinks;
use diskproof_powercut::{ListenError, LogServer, LogStore, PORT_DEFAULT};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

/// The mode of a new folder of the logs: nobody else may forge one. A folder that exists keeps its
/// mode.
const OWNER_ONLY: u32 = 0o700;

/// Flags of `powercut serve`.
#[derive(Debug, clap::Args)]
pub struct ServeFlags {
    /// Address to listen on; all but loopback addresses need --token-file [port: 5447]
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "127.0.0.1")]
    #[arg(value_parser = parse_address)]
    pub listen: SocketAddr,
    /// File with a secret of at least 16 characters, the same on both machines
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Folder of the logs [default: diskproof/powercut in the user's state folder]
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    /// Print only errors
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, PORT_DEFAULT));
    }
    text.parse::<SocketAddr>()
        .map_err(|_| "write an IP address, optionally with a port, such as 10.0.0.2".to_owned())
}

/// The folder of the logs as the user named it, or that in the state folder.
fn log_folder(flags: &ServeFlags) -> Result<PathBuf, Failure> {
    if let Some(folder) = &flags.log {
        return Ok(folder.clone());
    }
    match crate::saved::state_folder() {
        Some(state) => Ok(state.join("powercut")),
        None => Err(Failure::Usage(
            "name a folder for the logs with --log DIR".to_owned(),
        )),
    }
}

/// Serves until a signal ends the program; every report is durable by then. Returns only errors of
/// the start.
pub(super) fn run(flags: &ServeFlags) -> anyhow::Result<Exit> {
    let token = read_token(flags.token_file.as_deref())?;
    let folder = without_symlinks(&log_folder(flags)?).map_err(Failure::Path)?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(OWNER_ONLY)
        .create(&folder)
        .with_context(|| format!("{}: cannot create the folder of the logs", folder.display()))?;
    let store = LogStore::Folder(folder.clone());
    let server = LogServer::bind(flags.listen, token, store).map_err(|error| match error {
        ListenError::NeedsToken(_) => Failure::Usage(format!("--listen: {error}")).into(),
        ListenError::Bind(..) => anyhow::Error::from(error),
    })?;
    let note: fn(&str) = if flags.quiet {
        ignore_note
    } else {
        eprint_line
    };
    note(&format!(
        "the log listens on {} and writes to {}",
        server.address()?,
        folder.display()
    ));
    server.serve(note);
    Ok(Exit::Done)
}

fn ignore_note(_note: &str) {}
