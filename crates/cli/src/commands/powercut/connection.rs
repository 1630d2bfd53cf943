//! The flags that lead to the log.

use crate::failure::Failure;
use crate::stderr::eprint_line;
use diskproof_model::shell::quoted;
use diskproof_powercut::{LogClient, Token};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bits of a mode: read by the group, and by all.
const OTHERS_READ: u32 = 0o044;

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
    /// Connects.
    pub(super) fn connect(&self) -> anyhow::Result<LogClient> {
        let token = read_token(self.token_file.as_deref())?;
        Ok(LogClient::connect(&self.server, &token)?)
    }

    /// The same flags, as one types them.
    pub(super) fn words(&self) -> String {
        let server = quoted(&self.server);
        let token = self.token_file.as_ref().map_or(String::new(), |file| {
            format!(" --token-file {}", quoted(&file.display().to_string()))
        });
        format!("--server {server}{token}")
    }
}

/// The secret of a file; none without a file.
pub(super) fn read_token(file: Option<&Path>) -> Result<Token, Failure> {
    let Some(file) = file else {
        return Ok(Token::default());
    };
    let named = |why: String| Failure::Usage(format!("--token-file {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    if std::fs::metadata(file).is_ok_and(|found| found.mode() & OTHERS_READ != 0) {
        let path = file.display();
        eprint_line(&format!(
            "warning: other users can read the token in {path}. Run: chmod 600 {path}"
        ));
    }
    Token::parse(&text).map_err(named)
}
