//! Says why PostgreSQL cannot be measured, each reason with what to do about it.

use crate::cluster_files::CLUSTER_NAME;
use crate::disk_errors::disk_errno;
use diskproof_device::OpenError;
use rustls::CertificateError;
use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// The SQLSTATE of a wrong password.
const INVALID_PASSWORD: &str = "28P01";
/// The class of SQLSTATEs of a login that is not allowed.
const INVALID_AUTHORIZATION: &str = "28";
/// The class of SQLSTATEs of an unknown database.
const INVALID_CATALOG: &str = "3D";

/// Stands for a statement while the connection is being made.
pub(crate) const CONNECT: &str = "connect";

/// The reason why PostgreSQL cannot be measured, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No server is installed where it was searched.
    #[error(
        "no PostgreSQL server found in {searched}. Install one, or name the directory of its \
         programs with --pg-bin"
    )]
    NoServer {
        /// The program looked in these places.
        searched: String,
    },
    /// A program of the server does not run.
    #[error("cannot run {program}: {why}")]
    Program {
        /// The path of the program.
        program: String,
        /// A clause with the reason.
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
        /// The directory that remains.
        path: String,
        /// A clause with the reason.
        why: String,
    },
    /// The cluster could not be used and is removed, but not what another program put into its
    /// directory.
    #[error("{first}. {stays}")]
    Stays {
        /// The reason why it could not be used.
        first: Box<PostgresError>,
        /// This names the files that stay.
        stays: OpenError,
    },
    /// The cluster could not be used, and its directory remains.
    #[error("{first}. {not_removed}")]
    Remains {
        /// The reason why it could not be used.
        first: Box<PostgresError>,
        /// This names the directory.
        not_removed: Box<PostgresError>,
    },
    /// The server refused a statement.
    #[error("{}", refusal_text(.statement, .message))]
    Statement {
        /// The statement that failed.
        statement: String,
        /// The server's own words.
        message: String,
        /// The SQLSTATE of the refusal.
        code: String,
    },
    /// A setting could not be set back to its default. Whatever the server measures afterwards has
    /// the other value.
    #[error("{setting} of the temporary server could not be set back to {default}: {cause}")]
    NotPutBack {
        /// The name of the setting.
        setting: String,
        /// The value that it had before.
        default: String,
        /// Why it could not be set.
        cause: Box<PostgresError>,
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
    /// The server requests a password, and there is none.
    #[error("cannot log in: the server requests a password")]
    NoPassword,
    /// TLS, or the certificates of the server or of the user.
    #[error("no TLS with the server: {0}")]
    Tls(String),
    /// The server did not answer in time.
    #[error("the server did not answer in time; check its log and its load")]
    TimedOut,
    /// The server is older than its views.
    #[error("the server is PostgreSQL {0}; diskproof reads the views of version 13 and later")]
    TooOld(String),
    /// The connection broke, or the server closed it.
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

/// Says what failed and what to check.
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
    /// A program that does not run.
    pub(crate) fn program(program: impl Display, why: impl Display) -> Self {
        Self::Program {
            program: program.to_string(),
            why: why.to_string(),
        }
    }

    /// A disk holds the server, or the process that makes its directory in this one.
    pub fn removed_later(target: &Path) -> Self {
        let path = target.join(CLUSTER_NAME).display().to_string();
        let why = format!(
            "the disk has not let it go yet. Its guard process removes it when the disk has \
             answered; if that process is killed, the next 'diskproof commit --postgres' does, or \
             rm -r '{path}'"
        );
        Self::NotRemoved { path, why }
    }

    /// This error of a cluster together with what its removal, which followed, has left.
    pub(crate) fn before_end(self, removed: Result<(), Self>) -> Self {
        let first = Box::new(self);
        match removed {
            Ok(()) => *first,
            Err(Self::Open(stays @ OpenError::Stays { .. })) => Self::Stays { first, stays },
            Err(not_removed) => Self::Remains {
                first,
                not_removed: Box::new(not_removed),
            },
        }
    }

    /// The name of the error of its disk by which the server failed, such as `EIO`; `None` where
    /// nothing says that.
    pub fn disk_errno(&self) -> Option<&'static str> {
        match self {
            Self::Server(why) => disk_errno(why),
            Self::Statement { message, .. } => disk_errno(message),
            Self::Stays { first, .. } | Self::Remains { first, .. } => first.disk_errno(),
            Self::NotPutBack { cause, .. } => cause.disk_errno(),
            Self::NoServer { .. }
            | Self::Program { .. }
            | Self::Open(_)
            | Self::NotRemoved { .. }
            | Self::ConnectString(_)
            | Self::Unreachable(_)
            | Self::Login(_)
            | Self::NoPassword
            | Self::Tls(_)
            | Self::TimedOut
            | Self::TooOld(_)
            | Self::Connection(_)
            | Self::Protocol(_)
            | Self::Stopped => None,
        }
    }

    /// True if a later attempt may succeed without a change by the user.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Statement { code, .. } => {
                !code.starts_with(INVALID_AUTHORIZATION) && !code.starts_with(INVALID_CATALOG)
            }
            Self::Login(_)
            | Self::NoPassword
            | Self::Tls(_)
            | Self::ConnectString(_)
            | Self::TooOld(_) => false,
            _ => true,
        }
    }

    /// True if the server may accept the same session with TLS instead of without it, or the other
    /// way round. A wrong password stays wrong.
    pub(crate) fn may_depend_on_tls(&self) -> bool {
        match self {
            Self::Statement { code, .. } => code != INVALID_PASSWORD,
            Self::Tls(_) => true,
            _ => false,
        }
    }

    /// A login that would show the password to the network.
    pub(crate) fn in_clear_text() -> Self {
        Self::Login(
            "the server requests the password in clear text (method 'password'), which the \
             network could read. Use sslmode=require, connect over its Unix socket or loopback, \
             or use scram-sha-256 in pg_hba.conf"
                .to_owned(),
        )
    }

    /// An error of tokio-postgres, which gives its kind in words only.
    pub(crate) fn from_driver(error: tokio_postgres::Error, statement: &str) -> Self {
        if let Some(refusal) = error.as_db_error() {
            return Self::Statement {
                statement: statement.to_owned(),
                message: format!("{}: {}", refusal.severity(), refusal.message()),
                code: refusal.code().code().to_owned(),
            };
        }
        let kind = error.to_string();
        let why = error.source().map(ToString::to_string).unwrap_or_default();
        let is_closed = error.is_closed();
        let cause = error.into_source();
        match cause.map(|cause| cause.downcast::<io::Error>()) {
            Some(Ok(error)) if kind == AUTHENTICATION => Self::Login(error.to_string()),
            Some(Ok(error)) => Self::from_io(*error),
            _ if is_closed => io::Error::from(io::ErrorKind::UnexpectedEof).into(),
            _ => match kind.as_str() {
                CONFIGURATION => Self::NoPassword,
                AUTHENTICATION => Self::Login(if why.starts_with("unsupported") {
                    UNSUPPORTED.to_owned()
                } else {
                    why
                }),
                HANDSHAKE => Self::Tls(why),
                _ => Self::Protocol([kind, why].join(" ").trim_end().to_owned()),
            },
        }
    }

    /// An error below the protocol: of our socket, of TLS, or of the connection.
    fn from_io(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput};
        let not_own = match error.downcast::<Self>() {
            Ok(own) => return own,
            Err(not_own) => not_own,
        };
        match not_own.downcast::<rustls::Error>() {
            Ok(error) => Self::Tls(tls_text(&error)),
            Err(error) if matches!(error.kind(), InvalidData | InvalidInput) => {
                Self::Protocol(error.to_string())
            }
            Err(error) => Self::Connection(error),
        }
    }
}

