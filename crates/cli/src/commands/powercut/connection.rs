//! Connects a test to its log: by the flags that lead there, and the secret in the token file.

use crate::failure::Failure;
use crate::stdio::eprint_line;
use diskproof_device::read_small_file;
use diskproof_model::shell::quoted;
use diskproof_powercut::{LogClient, Token};
use std::fmt::Display;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The secret is one line; the rest is room for comments of other tools.
const TOKEN_BYTES_MAX: u64 = 64 << 10;
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
    /// Connects to the log with the secret of the token file.
    pub(super) fn connect(&self) -> anyhow::Result<LogClient> {
        let token = read_token(self.token_file.as_deref())?;
        Ok(LogClient::connect(&self.server, &token)?)
    }

    /// The same flags as text for a shell, for a command that the user copies after the cut.
    pub(super) fn shell_flags(&self) -> String {
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
pub(super) fn read_token(file: Option<&Path>) -> Result<Token, Failure> {
    let Some(file) = file else {
        return Ok(Token::default());
    };
    let token_file =
        read_small_file(file, TOKEN_BYTES_MAX).map_err(|error| token_error(file, &error))?;
    if token_file.metadata.mode() & OTHERS_READ != 0 {
        eprint_line(&format!(
            "warning: other users can read the token in {}. Run: chmod 600 {}",
            file.display(),
            quoted(&file.display().to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_flags_lead_to_the_same_log() {
        let mut flags = ConnectionFlags {
            server: "10.0.0.2:5447".to_owned(),
            token_file: None,
        };
        assert_eq!(flags.shell_flags(), "--server 10.0.0.2:5447");
        flags.token_file = Some(PathBuf::from("/mnt/my token"));
        assert_eq!(
            flags.shell_flags(),
            "--server 10.0.0.2:5447 --token-file '/mnt/my token'"
        );
    }

    #[test]
    fn token_file_is_small_and_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        assert!(matches!(read_token(Some(&file)), Err(Failure::Usage(_))));
        let secret = "0123456789abcdef";
        let bytes_max = TOKEN_BYTES_MAX as usize;
        for (bytes, is_read) in [(bytes_max, true), (bytes_max + 1, false)] {
            std::fs::write(
                &file,
                format!("{secret}{}", "\n".repeat(bytes - secret.len())),
            )
            .unwrap();
            assert_eq!(read_token(Some(&file)).is_ok(), is_read, "{bytes}");
        }
    }
}
