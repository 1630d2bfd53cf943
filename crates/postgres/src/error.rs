//! Why PostgreSQL cannot be measured, each with what to do about it.

use diskproof_device::OpenError;
use std::io;

/// Stands for a statement while the connection is being made.
pub(crate) const CONNECT: &str = "connect";

/// Why PostgreSQL cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No server is installed where it was searched.
    #[error(
        "no PostgreSQL server found in {searched}. Install one, or name the directory of its \
         programs with --pg-bin"
    )]
    NoServer {
        /// Where.
        searched: String,
    },
    /// A program of the server does not run.
    #[error("cannot run {program}: {why}")]
    Program {
        /// Its path.
        program: String,
        /// The reason.
        why: String,
    },
    /// The directory of the cluster cannot be made or removed.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The process that starts and removes the server reports an error.
    #[error("the temporary PostgreSQL server failed: {0}")]
    Server(String),
    /// The server could not be removed.
    #[error("{path}: the temporary PostgreSQL cluster has not been removed: {why}")]
    NotRemoved {
        /// The directory.
        path: String,
        /// The reason.
        why: String,
    },
    /// The server refused a statement.
    #[error("{}", refusal_text(.statement, .message))]
    Statement {
        /// The statement.
        statement: String,
        /// Its own words.
        message: String,
        /// Its SQLSTATE.
        code: String,
    },
    /// The connection string or its environment variables.
    #[error("{0}")]
    ConnectString(String),
    /// There is no server, or it accepts no connection.
    #[error("cannot connect: {}", unreachable_text(.0))]
    Unreachable(io::Error),
    /// The login that the server demands is not possible.
    #[error("cannot log in: {0}")]
    Login(String),
    /// The server did not answer in time.
    #[error("the server did not answer in time; check its log and its load")]
    TimedOut,
    /// The server is older than its views.
    #[error("the server is PostgreSQL {0}; diskproof reads the views of version 13 and later")]
    TooOld(String),
    /// The connection broke.
    #[error("the connection to PostgreSQL was lost: {0}")]
    Connection(#[from] io::Error),
    /// The server sent something that the protocol does not allow.
    #[error("PostgreSQL sent an unexpected answer: {0}")]
    Protocol(String),
    /// The caller ended the wait.
    #[error("interrupted")]
    Stopped,
}

/// The server's words first: a line of a terminal may have no room for the statement.
fn refusal_text(statement: &str, message: &str) -> String {
    match statement {
        CONNECT => format!("PostgreSQL refused the connection: {message}"),
        _ => format!("PostgreSQL: {message} (statement: {statement})"),
    }
}

/// What failed, and what to look at.
fn unreachable_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused (ECONNREFUSED). Check that the \
             server runs and listens on this address and port"
            .to_owned(),
        io::ErrorKind::NotFound => "no such socket (ENOENT). Check that the server runs, its \
             port and its unix_socket_directories"
            .to_owned(),
        _ => error.to_string(),
    }
}

impl PostgresError {
    /// Whether a later attempt may succeed without a change by the user. SQLSTATE class 28 is an
    /// invalid authorization, 3D an unknown database.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Statement { code, .. } => !code.starts_with("28") && !code.starts_with("3D"),
            Self::Login(_) | Self::ConnectString(_) | Self::TooOld(_) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_server_come_before_the_statement() {
        let refused = |statement: &str| PostgresError::Statement {
            statement: statement.to_owned(),
            message: "FATAL: the database system is shutting down".to_owned(),
            code: "57P03".to_owned(),
        };
        assert_eq!(
            refused("SELECT 1").to_string(),
            "PostgreSQL: FATAL: the database system is shutting down (statement: SELECT 1)"
        );
        assert_eq!(
            refused(CONNECT).to_string(),
            "PostgreSQL refused the connection: FATAL: the database system is shutting down"
        );
    }
}