// tokio-postgres keeps the kinds of its errors private, so they are recognised by these texts
// (`impl Display for Error` in its src/error/mod.rs). Another version may have others: then such an
// error becomes one of the protocol.
/// The text of an error of the login.
const AUTHENTICATION: &str = "authentication error";
/// The text of an error where the server requests a password and none is set.
const CONFIGURATION: &str = "invalid configuration";
/// The text of an error of the TLS handshake.
const HANDSHAKE: &str = "error performing TLS handshake";
/// The reason where the server requests a method of login that tokio-postgres does not have.
const UNSUPPORTED: &str = "the server requests a method that diskproof does not support (GSSAPI, \
    SSPI, OAuth); it supports trust, peer, password, md5, scram-sha-256 and cert (pg_hba.conf)";

/// The fault of a server's certificate, and what to do about it.
fn tls_text(error: &rustls::Error) -> String {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext,
        NotValidYet, NotValidYetContext, UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(why) = error else {
        return error.to_string();
    };
    let (what, remedy) = match why {
        Expired | ExpiredContext { .. } => ("has expired", "Renew it on the server"),
        NotValidYet | NotValidYetContext { .. } => {
            ("is not valid yet", "Compare the clocks of both machines")
        }
        UnknownIssuer | BadSignature => (
            "is signed by an unknown issuer",
            "Name the file of its authority: sslrootcert",
        ),
        NotValidForName | NotValidForNameContext { .. } => (
            "is for another host",
            "Connect to a name in its subjectAltName, with hostaddr where DNS does not know it, \
             or use sslmode=verify-ca",
        ),
        _ => return format!("the server's certificate is refused: {error}"),
    };
    format!("the server's certificate {what} ({why}). {remedy}")
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
        // The connection itself is no statement.
        for (statement, is_told) in [("SELECT 1", true), (CONNECT, false)] {
            let told = refused(statement).to_string();
            assert!(told.contains("FATAL: the database"), "{told}");
            assert_eq!(told.ends_with(&format!("{statement})")), is_told, "{told}");
        }
    }

    #[test]
    fn error_of_a_start_is_kept_beside_what_its_removal_left() {
        let after = |removed| PostgresError::Stopped.before_end(removed);
        let not_removed = PostgresError::removed_later(Path::new("/mnt"));
        let remains = after(Err(not_removed));
        assert!(
            remains.to_string().starts_with("interrupted. /mnt/"),
            "{remains}"
        );
        assert!(matches!(after(Ok(())), PostgresError::Stopped));
        let other = PostgresError::Server("the directory is not ours any more".to_owned());
        assert!(matches!(after(Err(other)), PostgresError::Remains { .. }));
    }
}
