//! The log of a test: the flags that lead to it, and `diskproof powercut serve`, which keeps it on
//! the machine that keeps its power.

use crate::failure::{Exit, Failure};
use crate::stdio::eprint_line;
use anyhow::Context as _;
use diskproof_device::{read_small_file, without_symlinks};
use diskproof_model::shell::quoted;
use diskproof_powercut::{ListenError, LogClient, LogServer, LogStore, PORT_DEFAULT, Token};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The secret is one line; the rest is room for comments of other tools.
const TOKEN_BYTES_MAX: u64 = 64 << 10;
/// Bits of a mode: read by the group, and by all.
const OTHERS_READ: u32 = 0o044;
/// The mode of the folder of the logs: nobody else may forge one.
const OWNER_ONLY: u32 = 0o700;

/// Where the log is.
#[derive(Debug, clap::Args)]
pub struct ConnectionFlags {
    /// The machine that runs 'powercut serve' [port: 5447]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub server: String,
    /// File with the secret of 'powercut serve'
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl ConnectionFlags {
    /// Connects to the log with the secret of the token file.
    pub(super) fn connect(&self) -> anyhow::Result<LogClient> {
        let token = read_token(self.token_file.as_deref())?;
        Ok(LogClient::connect(&self.server, &token)?)
    }

    /// The same flags as text for a shell.
    pub(super) fn words(&self) -> String {
        let server = quoted(&self.server);
        match &self.token_file {
            Some(file) => {
                let file = quoted(&file.display().to_string());
                format!("--server {server} --token-file {file}")
            }
            None => format!("--server {server}"),
        }
    }
}

/// Reads the secret of a file; without a file there is none.
fn read_token(file: Option<&Path>) -> Result<Token, Failure> {
    let Some(file) = file else {
        return Ok(Token::default());
    };
    let token_file =
        read_small_file(file, TOKEN_BYTES_MAX).map_err(|error| token_error(file, &error))?;
    if token_file.metadata.mode() & OTHERS_READ != 0 {
        let path = file.display();
        eprint_line(&format!(
            "warning: other users can read the token in {path}. Run: chmod 600 {path}"
        ));
    }
    let text = token_file
        .into_text()
        .map_err(|error| token_error(file, &error))?;
    Token::parse(&text).map_err(|why| token_error(file, &why))
}

fn token_error(file: &Path, why: &dyn Display) -> Failure {
    Failure::Usage(format!("--token-file {}: {why}", file.display()))
}

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

/// Serves until a signal ends the program; every report is durable by then.
pub(super) fn serve(flags: &ServeFlags) -> anyhow::Result<Exit> {
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
